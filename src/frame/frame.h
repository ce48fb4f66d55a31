/*
 * frame/frame.h - the registers and live values of a frame, steps to callers, and restoring a
 * frame's context.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_FRAME_H
#define FRAME_FRAME_H

#include "arch/arch.h"
#include "value/representation.h"

#include <cairn/declaration.h>
#include <cairn/frame.h>
#include <string.h>

/* ---- Contexts ---- */

static inline struct arch_context_head *context_head(struct cairn_context *context)
{
    return (struct arch_context_head *)context;
}

/* Marks a register as one that the context holds. */
static inline void context_add(struct cairn_context *context, uint16_t dwarf)
{
    context_head(context)->present[dwarf / 64] |= UINT64_C(1) << dwarf % 64;
}

/* Returns the stack pointer; 0 if the context does not hold it. Only for hosts with contexts. */
static inline uint64_t context_sp(const struct cairn_context *context)
{
    uint64_t sp;
    memcpy(&sp, context->bytes + arch_host_layout.offsets[arch_host_layout.stack_pointer],
           sizeof sp);
    return sp;
}

static inline void context_set_pc_and_sp(struct cairn_context *context, uint64_t pc, uint64_t sp)
{
    const struct arch_context_layout *layout = &arch_host_layout;
    context_head(context)->pc = pc;
    memcpy(context->bytes + layout->offsets[layout->stack_pointer], &sp, sizeof sp);
    context_add(context, layout->stack_pointer);
}

/* ---- Registers ---- */

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

/* ---- Live values ---- */

/* Finds the locations of the record's live values, from `*first` up to, but not including, `*end`.
 * `declaration` is the record's; if it is NULL, all locations are live values. LLVM does not record
 * values in x87 registers, which shifts the values after them. So a patch point or stack map with
 * another number of locations than its declaration needs is CORRUPT. */
enum cairn_status frame_find_live_locations(struct cairn_record record,
                                            const struct cairn_declaration *declaration,
                                            uint32_t *first, uint32_t *end,
                                            struct cairn_error *error);

/* ---- Steps ---- */

/* Steps to the caller of a frame of native code. Errors: as cairn_frame_caller, and CORRUPT
 * if the frame would end above `stack_end`. */
enum cairn_status frame_step_native(struct cairn_frame *frame, uint64_t stack_end,
                                    struct cairn_error *error);

/* Applies the rules by which a slot's value is found in another slot of the frame. It must run
 * before the rules for loaded slots, because moves use the frame's own slots. */
struct unwind_row;
void frame_apply_moves(const struct unwind_row *row, struct cairn_frame *frame);

/*
 * If a site has no space for the instructions that a call needs around it, the call goes through a
 * veneer with its own call frame (`encode_framed_veneer`). The callee then returns to the veneer,
 * but handlers and walks must see the site's frame.
 *
 * frame_leave_veneer_context changes a context that returns to such a veneer into the context of
 * the site's call, with the registers that the veneer has saved. Resuming it has the same effect as
 * returning through the veneer. frame_leave_veneer does the same for a frame that a walk has
 * reached; its pc and sp must be set. Others stay unchanged. Async-signal-safe.
 */
void frame_leave_veneer_context(const cairn_runtime *runtime, struct cairn_context *context);
void frame_leave_veneer(struct cairn_frame *frame);

/* Report why a frame cannot be left. */
enum cairn_status frame_say_base_unknown(const struct cairn_frame *frame,
                                         struct cairn_error *error);
enum cairn_status frame_say_where_it_ends(const struct cairn_frame *frame, uint64_t cfa,
                                          struct cairn_error *error);
enum cairn_status frame_say_not_saved(const struct cairn_frame *frame, struct cairn_error *error);

/* ---- Leaving ---- */

/* Finds the frame's caller for use with frame_restore only: the caller's module is not looked up.
 * All callee-saved registers must be restorable. Errors: as cairn_frame_caller, and UNSUPPORTED;
 * `caller` is then unchanged. */
enum cairn_status frame_find_restorable_caller(const struct cairn_frame *frame,
                                               struct cairn_frame *caller,
                                               struct cairn_error *error);

/* Changes the context into that of a frame which a walk from the context has reached: the thread
 * resumes in that frame, with its callee-saved registers restored. */
void frame_restore(const struct cairn_frame *frame, struct cairn_context *context);

/* Checks that a value of the type can be written to the location. Errors: as
 * cairn_frame_set_value. */
enum cairn_status frame_check_location(const struct cairn_frame *frame,
                                       struct cairn_location location, struct cairn_type type,
                                       struct cairn_error *error);

/* Writes a value to a location. frame_check_location must have accepted them. */
void frame_write_location(struct cairn_frame *frame, struct cairn_location location,
                          const struct cairn_value *value);

#endif
