/*
 * Support for the tests of stack maps and tables: writing sections, making random ones, bytes that
 * end at a page without access, an allocator that counts and fails.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_STACKMAP_SUPPORT_H
#define TESTS_STACKMAP_SUPPORT_H

#include <cairn/allocator.h>
#include <cairn/stackmap.h>
#include <cairn/table.h>
#include <check.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ck_assert_ok(status) ck_assert_int_eq((status), CAIRN_OK)

/* An assertion for conditions that are checked millions of times: Check's own records every
 * check. */
#define expect(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg("not so: %s", #condition);                                                \
    } while (0)

/* The same for two equal integers. */
#define expect_equal(left, right)                                                                  \
    do {                                                                                           \
        uintmax_t left_is = (uintmax_t)(left);                                                     \
        uintmax_t right_is = (uintmax_t)(right);                                                   \
        if (left_is != right_is)                                                                   \
            ck_abort_msg("%s is %ju, and %s is %ju", #left, left_is, #right, right_is);            \
    } while (0)

/* ---- Valid sections ---- */

/* A record. `constant` of a location is not written: it follows from the other members. */
struct sample_record {
    uint64_t id;
    uint32_t code_offset;
    uint32_t location_count;
    uint32_t liveout_count;
    const struct cairn_location *locations;
    const struct cairn_liveout *liveouts;
};

struct sample_map {
    uint8_t version;
    /* The value of every reserved byte and of every padding byte. */
    uint8_t reserved;
    uint32_t function_count;
    uint32_t constant_count;
    uint32_t record_count;
    const struct cairn_stackmap_function *functions;
    const uint64_t *constants;
    const struct sample_record *records;
};

/* A section that is being written; section_free frees its bytes. */
struct sample_section {
    enum cairn_byte_order byte_order;
    uint8_t *bytes;
    size_t size;
    size_t capacity;
};

void section_put(struct sample_section *section, uint64_t value, size_t size);
void section_put_map(struct sample_section *section, const struct sample_map *map);
void section_free(struct sample_section *section);
struct cairn_section section_view(const struct sample_section *section);
/* Returns the table of a section with this map alone. */
cairn_table *section_make_table(const struct sample_map *map);

/* ---- Random sections ---- */

/* Returns the seed from CAIRN_TEST_SEED in the environment, or from the clock, and prints it. */
uint64_t sample_seed(void);

/* Ends the process if it uses more than this many seconds of processor time from now on: for inputs
 * that take milliseconds in linear time, and minutes in quadratic time. */
void limit_cpu_seconds(unsigned seconds);
/* Returns a random number below `bound`, which is not 0. */
uint32_t sample_random(uint64_t *state, uint32_t bound);
uint64_t sample_random_id(uint64_t *state);

/* Limits of a random map. All numbers are below these. */
struct sample_shape {
    uint8_t version;
    uint32_t functions_max;
    uint32_t records_max; /* per function */
    uint32_t locations_max;
    uint32_t liveouts_max;
    uint32_t constants_max;
    uint32_t code_bytes_max; /* between two records */
    uint64_t first_address;
    bool scattered; /* whether functions and records are in random order */
};

/* Returns a random map. All parts are allocated; sample_map_free frees them. */
struct sample_map *sample_map_random(const struct sample_shape *shape, uint64_t *random);
void sample_map_free(struct sample_map *map);

/* ---- Comparing ---- */

void assert_location(struct cairn_location found, struct cairn_location expected,
                     const uint64_t *constants);
void assert_liveout(struct cairn_liveout found, struct cairn_liveout expected);

/* ---- Bytes before a page that faults ---- */

struct guarded {
    uint8_t *bytes; /* a copy; bytes[size] is not accessible */
    size_t size;
    void *mapping;
    size_t mapping_size;
};

/* Copies the bytes to the end of a page that is followed by one without access. `size` may be 0;
 * `bytes` is then ignored. */
struct guarded guard(const uint8_t *bytes, size_t size);
void guard_end(struct guarded *guarded);

/* ---- An allocator ---- */

/* Fails allocation number `fail_at` (counted from 1; 0: no failure), and fails the test if a block
 * is freed with a size other than its own. */
struct counting_allocator {
    size_t calls;
    size_t fail_at;
    size_t blocks;
    size_t bytes;
};
struct cairn_allocator counting(struct counting_allocator *allocator);

int run_suite(Suite *suite);

#endif
