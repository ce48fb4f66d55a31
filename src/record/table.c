/*
 * Looks up records in a table, and reads them.
 *
 * No function here takes a lock, allocates or writes to the table.
 *
 * SPDX-License-Identifier: MIT
 */
#include "record/table.h"

#include "base/error.h"
#include "base/inspect.h"
#include "base/sort.h"
#include "format/statepoint.h"
#include "record/address_index.h"
#include "record/layout.h"
#include "record/record_values.h"

#include <string.h>

/* ---- Addresses ---- */

typedef uint16_t low_vector __attribute__((vector_size(16)));
typedef int8_t lane_vector __attribute__((vector_size(8)));
enum { LANES = 8 };
_Static_assert(LOW_PADDING == 2 * LANES, "two vectors are compared at once");

/* Compares LANES entries at `low` with `wanted`. Returns one byte for each, the first in the lowest
 * byte, with 0xFF for equal entries. */
static inline uint64_t lanes_equal(const uint16_t *low, uint16_t wanted)
{
    low_vector entries;
    memcpy(&entries, low, sizeof entries);
    lane_vector equal = __builtin_convertvector(entries == (low_vector){0} + wanted, lane_vector);
    uint64_t lanes;
    memcpy(&lanes, &equal, sizeof lanes);
    return CAIRN_BYTE_ORDER_NATIVE == CAIRN_BIG_ENDIAN ? __builtin_bswap64(lanes) : lanes;
}

/* Returns the index of the first of LOW_PADDING entries that equals `wanted`, or LOW_PADDING. */
static inline uint32_t first_equal(const uint16_t *low, uint16_t wanted)
{
    uint64_t lanes = lanes_equal(low, wanted);
    uint64_t more = lanes_equal(low + LANES, wanted);
    uint32_t first = (uint32_t)__builtin_ctzll(lanes | UINT64_C(1) << 63) / 8;
    uint32_t second = (uint32_t)__builtin_ctzll(more | UINT64_C(1) << 63) / 8 + LANES;
    return lanes != 0 ? first : more != 0 ? second : LOW_PADDING;
}

bool cairn_table_find_address(const cairn_table *table, uint64_t address,
                              struct cairn_record *record)
{
    uint64_t offset = address - table->base;
    if (offset > table->span)
        return false;
    uint32_t bucket = (uint32_t)offset >> table->bucket_shift;
    uint16_t wanted = (uint16_t)offset;
    uint32_t begin = table->address_buckets[bucket];
    uint32_t end = table->address_buckets[bucket + 1];
    bool is_crowd = end - begin > LOW_PADDING;
    /* Entries of the next bucket may be equal, too. If any entry of this bucket is equal, it comes
     * first. */
    uint32_t index = __builtin_expect(is_crowd, 0)
                         ? table_lower_bound(table, begin, end, wanted)
                         : begin + first_equal(table->low + begin, wanted);
    record->table = table;
    record->index = index;
    return index < end && (!is_crowd || table->low[index] == wanted);
}

/* ---- Indexes of small tables ---- */

_Static_assert(ADDRESS_INDEX_RECORDS + 1 == LANES, "an index is compared at once");

void address_index_init(struct address_index *index, const cairn_table *table)
{
    uint32_t count = table->record_count;
    *index = (struct address_index){.table = table, .base = ADDRESS_INDEX_OF_LARGE};
    if (count == 0 || count > ADDRESS_INDEX_RECORDS || table->span > UINT16_MAX)
        return;
    index->base = table->base;
    for (uint32_t i = 0; i < LANES; i++)
        index->low[i] = table->low[i < count ? i : count - 1];
}

bool address_index_find(const struct address_index *index, uint64_t address,
                        struct cairn_record *record)
{
    uint64_t offset = address - index->base;
    uint64_t lanes = lanes_equal(index->low, (uint16_t)offset);
    if (__builtin_expect(offset > index->low[LANES - 1] || lanes == 0, 0))
        return index->base == ADDRESS_INDEX_OF_LARGE &&
               cairn_table_find_address(index->table, address, record);
    record->table = index->table;
    record->index = (uint32_t)__builtin_ctzll(lanes) / 8;
    return true;
}

