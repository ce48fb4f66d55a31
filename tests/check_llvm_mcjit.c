/*
 * Tests of memory managers: of hosts that create MCJIT engines themselves.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runtime_support.h" /* before the fixture, whose variables would hide its parameters */

#include "llvm_engine_support.h"
#include "record/table.h"
#include "tests/allocator_support.h"

#include <llvm-c/Linker.h>

/* ---- Engines ---- */

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
    options.OptLevel = 2;
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
        if (record_function(records[i]).address != address)
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

/* ---- Modules ---- */

struct hooks {
    int before;
    int after;
    enum cairn_status patched;
};

static void before(cairn_module *module, void *user)
{
    struct hooks *hooks = user;
    hooks->before += cairn_runtime_find_id(runtime, 7, NULL, 0) == 0;
    hooks->patched = cairn_site_call(cairn_module_site(module, 0),
                                     (const void *)(uintptr_t)add_hundred, CAIRN_RELAXED, NULL);
}

static void after(cairn_module *module, void *user)
{
    struct hooks *hooks = user;
    (void)module;
    hooks->after += cairn_runtime_find_id(runtime, 7, NULL, 0) == 1;
}

START_TEST(hooks_see_the_module_before_and_after_publication)
{
    struct hooks hooks = {.patched = CAIRN_ERROR_STATE};
    const struct cairn_memory_manager_options options = {
        .modules = {
            .name = "mine", .before_publish = before, .after_publish = after, .user = &hooks}};
    cairn_memory_manager *manager;
    ck_assert_ok(cairn_memory_manager_create(runtime, &options, &manager, NULL));
    LLVMModuleRef module = parse_site("f", 7);
    ck_assert_ok(cairn_memory_manager_declare(manager, module, NULL));
    LLVMExecutionEngineRef engine = create_llvm_engine(module, manager);
    function *f = (function *)(uintptr_t)LLVMGetFunctionAddress(engine, "f");
    ck_assert_int_eq(hooks.before, 1);
    ck_assert_int_eq(hooks.after, 1);
    ck_assert_ok(hooks.patched);
    ck_assert_int_eq(f(1), 101);
    ck_assert_str_eq(cairn_module_name(cairn_runtime_find_module(runtime, (uintptr_t)f)), "mine");
    LLVMDisposeExecutionEngine(engine);
}
END_TEST

/* LLVM deregisters its unwind tables when the engine is disposed of. */
START_TEST(retired_module_is_kept_until_the_engine_is_disposed_of)
{
    cairn_memory_manager *manager;
    ck_assert_ok(cairn_memory_manager_create(runtime, NULL, &manager, NULL));
    LLVMExecutionEngineRef engine = create_llvm_engine(parse_constant("f", 5), manager);
    uint64_t f = LLVMGetFunctionAddress(engine, "f");
    cairn_module_retire(cairn_runtime_find_module(runtime, f));
    ck_assert_ptr_null(cairn_runtime_find_module(runtime, f));
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 0);
    ck_assert_int_eq(((function *)(uintptr_t)f)(0), 5);
    LLVMDisposeExecutionEngine(engine);
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 1);
}
END_TEST

START_TEST(modules_that_are_finalised_together_become_one)
{
    cairn_memory_manager *manager;
    ck_assert_ok(cairn_memory_manager_create(runtime, NULL, &manager, NULL));
    LLVMExecutionEngineRef engine = create_llvm_engine(parse_call("f", "g"), manager);
    LLVMAddModule(engine, parse_constant("g", 5));
    uint64_t f = LLVMGetFunctionAddress(engine, "f");
    ck_assert_int_eq(((function *)(uintptr_t)f)(0), 5);
    ck_assert_uint_eq(statistics().module_count, 1);
    LLVMDisposeExecutionEngine(engine);
}
END_TEST

static void leave(struct cairn_exit_call *call, void *user)
{
    struct cairn_value value = {0};
    enum cairn_status *status = user;
    *status = cairn_frame_value(&call->frame, call->record, 0, &value, NULL);
    struct cairn_value result = cairn_value_of_integer(64, cairn_value_signed(&value) + 1000);
    if (*status == CAIRN_OK)
        *status = cairn_exit_return(call, &result, 1, NULL);
}

