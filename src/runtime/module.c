/*
 * Modules: publishing, retiring and freeing.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runtime/module.h"

#include "base/error.h"
#include "base/inspect.h"
#include "object/kept_object.h"
#include "record/declarations.h"
#include "record/fault_table.h"
#include "record/pc_table.h"
#include "record/table.h"
#include "runtime/assumption.h"
#include "runtime/events.h"
#include "runtime/linked_names.h"
#include "runtime/module_index.h"

#include <assert.h>
#include <cairn/load.h>
#include <stddef.h>

/* ---- The runtime's lists, with its lock held ---- */

static void push(cairn_module **list, cairn_module *module)
{
    module->previous = NULL;
    module->next = *list;
    if (*list != NULL)
        (*list)->previous = module;
    *list = module;
}

static void remove_from(cairn_module **list, cairn_module *module)
{
    if (module->previous != NULL)
        module->previous->next = module->next;
    else
        *list = module->next;
    if (module->next != NULL)
        module->next->previous = module->previous;
}

static void push_in_scope(cairn_module *module)
{
    struct module_extras *extras = module->extras;
    if (extras == NULL || extras->scope.modules == NULL)
        return;
    cairn_module *next = *extras->scope.modules;
    extras->scope_next = next;
    if (next != NULL)
        next->extras->scope_previous = module;
    *extras->scope.modules = module;
}

static void remove_from_scope(const cairn_module *module)
{
    struct module_extras *extras = module->extras;
    if (extras == NULL || extras->scope.modules == NULL)
        return;
    if (extras->scope_previous != NULL)
        extras->scope_previous->extras->scope_next = extras->scope_next;
    else
        *extras->scope.modules = extras->scope_next;
    if (extras->scope_next != NULL)
        extras->scope_next->extras->scope_previous = extras->scope_previous;
}

/* Returns the size of the module's own tables, which changes only when it is published. */
static size_t table_bytes(const cairn_module *module)
{
    return table_size_bytes(module->table, NULL) + functions_size_bytes(module->functions) +
           unwind_size(module->unwind).bytes + pc_table_size_bytes(cairn_module_pc_table(module)) +
           fault_table_size_bytes(cairn_module_fault_table(module)) +
           declarations_bound_bytes(module->declarations) + site_table_bound_bytes(module->sites) +
           id_entries_length(module->ids) * sizeof *module->ids +
           module_symbols_size_bytes(module->symbols) +
           attachments_size_bytes(module_attachments(module)) +
           module_index_bytes(code_block_owner(module_block(module)));
}

void module_add(cairn_module *module)
{
    cairn_runtime *runtime = module->runtime;
    runtime_lock(runtime);
    module->number = ++runtime->last_module_number;
    if (module->sites != NULL)
        module->sites->module_number = module->number;
    inspect_begin(runtime->descriptor, INSPECT_MODULES);
    push(&runtime->modules, module);
    push_in_scope(module);
    inspect_end(runtime->descriptor, INSPECT_MODULES);
    runtime->table_bytes += table_bytes(module);
    runtime_unlock(runtime);
}

/* Moves a module to the list of retired ones. */
static void move_to_retired(cairn_module *module)
{
    cairn_runtime *runtime = module->runtime;
    runtime->published_count -= module->state == MODULE_PUBLISHED;
    runtime->retired_count++;
    module->state = MODULE_RETIRED;
    inspect_begin(runtime->descriptor, INSPECT_MODULES);
    remove_from(&runtime->modules, module);
    remove_from_scope(module);
    push(&runtime->retired, module);
    inspect_end(runtime->descriptor, INSPECT_MODULES);
}

/* Removes a module from the list of retired ones. */
static void forget(cairn_module *module)
{
    cairn_runtime *runtime = module->runtime;
    runtime->retired_count--;
    runtime->table_bytes -= table_bytes(module);
    inspect_begin(runtime->descriptor, INSPECT_MODULES);
    remove_from(&runtime->retired, module);
    inspect_end(runtime->descriptor, INSPECT_MODULES);
}

/* Creates the entries of the module's IDs. */
static enum cairn_status create_ids(const cairn_module *module, struct id_entry **ids,
                                    struct cairn_error *error)
{
    cairn_runtime *runtime = module->runtime;
    const size_t count = id_entries_count(module->table);
    *ids = NULL;
    if (count == 0)
        return CAIRN_OK;
    runtime_lock(runtime);
    *ids = pool_take(&runtime->entries, count);
    runtime_unlock(runtime);
    if (*ids == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for the IDs of %zu records",
                         count);
    id_entries_init(*ids, module->table, module->sites == NULL ? NULL : cairn_record_site);
    return CAIRN_OK;
}

