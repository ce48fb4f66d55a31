/*
 * Opening the objects of a file, which are the members if it is an archive.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/read/files.h"

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
    if (!cairn_object_header(object).is_relocatable ||
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

void write_member(const struct input *input)
{
    if (input->is_member && input->printer->is_json)
        json_fields(&input->printer->json, "file %s", input->name);
    else if (input->is_member)
        output_format(&input->printer->output, HEADING "%s:" PLAIN "\n", input->name);
}

bool has_symbol_table(const cairn_object *object)
{
    struct cairn_object_section_header header;
    for (uint32_t i = 1; cairn_object_section_header(object, i, &header); i++)
        if (header.type == SHT_SYMTAB)
            return true;
    return false;
}

/* A file can have symbols without debug information, which `objcopy --strip-debug` has moved. */
static bool has_source_lines(const cairn_object *object)
{
    struct cairn_object_section_header header;
    for (uint32_t i = 1; cairn_object_section_header(object, i, &header); i++)
        if (header.type != SHT_NOBITS && strcmp(header.name, ".debug_line") == 0)
            return true;
    return false;
}

/* ---- Objects and archives ---- */

/* The arguments of a visit. */
struct visiting {
    const struct file_options *file;
    struct cairn_object_options options;
    struct printer *printer;
    visit_input *visit;
    void *user;
};

static bool complain_of_file(const char *name, const struct cairn_error *error)
{
    return complain("%s: %s", name, error->message);
}

/* Returns 0 if the size is unknown. */
static uint64_t size_of_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
}

/* Visits the object, with its debug file, and destroys it. If no debug file was given, a linked
 * file without symbols or without source lines may have one. */
static bool visit_object(const struct visiting *visiting, struct input *input)
{
    struct cairn_error error;
    const char *debug = visiting->file->debug_path;
    bool is_good = true;
    if (debug == NULL && !cairn_object_header(input->object).is_relocatable &&
        (!has_symbol_table(input->object) || !has_source_lines(input->object)) &&
        cairn_object_find_debug_file(input->object, visiting->file->path, NULL, &debug, &error) !=
            CAIRN_OK)
        debug = NULL;
    if (debug != NULL) {
        input->size += size_of_file(debug);
        is_good = cairn_object_attach_debug_file(input->object, debug, &error) == CAIRN_OK ||
                  complain_of_file(debug, &error);
    }
    input->printer = visiting->printer;
    output_allow_names(&input->printer->output, input->size);
    is_good = is_good && visiting->visit(input, visiting->user);
    cairn_object_destroy(input->object);
    return is_good;
}

/* Visits the members. A member that cannot be read is reported and skipped, because in a thin
 * archive others may follow it. The visit ends if the next read fails at the same offset. */
static bool visit_archive(const struct visiting *visiting, cairn_archive *archive)
{
    const char *path = visiting->file->path;
    struct cairn_archive_member member;
    struct cairn_error error;
    enum cairn_status status;
    uint64_t failed_at = UINT64_MAX;
    bool is_good = true;
    if (visiting->file->debug_path != NULL)
        return complain("%s: the file is an archive: --debug-file is for a single object", path);
    while ((status = cairn_archive_next(archive, &member, &error)) != CAIRN_ERROR_NOT_FOUND) {
        if (status != CAIRN_OK && error.offset == failed_at)
            return false;
        if (status != CAIRN_OK) {
            failed_at = error.offset;
            is_good = complain_of_file(path, &error);
            continue;
        }
        char *name;
        if (asprintf(&name, "%s(%s)", path, member.name) < 0)
            name = NULL;
        struct input input = {
            .name = name != NULL ? name : path, .size = member.size, .is_member = true};
        is_good = (cairn_object_open_memory(member.bytes, member.size, &visiting->options,
                                            &input.object, &error) == CAIRN_OK
                       ? visit_object(visiting, &input)
                       : complain_of_file(input.name, &error)) &&
                  is_good;
        free(name);
    }
    return is_good;
}

/* ---- Files and streams ---- */

/* Visits a file; `bytes` if they are given. An object cannot be opened with UNSUPPORTED if it is an
 * archive or not an object; the message is used for the latter. */
static bool visit_path(const struct visiting *visiting, const uint8_t *bytes, size_t size)
{
    struct cairn_error error;
    const char *path = visiting->file->path;
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
    if (status != CAIRN_OK)
        return complain_of_file(path, &error);
    bool is_good = visit_archive(visiting, archive);
    cairn_archive_destroy(archive);
    return is_good;
}

/* Reads a stream to its end. A pipe may have at most as many bytes as the memory limit. The caller
 * frees the bytes. NULL after an error message. */
static uint8_t *read_stream(FILE *stream, uint64_t memory_limit, size_t *size)
{
    enum { FIRST_BYTES = 1 << 16, USUAL_LIMIT = 256 << 20 };
    size_t capacity = 0;
    size_t limit = memory_limit == 0 ? USUAL_LIMIT : memory_limit;
    uint8_t *bytes = NULL;
    struct stat status;
    if (fstat(fileno(stream), &status) == 0 && S_ISREG(status.st_mode))
        limit = SIZE_MAX; /* a redirected file */
    *size = 0;
    do {
        capacity = capacity == 0 ? FIRST_BYTES : capacity * 2;
        uint8_t *grown = realloc(bytes, capacity);
        if (grown == NULL) {
            complain("-: no memory for %zu bytes", capacity);
            free(bytes);
            return NULL;
        }
        bytes = grown;
        *size += fread(bytes + *size, 1, capacity - *size, stream);
    } while (*size == capacity && *size <= limit);
    if (ferror(stream) == 0 && *size <= limit)
        return bytes;
    if (*size > limit)
        complain("-: standard input has more than %zu bytes; --memory SIZE raises the limit",
                 limit);
    else
        complain("-: cannot read standard input: %s", strerror(errno));
    free(bytes);
    return NULL;
}

bool visit_file(const struct file_options *options, struct printer *printer, visit_input *visit,
                void *user)
{
    const struct visiting visiting = {
        .file = options,
        .options = {.memory_limit = options->memory_limit},
        .printer = printer,
        .visit = visit,
        .user = user,
    };
    if (strcmp(options->path, "-") != 0)
        return visit_path(&visiting, NULL, 0);
    /* A stream is kept in memory, because it can be read only once and may be an archive. */
    size_t size;
    uint8_t *bytes = read_stream(stdin, options->memory_limit, &size);
    bool is_good = bytes != NULL && visit_path(&visiting, bytes, size);
    free(bytes);
    return is_good;
}

enum exit_status print_file(const struct file_options *options, visit_input *visit, void *user,
                            const char *missing)
{
    static struct printer printer;
    output_open(&printer.output, STDOUT_FILENO);
    printer.json.output = &printer.output;
    printer.is_json = options->json;
    if (printer.is_json)
        json_begin_array(&printer.json, NULL);
    bool is_good = visit_file(options, &printer, visit, user);
    if (is_good && !printer.has_output)
        complain("%s: %s", options->path, missing);
    if (!printer.has_output)
        return EXIT_BAD_INPUT;
    if (printer.is_json) {
        json_end_array(&printer.json);
        output_character(&printer.output, '\n');
    }
    enum exit_status status = finish_output(&printer.output);
    return is_good ? status : EXIT_BAD_INPUT;
}

enum exit_status print_command(int argc, char **argv, struct command_line *line, visit_input *visit,
                               void *user, const char *missing)
{
    enum exit_status status;
    if (!parse_command_line(argc, argv, line, &status))
        return status;
    return print_file(&line->file, visit, user, missing);
}
