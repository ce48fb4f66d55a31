/*
 * cairn/ic.h - inline caches: patch points that learn where the properties of objects are.
 *
 * Compiled code reads a property through a patch point:
 *
 *     %value = call anyregcc i64 (…) @llvm.experimental.patchpoint.i64(i64 1, i32 32, ptr null,
 *                                                                     i32 1, ptr %object)
 *
 * The host binds a cache with a handler to the site:
 *
 *     static void missed(struct cairn_ic_miss *miss, void *user)
 *     {
 *         struct object *object = cairn_value_pointer(&miss->operands[0]);
 *         struct cairn_value value = cairn_value_of_integer(64, look_up(user, object));
 *         if (cairn_ic_return(miss, &value, &error) != CAIRN_OK) …
 *         struct cairn_ic_case found = {
 *             .guard = {.operand = 0, .width = 4, .offset = 0, .key = object->shape},
 *             .action = CAIRN_IC_LOAD,
 *             .field = {.offset = offset_in(object->shape), .width = 8},
 *         };
 *         if (cairn_ic_add(miss->ic, &found, CAIRN_RELAXED, &error) != CAIRN_OK) …
 *     }
 *
 *     struct cairn_ic_options options = {.handler = missed, .user = vm};
 *     cairn_ic_create(site, &options, &ic, &error)
 *
 * When a shape dies, the host visits all caches (cairn_runtime_visit_ics), collects a change for
 * each case with that shape, also as the holder's or the new one, and makes all changes with one
 * call (cairn_ics_change). What megamorphic caches report (FEEDBACK) may still name it.
 * examples/inline_cache.c does both.
 *
 * CASES. A case is a guard and an action. The guard loads 1, 2, 4 or 8 bytes at an offset from an
 * operand, the receiver, and compares the bits that are in a mask with a key. If they are equal,
 * the action is done: load a field, store an operand into a field, return a constant, or call a
 * function. Otherwise the next case is tried. If no case hits, the handler is called. The receiver
 * must be a readable pointer: code whose values are tagged tests the tag before the patch point.
 *
 * A case may do more:
 *
 *   - HOLDERS. A second guard compares a word of another object, which is at a constant
 *     address: the prototype that has the property. A load then reads the holder's field. A store,
 *     a constant and a call only test the guard, for example that no prototype has a setter.
 *   - TRANSITIONS. A store that adds a property stores the value and then the new key into the word
 *     that the guard has compared. The two stores are not ordered for other threads.
 *   - WRITE BARRIERS. A store marks the card of the receiver.
 *   - ELEMENTS. The field is an element of an array, whose index is an operand. The length is in
 *     the receiver. An index that is not less than the length misses.
 *
 * Each of them takes a few instructions more, and space in the site's own bytes: 64 bytes on x86-64
 * and AArch64 and 112 bytes on PPC64 are enough for most cases.
 *
 * STATES. A cache is empty, monomorphic (one case), polymorphic (several cases, up to a limit) or
 * megamorphic: one case more than the limit was added. A megamorphic cache has no cases and takes
 * none, except in its table. All other executions of its site call the host's megamorphic handler
 * directly until the cache is reset.
 *
 * TABLES. With `has_table`, a megamorphic cache keeps the cases that it had, and takes more, in a
 * table that its code searches by key. They must be loads or stores of fields in the receiver that
 * differ from each other only in the key and in the field's offset, which is not negative. The
 * guards compare 4 or 8 bytes without a mask. Keys of 8 bytes are less than 2^48, and their
 * fields' offsets less than 65,536: addresses of shapes, for example. Other cases are not taken,
 * and caches that count hits have no table. A table grows to 2^11 words of 8 bytes. If
 * two keys have the same place even then, the newer case replaces the older one. So an access may
 * miss although its case was added, and a handler that always adds the case adds it again.
 *
 * Descriptions only count the cases of a table. A host that must remove all cases of a shape
 * removes them from each megamorphic cache with a table (CAIRN_IC_CHANGE_REMOVE), which succeeds
 * even if the case is not there.
 *
 * FEEDBACK for a compiler that optimises the code further: cairn_ic_describe and
 * cairn_runtime_visit_ics return the cases and how often each has hit. A megamorphic cache reports
 * the cases that it had, with their hits, and the cases that were added since, up to
 * CAIRN_IC_CASE_LIMIT_MAX together, and how often each was added. So a handler of megamorphic
 * misses that adds cases, at least some of the time, counts which shapes there are. These additions
 * change nothing else.
 *
 * THE FIRST CASE in the order of the cases is tested in the site's own bytes, if they have space
 * for it (cairn_patchpoint_inline_bytes). It then takes as long as a guard in the compiled
 * function. The site is a no-op, and misses of the first case jump to code with the other cases.
 * All other cases, and the first one where this is not possible, are in code elsewhere, to which
 * the site branches: a hit then takes two jumps more. The site's own bytes are used
 *
 *   - at patch points without a target that have never been a call (cairn_site_call), on PPC64 not
 *     with the C calling convention;
 *   - on systems with a barrier (can_synchronise in struct cairn_runtime_statistics);
 *   - for loads, stores and constants, and for functions that code can call itself (CALLING
 *     CONVENTIONS) and that are in reach of a direct call;
 *   - unless another case is such a function; or all cases are distinguished without branches
 *     (COSTS); or on x86-64 the constant is a floating-point number.
 *
 * On x86-64, the second case may follow it there: if both are loads, stores or constants, the first
 * one has no holder, elements, transition or barrier, and there is space for both, for which 64
 * bytes are enough in most cases. If it is added later, it is elsewhere until a grace period ends
 * that began later; then both are elsewhere until another one ends that began after that.
 *
 * Adding and removing other cases keeps these cases where they are. If one of them changes, threads
 * may still be in its code, so the new cases are in code elsewhere until a grace period ends that
 * began later. The function that ends it (cairn_runtime_grace_end) then writes the new first cases,
 * with a barrier. If a second function is added to a cache whose first case is there, functions
 * return to addresses that the processor has not predicted until such a grace period ends, which
 * takes several times as long as a call. Then the site calls the cache's code for good. After
 * cairn_ic_destroy, the site's bytes are restored at the end of a grace period. Until then the site
 * cannot be a call (STATE), but it can be all else.
 *
 * THE GUARANTEE is that of cairn/patch.h, for the cache as a whole. Any number of threads may
 * execute the site. Each execution sees either all cases from before a change or all cases from
 * after it. A change makes new code for the cases of the cache. The site, or its first case's
 * branch for misses, reaches that code with one store. The old code stays until the next quiescent
 * point (cairn_runtime_quiesce), so a host that adds and removes cases all the time must pass one
 * now and then. Until then the old code takes memory of the module's slab. If the slab is full,
 * changes are refused (FULL) and the cache is unchanged.
 *
 * REGISTERS. A hit changes the result's register, and the memory that a store writes. It also
 * changes registers that the ABI lets code between caller and callee change, and in which LLVM
 * keeps nothing across a patch point: r11 on x86-64; x16 and x17 on AArch64; r11, r12, CTR and LR
 * on PPC64. It writes nothing below the stack pointer, except for 16 bytes on x86-64 if it searches
 * a table by keys of 8 bytes, and changes no vector register except the result's. Flags are
 * preserved on AArch64 and PPC64. On x86-64 the arithmetic flags change, as LLVM assumes of every
 * patch point. A case that calls changes what the site's calling convention lets a call change.
 *
 * CALLING CONVENTIONS. With anyregcc, operands and result are in any registers, which the record
 * names. All other registers are preserved, also while the handler runs, which finds vector
 * registers in the frame too. With the C calling convention and fastcc (not on PPC64, where fastcc
 * places arguments differently), they are where the ABI puts them. Operands of guards and actions
 * must be in registers. A hit may then call a function that takes the site's arguments and returns
 * its result, and such a function may also handle megamorphic misses. With coldcc, preserve_mostcc
 * and preserve_allcc, arguments are placed as with C, but the code relies on more preserved
 * registers. With these and with anyregcc, Cairn calls the function, as it calls a handler: the
 * function may have any calling convention's effects, and takes as long as a miss.
 *
 * COSTS. bench/cairn-bench-ic measures them, in one run with what they are compared with. On an AMD
 * EPYC with AVX-512:
 *
 *   - A hit of the first case in the site's own bytes takes as long as a guard and a load in the
 *     compiled function. A hit in code elsewhere takes 0.5 ns more, and each case that is tested
 *     before it about as much as a guard.
 *   - On x86-64, three or more cases that differ only in key and field offset are distinguished
 *     without a branch for each, unless hits are counted.
 *   - A transition and a load of a holder's field in the site's own bytes also take as long as the
 *     same code in the compiled function; an element takes 0.3 ns more than that.
 *   - A barrier takes four instructions.
 *   - A miss takes 80 to 100 ns, 40 times as long as a call of a lookup in a hash table, and the
 *     time of the handler, because all registers are saved and restored, and the frame is found.
 *     With code compiled for AVX-512 on an Intel Sapphire Rapids it takes 400 to 450 ns.
 *   - A miss that a light handler handles takes 15 ns, and the time of the light handler. If the
 *     light handler refuses it, that time is added to the other.
 *   - An access of a megamorphic cache that finds its case in the table takes 1.2 ns, with keys of
 *     8 bytes 1.5 ns: half of the time of a call of a lookup in a hash table. All others are
 *     misses, of which a light handler should handle most. With a megamorphic target they take 3
 *     ns: a direct call and a lookup in the host's hash table. Only sites with the C calling
 *     convention and fastcc can have one.
 *   - A case that calls takes as long as a miss where Cairn calls the function (CALLING
 *     CONVENTIONS), otherwise as long as a guarded direct call.
 *   - Adding a case takes 1.3 us, so a handler should not add a case that will not hit again.
 *
 * HANDLERS run on the thread's own stack, below the frame of the code. They may call anything,
 * also code that reaches the same site, and may run on several threads at the same time. They must
 * return. `call` gives them everything that handlers of exits have (cairn/exit.h). Instead of
 * returning a result, they may request one of the actions there.
 *
 * OTHER CHANGES. While a site has a cache, other changes of the site are refused (STATE), and
 * invalidations leave it unchanged. A change of the site that is in progress while the cache is
 * created may take effect after it: the host must not do both at the same time.
 *
 * LIFETIME. The host must not use a cache that it has destroyed. Other threads may be in a handler
 * of it: until a grace period that began later ends (cairn/runtime.h) and frees its memory, all
 * functions here that return a status return STATE for it, as they do after its module was retired.
 * (A cache of a retired module may still be destroyed.) A handler may destroy the cache that called
 * it, create another one for the site, and retire the module that it runs in; its thread continues
 * as usual. After that it must not end a grace period that began later, because its own thread is
 * still in the retired code. It must never destroy the runtime.
 *
 * Threads. All functions here may be called from any thread, also by handlers, and take a lock of
 * the runtime. Only cairn_ic_return is async-signal-safe. Code in a signal handler may execute
 * sites with caches, and miss. The cache's handler must not change caches then. (If the signal has
 * interrupted a change of a cache on the same thread, it gets STATE.)
 *
 * Sources: LLVM, "Stack maps and patch points in LLVM", section "llvm.experimental.patchpoint" and
 * calling convention "anyregcc" (LLVM Language Reference).
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
    bool changes_key;   /**< whether a store also stores `new_key` into the word of the guard, which
                         *   must have no mask */
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
 * the same site, and the thread's stack can be walked. It is called only if all operands and the
 * result are integers, pointers, doubles or, except on PPC64, floats, in registers. Otherwise only
 * the other handler is called.
 */
