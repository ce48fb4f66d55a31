/*
 * Separate debug files: finds the file that belongs to an object, and merges its sections with the
 * object's.
 *
 * A file belongs to an object if both have the same build ID. If one of them has no build ID, the
 * file belongs to the object if its checksum is the one in the object's .gnu_debuglink. That
 * section contains a file name with a NUL, zeros up to a multiple of 4, and the CRC-32 of the whole
 * debug file. The build ID is in a note:
 *
 *     4 bytes: size of the name | 4: size of the description | 4: type | name | description
 *
 * The name and the description are both padded to the alignment.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "base/memory.h"
#include "file/object.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- Build IDs and links ---- */

enum { NOTE_HEADER_BYTES = 12, WIDE_ALIGNMENT = 8, NARROW_ALIGNMENT = 4 };

static const char gnu[] = "GNU";

/* Takes the next `size` bytes from `left`. Also skips the padding after them, or the part of it
 * that is present. */
static bool take(struct file_bytes *left, uint32_t size, unsigned alignment,
                 struct file_bytes *taken)
{
    if (size > left->size)
        return false;
    *taken = (struct file_bytes){left->bytes, size};
    uint64_t padded = ((uint64_t)size + alignment - 1) / alignment * alignment;
    size_t step = padded < left->size ? padded : left->size;
    left->bytes += step;
    left->size -= step;
    return true;
}

static bool find_in_notes(struct file_bytes notes, enum cairn_byte_order order,
                          uint64_t section_alignment, struct file_bytes *id)
{
    unsigned alignment = section_alignment == WIDE_ALIGNMENT ? WIDE_ALIGNMENT : NARROW_ALIGNMENT;
    struct file_bytes header;
    struct file_bytes name;
    while (take(&notes, NOTE_HEADER_BYTES, NARROW_ALIGNMENT, &header) &&
           take(&notes, cairn_load_u32(header.bytes, order), alignment, &name) &&
           take(&notes, cairn_load_u32(header.bytes + 4, order), alignment, id))
        if (cairn_load_u32(header.bytes + 8, order) == NT_GNU_BUILD_ID && id->size > 0 &&
            name.size == sizeof gnu && memcmp(name.bytes, gnu, sizeof gnu) == 0)
            return true;
    return false;
}

/* Segments may overlap, but the total size of those that are read is at most the size of the file.
 * The function therefore takes time proportional to that size. */
struct file_bytes build_id_find(const struct file *file)
{
    struct file_bytes id;
    struct file_bytes notes;
    GElf_Shdr section;
    for (uint32_t index = 1; index < file->section_count; index++)
        if (file_section(file, index, &section) && section.sh_type == SHT_NOTE &&
            file_section_bytes(file, index, &section, &notes, NULL) == CAIRN_OK &&
            find_in_notes(notes, file->byte_order, section.sh_addralign, &id))
            return id;
    size_t count;
    size_t bytes_left = file->image.size;
    GElf_Phdr segment;
    if (elf_getphdrnum(file->elf, &count) != 0)
        count = 0;
    for (size_t i = 0; i < count; i++) {
        if (gelf_getphdr(file->elf, (int)i, &segment) == NULL || segment.p_type != PT_NOTE ||
            segment.p_filesz > bytes_left ||
            file_bytes_at(file, segment.p_offset, segment.p_filesz, &notes, NULL) != CAIRN_OK)
            continue;
        bytes_left -= notes.size;
        if (find_in_notes(notes, file->byte_order, segment.p_align, &id))
            return id;
    }
    return (struct file_bytes){NULL, 0};
}

/* The contents of .gnu_debuglink. */
struct link {
    const char *name; /* NULL if the object has no debug link */
    uint32_t checksum;
};

