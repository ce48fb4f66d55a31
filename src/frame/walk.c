/*
 * Walks: steps over frames of modules, and what the host says of others.
 *
 * A walk ends: each step goes up its stack, and it changes stacks only so often.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/walk.h>

#include "base/error.h"
#include "frame/frame.h"

enum { SWITCHES_MAX = 64 };

void cairn_walk_begin(struct cairn_walk *walk, const struct cairn_frame *frame)
{
    walk->frame = *frame;
    walk->has_ended = false;
    walk->stack_end = 0;
    walk->foreign = NULL;
    walk->user = NULL;
    walk->has_begun = false;
    walk->switches = 0;
}

static uint64_t end_of_stack(const struct cairn_walk *walk)
{
    return walk->stack_end == 0 ? FRAME_STACK_END_UNKNOWN : walk->stack_end;
}

static enum cairn_status switch_stack(struct cairn_walk *walk, struct cairn_error *error)
{
    if (walk->switches == SWITCHES_MAX)
        return error_set(error, CAIRN_ERROR_CORRUPT, walk->frame.pc,
                         "the walk has gone from stack to stack %u times", walk->switches);
    walk->switches++;
    return CAIRN_OK;
}

/* What a signal has interrupted may have been on another stack, of unknown end. */
static enum cairn_status step_native(struct cairn_walk *walk, struct cairn_error *error)
{
    uint64_t sp = walk->frame.sp;
    enum cairn_status status = frame_step_native(&walk->frame, end_of_stack(walk), error);
    bool is_same_stack = walk->frame.sp >= sp && walk->frame.sp <= end_of_stack(walk);
    if (status != CAIRN_OK || is_same_stack)
        return status;
    walk->stack_end = 0;
    return switch_stack(walk, error);
}

static enum cairn_status check_moved(const struct cairn_walk *walk, uint64_t sp,
                                     struct cairn_error *error)
{
    if (walk->frame.sp > sp && walk->frame.sp <= end_of_stack(walk))
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_CORRUPT, walk->frame.pc,
                     "the hook has moved the frame with stack pointer 0x%llx to 0x%llx, which is "
                     "not further out",
                     (unsigned long long)sp, (unsigned long long)walk->frame.sp);
}

static enum cairn_status ask_hook(struct cairn_walk *walk, struct cairn_error *error)
{
    uint64_t sp = walk->frame.sp;
    enum cairn_walk_answer answer =
        walk->foreign == NULL ? CAIRN_WALK_END : walk->foreign(walk, walk->user);
    switch (answer) {
    case CAIRN_WALK_END:
        walk->has_ended = true;
        return CAIRN_OK;
    case CAIRN_WALK_NATIVE:
        return step_native(walk, error);
    case CAIRN_WALK_MOVED:
        return check_moved(walk, sp, error);
    case CAIRN_WALK_SWITCHED:
        return switch_stack(walk, error);
    }
    return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "the walk's hook has answered %d",
                     (int)answer);
}

static enum cairn_status pass_foreign(struct cairn_walk *walk, struct cairn_error *error)
{
    if (walk->frame.pc != 0)
        return ask_hook(walk, error);
    walk->has_ended = true;
    return CAIRN_OK;
}

enum cairn_status cairn_walk_next(struct cairn_walk *walk, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    bool leaves = walk->has_begun && walk->frame.module != NULL;
    if (leaves)
        status = frame_step(&walk->frame, end_of_stack(walk), error);
    walk->has_begun = true;
    while (status == CAIRN_OK && walk->frame.module == NULL && !walk->has_ended)
        status = pass_foreign(walk, error);
    return status;
}

enum cairn_walk_answer cairn_walk_native(struct cairn_walk *walk, void *user)
{
    (void)walk;
    (void)user;
    return CAIRN_WALK_NATIVE;
}
