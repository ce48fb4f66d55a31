/*
 * cairn/statepoint.h - a record of a gc.statepoint, taken apart.
 *
 * A statepoint's locations are: calling convention, flags, number of deopt values (three
 * constants), the deopt values, pairs of base and derived GC pointers, and the allocas that were
 * passed to it.
 *
 * Source: LLVM, "Garbage Collection Safepoints in LLVM", section Stack Map Format.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_STATEPOINT_H
#define CAIRN_STATEPOINT_H

#include <cairn/status.h>
#include <cairn/table.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Numbers of locations in the record: `first_…` is the index of the first one. */
struct cairn_statepoint {
    uint32_t calling_convention;
    uint64_t flags;
    uint32_t first_deopt;
    uint32_t deopt_count;
    /** Base at `first_pair + 2 * i`, derived right after it. */
    uint32_t first_pair;
    uint32_t pair_count;
    uint32_t first_alloca;
    uint32_t alloca_count;
};

/** Takes a record of a section apart. Errors: CORRUPT, with the record's `offset` in the section,
 * if its locations are not a statepoint's. Async-signal-safe. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_stackmap_statepoint(
    const struct cairn_stackmap *map, const struct cairn_stackmap_record *record,
    struct cairn_statepoint *statepoint, struct cairn_error *error);

/** The same for a record of a table. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_record_statepoint(
    struct cairn_record record, struct cairn_statepoint *statepoint, struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
