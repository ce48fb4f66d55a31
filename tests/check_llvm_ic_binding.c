/*
 * Tests of creating inline caches at sites and of destroying them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/ic_fixture.h"

#include <string.h>

/* ---- Binding and unbinding ---- */

START_TEST(destroying_a_cache_restores_the_site)
{
    struct cairn_error error = {0};
    struct cairn_site_description before;
    struct cairn_site_description after;
    struct ic_function function = *getters[_i / 2];
    function.target = _i % 2 == 0 ? NULL : (const void *)(uintptr_t)first_target;
    load(&function, 1);
    cairn_site_describe(program.sites[0], &before);
    unsigned char bytes[64];
    ck_assert_uint_le(before.byte_count, sizeof bytes);
    memcpy(bytes, before.bytes, before.byte_count);
    ic = create(program.sites[0], no_options);
    add_constant(1, 101);
    expect_hit(1, 101);
    ic_assert_done(cairn_ic_destroy(ic, CAIRN_SYNC, &error), error);
    cairn_site_describe(program.sites[0], &after);
    ck_assert_int_eq(after.state, before.state);
    ck_assert_uint_eq(after.target, before.target);
    ck_assert_ptr_null(cairn_site_ic(program.sites[0]));
    cairn_runtime_quiesce(runtime); /* threads may have been in the bytes */
    ck_assert_mem_eq(after.bytes, bytes, before.byte_count);
    ic = create(program.sites[0], no_options);
    expect_miss(1);
}
END_TEST

START_TEST(a_restored_site_calls_its_first_target_again)
{
    struct cairn_error error = {0};
    struct ic_function function = get_by_c;
    struct cairn_value integer = cairn_value_of_integer(64, 1000);
    function.target = (const void *)(uintptr_t)first_target;
    load(&function, 1);
    ic_set_operand(&access_0, 1, &integer);
    ck_assert_uint_eq(run_shape(1), 1077);
    ic = create(program.sites[0], no_options);
    expect_miss(1);
    ic_assert_done(cairn_ic_destroy(ic, CAIRN_RELAXED, &error), error);
    ck_assert_uint_eq(run_shape(1), 1077);
}
END_TEST

START_TEST(destroying_nothing_is_allowed)
{
    struct cairn_error error;
    ck_assert_ok(cairn_ic_destroy(NULL, CAIRN_RELAXED, &error));
}
END_TEST

START_TEST(a_site_and_its_cache_refer_to_each_other)
{
    struct cairn_ic_description description;
    struct cairn_site_description site;
    load(&get, 1);
    ck_assert_ptr_null(cairn_site_ic(program.sites[0]));
    ic = create(program.sites[0], no_options);
    ck_assert_ptr_eq(cairn_site_ic(program.sites[0]), ic);
    cairn_ic_describe(ic, NULL, 0, &description);
    ck_assert_ptr_eq(description.site, program.sites[0]);
    add_constant(1, 1);
    cairn_site_describe(program.sites[0], &site);
    cairn_ic_describe(ic, NULL, 0, &description);
    ck_assert_ptr_eq(description.ic, ic);
    ck_assert_ptr_eq(description.site, program.sites[0]);
    ck_assert_uint_eq(description.id, IC_FIRST_SITE);
    ck_assert_uint_eq(description.address, site.address);
    ck_assert_uint_gt(description.case_bytes, 0);
    ck_assert_uint_gt(description.code_bytes, description.case_bytes);
}
END_TEST

static bool count_visit(const struct cairn_ic_description *description, void *user)
{
    unsigned *count = user;
    (void)description;
    ++*count;
    return true;
}

static unsigned count_caches(void)
{
    unsigned count = 0;
    cairn_runtime_visit_ics(runtime, count_visit, &count);
    return count;
}

