/*
 * Operations that have no site: arithmetic, comparisons, variables.
 *
 * SPDX-License-Identifier: MIT
 */
#include "emitter.h"

#include <stddef.h>

void emit_constant(struct emitter *e, instruction code)
{
    push_constant(e, e->top->function->constants[operand_of(code)]);
}

void emit_pop(struct emitter *e, instruction code) { e->height -= operand_of(code); }

void emit_runtime(struct emitter *e, instruction code)
{
    (void)code;
    call_runtime(e);
}

/* ---- Arithmetic ---- */

/* Comparisons are made again with the opposite predicate, because FastISel does not do that. */
static LLVMValueRef negation(const struct emitter *e, LLVMValueRef truth)
{
    if (LLVMIsAFCmpInst(truth) == NULL)
        return LLVMBuildNot(e->builder, truth, "");
    return LLVMBuildFCmp(e->builder, LLVMRealPredicateTrue - LLVMGetFCmpPredicate(truth),
                         LLVMGetOperand(truth, 0), LLVMGetOperand(truth, 1), "");
}

/* Replaces the operands, which are numbers. */
static void emit_arithmetic(struct emitter *e, LLVMOpcode opcode)
{
    LLVMValueRef left = operand(e, 2)->number;
    LLVMValueRef right = operand(e, 1)->number;
    e->height -= 2;
    push(e, (struct value){.number = LLVMBuildBinOp(e->builder, opcode, left, right, "")});
}

/* Replaces the operands, which are numbers, by the result. */
static void emit_on_numbers(struct emitter *e, enum operation operation)
{
    static const LLVMRealPredicate predicates[] = {
        [OP_LESS] = LLVMRealOLT,
        [OP_LESS_EQUAL] = LLVMRealOLE,
        [OP_GREATER] = LLVMRealOGT,
        [OP_GREATER_EQUAL] = LLVMRealOGE,
    };
    static const LLVMOpcode opcodes[] = {
        [OP_ADD] = LLVMFAdd,
        [OP_SUBTRACT] = LLVMFSub,
        [OP_MULTIPLY] = LLVMFMul,
        [OP_DIVIDE] = LLVMFDiv,
    };
    LLVMValueRef right = operand(e, 1)->number;
    if (operation == OP_NEGATE) {
        e->height--;
        push(e, (struct value){.number = LLVMBuildFNeg(e->builder, right, "")});
    } else if (operation > OP_GREATER_EQUAL) {
        emit_arithmetic(e, opcodes[operation]);
    } else {
        LLVMValueRef left = operand(e, 2)->number;
        e->height -= 2;
        push_truth(e, LLVMBuildFCmp(e->builder, predicates[operation], left, right, ""));
    }
}

/* Where there can be strings, numbers are added in line, and all else by the interpreter. */
static void emit_add_of_any(struct emitter *e, LLVMValueRef are_numbers)
{
    struct target others = {.edges = NULL};
    struct target done = {.edges = NULL};
    if (operand(e, 1)->is_object || operand(e, 2)->is_object) {
        call_runtime(e);
        return;
    }
    go_if(e, are_numbers, false, &others);
    make_numbers(e, 2);
    emit_arithmetic(e, LLVMFAdd);
    go(e, &done);
    begin_target(e, &others);
    call_runtime(e);
    go(e, &done);
    begin_target(e, &done);
}

/* Only additions can have other operands without being errors. */
void emit_numeric(struct emitter *e, instruction code)
{
    enum operation operation = operation_of(code);
    uint32_t count = operation == OP_NEGATE ? 1 : 2;
    LLVMValueRef are_numbers = are_numbers_test(e, count);
    bool is_any = operation == OP_ADD && (operand_of(code) == SEEN_STRINGS || e->input->is_general);
    if (is_any && !is_always(are_numbers)) {
        emit_add_of_any(e, are_numbers);
        return;
    }
    guard(e, are_numbers);
    make_numbers(e, count);
    emit_on_numbers(e, operation);
}

