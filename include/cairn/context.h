/*
 * cairn/context.h - the registers of a thread.
 *
 * A context holds the registers of a thread at one point of its code, by DWARF number: general
 * registers, program counter, flags, and the vector registers as wide as the machine and its kernel
 * have them. It is plain memory of the caller's, as long-lived as he likes, and may be copied. It
 * stands on a stack well: 2560 bytes, aligned to 64.
 *
 * WHERE ONE COMES FROM, and what it then has:
 *
 * - Cairn's exit, behind a site: every register as at the site, but for those that the ABI leaves
 * to code between caller and callee: x16 and x17 on AArch64, r12 and CTR on PPC64.
 * - A signal: every register, cairn_context_from_signal.
 * - The thread itself: what a function has to leave as it finds it, cairn_context_capture.
 *
 * NUMBERS are those of the architecture's ABI, as stack maps and unwind tables have them.
 *
 * | | x86-64 | AArch64 | PPC64 |
 * | --- | --- | --- | --- |
 * | general, 8 bytes | 0 to 15 | 0 to 31 | 0 to 31, 65 (LR), 66 (CTR), 76 (XER) |
 * | program counter | 16 | | |
 * | flags, 8 bytes | 49 | | 64 and, all of CR too, 68 to 75 |
 * | control, 4 bytes | 64 (MXCSR) | | |
 * | vector | 17 to 32, 67 to 82 | 64 to 95 | 32 to 63 (f, vs0 to 31), 77 to 108 (v) |
 * | their bytes | 16, 32 or 64 | 16 | 16, or 8 and 16 without VSX |
 * | mask, 8 bytes | 118 to 125 | | |
 *
 * PARTS. A register that holds an integer has its low bytes as its part. One that holds a vector
 * has its first bytes, as a store of the whole would put them: its lowest lanes. PPC64 alone keeps
 * scalars in the first doubleword, which is not the lowest lane in little-endian order; so up to 8
 * bytes are the low bytes of that doubleword, and 16 the vector as a store puts it into memory.
 * (A float in a register of PPC64 is a double.) Writing a part leaves the rest as it is.
 *
 * NOT HERE: x87, MMX and AMX on x86-64, what SVE and SME have above 128 bits on AArch64, VSCR on
 * PPC64; and the registers that make a thread what it is (segment bases, TPIDR_EL0, r13 on PPC64,
 * which a context holds and does not bring back).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_CONTEXT_H
#define CAIRN_CONTEXT_H

#include <cairn/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CAIRN_CONTEXT_BYTES = 2560, CAIRN_CONTEXT_ALIGNMENT = 64 };

/** To be read and written by the functions below; the layout is Cairn's own and may change. All
 *  zero is a context that has no register. */
struct cairn_context {
#ifdef __cplusplus
    alignas(CAIRN_CONTEXT_ALIGNMENT) unsigned char bytes[CAIRN_CONTEXT_BYTES];
#else
    _Alignas(CAIRN_CONTEXT_ALIGNMENT) unsigned char bytes[CAIRN_CONTEXT_BYTES];
#endif
};

/*
 * Reading and writing. Pure memory access: one thread at a time for a context; async-signal-safe.
 */

/** How many bytes the context has of the register; 0 if it does not have it. */
CAIRN_API size_t cairn_context_register_size(const struct cairn_context *context, uint16_t dwarf);

/** The register's value, or its part of `size` bytes, in the machine's byte order. NOT_FOUND (the
 *  context does not have the register), RANGE (0 bytes, or more than it has): `value` stays as it
 *  was. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_context_read(const struct cairn_context *context,
                                                                uint16_t dwarf, void *value,
                                                                size_t size,
                                                                struct cairn_error *error);

/** The reverse. A general register that the context did not have it has from then on, any part that
 *  was not written being zero; vector and mask registers can be written where the context has their
 *  kind. NOT_FOUND, RANGE: nothing was changed. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_context_write(struct cairn_context *context,
                                                                 uint16_t dwarf, const void *value,
                                                                 size_t size,
                                                                 struct cairn_error *error);

/** Where the thread is, or goes on: an address in code, never a descriptor. */
CAIRN_API uint64_t cairn_context_pc(const struct cairn_context *context);
CAIRN_API void cairn_context_set_pc(struct cairn_context *context, uint64_t pc);

/** The stack pointer: RSP, SP, r1. */
CAIRN_API uint64_t cairn_context_sp(const struct cairn_context *context);
CAIRN_API void cairn_context_set_sp(struct cairn_context *context, uint64_t sp);

/** RFLAGS; N, Z, C and V at their places in PSTATE; CR. */
CAIRN_API uint64_t cairn_context_flags(const struct cairn_context *context);
CAIRN_API void cairn_context_set_flags(struct cairn_context *context, uint64_t flags);

/*
 * Making one, and going on from one.
 */

/**
 * Captures the thread's own registers, as setjmp does: the context describes the caller at the
 * address where this returns to. It has the registers that a function leaves as it finds them, the
 * stack pointer and the program counter. Returns 0; and 1 where cairn_context_resume goes on from
 * there, which is allowed as long as the caller has not returned. Async-signal-safe.
 */
CAIRN_API int cairn_context_capture(struct cairn_context *context)
    __attribute__((returns_twice, nonnull));

/**
 * The thread goes on with the context's registers. Each is exactly as in the context, flags
 * included; but x16 and x17 on AArch64, and r12 on PPC64 (and CTR, if the program counter is not
 * LR), are given up to get there, and registers that the context does not have hold anything. On
 * x86-64 the 128 bytes below the new stack pointer are left alone (the red zone), and up to 128
 * bytes below them are written; on the others nothing is written.
 *
 * The context must have a stack pointer and a program counter; it may lie below the stack pointer.
 * Frames that are left are not unwound, and no signal mask is changed. The stack pointer has to be
 * in the thread's own stack, or in one that is not in use. Where processors check return addresses
 * against a shadow stack, the program counter must be the one that the context came with.
 * Async-signal-safe.
 */
CAIRN_API void cairn_context_resume(const struct cairn_context *context)
    __attribute__((noreturn, nonnull));

/**
 * The interrupted thread's registers, from what a signal handler gets as its third argument
 * (SA_SIGINFO). All registers, vector registers included, as far as the kernel's frame has them.
 *
 * NOT_FOUND if the frame has no record of the vector registers: the context then has all others.
 * CORRUPT if the frame contradicts itself, UNSUPPORTED where Cairn has no contexts for the machine:
 * the context then has none. Async-signal-safe if `error` is NULL.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_context_from_signal(
    struct cairn_context *context, const void *ucontext, struct cairn_error *error);

/**
 * The reverse: when the handler returns, the thread goes on from the context, with its program
 * counter and flags. Registers that the context does not have are left as they are, and so is the
 * rest of a vector register that is wider than the context has it.
 *
 * NOT_FOUND if the context has vector or mask registers of a kind that the frame has no record of,
 * CORRUPT, UNSUPPORTED: nothing was changed. Async-signal-safe if `error` is NULL.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_context_to_signal(
    const struct cairn_context *context, void *ucontext, struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
