/*
 * code/space.h - code memory: slabs, blocks and stubs, and the only functions that write published
 * code.
 *
 * A slab is one reservation of address space. It is at most as large as the reach of the direct
 * call. Code grows from its low end, data from its high end. In dual mapping, pages of code and
 * read-only data are shared pages of a memory file, which also has a writable view at another
 * address. Pages of writable data are private and anonymous in every mode, so that a forked child
 * does not share them. With a single mapping, pages of read-only data are, too.
 *
 * Invariants:
 *  - No page is writable and executable at the same time, in any view.
 *  - A page of protected code changes only through code_block_write and code_space_write_all (or,
 * in dual mapping, through one aligned store to code_block_writable_alias).
 *  - All memory of one block is in one slab. Blocks may share pages of data, and in dual mapping
 *    pages of code and of read-only data, too (code/parts.h).
 *  - In dual mapping, the executed view is never writable. What a loader must write to the address
 *    of its use is loaded in private pages in place of that part of the view (code/map_dual.c);
 *    everything else is written through the written view.
 *
 * Choice of a slab. A block is assigned to a slab at its first allocation. It gets a slab whose
 * largest free range is at least half of the slab and in which no block may grow (blocks do if
 * their sections are allocated, and not if they are reserved); if
 * there is no such slab, it gets a new one. So a module of up to half a slab always loads while
 * slabs may be added. Once the limit of slabs is reached, the block gets the slab with the largest
 * free range, which may turn out to be too small.
 *
 * Threads. Threads may use different blocks at the same time, but only one thread may use a block.
 * The functions take the space's lock where they need it.
 *
 * Fork. A forked child has its own copy of the code from the start (code/fork.c). The parent's
 * other threads do not exist in the child. If one of them was filling a block at the moment of the
 * fork, the block is lost in the child, and its pages stay in use. Everything else is complete.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CODE_SPACE_H
#define CODE_SPACE_H

#include "arch/arch.h"
#include "base/grace.h"
#include "base/memory.h"
#include "code/owners.h"
#include "code/watch.h"
#include "log/log.h"

#include <cairn/module.h>
#include <cairn/runtime.h>
#include <cairn/status.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct code_space;
struct code_block;
struct inspect_field;

struct code_space_options {
    const struct cairn_arch *arch;
    struct cairn_allocator allocator;
    size_t slab_size;    /* 0: the architecture's default */
    uint32_t slab_limit; /* 0: no limit */
    enum cairn_code_mode mode;
    bool protects_writes;  /* whether the written views have a memory protection key */
    bool has_landing_pads; /* whether the processor may check indirect branches to the code */
};

/* ---- The space ---- */

/* Creates a space. Dual mapping, requested or not, is used only if a self-test shows that code
 * written through one view is executed in the other. Errors: ARGUMENT (a slab larger than the
 * architecture's reach), MEMORY, SYSTEM, UNSUPPORTED (no architecture; dual mapping was requested
 * and does not work here; the thread's personality makes all memory executable; or writes are to be
 * protected and there are no keys or no dual mapping; the message says which). */
enum cairn_status code_space_create(const struct code_space_options *options,
                                    struct code_space **space, struct cairn_error *error);
/* Unmaps everything. All blocks must have been destroyed before, and nothing may wait for a grace
 * period. */
void code_space_destroy(struct code_space *space);

enum cairn_code_mode code_space_mode(const struct code_space *space);
/* Returns the reason why automatic mode chose single mapping; "" in all other cases. Valid as long
 * as the space. */
const char *code_space_mode_reason(const struct code_space *space);
/* Returns the queue of everything that waits for a grace period, of the layers above, too. */
struct grace *code_space_grace(struct code_space *space);
/* Makes profilers see code as anonymous memory, as far as code has not been loaded yet: there they
 * look for names. Errors: SYSTEM. */
