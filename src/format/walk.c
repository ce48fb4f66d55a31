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

enum { RECORDS_AT_ONCE = 64 };

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

/* Says of each record which function it belongs to. */
static void add_functions(const struct cairn_stackmap *map, struct cairn_stackmap_record *records,
                          uint32_t count)
{
    for (uint32_t i = 1; i <= count; i++) {
        struct cairn_stackmap_record *record = &records[i];
        record->function = record[-1].function;
        record->records_left_in_function = record[-1].records_left_in_function;
        if (record->index == 0)
            cairn_stackmap_begin_function(map, record);
        else
            cairn_stackmap_follow_function(map, record, record[-1].code_offset);
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

enum { SIXTEEN = 16, CAPACITY = CAIRN_STACKMAP_COLUMN_LENGTH };

struct columns {
    cairn_stackmap_visit_columns *visit;
    void *user;
    uint32_t count; /* locations so far; sixteen more have room behind them */
    uint32_t firsts[RECORDS_AT_ONCE + 1];
    uint32_t kinds[CAPACITY + SIXTEEN];
    uint32_t sizes[CAPACITY + SIXTEEN];
    uint32_t registers[CAPACITY + SIXTEEN];
    int32_t offsets[CAPACITY + SIXTEEN];
};

static inline __attribute__((always_inline)) void copy_four(struct columns *columns, uint32_t at,
                                                            const uint8_t *bytes)
{
    const struct four_locations four = four_load(bytes);
    const four_words kinds = four.kind_and_size & 0xFF;
    const four_words sizes = four.kind_and_size >> 16;
    const four_words registers = four.dwarf & 0xFFFF;
    memcpy(columns->kinds + at, &kinds, sizeof kinds);
    memcpy(columns->sizes + at, &sizes, sizeof sizes);
    memcpy(columns->registers + at, &registers, sizeof registers);
    memcpy(columns->offsets + at, &four.offset, sizeof four.offset);
}

static inline __attribute__((always_inline)) void copy_sixteen(struct columns *columns, uint32_t at,
                                                               const uint8_t *bytes)
{
    for (uint32_t i = 0; i < SIXTEEN; i += 4)
        copy_four(columns, at + i, bytes + i * CAIRN_STACKMAP_LOCATION_BYTES);
}

static void copy_one_by_one(struct columns *columns, const struct cairn_stackmap *map,
                            const struct cairn_stackmap_record *record, uint32_t first,
                            uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct cairn_location location = cairn_stackmap_location(map, record, first + i);
        columns->kinds[columns->count + i] = location.kind;
        columns->sizes[columns->count + i] = location.size;
        columns->registers[columns->count + i] = location.dwarf;
        columns->offsets[columns->count + i] = location.offset;
    }
}

/* Copies locations `first` to `first + count` of a record; there is room for them. */
static inline __attribute__((always_inline)) void copy_locations(
    struct columns *columns, const struct cairn_stackmap *map, const uint8_t *end,
    const struct cairn_stackmap_record *record, uint32_t first, uint32_t count)
{
    size_t stride = cairn_stackmap_location_bytes(map->version);
    const uint8_t *bytes = map->bytes + record->locations_offset + first * stride;
    size_t whole = ((size_t)count + SIXTEEN) * stride;
    if (!four_applies(stride, map->byte_order) || (size_t)(end - bytes) < whole) {
        copy_one_by_one(columns, map, record, first, count);
    } else {
        uint32_t copied = 0;
        do {
            copy_sixteen(columns, columns->count + copied, bytes + copied * stride);
            copied += SIXTEEN;
        } while (copied < count);
    }
    columns->count += count;
}

static bool hand_over(struct columns *columns, const struct cairn_stackmap *map,
                      const struct cairn_stackmap_record *records, uint32_t record_count,
                      uint32_t skipped)
{
    if (record_count == 0)
        return true;
    columns->firsts[record_count] = columns->count;
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
    columns->count = 0;
    return columns->visit(columns->user, &view);
}

/* A record that has more locations than fit: alone, in several parts. */
static bool hand_over_parts(struct columns *columns, const struct cairn_stackmap *map,
                            const uint8_t *end, const struct cairn_stackmap_record *record)
{
    for (uint32_t first = 0; first < record->location_count; first += CAPACITY) {
        uint32_t left = record->location_count - first;
        columns->firsts[0] = 0;
        copy_locations(columns, map, end, record, first, left < CAPACITY ? left : CAPACITY);
        if (!hand_over(columns, map, record, 1, first))
            return false;
    }
    return true;
}

static bool fill_columns(void *taker, const struct cairn_stackmap *map, const uint8_t *end,
                         const struct cairn_stackmap_record *records, uint32_t count)
{
    struct columns *columns = taker;
    uint32_t begin = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t location_count = records[i].location_count;
        if (columns->count + location_count > CAPACITY) {
            if (!hand_over(columns, map, records + begin, i - begin, 0))
                return false;
            begin = i;
        }
        if (location_count > CAPACITY) {
            if (!hand_over_parts(columns, map, end, &records[i]))
                return false;
            begin = i + 1;
            continue;
        }
        columns->firsts[i - begin] = columns->count;
        copy_locations(columns, map, end, &records[i], 0, location_count);
    }
    return hand_over(columns, map, records + begin, count - begin, 0);
}

enum cairn_status cairn_stackmap_walk_columns(const struct cairn_section *section,
                                              cairn_stackmap_visit_columns *visit, void *user,
                                              struct cairn_error *error)
{
    if (!has_bytes(section) || visit == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_stackmap_walk_columns needs a section and a function");
    struct columns columns;
    columns.visit = visit;
    columns.user = user;
    columns.count = 0;
    return walk_section(section, fill_columns, &columns, error);
}
