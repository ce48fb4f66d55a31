/*
 * Loaders: everything that belongs to one finalisation, from the first section to the module.
 *
 * Nothing in a loader is visible to lookups. Stack maps and fault maps are outside the slab: small
 * ones in memory from the runtime's allocator, each of the others in its own mapping. They are
 * freed as soon as the module's tables have been built. PC sections are in the slab, within reach
 * of a 4-byte offset to the code, and stay there.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "base/error.h"
#include "base/memory.h"
#include "record/table.h"
#include "runtime/captured.h"
#include "runtime/descriptors.h"
#include "runtime/module.h"
#include "runtime/runtime.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A section that is read when the loader finishes. */
struct section_memory {
    uint8_t *bytes;
    size_t size;        /* requested size */
    size_t mapped_size; /* whole pages; 0: not a separate mapping */
};

struct section_list {
    struct section_memory *entries;
    size_t count;
    size_t capacity;
};

/* Maps up to this size are allocated, because mapping and unmapping takes longer than reading
 * them. */
enum { SMALL_MAP = 64 << 10 };

struct cairn_loader {
    cairn_runtime *runtime;
    char *name;
    struct code_block *block;
    cairn_declarations *declarations;
    struct section_list stackmaps;
    struct section_list faultmaps;
    struct section_list unwind_tables; /* in the block's read-only data */
    struct captured captured;          /* in the block's read-only data */
    /* Whether an allocation has failed, so that the loaded code is not complete. */
    bool incomplete;
};

/* ---- Creating and abandoning ---- */

static char *copy_name(const struct cairn_allocator *allocator, const char *name)
{
    if (name == NULL)
        name = "";
    size_t size = strlen(name) + 1;
    char *copy = memory_new(allocator, size, 1);
    if (copy != NULL)
        memcpy(copy, name, size);
    return copy;
}

static void free_name(const struct cairn_allocator *allocator, char *name)
{
    if (name != NULL)
        memory_free(allocator, name, strlen(name) + 1);
}

