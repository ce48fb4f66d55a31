/*
 * The walk over the bytecode: each instruction that is reached is emitted, in the order of the
 * code; and the function around it, with its entry.
 *
 * SPDX-License-Identifier: MIT
 */
#include "emitter.h"

#include <stddef.h>
#include <stdlib.h>

enum { SLOTS_SPARE = 4 }; /* operations push further values for a time */

/* ---- Operations ---- */

static void emit_jump(struct emitter *e, instruction code)
{
    struct target *target = e->top->targets[e->top->at + 1 + operand_of(code)];
    if (operation_of(code) == OP_JUMP) {
        go(e, target);
        return;
    }
    LLVMValueRef truth = truth_of(e, operand(e, 1));
    if (operation_of(code) == OP_POP_JUMP_IF_FALSE)
        e->height--;
    go_if(e, truth, operation_of(code) == OP_JUMP_IF_TRUE, target);
}

static void emit_loop(struct emitter *e, instruction code)
{
    go_back(e, e->top->targets[e->top->at + 1 - operand_of(code)]);
}

/* Only a script defines global variables, each once. */
static void emit_nothing(struct emitter *e, instruction code)
{
    (void)code;
    leave_blamelessly(e);
}

static void (*const emitters[])(struct emitter *e, instruction code) = {
#define OPERATION(name, effect, emitter) emit_##emitter,
    OPERATIONS(OPERATION)
#undef OPERATION
};

/* ---- Functions ---- */

/* Goes to the head of a loop that is reached by its back edge only, in code that begins in an inner
 * loop: from a block that nothing reaches. */
static void go_unentered(struct emitter *e, struct target *target, uint32_t height)
{
    begin(e, new_block(e));
    e->pending = NULL;
    e->height = height;
    for (uint32_t i = 0; i < height; i++)
        e->slots[i] = (struct value){.bits = LLVMGetUndef(e->i64)};
    go(e, target);
}

/* Emits the top activation from its lowest instruction on, in the order of the code. The state is
 * that at `first`. */
void emit_code(struct emitter *e, uint32_t first)
{
    struct activation *a = e->top;
    const struct function *function = a->function;
    if (first > 0)
        go(e, target_at(e, a, first));
    for (uint32_t at = a->first_reached; at <= a->last_reached && !e->has_failed;
         at += 1 + words_after(function, function->code[at])) {
        if (a->depths[at] == 0)
            continue;
        struct target *target = a->targets[at];
        if (target != NULL) {
            if (e->is_live)
                go(e, target);
            else if (target->edges == NULL && target->is_loop && first > 0)
                go_unentered(e, target, a->base + a->depths[at]);
            begin_target(e, target);
        }
        if (!e->is_live)
            continue;
        a->at = at;
        e->words++;
        e->has_failed |= ++e->work > WORK_MAX;
        if (at == a->stop && at > 0)
            call_after_all(e);
        else if (e->input->is_part && !is_in_loop(e, a, at))
            leave_blamelessly(e);
        else
            emitters[operation_of(function->code[at])](e, function->code[at]);
    }
}

/* ---- The whole ---- */

/* Returns a slot that is an argument, or else only that it is in memory. */
static struct value argument(const struct emitter *e, uint32_t slot)
{
    if (e->input->start != AT_CALL || slot >= REGISTER_SLOTS)
        return (struct value){.is_clean = true};
    return (struct value){.bits = LLVMGetParam(e->function, 3 + slot)};
}

/* The first slots are arguments, except in a loop's version: there, all slots are in memory, and
 * what is a number now is expected to be one. */
static void load_slots(struct emitter *e, uint32_t height)
{
    const struct emit_input *input = e->input;
    e->height = 0;
    for (uint32_t i = 0; i < height; i++) {
        push(e, argument(e, i));
        struct value *value = operand(e, 1);
        value->is_clean = value->bits == NULL;
        if (value->is_clean)
            value->bits = load(e, e->i64, e->base, i * sizeof(lox_value));
    }
    for (uint32_t i = 0; i < height && input->start != AT_CALL; i++)
        if (is_number(input->vm->frame->base[i]) && !input->avoids_loop_types)
            expect_number(e, &e->slots[i]);
}

/* Tests whether an address is in the first `size` bytes of a thing. */
static LLVMValueRef is_below(struct emitter *e, LLVMValueRef address, enum thing_kind kind,
                             uint64_t size)
{
    LLVMValueRef first = refer(e, (struct thing){.kind = kind})->word;
    return compare(e, LLVMIntULT, LLVMBuildSub(e->builder, address, first, ""), size);
}

