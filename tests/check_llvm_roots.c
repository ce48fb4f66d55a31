/*
 * Tests of roots of statepoints, with a collector that moves every object at every statepoint.
 *
 * The code is the output of LLVM's pass rewrite-statepoints-for-gc for functions with a collector's
 * name. After an object was moved, its old memory is inaccessible, so a missed root ends the test.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "llvm_support.h"
#include "llvm/scan.h"

#include <llvm-c/Support.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* ---- A heap ---- */

/* Pointers come first, and numbers follow. */
struct object {
    struct object *moved_to; /* NULL if it was not moved */
    uint32_t magic;
    uint16_t pointer_count;
    uint16_t number_count;
    uint64_t fields[];
};

enum { MAGIC = 0x0B1EC7ED, HEAP_BYTES = 1 << 17 };

/* Memory of earlier collections stays mapped, but becomes inaccessible. */
static struct {
    unsigned char *start;
    unsigned char *end;
} heap;

static struct {
    size_t collections;
    size_t frames;
    size_t roots;
    size_t registers;
    size_t interior;
    size_t moved;
} counts;

static void open_heap(void)
{
    heap.start = mmap(NULL, HEAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(heap.start, MAP_FAILED);
    heap.end = heap.start;
}

static size_t object_bytes(const struct object *object)
{
    return sizeof *object +
           ((size_t)object->pointer_count + object->number_count) * sizeof *object->fields;
}

static void *take(size_t bytes)
{
    void *taken = heap.end;
    heap.end += bytes;
    ck_assert(heap.end <= heap.start + HEAP_BYTES);
    return taken;
}

/* Functions that compiled code calls; they are not statepoints. */
static void *allocate(int64_t pointer_count, int64_t number_count)
{
    const struct object made = {
        .magic = MAGIC,
        .pointer_count = (uint16_t)pointer_count,
        .number_count = (uint16_t)number_count,
    };
    struct object *object = take(object_bytes(&made));
    *object = made;
    return object;
}

/* ---- The collector ---- */

static unsigned char *old_start;
static unsigned char *old_end;

static bool is_old(const void *pointer)
{
    return (const unsigned char *)pointer >= old_start && (const unsigned char *)pointer < old_end;
}

static void *move(void *pointer, void *user)
{
    struct object *object = pointer;
    ck_assert_ptr_eq(user, &counts);
    ck_assert(is_old(object));
    ck_assert_uint_eq(object->magic, MAGIC);
    if (object->moved_to != NULL)
        return object->moved_to;
    size_t bytes = object_bytes(object);
    struct object *copy = take(bytes);
    memcpy(copy, object, bytes);
    object->moved_to = copy;
    counts.moved++;
    return copy;
}

static void move_fields(struct object *object)
{
    for (uint16_t i = 0; i < object->pointer_count; i++)
        if (object->fields[i] != 0)
            object->fields[i] = (uintptr_t)move((void *)(uintptr_t)object->fields[i], &counts);
}

/* Moves the objects that moved objects refer to, and updates the references. */
static void move_the_rest(void)
{
    for (unsigned char *next = heap.start; next < heap.end;) {
        struct object *object = (struct object *)next;
        move_fields(object);
        next += object_bytes(object);
    }
}

enum { ROOTS_MAX = 64 };

static void count_roots(const struct cairn_frame *frame, struct cairn_record record)
{
    struct cairn_root roots[ROOTS_MAX];
    size_t count = 0;
    struct cairn_statepoint statepoint;
    struct cairn_error error = {0};
    enum cairn_status status = cairn_frame_roots(frame, record, roots, ROOTS_MAX, &count, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    ck_assert_uint_le(count, ROOTS_MAX);
    ck_assert_ok(cairn_record_statepoint(record, &statepoint, NULL));
    for (uint32_t i = 0; i < statepoint.pair_count; i++)
        if (cairn_record_location(record, statepoint.first_pair + 2 * i).kind ==
            CAIRN_LOCATION_REGISTER)
            counts.registers++;
    for (size_t i = 0; i < count; i++) {
        ck_assert(*roots[i].base == NULL || is_old(*roots[i].base));
        counts.interior += roots[i].derived != roots[i].base;
    }
    counts.roots += count;
}

static void move_roots(struct cairn_frame *frame)
{
    struct cairn_record record;
    struct cairn_error error = {0};
    ck_assert(cairn_frame_record(frame, &record));
    count_roots(frame, record);
    enum cairn_status status = cairn_frame_relocate(frame, record, move, &counts, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    counts.frames++;
}

/* Called before and after the roots are moved. */
static void (*look)(const struct cairn_exit_call *call, bool is_moved);

static void collect(struct cairn_exit_call *call, void *user)
{
    struct cairn_frame frame = call->frame;
    ck_assert_ptr_eq(user, &counts);
    ck_assert_ptr_nonnull(frame.module);
    old_start = heap.start;
    old_end = heap.end;
    open_heap();
    if (look != NULL)
        look(call, false);
    while (frame.module != NULL) {
        struct cairn_error error = {0};
        move_roots(&frame);
        enum cairn_status status = cairn_frame_caller(&frame, &error);
        ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    }
    move_the_rest();
    ck_assert_int_eq(mprotect(old_start, HEAP_BYTES, PROT_NONE), 0);
    if (look != NULL)
        look(call, true);
    counts.collections++;
}

/* ---- Code ---- */

static LLVMContextRef context;
static cairn_runtime *runtime;
static cairn_engine *engine;
static cairn_exit *poll;

static void set_up(void)
{
    context = LLVMContextCreate();
    engine = NULL;
    look = NULL;
    memset(&counts, 0, sizeof counts);
    open_heap();
    ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL));
    ck_assert_ok(cairn_exit_create(runtime, collect, &counts, &poll, NULL));
}

static void tear_down(void)
{
    cairn_engine_destroy(engine);
    cairn_exit_destroy(poll);
    cairn_runtime_destroy(runtime);
    LLVMContextDispose(context);
}

/* Code that reads and writes memory of the heap, in the syntax of the LLVM in use. A value is a
 * field that holds a number. */
#if LLVM_VERSION_MAJOR >= 15
#define MEMORY                                                                                     \
    "define ptr addrspace(1) @read(ptr addrspace(1) %at) alwaysinline \"gc-leaf-function\" {\n"    \
    "  %value = load ptr addrspace(1), ptr addrspace(1) %at\n"                                     \
    "  ret ptr addrspace(1) %value\n"                                                              \
    "}\n"                                                                                          \
    "define i64 @read_number(ptr addrspace(1) %at) alwaysinline \"gc-leaf-function\" {\n"          \
    "  %value = load i64, ptr addrspace(1) %at\n"                                                  \
    "  ret i64 %value\n"                                                                           \
    "}\n"                                                                                          \
    "define void @write(ptr addrspace(1) %at, ptr addrspace(1) %value) alwaysinline\n"             \
    "    \"gc-leaf-function\" {\n"                                                                 \
    "  store ptr addrspace(1) %value, ptr addrspace(1) %at\n"                                      \
    "  ret void\n"                                                                                 \
    "}\n"                                                                                          \
    "define void @write_number(ptr addrspace(1) %at, i64 %value) alwaysinline\n"                   \
    "    \"gc-leaf-function\" {\n"                                                                 \
    "  store i64 %value, ptr addrspace(1) %at\n"                                                   \
    "  ret void\n"                                                                                 \
    "}\n"
#else
#define MEMORY                                                                                     \
    "define i8 addrspace(1)* @read(i8 addrspace(1)* %at) alwaysinline \"gc-leaf-function\" {\n"    \
    "  %typed = bitcast i8 addrspace(1)* %at to i8 addrspace(1)* addrspace(1)*\n"                  \
    "  %value = load i8 addrspace(1)*, i8 addrspace(1)* addrspace(1)* %typed\n"                    \
    "  ret i8 addrspace(1)* %value\n"                                                              \
    "}\n"                                                                                          \
    "define i64 @read_number(i8 addrspace(1)* %at) alwaysinline \"gc-leaf-function\" {\n"          \
    "  %typed = bitcast i8 addrspace(1)* %at to i64 addrspace(1)*\n"                               \
    "  %value = load i64, i64 addrspace(1)* %typed\n"                                              \
    "  ret i64 %value\n"                                                                           \
    "}\n"                                                                                          \
    "define void @write(i8 addrspace(1)* %at, i8 addrspace(1)* %value) alwaysinline\n"             \
    "    \"gc-leaf-function\" {\n"                                                                 \
    "  %typed = bitcast i8 addrspace(1)* %at to i8 addrspace(1)* addrspace(1)*\n"                  \
    "  store i8 addrspace(1)* %value, i8 addrspace(1)* addrspace(1)* %typed\n"                     \
    "  ret void\n"                                                                                 \
    "}\n"                                                                                          \
    "define void @write_number(i8 addrspace(1)* %at, i64 %value) alwaysinline\n"                   \
    "    \"gc-leaf-function\" {\n"                                                                 \
    "  %typed = bitcast i8 addrspace(1)* %at to i64 addrspace(1)*\n"                               \
    "  store i64 %value, i64 addrspace(1)* %typed\n"                                               \
    "  ret void\n"                                                                                 \
    "}\n"
#endif

#define COLLECTED "uwtable noinline gc \"statepoint-example\""

#define OUTSIDE                                                                                    \
    "declare void @gc_poll()\n"                                                                    \
    "declare ptr addrspace(1) @allocate(i64, i64) \"gc-leaf-function\"\n"

struct mode {
    unsigned level;
    const char *passes;
};

static const struct mode modes[] = {
    {0, "always-inline,rewrite-statepoints-for-gc"},
    {2, "always-inline,rewrite-statepoints-for-gc"},
    {2, "default<O2>,rewrite-statepoints-for-gc"},
};
enum { MODES = sizeof modes / sizeof *modes };

static void run_passes(LLVMModuleRef module, const char *passes)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(module, passes, NULL, options);
    if (error != NULL)
        ck_abort_msg("%s", LLVMGetErrorMessage(error));
    LLVMDisposePassBuilderOptions(options);
    support_verify(module);
}

