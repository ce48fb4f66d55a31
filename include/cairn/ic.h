/*
 * cairn/ic.h - inline caches: a patch point that learns where the properties of objects are.
 *
 * Compiled code reads a property through a patch point:
 *
 *     %value = call anyregcc i64 (…) @llvm.experimental.patchpoint.i64(i64 1, i32 16, ptr null,
 *                                                                     i32 1, ptr %object)
 *
 * The host binds a cache to its site, with a handler, and code does not change any more:
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
 * CASES. A case is a guard and an action. The guard loads 1, 2, 4 or 8 bytes at an offset from an
 * operand, the receiver, and compares those bits of them that are in a mask with a key. If they are
 * equal the action is done: loading a field, storing an operand into one, a constant, or a call.
 * Otherwise the next case is tried, and behind the last one the handler is called. The receiver has
 * to be a pointer that can be read: code whose values are tagged tests the tag before the patch
 * point.
 *
 * STATES. A cache is empty, monomorphic (one case), polymorphic (up to a limit), and megamorphic:
 * a case more than the limit was added. Then it has no cases any more, takes none, and goes to the
 * host's handler for that at once, until it is reset.
 *
 * THE GUARANTEE is that of cairn/patch.h, for the cache as a whole: while any number of threads
 * execute the site, each execution sees all cases as they were before a change, or all as they are
 * after it. A change makes new code for all of the cache's cases, and the site goes to that with
 * one store. What the site went to before stays until the next quiescent point
 * (cairn_runtime_quiesce): a host that adds and removes cases all the time has to come to one now
 * and then. Until then it takes memory of the module's slab; where the slab is full, changes are
 * refused (FULL), and the cache is as it was.
 *
 * WHAT A HIT CHANGES is the result's register, and where the field is stored; of other registers
 * those that the ABI leaves to code between caller and callee, and in which LLVM keeps nothing
 * across a patch point: r11 on x86-64; x16 and x17 on AArch64; r11, r12, CTR and LR on PPC64.
 * Nothing is written below the stack pointer, and no vector register but the result's is touched.
 * Flags stay as they are on AArch64 and PPC64. On x86-64 the arithmetic flags change, which LLVM
 * counts as gone behind every patch point; a host whose own code generator does not asks for
 * `keeps_flags`. A call is a call: it changes what the site's calling convention lets it change.
 *
 * CALLING CONVENTIONS. With anyregcc the operands and the result are in any registers, which the
 * record names, and all others stay as they are: also while the handler runs, which finds vector
 * registers in the frame, too. With the C calling convention and fastcc (but not on PPC64, where
 * that has places of its own) they are where the ABI says; operands of guards and actions have to
 * be in registers. Then a hit may call a function that takes the site's arguments and returns its
 * result, and the megamorphic handler may be such a function. With coldcc, preserve_mostcc and
 * preserve_allcc arguments are placed as with C, but the code counts on more registers. So with
 * these, and with anyregcc, a function is called through Cairn, as a handler is: it may be any, and
 * takes as long as a miss.
 *
 * A HANDLER runs on the thread's own stack, below the frame of the code, may call anything, also
 * code that comes to the same site, and may be in execution on several threads. It must return. It
 * has all that handlers of exits have (cairn/deopt.h) in `deopt`, and may ask for their actions
 * instead of returning a result.
 *
 * While a site has a cache, other patches of it are refused (STATE), and invalidations leave it
 * alone. A patch that is going on while the cache is created may still take effect after it: the
 * host must not do both at the same time.
 *
 * LIFETIME. A cache may be used until it is destroyed or its module is retired. After that every
 * function here that has a status returns STATE, until the next quiescent point
 * (cairn_runtime_quiesce) that begins after it: there the memory of the cache is freed, so the
 * pointer must not be passed any more. (A cache of a retired module may still be destroyed.) A
 * handler may destroy the cache that it is called by, give the site another one, and retire the
 * module that it runs in; its thread goes on as usual. It must not come to a quiescent point after
 * that, because its own thread is still in the retired code, and it must never give up the last
 * share of the runtime.
 *
 * Threads. Every function here may be called from any thread, handlers included, and takes a lock
 * of the runtime's inside; only cairn_ic_return is async-signal-safe. Code in a signal handler
 * may execute sites with caches, and miss: the cache's handler must not change caches then. (If the
 * signal has interrupted a change of a cache on the same thread, it gets STATE.)
 *
 * Sources: LLVM, "Stack maps and patch points in LLVM", section "llvm.experimental.patchpoint" and
 * calling convention "anyregcc" (LLVM Language Reference).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_IC_H
#define CAIRN_IC_H

#include <cairn/deopt.h>
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
    /** Cases of a cache, if its options do not say otherwise. */
    CAIRN_IC_CASE_LIMIT_DEFAULT = 4,
    /** The largest limit that there is. */
    CAIRN_IC_CASE_LIMIT_MAX = 16,
    /** Operands that a handler gets at most; a site with more has no cache. */
    CAIRN_IC_OPERANDS_MAX = 16
};

