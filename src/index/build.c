/*
 * Building a table.
 *
 * The fast way is one pass that checks, packs and notes each record, into arrays that are sized
 * for the worst case and cut to size at the end: memory that was not touched costs nothing. It
 * needs what LLVM and linkers produce: one map a section with counted functions, and addresses
 * that ascend. Anything else takes the general way: check everything first, sort, then pack.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "format/record.h"
#include "index/layout.h"
#include "index/sort.h"
#include "index/values.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What the fast way answers where the general one is needed. */
#define NEEDS_GENERAL_WAY ((enum cairn_status) - 1)

struct builder {
    const struct cairn_section *sections;
    size_t section_count;
    cairn_table *table;
    size_t capacity_bytes; /* of the allocation */
    uint32_t *offsets;     /* of the records' addresses, from the base */
    uint64_t *stack_sizes;
    uint32_t record_count; /* so far */
    uint32_t function_count;
    uint32_t constant_count;
    uint32_t *next_word;
    uint64_t last_id;
    /* For the map that is being packed: how, and how many constants may be named compactly. */
    struct compact_kind kinds[8];
    uint32_t compact_constants;
};

struct totals {
    uint64_t records;
    uint64_t functions;
    uint64_t constants;
    size_t bytes;
};

/* ---- Errors ---- */

static enum cairn_status name_section(const struct builder *builder, size_t index,
                                      enum cairn_status status, struct cairn_error *error)
{
    if (error == NULL || builder->section_count == 1)
        return status;
    struct cairn_error inner = *error;
    error_set(error, status, inner.offset, "section %zu: %.200s", index, inner.message);
    return status;
}

static enum cairn_status span_error(uint64_t base, uint64_t address, struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_RANGE, address,
                     "a record at 0x%llx lies 4 GiB or more from the first function, at 0x%llx: "
                     "one table holds code that is closer together",
                     (unsigned long long)address, (unsigned long long)base);
}

/* ---- The allocation ---- */

static void *carve(uint8_t **at, size_t count, size_t size)
{
    void *array = *at;
    *at += (count * size + 7) & ~(size_t)7;
    return array;
}

static size_t carved(uint64_t count, size_t size)
{
    return ((size_t)count * size + 7) & ~(size_t)7;
}

static size_t directory_entries_max(uint64_t records)
{
    return (size_t)(records / RECORDS_PER_BUCKET) + (UINT32_MAX >> BUCKET_SHIFT_MAX) + 4;
}

