/*
 * format/eh_frame_header.h - the sorted table that linkers put beside .eh_frame (.eh_frame_hdr):
 * from a PC to its function's entry, without reading the others.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORMAT_EH_FRAME_HEADER_H
#define FORMAT_EH_FRAME_HEADER_H

#include "format/eh_frame.h"

/* Addresses: of the section .eh_frame, and of a function's entry in it. */
struct eh_frame_place {
    uint64_t section;
    uint64_t entry;
};

/*
 * The entry of the last function that begins at or before `pc`; `*found` is false if all begin
 * behind it. How far the function reaches, the entry says. `header` may be longer than the table.
 *
 * TRUNCATED; VERSION, UNSUPPORTED (no table, or not as linkers for this machine write it).
 */
enum cairn_status eh_frame_header_find(const struct eh_frame *header, uint64_t pc,
                                       struct eh_frame_place *place, bool *found,
                                       struct cairn_error *error);

#endif
