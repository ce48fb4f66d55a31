/*
 * Reads the members of archives, each of which follows a header of 60 characters.
 *
 * libelf also reads archives, but it does not report which member is truncated nor at which offset,
 * and it does not support thin archives.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/array.h"
#include "base/error.h"
#include "base/hash_set.h"
#include "file/contents.h"

#include <ar.h>
#include <cairn/archive.h>
#include <stdbool.h>
#include <string.h>

#define THIN_MAGIC "!<thin>\n"

enum {
    MAGIC_BYTES = SARMAG,
    HEADER_BYTES = sizeof(struct ar_hdr),
    /* As for paths of Linux. Many members may refer to one name, so that their names can be far
     * longer in total than the archive. */
    LONG_NAME_BYTES_MAX = 4096
};

/* A file, however it is named. */
struct file_identity {
    uint64_t device;
    uint64_t inode;
};

struct cairn_archive {
    struct cairn_allocator allocator;
    struct cairn_file_hook files;
    struct image image;
    bool is_thin;
    uint64_t position;      /* offset of the next header */
    const char *long_names; /* table of long names; NULL if not yet found */
    size_t long_names_size;
    char *name;          /* name of the last member returned */
    size_t name_size;    /* bytes, including the NUL */
    struct image member; /* file of the last member, in a thin archive */
    /* The files of the members of a thin archive; the set is initialised with the first file. */
    struct file_identity *seen;
    size_t seen_capacity;
    struct hash_set seen_set;
    char *folder;       /* thin archive: folder of the archive, with a trailing slash; or NULL */
    size_t folder_size; /* bytes, without a NUL */
};

/* Characters without a terminating NUL. */
struct text {
    const char *start;
    size_t length;
};

/* A decoded header. */
struct header {
    uint64_t offset;
    struct text name; /* name field, without trailing spaces */
    uint64_t size;    /* size field, in bytes */
    const uint8_t *bytes;
    uint64_t bytes_left; /* from `bytes` to the end of the archive */
};

/* ---- Opening ---- */

/* Stores the folder of a thin archive, to whose members the paths in it are relative. `path` is
 * NULL for an archive in memory. */
static enum cairn_status find_folder(cairn_archive *archive, const char *path,
                                     struct cairn_error *error)
{
    if (path == NULL)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "this is a thin archive, whose members are separate files: open it by its "
                         "path");
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return CAIRN_OK;
    size_t size = (size_t)(slash - path) + 1;
    archive->folder = memory_new(&archive->allocator, size, 1);
    if (archive->folder == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a path");
    memcpy(archive->folder, path, size);
    archive->folder_size = size;
    return CAIRN_OK;
}

/* Checks that the image begins as an archive does. */
static enum cairn_status check_magic(cairn_archive *archive, struct cairn_error *error)
{
    const struct image *image = &archive->image;
    if (image->size == 0)
        return error_set(error, CAIRN_ERROR_TRUNCATED, 0, "the file is empty");
    if (image->size >= MAGIC_BYTES) {
        enum cairn_status status = image_load(image, 0, MAGIC_BYTES, error);
        if (status != CAIRN_OK)
            return status;
        archive->is_thin = memcmp(image->bytes, THIN_MAGIC, MAGIC_BYTES) == 0;
        if (archive->is_thin || memcmp(image->bytes, ARMAG, MAGIC_BYTES) == 0)
            return CAIRN_OK;
    }
    return error_set(error, CAIRN_ERROR_CORRUPT, 0, "this is not an archive");
}

