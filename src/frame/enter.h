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

/* Does what was asked for, to the context, which is that of the caller, and to the stack. */
void enter_begin(struct cairn_deopt *deopt);

#endif