START_TEST(a_modules_caches_are_freed_with_it)
{
    struct ic_program other;
    const struct ic_function functions[] = {get, set};
    load_one(&get, no_options);
    add_constant(1, 101);
    ic_load(&other, runtime, functions, 2, 2 * IC_FIRST_SITE);
    create(other.sites[0], (struct cairn_ic_options){.counts_hits = true});
    create(other.sites[1], (struct cairn_ic_options){.counts_hits = true});
    ck_assert_uint_eq(count_caches(), 3);
    struct cairn_ic_case added = constant_case(1, 5);
    ck_assert_ok(cairn_ic_add(cairn_site_ic(other.sites[0]), &added, CAIRN_RELAXED, NULL));
    ic_unload(&other);
    cairn_runtime_quiesce(runtime);
    ck_assert_uint_eq(count_caches(), 1);
    expect_hit(1, 101);
    expect_miss(2);
}
END_TEST

/* ---- Errors of creating ---- */

static void expect_no_cache(cairn_site *site, const struct cairn_ic_options *options,
                            enum cairn_status expected, const char *says)
{
    struct cairn_error error = {0};
    cairn_ic *made = (cairn_ic *)&seen;
    enum cairn_status status = cairn_ic_create(site, options, &made, &error);
    ck_assert_msg(status == expected, "%d and not %d: %s", (int)status, (int)expected,
                  error.message);
    ck_assert_int_eq(error.status, expected);
    ck_assert_msg(strstr(error.message, says) != NULL, "no '%s' in '%s'", says, error.message);
    ck_assert_ptr_eq(made, (cairn_ic *)&seen);
}

START_TEST(invalid_options_are_refused)
{
    const struct cairn_ic_options good = {.handler = missed, .user = &seen};
    struct cairn_ic_options bad = good;
    struct cairn_site_description before;
    struct cairn_site_description after;
    load(&get, 1);
    cairn_site_describe(program.sites[0], &before);
    expect_no_cache(NULL, &good, CAIRN_ERROR_ARGUMENT, "site");
    expect_no_cache(program.sites[0], NULL, CAIRN_ERROR_ARGUMENT, "options");
    bad.handler = NULL;
    expect_no_cache(program.sites[0], &bad, CAIRN_ERROR_ARGUMENT, "handler");
    bad = good;
    bad.case_limit = CAIRN_IC_CASE_LIMIT_MAX + 1;
    expect_no_cache(program.sites[0], &bad, CAIRN_ERROR_ARGUMENT, "17");
    bad = good;
    bad.megamorphic_target = (const void *)(uintptr_t)first_target;
    expect_no_cache(program.sites[0], &bad, CAIRN_ERROR_ARGUMENT, "number 13");
    cairn_site_describe(program.sites[0], &after);
    ck_assert_int_eq(after.state, before.state);
    ck_assert_ptr_null(cairn_site_ic(program.sites[0]));
}
END_TEST

START_TEST(a_site_has_one_cache)
{
    const struct cairn_ic_options options = {.handler = missed, .user = &seen};
    load_one(&get, no_options);
    add_constant(1, 101);
    expect_no_cache(program.sites[0], &options, CAIRN_ERROR_CONFLICT, "");
    ck_assert_ptr_eq(cairn_site_ic(program.sites[0]), ic);
    expect_hit(1, 101);
}
END_TEST

static const char other_sites[] = SUPPORT_INTRINSICS
    "define i64 @stackmap(i64 %a) uwtable {\n"
    "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 16, i64 %a)\n"
    "  %r = mul i64 %a, 3\n"
    "  ret i64 %r\n"
    "}\n"
    "define i64 @swift(i64 %a) uwtable {\n"
    "  %r = call swiftcc i64 (i64, i32, ptr, i32, ...)\n"
    "      @llvm.experimental.patchpoint.i64(i64 2, i32 16, ptr null, i32 1, i64 %a)\n"
    "  ret i64 %r\n"
    "}\n"
    "define i64 @wide(i128 %a) uwtable {\n"
    "  %r = call i64 (i64, i32, ptr, i32, ...)\n"
    "      @llvm.experimental.patchpoint.i64(i64 3, i32 16, ptr null, i32 1, i128 %a)\n"
    "  ret i64 %r\n"
    "}\n"
    "define i64 @narrow(i64 %a) uwtable {\n"
    "  %r = call anyregcc i64 (i64, i32, ptr, i32, ...)\n"
    "      @llvm.experimental.patchpoint.i64(i64 4, i32 0, ptr null, i32 1, i64 %a)\n"
    "  ret i64 %r\n"
    "}\n";

