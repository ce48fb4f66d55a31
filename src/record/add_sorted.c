/*
 * Adds records the general way: maps and functions in any order, several maps per section, and
 * version 1.
 *
 * First all maps are checked. Then the records are split into runs. A run is a sequence of records
 * of one function with ascending addresses, and mostly contains all records of the function. Runs
 * are sorted stably and added in that order. Runs that overlap, such as those of identical
 * functions that a linker has folded, are first split into single records.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/array.h"
#include "base/error.h"
#include "base/sort.h"
#include "record/builder.h"

#include <assert.h>
#include <string.h>

/* Consecutive records of a map that belong to one function and have been checked. */
struct record_run {
    const uint8_t *bytes; /* of the first record */
    uint64_t function_address;
    uint32_t count;
    uint32_t map; /* indices of its map and function in `found` */
    uint32_t function;
};

struct run {
    struct record_run records;
    bool overlaps;
    uint64_t first_address;
    uint64_t last_address;
};

struct found_map {
    struct cairn_stackmap map;
    size_t section;
    uint32_t first_constant;
};

/* Numbers of runs or functions, in the order of their addresses. */
struct order {
    struct sort_key *keys; /* `count`, followed by as many again, as space for sorting */
    size_t count;
};

/* All maps, runs and functions, in the order of the sections. */
struct found {
    struct cairn_allocator allocator;
    struct found_map *maps;
    size_t map_count;
    size_t map_capacity;
    struct run *runs;
    size_t run_count;
    size_t run_capacity;
    struct cairn_stackmap_function *functions;
    size_t function_count;
    size_t function_capacity;
    struct totals totals;
    uint64_t end_address; /* end of the last record or function */
    struct order run_order;
    struct order function_order;
};

/* Returns the run at `place` in the order of addresses. */
static const struct record_run *run_at(const struct found *found, size_t place)
{
    return &found->runs[found->run_order.keys[place].number].records;
}

/* ---- Memory ---- */

static enum cairn_status no_memory(const struct found *found, struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to sort %llu records",
                     (unsigned long long)found->totals.records);
}

static struct run *new_run(struct found *found)
{
    struct run *runs = array_reserve(&found->allocator, found->runs, found->run_count, 1,
                                     &found->run_capacity, sizeof *runs);
    if (runs == NULL)
        return NULL;
    found->runs = runs;
    return &runs[found->run_count++];
}

static void free_order(const struct cairn_allocator *allocator, struct order *order)
{
    memory_free(allocator, order->keys, 2 * order->count * sizeof *order->keys);
    *order = (struct order){.keys = NULL};
}

/* ---- Checking all maps ---- */

static enum cairn_status read_section(const struct builder *builder, size_t section,
                                      struct found *found, struct cairn_error *error)
{
    size_t offset = 0;
    while (!builder_is_end(builder, &builder->sections[section], offset)) {
        struct cairn_stackmap map;
        enum cairn_status status =
            cairn_stackmap_read(&builder->sections[section], &offset, &map, error);
        if (status != CAIRN_OK)
            return status;
        if (map.functions == CAIRN_STACKMAP_FUNCTIONS_UNKNOWN)
            return error_set(error, CAIRN_ERROR_UNSUPPORTED, map.section_offset,
                             "a version 1 map of %u functions does not say which of its %u records "
                             "belong to which: their addresses are not known",
                             map.function_count, map.record_count);
        struct found_map *maps = array_reserve(&found->allocator, found->maps, found->map_count, 1,
                                               &found->map_capacity, sizeof *maps);
        if (maps == NULL)
            return no_memory(found, error);
        found->maps = maps;
        maps[found->map_count++] =
            (struct found_map){map, section, (uint32_t)found->totals.constants};
        totals_add(&found->totals, &map, map.size);
    }
    return found->totals.records < UINT32_MAX ? CAIRN_OK : no_memory(found, error);
}

