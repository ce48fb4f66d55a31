/*
 * Reads IR from a file.
 *
 * As far as the C API allows it, this file avoids the cases in which LLVM ends the process. It
 * keeps the errors that LLVM reports through the context, because LLVM's own handler exits. It
 * looks for undefined symbols before MCJIT does, because MCJIT aborts if it does not find one.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/program.h"

#include "base/error.h"
#include "llvm/diagnostics.h"
#include "llvm/verify.h"

#include <dlfcn.h>
#include <errno.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Support.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct program {
    LLVMContextRef context;
    LLVMModuleRef module;
    bool is_engines;               /* whether the module belongs to an engine */
    struct cairn_error diagnostic; /* the first error that LLVM has reported */
};

/* ---- Reading ---- */

/* Truncates LLVM's message to its first line, which holds the place and the error. The other lines
 * show the source. */
static void cut_to_first_line(char *message) { message[strcspn(message, "\n")] = '\0'; }

static void keep_diagnostic(LLVMDiagnosticInfoRef info, void *user)
{
    struct program *program = user;
    diagnostics_keep_first(info, &program->diagnostic);
}

static enum cairn_status read_file(const char *path, LLVMMemoryBufferRef *buffer,
                                   struct cairn_error *error)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return error_set_system(error, errno, "%s: cannot be opened", path);
    if (S_ISDIR(status.st_mode))
        return error_set_system(error, EISDIR, "%s: cannot be read", path);
    char *message = NULL;
    if (LLVMCreateMemoryBufferWithContentsOfFile(path, buffer, &message) == 0)
        return CAIRN_OK;
    error_set(error, CAIRN_ERROR_SYSTEM, 0, "%s: cannot be read: %s", path, message);
    LLVMDisposeMessage(message);
    return CAIRN_ERROR_SYSTEM;
}

static enum cairn_status parse(const char *path, struct program *program, struct cairn_error *error)
{
    LLVMMemoryBufferRef buffer;
    enum cairn_status status = read_file(path, &buffer, error);
    if (status != CAIRN_OK)
        return status;
    char *message = NULL;
    /* This call takes ownership of the buffer. */
    if (LLVMParseIRInContext(program->context, buffer, &program->module, &message) == 0)
        return CAIRN_OK;
    program->module = NULL;
    cut_to_first_line(message);
    size_t length = strlen(path);
    bool has_place = strncmp(message, path, length) == 0 && message[length] == ':';
    error_set(error, CAIRN_ERROR_LLVM, 0, "%s%s%s", has_place ? "" : path, has_place ? "" : ": ",
              message);
    LLVMDisposeMessage(message);
    return CAIRN_ERROR_LLVM;
}

static enum cairn_status verify(const char *path, const struct program *program,
                                struct cairn_error *error)
{
    static const struct verify_strategies none;
    struct cairn_error found;
    enum cairn_status status = verify_module(program->module, &none, &found);
    if (status != CAIRN_OK)
        error_set(error, status, 0, "%s: %s", path, found.message);
    return status;
}

enum cairn_status program_read(const char *path, struct program **program,
                               struct cairn_error *error)
{
    struct program *created = calloc(1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "%s: no memory", path);
    created->context = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(created->context, keep_diagnostic, created);
    enum cairn_status status = parse(path, created, error);
    if (status == CAIRN_OK)
        status = verify(path, created, error);
    if (status == CAIRN_OK)
        *program = created;
    else
        program_dispose(created);
    return status;
}

void program_dispose(struct program *program)
{
    if (program == NULL)
        return;
    if (program->module != NULL && !program->is_engines)
        LLVMDisposeModule(program->module);
    LLVMContextDispose(program->context);
    free(program);
}

enum cairn_status program_create_engine(struct program *program, cairn_runtime *runtime,
                                        const struct cairn_engine_options *options,
                                        cairn_engine **engine, struct cairn_error *error)
{
    enum cairn_status status =
        cairn_engine_create(runtime, program->module, options, engine, error);
    program->is_engines = status == CAIRN_OK;
    return status;
}

enum cairn_status program_status(const struct program *program, struct cairn_error *error)
{
    if (program->diagnostic.status != CAIRN_OK && error != NULL)
        *error = program->diagnostic;
    return program->diagnostic.status;
}

void program_on_fatal_error(void (*handler)(const char *reason))
{
    LLVMInstallFatalErrorHandler(handler);
}

/* ---- Functions ---- */

static bool is_definition(LLVMValueRef function)
{
    return !LLVMIsDeclaration(function) &&
           LLVMGetLinkage(function) != LLVMAvailableExternallyLinkage;
}

