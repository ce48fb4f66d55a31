/*
 * cairn run: compiles IR into Cairn's memory, lists its sites, and calls one of its functions.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/call.h"
#include "tools/run_listing.h"
#include "llvm/program.h"

#include <cairn/cairn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: cairn run FILE [OPTION...] --call FUNCTION [ARG...]\n"
    "       cairn run FILE [OPTION...] --sites\n"
    "\n"
    "Compiles LLVM IR (text or bitcode) with MCJIT into Cairn's code memory, calls FUNCTION and\n"
    "prints its result. Each ARG is parsed by the type of its parameter:\n"
    "  integer of up to 128 bits      7, -7, 0x7; true and false for i1\n"
    "  floating-point number          1.5, 1e9, inf, nan, 0x1p-3\n"
    "  pointer                        an address, null, or '\"text\"' for a copy of the text\n"
    "  structure, array, vector       '{ 1, 2.5 }', '[1, 2]', '<1, 2, 3, 4>'\n"
    "An ARG that begins with '-' and is not a number must follow '--'.\n"
    "\n"
    "  --call FUNCTION  call this function, which must use the C, fast or cold calling convention\n"
    "  --sites          list every record and its site before the call: ID, address, kind, state,\n"
    "                   the locations of live values, and the bytes as emitted and as armed\n"
    "  --target TRIPLE  with --sites: compile for this target, such as powerpc64le-linux-gnu, and\n"
    "                   list the sites; nothing can be called. Not needed for IR that has the\n"
    "                   triple of another architecture, nor if FILE is an object\n"
    "  --id-conflicts renumber\n"
    "                   give an ID of its own to each record whose ID is also that of a record of\n"
    "                   another kind or type; without this option, the program is refused\n"
    "  --id-conflicts undeclared\n"
    "                   leave such records without kind, types and site\n"
    "  -O0, -O1, -O2, -O3\n"
    "                   optimisation level of the code generator (default: -O2)\n"
    "  --help           print this text\n";

#define CONFLICTS_NEEDS "'renumber' or 'undeclared'"

struct options {
    const char *path;
    const char *function; /* NULL to call no function */
    const char *target;   /* NULL for the target of the module */
    char **words;         /* arguments of the function */
    uint32_t word_count;
    unsigned optimisation_level;
    enum cairn_id_conflicts id_conflicts;
    bool sites;
};

/* The objects that exist while a program runs. */
struct session {
    const struct options *options;
    struct program *program;
    struct invocation_signature signature;
    struct call call;
    char invocation[INVOCATION_NAME_BYTES]; /* name of the function that makes the call */
    bool has_call;
    cairn_runtime *runtime;
    cairn_engine *engine;
    cairn_module *module; /* NULL until it is published */
    struct findings findings;
    void *function; /* function pointer for the call */
    struct printer printer;
};

/* ---- Loading ---- */

static void note_module(cairn_module *module, void *user)
{
    struct session *session = user;
    session->module = module;
}

static enum exit_status prepare_call(struct session *session)
{
    const struct options *options = session->options;
    struct cairn_error error;
    if (options->function == NULL)
        return EXIT_DONE;
    if (invocation_read(session->program, options->function, &session->signature, &error) !=
        CAIRN_OK)
        return complain_about(&session->findings, &error);
    session->has_call = true;
    enum cairn_status status = call_prepare(&session->signature, options->words,
                                            options->word_count, &session->call, &error);
    if (status == CAIRN_OK)
        status = invocation_build(session->program, options->function, &session->signature,
                                  session->call.scalars, session->invocation, &error);
    if (status == CAIRN_OK)
        return EXIT_DONE;
    complain("%s: %s: %s", options->path, options->function, error.message);
    return status == CAIRN_ERROR_ARGUMENT ? EXIT_BAD_USAGE : EXIT_BAD_INPUT;
}

/* Implements llvm.experimental.deoptimize for programs that do not define it. */
static void end_at_deoptimize(void)
{
    fflush(NULL);
    complain("the program has called llvm.experimental.deoptimize: there is no interpreter here");
    _exit(EXIT_BAD_INPUT);
}

static enum exit_status load(struct session *session)
{
    struct cairn_error error;
    struct cairn_engine_options options = {
        .optimisation_level = session->options->optimisation_level,
        .is_verified = true, /* program_read has verified the module */
        .finding = complain_about_finding,
        .finding_user = &session->findings,
        .deoptimize_target = (const void *)(uintptr_t)end_at_deoptimize,
        .memory_manager = {.name = session->options->path,
                           .after_publish = note_module,
                           .id_conflicts = session->options->id_conflicts,
                           .user = session},
    };
    enum cairn_status status = program_check_externals(session->program, &error);
    if (status == CAIRN_OK)
        status = cairn_runtime_create(NULL, &session->runtime, &error);
    if (status == CAIRN_OK)
        status = program_create_engine(session->program, session->runtime, &options,
                                       &session->engine, &error);
    if (status == CAIRN_OK)
        status = cairn_engine_finalise(session->engine, &error);
    if (status == CAIRN_OK && session->has_call) {
        session->function = cairn_engine_function(session->engine, session->invocation, &error);
        status = session->function != NULL ? CAIRN_OK : error.status;
    }
    return status == CAIRN_OK ? EXIT_DONE : complain_about(&session->findings, &error);
}

/* ---- Listing and calling ---- */

/* Calls the function. Meanwhile SIGPIPE has its default action, as in a program that runs by
 * itself. */
static enum exit_status call_function(struct session *session)
{
    signal(SIGPIPE, SIG_DFL);
    program_run_constructors(session->engine);
    call_make(&session->call, session->function);
    program_run_destructors(session->engine);
    fflush(NULL); /* output of the program precedes its result */
    signal(SIGPIPE, SIG_IGN);
    call_write_result(&session->call, &session->printer.output);
    return finish_output(&session->printer.output);
}

