/*
 * inline_cache: compiled code that reads and writes properties of objects through inline caches.
 * The code does not know where properties are. The cache of each patch point learns it from the
 * objects that the code accesses.
 *
 *     cc inline_cache.c $(pkg-config --cflags --libs cairn-llvm)
 *
 * A loop adds up the property "x" of many objects: of one shape, then of two, of three and of ten.
 * Another loop writes the property. Objects without the property inherit it from a prototype, and
 * get it by a write.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/cairn.h>
#include <cairn/ic.h>
#include <cairn/llvm.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { OBJECTS = 600, PASSES = 20, READ_ID = 1, WRITE_ID = 2, REPORT_BYTES = 4096 };

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "inline_cache: %s\n", message);
    exit(1);
}

static void check(enum cairn_status status, const struct cairn_error *error)
{
    if (status != CAIRN_OK)
        fail(error->message);
}

/* ---- 1. Objects: an object's shape says which field holds which property ---- */

enum name { NO_NAME, X, Y, WIDTH, HEIGHT, COLOUR, LABEL };
enum { FIELDS = 6, SHAPES = 10 };

struct shape {
    enum name names[FIELDS];
};

struct object {
    const struct shape *shape;
    int64_t fields[FIELDS];
};

static const struct shape shapes[SHAPES] = {
    {{X, Y}},
    {{COLOUR, X, Y}},
    {{WIDTH, HEIGHT, X, Y}},
    {{LABEL, WIDTH, HEIGHT, X, Y}},
    {{Y, X}},
    {{LABEL, COLOUR, WIDTH, HEIGHT, X, Y}},
    {{COLOUR, WIDTH, HEIGHT, X, Y}},
    {{LABEL, X, Y}},
    {{LABEL, COLOUR, X, Y}},
    {{X, WIDTH}},
};

/* The shape of objects without the property, the one that they have once it is written, and the
 * object that they inherit it from. */
static const struct shape bare = {{Y}};
static const struct shape *const bare_and_property = &shapes[4];
static const struct object prototype = {&shapes[0], {1000}};

/* The property that code reads. It is volatile so that a compiler cannot specialise the search. */
static const volatile enum name property = X;

/* Finds the field of the property by a search, as a VM without caches does for each access. */
__attribute__((noinline)) static size_t find(const struct shape *shape)
{
    enum name name = property;
    for (size_t i = 0; i < FIELDS; i++)
        if (shape->names[i] == name)
            return i;
    fail("no such property");
}

/* Reads the property. A site also calls this function if it has seen more shapes than its cache can
 * hold. */
static int64_t read_property(const struct object *object)
{
    if (object->shape == &bare)
        object = &prototype;
    return object->fields[find(object->shape)];
}

static struct object objects[OBJECTS];
static struct object *order[OBJECTS];

/* Makes objects of the first `count` shapes, in turn. */
static void make_objects(size_t count)
{
    for (size_t i = 0; i < OBJECTS; i++) {
        objects[i] = (struct object){.shape = &shapes[i % count]};
        objects[i].fields[find(objects[i].shape)] = (int64_t)i;
        order[i] = &objects[i];
    }
}

static int64_t sum_by_search(void)
{
    int64_t sum = 0;
    for (size_t i = 0; i < OBJECTS; i++)
        sum += read_property(order[i]);
    return sum;
}

/* ---- 2. The handlers of misses, for objects that have no case in the cache ---- */

static unsigned misses;
static cairn_ic *read_cache; /* that of the site that reads; NULL before its first miss */

/* Returns a case for receivers of this shape. The receiver is the first argument of the site. */
static struct cairn_ic_case case_for(const struct object *object, enum cairn_ic_action action)
{
    size_t field = offsetof(struct object, fields) + sizeof(int64_t) * find(object->shape);
    return (struct cairn_ic_case){
        .guard = {.operand = 0,
                  .offset = offsetof(struct object, shape),
                  .width = sizeof(void *),
                  .key = (uintptr_t)object->shape},
        .action = action,
        .field = {.offset = (int32_t)field, .width = sizeof(int64_t)},
        .operand = 1, /* the value that a store writes */
    };
}

