/*
 * tools/meaning.h - what the locations of a declared record are.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_MEANING_H
#define TOOLS_MEANING_H

#include "tools/output.h"

#include <cairn/declaration.h>
#include <cairn/statepoint.h>

/* Of which types they are, where there is one location for each value that was declared; and a
 * statepoint's parts. */
struct location_meanings {
    const struct cairn_declaration *declaration; /* NULL: nothing is known */
    bool has_result;                             /* it is the first location */
    uint32_t skipped;                            /* of the declaration's types */
    bool is_statepoint;
    struct cairn_statepoint statepoint;
};

/* `declaration` may be NULL. `statepoint`: the record's parts, if it is declared as one; NULL if it
 * cannot be taken apart. */
struct location_meanings find_location_meanings(const struct cairn_declaration *declaration,
                                                uint32_t location_count,
                                                const struct cairn_statepoint *statepoint);

/* ", i64 (the result)", behind location `index`; nothing where nothing is known. */
void write_location_meaning(struct output *output, const struct location_meanings *meanings,
                            uint32_t index);

#endif
