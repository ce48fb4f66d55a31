/*
 * debug/perf_file.h - a file for perf in a folder that other users may write to.
 *
 * A file is opened only if it is a regular file of this user with one name, so that nobody can make
 * this process write to another file. What an earlier process with this ID has left is removed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef DEBUG_PERF_FILE_H
#define DEBUG_PERF_FILE_H

#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>

struct perf_file {
    int descriptor; /* -1: it is not open */
    int failure;    /* the errno of the first write that failed, or 0 */
    size_t size;    /* with what was written completely */
};

/* Opens `path` for appending. `*is_new` tells whether this process has not written to it before.
 * Errors: SYSTEM. */
CAIRN_MUST_CHECK enum cairn_status perf_file_open(const char *path, struct perf_file *file,
                                                  bool *is_new, struct cairn_error *error);

/* Writes all bytes, in one call if possible. If a file cannot be written to, it keeps what was
 * written completely, and is left alone from then on. */
void perf_file_write(struct perf_file *file, const void *bytes, size_t size);

void perf_file_close(struct perf_file *file);

#endif