static void load(const char *text, const struct mode *mode)
{
    static struct support_symbol symbols[3];
    struct cairn_error error = {0};
    uint64_t next_id = 1;
    LLVMModuleRef module = support_parse_valid(context, text);
    run_passes(module, mode->passes);
    ck_assert_ok(cairn_number_statepoints(module, &next_id, NULL));
    ck_assert_uint_gt(next_id, 1);
    symbols[0] = (struct support_symbol){"gc_poll", cairn_exit_target(poll)};
    symbols[1] = (struct support_symbol){"allocate", (const void *)(uintptr_t)allocate};
    const struct cairn_engine_options options = {.optimisation_level = mode->level,
                                                 .load = support_symbols(symbols)};
    enum cairn_status status = cairn_engine_create(runtime, module, &options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}

typedef int64_t function(int64_t);

static int64_t call(int64_t argument)
{
    struct cairn_error error = {0};
    void *address = support_compiled_function(engine, "f", &error);
    ck_assert_msg(address != NULL, "%s", error.message);
    return ((function *)(uintptr_t)address)(argument);
}

static void check_counts(void)
{
    ck_assert_uint_gt(counts.collections, 0);
    ck_assert_uint_ge(counts.frames, counts.collections);
    ck_assert_uint_gt(counts.moved, 0);
}

/* ---- Trees ---- */

/* A node has its pointers at 16 and 24, and its number at 32. */
static const char tree[] = MEMORY OUTSIDE
    "define ptr addrspace(1) @node(i64 %number, ptr addrspace(1) %left, ptr addrspace(1) %right)\n"
    "    " COLLECTED " {\n"
    "  call void @gc_poll()\n"
    "  %node = call ptr addrspace(1) @allocate(i64 2, i64 1)\n"
    "  %left_at = getelementptr i8, ptr addrspace(1) %node, i64 16\n"
    "  %right_at = getelementptr i8, ptr addrspace(1) %node, i64 24\n"
    "  %number_at = getelementptr i8, ptr addrspace(1) %node, i64 32\n"
    "  call void @write(ptr addrspace(1) %left_at, ptr addrspace(1) %left)\n"
    "  call void @write(ptr addrspace(1) %right_at, ptr addrspace(1) %right)\n"
    "  call void @write_number(ptr addrspace(1) %number_at, i64 %number)\n"
    "  ret ptr addrspace(1) %node\n"
    "}\n"
    "define ptr addrspace(1) @tree(i64 %depth, i64 %number) " COLLECTED " {\n"
    "  %is_leaf = icmp eq i64 %depth, 0\n"
    "  br i1 %is_leaf, label %leaf, label %inner\n"
    "leaf:\n"
    "  %alone = call ptr addrspace(1) @node(i64 %number, ptr addrspace(1) null,\n"
    "      ptr addrspace(1) null)\n"
    "  ret ptr addrspace(1) %alone\n"
    "inner:\n"
    "  %less = sub i64 %depth, 1\n"
    "  %double = mul i64 %number, 2\n"
    "  %next = add i64 %double, 1\n"
    "  %left = call ptr addrspace(1) @tree(i64 %less, i64 %double)\n"
    "  %right = call ptr addrspace(1) @tree(i64 %less, i64 %next)\n"
    "  %node = call ptr addrspace(1) @node(i64 %number, ptr addrspace(1) %left,\n"
    "      ptr addrspace(1) %right)\n"
    "  ret ptr addrspace(1) %node\n"
    "}\n"
    /* The number is read last, through a pointer that was computed first; no constant offset allows
     * LLVM to compute it again. */
    "define i64 @sum(ptr addrspace(1) %node, i64 %number_offset) " COLLECTED " {\n"
    "  %is_null = icmp eq ptr addrspace(1) %node, null\n"
    "  br i1 %is_null, label %none, label %some\n"
    "none:\n"
    "  ret i64 0\n"
    "some:\n"
    "  %is_32 = icmp eq i64 %number_offset, 32\n"
    "  %here = getelementptr i8, ptr addrspace(1) %node, i64 32\n"
    "  %elsewhere = getelementptr i8, ptr addrspace(1) %node, i64 %number_offset\n"
    "  %number_at = select i1 %is_32, ptr addrspace(1) %here, ptr addrspace(1) %elsewhere\n"
    "  %left_at = getelementptr i8, ptr addrspace(1) %node, i64 16\n"
    "  %left = call ptr addrspace(1) @read(ptr addrspace(1) %left_at)\n"
    "  %of_left = call i64 @sum(ptr addrspace(1) %left, i64 %number_offset)\n"
    "  call void @gc_poll()\n"
    "  %right_at = getelementptr i8, ptr addrspace(1) %node, i64 24\n"
    "  %right = call ptr addrspace(1) @read(ptr addrspace(1) %right_at)\n"
    "  %of_right = call i64 @sum(ptr addrspace(1) %right, i64 %number_offset)\n"
    "  %number = call i64 @read_number(ptr addrspace(1) %number_at)\n"
    "  %both = add i64 %of_left, %of_right\n"
    "  %triple = mul i64 %both, 3\n"
    "  %all = add i64 %triple, %number\n"
    "  ret i64 %all\n"
    "}\n"
    "define i64 @f(i64 %depth) " COLLECTED " {\n"
    "  %tree = call ptr addrspace(1) @tree(i64 %depth, i64 1)\n"
    "  %first = call i64 @sum(ptr addrspace(1) %tree, i64 32)\n"
    "  %second = call i64 @sum(ptr addrspace(1) %tree, i64 32)\n"
    "  %difference = sub i64 %first, %second\n"
    "  %squared = mul i64 %difference, %difference\n"
    "  %result = sub i64 %first, %squared\n"
    "  ret i64 %result\n"
    "}\n";

static int64_t sum_of_node(int64_t depth, int64_t number)
{
    if (depth == 0)
        return number;
    return number +
           3 * (sum_of_node(depth - 1, 2 * number) + sum_of_node(depth - 1, 2 * number + 1));
}

static int64_t sum_of_tree(int64_t depth) { return sum_of_node(depth, 1); }

enum { TREE_DEPTH = 6 };

START_TEST(a_tree_that_moves_as_a_whole_stays_intact)
{
    load(tree, &modes[_i]);
    ck_assert_int_eq(call(TREE_DEPTH), sum_of_tree(TREE_DEPTH));
    check_counts();
    bool is_as_written = strstr(modes[_i].passes, "O2") == NULL;
    ck_assert(counts.interior > 0 || !is_as_written);
}
END_TEST

/* ---- Lists ---- */

/* A cell has its pointer at 16, and its number at 24. */
static const char list[] =
    MEMORY OUTSIDE "define i64 @f(i64 %count) " COLLECTED " {\n"
                   "entry:\n"
                   "  br label %build\n"
                   "build:\n"
                   "  %i = phi i64 [0, %entry], [%i_next, %build]\n"
                   "  %list = phi ptr addrspace(1) [null, %entry], [%cell, %build]\n"
                   "  call void @gc_poll()\n"
                   "  %cell = call ptr addrspace(1) @allocate(i64 1, i64 1)\n"
                   "  %next_at = getelementptr i8, ptr addrspace(1) %cell, i64 16\n"
                   "  %number_at = getelementptr i8, ptr addrspace(1) %cell, i64 24\n"
                   "  call void @write(ptr addrspace(1) %next_at, ptr addrspace(1) %list)\n"
                   "  call void @write_number(ptr addrspace(1) %number_at, i64 %i)\n"
                   "  %i_next = add i64 %i, 1\n"
                   "  %is_more = icmp slt i64 %i_next, %count\n"
                   "  br i1 %is_more, label %build, label %reverse\n"
                   "reverse:\n"
                   "  %rest = phi ptr addrspace(1) [%cell, %build], [%rest_next, %reverse]\n"
                   "  %done = phi ptr addrspace(1) [null, %build], [%rest, %reverse]\n"
                   "  call void @gc_poll()\n"
                   "  %rest_at = getelementptr i8, ptr addrspace(1) %rest, i64 16\n"
                   "  %rest_next = call ptr addrspace(1) @read(ptr addrspace(1) %rest_at)\n"
                   "  call void @write(ptr addrspace(1) %rest_at, ptr addrspace(1) %done)\n"
                   "  %is_end = icmp eq ptr addrspace(1) %rest_next, null\n"
                   "  br i1 %is_end, label %read, label %reverse\n"
                   "read:\n"
                   "  %at = phi ptr addrspace(1) [%rest, %reverse], [%at_next, %read]\n"
                   "  %sum = phi i64 [0, %reverse], [%sum_next, %read]\n"
                   "  call void @gc_poll()\n"
                   "  %at_number = getelementptr i8, ptr addrspace(1) %at, i64 24\n"
                   "  %number = call i64 @read_number(ptr addrspace(1) %at_number)\n"
                   "  %times = mul i64 %sum, 3\n"
                   "  %sum_next = add i64 %times, %number\n"
                   "  %at_at = getelementptr i8, ptr addrspace(1) %at, i64 16\n"
                   "  %at_next = call ptr addrspace(1) @read(ptr addrspace(1) %at_at)\n"
                   "  %is_last = icmp eq ptr addrspace(1) %at_next, null\n"
                   "  br i1 %is_last, label %end, label %read\n"
                   "end:\n"
                   "  ret i64 %sum_next\n"
                   "}\n";

static int64_t sum_of_list(int64_t count)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum = 3 * sum + i;
    return sum;
}

