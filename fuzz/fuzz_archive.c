/*
 * Fuzzes archives. Reading an archive twice, from memory and through the file hook, gives the same
 * members. Members are inside of the archive and follow each other in order. Errors persist, except
 * those of members of thin archives. The path of a thin member consists of the archive's folder and
 * the member's name.
 *
 * Input: flags (raw or made; thin), then the archive, or what members are made from: the kind of
 * name, a number in it, and a size that may be wrong.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz/fuzz.h"

#include <cairn/archive.h>

enum { MADE_BYTES_MAX = 1 << 14, HEADER_BYTES = 60, IS_MADE = 1, IS_THIN = 2 };

static struct {
    uint8_t bytes[MADE_BYTES_MAX];
    size_t size;
} made;

static void put(const void *bytes, size_t size)
{
    require(made.size + size <= MADE_BYTES_MAX);
    memcpy(made.bytes + made.size, bytes, size);
    made.size += size;
}

/* The last name looks like a BSD name, but its length is not a number. */
static const char *const names[] = {
    "/",     "//", "__.SYMDEF SORTED", "/SYM64/", "short.o/",   "bsd.o", "/%u",
    "#1/%u", "/",  "with space/",      "../%u/",  "/absolute/", "/%u:",  "#1/%ux"};

static void make_member(struct fuzz_input *input, bool is_thin)
{
    static const char long_names[] = "a_long_name_of_it.o/\n/absolute/name/\nfolder/x/\n\n/\n";
    char name[32];
    char header[HEADER_BYTES + 1];
    const char *format = names[fuzz_u8(input) % (sizeof names / sizeof *names)];
    unsigned number = fuzz_u8(input);
    uint8_t what = fuzz_u8(input);
    size_t size = what & 31;
    bool has_bytes = !is_thin || strcmp(format, "/") == 0 || strcmp(format, "//") == 0;
    if (strcmp(format, "//") == 0 && (what & 32) == 0)
        size = sizeof long_names - 1;
    snprintf(name, sizeof name, format, number);
    int length = snprintf(header, sizeof header, "%-16.16s%-12d%-6d%-6d%-8o%-10zu`\n", name, 0, 0,
                          0, 0644U, (what & 192) == 192 ? (size_t)number << 8 : size);
    require(length == HEADER_BYTES);
    put(header, HEADER_BYTES);
    if (has_bytes && strcmp(format, "//") == 0 && (what & 32) == 0)
        put(long_names, size);
    else
        for (size_t i = 0; has_bytes && i < size; i++)
            put(&(char){(char)fuzz_u8(input)}, 1);
    if (has_bytes && size % 2 != 0)
        put("\n", 1);
}

/* ---- Files of the hook ---- */

static const char archive_path[] = "/folder/lib.a";
static struct cairn_file_bytes archive_file;
static int open_count;

static bool open_file(void *user, const char *path, struct cairn_file_bytes *file)
{
    size_t length = strlen(path);
    (void)user;
    /* Some members are missing; the size of the others is the length of their path. */
    if (strcmp(path, archive_path) != 0 && length % 4 == 3)
        return false;
    require(path[0] == '/');
    file->bytes = strdup(path);
    require(file->bytes != NULL);
    file->size = length;
    file->handle = (void *)(uintptr_t)file->bytes;
    if (strcmp(path, archive_path) == 0) {
        file->bytes = archive_file.bytes;
        file->size = archive_file.size;
    }
    open_count++;
    return true;
}

static void close_file(void *user, const struct cairn_file_bytes *file)
{
    (void)user;
    open_count--;
    free(file->handle);
}

static const struct cairn_object_options options = {
    .files = {.open = open_file, .close = close_file}};

/* ---- Comparing ---- */

static bool is_in_archive(const struct cairn_archive_member *member)
{
    const uint8_t *begin = archive_file.bytes;
    return member->offset + HEADER_BYTES <= archive_file.size &&
           (member->size == 0 || (member->bytes >= begin + member->offset + HEADER_BYTES &&
                                  member->bytes + member->size <= begin + archive_file.size));
}

/* The contents of each of the hook's files are its path. */
static void check_thin_member(const struct cairn_archive_member *member)
{
    char path[2 * MADE_BYTES_MAX];
    if (strcmp(member->name, archive_path) == 0 || strcmp(member->name, archive_path + 8) == 0 ||
        strlen(member->name) >= MADE_BYTES_MAX)
        return;
    snprintf(path, sizeof path, "%s%s", member->name[0] == '/' ? "" : "/folder/", member->name);
    require(strlen(path) == member->size && memcmp(path, member->bytes, member->size) == 0);
}

static void compare_members(cairn_archive *left, cairn_archive *right, bool is_thin)
{
    uint64_t next = 0;
    for (;;) {
        struct cairn_archive_member members[2];
        struct cairn_error errors[2];
        enum cairn_status status = cairn_archive_next(left, &members[0], &errors[0]);
        require(cairn_archive_next(right, &members[1], &errors[1]) == status);
        if (status != CAIRN_OK) {
            require(strcmp(errors[0].message, errors[1].message) == 0);
            require(errors[0].offset == errors[1].offset);
            if (is_thin && status == CAIRN_ERROR_SYSTEM)
                continue;
            require(cairn_archive_next(left, &members[0], NULL) == status);
            return;
        }
        require(members[0].offset >= next && members[0].offset == members[1].offset);
        require(strcmp(members[0].name, members[1].name) == 0);
        require(members[0].size == members[1].size);
        require(members[0].size == 0 ||
                memcmp(members[0].bytes, members[1].bytes, members[0].size) == 0);
        require(is_thin || is_in_archive(&members[0]));
        if (is_thin)
            check_thin_member(&members[0]);
        next = members[0].offset + HEADER_BYTES;
    }
}

static void compare(bool is_thin)
{
    cairn_archive *archives[2] = {NULL, NULL};
    struct cairn_error errors[2];
    enum cairn_status status = cairn_archive_open(archive_path, &options, &archives[0], &errors[0]);
    if (is_thin) {
        require(cairn_archive_open_memory(archive_file.bytes, archive_file.size, NULL, &archives[1],
                                          NULL) == CAIRN_ERROR_UNSUPPORTED);
        require(cairn_archive_open(archive_path, &options, &archives[1], &errors[1]) == status);
    } else {
        require(cairn_archive_open_memory(archive_file.bytes, archive_file.size, NULL, &archives[1],
                                          &errors[1]) == status);
    }
    if (status == CAIRN_OK)
        compare_members(archives[0], archives[1], is_thin);
    cairn_archive_destroy(archives[0]);
    cairn_archive_destroy(archives[1]);
    require(open_count == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char thin_magic[] = "!<thin>\n";
    struct fuzz_input input = {data, size};
    uint8_t flags = fuzz_u8(&input);
    archive_file = (struct cairn_file_bytes){.bytes = input.at, .size = input.left};
    if ((flags & IS_MADE) != 0) {
        made.size = 0;
        put((flags & IS_THIN) != 0 ? thin_magic : "!<arch>\n", 8);
        while (input.left > 0 && made.size < MADE_BYTES_MAX - 256)
            make_member(&input, (flags & IS_THIN) != 0);
        archive_file = (struct cairn_file_bytes){.bytes = made.bytes, .size = made.size};
    }
    void *copy = fuzz_copy(archive_file.bytes, archive_file.size);
    archive_file.bytes = copy;
    compare(archive_file.size >= 8 && memcmp(copy, thin_magic, 8) == 0);
    free(copy);
    return 0;
}
