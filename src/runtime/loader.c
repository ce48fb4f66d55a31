/*
 * Loaders: everything that belongs to one finalisation, from the first section to the module.
 *
 * Nothing in a loader is visible to lookups. load_sections.c, load_manifest.c and load_object.c add
 * to it; here it is made a module.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runtime/loader.h"
#include "arch/arch.h"
#include "base/error.h"
#include "base/memory.h"
#include "object/kept_object.h"
#include "record/declarations.h"
#include "record/fault_table.h"
#include "record/table.h"
#include "runtime/bound_sites.h"
#include "runtime/linked_names.h"
#include "runtime/load_manifest.h"
#include "runtime/module.h"
#include "runtime/runtime.h"

#include <stddef.h>
#include <string.h>

/* ---- Creating and destroying ---- */

enum cairn_status cairn_loader_create(cairn_runtime *runtime, const char *name,
                                      cairn_loader **loader, struct cairn_error *error)
{
    if (runtime == NULL || loader == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_loader_create: `%s` is NULL",
                         runtime == NULL ? "runtime" : "loader");
    if (name == NULL)
        name = "";
    const struct cairn_allocator *allocator = &runtime->allocator;
    cairn_loader *created = memory_new(allocator, 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a loader");
    created->runtime = runtime;
    cairn_runtime_retain(runtime);
    enum cairn_status status = code_block_create(
        runtime->space, offsetof(cairn_module, name) + strlen(name) + 1, &created->block, error);
    if (status != CAIRN_OK) {
        cairn_loader_destroy(created);
        return status;
    }
    created->module = code_block_user(created->block);
    created->module->runtime = runtime;
    created->name = strcpy(created->module->name, name);
    *loader = created;
    return CAIRN_OK;
}

void cairn_loader_destroy(cairn_loader *loader)
{
    if (loader == NULL)
        return;
    cairn_runtime *runtime = loader->runtime;
    const struct cairn_allocator *allocator = &runtime->allocator;
    loader_free_sections(loader);
    loader_objects_destroy(allocator, loader->objects);
    module_symbols_destroy(loader->linked.symbols, allocator);
    kept_objects_free(loader->linked.kept, allocator);
    module_names_free(loader->linked.names, allocator);
    bound_sites_free(loader->linked.bound, allocator);
    attachment_list_release(&loader->linked.attached, allocator);
    cairn_declarations_destroy(loader->declarations);
    code_block_destroy(loader->block);
    memory_free(allocator, loader, sizeof *loader);
    cairn_runtime_destroy(runtime);
}

void cairn_loader_set_scope(cairn_loader *loader, struct cairn_scope scope)
{
    loader->linked.scope = scope;
}

/* ---- Function descriptors (PPC64 ELFv1) ---- */

/* Reads the entry of the function whose descriptor is at an address: the first of its three words,
 * which are followed by the TOC pointer and the environment. */
static enum cairn_status read_descriptor(const struct code_block *block, uint32_t number,
                                         uint64_t descriptor, uint64_t *entry,
                                         struct cairn_error *error)
{
    enum { DESCRIPTOR_BYTES = 24, DESCRIPTOR_ALIGNMENT = 8 };
    if (descriptor % DESCRIPTOR_ALIGNMENT != 0 ||
        !code_block_holds_data(block, descriptor, DESCRIPTOR_BYTES))
        return error_set(error, CAIRN_ERROR_CORRUPT, descriptor,
                         "function %u of a stack map is named by 0x%llx, which is neither in the "
                         "code that was loaded nor a function descriptor in its data",
                         number, (unsigned long long)descriptor);
    memcpy(entry, (const void *)(uintptr_t)descriptor, sizeof *entry);
    if (code_block_holds_code(block, *entry, 1))
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_CORRUPT, descriptor,
                     "function %u of a stack map has its descriptor at 0x%llx, which leads to "
                     "0x%llx, not in the code that was loaded",
                     number, (unsigned long long)descriptor, (unsigned long long)*entry);
}

/*
 * Replaces the addresses of descriptors in a stack map section by the entries of their functions.
 *
 * LLVM's stack maps name a function by a pointer to it. If the block's architecture has
 * descriptors, that is the address of a descriptor in the module's data. Addresses in the module's
 * code stay unchanged. Errors in the maps themselves are ignored here; the reader of the maps
 * reports them. The section and the descriptors are in the host's byte order. Errors: CORRUPT (an
 * address is not a descriptor in the data, or its entry is not in the code).
 *
 * Source: 64-bit PowerPC ELF Application Binary Interface Supplement (ELFv1), section "Function
 * Descriptors"; the code that LLVM 14 to 19 emit for powerpc64-linux-gnu.
 */
