/*
 * record/builder.h - a table that is being built.
 *
 * The parts, in the order of their work: build.c chooses the way. add_section.c adds sections whose
 * addresses ascend, in one pass. add_sorted.c adds all other input, in the order of its addresses.
 * Both use add_records.h. address_directory.c and id_directory.c make the directories. Finally
 * build.c shrinks the table to its size.
 *
 * Arrays are sized for the worst case, because memory that is not touched costs nothing. So data is
 * written once and to its final place wherever possible.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECORD_BUILDER_H
#define RECORD_BUILDER_H

#include "base/memory.h"
#include "format/record.h"
#include "record/layout.h"

/* Entries after the last word of the values, and of the directory, that may be overwritten, because
 * vectors are stored whole. */
enum { VALUE_SLACK_WORDS = 16, DIRECTORY_SLACK = 4 };

/* The address directory while records are added, in ascending order. `starts[b]` is final for all b
 * below `next`, which is the bucket after that of the last record. */
struct address_directory {
    uint32_t *starts;
    uint32_t capacity; /* buckets that `starts` has space for, excluding DIRECTORY_SLACK */
    uint32_t next;
    uint8_t shift;
};

struct builder {
    const struct cairn_section *sections;
    size_t section_count;
    struct cairn_allocator allocator;
    bool zeros_may_follow; /* whether zeros after the last map of a section are no error */
    bool portably;         /* whether to use only instructions that all processors have */

    cairn_table *table;
    size_t capacity_bytes; /* of the allocation */
    uint32_t record_capacity;
    uint32_t record_count; /* so far */
    uint32_t function_count;
    uint32_t constant_count;
    uint32_t *next_word;
    uint64_t last_offset; /* of the last record, from the base */

    /* At the end of the allocation; moved to their final place if they are needed. */
    struct address_directory directory;
    uint32_t *ids_high;
    bool ids_differ_above; /* whether `ids_high` is valid */
    uint64_t *wide_stack_sizes;
    bool stack_sizes_are_wide; /* whether some sizes are wide; `wide_stack_sizes` is set for
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
uint32_t *builder_take_words(struct builder *builder, size_t count);

void builder_note_constants(struct builder *builder, const struct cairn_stackmap *map);
/* Adds the next function's stack size, which does not fit 16 bits. */
void builder_note_wide_stack_size(struct builder *builder, uint64_t stack_size);

static inline void builder_note_function(struct builder *builder,
                                         const struct cairn_stackmap_function *function,
                                         uint32_t first_record)
{
    cairn_table *table = builder->table;
    uint16_t stack_size = (uint16_t)function->stack_size;
    if (function->stack_size == CAIRN_STACK_SIZE_DYNAMIC) {
        stack_size = STACK_SIZE_DYNAMIC;
    } else if (__builtin_expect(function->stack_size >= STACK_SIZE_WIDE, 0)) {
        stack_size = STACK_SIZE_WIDE;
        builder_note_wide_stack_size(builder, function->stack_size);
    }
    table->stack_sizes[builder->function_count] = stack_size;
    table->functions[builder->function_count++] = (struct table_function){
        .code_offset = (uint32_t)(function->address - table->base),
        .first_record = first_record,
    };
}

/* Sets the expected upper half of all IDs, from the table's first record, which is at `offset` of
 * the map. */
void builder_begin_ids(const struct builder *builder, const struct cairn_stackmap *map,
                       size_t offset);

/* Fills in `ids_high` for the records before `record`, which is the first record whose ID has a
 * different upper half. */
void builder_begin_ids_high(const struct builder *builder, uint32_t record);

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

/* Consecutive records of a map that belong to one function and have been checked. */
struct record_run {
    const uint8_t *bytes; /* of the first record */
    uint64_t function_address;
    uint32_t count;
    uint32_t map; /* numbers of its map and function in add_sorted.c */
    uint32_t function;
};

/* The result of a loop over records. */
enum pass_result { PASS_DONE, PASS_TRUNCATED, PASS_CORRUPT, PASS_DESCENDS };

/* Returns the status for a result, with a message. The invalid record is at `bytes` and has number
 * `index` in the map. */
enum cairn_status builder_explain(const struct cairn_stackmap *map, enum pass_result result,
                                  const uint8_t *bytes, uint32_t index, struct cairn_error *error);

/* The functions that add records, chosen once for the kind of map and the processor. Both expect
 * addresses that ascend from the end of the table. add_functions returns BUILDER_NEEDS_SORTING if
 * they do not. */
struct packing;
struct record_adder {
    /* Adds all functions with their records. Sets `end_offset` to the end of the last record. */
    enum cairn_status (*add_functions)(struct builder *builder, const struct cairn_stackmap *map,
                                       size_t available, const struct packing *packing,
                                       size_t *end_offset, struct cairn_error *error);
    /* Adds the records of runs, all of which belong to the map. */
    void (*add_runs)(struct builder *builder, const struct cairn_stackmap *map,
                     const struct packing *packing, const struct record_run *runs, size_t count);
};

const struct record_adder *builder_choose_adder(const struct builder *builder,
                                                const struct cairn_stackmap *map);
/* Returns the functions for version 3 in the host's byte order that process sixteen locations at
 * once; NULL if the processor cannot do that. */
const struct record_adder *builder_sixteen_adder(void);

/* ---- address_directory.c and id_directory.c ---- */

/* Initialises the directory, with a shift that fits functions of this span. */
void directory_begin(struct address_directory *directory, uint64_t span, uint64_t record_count);

/* Prepares the directory for record `index` at `offset`, at any distance from the last record.
 * Fills the buckets in between, and widens all buckets if there are too few. Returns an offset in
 * the bucket before the record's. */
uint64_t directory_advance(struct builder *builder, uint64_t offset, uint32_t index);

/* Returns the number of the first record at or after an offset. */
uint32_t directory_first_record(const struct builder *builder, uint32_t offset);

/* Write the final directories after the values. */
void builder_finish_addresses(struct builder *builder);
void builder_finish_ids(struct builder *builder);

/* ---- build.c ---- */

/* Implements cairn_table_create. `portably` allows tests to test both ways on one machine. */
enum cairn_status table_build(const struct cairn_section *sections, size_t section_count,
                              const struct cairn_allocator *allocator, bool portably,
                              cairn_table **table, struct cairn_error *error);

#endif
