/*
 * From bytecode to LLVM's IR: abstract interpretation, in which the slots of the stack are values
 * of LLVM. The code relies on what the sites have seen: a guard tests it, and otherwise leaves to
 * the interpreter, with a frame state that says what the slots hold.
 *
 * - A slot is clean if the stack in memory holds its value. Before calls, all slots that can be
 *   objects that move are written, and a record of which these are (wait); before functions of C
 *   that use the stack, all slots. What can have moved is read again after it (reload). So the
 *   collector finds everything on the stack, and no native frame holds a pointer meanwhile.
 * - A new object is not made before something needs its address, such as a guard's frame state
 *   (settle). Until then, its fields are values of LLVM, too.
 * - Calls are inlined. The frames of inlined functions exist only in frame states and in the
 *   records of calls, until something needs them (complete_frames).
 * - At the head of a loop all slots get phis, whose types are those of the values from before the
 *   loop; a guard at the back edge keeps numbers numbers.
 *
 * SPDX-License-Identifier: MIT
 */
#include "emit.h"

#include "shape.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SLOTS_MAX = 512,
    CODE_WORDS_MAX = 50000,
    WORK_MAX = 24000, /* for one function, with what is inlined: instructions, and guards */
    GUARD_WORK = 8,
    INLINE_WORDS_MAX = 120,
    INLINE_DEPTH_MAX = FRAMES_SPARE - 2,
    RECURSIVE_WORDS_MAX = 20, /* of a function that is inlined into itself */
    RECURSION_MAX = 2,        /* how deep */
    INLINED_WORDS_MAX = 500,  /* after which nothing more is inlined */
    CALLS_MAX = 50,           /* of a function that is inlined, for each turn of its caller */
    EARLY_WORDS_MAX = 16,     /* of a condition, and of what returns early if it is true */
};

/* Memory of different kinds does not overlap: a store to one kind leaves loads of the others as
 * they were. What is not marked may be any. */
enum memory {
    MEMORY_STACK,
    MEMORY_IDENTITY,
    MEMORY_FIELD,
    MEMORY_GLOBAL,
    MEMORY_HEAP,
    MEMORY_CONSTANT, /* never stored to */
    MEMORY_KINDS
};

/* What is known of a slot. One of the first three is not NULL; others are made when needed. */
struct value {
    LLVMValueRef bits;
    LLVMValueRef number; /* a double; NULL if it may be something else */
    LLVMValueRef truth;  /* an i1; NULL if it may be something else */
    const void *identity;
    bool is_object;
    bool is_new;     /* in the young generation: nothing was allocated since that can collect */
    bool is_pending; /* the object that is not made yet; bits is NULL */
    bool is_clean;
};

/* A new object that is not in memory before something needs its address. There is space for it. If
 * nothing does, it is never made. */
struct pending {
    const struct shape *shape;
    uint64_t size;
    struct value fields[INLINE_CAPACITY_MAX];
};

struct edge {
    struct edge *next;
    LLVMBasicBlockRef from;
    struct pending *pending;
    uint32_t height;
    struct value slots[];
};

struct target {
    LLVMBasicBlockRef block;
    struct edge *edges;
    bool is_loop;
    LLVMValueRef *phis; /* of a loop */
};

/* A call of a function that is being emitted: the outermost, and inlined ones in it. */
struct activation {
    struct activation *parent;
    struct function *function;
    struct closure *closure; /* if it is known */
    uint32_t base;           /* slot 0 */
    uint32_t stop;           /* the instruction at which it is called after all; or 0 */
    uint32_t at;             /* the instruction that is being emitted */
    int32_t *depths;         /* of the stack at each instruction; -1: not reached */
    struct target **targets;
    struct target done; /* gets the results of an inlined function */
};

struct emitter {
    const struct emit_input *input;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMValueRef function;
    LLVMBasicBlockRef failed; /* returns UNDEFINED */
    LLVMTypeRef i1, i8, i32, i64, number, pointer, code_type, entry_type;
    LLVMValueRef memory_tags[MEMORY_KINDS]; /* of type-based alias analysis */
    LLVMValueRef closure, base, frame;
    struct activation outermost;
    struct activation *top;
    uint32_t depth; /* inlined activations */
    uint32_t words; /* emitted instructions */
    uint32_t work;  /* the same and guards, each with its weight */
    uint32_t most_slots;
    bool is_live;
    bool has_failed;
    uint32_t height;
    struct value slots[SLOTS_MAX];
    struct pending *pending; /* or NULL */
    cairn_assumption *assumptions[32];
    uint32_t assumption_count;
    struct chunk *chunks;
};

/* ---- Memory, freed at the end ---- */

struct chunk {
    struct chunk *next;
    _Alignas(16) char bytes[];
};

static void *allocate(struct emitter *e, size_t size)
{
    struct chunk *chunk = heap_zeroed(sizeof *chunk + size);
    chunk->next = e->chunks;
    e->chunks = chunk;
    return chunk->bytes;
}

/* ---- IR ---- */

static LLVMValueRef word(const struct emitter *e, uint64_t value)
{
    return LLVMConstInt(e->i64, value, 0);
}

static LLVMValueRef address_of(const struct emitter *e, const void *object)
{
    return LLVMConstIntToPtr(word(e, (uintptr_t)object), e->pointer);
}

