/*
 * tools/lookup/lines.h - source lines of a linked file's code, from its section .debug_line.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_LOOKUP_LINES_H
#define TOOLS_LOOKUP_LINES_H

#include "tools/cli/list.h"
#include "tools/read/files.h"

struct source_line {
    /* The file's path has three parts, as in struct line_row. */
    const char *compilation;
    const char *folder;
    const char *name;
    uint32_t line;
};

/* Rows sorted by address. */
struct source_lines {
    struct list rows;
    struct list files;
};

/* Reads the file's lines. What cannot be read is left out, after an error message. */
void source_lines_read(struct source_lines *lines, const struct input *input);
void source_lines_release(struct source_lines *lines);

/* Finds the line of the instruction at an address. */
bool source_lines_find(const struct source_lines *lines, uint64_t address,
                       struct source_line *found);

enum { SOURCE_PATH_BYTES = 4096 };

/* Joins the parts of the path. */
void source_line_path(const struct source_line *line, char path[SOURCE_PATH_BYTES]);

#endif