/* Opens the file at `path` or, if that is NULL, `image`. */
static enum cairn_status open_image(const char *path, const struct image *image,
                                    const struct cairn_object_options *options,
                                    cairn_archive **archive, struct cairn_error *error)
{
    struct cairn_allocator allocator =
        memory_allocator(options == NULL ? NULL : options->allocator);
    cairn_archive *opened = memory_new(&allocator, 1, sizeof *opened);
    if (opened == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for an archive");
    opened->allocator = allocator;
    opened->image = *image;
    opened->position = MAGIC_BYTES;
    if (options != NULL)
        opened->files = options->files;
    enum cairn_status status =
        image_open(path, &opened->files, &opened->allocator, &opened->image, error);
    if (status == CAIRN_OK)
        status = check_magic(opened, error);
    if (status == CAIRN_OK && opened->is_thin)
        status = find_folder(opened, path, error);
    if (status == CAIRN_OK)
        *archive = opened;
    else
        cairn_archive_destroy(opened);
    return status;
}

enum cairn_status cairn_archive_open(const char *path, const struct cairn_object_options *options,
                                     cairn_archive **archive, struct cairn_error *error)
{
    if (path == NULL || archive == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_archive_open: `%s` is NULL",
                         path == NULL ? "path" : "archive");
    return open_image(path, &(struct image){0}, options, archive, error);
}

enum cairn_status cairn_archive_open_memory(const void *bytes, size_t size,
                                            const struct cairn_object_options *options,
                                            cairn_archive **archive, struct cairn_error *error)
{
    if ((bytes == NULL && size > 0) || archive == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_archive_open_memory: `%s` is NULL",
                         archive == NULL ? "archive" : "bytes");
    return open_image(NULL, &(struct image){.bytes = bytes, .size = size}, options, archive, error);
}

static void release_member(cairn_archive *archive)
{
    image_close(&archive->member, &archive->allocator);
    memory_free(&archive->allocator, archive->name, archive->name_size);
    archive->member = (struct image){0};
    archive->name = NULL;
    archive->name_size = 0;
}

void cairn_archive_destroy(cairn_archive *archive)
{
    if (archive == NULL)
        return;
    struct cairn_allocator allocator = archive->allocator;
    release_member(archive);
    memory_free(&allocator, archive->seen, archive->seen_capacity * sizeof *archive->seen);
    hash_set_release(&archive->seen_set, &allocator);
    memory_free(&allocator, archive->folder, archive->folder_size);
    image_close(&archive->image, &allocator);
    memory_free(&allocator, archive, sizeof *archive);
}

/* ---- Headers ---- */

static struct text trim(const char *start, size_t length)
{
    while (length > 0 && start[length - 1] == ' ')
        length--;
    return (struct text){start, length};
}

static bool is_text(struct text text, const char *expected)
{
    return text.length == strlen(expected) && memcmp(text.start, expected, text.length) == 0;
}

/* Removes `prefix` from the start of the text. Returns false if the text does not begin with it. */
static bool take_prefix(struct text *text, const char *prefix)
{
    size_t length = strlen(prefix);
    if (text->length < length || memcmp(text->start, prefix, length) != 0)
        return false;
    *text = (struct text){text->start + length, text->length - length};
    return true;
}

/* Reads a decimal number. The result cannot overflow, because it has at most 15 digits. */
static bool read_number(struct text text, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < text.length; i++) {
        if (text.start[i] < '0' || text.start[i] > '9')
            return false;
        *number = *number * 10 + (uint64_t)(text.start[i] - '0');
    }
    return text.length > 0;
}

static enum cairn_status read_header(const cairn_archive *archive, struct header *header,
                                     struct cairn_error *error)
{
    uint64_t left = archive->image.size - archive->position;
    struct ar_hdr raw;
    if (left < HEADER_BYTES)
        return error_set(error, CAIRN_ERROR_TRUNCATED, archive->position,
                         "the archive ends inside the header of a member at byte %llu",
                         (unsigned long long)archive->position);
    enum cairn_status status =
        image_load(&archive->image, (size_t)archive->position, HEADER_BYTES, error);
    if (status != CAIRN_OK)
        return status;
    const uint8_t *bytes = archive->image.bytes + archive->position;
    memcpy(&raw, bytes, sizeof raw);
    *header = (struct header){
        .offset = archive->position,
        .name = trim((const char *)bytes, sizeof raw.ar_name),
        .bytes = bytes + HEADER_BYTES,
        .bytes_left = left - HEADER_BYTES,
    };
    if (memcmp(raw.ar_fmag, ARFMAG, sizeof raw.ar_fmag) != 0 ||
        !read_number(trim(raw.ar_size, sizeof raw.ar_size), &header->size))
        return error_set(error, CAIRN_ERROR_CORRUPT, archive->position,
                         "there is no valid header of a member at byte %llu of the archive",
                         (unsigned long long)archive->position);
    return CAIRN_OK;
}

/* ---- Names ---- */

