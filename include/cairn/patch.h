/*
 * cairn/patch.h - changing patch points and stack map shadows while threads execute them.
 *
 *     cairn_site *site = cairn_runtime_find_site(runtime, id, &error);
 *     status = cairn_site_call(site, (const void *)target, CAIRN_SYNC, &error);
 *
 * THE GUARANTEE. Any number of threads may execute a live site, be interrupted in it, or have
 * pending calls from it. Each execution does exactly the old thing or exactly the new thing of the
 * changes that overlap it. Pending calls return to where they were made. No executing thread
 * blocks, traps or spins. A change takes effect at one moment between its call and its return; of
 * changes that overlap, the last one wins as a whole. When a change with CAIRN_SYNC has returned,
 * executions that start do the new thing on every core. Everything that can fail fails before the
 * first write, except that the system may refuse the barrier (SYSTEM). A list is atomic for each
 * site, not across sites.
 *
 * Threads: changes are thread-safe. With a dual mapping, those of one live site are
 * async-signal-safe, too, unless they need a veneer.
 *
 * Not guaranteed: that a replaced target can be freed at once (the host must know that no thread is
 * in it or in the site), that the effect of a replaced instruction is not needed, and what Intel's
 * manual requires: a host that must follow it patches with CAIRN_QUIESCENT.
 *
 * See cairn-patching(7) (doc/patching.md): how the guarantee is kept, processors, stack maps.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_PATCH_H
#define CAIRN_PATCH_H

#include <cairn/declaration.h>
#include <cairn/module.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Describing sites ---- */

/** What a site does, or will do after a change. */
enum cairn_site_state {
    CAIRN_SITE_NOP = 0,
    CAIRN_SITE_CALL = 1,
    CAIRN_SITE_JUMP = 2,
    /** A stack map's shadow with LLVM's instructions. In a change: what the site did when its
     * module was published (cairn_site_restore). */
    CAIRN_SITE_ORIGINAL = 3,
    /** LLVM's instructions; not a shadow, and not live. No change makes this. */
    CAIRN_SITE_UNMANAGED = 4
};

/** Returns the name of a state: "no-op", "call", …; "unknown" for other numbers. The string is
 *  static. Thread-safe and async-signal-safe. */
CAIRN_API const char *cairn_site_state_name(enum cairn_site_state state);

struct cairn_site_description {
    uint64_t id;
    struct cairn_record record;
    enum cairn_record_kind kind;
    enum cairn_site_state state;
    uint64_t address;             /**< start of a patch point's reserved bytes, or of a shadow */
    uint32_t byte_count;          /**< size of the region in bytes */
    bool live;                    /**< can be changed while threads execute it */
    uint64_t instruction_address; /**< of the instruction that changes; 0 if the site is not live */
    uint64_t return_address;      /**< of a call at this site; 0 if there can be no call */
    uint64_t target;              /**< of the call or jump; otherwise 0 */
    bool uses_veneer;             /**< the call or jump goes through a veneer */
    /** The reason why the site is not live; "" if it is. Valid as long as the module. */
    const char *reason;
    /** The region's bytes as LLVM emitted them, and the current ones; `byte_count` bytes each,
     *  valid as long as the module. NULL if the region is empty, or is not wholly in the module's
     *  code. */
    const uint8_t *original_bytes;
    const uint8_t *bytes;
};

/** Describes the site at this moment: state and target belong together. Thread-safe and
 *  async-signal-safe. */
CAIRN_API void cairn_site_describe(const cairn_site *site,
                                   struct cairn_site_description *description);

/** Returns the site with this ID, or NULL after an error. Several records may have the ID, but all
 *  of them together must have one site.
 *
 *  Errors: NOT_FOUND: no site has the ID. CONFLICT: several sites have it.
 *
 *  Thread-safe, lock-free and async-signal-safe; allocates nothing. Takes O(m + r log s) time for m
 *  modules whose IDs may include this one, r records with the ID, and s sites in a module. */
CAIRN_API cairn_site *cairn_runtime_find_site(const cairn_runtime *runtime, uint64_t id,
                                              struct cairn_error *error);

/* ---- Changing one site ---- */

enum cairn_strength {
    /** The store alone. Other cores see it soon. */
    CAIRN_RELAXED = 0,
    /** The store and a barrier. Executions that start after the function has returned do the new
     *  thing on every core. */
    CAIRN_SYNC = 1,
    /** As CAIRN_SYNC. In addition, the host promises that until the function returns, no thread
     *  executes the region, is stopped in it or has a return address into it, and that no other
     *  thread changes the site. Needed where more than one instruction changes: for shadows that
     *  are not live. */
    CAIRN_QUIESCENT = 2
};