/* Large tables are mostly page faults: ask for large pages. A hint, so nothing is checked. */
static void advise_large_pages(void *memory, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    enum { WORTH_IT = 8 << 20 };
    if (size < WORTH_IT)
        return;
    uintptr_t begin = ((uintptr_t)memory + page - 1) & ~(uintptr_t)(page - 1);
    uintptr_t end = ((uintptr_t)memory + size) & ~(uintptr_t)(page - 1);
    madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

/*
 * Room for the worst case: every value in the fullest form, both directories at their largest, an
 * order by ID. What is needed only while building lies at the far end.
 */
static enum cairn_status allocate(struct builder *builder, const struct totals *totals,
                                  const struct cairn_allocator *allocator,
                                  struct cairn_error *error)
{
    uint64_t n = totals->records;
    size_t kept = sizeof *builder->table + carved(n, 8) + carved(totals->constants, 8) +
                  carved(n + 1, 4) + carved(totals->functions, sizeof(struct table_function)) +
                  carved(n + LOW_PADDING, 2) + carved(n, 1) + carved(totals->bytes, 1) +
                  2 * carved(directory_entries_max(n), 4) + carved(n, 4) +
                  carved(totals->functions + 1, 8);
    size_t size = kept + carved(n, 4) + carved(totals->functions, 8);
    uint8_t *memory = NULL;
    if (n < UINT32_MAX - LOW_PADDING && totals->constants < INT32_MAX)
        memory = memory_resize(allocator, NULL, 0, size);
    if (memory == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a table of %llu records",
                         (unsigned long long)n);
    advise_large_pages(memory, size);
    cairn_table *table = (cairn_table *)(void *)memory;
    memset(table, 0, sizeof *table);
    uint8_t *at = memory + sizeof *table;
    table->allocator = *allocator;
    table->ids = carve(&at, n, 8);
    table->constants = carve(&at, totals->constants, 8);
    table->value_starts = carve(&at, n + 1, 4);
    table->functions = carve(&at, totals->functions, sizeof(struct table_function));
    table->low = carve(&at, n + LOW_PADDING, 2);
    table->return_deltas = carve(&at, n, 1);
    table->values = (uint32_t *)(void *)at;
    at = memory + kept;
    builder->offsets = carve(&at, n, 4);
    builder->stack_sizes = carve(&at, totals->functions, 8);
    builder->table = table;
    builder->capacity_bytes = size;
    builder->next_word = table->values;
    return CAIRN_OK;
}

/* ---- Packing one record's values ---- */

struct raw_location {
    unsigned kind;
    unsigned size;
    unsigned dwarf;
    int32_t offset;
};

static inline __attribute__((always_inline)) struct raw_location load_location(
    const uint8_t *bytes, size_t stride, enum cairn_byte_order byte_order)
{
    struct raw_location location = {.kind = bytes[0]};
    if (stride == CAIRN_STACKMAP_LOCATION_BYTES) {
        location.size = cairn_load_u16(bytes + 2, byte_order);
        location.dwarf = cairn_load_u16(bytes + 4, byte_order);
    } else {
        location.size = bytes[1];
        location.dwarf = cairn_load_u16(bytes + 2, byte_order);
    }
    location.offset = (int32_t)cairn_load_u32(bytes + stride - 4, byte_order);
    return location;
}

static int32_t table_offset(const struct raw_location *location, uint32_t first_constant)
{
    if (location->kind != CAIRN_LOCATION_CONSTANT_INDEX)
        return location->offset;
    return (int32_t)((uint32_t)location->offset + first_constant);
}

/* The rare forms. Returns the form that holds all of the record's locations. */
static enum value_form pack_large(struct builder *builder, const uint8_t *bytes, uint32_t count,
                                  size_t stride, enum cairn_byte_order byte_order)
{
    enum value_form form = VALUES_WIDE;
    for (uint32_t i = 0; i < count; i++)
        if (load_location(bytes + i * stride, stride, byte_order).size > WIDE_SIZE_MAX)
            form = VALUES_FULL;
    uint32_t *word = builder->next_word;
    for (uint32_t i = 0; i < count; i++) {
        struct raw_location location = load_location(bytes + i * stride, stride, byte_order);
        int32_t offset = table_offset(&location, builder->constant_count);
        if (form == VALUES_FULL) {
            *word++ = location.kind;
            *word++ = location.size | location.dwarf << 16;
        } else {
            *word++ = wide_pack(location.kind, location.size, location.dwarf);
        }
        *word++ = (uint32_t)offset;
    }
    builder->next_word = word;
    return form;
}

static void pack_liveouts(struct builder *builder, const struct cairn_stackmap *map,
                          const struct cairn_stackmap_record *record)
{
    *builder->next_word++ = record->liveout_count;
    for (uint32_t i = 0; i < record->liveout_count; i++) {
        struct cairn_liveout liveout = cairn_stackmap_liveout(map, record, i);
        *builder->next_word++ = liveout.dwarf | (uint32_t)liveout.size << 16;
    }
}

static inline __attribute__((always_inline)) uint32_t pack_one_by_one(
    const struct builder *builder, const uint8_t *bytes, uint32_t count, size_t stride,
    enum cairn_byte_order byte_order, uint32_t *words)
{
    uint32_t misfits = 0;
    for (uint32_t i = 0; i < count; i++, bytes += stride) {
        struct raw_location location = load_location(bytes, stride, byte_order);
        misfits |= compact_pack(builder->kinds, location.kind, location.size, location.dwarf,
                                (uint32_t)location.offset, &words[i]);
    }
    return misfits;
}

/* By fours, the last four again with some of those before them. Not 0 if something does not fit
 * or is not valid. */
static inline __attribute__((always_inline)) uint32_t pack_compact(const struct builder *builder,
                                                                   const uint8_t *bytes,
                                                                   uint32_t count, size_t stride,
                                                                   enum cairn_byte_order byte_order,
                                                                   uint32_t *words)
{
    bool by_fours = stride == CAIRN_STACKMAP_LOCATION_BYTES && count >= 4 &&
                    byte_order == CAIRN_LITTLE_ENDIAN &&
                    CAIRN_BYTE_ORDER_NATIVE == CAIRN_LITTLE_ENDIAN;
    if (!by_fours)
        return pack_one_by_one(builder, bytes, count, stride, byte_order, words);
    four_words misfits = {0};
    for (uint32_t i = 0; i + 4 <= count; i += 4)
        misfits |= compact_pack_four(bytes + i * stride, builder->compact_constants, words + i);
    uint32_t last = count - 4;
    misfits |= compact_pack_four(bytes + last * stride, builder->compact_constants, words + last);
    return misfits[0] | misfits[1] | misfits[2] | misfits[3];
}

/*
 * Checks and packs the record's values. `stride` and `byte_order` are the map's, as constants.
 * The compact form is tried first, without looking; what fits it is valid. False if a location is
 * not.
 */
static inline __attribute__((always_inline)) bool pack_values(
    struct builder *builder, const struct cairn_stackmap *map,
    const struct cairn_stackmap_record *record, size_t stride, enum cairn_byte_order byte_order,
    uint32_t *value_start)
{
    uint32_t start = (uint32_t)(builder->next_word - builder->table->values);
    if (record->liveout_count > 0) {
        start |= VALUE_HAS_LIVEOUTS;
        pack_liveouts(builder, map, record);
    }
    const uint8_t *bytes = map->bytes + record->locations_offset;
    uint32_t *words = builder->next_word;
    uint32_t count = record->location_count;
    uint32_t misfits = pack_compact(builder, bytes, count, stride, byte_order, words);
    if (misfits == 0) {
        builder->next_word = words + count;
        *value_start = start;
        return true;
    }
    const struct record_limits limits = record_limits_of(map);
    bytes = map->bytes + record->locations_offset;
    for (uint32_t i = 0; i < count; i++)
        if (record_location_is_bad(&limits, bytes + i * stride, stride, byte_order))
            return false;
    enum value_form form = pack_large(builder, bytes, count, stride, byte_order);
    *value_start = start | (uint32_t)form << VALUE_FORM_SHIFT;
    return true;
}

/* ---- Noting records and functions ---- */

static void note_id(struct builder *builder, uint64_t id)
{
    cairn_table *table = builder->table;
    table->ids_ascend &= id >= builder->last_id;
    builder->last_id = id;
    table->id_min = id < table->id_min ? id : table->id_min;
    table->id_max = id > table->id_max ? id : table->id_max;
}

static void note_function(struct builder *builder, const struct cairn_stackmap_function *function)
{
    cairn_table *table = builder->table;
    uint32_t index = builder->function_count++;
    bool fits = function->stack_size < STACK_SIZE_WIDE;
    table->functions[index] = (struct table_function){
        .code_offset = (uint32_t)(function->address - table->base),
        .first_record = builder->record_count,
        .stack_size = fits ? (uint32_t)function->stack_size : STACK_SIZE_WIDE,
    };
    builder->stack_sizes[index] = function->stack_size;
}

static void note_constants(struct builder *builder, const struct cairn_stackmap *map)
{
    for (uint32_t i = 0; i < map->constant_count; i++)
        builder->table->constants[builder->constant_count + i] = cairn_stackmap_constant(map, i);
    builder->constant_count += map->constant_count;
}

/* Constants are numbered through the whole table: those of a map follow the ones before it. A
 * map's own numbers are then right as they are only in the first; the others' are packed wide. */
static void begin_map(struct builder *builder, const struct cairn_stackmap *map)
{
    uint32_t largest = UINT32_C(1) << (COMPACT_CONSTANT_BITS - 1);
    uint32_t count = map->constant_count < largest ? map->constant_count : largest;
    builder->compact_constants = builder->constant_count == 0 ? count : 0;
    compact_prepare(builder->kinds, builder->compact_constants);
}

static void begin_notes(struct builder *builder, uint64_t base)
{
    builder->table->base = base;
    builder->table->ids_ascend = true;
    builder->table->id_min = UINT64_MAX;
    builder->last_id = 0;
}

/* ---- The fast way ---- */

static inline __attribute__((always_inline)) enum cairn_status add_records(
    struct builder *builder, struct cairn_stackmap *map, size_t available, size_t stride,
    enum cairn_byte_order byte_order, struct cairn_error *error)
{
    cairn_table *table = builder->table;
    struct cairn_stackmap_record record = {.offset = map->records_offset};
    uint32_t previous =
        builder->record_count == 0 ? 0 : builder->offsets[builder->record_count - 1];
    for (uint32_t f = 0; f < map->function_count; f++) {
        struct cairn_stackmap_function function = cairn_stackmap_function(map, f);
        if (function.record_count == 0)
            continue;
        uint64_t function_offset = function.address - table->base;
        bool descends =
            function.address < table->base || function_offset < previous ||
            (builder->function_count > 0 &&
             function_offset <= table->functions[builder->function_count - 1].code_offset);
        if (descends || function_offset > UINT32_MAX)
            return NEEDS_GENERAL_WAY;
        note_function(builder, &function);
        for (uint64_t i = 0; i < function.record_count; i++) {
            if (!record_fits(map, &record, available, stride, byte_order))
                return stackmap_record_truncated(map, record.offset, record.index, error);
            uint64_t offset = function_offset + record.code_offset;
            if (offset < previous || offset > UINT32_MAX)
                return NEEDS_GENERAL_WAY;
            uint32_t index = builder->record_count++;
            table->ids[index] = record.id;
            builder->offsets[index] = (uint32_t)offset;
            previous = (uint32_t)offset;
            note_id(builder, record.id);
            if (!pack_values(builder, map, &record, stride, byte_order,
                             &table->value_starts[index]))
                return stackmap_location_corrupt(map, &record, error);
            record.index++;
            record.offset = record.end_offset;
        }
    }
    map->size = record.offset;
    return CAIRN_OK;
}

static enum cairn_status add_map_fast(struct builder *builder, struct cairn_stackmap *map,
                                      size_t available, struct cairn_error *error)
{
    bool native = map->byte_order == CAIRN_BYTE_ORDER_NATIVE;
    if (map->version == 3 && native)
        return add_records(builder, map, available, CAIRN_STACKMAP_LOCATION_BYTES,
                           CAIRN_BYTE_ORDER_NATIVE, error);
    if (map->version == 3)
        return add_records(builder, map, available, CAIRN_STACKMAP_LOCATION_BYTES, map->byte_order,
                           error);
    return add_records(builder, map, available, CAIRN_STACKMAP_LOCATION_V1_BYTES, map->byte_order,
                       error);
}

static enum cairn_status add_section_fast(struct builder *builder, size_t index,
                                          struct cairn_error *error)
{
    const struct cairn_section *section = &builder->sections[index];
    struct cairn_stackmap map;
    enum cairn_status status = stackmap_open(section, 0, &map, error);
    if (status == CAIRN_OK) {
        begin_map(builder, &map);
        status = add_map_fast(builder, &map, section->size, error);
    }
    if (status != CAIRN_OK)
        return status == NEEDS_GENERAL_WAY ? status : name_section(builder, index, status, error);
    note_constants(builder, &map);
    bool has_more = stackmap_skip_padding(section, map.size) < section->size;
    return has_more ? NEEDS_GENERAL_WAY : CAIRN_OK;
}

static uint64_t first_address(const struct cairn_stackmap *map)
{
    for (uint32_t i = 0; i < map->function_count; i++) {
        struct cairn_stackmap_function function = cairn_stackmap_function(map, i);
        if (function.record_count > 0)
            return function.address;
    }
    return UINT64_MAX;
}

static void add_totals(struct totals *totals, const struct cairn_stackmap *map, size_t bytes)
{
    totals->records += map->record_count;
    totals->functions += map->function_count;
    totals->constants += map->constant_count;
    totals->bytes += bytes;
}

/* What the headers of the sections' first maps say. */
static enum cairn_status measure_fast(const struct builder *builder, struct totals *totals,
                                      uint64_t *base, struct cairn_error *error)
{
    *base = UINT64_MAX;
    for (size_t i = 0; i < builder->section_count; i++) {
        struct cairn_stackmap map;
        if (builder->sections[i].size == 0)
            return NEEDS_GENERAL_WAY;
        enum cairn_status status = stackmap_open(&builder->sections[i], 0, &map, error);
        if (status != CAIRN_OK)
            return name_section(builder, i, status, error);
        if (map.version == 1)
            return NEEDS_GENERAL_WAY;
        add_totals(totals, &map, builder->sections[i].size);
        uint64_t first = first_address(&map);
        *base = first < *base ? first : *base;
    }
    return CAIRN_OK;
}

static enum cairn_status build_fast(struct builder *builder,
                                    const struct cairn_allocator *allocator,
                                    struct cairn_error *error)
{
    struct totals totals = {0};
    uint64_t base;
    enum cairn_status status = measure_fast(builder, &totals, &base, error);
    if (status == CAIRN_OK)
        status = allocate(builder, &totals, allocator, error);
    if (status != CAIRN_OK)
        return status;
    begin_notes(builder, base);
    for (size_t i = 0; i < builder->section_count && status == CAIRN_OK; i++)
        status = add_section_fast(builder, i, error);
    return status;
}

/* ---- The general way ---- */

/* A record and all that is needed to pack it, wherever it stood. */
struct found_record {
    uint64_t address;
    uint64_t sequence; /* among all records, to keep the order of equal addresses */
    const struct cairn_stackmap *map;
    uint32_t first_constant;
    struct cairn_stackmap_record record;
};

struct found {
    struct cairn_stackmap *maps;
    struct found_record *records;
    struct cairn_stackmap_function *functions;
    uint64_t map_count;
    uint64_t record_count;
    uint64_t function_count;
    struct totals totals;
};

static int compare_records(const void *left, const void *right)
{
    const struct found_record *a = left;
    const struct found_record *b = right;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

static int compare_functions(const void *left, const void *right)
{
    const struct cairn_stackmap_function *a = left;
    const struct cairn_stackmap_function *b = right;
    return a->address < b->address ? -1 : a->address > b->address;
}

/* Reads, and so checks, all maps; `visit` may be NULL. */
static enum cairn_status for_each_map(const struct builder *builder, struct found *found,
                                      enum cairn_status (*visit)(struct found *found,
                                                                 const struct cairn_stackmap *map,
                                                                 struct cairn_error *error),
                                      struct cairn_error *error)
{
    for (size_t i = 0; i < builder->section_count; i++) {
        size_t offset = 0;
        while (offset < builder->sections[i].size) {
            struct cairn_stackmap map;
            enum cairn_status status =
                cairn_stackmap_read(&builder->sections[i], &offset, &map, error);
            if (status == CAIRN_OK)
                status = visit(found, &map, error);
            if (status != CAIRN_OK)
                return name_section(builder, i, status, error);
        }
    }
    return CAIRN_OK;
}

static enum cairn_status count_map(struct found *found, const struct cairn_stackmap *map,
                                   struct cairn_error *error)
{
    if (map->functions == CAIRN_STACKMAP_FUNCTIONS_UNKNOWN)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, map->section_offset,
                         "a version 1 map of %u functions does not say which of its %u records "
                         "belong to which: their addresses are not known",
                         map->function_count, map->record_count);
    found->map_count++;
    add_totals(&found->totals, map, map->size);
    return CAIRN_OK;
}

static enum cairn_status collect_map(struct found *found, const struct cairn_stackmap *read,
                                     struct cairn_error *error)
{
    struct cairn_stackmap *map = &found->maps[found->map_count++];
    *map = *read;
    struct cairn_stackmap_record record;
    bool more = cairn_stackmap_first(map, &record);
    for (; more; more = cairn_stackmap_next(map, &record)) {
        struct cairn_stackmap_function function = cairn_stackmap_function(map, record.function);
        uint64_t address;
        if (__builtin_add_overflow(function.address, record.code_offset, &address))
            return error_set(error, CAIRN_ERROR_RANGE, map->section_offset + record.offset,
                             "record %u lies beyond the end of the address space", record.index);
        found->records[found->record_count] = (struct found_record){
            .address = address,
            .sequence = found->record_count,
            .map = map,
            .first_constant = (uint32_t)found->totals.constants,
            .record = record,
        };
        found->record_count++;
        bool is_new = found->function_count == 0 ||
                      found->functions[found->function_count - 1].address != function.address;
        if (is_new)
            found->functions[found->function_count++] = function;
    }
    found->totals.constants += map->constant_count;
    return CAIRN_OK;
}

static void free_found(const struct cairn_allocator *allocator, const struct found *found,
                       const struct totals *capacity, uint64_t map_capacity)
{
    memory_free(allocator, found->maps, map_capacity * sizeof *found->maps);
    memory_free(allocator, found->records, capacity->records * sizeof *found->records);
    memory_free(allocator, found->functions, capacity->records * sizeof *found->functions);
}

static bool allocate_found(const struct cairn_allocator *allocator, struct found *found)
{
    if (found->map_count == 0 || found->totals.records == 0)
        return true;
    found->maps = memory_new(allocator, found->map_count, sizeof *found->maps);
    found->records = memory_new(allocator, found->totals.records, sizeof *found->records);
    found->functions = memory_new(allocator, found->totals.records, sizeof *found->functions);
    return found->maps != NULL && found->records != NULL && found->functions != NULL;
}

static enum cairn_status check_span(const struct found *found, struct cairn_error *error)
{
    if (found->record_count == 0)
        return CAIRN_OK;
    uint64_t base = found->functions[0].address;
    uint64_t last = found->records[found->record_count - 1].address;
    uint64_t last_function = found->functions[found->function_count - 1].address;
    uint64_t end = last > last_function ? last : last_function;
    return end - base > UINT32_MAX ? span_error(base, end, error) : CAIRN_OK;
}

/* A function begins with the first record at or behind its address; of functions with the same
 * address, as linkers make by folding identical ones, the first one counts. */
static void pack_found(struct builder *builder, const struct found *found)
{
    cairn_table *table = builder->table;
    uint64_t next_function = 0;
    for (uint64_t i = 0; i < found->record_count; i++) {
        const struct found_record *each = &found->records[i];
        for (; next_function < found->function_count &&
               found->functions[next_function].address <= each->address;
             next_function++) {
            bool repeats = next_function > 0 && found->functions[next_function - 1].address ==
                                                    found->functions[next_function].address;
            if (!repeats)
                note_function(builder, &found->functions[next_function]);
        }
        uint32_t index = builder->record_count++;
        table->ids[index] = each->record.id;
        builder->offsets[index] = (uint32_t)(each->address - table->base);
        note_id(builder, each->record.id);
        builder->constant_count = each->first_constant;
        begin_map(builder, each->map);
        size_t stride = cairn_stackmap_location_bytes(each->map->version);
        pack_values(builder, each->map, &each->record, stride, each->map->byte_order,
                    &table->value_starts[index]);
    }
    builder->constant_count = 0;
    for (uint64_t i = 0; i < found->map_count; i++)
        note_constants(builder, &found->maps[i]);
}

static enum cairn_status collect_and_pack(struct builder *builder, struct found *found,
                                          const struct totals *totals,
                                          const struct cairn_allocator *allocator,
                                          struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    if (totals->records > 0)
        status = for_each_map(builder, found, collect_map, error);
    if (status != CAIRN_OK)
        return status;
    sort_stably(found->records, found->record_count, sizeof *found->records, compare_records);
    sort_stably(found->functions, found->function_count, sizeof *found->functions,
                compare_functions);
    status = check_span(found, error);
    if (status == CAIRN_OK)
        status = allocate(builder, totals, allocator, error);
    if (status != CAIRN_OK)
        return status;
    begin_notes(builder, found->record_count == 0 ? 0 : found->functions[0].address);
    pack_found(builder, found);
    return CAIRN_OK;
}

static enum cairn_status build_general(struct builder *builder,
                                       const struct cairn_allocator *allocator,
                                       struct cairn_error *error)
{
    struct found found = {0};
    enum cairn_status status = for_each_map(builder, &found, count_map, error);
    if (status != CAIRN_OK)
        return status;
    struct totals totals = found.totals;
    uint64_t map_capacity = found.map_count;
    if (!allocate_found(allocator, &found))
        status = error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to sort %llu records",
                           (unsigned long long)totals.records);
    found.map_count = 0;
    found.totals = (struct totals){0};
    if (status == CAIRN_OK)
        status = collect_and_pack(builder, &found, &totals, allocator, error);
    free_found(allocator, &found, &totals, map_capacity);
    return status;
}

