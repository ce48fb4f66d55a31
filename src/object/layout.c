/* Places what is loaded. SPDX-License-Identifier: MIT */
#include "object/layout.h"

#include "base/error.h"
#include "object/sections.h"
#include "object/slots.h"

#include <assert.h>
#include <string.h>

/* No area is larger, so that sums of two sizes do not overflow. */
#define AREA_BYTES_MAX (UINT64_C(1) << 40)

/* Adds `size` bytes to an area. Returns false if the area would be too large. */
static bool add(struct object_area *area, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    if (size > AREA_BYTES_MAX || alignment > AREA_BYTES_MAX)
        return false;
    uint64_t begin = (area->size + alignment - 1) & ~(alignment - 1);
    if (begin + size > AREA_BYTES_MAX)
        return false;
    if (alignment > area->alignment)
        area->alignment = alignment;
    area->size = begin + size;
    *offset = begin;
    return true;
}

/* ---- Offsets ---- */

static bool is_in_area(const struct object_section *section)
{
    return section->kind != OBJECT_NOT_LOADED && section->kind < OBJECT_AREAS;
}

static bool is_table(const struct object_section *section)
{
    return strcmp(section->header.name, ".got") == 0 || strcmp(section->header.name, ".toc") == 0;
}

static enum cairn_status add_section(struct object_link *link, struct object_section *section,
                                     struct cairn_error *error)
{
    const struct elf_section_view *header = &section->header;
    if (add(&link->areas[section->kind], header->size, header->alignment, &section->offset))
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_RANGE, header->file_offset,
                     "section %u (%.60s): %llu bytes, aligned to %llu, are too many",
                     header->number, header->name, (unsigned long long)header->size,
                     (unsigned long long)header->alignment);
}

/* Adds the loaded sections that are in no range: the tables of addresses, or all others. */
static enum cairn_status add_sections(struct object_link *link, bool tables,
                                      struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < link->image_count; i++) {
        const struct object_image *image = link->images[i];
        for (uint32_t k = 1; k < image->elf.section_count && status == CAIRN_OK; k++) {
            struct object_section *section = &image->sections[k];
            if (is_in_area(section) && !section->is_in_range && is_table(section) == tables)
                status = add_section(link, section, error);
        }
    }
    return status;
}

static enum cairn_status add_ranges(struct object_link *link, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < link->range_count; i++)
        for (struct object_section *section = link->ranges[i].first;
             section != NULL && is_in_area(section) && status == CAIRN_OK; section = section->next)
            status = add_section(link, section, error);
    return status;
}

static enum cairn_status add_common_symbols(struct object_link *link, struct cairn_error *error)
{
    for (size_t i = 1; i < link->symbol_count; i++) {
        struct object_symbol *symbol = &link->symbols[i];
        uint64_t alignment = symbol->value == 0 ? 1 : symbol->value;
        if (symbol->definition == OBJECT_COMMON &&
            !add(&link->areas[CAIRN_SECTION_DATA], symbol->size, alignment, &symbol->address))
            return error_set(
                error, CAIRN_ERROR_RANGE, 0,
                "'%.80s': a common symbol of %llu bytes, aligned to %llu, is too large",
                symbol->name == NULL ? "" : symbol->name, (unsigned long long)symbol->size,
                (unsigned long long)alignment);
    }
    return CAIRN_OK;
}

/* Slots and stubs are fewer than the relocations, so their areas do not become too large. */
static enum cairn_status set_offsets(struct object_link *link, struct cairn_error *error)
{
    struct object_area *constants = &link->areas[CAIRN_SECTION_READ_ONLY_DATA];
    struct object_area *code = &link->areas[CAIRN_SECTION_CODE];
    bool fits =
        link->slot_count == 0 || add(constants, (uint64_t)link->slot_count * OBJECT_SLOT_BYTES,
                                     OBJECT_SLOT_BYTES, &link->slots_offset);
    enum cairn_status status = add_sections(link, true, error);
    if (status == CAIRN_OK)
        status = add_sections(link, false, error);
    if (status == CAIRN_OK)
        status = add_ranges(link, error);
    if (status == CAIRN_OK)
        status = add_common_symbols(link, error);
    if (status != CAIRN_OK)
        return status;
    if (link->stub_count > 0)
        fits = fits && add(code, link->stub_count * (uint64_t)link->arch->veneer_bytes,
                           link->arch->veneer_alignment, &link->stubs_offset);
    return fits ? CAIRN_OK
                : error_set(error, CAIRN_ERROR_RANGE, 0, "%u slots and %u stubs are too many",
                            link->slot_count, link->stub_count);
}

