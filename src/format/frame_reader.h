/*
 * format/frame_reader.h - reading the numbers of an .eh_frame section, from one place up to an end.
 *
 * Nothing is read outside. What cannot be read gives 0, and the reader says so from then on: so a
 * caller reads all fields of a thing and asks once.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORMAT_FRAME_READER_H
#define FORMAT_FRAME_READER_H

#include "format/eh_frame.h"

/* Bytes of the section from `at` to `end`, which is not beyond the section's. */
struct frame_reader {
    const struct eh_frame *frame;
    size_t at;
    size_t end;
    bool overrun;  /* something was read beyond the end */
    bool overflow; /* a number had more than 64 bits */
};

/* Moves on by `size` bytes and returns where they are, or NULL. */
const uint8_t *frame_read_bytes(struct frame_reader *reader, uint64_t size);

uint8_t frame_read_u8(struct frame_reader *reader);
uint16_t frame_read_u16(struct frame_reader *reader);
uint32_t frame_read_u32(struct frame_reader *reader);
uint64_t frame_read_u64(struct frame_reader *reader);
uint64_t frame_read_uleb128(struct frame_reader *reader);
int64_t frame_read_sleb128(struct frame_reader *reader);

/* Whether pointers of this encoding can be read. */
bool frame_can_read(uint8_t encoding);

/* The encoding's number itself, extended by its sign if it has one. */
uint64_t frame_read_number(struct frame_reader *reader, uint8_t encoding);

/* The number, and where it is relative to its own place, what it points to. */
uint64_t frame_read_pointer(struct frame_reader *reader, uint8_t encoding);

#endif
