/*
 * Going through a section once: some records are checked, and handed over while they are in the
 * cache.
 *
 * How many locations a record has cannot be guessed, so a loop over them costs a wrongly guessed
 * branch for each record. Columns have none: a record's first sixteen locations are copied whether
 * they are all its own or not, and the next record's go over what was too much.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "format/check_records.h"
#include "format/columns.h"

enum { RECORDS_AT_ONCE = COLUMN_RECORDS };

/* ---- Records, some at a time ---- */

/* Records that were checked, in the order of the map; false ends the walk. */
typedef bool take_records(void *taker, const struct cairn_stackmap *map, const uint8_t *end,
                          const struct cairn_stackmap_record *records, uint32_t count);

struct walk {
    take_records *take;
    void *taker;
    bool ended;
    /* The ones at hand, and before them the last one of those before. */
    struct cairn_stackmap_record records[1 + RECORDS_AT_ONCE];
};

/* Says of each record which function it belongs to. In a copy, which the compiler can keep in
 * registers: going from record to record through memory takes longer than all the rest. */
static void add_functions(const struct cairn_stackmap *map, struct cairn_stackmap_record *records,
                          uint32_t count)
{
    struct cairn_stackmap_record current = records[0];
    for (uint32_t i = 1; i <= count; i++) {
        uint32_t previous_code_offset = current.code_offset;
        current.code_offset = records[i].code_offset;
        if (records[i].index == 0)
            cairn_stackmap_begin_function(map, &current);
        else
            cairn_stackmap_follow_function(map, &current, previous_code_offset);
        records[i].function = current.function;
        records[i].records_left_in_function = current.records_left_in_function;
    }
}

static enum cairn_status walk_map(struct walk *walk, struct cairn_stackmap *map, const uint8_t *end,
                                  struct cairn_error *error)
{
    record_checker *check = stackmap_checker(map);
    struct check_place place = {.at = map->bytes + map->records_offset, .kept = walk->records + 1};
    enum check_result result = CHECK_GOOD;
    while (result == CHECK_GOOD && place.index < map->record_count) {
        uint32_t first = place.index;
        uint32_t left = map->record_count - first;
        result = check(map, end, first + (left < RECORDS_AT_ONCE ? left : RECORDS_AT_ONCE), &place);
        uint32_t count = place.index - first;
        add_functions(map, walk->records, count);
        walk->ended = !walk->take(walk->taker, map, end, walk->records + 1, count);
        if (walk->ended)
            return CAIRN_OK;
        walk->records[0] = walk->records[count];
    }
    map->size = (size_t)(place.at - map->bytes);
    return stackmap_explain(map, result, &place, error);
}

static enum cairn_status walk_section(const struct cairn_section *section, take_records *take,
                                      void *taker, struct cairn_error *error)
{
    struct walk walk = {.take = take, .taker = taker};
    size_t offset = 0;
    while (offset < section->size && !walk.ended) {
        struct cairn_stackmap map;
        enum cairn_status status = stackmap_open(section, offset, &map, error);
        if (status != CAIRN_OK)
            return status;
        bool counted = map.version > 1 || map.function_count == 1;
        map.functions =
            counted ? CAIRN_STACKMAP_FUNCTIONS_COUNTED : CAIRN_STACKMAP_FUNCTIONS_UNKNOWN;
        status = walk_map(&walk, &map, section->bytes + section->size, error);
        if (status != CAIRN_OK)
            return status;
        if (!walk.ended)
            offset = stackmap_skip_padding(section, offset + map.size);
    }
    return CAIRN_OK;
}

static bool has_bytes(const struct cairn_section *section)
{
    return section != NULL && (section->bytes != NULL || section->size == 0);
}

/* ---- Record by record ---- */

struct visitor {
    cairn_stackmap_visit *visit;
    void *user;
};

static bool visit_records(void *taker, const struct cairn_stackmap *map, const uint8_t *end,
                          const struct cairn_stackmap_record *records, uint32_t count)
{
    (void)end;
    const struct visitor *visitor = taker;
    for (uint32_t i = 0; i < count; i++)
        if (!visitor->visit(visitor->user, map, &records[i]))
            return false;
    return true;
}

