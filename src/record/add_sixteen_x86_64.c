/* SPDX-License-Identifier: MIT */
#include "format/sixteen_x86_64.h"
#include "record/add_records.h"

/* What is the same for all records of a map, in registers. */
struct sixteen {
    const struct packing *packing;
    const struct sixteen *in_memory; /* the same, for a function that is called */
    struct sixteen_field kind_and_size;
    struct sixteen_field dwarf;
    struct sixteen_field offset;
    /* Numbers by kind. */
    __m512i shift;
    __m512i forbidden;
    __m512i bias;
    __m512i limit;
    __m512i added;
    __m512i low_byte;
    __m512i low_half;
    __m512i one;
    __m512i last_bit;
    __m512i size_end;
    __m512i kind_end;
};

/* Of the kinds, 0 and those from 6 on are none; there are sixteen in a table. */
enum { KIND_END = 16 };

SIXTEEN_INLINE __m512i by_kind(uint32_t memory, uint32_t constant, uint32_t index)
{
    return sixteen_keep(_mm512_setr_epi32(0, (int)memory, (int)memory, (int)memory, (int)constant,
                                          (int)index, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
}

SIXTEEN_INLINE struct sixteen sixteen_of(const struct packing *packing)
{
    static const uint32_t memory_limit = UINT32_C(1) << COMPACT_OFFSET_BITS;
    static const uint32_t constant_limit = UINT32_C(1) << COMPACT_CONSTANT_BITS;
    const struct compact_constants *constants = &packing->constants;
    return (struct sixteen){
        .packing = packing,
        .kind_and_size = sixteen_field_of(0),
        .dwarf = sixteen_field_of(1),
        .offset = sixteen_field_of(2),
        .shift = by_kind(COMPACT_OFFSET_SHIFT, COMPACT_CONSTANT_SHIFT, COMPACT_CONSTANT_SHIFT),
        .forbidden = by_kind(0xFF00, 0xFFFF, 0xFFFF),
        .bias = by_kind(memory_limit / 2, constant_limit / 2, 0),
        .limit = by_kind(memory_limit, constant_limit, constants->count),
        .added = by_kind(0, 0, constants->first),
        .low_byte = sixteen_all(0xFF),
        .low_half = sixteen_all(0xFFFF),
        .one = sixteen_all(1),
        .last_bit = sixteen_all(31),
        .size_end = sixteen_all(8),
        .kind_end = sixteen_all(KIND_END),
    };
}

/* The same as compact_pack, for sixteen locations: of those in `lanes`, the ones that fit and are
 * valid. */
SIXTEEN_INLINE __mmask16 compact_pack_sixteen(const struct sixteen *how, const uint8_t *bytes,
                                              __mmask16 lanes, uint32_t *words)
{
    const struct sixteen_words fields = sixteen_load(bytes);
    const __m512i kind_and_size = sixteen_take(&fields, &how->kind_and_size);
    const __m512i kind = _mm512_and_si512(kind_and_size, how->low_byte);
    const __m512i size = _mm512_srli_epi32(kind_and_size, 16);
    const __m512i dwarf = _mm512_and_si512(sixteen_take(&fields, &how->dwarf), how->low_half);
    const __m512i offset = sixteen_take(&fields, &how->offset);
    const __m512i shift = _mm512_permutexvar_epi32(kind, how->shift);
    const __m512i forbidden = _mm512_permutexvar_epi32(kind, how->forbidden);
    const __m512i bias = _mm512_permutexvar_epi32(kind, how->bias);
    const __m512i limit = _mm512_permutexvar_epi32(kind, how->limit);
    const __m512i added = _mm512_permutexvar_epi32(kind, how->added);

    const __m512i exponent = _mm512_sub_epi32(how->last_bit, _mm512_lzcnt_epi32(size));
    const __m512i power = _mm512_sllv_epi32(how->one, exponent);
    const __m512i biased = _mm512_add_epi32(offset, bias);
    __mmask16 good = _mm512_mask_cmpeq_epi32_mask(lanes, power, size);
    good = _mm512_mask_cmplt_epu32_mask(good, exponent, how->size_end);
    good = _mm512_mask_cmplt_epu32_mask(good, kind, how->kind_end);
    good = _mm512_mask_testn_epi32_mask(good, dwarf, forbidden);
    good = _mm512_mask_cmplt_epu32_mask(good, biased, limit);

    const __m512i moved = _mm512_sllv_epi32(_mm512_add_epi32(offset, added), shift);
    const __m512i low = _mm512_or_si512(kind, _mm512_slli_epi32(exponent, COMPACT_SIZE_SHIFT));
    const __m512i high = _mm512_or_si512(moved, _mm512_slli_epi32(dwarf, COMPACT_REGISTER_SHIFT));
    _mm512_storeu_si512(words, _mm512_or_si512(low, high));
    return good;
}

/* More than sixteen, or near the section's end. A function of its own, so that the usual record
 * keeps its registers. */
static __attribute__((noinline)) SIXTEEN_TARGET bool pack_others(const struct sixteen *how,
                                                                 const uint8_t *bytes,
                                                                 uint32_t count, size_t room,
                                                                 uint32_t *words)
{
    if ((count + 15) / 16 * (size_t)SIXTEEN_BYTES > room)
        return pack_compact(how->packing, bytes, count, room, CAIRN_STACKMAP_LOCATION_BYTES,
                            CAIRN_BYTE_ORDER_NATIVE, words);
    const struct sixteen here = *how;
    bool all_good = true;
    while (count > 0) {
        uint32_t some = count < 16 ? count : 16;
        sixteen_prefetch(bytes);
        __mmask16 lanes = sixteen_lanes(some);
        all_good &= compact_pack_sixteen(&here, bytes, lanes, words) == lanes;
        bytes += SIXTEEN_BYTES;
        words += 16;
        count -= some;
    }
    return all_good;
}

SIXTEEN_INLINE bool pack_sixteen(const void *context, const uint8_t *bytes, uint32_t count,
                                 size_t room, uint32_t *words)
{
    const struct sixteen *how = context;
    if (__builtin_expect(count > 16 || room < SIXTEEN_BYTES, 0))
        return pack_others(how->in_memory, bytes, count, room, words);
    /* What is read and written behind the last location is not looked at. */
    __mmask16 lanes = sixteen_lanes(count);
    return compact_pack_sixteen(how, bytes, lanes, words) == lanes;
}

static SIXTEEN_TARGET enum cairn_status add_functions(struct builder *builder,
                                                      const struct cairn_stackmap *map,
                                                      size_t available,
                                                      const struct packing *packing,
                                                      size_t *end_offset, struct cairn_error *error)
{
    const struct sixteen in_memory = sixteen_of(packing);
    struct sixteen how = in_memory;
    how.in_memory = &in_memory;
    return add_functions_with(builder, map, available, packing, end_offset,
                              CAIRN_STACKMAP_LOCATION_BYTES, CAIRN_BYTE_ORDER_NATIVE, pack_sixteen,
                              &how, error);
}

static SIXTEEN_TARGET void add_runs(struct builder *builder, const struct cairn_stackmap *map,
                                    const struct packing *packing, const struct record_run *runs,
                                    size_t count)
{
    const struct sixteen in_memory = sixteen_of(packing);
    struct sixteen how = in_memory;
    how.in_memory = &in_memory;
    add_runs_with(builder, map, packing, runs, count, CAIRN_STACKMAP_LOCATION_BYTES,
                  CAIRN_BYTE_ORDER_NATIVE, pack_sixteen, &how);
}

const struct record_adder *builder_sixteen_adder(void)
{
    static const struct record_adder adder = {add_functions, add_runs};
    return sixteen_is_available() ? &adder : NULL;
}
