/*
 * Calls: of code, and in line.
 *
 * SPDX-License-Identifier: MIT
 */
#include "emitter.h"

#include <stddef.h>

enum {
    INLINE_WORDS_MAX = 120,
    RECURSIVE_WORDS_MAX = 20, /* of a function that is inlined into itself */
    RECURSION_MAX = 2,        /* how deep */
    INLINED_WORDS_MAX = 500,  /* after which nothing more is inlined */
    CALLS_MAX = 50,           /* of a function that is inlined, for each turn of its caller */
    EARLY_WORDS_MAX = 16,     /* of a condition, and of what returns early if it is true */
};

/* ---- What is called in line ---- */

/* What is mostly called from elsewhere, as are recursive functions, will have code of its own. */
static bool can_inline(const struct emitter *e, const struct function *function)
{
    const struct function *caller = e->top->function;
    uint64_t share = CALLS_MAX * (caller->invocation_count + caller->loop_count);
    uint32_t recursion = 0;
    for (const struct activation *a = e->top; a != NULL; a = a->parent)
        recursion += a->function == function;
    if (e->input->is_part && e->input->start == AT_CALL)
        return false;
    return recursion <= RECURSION_MAX && function->invocation_count <= share &&
           function->code_count <= (recursion > 0 ? RECURSIVE_WORDS_MAX : INLINE_WORDS_MAX) &&
           e->depth < INLINE_DEPTH_MAX && e->words + function->code_count < INLINED_WORDS_MAX &&
           e->height + function->stack_size < SLOTS_MAX && function->invocation_count > 0;
}

/* Returns whether an instruction can be executed twice: it does nothing but push a value. */
static bool is_pure(const struct function *function, instruction code)
{
    enum operation operation = operation_of(code);
    if (operation == OP_GET_PROPERTY) {
        const struct site *site = &function->sites[operand_of(code)];
        for (uint32_t i = 0; i < site->case_count; i++)
            if (site->cases[i].access != ACCESS_INLINE)
                return false;
        return !site->is_megamorphic;
    }
    if (operation >= OP_LESS && operation <= OP_NEGATE)
        return operand_of(code) == 0;
    return operation < OP_POP || operation == OP_GET_LOCAL || operation == OP_GET_GLOBAL ||
           operation == OP_EQUAL || operation == OP_NOT_EQUAL || operation == OP_NOT;
}

static bool returns_soon(const struct function *function, uint32_t at)
{
    for (uint32_t end = at + EARLY_WORDS_MAX; at < end && at < function->code_count; at++) {
        enum operation operation = operation_of(function->code[at]);
        if (operation == OP_RETURN)
            return true;
        if (operation >= OP_JUMP && operation <= OP_LOOP)
            return false;
        at += words_after(function, function->code[at]);
    }
    return false;
}

/* Of a function that begins with a condition for an early return: returns where it goes on if it
 * does not return, or 0. Recursive functions are such. */
static uint32_t end_of_early_return(const struct emitter *e, const struct function *function)
{
    uint32_t at = 0;
    while (at < EARLY_WORDS_MAX && is_pure(function, function->code[at]))
        at++;
    if (operation_of(function->code[at]) != OP_POP_JUMP_IF_FALSE || e->depth >= INLINE_DEPTH_MAX ||
        e->words >= INLINED_WORDS_MAX || e->height + function->stack_size >= SLOTS_MAX ||
        function->invocation_count == 0)
        return 0;
    uint32_t other = at + 1 + operand_of(function->code[at]);
    return returns_soon(function, at + 1) ? other : returns_soon(function, other) ? at + 1 : 0;
}

/* ---- Calls ---- */

