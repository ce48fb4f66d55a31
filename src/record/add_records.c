/*
 * Adds records to a table, and whole sections with one pass over each.
 *
 * One pass is enough for what LLVM and linkers produce: one map per section, a record count for
 * each function, and addresses that ascend through all sections. If the input is different, this is
 * detected either from the functions, before the pass, or during the pass. Then add_sorted.c starts
 * again from the beginning.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "record/builder.h"

/* ---- Records ---- */

/* Adds the address of a record. False if it is before the last one, or too far away. `directory` is
 * a copy of the builder's, which stays in registers. */
static inline bool add_address(struct builder *builder, struct address_directory *directory,
                               uint32_t index, uint64_t offset)
{
    bool is_far = offset - directory->last_offset > directory->reach || offset > directory->limit;
    if (__builtin_expect(is_far, 0)) {
        if (offset < directory->last_offset || offset > UINT32_MAX)
            return false;
        builder->directory.last_offset = directory->last_offset;
        directory_advance(builder, index, offset);
        *directory = builder->directory;
    }
    /* All buckets up to the record's begin with this record. Those after it are set again by later
     * records: so there is no loop of unknown length here. */
    uint32_t *starts = directory->starts + (directory->last_offset >> directory->shift) + 1;
    for (int i = 0; i < DIRECTORY_SLACK; i++)
        starts[i] = index;
    directory->last_offset = offset;
    return true;
}

/* Adds the upper half of an ID that is not the common one. */
static void add_id_high(struct builder *builder, uint32_t index, uint32_t high)
{
    if (index == 0) {
        builder->id_high = high;
        builder->table->id_high = high;
        return;
    }
    for (uint32_t i = 0; i < index && builder->id_high != IDS_DIFFER_ABOVE; i++)
        builder->ids_high[i] = (uint32_t)builder->id_high;
    builder->id_high = IDS_DIFFER_ABOVE;
    builder->ids_high[index] = high;
}

/* Implements builder_add_records. Inlined, so that the compiler specialises it for constants. */
static inline __attribute__((always_inline)) enum added add_records(
    struct builder *builder, const struct packing *packing, const uint8_t **next,
    const uint8_t *end, uint64_t function_offset, uint32_t count, ptrdiff_t ahead, size_t stride,
    enum cairn_byte_order byte_order)
{
    cairn_table *table = builder->table;
    uint16_t *const low = table->low;
    uint32_t *const ids_low = table->ids_low;
    uint32_t *const value_starts = table->value_starts;
    const uint32_t *const values = table->values;
    const uint32_t last = builder->record_count + count;
    struct address_directory directory = builder->directory;
    uint32_t *words = builder->next_word;
    const uint8_t *at = *next;
    enum added added = ADDED;
    uint32_t index;
    for (index = builder->record_count; index != last; index++) {
        struct record_parts record;
        if (!record_split(at, (size_t)(end - at), stride, byte_order, ahead, &record)) {
            added = ADDED_TRUNCATED;
            break;
        }
        const uint64_t offset = function_offset + record.code_offset;
        if (!add_address(builder, &directory, index, offset)) {
            added = ADDED_DESCENDS;
            break;
        }
        low[index] = (uint16_t)offset;
        ids_low[index] = (uint32_t)record.id;
        if (__builtin_expect(record.id >> 32 != builder->id_high, 0))
            add_id_high(builder, index, (uint32_t)(record.id >> 32));
        uint32_t *const first = words;
        uint32_t flags = 0;
        if (record.liveout_count > 0) {
            words = pack_liveouts(record.liveouts, record.liveout_count, byte_order, words);
            flags = VALUE_HAS_LIVEOUTS;
        }
        if (pack_compact(packing, &record, stride, byte_order, words))
            words += record.location_count;
        else
            words = pack_large(packing, record.locations, record.location_count, words, &flags);
        if (words == NULL) {
            words = first;
            added = ADDED_CORRUPT;
            break;
        }
        value_starts[index] = (uint32_t)(first - values) | flags;
        at = record.end;
    }
    builder->directory.last_offset = directory.last_offset;
    builder->record_count = index;
    builder->next_word = words;
    *next = at;
    return added;
}