static void free_ids(cairn_runtime *runtime, struct id_entry *ids)
{
    runtime_lock(runtime);
    pool_give(&runtime->entries, ids, id_entries_length(ids));
    runtime_unlock(runtime);
}

void module_release(cairn_module *module, struct module_extras *extras)
{
    const struct cairn_allocator *allocator = &module->runtime->allocator;
    if (extras != NULL) {
        attachments_detach(extras->attachments, module->runtime);
        cairn_pc_table_destroy(extras->pcs);
        cairn_fault_table_destroy(extras->faults);
    }
    assumption_forget(module->runtime, module->sites);
    site_table_destroy(module->sites);
    unwind_destroy(module->unwind);
    functions_destroy(module->functions, allocator);
    cairn_table_destroy(module->table);
    cairn_declarations_destroy(module->declarations);
    module_symbols_destroy(module->symbols, allocator);
}

void module_destroy(cairn_module *module)
{
    cairn_runtime *runtime = module->runtime;
    struct module_extras *extras = module->extras;
    struct address_index *index = code_block_owner(module_block(module));
    code_watchers_module(code_space_watchers(runtime->space), module, false);
    free_ids(runtime, module->ids);
    module_release(module, extras);
    code_block_destroy(module_block(module));
    module_index_free(runtime, index);
    if (extras != NULL) {
        attachments_destroy(extras->attachments, runtime);
        kept_objects_free(extras->kept, &runtime->allocator);
        module_names_free(extras->names, &runtime->allocator);
    }
    memory_free(&runtime->allocator, extras, sizeof *extras);
}

/* ---- Publishing and retiring ---- */

/* Makes the module visible by PC and by ID. Nothing is visible before everything that may fail is
 * done. Called with the runtime's lock held. */
static enum cairn_status publish_locked(cairn_module *module, struct id_entry *ids,
                                        struct address_index *index, struct cairn_error *error)
{
    cairn_runtime *runtime = module->runtime;
    const size_t unpublished_bytes = table_bytes(module);
    if (module->state != MODULE_LOADED)
        return error_set(error, CAIRN_ERROR_STATE, 0, "module '%s' has been %s already",
                         module->name, module->state == MODULE_PUBLISHED ? "published" : "retired");
    enum cairn_status status = id_table_reserve(runtime->ids, ids, error);
    if (status == CAIRN_OK)
        status =
            symbol_table_reserve(&runtime->symbols, &runtime->allocator, module->symbols, error);
    if (status == CAIRN_OK)
        status = code_block_publish(module_block(module), index, error);
    if (status != CAIRN_OK)
        return status;
    module->ids = ids;
    id_table_add(runtime->ids, ids);
    symbol_table_add(&runtime->symbols, module->symbols);
    site_table_publish(module->sites);
    module->state = MODULE_PUBLISHED;
    code_watchers_module(code_space_watchers(runtime->space), module, true);
    runtime->published_count++;
    runtime->table_bytes += table_bytes(module) - unpublished_bytes;
    event_module_loaded(module);
    return CAIRN_OK;
}

