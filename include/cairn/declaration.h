/*
 * cairn/declaration.h - what a stack map record itself does not contain.
 *
 * A record has an ID and locations. It does not tell whether it is of a patch point, a stack map or
 * a statepoint, how many bytes are reserved, or which types its values have. A declaration does.
 * libcairn-llvm reads declarations from LLVM's IR, and objects bring them along (cairn/load.h).
 *
 * Threads: a loaded module's declarations never change, so any number of threads and signal
 * handlers may read them.
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

/** LLVM's numbers of calling conventions (llvm/IR/CallingConv.h). */
enum { CAIRN_CALLING_CONVENTION_C = 0, CAIRN_CALLING_CONVENTION_ANYREG = 13 };

/** The maximum number of values that a function can return in registers. */
enum { CAIRN_FUNCTION_RESULTS_MAX = 4 };

/** What a function or a call returns: nothing (void), one value, or the members of a structure. */
struct cairn_results {
    /** If false, the other members are unspecified. */
    bool is_known;
    /** A narrow integer is sign-extended to its register, as C's signed types are on
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
    /** The patch point's target is not the constant null, so that LLVM emitted a call. */
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

#ifdef __cplusplus
}
#endif
#endif
