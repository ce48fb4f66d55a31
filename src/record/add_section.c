/*
 * Adds records the fast way: with one pass over each section.
 *
 * This requires what LLVM and linkers produce: one map per section, a record count for each
 * function, and addresses that ascend through all sections. If the input is different, this is
 * detected either from the functions, before the pass, or during the pass. Then add_sorted.c starts
 * again from the beginning.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "record/add_records.h"

/* ---- The loops ---- */

#define OTHER_BYTE_ORDER                                                                           \
    (CAIRN_BYTE_ORDER_NATIVE == CAIRN_LITTLE_ENDIAN ? CAIRN_BIG_ENDIAN : CAIRN_LITTLE_ENDIAN)

/* Defines a loop for each kind of map, which has its size of locations and its byte order. */
#define DEFINE_ADDER(name, stride, byte_order)                                                     \
    ADD_INLINE bool pack_##name(const void *context, const uint8_t *locations, uint32_t count,     \
                                size_t room, uint32_t *words)                                      \
    {                                                                                              \
        return pack_compact(context, locations, count, room, stride, byte_order, words);           \
    }                                                                                              \
    static enum cairn_status add_functions_##name(                                                 \
        struct builder *builder, const struct cairn_stackmap *map, size_t available,               \
        const struct packing *packing, size_t *end_offset, struct cairn_error *error)              \
    {                                                                                              \
        return add_functions_with(builder, map, available, packing, end_offset, stride,            \
                                  byte_order, pack_##name, packing, error);                        \
    }                                                                                              \
    static void add_runs_##name(struct builder *builder, const struct cairn_stackmap *map,         \
                                const struct packing *packing, const struct record_run *runs,      \
                                size_t count)                                                      \
    {                                                                                              \
        add_runs_with(builder, map, packing, runs, count, stride, byte_order, pack_##name,         \
                      packing);                                                                    \
    }                                                                                              \
    static const struct record_adder adder_##name = {add_functions_##name, add_runs_##name}

DEFINE_ADDER(native, CAIRN_STACKMAP_LOCATION_BYTES, CAIRN_BYTE_ORDER_NATIVE);
DEFINE_ADDER(swapped, CAIRN_STACKMAP_LOCATION_BYTES, OTHER_BYTE_ORDER);
DEFINE_ADDER(old_native, CAIRN_STACKMAP_LOCATION_V1_BYTES, CAIRN_BYTE_ORDER_NATIVE);
DEFINE_ADDER(old_swapped, CAIRN_STACKMAP_LOCATION_V1_BYTES, OTHER_BYTE_ORDER);

const struct record_adder *builder_choose_adder(const struct builder *builder,
                                                const struct cairn_stackmap *map)
{
    bool native = map->byte_order == CAIRN_BYTE_ORDER_NATIVE;
    if (map->version < 3)
        return native ? &adder_old_native : &adder_old_swapped;
    if (!native)
        return &adder_swapped;
    const struct record_adder *sixteen = builder->portably ? NULL : builder_sixteen_adder();
    return sixteen != NULL ? sixteen : &adder_native;
}

/* ---- Sections ---- */

static enum cairn_status add_section(struct builder *builder, size_t index,
                                     const struct cairn_stackmap *map, struct cairn_error *error)
{
    const struct cairn_section *section = &builder->sections[index];
    const struct record_adder *adder = builder_choose_adder(builder, map);
    const struct packing packing = packing_of(map, builder->constant_count);
    size_t end_offset;
    enum cairn_status status =
        adder->add_functions(builder, map, section->size, &packing, &end_offset, error);
    if (status != CAIRN_OK)
        return status == BUILDER_NEEDS_SORTING
                   ? status
                   : builder_name_section(builder, index, status, error);
    builder_note_constants(builder, map);
    bool has_more = !builder_is_end(builder, section, stackmap_skip_padding(section, end_offset));
    return has_more ? BUILDER_NEEDS_SORTING : CAIRN_OK;
}

/* Adds the functions that have records to the totals. False if they do not ascend. */
static bool measure_functions(const struct cairn_stackmap *map, struct totals *totals)
{
    for (uint32_t i = 0; i < map->function_count; i++) {
        const struct cairn_stackmap_function function = cairn_stackmap_function(map, i);
        if (function.record_count == 0)
            continue;
        if (totals->first_address == UINT64_MAX)
            totals->first_address = function.address;
        else if (function.address <= totals->last_address)
            return false;
        totals->last_address = function.address;
    }
    return true;
}

/* Opens the first map of each section, and adds up the counts of their headers and functions. */
static enum cairn_status open_maps(const struct builder *builder, struct cairn_stackmap *maps,
                                   struct totals *totals, struct cairn_error *error)
{
    bool ascends = true;
    for (size_t i = 0; i < builder->section_count; i++) {
        if (builder->sections[i].size == 0)
            return BUILDER_NEEDS_SORTING;
        enum cairn_status status = stackmap_open(&builder->sections[i], 0, &maps[i], error);
        if (status != CAIRN_OK)
            return builder_name_section(builder, i, status, error);
        if (maps[i].version == 1)
            return BUILDER_NEEDS_SORTING;
        totals_add(totals, &maps[i], builder->sections[i].size);
        ascends = ascends && measure_functions(&maps[i], totals);
    }
    return ascends ? CAIRN_OK : BUILDER_NEEDS_SORTING;
}

static enum cairn_status add_opened(struct builder *builder, const struct cairn_stackmap *maps,
                                    const struct totals *totals, struct cairn_error *error)
{
    enum cairn_status status = builder_allocate(builder, totals, error);
    for (size_t i = 0; i < builder->section_count && status == CAIRN_OK; i++) {
        if (builder->record_count == 0 && maps[i].record_count > 0)
            builder_begin_ids(builder, &maps[i], maps[i].records_offset);
        status = add_section(builder, i, &maps[i], error);
    }
    return status;
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
        status = add_opened(builder, maps, &totals, error);
    memory_free(&builder->allocator, maps, count * sizeof *maps);
    return status;
}
