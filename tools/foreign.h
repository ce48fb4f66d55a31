/*
 * tools/foreign.h - cairn run for what this machine cannot run: IR for another one, and objects.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_FOREIGN_H
#define TOOLS_FOREIGN_H

#include "tools/command.h"
#include "llvm/program.h"

/* Whether the file begins as ELF files do; false also where it cannot be read. */
bool is_object_file(const char *path);

/* Says what the error is, and which option takes a program in which one ID has two shapes. */
enum exit_status complain_about_conflict(const char *path, const struct cairn_error *error);

/* Lists the records of an object or linked file, and what can be seen of their sites. */
enum exit_status list_object(const char *path, struct output *output);

/* The same for a program, which is compiled for the machine that it is for. Its records are
 * declared, so their sites are known. */
enum exit_status list_program(struct program *program, const char *path,
                              unsigned optimisation_level, enum cairn_id_conflicts id_conflicts,
                              struct output *output);

#endif
