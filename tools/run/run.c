/*
 * cairn run: loads an object into code memory, lists its sites, and calls one of its functions. IR
 * is compiled to an object first. LLVM is used for nothing else, except to print instructions.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/llvm/compile.h"
#include "tools/run/call.h"
#include "tools/run/listing.h"

#include <cairn/cairn.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: cairn run FILE [OPTION...] --call FUNCTION [ARG...]\n"
    "       cairn run FILE [OPTION...] --sites\n"
    "\n"
    "Loads an object of 'cairn compile', or LLVM IR (text or bitcode), which is compiled to one,\n"
    "into Cairn's code memory, calls FUNCTION and prints its result. Each ARG is parsed by the\n"
    "type of its parameter:\n"
    "  integer of up to 128 bits      7, -7, 0x7; true and false for i1\n"
    "  floating-point number          1.5, 1e9, inf, nan, 0x1p-3\n"
    "  pointer                        an address, null, or '\"text\"' for a copy of the text\n"
    "  structure, array, vector       '{ 1, 2.5 }', '[1, 2]', '<1, 2, 3, 4>'\n"
    "An ARG that begins with '-' and is not a number must follow '--'.\n"
    "\n"
    "  --call FUNCTION  call this function, which must use the C, fast or cold calling convention\n"
    "  --sites          list every record and its site before the call: ID, address, kind, state,\n"
    "                   the locations of live values, and the bytes as emitted and as armed; also\n"
    "                   of any other object\n"
    "  --target TRIPLE  with --sites: compile for this target, such as powerpc64le-linux-gnu, and\n"
    "                   list the sites; nothing can be called. Not needed for IR that has the\n"
    "                   triple of another architecture\n"
    "Options for LLVM IR:\n" COMPILE_HELP "  --help           print this text\n";

/* The names that `cairn compile` gives to the types of functions, and to what calls them
 * (llvm/invocation.h). */
static const char signatures_name[] = "cairn.signatures";
static const char caller_prefix[] = "cairn.call.";

struct options {
    const char *path;
    const char *function; /* NULL to call no function */
    char **words;         /* arguments of the function */
    uint32_t word_count;
    struct compile_options compile;
    bool sites;
};

/* The objects that exist while a program runs. */
struct session {
    const struct options *options;
    void *bytes; /* of the object */
    size_t size;
    cairn_object *object; /* for what needs no loading */
    cairn_runtime *runtime;
    cairn_module *module; /* NULL until it is published */
    struct signature signature;
    struct call call;
    struct printer printer;
};

static enum exit_status fail(const struct session *session, const struct cairn_error *error)
{
    complain("%s: %s", session->options->path, error->message);
    return EXIT_BAD_INPUT;
}

/* ---- Loading ---- */

/* Implements llvm.experimental.deoptimize for programs that do not define it. */
static void end_at_deoptimize(void)
{
    fflush(NULL);
    complain("the program has called llvm.experimental.deoptimize: there is no interpreter here");
    _exit(EXIT_BAD_INPUT);
}

/* Opens the libraries that compilers add to programs: of exceptions and 128-bit arithmetic, and of
 * C++. */
static void open_language_libraries(void)
{
    (void)!dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_GLOBAL);
    (void)!dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL);
}

static bool find_symbol(void *user, const char *name, uint64_t *address)
{
    (void)user;
    if (dlsym(RTLD_DEFAULT, name) == NULL)
        open_language_libraries();
    *address = (uintptr_t)end_at_deoptimize;
    return strcmp(name, "__llvm_deoptimize") == 0;
}

static void note_features(void *user, const char *needed, const char *available)
{
    const struct session *session = user;
    complain("%s: needs a CPU with: %s", session->options->path, needed);
    complain("%s: this CPU has: %s", session->options->path, available);
}

static enum exit_status load(struct session *session)
{
    const struct cairn_load_options options = {
        .find_symbol = find_symbol, .note_features = note_features, .user = session};
    cairn_loader *loader = NULL;
    cairn_module *module;
    struct cairn_error error;
    enum cairn_status status = cairn_runtime_create(NULL, &session->runtime, &error);
    if (status == CAIRN_OK)
        status = cairn_loader_create(session->runtime, session->options->path, &loader, &error);
    if (status == CAIRN_OK)
        status = cairn_loader_add_object(loader, session->bytes, session->size, &options, &error);
    if (status == CAIRN_OK)
        status = cairn_loader_finish(loader, &module, &error);
    if (status != CAIRN_OK)
        cairn_loader_destroy(loader);
    if (status == CAIRN_OK)
        status = cairn_module_publish(module, &error);
    if (status != CAIRN_OK)
        return fail(session, &error);
    session->module = module;
    return EXIT_DONE;
}

