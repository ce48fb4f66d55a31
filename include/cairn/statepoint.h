/*
 * cairn/statepoint.h - decoding of the stack map record of a gc.statepoint.
 *
 * The locations of such a record are, in this order: three constants (calling convention, flags,
 * number of deopt values), the deopt values, pairs of base and derived GC pointers, and the allocas
 * that were passed to the statepoint.
 *
 * Threads: every function is thread-safe and async-signal-safe.
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

/** A decoded record. The fields `first_…` are indices of locations in the record. */
struct cairn_statepoint {
    uint32_t calling_convention;
    uint64_t flags;
    uint32_t first_deopt;
    uint32_t deopt_count;
    /** Index of the first base pointer. Pair `i` has its base at `first_pair + 2 * i`, and its
     *  derived pointer in the next location. */
    uint32_t first_pair;
    uint32_t pair_count;
    uint32_t first_alloca;
    uint32_t alloca_count;
};

/** Decodes a record of the stack map `map`. Errors: CORRUPT (its locations are not those of a
 *  statepoint; `error->offset` is the record's offset in the section). */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_stackmap_statepoint(
    const struct cairn_stackmap *map, const struct cairn_stackmap_record *record,
    struct cairn_statepoint *statepoint, struct cairn_error *error);

/** Decodes a record of a table. Errors: as cairn_stackmap_statepoint. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_record_statepoint(
    struct cairn_record record, struct cairn_statepoint *statepoint, struct cairn_error *error);

#ifdef __cplusplus
}
#endif
#endif