static struct link find_link(const struct file *file)
{
    GElf_Shdr header;
    struct file_bytes section;
    bool is_found = false;
    for (uint32_t index = 1; index < file->section_count && !is_found; index++)
        is_found = file_section(file, index, &header) && header.sh_type == SHT_PROGBITS &&
                   strcmp(file_section_name(file, &header), ".gnu_debuglink") == 0 &&
                   file_section_bytes(file, index, &header, &section, NULL) == CAIRN_OK;
    if (!is_found)
        return (struct link){0};
    size_t length = strnlen((const char *)section.bytes, section.size);
    size_t place = (length + 4) / 4 * 4; /* offset of the checksum */
    if (length == 0 || place > section.size || section.size - place < 4)
        return (struct link){0};
    return (struct link){
        .name = (const char *)section.bytes,
        .checksum = cairn_load_u32(section.bytes + place, file->byte_order),
    };
}

/* ---- Whether a file belongs to the object ---- */

/* Computes the CRC-32 with polynomial 0xedb88320, four bits at a time. */
static bool find_checksum(const struct image *image, uint32_t *found)
{
    static const uint32_t steps[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
        0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
    };
    uint32_t sum = UINT32_MAX;
    if (image_load(image, 0, image->size, NULL) != CAIRN_OK)
        return false;
    for (size_t i = 0; i < image->size; i++) {
        sum ^= image->bytes[i];
        sum = sum >> 4 ^ steps[sum & 15];
        sum = sum >> 4 ^ steps[sum & 15];
    }
    *found = ~sum;
    return true;
}

static enum cairn_status check_belongs(const cairn_object *object, const cairn_object *other,
                                       struct cairn_error *error)
{
    if (object->file.header.e_machine != other->file.header.e_machine ||
        object->file.byte_order != other->file.byte_order)
        return error_set(error, CAIRN_ERROR_CONFLICT, 0, "the debug file is for another machine");
    struct file_bytes id = build_id_find(&object->file);
    struct file_bytes other_id = build_id_find(&other->file);
    if (id.size > 0 && other_id.size > 0) {
        if (id.size == other_id.size && memcmp(id.bytes, other_id.bytes, id.size) == 0)
            return CAIRN_OK;
        return error_set(error, CAIRN_ERROR_CONFLICT, 0,
                         "the debug file is of another build: the build IDs differ");
    }
    struct link link = find_link(&object->file);
    if (link.name == NULL)
        return error_set(
            error, CAIRN_ERROR_CONFLICT, 0,
            "it is unknown whether the debug file belongs to this file: %s no build ID",
            id.size == 0 ? "this one has" : "the debug file has");
    uint32_t checksum;
    if (!find_checksum(&other->file.image, &checksum) || link.checksum != checksum)
        return error_set(error, CAIRN_ERROR_CONFLICT, 0,
                         "the debug file is of another build: its checksum is not that in "
                         ".gnu_debuglink");
    return CAIRN_OK;
}

/* ---- Searching for the file ---- */

/* What a search looks for, and where. */
struct search {
    cairn_object *object;
    const char *path;
    const char *const *directories;
    struct file_bytes id;
    struct link link;
    char folder[PATH_MAX]; /* folder of the object's file, without symbolic links; "" for "/" */
    struct cairn_error *error;
};

/* Whether both paths lead to the same file: a debug link may name the file that contains it. */
static bool is_same_file(const cairn_object *object, const char *path, const char *other)
{
    if (object->options.files.open != NULL)
        return strcmp(path, other) == 0;
    struct stat status;
    struct stat other_status;
    return stat(path, &status) == 0 && stat(other, &other_status) == 0 &&
           status.st_dev == other_status.st_dev && status.st_ino == other_status.st_ino;
}

