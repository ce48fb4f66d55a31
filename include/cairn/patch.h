/*
 * cairn/patch.h - rewriting patch points and stack map shadows while threads run.
 *
 * THE GUARANTEE
 *
 * While any number of threads execute, are interrupted in, or have calls pending from a managed
 * site, each execution of it does exactly the old or exactly the new thing. When the patch
 * function returns from a synchronised patch (CAIRN_SYNC), executions that start afterwards do
 * the new thing. Calls already made return to where they came from. On error every site of the
 * batch does what it would do without the batch: what it did before, or what others have made of it
 * meanwhile. No executing thread blocks, traps or spins (except in Toggle mode, see
 * cairn/runtime.h). Batches are atomic per site, not across sites.
 *
 * "The old thing" and "the new thing" are those of patches that overlap the execution. A patch
 * takes effect at one moment between call and return of the patch function; of several that
 * overlap, the last one wins, whole.
 *
 * It rests on the armed form that each site is given before its module is published:
 *
 *   (A) Every write after publication is one aligned store into one word, the patch word, and
 *       the old and the new instruction in it have the same boundaries.
 *   (B) Nothing after the call changes, so that every saved return address stays good.
 *   (C) Nothing before it changes, so that a thread stopped anywhere in the region goes on
 *       correctly.
 *   (D) Stubs and their slots are written and visible to all cores before the store that exposes
 *       them.
 *
 * WHAT IT RESTS ON. (A) needs a processor that executes either the old or the new instruction when
 * another core stores one aligned word.
 *
 *   - AArch64 promises this where both instructions are in a list: B, BL, BRK, HVC, ISB, NOP, SMC,
 *     SVC (Arm ARM, DDI 0487, B2.2.5, "Concurrent modification and execution of instructions").
 *     Recent issues add conditional branches, which Cairn does not count on.
 *   - The Power ISA promises it for its patch class: I-form branches (b, bl) and the preferred
 * no-op (Book II, "Concurrent Modification and Execution of Instructions").
 *   - AMD promises it for a single store within a naturally aligned quadword; one instruction is
 *     then never executed half old and half new (AMD64 APM, volume 2, 7.6.1, "Cross-Modifying
 * Code", asynchronous modification).
 *   - Intel does not promise it. The SDM (volume 3, "Handling Self- and Cross-Modifying Code") asks
 *     for the other processors to wait and to execute a serialising instruction first, and
 *     specification updates of several processors list unsynchronised cross-modifying code as an
 *     erratum. What can be counted on is practice: HotSpot changes calls and method entries, and
 *     XRay its sleds, under running threads by aligned stores, as Cairn does. Linux is more
 * careful: jump labels and static calls go through a one-byte breakpoint (text_poke_bp), with all
 * cores synchronised between the steps. A host that wants no more than Intel's text patches with
 *     CAIRN_QUIESCENT.
 *
 * What an old target needs to live for: a thread may have executed the call and not yet the veneer
 * behind it, or be inside the old target. So a target that was replaced may go when no thread can
 * be in the site or in the target any more, which the host knows (a quiescent point), not Cairn.
 *
 * STATES. A managed site is a no-op, a call or a jump. A call returns behind the call
 * instruction; arguments and result are as the site's calling convention says. A jump does not
 * return: its target owns the frame of the function that it left. Targets may be anywhere; those
 * out of the direct call's reach, and on PPC64 all, go through a veneer. It changes no flag, and of
 * the registers those that the ABI leaves to code between caller and callee: none on x86-64, x16 on
 * AArch64, r12 and CTR on PPC64, and r11 with ELFv1. On PPC64 a call leaves r2 as it was, and the
 * target of a jump finds the r2 of the function that it left at 24(r1), with ELFv1 at 40(r1).
 *
 * STACK MAPS. A stack map's shadow holds LLVM's own instructions, mostly. It is live if it begins
 * with no-ops (then it is like a patch point without target), or if the instruction at its address
 * is one that a branch can replace while it is executed: on x86-64 one within one aligned word that
 * is never interrupted half-way, as string instructions and gathers are; on AArch64 and PPC64 one
 * of those listed above, so in practice a branch. Otherwise it can be patched with
 * CAIRN_QUIESCENT alone; and code that has to be invalidated while threads run should have a patch
 * point with a null target instead. Nothing is ever written beyond the declared shadow, nor across
 * another record's address, nor beyond the end of the function, as far as stack maps and unwind
 * tables tell it. Patching replaces instructions: what a call that returns, or a no-op, leaves out
 * is the host's concern. cairn_site_restore brings them back. A call in place of an instruction has
 * no arguments. On PPC64 it goes through a veneer with a frame of its own: the target finds r1
 * lower by 112 bytes (ELFv1: 128) and returns into the veneer, which returns behind the site's
 * instruction, and which itself changes r12 and LR only. Exits (cairn/deopt.h) and walks
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

enum cairn_site_state {
    /** As LLVM left it. */
    CAIRN_SITE_UNMANAGED = 0,
    CAIRN_SITE_NOP = 1,
    CAIRN_SITE_CALL = 2,
    CAIRN_SITE_JUMP = 3,
    /** The host's own bytes (cairn_site_write). */
    CAIRN_SITE_WRITTEN = 4,
    /** A stack map's shadow holding the instructions that LLVM put there. */
    CAIRN_SITE_ORIGINAL = 5
};

