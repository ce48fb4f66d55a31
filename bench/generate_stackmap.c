/* SPDX-License-Identifier: MIT */
#include "bench/generate_stackmap.h"

#include <cairn/stackmap.h>
#include <stdlib.h>
#include <string.h>

enum {
    RECORDS_PER_FUNCTION = 10,
    CONSTANTS = 256,
    LOCATIONS_MIN = 1,
    LOCATIONS_SPREAD =
        14, /* 1 to 14 locations, 7.5 on average, including the arguments of some calls */
    CODE_BYTES_MIN = 16,
    CODE_BYTES_SPREAD = 64
};

struct generator {
    uint8_t *bytes;
    size_t size;
    uint64_t random;
};

static uint32_t next_random(struct generator *generator, uint32_t bound)
{
    generator->random ^= generator->random << 13;
    generator->random ^= generator->random >> 7;
    generator->random ^= generator->random << 17;
    return (uint32_t)((generator->random >> 11) % bound);
}

static void put(struct generator *generator, const void *value, size_t size)
{
    memcpy(generator->bytes + generator->size, value, size);
    generator->size += size;
}

static void put_u8(struct generator *generator, uint8_t value) { put(generator, &value, 1); }
static void put_u16(struct generator *generator, uint16_t value) { put(generator, &value, 2); }
static void put_u32(struct generator *generator, uint32_t value) { put(generator, &value, 4); }
static void put_u64(struct generator *generator, uint64_t value) { put(generator, &value, 8); }

static void align(struct generator *generator)
{
    while (generator->size % 8 != 0)
        put_u8(generator, 0);
}

/* Writes a location. Most are registers and spill slots, as in optimised code, and one in ten is a
 * constant. */
static void put_location(struct generator *generator)
{
    uint32_t choice = next_random(generator, 20);
    uint8_t kind = CAIRN_LOCATION_INDIRECT;
    uint16_t dwarf = 6;
    uint32_t offset = (uint32_t)-8 * (1 + next_random(generator, 64));
    if (choice < 9) {
        kind = CAIRN_LOCATION_REGISTER;
        dwarf = (uint16_t)next_random(generator, 16);
        offset = 0;
    } else if (choice == 17) {
        kind = CAIRN_LOCATION_DIRECT;
    } else if (choice == 18) {
        kind = CAIRN_LOCATION_CONSTANT;
        dwarf = 0;
        offset = next_random(generator, 100000);
    } else if (choice == 19) {
        kind = CAIRN_LOCATION_CONSTANT_INDEX;
        dwarf = 0;
        offset = next_random(generator, CONSTANTS);
    }
    put_u8(generator, kind);
    put_u8(generator, 0);
    put_u16(generator, next_random(generator, 4) == 0 ? 4 : 8);
    put_u16(generator, dwarf);
    put_u16(generator, 0);
    put_u32(generator, offset);
}

static void put_record(struct generator *generator, uint64_t id, uint32_t code_offset)
{
    uint32_t locations = LOCATIONS_MIN + next_random(generator, LOCATIONS_SPREAD);
    locations += next_random(generator, 4) == 0;
    put_u64(generator, id);
    put_u32(generator, code_offset);
    put_u16(generator, 0);
    put_u16(generator, (uint16_t)locations);
    for (uint32_t i = 0; i < locations; i++)
        put_location(generator);
    align(generator);
    uint32_t liveouts = next_random(generator, 8) == 0 ? next_random(generator, 5) : 0;
    put_u16(generator, 0);
    put_u16(generator, (uint16_t)liveouts);
    for (uint32_t i = 0; i < liveouts; i++) {
        put_u16(generator, (uint16_t)next_random(generator, 16));
        put_u8(generator, 0);
        put_u8(generator, 8);
    }
    align(generator);
}

static uint32_t code_bytes(struct generator *generator)
{
    return CODE_BYTES_MIN + next_random(generator, CODE_BYTES_SPREAD);
}

static void put_tables(struct generator *generator, uint32_t record_count, uint32_t function_count,
                       uint64_t base_address)
{
    uint64_t address = base_address;
    for (uint32_t f = 0; f < function_count; f++) {
        uint32_t first = f * RECORDS_PER_FUNCTION;
        uint32_t left = record_count - first;
        put_u64(generator, address);
        put_u64(generator, 8 + 16 * next_random(generator, 20));
        put_u64(generator, left < RECORDS_PER_FUNCTION ? left : RECORDS_PER_FUNCTION);
        address += (RECORDS_PER_FUNCTION + 1) * (CODE_BYTES_MIN + CODE_BYTES_SPREAD);
    }
    for (uint32_t c = 0; c < CONSTANTS; c++)
        put_u64(generator, UINT64_C(0x100000000) + c);
}

uint8_t *generate_stackmap(uint32_t record_count, enum generated_ids ids, uint64_t base_address,
                           size_t *size)
{
    enum { RECORD_BYTES_MAX = 16 + 12 * (LOCATIONS_MIN + LOCATIONS_SPREAD + 1) + 4 + 4 * 4 + 8 };
    uint32_t function_count = (record_count + RECORDS_PER_FUNCTION - 1) / RECORDS_PER_FUNCTION;
    size_t capacity =
        16 + (size_t)function_count * 24 + CONSTANTS * 8 + (size_t)record_count * RECORD_BYTES_MAX;
    struct generator generator = {.bytes = malloc(capacity), .random = 0x9E3779B97F4A7C15};
    if (generator.bytes == NULL)
        return NULL;
    put_u8(&generator, 3);
    put_u8(&generator, 0);
    put_u16(&generator, 0);
    put_u32(&generator, function_count);
    put_u32(&generator, CONSTANTS);
    put_u32(&generator, record_count);
    put_tables(&generator, record_count, function_count, base_address);
    uint32_t code_offset = 0;
    for (uint32_t i = 0; i < record_count; i++) {
        code_offset = i % RECORDS_PER_FUNCTION == 0 ? 0 : code_offset;
        code_offset += code_bytes(&generator);
        uint64_t id = i;
        if (ids == GENERATED_IDS_RANDOM)
            id = (uint64_t)next_random(&generator, UINT32_MAX) << 32 |
                 next_random(&generator, UINT32_MAX);
        put_record(&generator, id, code_offset);
    }
    *size = generator.size;
    return generator.bytes;
}
