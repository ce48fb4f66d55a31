/*
 * Tests of MCJIT with Cairn's code memory, from IR to patched code, and of its failures.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm_support.h"

#include "tests/machine.h"
#include "llvm/version.h"

#include <llvm-c/Linker.h>
#include <llvm-c/Target.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if LLVM_HAS_OPAQUE_POINTERS
#define INT64_POINTER "ptr"
#else
#define INT64_POINTER "i64*"
#endif

static LLVMContextRef context;
static cairn_runtime *runtime;

static void set_up(void)
{
    context = LLVMContextCreate();
    ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL));
}

static void tear_down(void)
{
    cairn_runtime_destroy(runtime);
    LLVMContextDispose(context);
}

/* Adds `int64_t NAME(int64_t x)`: a patch point with a null target, which returns its argument. */
static LLVMModuleRef parse_site(const char *name, unsigned id)
{
    char text[1024];
    snprintf(text, sizeof text,
             SUPPORT_INTRINSICS
             "define i64 @%s(i64 %%x) {\n"
             "  %%r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(\n"
             "      i64 %u, i32 16, ptr null, i32 1, i64 %%x)\n"
             "  ret i64 %%r\n"
             "}\n",
             name, id);
    return support_parse_valid(context, text);
}

static LLVMModuleRef parse_constant(const char *name, int value)
{
    char text[256];
    snprintf(text, sizeof text, "define i64 @%s(i64 %%x) {\n  ret i64 %d\n}\n", name, value);
    return support_parse_valid(context, text);
}

static LLVMModuleRef parse_call(const char *name, const char *callee)
{
    char text[256];
    snprintf(text, sizeof text,
             "declare i64 @%s(i64)\n"
             "define i64 @%s(i64 %%x) {\n"
             "  %%r = call i64 @%s(i64 %%x)\n"
             "  ret i64 %%r\n"
             "}\n",
             callee, name, callee);
    return support_parse_valid(context, text);
}

static cairn_engine *create_engine(LLVMModuleRef module)
{
    struct cairn_error error = {0};
    cairn_engine *engine = NULL;
    enum cairn_status status = cairn_engine_create(runtime, module, NULL, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return engine;
}

static void add(cairn_engine *engine, LLVMModuleRef module)
{
    struct cairn_error error = {0};
    enum cairn_status status = cairn_engine_add_module(engine, module, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}

typedef int64_t function(int64_t x);

static function *get(cairn_engine *engine, const char *name)
{
    struct cairn_error error = {0};
    void *address = cairn_engine_function(engine, name, &error);
    ck_assert_msg(address != NULL, "%s", error.message);
    return (function *)(uintptr_t)address;
}

static int64_t add_hundred(int64_t x) { return x + 100; }
static int64_t add_thousand(int64_t x) { return x + 1000; }

static void call_target(uint64_t id, function *target)
{
    struct cairn_error error = {0};
    cairn_site *site = cairn_runtime_find_site(runtime, id, &error);
    ck_assert_msg(site != NULL, "%s", error.message);
    enum cairn_status status =
        cairn_site_call(site, (const void *)(uintptr_t)target, CAIRN_RELAXED, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}

static struct cairn_runtime_statistics statistics(void)
{
    struct cairn_runtime_statistics result;
    cairn_runtime_statistics(runtime, &result);
    return result;
}

/* ---- Loading and patching ---- */

START_TEST(site_is_found_and_patched)
{
    cairn_engine *engine = create_engine(parse_site("f", 7));
    function *f = get(engine, "f");
    struct cairn_record record;
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 7, &record, 1), 1);
    struct cairn_record by_address;
    ck_assert(cairn_runtime_find_address(runtime, cairn_record_address(record), &by_address));
    ck_assert_uint_eq(cairn_record_address(by_address), cairn_record_address(record));
    ck_assert_str_eq(cairn_record_declaration(record)->function, "f");
    cairn_module *module = cairn_runtime_find_module(runtime, (uintptr_t)f);
    ck_assert_ptr_eq(cairn_record_module(record), module);
    ck_assert_str_eq(cairn_module_name(module), "mcjit");

    call_target(7, add_hundred);
    ck_assert_int_eq(f(5), 105);
    call_target(7, add_thousand);
    ck_assert_int_eq(f(5), 1005);
    cairn_engine_destroy(engine);
}
END_TEST

START_TEST(engine_without_a_runtime_has_one_of_its_own)
{
    cairn_engine *engine;
    ck_assert_ok(cairn_engine_create(NULL, parse_site("f", 7), NULL, &engine, NULL));
    cairn_site *site = cairn_engine_site(engine, 7, NULL);
    ck_assert_ptr_nonnull(site);
    ck_assert_ok(cairn_site_call(site, (void *)(uintptr_t)add_hundred, CAIRN_SYNC, NULL));
    ck_assert_int_eq(get(engine, "f")(5), 105);
    ck_assert_ptr_null(cairn_runtime_find_site(runtime, 7, NULL));
    ck_assert_ptr_null(cairn_engine_site(engine, 8, NULL));
    cairn_engine_destroy(engine);
}
END_TEST

START_TEST(every_optimisation_level_works)
{
    struct cairn_engine_options options = {.optimisation_level = (unsigned)_i};
    cairn_engine *engine;
    ck_assert_ok(cairn_engine_create(runtime, parse_site("f", 7), &options, &engine, NULL));
    function *f = get(engine, "f");
    call_target(7, add_hundred);
    ck_assert_int_eq(f(1), 101);
    cairn_engine_destroy(engine);
}
END_TEST

START_TEST(modules_are_added_and_loaded_together_or_later)
{
    cairn_engine *engine = create_engine(parse_site("f", 1));
    add(engine, parse_site("g", 2));
    function *f = get(engine, "f");
    function *g = get(engine, "g");
    ck_assert_uint_eq(statistics().module_count, 1);
    add(engine, parse_site("h", 3));
    function *h = get(engine, "h");
    ck_assert_uint_eq(statistics().module_count, 2);
    call_target(1, add_hundred);
    call_target(2, add_thousand);
    call_target(3, add_hundred);
    ck_assert_int_eq(f(1), 101);
    ck_assert_int_eq(g(1), 1001);
    ck_assert_int_eq(h(2), 102);
    cairn_engine_destroy(engine);
    ck_assert_uint_eq(statistics().module_count, 0);
}
END_TEST

START_TEST(modules_call_each_other)
{
    cairn_engine *engine = create_engine(support_parse_valid(context, "declare i64 @g(i64)\n"
                                                                      "define i64 @f(i64 %x) {\n"
                                                                      "  %r = call i64 @g(i64 %x)\n"
                                                                      "  ret i64 %r\n"
                                                                      "}\n"));
    add(engine, parse_site("g", 2));
    function *f = get(engine, "f");
    call_target(2, add_hundred);
    ck_assert_int_eq(f(3), 103);
    cairn_engine_destroy(engine);
}
END_TEST

START_TEST(an_id_may_come_again_in_a_later_module)
{
    cairn_engine *engine = create_engine(parse_site("f", 1));
    get(engine, "f");
    LLVMModuleRef other = support_parse_valid(
        context, SUPPORT_INTRINSICS
        "define void @g() {\n"
        "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 5)\n"
        "  ret void\n}\n");
    add(engine, other);
    get(engine, "g");
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 1, NULL, 0), 2);
    cairn_engine_destroy(engine);
}
END_TEST

