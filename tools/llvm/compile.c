/*
 * cairn compile: compiles IR to an object that can be loaded without LLVM.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/llvm/compile.h"
#include "tools/cli/save.h"
#include "tools/llvm/module.h"

#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: cairn compile FILE [OPTION...] -o OBJECT\n"
    "\n"
    "Compiles LLVM IR (text or bitcode) to an ELF object with a manifest, which 'cairn run' and\n"
    "cairn_loader_add_object load without LLVM: the declarations of its records, and the features\n"
    "of the CPU that its code needs.\n"
    "\n"
    "  -o OBJECT        write this file\n"
    "  --target TRIPLE  compile for this target, such as powerpc64le-linux-gnu\n" COMPILE_HELP
    "  --section NAME, --schema SCHEMA\n"
    "                   name this PC section in the manifest, so that it is kept with the code\n"
    "                   (cairn_module_pc_table); see 'cairn pcsections --help'. May be given\n"
    "                   several times, in pairs, or with one schema for all\n"
    "  --help           print this text\n";

/* ---- Options ---- */

bool check_compile_options(const char *command, const struct compile_options *options)
{
    const char *level = options->level;
    const char *conflicts = options->id_conflicts;
    if (level != NULL && (level[0] < '0' || level[0] > '3' || level[1] != '\0'))
        return complain("%s: -O needs a level from 0 to 3, not '%s'", command, level);
    if (conflicts != NULL && strcmp(conflicts, "renumber") != 0 &&
        strcmp(conflicts, "undeclared") != 0)
        return complain("%s: --id-conflicts needs 'renumber' or 'undeclared', not '%s'", command,
                        conflicts);
    return true;
}

bool is_host_triple(const char *triple)
{
    const struct llvm_functions *llvm = find_llvm(NULL);
    return llvm != NULL && llvm->find_architecture(triple) == cairn_architecture_host();
}

enum exit_status compile_file(const char *path, const struct compile_options *options, void **bytes,
                              size_t *size)
{
    struct cairn_error error;
    const struct llvm_functions *llvm = find_llvm(&error);
    if (llvm != NULL)
        return llvm->compile_file(path, options, bytes, size);
    complain("%s: this is not an object, and cannot be compiled: %s", path, error.message);
    return EXIT_BAD_USAGE;
}

/* ---- The command ---- */

/* A compiled object. */
struct compiled {
    void *bytes;
    size_t size;
};

static bool write_object(struct output *output, void *user)
{
    const struct compiled *compiled = user;
    output_bytes(output, compiled->bytes, compiled->size);
    return true;
}

enum exit_status command_compile(int argc, char **argv)
{
    struct compile_options options = {.level = NULL};
    struct section_options sections = {.names = {.count = 0}};
    struct wanted_sections wanted;
    const char *output = NULL;
    const struct option known[] = {
        COMPILE_OPTIONS(&options),
        SECTION_OPTIONS(&sections),
        {.name = "-o", .value = &output, .needs = "the name of an object"},
    };
    struct command_line line = {.command = "compile",
                                .help = help,
                                .options = known,
                                .option_count = sizeof known / sizeof *known,
                                .operand_limit = 1,
                                .is_call = true};
    enum exit_status status;
    struct compiled compiled;
    struct cairn_error error;
    if (find_llvm(&error) == NULL) {
        complain("compile: %s", error.message);
        return EXIT_BAD_USAGE;
    }
    if (!parse_command_line(argc, argv, &line, &status))
        return status;
    if (!check_compile_options("compile", &options) ||
        !parse_wanted_sections("compile", &sections, &wanted))
        return EXIT_BAD_USAGE;
    options.pc_sections = &wanted;
    if (output == NULL) {
        complain("compile: no output is given: -o OBJECT");
        return EXIT_BAD_USAGE;
    }
    status = compile_file(line.file.path, &options, &compiled.bytes, &compiled.size);
    if (status != EXIT_DONE)
        return status;
    if (!save_output(output, write_object, &compiled))
        status = EXIT_BAD_INPUT;
    free(compiled.bytes);
    return status;
}