START_TEST(a_list_is_built_and_reversed_while_it_moves)
{
    enum { CELLS = 30 };
    load(list, &modes[_i]);
    ck_assert_int_eq(call(CELLS), sum_of_list(CELLS));
    ck_assert_uint_eq(counts.collections, 3 * CELLS);
    check_counts();
}
END_TEST

/* ---- Pointers into an array ---- */

/* Two pointers move from both ends towards each other, and swap the values that they point to. */
static const char array[] =
    MEMORY OUTSIDE "define i64 @f(i64 %count) " COLLECTED " {\n"
                   "entry:\n"
                   "  %array = call ptr addrspace(1) @allocate(i64 0, i64 %count)\n"
                   "  %first = getelementptr i8, ptr addrspace(1) %array, i64 16\n"
                   "  %bytes = mul i64 %count, 8\n"
                   "  %end = getelementptr i8, ptr addrspace(1) %first, i64 %bytes\n"
                   "  br label %fill\n"
                   "fill:\n"
                   "  %i = phi i64 [0, %entry], [%i_next, %fill]\n"
                   "  %at = phi ptr addrspace(1) [%first, %entry], [%at_next, %fill]\n"
                   "  call void @gc_poll()\n"
                   "  call void @write_number(ptr addrspace(1) %at, i64 %i)\n"
                   "  %at_next = getelementptr i8, ptr addrspace(1) %at, i64 8\n"
                   "  %i_next = add i64 %i, 1\n"
                   "  %is_more = icmp slt i64 %i_next, %count\n"
                   "  br i1 %is_more, label %fill, label %swap\n"
                   "swap:\n"
                   "  %front = phi ptr addrspace(1) [%first, %fill], [%front_next, %swap]\n"
                   "  %after = phi ptr addrspace(1) [%end, %fill], [%back, %swap]\n"
                   "  %left = phi i64 [%count, %fill], [%left_next, %swap]\n"
                   "  %back = getelementptr i8, ptr addrspace(1) %after, i64 -8\n"
                   "  call void @gc_poll()\n"
                   "  %low = call i64 @read_number(ptr addrspace(1) %front)\n"
                   "  %high = call i64 @read_number(ptr addrspace(1) %back)\n"
                   "  call void @write_number(ptr addrspace(1) %front, i64 %high)\n"
                   "  call void @write_number(ptr addrspace(1) %back, i64 %low)\n"
                   "  %front_next = getelementptr i8, ptr addrspace(1) %front, i64 8\n"
                   "  %left_next = sub i64 %left, 2\n"
                   "  %is_apart = icmp sgt i64 %left_next, 1\n"
                   "  br i1 %is_apart, label %swap, label %read\n"
                   "read:\n"
                   "  %from = phi ptr addrspace(1) [%first, %swap], [%from_next, %read]\n"
                   "  %j = phi i64 [0, %swap], [%j_next, %read]\n"
                   "  %sum = phi i64 [0, %swap], [%sum_next, %read]\n"
                   "  call void @gc_poll()\n"
                   "  %number = call i64 @read_number(ptr addrspace(1) %from)\n"
                   "  %times = mul i64 %sum, 3\n"
                   "  %sum_next = add i64 %times, %number\n"
                   "  %from_next = getelementptr i8, ptr addrspace(1) %from, i64 8\n"
                   "  %j_next = add i64 %j, 1\n"
                   "  %is_unread = icmp slt i64 %j_next, %count\n"
                   "  br i1 %is_unread, label %read, label %done\n"
                   "done:\n"
                   "  ret i64 %sum_next\n"
                   "}\n";

