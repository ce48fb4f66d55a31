/*
 * Tests of engines: modules that are refused, errors that LLVM reports, and missing symbols.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/llvm_engine_support.h"
#include "llvm/engine.h"

#include <stdio.h>
#include <string.h>

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
        assert_not_loaded(engine, "f", CAIRN_ERROR_FULL, "slab_size");
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
    ck_assert_ptr_null(support_compiled_function(engine, "f", NULL));
    add(engine, parse_constant("later", 4));
    ck_assert_int_eq(get(engine, "later")(0), 4);
    assert_not_loaded(engine, "f", CAIRN_ERROR_NOT_FOUND, "");
    cairn_engine_destroy(engine);
}
END_TEST

/* ---- Symbols that nothing defines ---- */

START_TEST(unresolved_symbol_is_named_and_nothing_is_published)
{
    cairn_engine *engine = create_engine(parse_call("f", "nobody_defines_this"));
    assert_not_loaded(engine, "f", CAIRN_ERROR_NOT_FOUND, "nobody_defines_this");
    ck_assert_uint_eq(statistics().module_count, 0);
    cairn_engine_destroy(engine);
}
END_TEST

START_TEST(engine_goes_on_after_an_unresolved_symbol)
{
    struct cairn_error error = {0};
    cairn_engine *engine = create_engine(parse_constant("before", 5));
    ck_assert_int_eq(get(engine, "before")(0), 5);
    add(engine, parse_call("f", "nobody_defines_this"));
    ck_assert_ptr_null(support_compiled_function(engine, "f", &error));
    ck_assert_int_eq(cairn_engine_compile(engine, &error), CAIRN_ERROR_NOT_FOUND);
    add(engine, parse_constant("later", 6));
    ck_assert_int_eq(get(engine, "later")(0), 6);
    ck_assert_ptr_null(support_compiled_function(engine, "f", &error));
    ck_assert_int_eq(get(engine, "before")(0), 5);
    cairn_engine_destroy(engine);
}
END_TEST

START_TEST(all_unresolved_symbols_are_named)
{
    cairn_engine *engine = create_engine(parse_call("f", "missing_here"));
    add(engine, parse_call("g", "missing_there"));
    assert_not_loaded(engine, "f", CAIRN_ERROR_NOT_FOUND, "missing_here");
    assert_not_loaded(engine, "f", CAIRN_ERROR_NOT_FOUND, "missing_there");
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
    assert_not_loaded(engine, "f", CAIRN_ERROR_LLVM, reported[index].error);
    ck_assert_ptr_null(support_compiled_function(engine, "with", NULL));
    ck_assert_uint_eq(statistics().module_count, 1);
    ck_assert(LLVMContextGetDiagnosticHandler(context) == (has_handler ? count_diagnostic : NULL));
    ck_assert_ptr_eq(LLVMContextGetDiagnosticContext(context), has_handler ? &seen : NULL);
    ck_assert_int_eq(seen.errors > 0, has_handler);
    /* Modules that are loaded stay, and the engine can load more. */
    call_target(1, add_hundred);
    ck_assert_int_eq(f_before(1), 101);
    add(engine, parse_constant("later", 6));
    ck_assert_int_eq(get(engine, "later")(0), 6);
    assert_not_loaded(engine, "f", CAIRN_ERROR_NOT_FOUND, "");
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
    ck_assert_ptr_null(support_compiled_function(engine, "f1", &error));
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
    ck_assert_int_eq(cairn_engine_compile(engine, &error), CAIRN_ERROR_LLVM);
    assert_says(&error, "directive");
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
    ck_assert_ok(cairn_engine_compile(engine, NULL));
    ck_assert_uint_eq(statistics().module_count, 1);
    const int64_t *data = support_compiled_function(engine, "data", NULL);
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
    const struct support_symbol symbols[] = {
        {"mapped_by_the_host", (const void *)(uintptr_t)add_hundred}, {NULL, NULL}};
    const struct cairn_engine_options options = {.load = support_symbols(symbols)};
    cairn_engine *engine;
    ck_assert_ok(cairn_engine_create(runtime, parse_call("f", "mapped_by_the_host"), &options,
                                     &engine, NULL));
    ck_assert_int_eq(get(engine, "f")(1), 101);
    cairn_engine_destroy(engine);
}
END_TEST

START_TEST(unknown_function_is_not_found)
{
    cairn_engine *engine = create_engine(parse_constant("f", 1));
    assert_not_loaded(engine, "nobody", CAIRN_ERROR_NOT_FOUND, "'nobody'");
    ck_assert_int_eq(get(engine, "f")(0), 1);
    cairn_engine_destroy(engine);
}
END_TEST

static void assert_refused(LLVMModuleRef module, enum cairn_status expected, const char *what)
{
    struct cairn_error error = {0};
    cairn_engine *engine = NULL;
    ck_assert_int_eq(cairn_engine_create(runtime, module, NULL, &engine, &error), expected);
    assert_says(&error, what);
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
    ck_assert_int_eq(cairn_engine_compile(NULL, NULL), CAIRN_ERROR_ARGUMENT);
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
    tcase_add_test(tests, module_larger_than_a_slab_is_full);
    tcase_add_test(tests, functions_that_failed_to_load_stay_failed);
    tcase_add_test(tests, unresolved_symbol_is_named_and_nothing_is_published);
    tcase_add_test(tests, engine_goes_on_after_an_unresolved_symbol);
    tcase_add_test(tests, all_unresolved_symbols_are_named);
    tcase_add_test(tests, contexts_of_one_engine_are_all_observed);
    tcase_add_test(tests, error_in_a_module_without_functions_fails_the_finalisation);
    tcase_add_test(tests, data_of_a_module_without_functions_is_loaded);
    tcase_add_test(tests, warning_that_llvm_reports_reaches_the_host_and_fails_nothing);
    tcase_add_test(tests, symbols_of_the_host_are_found);
    tcase_add_test(tests, unknown_function_is_not_found);
    tcase_add_test(tests, module_for_another_machine_is_refused);
    tcase_add_test(tests, module_that_would_crash_llvm_is_refused);
    tcase_add_test(tests, bad_arguments_are_refused);
    tcase_add_loop_test(tests, error_that_llvm_reports_fails_the_finalisation, 0, 4 * REPORTED);
}

int main(void) { return engine_main("llvm engine errors", add_tests); }
