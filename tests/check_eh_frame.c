/*
 * Tests of the begins and ends of functions: handwritten unwind tables, damaged ones, and this
 * program's own table, compared with the sorted table that the linker made of it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stackmap_support.h"
#include "unwind/eh_frame.h"
#include "unwind/functions.h"

#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

enum { PC_RELATIVE_S32 = 0x1B, PC_RELATIVE_S64 = 0x1C, ABSOLUTE_U32 = 0x03, ABSOLUTE_U16 = 0x02 };

#define SECTION_ADDRESS UINT64_C(0x7000000000)

/* ---- Writing ---- */

static struct sample_section table;

static void set_up(void) { table = (struct sample_section){.byte_order = CAIRN_LITTLE_ENDIAN}; }

static void tear_down(void) { section_free(&table); }

/* Writes the text with its terminating 0. */
static void put_text(const char *text)
{
    size_t size = strlen(text) + 1;
    for (size_t i = 0; i < size; i++)
        section_put(&table, (uint8_t)text[i], 1);
}

static void set_u32(size_t offset, uint64_t value)
{
    for (unsigned i = 0; i < 4; i++) {
        unsigned shift = table.byte_order == CAIRN_LITTLE_ENDIAN ? 8 * i : 24 - 8 * i;
        table.bytes[offset + i] = (uint8_t)(value >> shift);
    }
}

static size_t begin_entry(void)
{
    section_put(&table, 0, 4);
    return table.size;
}

static void end_entry(size_t begin)
{
    while (table.size % 8 != 0)
        section_put(&table, 0, 1);
    set_u32(begin - 4, table.size - begin);
}

/* Writes a CIE, and returns its offset. `data` is the augmentation data, if `letters` begin with
 * 'z'. */
static size_t put_common(uint8_t version, const char *letters, const uint8_t *data, uint8_t size)
{
    size_t begin = begin_entry();
    section_put(&table, 0, 4);
    section_put(&table, version, 1);
    put_text(letters);
    section_put(&table, 1, 1);    /* code alignment */
    section_put(&table, 0x78, 1); /* data alignment -8 */
    section_put(&table, 16, 1);   /* return address register */
    if (*letters == 'z')
        section_put(&table, size, 1);
    for (uint8_t i = 0; i < size; i++)
        section_put(&table, data[i], 1);
    end_entry(begin);
    return begin - 4;
}

static size_t put_simple_common(uint8_t encoding) { return put_common(1, "zR", &encoding, 1); }

static void put_function(size_t common, uint8_t encoding, uint64_t address, uint64_t size)
{
    static const size_t sizes[16] = {8, 0, 2, 4, 8, 0, 0, 0, 0, 0, 2, 4, 8};
    size_t begin = begin_entry();
    section_put(&table, begin - common, 4);
    uint64_t place = (encoding & 0x10) != 0 ? SECTION_ADDRESS + table.size : 0;
    section_put(&table, address - place, sizes[encoding & 15]);
    section_put(&table, size, sizes[encoding & 15]);
    section_put(&table, 0, 1); /* no augmentation data */
    end_entry(begin);
}

static struct eh_frame frame_of(const uint8_t *bytes, size_t size)
{
    return (struct eh_frame){{.bytes = bytes, .size = size, .byte_order = table.byte_order},
                             SECTION_ADDRESS};
}

