/*
 * Fuzzes statepoints. The parts of each statepoint record cover its locations without a gap.
 *
 * Input: flags (byte order), a section of stack maps.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz/fuzz.h"

#include <cairn/statepoint.h>

static void check(const struct cairn_stackmap *map, const struct cairn_stackmap_record *record)
{
    struct cairn_statepoint parts;
    struct cairn_statepoint again;
    struct cairn_error error;
    enum cairn_status status = cairn_stackmap_statepoint(map, record, &parts, &error);
    require(cairn_stackmap_statepoint(map, record, &again, NULL) == status);
    if (status != CAIRN_OK) {
        require(status == CAIRN_ERROR_CORRUPT);
        require(error.offset == map->section_offset + record->offset);
        return;
    }
    require(parts.first_deopt == 3 && parts.first_deopt == again.first_deopt);
    require(parts.first_pair == parts.first_deopt + parts.deopt_count);
    require(parts.first_alloca == parts.first_pair + 2 * parts.pair_count);
    require(parts.first_alloca + parts.alloca_count == record->location_count);
    for (uint32_t i = parts.first_pair; i < parts.first_alloca; i++)
        require(cairn_stackmap_location(map, record, i).kind != CAIRN_LOCATION_DIRECT);
    if (parts.alloca_count > 0)
        require(cairn_stackmap_location(map, record, parts.first_alloca).kind ==
                CAIRN_LOCATION_DIRECT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    uint8_t flags = fuzz_u8(&input);
    const struct cairn_section section = fuzz_section(&input, flags);
    struct cairn_stackmap map;
    size_t offset = 0;
    while (offset < section.size &&
           cairn_stackmap_read(&section, &offset, &map, NULL) == CAIRN_OK) {
        struct cairn_stackmap_record record = {0};
        while (cairn_stackmap_next(&map, &record))
            check(&map, &record);
    }
    return 0;
}