/* Lists a program for another architecture, or for a target that was given, without loading it. */
static enum exit_status run_foreign(struct session *session)
{
    const struct options *options = session->options;
    if (options->function == NULL)
        return list_program(session->program, options->path, options->optimisation_level,
                            options->id_conflicts, &session->printer);
    complain("%s: the program is for %s and cannot be called on %s; --sites lists its sites",
             options->path, cairn_architecture_name(program_architecture(session->program)),
             cairn_architecture_name(cairn_architecture_host()));
    return EXIT_BAD_INPUT;
}

static enum exit_status run_program(struct session *session)
{
    const struct options *options = session->options;
    struct cairn_error error;
    if (options->target != NULL &&
        program_set_target(session->program, options->target, &error) != CAIRN_OK)
        return complain_about(&session->findings, &error);
    enum cairn_architecture architecture = program_architecture(session->program);
    if (options->target != NULL ||
        (architecture != CAIRN_ARCHITECTURE_UNKNOWN && architecture != cairn_architecture_host()))
        return run_foreign(session);
    enum exit_status status = prepare_call(session);
    if (status == EXIT_DONE)
        status = load(session);
    if (status == EXIT_DONE && options->sites)
        status = list_module(session->module, session->program, session->engine, options->path,
                             &session->printer.output);
    if (status == EXIT_DONE && session->has_call)
        status = call_function(session);
    return status;
}

/* ---- The command ---- */

static void complain_about_llvm(const char *reason)
{
    complain("LLVM cannot compile this: %s", reason);
    _exit(EXIT_BAD_INPUT);
}

static enum exit_status run(const struct options *options)
{
    static struct session session;
    struct cairn_error error;
    char magic[4] = "";
    FILE *file = fopen(options->path, "rb");
    bool is_object = file != NULL && fread(magic, sizeof magic, 1, file) == 1 &&
                     memcmp(magic, "\177ELF", sizeof magic) == 0;
    if (file != NULL)
        fclose(file);
    session.options = options;
    session.findings.path = options->path;
    output_open(&session.printer.output, STDOUT_FILENO);
    program_on_fatal_error(complain_about_llvm);
    if (is_object) {
        if (options->function == NULL && options->target == NULL)
            return list_object(options->path, &session.printer);
        complain("%s: the file is an object, and %s needs LLVM IR; use --sites alone",
                 options->path, options->function != NULL ? "--call" : "--target");
        return EXIT_BAD_USAGE;
    }
    if (program_read(options->path, &session.program, &error) != CAIRN_OK) {
        complain("%s", error.message);
        return EXIT_BAD_INPUT;
    }
    enum exit_status status = run_program(&session);
    cairn_engine_destroy(session.engine);
    cairn_runtime_destroy(session.runtime);
    if (session.has_call)
        call_release(&session.call);
    invocation_release(&session.signature);
    program_dispose(session.program);
    return status;
}

static bool check_options(const struct options *options, const struct option_values *calls,
                          const char *level, const char *conflicts)
{
    if (calls->count > 1)
        return complain("run: --call is given more than once");
    if (level[0] < '0' || level[0] > '3' || level[1] != '\0')
        return complain("run: -O needs a level from 0 to 3, not '%s'", level);
    if (conflicts != NULL && options->id_conflicts == CAIRN_ID_CONFLICTS_REFUSED)
        return complain("run: --id-conflicts needs " CONFLICTS_NEEDS ", not '%s'", conflicts);
    if (calls->count == 0 && options->word_count > 0)
        return complain("run: '%s' is an argument, but --call is not given", options->words[0]);
    if (calls->count == 0 && !options->sites)
        return complain("run: nothing to do: give --call FUNCTION or --sites");
    if (calls->count > 0 && options->target != NULL &&
        program_find_architecture(options->target) == cairn_architecture_host())
        return complain("run: --target only lists sites; leave it out to call '%s'",
                        options->function);
    return true;
}

enum exit_status command_run(int argc, char **argv)
{
    struct options options = {.id_conflicts = CAIRN_ID_CONFLICTS_REFUSED};
    struct option_values calls = {.count = 0};
    const char *level = "2";
    const char *conflicts = NULL;
    const struct option known[] = {
        {.name = "--call", .values = &calls, .needs = "the name of a function"},
        {.name = "--id-conflicts", .value = &conflicts, .needs = CONFLICTS_NEEDS},
        {.name = "--sites", .flag = &options.sites},
        {.name = "--target",
         .value = &options.target,
         .needs = "a triple, such as powerpc64le-linux-gnu"},
        {.name = "-O", .value = &level, .needs = "a level from 0 to 3"},
    };
    struct command_line line = {.command = "run",
                                .help = help,
                                .options = known,
                                .option_count = sizeof known / sizeof *known,
                                .is_call = true};
    enum exit_status status;
    if (!parse_command_line(argc, argv, &line, &status))
        return status;
    options.path = line.file.path;
    options.words = line.operands + 1;
    options.word_count = (uint32_t)line.operand_count - 1;
    options.function = calls.values[0];
    options.optimisation_level = (unsigned)(level[0] - '0');
    if (conflicts != NULL && strcmp(conflicts, "renumber") == 0)
        options.id_conflicts = CAIRN_ID_CONFLICTS_RENUMBERED;
    else if (conflicts != NULL && strcmp(conflicts, "undeclared") == 0)
        options.id_conflicts = CAIRN_ID_CONFLICTS_UNDECLARED;
    return check_options(&options, &calls, level, conflicts) ? run(&options) : EXIT_BAD_USAGE;
}