/* ---- Return addresses ---- */

/* Finds a record of the bucket by its return address, whose distance from the table's base is
 * `offset`. */
static bool find_return_in_bucket(const cairn_table *table, uint32_t bucket, uint64_t offset,
                                  struct cairn_record *record)
{
    uint64_t bucket_offset = (uint64_t)bucket << table->bucket_shift;
    uint32_t end = table->address_buckets[bucket + 1];
    uint32_t begin = table->address_buckets[bucket];
    if (end - begin > LOW_PADDING && offset - bucket_offset > table->return_delta_max) {
        uint16_t wanted = (uint16_t)(offset - table->return_delta_max);
        begin = table_lower_bound(table, begin, end, wanted);
    }
    for (uint32_t i = begin; i < end && table_record_offset(table, bucket, i) <= offset; i++) {
        uint8_t delta = table->return_deltas[i];
        if (delta != RETURN_UNKNOWN && table_record_offset(table, bucket, i) + delta == offset) {
            *record = (struct cairn_record){table, i};
            return true;
        }
    }
    return false;
}

bool cairn_table_find_return_address(const cairn_table *table, uint64_t address,
                                     struct cairn_record *record)
{
    uint64_t offset = address - table->base;
    if (address < table->base || offset > (uint64_t)table->span + table->return_delta_max)
        return false;
    uint64_t first_offset = offset < table->return_delta_max ? 0 : offset - table->return_delta_max;
    uint64_t last = offset >> table->bucket_shift;
    if (last >= table->bucket_count)
        last = table->bucket_count - 1;
    for (uint64_t bucket = first_offset >> table->bucket_shift; bucket <= last; bucket++)
        if (find_return_in_bucket(table, (uint32_t)bucket, offset, record))
            return true;
    return false;
}

bool table_has_return_address(const cairn_table *table, uint32_t index)
{
    return table->return_deltas[index] != RETURN_UNKNOWN;
}

void table_set_return_delta(cairn_table *table, uint32_t index, uint32_t delta)
{
    table->return_deltas[index] = (uint8_t)delta;
    if (delta > table->return_delta_max)
        table->return_delta_max = (uint8_t)delta;
}

/* ---- Functions ---- */

/* Returns the number of functions that begin at or before `address`. */
static uint32_t functions_up_to(const cairn_table *table, uint64_t address)
{
    uint64_t offset = address - table->base;
    if (address < table->base)
        return 0;
    return search_u32(table->functions, sizeof *table->functions, 0, table->function_count,
                      offset < UINT32_MAX ? offset + 1 : UINT64_MAX);
}

static struct cairn_function function_at(const cairn_table *table, uint32_t index)
{
    const struct table_function *function = &table->functions[index];
    uint32_t end =
        index + 1 < table->function_count ? function[1].first_record : table->record_count;
    return (struct cairn_function){
        .address = table->base + function->code_offset,
        .stack_size = table_stack_size(table->stack_sizes, table->wide_stack_sizes, index),
        .first_record = function->first_record,
        .record_count = end - function->first_record,
    };
}

bool table_function_at(const cairn_table *table, uint32_t index, struct cairn_function *function)
{
    if (index >= table->function_count)
        return false;
    *function = function_at(table, index);
    return true;
}

bool cairn_table_find_function(const cairn_table *table, uint64_t address,
                               struct cairn_function *function)
{
    uint32_t count = functions_up_to(table, address);
    if (count == 0)
        return false;
    *function = function_at(table, count - 1);
    return true;
}

uint64_t table_next_function(const cairn_table *table, uint64_t address)
{
    uint32_t count = functions_up_to(table, address);
    return count == table->function_count ? UINT64_MAX : function_at(table, count).address;
}

struct cairn_function record_function(struct cairn_record record)
{
    const cairn_table *table = record.table;
    const struct table_function *functions = table->functions;
    if (table->record_owners != NULL) {
        const struct table_owner *owner = &table->owners[table->record_owners[record.index]];
        struct cairn_function function = function_at(table, owner->function);
        function.stack_size = owner->stack_size;
        return function;
    }
    return function_at(table, search_u32(&functions->first_record, sizeof *functions, 0,
                                         table->function_count, record.index + UINT64_C(1)) -
                                  1);
}

