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
#include "tests/context_support.h"

#include <cairn/cairn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { CODE = 0x1000 };

static const uint16_t register_count = ARCH_CONTEXT_REGISTERS;

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

/* `full` with another value in each byte of each register; then with registers of `full`
 * restored. */
static struct cairn_context changed;
static struct cairn_context restored;

static void change_all(void)
{
    changed = full;
    for (uint16_t dwarf = 0; dwarf < register_count; dwarf++) {
        unsigned char bytes[CAIRN_VALUE_BYTES_MAX];
        size_t size = cairn_context_register_size(&full, dwarf);
        if (size == 0)
            continue;
        ck_assert_ok(cairn_context_read(&full, dwarf, bytes, size, NULL));
        for (size_t i = 0; i < size; i++)
            bytes[i] ^= 0xFF;
        ck_assert_ok(cairn_context_write(&changed, dwarf, bytes, size, NULL));
    }
}

static void set_up(void)
{
    struct sigaction action = {.sa_sigaction = take_context, .sa_flags = SA_SIGINFO};
    ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
    ck_assert_int_eq(raise(SIGUSR1), 0);
    change_all();
    table = NULL;
}

static void tear_down(void) { cairn_table_destroy(table); }

/* Restores registers at a record with this list. */
static void restore_at(const struct cairn_liveout *listed, uint32_t count)
{
    static const struct cairn_stackmap_function function = {CODE, 8, 1};
    const struct sample_record sample = {.liveout_count = count, .liveouts = listed};
    const struct sample_map map = {3, 0, 1, 0, 1, &function, NULL, &sample};
    cairn_table_destroy(table);
    table = section_make_table(&map);
    restored = changed;
    cairn_context_restore(&restored, &full, (struct cairn_record){table, 0});
}

/* Returns the number of first bytes of a register's place that were restored. No others may be. */
static size_t preserved(uint16_t dwarf)
{
    struct arch_register place;
    size_t count = 0;
    if (!arch_context_has(&full, dwarf) || !arch_host_register(&full, dwarf, &place))
        return 0;
    const unsigned char *is = restored.bytes + place.offset;
    while (count < place.bytes && is[count] == full.bytes[place.offset + count])
        count++;
    for (size_t i = count; i < place.bytes; i++)
        ck_assert_msg(is[i] == changed.bytes[place.offset + i], "byte %zu of %u", i, dwarf);
    return count;
}

static size_t preserved_if_listed(uint16_t dwarf, uint8_t size)
{
    const struct cairn_liveout listed = {dwarf, size};
    restore_at(&listed, 1);
    return preserved(dwarf);
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
    return ARCH_CONTEXT_REGISTERS;
}

/* ---- Listed registers ---- */

START_TEST(an_integer_register_is_preserved_whole)
{
    uint16_t scratch = find_scratch(ARCH_REGISTER_INTEGER);
    ck_assert_uint_eq(preserved_if_listed(scratch, 1), cairn_context_register_size(&full, scratch));
}
END_TEST

START_TEST(the_recorded_bytes_of_a_vector_are_rounded_up_to_a_register)
{
    uint16_t scratch = find_scratch(ARCH_REGISTER_VECTOR);
    size_t all = cairn_context_register_size(&full, scratch);
    if (scratch == register_count)
        return;
    for (unsigned size = 1; size <= 255; size++) {
        size_t rounded = size <= 16 ? 16 : size <= 32 ? 32 : 64;
        ck_assert_uint_eq(preserved_if_listed(scratch, (uint8_t)size),
                          rounded < all ? rounded : all);
    }
}
END_TEST

START_TEST(the_first_doubleword_or_both_are_preserved)
{
    uint16_t scratch = find_scratch(ARCH_REGISTER_DOUBLEWORDS);
    if (scratch == register_count)
        return;
    ck_assert_uint_eq(preserved_if_listed(scratch, 4), 8);
    ck_assert_uint_eq(preserved_if_listed(scratch, 8), 8);
    ck_assert_uint_eq(preserved_if_listed(scratch, 16),
                      cairn_context_register_size(&full, scratch));
}
END_TEST

