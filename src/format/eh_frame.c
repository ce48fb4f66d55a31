/*
 * Call frame information, as far as it says where functions begin and end. Pointers have 8 bytes.
 *
 * Source: Linux Standard Base Core Specification, "Exception Frames" and "DWARF Exception Header
 * Encoding".
 *
 * SPDX-License-Identifier: MIT
 */
#include "format/eh_frame.h"

#include "base/error.h"

/* ---- Reading ---- */

/* Bytes from `at` to `end`. Reading beyond gives 0, and `overrun` says so from then on. */
struct reader {
    const struct eh_frame *frame;
    size_t at;
    size_t end;
    bool overrun;
};

/* Moves on by `size` bytes and returns where they are, or NULL. */
static const uint8_t *take(struct reader *reader, uint64_t size)
{
    if (reader->overrun || size > reader->end - reader->at) {
        reader->overrun = true;
        return NULL;
    }
    const uint8_t *bytes = reader->frame->section.bytes + reader->at;
    reader->at += (size_t)size;
    return bytes;
}

static uint8_t read_u8(struct reader *reader)
{
    const uint8_t *bytes = take(reader, 1);
    return bytes == NULL ? 0 : *bytes;
}

static uint16_t read_u16(struct reader *reader)
{
    const uint8_t *bytes = take(reader, 2);
    return bytes == NULL ? 0 : cairn_load_u16(bytes, reader->frame->section.byte_order);
}

static uint32_t read_u32(struct reader *reader)
{
    const uint8_t *bytes = take(reader, 4);
    return bytes == NULL ? 0 : cairn_load_u32(bytes, reader->frame->section.byte_order);
}

static uint64_t read_u64(struct reader *reader)
{
    const uint8_t *bytes = take(reader, 8);
    return bytes == NULL ? 0 : cairn_load_u64(bytes, reader->frame->section.byte_order);
}

