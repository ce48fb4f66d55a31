/*
 * Reads IR from a file, and compiles it.
 *
 * As far as the C API allows it, this file avoids the cases in which LLVM ends the process. It
 * keeps the errors that LLVM reports through the context, because LLVM's own handler exits.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/program.h"

#include "base/error.h"
#include "base/memory.h"
#include "llvm/check.h"
#include "llvm/compile.h"
#include "llvm/invocation.h"
#include "llvm/ir.h"
#include "llvm/machine.h"
#include "llvm/types.h"
#include "llvm/version.h"

#include <errno.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct program {
    LLVMContextRef context;
    LLVMModuleRef module;
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
    if (program->module != NULL)
        LLVMDisposeModule(program->module);
    LLVMContextDispose(program->context);
    free(program);
}

/* Returns the first error that LLVM has reported; CAIRN_OK if it has reported nothing. */
static enum cairn_status program_status(const struct program *program, struct cairn_error *error)
{
    if (program->diagnostic.status != CAIRN_OK && error != NULL)
        *error = program->diagnostic;
    return program->diagnostic.status;
}

void program_on_fatal_error(void (*handler)(const char *reason))
{
    LLVMInstallFatalErrorHandler(handler);
}

/* ---- Targets ---- */

/* Initialises all of LLVM's targets. Errors: UNSUPPORTED (LLVM has no target for the triple). */
static enum cairn_status initialise_target(const char *triple, struct cairn_error *error)
{
    LLVMTargetRef target;
    char *message = NULL;
    LLVMInitializeAllTargetInfos();
    LLVMInitializeAllTargets();
    LLVMInitializeAllTargetMCs();
    LLVMInitializeAllAsmPrinters();
    LLVMInitializeAllAsmParsers();
    if (LLVMGetTargetFromTriple(triple, &target, &message) == 0)
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

enum cairn_status program_set_target(struct program *program, const char *triple,
                                     struct cairn_error *error)
{
    static const char *const of_processor[] = {"target-cpu", "tune-cpu", "target-features"};
    LLVMModuleRef module = program->module;
    enum cairn_architecture before = types_architecture(module);
    char *normalised = LLVMNormalizeTargetTriple(triple);
    enum cairn_status status = initialise_target(normalised, error);
    if (status == CAIRN_OK) {
        LLVMSetTarget(module, normalised);
        LLVMSetDataLayout(module, "");
    }
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

/* ---- Compiling ---- */

/* Returns the features of this machine's CPU, which `more` overrides, or NULL without memory. The
 * name of a CPU stands for features that the system may have turned off, so it is never used
 * without this list. */
static char *list_host_features(const struct cairn_allocator *allocator, const char *more)
{
    char *host = LLVMGetHostCPUFeatures();
    size_t size = strlen(host) + strlen(more) + 2;
    char *list = memory_new(allocator, size, 1);
    if (list != NULL)
        snprintf(list, size, "%s%s%s", host, *host != '\0' && *more != '\0' ? "," : "", more);
    LLVMDisposeMessage(host);
    return list;
}

static enum cairn_status create_machine_for_host(const char *triple,
                                                 const struct program_options *options,
                                                 struct machine **machine,
                                                 struct cairn_error *error)
{
    const struct cairn_allocator allocator = memory_allocator(NULL);
    char *cpu = LLVMGetHostCPUName();
    char *features = list_host_features(&allocator, options->features);
    const struct cairn_engine_options engine = {
        .optimisation_level = options->optimisation_level,
        .cpu = cpu,
        .features = features,
    };
    enum cairn_status status =
        features == NULL
            ? error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for features of the CPU")
            : machine_create(&allocator, triple, &engine, machine, error);
    memory_free_string(&allocator, features);
    LLVMDisposeMessage(cpu);
    return status;
}

/* Creates a machine for the module's triple; for the host's if it has none. */
static enum cairn_status create_machine(LLVMModuleRef module, const struct program_options *options,
                                        struct machine **machine, struct cairn_error *error)
{
    const struct cairn_allocator allocator = memory_allocator(NULL);
    char *host_triple = LLVMGetDefaultTargetTriple();
    if (*LLVMGetTarget(module) == '\0')
        LLVMSetTarget(module, host_triple);
    LLVMDisposeMessage(host_triple);
    const char *triple = LLVMGetTarget(module);
    if (types_architecture(module) == CAIRN_ARCHITECTURE_UNKNOWN)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "the module is for '%.100s', an architecture that Cairn does not know",
                         triple);
    enum cairn_status status = initialise_target(triple, error);
    if (status != CAIRN_OK)
        return status;
    if (strcmp(options->cpu, "host") == 0)
        return create_machine_for_host(triple, options, machine, error);
    const struct cairn_engine_options engine = {
        .optimisation_level = options->optimisation_level,
        .cpu = options->cpu,
        .features = options->features,
    };
    return machine_create(&allocator, triple, &engine, machine, error);
}

/* Sets the module's data layout; one that is not the machine's leads to wrong code. */
static enum cairn_status set_layout(LLVMModuleRef module, const struct machine *machine,
                                    struct cairn_error *error)
{
    enum cairn_status status = machine_check_layout(machine, module, error);
    if (status == CAIRN_OK)
        machine_set_target(machine, module);
    return status;
}

static enum cairn_status emit(const struct program *program, const struct machine *machine,
                              struct compiled *compiled, struct cairn_error *error)
{
    enum cairn_status status = machine_emit(machine, program->module, &compiled->buffer, error);
    if (status != CAIRN_OK)
        return status;
    compiled->bytes = LLVMGetBufferStart(compiled->buffer);
    compiled->size = LLVMGetBufferSize(compiled->buffer);
    status = program_status(program, error);
    if (status != CAIRN_OK)
        compiled_release(compiled);
    return status;
}

enum cairn_status program_compile(struct program *program, const struct program_options *options,
                                  struct compiled *compiled, struct cairn_error *error)
{
    LLVMModuleRef module = program->module;
    struct machine *machine = NULL;
    const struct cairn_check_options check = {
        .optimisation_level = options->optimisation_level,
        .is_verified = options->passes == NULL, /* program_read has verified the module */
        .finding = options->finding,
        .user = options->user,
    };
    enum cairn_status status = create_machine(module, options, &machine, error);
    if (status != CAIRN_OK)
        return status;
    const struct cairn_embed_options embed = {.machine = machine_llvm(machine),
                                              .id_conflicts = options->id_conflicts,
                                              .pc_sections = options->pc_sections,
                                              .pc_section_count = options->pc_section_count};
    status = set_layout(module, machine, error);
    if (status == CAIRN_OK && options->passes != NULL)
        status = machine_run_passes(machine, module, options->passes, error);
    if (status == CAIRN_OK)
        status = cairn_check_module(module, &check, error);
    if (status == CAIRN_OK)
        status = invocations_add(module, error);
    if (status == CAIRN_OK)
        status = cairn_embed_manifest(module, &embed, error);
    if (status == CAIRN_OK)
        status = emit(program, machine, compiled, error);
    machine_destroy(machine);
    return status;
}

void compiled_release(struct compiled *compiled)
{
    if (compiled->buffer != NULL)
        LLVMDisposeMemoryBuffer(compiled->buffer);
    *compiled = (struct compiled){0};
}