/* ---- Comparisons ---- */

/* The tags are NaNs, so a comparison of doubles is right if one of them is a number. */
static LLVMValueRef equality(struct emitter *e, struct value *a, struct value *b)
{
    LLVMValueRef a_bits = bits_of(e, a);
    LLVMValueRef b_bits = bits_of(e, b);
    LLVMValueRef a_number = LLVMBuildBitCast(e->builder, a_bits, e->number, "");
    LLVMValueRef b_number = LLVMBuildBitCast(e->builder, b_bits, e->number, "");
    LLVMValueRef are_same = LLVMBuildICmp(e->builder, LLVMIntEQ, a_bits, b_bits, "");
    LLVMValueRef are_equal = LLVMBuildFCmp(e->builder, LLVMRealOEQ, a_number, b_number, "");
    if (a->number != NULL || b->number != NULL)
        return are_equal;
    if (a->is_object || b->is_object || a->truth != NULL || b->truth != NULL ||
        (LLVMIsAConstantInt(a_bits) != NULL && !is_number(LLVMConstIntGetZExtValue(a_bits))) ||
        (LLVMIsAConstantInt(b_bits) != NULL && !is_number(LLVMConstIntGetZExtValue(b_bits))))
        return are_same;
    LLVMValueRef is_other = compare(e, LLVMIntUGE, a_bits, FIRST_TAG);
    return LLVMBuildOr(e->builder, are_equal, LLVMBuildAnd(e->builder, are_same, is_other, ""), "");
}

void emit_equality(struct emitter *e, instruction code)
{
    LLVMValueRef value = equality(e, operand(e, 2), operand(e, 1));
    e->height -= 2;
    push_truth(e, operation_of(code) == OP_EQUAL ? value : negation(e, value));
}

void emit_opposite(struct emitter *e, instruction code)
{
    LLVMValueRef value = negation(e, truth_of(e, operand(e, 1)));
    (void)code;
    e->height--;
    push_truth(e, value);
}

/* ---- Global variables ---- */

/* Returns whether the code may rely on a global variable's value. */
static bool assume(struct emitter *e, uint32_t number)
{
    const struct globals *globals = &e->input->vm->globals;
    if (e->input->is_general || globals->are_assigned[number] ||
        globals->values[number] == UNDEFINED)
        return false;
    struct thing thing = {.kind = THING_ASSUMPTION, .number = number};
    struct thing_name name;
    if (e->input->has_names && !name_thing(e->input->vm, &thing, &name))
        return false;
    const struct reference *assumption = refer(e, thing);
    for (uint32_t i = 0; i < e->assumption_count; i++)
        if (e->assumptions[i]->address == assumption->address)
            return true;
    if (e->assumption_count == sizeof e->assumptions / sizeof *e->assumptions)
        return false;
    e->assumptions[e->assumption_count++] = assumption;
    return true;
}

void emit_get_global(struct emitter *e, instruction code)
{
    uint32_t number = operand_of(code);
    lox_value now = e->input->vm->globals.values[number];
    LLVMValueRef cell = address_of(e, (struct thing){.kind = THING_CELL, .number = number});
    if (!assume(e, number)) {
        LLVMValueRef bits = mark(e, MEMORY_GLOBAL, load(e, e->i64, cell, 0));
        if (now == UNDEFINED)
            guard(e, compare(e, LLVMIntNE, bits, UNDEFINED));
        push_bits(e, bits);
        return;
    }
    bool is_young = is_object(now) && heap_is_young(&e->input->vm->heap, as_object(now));
    /* The address of an instance as a constant would be in the code at each access. */
    if (is_kind(now, KIND_INSTANCE) || is_young)
        push(e, (struct value){.bits = mark(e, is_young ? MEMORY_GLOBAL : MEMORY_CONSTANT,
                                            load(e, e->i64, cell, 0)),
                               .is_object = true});
    else
        push_constant(e, now);
    if (is_kind(now, KIND_CLOSURE) || is_kind(now, KIND_CLASS))
        operand(e, 1)->identity = as_object(now)->identity;
}

