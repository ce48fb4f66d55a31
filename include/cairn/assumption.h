/*
 * cairn/assumption.h - what compiled code relies on without testing it, and what happens when it is
 * no longer true.
 *
 *     status = cairn_assumption_create(runtime, &no_subclass, &error);
 *     …                                   build guards with it, and publish their modules
 *     status = cairn_assumption_break(no_subclass, CAIRN_SYNC, &error);
 *     cairn_assumption_destroy(no_subclass);
 *
 * Breaking an assumption makes all sites that are registered with it call their exits
 * (cairn/exit.h), in all modules, with one barrier. A broken assumption stays broken: code that is
 * published later and relies on it leaves at its first site. An assumption must be destroyed before
 * its runtime.
 *
 * Threads: every function is thread-safe, takes locks and may allocate, so signal handlers must not
 * call it. Handlers of exits and caches may.
 *
 * See cairn-replacing-code(7) (doc/replacing-code.md), also for where sites are needed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_ASSUMPTION_H
#define CAIRN_ASSUMPTION_H

#include <cairn/module.h>
#include <cairn/patch.h>
#include <cairn/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn_assumption cairn_assumption;

/** Creates an assumption, which is not broken, for sites of one runtime. The caller owns
 *  `*assumption`. Errors: ARGUMENT, MEMORY. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_assumption_create(cairn_runtime *runtime,
                                                                     cairn_assumption **assumption,
                                                                     struct cairn_error *error);

/**
 * Registers a site: breaking the assumption will make it call `target`, usually cairn_exit_target
 * of an exit. If the assumption is broken already, the site calls the target at once; `strength` is
 * the strength of this change, CAIRN_RELAXED for a module that is not published. A site may be
 * registered with several assumptions; the first one that is broken determines the target. Engines
 * do this for the sites of cairn_build_guard.
 *
 * Errors, after which the site is not registered and unchanged: ARGUMENT: the site is not of a
 * patch point, or belongs to another runtime. UNMANAGED: it is not live; the message gives the
 * reason. CONFLICT: it calls or jumps. STATE: it has an inline cache. MEMORY; others as
 * cairn_site_call, if the assumption is broken. SYSTEM after the change, which a broken assumption
 * makes: the barrier was refused. Register the site again, which requests it again.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_assumption_add(cairn_assumption *assumption,
                                                                  cairn_site *site,
                                                                  const void *target,
                                                                  enum cairn_strength strength,
                                                                  struct cairn_error *error);

/**
 * Breaks the assumption: makes all registered sites call their targets, with one barrier. If it is
 * broken already, only executes the barrier. Takes O(sites) time, and the memory that veneers need.
 *
 * Errors, after which nothing has changed and the assumption is not broken: the errors of
 * cairn_sites_change. SYSTEM after the change: the barrier was refused, and the assumption is
 * broken. (With a single mapping, only some sites may have been changed.) The host breaks it again,
 * or stops its threads.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_assumption_break(cairn_assumption *assumption,
                                                                    enum cairn_strength strength,
                                                                    struct cairn_error *error);

/** Frees the assumption and leaves all sites unchanged. No module that was built with it may be
 *  published after that. NULL is allowed.
 *
 *  Threads: no other thread may be using the assumption. Signal handlers must not call this. */
CAIRN_API void cairn_assumption_destroy(cairn_assumption *assumption);

#ifdef __cplusplus
}
#endif
#endif
