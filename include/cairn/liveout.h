/*
 * cairn/liveout.h - the registers that must survive what is called at a site.
 *
 * A patch point's record may list the registers that live across it. What runs at the site, where
 * it keeps to a convention of its own instead of the declared one, has to leave these as they were:
 *
 *     struct cairn_survivors survivors;
 *     cairn_context_survivors(&at_site, record, &survivors);
 *     … code that changes registers …
 *     cairn_context_bring_back(&now, &at_site, &survivors);
 *
 * Handlers of Cairn's exits need not care: they find and leave all registers as they are.
 *
 * HOW MUCH of each is decided conservatively, as LLVM's document demands. A record has a register's
 * number and how many bytes of it live, not which ones: one byte of RAX may be AL or AH. So of
 * registers that hold integers, flags or masks all bytes survive, and of vectors the lowest as many
 * as are recorded, rounded up to a register that the architecture has: 16, 32 or 64 bytes on
 * x86-64, 16 on AArch64, 8 or 16 on PPC64.
 *
 * WHAT IS NOT LISTED. LLVM lists no registers that it has reserved for a purpose: so the stack
 * pointer, and all registers that any call leaves as they are, where frame and base pointers may
 * be, always survive; and so does x86-64's MXCSR. And with an empty list every register does: stack
 * maps and statepoints never have one, and patch points only where LLVM was told to make it
 * (CAIRN_LIVENESS_KEEP in cairn/llvm.h).
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
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CAIRN_SURVIVORS_REGISTERS = 128 };

/** How many bytes of each register must survive, by DWARF number: as cairn_context_read takes them.
 *  0: none. */
struct cairn_survivors {
    uint8_t bytes[CAIRN_SURVIVORS_REGISTERS];
};

/** What must survive at the record, of the registers that the context has. The program counter is
 *  never in it. Thread-safe, async-signal-safe. */
CAIRN_API void cairn_context_survivors(const struct cairn_context *context,
                                       struct cairn_record record,
                                       struct cairn_survivors *survivors);

/** Gives `context` the survivors' bytes that `from` has; the rest of it stays. Both contexts come
 *  from the same machine. Where one field of PPC64's condition register survives, all of it is
 *  brought back. Thread-safe for different contexts, async-signal-safe. */
CAIRN_API void cairn_context_bring_back(struct cairn_context *context,
                                        const struct cairn_context *from,
                                        const struct cairn_survivors *survivors);

#ifdef __cplusplus
}
#endif
#endif
