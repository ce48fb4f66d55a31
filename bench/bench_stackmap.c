/*
 * Decoding stack maps, building tables, and lookups.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/bench_stackmap.h"

#include "bench/peer_stackmapparser.h"

#include <cairn/table.h>
#include <stdlib.h>

enum { REPEATS = 15, LOOKUPS = 1000000 };

/* Results of the measured work. They are volatile so that the compiler does not remove the work. */
static volatile uint64_t sink;

/* ---- Decoding ---- */

static bool add_record(void *user, const struct cairn_stackmap *map,
                       const struct cairn_stackmap_record *record)
{
    uint64_t sum = record->id + record->code_offset;
    for (uint32_t i = 0; i < record->location_count; i++) {
        struct cairn_location location = cairn_stackmap_location(map, record, i);
        sum += (uint64_t)location.kind + location.dwarf + (uint32_t)location.offset;
    }
    *(uint64_t *)user += sum;
    return true;
}

/* Adds the same numbers to the sum, from columns. */
static bool add_columns(void *user, const struct cairn_stackmap_columns *columns)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < columns->record_count; i++)
        sum += columns->records[i].id + columns->records[i].code_offset;
    for (uint32_t i = 0; i < columns->location_count; i++)
        sum += (uint64_t)columns->kinds[i] + columns->registers[i] + (uint32_t)columns->offsets[i];
    *(uint64_t *)user += sum;
    return true;
}

static double time_columns(const struct cairn_section *section, uint64_t *sum)
{
    double start = bench_now_of_thread();
    *sum = 0;
    enum cairn_status status = cairn_stackmap_walk_columns(section, add_columns, sum, NULL);
    sink += status;
    return (bench_now_of_thread() - start) / 1e6;
}

static double time_walk(const struct cairn_section *section, uint64_t *sum)
{
    double start = bench_now_of_thread();
    *sum = 0;
    enum cairn_status status = cairn_stackmap_walk(section, add_record, sum, NULL);
    sink += status;
    return (bench_now_of_thread() - start) / 1e6;
}

/* Checks all records first and then iterates, which takes two passes. */
static double time_read_and_iterate(const struct cairn_section *section)
{
    double start = bench_now_of_thread();
    uint64_t sum = 0;
    size_t offset = 0;
    struct cairn_stackmap map;
    while (offset < section->size &&
           cairn_stackmap_read(section, &offset, &map, NULL) == CAIRN_OK) {
        struct cairn_stackmap_record record;
        bool more = cairn_stackmap_first(&map, &record);
        for (; more; more = cairn_stackmap_next(&map, &record))
            add_record(&sum, &map, &record);
    }
    sink += sum;
    return (bench_now_of_thread() - start) / 1e6;
}

static double time_build(const struct cairn_section *section, cairn_table **table)
{
    double start = bench_now_of_thread();
    if (cairn_table_create(section, 1, NULL, table, NULL) != CAIRN_OK)
        *table = NULL;
    return (bench_now_of_thread() - start) / 1e6;
}

#ifdef BENCH_STACKMAPPARSER
#define PEER "llvm::StackMapParser"
static double time_peer(const struct cairn_section *section, uint64_t *sum)
{
    double start = bench_now_of_thread();
    *sum = peer_stackmapparser_walk(section->bytes, section->size);
    return (bench_now_of_thread() - start) / 1e6;
}
#else
#define PEER NULL
static double time_peer(const struct cairn_section *section, uint64_t *sum)
{
    (void)section;
    (void)sum;
    return 0;
}
#endif

/* Whether LLVM's parser can read the section. It reads one map of version 3 in little-endian
 * order. */
static bool peer_can_read(const struct cairn_section *section)
{
    size_t offset = 0;
    struct cairn_stackmap map;
    return PEER != NULL && section->byte_order == CAIRN_LITTLE_ENDIAN &&
           cairn_stackmap_read(section, &offset, &map, NULL) == CAIRN_OK && map.version == 3 &&
           offset == section->size;
}

struct decoding {
    double columns[REPEATS];
    double records[REPEATS];
    double iterate[REPEATS];
    double build[REPEATS];
    double peer[REPEATS];
    bool has_peer;
    bool same_sums;
    uint32_t record_count;
    size_t index_bytes;
    size_t value_bytes;
};

static bool time_decoding(const struct cairn_section *section, struct decoding *decoding)
{
    decoding->has_peer = peer_can_read(section);
    decoding->same_sums = true;
    for (int i = 0; i < REPEATS; i++) {
        uint64_t peer = 0;
        uint64_t columns;
        uint64_t records;
        cairn_table *table;
        decoding->peer[i] = decoding->has_peer ? time_peer(section, &peer) : 0;
        decoding->columns[i] = time_columns(section, &columns);
        decoding->records[i] = time_walk(section, &records);
        decoding->iterate[i] = time_read_and_iterate(section);
        decoding->build[i] = time_build(section, &table);
        if (table == NULL)
            return false;
        decoding->same_sums &= columns == records && (!decoding->has_peer || peer == columns);
        decoding->record_count = cairn_table_record_count(table);
        decoding->index_bytes = cairn_table_size_bytes(table, &decoding->value_bytes);
        decoding->index_bytes -= decoding->value_bytes;
        cairn_table_destroy(table);
    }
    return true;
}

