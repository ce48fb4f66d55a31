/*
 * tools/new_file.h - writing a file that appears only when it is complete.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_NEW_FILE_H
#define TOOLS_NEW_FILE_H

#include "tools/output.h"

#include <stdbool.h>

/* A file that is being written. A regular file is written under a temporary name in the same folder
 * and then renamed to `path`. Other files, such as pipes, are written directly. */
struct new_file {
    const char *path;
    char *temporary; /* NULL if the file is written directly */
    struct output output;
};

/* All three print error messages. new_file_open returns false if there is nothing to finish or to
 * abandon. */
bool new_file_open(struct new_file *file, const char *path);
/* False if the file could not be completed; a regular file at `path` is then unchanged. */
bool new_file_finish(struct new_file *file);
void new_file_abandon(struct new_file *file);

#endif