static LLVMValueRef at_offset(const struct emitter *e, LLVMTypeRef type, LLVMValueRef base,
                              uint64_t offset)
{
    LLVMValueRef index = word(e, offset);
    LLVMValueRef address = LLVMBuildGEP2(e->builder, e->i8, base, &index, 1, "");
    return LLVMBuildPointerCast(e->builder, address, LLVMPointerType(type, 0), "");
}

static LLVMValueRef load(const struct emitter *e, LLVMTypeRef type, LLVMValueRef base,
                         uint64_t offset)
{
    return LLVMBuildLoad2(e->builder, type, at_offset(e, type, base, offset), "");
}

static LLVMValueRef store(const struct emitter *e, LLVMValueRef value, LLVMValueRef base,
                          uint64_t offset)
{
    return LLVMBuildStore(e->builder, value, at_offset(e, LLVMTypeOf(value), base, offset));
}

/* Marks a load or store, and returns it. */
static LLVMValueRef mark(const struct emitter *e, enum memory memory, LLVMValueRef access)
{
    unsigned tbaa = LLVMGetMDKindIDInContext(e->context, "tbaa", 4);
    LLVMSetMetadata(access, tbaa, e->memory_tags[memory]);
    return access;
}

static LLVMBasicBlockRef new_block(const struct emitter *e)
{
    return LLVMAppendBasicBlockInContext(e->context, e->function, "");
}

static void begin(struct emitter *e, LLVMBasicBlockRef block)
{
    LLVMPositionBuilderAtEnd(e->builder, block);
}

static LLVMValueRef compare(const struct emitter *e, LLVMIntPredicate predicate, LLVMValueRef a,
                            uint64_t b)
{
    return LLVMBuildICmp(e->builder, predicate, a, word(e, b), "");
}

static LLVMValueRef pointer_to(const struct emitter *e, LLVMValueRef bits)
{
    LLVMValueRef number = LLVMBuildXor(e->builder, bits, word(e, OBJECT_TAG), "");
    return LLVMBuildIntToPtr(e->builder, number, e->pointer, "");
}

static uint64_t offset_of_slot(uint32_t slot)
{
    return offsetof(struct instance, values) + slot * sizeof(lox_value);
}

/* ---- Values ---- */

static LLVMValueRef bits_of(struct emitter *e, struct value *value);

