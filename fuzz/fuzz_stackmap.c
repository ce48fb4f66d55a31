/*
 * Fuzzes stack maps. Reading twice gives the same result. Iteration, walking, and walking in
 * columns see the same records. The loop that checks sixteen locations at once and the loop that
 * checks one at a time agree.
 *
 * Input: flags (byte order), the section.
 *
 * SPDX-License-Identifier: MIT
 */
#include "format/check_records.h"
#include "fuzz/fuzz.h"

/* The counts and the digest of all records and locations. */
struct seen {
    uint64_t records;
    uint64_t locations;
    uint64_t digest;
};

static void mix(struct seen *seen, uint64_t value)
{
    seen->digest = (seen->digest ^ value) * UINT64_C(0x100000001B3);
}

static void see_record(struct seen *seen, const struct cairn_stackmap_record *record)
{
    seen->records++;
    mix(seen, record->id);
    mix(seen, record->code_offset);
    mix(seen, record->location_count);
    mix(seen, record->liveout_count);
}

static void see_location(struct seen *seen, uint64_t kind, uint64_t size, uint64_t dwarf,
                         int32_t offset)
{
    seen->locations++;
    mix(seen, kind);
    mix(seen, size);
    mix(seen, dwarf);
    mix(seen, (uint32_t)offset);
}

static bool see_walked(void *user, const struct cairn_stackmap *map,
                       const struct cairn_stackmap_record *record)
{
    struct seen *seen = user;
    see_record(seen, record);
    for (uint16_t i = 0; i < record->location_count; i++) {
        struct cairn_location location = cairn_stackmap_location(map, record, i);
        see_location(seen, location.kind, location.size, location.dwarf, location.offset);
    }
    return true;
}

static bool see_columns(void *user, const struct cairn_stackmap_columns *columns)
{
    struct seen *seen = user;
    for (uint32_t i = 0; i < columns->record_count; i++) {
        if (columns->skipped_locations == 0)
            see_record(seen, &columns->records[i]);
        for (uint32_t k = columns->first_locations[i]; k < columns->first_locations[i + 1]; k++)
            see_location(seen, columns->kinds[k], columns->sizes[k], columns->registers[k],
                         columns->offsets[k]);
    }
    return true;
}

static void compare_checkers(const struct cairn_section *section, size_t offset)
{
    struct cairn_stackmap map;
    if (stackmap_open(section, offset, &map, NULL) != CAIRN_OK)
        return;
    const uint8_t *end = section->bytes + section->size;
    struct check_place places[2] = {{.at = map.bytes + map.records_offset},
                                    {.at = map.bytes + map.records_offset}};
    enum check_result quick = stackmap_checker(&map)(&map, end, map.record_count, &places[0]);
    enum check_result portable =
        stackmap_portable_checker(&map)(&map, end, map.record_count, &places[1]);
    require(quick == portable);
    require(places[0].at == places[1].at && places[0].index == places[1].index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    uint8_t flags = fuzz_u8(&input);
    const struct cairn_section section = fuzz_section(&input, flags);
    struct seen iterated = {0};
    struct seen walked = {0};
    struct seen columns = {0};
    size_t offset = 0;
    enum cairn_status status = CAIRN_OK;
    while (offset < section.size && status == CAIRN_OK) {
        struct cairn_stackmap map;
        struct cairn_stackmap again;
        size_t other = offset;
        compare_checkers(&section, offset);
        status = cairn_stackmap_read(&section, &offset, &map, NULL);
        require(cairn_stackmap_read(&section, &other, &again, NULL) == status && other == offset);
        if (status != CAIRN_OK)
            break;
        require(map.size == again.size && map.record_count == again.record_count);
        struct cairn_stackmap_record record;
        for (bool more = cairn_stackmap_first(&map, &record); more;
             more = cairn_stackmap_next(&map, &record))
            see_walked(&iterated, &map, &record);
    }
    enum cairn_status walk = cairn_stackmap_walk(&section, see_walked, &walked, NULL);
    require((walk == CAIRN_OK) == (status == CAIRN_OK));
    require(cairn_stackmap_walk_columns(&section, see_columns, &columns, NULL) == walk);
    if (walk == CAIRN_OK)
        require(memcmp(&iterated, &walked, sizeof walked) == 0 &&
                columns.records == walked.records && columns.locations == walked.locations);
    return 0;
}
