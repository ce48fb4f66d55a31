/*
 * cairn-bench-blocks: decoding basic-block address maps, lookups of blocks by PC, and PC sections.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/generate_bbmap.h"
#include "bench/report.h"
#ifdef BENCH_STACKMAPPARSER
#include "bench/peer_bbaddrmap.h"
#endif

#include <cairn/block_table.h>
#include <cairn/pcsection.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DECODED_BLOCKS = 5000000,
    LOOKED_UP_BLOCKS = 1000000,
    LOOKUPS = 1000000,
    REPEATS = 11,
    BAD_USAGE = 2
};

/* Results of the measured work. They are volatile so that the compiler does not remove the work. */
static volatile uint64_t sink;

static struct cairn_section maps_of(const struct generated_bbmap *made)
{
    return (struct cairn_section){made->bytes + made->section_offset, made->section_size,
                                  CAIRN_LITTLE_ENDIAN};
}

/* ---- Decoding ---- */

static uint64_t sum_function(const struct cairn_bbmap_function *function)
{
    struct cairn_bbmap_block block = {0};
    uint64_t sum = 0;
    while (cairn_bbmap_next(function, &block))
        sum += block.base + block.offset + block.size + block.id + block.flags;
    return sum;
}

static double time_decode(const struct cairn_section *section, uint64_t *sum)
{
    struct cairn_bbmap_function function;
    size_t offset = 0;
    double begin = bench_now_of_thread();
    *sum = 0;
    while (offset < section->size) {
        if (cairn_bbmap_read(section, CAIRN_BBMAP_VERSIONED, &offset, &function, NULL) != CAIRN_OK)
            return 0;
        *sum += sum_function(&function);
    }
    return (bench_now_of_thread() - begin) / 1e6;
}

static double time_check(const struct cairn_section *section)
{
    struct cairn_bbmap_function function;
    size_t offset = 0;
    double begin = bench_now_of_thread();
    while (offset < section->size)
        if (cairn_bbmap_read(section, CAIRN_BBMAP_VERSIONED, &offset, &function, NULL) != CAIRN_OK)
            return 0;
    return (bench_now_of_thread() - begin) / 1e6;
}

#ifdef BENCH_STACKMAPPARSER
enum { HAS_PEER = 1 };
static double time_peer(const struct generated_bbmap *made, uint64_t *sum)
{
    double read_time;
    if (!peer_bbaddrmap_walk(made->bytes, made->size, sum, &read_time))
        return 0;
    return read_time / 1e6;
}
#else
enum { HAS_PEER = 0 };
static double time_peer(const struct generated_bbmap *made, uint64_t *sum)
{
    (void)made;
    (void)sum;
    return 0;
}
#endif

static void print_decoding(const struct bench_options *options, const char *name, double *times,
                           double *peer, uint32_t block_count)
{
    double value = bench_percentile(times, REPEATS, 0.5);
    bench_print(options, &(struct bench_figure){.name = name,
                                                .value = value,
                                                .unit = "ms",
                                                .peer = HAS_PEER ? "LLVM's readBBAddrMap" : NULL,
                                                .peer_value = bench_percentile(peer, REPEATS, 0.5),
                                                .ratio_limit = HAS_PEER ? 0.5 : 0});
    char per_block[64];
    snprintf(per_block, sizeof per_block, "%s-per-block", name);
    bench_print(options, &(struct bench_figure){
                             .name = per_block, .value = value * 1e6 / block_count, .unit = "ns"});
}

static bool bench_decoding(const struct bench_options *options)
{
    struct generated_bbmap made = generate_bbmap(DECODED_BLOCKS);
    if (made.bytes == NULL)
        return false;
    struct cairn_section section = maps_of(&made);
    double decode[REPEATS];
    double check[REPEATS];
    double peer[REPEATS];
    bool is_same = true;
    for (int i = 0; i < REPEATS; i++) {
        uint64_t sum = 0;
        uint64_t peer_sum = 0;
        peer[i] = time_peer(&made, &peer_sum);
        decode[i] = time_decode(&section, &sum);
        check[i] = time_check(&section);
        is_same &= !HAS_PEER || sum == peer_sum;
    }
    if (!is_same)
        bench_print_missing(options, "bbmap.same-sum", "NOT BOTH SAW THE SAME BLOCKS");
    print_decoding(options, "bbmap.check-and-iterate", decode, peer, made.block_count);
    print_decoding(options, "bbmap.check", check, peer, made.block_count);
    if (!HAS_PEER)
        bench_print_missing(options, "bbmap.peer", "LLVM 19's headers were not found");
    free(made.bytes);
    return is_same;
}

