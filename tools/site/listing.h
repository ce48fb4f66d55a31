/*
 * tools/site/listing.h - printing the sites of records in a file: their instructions, and the code
 * that Cairn would make of them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_SITE_LISTING_H
#define TOOLS_SITE_LISTING_H

#include "tools/cli/command.h"
#include "tools/cli/json.h"

#include "base/adapter.h"

#include <cairn/declaration.h>
#include <cairn/object.h>

struct listing;

/* Creates a listing. If `declarations` is NULL, the kinds of records are unknown, and `byte_count`
 * is the number of bytes that each of them reserves; 0 if that is unknown, too. NULL, after an
 * error message that begins with `path`, if this build or its LLVM cannot disassemble the object's
 * code, or without memory. */
struct listing *listing_create(cairn_object *object, const char *path,
                               const cairn_declarations *declarations, uint32_t byte_count);

/* NULL is allowed. */
void listing_destroy(struct listing *listing);

/* Returns the declaration of the records with this ID, or NULL. */
const struct cairn_declaration *listing_declaration(const struct listing *listing, uint64_t id);

/* A record and its place in its function. `next_offset` is the offset of the next record that
 * follows it in the function, or UINT64_MAX. */
struct listed_record {
    uint64_t id;
    struct cairn_object_function function;
    uint32_t code_offset;
    uint64_t next_offset;
};

void write_listed_text(struct listing *listing, const struct listed_record *record,
                       struct output *output);
/* Writes the object that is the value of a record's key "site". */
void write_listed_json(struct listing *listing, const struct listed_record *record,
                       struct json *json);

#endif
