/*
 * frame/registers.h - the registers of a frame.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_REGISTERS_H
#define FRAME_REGISTERS_H

#include "arch/arch.h"
#include "value/representation.h"

#include <cairn/frame.h>

/* `private_words` of a frame holds the places of the callee-saved registers (arch_unwind_slot),
 * NULL where a place is not known. */
enum { FRAME_SLOTS = CAIRN_FRAME_PRIVATE_WORDS };

/* Functions save so many low bytes of a register of flags. */
enum { SAVED_FLAGS_BYTES = 4 };

/* A register of a frame: its bytes, in the context or in the frame of a callee that has saved it.
 * `bytes` is NULL if the context holds them in another order than a store writes them. */
struct frame_register {
    uint16_t dwarf;
    struct storage storage;
    void *bytes;
    /* Whether a vector is held as a store writes it, with a scalar in its first doubleword. */
    bool is_quadword;
    uint8_t first_flag; /* as in struct arch_register */
};

/* Finds the place of a register. NOT_FOUND if the frame does not have its value. */
enum cairn_status frame_find_register(const struct cairn_frame *frame, uint16_t dwarf,
                                      struct frame_register *found, struct cairn_error *error);

/* Load and store the part of a register that storage_part returns. */
enum cairn_status frame_load(const struct cairn_frame *frame, const struct frame_register *place,
                             void *bytes, size_t part, struct cairn_error *error);
enum cairn_status frame_store(struct cairn_frame *frame, const struct frame_register *place,
                              const void *bytes, size_t part, struct cairn_error *error);

/* Returns the value of a general register or of the stack pointer, as the base of an address. */
enum cairn_status frame_base(const struct cairn_frame *frame, uint16_t dwarf, uint64_t *value,
                             struct cairn_error *error);

/* Returns the 8 bytes in which a register of the innermost frame holds a scalar, in the low bytes
 * of an integer. NULL if only frame_find_register can tell. */
static inline void *frame_scalar(const struct cairn_frame *frame, uint16_t dwarf)
{
    const struct arch_context_layout *layout = &arch_host_layout;
    bool is_here = dwarf < layout->scalars_end && layout->offsets[dwarf] != 0 &&
                   frame->is_innermost && arch_context_has(frame->context, dwarf);
    return is_here ? frame->context->bytes + layout->offsets[dwarf] : NULL;
}

#endif