/* Changes the case of the prototype to one for the objects that inherit its property. */
static void inherit(struct cairn_ic_case *found)
{
    found->holder = (struct cairn_ic_holder){&prototype, found->guard};
    found->guard.key = (uintptr_t)&bare;
}

/* Reads the property, and adds a case for the next object of this shape. */
static void read_missed(struct cairn_ic_miss *miss, void *unused)
{
    struct cairn_error error;
    const struct object *object = cairn_value_pointer(&miss->operands[0]);
    const struct cairn_value value = cairn_value_of_integer(64, read_property(object));
    bool is_bare = object->shape == &bare;
    struct cairn_ic_case found = case_for(is_bare ? &prototype : object, CAIRN_IC_LOAD);
    (void)unused;
    if (is_bare)
        inherit(&found);
    misses++;
    read_cache = miss->ic;
    check(cairn_ic_return(miss, &value, &error), &error);
    check(cairn_ic_add(miss->ic, &found, CAIRN_RELAXED, &error), &error);
}

static void write_missed(struct cairn_ic_miss *miss, void *unused)
{
    struct cairn_error error;
    struct object *object = cairn_value_pointer(&miss->operands[0]);
    const struct shape *before = object->shape;
    (void)unused;
    if (before == &bare)
        object->shape = bare_and_property;
    struct cairn_ic_case found = case_for(object, CAIRN_IC_STORE);
    found.guard.key = (uintptr_t)before;
    found.changes_key = object->shape != before;
    found.new_key = found.changes_key ? (uintptr_t)object->shape : 0;
    object->fields[find(object->shape)] = cairn_value_signed(&miss->operands[1]);
    check(cairn_ic_add(miss->ic, &found, CAIRN_RELAXED, &error), &error);
}

/* ---- 3. Two loops as IR ---- */

struct ir {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMTypeRef int64;
    LLVMTypeRef pointer;
    LLVMValueRef function;
};

/* The caches of all sites that read, and of all that write. Counting hits takes time and is
 * optional. */
static const struct cairn_ic_options reading = {
    .handler = read_missed, .megamorphic_target = (const void *)(uintptr_t)read_property};
static const struct cairn_ic_options writing = {.handler = write_missed, .counts_hits = true};

/* Builds a patch point that reads the object's property, or writes it if `value` is not NULL. With
 * the C calling convention, a megamorphic site may call a C function. With anyregcc it may not, but
 * all registers are preserved, and operands may be in any register. The engine creates the cache of
 * each copy of the patch point that LLVM makes. */
static LLVMValueRef build_access(struct ir *ir, uint64_t id, LLVMValueRef object,
                                 LLVMValueRef value)
{
    struct cairn_error error;
    LLVMValueRef arguments[] = {object, value};
    const struct cairn_patchpoint patchpoint = {
        .id = id,
        .byte_count = cairn_patchpoint_inline_bytes(ir->module),
        .result_type = value == NULL ? ir->int64 : NULL,
        .calling_convention =
            value == NULL ? CAIRN_CALLING_CONVENTION_C : CAIRN_CALLING_CONVENTION_ANYREG,
        .arguments = arguments,
        .argument_count = value == NULL ? 1 : 2,
        .cache = value == NULL ? &reading : &writing,
    };
    LLVMValueRef result = cairn_build_patchpoint(ir->builder, &patchpoint, &error);
    if (result == NULL)
        fail(error.message);
    return result;
}

/* Builds int64_t loop(struct object **objects, int64_t count), where count is at least 1. It
 * returns the sum, or gives each object its number. */
