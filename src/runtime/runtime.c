/*
 * A runtime: one code space, one index, and the modules that were loaded into it.
 *
 * The runtime's lock serialises loading and retiring. Lookups take no lock: they find the module by
 * the page of the PC (code space), and the record in the module's table.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runtime/runtime.h"

#include "arch/arch.h"
#include "base/error.h"
#include "record/declarations.h"
#include "record/fault_table.h"
#include "record/pc_table.h"
#include "runtime/module.h"

#include <string.h>

/* ---- Creating and destroying ---- */

enum cairn_status cairn_runtime_create(const struct cairn_runtime_options *options,
                                       cairn_runtime **runtime, struct cairn_error *error)
{
    static const struct cairn_runtime_options defaults;
    if (runtime == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_runtime_create needs a place for the runtime");
    if (options == NULL)
        options = &defaults;
    const struct cairn_arch *arch = arch_host();
    if (arch == NULL)
        return error_set(
            error, CAIRN_ERROR_UNSUPPORTED, 0,
            "code cannot be loaded on this architecture: Cairn has no patching for it");

    struct cairn_allocator allocator = memory_allocator(&options->allocator);
    cairn_runtime *created = memory_new(&allocator, 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a runtime");
    created->allocator = allocator;
    const struct code_space_options space_options = {
        .arch = arch,
        .allocator = allocator,
        .slab_size = options->slab_size,
        .slab_limit = options->slab_limit,
        .mode = options->code_mode,
    };
    enum cairn_status status = code_space_create(&space_options, &created->space, error);
    if (status == CAIRN_OK) {
        status = index_create(&allocator, &created->index, error);
        if (status != CAIRN_OK)
            code_space_destroy(created->space);
    }
    if (status != CAIRN_OK) {
        memory_free(&allocator, created, sizeof *created);
        return status;
    }
    cache_set_init(&created->ics, &allocator, created->space);
    pthread_mutex_init(&created->lock, NULL);
    atomic_init(&created->references, 1);
    runtime_watch_forks(created);
    *runtime = created;
    return CAIRN_OK;
}

static void destroy_modules(cairn_module *module)
{
    while (module != NULL) {
        cairn_module *next = module->next;
        module_destroy(module);
        module = next;
    }
}

void cairn_runtime_retain(cairn_runtime *runtime)
{
    atomic_fetch_add_explicit(&runtime->references, 1, memory_order_relaxed);
}

void cairn_runtime_destroy(cairn_runtime *runtime)
{
    if (runtime == NULL ||
        atomic_fetch_sub_explicit(&runtime->references, 1, memory_order_acq_rel) != 1)
        return;
    runtime_ignore_forks(runtime);
    destroy_modules(runtime->modules);
    destroy_modules(runtime->retired);
    cache_set_destroy(&runtime->ics);
    index_destroy(runtime->index);
    code_space_destroy(runtime->space);
    pthread_mutex_destroy(&runtime->lock);
    struct cairn_allocator allocator = runtime->allocator;
    memory_free(&allocator, runtime, sizeof *runtime);
}

/* ---- Properties ---- */

const struct cairn_allocator *cairn_runtime_allocator(const cairn_runtime *runtime)
{
    return &runtime->allocator;
}

static size_t table_bytes(const cairn_module *module)
{
    return cairn_table_size_bytes(module->table, NULL) + functions_size_bytes(module->functions) +
           unwind_size(module->unwind).bytes + pc_table_size_bytes(module->pcs) +
           fault_table_size_bytes(module->faults) + declarations_bound_bytes(module->declarations) +
           site_table_bound_bytes(module->sites);
}

void cairn_runtime_statistics(cairn_runtime *runtime, struct cairn_runtime_statistics *statistics)
{
    memset(statistics, 0, sizeof *statistics);
    code_space_statistics(runtime->space, statistics);
    statistics->code_mode = code_space_mode(runtime->space);
    statistics->code_mode_reason = code_space_mode_reason(runtime->space);
    statistics->can_synchronise = code_space_can_synchronise(runtime->space);
    runtime_lock(runtime);
    for (const cairn_module *module = runtime->modules; module != NULL; module = module->next) {
        statistics->module_count += module->state == MODULE_PUBLISHED;
        statistics->table_bytes += table_bytes(module);
    }
    for (const cairn_module *module = runtime->retired; module != NULL; module = module->next) {
        statistics->retired_count++;
        statistics->table_bytes += table_bytes(module);
    }
    runtime_unlock(runtime);
}

size_t cairn_runtime_quiesce(cairn_runtime *runtime)
{
    /* A forked child that cannot have its own code keeps the retired modules. */
    if (runtime_enter(runtime, NULL) != CAIRN_OK)
        return 0;
    /* A visitor of inline caches is using them, and a module cannot be freed without its caches. */
    if (cache_set_enter(&runtime->ics, NULL) != CAIRN_OK)
        return 0;
    cache_set_leave(&runtime->ics);
    runtime_lock(runtime);
    cairn_module *retired = module_take_unshared(&runtime->retired);
    index_quiesce(runtime->index);
    runtime_unlock(runtime);

    size_t count = 0;
    for (const cairn_module *module = retired; module != NULL; module = module->next)
        count++;
    destroy_modules(retired);
    cache_set_quiesce(&runtime->ics);
    code_space_quiesce_stubs(runtime->space);
    return count;
}

/* ---- Lookups ---- */

cairn_module *cairn_runtime_find_module(const cairn_runtime *runtime, uint64_t pc)
{
    return code_space_find_owner(runtime->space, pc);
}

bool cairn_runtime_find_address(const cairn_runtime *runtime, uint64_t address,
                                struct cairn_record *record)
{
    const cairn_module *module = code_space_find_owner(runtime->space, address);
    return module != NULL && cairn_table_find_address(module->table, address, record);
}

bool cairn_runtime_find_function(const cairn_runtime *runtime, uint64_t pc,
                                 struct cairn_function *function)
{
    const cairn_module *module = code_space_find_owner(runtime->space, pc);
    return module != NULL && module_find_function(module, pc, function);
}

size_t cairn_runtime_find_id(const cairn_runtime *runtime, uint64_t id,
                             struct cairn_record *records, size_t capacity)
{
    return index_find_id(runtime->index, id, records, capacity);
}
