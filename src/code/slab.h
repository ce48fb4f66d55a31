/*
 * code/slab.h - one reservation of address space: taking and releasing its pages.
 *
 * Pages are mapped for one use, several at a time, and keep it when they are released: they are
 * then spare. (With a single mapping, code and read-only data are released at once.) So the number
 * of mappings depends on the number of slabs, not on what is loaded and released. Only if nothing
 * else is left for one use, pages that are spare for another become free.
 *
 * Invariants:
 *  - A page is in `available` for a use exactly if its state is PAGE_FREE or spare for that use.
 *  - A spare page that may hold data or take memory has its bit in `dirty`, and is between
 *    `dirty_first` and `dirty_end`. Pages of code and read-only data keep it when they are taken.
 *
 * All functions must be called with the space's lock held, unless their comment says otherwise.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CODE_SLAB_H
#define CODE_SLAB_H

#include "code/slab_state.h"

/* Reserves a slab and opens its map. `read_execute` is the protection of its code. Errors: SYSTEM,
 * MEMORY. */
enum cairn_status slab_create(const struct cairn_allocator *allocator, const struct code_map *map,
                              size_t size, int read_execute, struct code_slab **slab,
                              struct cairn_error *error);
/* Unmaps the whole slab and frees it. */
void slab_destroy(const struct cairn_allocator *allocator, struct code_slab *slab);

/* Whether `address` is in the slab. Needs no lock. */
bool slab_holds(const struct code_slab *slab, uint64_t address);

/* Returns the size of the largest range that is available for code, in pages. */
size_t slab_room(const struct code_slab *slab);
/* Adds the number of pages in each state to `counts`. */
void slab_count_states(const struct code_slab *slab, size_t counts[PAGE_STATE_COUNT]);

/* Whether released pages of this use become spare. */
bool slab_has_spare(const struct code_slab *slab, enum page_use use);

/* Takes `page_count` pages, closed: code and read-only data are written by the slab's map. Pages of
 * data are filled with zeros, the others are unspecified. If there is no such range, sets `*found`
 * to false and returns CAIRN_OK. */
enum cairn_status slab_take(struct code_slab *slab, enum page_use use, size_t page_count,
                            size_t *first_page, bool *found, struct cairn_error *error);

/* Takes pages of code or read-only data and opens them: they are writable at their addresses, and
 * filled with zeros. */
enum cairn_status slab_take_open(struct code_slab *slab, enum page_use use, size_t page_count,
                                 size_t *first_page, bool *found, struct cairn_error *error);
/* The same for the pages that begin at `first_page`. */
enum cairn_status slab_take_open_at(struct code_slab *slab, enum page_use use, size_t first_page,
                                    size_t page_count, bool *found, struct cairn_error *error);

/* Closes opened pages: makes code visible to instruction fetch and read-execute, and read-only data
 * read-only. Cores that have executed other code at these addresses also need
 * space_publish_code. */
enum cairn_status slab_close(struct code_slab *slab, enum page_use use, size_t first_page,
                             size_t page_count, struct cairn_error *error);

/* Releases pages that are all open or all closed. The memory of spare pages is released by
 * slab_clean. */
void slab_release(struct code_slab *slab, enum page_use use, size_t first_page, size_t page_count);

/* Releases the memory of all spare pages. */
void slab_clean(struct code_slab *slab);

/* Cleans up in a forked child if another thread of the parent was taking or releasing pages during
 * the fork: unmaps what that thread had mapped on pages whose state is PAGE_FREE, and makes them
 * free. */
enum cairn_status slab_forget_unfinished(struct code_slab *slab, struct cairn_error *error);

#endif
