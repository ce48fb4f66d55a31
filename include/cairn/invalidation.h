/*
 * cairn/invalidation.h - making threads leave a function that must not run any longer, and undoing
 * that.
 *
 * Compiled code relies on what was true when it was compiled. When that changes, all threads must
 * leave the code: those that are about to enter it, and those that are in it. Most of the latter
 * are in functions that the code has called, perhaps many frames deep. Nothing on their stacks is
 * changed. An invalidation makes the sites of the code call an exit (cairn/exit.h), and each frame
 * leaves at the next site that it reaches, which is the one after its pending call, when that call
 * returns. With CAIRN_SYNC, a site that begins to be executed after cairn_invalidate has returned
 * calls the exit on every core (cairn/patch.h, THE GUARANTEE).
 *
 *     const struct cairn_invalidation_options options = {
 *         .function = function.address,
 *         .target = cairn_exit_target(to_the_interpreter),
 *     };
 *     cairn_invalidate(runtime, &options, CAIRN_SYNC, &invalidation, &error)
 *     …
 *     cairn_invalidation_undo(invalidation, CAIRN_SYNC, &error)      the code is valid again
 *     cairn_invalidation_destroy(invalidation)
 *
 * REQUIREMENTS ON THE CODE. The code must have a site wherever a thread can leave it. The record's
 * live values must be all that the interpreter needs to continue there. Sites are needed:
 *
 *   - At the function's entry, before any side effect, with the arguments as live values. New calls
 *     leave here.
 *   - Directly after each call during which the code may be invalidated, with no side effect of the
 *     program in between, and with the call's result among the live values. The frame is then the
 *     one that the interpreter would have after the call.
 *   - In each loop without calls, once per iteration. Otherwise a thread stays in the loop.
 *
 * The best sites are patch points with a null target (llvm.experimental.patchpoint): a few no-ops,
 * always live. Stack maps with a shadow also work where their site is live. There the exit is
 * called in place of LLVM's instruction, so its handler must return from the function and must not
 * continue after the site, because the effect of that instruction would be missing. Values need not
 * survive the pending call where LLVM keeps them during it: LLVM's moves and reloads between call
 * and site are executed as always, because the thread reaches the site by itself. A call in tail
 * position leaves no frame and needs no site. An exception or a longjmp that skips a frame skips
 * its sites. cairn_exit_return needs functions with the attribute `uwtable`.
 *
 * If code of many functions relies on one fact, register its sites with an assumption instead
 * (cairn/assumption.h): then the host need not find them.
 *
 * A function that was inlined has its sites in the function that it was inlined into.
 * cairn_runtime_find_id and cairn_record_site find all sites of an ID, wherever they are. They can
 * be invalidated as a list.
 *
 * WHICH SITES. An invalidation changes sites of a function, of a module or of a list: patch points
 * without a target, and stack maps' shadows, if they do not call or jump at that moment. The host
 * may have other sites like these, for tracing or not linked yet. `accepts` excludes them. All
 * chosen sites are changed with one barrier. Invalidating again changes what the first
 * invalidation did not, and returns CONFLICT if nothing is left: a host with two reasons to
 * invalidate a function has one invalidation and counts the reasons.
 *
 * A site with an inline cache branches to that and stays unchanged: the code continues to use the
 * cache there. If threads must leave there too, the host destroys the cache first. In a list, such
 * a site is refused (STATE).
 *
 * NOT ENTRANT. A function that is replaced must accept no new calls, while the frames that are in
 * it may continue and return. For this, the host invalidates only the site at its entry: `accepts`
 * refuses all others, and the exit's handler enters the function that replaces it
 * (cairn_exit_enter). Then the host retires the module (cairn_module_retire), whose IDs are not
 * found any more. Frames in it are walked, read and left as before, and its sites can be
 * invalidated later, by `module`, if its frames must leave after all. The memory is freed by a
 * grace period, which the host ends when no thread has such a frame any more (cairn/runtime.h).
 *
 * OTHER CHANGES. Invalidations exclude each other. Other changes of the same sites at the same time
 * are not excluded, and the last one wins. A site that is changed while it is invalidated keeps
 * that change when the invalidation is undone.
 *
 * Threads. Any thread may invalidate and undo, also several invalidations at the same time. One
 * invalidation must be used by one thread at a time. The functions take locks and may allocate, so
 * signal handlers must not call them. An exit's handler may call them, also for its own function.
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
 * belongs to the caller; it is NULL if none has. Thread-safe.
 *
 * Errors, after which nothing has changed:
 * NOT_FOUND: there is no such function; or no site of the function, the module or the list is
 * suitable.
 * CONFLICT: all suitable sites call or jump already; a site of a list does; a site is in the list
 * twice. The barrier of `strength` has been executed, for the changes that were made before.
 * UNMANAGED: a chosen site is not live. The message names it and gives the reason.
 * STATE: a chosen site has an inline cache.
 * ARGUMENT: not exactly one of the three is given; there is no target; a site belongs to another
 * runtime.
 * MEMORY, and the errors of cairn_sites_change.
 *
 * Errors after the change: SYSTEM, and `*invalidation` is not NULL. The barrier was refused: the
 * host invalidates again, which executes the barrier and returns CONFLICT, or stops its threads.
 * (With a single mapping, the invalidation may have fewer sites; invalidating again changes the
 * others.)
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_invalidate(
    cairn_runtime *runtime, const struct cairn_invalidation_options *options,
    enum cairn_strength strength, cairn_invalidation **invalidation, struct cairn_error *error);

/**
 * Makes each site do again what it did before: nothing, or the shadow's instruction. Sites that do
 * not call the target any more stay unchanged. Frames whose calls return from now on continue in
 * the compiled code. Frames that are in the exit do what its handler decides. Afterwards the
 * invalidation has no sites, and undoing it again only executes the barrier. Allocates nothing.
 *
 * The modules of its sites must still be in memory.
 *
 * Errors: UNSUPPORTED: nothing has changed. SYSTEM, as for cairn_sites_change: call it again.
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
