/*
 * code/slab.h - one reservation of address space and the state of its pages.
 *
 * The state of each page is one byte. A page gets its state after it was mapped and loses it before
 * it is unmapped. So if the process forks in between, the child has memory wherever a state says
 * so.
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

#include "code/space.h"
#include "code/units.h"

struct code_map;

/* The states of each group are in the order of enum page_use. */
enum page_state {
    PAGE_FREE = 0, /* reserved, no access; available for every use */
    /* Private and writable at the address of its use, while its block is being filled. */
    PAGE_OPEN_CODE,
    PAGE_OPEN_READ_ONLY,
    /* In use: read-execute, read-only, read-write. */
    PAGE_CODE,
    PAGE_READ_ONLY,
    PAGE_DATA,
    /* Mapped for this use like a page in use, and available for it. */
    PAGE_SPARE_CODE,
    PAGE_SPARE_READ_ONLY,
    PAGE_SPARE_DATA,
    PAGE_LOST /* the system neither maps nor releases it; never used again */
};
enum { PAGE_STATE_COUNT = PAGE_LOST + 1 };

struct code_slab {
    struct code_slab *next;
    const struct code_map *map;
    uint8_t *base;  /* start of the executed view */
    uint8_t *alias; /* dual mapping: the written view; single mapping: the workshop */
    size_t size;
    size_t page_size;
    size_t page_count;
    size_t step_pages; /* free pages are mapped in steps of so many pages */

    struct units available[PAGE_USE_COUNT]; /* pages for each use */
    struct units parts[PAGE_USE_COUNT];     /* free units of pages in use (code/parts.h) */
    struct owners owners;                   /* of published blocks */
    _Atomic uint8_t *states;                /* enum page_state, one for each page */
    uint64_t *dirty;                        /* bit map of pages */
    size_t dirty_count;                     /* number of bits set */
    size_t dirty_first;
    size_t dirty_end;
    void *bookkeeping;        /* the mapping that holds the tables of these */
    size_t bookkeeping_bytes; /* its size */

    /* End of the pages that hold code or have held code, as a page number. */
    size_t code_end;
    uint32_t open_blocks; /* blocks that are being filled and may grow */
    /* Whether code was released since the last barrier. Cores may still hold it. */
    bool has_released_code;
    /* Dual mapping: a third view, which is never accessible and is not used itself. Parts of the
     * executed view are made as duplicates of its parts, so that none was ever writable. */
    uint8_t *source;
    int write_key;   /* of the written view (code/write_key.h) */
    bool is_visible; /* whether the kernel reports new code to profilers (map_make_visible) */
    /* Single mapping: bytes without access before and after the alias, in the same mapping. */
    size_t alias_guard;
    /* Single mapping: the part of the alias that must be mapped anew before it is used. */
    size_t alias_spent_offset;
    size_t alias_spent_size;
    /* Single mapping: the part of the alias that is not mapped, or in which another thread has
     * mapped something. */
    size_t alias_lost_offset;
    size_t alias_lost_size;

    /* Dual mapping: a view of a forked child's memory, with copies of the pages of code and
     * read-only data. NULL except during a fork (code/fork.c). */
    uint8_t *copy;
};

/* Reserves a slab and opens its map. Errors: SYSTEM, MEMORY. */
enum cairn_status slab_create(const struct cairn_allocator *allocator, const struct code_map *map,
                              size_t size, struct code_slab **slab, struct cairn_error *error);
/* Unmaps the whole slab and frees it. */
void slab_destroy(const struct cairn_allocator *allocator, struct code_slab *slab);
/* Unmaps the alias, except for its lost part, and sets it to NULL. */
void slab_unmap_alias(struct code_slab *slab);

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

/* Neighbouring pages of code or read-only data in the same state: in use, open or spare. */
struct code_run {
    size_t first_page;
    size_t page_count;
    enum page_state state;
};
/* Finds the next run after `*run`, which is zero at first; false after the last. */
bool slab_next_run(const struct code_slab *slab, struct code_run *run);

/* Unmaps the copy for a forked child, if there is one. */
void slab_drop_copy(struct code_slab *slab);

/* Cleans up in a forked child if another thread of the parent was taking or releasing pages during
 * the fork: unmaps what that thread had mapped on pages whose state is PAGE_FREE, and makes them
 * free. */
enum cairn_status slab_forget_unfinished(struct code_slab *slab, struct cairn_error *error);

#endif
