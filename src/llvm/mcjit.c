/*
 * Memory managers: MCJIT's callbacks, with one load per finalisation.
 *
 * MCJIT asks for sections while it loads objects, applies relocations later, and then asks once to
 * finalise, possibly for several objects. What was allocated for a finalisation that failed is kept
 * until the engine is destroyed, because LLVM has registered unwind tables in that memory.
 *
 * Thread safety: MCJIT calls back with its engine's lock held, so callbacks of one memory manager
 * do not run concurrently.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "base/error.h"
#include "base/memory.h"
#include "llvm/bindings.h"
#include "llvm/dyld.h"
#include "llvm/scan.h"

#include <cairn/llvm.h>
#include <stdlib.h>
#include <string.h>

/* The result of a finalisation: the loader if it failed, otherwise the published module. The
 * manager holds a reference to the module, because LLVM deregisters the module's unwind tables when
 * the engine is destroyed. */
struct outcome {
    struct outcome *next;
    cairn_loader *failed_loader;
    cairn_module *module;
};

/* A section of markers (llvm/scan.h) that is not read yet. */
struct markers {
    struct markers *next;
    size_t size;
    uint64_t words[];
};

struct cairn_memory_manager {
    struct dyld dyld;
    struct pending_list pending;
    LLVMMCJITMemoryManagerRef llvm;
    /* The engine whose errors are checked before a module is published; NULL if it is not known. */
    LLVMExecutionEngineRef engine;
    struct outcome *outcomes;

    /* The finalisation for which sections are being collected. `outcome` is allocated before the
     * load's first section; if that fails, the load has an error. */
    struct dyld_load load;
    struct outcome *outcome;
    struct markers *markers;

    /* The error of the last finalisation. */
    struct cairn_error last;
};

/* ---- Callbacks ---- */

static void keep_memory_error(cairn_memory_manager *manager, const char *what)
{
    struct cairn_error error;
    error_set(&error, CAIRN_ERROR_MEMORY, 0, "no memory to note %s", what);
    dyld_keep_error(&manager->load, &error);
}

static void prepare_outcome(cairn_memory_manager *manager)
{
    if (manager->outcome == NULL)
        manager->outcome = memory_new(&manager->dyld.allocator, 1, sizeof *manager->outcome);
    if (manager->outcome == NULL)
        keep_memory_error(manager, "a finalisation");
}

/* Allocates a section of markers. Markers are read in the finalisation, like stack maps. Returns
 * NULL if memory runs out. */
static uint8_t *allocate_markers(cairn_memory_manager *manager, size_t size)
{
    struct markers *markers = NULL;
    if (size <= SIZE_MAX - sizeof *markers)
        markers = memory_new(&manager->dyld.allocator, 1, sizeof *markers + size);
    if (markers == NULL) {
        keep_memory_error(manager, "the modules that are loaded");
        return NULL;
    }
    markers->size = size;
    markers->next = manager->markers;
    manager->markers = markers;
    return (uint8_t *)markers->words;
}

static uint8_t *code_section_callback(void *opaque, uintptr_t size, unsigned alignment,
                                      unsigned section_id, const char *section_name)
{
    cairn_memory_manager *manager = opaque;
    (void)section_id;
    (void)section_name;
    prepare_outcome(manager);
    return dyld_allocate_code(&manager->load, size, alignment);
}

static uint8_t *data_section_callback(void *opaque, uintptr_t size, unsigned alignment,
                                      unsigned section_id, const char *section_name,
                                      LLVMBool is_read_only)
{
    cairn_memory_manager *manager = opaque;
    (void)section_id;
    prepare_outcome(manager);
    uint8_t *markers = pending_is_marker(section_name) ? allocate_markers(manager, size) : NULL;
    if (markers != NULL)
        return markers;
    return dyld_allocate_data(&manager->load, size, alignment, section_name, is_read_only != 0);
}

/* If LLVM could not resolve a symbol, it has applied no relocations, but finalises nevertheless,
 * and reports the error only once. */
static void keep_unresolved(cairn_memory_manager *manager)
{
    char *message = NULL;
    if (manager->engine == NULL || !LLVMExecutionEngineGetErrMsg(manager->engine, &message))
        return;
    struct cairn_error error;
    error_set(&error, CAIRN_ERROR_LLVM, 0, "LLVM: %s", message);
    LLVMDisposeMessage(message);
    dyld_keep_error(&manager->load, &error);
}

/* Reads the markers, and passes the declarations of the modules that they name to the loader. */
static void declare_loaded(cairn_memory_manager *manager)
{
    struct cairn_error error;
    struct pending *loaded = NULL;
    while (manager->markers != NULL) {
        struct markers *markers = manager->markers;
        pending_take(&manager->pending, markers->words, markers->size, &loaded);
        manager->markers = markers->next;
        memory_free(&manager->dyld.allocator, markers, sizeof *markers + markers->size);
    }
    if (manager->load.loader != NULL &&
        pending_declare(&manager->pending, loaded, manager->load.loader, &error) != CAIRN_OK)
        dyld_keep_error(&manager->load, &error);
    pending_destroy(&manager->pending, loaded);
}

