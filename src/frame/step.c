/*
 * The parts of a step that are out of line.
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame/step.h"

#include "base/error.h"

enum cairn_status step_say_base_unknown(const struct cairn_frame *frame, struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_NOT_FOUND, frame->pc,
                     "the frame at 0x%llx is found by a register that is not known",
                     (unsigned long long)frame->pc);
}

enum cairn_status step_say_where_it_ends(const struct cairn_frame *frame, uint64_t cfa,
                                         struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_CORRUPT, frame->pc,
                     "the frame at 0x%llx with stack pointer 0x%llx would end at 0x%llx",
                     (unsigned long long)frame->pc, (unsigned long long)frame->sp,
                     (unsigned long long)cfa);
}

enum cairn_status step_say_not_saved(const struct cairn_frame *frame, struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_CORRUPT, frame->pc,
                     "the function at 0x%llx has called, and not saved its return address",
                     (unsigned long long)frame->pc);
}

void step_apply_moves(const struct unwind_row *row, struct cairn_frame *frame)
{
    const struct unwind_place *places = unwind_places(row) + row->loaded_count;
    void *sources[UINT8_MAX];
    for (unsigned i = 0; i < row->moved_count; i++)
        sources[i] = frame->private_words[places[i].source];
    for (unsigned i = 0; i < row->moved_count; i++)
        frame->private_words[places[i].slot] = sources[i];
}
