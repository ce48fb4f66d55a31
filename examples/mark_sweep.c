/*
 * A mark-sweep collector for compiled code. Objects do not move, so compiled code keeps references
 * to them wherever LLVM puts them: in registers and spill slots. Nothing is stored for the
 * collector before a call.
 *
 * The interpreter's values, here 64 bits with a tag, are plain integers for LLVM. Each call and
 * each allocation in compiled code is a patch point, whose live values are the frame state that a
 * deoptimisation would need as well. The collector walks over the stack, reads the frame state of
 * each frame, and marks the values in it. The program collects at each allocation, and checks at
 * the end that all objects that are in use still exist, and no others.
 *
 *     cc mark_sweep.c $(pkg-config --cflags --libs cairn-llvm)
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/cairn.h>
#include <cairn/llvm.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 8, DEPTH = 3, CELLS = 2048, ALLOCATE = 100 };

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "mark_sweep: %s\n", message);
    exit(1);
}

static void check(enum cairn_status status, const struct cairn_error *error)
{
    if (status != CAIRN_OK)
        fail(error->message);
}

/* ---- 1. The heap ---- */

/* A value is a number, with the lowest bit set, or the address of a cell. */
struct cell {
    uint64_t children[WIDTH];
    bool is_used;
    bool is_marked;
};

static struct {
    struct cell cells[CELLS];
    uint64_t stack[2]; /* of the interpreter */
    uint64_t collections;
    uint64_t freed;
    uint64_t values;  /* read from frame states */
    uint64_t scanned; /* frames that were scanned word by word */
} vm;

static uint64_t number(uint64_t value) { return value << 1 | 1; }

/* Returns the cell at an address, or NULL: the word may be anything. */
static struct cell *find_cell(uint64_t word)
{
    uint64_t offset = word - (uintptr_t)vm.cells;
    bool is_cell = offset < sizeof vm.cells && offset % sizeof(struct cell) == 0;
    struct cell *cell = is_cell ? &vm.cells[offset / sizeof(struct cell)] : NULL;
    return cell != NULL && cell->is_used ? cell : NULL;
}

static void mark(uint64_t word)
{
    struct cell *cell = find_cell(word);
    if (cell == NULL || cell->is_marked)
        return;
    cell->is_marked = true;
    for (int i = 0; i < WIDTH; i++)
        mark(cell->children[i]);
}

static int sweep(void)
{
    int used = 0;
    for (int i = 0; i < CELLS; i++) {
        struct cell *cell = &vm.cells[i];
        if (cell->is_used && !cell->is_marked) {
            memset(cell, 0xEE, sizeof *cell); /* use after free shows */
            cell->is_used = false;
            vm.freed++;
        }
        cell->is_marked = false;
        used += cell->is_used;
    }
    return used;
}

/* ---- 2. Roots in compiled frames ---- */

static bool begin_frame(const struct cairn_interpreter_frame *frame, uint32_t index,
                        struct cairn_frame_slots *slots, void *user)
{
    (void)frame;
    (void)index;
    (void)slots;
    (void)user;
    return true;
}

static bool mark_slot(const struct cairn_interpreter_frame *frame, uint32_t index,
                      const struct cairn_value *value, void *user)
{
    (void)frame;
    (void)index;
    (void)user;
    if (value->type.kind == CAIRN_TYPE_VOID) /* a dead local */
        return true;
    mark(cairn_value_bits(value));
    vm.values++;
    return true;
}

/* Scans the frame's part of the stack, and the callee-saved registers. */
static void scan_frame(const struct cairn_frame *frame)
{
    struct cairn_error error;
    struct cairn_frame caller = *frame;
    uint64_t word;
    check(cairn_frame_caller(&caller, &error), &error);
    for (uint64_t at = frame->sp; at < caller.sp; at += sizeof word) {
        memcpy(&word, (const void *)(uintptr_t)at, sizeof word);
        mark(word);
    }
    for (uint16_t dwarf = 0; dwarf < 32; dwarf++)
        if (cairn_frame_read(frame, dwarf, &word, sizeof word, NULL) == CAIRN_OK)
            mark(word);
    vm.scanned++;
}

/* Marks the values of a frame's state. LLVM may keep a copy of a value in a register that the
 * pending call changes, and name that one in the record. Then the value that the code will use is
 * in the frame or in a callee-saved register. */
