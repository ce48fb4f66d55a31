/*
 * Tests of engines and of memory managers, from IR to patched code.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runtime/module.h"
#include "tests/llvm_engine_support.h"
#include "llvm/engine.h"

#include "tests/machine.h"

#include <llvm-c/Linker.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if LLVM_HAS_OPAQUE_POINTERS
#define INT64_POINTER "ptr"
#else
#define INT64_POINTER "i64*"
#endif

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
    ck_assert_ptr_eq(record_module(record), module);
    ck_assert_str_eq(cairn_module_name(module), "engine: f");

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
    cairn_site *site = support_compiled_site(engine, 7, NULL);
    ck_assert_ptr_nonnull(site);
    ck_assert_ok(cairn_site_call(site, (void *)(uintptr_t)add_hundred, CAIRN_SYNC, NULL));
    ck_assert_int_eq(get(engine, "f")(5), 105);
    ck_assert_ptr_null(cairn_runtime_find_site(runtime, 7, NULL));
    ck_assert_ptr_null(support_compiled_site(engine, 8, NULL));
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

START_TEST(module_without_functions_loads)
{
    cairn_engine *engine = create_engine(LLVMModuleCreateWithNameInContext("empty", context));
    ck_assert_ok(cairn_engine_compile(engine, NULL));
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

/* ---- Concurrent engines ---- */

enum { COMPILERS = 4, MODULES_EACH = 12 };

/* Compiles modules one by one into the common runtime, calls and patches them, and retires every
 * other one. All threads give their functions the same names. */
static void *compile_and_retire(void *number)
{
    const int64_t own = (int64_t)(uintptr_t)number;
    LLVMContextRef context_of_thread = LLVMContextCreate();
    cairn_engine *engine = NULL;
    uintptr_t failures = 0;
    for (int i = 0; i < MODULES_EACH; i++) {
        char text[512];
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        if (i == 0)
            snprintf(text, sizeof text,
                     "define i64 @f0(i64 %%x) {\n  %%s = add i64 %%x, %d\n  ret i64 %%s\n}\n",
                     (int)own);
        else
            snprintf(text, sizeof text,
                     "declare i64 @f0(i64)\n"
                     "define i64 @f%d(i64 %%x) {\n"
                     "  %%r = call i64 @f0(i64 %%x)\n"
                     "  %%s = add i64 %%r, %d\n"
                     "  ret i64 %%s\n}\n",
                     i, (int)own);
        LLVMModuleRef module = support_parse_valid(context_of_thread, text);
        enum cairn_status status = engine == NULL
                                       ? cairn_engine_create(runtime, module, NULL, &engine, NULL)
                                       : cairn_engine_add_module(engine, module, NULL);
        if (status != CAIRN_OK)
            return (void *)1;
        function *f = (function *)(uintptr_t)support_compiled_function(engine, name, NULL);
        failures += f == NULL || f(1000) != 1000 + (i == 0 ? own : 2 * own);
        if (i % 2 == 1)
            cairn_module_retire(cairn_runtime_find_module(runtime, (uintptr_t)f));
    }
    cairn_engine_destroy(engine);
    LLVMContextDispose(context_of_thread);
    return (void *)failures;
}

START_TEST(threads_compile_into_one_runtime_and_see_only_their_own_functions)
{
    pthread_t threads[COMPILERS];
    for (uintptr_t i = 0; i < COMPILERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, compile_and_retire, (void *)(i + 1)), 0);
    for (int i = 0; i < COMPILERS; i++) {
        void *failures;
        pthread_join(threads[i], &failures);
        ck_assert_ptr_null(failures);
    }
    /* The modules of f0 have references until those that call them are freed. */
    size_t freed = cairn_runtime_quiesce(runtime);
    freed += cairn_runtime_quiesce(runtime);
    ck_assert_uint_eq(freed, COMPILERS * MODULES_EACH);
    ck_assert_uint_eq(statistics().module_count, 0);
}
END_TEST

/* ---- Passes ---- */

