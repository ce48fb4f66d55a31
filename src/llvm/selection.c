/*
 * Determines the instruction selector of a function, and which calls it replaces.
 *
 * GlobalISel makes no records. If a block has an intrinsic that makes a record, or an invoke with a
 * "deopt" bundle, GlobalISel leaves the function to SelectionDAG. It compiles a call with a "deopt"
 * bundle as an ordinary call. This was found by trials with LLVM 14, 15, 16, 19 and 22.
 *
 * SelectionDAG replaces calls of some library functions by instructions, and ExpandMemCmp those of
 * memcmp with a constant size. Neither looks at the "deopt" bundle, or at functions that an invoke
 * calls. Source: SelectionDAGBuilder.cpp, visitCall; trials with LLVM 14, 16, 19 and 22.
 *
 * Unreachable blocks do not count: LLVM removes them before instruction selection.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "base/hash_set.h"
#include "llvm/check.h"
#include "llvm/ir.h"
#include "llvm/site_call.h"

#include <stdint.h>
#include <string.h>

/* ---- Calls of library functions ---- */

/* Returns the attribute of the call or of the function. */
static LLVMAttributeRef find_attribute(LLVMValueRef call, LLVMValueRef function, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAttributeRef found =
        kind == 0 ? NULL : LLVMGetCallSiteEnumAttribute(call, IR_FUNCTION, kind);
    return found != NULL ? found : ir_attribute(function, IR_FUNCTION, name);
}

/* Whether the name is that of a function of <math.h> for which LLVM has an instruction, in any of
 * its three types. Some of them are new in LLVM 19 and 22. */
static bool is_in_math_library(const char *name)
{
    static const char *const names[] = {
        "acos", "asin",  "atan",  "atan2",     "ceil", "copysign", "cos",  "cosh", "exp10",
        "exp2", "fabs",  "floor", "fmax",      "fmin", "ldexp",    "log2", "rint", "nearbyint",
        "sin",  "round", "sinh",  "roundeven", "sqrt", "tan",      "tanh", "trunc"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(name, names[i], length) == 0 &&
            (name[length] == '\0' || strcmp(name + length, "f") == 0 ||
             strcmp(name + length, "l") == 0))
            return true;
    }
    return false;
}

/* Calls of functions of <math.h> are replaced if they do not write memory. The attribute `memory`
 * has two bits for each kind of memory; the higher one is set if it may be written. */
bool selection_may_replace(LLVMValueRef call)
{
    enum { COMPARED_SIZE = 2 };
    const uint64_t writes = 0xAAAAAAAAAAAAAAAA;
    LLVMValueRef function = LLVMIsAFunction(LLVMGetCalledValue(call));
    if (LLVMIsACallInst(call) == NULL || function == NULL)
        return false;
    LLVMLinkage linkage = LLVMGetLinkage(function);
    if (linkage == LLVMInternalLinkage || linkage == LLVMPrivateLinkage ||
        find_attribute(call, function, "nobuiltin") != NULL)
        return false;
    size_t length;
    const char *name = LLVMGetValueName2(function, &length);
    if (strcmp(name, "memcmp") == 0 || strcmp(name, "bcmp") == 0)
        return LLVMGetNumArgOperands(call) > COMPARED_SIZE &&
               LLVMIsAConstantInt(LLVMGetOperand(call, COMPARED_SIZE)) != NULL;
    LLVMAttributeRef memory = find_attribute(call, function, "memory");
    bool only_reads = memory != NULL ? (LLVMGetEnumAttributeValue(memory) & writes) == 0
                                     : find_attribute(call, function, "readnone") != NULL ||
                                           find_attribute(call, function, "readonly") != NULL;
    return strcmp(name, "mempcpy") == 0 || (only_reads && is_in_math_library(name));
}

/* ---- The selector of a function ---- */

/* The blocks that have been reached. */
struct reached {
    LLVMBasicBlockRef *blocks; /* space for all blocks */
    struct hash_set numbers;   /* of the blocks */
    size_t searched_count;     /* of blocks whose instructions have been searched */
};

static void reach(struct reached *reached, LLVMBasicBlockRef block)
{
    struct hash_set *numbers = &reached->numbers;
    uint32_t hash = (uint32_t)(hash_u64(&numbers->key, (uintptr_t)block) >> 32);
    for (const struct hash_place *place = hash_set_first(numbers, hash); place->number != 0;
         place = hash_set_next(numbers, place))
        if (reached->blocks[place->number - 1] == block)
            return;
    reached->blocks[numbers->count] = block;
    hash_set_put(numbers, hash, (uint32_t)numbers->count);
}

/* Whether a block that can be reached makes SelectionDAG compile the function. */
static bool reaches_what_is_left(struct reached *reached, LLVMBasicBlockRef entry)
{
    reach(reached, entry);
    while (reached->searched_count < reached->numbers.count) {
        LLVMBasicBlockRef block = reached->blocks[reached->searched_count++];
        LLVMValueRef terminator = LLVMGetBasicBlockTerminator(block);
        for (LLVMValueRef instruction = LLVMGetFirstInstruction(block); instruction != NULL;
             instruction = LLVMGetNextInstruction(instruction))
            if (site_call_kind(instruction) != CAIRN_RECORD_UNDECLARED &&
                (LLVMIsAInvokeInst(instruction) != NULL ||
                 !site_call_has_deopt_bundle(instruction)))
                return true;
        for (unsigned i = 0; terminator != NULL && i < LLVMGetNumSuccessors(terminator); i++)
            reach(reached, LLVMGetSuccessor(terminator, i));
    }
    return false;
}

enum cairn_status selection_leaves_to_dag(LLVMValueRef function, bool *leaves,
                                          struct cairn_error *error)
{
    struct cairn_allocator allocator = memory_allocator(NULL);
    size_t block_count = LLVMCountBasicBlocks(function);
    struct reached reached = {.blocks =
                                  memory_new(&allocator, block_count, sizeof *reached.blocks)};
    enum cairn_status status = CAIRN_OK;
    if (!hash_set_init(&reached.numbers, &allocator, block_count) || reached.blocks == NULL)
        status = error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu blocks", block_count);
    else
        *leaves = reaches_what_is_left(&reached, LLVMGetEntryBasicBlock(function));
    memory_free(&allocator, reached.blocks, block_count * sizeof *reached.blocks);
    hash_set_release(&reached.numbers, &allocator);
    return status;
}
