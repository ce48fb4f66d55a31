/*
 * llvm/site_call.h - the intrinsic calls that make records, as the IR has them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_SITE_CALL_H
#define LLVM_SITE_CALL_H

#include <cairn/declaration.h>
#include <cairn/status.h>
#include <llvm-c/Core.h>

/* A call of one of the intrinsics, taken apart. Operand numbers are LLVM's. */
struct site_call {
    LLVMValueRef call;
    enum cairn_record_kind kind;
    uint64_t id;
    uint64_t byte_count;
    bool has_target;
    uint32_t calling_convention;
    LLVMTypeRef result; /* NULL: none is known */
    unsigned first_argument;
    unsigned argument_count;
    unsigned first_live_value;
    unsigned live_value_count;
};

/* What the instruction is, by the name of what it calls; UNDECLARED for anything else. */
enum cairn_record_kind site_call_kind(LLVMValueRef instruction);

/* Takes a call apart of which site_call_kind said what it is. CORRUPT if an operand that has to
 * be constant is not, or if there are more arguments than operands. */
enum cairn_status site_call_read(LLVMValueRef instruction, struct site_call *call,
                                 struct cairn_error *error);

/* The name of the function that the instruction is in, "" if it has none. */
const char *site_call_function(LLVMValueRef instruction);

#endif
