/*
 * Tests of engines without memory. Each allocation of libcairn-llvm fails in turn, from reading the
 * declarations to publishing. Each time there is a status, nothing leaks, and the engine can be
 * disposed of.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "llvm_support.h"
#include "llvm/engine.h"
#include "llvm/scan.h"

#include "tests/allocator_support.h"
#include "tests/machine.h"
#include "tests/mode_support.h"
#include "llvm/version.h"

#include <stdio.h>
#include <string.h>

/* IDs 10 to 13 have values of several types and constants too large for a location. */
static const char first_text[] = SUPPORT_INTRINSICS
    "define i64 @first(i64 %%x, double %%d) {\n"
    "  %%r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(\n"
    "      i64 10, i32 16, ptr null, i32 1, i64 %%x, double %%d, i64 81985529216486895)\n"
    "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 11, i32 0, i64 %%r, double %%d)\n"
    "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 12, i32 8, i64 %%x, i64 -1)\n"
    "  ret i64 %%x\n"
    "}\n"
    /* The region is too small, so its site has a reason, which needs memory. */
    "define i64 @small(i64 %%x) {\n"
    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(\n"
    "      i64 13, i32 %u, ptr null, i32 0)\n"
    "  ret i64 %%x\n"
    "}\n";

static LLVMModuleRef parse_first(LLVMContextRef context)
{
    char text[sizeof first_text + 16];
    snprintf(text, sizeof text, first_text, machine_region_too_small);
    return support_parse_valid(context, text);
}

static const char second_text[] = SUPPORT_INTRINSICS
    "@global = global i64 40\n"
    "@constant = private constant [2 x i64] [i64 1, i64 2]\n"
    "define i64 @second(i64 %x) {\n"
    "  %g = load i64, GLOBAL @global\n"
    "  %s = add i64 %g, %x\n"
    "  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(\n"
    "      i64 20, i32 16, ptr null, i32 1, i64 %s)\n"
    "  ret i64 %s\n"
    "}\n";

static LLVMModuleRef parse_second(LLVMContextRef context)
{
    char text[sizeof second_text];
    strcpy(text, second_text);
    char *place = strstr(text, "GLOBAL");
    memcpy(place, LLVM_HAS_OPAQUE_POINTERS ? "ptr   " : "i64*  ", strlen("GLOBAL"));
    return support_parse_valid(context, text);
}

/* ---- All operations of an engine ---- */

struct attempt {
    LLVMContextRef context;
    cairn_runtime *runtime;
    cairn_engine *engine;
    struct support_allocator allocator;
    struct cairn_error error;
};

static void begin(struct attempt *attempt, enum cairn_code_mode mode)
{
    *attempt = (struct attempt){.context = LLVMContextCreate()};
    const struct cairn_runtime_options options = {
        .allocator = support_counting(&attempt->allocator), .code_mode = mode};
    ck_assert_ok(cairn_runtime_create(&options, &attempt->runtime, NULL));
}

static void end(struct attempt *attempt)
{
    attempt->allocator.fail_at = 0;
    cairn_engine_destroy(attempt->engine);
    cairn_runtime_quiesce(attempt->runtime);
    cairn_runtime_destroy(attempt->runtime);
    LLVMContextDispose(attempt->context);
    ck_assert_uint_eq(attempt->allocator.outstanding_bytes, 0);
}

/* The engine takes ownership of the module only on success. */
static enum cairn_status create(struct attempt *attempt)
{
    LLVMModuleRef module = parse_first(attempt->context);
    enum cairn_status status =
        cairn_engine_create(attempt->runtime, module, NULL, &attempt->engine, &attempt->error);
    if (status != CAIRN_OK)
        LLVMDisposeModule(module);
    return status;
}

static enum cairn_status add(struct attempt *attempt)
{
    LLVMModuleRef module = parse_second(attempt->context);
    enum cairn_status status = cairn_engine_add_module(attempt->engine, module, &attempt->error);
    if (status != CAIRN_OK)
        LLVMDisposeModule(module);
    return status;
}

static enum cairn_status use_engine(struct attempt *attempt)
{
    enum cairn_status status = create(attempt);
    if (status == CAIRN_OK)
        status = add(attempt);
    if (status == CAIRN_OK)
        status = cairn_engine_compile(attempt->engine, &attempt->error);
    return status;
}

static long call(const struct attempt *attempt, const char *name)
{
    void *address = support_compiled_function(attempt->engine, name, NULL);
    ck_assert_ptr_nonnull(address);
    return ((long (*)(long))(uintptr_t)address)(2);
}

static void check_it_works(const struct attempt *attempt)
{
    ck_assert_int_eq(call(attempt, "first"), 2);
    ck_assert_int_eq(call(attempt, "second"), 42);
    ck_assert_ptr_nonnull(cairn_runtime_find_site(attempt->runtime, 10, NULL));
    ck_assert_ptr_nonnull(cairn_runtime_find_site(attempt->runtime, 13, NULL));
}

/* Whether the error is the one expected after a refused allocation. */
static void check_refusal(const struct attempt *attempt, enum cairn_status status)
{
    ck_assert_msg(status == CAIRN_ERROR_MEMORY, "%s: %s", cairn_status_name(status),
                  attempt->error.message);
    ck_assert_int_eq(attempt->error.status, CAIRN_ERROR_MEMORY);
    ck_assert_ptr_nonnull(strstr(attempt->error.message, "no memory"));
}

/* ---- Each allocation fails ---- */

START_TEST(every_allocation_of_an_engine_may_fail_and_nothing_is_lost)
{
    enum { AT_LEAST = 20 };
    size_t failures = 0;
    enum cairn_status status = CAIRN_ERROR_MEMORY;
    while (status != CAIRN_OK) {
        struct attempt attempt;
        begin(&attempt, site_modes[_i]);
        attempt.allocator.fail_at = attempt.allocator.calls + failures + 1;
        status = use_engine(&attempt);
        if (status == CAIRN_OK) {
            ck_assert_uint_lt(attempt.allocator.calls, attempt.allocator.fail_at);
            check_it_works(&attempt);
        } else {
            check_refusal(&attempt, status);
            failures++;
        }
        end(&attempt);
    }
    ck_assert_uint_gt(failures, AT_LEAST);
}
END_TEST

/* A failure leaves the engine unchanged: the same module can be added once there is memory. */
START_TEST(engine_that_lacked_memory_for_a_module_takes_it_later)
{
    size_t failures = 0;
    enum cairn_status status = CAIRN_ERROR_MEMORY;
    struct attempt attempt;
    begin(&attempt, CAIRN_CODE_MODE_AUTOMATIC);
    ck_assert_ok(create(&attempt));
    while (status != CAIRN_OK) {
        attempt.allocator.fail_at = attempt.allocator.calls + failures + 1;
        status = add(&attempt);
        if (status != CAIRN_OK) {
            check_refusal(&attempt, status);
            failures++;
        }
    }
    ck_assert_uint_gt(failures, 1);
    attempt.allocator.fail_at = 0;
    ck_assert_ok(cairn_engine_compile(attempt.engine, NULL));
    check_it_works(&attempt);
    end(&attempt);
}
END_TEST

/* A failed finalisation removes its own functions, and no others. */
START_TEST(engine_goes_on_after_a_finalisation_without_memory)
{
    size_t failures = 0;
    for (bool failed = true; failed; failures++) {
        struct attempt attempt;
        begin(&attempt, CAIRN_CODE_MODE_AUTOMATIC);
        ck_assert_ok(create(&attempt));
        ck_assert_ok(cairn_engine_compile(attempt.engine, NULL));
        ck_assert_ok(add(&attempt));
        attempt.allocator.fail_at = attempt.allocator.calls + failures + 1;
        enum cairn_status status = cairn_engine_compile(attempt.engine, &attempt.error);
        attempt.allocator.fail_at = 0;
        failed = status != CAIRN_OK;
        if (failed) {
            check_refusal(&attempt, status);
            ck_assert_ptr_null(support_compiled_function(attempt.engine, "second", NULL));
            ck_assert_uint_eq(cairn_runtime_find_id(attempt.runtime, 20, NULL, 0), 0);
            LLVMModuleRef module = support_parse_valid(
                attempt.context, "define i64 @third(i64 %x) {\n  ret i64 %x\n}\n");
            ck_assert_ok(cairn_engine_add_module(attempt.engine, module, NULL));
            ck_assert_int_eq(call(&attempt, "third"), 2);
        }
        ck_assert_int_eq(call(&attempt, "first"), 2);
        end(&attempt);
    }
    ck_assert_uint_gt(failures, 10);
}
END_TEST

START_TEST(every_allocation_of_a_memory_manager_may_fail)
{
    size_t failures = 0;
    enum cairn_status status = CAIRN_ERROR_MEMORY;
    while (status != CAIRN_OK) {
        struct attempt attempt;
        cairn_memory_manager *manager = NULL;
        begin(&attempt, CAIRN_CODE_MODE_AUTOMATIC);
        attempt.allocator.fail_at = attempt.allocator.calls + failures + 1;
        status = cairn_memory_manager_create(attempt.runtime, NULL, &manager, &attempt.error);
        if (status == CAIRN_OK) {
            LLVMDisposeMCJITMemoryManager(cairn_memory_manager_llvm(manager));
        } else {
            check_refusal(&attempt, status);
            ck_assert_ptr_null(manager);
            failures++;
        }
        end(&attempt);
    }
    ck_assert_uint_ge(failures, 2);
}
END_TEST

/* ---- Reading declarations ---- */

START_TEST(scan_without_memory_may_be_done_again)
{
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef first = parse_first(context);
    LLVMModuleRef second = parse_second(context);
    struct support_allocator allocator = {.fail_at = 0};
    const struct cairn_allocator counting = support_counting(&allocator);
    size_t failures = 0;
    enum cairn_status status = CAIRN_ERROR_MEMORY;
    while (status != CAIRN_OK) {
        cairn_declarations *declarations;
        struct cairn_error error = {.status = CAIRN_OK};
        allocator.fail_at = 0;
        ck_assert_ok(cairn_declarations_create(&counting, &declarations, NULL));
        ck_assert_ok(scan_module(second, false, declarations, NULL));
        allocator.fail_at = allocator.calls + failures + 1;
        status = scan_module(first, false, declarations, &error);
        ck_assert_ptr_nonnull(cairn_declarations_find(declarations, 20));
        if (status != CAIRN_OK) {
            ck_assert_int_eq(status, CAIRN_ERROR_MEMORY);
            ck_assert_int_eq(error.status, CAIRN_ERROR_MEMORY);
            ck_assert_uint_eq(cairn_declarations_count(declarations), 1);
            failures++;
        }
        /* Declarations that already exist do not conflict. */
        allocator.fail_at = 0;
        ck_assert_ok(scan_module(first, false, declarations, NULL));
        ck_assert_uint_eq(cairn_declarations_count(declarations), 5);
        cairn_declarations_destroy(declarations);
        ck_assert_uint_eq(allocator.outstanding_bytes, 0);
    }
    ck_assert_uint_gt(failures, 1);
    LLVMDisposeModule(first);
    LLVMDisposeModule(second);
    LLVMContextDispose(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engines without memory");
    TCase *tests = tcase_create("memory");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, every_allocation_of_an_engine_may_fail_and_nothing_is_lost,
                        site_first_mode(), SITE_MODES);
    tcase_add_test(tests, engine_that_lacked_memory_for_a_module_takes_it_later);
    tcase_add_test(tests, engine_goes_on_after_a_finalisation_without_memory);
    tcase_add_test(tests, every_allocation_of_a_memory_manager_may_fail);
    tcase_add_test(tests, scan_without_memory_may_be_done_again);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
