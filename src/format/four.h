/*
 * format/four.h - four locations at once, in vectors that every target has or the compiler makes.
 *
 * For version 3 in little-endian order on a little-endian host (`four_applies`); other maps are
 * read one location at a time.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORMAT_FOUR_H
#define FORMAT_FOUR_H

#include <cairn/stackmap.h>

typedef uint32_t four_words __attribute__((vector_size(16)));
typedef int32_t four_integers __attribute__((vector_size(16)));
typedef float four_floats __attribute__((vector_size(16)));

/* The fields of four locations. */
struct four_locations {
    four_words kind_and_size; /* bits 0 to 7 and 16 to 31; the others are reserved */
    four_words dwarf;         /* bits 0 to 15; the others are reserved */
    four_words offset;
};

static inline bool four_applies(size_t stride, enum cairn_byte_order byte_order)
{
    return stride == CAIRN_STACKMAP_LOCATION_BYTES && byte_order == CAIRN_LITTLE_ENDIAN &&
           CAIRN_BYTE_ORDER_NATIVE == CAIRN_LITTLE_ENDIAN;
}

/* Reads 48 bytes. */
static inline __attribute__((always_inline)) struct four_locations four_load(const uint8_t *bytes)
{
    four_words a;
    four_words b;
    four_words c;
    memcpy(&a, bytes, 16);
    memcpy(&b, bytes + 16, 16);
    memcpy(&c, bytes + 32, 16);
    return (struct four_locations){
        .kind_and_size =
            __builtin_shufflevector(__builtin_shufflevector(a, b, 0, 3, 6, 6), c, 0, 1, 2, 5),
        .dwarf = __builtin_shufflevector(__builtin_shufflevector(a, b, 1, 4, 7, 7), c, 0, 1, 2, 6),
        .offset = __builtin_shufflevector(__builtin_shufflevector(a, b, 2, 5, 5, 5), c, 0, 1, 4, 7),
    };
}

static inline __attribute__((always_inline)) uint32_t four_or(four_words words)
{
    uint64_t halves[2];
    memcpy(halves, &words, sizeof halves);
    uint64_t both = halves[0] | halves[1];
    return (uint32_t)(both | both >> 32);
}

#endif