static void mark_frame(const struct cairn_frame *frame)
{
    static const struct cairn_frame_writer writer = {.begin = begin_frame, .value = mark_slot};
    struct cairn_error error;
    struct cairn_record record;
    struct cairn_frame_state state;
    if (!cairn_frame_record(frame, &record))
        fail("a call has no record");
    check(cairn_frame_state_read(frame, record, 0, &state, &error), &error);
    enum cairn_status status = cairn_frame_state_write(&state, &writer, &error);
    if (status == CAIRN_ERROR_NOT_FOUND)
        scan_frame(frame);
    else
        check(status, &error);
}

static void collect(const struct cairn_frame *innermost)
{
    struct cairn_error error;
    struct cairn_walk walk;
    for (size_t i = 0; i < sizeof vm.stack / sizeof *vm.stack; i++)
        mark(vm.stack[i]);
    cairn_walk_begin(&walk, innermost);
    check(cairn_walk_next(&walk, &error), &error);
    for (; !walk.has_ended; check(cairn_walk_next(&walk, &error), &error))
        mark_frame(&walk.frame);
    sweep();
    vm.collections++;
}

/* The exit of all allocations: collects garbage, and returns a cell whose children are the locals
 * of the frame state. */
static void allocate(struct cairn_exit_call *call, void *user)
{
    struct cairn_error error;
    struct cairn_frame_state state;
    struct cairn_interpreter_frame frame;
    struct cairn_value child;
    struct cell *cell = vm.cells;
    (void)user;
    collect(&call->frame);
    while (cell < vm.cells + CELLS && cell->is_used)
        cell++;
    if (cell + 1 >= vm.cells + CELLS)
        fail("the heap is full");
    *cell = (struct cell){.is_used = true};
    check(cairn_frame_state_read(&call->frame, call->record, 0, &state, &error), &error);
    check(cairn_frame_state_frame(&state, 0, &frame, &error), &error);
    for (uint32_t i = 0; i < WIDTH; i++) {
        check(cairn_frame_state_value(&state, &frame, i, &child, &error), &error);
        cell->children[i] =
            child.type.kind == CAIRN_TYPE_VOID ? number(0) : cairn_value_bits(&child);
    }
    for (struct cell *garbage = cell + 1; garbage < vm.cells + CELLS; garbage++)
        if (!garbage->is_used) {
            *garbage = (struct cell){.is_used = true};
            break;
        }
    struct cairn_value result = cairn_value_of_integer(64, (int64_t)(uintptr_t)cell);
    check(cairn_exit_continue(call, &result, &error), &error);
}

/* ---- 3. The code: value tree(depth), a cell with WIDTH trees that are less deep ---- */

struct ir {
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMTypeRef int64;
    LLVMValueRef function;
};

/* Builds a patch point with the interpreter's frame: its locals, of which `count` are alive, and
 * the function's argument on its operand stack. */
static LLVMValueRef build_call(struct ir *ir, uint64_t id, LLVMValueRef *argument,
                               LLVMValueRef *children, uint32_t count)
{
    enum { LIVE_MAX = 64 };
    struct cairn_error error;
    LLVMValueRef locals[WIDTH] = {NULL};
    LLVMValueRef live[LIVE_MAX];
    LLVMValueRef depth = LLVMGetParam(ir->function, 0);
    uint32_t live_count;
    for (uint32_t i = 0; i < count; i++)
        locals[i] = children[i];
    const struct cairn_encoded_frame frame = {
        .position = id, .locals = locals, .local_count = WIDTH, .stack = &depth, .stack_count = 1};
    check(cairn_frame_state_encode(LLVMGetModuleContext(ir->module), &frame, 1, live, LIVE_MAX,
                                   &live_count, &error),
          &error);
    const struct cairn_patchpoint patchpoint = {
        .id = id,
        .byte_count = cairn_patchpoint_minimum_bytes(ir->module, false),
        .result_type = ir->int64,
        .arguments = argument,
        .argument_count = argument != NULL,
        .live_values = live,
        .live_value_count = live_count,
    };
    LLVMValueRef result = cairn_build_patchpoint(ir->builder, &patchpoint, &error);
    if (result == NULL)
        fail(error.message);
    return result;
}

