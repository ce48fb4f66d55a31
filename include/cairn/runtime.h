/*
 * cairn/runtime.h - one Cairn: its code memory and the index of all that it has loaded.
 *
 * A process may have several runtimes; they share nothing.
 *
 * Threads. Loading, publishing, retiring, quiescing and destroying may be called from any
 * thread and take a lock inside. Lookups take none, allocate nothing and may be made in a
 * signal handler.
 *
 * Quiescence. What was retired (modules, exits, closures, code of inline caches, caches that were
 * destroyed) stays in memory until the host says that nobody can be using it:
 * cairn_runtime_quiesce. That is a promise about every thread, the calling one included. Since the
 * last retirement each has passed a moment at which neither it nor a signal handler on top of it
 * was inside retired code, had a return address into it, or held a module, record, site, cache or
 * function name of it.
 *
 * So a pointer that a lookup has given stays good until the thread that has it passes such a
 * moment, whoever retires the module meanwhile. Do not look the same PC up twice and expect one
 * module: it may be retired in between. What is refused once a module is retired: publishing it,
 * patching its sites, changing its caches, invalidating and taking back (STATE). Retiring twice
 * does nothing.
 *
 * Handlers of exits and caches run on top of the code that they were called from. They may retire
 * what they run in; they may come to a quiescent point only if they are not inside anything that
 * was retired; and they must not give up the last share of the runtime.
 *
 * Forked children. A child made by fork() is a copy of its parent at the moment of the fork: it
 * executes its own code from the start, whether or not it calls Cairn, whatever the parent's
 * threads patch, load and free before, at and after that moment; and nothing that it does reaches
 * the parent. A patch that another thread has not returned from is made in the child or it is not;
 * if several threads patch one site at once, any of their targets may be the child's. The child may
 * call every function; what another thread was loading at the fork is lost to it. Handlers of
 * pthread_atfork see to all this. They take all of Cairn's locks, so fork() may not be called in a
 * signal handler that has interrupted a function of Cairn's. With two views (Dual mode), fork()
 * takes time and, until it returns, memory in proportion to the loaded code, and the child's first
 * change of code again as much; a child that only executes another program does not make one. If
 * the system refuses that memory (RLIMIT_AS, RLIMIT_DATA) or forbids to make it executable, fork()
 * succeeds all the same, but the child shares its parent's code, as after clone(), until
 * cairn_runtime_after_fork in the child returns OK.
 * Children made by clone() or _Fork(), for which no handlers are called, share their parent's code
 * until they call cairn_runtime_after_fork or change something. So that is for processes with one
 * thread, and the parent should retire nothing until then.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_RUNTIME_H
#define CAIRN_RUNTIME_H

#include <cairn/allocator.h>
#include <cairn/fault_table.h>
#include <cairn/module.h>
#include <cairn/pc_table.h>
#include <cairn/status.h>
#include <cairn/table.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How code memory is mapped. In none of them is a page ever writable and executable. */
enum cairn_code_mode {
    /** Dual where a self-test at start shows that it works here, otherwise Single; never Toggle. */
    CAIRN_CODE_MODE_AUTOMATIC = 0,
    /** Two views of one memory file: code runs in one, patches are written through the other. */
    CAIRN_CODE_MODE_DUAL = 1,
    /** One mapping: pages that are patched are replaced as a whole by changed copies.
     *  Microseconds, not nanoseconds, per patch; as safe for running threads. */
    CAIRN_CODE_MODE_SINGLE = 2,
    /** One mapping: a page loses its execute permission while it is patched. For systems on which
     *  the others do not work, and for hosts that ask for it. No thread may execute a page of code
     *  while a site in it is patched: it would get SIGSEGV. If the system refuses to make the page
     *  executable again, the code in it is lost. */
    CAIRN_CODE_MODE_TOGGLE = 3
};

struct cairn_runtime_options {
    /** Of Cairn's tables; a NULL function means malloc. Code memory comes from mmap. */
    struct cairn_allocator allocator;
    /** Bytes reserved per slab (address space, not memory; Cairn reserves as much again to write
     *  through); 0 means the architecture's default. Rounded up to a page; at most the reach of the
     *  architecture's direct call, otherwise ARGUMENT. A module lives in one slab. One of up to
     * half a slab always loads while slabs may be added; a larger one may, up to a whole one. */
    size_t slab_size;
    /** Slabs at most; 0 means no limit but the address space. */
    uint32_t slab_limit;
    enum cairn_code_mode code_mode;
};

typedef struct cairn_runtime cairn_runtime;

/**
 * A runtime. `options` NULL means the defaults (all zero). ARGUMENT, MEMORY, SYSTEM, and
 * UNSUPPORTED where a forced mode does not work on this machine, where no mode but Toggle does and
 * that was not asked for, where the thread's personality has READ_IMPLIES_EXEC (writable memory
 * would be executable), or the host's architecture has no patching.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_runtime_create(
    const struct cairn_runtime_options *options, cairn_runtime **runtime,
    struct cairn_error *error);

/**
 * Gives one owner's share of the runtime up. With the last share all that it still holds is
 * released: nobody may be executing its code or using its records then, which a handler of an exit
 * or of a cache is. The host has a share from cairn_runtime_create; loaders and LLVM engines hold
 * shares of their own, so that runtime and engines can be destroyed in any order. NULL is allowed.
 * Thread-safe.
 */
