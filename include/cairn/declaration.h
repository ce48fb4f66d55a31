/*
 * cairn/declaration.h - what a stack map record itself does not contain.
 *
 * A record has an ID and locations. It does not tell whether it is of a patch point, a stack map or
 * a statepoint, how many bytes are reserved, or which types its values have. A declaration does.
 * libcairn-llvm reads declarations from LLVM's IR; a host without LLVM's IR adds them itself.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_DECLARATION_H
#define CAIRN_DECLARATION_H

#include <cairn/allocator.h>
#include <cairn/status.h>
#include <cairn/type.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum cairn_record_kind {
    CAIRN_RECORD_UNDECLARED = 0,
    CAIRN_RECORD_STACKMAP = 1,
    CAIRN_RECORD_PATCHPOINT = 2,
    CAIRN_RECORD_STATEPOINT = 3
};

/** Returns "stackmap", "patchpoint", "statepoint" or "undeclared", a static string. */
CAIRN_API const char *cairn_record_kind_name(enum cairn_record_kind kind);

/** LLVM's numbers of calling conventions (llvm/IR/CallingConv.h). */
enum { CAIRN_CALLING_CONVENTION_C = 0, CAIRN_CALLING_CONVENTION_ANYREG = 13 };

/** The maximum number of values that a function can return in registers. */
enum { CAIRN_FUNCTION_RESULTS_MAX = 4 };

/** What a function or a call returns: nothing (void), one value, or the members of a structure. */
struct cairn_results {
    /** If false, the other members are unspecified. */
    bool is_known;
    /** Whether a narrow integer is sign-extended to its register, as C's signed types are on
     *  architectures whose ABI requires it (LLVM's attribute signext). */
    bool extends_sign;
    uint8_t count;
    struct cairn_type types[CAIRN_FUNCTION_RESULTS_MAX];
};

/** What is known about all records with one ID. */
struct cairn_declaration {
    uint64_t id;
    enum cairn_record_kind kind;
    /** Reserved bytes of a patch point or statepoint; shadow bytes of a stack map. */
    uint32_t byte_count;
    /** LLVM's number of the calling convention. */
    uint32_t calling_convention;
    /** Whether the patch point's target is not the constant null, so that LLVM emitted a call. */
    bool has_target;
    struct cairn_type result;
    /** The types of the call arguments of a patch point or statepoint, followed by those of the
     * live values: `argument_count` + `live_value_count` types. The live values of a statepoint are
     * the operands of its "deopt" bundle, for which the record has one location each, followed by
     * those of its "gc-live" bundle, for which it has pairs and allocas (cairn/statepoint.h). Other
     *  bundles are not included. */
    const struct cairn_type *types;
    uint32_t argument_count;
    uint32_t live_value_count;
    /** The name of the IR function that contains the call; may be NULL. */
    const char *function;
    /** What that function returns. cairn_exit_return uses it. */
    struct cairn_results function_results;
};

/** A set of declarations, with one for each ID. Not thread-safe while declarations are added;
 *  otherwise any number of threads may query it. */
typedef struct cairn_declarations cairn_declarations;

/** Creates an empty set. `allocator` NULL means malloc. The caller owns `*declarations`. Errors:
 *  MEMORY, ARGUMENT. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_declarations_create(
    const struct cairn_allocator *allocator, cairn_declarations **declarations,
    struct cairn_error *error);

/** Frees a set, which may be NULL, and its declarations. */
CAIRN_API void cairn_declarations_destroy(cairn_declarations *declarations);

/**
 * Copies `declaration`, its types and its function's name into the set.
 *
 * An ID may be added several times, because inlining and unrolling duplicate calls, if everything
 * except the function is the same. If the functions return different types, their results become
 * unknown. If anything else differs, the error is CONFLICT, the message names both functions and
 * the difference, and the set is unchanged.
 *
 * A declaration of kind CAIRN_RECORD_UNDECLARED means that the records with the ID have different
 * or unknown shapes. The ID then has no declaration, whatever was added or will be added for it.
 *
 * Errors: MEMORY, ARGUMENT, CONFLICT.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_declarations_add(
    cairn_declarations *declarations, const struct cairn_declaration *declaration,
    struct cairn_error *error);

/** Returns the declaration of an ID, valid as long as the set; NULL if the ID has none or is
 *  undeclared. Takes expected O(1) time. */
CAIRN_API const struct cairn_declaration *cairn_declarations_find(
    const cairn_declarations *declarations, uint64_t id);

#ifdef __cplusplus
}
#endif
#endif
