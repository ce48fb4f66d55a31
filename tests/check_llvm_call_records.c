/*
 * Tests of exits and walks at stack map records that are at the address of a call.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm_support.h"

#include "llvm/version.h"

#include <stdio.h>
#include <string.h>

static LLVMContextRef context;
static cairn_runtime *runtime;
static cairn_engine *engine;
static cairn_exit *the_exit;

/* Values of the calling frame, as the handler or the walk read them. */
static struct {
    int calls;
    bool has_record;
    uint64_t id;
    int64_t values[2];
    enum cairn_status statuses[2];
} seen;

static void look(const struct cairn_frame *frame, const struct cairn_record *record)
{
    seen.calls++;
    seen.has_record = record != NULL;
    if (record == NULL)
        return;
    seen.id = cairn_record_id(*record);
    for (uint32_t i = 0; i < 2; i++) {
        struct cairn_value value;
        seen.statuses[i] = cairn_frame_value(frame, *record, i, &value, NULL);
        if (seen.statuses[i] == CAIRN_OK)
            seen.values[i] = cairn_value_signed(&value);
    }
}

static void leave(struct cairn_exit_call *call, void *user)
{
    (void)user;
    look(&call->frame, call->record.table == NULL ? NULL : &call->record);
}

/* The function that compiled code calls; it walks the stack. */
static void walk_from_here(void)
{
    struct cairn_context saved;
    struct cairn_walk walk;
    struct cairn_frame frame;
    struct cairn_error error = {0};
    ck_assert_int_eq(cairn_context_save(&saved), 0);
    ck_assert_ok(cairn_frame_from_context(runtime, &saved, true, &frame, &error));
    cairn_walk_begin(&walk, &frame);
    walk.foreign = cairn_walk_native;
    enum cairn_status status = cairn_walk_next(&walk, &error);
    ck_assert_msg(status == CAIRN_OK && !walk.has_ended, "%s", error.message);
    struct cairn_record record;
    look(&walk.frame, cairn_frame_record(&walk.frame, &record) ? &record : NULL);
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

/* On PPC64 a call of a function pointer first moves the pointer to a register, so only a branch
 * calls with a single instruction. Elsewhere, the JIT's large code model moves a function's address
 * to a register. */
static bool calls_by_name(void)
{
    return cairn_architecture_host() == CAIRN_ARCHITECTURE_PPC64_ELFV2;
}

#define CALL_OF_POINTER "  call void %callee()\n"
#define CALL_BY_NAME "  call void @callee()\n"

/* Builds `int64_t f(int64_t x, callee)` from `body`, in which CALL is the placeholder of the call.
 * The function then returns a sum of values that were live across the call. */
typedef int64_t code(int64_t x, const void *callee);

static code *load(const char *body, const void *callee, unsigned optimisation_level)
{
    char text[4096];
    char calls[2048];
    const char *call = calls_by_name() ? CALL_BY_NAME : CALL_OF_POINTER;
    size_t length = 0;
    for (const char *at = body; *at != '\0';) {
        bool is_call = strncmp(at, "CALL", 4) == 0;
        length += (size_t)snprintf(calls + length, sizeof calls - length, is_call ? "%s" : "%.1s",
                                   is_call ? call : at);
        at += is_call ? 4 : 1;
    }
    snprintf(text, sizeof text,
             SUPPORT_INTRINSICS "declare void @callee()\n"
                                "define i64 @f(i64 %%x, ptr %%pointer) {\n"
                                "  %%callee = bitcast ptr %%pointer to %s\n"
                                "  %%y = mul i64 %%x, 3\n"
                                "%s"
                                "  %%sum = add i64 %%x, %%y\n"
                                "  ret i64 %%sum\n}\n",
             LLVM_HAS_OPAQUE_POINTERS ? "ptr" : "void ()*", calls);
    LLVMModuleRef module = support_parse_valid(context, text);
    cairn_prepare_function(LLVMGetNamedFunction(module, "f"));
    const struct support_symbol symbols[] = {{"callee", (const void *)(uintptr_t)callee},
                                             {NULL, NULL}};
    const struct cairn_engine_options options = {.optimisation_level = optimisation_level,
                                                 .load = support_symbols(symbols)};
    struct cairn_error error = {0};
    enum cairn_status status = cairn_engine_create(runtime, module, &options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    void *function = support_compiled_function(engine, "f", &error);
    ck_assert_msg(function != NULL, "%s", error.message);
    return (code *)(uintptr_t)function;
}

#define STACKMAP(id)                                                                               \
    "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 " #id ", i32 0, i64 %x, i64 "     \
    "%y)\n"

static void run(const char *body, const void *callee, unsigned optimisation_level)
{
    ck_assert_int_eq(load(body, callee, optimisation_level)(5, callee), 20);
    ck_assert_int_eq(seen.calls, 1);
}

START_TEST(exit_has_the_record_at_the_address_of_its_call)
{
    run(STACKMAP(1) "CALL", cairn_exit_target(the_exit), (unsigned)_i);
    ck_assert(seen.has_record);
    ck_assert_uint_eq(seen.id, 1);
    ck_assert_ok(seen.statuses[0]);
    ck_assert_ok(seen.statuses[1]);
    ck_assert_int_eq(seen.values[0], 5);
    ck_assert_int_eq(seen.values[1], 15);
}
END_TEST

/* The values that the call preserves. In this test they are needed after the call. */
START_TEST(walk_has_the_record_at_the_address_of_the_call)
{
    run(STACKMAP(1) "CALL", (const void *)(uintptr_t)walk_from_here, (unsigned)_i);
    ck_assert(seen.has_record);
    ck_assert_uint_eq(seen.id, 1);
    for (int i = 0; i < 2; i++)
        if (seen.statuses[i] == CAIRN_OK)
            ck_assert_int_eq(seen.values[i], i == 0 ? 5 : 15);
        else
            ck_assert_int_eq(seen.statuses[i], CAIRN_ERROR_NOT_FOUND);
    ck_assert(seen.statuses[0] == CAIRN_OK || seen.statuses[1] == CAIRN_OK);
}
END_TEST

static uint64_t return_address(struct cairn_record record)
{
    uint64_t address = cairn_record_address(record);
    struct cairn_record found;
    while (!cairn_table_find_return_address(record.table, address, &found) ||
           found.index != record.index) {
        address++;
        ck_assert_uint_lt(address, cairn_record_address(record) + 64);
    }
    return address;
}

/* Each of the two calls has the record before it, also if that record is at the return address of
 * the first call. */
START_TEST(record_between_two_calls_is_that_of_the_second)
{
    const void *target = cairn_exit_target(the_exit);
    code *f = load(STACKMAP(1) "CALL" STACKMAP(2) "CALL", target, 2);
    ck_assert_int_eq(f(5, target), 20);
    ck_assert_int_eq(seen.calls, 2);
    ck_assert(seen.has_record);
    ck_assert_uint_eq(seen.id, 2);
    struct cairn_record first;
    struct cairn_record second;
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 1, &first, 1), 1);
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 2, &second, 1), 1);
    ck_assert_uint_lt(return_address(first), return_address(second));
}
END_TEST

