/*
 * code/space.h - code memory: slabs, blocks and stubs, and the only functions that write published
 * code.
 *
 * A slab is one reservation of address space. It is at most as large as the reach of the direct
 * call. Code grows from its low end, data from its high end. In dual mapping, the code pages are
 * shared pages of a memory file, which also has a writable view at another address. Data pages are
 * private and anonymous in every mode, so that a forked child does not share them.
 *
 * Invariants:
 *  - No page is writable and executable at the same time, in any view.
 *  - A page of protected code changes only through code_block_write and code_space_write_all (or,
 * in dual mapping, through one aligned store to code_block_writable_alias).
 *  - All memory of one block is in one slab, and no page belongs to two blocks.
 *
 * Choice of a slab. A block is assigned to a slab at its first allocation. It gets a slab whose
 * largest free range is at least half of the slab and in which no other block is being filled; if
 * there is no such slab, it gets a new one. So a module of up to half a slab always loads while
 * slabs may be added. Once the limit of slabs is reached, the block gets the slab with the largest
 * free range, which may turn out to be too small.
 *
 * Threads. Threads may use different blocks at the same time, but only one thread may use a block.
 * The functions take the space's lock where they need it.
 *
 * Fork. A forked child has its own copy of the code from the start; its first change adds a second
 * view (code/fork.c). The parent's other threads do not exist in the child. If one of them was
 * filling a block at the moment of the fork, the block is lost in the child, and its pages stay in
 * use. Everything else is complete.
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
struct code_chunk;

struct code_space_options {
    const struct cairn_arch *arch;
    struct cairn_allocator allocator;
    size_t slab_size;    /* 0: the architecture's default */
    uint32_t slab_limit; /* 0: no limit */
    enum cairn_code_mode mode;
};

/* ---- The space ---- */

/* Creates a space. Dual mapping, requested or not, is used only if a self-test shows that code
 * written through one view is executed in the other. Toggle mode is used only on request. Errors:
 * ARGUMENT (a slab larger than the architecture's reach), MEMORY, SYSTEM, UNSUPPORTED (no
 * architecture; the requested mode does not work here; no mode except toggle works; or the thread's
 * personality makes all memory executable; the message says which). */
enum cairn_status code_space_create(const struct code_space_options *options,
                                    struct code_space **space, struct cairn_error *error);
/* Unmaps everything. All blocks must have been destroyed before. */
void code_space_destroy(struct code_space *space);

enum cairn_code_mode code_space_mode(const struct code_space *space);
/* Returns the reason why automatic mode chose single mapping; "" in all other cases. Valid as long
 * as the space. */
const char *code_space_mode_reason(const struct code_space *space);
const struct cairn_arch *code_space_arch(const struct code_space *space);
void code_space_statistics(struct code_space *space, struct cairn_runtime_statistics *statistics);

/* ---- Forked children; see code/fork.c ---- */

enum code_space_stage {
    CODE_SPACE_INHERITED = 0, /* forked without handlers: locks and code are the parent's */
    CODE_SPACE_OWN = 1,       /* not forked, or everything belongs to this process */
    CODE_SPACE_RENEWED = 2    /* forked: the locks are new; code can be executed, but not changed */
};

/* Functions of the space's client that are called when the process forks. All except `write_words`
 * are called in the thread that forks. */
struct code_fork_client {
    /* Take and release the client's locks, before the fork and after it in the parent. The space's
     * own lock is taken last. If a lock is held by a thread that may wait for this one, try_lock
     * takes none and returns false. It is then called again later. */
    bool (*try_lock)(void *user);
    void (*unlock)(void *user);
    /* Makes new locks. Called in the child, which has one thread. */
    void (*renew_locks)(void *user);
    /* Makes sure that private memory holds the current value of every live word. Called with all
     * locks held. */
    void (*note_words)(void *user);
    /* Writes these words with code_block_write_copy. Called in the child; takes the locks that it
     * needs. */
    void (*write_words)(void *user);
};

/* Sets the client, or removes it if `client` is NULL. */
void code_space_set_fork_client(struct code_space *space, const struct code_fork_client *client,
                                void *user);

/* Makes all locks anew, the client's too, in a child in which no fork handler did so. Called by
 * every entry point that takes a lock. */
void code_space_renew_locks(struct code_space *space);

/* Makes all locks anew and gives a forked child's code its second view, at the same addresses. Does
 * nothing in a process that has not forked. Called by every entry point that changes code or
 * allocates memory, with no lock of the space or its client held. On SYSTEM, everything works as
 * before the call, and the call may be repeated. */
