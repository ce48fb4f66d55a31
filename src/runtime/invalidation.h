/*
 * runtime/invalidation.h - the steps of cairn_invalidate, for entries (call/entry.c).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RUNTIME_INVALIDATION_H
#define RUNTIME_INVALIDATION_H

#include "runtime/runtime.h"

#include <cairn/invalidation.h>

/* Creates an invalidation of the sites that the options choose, which are not changed yet. Calls
 * the host's filter, so no lock may be held. The errors are those of cairn_invalidate. */
enum cairn_status invalidation_choose(cairn_runtime *runtime,
                                      const struct cairn_invalidation_options *options,
                                      cairn_invalidation **invalidation, struct cairn_error *error);

/* Plan the changes of the chosen sites; and then, in any case, make them. Called with the locks of
 * runtime_lock_sites, both under the same. Afterwards the invalidation has the sites that have been
 * changed. SYSTEM from the second: see commit_all (site/commit.h). */
enum cairn_status invalidation_plan(cairn_invalidation *invalidation,
                                    const struct cairn_invalidation_options *options,
                                    enum cairn_strength strength, struct cairn_error *error);
enum cairn_status invalidation_commit(cairn_invalidation *invalidation,
                                      const struct cairn_invalidation_options *options,
                                      enum cairn_strength strength, struct cairn_error *error);

#endif