/** "no-op", "call", …; static. */
CAIRN_API const char *cairn_site_state_name(enum cairn_site_state state);

struct cairn_site_description {
    uint64_t id;
    struct cairn_record record;
    enum cairn_record_kind kind;
    enum cairn_site_state state;
    /** The region: a patch point's reserved bytes, or a stack map's shadow. */
    uint64_t address;
    uint32_t byte_count;
    /** May be patched while threads execute it. */
    bool live;
    /** Of the instruction that changes; 0 if the site is not live. */
    uint64_t instruction_address;
    /** Where a call at this site returns to; 0 if it cannot be one. */
    uint64_t return_address;
    /** Of the call or jump; 0 otherwise. */
    uint64_t target;
    /** The call or jump goes through a veneer. */
    bool uses_veneer;
    /** Why the site is not live; "" if it is. As long-lived as the module. */
    const char *reason;
    /** Of the region's bytes: as LLVM emitted them, and as they are now (`byte_count` bytes
     *  each). As long-lived as the module. NULL if there are none, or not all of them in the
     *  module's code. */
    const uint8_t *original_bytes;
    const uint8_t *bytes;
};

/** Fills in `description`. Thread-safe; state and target are of one moment. Async-signal-safe. */
CAIRN_API void cairn_site_describe(const cairn_site *site,
                                   struct cairn_site_description *description);

/** Finds the site with this ID, if all of the runtime's published records with the ID have just one
 *  between them, however many records these are; otherwise NULL: NOT_FOUND, or CONFLICT if there
 * are several sites. Takes no lock and allocates nothing; async-signal-safe. Takes O(m + r log s)
 * time for m modules whose IDs may include this one, r records with the ID, and s sites in a
 * module. */
CAIRN_API cairn_site *cairn_runtime_find_site(const cairn_runtime *runtime, uint64_t id,
                                              struct cairn_error *error);

enum cairn_strength {
    /** The store alone: other cores see it soon. */
    CAIRN_RELAXED = 0,
    /** Executions that start after the function returned do the new thing, on every core. */
    CAIRN_SYNC = 1,
    /** SYNC; and the host promises that, until the function returns, no thread executes the
     *  region, is stopped in it or has a return address into it, and that none changes the site.
     *  Needed where more than one instruction changes: cairn_site_write, and shadows that are not
     *  live. */
    CAIRN_QUIESCENT = 2
};

/*
 * Patching one site. Thread-safe, except with CAIRN_QUIESCENT.
 *
 * A site is valid until the quiescent point after its module was retired. Once the module is
 * retired, patching is refused (STATE) and describing still works.
 *
 * In Dual mode, patching a live site takes no lock, allocates nothing and is async-signal-safe, but
 * for two cases. (1) A target out of the direct call's reach (+-2 GiB on x86-64, +-128 MiB on
 * AArch64), and on PPC64 any, needs a veneer of the site's own that no thread is using. The site
 * keeps those that it has made; it makes one, under a lock, the first and the second time that it
 * gets such a target, for calls and for jumps, and when more threads than ever before patch it at
 * the same time. (2) The first patch in a forked child gives the child's code a second view. Single
 * and Toggle mode take a lock and make system calls.
 *
 * Refused before the first write: ARGUMENT (target NULL, no site, no such strength); UNMANAGED (not
 * live, and neither QUIESCENT nor unpublished; the sentence says why); STATE (the module is
 * retired, the site holds the host's own bytes, or it has an inline cache, which alone changes it
 * until cairn_ic_destroy); RANGE (there is no room for a branch, or in a patch point's or
 * statepoint's region for what a call needs around it on PPC64: 12 bytes in all); UNSUPPORTED (SYNC
 * and QUIESCENT without a barrier, see cairn_runtime_statistics); FULL, MEMORY, SYSTEM (no
 * veneer, or in Single mode the page cannot be replaced). SYSTEM after it (the barrier was
 * refused): the site does the old thing again. In Single mode that takes a system call; if the
 * system refuses the barrier and then that call, too, the site does the new thing, and the sentence
 * says so.
 *
 * A patch of a site, alone or in a batch, must not overlap the cairn_ic_create for the site: a
 * patch that has begun before may put the site's new cache out of use (cairn/ic.h). It may overlap
 * everything else that changes the site's cache, cairn_ic_destroy included.
 *
 * `target` is a C function pointer (a descriptor's address on PPC64 ELFv1).
 */

