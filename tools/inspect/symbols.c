/*
 * Names of functions of a process: those in the symbol tables of the files that it maps.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/inspect/inspect.h"

#include "tools/read/addresses.h"

#include <cairn/object.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A mapping of code. The file is opened when a name in it is needed. */
struct mapped_file {
    uint64_t begin;
    uint64_t end;
    uint64_t base; /* address of the file's address 0 */
    uint64_t offset;
    char *path;
    cairn_object *object; /* NULL if it was not opened, or cannot be read */
    bool was_opened;
};

/* ---- Mappings ---- */

static bool note_mapping(struct process_symbols *symbols, const char *text, size_t length)
{
    struct address_line line;
    parse_address_line(text, length, &line);
    const struct mapping *mapping = &line.mapping;
    if (line.kind != ADDRESS_LINE_MAPPING || !mapping->is_executable || mapping->path[0] != '/')
        return true;
    struct mapped_file file = {.begin = mapping->address,
                               .end = mapping->address + mapping->size,
                               .offset = mapping->file_offset,
                               .path = strndup(mapping->path, mapping->path_length)};
    if (file.path != NULL && list_append(&symbols->files, &file, sizeof file))
        return true;
    free(file.path);
    return false;
}

void process_symbols_read(struct process_symbols *symbols, pid_t process)
{
    char path[64];
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    *symbols = (struct process_symbols){.process = process};
    snprintf(path, sizeof path, "/proc/%d/maps", (int)process);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    while ((length = getline(&line, &capacity, file)) > 0)
        if (!note_mapping(symbols, line, (size_t)length - (line[length - 1] == '\n')))
            break;
    free(line);
    fclose(file);
}

void process_symbols_release(struct process_symbols *symbols)
{
    struct mapped_file *files = symbols->files.items;
    for (size_t i = 0; i < symbols->files.count; i++) {
        cairn_object_destroy(files[i].object);
        free(files[i].path);
    }
    list_release(&symbols->files);
}

/* ---- Names ---- */

/* Opens the file as the process sees it, which may have another root. */
static void open_file(const struct process_symbols *symbols, struct mapped_file *file)
{
    char path[4096];
    file->was_opened = true;
    int length = snprintf(path, sizeof path, "/proc/%d/root%s", (int)symbols->process, file->path);
    if (length < 0 || (size_t)length >= sizeof path ||
        cairn_object_open(path, NULL, &file->object, NULL) != CAIRN_OK)
        return;
    if (cairn_object_load_base(file->object, file->begin, file->offset, file->end - file->begin,
                               &file->base))
        return;
    cairn_object_destroy(file->object);
    file->object = NULL;
}

const char *process_symbols_find(struct process_symbols *symbols, uint64_t address)
{
    struct mapped_file *files = symbols->files.items;
    struct cairn_object_function function;
    size_t i = 0;
    while (i < symbols->files.count && (address < files[i].begin || address >= files[i].end))
        i++;
    if (i == symbols->files.count)
        return NULL;
    if (!files[i].was_opened)
        open_file(symbols, &files[i]);
    bool is_found = files[i].object != NULL &&
                    cairn_object_find_function(files[i].object, 0, address - files[i].base,
                                               &function, NULL) == CAIRN_OK;
    return is_found && function.entry == address - files[i].base ? function.name : NULL;
}