static cairn_site *site(uint64_t id)
{
    struct cairn_error error = {0};
    cairn_site *found = cairn_runtime_find_site(runtime, id, &error);
    ck_assert_msg(found != NULL, "%s", error.message);
    return found;
}

START_TEST(errors_say_why_sites_cannot_have_a_cache)
{
    const struct cairn_ic_options options = {.handler = missed, .user = &seen};
    ic_load_with(&program, runtime, &get, 1, IC_FIRST_SITE, other_sites);
    expect_no_cache(site(1), &options, CAIRN_ERROR_UNMANAGED,
                    "is a stackmap's: inline caches are for patch points");
    expect_no_cache(site(2), &options, CAIRN_ERROR_UNSUPPORTED, "convention");
    expect_no_cache(site(4), &options, CAIRN_ERROR_UNMANAGED, "");
}
END_TEST

__extension__ typedef __int128 wide_integer;

/* The halves of an i128 are not separate values in records. It depends on the ABI whether a handler
 * can get the value: the handler gets it unchanged, or the cache is refused. */
START_TEST(an_operand_of_128_bits_arrives_or_is_refused)
{
    struct cairn_error error = {0};
    const struct cairn_ic_options options = {.handler = missed, .user = &seen};
    cairn_ic *made = NULL;
    ic_load_with(&program, runtime, &get, 1, IC_FIRST_SITE, other_sites);
    enum cairn_status status = cairn_ic_create(site(3), &options, &made, &error);
    ck_assert(status == CAIRN_OK || status == CAIRN_ERROR_UNSUPPORTED);
    if (status == CAIRN_OK) {
        wide_integer (*function)(wide_integer);
        const void *address = ic_find(&program, "wide");
        memcpy(&function, &address, sizeof address);
        wide_integer wide = ((wide_integer)0x1122334455667788 << 64) + 0x99;
        answer(ANSWER);
        function(wide);
        ck_assert_mem_eq(seen.operands[0].bytes, &wide, sizeof wide);
    }
}
END_TEST

START_TEST(a_site_with_too_many_operands_has_no_cache)
{
    const struct cairn_ic_options options = {.handler = missed, .user = &seen};
    struct ic_function function = get_by_c;
    function.operand_count = CAIRN_IC_OPERANDS_MAX + 1;
    for (uint32_t i = 1; i < function.operand_count; i++)
        function.operands[i] = CAIRN_INTEGER(64);
    load(&function, 1);
    expect_no_cache(program.sites[0], &options, CAIRN_ERROR_UNSUPPORTED, "17");
}
END_TEST

/* ---- Errors of memory allocation ---- */

static enum cairn_status change_create(struct cairn_error *error)
{
    const struct cairn_ic_options options = {.handler = missed, .user = &seen};
    return cairn_ic_create(program.sites[0], &options, &ic, error);
}

static void expect_not_created(void)
{
    struct cairn_site_description description;
    cairn_site_describe(program.sites[0], &description);
    ck_assert_int_eq(description.state, CAIRN_SITE_NOP);
    ck_assert_ptr_null(cairn_site_ic(program.sites[0]));
    ck_assert_ptr_null(ic);
}

START_TEST(creating_fails_with_each_allocation)
{
    load(getters[_i], 1);
    fail_each_allocation(change_create, expect_not_created);
    expect_miss(1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("creation of inline caches");
    TCase *tests = tcase_create("binding");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, destroying_a_cache_restores_the_site, 0, 4);
    tcase_add_test(tests, a_restored_site_calls_its_first_target_again);
    tcase_add_test(tests, destroying_nothing_is_allowed);
    tcase_add_test(tests, a_site_and_its_cache_refer_to_each_other);
    tcase_add_test(tests, a_modules_caches_are_freed_with_it);
    tcase_add_test(tests, invalid_options_are_refused);
    tcase_add_test(tests, a_site_has_one_cache);
    tcase_add_test(tests, errors_say_why_sites_cannot_have_a_cache);
    tcase_add_test(tests, an_operand_of_128_bits_arrives_or_is_refused);
    tcase_add_test(tests, a_site_with_too_many_operands_has_no_cache);
    tcase_add_loop_test(tests, creating_fails_with_each_allocation, 0, 2);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
