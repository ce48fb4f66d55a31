/*
 * Tests of archives: handwritten, truncated and randomly changed ones, thin ones, and one made by
 * ar, compared with libelf.
 *
 * SPDX-License-Identifier: MIT
 */
#include "allocator_support.h"
#include "object_sample.h"

#include <cairn/archive.h>
#include <errno.h>
#include <fcntl.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- Making archives ---- */

struct bytes {
    char text[8192];
    size_t size;
};

static void put(struct bytes *bytes, const void *added, size_t size)
{
    ck_assert_uint_le(bytes->size + size, sizeof bytes->text);
    memcpy(bytes->text + bytes->size, added, size);
    bytes->size += size;
}

static void put_header(struct bytes *bytes, const char *name, size_t size)
{
    char header[61];
    snprintf(header, sizeof header, "%-16s%-12d%-6d%-6d%-8o%-10zu`\n", name, 0, 0, 0, 0644u, size);
    put(bytes, header, 60);
}

static void put_member(struct bytes *bytes, const char *name, const void *content, size_t size)
{
    put_header(bytes, name, size);
    put(bytes, content, size);
    if (size % 2 != 0)
        put(bytes, "\n", 1);
}

static const char long_name[] = "a_long_name_of_a_member.o";

static struct bytes gnu_archive(void)
{
    struct bytes bytes = {.size = 0};
    put(&bytes, "!<arch>\n", 8);
    put_member(&bytes, "/", "\0\0\0\0", 4);
    put_member(&bytes, "//", "other_long_name_of_it/\na_long_name_of_a_member.o/\n", 50);
    put_member(&bytes, "short.o/", "abc", 3);
    put_member(&bytes, "/23", "long", 4);
    put_member(&bytes, "with space/", "", 0);
    put_member(&bytes, "/0", "x", 1);
    return bytes;
}

static struct bytes bsd_archive(void)
{
    struct bytes bytes = {.size = 0};
    put(&bytes, "!<arch>\n", 8);
    put_member(&bytes, "__.SYMDEF SORTED", "\0\0\0\0", 4);
    put_member(&bytes, "short.o", "abc", 3);
    put_member(&bytes, "#1/28", "a_long_name_of_a_member.o\0\0\0long", 32);
    return bytes;
}

struct expected {
    const char *name;
    const char *content;
    uint64_t offset;
};

static void check_members(const struct bytes *bytes, const struct expected *expected, size_t count)
{
    cairn_archive *archive;
    struct cairn_archive_member member;
    struct cairn_error error;
    ck_assert_int_eq(cairn_archive_open_memory(bytes->text, bytes->size, NULL, &archive, &error),
                     CAIRN_OK);
    for (size_t i = 0; i < count; i++) {
        if (cairn_archive_next(archive, &member, &error) != CAIRN_OK)
            ck_abort_msg("%s", error.message);
        ck_assert_str_eq(member.name, expected[i].name);
        ck_assert_uint_eq(member.size, strlen(expected[i].content));
        ck_assert_mem_eq(member.bytes, expected[i].content, member.size);
        ck_assert_uint_eq(member.offset, expected[i].offset);
    }
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(cairn_archive_next(archive, &member, &error), CAIRN_ERROR_NOT_FOUND);
    cairn_archive_destroy(archive);
}

START_TEST(gnu_names_are_read)
{
    static const struct expected expected[] = {
        {"short.o", "abc", 182},
        {long_name, "long", 246},
        {"with space", "", 310},
        {"other_long_name_of_it", "x", 370},
    };
    struct bytes bytes = gnu_archive();
    check_members(&bytes, expected, 4);
}
END_TEST

START_TEST(bsd_names_are_read)
{
    static const struct expected expected[] = {
        {"short.o", "abc", 72},
        {long_name, "long", 136},
    };
    struct bytes bytes = bsd_archive();
    check_members(&bytes, expected, 2);
}
END_TEST