/* ---- Splitting records into runs ---- */

static bool begin_function(struct found *found, const struct cairn_stackmap_function *function)
{
    struct totals *totals = &found->totals;
    struct cairn_stackmap_function *functions =
        array_reserve(&found->allocator, found->functions, found->function_count, 1,
                      &found->function_capacity, sizeof *functions);
    if (functions == NULL)
        return false;
    found->functions = functions;
    functions[found->function_count++] = *function;
    if (function->address < totals->first_address)
        totals->first_address = function->address;
    if (function->address > totals->last_address)
        totals->last_address = function->address;
    return true;
}

/* Begins a run. `function` is the index of its function in `found`. */
static bool begin_run(struct found *found, uint32_t map, const struct cairn_stackmap_record *record,
                      uint32_t function, uint64_t function_address)
{
    struct run *run = new_run(found);
    if (run == NULL)
        return false;
    *run = (struct run){
        .records = {.bytes = found->maps[map].map.bytes + record->offset,
                    .function_address = function_address,
                    .map = map,
                    .function = function},
        .first_address = function_address + record->code_offset,
        .last_address = function_address + record->code_offset,
    };
    return true;
}

static enum cairn_status find_runs(struct found *found, uint32_t map_index,
                                   struct cairn_error *error)
{
    const struct cairn_stackmap *map = &found->maps[map_index].map;
    struct cairn_stackmap_record record = {0};
    struct cairn_stackmap_function function = {.address = 0};
    uint32_t current = CAIRN_STACKMAP_NO_FUNCTION;
    uint64_t previous = 0;
    while (cairn_stackmap_next(map, &record)) {
        bool is_new = record.function != current;
        if (is_new) {
            current = record.function;
            function = cairn_stackmap_function(map, current);
            if (!begin_function(found, &function))
                return no_memory(found, error);
        }
        uint64_t address;
        if (__builtin_add_overflow(function.address, record.code_offset, &address))
            return error_set(error, CAIRN_ERROR_RANGE, map->section_offset + record.offset,
                             "record %u lies beyond the end of the address space", record.index);
        if ((is_new || address < previous) &&
            !begin_run(found, map_index, &record, (uint32_t)(found->function_count - 1),
                       function.address))
            return no_memory(found, error);
        struct run *run = &found->runs[found->run_count - 1];
        run->records.count++;
        run->last_address = address;
        previous = address;
        found->end_address = address > found->end_address ? address : found->end_address;
    }
    return CAIRN_OK;
}

static enum cairn_status find_all_runs(const struct builder *builder, struct found *found,
                                       struct cairn_error *error)
{
    for (size_t i = 0; i < found->map_count; i++) {
        enum cairn_status status = find_runs(found, (uint32_t)i, error);
        if (status == CAIRN_ERROR_MEMORY)
            return status;
        if (status != CAIRN_OK)
            return builder_name_section(builder, found->maps[i].section, status, error);
    }
    uint64_t base = found->totals.first_address;
    uint64_t end = found->totals.last_address > found->end_address ? found->totals.last_address
                                                                   : found->end_address;
    if (found->run_count == 0 || end - base <= UINT32_MAX)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_RANGE, end,
                     "a record at 0x%llx lies 4 GiB or more from the first function, at 0x%llx: "
                     "one table holds code that is closer together",
                     (unsigned long long)end, (unsigned long long)base);
}

/* ---- Sorting runs ---- */

/* Sorts `count` elements by their addresses, of which the first is at `addresses` and the others
 * follow at a distance of `stride` bytes. */
static bool sort(const struct found *found, struct order *order, size_t count,
                 const uint64_t *addresses, size_t stride)
{
    if (count == 0)
        return true;
    free_order(&found->allocator, order);
    order->keys = memory_new(&found->allocator, 2 * count, sizeof *order->keys);
    if (order->keys == NULL)
        return false;
    order->count = count;
    for (size_t i = 0; i < count; i++) {
        uint64_t address;
        memcpy(&address, (const char *)addresses + i * stride, sizeof address);
        order->keys[i] = (struct sort_key){.key = (uint32_t)(address - found->totals.first_address),
                                           .number = (uint32_t)i};
    }
    sort_keys(order->keys, order->keys + count, count);
    return true;
}