enum cairn_status cairn_stackmap_walk(const struct cairn_section *section,
                                      cairn_stackmap_visit *visit, void *user,
                                      struct cairn_error *error)
{
    if (!has_bytes(section) || visit == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_stackmap_walk needs a section and a function");
    struct visitor visitor = {.visit = visit, .user = user};
    return walk_section(section, visit_records, &visitor, error);
}

/* ---- In columns ---- */

struct column_visitor {
    cairn_stackmap_visit_columns *visit;
    void *user;
    struct columns columns;
};

COLUMNS_INLINE void copy_fours(const void *context, struct columns *columns, uint32_t at,
                               const uint8_t *bytes)
{
    (void)context;
    for (size_t i = 0; i < 16; i += 4) {
        const struct four_locations four = four_load(bytes + i * CAIRN_STACKMAP_LOCATION_BYTES);
        const four_words kinds = four.kind_and_size & 0xFF;
        const four_words sizes = four.kind_and_size >> 16;
        const four_words registers = four.dwarf & 0xFFFF;
        memcpy(columns->kinds + at + i, &kinds, sizeof kinds);
        memcpy(columns->sizes + at + i, &sizes, sizeof sizes);
        memcpy(columns->registers + at + i, &registers, sizeof registers);
        memcpy(columns->offsets + at + i, &four.offset, sizeof four.offset);
    }
}

static uint32_t copy_by_fours(struct columns *columns, const struct cairn_stackmap *map,
                              const uint8_t *end, const struct cairn_stackmap_record *records,
                              uint32_t count)
{
    return columns_copy_with(columns, map, end, records, count, copy_fours, NULL);
}

/* For every version and byte order. */
static uint32_t copy_one_by_one(struct columns *columns, const struct cairn_stackmap *map,
                                const uint8_t *end, const struct cairn_stackmap_record *records,
                                uint32_t count)
{
    (void)end;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t location_count = records[i].location_count;
        if (columns->count + location_count > COLUMN_CAPACITY)
            return i;
        columns->firsts[i] = columns->count;
        columns_copy_one_by_one(columns, map, &records[i], 0, location_count);
        columns->count += location_count;
    }
    return count;
}

static columns_copier *choose_copier(const struct cairn_stackmap *map)
{
    if (!four_applies(cairn_stackmap_location_bytes(map->version), map->byte_order))
        return copy_one_by_one;
    columns_copier *by_sixteens = columns_sixteen_copier();
    return by_sixteens != NULL ? by_sixteens : copy_by_fours;
}

static bool hand_over(struct column_visitor *visitor, const struct cairn_stackmap *map,
                      const struct cairn_stackmap_record *records, uint32_t record_count,
                      uint32_t skipped)
{
    struct columns *columns = &visitor->columns;
    const struct cairn_stackmap_columns view = {
        .map = map,
        .records = records,
        .record_count = record_count,
        .skipped_locations = skipped,
        .location_count = columns->count,
        .first_locations = columns->firsts,
        .kinds = columns->kinds,
        .sizes = columns->sizes,
        .registers = columns->registers,
        .offsets = columns->offsets,
    };
    columns->firsts[record_count] = columns->count;
    columns->count = 0;
    return visitor->visit(visitor->user, &view);
}

/* A record that has more locations than there is room for: alone, in several parts. */
static bool hand_over_parts(struct column_visitor *visitor, const struct cairn_stackmap *map,
                            const struct cairn_stackmap_record *record)
{
    struct columns *columns = &visitor->columns;
    for (uint32_t first = 0; first < record->location_count; first += COLUMN_CAPACITY) {
        uint32_t left = record->location_count - first;
        uint32_t count = left < COLUMN_CAPACITY ? left : COLUMN_CAPACITY;
        columns->firsts[0] = 0;
        columns_copy_one_by_one(columns, map, record, first, count);
        columns->count = count;
        if (!hand_over(visitor, map, record, 1, first))
            return false;
    }
    return true;
}

static bool fill_columns(void *taker, const struct cairn_stackmap *map, const uint8_t *end,
                         const struct cairn_stackmap_record *records, uint32_t count)
{
    struct column_visitor *visitor = taker;
    columns_copier *copy = choose_copier(map);
    bool goes_on = true;
    for (uint32_t done = 0; done < count && goes_on;) {
        uint32_t copied = copy(&visitor->columns, map, end, records + done, count - done);
        goes_on = copied > 0 ? hand_over(visitor, map, records + done, copied, 0)
                             : hand_over_parts(visitor, map, &records[done]);
        done += copied > 0 ? copied : 1;
    }
    return goes_on;
}

enum cairn_status cairn_stackmap_walk_columns(const struct cairn_section *section,
                                              cairn_stackmap_visit_columns *visit, void *user,
                                              struct cairn_error *error)
{
    if (!has_bytes(section) || visit == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_stackmap_walk_columns needs a section and a function");
    struct column_visitor visitor;
    visitor.visit = visit;
    visitor.user = user;
    visitor.columns.count = 0;
    return walk_section(section, fill_columns, &visitor, error);
}
