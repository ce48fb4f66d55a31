/*
 * format/eh_frame.h - which functions an .eh_frame section describes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORMAT_EH_FRAME_H
#define FORMAT_EH_FRAME_H

#include <cairn/stackmap.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct eh_frame {
    struct cairn_section section;
    /* Where the section's first byte is when its code runs; pointers may be relative to it. */
    uint64_t address;
};

struct eh_frame_function {
    uint64_t address;
    uint64_t size;
};

/*
 * The next function description at or behind `*offset`, which is moved behind it; `*found` is false
 * at the section's end. TRUNCATED, CORRUPT, UNSUPPORTED (a pointer encoding that code generators do
 * not use for functions); the error's offset counts from the section's first byte.
 */
enum cairn_status eh_frame_next(const struct eh_frame *frame, size_t *offset,
                                struct eh_frame_function *function, bool *found,
                                struct cairn_error *error);

#endif
