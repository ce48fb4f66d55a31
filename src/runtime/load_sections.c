/*
 * Adds to a loader: memory for sections, declarations, and what the code can hold in vector
 * registers.
 *
 * Stack maps, fault maps and manifests are outside the slab: small ones in memory from the
 * runtime's allocator, each of the others in its own mapping. They are freed as soon as the
 * module's tables have been built. PC sections are in the slab, within reach of a 4-byte offset to
 * the code, and stay there.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runtime/loader.h"

#include "base/adapter.h"
#include "base/array.h"
#include "base/error.h"
#include "base/memory.h"
#include "format/pcsection.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Maps up to this size are allocated, because mapping and unmapping takes longer than reading
 * them. */
enum { SMALL_MAP = 64 << 10 };

/* ---- Sections ---- */

static bool is_map(enum cairn_section_kind kind)
{
    return kind == CAIRN_SECTION_STACKMAP || kind == CAIRN_SECTION_FAULTMAP ||
           kind == CAIRN_SECTION_MANIFEST;
}

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static enum cairn_status check_request(enum cairn_section_kind kind, size_t size, size_t alignment,
                                       const struct cairn_pc_table_section *pc_section,
                                       struct cairn_error *error)
{
    if (size == 0)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "a section of 0 bytes was requested");
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > page_size())
        return error_set(error, CAIRN_ERROR_ARGUMENT, alignment,
                         "alignment %zu is not a power of two up to the size of a page", alignment);
    if ((unsigned)kind > CAIRN_SECTION_MANIFEST)
        return error_set(error, CAIRN_ERROR_ARGUMENT, kind, "%d is not a kind of section",
                         (int)kind);
    if (kind != CAIRN_SECTION_PC_SECTION)
        return CAIRN_OK;
    if (pc_section == NULL || pc_section->name == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "a PC section must have a name");
    if (pc_section->schema.address_bytes != 0 && !pcsection_is_schema(&pc_section->schema))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "PC section '%.60s': a schema has addresses of 4 or 8 bytes, and up to %d "
                         "constants of 1 to 8 bytes",
                         pc_section->name, CAIRN_PCSECTION_CONSTANTS_MAX);
    return CAIRN_OK;
}