/* Makes the pending object, and stores its fields. */
static LLVMValueRef make_object(struct emitter *e, struct pending *pending)
{
    const struct object header = {.kind = KIND_INSTANCE};
    uint64_t rest;
    memcpy(&rest, (const char *)&header + sizeof(void *), sizeof rest);
    LLVMValueRef cell = address_of(e, &e->input->vm->heap.next);
    LLVMValueRef next = mark(e, MEMORY_HEAP, load(e, e->i64, cell, 0));
    LLVMValueRef after = LLVMBuildAdd(e->builder, next, word(e, pending->size), "");
    mark(e, MEMORY_HEAP, store(e, after, cell, 0));
    LLVMValueRef object = LLVMBuildIntToPtr(e->builder, next, e->pointer, "");
    LLVMValueRef bits = LLVMBuildOr(e->builder, next, word(e, OBJECT_TAG), "");
    mark(e, MEMORY_IDENTITY, store(e, word(e, (uintptr_t)pending->shape), object, 0));
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
static void settle(struct emitter *e, struct pending **pending, struct value *slots,
                   uint32_t height)
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

static LLVMValueRef bits_of(struct emitter *e, struct value *value)
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

static bool is_constant(const struct value *value)
{
    return value->bits != NULL && LLVMIsAConstantInt(value->bits) != NULL;
}

static uint64_t constant_of(const struct value *value)
{
    return LLVMConstIntGetZExtValue(value->bits);
}

/* Nothing moves it, and it needs not be read again. */
static bool is_immovable(const struct value *value)
{
    return value->number != NULL || value->truth != NULL || is_constant(value);
}

static void push(struct emitter *e, struct value value)
{
    assert(e->height < SLOTS_MAX);
    value.is_clean = false;
    e->slots[e->height++] = value;
    if (e->height > e->most_slots)
        e->most_slots = e->height;
}

static void push_bits(struct emitter *e, LLVMValueRef bits)
{
    push(e, (struct value){.bits = bits});
}

static void push_constant(struct emitter *e, lox_value constant)
{
    struct value value = {.bits = word(e, constant), .is_object = is_object(constant)};
    if (is_number(constant))
        value.number = LLVMConstReal(e->number, as_number(constant));
    push(e, value);
}

static void push_truth(struct emitter *e, LLVMValueRef truth)
{
    push(e, (struct value){.truth = truth});
}

static struct value *operand(struct emitter *e, uint32_t from_top)
{
    return &e->slots[e->height - from_top];
}

/* ---- Guards ---- */

/* Returns the address of a closure that is known, or else in a slot. */
static LLVMValueRef closure_address(struct emitter *e, const struct closure *closure, uint32_t slot)
{
    return closure != NULL ? address_of(e, closure) : pointer_to(e, bits_of(e, &e->slots[slot]));
}

/* Writes what the interpreter needs for an activation, whose slots end at `end`. */
static void describe(struct emitter *e, const struct activation *a, uint32_t end, uint32_t flags,
                     struct cairn_encoded_frame *frame)
{
    LLVMValueRef *values = allocate(e, (end - a->base + 1) * sizeof(LLVMValueRef));
    if (a->parent == NULL)
        values[0] = e->frame;
    else
        values[0] =
            a->closure != NULL ? word(e, object_value(a->closure)) : bits_of(e, &e->slots[a->base]);
    for (uint32_t i = a->base; i < end; i++) {
        struct value *value = &e->slots[i];
        if (!value->is_clean)
            values[1 + i - a->base] = value->number != NULL ? value->number : bits_of(e, value);
    }
    *frame = (struct cairn_encoded_frame){
        .function = (uintptr_t)a->function,
        .position = a == e->top ? a->at : a->at + 1, /* it runs again, or the call returns */
        .flags = a->base | flags,
        .locals = values,
        .local_count = 1,
        .stack = values + 1,
        .stack_count = end - a->base,
    };
}

/* Builds a guard. Without a condition, it relies on the assumptions. */
static void build_guard(struct emitter *e, LLVMValueRef condition, uint32_t flags)
{
    struct cairn_encoded_frame frames[INLINE_DEPTH_MAX + 1];
    struct cairn_error error;
    uint32_t end = e->height;
    uint32_t index = e->depth;
    e->work += GUARD_WORK;
    for (const struct activation *a = e->top; a != NULL; a = a->parent) {
        describe(e, a, end, flags, &frames[index--]);
        end = a->base;
    }
    const struct cairn_guard guard = {
        .id = (*e->input->next_id)++,
        .exit = e->input->exit,
        .frames = frames,
        .frame_count = e->depth + 1,
        .assumptions = e->assumptions,
        .assumption_count = condition == NULL ? e->assumption_count : 0,
    };
    if (cairn_build_guard(e->builder, condition, &guard, &error) == NULL) {
        fprintf(stderr, "lox: %s\n", error.message);
        e->has_failed = true;
    }
}

static bool is_always(LLVMValueRef condition)
{
    return LLVMIsAConstantInt(condition) != NULL && LLVMConstIntGetZExtValue(condition) == 1;
}

static void guard(struct emitter *e, LLVMValueRef condition)
{
    if (!is_always(condition))
        build_guard(e, condition, 0);
}

/* Always leaves: for what was never executed. */
static void leave(struct emitter *e)
{
    build_guard(e, LLVMConstInt(e->i1, 0, 0), 0);
    LLVMBuildUnreachable(e->builder);
    e->is_live = false;
}

/* Notes what was found out of a value in all slots that hold it. */
static void learn(struct emitter *e, LLVMValueRef bits, const struct value *known)
{
    for (uint32_t i = 0; i < e->height; i++) {
        if (e->slots[i].bits != bits)
            continue;
        e->slots[i].number = known->number;
        e->slots[i].identity = known->identity;
        e->slots[i].is_object = known->is_object;
    }
}

static LLVMValueRef is_number_test(struct emitter *e, struct value *value)
{
    if (value->number != NULL)
        return LLVMConstInt(e->i1, 1, 0);
    if (value->truth != NULL || value->is_object)
        return LLVMConstInt(e->i1, 0, 0);
    return compare(e, LLVMIntULT, bits_of(e, value), FIRST_TAG);
}

/* Tests whether the operands are numbers. The result may be the constant true. */
static LLVMValueRef are_numbers_test(struct emitter *e, uint32_t count)
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
static void make_numbers(struct emitter *e, uint32_t count)
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

static void expect_object(struct emitter *e, struct value *value)
{
    if (value->is_object)
        return;
    LLVMValueRef bits = bits_of(e, value);
    guard(e, compare(e, LLVMIntUGE, bits, OBJECT_TAG));
    learn(e, bits, &(struct value){.is_object = true});
}

/* ---- The stack in memory ---- */

static void flush_slot(struct emitter *e, uint32_t i)
{
    if (!e->slots[i].is_clean)
        mark(e, MEMORY_STACK, store(e, bits_of(e, &e->slots[i]), e->base, i * sizeof(lox_value)));
    e->slots[i].is_clean = true;
}

static void reload(struct emitter *e)
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

/* Before calls: writes the slots that a collection must find, or all of them, and a record of where
 * they and the frames are. */
static void wait(struct emitter *e, bool writes_all)
{
    struct waiting *record = heap_zeroed(sizeof *record + e->height * sizeof *record->slots);
    uint32_t index = record->frame_count = e->depth + 1;
    record->next = e->input->vm->records;
    e->input->vm->records = record;
    record->height = e->height;
    for (const struct activation *a = e->top; a != NULL; a = a->parent) {
        record->frames[--index].closure = a->closure;
        record->frames[index].function = a->function;
        record->frames[index].at = a->function->code + a->at + 1;
        record->frames[index].base = a->base;
    }
    for (uint32_t i = 0; i < e->height; i++) {
        bool can_move = !is_immovable(&e->slots[i]);
        if (can_move || writes_all)
            flush_slot(e, i);
        if (can_move)
            record->slots[record->slot_count++] = i;
    }
    mark(e, MEMORY_STACK,
         store(e, word(e, (uintptr_t)record | 1), e->frame, offsetof(struct frame, at)));
}

/* Goes to the block unless the condition is true, which it nearly always is. */
static void go_unless(struct emitter *e, LLVMValueRef condition, LLVMBasicBlockRef otherwise)
{
    LLVMBasicBlockRef next = new_block(e);
    LLVMMetadataRef weights[] = {
        LLVMMDStringInContext2(e->context, "branch_weights", 14),
        LLVMValueAsMetadata(LLVMConstInt(e->i32, 100000, 0)),
        LLVMValueAsMetadata(LLVMConstInt(e->i32, 1, 0)),
    };
    LLVMSetMetadata(LLVMBuildCondBr(e->builder, condition, next, otherwise),
                    LLVMGetMDKindIDInContext(e->context, "prof", 4),
                    LLVMMetadataAsValue(e->context, LLVMMDNodeInContext2(e->context, weights, 3)));
    begin(e, next);
}

static LLVMValueRef call_entry(struct emitter *e, runtime_entry *entry, LLVMValueRef argument)
{
    LLVMValueRef callee =
        LLVMConstIntToPtr(word(e, (uintptr_t)entry), LLVMPointerType(e->entry_type, 0));
    return LLVMBuildCall2(e->builder, e->entry_type, callee, &argument, 1, "");
}

/* Lets the interpreter do the operation. */
static void call_runtime(struct emitter *e)
{
    instruction code = e->top->function->code[e->top->at];
    uint32_t has_result = operation_of(code) != OP_PRINT;
    wait(e, true);
    LLVMValueRef frame = LLVMBuildPtrToInt(e->builder, e->frame, e->i64, "");
    LLVMValueRef is_ok = call_entry(e, rt_operation, frame);
    go_unless(e, compare(e, LLVMIntNE, is_ok, 0), e->failed);
    e->height += (uint32_t)stack_change(e->top->function, code) - has_result;
    if (has_result) {
        push_bits(e, LLVMGetUndef(e->i64));
        operand(e, 1)->is_clean = true;
    }
    reload(e);
}

/* ---- Control flow ---- */

static LLVMBasicBlockRef block_of(struct emitter *e, struct target *target)
{
    if (target->block == NULL)
        target->block = new_block(e);
    return target->block;
}

/* Goes to a target that comes later. */
static void go(struct emitter *e, struct target *target)
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
    }
    if (is_same)
        return merged;
    if (target->is_loop)
        merged.is_object = merged.is_new = merged.is_clean = false, merged.identity = NULL;
    are_numbers &= !target->is_loop || !e->input->function->compiled->avoids_loop_types;
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
static void begin_target(struct emitter *e, struct target *target)
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