static enum cairn_status resolve_descriptors(const struct code_block *block,
                                             const struct cairn_section *section,
                                             struct cairn_error *error)
{
    uint8_t *bytes = (uint8_t *)(uintptr_t)section->bytes;
    size_t offset = 0;
    struct cairn_stackmap map;
    if (!code_space_arch(code_block_space(block))->has_descriptors)
        return CAIRN_OK;
    while (offset < section->size &&
           cairn_stackmap_read(section, &offset, &map, NULL) == CAIRN_OK) {
        uint8_t *place = bytes + map.section_offset + CAIRN_STACKMAP_HEADER_BYTES;
        for (uint32_t i = 0; i < map.function_count; i++) {
            uint64_t address = cairn_stackmap_function(&map, i).address;
            enum cairn_status status = CAIRN_OK;
            if (!code_block_holds_code(block, address, 1))
                status = read_descriptor(block, i, address, &address, error);
            if (status != CAIRN_OK)
                return status;
            memcpy(place, &address, sizeof address);
            place += cairn_stackmap_function_bytes(map.version);
        }
    }
    return CAIRN_OK;
}

/* ---- Finishing ---- */

/* The loader's sections by kind, each in the order of allocation. */
struct inputs {
    struct cairn_section *stackmaps;
    struct cairn_section *faultmaps;
    struct eh_frame *unwind_tables;
    struct cairn_pc_table_section *pc_sections;
    size_t stackmap_count;
    size_t faultmap_count;
    size_t unwind_table_count;
    size_t pc_section_count;
};

enum {
    INPUT_BYTES = 2 * sizeof(struct cairn_section) + sizeof(struct eh_frame) +
                  sizeof(struct cairn_pc_table_section)
};

/* Returns NULL if there is no memory; the caller frees it, INPUT_BYTES for each section. */
static void *sort_sections(const cairn_loader *loader, struct inputs *inputs)
{
    size_t count = loader->section_count;
    uint8_t *memory = memory_new(&loader->runtime->allocator, count, INPUT_BYTES);
    if (memory == NULL)
        return NULL;
    *inputs = (struct inputs){.stackmaps = (struct cairn_section *)(void *)memory};
    inputs->faultmaps = inputs->stackmaps + count;
    inputs->unwind_tables = (struct eh_frame *)(inputs->faultmaps + count);
    inputs->pc_sections = (struct cairn_pc_table_section *)(inputs->unwind_tables + count);
    for (size_t i = 0; i < count; i++) {
        const struct cairn_pc_table_section *contents = &loader->sections[i].contents;
        switch (loader->sections[i].kind) {
        case CAIRN_SECTION_STACKMAP:
            inputs->stackmaps[inputs->stackmap_count++] = contents->section;
            break;
        case CAIRN_SECTION_FAULTMAP:
            inputs->faultmaps[inputs->faultmap_count++] = contents->section;
            break;
        case CAIRN_SECTION_UNWIND_TABLE:
            inputs->unwind_tables[inputs->unwind_table_count++] =
                (struct eh_frame){.section = contents->section, .address = contents->address};
            break;
        case CAIRN_SECTION_PC_SECTION:
            inputs->pc_sections[inputs->pc_section_count++] = *contents;
            break;
        case CAIRN_SECTION_CODE:
        case CAIRN_SECTION_DATA:
        case CAIRN_SECTION_READ_ONLY_DATA:
        case CAIRN_SECTION_MANIFEST:
            break;
        }
    }
    return memory;
}

/* Builds the table of records. Checks that its functions are in the module's code: if they were
 * not, the module would have sites and addresses that belong to other code. */
static enum cairn_status build_records(const cairn_loader *loader, const struct inputs *inputs,
                                       cairn_module *module, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < inputs->stackmap_count && status == CAIRN_OK; i++)
        status = resolve_descriptors(loader->block, &inputs->stackmaps[i], error);
    if (status == CAIRN_OK)
        status = table_create(inputs->stackmaps, inputs->stackmap_count,
                              &loader->runtime->allocator, true, &module->table, error);
    if (status != CAIRN_OK)
        return status;
    struct cairn_function function;
    for (uint32_t i = 0; table_function_at(module->table, i, &function); i++)
        if (!code_block_holds_code(loader->block, function.address, 1))
            return error_set(error, CAIRN_ERROR_CORRUPT, function.address,
                             "the stack map of '%s' names a function at 0x%llx, which is not in "
                             "the code that was loaded",
                             loader->name, (unsigned long long)function.address);
    return declarations_bind(loader->declarations, module->table, error);
}

