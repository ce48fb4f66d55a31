/*
 * Control flow: the values of slots where ways meet, and loops.
 *
 * Each way to a target is an edge, with the values that it brings. The target begins when all of
 * its edges are known, except for loops: at their heads all slots get phis, to which the back edges
 * add their values later. The types of these are those of the values from before the loop; a guard
 * at the back edge keeps numbers numbers.
 *
 * SPDX-License-Identifier: MIT
 */
#include "emitter.h"

#include <string.h>

static LLVMBasicBlockRef block_of(struct emitter *e, struct target *target)
{
    if (target->block == NULL)
        target->block = new_block(e);
    return target->block;
}

/* Goes to a target that comes later. */
void go(struct emitter *e, struct target *target)
{
    struct edge *edge = allocate(e, sizeof *edge + e->height * sizeof(struct value));
    edge->from = LLVMGetInsertBlock(e->builder);
    edge->height = e->height;
    memcpy(edge->slots, e->slots, e->height * sizeof(struct value));
    if (e->pending != NULL)
        edge->pending = memcpy(allocate(e, sizeof *e->pending), e->pending, sizeof *e->pending);
    edge->next = target->edges;
    target->edges = edge;
    LLVMBuildBr(e->builder, block_of(e, target));
    e->is_live = false;
}

static struct value merge_slot(struct emitter *e, struct target *target, uint32_t slot)
{
    struct value merged = target->edges->slots[slot];
    bool is_same = !target->is_loop;
    bool are_numbers = true;
    for (struct edge *edge = target->edges; edge != NULL; edge = edge->next) {
        const struct value *value = &edge->slots[slot];
        is_same &= value->bits == merged.bits && value->number == merged.number &&
                   value->truth == merged.truth;
        are_numbers &= value->number != NULL;
        merged.is_object &= value->is_object;
        merged.is_new &= value->is_new;
        merged.is_clean &= value->is_clean;
        if (value->identity != merged.identity)
            merged.identity = NULL;
        if (value->known != merged.known)
            merged.known = NULL;
    }
    if (is_same)
        return merged;
    merged.known = NULL;
    if (target->is_loop)
        merged.is_object = merged.is_new = merged.is_clean = false, merged.identity = NULL;
    are_numbers &= !target->is_loop || !e->input->avoids_loop_types;
    LLVMValueRef phi = LLVMBuildPhi(e->builder, are_numbers ? e->number : e->i64, "");
    merged.bits = are_numbers ? NULL : phi;
    merged.number = are_numbers ? phi : NULL;
    merged.truth = NULL;
    return merged;
}

/* Adds the values of a slot, which are made at the ends of the edges' blocks. */
static void add_incoming(struct emitter *e, struct target *target, uint32_t slot, LLVMValueRef phi)
{
    LLVMBasicBlockRef current = LLVMGetInsertBlock(e->builder);
    for (struct edge *edge = target->edges; edge != NULL; edge = edge->next) {
        LLVMValueRef value = edge->slots[slot].number;
        LLVMPositionBuilderBefore(e->builder, LLVMGetBasicBlockTerminator(edge->from));
        if (LLVMTypeOf(phi) != e->number)
            value = bits_of(e, &edge->slots[slot]);
        LLVMAddIncoming(phi, &value, &edge->from, 1);
    }
    begin(e, current);
}

/* Begins a target's block, with the values of all ways to it. */
void begin_target(struct emitter *e, struct target *target)
{
    if (target->edges == NULL)
        return;
    for (struct edge *edge = target->edges;
         edge != NULL && (target->is_loop || target->edges->next != NULL); edge = edge->next) {
        LLVMPositionBuilderBefore(e->builder, LLVMGetBasicBlockTerminator(edge->from));
        settle(e, &edge->pending, edge->slots, edge->height);
    }
    begin(e, block_of(e, target));
    e->is_live = true;
    e->pending = target->edges->pending;
    e->height = target->edges->height;
    if (target->is_loop)
        target->phis = allocate(e, e->height * sizeof(LLVMValueRef));
    for (uint32_t i = 0; i < e->height; i++) {
        e->slots[i] = merge_slot(e, target, i);
        if (target->is_loop)
            target->phis[i] = e->slots[i].number != NULL ? e->slots[i].number : e->slots[i].bits;
    }
    for (uint32_t i = 0; i < e->height; i++) {
        struct value *value = &e->slots[i];
        LLVMValueRef phi = value->number != NULL ? value->number : value->bits;
        if (phi != NULL && LLVMIsAPHINode(phi) != NULL &&
            LLVMGetInstructionParent(phi) == target->block && LLVMCountIncoming(phi) == 0)
            add_incoming(e, target, i, phi);
    }
}

/* Goes to the target if the condition is `when`, and continues otherwise. */
void go_if(struct emitter *e, LLVMValueRef condition, bool when, struct target *target)
{
    LLVMBasicBlockRef taken = new_block(e);
    LLVMBasicBlockRef next = new_block(e);
    LLVMBuildCondBr(e->builder, condition, when ? taken : next, when ? next : taken);
    begin(e, taken);
    go(e, target);
    begin(e, next);
    e->is_live = true;
}

/* ---- Back edges ---- */

/* Guards that a loop's variable is still a number. */
void expect_number(struct emitter *e, struct value *value)
{
    LLVMValueRef bits = bits_of(e, value);
    build_guard(e, is_number_test(e, value), FRAME_IS_LOOP_TYPE);
    value->number = LLVMBuildBitCast(e->builder, bits, e->number, "");
}

/* Goes back to the head of a loop. */
void go_back(struct emitter *e, struct target *head)
{
    LLVMValueRef *values = allocate(e, e->height * sizeof(LLVMValueRef));
    for (uint32_t i = 0; i < e->height; i++) {
        bool is_double = LLVMTypeOf(head->phis[i]) == e->number;
        if (is_double && e->slots[i].number == NULL)
            expect_number(e, &e->slots[i]);
        values[i] = is_double ? e->slots[i].number : bits_of(e, &e->slots[i]);
    }
    LLVMBasicBlockRef from = LLVMGetInsertBlock(e->builder);
    for (uint32_t i = 0; i < e->height; i++)
        LLVMAddIncoming(head->phis[i], &values[i], &from, 1);
    LLVMBuildBr(e->builder, head->block);
    e->is_live = false;
}
