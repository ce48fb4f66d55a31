/*
 * Tests that decoders and tables take time linear in the size of hostile input of a megabyte or
 * more. If a part of the code searched anew for each part of the input, the tests would take
 * minutes instead of milliseconds.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "frame_writer.h"
#include "runtime_support.h"
#include "stackmap_support.h"
#include "unwind/rules.h"

#include <cairn/block_table.h>
#include <cairn/declaration.h>
#include <cairn/pc_table.h>
#include <string.h>

/* Far more than is needed, even under emulators and with sanitizers. */
enum { CPU_SECONDS = 40 };

static struct sample_section bytes;

static void set_up(void)
{
    bytes = (struct sample_section){.byte_order = CAIRN_LITTLE_ENDIAN};
    limit_cpu_seconds(CPU_SECONDS);
}

static void tear_down(void) { section_free(&bytes); }

static void put_number(uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        section_put(&bytes, number | 0x80, 1);
    section_put(&bytes, number, 1);
}

/* ---- Basic-block address maps ---- */

enum { LONG_LIST = 400000 };

static void read_function(struct cairn_bbmap_function *function)
{
    const struct cairn_section section = section_view(&bytes);
    size_t offset = 0;
    ck_assert_ok(cairn_bbmap_read(&section, CAIRN_BBMAP_VERSIONED, &offset, function, NULL));
}

START_TEST(a_block_may_have_any_number_of_successors_and_calls)
{
    section_put(&bytes, 5, 1);
    section_put(&bytes, CAIRN_BBMAP_CALLSITES | CAIRN_BBMAP_PROBABILITIES, 2);
    section_put(&bytes, 0x1000, 8);
    put_number(1);
    put_number(0); /* ID */
    put_number(0); /* offset */
    put_number(LONG_LIST);
    for (uint32_t i = 0; i < LONG_LIST; i++)
        put_number(2);
    put_number(1); /* size, from the end of the last call */
    put_number(0); /* flags */
    put_number(LONG_LIST);
    for (uint32_t i = 0; i < LONG_LIST; i++) {
        put_number(i & 0x7F);
        put_number(1);
    }
    struct cairn_bbmap_function function;
    struct cairn_bbmap_block block = {0};
    struct cairn_bbmap_callsite callsite = {0};
    struct cairn_bbmap_successor successor = {0};
    uint32_t count = 0;
    read_function(&function);
    ck_assert(cairn_bbmap_next(&function, &block));
    while (cairn_bbmap_next_callsite(&function, &block, &callsite))
        expect(callsite.end_offset == 2 * ++count);
    ck_assert_uint_eq(count, LONG_LIST);
    count = 0;
    while (cairn_bbmap_next_successor(&function, &block, &successor))
        expect(successor.id == (count++ & 0x7F));
    ck_assert_uint_eq(count, LONG_LIST);
}
END_TEST

START_TEST(ranges_may_come_in_descending_order)
{
    section_put(&bytes, 2, 1);
    section_put(&bytes, CAIRN_BBMAP_RANGES, 1);
    put_number(LONG_LIST);
    for (uint32_t i = LONG_LIST; i > 0; i--) {
        section_put(&bytes, UINT64_C(0x10000) + UINT64_C(16) * i, 8);
        put_number(1);
        put_number(0);
        put_number(0);
        put_number(4);
        put_number(0);
    }
    const struct cairn_section section = section_view(&bytes);
    cairn_block_builder *builder;
    cairn_block_table *table;
    struct cairn_block block;
    ck_assert_ok(cairn_block_builder_create(NULL, &builder, NULL));
    ck_assert_ok(
        cairn_block_builder_add(builder, &section, CAIRN_BBMAP_VERSIONED, NULL, NULL, NULL));
    ck_assert_ok(cairn_block_builder_finish(builder, &table, NULL));
    for (uint32_t i = 0; i < LONG_LIST; i++)
        expect(cairn_block_table_block(table, 0, i, &block) && block.range == i &&
               block.address == UINT64_C(0x10000) + UINT64_C(16) * (LONG_LIST - i));
    cairn_block_table_destroy(table);
    cairn_block_builder_destroy(builder);
}
END_TEST

/* ---- PC sections ---- */

#define CODE UINT64_C(0x400000)
#define DATA UINT64_C(0x40000000)

static bool all_is_code(uint64_t address, void *user)
{
    (void)address;
    (void)user;
    return true;
}

static bool low_is_code(uint64_t address, void *user)
{
    (void)user;
    return address >= CODE && address < DATA;
}

static void make_pc_table(const char *schema, bool (*is_code)(uint64_t, void *),
                          cairn_pc_table **table)
{
    struct cairn_pc_table_section section = {
        .name = "hostile", .section = section_view(&bytes), .address = DATA};
    const struct cairn_pc_table_options options = {.is_code = is_code};
    ck_assert_ok(cairn_pcsection_parse_schema(schema, &section.schema, NULL));
    ck_assert_ok(cairn_pc_table_create(&section, 1, &options, table, NULL));
}

