/* SPDX-License-Identifier: MIT */
#include "tools/lookup/lines.h"

#include "object/line_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limits memory, because a file can have a row for each byte. */
enum { ROWS_MAX = 1 << 25 };

#define NO_FILE UINT32_MAX /* the end of a sequence of rows */

struct row {
    uint64_t address; /* first, for searching */
    uint32_t order;   /* in the section: of rows with equal addresses the last one counts */
    uint32_t line;
    uint32_t file;
};

/* ---- Reading ---- */

struct reading {
    struct source_lines *lines;
    bool is_skipped;     /* whether the sequence is of code that the linker has removed */
    bool is_in_sequence; /* whether a row of the sequence was seen */
    bool is_full;        /* there is no memory, or the limit is reached */
};

/* Returns the number of the file, which is mostly that of the last row. */
static uint32_t file_number(struct reading *reading, const struct line_row *row)
{
    struct list *files = &reading->lines->files;
    const struct source_line file = {row->compilation, row->folder, row->name, 0};
    const struct source_line *all = files->items;
    const struct source_line *last = files->count == 0 ? NULL : &all[files->count - 1];
    bool is_last = last != NULL && last->name == file.name && last->folder == file.folder &&
                   last->compilation == file.compilation;
    if (!is_last && !list_append(files, &file, sizeof file)) {
        reading->is_full = true;
        return NO_FILE;
    }
    return (uint32_t)files->count - 1;
}

/* The linker gives the address 0 to code that it has removed. */
static void keep_row(const struct line_row *row, void *user)
{
    struct reading *reading = user;
    struct list *rows = &reading->lines->rows;
    if (!reading->is_in_sequence)
        reading->is_skipped = row->address == 0;
    reading->is_in_sequence = !row->is_end;
    reading->is_full |= rows->count == ROWS_MAX;
    if (reading->is_skipped || reading->is_full)
        return;
    const struct row kept = {.address = row->address,
                             .order = (uint32_t)rows->count,
                             .line = row->line,
                             .file = row->is_end ? NO_FILE : file_number(reading, row)};
    reading->is_full |= !list_append(rows, &kept, sizeof kept);
}

/* The end of a sequence precedes the start of the next one. */
static int compare_rows(const void *left, const void *right)
{
    const struct row *a = left;
    const struct row *b = right;
    int order = compare_numbers(a->address, b->address);
    if (order == 0)
        order = compare_numbers(b->file == NO_FILE, a->file == NO_FILE);
    return order != 0 ? order : compare_numbers(a->order, b->order);
}

static struct cairn_section find_section(const struct input *input, const char *name)
{
    const struct cairn_object_filter filter = {.name = name};
    struct cairn_object_section section = {.contents = {.size = 0}};
    struct cairn_error error;
    enum cairn_status status = cairn_object_next_section(input->object, &filter, &section, &error);
    if (status == CAIRN_OK)
        return section.contents;
    if (status != CAIRN_ERROR_NOT_FOUND)
        complain("%s: section %s: %s", input->name, name, error.message);
    return (struct cairn_section){.size = 0};
}

void source_lines_read(struct source_lines *lines, const struct input *input)
{
    const struct cairn_allocator allocator = memory_allocator(NULL);
    struct reading reading = {.lines = lines};
    *lines = (struct source_lines){.rows = {.count = 0}};
    if (cairn_object_header(input->object).is_relocatable)
        return;
    const struct line_sections sections = {
        .lines = find_section(input, ".debug_line"),
        .line_strings = find_section(input, ".debug_line_str"),
        .strings = find_section(input, ".debug_str"),
    };
    line_table_read(&sections, &allocator, keep_row, &reading);
    list_sort(&lines->rows, sizeof(struct row), compare_rows);
    if (reading.is_full)
        complain("%s: there are too many source lines, or there is no memory for them: some are "
                 "not known",
                 input->name);
}

void source_lines_release(struct source_lines *lines)
{
    list_release(&lines->rows);
    list_release(&lines->files);
}

/* ---- Finding ---- */

bool source_lines_find(const struct source_lines *lines, uint64_t address,
                       struct source_line *found)
{
    const struct row *rows = lines->rows.items;
    size_t above = first_above(rows, sizeof *rows, lines->rows.count, address);
    if (above == 0 || rows[above - 1].file == NO_FILE || rows[above - 1].line == 0)
        return false;
    *found = ((const struct source_line *)lines->files.items)[rows[above - 1].file];
    found->line = rows[above - 1].line;
    return true;
}

void source_line_path(const struct source_line *line, char path[SOURCE_PATH_BYTES])
{
    const char *compilation = line->compilation;
    const char *folder = line->folder;
    if (line->name[0] == '/')
        folder = "";
    if (line->name[0] == '/' || folder[0] == '/' || strcmp(folder, compilation) == 0)
        compilation = "";
    snprintf(path, SOURCE_PATH_BYTES, "%s%s%s%s%s", compilation, *compilation != '\0' ? "/" : "",
             folder, *folder != '\0' ? "/" : "", line->name);
}
