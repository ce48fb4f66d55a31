/*
 * format/sixteen_x86_64.h - sixteen locations at once, with AVX-512.
 *
 * A record has at most sixteen locations nearly always: then there is no loop over them, and no
 * branch that depends on their number. For version 3 in little-endian order.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORMAT_SIXTEEN_X86_64_H
#define FORMAT_SIXTEEN_X86_64_H

#include "format/record.h"

#include <immintrin.h>

#define SIXTEEN_TARGET __attribute__((target("avx512f,avx512cd")))
#define SIXTEEN_INLINE static inline __attribute__((always_inline, target("avx512f,avx512cd")))

enum { SIXTEEN_BYTES = 16 * CAIRN_STACKMAP_LOCATION_BYTES };

static inline bool sixteen_is_available(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd");
}

/* Hides where a vector comes from, or the compiler would make it, or load it, anew for each use. */
SIXTEEN_INLINE __m512i sixteen_keep(__m512i vector)
{
    __asm__("" : "+v"(vector));
    return vector;
}

SIXTEEN_INLINE __m512i sixteen_all(uint32_t word)
{
    return sixteen_keep(_mm512_set1_epi32((int)word));
}

/* A bit for each of the first `count` lanes, which are at most sixteen. */
SIXTEEN_INLINE __mmask16 sixteen_lanes(uint32_t count)
{
    return (__mmask16)((UINT32_C(1) << count) - 1);
}

/* Which words of three vectors are a field of the sixteen: first of the first two, then of those
 * and the third. */
struct sixteen_field {
    __m512i of_two;
    __m512i of_third;
};

/* `field`: 0 for kind and size, 1 for the register, 2 for the offset. Location i has words 3 * i to
 * 3 * i + 2; from the 32nd on they are the third vector's, which a permutation counts from 16. */
SIXTEEN_INLINE struct sixteen_field sixteen_field_of(int field)
{
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i words =
        _mm512_add_epi32(_mm512_mullo_epi32(lanes, _mm512_set1_epi32(3)), _mm512_set1_epi32(field));
    const __mmask16 in_third = _mm512_cmpge_epi32_mask(words, _mm512_set1_epi32(32));
    return (struct sixteen_field){
        .of_two = sixteen_keep(words),
        .of_third =
            sixteen_keep(_mm512_mask_sub_epi32(lanes, in_third, words, _mm512_set1_epi32(32 - 16))),
    };
}

struct sixteen_words {
    __m512i first;
    __m512i second;
    __m512i third;
};

SIXTEEN_INLINE struct sixteen_words sixteen_load(const uint8_t *bytes)
{
    return (struct sixteen_words){
        sixteen_keep(_mm512_loadu_si512(bytes)),
        sixteen_keep(_mm512_loadu_si512(bytes + 64)),
        sixteen_keep(_mm512_loadu_si512(bytes + 128)),
    };
}

/* For records of more than sixteen: asks for what is read soon. */
static inline void sixteen_prefetch(const uint8_t *bytes)
{
    uintptr_t soon = (uintptr_t)bytes + RECORD_PREFETCH_BYTES;
    for (uintptr_t line = 0; line < SIXTEEN_BYTES; line += 64)
        __builtin_prefetch((const void *)(soon + line));
}

SIXTEEN_INLINE __m512i sixteen_take(const struct sixteen_words *words,
                                    const struct sixteen_field *field)
{
    const __m512i two = _mm512_permutex2var_epi32(words->first, field->of_two, words->second);
    return _mm512_permutex2var_epi32(two, field->of_third, words->third);
}

#endif
