/*
 * llvm/site_call.h - the calls that make records, as the IR has them: those of intrinsics, and
 * those with a "deopt" bundle.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_SITE_CALL_H
#define LLVM_SITE_CALL_H

#include "llvm/bundles.h"

#include <cairn/declaration.h>
#include <cairn/status.h>
#include <llvm-c/Core.h>

/* Such a call, taken apart. */
struct site_call {
    LLVMValueRef call;
    enum cairn_record_kind kind;
    uint64_t id;         /* as the record has it */
    bool has_default_id; /* the IR has none, and LLVM gives the record its own */
    uint64_t byte_count;
    bool has_target;
    LLVMValueRef target; /* of a patch point; otherwise NULL */
    uint32_t calling_convention;
    LLVMTypeRef result; /* NULL: none is known */
    unsigned argument_count;
    unsigned live_value_count;
    /* Operands, by LLVM's numbers: see site_call_value. */
    unsigned first_argument;
    struct bundle live_values;
    /* Of a statepoint; the other kinds have none. */
    struct bundle gc_live_values; /* behind the others */
    struct bundle transition_values;
    bool is_transition; /* by its flags, as is_live_in: its deopt values stay in registers */
    bool is_live_in;
};

/* What calls of the function make, whatever their bundles are; UNDECLARED if it is not one of the
 * intrinsics. */
enum cairn_record_kind site_call_intrinsic_kind(LLVMValueRef function);

/* Whether LLVM makes a statepoint of the instruction though it is a call of no such intrinsic: an
 * ordinary call with a "deopt" bundle. Before LLVM 18 a bundle without operands is not seen. */
bool site_call_has_deopt_bundle(LLVMValueRef instruction);

/* Whether the value is a call of the function: an argument may be it too. */
bool site_call_calls(LLVMValueRef value, LLVMValueRef function);

/* What the instruction makes; UNDECLARED for anything that makes no record. */
enum cairn_record_kind site_call_kind(LLVMValueRef instruction);

/* Takes a call that makes such a record apart. CORRUPT if an operand that has to be constant
 * is not, or if there are more arguments than operands; UNSUPPORTED as bundles_read. */
enum cairn_status site_call_read(LLVMValueRef instruction, enum cairn_record_kind kind,
                                 struct site_call *call, struct cairn_error *error);

/* Changes the call's ID, which has been read without an error. */
void site_call_set_id(LLVMValueRef instruction, uint64_t id);

/* Argument `index`, or live value `index - argument_count`: the order of a declaration's types. */
LLVMValueRef site_call_value(const struct site_call *call, unsigned index);

/* The name of the function that the instruction is in, "" if it has none. */
const char *site_call_function(LLVMValueRef instruction);

#endif
