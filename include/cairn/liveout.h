/*
 * cairn/liveout.h - restoring the preserved registers of a site: those that code which is called
 * there must preserve.
 *
 * The record of a patch point may list the registers that are live across it. Code that is called
 * at the site, and does not follow the declared calling convention, must preserve them. Handlers of
 * exits need not do this, because exits save and restore all registers.
 *
 *     struct cairn_context saved = now;
 *     … code that changes registers of `now` …
 *     cairn_context_restore(&now, &saved, record);
 *
 * NUMBER OF BYTES. A record contains the number of a register and how many of its bytes are live,
 * but not which ones: one byte of RAX may be AL or AH. So all bytes of registers for integers,
 * flags or masks are preserved, as LLVM's document demands. Of vector registers, the lowest bytes
 * are preserved, as many as are recorded, rounded up to the size of a register: 16, 32 or 64 bytes
 * on x86-64, 16 on AArch64, 8 or 16 on PPC64.
 *
 * REGISTERS THAT ARE NOT LISTED. LLVM does not list reserved registers. So the stack pointer, all
 * callee-saved registers (which may be frame and base pointers), and MXCSR on x86-64 are always
 * preserved. If the list is empty, all registers are preserved, except the program counter. Only
 * patch points have a list, if LLVM was told to make it (CAIRN_LIVENESS_KEEP in cairn/llvm.h).
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
