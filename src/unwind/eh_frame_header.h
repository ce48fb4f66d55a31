/*
 * unwind/eh_frame_header.h - searches .eh_frame_hdr, the sorted table that linkers write next to
 * .eh_frame. It finds the entry of the function at a PC without reading other entries.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef UNWIND_EH_FRAME_HEADER_H
#define UNWIND_EH_FRAME_HEADER_H

#include "unwind/eh_frame.h"

/* The addresses of the section .eh_frame, and of a function's entry in it. */
struct eh_frame_place {
    uint64_t section;
    uint64_t entry;
};

/*
 * Finds the entry of the last function that begins at or before `pc`. `*found` is false if all
 * functions begin after it. The end of the function is in the entry. `header` may be longer than
 * the table.
 *
 * Errors: TRUNCATED; VERSION; UNSUPPORTED (no table, or not in the encoding that linkers use for
 * this machine).
 */
enum cairn_status eh_frame_header_find(const struct eh_frame *header, uint64_t pc,
                                       struct eh_frame_place *place, bool *found,
                                       struct cairn_error *error);

#endif
