/*
 * tools/command.h - what the commands of `cairn` share: statuses, complaints, words for locations.
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

/* One line on standard error, "cairn: …"; what could break the line is replaced. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes what is buffered; EXIT_BAD_INPUT, with a complaint, if any write has failed. */
enum exit_status finish_output(struct output *output);

/* Prints a help text. */
enum exit_status print_text(const char *text);

/* A command line's words from `argv[0]`, the command's own name, on. */
enum exit_status command_bbmap(int argc, char **argv);
enum exit_status command_faultmap(int argc, char **argv);
enum exit_status command_lookup(int argc, char **argv);
enum exit_status command_pcsections(int argc, char **argv);
enum exit_status command_profile(int argc, char **argv);
enum exit_status command_run(int argc, char **argv);
enum exit_status command_sanmd(int argc, char **argv);
enum exit_status command_stackmap(int argc, char **argv);

/* ---- Locations in words ---- */

/* "rax", or "R#1234" as LLVM has it where the register has no name. */
void write_register(struct output *output, enum cairn_architecture architecture, uint16_t dwarf);

/* "rax 8 bytes", "[rbp - 16] 8 bytes", "rbp - 24", "constant 5", "large constant
 * 1311768467463790320". */
void write_location(struct output *output, enum cairn_architecture architecture,
                    struct cairn_location location);

#endif
