/*
 * llvm/site_call.h - reads the calls in the IR that make records: calls of intrinsics, and calls
 * with a "deopt" bundle.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_SITE_CALL_H
#define LLVM_SITE_CALL_H

#include "llvm/bundles.h"

#include <cairn/declaration.h>
#include <cairn/status.h>
#include <llvm-c/Core.h>

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
    struct bundle live_values;
    /* Properties of statepoints; 0 for other kinds. */
    struct bundle gc_live_values; /* follow the other live values */
    struct bundle transition_values;
    bool is_transition; /* whether the flags mark a GC transition */
    bool is_live_in;    /* whether the flags keep deopt values in registers */
};

/* Returns the kind of record that calls of the function make, whatever their bundles are;
 * UNDECLARED if the function is not one of the intrinsics. */
enum cairn_record_kind site_call_intrinsic_kind(LLVMValueRef function);

/* Whether the instruction is an ordinary call with a "deopt" bundle, of which LLVM makes a
 * statepoint. Before LLVM 18, a bundle without operands is not found. */
bool site_call_has_deopt_bundle(LLVMValueRef instruction);

/* Whether the instruction is a call with the marker "musttail". */
bool site_call_must_be_tail_call(LLVMValueRef instruction);

/* Whether the value is a call of the function. A user of the function may also pass it as an
 * argument. */
bool site_call_calls(LLVMValueRef value, LLVMValueRef function);

/* Returns the kind of record that the instruction makes; UNDECLARED if it makes none. */
enum cairn_record_kind site_call_kind(LLVMValueRef instruction);

/* Reads a call that makes a record of this kind. CORRUPT if an operand that must be constant is
 * not, or if there are more arguments than operands; UNSUPPORTED as bundles_read. */
enum cairn_status site_call_read(LLVMValueRef instruction, enum cairn_record_kind kind,
                                 struct site_call *call, struct cairn_error *error);

/* Changes the ID of a call that site_call_read has read without an error. */
void site_call_set_id(LLVMValueRef instruction, uint64_t id);

/* Returns argument `index`, or live value `index - argument_count`. A declaration's types are in
 * the same order. */
LLVMValueRef site_call_value(const struct site_call *call, unsigned index);

/* Returns the name of the function that contains the instruction; "" if the function has none. */
const char *site_call_function(LLVMValueRef instruction);

#endif
