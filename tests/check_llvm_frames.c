/*
 * Tests of frames of compiled code at an exit: their values, their callers, and the actions of a
 * handler.
 *
 * SPDX-License-Identifier: MIT
 */
#include "allocator_support.h"
#include "base/type.h"
#include "llvm_support.h"
#include "value/representation.h"
#include "llvm/version.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

static LLVMContextRef context;
static cairn_runtime *runtime;
static cairn_engine *engine;
static cairn_exit *the_exit;

/* The actions of a test's handler. */
static void (*handler)(struct cairn_exit_call *call);
static int calls;

static void handle(struct cairn_exit_call *call, void *user)
{
    ck_assert_ptr_eq(user, &calls);
    calls++;
    handler(call);
}

static void set_up(void)
{
    context = LLVMContextCreate();
    engine = NULL;
    calls = 0;
    ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL));
    ck_assert_ok(cairn_exit_create(runtime, handle, &calls, &the_exit, NULL));
}

static void tear_down(void)
{
    cairn_exit_destroy(the_exit);
    cairn_engine_destroy(engine);
    cairn_runtime_destroy(runtime);
    LLVMContextDispose(context);
}

/* ---- Code ---- */

static void load(const char *text)
{
    struct cairn_error error = {0};
    LLVMModuleRef module = support_parse_valid(context, text);
    const struct cairn_engine_options options = {.optimisation_level = 2};
    enum cairn_status status = cairn_engine_create(runtime, module, &options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}

static void *find(const char *name)
{
    struct cairn_error error = {0};
    void *address = support_compiled_function(engine, name, &error);
    ck_assert_msg(address != NULL, "%s", error.message);
    return address;
}

typedef int64_t integer_function(int64_t);
typedef double double_function(double);

static int64_t call(const char *name, int64_t argument)
{
    return ((integer_function *)(uintptr_t)find(name))(argument);
}

/* Makes the site with this ID call the exit. */
static void patch(uint64_t id)
{
    struct cairn_error error = {0};
    find("f");
    cairn_site *site = cairn_runtime_find_site(runtime, id, &error);
    ck_assert_msg(site != NULL, "%s", error.message);
    /* No other thread runs the code, so a shadow that must not be changed live can be patched, too.
     */
    struct cairn_site_description description;
    cairn_site_describe(site, &description);
    enum cairn_status status =
        cairn_site_call(site, cairn_exit_target(the_exit),
                        description.live ? CAIRN_RELAXED : CAIRN_QUIESCENT, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}

static struct cairn_value value_at(const struct cairn_exit_call *call, uint32_t index)
{
    struct cairn_value value;
    struct cairn_error error = {0};
    enum cairn_status status = cairn_frame_value(&call->frame, call->record, index, &value, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return value;
}

/* ---- Values ---- */

static const char typed_values[] = SUPPORT_INTRINSICS
    "define i64 @f(i64 %a) uwtable {\n"
    "  %slot = alloca i8\n"
    "  store i8 77, ptr %slot\n"
    "  %narrow = trunc i64 %a to i32\n"
    "  %number = sitofp i64 %a to double\n"
    "  %single = sitofp i64 %a to float\n"
    "  %pair = insertelement <2 x i64> <i64 1, i64 2>, i64 %a, i32 1\n"
    "  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 1, i32 16,\n"
    "      ptr null, i32 0, i64 %a, i32 %narrow, double %number, float %single,\n"
    "      <2 x i64> %pair, i64 -3, i64 81985529216486895, ptr %slot)\n"
    "  ret i64 %r\n"
    "}\n";

static void read_typed_values(struct cairn_exit_call *call)
{
    struct cairn_value values[8];
    int64_t elements[2];
    ck_assert_uint_eq(cairn_record_live_value_count(call->record), 8);
    for (uint32_t i = 0; i < 8; i++)
        values[i] = value_at(call, i);
    ck_assert_int_eq(cairn_value_signed(&values[0]), -5);
    ck_assert_uint_eq(values[1].type.bits, 32);
    ck_assert_int_eq(cairn_value_signed(&values[1]), -5);
    ck_assert_double_eq(cairn_value_double(&values[2]), -5);
    ck_assert_uint_eq(values[3].size, 4);
    ck_assert_double_eq(cairn_value_double(&values[3]), -5);
    ck_assert_uint_eq(values[4].size, sizeof elements);
    memcpy(elements, values[4].bytes, sizeof elements);
    ck_assert_int_eq(elements[1], -5);
    ck_assert_int_eq(cairn_value_signed(&values[5]), -3);
    ck_assert_int_eq(cairn_value_signed(&values[6]), 81985529216486895);
    ck_assert_int_eq(*(int8_t *)cairn_value_pointer(&values[7]), 77);
}

START_TEST(live_values_have_their_types)
{
    handler = read_typed_values;
    load(typed_values);
    patch(1);
    call("f", -5);
    ck_assert_int_eq(calls, 1);
}
END_TEST

static void read_values_at_once(struct cairn_exit_call *call)
{
    struct cairn_value values[8];
    memset(values, 0xA5, sizeof values);
    ck_assert_ok(cairn_frame_values(&call->frame, call->record, 0, 8, values, NULL));
    for (uint32_t i = 0; i < 8; i++) {
        struct cairn_value one = value_at(call, i);
        ck_assert(type_equal(values[i].type, one.type));
        ck_assert_uint_eq(values[i].size, one.size);
        ck_assert_mem_eq(values[i].bytes, one.bytes, sizeof one.bytes);
    }
    ck_assert_ok(cairn_frame_values(&call->frame, call->record, 5, 2, values, NULL));
    ck_assert_int_eq(cairn_value_signed(&values[0]), -3);
    ck_assert_int_eq(cairn_value_signed(&values[1]), 81985529216486895);
    ck_assert_ok(cairn_frame_values(&call->frame, call->record, 8, 0, NULL, NULL));
}

#define WIDE_VALUES                                                                                \
    "i128 0, i128 1, i128 4294967296, i128 9223372036854775807, i65 7, i256 9223372036854775807"
static const char wide_values[] = SUPPORT_INTRINSICS
    "define i64 @f(i64 %a) uwtable {\n"
    "  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 1, i32 16,\n"
    "      ptr null, i32 0, " WIDE_VALUES ")\n"
    "  ret i64 %r\n"
    "}\n";
static const char negative_values[] = SUPPORT_INTRINSICS
    "define i64 @f(i64 %a) uwtable {\n"
    "  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 1, i32 16,\n"
    "      ptr null, i32 0, i128 -1, i128 -4294967296, i128 -9223372036854775808)\n"
    "  ret i64 %r\n"
    "}\n";
static const int64_t wide_expected[] = {0, 1, 4294967296, INT64_MAX, 7};
static const int64_t negative_expected[] = {-1, -4294967296, INT64_MIN};

static void expect_wide(const struct cairn_exit_call *call, const int64_t *expected, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct cairn_value value = value_at(call, i);
        uint64_t words[2] = {0};
        ck_assert_uint_ge(value.size, 9);
        memcpy(words, value.bytes, value.size < 16 ? value.size : 16);
        ck_assert_int_eq((int64_t)words[0], expected[i]);
        if (value.type.bits == 128)
            ck_assert_uint_eq(words[1], expected[i] < 0 ? UINT64_MAX : 0);
    }
}

static void read_wide_values(struct cairn_exit_call *call)
{
    expect_wide(call, wide_expected, sizeof wide_expected / sizeof *wide_expected);
}

static void read_negative_values(struct cairn_exit_call *call)
{
    expect_wide(call, negative_expected, sizeof negative_expected / sizeof *negative_expected);
}

START_TEST(wide_constants_are_extended_by_their_sign)
{
    handler = read_wide_values;
    load(wide_values);
    patch(1);
    call("f", 0);
    ck_assert_int_eq(calls, 1);
    if (LLVM_NEGATIVE_CONSTANT_BITS_MAX < 128)
        return;
    cairn_engine_destroy(engine);
    handler = read_negative_values;
    load(negative_values);
    patch(1);
    call("f", 0);
    ck_assert_int_eq(calls, 2);
}
END_TEST

START_TEST(live_values_are_read_at_once)
{
    handler = read_values_at_once;
    load(typed_values);
    patch(1);
    call("f", -5);
    ck_assert_int_eq(calls, 1);
}
END_TEST

static bool is_zero(const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (((const unsigned char *)bytes)[i] != 0)
            return false;
    return true;
}

/* The frame is treated as waiting for a call: caller-saved registers are lost. */
static void read_what_is_gone(struct cairn_exit_call *call)
{
    struct cairn_value values[8];
    struct cairn_error error;
    struct cairn_frame frame = call->frame;
    frame.is_innermost = false;
    memset(values, 0xA5, sizeof values);
    ck_assert_int_eq(cairn_frame_values(&frame, call->record, 5, 4, values, &error),
                     CAIRN_ERROR_RANGE);
    ck_assert_ptr_nonnull(strstr(error.message, "live value 8 is out of range: record "));
    ck_assert_int_eq(values[0].bytes[0], 0xA5);
    ck_assert_int_eq(cairn_frame_values(&frame, call->record, UINT32_MAX, UINT32_MAX, values, NULL),
                     CAIRN_ERROR_RANGE);
    ck_assert_int_eq(cairn_frame_values(&frame, call->record, 0, 8, values, &error),
                     CAIRN_ERROR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(error.message, "is not known any more"));
    ck_assert(is_zero(values, sizeof values));
}

START_TEST(none_is_read_where_one_cannot_be)
{
    handler = read_what_is_gone;
    load(typed_values);
    patch(1);
    call("f", -5);
    ck_assert_int_eq(calls, 1);
}
END_TEST

static void read_beyond(struct cairn_exit_call *call)
{
    struct cairn_value value;
    struct cairn_error error;
    ck_assert_int_eq(cairn_frame_value(&call->frame, call->record, 8, &value, &error),
                     CAIRN_ERROR_RANGE);
    ck_assert_ptr_nonnull(strstr(error.message, "live value 8 is out of range: record "));
}

START_TEST(missing_values_are_refused)
{
    handler = read_beyond;
    load(typed_values);
    patch(1);
    call("f", -5);
    ck_assert_int_eq(calls, 1);
}
END_TEST

/* LLVM records no location of values in x87 registers. */
static const char incomplete_record[] = SUPPORT_INTRINSICS
    "define i64 @f(i64 %a) uwtable {\n"
    "  %long = sitofp i64 %a to x86_fp80\n"
    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1, i32 16,\n"
    "      ptr null, i32 0, x86_fp80 %long, i64 %a)\n"
    "  ret i64 %a\n"
    "}\n";

START_TEST(a_module_with_a_record_that_lacks_a_value_is_refused)
{
    if (cairn_architecture_host() != CAIRN_ARCHITECTURE_X86_64) {
        printf("skipped: x86_fp80 is a type of x86-64\n");
        return;
    }
    struct cairn_error error;
    LLVMModuleRef module = support_parse_valid(context, incomplete_record);
    const struct cairn_engine_options options = {.skip_check = true};
    ck_assert_ok(cairn_engine_create(runtime, module, &options, &engine, NULL));
    ck_assert_int_eq(cairn_engine_compile(engine, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(error.message, "has 1 locations and its declaration needs 2"));
}
END_TEST

/* ---- Skipping frames ---- */

static const char calls_site[] =
    SUPPORT_INTRINSICS "define i64 @f(i64 %a) uwtable {\n"
                       "  call void (i64, i32, ptr, i32, ...)\n"
                       "      @llvm.experimental.patchpoint.void(i64 1, i32 16, ptr null, i32 0)\n"
                       "  ret i64 %a\n"
                       "}\n";

static jmp_buf outside;

static void jump_outside(void) { longjmp(outside, 1); }

START_TEST(a_called_function_may_longjmp_over_compiled_frames)
{
    load(calls_site);
    integer_function *f = (integer_function *)(uintptr_t)find("f");
    cairn_site *site = cairn_runtime_find_site(runtime, 1, NULL);
    ck_assert_ok(cairn_site_call(site, (const void *)(uintptr_t)jump_outside, CAIRN_RELAXED, NULL));
    for (volatile int i = 0; i < 3; i++)
        if (setjmp(outside) == 0)
            ck_assert_int_eq(f(7), 0); /* does not return */
    ck_assert_ok(cairn_site_restore(site, CAIRN_RELAXED, NULL));
    ck_assert_int_eq(f(7), 7);
}
END_TEST

/* ---- Continuing ---- */

static void continue_with_a_number(struct cairn_exit_call *call)
{
    struct cairn_error error;
    struct cairn_value wrong = cairn_value_of_double(1);
    struct cairn_value result = cairn_value_of_integer(64, 1234);
    ck_assert_int_eq(cairn_exit_continue(call, &wrong, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_str_eq(error.message, "the site returns i64, and not double");
    ck_assert_ok(cairn_exit_continue(call, &result, NULL));
}

START_TEST(the_code_continues_with_a_result)
{
    handler = continue_with_a_number;
    load(typed_values);
    patch(1);
    ck_assert_int_eq(call("f", -5), 1234);
}
END_TEST

static const char changed_values[] = SUPPORT_INTRINSICS
    "define i64 @f(i64 %a) uwtable {\n"
    "  %b = xor i64 %a, 3\n"
    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1, i32 16,\n"
    "      ptr null, i32 0, i64 %a, i64 %b)\n"
    "  %difference = sub i64 %b, %a\n"
    "  ret i64 %difference\n"
    "}\n";

static void change_values(struct cairn_exit_call *call)
{
    struct cairn_error error;
    struct cairn_value wrong = cairn_value_of_integer(32, 1);
    struct cairn_value first = cairn_value_of_integer(64, 1000);
    struct cairn_value second = cairn_value_of_integer(64, 3);
    ck_assert_int_eq(cairn_frame_set_value(&call->frame, call->record, 0, &wrong, &error),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_str_eq(error.message, "the live value is i64, and not i32");
    ck_assert_ok(cairn_frame_set_value(&call->frame, call->record, 0, &first, NULL));
    ck_assert_ok(cairn_frame_set_value(&call->frame, call->record, 1, &second, NULL));
    ck_assert_int_eq(cairn_value_signed(&(struct cairn_value[]){value_at(call, 0)}[0]), 1000);
}

START_TEST(the_code_continues_with_changed_values)
{
    handler = change_values;
    load(changed_values);
    patch(1);
    ck_assert_int_eq(call("f", 7), 3 - 1000);
}
END_TEST

/* ---- Returning ---- */

/* `g` keeps many values alive across the call, so that callee-saved registers are used by both
 * functions. */
static const char two_functions[] = SUPPORT_INTRINSICS
    "define i64 @f(i64 %a) noinline uwtable {\n"
    "  %b = mul i64 %a, 3\n"
    "  %c = add i64 %a, 11\n"
    "  %d = xor i64 %a, 255\n"
    "  %e = mul i64 %c, %d\n"
    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1, i32 16,\n"
    "      ptr null, i32 0, i64 %a, i64 %b, i64 %c, i64 %d, i64 %e)\n"
    "  %1 = add i64 %b, %c\n"
    "  %2 = add i64 %1, %d\n"
    "  %3 = add i64 %2, %e\n"
    "  ret i64 %3\n"
    "}\n"
    "define i64 @g(i64 %a) uwtable {\n"
    "  %b = mul i64 %a, 5\n"
    "  %c = add i64 %a, 13\n"
    "  %d = xor i64 %a, 1023\n"
    "  %e = mul i64 %c, %d\n"
    "  %x = call i64 @f(i64 %a)\n"
    "  %1 = add i64 %b, %c\n"
    "  %2 = add i64 %1, %d\n"
    "  %3 = add i64 %2, %e\n"
    "  %4 = add i64 %3, %x\n"
    "  ret i64 %4\n"
    "}\n";

static int64_t result_of_g(int64_t a, int64_t of_f)
{
    int64_t c = a + 13;
    int64_t d = a ^ 1023;
    return a * 5 + c + d + c * d + of_f;
}

static void return_a_number(struct cairn_exit_call *call)
{
    struct cairn_value result = cairn_value_of_integer(64, 42);
    struct cairn_error error = {0};
    enum cairn_status status = cairn_exit_return(call, &result, 1, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}

START_TEST(the_function_returns_what_the_handler_says)
{
    handler = return_a_number;
    load(two_functions);
    patch(1);
    for (int64_t a = -3; a < 4; a++)
        ck_assert_int_eq(call("g", a), result_of_g(a, 42));
    ck_assert_int_eq(calls, 7);
}
END_TEST

/* `f` returns the handler's result; `use` converts it to 64 bits for `g`. */
static void load_returning(const char *type, const char *attribute, const char *use)
{
    char text[2048];
    snprintf(text, sizeof text,
             SUPPORT_INTRINSICS
             "define %s %s @f(i64 %%a) noinline uwtable {\n"
             "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1,\n"
             "      i32 16, ptr null, i32 0, i64 %%a)\n"
             "  %%r = freeze %s undef\n"
             "  ret %s %%r\n"
             "}\n"
             "define i64 @g(i64 %%a) uwtable {\n"
             "  %%x = call %s %s @f(i64 %%a)\n"
             "%s"
             "  ret i64 %%n\n"
             "}\n",
             attribute, type, type, type, attribute, type, use);
    load(text);
    patch(1);
}

static struct cairn_value returned[CAIRN_EXIT_RESULTS_MAX];
static uint32_t returned_count;

static void return_values(struct cairn_exit_call *call)
{
    struct cairn_error error = {0};
    enum cairn_status status = cairn_exit_return(call, returned, returned_count, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}

static const struct {
    const char *type;
    const char *attribute;
    const char *use;
    int64_t expected;
} returning[] = {
    {"double", "", "  %n = fptosi double %x to i64\n", 7},
    {"float", "", "  %n = fptosi float %x to i64\n", 7},
    {"ptr", "", "  %n = ptrtoint ptr %x to i64\n", 7},
    {"i32", "signext", "  %n = sext i32 %x to i64\n", -7},
    {"i32", "zeroext", "  %n = zext i32 %x to i64\n", 4294967289},
    {"i128", "", "  %s = lshr i128 %x, 64\n  %n = trunc i128 %s to i64\n", 9},
    {"{ i64, i64 }", "",
     "  %p = extractvalue { i64, i64 } %x, 0\n  %q = extractvalue { i64, i64 } %x, 1\n"
     "  %n = sub i64 %p, %q\n",
     -2},
    {"{ i64, double }", "",
     "  %p = extractvalue { i64, double } %x, 0\n  %d = extractvalue { i64, double } %x, 1\n"
     "  %q = fptosi double %d to i64\n  %n = sub i64 %p, %q\n",
     -2},
    {"{ double, double }", "",
     "  %d = extractvalue { double, double } %x, 0\n"
     "  %e = extractvalue { double, double } %x, 1\n  %s = fsub double %d, %e\n"
     "  %n = fptosi double %s to i64\n",
     -2},
    {"<2 x i64>", "", "  %n = extractelement <2 x i64> %x, i32 1\n", 9},
};

static struct cairn_value any_value_of(struct cairn_type type, const void *bytes)
{
    struct cairn_value value;
    ck_assert_ok(value_of_bytes(type, bytes, cairn_type_size(type), &value, NULL));
    return value;
}

/* Returns 7, or 7 and 9, in the types of the case. */
static void prepare_values(const char *type)
{
    const int64_t pair[2] = {7, 9};
    const int64_t wide[2] = {CAIRN_BYTE_ORDER_NATIVE == CAIRN_BIG_ENDIAN ? 9 : 7,
                             CAIRN_BYTE_ORDER_NATIVE == CAIRN_BIG_ENDIAN ? 7 : 9};
    returned_count = type[0] == '{' ? 2 : 1;
    if (strcmp(type, "double") == 0 || strcmp(type, "{ double, double }") == 0)
        returned[0] = cairn_value_of_double(7);
    else if (strcmp(type, "float") == 0)
        returned[0] = any_value_of(CAIRN_FLOAT, &(float){7});
    else if (strcmp(type, "ptr") == 0)
        returned[0] = cairn_value_of_pointer((void *)(uintptr_t)7);
    else if (strcmp(type, "i32") == 0)
        returned[0] = cairn_value_of_integer(32, -7);
    else if (strcmp(type, "i128") == 0)
        returned[0] = any_value_of(CAIRN_INTEGER(128), wide);
    else if (type[0] == '<')
        returned[0] = any_value_of(cairn_type_vector(CAIRN_INTEGER(64), 2), pair);
    else
        returned[0] = cairn_value_of_integer(64, 7);
    returned[1] =
        strstr(type, ", double") != NULL ? cairn_value_of_double(9) : cairn_value_of_integer(64, 9);
}

START_TEST(results_of_every_kind_are_returned)
{
    handler = return_values;
    prepare_values(returning[_i].type);
    load_returning(returning[_i].type, returning[_i].attribute, returning[_i].use);
    ck_assert_int_eq(call("g", 1), returning[_i].expected);
    ck_assert_int_eq(calls, 1);
}
END_TEST

static void return_the_wrong_type(struct cairn_exit_call *call)
{
    struct cairn_error error;
    struct cairn_value results[] = {cairn_value_of_integer(64, 7), cairn_value_of_integer(32, 7)};
    ck_assert_int_eq(cairn_exit_return(call, results, 2, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_str_eq(error.message, "'f' returns i64, double, and not i64, i32");
    ck_assert_int_eq(cairn_exit_return(call, results, 0, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_str_eq(error.message, "'f' returns i64, double, and not nothing");
    ck_assert_int_eq(cairn_exit_return(call, results, 5, &error), CAIRN_ERROR_ARGUMENT);
}

START_TEST(results_that_are_not_the_functions_are_refused)
{
    handler = return_the_wrong_type;
    load_returning("{ i64, double }", "", "  %n = add i64 %a, 5\n");
    ck_assert_int_eq(call("g", 1), 6);
    ck_assert_int_eq(calls, 1);
}
END_TEST

static void walk_to_the_caller(struct cairn_exit_call *call)
{
    struct cairn_frame frame = call->frame;
    struct cairn_function function;
    struct cairn_error error = {0};
    enum cairn_status status = cairn_frame_caller(&frame, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    ck_assert(cairn_frame_function(&frame, &function));
    ck_assert_uint_eq(function.address, (uintptr_t)find("g"));
    ck_assert_ok(cairn_frame_caller(&frame, NULL));
    ck_assert_ptr_null(frame.module);
}

START_TEST(a_walk_reaches_the_caller_and_ends_in_other_code)
{
    handler = walk_to_the_caller;
    load(two_functions);
    patch(1);
    call("g", 1);
    ck_assert_int_eq(calls, 1);
}
END_TEST

/* ---- Shadows ---- */

/* On PPC64, a call in place of one instruction needs a veneer with a frame. Where instructions vary
 * in size, a call needs more no-ops. */
static int shadow_bytes(void)
{
    return cairn_architecture_host() == CAIRN_ARCHITECTURE_X86_64 ? 16 : 4;
}

/* Code for a value that a call in place of an instruction must preserve, although ordinary calls
 * change it: %kept must equal %i. */
static const char *keep_before_shadow(void)
{
    return cairn_architecture_host() == CAIRN_ARCHITECTURE_PPC64_ELFV2
               ? "  call void asm sideeffect \"mtctr $0\", \"r\"(i64 %i)\n"
               : "";
}

static const char *keep_after_shadow(void)
{
    return cairn_architecture_host() == CAIRN_ARCHITECTURE_PPC64_ELFV2
               ? "  %kept = call i64 asm sideeffect \"mfctr $0\", \"=r\"()\n"
               : "  %kept = add i64 %i, 0\n";
}

/* The format's arguments are the code of the preserved value and the size of the shadow in bytes.
 * `f` and `g` add a global, which PPC64 finds by the TOC pointer. */
static const char looping[] = SUPPORT_INTRINSICS
    "@increment = global i8 7\n"
    "define i64 @f(i64 %%n) noinline uwtable {\n"
    "entry:\n"
    "  br label %%loop\n"
    "loop:\n"
    "  %%i = phi i64 [ 0, %%entry ], [ %%next, %%loop ]\n"
    "  %%sum = phi i64 [ 1, %%entry ], [ %%more, %%loop ]\n"
    "%s"
    "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 %d, i64 %%i, i64 %%sum)\n"
    "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0)\n"
    "%s"
    "  %%byte = load volatile i8, ptr @increment\n"
    "  %%increment = zext i8 %%byte to i64\n"
    "  %%tripled = mul i64 %%sum, 3\n"
    "  %%more = add i64 %%tripled, %%increment\n"
    "  %%next = add i64 %%kept, 1\n"
    "  %%done = icmp eq i64 %%next, %%n\n"
    "  br i1 %%done, label %%out, label %%loop\n"
    "out:\n"
    "  ret i64 %%more\n"
    "}\n"
    "define i64 @g(i64 %%a) uwtable {\n"
    "  %%b = mul i64 %%a, 5\n"
    "  %%c = add i64 %%a, 13\n"
    "  %%x = call i64 @f(i64 5)\n"
    "  %%byte = load volatile i8, ptr @increment\n"
    "  %%increment = zext i8 %%byte to i64\n"
    "  %%1 = add i64 %%b, %%c\n"
    "  %%2 = mul i64 %%1, %%increment\n"
    "  %%3 = add i64 %%2, %%x\n"
    "  ret i64 %%3\n"
    "}\n"
    "define void @h(i64 %%a) uwtable {\n"
    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 3, i32 16,\n"
    "      ptr null, i32 0)\n"
    "  ret void\n"
    "}\n";

enum { INCREMENT = 7, TURNS = 5 };

static int64_t result_of_loop(int64_t turns)
{
    int64_t sum = 1;
    for (int64_t i = 0; i < turns; i++)
        sum = sum * 3 + INCREMENT;
    return sum;
}

static int64_t result_of_looping_g(int64_t a, int64_t of_f)
{
    return (a * 5 + a + 13) * INCREMENT + of_f;
}

static void load_looping(void)
{
    char text[4096];
    snprintf(text, sizeof text, looping, keep_before_shadow(), shadow_bytes(), keep_after_shadow());
    load(text);
    patch(1);
}

static void check_turn(struct cairn_exit_call *call)
{
    ck_assert_ptr_nonnull(call->record.table);
    ck_assert_uint_eq(cairn_record_id(call->record), 1);
    struct cairn_value turn = value_at(call, 0);
    struct cairn_value sum = value_at(call, 1);
    ck_assert_int_eq(cairn_value_signed(&turn), calls - 1);
    ck_assert_int_eq(cairn_value_signed(&sum), result_of_loop(calls - 1));
}

START_TEST(the_code_continues_after_a_shadow)
{
    handler = check_turn;
    load_looping();
    ck_assert_int_eq(call("g", 11), result_of_looping_g(11, result_of_loop(TURNS)));
    ck_assert_int_eq(calls, TURNS);
}
END_TEST

static void return_at_the_third_turn(struct cairn_exit_call *call)
{
    check_turn(call);
    if (calls == 3)
        return_a_number(call);
}

START_TEST(a_function_returns_from_a_shadow)
{
    handler = return_at_the_third_turn;
    load_looping();
    ck_assert_int_eq(call("g", 11), result_of_looping_g(11, 42));
    ck_assert_int_eq(calls, 3);
}
END_TEST

/* `f` calls `h`, which has reached the exit. */
static void walk_past_the_shadow(struct cairn_exit_call *call)
{
    struct cairn_frame frame = call->frame;
    struct cairn_record record;
    struct cairn_function function;
    struct cairn_error error = {0};
    ck_assert_uint_eq(cairn_record_id(call->record), 3);
    enum cairn_status status = cairn_frame_caller(&frame, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    ck_assert(cairn_frame_record(&frame, &record));
    ck_assert_uint_eq(cairn_record_id(record), 1);
    status = cairn_frame_caller(&frame, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    ck_assert(cairn_frame_function(&frame, &function));
    ck_assert_uint_eq(function.address, (uintptr_t)find("g"));
    ck_assert_ok(cairn_frame_caller(&frame, NULL));
    ck_assert_ptr_null(frame.module);
}

START_TEST(a_walk_goes_past_a_shadow_s_call)
{
    handler = walk_past_the_shadow;
    load_looping();
    patch(3);
    ck_assert_ok(cairn_site_call(cairn_runtime_find_site(runtime, 1, NULL), find("h"),
                                 CAIRN_QUIESCENT, NULL));
    call("g", 11);
    ck_assert_int_eq(calls, TURNS);
}
END_TEST

/* ---- Signals ---- */

/* `f` runs until the flag that its argument points to is set. */
static const char spinning[] = SUPPORT_INTRINSICS
    "define i64 @f(ptr %flag) noinline uwtable {\n"
    "  br label %loop\n"
    "loop:\n"
    "  %set = load volatile i8, ptr %flag\n"
    "  %done = icmp ne i8 %set, 0\n"
    "  br i1 %done, label %out, label %loop\n"
    "out:\n"
    "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, ptr %flag)\n"
    "  %result = zext i8 %set to i64\n"
    "  ret i64 %result\n"
    "}\n"
    "define i64 @g(ptr %flag) uwtable {\n"
    "  %x = call i64 @f(ptr %flag)\n"
    "  %y = add i64 %x, 1\n"
    "  ret i64 %y\n"
    "}\n";

static volatile int8_t flag;
static struct cairn_function found[2];
static enum cairn_status walked[3];

static void walk_from_a_signal(int signal, siginfo_t *information, void *ucontext)
{
    static struct cairn_context interrupted;
    struct cairn_frame frame;
    (void)signal;
    (void)information;
    walked[0] = cairn_context_from_signal(&interrupted, ucontext, NULL);
    walked[1] = cairn_frame_from_context(runtime, &interrupted, false, &frame, NULL);
    cairn_frame_function(&frame, &found[0]);
    walked[2] = cairn_frame_caller(&frame, NULL);
    cairn_frame_function(&frame, &found[1]);
    flag = 1;
}

START_TEST(a_walk_begins_in_a_signal_handler)
{
    load(spinning);
    uint64_t f = (uintptr_t)find("f");
    uint64_t g = (uintptr_t)find("g");
    struct sigaction action = {.sa_sigaction = walk_from_a_signal, .sa_flags = SA_SIGINFO};
    struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &soon, NULL), 0);
    ck_assert_int_eq(call("g", (intptr_t)&flag), 2);
    for (size_t i = 0; i < 3; i++)
        ck_assert_ok(walked[i]);
    ck_assert_uint_eq(found[0].address, f);
    ck_assert_uint_eq(found[1].address, g);
}
END_TEST

static const char without_rules[] = SUPPORT_INTRINSICS
    "define i64 @f(i64 %a) nounwind {\n"
    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1, i32 16,\n"
    "      ptr null, i32 0, i64 %a)\n"
    "  ret i64 %a\n"
    "}\n";

static void return_without_rules(struct cairn_exit_call *call)
{
    struct cairn_value result = cairn_value_of_integer(64, 42);
    struct cairn_error error;
    struct cairn_value value = value_at(call, 0);
    ck_assert_int_eq(cairn_value_signed(&value), 9);
    ck_assert_int_eq(cairn_exit_return(call, &result, 1, &error), CAIRN_ERROR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(error.message, "uwtable"));
}

START_TEST(a_function_without_unwind_rules_can_go_on_but_not_return)
{
    handler = return_without_rules;
    load(without_rules);
    patch(1);
    ck_assert_int_eq(call("f", 9), 9);
    ck_assert_int_eq(calls, 1);
}
END_TEST

/* ---- Exits ---- */

START_TEST(an_exit_needs_a_runtime_and_a_handler)
{
    cairn_exit *exit = NULL;
    struct cairn_error error;
    ck_assert_int_eq(cairn_exit_create(NULL, handle, NULL, &exit, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_exit_create(runtime, NULL, NULL, &exit, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_ptr_null(exit);
    cairn_exit_destroy(NULL);
}
END_TEST

/* The first exit of a runtime also creates code that all exits share. */
START_TEST(an_exit_is_freed_at_the_next_quiescent_point)
{
    struct support_allocator counts = {0};
    const struct cairn_runtime_options options = {.allocator = support_counting(&counts)};
    cairn_runtime *counting;
    cairn_exit *first;
    cairn_exit *exit;
    ck_assert_ok(cairn_runtime_create(&options, &counting, NULL));
    ck_assert_ok(cairn_exit_create(counting, handle, NULL, &first, NULL));
    size_t bytes = counts.outstanding_bytes;
    ck_assert_ok(cairn_exit_create(counting, handle, NULL, &exit, NULL));
    const void *target = cairn_exit_target(exit);
    cairn_exit_destroy(exit);
    ck_assert_uint_gt(counts.outstanding_bytes, bytes);
    ck_assert_uint_eq(cairn_runtime_quiesce(counting), 0);
    ck_assert_uint_eq(counts.outstanding_bytes, bytes);
    ck_assert_ok(cairn_exit_create(counting, handle, NULL, &exit, NULL));
    ck_assert_ptr_eq(cairn_exit_target(exit), target);
    cairn_exit_destroy(exit);
    cairn_exit_destroy(first);
    cairn_runtime_destroy(counting);
}
END_TEST

START_TEST(an_exit_without_memory_is_refused_and_leaves_nothing)
{
    size_t failures = 0;
    for (size_t fail_at = 1;; fail_at++) {
        struct support_allocator counts = {0};
        const struct cairn_runtime_options options = {.allocator = support_counting(&counts)};
        cairn_runtime *counting;
        cairn_exit *exit = NULL;
        ck_assert_ok(cairn_runtime_create(&options, &counting, NULL));
        counts.calls = 0;
        counts.fail_at = fail_at;
        enum cairn_status status = cairn_exit_create(counting, handle, NULL, &exit, NULL);
        counts.fail_at = 0;
        ck_assert((status == CAIRN_OK) == (exit != NULL));
        cairn_exit_destroy(exit);
        cairn_runtime_destroy(counting);
        ck_assert_uint_eq(counts.outstanding_bytes, 0);
        if (status == CAIRN_OK)
            break;
        ck_assert_int_eq(status, CAIRN_ERROR_MEMORY);
        failures++;
    }
    ck_assert_uint_gt(failures, 3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("frames");
    TCase *values = tcase_create("values");
    tcase_add_checked_fixture(values, set_up, tear_down);
    tcase_add_test(values, live_values_have_their_types);
    tcase_add_test(values, wide_constants_are_extended_by_their_sign);
    tcase_add_test(values, live_values_are_read_at_once);
    tcase_add_test(values, none_is_read_where_one_cannot_be);
    tcase_add_test(values, missing_values_are_refused);
    tcase_add_test(values, a_module_with_a_record_that_lacks_a_value_is_refused);
    suite_add_tcase(suite, values);
    TCase *actions = tcase_create("actions");
    tcase_add_checked_fixture(actions, set_up, tear_down);
    tcase_add_test(actions, the_code_continues_with_a_result);
    tcase_add_test(actions, the_code_continues_with_changed_values);
    tcase_add_test(actions, the_function_returns_what_the_handler_says);
    tcase_add_loop_test(actions, results_of_every_kind_are_returned, 0,
                        (int)(sizeof returning / sizeof *returning));
    tcase_add_test(actions, results_that_are_not_the_functions_are_refused);
    tcase_add_test(actions, a_walk_reaches_the_caller_and_ends_in_other_code);
    tcase_add_test(actions, the_code_continues_after_a_shadow);
    tcase_add_test(actions, a_function_returns_from_a_shadow);
    tcase_add_test(actions, a_walk_goes_past_a_shadow_s_call);
    tcase_add_test(actions, a_called_function_may_longjmp_over_compiled_frames);
    tcase_add_test(actions, a_walk_begins_in_a_signal_handler);
    tcase_add_test(actions, a_function_without_unwind_rules_can_go_on_but_not_return);
    suite_add_tcase(suite, actions);
    TCase *exits = tcase_create("exits");
    tcase_add_checked_fixture(exits, set_up, tear_down);
    tcase_add_test(exits, an_exit_needs_a_runtime_and_a_handler);
    tcase_add_test(exits, an_exit_is_freed_at_the_next_quiescent_point);
    tcase_add_test(exits, an_exit_without_memory_is_refused_and_leaves_nothing);
    suite_add_tcase(suite, exits);
    return support_main(suite);
}
