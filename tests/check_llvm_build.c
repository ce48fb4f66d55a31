/*
 * Tests of the builders: the IR that they build, that the scan declares the same, and the errors.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "llvm_support.h"
#include "llvm/scan.h"
#include "llvm/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static LLVMContextRef context;
static LLVMModuleRef module;
static LLVMValueRef function;
static LLVMBuilderRef builder;

enum {
    PARAMETER_I64,
    PARAMETER_I1,
    PARAMETER_I8,
    PARAMETER_I33,
    PARAMETER_DOUBLE,
    PARAMETER_POINTER,
    PARAMETERS
};

static void set_up(void)
{
    context = LLVMContextCreate();
    module = LLVMModuleCreateWithNameInContext("test", context);
    LLVMTypeRef types[PARAMETERS] = {
        [PARAMETER_I64] = LLVMInt64TypeInContext(context),
        [PARAMETER_I1] = LLVMInt1TypeInContext(context),
        [PARAMETER_I8] = LLVMInt8TypeInContext(context),
        [PARAMETER_I33] = LLVMIntTypeInContext(context, 33),
        [PARAMETER_DOUBLE] = LLVMDoubleTypeInContext(context),
        [PARAMETER_POINTER] = version_byte_pointer_type(context),
    };
    function = LLVMAddFunction(
        module, "f", LLVMFunctionType(LLVMVoidTypeInContext(context), types, PARAMETERS, 0));
    builder = LLVMCreateBuilderInContext(context);
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, function, "entry"));
}

static void tear_down(void)
{
    LLVMDisposeBuilder(builder);
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
}

static LLVMValueRef build(const struct cairn_patchpoint *patchpoint)
{
    struct cairn_error error = {0};
    LLVMValueRef result = cairn_build_patchpoint(builder, patchpoint, &error);
    ck_assert_msg(result != NULL, "%s", error.message);
    return result;
}

/* Verifies, prints and parses the module, and verifies and scans the result. */
static cairn_declarations *finish(void)
{
    LLVMBuildRetVoid(builder);
    support_verify(module);
    module = support_print_and_parse(module);
    support_verify(module);
    cairn_declarations *set;
    struct cairn_error error = {0};
    ck_assert_ok(cairn_declarations_create(NULL, &set, NULL));
    enum cairn_status status = scan_module(module, false, set, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return set;
}

static void assert_type(struct cairn_type type, const char *text)
{
    char formatted[64];
    cairn_type_format(type, formatted, sizeof formatted);
    ck_assert_str_eq(formatted, text);
}

static void assert_compiles(void)
{
    struct support_compilation compilation = {0};
    ck_assert_int_eq(support_compile(module, &compilation), SUPPORT_COMPILED);
}

/* ---- Stack maps ---- */

START_TEST(stackmap_is_built)
{
    LLVMValueRef values[] = {LLVMGetParam(function, PARAMETER_I64),
                             LLVMGetParam(function, PARAMETER_DOUBLE)};
    ck_assert_ptr_nonnull(cairn_build_stackmap(builder, UINT64_MAX, 8, values, 2, NULL));
    ck_assert_ptr_nonnull(cairn_build_stackmap(builder, 3, 0, NULL, 0, NULL));
    cairn_declarations *set = finish();
    const struct cairn_declaration *declaration = cairn_declarations_find(set, UINT64_MAX);
    ck_assert_int_eq(declaration->kind, CAIRN_RECORD_STACKMAP);
    ck_assert_uint_eq(declaration->byte_count, 8);
    ck_assert_uint_eq(declaration->live_value_count, 2);
    assert_type(declaration->types[0], "i64");
    assert_type(declaration->types[1], "double");
    ck_assert_uint_eq(cairn_declarations_find(set, 3)->live_value_count, 0);
    cairn_declarations_destroy(set);
    assert_compiles();
}
END_TEST

/* LLVM 14 crashes on small integers everywhere except on x86-64; the builder widens them. */
START_TEST(small_integers_keep_their_declared_types)
{
    static const char *const triples[] = {NULL, "aarch64-linux-gnu", "powerpc64le-linux-gnu",
                                          "s390x-linux-gnu"};
    static const char *const types[] = {"i1", "i64", "i8", "i33"};
    if (triples[_i] != NULL)
        LLVMSetTarget(module, triples[_i]);
    LLVMValueRef values[] = {
        LLVMGetParam(function, PARAMETER_I1), LLVMGetParam(function, PARAMETER_I64),
        LLVMGetParam(function, PARAMETER_I8), LLVMGetParam(function, PARAMETER_I33)};
    struct cairn_patchpoint patchpoint = {.id = 2,
                                          .byte_count = 64,
                                          .arguments = values + 1,
                                          .argument_count = 1,
                                          .live_values = values,
                                          .live_value_count = 4};
    build(&patchpoint);
    ck_assert_ptr_nonnull(cairn_build_stackmap(builder, 1, 0, values, 4, NULL));
    cairn_declarations *set = finish();
    for (uint32_t i = 0; i < 4; i++) {
        assert_type(cairn_declarations_find(set, 1)->types[i], types[i]);
        assert_type(cairn_declarations_find(set, 2)->types[1 + i], types[i]);
    }
    cairn_declarations_destroy(set);
    ck_assert_ok(cairn_check_module(module, NULL, NULL));
    if (triples[_i] != NULL && !support_has_target(triples[_i]))
        return;
    struct support_compilation compilation = {.triple = triples[_i]};
    ck_assert_int_eq(support_compile(module, &compilation), SUPPORT_COMPILED);
}
END_TEST

START_TEST(foreign_metadata_is_ignored)
{
    static const char *const nodes[] = {
        "!{}",        "!{!\"i8\", !\"i8\"}", "!{!\"i64\"}", "!{!\"i0\"}",
        "!{!\"x8\"}", "!{!\"i8x\"}",         "!{i32 8}",    "!{null}",
        "!{!{}}"};
    char text[512];
    snprintf(text, sizeof text,
             SUPPORT_INTRINSICS
             "define void @g(i32 %%x) {\n"
             "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i32 %%x), "
             "!cairn.types !0\n"
             "  ret void\n}\n!0 = %s\n",
             nodes[_i]);
    LLVMModuleRef parsed = support_parse_valid(context, text);
    cairn_declarations *set;
    ck_assert_ok(cairn_declarations_create(NULL, &set, NULL));
    ck_assert_ok(scan_module(parsed, false, set, NULL));
    assert_type(cairn_declarations_find(set, 1)->types[0], "i32");
    cairn_declarations_destroy(set);
    LLVMDisposeModule(parsed);
}
END_TEST

/* ---- Patch points ---- */

START_TEST(result_is_of_the_type_that_was_asked_for)
{
    LLVMTypeRef results[] = {
        LLVMInt1TypeInContext(context),     LLVMInt8TypeInContext(context),
        LLVMInt16TypeInContext(context),    LLVMInt32TypeInContext(context),
        LLVMIntTypeInContext(context, 33),  LLVMInt64TypeInContext(context),
        version_byte_pointer_type(context),
    };
    enum { RESULTS = sizeof results / sizeof *results };
    for (uint64_t i = 0; i < RESULTS; i++) {
        struct cairn_patchpoint patchpoint = {
            .id = i, .byte_count = 16, .result_type = results[i], .name = "answer"};
        LLVMValueRef result = build(&patchpoint);
        ck_assert_ptr_eq(LLVMTypeOf(result), results[i]);
        size_t length;
        ck_assert_int_eq(strncmp(LLVMGetValueName2(result, &length), "answer", 6), 0);
    }
    struct cairn_patchpoint nothing = {.id = 100, .byte_count = 16, .name = "ignored"};
    build(&nothing);
    nothing.id = 101;
    nothing.result_type = LLVMVoidTypeInContext(context);
    build(&nothing);
    cairn_declarations *set = finish();
    ck_assert_uint_eq(cairn_declarations_count(set), RESULTS + 2);
    assert_type(cairn_declarations_find(set, 0)->result, "i64");
    assert_type(cairn_declarations_find(set, 101)->result, "void");
    cairn_declarations_destroy(set);
    assert_compiles();
}
END_TEST

START_TEST(other_results_need_a_newer_llvm)
{
    LLVMTypeRef results[] = {LLVMDoubleTypeInContext(context), LLVMFloatTypeInContext(context),
                             LLVMVectorType(LLVMInt32TypeInContext(context), 4)};
    static const char *const names[] = {"double", "float", "<4 x i32>"};
    struct cairn_patchpoint patchpoint = {.id = 1, .byte_count = 16, .result_type = results[_i]};
    struct cairn_error error = {0};
    LLVMValueRef result = cairn_build_patchpoint(builder, &patchpoint, &error);
    if (!LLVM_PATCHPOINT_RETURNS_ANY_TYPE) {
        ck_assert_ptr_null(result);
        ck_assert_int_eq(error.status, CAIRN_ERROR_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(error.message, names[_i]));
        ck_assert_ptr_null(LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function)));
        return;
    }
    ck_assert_ptr_eq(LLVMTypeOf(result), results[_i]);
    cairn_declarations *set = finish();
    assert_type(cairn_declarations_find(set, 1)->result, names[_i]);
    cairn_declarations_destroy(set);
    assert_compiles();
}
END_TEST

