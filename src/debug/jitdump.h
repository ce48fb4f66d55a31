/*
 * debug/jitdump.h - the records of a jitdump file, in memory.
 *
 * A record is one allocation that grows; a reader that finds part of a record at the end of the
 * file ignores it.
 *
 * Source: Linux, tools/perf/Documentation/jitdump-specification.txt.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef DEBUG_JITDUMP_H
#define DEBUG_JITDUMP_H

#include "base/memory.h"
#include "debug/names.h"
#include "object/line_table.h"

#include <sys/types.h>

/* Invariant: `failed` if memory ran out for some of the bytes. */
struct jitdump_record {
    const struct cairn_allocator *allocator;
    uint8_t *bytes;
    size_t size;
    size_t capacity;
    bool failed;
};

enum { JITDUMP_HEADER_BYTES = 40, JITDUMP_CLOSE_BYTES = 16 };

void jitdump_header(uint8_t header[JITDUMP_HEADER_BYTES], pid_t process);
void jitdump_close(uint8_t record[JITDUMP_CLOSE_BYTES]);

/* Writes a record over the previous one. `index` is a different number for each load. */
void jitdump_load(struct jitdump_record *record, const struct named_code *code, pid_t process,
                  uint64_t index);

/* Writes a record of lines over the previous one: begin, then add rows, then end. Returns false if
 * there are no lines, or no memory for them. */
void jitdump_lines_begin(struct jitdump_record *record, uint64_t address);
void jitdump_lines_add(struct jitdump_record *record, const struct line_row *row);
bool jitdump_lines_end(struct jitdump_record *record);

void jitdump_release(struct jitdump_record *record);

#endif
