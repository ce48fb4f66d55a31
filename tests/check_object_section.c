/*
 * Tests of the sections of ELF files: iteration, load addresses, compression, and memory limits.
 *
 * SPDX-License-Identifier: MIT
 */
#include "object_sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const struct cairn_object_filter stackmaps = {.name = CAIRN_OBJECT_STACKMAPS};

static struct sample sample;
static cairn_object *object; /* closed after each test */
static struct cairn_object_section section;
static struct cairn_error error;

static void set_up(void)
{
    object = NULL;
    section = (struct cairn_object_section){0};
}

static void tear_down(void) { cairn_object_destroy(object); }

/* Opens the sample, and finds its stack map section. */
static void open_section(void)
{
    object = sample_open(&sample);
    section = sample_section(object);
}

/* Opens the sample, and returns the status of finding its stack map section. */
static enum cairn_status try_section(void)
{
    tear_down();
    set_up();
    object = sample_open(&sample);
    enum cairn_status status = cairn_object_next_section(object, &stackmaps, &section, &error);
    ck_assert_int_eq(status == CAIRN_OK, section.index != 0);
    return status;
}

/* ---- Sections ---- */

/* Adds a program header after the end of the file. */
static void add_segment(uint32_t type, uint32_t flags, uint64_t file_offset, uint64_t address,
                        uint64_t file_bytes)
{
    enum cairn_byte_order byte_order = sample.file.byte_order;
    uint8_t *count = sample.bytes + offsetof(Elf64_Ehdr, e_phnum);
    if (cairn_load_u16(count, byte_order) == 0) {
        sample.size = (sample.size + 7) & ~(size_t)7;
        elf_put64(sample.bytes + offsetof(Elf64_Ehdr, e_phoff), byte_order, sample.size);
        elf_put16(sample.bytes + offsetof(Elf64_Ehdr, e_phentsize), byte_order, sizeof(Elf64_Phdr));
    }
    elf_put16(count, byte_order, (uint16_t)(cairn_load_u16(count, byte_order) + 1));
    uint8_t *segment = sample.bytes + sample.size;
    memset(segment, 0, sizeof(Elf64_Phdr));
    elf_put32(segment + offsetof(Elf64_Phdr, p_type), byte_order, type);
    elf_put32(segment + offsetof(Elf64_Phdr, p_flags), byte_order, flags);
    elf_put64(segment + offsetof(Elf64_Phdr, p_offset), byte_order, file_offset);
    elf_put64(segment + offsetof(Elf64_Phdr, p_vaddr), byte_order, address);
    elf_put64(segment + offsetof(Elf64_Phdr, p_filesz), byte_order, file_bytes);
    sample.size += sizeof(Elf64_Phdr);
}

/* In the layout of lld, the code begins in the same page of the file in which the preceding data
 * ends. */
START_TEST(load_base_is_that_of_the_executable_segment)
{
    static const enum cairn_byte_order byte_orders[] = {CAIRN_LITTLE_ENDIAN, CAIRN_BIG_ENDIAN};
    sample_begin(&sample, EM_PPC64, ET_DYN, byte_orders[_i]);
    sample_finish(&sample);
    add_segment(PT_NOTE, PF_R | PF_X, 0, 0x9000, 0x1000);
    add_segment(PT_LOAD, PF_R, 0, 0x10000, 0x1130);
    add_segment(PT_LOAD, PF_R | PF_X, 0x1130, 0x12130, 0x2000);
    object = sample_open(&sample);
    uint64_t base = 0;
    ck_assert(cairn_object_load_base(object, 0x7f0000012000, 0x1000, 0x3000, &base));
    ck_assert_uint_eq(base, 0x7f0000000000);
    /* The second part of a mapping that was split. */
    ck_assert(cairn_object_load_base(object, 0x7f0000013000, 0x2000, 0x1000, &base));
    ck_assert_uint_eq(base, 0x7f0000000000);
    ck_assert(cairn_object_load_base(object, 0x12000, 0x1000, 0x3000, &base));
    ck_assert_uint_eq(base, 0);
    base = 1;
    ck_assert(!cairn_object_load_base(object, 0x7f0000010000, 0, 0x1000, &base));
    ck_assert(!cairn_object_load_base(object, 0x7f0000020000, 0x3130, 0x1000, &base));
    ck_assert_uint_eq(base, 1);
}
END_TEST