static enum cairn_status try_path(const struct search *search, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Sets object->debug_path, and checks that the file there belongs to the object. Errors: NOT_FOUND,
 * MEMORY. */
static enum cairn_status try_path(const struct search *search, const char *format, ...)
{
    cairn_object *object = search->object;
    va_list arguments;
    memory_free(&object->allocator, object->debug_path, object->debug_path_size);
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    object->debug_path_size = length < 0 ? 0 : (size_t)length + 1;
    object->debug_path = memory_new(&object->allocator, object->debug_path_size, 1);
    if (object->debug_path == NULL)
        return error_set(search->error, CAIRN_ERROR_MEMORY, 0, "no memory for a path");
    va_start(arguments, format);
    vsnprintf(object->debug_path, object->debug_path_size, format, arguments);
    va_end(arguments);
    if (is_same_file(object, object->debug_path, search->path))
        return CAIRN_ERROR_NOT_FOUND;
    cairn_object *other;
    enum cairn_status status =
        cairn_object_open(object->debug_path, &object->options, &other, search->error);
    if (status == CAIRN_OK) {
        status = check_belongs(object, other, NULL);
        cairn_object_destroy(other);
    }
    return status == CAIRN_OK || status == CAIRN_ERROR_MEMORY ? status : CAIRN_ERROR_NOT_FOUND;
}

/* Tries all candidates. Errors: NOT_FOUND, MEMORY. */
static enum cairn_status try_all(const struct search *search)
{
    enum { ID_BYTES_MAX = 64 };
    char digits[2 * ID_BYTES_MAX + 1] = "";
    const char *name = search->link.name;
    const char *const *directory = search->directories;
    enum cairn_status status = CAIRN_ERROR_NOT_FOUND;
    bool has_id = search->id.size >= 2 && search->id.size <= ID_BYTES_MAX;
    for (size_t i = 0; has_id && i < search->id.size; i++)
        snprintf(digits + 2 * i, 3, "%02x", search->id.bytes[i]);
    for (; has_id && *directory != NULL && status == CAIRN_ERROR_NOT_FOUND; directory++)
        status = try_path(search, "%s/.build-id/%.2s/%s.debug", *directory, digits, digits + 2);
    if (name == NULL)
        return status;
    if (status == CAIRN_ERROR_NOT_FOUND)
        status = try_path(search, "%s/%s", search->folder, name);
    if (status == CAIRN_ERROR_NOT_FOUND)
        status = try_path(search, "%s/.debug/%s", search->folder, name);
    for (directory = search->directories; *directory != NULL && status == CAIRN_ERROR_NOT_FOUND;
         directory++)
        status = try_path(search, "%s%s/%s", *directory, search->folder, name);
    return status;
}

/* Finds the part of the path before the last slash. If a hook opens the files, the path is not
 * resolved. */
static enum cairn_status find_folder(struct search *search)
{
    if (search->object->options.files.open == NULL) {
        if (realpath(search->path, search->folder) == NULL)
            return error_set_system(search->error, errno, "the file's folder cannot be found");
        *strrchr(search->folder, '/') = '\0';
        return CAIRN_OK;
    }
    const char *slash = strrchr(search->path, '/');
    size_t length = slash == NULL ? 1 : (size_t)(slash - search->path);
    if (length >= sizeof search->folder)
        return error_set_system(search->error, ENAMETOOLONG, "the file's folder cannot be found");
    memcpy(search->folder, slash == NULL ? "." : search->path, length);
    search->folder[length] = '\0';
    return CAIRN_OK;
}

enum cairn_status cairn_object_find_debug_file(cairn_object *object, const char *path,
                                               const char *const *directories, const char **found,
                                               struct cairn_error *error)
{
    static const char *const usual[] = {CAIRN_OBJECT_DEBUG_DIRECTORY, NULL};
    if (object == NULL || path == NULL || found == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_object_find_debug_file: `%s` is NULL",
                         object == NULL ? "object"
                         : path == NULL ? "path"
                                        : "found");
    struct search search = {
        .object = object,
        .path = path,
        .directories = directories == NULL ? usual : directories,
        .id = build_id_find(&object->file),
        .link = find_link(&object->file),
        .error = error,
    };
    enum cairn_status status = find_folder(&search);
    if (status != CAIRN_OK)
        return status;
    status = try_all(&search);
    const char *name = search.link.name;
    if (status == CAIRN_ERROR_NOT_FOUND && name == NULL && search.id.size == 0)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, 0,
                         "the file has neither a build ID nor a .gnu_debuglink to find its debug "
                         "file by");
    if (status == CAIRN_ERROR_NOT_FOUND)
        return error_set(
            error, CAIRN_ERROR_NOT_FOUND, 0, "there is no debug file of this build%s%s%s",
            name == NULL ? "" : " named '", name == NULL ? "" : name, name == NULL ? "" : "'");
    if (status == CAIRN_OK)
        *found = object->debug_path;
    return status;
}

