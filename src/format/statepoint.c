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

#include "base/error.h"

enum { CALLING_CONVENTION, FLAGS, DEOPT_COUNT, FIRST_DEOPT };

static enum cairn_status read_constant(const struct statepoint_source *source, uint32_t index,
                                       const char *what, uint64_t *value, struct cairn_error *error)
{
    if (index >= source->count)
        return error_set(error, CAIRN_ERROR_CORRUPT, source->offset,
                         "a statepoint begins with three constants; the record has %u locations",
                         source->count);
    struct cairn_location location = source->location(source->record, index);
    bool is_constant =
        location.kind == CAIRN_LOCATION_CONSTANT || location.kind == CAIRN_LOCATION_CONSTANT_INDEX;
    if (!is_constant)
        return error_set(error, CAIRN_ERROR_CORRUPT, source->offset,
                         "location %u, a statepoint's %s, is %s and not a constant", index, what,
                         cairn_location_kind_name(location.kind));
    *value = location.constant;
    return CAIRN_OK;
}

static uint32_t find_first_alloca(const struct statepoint_source *source, uint32_t from)
{
    uint32_t index = from;
    while (index < source->count &&
           source->location(source->record, index).kind != CAIRN_LOCATION_DIRECT)
        index++;
    return index;
}

static enum cairn_status split_rest(const struct statepoint_source *source,
                                    struct cairn_statepoint *statepoint, struct cairn_error *error)
{
    statepoint->first_pair = FIRST_DEOPT + statepoint->deopt_count;
    statepoint->first_alloca = find_first_alloca(source, statepoint->first_pair);
    statepoint->alloca_count = source->count - statepoint->first_alloca;
    uint32_t pointers = statepoint->first_alloca - statepoint->first_pair;
    if (pointers % 2 != 0)
        return error_set(error, CAIRN_ERROR_CORRUPT, source->offset,
                         "%u locations follow the statepoint's deopt values: base and derived "
                         "pointers come in pairs",
                         pointers);
    statepoint->pair_count = pointers / 2;
    return CAIRN_OK;
}

enum cairn_status statepoint_parse(const struct statepoint_source *source,
                                   struct cairn_statepoint *statepoint, struct cairn_error *error)
{
    uint64_t convention = 0;
    uint64_t deopt_count = 0;
    struct cairn_statepoint parsed = {.first_deopt = FIRST_DEOPT};
    enum cairn_status status =
        read_constant(source, CALLING_CONVENTION, "calling convention", &convention, error);
    if (status == CAIRN_OK)
        status = read_constant(source, FLAGS, "flags", &parsed.flags, error);
    if (status == CAIRN_OK)
        status = read_constant(source, DEOPT_COUNT, "number of deopt values", &deopt_count, error);
    if (status != CAIRN_OK)
        return status;
    if (convention > UINT32_MAX || deopt_count > source->count - FIRST_DEOPT)
        return error_set(error, CAIRN_ERROR_CORRUPT, source->offset,
                         "calling convention %llu and %llu deopt values do not fit a record of %u "
                         "locations",
                         (unsigned long long)convention, (unsigned long long)deopt_count,
                         source->count);
    parsed.calling_convention = (uint32_t)convention;
    parsed.deopt_count = (uint32_t)deopt_count;
    status = split_rest(source, &parsed, error);
    if (status == CAIRN_OK)
        *statepoint = parsed;
    return status;
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
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_stackmap_statepoint needs a map, a record and a statepoint");
    const struct section_record in = {map, record};
    const struct statepoint_source source = {
        .location = section_location,
        .record = &in,
        .count = record->location_count,
        .offset = map->section_offset + record->offset,
    };
    return statepoint_parse(&source, statepoint, error);
}
