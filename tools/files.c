/*
 * Opening the objects of a file, which are the members if it is an archive.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/files.h"

#include "tools/command.h"

#include <cairn/archive.h>
#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Sections ---- */

void *list_add(struct list *list, size_t item_bytes)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 64 : 2 * list->capacity;
        void *items = realloc(list->items, capacity * item_bytes);
        if (items == NULL)
            return NULL;
        list->items = items;
        list->capacity = capacity;
    }
    return (char *)list->items + list->count++ * item_bytes;
}

bool visit_sections(const struct input *input, const struct cairn_object_filter *filter,
                    const char *title, visit_section *visit, void *user)
{
    struct cairn_object_section section = {0};
    struct cairn_error error;
    bool is_good = true;
    while (cairn_object_next_section(input->object, filter, &section, &error) == CAIRN_OK)
        is_good = visit(input, &section, user) && is_good;
    if (error.status == CAIRN_ERROR_NOT_FOUND)
        return is_good;
    return complain("%s: %s: %s", input->name, title, error.message);
}

bool visit_named_sections(const struct input *input, const char *name, const char *other_name,
                          visit_section *visit, void *user)
{
    const struct cairn_object_filter filter = {.name = name};
    const struct cairn_object_filter other = {.name = other_name};
    bool is_good = visit_sections(input, &filter, name, visit, user);
    return visit_sections(input, &other, other_name, visit, user) && is_good;
}

void check_address(const cairn_object *object, const struct cairn_object_section *section,
                   size_t offset, struct lost_addresses *lost)
{
    if (!cairn_object_is_relocatable(object) ||
        cairn_object_target_section(object, section, offset) != 0)
        return;
    if (lost->count++ == 0)
        lost->first = offset;
}

bool check_section(const struct input *input, const struct cairn_object_section *section,
                   const struct lost_addresses *lost, const struct cairn_error *error)
{
    if (error->status != CAIRN_OK)
        complain("%s: %s, byte %llu: %s", input->name, section->name,
                 (unsigned long long)error->offset, error->message);
    if (lost->count > 0)
        complain("%s: %s, byte %zu: the address of a function has no relocation to a section, so "
                 "its place is unknown (%zu of them)",
                 input->name, section->name, lost->first, lost->count);
    return lost->count == 0 && error->status == CAIRN_OK;
}

void write_member(struct output *output, const struct input *input)
{
    if (input->is_member)
        output_format(output, HEADING "%s:" PLAIN "\n", input->name);
}

void write_json_member(struct json *json, const struct input *input)
{
    if (input->is_member)
        json_fields(json, "file %s", input->name);
}

bool has_symbol_table(const cairn_object *object)
{
    struct cairn_object_section_header header;
    for (uint32_t i = 1; cairn_object_section_header(object, i, &header); i++)
        if (header.type == SHT_SYMTAB)
            return true;
    return false;
}

/* The arguments of a visit. */
struct visiting {
    const char *path;       /* as the user gave it */
    const char *debug_path; /* may be NULL */
    struct cairn_object_options options;
    visit_input *visit;
    void *user;
};

static bool complain_of_file(const char *name, const struct cairn_error *error)
{
    return complain("%s: %s", name, error->message);
}

/* ---- One object ---- */

/* Returns 0 if the size is unknown. */
static uint64_t size_of_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
}

/* Attaches the debug file. If none was asked for, it is not an error that none exists. */
static bool attach_debug_file(const struct visiting *visiting, struct input *input,
                              const char *path)
{
    struct cairn_error error;
    const char *found = visiting->debug_path;
    if (found == NULL) {
        if (has_symbol_table(input->object) ||
            cairn_object_find_debug_file(input->object, path, NULL, &found, &error) != CAIRN_OK)
            return true;
    }
    input->size += size_of_file(found);
    if (cairn_object_attach_debug_file(input->object, found, &error) == CAIRN_OK)
        return true;
    return complain_of_file(found, &error);
}

static bool visit_object(const struct visiting *visiting, struct input *input)
{
    bool is_linked = !cairn_object_is_relocatable(input->object);
    bool is_good = (visiting->debug_path == NULL && !is_linked) ||
                   attach_debug_file(visiting, input, visiting->path);
    is_good = is_good && visiting->visit(input, visiting->user);
    cairn_object_destroy(input->object);
    return is_good;
}

/* ---- Archives ---- */

static bool visit_member(const struct visiting *visiting, const struct cairn_archive_member *member)
{
    struct cairn_error error;
    char *name;
    if (asprintf(&name, "%s(%s)", visiting->path, member->name) < 0)
        name = NULL;
    struct input input = {
        .name = name != NULL ? name : visiting->path, .size = member->size, .is_member = true};
    bool is_good = cairn_object_open_memory(member->bytes, member->size, &visiting->options,
                                            &input.object, &error) == CAIRN_OK
                       ? visit_object(visiting, &input)
                       : complain_of_file(input.name, &error);
    free(name);
    return is_good;
}

