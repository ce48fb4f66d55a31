/*
 * frame/step.h - one step of a walk, by a row of a module's unwind rules.
 *
 * The next step depends on the caller's PC, so that is loaded first. Errors are reported out of
 * line.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_STEP_H
#define FRAME_STEP_H

#include "frame/framed_veneer.h"
#include "frame/registers.h"
#include "runtime/module.h"
#include "unwind/rules.h"

#include <cairn/frame.h>
#include <string.h>

/* Report why a frame cannot be left. */
enum cairn_status step_say_base_unknown(const struct cairn_frame *frame, struct cairn_error *error);
enum cairn_status step_say_where_it_ends(const struct cairn_frame *frame, uint64_t cfa,
                                         struct cairn_error *error);
enum cairn_status step_say_not_saved(const struct cairn_frame *frame, struct cairn_error *error);

/* Applies the rules by which a slot's value is found in another slot of the frame. It must run
 * before the rules for loaded slots, because moves use the frame's own slots. */
void step_apply_moves(const struct unwind_row *row, struct cairn_frame *frame);

/* The end of the stack is unknown: a frame may end at any address. */
#define FRAME_STACK_END_UNKNOWN UINT64_MAX

static inline uint64_t step_load(const void *place)
{
    uint64_t value;
    memcpy(&value, place, sizeof value);
    return value;
}

/* Whether a frame can end at `cfa`. The stack grows downwards, so the caller's part is at higher
 * addresses. Only the innermost frame may be empty, if it was interrupted at its start. */
static inline bool step_is_above(const struct cairn_frame *frame, uint64_t cfa, uint64_t stack_end)
{
    uint64_t lowest = frame->sp + !frame->is_innermost;
    return cfa >= lowest && cfa <= stack_end && cfa % sizeof(uint64_t) == 0;
}

/* Whether a saved return address would lie past the end of the stack. PPC64 saves return addresses
 * in the caller's part of the stack, which may not exist. */
static inline bool step_is_beyond(const void *saved, uint64_t stack_end)
{
    return (uintptr_t)saved > stack_end - sizeof(uint64_t);
}

static inline void *step_place(struct unwind_place place, uint64_t cfa)
{
    return (void *)(uintptr_t)(cfa + (uint64_t)((int64_t)place.words * 8));
}

/* Sets the module of a frame that a step has reached. If the frame is that of a veneer, moves on to
 * the site's frame. Callers are usually in the same module; the comparison lets the processor
 * predict that and continue without the result of the lookup. */
static inline void step_set_module(struct cairn_frame *frame)
{
    cairn_module *module = runtime_find_frame_module(frame->runtime, frame->pc - frame->is_calling);
    if (__builtin_expect(module != frame->module, 0))
        frame->module = module;
    if (__builtin_expect(module == NULL && frame->is_calling, 0))
        frame_leave_veneer(frame);
}

/* The CFA and the caller's PC of a step that is possible. */
struct step_target {
    uint64_t cfa;
    uint64_t pc;
};

/* Sets `*cfa` to the frame's CFA; false if the register from which it is calculated is unknown. */
static inline __attribute__((always_inline)) bool step_cfa(const struct unwind_row *row,
                                                           const struct cairn_frame *frame,
                                                           uint64_t *cfa)
{
    uint64_t base = frame->sp;
    if (row->cfa_slot != ARCH_UNWIND_STACK_POINTER) {
        if (frame->private_words[row->cfa_slot] == NULL)
            return false;
        base = step_load(frame->private_words[row->cfa_slot]);
    }
    *cfa = base + (uint64_t)(int64_t)row->cfa_offset;
    return true;
}

/* Finds the target of a step. Errors: as cairn_frame_caller, and CORRUPT if the frame would end
 * above `stack_end`. */
static inline __attribute__((always_inline)) enum cairn_status step_find(
    const struct unwind_row *row, const struct cairn_frame *frame, uint64_t stack_end,
    struct step_target *target, struct cairn_error *error)
{
    if (__builtin_expect(!unwind_can_leave(row), 0))
        return unwind_explain(row, arch_host(), frame->pc, error);
    uint64_t cfa;
    if (!step_cfa(row, frame, &cfa))
        return step_say_base_unknown(frame, error);
    /* The return address is on the stack, in another register, or in its own register, which can
     * still hold it only in the innermost frame. */
    const struct unwind_place *places = unwind_places(row);
    bool is_found = (row->flags & UNWIND_RETURN_FOUND) != 0;
    const void *place = NULL;
    if (row->loaded_count != 0 && places->slot == ARCH_UNWIND_RETURN_ADDRESS)
        place = step_place(*places, cfa);
    else if (is_found)
        place = frame->private_words[places[row->loaded_count].source];
    else if (frame->is_innermost)
        place = frame->private_words[ARCH_UNWIND_RETURN_ADDRESS];
    if (__builtin_expect(!step_is_above(frame, cfa, stack_end), 0) ||
        (is_found && step_is_beyond(place, stack_end)))
        return step_say_where_it_ends(frame, cfa, error);
    if (place == NULL)
        return step_say_not_saved(frame, error);
    target->cfa = cfa;
    target->pc = step_load(place);
    if ((row->flags & UNWIND_SIGNED) != 0)
        target->pc = arch_host_strip_return_address(target->pc);
    return CAIRN_OK;
}

/* Moves the frame to the target, but leaves its module unchanged. */
static inline void step_move(const struct unwind_row *row, const struct step_target *target,
                             struct cairn_frame *frame)
{
    const struct unwind_place *places = unwind_places(row);
    if (__builtin_expect(row->moved_count != 0, 0))
        step_apply_moves(row, frame);
    for (unsigned i = 0; i < row->loaded_count; i++)
        frame->private_words[places[i].slot] = step_place(places[i], target->cfa);
    frame->pc = target->pc;
    frame->sp = target->cfa;
    frame->is_calling = (row->flags & UNWIND_SIGNAL_FRAME) == 0;
    frame->is_innermost = false;
}

static inline __attribute__((always_inline)) enum cairn_status step_by(const struct unwind_row *row,
                                                                       struct cairn_frame *frame,
                                                                       uint64_t stack_end,
                                                                       struct cairn_error *error)
{
    struct step_target target = {0};
    enum cairn_status status = step_find(row, frame, stack_end, &target, error);
    if (status != CAIRN_OK)
        return status;
    step_move(row, &target, frame);
    step_set_module(frame);
    return CAIRN_OK;
}

#endif