/** The site calls `target`, which returns behind the call instruction. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_site_call(cairn_site *site, const void *target,
                                                             enum cairn_strength strength,
                                                             struct cairn_error *error);
/** The site jumps to `target`, which never returns to it: it finds the frame of the function that
 *  the site is in, and leaves it as that function would. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_site_jump(cairn_site *site, const void *target,
                                                             enum cairn_strength strength,
                                                             struct cairn_error *error);
/** The site does nothing. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_site_nop(cairn_site *site,
                                                            enum cairn_strength strength,
                                                            struct cairn_error *error);

/** Back to what the site was when its module was published: a patch point's first target or
 *  no-op, a shadow's own instructions. What was done with CAIRN_QUIESCENT (or before publishing) to
 *  more than one instruction is undone only with CAIRN_QUIESCENT (or before publishing), otherwise
 *  STATE or UNMANAGED. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_site_restore(cairn_site *site,
                                                                enum cairn_strength strength,
                                                                struct cairn_error *error);

/**
 * Whole-region patching: `size` bytes of the host's over all reserved bytes, padded with no-ops.
 * Only while the module is unpublished, or with CAIRN_QUIESCENT; otherwise STATE. More bytes than
 * there are: RANGE. Parts of instructions, where all have one size: ARGUMENT. In a stack map's
 * shadow the no-ops end with the last of LLVM's instructions that is overwritten, and the others
 * stay; if that one goes on beyond the shadow or another record's address begins inside it, the
 * host's bytes must not run on into its rest. The site is not live afterwards: calls, jumps and
 * no-ops get STATE until cairn_site_restore with CAIRN_QUIESCENT. Writing again replaces what was
 * written before. Allocates memory for the time of the call.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_site_write(cairn_site *site, const void *bytes,
                                                              size_t size,
                                                              enum cairn_strength strength,
                                                              struct cairn_error *error);

/*
 * Batches: many sites, one barrier. A batch is for one thread at a time. It holds pointers to
 * sites: commit it, clear it or destroy it before the quiescent point after a module of them is
 * retired (until then committing is STATE), and before the runtime.
 */

typedef struct cairn_batch cairn_batch;

/** An empty batch for sites of one runtime, from its allocator. To be destroyed before the runtime.
 *  Not for several threads at once. MEMORY. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_batch_create(cairn_runtime *runtime,
                                                                cairn_batch **batch,
                                                                struct cairn_error *error);
/** Changes that were noted and not committed are forgotten. NULL is allowed. */
CAIRN_API void cairn_batch_destroy(cairn_batch *batch);

/** Notes a change of a live site; nothing is written. ARGUMENT (target NULL, no batch or site, a
 *  site of another runtime), UNMANAGED, STATE as for one site; CONFLICT if the batch has a change
 * of the site already (the sentence names it); MEMORY. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_batch_call(cairn_batch *batch, cairn_site *site,
                                                              const void *target,
                                                              struct cairn_error *error);
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_batch_jump(cairn_batch *batch, cairn_site *site,
                                                              const void *target,
                                                              struct cairn_error *error);
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_batch_nop(cairn_batch *batch, cairn_site *site,
                                                             struct cairn_error *error);
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_batch_restore(cairn_batch *batch,
                                                                 cairn_site *site,
                                                                 struct cairn_error *error);

/** Makes all changes, in the order in which they were noted, then one barrier. The errors are those
 *  of patching one site; STATE also if a site has got an inline cache since it was noted. All or
 *  nothing: on error every site does what it would do without the batch, and the batch keeps its
 *  changes: it may be committed again, cleared or destroyed. On success it is empty and may be used
 *  again.
 *
 *  In Single mode one system call changes all sites of a slab, and all that can fail comes before
 *  it. Sites of several slabs, or of modules around one that is being loaded, take several calls.
 *  If the system grants one of them, refuses the next or the barrier, and refuses what undoes the
 *  first, too, sites stay changed, and the sentence says so. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_batch_commit(cairn_batch *batch,
                                                                enum cairn_strength strength,
                                                                struct cairn_error *error);

/** Forgets the changes that were noted. */
CAIRN_API void cairn_batch_clear(cairn_batch *batch);

#ifdef __cplusplus
}
#endif
#endif