static enum cairn_status create_parts(cairn_loader *loader, const char *name,
                                      struct cairn_error *error)
{
    const struct cairn_allocator *allocator = &loader->runtime->allocator;
    loader->name = copy_name(allocator, name);
    if (loader->name == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a loader's name");
    enum cairn_status status = cairn_declarations_create(allocator, &loader->declarations, error);
    if (status != CAIRN_OK)
        return status;
    return code_block_create(loader->runtime->space, &loader->block, error);
}

enum cairn_status cairn_loader_create(cairn_runtime *runtime, const char *name,
                                      cairn_loader **loader, struct cairn_error *error)
{
    if (runtime == NULL || loader == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_loader_create needs a runtime and a place for the loader");
    enum cairn_status status = runtime_enter(runtime, error);
    if (status != CAIRN_OK)
        return status;
    cairn_loader *created = memory_new(&runtime->allocator, 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a loader");
    created->runtime = runtime;
    cairn_runtime_retain(runtime);
    status = create_parts(created, name, error);
    if (status != CAIRN_OK) {
        cairn_loader_abandon(created);
        return status;
    }
    *loader = created;
    return CAIRN_OK;
}

static void free_list(const struct cairn_allocator *allocator, struct section_list *list)
{
    memory_free(allocator, list->entries, list->capacity * sizeof *list->entries);
    *list = (struct section_list){0};
}

static void free_map(const struct cairn_allocator *allocator, const struct section_memory *map)
{
    if (map->mapped_size > 0)
        munmap(map->bytes, map->mapped_size);
    else
        memory_free(allocator, map->bytes, map->size);
}

static void give_maps_back(const struct cairn_allocator *allocator, struct section_list *maps)
{
    for (size_t i = 0; i < maps->count; i++)
        free_map(allocator, &maps->entries[i]);
    free_list(allocator, maps);
}

void cairn_loader_abandon(cairn_loader *loader)
{
    if (loader == NULL)
        return;
    cairn_runtime *runtime = loader->runtime;
    give_maps_back(&runtime->allocator, &loader->stackmaps);
    give_maps_back(&runtime->allocator, &loader->faultmaps);
    free_list(&runtime->allocator, &loader->unwind_tables);
    captured_release(&loader->captured, &runtime->allocator);
    cairn_declarations_destroy(loader->declarations);
    code_block_destroy(loader->block);
    free_name(&runtime->allocator, loader->name);
    memory_free(&runtime->allocator, loader, sizeof *loader);
    cairn_runtime_destroy(runtime);
}

/* ---- Memory ---- */

typedef enum cairn_status allocate_function(struct code_block *block, size_t size, size_t alignment,
                                            void **address, struct cairn_error *error);

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static enum cairn_status check_request(size_t size, size_t alignment, struct cairn_error *error)
{
    if (size == 0)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "a section of no bytes was asked for");
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > page_size())
        return error_set(error, CAIRN_ERROR_ARGUMENT, alignment,
                         "alignment %zu is not a power of two up to a page", alignment);
    return CAIRN_OK;
}

static void *allocate(cairn_loader *loader, allocate_function *from_block, size_t size,
                      size_t alignment, struct cairn_error *error)
{
    void *address = NULL;
    enum cairn_status status = check_request(size, alignment, error);
    if (status == CAIRN_OK)
        status = from_block(loader->block, size, alignment, &address, error);
    if (status == CAIRN_OK)
        return address;
    loader->incomplete = true;
    return NULL;
}

void *cairn_loader_allocate_code(cairn_loader *loader, size_t size, size_t alignment,
                                 struct cairn_error *error)
{
    return allocate(loader, code_block_allocate_code, size, alignment, error);
}

void *cairn_loader_allocate_read_only_data(cairn_loader *loader, size_t size, size_t alignment,
                                           struct cairn_error *error)
{
    return allocate(loader, code_block_allocate_read_only, size, alignment, error);
}

void *cairn_loader_allocate_data(cairn_loader *loader, size_t size, size_t alignment,
                                 struct cairn_error *error)
{
    return allocate(loader, code_block_allocate_data, size, alignment, error);
}

static bool reserve_entry(const struct cairn_allocator *allocator, struct section_list *list)
{
    if (list->count < list->capacity)
        return true;
    size_t capacity = list->capacity == 0 ? 4 : 2 * list->capacity;
    struct section_memory *grown =
        memory_resize(allocator, list->entries, list->capacity * sizeof *list->entries,
                      capacity * sizeof *list->entries);
    if (grown == NULL)
        return false;
    list->entries = grown;
    list->capacity = capacity;
    return true;
}

void *cairn_loader_allocate_unwind_table(cairn_loader *loader, size_t size, size_t alignment,
                                         struct cairn_error *error)
{
    if (!reserve_entry(&loader->runtime->allocator, &loader->unwind_tables)) {
        loader->incomplete = true;
        error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to note an unwind table");
        return NULL;
    }
    void *memory = cairn_loader_allocate_read_only_data(loader, size, alignment, error);
    if (memory != NULL)
        loader->unwind_tables.entries[loader->unwind_tables.count++] =
            (struct section_memory){.bytes = memory, .size = size};
    return memory;
}

void *cairn_loader_allocate_pcsection(cairn_loader *loader, const char *name,
                                      const struct cairn_pcsection_schema *schema, size_t size,
                                      size_t alignment, struct cairn_error *error)
{
    const struct cairn_allocator *allocator = &loader->runtime->allocator;
    if (captured_add(&loader->captured, allocator, name, schema, error) != CAIRN_OK) {
        loader->incomplete = true;
        return NULL;
    }
    void *memory = cairn_loader_allocate_read_only_data(loader, size, alignment, error);
    if (memory != NULL)
        captured_place(&loader->captured, memory, size);
    return memory;
}

static enum cairn_status map_pages(size_t size, struct section_memory *map,
                                   struct cairn_error *error)
{
    if (__builtin_add_overflow(size, page_size() - 1, &map->mapped_size))
        return error_set(error, CAIRN_ERROR_ARGUMENT, size, "a map of %zu bytes", size);
    map->mapped_size &= ~(page_size() - 1);
    map->bytes =
        mmap(NULL, map->mapped_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map->bytes == MAP_FAILED)
        return error_set_system(error, errno, "no memory for a map section of %zu bytes", size);
    return CAIRN_OK;
}

static enum cairn_status allocate_small_map(const struct cairn_allocator *allocator, size_t size,
                                            struct section_memory *map, struct cairn_error *error)
{
    map->bytes = memory_new(allocator, size, 1);
    if (map->bytes == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a map section of %zu bytes",
                         size);
    return CAIRN_OK;
}

static enum cairn_status allocate_map(const struct cairn_allocator *allocator,
                                      struct section_list *maps, size_t size, size_t alignment,
                                      void **address, struct cairn_error *error)
{
    struct section_memory map = {.size = size};
    if (!reserve_entry(allocator, maps))
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to note a map section");
    bool is_small = size <= SMALL_MAP && alignment <= _Alignof(max_align_t);
    enum cairn_status status =
        is_small ? allocate_small_map(allocator, size, &map, error) : map_pages(size, &map, error);
    if (status != CAIRN_OK)
        return status;
    maps->entries[maps->count++] = map;
    *address = map.bytes;
    return CAIRN_OK;
}

static void *add_map(cairn_loader *loader, struct section_list *maps, size_t size, size_t alignment,
                     struct cairn_error *error)
{
    void *address = NULL;
    enum cairn_status status = check_request(size, alignment, error);
    if (status == CAIRN_OK)
        status = allocate_map(&loader->runtime->allocator, maps, size, alignment, &address, error);
    if (status == CAIRN_OK)
        return address;
    loader->incomplete = true;
    return NULL;
}

void *cairn_loader_allocate_stackmap(cairn_loader *loader, size_t size, size_t alignment,
                                     struct cairn_error *error)
{
    return add_map(loader, &loader->stackmaps, size, alignment, error);
}

void *cairn_loader_allocate_faultmap(cairn_loader *loader, size_t size, size_t alignment,
                                     struct cairn_error *error)
{
    return add_map(loader, &loader->faultmaps, size, alignment, error);
}

enum cairn_status cairn_loader_declare(cairn_loader *loader, const cairn_declarations *declarations,
                                       struct cairn_error *error)
{
    size_t count = cairn_declarations_count(declarations);
    for (size_t i = 0; i < count; i++) {
        enum cairn_status status = cairn_declarations_add(
            loader->declarations, cairn_declarations_at(declarations, i), error);
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}

/* ---- Finishing ---- */

static bool is_blank(const uint8_t *bytes, size_t size)
{
    size_t zeros = 0;
    while (zeros < size && bytes[zeros] == 0)
        zeros++;
    return zeros == size;
}

typedef bool skip_map(const struct cairn_section *section, size_t *offset);

static bool skip_stackmap(const struct cairn_section *section, size_t *offset)
{
    struct cairn_stackmap map;
    return cairn_stackmap_read(section, offset, &map, NULL) == CAIRN_OK;
}

static bool skip_faultmap(const struct cairn_section *section, size_t *offset)
{
    struct cairn_faultmap map;
    return cairn_faultmap_read(section, offset, &map, NULL) == CAIRN_OK;
}

/* Returns the offset of the end of the last map, which zeros may follow. */
static size_t find_end(const struct cairn_section *section, skip_map *skip)
{
    size_t offset = 0;
    while (offset < section->size && !is_blank(section->bytes + offset, section->size - offset))
        if (!skip(section, &offset))
            return section->size; /* the table reports the error */
    return offset == 0 || offset > section->size ? section->size : offset;
}

static struct cairn_section section_of(const struct section_memory *memory, skip_map *skip)
{
    struct cairn_section section = {
        .bytes = memory->bytes, .size = memory->size, .byte_order = cairn_byte_order_host()};
    section.size = find_end(&section, skip);
    return section;
}

static enum cairn_status build_table(cairn_loader *loader, cairn_table **table,
                                     struct cairn_error *error)
{
    const struct cairn_allocator *allocator = &loader->runtime->allocator;
    size_t count = loader->stackmaps.count;
    struct cairn_section *sections = NULL;
    if (count > 0) {
        sections = memory_new(allocator, count, sizeof *sections);
        if (sections == NULL)
            return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu stack maps", count);
    }
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; status == CAIRN_OK && i < count; i++) {
        const struct section_memory *memory = &loader->stackmaps.entries[i];
        sections[i] = section_of(memory, skip_stackmap);
        status = descriptors_resolve(loader->block, memory->bytes, &sections[i], error);
    }
    if (status == CAIRN_OK)
        status = cairn_table_create(sections, count, allocator, table, error);
    memory_free(allocator, sections, count * sizeof *sections);
    return status;
}

/* Builds everything that needs the unwind tables, which are read only once. */
static enum cairn_status use_functions(const struct function_list *list, cairn_module *module,
                                       struct cairn_error *error)
{
    enum cairn_status status = functions_create(list, &module->functions, error);
    if (status != CAIRN_OK)
        return status;
    return unwind_create(list, arch_host(), &module->unwind, error);
}

static enum cairn_status read_unwind_tables(const cairn_loader *loader, cairn_module *module,
                                            struct cairn_error *error)
{
    const struct cairn_allocator *allocator = &loader->runtime->allocator;
    size_t count = loader->unwind_tables.count;
    struct eh_frame *frames = NULL;
    if (count > 0) {
        frames = memory_new(allocator, count, sizeof *frames);
        if (frames == NULL)
            return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu unwind tables",
                             count);
    }
    for (size_t i = 0; i < count; i++) {
        const struct section_memory *memory = &loader->unwind_tables.entries[i];
        frames[i].section = (struct cairn_section){
            .bytes = memory->bytes, .size = memory->size, .byte_order = cairn_byte_order_host()};
        frames[i].address = (uint64_t)(uintptr_t)memory->bytes;
    }
    struct function_list list;
    enum cairn_status status = function_list_read(frames, count, allocator, &list, error);
    if (status == CAIRN_OK) {
        status = use_functions(&list, module, error);
        function_list_release(&list);
    }
    memory_free(allocator, frames, count * sizeof *frames);
    return status;
}