/* ---- IDs ---- */

/* Visits the records with an ID; the visitor is inlined. Returns whether the visitor has always
 * returned true. */
static inline __attribute__((always_inline)) bool visit_id(const cairn_table *table, uint64_t id,
                                                           table_id_visitor *visit, void *user)
{
    if (table->record_count == 0 || id < table->id_min || id > table->id_max)
        return true;
    const uint32_t *order = table->id_order;
    uint64_t key = table->ids_ascend ? id - table->id_min : id * ID_MULTIPLIER;
    const uint32_t *bucket = &table->id_buckets[key >> table->id_shift];
    uint32_t place = bucket[0];
    const uint32_t end = bucket[1];
    const bool is_long = end - place > ID_BUCKET_SCAN;
    /* Long buckets are sorted by ID, so the first place is found by binary search. */
    for (uint32_t high = end; is_long && place < high;) {
        uint32_t middle = place + (high - place) / 2;
        if (table_id(table, order == NULL ? middle : order[middle]) < id)
            place = middle + 1;
        else
            high = middle;
    }
    bool found = false;
    for (; place < end; place++) {
        uint32_t index = order == NULL ? place : order[place];
        if (table_id(table, index) == id) {
            found = true;
            if (!visit((struct cairn_record){table, index}, user))
                return false;
        } else if (found && (is_long || table->ids_ascend)) {
            break;
        }
    }
    return true;
}

bool table_visit_id(const cairn_table *table, uint64_t id, table_id_visitor *visit, void *user)
{
    return visit_id(table, id, visit, user);
}

static uint32_t record_at_place(const cairn_table *table, uint32_t place)
{
    return table->id_order == NULL ? place : table->id_order[place];
}

/* Whether a place from `begin` up to `end` in the ID order has the ID. */
static bool has_id(const cairn_table *table, uint32_t begin, uint32_t end, uint64_t id)
{
    for (uint32_t place = begin; place < end; place++)
        if (table_id(table, record_at_place(table, place)) == id)
            return true;
    return false;
}

/* Records with one ID are in one bucket. In buckets that are sorted they are neighbours; the others
 * are short. */
void table_visit_ids(const cairn_table *table, table_first_visitor *visit, void *user)
{
    for (uint32_t bucket = 0; bucket < table->id_bucket_count; bucket++) {
        uint32_t begin = table->id_buckets[bucket];
        uint32_t end = table->id_buckets[bucket + 1];
        bool is_sorted = table->ids_ascend || end - begin > ID_BUCKET_SCAN;
        for (uint32_t place = begin; place < end; place++) {
            uint32_t index = record_at_place(table, place);
            uint64_t id = table_id(table, index);
            uint32_t low = is_sorted && place > begin ? place - 1 : begin;
            uint32_t high = is_sorted && place + 1 < end ? place + 2 : end;
            if (!has_id(table, low, place, id))
                visit((struct cairn_record){table, index}, !has_id(table, place + 1, high, id),
                      user);
        }
    }
}

bool record_list_append(struct cairn_record record, void *user)
{
    struct record_list *list = user;
    if (list->count < list->capacity)
        list->records[list->count] = record;
    list->count++;
    return true;
}

size_t table_find_id(const cairn_table *table, uint64_t id, struct cairn_record *records,
                     size_t capacity)
{
    struct record_list list = {.records = records, .capacity = capacity};
    visit_id(table, id, record_list_append, &list);
    return list.count;
}

/* ---- Records ---- */

uint64_t cairn_record_id(struct cairn_record record)
{
    return table_id(record.table, record.index);
}

