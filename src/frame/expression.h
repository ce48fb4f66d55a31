/*
 * frame/expression.h - the DWARF expressions that unwind tables of C code have: in trampolines of
 * signals, in linkers' stubs, in functions that realign their stack.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_EXPRESSION_H
#define FRAME_EXPRESSION_H

#include "format/eh_frame.h"

#include <cairn/frame.h>

/*
 * The value of the expression that stands at `place` in the section, its length first. It begins
 * with `*first` on its stack, if that is not NULL. Reads the frame's registers, and memory of the
 * process where the expression says so. Takes no jumps, so it ends.
 *
 * UNSUPPORTED: an operation that such expressions do not have. CORRUPT: its stack is too small or
 * too large, it is cut off, it reads from nowhere. NOT_FOUND: a register that the frame does not
 * have.
 */
enum cairn_status expression_evaluate(const struct cairn_frame *frame,
                                      const struct eh_frame *section, size_t place,
                                      const uint64_t *first, uint64_t *value,
                                      struct cairn_error *error);

#endif