CAIRN_API void cairn_runtime_destroy(cairn_runtime *runtime);

/** Takes another share, to be given up with cairn_runtime_destroy. Thread-safe. */
CAIRN_API void cairn_runtime_retain(cairn_runtime *runtime);

/** The allocator that the runtime uses: the one from the options, or one over malloc. */
CAIRN_API const struct cairn_allocator *cairn_runtime_allocator(const cairn_runtime *runtime);

/** The mode in use: never AUTOMATIC. */
CAIRN_API enum cairn_code_mode cairn_runtime_code_mode(const cairn_runtime *runtime);

/** Why the mode is Single where Automatic was asked for; "" otherwise. Valid as long as the
 *  runtime. */
CAIRN_API const char *cairn_runtime_code_mode_reason(const cairn_runtime *runtime);

/** Whether CAIRN_SYNC and CAIRN_QUIESCENT patches can be had, in any mode: membarrier with
 * SYNC_CORE (Linux 4.16, where the architecture has it). */
CAIRN_API bool cairn_runtime_can_synchronise(const cairn_runtime *runtime);

struct cairn_runtime_statistics {
    uint32_t slab_count;
    uint32_t module_count;  /**< published */
    uint32_t retired_count; /**< retired, waiting for cairn_runtime_quiesce */
    size_t slab_size_bytes;
    size_t code_bytes; /**< pages holding code and stubs */
    size_t data_bytes; /**< pages holding data */
    size_t free_bytes; /**< of the slabs' address space */
    size_t table_bytes;
};
/** Counted at the moment of the call, under the runtime's lock: not for signal handlers. */
CAIRN_API void cairn_runtime_statistics(cairn_runtime *runtime,
                                        struct cairn_runtime_statistics *statistics);

/** Makes the promise described at the top. Releases retired modules of which nobody has a share
 *  (cairn_module_retain), and what inline caches have given up; returns how many modules. Does
 *  nothing and returns 0 when a visitor of caches calls it. */
CAIRN_API size_t cairn_runtime_quiesce(cairn_runtime *runtime);

/**
 * Makes a forked child ready to change code, as its first patch or load does by itself. After
 * fork() that only decides when the time for it is spent. A child made by clone() or _Fork() calls
 * it before anything else, while it has one thread: it makes the code the child's own. Does nothing
 * in a process that has not forked. Thread-safe after fork(). SYSTEM: the code can be executed as
 * before, nothing can be changed, and the call may be repeated.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_runtime_after_fork(cairn_runtime *runtime,
                                                                      struct cairn_error *error);

/* Lookups over all published modules: no locks, no allocation, async-signal-safe. */

/** The module whose memory (code or data) holds `pc`; NULL if no module does. */
CAIRN_API cairn_module *cairn_runtime_find_module(const cairn_runtime *runtime, uint64_t pc);

/** As cairn_table_find_address, over all modules. */
CAIRN_API bool cairn_runtime_find_address(const cairn_runtime *runtime, uint64_t address,
                                          struct cairn_record *record);

/** As cairn_table_find_return_address, over all modules. */
CAIRN_API bool cairn_runtime_find_return_address(const cairn_runtime *runtime, uint64_t address,
                                                 struct cairn_record *record);

/**
 * The function that holds `pc`; false if it is in no module's code or between functions. Functions
 * of which the module's unwind tables tell (LLVM writes them for functions with `uwtable`, see
 * cairn_prepare_function) are found from their first byte to their last; without records, their
 * `record_count` is 0 and their `stack_size` not known. Others are found if they have records, and
 * are then taken to go on to where the next function begins. A return address may be the first
 * byte behind a function, whose last instruction is then the call: ask for the byte before it.
 */
CAIRN_API bool cairn_runtime_find_function(const cairn_runtime *runtime, uint64_t pc,
                                           struct cairn_function *function);

/** As cairn_pc_table_find, over all modules: what the PC sections say of `pc`. The module that says
 * it is the one that holds `pc`, cairn_runtime_find_module. Entries live as long as that. */
CAIRN_API size_t cairn_runtime_find_pc_entries(const cairn_runtime *runtime, uint64_t pc,
                                               struct cairn_pc_table_entry *entries,
                                               size_t capacity);

/** As cairn_fault_table_find, over all modules. A handler of SIGSEGV rather asks
 * cairn_fault_continue (cairn/fault.h), which also looks at the address that could not be accessed.
 */
CAIRN_API bool cairn_runtime_find_fault(const cairn_runtime *runtime, uint64_t pc,
                                        struct cairn_fault_entry *entry);

/** As cairn_table_find_id, over all modules, oldest module first. */
CAIRN_API size_t cairn_runtime_find_id(const cairn_runtime *runtime, uint64_t id,
                                       struct cairn_record *records, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
