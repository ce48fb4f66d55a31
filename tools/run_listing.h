/*
 * tools/run_listing.h - `cairn run` with inputs that this machine cannot run: IR for another
 * architecture, and objects.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_RUN_LISTING_H
#define TOOLS_RUN_LISTING_H

#include "tools/command.h"
#include "llvm/program.h"

/* Whether the file begins with the magic bytes of ELF. False also if it cannot be read. */
bool is_object_file(const char *path);

/* Prints the error, and the option that accepts programs in which one ID has two shapes. */
enum exit_status complain_about_conflict(const char *path, const struct cairn_error *error);

/* Lists the records of an object or linked file, and what is known about their sites. */
enum exit_status list_object(const char *path, struct output *output);

/* Compiles a program for its own architecture and lists its records. Their sites are known, because
 * the records are declared. */
enum exit_status list_program(struct program *program, const char *path,
                              unsigned optimisation_level, enum cairn_id_conflicts id_conflicts,
                              struct output *output);

#endif