void emit_set_global(struct emitter *e, instruction code)
{
    uint32_t number = operand_of(code);
    LLVMValueRef cell = address_of(e, (struct thing){.kind = THING_CELL, .number = number});
    if (e->input->vm->globals.values[number] == UNDEFINED)
        guard(e, compare(e, LLVMIntNE, load(e, e->i64, cell, 0), UNDEFINED));
    mark(e, MEMORY_GLOBAL, store(e, bits_of(e, operand(e, 1)), cell, 0));
}

/* ---- Local and captured variables ---- */

/* A local variable that a closure may have captured: goes to `plain` if it is not in a box. */
static LLVMValueRef expect_box(struct emitter *e, uint32_t slot, struct target *plain)
{
    struct value *value = &e->slots[slot];
    LLVMValueRef bits = bits_of(e, value);
    go_if(e, compare(e, LLVMIntULT, bits, OBJECT_TAG), true, plain);
    LLVMValueRef box = pointer_to(e, bits);
    LLVMValueRef kind = load(e, e->i8, box, offsetof(struct object, kind));
    LLVMValueRef box_kind = LLVMConstInt(e->i8, KIND_BOX, 0);
    go_if(e, LLVMBuildICmp(e->builder, LLVMIntEQ, kind, box_kind, ""), false, plain);
    return box;
}

/* Reads a box, or stores the top of the stack into it. */
static void access_box(struct emitter *e, LLVMValueRef box, bool is_store)
{
    if (!is_store) {
        push_bits(e, load(e, e->i64, box, offsetof(struct box, value)));
        return;
    }
    store(e, bits_of(e, operand(e, 1)), box, offsetof(struct box, value));
    emit_stored(e, box, operand(e, 1));
}

/* The frame has the closure's address, which the collector changes. */
void emit_box(struct emitter *e, instruction code)
{
    const struct activation *a = e->top;
    uint64_t offset = offsetof(struct closure, boxes) + operand_of(code) * sizeof(struct box *);
    LLVMValueRef closure = a->parent == NULL
                               ? load(e, e->pointer, e->frame, offsetof(struct frame, closure))
                               : closure_address(e, a->closure, a->base);
    access_box(e, load(e, e->pointer, closure, offset), operation_of(code) == OP_SET_BOX);
}

static void access_local(struct emitter *e, uint32_t slot, bool is_store)
{
    if (!is_store) {
        push(e, e->slots[slot]);
        return;
    }
    e->slots[slot] = *operand(e, 1);
    e->slots[slot].is_clean = false;
}

void emit_local(struct emitter *e, instruction code)
{
    access_local(e, e->top->base + operand_of(code), operation_of(code) == OP_SET_LOCAL);
}

void emit_captured(struct emitter *e, instruction code)
{
    struct target plain = {.edges = NULL};
    struct target done = {.edges = NULL};
    uint32_t slot = e->top->base + operand_of(code);
    bool is_store = operation_of(code) == OP_SET_CAPTURED;
    if (!is_immovable(&e->slots[slot])) {
        access_box(e, expect_box(e, slot, &plain), is_store);
        go(e, &done);
        begin_target(e, &plain);
    }
    access_local(e, slot, is_store);
    go(e, &done);
    begin_target(e, &done);
}

/* Makes a closure or a method. What it captures is in boxes after that. */
void emit_closure(struct emitter *e, instruction code)
{
    const struct activation *a = e->top;
    const instruction *captures = &a->function->code[a->at + 1];
    call_runtime(e);
    for (uint32_t i = 0; i < words_after(a->function, code); i++) {
        uint32_t slot = a->base + operand_of(captures[i]);
        if (operation_of(captures[i]) == CAPTURE_LOCAL)
            e->slots[slot] = (struct value){
                .bits = load(e, e->i64, e->base, slot * sizeof(lox_value)), .is_clean = true};
    }
}
