/*
 * What is emitted of a function: what can be reached, how deep the stack is there, and where ways
 * meet.
 *
 * SPDX-License-Identifier: MIT
 */
#include "emitter.h"

struct target *target_at(struct emitter *e, struct activation *a, uint32_t at)
{
    if (a->targets[at] == NULL)
        a->targets[at] = allocate(e, sizeof(struct target));
    return a->targets[at];
}

uint32_t end_of_loop(const struct function *function, uint32_t start)
{
    uint32_t end = start;
    for (uint32_t at = start; at < function->code_count;
         at += 1 + words_after(function, function->code[at]))
        if (function->code[at] == make_instruction(OP_LOOP, at + 1 - start))
            end = at;
    return end;
}

bool is_in_loop(const struct emitter *e, const struct activation *a, uint32_t at)
{
    return a->parent != NULL || e->input->start == AT_CALL ||
           (at >= e->input->start && at <= e->loop_end);
}

/* Instructions that are still to be analysed. */
struct work {
    uint32_t *at;
    uint32_t count;
};

/* Notes the depth at an instruction, to which there may be a jump. */
static void reach(struct activation *a, uint32_t at, uint32_t depth, struct work *work)
{
    if (a->depths[at] > 0)
        return;
    a->depths[at] = depth;
    work->at[work->count++] = at;
    a->first_reached = at < a->first_reached ? at : a->first_reached;
    a->last_reached = at > a->last_reached ? at : a->last_reached;
    a->most_depth = depth > a->most_depth ? depth : a->most_depth;
}

/* Reaches what can be next after an instruction. */
static void follow(struct emitter *e, struct activation *a, uint32_t at, struct work *work)
{
    instruction code = a->function->code[at];
    uint32_t next = at + 1 + words_after(a->function, code);
    uint32_t depth = a->depths[at] + (uint32_t)stack_change(a->function, code);
    switch (operation_of(code)) {
    case OP_JUMP_IF_FALSE:
    case OP_JUMP_IF_TRUE:
    case OP_POP_JUMP_IF_FALSE:
        reach(a, next, depth, work);
        /* fall through */
    case OP_JUMP:
        target_at(e, a, next + operand_of(code));
        reach(a, next + operand_of(code), depth, work);
        break;
    case OP_LOOP:
        target_at(e, a, next - operand_of(code))->is_loop = true;
        reach(a, next - operand_of(code), depth, work);
        break;
    case OP_RETURN:
    case OP_HALT:
        break;
    default:
        reach(a, next, depth, work);
        break;
    }
}

void analyse(struct emitter *e, struct activation *a, uint32_t first, uint32_t depth)
{
    uint32_t count = a->function->code_count + 1;
    struct work work = {.at = allocate(e, count * sizeof *work.at)};
    a->depths = allocate(e, count * sizeof *a->depths);
    a->targets = allocate(e, count * sizeof(struct target *));
    a->first_reached = first;
    reach(a, first, depth, &work);
    while (work.count > 0) {
        uint32_t at = work.at[--work.count];
        bool is_end = (at == a->stop && at > 0) || (e->input->is_part && !is_in_loop(e, a, at));
        if (!is_end)
            follow(e, a, at, &work);
    }
}
