/*
 * Reads the entries of .eh_frame, and searches .eh_frame_hdr.
 *
 * Sources: Linux Standard Base Core Specification, "Exception Frames" and "The .eh_frame_hdr
 * section"; DWARF for the Arm 64-bit Architecture, "Call frame instructions", for the letter 'B'.
 *
 * SPDX-License-Identifier: MIT
 */
#include "unwind/eh_frame.h"

#include "base/error.h"
#include "unwind/frame_reader.h"

/* ---- Entries ---- */

enum { ID_BYTES = 4 };

struct entry {
    size_t id_offset;
    size_t end;
    uint32_t id; /* 0 for common information; otherwise the distance back to it from here */
    bool is_terminator;
};

static enum cairn_status read_entry(const struct eh_frame *frame, size_t offset,
                                    struct entry *entry, struct cairn_error *error)
{
    struct frame_reader reader = {.frame = frame, .at = offset, .end = frame->section.size};
    uint64_t length = frame_read_u32(&reader);
    entry->is_terminator = length == 0 && !reader.overrun;
    entry->end = reader.at;
    if (entry->is_terminator)
        return CAIRN_OK;
    if (length == UINT32_MAX)
        length = frame_read_u64(&reader);
    if (reader.overrun || length > frame->section.size - reader.at)
        return error_set(error, CAIRN_ERROR_TRUNCATED, offset,
                         "the unwind table's entry at offset %zu goes beyond its end", offset);
    entry->id_offset = reader.at;
    entry->end = reader.at + (size_t)length;
    reader.end = entry->end;
    entry->id = frame_read_u32(&reader);
    if (reader.overrun)
        return error_set(error, CAIRN_ERROR_CORRUPT, offset,
                         "the unwind table's entry at offset %zu has %llu bytes, too few for an ID",
                         offset, (unsigned long long)length);
    return CAIRN_OK;
}

/* ---- Common information ---- */

enum { CIE_VERSION_OF_GCC = 1, CIE_VERSION_OF_DWARF_3 = 3, ENCODING_INDIRECT = 0x80 };

/* Reads the data of one augmentation letter. Returns false if the letter is unknown. */
static bool read_letter(struct frame_reader *reader, char letter, struct eh_frame_common *common)
{
    uint8_t encoding;
    switch (letter) {
    case 'R':
        common->address_encoding = frame_read_u8(reader);
        return true;
    case 'P': /* the personality; without its encoding its size is unknown */
        encoding = frame_read_u8(reader) & (uint8_t)~ENCODING_INDIRECT;
        if (frame_can_read(encoding))
            frame_read_number(reader, encoding);
        return frame_can_read(encoding);
    case 'L':
        frame_read_u8(reader); /* encoding of the pointer to the language-specific data */
        return true;
    case 'S':
        common->is_signal_frame = true;
        return true;
    case 'B':
        common->uses_b_key = true;
        return true;
    case 'G': /* tagged memory; does not affect registers */
        return true;
    default:
        return false;
    }
}

/* Reads the fields after the letters. Returns false if functions cannot be read because the
 * augmentation is unknown: an unknown letter precedes the encoding of function addresses. */
static bool read_augmented(struct frame_reader *reader, uint8_t version, const uint8_t *letters,
                           struct eh_frame_common *common)
{
    common->code_alignment = frame_read_uleb128(reader);
    common->data_alignment = frame_read_sleb128(reader);
    common->return_register =
        version == CIE_VERSION_OF_GCC ? frame_read_u8(reader) : frame_read_uleb128(reader);
    common->has_data = *letters == 'z';
    if (!common->has_data)
        return *letters == 0;
    uint64_t size = frame_read_uleb128(reader);
    struct frame_reader data = *reader;
    frame_read_bytes(reader, size);
    data.end = reader->at;
    bool has_encoding = false;
    while (*++letters != 0 && common->unknown_letter == 0) {
        if (!read_letter(&data, (char)*letters, common))
            common->unknown_letter = (char)*letters;
        has_encoding = has_encoding || *letters == 'R';
    }
    reader->overrun = reader->overrun || data.overrun;
    return common->unknown_letter == 0 || has_encoding;
}