enum cairn_status cairn_module_publish(cairn_module *module, struct cairn_error *error)
{
    if (module == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_module_publish: `module` is NULL");
    cairn_runtime *runtime = module->runtime;
    struct address_index *index = NULL;
    struct id_entry *ids;
    enum cairn_status status = create_ids(module, &ids, error);
    if (status == CAIRN_OK)
        status = module_index_create(module, &index, error);
    bool has_memory = false; /* otherwise nothing leads to the index */
    if (status == CAIRN_OK) {
        runtime_lock(runtime);
        status = publish_locked(module, ids, index, error);
        has_memory = status == CAIRN_OK && code_block_owner(module_block(module)) != NULL;
        runtime_unlock(runtime);
    }
    if (status != CAIRN_OK)
        free_ids(runtime, ids);
    if (!has_memory)
        module_index_free(runtime, index);
    return status;
}

static cairn_module *module_of_entry(const struct grace_entry *entry)
{
    return (cairn_module *)((uintptr_t)entry - offsetof(struct cairn_module, waiting));
}

/* Frees a module whose grace period has ended, unless there are references to it. */
static size_t release_module(struct grace_entry *entry)
{
    cairn_module *module = module_of_entry(entry);
    runtime_lock(module->runtime);
    module->is_due = module->shares > 0;
    bool is_kept = module->is_due;
    if (!is_kept)
        forget(module);
    runtime_unlock(module->runtime);
    if (is_kept)
        return 0;
    module_destroy(module);
    return 1;
}

void modules_forget_frames(cairn_runtime *runtime)
{
    runtime_lock(runtime);
    for (cairn_module *module = runtime->retired; module != NULL; module = module->next)
        module->has_frame = false;
    runtime_unlock(runtime);
}

bool module_is_unused(const struct grace_entry *entry)
{
    return entry->release == release_module && !module_of_entry(entry)->has_frame;
}

static void wait_for_grace(cairn_module *module)
{
    grace_retire(code_space_grace(module->runtime->space), &module->waiting, release_module);
}

static void retire_locked(cairn_module *module)
{
    if (module->state == MODULE_PUBLISHED) {
        code_block_retire(module_block(module));
        id_table_remove(module->runtime->ids, module->ids);
        symbol_table_remove(&module->runtime->symbols, module->symbols);
    }
    if (module->state != MODULE_RETIRED) {
        site_table_retire(module->sites);
        move_to_retired(module);
        event_module_retired(module);
        wait_for_grace(module);
    }
}

void cairn_module_retire(cairn_module *module)
{
    if (module == NULL)
        return;
    runtime_lock(module->runtime);
    retire_locked(module);
    runtime_unlock(module->runtime);
}

void cairn_runtime_retire_list(cairn_runtime *runtime, cairn_module **modules)
{
    runtime_lock(runtime);
    while (*modules != NULL)
        retire_locked(*modules);
    runtime_unlock(runtime);
}

enum cairn_status module_use(cairn_module *module, struct cairn_error *error)
{
    if (module->state != MODULE_PUBLISHED)
        return error_set(error, CAIRN_ERROR_STATE, 0, "module '%s' %s", module->name,
                         module->state == MODULE_RETIRED ? "has been retired already"
                                                         : "is not published");
    module->shares++;
    return CAIRN_OK;
}

void cairn_module_retain(cairn_module *module)
{
    runtime_lock(module->runtime);
    module->shares++;
    runtime_unlock(module->runtime);
}

static void unuse_locked(cairn_module *module, bool retires)
{
    module->retires_unused |= retires;
    assert(module->shares > 0);
    module->shares--;
    if (module->shares == 0 && module->is_due) {
        module->is_due = false;
        wait_for_grace(module);
    }
    if (module->shares == 0 && module->retires_unused)
        retire_locked(module);
}

void module_unuse(cairn_module *module, bool retires)
{
    if (module == NULL)
        return;
    runtime_lock(module->runtime);
    unuse_locked(module, retires);
    runtime_unlock(module->runtime);
}

void module_retire_use(cairn_module *module)
{
    if (module->shares == 0)
        retire_locked(module);
    else
        unuse_locked(module, true);
}

void cairn_module_release(cairn_module *module) { module_unuse(module, false); }

/* ---- Constructors and destructors ---- */

enum cairn_status cairn_module_run_constructors(cairn_module *module, struct cairn_error *error)
{
    if (module == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_module_run_constructors: `module` is NULL");
    struct attachments *attachments = module_attachments(module);
    runtime_lock(module->runtime);
    bool is_retired = module->state == MODULE_RETIRED;
    bool runs = !is_retired && attachments != NULL && attachments->state == CONSTRUCTORS_NOT_RUN;
    if (runs) {
        attachments->state = CONSTRUCTORS_RUN;
        module->shares++;
    }
    runtime_unlock(module->runtime);
    if (is_retired)
        return error_set(error, CAIRN_ERROR_STATE, 0, "module '%s' has been retired already",
                         module->name);
    if (runs)
        attachments_construct(attachments);
    return CAIRN_OK;
}

void cairn_module_run_destructors(cairn_module *module)
{
    if (module == NULL)
        return;
    struct attachments *attachments = module_attachments(module);
    runtime_lock(module->runtime);
    bool runs = attachments != NULL && attachments->state == CONSTRUCTORS_RUN;
    if (runs)
        attachments->state = DESTRUCTORS_RUN;
    runtime_unlock(module->runtime);
    if (!runs)
        return;
    attachments_destruct(attachments);
    cairn_module_release(module);
}
