/*
 * inline_cache: compiled code that reads and writes properties of objects through inline caches.
 * The code does not know where properties are. The cache of each patch point learns it from the
 * objects that the code accesses.
 *
 *     cc inline_cache.c $(pkg-config --cflags --libs cairn-llvm)
 *
 * A loop adds up the property "x" of many objects: of one shape, then of two, of three and of ten.
 * Another loop writes the property, and marks the cards of the objects for a generational
 * collector. Objects without the property inherit it from a prototype, and get it by a write. A
 * third loop keeps its cases in a table when there are many shapes. A fourth one reads items of
 * lists.
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
#include <string.h>
#include <time.h>

enum { OBJECTS = 600, PASSES = 20 };

/* The sites, by the IDs of their patch points. */
enum site { READ_ID = 1, WRITE_ID, READ_MANY_ID, ITEM_ID };

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
enum { FIELDS = 6, SHAPES = 10, ITEMS = 4 };

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

/* A list: the first field is the number of its items, which are the fields after it. */
static const struct shape list_shape;

static struct object objects[OBJECTS];
static struct object *order[OBJECTS];

/* The collector's cards: a byte for each 512 bytes of the heap says whether something was written
 * there since the last collection. */
enum { CARD_SHIFT = 9 };
static uint8_t cards[(sizeof objects >> CARD_SHIFT) + 2];

/* Returns what makes the address of an object, shifted, the address of its card. */
static uint64_t first_card(void) { return (uintptr_t)cards - ((uintptr_t)objects >> CARD_SHIFT); }

static uint8_t *card_of(const struct object *object)
{
    return &cards[((uintptr_t)object >> CARD_SHIFT) - ((uintptr_t)objects >> CARD_SHIFT)];
}

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
    found.barrier = (struct cairn_ic_barrier){
        .kind = CAIRN_IC_BARRIER_CARD, .card_shift = CARD_SHIFT, .card = 1, .cards = first_card()};
    object->fields[find(object->shape)] = cairn_value_signed(&miss->operands[1]);
    *card_of(object) = 1;
    check(cairn_ic_add(miss->ic, &found, CAIRN_RELAXED, &error), &error);
}

/* Reads the property of an object that inherits it, which no table can have as a case. All other
 * objects are left to the handler, which adds a case. A light handler takes the fifth part of the
 * time of a handler, because no frame is made for it. */
static bool read_lightly(cairn_ic *cache, const uint64_t *operands, uint64_t *result, void *unused)
{
    const struct object *object = (const struct object *)(uintptr_t)operands[0];
    (void)cache, (void)unused;
    if (object->shape != &bare)
        return false;
    *result = (uint64_t)read_property(object);
    return true;
}

/* Reads an item of a list. The list has no other items: they are 0. */
static void item_missed(struct cairn_ic_miss *miss, void *unused)
{
    struct cairn_error error;
    const struct object *list = cairn_value_pointer(&miss->operands[0]);
    uint64_t index = cairn_value_bits(&miss->operands[1]);
    bool is_item = index < (uint64_t)list->fields[0];
    const struct cairn_value value =
        cairn_value_of_integer(64, is_item ? list->fields[1 + index] : 0);
    const struct cairn_ic_case found = {
        .guard = {.operand = 0,
                  .offset = offsetof(struct object, shape),
                  .width = sizeof(void *),
                  .key = (uintptr_t)list->shape},
        .action = CAIRN_IC_LOAD,
        .field = {.offset = offsetof(struct object, fields[1]), .width = sizeof(int64_t)},
        .elements = {.index = 1, /* the second argument of the site */
                     .length_offset = offsetof(struct object, fields[0]),
                     .length_width = sizeof(int64_t)},
    };
    (void)unused;
    misses++;
    check(cairn_ic_return(miss, &value, &error), &error);
    check(cairn_ic_add(miss->ic, &found, CAIRN_RELAXED, &error), &error);
}

/* ---- 3. The loops as IR ---- */

struct ir {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMTypeRef int64;
    LLVMTypeRef pointer;
    LLVMValueRef function;
};

/* The caches of the sites. With more shapes than a cache has cases, the first one calls a function,
 * and the third one searches a table. Counting hits takes time and is optional. */
