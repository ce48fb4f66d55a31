/*
 * Walks: steps over frames of modules, and over foreign frames with the help of the host's hook.
 *
 * Every walk ends: each step moves up its stack, and the number of stack switches is limited.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/walk.h>

#include "base/error.h"
#include "frame/native_frame.h"
#include "frame/step.h"
#include "unwind/rules.h"

#include <stddef.h>

enum { SWITCHES_MAX = 64, MISSES_MAX = 1 };

void cairn_walk_begin(struct cairn_walk *walk, const struct cairn_frame *frame)
{
    /* Copies only the slots that this architecture has. */
    const struct cairn_arch *arch = arch_host();
    size_t slots = arch == NULL ? 0 : arch->unwind_slot_count;
    memcpy(&walk->frame, frame,
           offsetof(struct cairn_frame, private_words) + slots * sizeof(void *));
    walk->has_ended = false;
    walk->stack_end = 0;
    walk->foreign = NULL;
    walk->user = NULL;
    walk->has_begun = false;
    walk->switches = 0;
    walk->known[0].pc = 0; /* not the PC of any frame */
    walk->known_count = 0;
    walk->at = 0;
    walk->misses = 0;
}

/* ---- Predicted rules ---- */

/*
 * Looking up rules needs the PC, and the PC depends on the rules of the frame before. To break this
 * dependency, a walk remembers the rules of the PCs that it has passed, and which PC followed each
 * of them last time. The processor continues with the predicted rules while it checks the
 * prediction.
 *
 * Entries stay valid as long as the stack can be walked. `at` is the index of the frame's entry, or
 * of an entry for another PC.
 */

static uint64_t key_of(const struct cairn_frame *frame) { return frame->pc - frame->is_calling; }

/* Whether step_plainly can use these rules: the return address is unsigned and in the first loaded
 * slot, no slots are moved, and the frame is not a signal frame. */
static bool is_plain(const struct unwind_row *row)
{
    return unwind_can_leave(row) && row->moved_count == 0 && row->loaded_count != 0 &&
           unwind_places(row)->slot == ARCH_UNWIND_RETURN_ADDRESS &&
           (row->flags & (UNWIND_SIGNAL_FRAME | UNWIND_SIGNED)) == 0;
}

/* Sets the module of a frame whose PC was not predicted, and finds or adds its entry. Once the
 * entries have not sufficed, it does no more look-ups: prediction does not pay off on a stack of
 * many functions that occur once each. */
static __attribute__((noinline)) void look_up(struct cairn_walk *walk)
{
    step_set_module(&walk->frame);
    if (walk->frame.module == NULL || walk->misses == MISSES_MAX)
        return;
    uint64_t key = key_of(&walk->frame);
    uint8_t found = 0;
    while (found < walk->known_count && walk->known[found].pc != key)
        found++;
    if (found == CAIRN_WALK_KNOWN) {
        walk->misses++;
        return;
    }
    if (found == walk->known_count) {
        walk->known_count++;
        const struct unwind_row *row = unwind_find_exact(walk->frame.module->unwind, key);
        walk->known[found].pc = key;
        walk->known[found].module = walk->frame.module;
        walk->known[found].row = row;
        walk->known[found].next = found;
        walk->known[found].is_plain = is_plain(row);
    }
    walk->known[walk->at].next = found;
    walk->at = found;
}

/* ---- Steps ---- */

/* Does the same as step_by, for plain rules. */
static inline enum cairn_status step_plainly(struct cairn_walk *walk, uint64_t stack_end,
                                             struct cairn_error *error)
{
    struct cairn_frame *frame = &walk->frame;
    const struct unwind_row *row = walk->known[walk->at].row;
    const struct unwind_place *places = unwind_places(row);
    uint64_t cfa;
    if (!step_cfa(row, frame, &cfa))
        return step_say_base_unknown(frame, error);
    const void *place = step_place(*places, cfa);
    if (!step_is_above(frame, cfa, stack_end) || step_is_beyond(place, stack_end))
        return step_say_where_it_ends(frame, cfa, error);
    frame->pc = step_load(place);
    frame->sp = cfa;
    frame->is_calling = true;
    frame->is_innermost = false;
    for (unsigned i = 0; i < row->loaded_count; i++)
        frame->private_words[places[i].slot] = step_place(places[i], cfa);

