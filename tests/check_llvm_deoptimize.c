/*
 * Tests of calls that LLVM compiles to statepoints because they have a "deopt" bundle, and of calls
 * of llvm.experimental.deoptimize, which exit to the host's handler.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "llvm_support.h"
#include "value/representation.h"
#include "llvm/scan.h"

#include "llvm/version.h"

#include <llvm-c/Support.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static LLVMContextRef context;
static cairn_runtime *runtime;
static cairn_engine *engine;
static cairn_exit *the_exit;

enum { VALUES_MAX = 8, RESULT = 1000 };

/* Values that the handler read. */
static struct {
    int calls;
    uint64_t id;
    uint32_t count;
    struct cairn_value values[VALUES_MAX];
    enum cairn_status status;
} seen;

static void leave(struct cairn_exit_call *call, void *user)
{
    (void)user;
    seen.calls++;
    seen.id = call->record.table == NULL ? 0 : cairn_record_id(call->record);
    seen.count = cairn_record_live_value_count(call->record);
    for (uint32_t i = 0; i < seen.count && i < VALUES_MAX; i++)
        if (cairn_frame_value(&call->frame, call->record, i, &seen.values[i], NULL) != CAIRN_OK)
            seen.values[i] = (struct cairn_value){0};
    struct cairn_value result = cairn_value_of_integer(64, RESULT + seen.count);
    seen.status = cairn_exit_return(call, &result, 1, NULL);
}

static void set_up(void)
{
    memset(&seen, 0, sizeof seen);
    context = LLVMContextCreate();
    engine = NULL;
    ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL));
    ck_assert_ok(cairn_exit_create(runtime, leave, NULL, &the_exit, NULL));
}

static void tear_down(void)
{
    cairn_exit_destroy(the_exit);
    cairn_engine_destroy(engine);
    cairn_runtime_destroy(runtime);
    LLVMContextDispose(context);
}

static LLVMModuleRef parse(const char *text)
{
    LLVMModuleRef module = support_parse_valid(context, text);
    for (LLVMValueRef function = LLVMGetFirstFunction(module); function != NULL;
         function = LLVMGetNextFunction(function))
        if (!LLVMIsDeclaration(function))
            cairn_prepare_function(function);
    return module;
}

typedef int64_t guarded(int64_t x, double d, int32_t small, const void *pointer);

