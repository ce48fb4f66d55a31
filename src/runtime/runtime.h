/*
 * runtime/runtime.h - the private definition of a runtime, for loaders and modules.
 *
 * Invariants:
 *  - `modules` holds every module that exists and is not retired; `retired` holds those that are
 *    retired and not freed yet. Both are read and changed with `lock` held.
 *  - A module's IDs are in `ids`, and its definitions in `symbols`, exactly while it is published.
 *    Its index owns its memory in the code space from then until it is freed; while it is retired,
 *    only frames find it there.
 *  - The runtime is valid as long as `references` is above 0. The host, each loader and each engine
 *    have one reference.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RUNTIME_RUNTIME_H
#define RUNTIME_RUNTIME_H

#include "base/memory.h"
#include "base/pool.h"
#include "code/space.h"
#include "record/address_index.h"
#include "record/id_table.h"
#include "record/layout.h"
#include "record/symbol_table.h"
#include "runtime/unwinder.h"
#include "site/cache_set.h"

#include <cairn/runtime.h>
#include <pthread.h>
#include <stdatomic.h>

struct cairn_runtime {
    struct cairn_allocator allocator;
    struct code_space *space;
    struct id_table *ids;
    /* What lookups read of published and retired modules; changed with `lock` held. */
    struct pool indexes;              /* struct index_group */
    struct address_index *free_index; /* list of those in groups that are not in use */
    struct pool ranges;               /* struct function_range, of modules with several functions */
    struct pool entries;              /* struct id_entry */
    struct symbol_table symbols;      /* with `lock` held */
    struct unwinder unwinder; /* if a module has registered unwind tables; with `lock` held */
    struct cache_set ics;
    pthread_mutex_t lock;
    uint64_t last_module_number; /* with `lock` held */
    cairn_module *modules;
    cairn_module *retired;
    /* Sums over the modules of both lists, with `lock` held. */
    uint32_t published_count;
    uint32_t retired_count;
    size_t table_bytes;
    _Atomic uint32_t references;
    uint32_t vector_level; /* arch_host_vector_level, which takes long under a hypervisor */
    /* The highest level of vector registers that the code of modules can hold, from the first
     * module that was loaded on: 0 before; with `lock` held. */
    uint32_t code_level;
    /* The level that exits save: that of the code, and the machine's before there is any. */
    _Atomic uint32_t saved_level;
    /* Reserved for the code that enters functions in place of frames; initially 0. */
    _Atomic uint64_t entry_code;
    /* Whether the process is forked by a visitor of inline caches, which already holds their lock.
     * False except during a fork. */
    bool visitor_forks;
    bool is_destroyed; /* all modules are being freed */
    /* For readers in other processes (runtime/inspect.h); NULL if the system refused it. */
    struct inspect_descriptor *descriptor;
};

/* Returns the module of an owner in the code space, which is the module's index. NULL is allowed.
 */
static inline cairn_module *runtime_module_of(const struct address_index *owner)
{
    return owner == NULL ? NULL : index_functions(owner)->owner;
}

/* Returns the module whose code or data contains the PC of a frame, or NULL. The module may be
 * retired. Lock-free, async-signal-safe; see code_space_find_frame_owner. */
static inline cairn_module *runtime_find_frame_module(const cairn_runtime *runtime, uint64_t pc)
{
    return runtime_module_of(code_space_find_frame_owner(runtime->space, pc));
}

/* Take and release the lock. */
void runtime_lock(cairn_runtime *runtime);
void runtime_unlock(cairn_runtime *runtime);

/* Take and release the locks that changes of a runtime's sites need: that of the inline caches, and
 * the runtime's. The first returns whether the second must release that of the caches: a visitor of
 * inline caches has it already. */
bool runtime_lock_sites(cairn_runtime *runtime);
void runtime_unlock_sites(cairn_runtime *runtime, bool is_taken);

/* Notes that code is being loaded that can hold vector registers of this level; a level above the
 * machine's counts as the machine's. Must be called before the code can run. */
void runtime_note_level(cairn_runtime *runtime, uint32_t level);

/* The same as cairn_runtime_grace_end, for what is selected (base/grace.h). */
size_t runtime_end_grace(cairn_runtime *runtime, uint64_t token, grace_filter *selects);

/* Children that are forked between these two calls get a copy of the runtime. */
void runtime_watch_forks(cairn_runtime *runtime);
void runtime_ignore_forks(cairn_runtime *runtime);

#endif
