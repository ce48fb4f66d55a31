/*
 * Reads the numbers of an .eh_frame section. Pointers have 8 bytes.
 *
 * Source: Linux Standard Base Core Specification, "DWARF Exception Header Encoding"; DWARF 5,
 * section 7.6, "Variable Length Data".
 *
 * SPDX-License-Identifier: MIT
 */
#include "unwind/frame_reader.h"

/* ---- Numbers ---- */

const uint8_t *frame_read_bytes(struct frame_reader *reader, uint64_t size)
{
    if (reader->overrun || size > reader->end - reader->at) {
        reader->overrun = true;
        return NULL;
    }
    const uint8_t *bytes = reader->frame->section.bytes + reader->at;
    reader->at += (size_t)size;
    return bytes;
}

uint8_t frame_read_u8(struct frame_reader *reader)
{
    const uint8_t *bytes = frame_read_bytes(reader, 1);
    return bytes == NULL ? 0 : *bytes;
}

uint16_t frame_read_u16(struct frame_reader *reader)
{
    const uint8_t *bytes = frame_read_bytes(reader, 2);
    return bytes == NULL ? 0 : cairn_load_u16(bytes, reader->frame->section.byte_order);
}

uint32_t frame_read_u32(struct frame_reader *reader)
{
    const uint8_t *bytes = frame_read_bytes(reader, 4);
    return bytes == NULL ? 0 : cairn_load_u32(bytes, reader->frame->section.byte_order);
}

uint64_t frame_read_u64(struct frame_reader *reader)
{
    const uint8_t *bytes = frame_read_bytes(reader, 8);
    return bytes == NULL ? 0 : cairn_load_u64(bytes, reader->frame->section.byte_order);
}

enum { LEB_BITS = 7, LEB_MORE = 0x80, LEB_NEGATIVE = 0x40, LEB_LAST_SHIFT = 63 };

/* Reads a LEB128 number without sign-extending it. Sets `*shift` to the number of bits read, and
 * `*last` to the last byte. */
static uint64_t read_leb128(struct frame_reader *reader, unsigned *shift, uint8_t *last)
{
    uint64_t value = 0;
    *shift = 0;
    do {
        *last = frame_read_u8(reader);
        if (*shift > LEB_LAST_SHIFT)
            reader->overflow = true;
        else
            value |= (uint64_t)(*last & (LEB_MORE - 1)) << *shift;
        *shift += LEB_BITS;
    } while ((*last & LEB_MORE) != 0);
    return value;
}

uint64_t frame_read_uleb128(struct frame_reader *reader)
{
    unsigned shift;
    uint8_t last;
    uint64_t value = read_leb128(reader, &shift, &last);
    if (shift > LEB_LAST_SHIFT + 1 && last > 1)
        reader->overflow = true;
    return value;
}

int64_t frame_read_sleb128(struct frame_reader *reader)
{
    unsigned shift;
    uint8_t last;
    uint64_t value = read_leb128(reader, &shift, &last);
    if (shift > LEB_LAST_SHIFT + 1 && last != 0 && last != LEB_MORE - 1)
        reader->overflow = true;
    if (shift <= LEB_LAST_SHIFT && (last & LEB_NEGATIVE) != 0)
        value |= UINT64_MAX << shift;
    return (int64_t)value;
}

/* ---- Pointers ---- */

enum {
    ENCODING_FORMAT = 0x0F,
    ENCODING_ABSOLUTE = 0x00,
    ENCODING_U16 = 0x02,
    ENCODING_U32 = 0x03,
    ENCODING_U64 = 0x04,
    ENCODING_S16 = 0x0A,
    ENCODING_S32 = 0x0B,
    ENCODING_S64 = 0x0C,
    ENCODING_RELATION = 0xF0,
    ENCODING_RELATIVE_TO_PC = 0x10
};

bool frame_can_read(uint8_t encoding)
{
    uint8_t format = encoding & ENCODING_FORMAT;
    uint8_t relation = encoding & ENCODING_RELATION;
    bool has_size = format == ENCODING_ABSOLUTE ||
                    (format >= ENCODING_U16 && format <= ENCODING_U64) ||
                    (format >= ENCODING_S16 && format <= ENCODING_S64);
    return has_size && (relation == 0 || relation == ENCODING_RELATIVE_TO_PC);
}

uint64_t frame_read_number(struct frame_reader *reader, uint8_t encoding)
{
    switch (encoding & ENCODING_FORMAT) {
    case ENCODING_U16:
        return frame_read_u16(reader);
    case ENCODING_U32:
        return frame_read_u32(reader);
    case ENCODING_S16:
        return (uint64_t)(int64_t)(int16_t)frame_read_u16(reader);
    case ENCODING_S32:
        return (uint64_t)(int64_t)(int32_t)frame_read_u32(reader);
    default:
        return frame_read_u64(reader);
    }
}

uint64_t frame_read_pointer(struct frame_reader *reader, uint8_t encoding)
{
    uint64_t place = reader->frame->address + reader->at;
    uint64_t number = frame_read_number(reader, encoding);
    return (encoding & ENCODING_RELATION) == ENCODING_RELATIVE_TO_PC ? place + number : number;
}
