/*
 * cairn/liveout.h - restoring the registers that code called at a site must preserve.
 *
 * The record of a patch point may list the registers that are live across it. Code that is called
 * at the site, and does not follow the declared calling convention, must preserve these registers:
 *
 *     struct cairn_context saved = now;
 *     … code that changes registers of `now` …
 *     cairn_context_restore(&now, &saved, record);
 *
 * Handlers of Cairn's exits need not do this: exits save and restore all registers.
 *
 * NUMBER OF BYTES. It is determined conservatively, as LLVM's document demands. A record contains
 * the number of a register and how many of its bytes are live, but not which ones: one byte of RAX
 * may be AL or AH. So all bytes of registers for integers, flags or masks are preserved. Of vector
 * registers, the lowest bytes are preserved, as many as are recorded, rounded up to the size of a
 * register: 16, 32 or 64 bytes on x86-64, 16 on AArch64, 8 or 16 on PPC64.
 *
 * REGISTERS THAT ARE NOT LISTED. LLVM does not list reserved registers. So the following are always
 * preserved: the stack pointer; all callee-saved registers, which may be frame and base pointers;
 * and MXCSR on x86-64. If the list is empty, all registers are preserved, except the program
 * counter. Stack maps and statepoints never have a list; patch points have one only if LLVM was
 * told to make it (CAIRN_LIVENESS_KEEP in cairn/llvm.h).
 *
 * Source: LLVM, "Stack maps and patch points in LLVM", section Stack Map Format.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_LIVEOUT_H
#define CAIRN_LIVEOUT_H

#include <cairn/context.h>
#include <cairn/status.h>
#include <cairn/table.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Copies the bytes of registers that must be preserved at the record from `saved` to `context`, and
 * changes nothing else. Registers that either context does not hold are left out. If one field of
 * PPC64's condition register must be preserved, the whole register is copied. Async-signal-safe.
 */
CAIRN_API void cairn_context_restore(struct cairn_context *context,
                                     const struct cairn_context *saved, struct cairn_record record);

#ifdef __cplusplus
}
#endif
#endif
