/*
 * The disassembly that is expected for an inline cache's code. It is computed from the cache
 * without the encoder. Each architecture has one file, cache_lines_<architecture>.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_CACHE_LINES_H
#define TESTS_CACHE_LINES_H

#include "arch/arch.h"

enum { CACHE_LINES_MAX = 512, CACHE_LINE_BYTES = 96, CACHE_LITERALS_MAX = 64 };

/* The thing whose displacement replaces the '@' in a line. */
enum cache_reference {
    REFERENCE_NONE,
    REFERENCE_LINE,    /* the instruction in the line `target` */
    REFERENCE_LITERAL, /* the literal `target` */
    REFERENCE_ADDRESS
};

struct cache_line {
    char text[CACHE_LINE_BYTES];
    enum cache_reference reference;
    uint64_t target;
};

/* Literals follow the last line, aligned to 8 bytes; the padding consists of trapping
 * instructions. */
struct cache_lines {
    struct cache_line lines[CACHE_LINES_MAX];
    size_t count;
    size_t way_out; /* index of the first line after the last case */
    uint64_t literals[CACHE_LITERALS_MAX];
    size_t literal_count;
    size_t literal_bytes; /* size of each literal */
};

struct cache_writer {
    /* Registers that random caches use. */
    const uint16_t *general;
    size_t general_count;
    const uint16_t *vectors;
    size_t vector_count;
    /* Whether displacements are relative to the end of the instruction. */
    bool counts_from_end;
    /* Writes the expected lines. The caller passes `lines` all zero. */
    void (*write)(const struct arch_cache *cache, struct cache_lines *lines);
};

extern const struct cache_writer cache_writer_x86_64;

#endif
