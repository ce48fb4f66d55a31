/*
 * Tests of reports about inline caches.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/ic_fixture.h"

#include <string.h>

/* ---- Reports ---- */

/* Replaces addresses by "0x". */
static void replace_addresses(char *text)
{
    char *out = text;
    for (char *in = text; *in != '\0';) {
        bool is_address = strncmp(in, " at 0x", 6) == 0 || strncmp(in, "call 0x", 7) == 0;
        *out++ = *in++;
        if (!is_address)
            continue;
        while (strncmp(in, "0x", 2) != 0)
            *out++ = *in++;
        *out++ = *in++;
        *out++ = *in++;
        in += strspn(in, "0123456789abcdef");
    }
    *out = '\0';
}

static void add_all_kinds(cairn_ic *getting)
{
    struct cairn_ic_case loads = load_case(0x51, 1);
    struct cairn_ic_case constant = constant_case(0x52, 7);
    struct cairn_ic_case outside = load_case(0x53, 0);
    struct cairn_ic_case calls = {.guard = shape_guard(0x54),
                                  .action = CAIRN_IC_CALL,
                                  .target = (const void *)(uintptr_t)first_target};
    constant.guard.mask = 0xFF;
    outside.field = (struct cairn_ic_field){
        .offset = -8,
        .width = 2,
        .is_signed = true,
        .is_out_of_line = true,
        .pointer_offset = offsetof(struct object, outside),
    };
    add_to(getting, &loads);
    add_to(getting, &constant);
    add_to(getting, &outside);
    add_to(getting, &calls);
}

static void make_report(void)
{
    const struct ic_function functions[] = {get, set, get_by_c};
    struct cairn_ic_case stores = {
        .guard = {.operand = 0, .offset = -4, .width = 8, .key = UINT64_MAX},
        .action = CAIRN_IC_STORE,
        .field = {.offset = 24, .width = 4},
        .operand = 1,
    };
    load(functions, 3);
    cairn_ic *getting = create(program.sites[0], (struct cairn_ic_options){.counts_hits = true});
    cairn_ic *setting = create(program.sites[1], (struct cairn_ic_options){.case_limit = 1});
    cairn_ic *another = create(program.sites[2], (struct cairn_ic_options){.case_limit = 1});
    add_all_kinds(getting);
    add_to(setting, &stores);
    add_constants(another, 2);
    answer(ANSWER);
    run_often(0x51, 3);
    run_often(0x52, 2);
    run_often(0x99, 2);
}

static const char report[] =
    "site 100 at 0x: polymorphic, 4 of 4 cases, 5 hits, 2 misses\n"
    "    [operand 0 + 0] 4 bytes = 0x51: load 8 bytes at 16, 3 hits\n"
    "    [operand 0 + 0] 4 bytes & 0xff = 0x52: constant 0x7, 2 hits\n"
    "    [operand 0 + 0] 4 bytes = 0x53: load signed 2 bytes at -8 from the pointer at 56, 0 hits\n"
    "    [operand 0 + 0] 4 bytes = 0x54: call 0x, 0 hits\n"
    "site 101 at 0x: monomorphic, 1 of 1 cases\n"
    "    [operand 0 - 4] 8 bytes = 0xffffffffffffffff: store operand 1, 4 bytes at 24\n"
    "site 102 at 0x: megamorphic, 0 of 1 cases\n"
    "    [operand 0 + 0] 4 bytes = 0x1: constant 0x65, 0 additions\n"
    "    [operand 0 + 0] 4 bytes = 0x2: constant 0x66, 1 additions\n";

START_TEST(a_report_has_a_line_for_each_cache_and_each_case)
{
    char text[4096];
    make_report();
    size_t length = cairn_runtime_format_ics(runtime, text, sizeof text);
    ck_assert_uint_eq(length, strlen(text));
    replace_addresses(text);
    ck_assert_str_eq(text, report);
}
END_TEST

START_TEST(a_report_is_cut_to_its_size_and_tells_its_length)
{
    char whole[4096];
    char text[4096];
    make_report();
    size_t length = cairn_runtime_format_ics(runtime, whole, sizeof whole);
    ck_assert_uint_eq(cairn_runtime_format_ics(runtime, NULL, 0), length);
    for (size_t size = 1; size <= length + 1; size++) {
        memset(text, 0x55, sizeof text);
        ck_assert_uint_eq(cairn_runtime_format_ics(runtime, text, size), length);
        ck_assert_uint_eq(strlen(text), size - 1);
        ck_assert_mem_eq(text, whole, size - 1);
        ck_assert_int_eq(text[size], 0x55);
    }
}
END_TEST

START_TEST(a_report_of_no_caches_is_empty)
{
    char text[8] = "before";
    ck_assert_uint_eq(cairn_runtime_format_ics(runtime, text, sizeof text), 0);
    ck_assert_str_eq(text, "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reports about inline caches");
    TCase *tests = tcase_create("reports");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_report_has_a_line_for_each_cache_and_each_case);
    tcase_add_test(tests, a_report_is_cut_to_its_size_and_tells_its_length);
    tcase_add_test(tests, a_report_of_no_caches_is_empty);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
