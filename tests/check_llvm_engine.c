/*
 * Tests of MCJIT with Cairn's code memory, from IR to patched code.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/llvm_engine_support.h"

#include "tests/machine.h"

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
    ck_assert_ptr_null(cairn_runtime_find_module(runtime, f));
    ck_assert_ptr_null(cairn_runtime_find_site(runtime, 1, NULL));
    assert_not_loaded(engine, "f", CAIRN_ERROR_NOT_FOUND, "retired");
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
    assert_says(&error, "nobody_defines_this");
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
    tcase_add_test(tests, hooks_see_the_module_before_and_after_publication);
    tcase_add_test(tests, memory_manager_serves_an_engine_of_the_host);
    tcase_add_test(tests, memory_manager_sees_the_errors_of_its_engine);
    tcase_add_test(tests, declared_modules_may_be_linked_into_one);
    tcase_add_test(tests, undeclared_records_have_no_site);
    tcase_add_test(tests, memory_manager_may_go_unused);
    tcase_add_test(tests, site_that_is_too_small_loads_and_says_why);
    tcase_add_test(tests, memory_of_stack_maps_is_given_back);
    tcase_add_test(tests, functions_with_unwind_tables_are_found_by_any_pc);
    tcase_add_loop_test(tests, every_optimisation_level_works, 0, 4);
    tcase_add_loop_test(tests, modules_of_equal_declarations_are_loaded_one_after_the_other, 0, 2);
    tcase_add_loop_test(tests, module_of_an_engine_may_be_retired_before_the_engine_is_disposed_of,
                        0, 2);
    tcase_add_loop_test(tests, engines_of_one_runtime_are_disposed_of_in_any_order, 0, 3);
}

int main(void) { return engine_main("llvm engine", add_tests); }
