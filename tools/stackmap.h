/*
 * tools/stackmap.h - the two output forms of `cairn stackmap`.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_STACKMAP_H
#define TOOLS_STACKMAP_H

#include "tools/json.h"
#include "tools/listing.h"
#include "tools/output.h"

#include <cairn/object.h>
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
    cairn_object *object;
    struct listing *listing; /* NULL if sites are not shown */
    struct cairn_object_section section;
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

/* Whether the file has a section of stack maps, and all maps are valid. Prints an error message if
 * not. */
bool check_maps(cairn_object *object, const char *path);

/* Writes all maps of the object. check_maps must have accepted them. `listing` may be NULL. */
void write_maps_text(cairn_object *object, const char *path, struct listing *listing,
                     struct output *output);

void write_map_text(struct output *output, const struct mapped *mapped);
void write_map_json(struct json *json, const struct mapped *mapped);

void write_location_object(struct json *json, struct cairn_location location);
void write_liveout_object(struct json *json, struct cairn_liveout liveout);

#endif