enum cairn_status code_space_make_visible(struct code_space *space, struct cairn_error *error);
/* Returns the watchers of the space's code (code/watch.h). */
struct code_watchers *code_space_watchers(struct code_space *space);
/* Returns the key of the written views (code/write_key.h). */
int code_space_write_key(const struct code_space *space);
const struct cairn_arch *code_space_arch(const struct code_space *space);
/* Returns memory that was released to the system, except a few pages of each slab: once for all of
 * it, because each call for a page takes longer than loading a small module. Called at the end of
 * grace periods. */
void code_space_clean(struct code_space *space);
void code_space_statistics(struct code_space *space, struct cairn_runtime_statistics *statistics);

/* Set the fields of spaces and slabs, and of blocks, for readers in other processes
 * (base/inspect.h). */
void code_space_inspect(struct inspect_field *fields);
void code_block_inspect(struct inspect_field *fields);

/* ---- Forked children; see code/fork.c ---- */

enum code_space_stage {
    CODE_SPACE_INHERITED = 0, /* forked without handlers: locks and code are the parent's */
    CODE_SPACE_OWN = 1,       /* not forked, or everything belongs to this process */
    CODE_SPACE_RENEWED = 2    /* forked: the locks are new, but code is shared with the parent */
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
    /* Writes these words with code_block_write_copy. Called in the child, with all locks held or
     * while it has one thread. */
    void (*write_words)(void *user);
};

/* Sets the client, or removes it if `client` is NULL. */
void code_space_set_fork_client(struct code_space *space, const struct code_fork_client *client,
                                void *user);

/* Makes all locks anew and the code the child's own, in a child in which no fork handler could do
 * that. Does nothing in other processes. Called with no lock of the space or its client held. On
 * SYSTEM, the child executes the same code as before, and the call may be repeated. */
enum cairn_status code_space_after_fork(struct code_space *space, struct cairn_error *error);

/* Returns the stage. Takes one load if the kernel has MADV_WIPEONFORK (Linux 4.14), a call of
 * getpid otherwise. Async-signal-safe. */
static inline enum code_space_stage code_space_stage(const struct code_space *space);
/* Whether code can be changed. If not, this is a child that shares it with its parent, and
 * code_space_after_fork must be called first. */
static inline bool code_space_is_own(const struct code_space *space);
/* Returns SYSTEM if code cannot be changed. */
static inline enum cairn_status code_space_check_own(const struct code_space *space,
                                                     struct cairn_error *error);

/* Makes every other core execute a core-serialising event between the call and the return. Errors:
 * UNSUPPORTED if the kernel has no membarrier with SYNC_CORE, in every mode; SYSTEM.
 * Async-signal-safe. */
enum cairn_status code_space_synchronise(struct code_space *space, struct cairn_error *error);
/* Whether there are such barriers. If they were refused before, tries again. */
bool code_space_can_synchronise(struct code_space *space);

/* ---- From a PC to its owner: lock-free, async-signal-safe ----
 *
 * Blocks have an owner from code_block_publish until they are destroyed. In between they may be
 * retired: then their code is only found by those who have it on a stack. Such a block cannot be
 * freed, because the thread of that stack has not passed its quiescent point. Any other PC may be
 * that of a block that is being freed. The same holds for stubs that are retired. */

/* Returns the owner of the published code or data at `pc`, or NULL. `pc` may be any number. */
static inline void *code_space_find_owner(const struct code_space *space, uint64_t pc);

/* Returns the owner of the published or retired code at `pc`, or NULL. `pc` must be that of a
 * frame: of the calling thread, or of a thread that is stopped meanwhile. */
static inline void *code_space_find_frame_owner(const struct code_space *space, uint64_t pc);

/* Returns the owner of the stub that contains `pc`, or NULL. The stub may be retired. `pc` must be
 * that of a frame, too. */
static inline void *code_space_find_stub_owner(const struct code_space *space, uint64_t pc);

/* Whether `pc` is in a slab, which may hold code, data, a veneer, or nothing there. */
bool code_space_holds(const struct code_space *space, uint64_t pc);

