/*
 * frame/enter.h - entering a function in place of a frame.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_ENTER_H
#define FRAME_ENTER_H

#include <cairn/deopt.h>

/* ---- Code in an exit's module for entered functions: struct arch_entry_frame ---- */

/* Writes the code to `code`, and its unwind rules to `rules`. */
enum { ENTER_RULES_BYTES = 64 };
void enter_write_code(uint8_t *code, uint8_t *rules);

/* ---- The action ---- */

/* Performs the requested entry on the context, which must be the caller's, and on the stack. */
void enter_begin(struct cairn_deopt *deopt);

#endif
