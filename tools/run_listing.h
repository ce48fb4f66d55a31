/*
 * tools/run_listing.h - the records and sites that `cairn run --sites` lists: of a loaded module,
 * of IR for another architecture, and of an object.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_RUN_LISTING_H
#define TOOLS_RUN_LISTING_H

#include "tools/files.h"
#include "llvm/program.h"

/* What was found wrong with a module. */
struct findings {
    const char *path; /* for error messages */
    bool any;         /* whether an error message was printed */
};

/* A callback for findings: prints the finding. `user` is a struct findings. */
void complain_about_finding(const struct cairn_finding *finding, void *user);

/* Prints the error, and for an ID with two shapes the option that accepts it. Prints nothing if
 * LLVM has refused the module and findings, which are the same error, were printed. Returns
 * EXIT_BAD_INPUT. */
enum exit_status complain_about(const struct findings *findings, const struct cairn_error *error);

/* Lists the records and sites of a module of the engine, which may be NULL if it has no records. */
enum exit_status list_module(const cairn_module *module, struct program *program,
                             cairn_engine *engine, const char *path, struct output *output);

/* Lists the records of an object or linked file, and what is known about their sites. */
enum exit_status list_object(const char *path, struct printer *printer);

/* Compiles a program for its own architecture and lists its records. Their sites are known, because
 * the records are declared. */
enum exit_status list_program(struct program *program, const char *path,
                              unsigned optimisation_level, enum cairn_id_conflicts id_conflicts,
                              struct printer *printer);

#endif
