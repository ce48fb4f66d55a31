/*
 * tools/new_file.h - a file that is there as a whole or not at all.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_NEW_FILE_H
#define TOOLS_NEW_FILE_H

#include "tools/output.h"

#include <stdbool.h>

/* Written under another name beside `path`, and renamed to it when all of it is there. What is no
 * regular file, such as a pipe, is written to as it is. */
struct new_file {
    const char *path;
    char *temporary; /* NULL: there is none */
    struct output output;
};

/* All three complain. False: there is nothing to be finished or abandoned. */
bool new_file_open(struct new_file *file, const char *path);
/* False: `path` is as it was. */
bool new_file_finish(struct new_file *file);
void new_file_abandon(struct new_file *file);

#endif