static LLVMModuleRef build_module(LLVMContextRef context)
{
    struct ir ir = {.module = LLVMModuleCreateWithNameInContext("mark_sweep", context),
                    .builder = LLVMCreateBuilderInContext(context),
                    .int64 = LLVMInt64TypeInContext(context)};
    LLVMValueRef children[WIDTH] = {NULL};
    LLVMTypeRef type = LLVMFunctionType(ir.int64, &ir.int64, 1, 0);
    ir.function = LLVMAddFunction(ir.module, "tree", type);
    cairn_prepare_function(ir.function);
    LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(context, ir.function, "entry");
    LLVMBasicBlockRef leaf = LLVMAppendBasicBlockInContext(context, ir.function, "leaf");
    LLVMBasicBlockRef inner = LLVMAppendBasicBlockInContext(context, ir.function, "inner");
    LLVMValueRef depth = LLVMGetParam(ir.function, 0);
    LLVMPositionBuilderAtEnd(ir.builder, entry);
    LLVMValueRef zero = LLVMConstInt(ir.int64, number(0), 0);
    LLVMBuildCondBr(ir.builder, LLVMBuildICmp(ir.builder, LLVMIntEQ, depth, zero, ""), leaf, inner);
    LLVMPositionBuilderAtEnd(ir.builder, leaf);
    LLVMBuildRet(ir.builder, build_call(&ir, ALLOCATE, NULL, NULL, 0));
    LLVMPositionBuilderAtEnd(ir.builder, inner);
    LLVMValueRef two = LLVMConstInt(ir.int64, 2, 0);
    LLVMValueRef less = LLVMBuildSub(ir.builder, depth, two, "");
    for (uint32_t i = 0; i < WIDTH; i++)
        children[i] = build_call(&ir, 1 + i, &less, children, i);
    LLVMBuildRet(ir.builder, build_call(&ir, ALLOCATE + 1, NULL, children, WIDTH));
    LLVMDisposeBuilder(ir.builder);
    return ir.module;
}

static void call_at(cairn_engine *engine, uint64_t id, const void *target)
{
    struct cairn_error error;
    cairn_site *site = cairn_engine_site(engine, id, &error);
    if (site == NULL)
        fail(error.message);
    check(cairn_site_call(site, target, CAIRN_SYNC, &error), &error);
}

/* ---- 4. Running ---- */

static uint64_t count_cells(uint64_t value, int depth)
{
    const struct cell *cell = find_cell(value);
    uint64_t count = 1;
    if (cell == NULL)
        fail("a cell that is in use was freed");
    for (int i = 0; i < WIDTH && depth > 0; i++)
        count += count_cells(cell->children[i], depth - 1);
    return count;
}

int main(void)
{
    struct cairn_error error;
    cairn_runtime *runtime;
    cairn_engine *engine;
    cairn_exit *exit;
    const struct cairn_engine_options options = {.optimisation_level = 2};
    LLVMContextRef context = LLVMContextCreate();
    check(cairn_runtime_create(NULL, &runtime, &error), &error);
    check(cairn_exit_create(runtime, allocate, NULL, &exit, &error), &error);
    check(cairn_engine_create(runtime, build_module(context), &options, &engine, &error), &error);
    check(cairn_engine_compile(engine, &error), &error);
    void *tree = cairn_engine_function(engine, "tree", &error);
    if (tree == NULL)
        fail(error.message);
    for (uint64_t i = 0; i < WIDTH; i++)
        call_at(engine, 1 + i, tree);
    call_at(engine, ALLOCATE, cairn_exit_target(exit));
    call_at(engine, ALLOCATE + 1, cairn_exit_target(exit));

    /* The second tree is built while only the interpreter has the first one. */
    uint64_t count = 0;
    for (int i = 0; i < 2; i++) {
        vm.stack[i] = ((uint64_t(*)(uint64_t))(uintptr_t)tree)(number(DEPTH));
        count += count_cells(vm.stack[i], DEPTH);
    }
    mark(vm.stack[0]);
    mark(vm.stack[1]);
    uint64_t used = (uint64_t)sweep();
    printf("%" PRIu64 " cells in use, %" PRIu64 " freed by %" PRIu64 " collections\n", used,
           vm.freed, vm.collections);
    printf("%" PRIu64 " values were read from frame states, and %" PRIu64 " frames scanned\n",
           vm.values, vm.scanned);
    cairn_exit_destroy(exit);
    cairn_engine_destroy(engine);
    cairn_runtime_destroy(runtime);
    LLVMContextDispose(context);
    return used == count && vm.freed == vm.collections ? 0 : 1;
}