static const struct cairn_ic_options caches[] = {
    [READ_ID] = {.handler = read_missed,
                 .megamorphic_target = (const void *)(uintptr_t)read_property},
    [WRITE_ID] = {.handler = write_missed, .counts_hits = true},
    [READ_MANY_ID] = {.handler = read_missed, .light_handler = read_lightly, .has_table = true},
    [ITEM_ID] = {.handler = item_missed},
};

/* Builds a patch point that reads or writes the object's property, or reads an item. With the C
 * calling convention, a megamorphic site may call a C function. With anyregcc it may not, but all
 * registers are preserved, and operands may be in any register. The engine creates the cache of
 * each copy of the patch point that LLVM makes. */
static LLVMValueRef build_access(struct ir *ir, enum site id, LLVMValueRef object,
                                 LLVMValueRef value_or_index)
{
    struct cairn_error error;
    LLVMValueRef arguments[] = {object, value_or_index};
    const struct cairn_patchpoint patchpoint = {
        .id = id,
        .byte_count = cairn_patchpoint_inline_bytes(ir->module),
        .result_type = id == WRITE_ID ? NULL : ir->int64,
        .calling_convention =
            id == READ_ID ? CAIRN_CALLING_CONVENTION_C : CAIRN_CALLING_CONVENTION_ANYREG,
        .arguments = arguments,
        .argument_count = value_or_index == NULL ? 1 : 2,
        .cache = &caches[id],
    };
    LLVMValueRef result = cairn_build_patchpoint(ir->builder, &patchpoint, &error);
    if (result == NULL)
        fail(error.message);
    return result;
}

/* Builds the second argument of the site in a loop, if it has one. */
static LLVMValueRef build_argument(struct ir *ir, enum site id, LLVMValueRef i)
{
    if (id == ITEM_ID)
        return LLVMBuildAnd(ir->builder, i, LLVMConstInt(ir->int64, ITEMS - 1, 0), "");
    return id == WRITE_ID ? i : NULL;
}

/* Builds int64_t loop(struct object **objects, int64_t count), where count is at least 1. It
 * returns the sum, or gives each object its number. */
static void build_loop(struct ir *ir, const char *name, enum site id)
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
    LLVMValueRef value = build_access(ir, id, object, build_argument(ir, id, i));
    LLVMValueRef more = LLVMBuildAdd(ir->builder, sum, id == WRITE_ID ? one : value, "");
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
    build_loop(&ir, "read_all", READ_ID);
    build_loop(&ir, "write_all", WRITE_ID);
    build_loop(&ir, "read_many", READ_MANY_ID);
    build_loop(&ir, "add_items", ITEM_ID);
    LLVMDisposeBuilder(ir.builder);
    return ir.module;
}

/* ---- 4. The compiled functions ---- */

typedef int64_t compiled(struct object **objects, int64_t count);
static compiled *read_all;
static compiled *write_all;
static compiled *read_many;
static compiled *add_items;

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
static int64_t sum_by_table(void) { return read_many(order, OBJECTS); }

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
    cairn_ic_describe(read_cache, NULL, 0, &description);
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
    memset(cards, 0, sizeof cards);
    write_all(order, OBJECTS);
    for (size_t i = 0; i < OBJECTS; i++)
        if (objects[i].fields[find(objects[i].shape)] != (int64_t)i || *card_of(&objects[i]) != 1)
            return false;
    return true;
}

/* Objects of many shapes: the cache takes each of them into its table, at the first miss. Objects
 * that inherit the property are not in the table: a miss each time, for the light handler. */
static bool read_many_shapes(void)
{
    make_objects(SHAPES);
    misses = 0;
    bool is_right = sum_by_table() == sum_by_search() && misses >= SHAPES;
    misses = 0;
    is_right &= sum_by_table() == sum_by_search() && misses == 0;
    struct cairn_ic_description description;
    cairn_ic_describe(read_cache, NULL, 0, &description);
    printf("%2d shapes: %-11s, %" PRIu32 " cases in its table; an access takes %4.1f ns\n", SHAPES,
           cairn_ic_state_name(description.state), description.table_case_count,
           time_of(sum_by_table));
    for (size_t i = 0; i < OBJECTS; i++)
        objects[i].shape = &bare;
    is_right &= sum_by_table() == sum_by_search() && misses == 0;
    printf("inherited: an access takes %4.1f ns by the light handler\n", time_of(sum_by_table));
    return is_right && description.table_case_count == SHAPES;
}

