/*
 * frame/dwarf_expression.h - DWARF expressions in the unwind tables of C code: in signal
 * trampolines, linker stubs, and functions that realign their stack.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_DWARF_EXPRESSION_H
#define FRAME_DWARF_EXPRESSION_H

#include "unwind/eh_frame.h"

#include <cairn/frame.h>

/*
 * Evaluates the expression at offset `place` of the section, where its length comes first. If
 * `first` is not NULL, `*first` is on the stack at the start. The expression may read the frame's
 * registers and the memory of the process. Jumps are not supported, so evaluation ends.
 *
 * Errors: UNSUPPORTED: an operation that such expressions do not use. CORRUPT: stack underflow or
 * overflow, a truncated expression, or a load from address 0. NOT_FOUND: a register whose value the
 * frame does not have.
 */
enum cairn_status expression_evaluate(const struct cairn_frame *frame,
                                      const struct eh_frame *section, size_t place,
                                      const uint64_t *first, uint64_t *value,
                                      struct cairn_error *error);

#endif
