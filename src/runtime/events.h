/*
 * runtime/events.h - events of modules and their functions.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RUNTIME_EVENTS_H
#define RUNTIME_EVENTS_H

#include "log/event.h"
#include "runtime/module.h"

static inline struct log_sink *runtime_sink(const cairn_runtime *runtime)
{
    return code_space_sink(runtime->space);
}

/* Returns the name of the function at `pc`, or NULL, and sets its address (0: unknown). `module`
 * may be NULL. Lock-free, async-signal-safe. */
const char *event_function(const cairn_module *module, uint64_t pc, uint64_t *address);

/* A module was published, or retired. Called with the runtime's lock held. */
void event_module_loaded(const cairn_module *module);
void event_module_retired(const cairn_module *module);

/* An invalidation: a list of changed sites, those of a function next to each other. */
struct event_hits {
    const cairn_site *(*site_at)(const void *user, size_t index);
    const void *user;
    size_t count;
};

/* Sites were invalidated, for a reason. */
void event_invalidation(const cairn_runtime *runtime, const struct event_hits *hits,
                        const char *reason);

#endif