/* ---- Directories ---- */

static uint8_t choose_bucket_shift(uint32_t span, uint32_t record_count)
{
    uint8_t shift = 2;
    while (shift < BUCKET_SHIFT_MAX && span >> shift > record_count / RECORDS_PER_BUCKET)
        shift++;
    return shift;
}

static uint32_t *take_words(struct builder *builder, size_t count)
{
    uint32_t *words = builder->next_word;
    builder->next_word += count;
    return words;
}

static void make_address_directory(struct builder *builder)
{
    cairn_table *table = builder->table;
    uint32_t count = builder->record_count;
    table->span = count == 0 ? 0 : builder->offsets[count - 1];
    table->bucket_shift = choose_bucket_shift(table->span, count);
    table->bucket_count = (table->span >> table->bucket_shift) + 1;
    table->address_buckets = take_words(builder, (size_t)table->bucket_count + 1);
    uint32_t low_mask = (UINT32_C(1) << table->bucket_shift) - 1;
    uint32_t next_bucket = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bucket = builder->offsets[i] >> table->bucket_shift;
        while (next_bucket <= bucket)
            table->address_buckets[next_bucket++] = i;
        table->low[i] = (uint16_t)(builder->offsets[i] & low_mask);
    }
    while (next_bucket <= table->bucket_count)
        table->address_buckets[next_bucket++] = count;
    memset(table->low + count, 0, LOW_PADDING * sizeof *table->low);
}

