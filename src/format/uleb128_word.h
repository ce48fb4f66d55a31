/*
 * format/uleb128_word.h - ULEB128 numbers out of a word of memory, without a branch for each byte:
 * how long numbers are cannot be guessed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORMAT_ULEB128_WORD_H
#define FORMAT_ULEB128_WORD_H

#include <cairn/architecture.h>
#include <cairn/section.h>
#include <stdint.h>

/* In each byte: that the number goes on. */
#define ULEB128_MORE UINT64_C(0x8080808080808080)

/* Eight bytes, the first one lowest. */
static inline uint64_t uleb128_word(const uint8_t *bytes)
{
    return cairn_load_u64(bytes, CAIRN_LITTLE_ENDIAN);
}

/* The last bytes of the word's numbers, a bit each; 0 without any. */
static inline uint64_t uleb128_ends(uint64_t word) { return ~word & ULEB128_MORE; }

/* The number whose bytes, all others 0, are in the word. */
static inline uint64_t uleb128_fold(uint64_t bytes)
{
    bytes &= ~ULEB128_MORE;
    bytes = (bytes & UINT64_C(0x007F007F007F007F)) | (bytes & UINT64_C(0x7F007F007F007F00)) >> 1;
    bytes = (bytes & UINT64_C(0x00003FFF00003FFF)) | (bytes & UINT64_C(0x3FFF00003FFF0000)) >> 2;
    return (bytes & UINT64_C(0x0FFFFFFF)) | (bytes & UINT64_C(0x0FFFFFFF00000000)) >> 4;
}

/* The word's first number, whose last byte `ends` (not 0) says, and how many bytes it has. */
static inline uint64_t uleb128_first(uint64_t word, uint64_t ends, unsigned *bytes)
{
    /* All bits up to the highest one of the number's last byte. */
    uint64_t mask = ends ^ (ends - 1);
    *bytes = ((unsigned)__builtin_ctzll(ends) + 1) / 8;
    return uleb128_fold(word & mask);
}

#endif