START_TEST(an_exit_reads_the_frame_and_returns_from_it)
{
    enum cairn_status left = CAIRN_ERROR_STATE;
    cairn_exit *the_exit;
    cairn_memory_manager *manager;
    ck_assert_ok(cairn_memory_manager_create(runtime, NULL, &manager, NULL));
    LLVMModuleRef module = support_parse_valid(
        context, SUPPORT_INTRINSICS
        "define i64 @f(i64 %x) {\n"
        "  %y = mul i64 %x, 3\n"
        "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(\n"
        "      i64 7, i32 48, ptr null, i32 0, i64 %y)\n"
        "  ret i64 %y\n"
        "}\n");
    cairn_prepare_function(LLVMGetNamedFunction(module, "f"));
    ck_assert_ok(cairn_memory_manager_declare(manager, module, NULL));
    LLVMExecutionEngineRef engine = create_llvm_engine(module, manager);
    function *f = (function *)(uintptr_t)LLVMGetFunctionAddress(engine, "f");
    ck_assert_int_eq(f(14), 42);
    ck_assert_ok(cairn_exit_create(runtime, leave, &left, &the_exit, NULL));
    call_target(7, (function *)(uintptr_t)cairn_exit_target(the_exit));
    ck_assert_int_eq(f(14), 1042);
    ck_assert_ok(left);
    cairn_exit_destroy(the_exit);
    LLVMDisposeExecutionEngine(engine);
}
END_TEST

START_TEST(deoptimize_calls_the_function_that_the_host_binds)
{
    enum cairn_architecture host = cairn_architecture_host();
    if (host != CAIRN_ARCHITECTURE_X86_64 && host != CAIRN_ARCHITECTURE_AARCH64)
        return; /* LLVM has no statepoints */
    enum cairn_status left = CAIRN_ERROR_STATE;
    cairn_exit *the_exit;
    cairn_memory_manager *manager;
    ck_assert_ok(cairn_memory_manager_create(runtime, NULL, &manager, NULL));
    ck_assert_ok(cairn_exit_create(runtime, leave, &left, &the_exit, NULL));
    LLVMModuleRef module = support_parse_valid(
        context, "declare void @__llvm_deoptimize()\n"
                 "declare i64 @llvm.experimental.deoptimize.i64(...)\n"
                 "define i64 @f(i64 %x) {\n"
                 "  %r = call i64 (...) @llvm.experimental.deoptimize.i64() [ \"deopt\"(i64 %x) ]\n"
                 "  ret i64 %r\n"
                 "}\n");
    cairn_prepare_function(LLVMGetNamedFunction(module, "f"));
    ck_assert_ok(cairn_memory_manager_declare(manager, module, NULL));
    LLVMExecutionEngineRef engine = create_llvm_engine(module, manager);
    LLVMAddGlobalMapping(engine, LLVMGetNamedFunction(module, "__llvm_deoptimize"),
                         (void *)(uintptr_t)cairn_exit_target(the_exit));
    function *f = (function *)(uintptr_t)LLVMGetFunctionAddress(engine, "f");
    ck_assert_int_eq(f(5), 1005);
    ck_assert_ok(left);
    cairn_exit_destroy(the_exit);
    LLVMDisposeExecutionEngine(engine);
}
END_TEST

/* A manager turns LLVM's liveness of patch points off, so nothing is recorded about it. */
START_TEST(records_have_no_live_outs)
{
    cairn_memory_manager *manager;
    struct cairn_record record;
    struct cairn_liveout liveout;
    ck_assert_ok(cairn_memory_manager_create(runtime, NULL, &manager, NULL));
    LLVMExecutionEngineRef engine = create_llvm_engine(parse_site("f", 7), manager);
    ck_assert_uint_ne(LLVMGetFunctionAddress(engine, "f"), 0);
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 7, &record, 1), 1);
    ck_assert(!record_liveout(record, 0, &liveout));
    LLVMDisposeExecutionEngine(engine);
}
END_TEST

/* ---- PC sections, and finalisations that fail ---- */

#if LLVM_HAS_PC_SECTIONS

static LLVMModuleRef parse_noted(void)
{
    return support_parse_valid(context,
                               "define i64 @f(i64 %x) uwtable !pcsections !0 {\n  ret i64 %x\n}\n"
                               "!0 = !{!\"notes\", !1}\n!1 = !{i32 42}\n");
}

static LLVMExecutionEngineRef create_engine_with_pc_sections(uint8_t constant_count,
                                                             cairn_memory_manager **manager)
{
    const struct cairn_pc_section pc_section = {
        .section = "notes",
        .has_schema = true,
        .schema = {.has_size = true, .constant_count = constant_count, .constant_bytes = {4}}};
    const struct cairn_memory_manager_options options = {
        .modules = {.pc_sections = &pc_section, .pc_section_count = 1}};
    ck_assert_ok(cairn_memory_manager_create(runtime, &options, manager, NULL));
    return create_llvm_engine(parse_noted(), *manager);
}

START_TEST(pc_sections_are_kept)
{
    cairn_memory_manager *manager;
    struct cairn_pc_table_entry entry;
    LLVMExecutionEngineRef engine = create_engine_with_pc_sections(1, &manager);
    uint64_t f = LLVMGetFunctionAddress(engine, "f");
    ck_assert_uint_eq(support_find_pc_entries(runtime, f, &entry, 1), 1);
    ck_assert_uint_eq(entry.value.constants[0], 42);
    LLVMDisposeExecutionEngine(engine);
}
END_TEST

