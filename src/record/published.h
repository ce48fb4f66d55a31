/*
 * record/published.h - the tables of all published modules, for lookups by ID.
 *
 * (A PC is mapped to its module through the code space, which knows the owner of each page.)
 *
 * Guarantees. Readers take no lock, allocate nothing and may run in signal handlers. A reader sees
 * all of a table or nothing of it. It sees the table from the time that index_publish returns to
 * the time that index_unpublish is called. A reader that began earlier may see the table a little
 * longer, so an unpublished table must stay valid until a quiescent point.
 *
 * Publishing, unpublishing and quiescing are called with the runtime's lock held.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECORD_PUBLISHED_H
#define RECORD_PUBLISHED_H

#include "base/memory.h"
#include "record/table.h"

#include <cairn/table.h>

struct index;

enum cairn_status index_create(const struct cairn_allocator *allocator, struct index **index,
                               struct cairn_error *error);
void index_destroy(struct index *index);

enum cairn_status index_publish(struct index *index, const cairn_table *table,
                                struct cairn_error *error);
void index_unpublish(struct index *index, const cairn_table *table);

/* Frees what only earlier readers could still see. No such reader may be active. */
void index_quiesce(struct index *index);

/* Finds all records with the ID, in the order in which their tables were published. */
size_t index_find_id(const struct index *index, uint64_t id, struct cairn_record *records,
                     size_t capacity);

/* Visits the same records one by one, until `visit` returns false. */
void index_visit_id(const struct index *index, uint64_t id, table_id_visitor *visit, void *user);

#endif