START_TEST(two_shapes_of_an_id_loaded_together_conflict)
{
    cairn_engine *engine = create_engine(parse_site("f", 1));
    LLVMModuleRef other = support_parse_valid(
        context, SUPPORT_INTRINSICS
        "define void @g() {\n"
        "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 5)\n"
        "  ret void\n}\n");
    struct cairn_error error = {0};
    ck_assert_int_eq(cairn_engine_add_module(engine, other, &error), CAIRN_ERROR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(error.message, "g"));
    LLVMDisposeModule(other);
    function *f = get(engine, "f");
    call_target(1, add_hundred);
    ck_assert_int_eq(f(3), 103);
    cairn_engine_destroy(engine);
}
END_TEST

/* ---- One ID with two shapes ---- */

/* A patch point of 16 bytes and a stack map of an i64. */
#define TWO_SHAPES                                                                                 \
    SUPPORT_INTRINSICS                                                                             \
    "define i64 @f(i64 %x) {\n"                                                                    \
    "  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(\n"               \
    "      i64 1, i32 16, ptr null, i32 1, i64 %x)\n"                                              \
    "  ret i64 %r\n}\n"                                                                            \
    "define void @g(i64 %x) {\n"                                                                   \
    "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %x)\n"              \
    "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, i64 %x)\n"              \
    "  ret void\n}\n"

static cairn_engine *create_engine_with(enum cairn_id_conflicts id_conflicts, LLVMModuleRef module)
{
    struct cairn_error error = {0};
    struct cairn_engine_options options = {.memory_manager = {.id_conflicts = id_conflicts}};
    cairn_engine *engine = NULL;
    enum cairn_status status = cairn_engine_create(runtime, module, &options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return engine;
}

/* Returns record number `index` of the function at `address`. */
static struct cairn_record record_of(uint64_t address, uint32_t index)
{
    cairn_module *module = cairn_runtime_find_module(runtime, address);
    ck_assert_ptr_nonnull(module);
    struct cairn_function found;
    ck_assert(cairn_table_find_function(cairn_module_table(module), address, &found));
    ck_assert_uint_gt(found.record_count, index);
    return (struct cairn_record){cairn_module_table(module), found.first_record + index};
}

START_TEST(error_of_an_id_with_two_shapes_names_the_choice)
{
    struct cairn_error error = {0};
    cairn_engine *engine = NULL;
    LLVMModuleRef module = support_parse_valid(context, TWO_SHAPES);
    ck_assert_int_eq(cairn_engine_create(runtime, module, NULL, &engine, &error),
                     CAIRN_ERROR_CONFLICT);
    ck_assert_msg(strstr(error.message, "ID 1 has two shapes: in 'f' and in 'g'") != NULL, "%s",
                  error.message);
    ck_assert_msg(strstr(error.message, "id_conflicts") != NULL, "%s", error.message);
    ck_assert_ptr_null(LLVMGetFirstGlobal(module)); /* not a marker */
    LLVMDisposeModule(module);
}
END_TEST

START_TEST(calls_with_an_id_of_two_shapes_are_renumbered)
{
    cairn_engine *engine =
        create_engine_with(CAIRN_ID_CONFLICTS_RENUMBERED, support_parse_valid(context, TWO_SHAPES));
    struct cairn_record f = record_of((uintptr_t)get(engine, "f"), 0);
    struct cairn_record g = record_of((uintptr_t)get(engine, "g"), 0);
    ck_assert_uint_eq(cairn_record_id(f), UINT64_C(1) << 31);
    ck_assert_uint_eq(cairn_record_id(g), (UINT64_C(1) << 31) + 1);
    ck_assert_int_eq(cairn_record_declaration(f)->kind, CAIRN_RECORD_PATCHPOINT);
    ck_assert_int_eq(cairn_record_declaration(g)->kind, CAIRN_RECORD_STACKMAP);
    ck_assert_ptr_nonnull(cairn_record_site(f));
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 2, NULL, 0), 1); /* unchanged */
    cairn_engine_destroy(engine);
}
END_TEST

/* The calls that got the ID before are loaded, and no longer in conflict with anything. */
START_TEST(id_that_a_call_was_given_is_not_that_of_a_later_call)
{
    cairn_engine *engine =
        create_engine_with(CAIRN_ID_CONFLICTS_RENUMBERED, support_parse_valid(context, TWO_SHAPES));
    get(engine, "f");
    add(engine,
        support_parse_valid(
            context, SUPPORT_INTRINSICS
            "define void @h(i32 %x) {\n"
            "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2147483648, i32 0, i32 "
            "%x)\n"
            "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2147483650, i32 0, i32 "
            "%x)\n"
            "  ret void\n}\n"));
    struct cairn_record h = record_of((uintptr_t)get(engine, "h"), 0);
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, UINT64_C(1) << 31, NULL, 0), 1);
    ck_assert_uint_eq(cairn_record_id(h), (UINT64_C(1) << 31) + 3);
    ck_assert_uint_eq(cairn_record_declaration(h)->types[0].bits, 32);
    ck_assert_uint_eq(cairn_record_id(record_of((uintptr_t)get(engine, "h"), 1)),
                      (UINT64_C(1) << 31) + 2);
    cairn_engine_destroy(engine);
}
END_TEST

