/*
 * Tests of ELF files: written by hand, truncated, and changed at random.
 *
 * SPDX-License-Identifier: MIT
 */
#include "object_sample.h"

#include <cairn/object.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- Opening them ---- */

static enum cairn_status try_memory(const void *bytes, size_t size, struct cairn_error *error)
{
    cairn_object *object = NULL;
    enum cairn_status status = cairn_object_open_memory(bytes, size, NULL, &object, error);
    ck_assert_int_eq(status == CAIRN_OK, object != NULL);
    cairn_object_destroy(object);
    return status;
}

/* Opens the object and returns the status of finding the stack map section. */
static enum cairn_status try_section(const struct sample *sample, struct cairn_error *error)
{
    cairn_object *object = sample_open(sample);
    struct cairn_object_section section = {0};
    enum cairn_status status =
        cairn_object_next_section(object, CAIRN_OBJECT_STACKMAPS, &section, error);
    if (status != CAIRN_OK)
        ck_assert_uint_eq(section.index, 0);
    cairn_object_destroy(object);
    return status;
}

/* ---- Files that are not objects ---- */

START_TEST(arguments_are_checked)
{
    cairn_object *object;
    struct cairn_object_section section = {0};
    ck_assert_int_eq(cairn_object_open(NULL, NULL, &object, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_object_open("/dev/null", NULL, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_object_open_memory(NULL, 1, NULL, &object, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_object_open_memory("", 0, NULL, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_object_next_section(NULL, "", &section, NULL), CAIRN_ERROR_ARGUMENT);
    cairn_object_destroy(NULL);
}
END_TEST

START_TEST(missing_file_and_directory_are_system_errors)
{
    cairn_object *object = NULL;
    struct cairn_error error;
    ck_assert_int_eq(cairn_object_open("/nonexistent/file", NULL, &object, &error),
                     CAIRN_ERROR_SYSTEM);
    ck_assert_int_eq(error.system_error, ENOENT);
    ck_assert_int_eq(cairn_object_open("/", NULL, &object, &error), CAIRN_ERROR_SYSTEM);
    ck_assert_int_eq(error.system_error, EISDIR);
    ck_assert_ptr_null(object);
}
END_TEST

START_TEST(empty_input_is_truncated)
{
    struct cairn_error error;
    cairn_object *object = NULL;
    char path[] = "/tmp/check_object.XXXXXX";
    close(mkstemp(path));
    ck_assert_int_eq(cairn_object_open(path, NULL, &object, &error), CAIRN_ERROR_TRUNCATED);
    ck_assert_str_eq(error.message, "the file is empty");
    unlink(path);
    ck_assert_int_eq(try_memory(NULL, 0, &error), CAIRN_ERROR_TRUNCATED);
    ck_assert_str_eq(error.message, "the file is empty");
    ck_assert_ptr_null(object);
}
END_TEST

START_TEST(text_is_corrupt)
{
    struct cairn_error error;
    ck_assert_int_eq(try_memory("hello, this is text", 19, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_int_eq(try_memory("\177E", 2, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_str_eq(error.message, "this is not an ELF file");
}
END_TEST

START_TEST(archive_is_unsupported)
{
    struct cairn_error error;
    ck_assert_int_eq(try_memory("!<arch>\nfile", 12, &error), CAIRN_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "archive"));
}
END_TEST

START_TEST(narrow_elf_is_unsupported)
{
    static struct sample sample;
    struct cairn_error error;
    sample_executable(&sample, SHT_SYMTAB);
    sample.bytes[EI_CLASS] = ELFCLASS32;
    ck_assert_int_eq(try_memory(sample.bytes, sample.size, &error), CAIRN_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "32-bit"));
}
END_TEST

START_TEST(impossible_class_and_byte_order_are_corrupt)
{
    static struct sample sample;
    struct cairn_error error;
    sample_executable(&sample, SHT_SYMTAB);
    sample.bytes[EI_DATA] = 7;
    ck_assert_int_eq(try_memory(sample.bytes, sample.size, &error), CAIRN_ERROR_CORRUPT);
    sample.bytes[EI_DATA] = ELFDATA2LSB;
    sample.bytes[EI_CLASS] = 9;
    ck_assert_int_eq(try_memory(sample.bytes, sample.size, &error), CAIRN_ERROR_CORRUPT);
}
END_TEST

/* ---- Properties of an object ---- */

static const struct {
    uint16_t machine;
    enum cairn_byte_order byte_order;
    uint32_t flags;
    enum cairn_architecture architecture;
} machines[] = {
    {EM_X86_64, CAIRN_LITTLE_ENDIAN, 0, CAIRN_ARCHITECTURE_X86_64},
    {EM_AARCH64, CAIRN_LITTLE_ENDIAN, 0, CAIRN_ARCHITECTURE_AARCH64},
    {EM_PPC64, CAIRN_LITTLE_ENDIAN, 2, CAIRN_ARCHITECTURE_PPC64_ELFV2},
    {EM_PPC64, CAIRN_LITTLE_ENDIAN, 0, CAIRN_ARCHITECTURE_PPC64_ELFV2},
    {EM_PPC64, CAIRN_BIG_ENDIAN, 0, CAIRN_ARCHITECTURE_PPC64_ELFV1},
    {EM_PPC64, CAIRN_BIG_ENDIAN, 1, CAIRN_ARCHITECTURE_PPC64_ELFV1},
    {EM_PPC64, CAIRN_BIG_ENDIAN, 2, CAIRN_ARCHITECTURE_PPC64_ELFV2},
    {EM_S390, CAIRN_BIG_ENDIAN, 0, CAIRN_ARCHITECTURE_SYSTEMZ},
    {EM_RISCV, CAIRN_LITTLE_ENDIAN, 5, CAIRN_ARCHITECTURE_RISCV64},
    {EM_MIPS, CAIRN_BIG_ENDIAN, 0, CAIRN_ARCHITECTURE_UNKNOWN},
};

START_TEST(architecture_is_read_from_machine_and_flags)
{
    static struct sample sample;
    sample_begin(&sample, machines[_i].machine, ET_REL, machines[_i].byte_order);
    sample.file.flags = machines[_i].flags;
    sample_finish(&sample);
    cairn_object *object = sample_open(&sample);
    ck_assert_int_eq(cairn_object_architecture(object), machines[_i].architecture);
    ck_assert_int_eq(cairn_object_byte_order(object), machines[_i].byte_order);
    ck_assert(cairn_object_is_relocatable(object));
    cairn_object_destroy(object);
}
END_TEST

START_TEST(file_reads_like_memory)
{
    static struct sample sample;
    char path[] = "/tmp/check_object.XXXXXX";
    sample_executable(&sample, SHT_SYMTAB);
    int file = mkstemp(path);
    ck_assert_int_eq(write(file, sample.bytes, sample.size), (ssize_t)sample.size);
    close(file);
    cairn_object *object;
    struct cairn_error error;
    if (cairn_object_open(path, NULL, &object, &error) != CAIRN_OK)
        ck_abort_msg("%s", error.message);
    struct cairn_object_section section = sample_section(object);
    ck_assert_str_eq(cairn_object_function(object, &section, 8).name, "second");
    cairn_object_destroy(object);
    unlink(path);
}
END_TEST

/* Opening a FIFO without a writer does not block, either. */
START_TEST(only_regular_files_are_opened)
{
    char folder[] = "/tmp/check_object.XXXXXX";
    char fifo[64];
    char pipe_path[64];
    int pipe_ends[2];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    ck_assert_int_eq(pipe(pipe_ends), 0);
    snprintf(pipe_path, sizeof pipe_path, "/proc/self/fd/%d", pipe_ends[0]);
    const char *const paths[] = {fifo, pipe_path, "/dev/zero", "/dev/null"};
    for (size_t i = 0; i < 4; i++) {
        cairn_object *object = NULL;
        struct cairn_error error;
        ck_assert_int_eq(cairn_object_open(paths[i], NULL, &object, &error),
                         CAIRN_ERROR_UNSUPPORTED);
        ck_assert_str_eq(error.message, "this is not a regular file");
        ck_assert_ptr_null(object);
    }
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    unlink(fifo);
    rmdir(folder);
}
END_TEST

/* ---- Files that change ---- */

enum { FAR_BYTES = 1 << 20 };

/* Writes a file whose stack maps are FAR_BYTES zeros at byte FAR_BYTES. */
static int write_far_section(char *path)
{
    static struct sample sample;
    static uint8_t zeros[FAR_BYTES];
    sample_executable(&sample, SHT_SYMTAB);
    uint64_t table =
        cairn_load_u64(sample.bytes + offsetof(Elf64_Ehdr, e_shoff), sample.file.byte_order);
    uint8_t *header = sample.bytes + table + sample.stackmaps * sizeof(Elf64_Shdr);
    elf_put64(header + offsetof(Elf64_Shdr, sh_offset), sample.file.byte_order, FAR_BYTES);
    elf_put64(header + offsetof(Elf64_Shdr, sh_size), sample.file.byte_order, FAR_BYTES);
    int file = mkstemp(path);
    ck_assert_int_eq(write(file, sample.bytes, sample.size), (ssize_t)sample.size);
    ck_assert_int_eq(pwrite(file, zeros, FAR_BYTES, FAR_BYTES), FAR_BYTES);
    return file;
}

/* A mapping of the file would raise SIGBUS. */
START_TEST(file_that_becomes_shorter_raises_no_signal)
{
    char path[] = "/tmp/check_object.XXXXXX";
    int file = write_far_section(path);
    cairn_object *object;
    struct cairn_error error;
    struct cairn_object_section section = {0};
    ck_assert_int_eq(cairn_object_open(path, NULL, &object, NULL), CAIRN_OK);
    ck_assert_int_eq(ftruncate(file, FAR_BYTES + FAR_BYTES / 2), 0);
    ck_assert_int_eq(cairn_object_next_section(object, CAIRN_OBJECT_STACKMAPS, &section, &error),
                     CAIRN_ERROR_TRUNCATED);
    ck_assert_str_eq(error.message, "the file has become shorter since it was opened: it had "
                                    "2097152 bytes, and has 1572864");
    cairn_object_destroy(object);
    close(file);
    unlink(path);
}
END_TEST

START_TEST(bytes_that_were_handed_out_never_change)
{
    char path[] = "/tmp/check_object.XXXXXX";
    int file = write_far_section(path);
    cairn_object *object;
    struct cairn_object_section section = {0};
    ck_assert_int_eq(cairn_object_open(path, NULL, &object, NULL), CAIRN_OK);
    ck_assert_int_eq(cairn_object_next_section(object, CAIRN_OBJECT_STACKMAPS, &section, NULL),
                     CAIRN_OK);
    ck_assert_int_eq(pwrite(file, "changed", 7, FAR_BYTES), 7);
    ck_assert_int_eq(ftruncate(file, FAR_BYTES + 7), 0);
    for (size_t i = 0; i < FAR_BYTES; i++)
        if (section.contents.bytes[i] != 0)
            ck_abort_msg("byte %zu has changed", i);
    cairn_object_destroy(object);
    close(file);
    unlink(path);
}
END_TEST

/* ---- Sections ---- */

START_TEST(missing_section_is_not_found)
{
    static struct sample sample;
    struct cairn_error error;
    sample_executable(&sample, SHT_SYMTAB);
    cairn_object *object = sample_open(&sample);
    struct cairn_object_section section = {0};
    ck_assert_int_eq(cairn_object_next_section(object, ".nothing", &section, &error),
                     CAIRN_ERROR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(error.message, ".nothing"));
    ck_assert_uint_eq(section.index, 0);
    cairn_object_destroy(object);
}
END_TEST

/* Moves a program header past the end of the file. */
static void add_segment(struct sample *sample, uint32_t type, uint32_t flags, uint64_t file_offset,
                        uint64_t address, uint64_t file_bytes)
{
    enum cairn_byte_order byte_order = sample->file.byte_order;
    uint8_t *count = sample->bytes + offsetof(Elf64_Ehdr, e_phnum);
    if (cairn_load_u16(count, byte_order) == 0) {
        sample->size = (sample->size + 7) & ~(size_t)7;
        elf_put64(sample->bytes + offsetof(Elf64_Ehdr, e_phoff), byte_order, sample->size);
        elf_put16(sample->bytes + offsetof(Elf64_Ehdr, e_phentsize), byte_order,
                  sizeof(Elf64_Phdr));
    }
    elf_put16(count, byte_order, (uint16_t)(cairn_load_u16(count, byte_order) + 1));
    uint8_t *segment = sample->bytes + sample->size;
    memset(segment, 0, sizeof(Elf64_Phdr));
    elf_put32(segment + offsetof(Elf64_Phdr, p_type), byte_order, type);
    elf_put32(segment + offsetof(Elf64_Phdr, p_flags), byte_order, flags);
    elf_put64(segment + offsetof(Elf64_Phdr, p_offset), byte_order, file_offset);
    elf_put64(segment + offsetof(Elf64_Phdr, p_vaddr), byte_order, address);
    elf_put64(segment + offsetof(Elf64_Phdr, p_filesz), byte_order, file_bytes);
    sample->size += sizeof(Elf64_Phdr);
}

/* In the layout of lld, the code begins in the same page of the file in which the preceding data
 * ends. */
START_TEST(load_base_is_that_of_the_executable_segment)
{
    static struct sample sample;
    static const enum cairn_byte_order byte_orders[] = {CAIRN_LITTLE_ENDIAN, CAIRN_BIG_ENDIAN};
    sample_begin(&sample, EM_PPC64, ET_DYN, byte_orders[_i]);
    sample_finish(&sample);
    add_segment(&sample, PT_NOTE, PF_R | PF_X, 0, 0x9000, 0x1000);
    add_segment(&sample, PT_LOAD, PF_R, 0, 0x10000, 0x1130);
    add_segment(&sample, PT_LOAD, PF_R | PF_X, 0x1130, 0x12130, 0x2000);
    cairn_object *object = sample_open(&sample);
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
    cairn_object_destroy(object);
}
END_TEST

START_TEST(relocatable_objects_have_no_load_base)
{
    static struct sample sample;
    uint64_t base;
    sample_relocatable(&sample, EM_X86_64, CAIRN_LITTLE_ENDIAN, R_X86_64_64);
    cairn_object *object = sample_open(&sample);
    ck_assert(!cairn_object_load_base(object, 0, 0, UINT64_MAX, &base));
    cairn_object_destroy(object);
}
END_TEST

START_TEST(plain_section_is_the_inputs_own_bytes)
{
    static struct sample sample;
    sample_executable(&sample, SHT_SYMTAB);
    cairn_object *object = sample_open(&sample);
    struct cairn_object_section section = sample_section(object);
    ck_assert_uint_eq(section.index, sample.stackmaps);
    ck_assert_uint_eq(section.address, 0x2000);
    ck_assert_uint_eq(section.contents.size, WORD_BYTES);
    ck_assert(section.contents.bytes >= sample.bytes);
    ck_assert(section.contents.bytes < sample.bytes + sample.size);
    cairn_object_destroy(object);
}
END_TEST

START_TEST(sections_of_one_name_come_in_order)
{
    static struct sample sample;
    static const uint8_t second_bytes[] = {1, 2, 3};
    sample_begin(&sample, EM_X86_64, ET_REL, CAIRN_LITTLE_ENDIAN);
    uint32_t second = elf_add(&sample.file, (struct elf_section){.name = ".llvm_stackmaps",
                                                                 .type = SHT_PROGBITS,
                                                                 .bytes = second_bytes,
                                                                 .size = sizeof second_bytes});
    sample_finish(&sample);
    cairn_object *object = sample_open(&sample);
    struct cairn_object_section section = sample_section(object);
    struct cairn_error error;
    ck_assert_uint_eq(section.index, sample.stackmaps);
    ck_assert_int_eq(cairn_object_next_section(object, CAIRN_OBJECT_STACKMAPS, &section, &error),
                     CAIRN_OK);
    ck_assert_uint_eq(section.index, second);
    ck_assert_uint_eq(section.contents.size, sizeof second_bytes);
    ck_assert_int_eq(cairn_object_next_section(object, CAIRN_OBJECT_STACKMAPS, &section, &error),
                     CAIRN_ERROR_NOT_FOUND);
    ck_assert_uint_eq(section.index, second);
    cairn_object_destroy(object);
}
END_TEST

static enum cairn_status next_matching(cairn_object *object,
                                       const struct cairn_object_filter *filter,
                                       struct cairn_object_section *section)
{
    struct cairn_error error;
    enum cairn_status status = cairn_object_next_matching(object, filter, section, &error);
    ck_assert(status == CAIRN_OK || error.status == status);
    return status;
}

START_TEST(sections_are_filtered_by_name_prefix_and_type)
{
    static struct sample sample;
    sample_begin(&sample, EM_X86_64, ET_REL, CAIRN_LITTLE_ENDIAN);
    static const uint8_t bytes[] = {1, 2, 3};
    struct elf_section map = {.name = ".llvm_bb_addr_map.f",
                              .type = 0x6fff4c0a,
                              .flags = SHF_LINK_ORDER,
                              .link = sample.text,
                              .bytes = bytes,
                              .size = sizeof bytes};
    uint32_t first = elf_add(&sample.file, map);
    map.flags = 0;
    map.type = SHT_PROGBITS;
    uint32_t second = elf_add(&sample.file, map);
    sample_finish(&sample);
    cairn_object *object = sample_open(&sample);

    struct cairn_object_section section = {0};
    const struct cairn_object_filter by_type = {.type = 0x6fff4c0a};
    ck_assert_int_eq(next_matching(object, &by_type, &section), CAIRN_OK);
    ck_assert_uint_eq(section.index, first);
    ck_assert_uint_eq(section.type, 0x6fff4c0a);
    ck_assert_uint_eq(section.linked_section, sample.text);
    ck_assert_str_eq(section.name, map.name);
    ck_assert_int_eq(next_matching(object, &by_type, &section), CAIRN_ERROR_NOT_FOUND);
    ck_assert_uint_eq(section.index, first);

    section = (struct cairn_object_section){0};
    const struct cairn_object_filter by_prefix = {.prefix = ".llvm_bb"};
    ck_assert_int_eq(next_matching(object, &by_prefix, &section), CAIRN_OK);
    ck_assert_uint_eq(section.index, first);
    ck_assert_int_eq(next_matching(object, &by_prefix, &section), CAIRN_OK);
    ck_assert_uint_eq(section.index, second);
    ck_assert_uint_eq(section.linked_section, 0);
    ck_assert_int_eq(next_matching(object, &by_prefix, &section), CAIRN_ERROR_NOT_FOUND);

    section = (struct cairn_object_section){0};
    const struct cairn_object_filter by_all = {
        .name = map.name, .prefix = ".llvm", .type = SHT_PROGBITS};
    ck_assert_int_eq(next_matching(object, &by_all, &section), CAIRN_OK);
    ck_assert_uint_eq(section.index, second);
    cairn_object_destroy(object);
}
END_TEST

START_TEST(filters_that_match_nothing_are_named)
{
    static struct sample sample;
    struct cairn_error error;
    struct cairn_object_section section = {0};
    sample_executable(&sample, SHT_SYMTAB);
    cairn_object *object = sample_open(&sample);
    ck_assert_int_eq(cairn_object_next_matching(object,
                                                &(struct cairn_object_filter){.prefix = "sanmd"},
                                                &section, &error),
                     CAIRN_ERROR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(error.message, "'sanmd...'"));
    ck_assert_int_eq(cairn_object_next_matching(
                         object, &(struct cairn_object_filter){.type = 0x1234}, &section, &error),
                     CAIRN_ERROR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(error.message, "0x1234"));
    ck_assert_int_eq(cairn_object_next_matching(object, NULL, &section, &error),
                     CAIRN_ERROR_ARGUMENT);
    cairn_object_destroy(object);
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
    static struct sample sample;
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
    cairn_object *object;
    ck_assert_int_eq(cairn_object_open_memory(bytes, size, NULL, &object, NULL), CAIRN_OK);
    struct cairn_object_section section = {0};
    while (cairn_object_next_section(object, ".many", &section, NULL) == CAIRN_OK) {
        ck_assert_uint_eq(section.index, count + 2);
        ck_assert_uint_eq(cairn_object_target_section(object, &section, 0), 0);
        ck_assert_uint_eq(cairn_object_function(object, &section, 0).section, 0);
        count++;
    }
    ck_assert_uint_eq(count, MANY_SECTIONS);
    cairn_object_destroy(object);
    free(bytes);
}
END_TEST

START_TEST(section_outside_the_file_is_truncated)
{
    static struct sample sample;
    struct cairn_error error;
    sample_executable(&sample, SHT_SYMTAB);
    /* The size of section 2, in the table at the end of the file. */
    size_t header =
        sample.size - (sample.file.section_count + 2 - sample.stackmaps) * sizeof(Elf64_Shdr);
    elf_put64(sample.bytes + header + offsetof(Elf64_Shdr, sh_size), CAIRN_LITTLE_ENDIAN,
              sample.size);
    ck_assert_int_eq(try_section(&sample, &error), CAIRN_ERROR_TRUNCATED);
    elf_put64(sample.bytes + header + offsetof(Elf64_Shdr, sh_offset), CAIRN_LITTLE_ENDIAN,
              UINT64_MAX - 7);
    ck_assert_int_eq(try_section(&sample, &error), CAIRN_ERROR_TRUNCATED);
}
END_TEST

START_TEST(section_without_bytes_is_unsupported)
{
    static struct sample sample;
    struct cairn_error error;
    sample_begin(&sample, EM_X86_64, ET_EXEC, CAIRN_LITTLE_ENDIAN);
    sample.file.sections[sample.stackmaps].type = SHT_NOBITS;
    sample_finish(&sample);
    ck_assert_int_eq(try_section(&sample, &error), CAIRN_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "debug file"));
}
END_TEST

/* ---- Compression: zlib's format with a stored block, so that no compressor is needed ---- */

/* Compresses the sample's stack maps to `compressed`, which has space for 128 bytes. */
static struct elf_section *compress_section(struct sample *sample, uint8_t *compressed)
{
    struct elf_section *section = &sample->file.sections[sample->stackmaps];
    section->flags = SHF_COMPRESSED;
    section->bytes = compressed;
    section->size = sample_compress(sample->words, WORD_BYTES, compressed);
    return section;
}

/* The input is in a read-only mapping, because decompressing must not change it. */
START_TEST(compressed_section_is_decompressed)
{
    static struct sample sample;
    uint8_t compressed[128];
    sample_relocatable(&sample, EM_X86_64, CAIRN_LITTLE_ENDIAN, R_X86_64_64);
    compress_section(&sample, compressed);
    sample_finish(&sample);
    uint8_t *mapping;
    uint8_t *bytes = sample_copy_to_guard(sample.bytes, sample.size, &mapping);
    ck_assert_int_eq(mprotect(mapping, 1 << 12, PROT_READ), 0);
    cairn_object *object;
    ck_assert_int_eq(cairn_object_open_memory(bytes, sample.size, NULL, &object, NULL), CAIRN_OK);
    struct cairn_object_section found = sample_section(object);
    ck_assert_uint_eq(found.contents.size, WORD_BYTES);
    ck_assert_uint_eq(sample_word(&found, 1), 0x20);
    ck_assert_str_eq(cairn_object_function(object, &found, 8).name, "second");
    cairn_object_destroy(object);
    sample_drop_guarded(mapping, sample.size);
}
END_TEST

/* Memory limits that are too small, and the first one that is enough. */
START_TEST(memory_limit_is_kept_and_explained)
{
    static struct sample sample;
    uint8_t compressed[128];
    sample_relocatable(&sample, EM_X86_64, CAIRN_LITTLE_ENDIAN, R_X86_64_64);
    if (_i == 0)
        compress_section(&sample, compressed);
    sample_finish(&sample);
    enum cairn_status status = CAIRN_ERROR_MEMORY;
    int explained = 0;
    uint64_t limit;
    for (limit = 1; status == CAIRN_ERROR_MEMORY; limit++) {
        const struct cairn_object_options options = {.memory_limit = limit};
        struct cairn_object_section section = {0};
        struct cairn_error error;
        cairn_object *object = NULL;
        status = cairn_object_open_memory(sample.bytes, sample.size, &options, &object, &error);
        if (status == CAIRN_OK)
            status = cairn_object_next_section(object, CAIRN_OBJECT_STACKMAPS, &section, &error);
        if (status == CAIRN_ERROR_MEMORY && object != NULL) {
            const char *numbers = strstr(error.message, "may take: ");
            ck_assert_ptr_nonnull(numbers);
            char *rest;
            const unsigned long long needed = strtoull(numbers + strlen("may take: "), &rest, 10);
            static const char between[] = " bytes with what is used already; the limit is ";
            ck_assert_int_eq(strncmp(rest, between, strlen(between)), 0);
            const unsigned long long said = strtoull(rest + strlen(between), NULL, 10);
            ck_assert_uint_gt(needed, limit);
            ck_assert_uint_eq(said, limit);
            explained += strstr(error.message, "section '.llvm_stackmaps'") != NULL;
        }
        if (status == CAIRN_OK)
            ck_assert_uint_eq(sample_word(&section, 1), 0x20);
        cairn_object_destroy(object);
    }
    ck_assert_int_eq(status, CAIRN_OK);
    ck_assert_int_gt(explained, WORD_BYTES);
    ck_assert_uint_lt(limit, CAIRN_OBJECT_MEMORY_BASE);
}
END_TEST

START_TEST(compressed_section_in_the_other_byte_order_is_decompressed)
{
    static struct sample sample;
    uint8_t compressed[128];
    sample_begin(&sample, EM_S390, ET_EXEC, CAIRN_BIG_ENDIAN);
    for (unsigned i = 0; i < WORD_COUNT; i++)
        sample_set_word(&sample, i, 0x1020 + i);
    compress_section(&sample, compressed);
    memset(compressed, 0, sizeof(Elf64_Chdr));
    elf_put32(compressed, CAIRN_BIG_ENDIAN, ELFCOMPRESS_ZLIB);
    elf_put64(compressed + 8, CAIRN_BIG_ENDIAN, WORD_BYTES);
    elf_put64(compressed + 16, CAIRN_BIG_ENDIAN, 8);
    sample_finish(&sample);
    cairn_object *object = sample_open(&sample);
    struct cairn_object_section found = sample_section(object);
    ck_assert_uint_eq(found.contents.size, WORD_BYTES);
    ck_assert_uint_eq(sample_word(&found, 2), 0x1022);
    cairn_object_destroy(object);
}
END_TEST

/* libelf 0.189 and later may support this type, but the bytes after the header are invalid in any
 * case. */
START_TEST(unknown_compression_is_refused)
{
    static struct sample sample;
    uint8_t compressed[128];
    struct cairn_error error;
    sample_begin(&sample, EM_X86_64, ET_REL, CAIRN_LITTLE_ENDIAN);
    struct elf_section *section = compress_section(&sample, compressed);
    elf_put32(compressed, CAIRN_LITTLE_ENDIAN, 2);
    sample_finish(&sample);
    ck_assert_int_eq(try_section(&sample, &error), CAIRN_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "Zstandard"));
    elf_put32(compressed, CAIRN_LITTLE_ENDIAN, 77);
    sample_finish(&sample);
    ck_assert_int_eq(try_section(&sample, &error), CAIRN_ERROR_CORRUPT);
    for (section->size = 0; section->size < sizeof(Elf64_Chdr); section->size++) {
        sample_finish(&sample);
        ck_assert_int_eq(try_section(&sample, &error), CAIRN_ERROR_CORRUPT);
    }
}
END_TEST

START_TEST(damaged_compression_is_corrupt)
{
    static struct sample sample;
    uint8_t compressed[128];
    struct cairn_error error;
    sample_begin(&sample, EM_X86_64, ET_REL, CAIRN_LITTLE_ENDIAN);
    compress_section(&sample, compressed);
    compressed[sizeof(Elf64_Chdr)] = 0xff;
    sample_finish(&sample);
    ck_assert_int_eq(try_section(&sample, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(error.message, "decompressed"));
}
END_TEST

/* ---- Relocations and names ---- */

static const struct {
    uint16_t machine;
    enum cairn_byte_order byte_order;
    uint32_t type;
    uint32_t relative_type;
} address_relocations[] = {
    {EM_X86_64, CAIRN_LITTLE_ENDIAN, R_X86_64_64, R_X86_64_RELATIVE},
    {EM_AARCH64, CAIRN_LITTLE_ENDIAN, R_AARCH64_ABS64, R_AARCH64_RELATIVE},
    {EM_PPC64, CAIRN_LITTLE_ENDIAN, R_PPC64_ADDR64, R_PPC64_RELATIVE},
    {EM_PPC64, CAIRN_BIG_ENDIAN, R_PPC64_ADDR64, R_PPC64_RELATIVE},
    {EM_S390, CAIRN_BIG_ENDIAN, R_390_64, R_390_RELATIVE},
    {EM_RISCV, CAIRN_LITTLE_ENDIAN, R_RISCV_64, R_RISCV_RELATIVE},
};
enum { ADDRESS_RELOCATION_COUNT = sizeof address_relocations / sizeof *address_relocations };

START_TEST(relocatable_addresses_are_named_by_their_symbols)
{
    static struct sample sample;
    static uint8_t before[ELF_BYTES_MAX];
    sample_relocatable(&sample, address_relocations[_i].machine, address_relocations[_i].byte_order,
                       address_relocations[_i].type);
    memcpy(before, sample.bytes, sample.size);
    cairn_object *object = sample_open(&sample);
    struct cairn_object_section section = sample_section(object);
    ck_assert_uint_eq(sample_word(&section, 0), 0x10);
    ck_assert_uint_eq(sample_word(&section, 1), 0x20);
    ck_assert_uint_eq(sample_word(&section, 2), 0);
    ck_assert_str_eq(cairn_object_function(object, &section, 0).name, "first");
    ck_assert_str_eq(cairn_object_function(object, &section, 8).name, "second");
    ck_assert_uint_eq(cairn_object_function(object, &section, 8).entry, 0x20);
    ck_assert_ptr_null(cairn_object_function(object, &section, 16).name);
    cairn_object_destroy(object);
    ck_assert_mem_eq(before, sample.bytes, sample.size);
}
END_TEST

START_TEST(asking_twice_relocates_once)
{
    static struct sample sample;
    sample_begin(&sample, EM_RISCV, ET_REL, CAIRN_LITTLE_ENDIAN);
    sample_set_word(&sample, 0, 100);
    sample_add_symbol(&sample, NAME_FIRST, STB_LOCAL, STT_NOTYPE, sample.text, 0x30);
    sample_add_symbol(&sample, NAME_SECOND, STB_LOCAL, STT_NOTYPE, sample.text, 0x10);
    sample_add_rela(&sample, 0, 1, R_RISCV_ADD32, 2);
    sample_add_rela(&sample, 0, 2, R_RISCV_SUB32, 0);
    sample_add_rela(&sample, 8, 1, R_RISCV_ADD64, 0);
    sample_add_rela(&sample, 8, 2, R_RISCV_SUB64, 0);
    sample_add_symbol_section(&sample, SHT_SYMTAB);
    sample_add_relocation_section(&sample, SHT_RELA, 0, sample.stackmaps);
    sample_finish(&sample);
    cairn_object *object = sample_open(&sample);
    for (int i = 0; i < 2; i++) {
        struct cairn_object_section section = sample_section(object);
        ck_assert_uint_eq(sample_word(&section, 0), 100 + 0x32 - 0x10);
        ck_assert_uint_eq(sample_word(&section, 1), 0x20);
    }
    cairn_object_destroy(object);
}
END_TEST

START_TEST(relocations_without_addends_use_what_stands_there)
{
    static struct sample sample;
    sample_begin(&sample, EM_S390, ET_REL, CAIRN_BIG_ENDIAN);
    sample_set_word(&sample, 0, 0x20);
    sample_add_symbol(&sample, 0, STB_LOCAL, STT_SECTION, sample.text, 0);
    sample_add_symbol(&sample, NAME_SECOND, STB_LOCAL, STT_FUNC, sample.text, 0x20);
    sample.relocations_end = elf_put_rel(sample.relocations_end, CAIRN_BIG_ENDIAN, 0, 1, R_390_64);
    sample_add_symbol_section(&sample, SHT_SYMTAB);
    sample_add_relocation_section(&sample, SHT_REL, 0, sample.stackmaps);
    sample_finish(&sample);
    cairn_object *object = sample_open(&sample);
    struct cairn_object_section section = sample_section(object);
    ck_assert_uint_eq(sample_word(&section, 0), 0x20);
    ck_assert_str_eq(cairn_object_function(object, &section, 0).name, "second");
    cairn_object_destroy(object);
}
END_TEST

START_TEST(address_that_another_relocation_has_changed_is_what_the_section_holds)
{
    static struct sample sample;
    sample_begin(&sample, EM_X86_64, ET_REL, CAIRN_LITTLE_ENDIAN);
    sample_add_symbol(&sample, NAME_FIRST, STB_LOCAL, STT_FUNC, sample.text, 0x10);
    sample_add_rela(&sample, 0, 1, R_X86_64_64, 0);
    sample_add_rela(&sample, 2, 0, R_X86_64_32, 0x77);
    sample_add_rela(&sample, 8, 1, R_X86_64_64, 0);
    sample_add_rela(&sample, 12, 0, R_X86_64_32, 0);
    sample_add_symbol_section(&sample, SHT_SYMTAB);
    sample_add_relocation_section(&sample, SHT_RELA, 0, sample.stackmaps);
    sample_finish(&sample);
    cairn_object *object = sample_open(&sample);
    struct cairn_object_section section = sample_section(object);
    ck_assert_uint_eq(sample_word(&section, 0), 0x770010);
    ck_assert_uint_eq(cairn_object_function(object, &section, 0).entry, 0x770010);
    ck_assert_ptr_null(cairn_object_function(object, &section, 0).name);
    ck_assert_str_eq(cairn_object_function(object, &section, 8).name, "first");
    cairn_object_destroy(object);
}
END_TEST

START_TEST(undefined_symbol_still_names_its_address)
{
    static struct sample sample;
    sample_begin(&sample, EM_X86_64, ET_REL, CAIRN_LITTLE_ENDIAN);
    sample_add_symbol(&sample, NAME_FIRST, STB_GLOBAL, STT_NOTYPE, SHN_UNDEF, 0);
    sample_add_rela(&sample, 0, 1, R_X86_64_64, 0);
    sample_add_symbol_section(&sample, SHT_SYMTAB);
    sample_add_relocation_section(&sample, SHT_RELA, 0, sample.stackmaps);
    sample_finish(&sample);
    cairn_object *object = sample_open(&sample);
    struct cairn_object_section section = sample_section(object);
    ck_assert_str_eq(cairn_object_function(object, &section, 0).name, "first");
    cairn_object_destroy(object);
}
END_TEST

START_TEST(dynamic_relocations_are_applied)
{
    static struct sample sample;
    sample_begin(&sample, address_relocations[_i].machine, ET_DYN,
                 address_relocations[_i].byte_order);
    sample.file.flags = 2; /* so that PPC64 has no descriptors */
    sample_add_symbol(&sample, NAME_FIRST, STB_GLOBAL, STT_FUNC, sample.text, 0x1010);
    sample_add_symbol(&sample, NAME_SECOND, STB_GLOBAL, STT_FUNC, sample.text, 0x1020);
    sample_add_rela(&sample, 0x2000, 0, address_relocations[_i].relative_type, 0x1010);
    sample_add_rela(&sample, 0x2008, 2, address_relocations[_i].type, 0);
    sample_add_rela(&sample, 0x5000, 0, 12345, 0); /* outside of the section: must be ignored */
    sample_add_symbol_section(&sample, SHT_DYNSYM);
    sample_add_relocation_section(&sample, SHT_RELA, SHF_ALLOC, 0);
    sample_finish(&sample);
    cairn_object *object = sample_open(&sample);
    struct cairn_object_section section = sample_section(object);
    ck_assert_uint_eq(sample_word(&section, 0), 0x1010);
    ck_assert_uint_eq(sample_word(&section, 1), 0x1020);
    ck_assert_str_eq(cairn_object_function(object, &section, 0).name, "first");
    ck_assert_str_eq(cairn_object_function(object, &section, 8).name, "second");
    cairn_object_destroy(object);
}
END_TEST

START_TEST(relocations_that_a_linker_kept_are_left_alone)
{
    static struct sample sample;
    sample_begin(&sample, EM_X86_64, ET_EXEC, CAIRN_LITTLE_ENDIAN);
    sample_set_word(&sample, 0, 0x1010);
    sample_add_symbol(&sample, NAME_FIRST, STB_GLOBAL, STT_FUNC, sample.text, 0x1010);
    sample_add_rela(&sample, 0x2000, 1, R_X86_64_64, 0x77);
    sample_add_symbol_section(&sample, SHT_SYMTAB);
    sample_add_relocation_section(&sample, SHT_RELA, 0, sample.stackmaps);
    sample_finish(&sample);
    cairn_object *object = sample_open(&sample);
    struct cairn_object_section section = sample_section(object);
    ck_assert_uint_eq(sample_word(&section, 0), 0x1010);
    cairn_object_destroy(object);
}
END_TEST

START_TEST(linked_addresses_are_named_by_the_symbol_table)
{
    static struct sample sample;
    sample_executable(&sample, _i == 0 ? SHT_SYMTAB : SHT_DYNSYM);
    cairn_object *object = sample_open(&sample);
    struct cairn_object_section section = sample_section(object);
    ck_assert(!cairn_object_is_relocatable(object));
    ck_assert_str_eq(cairn_object_function(object, &section, 0).name, "first");
    ck_assert_str_eq(cairn_object_function(object, &section, 8).name, "second");
    /* One byte past the beginning of a function is not its beginning. */
    ck_assert_ptr_null(cairn_object_function(object, &section, 16).name);
    ck_assert_uint_eq(cairn_object_function(object, &section, 16).entry, 0x1011);
    ck_assert_ptr_null(cairn_object_function(object, &section, 17).name);
    ck_assert_uint_eq(cairn_object_function(object, &section, SIZE_MAX).entry, 0);
    cairn_object_destroy(object);
}
END_TEST

START_TEST(global_functions_are_preferred_over_other_names)
{
    static struct sample sample;
    sample_begin(&sample, EM_X86_64, ET_EXEC, CAIRN_LITTLE_ENDIAN);
    sample_set_word(&sample, 0, 0x1010);
    sample_add_symbol(&sample, NAME_LOCAL, STB_LOCAL, STT_FUNC, sample.text, 0x1010);
    sample_add_symbol(&sample, NAME_SECOND, STB_GLOBAL, STT_NOTYPE, sample.text, 0x1010);
    sample_add_symbol(&sample, NAME_SECOND, STB_GLOBAL, STT_OBJECT, sample.text, 0x1010);
    sample_add_symbol(&sample, NAME_FIRST, STB_GLOBAL, STT_FUNC, sample.text, 0x1010);
    sample_add_symbol_section(&sample, SHT_SYMTAB);
    sample_finish(&sample);
    cairn_object *object = sample_open(&sample);
    struct cairn_object_section section = sample_section(object);
    ck_assert_str_eq(cairn_object_function(object, &section, 0).name, "first");
    cairn_object_destroy(object);
}
END_TEST

/* PPC64 ELFv1: `first` and `second` are descriptors; word 2 is the code of `second`. */
static void make_descriptors(struct sample *sample, uint16_t type)
{
    uint64_t base = type == ET_REL ? 0 : 0x3000;
    uint64_t code = type == ET_REL ? 0 : 0x1000;
    sample_begin(sample, EM_PPC64, type, CAIRN_BIG_ENDIAN);
    sample->descriptor_section =
        elf_add(&sample->file, (struct elf_section){.name = ".opd",
                                                    .type = SHT_PROGBITS,
                                                    .flags = SHF_ALLOC | SHF_WRITE,
                                                    .address = base,
                                                    .bytes = sample->descriptors,
                                                    .size = 48});
    sample_add_symbol(sample, NAME_FIRST, STB_GLOBAL, STT_FUNC, sample->descriptor_section, base);
    sample_add_symbol(sample, NAME_SECOND, STB_GLOBAL, STT_FUNC, sample->descriptor_section,
                      base + 24);
    if (type == ET_REL) {
        sample_add_symbol(sample, 0, STB_LOCAL, STT_SECTION, sample->text, 0);
        return;
    }
    elf_put64(sample->descriptors, CAIRN_BIG_ENDIAN, code + 0x10);
    elf_put64(sample->descriptors + 24, CAIRN_BIG_ENDIAN, code + 0x20);
    sample_set_word(sample, 0, base);
    sample_set_word(sample, 1, base + 24);
    sample_set_word(sample, 2, code + 0x20);
}

static void check_descriptors(const struct sample *sample, uint64_t descriptor, uint64_t code)
{
    cairn_object *object = sample_open(sample);
    struct cairn_object_section section = sample_section(object);
    ck_assert_uint_eq(sample_word(&section, 1), descriptor + 24);
    ck_assert_str_eq(cairn_object_function(object, &section, 0).name, "first");
    ck_assert_uint_eq(cairn_object_function(object, &section, 0).entry, code + 0x10);
    ck_assert_str_eq(cairn_object_function(object, &section, 8).name, "second");
    ck_assert_uint_eq(cairn_object_function(object, &section, 8).entry, code + 0x20);
    ck_assert_str_eq(cairn_object_function(object, &section, 16).name, "second");
    ck_assert_uint_eq(cairn_object_function(object, &section, 16).entry, code + 0x20);
    cairn_object_destroy(object);
}

START_TEST(descriptors_of_an_executable_lead_to_the_code)
{
    static struct sample sample;
    make_descriptors(&sample, ET_EXEC);
    sample_add_symbol_section(&sample, SHT_SYMTAB);
    sample_finish(&sample);
    check_descriptors(&sample, 0x3000, 0x1000);
}
END_TEST

START_TEST(descriptors_of_an_object_lead_to_the_code)
{
    static struct sample sample;
    uint8_t opd_relocations[2 * sizeof(Elf64_Rela)];
    make_descriptors(&sample, ET_REL);
    uint8_t *at = elf_put_rela(opd_relocations, CAIRN_BIG_ENDIAN, 0, 3, R_PPC64_ADDR64, 0x10);
    elf_put_rela(at, CAIRN_BIG_ENDIAN, 24, 3, R_PPC64_ADDR64, 0x20);
    sample_add_rela(&sample, 0, 1, R_PPC64_ADDR64, 0);
    sample_add_rela(&sample, 8, 2, R_PPC64_ADDR64, 0);
    sample_add_rela(&sample, 16, 3, R_PPC64_ADDR64, 0x20);
    sample_add_symbol_section(&sample, SHT_SYMTAB);
    sample_add_relocation_section(&sample, SHT_RELA, 0, sample.stackmaps);
    elf_add(&sample.file, (struct elf_section){.name = ".rela.opd",
                                               .type = SHT_RELA,
                                               .link = sample.symbol_section,
                                               .info = sample.descriptor_section,
                                               .bytes = opd_relocations,
                                               .size = sizeof opd_relocations,
                                               .entry_size = sizeof(Elf64_Rela)});
    sample_finish(&sample);
    check_descriptors(&sample, 0, 0);
}
END_TEST

/* ---- Distances, such as in PC sections ---- */

static const struct {
    uint16_t machine;
    enum cairn_byte_order byte_order;
    uint32_t narrow_type, wide_type;     /* number of distances */
    uint32_t address_type, address_wide; /* number of addresses */
} distances[] = {
    {EM_X86_64, CAIRN_LITTLE_ENDIAN, R_X86_64_PC32, R_X86_64_PC64, R_X86_64_32, R_X86_64_64},
    {EM_AARCH64, CAIRN_LITTLE_ENDIAN, R_AARCH64_PREL32, R_AARCH64_PREL64, R_AARCH64_ABS32,
     R_AARCH64_ABS64},
    {EM_PPC64, CAIRN_LITTLE_ENDIAN, R_PPC64_REL32, R_PPC64_REL64, R_PPC64_ADDR32, R_PPC64_ADDR64},
    {EM_PPC64, CAIRN_BIG_ENDIAN, R_PPC64_REL32, R_PPC64_REL64, R_PPC64_ADDR32, R_PPC64_ADDR64},
    {EM_S390, CAIRN_BIG_ENDIAN, R_390_PC32, R_390_PC64, R_390_32, R_390_64},
};

static uint32_t narrow_word(const struct cairn_object_section *section, size_t offset)
{
    return cairn_load_u32(section->contents.bytes + offset, section->contents.byte_order);
}

START_TEST(distances_lead_to_the_section_of_their_symbols)
{
    static struct sample sample;
    sample_begin(&sample, distances[_i].machine, ET_REL, distances[_i].byte_order);
    sample_add_symbol(&sample, 0, STB_LOCAL, STT_SECTION, sample.text, 0);
    sample_add_symbol(&sample, NAME_FIRST, STB_GLOBAL, STT_FUNC, sample.text, 0x10);
    sample_add_symbol(&sample, NAME_SECOND, STB_GLOBAL, STT_NOTYPE, SHN_UNDEF, 0);
    sample_add_rela(&sample, 4, 1, distances[_i].narrow_type, 0x21);
    sample_add_rela(&sample, 8, 2, distances[_i].wide_type, 2);
    sample_add_rela(&sample, 16, 1, distances[_i].address_type, 0x33);
    sample_add_rela(&sample, 20, 3, distances[_i].narrow_type, 0);
    sample_add_symbol_section(&sample, SHT_SYMTAB);
    sample_add_relocation_section(&sample, SHT_RELA, 0, sample.stackmaps);
    sample_finish(&sample);
    cairn_object *object = sample_open(&sample);
    struct cairn_object_section section = sample_section(object);
    ck_assert_uint_eq(4 + narrow_word(&section, 4), 0x21);
    ck_assert_uint_eq(8 + sample_word(&section, 1), 0x12);
    ck_assert_uint_eq(narrow_word(&section, 16), 0x33);
    ck_assert_uint_eq(cairn_object_target_section(object, &section, 0), 0);
    ck_assert_uint_eq(cairn_object_target_section(object, &section, 4), sample.text);
    ck_assert_uint_eq(cairn_object_target_section(object, &section, 8), sample.text);
    ck_assert_uint_eq(cairn_object_target_section(object, &section, 16), sample.text);
    ck_assert_uint_eq(cairn_object_target_section(object, &section, 20), 0);
    ck_assert_uint_eq(cairn_object_target_section(object, &section, SIZE_MAX), 0);
    /* A distance is not the address of a function. */
    ck_assert_uint_eq(cairn_object_function(object, &section, 8).entry, sample_word(&section, 1));
    ck_assert_uint_eq(cairn_object_function(object, &section, 8).section, 0);
    cairn_object_destroy(object);
}
END_TEST

/* A linker may remove instructions on RISC-V, so each label has its own relocation. */
START_TEST(distances_of_two_labels_lead_to_the_first_ones_section)
{
    static struct sample sample;
    sample_begin(&sample, EM_RISCV, ET_REL, CAIRN_LITTLE_ENDIAN);
    sample_add_symbol(&sample, 0, STB_LOCAL, STT_NOTYPE, sample.text, 0x30);
    sample_add_symbol(&sample, 0, STB_LOCAL, STT_NOTYPE, sample.text, 0x10);
    sample_add_symbol(&sample, 0, STB_LOCAL, STT_NOTYPE, sample.stackmaps, 4);
    sample_add_rela(&sample, 0, 1, R_RISCV_ADD32, 0);
    sample_add_rela(&sample, 0, 2, R_RISCV_SUB32, 0);
    sample_add_rela(&sample, 4, 1, R_RISCV_ADD32, 0);
    sample_add_rela(&sample, 4, 3, R_RISCV_SUB32, 0);
    sample_add_rela(&sample, 8, 2, R_RISCV_ADD64, 0);
    sample_add_rela(&sample, 8, 3, R_RISCV_SUB64, -4);
    sample_add_symbol_section(&sample, SHT_SYMTAB);
    sample_add_relocation_section(&sample, SHT_RELA, 0, sample.stackmaps);
    sample_finish(&sample);
    cairn_object *object = sample_open(&sample);
    struct cairn_object_section section = sample_section(object);
    ck_assert_uint_eq(narrow_word(&section, 0), 0x20);
    ck_assert_uint_eq(4 + narrow_word(&section, 4), 0x30);
    ck_assert_uint_eq(sample_word(&section, 1), 0x10);
    ck_assert_uint_eq(cairn_object_target_section(object, &section, 0), 0);
    ck_assert_uint_eq(cairn_object_target_section(object, &section, 4), sample.text);
    ck_assert_uint_eq(cairn_object_target_section(object, &section, 8), sample.text);
    cairn_object_destroy(object);
}
END_TEST

static void make_uleb128(struct sample *sample, const void *bytes, size_t size)
{
    sample_begin(sample, EM_RISCV, ET_REL, CAIRN_LITTLE_ENDIAN);
    memcpy(sample->words + WORD_BYTES - size, bytes, size);
    sample_add_symbol(sample, 0, STB_LOCAL, STT_NOTYPE, sample->text, 0x12345);
    sample_add_symbol(sample, 0, STB_LOCAL, STT_NOTYPE, sample->text, 0x12300);
    sample_add_rela(sample, WORD_BYTES - size, 1, 60, 0);
    sample_add_rela(sample, WORD_BYTES - size, 2, 61, 0);
    sample_add_symbol_section(sample, SHT_SYMTAB);
    sample_add_relocation_section(sample, SHT_RELA, 0, sample->stackmaps);
    sample_finish(sample);
}

START_TEST(numbers_of_variable_length_keep_their_length)
{
    static struct sample sample;
    const uint8_t *end;
    make_uleb128(&sample, "\x00\xff", 2);
    cairn_object *object = sample_open(&sample);
    struct cairn_object_section section = sample_section(object);
    end = section.contents.bytes + WORD_BYTES;
    ck_assert_mem_eq(end - 2, "\x45\xff", 2);
    cairn_object_destroy(object);

    make_uleb128(&sample, "\x80\x80\x00", 3);
    object = sample_open(&sample);
    section = sample_section(object);
    end = section.contents.bytes + WORD_BYTES;
    ck_assert_mem_eq(end - 3, "\xc5\x80\x00", 3);
    cairn_object_destroy(object);
}
END_TEST

START_TEST(number_of_variable_length_without_an_end_is_corrupt)
{
    static struct sample sample;
    struct cairn_error error;
    make_uleb128(&sample, "\x80\x80\x80", 3);
    ck_assert_int_eq(try_section(&sample, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_uint_eq(error.offset, WORD_BYTES - 3);
    make_uleb128(&sample, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11);
    ck_assert_int_eq(try_section(&sample, &error), CAIRN_ERROR_CORRUPT);
}
END_TEST

/* As in call frame information: the low six bits are a distance, and the others are an instruction.
 */
START_TEST(parts_of_bytes_are_relocated)
{
    static struct sample sample;
    sample_begin(&sample, EM_RISCV, ET_REL, CAIRN_LITTLE_ENDIAN);
    memcpy(sample.words, "\x40\x05\x01\x02\x09", 5);
    sample_add_symbol(&sample, 0, STB_LOCAL, STT_NOTYPE, sample.text, 0x130);
    sample_add_symbol(&sample, 0, STB_LOCAL, STT_NOTYPE, sample.text, 0x10e);
    sample_add_rela(&sample, 0, 1, R_RISCV_SET6, 0);
    sample_add_rela(&sample, 0, 2, R_RISCV_SUB6, 0);
    sample_add_rela(&sample, 1, 1, R_RISCV_ADD8, 0);
    sample_add_rela(&sample, 1, 2, R_RISCV_SUB8, 0);
    sample_add_rela(&sample, 2, 1, R_RISCV_SET16, 0);
    sample_add_rela(&sample, 2, 2, R_RISCV_SUB16, 0);
    sample_add_symbol_section(&sample, SHT_SYMTAB);
    sample_add_relocation_section(&sample, SHT_RELA, 0, sample.stackmaps);
    sample_finish(&sample);
    cairn_object *object = sample_open(&sample);
    struct cairn_object_section section = sample_section(object);
    ck_assert_mem_eq(section.contents.bytes, "\x62\x27\x22\x00\x09", 5);
    cairn_object_destroy(object);
}
END_TEST

/* ---- Code ---- */

static void expect_code(cairn_object *object, uint32_t section, uint64_t address, uint8_t first,
                        size_t size)
{
    struct cairn_object_code code;
    struct cairn_error error;
    if (cairn_object_code(object, section, address, &code, &error) != CAIRN_OK)
        ck_abort_msg("%s", error.message);
    ck_assert_uint_eq(code.address, address);
    ck_assert_uint_eq(code.size, size);
    for (size_t i = 0; i < size; i++)
        ck_assert_uint_eq(code.bytes[i], first + i);
}

START_TEST(code_of_an_object_counts_from_its_section)
{
    static struct sample sample;
    sample_relocatable(&sample, address_relocations[_i].machine, address_relocations[_i].byte_order,
                       address_relocations[_i].type);
    cairn_object *object = sample_open(&sample);
    struct cairn_object_section section = sample_section(object);
    struct cairn_object_function function = cairn_object_function(object, &section, 0);
    ck_assert_uint_eq(function.section, sample.text);
    ck_assert_uint_eq(function.size, 12);
    ck_assert_uint_eq(cairn_object_function(object, &section, 8).section, sample.text);
    ck_assert_uint_eq(cairn_object_function(object, &section, 8).size, 0);
    expect_code(object, function.section, function.entry, 0x10, 48);
    expect_code(object, sample.text, 0, 0, 64);
    expect_code(object, sample.text, 63, 63, 1);
    cairn_object_destroy(object);
}
END_TEST

START_TEST(code_of_a_linked_file_is_found_by_its_address)
{
    static struct sample sample;
    sample_executable(&sample, SHT_SYMTAB);
    cairn_object *object = sample_open(&sample);
    struct cairn_object_section section = sample_section(object);
    struct cairn_object_function function = cairn_object_function(object, &section, 8);
    ck_assert_uint_eq(function.section, 0);
    expect_code(object, function.section, function.entry, 0x20, 32);
    expect_code(object, 77, 0x1000, 0, 64);
    ck_assert_str_eq(cairn_object_symbol(object, 77, 0x1020), "second");
    ck_assert_ptr_null(cairn_object_symbol(object, 0, 0x1021));
    ck_assert_ptr_null(cairn_object_relocated_symbol(object, 0, 0x1000, 64));
    cairn_object_destroy(object);
}
END_TEST

START_TEST(code_behind_descriptors_is_the_functions)
{
    static struct sample sample;
    make_descriptors(&sample, ET_EXEC);
    sample_set_symbol_size(&sample, 20);
    sample_add_symbol_section(&sample, SHT_SYMTAB);
    sample_finish(&sample);
    cairn_object *object = sample_open(&sample);
    struct cairn_object_section section = sample_section(object);
    struct cairn_object_function function = cairn_object_function(object, &section, 8);
    ck_assert_uint_eq(function.size, 20);
    expect_code(object, function.section, function.entry, 0x20, 32);
    ck_assert_str_eq(cairn_object_symbol(object, 0, 0x1020), "second");
    cairn_object_destroy(object);
}
END_TEST

START_TEST(relocations_of_code_are_named_and_not_applied)
{
    static struct sample sample;
    sample_relocatable(&sample, EM_X86_64, CAIRN_LITTLE_ENDIAN, R_X86_64_64);
    cairn_object *object = sample_open(&sample);
    sample_section(object);
    ck_assert_ptr_null(cairn_object_relocated_symbol(object, sample.text, 0x10, 8));
    expect_code(object, sample.text, 0x10, 0x10, 48);
    ck_assert_str_eq(cairn_object_relocated_symbol(object, sample.text, 0x10, 3), "first");
    ck_assert_str_eq(cairn_object_relocated_symbol(object, sample.text, 0x12, 1), "first");
    ck_assert_ptr_null(cairn_object_relocated_symbol(object, sample.text, 0x10, 2));
    ck_assert_ptr_null(cairn_object_relocated_symbol(object, sample.text, 0x13, 40));
    ck_assert_str_eq(cairn_object_symbol(object, sample.text, 0x20), "second");
    ck_assert_ptr_null(cairn_object_symbol(object, sample.text + 1, 0x20));
    cairn_object_destroy(object);
}
END_TEST

START_TEST(code_that_is_not_there_is_not_found)
{
    static struct sample sample;
    struct cairn_object_code code;
    struct cairn_error error;
    sample_relocatable(&sample, EM_X86_64, CAIRN_LITTLE_ENDIAN, R_X86_64_64);
    cairn_object *object = sample_open(&sample);
    sample_section(object);
    const struct {
        uint32_t section;
        uint64_t address;
    } places[] = {{sample.text, 64},
                  {sample.text, UINT64_MAX},
                  {sample.stackmaps, 0},
                  {0, 0},
                  {UINT32_MAX, 0}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        ck_assert_int_eq(
            cairn_object_code(object, places[i].section, places[i].address, &code, &error),
            CAIRN_ERROR_NOT_FOUND);
        ck_assert_ptr_nonnull(strstr(error.message, "there is no code at 0x"));
    }
    ck_assert_int_eq(cairn_object_code(NULL, 1, 0, &code, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_object_code(object, 1, 0, NULL, &error), CAIRN_ERROR_ARGUMENT);
    cairn_object_destroy(object);
}
END_TEST

static enum cairn_status try_code(struct sample *sample, struct cairn_error *error)
{
    struct cairn_object_code code;
    sample_finish(sample);
    cairn_object *object = sample_open(sample);
    enum cairn_status status = cairn_object_code(object, sample->text, 0x1000, &code, error);
    cairn_object_destroy(object);
    return status;
}

START_TEST(code_without_bytes_is_unsupported)
{
    static struct sample sample;
    struct cairn_error error;
    sample_begin(&sample, EM_X86_64, ET_EXEC, CAIRN_LITTLE_ENDIAN);
    sample.file.sections[sample.text].type = SHT_NOBITS;
    ck_assert_int_eq(try_code(&sample, &error), CAIRN_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "separate debug file"));
}
END_TEST

START_TEST(code_whose_relocation_has_no_symbol_is_corrupt)
{
    static struct sample sample;
    struct cairn_object_code code;
    struct cairn_error error;
    sample_begin(&sample, EM_X86_64, ET_REL, CAIRN_LITTLE_ENDIAN);
    sample_add_rela(&sample, 4, 2, R_X86_64_PLT32, 0);
    sample_add_symbol_section(&sample, SHT_SYMTAB);
    sample_add_relocation_section(&sample, SHT_RELA, 0, sample.text);
    sample_finish(&sample);
    cairn_object *object = sample_open(&sample);
    ck_assert_int_eq(cairn_object_code(object, sample.text, 0, &code, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(error.message, "symbol 2"));
    cairn_object_destroy(object);
}
END_TEST

static enum cairn_status try_relocation(uint64_t offset, uint32_t symbol, uint32_t type,
                                        struct cairn_error *error)
{
    static struct sample sample;
    sample_begin(&sample, EM_X86_64, ET_REL, CAIRN_LITTLE_ENDIAN);
    sample_add_symbol(&sample, NAME_FIRST, STB_GLOBAL, STT_FUNC, sample.text, 0x10);
    sample_add_rela(&sample, offset, symbol, type, 0);
    sample_add_symbol_section(&sample, SHT_SYMTAB);
    sample_add_relocation_section(&sample, SHT_RELA, 0, sample.stackmaps);
    sample_finish(&sample);
    return try_section(&sample, error);
}

START_TEST(unknown_relocation_is_unsupported)
{
    struct cairn_error error;
    ck_assert_int_eq(try_relocation(8, 1, R_X86_64_TPOFF64, &error), CAIRN_ERROR_UNSUPPORTED);
    ck_assert_uint_eq(error.offset, 8);
    ck_assert_ptr_nonnull(strstr(error.message, "type 18"));
}
END_TEST

START_TEST(relocation_outside_the_section_is_corrupt)
{
    struct cairn_error error;
    ck_assert_int_eq(try_relocation(WORD_BYTES - 8, 1, R_X86_64_64, &error), CAIRN_OK);
    ck_assert_int_eq(try_relocation(WORD_BYTES - 7, 1, R_X86_64_64, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_int_eq(try_relocation(UINT64_MAX, 1, R_X86_64_64, &error), CAIRN_ERROR_CORRUPT);
}
END_TEST

START_TEST(relocation_without_its_symbol_is_corrupt)
{
    struct cairn_error error;
    ck_assert_int_eq(try_relocation(0, 2, R_X86_64_64, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(error.message, "symbol 2"));
    ck_assert_int_eq(try_relocation(0, UINT32_MAX, R_X86_64_64, &error), CAIRN_ERROR_CORRUPT);
}
END_TEST

/* ---- Memory and hostile input ---- */

static enum cairn_status use_code(cairn_object *object,
                                  const struct cairn_object_function *function, uint64_t *sum)
{
    struct cairn_object_code code;
    enum cairn_status status =
        cairn_object_code(object, function->section, function->entry, &code, NULL);
    if (status != CAIRN_OK)
        return status;
    for (size_t i = 0; i < code.size; i++)
        *sum += code.bytes[i];
    const char *name =
        cairn_object_relocated_symbol(object, function->section, function->entry, code.size);
    const char *symbol = cairn_object_symbol(object, function->section, function->entry);
    *sum += (name == NULL ? 0 : strlen(name)) + (symbol == NULL ? 0 : strlen(symbol));
    return CAIRN_OK;
}

struct scripted {
    long allowed; /* number of allocations that succeed */
    long live;
};

static void *scripted_reallocate(void *user, void *block, size_t old_size, size_t new_size)
{
    struct scripted *script = user;
    (void)old_size;
    if (new_size == 0) {
        script->live -= block != NULL;
        free(block);
        return NULL;
    }
    if (script->allowed-- <= 0)
        return NULL;
    script->live += block == NULL;
    return realloc(block, new_size);
}

static size_t length(const char *text) { return text == NULL ? 0 : strlen(text); }

/* Calls everything that does not need stack maps. */
static enum cairn_status use_all_sections(cairn_object *object, uint64_t *sum)
{
    const struct cairn_object_filter all = {0};
    struct cairn_object_section section = {0};
    enum cairn_status status;
    while ((status = cairn_object_next_matching(object, &all, &section, NULL)) == CAIRN_OK) {
        struct cairn_object_function function;
        *sum += length(section.name) + cairn_object_target_section(object, &section, 8);
        status = cairn_object_find_function(object, section.index, section.address + 0x11,
                                            &function, NULL);
        if (status == CAIRN_OK)
            *sum += length(function.name);
        if (status == CAIRN_ERROR_MEMORY)
            break;
    }
    const uint8_t *id;
    size_t id_size;
    if (cairn_object_build_id(object, &id, &id_size))
        *sum += id[id_size - 1];
    return status;
}

static enum cairn_status use_object(const uint8_t *bytes, size_t size,
                                    const struct cairn_allocator *allocator, uint64_t *sum)
{
    cairn_object *object;
    struct cairn_error error = {0};
    const struct cairn_object_options options = {.allocator = allocator};
    enum cairn_status status = cairn_object_open_memory(bytes, size, &options, &object, &error);
    if (status != CAIRN_OK)
        return status;
    struct cairn_object_section section = {0};
    while ((status = cairn_object_next_section(object, CAIRN_OBJECT_STACKMAPS, &section, &error)) ==
           CAIRN_OK) {
        for (size_t i = 0; i < section.contents.size; i++)
            *sum += section.contents.bytes[i];
        for (size_t i = 0; i < section.contents.size && i < 256; i += 4) {
            struct cairn_object_function function = cairn_object_function(object, &section, i);
            *sum += function.entry + (function.name == NULL ? 0 : strlen(function.name));
            if (use_code(object, &function, sum) == CAIRN_ERROR_MEMORY)
                status = CAIRN_ERROR_MEMORY;
        }
        if (status != CAIRN_OK)
            break;
    }
    if (use_all_sections(object, sum) == CAIRN_ERROR_MEMORY)
        status = CAIRN_ERROR_MEMORY;
    cairn_object_destroy(object);
    ck_assert(memchr(error.message, '\0', sizeof error.message) != NULL);
    return status;
}

START_TEST(each_allocation_may_fail)
{
    static struct sample sample;
    uint64_t sum = 0;
    sample_relocatable(&sample, EM_X86_64, CAIRN_LITTLE_ENDIAN, R_X86_64_64);
    long allowed = 0;
    for (enum cairn_status status = CAIRN_ERROR_MEMORY; status != CAIRN_ERROR_NOT_FOUND;
         allowed++) {
        struct scripted script = {.allowed = allowed};
        struct cairn_allocator allocator = {scripted_reallocate, &script};
        status = use_object(sample.bytes, sample.size, &allocator, &sum);
        ck_assert(status == CAIRN_ERROR_MEMORY || status == CAIRN_ERROR_NOT_FOUND);
        ck_assert_int_eq(script.live, 0);
    }
    ck_assert_int_ge(allowed, 7);
}
END_TEST

static unsigned find_seed(void)
{
    const char *given = getenv("CAIRN_TEST_SEED");
    unsigned seed = given != NULL ? (unsigned)strtoul(given, NULL, 0) : (unsigned)time(NULL);
    fprintf(stderr, "seed %u (CAIRN_TEST_SEED repeats it)\n", seed);
    return seed;
}

static void mutate(uint8_t *bytes, size_t size, unsigned *seed)
{
    static const uint8_t favourites[] = {0, 1, 0x7f, 0x80, 0xff};
    int count = 1 + rand_r(seed) % 6;
    for (int i = 0; i < count; i++) {
        size_t place = (size_t)rand_r(seed) % size;
        if (rand_r(seed) % 2 == 0)
            bytes[place] = favourites[(size_t)rand_r(seed) % sizeof favourites];
        else
            bytes[place] = (uint8_t)rand_r(seed);
    }
}

static void make_sample(struct sample *sample, int kind)
{
    if (kind == 0)
        sample_relocatable(sample, EM_X86_64, CAIRN_LITTLE_ENDIAN, R_X86_64_64);
    else if (kind == 1)
        sample_relocatable(sample, EM_S390, CAIRN_BIG_ENDIAN, R_390_64);
    else if (kind == 2)
        sample_executable(sample, SHT_SYMTAB);
    else {
        make_descriptors(sample, ET_EXEC);
        sample_add_symbol_section(sample, SHT_SYMTAB);
        sample_finish(sample);
    }
}

START_TEST(every_prefix_is_truncated)
{
    static struct sample sample;
    make_sample(&sample, _i);
    for (size_t size = 4; size < sample.size; size++) {
        struct cairn_error error = {0};
        uint8_t *mapping;
        uint8_t *bytes = sample_copy_to_guard(sample.bytes, size, &mapping);
        ck_assert_int_eq(try_memory(bytes, size, &error), CAIRN_ERROR_TRUNCATED);
        ck_assert_ptr_nonnull(strstr(error.message, "ends"));
        sample_drop_guarded(mapping, size);
    }
}
END_TEST

START_TEST(changed_bytes_never_crash)
{
    enum { ROUNDS = 20000 };
    static struct sample sample;
    unsigned seed = find_seed();
    uint64_t sum = 0;
    make_sample(&sample, _i);
    uint8_t *mapping;
    uint8_t *bytes = sample_copy_to_guard(sample.bytes, sample.size, &mapping);
    unsigned good = 0;
    for (int round = 0; round < ROUNDS; round++) {
        memcpy(bytes, sample.bytes, sample.size);
        mutate(bytes, sample.size, &seed);
        good += use_object(bytes, sample.size, NULL, &sum) == CAIRN_ERROR_NOT_FOUND;
    }
    /* If all or hardly any were good, the random changes would test nothing. */
    ck_assert_uint_gt(good, ROUNDS / 100);
    ck_assert_uint_lt(good, ROUNDS);
    sample_drop_guarded(mapping, sample.size);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("object");
    TCase *refused = tcase_create("refused");
    tcase_add_test(refused, arguments_are_checked);
    tcase_add_test(refused, missing_file_and_directory_are_system_errors);
    tcase_add_test(refused, empty_input_is_truncated);
    tcase_add_test(refused, text_is_corrupt);
    tcase_add_test(refused, archive_is_unsupported);
    tcase_add_test(refused, narrow_elf_is_unsupported);
    tcase_add_test(refused, impossible_class_and_byte_order_are_corrupt);
    suite_add_tcase(suite, refused);

    TCase *sections = tcase_create("sections");
    tcase_add_loop_test(sections, architecture_is_read_from_machine_and_flags, 0,
                        (int)(sizeof machines / sizeof *machines));
    tcase_add_test(sections, file_reads_like_memory);
    tcase_add_test(sections, only_regular_files_are_opened);
    tcase_add_test(sections, file_that_becomes_shorter_raises_no_signal);
    tcase_add_test(sections, bytes_that_were_handed_out_never_change);
    tcase_add_test(sections, missing_section_is_not_found);
    tcase_add_loop_test(sections, load_base_is_that_of_the_executable_segment, 0, 2);
    tcase_add_test(sections, plain_section_is_the_inputs_own_bytes);
    tcase_add_test(sections, relocatable_objects_have_no_load_base);
    tcase_add_test(sections, sections_of_one_name_come_in_order);
    tcase_add_test(sections, sections_are_filtered_by_name_prefix_and_type);
    tcase_add_test(sections, filters_that_match_nothing_are_named);
    tcase_add_test(sections, many_sections_of_one_name_are_found_in_linear_time);
    tcase_add_test(sections, section_outside_the_file_is_truncated);
    tcase_add_test(sections, section_without_bytes_is_unsupported);
    tcase_add_test(sections, compressed_section_is_decompressed);
    tcase_add_loop_test(sections, memory_limit_is_kept_and_explained, 0, 2);
    tcase_add_test(sections, compressed_section_in_the_other_byte_order_is_decompressed);
    tcase_add_test(sections, unknown_compression_is_refused);
    tcase_add_test(sections, damaged_compression_is_corrupt);
    suite_add_tcase(suite, sections);

    TCase *names = tcase_create("relocations and names");
    tcase_add_loop_test(names, relocatable_addresses_are_named_by_their_symbols, 0,
                        ADDRESS_RELOCATION_COUNT);
    tcase_add_test(names, asking_twice_relocates_once);
    tcase_add_test(names, relocations_without_addends_use_what_stands_there);
    tcase_add_test(names, address_that_another_relocation_has_changed_is_what_the_section_holds);
    tcase_add_test(names, undefined_symbol_still_names_its_address);
    tcase_add_loop_test(names, dynamic_relocations_are_applied, 0, ADDRESS_RELOCATION_COUNT);
    tcase_add_test(names, relocations_that_a_linker_kept_are_left_alone);
    tcase_add_loop_test(names, linked_addresses_are_named_by_the_symbol_table, 0, 2);
    tcase_add_test(names, global_functions_are_preferred_over_other_names);
    tcase_add_test(names, descriptors_of_an_executable_lead_to_the_code);
    tcase_add_test(names, descriptors_of_an_object_lead_to_the_code);
    tcase_add_test(names, unknown_relocation_is_unsupported);
    tcase_add_test(names, relocation_outside_the_section_is_corrupt);
    tcase_add_test(names, relocation_without_its_symbol_is_corrupt);
    suite_add_tcase(suite, names);

    TCase *apart = tcase_create("distances");
    tcase_add_loop_test(apart, distances_lead_to_the_section_of_their_symbols, 0,
                        (int)(sizeof distances / sizeof *distances));
    tcase_add_test(apart, distances_of_two_labels_lead_to_the_first_ones_section);
    tcase_add_test(apart, numbers_of_variable_length_keep_their_length);
    tcase_add_test(apart, number_of_variable_length_without_an_end_is_corrupt);
    tcase_add_test(apart, parts_of_bytes_are_relocated);
    suite_add_tcase(suite, apart);

    TCase *code = tcase_create("code");
    tcase_add_loop_test(code, code_of_an_object_counts_from_its_section, 0,
                        ADDRESS_RELOCATION_COUNT);
    tcase_add_test(code, code_of_a_linked_file_is_found_by_its_address);
    tcase_add_test(code, code_behind_descriptors_is_the_functions);
    tcase_add_test(code, relocations_of_code_are_named_and_not_applied);
    tcase_add_test(code, code_that_is_not_there_is_not_found);
    tcase_add_test(code, code_without_bytes_is_unsupported);
    tcase_add_test(code, code_whose_relocation_has_no_symbol_is_corrupt);
    suite_add_tcase(suite, code);

    TCase *hostile = tcase_create("memory and hostile input");
    tcase_set_timeout(hostile, 120);
    tcase_add_test(hostile, each_allocation_may_fail);
    tcase_add_loop_test(hostile, every_prefix_is_truncated, 0, 4);
    tcase_add_loop_test(hostile, changed_bytes_never_crash, 0, 4);
    suite_add_tcase(suite, hostile);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(make_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
