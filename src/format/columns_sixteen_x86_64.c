/* SPDX-License-Identifier: MIT */
#include "format/columns.h"
#include "format/sixteen_x86_64.h"

/* What is the same for all locations, in registers. */
struct copying {
    struct sixteen_field kind_and_size;
    struct sixteen_field dwarf;
    struct sixteen_field offset;
    __m512i low_byte;
    __m512i low_half;
};

SIXTEEN_INLINE void copy_sixteen(const void *context, struct columns *columns, uint32_t at,
                                 const uint8_t *bytes)
{
    const struct copying *how = context;
    const struct sixteen_words words = sixteen_load(bytes);
    const __m512i kind_and_size = sixteen_take(&words, &how->kind_and_size);
    const __m512i dwarf = sixteen_take(&words, &how->dwarf);
    _mm512_storeu_si512(columns->kinds + at, _mm512_and_si512(kind_and_size, how->low_byte));
    _mm512_storeu_si512(columns->sizes + at, _mm512_srli_epi32(kind_and_size, 16));
    _mm512_storeu_si512(columns->registers + at, _mm512_and_si512(dwarf, how->low_half));
    _mm512_storeu_si512(columns->offsets + at, sixteen_take(&words, &how->offset));
}

static SIXTEEN_TARGET uint32_t copy_by_sixteens(struct columns *columns,
                                                const struct cairn_stackmap *map,
                                                const uint8_t *end,
                                                const struct cairn_stackmap_record *records,
                                                uint32_t count)
{
    const struct copying how = {
        .kind_and_size = sixteen_field_of(0),
        .dwarf = sixteen_field_of(1),
        .offset = sixteen_field_of(2),
        .low_byte = sixteen_all(0xFF),
        .low_half = sixteen_all(0xFFFF),
    };
    return columns_copy_with(columns, map, end, records, count, copy_sixteen, &how);
}

columns_copier *columns_sixteen_copier(void)
{
    return sixteen_is_available() ? copy_by_sixteens : NULL;
}
