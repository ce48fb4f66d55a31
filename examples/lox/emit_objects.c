/*
 * Instances: their allocation, their fields, and the write barrier, which boxes need, too.
 *
 * SPDX-License-Identifier: MIT
 */
#include "emitter.h"

#include <stddef.h>

#include <string.h>

/* ---- The write barrier ---- */

/* The write barrier. */
void emit_stored(struct emitter *e, LLVMValueRef object, struct value *value)
{
    if (is_immovable(value) && !value->is_object)
        return;
    LLVMValueRef bits = bits_of(e, value);
    LLVMBasicBlockRef test = new_block(e);
    LLVMBasicBlockRef remember = new_block(e);
    LLVMBasicBlockRef next = new_block(e);
    LLVMBuildCondBr(e->builder, compare(e, LLVMIntUGE, bits, OBJECT_TAG), test, next);
    begin(e, test);
    LLVMValueRef flags = load(e, e->i8, object, offsetof(struct object, flags));
    LLVMValueRef watched =
        LLVMBuildAnd(e->builder, flags, LLVMConstInt(e->i8, FLAG_WATCHED, 0), "");
    go_unless(e, LLVMBuildIsNull(e->builder, watched, ""), remember);
    LLVMBuildBr(e->builder, next);
    begin(e, remember);
    call_entry(e, THING_REMEMBER, LLVMBuildPtrToInt(e->builder, object, e->i64, ""));
    LLVMBuildBr(e->builder, next);
    begin(e, next);
}

/* ---- Allocation ---- */

/* Pushes a new instance, for which the young generation must have space; otherwise, the interpreter
 * allocates: that is rare, and so nothing can move here. If the class has got another root since,
 * its instances have less space than they could have. */
void new_instance(struct emitter *e, const struct class *class)
{
    const struct shape *shape = class->root;
    settle(e, &e->pending, e->slots, e->height);
    e->pending = allocate(e, sizeof *e->pending);
    e->pending->shape = shape;
    e->pending->size = rounded_size(instance_size(shape));
    LLVMValueRef next =
        mark(e, MEMORY_HEAP, load(e, e->i64, address_of(e, (struct thing){.kind = THING_NEXT}), 0));
    LLVMValueRef end =
        mark(e, MEMORY_HEAP, load(e, e->i64, address_of(e, (struct thing){.kind = THING_END}), 0));
    LLVMValueRef after = LLVMBuildAdd(e->builder, next, word(e, e->pending->size), "");
    build_guard(e, LLVMBuildICmp(e->builder, LLVMIntULE, after, end, ""), FRAME_IS_BLAMELESS);
    push(e,
         (struct value){.identity = shape, .is_object = true, .is_new = true, .is_pending = true});
}

/* ---- Fields ---- */

void emit_get_case(struct emitter *e, const struct site_case *seen)
{
    if (seen->access == ACCESS_METHOD) {
        call_runtime(e);
        return;
    }
    if (operand(e, 1)->is_pending) {
        *operand(e, 1) = e->pending->fields[seen->slot];
        operand(e, 1)->is_clean = false;
        if (operand(e, 1)->is_pending)
            operand(e, 1)->identity = e->pending->shape;
        return;
    }
    LLVMValueRef object = pointer_to(e, bits_of(e, operand(e, 1)));
    uint64_t offset = offset_of_slot(seen->slot);
    if (seen->access == ACCESS_MORE) {
        const struct shape *shape = seen->key;
        object =
            mark(e, MEMORY_FIELD, load(e, e->pointer, object, offsetof(struct instance, more)));
        offset = offsetof(struct fields, values) +
                 (seen->slot - shape->inline_capacity) * sizeof(lox_value);
    }
    e->height--;
    push_bits(e, mark(e, MEMORY_FIELD, load(e, e->i64, object, offset)));
}

/* Stores a field of the pending object. */
static void set_pending(struct emitter *e, const struct site_case *seen)
{
    e->pending->fields[seen->slot] = *operand(e, 1);
    e->pending->shape = seen->target;
    for (uint32_t i = 0; i < e->height; i++)
        if (e->slots[i].is_pending)
            e->slots[i].identity = seen->target;
}

static void store_field(struct emitter *e, const struct site_case *seen)
{
    LLVMValueRef bits = bits_of(e, operand(e, 2));
    LLVMValueRef object = pointer_to(e, bits);
    mark(e, MEMORY_FIELD, store(e, bits_of(e, operand(e, 1)), object, offset_of_slot(seen->slot)));
    if (seen->target != seen->key) {
        mark(e, MEMORY_IDENTITY,
             store(e, object_word(e, seen->target), object, offsetof(struct object, identity)));
        /* Other values may be the same object. */
        for (uint32_t i = 0; i < e->height; i++)
            e->slots[i].identity = NULL;
        for (uint32_t i = 0; e->pending != NULL && i < e->pending->shape->field_count; i++)
            e->pending->fields[i].identity = NULL;
        learn(e, bits, &(struct value){.identity = seen->target, .is_object = true});
    }
    if (!operand(e, 2)->is_new)
        emit_stored(e, object, operand(e, 1));
}

void store_at(struct emitter *e, LLVMValueRef offset)
{
    struct value value = *operand(e, 1);
    LLVMValueRef object = pointer_to(e, bits_of(e, operand(e, 2)));
    LLVMValueRef bits = bits_of(e, operand(e, 1));
    LLVMValueRef address = LLVMBuildGEP2(e->builder, e->i8, object, &offset, 1, "");
    mark(e, MEMORY_FIELD, store(e, bits, address, 0));
    emit_stored(e, object, &value);
    e->height -= 2;
    push(e, value);
}

void emit_set_case(struct emitter *e, const struct site_case *seen)
{
    if (seen->access != ACCESS_INLINE) {
        call_runtime(e);
        return;
    }
    if (operand(e, 2)->is_pending)
        set_pending(e, seen);
    else
        store_field(e, seen);
    struct value value = *operand(e, 1);
    e->height -= 2;
    push(e, value);
}
