/*
 * call/result_registers.h - a function's results in its result registers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CALL_RESULT_REGISTERS_H
#define CALL_RESULT_REGISTERS_H

#include <cairn/context.h>
#include <cairn/value.h>

/* Checks that there is a register for each value. UNSUPPORTED, with the index of the first that has
 * none. */
enum cairn_status results_check(const struct cairn_context *context,
                                const struct cairn_value *results, uint32_t count,
                                struct cairn_error *error);

/* Writes the values to their registers. results_check must have accepted them. Narrow integers are
 * sign-extended or zero-extended to the width of the register. */
void results_write(struct cairn_context *context, const struct cairn_value *results, uint32_t count,
                   bool extends_sign);

#endif
