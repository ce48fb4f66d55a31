/*
 * format/statepoint.h - reads a statepoint from a list of locations in any form of storage.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORMAT_STATEPOINT_H
#define FORMAT_STATEPOINT_H

#include <cairn/statepoint.h>

/* A list of locations. */
struct statepoint_source {
    struct cairn_location (*location)(const void *record, uint32_t index);
    const void *record;
    uint32_t count;
    uint64_t offset; /* offset to report in errors */
};

enum cairn_status statepoint_parse(const struct statepoint_source *source,
                                   struct cairn_statepoint *statepoint, struct cairn_error *error);

#endif