/* Checks that the table's functions are in the module's code. If they were not, the module would
 * have sites and addresses that belong to other code. */
static enum cairn_status check_addresses(const cairn_loader *loader, const cairn_table *table,
                                         struct cairn_error *error)
{
    for (uint32_t i = 0; i < cairn_table_function_count(table); i++) {
        uint64_t address = cairn_table_function(table, i).address;
        if (!code_block_holds_code(loader->block, address, 1))
            return error_set(error, CAIRN_ERROR_CORRUPT, address,
                             "the stack map of '%s' names a function at 0x%llx, which is not in "
                             "the code that was loaded",
                             loader->name, (unsigned long long)address);
    }
    return CAIRN_OK;
}

static enum cairn_status check_faults(const cairn_loader *loader, const cairn_fault_table *table,
                                      struct cairn_error *error)
{
    for (uint32_t i = 0; i < cairn_fault_table_count(table); i++) {
        struct cairn_fault_entry entry = cairn_fault_table_entry(table, i);
        if (!code_block_holds_code(loader->block, entry.address, 1) ||
            !code_block_holds_code(loader->block, entry.handler_address, 1))
            return error_set(
                error, CAIRN_ERROR_CORRUPT, entry.address,
                "the fault map of '%s' names an instruction at 0x%llx and a handler at "
                "0x%llx, which are not both in the code that was loaded",
                loader->name, (unsigned long long)entry.address,
                (unsigned long long)entry.handler_address);
    }
    return CAIRN_OK;
}