/*
 * A site is valid until a grace period frees its module (cairn/runtime.h). Lookups do not find the
 * sites of a retired module. They can still be described and changed, because threads may be in its
 * code, but get no inline cache.
 *
 * Threads: thread-safe, except with CAIRN_QUIESCENT. With a dual mapping, a change of one live site
 * takes no lock, allocates nothing and is async-signal-safe, with one exception. A target out of
 * reach of the direct branch (+-2 GiB on x86-64, +-128 MiB on AArch64), and any target on PPC64,
 * needs a veneer of the site that no other change is using. If all are in use, another is made with
 * a lock; cairn_site_reserve makes them beforehand. With a single mapping, a change takes a lock
 * and makes system calls.
 *
 * Errors, after which nothing has changed:
 * ARGUMENT: the target or the site is NULL; the strength is invalid.
 * UNMANAGED: the site is not live, its module is published, and the strength is not
 * CAIRN_QUIESCENT. The message gives the reason.
 * STATE: the site has an inline cache (only the cache changes it, until cairn_ic_destroy); or the
 * site is to be a call, and threads may still be in code that a destroyed cache has left in it
 * (until a grace period ends that began later).
 * RANGE: the region has no space for a branch, or, in the region of a patch point or statepoint on
 * PPC64, for a call with what it needs around it (12 bytes in all).
 * UNSUPPORTED: CAIRN_SYNC or CAIRN_QUIESCENT on a system without a barrier
 * (cairn_runtime_statistics).
 * FULL, MEMORY, SYSTEM: no veneer could be made, or with a single mapping the page could not be
 * replaced; or the process is a child that shares its code with its parent (cairn/runtime.h).
 *
 * Errors after the change:
 * SYSTEM: the barrier was refused. The change has been made, as with CAIRN_RELAXED. The host makes
 * the same change again, which requests the barrier again, or it stops its threads. Any later
 * change with a barrier completes this one, too.
 *
 * A change must not overlap the site's cairn_ic_create, but may overlap everything else that
 * changes its cache, including cairn_ic_destroy.
 *
 * `target` is a C function pointer (on PPC64 ELFv1 the address of a descriptor).
 */

/** Makes the site call `target`, which returns to the address after the call instruction. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_site_call(cairn_site *site, const void *target,
                                                             enum cairn_strength strength,
                                                             struct cairn_error *error);

/** Makes the site jump to `target`, which never returns to the site: it finds the frame of the
 *  function that the site is in, and leaves it as that function would. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_site_jump(cairn_site *site, const void *target,
                                                             enum cairn_strength strength,
                                                             struct cairn_error *error);

/** Makes the site do nothing. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_site_nop(cairn_site *site,
                                                            enum cairn_strength strength,
                                                            struct cairn_error *error);

/** Makes the site do what it did when its module was published: a patch point's initial target or
 *  no-op, a shadow's own instructions. If more than one instruction was changed (with
 *  CAIRN_QUIESCENT or before publication), they can be restored only in the same way; otherwise
 *  STATE or UNMANAGED. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_site_restore(cairn_site *site,
                                                                enum cairn_strength strength,
                                                                struct cairn_error *error);

/* ---- Changes in signal handlers ---- */

/**
 * Makes the veneers that `count` changes of the site need at once. From then on, up to `count`
 * threads and signal handlers may be changing the site at the same time, to calls and jumps of any
 * targets, without a lock: a handler may interrupt whatever Cairn was doing. The veneers are kept
 * until the module is freed. There are two for each change, of 32 to 144 bytes (arch/README.md).
 * In a forked child, a veneer may belong to a change of a thread that the child does not have, so
 * the child reserves again. Takes O(count + v) time for v veneers of the site.
 *
 * Errors: ARGUMENT: the site is NULL. UNMANAGED: it is not live. UNSUPPORTED: the code has a single
 * mapping, with which every change takes a lock. FULL, MEMORY, SYSTEM: not all could be made; the
 * others are kept.
 *
 * Threads: thread-safe, but not async-signal-safe.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_site_reserve(cairn_site *site, uint32_t count,
                                                                struct cairn_error *error);

/* ---- Changing many sites ---- */

struct cairn_site_change {
    cairn_site *site;
    enum cairn_site_state state; /**< what the site will do: not CAIRN_SITE_UNMANAGED */
    const void *target;          /**< of a call or jump; otherwise ignored */
};

/**
 * Makes `count` changes of live sites of one runtime, in their order, and then executes one
 * barrier. A list without changes is a success. The list is read only during the call.
 *
 * Thread-safe; it allocates memory for the time of the call, so it is not async-signal-safe. Takes
 * O(n) time. With a single mapping, changes that follow each other in the list and are in one slab
 * take one system call.
 *
 * Errors: as cairn_site_call; each message names the site. CONFLICT: a site is in the list twice.
 * ARGUMENT: also sites of two runtimes. UNMANAGED: a site is not live, whatever the strength.
 * SYSTEM: with a single mapping, the system refused to replace a page. The changes before it in the
 * list have been made; the message says how many.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_sites_change(
    const struct cairn_site_change *changes, size_t count, enum cairn_strength strength,
    struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