/* Guards that a loop's variable is still a number. */
static void expect_number(struct emitter *e, struct value *value)
{
    LLVMValueRef bits = bits_of(e, value);
    build_guard(e, is_number_test(e, value), FRAME_IS_LOOP_TYPE);
    value->number = LLVMBuildBitCast(e->builder, bits, e->number, "");
}

/* Goes back to the head of a loop. */
static void go_back(struct emitter *e, struct target *head)
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

/* Goes to the target if the condition is `when`, and continues otherwise. */
static void go_if(struct emitter *e, LLVMValueRef condition, bool when, struct target *target)
{
    LLVMBasicBlockRef taken = new_block(e);
    LLVMBasicBlockRef next = new_block(e);
    LLVMBuildCondBr(e->builder, condition, when ? taken : next, when ? next : taken);
    begin(e, taken);
    go(e, target);
    begin(e, next);
    e->is_live = true;
}

static LLVMValueRef truth_of(struct emitter *e, struct value *value)
{
    if (value->truth != NULL)
        return value->truth;
    if (value->number != NULL || value->is_object)
        return LLVMConstInt(e->i1, 1, 0);
    LLVMValueRef distance = LLVMBuildSub(e->builder, bits_of(e, value), word(e, NIL), "");
    return compare(e, LLVMIntUGT, distance, FALSE - NIL);
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

/* Where strings were seen, numbers are added in line, and all else by the interpreter. */
static void emit_add_of_strings(struct emitter *e)
{
    struct target others = {.edges = NULL};
    struct target done = {.edges = NULL};
    if (operand(e, 1)->is_object || operand(e, 2)->is_object) {
        call_runtime(e);
        return;
    }
    go_if(e, are_numbers_test(e, 2), false, &others);
    make_numbers(e, 2);
    emit_arithmetic(e, LLVMFAdd);
    go(e, &done);
    begin_target(e, &others);
    call_runtime(e);
    go(e, &done);
    begin_target(e, &done);
}

static void emit_numeric(struct emitter *e, instruction code)
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
    enum operation operation = operation_of(code);
    uint32_t count = operation == OP_NEGATE ? 1 : 2;
    if (operation == OP_ADD && operand_of(code) == SEEN_STRINGS) {
        emit_add_of_strings(e);
        return;
    }
    guard(e, are_numbers_test(e, count));
    make_numbers(e, count);
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
        (is_constant(a) && !is_number(constant_of(a))) ||
        (is_constant(b) && !is_number(constant_of(b))))
        return are_same;
    LLVMValueRef is_other = compare(e, LLVMIntUGE, a_bits, FIRST_TAG);
    return LLVMBuildOr(e->builder, are_equal, LLVMBuildAnd(e->builder, are_same, is_other, ""), "");
}

static void emit_equality(struct emitter *e, instruction code)
{
    LLVMValueRef value = equality(e, operand(e, 2), operand(e, 1));
    e->height -= 2;
    push_truth(e, operation_of(code) == OP_EQUAL ? value : negation(e, value));
}

static void emit_opposite(struct emitter *e, instruction code)
{
    LLVMValueRef value = negation(e, truth_of(e, operand(e, 1)));
    (void)code;
    e->height--;
    push_truth(e, value);
}

/* ---- Variables ---- */

