/*
 * sanmd/registry.h - the tables of all sections that callbacks have added, for use by queries. It
 * is Cairn's only global state of a process.
 *
 * Writers hold a lock, create a new directory of all tables, publish it with one store, and retire
 * the previous directory. A query announces itself and loads the directory. Everything reachable
 * from the directory is valid until the query ends.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SANMD_REGISTRY_H
#define SANMD_REGISTRY_H

#include "sanmd/table.h"

/* A table, with copies of the fields that a search compares. */
struct directory_entry {
    uint64_t code_begin;
    uint64_t code_end;
    /* The largest code_end of this entry and all entries before it. The code of two tables may be
     * interleaved, if one program contains two versions of the metadata. */
    uint64_t furthest_end;
    const struct table *table;
};

/* All tables: first those of functions, then those of accesses, both sorted by code_begin. */
struct directory {
    struct block block;
    size_t count;
    size_t covered_count;
    struct directory_entry entries[];
};

/* A running query. */
struct query {
    atomic_uint_fast64_t *running;
    const struct directory *directory; /* NULL if no table was ever added */
};

/* Begin and end a query. They neither wait nor allocate. */
struct query query_begin(void);
void query_end(struct query query);

#endif
