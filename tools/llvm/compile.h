/*
 * tools/llvm/compile.h - compiling LLVM IR to objects in memory.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_LLVM_COMPILE_H
#define TOOLS_LLVM_COMPILE_H

#include "tools/cli/command.h"
#include "tools/read/pcsection_entries.h"

/* The options of `cairn compile` and `cairn run`. NULL where an option was not given. `cairn run`
 * has no option for PC sections. */
struct compile_options {
    const char *level;        /* "0" to "3" */
    const char *id_conflicts; /* "renumber" or "undeclared" */
    const char *target;       /* a triple */
    const char *cpu;
    const char *features;
    const char *passes;
    const struct wanted_sections *pc_sections; /* to name in the manifest */
};

/* The elements of an array of struct option for these options. */
#define COMPILE_OPTIONS(options)                                                                   \
    {.name = "--cpu", .value = &(options)->cpu, .needs = "the name of a CPU, or 'host'"},          \
        {.name = "--features", .value = &(options)->features, .needs = "a list such as +avx2"},    \
        {.name = "--id-conflicts",                                                                 \
         .value = &(options)->id_conflicts,                                                        \
         .needs = "'renumber' or 'undeclared'"},                                                   \
        {.name = "--passes", .value = &(options)->passes, .needs = "a list of LLVM's passes"},     \
        {.name = "--target",                                                                       \
         .value = &(options)->target,                                                              \
         .needs = "a triple, such as powerpc64le-linux-gnu"},                                      \
    {                                                                                              \
        .name = "-O", .value = &(options)->level, .needs = "a level from 0 to 3"                   \
    }

/* The help text of these options, except --target. */
#define COMPILE_HELP                                                                               \
    "  --id-conflicts renumber\n"                                                                  \
    "                   give an ID of its own to each record whose ID is also that of a record "   \
    "of\n"                                                                                         \
    "                   another kind or type; without this option, the program is refused\n"       \
    "  --id-conflicts undeclared\n"                                                                \
    "                   leave such records without kind, types and site\n"                         \
    "  -O0, -O1, -O2, -O3\n"                                                                       \
    "                   optimisation level of the code generator (default: -O2)\n"                 \
    "  --passes LIST    run these passes first, in the syntax of LLVM's opt: 'default<O2>'\n"      \
    "  --cpu NAME       compile for this CPU, by LLVM's name; 'host' is the CPU of this machine\n" \
    "                   (default: the architecture's oldest CPU)\n"                                \
    "  --features LIST  with these features, by LLVM's names: +avx2,-bmi\n"

/* Checks the values of the options. False after an error message, which begins with `command`. */
bool check_compile_options(const char *command, const struct compile_options *options);

/* Compiles IR (text or bitcode) from a file. The caller frees `*bytes` with free(). Prints an error
 * message on failure. */
enum exit_status compile_file(const char *path, const struct compile_options *options, void **bytes,
                              size_t *size);

/* Whether the triple is for this machine's architecture. */
bool is_host_triple(const char *triple);

#endif