static void run_with_passes(const char *passes, const char *text, int64_t expected)
{
    struct cairn_error error = {0};
    const struct cairn_engine_options options = {.passes = passes};
    cairn_engine *engine = NULL;
    enum cairn_status status =
        cairn_engine_create(runtime, support_parse_valid(context, text), &options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    ck_assert_int_eq(get(engine, "f")(20), expected);
    cairn_engine_destroy(engine);
}

/* A function that passes inline everywhere is not needed any more. */
START_TEST(passes_run_before_code_generation)
{
    static const char text[] = "define internal i64 @inlined(i64 %x) alwaysinline {\n"
                               "  %y = add i64 %x, 1\n  ret i64 %y\n}\n"
                               "define i64 @f(i64 %x) {\n"
                               "  %y = call i64 @inlined(i64 %x)\n  ret i64 %y\n}\n";
    const struct cairn_engine_options options = {.passes = "always-inline,globaldce"};
    for (int has_passes = 0; has_passes < 2; has_passes++) {
        cairn_engine *engine;
        struct cairn_function found;
        unsigned functions = 0;
        ck_assert_ok(cairn_engine_create(runtime, support_parse_valid(context, text),
                                         has_passes ? &options : NULL, &engine, NULL));
        function *f = get(engine, "f");
        ck_assert_int_eq(f(20), 21);
        const cairn_module *module = cairn_runtime_find_module(runtime, (uintptr_t)f);
        struct memory_range range;
        for (uint32_t i = 0; module_memory_range(module, i, &range); i++)
            for (size_t at = 0; range.executable && at < range.size; at++)
                functions += cairn_runtime_find_function(runtime, range.address + at, &found) &&
                             found.address == range.address + at;
        ck_assert_uint_eq(functions, has_passes ? 1 : 2);
        cairn_engine_destroy(engine);
    }
    run_with_passes("default<O2>", text, 21);
}
END_TEST

/* The scan sees what passes have made of a call: here, two copies and another live value. */
START_TEST(patch_points_that_passes_duplicate_are_all_declared)
{
    static const char text[] = SUPPORT_INTRINSICS
        "define internal i64 @site(i64 %x) alwaysinline {\n"
        "  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(\n"
        "      i64 7, i32 16, ptr null, i32 1, i64 %x, i64 %x)\n"
        "  ret i64 %r\n}\n"
        "define i64 @f(i64 %x) {\n"
        "  %a = call i64 @site(i64 %x)\n"
        "  %b = call i64 @site(i64 41)\n"
        "  %s = add i64 %a, %b\n"
        "  ret i64 %s\n}\n";
    const struct cairn_engine_options options = {.passes = "default<O2>", .optimisation_level = 2};
    cairn_engine *engine;
    struct cairn_record records[3];
    ck_assert_ok(
        cairn_engine_create(runtime, support_parse_valid(context, text), &options, &engine, NULL));
    function *f = get(engine, "f");
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 7, records, 3), 2);
    for (int i = 0; i < 2; i++) {
        cairn_site *site = cairn_record_site(records[i]);
        ck_assert_ptr_nonnull(site);
        ck_assert_str_eq(cairn_record_declaration(records[i])->function, "f");
        ck_assert_ok(
            cairn_site_call(site, (const void *)(uintptr_t)add_hundred, CAIRN_RELAXED, NULL));
    }
    ck_assert_int_eq(f(5), 105 + 141);
    cairn_engine_destroy(engine);
}
END_TEST

/* Passes remove what the check of the unchanged module refuses. */
START_TEST(modules_are_checked_after_the_passes)
{
    static const char text[] = SUPPORT_INTRINSICS
        "define internal void @unused(i128 %x) {\n"
        "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i128 %x)\n"
        "  ret void\n}\n"
        "define i64 @f(i64 %x) {\n  ret i64 %x\n}\n";
    struct cairn_error error = {0};
    cairn_engine *engine;
    LLVMModuleRef module = support_parse_valid(context, text);
    ck_assert_int_eq(cairn_engine_create(runtime, module, NULL, &engine, &error), CAIRN_ERROR_LLVM);
    assert_says(&error, "i128");
    LLVMDisposeModule(module);
    run_with_passes("globaldce", text, 20);
}
END_TEST

START_TEST(passes_that_llvm_does_not_know_are_refused)
{
    struct cairn_error error = {0};
    const struct cairn_engine_options options = {.passes = "no-such-pass"};
    LLVMModuleRef module = parse_constant("f", 1);
    cairn_engine *engine;
    ck_assert_int_eq(cairn_engine_create(runtime, module, &options, &engine, &error),
                     CAIRN_ERROR_ARGUMENT);
    assert_says(&error, "no-such-pass");
    engine = create_engine(module);
    ck_assert_int_eq(get(engine, "f")(0), 1);
    cairn_engine_destroy(engine);
}
END_TEST