static bool sort_runs(struct found *found)
{
    const uint64_t *addresses = found->run_count == 0 ? NULL : &found->runs->first_address;
    return sort(found, &found->run_order, found->run_count, addresses, sizeof *found->runs);
}

/* Marks runs that share addresses. Single records keep their order. */
static bool mark_overlaps(struct found *found)
{
    bool found_any = false;
    struct run *previous = NULL;
    uint64_t end = 0;
    for (size_t i = 0; i < found->run_count; i++) {
        struct run *run = &found->runs[found->run_order.keys[i].number];
        if (previous != NULL && run->first_address <= end) {
            previous->overlaps = previous->records.count > 1;
            run->overlaps = run->records.count > 1;
            found_any |= previous->overlaps | run->overlaps;
        }
        if (previous == NULL || run->last_address >= end) {
            end = run->last_address;
            previous = run;
        }
    }
    return found_any;
}

/* Splits the runs that overlap into single records. */
static bool split_overlapping(struct found *found)
{
    struct found split = {.allocator = found->allocator, .maps = found->maps};
    bool appended = true;
    for (size_t i = 0; i < found->run_count && appended; i++) {
        const struct run *run = &found->runs[i];
        const struct record_run *records = &run->records;
        const struct cairn_stackmap *map = &found->maps[records->map].map;
        struct cairn_stackmap_record record = {.offset = (size_t)(records->bytes - map->bytes)};
        if (!run->overlaps) {
            struct run *same = new_run(&split);
            appended = same != NULL;
            if (appended)
                *same = *run;
            continue;
        }
        for (uint32_t k = 0; k < records->count && appended; k++) {
            cairn_stackmap_load_record(map, &record);
            appended = begin_run(&split, records->map, &record, records->function,
                                 records->function_address);
            if (appended)
                split.runs[split.run_count - 1].records.count = 1;
            record.offset = record.end_offset;
        }
    }
    struct found *unused = appended ? found : &split;
    memory_free(&found->allocator, unused->runs, unused->run_capacity * sizeof *unused->runs);
    if (appended) {
        found->runs = split.runs;
        found->run_count = split.run_count;
        found->run_capacity = split.run_capacity;
    }
    return appended;
}

/* ---- Adding ---- */

/* Adds the runs in the order of their addresses. */
static void add_runs(struct builder *builder, const struct found *found)
{
    enum { RECORDS_AHEAD = 16 };
    struct packing packing = {.map = NULL};
    for (size_t i = 0; i < found->run_count; i++) {
        const struct record_run *run = run_at(found, i);
        const struct found_map *from = &found->maps[run->map];
        if (packing.map != &from->map)
            packing = packing_of(&from->map, from->first_constant);
        /* Runs may be anywhere in memory, so that of some records later is prefetched. */
        size_t later = i + 1 + RECORDS_AHEAD / run->count;
        uintptr_t soon = (uintptr_t)(later < found->run_count ? run_at(found, later) : run)->bytes;
        const uint8_t *at = run->bytes;
        enum added added = builder_add_records(
            builder, &packing, &at, from->map.bytes + from->map.size, run->function_address,
            run->count, (ptrdiff_t)(soon - (uintptr_t)run->bytes));
        assert(added == ADDED);
        (void)added;
    }
}

/* Adds the functions and owners. A function begins with the first record at or after its address.
 * If several functions have the same address, because a linker folded identical ones, the first one
 * counts. */
