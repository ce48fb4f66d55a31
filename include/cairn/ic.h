/*
 * cairn/ic.h - inline caches: patch points that learn where the properties of objects are.
 *
 *     struct cairn_ic_options options = {.handler = missed, .user = vm};
 *     status = cairn_ic_create(site, &options, &ic, &error);
 *
 * The handler returns the property to the compiled code (cairn_ic_return) and adds a case
 * (cairn_ic_add), which later objects of the same shape hit. Any number of threads may execute the
 * site. Each execution sees either all cases from before a change or all cases from after it. Code
 * that a change replaces takes memory until a grace period ends (cairn/runtime.h).
 *
 * Threads: every function is thread-safe, and takes a lock of the runtime, so signal handlers must
 * not call it.
 *
 * While a site has a cache, its other changes are refused (STATE). After cairn_ic_destroy, and
 * after the module was retired, functions that return a status return STATE for the cache; only
 * destroying a cache of a retired module is possible.
 *
 * See cairn-inline-caches(7) (doc/inline-caches.md): cases, calling conventions, registers, times.
 * examples/inline_cache.c is a complete program.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_IC_H
#define CAIRN_IC_H

#include <cairn/exit.h>
#include <cairn/module.h>
#include <cairn/patch.h>
#include <cairn/runtime.h>
#include <cairn/status.h>
#include <cairn/value.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CAIRN_IC_CASE_LIMIT_DEFAULT = 4, /**< cases of a cache, unless its options set a limit */
    CAIRN_IC_CASE_LIMIT_MAX = 16,    /**< largest limit */
    CAIRN_IC_OPERANDS_MAX = 16       /**< most operands of a site that can have a cache */
};

typedef struct cairn_ic cairn_ic;

/* ---- Cases ---- */

/** Hits if the `width` bytes at `offset` from the receiver, read as an unsigned number in the
 *  machine's byte order, have the bits of `key` where `mask` has ones. */
struct cairn_ic_guard {
    /** The receiver: index of the operand among the patch point's call arguments, from 0. A pointer
     *  or an integer of 64 bits. */
    uint32_t operand;
    int32_t offset; /**< bytes */
    uint8_t width;  /**< 1, 2, 4 or 8 bytes */
    uint64_t mask;  /**< 0 stands for all bits */
    uint64_t key;   /**< has only bits that `mask` has */
};

/** The memory that a load reads or a store writes. */
struct cairn_ic_field {
    int32_t offset; /**< bytes from the receiver, or from where its pointer points to */
    uint8_t width;  /**< 1, 2, 4 or 8 bytes; at most the size of the value, for a floating-point
                     *   value its size */
    bool is_signed; /**< a loaded integer is sign-extended to the whole register; otherwise
                     *   zero-extended */
    bool is_out_of_line;    /**< the field is where a pointer in the receiver points to */
    int32_t pointer_offset; /**< offset of that pointer in the receiver, in bytes */
};

/** A second object, at a constant address, and its guard. The host must remove the case before the
 *  object is moved or freed. */
struct cairn_ic_holder {
    const void *object;          /**< NULL: the case has no holder */
    struct cairn_ic_guard guard; /**< `operand` is ignored */
};

/** The array that a load or a store accesses. The element with number i begins i times the field's
 *  width after the field's offset. */
struct cairn_ic_elements {
    uint8_t length_width;  /**< size of the length, an unsigned number: 1, 2, 4 or 8 bytes; 0: the
                            *   case accesses a field */
    int32_t length_offset; /**< bytes from the receiver; the length must be less than 2^63 */
    uint32_t index;        /**< number of the operand with the index: an i32 or i64, unsigned */
};

/** What a store does after it has stored the value and the key. */
enum cairn_ic_barrier_kind {
    CAIRN_IC_BARRIER_NONE = 0,
    /** Sets the byte at `cards` + (address of the receiver >> `card_shift`) to `card`. */
    CAIRN_IC_BARRIER_CARD = 1
};

struct cairn_ic_barrier {
    enum cairn_ic_barrier_kind kind;
    uint8_t card_shift; /**< 0 to 63 */
    uint8_t card;
    /** Address of the card of address 0: address of the first card - (address of the heap >>
     *  `card_shift`). Must be less than 2^63 when it is shifted left by `card_shift`. */
    uint64_t cards;
};