typedef bool cairn_ic_light_handler(const uint64_t *operands, uint64_t *result, void *user);

/** Handles a miss. `user` is the pointer from the options. */
typedef void cairn_ic_handler(struct cairn_ic_miss *miss, void *user);

/** Makes the code continue after the site with this result when the handler returns. `result` is
 *  NULL if the site has no result. The same as cairn_exit_continue. If a handler calls neither this
 *  function nor one of the actions of cairn/exit.h, the result's register is unchanged.
 *
 *  Async-signal-safe. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_ic_return(struct cairn_ic_miss *miss,
                                                             const struct cairn_value *result,
                                                             struct cairn_error *error);

/* ---- Creating and destroying caches ---- */

struct cairn_ic_options {
    cairn_ic_handler *handler;
    void *user; /**< argument of the handlers */
    /** Called before `handler` and `megamorphic_handler`; NULL if there is none. */
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
    /** Whether the cache has a table while it is megamorphic (TABLES). */
    bool has_table;
};

/**
 * Creates an empty cache for the site. From now on, executions of the site call the handler.
 *
 * No other change of the site, by the functions of cairn/patch.h, may overlap this call. Live
 * changes take no lock, so one that began earlier may store its instruction after the cache's. The
 * cache then exists, but the site does not branch to it until the cache is changed or destroyed.
 * Invalidations may overlap this call: they leave the site unchanged, or come first.
 *
 * Errors, after which the site is unchanged:
 * UNMANAGED: the site is not a live patch point. The message gives the reason.
 * NOT_FOUND: the site has no declaration.
 * CONFLICT: the site has a cache.
 * ARGUMENT: there is no site or no handler; the limit is too large; there is a megamorphic target
 * but sites with this calling convention cannot call it.
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
 *  cache: see LIFETIME above. NULL is allowed.
 *
 *  Errors: STATE: it was destroyed before. After other errors, those of cairn_site_restore, the
 *  cache is unchanged. SYSTEM after the change: the barrier was refused, and cairn_site_ic returns
 *  NULL. cairn_site_restore requests the barrier again. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_ic_destroy(cairn_ic *ic,
                                                              enum cairn_strength strength,
                                                              struct cairn_error *error);

/* ---- Changing one cache ---- */