enum cairn_status code_space_after_fork(struct code_space *space, struct cairn_error *error);

/* Returns the stage. Takes one load if the kernel has MADV_WIPEONFORK (Linux 4.14), a call of
 * getpid otherwise. Async-signal-safe. */
static inline enum code_space_stage code_space_stage(const struct code_space *space);
/* Whether code can be changed without a call of code_space_after_fork. */
static inline bool code_space_is_own(const struct code_space *space);

/* Makes every other core execute a core-serialising event between the call and the return. Errors:
 * UNSUPPORTED if the kernel has no membarrier with SYNC_CORE, in every mode; SYSTEM.
 * Async-signal-safe. */
enum cairn_status code_space_synchronise(struct code_space *space, struct cairn_error *error);
bool code_space_can_synchronise(const struct code_space *space);

/* Returns the counter of code changes that were undone; site/commit.c increments it. */
_Atomic uint32_t *code_space_undone(struct code_space *space);
/* Returns the counter that gives the next of these changes its number. */
_Atomic uint32_t *code_space_sequence(struct code_space *space);

/* ---- From a PC to its block: lock-free, async-signal-safe ---- */

/* Returns the owner that code_block_publish set for the page of `pc`, or NULL. */
static inline void *code_space_find_owner(const struct code_space *space, uint64_t pc);

/* Whether `pc` is in a slab, which may hold code, data, a veneer, or nothing there. */
bool code_space_holds(const struct code_space *space, uint64_t pc);

/* The fields that the inline functions read. Every space begins with them. No other code may use
 * them. */
struct code_slab_lookup {
    uint64_t base;
    uint64_t size;
    _Atomic(void *) *owners; /* one for each page */
};