static int64_t sum_of_array(int64_t count)
{
    int64_t sum = 0;
    for (int64_t i = count - 1; i >= 0; i--)
        sum = 3 * sum + i;
    return sum;
}

START_TEST(pointers_into_an_array_move_with_it)
{
    enum { NUMBERS = 31 };
    load(array, &modes[_i]);
    ck_assert_int_eq(call(NUMBERS), sum_of_array(NUMBERS));
    check_counts();
    ck_assert_uint_gt(counts.interior, NUMBERS);
}
END_TEST

/* ---- Many frames ---- */

static const char recursion[] =
    MEMORY OUTSIDE "define i64 @f(i64 %depth) " COLLECTED " {\n"
                   "  %box = call ptr addrspace(1) @allocate(i64 0, i64 1)\n"
                   "  %number_at = getelementptr i8, ptr addrspace(1) %box, i64 16\n"
                   "  call void @write_number(ptr addrspace(1) %number_at, i64 %depth)\n"
                   "  %is_last = icmp eq i64 %depth, 0\n"
                   "  br i1 %is_last, label %last, label %more\n"
                   "last:\n"
                   "  call void @gc_poll()\n"
                   "  call void @gc_poll()\n"
                   "  br label %end\n"
                   "more:\n"
                   "  %less = sub i64 %depth, 1\n"
                   "  %below = call i64 @f(i64 %less)\n"
                   "  br label %end\n"
                   "end:\n"
                   "  %sum = phi i64 [0, %last], [%below, %more]\n"
                   "  %number = call i64 @read_number(ptr addrspace(1) %number_at)\n"
                   "  %all = add i64 %sum, %number\n"
                   "  ret i64 %all\n"
                   "}\n";

