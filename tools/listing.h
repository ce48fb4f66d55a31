/*
 * tools/listing.h - the sites of records in a file: their instructions, and what Cairn would make
 * of them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_LISTING_H
#define TOOLS_LISTING_H

#include "tools/json.h"
#include "tools/output.h"

#include <cairn/declaration.h>
#include <cairn/object.h>
#include <stdbool.h>

struct listing;

/* `declarations` NULL: of what kind records are is not known, and how many bytes they reserve
 * neither; `byte_count` is what all of them do then, or 0. NULL, with a complaint that begins with
 * `path`, if this build or its LLVM cannot disassemble the object's code, and without memory. */
struct listing *listing_create(cairn_object *object, const char *path,
                               const cairn_declarations *declarations, uint32_t byte_count);

/* NULL is allowed. */
void listing_destroy(struct listing *listing);

/* A record's declaration, or NULL. */
const struct cairn_declaration *listing_declaration(const struct listing *listing, uint64_t id);

/* A record, and where it stands in its function; UINT64_MAX for `next_offset` if no record stands
 * behind it there. */
struct listed_record {
    uint64_t id;
    struct cairn_object_function function;
    uint32_t code_offset;
    uint64_t next_offset;
};

void write_listed_text(struct listing *listing, const struct listed_record *record,
                       struct output *output);
/* The object that is the value of a record's "site". */
void write_listed_json(struct listing *listing, const struct listed_record *record,
                       struct json *json);

#endif
