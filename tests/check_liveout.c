/*
 * check_liveout.c - tests of the registers that must be preserved at a site: src/frame/liveout.c.
 *
 * The records are written by hand, and the context is of this machine. check_llvm_liveout.c tests
 * the live-outs that LLVM lists.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stackmap_support.h"

#include "arch/arch.h"

#include <cairn/cairn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { CODE = 0x1000 };

static const uint16_t register_count = CAIRN_SURVIVORS_REGISTERS;

/* ---- A context that has all registers ---- */

static struct cairn_context full;

static void take_context(int number, siginfo_t *information, void *ucontext)
{
    (void)number;
    (void)information;
    if (cairn_context_from_signal(&full, ucontext, NULL) != CAIRN_OK)
        abort();
}

/* ---- Records ---- */

static cairn_table *table;
static struct cairn_survivors survivors;

static void set_up(void)
{
    struct sigaction action = {.sa_sigaction = take_context, .sa_flags = SA_SIGINFO};
    ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
    ck_assert_int_eq(raise(SIGUSR1), 0);
    table = NULL;
}

static void tear_down(void) { cairn_table_destroy(table); }

static struct cairn_record record_with(const struct cairn_liveout *listed, uint32_t count)
{
    static const struct cairn_stackmap_function function = {CODE, 8, 1};
    const struct sample_record sample = {.liveout_count = count, .liveouts = listed};
    const struct sample_map map = {3, 0, 1, 0, 1, &function, NULL, &sample};
    struct sample_section written = {.byte_order = CAIRN_BYTE_ORDER_NATIVE};
    section_put_map(&written, &map);
    const struct cairn_section section = section_view(&written);
    cairn_table_destroy(table);
    ck_assert_ok(cairn_table_create(&section, 1, NULL, &table, NULL));
    section_free(&written);
    return (struct cairn_record){table, 0};
}

static size_t survives(uint16_t dwarf, uint8_t size)
{
    const struct cairn_liveout listed = {dwarf, size};
    cairn_context_survivors(&full, record_with(&listed, 1), &survivors);
    return survivors.bytes[dwarf];
}

/* Returns the first register of this form that is caller-saved, or the number of registers. */
static uint16_t find_scratch(enum arch_register_form form)
{
    const struct cairn_arch *arch = arch_host();
    for (uint16_t dwarf = 0; dwarf < register_count; dwarf++) {
        struct arch_register place;
        bool is_scratch = arch_host_register(&full, dwarf, &place) && place.form == form;
        for (size_t i = 0; i < arch->unwind_slot_count; i++)
            is_scratch = is_scratch && arch->unwind_slots[i].dwarf != dwarf;
        if (is_scratch)
            return dwarf;
    }
    return CAIRN_SURVIVORS_REGISTERS;
}

/* ---- How much ---- */

START_TEST(one_byte_of_an_integer_keeps_the_whole_register)
{
    uint16_t scratch = find_scratch(ARCH_REGISTER_INTEGER);
    ck_assert_uint_eq(survives(scratch, 1), cairn_context_register_size(&full, scratch));
}
END_TEST

START_TEST(vectors_keep_what_is_recorded_rounded_up_to_a_register)
{
    uint16_t scratch = find_scratch(ARCH_REGISTER_VECTOR);
    size_t all = cairn_context_register_size(&full, scratch);
    if (scratch == CAIRN_SURVIVORS_REGISTERS)
        return;
    for (unsigned size = 1; size <= 255; size++) {
        size_t rounded = size <= 16 ? 16 : size <= 32 ? 32 : 64;
        ck_assert_uint_eq(survives(scratch, (uint8_t)size), rounded < all ? rounded : all);
    }
}
END_TEST

START_TEST(doublewords_keep_the_first_or_both)
{
    uint16_t scratch = find_scratch(ARCH_REGISTER_DOUBLEWORDS);
    if (scratch == CAIRN_SURVIVORS_REGISTERS)
        return;
    ck_assert_uint_eq(survives(scratch, 4), 8);
    ck_assert_uint_eq(survives(scratch, 8), 8);
    ck_assert_uint_eq(survives(scratch, 16), cairn_context_register_size(&full, scratch));
}
END_TEST

START_TEST(what_is_listed_twice_survives_as_far_as_either_says)
{
    uint16_t scratch = find_scratch(ARCH_REGISTER_VECTOR);
    if (scratch == CAIRN_SURVIVORS_REGISTERS)
        scratch = find_scratch(ARCH_REGISTER_DOUBLEWORDS);
    size_t all = cairn_context_register_size(&full, scratch);
    const struct cairn_liveout listed[] = {{scratch, 4}, {scratch, (uint8_t)all}, {scratch, 8}};
    cairn_context_survivors(&full, record_with(listed, 3), &survivors);
    ck_assert_uint_eq(survivors.bytes[scratch], all);
}
END_TEST

START_TEST(what_calls_leave_as_it_is_survives_whatever_is_listed)
{
    const struct cairn_arch *arch = arch_host();
    survives(find_scratch(ARCH_REGISTER_INTEGER), 8);
    for (size_t i = 0; i < arch->unwind_slot_count; i++)
        if (i != ARCH_UNWIND_RETURN_ADDRESS)
            ck_assert_uint_gt(survivors.bytes[arch->unwind_slots[i].dwarf], 0);
    ck_assert_uint_eq(survivors.bytes[arch_host_stack_pointer()], 8);
}
END_TEST

