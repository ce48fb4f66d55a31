/*
 * ic/cache.h - inline caches: their cases, and the code that their sites branch to.
 *
 * A change copies the cache's cases, alters the copy, writes code for it, and makes the site branch
 * to the new code with one store. So threads see the whole change or nothing of it. The old code,
 * and the memory whose addresses it contains, is retired.
 *
 * Invariants:
 *  - A cache is in its set's list, and in its site, from ic_bind until it is destroyed or its
 *    module is unloaded. During that time the site's form is SITE_FORM_CACHE.
 *  - `code` is the code that the site branches to. It has all cases; or, if `is_inline`, all except
 *    the first ones, which are in the site's own bytes (site/inline.h), and only misses there
 * branch to the code. `code`, `cases`, `is_destroyed` and the list change only with the set's lock
 * held.
 *  - Memory whose address is in code (the cache itself, struct ic_call, tables) is freed by a grace
 *    period that began after the code was retired. So a destroyed cache also stays in memory until
 *    then, and a thread that still has its address gets STATE.
 *
 * Lock order: the set's lock, the runtime's lock, the locks of code memory. A visitor of the host's
 * runs with the set's lock held. The lock detects that its own thread takes it again (STATE).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef IC_CACHE_H
#define IC_CACHE_H

#include "arch/arch.h"
#include "base/memory.h"
#include "code/space.h"
#include "site/cache_set.h"
#include "site/plan.h"

#include <cairn/ic.h>
#include <stdatomic.h>

enum { IC_NO_REGISTER = UINT16_MAX };

struct ic_table;

/* An operand or the result of the site. */
struct ic_value {
    struct cairn_type type;
    uint16_t dwarf; /* the whole register that holds it, or IC_NO_REGISTER */
};

/* A call of a case's target that Cairn makes: `exit` is what the case's code branches to. Its
 * memory must stay valid as long as the code that contains the case. */
struct ic_call {
    struct grace_entry retired;
    struct arch_exit exit;
    struct cache_set *set;
    cairn_ic *ic; /* may be freed before the call is */
    struct cairn_ic_case made_for;
    uint32_t references; /* cases in the cache, and in changes in progress, that use it */
};

struct ic_case {
    struct cairn_ic_case public;
    struct ic_call *call; /* NULL if the code performs the whole action */
    uint32_t counter;     /* number of its counter in the cache */
    bool counts_anew;     /* whether the counter held another case's hits until this change */
};

/* What a megamorphic cache reports. Invariant: the guards are all different. */
struct ic_seen {
    struct cairn_ic_seen cases[CAIRN_IC_CASE_LIMIT_MAX];
    uint32_t count;
    uint64_t other_additions;
};

struct ic_code {
    struct code_stub *stub; /* or NULL */
    size_t case_bytes;
};

struct cairn_ic {
    struct grace_entry retired;
    struct cache_set *set;
    cairn_site *site;
    cairn_ic *next;
    cairn_ic *previous;
    struct cairn_ic_options options; /* with all defaults filled in */

    uint32_t operand_count;
    struct ic_value operands[CAIRN_IC_OPERANDS_MAX];
    struct ic_value result; /* of type void if there is no result */
    /* Whether code can branch to a function directly: the function's arguments are in place, and
     * the site allows it to change caller-saved registers. If not, Cairn makes the calls of cases.
     * `calls_refused` is NULL if it can do that, or the reason why it cannot. */
    bool calls_straight;
    const struct cairn_error *calls_refused;

    /* Exits that call the handlers, for misses, and the level of vector registers that all exits
     * save, which is the runtime's. */
    const _Atomic uint32_t *level;
    struct arch_light_exit miss;
    struct arch_light_exit megamorphic;
    /* Data of these exits, and the function that frees it. */
    void *slow_path;
    void (*destroy_slow_path)(void *slow_path, const struct cairn_allocator *allocator);
    arch_exit_handler *call_handler; /* of the exits of cases that call */