static void assert_next(size_t *offset, uint64_t address, uint64_t size)
{
    struct eh_frame frame = frame_of(table.bytes, table.size);
    struct eh_frame_description description = {0};
    struct cairn_error error = {0};
    bool found;
    enum cairn_status status = eh_frame_next(&frame, offset, &description, &found, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    ck_assert(found);
    ck_assert_uint_eq(description.function.address, address);
    ck_assert_uint_eq(description.function.size, size);
}

static void assert_end(size_t offset)
{
    struct eh_frame frame = frame_of(table.bytes, table.size);
    struct eh_frame_description description = {0};
    bool found = true;
    ck_assert_ok(eh_frame_next(&frame, &offset, &description, &found, NULL));
    ck_assert(!found);
}

static void assert_bad(enum cairn_status expected, const char *what)
{
    struct eh_frame frame = frame_of(table.bytes, table.size);
    struct eh_frame_description description = {0};
    struct cairn_error error = {0};
    bool found = true;
    size_t offset = 0;
    ck_assert_int_eq(eh_frame_next(&frame, &offset, &description, &found, &error), expected);
    ck_assert(!found);
    ck_assert_msg(strstr(error.message, what) != NULL, "%s", error.message);
}

/* ---- Well-formed tables ---- */

static const struct {
    uint8_t encoding;
    uint64_t address;
    uint64_t size;
} encodings[] = {
    {PC_RELATIVE_S32, SECTION_ADDRESS - 0x1000, 0x20},
    {PC_RELATIVE_S64, UINT64_C(0x123456789AB), UINT64_C(0x100000001)},
    {0x00, UINT64_C(0xFEDCBA9876543210), 1},
    {0x04, UINT64_C(0xFEDCBA9876543210), 1},
    {ABSOLUTE_U32, 0x89ABCDEF, 0x90000000},
    {ABSOLUTE_U16, 0xFFF0, 0xF},
    {0x0A, UINT64_C(0xFFFFFFFFFFFF8000), 5},
};
enum { ENCODING_COUNT = sizeof encodings / sizeof *encodings };

START_TEST(every_encoding_is_read_in_both_byte_orders)
{
    table.byte_order = _i % 2 == 0 ? CAIRN_LITTLE_ENDIAN : CAIRN_BIG_ENDIAN;
    uint8_t encoding = encodings[_i / 2].encoding;
    size_t common = put_simple_common(encoding);
    put_function(common, encoding, encodings[_i / 2].address, encodings[_i / 2].size);
    size_t offset = 0;
    assert_next(&offset, encodings[_i / 2].address, encodings[_i / 2].size);
    assert_end(offset);
}
END_TEST

START_TEST(augmentations_are_passed_over)
{
    const uint8_t personality[] = {0x9B, 1, 2, 3, 4, 0x1B, PC_RELATIVE_S32};
    size_t common = put_common(1, "zPLR", personality, sizeof personality);
    put_function(common, PC_RELATIVE_S32, SECTION_ADDRESS, 1);
    const uint8_t encoding = PC_RELATIVE_S32;
    common = put_common(3, "zRS", &encoding, 1);
    put_function(common, PC_RELATIVE_S32, SECTION_ADDRESS + 8, 2);
    common = put_common(1, "", NULL, 0);
    put_function(common, 0, 77, 3);
    common = put_common(1, "z", NULL, 0);
    put_function(common, 0, 99, 4);
    size_t offset = 0;
    assert_next(&offset, SECTION_ADDRESS, 1);
    assert_next(&offset, SECTION_ADDRESS + 8, 2);
    assert_next(&offset, 77, 3);
    assert_next(&offset, 99, 4);
    assert_end(offset);
}
END_TEST

START_TEST(terminators_between_tables_are_passed_over)
{
    section_put(&table, 0, 4);
    section_put(&table, 0, 4);
    size_t common = put_simple_common(PC_RELATIVE_S32);
    put_function(common, PC_RELATIVE_S32, SECTION_ADDRESS + 4, 6);
    section_put(&table, 0, 4);
    size_t offset = 0;
    assert_next(&offset, SECTION_ADDRESS + 4, 6);
    assert_end(offset);
}
END_TEST

START_TEST(extended_lengths_are_read)
{
    size_t common = put_simple_common(PC_RELATIVE_S32);
    section_put(&table, UINT32_MAX, 4);
    section_put(&table, 4 + 8 + 4, 8);
    section_put(&table, table.size - common, 4);
    section_put(&table, 0x1234 - table.size, 4);
    section_put(&table, 9, 4);
    section_put(&table, 0, 4);
    size_t offset = 0;
    assert_next(&offset, SECTION_ADDRESS + 0x1234, 9);
    assert_end(offset);
}
END_TEST

/* ---- Damaged tables ---- */

START_TEST(reference_before_the_section_is_corrupt)
{
    size_t begin = begin_entry();
    section_put(&table, 5, 4);
    end_entry(begin);
    assert_bad(CAIRN_ERROR_CORRUPT, "5 bytes before offset 4");
}
END_TEST

START_TEST(reference_to_another_function_is_corrupt)
{
    size_t common = put_simple_common(PC_RELATIVE_S32);
    put_function(common, PC_RELATIVE_S32, SECTION_ADDRESS, 1);
    size_t first = common + 4 + cairn_load_u32(table.bytes + common, table.byte_order);
    put_function(first, PC_RELATIVE_S32, SECTION_ADDRESS, 1);
    memmove(table.bytes, table.bytes + first, table.size - first);
    table.size -= first;
    set_u32(4, UINT32_C(0)); /* the first FDE is now a CIE of an unknown version */
    assert_bad(CAIRN_ERROR_UNSUPPORTED, "offset 0");
}
END_TEST

START_TEST(unknown_augmentations_and_encodings_are_unsupported)
{
    static const uint8_t data[] = {0x50, 0, 0, 0, 0, 0, 0, 0, 0};
    static const char *const letters[] = {"zR", "zX", "eh", "zPR"};
    put_function(put_common(1, letters[_i], data, sizeof data), 0, 1, 1);
    assert_bad(CAIRN_ERROR_UNSUPPORTED, "offset 0");
}
END_TEST

/* The end would overflow, so that its rows would begin before it and rule tables would be
 * unsorted. */
START_TEST(function_that_ends_above_the_last_address_is_corrupt)
{
    size_t common = put_simple_common(0);
    put_function(common, 0, UINT64_MAX - 0xFF, _i == 0 ? 0x100 : UINT64_MAX);
    assert_bad(CAIRN_ERROR_CORRUPT, "reaches the end of the address space");
}
END_TEST

START_TEST(function_that_ends_at_the_last_address_is_read)
{
    size_t offset = 0;
    put_function(put_simple_common(0), 0, UINT64_MAX - 0xFF, 0xFF);
    assert_next(&offset, UINT64_MAX - 0xFF, 0xFF);
    assert_end(offset);
}
END_TEST

START_TEST(function_without_a_range_is_corrupt)
{
    size_t common = put_simple_common(0);
    size_t begin = begin_entry();
    section_put(&table, begin - common, 4);
    section_put(&table, 1, 4);
    set_u32(begin - 4, table.size - begin);
    assert_bad(CAIRN_ERROR_CORRUPT, "no range");
}
END_TEST

/* Expects an error or a table that is only shorter. No byte past the end may be read. */
static void read_to_end(const uint8_t *bytes, size_t size)
{
    struct guarded guarded = guard(bytes, size);
    struct eh_frame frame = frame_of(guarded.bytes, size);
    size_t offset = 0;
    bool found = true;
    struct eh_frame_description description = {0};
    while (found) {
        struct cairn_error error = {0};
        enum cairn_status status = eh_frame_next(&frame, &offset, &description, &found, &error);
        expect(offset <= size);
        if (status == CAIRN_OK)
            continue;
        expect(error.status == status && error.offset < size && error.message[0] != 0);
        break;
    }
    guard_end(&guarded);
}

static void put_several(void)
{
    const uint8_t personality[] = {0x9B, 1, 2, 3, 4, 0x1B, PC_RELATIVE_S32};
    size_t common = put_common(1, "zPLR", personality, sizeof personality);
    put_function(common, PC_RELATIVE_S32, SECTION_ADDRESS, 1);
    put_function(common, PC_RELATIVE_S32, SECTION_ADDRESS + 1, 7);
    common = put_common(3, "", NULL, 0);
    put_function(common, 0, 77, 3);
    section_put(&table, 0, 4);
}

START_TEST(table_may_end_anywhere)
{
    put_several();
    for (size_t size = 0; size <= table.size; size++)
        read_to_end(table.bytes, size);
}
END_TEST

START_TEST(any_byte_may_be_wrong)
{
    put_several();
    for (size_t at = 0; at < table.size; at++) {
        uint8_t right = table.bytes[at];
        for (unsigned wrong = 0; wrong < 256; wrong++) {
            table.bytes[at] = (uint8_t)wrong;
            read_to_end(table.bytes, table.size);
        }
        table.bytes[at] = right;
    }
}
END_TEST

/* ---- This program's own table ---- */

/* .eh_frame_hdr as linkers write it: version 1, a PC-relative pointer to .eh_frame, the number of
 * functions, and pairs of 32-bit distances from the header: to the function and to its FDE. */
struct header {
    uint8_t version;
    uint8_t pointer_encoding;
    uint8_t count_encoding;
    uint8_t table_encoding;
    int32_t frame;
    uint32_t count;
    struct {
        int32_t function;
        int32_t description;
    } entries[];
};

struct own {
    const struct header *header;
    uintptr_t end; /* end of the segment that holds both */
};

static int find_own(struct dl_phdr_info *program, size_t size, void *user)
{
    (void)size;
    struct own *own = user;
    for (ElfW(Half) i = 0; i < program->dlpi_phnum; i++)
        if (program->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
            own->header =
                (const struct header *)(program->dlpi_addr + program->dlpi_phdr[i].p_vaddr);
    for (ElfW(Half) i = 0; i < program->dlpi_phnum; i++) {
        uintptr_t begin = program->dlpi_addr + program->dlpi_phdr[i].p_vaddr;
        uintptr_t end = begin + program->dlpi_phdr[i].p_memsz;
        if (program->dlpi_phdr[i].p_type == PT_LOAD && begin <= (uintptr_t)own->header &&
            (uintptr_t)own->header < end)
            own->end = end;
    }
    return 1; /* the program itself comes first */
}

static int compare_entries(const void *left, const void *right)
{
    uint64_t a = ((const struct eh_frame_function *)left)->address;
    uint64_t b = ((const struct eh_frame_function *)right)->address;
    return a < b ? -1 : a > b;
}

START_TEST(functions_of_this_program_are_those_of_the_linkers_table)
{
    struct own own = {0};
    dl_iterate_phdr(find_own, &own);
    ck_assert_ptr_nonnull(own.header);
    ck_assert_uint_eq(own.header->version, 1);
    ck_assert_uint_eq(own.header->pointer_encoding, PC_RELATIVE_S32);
    uintptr_t base = (uintptr_t)own.header;
    uintptr_t begin =
        base + offsetof(struct header, frame) + (uintptr_t)(intptr_t)own.header->frame;
    struct eh_frame frame = {{(const uint8_t *)begin, own.end - begin, CAIRN_BYTE_ORDER_NATIVE},
                             begin};
    struct eh_frame_function *found = calloc(own.header->count, sizeof *found);
    struct eh_frame_description description = {0};
    size_t offset = 0;
    for (uint32_t i = 0; i < own.header->count; i++) {
        bool any = false;
        ck_assert_ok(eh_frame_next(&frame, &offset, &description, &any, NULL));
        ck_assert(any);
        found[i] = description.function;
    }
    qsort(found, own.header->count, sizeof *found, compare_entries);
    for (uint32_t i = 0; i < own.header->count; i++)
        expect(found[i].address == base + (uintptr_t)(intptr_t)own.header->entries[i].function);
    free(found);
}
END_TEST

/* ---- Finding functions ---- */

static struct functions *functions;
static cairn_table *records;

/* Makes functions with records at 0x1000 (one record) and 0x5000 (two), and unwind information for
 * [0x1000, 0x1100), [0x1100, 0x1180), [0x4000, 0x4010). */
static void set_up_functions(void)
{
    set_up();
    const struct cairn_stackmap_function with_records[] = {{0x1000, 24, 1}, {0x5000, 8, 2}};
    const struct sample_record sample_records[] = {
        {.id = 1, .code_offset = 4}, {.id = 2, .code_offset = 4}, {.id = 3, .code_offset = 8}};
    const struct sample_map map = {.version = 3,
                                   .function_count = 2,
                                   .record_count = 3,
                                   .functions = with_records,
                                   .records = sample_records};
    struct sample_section section = {.byte_order = CAIRN_BYTE_ORDER_NATIVE};
    section_put_map(&section, &map);
    const struct cairn_section bytes = {section.bytes, section.size, section.byte_order};
    ck_assert_ok(cairn_table_create(&bytes, 1, NULL, &records, NULL));
    section_free(&section);
    size_t common = put_simple_common(0);
    put_function(common, 0, 0x4000, 0x10);
    put_function(common, 0, 0x3000, 0);
    put_function(common, 0, 0x1000, 0x100);
    put_function(common, 0, 0x1100, 0x80);
    struct eh_frame frame = frame_of(table.bytes, table.size);
    struct cairn_allocator allocator = memory_allocator(NULL);
    struct function_list list;
    ck_assert_ok(function_list_read(&frame, 1, &allocator, &list, NULL));
    ck_assert_ok(functions_create(&list, &functions, NULL));
    function_list_release(&list);
}

static void tear_down_functions(void)
{
    struct cairn_allocator allocator = memory_allocator(NULL);
    functions_destroy(functions, &allocator);
    cairn_table_destroy(records);
    tear_down();
}

static void assert_function(uint64_t pc, uint64_t address, uint64_t stack_size, uint32_t first,
                            uint32_t count)
{
    struct cairn_function function;
    ck_assert_msg(functions_find(functions, records, pc, &function), "nothing at 0x%llx",
                  (unsigned long long)pc);
    ck_assert_uint_eq(function.address, address);
    ck_assert_uint_eq(function.stack_size, stack_size);
    ck_assert_uint_eq(function.first_record, first);
    ck_assert_uint_eq(function.record_count, count);
}

static void assert_no_function(uint64_t pc)
{
    struct cairn_function function;
    ck_assert_msg(!functions_find(functions, records, pc, &function), "0x%llx is in 0x%llx",
                  (unsigned long long)pc, (unsigned long long)function.address);
}

START_TEST(function_is_found_from_its_first_byte_to_its_last)
{
    assert_no_function(0xFFF);
    assert_function(0x1000, 0x1000, 24, 0, 1);
    assert_function(0x10FF, 0x1000, 24, 0, 1);
}
END_TEST

START_TEST(functions_without_records_are_found)
{
    assert_function(0x1100, 0x1100, CAIRN_STACK_SIZE_DYNAMIC, 1, 0);
    assert_function(0x117F, 0x1100, CAIRN_STACK_SIZE_DYNAMIC, 1, 0);
    assert_function(0x400F, 0x4000, CAIRN_STACK_SIZE_DYNAMIC, 1, 0);
}
END_TEST

START_TEST(nothing_is_found_between_functions)
{
    assert_no_function(0x1180);
    assert_no_function(0x3000);
    assert_no_function(0x3FFF);
    assert_no_function(0x4010);
    assert_no_function(0x4FFF);
}
END_TEST

START_TEST(function_without_unwind_information_continues)
{
    assert_function(0x5000, 0x5000, 8, 1, 2);
    assert_function(0x123456, 0x5000, 8, 1, 2);
}
END_TEST

START_TEST(without_unwind_tables_records_decide)
{
    struct cairn_function function;
    ck_assert(functions_find(NULL, records, 0x1100, &function));
    ck_assert_uint_eq(function.address, 0x1000);
    ck_assert(!functions_find(NULL, records, 0xFFF, &function));
}
END_TEST

START_TEST(lack_of_memory_is_reported)
{
    enum { LIST_ALLOCATIONS = 3 };
    struct eh_frame frame = frame_of(table.bytes, table.size);
    struct function_list list;
    for (unsigned i = 1; i <= LIST_ALLOCATIONS; i++) {
        struct counting_allocator refusing = {.fail_at = i};
        struct cairn_allocator allocator = counting(&refusing);
        ck_assert_int_eq(function_list_read(&frame, 1, &allocator, &list, NULL),
                         CAIRN_ERROR_MEMORY);
        ck_assert_uint_eq(refusing.blocks, 0);
    }
    struct counting_allocator refusing = {.fail_at = LIST_ALLOCATIONS + 1};
    struct cairn_allocator allocator = counting(&refusing);
    struct functions *none = NULL;
    ck_assert_ok(function_list_read(&frame, 1, &allocator, &list, NULL));
    ck_assert_int_eq(functions_create(&list, &none, NULL), CAIRN_ERROR_MEMORY);
    ck_assert_ptr_null(none);
    function_list_release(&list);
    ck_assert_uint_eq(refusing.blocks, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("unwind tables");
    TCase *reading = tcase_create("reading");
    tcase_add_checked_fixture(reading, set_up, tear_down);
    tcase_add_loop_test(reading, every_encoding_is_read_in_both_byte_orders, 0, 2 * ENCODING_COUNT);
    tcase_add_test(reading, augmentations_are_passed_over);
    tcase_add_test(reading, terminators_between_tables_are_passed_over);
    tcase_add_test(reading, extended_lengths_are_read);
    tcase_add_test(reading, reference_before_the_section_is_corrupt);
    tcase_add_test(reading, reference_to_another_function_is_corrupt);
    tcase_add_loop_test(reading, unknown_augmentations_and_encodings_are_unsupported, 0, 4);
    tcase_add_test(reading, function_without_a_range_is_corrupt);
    tcase_add_loop_test(reading, function_that_ends_above_the_last_address_is_corrupt, 0, 2);
    tcase_add_test(reading, function_that_ends_at_the_last_address_is_read);
    tcase_add_test(reading, table_may_end_anywhere);
    tcase_add_test(reading, any_byte_may_be_wrong);
    tcase_add_test(reading, functions_of_this_program_are_those_of_the_linkers_table);
    suite_add_tcase(suite, reading);
    TCase *finding = tcase_create("finding");
    tcase_add_checked_fixture(finding, set_up_functions, tear_down_functions);
    tcase_add_test(finding, function_is_found_from_its_first_byte_to_its_last);
    tcase_add_test(finding, functions_without_records_are_found);
    tcase_add_test(finding, nothing_is_found_between_functions);
    tcase_add_test(finding, function_without_unwind_information_continues);
    tcase_add_test(finding, without_unwind_tables_records_decide);
    tcase_add_test(finding, lack_of_memory_is_reported);
    suite_add_tcase(suite, finding);
    return run_suite(suite);
}
