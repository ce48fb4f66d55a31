/*
 * bench/generate_bbmap.h - basic-block address maps like those of real programs, of any size.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_GENERATE_BBMAP_H
#define BENCH_GENERATE_BBMAP_H

#include <stddef.h>
#include <stdint.h>

/* An ELF file for x86-64 in the host's memory, linked, with nothing in it but a section of maps of
 * version 2 and the header of the code that they are of. */
struct generated_bbmap {
    uint8_t *bytes; /* of the file; to be freed with free() */
    size_t size;
    size_t section_offset; /* of the maps in the file */
    size_t section_size;
    uint64_t code_address;
    uint64_t code_size;
    uint32_t function_count;
    uint32_t block_count;
};

/*
 * At least `block_count` blocks, in numbers and sizes as clang -O2 gives them for this library's
 * own sources: 15 blocks a function, half of the functions with up to 8; half of the blocks up to
 * 15 bytes, one in a hundred 128 or more. The same argument gives the same bytes. `bytes` is NULL
 * without memory.
 */
struct generated_bbmap generate_bbmap(uint32_t block_count);

#endif