/* The fields that the inline functions read. Every space begins with them. No other code may use
 * them. */
struct code_slab_lookup {
    uint64_t base;
    uint64_t size;
    const _Atomic uintptr_t *owners; /* code/owners.h */
};

struct code_lookup {
    struct code_slab_lookup first_slab; /* constant */
    /* The stage, in a page that fork wipes; NULL if the kernel cannot wipe pages. */
    const _Atomic uint32_t *own_mark;
    struct log_sink sink; /* of the runtime's events */
};

/* Marks in an owner: of a stub; of a retired block. Owners are aligned to 8 bytes, and bit 0 is
 * reserved (code/owners.h). */
enum { CODE_OWNER_STUB = 2, CODE_OWNER_RETIRED = 4 };
enum { CODE_OWNER_MARKS = CODE_OWNER_STUB | CODE_OWNER_RETIRED };

uintptr_t code_space_owner_beyond_first_slab(const struct code_space *space, uint64_t pc);
enum code_space_stage code_space_stage_by_process(const struct code_space *space);
enum cairn_status code_space_refuse(struct cairn_error *error);

/* Returns the owner with its mark. */
static inline uintptr_t code_space_marked_owner(const struct code_space *space, uint64_t pc)
{
    const struct code_lookup *lookup = (const struct code_lookup *)space;
    uint64_t offset = pc - lookup->first_slab.base;
    if (__builtin_expect(offset >= lookup->first_slab.size, 0))
        return code_space_owner_beyond_first_slab(space, pc);
    return (uintptr_t)owners_find(lookup->first_slab.owners, offset >> OWNERS_UNIT_SHIFT);
}

static inline void *code_space_find_owner(const struct code_space *space, uint64_t pc)
{
    uintptr_t owner = code_space_marked_owner(space, pc);
    return (owner & CODE_OWNER_MARKS) == 0 ? (void *)owner : NULL;
}

static inline void *code_space_find_frame_owner(const struct code_space *space, uint64_t pc)
{
    uintptr_t owner = code_space_marked_owner(space, pc);
    return (owner & CODE_OWNER_STUB) == 0 ? (void *)(owner & ~(uintptr_t)CODE_OWNER_RETIRED) : NULL;
}

static inline void *code_space_find_stub_owner(const struct code_space *space, uint64_t pc)
{
    uintptr_t owner = code_space_marked_owner(space, pc);
    return (owner & CODE_OWNER_STUB) != 0 ? (void *)(owner - CODE_OWNER_STUB) : NULL;
}

static inline enum code_space_stage code_space_stage(const struct code_space *space)
{
    const struct code_lookup *lookup = (const struct code_lookup *)space;
    if (__builtin_expect(lookup->own_mark == NULL, 0))
        return code_space_stage_by_process(space);
    return (enum code_space_stage)atomic_load_explicit(lookup->own_mark, memory_order_acquire);
}

/* Returns where the events of the space's runtime go. */
static inline struct log_sink *code_space_sink(struct code_space *space)
{
    return &((struct code_lookup *)space)->sink;
}

static inline bool code_space_is_own(const struct code_space *space)
{
    return code_space_stage(space) == CODE_SPACE_OWN;
}

static inline enum cairn_status code_space_check_own(const struct code_space *space,
                                                     struct cairn_error *error)
{
    return code_space_is_own(space) ? CAIRN_OK : code_space_refuse(error);
}

/* ---- Blocks: the memory of one module ---- */

/* Creates a block, together with `user_bytes` bytes of memory for the caller, which are filled with
 * zeros and valid as long as the block. Errors: MEMORY. */
enum cairn_status code_block_create(struct code_space *space, size_t user_bytes,
                                    struct code_block **block, struct cairn_error *error);
/* Return the caller's memory of a block, and the block of that memory. */
void *code_block_user(struct code_block *block);
struct code_block *code_block_of_user(const void *user);

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

/* Memory in a block that is being loaded. */
struct code_place {
    uint8_t *bytes;   /* where it is written */
    uint64_t address; /* where it is used */
};