/* ---- Lookups ---- */

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 11;
}

/* A table that a program without Cairn could use: the sorted addresses of blocks, and an array of
 * their other properties. */
struct plain_block {
    uint32_t size;
    uint32_t id;
    uint32_t function;
    uint8_t flags;
};

struct plain {
    uint64_t *begins;
    struct plain_block *blocks;
    uint32_t count;
};

static bool plain_make(const cairn_block_table *table, struct plain *plain)
{
    struct cairn_block block;
    const struct cairn_block_table_counts counts = cairn_block_table_counts(table);
    *plain = (struct plain){malloc(counts.blocks * sizeof *plain->begins),
                            malloc(counts.blocks * sizeof *plain->blocks), 0};
    if (plain->begins == NULL || plain->blocks == NULL)
        return false;
    for (uint32_t f = 0; f < counts.functions; f++)
        for (uint32_t i = 0; cairn_block_table_block(table, f, i, &block); i++) {
            plain->begins[plain->count] = block.address;
            plain->blocks[plain->count++] =
                (struct plain_block){block.size, block.id, block.function, block.flags};
        }
    return true;
}

static void plain_free(struct plain *plain)
{
    free(plain->begins);
    free(plain->blocks);
}

static const struct plain_block *plain_find(const struct plain *plain, uint64_t pc,
                                            uint64_t *address)
{
    uint32_t begin = 0;
    uint32_t end = plain->count;
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        if (plain->begins[middle] <= pc)
            begin = middle + 1;
        else
            end = middle;
    }
    if (begin == 0 || pc - plain->begins[begin - 1] >= plain->blocks[begin - 1].size)
        return NULL;
    *address = plain->begins[begin - 1];
    return &plain->blocks[begin - 1];
}

/* Measures lookups. If they are chained, each waits for the result of the previous one. The
 * function is always inlined into two loops, because a factor of 0 would also make lookups wait. */
static inline __attribute__((always_inline)) double time_lookups(const cairn_block_table *table,
                                                                 const uint64_t *pcs,
                                                                 bool is_chained, uint64_t *sum)
{
    struct cairn_block block = {0};
    uint64_t found = 0;
    uint64_t wait = 0;
    double begin = bench_now_of_thread();
    for (uint32_t i = 0; i < LOOKUPS; i++) {
        uint64_t pc = pcs[i] + wait;
        if (cairn_block_table_find(table, pc, &block))
            found += block.id + block.flags + block.function + (pc - block.address);
        if (is_chained)
            wait = found >> 63;
    }
    *sum = found;
    return (bench_now_of_thread() - begin) / (double)LOOKUPS;
}

static double time_each(const cairn_block_table *table, const uint64_t *pcs, uint64_t *sum)
{
    return time_lookups(table, pcs, false, sum);
}

static double time_chained(const cairn_block_table *table, const uint64_t *pcs, uint64_t *sum)
{
    return time_lookups(table, pcs, true, sum);
}

static inline __attribute__((always_inline)) double time_plain(const struct plain *plain,
                                                               const uint64_t *pcs, bool is_chained,
                                                               uint64_t *sum)
{
    uint64_t found = 0;
    uint64_t wait = 0;
    uint64_t address = 0;
    double begin = bench_now_of_thread();
    for (uint32_t i = 0; i < LOOKUPS; i++) {
        uint64_t pc = pcs[i] + wait;
        const struct plain_block *block = plain_find(plain, pc, &address);
        if (block != NULL)
            found += block->id + block->flags + block->function + (pc - address);
        if (is_chained)
            wait = found >> 63;
    }
    *sum = found;
    return (bench_now_of_thread() - begin) / (double)LOOKUPS;
}

static double time_plain_each(const struct plain *plain, const uint64_t *pcs, uint64_t *sum)
{
    return time_plain(plain, pcs, false, sum);
}

static double time_plain_chained(const struct plain *plain, const uint64_t *pcs, uint64_t *sum)
{
    return time_plain(plain, pcs, true, sum);
}

