/*
 * tests/section_writer.h - writes stack map sections, of every version and byte order.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_SECTION_WRITER_H
#define TESTS_SECTION_WRITER_H

#include <cairn/stackmap.h>

struct section_writer {
    uint8_t *bytes;
    size_t size;
    size_t capacity;
    uint8_t version;
    enum cairn_byte_order byte_order;
};

void writer_begin(struct section_writer *writer, uint8_t version, enum cairn_byte_order byte_order);
void writer_end(struct section_writer *writer);
struct cairn_section writer_section(const struct section_writer *writer);

void writer_header(struct section_writer *writer, uint32_t functions, uint32_t constants,
                   uint32_t records);
void writer_function(struct section_writer *writer, uint64_t address, uint64_t stack_size,
                     uint64_t records);
void writer_constant(struct section_writer *writer, uint64_t constant);
void writer_record(struct section_writer *writer, uint64_t id, uint32_t code_offset,
                   const struct cairn_location *locations, uint16_t location_count,
                   const struct cairn_liveout *liveouts, uint16_t liveout_count);

#endif