static bool add_functions(struct builder *builder, struct found *found)
{
    const size_t count = found->function_count;
    if (count == 0)
        return true;
    builder->owner_count = count;
    builder->owners = memory_new(&builder->allocator, count, sizeof *builder->owners);
    if (builder->owners == NULL || !sort(found, &found->function_order, count,
                                         &found->functions->address, sizeof *found->functions))
        return false;
    const struct sort_key *keys = found->function_order.keys;
    for (size_t i = 0; i < count; i++) {
        const struct cairn_stackmap_function *function = &found->functions[keys[i].number];
        if (i == 0 || keys[i - 1].key != keys[i].key)
            builder_note_function(builder, function, directory_first_record(builder, keys[i].key));
        builder->owners[keys[i].number] =
            (struct table_owner){function->stack_size, builder->function_count - 1};
    }
    return true;
}

/* ---- Owners of records ---- */

/* Whether the function of every record is the last one that begins at or before it. */
static bool owners_follow_addresses(const struct builder *builder, const struct found *found)
{
    const struct table_function *functions = builder->table->functions;
    uint32_t record = 0;
    uint32_t function = 0;
    for (size_t i = 0; i < found->run_count; i++) {
        const struct record_run *run = run_at(found, i);
        const struct table_owner *owner = &builder->owners[run->function];
        for (uint32_t end = record + run->count; record < end; record++) {
            while (function + 1 < builder->function_count &&
                   functions[function + 1].first_record <= record)
                function++;
            if (owner->function != function ||
                owner->stack_size != table_stack_size(builder->table->stack_sizes,
                                                      builder->wide_stack_sizes, function))
                return false;
        }
    }
    return true;
}

/* Records the owners. False if there is no memory. */
static bool note_owners(struct builder *builder, const struct found *found)
{
    if (owners_follow_addresses(builder, found)) {
        builder_free_owners(builder);
        return true;
    }
    builder->record_owners =
        memory_new(&builder->allocator, builder->record_capacity, sizeof *builder->record_owners);
    if (builder->record_owners == NULL)
        return false;
    uint32_t record = 0;
    for (size_t i = 0; i < found->run_count; i++)
        for (uint32_t k = 0; k < run_at(found, i)->count; k++)
            builder->record_owners[record++] = run_at(found, i)->function;
    return true;
}

static enum cairn_status add_found(struct builder *builder, struct found *found,
                                   struct cairn_error *error)
{
    for (size_t i = 0; i < builder->section_count; i++) {
        enum cairn_status read = read_section(builder, i, found, error);
        if (read != CAIRN_OK)
            return builder_name_section(builder, i, read, error);
    }
    enum cairn_status status = find_all_runs(builder, found, error);
    if (status != CAIRN_OK)
        return status;
    if (!sort_runs(found) ||
        (mark_overlaps(found) && (!split_overlapping(found) || !sort_runs(found))))
        return no_memory(found, error);
    status = builder_allocate(builder, &found->totals, error);
    if (status != CAIRN_OK)
        return status;
    add_runs(builder, found);
    if (!add_functions(builder, found) || !note_owners(builder, found))
        return no_memory(found, error);
    builder->constant_count = 0;
    for (size_t i = 0; i < found->map_count; i++)
        builder_note_constants(builder, &found->maps[i].map);
    return CAIRN_OK;
}

enum cairn_status builder_add_sorted(struct builder *builder, struct cairn_error *error)
{
    struct found found = {
        .allocator = builder->allocator,
        .totals = {.first_address = UINT64_MAX},
    };
    enum cairn_status status = add_found(builder, &found, error);
    const struct cairn_allocator *allocator = &found.allocator;
    free_order(allocator, &found.run_order);
    free_order(allocator, &found.function_order);
    memory_free(allocator, found.functions, found.function_capacity * sizeof *found.functions);
    memory_free(allocator, found.runs, found.run_capacity * sizeof *found.runs);
    memory_free(allocator, found.maps, found.map_capacity * sizeof *found.maps);
    return status;
}