static uint8_t bits_of(uint64_t value)
{
    return value == 0 ? 0 : (uint8_t)(64 - __builtin_clzll(value));
}

/* IDs that ascend are spread by their distance from the lowest, others by a hash. */
static void choose_id_buckets(cairn_table *table)
{
    uint32_t wanted = table->record_count / RECORDS_PER_BUCKET;
    uint8_t wanted_bits = wanted < 2 ? 1 : (uint8_t)(bits_of(wanted) - 1);
    if (!table->ids_ascend) {
        table->id_shift = (uint8_t)(64 - wanted_bits);
        table->id_bucket_count = UINT32_C(1) << wanted_bits;
        return;
    }
    uint64_t range = table->record_count == 0 ? 0 : table->id_max - table->id_min;
    uint8_t range_bits = bits_of(range);
    table->id_shift = range_bits > wanted_bits ? (uint8_t)(range_bits - wanted_bits) : 0;
    table->id_bucket_count = (uint32_t)(range >> table->id_shift) + 1;
}

static void count_id_buckets(cairn_table *table)
{
    uint32_t *starts = table->id_buckets;
    memset(starts, 0, ((size_t)table->id_bucket_count + 1) * sizeof *starts);
    for (uint32_t i = 0; i < table->record_count; i++)
        starts[table_id_bucket(table, table->ids[i]) + 1]++;
    for (uint32_t b = 0; b < table->id_bucket_count; b++)
        starts[b + 1] += starts[b];
}

