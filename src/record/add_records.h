/*
 * record/add_records.h - the loop that checks, packs and adds records.
 *
 * The loop is compiled once for each kind of map and each way of packing locations: `stride`,
 * `byte_order` and `pack` are constants in every function below. The state that a record changes is
 * kept in a `struct pass`. Only inlined functions take its address, so it stays in registers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECORD_ADD_RECORDS_H
#define RECORD_ADD_RECORDS_H

#include "record/builder.h"
#include "record/pack.h"

#include <assert.h>

#define ADD_INLINE static inline __attribute__((always_inline))

struct pass {
    const uint8_t *at;  /* the next record */
    const uint8_t *end; /* end of the readable bytes: the section's end */
    uint32_t index;     /* number of the next record in the table */
    uint32_t word;      /* index of the next word of the values */

    uint32_t *ids_low;
    uint32_t *value_starts;
    uint16_t *low;
    uint32_t *values;

    uint32_t *starts;
    uint64_t last_offset;
    uint64_t reach; /* largest distance from `last_offset`: DIRECTORY_SLACK buckets */
    uint64_t limit; /* last offset for which the directory has a bucket */
    uint8_t shift;
    uint64_t id_high; /* IDS_DIFFER_ABOVE, or the common upper half of all IDs so far */
};

#define IDS_DIFFER_ABOVE UINT64_MAX

/* ---- Beginning and ending ---- */

ADD_INLINE void pass_use_directory(struct pass *pass, const struct builder *builder)
{
    const struct address_directory *directory = &builder->directory;
    uint64_t limit = ((uint64_t)directory->capacity << directory->shift) - 1;
    pass->starts = directory->starts;
    pass->shift = directory->shift;
    pass->reach = (uint64_t)DIRECTORY_SLACK << directory->shift;
    pass->limit = limit < UINT32_MAX ? limit : UINT32_MAX;
}

/* Returns the bucket after that of the last record. */
ADD_INLINE uint32_t pass_next_bucket(const struct pass *pass)
{
    return (uint32_t)(pass->last_offset >> pass->shift) + 1;
}

ADD_INLINE struct pass pass_begin(const struct builder *builder, const struct cairn_stackmap *map,
                                  size_t available, size_t offset)
{
    const cairn_table *table = builder->table;
    struct pass pass = {
        .at = map->bytes + offset,
        .end = map->bytes + available,
        .index = builder->record_count,
        .word = (uint32_t)(builder->next_word - table->values),
        .ids_low = table->ids_low,
        .value_starts = table->value_starts,
        .low = table->low,
        .values = table->values,
        .last_offset = builder->last_offset,
        .id_high = builder->ids_differ_above ? IDS_DIFFER_ABOVE : table->id_high,
    };
    pass_use_directory(&pass, builder);
    return pass;
}

ADD_INLINE void pass_end(const struct pass *pass, struct builder *builder)
{
    builder->record_count = pass->index;
    builder->next_word = builder->table->values + pass->word;
    builder->last_offset = pass->last_offset;
    builder->directory.next = pass_next_bucket(pass);
    builder->ids_differ_above = pass->id_high == IDS_DIFFER_ABOVE;
}

/* ---- One record ---- */

/* Adds a record's address. False if the addresses do not ascend, or are too far apart. */
ADD_INLINE bool pass_note_address(struct pass *pass, struct builder *builder, uint64_t offset)
{
    bool is_far = offset - pass->last_offset > pass->reach || offset > pass->limit;
    if (__builtin_expect(is_far, 0)) {
        if (offset < pass->last_offset || offset > UINT32_MAX)
            return false;
        builder->directory.next = pass_next_bucket(pass);
        pass->last_offset = directory_advance(builder, offset, pass->index);
        pass_use_directory(pass, builder);
    }
    /* Entries after this record's bucket are not final: later records overwrite them. */
    const four_words index = (four_words){0} + pass->index;
    memcpy(pass->starts + pass_next_bucket(pass), &index, sizeof index);
    pass->low[pass->index] = (uint16_t)offset;
    pass->last_offset = offset;
    return true;
}

ADD_INLINE void pass_note_id(struct pass *pass, const struct builder *builder, uint64_t id)
{
    pass->ids_low[pass->index] = (uint32_t)id;
    if (__builtin_expect(id >> 32 == pass->id_high, 1))
        return;
    if (pass->id_high != IDS_DIFFER_ABOVE)
        builder_begin_ids_high(builder, pass->index);
    pass->id_high = IDS_DIFFER_ABOVE;
    builder->ids_high[pass->index] = (uint32_t)(id >> 32);
}

/* Packs the record's values; false if a location is invalid. Tries the compact form first, without
 * a check, because whatever fits it is valid. */
