/*
 * Searches .eh_frame_hdr.
 *
 * Source: Linux Standard Base Core Specification, "The .eh_frame_hdr section".
 *
 * SPDX-License-Identifier: MIT
 */
#include "unwind/eh_frame_header.h"

#include "base/error.h"
#include "unwind/frame_reader.h"

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
