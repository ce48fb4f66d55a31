/*
 * Fuzzes stack maps. Reading twice gives the same result. Iteration visits as many records as the
 * map has, and only valid locations, and ends at the end of the map.
 *
 * Input: flags (byte order), the section.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz/fuzz.h"

#include <cairn/stackmap.h>

/* Returns a sum of the record's values, so that all of them are read. */
static uint64_t read_values(const struct cairn_stackmap *map,
                            const struct cairn_stackmap_record *record)
{
    uint64_t sum = record->id + record->code_offset;
    for (uint16_t i = 0; i < record->location_count; i++) {
        struct cairn_location location = cairn_stackmap_location(map, record, i);
        require(location.kind >= CAIRN_LOCATION_REGISTER);
        require(location.kind <= CAIRN_LOCATION_CONSTANT_INDEX);
        sum += location.constant + location.size + location.dwarf;
    }
    for (uint16_t i = 0; i < record->liveout_count; i++)
        sum += cairn_stackmap_liveout(map, record, i).dwarf;
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    uint8_t flags = fuzz_u8(&input);
    const struct cairn_section section = fuzz_section(&input, flags);
    volatile uint64_t sum = 0;
    size_t offset = 0;
    enum cairn_status status = CAIRN_OK;
    while (offset < section.size && status == CAIRN_OK) {
        struct cairn_stackmap map;
        struct cairn_stackmap again;
        size_t other = offset;
        status = cairn_stackmap_read(&section, &offset, &map, NULL);
        require(cairn_stackmap_read(&section, &other, &again, NULL) == status && other == offset);
        if (status != CAIRN_OK)
            break;
        require(map.size == again.size && map.record_count == again.record_count);
        struct cairn_stackmap_record record = {0};
        uint32_t count = 0;
        for (; cairn_stackmap_next(&map, &record); count++)
            sum += read_values(&map, &record);
        require(count == map.record_count && (count == 0 || record.end_offset == map.size));
    }
    (void)sum;
    return 0;
}