    uint8_t guess = walk->known[walk->at].next;
    bool is_right = walk->known[guess].pc == frame->pc - 1;
    if (__builtin_expect(!is_right, 0)) {
        look_up(walk);
        return CAIRN_OK;
    }
    frame->module = walk->known[guess].module;
    walk->at = guess;
    return CAIRN_OK;
}

/* Not inlined, so that steps by plain rules save fewer registers. */
static __attribute__((noinline)) enum cairn_status step_by_rules(struct cairn_walk *walk,
                                                                 uint64_t stack_end,
                                                                 struct cairn_error *error)
{
    struct cairn_frame *frame = &walk->frame;
    const struct unwind_row *row = unwind_find_exact(frame->module->unwind, key_of(frame));
    enum cairn_status status = step_by(row, frame, stack_end, error);
    if (status == CAIRN_OK && walk->misses != MISSES_MAX)
        look_up(walk);
    return status;
}

/* ---- Foreign frames ---- */

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

/* Asks the host's hook what to do at a foreign frame, and does it. */
static enum cairn_status ask_hook(struct cairn_walk *walk, struct cairn_error *error)
{
    const uint64_t sp = walk->frame.sp;
    enum cairn_walk_answer answer =
        walk->foreign == NULL ? CAIRN_WALK_END : walk->foreign(walk, walk->user);
    const uint64_t native_sp = walk->frame.sp;
    enum cairn_status status = CAIRN_OK;
    switch (answer) {
    case CAIRN_WALK_END:
        walk->has_ended = true;
        return CAIRN_OK;
    case CAIRN_WALK_NATIVE:
        status = frame_step_native(&walk->frame, end_of_stack(walk), error);
        if (status != CAIRN_OK ||
            (walk->frame.sp >= native_sp && walk->frame.sp <= end_of_stack(walk)))
            return status;
        /* A signal has interrupted code on another stack, whose end is unknown. */
        walk->stack_end = 0;
        return switch_stack(walk, error);
    case CAIRN_WALK_MOVED:
        if (walk->frame.sp > sp && walk->frame.sp <= end_of_stack(walk))
            return CAIRN_OK;
        return error_set(error, CAIRN_ERROR_CORRUPT, walk->frame.pc,
                         "the hook has moved the frame with stack pointer 0x%llx to 0x%llx, which "
                         "is not further out",
                         (unsigned long long)sp, (unsigned long long)walk->frame.sp);
    case CAIRN_WALK_SWITCHED:
        return switch_stack(walk, error);
    }
    return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "the walk hook returned %d", (int)answer);
}

/* ---- Walking ---- */

enum cairn_status cairn_walk_next(struct cairn_walk *walk, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    if (walk->has_begun && walk->frame.module != NULL) {
        bool is_known = walk->known[walk->at].pc == key_of(&walk->frame);
        status = is_known && walk->known[walk->at].is_plain
                     ? step_plainly(walk, end_of_stack(walk), error)
                     : step_by_rules(walk, end_of_stack(walk), error);
    }
    walk->has_begun = true;
    while (status == CAIRN_OK && walk->frame.module == NULL && !walk->has_ended)
        if (walk->frame.pc != 0)
            status = ask_hook(walk, error);
        else
            walk->has_ended = true;
    return status;
}

enum cairn_walk_answer cairn_walk_native(struct cairn_walk *walk, void *user)
{
    (void)walk;
    (void)user;
    return CAIRN_WALK_NATIVE;
}
