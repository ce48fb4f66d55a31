/*
 * code/slab.h - one reservation of address space and the state of its pages.
 *
 * The state of each page is one byte, and nothing else records which pages are in use. Free ranges
 * are found by a search, so neighbouring free ranges are always one range. A page gets its state
 * after it was mapped and loses it before it is unmapped. So if the process forks in between, the
 * child has memory wherever a state says so.
 *
 * All functions must be called with the space's lock held, unless their comment says otherwise.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CODE_SLAB_H
#define CODE_SLAB_H

#include "code/space.h"

struct code_map;

/* What a chunk holds (code/stub.h). The first kinds are those of enum code_veneer_kind. */
enum code_chunk_kind { CODE_CHUNK_PLAIN, CODE_CHUNK_FRAMED, CODE_CHUNK_STUBS };
enum { CODE_CHUNK_KIND_COUNT = CODE_CHUNK_STUBS + 1 };

/* The two lists of chunks of one kind. */
struct code_chunks {
    struct code_chunk *open;
    struct code_chunk *full;
};

enum page_state {
    PAGE_FREE = 0, /* reserved, no access */
    PAGE_CODE_WRITABLE,
    PAGE_CODE, /* read-execute */
    PAGE_DATA, /* writable, or read-only if its block is protected */
    PAGE_LOST  /* the system neither maps nor releases it; never used again */
};
enum { PAGE_STATE_COUNT = PAGE_LOST + 1 };

struct code_slab {
    struct code_slab *next;
    const struct code_map *map;
    uint8_t *base;  /* start of the executed view */
    uint8_t *alias; /* dual: the written view; single: the workshop; toggle: NULL */
    size_t size;
    size_t page_size;
    size_t page_count;

    _Atomic(void *) *owners;  /* one for each page */
    _Atomic uint8_t *states;  /* enum page_state, one for each page */
    size_t bookkeeping_bytes; /* size of the mapping that holds both */

    /* End of the pages that hold code or have held code, as a page number. */
    size_t code_end;
    /* Bounds of the size of the largest free range, in pages. They avoid a search on each query. */
    size_t room_at_least;
    size_t room_at_most;
    uint32_t open_blocks;
    /* Dual mapping: number of writable bytes at the start of the alias; the others have no
     * access. */
    size_t alias_writable;
    /* Single mapping: bytes without access before and after the alias, in the same mapping. */
    size_t alias_guard;
    /* Single mapping: the part of the alias that must be mapped anew before it is used. */
    size_t alias_spent_offset;
    size_t alias_spent_size;
    /* Single mapping: the part of the alias that is not mapped, or in which another thread has
     * mapped something. */
    size_t alias_lost_offset;
    size_t alias_lost_size;

    /* Dual mapping. `copy` holds the code pages, at their offsets, in private memory; NULL except
     * from the moment before a fork until the child has moved the pages into place. `is_detached`
     * is true in a child whose code pages are private and have no second view. See code/fork.c. */
    uint8_t *copy;
    size_t copy_bytes;
    bool is_detached;

    struct code_chunks chunks[CODE_CHUNK_KIND_COUNT];
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

/* Returns the size of the largest free range, in pages. */
size_t slab_room(struct code_slab *slab);
/* Whether the largest free range has at least `page_count` pages. */
bool slab_has_room(struct code_slab *slab, size_t page_count);
/* Adds the number of pages in each state to `counts`. */
void slab_count_states(const struct code_slab *slab, size_t counts[PAGE_STATE_COUNT]);

/* Takes `page_count` free pages and makes them writable. If there is no such range, sets `*found`
 * to false and returns CAIRN_OK. */
enum cairn_status slab_take(struct code_slab *slab, enum page_use use, size_t page_count,
                            size_t *first_page, bool *found, struct cairn_error *error);
/* The same for the pages that begin at `first_page`. */
enum cairn_status slab_take_at(struct code_slab *slab, enum page_use use, size_t first_page,
                               size_t page_count, bool *found, struct cairn_error *error);

/* Makes code visible to instruction fetch and read-execute, and read-only data read-only. Cores
 * that have executed other code at these addresses also need space_publish_code. */
enum cairn_status slab_protect(struct code_slab *slab, enum page_use use, size_t first_page,
                               size_t page_count, struct cairn_error *error);

/* Frees pages and releases their memory. */
void slab_release(struct code_slab *slab, size_t first_page, size_t page_count);

/* Neighbouring code pages in the same state. */
struct code_run {
    size_t first_page;
    size_t page_count;
    enum page_state state;
};
/* Finds the next run after `*run`, which is zero at first; false after the last. */
bool slab_next_run(const struct code_slab *slab, struct code_run *run);

/* Cleans up in a forked child if another thread of the parent was taking or releasing pages during
 * the fork: unmaps what that thread had mapped on free pages, and resets the bounds of the largest
 * free range. */
enum cairn_status slab_forget_unfinished(struct code_slab *slab, struct cairn_error *error);

#endif
