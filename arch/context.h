/*
 * arch/context.h - the parts of contexts and exits that all hosts share. For C and for assembly.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ARCH_CONTEXT_H
#define ARCH_CONTEXT_H

/* ---- Start of every context; the remainder is in arch/<name>/context.h ---- */

#define CONTEXT_PRESENT 0       /* one bit per DWARF number: the context holds the register */
#define CONTEXT_VECTOR_LEVEL 16 /* vector registers that have a place; 0: no such registers */
#define CONTEXT_CONTROL 20      /* floating-point control register */
#define CONTEXT_FLAGS 24
#define CONTEXT_PC 32
#define CONTEXT_HEAD_BYTES 64

#define CONTEXT_BYTES 2560
#define CONTEXT_ALIGNMENT 64

/* Maximum number of bytes of a context that are used. The remainder must stay unused: on x86-64,
 * resuming writes below the stack pointer, where the context itself may be, and writes at most as
 * many bytes as remain. */
#define CONTEXT_USED_BYTES_MAX 2304

/* ---- Exits ---- */

#define ARCH_EXIT_ENTRY 0
#define ARCH_EXIT_SELF 8
#define ARCH_EXIT_HANDLER 16
#define ARCH_EXIT_USER 24
#define ARCH_EXIT_LEVEL 32
#define ARCH_EXIT_BYTES 40
/* What follows in exits with a light handler. */
#define ARCH_EXIT_LIGHT 40

#ifndef __ASSEMBLER__
#include <cairn/context.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The head of a context. If all bytes are zero, the context holds no registers. The head is stored
 * in the bytes of struct cairn_context. */
struct __attribute__((may_alias)) arch_context_head {
    uint64_t present[2];
    uint32_t vector_level;
    uint32_t control;
    uint64_t flags;
    uint64_t pc;
    uint64_t unused[3];
};

enum { ARCH_CONTEXT_REGISTERS = 128 };

/* Whether the context holds a register. */
static inline bool arch_context_has(const struct cairn_context *context, uint16_t dwarf)
{
    const struct arch_context_head *head = (const struct arch_context_head *)context;
    return dwarf < ARCH_CONTEXT_REGISTERS && (head->present[dwarf / 64] >> dwarf % 64 & 1) != 0;
}

/* A function that exits call. It gets the thread's registers and may change them. */
typedef void arch_exit_handler(struct cairn_context *context, void *user);

/*
 * The data of an exit, which a stub (`encode_exit`) passes to the exit's entry. It is aligned to 8,
 * and must not change while a thread may be in the stub or in the handler.
 */
struct arch_exit {
    uint64_t entry; /* arch_exit_entry */
    struct arch_exit *self;
    arch_exit_handler *handler;
    void *user;
    /* The level of the vector registers to save, not 0. It may change at any time. */
    const _Atomic uint32_t *level;
};

/* A function that light exits call first. It gets a context that holds only general and vector
 * registers, which are at their places, and has no bits in `present`. It may change registers if it
 * returns true; the thread then continues with them. Otherwise the exit calls its handler. */
typedef bool arch_light_handler(struct cairn_context *context, void *user);

/* An exit with a light handler. Its entry (arch_light_entry) takes less time than that of other
 * exits: it does not save and restore flags on x86-64, nor control registers of floating-point
 * units, except where the handler is called. */
struct arch_light_exit {
    struct arch_exit exit;
    arch_light_handler *light;
};

_Static_assert(CONTEXT_BYTES == CAIRN_CONTEXT_BYTES, "as the header says");
_Static_assert(CONTEXT_ALIGNMENT == CAIRN_CONTEXT_ALIGNMENT, "as the header says");

#define CONTEXT_ASSERT_OFFSET(type, member, offset)                                                \
    _Static_assert(offsetof(type, member) == (offset), #member " is where assembly expects it")

CONTEXT_ASSERT_OFFSET(struct arch_context_head, present, CONTEXT_PRESENT);
CONTEXT_ASSERT_OFFSET(struct arch_context_head, vector_level, CONTEXT_VECTOR_LEVEL);
CONTEXT_ASSERT_OFFSET(struct arch_context_head, control, CONTEXT_CONTROL);
CONTEXT_ASSERT_OFFSET(struct arch_context_head, flags, CONTEXT_FLAGS);
CONTEXT_ASSERT_OFFSET(struct arch_context_head, pc, CONTEXT_PC);
_Static_assert(sizeof(struct arch_context_head) == CONTEXT_HEAD_BYTES, "registers follow it");

#ifdef __LP64__
CONTEXT_ASSERT_OFFSET(struct arch_exit, entry, ARCH_EXIT_ENTRY);
CONTEXT_ASSERT_OFFSET(struct arch_exit, self, ARCH_EXIT_SELF);
CONTEXT_ASSERT_OFFSET(struct arch_exit, handler, ARCH_EXIT_HANDLER);
CONTEXT_ASSERT_OFFSET(struct arch_exit, user, ARCH_EXIT_USER);
CONTEXT_ASSERT_OFFSET(struct arch_exit, level, ARCH_EXIT_LEVEL);
CONTEXT_ASSERT_OFFSET(struct arch_light_exit, light, ARCH_EXIT_LIGHT);
_Static_assert(sizeof(struct arch_exit) == ARCH_EXIT_BYTES, "the size in assembly");
#endif
#else

/* An offset of 0 to 8191 as a signed LEB128 of two bytes. */
#define SLEB(offset) ((offset)&0x7f | 0x80), ((offset) >> 7)
#define BASE_PLUS(base, offset) 0x70 + base, SLEB(offset)

/* Unwind rule: the caller's register `number` is saved at `base` + `offset`. */
/* clang-format off */
.macro cfi_saved base, number, offset
    .cfi_escape 0x10, \number, 3, BASE_PLUS(\base, \offset)
.endm
/* clang-format on */
#endif
#endif