/* Searches for the bucket from where an even distribution would put it, and widens from there. */
uint64_t cairn_record_address(struct cairn_record record)
{
    const cairn_table *table = record.table;
    const uint32_t index = record.index;
    const uint32_t *starts = table->address_buckets;
    uint32_t begin = 0;
    uint32_t end = table->bucket_count;
    uint32_t guess =
        (uint32_t)((uint64_t)index * table->bucket_count / (table->record_count + UINT64_C(1)));
    for (uint32_t reach = 4; reach < table->bucket_count; reach *= 4) {
        uint32_t low = guess > reach ? guess - reach : 0;
        uint32_t high = guess + reach < table->bucket_count ? guess + reach : table->bucket_count;
        if (starts[low] <= index && index < starts[high]) {
            begin = low;
            end = high;
            break;
        }
    }
    uint32_t bucket = search_u32(starts, sizeof *starts, begin, end, index + UINT64_C(1)) - 1;
    return table->base + table_record_offset(table, bucket, index);
}

uint64_t table_next_record_address(const cairn_table *table, uint32_t index, uint32_t *bucket)
{
    while (table->address_buckets[*bucket + 1] <= index)
        ++*bucket;
    return table->base + table_record_offset(table, *bucket, index);
}

uint64_t table_next_address(const cairn_table *table, uint64_t address)
{
    uint64_t offset = address < table->base ? 0 : address - table->base + 1;
    if (table->record_count == 0 || offset > table->span)
        return UINT64_MAX;
    uint32_t bucket = (uint32_t)(offset >> table->bucket_shift);
    uint32_t end = table->address_buckets[bucket + 1];
    uint32_t index =
        table_lower_bound(table, table->address_buckets[bucket], end, (uint16_t)offset);
    if (index == end)
        /* The first record of another bucket. There is one, because the last record is not below
         * `offset`. */
        return cairn_record_address((struct cairn_record){table, index});
    return table->base + table_record_offset(table, bucket, index);
}

/* ---- Values ---- */

uint32_t cairn_record_location_count(struct cairn_record record)
{
    struct record_values values = record_values_of(record);
    return record_values_location_count(&values);
}

struct cairn_location cairn_record_location(struct cairn_record record, uint32_t index)
{
    struct record_values values = record_values_of(record);
    return record_values_location(&values, index);
}

bool record_liveout(struct cairn_record record, uint32_t index, struct cairn_liveout *liveout)
{
    struct record_values values = record_values_of(record);
    if (index >= values.liveout_count)
        return false;
    uint32_t word = values.liveouts[index];
    *liveout = (struct cairn_liveout){.dwarf = (uint16_t)word, .size = (uint8_t)(word >> 16)};
    return true;
}

/* ---- Statepoints ---- */

static struct cairn_location table_location(const void *record, uint32_t index)
{
    return cairn_record_location(*(const struct cairn_record *)record, index);
}

enum cairn_status cairn_record_statepoint(struct cairn_record record,
                                          struct cairn_statepoint *statepoint,
                                          struct cairn_error *error)
{
    if (record.table == NULL || statepoint == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_record_statepoint: `%s` is NULL",
                         statepoint == NULL ? "statepoint" : "record.table");
    const struct statepoint_source source = {
        .location = table_location,
        .record = &record,
        .count = cairn_record_location_count(record),
        .offset = cairn_record_address(record),
    };
    return statepoint_parse(&source, statepoint, error);
}

/* ---- Tables ---- */

uint32_t cairn_table_record_count(const cairn_table *table) { return table->record_count; }

size_t table_size_bytes(const cairn_table *table, size_t *value_bytes)
{
    if (value_bytes != NULL)
        *value_bytes = table->value_bytes;
    return table->size_bytes;
}

void table_set_owner(cairn_table *table, void *owner) { table->owner = owner; }

void *table_owner(const cairn_table *table) { return table->owner; }

/* ---- Readers in other processes ---- */

void table_inspect(struct inspect_field *fields)
{
    fields[INSPECT_TABLE_RECORD_COUNT] = INSPECT_MEMBER(struct cairn_table, record_count);
    fields[INSPECT_TABLE_FUNCTION_COUNT] = INSPECT_MEMBER(struct cairn_table, function_count);
    fields[INSPECT_TABLE_IDS_LOW] = INSPECT_MEMBER(struct cairn_table, ids_low);
    fields[INSPECT_TABLE_IDS_HIGH] = INSPECT_MEMBER(struct cairn_table, ids_high);
    fields[INSPECT_TABLE_ID_HIGH] = INSPECT_MEMBER(struct cairn_table, id_high);
}
