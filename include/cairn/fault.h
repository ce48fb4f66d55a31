/*
 * cairn/fault.h - implicit null checks: a SIGSEGV handler that continues at the code for null.
 *
 * LLVM can omit a null check whose branch has the metadata make.implicit (cairn_make_implicit), if
 * a following memory access would fault on null. The fault map holds the address at which execution
 * must continue after the fault. The host's signal handler changes the program counter to it:
 *
 *     static void handle(int signal, siginfo_t *info, void *ucontext)
 *     {
 *         if (cairn_fault_continue(runtime, info, ucontext, 0, NULL))
 *             return;
 *         previous handler, or: sigaction(signal, &default_action, NULL), which ends the process
 *                               when the instruction faults again
 *     }
 *
 * Cairn does not install a handler: a process has one handler for each signal, and its data would
 * be global state. examples/implicit_null.c is a complete example, which passes other faults to the
 * previous handler.
 *
 * ACCEPTED FAULTS. The address of the instruction is not sufficient to accept a fault, because the
 * pointer may also be an invalid one that is not null. LLVM makes a check implicit only if the
 * access's distance from null, in either direction, is less than a page (its option
 * -imp-null-check-page-size, 4096 bytes). So a fault is an access through null if
 *
 * - it is a SIGSEGV that the kernel sent because of a memory access (SEGV_MAPERR, SEGV_ACCERR).
 *   This excludes signals that a process sent, and those that x86-64 raises for non-canonical
 *   addresses, for which si_addr is 0 (SI_KERNEL);
 * - and the inaccessible address (si_addr) is in the pages directly below or above address 0.
 *
 * An invalid pointer whose value is less than two pages from 0 cannot be distinguished from null.
 *
 * These pages must be inaccessible. On Linux they are: vm.mmap_min_addr protects the lowest page,
 * and the highest page belongs to the kernel. The host must not block SIGSEGV: if it is blocked,
 * the kernel ends the process.
 *
 * All functions are thread-safe, lock-free and async-signal-safe.
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
 * Whether the signal reports an access less than `null_bytes` bytes from address 0, in either
 * direction. If `null_bytes` is 0, CAIRN_FAULT_NULL_BYTES is used. `siginfo` is the handler's
 * second argument (SA_SIGINFO).
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
