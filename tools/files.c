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

void complain_of_section(const struct input *input, const struct cairn_object_section *section,
                         const struct cairn_error *error)
{
    complain("%s: %s, byte %llu: %s", input->name, section->name, (unsigned long long)error->offset,
             error->message);
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

bool complain_of_lost(const char *path, const struct cairn_object_section *section,
                      const struct lost_addresses *lost)
{
    if (lost->count == 0)
        return true;
    complain("%s: %s, byte %zu: the address of a function has no relocation to a section, so its "
             "place is not known (%zu of them)",
             path, section->name, lost->first, lost->count);
    return false;
}

void write_member(struct output *output, const struct input *input)
{
    if (!input->is_member)
        return;
    output_style(output, STYLE_HEADING);
    output_name(output, input->name);
    output_text(output, ":");
    output_style(output, STYLE_PLAIN);
    output_character(output, '\n');
}

void write_json_member(struct json *json, const struct input *input)
{
    if (!input->is_member)
        return;
    json_key(json, "file");
    json_string(json, input->name);
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
    complain("%s: %s", name, error->message);
    return false;
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

static char *name_member(const char *path, const char *member)
{
    size_t size = strlen(path) + strlen(member) + 3;
    char *name = malloc(size);
    if (name != NULL)
        snprintf(name, size, "%s(%s)", path, member);
    return name;
}

static bool visit_member(const struct visiting *visiting, const struct cairn_archive_member *member)
{
    struct cairn_error error;
    char *name = name_member(visiting->path, member->name);
    struct input input = {
        .name = name != NULL ? name : visiting->path, .size = member->size, .is_member = true};
    bool is_good;
    if (cairn_object_open_memory(member->bytes, member->size, &visiting->options, &input.object,
                                 &error) == CAIRN_OK)
        is_good = visit_object(visiting, &input);
    else
        is_good = complain_of_file(input.name, &error);
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

/* Visits a file. cairn_object_open fails with UNSUPPORTED for archives and for files that are not
 * objects; its message is used for the latter. */
static bool visit_path(const struct visiting *visiting)
{
    struct cairn_error error;
    struct input input = {.name = visiting->path, .size = size_of_file(visiting->path)};
    cairn_archive *archive;
    enum cairn_status status =
        cairn_object_open(visiting->path, &visiting->options, &input.object, &error);
    if (status == CAIRN_OK)
        return visit_object(visiting, &input);
    if (status == CAIRN_ERROR_UNSUPPORTED &&
        cairn_archive_open(visiting->path, NULL, &archive, NULL) == CAIRN_OK)
        return visit_archive(visiting, archive);
    return complain_of_file(visiting->path, &error);
}

static bool visit_bytes(const struct visiting *visiting, const uint8_t *bytes, size_t size)
{
    struct cairn_error error;
    struct input input = {.name = visiting->path, .size = size};
    cairn_archive *archive;
    enum cairn_status status =
        cairn_object_open_memory(bytes, size, &visiting->options, &input.object, &error);
    if (status == CAIRN_OK)
        return visit_object(visiting, &input);
    if (status == CAIRN_ERROR_UNSUPPORTED &&
        cairn_archive_open_memory(bytes, size, NULL, &archive, NULL) == CAIRN_OK)
        return visit_archive(visiting, archive);
    return complain_of_file(visiting->path, &error);
}

/* Returns how many bytes a stream may have. If it is a redirected file, that is the file's size. */
static size_t stream_limit(const struct visiting *visiting, FILE *stream)
{
    enum { USUAL_BYTES = 256 << 20 };
    struct stat status;
    if (fstat(fileno(stream), &status) == 0 && S_ISREG(status.st_mode))
        return SIZE_MAX;
    return visiting->options.memory_limit == 0 ? USUAL_BYTES : visiting->options.memory_limit;
}

/* Reads a stream to its end. The caller frees the bytes. NULL after an error message. */
static uint8_t *read_stream(const struct visiting *visiting, FILE *stream, size_t *size)
{
    enum { FIRST_BYTES = 1 << 16 };
    size_t capacity = 0;
    size_t limit = stream_limit(visiting, stream);
    uint8_t *bytes = NULL;
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

/* Visits a stream. All of it is kept in memory, because it can be read only once and may be an
 * archive. */
static bool visit_stream(const struct visiting *visiting, FILE *stream)
{
    size_t size;
    uint8_t *bytes = read_stream(visiting, stream, &size);
    bool is_good = bytes != NULL && visit_bytes(visiting, bytes, size);
    free(bytes);
    return is_good;
}

bool visit_file(const char *path, const char *debug_path, uint64_t memory_limit, visit_input *visit,
                void *user)
{
    const struct visiting visiting = {
        .path = path,
        .debug_path = debug_path,
        .options = {.memory_limit = memory_limit},
        .visit = visit,
        .user = user,
    };
    return strcmp(path, "-") == 0 ? visit_stream(&visiting, stdin) : visit_path(&visiting);
}