/* Counting sort; starts[b] is left at the end of bucket b and then moved back by one. */
static void order_by_id(cairn_table *table)
{
    uint32_t *starts = table->id_buckets;
    for (uint32_t i = 0; i < table->record_count; i++)
        table->id_order[starts[table_id_bucket(table, table->ids[i])]++] = i;
    for (uint32_t b = table->id_bucket_count; b > 0; b--)
        starts[b] = starts[b - 1];
    starts[0] = 0;
    for (uint32_t b = 0; b < table->id_bucket_count; b++) {
        uint32_t size = starts[b + 1] - starts[b];
        if (size > ID_BUCKET_SCAN)
            sort_by_key(table->id_order + starts[b], size, table->ids);
    }
}

static void make_id_directory(struct builder *builder)
{
    cairn_table *table = builder->table;
    choose_id_buckets(table);
    table->id_buckets = take_words(builder, (size_t)table->id_bucket_count + 1);
    count_id_buckets(table);
    if (table->ids_ascend)
        return;
    table->id_order = take_words(builder, table->record_count);
    order_by_id(table);
}

/* ---- Finishing ---- */

/* Kept only if one of them does not fit into its function's entry. */
static void keep_stack_sizes(struct builder *builder)
{
    cairn_table *table = builder->table;
    bool needed = false;
    for (uint32_t i = 0; i < table->function_count; i++)
        needed |= table->functions[i].stack_size == STACK_SIZE_WIDE;
    if (!needed)
        return;
    if ((uintptr_t)builder->next_word % sizeof *table->stack_sizes != 0)
        take_words(builder, 1);
    size_t size = table->function_count * sizeof *table->stack_sizes;
    table->stack_sizes = (uint64_t *)(void *)take_words(builder, size / sizeof(uint32_t));
    memcpy(table->stack_sizes, builder->stack_sizes, size);
}

