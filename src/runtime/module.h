/*
 * runtime/module.h - a loaded module.
 *
 * A module owns its pages, tables, sites and declarations. All of them are valid until a quiescent
 * point after the module was retired. Lookups may stop finding a module at any moment. So code that
 * has found a module must keep that pointer: a second lookup of the same PC may return NULL, or
 * another module. A module that a thread has found stays in memory until that thread has passed a
 * quiescent point. A retired module must not be patched or published; such calls return STATE.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RUNTIME_MODULE_H
#define RUNTIME_MODULE_H

#include "code/space.h"
#include "runtime/runtime.h"
#include "site/site.h"
#include "unwind/functions.h"
#include "unwind/rules.h"

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
    uint32_t shares;         /* references that keep it from being freed; with the lock held */
    /* Links in the runtime's `modules` or `retired`. */
    cairn_module *next;
    cairn_module *previous;
};

/* Same as cairn_runtime_find_function, for a PC in the module's memory. Lock-free,
 * async-signal-safe. */
bool module_find_function(const cairn_module *module, uint64_t pc, struct cairn_function *function);

/* Returns the number of sites of a function of the module, which are adjacent, and sets `*first` to
 * the index of the first one. */
uint32_t module_function_sites(const cairn_module *module, struct cairn_function function,
                               uint32_t *first);

/* Adds a new module to its runtime's list. */
void module_add(cairn_module *module);

/* Removes the modules without references from the list and returns them, linked by `next`. Called
 * with the runtime's lock held. */
cairn_module *module_take_unshared(cairn_module **list);

/* Frees a module that is in no list. No thread may use it any more. */
void module_destroy(cairn_module *module);

#endif
