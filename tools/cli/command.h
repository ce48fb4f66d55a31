/*
 * tools/cli/command.h - exit statuses, error messages and command lines of the commands of `cairn`.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_CLI_COMMAND_H
#define TOOLS_CLI_COMMAND_H

#include "tools/cli/output.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum exit_status { EXIT_DONE = 0, EXIT_BAD_INPUT = 1, EXIT_BAD_USAGE = 2 };

/* Each takes the words of the command line from the name of the command on (`argv[0]`). */
enum exit_status command_bbmap(int argc, char **argv);
enum exit_status command_compile(int argc, char **argv);
enum exit_status command_faultmap(int argc, char **argv);
enum exit_status command_inspect(int argc, char **argv);
enum exit_status command_lookup(int argc, char **argv);
enum exit_status command_pcsections(int argc, char **argv);
enum exit_status command_profile(int argc, char **argv);
enum exit_status command_report(int argc, char **argv);
enum exit_status command_run(int argc, char **argv);
enum exit_status command_sanmd(int argc, char **argv);
enum exit_status command_stackmap(int argc, char **argv);

/* Writes "cairn: ..." to standard error, as one line. Characters that would break the line are
 * replaced. Returns false. */
bool complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes the buffered output. EXIT_BAD_INPUT, after an error message, if any write has failed. */
enum exit_status finish_output(struct output *output);

/* Prints a help text. */
enum exit_status print_text(const char *text);

/* ---- Command lines ---- */

enum { OPTION_VALUES_MAX = 16 };

/* The values of an option that may be given several times, in order. */
struct option_values {
    const char *values[OPTION_VALUES_MAX];
    size_t count;
};

/* An option. Exactly one of `flag`, `value`, `values` and `size` is set. A flag is set to true. A
 * value is the next word, or the text after "--name=", or the text after a name of one letter, as
 * in "-O2". A size is a number of bytes, with K, M or G for powers of 1024. */
struct option {
    const char *name;   /* such as "--json" */
    const char *letter; /* such as "-d"; or NULL */
    bool *flag;
    const char **value;
    struct option_values *values;
    uint64_t *size;
    const char *needs; /* description of the value for error messages, such as "a number" */
};

/* The file that a command reads: the first operand, and the options --debug-file, --json and
 * --memory, which all commands for ELF files take. */
struct file_options {
    const char *path;
    const char *debug_path; /* NULL if none was given */
    uint64_t memory_limit;  /* 0 for the default */
    bool json;
};

/* The help text of these options. */
#define FILE_HELP                                                                                  \
    "  --debug-file PATH\n"                                                                        \
    "            read the names of functions from this separate debug file\n"                      \
    "  --memory SIZE\n"                                                                            \
    "            limit the memory for the contents of FILE, for example to 500M\n"                 \
    "  --help    print this text\n"

/* The options and operands that a command takes, and the result of parsing. */
struct command_line {
    const char *command; /* for error messages */
    const char *help;
    const struct option *options; /* in addition to those of struct file_options */
    size_t option_count;
    size_t operand_limit;     /* 0 for any number */
    const char *operand_name; /* of the first one, for error messages; NULL: "file" */
    bool is_log;  /* whether the file is an event log, for which there are no debug files */
    bool is_call; /* whether the operands are a program and arguments, which may be negative
                     numbers; the options of struct file_options are then unknown */
    struct file_options file;
    char **operands; /* all operands; the first is also `file.path` */
    size_t operand_count;
};

/* The only option of a command line that asks for the names of the command's options, one a line,
 * those with a value with "=". The completion files for shells use it. */
#define LIST_OPTIONS "--list-options"

/* Parses `argv` from argv[1] on, and moves the operands to its front. Every word after "--" is an
 * operand, and so is "-". False if the command ends with `*status`: after --help, which prints the
 * help text, and after an error message. */
bool parse_command_line(int argc, char **argv, struct command_line *line, enum exit_status *status);

/* The description of the value of --limit. */
#define LIMIT_NEEDS "a number"

/* Parses a value of --limit: how many items are shown. 0 means all of them, and `*limit` is then
 * SIZE_MAX. NULL leaves `*limit` unchanged. False, after an error message, if the value is not a
 * number. */
bool parse_limit(const char *command, const char *value, size_t *limit);

#endif