/* Allocates a map outside the slab, because it is freed when the loader finishes. */
static enum cairn_status allocate_map(const struct cairn_allocator *allocator, size_t size,
                                      size_t alignment, struct loader_section *section,
                                      void **bytes, struct cairn_error *error)
{
    if (size <= SMALL_MAP && alignment <= _Alignof(max_align_t)) {
        *bytes = memory_new(allocator, size, 1);
        return *bytes != NULL ? CAIRN_OK
                              : error_set(error, CAIRN_ERROR_MEMORY, 0,
                                          "no memory for a map section of %zu bytes", size);
    }
    if (size > SIZE_MAX - page_size())
        return error_set(error, CAIRN_ERROR_ARGUMENT, size, "a map section of %zu bytes", size);
    size_t mapped_size = (size + page_size() - 1) & ~(page_size() - 1);
    *bytes = mmap(NULL, mapped_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (*bytes == MAP_FAILED)
        return error_set_system(error, errno, "no memory for a map section of %zu bytes", size);
    madvise(*bytes, mapped_size, MADV_HUGEPAGE); /* fewer faults; a failure does not matter */
    section->mapped_size = mapped_size;
    return CAIRN_OK;
}

/* Allocates memory for a section: in the slab, at the address of its use if `is_in_place`, or else
 * with a known size; or outside. */
static enum cairn_status allocate(cairn_loader *loader, struct loader_section *section, size_t size,
                                  size_t alignment, bool is_in_place, struct code_place *place,
                                  struct cairn_error *error)
{
    enum page_use use = section->kind == CAIRN_SECTION_CODE   ? PAGES_FOR_CODE
                        : section->kind == CAIRN_SECTION_DATA ? PAGES_FOR_DATA
                                                              : PAGES_FOR_READ_ONLY;
    void *bytes = NULL;
    if (!is_map(section->kind) && !is_in_place)
        return code_block_reserve(loader->block, use, size, alignment, place, error);
    enum cairn_status status =
        is_map(section->kind)
            ? allocate_map(&loader->runtime->allocator, size, alignment, section, &bytes, error)
            : code_block_allocate(loader->block, use, size, alignment, &bytes, error);
    *place = (struct code_place){bytes, (uintptr_t)bytes};
    return status;
}

static enum cairn_status add_section(cairn_loader *loader, struct loader_section *section,
                                     size_t size, size_t alignment, bool is_in_place,
                                     struct code_place *place, struct cairn_error *error)
{
    const struct cairn_allocator *allocator = &loader->runtime->allocator;
    const char *name = section->contents.name;
    struct loader_section *sections =
        array_reserve(allocator, loader->sections, loader->section_count, 1,
                      &loader->section_capacity, sizeof *sections);
    if (sections != NULL)
        loader->sections = sections;
    if (sections == NULL || (name != NULL && (section->contents.name = memory_copy_string(
                                                  allocator, name, strlen(name))) == NULL))
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to note a section");
    enum cairn_status status =
        allocate(loader, section, size, alignment, is_in_place, place, error);
    if (status != CAIRN_OK) {
        memory_free_string(allocator, section->contents.name);
        return status;
    }
    section->contents.address = place->address;
    section->contents.section =
        (struct cairn_section){.bytes = (const uint8_t *)(uintptr_t)place->address,
                               .size = size,
                               .byte_order = CAIRN_BYTE_ORDER_NATIVE};
    loader->sections[loader->section_count++] = *section;
    return CAIRN_OK;
}

static enum cairn_status add(cairn_loader *loader, enum cairn_section_kind kind, size_t size,
                             size_t alignment, const struct cairn_pc_table_section *pc_section,
                             bool is_in_place, struct code_place *place, struct cairn_error *error)
{
    struct loader_section section = {.kind = kind};
    enum cairn_status status = check_request(kind, size, alignment, pc_section, error);
    if (status == CAIRN_OK && kind == CAIRN_SECTION_PC_SECTION)
        section.contents =
            (struct cairn_pc_table_section){.name = pc_section->name, .schema = pc_section->schema};
    if (status == CAIRN_OK)
        status = add_section(loader, &section, size, alignment, is_in_place, place, error);
    if (status != CAIRN_OK)
        loader->incomplete = true;
    return status;
}

void *cairn_loader_allocate(cairn_loader *loader, enum cairn_section_kind kind, size_t size,
                            size_t alignment, const struct cairn_pc_table_section *pc_section,
                            struct cairn_error *error)
{
    struct code_place place;
    enum cairn_status status = add(loader, kind, size, alignment, pc_section, true, &place, error);
    if (kind == CAIRN_SECTION_CODE && loader != NULL)
        loader_note_unknown_level(loader);
    return status == CAIRN_OK ? place.bytes : NULL;
}

enum cairn_status loader_reserve(cairn_loader *loader, enum cairn_section_kind kind, size_t size,
                                 size_t alignment, const struct cairn_pc_table_section *pc_section,
                                 struct code_place *place, struct cairn_error *error)
{
    return add(loader, kind, size, alignment, pc_section, false, place, error);
}

void loader_free_sections(cairn_loader *loader)
{
    const struct cairn_allocator *allocator = &loader->runtime->allocator;
    for (size_t i = 0; i < loader->section_count; i++) {
        const struct loader_section *section = &loader->sections[i];
        void *bytes = (void *)(uintptr_t)section->contents.section.bytes;
        memory_free_string(allocator, section->contents.name);
        if (section->mapped_size > 0)
            munmap(bytes, section->mapped_size);
        else if (is_map(section->kind))
            memory_free(allocator, bytes, section->contents.section.size);
    }
    memory_free(allocator, loader->sections, loader->section_capacity * sizeof *loader->sections);
}

/* ---- Declarations ---- */

enum cairn_status loader_add_declaration(cairn_loader *loader,
                                         const struct cairn_declaration *declaration,
                                         struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    if (loader->declarations == NULL)
        status =
            cairn_declarations_create(&loader->runtime->allocator, &loader->declarations, error);
    return status == CAIRN_OK ? cairn_declarations_add(loader->declarations, declaration, error)
                              : status;
}

enum cairn_status cairn_loader_declare(cairn_loader *loader, const cairn_declarations *declarations,
                                       struct cairn_error *error)
{
    size_t count = cairn_declarations_count(declarations);
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < count && status == CAIRN_OK; i++)
        status = loader_add_declaration(loader, cairn_declarations_at(declarations, i), error);
    return status;
}

/* ---- Vector registers ---- */

void loader_note_level(cairn_loader *loader, uint32_t level)
{
    if (level > loader->code_level && !loader->has_fixed_level)
        loader->code_level = level;
}

void loader_note_unknown_level(cairn_loader *loader) { loader->has_unknown_level = true; }

void loader_set_level(cairn_loader *loader, uint32_t level)
{
    loader->code_level = level;
    loader->has_fixed_level = true;
}
