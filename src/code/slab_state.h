/*
 * code/slab_state.h - what is known of a slab: its views and the state of its pages.
 *
 * The state of each page is one byte. A page gets its state after it was mapped and loses it before
 * it is unmapped. So if the process forks in between, the child has memory wherever a state says
 * so.
 *
 * Maps (code/map.h) change the views, slabs (code/slab.h) the states, and parts (code/parts.h) what
 * is free in pages in use. Each uses those before it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CODE_SLAB_STATE_H
#define CODE_SLAB_STATE_H

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

/* The unit in which parts of pages are taken. */
enum { PART_UNIT_BYTES = 16 };

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
    /* Dual mapping: a third view, which is never accessible and is not used itself, after a page
     * that is mapped read-execute. Parts of the executed view are made as duplicates of these, so
     * that none was ever writable (code/map_dual.c). */
    uint8_t *source;
    int read_execute; /* protection of code: PROT_READ, PROT_EXEC, and what the architecture adds */
    int write_key;    /* of the written view (code/write_key.h) */
    bool is_visible;  /* whether the kernel reports new code to profilers (map_make_visible) */
    /* Single mapping: bytes without access before and after the alias, in the same mapping. */
    size_t alias_guard;
    /* Single mapping: the part of the alias that must be mapped anew before it is used. */
    size_t alias_spent_offset;
    size_t alias_spent_size;
    /* Single mapping: the part of the alias that is not mapped, or in which another thread has
     * mapped something. */
    size_t alias_lost_offset;
    size_t alias_lost_size;

    /* Dual mapping: the source of a forked child's memory, with copies of the pages of code and
     * read-only data. NULL except during a fork (code/fork.c). */
    uint8_t *copy;
};

#endif