#define MOVED(pointer) ((void *)((uintptr_t)(pointer) + distance))

static void relocate(cairn_table *table, uintptr_t distance)
{
    table->ids = MOVED(table->ids);
    table->constants = MOVED(table->constants);
    table->stack_sizes = table->stack_sizes == NULL ? NULL : MOVED(table->stack_sizes);
    table->value_starts = MOVED(table->value_starts);
    table->address_buckets = MOVED(table->address_buckets);
    table->id_buckets = MOVED(table->id_buckets);
    table->id_order = table->id_order == NULL ? NULL : MOVED(table->id_order);
    table->functions = MOVED(table->functions);
    table->low = MOVED(table->low);
    table->return_deltas = MOVED(table->return_deltas);
    table->values = MOVED(table->values);
}

/* Small tables get an allocation of their size, so that no page is kept for each; large ones are
 * cut where they are. */
static enum cairn_status cut_to_size(struct builder *builder, struct cairn_error *error)
{
    enum { SMALL = 256 << 10 };
    cairn_table *table = builder->table;
    struct cairn_allocator allocator = table->allocator;
    cairn_table *cut;
    if (table->size_bytes > SMALL) {
        uintptr_t before = (uintptr_t)table;
        cut = memory_resize(&allocator, table, builder->capacity_bytes, table->size_bytes);
        if (cut == NULL) /* "shrinking may not fail", but the old block is still good */
            return CAIRN_OK;
        relocate(cut, (uintptr_t)cut - before);
        builder->table = cut;
        return CAIRN_OK;
    }
    cut = memory_resize(&allocator, NULL, 0, table->size_bytes);
    if (cut == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a table of %zu bytes",
                         table->size_bytes);
    memcpy(cut, table, table->size_bytes);
    relocate(cut, (uintptr_t)cut - (uintptr_t)table);
    memory_free(&allocator, table, builder->capacity_bytes);
    builder->table = cut;
    return CAIRN_OK;
}

