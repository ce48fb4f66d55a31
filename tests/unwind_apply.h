/*
 * Applies rows of unwind rules to the values of slots, without a frame.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_UNWIND_APPLY_H
#define TESTS_UNWIND_APPLY_H

#include "unwind/rules.h"

#include <string.h>

/* Returns the rules of a frame that waits for a call with this return address. */
static inline const struct unwind_row *unwind_find_return(const struct unwind *unwind,
                                                          uint64_t return_address)
{
    return unwind_find_exact(unwind, return_address - 1);
}

static inline uint64_t unwind_cfa(const struct unwind_row *row, const uint64_t *slots)
{
    return slots[row->cfa_slot] + (uint64_t)(int64_t)row->cfa_offset;
}

/* Changes a frame's slots to its caller's. Reads the stack of this process. The caller must have
 * checked the CFA. */
static inline void unwind_apply(const struct unwind_row *row, uint64_t cfa, uint64_t *slots)
{
    uint64_t moved[UINT8_MAX] = {0};
    const struct unwind_place *places = unwind_places(row);
    const struct unwind_place *moves = places + row->loaded_count;
    for (unsigned i = 0; i < row->moved_count; i++)
        moved[i] = slots[moves[i].source];
    for (unsigned i = 0; i < row->loaded_count; i++) {
        uint64_t address = cfa + (uint64_t)((int64_t)places[i].words * 8);
        memcpy(&slots[places[i].slot], (const void *)(uintptr_t)address, sizeof *slots);
    }
    slots[ARCH_UNWIND_STACK_POINTER] = cfa;
    for (unsigned i = 0; i < row->moved_count; i++)
        slots[moves[i].slot] = moved[i];
}

#endif