/* Finds a name in the table of long names, where it ends before a slash and a newline. `name` is
 * the field of the header: a slash and an offset in the table. Returns false, and does not change
 * `*name`, if the name is not there or is too long. */
static bool find_long_name(const cairn_archive *archive, struct text *name)
{
    struct text digits = *name;
    uint64_t offset;
    if (archive->long_names == NULL || !take_prefix(&digits, "/") ||
        !read_number(digits, &offset) || offset >= archive->long_names_size)
        return false;
    struct text found = {archive->long_names + offset, archive->long_names_size - offset};
    bool may_be_long = found.length > LONG_NAME_BYTES_MAX;
    const char *end =
        memchr(found.start, '\n', may_be_long ? LONG_NAME_BYTES_MAX + 1 : found.length);
    if (end == NULL && may_be_long)
        return false;
    if (end != NULL)
        found.length = (size_t)(end - found.start);
    if (found.length > 0 && found.start[found.length - 1] == '/')
        found.length--;
    *name = found;
    return true;
}

/* Finds the name of a member, whose bytes must have been loaded. BSD's archives store it at the
 * start of the member's bytes, padded with zeros; it is removed from there. */
static enum cairn_status find_name(const cairn_archive *archive, struct header *header,
                                   struct text *name, struct cairn_error *error)
{
    struct text digits = header->name;
    uint64_t length;
    *name = header->name;
    if (name->length > 0 && name->start[0] == '/') {
        if (!find_long_name(archive, name))
            return error_set(error, CAIRN_ERROR_CORRUPT, header->offset,
                             "the name of the member at byte %llu is not in the archive, or has %d "
                             "bytes or more",
                             (unsigned long long)header->offset, LONG_NAME_BYTES_MAX);
    } else if (take_prefix(&digits, "#1/") && read_number(digits, &length)) {
        if (archive->is_thin)
            return error_set(error, CAIRN_ERROR_CORRUPT, header->offset,
                             "the member at byte %llu has a name as BSD's archives have, where "
                             "thin archives have no bytes",
                             (unsigned long long)header->offset);
        if (length > header->size)
            length = header->size;
        const char *start = (const char *)header->bytes;
        *name = (struct text){start, strnlen(start, length)};
        header->bytes += length;
        header->size -= length;
    } else if (name->length > 0 && name->start[name->length - 1] == '/') {
        name->length--;
    }
    return CAIRN_OK;
}

/* ---- Members ---- */

/* Makes the bytes after a header valid. */
static enum cairn_status load_bytes(const cairn_archive *archive, const struct header *header,
                                    struct cairn_error *error)
{
    if (header->size <= header->bytes_left)
        return image_load(&archive->image, (size_t)header->offset + HEADER_BYTES,
                          (size_t)header->size, error);
    struct text name = header->name;
    (void)find_long_name(archive, &name);
    return error_set(error, CAIRN_ERROR_TRUNCATED, header->offset,
                     "the archive ends inside its member '%.*s' at byte %llu: that has %llu bytes, "
                     "%llu are there",
                     (int)(name.length < 100 ? name.length : 100), name.start,
                     (unsigned long long)header->offset, (unsigned long long)header->size,
                     (unsigned long long)header->bytes_left);
}

/* Moves to the next header, after the member's bytes if there are any. Members begin at even
 * offsets. */
static void move_on(cairn_archive *archive, const struct header *header, bool has_bytes)
{
    uint64_t next = header->offset + HEADER_BYTES;
    if (has_bytes)
        next += header->size + header->size % 2;
    archive->position = next < archive->image.size ? next : archive->image.size;
}

/* Finds the next header of a member. It stores the table of long names and skips symbol tables. */
static enum cairn_status find_member(cairn_archive *archive, struct header *header,
                                     struct cairn_error *error)
{
    while (archive->position < archive->image.size) {
        enum cairn_status status = read_header(archive, header, error);
        if (status != CAIRN_OK)
            return status;
        struct text name = header->name;
        bool is_table = is_text(name, "//");
        if (!is_table && !is_text(name, "/") && !is_text(name, "/SYM64/") &&
            !take_prefix(&name, "__.SYMDEF"))
            return CAIRN_OK;
        status = load_bytes(archive, header, error);
        if (status != CAIRN_OK)
            return status;
        if (is_table) {
            archive->long_names = (const char *)header->bytes;
            archive->long_names_size = header->size;
        }
        move_on(archive, header, true);
    }
    return error_set(error, CAIRN_ERROR_NOT_FOUND, archive->position,
                     "the archive has no more members");
}

