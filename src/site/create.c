/*
 * Makes and arms the sites of a module before it is published, and destroys them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "site/arm.h"

#include "base/error.h"
#include "record/declarations.h"
#include "record/table.h"
#include "site/cache_set.h"
#include "site/veneers.h"
#include "unwind/functions.h"

#include <string.h>

/* ---- Which records have sites ---- */

/* Returns the address of the region of a record. The record of a statepoint is at the end of its
 * bytes, which is the return address. */
static uint64_t region_address(const struct cairn_declaration *declaration, uint64_t record_address)
{
    return declaration->kind == CAIRN_RECORD_STATEPOINT ? record_address - declaration->byte_count
                                                        : record_address;
}

/* Whether copies of the region are kept: it has bytes, and all of them are in the module's code. */
static bool has_copies(const struct site_table *sites, uint64_t address, uint32_t byte_count)
{
    return byte_count > 0 && code_block_holds_code(sites->block, address, byte_count);
}

/* Counts the sites and allocates the arrays for them. */
static enum cairn_status allocate_arrays(struct site_table *sites,
                                         const cairn_declarations *declarations,
                                         struct cairn_error *error)
{
    uint32_t bucket = 0;
    for (uint32_t i = 0; declarations->have_sites && i < sites->record_count; i++) {
        const struct declaration_entry *entry = declarations_of_record(declarations, i);
        if (entry == NULL || !entry->has_site)
            continue;
        uint32_t byte_count = entry->declaration->byte_count;
        uint64_t record_address = table_next_record_address(sites->records, i, &bucket);
        sites->capacity++;
        if (has_copies(sites, region_address(entry->declaration, record_address), byte_count))
            sites->bytes_capacity += byte_count;
    }
    if (sites->capacity == 0)
        return CAIRN_OK;
    size_t bytes = sites->bytes_capacity;
    sites->sites = memory_new(&sites->allocator, sites->capacity, sizeof *sites->sites);
    sites->record_sites = memory_new(&sites->allocator, sites->record_count + UINT64_C(1),
                                     sizeof *sites->record_sites);
    if (bytes > 0 && bytes <= UINT32_MAX)
        sites->original_bytes = memory_new(&sites->allocator, 2, bytes);
    if (sites->sites == NULL || sites->record_sites == NULL ||
        (bytes > 0 && sites->original_bytes == NULL))
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %u sites of %zu bytes",
                         sites->capacity, bytes);
    if (bytes > 0)
        sites->initial_bytes = sites->original_bytes + bytes;
    return CAIRN_OK;
}

/* ---- Making one site ---- */

/* Whether the first `bytes` bytes of the region are in the function that begins at `own`. */
static bool is_inside(const struct site_table *sites, const cairn_site *site, uint32_t bytes,
                      uint64_t own)
{
    struct cairn_function function;
    return bytes == 0 || (functions_find(sites->functions, sites->records,
                                         site->address + bytes - 1, &function) &&
                          function.address == own);
}

/* Returns how many bytes of the region may be written. They end before the next record and the next
 * function with records, and at the end of the function that the region begins in; 0 if that
 * function is unknown. */
static uint32_t limit_of(const struct site_table *sites, const cairn_site *site)
{
    struct cairn_function own;
    uint64_t record = table_next_address(sites->records, site->address);
    uint64_t function = table_next_function(sites->records, site->address);
    uint64_t distance = (record < function ? record : function) - site->address;
    uint32_t outside = distance < site->byte_count ? (uint32_t)distance : site->byte_count;
    if (!functions_find(sites->functions, sites->records, site->address, &own))
        return 0;
    if (is_inside(sites, site, outside, own.address))
        return outside;
    uint32_t inside = 0;
    while (outside - inside > 1) {
        uint32_t middle = inside + (outside - inside) / 2;
        if (is_inside(sites, site, middle, own.address))
            inside = middle;
        else
            outside = middle;
    }
    return inside;
}

/* Makes and arms a site. A region ends at the next record at the latest. So a site that overlaps
 * the one before it is another record at the same address, or a statepoint, whose bytes lie before
 * its record. A site without bytes does not end the region before it. */
