/*
 * frame/frame.h - where a frame has its registers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_FRAME_H
#define FRAME_FRAME_H

#include "frame/storage.h"

#include <cairn/declaration.h>
#include <cairn/frame.h>

/* A register of a frame: its bytes, in the context or where a frame further in has saved it. NULL
 * where the context has them in another order than a store would put them. */
struct frame_register {
    uint16_t dwarf;
    struct storage storage;
    void *bytes;
    /* As a store puts a vector there, and a scalar in its first doubleword. */
    bool is_quadword;
    uint8_t first_flag; /* as in struct arch_register */
};

/* NOT_FOUND if the frame does not have the register's value. */
enum cairn_status frame_find_register(const struct cairn_frame *frame, uint16_t dwarf,
                                      struct frame_register *found, struct cairn_error *error);

/* A part of it, as storage_part says. */
enum cairn_status frame_load(const struct cairn_frame *frame, const struct frame_register *place,
                             void *bytes, size_t part, struct cairn_error *error);
enum cairn_status frame_store(struct cairn_frame *frame, const struct frame_register *place,
                              const void *bytes, size_t part, struct cairn_error *error);

/* The value of a general register, or the stack pointer, that an address is made with. */
enum cairn_status frame_base(const struct cairn_frame *frame, uint16_t dwarf, uint64_t *value,
                             struct cairn_error *error);

/* The 8 bytes in which a register of the innermost frame has a scalar, as the low bytes of an
 * integer. NULL: frame_find_register knows more. */
static inline void *frame_scalar(const struct cairn_frame *frame, uint16_t dwarf)
{
    const struct arch_context_layout *layout = &arch_host_layout;
    bool is_here = dwarf < layout->scalars_end && layout->offsets[dwarf] != 0 &&
                   frame->is_innermost && arch_context_has(frame->context, dwarf);
    return is_here ? frame->context->bytes + layout->offsets[dwarf] : NULL;
}

/* ---- Live values ---- */

/* Which of a patch point's or stack map's locations is its first live value: with anyregcc the
 * result and the arguments are recorded too, before it. */
uint32_t frame_first_live_location(const struct cairn_declaration *declaration);

/* ---- Steps ---- */

/* To the caller of a frame of native code. As cairn_frame_native_caller; CORRUPT besides if the
 * frame would end above `stack_end`. */
enum cairn_status frame_step_native(struct cairn_frame *frame, uint64_t stack_end,
                                    struct cairn_error *error);

/* CORRUPT if the frame cannot end at this address. */
enum cairn_status frame_check_cfa(const struct cairn_frame *frame, uint64_t cfa, uint64_t stack_end,
                                  struct cairn_error *error);

/* Slots that are in other slots' places further out. Before what is loaded: what is moved is the
 * frame's own. */
struct unwind_row;
void frame_apply_moves(const struct unwind_row *row, struct cairn_frame *frame);

/* Why a frame cannot be left. */
enum cairn_status frame_say_base_unknown(const struct cairn_frame *frame,
                                         struct cairn_error *error);
enum cairn_status frame_say_where_it_ends(const struct cairn_frame *frame, uint64_t cfa,
                                          struct cairn_error *error);
enum cairn_status frame_say_not_saved(const struct cairn_frame *frame, struct cairn_error *error);

/* ---- Leaving ---- */

/* The frame's caller, for frame_restore alone (its module is not looked up), if all that it expects
 * to be kept can be brought back: as cairn_frame_caller, and UNSUPPORTED; `caller` is then as it
 * was. */
enum cairn_status frame_find_restorable_caller(const struct cairn_frame *frame,
                                               struct cairn_frame *caller,
                                               struct cairn_error *error);

/* Makes the context that of a frame which was reached by walking from it: the thread goes on there,
 * with all registers that calls leave as they are. */
void frame_restore(const struct cairn_frame *frame, struct cairn_context *context);

/* Whether a value of the type can be written to the location; as cairn_frame_set_value. */
enum cairn_status frame_check_location(const struct cairn_frame *frame,
                                       struct cairn_location location, struct cairn_type type,
                                       struct cairn_error *error);

/* What frame_check_location has found good. */
void frame_write_location(struct cairn_frame *frame, struct cairn_location location,
                          const struct cairn_value *value);

#endif
