/*
 * frame/exit.h - a thread at an exit, from its arrival to the action that the handler has chosen.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_EXIT_H
#define FRAME_EXIT_H

#include <cairn/exit.h>
#include <cairn/log.h>

/* The action that the handler has chosen. */
enum exit_action {
    EXIT_CONTINUE,
    EXIT_CONTINUE_WITH,
    EXIT_RETURN,
    EXIT_ENTER,
    EXIT_REPEAT,
    EXIT_RESUME /* at the context whose address is at the start of the call's `entry` */
};

/* Initialises `call` for a thread that has called an exit and that resumes from `context`
 * afterwards. enter_prepare must have succeeded. */
void exit_arrive(struct cairn_exit_call *call, const cairn_runtime *runtime,
                 struct cairn_context *context);

/* Checks that these are the result types of the frame's function, as far as they are known.
 * ARGUMENT. */
enum cairn_status exit_check_types(const struct cairn_exit_call *call,
                                   const struct cairn_results *given, struct cairn_error *error);

/* Records the arrival in the log. Returns the time of the log's clock. */
uint64_t exit_note_arrival(cairn_log *log, const cairn_runtime *runtime,
                           const struct cairn_exit_call *call);

/* Records the chosen action in the log. `arrival` is the time of the arrival, or 0. */
void exit_note_action(cairn_log *log, const cairn_runtime *runtime,
                      const struct cairn_exit_call *call, uint64_t arrival);

/* Performs the chosen action on the context. */
void exit_leave(struct cairn_exit_call *call);

/* ---- Entering functions in place of the frame ---- */

/* Creates the code to which entered functions return (struct arch_entry_frame), unless the runtime
 * has it already. Errors: as cairn_loader_finish. */
CAIRN_MUST_CHECK enum cairn_status enter_prepare(cairn_runtime *runtime, struct cairn_error *error);

/* Performs the requested entry on the context, which must be the caller's, and on the stack. */
void enter_begin(struct cairn_exit_call *call);

#endif