/* ---- Calling ---- */

/* Returns the text of the function's signature; NULL, after an error message, if the program has no
 * such function. */
static const char *find_signature(const struct session *session, const char *name)
{
    const char *path = session->options->path;
    const char *entry = cairn_module_find_symbol(session->module, signatures_name);
    char defined[128] = "";
    size_t length = 0;
    if (entry == NULL) {
        complain("%s: the object does not contain the types of its functions, as those of "
                 "'cairn compile' do; only --sites can be used",
                 path);
        return NULL;
    }
    while (*entry != '\0') {
        const char *text = entry + strlen(entry) + 1;
        bool fits = length + strlen(entry) + sizeof ", ..." <= sizeof defined - sizeof ", ...";
        if (strcmp(entry, name) == 0 && *text != '\0')
            return text;
        if (strcmp(entry, name) == 0) {
            complain("%s: function '%s' is only declared here", path, name);
            return NULL;
        }
        if (*text != '\0' && length < sizeof defined - sizeof ", ...")
            length += (size_t)snprintf(defined + length, sizeof defined - length, "%s%s",
                                       length == 0 ? "" : ", ", fits ? entry : "...");
        if (!fits)
            length = sizeof defined;
        entry = text + strlen(text) + 1;
    }
    complain("%s: function '%s' is not there; defined: %s", path, name,
             *defined == '\0' ? "none" : defined);
    return NULL;
}

static enum exit_status prepare_call(struct session *session)
{
    const struct options *options = session->options;
    struct cairn_error error;
    const char *text = find_signature(session, options->function);
    if (text == NULL)
        return EXIT_BAD_INPUT;
    if (*text == '!') {
        complain("%s: %s", options->path, text + 1);
        return EXIT_BAD_INPUT;
    }
    if (signature_parse(text, &session->signature, &error) != CAIRN_OK)
        return fail(session, &error);
    enum cairn_status status = call_prepare(&session->signature, options->words,
                                            options->word_count, &session->call, &error);
    if (status == CAIRN_OK)
        return EXIT_DONE;
    complain("%s: %s: %s", options->path, options->function, error.message);
    return status == CAIRN_ERROR_ARGUMENT ? EXIT_BAD_USAGE : EXIT_BAD_INPUT;
}

/* Sets the action of the signals that the command ignores. */
static void set_write_signals(void (*action)(int))
{
    signal(SIGPIPE, action);
    signal(SIGXFSZ, action);
}

/* Calls the function. Meanwhile these signals have their default action, as in a program that runs
 * by itself. */
static enum exit_status call_function(struct session *session)
{
    const char *name = session->options->function;
    char caller[4096];
    struct cairn_error error;
    snprintf(caller, sizeof caller, "%s%s", caller_prefix, name);
    void *function = cairn_module_find_symbol(session->module, caller);
    if (function == NULL) {
        complain("%s: the object does not define '%.200s'", session->options->path, caller);
        return EXIT_BAD_INPUT;
    }
    set_write_signals(SIG_DFL);
    if (cairn_module_run_constructors(session->module, &error) != CAIRN_OK)
        return fail(session, &error);
    call_make(&session->call, (calling_function *)(uintptr_t)function);
    cairn_module_run_destructors(session->module);
    fflush(NULL); /* output of the program precedes its result */
    set_write_signals(SIG_IGN);
    call_write_result(&session->call, &session->printer.output);
    return finish_output(&session->printer.output);
}

/* ---- The program ---- */

/* Whether the object can be loaded here, and was not compiled for a target that was given. */
static bool is_native(const struct session *session)
{
    return session->options->compile.target == NULL &&
           cairn_object_header(session->object).architecture == cairn_architecture_host() &&
           cairn_object_header(session->object).byte_order == CAIRN_BYTE_ORDER_NATIVE;
}

static enum exit_status run_object(struct session *session)
{
    const struct options *options = session->options;
    if (options->function == NULL && (!is_native(session) || !has_manifest(session->object)))
        return list_object(session->object, options->path, &session->printer);
    if (!is_native(session)) {
        complain("%s: the program is for %s and cannot be called on %s; --sites lists its sites",
                 options->path,
                 cairn_architecture_name(cairn_object_header(session->object).architecture),
                 cairn_architecture_name(cairn_architecture_host()));
        return EXIT_BAD_INPUT;
    }
    enum exit_status status = load(session);
    if (status == EXIT_DONE && options->function != NULL)
        status = prepare_call(session);
    if (status == EXIT_DONE && options->sites)
        status = list_module(session->runtime, session->module, &session->printer.output);
    if (status == EXIT_DONE && options->function != NULL)
        status = call_function(session);
    return status;
}