START_TEST(records_with_an_id_of_two_shapes_are_left_undeclared)
{
    cairn_engine *engine =
        create_engine_with(CAIRN_ID_CONFLICTS_UNDECLARED, support_parse_valid(context, TWO_SHAPES));
    struct cairn_record f = record_of((uintptr_t)get(engine, "f"), 0);
    ck_assert_uint_eq(cairn_record_id(f), 1);
    ck_assert_ptr_null(cairn_record_declaration(f));
    ck_assert_ptr_null(cairn_record_site(f));
    struct cairn_record other;
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 2, &other, 1), 1);
    ck_assert_ptr_nonnull(cairn_record_declaration(other));
    cairn_engine_destroy(engine);
}
END_TEST

/* The two modules are loaded together and conflict with each other. Within one module, whether it
 * is loaded alone or not, the ID has one shape. */
START_TEST(id_conflicts_between_modules_are_resolved)
{
    bool renumbers = _i % 2 == 0;
    bool conflicts_alone = _i / 2 == 1;
    cairn_engine *engine = create_engine_with(
        renumbers ? CAIRN_ID_CONFLICTS_RENUMBERED : CAIRN_ID_CONFLICTS_UNDECLARED,
        conflicts_alone ? support_parse_valid(context, TWO_SHAPES) : parse_site("f", 1));
    LLVMModuleRef other = support_parse_valid(
        context, SUPPORT_INTRINSICS
        "define void @h(i32 %x) {\n"
        "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i32 %x)\n"
        "  ret void\n}\n");
    add(engine, other);
    struct cairn_record f = record_of((uintptr_t)get(engine, "f"), 0);
    struct cairn_record h = record_of((uintptr_t)get(engine, "h"), 0);
    if (renumbers) {
        ck_assert_uint_ne(cairn_record_id(f), cairn_record_id(h));
        ck_assert_int_eq(cairn_record_declaration(f)->kind, CAIRN_RECORD_PATCHPOINT);
        ck_assert_uint_eq(cairn_record_declaration(h)->types[0].bits, 32);
    } else {
        ck_assert_ptr_null(cairn_record_declaration(f));
        ck_assert_ptr_null(cairn_record_declaration(h));
    }
    cairn_engine_destroy(engine);
}
END_TEST

START_TEST(engines_of_one_runtime_are_disposed_of_in_any_order)
{
    enum { ENGINES = 3 };
    static const int orders[][ENGINES] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}};
    cairn_engine *engines[ENGINES];
    int64_t (*functions[ENGINES])(int64_t) = {NULL};
    for (int i = 0; i < ENGINES; i++) {
        engines[i] = create_engine(parse_site("f", (unsigned)i));
        functions[i] = get(engines[i], "f");
        call_target((uint64_t)i, add_hundred);
    }
    for (int i = 0; i < ENGINES; i++) {
        for (int k = i; k < ENGINES; k++)
            ck_assert_int_eq(functions[orders[_i][k]](k), 100 + k);
        cairn_engine_destroy(engines[orders[_i][i]]);
        ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 1);
        ck_assert_uint_eq(statistics().module_count, ENGINES - 1 - (unsigned)i);
    }
}
END_TEST

/* The module's memory is kept until LLVM has deregistered its unwind tables. */
START_TEST(module_of_an_engine_may_be_retired_before_the_engine_is_disposed_of)
{
    bool quiesces_between = _i % 2 == 1;
    cairn_engine *engine = create_engine(parse_site("f", 1));
    add(engine, parse_site("g", 2));
    uint64_t f = (uintptr_t)get(engine, "f");
    add(engine, parse_constant("h", 3));
    function *h = get(engine, "h");
    cairn_module_retire(cairn_runtime_find_module(runtime, f));
    if (quiesces_between)
        ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 0);
    struct cairn_error error = {0};
    ck_assert_ptr_null(cairn_runtime_find_module(runtime, f));
    ck_assert_ptr_null(cairn_runtime_find_site(runtime, 1, NULL));
    ck_assert_ptr_null(cairn_engine_function(engine, "f", &error));
    ck_assert_int_eq(error.status, CAIRN_ERROR_NOT_FOUND);
    ck_assert_msg(strstr(error.message, "retired") != NULL, "%s", error.message);
    ck_assert_int_eq(h(0), 3);
    /* The next module does not reuse the addresses of the retired code. */
    add(engine, parse_call("caller", "later"));
    add(engine, parse_constant("later", 4));
    ck_assert_int_eq(get(engine, "caller")(0), 4);
    cairn_engine_destroy(engine);
    ck_assert_uint_eq(statistics().retired_count, 3);
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 3);
    ck_assert_uint_eq(statistics().code_bytes, 0);
}
END_TEST

START_TEST(module_of_an_engine_may_be_retired_after_the_engine_is_disposed_of)
{
    cairn_engine *engine = create_engine(parse_site("f", 1));
    cairn_module *module = cairn_runtime_find_module(runtime, (uintptr_t)get(engine, "f"));
    cairn_module_retain(module);
    cairn_engine_destroy(engine);
    cairn_module_retire(module);
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 0);
    cairn_module_retire(module);
    ck_assert_str_eq(cairn_module_name(module), "mcjit");
    cairn_module_release(module);
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 1);
    cairn_module_release(NULL);
}
END_TEST

START_TEST(runtime_may_go_while_its_modules_have_shares)
{
    cairn_engine *engine = create_engine(parse_site("f", 1));
    cairn_module *module = cairn_runtime_find_module(runtime, (uintptr_t)get(engine, "f"));
    cairn_module_retain(module);
    cairn_module_retire(module);
    cairn_runtime_destroy(runtime);
    cairn_engine_destroy(engine); /* the last owner of the runtime: everything is released */
    ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL));
}
END_TEST

START_TEST(host_may_give_the_runtime_up_first)
{
    cairn_engine *engine = create_engine(parse_site("f", 1));
    function *f = get(engine, "f");
    call_target(1, add_hundred);
    cairn_runtime_destroy(runtime);
    ck_assert_int_eq(f(1), 101);
    cairn_engine_destroy(engine);
    ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL));
}
END_TEST

START_TEST(engine_may_go_without_being_finalised)
{
    cairn_engine *engine = create_engine(parse_site("f", 1));
    cairn_engine_destroy(engine);
    ck_assert_uint_eq(statistics().module_count, 0);
    cairn_engine_destroy(NULL);
}
END_TEST