/* The verifier runs before the passes, which would crash. */
START_TEST(invalid_module_is_refused_before_passes_run)
{
    struct cairn_error error = {0};
    const struct cairn_engine_options options = {.passes = "default<O2>"};
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("invalid", context);
    LLVMTypeRef type = LLVMFunctionType(LLVMInt64TypeInContext(context), NULL, 0, 0);
    LLVMAppendBasicBlockInContext(context, LLVMAddFunction(module, "f", type), "no_terminator");
    cairn_engine *engine;
    ck_assert_int_eq(cairn_engine_create(runtime, module, &options, &engine, &error),
                     CAIRN_ERROR_LLVM);
    assert_says(&error, "verifier");
    LLVMDisposeModule(module);
}
END_TEST

/* ---- CPUs ---- */

START_TEST(cpu_and_features_are_those_of_the_options)
{
    char *cpu = LLVMGetHostCPUName();
    char *features = LLVMGetHostCPUFeatures();
    const struct cairn_engine_options options = {.cpu = cpu, .features = features};
    cairn_engine *engine;
    ck_assert_ok(cairn_engine_create(runtime, parse_constant("f", 6), &options, &engine, NULL));
    ck_assert_int_eq(get(engine, "f")(0), 6);
    cairn_engine_destroy(engine);
    LLVMDisposeMessage(features);
    LLVMDisposeMessage(cpu);
}
END_TEST

/* ---- What an engine has loaded ---- */

START_TEST(definitions_of_other_engines_are_not_seen)
{
    struct cairn_error error = {0};
    cairn_engine *first = create_engine(parse_constant("f", 1));
    ck_assert_int_eq(get(first, "f")(0), 1);
    cairn_engine *second = create_engine(parse_call("caller", "f"));
    assert_not_loaded(second, "caller", CAIRN_ERROR_NOT_FOUND, "undefined");
    add(first, parse_call("caller", "f"));
    ck_assert_int_eq(get(first, "caller")(0), 1);
    ck_assert_ptr_null(support_compiled_function(second, "f", &error));
    cairn_engine_destroy(second);
    cairn_engine_destroy(first);
}
END_TEST

/* With a reference to each module that it has loaded, an engine would fill the slab. */
START_TEST(engine_loads_any_number_of_modules_that_are_retired_one_by_one)
{
    enum { MODULES = 300 };
    const struct cairn_runtime_options options = {.slab_size = 64 * 1024};
    cairn_engine *engine = NULL;
    cairn_runtime_destroy(runtime);
    ck_assert_ok(cairn_runtime_create(&options, &runtime, NULL));
    engine = create_engine(parse_constant("stays", 17));
    function *stays = get(engine, "stays");
    for (int i = 0; i < MODULES; i++) {
        add(engine, parse_site("f", 7));
        function *f = get(engine, "f");
        call_target(7, add_hundred);
        ck_assert_int_eq(f(i), 100 + i);
        cairn_module_retire(cairn_runtime_find_module(runtime, (uintptr_t)f));
        ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 1);
        assert_not_loaded(engine, "f", CAIRN_ERROR_NOT_FOUND, "retired");
    }
    ck_assert_uint_eq(statistics().slab_count, 1);
    ck_assert_int_eq(stays(0), 17);
    cairn_engine_destroy(engine);
}
END_TEST

/* ---- The end of engines, modules and runtimes ---- */

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

/* The engine keeps no reference to it. */
START_TEST(retired_module_of_an_engine_is_freed_when_its_grace_period_ends)
{
    bool quiesces_between = _i % 2 == 1;
    cairn_engine *engine = create_engine(parse_site("f", 1));
    add(engine, parse_site("g", 2));
    uint64_t f = (uintptr_t)get(engine, "f");
    add(engine, parse_constant("h", 3));
    function *h = get(engine, "h");
    cairn_module_retire(cairn_runtime_find_module(runtime, f));
    if (quiesces_between)
        ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 1);
    ck_assert_ptr_null(cairn_runtime_find_module(runtime, f));
    ck_assert_ptr_null(cairn_runtime_find_site(runtime, 1, NULL));
    assert_not_loaded(engine, "f", CAIRN_ERROR_NOT_FOUND, "retired");
    ck_assert_int_eq(h(0), 3);
    /* The next module may reuse the addresses of the retired code. */
    add(engine, parse_call("caller", "later"));
    add(engine, parse_constant("later", 4));
    ck_assert_int_eq(get(engine, "caller")(0), 4);
    assert_not_loaded(engine, "f", CAIRN_ERROR_NOT_FOUND, "retired");
    cairn_engine_destroy(engine);
    ck_assert_uint_eq(statistics().retired_count, quiesces_between ? 2 : 3);
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), quiesces_between ? 2 : 3);
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
    ck_assert_str_eq(cairn_module_name(module), "engine: f");
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

