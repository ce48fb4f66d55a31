/*
 * cairn/patch.h - changing patch points and stack map shadows while threads execute them.
 *
 * A site is a patch point, or the shadow of a stack map: bytes of compiled code that the host may
 * change. Each of its verbs is one call:
 *
 *     cairn_site *site = cairn_runtime_find_site(runtime, id, &error);
 *     cairn_site_call(site, (const void *)target, CAIRN_SYNC, &error)
 *     cairn_site_restore(site, CAIRN_SYNC, &error)
 *
 * Many sites change with one barrier (cairn_sites_change).
 *
 * THE GUARANTEE
 *
 * Any number of threads may execute a managed site, be interrupted in it, or have pending calls
 * from it. Each execution does exactly the old thing or exactly the new thing. When a synchronised
 * change (CAIRN_SYNC) has returned, executions that start afterwards do the new thing. Pending
 * calls return to where they were made. No executing thread blocks, traps or spins. Everything that
 * can fail fails before the first write, with two exceptions (SYSTEM, below). A list of changes is
 * atomic for each site, not across sites.
 *
 * The old thing and the new thing are those of the changes that overlap the execution. A change
 * takes effect at one moment between the call and the return of the function that makes it. If
 * several changes of one site overlap, the last one wins as a whole.
 *
 * Before a module is published, each of its sites is rewritten into a form for which this holds:
 *
 *   (A) Every write after publication is one aligned store to one word, the patch word, and the old
 *       and the new instruction in it have the same boundaries.
 *   (B) Nothing after the call changes, so every saved return address stays valid. (An inline cache
 *       may write there, but only in sites that have never been a call, and only while the patch
 *       word is a branch and no thread can be in those bytes: cairn/ic.h. The no-op of such a site
 *       is a jump over them.)
 *   (C) Nothing before it changes, so a thread that is stopped anywhere in the region continues
 *       correctly.
 *   (D) Stubs and their slots are written, and visible to all cores, before the store that makes
 *       them reachable.
 *
 * HARDWARE. (A) needs a processor that executes either the old or the new instruction when another
 * core stores one aligned word.
 *
 *   - AArch64 guarantees this if both instructions are B, BL, BRK, HVC, ISB, NOP, SMC or SVC (Arm
 *     ARM, DDI 0487, B2.2.5, "Concurrent modification and execution of instructions"). Recent
 *     issues add conditional branches, which Cairn does not rely on.
 *   - The Power ISA guarantees it for its patch class: I-form branches (b, bl) and the preferred
 *     no-op (Book II, "Concurrent Modification and Execution of Instructions").
 *   - AMD guarantees it for a single store within a naturally aligned quadword: no instruction is
 *     then executed half old and half new (AMD64 APM, volume 2, 7.6.1, "Cross-Modifying Code",
 *     asynchronous modification).
 *   - Intel does not guarantee it. The SDM (volume 3, "Handling Self- and Cross-Modifying Code")
 *     requires the other processors to wait, and to execute a serialising instruction first.
 *     Specification updates of several processors list unsynchronised cross-modifying code as an
 *     erratum. Cairn relies on common practice: HotSpot changes calls and method entries, and XRay
 *     its sleds, by aligned stores while threads execute them. Linux is more careful: jump labels
 *     and static calls are changed through a one-byte breakpoint (text_poke_bp), and all cores are
 *     synchronised between the steps. A host that must follow Intel's text patches with
 *     CAIRN_QUIESCENT.
 *
 * LIFETIME OF TARGETS. A thread may have executed the call but not yet the veneer after it, or it
 * may be in the old target. So the host may free a target that was replaced only when no thread can
 * be in the site or the target any more. Only the host can know that (a quiescent point).
 *
 * STATES. A managed site is a no-op, a call or a jump. A call returns to the address after the call
 * instruction; the site's calling convention determines arguments and result. A jump does not
 * return: its target owns the frame of the function that the site is in. Targets may be anywhere.
 * Targets out of reach of a direct branch, and all targets on PPC64, are reached through a veneer.
 * A veneer changes no flag, and only those registers that the ABI lets code between caller and
 * callee change: none on x86-64, x16 on AArch64, r12 and CTR on PPC64, and r11 with ELFv1. On
 * PPC64 a call preserves r2. The target of a jump finds the function's r2 at 24(r1), with ELFv1 at
 * 40(r1).
 *
 * STACK MAPS. Most shadows hold LLVM's own instructions. A shadow is live, which means that it can
 * be changed while threads execute it, in two cases: it begins with no-ops (it is then like a patch
 * point without a target), or a branch can replace the instruction at its address while threads
 * execute it. On x86-64 this is an instruction within one aligned word that cannot be interrupted
 * half-way, as string instructions and gathers can. On AArch64 and PPC64 it is an instruction of
 * the lists above, which in practice means a branch. Other shadows can be changed only with
 * CAIRN_QUIESCENT. Code that must be invalidated while threads execute it should have a patch point
 * with a null target instead.
 *
 * Nothing is written outside the declared shadow, across another record's address, or past the end
 * of the function, as far as stack maps and unwind tables tell it. Changes replace instructions.
 * The host is responsible for what a no-op, or a call that returns, leaves out.
 * cairn_site_restore writes the original instructions again. A call in place of an instruction has
 * no arguments. On PPC64 it is made through a veneer with a frame of its own: the target finds r1
 * lower by 112 bytes (ELFv1: 128) and returns into the veneer, which returns to the address after
 * the site's instruction. This veneer changes only r12 and LR. Exits (cairn/exit.h) and walks
 * (cairn/frame.h) see the site's frame as if there were no veneer.
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
 *  static. */
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
    /** Why the site is not live; "" if it is. Valid as long as the module. */
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