START_TEST(relocatable_objects_have_no_load_base)
{
    uint64_t base;
    sample_relocatable(&sample, EM_X86_64, CAIRN_LITTLE_ENDIAN, R_X86_64_64);
    object = sample_open(&sample);
    ck_assert(!cairn_object_load_base(object, 0, 0, UINT64_MAX, &base));
}
END_TEST

START_TEST(plain_sections_are_not_copied)
{
    sample_executable(&sample, SHT_SYMTAB);
    open_section();
    ck_assert_uint_eq(section.index, sample.stackmaps);
    ck_assert_uint_eq(section.address, 0x2000);
    ck_assert_uint_eq(section.contents.size, WORD_BYTES);
    ck_assert(section.contents.bytes >= sample.bytes);
    ck_assert(section.contents.bytes < sample.bytes + sample.size);
}
END_TEST

/* Adds two sections of one name, the first of which has another type and a link. */
static void add_two_maps(uint32_t *first, uint32_t *second)
{
    struct elf_section map = {.name = ".llvm_bb_addr_map.f",
                              .type = 0x6fff4c0a,
                              .flags = SHF_LINK_ORDER,
                              .link = sample.text,
                              .bytes = "map",
                              .size = 3};
    *first = elf_add(&sample.file, map);
    map.flags = 0;
    map.type = SHT_PROGBITS;
    *second = elf_add(&sample.file, map);
    sample_finish(&sample);
    object = sample_open(&sample);
}

static void expect_next(const struct cairn_object_filter *filter, uint32_t index)
{
    ck_assert_int_eq(cairn_object_next_section(object, filter, &section, &error), CAIRN_OK);
    ck_assert_uint_eq(section.index, index);
}

static void expect_end(const struct cairn_object_filter *filter)
{
    uint32_t last = section.index;
    ck_assert_int_eq(cairn_object_next_section(object, filter, &section, &error),
                     CAIRN_ERROR_NOT_FOUND);
    ck_assert_int_eq(error.status, CAIRN_ERROR_NOT_FOUND);
    ck_assert_uint_eq(section.index, last);
}

START_TEST(sections_are_filtered)
{
    uint32_t first, second;
    sample_begin(&sample, EM_X86_64, ET_REL, CAIRN_LITTLE_ENDIAN);
    add_two_maps(&first, &second);
    const struct cairn_object_filter by_type = {.type = 0x6fff4c0a};
    expect_next(&by_type, first);
    ck_assert_uint_eq(section.type, 0x6fff4c0a);
    ck_assert_uint_eq(section.linked_section, sample.text);
    ck_assert_str_eq(section.name, ".llvm_bb_addr_map.f");
    expect_end(&by_type);

    section = (struct cairn_object_section){0};
    const struct cairn_object_filter by_prefix = {.prefix = ".llvm_bb"};
    expect_next(&by_prefix, first);
    expect_next(&by_prefix, second);
    ck_assert_uint_eq(section.linked_section, 0);
    expect_end(&by_prefix);

    section = (struct cairn_object_section){0};
    const struct cairn_object_filter by_all = {
        .name = ".llvm_bb_addr_map.f", .prefix = ".llvm", .type = SHT_PROGBITS};
    expect_next(&by_all, second);
}
END_TEST

START_TEST(sections_are_in_the_order_of_the_file)
{
    uint32_t first, second;
    const struct cairn_object_filter maps = {.name = ".llvm_bb_addr_map.f"};
    sample_begin(&sample, EM_X86_64, ET_REL, CAIRN_LITTLE_ENDIAN);
    add_two_maps(&first, &second);
    expect_next(&maps, first);
    expect_next(&maps, second);
    ck_assert_uint_eq(section.contents.size, 3);
    expect_end(&maps);
}
END_TEST

