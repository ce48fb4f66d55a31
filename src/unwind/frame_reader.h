/*
 * unwind/frame_reader.h - reads the numbers of an .eh_frame section within given bounds.
 *
 * A read beyond the end returns 0 and sets a flag, which stays set. A caller may thus read all
 * fields of an entry and check the flags once.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef UNWIND_FRAME_READER_H
#define UNWIND_FRAME_READER_H

#include "unwind/eh_frame.h"

/* The bytes of the section from `at` to `end`. `end` must be inside the section. */
struct frame_reader {
    const struct eh_frame *frame;
    size_t at;
    size_t end;
    bool overrun;  /* whether something was read beyond the end */
    bool overflow; /* whether a number had more than 64 bits */
};

/* Returns the next `size` bytes and moves past them; NULL if there are not that many. */
const uint8_t *frame_read_bytes(struct frame_reader *reader, uint64_t size);

uint8_t frame_read_u8(struct frame_reader *reader);
uint16_t frame_read_u16(struct frame_reader *reader);
uint32_t frame_read_u32(struct frame_reader *reader);
uint64_t frame_read_u64(struct frame_reader *reader);
uint64_t frame_read_uleb128(struct frame_reader *reader);
int64_t frame_read_sleb128(struct frame_reader *reader);

/* Whether pointers of this encoding can be read. */
bool frame_can_read(uint8_t encoding);

/* Reads a number of this encoding, sign-extended if it is signed. */
uint64_t frame_read_number(struct frame_reader *reader, uint8_t encoding);

/* Reads a pointer. If its encoding is relative, the result is the sum of the number and its own
 * address. */
uint64_t frame_read_pointer(struct frame_reader *reader, uint8_t encoding);

#endif
