/*
 * runtime/module.h - a loaded module.
 *
 * A module owns its memory, tables, sites and declarations. All of them are valid until the end of
 * a grace period that began after the module was retired. Lookups may stop finding a module at any
 * moment. So code that has found a module must keep that pointer: a second lookup of the same PC
 * may return NULL, or another module. A module that a thread has found stays in memory until that
 * thread has passed a quiescent point. Only frames find retired modules
 * (runtime_find_frame_module).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RUNTIME_MODULE_H
#define RUNTIME_MODULE_H

#include "base/adapter.h"
#include "code/space.h"
#include "record/module_symbols.h"
#include "runtime/attachments.h"
#include "runtime/runtime.h"
#include "site/site.h"
#include "unwind/functions.h"
#include "unwind/rules.h"

#include <cairn/declaration.h>
#include <cairn/module.h>

enum module_state { MODULE_LOADED, MODULE_PUBLISHED, MODULE_RETIRED };

struct kept_object;
struct module_names;

/* What few modules have. */
struct module_extras {
    cairn_pc_table *pcs;
    cairn_fault_table *faults;
    struct attachments *attachments; /* NULL if it has none */
    struct cairn_scope scope;        /* of its definitions; without a key: all modules find them */
    /* Links in the scope's list. */
    cairn_module *scope_next;
    cairn_module *scope_previous;
    struct kept_object *kept;   /* for watchers that need them; otherwise NULL */
    struct module_names *names; /* NULL if it has none */
};

/* A module is in the memory of its block (code_block_user), and valid as long as it. There may be a
 * hundred thousand modules, so it has no gaps. */
struct cairn_module {
    cairn_runtime *runtime;
    uint64_t number; /* unique in the runtime */
    cairn_table *table;
    struct functions *functions;
    struct unwind *unwind;
    struct site_table *sites;
    cairn_declarations *declarations;
    struct module_symbols *symbols; /* NULL if it has none */
    struct module_extras *extras;   /* NULL if it has none of them */
    struct id_entry *ids;           /* NULL before it is published */
    struct grace_entry waiting;
    /* Links in the runtime's `modules` or `retired`. */
    cairn_module *next;
    cairn_module *previous;
    uint32_t shares; /* references that keep it from being freed; with the runtime's lock held */
    uint8_t state;   /* enum module_state; with the lock held */
    /* Whether its grace period has ended, and only references keep it; with the lock held. */
    bool is_due : 1;
    /* Whether it is retired when its last reference is removed; with the lock held. */
    bool retires_unused : 1;
    /* Whether a frame was found in it since modules_forget_frames. */
    bool has_frame;
    char name[];
};

/* Returns the block that the module is in. */
static inline struct code_block *module_block(const cairn_module *module)
{
    return code_block_of_user(module);
}

static inline struct attachments *module_attachments(const cairn_module *module)
{
    return module->extras == NULL ? NULL : module->extras->attachments;
}

/* Returns the module that a record was loaded with, or NULL if its table belongs to no module. */
cairn_module *record_module(struct cairn_record record);

/* Same as cairn_runtime_find_function, for a PC in the module's memory, also if the module is not
 * published. Searches the module's tables. Lock-free, async-signal-safe. */
bool module_search_function(const cairn_module *module, uint64_t pc,
                            struct cairn_function *function);

/* Sets `*range` to range number `index` of the module's memory; false if there are no more. */
bool module_memory_range(const cairn_module *module, uint32_t index, struct memory_range *range);

/* Returns the number of sites of a function of the module, which are adjacent, and sets `*first` to
 * the index of the first one. */
uint32_t module_function_sites(const cairn_module *module, struct cairn_function function,
                               uint32_t *first);

/* Returns the definition of a name that a module of the scope with this key uses: the newest one of
 * the same scope, otherwise the newest one without a scope; NULL if no module defines it. Called
 * with the runtime's lock held. */
const struct definition *module_find_definition(const cairn_runtime *runtime, const void *key,
                                                const char *name);

/* Adds a reference for code of the module that is installed somewhere. Errors: STATE if it is not
 * published. Called with the runtime's lock held. */
CAIRN_MUST_CHECK enum cairn_status module_use(cairn_module *module, struct cairn_error *error);

/* Removes that reference. If `retires`, the module is retired when its last reference is removed.
 * NULL is allowed. */
void module_unuse(cairn_module *module, bool retires);

/* Does the same, and retires the module if it has no references. Called with the runtime's lock
 * held. */
void module_retire_use(cairn_module *module);

/* Clears `has_frame` of all retired modules. */
void modules_forget_frames(cairn_runtime *runtime);

/* Selects retired modules in which no frame was found (base/grace.h). */
bool module_is_unused(const struct grace_entry *entry);

/* Adds a new module to its runtime's list. */
void module_add(cairn_module *module);

/* Frees the parts of a module that is in no list, and of `extras`, which may be NULL. Does not free
 * what is in the module's block, nor what must be valid until the block has been freed. */
void module_release(cairn_module *module, struct module_extras *extras);

/* Frees a module that is in no list, and its block. No thread may use it any more. */
void module_destroy(cairn_module *module);

#endif