static enum cairn_status build_fault_table(const cairn_loader *loader, cairn_fault_table **table,
                                           struct cairn_error *error)
{
    const struct cairn_allocator *allocator = &loader->runtime->allocator;
    size_t count = loader->faultmaps.count;
    if (count == 0)
        return CAIRN_OK;
    struct cairn_section *sections = memory_new(allocator, count, sizeof *sections);
    if (sections == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu fault maps", count);
    for (size_t i = 0; i < count; i++)
        sections[i] = section_of(&loader->faultmaps.entries[i], skip_faultmap);
    enum cairn_status status = cairn_fault_table_create(sections, count, allocator, table, error);
    memory_free(allocator, sections, count * sizeof *sections);
    return status == CAIRN_OK ? check_faults(loader, *table, error) : status;
}

/* Builds the tables that are searched by PC, except for the table of records. */
static enum cairn_status build_pc_tables(const cairn_loader *loader, cairn_module *module,
                                         struct cairn_error *error)
{
    enum cairn_status status = build_fault_table(loader, &module->faults, error);
    if (status != CAIRN_OK)
        return status;
    return captured_build(&loader->captured, &loader->runtime->allocator, loader->block,
                          &module->pcs, error);
}

/* Decodes and arms the sites and protects the code. On failure, `module` holds what was built; the
 * caller must destroy it. */
static enum cairn_status build_module(cairn_loader *loader, cairn_module *module,
                                      struct cairn_error *error)
{
    enum cairn_status status = build_table(loader, &module->table, error);
    if (status != CAIRN_OK)
        return status;
    status = check_addresses(loader, module->table, error);
    if (status != CAIRN_OK)
        return status;
    status = read_unwind_tables(loader, module, error);
    if (status != CAIRN_OK)
        return status;
    status = build_pc_tables(loader, module, error);
    if (status != CAIRN_OK)
        return status;
    status = site_table_create(&module->sites, module->table, module->functions, loader->block,
                               loader->declarations, &loader->runtime->allocator, error);
    if (status != CAIRN_OK)
        return status;
    module->sites->ics = &loader->runtime->ics;
    return code_block_protect(loader->block, error);
}

/* Moves to the module what it keeps of the loader, and frees the loader. */
static void hand_over(cairn_loader *loader, cairn_module *module)
{
    cairn_runtime *runtime = loader->runtime;
    module->runtime = runtime;
    module->name = loader->name;
    module->block = loader->block;
    module->declarations = loader->declarations;
    table_set_owner(module->table, module);
    module_add(module);
    loader->name = NULL;
    loader->block = NULL;
    loader->declarations = NULL;
    cairn_loader_abandon(loader);
}

enum cairn_status cairn_loader_finish(cairn_loader *loader, cairn_module **module,
                                      struct cairn_error *error)
{
    if (loader == NULL || module == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_loader_finish needs a loader and a place for the module");
    if (loader->incomplete)
        return error_set(error, CAIRN_ERROR_STATE, 0,
                         "'%s' is not complete: an allocation for it has failed", loader->name);
    cairn_module *built = memory_new(&loader->runtime->allocator, 1, sizeof *built);
    if (built == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a module");
    enum cairn_status status = build_module(loader, built, error);
    if (status != CAIRN_OK) {
        site_table_destroy(built->sites);
        cairn_pc_table_destroy(built->pcs);
        cairn_fault_table_destroy(built->faults);
        unwind_destroy(built->unwind);
        functions_destroy(built->functions);
        cairn_table_destroy(built->table);
        memory_free(&loader->runtime->allocator, built, sizeof *built);
        loader->incomplete = true;
        return status;
    }
    hand_over(loader, built);
    *module = built;
    return CAIRN_OK;
}