/* Lists of three items, of which the loop reads four: each fourth access misses. */
static bool read_lists(void)
{
    for (size_t i = 0; i < OBJECTS; i++)
        objects[i] = (struct object){.shape = &list_shape, .fields = {ITEMS - 1, 10, 20, 30, -1}};
    misses = 0;
    int64_t sum = add_items(order, OBJECTS);
    printf("items of lists: %u of %d accesses miss\n", misses, OBJECTS);
    return sum == (int64_t)(OBJECTS / ITEMS) * (10 + 20 + 30) && misses == 1 + OBJECTS / ITEMS;
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
        changes[4 * CAIRN_IC_CASE_LIMIT_DEFAULT]; /* the program has four caches */
    size_t count;
};

static bool depends_on(const struct cairn_ic_case *described, uint64_t key)
{
    return described->guard.key == key || (described->changes_key && described->new_key == key) ||
           (described->holder.object != NULL && described->holder.guard.key == key);
}

/* Collects a change for each case of the shape. A visitor must not make the changes itself. A
 * megamorphic cache with a table only tells how many cases are there, so the shape's is removed
 * from it in any case. */
static bool collect_cases(const struct cairn_ic_description *description, void *user)
{
    struct dead_shape *dead = user;
    const struct object of_shape = {.shape = dead->shape};
    if (description->table_case_count > 0)
        dead->changes[dead->count++] = (struct cairn_ic_change){
            description->ic, CAIRN_IC_CHANGE_REMOVE, case_for(&of_shape, CAIRN_IC_LOAD)};
    for (uint32_t i = 0; i < description->case_count; i++)
        if (depends_on(&description->seen[i].entry, (uintptr_t)dead->shape))
            dead->changes[dead->count++] = (struct cairn_ic_change){
                description->ic, CAIRN_IC_CHANGE_REMOVE, description->seen[i].entry};
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
    printf("a shape died: %zu cases removed\n", dead.count);
    return dead.count == 2;
}

/* ---- 7. Run all of it ---- */

/* Prints what a compiler that optimises the code further would look at. */
static bool print_cache(const struct cairn_ic_description *description, void *unused)
{
    (void)unused;
    printf("site %" PRIu64 ": %s, %" PRIu32 " cases", description->id,
           cairn_ic_state_name(description->state), description->case_count);
    if (description->counts_hits)
        printf(", %" PRIu64 " misses", description->misses);
    for (uint32_t i = 0; i < description->seen_count; i++) {
        const struct cairn_ic_case *seen = &description->seen[i].entry;
        printf("\n    shape 0x%" PRIx64 ": field at %" PRId32, seen->guard.key, seen->field.offset);
        if (description->counts_hits)
            printf(", %" PRIu64 " hits", description->seen[i].hits);
    }
    puts("");
    return true;
}

static bool run(cairn_runtime *runtime)
{
    bool is_right = read_objects(1, CAIRN_IC_MONOMORPHIC);
    is_right &= read_objects(2, CAIRN_IC_POLYMORPHIC);
    is_right &= read_objects(3, CAIRN_IC_POLYMORPHIC);
    is_right &= read_objects(SHAPES, CAIRN_IC_MEGAMORPHIC);
    is_right &= write_objects(2);
    is_right &= read_and_write_bare_objects();
    is_right &= read_many_shapes();
    is_right &= read_lists();
    cairn_runtime_visit_ics(runtime, print_cache, NULL);
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
    check(cairn_engine_compile(engine, &error), &error);
    read_all = function_of(engine, "read_all");
    write_all = function_of(engine, "write_all");
    read_many = function_of(engine, "read_many");
    add_items = function_of(engine, "add_items");
    bool is_right = run(runtime);
    cairn_engine_destroy(engine);
    cairn_runtime_destroy(runtime);
    LLVMContextDispose(context);
    if (!is_right)
        fail("wrong");
    return 0;
}