/* ---- Files of thin archives ---- */

/* Refuses a file that an earlier member has. Otherwise a small archive that names one large file
 * many times would take as much time as an archive that contains it so often. */
static enum cairn_status check_not_seen(cairn_archive *archive, struct cairn_error *error)
{
    const struct image *member = &archive->member;
    if (member->origin != IMAGE_READ)
        return CAIRN_OK;
    const struct cairn_allocator *allocator = &archive->allocator;
    struct hash_set *set = &archive->seen_set;
    if (set->places == NULL && !hash_set_init(set, allocator, 0))
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for the files of an archive");
    const struct file_identity file = {member->device, member->inode};
    uint32_t hash = (uint32_t)(hash_words(&set->key, &file, sizeof file) >> 32);
    for (const struct hash_place *place = hash_set_first(set, hash); place->number != 0;
         place = hash_set_next(set, place))
        if (memcmp(&archive->seen[place->number - 1], &file, sizeof file) == 0)
            return error_set(error, CAIRN_ERROR_CORRUPT, 0, "an earlier member is the same file");
    struct file_identity *seen = array_reserve(allocator, archive->seen, set->count, 1,
                                               &archive->seen_capacity, sizeof *seen);
    if (seen != NULL)
        archive->seen = seen;
    if (seen == NULL || !hash_set_add(set, allocator, hash, (uint32_t)set->count))
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for the files of an archive");
    seen[set->count - 1] = file;
    return CAIRN_OK;
}

/* Opens the file that archive->name names. The message of an error names the member. */
static enum cairn_status open_thin_member(cairn_archive *archive, const struct header *header,
                                          struct cairn_error *error)
{
    size_t folder_size = archive->name[0] == '/' ? 0 : archive->folder_size;
    size_t size = folder_size + archive->name_size;
    char *path = memory_new(&archive->allocator, size, 1);
    if (path == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a path");
    if (folder_size > 0)
        memcpy(path, archive->folder, folder_size);
    memcpy(path + folder_size, archive->name, archive->name_size);
    struct cairn_error cause = {0};
    struct image *member = &archive->member;
    enum cairn_status status =
        image_open(path, &archive->files, &archive->allocator, member, &cause);
    if (status == CAIRN_OK)
        status = check_not_seen(archive, &cause);
    if (status == CAIRN_OK)
        status = image_load(member, 0, member->size, &cause);
    memory_free(&archive->allocator, path, size);
    if (status == CAIRN_OK || error == NULL)
        return status;
    error_set(error, status, header->offset, "member '%s' of the thin archive: %s", archive->name,
              cause.message);
    error->system_error = cause.system_error;
    return status;
}

enum cairn_status cairn_archive_next(cairn_archive *archive, struct cairn_archive_member *member,
                                     struct cairn_error *error)
{
    if (archive == NULL || member == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_archive_next: `%s` is NULL",
                         archive == NULL ? "archive" : "member");
    release_member(archive);
    struct header header;
    struct text name;
    enum cairn_status status = find_member(archive, &header, error);
    if (status == CAIRN_OK && !archive->is_thin)
        status = load_bytes(archive, &header, error);
    if (status != CAIRN_OK)
        return status;
    const struct header whole = header;
    status = find_name(archive, &header, &name, error);
    if (status != CAIRN_OK)
        return status;
    archive->name = memory_new(&archive->allocator, name.length + 1, 1);
    if (archive->name == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a member's name");
    archive->name_size = name.length + 1;
    memcpy(archive->name, name.start, name.length);
    move_on(archive, &whole, !archive->is_thin);
    if (archive->is_thin)
        status = open_thin_member(archive, &header, error);
    else
        archive->member = (struct image){.bytes = header.bytes, .size = header.size};
    if (status != CAIRN_OK)
        return status;
    *member = (struct cairn_archive_member){
        .name = archive->name,
        .bytes = archive->member.bytes,
        .size = archive->member.size,
        .offset = header.offset,
    };
    return CAIRN_OK;
}