/* Checks that an unwind table is only about the loaded code, because the system's unwinder would
 * use it for other code, too. */
static enum cairn_status check_registered(const struct code_block *block,
                                          const struct eh_frame *table, bool *has_functions,
                                          struct cairn_error *error)
{
    struct eh_frame_description description = {.commons = NULL};
    const struct eh_frame_function *function = &description.function;
    size_t offset = 0;
    bool found = true;
    *has_functions = false;
    for (;;) {
        enum cairn_status status = eh_frame_next(table, &offset, &description, &found, error);
        if (status != CAIRN_OK || !found)
            return status;
        if (function->size == 0)
            continue;
        *has_functions = true;
        if (!code_block_holds_code(block, function->address, function->size))
            return error_set(error, CAIRN_ERROR_CORRUPT, description.offset,
                             "section .eh_frame, offset %zu: %llu bytes of code at 0x%llx are not "
                             "in the code that was loaded",
                             description.offset, (unsigned long long)function->size,
                             (unsigned long long)function->address);
    }
}

/* Checks the unwind tables to be registered, which are in the order of their allocation. Does not
 * register those without functions, which some unwinders refuse. */
static enum cairn_status choose_registered(cairn_loader *loader, const struct inputs *inputs,
                                           struct cairn_error *error)
{
    uint64_t *chosen = loader->linked.attached.lists[ATTACHED_UNWIND_TABLE].items;
    size_t count = loader->linked.attached.lists[ATTACHED_UNWIND_TABLE].count;
    size_t kept = 0;
    size_t next = 0;
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < inputs->unwind_table_count && next < count && status == CAIRN_OK; i++) {
        const struct eh_frame *table = &inputs->unwind_tables[i];
        bool has_functions = false;
        if (table->address != chosen[next])
            continue;
        next++;
        status = check_registered(loader->block, table, &has_functions, error);
        if (has_functions)
            chosen[kept++] = table->address;
    }
    loader->linked.attached.lists[ATTACHED_UNWIND_TABLE].count = kept;
    return status;
}

/* Builds everything that needs the unwind tables, which are read only once. */
static enum cairn_status build_functions(cairn_loader *loader, const struct inputs *inputs,
                                         cairn_module *module, struct cairn_error *error)
{
    struct function_list list;
    enum cairn_status status = function_list_read(inputs->unwind_tables, inputs->unwind_table_count,
                                                  &loader->runtime->allocator, &list, error);
    if (status != CAIRN_OK)
        return status;
    status = choose_registered(loader, inputs, error);
    if (status == CAIRN_OK)
        status = functions_create(&list, &module->functions, error);
    if (status == CAIRN_OK)
        status = unwind_create(&list, arch_host(), &module->unwind, error);
    function_list_release(&list);
    return status;
}

static enum cairn_status build_faults(const cairn_loader *loader, const struct inputs *inputs,
                                      cairn_fault_table **faults, struct cairn_error *error)
{
    enum cairn_status status = fault_table_create(inputs->faultmaps, inputs->faultmap_count,
                                                  &loader->runtime->allocator, true, faults, error);
    if (status != CAIRN_OK)
        return status;
    struct cairn_fault_entry entry;
    for (uint32_t i = 0; cairn_fault_table_entry(*faults, i, &entry); i++)
        if (!code_block_holds_code(loader->block, entry.address, 1) ||
            !code_block_holds_code(loader->block, entry.handler_address, 1))
            return error_set(
                error, CAIRN_ERROR_CORRUPT, entry.address,
                "the fault map of '%s' names an instruction at 0x%llx and a handler at "
                "0x%llx, which are not both in the code that was loaded",
                loader->name, (unsigned long long)entry.address,
                (unsigned long long)entry.handler_address);
    return CAIRN_OK;
}

static bool is_code(uint64_t address, void *block)
{
    return code_block_holds_code(block, address, 1);
}

static enum cairn_status read_manifests(cairn_loader *loader, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < loader->section_count && status == CAIRN_OK; i++) {
        const struct cairn_section *section = &loader->sections[i].contents.section;
        if (loader->sections[i].kind == CAIRN_SECTION_MANIFEST)
            status = load_manifest_section(loader, section->bytes, section->size, error);
    }
    return status;
}

/* Decodes the sections, arms the sites, and protects the code. On failure, `module` and `extras`
 * hold what was built; the caller must release it. */
