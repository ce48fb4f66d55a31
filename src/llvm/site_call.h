/*
 * llvm/site_call.h - reads the calls in the IR that make records: calls of intrinsics, and calls
 * with a "deopt" bundle.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_SITE_CALL_H
#define LLVM_SITE_CALL_H

#include <cairn/declaration.h>
#include <cairn/status.h>
#include <llvm-c/Core.h>
#include <stdbool.h>

/* ---- Operand bundles ---- */

/* A bundle's operands, as consecutive operand numbers of the call. `count` is 0 if the call has no
 * such bundle. */
struct bundle {
    unsigned first;
    unsigned count;
};

/* The two bundles whose values a record describes, and the bundle that LLVM passes to a GC
 * transition. Other bundles may come before, between and after them. */
struct bundles {
    struct bundle deopt;
    struct bundle gc_live;
    struct bundle gc_transition;
    bool has_deopt; /* also without operands, which are not found before LLVM 18 */
};

/* Whether the call has a "deopt" bundle. Before LLVM 18, bundles without operands are not found. */
bool bundles_has_deopt(LLVMValueRef call);

/* Finds the bundles of the call. UNSUPPORTED if the LLVM in use prints bundles in an unknown
 * way. */
enum cairn_status bundles_read(LLVMValueRef call, struct bundles *bundles,
                               struct cairn_error *error);

enum { BUNDLE_TAG_SIZE = 40 };

/* Whether the call or invoke has an operand bundle at which the code generator in use ends the
 * process. Writes the start of its tag to `tag`. */
bool bundles_find_foreign(LLVMValueRef call, char tag[BUNDLE_TAG_SIZE]);

/* ---- Calls ---- */

/* The parts of a call that makes a record. */
struct site_call {
    LLVMValueRef call;
    enum cairn_record_kind kind;
    uint64_t id;         /* the ID in the record */
    bool has_default_id; /* whether LLVM chooses the ID, because the IR has none */
    uint64_t byte_count;
    bool has_target;
    LLVMValueRef target; /* a patch point's target; NULL for other kinds */
    uint32_t calling_convention;
    LLVMTypeRef result; /* NULL if not known */
    unsigned argument_count;
    unsigned live_value_count;
    /* Operand numbers of the call; see site_call_value. */
    unsigned first_argument;
    unsigned callee_operand; /* of a statepoint; 0 for other kinds */
    struct bundle live_values;
    /* Properties of statepoints; 0 for other kinds. */
    struct bundle gc_live_values; /* follow the other live values */
    struct bundle transition_values;
    bool is_transition; /* whether the flags mark a GC transition */
    bool is_live_in;    /* whether the flags keep deopt values in registers */
};

/* Whether the instruction is an ordinary call with a "deopt" bundle, of which LLVM makes a
 * statepoint. Before LLVM 18, a bundle without operands is not found. */
bool site_call_has_deopt_bundle(LLVMValueRef instruction);

/* Whether the instruction is a call with the marker "musttail". */
bool site_call_must_be_tail_call(LLVMValueRef instruction);

/* Returns the kind of record that the instruction makes; UNDECLARED if it makes none. */
enum cairn_record_kind site_call_kind(LLVMValueRef instruction);

/* Returns the module's next call after `previous` that makes a record, in the order of the module;
 * the first one if `previous` is NULL, and NULL at the end. All calls take O(instructions) time: a
 * few nanoseconds for each instruction. */
LLVMValueRef site_call_next(LLVMModuleRef module, LLVMValueRef previous);

/* Reads a call that makes a record. CORRUPT if an operand that must be constant is not, or if there
 * are more arguments than operands; UNSUPPORTED as bundles_read. */
enum cairn_status site_call_read(LLVMValueRef instruction, struct site_call *call,
                                 struct cairn_error *error);

/* Changes the ID of a call that site_call_read has read without an error. */
void site_call_set_id(LLVMValueRef instruction, uint64_t id);

/* Returns argument `index`, or live value `index - argument_count`. A declaration's types are in
 * the same order. */
LLVMValueRef site_call_value(const struct site_call *call, unsigned index);

#endif
