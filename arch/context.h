/*
 * arch/context.h - what contexts and exits are made of on every host. For C and for assembly.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ARCH_CONTEXT_H
#define ARCH_CONTEXT_H

/* ---- The begin of every context; the rest is in arch/<name>/context.h ---- */

#define CONTEXT_PRESENT 0       /* by DWARF number, one bit each: the context has the register */
#define CONTEXT_VECTOR_LEVEL 16 /* which vector registers have a place; 0: none */
#define CONTEXT_CONTROL 20      /* of floating point */
#define CONTEXT_FLAGS 24
#define CONTEXT_PC 32
#define CONTEXT_HEAD_BYTES 64

#define CONTEXT_BYTES 2560
#define CONTEXT_ALIGNMENT 64

/* At most this much of a context is used. The rest stays empty: on x86-64 resuming writes as much
 * below the stack pointer, where the context itself may be. */
#define CONTEXT_USED_BYTES_MAX 2304

/* ---- An exit ---- */

#define ARCH_EXIT_ENTRY 0
#define ARCH_EXIT_SELF 8
#define ARCH_EXIT_HANDLER 16
#define ARCH_EXIT_USER 24
#define ARCH_EXIT_BYTES 32

#ifndef __ASSEMBLER__
#include <cairn/context.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero: has no register. It stands in the bytes of struct cairn_context. */
struct __attribute__((may_alias)) arch_context_head {
    uint64_t present[2];
    uint32_t vector_level;
    uint32_t control;
    uint64_t flags;
    uint64_t pc;
    uint64_t unused[3];
};

enum { ARCH_CONTEXT_REGISTERS = 128 };

/* Whether the context has a register. */
static inline bool arch_context_has(const struct cairn_context *context, uint16_t dwarf)
{
    const struct arch_context_head *head = (const struct arch_context_head *)context;
    return dwarf < ARCH_CONTEXT_REGISTERS && (head->present[dwarf / 64] >> dwarf % 64 & 1) != 0;
}

/* What the functions that exits call get: the thread's registers, to be changed if they like. */
typedef void arch_exit_handler(struct cairn_context *context, void *user);

/*
 * The data of an exit, which a stub (`encode_exit`) hands on. It must not change while a thread may
 * be in the stub or in the handler, and is aligned to 8.
 */
struct arch_exit {
    uint64_t entry; /* an address in code: arch_host_exit_init */
    struct arch_exit *self;
    arch_exit_handler *handler;
    void *user;
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
_Static_assert(sizeof(struct arch_context_head) == CONTEXT_HEAD_BYTES, "the rest begins behind it");

#ifdef __LP64__
CONTEXT_ASSERT_OFFSET(struct arch_exit, entry, ARCH_EXIT_ENTRY);
CONTEXT_ASSERT_OFFSET(struct arch_exit, self, ARCH_EXIT_SELF);
CONTEXT_ASSERT_OFFSET(struct arch_exit, handler, ARCH_EXIT_HANDLER);
CONTEXT_ASSERT_OFFSET(struct arch_exit, user, ARCH_EXIT_USER);
_Static_assert(sizeof(struct arch_exit) == ARCH_EXIT_BYTES, "nothing else is in it");
#endif
#endif
#endif
