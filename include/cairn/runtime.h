/*
 * cairn/runtime.h - a runtime: its code memory, and the modules that are loaded into it.
 *
 *     status = cairn_runtime_create(NULL, &runtime, &error);
 *     …
 *     uint64_t token = cairn_runtime_grace_start(runtime);
 *     …                                   every thread passes a point outside of retired code
 *     cairn_runtime_grace_end(runtime, token);
 *
 * What was retired (modules, exits, closures, entries, inline caches and their code) stays in
 * memory, because threads may still use it. By ending a grace period the host tells Cairn that no
 * thread uses it. Then it is freed.
 *
 * Threads: every function is thread-safe and takes a lock, so signal handlers must not call it.
 * Lookups are lock-free and async-signal-safe.
 *
 * What a lookup returns is valid until the thread that looked it up passes a point outside of
 * retired code. A child of fork() has its own copy of the code.
 *
 * See cairn-loading(7) (doc/loading.md): grace periods, retired code, fork.
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
    /** CAIRN_CODE_MODE_DUAL if a self-test shows that it works on this machine, otherwise
     *  CAIRN_CODE_MODE_SINGLE. */
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
    /** The bytes of address space of a slab; CAIRN_CODE_MODE_DUAL reserves as many again for the
     *  writable view. 0 means the architecture's default. Rounded up to a page; at most the reach
     *  of the architecture's direct call. A module is in one slab. A module of up to half a slab
     *  can always be loaded; a larger one, of up to a slab, may fail. */
    size_t slab_size;
    enum cairn_code_mode code_mode;
    /** A memory protection key makes the writable view accessible only to a thread that is writing
     *  to it, and only while it writes; a signal handler that interrupts it has no access. Only
     *  with CAIRN_CODE_MODE_DUAL, and only on processors and kernels that have such keys. A runtime
     *  takes one of the process's 15 keys. */
    bool protects_writes;
    /** The functions of all code that is loaded begin with landing pads, as with
     *  cairn_prepare_function or a compiler's -mbranch-protection=bti. On processors that check
     *  indirect branches (BTI on AArch64), the kernel raises SIGILL if one lands elsewhere in the
     *  code. Ignored on other machines. */
    bool has_landing_pads;
};

typedef struct cairn_runtime cairn_runtime;

/**
 * Creates a runtime. `options` NULL means all zero. The caller owns `*runtime`.
 *
 * Errors: ARGUMENT, MEMORY, SYSTEM. UNSUPPORTED: the selected mode does not work on this machine;
 * the thread's personality has READ_IMPLIES_EXEC, which makes writable memory executable;
 * `protects_writes` is set, and no memory protection key or no dual mapping is available; or Cairn
 * does not support the host's architecture.
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
    /** The mode in use; never CAIRN_CODE_MODE_AUTOMATIC. */
    enum cairn_code_mode code_mode;
    /** The reason why CAIRN_CODE_MODE_AUTOMATIC has selected CAIRN_CODE_MODE_SINGLE; otherwise "".
     *  Valid as long as the runtime. */
    const char *code_mode_reason;
    /** Patches of strength CAIRN_SYNC and CAIRN_QUIESCENT are possible: the system has membarrier
     *  with SYNC_CORE (Linux 4.16, on the architectures that have it). */
    bool can_synchronise;
};

/** Sets `*statistics` to the state at the time of the call. Takes the runtime's lock; the time does
 *  not depend on the number of modules. */
CAIRN_API void cairn_runtime_statistics(cairn_runtime *runtime,
                                        struct cairn_runtime_statistics *statistics);

/** Starts a grace period. Returns its token, which is not 0. Periods may overlap, and need not be
 *  ended. Takes a lock for a few instructions. */
CAIRN_API uint64_t cairn_runtime_grace_start(cairn_runtime *runtime);

/**
 * Ends the grace period with this token: frees what was retired before its start, except modules
 * with references (cairn_module_retain). What was retired after the start waits for a later period.
 * Any thread may end a period, also after later ones have ended.
 *
 * The host guarantees that every thread, including the calling one, has passed a point since the
 * start at which neither the thread nor a signal handler on its stack executed code that was
 * retired before the start, had a return address into such code, or held a module, record, site,
 * cache or function name that was retired before the start.
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
 * it has one thread. Has no effect in other processes. Errors: SYSTEM (code can then still be
 * executed, but not changed, and the call may be repeated).
 *
 * Threads: thread-safe after fork(), but signal handlers must not call this.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_runtime_after_fork(cairn_runtime *runtime,
                                                                      struct cairn_error *error);

/* ---- Lookups in all published modules ----
 *
 * Threads: thread-safe, lock-free and async-signal-safe; allocates nothing.
 *
 * Retired modules are found by frames (cairn-loading(7)), not by lookups. All else that is known
 * about a PC is in the tables of its module: return addresses in cairn_module_table, PC sections in
 * cairn_module_pc_table, fault maps in cairn_module_fault_table. The site with an ID is
 * cairn_runtime_find_site (cairn/patch.h). */

/** Returns the published module whose code or data contains `pc`, or NULL. */
CAIRN_API cairn_module *cairn_runtime_find_module(const cairn_runtime *runtime, uint64_t pc);

/** Finds the first record at `address`, as cairn_table_find_address. Returns false if no record is
 *  there. */
CAIRN_API bool cairn_runtime_find_address(const cairn_runtime *runtime, uint64_t address,
                                          struct cairn_record *record);

/**
 * Finds the function that contains `pc`. Returns false if `pc` is not in a module's code, or is
 * between functions.
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

/** Finds all records with an ID in all modules: oldest module first, and in a module in order of
 *  address. Writes up to `capacity` of them to `records`, which may be NULL if `capacity` is 0.
 *  Returns the number of all such records, which may be greater than `capacity`. */
CAIRN_API size_t cairn_runtime_find_id(const cairn_runtime *runtime, uint64_t id,
                                       struct cairn_record *records, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
