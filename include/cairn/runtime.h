/*
 * cairn/runtime.h - a runtime: its code memory, and the modules that are loaded into it.
 *
 * A process may have several runtimes, which share nothing.
 *
 * THREADS. All functions are thread-safe. Those that load, publish, retire, start and end grace
 * periods, and destroy, take a lock. Lookups take no lock, allocate nothing, and are
 * async-signal-safe.
 *
 * GRACE PERIODS. What was retired (modules, exits, closures, entries, code of inline caches,
 * destroyed caches) is not found by lookups any more, but stays in memory, because threads may
 * still use it. Frames of retired code are still found (below). A grace period tells Cairn when
 * they have stopped. cairn_runtime_grace_start returns a token. By calling cairn_runtime_grace_end
 * with that token, the host guarantees that every thread, including the calling one, has passed the
 * following point since the period was started: neither the thread nor a signal handler on its
 * stack
 *
 *   - executes code that was retired before the start,
 *   - has a return address into such code, or
 *   - holds a module, record, site, cache or function name that was retired before the start.
 *
 * Then everything that was retired before the start is freed. What was retired later waits for a
 * later period; so it does not matter that a cache miss in any thread may retire code at any time.
 * Each thread may pass its point at another moment, for example when it polls for a safepoint. A
 * host that stops all threads at such points calls cairn_runtime_quiesce, which starts a period and
 * ends it at once.
 *
 * So a pointer that a lookup has returned is valid until its thread passes such a point, even if
 * another thread retires the module. Two lookups of one PC may find different modules, because a
 * module may be retired in between. After a module was retired, publishing it and changing its
 * caches return STATE. Retiring it again has no effect.
 *
 * RETIRED CODE can still be executed, until it is freed. All functions that begin with a frame or a
 * context find its module: walks (cairn/walk.h), the functions of cairn/frame.h, exits, handlers of
 * caches, roots, and cairn_fault_continue. A module with a frame on any stack cannot be freed,
 * because the thread of that stack has not passed its point. Its sites can still be changed and
 * invalidated, so that threads can be made to leave the code. The lookups of this header do not
 * find it, neither by ID nor by PC, because they accept any PC, also one that was stored earlier
 * and whose module may be about to be freed. A signal handler that looks up an interrupted PC makes
 * a frame of it (cairn_frame_from_context).
 *
 * Handlers of exits and caches run on top of the code that called them. They may retire that code.
 * They may end a grace period only if they are not inside code that was retired before its start.
 * They must not destroy the runtime.
 *
 * FORK. A child of fork() is a copy of its parent at the time of the fork: it has its own code from
 * the start, whether or not it calls Cairn, and whatever the parent's threads patch, load and free
 * before, during and after the fork. Nothing that the child does reaches the parent. A patch
 * that another thread is making at the fork is either complete in the child or absent; if several
 * threads patch one site at that time, the child may have any of their targets. The child may call
 * every function. What another thread is loading or freeing at the fork is lost in the child. A
 * token from before the fork is valid in parent and child, where it is about their own threads.
 *
 * This is implemented by handlers of pthread_atfork. They take all of Cairn's locks, so fork() must
 * not be called by a signal handler that has interrupted a function of Cairn. With a dual mapping,
 * they copy the loaded code, so that fork() takes 0.4 ms more for each MB of it; changes in the
 * child then take as long as in other processes. If the system refuses that memory (RLIMIT_AS) or
 * forbids to make it executable, fork() succeeds nevertheless, and the child shares its parent's
 * code until cairn_runtime_after_fork returns OK in the child. Until then, it can execute code, and
 * functions that load or change code return SYSTEM.
 *
 * For children of clone() and _Fork(), these handlers are not called. They share their parent's
 * code in the same way, and must call cairn_runtime_after_fork first. Only processes with one
 * thread may use clone() and _Fork(), and the parent should retire nothing until then.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_RUNTIME_H
#define CAIRN_RUNTIME_H

#include <cairn/allocator.h>
#include <cairn/module.h>
#include <cairn/status.h>
#include <cairn/table.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How code memory is mapped. In no mode is a page writable and executable at once. */
enum cairn_code_mode {
    /** DUAL if a self-test shows that it works on this machine, otherwise SINGLE. */
    CAIRN_CODE_MODE_AUTOMATIC = 0,
    /** Two views of one memory file: code is executed in one, and patches are written through the
     *  other. */
    CAIRN_CODE_MODE_DUAL = 1,
    /** One mapping: a page that is patched is replaced by a changed copy. A patch takes
     *  microseconds, not nanoseconds, and is as safe for running threads. */
    CAIRN_CODE_MODE_SINGLE = 2
};

/** Options for creating a runtime. All zero is the default. */
struct cairn_runtime_options {
    /** The allocator for Cairn's tables; a NULL function means malloc. Code memory comes from
     *  mmap. */
    struct cairn_allocator allocator;
    /** The bytes of address space of a slab; DUAL reserves as many again for the writable view. 0
     *  means the architecture's default. Rounded up to a page; at most the reach of the
     *  architecture's direct call. A module is in one slab. A module of up to half a slab can
     *  always be loaded; a larger one, of up to a slab, may fail. */
    size_t slab_size;
    enum cairn_code_mode code_mode;
    /** Whether a memory protection key makes the writable view accessible only to a thread that is
     *  writing to it, and only while it writes; a signal handler that interrupts it has no access.
     *  Only with DUAL, and only on processors and kernels that have such keys. A runtime takes one
     * of the process's 15 keys. */
    bool protects_writes;
};

typedef struct cairn_runtime cairn_runtime;

