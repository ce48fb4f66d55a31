/*
 * cairn compile: compiles IR to an object that can be loaded without LLVM.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/compile.h"
#include "llvm/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* ---- Error messages ---- */

/* What was found wrong with a module. */
struct findings {
    const char *path; /* for error messages */
    bool any;         /* whether an error message was printed */
};

static void complain_about_finding(const struct cairn_finding *finding, void *user)
{
    struct findings *findings = user;
    complain("%s: %s", findings->path, finding->sentence);
    findings->any = true;
}

/* Prints the error, and for an ID with two shapes the option that accepts it. Prints nothing if
 * LLVM has refused the module and findings, which are the same error, were printed. */
static void complain_about(const struct findings *findings, const struct cairn_error *error)
{
    if (error->status == CAIRN_ERROR_CONFLICT)
        complain("%s: %s: use '--id-conflicts renumber' or '--id-conflicts undeclared'",
                 findings->path, error->message);
    else if (error->status != CAIRN_ERROR_LLVM || !findings->any)
        complain("%s: %s", findings->path, error->message);
}

static void complain_about_llvm(const char *reason)
{
    complain("LLVM cannot compile this: %s", reason);
    _exit(EXIT_BAD_INPUT);
}

/* ---- Compiling ---- */

/* Returns the number of sections. */
static size_t list_captures(const struct wanted_sections *wanted, struct cairn_capture *captures)
{
    size_t count = wanted == NULL ? 0 : wanted->count;
    for (size_t i = 0; i < count; i++)
        captures[i] = (struct cairn_capture){.section = wanted->sections[i].name,
                                             .has_schema = true,
                                             .schema = wanted->sections[i].schema};
    return count;
}

static enum cairn_status compile(struct program *program, const struct compile_options *options,
                                 struct findings *findings, struct compiled *compiled,
                                 struct cairn_error *error)
{
    const char *conflicts = options->id_conflicts;
    struct cairn_capture captures[OPTION_VALUES_MAX];
    struct program_options program_options = {
        .optimisation_level = options->level == NULL ? 2 : (unsigned)(options->level[0] - '0'),
        .cpu = options->cpu == NULL ? "" : options->cpu,
        .features = options->features == NULL ? "" : options->features,
        .passes = options->passes,
        .finding = complain_about_finding,
        .user = findings,
        .captures = captures,
        .capture_count = list_captures(options->pc_sections, captures),
    };
    if (conflicts != NULL)
        program_options.id_conflicts = strcmp(conflicts, "renumber") == 0
                                           ? CAIRN_ID_CONFLICTS_RENUMBERED
                                           : CAIRN_ID_CONFLICTS_UNDECLARED;
    enum cairn_status status = CAIRN_OK;
    if (options->target != NULL)
        status = program_set_target(program, options->target, error);
    if (status == CAIRN_OK)
        status = program_compile(program, &program_options, compiled, error);
    return status;
}

enum exit_status compile_file(const char *path, const struct compile_options *options, void **bytes,
                              size_t *size)
{
    struct findings findings = {.path = path};
    struct program *program;
    struct compiled compiled = {0};
    struct cairn_error error;
    program_on_fatal_error(complain_about_llvm);
    if (program_read(path, &program, &error) != CAIRN_OK) {
        complain("%s", error.message);
        return EXIT_BAD_INPUT;
    }
    enum exit_status result = EXIT_BAD_INPUT;
    if (compile(program, options, &findings, &compiled, &error) != CAIRN_OK)
        complain_about(&findings, &error);
    else if ((*bytes = malloc(compiled.size)) == NULL)
        complain("%s: no memory for the object", path);
    else
        result = EXIT_DONE;
    if (result == EXIT_DONE)
        memcpy(*bytes, compiled.bytes, *size = compiled.size);
    compiled_release(&compiled);
    program_dispose(program);
    return result;
}

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
    return program_find_architecture(triple) == cairn_architecture_host();
}

/* ---- The command ---- */

/* Writes the file under another name first, so that no reader finds a part of it. */
static enum exit_status write_file(const char *path, const void *bytes, size_t size)
{
    char temporary[4096];
    if (snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid()) >=
        (int)sizeof temporary) {
        complain("%.200s...: the name is too long", path);
        return EXIT_BAD_INPUT;
    }
    FILE *file = fopen(temporary, "wb");
    bool is_written = file != NULL && fwrite(bytes, 1, size, file) == size;
    if (file != NULL && fclose(file) != 0)
        is_written = false;
    if (is_written && rename(temporary, path) == 0)
        return EXIT_DONE;
    complain("%s: cannot be written: %s", path, strerror(errno));
    if (file != NULL)
        unlink(temporary);
    return EXIT_BAD_INPUT;
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
    void *bytes;
    size_t size;
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
    status = compile_file(line.file.path, &options, &bytes, &size);
    if (status != EXIT_DONE)
        return status;
    status = write_file(output, bytes, size);
    free(bytes);
    return status;
}