START_TEST(results_that_fit_no_register_are_refused)
{
    LLVMTypeRef element = LLVMInt64TypeInContext(context);
    LLVMTypeRef results[] = {LLVMIntTypeInContext(context, 65),
                             LLVMInt128TypeInContext(context),
                             LLVMStructTypeInContext(context, &element, 1, 0),
                             LLVMArrayType(element, 2),
                             LLVMVectorType(element, 3),
                             LLVMLabelTypeInContext(context)};
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        struct cairn_patchpoint patchpoint = {.id = 1, .byte_count = 16, .result_type = results[i]};
        struct cairn_error error = {0};
        ck_assert_ptr_null(cairn_build_patchpoint(builder, &patchpoint, &error));
        ck_assert_int_eq(error.status, CAIRN_ERROR_UNSUPPORTED);
    }
    ck_assert_ptr_null(LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function)));
}
END_TEST

START_TEST(every_calling_convention_is_kept)
{
    enum { FAST = 8 };
    static const unsigned conventions[] = {CAIRN_CALLING_CONVENTION_C, FAST,
                                           CAIRN_CALLING_CONVENTION_ANYREG};
    LLVMValueRef arguments[] = {LLVMGetParam(function, PARAMETER_I64),
                                LLVMGetParam(function, PARAMETER_POINTER)};
    struct cairn_patchpoint patchpoint = {.id = 1,
                                          .byte_count = 16,
                                          .result_type = LLVMInt64TypeInContext(context),
                                          .calling_convention = conventions[_i],
                                          .arguments = arguments,
                                          .argument_count = 2};
    build(&patchpoint);
    cairn_declarations *set = finish();
    const struct cairn_declaration *declaration = cairn_declarations_find(set, 1);
    ck_assert_uint_eq(declaration->calling_convention, conventions[_i]);
    ck_assert_uint_eq(declaration->argument_count, 2);
    assert_type(declaration->types[1], "ptr");
    cairn_declarations_destroy(set);
    assert_compiles();
}
END_TEST