/* Keeps the result of the finalisation. If the loader failed, it is kept until the engine is
 * destroyed. */
static void keep_outcome(cairn_memory_manager *manager)
{
    if (manager->outcome == NULL)
        return;
    manager->outcome->failed_loader = manager->load.loader;
    manager->outcome->next = manager->outcomes;
    manager->outcomes = manager->outcome;
    manager->outcome = NULL;
    manager->load.loader = NULL;
}

/* Finalises the collected sections, and keeps the error, unless there is nothing to finalise. On
 * success and on failure, the next section opens a new loader. */
static enum cairn_status finalise(cairn_memory_manager *manager)
{
    if (!dyld_is_used(&manager->load))
        return CAIRN_OK;
    struct cairn_error error = {0};
    cairn_module *module = NULL;
    keep_unresolved(manager);
    declare_loaded(manager);
    enum cairn_status status = dyld_publish(&manager->load, &module, &error);
    if (manager->outcome != NULL)
        manager->outcome->module = module;
    keep_outcome(manager);
    manager->last.status = CAIRN_OK;
    if (status != CAIRN_OK)
        manager->last = error;
    return status;
}

static LLVMBool finalise_callback(void *opaque, char **message)
{
    cairn_memory_manager *manager = opaque;
    if (finalise(manager) == CAIRN_OK)
        return 0;
    *message = strdup(manager->last.message); /* LLVM frees it with free() */
    return 1;
}

static void destroy_callback(void *opaque)
{
    cairn_memory_manager *manager = opaque;
    struct cairn_allocator allocator = manager->dyld.allocator;
    cairn_runtime *runtime = manager->dyld.runtime;
    declare_loaded(manager);
    keep_outcome(manager);
    while (manager->outcomes != NULL) {
        struct outcome *outcome = manager->outcomes;
        manager->outcomes = outcome->next;
        cairn_loader_destroy(outcome->failed_loader);
        cairn_module_retire(outcome->module);
        cairn_module_release(outcome->module);
        memory_free(&allocator, outcome, sizeof *outcome);
    }
    dyld_drop(&manager->load);
    pending_destroy(&manager->pending, manager->pending.first);
    dyld_release(&manager->dyld);
    memory_free(&allocator, manager, sizeof *manager);
    cairn_runtime_destroy(runtime);
}

/* ---- For the host ---- */

enum cairn_status cairn_memory_manager_create(cairn_runtime *runtime,
                                              const struct cairn_memory_manager_options *options,
                                              cairn_memory_manager **manager,
                                              struct cairn_error *error)
{
    if (runtime == NULL || manager == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_memory_manager_create: `%s` is NULL",
                         runtime == NULL ? "runtime" : "manager");
    cairn_memory_manager *created =
        memory_new(cairn_runtime_allocator(runtime), 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a memory manager");
    created->load.dyld = &created->dyld;
    cairn_runtime_retain(runtime);
    enum cairn_status status = dyld_init(&created->dyld, runtime, options, "mcjit", error);
    pending_init(&created->pending, &created->dyld.allocator,
                 created->dyld.options.modules.id_conflicts);
    if (status == CAIRN_OK && (created->llvm = LLVMCreateSimpleMCJITMemoryManager(
                                   created, code_section_callback, data_section_callback,
                                   finalise_callback, destroy_callback)) == NULL)
        status = error_set(error, CAIRN_ERROR_LLVM, 0, "LLVM refused to make a memory manager");
    if (status == CAIRN_OK)
        *manager = created;
    else
        destroy_callback(created);
    return status;
}

LLVMMCJITMemoryManagerRef cairn_memory_manager_llvm(cairn_memory_manager *manager)
{
    return manager->llvm;
}

void cairn_memory_manager_set_engine(cairn_memory_manager *manager, LLVMExecutionEngineRef engine)
{
    manager->engine = engine;
}

enum cairn_status cairn_memory_manager_declare(cairn_memory_manager *manager, LLVMModuleRef module,
                                               struct cairn_error *error)
{
    if (manager == NULL || module == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_memory_manager_declare: `%s` is NULL",
                         manager == NULL ? "manager" : "module");
    enum cairn_status status = pending_add(&manager->pending, module, true, error);
    return status == CAIRN_OK ? bindings_embed(module, manager->dyld.bindings_key, error) : status;
}

enum cairn_status cairn_memory_manager_status(const cairn_memory_manager *manager,
                                              struct cairn_error *error)
{
    if (manager->last.status != CAIRN_OK && error != NULL)
        *error = manager->last;
    return manager->last.status;
}