/**
 * Adds a case after the others. A case with the same guard is replaced. If the cache has as many
 * cases as its limit allows, it becomes megamorphic instead. Nothing changes if the cache is
 * megamorphic, except its table (TABLES) and what it reports (FEEDBACK), or if it has this very
 * case. All of these are successes.
 *
 * Errors, after which the cache is unchanged:
 * ARGUMENT: there is no such operand; a width is invalid; the key has bits outside the mask or the
 * width; the field is wider than the value; the site's result or operands do not allow the action;
 * the action has no holder, elements, new key or barrier of the kind that is given; a
 * card's address is not representable. The message gives the reason.
 * UNSUPPORTED: an operand or the result is not in a register, or has a type that only handlers and
 * calls support; a call with such types.
 * STATE: the cache is destroyed, its module is retired, or a visitor calls.
 * RANGE, FULL, MEMORY, SYSTEM and the errors of a strength, as for cairn_site_call.
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
    /** Removes the case with the guard of `entry`. NOT_FOUND if there is no such case, and the
     * cache is not a megamorphic one with a table. */
    CAIRN_IC_CHANGE_REMOVE = 1,
    /** Removes all cases, also makes a megamorphic cache empty, and sets the count of misses to 0.
     */
    CAIRN_IC_CHANGE_RESET = 2
};

struct cairn_ic_change {
    cairn_ic *ic;
    enum cairn_ic_change_kind kind;
    /** The case to add; or a case with the guard to remove, whose other members are ignored.
     * Ignored by RESET. */
    struct cairn_ic_case entry;
};

/**
 * Makes `count` changes of caches of one runtime, with one barrier. Changes of one cache are made
 * in their order. One store of its site replaces the old cases by the final ones. A list without
 * changes is a success. The list is read only during the call.
 *
 * Thread-safe. Takes O(n) time, and makes code once for each cache.
 *
 * A list that a visitor has collected may be out of date: other threads may have changed caches
 * since. If this returns NOT_FOUND or STATE, collect the changes again.
 *
 * Errors, after which every cache is unchanged: those of cairn_ic_add and of the kinds of changes.
 * Their messages name the site. ARGUMENT also for caches of two runtimes.
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
 *  is static. */
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
    /** The cases in the order in which they are tried; of a megamorphic cache, its last cases, then
     *  those added since (FEEDBACK). */
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
