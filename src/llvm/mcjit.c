/*
 * The memory manager: implements LLVM's callbacks, with one loader per finalisation.
 *
 * MCJIT asks for sections while it loads objects, applies relocations later, and then asks once to
 * finalise, possibly for several objects. So the first section after a finalisation opens a loader.
 * The stack maps are read in the finalisation, and not when their memory is allocated.
 *
 * LLVM ends the process if an allocation of a section fails. So when Cairn cannot allocate memory,
 * it keeps the error, and gives LLVM scratch memory; the finalisation then fails. By then LLVM has
 * registered unwind tables in that memory, so the memory is kept until the engine is destroyed.
 *
 * Thread safety: MCJIT calls back with its engine's lock held, so callbacks of one memory manager
 * do not run concurrently.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/mcjit.h"

#include "base/error.h"
#include "base/memory.h"
#include "llvm/scan.h"

#include <cairn/llvm.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The result of a finalisation: the loader if it failed, otherwise the published module. The
 * manager holds a reference to the module, because LLVM deregisters the module's unwind tables when
 * the engine is destroyed. */
struct outcome {
    struct outcome *next;
    cairn_loader *failed_loader;
    cairn_module *module;
};

struct scratch {
    struct scratch *next;
    void *memory;
    size_t size;
};

/* A section of markers (llvm/scan.h) that is not read yet. */
struct markers {
    struct markers *next;
    size_t size;
    uint64_t words[];
};

struct cairn_memory_manager {
    cairn_runtime *runtime;
    struct cairn_allocator allocator;
    LLVMMCJITMemoryManagerRef llvm;
    /* The engine whose errors are checked before a module is published; NULL if it is not known. */
    LLVMExecutionEngineRef engine;
    struct cairn_memory_manager_options options; /* with copies of the name and the captures */
    struct pending_list pending;
    struct outcome *outcomes;
    struct scratch *scratch;

    /* The state of the finalisation for which sections are being collected. `loader` is NULL before
     * its first section. If `loader` is set, `outcome` is allocated. */
    cairn_loader *loader;
    struct outcome *outcome;
    struct markers *markers;
    /* The first error of this finalisation; CAIRN_OK without errors. */
    struct cairn_error collected;

    /* The error of the last finalisation. */
    struct cairn_error last;
    /* Set when LLVM could not resolve a symbol. LLVM would end the process at the next module. */
    struct cairn_error unresolved;
};

/* ---- PC sections to keep ---- */

/* Copies the captures. An address takes 8 bytes in a section, or 4 in the default code model of
 * PPC64. Sources: llvm/lib/CodeGen/AsmPrinter/AsmPrinter.cpp, emitPCSections; for the default code
 * model, functions such as getEffectiveCodeModel in the target machines. Memory managers reject the
 * other models. */