/* Calls the code of a function, compiled or not, whose callee is in the slot `base`. */
void call_code(struct emitter *e, LLVMValueRef compiled, LLVMValueRef closure, uint32_t base)
{
    LLVMTypeRef code_pointer = LLVMPointerType(e->code_type, 0);
    LLVMValueRef code = load(e, code_pointer, compiled, offsetof(struct compiled, code));
    LLVMValueRef arguments[3 + REGISTER_SLOTS] = {
        closure,
        at_offset(e, e->i8, e->base, base * sizeof(lox_value)),
        at_offset(e, e->i8, e->frame, (e->depth + 1) * sizeof(struct frame)),
    };
    for (uint32_t i = 0; i < REGISTER_SLOTS; i++)
        arguments[3 + i] =
            base + i < e->height ? bits_of(e, &e->slots[base + i]) : LLVMGetUndef(e->i64);
    for (uint32_t i = base + REGISTER_SLOTS; i < e->height; i++)
        flush_slot(e, i);
    e->height = base;
    describe_call(e, false);
    e->work += GUARD_WORK;
    LLVMValueRef result =
        LLVMBuildCall2(e->builder, e->code_type, code, arguments, 3 + REGISTER_SLOTS, "");
    go_unless(e, compare(e, LLVMIntNE, result, UNDEFINED), e->failed);
    reload(e);
    push_bits(e, result);
}

static void call_uninlined(struct emitter *e, const struct function *function,
                           const struct closure *closure)
{
    uint32_t base = e->height - function->arity - 1;
    struct thing compiled = {.kind = THING_COMPILED, .number = function->number};
    call_code(e, address_of(e, compiled), closure_address(e, closure, base), base);
}

/* Emits the function in line: all of it, or what is before `stop`, at which it is called. */
static void call_inlined(struct emitter *e, struct function *function, struct closure *closure,
                         uint32_t stop)
{
    struct activation *inner = allocate(e, sizeof *inner);
    inner->parent = e->top;
    inner->function = function;
    if (stop == 0)
        function->compiled->inlined_into = e->input->version;
    inner->closure = closure;
    inner->stop = stop;
    inner->base = e->height - function->arity - 1;
    e->top = inner;
    e->depth++;
    analyse(e, inner, 0, function->arity + 1);
    emit_code(e, 0);
    e->depth--;
    e->top = inner->parent;
    begin_target(e, &inner->done);
}

static void call_function(struct emitter *e, struct function *function, struct closure *closure)
{
    uint32_t stop = 0;
    if (can_inline(e, function) || (stop = end_of_early_return(e, function)) != 0)
        call_inlined(e, function, closure, stop);
    else
        call_uninlined(e, function, closure);
}

/* Calls the function that is being emitted in line, with the same arguments. */
void call_after_all(struct emitter *e)
{
    struct activation *inner = e->top;
    e->height = inner->base + inner->function->arity + 1;
    e->top = inner->parent;
    e->depth--;
    call_uninlined(e, inner->function, inner->closure);
    e->depth++;
    e->top = inner;
    go(e, &inner->done);
}

/* ---- Cases of sites ---- */

void call_method(struct emitter *e, const struct site_case *seen)
{
    call_function(e, function_of(seen->target), seen->target);
}

void call_super(struct emitter *e, const struct site_case *seen)
{
    e->height--;
    call_method(e, seen);
}

void call_case(struct emitter *e, const struct site_case *seen)
{
    const struct function *caller = e->top->function;
    uint32_t count = caller->sites[operand_of(caller->code[e->top->at])].argument_count;
    if (seen->access == ACCESS_CALL) {
        const struct value *callee = operand(e, count + 1);
        call_function(e, seen->key, (struct closure *)(uintptr_t)callee->known);
        return;
    }
    new_instance(e, seen->key);
    *operand(e, count + 2) = *operand(e, 1);
    operand(e, count + 2)->is_clean = false;
    e->height--;
    if (seen->target != NULL)
        call_method(e, seen);
}

/* ---- Returns ---- */

void emit_result(struct emitter *e, instruction code)
{
    struct activation *a = e->top;
    (void)code;
    if (a->parent == NULL) {
        LLVMBuildRet(e->builder, bits_of(e, operand(e, 1)));
        e->is_live = false;
        return;
    }
    struct value result = *operand(e, 1);
    e->height = a->base;
    push(e, result);
    go(e, &a->done);
}