static const struct {
    struct cairn_object_filter filter;
    const char *message; /* part of it */
} unmatched[] = {
    {{.name = ".nothing"}, "there is no section '.nothing'"},
    {{.prefix = "sanmd"}, "'sanmd...'"},
    {{.type = 0x1234}, "0x1234"},
};

START_TEST(filters_without_a_match_are_named)
{
    sample_executable(&sample, SHT_SYMTAB);
    object = sample_open(&sample);
    expect_end(&unmatched[_i].filter);
    ck_assert_ptr_nonnull(strstr(error.message, unmatched[_i].message));
}
END_TEST

/* ---- Many sections ---- */

enum { MANY_SECTIONS = 100000 }; /* the number needs more than 16 bits */

static void put_section(uint8_t *at, uint32_t name, uint32_t type, uint64_t offset, uint64_t size)
{
    elf_put32(at + offsetof(Elf64_Shdr, sh_name), CAIRN_LITTLE_ENDIAN, name);
    elf_put32(at + offsetof(Elf64_Shdr, sh_type), CAIRN_LITTLE_ENDIAN, type);
    elf_put64(at + offsetof(Elf64_Shdr, sh_offset), CAIRN_LITTLE_ENDIAN, offset);
    elf_put64(at + offsetof(Elf64_Shdr, sh_size), CAIRN_LITTLE_ENDIAN, size);
}

/* Makes sections of one name and with the same bytes, which also hold the name. */
static uint8_t *make_many(size_t *size)
{
    static const char names[] = "\0.many";
    size_t table = sizeof(Elf64_Ehdr) + sizeof names + 1;
    *size = table + (MANY_SECTIONS + 2) * sizeof(Elf64_Shdr);
    uint8_t *bytes = calloc(*size, 1);
    ck_assert_ptr_nonnull(bytes);
    sample_begin(&sample, EM_X86_64, ET_REL, CAIRN_LITTLE_ENDIAN);
    sample_finish(&sample);
    memcpy(bytes, sample.bytes, sizeof(Elf64_Ehdr));
    memcpy(bytes + sizeof(Elf64_Ehdr), names, sizeof names);
    elf_put64(bytes + offsetof(Elf64_Ehdr, e_shoff), CAIRN_LITTLE_ENDIAN, table);
    elf_put16(bytes + offsetof(Elf64_Ehdr, e_shnum), CAIRN_LITTLE_ENDIAN, 0);
    elf_put16(bytes + offsetof(Elf64_Ehdr, e_shstrndx), CAIRN_LITTLE_ENDIAN, 1);
    put_section(bytes + table, 0, SHT_NULL, 0, MANY_SECTIONS + 2);
    uint8_t *header = bytes + table + sizeof(Elf64_Shdr);
    put_section(header, 0, SHT_STRTAB, sizeof(Elf64_Ehdr), sizeof names);
    for (size_t i = 0; i < MANY_SECTIONS; i++) {
        header += sizeof(Elf64_Shdr);
        put_section(header, 1, SHT_PROGBITS, sizeof(Elf64_Ehdr), sizeof names);
    }
    return bytes;
}

/* If the time were quadratic, the test would reach its time limit. */
START_TEST(many_sections_of_one_name_are_found_in_linear_time)
{
    size_t size;
    size_t count = 0;
    uint8_t *bytes = make_many(&size);
    ck_assert_int_eq(cairn_object_open_memory(bytes, size, NULL, &object, NULL), CAIRN_OK);
    const struct cairn_object_filter many = {.name = ".many"};
    while (cairn_object_next_section(object, &many, &section, NULL) == CAIRN_OK) {
        ck_assert_uint_eq(section.index, count + 2);
        ck_assert_uint_eq(cairn_object_target_section(object, &section, 0), 0);
        ck_assert_uint_eq(cairn_object_function(object, &section, 0).section, 0);
        count++;
    }
    ck_assert_uint_eq(count, MANY_SECTIONS);
    tear_down();
    object = NULL;
    free(bytes);
}
END_TEST

