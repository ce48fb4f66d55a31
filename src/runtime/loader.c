/*
 * Loaders: what belongs to one finalisation, from the first section to a module.
 *
 * Nothing of a loader is visible to lookups. The stack maps lie outside of the slab, each in a
 * mapping of its own, which is unmapped as soon as the module's table has been built.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "base/memory.h"
#include "index/table.h"
#include "runtime/module.h"
#include "runtime/runtime.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct stackmap_memory {
    uint8_t *bytes;
    size_t size;        /* that was asked for */
    size_t mapped_size; /* whole pages */
};

struct cairn_loader {
    cairn_runtime *runtime;
    char *name;
    struct code_block *block;
    cairn_declarations *declarations;
    struct stackmap_memory *stackmaps;
    size_t stackmap_count;
    size_t stackmap_capacity;
    /* An allocation has failed: what was loaded is not complete. */
    bool incomplete;
};

/* ---- Life ---- */

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

static void give_stackmaps_back(cairn_loader *loader)
{
    for (size_t i = 0; i < loader->stackmap_count; i++)
        munmap(loader->stackmaps[i].bytes, loader->stackmaps[i].mapped_size);
    memory_free(&loader->runtime->allocator, loader->stackmaps,
                loader->stackmap_capacity * sizeof *loader->stackmaps);
    loader->stackmaps = NULL;
    loader->stackmap_count = 0;
    loader->stackmap_capacity = 0;
}

void cairn_loader_abandon(cairn_loader *loader)
{
    if (loader == NULL)
        return;
    cairn_runtime *runtime = loader->runtime;
    give_stackmaps_back(loader);
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

static bool reserve_stackmap(cairn_loader *loader)
{
    if (loader->stackmap_count < loader->stackmap_capacity)
        return true;
    size_t old_size = loader->stackmap_capacity * sizeof *loader->stackmaps;
    size_t capacity = loader->stackmap_capacity == 0 ? 4 : 2 * loader->stackmap_capacity;
    struct stackmap_memory *grown = memory_resize(&loader->runtime->allocator, loader->stackmaps,
                                                  old_size, capacity * sizeof *grown);
    if (grown == NULL)
        return false;
    loader->stackmaps = grown;
    loader->stackmap_capacity = capacity;
    return true;
}

static enum cairn_status map_stackmap(cairn_loader *loader, size_t size, void **address,
                                      struct cairn_error *error)
{
    size_t mapped_size;
    if (__builtin_add_overflow(size, page_size() - 1, &mapped_size))
        return error_set(error, CAIRN_ERROR_ARGUMENT, size, "a stack map of %zu bytes", size);
    mapped_size &= ~(page_size() - 1);
    if (!reserve_stackmap(loader))
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to note a stack map section");
    void *bytes =
        mmap(NULL, mapped_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED)
        return error_set_system(error, errno, "no memory for a stack map section of %zu bytes",
                                size);
    loader->stackmaps[loader->stackmap_count++] =
        (struct stackmap_memory){.bytes = bytes, .size = size, .mapped_size = mapped_size};
    *address = bytes;
    return CAIRN_OK;
}

void *cairn_loader_allocate_stackmap(cairn_loader *loader, size_t size, size_t alignment,
                                     struct cairn_error *error)
{
    void *address = NULL;
    enum cairn_status status = check_request(size, alignment, error);
    if (status == CAIRN_OK)
        status = map_stackmap(loader, size, &address, error);
    if (status == CAIRN_OK)
        return address;
    loader->incomplete = true;
    return NULL;
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

/* Bytes up to the end of the last map, behind which there may be zeros. */
static size_t find_end(const struct cairn_section *section)
{
    size_t offset = 0;
    struct cairn_stackmap map;
    while (offset < section->size && !is_blank(section->bytes + offset, section->size - offset))
        if (cairn_stackmap_read(section, &offset, &map, NULL) != CAIRN_OK)
            return section->size; /* what is wrong with it is for the table to say */
    return offset == 0 || offset > section->size ? section->size : offset;
}

static enum cairn_status build_table(cairn_loader *loader, cairn_table **table,
                                     struct cairn_error *error)
{
    const struct cairn_allocator *allocator = &loader->runtime->allocator;
    size_t count = loader->stackmap_count;
    struct cairn_section *sections = NULL;
    if (count > 0) {
        sections = memory_new(allocator, count, sizeof *sections);
        if (sections == NULL)
            return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu stack maps", count);
    }
    for (size_t i = 0; i < count; i++) {
        sections[i].bytes = loader->stackmaps[i].bytes;
        sections[i].size = loader->stackmaps[i].size;
        sections[i].byte_order = cairn_byte_order_host();
        sections[i].size = find_end(&sections[i]);
    }
    enum cairn_status status = cairn_table_create(sections, count, allocator, table, error);
    memory_free(allocator, sections, count * sizeof *sections);
    return status;
}

/* A record outside of the module's code would give it sites and addresses that are not its own. */
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

/* Decodes, arms and protects. What was made is in `module`, for module_destroy, also on failure. */
static enum cairn_status build_module(cairn_loader *loader, cairn_module *module,
                                      struct cairn_error *error)
{
    enum cairn_status status = build_table(loader, &module->table, error);
    if (status != CAIRN_OK)
        return status;
    status = check_addresses(loader, module->table, error);
    if (status != CAIRN_OK)
        return status;
    status = site_table_create(&module->sites, module->table, loader->block, loader->declarations,
                               &loader->runtime->allocator, error);
    if (status != CAIRN_OK)
        return status;
    return code_block_protect(loader->block, error);
}

/* Moves what the module keeps out of the loader, and frees the rest. */
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
        cairn_table_destroy(built->table);
        memory_free(&loader->runtime->allocator, built, sizeof *built);
        loader->incomplete = true;
        return status;
    }
    hand_over(loader, built);
    *module = built;
    return CAIRN_OK;
}
