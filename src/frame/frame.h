/*
 * frame/frame.h - the live values of a frame, and restoring a frame's context.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_FRAME_H
#define FRAME_FRAME_H

#include "frame/context.h"
#include "frame/registers.h"

#include <cairn/declaration.h>
#include <cairn/frame.h>

/* ---- Live values ---- */

/* Finds the locations of the record's live values, from `*first` up to, but not including, `*end`.
 * `declaration` is the record's; if it is NULL, all locations are live values. Errors: those of
 * cairn_record_statepoint. */
enum cairn_status frame_find_live_locations(struct cairn_record record,
                                            const struct cairn_declaration *declaration,
                                            uint32_t *first, uint32_t *end,
                                            struct cairn_error *error);

/* ---- Leaving ---- */

/* Moves an interrupted frame out of code of Cairn's own that has no call frame: to the caller, or
 * to the site that the code belongs to. Other frames stay unchanged. */
void frame_leave_own_code(struct cairn_frame *frame);

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