static enum cairn_status build_module(cairn_loader *loader, cairn_module *module,
                                      struct module_extras *extras, struct cairn_error *error)
{
    struct inputs inputs = {0};
    void *memory = loader->section_count == 0 ? NULL : sort_sections(loader, &inputs);
    if (memory == NULL && loader->section_count > 0)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu sections",
                         loader->section_count);
    enum cairn_status status = read_manifests(loader, error);
    if (status == CAIRN_OK)
        status = build_records(loader, &inputs, module, error);
    if (status == CAIRN_OK)
        status = build_functions(loader, &inputs, module, error);
    if (status == CAIRN_OK && inputs.faultmap_count > 0)
        status = build_faults(loader, &inputs, &extras->faults, error);
    const struct cairn_pc_table_options options = {
        .allocator = loader->runtime->allocator, .is_code = is_code, .user = loader->block};
    if (status == CAIRN_OK && inputs.pc_section_count > 0)
        status = cairn_pc_table_create(inputs.pc_sections, inputs.pc_section_count, &options,
                                       &extras->pcs, error);
    memory_free(&loader->runtime->allocator, memory, loader->section_count * INPUT_BYTES);
    if (status != CAIRN_OK)
        return status;
    status = site_table_create(&module->sites, module->table, module->functions, loader->block,
                               loader->declarations, &loader->runtime->allocator, error);
    if (status != CAIRN_OK)
        return status;
    if (module->sites != NULL)
        module->sites->ics = &loader->runtime->ics;
    return code_block_protect(loader->block, error);
}

/* Copies the extras to the module, if there are any. */
static enum cairn_status keep_extras(cairn_module *module, const struct module_extras *extras,
                                     struct cairn_error *error)
{
    if (extras->pcs == NULL && extras->faults == NULL && extras->attachments == NULL &&
        extras->scope.key == NULL && extras->kept == NULL && extras->names == NULL)
        return CAIRN_OK;
    module->extras = memory_new(&module->runtime->allocator, 1, sizeof *extras);
    if (module->extras == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a module");
    *module->extras = *extras;
    return CAIRN_OK;
}

/* Moves to the module what it keeps of the loader. */
static cairn_module *take_module(cairn_loader *loader)
{
    cairn_module *module = loader->module;
    module->declarations = loader->declarations;
    module->symbols = loader->linked.symbols;
    if (module->symbols != NULL)
        module->symbols->owner = module;
    table_set_owner(module->table, module);
    module_add(module);
    loader->block = NULL;
    loader->declarations = NULL;
    loader->linked.symbols = NULL;
    loader->linked.kept = NULL;
    loader->linked.names = NULL;
    loader->name = "";
    return module;
}

/* Tells the runtime what the code can hold, if there is code. */
static void note_level(const cairn_loader *loader)
{
    bool is_known = loader->has_fixed_level || !loader->has_unknown_level;
    runtime_note_level(loader->runtime,
                       is_known ? loader->code_level : loader->runtime->vector_level);
}

enum cairn_status cairn_loader_finish(cairn_loader *loader, cairn_module **module,
                                      struct cairn_error *error)
{
    if (loader == NULL || module == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_loader_finish: `%s` is NULL",
                         loader == NULL ? "loader" : "module");
    if (loader->incomplete)
        return error_set(error, CAIRN_ERROR_STATE, 0,
                         "'%s' is not complete: an allocation or an object has failed",
                         loader->name);
    /* What the loader reserved before a fork is in memory of the parent. */
    enum cairn_status status = code_space_check_own(loader->runtime->space, error);
    if (status == CAIRN_OK)
        status = loader_link_objects(loader, error);
    if (status != CAIRN_OK)
        return status;
    note_level(loader);
    cairn_module *built = loader->module;
    struct module_extras extras = {
        .scope = loader->linked.scope, .kept = loader->linked.kept, .names = loader->linked.names};
    status = build_module(loader, built, &extras, error);
    if (status == CAIRN_OK)
        status = attachments_create(&loader->linked.attached, loader->runtime, &extras.attachments,
                                    error);
    if (status == CAIRN_OK)
        status = keep_extras(built, &extras, error);
    if (status != CAIRN_OK) {
        module_release(built, &extras);
        attachments_destroy(extras.attachments, loader->runtime);
        loader->incomplete = true;
        return status;
    }
    built = take_module(loader);
    status = bound_sites_apply(loader->linked.bound, built, error);
    if (status != CAIRN_OK) {
        cairn_module_retire(built);
        loader->incomplete = true;
        return status;
    }
    cairn_loader_destroy(loader);
    *module = built;
    return CAIRN_OK;
}
