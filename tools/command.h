/*
 * tools/command.h - exit statuses, error messages and text forms of locations, for the commands of
 * `cairn`.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_COMMAND_H
#define TOOLS_COMMAND_H

#include "tools/output.h"

#include <cairn/architecture.h>
#include <cairn/stackmap.h>
#include <cairn/status.h>

enum exit_status { EXIT_DONE = 0, EXIT_BAD_INPUT = 1, EXIT_BAD_USAGE = 2 };

/* Writes "cairn: ..." to standard error, as one line. Characters that would break the line are
 * replaced. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes the buffered output. EXIT_BAD_INPUT, after an error message, if any write has failed. */
enum exit_status finish_output(struct output *output);

/* Prints a help text. */
enum exit_status print_text(const char *text);

/* Each takes the words of the command line from the name of the command on (`argv[0]`). */
enum exit_status command_bbmap(int argc, char **argv);
enum exit_status command_faultmap(int argc, char **argv);
enum exit_status command_lookup(int argc, char **argv);
enum exit_status command_pcsections(int argc, char **argv);
enum exit_status command_profile(int argc, char **argv);
enum exit_status command_run(int argc, char **argv);
enum exit_status command_sanmd(int argc, char **argv);
enum exit_status command_stackmap(int argc, char **argv);

/* ---- Text forms of locations ---- */

/* Writes the register's name, such as "rax"; or LLVM's form "R#1234" if it has no name. */
void write_register(struct output *output, enum cairn_architecture architecture, uint16_t dwarf);

/* Writes a location: "rax 8 bytes", "[rbp - 16] 8 bytes", "rbp - 24", "constant 5", or "large
 * constant 1311768467463790320". */
void write_location(struct output *output, enum cairn_architecture architecture,
                    struct cairn_location location);

#endif
