/*
 * sanmd/registry.h - the one thing of Cairn that is global to a process: the tables of all sections
 * that callbacks told of, as queries see them.
 *
 * Writers hold a lock, make a new directory of all tables, publish it with one store, and retire
 * the one before. Queries announce themselves (sanmd/readers.h), load the directory, and have until
 * their end what can be reached from it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SANMD_REGISTRY_H
#define SANMD_REGISTRY_H

#include "sanmd/readers.h"
#include "sanmd/table.h"

/* A table, and what is looked at to find out that it is not the one. */
struct directory_entry {
    uint64_t code_begin;
    uint64_t code_end;
    /* The largest code_end of this and of all entries before it. Code of two tables may be mixed
     * (of two versions in one program). */
    uint64_t furthest_end;
    const struct table *table;
};

/* All tables: those of functions, then those of accesses, each by code_begin. */
struct directory {
    struct block block;
    size_t count;
    size_t covered_count;
    struct directory_entry entries[];
};

/* A query. */
struct query {
    atomic_uint_fast64_t *running;
    const struct directory *directory; /* NULL: there has never been a table */
};

/* Neither waits nor allocates. */
struct query query_begin(void);
void query_end(struct query query);

/* The directory's entries of one kind. */
struct query_entries {
    const struct directory_entry *entries;
    size_t count;
};
struct query_entries query_entries(struct query query, enum cairn_sanmd_kind kind);

void registry_statistics(struct cairn_sanmd_statistics *statistics);

#endif