static enum cairn_status read_known_common(const struct eh_frame *frame, const struct entry *entry,
                                           struct eh_frame_common *common,
                                           struct cairn_error *error)
{
    size_t offset = common->offset;
    struct frame_reader reader = {
        .frame = frame, .at = entry->id_offset + ID_BYTES, .end = entry->end};
    uint8_t version = frame_read_u8(&reader);
    const uint8_t *letters = frame->section.bytes + reader.at;
    while (frame_read_u8(&reader) != 0)
        ;
    bool known = !reader.overrun &&
                 (version == CIE_VERSION_OF_GCC || version == CIE_VERSION_OF_DWARF_3) &&
                 read_augmented(&reader, version, letters, common);
    if (reader.overrun)
        return error_set(error, CAIRN_ERROR_CORRUPT, offset,
                         "the common information at offset %zu of the unwind table goes beyond its "
                         "end",
                         offset);
    if (reader.overflow)
        return error_set(error, CAIRN_ERROR_CORRUPT, offset,
                         "the common information at offset %zu of the unwind table has a number of "
                         "more than 64 bits",
                         offset);
    if (!known || !frame_can_read(common->address_encoding))
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, offset,
                         "the common information at offset %zu of the unwind table has an "
                         "augmentation or a pointer encoding that is not known",
                         offset);
    common->instructions = (struct eh_frame_span){reader.at, entry->end};
    return CAIRN_OK;
}

static enum cairn_status say_no_common(size_t offset, struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_CORRUPT, offset,
                     "offset %zu of the unwind table: expected common information (a CIE)", offset);
}

static enum cairn_status read_common(const struct eh_frame *frame, size_t offset,
                                     struct eh_frame_common *common, struct cairn_error *error)
{
    *common = (struct eh_frame_common){.offset = offset};
    struct entry entry;
    enum cairn_status status = read_entry(frame, offset, &entry, error);
    if (status != CAIRN_OK)
        return status;
    if (entry.is_terminator || entry.id != 0)
        return say_no_common(offset, error);
    return read_known_common(frame, &entry, common, error);
}

enum cairn_status eh_frame_next_common(const struct eh_frame *frame, size_t *offset,
                                       struct eh_frame_common *common, bool *found,
                                       struct cairn_error *error)
{
    *found = false;
    while (*offset < frame->section.size && !*found) {
        struct entry entry;
        enum cairn_status status = read_entry(frame, *offset, &entry, error);
        if (status != CAIRN_OK)
            return status;
        *found = !entry.is_terminator && entry.id == 0;
        *common = (struct eh_frame_common){.offset = *offset};
        if (*found && read_known_common(frame, &entry, common, NULL) != CAIRN_OK)
            *common = (struct eh_frame_common){.offset = *offset};
        *offset = entry.end;
    }
    return CAIRN_OK;
}

/* Finds the common information at `offset`: that of the previous function, or in the list, or in
 * the section. */
static enum cairn_status find_common(const struct eh_frame *frame, size_t offset,
                                     struct eh_frame_description *description,
                                     struct cairn_error *error)
{
    struct eh_frame_common *common = &description->common;
    const struct eh_frame_commons *commons = description->commons;
    if (common->instructions.end != 0 && common->offset == offset)
        return CAIRN_OK;
    if (commons == NULL)
        return read_common(frame, offset, common, error);
    size_t begin = 0;
    size_t end = commons->count;
    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;
        if (commons->entries[middle].offset < offset)
            begin = middle + 1;
        else
            end = middle;
    }
    if (begin < commons->count && commons->entries[begin].offset == offset &&
        commons->entries[begin].instructions.end != 0) {
        *common = commons->entries[begin];
        return CAIRN_OK;
    }
    enum cairn_status status = read_common(frame, offset, common, error);
    return status != CAIRN_OK ? status : say_no_common(offset, error);
}

/* ---- Functions ---- */

static enum cairn_status read_description(const struct eh_frame *frame, const struct entry *entry,
                                          struct eh_frame_description *description,
                                          struct cairn_error *error)
{
    if (entry->id > entry->id_offset)
        return error_set(error, CAIRN_ERROR_CORRUPT, entry->id_offset,
                         "an entry of the unwind table refers to %u bytes before offset %zu",
                         entry->id, entry->id_offset);
    struct eh_frame_common *common = &description->common;
    enum cairn_status status = find_common(frame, entry->id_offset - entry->id, description, error);
    if (status != CAIRN_OK)
        return status;
    struct frame_reader reader = {
        .frame = frame, .at = entry->id_offset + ID_BYTES, .end = entry->end};
    description->function.address = frame_read_pointer(&reader, common->address_encoding);
    description->function.size = frame_read_number(&reader, common->address_encoding);
    if (reader.overrun)
        return error_set(error, CAIRN_ERROR_CORRUPT, entry->id_offset,
                         "the function at offset %zu of the unwind table has no range",
                         entry->id_offset);
    uint64_t end;
    if (__builtin_add_overflow(description->function.address, description->function.size, &end))
        return error_set(error, CAIRN_ERROR_CORRUPT, entry->id_offset,
                         "the function at offset %zu of the unwind table, of 0x%llx bytes at "
                         "0x%llx, reaches the end of the address space",
                         entry->id_offset, (unsigned long long)description->function.size,
                         (unsigned long long)description->function.address);
    if (common->has_data)
        frame_read_bytes(&reader, frame_read_uleb128(&reader));
    if (reader.overrun || reader.overflow)
        return error_set(error, CAIRN_ERROR_CORRUPT, entry->id_offset,
                         "the augmentation data of the function at offset %zu of the unwind table "
                         "goes beyond its end",
                         entry->id_offset);
    description->instructions = (struct eh_frame_span){reader.at, entry->end};
    return CAIRN_OK;
}