/* Returns whether the code may rely on a global variable's value. */
static bool assume(struct emitter *e, uint32_t number)
{
    const struct globals *globals = &e->input->vm->globals;
    if (globals->are_assigned[number] || globals->values[number] == UNDEFINED)
        return false;
    cairn_assumption *assumption = e->input->assumption(number);
    if (assumption == NULL)
        return false;
    for (uint32_t i = 0; i < e->assumption_count; i++)
        if (e->assumptions[i] == assumption)
            return true;
    if (e->assumption_count == sizeof e->assumptions / sizeof *e->assumptions)
        return false;
    e->assumptions[e->assumption_count++] = assumption;
    return true;
}

static void emit_get_global(struct emitter *e, instruction code)
{
    uint32_t number = operand_of(code);
    lox_value now = e->input->vm->globals.values[number];
    LLVMValueRef cell = address_of(e, &e->input->vm->globals.values[number]);
    if (!assume(e, number)) {
        LLVMValueRef bits = mark(e, MEMORY_GLOBAL, load(e, e->i64, cell, 0));
        if (now == UNDEFINED)
            guard(e, compare(e, LLVMIntNE, bits, UNDEFINED));
        push_bits(e, bits);
        return;
    }
    push_constant(e, now);
    if (!is_object(now))
        return;
    /* The address of an instance as a constant would be in the code at each access. */
    bool is_young = heap_is_young(&e->input->vm->heap, as_object(now));
    if (is_kind(now, KIND_INSTANCE) || is_young)
        operand(e, 1)->bits =
            mark(e, is_young ? MEMORY_GLOBAL : MEMORY_CONSTANT, load(e, e->i64, cell, 0));
    if (is_kind(now, KIND_CLOSURE) || is_kind(now, KIND_CLASS))
        operand(e, 1)->identity = as_object(now)->identity;
}

static void emit_set_global(struct emitter *e, instruction code)
{
    uint32_t number = operand_of(code);
    LLVMValueRef cell = address_of(e, &e->input->vm->globals.values[number]);
    if (e->input->vm->globals.values[number] == UNDEFINED)
        guard(e, compare(e, LLVMIntNE, load(e, e->i64, cell, 0), UNDEFINED));
    mark(e, MEMORY_GLOBAL, store(e, bits_of(e, operand(e, 1)), cell, 0));
}

/* The write barrier. */
static void emit_stored(struct emitter *e, LLVMValueRef object, struct value *value)
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
    call_entry(e, rt_remember, LLVMBuildPtrToInt(e->builder, object, e->i64, ""));
    LLVMBuildBr(e->builder, next);
    begin(e, next);
}

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
static void emit_box(struct emitter *e, instruction code)
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

static void emit_local(struct emitter *e, instruction code)
{
    access_local(e, e->top->base + operand_of(code), operation_of(code) == OP_SET_LOCAL);
}

static void emit_captured(struct emitter *e, instruction code)
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

/* ---- Properties ---- */

static void emit_get_case(struct emitter *e, const struct site_case *seen)
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
             store(e, word(e, (uintptr_t)seen->target), object, offsetof(struct object, identity)));
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

static void emit_set_case(struct emitter *e, const struct site_case *seen)
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

/* ---- Calls ---- */

static void emit_code(struct emitter *e, uint32_t first);
static void analyse(struct emitter *e, struct activation *a, uint32_t first);

