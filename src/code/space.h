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
 *  - a page of protected code changes only through code_block_store_word and code_block_write
 *    (or, in Dual mode, one aligned store through code_block_writable_alias);
 *  - everything that one block holds is in one slab, and no page holds things of two blocks.
 *
 * Room. A block goes into a slab at its first allocation: into one whose largest free range is
 * half of the slab or more and in which no other block is being filled, otherwise into a new one.
 * So a module of up to half a slab always loads while slabs may be added. At the limit of slabs it
 * goes where most room is, and may find the slab full.
 *
 * Threads: blocks of different loaders may be used at the same time; one block by one thread.
 * The functions lock the space inside where they must.
 *
 * Fork. A forked child's code is its own from the start, and its first change gives it a second
 * view (code/fork.c). The parent's other threads do not exist in the child, so a block that one of
 * them was filling at the moment of the fork is lost to the child (its pages stay in use);
 * everything else is whole.
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
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct code_space;
struct code_block;
struct code_stub_chunk;

struct code_space_options {
    const struct cairn_arch *arch;
    struct cairn_allocator allocator;
    size_t slab_size;    /* 0: the architecture's default */
    uint32_t slab_limit; /* 0: none */
    enum cairn_code_mode mode;
};

/* ---- The space ---- */

/* In Dual mode, forced or not, only if a self-test shows that what is written through one view is
 * executed in the other; in Toggle mode only if that is asked for. ARGUMENT (a slab larger than the
 * architecture's reach), MEMORY, SYSTEM, UNSUPPORTED (no architecture; the forced mode does not
 * work here, or none but Toggle, or the thread's personality makes all memory executable; the
 * sentence says why). */
enum cairn_status code_space_create(const struct code_space_options *options,
                                    struct code_space **space, struct cairn_error *error);
/* Unmaps everything. No block is left. */
void code_space_destroy(struct code_space *space);

enum cairn_code_mode code_space_mode(const struct code_space *space);
/* Why the mode is Single where Automatic was asked for; "" otherwise. Valid as long as the space.
 */
const char *code_space_mode_reason(const struct code_space *space);
const struct cairn_arch *code_space_arch(const struct code_space *space);
void code_space_statistics(struct code_space *space, struct cairn_runtime_statistics *statistics);

/* ---- Forked children; see code/fork.c ---- */

enum code_space_stage {
    CODE_SPACE_INHERITED = 0, /* forked, without handlers: locks and code are the parent's */
    CODE_SPACE_OWN = 1,       /* not forked, or everything is this process's own */
    CODE_SPACE_RENEWED = 2    /* forked: the locks are; code can be executed and not changed */
};

/* What its client has to do when the process forks. All but `write_words` are called in the thread
 * that forks. */
struct code_fork_client {
    /* Before the fork, and in the parent after it. The space's own lock is taken last. */
    void (*lock)(void *user);
    void (*unlock)(void *user);
    /* In the child, which has one thread. */
    void (*renew_locks)(void *user);
    /* With all locks held: makes sure that private memory holds what every live word is. */
    void (*note_words)(void *user);
    /* In the child: writes them, with code_block_write_copy. Takes the locks that it needs. */
    void (*write_words)(void *user);
};

/* NULL: there is none any more. */
void code_space_set_fork_client(struct code_space *space, const struct code_fork_client *client,
                                void *user);

/* Called by every entry point that takes a lock: renews all locks, the client's too, in a child for
 * which no handler did. */
void code_space_renew_locks(struct code_space *space);

/* Called by every entry point that changes code or takes memory: renews the locks, and gives a
 * forked child's code its second view, at the same addresses; does nothing in a process that has
 * not forked. No lock of the space or its client is held. On SYSTEM everything goes on working as
 * before the call, and the call may be repeated. */
enum cairn_status code_space_after_fork(struct code_space *space, struct cairn_error *error);

/* One load where the kernel knows MADV_WIPEONFORK (4.14), getpid elsewhere. Async-signal-safe. */
static inline enum code_space_stage code_space_stage(const struct code_space *space);
/* Whether code can be changed at once. */
static inline bool code_space_is_own(const struct code_space *space);

/* Barrier: when it returns, every other core has, since the call, executed a core-serialising
 * event. UNSUPPORTED without membarrier SYNC_CORE, in every mode. SYSTEM. Async-signal-safe. */
enum cairn_status code_space_synchronise(struct code_space *space, struct cairn_error *error);
bool code_space_can_synchronise(const struct code_space *space);