START_TEST(section_outside_the_file_is_truncated)
{
    sample_executable(&sample, SHT_SYMTAB);
    /* The size of section 2, in the table at the end of the file. */
    size_t header =
        sample.size - (sample.file.section_count + 2 - sample.stackmaps) * sizeof(Elf64_Shdr);
    elf_put64(sample.bytes + header + offsetof(Elf64_Shdr, sh_size), CAIRN_LITTLE_ENDIAN,
              sample.size);
    ck_assert_int_eq(try_section(), CAIRN_ERROR_TRUNCATED);
    elf_put64(sample.bytes + header + offsetof(Elf64_Shdr, sh_offset), CAIRN_LITTLE_ENDIAN,
              UINT64_MAX - 7);
    ck_assert_int_eq(try_section(), CAIRN_ERROR_TRUNCATED);
}
END_TEST

START_TEST(section_without_bytes_is_unsupported)
{
    sample_begin(&sample, EM_X86_64, ET_EXEC, CAIRN_LITTLE_ENDIAN);
    sample.file.sections[sample.stackmaps].type = SHT_NOBITS;
    sample_finish(&sample);
    ck_assert_int_eq(try_section(), CAIRN_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "debug file"));
}
END_TEST

/* ---- Compression: zlib's format with a stored block, so that no compressor is needed ---- */

static uint8_t compressed[128];

/* Compresses the sample's stack maps. */
static struct elf_section *compress_section(void)
{
    struct elf_section *added = &sample.file.sections[sample.stackmaps];
    added->flags = SHF_COMPRESSED;
    added->bytes = compressed;
    added->size = sample_compress(sample.words, WORD_BYTES, compressed);
    return added;
}

/* The input is in a read-only mapping, because decompressing must not change it. */
START_TEST(compressed_section_is_decompressed)
{
    sample_relocatable(&sample, EM_X86_64, CAIRN_LITTLE_ENDIAN, R_X86_64_64);
    compress_section();
    sample_finish(&sample);
    uint8_t *mapping;
    uint8_t *bytes = sample_copy_to_guard(sample.bytes, sample.size, &mapping);
    ck_assert_int_eq(mprotect(mapping, 1 << 12, PROT_READ), 0);
    ck_assert_int_eq(cairn_object_open_memory(bytes, sample.size, NULL, &object, NULL), CAIRN_OK);
    section = sample_section(object);
    ck_assert_uint_eq(section.contents.size, WORD_BYTES);
    ck_assert_uint_eq(sample_word(&section, 1), 0x20);
    ck_assert_str_eq(cairn_object_function(object, &section, 8).name, "second");
    tear_down();
    object = NULL;
    sample_drop_guarded(mapping, sample.size);
}
END_TEST

START_TEST(compressed_section_in_the_other_byte_order_is_decompressed)
{
    sample_begin(&sample, EM_S390, ET_EXEC, CAIRN_BIG_ENDIAN);
    for (unsigned i = 0; i < WORD_COUNT; i++)
        sample_set_word(&sample, i, 0x1020 + i);
    compress_section();
    memset(compressed, 0, sizeof(Elf64_Chdr));
    elf_put32(compressed, CAIRN_BIG_ENDIAN, ELFCOMPRESS_ZLIB);
    elf_put64(compressed + 8, CAIRN_BIG_ENDIAN, WORD_BYTES);
    elf_put64(compressed + 16, CAIRN_BIG_ENDIAN, 8);
    sample_finish(&sample);
    object = sample_open(&sample);
    section = sample_section(object);
    ck_assert_uint_eq(section.contents.size, WORD_BYTES);
    ck_assert_uint_eq(sample_word(&section, 2), 0x1022);
}
END_TEST

/* libelf 0.189 and later may support this type, but the bytes after the header are invalid in any
 * case. */
