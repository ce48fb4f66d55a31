/*
 * unwind/unwind.h - the unwind rules of a module: they find the registers of a frame's caller.
 *
 * The table is built once from .eh_frame, in one allocation, and never changes. Code offsets have
 * 32 bits. Identical rows are stored once. Rules that cannot be used are stored with the reason.
 *
 * A walker keeps the slots of arch/arch.h (`unwind_slots`) for the current frame: the callee-saved
 * registers, the stack pointer, and the return address. A step:
 *
 *     row = unwind_find_exact(table, pc)          the innermost frame, where a thread was stopped
 *     row = unwind_find_return(table, pc)         all others: pc is the return address of a call
 *     if (!unwind_can_leave(row)) return unwind_explain(row, arch, pc, error);
 *     cfa = unwind_cfa(row, slots)                to be checked: above the last, inside the stack
 *     unwind_apply(row, cfa, slots)
 *     pc = slots[ARCH_UNWIND_RETURN_ADDRESS]      signed, if the row's flags say so
 *
 * All functions that read a table are lock-free and async-signal-safe.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef UNWIND_UNWIND_H
#define UNWIND_UNWIND_H

#include "arch/arch.h"
#include "unwind/function_list.h"

#include <string.h>

/* Why rules cannot be used. ORDER PROBLEM: the order of the messages in unwind.c. */
enum unwind_problem {
    UNWIND_FINE = 0,

    /* Not all of the caller's registers are known. The walker can leave the frame. */
    UNWIND_REGISTER_EXPRESSION = 1,
    UNWIND_REGISTER_UNDEFINED = 2,
    UNWIND_REGISTER_PLACE = 3,   /* not at an address that slots can be loaded from */
    UNWIND_REGISTER_FOREIGN = 4, /* calls do not preserve it: unknown how much of it is saved */
    UNWIND_SIGNED_WITH_PC = 5,   /* the return address; it can be stripped, not authenticated */

    /* The walker cannot leave the frame. */
    UNWIND_NO_RULES = 6,
    UNWIND_NO_CALLER = 7,
    UNWIND_CFA_UNKNOWN = 8,
    UNWIND_CFA_EXPRESSION = 9,
    UNWIND_CFA_REGISTER = 10,
    UNWIND_CFA_OFFSET = 11,
    UNWIND_STACK_POINTER = 12,
    UNWIND_RETURN_COLUMN = 13,
    UNWIND_RETURN_RULE = 14,
    UNWIND_OPCODE = 15,
    UNWIND_NESTING = 16,
    UNWIND_RULES = 17,
    UNWIND_NUMBER = 18,
    UNWIND_LETTER = 19
};

enum unwind_flags {
    /* The row loads or moves the return address. Otherwise the return address is still in its
     * register, which is possible only in the innermost frame. */
    UNWIND_RETURN_FOUND = 1,
    /* The caller was interrupted, so its rules are those of the exact PC. */
    UNWIND_SIGNAL_FRAME = 2,
    /* AArch64: the return address's slot will hold a value signed with the A or the B key. */
    UNWIND_SIGNED = 4,
    UNWIND_B_KEY = 8
};

/* A slot to load from CFA + 8 * words, or a slot to move from slot `source` of the frame that is
 * left. */
struct unwind_place {
    uint8_t slot;
    uint8_t source;
    int16_t words;
};

/* A row of the table. Its places follow it: first those to load, then those to move, and among each
 * kind the return address first. Slots without a place do not change. */
struct unwind_row {
    int32_t cfa_offset;
    uint8_t cfa_slot;
    uint8_t flags;   /* enum unwind_flags */
    uint8_t problem; /* enum unwind_problem */
    uint8_t loaded_count;
    uint8_t moved_count;
    uint8_t reserved;
    uint16_t detail; /* of the problem: a register, an opcode, a letter, or a number */
};

_Static_assert(sizeof(struct unwind_row) == 12, "rows are compared as bytes");
_Static_assert(sizeof(struct unwind_place) == 4, "rows are compared as bytes");

struct unwind;

/* ---- Creating ---- */

/* Creates the table. The list may be released afterwards. `*unwind` is NULL if the list is empty
 * or `arch` is NULL; all other functions accept that. CORRUPT, RANGE (functions 4 GiB apart),
 * MEMORY. */
enum cairn_status unwind_create(const struct function_list *list, const struct cairn_arch *arch,
                                struct unwind **unwind, struct cairn_error *error);

void unwind_destroy(struct unwind *unwind);

/* The size of a table. */
struct unwind_size {
    size_t bytes;
    size_t entries; /* ranges of code with the same row */
    size_t rows;    /* different rows */
};
struct unwind_size unwind_size(const struct unwind *unwind);

/* ---- Looking up ---- */

/* Returns the rules for the instruction at `pc`. Never NULL: where there are no rules, the row has
 * a problem. Valid as long as the table. */
const struct unwind_row *unwind_find_exact(const struct unwind *unwind, uint64_t pc);

/* Returns the rules of a frame that waits for a call with this return address. These are the rules
 * of the call, which may be the last instruction of a function that another one follows. */
static inline const struct unwind_row *unwind_find_return(const struct unwind *unwind,
                                                          uint64_t return_address)
{
    return unwind_find_exact(unwind, return_address - 1);
}

/* ---- Using rows ---- */

static inline bool unwind_can_leave(const struct unwind_row *row)
{
    return row->problem < UNWIND_NO_RULES;
}

/* Whether the walker can leave the frame and can also restore all registers that the caller expects
 * to be preserved. */
static inline bool unwind_can_restore(const struct unwind_row *row)
{
    return row->problem == UNWIND_FINE;
}

static inline const struct unwind_place *unwind_places(const struct unwind_row *row)
{
    return (const struct unwind_place *)(row + 1);
}

static inline uint64_t unwind_cfa(const struct unwind_row *row, const uint64_t *slots)
{
    return slots[row->cfa_slot] + (uint64_t)(int64_t)row->cfa_offset;
}

/* Implements unwind_apply for rows that move slots. */
void unwind_apply_moves(const struct unwind_row *row, uint64_t cfa, uint64_t *slots);

/* Turns a frame's slots into its caller's. Reads the stack of this process. The caller must have
 * checked the CFA. */
static inline void unwind_apply(const struct unwind_row *row, uint64_t cfa, uint64_t *slots)
{
    if (row->moved_count != 0) {
        unwind_apply_moves(row, cfa, slots);
        return;
    }
    const struct unwind_place *places = unwind_places(row);
    for (unsigned i = 0; i < row->loaded_count; i++) {
        uint64_t address = cfa + (uint64_t)((int64_t)places[i].words * 8);
        memcpy(&slots[places[i].slot], (const void *)(uintptr_t)address, sizeof *slots);
    }
    slots[ARCH_UNWIND_STACK_POINTER] = cfa;
}

/* Reports the row's problem: NOT_FOUND for code without rules, otherwise UNSUPPORTED; OK if there
 * is no problem. */
enum cairn_status unwind_explain(const struct unwind_row *row, const struct cairn_arch *arch,
                                 uint64_t pc, struct cairn_error *error);

#endif