/* What is mostly called from elsewhere, as are recursive functions, will have code of its own. */
static bool can_inline(const struct emitter *e, const struct function *function)
{
    const struct function *caller = e->top->function;
    uint64_t share = CALLS_MAX * (caller->invocation_count + caller->loop_count);
    uint32_t recursion = 0;
    for (const struct activation *a = e->top; a != NULL; a = a->parent)
        recursion += a->function == function;
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

/* Emits the function in line: all of it, or what is before `stop`, at which it is called. */
static void call_inlined(struct emitter *e, struct function *function, struct closure *closure,
                         uint32_t stop)
{
    struct activation *inner = allocate(e, sizeof *inner);
    inner->parent = e->top;
    inner->function = function;
    inner->closure = closure;
    inner->stop = stop;
    inner->base = e->height - function->arity - 1;
    e->top = inner;
    e->depth++;
    analyse(e, inner, 0);
    emit_code(e, 0);
    e->depth--;
    e->top = inner->parent;
    begin_target(e, &inner->done);
}

/* Calls the code of a function, compiled or not, whose callee is in the slot `base`. */
static void call_code(struct emitter *e, LLVMValueRef compiled, LLVMValueRef closure, uint32_t base)
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
    wait(e, false);
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
    call_code(e, address_of(e, function->compiled), closure_address(e, closure, base), base);
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
static void call_after_all(struct emitter *e)
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

static void call_method(struct emitter *e, const struct site_case *seen)
{
    call_function(e, function_of(seen->target), seen->target);
}

static void call_super(struct emitter *e, const struct site_case *seen)
{
    e->height--;
    call_method(e, seen);
}

/* Pushes a new instance, for which the young generation must have space; otherwise, the interpreter
 * allocates: that is rare, and so nothing can move here. If the class has got another root since,
 * its instances have less space than they could have. */
static void new_instance(struct emitter *e, const struct class *class)
{
    const struct shape *shape = class->root;
    const struct heap *heap = &e->input->vm->heap;
    settle(e, &e->pending, e->slots, e->height);
    e->pending = allocate(e, sizeof *e->pending);
    e->pending->shape = shape;
    e->pending->size = rounded_size(instance_size(shape));
    LLVMValueRef next = mark(e, MEMORY_HEAP, load(e, e->i64, address_of(e, &heap->next), 0));
    LLVMValueRef end = mark(e, MEMORY_HEAP, load(e, e->i64, address_of(e, &heap->end), 0));
    LLVMValueRef after = LLVMBuildAdd(e->builder, next, word(e, e->pending->size), "");
    build_guard(e, LLVMBuildICmp(e->builder, LLVMIntULE, after, end, ""), FRAME_IS_BLAMELESS);
    push(e,
         (struct value){.identity = shape, .is_object = true, .is_new = true, .is_pending = true});
}

static void call_case(struct emitter *e, const struct site_case *seen)
{
    const struct function *caller = e->top->function;
    uint32_t count = caller->sites[operand_of(caller->code[e->top->at])].argument_count;
    if (seen->access == ACCESS_CALL) {
        const struct value *callee = operand(e, count + 1);
        call_function(e, seen->key, is_constant(callee) ? as_closure(constant_of(callee)) : NULL);
        return;
    }
    new_instance(e, seen->key);
    *operand(e, count + 2) = *operand(e, 1);
    operand(e, count + 2)->is_clean = false;
    e->height--;
    if (seen->target != NULL)
        call_method(e, seen);
}

static void emit_result(struct emitter *e, instruction code)
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

/* Makes a closure. What it captures is in boxes after that. */
static void emit_closure(struct emitter *e, instruction code)
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

/* ---- Sites ---- */

/* Compile a case of a site, and leave the state after the operation. */
static void (*const emit_cases[])(struct emitter *e, const struct site_case *seen) = {
    [OP_GET_PROPERTY] = emit_get_case, [OP_SET_PROPERTY] = emit_set_case, [OP_CALL] = call_case,
    [OP_INVOKE] = call_method,         [OP_INVOKE_SUPER] = call_super,
};

/* Returns where the object is whose identity the cases are for, from the top. */
static uint32_t object_of(const struct site *site)
{
    return site->operation == OP_SET_PROPERTY   ? 2
           : site->operation == OP_INVOKE_SUPER ? 1
                                                : site->argument_count + 1;
}

/* Asks the inline cache of a site. Goes to `others` if only the runtime can do it. */
static LLVMValueRef ask_cache(struct emitter *e, const struct site *site, struct target *others)
{
    struct cairn_error error;
    LLVMValueRef bits = bits_of(e, operand(e, object_of(site)));
    go_if(e, compare(e, LLVMIntULT, bits, OBJECT_TAG), true, others);
    LLVMValueRef arguments[] = {pointer_to(e, bits), address_of(e, site)};
    const struct cairn_ic_options cache = {
        .handler = missed,
        .user = (void *)(uintptr_t)site,
        .megamorphic_target = (const void *)(uintptr_t)find_cacheable,
        .case_limit = CAIRN_IC_CASE_LIMIT_MAX,
    };
    const struct cairn_patchpoint patchpoint = {
        .id = (*e->input->next_id)++,
        .byte_count = cairn_patchpoint_inline_bytes(e->module) + 16,
        .result_type = e->i64,
        .arguments = arguments,
        .argument_count = 2,
        .cache = &cache,
    };
    LLVMValueRef result = cairn_build_patchpoint(e->builder, &patchpoint, &error);
    if (result == NULL) {
        fprintf(stderr, "lox: %s\n", error.message);
        e->has_failed = true;
        return word(e, 0);
    }
    go_if(e, compare(e, LLVMIntEQ, result, UNDEFINED), true, others);
    return result;
}

/* For objects that no case is for. */
static void emit_others(struct emitter *e, const struct site *site)
{
    struct target others = {.edges = NULL};
    struct target done = {.edges = NULL};
    if (site->operation == OP_GET_PROPERTY) {
        LLVMValueRef value = ask_cache(e, site, &others);
        e->height--;
        push_bits(e, value);
        go(e, &done);
    } else if (site->operation == OP_INVOKE) {
        LLVMValueRef method = ask_cache(e, site, &others);
        LLVMValueRef closure = LLVMBuildIntToPtr(e->builder, method, e->pointer, "");
        LLVMValueRef function = load(e, e->pointer, closure, offsetof(struct object, identity));
        LLVMValueRef compiled = load(e, e->pointer, function, offsetof(struct function, compiled));
        call_code(e, compiled, closure, e->height - object_of(site));
        go(e, &done);
    } else {
        go(e, &others);
    }
    begin_target(e, &others);
    call_runtime(e);
    go(e, &done);
    begin_target(e, &done);
}

/* Emits a site if it is known without a test what the object is. Returns false for others. */
static bool emit_known(struct emitter *e, const struct site *site)
{
    const struct value *object = operand(e, object_of(site));
    uint32_t count = site->case_count;
    bool is_never = count == 0 || object->number != NULL || object->truth != NULL;
    if (is_never && site->is_megamorphic)
        emit_others(e, site);
    else if (is_never)
        leave(e);
    for (uint32_t i = 0; i < count && !is_never && object->identity != NULL; i++) {
        if (site->cases[i].key == object->identity) {
            emit_cases[site->operation](e, &site->cases[i]);
            return true;
        }
    }
    return is_never;
}

static void emit_site(struct emitter *e, instruction code)
{
    const struct site *site = &e->top->function->sites[operand_of(code)];
    struct target done = {.edges = NULL};
    struct target miss = {.edges = NULL};
    if (emit_known(e, site))
        return;
    if (site->is_megamorphic)
        go_if(e, compare(e, LLVMIntULT, bits_of(e, operand(e, object_of(site))), OBJECT_TAG), true,
              &miss);
    else
        expect_object(e, operand(e, object_of(site)));
    LLVMValueRef bits = bits_of(e, operand(e, object_of(site)));
    LLVMValueRef identity = mark(e, MEMORY_IDENTITY, load(e, e->i64, pointer_to(e, bits), 0));
    for (uint32_t i = 0; i < site->case_count; i++) {
        struct target next = {.edges = NULL};
        void *key = site->cases[i].key;
        LLVMValueRef is_equal = compare(e, LLVMIntEQ, identity, (uintptr_t)key);
        if (i + 1 < site->case_count || site->is_megamorphic)
            go_if(e, is_equal, false, &next);
        else
            guard(e, is_equal);
        learn(e, bits, &(struct value){.identity = key, .is_object = true});
        emit_cases[site->operation](e, &site->cases[i]);
        if (e->is_live)
            go(e, &done);
        begin_target(e, &next);
    }
    if (site->is_megamorphic) {
        go(e, &miss);
        begin_target(e, &miss);
        emit_others(e, site);
        go(e, &done);
    }
    begin_target(e, &done);
}

/* ---- Operations ---- */

static void emit_constant(struct emitter *e, instruction code)
{
    push_constant(e, e->top->function->constants[operand_of(code)]);
}

static void emit_pop(struct emitter *e, instruction code) { e->height -= operand_of(code); }

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

static void emit_runtime(struct emitter *e, instruction code)
{
    (void)code;
    call_runtime(e);
}

/* Classes and definitions are not made again and again. */
static void emit_nothing(struct emitter *e, instruction code)
{
    (void)code;
    leave(e);
}

static void (*const emitters[])(struct emitter *e, instruction code) = {
#define OPERATION(name, effect, emitter) emit_##emitter,
    OPERATIONS(OPERATION)
#undef OPERATION
};

/* ---- Functions ---- */

static struct target *target_at(struct emitter *e, struct activation *a, uint32_t at)
{
    if (a->targets[at] == NULL)
        a->targets[at] = allocate(e, sizeof(struct target));
    return a->targets[at];
}

/* Notes the depth at an instruction, to which there may be a jump. */
static void reach(struct activation *a, uint32_t at, int32_t depth, uint32_t *work, uint32_t *count)
{
    if (a->depths[at] >= 0)
        return;
    a->depths[at] = depth;
    work[(*count)++] = at;
}

/* Finds what can be reached from an instruction, whose depth is known, and the heads of loops. */
static void analyse_from(struct emitter *e, struct activation *a, uint32_t first, int32_t depth)
{
    const struct function *function = a->function;
    uint32_t *work = allocate(e, (function->code_count + 1) * sizeof *work);
    uint32_t count = 0;
    reach(a, first, depth, work, &count);
    while (count > 0) {
        uint32_t at = work[--count];
        if (at == a->stop && at > 0)
            continue;
        instruction code = function->code[at];
        uint32_t next = at + 1 + words_after(function, code);
        int32_t after = a->depths[at] + stack_change(function, code);
        switch (operation_of(code)) {
        case OP_JUMP_IF_FALSE:
        case OP_JUMP_IF_TRUE:
        case OP_POP_JUMP_IF_FALSE:
            reach(a, next, after, work, &count);
            /* fall through */
        case OP_JUMP:
            target_at(e, a, next + operand_of(code));
            reach(a, next + operand_of(code), after, work, &count);
            break;
        case OP_LOOP:
            target_at(e, a, next - operand_of(code))->is_loop = true;
            reach(a, next - operand_of(code), after, work, &count);
            break;
        case OP_RETURN:
        case OP_HALT:
            break;
        default:
            reach(a, next, after, work, &count);
            break;
        }
    }
}

/* Analyses what is emitted of a function: from the instruction `first` on. */
static void analyse(struct emitter *e, struct activation *a, uint32_t first)
{
    uint32_t count = a->function->code_count + 1;
    int32_t depth = (int32_t)a->function->arity + 1;
    for (uint32_t from = 0;; from = first) {
        a->depths = allocate(e, count * sizeof *a->depths);
        a->targets = allocate(e, count * sizeof(struct target *));
        memset(a->depths, 0xff, count * sizeof *a->depths);
        analyse_from(e, a, from, depth);
        if (from == first)
            return;
        depth = a->depths[first];
    }
}

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
static void emit_code(struct emitter *e, uint32_t first)
{
    struct activation *a = e->top;
    const struct function *function = a->function;
    if (first > 0)
        go(e, target_at(e, a, first));
    for (uint32_t at = 0; at < function->code_count && !e->has_failed;
         at += 1 + words_after(function, function->code[at])) {
        if (a->depths[at] < 0)
            continue;
        struct target *target = a->targets[at];
        if (target != NULL) {
            if (e->is_live)
                go(e, target);
            else if (target->edges == NULL && target->is_loop && first > 0)
                go_unentered(e, target, a->base + (uint32_t)a->depths[at]);
            begin_target(e, target);
        }
        if (!e->is_live)
            continue;
        a->at = at;
        e->words++;
        e->has_failed |= ++e->work > WORK_MAX;
        if (at == a->stop && at > 0)
            call_after_all(e);
        else
            emitters[operation_of(function->code[at])](e, function->code[at]);
    }
}

/* ---- The whole ---- */

static void make_types(struct emitter *e)
{
    e->i1 = LLVMInt1TypeInContext(e->context);
    e->i8 = LLVMInt8TypeInContext(e->context);
    e->i32 = LLVMInt32TypeInContext(e->context);
    e->i64 = LLVMInt64TypeInContext(e->context);
    e->number = LLVMDoubleTypeInContext(e->context);
    e->pointer = LLVMPointerType(e->i8, 0);
    LLVMTypeRef arguments[] = {e->pointer, e->pointer, e->pointer, e->i64, e->i64, e->i64};
    e->code_type = LLVMFunctionType(e->i64, arguments, 3 + REGISTER_SLOTS, 0);
    e->entry_type = LLVMFunctionType(e->i64, &e->i64, 1, 0);
}

static void make_memory_tags(struct emitter *e)
{
    static const char *const names[] = {"stack", "identity", "field", "global", "heap", "constant"};
    LLVMMetadataRef name = LLVMMDStringInContext2(e->context, "lox", 3);
    LLVMMetadataRef root = LLVMMDNodeInContext2(e->context, &name, 1);
    LLVMMetadataRef offset = LLVMValueAsMetadata(word(e, 0));
    for (int i = 0; i < MEMORY_KINDS; i++) {
        name = LLVMMDStringInContext2(e->context, names[i], strlen(names[i]));
        LLVMMetadataRef type =
            LLVMMDNodeInContext2(e->context, (LLVMMetadataRef[]){name, root, offset}, 3);
        LLVMMetadataRef is_constant = LLVMValueAsMetadata(word(e, i == MEMORY_CONSTANT));
        LLVMMetadataRef tag = LLVMMDNodeInContext2(
            e->context, (LLVMMetadataRef[]){type, type, offset, is_constant}, 4);
        e->memory_tags[i] = LLVMMetadataAsValue(e->context, tag);
    }
}

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
        if (is_number(input->vm->frame->base[i]) && !input->function->compiled->avoids_loop_types)
            expect_number(e, &e->slots[i]);
}