static void print_against_peer(const struct bench_options *options, const char *name, double *times,
                               double *peer, double limit)
{
    bool has_peer = peer != NULL;
    bench_print(options, &(struct bench_figure){name, bench_percentile(times, REPEATS, 0.5), "ms",
                                                has_peer ? PEER : NULL,
                                                has_peer ? bench_percentile(peer, REPEATS, 0.5) : 0,
                                                0, has_peer ? limit : 0});
}

static bool bench_decoding(const struct bench_options *options, const struct cairn_section *section)
{
    struct decoding decoding;
    if (!time_decoding(section, &decoding))
        return false;
    if (!decoding.same_sums)
        bench_print_missing(options, "decode.same-sum", "NOT ALL SAW THE SAME LOCATIONS");
    double *peer = decoding.has_peer ? decoding.peer : NULL;
    print_against_peer(options, "decode.validate-and-walk", decoding.columns, peer, 1 / 1.5);
    print_against_peer(options, "decode.validate-and-visit-records", decoding.records, peer,
                       1 / 1.5);
    print_against_peer(options, "decode.validate-then-iterate", decoding.iterate, peer, 0);
    print_against_peer(options, "index.build", decoding.build, peer, 0.6);
    if (!decoding.has_peer)
        bench_print_missing(options, "decode.peer",
                            PEER == NULL ? "LLVM 19's StackMapParser was not found when building"
                                         : "LLVM's StackMapParser cannot read this section");
    double count = decoding.record_count == 0 ? 1 : decoding.record_count;
    double build_time = bench_percentile(decoding.build, REPEATS, 0.5);
    bench_print(options, &(struct bench_figure){.name = "index.build-per-record",
                                                .value = build_time * 1e6 / count,
                                                .unit = "ns"});
    bench_print(options, &(struct bench_figure){.name = "index.bytes-per-record",
                                                .value = (double)decoding.index_bytes / count,
                                                .unit = "bytes",
                                                .limit = 24});
    bench_print(options, &(struct bench_figure){.name = "index.value-bytes-per-record",
                                                .value = (double)decoding.value_bytes / count,
                                                .unit = "bytes"});
    return true;
}

/* ---- Lookups ---- */

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 11;
}

static double time_lookups(const cairn_table *table, const uint64_t *addresses, bool hot)
{
    struct cairn_record record = {0};
    uint64_t sum = 0;
    double start = bench_now_of_thread();
    for (uint32_t i = 0; i < LOOKUPS; i++) {
        sum += cairn_table_find_address(table, hot ? addresses[0] : addresses[i], &record);
        sum += record.index;
    }
    sink += sum;
    return (bench_now_of_thread() - start) / LOOKUPS;
}

static double time_id_lookups(const cairn_table *table, const uint64_t *ids)
{
    struct cairn_record record = {0};
    uint64_t sum = 0;
    double start = bench_now_of_thread();
    for (uint32_t i = 0; i < LOOKUPS; i++)
        sum += cairn_table_find_id(table, ids[i], &record, 1) + record.index;
    sink += sum;
    return (bench_now_of_thread() - start) / LOOKUPS;
}

static void time_all_lookups(const struct bench_options *options, const cairn_table *table,
                             const uint64_t *addresses, const uint64_t *ids)
{
    double random[REPEATS];
    double hot[REPEATS];
    double by_id[REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        random[i] = time_lookups(table, addresses, false);
        hot[i] = time_lookups(table, addresses, true);
        by_id[i] = time_id_lookups(table, ids);
    }
    bench_print(options, &(struct bench_figure){.name = "lookup.pc-random",
                                                .value = bench_percentile(random, REPEATS, 0.5),
                                                .unit = "ns",
                                                .limit = 12});
    bench_print(options, &(struct bench_figure){.name = "lookup.pc-hot",
                                                .value = bench_percentile(hot, REPEATS, 0.5),
                                                .unit = "ns",
                                                .limit = 3});
    bench_print(options, &(struct bench_figure){.name = "lookup.id-random",
                                                .value = bench_percentile(by_id, REPEATS, 0.5),
                                                .unit = "ns"});
}

static bool bench_lookups(const struct bench_options *options, const struct cairn_section *section)
{
    cairn_table *table = NULL;
    time_build(section, &table);
    uint64_t *addresses = malloc(2 * LOOKUPS * sizeof *addresses);
    if (table == NULL || addresses == NULL) {
        free(addresses);
        cairn_table_destroy(table);
        return false;
    }
    uint64_t *ids = addresses + LOOKUPS;
    uint64_t state = UINT64_C(0x2545F4914F6CDD1D);
    uint32_t count = cairn_table_record_count(table);
    for (uint32_t i = 0; i < LOOKUPS && count > 0; i++) {
        struct cairn_record record = {table, (uint32_t)(next_random(&state) % count)};
        addresses[i] = cairn_record_address(record);
        ids[i] = cairn_record_id(record);
    }
    if (count > 0)
        time_all_lookups(options, table, addresses, ids);
    free(addresses);
    cairn_table_destroy(table);
    return true;
}

bool bench_stackmap(const struct bench_options *options, const struct cairn_section *section)
{
    bool decoding = bench_wants(options, "decode") || bench_wants(options, "index");
    if (decoding && !bench_decoding(options, section))
        return false;
    return !bench_wants(options, "lookup") || bench_lookups(options, section);
}