/* Counts changes of code that were undone, for whoever makes them (patch/commit.c). */
_Atomic uint32_t *code_space_undone(struct code_space *space);
/* The number of the next of these changes. */
_Atomic uint32_t *code_space_sequence(struct code_space *space);

/* ---- Which block holds a PC: lock-free, async-signal-safe ---- */

/* The pointer that code_block_publish gave for the page of `pc`; NULL if there is none. */
static inline void *code_space_find_owner(const struct code_space *space, uint64_t pc);

/* Whether `pc` is in a slab: code or data of a block, a veneer, or nothing. */
bool code_space_holds(const struct code_space *space, uint64_t pc);

/* What the two inline functions read; every space begins with it. Nothing else may touch it. */
struct code_slab_lookup {
    uint64_t base;
    uint64_t size;
    _Atomic(void *) *owners; /* one a page */
};

struct code_lookup {
    struct code_slab_lookup first_slab; /* never changes */
    uint32_t page_shift;
    /* The stage, wiped by fork; NULL where the kernel cannot do that. */
    const _Atomic uint32_t *own_mark;
};

void *code_space_find_owner_beyond_first_slab(const struct code_space *space, uint64_t pc);
enum code_space_stage code_space_stage_by_process(const struct code_space *space);

static inline void *code_space_find_owner(const struct code_space *space, uint64_t pc)
{
    const struct code_lookup *lookup = (const struct code_lookup *)space;
    uint64_t offset = pc - lookup->first_slab.base;
    if (__builtin_expect(offset >= lookup->first_slab.size, 0))
        return code_space_find_owner_beyond_first_slab(space, pc);
    return atomic_load_explicit(&lookup->first_slab.owners[offset >> lookup->page_shift],
                                memory_order_acquire);
}

static inline enum code_space_stage code_space_stage(const struct code_space *space)
{
    const struct code_lookup *lookup = (const struct code_lookup *)space;
    if (__builtin_expect(lookup->own_mark == NULL, 0))
        return code_space_stage_by_process(space);
    return (enum code_space_stage)atomic_load_explicit(lookup->own_mark, memory_order_acquire);
}

static inline bool code_space_is_own(const struct code_space *space)
{
    return code_space_stage(space) == CODE_SPACE_OWN;
}

/* ---- Blocks: the pages of one module ---- */

enum cairn_status code_block_create(struct code_space *space, struct code_block **block,
                                    struct cairn_error *error);

/* Writable memory at the address of its use, for sections packed into the block's pages.
 * `alignment` is a power of two up to a page. ARGUMENT, STATE (after code_block_protect), SYSTEM,
 * MEMORY, FULL (the sentence names what was asked for and what is free). */
enum cairn_status code_block_allocate_code(struct code_block *block, size_t size, size_t alignment,
                                           void **address, struct cairn_error *error);
enum cairn_status code_block_allocate_read_only(struct code_block *block, size_t size,
                                                size_t alignment, void **address,
                                                struct cairn_error *error);
enum cairn_status code_block_allocate_data(struct code_block *block, size_t size, size_t alignment,
                                           void **address, struct cairn_error *error);

/* Code becomes read-execute, read-only data read-only; for good. Pages that nothing was allocated
 * in go back. STATE if it was done before; SYSTEM: the block can only be destroyed. */
enum cairn_status code_block_protect(struct code_block *block, struct cairn_error *error);

/* From here on code_space_find_owner answers `owner` for the block's pages; and no longer.
 * ARGUMENT (no owner), STATE (not protected, or published). */
enum cairn_status code_block_publish(struct code_block *block, void *owner,
                                     struct cairn_error *error);
void code_block_unpublish(struct code_block *block);

/* Gives pages and veneers back. Nobody may execute them any more. NULL is allowed. */
void code_block_destroy(struct code_block *block);

/* The block's ranges of whole pages, as they are protected now; false beyond the last. */
struct code_space *code_block_space(const struct code_block *block);
bool code_block_memory_range(const struct code_block *block, uint32_t index,
                             struct cairn_memory_range *range);
/* `size` bytes at `address` lie in the block's code. Async-signal-safe. */
bool code_block_holds_code(const struct code_block *block, uint64_t address, size_t size);
/* The same of its data, read-only or not. */
bool code_block_holds_data(const struct code_block *block, uint64_t address, size_t size);

/* ---- Veneers: stubs that enter the function in an aligned slot ---- */

enum code_veneer_kind {
    CODE_VENEER_PLAIN, /* jumps to it */
    CODE_VENEER_FRAMED /* calls it, where the architecture has such veneers */
};
enum { CODE_VENEER_KIND_COUNT = CODE_VENEER_FRAMED + 1 };