START_TEST(empty_archive_has_no_members)
{
    struct bytes bytes = {.text = "!<arch>\n", .size = 8};
    check_members(&bytes, NULL, 0);
}
END_TEST

/* ---- Files that are not archives ---- */

static enum cairn_status try_memory(const void *bytes, size_t size, struct cairn_error *error)
{
    cairn_archive *archive = NULL;
    enum cairn_status status = cairn_archive_open_memory(bytes, size, NULL, &archive, error);
    ck_assert_int_eq(status == CAIRN_OK, archive != NULL);
    cairn_archive_destroy(archive);
    return status;
}

START_TEST(other_files_are_refused)
{
    struct cairn_error error;
    cairn_archive *archive = NULL;
    ck_assert_int_eq(try_memory(NULL, 0, &error), CAIRN_ERROR_TRUNCATED);
    ck_assert_int_eq(try_memory("!<arch>", 7, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_int_eq(try_memory("\177ELF....", 8, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_str_eq(error.message, "this is not an archive");
    ck_assert_int_eq(try_memory("!<thin>\n", 8, &error), CAIRN_ERROR_UNSUPPORTED);
    ck_assert_int_eq(cairn_archive_open("/nonexistent/file", NULL, &archive, &error),
                     CAIRN_ERROR_SYSTEM);
    ck_assert_int_eq(error.system_error, ENOENT);
    ck_assert_int_eq(cairn_archive_open("/dev/null", NULL, &archive, &error),
                     CAIRN_ERROR_UNSUPPORTED);
    ck_assert_str_eq(error.message, "this is not a regular file");
    ck_assert_ptr_null(archive);
}
END_TEST

START_TEST(arguments_are_checked)
{
    cairn_archive *archive;
    struct cairn_archive_member member;
    ck_assert_int_eq(cairn_archive_open(NULL, NULL, &archive, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_archive_open("/", NULL, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_archive_open_memory(NULL, 1, NULL, &archive, NULL),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_archive_open_memory("", 0, NULL, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_archive_next(NULL, &member, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_archive_open_memory("!<arch>\n", 8, NULL, &archive, NULL), CAIRN_OK);
    ck_assert_int_eq(cairn_archive_next(archive, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    cairn_archive_destroy(archive);
    cairn_archive_destroy(NULL);
}
END_TEST

/* ---- Damaged members ---- */

/* Reads all members. Returns the status that ended the loop. */
static enum cairn_status read_all(const void *bytes, size_t size,
                                  const struct cairn_allocator *allocator, uint64_t *sum,
                                  struct cairn_error *error)
{
    cairn_archive *archive;
    struct cairn_archive_member member;
    const struct cairn_object_options options = {.allocator = allocator};
    enum cairn_status status = cairn_archive_open_memory(bytes, size, &options, &archive, error);
    if (status != CAIRN_OK)
        return status;
    while ((status = cairn_archive_next(archive, &member, error)) == CAIRN_OK) {
        *sum += strlen(member.name) + member.offset;
        for (size_t i = 0; i < member.size; i++)
            *sum += member.bytes[i];
    }
    if (status != CAIRN_ERROR_MEMORY)
        ck_assert_int_eq(cairn_archive_next(archive, &member, NULL), status);
    cairn_archive_destroy(archive);
    return status;
}

START_TEST(truncated_members_are_named)
{
    uint64_t sum = 0;
    struct cairn_error error;
    struct bytes bytes = gnu_archive();
    ck_assert_int_eq(read_all(bytes.text, 309, NULL, &sum, &error), CAIRN_ERROR_TRUNCATED);
    ck_assert_uint_eq(error.offset, 246);
    ck_assert_ptr_nonnull(strstr(error.message, "member 'a_long_name_of_a_member.o' at byte 246"));
    ck_assert_ptr_nonnull(strstr(error.message, "4 bytes, 3 are there"));
    ck_assert_int_eq(read_all(bytes.text, 369, NULL, &sum, &error), CAIRN_ERROR_TRUNCATED);
    ck_assert_uint_eq(error.offset, 310);
    ck_assert_ptr_nonnull(strstr(error.message, "inside the header of a member at byte 310"));
    memcpy(bytes.text + 182 + 48, "9999999999", 10);
    ck_assert_int_eq(read_all(bytes.text, bytes.size, NULL, &sum, &error), CAIRN_ERROR_TRUNCATED);
    ck_assert_ptr_nonnull(strstr(error.message, "'short.o/'"));
}
END_TEST

START_TEST(damaged_headers_are_corrupt)
{
    uint64_t sum = 0;
    struct cairn_error error;
    struct bytes bytes = gnu_archive();
    bytes.text[182 + 58] = ' ';
    ck_assert_int_eq(read_all(bytes.text, bytes.size, NULL, &sum, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_uint_eq(error.offset, 182);
    bytes = gnu_archive();
    bytes.text[182 + 48] = '-';
    ck_assert_int_eq(read_all(bytes.text, bytes.size, NULL, &sum, &error), CAIRN_ERROR_CORRUPT);
}
END_TEST

START_TEST(name_outside_of_the_table_is_corrupt)
{
    uint64_t sum = 0;
    struct cairn_error error;
    struct bytes bytes = {.size = 0};
    put(&bytes, "!<arch>\n", 8);
    put_member(&bytes, "/7", "long", 4);
    ck_assert_int_eq(read_all(bytes.text, bytes.size, NULL, &sum, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_uint_eq(error.offset, 8);
    bytes.size = 8;
    put_member(&bytes, "//", "name/\n", 6);
    put_member(&bytes, "/6", "long", 4);
    ck_assert_int_eq(read_all(bytes.text, bytes.size, NULL, &sum, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_uint_eq(error.offset, 74);
}
END_TEST

/* A copy that ends at the end of a page, followed by one without access. */
struct guarded {
    char *mapping;
    size_t page;
};

static struct guarded guard(void)
{
    struct guarded guarded = {.page = (size_t)sysconf(_SC_PAGESIZE)};
    guarded.mapping =
        mmap(NULL, 2 * guarded.page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(guarded.mapping, MAP_FAILED);
    ck_assert_int_eq(mprotect(guarded.mapping + guarded.page, guarded.page, PROT_NONE), 0);
    return guarded;
}

static char *copy_to_end(const struct guarded *guarded, const char *bytes, size_t size)
{
    char *start = guarded->mapping + guarded->page - size;
    memcpy(start, bytes, size);
    return start;
}

/* Reads the first member, whose name is long and has `length` bytes in the table. */
static enum cairn_status read_name_of(size_t length, bool has_end)
{
    char names[6000];
    struct bytes bytes = {.size = 0};
    struct cairn_archive_member member;
    struct cairn_error error;
    cairn_archive *archive;
    memset(names, 'n', sizeof names);
    if (has_end)
        memcpy(names + length, "/\n", 2);
    put(&bytes, "!<arch>\n", 8);
    put_member(&bytes, "//", names, has_end ? sizeof names : length);
    put_member(&bytes, "/0", "x", 1);
    ck_assert_int_eq(cairn_archive_open_memory(bytes.text, bytes.size, NULL, &archive, &error),
                     CAIRN_OK);
    enum cairn_status status = cairn_archive_next(archive, &member, &error);
    if (status == CAIRN_OK)
        ck_assert_uint_eq(strlen(member.name), length);
    cairn_archive_destroy(archive);
    return status;
}

START_TEST(name_that_is_longer_than_a_path_is_corrupt)
{
    ck_assert_int_eq(read_name_of(4095, true), CAIRN_OK);
    ck_assert_int_eq(read_name_of(4097, true), CAIRN_ERROR_CORRUPT);
    ck_assert_int_eq(read_name_of(4094, false), CAIRN_OK);
    ck_assert_int_eq(read_name_of(6000, false), CAIRN_ERROR_CORRUPT);
}
END_TEST

START_TEST(every_prefix_is_read_or_refused)
{
    struct guarded guarded = guard();
    struct bytes archives[] = {gnu_archive(), bsd_archive()};
    for (size_t i = 0; i < 2; i++) {
        for (size_t size = 8; size < archives[i].size; size++) {
            uint64_t sum = 0;
            struct cairn_error error;
            char *bytes = copy_to_end(&guarded, archives[i].text, size);
            enum cairn_status status = read_all(bytes, size, NULL, &sum, &error);
            ck_assert(status == CAIRN_ERROR_TRUNCATED || status == CAIRN_ERROR_NOT_FOUND);
        }
    }
    munmap(guarded.mapping, 2 * guarded.page);
}
END_TEST

START_TEST(changed_bytes_never_crash)
{
    enum { ROUNDS = 20000 };
    unsigned seed = sample_time_seed();
    static const char favourites[] = "0123456789/# \n`";
    struct guarded guarded = guard();
    struct bytes archives[] = {gnu_archive(), bsd_archive()};
    int good = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t sum = 0;
        const struct bytes *archive = &archives[round % 2];
        char *bytes = copy_to_end(&guarded, archive->text, archive->size);
        for (int i = 0; i < 1 + round % 4; i++)
            bytes[8 + (size_t)rand_r(&seed) % (archive->size - 8)] =
                favourites[(size_t)rand_r(&seed) % (sizeof favourites - 1)];
        good += read_all(bytes, archive->size, NULL, &sum, NULL) == CAIRN_ERROR_NOT_FOUND;
    }
    ck_assert_int_gt(good, ROUNDS / 100);
    ck_assert_int_lt(good, ROUNDS);
    munmap(guarded.mapping, 2 * guarded.page);
}
END_TEST

START_TEST(each_allocation_may_fail)
{
    struct bytes bytes = gnu_archive();
    enum cairn_status status = CAIRN_ERROR_MEMORY;
    size_t count = 0;
    for (size_t fail_at = 1; status == CAIRN_ERROR_MEMORY; fail_at++) {
        uint64_t sum = 0;
        struct support_allocator counter = {.fail_at = fail_at};
        struct cairn_allocator allocator = support_counting(&counter);
        status = read_all(bytes.text, bytes.size, &allocator, &sum, NULL);
        ck_assert_uint_eq(counter.outstanding_bytes, 0);
        count = fail_at;
    }
    ck_assert_int_eq(status, CAIRN_ERROR_NOT_FOUND);
    ck_assert_uint_eq(count, 6);
}
END_TEST

/* ---- Thin archives ---- */

static void write_file(const char *folder, const char *name, const void *bytes, size_t size)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, bytes, size), (ssize_t)size);
    close(file);
}

/* Removes a folder and its files. */
static void remove_folder(const char *folder)
{
    static const char *const names[] = {"archive.a", "one", "two", "link"};
    for (size_t i = 0; i < 4; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    ck_assert_int_eq(rmdir(folder), 0);
}

/* Writes an archive with the members "one", "missing", and the file "two" by its absolute path. */
static void write_thin_archive(const char *folder)
{
    struct bytes bytes = {.size = 0};
    char names[256];
    int size = snprintf(names, sizeof names, "%s/two/\n", folder);
    put(&bytes, "!<thin>\n", 8);
    put_member(&bytes, "//", names, (size_t)size);
    put_header(&bytes, "one/", 5);
    put_header(&bytes, "missing/", 5);
    put_header(&bytes, "/0", 5);
    write_file(folder, "archive.a", bytes.text, bytes.size);
    write_file(folder, "one", "first", 5);
    write_file(folder, "two", "second", 6);
}

static void open_thin(const char *folder, const struct cairn_object_options *options,
                      enum cairn_status *status)
{
    char path[256];
    cairn_archive *archive = NULL;
    struct cairn_archive_member member;
    struct cairn_error error;
    snprintf(path, sizeof path, "%s/archive.a", folder);
    *status = cairn_archive_open(path, options, &archive, &error);
    if (*status == CAIRN_OK)
        *status = cairn_archive_next(archive, &member, &error);
    if (*status == CAIRN_OK) {
        ck_assert_str_eq(member.name, "one");
        ck_assert_uint_eq(member.size, 5);
        ck_assert_mem_eq(member.bytes, "first", 5);
        *status = cairn_archive_next(archive, &member, &error);
        ck_assert_int_ne(*status, CAIRN_OK);
        if (*status == CAIRN_ERROR_SYSTEM) {
            ck_assert_int_eq(error.system_error, ENOENT);
            ck_assert_ptr_nonnull(strstr(error.message, "'missing'"));
            *status = cairn_archive_next(archive, &member, &error);
        }
    }
    if (*status == CAIRN_OK) {
        ck_assert_mem_eq(member.bytes, "second", 6);
        *status = cairn_archive_next(archive, &member, &error);
    }
    cairn_archive_destroy(archive);
}

START_TEST(members_of_thin_archives_are_files)
{
    char folder[] = "/tmp/check_archive.XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    write_thin_archive(folder);
    enum cairn_status status = CAIRN_ERROR_MEMORY;
    size_t fail_at = 0;
    do {
        fail_at++;
        struct support_allocator counter = {.fail_at = fail_at};
        struct cairn_allocator allocator = support_counting(&counter);
        const struct cairn_object_options options = {.allocator = &allocator};
        open_thin(folder, &options, &status);
        ck_assert_uint_eq(counter.outstanding_bytes, 0);
    } while (status == CAIRN_ERROR_MEMORY);
    ck_assert_int_eq(status, CAIRN_ERROR_NOT_FOUND);
    ck_assert_uint_ge(fail_at, 9);
    remove_folder(folder);
}
END_TEST

START_TEST(file_of_an_earlier_member_is_refused)
{
    char folder[] = "/tmp/check_archive.XXXXXX";
    char path[256];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    struct bytes bytes = {.size = 0};
    put(&bytes, "!<thin>\n", 8);
    put_member(&bytes, "//", "./one/\n", 7);
    put_header(&bytes, "one/", 5);
    put_header(&bytes, "/0", 5);
    put_header(&bytes, "link/", 5);
    put_header(&bytes, "two/", 6);
    write_file(folder, "archive.a", bytes.text, bytes.size);
    write_file(folder, "one", "first", 5);
    write_file(folder, "two", "second", 6);
    snprintf(path, sizeof path, "%s/link", folder);
    ck_assert_int_eq(symlink("one", path), 0);
    static const enum cairn_status expected[] = {CAIRN_OK, CAIRN_ERROR_CORRUPT, CAIRN_ERROR_CORRUPT,
                                                 CAIRN_OK, CAIRN_ERROR_NOT_FOUND};
    cairn_archive *archive;
    struct cairn_archive_member member;
    struct cairn_error error;
    snprintf(path, sizeof path, "%s/archive.a", folder);
    ck_assert_int_eq(cairn_archive_open(path, NULL, &archive, &error), CAIRN_OK);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        ck_assert_int_eq(cairn_archive_next(archive, &member, &error), expected[i]);
        if (expected[i] == CAIRN_ERROR_CORRUPT)
            ck_assert_ptr_nonnull(strstr(error.message, "an earlier member is the same file"));
    }
    cairn_archive_destroy(archive);
    remove_folder(folder);
}
END_TEST

/* ---- Files in memory ---- */

struct memory_file {
    const char *path;
    const void *bytes;
    size_t size;
};

struct memory_files {
    struct memory_file files[4];
    size_t count;
    size_t open_count;
    size_t opened; /* number of calls that found a file */
};

static bool open_in_memory(void *user, const char *path, struct cairn_file_bytes *file)
{
    struct memory_files *files = user;
    for (size_t i = 0; i < files->count; i++) {
        if (strcmp(files->files[i].path, path) != 0)
            continue;
        *file = (struct cairn_file_bytes){files->files[i].bytes, files->files[i].size,
                                          &files->files[i]};
        files->open_count++;
        files->opened++;
        return true;
    }
    return false;
}

static void close_in_memory(void *user, const struct cairn_file_bytes *file)
{
    struct memory_files *files = user;
    const struct memory_file *opened = file->handle;
    ck_assert_ptr_eq(file->bytes, opened->bytes);
    files->open_count--;
}

static struct cairn_object_options memory_options(struct memory_files *files)
{
    return (struct cairn_object_options){.files = {open_in_memory, close_in_memory, files}};
}

START_TEST(members_of_thin_archives_are_opened_by_the_hook)
{
    struct bytes bytes = {.size = 0};
    put(&bytes, "!<thin>\n", 8);
    put_member(&bytes, "//", "/elsewhere/two/\n", 16);
    put_header(&bytes, "one/", 5);
    put_header(&bytes, "missing/", 5);
    put_header(&bytes, "/0", 5);
    struct memory_files files = {
        .files = {{"folder/archive.a", bytes.text, bytes.size},
                  {"folder/one", "first", 5},
                  {"/elsewhere/two", "second", 6}},
        .count = 3,
    };
    const struct cairn_object_options options = memory_options(&files);
    enum cairn_status status;
    open_thin("folder", &options, &status);
    ck_assert_int_eq(status, CAIRN_ERROR_NOT_FOUND);
    ck_assert_uint_eq(files.opened, 3);
    ck_assert_uint_eq(files.open_count, 0);
}
END_TEST

/* ---- Names in thin archives ---- */

/* Reads an archive that ends at a page without access. Returns the status that ended the loop. */
static enum cairn_status read_thin(const struct guarded *guarded, const struct bytes *bytes,
                                   struct cairn_error *error)
{
    const char *copy = copy_to_end(guarded, bytes->text, bytes->size);
    struct memory_files files = {.files = {{"archive.a", copy, bytes->size}}, .count = 1};
    const struct cairn_object_options options = memory_options(&files);
    cairn_archive *archive = NULL;
    struct cairn_archive_member member;
    enum cairn_status status = cairn_archive_open("archive.a", &options, &archive, error);
    uint64_t failed_at = UINT64_MAX;
    /* Continues after members whose files are not found. */
    while (status == CAIRN_OK || (status == CAIRN_ERROR_SYSTEM && error->offset != failed_at)) {
        failed_at = status == CAIRN_OK ? UINT64_MAX : error->offset;
        status = cairn_archive_next(archive, &member, error);
    }
    cairn_archive_destroy(archive);
    return status;
}

/* The length of such a name was once not bounded, so the message contained bytes after the
 * archive. */
START_TEST(bsd_names_in_thin_archives_are_corrupt)
{
    static const char *const names[] = {"#1/1", "#1/20", "#1/4096", "#1/9999999999999"};
    static const size_t sizes[] = {0, 20, 9999999999};
    struct guarded guarded = guard();
    for (size_t i = 0; i < 4; i++) {
        for (size_t j = 0; j < 3; j++) {
            struct bytes bytes = {.size = 0};
            struct cairn_error error;
            put(&bytes, "!<thin>\n", 8);
            put_header(&bytes, names[i], sizes[j]);
            ck_assert_int_eq(read_thin(&guarded, &bytes, &error), CAIRN_ERROR_CORRUPT);
            ck_assert_uint_eq(error.offset, 8);
        }
    }
    munmap(guarded.mapping, 2 * guarded.page);
}
END_TEST

START_TEST(random_thin_archives_stay_inside)
{
    static const char *const names[] = {"/", "//", "/0", "/99999", "#1/7", "x/", "", "__.SYMDEF"};
    static const size_t sizes[] = {0, 3, 59, 60, 61, 999, 9999999999};
    static const char texts[] = "/\n#1 a0";
    unsigned seed = sample_time_seed();
    struct guarded guarded = guard();
    for (int round = 0; round < 20000; round++) {
        struct bytes bytes = {.size = 0};
        struct cairn_error error;
        put(&bytes, "!<thin>\n", 8);
        for (int i = rand_r(&seed) % 4 + 1; i-- > 0;) {
            put_header(&bytes, names[rand_r(&seed) % 8], sizes[rand_r(&seed) % 7]);
            for (int j = rand_r(&seed) % 4 > 0 ? 0 : rand_r(&seed) % 70; j-- > 0;)
                put(&bytes, texts + rand_r(&seed) % 7, 1);
        }
        ck_assert_int_ne(read_thin(&guarded, &bytes, &error), CAIRN_OK);
        ck_assert_uint_lt(strlen(error.message), sizeof error.message);
    }
    munmap(guarded.mapping, 2 * guarded.page);
}
END_TEST

/* ---- A real one ---- */

START_TEST(real_archive_agrees_with_libelf)
{
    static const char path[] = "libcairn.a";
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return; /* the library is in another folder */
    elf_version(EV_CURRENT);
    Elf *whole = elf_begin(file, ELF_C_READ, NULL);
    ck_assert_int_eq(elf_kind(whole), ELF_K_AR);
    cairn_archive *archive;
    struct cairn_archive_member member;
    struct cairn_error error;
    ck_assert_int_eq(cairn_archive_open(path, NULL, &archive, &error), CAIRN_OK);
    size_t count = 0;
    Elf_Cmd command = ELF_C_READ;
    for (Elf *elf; (elf = elf_begin(file, command, whole)) != NULL; elf_end(elf)) {
        command = elf_next(elf);
        const Elf_Arhdr *header = elf_getarhdr(elf);
        if (header == NULL || header->ar_name[0] == '/')
            continue;
        if (cairn_archive_next(archive, &member, &error) != CAIRN_OK)
            ck_abort_msg("%s", error.message);
        ck_assert_str_eq(member.name, header->ar_name);
        ck_assert_uint_eq(member.size, (size_t)header->ar_size);
        cairn_object *object;
        ck_assert_int_eq(cairn_object_open_memory(member.bytes, member.size, NULL, &object, &error),
                         CAIRN_OK);
        ck_assert(cairn_object_header(object).is_relocatable);
        cairn_object_destroy(object);
        count++;
    }
    ck_assert_int_eq(cairn_archive_next(archive, &member, &error), CAIRN_ERROR_NOT_FOUND);
    ck_assert_uint_gt(count, 20);
    cairn_archive_destroy(archive);
    elf_end(whole);
    close(file);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("archive");
    TCase *archives = tcase_create("archives");
    tcase_set_timeout(archives, 120);
    tcase_add_test(archives, gnu_names_are_read);
    tcase_add_test(archives, bsd_names_are_read);
    tcase_add_test(archives, empty_archive_has_no_members);
    tcase_add_test(archives, other_files_are_refused);
    tcase_add_test(archives, arguments_are_checked);
    tcase_add_test(archives, truncated_members_are_named);
    tcase_add_test(archives, damaged_headers_are_corrupt);
    tcase_add_test(archives, name_outside_of_the_table_is_corrupt);
    tcase_add_test(archives, name_that_is_longer_than_a_path_is_corrupt);
    tcase_add_test(archives, every_prefix_is_read_or_refused);
    tcase_add_test(archives, changed_bytes_never_crash);
    tcase_add_test(archives, each_allocation_may_fail);
    tcase_add_test(archives, members_of_thin_archives_are_files);
    tcase_add_test(archives, file_of_an_earlier_member_is_refused);
    tcase_add_test(archives, members_of_thin_archives_are_opened_by_the_hook);
    tcase_add_test(archives, bsd_names_in_thin_archives_are_corrupt);
    tcase_add_test(archives, random_thin_archives_stay_inside);
    tcase_add_test(archives, real_archive_agrees_with_libelf);
    suite_add_tcase(suite, archives);
    return sample_run(suite);
}
