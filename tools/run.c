/*
 * cairn run: compiles IR into Cairn's memory, lists its sites, and calls one of its functions.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/call.h"
#include "tools/run_listing.h"
#include "tools/run_sites.h"
#include "llvm/program.h"

#include <cairn/cairn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: cairn run FILE [OPTION…] --call FUNCTION [ARG…]\n"
    "       cairn run FILE [OPTION…] --sites\n"
    "\n"
    "Compiles LLVM IR (text or bitcode) with MCJIT into Cairn's code memory, calls FUNCTION and\n"
    "prints its result. ARGs are parsed by the types of its parameters:\n"
    "  integers of up to 128 bits      7, -7, 0x7; true and false for i1\n"
    "  floating-point numbers          1.5, 1e9, inf, nan, 0x1p-3\n"
    "  pointers                        an address, null, or '\"text\"' for a copy of the text\n"
    "  structures, arrays, vectors     '{ 1, 2.5 }', '[1, 2]', '<1, 2, 3, 4>'\n"
    "Words after FUNCTION that begin with a letter, or with '-' and a letter, and are not numbers\n"
    "may be options; words after '--' are not.\n"
    "\n"
    "  --call FUNCTION  what to call; it has the C, the fast or the cold calling convention\n"
    "  --sites          lists every record and its site first: ID, address, kind, state, where\n"
    "                   the live values are, and the bytes as LLVM emitted them and armed\n"
    "  --target TRIPLE  with --sites: compiles for any machine, such as powerpc64le-linux-gnu, to\n"
    "                   list its sites. IR with the triple of another machine needs no --target,\n"
    "                   and FILE may be an object of any machine as well. Nothing can be called\n"
    "  --id-conflicts WHAT  where records of different kinds or types have the same ID:\n"
    "                   'renumber' gives each of them an ID of its own, 'undeclared' leaves them\n"
    "                   without kinds, types and sites; otherwise the program is refused\n"
    "  -O0 … -O3        optimisation level of the code generator (default -O2)\n"
    "  --help           this text\n";

struct options {
    const char *path;
    const char *function; /* NULL to call no function */
    const char *target;   /* NULL for the target of the module */
    char **words;         /* arguments of the function */
    uint32_t word_count;
    unsigned optimisation_level;
    enum cairn_id_conflicts id_conflicts;
    bool sites;
    bool help;
};

/* ---- The command line ---- */

static bool is_number(const char *word)
{
    const char *digits = word[0] == '-' ? word + 1 : word;
    if ((digits[0] >= '0' && digits[0] <= '9') || digits[0] == '.')
        return true;
    return strncmp(digits, "inf", 3) == 0 || strncmp(digits, "nan", 3) == 0;
}

static bool parse_id_conflicts(const char *word, struct options *options)
{
    if (word != NULL && strcmp(word, "renumber") == 0)
        options->id_conflicts = CAIRN_ID_CONFLICTS_RENUMBERED;
    else if (word != NULL && strcmp(word, "undeclared") == 0)
        options->id_conflicts = CAIRN_ID_CONFLICTS_UNDECLARED;
    else
        complain("run: --id-conflicts needs 'renumber' or 'undeclared'");
    return options->id_conflicts != CAIRN_ID_CONFLICTS_REFUSED;
}

static bool parse_option(int argc, char **argv, int *index, struct options *options)
{
    const char *word = argv[*index];
    if (strcmp(word, "--sites") == 0) {
        options->sites = true;
    } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        options->help = true;
    } else if (strncmp(word, "-O", 2) == 0 && word[2] >= '0' && word[2] <= '3' && word[3] == '\0') {
        options->optimisation_level = (unsigned)(word[2] - '0');
    } else if (strcmp(word, "--target") == 0 && *index + 1 < argc) {
        options->target = argv[++*index];
    } else if (strcmp(word, "--target") == 0) {
        return complain("run: --target needs a triple, such as powerpc64le-linux-gnu");
    } else if (strcmp(word, "--id-conflicts") == 0) {
        return parse_id_conflicts(*index + 1 < argc ? argv[++*index] : NULL, options);
    } else if (strcmp(word, "--call") == 0 && options->function == NULL && *index + 1 < argc) {
        options->function = argv[++*index];
    } else if (strcmp(word, "--call") == 0) {
        return complain("run: --call needs the name of a function, and can be given once");
    } else {
        return complain("run: unknown option '%s'; see 'cairn run --help'", word);
    }
    return true;
}

static bool check_options(const struct options *options)
{
    if (options->help)
        return true;
    if (options->path == NULL)
        return complain("run: no file is given; see 'cairn run --help'");
    if (options->function == NULL && options->word_count > 0)
        return complain("run: '%s' is an argument, but there is no --call", options->words[0]);
    if (options->function == NULL && !options->sites)
        return complain("run: nothing to do: give --call FUNCTION or --sites");
    if (options->function != NULL && options->target != NULL &&
        program_find_architecture(options->target) == cairn_architecture_host())
        return complain("run: with --target, code is listed and not called: leave it out to call "
                        "'%s'",
                        options->function);
    return true;
}