enum cairn_status eh_frame_next(const struct eh_frame *frame, size_t *offset,
                                struct eh_frame_description *description, bool *found,
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
            status = read_description(frame, &entry, description, error);
        if (status != CAIRN_OK)
            return status;
        description->offset = *offset;
        *offset = entry.end;
        *found = is_function;
        if (is_function)
            return CAIRN_OK;
    }
    return CAIRN_OK;
}

/* ---- .eh_frame_hdr ---- */

enum {
    HEADER_VERSION = 1,
    NUMBER_U32 = 0x03,
    /* A signed number of 4 bytes, relative to the start of the header. */
    FROM_HEADER_S32 = 0x3B,
    ROW_BYTES = 8
};

/* The sorted rows, each with the addresses of a function and of its entry. */
struct rows {
    const struct eh_frame *header;
    size_t begin;
    uint32_t count;
};

static enum cairn_status truncated(struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_TRUNCATED, 0,
                     "the sorted table of unwind entries goes beyond its end");
}

static enum cairn_status read_head(const struct eh_frame *header, uint64_t *section,
                                   struct rows *rows, struct cairn_error *error)
{
    struct frame_reader reader = {.frame = header, .end = header->section.size};
    uint8_t version = frame_read_u8(&reader);
    uint8_t section_encoding = frame_read_u8(&reader);
    uint8_t count_encoding = frame_read_u8(&reader);
    uint8_t row_encoding = frame_read_u8(&reader);
    if (reader.overrun)
        return truncated(error);
    if (version != HEADER_VERSION)
        return error_set(error, CAIRN_ERROR_VERSION, 0,
                         "the sorted table of unwind entries has version %u, not 1", version);
    if (!frame_can_read(section_encoding) || count_encoding != NUMBER_U32 ||
        row_encoding != FROM_HEADER_S32)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 1,
                         "the sorted table of unwind entries is written in a way that is not known "
                         "(0x%02x, 0x%02x, 0x%02x)",
                         section_encoding, count_encoding, row_encoding);
    *section = frame_read_pointer(&reader, section_encoding);
    uint32_t count = frame_read_u32(&reader);
    *rows = (struct rows){header, reader.at, count};
    if (reader.overrun || count > (reader.end - reader.at) / ROW_BYTES)
        return truncated(error);
    return CAIRN_OK;
}

/* Returns the address of row `row`'s function (column 0) or entry (column 1). */
static uint64_t address_in(const struct rows *rows, uint32_t row, unsigned column)
{
    size_t at = rows->begin + (size_t)row * ROW_BYTES + column * sizeof(int32_t);
    struct frame_reader reader = {
        .frame = rows->header, .at = at, .end = rows->header->section.size};
    return rows->header->address + (uint64_t)(int64_t)(int32_t)frame_read_u32(&reader);
}

enum cairn_status eh_frame_header_find(const struct eh_frame *header, uint64_t pc,
                                       struct eh_frame_place *place, bool *found,
                                       struct cairn_error *error)
{
    struct rows rows = {0};
    *found = false;
    enum cairn_status status = read_head(header, &place->section, &rows, error);
    if (status != CAIRN_OK || rows.count == 0 || address_in(&rows, 0, 0) > pc)
        return status;
    uint32_t low = 0;
    for (uint32_t count = rows.count; count > 1;) {
        uint32_t half = count / 2;
        low += address_in(&rows, low + half, 0) <= pc ? half : 0;
        count -= half;
    }
    place->entry = address_in(&rows, low, 1);
    *found = true;
    return CAIRN_OK;
}