static void build_loop(struct ir *ir, const char *name, uint64_t id, bool writes)
{
    LLVMTypeRef parameters[] = {LLVMPointerType(ir->pointer, 0), ir->int64};
    LLVMValueRef zero = LLVMConstInt(ir->int64, 0, 0);
    LLVMValueRef one = LLVMConstInt(ir->int64, 1, 0);
    ir->function = LLVMAddFunction(ir->module, name, LLVMFunctionType(ir->int64, parameters, 2, 0));
    cairn_prepare_function(ir->function);
    LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(ir->context, ir->function, "entry");
    LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(ir->context, ir->function, "body");
    LLVMBasicBlockRef end = LLVMAppendBasicBlockInContext(ir->context, ir->function, "end");
    LLVMPositionBuilderAtEnd(ir->builder, entry);
    LLVMBuildBr(ir->builder, body);

    LLVMPositionBuilderAtEnd(ir->builder, body);
    LLVMValueRef i = LLVMBuildPhi(ir->builder, ir->int64, "i");
    LLVMValueRef sum = LLVMBuildPhi(ir->builder, ir->int64, "sum");
    LLVMValueRef place =
        LLVMBuildGEP2(ir->builder, ir->pointer, LLVMGetParam(ir->function, 0), &i, 1, "");
    LLVMValueRef object = LLVMBuildLoad2(ir->builder, ir->pointer, place, "object");
    LLVMValueRef value = build_access(ir, id, object, writes ? i : NULL);
    LLVMValueRef more = LLVMBuildAdd(ir->builder, sum, writes ? one : value, "");
    LLVMValueRef next = LLVMBuildAdd(ir->builder, i, one, "");
    LLVMValueRef goes_on =
        LLVMBuildICmp(ir->builder, LLVMIntSLT, next, LLVMGetParam(ir->function, 1), "");
    LLVMBuildCondBr(ir->builder, goes_on, body, end);
    LLVMBasicBlockRef from[] = {entry, body};
    LLVMAddIncoming(i, (LLVMValueRef[]){zero, next}, from, 2);
    LLVMAddIncoming(sum, (LLVMValueRef[]){zero, more}, from, 2);

    LLVMPositionBuilderAtEnd(ir->builder, end);
    LLVMBuildRet(ir->builder, more);
}

static LLVMModuleRef build_module(LLVMContextRef context)
{
    struct ir ir = {
        .context = context,
        .module = LLVMModuleCreateWithNameInContext("inline_cache", context),
        .builder = LLVMCreateBuilderInContext(context),
        .int64 = LLVMInt64TypeInContext(context),
        .pointer = LLVMPointerType(LLVMInt8TypeInContext(context), 0),
    };
    build_loop(&ir, "read_all", READ_ID, false);
    build_loop(&ir, "write_all", WRITE_ID, true);
    LLVMDisposeBuilder(ir.builder);
    return ir.module;
}

/* ---- 4. The compiled functions ---- */

typedef int64_t compiled(struct object **objects, int64_t count);
static compiled *read_all;
static compiled *write_all;

static compiled *function_of(cairn_engine *engine, const char *name)
{
    struct cairn_error error;
    compiled *function;
    *(void **)&function = cairn_engine_function(engine, name, &error);
    if (function == NULL)
        fail(error.message);
    return function;
}

/* ---- 5. Run it ---- */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int64_t sum_by_cache(void) { return read_all(order, OBJECTS); }

/* Prevents the compiler from removing sums that are not used. */
static volatile int64_t last_sum;

/* Returns nanoseconds for each access: the shortest time of several passes. */
static double time_of(int64_t (*sum)(void))
{
    double shortest = 1e18;
    for (int i = 0; i < PASSES; i++) {
        double begun = now();
        last_sum = sum();
        double taken = now() - begun;
        shortest = taken < shortest ? taken : shortest;
    }
    return shortest / (double)OBJECTS;
}

static bool read_objects(size_t shape_count, enum cairn_ic_state expected)
{
    make_objects(shape_count);
    misses = 0;
    bool is_right = sum_by_cache() == sum_by_search();
    struct cairn_ic_description description;
    cairn_ic_describe(read_cache, &description);
    printf("%2zu shape%s %-11s, %" PRIu32 " cases, %3u misses in the first pass;", shape_count,
           shape_count == 1 ? ": " : "s:", cairn_ic_state_name(description.state),
           description.case_count, misses);
    printf(" an access takes %4.1f ns, a search %4.1f ns\n", time_of(sum_by_cache),
           time_of(sum_by_search));
    return is_right && description.state == expected;
}

