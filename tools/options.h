/*
 * tools/options.h - parsing command lines into options and operands.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include "tools/command.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OPTION_VALUES_MAX = 16 };

/* The values of an option that may be given several times, in order. */
struct option_values {
    const char *values[OPTION_VALUES_MAX];
    size_t count;
};

/* An option. Exactly one of `flag`, `value`, `values` and `size` is set. A flag is set to true. A
 * value is the next word, or the text after "--name=". A size is a number of bytes, with K, M or G
 * for powers of 1024. */
struct option {
    const char *name;   /* such as "--json" */
    const char *letter; /* such as "-d"; or NULL */
    bool *flag;
    const char **value;
    struct option_values *values;
    uint64_t *size;
    const char *needs; /* description of the value for error messages, such as "a number" */
};

/* The options and operands that a command takes, and the result of parsing. */
struct command_line {
    const char *command; /* for error messages */
    const struct option *options;
    size_t option_count;
    size_t operand_limit; /* 0 for any number */
    /* Operands, in `argv`; set by parse_command_line. */
    char **operands;
    size_t operand_count;
    bool help; /* whether --help or -h was given */
};

/* Parses `argv` from argv[1] on, and moves the operands to its front. Every word after "--" is an
 * operand, and so is "-". False after an error message. */
bool parse_command_line(int argc, char **argv, struct command_line *line);

/* The options of a command that prints the contents of one file as text or JSON. */
struct file_options {
    const char *path;
    const char *debug_path; /* NULL if none was given */
    uint64_t memory_limit;  /* 0 for the default */
    bool json;
};

/* The description of the value of --memory. */
#define MEMORY_NEEDS "a size, such as 500M"

/* Runs such a command, which has the options --debug-file, --json, --memory and --help. */
enum exit_status print_file_with(int argc, char **argv, const char *command, const char *help,
                                 enum exit_status (*print)(const struct file_options *options));

#endif