START_TEST(unknown_compression_is_refused)
{
    sample_begin(&sample, EM_X86_64, ET_REL, CAIRN_LITTLE_ENDIAN);
    struct elf_section *added = compress_section();
    elf_put32(compressed, CAIRN_LITTLE_ENDIAN, 2);
    sample_finish(&sample);
    ck_assert_int_eq(try_section(), CAIRN_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "Zstandard"));
    elf_put32(compressed, CAIRN_LITTLE_ENDIAN, 77);
    sample_finish(&sample);
    ck_assert_int_eq(try_section(), CAIRN_ERROR_CORRUPT);
    for (added->size = 0; added->size < sizeof(Elf64_Chdr); added->size++) {
        sample_finish(&sample);
        ck_assert_int_eq(try_section(), CAIRN_ERROR_CORRUPT);
    }
}
END_TEST

START_TEST(damaged_compression_is_corrupt)
{
    sample_begin(&sample, EM_X86_64, ET_REL, CAIRN_LITTLE_ENDIAN);
    compress_section();
    compressed[sizeof(Elf64_Chdr)] = 0xff;
    sample_finish(&sample);
    ck_assert_int_eq(try_section(), CAIRN_ERROR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(error.message, "decompressed"));
}
END_TEST

/* Memory limits that are too small, and the first one that is enough. */
START_TEST(memory_limit_is_respected_and_explained)
{
    sample_relocatable(&sample, EM_X86_64, CAIRN_LITTLE_ENDIAN, R_X86_64_64);
    if (_i == 0)
        compress_section();
    sample_finish(&sample);
    enum cairn_status status = CAIRN_ERROR_MEMORY;
    int explained = 0;
    uint64_t limit;
    for (limit = 1; status == CAIRN_ERROR_MEMORY; limit++) {
        const struct cairn_object_options options = {.memory_limit = limit};
        tear_down();
        set_up();
        status = cairn_object_open_memory(sample.bytes, sample.size, &options, &object, &error);
        if (status == CAIRN_OK)
            status = cairn_object_next_section(object, &stackmaps, &section, &error);
        if (status != CAIRN_ERROR_MEMORY || object == NULL)
            continue;
        const char *needed = strstr(error.message, "may take: ");
        const char *stated = strstr(error.message, "; the limit is ");
        ck_assert_ptr_nonnull(needed);
        ck_assert_ptr_nonnull(stated);
        ck_assert_uint_gt(strtoull(needed + strlen("may take: "), NULL, 10), limit);
        ck_assert_uint_eq(strtoull(stated + strlen("; the limit is "), NULL, 10), limit);
        explained += strstr(error.message, "section '.llvm_stackmaps'") != NULL;
    }
    ck_assert_int_eq(status, CAIRN_OK);
    ck_assert_uint_eq(sample_word(&section, 1), 0x20);
    ck_assert_int_gt(explained, WORD_BYTES);
    ck_assert_uint_lt(limit, CAIRN_OBJECT_MEMORY_BASE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sections of objects");
    TCase *tests = tcase_create("sections");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, load_base_is_that_of_the_executable_segment, 0, 2);
    tcase_add_test(tests, relocatable_objects_have_no_load_base);
    tcase_add_test(tests, plain_sections_are_not_copied);
    tcase_add_test(tests, sections_are_in_the_order_of_the_file);
    tcase_add_test(tests, sections_are_filtered);
    tcase_add_loop_test(tests, filters_without_a_match_are_named, 0, 3);
    tcase_add_test(tests, many_sections_of_one_name_are_found_in_linear_time);
    tcase_add_test(tests, section_outside_the_file_is_truncated);
    tcase_add_test(tests, section_without_bytes_is_unsupported);
    tcase_add_test(tests, compressed_section_is_decompressed);
    tcase_add_loop_test(tests, memory_limit_is_respected_and_explained, 0, 2);
    tcase_add_test(tests, compressed_section_in_the_other_byte_order_is_decompressed);
    tcase_add_test(tests, unknown_compression_is_refused);
    tcase_add_test(tests, damaged_compression_is_corrupt);
    suite_add_tcase(suite, tests);
    return sample_run(suite);
}