enum added builder_add_records(struct builder *builder, const struct packing *packing,
                               const uint8_t **at, const uint8_t *end, uint64_t function_address,
                               uint32_t count, ptrdiff_t ahead)
{
    const uint64_t offset = function_address - builder->table->base;
    const enum cairn_byte_order byte_order = packing->map->byte_order;
    if (packing->map->version == 3 && byte_order == CAIRN_BYTE_ORDER_NATIVE)
        return add_records(builder, packing, at, end, offset, count, ahead,
                           CAIRN_STACKMAP_LOCATION_BYTES, CAIRN_BYTE_ORDER_NATIVE);
    return add_records(builder, packing, at, end, offset, count, ahead, packing->stride,
                       byte_order);
}

/* ---- Sections ---- */

/* Adds the map of a section. */
static enum cairn_status add_map(struct builder *builder, const struct cairn_section *section,
                                 const struct cairn_stackmap *map, struct cairn_error *error)
{
    const struct packing packing = packing_of(map, builder->constant_count);
    const uint32_t first = builder->record_count;
    const uint8_t *at = map->bytes + map->records_offset;
    const uint8_t *end = map->bytes + section->size;
    for (uint32_t i = 0; i < map->function_count; i++) {
        const struct cairn_stackmap_function function = cairn_stackmap_function(map, i);
        if (function.record_count == 0)
            continue;
        /* The functions ascend, but the last record may be after the start of this function. */
        const uint64_t function_offset = function.address - builder->table->base;
        if (function_offset < builder->directory.last_offset || function_offset > UINT32_MAX)
            return BUILDER_NEEDS_SORTING;
        builder_note_function(builder, &function, builder->record_count);
        enum added added =
            builder_add_records(builder, &packing, &at, end, function.address,
                                (uint32_t)function.record_count, RECORD_PREFETCH_BYTES);
        size_t offset = (size_t)(at - map->bytes);
        if (added == ADDED_DESCENDS)
            return BUILDER_NEEDS_SORTING;
        if (added == ADDED_TRUNCATED)
            return stackmap_record_truncated(map, offset, builder->record_count - first, error);
        if (added == ADDED_CORRUPT)
            return stackmap_check_locations(map, offset, builder->record_count - first, error);
    }
    builder_note_constants(builder, map);
    size_t map_end = stackmap_skip_padding(section, (size_t)(at - map->bytes));
    return builder_is_end(builder, section, map_end) ? CAIRN_OK : BUILDER_NEEDS_SORTING;
}

/* Opens the first map of each section, and adds up the counts of their headers and functions. */
static enum cairn_status open_maps(const struct builder *builder, struct cairn_stackmap *maps,
                                   struct totals *totals, struct cairn_error *error)
{
    bool ascends = true;
    for (size_t i = 0; i < builder->section_count; i++) {
        struct cairn_stackmap *map = &maps[i];
        if (builder->sections[i].size == 0)
            return BUILDER_NEEDS_SORTING;
        enum cairn_status status = stackmap_open(&builder->sections[i], 0, map, error);
        if (status != CAIRN_OK)
            return builder_name_section(builder, i, status, error);
        if (map->version == 1)
            return BUILDER_NEEDS_SORTING;
        totals_add(totals, map, builder->sections[i].size);
        for (uint32_t k = 0; k < map->function_count && ascends; k++) {
            const struct cairn_stackmap_function function = cairn_stackmap_function(map, k);
            if (function.record_count == 0)
                continue;
            if (totals->first_address == UINT64_MAX)
                totals->first_address = function.address;
            else
                ascends = function.address > totals->last_address;
            totals->last_address = function.address;
        }
    }
    return ascends ? CAIRN_OK : BUILDER_NEEDS_SORTING;
}

enum cairn_status builder_add_sections(struct builder *builder, struct cairn_error *error)
{
    size_t count = builder->section_count;
    if (count == 0)
        return BUILDER_NEEDS_SORTING;
    struct cairn_stackmap *maps = memory_new(&builder->allocator, count, sizeof *maps);
    if (maps == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu sections", count);
    struct totals totals = {.first_address = UINT64_MAX};
    enum cairn_status status = open_maps(builder, maps, &totals, error);
    if (status == CAIRN_OK)
        status = builder_allocate(builder, &totals, error);
    for (size_t i = 0; i < count && status == CAIRN_OK; i++) {
        status = add_map(builder, &builder->sections[i], &maps[i], error);
        if (status != CAIRN_OK && status != BUILDER_NEEDS_SORTING)
            status = builder_name_section(builder, i, status, error);
    }
    memory_free(&builder->allocator, maps, count * sizeof *maps);
    return status;
}