/* Visits the members. A member that cannot be read is reported and skipped, because in a thin
 * archive others may follow it. The visit ends if the next read fails at the same offset. */
static bool visit_members(const struct visiting *visiting, cairn_archive *archive)
{
    struct cairn_archive_member member;
    struct cairn_error error;
    enum cairn_status status;
    uint64_t failed_at = UINT64_MAX;
    bool is_good = true;
    while ((status = cairn_archive_next(archive, &member, &error)) != CAIRN_ERROR_NOT_FOUND) {
        if (status == CAIRN_OK) {
            is_good = visit_member(visiting, &member) && is_good;
            continue;
        }
        if (error.offset == failed_at)
            return false;
        failed_at = error.offset;
        is_good = complain_of_file(visiting->path, &error);
    }
    return is_good;
}

static bool visit_archive(const struct visiting *visiting, cairn_archive *archive)
{
    bool is_good = false;
    if (visiting->debug_path != NULL)
        complain("%s: this is an archive, whose members have no debug file", visiting->path);
    else
        is_good = visit_members(visiting, archive);
    cairn_archive_destroy(archive);
    return is_good;
}

/* ---- Files and streams ---- */

/* Visits a file; `bytes` if they are given. An object cannot be opened with UNSUPPORTED if it is an
 * archive or not an object; the message is used for the latter. */
static bool visit_path(const struct visiting *visiting, const uint8_t *bytes, size_t size)
{
    struct cairn_error error;
    const char *path = visiting->path;
    struct input input = {.name = path, .size = bytes != NULL ? size : size_of_file(path)};
    cairn_archive *archive;
    enum cairn_status status =
        bytes == NULL
            ? cairn_object_open(path, &visiting->options, &input.object, &error)
            : cairn_object_open_memory(bytes, size, &visiting->options, &input.object, &error);
    if (status == CAIRN_OK)
        return visit_object(visiting, &input);
    if (status == CAIRN_ERROR_UNSUPPORTED)
        status = bytes == NULL ? cairn_archive_open(path, NULL, &archive, NULL)
                               : cairn_archive_open_memory(bytes, size, NULL, &archive, NULL);
    return status == CAIRN_OK ? visit_archive(visiting, archive) : complain_of_file(path, &error);
}

/* Reads a stream to its end. A pipe may have at most as many bytes as the memory limit. The caller
 * frees the bytes. NULL after an error message. */
static uint8_t *read_stream(const struct visiting *visiting, FILE *stream, size_t *size)
{
    enum { FIRST_BYTES = 1 << 16, USUAL_LIMIT = 256 << 20 };
    size_t capacity = 0;
    size_t limit =
        visiting->options.memory_limit == 0 ? USUAL_LIMIT : visiting->options.memory_limit;
    uint8_t *bytes = NULL;
    struct stat status;
    if (fstat(fileno(stream), &status) == 0 && S_ISREG(status.st_mode))
        limit = SIZE_MAX; /* a redirected file */
    *size = 0;
    do {
        capacity = capacity == 0 ? FIRST_BYTES : capacity * 2;
        uint8_t *grown = realloc(bytes, capacity);
        if (grown == NULL) {
            complain("%s: no memory for %zu bytes", visiting->path, capacity);
            free(bytes);
            return NULL;
        }
        bytes = grown;
        *size += fread(bytes + *size, 1, capacity - *size, stream);
    } while (*size == capacity && *size <= limit);
    if (ferror(stream) == 0 && *size <= limit)
        return bytes;
    if (*size > limit)
        complain("%s: standard input has more than %zu bytes: --memory SIZE lets it have more",
                 visiting->path, limit);
    else
        complain("%s: cannot be read: %s", visiting->path, strerror(errno));
    free(bytes);
    return NULL;
}

bool visit_file(const struct file_options *options, visit_input *visit, void *user)
{
    const struct visiting visiting = {
        .path = options->path,
        .debug_path = options->debug_path,
        .options = {.memory_limit = options->memory_limit},
        .visit = visit,
        .user = user,
    };
    if (strcmp(options->path, "-") != 0)
        return visit_path(&visiting, NULL, 0);
    /* A stream is kept in memory, because it can be read only once and may be an archive. */
    size_t size;
    uint8_t *bytes = read_stream(&visiting, stdin, &size);
    bool is_good = bytes != NULL && visit_path(&visiting, bytes, size);
    free(bytes);
    return is_good;
}