static enum cairn_status add_site(struct site_table *sites, uint32_t record,
                                  const struct cairn_declaration *declaration,
                                  uint64_t record_address, struct cairn_error *error)
{
    uint64_t address = region_address(declaration, record_address);
    uint32_t byte_count = declaration->byte_count;
    cairn_site *site = &sites->sites[sites->count++];
    site->table = sites;
    site->address = address;
    site->byte_count = byte_count;
    site->record = record;
    site->kind = (uint8_t)declaration->kind;
    site->bytes_offset = (uint32_t)sites->bytes_used;
    if (has_copies(sites, address, byte_count)) {
        memcpy(sites->original_bytes + site->bytes_offset, (const void *)(uintptr_t)address,
               byte_count);
        sites->bytes_used += byte_count;
    }
    if (!code_block_holds_code(sites->block, address, byte_count))
        return site_refuse(site, error, "its bytes lie outside of the module's code");
    if (byte_count > 0 && address < sites->regions_end)
        return site_refuse(site, error, "its bytes overlap those of the site before it");
    site->limit = limit_of(sites, site);
    if (site->limit > 0)
        sites->regions_end = address + site->limit;
    if (site->kind == CAIRN_RECORD_PATCHPOINT)
        return arm_patchpoint(site, declaration, error);
    return site->kind == CAIRN_RECORD_STACKMAP ? arm_shadow(site, error)
                                               : arm_statepoint(site, error);
}

/* Completes the sites when all are armed. Regions do not overlap, so only adjacent sites can share
 * a word. The distance from the executed to the writable view is the same for a whole block. */
static void bind_sites(struct site_table *sites)
{
    cairn_site *previous = NULL;
    for (uint32_t i = 0; i < sites->count; i++) {
        cairn_site *site = &sites->sites[i];
        if (site->live && sites->alias_distance == 0) {
            const void *alias = code_block_writable_alias(sites->block, site->address);
            sites->alias_distance = alias == NULL ? 0 : (uintptr_t)alias - site->address;
        }
        if (site->limit == 0)
            continue;
        if (previous != NULL)
            arm_note_neighbours(previous, site);
        previous = site;
    }
    for (uint32_t i = 0; i < sites->count; i++) {
        const cairn_site *site = &sites->sites[i];
        arm_bind(&sites->sites[i]);
        /* What cairn_site_restore restores if more than the patch word was changed. */
        if (has_copies(sites, site->address, site->byte_count))
            memcpy(sites->initial_bytes + site->bytes_offset,
                   (const void *)(uintptr_t)site->address, site->byte_count);
    }
}

/* ---- Stack maps directly before calls ---- */

/* Sets the return address of stack maps that are at the address of a call, unless another record
 * has that return address, or a location is the link register, whose old value the call overwrites.
 * Records at the return address itself, and patch points, take precedence. */
static void find_calls(const struct site_table *sites, cairn_table *records,
                       const cairn_declarations *declarations)
{
    const struct cairn_arch *arch = sites->arch;
    uint16_t link = arch->unwind_slots[ARCH_UNWIND_RETURN_ADDRESS].dwarf;
    uint64_t code_end = 0; /* of the code that contains the last address */
    uint32_t bucket = 0;
    for (uint32_t i = 0; i < sites->record_count; i++) {
        struct cairn_record other;
        const struct cairn_record record = {.table = records, .index = i};
        const struct declaration_entry *entry = declarations_of_record(declarations, i);
        if (entry == NULL || entry->kind != CAIRN_RECORD_STACKMAP ||
            table_has_return_address(records, i))
            continue;
        uint64_t address = table_next_record_address(records, i, &bucket);
        if (address >= code_end)
            code_end = code_block_code_end(sites->block, address);
        uint64_t size = address < code_end ? code_end - address : 0;
        /* Later records are likely to be in the next page, whose first access takes longest. */
        __builtin_prefetch((const void *)(uintptr_t)(address + 4096));
        if (size > ARCH_CALL_BYTES_MAX)
            size = ARCH_CALL_BYTES_MAX;
        size_t length = arch->call_length(arch, (const uint8_t *)(uintptr_t)address, size);
        if (length == 0 || cairn_table_find_return_address(records, address + length, &other))
            continue;
        uint32_t count = arch->has_link_register ? cairn_record_location_count(record) : 0;
        bool is_lost = false;
        for (uint32_t j = 0; j < count; j++) {
            struct cairn_location location = cairn_record_location(record, j);
            is_lost |= location.kind == CAIRN_LOCATION_REGISTER && location.dwarf == link;
        }
        if (!is_lost)
            table_set_return_delta(records, i, (uint32_t)length);
    }
}

