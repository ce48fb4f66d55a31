/*
 * gc: a collector that moves objects while compiled code uses them. LLVM records where the code has
 * pointers (statepoints), and Cairn reads and rewrites these pointers in each frame.
 *
 *     cc gc.c $(pkg-config --cflags --libs cairn-llvm)
 *
 * The compiled code builds a list of COUNT numbers and adds them up. At each step it calls the
 * collector, which copies all live objects to another place and overwrites the old ones.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/cairn.h>
#include <cairn/llvm.h>

#include <inttypes.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 100, ROOTS_MAX = 16, SKIPPED = 77 };

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "gc: %s\n", message);
    exit(1);
}

static void check(enum cairn_status status, const struct cairn_error *error)
{
    if (status != CAIRN_OK)
        fail(error->message);
}

/* ---- 1. The heap: two halves, of which one is in use ---- */

struct node {
    struct node *moved_to; /* the copy, or NULL if the node was not yet copied */
    struct node *next;
    int64_t number;
};

static struct node halves[2][COUNT];
static struct node *half = halves[0];
static size_t used;

/* Allocates a node. Compiled code calls it. */
static struct node *allocate(void)
{
    struct node *node = &half[used++];
    *node = (struct node){.moved_to = NULL};
    return node;
}

/* ---- 2. The collector ---- */

static size_t collections;
static size_t moves;

/* Returns the new address of a node, and copies the node at the first call. */
static void *move(void *object, void *unused)
{
    struct node *node = object;
    (void)unused;
    if (node->moved_to == NULL) {
        half[used] = *node;
        node->moved_to = &half[used++];
        moves++;
    }
    return node->moved_to;
}

/* Checks that the frame's pointers point into the half in use, to find errors of the collector. */
static void verify(const struct cairn_frame *frame, struct cairn_record record)
{
    struct cairn_error error;
    struct cairn_root roots[ROOTS_MAX];
    size_t count;
    check(cairn_frame_roots(frame, record, roots, ROOTS_MAX, &count, &error), &error);
    for (size_t i = 0; i < count && i < ROOTS_MAX; i++) {
        const struct node *node = *roots[i].base;
        if (node != NULL && (node < half || node >= half + used))
            fail("a pointer was not relocated");
    }
}

/* Relocates the pointers in the frames of compiled code, from the frame of the call to the
 * outermost one. The walk steps over the host's frames in between. */
static void relocate_frames(const struct cairn_frame *innermost)
{
    struct cairn_error error;
    struct cairn_walk walk;
    cairn_walk_begin(&walk, innermost);
    walk.foreign = cairn_walk_native;
    for (;;) {
        struct cairn_record record;
        check(cairn_walk_next(&walk, &error), &error);
        if (walk.has_ended)
            return;
        if (cairn_frame_record(&walk.frame, &record)) {
            check(cairn_frame_relocate(&walk.frame, record, move, NULL, &error), &error);
            verify(&walk.frame, record);
        }
    }
}

/* Collects garbage. Compiled code calls it at statepoints through a cairn_exit, so that `call` has
 * its frame. */
static void collect(struct cairn_exit_call *call, void *unused)
{
    struct node *old = half;
    (void)unused;
    half = old == halves[0] ? halves[1] : halves[0];
    used = 0;
    relocate_frames(&call->frame);

    /* Relocate the pointers in the copies, which may add more copies. */
    for (size_t i = 0; i < used; i++)
        if (half[i].next != NULL)
            half[i].next = move(half[i].next, NULL);

    memset(old, 0xDD, sizeof halves[0]);
    collections++;
}

/* ---- 3. IR: int64_t compute(int64_t count) ---- */

struct ir {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMTypeRef int64;
    LLVMTypeRef node;
    LLVMTypeRef node_pointer; /* in address space 1, which LLVM reserves for pointers to collected
                                 objects */
    LLVMTypeRef poll_type;
    LLVMTypeRef allocate_type;
    LLVMValueRef poll;
    LLVMValueRef allocate;
    LLVMValueRef compute;
};

