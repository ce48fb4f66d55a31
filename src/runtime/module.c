/*
 * Modules: publishing, retiring, and queries.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runtime/module.h"

#include "base/error.h"
#include "record/declarations.h"
#include "record/table.h"

#include <assert.h>

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

void module_add(cairn_module *module)
{
    runtime_lock(module->runtime);
    push(&module->runtime->modules, module);
    runtime_unlock(module->runtime);
}

void module_destroy(cairn_module *module)
{
    struct cairn_allocator allocator = module->runtime->allocator;
    site_table_destroy(module->sites);
    cairn_pc_table_destroy(module->pcs);
    cairn_fault_table_destroy(module->faults);
    unwind_destroy(module->unwind);
    functions_destroy(module->functions);
    cairn_table_destroy(module->table);
    cairn_declarations_destroy(module->declarations);
    code_block_destroy(module->block);
    memory_free_string(&allocator, module->name);
    memory_free(&allocator, module, sizeof *module);
}

/* ---- Publishing and retiring ---- */

/* The index comes first because it may fail. In between, lookups find the module's records by ID,
 * but not yet by PC. */
enum cairn_status cairn_module_publish(cairn_module *module, struct cairn_error *error)
{
    if (module == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no module to publish");
    cairn_runtime *runtime = module->runtime;
    enum cairn_status status = runtime_enter(runtime, error);
    if (status != CAIRN_OK)
        return status;
    runtime_lock(runtime);
    if (module->state != MODULE_LOADED)
        status =
            error_set(error, CAIRN_ERROR_STATE, 0, "module '%s' has been %s already", module->name,
                      module->state == MODULE_PUBLISHED ? "published" : "retired");
    else
        status = index_publish(runtime->index, module->table, error);
    if (status != CAIRN_OK)
        goto unlock;
    status = code_block_publish(module->block, module, error);
    if (status != CAIRN_OK) {
        index_unpublish(runtime->index, module->table);
        goto unlock;
    }
    site_table_publish(module->sites);
    module->state = MODULE_PUBLISHED;
unlock:
    runtime_unlock(runtime);
    return status;
}

/* Takes the runtime's lock. If a forked child cannot have its own pages, this still works: what is
 * done then needs only the locks, and frees nothing. */
static void enter_and_lock(cairn_module *module)
{
    enum cairn_status entered = runtime_enter(module->runtime, NULL);
    (void)entered;
    runtime_lock(module->runtime);
}

void cairn_module_retire(cairn_module *module)
{
    if (module == NULL)
        return;
    enter_and_lock(module);
    if (module->state == MODULE_PUBLISHED) {
        code_block_unpublish(module->block);
        index_unpublish(module->runtime->index, module->table);
    }
    if (module->state != MODULE_RETIRED) {
        site_table_retire(module->sites);
        module->state = MODULE_RETIRED;
        remove_from(&module->runtime->modules, module);
        push(&module->runtime->retired, module);
    }
    runtime_unlock(module->runtime);
}

void cairn_module_retain(cairn_module *module)
{
    enter_and_lock(module);
    module->shares++;
    runtime_unlock(module->runtime);
}

void cairn_module_release(cairn_module *module)
{
    if (module == NULL)
        return;
    enter_and_lock(module);
    assert(module->shares > 0);
    module->shares--;
    runtime_unlock(module->runtime);
}

cairn_module *module_take_unshared(cairn_module **list)
{
    cairn_module *taken = NULL;
    for (cairn_module *module = *list, *next; module != NULL; module = next) {
        next = module->next;
        if (module->shares > 0)
            continue;
        remove_from(list, module);
        push(&taken, module);
    }
    return taken;
}

/* ---- Contents ---- */

const char *cairn_module_name(const cairn_module *module) { return module->name; }

const cairn_table *cairn_module_table(const cairn_module *module) { return module->table; }

const cairn_pc_table *cairn_module_pc_table(const cairn_module *module)
{
    return module == NULL ? NULL : module->pcs;
}

const cairn_fault_table *cairn_module_fault_table(const cairn_module *module)
{
    return module == NULL ? NULL : module->faults;
}

bool cairn_module_memory_range(const cairn_module *module, uint32_t index,
                               struct cairn_memory_range *range)
{
    return code_block_memory_range(module->block, index, range);
}

uint32_t cairn_module_site_count(const cairn_module *module)
{
    return site_table_count(module->sites);
}

cairn_site *cairn_module_site(const cairn_module *module, uint32_t index)
{
    return site_table_at(module->sites, index);
}

uint32_t module_function_sites(const cairn_module *module, struct cairn_function function,
                               uint32_t *first)
{
    *first = site_table_from(module->sites, function.first_record);
    return site_table_from(module->sites, function.first_record + function.record_count) - *first;
}

bool module_find_function(const cairn_module *module, uint64_t pc, struct cairn_function *function)
{
    return code_block_holds_code(module->block, pc, 1) &&
           functions_find(module->functions, module->table, pc, function);
}

/* ---- From a record to its module, declaration and site ---- */

cairn_module *cairn_record_module(struct cairn_record record)
{
    return record.table == NULL ? NULL : table_owner(record.table);
}

const struct cairn_declaration *cairn_record_declaration(struct cairn_record record)
{
    const cairn_module *module = cairn_record_module(record);
    const struct declaration_entry *entry =
        module == NULL ? NULL : declarations_of_record(module->declarations, record.index);
    return entry == NULL ? NULL : entry->declaration;
}

cairn_site *cairn_record_site(struct cairn_record record)
{
    const cairn_module *module = cairn_record_module(record);
    return module == NULL ? NULL : site_table_find(module->sites, record.index);
}

/* ---- Sites by ID ---- */

struct site_search {
    cairn_site *found;
    bool is_ambiguous;
};

static bool note_site(struct cairn_record record, void *user)
{
    struct site_search *search = user;
    cairn_site *site = cairn_record_site(record);
    if (site == NULL)
        return true;
    search->is_ambiguous = search->found != NULL;
    search->found = site;
    return !search->is_ambiguous;
}

cairn_site *cairn_runtime_find_site(const cairn_runtime *runtime, uint64_t id,
                                    struct cairn_error *error)
{
    struct site_search search = {0};
    index_visit_id(runtime->index, id, note_site, &search);
    if (search.is_ambiguous) {
        error_set(error, CAIRN_ERROR_CONFLICT, id,
                  "ID %llu has several sites: take them from cairn_runtime_find_id",
                  (unsigned long long)id);
        return NULL;
    }
    if (search.found == NULL)
        error_set(error, CAIRN_ERROR_NOT_FOUND, id, "no record with the ID %llu has a site",
                  (unsigned long long)id);
    return search.found;
}
