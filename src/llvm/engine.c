/*
 * Engines: scan, check, compile and load modules.
 *
 * As far as the C API allows it, LLVM's failures do not reach the host. A module that would crash
 * the code generator is rejected before LLVM compiles it. While LLVM compiles, the module's context
 * is observed: an error that LLVM reports there makes the finalisation fail.
 *
 * Passes run before a module is scanned and checked, because they duplicate, change and remove
 * calls that have records. LLVM's verifier runs before them, because they rely on it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/engine.h"
#include "base/adapter.h"
#include "base/array.h"
#include "base/error.h"
#include "llvm/bindings.h"
#include "llvm/check.h"
#include "llvm/compilation.h"
#include "llvm/embed.h"
#include "llvm/features.h"
#include "llvm/machine.h"
#include "llvm/modules.h"
#include "llvm/scan.h"
#include "llvm/types.h"

#include <cairn/llvm.h>
#include <cairn/patch.h>
#include <llvm-c/TargetMachine.h>
#include <stdio.h>
#include <string.h>

/* The name of the function that LLVM calls for llvm.experimental.deoptimize. */
static const char deoptimize[] = "__llvm_deoptimize";

/* Invariant: the strings and PC sections in the options are copies. */
struct cairn_engine {
    cairn_runtime *runtime;
    struct cairn_scope scope; /* of the modules that it loads; without a list, they outlive it */
    cairn_module *loaded;     /* the list, if there is one */
    struct cairn_allocator allocator;
    struct machine *machine;
    struct cairn_engine_options options;
    struct cairn_check_options check;
    /* The modules that are not finalised yet, and their declarations. */
    LLVMModuleRef *modules;
    size_t module_count;
    size_t module_capacity;
    struct pending_list pending;
    struct cairn_error last; /* of the last finalisation */
};

/* ---- Modules ---- */

/* Runs the passes, after what must be true of a module before any pass runs. */
static enum cairn_status run_passes(const cairn_engine *engine, LLVMModuleRef module,
                                    struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    if (!engine->options.skip_check)
        status = verify_strategies(module, &engine->check, error);
    if (status == CAIRN_OK && !engine->options.skip_check && !engine->options.is_verified)
        status = verify_module(module, &engine->check, error);
    if (status == CAIRN_OK)
        status = machine_run_passes(engine->machine, module, engine->options.passes, error);
    return status;
}