static void declare(struct ir *ir)
{
    LLVMTypeRef none = LLVMVoidTypeInContext(ir->context);
    ir->int64 = LLVMInt64TypeInContext(ir->context);
    ir->node = LLVMStructCreateNamed(ir->context, "node");
    ir->node_pointer = LLVMPointerType(ir->node, 1);
    LLVMTypeRef members[] = {ir->node_pointer, ir->node_pointer, ir->int64};
    LLVMStructSetBody(ir->node, members, 3, 0);

    /* LLVM assumes that every function may collect, except leaf functions. */
    ir->poll_type = LLVMFunctionType(none, NULL, 0, 0);
    ir->poll = LLVMAddFunction(ir->module, "poll", ir->poll_type);
    ir->allocate_type = LLVMFunctionType(ir->node_pointer, NULL, 0, 0);
    ir->allocate = LLVMAddFunction(ir->module, "allocate", ir->allocate_type);
    static const char leaf[] = "gc-leaf-function";
    LLVMAddAttributeAtIndex(ir->allocate, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateStringAttribute(ir->context, leaf, sizeof leaf - 1, "", 0));

    ir->compute =
        LLVMAddFunction(ir->module, "compute", LLVMFunctionType(ir->int64, &ir->int64, 1, 0));
    LLVMSetGC(ir->compute, "statepoint-example");
    cairn_prepare_function(ir->compute); /* sets uwtable, without which frames cannot be walked */
}

static LLVMValueRef member(struct ir *ir, LLVMValueRef node, unsigned index)
{
    return LLVMBuildStructGEP2(ir->builder, ir->node, node, index, "");
}

static void add_incoming(LLVMValueRef phi, LLVMValueRef value, LLVMBasicBlockRef block)
{
    LLVMAddIncoming(phi, &value, &block, 1);
}

static LLVMBasicBlockRef append(struct ir *ir, const char *name)
{
    return LLVMAppendBasicBlockInContext(ir->context, ir->compute, name);
}

/* Builds for (i = 0; i < count; i++) list = node {list, i}; and branches to `then`. Returns the
 * list. */
static LLVMValueRef build_list(struct ir *ir, LLVMBasicBlockRef before, LLVMBasicBlockRef then)
{
    LLVMBuilderRef builder = ir->builder;
    LLVMValueRef count = LLVMGetParam(ir->compute, 0);
    LLVMBasicBlockRef loop = append(ir, "build");
    LLVMPositionBuilderAtEnd(builder, before);
    LLVMBuildBr(builder, loop);

    LLVMPositionBuilderAtEnd(builder, loop);
    LLVMValueRef i = LLVMBuildPhi(builder, ir->int64, "i");
    LLVMValueRef list = LLVMBuildPhi(builder, ir->node_pointer, "list");
    LLVMBuildCall2(builder, ir->poll_type, ir->poll, NULL, 0, "");
    LLVMValueRef node = LLVMBuildCall2(builder, ir->allocate_type, ir->allocate, NULL, 0, "node");
    LLVMBuildStore(builder, list, member(ir, node, 1));
    LLVMBuildStore(builder, i, member(ir, node, 2));
    LLVMValueRef next = LLVMBuildAdd(builder, i, LLVMConstInt(ir->int64, 1, 0), "");
    LLVMBuildCondBr(builder, LLVMBuildICmp(builder, LLVMIntSLT, next, count, ""), loop, then);

    add_incoming(i, LLVMConstInt(ir->int64, 0, 0), before);
    add_incoming(i, next, loop);
    add_incoming(list, LLVMConstNull(ir->node_pointer), before);
    add_incoming(list, node, loop);
    return node;
}

