/*
 * code/watch.h - watchers of a space, which are told about all code that appears in it and
 * disappears: for profilers and debuggers.
 *
 * Guarantees:
 *  - A watcher is told about code before any thread can execute it, except for code that exists
 *    when the watcher is added, and that code is removed before its addresses are used again.
 *  - Without a watcher, each event takes one load.
 *
 * A watcher's functions are called with the lock of the list held, and possibly the runtime's. They
 * must take no lock of Cairn's. Nothing is reported to a forked child, whose files and debugger are
 * the parent's.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CODE_WATCH_H
#define CODE_WATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Code of Cairn's own: a stub or a veneer. */
struct code_note {
    uint64_t address;
    size_t size;
    const char *label; /* its purpose, such as "exit"; valid during the call */
    const void *site;  /* the cairn_site that it was made for, or NULL */
    bool is_called;    /* whether the site calls it, and does not jump to it */
};

struct code_watcher {
    struct code_watcher *next;
    bool keeps_objects; /* whether modules must keep the objects that they were loaded from */
    void (*module_added)(struct code_watcher *watcher, const void *module);
    void (*module_removed)(struct code_watcher *watcher, const void *module);
    void (*code_added)(struct code_watcher *watcher, const struct code_note *note);
    void (*code_removed)(struct code_watcher *watcher, uint64_t address);
};

struct code_watchers {
    pthread_mutex_t lock;
    _Atomic(struct code_watcher *) first; /* changed with the lock held */
    _Atomic bool keeps_objects;
    bool is_child; /* of a process that was forked with watchers */
};

/* The lock is made anew in a forked child; the child's watchers are ignored. */
void code_watchers_init(struct code_watchers *watchers);
void code_watchers_renew(struct code_watchers *watchers);
void code_watchers_destroy(struct code_watchers *watchers);

/* Adds a watcher, after calling `begin` with the lock held, which visits the code that exists. */
void code_watchers_add(struct code_watchers *watchers, struct code_watcher *watcher,
                       void (*begin)(struct code_watcher *watcher));
void code_watchers_remove(struct code_watchers *watchers, struct code_watcher *watcher);

static inline bool code_watchers_exist(const struct code_watchers *watchers)
{
    return __builtin_expect(atomic_load_explicit(&watchers->first, memory_order_acquire) != NULL,
                            0);
}

/* Whether modules must keep the objects that they are loaded from. */
static inline bool code_watchers_keep(const struct code_watchers *watchers)
{
    return atomic_load_explicit(&watchers->keeps_objects, memory_order_relaxed);
}

/* The events. They do nothing if there is no watcher. */
void code_watchers_module(struct code_watchers *watchers, const void *module, bool is_added);
void code_watchers_code(struct code_watchers *watchers, const struct code_note *note);
void code_watchers_code_removed(struct code_watchers *watchers, uint64_t address);

#endif