/* Writes "first, second, third, …". */
static void list_definitions(LLVMModuleRef module, char *text, size_t size)
{
    size_t length = 0;
    for (LLVMValueRef function = LLVMGetFirstFunction(module); function != NULL;
         function = LLVMGetNextFunction(function)) {
        size_t name_length;
        const char *name = LLVMGetValueName2(function, &name_length);
        if (!is_definition(function))
            continue;
        const char *separator = length == 0 ? "" : ", ";
        if (length + name_length + sizeof ", …" > size - sizeof ", …") {
            snprintf(text + length, size - length, "%s…", separator);
            return;
        }
        length += (size_t)snprintf(text + length, size - length, "%s%s", separator, name);
    }
    if (length == 0)
        snprintf(text, size, "none");
}

static void report_missing(const struct program *program, const char *name, bool is_declared,
                           struct cairn_error *error)
{
    char defined[128];
    list_definitions(program->module, defined, sizeof defined);
    error_set(error, CAIRN_ERROR_NOT_FOUND, 0, "function '%s' is %s; defined: %s", name,
              is_declared ? "only declared here" : "not there", defined);
}

LLVMModuleRef program_module(const struct program *program) { return program->module; }

LLVMValueRef program_find_function(const struct program *program, const char *name,
                                   struct cairn_error *error)
{
    LLVMValueRef function = LLVMGetNamedFunction(program->module, name);
    if (function != NULL && is_definition(function))
        return function;
    report_missing(program, name, function != NULL, error);
    return NULL;
}

/* ---- Symbols that the program imports ---- */

/* Whether this process defines the symbol. A first byte of 1, which turns off the target's
 * mangling, is not part of the name. */
static bool is_in_process(const char *name)
{
    if (name[0] == '\1')
        name++;
    return dlsym(RTLD_DEFAULT, name) != NULL || LLVMSearchForAddressOfSymbol(name) != NULL;
}

static bool is_missing(LLVMValueRef global)
{
    const char *name = LLVMGetValueName(global);
    bool is_outside =
        LLVMIsDeclaration(global) || LLVMGetLinkage(global) == LLVMAvailableExternallyLinkage;
    return is_outside && LLVMGetFirstUse(global) != NULL && strncmp(name, "llvm.", 5) != 0 &&
           LLVMGetLinkage(global) != LLVMExternalWeakLinkage && !is_in_process(name);
}

static enum cairn_status report_external(LLVMValueRef global, const char *what,
                                         struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_NOT_FOUND, 0,
                     "%s '%s' is used, but neither the program nor this process defines it", what,
                     LLVMGetValueName(global));
}

enum cairn_status program_check_externals(const struct program *program, struct cairn_error *error)
{
    LLVMLoadLibraryPermanently(NULL); /* makes this process's symbols available to LLVM */
    for (LLVMValueRef function = LLVMGetFirstFunction(program->module); function != NULL;
         function = LLVMGetNextFunction(function))
        if (is_missing(function))
            return report_external(function, "function", error);
    for (LLVMValueRef variable = LLVMGetFirstGlobal(program->module); variable != NULL;
         variable = LLVMGetNextGlobal(variable))
        if (is_missing(variable))
            return report_external(variable, "variable", error);
    return CAIRN_OK;
}

void program_run_constructors(cairn_engine *engine)
{
    LLVMRunStaticConstructors(cairn_engine_llvm(engine));
}

void program_run_destructors(cairn_engine *engine)
{
    LLVMRunStaticDestructors(cairn_engine_llvm(engine));
}

/* ---- Names by address ---- */

static int compare_names(const void *left, const void *right)
{
    uint64_t a = ((const struct program_name *)left)->address;
    uint64_t b = ((const struct program_name *)right)->address;
    return (a > b) - (a < b);
}

static size_t count_functions(LLVMModuleRef module)
{
    size_t count = 0;
    for (LLVMValueRef function = LLVMGetFirstFunction(module); function != NULL;
         function = LLVMGetNextFunction(function))
        count++;
    return count;
}

enum cairn_status program_names_read(const struct program *program, cairn_engine *engine,
                                     struct program_names *names, struct cairn_error *error)
{
    LLVMExecutionEngineRef llvm = cairn_engine_llvm(engine);
    size_t capacity = count_functions(program->module);
    *names = (struct program_names){.entries = calloc(capacity + 1, sizeof *names->entries)};
    if (names->entries == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu names", capacity);
    for (LLVMValueRef function = LLVMGetFirstFunction(program->module); function != NULL;
         function = LLVMGetNextFunction(function)) {
        if (!is_definition(function))
            continue;
        uint64_t address = (uint64_t)(uintptr_t)LLVMGetPointerToGlobal(llvm, function);
        if (address != 0)
            names->entries[names->count++] =
                (struct program_name){address, LLVMGetValueName(function)};
    }
    qsort(names->entries, names->count, sizeof *names->entries, compare_names);
    return CAIRN_OK;
}

const char *program_names_find(const struct program_names *names, uint64_t address)
{
    struct program_name key = {.address = address};
    const struct program_name *found =
        bsearch(&key, names->entries, names->count, sizeof key, compare_names);
    return found == NULL ? NULL : found->name;
}

void program_names_release(struct program_names *names)
{
    free(names->entries);
    *names = (struct program_names){0};
}