enum cairn_ic_action {
    CAIRN_IC_LOAD = 0,     /**< the result is the value of the field */
    CAIRN_IC_STORE = 1,    /**< an operand is stored into the field */
    CAIRN_IC_CONSTANT = 2, /**< the result is a constant */
    CAIRN_IC_CALL = 3      /**< a function is called with the site's arguments and returns the
                            *   site's result */
};

struct cairn_ic_case {
    struct cairn_ic_guard guard;
    enum cairn_ic_action action;
    struct cairn_ic_field field; /**< of a load or store */
    uint32_t operand;   /**< of a store: index of the stored operand, which is an integer, a
                         *   pointer, a float or a double */
    uint64_t constant;  /**< bits of the constant; of a float or a narrow integer the lower
                         *   bits */
    const void *target; /**< of a call: a function pointer, to C or compiled code */
    bool changes_key;   /**< a store also stores `new_key` into the word of the guard, which must
                         *   have no mask */
    uint64_t new_key;   /**< has only bits of the guard's width */
    struct cairn_ic_holder holder;
    struct cairn_ic_elements elements; /**< of a load without a holder, or a store */
    struct cairn_ic_barrier barrier;   /**< of a store */
};

/* ---- Handlers ---- */

/** An execution of the site that no case has hit. Valid until the handler returns. */
struct cairn_ic_miss {
    cairn_ic *ic;
    /** The patch point's call arguments, with their declared types. */
    const struct cairn_value *operands;
    uint32_t operand_count;
    /** The frame of the function that the site is in, the site's record, and other ways to
     *  continue (cairn/exit.h). */
    struct cairn_exit_call *call;
};

/**
 * Handles a miss in less time than a handler, because only general and vector registers are saved,
 * and no frame is found. `operands` holds the bits of the site's operands, zero-extended. The
 * handler either makes the access, stores the bits of the result in `result` if the site has one,
 * and returns true; or it returns false, and then the other handler is called with the same
 * operands. It returns false to add a case, to leave the compiled code (cairn/exit.h), and for
 * accesses that it cannot make.
 *
 * It is an ordinary function for the compiled code: it may call anything, also code that reaches
 * the same site, the thread's stack can be walked, and it may leave by longjmp or
 * cairn_context_resume instead of returning. It is called only if all operands and the
 * result are integers, pointers, doubles or, except on PPC64, floats, in registers. Otherwise only
 * the other handler is called.
 */
typedef bool cairn_ic_light_handler(cairn_ic *ic, const uint64_t *operands, uint64_t *result,
                                    void *user);

/** Handles a miss, on the thread's own stack. It may call anything, also code that reaches the same
 *  site, and must return. `user` is the pointer from the options. */
typedef void cairn_ic_handler(struct cairn_ic_miss *miss, void *user);

/** Makes the code continue after the site with this result when the handler returns, as
 *  cairn_exit_continue does. `result` is NULL if the site has no result. A handler that calls
 *  neither this nor an action of cairn/exit.h leaves the result's register unchanged. Errors: as
 *  cairn_exit_continue.
 *
 *  Threads: only the handler calls this, in its own thread. Async-signal-safe. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_ic_return(struct cairn_ic_miss *miss,
                                                             const struct cairn_value *result,
                                                             struct cairn_error *error);

/* ---- Creating and destroying caches ---- */

struct cairn_ic_options {
    cairn_ic_handler *handler;
    void *user; /**< argument of the handlers */
    /** Called before `handler` and `megamorphic_handler`; NULL: none. */
    cairn_ic_light_handler *light_handler;
    /** Called while the cache is megamorphic; NULL for `handler`. */
    cairn_ic_handler *megamorphic_handler;
    /** A function that the site calls directly, with its arguments, while the cache is megamorphic.
     *  Only with the C calling convention and fastcc. NULL to use the handler. It cannot leave the
     *  site's function as a handler can. If it must, let it return a value that no access has, and
     *  test that with a guard after the site (cairn_build_guard). It throws by
     *  cairn_context_resume. */
    const void *megamorphic_target;
    uint32_t case_limit; /**< 1 to CAIRN_IC_CASE_LIMIT_MAX; 0 for CAIRN_IC_CASE_LIMIT_DEFAULT */
    /** Counts hits of each case, and misses. Counts may be lost if several threads hit one case at
     *  the same time, but not with one thread. */
    bool counts_hits;
    /** The cache has a table while it is megamorphic (cairn-inline-caches(7)). */
    bool has_table;
};