START_TEST(zeros_are_not_looked_through_for_each_run)
{
    enum { ENTRIES = 400000 };
    for (uint32_t i = 0; i < ENTRIES; i++)
        section_put(&bytes, 0, 8);
    section_put(&bytes, UINT64_C(1) << 56, 8);
    cairn_pc_table *table;
    make_pc_table("function 4", all_is_code, &table);
    ck_assert_uint_eq(support_pc_entry_count(table), ENTRIES + 1);
    cairn_pc_table_destroy(table);
}
END_TEST

START_TEST(a_run_may_have_any_number_of_addresses)
{
    enum { ADDRESSES = 500000 };
    for (uint32_t i = 0; i < ADDRESSES; i++)
        section_put(&bytes, CODE + i - (DATA + bytes.size), 4);
    section_put(&bytes, 0x1234, 4);
    cairn_pc_table *table;
    make_pc_table("instruction 4 u32", low_is_code, &table);
    ck_assert_uint_eq(support_pc_entry_count(table), ADDRESSES);
    for (uint32_t i = 0; i < ADDRESSES; i++) {
        struct cairn_pc_table_entry entry = support_pc_entry(table, i);
        expect(entry.value.address == CODE + i && entry.value.offset == 4 * (size_t)i);
        expect(entry.value.constants[0] == 0x1234);
    }
    cairn_pc_table_destroy(table);
}
END_TEST

/* ---- Unwind tables ---- */

enum { LONG_COMMON = 400000, FUNCTIONS = 40000 };

static const struct cairn_arch *x86_64(void) { return arch_find(CAIRN_ARCHITECTURE_X86_64); }

/* Common information with many instructions, nearly all of them no-ops. */
static size_t put_long_common(void)
{
    static uint8_t instructions[LONG_COMMON] = {0x0C, 7, 8, 0x90, 1};
    const struct sample_common common = {"", 1, -8, 16, instructions, sizeof instructions};
    return frame_put_common(&bytes, &common);
}

static enum cairn_status make_unwind(struct unwind **unwind)
{
    const struct eh_frame frame = frame_view(&bytes);
    const struct cairn_allocator allocator = memory_allocator(NULL);
    struct function_list list;
    enum cairn_status status = function_list_read(&frame, 1, &allocator, &list, NULL);
    if (status != CAIRN_OK)
        return status;
    status = unwind_create(&list, x86_64(), unwind, NULL);
    function_list_release(&list);
    return status;
}

/* The functions alternate between the common information of two tables. */
START_TEST(common_information_is_run_once)
{
    const size_t commons[] = {put_long_common(), put_long_common()};
    static const uint8_t nothing[1];
    for (uint64_t i = 0; i < FUNCTIONS; i++)
        frame_put_function(&bytes, commons[i % 2], 0x1000 + 16 * i, 16, nothing, sizeof nothing);
    struct unwind *unwind;
    ck_assert_ok(make_unwind(&unwind));
    for (uint64_t i = 0; i < FUNCTIONS; i++)
        expect(unwind_can_leave(unwind_find_exact(unwind, 0x1000 + 16 * i)));
    unwind_destroy(unwind);
}
END_TEST

/* Common information must be an entry of the section. Otherwise, each function could name a
 * different place inside of another entry. */
START_TEST(common_information_has_to_be_an_entry)
{
    static const uint8_t nothing[1];
    size_t common = put_long_common();
    /* The contents start again inside: length, ID, version, letters, alignments. */
    memmove(bytes.bytes + common + 64, bytes.bytes + common, 24);
    memset(bytes.bytes + common + 64, 0, 4);
    bytes.bytes[common + 64] = 40;
    frame_put_function(&bytes, common + 64, 0x1000, 16, nothing, sizeof nothing);
    struct unwind *unwind;
    ck_assert_int_eq(make_unwind(&unwind), CAIRN_ERROR_CORRUPT);
}
END_TEST

/* ---- Declarations ---- */

/* These IDs collided under a multiplicative hash that was used earlier. */
START_TEST(no_ids_collide_for_all_sets)
{
    enum { IDS = 200000 };
    const uint64_t inverse = UINT64_C(0xF1DE83E19937733D);
    cairn_declarations *set;
    ck_assert_ok(cairn_declarations_create(NULL, &set, NULL));
    for (uint64_t i = 0; i < IDS; i++) {
        const struct cairn_declaration declaration = {.id = inverse * i,
                                                      .kind = CAIRN_RECORD_STACKMAP};
        ck_assert_int_eq(cairn_declarations_add(set, &declaration, NULL), CAIRN_OK);
    }
    for (uint64_t i = 0; i < IDS; i++)
        expect(cairn_declarations_find(set, inverse * i) != NULL);
    ck_assert_uint_eq(cairn_declarations_count(set), IDS);
    cairn_declarations_destroy(set);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("linear time");
    TCase *tests = tcase_create("hostile input");
    tcase_set_timeout(tests, 600);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_block_may_have_any_number_of_successors_and_calls);
    tcase_add_test(tests, ranges_may_come_in_descending_order);
    tcase_add_test(tests, zeros_are_not_looked_through_for_each_run);
    tcase_add_test(tests, a_run_may_have_any_number_of_addresses);
    tcase_add_test(tests, common_information_is_run_once);
    tcase_add_test(tests, common_information_has_to_be_an_entry);
    tcase_add_test(tests, no_ids_collide_for_all_sets);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