START_TEST(module_without_functions_loads)
{
    cairn_engine *engine = create_engine(LLVMModuleCreateWithNameInContext("empty", context));
    ck_assert_ok(cairn_engine_finalise(engine, NULL));
    add(engine, parse_constant("f", 5));
    ck_assert_int_eq(get(engine, "f")(0), 5);
    cairn_engine_destroy(engine);
}
END_TEST

START_TEST(globals_and_constants_are_relocated)
{
    cairn_engine *engine = create_engine(
        support_parse_valid(context, "@counter = global i64 40\n"
                                     "define i64 @f(i64 %x) {\n"
                                     "  %address = ptrtoint " INT64_POINTER " @counter to i64\n"
                                     "  %p = inttoptr i64 %address to " INT64_POINTER "\n"
                                     "  %old = atomicrmw add " INT64_POINTER " %p, i64 %x seq_cst\n"
                                     "  ret i64 %old\n"
                                     "}\n"));
    function *f = get(engine, "f");
    ck_assert_int_eq(f(2), 40);
    ck_assert_int_eq(f(2), 42);
    cairn_engine_destroy(engine);
}
END_TEST

static void *use_an_engine(void *unused)
{
    (void)unused;
    LLVMContextRef own = LLVMContextCreate();
    for (int i = 0; i < 5; i++) {
        LLVMModuleRef module =
            support_parse_valid(own, "define i64 @f(i64 %x) {\n  ret i64 17\n}\n");
        cairn_engine *engine = NULL;
        if (cairn_engine_create(runtime, module, NULL, &engine, NULL) != CAIRN_OK)
            return own;
        int64_t result = get(engine, "f")(0);
        cairn_engine_destroy(engine);
        if (result != 17)
            return own;
    }
    LLVMContextDispose(own);
    return NULL;
}

START_TEST(threads_have_engines_of_their_own)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, use_an_engine, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
    }
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 5 * THREADS);
}
END_TEST

/* ---- Hooks ---- */

struct hooks {
    int before;
    int after;
    cairn_module *module;
    enum cairn_status written;
    bool found_before;
    bool found_after;
};

static void before(cairn_module *module, void *user)
{
    uint8_t code[8];
    size_t size = machine_set(code, 77);
    struct hooks *hooks = user;
    hooks->before++;
    hooks->module = module;
    struct cairn_record record;
    hooks->found_before = cairn_runtime_find_id(runtime, 7, &record, 1) != 0;
    hooks->written =
        cairn_site_write(cairn_module_site(module, 0), code, size, CAIRN_RELAXED, NULL);
}

static void after(cairn_module *module, void *user)
{
    struct hooks *hooks = user;
    hooks->after += hooks->module == module;
    struct cairn_record record;
    hooks->found_after = cairn_runtime_find_id(runtime, 7, &record, 1) == 1;
}

START_TEST(hooks_see_the_module_before_and_after_publication)
{
    struct hooks hooks = {0};
    struct cairn_engine_options options = {
        .memory_manager = {
            .name = "mine", .before_publish = before, .after_publish = after, .user = &hooks}};
    cairn_engine *engine;
    ck_assert_ok(cairn_engine_create(runtime, parse_site("f", 7), &options, &engine, NULL));
    function *f = get(engine, "f");
    ck_assert_int_eq(hooks.before, 1);
    ck_assert_int_eq(hooks.after, 1);
    ck_assert(!hooks.found_before);
    ck_assert(hooks.found_after);
    ck_assert_str_eq(cairn_module_name(hooks.module), "mine");
    ck_assert_ok(hooks.written);
    ck_assert_int_eq(f(1), 77);
    cairn_engine_destroy(engine);
}
END_TEST

/* ---- Hosts that create their engines themselves ---- */

static LLVMExecutionEngineRef create_llvm_engine(LLVMModuleRef module,
                                                 cairn_memory_manager *manager)
{
    struct LLVMMCJITCompilerOptions options;
    LLVMExecutionEngineRef engine;
    char *message = NULL;
    LLVMLinkInMCJIT();
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    LLVMInitializeMCJITCompilerOptions(&options, sizeof options);
    options.MCJMM = cairn_memory_manager_llvm(manager);
    if (LLVMCreateMCJITCompilerForModule(&engine, module, &options, sizeof options, &message) != 0)
        ck_abort_msg("%s", message);
    return engine;
}

START_TEST(memory_manager_serves_an_engine_of_the_host)
{
    cairn_memory_manager *manager;
    ck_assert_ok(cairn_memory_manager_create(runtime, NULL, &manager, NULL));
    LLVMModuleRef module = parse_site("f", 7);
    ck_assert_ok(cairn_memory_manager_declare(manager, module, NULL));
    LLVMExecutionEngineRef engine = create_llvm_engine(module, manager);
    function *f = (function *)(uintptr_t)LLVMGetFunctionAddress(engine, "f");
    ck_assert_ok(cairn_memory_manager_status(manager, NULL));
    call_target(7, add_hundred);
    ck_assert_int_eq(f(1), 101);
    LLVMDisposeExecutionEngine(engine);
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 1);
}
END_TEST

START_TEST(memory_manager_sees_the_errors_of_its_engine)
{
    struct cairn_error error = {0};
    cairn_memory_manager *manager;
    ck_assert_ok(cairn_memory_manager_create(runtime, NULL, &manager, NULL));
    LLVMExecutionEngineRef engine =
        create_llvm_engine(parse_call("f", "nobody_defines_this"), manager);
    cairn_memory_manager_set_engine(manager, engine);
    LLVMGetFunctionAddress(engine, "f");
    ck_assert_int_eq(cairn_memory_manager_status(manager, &error), CAIRN_ERROR_LLVM);
    ck_assert_msg(strstr(error.message, "nobody_defines_this") != NULL, "%s", error.message);
    ck_assert_uint_eq(statistics().module_count, 0);
    LLVMDisposeExecutionEngine(engine);
}
END_TEST

static void assert_declared_by(uint64_t address, const char *name)
{
    struct cairn_record records[2];
    size_t count = cairn_runtime_find_id(runtime, 7, records, 2);
    for (size_t i = 0; i < count; i++) {
        if (cairn_record_function(records[i]).address != address)
            continue;
        ck_assert_ptr_nonnull(cairn_record_site(records[i]));
        ck_assert_str_eq(cairn_record_declaration(records[i])->function, name);
        return;
    }
    ck_abort_msg("'%s' has no record with ID 7", name);
}

