/*
 * Tests of opening ELF files: refused, truncated and randomly changed ones, and files that change
 * while they are open.
 *
 * SPDX-License-Identifier: MIT
 */
#include "allocator_support.h"
#include "file/object.h"
#include "object_sample.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static enum cairn_status try_memory(const void *bytes, size_t size)
{
    cairn_object *opened = NULL;
    enum cairn_status status = cairn_object_open_memory(bytes, size, NULL, &opened, &error);
    ck_assert_int_eq(status == CAIRN_OK, opened != NULL);
    cairn_object_destroy(opened);
    return status;
}

/* ---- Files that are not objects ---- */

START_TEST(arguments_are_checked)
{
    ck_assert_int_eq(cairn_object_open(NULL, NULL, &object, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_object_open("/dev/null", NULL, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_object_open_memory(NULL, 1, NULL, &object, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_object_open_memory("", 0, NULL, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_object_next_section(NULL, &stackmaps, &section, NULL),
                     CAIRN_ERROR_ARGUMENT);
    cairn_object_destroy(NULL);
}
END_TEST

START_TEST(missing_file_and_directory_are_system_errors)
{
    ck_assert_int_eq(cairn_object_open("/nonexistent/file", NULL, &object, &error),
                     CAIRN_ERROR_SYSTEM);
    ck_assert_int_eq(error.system_error, ENOENT);
    ck_assert_int_eq(cairn_object_open("/", NULL, &object, &error), CAIRN_ERROR_SYSTEM);
    ck_assert_int_eq(error.system_error, EISDIR);
    ck_assert_ptr_null(object);
}
END_TEST

START_TEST(empty_files_are_truncated)
{
    char path[] = "/tmp/check_object.XXXXXX";
    close(mkstemp(path));
    ck_assert_int_eq(cairn_object_open(path, NULL, &object, &error), CAIRN_ERROR_TRUNCATED);
    ck_assert_str_eq(error.message, "the file is empty");
    ck_assert_ptr_null(object);
    unlink(path);
}
END_TEST

static const struct {
    const char *bytes;
    size_t size;
    enum cairn_status status;
    const char *message; /* part of it */
} others[] = {
    {"hello, this is text", 19, CAIRN_ERROR_CORRUPT, "this is not an ELF file"},
    {"\177E", 2, CAIRN_ERROR_CORRUPT, "this is not an ELF file"},
    {"!<arch>\nfile", 12, CAIRN_ERROR_UNSUPPORTED, "archive"},
    {NULL, 0, CAIRN_ERROR_TRUNCATED, "the file is empty"},
};

START_TEST(other_files_are_refused)
{
    ck_assert_int_eq(try_memory(others[_i].bytes, others[_i].size), others[_i].status);
    ck_assert_ptr_nonnull(strstr(error.message, others[_i].message));
}
END_TEST

static const struct {
    unsigned index; /* of a byte in the ELF header */
    uint8_t byte;
    enum cairn_status status;
} identities[] = {
    {EI_CLASS, ELFCLASS32, CAIRN_ERROR_UNSUPPORTED},
    {EI_CLASS, 9, CAIRN_ERROR_CORRUPT},
    {EI_DATA, 7, CAIRN_ERROR_CORRUPT},
};

START_TEST(other_classes_and_byte_orders_are_refused)
{
    sample_executable(&sample, SHT_SYMTAB);
    sample.bytes[identities[_i].index] = identities[_i].byte;
    ck_assert_int_eq(try_memory(sample.bytes, sample.size), identities[_i].status);
    if (identities[_i].status == CAIRN_ERROR_UNSUPPORTED)
        ck_assert_ptr_nonnull(strstr(error.message, "32-bit"));
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
    sample_begin(&sample, machines[_i].machine, ET_REL, machines[_i].byte_order);
    sample.file.flags = machines[_i].flags;
    sample_finish(&sample);
    object = sample_open(&sample);
    ck_assert_int_eq(cairn_object_header(object).architecture, machines[_i].architecture);
    ck_assert_int_eq(cairn_object_header(object).byte_order, machines[_i].byte_order);
    ck_assert(cairn_object_header(object).is_relocatable);
}
END_TEST

START_TEST(files_read_like_memory)
{
    char path[] = "/tmp/check_object.XXXXXX";
    sample_executable(&sample, SHT_SYMTAB);
    int file = mkstemp(path);
    ck_assert_int_eq(write(file, sample.bytes, sample.size), (ssize_t)sample.size);
    close(file);
    if (cairn_object_open(path, NULL, &object, &error) != CAIRN_OK)
        ck_abort_msg("%s", error.message);
    section = sample_section(object);
    ck_assert_str_eq(cairn_object_function(object, &section, 8).name, "second");
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
START_TEST(truncating_an_open_file_raises_no_signal)
{
    char path[] = "/tmp/check_object.XXXXXX";
    int file = write_far_section(path);
    ck_assert_int_eq(cairn_object_open(path, NULL, &object, NULL), CAIRN_OK);
    ck_assert_int_eq(ftruncate(file, FAR_BYTES + FAR_BYTES / 2), 0);
    ck_assert_int_eq(cairn_object_next_section(object, &stackmaps, &section, &error),
                     CAIRN_ERROR_TRUNCATED);
    ck_assert_str_eq(error.message, "the file has become shorter since it was opened: it had "
                                    "2097152 bytes, and has 1572864");
    close(file);
    unlink(path);
}
END_TEST

START_TEST(returned_bytes_never_change)
{
    char path[] = "/tmp/check_object.XXXXXX";
    int file = write_far_section(path);
    ck_assert_int_eq(cairn_object_open(path, NULL, &object, NULL), CAIRN_OK);
    ck_assert_int_eq(cairn_object_next_section(object, &stackmaps, &section, NULL), CAIRN_OK);
    ck_assert_int_eq(pwrite(file, "changed", 7, FAR_BYTES), 7);
    ck_assert_int_eq(ftruncate(file, FAR_BYTES + 7), 0);
    for (size_t i = 0; i < FAR_BYTES; i++)
        if (section.contents.bytes[i] != 0)
            ck_abort_msg("byte %zu has changed", i);
    close(file);
    unlink(path);
}
END_TEST

/* ---- Memory and hostile input ---- */

static size_t length(const char *text) { return text == NULL ? 0 : strlen(text); }

static enum cairn_status use_code(cairn_object *used, const struct cairn_object_function *function,
                                  uint64_t *sum)
{
    struct cairn_object_code code;
    enum cairn_status status =
        cairn_object_code(used, function->section, function->entry, &code, NULL);
    if (status != CAIRN_OK)
        return status;
    for (size_t i = 0; i < code.size; i++)
        *sum += code.bytes[i];
    *sum +=
        length(cairn_object_relocated_symbol(used, function->section, function->entry, code.size));
    *sum += length(object_symbol(used, function->section, function->entry));
    return CAIRN_OK;
}

/* Calls everything that does not need stack maps. */
static enum cairn_status use_all_sections(cairn_object *used, uint64_t *sum)
{
    const struct cairn_object_filter all = {0};
    struct cairn_object_section next = {0};
    enum cairn_status status;
    while ((status = cairn_object_next_section(used, &all, &next, NULL)) == CAIRN_OK) {
        struct cairn_object_function function;
        *sum += length(next.name) + cairn_object_target_section(used, &next, 8);
        status = cairn_object_find_function(used, next.index, next.address + 0x11, &function, NULL);
        if (status == CAIRN_OK)
            *sum += length(function.name);
        if (status == CAIRN_ERROR_MEMORY)
            break;
    }
    return status;
}

static enum cairn_status use_object(const uint8_t *bytes, size_t size,
                                    const struct cairn_allocator *allocator, uint64_t *sum)
{
    cairn_object *used;
    const struct cairn_object_options options = {.allocator = allocator};
    enum cairn_status status = cairn_object_open_memory(bytes, size, &options, &used, &error);
    if (status != CAIRN_OK)
        return status;
    struct cairn_object_section next = {0};
    while ((status = cairn_object_next_section(used, &stackmaps, &next, &error)) == CAIRN_OK) {
        for (size_t i = 0; i < next.contents.size; i++)
            *sum += next.contents.bytes[i];
        for (size_t i = 0; i < next.contents.size && i < 256; i += 4) {
            struct cairn_object_function function = cairn_object_function(used, &next, i);
            *sum += function.entry + length(function.name);
            if (use_code(used, &function, sum) == CAIRN_ERROR_MEMORY)
                status = CAIRN_ERROR_MEMORY;
        }
        if (status != CAIRN_OK)
            break;
    }
    if (use_all_sections(used, sum) == CAIRN_ERROR_MEMORY)
        status = CAIRN_ERROR_MEMORY;
    cairn_object_destroy(used);
    ck_assert(memchr(error.message, '\0', sizeof error.message) != NULL);
    return status;
}

START_TEST(each_allocation_may_fail)
{
    uint64_t sum = 0;
    sample_relocatable(&sample, EM_X86_64, CAIRN_LITTLE_ENDIAN, R_X86_64_64);
    enum cairn_status status = CAIRN_ERROR_MEMORY;
    size_t fail_at = 0;
    while (status == CAIRN_ERROR_MEMORY) {
        fail_at++;
        struct support_allocator counter = {.fail_at = fail_at};
        struct cairn_allocator allocator = support_counting(&counter);
        status = use_object(sample.bytes, sample.size, &allocator, &sum);
        ck_assert_uint_eq(counter.outstanding_bytes, 0);
    }
    ck_assert_int_eq(status, CAIRN_ERROR_NOT_FOUND);
    ck_assert_uint_ge(fail_at, 7);
}
END_TEST

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

static void make_sample(int kind)
{
    if (kind == 0) {
        sample_relocatable(&sample, EM_X86_64, CAIRN_LITTLE_ENDIAN, R_X86_64_64);
    } else if (kind == 1) {
        sample_relocatable(&sample, EM_S390, CAIRN_BIG_ENDIAN, R_390_64);
    } else if (kind == 2) {
        sample_executable(&sample, SHT_SYMTAB);
    } else {
        sample_descriptors(&sample, ET_EXEC);
        sample_add_symbol_section(&sample, SHT_SYMTAB);
        sample_finish(&sample);
    }
}

START_TEST(every_prefix_is_truncated)
{
    make_sample(_i);
    for (size_t size = 4; size < sample.size; size++) {
        uint8_t *mapping;
        uint8_t *bytes = sample_copy_to_guard(sample.bytes, size, &mapping);
        ck_assert_int_eq(try_memory(bytes, size), CAIRN_ERROR_TRUNCATED);
        ck_assert_ptr_nonnull(strstr(error.message, "ends"));
        sample_drop_guarded(mapping, size);
    }
}
END_TEST

START_TEST(changed_bytes_never_crash)
{
    enum { ROUNDS = 20000 };
    unsigned seed = sample_time_seed();
    uint64_t sum = 0;
    make_sample(_i);
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

int main(void)
{
    Suite *suite = suite_create("opening objects");
    TCase *tests = tcase_create("files");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, arguments_are_checked);
    tcase_add_test(tests, missing_file_and_directory_are_system_errors);
    tcase_add_test(tests, empty_files_are_truncated);
    tcase_add_loop_test(tests, other_files_are_refused, 0, 4);
    tcase_add_loop_test(tests, other_classes_and_byte_orders_are_refused, 0, 3);
    tcase_add_loop_test(tests, architecture_is_read_from_machine_and_flags, 0,
                        (int)(sizeof machines / sizeof *machines));
    tcase_add_test(tests, files_read_like_memory);
    tcase_add_test(tests, only_regular_files_are_opened);
    tcase_add_test(tests, truncating_an_open_file_raises_no_signal);
    tcase_add_test(tests, returned_bytes_never_change);
    tcase_add_test(tests, each_allocation_may_fail);
    tcase_add_loop_test(tests, every_prefix_is_truncated, 0, 4);
    tcase_add_loop_test(tests, changed_bytes_never_crash, 0, 4);
    suite_add_tcase(suite, tests);
    return sample_run(suite);
}
