/* SPDX-License-Identifier: MIT */
#include "stackmap_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* ---- Writing ---- */

void section_put(struct sample_section *section, uint64_t value, size_t size)
{
    if (section->size + size > section->capacity) {
        section->capacity = 2 * section->capacity + 256;
        section->bytes = realloc(section->bytes, section->capacity);
        expect(section->bytes != NULL);
    }
    for (size_t i = 0; i < size; i++) {
        size_t byte = section->byte_order == CAIRN_LITTLE_ENDIAN ? i : size - 1 - i;
        section->bytes[section->size++] = (uint8_t)(value >> (8 * byte));
    }
}

static void put_reserved(struct sample_section *section, const struct sample_map *map, size_t size)
{
    while (size-- > 0)
        section_put(section, map->reserved, 1);
}

static void align(struct sample_section *section, const struct sample_map *map)
{
    put_reserved(section, map, -section->size % 8);
}

static void put_location(struct sample_section *section, const struct sample_map *map,
                         const struct cairn_location *location)
{
    section_put(section, (uint64_t)location->kind, 1);
    if (map->version == 3) {
        put_reserved(section, map, 1);
        section_put(section, location->size, 2);
        section_put(section, location->dwarf, 2);
        put_reserved(section, map, 2);
    } else {
        section_put(section, location->size, 1);
        section_put(section, location->dwarf, 2);
    }
    section_put(section, (uint32_t)location->offset, 4);
}

static void put_record(struct sample_section *section, const struct sample_map *map,
                       const struct sample_record *record)
{
    section_put(section, record->id, 8);
    section_put(section, record->code_offset, 4);
    put_reserved(section, map, 2);
    section_put(section, record->location_count, 2);
    for (uint32_t i = 0; i < record->location_count; i++)
        put_location(section, map, &record->locations[i]);
    align(section, map);
    put_reserved(section, map, 2);
    section_put(section, record->liveout_count, 2);
    for (uint32_t i = 0; i < record->liveout_count; i++) {
        section_put(section, record->liveouts[i].dwarf, 2);
        put_reserved(section, map, 1);
        section_put(section, record->liveouts[i].size, 1);
    }
    align(section, map);
}

void section_put_map(struct sample_section *section, const struct sample_map *map)
{
    section_put(section, map->version, 1);
    put_reserved(section, map, 3);
    section_put(section, map->function_count, 4);
    section_put(section, map->constant_count, 4);
    section_put(section, map->record_count, 4);
    for (uint32_t i = 0; i < map->function_count; i++) {
        section_put(section, map->functions[i].address, 8);
        section_put(section, map->functions[i].stack_size, 8);
        if (map->version > 1)
            section_put(section, map->functions[i].record_count, 8);
    }
    for (uint32_t i = 0; i < map->constant_count; i++)
        section_put(section, map->constants[i], 8);
    for (uint32_t i = 0; i < map->record_count; i++)
        put_record(section, map, &map->records[i]);
}

void section_free(struct sample_section *section)
{
    free(section->bytes);
    *section = (struct sample_section){.byte_order = section->byte_order};
}

struct cairn_section section_view(const struct sample_section *section)
{
    return (struct cairn_section){section->bytes, section->size, section->byte_order};
}

cairn_table *section_make_table(const struct sample_map *map)
{
    struct sample_section written = {.byte_order = CAIRN_BYTE_ORDER_NATIVE};
    section_put_map(&written, map);
    const struct cairn_section section = section_view(&written);
    cairn_table *table;
    ck_assert_ok(cairn_table_create(&section, 1, NULL, &table, NULL));
    section_free(&written);
    return table;
}

/* ---- Random maps ---- */

void limit_cpu_seconds(unsigned seconds)
{
    struct rusage used;
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &used), 0);
    struct rlimit limits;
    ck_assert_int_eq(getrlimit(RLIMIT_CPU, &limits), 0);
    /* The hard limit remains, so that later tests of the process can set their own. */
    limits.rlim_cur = (rlim_t)used.ru_utime.tv_sec + (rlim_t)used.ru_stime.tv_sec + 1 + seconds;
    ck_assert_int_eq(setrlimit(RLIMIT_CPU, &limits), 0);
}

