/*
 * tools/stackmap.h - the stack maps of an object as text and JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_STACKMAP_H
#define TOOLS_STACKMAP_H

#include "tools/files.h"
#include "tools/listing.h"

#include <cairn/stackmap.h>

/* A record's place, and the record that follows it. */
struct record_place {
    uint32_t function;
    uint32_t code_offset;
    uint32_t next; /* number of the function's next record at a higher offset, or the number of
                      records */
};

/* A map with its origin. */
struct mapped {
    const struct input *input;
    struct listing *listing; /* NULL if sites are not shown */
    const struct cairn_object_section *section;
    struct cairn_stackmap map;
    size_t number;               /* number among the file's maps, from 0 */
    struct record_place *places; /* places of the map's records, if there is a listing */
};

/* Returns function number `index` of a map, with its name. */
struct cairn_object_function mapped_function(const struct mapped *mapped, uint32_t index);

/* Whether the map says how many records each function has. Maps of version 1 do not, unless they
 * have only one function. */
bool mapped_has_record_counts(const struct mapped *mapped);

/* Returns a record in the form that listings take. */
struct listed_record mapped_record(const struct mapped *mapped,
                                   const struct cairn_stackmap_record *record,
                                   const struct cairn_object_function *function);

/* Visits the sections of stack maps and checks all maps and the addresses of functions. Prints an
 * error message for each section with an error. Returns the number of sections. */
size_t check_maps(const struct input *input, bool *is_valid, bool *is_good);

/* Writes all maps of the object, as JSON if `json` is not NULL. check_maps must have found them
 * valid. `listing` may be NULL. */
void write_maps(const struct input *input, struct listing *listing, struct output *output,
                struct json *json);

/* Prints that the file at `path` has no stack maps. Returns false. */
bool complain_of_no_maps(const char *path);

void write_map_text(struct output *output, const struct mapped *mapped);
void write_map_json(struct json *json, const struct mapped *mapped);

void write_location_json(struct json *json, struct cairn_location location);
void write_liveout_json(struct json *json, struct cairn_liveout liveout);

#endif
