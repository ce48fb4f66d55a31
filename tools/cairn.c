/*
 * cairn: prints what LLVM writes into files for runtimes and profilers, and runs LLVM IR.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/cli/command.h"
#include "tools/cli/suggest.h"

#include <cairn/cairn.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: cairn COMMAND [OPTION...] FILE ...\n"
    "\n"
    "Prints what LLVM writes into ELF files for language runtimes and profilers, and runs LLVM "
    "IR.\n"
    "\n"
    "Commands that read an ELF object, executable, shared library or archive:\n"
    "  stackmap FILE                 print stack maps: where live values are at each record\n"
#ifdef CAIRN_WITH_LLVM
    "  stackmap --disassemble FILE   print stack maps with the code at each record\n"
#endif
    "  bbmap FILE                    print basic-block address maps\n"
    "  faultmap FILE                 print fault maps, which implicit null checks use\n"
    "  pcsections FILE --section NAME --schema SCHEMA\n"
    "                                print a PC section\n"
    "  sanmd FILE                    print sanitizer metadata: functions and atomic accesses\n"
    "  lookup FILE [ADDRESS...]      print all that the file contains about code addresses\n"
    "  profile FILE [SAMPLES]        count sampled addresses by basic block\n"
    "\n"
    "Commands for running code:\n"
    "  report LOG [-o PAGE]          print what an event log says, or write it as a page\n"
    "\n"
#ifdef CAIRN_WITH_LLVM
    "Commands that compile LLVM IR, or run it or an object made of it:\n"
    "  compile FILE -o OBJECT        compile to an object that can be run without LLVM\n"
#else
    "Commands that run an object of 'cairn compile':\n"
#endif
    "  run FILE --call FUNCTION [ARG...]\n"
    "                                call a function and print its result\n"
    "  run FILE --sites              list records and patchable sites\n"
#ifdef CAIRN_WITH_LLVM
    "  run FILE --sites --target TRIPLE\n"
    "                                list them as compiled for another architecture\n"
#endif
    "\n"
    "Command for a running process that uses Cairn:\n"
    "  inspect PID                   print its modules, sites, inline caches and code memory\n"
    "\n"
    "'cairn COMMAND --help' prints the options of a command.\n"
    "'cairn --version' prints the version. The manual page is cairn(1).\n"
    "\n"
    "Exit status: 0 success, 1 invalid input, 2 invalid usage.\n";

static enum exit_status print_version(void)
{
    static struct output output;
    output_open(&output, STDOUT_FILENO);
#ifdef CAIRN_WITH_LLVM
    const char *llvm = "LLVM " CAIRN_WITH_LLVM;
#else
    const char *llvm = "without LLVM";
#endif
    output_format(&output, "cairn %s (%s, %s)\n", cairn_version(), llvm,
                  cairn_architecture_name(cairn_architecture_host()));
    return finish_output(&output);
}

static const struct {
    const char *name;
    enum exit_status (*run)(int argc, char **argv);
    bool needs_llvm;
} commands[] = {
    {"bbmap", command_bbmap, false},
    {"compile", command_compile, true},
    {"faultmap", command_faultmap, false},
    {"inspect", command_inspect, false},
    {"lookup", command_lookup, false},
    {"pcsections", command_pcsections, false},
    {"profile", command_profile, false},
    {"report", command_report, false},
    {"run", command_run, true},
    {"sanmd", command_sanmd, false},
    {"stackmap", command_stackmap, false},
};

enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

/* Whether the help text has the command. The others say that they need LLVM. */
static bool is_listed(size_t command)
{
#ifdef CAIRN_WITH_LLVM
    (void)command;
    return true;
#else
    return !commands[command].needs_llvm;
#endif
}

static enum exit_status list_words(void)
{
    static struct output output;
    output_open(&output, STDOUT_FILENO);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (is_listed(i))
            output_format(&output, "%s\n", commands[i].name);
    output_text(&output, "--help\n--version\n");
    return finish_output(&output);
}

static enum exit_status complain_of_word(const char *word)
{
    struct suggestion suggestion = {.word = word};
    const char *kind = word[0] == '-' ? "option" : "command";
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (is_listed(i))
            suggestion_consider(&suggestion, commands[i].name);
    suggestion_consider(&suggestion, "--help");
    suggestion_consider(&suggestion, "--version");
    if (suggestion.nearest != NULL)
        complain("unknown %s '%s'; did you mean '%s'?", kind, word, suggestion.nearest);
    else
        complain("unknown %s '%s'; see 'cairn --help'", kind, word);
    return EXIT_BAD_USAGE;
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : NULL;
    /* A closed pipe and a file that is too large are reported as write errors. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (word == NULL) {
        complain("no command is given; see 'cairn --help'");
        return EXIT_BAD_USAGE;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return (int)print_text(help);
    if (strcmp(word, "--version") == 0)
        return (int)print_version();
    if (strcmp(word, LIST_OPTIONS) == 0)
        return (int)list_words();
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(word, commands[i].name) == 0)
            return (int)commands[i].run(argc - 1, argv + 1);
    return (int)complain_of_word(word);
}
