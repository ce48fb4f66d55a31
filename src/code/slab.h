/*
 * code/slab.h - one reservation and the state of its pages.
 *
 * The state of each page is one byte, and the only record of who has which page; free ranges are
 * found by looking, so neighbouring ones are always one range. A page gets its state after it was
 * mapped and loses it before it is unmapped: a child that is forked between the two sees memory
 * where a state says there is memory.
 *
 * All functions are called with the space's lock held, unless they say otherwise.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CODE_SLAB_H
#define CODE_SLAB_H

#include "base/memory.h"

#include <cairn/runtime.h>
#include <cairn/status.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct code_map;
struct code_chunk;
struct code_stub_chunk;

enum page_state {
    PAGE_FREE = 0, /* reserved: no access */
    PAGE_CODE_WRITABLE,
    PAGE_CODE, /* read-execute */
    PAGE_DATA, /* writable, or read-only after its block was protected */
    PAGE_LOST  /* the system would neither use nor release it; never touched again */
};
enum { PAGE_STATE_COUNT = PAGE_LOST + 1 };

/* What pages are taken for; it decides where in the slab they are looked for. */
enum page_use { PAGES_FOR_CODE, PAGES_FOR_READ_ONLY, PAGES_FOR_DATA };
enum { PAGE_USE_COUNT = PAGES_FOR_DATA + 1 };

struct code_slab {
    struct code_slab *next;
    const struct code_map *map;
    uint8_t *base;  /* where code runs */
    uint8_t *alias; /* Dual: the written view. Single: where copies are made. Toggle: NULL */
    size_t size;
    size_t page_size;
    size_t page_count;

    _Atomic(void *) *owners;  /* one a page */
    _Atomic uint8_t *states;  /* one a page, enum page_state */
    size_t bookkeeping_bytes; /* of the mapping that holds both */

    /* Pages below this one have held code at some time. */
    size_t code_end;
    /* Bounds of the largest free range, in pages, so that it need not be looked for each time. */
    size_t room_at_least;
    size_t room_at_most;
    uint32_t open_blocks;
    /* Dual: the first bytes of the alias that are writable; the others have no access. */
    size_t alias_writable;
    /* Single: bytes without access before and after the alias, which are mapped with it. */
    size_t alias_guard;
    /* Single: the part of the alias that has to be mapped anew before it is used. */
    size_t alias_spent_offset;
    size_t alias_spent_size;
    /* Single: the part of the alias that is not mapped any more, or that another thread has mapped
     * something in since. */
    size_t alias_lost_offset;
    size_t alias_lost_size;

    /* Dual. `copy` holds the code pages at their offsets, in private memory, while the process
     * forks and until its child has put them in place; NULL otherwise. `is_detached` is true in a
     * child whose code pages are private and have no second view. See code/fork.c. */
    uint8_t *copy;
    size_t copy_bytes;
    bool is_detached;

    struct code_chunk *chunks;
    /* As code/stub.h says. */
    struct code_stub_chunk *stub_chunks;
    struct code_stub_chunk *full_stub_chunks;
};

/* Reserves a slab and opens its map. SYSTEM, MEMORY. */
enum cairn_status slab_create(const struct cairn_allocator *allocator, const struct code_map *map,
                              size_t size, struct code_slab **slab, struct cairn_error *error);
/* Unmaps all of it. */
void slab_destroy(const struct cairn_allocator *allocator, struct code_slab *slab);
/* Unmaps the alias, except for its lost part, and sets it to NULL. */
void slab_unmap_alias(struct code_slab *slab);

/* Whether `address` is in the slab; needs no lock. */
bool slab_holds(const struct code_slab *slab, uint64_t address);

/* Pages in the largest free range. */
size_t slab_room(struct code_slab *slab);
/* Whether the largest free range has `page_count` pages or more. */
bool slab_has_room(struct code_slab *slab, size_t page_count);
/* Pages in each state. */
void slab_count_states(const struct code_slab *slab, size_t counts[PAGE_STATE_COUNT]);

/* Takes `page_count` free pages and makes them writable. False, with CAIRN_OK, if there is no such
 * range. */
enum cairn_status slab_take(struct code_slab *slab, enum page_use use, size_t page_count,
                            size_t *first_page, bool *found, struct cairn_error *error);
/* The same for pages that begin at `first_page`. */
enum cairn_status slab_take_at(struct code_slab *slab, enum page_use use, size_t first_page,
                               size_t page_count, bool *found, struct cairn_error *error);

/* Code becomes read-execute; read-only data read-only. */
enum cairn_status slab_protect(struct code_slab *slab, enum page_use use, size_t first_page,
                               size_t page_count, struct cairn_error *error);

/* Gives pages back to the system and to the slab. */
void slab_release(struct code_slab *slab, size_t first_page, size_t page_count);

/* A run of neighbouring code pages in one state. */
struct code_run {
    size_t first_page;
    size_t page_count;
    enum page_state state;
};
/* The first run after `run`, which is zero at first; false if there is none. */
bool slab_next_run(const struct code_slab *slab, struct code_run *run);

/* In a forked child: a thread of the parent that was taking or releasing pages does not exist here.
 * What it had mapped on pages that are still free goes, and the bounds of the largest free range
 * are found anew. */
enum cairn_status slab_forget_unfinished(struct code_slab *slab, struct cairn_error *error);

#endif
