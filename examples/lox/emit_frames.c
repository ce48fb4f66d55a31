/*
 * How frames are described. Compiled code writes no frames for the interpreter. Where it can stop,
 * there is a description of the frames that the interpreter would have: one for the function, and
 * one for each call in line (list_frames). It begins at the frame and the base that the function
 * got, and the slots follow each other on one stack:
 *
 *     frame         frame + 1        ...
 *       |               |
 *       v               v
 *     function, at    closure, function, at      the frames: constants (struct described_frame)
 *     base            base
 *     slot 0, 1, ...  slot 0, 1, ...             the stack: a slot is clean if memory has its value
 *
 * There are two such places. A guard leaves: the frames and the values of slots that are not clean
 * are in a frame state of Cairn, from which jit.c writes both. A call waits: the slots that can be
 * objects that move are written before it, and all of them if the interpreter needs them. The
 * frames, and which slots these are, are in a record (struct waiting), a constant of the module.
 * The frame has its address, and the frames after it have the closures that are in no slot. So the
 * collector finds everything on the stack, no native frame has a pointer meanwhile, and whoever
 * needs the frames (errors, the interpreter's operations) writes them by complete_frames.
 *
 * SPDX-License-Identifier: MIT
 */
#include "emitter.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- Frames ---- */

/* Lists the frames, the outermost first, and returns how many. Each continues after the instruction
 * that is being emitted. */
static uint32_t list_frames(const struct emitter *e, struct described_frame *frames)
{
    uint32_t index = e->depth + 1;
    for (const struct activation *a = e->top; a != NULL; a = a->parent)
        frames[--index] = (struct described_frame){
            .function = a->function->number,
            .at = a->at + 1,
            .base = a->base,
            .has_closure = a->parent == NULL || a->closure != NULL,
        };
    return e->depth + 1;
}

/* ---- Guards ---- */

/* Encodes an activation, whose slots end at `end`: its local is where the first frame is, or
 * another frame's closure. */
static struct cairn_encoded_frame encode(struct emitter *e, const struct activation *a,
                                         uint32_t end)
{
    LLVMValueRef *values = allocate(e, (end - a->base + 1) * sizeof(LLVMValueRef));
    const struct reference *function =
        refer(e, (struct thing){.kind = THING_FUNCTION, .number = a->function->number});
    if (a->parent == NULL)
        values[0] = e->frame;
    else
        values[0] =
            a->closure != NULL ? object_bits(e, a->closure) : bits_of(e, &e->slots[a->base]);
    for (uint32_t i = a->base; i < end; i++) {
        struct value *value = &e->slots[i];
        if (!value->is_clean)
            values[1 + i - a->base] = value->number != NULL ? value->number : bits_of(e, value);
    }
    return (struct cairn_encoded_frame){
        .function = (uintptr_t)function->address,
        .function_name = e->input->has_names ? function->word : NULL,
        .position = a->at + 1,
        .flags = a->base,
        .locals = values,
        .local_count = 1,
        .stack = values + 1,
        .stack_count = end - a->base,
    };
}

/* Encodes all frames, the outermost first. The instruction of the innermost runs again. */
static void encode_all(struct emitter *e, struct cairn_encoded_frame *frames, uint32_t flags)
{
    uint32_t index = e->depth + 1;
    uint32_t end = e->height;
    for (const struct activation *a = e->top; a != NULL; end = a->base, a = a->parent) {
        frames[--index] = encode(e, a, end);
        frames[index].flags |= flags;
    }
    frames[e->depth].position--;
}

/* Binds a guard to the exit and, if it has no condition, to all assumptions: by their names, if the
 * code refers by names. */
static void bind(struct emitter *e, struct cairn_guard *guard, LLVMValueRef condition)
{
    const struct reference *exit = refer(e, (struct thing){.kind = THING_EXIT});
    struct cairn_name *names = allocate(e, sizeof *names * (e->assumption_count + 1));
    cairn_assumption **assumptions =
        allocate(e, sizeof(cairn_assumption *) * (e->assumption_count + 1));
    for (uint32_t i = 0; i < e->assumption_count; i++) {
        names[i + 1] = name_of(e->assumptions[i]);
        assumptions[i] = (cairn_assumption *)(uintptr_t)e->assumptions[i]->address;
    }
    names[0] = name_of(exit);
    guard->assumption_count = condition == NULL ? e->assumption_count : 0;
    if (e->input->has_names) {
        guard->exit_name = &names[0];
        guard->assumption_names = &names[1];
    } else {
        guard->exit = e->input->exit;
        guard->assumptions = assumptions;
    }
}

void build_guard(struct emitter *e, LLVMValueRef condition, uint32_t flags)
{
    struct cairn_encoded_frame frames[INLINE_DEPTH_MAX + 1];
    struct cairn_error error;
    struct cairn_guard guard = {
        .id = (*e->input->next_id)++, .frames = frames, .frame_count = e->depth + 1};
    e->work += GUARD_WORK;
    encode_all(e, frames, flags);
    bind(e, &guard, condition);
    if (cairn_build_guard(e->builder, condition, &guard, &error) == NULL) {
        fprintf(stderr, "lox: %s\n", error.message);
        e->has_failed = true;
    }
}