ADD_INLINE bool pass_add_values(struct pass *pass, const struct cairn_stackmap *map,
                                const struct record_parts *record, enum cairn_byte_order byte_order,
                                pack_function *pack, const void *context,
                                const struct packing *packing)
{
    uint32_t start = pass->word;
    size_t room = (size_t)(pass->end - record->locations);
    if (__builtin_expect(record->liveout_count > 0, 0)) {
        start |= VALUE_HAS_LIVEOUTS;
        pass->word += pack_liveouts(byte_order, record, pass->end, pass->values + pass->word);
    }
    uint32_t *words = pass->values + pass->word;
    uint32_t count = record->location_count;
    if (__builtin_expect(!pack(context, record->locations, count, room, words), 0)) {
        const struct packed large =
            pack_large(map, packing->constants.first, record->locations, count, words);
        if (large.word_count == 0)
            return false;
        count = large.word_count;
        start |= (uint32_t)large.form << VALUE_FORM_SHIFT;
    }
    pass->word += count;
    pass->value_starts[pass->index] = start;
    return true;
}

/* ---- Many records ---- */

/* Adds the next `count` records. On an error, the record at `at` is invalid. */
ADD_INLINE enum pass_result pass_add_records(struct pass *pass, struct builder *builder,
                                             const struct cairn_stackmap *map,
                                             uint64_t function_offset, uint32_t count,
                                             ptrdiff_t ahead, size_t stride,
                                             enum cairn_byte_order byte_order, pack_function *pack,
                                             const void *context, const struct packing *packing)
{
    for (uint32_t end = pass->index + count; pass->index != end; pass->index++) {
        struct record_parts record;
        if (!record_split(pass->at, (size_t)(pass->end - pass->at), stride, byte_order, ahead,
                          &record))
            return PASS_TRUNCATED;
        if (!pass_note_address(pass, builder, function_offset + record.code_offset))
            return PASS_DESCENDS;
        pass_note_id(pass, builder, record.id);
        if (!pass_add_values(pass, map, &record, byte_order, pack, context, packing))
            return PASS_CORRUPT;
        pass->at = record.end;
    }
    return PASS_DONE;
}

/* Returns the distance from a run to the run that is read some records later. Runs may be anywhere
 * in memory. */
ADD_INLINE ptrdiff_t run_ahead(const struct record_run *runs, size_t count, size_t index)
{
    enum { RECORDS_AHEAD = 16 };
    size_t later = index + 1 + RECORDS_AHEAD / runs[index].count;
    if (later >= count)
        return 0;
    return (ptrdiff_t)((uintptr_t)runs[later].bytes - (uintptr_t)runs[index].bytes);
}

ADD_INLINE void add_runs_with(struct builder *builder, const struct cairn_stackmap *map,
                              const struct packing *packing, const struct record_run *runs,
                              size_t count, size_t stride, enum cairn_byte_order byte_order,
                              pack_function *pack, const void *context)
{
    struct pass pass = pass_begin(builder, map, map->size, 0);
    for (size_t i = 0; i < count; i++) {
        pass.at = runs[i].bytes;
        enum pass_result result = pass_add_records(
            &pass, builder, map, runs[i].function_address - builder->table->base, runs[i].count,
            run_ahead(runs, count, i), stride, byte_order, pack, context, packing);
        assert(result == PASS_DONE);
        (void)result;
    }
    pass_end(&pass, builder);
}

/* Whether the function begins after the last function, and not before the last record. */
ADD_INLINE bool function_ascends(const struct builder *builder, const struct pass *pass,
                                 uint64_t address)
{
    const cairn_table *table = builder->table;
    uint64_t offset = address - table->base;
    uint32_t count = builder->function_count;
    return address >= table->base && offset >= pass->last_offset && offset <= UINT32_MAX &&
           (count == 0 || offset > table->functions[count - 1].code_offset);
}

ADD_INLINE enum cairn_status add_functions_with(struct builder *builder,
                                                const struct cairn_stackmap *map, size_t available,
                                                const struct packing *packing, size_t *end_offset,
                                                size_t stride, enum cairn_byte_order byte_order,
                                                pack_function *pack, const void *context,
                                                struct cairn_error *error)
{
    struct pass pass = pass_begin(builder, map, available, map->records_offset);
    uint32_t first = pass.index;
    enum pass_result result = PASS_DONE;
    for (uint32_t f = 0; f < map->function_count && result == PASS_DONE; f++) {
        const struct cairn_stackmap_function function = cairn_stackmap_function(map, f);
        if (function.record_count == 0)
            continue;
        if (!function_ascends(builder, &pass, function.address))
            return BUILDER_NEEDS_SORTING;
        builder_note_function(builder, &function, pass.index);
        result = pass_add_records(&pass, builder, map, function.address - builder->table->base,
                                  (uint32_t)function.record_count, RECORD_PREFETCH_BYTES, stride,
                                  byte_order, pack, context, packing);
    }
    pass_end(&pass, builder);
    *end_offset = (size_t)(pass.at - map->bytes);
    return builder_explain(map, result, pass.at, pass.index - first, error);
}

#endif
