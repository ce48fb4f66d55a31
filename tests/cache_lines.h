/*
 * What LLVM's disassembler should say of an inline cache's code, worked out from the cache by
 * another program than the encoder: one file for each architecture, cache_lines_<architecture>.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_CACHE_LINES_H
#define TESTS_CACHE_LINES_H

#include "arch/arch.h"

enum { CACHE_LINES_MAX = 512, CACHE_LINE_BYTES = 96, CACHE_LITERALS_MAX = 64 };

/* What the '@' in a line stands for: the displacement of something. */
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

/* Literals are behind the last line, aligned to 8, with instructions between that trap. */
struct cache_lines {
    struct cache_line lines[CACHE_LINES_MAX];
    size_t count;
    size_t way_out; /* the line where it begins */
    uint64_t literals[CACHE_LITERALS_MAX];
    size_t literal_count;
    size_t literal_bytes; /* of each */
};

struct cache_writer {
    /* Registers of random caches. */
    const uint16_t *general;
    size_t general_count;
    const uint16_t *vectors;
    size_t vector_count;
    /* Displacements count from the instruction's end. */
    bool counts_from_end;
    /* `lines` is all zero. */
    void (*write)(const struct arch_cache *cache, struct cache_lines *lines);
};

extern const struct cache_writer cache_writer_x86_64;

#endif