/* MCJIT compiles a module when one of its symbols is looked up. */
START_TEST(modules_of_equal_declarations_are_loaded_one_after_the_other)
{
    static const char *const orders[][2] = {{"f", "g"}, {"g", "f"}};
    cairn_memory_manager *manager;
    ck_assert_ok(cairn_memory_manager_create(runtime, NULL, &manager, NULL));
    LLVMModuleRef first = parse_site("f", 7);
    LLVMModuleRef second = parse_site("g", 7);
    ck_assert_ok(cairn_memory_manager_declare(manager, first, NULL));
    ck_assert_ok(cairn_memory_manager_declare(manager, second, NULL));
    LLVMExecutionEngineRef engine = create_llvm_engine(first, manager);
    LLVMAddModule(engine, second);
    for (int i = 0; i < 2; i++) {
        uint64_t address = LLVMGetFunctionAddress(engine, orders[_i][i]);
        ck_assert_ok(cairn_memory_manager_status(manager, NULL));
        ck_assert_uint_eq(statistics().module_count, 1 + (unsigned)i);
        assert_declared_by(address, orders[_i][i]);
    }
    LLVMDisposeExecutionEngine(engine);
}
END_TEST

/* Each module has the declarations of both. */
START_TEST(declared_modules_may_be_linked_into_one)
{
    cairn_memory_manager *manager;
    ck_assert_ok(cairn_memory_manager_create(runtime, NULL, &manager, NULL));
    LLVMModuleRef first = parse_site("f", 7);
    LLVMModuleRef second = parse_site("g", 8);
    ck_assert_ok(cairn_memory_manager_declare(manager, first, NULL));
    ck_assert_ok(cairn_memory_manager_declare(manager, second, NULL));
    LLVMLinkModules2(first, second);
    support_verify(first);
    LLVMExecutionEngineRef engine = create_llvm_engine(first, manager);
    ck_assert_uint_ne(LLVMGetFunctionAddress(engine, "g"), 0);
    ck_assert_ptr_nonnull(cairn_runtime_find_site(runtime, 7, NULL));
    ck_assert_ptr_nonnull(cairn_runtime_find_site(runtime, 8, NULL));
    LLVMDisposeExecutionEngine(engine);
}
END_TEST

START_TEST(undeclared_records_have_no_site)
{
    cairn_memory_manager *manager;
    ck_assert_ok(cairn_memory_manager_create(runtime, NULL, &manager, NULL));
    LLVMExecutionEngineRef engine = create_llvm_engine(parse_site("f", 7), manager);
    ck_assert_uint_ne(LLVMGetFunctionAddress(engine, "f"), 0);
    ck_assert_ok(cairn_memory_manager_status(manager, NULL));
    struct cairn_record record;
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 7, &record, 1), 1);
    ck_assert_ptr_null(cairn_record_site(record));
    ck_assert_ptr_null(cairn_record_declaration(record));
    ck_assert_ptr_null(cairn_runtime_find_site(runtime, 7, NULL));
    LLVMDisposeExecutionEngine(engine);
}
END_TEST

START_TEST(memory_manager_may_go_unused)
{
    cairn_memory_manager *manager;
    ck_assert_ok(cairn_memory_manager_create(runtime, NULL, &manager, NULL));
    LLVMDisposeMCJITMemoryManager(cairn_memory_manager_llvm(manager));
    ck_assert_int_eq(cairn_memory_manager_create(NULL, NULL, &manager, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_memory_manager_declare(NULL, NULL, NULL), CAIRN_ERROR_ARGUMENT);
}
END_TEST

/* ---- Sites that cannot be patched, memory ---- */

START_TEST(site_that_is_too_small_loads_and_says_why)
{
    cairn_engine *engine = create_engine(support_parse_valid(
        context, SUPPORT_INTRINSICS
        "define i64 @f(i64 %x) {\n"
        "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(\n"
        "      i64 7, i32 4, ptr null, i32 0)\n"
        "  ret i64 %x\n"
        "}\n"));
    ck_assert_int_eq(get(engine, "f")(6), 6);
    cairn_site *site = cairn_runtime_find_site(runtime, 7, NULL);
    struct cairn_site_description description;
    cairn_site_describe(site, &description);
    ck_assert_uint_eq(description.byte_count, 4);
    if (description.byte_count < machine_region_bytes) {
        struct cairn_error error = {0};
        ck_assert(!description.live);
        ck_assert_str_ne(description.reason, "");
        ck_assert_int_eq(
            cairn_site_call(site, (const void *)(uintptr_t)add_hundred, CAIRN_RELAXED, &error),
            CAIRN_ERROR_UNMANAGED);
        ck_assert_str_ne(error.message, "");
    }
    cairn_engine_destroy(engine);
}
END_TEST

/* A stack map of 1 MB, with hardly any code. */
START_TEST(memory_of_stack_maps_is_given_back)
{
    enum { VALUES = 20000 };
    char *text = malloc(VALUES * 24 + 4096);
    char *end = text + sprintf(text, SUPPORT_INTRINSICS
                               "define i64 @f(i64 %%x) {\n"
                               "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, "
                               "i32 0");
    for (int i = 0; i < VALUES; i++)
        end += sprintf(end, ", i64 %d", i);
    strcpy(end, ")\n  ret i64 %x\n}\n");
    cairn_engine *engine = create_engine(support_parse_valid(context, text));
    free(text);
    ck_assert_int_eq(get(engine, "f")(6), 6);
    struct cairn_record record;
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 7, &record, 1), 1);
    ck_assert_uint_eq(cairn_record_location_count(record), VALUES);
    struct cairn_runtime_statistics now = statistics();
    ck_assert_uint_lt(now.code_bytes + now.data_bytes, VALUES);
    struct cairn_memory_range range;
    for (uint32_t i = 0; cairn_module_memory_range(cairn_record_module(record), i, &range); i++)
        ck_assert_uint_lt(range.size, VALUES);
    cairn_engine_destroy(engine);
}
END_TEST

/* ---- Failures ---- */

static void use_small_slabs(void)
{
    cairn_runtime_destroy(runtime);
    struct cairn_runtime_options options = {.slab_size = 64 * 1024};
    ck_assert_ok(cairn_runtime_create(&options, &runtime, NULL));
}

static LLVMModuleRef parse_huge(void)
{
    return support_parse_valid(context, "@huge = global [1000000 x i8] zeroinitializer\n"
                                        "define i64 @f(i64 %x) {\n  ret i64 1\n}\n");
}

