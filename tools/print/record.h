/*
 * tools/print/record.h - the parts of records as text and JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_PRINT_RECORD_H
#define TOOLS_PRINT_RECORD_H

#include "tools/cli/json.h"

#include <cairn/architecture.h>
#include <cairn/declaration.h>
#include <cairn/stackmap.h>
#include <cairn/statepoint.h>

/* Writes "frame of 24 bytes" or "frame of dynamic size". */
void write_frame(struct output *output, uint64_t stack_size);

/* Writes number `index` of a record's locations: "0: rax 8 bytes", "0: [rbp - 16] 8 bytes", "0: rbp
 * - 24", "0: constant 5", or "0: large constant 1311768467463790320". */
void write_location(struct output *output, enum cairn_architecture architecture, uint32_t index,
                    struct cairn_location location);

/* Writes number `index` of a record's live-outs: "live across: rax 8 bytes" or ", rax 8 bytes". */
void write_liveout(struct output *output, enum cairn_architecture architecture, uint32_t index,
                   struct cairn_liveout liveout);

void write_location_json(struct json *json, struct cairn_location location);
void write_liveout_json(struct json *json, struct cairn_liveout liveout);

/* The types of a record's locations, known if there is one location for each declared value; and
 * the parts of a statepoint. */
struct location_types {
    const struct cairn_declaration *declaration; /* NULL if nothing is known */
    bool has_result;                             /* whether the first location is the result */
    uint32_t skipped; /* number of the declaration's first types that have no location */
    const struct cairn_statepoint *statepoint;
};

/* Finds the types. `declaration` may be NULL. `statepoint` is the parts of a record that is
 * declared as a statepoint; NULL if the record is not a valid statepoint. */
struct location_types find_location_types(const struct cairn_declaration *declaration,
                                          uint32_t location_count,
                                          const struct cairn_statepoint *statepoint);

/* Writes what is known about location `index`, such as ", i64 (the result)". */
void write_location_type(struct output *output, const struct location_types *types, uint32_t index);

#endif
