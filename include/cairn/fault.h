/*
 * cairn/fault.h - implicit null checks: going on where the check would have gone, from a handler of
 * SIGSEGV.
 *
 * LLVM leaves out a check for null whose branch has the metadata make.implicit
 * (cairn_make_implicit) if an access that follows would fault on null anyway. The fault map says
 * where the code goes on then; what goes there is the host's handler of the signal:
 *
 *     static void handle(int signal, siginfo_t *info, void *ucontext)
 *     {
 *         if (cairn_fault_continue(runtime, info, ucontext, 0, NULL))
 *             return;
 *         previous handler, or: sigaction(signal, &default_action, NULL), which ends the process
 *                               when the instruction faults again
 *     }
 *
 * Cairn installs no handler itself: one handler serves a process, and what it has to know would be
 * global state. examples/implicit_null.c has a whole one, which passes on what is not its own.
 *
 * WHICH FAULTS ARE TAKEN. The address of the instruction alone does not tell: the pointer in it may
 * be a wild one. LLVM makes a check implicit only where null plus the offset is nearer to address 0
 * than a page (its option -imp-null-check-page-size, 4096), above or below. So a fault is one of
 * null if
 *
 *   - it is a SIGSEGV that the kernel sent because of an access (SEGV_MAPERR, SEGV_ACCERR): not one
 *     that somebody has sent, and not x86-64's for addresses that are not canonical, of which
 * si_addr says 0 (SI_KERNEL);
 *   - and the address that could not be accessed (si_addr) is in these pages on both sides of 0.
 *
 * What that cannot tell from null is a wild pointer that is itself a number of at most two pages.
 * The pages have to be inaccessible, which they are (Linux: vm.mmap_min_addr, and the upper one is
 * the kernel's), and the host has to handle the signal: on threads that block it, the kernel ends
 * the process.
 *
 * Async-signal-safe, without locks.
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

/** LLVM's -imp-null-check-page-size, if nobody sets it. */
enum { CAIRN_FAULT_NULL_BYTES = 4096 };

/**
 * Whether the signal says of an access less than `null_bytes` away from address 0, on either side;
 * 0 means CAIRN_FAULT_NULL_BYTES. `siginfo` is what the handler gets as its second argument
 * (SA_SIGINFO).
 */
CAIRN_API bool cairn_fault_is_null(const void *siginfo, uint64_t null_bytes);

/**
 * If the signal is of an access near to null, as above, and the thread was at an instruction that a
 * fault map of `runtime` knows: sets the program counter in `ucontext`, the handler's third
 * argument, to where the code goes on, writes what is known to `*entry` (which may be NULL), and
 * returns true. The thread goes on there when the handler returns. Otherwise nothing is changed.
 * Always false where Cairn has no contexts for the machine.
 */
CAIRN_API bool cairn_fault_continue(const cairn_runtime *runtime, const void *siginfo,
                                    void *ucontext, uint64_t null_bytes,
                                    struct cairn_fault_entry *entry);

#ifdef __cplusplus
}
#endif
#endif