static enum cairn_status copy_captures(cairn_memory_manager *manager,
                                       const struct cairn_capture *captures, size_t count,
                                       struct cairn_error *error)
{
    bool is_near = manager->options.code_model != LLVMCodeModelLarge &&
                   cairn_architecture_host() == CAIRN_ARCHITECTURE_PPC64_ELFV2;
    if (count > 0 && captures == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "%zu captures of PC sections, but no array of them", count);
    struct cairn_capture *copies = memory_new(&manager->allocator, count, sizeof *copies);
    if (count > 0 && copies == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu captures", count);
    manager->options.captures = copies;
    manager->options.capture_count = count;
    for (size_t i = 0; i < count; i++) {
        const char *name = captures[i].section;
        if (name == NULL)
            return error_set(error, CAIRN_ERROR_ARGUMENT, i,
                             "capture %zu of PC sections has no name", i);
        copies[i] = captures[i];
        copies[i].section = memory_copy_string(&manager->allocator, name, strlen(name));
        if (copies[i].section == NULL)
            return error_set(error, CAIRN_ERROR_MEMORY, 0,
                             "no memory for the name of PC section '%.60s'", name);
        if (copies[i].schema.address_bytes == 0)
            copies[i].schema.address_bytes = is_near ? 4 : 8;
    }
    return CAIRN_OK;
}

static const struct cairn_capture *find_capture(const cairn_memory_manager *manager,
                                                const char *name, size_t length)
{
    for (size_t i = 0; i < manager->options.capture_count; i++) {
        const struct cairn_capture *capture = &manager->options.captures[i];
        size_t wanted = strlen(capture->section);
        bool is_long_enough = capture->is_prefix ? length >= wanted : length == wanted;
        if (is_long_enough && memcmp(name, capture->section, wanted) == 0)
            return capture;
    }
    return NULL;
}

/* ---- Collecting sections ---- */

static void keep_first_error(cairn_memory_manager *manager, const struct cairn_error *error)
{
    if (manager->collected.status == CAIRN_OK)
        manager->collected = *error;
}

static void keep_memory_error(cairn_memory_manager *manager, const char *what)
{
    struct cairn_error error;
    error_set(&error, CAIRN_ERROR_MEMORY, 0, "no memory for %s", what);
    keep_first_error(manager, &error);
}

/* Allocates memory that is never executed, so that LLVM can continue to the finalisation, which
 * fails. */
static uint8_t *allocate_scratch(cairn_memory_manager *manager, size_t size)
{
    struct scratch *scratch = memory_new(&manager->allocator, 1, sizeof *scratch);
    if (scratch == NULL)
        return NULL;
    scratch->memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (scratch->memory == MAP_FAILED) {
        memory_free(&manager->allocator, scratch, sizeof *scratch);
        return NULL;
    }
    scratch->size = size;
    scratch->next = manager->scratch;
    manager->scratch = scratch;
    return scratch->memory;
}

/* Allocates memory for a section. The first section after a finalisation opens a loader. */
static uint8_t *allocate(cairn_memory_manager *manager, enum cairn_section_kind kind,
                         uintptr_t size, unsigned alignment,
                         const struct cairn_pc_table_section *pc_section)
{
    struct cairn_error error = {0};
    uint8_t *memory = NULL;
    if (manager->collected.status != CAIRN_OK)
        return allocate_scratch(manager, size);
    if (manager->loader == NULL) {
        manager->outcome = memory_new(&manager->allocator, 1, sizeof *manager->outcome);
        if (manager->outcome == NULL)
            error_set(&error, CAIRN_ERROR_MEMORY, 0, "no memory to note a finalisation");
        else if (cairn_loader_create(manager->runtime, manager->options.name, &manager->loader,
                                     &error) != CAIRN_OK) {
            memory_free(&manager->allocator, manager->outcome, sizeof *manager->outcome);
            manager->outcome = NULL;
        }
    }
    if (manager->loader != NULL)
        memory = cairn_loader_allocate(manager->loader, kind, size, alignment == 0 ? 1 : alignment,
                                       pc_section, &error);
    if (memory != NULL)
        return memory;
    keep_first_error(manager, &error);
    return allocate_scratch(manager, size);
}

/* Allocates a section of markers. Markers are read in the finalisation, like stack maps. */
static uint8_t *allocate_markers(cairn_memory_manager *manager, uintptr_t size)
{
    struct markers *markers = memory_new(&manager->allocator, 1, sizeof *markers + size);
    if (markers == NULL) {
        keep_memory_error(manager, "the list of modules that are loaded");
        return allocate_scratch(manager, size);
    }
    markers->size = size;
    markers->next = manager->markers;
    manager->markers = markers;
    return (uint8_t *)markers->words;
}

static uint8_t *code_section_callback(void *opaque, uintptr_t size, unsigned alignment,
                                      unsigned section_id, const char *section_name)
{
    (void)section_id;
    (void)section_name;
    return allocate(opaque, CAIRN_SECTION_CODE, size, alignment, NULL);
}

/* Allocates a PC section. LLVM 16 takes the options of a PC section as a part of its name
 * ("section!C"). It does not compress numbers, and pads each to its size in memory: a number of 3
 * bytes takes 4, a number of 5 to 7 bytes takes 8. Later versions remove the options from the name,
 * and apply them. */
static uint8_t *allocate_pc_section(cairn_memory_manager *manager, uintptr_t size,
                                    unsigned alignment, const char *section_name, size_t length,
                                    const struct cairn_capture *capture)
{
    char *name = memory_copy_string(&manager->allocator, section_name, length);
    if (name == NULL) {
        keep_memory_error(manager, "the name of a PC section");
        return allocate_scratch(manager, size);
    }
    struct cairn_pc_table_section pc_section = {.name = name};
    if (capture->has_schema)
        pc_section.schema = capture->schema;
    if (section_name[length] != '\0')
        pc_section.schema.is_compressed = false;
    uint8_t count = pc_section.schema.constant_count;
    if (section_name[length] == '\0' || count > CAIRN_PCSECTION_CONSTANTS_MAX)
        count = 0; /* the loader refuses too many */
    for (uint8_t i = 0; i < count; i++) {
        uint8_t *bytes = &pc_section.schema.constant_bytes[i];
        if (*bytes > 2)
            *bytes = *bytes <= 4 ? 4 : 8;
    }
    uint8_t *memory = allocate(manager, CAIRN_SECTION_PC_SECTION, size, alignment, &pc_section);
    memory_free_string(&manager->allocator, name);
    return memory;
}

/* Cairn reads some sections by their names, in ELF and COFF or in Mach-O. */
static uint8_t *data_section_callback(void *opaque, uintptr_t size, unsigned alignment,
                                      unsigned section_id, const char *section_name,
                                      LLVMBool is_read_only)
{
    static const struct {
        const char *name;
        enum cairn_section_kind kind;
    } known[] = {
        {".llvm_stackmaps", CAIRN_SECTION_STACKMAP},
        {"__llvm_stackmaps", CAIRN_SECTION_STACKMAP},
        {".eh_frame", CAIRN_SECTION_UNWIND_TABLE},
        {"__eh_frame", CAIRN_SECTION_UNWIND_TABLE},
        {CAIRN_FAULTMAP_SECTION, CAIRN_SECTION_FAULTMAP},
        {CAIRN_FAULTMAP_SECTION_DARWIN, CAIRN_SECTION_FAULTMAP},
    };
    cairn_memory_manager *manager = opaque;
    size_t length = strcspn(section_name, "!");
    (void)section_id;
    if (pending_is_marker(section_name))
        return allocate_markers(manager, size);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(section_name, known[i].name) == 0)
            return allocate(manager, known[i].kind, size, alignment, NULL);
    const struct cairn_capture *capture = find_capture(manager, section_name, length);
    if (capture != NULL)
        return allocate_pc_section(manager, size, alignment, section_name, length, capture);
    return allocate(manager, is_read_only ? CAIRN_SECTION_READ_ONLY_DATA : CAIRN_SECTION_DATA, size,
                    alignment, NULL);
}

