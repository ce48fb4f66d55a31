/*
 * format/statepoint.h - taking a list of locations apart, wherever they are kept.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORMAT_STATEPOINT_H
#define FORMAT_STATEPOINT_H

#include <cairn/statepoint.h>

/* Locations by number. */
struct statepoint_source {
    struct cairn_location (*location)(const void *record, uint32_t index);
    const void *record;
    uint32_t count;
    uint64_t offset; /* for errors */
};

enum cairn_status statepoint_parse(const struct statepoint_source *source,
                                   struct cairn_statepoint *statepoint, struct cairn_error *error);

#endif
