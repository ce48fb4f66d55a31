/*
 * cairn/debug.h - compiled code in Linux perf and in gdb: the names, lines and unwind rules of what
 * a runtime has loaded.
 *
 *     cairn_perf_open(runtime, NULL, &perf, &error)          before code is loaded
 *     ...
 *     cairn_perf_destroy(perf, &error)
 *
 * NAMES. All code of a runtime has a name, also what Cairn itself has made:
 *
 *     fib               a function: its symbol, or the name that its declarations contain
 *     script+0x40       code of module `script` without a name, from byte 0x40
 *     ic:get@fib+0x12   code of the inline cache (get, set or call) of the site at that place
 *     exit@fib+0x12     the exit of cairn_site_leave; "exit" is one that any site may call
 *     veneer@fib+0x12   code through which a site reaches a far function
 *     entry:fib         an entry (cairn/entry.h)
 *     closure           a closure (cairn/call.h)
 *
 * Exits, entries and closures that exist when a function of this header is called have no name;
 * modules, veneers and caches do. So call it early.
 *
 * MAP OR DUMP. perf reads names from the map without further steps, when it prints a report. The
 * map is only appended to, and has no times. If code was retired and its addresses are used again,
 * the last line of the map is the valid one, which does not hold for older samples. The dump has
 * times, the code itself and its lines, and so is correct for each sample:
 *
 *     perf record -k mono --call-graph fp ./vm
 *     perf inject --jit -i perf.data -o perf.jit
 *     perf report -i perf.jit
 *
 * CALL CHAINS. perf follows frame pointers through compiled code. LLVM keeps them in functions with
 * stack maps or patch points; in others, with the attribute "frame-pointer"="all". Exits and caches
 * preserve them.
 *
 * GDB. cairn_debugger_attach tells gdb about all code, with lines and variables where the IR had
 * debug information:
 *
 *     gdb -ex 'set breakpoint pending on' -ex 'hbreak fib' -ex run ./vm
 *
 * Backtraces go through compiled functions with unwind tables (attribute `uwtable`), exits, caches
 * and C. Code is removed from gdb's list when it is freed, because retired code may still be on a
 * stack.
 *
 * With a dual mapping, the kernel does not let gdb write into the code. gdb does not say so: what
 * `break` sets there is never reached. Its `hbreak`, which uses the processor's debug registers, is
 * reached in all modes, `break` with CAIRN_CODE_MODE_SINGLE.
 *
 * gdb's list is global to the process and takes microseconds for each module and stub, much more
 * while gdb is attached, so a host offers this as an option.
 *
 * FORK. A forked child does not write to its parent's files. gdb sees the parent's code in the
 * child until the child attaches a debugger or detaches its copy of one; then its list has only the
 * code of debuggers that the child has attached.
 *
 * Source: Linux, tools/perf/Documentation/jit-interface.txt and jitdump-specification.txt; gdb's
 * manual, "JIT Compilation Interface".
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_DEBUG_H
#define CAIRN_DEBUG_H

#include <cairn/runtime.h>
#include <cairn/status.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn_perf cairn_perf;

/** Which files are written. */
enum cairn_perf_format {
    CAIRN_PERF_MAP = 0,  /**< perf-PID.map */
    CAIRN_PERF_DUMP = 1, /**< jit-PID.dump */
    CAIRN_PERF_BOTH = 2
};

/** Options for cairn_perf_open. All zero is the default. */
struct cairn_perf_options {
    /** The folder of the files; NULL: "/tmp". perf looks for a map only in /tmp. */
    const char *directory;
    enum cairn_perf_format format;
};

/**
 * Begins to write the names of the runtime's code to files for perf: of all code that exists, and
 * of what is loaded and made later, before it is executed. `options` NULL means all zero. The
 * caller owns `*perf`, which has a reference to the runtime. Several runtimes of a process share
 * one map; each needs a folder of its own for its dump.
 *
 * A file that an earlier process with this ID has left is replaced. One that belongs to another
 * user, or is a link, is not. Takes a system call for each function that is loaded.
 *
 * Errors: ARGUMENT; SYSTEM (a file cannot be written; the message names it), CONFLICT (this process
 * has a dump in the folder already), MEMORY. Thread-safe; not async-signal-safe.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_perf_open(
    cairn_runtime *runtime, const struct cairn_perf_options *options, cairn_perf **perf,
    struct cairn_error *error);

/** Stops writing, and frees `perf`. The files remain, for perf. NULL is allowed. Errors: SYSTEM
 *  (parts of the files could not be written; the message has the first reason). */
CAIRN_API enum cairn_status cairn_perf_destroy(cairn_perf *perf, struct cairn_error *error);

typedef struct cairn_debugger cairn_debugger;

/**
 * Begins to tell gdb about the runtime's code, that which exists and that which is loaded or made
 * later. Code that was loaded before this call has names and unwind rules, but no lines. Keeps the
 * objects of modules in memory until the modules are freed. The caller owns `*debugger`, which has
 * a reference to the runtime. If memory runs out later, gdb does not see some code. Errors:
 * ARGUMENT, MEMORY. Thread-safe; not async-signal-safe.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_debugger_attach(cairn_runtime *runtime,
                                                                   cairn_debugger **debugger,
                                                                   struct cairn_error *error);

/** Removes the runtime's code from gdb's list, and frees `debugger`. NULL is allowed. */
CAIRN_API void cairn_debugger_destroy(cairn_debugger *debugger);

#ifdef __cplusplus
}
#endif
#endif