/* The entry: writes the frame, and checks that there is space for all frames and slots of inlined
 * calls. It is built last, when these are known. */
static void emit_entry(struct emitter *e, LLVMBasicBlockRef entry, LLVMBasicBlockRef body,
                       uint32_t height)
{
    struct vm *vm = e->input->vm;
    const struct activation *a = e->top;
    uint64_t last_frame = (uintptr_t)(vm->frames + FRAMES_MAX - FRAMES_SPARE);
    uint64_t last_base =
        (uintptr_t)(vm->stack + STACK_SLOTS - e->most_slots - a->function->stack_size);
    begin(e, entry);
    store(e, e->closure, e->frame, offsetof(struct frame, closure));
    store(e, e->base, e->frame, offsetof(struct frame, base));
    e->height = height;
    for (uint32_t i = 0; i < height; i++)
        e->slots[i] = argument(e, i);
    LLVMValueRef frame = LLVMBuildPtrToInt(e->builder, e->frame, e->i64, "");
    LLVMValueRef base = LLVMBuildPtrToInt(e->builder, e->base, e->i64, "");
    LLVMValueRef fits = LLVMBuildAnd(e->builder, compare(e, LLVMIntULT, frame, last_frame),
                                     compare(e, LLVMIntULT, base, last_base), "");
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
    analyse(e, a, first);
    uint32_t height = (uint32_t)a->depths[first];
    if (height + a->function->stack_size >= SLOTS_MAX) {
        e->has_failed = true;
        return;
    }
    LLVMBasicBlockRef entry = new_block(e);
    LLVMBasicBlockRef body = new_block(e);
    LLVMMoveBasicBlockBefore(entry, e->failed);
    begin(e, body);
    e->is_live = true;
    load_slots(e, height);
    emit_code(e, first);
    a->at = first;
    if (!e->has_failed)
        emit_entry(e, entry, body, height);
}