/* ---- Merging the sections ---- */

/* What attaching a debug file does to a section. */
enum { MATCH_REPLACED = 1, MATCH_ADDED };

/* Indexes the names of all sections with bytes in the file, or of all sections without. */
static bool index_sections(const struct file *file, bool with_bytes, const struct hash_key *key,
                           struct name_index *index, const struct cairn_allocator *allocator)
{
    GElf_Shdr header;
    if (!name_index_create(index, file->names, file->section_count, key, allocator))
        return false;
    for (uint32_t i = 1; i < file->section_count; i++)
        if (file_section(file, i, &header) && (header.sh_type != SHT_NOBITS) == with_bytes)
            name_index_add(index, header.sh_name, i);
    name_index_sort(index);
    return true;
}

static enum cairn_status match_sections(cairn_object *object, struct cairn_error *error)
{
    const struct cairn_allocator *allocator = &object->allocator;
    const struct file *own = &object->file;
    const struct file *other = &object->debug_file->file;
    struct hash_key key = hash_key_create(); /* one key, because the hashes are compared */
    struct name_index empty = {.count = 0};
    struct name_index own_bytes = {.count = 0};
    struct name_index other_bytes = {.count = 0};
    enum cairn_status status = CAIRN_OK;
    object->match_count = (size_t)own->section_count + other->section_count;
    object->matches = memory_new(allocator, object->match_count, 1);
    if (object->match_count > 0 &&
        (object->matches == NULL || !index_sections(own, false, &key, &empty, allocator) ||
         !index_sections(own, true, &key, &own_bytes, allocator) ||
         !index_sections(other, true, &key, &other_bytes, allocator)))
        status = error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for the names of sections");
    for (size_t i = 0; i < empty.count && status == CAIRN_OK; i++)
        if (name_index_find_entry(&other_bytes, &empty, &empty.entries[i]) != NULL)
            object->matches[empty.entries[i].number] = MATCH_REPLACED;
    for (size_t i = 0; i < other_bytes.count && status == CAIRN_OK; i++)
        if (name_index_find_entry(&own_bytes, &other_bytes, &other_bytes.entries[i]) == NULL)
            object->matches[own->section_count + other_bytes.entries[i].number] = MATCH_ADDED;
    name_index_release(&empty, allocator);
    name_index_release(&own_bytes, allocator);
    name_index_release(&other_bytes, allocator);
    return budget_explain(&object->budget, "the section table", status, error);
}

bool debug_file_replaces(const cairn_object *object, uint32_t index)
{
    return object->matches != NULL && object->matches[index] == MATCH_REPLACED;
}

bool debug_file_adds(const cairn_object *object, uint32_t index)
{
    return object->matches[object->file.section_count + index] == MATCH_ADDED;
}

void debug_file_release(cairn_object *object)
{
    cairn_object_destroy(object->debug_file);
    memory_free(&object->allocator, object->matches, object->match_count);
    object->debug_file = NULL;
    object->matches = NULL;
    object->match_count = 0;
}

/* ---- Attaching a debug file ---- */

enum cairn_status cairn_object_attach_debug_file(cairn_object *object, const char *path,
                                                 struct cairn_error *error)
{
    if (object == NULL || path == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_object_attach_debug_file: `%s` is NULL",
                         object == NULL ? "object" : "path");
    if (object->debug_file != NULL)
        return error_set(error, CAIRN_ERROR_STATE, 0, "a debug file is attached already");
    if (cairn_object_header(object).is_relocatable)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "relocatable objects have no separate debug files");
    cairn_object *other;
    enum cairn_status status = cairn_object_open(path, &object->options, &other, error);
    if (status != CAIRN_OK)
        return status;
    object->debug_file = other;
    status = check_belongs(object, other, error);
    if (status == CAIRN_OK)
        status = match_sections(object, error);
    if (status == CAIRN_OK)
        names_release(object);
    else
        debug_file_release(object);
    return status;
}