START_TEST(module_larger_than_a_slab_is_full)
{
    use_small_slabs();
    cairn_engine *other = create_engine(parse_constant("other", 3));
    ck_assert_int_eq(get(other, "other")(0), 3);
    cairn_engine *engine = create_engine(parse_huge());
    for (int i = 0; i < 2; i++) {
        struct cairn_error error = {0};
        ck_assert_ptr_null(cairn_engine_function(engine, "f", &error));
        ck_assert_int_eq(error.status, CAIRN_ERROR_FULL);
        ck_assert_msg(strstr(error.message, "slab_size") != NULL, "%s", error.message);
    }
    ck_assert_uint_eq(statistics().module_count, 1);
    ck_assert_int_eq(get(other, "other")(0), 3);
    cairn_engine_destroy(engine);
    add(other, parse_constant("later", 4));
    ck_assert_int_eq(get(other, "later")(0), 4);
    cairn_engine_destroy(other);
    cairn_runtime_quiesce(runtime);
    ck_assert_uint_eq(statistics().code_bytes, 0);
    ck_assert_uint_eq(statistics().data_bytes, 0);
}
END_TEST

START_TEST(functions_that_failed_to_load_stay_failed)
{
    use_small_slabs();
    cairn_engine *engine = create_engine(parse_huge());
    ck_assert_ptr_null(cairn_engine_function(engine, "f", NULL));
    add(engine, parse_constant("later", 4));
    ck_assert_int_eq(get(engine, "later")(0), 4);
    struct cairn_error error = {0};
    ck_assert_ptr_null(cairn_engine_function(engine, "f", &error));
    ck_assert_int_eq(error.status, CAIRN_ERROR_NOT_FOUND);
    cairn_engine_destroy(engine);
}
END_TEST

/* ---- Functions ---- */

START_TEST(functions_with_unwind_tables_are_found_by_any_pc)
{
    LLVMModuleRef module = parse_site("f", 7);
    LLVMLinkModules2(module, parse_constant("g", 3));
    cairn_prepare_function(LLVMGetNamedFunction(module, "f"));
    cairn_prepare_function(LLVMGetNamedFunction(module, "g"));
    cairn_engine *engine = create_engine(module);
    uint64_t f = (uintptr_t)get(engine, "f");
    uint64_t g = (uintptr_t)get(engine, "g");
    struct cairn_function found;
    ck_assert(cairn_runtime_find_function(runtime, f + 1, &found));
    ck_assert_uint_eq(found.address, f);
    ck_assert_uint_eq(found.record_count, 1);
    ck_assert(cairn_runtime_find_function(runtime, g, &found));
    ck_assert_uint_eq(found.address, g);
    ck_assert_uint_eq(found.record_count, 0);
    ck_assert(!cairn_runtime_find_function(runtime, g + 64, &found)); /* g is shorter */
    cairn_engine_destroy(engine);
}
END_TEST

/* ---- Symbols that nothing defines ---- */

START_TEST(unresolved_symbol_is_named_and_nothing_is_published)
{
    struct cairn_error error = {0};
    cairn_engine *engine = create_engine(parse_call("f", "nobody_defines_this"));
    ck_assert_ptr_null(cairn_engine_function(engine, "f", &error));
    ck_assert_int_eq(error.status, CAIRN_ERROR_LLVM);
    ck_assert_msg(strstr(error.message, "nobody_defines_this") != NULL, "%s", error.message);
    ck_assert_uint_eq(statistics().module_count, 0);
    cairn_engine_destroy(engine);
}
END_TEST

/* LLVM itself would abort at the next module. */
START_TEST(engine_loads_nothing_after_an_unresolved_symbol)
{
    struct cairn_error error = {0};
    cairn_engine *engine = create_engine(parse_constant("before", 5));
    ck_assert_int_eq(get(engine, "before")(0), 5);
    add(engine, parse_call("f", "nobody_defines_this"));
    ck_assert_ptr_null(cairn_engine_function(engine, "f", &error));
    LLVMModuleRef later = parse_constant("later", 6);
    ck_assert_int_eq(cairn_engine_add_module(engine, later, &error), CAIRN_ERROR_STATE);
    ck_assert_msg(strstr(error.message, "nobody_defines_this") != NULL, "%s", error.message);
    ck_assert_int_eq(cairn_engine_finalise(engine, &error), CAIRN_ERROR_LLVM);
    ck_assert_ptr_null(cairn_engine_function(engine, "f", &error));
    ck_assert_int_eq(get(engine, "before")(0), 5);
    cairn_engine_destroy(engine);
    engine = create_engine(later);
    ck_assert_int_eq(get(engine, "later")(0), 6);
    cairn_engine_destroy(engine);
}
END_TEST

/* ---- LLVM's diagnostics ---- */

struct seen {
    int errors;
    int warnings;
};

static void count_diagnostic(LLVMDiagnosticInfoRef info, void *user)
{
    struct seen *seen = user;
    seen->errors += LLVMGetDiagInfoSeverity(info) == LLVMDSError;
    seen->warnings += LLVMGetDiagInfoSeverity(info) == LLVMDSWarning;
}

/* Code for which LLVM reports an error, and a part of the error message. */
static const struct {
    const char *text;
    const char *error;
} reported[] = {
    {"define i64 @f(i64 %x) {\n"
     "  %r = call i64 asm sideeffect \"\", \"={nosuchregister}\"()\n"
     "  ret i64 %r\n}\n",
     "nosuchregister"},
    {"define i64 @f(i64 %x) {\n"
     "  %r = call i64 asm sideeffect \"\", \"={nosuchregister}\"(), !srcloc !0\n"
     "  ret i64 %r\n}\n!0 = !{i32 17}\n",
     "nosuchregister"},
    {"define i64 @f(i64 %x) {\n"
     "  call void asm sideeffect \"nosuchinstruction 1\", \"\"()\n"
     "  ret i64 %x\n}\n",
     "instruction"},
    {"define i64 @f(i64 %x) {\n"
     "  call void asm sideeffect \"nosuchinstruction 1\", \"\"(), !srcloc !0\n"
     "  ret i64 %x\n}\n!0 = !{i32 17}\n",
     "instruction"},
    {"define i64 @f(i64 %x) {\n"
     "  call void asm sideeffect \".nosuchdirective\", \"\"()\n"
     "  ret i64 %x\n}\n",
     "directive"},
    {"module asm \".nosuchdirective\"\n"
     "define i64 @f(i64 %x) {\n  ret i64 %x\n}\n",
     "directive"},
    {"module asm \"nosuchinstruction\"\n"
     "define i64 @f(i64 %x) {\n  ret i64 %x\n}\n",
     "instruction"},
    {NULL, "registers"},
};
enum { REPORTED = sizeof reported / sizeof *reported };