START_TEST(the_larger_size_counts_if_a_register_is_listed_twice)
{
    uint16_t scratch = find_scratch(ARCH_REGISTER_VECTOR);
    if (scratch == register_count)
        scratch = find_scratch(ARCH_REGISTER_DOUBLEWORDS);
    size_t all = cairn_context_register_size(&full, scratch);
    const struct cairn_liveout listed[] = {{scratch, 4}, {scratch, (uint8_t)all}, {scratch, 8}};
    restore_at(listed, 3);
    ck_assert_uint_eq(preserved(scratch), all);
}
END_TEST

/* ---- Registers that are not listed ---- */

/* Whether a register shares its place with one that is callee-saved, controls how the machine
 * computes, or is listed: fields of flags are restored together. */
static bool is_preserved_anyway(uint16_t dwarf, uint16_t listed)
{
    const struct cairn_arch *arch = arch_host();
    struct arch_register place;
    struct arch_register other;
    ck_assert(arch_host_register(&full, dwarf, &place));
    bool is_shared = arch_host_register(&full, listed, &other) && other.offset == place.offset;
    for (size_t i = 0; i < arch->unwind_slot_count; i++)
        is_shared = is_shared || (i != ARCH_UNWIND_RETURN_ADDRESS &&
                                  arch_host_register(&full, arch->unwind_slots[i].dwarf, &other) &&
                                  other.offset == place.offset);
    return is_shared || place.is_control;
}

START_TEST(callee_saved_and_control_registers_are_preserved_and_no_others)
{
    uint16_t scratch = find_scratch(ARCH_REGISTER_INTEGER);
    ck_assert_uint_eq(preserved_if_listed(scratch, 8), cairn_context_register_size(&full, scratch));
    for (uint16_t dwarf = 0; dwarf < register_count; dwarf++)
        if (cairn_context_register_size(&full, dwarf) != 0)
            ck_assert_msg((preserved(dwarf) != 0) == is_preserved_anyway(dwarf, scratch),
                          "register %u", dwarf);
    ck_assert_uint_eq(preserved(arch_host_layout.stack_pointer), 8);
}
END_TEST

START_TEST(all_registers_but_the_program_counter_are_preserved_without_a_list)
{
    const struct cairn_arch *arch = arch_host();
    uint16_t counter = arch->unwind_slots[ARCH_UNWIND_RETURN_ADDRESS].dwarf;
    restore_at(NULL, 0);
    for (uint16_t dwarf = 0; dwarf < register_count; dwarf++) {
        bool is_counter = dwarf == counter && !arch->has_link_register;
        size_t all = is_counter ? 0 : cairn_context_register_size(&full, dwarf);
        ck_assert_msg(preserved(dwarf) == all, "register %u: not %zu bytes", dwarf, all);
    }
}
END_TEST

START_TEST(numbers_without_a_register_are_left_out)
{
    static const struct cairn_liveout listed[] = {{65535, 255}, {127, 8}};
    restore_at(listed, 2);
    struct cairn_context with_invalid = restored;
    preserved_if_listed(arch_host_layout.stack_pointer, 8);
    ck_assert_mem_eq(&restored, &with_invalid, sizeof restored);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("liveout");
    TCase *listed = tcase_create("listed");
    tcase_add_checked_fixture(listed, set_up, tear_down);
    tcase_add_test(listed, an_integer_register_is_preserved_whole);
    tcase_add_test(listed, the_recorded_bytes_of_a_vector_are_rounded_up_to_a_register);
    tcase_add_test(listed, the_first_doubleword_or_both_are_preserved);
    tcase_add_test(listed, the_larger_size_counts_if_a_register_is_listed_twice);
    suite_add_tcase(suite, listed);
    TCase *others = tcase_create("not listed");
    tcase_add_checked_fixture(others, set_up, tear_down);
    tcase_add_test(others, callee_saved_and_control_registers_are_preserved_and_no_others);
    tcase_add_test(others, all_registers_but_the_program_counter_are_preserved_without_a_list);
    tcase_add_test(others, numbers_without_a_register_are_left_out);
    suite_add_tcase(suite, others);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
