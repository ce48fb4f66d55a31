/*
 * sanmd/table.h - what one section of metadata says, sorted and looked up by PC.
 *
 * A table is a mapping of its own: this header, its entries by address, and a directory of buckets,
 * each of which is a stretch of code with about eight entries. Nothing of it changes after it was
 * made, but what is said here to be the writers'. It has nothing of the section in it: the section
 * may go.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SANMD_TABLE_H
#define SANMD_TABLE_H

#include <cairn/sanmd_runtime.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What tables and directories begin with. Of the writers. */
struct block {
    struct block *next_retired;
    size_t mapping_bytes;
    /* When it was retired: readers_deadline. */
    uint64_t deadline;
};

/* Begins with its address, as an atomic access, which is nothing else. */
struct table_function {
    uint64_t address;
    uint32_t size;
    uint32_t features;
    uint32_t stack_argument_bytes;
    uint32_t unused;
};

struct table {
    /* Of the writers. */
    struct block block;
    struct table *next;
    size_t add_count; /* how often the same section was added and not deleted */

    /* Its section is deleted: nothing of it is to be found. */
    atomic_bool is_gone;

    struct cairn_sanmd_range range;
    const uint8_t *entries;
    size_t entry_bytes;
    /* The bucket of an address: how far it is from range.code_begin, without this many bits. */
    unsigned bucket_shift;
    size_t bucket_count;
    /* Number of each bucket's first entry, and behind the last bucket the count of all. */
    const uint32_t *buckets;
};

/* The table of the section in [start, end); NULL without memory. What is wrong with the section
 * stands in range.error. */
struct table *table_create(enum cairn_sanmd_kind kind, uint32_t version, const void *start,
                           const void *end);
void table_destroy(struct table *table);

static inline uint64_t table_address(const struct table *table, size_t entry)
{
    return *(const uint64_t *)(const void *)(table->entries + entry * table->entry_bytes);
}

/* How many entries lie at `pc` and below, where range.code_begin <= pc < range.code_end. */
size_t table_count_up_to(const struct table *table, uint64_t pc);

struct cairn_sanmd_function table_function(const struct table *table, size_t entry);

#endif