/**
 * Creates an empty cache for the site. From now on, executions of the site call the handler.
 *
 * No other change of the site, by the functions of cairn/patch.h, may overlap this call. A live
 * change that began earlier may store its instruction after the cache's. The site then does not
 * branch to the cache until that is changed or destroyed. Invalidations may overlap this call: they
 * leave the site unchanged, or come first.
 *
 * Errors, after which the site is unchanged:
 * UNMANAGED: the site is not a live patch point. The message gives the reason.
 * NOT_FOUND: the site has no declaration.
 * CONFLICT: the site has a cache.
 * ARGUMENT: `site` or the handler is NULL; the limit is too large; sites with this calling
 * convention cannot call the megamorphic target.
 * UNSUPPORTED: another calling convention; more than CAIRN_IC_OPERANDS_MAX operands; an operand or
 * result of a type that handlers cannot have; Cairn cannot save all registers of this machine.
 * CORRUPT: the record does not have what its declaration says.
 * STATE: the module is retired, or a visitor calls.
 * FULL, MEMORY, SYSTEM.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_ic_create(cairn_site *site,
                                                             const struct cairn_ic_options *options,
                                                             cairn_ic **ic,
                                                             struct cairn_error *error);

/** Restores what the site did when its module was published (cairn_site_restore), and destroys the
 *  cache. The host must not use it after this call. Other threads may be in its handlers, so its
 *  memory is freed when a grace period ends that began later. A handler may destroy the cache that
 *  called it, but its thread must not end such a grace period before the handler returns. NULL is
 *  allowed.
 *
 *  Errors: as cairn_site_restore; the cache is then unchanged. STATE: it was destroyed before.
 *  SYSTEM after the change: the barrier was refused, and cairn_site_ic returns NULL.
 *  cairn_site_restore requests the barrier again. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_ic_destroy(cairn_ic *ic,
                                                              enum cairn_strength strength,
                                                              struct cairn_error *error);

/* ---- Changing one cache ---- */

/**
 * Adds a case after the others. A case with the same guard is replaced. If the cache has as many
 * cases as its limit allows, it becomes megamorphic instead. Nothing changes if the cache is
 * megamorphic, except its table and what it reports to a compiler (cairn-inline-caches(7)), or if
 * it has this very case. All of these are successes.
 *
 * Errors, after which the cache is unchanged:
 * ARGUMENT: an operand does not exist; a width is invalid; the key has bits outside the mask or the
 * width; the field is wider than the value; the site's result or operands do not allow the action;
 * the action has no holder, elements, new key or barrier of the kind that is given; a card's
 * address is not representable. The message gives the reason.
 * UNSUPPORTED: an operand or the result is not in a register, or has a type that only handlers and
 * calls support; a call with such types.
 * STATE: the cache is destroyed, its module is retired, or a visitor calls.
 * RANGE, FULL, MEMORY, SYSTEM: as cairn_site_call.
 *
 * SYSTEM after the change: the barrier was refused. The host adds the same case again, which
 * requests the barrier again, or stops its threads.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_ic_add(cairn_ic *ic,
                                                          const struct cairn_ic_case *added,
                                                          enum cairn_strength strength,
                                                          struct cairn_error *error);

/* ---- Other changes, of any number of caches ---- */

enum cairn_ic_change_kind {
    CAIRN_IC_CHANGE_ADD = 0, /**< as cairn_ic_add */
    /** Removes the case with the guard of `entry`. CAIRN_ERROR_NOT_FOUND if the cache has no such
     *  case, unless it is megamorphic and has a table. */
    CAIRN_IC_CHANGE_REMOVE = 1,
    /** Removes all cases, makes a megamorphic cache empty, and sets the count of misses to 0. */
    CAIRN_IC_CHANGE_RESET = 2
};

struct cairn_ic_change {
    cairn_ic *ic;
    enum cairn_ic_change_kind kind;
    /** The case to add, or a case with the guard to remove: its other members are ignored. Ignored
     *  by CAIRN_IC_CHANGE_RESET. */
    struct cairn_ic_case entry;
};