    struct ic_code code;
    struct ic_table *table; /* of a megamorphic cache that has one; otherwise NULL */
    bool may_inline;        /* whether the first case may be in the site's own bytes */
    bool is_inline;         /* whether it is there now; if so, the next members describe it */
    uint32_t inline_count;  /* of cases that are there: 1 or 2 */
    size_t inline_miss;     /* offset of the branch that a miss takes */
    size_t inline_bytes;    /* size without padding */
    uint64_t hits[CAIRN_IC_CASE_LIMIT_MAX]; /* also incremented by the cache's code */
    uint32_t counters_in_use;               /* one bit each */
    _Atomic uint64_t misses;
    /* While a list of changes is altered: the index of the cache's change, plus 1. Otherwise 0. */
    size_t pending;
    _Atomic bool is_destroyed;
    bool is_megamorphic;  /* if so, there are no cases */
    struct ic_seen *seen; /* NULL unless the cache is megamorphic */
    uint32_t case_count;
    struct ic_case cases[]; /* as many as options.case_limit allows */
};

/* Returns the size of a cache with this limit. */
static inline size_t ic_bytes(uint32_t case_limit)
{
    return sizeof(struct cairn_ic) + case_limit * sizeof(struct ic_case);
}

/* ---- Caches ---- */

/* Puts an initialised cache into its set and makes its site branch to it. Errors: CONFLICT, and
 * those of cairn_ic_create. */
enum cairn_status ic_bind(cairn_ic *ic, struct cairn_error *error);

/* Frees a cache that is in no set. */
void ic_free(cairn_ic *ic);

/* Whether the site's module is retired. If so, the cache is freed with the module, and must not be
 * changed. */
static inline bool ic_is_retired(const cairn_ic *ic)
{
    return atomic_load_explicit(&ic->site->table->retired, memory_order_acquire);
}

/* Checks that the cache may be changed: it is not destroyed, and its module is not retired.
 * STATE. */
enum cairn_status ic_check_usable(const cairn_ic *ic, struct cairn_error *error);

/* ---- Changes, with the set's lock held ---- */

/* What a change does to the first case, or the first two. */
enum ic_way {
    IC_WAY_BRANCH, /* the site branches to the code, which has all cases */
    IC_WAY_ENTER,  /* they are written to the site's own bytes */
    IC_WAY_KEEP    /* they stay there */
};

/* A change of a cache: its future cases and code. */
struct ic_change {
    cairn_ic *ic;
    struct ic_case cases[CAIRN_IC_CASE_LIMIT_MAX];
    uint32_t case_count;
    bool is_megamorphic;
    struct ic_seen *seen;   /* of a cache that becomes megamorphic; otherwise NULL */
    struct ic_table *table; /* the cache's, or one that only the change has */
    struct ic_code code;
    struct change patch;
    enum ic_way way;
    uint32_t inline_count;            /* of cases in the site's own bytes, unless it branches */
    bool leaves_inline;               /* whether the site must branch */
    bool may_join;                    /* whether the second case could be there, too */
    struct arch_cache_inline inlined; /* of cases that are written; and their bytes */
    uint8_t inline_bytes[ARCH_CACHE_INLINE_BYTES_MAX];
    bool has_set_miss; /* whether misses of cases that stay there branch to the new code */
    bool is_altered;   /* whether there is anything to change */
    bool needs_code;   /* whether more than words of the table change */
    bool resets_counts;
    uint64_t added_key; /* of the case that was added last; for events */
};

/* Begins a change, with the cache's present cases. */
void ic_change_begin(struct ic_change *change, cairn_ic *ic);

/* Makes the changes, at least one, with one barrier. Ends them in any case. `*made` is `count` if
 * all of them have been made, even if the barrier was refused, and less otherwise: 0 with a dual
 * mapping. */
enum cairn_status ic_changes_apply(struct ic_change *changes, size_t count,
                                   enum cairn_strength strength, size_t *made,
                                   struct cairn_error *error);

/* Makes the code of a usable cache again: because the site's own bytes have become free, or so that
 * they become free. */
void ic_change_again(cairn_ic *ic, bool leaves_inline);

/* Returns the state of a cache with so many cases. */
static inline enum cairn_ic_state ic_state_of(bool is_megamorphic, uint32_t case_count)
{
    if (is_megamorphic)
        return CAIRN_IC_MEGAMORPHIC;
    if (case_count < 2)
        return case_count == 0 ? CAIRN_IC_EMPTY : CAIRN_IC_MONOMORPHIC;
    return CAIRN_IC_POLYMORPHIC;
}

