/*
 * tools/stackmap.h - the two forms in which `cairn stackmap` prints.
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

/* A map, and where it came from. */
struct mapped {
    cairn_object *object;
    struct listing *listing; /* NULL: sites are not shown */
    struct cairn_object_section section;
    struct cairn_stackmap map;
    size_t number; /* of the file's maps, from 0 */
    /* By record: the code offset of the first later one of its function that is larger; UINT64_MAX
     * if there is none. NULL without a listing. */
    const uint64_t *next_offsets;
};

/* Function number `index` of a map, by name. */
struct cairn_object_function mapped_function(const struct mapped *mapped, uint32_t index);

/* Whether the map says how many records each function has: version 1 does not, if there are
 * several. */
bool mapped_has_record_counts(const struct mapped *mapped);

/* What the listing takes of a record. */
struct listed_record mapped_record(const struct mapped *mapped,
                                   const struct cairn_stackmap_record *record,
                                   const struct cairn_object_function *function);

/* Whether the file has a section of stack maps, and all maps are good; if not, complains. */
bool check_maps(cairn_object *object, const char *path);

/* Writes all maps of the object, after check_maps. `listing` may be NULL. */
void write_maps_text(cairn_object *object, const char *path, struct listing *listing,
                     struct output *output);

void write_map_text(struct output *output, const struct mapped *mapped);
void write_map_json(struct json *json, const struct mapped *mapped);

void write_location_object(struct json *json, struct cairn_location location);
void write_liveout_object(struct json *json, struct cairn_liveout liveout);

#endif
