/*
 * frame/deopt.h - a thread at an exit, from its arrival to what it goes on with.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_DEOPT_H
#define FRAME_DEOPT_H

#include <cairn/deopt.h>

/* What the handler has asked for. */
enum deopt_action { DEOPT_CONTINUE, DEOPT_CONTINUE_WITH, DEOPT_RETURN, DEOPT_ENTER };

/* `context` is what the thread goes on with, and has called. `entry_code` is where enter_write_code
 * has put its code. */
void deopt_begin(struct cairn_deopt *deopt, const cairn_runtime *runtime,
                 struct cairn_context *context, uint64_t entry_code);

/* Whether these are what the frame's function returns, as far as that is known. ARGUMENT. */
enum cairn_status deopt_check_types(const struct cairn_deopt *deopt,
                                    const struct cairn_results *given, struct cairn_error *error);

/* Does what the handler has asked for to the context. */
void deopt_end(struct cairn_deopt *deopt);

#endif