LLVMModuleRef emit_function(LLVMContextRef context, const struct emit_input *input)
{
    struct emitter *e = heap_zeroed(sizeof *e);
    e->input = input;
    e->context = context;
    e->module = LLVMModuleCreateWithNameInContext(input->name, context);
    e->builder = LLVMCreateBuilderInContext(context);
    make_types(e);
    make_memory_tags(e);
    e->function = LLVMAddFunction(e->module, input->name, e->code_type);
    cairn_prepare_function(e->function);
    e->closure = LLVMGetParam(e->function, 0);
    e->base = LLVMGetParam(e->function, 1);
    e->frame = LLVMGetParam(e->function, 2);
    e->failed = new_block(e);
    begin(e, e->failed);
    LLVMBuildRet(e->builder, word(e, UNDEFINED));
    e->has_failed = input->function->code_count > CODE_WORDS_MAX;
    if (!e->has_failed)
        emit_all(e);
    LLVMModuleRef module = e->module;
    if (e->has_failed) {
        LLVMDisposeModule(module);
        module = NULL;
    }
    LLVMDisposeBuilder(e->builder);
    while (e->chunks != NULL) {
        struct chunk *chunk = e->chunks;
        e->chunks = chunk->next;
        free(chunk);
    }
    free(e);
    return module;
}