typedef struct cairn_ic cairn_ic;

/* ---- Cases ---- */

/** Hits if `width` bytes at `offset` from the receiver, in the machine's byte order, taken for an
 *  unsigned number, have the bits of `key` where `mask` has ones. */
struct cairn_ic_guard {
    /** The receiver: number of the operand among the patch point's call arguments, from 0 on. A
     *  pointer, or an integer of 64 bits. */
    uint32_t operand;
    int32_t offset; /**< bytes */
    uint8_t width;  /**< 1, 2, 4 or 8 bytes */
    /** 0 stands for all bits. */
    uint64_t mask;
    /** Has no bits that `mask` does not have. */
    uint64_t key;
};

/** What a load or a store gets to. */
struct cairn_ic_field {
    int32_t offset; /**< bytes, from the object on, or from what the pointer points to */
    /** 1, 2, 4 or 8 bytes; of a floating-point value its size. Not more than the value has. */
    uint8_t width;
    /** Of an integer that is loaded: extended by its sign to the whole register; otherwise by
     *  zeros. */
    bool is_signed;
    /** The field is not in the receiver, but where a pointer in the receiver, at
     *  `pointer_offset`, points to. */
    bool is_out_of_line;
    int32_t pointer_offset; /**< bytes */
};

enum cairn_ic_action {
    /** The result is what the field holds. */
    CAIRN_IC_LOAD = 0,
    /** An operand is stored into the field. */
    CAIRN_IC_STORE = 1,
    /** The result is a constant. */
    CAIRN_IC_CONSTANT = 2,
    /** A function is called with the site's arguments, and its result is the site's. */
    CAIRN_IC_CALL = 3
};

/** "load", "store", "constant", "call"; static. */
CAIRN_API const char *cairn_ic_action_name(enum cairn_ic_action action);

struct cairn_ic_case {
    struct cairn_ic_guard guard;
    enum cairn_ic_action action;
    /** Of a load or a store. */
    struct cairn_ic_field field;
    /** Of a store: number of the operand that is stored. An integer, a pointer, a float or a
     *  double. */
    uint32_t operand;
    /** The constant's bits; of a float the lower 32, of a narrow integer the lower ones. */
    uint64_t constant;
    /** Of a call: a function pointer, C's or compiled. */
    const void *target;
};

/* ---- Handlers ---- */

/** A thread that no case was for. Valid until the handler returns. */
struct cairn_ic_miss {
    cairn_ic *ic;
    /** The patch point's call arguments, of the types that were declared. */
    const struct cairn_value *operands;
    uint32_t operand_count;
    /** The frame of the function that the site is in, the site's record, and other ways to go on
     *  (cairn/deopt.h). */
    struct cairn_deopt *deopt;
};

/** `user` is what the options say. */
typedef void cairn_ic_handler(struct cairn_ic_miss *miss, void *user);

/** The code goes on behind the site with this result, when the handler has returned; `result` NULL
 *  where the site has none. As cairn_deopt_continue. A handler of a site with a result that calls
 *  neither this nor one of cairn/deopt.h's actions leaves the result's register as it was. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_ic_return(struct cairn_ic_miss *miss,
                                                             const struct cairn_value *result,
                                                             struct cairn_error *error);

/* ---- Caches ---- */

/** How several cases are told apart. */
enum cairn_ic_dispatch {
    /** Without a branch for each case where the architecture can and three or more cases differ in
     *  nothing but key and field offset, and hits are not counted; otherwise case by case. */
    CAIRN_IC_DISPATCH_AUTOMATIC = 0,
    /** Case by case, in the order in which they were added: for sites at which few shapes do most
     *  of the work, or follow each other in patterns that processors learn. */
    CAIRN_IC_DISPATCH_IN_ORDER = 1
};

struct cairn_ic_options {
    cairn_ic_handler *handler;
    void *user;
    /** Called when the cache is megamorphic, with the same `user`; NULL: `handler`. */
    cairn_ic_handler *megamorphic_handler;
    /** Or, where the calling convention is C's or fastcc: a function that the site then calls
     *  straight, with its arguments. NULL: none. */
    const void *megamorphic_target;
    /** 1 to CAIRN_IC_CASE_LIMIT_MAX; 0 means CAIRN_IC_CASE_LIMIT_DEFAULT. */
    uint32_t case_limit;
    enum cairn_ic_dispatch dispatch;
    /** Count hits of each case, and misses. Threads that hit one case at the same time may lose
     *  counts; one thread loses none. */
    bool counts_hits;
    /** Hits keep all flags on x86-64, too; it makes them several times slower there. */
    bool keeps_flags;
};