/* The entry: writes the frame, and checks that there is space for all frames and slots of inlined
 * calls. It is built last, when these are known. */
static void emit_entry(struct emitter *e, LLVMBasicBlockRef entry, LLVMBasicBlockRef body,
                       uint32_t height)
{
    const struct activation *a = e->top;
    uint64_t last_frame = (FRAMES_MAX - FRAMES_SPARE) * sizeof(struct frame);
    uint64_t last_base =
        (STACK_SLOTS - e->most_slots - a->function->stack_size) * sizeof(lox_value);
    begin(e, entry);
    store(e, e->closure, e->frame, offsetof(struct frame, closure));
    store(e, e->base, e->frame, offsetof(struct frame, base));
    e->height = height;
    for (uint32_t i = 0; i < height; i++)
        e->slots[i] = argument(e, i);
    LLVMValueRef frame = LLVMBuildPtrToInt(e->builder, e->frame, e->i64, "");
    LLVMValueRef base = LLVMBuildPtrToInt(e->builder, e->base, e->i64, "");
    LLVMValueRef fits = LLVMBuildAnd(e->builder, is_below(e, frame, THING_FRAMES, last_frame),
                                     is_below(e, base, THING_STACK, last_base), "");
    build_guard(e, fits, FRAME_IS_BLAMELESS);
    if (e->assumption_count > 0)
        build_guard(e, NULL, 0);
    LLVMBuildBr(e->builder, body);
}

static void emit_all(struct emitter *e)
{
    const struct emit_input *input = e->input;
    struct activation *a = &e->outermost;
    uint32_t first = input->start == AT_CALL ? 0 : input->start;
    *a = (struct activation){.function = input->function, .at = first};
    e->top = a;
    if (first > 0)
        e->loop_end = end_of_loop(a->function, first);
    analyse(e, a, first, input->depth);
    e->has_failed = a->most_depth + SLOTS_SPARE > SLOTS_MAX;
    if (e->has_failed)
        return;
    LLVMBasicBlockRef entry = new_block(e);
    LLVMBasicBlockRef body = new_block(e);
    LLVMBasicBlockRef references = new_block(e);
    LLVMMoveBasicBlockBefore(references, e->failed);
    LLVMMoveBasicBlockBefore(entry, e->failed);
    LLVMPositionBuilderAtEnd(e->reference_builder, references);
    begin(e, body);
    e->is_live = true;
    load_slots(e, input->depth);
    emit_code(e, first);
    a->at = first;
    if (!e->has_failed)
        emit_entry(e, entry, body, input->depth);
    LLVMBuildBr(e->reference_builder, entry);
}

/* Copies the names, which are otherwise freed with the emitter. */
static void list_names(const struct emitter *e, struct emitted *emitted)
{
    for (const struct reference *r = e->first_reference; r != NULL; r = r->next) {
        uint32_t i = emitted->name_count++;
        emitted->names = array_grow(emitted->names, i, sizeof *emitted->names);
        emitted->names[i] = (struct named_address){r->name, r->address};
    }
}

static struct emitter *new_emitter(LLVMContextRef context, const struct emit_input *input)
{
    struct emitter *e = heap_zeroed(sizeof *e);
    e->input = input;
    e->context = context;
    e->module = LLVMModuleCreateWithNameInContext(input->name, context);
    e->builder = LLVMCreateBuilderInContext(context);
    e->reference_builder = LLVMCreateBuilderInContext(context);
    make_types(e);
    make_memory_tags(e);
    e->function = LLVMAddFunction(e->module, input->name, e->code_type);
    cairn_prepare_function(e->function);
    e->closure = LLVMGetParam(e->function, 0);
    e->base = LLVMGetParam(e->function, 1);
    e->frame = LLVMGetParam(e->function, 2);
    e->failed = new_block(e);
    return e;
}

struct emitted emit_function(LLVMContextRef context, const struct emit_input *input)
{
    struct emitter *e = new_emitter(context, input);
    struct emitted emitted = {.module = e->module};
    begin(e, e->failed);
    LLVMBuildRet(e->builder, word(e, UNDEFINED));
    emit_all(e);
    if (e->has_failed) {
        LLVMDisposeModule(e->module);
        emitted.module = NULL;
    } else {
        list_names(e, &emitted);
    }
    emitted.has_unnamed = e->has_unnamed;
    LLVMDisposeBuilder(e->builder);
    LLVMDisposeBuilder(e->reference_builder);
    free_allocated(e);
    free(e);
    return emitted;
}