struct code_veneer {
    uint64_t address;       /* of its code; 0: none */
    _Atomic uint64_t *slot; /* the target; written with one aligned store */
};

/* A veneer in the block's slab, its slot holding `target`, visible to all cores when this
 * returns. It belongs to the block and goes with it. The slot is on a private page: a forked
 * child has its own. FULL, SYSTEM, MEMORY, STATE (the block has no memory yet). */
enum cairn_status code_block_add_veneer(struct code_block *block, enum code_veneer_kind kind,
                                        uint64_t target, struct code_veneer *veneer,
                                        struct cairn_error *error);

/* ---- Stubs: code that is made and given up while threads run ---- */

/* Stubs begin at multiples of it. */
enum { CODE_STUB_GRANULE = 32 };

struct code_stub {
    uint64_t address;
    size_t size; /* 0: none */
    struct code_stub_chunk *chunk;
};

/* Room for a stub of `owner`, of 1 byte up to a page, in the block's slab, as near as all code of
 * the block. In Dual mode a lock and no system call, unless a page has to be added. FULL, MEMORY,
 * SYSTEM. */
enum cairn_status code_block_take_stub(struct code_block *block, size_t size, void *owner,
                                       struct code_stub *stub, struct cairn_error *error);

/* Writes a stub, which nobody executes yet, and makes it visible to all cores: an instruction that
 * is stored after that may go there. SYSTEM. */
enum cairn_status code_block_write_stub(struct code_block *block, const struct code_stub *stub,
                                        const void *bytes, struct cairn_error *error);

/* Gives room back that nobody has executed. No stub is allowed, here and in the next one. */
void code_block_release_stub(struct code_block *block, const struct code_stub *stub);

/* The same of room that threads may be executing: it is there until code_space_quiesce_stubs. */
void code_block_retire_stub(struct code_block *block, const struct code_stub *stub);

/* The owner of the stub that `pc` is in, also of a retired one, until it is taken again; NULL if it
 * is in none. Lock-free and async-signal-safe; the time grows with the pages of stubs. */
void *code_space_find_stub_owner(const struct code_space *space, uint64_t pc);

/* Nobody executes what was retired before. */
void code_space_quiesce_stubs(struct code_space *space);

/* ---- Writing to protected code ---- */

/* The written alias of an executed address, in Dual mode; NULL in Single mode, and for addresses
 * that are not the block's code. The alias stays the same for the block's life, also over a fork.
 * In a forked child nothing may be read or written through it before code_space_after_fork. */
void *code_block_writable_alias(const struct code_block *block, uint64_t address);

/* Stores one aligned patch word of `arch->word_bytes` bytes to the block's code, atomically as
 * seen by executing threads, and maintains the caches; no barrier. In Dual mode without a lock and
 * async-signal-safe, except in a child that has just been forked. ARGUMENT (not aligned, not the
 * block's code), SYSTEM. */
enum cairn_status code_block_store_word(struct code_block *block, uint64_t address,
                                        const uint8_t *word, struct cairn_error *error);

/* Any bytes of the block's code, in Dual mode not atomically: the caller vouches for quiescence. In
 * Single mode they change as a whole, and two callers that change different bytes of one word do
 * not disturb each other. ARGUMENT, SYSTEM: nothing has changed. */
enum cairn_status code_block_write(struct code_block *block, uint64_t address, const void *bytes,
                                   size_t size, struct cairn_error *error);

/* In a forked child, while its code is made its own: what the block's code is to hold at `address`.
 * Does nothing if it is not being made. */
void code_block_write_copy(struct code_block *block, uint64_t address, const void *bytes,
                           size_t size);

/* Bytes of protected code of the block, all of them in one of its spans. */
struct code_write {
    const struct code_block *block;
    uint64_t address;
    const uint8_t *bytes;
    size_t size;
};

/* Fills in write number `index`; false if it is not to be made after all. It is called several
 * times with the space's lock held, before anything is written, and answers the same each time.
 * `bytes` are valid until the next call. */
typedef bool code_write_source(void *user, size_t index, struct code_write *write);

/* Only in Single and Toggle mode: makes `count` writes, all of them or none (code/change.c says
 * what is left of that where the system refuses to undo). Those in one page change at the same
 * moment. MEMORY, SYSTEM, UNSUPPORTED. */
enum cairn_status code_space_write_all(struct code_space *space, code_write_source *source,
                                       void *user, size_t count, struct cairn_error *error);

#endif
