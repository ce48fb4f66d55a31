/*
 * What the command needs of LLVM, as a module that it opens when it first needs it
 * (tools/llvm/module.h).
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/llvm/module.h"

#include "tools/llvm/compile.h"
#include "llvm/program.h"

#include <cairn/cairn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
static size_t list_pc_sections(const struct wanted_sections *wanted,
                               struct cairn_pc_section *listed)
{
    size_t count = wanted == NULL ? 0 : wanted->count;
    for (size_t i = 0; i < count; i++)
        listed[i] = (struct cairn_pc_section){.section = wanted->sections[i].name,
                                              .has_schema = true,
                                              .schema = wanted->sections[i].schema};
    return count;
}

static enum cairn_status compile(struct program *program, const struct compile_options *options,
                                 struct findings *findings, struct compiled *compiled,
                                 struct cairn_error *error)
{
    const char *conflicts = options->id_conflicts;
    struct cairn_pc_section pc_sections[OPTION_VALUES_MAX];
    struct program_options program_options = {
        .optimisation_level = options->level == NULL ? 2 : (unsigned)(options->level[0] - '0'),
        .cpu = options->cpu == NULL ? "" : options->cpu,
        .features = options->features == NULL ? "" : options->features,
        .passes = options->passes,
        .finding = complain_about_finding,
        .user = findings,
        .pc_sections = pc_sections,
        .pc_section_count = list_pc_sections(options->pc_sections, pc_sections),
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

static enum exit_status compile_ir(const char *path, const struct compile_options *options,
                                   void **bytes, size_t *size)
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

/* ---- The module ---- */

CAIRN_API const struct llvm_functions LLVM_FUNCTIONS_SYMBOL = {
    .version = CAIRN_VERSION_STRING,
    .disassembler_create = disassembler_create,
    .disassembler_destroy = disassembler_destroy,
    .disassembler_next = disassembler_next,
    .find_architecture = program_find_architecture,
    .compile_file = compile_ir,
};
