/*
 * cairn: prints what LLVM has written to a file for the runtime, and what Cairn makes of it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/command.h"

#include <cairn/cairn.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: cairn COMMAND [OPTION…] …\n"
    "\n"
    "  cairn stackmap FILE                      print the stack maps of an ELF file\n"
#ifdef CAIRN_WITH_LLVM
    "  cairn stackmap --disassemble FILE        and the code at its records, of any machine\n"
#endif
    "  cairn bbmap FILE                         print its basic-block address maps\n"
    "  cairn faultmap FILE                      print its fault maps\n"
    "  cairn pcsections FILE --section NAME --schema SCHEMA\n"
    "                                           print a PC section\n"
    "  cairn sanmd FILE                         print covered functions and atomic accesses\n"
    "  cairn lookup FILE [ADDRESS…]             say what is known about addresses of its code\n"
    "  cairn profile FILE [SAMPLES]             count sampled addresses by basic block\n"
#ifdef CAIRN_WITH_LLVM
    "  cairn run FILE --call FUNCTION [ARG…]    compile LLVM IR in Cairn's memory and call it\n"
    "  cairn run FILE --sites                   list its records and patchable sites\n"
    "  cairn run FILE --sites --target TRIPLE   the same, compiled for any machine\n"
#endif
    "  cairn COMMAND --help                     options of a command\n"
    "  cairn --help, cairn --version\n"
    "\n"
    "Exit status: 0 done, 1 bad input, 2 bad usage.\n";

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
} commands[] = {
    {"bbmap", command_bbmap},           {"faultmap", command_faultmap}, {"lookup", command_lookup},
    {"pcsections", command_pcsections}, {"profile", command_profile},   {"run", command_run},
    {"sanmd", command_sanmd},           {"stackmap", command_stackmap},
};

static enum exit_status dispatch(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : NULL;
    if (word == NULL) {
        complain("no command is given; see 'cairn --help'");
        return EXIT_BAD_USAGE;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return print_text(help);
    if (strcmp(word, "--version") == 0)
        return print_version();
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(word, commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    complain("unknown %s '%s'; see 'cairn --help'", word[0] == '-' ? "option" : "command", word);
    return EXIT_BAD_USAGE;
}

int main(int argc, char **argv)
{
    /* A closed pipe is reported as a write error. */
    signal(SIGPIPE, SIG_IGN);
    return (int)dispatch(argc, argv);
}