/* Reads an object's bytes. Sets `*is_object`, and reads nothing else of another file. */
static enum exit_status read_object(struct session *session, bool *is_object)
{
    static const char magic[] = {'\177', 'E', 'L', 'F'};
    const char *path = session->options->path;
    FILE *file = fopen(path, "rbe");
    size_t capacity = 1 << 16;
    size_t count = 0;
    uint8_t *bytes = file == NULL ? NULL : malloc(capacity);
    while (bytes != NULL &&
           (count = fread(bytes + session->size, 1, capacity - session->size, file)) > 0) {
        session->size += count;
        if (session->size < sizeof magic || memcmp(bytes, magic, sizeof magic) != 0)
            break;
        if (session->size < capacity)
            continue;
        uint8_t *grown = realloc(bytes, capacity *= 2);
        if (grown == NULL)
            free(bytes);
        bytes = grown;
    }
    bool failed = file != NULL && (bytes == NULL || ferror(file) != 0);
    *is_object =
        bytes != NULL && session->size >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
    if (*is_object && failed)
        complain("%s: cannot be read: %s", path, strerror(errno));
    if (file != NULL)
        fclose(file);
    if (*is_object && !failed) {
        session->bytes = bytes;
        return EXIT_DONE;
    }
    free(bytes);
    session->size = 0;
    return *is_object ? EXIT_BAD_INPUT : EXIT_DONE;
}

/* Returns the name of an option that is for IR, or NULL. */
static const char *find_compile_option(const struct compile_options *options)
{
    return options->target != NULL         ? "--target"
           : options->cpu != NULL          ? "--cpu"
           : options->features != NULL     ? "--features"
           : options->passes != NULL       ? "--passes"
           : options->id_conflicts != NULL ? "--id-conflicts"
           : options->level != NULL        ? "-O"
                                           : NULL;
}

static enum exit_status run(const struct options *options)
{
    static struct session session;
    struct cairn_error error;
    bool is_object;
    session.options = options;
    output_open(&session.printer.output, STDOUT_FILENO);
    enum exit_status status = read_object(&session, &is_object);
    const char *unused = is_object ? find_compile_option(&options->compile) : NULL;
    if (unused != NULL) {
        complain("%s: the file is an object, and %s needs LLVM IR", options->path, unused);
        status = EXIT_BAD_USAGE;
    }
    if (status == EXIT_DONE && !is_object)
        status = compile_file(options->path, &options->compile, &session.bytes, &session.size);
    if (status == EXIT_DONE && cairn_object_open_memory(session.bytes, session.size, NULL,
                                                        &session.object, &error) != CAIRN_OK)
        status = fail(&session, &error);
    if (status == EXIT_DONE)
        status = run_object(&session);
    cairn_module_retire(session.module);
    cairn_runtime_destroy(session.runtime);
    cairn_object_destroy(session.object);
    call_release(&session.call);
    signature_release(&session.signature);
    free(session.bytes);
    return status;
}

/* ---- The command ---- */

static bool check_options(const struct options *options, const struct option_values *calls)
{
    if (calls->count > 1)
        return complain("run: --call is given more than once");
    if (calls->count == 0 && options->word_count > 0)
        return complain("run: '%s' is an argument, but --call is not given", options->words[0]);
    if (calls->count == 0 && !options->sites)
        return complain("run: nothing to do: give --call FUNCTION or --sites");
    if (calls->count > 0 && options->compile.target != NULL &&
        is_host_triple(options->compile.target))
        return complain("run: --target only lists sites; leave it out to call '%s'",
                        options->function);
    return check_compile_options("run", &options->compile);
}

enum exit_status command_run(int argc, char **argv)
{
    struct options options = {.path = NULL};
    struct option_values calls = {.count = 0};
    const struct option known[] = {
        {.name = "--call", .values = &calls, .needs = "the name of a function"},
        {.name = "--sites", .flag = &options.sites},
        COMPILE_OPTIONS(&options.compile),
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
    return check_options(&options, &calls) ? run(&options) : EXIT_BAD_USAGE;
}
