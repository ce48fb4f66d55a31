/*
 * record/id_table.h - from an ID to its records in all published modules.
 *
 * A module has one entry for each ID of its table of records. The entries of one ID are in a list,
 * in the order in which the modules were published. So publishing and retiring a module takes time
 * proportional to its records, also if many modules have the same IDs, and finding the records of
 * an ID takes time proportional to their number.
 *
 * Guarantees. Readers take no lock, allocate nothing and may run in signal handlers. A reader sees
 * all of a module's records of an ID or none of them. It sees them from the time that id_table_add
 * returns to the time that id_table_remove is called. A reader that began earlier may see them a
 * little longer, so removed entries, and their table of records, must stay valid until a grace
 * period has ended that began after the removal.
 *
 * Writers are called with the runtime's lock held.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECORD_ID_TABLE_H
#define RECORD_ID_TABLE_H

#include "base/grace.h"
#include "base/memory.h"
#include "record/table.h"

#include <cairn/module.h>
#include <cairn/table.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- The entries of one module ---- */

/* The entry of an ID. It has the ID's site, so that a lookup of the site reads no other memory of
 * the module. Invariant: `previous` of the first entry of a list is its last entry. Only writers
 * use it. */
struct id_entry {
    _Atomic(struct id_entry *) next;
    cairn_site *site; /* NULL: no record of the table with the ID has one; or ID_SITE_AMBIGUOUS */
    const cairn_table *records;
    uint32_t index; /* of the first record with the ID */
    bool is_only;   /* whether no other record of the table has the ID */
    bool is_last;   /* whether it is the module's last entry */
    struct id_entry *previous;
};

_Static_assert(sizeof(void *) != 8 || sizeof(struct id_entry) <= 40,
               "an entry is in at most two cache lines");

/* Several records of the table with the ID have sites. */
#define ID_SITE_AMBIGUOUS ((cairn_site *)(uintptr_t)1)

/* Returns the number of entries for a table of records, which is that of its IDs. */
size_t id_entries_count(const cairn_table *records);

/* Returns the site of a record, or NULL. */
typedef cairn_site *id_site_finder(struct cairn_record record);

/* Fills in the entries for a table of records, which must be valid as long as the entries; at least
 * one. `find_site` NULL: no record has a site. */
void id_entries_init(struct id_entry *entries, const cairn_table *records,
                     id_site_finder *find_site);

/* Returns the number of the module's entries; 0 for NULL. */
size_t id_entries_length(const struct id_entry *entries);

/* ---- The table ---- */

struct id_table;

/* Creates an empty table. What readers may still use is retired to `grace`, which must be destroyed
 * before the table. Errors: MEMORY. */
enum cairn_status id_table_create(const struct cairn_allocator *allocator, struct grace *grace,
                                  struct id_table **ids, struct cairn_error *error);
/* NULL is allowed. */
void id_table_destroy(struct id_table *ids);

size_t id_table_size_bytes(const struct id_table *ids);

/* Makes space for the entries, so that id_table_add cannot fail. The space is lost if other entries
 * are added before. Errors: MEMORY. */
enum cairn_status id_table_reserve(struct id_table *ids, const struct id_entry *entries,
                                   struct cairn_error *error);

/* Adds entries that are in no table, and have never been. */
void id_table_add(struct id_table *ids, struct id_entry *entries);

/* Removes entries that were added. */
void id_table_remove(struct id_table *ids, struct id_entry *entries);

/* Finds all records with the ID: those of the module that was published first come first, and
 * those of one module are in the order of table_find_id. */
size_t id_table_find(const struct id_table *ids, uint64_t id, struct cairn_record *records,
                     size_t capacity);

/* Visits the same records one by one, until `visit` returns false. */
void id_table_visit(const struct id_table *ids, uint64_t id, table_id_visitor *visit, void *user);

/* Returns the only site with the ID; NULL if no site has it, and ID_SITE_AMBIGUOUS if several
 * have. */
cairn_site *id_table_find_site(const struct id_table *ids, uint64_t id);

#endif