static enum cairn_status add_sites(struct site_table *sites, cairn_table *records,
                                   const cairn_declarations *declarations,
                                   struct cairn_error *error)
{
    uint32_t bucket = 0;
    bool has_statepoints = (declarations->kinds >> CAIRN_RECORD_STATEPOINT & 1) != 0;
    bool has_stackmaps = (declarations->kinds >> CAIRN_RECORD_STACKMAP & 1) != 0;
    uint32_t count = declarations->have_sites || has_statepoints ? sites->record_count : 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct declaration_entry *entry = declarations_of_record(declarations, i);
        if (sites->record_sites != NULL)
            sites->record_sites[i + 1] = sites->count;
        if (entry == NULL)
            continue;
        if (entry->kind == CAIRN_RECORD_STATEPOINT)
            table_set_return_delta(records, i, 0);
        if (!entry->has_site)
            continue;
        uint64_t record_address = table_next_record_address(records, i, &bucket);
        enum cairn_status status = add_site(sites, i, entry->declaration, record_address, error);
        if (status != CAIRN_OK)
            return status;
        sites->record_sites[i + 1] = sites->count;
        const cairn_site *site = &sites->sites[sites->count - 1];
        if (site->return_offset != 0 && entry->kind != CAIRN_RECORD_STATEPOINT)
            table_set_return_delta(records, i, site->return_offset);
    }
    bind_sites(sites);
    if (has_stackmaps)
        find_calls(sites, records, declarations);
    return CAIRN_OK;
}

/* ---- The table ---- */

enum cairn_status site_table_create(struct site_table **sites, cairn_table *records,
                                    const struct functions *functions, struct code_block *block,
                                    const cairn_declarations *declarations,
                                    const struct cairn_allocator *allocator,
                                    struct cairn_error *error)
{
    *sites = NULL;
    if (declarations == NULL || declarations->record_numbers == NULL)
        return CAIRN_OK;
    struct site_table *created = memory_new(allocator, 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a table of sites");
    created->allocator = *allocator;
    created->block = block;
    created->space = code_block_space(block);
    created->write_key = code_space_write_key(created->space);
    created->arch = code_space_arch(created->space);
    created->records = records;
    created->record_count = cairn_table_record_count(records);
    created->functions = functions;

    enum cairn_status status = allocate_arrays(created, declarations, error);
    if (status == CAIRN_OK)
        status = add_sites(created, records, declarations, error);
    if (status == CAIRN_OK && created->count > 0)
        *sites = created;
    else
        site_table_destroy(created);
    return status;
}

void site_table_destroy(struct site_table *sites)
{
    if (sites == NULL)
        return;
    struct cairn_allocator allocator = sites->allocator;
    for (uint32_t i = 0; i < sites->count; i++) {
        veneers_destroy(&sites->sites[i]);
        if (sites->sites[i].ic != NULL)
            sites->ics->functions->unload(sites->sites[i].ic);
        if (sites->sites[i].inlined != NULL)
            sites->ics->functions->unload_inline(sites->sites[i].inlined);
        memory_free_string(&allocator, sites->sites[i].live ? NULL : sites->sites[i].reason);
    }
    memory_free(&allocator, sites->original_bytes, 2 * sites->bytes_capacity);
    memory_free(&allocator, sites->sites, sites->capacity * sizeof *sites->sites);
    memory_free(&allocator, sites->record_sites,
                (sites->record_count + UINT64_C(1)) * sizeof *sites->record_sites);
    memory_free(&allocator, sites, sizeof *sites);
}
