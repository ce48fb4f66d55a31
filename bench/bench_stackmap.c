/*
 * Decoding stack maps, building tables, and lookups.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/bench_stackmap.h"
#include "record/table.h"

#include "bench/peer_stackmapparser.h"

#include <cairn/stackmap.h>
#include <cairn/table.h>
#include <stdlib.h>

enum { REPEATS = 15, LOOKUPS = 1000000 };

/* Results of the measured work. They are volatile so that the compiler does not remove the work. */
static volatile uint64_t sink;

/* ---- Decoding ---- */

/* Sums up all records and their locations. A separate function, as a reader of maps would have it:
 * inlined into a larger one, the loop over the locations keeps less in registers. */
static __attribute__((noinline)) uint64_t sum_records(const struct cairn_stackmap *map)
{
    uint64_t sum = 0;
    struct cairn_stackmap_record record = {0};
    while (cairn_stackmap_next(map, &record)) {
        sum += record.id + record.code_offset;
        for (uint32_t i = 0; i < record.location_count; i++) {
            struct cairn_location location = cairn_stackmap_location(map, &record, i);
            sum += (uint64_t)location.kind + location.dwarf + (uint32_t)location.offset;
        }
    }
    return sum;
}

/* Validates the section, and then walks over it. */
static double time_walk(const struct cairn_section *section, uint64_t *sum)
{
    double start = bench_now_of_thread();
    size_t offset = 0;
    struct cairn_stackmap map;
    *sum = 0;
    while (offset < section->size && cairn_stackmap_read(section, &offset, &map, NULL) == CAIRN_OK)
        *sum += sum_records(&map);
    return (bench_now_of_thread() - start) / 1e6;
}

/* Returns the bytes of a table's locations and live-outs. */
static size_t value_bytes_of(const cairn_table *table)
{
    enum { VALUE_BYTES = 4 };
    struct cairn_liveout liveout;
    size_t count = 0;
    struct cairn_record record = {.table = table};
    for (; record.index < cairn_table_record_count(table); record.index++) {
        count += cairn_record_location_count(record);
        for (uint32_t i = 0; record_liveout(record, i, &liveout); i++)
            count++;
    }
    return count * VALUE_BYTES;
}

/* An allocator that keeps the number of allocated bytes in `*bytes`. */
static void *reallocate(void *bytes, void *block, size_t old_size, size_t new_size)
{
    *(size_t *)bytes += new_size - (block == NULL ? 0 : old_size);
    if (new_size > 0)
        return realloc(block, new_size);
    free(block);
    return NULL;
}

/* Returns the bytes of a table of the section, without its locations and live-outs. */
static size_t index_bytes_of(const struct cairn_section *section)
{
    size_t bytes = 0;
    const struct cairn_allocator allocator = {.reallocate = reallocate, .user = &bytes};
    cairn_table *table;
    if (cairn_table_create(section, 1, &allocator, &table, NULL) != CAIRN_OK)
        return 0;
    size_t index_bytes = bytes - value_bytes_of(table);
    cairn_table_destroy(table);
    return index_bytes;
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
    double walk[REPEATS];
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
    decoding->index_bytes = index_bytes_of(section);
    for (int i = 0; i < REPEATS; i++) {
        uint64_t peer = 0;
        uint64_t sum;
        cairn_table *table;
        decoding->peer[i] = decoding->has_peer ? time_peer(section, &peer) : 0;
        decoding->walk[i] = time_walk(section, &sum);
        decoding->build[i] = time_build(section, &table);
        if (table == NULL)
            return false;
        decoding->same_sums &= !decoding->has_peer || peer == sum;
        decoding->record_count = cairn_table_record_count(table);
        decoding->value_bytes = value_bytes_of(table);
        cairn_table_destroy(table);
    }
    return true;
}

/* The peer only walks: neither may take longer. */
static void print_against_peer(const struct bench_options *options, const char *name, double *times,
                               double *peer)
{
    struct bench_figure figure = {
        .name = name, .value = bench_percentile(times, REPEATS, 0.5), .unit = "ms"};
    if (peer != NULL) {
        figure.peer = PEER;
        figure.peer_value = bench_percentile(peer, REPEATS, 0.5);
        figure.ratio_limit = 1;
    }
    bench_print(options, &figure);
}

static bool bench_decoding(const struct bench_options *options, const struct cairn_section *section)
{
    struct decoding decoding;
    if (!time_decoding(section, &decoding))
        return false;
    if (!decoding.same_sums)
        bench_print_missing(options, "decode.same-sum", "NOT ALL SAW THE SAME LOCATIONS");
    double *peer = decoding.has_peer ? decoding.peer : NULL;
    print_against_peer(options, "decode.validate-and-walk", decoding.walk, peer);
    print_against_peer(options, "index.build", decoding.build, peer);
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
    return (bench_now_of_thread() - start) / (double)LOOKUPS;
}

static double time_id_lookups(const cairn_table *table, const uint64_t *ids)
{
    struct cairn_record record = {0};
    uint64_t sum = 0;
    double start = bench_now_of_thread();
    for (uint32_t i = 0; i < LOOKUPS; i++)
        sum += table_find_id(table, ids[i], &record, 1) + record.index;
    sink += sum;
    return (bench_now_of_thread() - start) / (double)LOOKUPS;
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
