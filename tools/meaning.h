/*
 * tools/meaning.h - the meaning of the locations of a declared record.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_MEANING_H
#define TOOLS_MEANING_H

#include "tools/output.h"

#include <cairn/declaration.h>
#include <cairn/statepoint.h>

/* The types of a record's locations, known if there is one location for each declared value; and
 * the parts of a statepoint. */
struct location_meanings {
    const struct cairn_declaration *declaration; /* NULL if nothing is known */
    bool has_result;                             /* whether the first location is the result */
    uint32_t skipped; /* number of the declaration's first types that have no location */
    bool is_statepoint;
    struct cairn_statepoint statepoint;
};

/* Finds the meanings. `declaration` may be NULL. `statepoint` is the parts of a record that is
 * declared as a statepoint; NULL if the record is not a valid statepoint. */
struct location_meanings find_location_meanings(const struct cairn_declaration *declaration,
                                                uint32_t location_count,
                                                const struct cairn_statepoint *statepoint);

/* Writes the meaning of location `index`, such as ", i64 (the result)"; nothing if it is
 * unknown. */
void write_location_meaning(struct output *output, const struct location_meanings *meanings,
                            uint32_t index);

#endif