static guarded *load(LLVMModuleRef module, struct cairn_engine_options options)
{
    struct cairn_error error = {0};
    enum cairn_status status = cairn_engine_create(runtime, module, &options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    void *function = support_compiled_function(engine, "f", &error);
    ck_assert_msg(function != NULL, "%s", error.message);
    return (guarded *)(uintptr_t)function;
}

#define DEOPTIMIZE "declare i64 @llvm.experimental.deoptimize.i64(...)\n"

#define GUARDED                                                                                    \
    DEOPTIMIZE                                                                                     \
    "define i64 @f(i64 %x, double %d, i32 %small, ptr %p) {\n"                                     \
    "  %is = icmp eq i64 %x, 0\n"                                                                  \
    "  br i1 %is, label %slow, label %fast\n"                                                      \
    "fast:\n"                                                                                      \
    "  ret i64 %x\n"                                                                               \
    "slow:\n"                                                                                      \
    "  %r = call i64 (...) @llvm.experimental.deoptimize.i64()\n"                                  \
    "      [ \"deopt\"(i32 42, double %d, i32 %small, ptr %p, i64 %x) ]\n"                         \
    "  ret i64 %r\n"                                                                               \
    "}\n"

START_TEST(deoptimize_leaves_to_a_handler_that_reads_typed_values)
{
    if (!support_has_statepoints())
        return;
    struct cairn_engine_options options = {
        .optimisation_level = (unsigned)_i % 4,
        .deoptimize_target = cairn_exit_target(the_exit),
    };
    guarded *f = load(parse(GUARDED), options);
    int there = 0;
    ck_assert_int_eq(f(5, 1.5, -3, &there), 5);
    ck_assert_int_eq(seen.calls, 0);
    ck_assert_int_eq(f(0, 1.5, -3, &there), RESULT + 5);
    ck_assert_int_eq(seen.calls, 1);
    ck_assert_ok(seen.status);
    ck_assert_uint_eq(seen.id, 2882400015);
    ck_assert_uint_eq(seen.count, 5);
    ck_assert_int_eq(seen.values[0].type.kind, CAIRN_TYPE_INTEGER);
    ck_assert_int_eq(cairn_value_signed(&seen.values[0]), 42);
    ck_assert_int_eq(seen.values[1].type.kind, CAIRN_TYPE_DOUBLE);
    ck_assert_double_eq(cairn_value_double(&seen.values[1]), 1.5);
    ck_assert_uint_eq(seen.values[2].type.bits, 32);
    ck_assert_int_eq(cairn_value_signed(&seen.values[2]), -3);
    ck_assert_int_eq(seen.values[3].type.kind, CAIRN_TYPE_POINTER);
    ck_assert_uint_eq(value_unsigned(&seen.values[3]), (uintptr_t)&there);
    ck_assert_int_eq(cairn_value_signed(&seen.values[4]), 0);
}
END_TEST

START_TEST(deoptimize_without_a_target_says_how_to_bind_it)
{
    if (!support_has_statepoints())
        return;
    struct cairn_error error = {0};
    ck_assert_ok(cairn_engine_create(runtime, parse(GUARDED), NULL, &engine, NULL));
    ck_assert_ptr_null(support_compiled_function(engine, "f", &error));
    ck_assert_int_eq(error.status, CAIRN_ERROR_NOT_FOUND);
    ck_assert_msg(strstr(error.message, "__llvm_deoptimize") != NULL, "%s", error.message);
    ck_assert_msg(strstr(error.message, "deoptimize_target") != NULL, "%s", error.message);
}
END_TEST

/* All calls have one shape, because LLVM gives them all the same ID. */
START_TEST(deoptimize_calls_of_several_shapes_are_all_declared)
{
    if (!support_has_statepoints())
        return;
    struct cairn_engine_options options = {
        .deoptimize_target = cairn_exit_target(the_exit),
        .optimisation_level = (unsigned)_i % 4,
    };
    guarded *f =
        load(parse(DEOPTIMIZE
                   "define i64 @f(i64 %x, double %d, i32 %small, ptr %p) {\n"
                   "  switch i64 %x, label %none [ i64 0, label %one\n"
                   "                               i64 1, label %two ]\n"
                   "one:\n"
                   "  %a = call i64 (...) @llvm.experimental.deoptimize.i64(i64 %x)\n"
                   "      [ \"deopt\"(double %d) ]\n"
                   "  ret i64 %a\n"
                   "two:\n"
                   "  %b = call i64 (...) @llvm.experimental.deoptimize.i64()\n"
                   "      [ \"deopt\"(i32 %small, ptr %p) ]\n"
                   "  ret i64 %b\n"
                   "none:\n"
                   "  %c = call i64 (...) @llvm.experimental.deoptimize.i64() [ \"deopt\"() ]\n"
                   "  ret i64 %c\n"
                   "}\n"),
             options);
    ck_assert_int_eq(f(0, 2.5, 7, NULL), RESULT + 1);
    ck_assert_double_eq(cairn_value_double(&seen.values[0]), 2.5);
    ck_assert_int_eq(f(1, 2.5, 7, NULL), RESULT + 2);
    ck_assert_int_eq(cairn_value_signed(&seen.values[0]), 7);
    ck_assert_uint_ge(seen.id, UINT64_C(1) << 31);
    ck_assert_int_eq(f(2, 2.5, 7, NULL), RESULT);
}
END_TEST

/* ---- Other calls with a "deopt" bundle ---- */

static int64_t walk_calls;

/* The function that compiled code calls: it reads its caller's record and live values. */
static int64_t stopped(int64_t x)
{
    struct cairn_context saved;
    struct cairn_walk walk;
    struct cairn_frame frame;
    struct cairn_error error = {0};
    if (cairn_context_save(&saved) != 0)
        return -1;
    ck_assert_ok(cairn_frame_from_context(runtime, &saved, true, &frame, &error));
    cairn_walk_begin(&walk, &frame);
    walk.foreign = cairn_walk_native;
    enum cairn_status status = cairn_walk_next(&walk, &error);
    ck_assert_msg(status == CAIRN_OK && !walk.has_ended, "%s", error.message);
    struct cairn_record record;
    ck_assert(cairn_frame_record(&walk.frame, &record));
    seen.id = cairn_record_id(record);
    seen.count = cairn_record_live_value_count(record);
    ck_assert_uint_le(seen.count, VALUES_MAX);
    for (uint32_t i = 0; i < seen.count; i++)
        ck_assert_ok(cairn_frame_value(&walk.frame, record, i, &seen.values[i], NULL));
    walk_calls++;
    return x + 1;
}

#if LLVM_HAS_OPAQUE_POINTERS
#define PERSONALITY "ptr @nobody_throws"
#else
#define PERSONALITY "i32 (...)* @nobody_throws"
#endif

/* The callee is a pointer, so no symbol must be bound. */
static const char *const calls[] = {
    "define i64 @f(i64 %x, double %d, i32 %small, ptr %p) {\n"
    "  %callee = bitcast ptr %p to FUNCTION\n"
    "  %r = call i64 %callee(i64 %x) [ \"deopt\"(i64 %x, double %d) ]\n"
    "  ret i64 %r\n}\n",
    "define i64 @f(i64 %x, double %d, i32 %small, ptr %p) {\n"
    "  %callee = bitcast ptr %p to FUNCTION\n"
    "  %r = call i64 %callee(i64 %x) \"statepoint-id\"=\"17\" [ \"deopt\"(i64 %x, double %d) ]\n"
    "  ret i64 %r\n}\n",
    "define i32 @nobody_throws(...) {\n"
    "  ret i32 0\n}\n"
    "define i64 @f(i64 %x, double %d, i32 %small, ptr %p) personality " PERSONALITY " {\n"
    "  %callee = bitcast ptr %p to FUNCTION\n"
    "  %r = invoke i64 %callee(i64 %x) #0 [ \"deopt\"(i64 %x, double %d) ]\n"
    "      to label %normal unwind label %pad\n"
    "normal:\n"
    "  ret i64 %r\n"
    "pad:\n"
    "  %l = landingpad { ptr, i32 } cleanup\n"
    "  ret i64 0\n}\n"
    "attributes #0 = { \"statepoint-id\"=\"17\" }\n",
    "declare void @llvm.experimental.stackmap(i64, i32, ...)\n"
    "define i64 @f(i64 %x, double %d, i32 %small, ptr %p) {\n"
    "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0)\n"
    "  %callee = bitcast ptr %p to FUNCTION\n"
    "  %r = call i64 %callee(i64 %x) \"statepoint-id\"=\"17\" [ \"deopt\"(i64 %x, double %d) ]\n"
    "  ret i64 %r\n}\n",
};
enum { CALLS = sizeof calls / sizeof *calls };

/* Parses the call; FUNCTION becomes the callee's pointer type, also where LLVM has typed pointers.
 */
static LLVMModuleRef parse_call(int index)
{
    const char *place = strstr(calls[index], "FUNCTION");
    char text[1024];
    snprintf(text, sizeof text, "%.*s%s%s", (int)(place - calls[index]), calls[index],
             LLVM_HAS_OPAQUE_POINTERS ? "ptr" : "i64 (i64)*", place + strlen("FUNCTION"));
    return parse(text);
}

/* At -O0 on AArch64, LLVM writes no record for a call that is the only one in its function. */
static bool has_no_record(int index, unsigned optimisation_level)
{
    return index < 2 && optimisation_level == 0 &&
           cairn_architecture_host() == CAIRN_ARCHITECTURE_AARCH64;
}

static void assert_refused(LLVMModuleRef module, struct cairn_engine_options options)
{
    struct cairn_error error = {0};
    ck_assert_int_eq(cairn_engine_create(runtime, module, &options, &engine, &error),
                     CAIRN_ERROR_LLVM);
    ck_assert_msg(strstr(error.message, "makes no record") != NULL, "%s", error.message);
    LLVMDisposeModule(module);
}

START_TEST(records_of_calls_with_a_deopt_bundle_are_declared)
{
    if (!support_has_statepoints())
        return;
    int index = _i % CALLS;
    struct cairn_engine_options options = {.optimisation_level = (unsigned)(_i / CALLS)};
    if (has_no_record(index, options.optimisation_level)) {
        assert_refused(parse_call(index), options);
        return;
    }
    guarded *f = load(parse_call(index), options);
    walk_calls = 0;
    ck_assert_int_eq(f(6, 3.5, 1, (const void *)(uintptr_t)stopped), 7);
    ck_assert_int_eq(walk_calls, 1);
    ck_assert_uint_eq(seen.id, index == 0 ? 2882400015 : 17);
    ck_assert_uint_eq(seen.count, 2);
    ck_assert_int_eq(cairn_value_signed(&seen.values[0]), 6);
    ck_assert_double_eq(cairn_value_double(&seen.values[1]), 3.5);
}
END_TEST

/* LLVM truncates these IDs; records and declarations must agree on the result. */
START_TEST(wide_ids_of_statepoints_are_those_of_their_records)
{
    if (!support_has_statepoints())
        return;
    guarded *f =
        load(parse("declare void @g()\n"
                   "define i64 @f(i64 %x, double %d, i32 %small, ptr %p) {\n"
                   "  %is = icmp eq i64 %x, 0\n"
                   "  br i1 %is, label %slow, label %fast\n"
                   "fast:\n"
                   "  ret i64 %x\n"
                   "slow:\n"
                   "  %r = call i64 (...) @llvm.experimental.deoptimize.i64()\n"
                   "      \"statepoint-id\"=\"4294967305\" [ \"deopt\"(i64 7) ]\n"
                   "  ret i64 %r\n"
                   "}\n" DEOPTIMIZE),
             (struct cairn_engine_options){.deoptimize_target = cairn_exit_target(the_exit)});
    ck_assert_int_eq(f(0, 0, 0, NULL), RESULT + 1);
    ck_assert_uint_eq(seen.id, LLVM_HAS_WIDE_STATEPOINT_IDS ? UINT64_C(4294967305) : 9);
}
END_TEST

/* LLVM's option applies to the whole process, so this test is the last one. */
START_TEST(statepoint_that_needs_too_many_registers_fails_the_finalisation)
{
    enum { VALUES = 40 };
    static const char *const option[] = {"test", "-use-registers-for-deopt-values"};
    if (!support_has_statepoints())
        return;
    LLVMParseCommandLineOptions(2, option, NULL);
    char text[4096];
    char *end = text + sprintf(text, SUPPORT_INTRINSICS "declare void @g()\n"
                                                        "define void @f(i64 %%x) {\n");
    for (int i = 0; i < VALUES; i++)
        end += sprintf(end, "  %%x%d = add i64 %%x, %d\n", i, i);
    end += sprintf(end, "  call void @g() [ \"deopt\"(i64 %%x");
    for (int i = 0; i < VALUES; i++)
        end += sprintf(end, ", i64 %%x%d", i);
    /* With the stack map, AArch64 writes a statepoint at -O0, too. */
    strcpy(end, ") ]\n  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0)\n"
                "  ret void\n}\n");
    struct cairn_error error = {0};
    struct cairn_engine_options options = {.skip_check = true};
    ck_assert_ok(cairn_engine_create(runtime, parse(text), &options, &engine, &error));
    ck_assert_ptr_null(support_compiled_function(engine, "f", &error));
    ck_assert_int_eq(error.status, CAIRN_ERROR_LLVM);
    ck_assert_msg(strstr(error.message, "ran out of registers") != NULL, "%s", error.message);
}
END_TEST

/* ---- Scanning ---- */

static void scan_one(const char *text, struct cairn_declaration *declaration)
{
    struct cairn_error error = {0};
    cairn_declarations *declarations;
    LLVMModuleRef module = support_parse_valid(context, text);
    ck_assert_ok(cairn_declarations_create(NULL, &declarations, NULL));
    enum cairn_status status = scan_module(module, false, declarations, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    ck_assert_uint_eq(cairn_declarations_count(declarations), 1);
    *declaration = *cairn_declarations_at(declarations, 0);
    declaration->types = NULL;
    declaration->function = NULL;
    cairn_declarations_destroy(declarations);
    LLVMDisposeModule(module);
}

START_TEST(attributes_of_a_call_with_a_deopt_bundle_are_read_as_llvm_reads_them)
{
    static const struct {
        const char *attributes;
        uint64_t id;
        uint32_t bytes;
    } cases[] = {
        {"", 2882400015, 0},
        {"\"statepoint-id\"=\"0\"", 0, 0},
        {"\"statepoint-id\"=\"18446744073709551615\"",
         LLVM_HAS_WIDE_STATEPOINT_IDS ? UINT64_MAX : UINT32_MAX, 0},
        {"\"statepoint-id\"=\"18446744073709551616\"", 2882400015, 0},
        {"\"statepoint-id\"=\"-1\"", 2882400015, 0},
        {"\"statepoint-id\"=\"0x11\"", 2882400015, 0},
        {"\"statepoint-id\"=\"\"", 2882400015, 0},
        {"\"statepoint-id\"=\"9\" \"statepoint-num-patch-bytes\"=\"16\"", 9, 16},
        {"\"statepoint-num-patch-bytes\"=\"4294967296\"", 2882400015, 0},
    };
    char text[512];
    struct cairn_declaration declaration;
    snprintf(text, sizeof text,
             "declare i32 @g(i64, i8)\n"
             "define void @f(i64 %%x) {\n"
             "  %%r = call i32 @g(i64 %%x, i8 1) %s [ \"deopt\"(i64 %%x, i16 3, i32 4) ]\n"
             "  ret void\n}\n",
             cases[_i].attributes);
    scan_one(text, &declaration);
    ck_assert_uint_eq(declaration.id, cases[_i].id);
    ck_assert_uint_eq(declaration.byte_count, cases[_i].bytes);
    ck_assert_int_eq(declaration.has_target, cases[_i].bytes == 0);
    ck_assert_int_eq(declaration.kind, CAIRN_RECORD_STATEPOINT);
    ck_assert_uint_eq(declaration.argument_count, 2);
    ck_assert_uint_eq(declaration.live_value_count, 3);
    ck_assert_uint_eq(declaration.result.bits, 32);
}
END_TEST

/* LLVM compiles none of these to a statepoint. */
START_TEST(other_bundles_and_other_calls_declare_nothing)
{
    cairn_declarations *declarations;
    LLVMModuleRef module = support_parse_valid(
        context, "declare void @g(i64)\n"
                 "declare void @llvm.assume(i1)\n"
                 "define void @f(i64 %x, ptr %p) {\n"
                 "  call void @g(i64 %x) [ \"mine\"(i64 %x), \"deoptimise\"(i64 %x) ]\n"
                 "  call void @llvm.assume(i1 true) [ \"align\"(ptr %p, i64 8) ]\n"
                 "  call void asm sideeffect \"\", \"\"() [ \"deopt\"(i64 %x) ]\n"
                 "  ret void\n}\n");
    ck_assert_ok(cairn_declarations_create(NULL, &declarations, NULL));
    ck_assert_ok(scan_module(module, false, declarations, NULL));
    ck_assert_uint_eq(cairn_declarations_count(declarations), 0);
    cairn_declarations_destroy(declarations);
    LLVMDisposeModule(module);
}
END_TEST

START_TEST(calls_with_a_deopt_bundle_are_numbered)
{
    LLVMModuleRef module = support_parse_valid(
        context, DEOPTIMIZE
        "declare void @g(i64)\n"
        "define i64 @f(i64 %x) {\n"
        "  call void @g(i64 %x) [ \"deopt\"(i64 %x) ]\n"
        "  call void @g(i64 %x) \"statepoint-id\"=\"3\" [ \"deopt\"(i64 %x, i32 1) ]\n"
        "  %r = call i64 (...) @llvm.experimental.deoptimize.i64() [ \"deopt\"(i16 1) ]\n"
        "  ret i64 %r\n}\n");
    uint64_t next_id = 100;
    ck_assert_ok(cairn_number_statepoints(module, &next_id, NULL));
    ck_assert_uint_eq(next_id, 103);
    support_verify(module);
    cairn_declarations *declarations;
    ck_assert_ok(cairn_declarations_create(NULL, &declarations, NULL));
    ck_assert_ok(scan_module(module, false, declarations, NULL));
    ck_assert_uint_eq(cairn_declarations_find(declarations, 100)->live_value_count, 1);
    ck_assert_uint_eq(cairn_declarations_find(declarations, 101)->live_value_count, 2);
    ck_assert_uint_eq(cairn_declarations_find(declarations, 102)->types[0].bits, 16);
    cairn_declarations_destroy(declarations);
    LLVMDisposeModule(module);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("llvm deoptimize");
    TCase *tests = tcase_create("deoptimize");
    tcase_set_timeout(tests, 30);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, deoptimize_leaves_to_a_handler_that_reads_typed_values, 0, 4);
    tcase_add_test(tests, deoptimize_without_a_target_says_how_to_bind_it);
    tcase_add_loop_test(tests, deoptimize_calls_of_several_shapes_are_all_declared, 0, 4);
    tcase_add_loop_test(tests, records_of_calls_with_a_deopt_bundle_are_declared, 0, 4 * CALLS);
    tcase_add_loop_test(tests, attributes_of_a_call_with_a_deopt_bundle_are_read_as_llvm_reads_them,
                        0, 9);
    tcase_add_test(tests, wide_ids_of_statepoints_are_those_of_their_records);
    tcase_add_test(tests, other_bundles_and_other_calls_declare_nothing);
    tcase_add_test(tests, calls_with_a_deopt_bundle_are_numbered);
    tcase_add_test(tests, statepoint_that_needs_too_many_registers_fails_the_finalisation);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