/**
 * A cache for the site, empty: from now on the site goes to the handler. The site is a live one of
 * a patch point (UNMANAGED; the sentence says why it is not), with a declaration (NOT_FOUND), and
 * has no cache yet (CONFLICT).
 *
 * No patch of the site may overlap this call: neither one by the functions of cairn/patch.h nor a
 * batch with the site. Live patches take no lock, so one that has begun before may store its
 * instruction after the cache's. The cache then exists, but the site does not go to it until the
 * cache is changed or destroyed. Invalidations may overlap it: they leave the site alone or come
 * first.
 *
 * ARGUMENT: no site, no handler, a limit that is too large, a megamorphic target where sites
 * cannot call straight.
 * UNSUPPORTED: another calling convention, more than CAIRN_IC_OPERANDS_MAX operands, an operand or
 * a result that handlers cannot have; Cairn cannot save all registers of this machine. CORRUPT: the
 * record does not have what its declaration says. FULL, MEMORY, SYSTEM. The site is then as it was.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_ic_create(cairn_site *site,
                                                             const struct cairn_ic_options *options,
                                                             cairn_ic **ic,
                                                             struct cairn_error *error);

/** Restores the site to what it was when its module was published (cairn_site_restore), and gives
 * the cache up: see LIFETIME above. NULL is allowed. STATE: it has been destroyed before. On
 * another error, of cairn_site_restore, the cache is unchanged. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_ic_destroy(cairn_ic *ic,
                                                              enum cairn_strength strength,
                                                              struct cairn_error *error);

/**
 * Adds a case behind the others. One with the same guard takes the other's place. If there are as
 * many as the limit allows, the cache becomes megamorphic instead; in a megamorphic one nothing
 * changes. Both are successes: cairn_ic_state tells.
 *
 * ARGUMENT: no such operand, a width that is none, a key outside of the mask or the width, a field
 * that is wider than the value, an action that the site's result or operands do not allow; the
 * sentence says which. UNSUPPORTED: an operand or the result is not in a register, or of a type
 * that only handlers and calls can deal with; a call with such types. STATE: the cache is
 * destroyed, its module is retired, or a visitor calls. Others as for patching the site: RANGE,
 * FULL, MEMORY, SYSTEM. The cache is then unchanged.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_ic_add(cairn_ic *ic,
                                                          const struct cairn_ic_case *added,
                                                          enum cairn_strength strength,
                                                          struct cairn_error *error);

/** Removes the case with this guard. NOT_FOUND; others as for cairn_ic_add. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_ic_remove(cairn_ic *ic,
                                                             const struct cairn_ic_guard *guard,
                                                             enum cairn_strength strength,
                                                             struct cairn_error *error);

/** Empties the cache, a megamorphic one too; misses are counted from 0 on. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_ic_reset(cairn_ic *ic,
                                                            enum cairn_strength strength,
                                                            struct cairn_error *error);

/** Puts the cases that hit most often first, by the counts of this moment. STATE if the cache does
 *  not count. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_ic_order(cairn_ic *ic,
                                                            enum cairn_strength strength,
                                                            struct cairn_error *error);

/* ---- Many caches: one barrier, all or nothing ---- */

/** Resets all caches of a module's sites. `*count`, unless NULL, is how many had cases or were
 *  megamorphic. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_module_reset_ics(cairn_module *module,
                                                                    enum cairn_strength strength,
                                                                    size_t *count,
                                                                    struct cairn_error *error);

/** Removes all cases whose guard has this key, whatever its mask, from all caches of the runtime:
 *  a shape has died. `*count`, unless NULL, is how many cases that were. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_runtime_remove_ic_key(
    cairn_runtime *runtime, uint64_t key, enum cairn_strength strength, size_t *count,
    struct cairn_error *error);

/** Changes of many caches that are made together. For one thread at a time. Commit, clear or
 * destroy it before the quiescent point after one of its caches is destroyed; until then committing
 * is STATE. */
typedef struct cairn_ic_batch cairn_ic_batch;

/** An empty batch for caches of one runtime, from its allocator. To be destroyed before the
 *  runtime. MEMORY. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_ic_batch_create(cairn_runtime *runtime,
                                                                   cairn_ic_batch **batch,
                                                                   struct cairn_error *error);
/** Changes that were noted and not committed are forgotten. NULL is allowed. */
CAIRN_API void cairn_ic_batch_destroy(cairn_ic_batch *batch);

