/*
 * frame/deopt.h - a thread at an exit, from its arrival to the action that the handler has chosen.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_DEOPT_H
#define FRAME_DEOPT_H

#include <cairn/deopt.h>

/* The action that the handler has chosen. */
enum deopt_action { DEOPT_CONTINUE, DEOPT_CONTINUE_WITH, DEOPT_RETURN, DEOPT_ENTER };

/* Initialises `deopt` for a thread that has called an exit and that resumes from `context`
 * afterwards. `entry_code` is the address of the code that enter_write_code has written. */
void deopt_begin(struct cairn_deopt *deopt, const cairn_runtime *runtime,
                 struct cairn_context *context, uint64_t entry_code);

/* Checks that these are the result types of the frame's function, as far as they are known.
 * ARGUMENT. */
enum cairn_status deopt_check_types(const struct cairn_deopt *deopt,
                                    const struct cairn_results *given, struct cairn_error *error);

/* Performs the chosen action on the context. */
void deopt_end(struct cairn_deopt *deopt);

#endif
