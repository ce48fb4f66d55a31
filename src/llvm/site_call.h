/*
 * llvm/site_call.h - the intrinsic calls that make records, as the IR has them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_SITE_CALL_H
#define LLVM_SITE_CALL_H

#include "llvm/bundles.h"

#include <cairn/declaration.h>
#include <cairn/status.h>
#include <llvm-c/Core.h>

/* A call of one of the intrinsics, taken apart. */
struct site_call {
    LLVMValueRef call;
    enum cairn_record_kind kind;
    uint64_t id;
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

/* What calls of the function make; UNDECLARED if it is none of the intrinsics. */
enum cairn_record_kind site_call_intrinsic_kind(LLVMValueRef function);

/* Whether the value is a call of the function: an argument may be it too. */
bool site_call_calls(LLVMValueRef value, LLVMValueRef function);

/* What the instruction makes; UNDECLARED for anything but calls of the intrinsics. */
enum cairn_record_kind site_call_kind(LLVMValueRef instruction);

/* Takes a call of an intrinsic of that kind apart. CORRUPT if an operand that has to be constant
 * is not, or if there are more arguments than operands; UNSUPPORTED as bundles_read. */
enum cairn_status site_call_read(LLVMValueRef instruction, enum cairn_record_kind kind,
                                 struct site_call *call, struct cairn_error *error);

/* Argument `index`, or live value `index - argument_count`: the order of a declaration's types. */
LLVMValueRef site_call_value(const struct site_call *call, unsigned index);

/* The name of the function that the instruction is in, "" if it has none. */
const char *site_call_function(LLVMValueRef instruction);

#endif