/* The same for a section whose size will not change. In dual mapping it takes no page of its own,
 * and only data can be written at its address. The contents of code and read-only data are
 * unspecified at first. */
enum cairn_status code_block_reserve(struct code_block *block, enum page_use use, size_t size,
                                     size_t alignment, struct code_place *place,
                                     struct cairn_error *error);

/* Returns where the byte that will be used at `address` is written before protection. */
uint8_t *code_block_load_address(const struct code_block *block, uint64_t address);

/* Makes code read-execute and read-only data read-only, permanently. Releases pages in which
 * nothing was allocated. Errors: STATE if the block was protected before; SYSTEM, after which the
 * block can only be destroyed. */
enum cairn_status code_block_protect(struct code_block *block, struct cairn_error *error);

/* Makes `owner` the owner of the block's code and data. Errors: ARGUMENT (`owner` is NULL), STATE
 * (not protected, or already published), MEMORY, SYSTEM. */
enum cairn_status code_block_publish(struct code_block *block, void *owner,
                                     struct cairn_error *error);
/* Makes the owner of a published block one that only frames find. */
void code_block_retire(struct code_block *block);
/* Returns the owner of a published block, retired or not; NULL if the block has no memory. */
void *code_block_owner(const struct code_block *block);

/* Releases the block's memory and veneers. No thread may execute them any more. NULL is allowed. */
void code_block_destroy(struct code_block *block);

struct code_space *code_block_space(const struct code_block *block);

/* A range of the memory of a block or module. */
struct memory_range {
    uint64_t address;
    size_t size; /* in bytes */
    bool executable;
    bool writable;
};

/* Returns a range of the block's memory with its current protection; false if `index` is past the
 * last. The range does not overlap that of another block. */
bool code_block_memory_range(const struct code_block *block, uint32_t index,
                             struct memory_range *range);
/* Whether `size` bytes at `address` are in the block's code. Async-signal-safe. */
bool code_block_holds_code(const struct code_block *block, uint64_t address, size_t size);
/* Returns the end of the block's code that contains `address`, or 0. */
uint64_t code_block_code_end(const struct code_block *block, uint64_t address);
/* Whether `size` bytes at `address` are in the block's data, read-only or writable. */
bool code_block_holds_data(const struct code_block *block, uint64_t address, size_t size);

/* ---- Veneers: stubs that enter the function whose pointer is in an aligned slot ---- */

/* The unit in which space for veneers and stubs is taken. */
enum { CODE_STUB_UNIT = 16 };

enum code_veneer_kind {
    CODE_VENEER_PLAIN, /* jumps to the function */
    CODE_VENEER_FRAMED /* calls the function; not on all architectures */
};

struct code_veneer {
    uint64_t address; /* address of the code; 0: there is no veneer */
    /* Two words: the function pointer, which is written with one aligned store; and the address of
     * the site's instruction that jumps to the veneer, for walks; 0 if no site jumps to it. */
    _Atomic uint64_t *slot;
};

/* Returns the size and alignment of the space that a veneer of so many bytes is in: a power of two,
 * so that the veneer is in one page, and its start is found from any of its instructions. */
static inline size_t code_veneer_space(size_t bytes)
{
    size_t space = CODE_STUB_UNIT;
    while (space < bytes)
        space *= 2;
    return space;
}

/* Adds a veneer to the block, in the block's slab, with `target` in its slot. It is visible to all
 * cores when this function returns, and is released with the block. The slot is on a private page,
 * so that a forked child has its own. Errors: FULL, SYSTEM, MEMORY, STATE (the block has no memory
 * yet). */
enum cairn_status code_block_add_veneer(struct code_block *block, enum code_veneer_kind kind,
                                        uint64_t target, struct code_veneer *veneer,
                                        struct cairn_error *error);

/* ---- Stubs: code of Cairn's own, which is added and removed while threads run ---- */

