/*
 * Determines the instruction selector of a function.
 *
 * GlobalISel makes no records. If a block has an intrinsic that makes a record, or an invoke with a
 * "deopt" bundle, GlobalISel leaves the function to SelectionDAG. It compiles a call with a "deopt"
 * bundle as an ordinary call. This was found by trials with LLVM 14, 15, 16, 19 and 22.
 *
 * Unreachable blocks do not count: LLVM removes them before instruction selection.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/selection.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "llvm/site_call.h"

#include <stdint.h>

/* The blocks that have been reached. */
struct reached {
    struct hash_key key;
    /* A hash table; NULL marks a free place. The number of places is a power of two, and at least
     * twice the number of blocks. */
    LLVMBasicBlockRef *places;
    size_t place_count;
    /* The blocks whose instructions have not been searched; space for all blocks. */
    LLVMBasicBlockRef *waiting;
    size_t waiting_count;
};

static void reach(struct reached *reached, LLVMBasicBlockRef block)
{
    size_t mask = reached->place_count - 1;
    size_t place = (size_t)(hash_u64(&reached->key, (uintptr_t)block) >> 32) & mask;
    for (; reached->places[place] != NULL; place = (place + 1) & mask)
        if (reached->places[place] == block)
            return;
    reached->places[place] = block;
    reached->waiting[reached->waiting_count++] = block;
}

static bool is_left_to_dag(LLVMValueRef instruction)
{
    return site_call_kind(instruction) != CAIRN_RECORD_UNDECLARED &&
           (LLVMIsAInvokeInst(instruction) != NULL || !site_call_has_deopt_bundle(instruction));
}

static bool has_what_is_left_to_dag(LLVMBasicBlockRef block)
{
    for (LLVMValueRef instruction = LLVMGetFirstInstruction(block); instruction != NULL;
         instruction = LLVMGetNextInstruction(instruction))
        if (is_left_to_dag(instruction))
            return true;
    return false;
}

static bool find_what_is_left_to_dag(struct reached *reached, LLVMBasicBlockRef entry)
{
    reach(reached, entry);
    while (reached->waiting_count > 0) {
        LLVMBasicBlockRef block = reached->waiting[--reached->waiting_count];
        LLVMValueRef terminator = LLVMGetBasicBlockTerminator(block);
        if (has_what_is_left_to_dag(block))
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
    struct reached reached = {.key = hash_key_create(), .place_count = 2};
    while (reached.place_count < 2 * block_count)
        reached.place_count *= 2;
    reached.places = memory_new(&allocator, reached.place_count, sizeof *reached.places);
    reached.waiting = memory_new(&allocator, block_count, sizeof *reached.waiting);
    enum cairn_status status = CAIRN_OK;
    if (reached.places == NULL || reached.waiting == NULL)
        status = error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu blocks", block_count);
    else
        *leaves = find_what_is_left_to_dag(&reached, LLVMGetEntryBasicBlock(function));
    memory_free(&allocator, reached.waiting, block_count * sizeof *reached.waiting);
    memory_free(&allocator, reached.places, reached.place_count * sizeof *reached.places);
    return status;
}