static int64_t sum_of_recursion(int64_t depth) { return depth * (depth + 1) / 2; }

START_TEST(each_of_many_frames_has_its_roots)
{
    enum { DEPTH = 1000 };
    load(recursion, &modes[_i]);
    ck_assert_int_eq(call(DEPTH), sum_of_recursion(DEPTH));
    ck_assert_uint_eq(counts.collections, 2);
    ck_assert_uint_eq(counts.frames, 2 * (DEPTH + 1));
    ck_assert_uint_eq(counts.moved, 2 * (DEPTH + 1));
}
END_TEST

/* ---- Deopt values ---- */

/* The code does not use one of the boxes any more: only the deopt values keep it alive. */
static const char deopt_values[] = MEMORY OUTSIDE
    "define i64 @f(i64 %count) " COLLECTED " {\n"
    "  %box = call ptr addrspace(1) @allocate(i64 0, i64 1)\n"
    "  %number_at = getelementptr i8, ptr addrspace(1) %box, i64 16\n"
    "  call void @write_number(ptr addrspace(1) %number_at, i64 123)\n"
    "  %unused = call ptr addrspace(1) @allocate(i64 0, i64 1)\n"
    "  %unused_at = getelementptr i8, ptr addrspace(1) %unused, i64 16\n"
    "  call void @write_number(ptr addrspace(1) %unused_at, i64 456)\n"
    "  %narrow = trunc i64 %count to i32\n"
    "  call void @gc_poll() [ \"deopt\"(i32 %narrow, ptr addrspace(1) %box, i64 -2,\n"
    "      ptr addrspace(1) %unused) ]\n"
    "  %number = call i64 @read_number(ptr addrspace(1) %number_at)\n"
    "  ret i64 %number\n"
    "}\n";

