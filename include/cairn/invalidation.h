/*
 * cairn/invalidation.h - making threads leave a function that must not run any longer, and undoing
 * that.
 *
 *     const struct cairn_invalidation_options options = {
 *         .function = function.address,
 *         .target = cairn_exit_target(to_the_interpreter),
 *     };
 *     status = cairn_invalidate(runtime, &options, CAIRN_SYNC, &invalidation, &error);
 *     …
 *     status = cairn_invalidation_undo(invalidation, CAIRN_SYNC, &error);
 *     cairn_invalidation_destroy(invalidation);
 *
 * The sites of the code call an exit (cairn/exit.h). A frame leaves at the next site that it
 * reaches: the site after its pending call, when that call returns. So code needs a site at its
 * entry, after each call, and in each loop without calls. A site with an inline cache stays
 * unchanged.
 *
 * Threads: any thread may invalidate and undo, also several invalidations at the same time. One
 * invalidation must be used by one thread at a time. Every function takes locks and may allocate,
 * so signal handlers must not call it. An exit's handler may, also for its own function.
 *
 * See cairn-replacing-code(7) (doc/replacing-code.md).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_INVALIDATION_H
#define CAIRN_INVALIDATION_H

#include <cairn/module.h>
#include <cairn/patch.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Returns whether threads leave the code at this site. It is called once for each patch point and
 *  shadow that does not call or jump, live or not, before anything is changed and with no lock
 *  held. It may call anything, and may retire the module, but it must not end a grace period. */
typedef bool cairn_invalidation_filter(const struct cairn_site_description *site, void *user);

struct cairn_invalidation_options {
    /* What to invalidate: exactly one of the following three. */

    /** Any address in the code of a function of a published module, for example in a frame (a
     * return address less 1). On PPC64 ELFv1, not the address of a descriptor. 0 if not used. For
     * frames of a retired module, use `module`. */
    uint64_t function;
    const cairn_module *module; /**< all functions of a module; NULL if not used */
    cairn_site *const *sites;   /**< a list of sites, read only during the call; NULL if not used */
    uint32_t site_count;        /**< number of `sites` */

    const void *target; /**< what the sites are to call: cairn_exit_target of an exit */
    /** NULL chooses all live sites of a function or module, and all sites of a list. A site that it
     *  accepts must be live. */
    cairn_invalidation_filter *accepts;
    void *user;         /**< argument of `accepts` */
    const char *reason; /**< for the runtime's log (cairn/log.h), read only during the call; NULL:
                         *   none */
};

typedef struct cairn_invalidation cairn_invalidation;

/**
 * Makes the sites call the target. `*invalidation` has the sites that have been changed, and
 * belongs to the caller; it is NULL if none has.
 *
 * Errors, after which nothing has changed:
 * NOT_FOUND: `function` is not in a published module; or no site of the function, the module or the
 * list is suitable.
 * CONFLICT: all suitable sites call or jump already; a site of a list does; a site is in the list
 * twice. The barrier of `strength` has been executed, for the changes that were made before.
 * UNMANAGED: a chosen site is not live. The message names it and gives the reason.
 * STATE: a chosen site has an inline cache.
 * ARGUMENT: not exactly one of the three is given; `target` is NULL; a site belongs to another
 * runtime.
 * MEMORY; others as cairn_sites_change.
 *
 * Errors after the change:
 * SYSTEM: `*invalidation` is not NULL, and the barrier was refused. The host invalidates again,
 * which executes the barrier and returns CONFLICT, or stops its threads. (With a single mapping,
 * the invalidation may have fewer sites; invalidating again changes the others.)
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_invalidate(
    cairn_runtime *runtime, const struct cairn_invalidation_options *options,
    enum cairn_strength strength, cairn_invalidation **invalidation, struct cairn_error *error);

/**
 * Makes each site do again what it did before: nothing, or the shadow's instruction. Sites that
 * no longer call the target stay unchanged. Frames whose calls return from now on continue in
 * the compiled code. Frames that are in the exit do what its handler decides. Afterwards the
 * invalidation has no sites, and undoing it again only executes the barrier. Allocates nothing.
 *
 * The modules of its sites must still be in memory.
 *
 * Errors: UNSUPPORTED: nothing has changed. SYSTEM: as cairn_sites_change. Call it again.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_invalidation_undo(
    cairn_invalidation *invalidation, enum cairn_strength strength, struct cairn_error *error);

/** Frees the invalidation and leaves the code unchanged. Must be called before the runtime is
 *  destroyed; modules may be gone already. NULL is allowed. */
CAIRN_API void cairn_invalidation_destroy(cairn_invalidation *invalidation);

#ifdef __cplusplus
}
#endif
#endif