static void print_lookup(const struct bench_options *options, const char *name, double *times,
                         double *peer, double limit)
{
    bench_print(options, &(struct bench_figure){.name = name,
                                                .value = bench_percentile(times, REPEATS, 0.5),
                                                .unit = "ns",
                                                .peer = "binary search",
                                                .peer_value = bench_percentile(peer, REPEATS, 0.5),
                                                .limit = limit});
}

static bool bench_lookup(const struct bench_options *options, const char *name,
                         const cairn_block_table *table, const struct plain *plain,
                         const uint64_t *pcs, bool is_chained)
{
    double times[REPEATS];
    double peer[REPEATS];
    bool is_same = true;
    for (int i = 0; i < REPEATS; i++) {
        uint64_t sum;
        uint64_t peer_sum;
        times[i] = is_chained ? time_chained(table, pcs, &sum) : time_each(table, pcs, &sum);
        peer[i] = is_chained ? time_plain_chained(plain, pcs, &peer_sum)
                             : time_plain_each(plain, pcs, &peer_sum);
        is_same &= sum == peer_sum;
    }
    if (!is_same)
        bench_print_missing(options, "blocks.same-sum", "NOT BOTH FOUND THE SAME BLOCKS");
    print_lookup(options, name, times, peer, is_chained ? 0 : 40);
    return is_same;
}

static bool time_build(const struct cairn_section *section, cairn_block_table **table, double *time)
{
    cairn_block_builder *builder;
    double begin = bench_now_of_thread();
    if (cairn_block_builder_create(NULL, &builder, NULL) != CAIRN_OK)
        return false;
    enum cairn_status status =
        cairn_block_builder_add(builder, section, CAIRN_BBMAP_VERSIONED, NULL, NULL, NULL);
    if (status == CAIRN_OK)
        status = cairn_block_builder_finish(builder, table, NULL);
    cairn_block_builder_destroy(builder);
    *time = bench_now_of_thread() - begin;
    return status == CAIRN_OK;
}

static bool bench_lookups_in(const struct bench_options *options,
                             const struct generated_bbmap *made, const cairn_block_table *table,
                             const struct plain *plain)
{
    static uint64_t pcs[LOOKUPS];
    uint64_t random = UINT64_C(0x123456789ABCDEF);
    for (uint32_t i = 0; i < LOOKUPS; i++)
        pcs[i] = made->code_address + next_random(&random) % made->code_size;
    return bench_lookup(options, "blocks.find-random", table, plain, pcs, false) &&
           bench_lookup(options, "blocks.find-random-each-waits", table, plain, pcs, true);
}

static bool bench_table(const struct bench_options *options, const struct generated_bbmap *made)
{
    cairn_block_table *table;
    struct plain plain;
    double build_time;
    struct cairn_section section = maps_of(made);
    if (!time_build(&section, &table, &build_time))
        return false;
    bool is_good = plain_make(table, &plain) && bench_lookups_in(options, made, table, &plain);
    bench_print(options, &(struct bench_figure){.name = "blocks.build-per-block",
                                                .value = build_time / made->block_count,
                                                .unit = "ns"});
    bench_print(options,
                &(struct bench_figure){.name = "blocks.bytes-per-block",
                                       .value = (double)cairn_block_table_counts(table).size_bytes /
                                                made->block_count,
                                       .unit = "bytes"});
    plain_free(&plain);
    cairn_block_table_destroy(table);
    return is_good;
}

static bool bench_lookups(const struct bench_options *options)
{
    struct generated_bbmap made = generate_bbmap(LOOKED_UP_BLOCKS);
    bool is_good = made.bytes != NULL && bench_table(options, &made);
    free(made.bytes);
    return is_good;
}

/* ---- PC sections ---- */

enum { ENTRIES = 2000000, ENTRY_BYTES_MAX = 64 };

static void put_value(uint8_t **at, uint64_t value, unsigned bytes, bool is_compressed)
{
    if (is_compressed && bytes > 1) {
        for (; value >= 0x80; value >>= 7)
            *(*at)++ = (uint8_t)(value | 0x80);
        *(*at)++ = (uint8_t)value;
        return;
    }
    for (unsigned i = 0; i < bytes; i++)
        *(*at)++ = (uint8_t)(value >> 8 * i);
}

