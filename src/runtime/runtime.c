/*
 * A runtime: one code space, one table of IDs, and the modules that were loaded into it.
 *
 * The runtime's lock serialises loading and retiring. Lookups take no lock: they find the module by
 * the page of the PC (code space), and the record in the module's table.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runtime/runtime.h"

#include "arch/arch.h"
#include "base/adapter.h"
#include "base/error.h"
#include "log/event.h"
#include "runtime/inspect.h"
#include "runtime/module.h"

#include <string.h>

/* ---- Creating and destroying ---- */

enum cairn_status cairn_runtime_create(const struct cairn_runtime_options *options,
                                       cairn_runtime **runtime, struct cairn_error *error)
{
    static const struct cairn_runtime_options defaults;
    if (runtime == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_runtime_create: `runtime` is NULL");
    if (options == NULL)
        options = &defaults;
    const struct cairn_arch *arch = arch_host();
    if (arch == NULL)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0, "unsupported host architecture %s",
                         cairn_architecture_name(cairn_architecture_host()));

    struct cairn_allocator allocator = memory_allocator(&options->allocator);
    cairn_runtime *created = memory_new(&allocator, 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a runtime");
    created->allocator = allocator;
    const struct code_space_options space_options = {
        .arch = arch,
        .allocator = allocator,
        .slab_size = options->slab_size,
        .mode = options->code_mode,
        .protects_writes = options->protects_writes,
        .has_landing_pads = options->has_landing_pads,
    };
    enum cairn_status status = code_space_create(&space_options, &created->space, error);
    if (status == CAIRN_OK) {
        status =
            id_table_create(&allocator, code_space_grace(created->space), &created->ids, error);
        if (status != CAIRN_OK)
            code_space_destroy(created->space);
    }
    if (status != CAIRN_OK) {
        memory_free(&allocator, created, sizeof *created);
        return status;
    }
    pool_init(&created->indexes, &allocator, sizeof(struct index_group));
    pool_init(&created->ranges, &allocator, sizeof(struct function_range));
    pool_init(&created->entries, &allocator, sizeof(struct id_entry));
    cache_set_init(&created->ics, &allocator, created->space);
    symbol_table_init(&created->symbols);
    created->vector_level = arch_host_vector_level();
    atomic_init(&created->saved_level, created->vector_level);
    pthread_mutex_init(&created->lock, NULL);
    atomic_init(&created->references, 1);
    runtime_inspect_create(created);
    runtime_watch_forks(created);
    *runtime = created;
    return CAIRN_OK;
}

void runtime_note_level(cairn_runtime *runtime, uint32_t level)
{
    runtime_lock(runtime);
    if (level > runtime->vector_level)
        level = runtime->vector_level;
    if (level > runtime->code_level) {
        runtime->code_level = level;
        atomic_store_explicit(&runtime->saved_level, level, memory_order_release);
    }
    runtime_unlock(runtime);
}

static void destroy_modules(cairn_module **list)
{
    while (*list != NULL) {
        cairn_module *module = *list;
        *list = module->next;
        module_destroy(module);
    }
}

static void detach_modules(const cairn_module *list, cairn_runtime *runtime)
{
    for (const cairn_module *module = list; module != NULL; module = module->next)
        attachments_detach(module_attachments(module), runtime);
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
    runtime_inspect_destroy(runtime);
    runtime->is_destroyed = true;
    detach_modules(runtime->modules, runtime);
    detach_modules(runtime->retired, runtime);
    destroy_modules(&runtime->modules);
    grace_drain(code_space_grace(runtime->space));
    destroy_modules(&runtime->retired); /* those with references */
    grace_drain(code_space_grace(runtime->space));
    cache_set_destroy(&runtime->ics);
    id_table_destroy(runtime->ids);
    pool_release(&runtime->indexes);
    pool_release(&runtime->ranges);
    pool_release(&runtime->entries);
    symbol_table_release(&runtime->symbols, &runtime->allocator);
    cairn_log_destroy(log_of(code_space_sink(runtime->space)));
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

void cairn_runtime_statistics(cairn_runtime *runtime, struct cairn_runtime_statistics *statistics)
{
    memset(statistics, 0, sizeof *statistics);
    code_space_statistics(runtime->space, statistics);
    statistics->code_mode = code_space_mode(runtime->space);
    statistics->code_mode_reason = code_space_mode_reason(runtime->space);
    statistics->can_synchronise = code_space_can_synchronise(runtime->space);
    runtime_lock(runtime);
    statistics->module_count = runtime->published_count;
    statistics->retired_count = runtime->retired_count;
    statistics->table_bytes = runtime->table_bytes;
    statistics->index_bytes +=
        id_table_size_bytes(runtime->ids) + symbol_table_size_bytes(&runtime->symbols);
    runtime_unlock(runtime);
}

/* ---- Grace periods ---- */

uint64_t cairn_runtime_grace_start(cairn_runtime *runtime)
{
    uint64_t token = grace_start(code_space_grace(runtime->space));
    event_grace(code_space_sink(runtime->space), false, token, 0);
    return token;
}

size_t runtime_end_grace(cairn_runtime *runtime, uint64_t token, grace_filter *selects)
{
    /* A forked child that shares its code with its parent keeps what was retired. */
    if (!code_space_is_own(runtime->space))
        return 0;
    /* A visitor of inline caches is using them, and a module cannot be freed without its caches. */
    if (cache_set_enter(&runtime->ics, NULL) != CAIRN_OK)
        return 0;
    cache_set_leave(&runtime->ics);
    size_t count = grace_end(code_space_grace(runtime->space), token, selects);
    code_space_clean(runtime->space);
    event_grace(code_space_sink(runtime->space), true, token, count);
    return count;
}

size_t cairn_runtime_grace_end(cairn_runtime *runtime, uint64_t token)
{
    return runtime_end_grace(runtime, token, NULL);
}

/* ---- Lookups ---- */

cairn_module *cairn_runtime_find_module(const cairn_runtime *runtime, uint64_t pc)
{
    return runtime_module_of(code_space_find_owner(runtime->space, pc));
}

bool cairn_runtime_find_address(const cairn_runtime *runtime, uint64_t address,
                                struct cairn_record *record)
{
    const struct address_index *index = code_space_find_owner(runtime->space, address);
    return index != NULL && address_index_find(index, address, record);
}

bool cairn_runtime_find_function(const cairn_runtime *runtime, uint64_t pc,
                                 struct cairn_function *function)
{
    const struct address_index *index = code_space_find_owner(runtime->space, pc);
    if (index == NULL)
        return false;
    const struct function_index *functions = index_functions(index);
    if (__builtin_expect(functions->record_count == FUNCTIONS_SEARCHED, 0))
        return module_search_function(functions->owner, pc, function);
    return function_index_find(functions, pc, function);
}

size_t cairn_runtime_find_id(const cairn_runtime *runtime, uint64_t id,
                             struct cairn_record *records, size_t capacity)
{
    return id_table_find(runtime->ids, id, records, capacity);
}
