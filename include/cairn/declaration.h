/*
 * cairn/declaration.h - what a record itself does not say.
 *
 * A stack map record has an ID and locations. It does not say whether it came
 * from a patch point, a stack map or a statepoint, how many bytes are reserved,
 * or of which types its values are. A declaration does. libcairn-llvm reads
 * declarations from the IR; a client without LLVM's IR fills them in himself.
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

/** "stackmap", "patchpoint", "statepoint", "undeclared"; static. */
CAIRN_API const char *cairn_record_kind_name(enum cairn_record_kind kind);

/** LLVM's number of the anyreg calling convention (llvm/IR/CallingConv.h). */
enum { CAIRN_CALLING_CONVENTION_C = 0, CAIRN_CALLING_CONVENTION_ANYREG = 13 };

/** Values that a function can return in registers. */
enum { CAIRN_FUNCTION_RESULTS_MAX = 4 };

/** What a function or a call returns: nothing (void), one value, or the members of a structure. */
struct cairn_results {
    /** Otherwise the rest says nothing. */
    bool is_known;
    /** A narrow integer is extended to its register by its sign: what C calls signed, on those
     *  architectures whose ABI wants it (LLVM's attribute signext). */
    bool extends_sign;
    uint8_t count;
    struct cairn_type types[CAIRN_FUNCTION_RESULTS_MAX];
};

struct cairn_declaration {
    uint64_t id;
    enum cairn_record_kind kind;
    /** Reserved bytes of a patch point or statepoint, shadow bytes of a stack map. */
    uint32_t byte_count;
    /** LLVM's number of the calling convention. */
    uint32_t calling_convention;
    /** The patch point's call target is not the constant null, so LLVM emitted a call. */
    bool has_target;
    struct cairn_type result;
    /** Call arguments of a patch point or statepoint, then live values: `argument_count` +
     *  `live_value_count` types. Live values of a statepoint are the operands of its "deopt"
     *  bundle, one location of the record each, and then those of its "gc-live" bundle, of which
     *  the record has pairs and allocas (cairn/statepoint.h). Other bundles are not in it. */
    const struct cairn_type *types;
    uint32_t argument_count;
    uint32_t live_value_count;
    /** Name of the IR function that holds the call; may be NULL. */
    const char *function;
    /** What that function returns: what cairn_deopt_return checks and goes by. */
    struct cairn_results function_results;
};

/** A set of declarations by ID. Not thread-safe while it is being filled. */
typedef struct cairn_declarations cairn_declarations;

/** An empty set; `allocator` NULL means malloc. MEMORY. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_declarations_create(
    const struct cairn_allocator *allocator, cairn_declarations **declarations,
    struct cairn_error *error);

/** With all that was added to it. NULL is allowed. */
CAIRN_API void cairn_declarations_destroy(cairn_declarations *declarations);

/**
 * Copies `declaration`, its types and its function's name into the set. The same ID a second
 * time is normal (inlining and unrolling duplicate calls) if everything but the function is
 * the same (of functions that return differently, the results are then not known); otherwise
 * CONFLICT, with a sentence that names both functions and what differs, and the set is as it was.
 * A declaration of kind CAIRN_RECORD_UNDECLARED says that the records with its ID have different
 * shapes, or shapes that are not known: the ID then has no declaration, whatever else has been or
 * will be added for it. MEMORY, ARGUMENT, CONFLICT.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_declarations_add(
    cairn_declarations *declarations, const struct cairn_declaration *declaration,
    struct cairn_error *error);

/** Removes all but the first `count` IDs that were added; more than there are changes nothing. An
 * ID that has become undeclared since stays undeclared. */
CAIRN_API void cairn_declarations_truncate(cairn_declarations *declarations, size_t count);

/** The declaration of an ID, valid as long as the set; NULL if it has none, or if the ID is
 *  undeclared. */
CAIRN_API const struct cairn_declaration *cairn_declarations_find(
    const cairn_declarations *declarations, uint64_t id);

/** How many different IDs were added, those that are undeclared included. */
CAIRN_API size_t cairn_declarations_count(const cairn_declarations *declarations);

/** Declaration number `index`, in the order in which they were added; NULL beyond the last. IDs
 * that are undeclared have one of kind CAIRN_RECORD_UNDECLARED. */
CAIRN_API const struct cairn_declaration *cairn_declarations_at(
    const cairn_declarations *declarations, size_t index);

#ifdef __cplusplus
}
#endif
#endif
