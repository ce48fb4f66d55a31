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
#include "llvm/check.h"
#include "llvm/compile.h"
#include "llvm/ir.h"
#include "llvm/types.h"
#include "llvm/version.h"

#include <dlfcn.h>
#include <errno.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
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

static void keep_diagnostic(LLVMDiagnosticInfoRef info, void *user)
{
    struct program *program = user;
    diagnostics_keep_first(info, &program->diagnostic);
}

static enum cairn_status parse(const char *path, struct program *program, struct cairn_error *error)
{
    LLVMMemoryBufferRef buffer;
    char *message = NULL;
    struct stat file;
    if (stat(path, &file) != 0)
        return error_set_system(error, errno, "%s: cannot be opened", path);
    if (S_ISDIR(file.st_mode))
        return error_set_system(error, EISDIR, "%s: cannot be read", path);
    enum cairn_status status = CAIRN_OK;
    if (LLVMCreateMemoryBufferWithContentsOfFile(path, &buffer, &message) != 0) {
        status = error_set(error, CAIRN_ERROR_SYSTEM, 0, "%s: cannot be read: %s", path, message);
    } else if (LLVMParseIRInContext(program->context, buffer, &program->module, &message) != 0) {
        /* The call takes ownership of the buffer. The message's first line holds the place and the
         * error, the other lines show the source. */
        size_t length = strlen(path);
        bool has_place = strncmp(message, path, length) == 0 && message[length] == ':';
        program->module = NULL;
        status = error_set(error, CAIRN_ERROR_LLVM, 0, "%s%s%.*s", has_place ? "" : path,
                           has_place ? "" : ": ", (int)strcspn(message, "\n"), message);
    }
    if (status != CAIRN_OK)
        LLVMDisposeMessage(message);
    return status;
}

enum cairn_status program_read(const char *path, struct program **program,
                               struct cairn_error *error)
{
    static const struct cairn_check_options no_strategies;
    struct cairn_error found;
    struct program *created = calloc(1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "%s: no memory", path);
    created->context = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(created->context, keep_diagnostic, created);
    enum cairn_status status = parse(path, created, error);
    if (status == CAIRN_OK) {
        status = verify_module(created->module, &no_strategies, &found);
        if (status != CAIRN_OK)
            error_set(error, status, 0, "%s: %s", path, found.message);
    }
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

LLVMModuleRef program_module(const struct program *program) { return program->module; }

LLVMValueRef program_find_function(const struct program *program, const char *name,
                                   struct cairn_error *error)
{
    char defined[128] = "";
    size_t length = 0;
    size_t size = sizeof defined - sizeof ", …";
    LLVMValueRef found = LLVMGetNamedFunction(program->module, name);
    if (found != NULL && is_definition(found))
        return found;
    for (LLVMValueRef function = LLVMGetFirstFunction(program->module); function != NULL;
         function = LLVMGetNextFunction(function)) {
        size_t name_length;
        const char *text = LLVMGetValueName2(function, &name_length);
        const char *separator = length == 0 ? "" : ", ";
        if (!is_definition(function))
            continue;
        bool fits = length + name_length + sizeof ", …" <= size;
        length += (size_t)snprintf(defined + length, sizeof defined - length, "%s%s", separator,
                                   fits ? text : "…");
        if (!fits)
            break;
    }
    error_set(error, CAIRN_ERROR_NOT_FOUND, 0, "function '%s' is %s; defined: %s", name,
              found != NULL ? "only declared here" : "not there", length == 0 ? "none" : defined);
    return NULL;
}

/* Checks that this process defines a global that the program imports. A first byte of 1, which
 * turns off the target's mangling, is not part of the name. */
static enum cairn_status check_external(LLVMValueRef global, const char *what,
                                        struct cairn_error *error)
{
    const char *name = LLVMGetValueName(global);
    const char *symbol = name[0] == '\1' ? name + 1 : name;
    LLVMLinkage linkage = LLVMGetLinkage(global);
    if ((!LLVMIsDeclaration(global) && linkage != LLVMAvailableExternallyLinkage) ||
        LLVMGetFirstUse(global) == NULL || strncmp(name, "llvm.", 5) == 0 ||
        linkage == LLVMExternalWeakLinkage || dlsym(RTLD_DEFAULT, symbol) != NULL ||
        LLVMSearchForAddressOfSymbol(symbol) != NULL)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_NOT_FOUND, 0,
                     "%s '%s' is used, but neither the program nor this process defines it", what,
                     name);
}

enum cairn_status program_check_externals(const struct program *program, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    LLVMLoadLibraryPermanently(NULL); /* makes this process's symbols available to LLVM */
    for (LLVMValueRef function = LLVMGetFirstFunction(program->module);
         function != NULL && status == CAIRN_OK; function = LLVMGetNextFunction(function))
        status = check_external(function, "function", error);
    for (LLVMValueRef variable = LLVMGetFirstGlobal(program->module);
         variable != NULL && status == CAIRN_OK; variable = LLVMGetNextGlobal(variable))
        status = check_external(variable, "variable", error);
    return status;
}