/* Records that the cases of a cache have changed. */
void ic_note_change(const cairn_ic *ic, enum cairn_ic_state from, enum cairn_ic_state to,
                    uint64_t added_key);

/* ---- The site's own bytes (ic/inline.c) ---- */

/* Find out whether a new cache may use the bytes, and allocate what that needs (MEMORY); end the
 * use of a cache that was destroyed; end that of a site that is being destroyed. */
enum cairn_status ic_inline_prepare(cairn_ic *ic, struct cairn_error *error);
void ic_inline_end(cairn_ic *ic);
void ic_inline_unload(struct site_inline *inlined);

/* Writes the no-ops that were in the bytes at first, unless they are there. No thread may be in
 * them, and no cache may use them. If this fails, the site cannot become a call. */
void ic_inline_restore(cairn_site *site);
/* Makes sure that the site may become a call, which returns into the bytes. False if threads may be
 * in a cache's code there. */
bool ic_inline_prepare_call(cairn_ic *ic);
/* Chooses the way of a change; `cache` has all cases. */
enum ic_way ic_inline_choose(struct ic_change *change, const struct arch_cache *cache);
/* Encodes the change's first cases. False if they do not fit. */
bool ic_inline_encode(struct ic_change *change, const struct arch_cache *cache, uint64_t miss);
/* Writes the bytes of first cases that threads cannot reach yet, with one barrier, and encodes
 * where misses of those that stay will branch to. RANGE, SYSTEM. */
enum cairn_status ic_inline_write(struct ic_change *changes, size_t count,
                                  struct cairn_error *error);
/* Makes misses of first cases that stay branch to the changes' code, and sets `has_set_miss`.
 * Cannot fail with a dual mapping. SYSTEM. */
enum cairn_status ic_inline_set_misses(struct ic_change *changes, size_t count,
                                       struct cairn_error *error);
/* Makes the change's first case that of the cache. */
void ic_inline_adopt(const struct ic_change *change);

/* ---- Tables of megamorphic caches (ic/table.c) ---- */

/* Add a case to the change's table, or create the table, if it can have the case; remove the case
 * with this guard, if it is there. Do nothing otherwise. MEMORY. */
enum cairn_status ic_table_add(struct ic_change *change, const struct cairn_ic_case *added,
                               struct cairn_error *error);
enum cairn_status ic_table_remove(struct ic_change *change, const struct cairn_ic_guard *guard,
                                  struct cairn_error *error);
/* Retires a table that only the change has, and makes the change's table that of the cache again.
 */
void ic_table_drop(struct ic_change *change);
/* Makes the change's table that of the cache. */
void ic_table_adopt(struct ic_change *change);
/* Frees a table that no code has. NULL is allowed. */
void ic_table_free(struct ic_table *table);
/* Returns the number of cases; 0 for NULL. */
uint32_t ic_table_count(const struct ic_table *table);
/* Returns one of the cases; and the input of the encoder. */
const struct cairn_ic_case *ic_table_form(const struct ic_table *table);
struct arch_cache_table ic_table_describe(const struct ic_table *table,
                                          const struct arch_cache_case *access);

/* ---- Cases ---- */

/* Returns the mask of all bits of a guard. */
static inline uint64_t ic_all_bits(uint8_t width)
{
    return width < sizeof(uint64_t) ? (UINT64_C(1) << 8 * width) - 1 : UINT64_MAX;
}

/* Check whether the cache can have this case or guard, and replace 0 by the default. ARGUMENT,
 * UNSUPPORTED. */
enum cairn_status ic_check_case(const cairn_ic *ic, struct cairn_ic_case *checked,
                                struct cairn_error *error);
enum cairn_status ic_check_guard(const cairn_ic *ic, struct cairn_ic_guard *guard,
                                 struct cairn_error *error);
bool ic_same_guard(const struct cairn_ic_guard *left, const struct cairn_ic_guard *right);
/* Whether two cases with the same guard do the same. */
bool ic_same_action(const struct cairn_ic_case *left, const struct cairn_ic_case *right);

/* ---- Code ---- */

/* Writes code for the change's cases, makes it visible to all cores, and sets the branch of the
 * site to it (`code` and `patch`). No thread can reach the code yet. FULL, MEMORY, SYSTEM, RANGE.
 */
enum cairn_status ic_code_make(struct ic_change *change, struct cairn_error *error);

#endif
