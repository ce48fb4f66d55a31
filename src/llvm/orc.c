/*
 * ORC: callbacks of its RuntimeDyld layer, with one load per object.
 *
 * ORC creates a memory manager, here a struct object, for each object that it links, and destroys
 * it when the object's resource tracker is removed, or linking fails. Objects may be linked
 * concurrently. LLVM deregisters unwind tables before it destroys the memory manager, except as
 * llvm/unwinder.h says; so the module can be freed at the end of the next grace period.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "base/error.h"
#include "base/memory.h"
#include "llvm/bindings.h"
#include "llvm/dyld.h"
#include "llvm/embed.h"
#include "llvm/ir.h"
#include "llvm/unwinder.h"
#include "llvm/version.h"

#include <cairn/llvm.h>
#include <llvm-c/Error.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#if LLVM_HAS_ORC_CALLBACKS
#include <llvm-c/OrcEE.h>
#endif

/* The first error of a thread that it has not read with cairn_orc_status. */
struct report {
    pthread_t thread;
    struct cairn_error error;
};

enum { REPORTS_MAX = 16 };

struct cairn_orc {
    struct dyld dyld;
    struct cairn_check_options check;
    bool skip_check;
    atomic_uint references; /* the host's, and one for each layer */

    /* In the order in which they were made, at most one for each thread. `lock` protects them. */
    pthread_mutex_t lock;
    struct report reports[REPORTS_MAX];
    size_t report_count;
};

/* ---- Errors ---- */

/* Returns the index of this thread's report, or the number of reports. */
static size_t find_report(const cairn_orc *orc)
{
    size_t i = 0;
    while (i < orc->report_count && !pthread_equal(orc->reports[i].thread, pthread_self()))
        i++;
    return i;
}

static void remove_report(cairn_orc *orc, size_t i)
{
    orc->report_count--;
    memmove(&orc->reports[i], &orc->reports[i + 1], (orc->report_count - i) * sizeof *orc->reports);
}

/* Keeps the error for this thread, unless it has one: what LLVM reports later is about symbols that
 * depend on the first one. If too many threads have errors, the oldest is dropped. */
static void report(cairn_orc *orc, const struct cairn_error *error)
{
    pthread_mutex_lock(&orc->lock);
    if (find_report(orc) == orc->report_count) {
        if (orc->report_count == REPORTS_MAX)
            remove_report(orc, 0);
        orc->reports[orc->report_count++] = (struct report){pthread_self(), *error};
    }
    pthread_mutex_unlock(&orc->lock);
}

/* Removes this thread's report; if it has none and `any` is set, the oldest one. */
static bool take_report(cairn_orc *orc, bool any, struct cairn_error *error)
{
    pthread_mutex_lock(&orc->lock);
    size_t i = find_report(orc);
    if (i == orc->report_count && any)
        i = 0;
    bool found = i < orc->report_count;
    if (found) {
        *error = orc->reports[i].error;
        remove_report(orc, i);
    }
    pthread_mutex_unlock(&orc->lock);
    return found;
}

/* Consumes LLVM's error. */
static void set_error(LLVMErrorRef failure, struct cairn_error *error)
{
    char *message = LLVMGetErrorMessage(failure);
    ir_join_lines(message);
    error_set(error, CAIRN_ERROR_LLVM, 0, "LLVM: %s", message);
    LLVMDisposeErrorMessage(message);
}

enum cairn_status cairn_orc_status(cairn_orc *orc, LLVMErrorRef failure, struct cairn_error *error)
{
    struct cairn_error reported;
    struct cairn_error direct;
    bool is_reported = orc != NULL && take_report(orc, failure != LLVMErrorSuccess, &reported);
    if (failure == LLVMErrorSuccess)
        return CAIRN_OK;
    set_error(failure, &direct);
    if (error != NULL)
        *error = is_reported ? reported : direct;
    return is_reported ? reported.status : direct.status;
}

/* ---- Before code generation ---- */

static LLVMErrorRef prepare(void *user, LLVMModuleRef module)
{
    cairn_orc *orc = user;
    struct cairn_error error = {0};
    enum cairn_status status =
        orc->skip_check ? CAIRN_OK : cairn_check_module(module, &orc->check, &error);
    if (status == CAIRN_OK)
        status = embed_scanned(module, orc->dyld.options.modules.id_conflicts, &error);
    if (status == CAIRN_OK)
        status = bindings_embed(module, orc->dyld.bindings_key, &error);
    if (status == CAIRN_OK)
        return LLVMErrorSuccess;
    report(orc, &error);
    return LLVMCreateStringError(error.message);
}

LLVMErrorRef cairn_orc_transform(void *orc, LLVMOrcThreadSafeModuleRef *module,
                                 LLVMOrcMaterializationResponsibilityRef responsibility)
{
    (void)responsibility;
    LLVMErrorRef failure = LLVMOrcThreadSafeModuleWithModuleDo(*module, prepare, orc);
    if (failure != LLVMErrorSuccess) {
        LLVMOrcDisposeThreadSafeModule(*module);
        *module = NULL;
    }
    return failure;
}

/* ---- The layer ---- */

