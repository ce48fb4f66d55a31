/*
 * cairn/fault.h - implicit null checks: a SIGSEGV handler that continues at the code for null.
 *
 *     static void handle(int signal, siginfo_t *info, void *ucontext)
 *     {
 *         if (cairn_fault_continue(runtime, info, ucontext, 0, NULL))
 *             return;
 *         …                                               another fault: the previous handler
 *     }
 *
 * Cairn does not install a handler. The host must not block SIGSEGV. A fault is accepted if the
 * kernel sent the signal because of an access in the pages next to address 0. An invalid pointer
 * with a value less than two pages from 0 cannot be distinguished from null.
 *
 * Threads: every function is thread-safe, lock-free and async-signal-safe.
 *
 * See cairn-metadata(7) (doc/metadata.md). examples/implicit_null.c is a complete program.
 *
 * Source: LLVM, "FaultMaps and implicit checks"; lib/CodeGen/ImplicitNullChecks.cpp; sigaction(2).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_FAULT_H
#define CAIRN_FAULT_H

#include <cairn/fault_table.h>
#include <cairn/runtime.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The default of LLVM's option -imp-null-check-page-size, in bytes. */
enum { CAIRN_FAULT_NULL_BYTES = 4096 };

/**
 * Returns whether the signal reports an access less than `null_bytes` bytes from address 0, in
 * either direction. If `null_bytes` is 0, CAIRN_FAULT_NULL_BYTES is used. `siginfo` is the
 * handler's second argument (SA_SIGINFO).
 */
CAIRN_API bool cairn_fault_is_null(const void *siginfo, uint64_t null_bytes);

/**
 * Continues at the code for null after an access through null.
 *
 * Returns true if cairn_fault_is_null accepts the signal, and the program counter in `ucontext`,
 * the handler's third argument, is an instruction in a fault map of `runtime`. The program counter
 * is then changed to the instruction's `handler_address`, where the thread continues when the
 * handler returns, and the fault map's entry is written to `*entry`, if `entry` is not NULL.
 * Otherwise returns false and changes nothing. Always returns false on machines for which Cairn has
 * no contexts.
 */
CAIRN_API bool cairn_fault_continue(const cairn_runtime *runtime, const void *siginfo,
                                    void *ucontext, uint64_t null_bytes,
                                    struct cairn_fault_entry *entry);

#ifdef __cplusplus
}
#endif
#endif
