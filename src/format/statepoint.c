/*
 * Reads statepoints: three constants, deopt values, GC pairs, allocas.
 *
 * A record does not contain the number of its pairs. Allocas follow the pairs and are Direct
 * locations (the address of a stack slot). A GC pointer is never Direct, because LLVM spills GC
 * pointers or keeps them in registers. Therefore the pairs end at the first Direct location.
 *
 * SPDX-License-Identifier: MIT
 */
#include "format/statepoint.h"
#include "format/record.h"

#include "base/error.h"

enum { CALLING_CONVENTION, FLAGS, DEOPT_COUNT, FIRST_DEOPT };

enum cairn_status statepoint_parse(const struct statepoint_source *source,
                                   struct cairn_statepoint *statepoint, struct cairn_error *error)
{
    static const char *const names[] = {"calling convention", "flags", "number of deopt values"};
    uint64_t constants[FIRST_DEOPT];
    for (uint32_t i = 0; i < FIRST_DEOPT; i++) {
        if (i >= source->count)
            return error_set(
                error, CAIRN_ERROR_CORRUPT, source->offset,
                "a statepoint begins with three constants; the record has %u locations",
                source->count);
        struct cairn_location location = source->location(source->record, i);
        if (location.kind != CAIRN_LOCATION_CONSTANT &&
            location.kind != CAIRN_LOCATION_CONSTANT_INDEX)
            return error_set(error, CAIRN_ERROR_CORRUPT, source->offset,
                             "location %u, a statepoint's %s, is %s and not a constant", i,
                             names[i], location_kind_name(location.kind));
        constants[i] = location.constant;
    }
    if (constants[CALLING_CONVENTION] > UINT32_MAX ||
        constants[DEOPT_COUNT] > source->count - FIRST_DEOPT)
        return error_set(error, CAIRN_ERROR_CORRUPT, source->offset,
                         "calling convention %llu and %llu deopt values do not fit a record of %u "
                         "locations",
                         (unsigned long long)constants[CALLING_CONVENTION],
                         (unsigned long long)constants[DEOPT_COUNT], source->count);
    const uint32_t first_pair = FIRST_DEOPT + (uint32_t)constants[DEOPT_COUNT];
    uint32_t end = first_pair;
    while (end < source->count &&
           source->location(source->record, end).kind != CAIRN_LOCATION_DIRECT)
        end++;
    if ((end - first_pair) % 2 != 0)
        return error_set(error, CAIRN_ERROR_CORRUPT, source->offset,
                         "%u locations follow the statepoint's deopt values: base and derived "
                         "pointers come in pairs",
                         end - first_pair);
    *statepoint = (struct cairn_statepoint){
        .calling_convention = (uint32_t)constants[CALLING_CONVENTION],
        .flags = constants[FLAGS],
        .first_deopt = FIRST_DEOPT,
        .deopt_count = (uint32_t)constants[DEOPT_COUNT],
        .first_pair = first_pair,
        .pair_count = (end - first_pair) / 2,
        .first_alloca = end,
        .alloca_count = source->count - end,
    };
    return CAIRN_OK;
}

/* ---- Records of sections ---- */

struct section_record {
    const struct cairn_stackmap *map;
    const struct cairn_stackmap_record *record;
};

static struct cairn_location section_location(const void *record, uint32_t index)
{
    const struct section_record *in = record;
    return cairn_stackmap_location(in->map, in->record, index);
}

enum cairn_status cairn_stackmap_statepoint(const struct cairn_stackmap *map,
                                            const struct cairn_stackmap_record *record,
                                            struct cairn_statepoint *statepoint,
                                            struct cairn_error *error)
{
    if (map == NULL || record == NULL || statepoint == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_stackmap_statepoint: `%s` is NULL",
                         map == NULL      ? "map"
                         : record == NULL ? "record"
                                          : "statepoint");
    const struct section_record in = {map, record};
    const struct statepoint_source source = {
        .location = section_location,
        .record = &in,
        .count = record->location_count,
        .offset = map->section_offset + record->offset,
    };
    return statepoint_parse(&source, statepoint, error);
}
