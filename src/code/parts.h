/*
 * code/parts.h - parts of pages, in units of 16 bytes.
 *
 * Memory that need not be written at the address of its use before it is complete needs no page of
 * its own: parts of one page may belong to different modules and stubs, and are released one by
 * one. Pages are added to the parts when no run of free units fits. A page whose units are all free
 * again is released. So everything of one use in a slab, in pages and in parts, shares one set of
 * pages.
 *
 * Invariant: a unit is free in `slab->parts` of a use only if its page is in use for it.
 *
 * All functions are called with the space's lock held.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CODE_PARTS_H
#define CODE_PARTS_H

#include "code/slab.h"

/* Takes a part of `size` bytes; `*offset` is counted from the start of the slab. `alignment` is a
 * power of two, at most the page size. If nothing is free, sets `*found` to false and returns
 * CAIRN_OK. Data is filled with zeros; code and read-only data is unspecified, and is written
 * by the slab's map. Cores may still hold code that was at these addresses
 * (space_publish_code). */
enum cairn_status parts_take(struct code_slab *slab, enum page_use use, size_t size,
                             size_t alignment, size_t *offset, bool *found,
                             struct cairn_error *error);

/* Releases a part, or neighbouring parts. `size` may be that of parts_take, or rounded up. No
 * thread may use it any more. Never fails. */
void parts_give(struct code_slab *slab, enum page_use use, size_t offset, size_t size);

/* Makes parts of closed pages that were taken as pages: the first `used` bytes are a part in use,
 * which parts_give releases, and the others are free. */
void parts_divide(struct code_slab *slab, enum page_use use, size_t first_page, size_t page_count,
                  size_t used);

#endif
