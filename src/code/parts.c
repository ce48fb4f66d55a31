/* SPDX-License-Identifier: MIT */
#include "code/parts.h"

#include <string.h>

static uint32_t units_for(size_t size)
{
    return (uint32_t)((size + PART_UNIT_BYTES - 1) / PART_UNIT_BYTES);
}

static uint32_t page_units(const struct code_slab *slab)
{
    return (uint32_t)(slab->page_size / PART_UNIT_BYTES);
}

/* Takes a part of pages that are added. The pages are aligned, so the part is. */
static enum cairn_status take_from_pages(struct code_slab *slab, enum page_use use, uint32_t count,
                                         size_t *offset, bool *found, struct cairn_error *error)
{
    size_t first_page;
    size_t page_count = (count + page_units(slab) - 1) / page_units(slab);
    enum cairn_status status = slab_take(slab, use, page_count, &first_page, found, error);
    if (status != CAIRN_OK || !*found)
        return status;
    parts_divide(slab, use, first_page, page_count, (size_t)count * PART_UNIT_BYTES);
    *offset = first_page * slab->page_size;
    return CAIRN_OK;
}

enum cairn_status parts_take(struct code_slab *slab, enum page_use use, size_t size,
                             size_t alignment, size_t *offset, bool *found,
                             struct cairn_error *error)
{
    uint32_t first;
    *found = false;
    if (size > slab->size)
        return CAIRN_OK;
    uint32_t count = units_for(size);
    if (!units_take(&slab->parts[use], count, units_for(alignment), &first))
        return take_from_pages(slab, use, count, offset, found, error);
    *offset = (size_t)first * PART_UNIT_BYTES;
    *found = true;
    if (use == PAGES_FOR_DATA)
        memset(slab->base + *offset, 0, (size_t)count * PART_UNIT_BYTES);
    return CAIRN_OK;
}

/* Makes pages spare if all of their units are free. */
static void release_pages(struct code_slab *slab, enum page_use use, size_t page, size_t end)
{
    uint32_t units = page_units(slab);
    while (page < end) {
        size_t first = page;
        while (page < end && units_take_at(&slab->parts[use], (uint32_t)page * units, units))
            page++;
        if (page > first)
            slab_release(slab, use, first, page - first);
        page++;
    }
}

void parts_give(struct code_slab *slab, enum page_use use, size_t offset, size_t size)
{
    size_t end = offset + size;
    if (use == PAGES_FOR_CODE)
        slab->has_released_code = true;
    units_give(&slab->parts[use], (uint32_t)(offset / PART_UNIT_BYTES), units_for(size));
    release_pages(slab, use, offset / slab->page_size,
                  (end + slab->page_size - 1) / slab->page_size);
}

void parts_divide(struct code_slab *slab, enum page_use use, size_t first_page, size_t page_count,
                  size_t used)
{
    uint32_t first = (uint32_t)first_page * page_units(slab);
    uint32_t count = (uint32_t)page_count * page_units(slab);
    if (units_for(used) < count)
        units_give(&slab->parts[use], first + units_for(used), count - units_for(used));
}
