/*
 * index/index.h - the tables of all published modules, for lookups by ID.
 *
 * (From a PC to its module the way goes through the code space, which knows the owner of each
 * page.)
 *
 * Guarantees. Readers take no lock, allocate nothing and may run in signal handlers. They see a
 * table wholly or not at all, from the moment that index_publish returns to the moment that
 * index_unpublish is called; a reader who has begun may see it a little longer, which is why an
 * unpublished table has to live until a quiescent point.
 *
 * Publishing, unpublishing and quiescing are called with the runtime's lock held.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef INDEX_INDEX_H
#define INDEX_INDEX_H

#include "base/memory.h"
#include "index/table.h"

#include <cairn/table.h>

struct index;

enum cairn_status index_create(const struct cairn_allocator *allocator, struct index **index,
                               struct cairn_error *error);
void index_destroy(struct index *index);

enum cairn_status index_publish(struct index *index, const cairn_table *table,
                                struct cairn_error *error);
void index_unpublish(struct index *index, const cairn_table *table);

/* No reader is on its way: forgets what only such readers could still see. */
void index_quiesce(struct index *index);

/* All records with the ID, in the order in which their tables were published. */
size_t index_find_id(const struct index *index, uint64_t id, struct cairn_record *records,
                     size_t capacity);

/* The same records one by one, until `visit` answers false. */
void index_visit_id(const struct index *index, uint64_t id, table_id_visitor *visit, void *user);

#endif
