/*
 * What is emitted of a function: what can be reached, how deep the stack is there, and where ways
 * meet.
 *
 * SPDX-License-Identifier: MIT
 */
#include "emitter.h"

#include <string.h>

struct target *target_at(struct emitter *e, struct activation *a, uint32_t at)
{
    if (a->targets[at] == NULL)
        a->targets[at] = allocate(e, sizeof(struct target));
    return a->targets[at];
}

/* Notes the depth at an instruction, to which there may be a jump. */
static void reach(struct activation *a, uint32_t at, int32_t depth, uint32_t *work, uint32_t *count)
{
    if (a->depths[at] >= 0)
        return;
    a->depths[at] = depth;
    work[(*count)++] = at;
}

/* Finds what can be reached from an instruction, whose depth is known, and the heads of loops. */
static void analyse_from(struct emitter *e, struct activation *a, uint32_t first, int32_t depth)
{
    const struct function *function = a->function;
    uint32_t *work = allocate(e, (function->code_count + 1) * sizeof *work);
    uint32_t count = 0;
    reach(a, first, depth, work, &count);
    while (count > 0) {
        uint32_t at = work[--count];
        if (at == a->stop && at > 0)
            continue;
        instruction code = function->code[at];
        uint32_t next = at + 1 + words_after(function, code);
        int32_t after = a->depths[at] + stack_change(function, code);
        switch (operation_of(code)) {
        case OP_JUMP_IF_FALSE:
        case OP_JUMP_IF_TRUE:
        case OP_POP_JUMP_IF_FALSE:
            reach(a, next, after, work, &count);
            /* fall through */
        case OP_JUMP:
            target_at(e, a, next + operand_of(code));
            reach(a, next + operand_of(code), after, work, &count);
            break;
        case OP_LOOP:
            target_at(e, a, next - operand_of(code))->is_loop = true;
            reach(a, next - operand_of(code), after, work, &count);
            break;
        case OP_RETURN:
        case OP_HALT:
            break;
        default:
            reach(a, next, after, work, &count);
            break;
        }
    }
}

/* Analyses what is emitted of a function: from the instruction `first` on. */
void analyse(struct emitter *e, struct activation *a, uint32_t first)
{
    uint32_t count = a->function->code_count + 1;
    int32_t depth = (int32_t)a->function->arity + 1;
    for (uint32_t from = 0;; from = first) {
        a->depths = allocate(e, count * sizeof *a->depths);
        a->targets = allocate(e, count * sizeof(struct target *));
        memset(a->depths, 0xff, count * sizeof *a->depths);
        analyse_from(e, a, from, depth);
        if (from == first)
            return;
        depth = a->depths[first];
    }
}
