/*
 * runtime/module.h - a loaded module.
 *
 * Owns its pages, its table, its sites and its declarations; all of them live until a quiescent
 * point after it was retired. Lookups stop finding it at any moment, so whoever has found a module
 * goes on with that pointer: a second lookup of the same PC may give NULL, or another module. What
 * was found stays in memory until the thread itself has passed a quiescent point; what it must not
 * do any more, patching and publishing, is refused (STATE).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RUNTIME_MODULE_H
#define RUNTIME_MODULE_H

#include "code/space.h"
#include "index/functions.h"
#include "index/unwind.h"
#include "patch/site.h"
#include "runtime/runtime.h"

#include <cairn/declaration.h>
#include <cairn/module.h>

enum module_state { MODULE_LOADED, MODULE_PUBLISHED, MODULE_RETIRED };

struct cairn_module {
    cairn_runtime *runtime;
    char *name;
    struct code_block *block;
    cairn_table *table;
    struct functions *functions;
    struct unwind *unwind;
    cairn_pc_table *pcs;
    cairn_fault_table *faults;
    struct site_table *sites;
    cairn_declarations *declarations;
    enum module_state state; /* with the runtime's lock held */
    uint32_t shares;         /* the same: not freed while there are any */
    /* In the runtime's `modules` or `retired`. */
    cairn_module *next;
    cairn_module *previous;
};

/* As cairn_runtime_find_function, for a PC in the module's memory. Lock-free, async-signal-safe. */
bool module_find_function(const cairn_module *module, uint64_t pc, struct cairn_function *function);

/* Puts a new module into its runtime's list. */
void module_add(cairn_module *module);

/* Takes the modules without shares out of the list; they are linked by `next`. With the runtime's
 * lock held. */
cairn_module *module_take_unshared(cairn_module **list);

/* Frees a module that is in no list. Nobody may use it any more. */
void module_destroy(cairn_module *module);

#endif
