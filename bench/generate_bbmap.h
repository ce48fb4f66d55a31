/*
 * bench/generate_bbmap.h - generated basic-block address maps of any size, similar to those of real
 * programs.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_GENERATE_BBMAP_H
#define BENCH_GENERATE_BBMAP_H

#include <stddef.h>
#include <stdint.h>

/* A linked ELF file for x86-64 in memory. It has only a section of maps of version 2, and the
 * header of the code section that they describe. */
struct generated_bbmap {
    uint8_t *bytes; /* the file; to be freed with free() */
    size_t size;
    size_t section_offset; /* offset of the maps in the file */
    size_t section_size;
    uint64_t code_address;
    uint64_t code_size;
    uint32_t function_count;
    uint32_t block_count;
};

/*
 * Generates at least `block_count` blocks. Numbers and sizes are distributed as clang -O2 compiles
 * this library's own sources: functions have 15 blocks on average, and half of them at most 8; half
 * of the blocks have at most 15 bytes, and one in a hundred at least 128. The same argument gives
 * the same bytes. `bytes` is NULL without memory.
 */
struct generated_bbmap generate_bbmap(uint32_t block_count);

#endif
