/*
 * sanmd/table.h - stores the contents of one metadata section, sorted and searchable by PC.
 *
 * A table is a separate mapping. It contains this header, the entries sorted by address, and a
 * directory of buckets. A bucket is a range of code with about eight entries. A table does not
 * change after it was created, except for the fields that belong to writers and `is_gone`. It does
 * not refer to the section, which may be unmapped.
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

/* The header of tables and directories. It belongs to writers. */
struct block {
    struct block *next_retired;
    size_t mapping_bytes;
    uint64_t deadline; /* number of phase changes after which no query uses the retired block */
};

/* An entry of a function. It begins with its address, like an atomic access, which has only an
 * address. */
struct table_function {
    uint64_t address;
    uint32_t size;
    uint32_t features;
    uint32_t stack_argument_bytes;
    uint32_t offset; /* of the entry in its section */
};

struct table {
    /* The following fields belong to writers. */
    struct block block;
    struct table *next;
    size_t add_count; /* how often the same section was added, less how often it was deleted */

    /* Whether the section was deleted. If so, queries must not return its entries. */
    atomic_bool is_gone;

    struct cairn_sanmd_range range;
    const uint8_t *entries;
    size_t entry_bytes;
    /* The bucket of an address is its distance from range.code_begin, shifted right by this many
     * bits. */
    unsigned bucket_shift;
    size_t bucket_count;
    /* Index of each bucket's first entry; after the last bucket, the number of all entries. */
    const uint32_t *buckets;
};

/* Returns zeroed pages of the system; NULL if it has no memory. Pages that are never accessed take
 * no memory. malloc is not used, because the first callbacks may run before it works, and because
 * it may call this library itself. */
void *memory_map(size_t bytes);
void memory_unmap(void *memory, size_t bytes);

/* Creates the table of the section in [start, end). The caller unmaps the table. Returns NULL if
 * memory runs out. Errors in the section are stored in range.error. */
struct table *sanmd_table_create(enum cairn_sanmd_kind kind, uint32_t version, const void *start,
                                 const void *end);

static inline uint64_t table_address(const struct table *table, size_t entry)
{
    return *(const uint64_t *)(const void *)(table->entries + entry * table->entry_bytes);
}

/* Returns the number of entries at or before `pc`. Requires range.code_begin <= pc <
 * range.code_end. */
size_t table_count_up_to(const struct table *table, uint64_t pc);

struct cairn_sanmd_entry table_entry(const struct table *table, size_t number);

#endif