struct code_lookup {
    struct code_slab_lookup first_slab; /* constant */
    uint32_t page_shift;
    /* The stage, in a page that fork wipes; NULL if the kernel cannot wipe pages. */
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

/* Purpose of pages. It determines their protection, and the part of the slab in which they are
 * searched first. */
enum page_use { PAGES_FOR_CODE, PAGES_FOR_READ_ONLY, PAGES_FOR_DATA };
enum { PAGE_USE_COUNT = PAGES_FOR_DATA + 1 };

/* Allocates writable memory at the address at which it will be used, for sections that are packed
 * into the block's pages. `alignment` is a power of two, at most the page size. Errors: ARGUMENT,
 * STATE (after code_block_protect), SYSTEM, MEMORY, FULL (the message names the requested and the
 * free size). */
enum cairn_status code_block_allocate(struct code_block *block, enum page_use use, size_t size,
                                      size_t alignment, void **address, struct cairn_error *error);

/* Makes code read-execute and read-only data read-only, permanently. Releases pages in which
 * nothing was allocated. Errors: STATE if the block was protected before; SYSTEM, after which the
 * block can only be destroyed. */
enum cairn_status code_block_protect(struct code_block *block, struct cairn_error *error);

/* Makes code_space_find_owner return `owner` for the block's pages, until code_block_unpublish.
 * Errors: ARGUMENT (`owner` is NULL), STATE (not protected, or already published). */
enum cairn_status code_block_publish(struct code_block *block, void *owner,
                                     struct cairn_error *error);
void code_block_unpublish(struct code_block *block);

/* Releases the block's pages and veneers. No thread may execute them any more. NULL is allowed. */
void code_block_destroy(struct code_block *block);

/* Returns a range of whole pages of the block with its current protection; false if `index` is past
 * the last. */
struct code_space *code_block_space(const struct code_block *block);
bool code_block_memory_range(const struct code_block *block, uint32_t index,
                             struct cairn_memory_range *range);
/* Whether `size` bytes at `address` are in the block's code. Async-signal-safe. */
bool code_block_holds_code(const struct code_block *block, uint64_t address, size_t size);
/* Returns the end of the block's code that contains `address`, or 0. */
uint64_t code_block_code_end(const struct code_block *block, uint64_t address);
/* Whether `size` bytes at `address` are in the block's data, read-only or writable. */
bool code_block_holds_data(const struct code_block *block, uint64_t address, size_t size);

/* ---- Veneers: stubs that enter the function whose pointer is in an aligned slot ---- */

enum code_veneer_kind {
    CODE_VENEER_PLAIN, /* jumps to the function */
    CODE_VENEER_FRAMED /* calls the function; not on all architectures */
};

struct code_veneer {
    uint64_t address;       /* address of the code; 0: there is no veneer */
    _Atomic uint64_t *slot; /* function pointer; written with one aligned store */
};

/* Adds a veneer to the block, in the block's slab, with `target` in its slot. It is visible to all
 * cores when this function returns, and is released with the block. The slot is on a private page,
 * so that a forked child has its own. Errors: FULL, SYSTEM, MEMORY, STATE (the block has no memory
 * yet). */
enum cairn_status code_block_add_veneer(struct code_block *block, enum code_veneer_kind kind,
                                        uint64_t target, struct code_veneer *veneer,
                                        struct cairn_error *error);

/* ---- Stubs: code that is added and removed while threads run ---- */

/* Alignment of stubs, and their maximum size, in bytes. */
enum { CODE_STUB_GRANULE = 32, CODE_STUB_BYTES_MAX = 4096 };

struct code_stub {
    uint64_t address;
    size_t size; /* 0: there is no stub */
    struct code_chunk *chunk;
};

/* Encodes a stub that will be executed at `address`, in at most CODE_STUB_BYTES_MAX bytes. Its size
 * must not depend on the address. Must take no lock. */
typedef enum cairn_status code_stub_encoder(void *user, uint64_t address, uint8_t *code,
                                            size_t *size, struct cairn_error *error);

/* Emits a stub of `owner` in the block's slab, so within reach of the block's code: encodes it for
 * some address in the slab to learn its size, takes space, encodes it for its own address, writes
 * it, and makes it visible to all cores. A branch to it may be stored afterwards. In dual mapping
 * this takes a lock, but makes no system call unless a page must be added or the architecture needs
 * a barrier. Errors: FULL, MEMORY, SYSTEM, and those of the encoder; no stub remains. */
enum cairn_status code_block_emit_stub(struct code_block *block, code_stub_encoder *encode,
                                       void *user, void *owner, struct code_stub *stub,
                                       struct cairn_error *error);

/* Releases a stub that no thread has executed. An empty stub is allowed, here and in
 * code_block_retire_stub. */
void code_block_release_stub(struct code_block *block, const struct code_stub *stub);

/* Retires a stub that threads may be executing: it stays intact until code_space_quiesce_stubs. */
void code_block_retire_stub(struct code_block *block, const struct code_stub *stub);

/* Returns the owner of the stub that contains `pc`, or NULL. A retired stub keeps its owner until
 * its space is used again. Lock-free and async-signal-safe; takes time proportional to the number
 * of pages with stubs. */
void *code_space_find_stub_owner(const struct code_space *space, uint64_t pc);

/* Frees the retired stubs. No thread may execute a stub that was retired before this call. */
void code_space_quiesce_stubs(struct code_space *space);

/* ---- Writing to protected code ---- */

/* Returns the writable address of code that is executed at `address`. NULL if the code is not in
 * dual mapping, or if `address` is not in the block's code. The result stays the same for the life
 * of the block, in a forked child too, but a child must not read or write through it before
 * code_space_after_fork. */
void *code_block_writable_alias(const struct code_block *block, uint64_t address);

/* Writes any bytes of the block's code, and maintains the caches. It has no barrier. In dual
 * mapping the write is atomic only if it is an aligned word of 4 or 8 bytes: otherwise the caller
 * must make sure that no thread executes the bytes. In single mapping all bytes change at the same
 * time, and two callers may change different bytes of one word. Errors: ARGUMENT, SYSTEM; nothing
 * has changed. */
enum cairn_status code_block_write(struct code_block *block, uint64_t address, const void *bytes,
                                   size_t size, struct cairn_error *error);

/* Sets bytes in the copy of the block's code that a forked child will execute. Called while the
 * child makes the code its own. Does nothing if there is no copy. */
void code_block_write_copy(struct code_block *block, uint64_t address, const void *bytes,
                           size_t size);

/* A write to protected code of one block, all of it in one of the block's spans. */
struct code_write {
    const struct code_block *block;
    uint64_t address;
    const uint8_t *bytes;
    size_t size;
};

/* Fills in write number `index`; returns false to skip it. It is called several times for each
 * write, with the space's lock held and before anything is written, and must return the same each
 * time. `bytes` are valid until the next call. */
typedef bool code_write_source(void *user, size_t index, struct code_write *write);

/* Makes `count` writes, all of them or none of them; not for dual mapping. (code/change.c describes
 * what happens if the system refuses to undo some of them.) Writes to one page take effect at the
 * same moment. Errors: MEMORY, SYSTEM, UNSUPPORTED. */
enum cairn_status code_space_write_all(struct code_space *space, code_write_source *source,
                                       void *user, size_t count, struct cairn_error *error);

#endif