START_TEST(every_kind_of_target_is_taken)
{
    LLVMTypeRef int64 = LLVMInt64TypeInContext(context);
    LLVMTypeRef nothing = LLVMFunctionType(LLVMVoidTypeInContext(context), NULL, 0, 0);
    const struct {
        LLVMValueRef value;
        bool has_target;
    } targets[] = {
        {NULL, false},
        {LLVMConstNull(version_byte_pointer_type(context)), false},
        {LLVMConstNull(int64), false},
        {LLVMConstInt(int64, 0x123456789a, 0), true},
        {LLVMAddFunction(module, "callee", nothing), true},
    };
    /* AArch64 refuses the last one. */
    enum { TARGETS = sizeof targets / sizeof *targets, BYTES = 64 };
    LLVMSetTarget(module, "x86_64-linux-gnu");
    for (uint64_t i = 0; i < TARGETS; i++) {
        struct cairn_patchpoint patchpoint = {
            .id = i, .byte_count = BYTES, .target = targets[i].value};
        build(&patchpoint);
    }
    cairn_declarations *set = finish();
    for (uint64_t i = 0; i < TARGETS; i++)
        ck_assert_int_eq(cairn_declarations_find(set, i)->has_target, targets[i].has_target);
    cairn_declarations_destroy(set);
    ck_assert_ok(cairn_check_module(module, NULL, NULL));
    assert_compiles();
}
END_TEST

