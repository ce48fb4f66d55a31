/*
 * frame/exit.h - a thread at an exit, from its arrival to the action that the handler has chosen.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_EXIT_H
#define FRAME_EXIT_H

#include "arch/call.h"

#include <cairn/exit.h>
#include <cairn/log.h>

/* The action that the handler has chosen. */
enum exit_action { EXIT_CONTINUE, EXIT_CONTINUE_WITH, EXIT_RETURN, EXIT_ENTER, EXIT_RESUME };

/* A call of an exit, with the action that its handler has chosen. */
struct exit_state {
    struct cairn_exit_call call; /* must be first: what the handler gets */
    uint8_t action;              /* enum exit_action */
    uint8_t result_count;
    bool extends_sign;
    struct cairn_frame caller; /* of RETURN and ENTER */
    struct cairn_value results[CAIRN_EXIT_RESULTS_MAX];
    struct arch_call entered;           /* of ENTER */
    const struct cairn_context *target; /* of RESUME */
};

/* Returns the state of a call that a handler has got. */
static inline struct exit_state *exit_state_of(struct cairn_exit_call *call)
{
    return (struct exit_state *)(void *)call;
}

/* Initialises `state` for a thread that has called an exit and that resumes from `context`
 * afterwards. enter_prepare must have succeeded. */
void exit_arrive(struct exit_state *state, const cairn_runtime *runtime,
                 struct cairn_context *context);

/* Returns the declaration of the site's record, or NULL. */
static inline const struct cairn_declaration *exit_declaration(const struct cairn_exit_call *call)
{
    return call->record.table == NULL ? NULL : cairn_record_declaration(call->record);
}

/* Records the arrival in the log. Returns the time of the log's clock. */
uint64_t exit_note_arrival(cairn_log *log, const cairn_runtime *runtime,
                           const struct cairn_exit_call *call);

/* Records the chosen action in the log. `arrival` is the time of the arrival, or 0. */
void exit_note_action(cairn_log *log, const cairn_runtime *runtime, const struct exit_state *state,
                      uint64_t arrival);

/* Performs the chosen action on the context. */
void exit_leave(struct exit_state *state);

/* ---- Entering functions in place of the frame ---- */

/* Creates the code to which entered functions return (struct arch_entry_frame), unless the runtime
 * has it already. Errors: as cairn_loader_finish. */
CAIRN_MUST_CHECK enum cairn_status enter_prepare(cairn_runtime *runtime, struct cairn_error *error);

/* Performs the requested entry on the context, which must be the caller's, and on the stack. */
void enter_begin(struct exit_state *state);

#endif