uint64_t sample_seed(void)
{
    const char *chosen = getenv("CAIRN_TEST_SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = chosen != NULL ? strtoull(chosen, NULL, 0)
                                   : (uint64_t)now.tv_sec * 1000000007 + (uint64_t)now.tv_nsec;
    printf("CAIRN_TEST_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    return seed * 2 + 1;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * UINT64_C(0x2545F4914F6CDD1D);
}

uint32_t sample_random(uint64_t *state, uint32_t bound)
{
    return (uint32_t)((next_random(state) >> 32) * bound >> 32);
}

uint64_t sample_random_id(uint64_t *state) { return next_random(state); }

static struct cairn_location random_location(const struct sample_map *map, uint64_t *random)
{
    static const uint16_t registers[] = {0,   3,   7,   17,   31,   64,   127,
                                         128, 255, 256, 1203, 1231, 65535};
    static const uint16_t sizes[] = {0, 1, 2, 3, 4, 8, 8, 8, 16, 64, 128, 255, 256, 4096, 65535};
    static const int32_t offsets[] = {0,       8,       -8,         131071,    -131072,   131072,
                                      -131073, 1 << 25, -(1 << 25), INT32_MAX, INT32_MIN, 33554431};
    struct cairn_location location = {
        .kind = (enum cairn_location_kind)(1 + sample_random(random, 5)),
        .size = sizes[sample_random(random, map->version == 3 ? 15 : 12)],
        .dwarf = registers[sample_random(random, 13)],
        .offset = offsets[sample_random(random, 12)],
    };
    if (sample_random(random, 4) > 0) { /* common, so that common records occur, too */
        location.size = 8;
        location.dwarf = (uint16_t)sample_random(random, 17);
        location.offset = -8 * (int32_t)sample_random(random, 100);
    }
    if (location.kind >= CAIRN_LOCATION_CONSTANT && sample_random(random, 8) > 0)
        location.dwarf = 0;
    if (location.kind == CAIRN_LOCATION_CONSTANT_INDEX && map->constant_count == 0)
        location.kind = CAIRN_LOCATION_CONSTANT;
    if (location.kind == CAIRN_LOCATION_CONSTANT_INDEX)
        location.offset = (int32_t)sample_random(random, map->constant_count);
    return location;
}

static uint32_t up_to(uint64_t *random, uint32_t largest)
{
    return sample_random(random, largest + 1);
}

static void *array(size_t count, size_t size)
{
    void *allocated = calloc(count == 0 ? 1 : count, size);
    ck_assert_ptr_nonnull(allocated);
    return allocated;
}

static void fill_record(const struct sample_map *map, const struct sample_shape *shape,
                        uint32_t code_offset, struct sample_record *record, uint64_t *random)
{
    /* Half of the IDs are small, so that they repeat. */
    record->id = sample_random(random, 2) == 0 ? sample_random(random, 50) : next_random(random);
    record->code_offset = code_offset;
    record->location_count = up_to(random, shape->locations_max);
    record->liveout_count = sample_random(random, 3) == 0 ? up_to(random, shape->liveouts_max) : 0;
    struct cairn_location *locations = array(record->location_count, sizeof *locations);
    for (uint32_t i = 0; i < record->location_count; i++)
        locations[i] = random_location(map, random);
    struct cairn_liveout *liveouts = array(record->liveout_count, sizeof *liveouts);
    for (uint32_t i = 0; i < record->liveout_count; i++)
        liveouts[i] = (struct cairn_liveout){.dwarf = (uint16_t)next_random(random),
                                             .size = (uint8_t)next_random(random)};
    record->locations = locations;
    record->liveouts = liveouts;
}

static void fill_functions(struct sample_map *map, const struct sample_shape *shape,
                           struct cairn_stackmap_function *functions, uint64_t *random)
{
    static const uint64_t stack_sizes[] = {
        0, 8, UINT32_MAX, UINT64_C(1) << 33, UINT64_MAX, UINT32_MAX - UINT64_C(1)};
    uint64_t address = shape->first_address;
    for (uint32_t i = 0; i < map->function_count; i++) {
        uint32_t steps = shape->scattered ? up_to(random, 40) : shape->records_max + 1;
        functions[i].address = address;
        functions[i].stack_size = stack_sizes[sample_random(random, sample_random(random, 6) + 1)];
        functions[i].record_count = up_to(random, shape->records_max);
        if (shape->version == 1 && functions[i].record_count == 0)
            functions[i].record_count = 1;
        map->record_count += (uint32_t)functions[i].record_count;
        address += (uint64_t)steps * shape->code_bytes_max;
        if (shape->scattered)
            address = shape->first_address + up_to(random, 40) * (uint64_t)shape->code_bytes_max;
    }
}

struct sample_map *sample_map_random(const struct sample_shape *shape, uint64_t *random)
{
    struct sample_map *map = array(1, sizeof *map);
    map->version = shape->version;
    map->function_count = up_to(random, shape->functions_max);
    map->constant_count = up_to(random, shape->constants_max);
    /* In version 1, records can be assigned only if there is one function. */
    if (shape->version == 1)
        map->function_count = 1;
    struct cairn_stackmap_function *functions = array(map->function_count, sizeof *functions);
    fill_functions(map, shape, functions, random);
    uint64_t *constants = array(map->constant_count, sizeof *constants);
    for (uint32_t i = 0; i < map->constant_count; i++)
        constants[i] = next_random(random);
    struct sample_record *records = array(map->record_count, sizeof *records);
    struct sample_record *record = records;
    for (uint32_t f = 0; f < map->function_count; f++) {
        uint32_t offset = 0;
        for (uint64_t i = 0; i < functions[f].record_count; i++) {
            offset += up_to(random, shape->code_bytes_max);
            uint32_t scattered = up_to(random, 8 * shape->code_bytes_max);
            fill_record(map, shape, shape->scattered ? scattered : offset, record++, random);
        }
    }
    map->functions = functions;
    map->constants = constants;
    map->records = records;
    return map;
}

void sample_map_free(struct sample_map *map)
{
    for (uint32_t i = 0; i < map->record_count; i++) {
        free((void *)(uintptr_t)map->records[i].locations);
        free((void *)(uintptr_t)map->records[i].liveouts);
    }
    free((void *)(uintptr_t)map->functions);
    free((void *)(uintptr_t)map->constants);
    free((void *)(uintptr_t)map->records);
    free(map);
}

/* ---- Comparing ---- */

void assert_location(struct cairn_location found, struct cairn_location expected,
                     const uint64_t *constants)
{
    expect(found.kind == expected.kind);
    expect(found.size == expected.size);
    expect(found.dwarf == expected.dwarf);
    if (expected.kind == CAIRN_LOCATION_CONSTANT_INDEX) {
        expect(found.constant == constants[expected.offset]);
        return;
    }
    bool is_constant = expected.kind == CAIRN_LOCATION_CONSTANT;
    expect(found.offset == expected.offset);
    expect(found.constant == (is_constant ? (uint64_t)(int64_t)expected.offset : 0));
}

void assert_liveout(struct cairn_liveout found, struct cairn_liveout expected)
{
    expect(found.dwarf == expected.dwarf);
    expect(found.size == expected.size);
}

/* ---- Bytes before a page that faults ---- */

struct guarded guard(const uint8_t *bytes, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t readable = (size + page) / page * page;
    uint8_t *mapping =
        mmap(NULL, readable + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expect(mapping != MAP_FAILED);
    expect(mprotect(mapping + readable, page, PROT_NONE) == 0);
    uint8_t *copy = mapping + readable - size;
    if (size > 0)
        memcpy(copy, bytes, size);
    return (struct guarded){copy, size, mapping, readable + page};
}

void guard_end(struct guarded *guarded) { munmap(guarded->mapping, guarded->mapping_size); }

/* ---- An allocator ---- */

/* The size of a block, stored before it. */
union block_head {
    size_t size;
    max_align_t alignment;
};

static void *count(void *user, void *block, size_t old_size, size_t new_size)
{
    struct counting_allocator *allocator = user;
    union block_head *old = block == NULL ? NULL : (union block_head *)block - 1;
    ck_assert_uint_eq(old == NULL ? 0 : old->size, old_size);
    bool shrinks = new_size <= old_size;
    if (!shrinks && ++allocator->calls == allocator->fail_at)
        return NULL;
    union block_head *fresh = NULL;
    if (new_size > 0) {
        fresh = malloc(sizeof *fresh + new_size);
        ck_assert_ptr_nonnull(fresh);
        fresh->size = new_size;
        /* Fills new memory, because callers must not depend on unwritten bytes. */
        memset(fresh + 1, 0xA5, new_size);
        if (old != NULL)
            memcpy(fresh + 1, block, shrinks ? new_size : old_size);
    }
    allocator->blocks += (size_t)(new_size > 0) - (size_t)(old_size > 0);
    allocator->bytes += new_size - old_size;
    free(old);
    return fresh == NULL ? NULL : fresh + 1;
}

struct cairn_allocator counting(struct counting_allocator *allocator)
{
    return (struct cairn_allocator){count, allocator};
}

int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
