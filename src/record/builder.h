/*
 * record/builder.h - a table that is being built.
 *
 * build.c chooses the way, and finishes the table. add_records.c has the loop that checks, packs
 * and adds records, and adds sections whose addresses ascend with it, in one pass. add_sorted.c
 * adds all other input, in the order of its addresses. Both allocate the table and note what they
 * add in it with builder.c. directories.c makes the directories of addresses and IDs.
 *
 * Arrays are sized for the worst case, because memory that is not touched costs nothing. So data is
 * written once and to its final place wherever possible.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECORD_BUILDER_H
#define RECORD_BUILDER_H

#include "base/memory.h"
#include "base/sort.h"
#include "format/record.h"
#include "record/layout.h"
#include "record/pack.h"

/* Buckets after that of the last record that are set with it, whether they are needed or not. */
enum { DIRECTORY_SLACK = 4 };

/* The address directory while records are added, in ascending order. `starts[b]` is final for all b
 * up to the bucket of the last record. */
struct address_directory {
    uint32_t *starts;
    uint32_t capacity; /* buckets that `starts` has space for, excluding DIRECTORY_SLACK */
    uint8_t shift;
    uint64_t last_offset; /* of the last record, from the base */
    uint64_t reach;       /* the slack, in bytes */
    uint64_t limit;       /* last offset for which there is a bucket */
};

/* Then `ids_high` is valid. */
#define IDS_DIFFER_ABOVE UINT64_MAX

struct builder {
    const struct cairn_section *sections;
    size_t section_count;
    struct cairn_allocator allocator;
    bool zeros_may_follow; /* whether zeros after the last map of a section are no error */

    cairn_table *table;
    size_t capacity_bytes; /* of the allocation */
    uint32_t record_capacity;
    uint32_t record_count; /* so far */
    uint32_t function_count;
    uint32_t constant_count;
    uint32_t *next_word;

    /* At the end of the allocation; moved to their final place if they are needed. */
    struct address_directory directory;
    uint32_t *ids_high;
    uint64_t id_high; /* IDS_DIFFER_ABOVE, or the common upper half of all IDs so far */
    uint64_t *wide_stack_sizes;
    struct sort_key *sort_space; /* two for each record */
    bool stack_sizes_are_wide;   /* whether some sizes are wide; `wide_stack_sizes` is set for
                                  * these */

    /* The table's owners, in separate memory until the table is finished; NULL if it needs none. */
    uint32_t *record_owners;
    struct table_owner *owners;
    size_t owner_count;
};

/* The total contents of all maps, and the address range of their functions. */
struct totals {
    uint64_t records;
    uint64_t functions;
    uint64_t constants;
    size_t bytes;
    uint64_t first_address;
    uint64_t last_address;
};

/* ---- builder.c: memory, and adding data ---- */

/* Allocates the table for `totals`. On failure nothing remains allocated. */
enum cairn_status builder_allocate(struct builder *builder, const struct totals *totals,
                                   struct cairn_error *error);
void builder_discard(struct builder *builder);
void builder_free_owners(struct builder *builder);

/* Returns the next `count` words after the values, where each array is put when its size is
 * known. */
static inline uint32_t *builder_take_words(struct builder *builder, size_t count)
{
    uint32_t *words = builder->next_word;
    builder->next_word += count;
    return words;
}

void builder_note_constants(struct builder *builder, const struct cairn_stackmap *map);
void builder_note_function(struct builder *builder, const struct cairn_stackmap_function *function,
                           uint32_t first_record);

/* Whether a section ends at `offset`, where its last map ends. */
bool builder_is_end(const struct builder *builder, const struct cairn_section *section,
                    size_t offset);

void totals_add(struct totals *totals, const struct cairn_stackmap *map, size_t bytes);

/* Puts the section's number before the error message if there are several sections. */
enum cairn_status builder_name_section(const struct builder *builder, size_t index,
                                       enum cairn_status status, struct cairn_error *error);

/* ---- The ways of adding ---- */

/* Result of builder_add_sections if builder_add_sorted is required. */
#define BUILDER_NEEDS_SORTING ((enum cairn_status) - 1)

/* Add all sections. Each allocates the table. */
enum cairn_status builder_add_sections(struct builder *builder, struct cairn_error *error);
enum cairn_status builder_add_sorted(struct builder *builder, struct cairn_error *error);

/* The result of adding records. */
enum added { ADDED, ADDED_TRUNCATED, ADDED_CORRUPT, ADDED_DESCENDS };

/* Checks and adds the next `count` records of a map, which belong to the function at
 * `function_address` and begin at `*at`. `end` is the end of the readable bytes; the record that is
 * `ahead` bytes after the first one is needed soon. Moves `*at` past the records, or to the first
 * invalid one. */
enum added builder_add_records(struct builder *builder, const struct packing *packing,
                               const uint8_t **at, const uint8_t *end, uint64_t function_address,
                               uint32_t count, ptrdiff_t ahead);

/* ---- directories.c ---- */

/* Initialises the directory. Its shift fits functions of this span. */
void directory_begin(struct address_directory *directory, uint64_t span, uint64_t record_count);

/* Prepares the directory for record `index` at `offset`, at any distance from the last one: fills
 * the buckets in between, and widens all buckets if there are too few. */
void directory_advance(struct builder *builder, uint32_t index, uint64_t offset);

/* Returns the number of the first record at or after an offset. */
uint32_t directory_first_record(const struct builder *builder, uint32_t offset);

/* Write the final directories after the values. */
void builder_finish_addresses(struct builder *builder);
void builder_finish_ids(struct builder *builder);

#endif