START_TEST(registers_that_are_not_listed_do_not_survive)
{
    uint16_t scratch = find_scratch(ARCH_REGISTER_INTEGER);
    unsigned count = 0;
    survives(scratch, 8);
    for (uint16_t dwarf = 0; dwarf < register_count; dwarf++)
        count += survivors.bytes[dwarf] != 0 && dwarf != scratch;
    ck_assert_uint_le(count, arch_host()->unwind_slot_count);
}
END_TEST

START_TEST(without_a_list_every_register_survives_whole_but_the_program_counter)
{
    const struct cairn_arch *arch = arch_host();
    uint16_t counter = arch->unwind_slots[ARCH_UNWIND_RETURN_ADDRESS].dwarf;
    cairn_context_survivors(&full, record_with(NULL, 0), &survivors);
    for (uint16_t dwarf = 0; dwarf < register_count; dwarf++) {
        bool is_counter = dwarf == counter && !arch->has_link_register;
        size_t all = is_counter ? 0 : cairn_context_register_size(&full, dwarf);
        ck_assert_msg(survivors.bytes[dwarf] == all, "register %u: %u bytes, not %zu", dwarf,
                      survivors.bytes[dwarf], all);
    }
}
END_TEST

START_TEST(numbers_that_no_context_has_are_left_out)
{
    struct cairn_survivors others;
    static const struct cairn_liveout listed[] = {{65535, 255}, {127, 8}};
    cairn_context_survivors(&full, record_with(listed, 2), &survivors);
    survives(arch_host_stack_pointer(), 8);
    others = survivors;
    cairn_context_survivors(&full, record_with(listed, 2), &survivors);
    ck_assert_mem_eq(&survivors, &others, sizeof others);
}
END_TEST

/* ---- Restoring ---- */

/* Fields of flags are restored together with their neighbours. */
static bool shares_place_with_survivor(uint16_t dwarf)
{
    struct arch_register place;
    struct arch_register other;
    ck_assert(arch_host_register(&full, dwarf, &place));
    for (uint16_t i = 0; i < register_count; i++)
        if (survivors.bytes[i] != 0 && arch_host_register(&full, i, &other) &&
            other.offset == place.offset)
            return true;
    return false;
}

START_TEST(what_survives_is_brought_back_and_the_rest_stays)
{
    uint16_t scratch = find_scratch(ARCH_REGISTER_INTEGER);
    uint16_t kept = arch_host()->unwind_slots[ARCH_UNWIND_RETURN_ADDRESS + 1].dwarf;
    static struct cairn_context now;
    now = full;
    for (uint16_t dwarf = 0; dwarf < register_count; dwarf++) {
        static const unsigned char changed[64] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
        size_t size = cairn_context_register_size(&now, dwarf);
        if (size != 0)
            ck_assert_ok(cairn_context_write(&now, dwarf, changed, size, NULL));
    }
    static struct cairn_context changed;
    changed = now;
    survives(scratch, 1);
    cairn_context_bring_back(&now, &full, &survivors);
    for (uint16_t dwarf = 0; dwarf < register_count; dwarf++) {
        size_t size = cairn_context_register_size(&now, dwarf);
        bool is_whole = size != 0 && survivors.bytes[dwarf] == size;
        bool is_untouched =
            size != 0 && survivors.bytes[dwarf] == 0 && !shares_place_with_survivor(dwarf);
        unsigned char is[64];
        unsigned char was[64];
        if (!is_whole && !is_untouched)
            continue;
        ck_assert_ok(cairn_context_read(&now, dwarf, is, size, NULL));
        ck_assert_ok(cairn_context_read(is_whole ? &full : &changed, dwarf, was, size, NULL));
        ck_assert_msg(memcmp(is, was, size) == 0, "register %u", dwarf);
    }
    ck_assert_uint_ne(survivors.bytes[kept], 0);
    ck_assert_uint_eq(cairn_context_pc(&now), cairn_context_pc(&changed));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("liveout");
    TCase *size = tcase_create("how much");
    tcase_add_checked_fixture(size, set_up, tear_down);
    tcase_add_test(size, one_byte_of_an_integer_keeps_the_whole_register);
    tcase_add_test(size, vectors_keep_what_is_recorded_rounded_up_to_a_register);
    tcase_add_test(size, doublewords_keep_the_first_or_both);
    tcase_add_test(size, what_is_listed_twice_survives_as_far_as_either_says);
    tcase_add_test(size, what_calls_leave_as_it_is_survives_whatever_is_listed);
    tcase_add_test(size, registers_that_are_not_listed_do_not_survive);
    tcase_add_test(size, without_a_list_every_register_survives_whole_but_the_program_counter);
    tcase_add_test(size, numbers_that_no_context_has_are_left_out);
    suite_add_tcase(suite, size);
    TCase *back = tcase_create("bringing back");
    tcase_add_checked_fixture(back, set_up, tear_down);
    tcase_add_test(back, what_survives_is_brought_back_and_the_rest_stays);
    suite_add_tcase(suite, back);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
