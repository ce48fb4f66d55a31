/*
 * tools/cli/save.h - writing files that appear only when they are complete.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_CLI_SAVE_H
#define TOOLS_CLI_SAVE_H

#include "tools/cli/output.h"

/* Writes the contents of a file to `output`. False if it has printed an error message. */
typedef bool write_contents(struct output *output, void *user);

/* Writes the file under a temporary name in the same folder and renames it to `path`, so that it
 * appears only when it is complete. A file that is not regular, such as a pipe, is written
 * directly. False after an error message; a file at `path` is then unchanged. */
bool save_output(const char *path, write_contents *write, void *user);

#endif
