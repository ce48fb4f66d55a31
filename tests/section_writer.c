/* SPDX-License-Identifier: MIT */
#include "tests/section_writer.h"

#include <stdlib.h>
#include <string.h>

void writer_begin(struct section_writer *writer, uint8_t version, enum cairn_byte_order byte_order)
{
    *writer = (struct section_writer){.version = version, .byte_order = byte_order};
}

void writer_end(struct section_writer *writer)
{
    free(writer->bytes);
    *writer = (struct section_writer){0};
}

struct cairn_section writer_section(const struct section_writer *writer)
{
    return (struct cairn_section){writer->bytes, writer->size, writer->byte_order};
}

static void put(struct section_writer *writer, uint64_t value, size_t size)
{
    if (writer->size + size > writer->capacity) {
        writer->capacity = 2 * writer->capacity + 64;
        writer->bytes = realloc(writer->bytes, writer->capacity);
        if (writer->bytes == NULL)
            abort();
    }
    for (size_t i = 0; i < size; i++) {
        size_t byte = writer->byte_order == CAIRN_LITTLE_ENDIAN ? i : size - 1 - i;
        writer->bytes[writer->size + i] = (uint8_t)(value >> (8 * byte));
    }
    writer->size += size;
}

static void align(struct section_writer *writer)
{
    while (writer->size % 8 != 0)
        put(writer, 0, 1);
}

void writer_header(struct section_writer *writer, uint32_t functions, uint32_t constants,
                   uint32_t records)
{
    put(writer, writer->version, 1);
    put(writer, 0, 1);
    put(writer, 0, 2);
    put(writer, functions, 4);
    put(writer, constants, 4);
    put(writer, records, 4);
}

void writer_function(struct section_writer *writer, uint64_t address, uint64_t stack_size,
                     uint64_t records)
{
    put(writer, address, 8);
    put(writer, stack_size, 8);
    if (writer->version > 1)
        put(writer, records, 8);
}

void writer_constant(struct section_writer *writer, uint64_t constant) { put(writer, constant, 8); }

static void put_location(struct section_writer *writer, const struct cairn_location *location)
{
    put(writer, (uint64_t)location->kind, 1);
    if (writer->version == 3) {
        put(writer, 0, 1);
        put(writer, location->size, 2);
        put(writer, location->dwarf, 2);
        put(writer, 0, 2);
    } else {
        put(writer, location->size, 1);
        put(writer, location->dwarf, 2);
    }
    put(writer, (uint32_t)location->offset, 4);
}

void writer_record(struct section_writer *writer, uint64_t id, uint32_t code_offset,
                   const struct cairn_location *locations, uint16_t location_count,
                   const struct cairn_liveout *liveouts, uint16_t liveout_count)
{
    put(writer, id, 8);
    put(writer, code_offset, 4);
    put(writer, 0, 2);
    put(writer, location_count, 2);
    for (uint16_t i = 0; i < location_count; i++)
        put_location(writer, &locations[i]);
    align(writer);
    put(writer, 0, 2);
    put(writer, liveout_count, 2);
    for (uint16_t i = 0; i < liveout_count; i++) {
        put(writer, liveouts[i].dwarf, 2);
        put(writer, 0, 1);
        put(writer, liveouts[i].size, 1);
    }
    align(writer);
}