/* Inline assembly with more operands than any machine has registers. */
static LLVMModuleRef parse_out_of_registers(void)
{
    enum { OPERANDS = 40 };
    char text[4096];
    char *end = text + sprintf(text, "define i64 @f(i64 %%x) {\n");
    for (int i = 1; i <= OPERANDS; i++)
        end += sprintf(end, "  %%x%d = add i64 %%x, %d\n", i, i);
    end += sprintf(end, "  call void asm sideeffect \"\", \"r");
    for (int i = 1; i < OPERANDS; i++)
        end += sprintf(end, ",r");
    end += sprintf(end, "\"(i64 %%x1");
    for (int i = 2; i <= OPERANDS; i++)
        end += sprintf(end, ", i64 %%x%d", i);
    strcpy(end, ")\n  ret i64 %x\n}\n");
    return support_parse_valid(context, text);
}

static LLVMModuleRef parse_reported(int index)
{
    return reported[index].text == NULL ? parse_out_of_registers()
                                        : support_parse_valid(context, reported[index].text);
}

START_TEST(error_that_llvm_reports_fails_the_finalisation)
{
    struct seen seen = {0};
    bool has_handler = _i % 2 == 1;
    int index = _i / 2 % REPORTED;
    struct cairn_engine_options options = {.optimisation_level = (unsigned)(_i / 2 / REPORTED) * 2};
    if (has_handler)
        LLVMContextSetDiagnosticHandler(context, count_diagnostic, &seen);
    cairn_engine *engine;
    ck_assert_ok(cairn_engine_create(runtime, parse_site("before", 1), &options, &engine, NULL));
    function *f_before = get(engine, "before");
    add(engine, parse_reported(index));
    add(engine, parse_constant("with", 4));
    struct cairn_error error = {0};
    ck_assert_ptr_null(cairn_engine_function(engine, "f", &error));
    ck_assert_int_eq(error.status, CAIRN_ERROR_LLVM);
    ck_assert_msg(strstr(error.message, reported[index].error) != NULL, "%s", error.message);
    ck_assert_ptr_null(cairn_engine_function(engine, "with", NULL));
    ck_assert_uint_eq(statistics().module_count, 1);
    ck_assert(LLVMContextGetDiagnosticHandler(context) == (has_handler ? count_diagnostic : NULL));
    ck_assert_ptr_eq(LLVMContextGetDiagnosticContext(context), has_handler ? &seen : NULL);
    ck_assert_int_eq(seen.errors > 0, has_handler);
    /* Modules that are loaded stay, and the engine can load more. */
    call_target(1, add_hundred);
    ck_assert_int_eq(f_before(1), 101);
    add(engine, parse_constant("later", 6));
    ck_assert_int_eq(get(engine, "later")(0), 6);
    ck_assert_ptr_null(cairn_engine_function(engine, "f", &error));
    ck_assert_int_eq(error.status, CAIRN_ERROR_NOT_FOUND);
    cairn_engine_destroy(engine);
}
END_TEST

/* Each module's context has its own handler. */
START_TEST(contexts_of_one_engine_are_all_observed)
{
    struct seen seen = {0};
    LLVMContextRef other = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(other, count_diagnostic, &seen);
    cairn_engine *engine = create_engine(parse_constant("f1", 1));
    add(engine, support_parse_valid(other, reported[0].text));
    add(engine, parse_constant("f2", 2));
    struct cairn_error error = {0};
    ck_assert_ptr_null(cairn_engine_function(engine, "f1", &error));
    ck_assert_int_eq(error.status, CAIRN_ERROR_LLVM);
    ck_assert_int_gt(seen.errors, 0);
    ck_assert(LLVMContextGetDiagnosticHandler(other) == count_diagnostic);
    ck_assert(LLVMContextGetDiagnosticHandler(context) == NULL);
    cairn_engine_destroy(engine);
    LLVMContextDispose(other);
}
END_TEST

/* The module has its own context, so nothing but its own finalisation observes the error. */
START_TEST(error_in_a_module_without_functions_fails_the_finalisation)
{
    LLVMContextRef other = LLVMContextCreate();
    cairn_engine *engine = create_engine(
        support_parse_valid(other, "module asm \".nosuchdirective\"\n@data = global i32 1\n"));
    struct cairn_error error = {0};
    ck_assert_int_eq(cairn_engine_finalise(engine, &error), CAIRN_ERROR_LLVM);
    ck_assert_msg(strstr(error.message, "directive") != NULL, "%s", error.message);
    ck_assert_uint_eq(statistics().module_count, 0);
    add(engine, parse_constant("f", 5));
    ck_assert_int_eq(get(engine, "f")(0), 5);
    cairn_engine_destroy(engine);
    LLVMContextDispose(other);
}
END_TEST

START_TEST(data_of_a_module_without_functions_is_loaded)
{
    cairn_engine *engine = create_engine(support_parse_valid(context, "@data = global i64 40\n"));
    ck_assert_ok(cairn_engine_finalise(engine, NULL));
    ck_assert_uint_eq(statistics().module_count, 1);
    const int64_t *data =
        (const int64_t *)(uintptr_t)LLVMGetGlobalValueAddress(cairn_engine_llvm(engine), "data");
    ck_assert_ptr_nonnull(data);
    ck_assert_int_eq(*data, 40);
    cairn_engine_destroy(engine);
}
END_TEST

START_TEST(warning_that_llvm_reports_reaches_the_host_and_fails_nothing)
{
    struct seen seen = {0};
    LLVMContextSetDiagnosticHandler(context, count_diagnostic, &seen);
    cairn_engine *engine =
        create_engine(support_parse_valid(context, "define i64 @f(i64 %x) {\n"
                                                   "  call void asm sideeffect \".warning "
                                                   "\\22mind\\22\", \"\"()\n"
                                                   "  ret i64 7\n}\n"));
    ck_assert_int_eq(get(engine, "f")(0), 7);
    ck_assert_int_eq(seen.warnings, 1);
    ck_assert_int_eq(seen.errors, 0);
    cairn_engine_destroy(engine);
}
END_TEST

