/*
 * Reading modules: what a module contains, and from a name, an ID or a record to a definition or a
 * site.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "base/error.h"
#include "record/declarations.h"
#include "runtime/module.h"

#include <cairn/load.h>

/* ---- Contents ---- */

const char *cairn_module_name(const cairn_module *module) { return module->name; }

const cairn_table *cairn_module_table(const cairn_module *module) { return module->table; }

const cairn_pc_table *cairn_module_pc_table(const cairn_module *module)
{
    return module == NULL || module->extras == NULL ? NULL : module->extras->pcs;
}

const cairn_fault_table *cairn_module_fault_table(const cairn_module *module)
{
    return module == NULL || module->extras == NULL ? NULL : module->extras->faults;
}

bool module_memory_range(const cairn_module *module, uint32_t index, struct memory_range *range)
{
    return code_block_memory_range(module_block(module), index, range);
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

/* Returns a function that only the module's symbols contain. */
static struct cairn_function function_without_records(const cairn_module *module, uint64_t address)
{
    struct cairn_function before = {0};
    cairn_table_find_function(module->table, address, &before);
    return (struct cairn_function){.address = address,
                                   .stack_size = CAIRN_STACK_SIZE_DYNAMIC,
                                   .first_record = before.first_record + before.record_count};
}

bool module_search_function(const cairn_module *module, uint64_t pc,
                            struct cairn_function *function)
{
    const char *name = NULL;
    uint64_t address = 0;
    if (!code_block_holds_code(module_block(module), pc, 1))
        return false;
    bool is_named = module_symbols_find_function(module->symbols, pc, &name, &address);
    bool is_known = functions_find(module->functions, module->table, pc, function);
    if (!is_named && !is_known)
        return false;
    if (is_named && (!is_known || address > function->address))
        *function = function_without_records(module, address);
    function->name = name;
    return true;
}

void *cairn_module_find_symbol(const cairn_module *module, const char *name)
{
    const struct definition *found =
        module_symbols_find(module->symbols, &module->runtime->symbols.key, name);
    return found == NULL ? NULL : (void *)(uintptr_t)definition_address(found);
}

const struct definition *module_find_definition(const cairn_runtime *runtime, const void *key,
                                                const char *name)
{
    const struct definition *for_all = NULL;
    const struct definition *found = symbol_table_find(&runtime->symbols, name);
    for (; found != NULL; found = found->older) {
        const cairn_module *module = definition_symbols(found)->owner;
        const void *own_key = module->extras == NULL ? NULL : module->extras->scope.key;
        if (own_key == key)
            return found;
        if (own_key == NULL && for_all == NULL)
            for_all = found;
    }
    return for_all;
}

void *cairn_runtime_find_symbol(cairn_runtime *runtime, const void *key, const char *name)
{
    runtime_lock(runtime);
    const struct definition *found = module_find_definition(runtime, key, name);
    uint64_t address = found == NULL ? 0 : definition_address(found);
    runtime_unlock(runtime);
    return (void *)(uintptr_t)address;
}

/* ---- From a record to its module, declaration and site ---- */

cairn_module *record_module(struct cairn_record record)
{
    return record.table == NULL ? NULL : table_owner(record.table);
}

const struct cairn_declaration *cairn_record_declaration(struct cairn_record record)
{
    const cairn_module *module = record_module(record);
    const struct declaration_entry *entry =
        module == NULL ? NULL : declarations_of_record(module->declarations, record.index);
    return entry == NULL ? NULL : entry->declaration;
}

cairn_site *cairn_record_site(struct cairn_record record)
{
    const cairn_module *module = record_module(record);
    return module == NULL ? NULL : site_table_find(module->sites, record.index);
}

/* ---- Sites by ID ---- */

cairn_site *cairn_runtime_find_site(const cairn_runtime *runtime, uint64_t id,
                                    struct cairn_error *error)
{
    cairn_site *found = id_table_find_site(runtime->ids, id);
    if (found == ID_SITE_AMBIGUOUS) {
        error_set(error, CAIRN_ERROR_CONFLICT, id,
                  "ID %llu has several sites: take them from cairn_runtime_find_id",
                  (unsigned long long)id);
        return NULL;
    }
    if (found == NULL)
        error_set(error, CAIRN_ERROR_NOT_FOUND, id, "no record with the ID %llu has a site",
                  (unsigned long long)id);
    return found;
}
