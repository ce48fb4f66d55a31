/* SPDX-License-Identifier: MIT */
#include "tools/command.h"

enum exit_status command_run(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    complain("run: this cairn was built without LLVM: configure it with --with-llvm");
    return EXIT_BAD_USAGE;
}