static enum cairn_status finish(struct builder *builder, struct cairn_error *error)
{
    cairn_table *table = builder->table;
    table->record_count = builder->record_count;
    table->function_count = builder->function_count;
    size_t words = (size_t)(builder->next_word - table->values);
    if (words > VALUE_WORD_MASK)
        return error_set(error, CAIRN_ERROR_RANGE, 0,
                         "the records hold more than %u words of locations", VALUE_WORD_MASK);
    table->value_starts[table->record_count] = (uint32_t)words;
    table->value_bytes = words * 4 + (size_t)builder->constant_count * 8;
    memset(table->return_deltas, RETURN_UNKNOWN, table->record_count);
    make_address_directory(builder);
    make_id_directory(builder);
    keep_stack_sizes(builder);
    table->size_bytes = (size_t)((uint8_t *)builder->next_word - (uint8_t *)table);
    return cut_to_size(builder, error);
}

static void discard(struct builder *builder, const struct cairn_allocator *allocator)
{
    memory_free(allocator, builder->table, builder->capacity_bytes);
    *builder =
        (struct builder){.sections = builder->sections, .section_count = builder->section_count};
}

enum cairn_status cairn_table_create(const struct cairn_section *sections, size_t section_count,
                                     const struct cairn_allocator *allocator, cairn_table **table,
                                     struct cairn_error *error)
{
    if (table == NULL || (sections == NULL && section_count > 0))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_table_create needs sections and a place for the table");
    struct cairn_allocator chosen = memory_allocator(allocator);
    struct builder builder = {.sections = sections, .section_count = section_count};
    enum cairn_status status = build_fast(&builder, &chosen, error);
    if (status == NEEDS_GENERAL_WAY) {
        discard(&builder, &chosen);
        status = build_general(&builder, &chosen, error);
    }
    if (status == CAIRN_OK)
        status = finish(&builder, error);
    if (status != CAIRN_OK) {
        discard(&builder, &chosen);
        return status;
    }
    *table = builder.table;
    return CAIRN_OK;
}

void cairn_table_destroy(cairn_table *table)
{
    if (table == NULL)
        return;
    struct cairn_allocator allocator = table->allocator;
    memory_free(&allocator, table, table->size_bytes);
}