static struct cairn_value value_at(const struct cairn_exit_call *call, uint32_t index)
{
    struct cairn_value value;
    struct cairn_error error = {0};
    enum cairn_status status = cairn_frame_value(&call->frame, call->record, index, &value, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return value;
}

static void check_box(const struct cairn_value *value, uint64_t number, bool is_moved)
{
    const struct object *object = cairn_value_pointer(value);
    ck_assert(is_old(object) != is_moved);
    ck_assert_uint_eq(object->fields[0], number);
}

static void read_deopt_values(const struct cairn_exit_call *call, bool is_moved)
{
    ck_assert_uint_eq(cairn_record_live_value_count(call->record), 4);
    struct cairn_value narrow = value_at(call, 0);
    struct cairn_value box = value_at(call, 1);
    struct cairn_value constant = value_at(call, 2);
    struct cairn_value unused = value_at(call, 3);
    ck_assert_uint_eq(narrow.type.bits, 32);
    ck_assert_int_eq(cairn_value_signed(&narrow), -77);
    ck_assert_int_eq(cairn_value_signed(&constant), -2);
    check_box(&box, 123, is_moved);
    check_box(&unused, 456, is_moved);
}

START_TEST(deopt_values_are_read_before_and_after_objects_move)
{
    look = read_deopt_values;
    load(deopt_values, &modes[_i]);
    ck_assert_int_eq(call(-77), 123);
    check_counts();
}
END_TEST

/* ---- Allocas ---- */

#if LLVM_VERSION_MAJOR >= 15
#define STATEPOINT "llvm.experimental.gc.statepoint.p0"
#define STATEPOINT_TYPE "(i64, i32, ptr, i32, i32, ...)"
#define STATEPOINT_TARGET "ptr elementtype(void ()) @gc_poll"
#else
#define STATEPOINT "llvm.experimental.gc.statepoint.p0f_isVoidf"
#define STATEPOINT_TYPE "(i64, i32, void ()*, i32, i32, ...)"
#define STATEPOINT_TARGET "void ()* @gc_poll"
#endif

/* Two allocas of 8 and 16 bytes. The first holds 55 and is read again. */
#if LLVM_VERSION_MAJOR >= 15
#define STORE_IN_ALLOCA "  store i64 55, ptr %one\n"
#define LOAD_FROM_ALLOCA "  %number = load i64, ptr %one\n"
#define ALLOCAS "ptr %one, ptr %two"
#else
#define STORE_IN_ALLOCA "  store i64 55, i64* %one\n"
#define LOAD_FROM_ALLOCA "  %number = load i64, i64* %one\n"
#define ALLOCAS "i64* %one, [2 x i64]* %two"
#endif
static const char allocas[] =
    "declare void @gc_poll()\n"
    "declare token @" STATEPOINT STATEPOINT_TYPE "\n"
    "define i64 @f(i64 %x) " COLLECTED " {\n"
    "  %one = alloca i64\n"
    "  %two = alloca [2 x i64]\n" STORE_IN_ALLOCA "  %t = call token " STATEPOINT_TYPE
    " @" STATEPOINT "(i64 9, i32 0, " STATEPOINT_TARGET
    ", i32 0, i32 0, i32 0, i32 0) [ \"gc-live\"(" ALLOCAS ") ]\n" LOAD_FROM_ALLOCA
    "  ret i64 %number\n"
    "}\n";

static void change_alloca(const struct cairn_exit_call *call, bool is_moved)
{
    void *addresses[2] = {NULL, NULL};
    struct cairn_statepoint statepoint;
    if (is_moved)
        return;
    ck_assert_ok(cairn_record_statepoint(call->record, &statepoint, NULL));
    ck_assert_uint_eq(statepoint.alloca_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        struct cairn_value address;
        struct cairn_location location =
            cairn_record_location(call->record, statepoint.first_alloca + i);
        ck_assert_ok(
            cairn_frame_at_location(&call->frame, location, CAIRN_POINTER, &address, NULL));
        addresses[i] = cairn_value_pointer(&address);
    }
    ck_assert_int_eq(*(int64_t *)addresses[0], 55);
    ck_assert_ptr_ne(addresses[0], addresses[1]);
    *(int64_t *)addresses[0] = 66;
}

START_TEST(allocas_of_a_statepoint_have_their_addresses)
{
    static const struct mode plain = {2, "always-inline"};
    look = change_alloca;
    load(allocas, &plain);
    ck_assert_int_eq(call(0), 66);
}
END_TEST

/* ---- IDs ---- */

START_TEST(statepoints_of_the_pass_need_ids_of_their_own)
{
    struct cairn_error error = {0};
    uint64_t next_id = 100;
    cairn_declarations *declarations;
    LLVMModuleRef module = support_parse_valid(context, tree);
    run_passes(module, modes[0].passes);
    ck_assert_ok(cairn_declarations_create(NULL, &declarations, NULL));
    ck_assert_int_eq(scan_module(module, false, declarations, &error), CAIRN_ERROR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(error.message, "ID 2882400000 has two shapes"));
    ck_assert_ok(cairn_number_statepoints(module, &next_id, NULL));
    support_verify(module);
    ck_assert_ok(scan_module(module, false, declarations, NULL));
    ck_assert_uint_eq(cairn_declarations_count(declarations), next_id - 100);
    ck_assert_ptr_nonnull(cairn_declarations_find(declarations, 100));
    ck_assert_int_eq(cairn_number_statepoints(NULL, &next_id, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_number_statepoints(module, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    cairn_declarations_destroy(declarations);
    LLVMDisposeModule(module);
}
END_TEST

/* ---- Registers ---- */

/* LLVM's options apply to the whole process, so this is the last test. If Check forks, it has its
 * own process. */
static const struct {
    const char *text;
    int64_t (*result)(int64_t);
} programs[] = {
    {tree, sum_of_tree},
    {list, sum_of_list},
    {array, sum_of_array},
    {recursion, sum_of_recursion},
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

START_TEST(roots_may_be_in_registers)
{
    static const char *const options[] = {"test", "-fixup-allow-gcptr-in-csr",
                                          "-max-registers-for-gc-values=4"};
    enum { ARGUMENT = 5 };
    LLVMParseCommandLineOptions(3, options, NULL);
    load(programs[_i].text, &modes[1]);
    ck_assert_int_eq(call(ARGUMENT), programs[_i].result(ARGUMENT));
    check_counts();
    ck_assert_uint_gt(counts.registers, 0);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("roots");
    TCase *moving = tcase_create("moving");
    tcase_add_checked_fixture(moving, set_up, tear_down);
    tcase_add_loop_test(moving, a_tree_that_moves_as_a_whole_stays_intact, 0, MODES);
    tcase_add_loop_test(moving, a_list_is_built_and_reversed_while_it_moves, 0, MODES);
    tcase_add_loop_test(moving, pointers_into_an_array_move_with_it, 0, MODES);
    tcase_add_loop_test(moving, each_of_many_frames_has_its_roots, 0, MODES);
    tcase_add_loop_test(moving, deopt_values_are_read_before_and_after_objects_move, 0, MODES);
    tcase_add_test(moving, allocas_of_a_statepoint_have_their_addresses);
    tcase_add_test(moving, statepoints_of_the_pass_need_ids_of_their_own);
    suite_add_tcase(suite, moving);
    TCase *registers = tcase_create("registers");
    tcase_add_checked_fixture(registers, set_up, tear_down);
    tcase_add_loop_test(registers, roots_may_be_in_registers, 0, PROGRAMS);
    suite_add_tcase(suite, registers);
    return suite;
}

int main(void)
{
    enum { SKIPPED = 77 };
    if (support_has_statepoints())
        return support_main(make_suite());
    puts("skipped: LLVM cannot select statepoints for this architecture");
    return SKIPPED;
}