/* ---- Memory ---- */

/* No area has memory if all sections are empty. */
static struct object_memory memory_at(const struct object_area *area, uint64_t offset)
{
    if (area->memory.bytes == NULL)
        return (struct object_memory){NULL, 0};
    return (struct object_memory){area->memory.bytes + offset, area->memory.address + offset};
}

/* Puts the name of the largest section of a kind before the message of a failure. */
static enum cairn_status name_largest(const struct object_link *link, int kind,
                                      enum cairn_status status, struct cairn_error *error)
{
    const struct elf_section_view *largest = NULL;
    if (error == NULL)
        return status;
    for (size_t i = 0; i < link->image_count; i++)
        for (uint32_t k = 1; k < link->images[i]->elf.section_count; k++) {
            const struct object_section *section = &link->images[i]->sections[k];
            if (section->kind == kind && (largest == NULL || section->header.size > largest->size))
                largest = &section->header;
        }
    if (largest == NULL)
        return status;
    struct cairn_error failure = *error;
    error_set(error, status, failure.offset, "section %u (%.40s), the largest of its kind: %s",
              largest->number, largest->name, failure.message);
    error->system_error = failure.system_error;
    return status;
}

/* Gives the areas without memory, in which only empty sections are, the address of one with memory,
 * so that symbols in them are in reach of the others: LLVM writes no code for a function that
 * cannot be called. */
static void place_empty_areas(struct object_link *link)
{
    struct object_memory memory = {NULL, 0};
    for (int kind = OBJECT_AREAS - 1; kind >= 0; kind--)
        if (link->areas[kind].size > 0)
            memory = link->areas[kind].memory;
    for (int kind = 0; kind < OBJECT_AREAS; kind++)
        if (link->areas[kind].size == 0)
            link->areas[kind].memory = memory;
}

static enum cairn_status allocate_areas(struct object_link *link, struct cairn_error *error)
{
    for (int kind = 0; kind < OBJECT_AREAS; kind++) {
        struct object_area *area = &link->areas[kind];
        if (area->size == 0)
            continue;
        const struct object_host *host = &link->images[0]->host;
        enum cairn_status status =
            host->allocate(host->user, (enum cairn_section_kind)kind, NULL, area->size,
                           area->alignment, &area->memory, error);
        if (status != CAIRN_OK)
            return name_largest(link, kind, status, error);
        memset(area->memory.bytes, 0, area->size);
    }
    place_empty_areas(link);
    const struct object_area *constants = &link->areas[CAIRN_SECTION_READ_ONLY_DATA];
    if (link->slot_count > 0)
        link->slots = memory_at(constants, link->slots_offset);
    if (link->stub_count > 0)
        link->stubs = memory_at(&link->areas[CAIRN_SECTION_CODE], link->stubs_offset);
    link->table = constants->memory.address + link->relocations->table_bias;
    return CAIRN_OK;
}

/* Gives a loaded section its memory, and copies its contents. */
static enum cairn_status fill_section(const struct object_link *link,
                                      const struct object_host *host,
                                      struct object_section *section, struct cairn_error *error)
{
    const struct elf_section_view *header = &section->header;
    enum cairn_status status = CAIRN_OK;
    if (is_in_area(section)) {
        section->memory = memory_at(&link->areas[section->kind], section->offset);
    } else if (header->size > 0) {
        status = host->allocate(host->user, (enum cairn_section_kind)section->kind, header->name,
                                header->size, header->alignment, &section->memory, error);
    }
    if (status != CAIRN_OK || header->bytes == NULL || header->size == 0)
        return status;
    assert(section->memory.bytes != NULL);
    memcpy(section->memory.bytes, header->bytes, header->size);
    return CAIRN_OK;
}

enum cairn_status object_place(struct object_link *link, struct cairn_error *error)
{
    enum cairn_status status = set_offsets(link, error);
    if (status == CAIRN_OK)
        status = allocate_areas(link, error);
    for (size_t i = 0; i < link->image_count; i++) {
        const struct object_image *image = link->images[i];
        for (uint32_t k = 1; k < image->elf.section_count && status == CAIRN_OK; k++)
            if (image->sections[k].kind != OBJECT_NOT_LOADED)
                status = fill_section(link, &image->host, &image->sections[k], error);
    }
    return status;
}