START_TEST(engine_goes_on_after_a_finalisation_that_fails)
{
    cairn_memory_manager *manager;
    struct cairn_error error = {0};
    LLVMExecutionEngineRef engine = create_engine_with_pc_sections(0, &manager);
    LLVMGetFunctionAddress(engine, "f");
    ck_assert_int_ne(cairn_memory_manager_status(manager, &error), CAIRN_OK);
    assert_says(&error, "notes");
    ck_assert_uint_eq(statistics().module_count, 0);
    LLVMAddModule(engine, parse_constant("g", 5));
    uint64_t g = LLVMGetFunctionAddress(engine, "g");
    ck_assert_ok(cairn_memory_manager_status(manager, NULL));
    ck_assert_int_eq(((function *)(uintptr_t)g)(0), 5);
    LLVMDisposeExecutionEngine(engine);
}
END_TEST

#endif

/* Returns the status of loading a module; allocation number `fail_at` fails after the engine was
 * created. */
static enum cairn_status load_without_memory(size_t fail_at)
{
    struct support_allocator allocator = {.fail_at = 0};
    cairn_runtime *own;
    cairn_memory_manager *manager;
    const struct cairn_runtime_options options = {.allocator = support_counting(&allocator)};
    ck_assert_ok(cairn_runtime_create(&options, &own, NULL));
    ck_assert_ok(cairn_memory_manager_create(own, NULL, &manager, NULL));
    LLVMModuleRef module = parse_site("f", 7);
    ck_assert_ok(cairn_memory_manager_declare(manager, module, NULL));
    LLVMExecutionEngineRef engine = create_llvm_engine(module, manager);
    allocator.fail_at = allocator.calls + fail_at;
    LLVMGetFunctionAddress(engine, "f");
    enum cairn_status status = cairn_memory_manager_status(manager, NULL);
    allocator.fail_at = 0;
    ck_assert_uint_eq(cairn_runtime_find_id(own, 7, NULL, 0), status == CAIRN_OK);
    LLVMAddModule(engine, parse_constant("g", 5));
    uint64_t g = LLVMGetFunctionAddress(engine, "g");
    ck_assert_ok(cairn_memory_manager_status(manager, NULL));
    ck_assert_int_eq(((function *)(uintptr_t)g)(0), 5);
    LLVMDisposeExecutionEngine(engine);
    cairn_runtime_destroy(own);
    ck_assert_uint_eq(allocator.outstanding_bytes, 0);
    return status;
}

START_TEST(every_allocation_of_a_finalisation_may_fail_and_nothing_is_lost)
{
    enum { AT_LEAST = 10 };
    size_t failures = 0;
    enum cairn_status status = CAIRN_ERROR_MEMORY;
    while ((status = load_without_memory(failures + 1)) != CAIRN_OK) {
        ck_assert_int_eq(status, CAIRN_ERROR_MEMORY);
        failures++;
    }
    ck_assert_uint_ge(failures, AT_LEAST);
}
END_TEST

START_TEST(code_models_with_short_distances_are_refused)
{
    const struct cairn_memory_manager_options options = {.code_model = LLVMCodeModelSmall};
    cairn_memory_manager *manager = NULL;
    struct cairn_error error = {0};
    ck_assert_int_eq(cairn_memory_manager_create(runtime, &options, &manager, &error),
                     CAIRN_ERROR_UNSUPPORTED);
    assert_says(&error, "LLVMCodeModelLarge");
    ck_assert_ptr_null(manager);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, memory_manager_serves_an_engine_of_the_host);
    tcase_add_test(tests, memory_manager_sees_the_errors_of_its_engine);
    tcase_add_loop_test(tests, modules_of_equal_declarations_are_loaded_one_after_the_other, 0, 2);
    tcase_add_test(tests, declared_modules_may_be_linked_into_one);
    tcase_add_test(tests, undeclared_records_have_no_site);
    tcase_add_test(tests, memory_manager_may_go_unused);
    tcase_add_test(tests, hooks_see_the_module_before_and_after_publication);
    tcase_add_test(tests, retired_module_is_kept_until_the_engine_is_disposed_of);
    tcase_add_test(tests, modules_that_are_finalised_together_become_one);
    tcase_add_test(tests, an_exit_reads_the_frame_and_returns_from_it);
    tcase_add_test(tests, deoptimize_calls_the_function_that_the_host_binds);
    tcase_add_test(tests, records_have_no_live_outs);
#if LLVM_HAS_PC_SECTIONS
    tcase_add_test(tests, pc_sections_are_kept);
    tcase_add_test(tests, engine_goes_on_after_a_finalisation_that_fails);
#endif
    tcase_add_test(tests, every_allocation_of_a_finalisation_may_fail_and_nothing_is_lost);
    tcase_add_test(tests, code_models_with_short_distances_are_refused);
}

int main(void) { return engine_main("MCJIT", add_tests); }
