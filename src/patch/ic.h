/*
 * patch/ic.h - inline caches: their cases, and the code that a site goes to.
 *
 * A change makes a copy of the cache's cases, changes that, writes code for it, and lets the site
 * go to the new code with one store; so it is seen whole or not at all. The old code, and what it
 * has the address of, is retired.
 *
 * What must stay true:
 *  - A cache is in its set's list, and in its site, from ic_bind until it is destroyed or its
 *    module goes. Meanwhile the site's form is SITE_FORM_CACHE.
 *  - `code` is what the site goes to. It, `cases`, `is_destroyed` and the list change only with the
 *    set's lock held.
 *  - What code has the address of (the cache itself, struct ic_call) is in memory until a quiescent
 *    point after the code was retired. So a cache that has been destroyed is in memory until then,
 *    too, and a thread that still has its address gets STATE.
 *
 * Locks: the set's, then the runtime's, then those of code memory. A visitor of the host's runs
 * with the set's held; the lock notices if its own thread wants it again (STATE).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PATCH_IC_H
#define PATCH_IC_H

#include "arch/arch.h"
#include "base/memory.h"
#include "code/space.h"
#include "patch/ic_set.h"
#include "patch/plan.h"

#include <cairn/ic.h>
#include <stdatomic.h>

enum { IC_NO_REGISTER = UINT16_MAX };

/* A value of the site's: an operand or the result. */
struct ic_value {
    struct cairn_type type;
    uint16_t dwarf; /* the whole register that it is in, or IC_NO_REGISTER */
};

/* A call that Cairn makes on behalf of a case: what `exit` brings the thread to. Its memory is like
 * code that the case is in. */
struct ic_call {
    struct arch_exit exit;
    cairn_ic *ic;
    const void *target;
    struct ic_call *next_retired;
    uint32_t references; /* cases that have it, in the cache and in changes that are being made */
};

struct ic_case {
    struct cairn_ic_case public;
    struct ic_call *call; /* NULL: the code itself does all */
    uint32_t counter;     /* number of its counter in the cache */
    bool counts_anew;     /* the counter held another case's hits until the change that is made */
};

/* What must stay true: a megamorphic cache has no cases. */
struct ic_cases {
    struct ic_case entries[CAIRN_IC_CASE_LIMIT_MAX];
    uint32_t count;
    bool is_megamorphic;
};

struct ic_code {
    struct code_stub stub;
    size_t case_bytes;
    bool is_called; /* by the site, which otherwise jumps to it */
};

struct cairn_ic {
    struct ic_set *set;
    cairn_site *site;
    cairn_ic *next;
    cairn_ic *previous;
    struct cairn_ic_options options; /* with all defaults filled in */

    uint32_t operand_count;
    struct ic_value operands[CAIRN_IC_OPERANDS_MAX];
    struct ic_value result; /* of type void: none */
    /* A function can be called straight from the site: arguments are where it expects them, and it
     * may change what it changes. Otherwise Cairn calls on behalf of cases; NULL if it can, or why
     * it cannot. */
    bool calls_straight;
    const struct cairn_error *calls_refused;

    /* Where misses go: to the handlers. */
    struct arch_exit miss;
    struct arch_exit megamorphic;
    /* What these need, and how it is freed. */
    void *slow_path;
    void (*destroy_slow_path)(void *slow_path, const struct cairn_allocator *allocator);
    /* Where calls on behalf of cases go. */
    arch_exit_handler *call_handler;

    struct ic_cases cases;
    struct ic_code code;
    uint64_t hits[CAIRN_IC_CASE_LIMIT_MAX]; /* changed by code, too */
    uint32_t counters_in_use;               /* one bit each */
    _Atomic uint64_t misses;
    /* While a change is being made: its place among the changes, plus 1. */
    size_t pending;
    _Atomic bool is_destroyed;
};

/* ---- Caches ---- */

/* Puts a filled-in cache, which is nowhere yet, into its set and makes its site go to it. CONFLICT,
 * and as for cairn_ic_create. */
enum cairn_status ic_bind(cairn_ic *ic, struct cairn_error *error);

/* Frees a cache that is in no set. */
void ic_free(cairn_ic *ic);

/* The site's module goes: nobody executes it any more. */
void ic_forget(cairn_ic *ic);

/* The site's module is retired: the cache waits for it to go, and is not changed any more. */
static inline bool ic_is_retired(const cairn_ic *ic)
{
    return atomic_load_explicit(&ic->site->table->retired, memory_order_acquire);
}

/* The cache may be changed: it is not destroyed, and its module is not retired. STATE. */
enum cairn_status ic_check_usable(const cairn_ic *ic, struct cairn_error *error);

/* ---- Changes, with the set's lock held ---- */

/* What a cache is to become. */
struct ic_change {
    cairn_ic *ic;
    struct ic_cases next;
    struct ic_code code;
    struct change patch;
    bool resets_counts;
    bool is_made; /* the site goes to the code */
};

/* A change that changes nothing yet. */
void ic_change_begin(struct ic_change *change, cairn_ic *ic);
/* Gives back what the change has taken and the cache will not have. */
void ic_change_abandon(struct ic_change *change);

/* As cairn_ic_add and so on, but for the change. The case has been checked. */
enum cairn_status ic_change_add(struct ic_change *change, const struct cairn_ic_case *added,
                                struct cairn_error *error);
enum cairn_status ic_change_remove(struct ic_change *change, const struct cairn_ic_guard *guard,
                                   struct cairn_error *error);
uint32_t ic_change_remove_key(struct ic_change *change, uint64_t key);
void ic_change_reset(struct ic_change *change);
void ic_change_order(struct ic_change *change);

/* Makes all changes, with one barrier: all or none. Ends them: there is nothing to abandon. */
enum cairn_status ic_changes_apply(struct ic_change *changes, size_t count,
                                   enum cairn_strength strength, struct cairn_error *error);

/* ---- Cases ---- */

/* The bits of a guard's bytes. */
static inline uint64_t ic_all_bits(uint8_t width)
{
    return width < sizeof(uint64_t) ? (UINT64_C(1) << 8 * width) - 1 : UINT64_MAX;
}

/* Whether the cache can have such a case; fills in what 0 stands for. ARGUMENT, UNSUPPORTED. */
enum cairn_status ic_check_case(const cairn_ic *ic, struct cairn_ic_case *checked,
                                struct cairn_error *error);
enum cairn_status ic_check_guard(const cairn_ic *ic, struct cairn_ic_guard *guard,
                                 struct cairn_error *error);
bool ic_same_guard(const struct cairn_ic_guard *left, const struct cairn_ic_guard *right);

/* ---- Code ---- */

/* Code for the cases, written and visible to all cores; nobody goes there yet. */
enum cairn_status ic_code_make(cairn_ic *ic, const struct ic_cases *cases, struct ic_code *code,
                               struct cairn_error *error);

/* The branch by which the site goes there. */
struct change ic_code_branch(const cairn_ic *ic, const struct ic_code *code);

#endif
