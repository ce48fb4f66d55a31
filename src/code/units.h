/*
 * code/units.h - which units of an address range are free.
 *
 * A unit is the smallest piece of memory that can be taken. The structure knows numbers of units
 * and no addresses. It does no I/O and allocates nothing: the caller supplies its tables, filled
 * with zeros, which means that no unit is free. So tables for a large range may be a mapping of
 * which only the used parts take memory.
 *
 * There is one bit for each unit; it is set if the unit is free. Over the bits there is a complete
 * binary tree, stored as an array: node 1 is the root, the children of node n are 2n and 2n + 1,
 * and the leaves are groups of words in ascending order. A node describes the free units in its
 * part of the range.
 *
 * Invariants:
 *  - Bits at and after `count` are 0.
 *  - Each leaf describes its words, and each other node its two children.
 *
 * Threads. The caller serialises all calls.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CODE_UNITS_H
#define CODE_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UNITS_IN_WORD = 64, UNITS_WORDS_IN_LEAF = 8 };
enum { UNITS_IN_LEAF = UNITS_IN_WORD * UNITS_WORDS_IN_LEAF };

/* Free units of a part of the range. */
struct units_node {
    uint32_t first;   /* free units at the start of the part */
    uint32_t last;    /* free units at its end */
    uint32_t longest; /* free units in the longest run */
};

struct units {
    uint32_t count;
    uint32_t leaf_count; /* number of leaves, a power of two */
    uint64_t *words;
    struct units_node *nodes;
};

/* Returns the size of the tables for `count` units. */
size_t units_table_bytes(uint32_t count);

/* Initialises a range of `count` units, at least 1 and at most 2^31, none of them free. `tables`
 * has units_table_bytes(count) bytes, all of them 0, aligned for uint64_t. */
void units_init(struct units *units, uint32_t count, void *tables);

/* Makes units free that are not free. */
void units_give(struct units *units, uint32_t first, uint32_t count);

/* Takes the lowest `count` neighbouring free units whose first number is a multiple of
 * `alignment`, a power of two. Returns false if there is no such run. `count` is at least 1. A run
 * shorter than count + alignment - 1 may be missed. Takes O(log n + count) time. */
bool units_take(struct units *units, uint32_t count, uint32_t alignment, uint32_t *first);

/* Takes the highest `count` neighbouring free units below unit `end`. Returns false if there is no
 * such run. Takes O(log n + count) time. */
bool units_take_last(struct units *units, uint32_t count, uint32_t end, uint32_t *first);

/* Takes these units. Returns false, and changes nothing, if some of them are not free. */
bool units_take_at(struct units *units, uint32_t first, uint32_t count);

/* Whether all of these units are free. */
bool units_are_free(const struct units *units, uint32_t first, uint32_t count);

/* Returns the length of the longest run of free units. */
uint32_t units_longest(const struct units *units);

#endif
