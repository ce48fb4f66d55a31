/*
 * cairn/invalidation.h - having threads leave a function that must not run any longer, and taking
 * that back.
 *
 * Compiled code rests on what was true when it was compiled. When that changes, the code has to be
 * left: by threads that are about to enter it, and by those that are in it. These are mostly in
 * functions that it has called, perhaps many frames deep, and nothing of them is touched: an
 * invalidation makes the sites of the code call an exit (cairn/deopt.h), and each frame leaves at
 * the next site that it comes to, which is the one behind its call, when that call returns. With
 * CAIRN_SYNC, sites that begin to be executed after cairn_invalidate has returned call the exit, on
 * every core (cairn/patch.h, THE GUARANTEE).
 *
 *     const struct cairn_invalidation_options options = {
 *         .function = function.address,
 *         .target = cairn_exit_target(to_the_interpreter),
 *         .strength = CAIRN_SYNC,
 *     };
 *     cairn_invalidate(runtime, &options, &invalidation, &error)
 *     …
 *     cairn_invalidation_undo(invalidation, CAIRN_SYNC, &error)      the code is good again
 *     cairn_invalidation_destroy(invalidation)
 *
 * WHAT THE CODE NEEDS. A site wherever it can be left, where the record's live values are all that
 * the interpreter goes on with:
 *
 *   - At the function's entry, before anything was done, with the arguments. New calls leave here.
 *   - Directly behind each call during which the code may be invalidated: no side effect of the
 *     program between the call and the site, and the call's result is one of the live values. So
 * the frame is the one that the interpreter would have there, its call done.
 *   - In each loop that calls nothing, once a round; otherwise a thread stays in it.
 *
 * Best are patch points with a null target (llvm.experimental.patchpoint): some no-ops, always
 * live. Stack maps with a shadow do too, where their site is live; at it the exit is called in
 * place of LLVM's instruction, so its handler must return from the function and must not go on:
 * what the instruction did would be missing. Values need not survive the call where LLVM holds them
 * while it lasts: what LLVM moves and reloads between call and site is done as always, because the
 * thread comes to the site by itself. A call in tail position leaves no frame, and needs no site.
 * An exception or a longjmp that passes over a frame passes over its sites. The function needs the
 * attribute `uwtable`, for cairn_deopt_return.
 *
 * Where a function was inlined, its sites are others: of the function that it is in now. All sites
 * of an ID, wherever they are, come from cairn_runtime_find_id and cairn_record_site, and can be
 * given as a list.
 *
 * WHICH SITES. Those of a function, of a module, or of a list, that do not call or jump at that
 * moment: patch points without target, and stack maps' shadows. The host may have others of the
 * same kind, for tracing or not linked yet, which `accepts` keeps out. All are changed or none,
 * with one barrier. Invalidating again takes what the first time did not, and is CONFLICT if
 * nothing is left: who has two reasons to invalidate a function has one invalidation and counts the
 * reasons.
 *
 * A site that has an inline cache goes to that, and is left alone: the code goes on using the cache
 * there. If it has to be left there too, the cache is destroyed first. In a list such a site is
 * refused (STATE).
 *
 * WHO ELSE CHANGES A SITE. Invalidations exclude each other; other patches of the same sites at the
 * same time do not, and the last one wins. What is changed while it is invalidated stays as it is
 * then when the invalidation is undone.
 *
 * Threads. Any thread may invalidate and undo, for several invalidations at a time too; one
 * invalidation is for one thread at a time. They take locks and may allocate: not for signal
 * handlers. A handler of an exit may use them, on its own function too.
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

/** Tells whether a site is one of those to be left at. It is asked once for each patch point and
 * shadow that does not call or jump, live or not, before anything is changed and with no lock held:
 * it may call anything, and retire the module (STATE then), but not come to a quiescent point. */
typedef bool cairn_invalidation_filter(const struct cairn_site_description *site, void *user);

struct cairn_invalidation_options {
    /* What to invalidate: one of three. */

    /** An address in the code of a function of a published module: its first one, or any other,
     *  such as a frame's (a return address less 1); on PPC64 ELFv1 not a descriptor's. 0: none. */
    uint64_t function;
    /** All functions of a module. */
    const cairn_module *module;
    /** These sites. They are read during the call only. */
    cairn_site *const *sites;
    uint32_t site_count;

    /** What the sites are to call: cairn_exit_target of an exit. */
    const void *target;
    /** NULL: of a function or a module all that are live, of a list all. A site that it chooses has
     *  to be live. */
    cairn_invalidation_filter *accepts;
    void *user; /**< of `accepts` */
    enum cairn_strength strength;
};

typedef struct cairn_invalidation cairn_invalidation;

/**
 * Makes the sites call the target. Thread-safe.
 *
 * NOT_FOUND: there is no such function, or none of its sites fits, or none of the module's or the
 * list's. CONFLICT: none is left, because all that could be call or jump already; a site of a list
 * does, or is in it twice. UNMANAGED: a chosen site is not live; the sentence names it and says
 * why. STATE: it holds the host's own bytes or has an inline cache, or its module is retired,
 * perhaps by another thread meanwhile (a function may be NOT_FOUND then). ARGUMENT: not one of the
 * three is given, no target, a site of another runtime. MEMORY, and the errors of
 * cairn_batch_commit. Nothing was changed then.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_invalidate(
    cairn_runtime *runtime, const struct cairn_invalidation_options *options,
    cairn_invalidation **invalidation, struct cairn_error *error);

/**
 * Each site does again what it did before: nothing, or the shadow's instruction. Sites that do
 * something else by now than to call the target stay as they are. Frames whose calls return from
 * now on go on in the compiled code; those that are in the exit finish what its handler decides.
 * The invalidation then has no sites, and taking it back once more does nothing. Allocates nothing.
 *
 * The modules of its sites must still be in memory. STATE: the module of a site is retired. SYSTEM,
 * UNSUPPORTED as for patching. Nothing was changed then.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_invalidation_undo(
    cairn_invalidation *invalidation, enum cairn_strength strength, struct cairn_error *error);

/** How many sites it has changed, 0 once it has been undone; and number `index` of them, by
 *  address unless they came from a list; NULL beyond the last. */
CAIRN_API uint32_t cairn_invalidation_site_count(const cairn_invalidation *invalidation);
CAIRN_API cairn_site *cairn_invalidation_site(const cairn_invalidation *invalidation,
                                              uint32_t index);

/** Forgets it: the code stays as it is. Before the runtime goes; modules may be gone before. NULL
 * is allowed. */
CAIRN_API void cairn_invalidation_destroy(cairn_invalidation *invalidation);

#ifdef __cplusplus
}
#endif
#endif