/** Returns the site with this ID. Several records may have the ID, but all of them together must
 *  have one site.
 *
 *  Errors: returns NULL. NOT_FOUND: there is no site. CONFLICT: there are several.
 *
 *  Lock-free and async-signal-safe, allocates nothing. Takes O(m + r log s) time for m modules
 *  whose IDs may include this one, r records with the ID, and s sites in a module. */
CAIRN_API cairn_site *cairn_runtime_find_site(const cairn_runtime *runtime, uint64_t id,
                                              struct cairn_error *error);

/* ---- Changing one site ---- */

enum cairn_strength {
    /** The store alone. Other cores see it soon. */
    CAIRN_RELAXED = 0,
    /** The store and a barrier. Executions that start after the function has returned do the new
     *  thing on every core. */
    CAIRN_SYNC = 1,
    /** As SYNC. In addition, the host promises that until the function returns, no thread executes
     *  the region, is stopped in it or has a return address into it, and that no other thread
     *  changes the site. Needed where more than one instruction changes: for shadows that are not
     *  live. */
    CAIRN_QUIESCENT = 2
};

/*
 * The following holds for all functions that change sites.
 *
 * A site is valid until a grace period frees its module (cairn/runtime.h). After the module was
 * retired, the site is not found any more by its ID, but it can be described and changed as before,
 * because threads may still be in its code. It can get no inline cache.
 *
 * Changing one site is thread-safe, except with CAIRN_QUIESCENT. With a dual mapping, a change of
 * one live site takes no lock, allocates nothing and is async-signal-safe, with one exception. A
 * target out of reach of the direct branch (+-2 GiB on x86-64, +-128 MiB on AArch64), and any
 * target on PPC64, needs a veneer of the site that no thread is using. A site keeps its veneers. It
 * makes one, with a lock, the first two times that it gets such a target, for calls and for jumps,
 * and when more threads than ever before change it at the same time. With a single mapping, a
 * change takes a lock and makes system calls.
 *
 * Errors, after which nothing has changed:
 * ARGUMENT: the target is NULL; there is no site; the strength is invalid.
 * UNMANAGED: the site is not live, its module is published, and the strength is not QUIESCENT. The
 * message gives the reason.
 * STATE: the site has an inline cache (only the cache changes it, until cairn_ic_destroy); or the
 * site is to be a call, and threads may still be in code that a destroyed cache has left in it
 * (until a grace period ends that began later).
 * RANGE: there is no space for a branch, or, in the region of a patch point or statepoint on PPC64,
 * for a call with what it needs around it (12 bytes in all).
 * UNSUPPORTED: SYNC or QUIESCENT on a system without a barrier (cairn_runtime_statistics).
 * FULL, MEMORY, SYSTEM: no veneer could be made, or with a single mapping the page could not be
 * replaced; or the process is a child that shares its code with its parent (cairn/runtime.h).
 *
 * Errors after the change:
 * SYSTEM: the barrier was refused. The change has been made, as with CAIRN_RELAXED. The host makes
 * the same change again, which requests the barrier again, or it stops its threads. Any later
 * change with a barrier completes this one, too.
 *
 * A change of a site must not overlap the cairn_ic_create for that site: a change that began
 * earlier may store its instruction after the cache's (cairn/ic.h). It may overlap everything else
 * that changes the site's cache, including cairn_ic_destroy.
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

/* ---- Changing many sites ---- */

struct cairn_site_change {
    cairn_site *site;
    enum cairn_site_state state; /**< what the site will do: not UNMANAGED */
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
 * Errors, in addition to those of changing one site: CONFLICT: a site is in the list twice.
 * ARGUMENT: sites of two runtimes. UNMANAGED: a site is not live, whatever the strength. Each
 * message names the site. With a single mapping, SYSTEM: the system refused to replace a page. The
 * changes before it in the list have been made; the message says how many.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_sites_change(
    const struct cairn_site_change *changes, size_t count, enum cairn_strength strength,
    struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
