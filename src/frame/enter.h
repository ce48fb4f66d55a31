/*
 * frame/enter.h - entering a function in a frame's place.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_ENTER_H
#define FRAME_ENTER_H

#include <cairn/deopt.h>

/* ---- Code that an exit has for it: struct arch_entry_frame ---- */

/* Writes the code, and rules for unwinding it to another place. */
enum { ENTER_RULES_BYTES = 64 };
void enter_write_code(uint8_t *code, uint8_t *rules);

/* ---- The action ---- */

/* Moves on from a caller that is such code: returning to it is the same as returning to its
 * caller, and the stack does not grow where functions are entered one after the other. */
enum cairn_status enter_find_caller(struct cairn_frame *caller, struct cairn_error *error);

/* Does what was asked for, to the context, which is that of the caller, and to the stack. */
void enter_begin(struct cairn_deopt *deopt);

#endif