static bool write_objects(size_t shape_count)
{
    make_objects(shape_count);
    for (size_t i = 0; i < OBJECTS; i++)
        objects[i].fields[find(objects[i].shape)] = -1;
    write_all(order, OBJECTS);
    for (size_t i = 0; i < OBJECTS; i++)
        if (objects[i].fields[find(objects[i].shape)] != (int64_t)i)
            return false;
    return true;
}

/* Objects without the property are read, and then get it by a transition. */
static bool read_and_write_bare_objects(void)
{
    struct cairn_error error;
    const struct cairn_ic_change reset = {.ic = read_cache, .kind = CAIRN_IC_CHANGE_RESET};
    check(cairn_ics_change(&reset, 1, CAIRN_RELAXED, &error), &error);
    make_objects(1);
    for (size_t i = 0; i < OBJECTS; i++)
        objects[i].shape = &bare;
    misses = 0;
    bool is_right = sum_by_cache() == OBJECTS * prototype.fields[0] && misses == 1;
    write_all(order, OBJECTS);
    for (size_t i = 0; i < OBJECTS; i++)
        is_right &= objects[i].shape == bare_and_property && read_property(order[i]) == (int64_t)i;
    return is_right;
}

/* ---- 6. A shape dies ---- */

struct dead_shape {
    const struct shape *shape;
    struct cairn_ic_change
        changes[2 * CAIRN_IC_CASE_LIMIT_DEFAULT]; /* the program has two caches */
    size_t count;
};

static bool depends_on(const struct cairn_ic_case *described, uint64_t key)
{
    return described->guard.key == key || (described->changes_key && described->new_key == key) ||
           (described->holder.object != NULL && described->holder.guard.key == key);
}

/* Collects a change for each case of the shape. A visitor must not make the changes itself. */
static bool collect_cases(const struct cairn_ic_description *description, void *user)
{
    struct dead_shape *dead = user;
    for (uint32_t i = 0; i < description->case_count; i++)
        if (depends_on(&description->cases[i], (uintptr_t)dead->shape))
            dead->changes[dead->count++] = (struct cairn_ic_change){
                description->ic, CAIRN_IC_CHANGE_REMOVE, description->cases[i]};
    return true;
}

/* Removes the shape from all caches with one barrier. After a grace period, its memory can become
 * another shape. */
static bool remove_shape(cairn_runtime *runtime, const struct shape *shape)
{
    struct cairn_error error;
    struct dead_shape dead = {.shape = shape};
    cairn_runtime_visit_ics(runtime, collect_cases, &dead);
    check(cairn_ics_change(dead.changes, dead.count, CAIRN_SYNC, &error), &error);
    printf("a shape died: %zu case removed\n", dead.count);
    return dead.count == 1;
}

/* ---- 7. Run all of it ---- */

static bool run(cairn_runtime *runtime)
{
    static char report[REPORT_BYTES];
    bool is_right = read_objects(1, CAIRN_IC_MONOMORPHIC);
    is_right &= read_objects(2, CAIRN_IC_POLYMORPHIC);
    is_right &= read_objects(3, CAIRN_IC_POLYMORPHIC);
    is_right &= read_objects(SHAPES, CAIRN_IC_MEGAMORPHIC);
    is_right &= write_objects(2);
    is_right &= read_and_write_bare_objects();
    cairn_runtime_format_ics(runtime, report, sizeof report);
    printf("%s", report);
    is_right &= remove_shape(runtime, &shapes[1]);
    cairn_runtime_quiesce(runtime); /* frees the old code of the caches */
    return is_right;
}

int main(void)
{
    struct cairn_error error;
    cairn_runtime *runtime;
    cairn_engine *engine;
    const struct cairn_engine_options options = {.optimisation_level = 2};
    LLVMContextRef context = LLVMContextCreate();
    check(cairn_runtime_create(NULL, &runtime, &error), &error);
    check(cairn_engine_create(runtime, build_module(context), &options, &engine, &error), &error);
    read_all = function_of(engine, "read_all");
    write_all = function_of(engine, "write_all");
    bool is_right = run(runtime);
    cairn_engine_destroy(engine);
    cairn_runtime_destroy(runtime);
    LLVMContextDispose(context);
    if (!is_right)
        fail("wrong");
    return 0;
}