/* ---- Declarations ---- */

enum cairn_status cairn_memory_manager_declare(cairn_memory_manager *manager, LLVMModuleRef module,
                                               struct cairn_error *error)
{
    if (manager == NULL || module == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_memory_manager_declare needs a memory manager and a module");
    return pending_add(&manager->pending, module, error);
}

/* ---- Finalising ---- */

/* Finishes the loader and publishes its module. If LLVM could not resolve a symbol, it has applied
 * no relocations, but finalises nevertheless, and reports the error only once. */
static enum cairn_status load_module(cairn_memory_manager *manager, struct cairn_error *error)
{
    const struct cairn_memory_manager_options *options = &manager->options;
    char *message = NULL;
    if (manager->engine != NULL && LLVMExecutionEngineGetErrMsg(manager->engine, &message)) {
        bool is_deoptimize = strstr(message, MCJIT_DEOPTIMIZE) != NULL;
        error_set(&manager->unresolved, CAIRN_ERROR_LLVM, 0, "LLVM: %.120s%s", message,
                  is_deoptimize ? ": bind what llvm.experimental.deoptimize calls to an exit, with "
                                  "deoptimize_target in the engine's options"
                                : "");
        LLVMDisposeMessage(message);
        keep_first_error(manager, &manager->unresolved);
    }
    if (manager->collected.status != CAIRN_OK) {
        *error = manager->collected;
        return error->status;
    }
    enum cairn_status status = pending_declare_loaded(&manager->pending, manager->loader, error);
    if (status == CAIRN_OK)
        status = cairn_loader_finish(manager->loader, &manager->outcome->module, error);
    if (status != CAIRN_OK)
        return status;
    cairn_module *module = manager->outcome->module;
    manager->loader = NULL;
    cairn_module_retain(module);
    if (options->before_publish != NULL)
        options->before_publish(module, options->user);
    status = cairn_module_publish(module, error);
    if (status == CAIRN_OK && options->after_publish != NULL)
        options->after_publish(module, options->user);
    return status;
}

static void read_markers(cairn_memory_manager *manager)
{
    while (manager->markers != NULL) {
        struct markers *markers = manager->markers;
        pending_note_loaded(&manager->pending, markers->words, markers->size);
        manager->markers = markers->next;
        memory_free(&manager->allocator, markers, sizeof *markers + markers->size);
    }
}

/* Keeps the result of the finalisation. If the loader failed, it is kept until the engine is
 * destroyed. */
static void keep_outcome(cairn_memory_manager *manager)
{
    if (manager->outcome == NULL)
        return;
    manager->outcome->failed_loader = manager->loader;
    manager->outcome->next = manager->outcomes;
    manager->outcomes = manager->outcome;
    manager->outcome = NULL;
    manager->loader = NULL;
}

/* Finalises the collected sections, and keeps the error, unless there is nothing to finalise. On
 * success and on failure, the next section opens a new loader. */
static enum cairn_status finalise(cairn_memory_manager *manager)
{
    if (manager->loader == NULL && manager->collected.status == CAIRN_OK)
        return CAIRN_OK;
    struct cairn_error error = {0};
    manager->last.status = CAIRN_OK;
    read_markers(manager);
    enum cairn_status status = load_module(manager, &error);
    keep_outcome(manager);
    manager->collected.status = CAIRN_OK;
    pending_drop(&manager->pending, true);
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

enum cairn_status cairn_memory_manager_status(const cairn_memory_manager *manager,
                                              struct cairn_error *error)
{
    if (manager->last.status != CAIRN_OK && error != NULL)
        *error = manager->last;
    return manager->last.status;
}

const struct cairn_error *memory_manager_unresolved(const cairn_memory_manager *manager)
{
    return &manager->unresolved;
}

void cairn_memory_manager_set_engine(cairn_memory_manager *manager, LLVMExecutionEngineRef engine)
{
    manager->engine = engine;
}

struct cairn_error *memory_manager_begin(cairn_memory_manager *manager)
{
    manager->last.status = CAIRN_OK;
    return &manager->collected;
}

/* Finalises if an error was collected and LLVM did not reach the finalisation. */
void memory_manager_end(cairn_memory_manager *manager)
{
    enum cairn_status status = manager->collected.status == CAIRN_OK ? CAIRN_OK : finalise(manager);
    (void)status; /* see cairn_memory_manager_status */
}

/* ---- Creating and destroying ---- */

static void destroy_callback(void *opaque)
{
    cairn_memory_manager *manager = opaque;
    struct cairn_allocator allocator = manager->allocator;
    cairn_runtime *runtime = manager->runtime;
    keep_outcome(manager);
    read_markers(manager);
    while (manager->outcomes != NULL) {
        struct outcome *outcome = manager->outcomes;
        manager->outcomes = outcome->next;
        cairn_loader_destroy(outcome->failed_loader);
        cairn_module_retire(outcome->module);
        cairn_module_release(outcome->module);
        memory_free(&allocator, outcome, sizeof *outcome);
    }
    while (manager->scratch != NULL) {
        struct scratch *scratch = manager->scratch;
        manager->scratch = scratch->next;
        munmap(scratch->memory, scratch->size);
        memory_free(&allocator, scratch, sizeof *scratch);
    }
    pending_drop(&manager->pending, false);
    struct cairn_capture *captures = (struct cairn_capture *)(uintptr_t)manager->options.captures;
    for (size_t i = 0; i < manager->options.capture_count; i++)
        memory_free_string(&allocator, captures[i].section);
    memory_free(&allocator, captures, manager->options.capture_count * sizeof *captures);
    memory_free_string(&allocator, manager->options.name);
    memory_free(&allocator, manager, sizeof *manager);
    cairn_runtime_destroy(runtime);
}

/* Rejects code models that rely on short distances. Slabs and the symbols of the process may be
 * anywhere in the address space. With these models RuntimeDyld truncates addresses that do not fit,
 * without an error, or LLVM ends the process. */
static enum cairn_status check_code_model(LLVMCodeModel code_model, struct cairn_error *error)
{
    static const char *const names[] = {
        [LLVMCodeModelTiny] = "tiny",
        [LLVMCodeModelSmall] = "small",
        [LLVMCodeModelKernel] = "kernel",
        [LLVMCodeModelMedium] = "medium",
    };
    size_t index = (size_t)code_model;
    if (code_model == LLVMCodeModelDefault || code_model == LLVMCodeModelJITDefault ||
        code_model == LLVMCodeModelLarge)
        return CAIRN_OK;
    if (index >= sizeof names / sizeof *names)
        return error_set(error, CAIRN_ERROR_ARGUMENT, index, "LLVM has no code model %zu", index);
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                     "in LLVM's code model '%s' addresses may be cut to fewer bits than those of "
                     "code memory have: use LLVMCodeModelDefault or LLVMCodeModelLarge",
                     names[index]);
}

enum cairn_status cairn_memory_manager_create(cairn_runtime *runtime,
                                              const struct cairn_memory_manager_options *options,
                                              cairn_memory_manager **manager,
                                              struct cairn_error *error)
{
    static const struct cairn_memory_manager_options defaults;
    if (runtime == NULL || manager == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_memory_manager_create needs a runtime and a place for the manager");
    if (options == NULL)
        options = &defaults;
    enum cairn_status status = check_code_model(options->code_model, error);
    if (status != CAIRN_OK)
        return status;
    const struct cairn_allocator *allocator = cairn_runtime_allocator(runtime);
    const char *name = options->name == NULL ? "mcjit" : options->name;
    cairn_memory_manager *created = memory_new(allocator, 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a memory manager");
    *created = (struct cairn_memory_manager){
        .runtime = runtime, .allocator = *allocator, .options = *options};
    created->options.captures = NULL;
    created->options.capture_count = 0;
    created->options.name = memory_copy_string(allocator, name, strlen(name));
    pending_init(&created->pending, allocator, options->id_conflicts);
    cairn_runtime_retain(runtime);
    if (created->options.name == NULL)
        status = error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a memory manager's name");
    else
        status = copy_captures(created, options->captures, options->capture_count, error);
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