void guard(struct emitter *e, LLVMValueRef condition)
{
    if (!is_always(condition))
        build_guard(e, condition, e->input->is_general ? FRAME_IS_BLAMELESS : 0);
}

static void leave_with(struct emitter *e, uint32_t flags)
{
    build_guard(e, LLVMConstInt(e->i1, 0, 0), flags);
    LLVMBuildUnreachable(e->builder);
    e->is_live = false;
}

void leave_blamelessly(struct emitter *e) { leave_with(e, FRAME_IS_BLAMELESS); }

/* What is after the loop has not been executed because the loop has not ended. */
void leave(struct emitter *e)
{
    leave_with(e, is_in_loop(e, &e->outermost, e->outermost.at) ? 0 : FRAME_IS_BLAMELESS);
}

void expect_object(struct emitter *e, struct value *value)
{
    if (value->is_object)
        return;
    LLVMValueRef bits = bits_of(e, value);
    guard(e, compare(e, LLVMIntUGE, bits, OBJECT_TAG));
    learn(e, bits, &(struct value){.is_object = true});
}

/* ---- Calls ---- */

void flush_slot(struct emitter *e, uint32_t i)
{
    if (!e->slots[i].is_clean)
        mark(e, MEMORY_STACK, store(e, bits_of(e, &e->slots[i]), e->base, i * sizeof(lox_value)));
    e->slots[i].is_clean = true;
}

void reload(struct emitter *e)
{
    for (uint32_t i = 0; i < e->height; i++) {
        struct value *value = &e->slots[i];
        if (is_immovable(value))
            continue;
        value->bits = mark(e, MEMORY_STACK, load(e, e->i64, e->base, i * sizeof(lox_value)));
        value->identity = NULL;
        value->is_new = false;
    }
}

/* Returns the address of a constant of the module with these bytes. So it is freed with the code.
 */
static LLVMValueRef constant_in_module(const struct emitter *e, const void *bytes, size_t size)
{
    LLVMValueRef value = LLVMConstStringInContext(e->context, bytes, (unsigned)size, 1);
    LLVMValueRef constant = LLVMAddGlobal(e->module, LLVMTypeOf(value), "record");
    LLVMSetInitializer(constant, value);
    LLVMSetGlobalConstant(constant, 1);
    LLVMSetLinkage(constant, LLVMPrivateLinkage);
    LLVMSetAlignment(constant, _Alignof(struct waiting));
    return LLVMBuildPtrToInt(e->builder, constant, e->i64, "");
}

/* Writes the closures of inlined functions that are in no slot to their frames. */
static void keep_closures(struct emitter *e)
{
    uint32_t index = e->depth;
    for (const struct activation *a = e->top; a->parent != NULL; a = a->parent, index--)
        if (a->closure != NULL)
            store(e, object_word(e, a->closure), e->frame,
                  index * sizeof(struct frame) + offsetof(struct frame, closure));
}

void describe_call(struct emitter *e, bool writes_all)
{
    size_t size = sizeof(struct waiting) + (e->depth + 1) * sizeof(struct described_frame);
    struct waiting *record = allocate(e, size + e->height * sizeof(uint32_t));
    keep_closures(e);
    record->frame_count = list_frames(e, record->frames);
    record->height = e->height;
    uint32_t *slots = (uint32_t *)&record->frames[record->frame_count];
    for (uint32_t i = 0; i < e->height; i++) {
        bool can_move = !is_immovable(&e->slots[i]);
        if (can_move || writes_all)
            flush_slot(e, i);
        if (can_move)
            slots[record->slot_count++] = i;
    }
    LLVMValueRef address =
        constant_in_module(e, record, size + record->slot_count * sizeof(uint32_t));
    LLVMValueRef tagged = LLVMBuildOr(e->builder, address, word(e, WAITING_TAG), "");
    mark(e, MEMORY_STACK, store(e, tagged, e->frame, offsetof(struct frame, at)));
}

void call_runtime(struct emitter *e)
{
    instruction code = e->top->function->code[e->top->at];
    uint32_t has_result = operation_of(code) != OP_PRINT;
    describe_call(e, true);
    LLVMValueRef frame = LLVMBuildPtrToInt(e->builder, e->frame, e->i64, "");
    LLVMValueRef is_ok = call_entry(e, THING_OPERATION, frame);
    go_unless(e, compare(e, LLVMIntNE, is_ok, 0), e->failed);
    e->height += (uint32_t)stack_change(e->top->function, code) - has_result;
    if (has_result) {
        push_bits(e, LLVMGetUndef(e->i64));
        operand(e, 1)->is_clean = true;
    }
    reload(e);
}
