/*
 * frame/results.h - what a function returns, in the registers in which it returns it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_RESULTS_H
#define FRAME_RESULTS_H

#include <cairn/context.h>
#include <cairn/value.h>

/* UNSUPPORTED if one of the values has no register; the sentence says which. */
enum cairn_status results_check(const struct cairn_context *context,
                                const struct cairn_value *results, uint32_t count,
                                struct cairn_error *error);

/* Those that results_check has found good. Narrow integers are extended to their register, by
 * their sign or by zeros. */
void results_write(struct cairn_context *context, const struct cairn_value *results, uint32_t count,
                   bool extends_sign);

#endif
