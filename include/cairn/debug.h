/*
 * cairn/debug.h - compiled code in Linux perf and in gdb: the names, lines and unwind rules of what
 * a runtime has loaded.
 *
 *     status = cairn_perf_open(runtime, NULL, &perf, &error);          before code is loaded
 *     …
 *     status = cairn_perf_destroy(perf, &error);
 *
 * All code of a runtime has a name, also what Cairn itself has made. Exits, entries and closures
 * that exist when a function of this header is called have no name. In dual mapping, perf shows no
 * name from a map for other code that existed before, either: its pages are those of a memory file.
 * What is made later has its name in any order. So call it early.
 *
 * Threads: every function is thread-safe, but signal handlers must not call it.
 *
 * See cairn-debugging(7) (doc/debugging.md): names, map or dump, gdb.
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
 * one map; each needs a separate folder for its dump.
 *
 * A file that an earlier process with this ID has left is replaced. One that belongs to another
 * user, or is a link, is not. Takes a system call for each function that is loaded.
 *
 * Errors: ARGUMENT; SYSTEM (a file cannot be written; the message names it), CONFLICT (this process
 * has a dump in the folder already), MEMORY.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_perf_open(
    cairn_runtime *runtime, const struct cairn_perf_options *options, cairn_perf **perf,
    struct cairn_error *error);

/** Stops writing, and frees `perf`. The files remain, for perf. NULL is allowed. Errors: SYSTEM
 *  (parts of the files could not be written; the message has the first reason), MEMORY (some names
 *  could not be). */
CAIRN_API enum cairn_status cairn_perf_destroy(cairn_perf *perf, struct cairn_error *error);

typedef struct cairn_debugger cairn_debugger;

/**
 * Begins to tell gdb about the runtime's code: what exists, and what is loaded or made later. Code
 * that was loaded before this call has names and unwind rules, but no lines. Keeps the objects of
 * modules in memory until the modules are freed. The caller owns `*debugger`, which has a reference
 * to the runtime. If memory runs out later, gdb does not see some code. Errors: ARGUMENT, MEMORY.
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
