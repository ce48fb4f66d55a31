/*
 * Tests of finding sections by number and functions by name, in files of either byte order, linked
 * and not linked.
 *
 * SPDX-License-Identifier: MIT
 */
#include "object_sample.h"

#include <string.h>

enum { CODE_BYTES = 32, SYMBOL_BYTES = sizeof(Elf64_Sym) };
static const char strings[] = "\0first\0second";

struct search_sample {
    struct elf_file file;
    uint8_t code[CODE_BYTES];
    uint8_t symbols[4 * SYMBOL_BYTES];
    uint8_t bytes[ELF_BYTES_MAX];
    size_t size;
    uint32_t text, other;
    cairn_object *object;
};

static struct search_sample sample;

/* "second" is defined twice: the definition at the lower address comes later in the table. */
static void put_symbols(enum cairn_byte_order byte_order, uint64_t base)
{
    uint8_t function = STB_GLOBAL << 4 | STT_FUNC;
    uint16_t text = (uint16_t)sample.text;
    uint8_t *at = elf_put_symbol(sample.symbols, byte_order, 0, 0, 0, 0);
    at = elf_put_symbol(at, byte_order, NAME_SECOND, function, text, base + 24);
    at = elf_put_symbol(at, byte_order, NAME_FIRST, function, text, base);
    elf_put64(at - 8, byte_order, 16);
    elf_put_symbol(at, byte_order, NAME_SECOND, function, text, base + 16);
}

static const struct {
    uint16_t type;
    enum cairn_byte_order byte_order;
} kinds[] = {
    {ET_REL, CAIRN_LITTLE_ENDIAN},
    {ET_REL, CAIRN_BIG_ENDIAN},
    {ET_DYN, CAIRN_LITTLE_ENDIAN},
    {ET_DYN, CAIRN_BIG_ENDIAN},
};
enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

static uint64_t base_of(int kind) { return kinds[kind].type == ET_REL ? 0 : 0x1000; }

static void close_sample(void) { cairn_object_destroy(sample.object); }

static void open_sample(int kind)
{
    uint16_t type = kinds[kind].type;
    enum cairn_byte_order byte_order = kinds[kind].byte_order;
    uint64_t base = base_of(kind);
    memset(&sample, 0, sizeof sample);
    sample.file = (struct elf_file){.machine = EM_S390, .type = type, .byte_order = byte_order};
    sample.text = elf_add(&sample.file, (struct elf_section){.name = ".text",
                                                             .type = SHT_PROGBITS,
                                                             .flags = SHF_ALLOC | SHF_EXECINSTR,
                                                             .address = base,
                                                             .bytes = sample.code,
                                                             .size = CODE_BYTES});
    sample.other = elf_add(&sample.file, (struct elf_section){.name = "other",
                                                              .type = SHT_PROGBITS,
                                                              .flags = SHF_LINK_ORDER,
                                                              .address = 2 * base,
                                                              .link = sample.text,
                                                              .bytes = sample.code,
                                                              .size = 8});
    put_symbols(byte_order, base);
    uint32_t table = elf_add(&sample.file, (struct elf_section){.name = ".symtab",
                                                                .type = SHT_SYMTAB,
                                                                .bytes = sample.symbols,
                                                                .size = sizeof sample.symbols,
                                                                .entry_size = SYMBOL_BYTES,
                                                                .info = 1});
    sample.file.sections[table].link = elf_add(
        &sample.file,
        (struct elf_section){
            .name = ".strtab", .type = SHT_STRTAB, .bytes = strings, .size = sizeof strings});
    sample.size = elf_write(&sample.file, sample.bytes);
    struct cairn_error error = {0};
    ck_assert_msg(cairn_object_open_memory(sample.bytes, sample.size, NULL, &sample.object,
                                           &error) == CAIRN_OK,
                  "%s", error.message);
}

START_TEST(section_headers_are_read_by_number)
{
    struct cairn_object_section_header header;
    open_sample(_i);
    uint64_t base = base_of(_i);
    ck_assert(cairn_object_section_header(sample.object, sample.text, &header));
    ck_assert_str_eq(header.name, ".text");
    ck_assert_uint_eq(header.address, base);
    ck_assert_uint_eq(header.size, CODE_BYTES);
    ck_assert_uint_eq(header.flags, SHF_ALLOC | SHF_EXECINSTR);
    ck_assert_uint_eq(header.type, SHT_PROGBITS);
    ck_assert_uint_eq(header.linked_section, 0);
    ck_assert(cairn_object_section_header(sample.object, sample.other, &header));
    ck_assert_str_eq(header.name, "other");
    ck_assert_uint_eq(header.address, 2 * base);
    ck_assert_uint_eq(header.linked_section, sample.text);
}
END_TEST

START_TEST(section_numbers_outside_of_the_table_are_refused)
{
    struct cairn_object_section_header header = {.size = 77};
    uint32_t count = 0;
    open_sample(_i);
    ck_assert(!cairn_object_section_header(sample.object, 0, &header));
    ck_assert_uint_eq(header.size, 77);
    while (cairn_object_section_header(sample.object, count + 1, &header))
        count++;
    /* The builder adds a section for the names of sections. */
    ck_assert_uint_eq(count, sample.file.section_count + 1);
    ck_assert(!cairn_object_section_header(sample.object, UINT32_MAX, &header));
}
END_TEST

START_TEST(functions_are_found_by_name)
{
    struct cairn_object_function function;
    open_sample(_i);
    uint64_t base = base_of(_i);
    uint32_t section = kinds[_i].type == ET_REL ? sample.text : 0;
    ck_assert_int_eq(cairn_object_find_name(sample.object, "first", &function, NULL), CAIRN_OK);
    ck_assert_str_eq(function.name, "first");
    ck_assert_uint_eq(function.entry, base);
    ck_assert_uint_eq(function.size, 16);
    ck_assert_uint_eq(function.section, section);
}
END_TEST

START_TEST(lowest_function_of_a_name_is_found)
{
    struct cairn_object_function function;
    open_sample(_i);
    uint64_t base = base_of(_i);
    ck_assert_int_eq(cairn_object_find_name(sample.object, "second", &function, NULL), CAIRN_OK);
    ck_assert_uint_eq(function.entry, base + 16);
}
END_TEST

START_TEST(unknown_names_are_not_found)
{
    struct cairn_object_function function = {.size = 77};
    struct cairn_error error = {0};
    open_sample(2);
    ck_assert_int_eq(cairn_object_find_name(sample.object, "third", &function, &error),
                     CAIRN_ERROR_NOT_FOUND);
    ck_assert_str_eq(error.message, "there is no function 'third'");
    ck_assert_uint_eq(function.size, 77);
    ck_assert_int_eq(cairn_object_find_name(sample.object, NULL, &function, NULL),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_object_find_name(NULL, "first", &function, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_object_find_name(sample.object, "first", NULL, NULL),
                     CAIRN_ERROR_ARGUMENT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("searching objects");
    TCase *all = tcase_create("sections and functions");
    tcase_add_checked_fixture(all, NULL, close_sample);
    tcase_add_loop_test(all, section_headers_are_read_by_number, 0, KIND_COUNT);
    tcase_add_loop_test(all, section_numbers_outside_of_the_table_are_refused, 0, KIND_COUNT);
    tcase_add_loop_test(all, functions_are_found_by_name, 0, KIND_COUNT);
    tcase_add_loop_test(all, lowest_function_of_a_name_is_found, 0, KIND_COUNT);
    tcase_add_test(all, unknown_names_are_not_found);
    suite_add_tcase(suite, all);
    return sample_run(suite);
}