/* Builds do sum += list->number; while ((list = list->next) != NULL); return sum; */
static void build_sum(struct ir *ir, LLVMValueRef list, LLVMBasicBlockRef loop)
{
    LLVMBuilderRef builder = ir->builder;
    LLVMBasicBlockRef before = LLVMGetInstructionParent(list);
    LLVMBasicBlockRef end = append(ir, "end");
    LLVMPositionBuilderAtEnd(builder, loop);
    LLVMValueRef node = LLVMBuildPhi(builder, ir->node_pointer, "node");
    LLVMValueRef sum = LLVMBuildPhi(builder, ir->int64, "sum");
    LLVMBuildCall2(builder, ir->poll_type, ir->poll, NULL, 0, "");
    LLVMValueRef number = LLVMBuildLoad2(builder, ir->int64, member(ir, node, 2), "");
    LLVMValueRef more = LLVMBuildAdd(builder, sum, number, "");
    LLVMValueRef next = LLVMBuildLoad2(builder, ir->node_pointer, member(ir, node, 1), "");
    LLVMBuildCondBr(builder, LLVMBuildIsNull(builder, next, ""), end, loop);
    add_incoming(node, list, before);
    add_incoming(node, next, loop);
    add_incoming(sum, LLVMConstInt(ir->int64, 0, 0), before);
    add_incoming(sum, more, loop);

    LLVMPositionBuilderAtEnd(builder, end);
    LLVMBuildRet(builder, more);
}

/* Runs LLVM's pass that turns calls into statepoints, and gives each statepoint an ID of its
 * own. */
static void make_statepoints(LLVMModuleRef module)
{
    struct cairn_error error;
    uint64_t next_id = 1;
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef failed = LLVMRunPasses(module, "rewrite-statepoints-for-gc", NULL, options);
    LLVMDisposePassBuilderOptions(options);
    if (failed != NULL)
        fail(LLVMGetErrorMessage(failed));
    check(cairn_number_statepoints(module, &next_id, &error), &error);
    printf("the code has %" PRIu64 " statepoints\n", next_id - 1);
}

static struct ir build_module(LLVMContextRef context)
{
    struct ir ir = {.context = context};
    ir.module = LLVMModuleCreateWithNameInContext("gc", context);
    ir.builder = LLVMCreateBuilderInContext(context);
    declare(&ir);
    LLVMBasicBlockRef entry = append(&ir, "entry");
    LLVMBasicBlockRef sum = append(&ir, "sum");
    build_sum(&ir, build_list(&ir, entry, sum), sum);
    LLVMDisposeBuilder(ir.builder);
    make_statepoints(ir.module);
    return ir;
}

/* ---- 4. Run it ---- */

/* Finds the two functions that the compiled code calls. */
static bool find_symbol(void *poll, const char *name, uint64_t *address)
{
    if (strcmp(name, "poll") == 0)
        *address = (uintptr_t)poll;
    else if (strcmp(name, "allocate") == 0)
        *address = (uintptr_t)allocate;
    else
        return false;
    return true;
}

static int64_t run(cairn_runtime *runtime, cairn_exit *poll)
{
    struct cairn_error error;
    cairn_engine *engine;
    int64_t (*compute)(int64_t);
    LLVMContextRef context = LLVMContextCreate();
    struct ir ir = build_module(context);
    const struct cairn_engine_options options = {
        .optimisation_level = 2,
        .load = {.find_symbol = find_symbol, .user = (void *)(uintptr_t)cairn_exit_target(poll)}};
    check(cairn_engine_create(runtime, ir.module, &options, &engine, &error), &error);
    check(cairn_engine_compile(engine, &error), &error);
    *(void **)&compute = cairn_engine_function(engine, "compute", &error);
    if (compute == NULL)
        fail(error.message);

    int64_t sum = compute(COUNT);
    cairn_engine_destroy(engine);
    LLVMContextDispose(context);
    return sum;
}

int main(void)
{
    struct cairn_error error;
    cairn_runtime *runtime;
    cairn_exit *poll;
    enum cairn_architecture host = cairn_architecture_host();
    if (host != CAIRN_ARCHITECTURE_X86_64 && host != CAIRN_ARCHITECTURE_AARCH64) {
        puts("skipped: LLVM has no statepoints for this machine");
        return SKIPPED;
    }
    check(cairn_runtime_create(NULL, &runtime, &error), &error);
    check(cairn_exit_create(runtime, collect, NULL, &poll, &error), &error);
    int64_t sum = run(runtime, poll);
    printf("%zu collections moved nodes %zu times\n", collections, moves);
    printf("the sum of 0 to %d is %" PRId64 "\n", COUNT - 1, sum);
    cairn_exit_destroy(poll);
    cairn_runtime_destroy(runtime);
    return sum == (int64_t)COUNT * (COUNT - 1) / 2 && collections == (size_t)2 * COUNT ? 0 : 1;
}