/**
 * Makes `count` changes of caches of one runtime, with one barrier. Changes of one cache are made
 * in their order. One store of its site replaces the old cases by the final ones. A list without
 * changes is a success. The list is read only during the call.
 *
 * Takes O(n) time, and makes code once for each cache.
 *
 * A list that a visitor has collected may be out of date: other threads may have changed caches
 * since. If this returns NOT_FOUND or STATE, collect the changes again.
 *
 * Errors, after which every cache is unchanged:
 * ARGUMENT: as cairn_ic_add; or the caches are of two runtimes.
 * NOT_FOUND: a cache does not have a case that is to be removed.
 * UNSUPPORTED, STATE, RANGE, FULL, MEMORY, SYSTEM: as cairn_ic_add. The message names the site.
 *
 * SYSTEM after the changes: the barrier was refused. Any later change with a barrier requests it
 * again. (With a single mapping, only some caches may have been changed: see cairn_ic_describe.)
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_ics_change(const struct cairn_ic_change *changes,
                                                              size_t count,
                                                              enum cairn_strength strength,
                                                              struct cairn_error *error);

/* ---- Describing caches ---- */

enum cairn_ic_state {
    CAIRN_IC_EMPTY = 0,
    CAIRN_IC_MONOMORPHIC = 1,
    CAIRN_IC_POLYMORPHIC = 2,
    CAIRN_IC_MEGAMORPHIC = 3,
    CAIRN_IC_DESTROYED = 4 /**< cairn_ic_destroy was called */
};

/** Returns the name of a state: "empty", "monomorphic", …; "unknown" for other numbers. The string
 *  is static. Thread-safe and async-signal-safe. */
CAIRN_API const char *cairn_ic_state_name(enum cairn_ic_state state);

/** A case of a cache, with what was counted of it. */
struct cairn_ic_seen {
    struct cairn_ic_case entry;
    uint64_t hits;      /**< executions that hit it; 0 if not counted */
    uint64_t additions; /**< times it was added while the cache was megamorphic */
};

struct cairn_ic_description {
    cairn_ic *ic;
    cairn_site *site;
    uint64_t id;      /**< ID of the record */
    uint64_t address; /**< address of the site */
    enum cairn_ic_state state;
    uint32_t case_count;
    uint32_t case_limit;
    uint32_t table_case_count; /**< cases of a megamorphic cache in its table */
    /** The cases in the order in which they are tried. Of a megamorphic cache: its last cases, then
     *  the cases that were added since. */
    const struct cairn_ic_seen *seen;
    uint32_t seen_count;      /**< at most CAIRN_IC_CASE_LIMIT_MAX */
    uint64_t other_additions; /**< additions to a megamorphic cache of cases not in `seen` */
    bool counts_hits;
    uint64_t misses; /**< calls of the handlers since the last reset; 0 if not counted */
    /** Size of the code of the cache, with the first case's code in the site's own bytes. */
    size_t code_bytes;
    size_t case_bytes; /**< size of the part of it that is for the cases */
};

/** Describes the cache at this moment. Writes up to `capacity` of its cases to `seen`, which may be
 *  NULL if `capacity` is 0; `description->seen` is then `seen`. A destroyed cache has no cases and
 *  no code. */
CAIRN_API void cairn_ic_describe(cairn_ic *ic, struct cairn_ic_seen *seen, uint32_t capacity,
                                 struct cairn_ic_description *description);

/** Returns the state of the cache at this moment. */
CAIRN_API enum cairn_ic_state cairn_ic_state(cairn_ic *ic);

/** Returns the site's cache, or NULL. */
CAIRN_API cairn_ic *cairn_site_ic(cairn_site *site);

/** Returns whether the visit continues. `description` is valid during the call. */
typedef bool cairn_ic_visitor(const struct cairn_ic_description *description, void *user);

/**
 * Calls `visit` for each cache of the runtime, oldest first, until it returns false.
 *
 * The visitor runs with the lock of the caches held. If it calls functions that create or change
 * caches, they return STATE, and cairn_runtime_quiesce does nothing. To change what it visits, it
 * collects changes, and the host calls cairn_ics_change after the visit. The visitor may describe
 * and visit caches, run code that reaches them, fork, and call everything else, including
 * cairn_runtime_destroy (the visit has a reference). It must not wait for a thread that uses caches
 * or invalidates. fork() takes the locks of all runtimes, so visitors of two runtimes must not fork
 * at the same time.
 */
CAIRN_API void cairn_runtime_visit_ics(cairn_runtime *runtime, cairn_ic_visitor *visit, void *user);

#ifdef __cplusplus
}
#endif
#endif