void program_run_constructors(cairn_engine *engine)
{
    LLVMRunStaticConstructors(cairn_engine_llvm(engine));
}

void program_run_destructors(cairn_engine *engine)
{
    LLVMRunStaticDestructors(cairn_engine_llvm(engine));
}

/* ---- Compiling for another target ---- */

static enum cairn_status find_target(const char *triple, LLVMTargetRef *target,
                                     struct cairn_error *error)
{
    char *message = NULL;
    LLVMInitializeAllTargetInfos();
    LLVMInitializeAllTargets();
    LLVMInitializeAllTargetMCs();
    LLVMInitializeAllAsmPrinters();
    LLVMInitializeAllAsmParsers();
    if (LLVMGetTargetFromTriple(triple, target, &message) == 0)
        return CAIRN_OK;
    LLVMDisposeMessage(message);
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                     "this LLVM %d has no code generator for '%.100s'", LLVM_VERSION_MAJOR, triple);
}

enum cairn_architecture program_find_architecture(const char *triple)
{
    char *normalised = LLVMNormalizeTargetTriple(triple);
    enum cairn_architecture architecture = types_triple_architecture(normalised);
    LLVMDisposeMessage(normalised);
    return architecture;
}

enum cairn_architecture program_architecture(const struct program *program)
{
    return types_architecture(program_module(program));
}

enum cairn_status program_set_target(struct program *program, const char *triple,
                                     struct cairn_error *error)
{
    static const char *const of_processor[] = {"target-cpu", "tune-cpu", "target-features"};
    LLVMModuleRef module = program_module(program);
    enum cairn_architecture before = types_architecture(module);
    LLVMTargetRef target;
    char *normalised = LLVMNormalizeTargetTriple(triple);
    enum cairn_status status = find_target(normalised, &target, error);
    if (status == CAIRN_OK)
        LLVMSetTarget(module, normalised);
    LLVMDisposeMessage(normalised);
    if (status != CAIRN_OK)
        return status;
    if (types_architecture(module) == CAIRN_ARCHITECTURE_UNKNOWN)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "Cairn does not know the architecture of '%.100s'", triple);
    if (types_architecture(module) == before)
        return CAIRN_OK;
    /* The processor and its features belong to the target that the IR was made for. */
    for (LLVMValueRef function = LLVMGetFirstFunction(module); function != NULL;
         function = LLVMGetNextFunction(function))
        for (size_t i = 0; i < sizeof of_processor / sizeof *of_processor; i++)
            LLVMRemoveStringAttributeAtIndex(function, IR_FUNCTION, of_processor[i],
                                             (unsigned)strlen(of_processor[i]));
    return CAIRN_OK;
}

enum cairn_status program_compile(struct program *program, unsigned optimisation_level,
                                  struct compiled *compiled, struct cairn_error *error)
{
    LLVMModuleRef module = program_module(program);
    const char *triple = LLVMGetTarget(module);
    char *message = NULL;
    LLVMTargetRef target;
    enum cairn_status status = find_target(triple, &target, error);
    if (status != CAIRN_OK)
        return status;
    compile_set_option(COMPILE_WITHOUT_LIVENESS, types_architecture(module));
    LLVMTargetMachineRef machine =
        LLVMCreateTargetMachine(target, triple, "", "", (LLVMCodeGenOptLevel)optimisation_level,
                                LLVMRelocDefault, LLVMCodeModelDefault);
    if (machine == NULL)
        return error_set(error, CAIRN_ERROR_LLVM, 0, "LLVM has no code generator for '%.100s'",
                         triple);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
    LLVMSetModuleDataLayout(module, layout);
    LLVMDisposeTargetData(layout);
    if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &message,
                                            &compiled->buffer) != 0) {
        status = error_set(error, CAIRN_ERROR_LLVM, 0, "LLVM: %s", message);
        LLVMDisposeMessage(message);
    } else {
        compiled->bytes = LLVMGetBufferStart(compiled->buffer);
        compiled->size = LLVMGetBufferSize(compiled->buffer);
        status = program_status(program, error);
        if (status != CAIRN_OK)
            compiled_release(compiled);
    }
    LLVMDisposeTargetMachine(machine);
    return status;
}

void compiled_release(struct compiled *compiled)
{
    if (compiled->buffer != NULL)
        LLVMDisposeMemoryBuffer(compiled->buffer);
    *compiled = (struct compiled){0};
}

/* ---- Names by address ---- */

static int compare_names(const void *left, const void *right)
{
    uint64_t a = ((const struct program_name *)left)->address;
    uint64_t b = ((const struct program_name *)right)->address;
    return (a > b) - (a < b);
}

enum cairn_status program_names_read(const struct program *program, cairn_engine *engine,
                                     struct program_names *names, struct cairn_error *error)
{
    LLVMExecutionEngineRef llvm = cairn_engine_llvm(engine);
    size_t capacity = 0;
    for (LLVMValueRef function = LLVMGetFirstFunction(program->module); function != NULL;
         function = LLVMGetNextFunction(function))
        capacity++;
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
