/*
 * The sites of a module: finding one by its number, its record, or an address in it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "site/site.h"

void site_table_publish(struct site_table *sites)
{
    if (sites != NULL)
        atomic_store_explicit(&sites->published, true, memory_order_release);
}

void site_table_retire(struct site_table *sites)
{
    if (sites != NULL)
        atomic_store_explicit(&sites->retired, true, memory_order_release);
}

uint32_t site_table_count(const struct site_table *sites)
{
    return sites == NULL ? 0 : sites->count;
}

cairn_site *site_table_at(const struct site_table *sites, uint32_t index)
{
    return index < site_table_count(sites) ? &sites->sites[index] : NULL;
}

uint32_t site_table_from(const struct site_table *sites, uint32_t record)
{
    return sites == NULL ? 0 : sites->record_sites[record];
}

cairn_site *site_table_find(const struct site_table *sites, uint32_t record)
{
    uint32_t index = site_table_from(sites, record);
    return index < site_table_from(sites, record + 1) ? &sites->sites[index] : NULL;
}

uint64_t site_id(const cairn_site *site)
{
    return cairn_record_id((struct cairn_record){site->table->records, site->record});
}

size_t site_table_bound_bytes(const struct site_table *sites)
{
    return sites == NULL ? 0 : (sites->record_count + UINT64_C(1)) * sizeof *sites->record_sites;
}

/* ---- Code of inline caches in the sites' own bytes ---- */

/* Returns the last site that begins before the address, or NULL. */
static const cairn_site *last_before(const struct site_table *sites, uint64_t address)
{
    uint32_t begin = 0;
    uint32_t end = sites->count;
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        if (sites->sites[middle].address < address)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin == 0 ? NULL : &sites->sites[begin - 1];
}

const cairn_site *site_table_ending_at(const struct site_table *sites, uint64_t address)
{
    if (sites == NULL || sites->inline_count == 0)
        return NULL;
    const cairn_site *site = last_before(sites, address);
    bool ends =
        site != NULL && site->has_inline_space && site->address + site->byte_count == address;
    return ends ? site : NULL;
}

const cairn_site *site_table_with_inline_code(const struct site_table *sites, uint64_t address)
{
    if (sites == NULL || sites->inline_count == 0)
        return NULL;
    const cairn_site *site = last_before(sites, address);
    bool holds = site != NULL && site->has_inline_space &&
                 address - site->address < site->byte_count &&
                 address - site->address >= site->return_offset &&
                 atomic_load_explicit(&site->holds_inline, memory_order_relaxed);
    return holds ? site : NULL;
}
