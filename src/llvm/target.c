/*
 * Checks targets of patch points.
 *
 * LLVM 14 to 22 read the target during instruction selection: as an address or a symbol if it is
 * one, possibly after casts that change nothing. For any other target they emit wrong code without
 * an error: the call disappears, or reaches a wrong address or a symbol that does not exist
 * (".L0"). SelectionDAG and FastISel differ in what they accept. Which of them selects a call
 * depends on the optimisation level, on attributes, and on the instructions around it. So a target
 * is accepted only if both accept it. Instructions are rejected, even if their value is constant,
 * and so are expressions that must be computed.
 *
 * Source: llvm/lib/CodeGen/SelectionDAG/SelectionDAGBuilder.cpp, visitPatchpoint; FastISel.cpp,
 * selectPatchpoint; LowerPATCHPOINT of the targets; trials with LLVM 14, 15, 16, 19 and 22 at all
 * levels.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/check.h"

#include <stddef.h>
#include <stdint.h>

/* Removes casts that change nothing, also indexing with zeros. Casts between address spaces are not
 * among them: on x86-64 and AArch64, some extend or truncate the address. */
static LLVMValueRef without_casts(LLVMValueRef value)
{
    while (LLVMIsAConstantExpr(value) != NULL) {
        LLVMOpcode opcode = LLVMGetConstOpcode(value);
        int index_end = opcode == LLVMGetElementPtr ? LLVMGetNumOperands(value) : 0;
        for (int i = 1; i < index_end; i++)
            if (LLVMIsAConstantInt(LLVMGetOperand(value, (unsigned)i)) == NULL ||
                !LLVMIsNull(LLVMGetOperand(value, (unsigned)i)))
                return value;
        if (opcode != LLVMBitCast && opcode != LLVMGetElementPtr)
            break;
        value = LLVMGetOperand(value, 0);
    }
    return value;
}

/* Reads an address. Returns false if the value is not an integer that was cast to a pointer. */
static bool read_address(LLVMValueRef value, uint64_t *address)
{
    enum { ADDRESS_BITS = 64 };
    if (LLVMIsAConstantExpr(value) == NULL || LLVMGetConstOpcode(value) != LLVMIntToPtr)
        return false;
    LLVMValueRef integer = LLVMIsAConstantInt(LLVMGetOperand(value, 0));
    if (integer == NULL)
        return false;
    LLVMTypeRef type = LLVMTypeOf(integer);
    if (LLVMGetIntTypeWidth(type) > ADDRESS_BITS)
        integer =
            LLVMConstTrunc(integer, LLVMIntTypeInContext(LLVMGetTypeContext(type), ADDRESS_BITS));
    *address = LLVMConstIntGetZExtValue(integer);
    return true;
}

const struct problem *target_find_problem(LLVMValueRef target, enum cairn_architecture architecture)
{
    static const struct problem variable = {
        "LLVM cannot call a target that is known only at run time",
        "null and cairn_site_call, or as target a function that gets the pointer as an argument"};
    static const struct problem computed = {
        "LLVM cannot call a target that has to be computed, not even from constants",
        "a function, or an address as an integer cast to a pointer"};
    static const struct problem undefined = {
        "the target is undefined", "a function, null, or an address as an integer cast to a "
                                   "pointer"};
    static const struct problem too_high = {"here LLVM calls only the low 48 bits of an address",
                                            "an address below 2^48, or null and cairn_site_call"};
    static const struct problem symbol_on_aarch64 = {
        "on AArch64, LLVM takes a symbol as target for an address of its own",
        "the target's address as an integer cast to a pointer, or null and cairn_site_call"};
    static const struct problem symbol_on_riscv64 = {
        "on RISC-V, LLVM has no relocation for a symbol as target",
        "the target's address as an integer cast to a pointer, or null and cairn_site_call"};
    uint64_t address;
    if (!LLVMIsConstant(target))
        return &variable;
    LLVMValueRef value = without_casts(target);
    if (LLVMIsUndef(value))
        return &undefined;
    if (LLVMIsAConstantPointerNull(value) != NULL)
        return NULL;
    if (read_address(value, &address)) {
        bool is_cut = architecture != CAIRN_ARCHITECTURE_X86_64 &&
                      architecture != CAIRN_ARCHITECTURE_SYSTEMZ &&
                      architecture != CAIRN_ARCHITECTURE_RISCV64;
        return is_cut && address >> 48 != 0 ? &too_high : NULL;
    }
    LLVMValueRef global = value; /* without aliases */
    while (LLVMIsAGlobalAlias(global) != NULL || LLVMIsAConstantExpr(global) != NULL)
        global = LLVMIsAGlobalAlias(global) != NULL ? LLVMAliasGetAliasee(global)
                                                    : LLVMGetOperand(global, 0);
    if (LLVMIsAGlobalValue(value) == NULL ||
        (LLVMIsAGlobalVariable(global) != NULL && LLVMIsThreadLocal(global)))
        return &computed;
    if (architecture == CAIRN_ARCHITECTURE_RISCV64)
        return &symbol_on_riscv64;
    return architecture == CAIRN_ARCHITECTURE_AARCH64 ? &symbol_on_aarch64 : NULL;
}

bool target_is_null(LLVMValueRef target)
{
    uint64_t address;
    LLVMValueRef value = without_casts(target);
    return LLVMIsAConstantPointerNull(value) != NULL ||
           (read_address(value, &address) && address == 0);
}
