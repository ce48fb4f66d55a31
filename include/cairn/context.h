/*
 * cairn/context.h - the registers of a thread: saving, reading, changing and resuming them.
 *
 *     static void handle(int signal, siginfo_t *information, void *ucontext)
 *     {
 *         struct cairn_context context;
 *         uint64_t pc;
 *         if (cairn_context_from_signal(&context, ucontext, NULL) == CAIRN_OK &&
 *             cairn_context_read(&context, CAIRN_REGISTER_PC, &pc, sizeof pc, NULL) == CAIRN_OK)
 *             …
 *     }
 *
 * A register is named by its DWARF number, as in stack maps and unwind tables, or by a number
 * CAIRN_REGISTER_…, which is the same on every architecture. A part of an integer register is its
 * low bytes, a part of a vector register its lowest lanes.
 *
 * A context is plain data without an owner, and may be copied.
 *
 * Threads: every function is async-signal-safe. A context must be used by one thread at a time.
 *
 * See cairn-exits-and-frames(7) (doc/exits-and-frames.md): numbers, parts, and what is not
 * included.
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

/** A context. Only Cairn's functions may access its bytes. If all are zero, the context holds no
 *  registers. */
struct cairn_context {
#ifdef __cplusplus
    alignas(CAIRN_CONTEXT_ALIGNMENT) unsigned char bytes[CAIRN_CONTEXT_BYTES];
#else
    _Alignas(CAIRN_CONTEXT_ALIGNMENT) unsigned char bytes[CAIRN_CONTEXT_BYTES];
#endif
};

/** Numbers of registers of 8 bytes that are the same on all architectures. Every context holds the
 *  program counter and the flags. */
enum {
    CAIRN_REGISTER_PC =
        0xFF00, /**< an address in code, never of a function descriptor; 0 if unset */
    CAIRN_REGISTER_SP = 0xFF01,   /**< RSP, SP, r1 */
    CAIRN_REGISTER_FLAGS = 0xFF02 /**< RFLAGS; N, Z, C and V as in PSTATE; CR */
};

/* ---- Reading and writing ---- */

/** Returns the size of a register in bytes; 0 if the context does not hold it. */
CAIRN_API size_t cairn_context_register_size(const struct cairn_context *context, uint16_t number);

/**
 * Reads a register, or its part of `size` bytes, in the machine's byte order.
 *
 * Errors: NOT_FOUND if the context does not hold the register; RANGE if the size is 0 or larger
 * than the register. `value` is unchanged after an error.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_context_read(const struct cairn_context *context,
                                                                uint16_t number, void *value,
                                                                size_t size,
                                                                struct cairn_error *error);

/**
 * Writes a register, or its part of `size` bytes. Adds a general register that the context did not
 * hold; its other bytes are then zero. Vector and mask registers can be written only if the context
 * holds registers of their kind.
 *
 * Errors: NOT_FOUND, RANGE as cairn_context_read. Nothing is changed after an error.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_context_write(struct cairn_context *context,
                                                                 uint16_t number, const void *value,
                                                                 size_t size,
                                                                 struct cairn_error *error);

/* ---- Saving and resuming ---- */

/**
 * Saves the thread's own registers, as setjmp does: the callee-saved registers, the stack pointer,
 * and as the program counter the address to which this call returns. Returns 0. It returns 1 when
 * cairn_context_resume resumes the context, which is allowed until the caller returns.
 */
CAIRN_API int cairn_context_save(struct cairn_context *context)
    __attribute__((returns_twice, nonnull));

/**
 * Resumes the thread with the registers of the context, flags included. Registers that the context
 * does not hold are undefined; so are x16 and x17 on AArch64, and r12 on PPC64 (and CTR, if the
 * program counter is not LR), which are needed to branch to the program counter.
 *
 * The context must hold a stack pointer and a program counter. It may itself be below that stack
 * pointer. On x86-64, the 128 bytes below the new stack pointer (the red zone) stay unchanged, and
 * up to 128 bytes below them are written. On other architectures nothing is written.
 *
 * Frames are not unwound, and signal masks are not changed. The stack pointer must be in the
 * thread's own stack or in a stack that is not in use. If the processor checks return addresses
 * against a shadow stack, the program counter must not have changed since the context was made.
 */
CAIRN_API void cairn_context_resume(const struct cairn_context *context)
    __attribute__((noreturn, nonnull));

/* ---- Signals ---- */

/**
 * Reads the registers of the interrupted thread from `ucontext`, the third argument of a signal
 * handler (SA_SIGINFO): all registers that the kernel has saved, including vector registers.
 *
 * Errors: NOT_FOUND if the signal frame does not contain vector registers: the context then holds
 * all other registers. CORRUPT if the signal frame is inconsistent, UNSUPPORTED if Cairn has no
 * contexts for this machine: the context then holds no registers.
 *
 * Threads: async-signal-safe if `error` is NULL. A context must be used by one thread at a time.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_context_from_signal(
    struct cairn_context *context, const void *ucontext, struct cairn_error *error);

/**
 * Writes the context to `ucontext`: when the handler returns, the thread resumes with the registers
 * of the context, including program counter and flags. Registers that the context does not hold
 * stay unchanged, and so do the other bytes of vector registers that are wider than in the context.
 *
 * Errors: NOT_FOUND if the context holds vector or mask registers of a kind that the signal frame
 * does not contain; CORRUPT, UNSUPPORTED as cairn_context_from_signal. Nothing is changed after an
 * error.
 *
 * Threads: async-signal-safe if `error` is NULL. A context must be used by one thread at a time.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_context_to_signal(
    const struct cairn_context *context, void *ucontext, struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