static bool parse(int argc, char **argv, struct options *options)
{
    bool options_end = false;
    for (int i = 1; i < argc; i++) {
        char *word = argv[i];
        bool is_option = !options_end && word[0] == '-' && word[1] != '\0' && !is_number(word);
        if (is_option && strcmp(word, "--") == 0)
            options_end = true;
        else if (!is_option && options->path == NULL)
            options->path = word;
        else if (!is_option)
            options->words[options->word_count++] = word;
        else if (!parse_option(argc, argv, &i, options))
            return false;
    }
    return check_options(options);
}

/* ---- Loading ---- */

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
    bool has_findings; /* whether the check of the module has printed why it refuses the module */
    void *function;    /* function pointer for the call */
    struct output output;
};

static enum exit_status complain_about(const struct session *session,
                                       const struct cairn_error *error)
{
    complain("%s: %s", session->options->path, error->message);
    return EXIT_BAD_INPUT;
}

/* Prints each finding on a line. The engine's error repeats the first one. */
static void complain_about_finding(const struct cairn_finding *finding, void *user)
{
    struct session *session = user;
    complain("%s: %s", session->options->path, finding->sentence);
    session->has_findings = true;
}

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
        return complain_about(session, &error);
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
        .finding_user = session,
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
    if (status == CAIRN_OK)
        return EXIT_DONE;
    if (status == CAIRN_ERROR_CONFLICT)
        return complain_about_conflict(session->options->path, &error);
    return session->has_findings && status == CAIRN_ERROR_LLVM ? EXIT_BAD_INPUT
                                                               : complain_about(session, &error);
}

/* ---- Listing and calling ---- */

static enum exit_status list_sites(struct session *session)
{
    struct cairn_error error;
    struct program_names names;
    if (session->module == NULL) {
        output_text(&session->output, "0 records, 0 sites\n");
        return finish_output(&session->output);
    }
    if (program_names_read(session->program, session->engine, &names, &error) != CAIRN_OK)
        return complain_about(session, &error);
    struct disassembler *disassembler = NULL;
    if (disassembler_create(cairn_architecture_host(), cairn_byte_order_host(), &disassembler,
                            &error) != CAIRN_OK)
        disassembler = NULL; /* only bytes are shown */
    write_sites(&session->output, session->module, &names, disassembler);
    disassembler_destroy(disassembler);
    program_names_release(&names);
    return finish_output(&session->output);
}

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
    call_write_result(&session->call, &session->output);
    return finish_output(&session->output);
}

/* ---- The command ---- */

static enum exit_status run_object(struct session *session)
{
    const struct options *options = session->options;
    if (options->function == NULL && options->target == NULL)
        return list_object(options->path, &session->output);
    complain("%s: this is an object, which only --sites can list: %s takes IR", options->path,
             options->function != NULL ? "--call" : "--target");
    return EXIT_BAD_USAGE;
}

/* Lists a program for another architecture, or for a target that was given. */
static enum exit_status run_foreign(struct session *session)
{
    const struct options *options = session->options;
    if (options->function == NULL)
        return list_program(session->program, options->path, options->optimisation_level,
                            options->id_conflicts, &session->output);
    complain("%s: the program is for %s, and this machine is %s: its sites can be listed "
             "(--sites), but nothing can be called",
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
        return complain_about(session, &error);
    enum cairn_architecture architecture = program_architecture(session->program);
    if (options->target != NULL ||
        (architecture != CAIRN_ARCHITECTURE_UNKNOWN && architecture != cairn_architecture_host()))
        return run_foreign(session);
    enum exit_status status = prepare_call(session);
    if (status == EXIT_DONE)
        status = load(session);
    if (status == EXIT_DONE && options->sites)
        status = list_sites(session);
    if (status == EXIT_DONE && session->has_call)
        status = call_function(session);
    return status;
}

static void complain_about_llvm(const char *reason)
{
    complain("LLVM cannot compile this: %s", reason);
    _exit(EXIT_BAD_INPUT);
}

static enum exit_status run(const struct options *options)
{
    static struct session session;
    struct cairn_error error;
    session.options = options;
    output_open(&session.output, STDOUT_FILENO);
    program_on_fatal_error(complain_about_llvm);
    if (is_object_file(options->path))
        return run_object(&session);
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

enum exit_status command_run(int argc, char **argv)
{
    struct options options = {.optimisation_level = 2};
    options.words = calloc((size_t)argc, sizeof *options.words);
    if (options.words == NULL) {
        complain("no memory");
        return EXIT_BAD_INPUT;
    }
    enum exit_status status = EXIT_BAD_USAGE;
    if (parse(argc, argv, &options))
        status = options.help ? print_text(help) : run(&options);
    free(options.words);
    return status;
}