/* ---- Errors ---- */

static void assert_patchpoint_refused(const struct cairn_patchpoint *patchpoint,
                                      enum cairn_status expected, const char *what)
{
    struct cairn_error error = {0};
    ck_assert_ptr_null(cairn_build_patchpoint(builder, patchpoint, &error));
    ck_assert_int_eq(error.status, expected);
    ck_assert_msg(strstr(error.message, what) != NULL, "%s", error.message);
    ck_assert_ptr_null(LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function)));
}

START_TEST(too_few_and_too_many_bytes_are_out_of_range)
{
    uint32_t minimum = cairn_patchpoint_minimum_bytes(module, true);
    LLVMValueRef target = LLVMConstInt(LLVMInt64TypeInContext(context), 4096, 0);
    struct cairn_patchpoint patchpoint = {.id = 1, .byte_count = minimum - 1, .target = target};
    char number[16];
    snprintf(number, sizeof number, "reserve %u", minimum);
    assert_patchpoint_refused(&patchpoint, CAIRN_ERROR_RANGE, number);
    patchpoint.byte_count = CAIRN_PATCHPOINT_BYTES_MAX + 1;
    assert_patchpoint_refused(&patchpoint, CAIRN_ERROR_RANGE, "1048576");
    patchpoint.byte_count = minimum;
    build(&patchpoint);
    patchpoint = (struct cairn_patchpoint){.id = 2, .byte_count = 0};
    build(&patchpoint);
    LLVMBuildRetVoid(builder);
    assert_compiles();
}
END_TEST

START_TEST(builder_without_position_is_refused)
{
    LLVMBuilderRef nowhere = LLVMCreateBuilderInContext(context);
    struct cairn_patchpoint patchpoint = {.id = 1, .byte_count = 16};
    LLVMBuilderRef builders[] = {NULL, nowhere};
    for (int i = 0; i < 2; i++) {
        struct cairn_error error = {0};
        ck_assert_ptr_null(cairn_build_patchpoint(builders[i], &patchpoint, &error));
        ck_assert_int_eq(error.status, CAIRN_ERROR_ARGUMENT);
        ck_assert_ptr_null(cairn_build_stackmap(builders[i], 1, 0, NULL, 0, &error));
        ck_assert_int_eq(error.status, CAIRN_ERROR_ARGUMENT);
    }
    LLVMDisposeBuilder(nowhere);
}
END_TEST

START_TEST(missing_arrays_and_wrong_targets_are_refused)
{
    assert_patchpoint_refused(NULL, CAIRN_ERROR_ARGUMENT, "`patchpoint` is NULL");
    struct cairn_patchpoint patchpoint = {.byte_count = 16, .argument_count = 2};
    assert_patchpoint_refused(&patchpoint, CAIRN_ERROR_ARGUMENT, "2 arguments");
    patchpoint = (struct cairn_patchpoint){.byte_count = 16, .live_value_count = 3};
    assert_patchpoint_refused(&patchpoint, CAIRN_ERROR_ARGUMENT, "3 live values");
    patchpoint = (struct cairn_patchpoint){.byte_count = 16,
                                           .target = LLVMGetParam(function, PARAMETER_DOUBLE)};
    assert_patchpoint_refused(&patchpoint, CAIRN_ERROR_ARGUMENT, "target");
    ck_assert_ptr_null(cairn_build_stackmap(builder, 1, 0, NULL, 1, NULL));
}
END_TEST