START_TEST(symbols_of_the_host_are_found)
{
    LLVMModuleRef module = parse_call("f", "mapped_by_the_host");
    LLVMValueRef declaration = LLVMGetNamedFunction(module, "mapped_by_the_host");
    cairn_engine *engine = create_engine(module);
    LLVMAddGlobalMapping(cairn_engine_llvm(engine), declaration, (void *)(uintptr_t)add_hundred);
    ck_assert_int_eq(get(engine, "f")(1), 101);
    cairn_engine_destroy(engine);
}
END_TEST

START_TEST(unknown_function_is_not_found)
{
    cairn_engine *engine = create_engine(parse_constant("f", 1));
    struct cairn_error error = {0};
    ck_assert_ptr_null(cairn_engine_function(engine, "nobody", &error));
    ck_assert_int_eq(error.status, CAIRN_ERROR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(error.message, "'nobody'"));
    ck_assert_int_eq(get(engine, "f")(0), 1);
    cairn_engine_destroy(engine);
}
END_TEST

static void assert_refused(LLVMModuleRef module, enum cairn_status expected, const char *what)
{
    struct cairn_error error = {0};
    cairn_engine *engine = NULL;
    ck_assert_int_eq(cairn_engine_create(runtime, module, NULL, &engine, &error), expected);
    ck_assert_msg(strstr(error.message, what) != NULL, "%s", error.message);
    ck_assert_ptr_null(engine);
    LLVMDisposeModule(module); /* the caller still owns it */
}

START_TEST(module_for_another_machine_is_refused)
{
    bool is_power = cairn_architecture_host() == CAIRN_ARCHITECTURE_PPC64_ELFV2;
    LLVMModuleRef module = parse_constant("f", 1);
    LLVMSetTarget(module, is_power ? "x86_64-linux-gnu" : "powerpc64le-linux-gnu");
    assert_refused(module, CAIRN_ERROR_LLVM, is_power ? "x86_64" : "powerpc64le");
    module = parse_constant("f", 1);
    LLVMSetDataLayout(module, "E-p:32:32");
    assert_refused(module, CAIRN_ERROR_LLVM, "E-p:32:32");
}
END_TEST

START_TEST(module_that_would_crash_llvm_is_refused)
{
    assert_refused(
        support_parse_valid(
            context, SUPPORT_INTRINSICS
            "define void @f(i128 %x) {\n"
            "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i128 %x)\n"
            "  ret void\n}\n"),
        CAIRN_ERROR_LLVM, "i128");
}
END_TEST

START_TEST(bad_arguments_are_refused)
{
    LLVMModuleRef module = parse_constant("f", 1);
    cairn_engine *engine;
    ck_assert_int_eq(cairn_engine_create(runtime, NULL, NULL, &engine, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_engine_create(runtime, module, NULL, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    struct cairn_engine_options options = {.optimisation_level = 4};
    ck_assert_int_eq(cairn_engine_create(runtime, module, &options, &engine, NULL),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_engine_finalise(NULL, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_engine_add_module(NULL, module, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_ptr_null(cairn_engine_function(NULL, "f", NULL));
    ck_assert_ptr_null(cairn_engine_site(NULL, 1, NULL));
    engine = create_engine(module);
    ck_assert_int_eq(cairn_engine_add_module(engine, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_ptr_null(cairn_engine_function(engine, NULL, NULL));
    cairn_engine_destroy(engine);
}
END_TEST

static void add_tests(TCase *tests)
{
    const TTest *const all[] = {
        site_is_found_and_patched,
        engine_without_a_runtime_has_one_of_its_own,
        modules_are_added_and_loaded_together_or_later,
        modules_call_each_other,
        an_id_may_come_again_in_a_later_module,
        two_shapes_of_an_id_loaded_together_conflict,
        module_of_an_engine_may_be_retired_after_the_engine_is_disposed_of,
        runtime_may_go_while_its_modules_have_shares,
        error_of_an_id_with_two_shapes_names_the_choice,
        calls_with_an_id_of_two_shapes_are_renumbered,
        id_that_a_call_was_given_is_not_that_of_a_later_call,
        records_with_an_id_of_two_shapes_are_left_undeclared,
        host_may_give_the_runtime_up_first,
        engine_may_go_without_being_finalised,
        module_without_functions_loads,
        globals_and_constants_are_relocated,
        threads_have_engines_of_their_own,
        hooks_see_the_module_before_and_after_publication,
        memory_manager_serves_an_engine_of_the_host,
        memory_manager_sees_the_errors_of_its_engine,
        declared_modules_may_be_linked_into_one,
        undeclared_records_have_no_site,
        memory_manager_may_go_unused,
        site_that_is_too_small_loads_and_says_why,
        memory_of_stack_maps_is_given_back,
        module_larger_than_a_slab_is_full,
        functions_that_failed_to_load_stay_failed,
        functions_with_unwind_tables_are_found_by_any_pc,
        unresolved_symbol_is_named_and_nothing_is_published,
        engine_loads_nothing_after_an_unresolved_symbol,
        contexts_of_one_engine_are_all_observed,
        error_in_a_module_without_functions_fails_the_finalisation,
        data_of_a_module_without_functions_is_loaded,
        warning_that_llvm_reports_reaches_the_host_and_fails_nothing,
        symbols_of_the_host_are_found,
        unknown_function_is_not_found,
        module_for_another_machine_is_refused,
        module_that_would_crash_llvm_is_refused,
        bad_arguments_are_refused,
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tcase_add_test(tests, all[i]);
    tcase_add_loop_test(tests, every_optimisation_level_works, 0, 4);
    tcase_add_loop_test(tests, id_conflicts_between_modules_are_resolved, 0, 4);
    tcase_add_loop_test(tests, error_that_llvm_reports_fails_the_finalisation, 0, 4 * REPORTED);
    tcase_add_loop_test(tests, modules_of_equal_declarations_are_loaded_one_after_the_other, 0, 2);
    tcase_add_loop_test(tests, module_of_an_engine_may_be_retired_before_the_engine_is_disposed_of,
                        0, 2);
    tcase_add_loop_test(tests, engines_of_one_runtime_are_disposed_of_in_any_order, 0, 3);
}

int main(void)
{
    Suite *suite = suite_create("llvm engine");
    TCase *tests = tcase_create("engine");
    tcase_set_timeout(tests, 30);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    add_tests(tests);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