/* After the call, the frame no longer waits for a call. */
START_TEST(record_after_a_call_is_not_that_of_the_call)
{
    run("CALL" STACKMAP(1), cairn_exit_target(the_exit), (unsigned)_i);
    ck_assert(!seen.has_record);
}
END_TEST

START_TEST(first_of_several_records_at_a_call_is_found)
{
    run(STACKMAP(4) STACKMAP(3) "CALL", cairn_exit_target(the_exit), (unsigned)_i);
    ck_assert(seen.has_record);
    ck_assert_uint_eq(seen.id, 4);
}
END_TEST

/* The patch point's call may be anywhere in its bytes. */
START_TEST(patch_point_comes_before_a_stack_map_at_its_address)
{
    code *f = load(STACKMAP(1) "  call void (i64, i32, ptr, i32, ...) "
                               "@llvm.experimental.patchpoint.void(\n"
                               "      i64 2, i32 32, ptr null, i32 0, i64 %x, i64 %y)\n",
                   NULL, (unsigned)_i);
    cairn_site *site = cairn_runtime_find_site(runtime, 2, NULL);
    ck_assert_ptr_nonnull(site);
    ck_assert_ok(cairn_site_call(site, cairn_exit_target(the_exit), CAIRN_RELAXED, NULL));
    ck_assert_int_eq(f(5, NULL), 20);
    ck_assert(seen.has_record);
    ck_assert_uint_eq(seen.id, 2);
    ck_assert_int_eq(seen.values[1], 15);
}
END_TEST

/* The record of a statepoint is at the call's return address. */
START_TEST(statepoint_comes_before_a_stack_map_at_its_call)
{
    if (calls_by_name()) /* LLVM has no statepoints for PPC64 */
        return;
    const char *body = STACKMAP(1) "  call void %callee() \"statepoint-id\"=\"2\" "
                                   "[ \"deopt\"(i64 %x, i64 %y) ]\n";
    run(body, cairn_exit_target(the_exit), (unsigned)_i);
    ck_assert(seen.has_record);
    ck_assert_uint_eq(seen.id, 2);
    ck_assert_int_eq(seen.values[0], 5);
    ck_assert_int_eq(seen.values[1], 15);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("llvm call records");
    TCase *tests = tcase_create("call records");
    tcase_set_timeout(tests, 30);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, exit_has_the_record_at_the_address_of_its_call, 1, 4);
    tcase_add_loop_test(tests, walk_has_the_record_at_the_address_of_the_call, 1, 4);
    tcase_add_test(tests, record_between_two_calls_is_that_of_the_second);
    tcase_add_loop_test(tests, record_after_a_call_is_not_that_of_the_call, 1, 4);
    tcase_add_loop_test(tests, first_of_several_records_at_a_call_is_found, 1, 4);
    tcase_add_loop_test(tests, patch_point_comes_before_a_stack_map_at_its_address, 0, 4);
    tcase_add_loop_test(tests, statepoint_comes_before_a_stack_map_at_its_call, 0, 4);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