START_TEST(live_values_that_crash_are_refused)
{
    /* Some of them are valid on other architectures. */
    LLVMSetTarget(module, "x86_64-linux-gnu");
    LLVMTypeRef element = LLVMInt64TypeInContext(context);
    LLVMTypeRef types[] = {LLVMInt128TypeInContext(context), LLVMVectorType(element, 1),
                           LLVMVectorType(element, 3), LLVMArrayType(element, 0),
                           LLVMStructTypeInContext(context, NULL, 0, 0)};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        LLVMValueRef values[] = {LLVMGetParam(function, 0), LLVMGetUndef(types[i])};
        struct cairn_patchpoint patchpoint = {
            .byte_count = 16, .live_values = values, .live_value_count = 2};
        assert_patchpoint_refused(&patchpoint, CAIRN_ERROR_UNSUPPORTED, "live value 1");
        struct cairn_error error = {0};
        ck_assert_ptr_null(cairn_build_stackmap(builder, 1, 0, values, 2, &error));
        ck_assert_int_eq(error.status, CAIRN_ERROR_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(error.message, "Give it"));
    }
}
END_TEST

/* ---- Functions ---- */

START_TEST(prepared_function_has_the_attributes)
{
    cairn_prepare_function(function);
    unsigned kind = LLVMGetEnumAttributeKindForName("uwtable", strlen("uwtable"));
    LLVMAttributeIndex at = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    LLVMAttributeRef table = LLVMGetEnumAttributeAtIndex(function, at, kind);
    ck_assert_ptr_nonnull(table);
    ck_assert_uint_eq(LLVMGetEnumAttributeValue(table), LLVM_VERSION_MAJOR >= 15 ? 2 : 0);
    static const char name[] = "frame-pointer";
    LLVMAttributeRef frame = LLVMGetStringAttributeAtIndex(function, at, name, sizeof name - 1);
    ck_assert_ptr_nonnull(frame);
    unsigned length;
    ck_assert_str_eq(LLVMGetStringAttributeValue(frame, &length), "all");
    static const char pads[] = "branch-target-enforcement";
    ck_assert_ptr_nonnull(LLVMGetStringAttributeAtIndex(function, at, pads, sizeof pads - 1));
    LLVMBuildRetVoid(builder);
    support_verify(module);
    assert_compiles();
}
END_TEST

START_TEST(minimum_bytes_follow_the_triple)
{
    static const struct {
        const char *triple;
        uint32_t with_target;
        uint32_t without_target;
    } rows[] = {{"x86_64-linux-gnu", 13, 9},     {"aarch64-linux-gnu", 16, 4},
                {"arm64-apple-darwin", 16, 4},   {"powerpc64le-linux-gnu", 40, 12},
                {"powerpc64-linux-gnu", 48, 12}, {"s390x-linux-gnu", 14, 6},
                {"riscv64-linux-gnu", 28, 4},    {"wasm32-unknown-unknown", 0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        LLVMSetTarget(module, rows[i].triple);
        ck_assert_uint_eq(cairn_patchpoint_minimum_bytes(module, true), rows[i].with_target);
        ck_assert_uint_eq(cairn_patchpoint_minimum_bytes(module, false), rows[i].without_target);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("llvm build");
    TCase *tests = tcase_create("build");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, stackmap_is_built);
    tcase_add_loop_test(tests, small_integers_keep_their_declared_types, 0, 4);
    tcase_add_loop_test(tests, foreign_metadata_is_ignored, 0, 9);
    tcase_add_test(tests, result_is_of_the_type_that_was_asked_for);
    tcase_add_loop_test(tests, other_results_need_a_newer_llvm, 0, 3);
    tcase_add_test(tests, results_that_fit_no_register_are_refused);
    tcase_add_loop_test(tests, every_calling_convention_is_kept, 0, 3);
    tcase_add_test(tests, every_kind_of_target_is_taken);
    tcase_add_test(tests, too_few_and_too_many_bytes_are_out_of_range);
    tcase_add_test(tests, builder_without_position_is_refused);
    tcase_add_test(tests, missing_arrays_and_wrong_targets_are_refused);
    tcase_add_test(tests, live_values_that_crash_are_refused);
    tcase_add_test(tests, prepared_function_has_the_attributes);
    tcase_add_test(tests, minimum_bytes_follow_the_triple);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