enum cairn_status cairn_engine_add_module(cairn_engine *engine, LLVMModuleRef module,
                                          struct cairn_error *error)
{
    if (engine == NULL || module == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_engine_add_module: `%s` is NULL",
                         engine == NULL ? "engine" : "module");
    enum cairn_status status = machine_check_layout(engine->machine, module, error);
    if (status == CAIRN_OK && engine->options.passes != NULL)
        status = run_passes(engine, module, error);
    if (status == CAIRN_OK && !engine->options.skip_check)
        status = cairn_check_module(module, &engine->check, error);
    if (status != CAIRN_OK)
        return status;
    void *modules = array_reserve(&engine->allocator, engine->modules, engine->module_count, 1,
                                  &engine->module_capacity, sizeof(LLVMModuleRef));
    if (modules == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to note a module");
    engine->modules = modules;
    status = pending_add(&engine->pending, module, false, error);
    if (status == CAIRN_OK)
        engine->modules[engine->module_count++] = module;
    return status;
}

/* Disposes of the modules that are not finalised. */
static void dispose_modules(cairn_engine *engine)
{
    for (size_t i = 0; i < engine->module_count; i++)
        LLVMDisposeModule(engine->modules[i]);
    engine->module_count = 0;
    pending_destroy(&engine->pending, engine->pending.first);
    engine->pending.first = NULL;
}

/* ---- Creating an engine ---- */

/* Checks that the module is for this architecture, whose name ends at the first '-' of a triple. */
static enum cairn_status check_triple(const char *triple, struct cairn_error *error)
{
    char *host = LLVMGetDefaultTargetTriple();
    size_t length = strcspn(triple, "-");
    enum cairn_status status = CAIRN_OK;
    if (length > 0 && (length != strcspn(host, "-") || strncmp(triple, host, length) != 0))
        status = error_set(error, CAIRN_ERROR_LLVM, 0,
                           "the module is for '%s'; this process runs on '%s'", triple, host);
    LLVMDisposeMessage(host);
    return status;
}

/* Copies what the options point to and is used later. On failure, the engine holds the copies that
 * were made. */
static enum cairn_status copy_options(cairn_engine *engine,
                                      const struct cairn_engine_options *options,
                                      struct cairn_error *error)
{
    if (options->passes != NULL &&
        (engine->options.passes = memory_copy_string(&engine->allocator, options->passes,
                                                     strlen(options->passes))) == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for the passes of an engine");
    return modules_copy_options(&options->modules, "engine", machine_address_bytes(engine->machine),
                                &engine->allocator, &engine->options.modules, error);
}

static enum cairn_status create_parts(cairn_engine *engine, LLVMModuleRef module,
                                      const struct cairn_engine_options *options,
                                      struct cairn_error *error)
{
    const char *triple = LLVMGetTarget(module);
    enum cairn_status status = check_triple(triple, error);
    if (status == CAIRN_OK)
        status = machine_create(&engine->allocator, triple, options, &engine->machine, error);
    if (status == CAIRN_OK)
        status = copy_options(engine, options, error);
    if (status == CAIRN_OK)
        status = cairn_engine_add_module(engine, module, error);
    return status;
}

struct cairn_engine_options cairn_engine_preset(enum cairn_tier tier)
{
    if (tier == CAIRN_TIER_QUICK)
        return (struct cairn_engine_options){
            .optimisation_level = 1,
            .enable_fast_isel = true,
            .passes = "function(sroa,early-cse,instcombine,simplifycfg)"};
    return (struct cairn_engine_options){.optimisation_level = 2, .passes = "default<O2>"};
}

enum cairn_status engine_check_options(const struct cairn_engine_options *options,
                                       struct cairn_error *error)
{
    if (options->optimisation_level > 3)
        return error_set(error, CAIRN_ERROR_ARGUMENT, options->optimisation_level,
                         "optimisation level %u is not one of 0 to 3", options->optimisation_level);
    return modules_check_code_model(options->code_model, error);
}

enum cairn_status cairn_engine_create(cairn_runtime *runtime, LLVMModuleRef module,
                                      const struct cairn_engine_options *options,
                                      cairn_engine **engine, struct cairn_error *error)
{
    static const struct cairn_engine_options defaults;
    if (module == NULL || engine == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_engine_create: `%s` is NULL",
                         module == NULL ? "module" : "engine");
    if (options == NULL)
        options = &defaults;
    enum cairn_status status = engine_check_options(options, error);
    if (status != CAIRN_OK)
        return status;
    if (runtime == NULL)
        status = cairn_runtime_create(NULL, &runtime, error);
    else
        cairn_runtime_retain(runtime);
    if (status != CAIRN_OK)
        return status;
    const struct cairn_allocator *allocator = cairn_runtime_allocator(runtime);
    cairn_engine *created = memory_new(allocator, 1, sizeof *created);
    if (created == NULL) {
        cairn_runtime_destroy(runtime);
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for an engine");
    }
    *created = (struct cairn_engine){
        .runtime = runtime,
        .allocator = *allocator,
        .options = *options,
        .check = {.optimisation_level = options->optimisation_level,
                  .enable_fast_isel = options->enable_fast_isel,
                  /* Passes run after the verifier, and leave a module valid. */
                  .is_verified = options->is_verified || options->passes != NULL,
                  .finding = options->finding,
                  .user = options->finding_user,
                  .gc_strategies = options->gc_strategies,
                  .gc_strategy_count = options->gc_strategy_count},
    };
    created->scope = (struct cairn_scope){created, &created->loaded};
    created->options.modules = (struct cairn_module_options){0};
    created->options.passes = NULL;
    pending_init(&created->pending, allocator, options->modules.id_conflicts);
    status = create_parts(created, module, options, error);
    if (status != CAIRN_OK) {
        cairn_engine_destroy(created);
        return status;
    }
    *engine = created;
    return CAIRN_OK;
}

void cairn_engine_destroy(cairn_engine *engine)
{
    if (engine == NULL)
        return;
    cairn_runtime *runtime = engine->runtime;
    struct cairn_allocator allocator = engine->allocator;
    cairn_runtime_retire_list(runtime, &engine->loaded);
    dispose_modules(engine);
    memory_free(&allocator, engine->modules, engine->module_capacity * sizeof(LLVMModuleRef));
    machine_destroy(engine->machine);
    modules_release_options(&engine->options.modules, &allocator);
    memory_free_string(&allocator, engine->options.passes);
    memory_free(&allocator, engine, sizeof *engine);
    cairn_runtime_destroy(runtime);
}

/* ---- Symbols ---- */

/* What the loader calls while it links objects. */
struct linking {
    const struct cairn_engine_options *options;
    bool lacks_deoptimize; /* whether nothing defines what llvm.experimental.deoptimize calls */
};

static bool find_symbol(void *user, const char *name, uint64_t *address)
{
    const struct cairn_engine_options *options = ((const struct linking *)user)->options;
    const struct cairn_load_options *host = &options->load;
    if (options->deoptimize_target != NULL && strcmp(name, deoptimize) == 0) {
        *address = (uintptr_t)options->deoptimize_target;
        return true;
    }
    return host->find_symbol != NULL && host->find_symbol(host->user, name, address);
}

static size_t find_names(void *user, const struct cairn_name *names, size_t count, uint64_t *values)
{
    const struct cairn_load_options *host = &((const struct linking *)user)->options->load;
    return host->find_names(host->user, names, count, values);
}

static void note_features(void *user, const char *needed, const char *available)
{
    const struct cairn_load_options *host = &((const struct linking *)user)->options->load;
    host->note_features(host->user, needed, available);
}

static void note_undefined(void *user, const char *name)
{
    struct linking *linking = user;
    const struct cairn_load_options *host = &linking->options->load;
    linking->lacks_deoptimize |= strcmp(name, deoptimize) == 0;
    if (host->note_undefined != NULL)
        host->note_undefined(host->user, name);
}

/* ---- Finalising ---- */

/* Adds to a module what the loader of its object must know, and the engine's loader does not. */
static enum cairn_status embed(const cairn_engine *engine, LLVMModuleRef module,
                               struct cairn_error *error)
{
    const struct cairn_module_options *modules = &engine->options.modules;
    const struct cairn_embed_options everything = {.machine = machine_llvm(engine->machine),
                                                   .id_conflicts = modules->id_conflicts,
                                                   .pc_sections = modules->pc_sections,
                                                   .pc_section_count = modules->pc_section_count};
    if (engine->options.object != NULL)
        return cairn_embed_manifest(module, &everything, error);
    enum cairn_status status = CAIRN_OK;
    if (modules->pc_section_count > 0)
        status = embed_declarations(module, NULL, modules->pc_sections, modules->pc_section_count,
                                    error);
    return status == CAIRN_OK ? bindings_embed_named(module, error) : status;
}

/* Compiles a module, and adds its object to the loader. */
static enum cairn_status compile_module(const cairn_engine *engine, LLVMModuleRef module,
                                        cairn_loader *loader, struct cairn_load_options *options,
                                        struct cairn_error *error)
{
    size_t length;
    LLVMMemoryBufferRef object;
    enum cairn_status status = embed(engine, module, error);
    if (status != CAIRN_OK)
        return status;
    options->name = LLVMGetModuleIdentifier(module, &length);
    options->features =
        features_of_vectors(module, types_architecture(module), machine_llvm(engine->machine));
    status = machine_emit(engine->machine, module, &object, error);
    if (status != CAIRN_OK)
        return status;
    const char *bytes = LLVMGetBufferStart(object);
    size_t size = LLVMGetBufferSize(object);
    if (engine->options.object != NULL)
        engine->options.object(options->name, bytes, size, engine->options.object_user);
    status = cairn_loader_add_object(loader, bytes, size, options, error);
    LLVMDisposeMemoryBuffer(object);
    return status;
}

/* Returns the options for loading the engine's objects. */
static struct cairn_load_options load_options(struct linking *linking)
{
    struct cairn_load_options options = linking->options->load;
    options.find_symbol = find_symbol;
    options.note_undefined = note_undefined;
    if (options.find_names != NULL)
        options.find_names = find_names;
    if (options.note_features != NULL)
        options.note_features = note_features;
    options.user = linking;
    options.pc_section_count = 0; /* the objects' manifests name them */
    return options;
}

/* Compiles all modules, and adds their objects to the loader. */
static enum cairn_status compile(const cairn_engine *engine, cairn_loader *loader,
                                 struct linking *linking, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    struct cairn_load_options options = load_options(linking);
    for (size_t i = 0; i < engine->module_count && status == CAIRN_OK; i++)
        status = compile_module(engine, engine->modules[i], loader, &options, error);
    return status;
}

static void explain_deoptimize(struct cairn_error *error)
{
    char message[sizeof error->message];
    snprintf(message, sizeof message, "%.120s", error->message);
    error_set(error, error->status, error->offset,
              "%s: bind what llvm.experimental.deoptimize calls to an exit, with "
              "deoptimize_target in the engine's options",
              message);
}

/* Returns the first function that the modules define for others, or NULL. `*count` is the number of
 * all of them. */
static const char *first_function(const cairn_engine *engine, size_t *count)
{
    const char *first = NULL;
    size_t length;
    *count = 0;
    for (size_t i = 0; i < engine->module_count; i++)
        for (LLVMValueRef function = LLVMGetFirstFunction(engine->modules[i]); function != NULL;
             function = LLVMGetNextFunction(function)) {
            if (LLVMIsDeclaration(function) || LLVMGetLinkage(function) != LLVMExternalLinkage)
                continue;
            first = first != NULL ? first : LLVMGetValueName2(function, &length);
            ++*count;
        }
    return first;
}

enum { MODULE_NAME_BYTES = 200 };

/* Names the module by the engine and its first function, such as "queue: fib" or "queue: fib and 2
 * others", because an engine can load many modules. */
static void name_module(const cairn_engine *engine, char name[MODULE_NAME_BYTES])
{
    size_t count;
    const char *function = first_function(engine, &count);
    int length = snprintf(name, MODULE_NAME_BYTES, "%.80s%s%.80s", engine->options.modules.name,
                          function == NULL ? "" : ": ", function == NULL ? "" : function);
    if (count > 1)
        snprintf(name + length, MODULE_NAME_BYTES - (size_t)length, " and %zu other%s", count - 1,
                 count == 2 ? "" : "s");
}

/* Records the compilation, by the name of a function if there is one. */
static void note_compilation(const cairn_engine *engine, uint64_t start)
{
    size_t count, length;
    const char *name = first_function(engine, &count);
    if (name == NULL)
        name = LLVMGetModuleIdentifier(engine->modules[0], &length);
    compilation_note(engine->runtime, name, compilation_time() - start, "engine");
}

/* Compiles and links all modules. */
static enum cairn_status load(const cairn_engine *engine, cairn_module **module,
                              struct cairn_error *error)
{
    cairn_loader *loader = NULL;
    struct linking linking = {.options = &engine->options};
    uint64_t start = compilation_time();
    char name[MODULE_NAME_BYTES];
    name_module(engine, name);
    enum cairn_status status = cairn_loader_create(engine->runtime, name, &loader, error);
    if (status == CAIRN_OK) {
        cairn_loader_set_scope(loader, engine->scope);
        status = pending_declare(&engine->pending, engine->pending.first, loader, error);
    }
    if (status == CAIRN_OK)
        status = compile(engine, loader, &linking, error);
    if (status == CAIRN_OK)
        status = cairn_loader_finish(loader, module, error);
    if (status == CAIRN_OK && engine->scope.modules != NULL) /* queues record their functions */
        note_compilation(engine, start);
    if (linking.lacks_deoptimize)
        explain_deoptimize(error);
    if (status != CAIRN_OK)
        cairn_loader_destroy(loader);
    return status;
}

enum cairn_status engine_load_object(cairn_runtime *runtime,
                                     const struct cairn_engine_options *options, const void *scope,
                                     const struct engine_object *object, cairn_module **module,
                                     struct cairn_error *error)
{
    cairn_loader *loader = NULL;
    struct linking linking = {.options = options};
    char name[MODULE_NAME_BYTES];
    snprintf(name, sizeof name, "%.80s: %.80s", options->modules.name, object->name);
    struct cairn_load_options chosen = load_options(&linking);
    chosen.name = object->name;
    enum cairn_status status = cairn_loader_create(runtime, name, &loader, error);
    if (status != CAIRN_OK)
        return status;
    cairn_loader_set_scope(loader, (struct cairn_scope){scope, NULL});
    status = cairn_loader_add_object(loader, object->bytes, object->size, &chosen, error);
    if (status == CAIRN_OK)
        status = cairn_loader_finish(loader, module, error);
    if (linking.lacks_deoptimize)
        explain_deoptimize(error);
    if (status != CAIRN_OK)
        cairn_loader_destroy(loader);
    return status;
}

/* Binds the module's sites, publishes it, and notes it. The host may retire it as soon as it is
 * published, so the caller holds a reference. */
static enum cairn_status publish(cairn_engine *engine, cairn_module *module,
                                 struct cairn_error *error)
{
    enum cairn_status status =
        bindings_apply(engine->modules, engine->module_count, module, &engine->allocator, error);
    if (status == CAIRN_OK)
        status = modules_publish(module, &engine->options.modules, error);
    if (status != CAIRN_OK)
        cairn_module_retire(module);
    return status;
}

void engine_share(cairn_engine *engine, const void *key)
{
    engine->scope = (struct cairn_scope){key, NULL};
}

void engine_discard(cairn_engine *engine) { dispose_modules(engine); }

void engine_warm_up(cairn_engine *engine)
{
    for (size_t i = 0; i < engine->module_count; i++) {
        LLVMMemoryBufferRef object;
        if (machine_emit(engine->machine, engine->modules[i], &object, NULL) == CAIRN_OK)
            LLVMDisposeMemoryBuffer(object);
    }
    dispose_modules(engine);
}

enum cairn_status cairn_engine_compile(cairn_engine *engine, struct cairn_error *error)
{
    if (engine == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_engine_compile: `engine` is NULL");
    if (engine->module_count > 0) {
        cairn_module *module;
        engine->last = (struct cairn_error){0};
        enum cairn_status status = load(engine, &module, &engine->last);
        if (status == CAIRN_OK) {
            cairn_module_retain(module);
            status = publish(engine, module, &engine->last);
            cairn_module_release(module);
        }
        engine->last.status = status;
        dispose_modules(engine);
    }
    if (engine->last.status != CAIRN_OK && error != NULL)
        *error = engine->last;
    return engine->last.status;
}

/* ---- What was loaded ---- */

void *cairn_engine_function(cairn_engine *engine, const char *name, struct cairn_error *error)
{
    if (engine == NULL || name == NULL) {
        error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_engine_function: `%s` is NULL",
                  engine == NULL ? "engine" : "name");
        return NULL;
    }
    void *address = cairn_runtime_find_symbol(engine->runtime, engine->scope.key, name);
    if (address == NULL)
        error_set(error, CAIRN_ERROR_NOT_FOUND, 0,
                  "'%s' is in no module of the engine that is loaded: nothing defines it, or the "
                  "module was retired, could not be loaded or is not compiled yet "
                  "(cairn_engine_compile)",
                  name);
    return address;
}

cairn_site *cairn_engine_site(cairn_engine *engine, uint64_t id, struct cairn_error *error)
{
    if (engine == NULL) {
        error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_engine_site: `engine` is NULL");
        return NULL;
    }
    return cairn_runtime_find_site(engine->runtime, id, error);
}