/* Returns a random constant. If `is_any` is false, nine in ten are less than 128. If it is true,
 * the number of bits is random, so that the processor cannot predict it. */
static uint64_t random_constant(uint64_t *random, unsigned bits, bool is_any)
{
    if (!is_any && next_random(random) % 10 > 0)
        return next_random(random) % 128;
    uint64_t value = next_random(random) << 11 >> (64 - bits);
    return value >> next_random(random) % bits;
}

/* Writes entries for functions of up to 1023 bytes. */
static size_t put_entries(const struct cairn_pcsection_schema *schema, bool is_any, uint8_t *bytes)
{
    uint64_t random = UINT64_C(0x9E3779B97F4A7C15);
    uint8_t *at = bytes;
    for (uint32_t i = 0; i < ENTRIES; i++) {
        put_value(&at, next_random(&random), schema->address_bytes, false);
        if (schema->has_size)
            put_value(&at, next_random(&random) % 1024, 4, schema->is_compressed);
        for (unsigned j = 0; j < schema->constant_count; j++) {
            unsigned constant_bytes = schema->constant_bytes[j];
            put_value(&at, random_constant(&random, 8 * constant_bytes, is_any), constant_bytes,
                      schema->is_compressed);
        }
    }
    return (size_t)(at - bytes);
}

/* Returns nanoseconds for each entry; 0 if an entry is invalid. */
static double time_entries(const struct cairn_section *section,
                           const struct cairn_pcsection_schema *schema)
{
    struct cairn_pcsection_entry entry;
    size_t offset = 0;
    double begin = bench_now_of_thread();
    while (offset < section->size) {
        if (cairn_pcsection_read(section, 0x401000, schema, &offset, &entry, NULL) != CAIRN_OK)
            return 0;
        sink += entry.address;
    }
    return bench_now_of_thread() - begin;
}

static bool bench_schema(const struct bench_options *options, const char *text, bool is_any,
                         uint8_t *bytes)
{
    struct cairn_pcsection_schema schema;
    double times[REPEATS];
    if (cairn_pcsection_parse_schema(text, &schema, NULL) != CAIRN_OK)
        return false;
    struct cairn_section section = {bytes, put_entries(&schema, is_any, bytes),
                                    CAIRN_LITTLE_ENDIAN};
    for (int i = 0; i < REPEATS; i++)
        times[i] = time_entries(&section, &schema) / (double)section.size;
    char name[96];
    snprintf(name, sizeof name, "pcsection.%s%s", text, is_any ? ", of any length" : "");
    bench_print(options, &(struct bench_figure){.name = name,
                                                .value = bench_percentile(times, REPEATS, 0.5),
                                                .unit = "ns/byte",
                                                .limit = is_any ? 0 : 1});
    return times[0] > 0;
}

static bool bench_pcsections(const struct bench_options *options)
{
    static const struct {
        const char *text;
        bool is_any;
    } schemas[] = {
        {"instruction 4", false},
        {"instruction 8", false},
        {"function 4 u32", false},
        {"function 8 u32 u8", false},
        {"function 4 u64 u16 u8", false},
        {"function 4 !C", false},
        {"function 4 u64 u16 u8 !C", false},
        {"function 4 u64 u16 u8 !C", true},
        {"instruction 8 u64 u64 u64 u64 !C", false},
        {"instruction 8 u64 u64 u64 u64 !C", true},
    };
    uint8_t *bytes = malloc((size_t)ENTRIES * ENTRY_BYTES_MAX);
    bool is_good = bytes != NULL;
    for (size_t i = 0; is_good && i < sizeof schemas / sizeof *schemas; i++)
        is_good = bench_schema(options, schemas[i].text, schemas[i].is_any, bytes);
    free(bytes);
    return is_good;
}

int main(int argc, char **argv)
{
    struct bench_options options = {0};
    if (argc > 2) {
        fprintf(stderr, "usage: cairn-bench-blocks [PREFIX]\n");
        return BAD_USAGE;
    }
    if (argc > 1)
        options.only = argv[1];
    bench_begin(&options);
    if (bench_wants(&options, "bbmap.") && !bench_decoding(&options))
        return 1;
    if (bench_wants(&options, "pcsection.") && !bench_pcsections(&options))
        return 1;
    if (bench_wants(&options, "blocks.") && !bench_lookups(&options))
        return 1;
    bench_end(&options);
    return 0;
}