/* ---- Hooks ---- */

struct hooks {
    int before;
    int after;
    cairn_module *module;
    enum cairn_status patched;
    bool found_before;
    bool found_after;
};

static void before(cairn_module *module, void *user)
{
    struct hooks *hooks = user;
    hooks->before++;
    hooks->module = module;
    struct cairn_record record;
    hooks->found_before = cairn_runtime_find_id(runtime, 7, &record, 1) != 0;
    hooks->patched = cairn_site_call(cairn_module_site(module, 0),
                                     (const void *)(uintptr_t)add_hundred, CAIRN_RELAXED, NULL);
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
        .modules = {
            .name = "mine", .before_publish = before, .after_publish = after, .user = &hooks}};
    cairn_engine *engine;
    ck_assert_ok(cairn_engine_create(runtime, parse_site("f", 7), &options, &engine, NULL));
    function *f = get(engine, "f");
    ck_assert_int_eq(hooks.before, 1);
    ck_assert_int_eq(hooks.after, 1);
    ck_assert(!hooks.found_before);
    ck_assert(hooks.found_after);
    ck_assert_str_eq(cairn_module_name(hooks.module), "mine: f");
    ck_assert_ok(hooks.patched);
    ck_assert_int_eq(f(1), 101);
    cairn_engine_destroy(engine);
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
    struct memory_range range;
    for (uint32_t i = 0; module_memory_range(record_module(record), i, &range); i++)
        ck_assert_uint_lt(range.size, VALUES);
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

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, site_is_found_and_patched);
    tcase_add_test(tests, engine_without_a_runtime_has_one_of_its_own);
    tcase_add_test(tests, modules_are_added_and_loaded_together_or_later);
    tcase_add_test(tests, modules_call_each_other);
    tcase_add_test(tests, module_of_an_engine_may_be_retired_after_the_engine_is_disposed_of);
    tcase_add_test(tests, runtime_may_go_while_its_modules_have_shares);
    tcase_add_test(tests, host_may_give_the_runtime_up_first);
    tcase_add_test(tests, engine_may_go_without_being_finalised);
    tcase_add_test(tests, module_without_functions_loads);
    tcase_add_test(tests, globals_and_constants_are_relocated);
    tcase_add_test(tests, threads_have_engines_of_their_own);
    tcase_add_test(tests, threads_compile_into_one_runtime_and_see_only_their_own_functions);
    tcase_add_test(tests, passes_run_before_code_generation);
    tcase_add_test(tests, patch_points_that_passes_duplicate_are_all_declared);
    tcase_add_test(tests, modules_are_checked_after_the_passes);
    tcase_add_test(tests, passes_that_llvm_does_not_know_are_refused);
    tcase_add_test(tests, invalid_module_is_refused_before_passes_run);
    tcase_add_test(tests, cpu_and_features_are_those_of_the_options);
    tcase_add_test(tests, definitions_of_other_engines_are_not_seen);
    tcase_add_test(tests, engine_loads_any_number_of_modules_that_are_retired_one_by_one);
    tcase_add_test(tests, hooks_see_the_module_before_and_after_publication);
    tcase_add_test(tests, site_that_is_too_small_loads_and_says_why);
    tcase_add_test(tests, memory_of_stack_maps_is_given_back);
    tcase_add_test(tests, functions_with_unwind_tables_are_found_by_any_pc);
    tcase_add_loop_test(tests, every_optimisation_level_works, 0, 4);
    tcase_add_loop_test(tests, retired_module_of_an_engine_is_freed_when_its_grace_period_ends, 0,
                        2);
    tcase_add_loop_test(tests, engines_of_one_runtime_are_disposed_of_in_any_order, 0, 3);
}

int main(void) { return engine_main("llvm engine", add_tests); }