/* Maximum size of a stub, in bytes, and alignment of stubs that lookups find. */
enum { CODE_STUB_BYTES_MAX = 8192, CODE_STUB_ALIGNMENT = 32 };

/* The description of a stub. It is allocated together with the stub's code, so that retiring the
 * stub cannot fail, and in private memory, of which a forked child has a copy. Descriptions of the
 * layers above begin with it. */
struct code_stub {
    struct grace_entry retired;
    struct code_space *space;
    uint64_t address;
    uint16_t code_bytes;
    uint16_t description_bytes;
    _Atomic bool is_retired;
    bool has_slot; /* whether it is the first member of a struct code_slotted_stub */
};

struct code_slotted_stub {
    struct code_stub stub;
    _Atomic uint64_t *slot; /* NULL until it has been taken; the word after it is 0 */
};

/* Encodes a stub that will be executed at stub->address, in at most CODE_STUB_BYTES_MAX bytes, and
 * may fill in the rest of its description, which contains zeros. The size must not depend on the
 * address. Must take no lock. */
typedef enum cairn_status code_stub_encoder(struct code_stub *stub, void *user, uint8_t *code,
                                            size_t *size, struct cairn_error *error);

struct code_stub_request {
    code_stub_encoder *encode;
    void *user;
    /* The block in whose slab the stub must be, so that it is within reach of the block's code. If
     * it is NULL, the stub may be in any slab. */
    const struct code_block *block;
    void *owner;       /* owner for lookups, aligned to 8; NULL: lookups do not find it */
    const char *label; /* its purpose, for watchers */
    const void *site;  /* the site that it is made for, for watchers; or NULL */
    bool is_called;    /* whether that site calls it, for watchers */
    size_t code_bytes; /* 0: the stub is also encoded for some address, to find out its size */
    /* Whether the stub has a slot like a veneer's, which is 0 at first: 8 bytes of the slab's
     * writable data, on a private page. `code_bytes` must be set, and the description begins with
     * struct code_slotted_stub. */
    bool has_slot;
    size_t description_bytes; /* size of the description that begins with struct code_stub */
};

/* Adds a stub: takes space, encodes the stub, writes it, and makes it visible to all cores. A
 * branch to it may be stored afterwards. The address is a multiple of CODE_STUB_ALIGNMENT if the
 * stub has an owner, otherwise of 16. In dual mapping this takes a lock, but makes no system call
 * unless a page must be added, code was released in the slab since the last barrier, or the
 * architecture needs a barrier for new code. Errors: FULL, MEMORY, SYSTEM, and those of the
 * encoder; no stub remains. */
enum cairn_status code_space_add_stub(struct code_space *space,
                                      const struct code_stub_request *request,
                                      struct code_stub **stub, struct cairn_error *error);

/* Frees a stub that no thread executes any more, and its description. NULL is allowed, here and in
 * code_stub_retire. */
void code_stub_free(struct code_stub *stub);

/* Retires a stub that threads may be executing: it is freed when a grace period has ended that
 * began after this call. Until then, another call has no effect. */
void code_stub_retire(struct code_stub *stub);

/* ---- Writing to protected code ---- */

/* Returns the writable address of code that is executed at `address`. NULL if the code is not in
 * dual mapping, or if `address` is not in the block's code. The result stays the same for the life
 * of the block, in a forked child too. */
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

/* Fills in write number `index`. It is called several times for each write, with the space's lock
 * held, and must do the same each time. `bytes` are valid until the next call. */
typedef void code_write_source(void *user, size_t index, struct code_write *write);

/* Makes `count` writes in their order; only with a single mapping. `*made` is the number of writes
 * that have been made, from the first one on: all of them, unless there is an error. Writes that
 * follow each other in a slab take effect at the same moment, unless a module that is being loaded
 * is between them. Errors: SYSTEM, UNSUPPORTED. */
enum cairn_status code_space_write_all(struct code_space *space, code_write_source *source,
                                       void *user, size_t count, size_t *made,
                                       struct cairn_error *error);

#endif