/** Notes a change; several of one cache are made in their order. ARGUMENT (also: a cache of another
 *  runtime), UNSUPPORTED, MEMORY as above. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_ic_batch_add(cairn_ic_batch *batch, cairn_ic *ic,
                                                                const struct cairn_ic_case *added,
                                                                struct cairn_error *error);
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_ic_batch_remove(
    cairn_ic_batch *batch, cairn_ic *ic, const struct cairn_ic_guard *guard,
    struct cairn_error *error);
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_ic_batch_reset(cairn_ic_batch *batch,
                                                                  cairn_ic *ic,
                                                                  struct cairn_error *error);

/** Makes all changes; each site goes from its old cases to its new ones with one store, and then
 *  there is one barrier. NOT_FOUND: a case that is to be removed is not there (the sentence names
 *  its site); others as above. On error every cache is as it was, and the batch keeps its changes.
 *  On success it is empty. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_ic_batch_commit(cairn_ic_batch *batch,
                                                                   enum cairn_strength strength,
                                                                   struct cairn_error *error);
/** Forgets the changes that were noted. */
CAIRN_API void cairn_ic_batch_clear(cairn_ic_batch *batch);

/* ---- What they are doing ---- */

enum cairn_ic_state {
    CAIRN_IC_EMPTY = 0,
    CAIRN_IC_MONOMORPHIC = 1,
    CAIRN_IC_POLYMORPHIC = 2,
    CAIRN_IC_MEGAMORPHIC = 3,
    /** Of a cache that cairn_ic_destroy was called for. */
    CAIRN_IC_DESTROYED = 4
};

/** "empty", "monomorphic", …; static. */
CAIRN_API const char *cairn_ic_state_name(enum cairn_ic_state state);

struct cairn_ic_description {
    cairn_ic *ic;
    cairn_site *site;
    uint64_t id;      /**< the record's */
    uint64_t address; /**< of the site */
    enum cairn_ic_state state;
    uint32_t case_count;
    uint32_t case_limit;
    /** In the order in which they are tried; `hits` are 0 where they are not counted. */
    struct cairn_ic_case cases[CAIRN_IC_CASE_LIMIT_MAX];
    uint64_t hits[CAIRN_IC_CASE_LIMIT_MAX];
    bool counts_hits;
    uint64_t misses; /**< calls of the handlers since the last reset; 0 if not counted */
    /** Of the code that the site goes to, and of it those of the cases. */
    size_t code_bytes;
    size_t case_bytes;
};

/** Describes the cache at this moment. One that is destroyed has no cases and no code. */
CAIRN_API void cairn_ic_describe(cairn_ic *ic, struct cairn_ic_description *description);

/** The same, one number each. */
CAIRN_API enum cairn_ic_state cairn_ic_state(cairn_ic *ic);
CAIRN_API uint32_t cairn_ic_case_count(cairn_ic *ic);
/** The site that it is bound to. */
CAIRN_API cairn_site *cairn_ic_site(const cairn_ic *ic);
/** The site's cache, or NULL. */
CAIRN_API cairn_ic *cairn_site_ic(cairn_site *site);

/** Calls `visit` for each cache of the runtime, oldest first, until it answers false. The visitor
 * runs with the lock of the caches held. Functions of this header that change or create caches
 * return STATE when it calls them, and cairn_runtime_quiesce does nothing; it may describe caches,
 * visit them, run code that reaches them, fork, and use everything else, cairn_runtime_destroy
 * included (the visit holds a share). It must not wait for a thread that uses caches or
 * invalidates. So visitors of two runtimes must not fork at the same time, because fork() takes the
 * locks of both. */
typedef bool cairn_ic_visitor(const struct cairn_ic_description *description, void *user);
CAIRN_API void cairn_runtime_visit_ics(cairn_runtime *runtime, cairn_ic_visitor *visit, void *user);

/**
 * A report of all caches into `text` (cut to `size`, always ended); returns its full length. A line
 * for each cache, and one for each case below it:
 *
 *     site 7 at 0x7f0000001010: polymorphic, 2 of 4 cases, 1200 hits, 2 misses
 *         [operand 0 + 0] 4 bytes = 0x51: load 8 bytes at 16, 1000 hits
 *         [operand 0 + 0] 4 bytes & 0xff = 0x52: constant 0x7, 200 hits
 */
CAIRN_API size_t cairn_runtime_format_ics(cairn_runtime *runtime, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