static void skip_leb128(struct reader *reader)
{
    while ((read_u8(reader) & 0x80) != 0)
        ;
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

static bool can_read(uint8_t encoding)
{
    uint8_t format = encoding & ENCODING_FORMAT;
    uint8_t relation = encoding & ENCODING_RELATION;
    bool has_size = format == ENCODING_ABSOLUTE ||
                    (format >= ENCODING_U16 && format <= ENCODING_U64) ||
                    (format >= ENCODING_S16 && format <= ENCODING_S64);
    return has_size && (relation == 0 || relation == ENCODING_RELATIVE_TO_PC);
}

/* The number itself, extended by its sign if it has one. */
static uint64_t read_number(struct reader *reader, uint8_t encoding)
{
    switch (encoding & ENCODING_FORMAT) {
    case ENCODING_U16:
        return read_u16(reader);
    case ENCODING_U32:
        return read_u32(reader);
    case ENCODING_S16:
        return (uint64_t)(int64_t)(int16_t)read_u16(reader);
    case ENCODING_S32:
        return (uint64_t)(int64_t)(int32_t)read_u32(reader);
    default:
        return read_u64(reader);
    }
}

static uint64_t read_pointer(struct reader *reader, uint8_t encoding)
{
    uint64_t place = reader->frame->address + reader->at;
    uint64_t number = read_number(reader, encoding);
    return (encoding & ENCODING_RELATION) == ENCODING_RELATIVE_TO_PC ? place + number : number;
}

/* ---- Entries ---- */

struct entry {
    size_t id_offset;
    size_t end;
    uint32_t id; /* 0: common information; else the distance back to it from here */
    bool is_terminator;
};

static enum cairn_status read_entry(const struct eh_frame *frame, size_t offset,
                                    struct entry *entry, struct cairn_error *error)
{
    struct reader reader = {frame, offset, frame->section.size, false};
    uint64_t length = read_u32(&reader);
    entry->is_terminator = length == 0 && !reader.overrun;
    entry->end = reader.at;
    if (entry->is_terminator)
        return CAIRN_OK;
    if (length == UINT32_MAX)
        length = read_u64(&reader);
    if (reader.overrun || length > frame->section.size - reader.at)
        return error_set(error, CAIRN_ERROR_TRUNCATED, offset,
                         "the unwind table's entry at offset %zu goes beyond its end", offset);
    entry->id_offset = reader.at;
    entry->end = reader.at + (size_t)length;
    reader.end = entry->end;
    entry->id = read_u32(&reader);
    if (reader.overrun)
        return error_set(error, CAIRN_ERROR_CORRUPT, offset,
                         "the unwind table's entry at offset %zu has %llu bytes, too few for an ID",
                         offset, (unsigned long long)length);
    return CAIRN_OK;
}

enum { CIE_VERSION_OF_GCC = 1, CIE_VERSION_OF_DWARF_3 = 3 };

/* Behind the version; up to the augmentation's data, if there is any. */
static void skip_to_augmentation_data(struct reader *reader, uint8_t version, bool has_data)
{
    skip_leb128(reader); /* code alignment */
    skip_leb128(reader); /* data alignment */
    if (version == CIE_VERSION_OF_GCC)
        read_u8(reader); /* return address register */
    else
        skip_leb128(reader);
    if (has_data)
        skip_leb128(reader);
}

/* Finds the encoding of functions' addresses if the augmentation's `letters`, up to their 0, say
 * it. False if there is a letter of which it is not known what stands in the data for it. */
static bool find_encoding(struct reader *reader, const uint8_t *letters, uint8_t *encoding)
{
    for (; *letters != 0; letters++) {
        if (*letters == 'R') {
            *encoding = read_u8(reader);
            return true;
        }
        if (*letters == 'L') {
            read_u8(reader);
        } else if (*letters == 'P') {
            uint8_t personality = read_u8(reader);
            if (!can_read(personality & 0x7F)) /* without its bit for "indirect" */
                return false;
            read_number(reader, personality);
        } else if (*letters != 'S' && *letters != 'B' && *letters != 'G') {
            return false;
        }
    }
    return true;
}

/* `*encoding` stays if the common information says none. */
static enum cairn_status read_encoding(const struct eh_frame *frame, size_t offset,
                                       uint8_t *encoding, struct cairn_error *error)
{
    struct entry entry;
    enum cairn_status status = read_entry(frame, offset, &entry, error);
    if (status != CAIRN_OK)
        return status;
    if (entry.is_terminator || entry.id != 0)
        return error_set(error, CAIRN_ERROR_CORRUPT, offset,
                         "no common information stands at offset %zu of the unwind table", offset);
    struct reader reader = {frame, entry.id_offset + 4, entry.end, false};
    uint8_t version = read_u8(&reader);
    const uint8_t *letters = frame->section.bytes + reader.at;
    while (read_u8(&reader) != 0)
        ;
    bool known = !reader.overrun &&
                 (version == CIE_VERSION_OF_GCC || version == CIE_VERSION_OF_DWARF_3) &&
                 (*letters == 'z' || *letters == 0);
    if (known) {
        bool has_data = *letters == 'z';
        skip_to_augmentation_data(&reader, version, has_data);
        known = find_encoding(&reader, has_data ? letters + 1 : letters, encoding);
    }
    if (reader.overrun)
        return error_set(error, CAIRN_ERROR_CORRUPT, offset,
                         "the common information at offset %zu of the unwind table goes beyond its "
                         "end",
                         offset);
    if (!known || !can_read(*encoding))
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, offset,
                         "the common information at offset %zu of the unwind table has an "
                         "augmentation or a pointer encoding that is not known",
                         offset);
    return CAIRN_OK;
}

static enum cairn_status read_function(const struct eh_frame *frame, const struct entry *entry,
                                       struct eh_frame_function *function,
                                       struct cairn_error *error)
{
    if (entry->id > entry->id_offset)
        return error_set(error, CAIRN_ERROR_CORRUPT, entry->id_offset,
                         "an entry of the unwind table refers to %u bytes before offset %zu",
                         entry->id, entry->id_offset);
    uint8_t encoding = ENCODING_ABSOLUTE;
    enum cairn_status status = read_encoding(frame, entry->id_offset - entry->id, &encoding, error);
    if (status != CAIRN_OK)
        return status;
    struct reader reader = {frame, entry->id_offset + 4, entry->end, false};
    function->address = read_pointer(&reader, encoding);
    function->size = read_number(&reader, encoding);
    if (reader.overrun)
        return error_set(error, CAIRN_ERROR_CORRUPT, entry->id_offset,
                         "the function at offset %zu of the unwind table has no range",
                         entry->id_offset);
    return CAIRN_OK;
}

enum cairn_status eh_frame_next(const struct eh_frame *frame, size_t *offset,
                                struct eh_frame_function *function, bool *found,
                                struct cairn_error *error)
{
    *found = false;
    while (*offset < frame->section.size) {
        struct entry entry;
        enum cairn_status status = read_entry(frame, *offset, &entry, error);
        if (status != CAIRN_OK)
            return status;
        bool is_function = !entry.is_terminator && entry.id != 0;
        if (is_function)
            status = read_function(frame, &entry, function, error);
        if (status != CAIRN_OK)
            return status;
        *offset = entry.end;
        *found = is_function;
        if (is_function)
            return CAIRN_OK;
    }
    return CAIRN_OK;
}
