/*
 * tools/options.h - the words of a command line: options, and what is no option.
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

/* Of an option that may be given several times, in their order. */
struct option_values {
    const char *values[OPTION_VALUES_MAX];
    size_t count;
};

/* One option: it has either a flag, which it sets, or a value, which is the next word or what
 * follows "--name=", or values, or a size: a number of bytes, with K, M or G for powers of 1024. */
struct option {
    const char *name;   /* "--json" */
    const char *letter; /* "-d"; or NULL */
    bool *flag;
    const char **value;
    struct option_values *values;
    uint64_t *size;
    const char *needs; /* what the value is, for complaints: "a number" */
};

/* What a command takes, and what it was given. */
struct command_line {
    const char *command; /* for complaints */
    const struct option *options;
    size_t option_count;
    size_t operand_limit; /* 0: any number */
    /* Filled in by parse_command_line; in `argv`. */
    char **operands;
    size_t operand_count;
    bool help; /* --help or -h */
};

/* Takes `argv` apart, from argv[1] on, and moves what is no option to its front. Behind "--"
 * everything is an operand, and "-" always. False: complained. */
bool parse_command_line(int argc, char **argv, struct command_line *line);

/* What a command is given that prints what stands in one file, in one of two forms. */
struct file_options {
    const char *path;
    const char *debug_path; /* NULL: none was named */
    uint64_t memory_limit;  /* 0: the usual one */
    bool json;
};

/* What --memory needs. */
#define MEMORY_NEEDS "a size, such as 500M"

/* The whole of such a command, which has the options --debug-file, --json, --memory and --help. */
enum exit_status print_file_with(int argc, char **argv, const char *command, const char *help,
                                 enum exit_status (*print)(const struct file_options *options));

#endif
