/*
 * code/space.h - code memory: slabs, blocks, stubs, and the only writers of published code.
 *
 * A slab is one reservation of address space, at most as large as the reach of the direct call.
 * Code grows from its low end, data from its high end. In Dual mode the code pages are shared
 * pages of a memory file with a second, writable view elsewhere; data pages are private and
 * anonymous in either mode, so that a forked child does not share them.
 *
 * What must stay true:
 *  - no page is writable and executable at any moment, in no view;
 *  - a page of published code changes only through code_store_word and code_write;
 *  - everything that one block holds is in one slab.
 *
 * Threads: blocks of different loaders may be used at the same time; one block by one thread.
 * The functions lock the space inside where they must.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CODE_SPACE_H
#define CODE_SPACE_H

#include "arch/arch.h"
#include "base/memory.h"

#include <cairn/module.h>
#include <cairn/runtime.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct code_space;
struct code_block;

struct code_space_options {
    const struct cairn_arch *arch;
    struct cairn_allocator allocator;
    size_t slab_size;    /* 0: the architecture's default */
    uint32_t slab_limit; /* 0: none */
    enum cairn_code_mode mode;
};

/* ---- The space ---- */

enum cairn_status code_space_create(const struct code_space_options *options,
                                    struct code_space **space, struct cairn_error *error);
/* Unmaps everything. No block is left. */
void code_space_destroy(struct code_space *space);

enum cairn_code_mode code_space_mode(const struct code_space *space);
const char *code_space_mode_reason(const struct code_space *space);
const struct cairn_arch *code_space_arch(const struct code_space *space);
void code_space_statistics(struct code_space *space, struct cairn_runtime_statistics *statistics);

/* Gives a forked child its own pages; nothing in a process that has not forked. */
enum cairn_status code_space_after_fork(struct code_space *space, struct cairn_error *error);

/* Whether this process is the one that the pages belong to: one load. Async-signal-safe. */
bool code_space_is_own(const struct code_space *space);

/* Barrier: when it returns, every other core has, since the call, executed a core-serialising
 * event. UNSUPPORTED without membarrier SYNC_CORE. */
enum cairn_status code_space_synchronise(struct code_space *space, struct cairn_error *error);
bool code_space_can_synchronise(const struct code_space *space);

/* ---- Which block holds a PC: lock-free, async-signal-safe ---- */

/* The pointer that code_block_publish gave for the page of `pc`; NULL if there is none. */
void *code_space_find_owner(const struct code_space *space, uint64_t pc);

/* ---- Blocks: the pages of one module ---- */

enum cairn_status code_block_create(struct code_space *space, struct code_block **block,
                                    struct cairn_error *error);

/* Writable memory at the address of its use. FULL names what was asked for and what is free. */
enum cairn_status code_block_allocate_code(struct code_block *block, size_t size, size_t alignment,
                                           void **address, struct cairn_error *error);
enum cairn_status code_block_allocate_read_only(struct code_block *block, size_t size,
                                                size_t alignment, void **address,
                                                struct cairn_error *error);
enum cairn_status code_block_allocate_data(struct code_block *block, size_t size, size_t alignment,
                                           void **address, struct cairn_error *error);

/* Code becomes read-execute, read-only data read-only; for good. */
enum cairn_status code_block_protect(struct code_block *block, struct cairn_error *error);

/* From here on code_space_find_owner answers `owner` for the block's pages; and no longer. */
enum cairn_status code_block_publish(struct code_block *block, void *owner,
                                     struct cairn_error *error);
void code_block_unpublish(struct code_block *block);

/* Gives pages and veneers back. Nobody may execute them any more. NULL is allowed. */
void code_block_destroy(struct code_block *block);

bool code_block_memory_range(const struct code_block *block, uint32_t index,
                             struct cairn_memory_range *range);
/* `size` bytes at `address` lie in the block's code. */
bool code_block_holds_code(const struct code_block *block, uint64_t address, size_t size);

/* ---- Veneers: stubs that jump to the address in an aligned slot ---- */

struct code_veneer {
    uint64_t address;        /* of its code; 0: none */
    _Atomic uint64_t *slot;  /* the target; written with one aligned store */
};

/* A veneer in the block's slab, its slot holding `target`, visible to all cores when this
 * returns. It belongs to the block and goes with it. FULL, SYSTEM, MEMORY. */
enum cairn_status code_block_add_veneer(struct code_block *block, uint64_t target,
                                        struct code_veneer *veneer, struct cairn_error *error);

/* ---- Writing to protected code ---- */

/* The written alias of an executed address, in Dual mode; NULL in Single mode. The alias stays
 * the same for the block's life, also over a fork. */
void *code_block_writable_alias(const struct code_block *block, uint64_t address);

/* Stores one aligned patch word of `arch->word_bytes` bytes to protected code, atomically as
 * seen by executing threads, and maintains the caches; no barrier (Single mode implies one). */
enum cairn_status code_block_store_word(struct code_block *block, uint64_t address,
                                        const uint8_t *word, struct cairn_error *error);

/* Any bytes of protected code, not atomically: the caller vouches for quiescence. */
enum cairn_status code_block_write(struct code_block *block, uint64_t address, const void *bytes,
                                   size_t size, struct cairn_error *error);

#endif
