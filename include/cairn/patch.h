/*
 * cairn/patch.h - rewriting patch points and stack map shadows while threads run.
 *
 * THE GUARANTEE
 *
 * While any number of threads execute, are interrupted in, or have calls pending from a managed
 * site, each execution of it does exactly the old or exactly the new thing. When the patch
 * function returns from a synchronised patch (CAIRN_SYNC), executions that start afterwards do
 * the new thing. Calls already made return to where they came from. On error every site of the
 * batch is as it was. No executing thread blocks, traps or spins. Batches are atomic per site,
 * not across sites.
 *
 * It rests on the armed form that each site is given before its module is published:
 *
 *   (A) Every write after publication is one aligned store into one word, the patch word, and
 *       the old and the new instruction in it have the same boundaries.
 *   (B) Nothing after the call changes, so that every saved return address stays good.
 *   (C) Nothing before it changes, so that a thread stopped anywhere in the region goes on
 * correctly. (D) Stubs and their slots are written and visible to all cores before the store that
 * exposes them.
 *
 * STATES. A managed site is a no-op, a call or a jump. A call returns behind the call
 * instruction; arguments and result are as the site's calling convention says. A jump does not
 * return: its target owns the frame of the function that it left. Targets may be anywhere; those
 * out of the direct call's reach go through a veneer of the site's own, which changes no register.
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
     *  each). As long-lived as the module. */
    const uint8_t *original_bytes;
    const uint8_t *bytes;
};

/** Fills in `description`. Thread-safe; state and target are of one moment. Async-signal-safe. */
CAIRN_API void cairn_site_describe(const cairn_site *site,
                                   struct cairn_site_description *description);

/** The site with this ID, if all of the runtime's published records with the ID have just one
 *  between them; otherwise NULL: NOT_FOUND, or CONFLICT if there are several. */
CAIRN_API cairn_site *cairn_runtime_find_site(const cairn_runtime *runtime, uint64_t id,
                                              struct cairn_error *error);

enum cairn_strength {
    /** The store alone: other cores see it soon. */
    CAIRN_RELAXED = 0,
    /** Executions that start after the function returned do the new thing, on every core. */
    CAIRN_SYNC = 1,
    /** SYNC; and the host promises that, until the function returns, no thread executes the
     *  region, is stopped in it or has a return address into it. Needed where more than one
     *  instruction changes: cairn_site_write, and shadows that are not live. */
    CAIRN_QUIESCENT = 2
};

/**
 * Patching one site. Lock-free and async-signal-safe in Dual mode with CAIRN_RELAXED on a live
 * site, once the site has its veneer; otherwise a lock is taken. Refused before the first write:
 * ARGUMENT (target NULL), UNMANAGED (not live and not QUIESCENT; the sentence says why), RANGE
 * (too far and no memory for a veneer, region too small), UNSUPPORTED (no SYNC on this machine),
 * STATE (the module is retired), FULL, SYSTEM.
 *
 * `target` is a C function pointer (a descriptor's address on PPC64 ELFv1).
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_site_call(cairn_site *site, const void *target,
                                                             enum cairn_strength strength,
                                                             struct cairn_error *error);
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_site_jump(cairn_site *site, const void *target,
                                                             enum cairn_strength strength,
                                                             struct cairn_error *error);
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_site_nop(cairn_site *site,
                                                            enum cairn_strength strength,
                                                            struct cairn_error *error);

/** Back to what the site was when its module was published: a patch point's first target or
 *  no-op, a shadow's own instructions. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_site_restore(cairn_site *site,
                                                                enum cairn_strength strength,
                                                                struct cairn_error *error);

/**
 * Whole-region patching: `size` bytes of the host's over all reserved bytes, padded with no-ops.
 * Only while the module is unpublished, or with CAIRN_QUIESCENT; otherwise STATE. A stack map's
 * shadow may be written only within its bytes, not across another record's address, and the rest
 * of the last instruction that is overwritten becomes no-ops. The site is not live afterwards,
 * until cairn_site_restore.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_site_write(cairn_site *site, const void *bytes,
                                                              size_t size,
                                                              enum cairn_strength strength,
                                                              struct cairn_error *error);

/* Batches: many sites, one lock, one barrier. */

typedef struct cairn_batch cairn_batch;

/** An empty batch for sites of one runtime, from its allocator. To be destroyed before the runtime.
 *  Not for several threads at once. MEMORY. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_batch_create(cairn_runtime *runtime,
                                                                cairn_batch **batch,
                                                                struct cairn_error *error);
/** Changes that were noted and not committed are forgotten. NULL is allowed. */
CAIRN_API void cairn_batch_destroy(cairn_batch *batch);

/** Notes a change; nothing is written. The errors are those of the single functions, besides
 *  ARGUMENT for a site of another runtime. */
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

/** Writes all changes, in the order in which they were noted, then one barrier. CONFLICT if a
 *  site is named twice. All or nothing: on error no site has changed. The batch is empty
 *  afterwards and may be used again; on error it keeps its changes. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_batch_commit(cairn_batch *batch,
                                                                enum cairn_strength strength,
                                                                struct cairn_error *error);

/** Forgets the changes that were noted. */
CAIRN_API void cairn_batch_clear(cairn_batch *batch);

#ifdef __cplusplus
}
#endif
#endif