static void release(cairn_orc *orc)
{
    if (atomic_fetch_sub_explicit(&orc->references, 1, memory_order_acq_rel) != 1)
        return;
    struct cairn_allocator allocator = orc->dyld.allocator;
    cairn_runtime *runtime = orc->dyld.runtime;
    dyld_release(&orc->dyld);
    pthread_mutex_destroy(&orc->lock);
    memory_free(&allocator, orc, sizeof *orc);
    cairn_runtime_destroy(runtime);
}

#if LLVM_HAS_ORC_CALLBACKS

/* An object that is being linked, or is loaded. */
struct object {
    cairn_orc *orc;
    struct dyld_load load;
    cairn_module *module; /* NULL before the finalisation, and if that fails before publication */
    bool is_mapped;       /* whether the structure itself is mapped memory */
};

/* LLVM ends the process without an object. So when Cairn's allocator fails, an object is mapped,
 * whose finalisation fails. */
static void *create_object(void *user)
{
    cairn_orc *orc = user;
    struct object *object = memory_new(&orc->dyld.allocator, 1, sizeof *object);
    bool is_mapped = object == NULL;
    if (is_mapped)
        object =
            mmap(NULL, sizeof *object, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (object == MAP_FAILED)
        return NULL;
    *object = (struct object){.orc = orc, .load = {.dyld = &orc->dyld}, .is_mapped = is_mapped};
    if (is_mapped)
        error_set(&object->load.error, CAIRN_ERROR_MEMORY, 0, "no memory for an object");
    return object;
}

static void destroy_object(void *opaque)
{
    struct object *object = opaque;
    if (object == NULL)
        return;
    unwinder_forget(object->load.unwind_table, object->load.unwind_table_size);
    cairn_loader_destroy(object->load.loader);
    cairn_module_retire(object->module);
    cairn_module_release(object->module);
    dyld_drop(&object->load);
    if (object->is_mapped)
        munmap(object, sizeof *object);
    else
        memory_free(&object->orc->dyld.allocator, object, sizeof *object);
}

static uint8_t *allocate_code(void *opaque, uintptr_t size, unsigned alignment, unsigned section_id,
                              const char *section_name)
{
    struct object *object = opaque;
    (void)section_id;
    (void)section_name;
    return object == NULL ? NULL : dyld_allocate_code(&object->load, size, alignment);
}

/* An object has one unwind table, as LLVM and linkers write it. */
static uint8_t *allocate_data(void *opaque, uintptr_t size, unsigned alignment, unsigned section_id,
                              const char *section_name, LLVMBool is_read_only)
{
    struct object *object = opaque;
    (void)section_id;
    return object == NULL ? NULL
                          : dyld_allocate_data(&object->load, size, alignment, section_name,
                                               is_read_only != 0);
}

static LLVMBool finalise(void *opaque, char **message)
{
    struct object *object = opaque;
    struct cairn_error error = {0};
    if (!dyld_is_used(&object->load) ||
        dyld_publish(&object->load, &object->module, &error) == CAIRN_OK)
        return 0;
    report(object->orc, &error);
    *message = strdup(error.message); /* LLVM frees it with free() */
    return 1;
}

static void end_layer(void *user) { release(user); }

static void note_report(void *user, LLVMErrorRef failure)
{
    struct cairn_error error;
    set_error(failure, &error);
    report(user, &error);
}

LLVMOrcObjectLayerRef cairn_orc_layer(void *user, LLVMOrcExecutionSessionRef session,
                                      const char *triple)
{
    cairn_orc *orc = user;
    (void)triple;
    atomic_fetch_add_explicit(&orc->references, 1, memory_order_relaxed);
    LLVMOrcExecutionSessionSetErrorReporter(session, note_report, orc);
    return LLVMOrcCreateRTDyldObjectLinkingLayerWithMCJITMemoryManagerLikeCallbacks(
        session, orc, create_object, end_layer, allocate_code, allocate_data, finalise,
        destroy_object);
}

#else

LLVMOrcObjectLayerRef cairn_orc_layer(void *user, LLVMOrcExecutionSessionRef session,
                                      const char *triple)
{
    (void)user;
    (void)session;
    (void)triple;
    return NULL;
}

#endif

/* ---- Creating and destroying ---- */

enum cairn_status cairn_orc_create(cairn_runtime *runtime, const struct cairn_orc_options *options,
                                   cairn_orc **orc, struct cairn_error *error)
{
    static const struct cairn_orc_options defaults;
    if (runtime == NULL || orc == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_orc_create: `%s` is NULL",
                         runtime == NULL ? "runtime" : "orc");
    if (!LLVM_HAS_ORC_CALLBACKS)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, LLVM_VERSION_MAJOR,
                         "ORC's C API has no memory callbacks in LLVM %d: use LLVM 16 or later, or "
                         "cairn_engine_create",
                         LLVM_VERSION_MAJOR);
    if (options == NULL)
        options = &defaults;
    cairn_orc *created = memory_new(cairn_runtime_allocator(runtime), 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for the connection with ORC");
    created->check = options->check;
    created->skip_check = options->skip_check;
    atomic_init(&created->references, 1);
    pthread_mutex_init(&created->lock, NULL);
    cairn_runtime_retain(runtime);
    enum cairn_status status = dyld_init(&created->dyld, runtime, &options->loading, "orc", error);
    if (status == CAIRN_OK)
        *orc = created;
    else
        release(created);
    return status;
}

void cairn_orc_destroy(cairn_orc *orc)
{
    if (orc != NULL)
        release(orc);
}