/**
 * Creates a runtime. `options` NULL means all zero. The caller owns `*runtime`.
 *
 * Errors: ARGUMENT, MEMORY, SYSTEM. UNSUPPORTED: the selected mode does not work on this machine;
 * the thread's personality has READ_IMPLIES_EXEC, which makes writable memory executable;
 * `protects_writes` is set, and there is no memory protection key or no dual mapping; or Cairn has
 * no patching for the host's architecture.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_runtime_create(
    const struct cairn_runtime_options *options, cairn_runtime **runtime,
    struct cairn_error *error);

/**
 * Destroys the runtime: frees it with all that it holds, as soon as no loader, LLVM engine, queue,
 * perf writer or debugger uses it, so that these may be destroyed before or after. No thread may
 * then execute its code or use its records, which handlers of exits and caches do. NULL is allowed.
 */
CAIRN_API void cairn_runtime_destroy(cairn_runtime *runtime);

/** The state of a runtime. */
struct cairn_runtime_statistics {
    uint32_t slab_count;
    uint32_t module_count;  /**< published modules */
    uint32_t retired_count; /**< retired modules that are not freed yet */
    size_t slab_size_bytes;
    size_t code_bytes;  /**< pages that hold code and stubs */
    size_t data_bytes;  /**< pages that hold data */
    size_t free_bytes;  /**< free address space in the slabs */
    size_t table_bytes; /**< the modules' own tables */
    size_t index_bytes; /**< the tables that modules share: by address, ID and name */
    /** The mode in use; never AUTOMATIC. */
    enum cairn_code_mode code_mode;
    /** Why AUTOMATIC has selected SINGLE; otherwise "". Valid as long as the runtime. */
    const char *code_mode_reason;
    /** Whether patches of strength CAIRN_SYNC and CAIRN_QUIESCENT are possible: the system has
     *  membarrier with SYNC_CORE (Linux 4.16, on the architectures that have it). */
    bool can_synchronise;
};

/** Sets `*statistics` to the state at the time of the call. Takes the runtime's lock; the time does
 *  not depend on the number of modules. Not async-signal-safe. */
CAIRN_API void cairn_runtime_statistics(cairn_runtime *runtime,
                                        struct cairn_runtime_statistics *statistics);

/** Starts a grace period and returns its token, which is not 0. Periods may overlap, and need not
 *  be ended. Takes a lock for a few instructions. */
CAIRN_API uint64_t cairn_runtime_grace_start(cairn_runtime *runtime);

/**
 * Ends the grace period with this token: frees what was retired before its start, under the
 * guarantee that is described at the top. These are modules without references
 * (cairn_module_retain), exits, closures, entries, and inline caches and their code. What was
 * retired after the start waits for a later period. Any thread may end a period, also after later
 * ones have ended.
 *
 * Returns the number of freed modules. Has no effect and returns 0 if a visitor of caches calls it,
 * or if the runtime has not returned this token.
 */
CAIRN_API size_t cairn_runtime_grace_end(cairn_runtime *runtime, uint64_t token);

/** Starts a grace period and ends it at once, for hosts that stop all threads at a quiescent point.
 *  Returns the number of freed modules. */
CAIRN_INLINE size_t cairn_runtime_quiesce(cairn_runtime *runtime)
{
    return cairn_runtime_grace_end(runtime, cairn_runtime_grace_start(runtime));
}

/**
 * Makes the code of a child its own if that was not possible at the fork. Takes time in proportion
 * to the loaded code. A child of clone() or _Fork() must call it before all other functions, while
 * it has one thread. Has no effect in other processes. Thread-safe after fork(). Errors: SYSTEM;
 * code can then still be executed, but not changed, and the call may be repeated.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_runtime_after_fork(cairn_runtime *runtime,
                                                                      struct cairn_error *error);

/* ---- Lookups in all published modules ----
 *
 * They are lock-free, allocate nothing, and are async-signal-safe. They do not find retired
 * modules, which frames do (RETIRED CODE above). All else that is known about a PC is in the tables
 * of its module: return addresses in cairn_module_table, PC sections in cairn_module_pc_table,
 * fault maps in cairn_module_fault_table. The site with an ID is cairn_runtime_find_site
 * (cairn/patch.h). */

/** Returns the published module whose code or data contains `pc`, or NULL. */
CAIRN_API cairn_module *cairn_runtime_find_module(const cairn_runtime *runtime, uint64_t pc);

/** Finds the first record at `address`, as cairn_table_find_address. */
CAIRN_API bool cairn_runtime_find_address(const cairn_runtime *runtime, uint64_t address,
                                          struct cairn_record *record);

/**
 * Finds the function that contains `pc`; false if `pc` is not in a module's code, or is between
 * functions.
 *
 * A function with an unwind table is found from its first byte to its last. LLVM writes unwind
 * tables for functions with the attribute `uwtable` (cairn_prepare_function). If such a function
 * has no records, its `record_count` is 0, and its `stack_size` is CAIRN_STACK_SIZE_DYNAMIC. A
 * function without an unwind table is found if it has records, and is assumed to end where the next
 * function begins. In a module of objects (cairn/load.h), functions are also found by the objects'
 * symbols, which give them their names.
 *
 * A return address may be the first byte after a function whose last instruction is the call. So
 * look up the byte before a return address.
 */
CAIRN_API bool cairn_runtime_find_function(const cairn_runtime *runtime, uint64_t pc,
                                           struct cairn_function *function);

/** Finds all records with an ID in all modules: oldest module first, and those of a module in order
 * of address. Writes up to `capacity` of them to `records`, which may be NULL if `capacity` is 0.
 *  Returns the number of all such records, which may be greater than `capacity`. */
CAIRN_API size_t cairn_runtime_find_id(const cairn_runtime *runtime, uint64_t id,
                                       struct cairn_record *records, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
