/*
 * Values, and the stack of them. A value is what is known of a slot; bits_of makes its 64 bits
 * where they are needed. For a pending object, that makes the object.
 *
 * SPDX-License-Identifier: MIT
 */
#include "emitter.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* Nothing moves it, and it needs not be read again. */
bool is_immovable(const struct value *value)
{
    return value->number != NULL || value->truth != NULL || value->known != NULL ||
           (value->bits != NULL && LLVMIsAConstantInt(value->bits) != NULL);
}

/* ---- Bits ---- */

uint64_t offset_of_slot(uint32_t slot)
{
    return offsetof(struct instance, values) + slot * sizeof(lox_value);
}

/* Makes the pending object, and stores its fields. */
static LLVMValueRef make_object(struct emitter *e, struct pending *pending)
{
    const struct object header = {.kind = KIND_INSTANCE};
    uint64_t rest;
    memcpy(&rest, (const char *)&header + sizeof(void *), sizeof rest);
    LLVMValueRef cell = address_of(e, (struct thing){.kind = THING_NEXT});
    LLVMValueRef next = mark(e, MEMORY_HEAP, load(e, e->i64, cell, 0));
    LLVMValueRef after = LLVMBuildAdd(e->builder, next, word(e, pending->size), "");
    mark(e, MEMORY_HEAP, store(e, after, cell, 0));
    LLVMValueRef object = LLVMBuildIntToPtr(e->builder, next, e->pointer, "");
    LLVMValueRef bits = LLVMBuildOr(e->builder, next, word(e, OBJECT_TAG), "");
    mark(e, MEMORY_IDENTITY, store(e, object_word(e, pending->shape), object, 0));
    mark(e, MEMORY_FIELD, store(e, word(e, rest), object, sizeof(void *)));
    mark(e, MEMORY_FIELD, store(e, word(e, 0), object, offsetof(struct instance, more)));
    for (uint32_t i = 0; i < pending->shape->field_count; i++) {
        struct value *field = &pending->fields[i];
        LLVMValueRef value = field->is_pending ? bits : bits_of(e, field);
        mark(e, MEMORY_FIELD, store(e, value, object, offset_of_slot(i)));
    }
    return bits;
}

/* Makes the pending object if one of the slots holds it. */
void settle(struct emitter *e, struct pending **pending, struct value *slots, uint32_t height)
{
    LLVMValueRef bits = NULL;
    for (uint32_t i = 0; i < height; i++) {
        if (!slots[i].is_pending)
            continue;
        if (bits == NULL)
            bits = make_object(e, *pending);
        slots[i].bits = bits;
        slots[i].is_pending = false;
    }
    *pending = NULL;
}

LLVMValueRef bits_of(struct emitter *e, struct value *value)
{
    if (value->is_pending)
        settle(e, &e->pending, e->slots, e->height);
    if (value->bits == NULL && value->number != NULL)
        value->bits = LLVMBuildBitCast(e->builder, value->number, e->i64, "");
    if (value->bits == NULL)
        value->bits = LLVMBuildAdd(e->builder, LLVMBuildZExt(e->builder, value->truth, e->i64, ""),
                                   word(e, FALSE), "");
    return value->bits;
}

/* Returns the address of a closure that is known, or else in a slot. */
LLVMValueRef closure_address(struct emitter *e, const struct closure *closure, uint32_t slot)
{
    return closure != NULL ? object_address(e, closure)
                           : pointer_to(e, bits_of(e, &e->slots[slot]));
}

/* ---- The stack ---- */

void push(struct emitter *e, struct value value)
{
    assert(e->height < SLOTS_MAX);
    value.is_clean = false;
    e->slots[e->height++] = value;
    if (e->height > e->most_slots)
        e->most_slots = e->height;
}

void push_bits(struct emitter *e, LLVMValueRef bits) { push(e, (struct value){.bits = bits}); }

void push_constant(struct emitter *e, lox_value constant)
{
    struct value value = {.is_object = is_object(constant)};
    if (value.is_object)
        value.known = as_object(constant);
    value.bits = value.is_object ? object_bits(e, value.known) : word(e, constant);
    if (is_number(constant))
        value.number = LLVMConstReal(e->number, as_number(constant));
    push(e, value);
}

void push_truth(struct emitter *e, LLVMValueRef truth) { push(e, (struct value){.truth = truth}); }

struct value *operand(struct emitter *e, uint32_t from_top)
{
    return &e->slots[e->height - from_top];
}

/* Notes what was found out of a value in all slots that hold it. */
void learn(struct emitter *e, LLVMValueRef bits, const struct value *known)
{
    for (uint32_t i = 0; i < e->height; i++) {
        if (e->slots[i].bits != bits)
            continue;
        e->slots[i].number = known->number;
        e->slots[i].identity = known->identity;
        e->slots[i].is_object = known->is_object;
    }
}

/* ---- Tests ---- */

LLVMValueRef is_number_test(struct emitter *e, struct value *value)
{
    if (value->number != NULL)
        return LLVMConstInt(e->i1, 1, 0);
    if (value->truth != NULL || value->is_object)
        return LLVMConstInt(e->i1, 0, 0);
    return compare(e, LLVMIntULT, bits_of(e, value), FIRST_TAG);
}

/* Tests whether the operands are numbers. The result may be the constant true. */
LLVMValueRef are_numbers_test(struct emitter *e, uint32_t count)
{
    LLVMValueRef test = LLVMConstInt(e->i1, 1, 0);
    for (uint32_t i = 1; i <= count; i++)
        if (operand(e, i)->number == NULL)
            test = is_always(test)
                       ? is_number_test(e, operand(e, i))
                       : LLVMBuildAnd(e->builder, test, is_number_test(e, operand(e, i)), "");
    return test;
}

/* Sets the numbers of the operands, of which it is known that they are numbers. */
void make_numbers(struct emitter *e, uint32_t count)
{
    for (uint32_t i = 1; i <= count; i++) {
        struct value known = {.number = operand(e, i)->number};
        if (known.number != NULL)
            continue;
        LLVMValueRef bits = bits_of(e, operand(e, i));
        known.number = LLVMBuildBitCast(e->builder, bits, e->number, "");
        learn(e, bits, &known);
    }
}

LLVMValueRef truth_of(struct emitter *e, struct value *value)
{
    if (value->truth != NULL)
        return value->truth;
    if (value->number != NULL || value->is_object)
        return LLVMConstInt(e->i1, 1, 0);
    LLVMValueRef distance = LLVMBuildSub(e->builder, bits_of(e, value), word(e, NIL), "");
    return compare(e, LLVMIntUGT, distance, FALSE - NIL);
}
