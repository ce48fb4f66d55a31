/*
 * index/builder.h - a table that is being built.
 *
 * The parts, in the order of their work: build.c chooses the way; add_section.c adds sections whose
 * addresses ascend, in one pass; add_sorted.c adds whatever else there is, in the order of its
 * addresses; both do it with add_records.h. address_directory.c and id_directory.c make the
 * directories, and build.c cuts the table to its size.
 *
 * Arrays are sized for the worst case: memory that is not touched costs nothing. So what is written
 * here is written once and in its final place, wherever that can be.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef INDEX_BUILDER_H
#define INDEX_BUILDER_H

#include "base/memory.h"
#include "format/record.h"
#include "index/layout.h"

/* What may be written behind the last word of the values, and of the directory: vectors are stored
 * whole. */
enum { VALUE_SLACK_WORDS = 16, DIRECTORY_SLACK = 4 };

/* The address directory while records are added, in ascending order. `starts[b]` is final for all b
 * below `next`, which is the bucket behind the last record's. */
struct address_directory {
    uint32_t *starts;
    uint32_t capacity; /* buckets that `starts` has room for, besides DIRECTORY_SLACK */
    uint32_t next;
    uint8_t shift;
};

struct builder {
    const struct cairn_section *sections;
    size_t section_count;
    struct cairn_allocator allocator;
    bool portably; /* without what only some processors can do */

    cairn_table *table;
    size_t capacity_bytes; /* of the allocation */
    uint32_t record_capacity;
    uint32_t record_count; /* so far */
    uint32_t function_count;
    uint32_t constant_count;
    uint32_t *next_word;
    uint64_t last_offset; /* of the last record, from the base */

    /* At the allocation's far end, moved to their place if they are needed. */
    struct address_directory directory;
    uint32_t *ids_high;
    bool ids_differ_above; /* `ids_high` is filled in */
    uint64_t *wide_stack_sizes;
    bool stack_sizes_are_wide; /* `wide_stack_sizes` is filled in where one is */

    /* The table's, in memory of their own until it is finished; NULL if it needs none. */
    uint32_t *record_owners;
    struct table_owner *owners;
    size_t owner_count;
};

/* What all maps hold together, and where their functions lie. */
struct totals {
    uint64_t records;
    uint64_t functions;
    uint64_t constants;
    size_t bytes;
    uint64_t first_address;
    uint64_t last_address;
};

/* ---- builder.c: memory, and noting things down ---- */

/* Allocates the table for `totals`. On failure nothing is left. */
enum cairn_status builder_allocate(struct builder *builder, const struct totals *totals,
                                   struct cairn_error *error);
void builder_discard(struct builder *builder);
void builder_free_owners(struct builder *builder);

/* Words behind the values, where each array goes when its size is known. */
uint32_t *builder_take_words(struct builder *builder, size_t count);

void builder_note_constants(struct builder *builder, const struct cairn_stackmap *map);
/* The next function's stack size does not fit 16 bits. */
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

/* The table's first record stands at `offset` of the map: the upper half of all IDs is expected to
 * be that of its own. */
void builder_begin_ids(const struct builder *builder, const struct cairn_stackmap *map,
                       size_t offset);

/* Record number `record` is the first whose ID has another upper half: fills in `ids_high` for
 * those before it. */
void builder_begin_ids_high(const struct builder *builder, uint32_t record);

void totals_add(struct totals *totals, const struct cairn_stackmap *map, size_t bytes);

/* Puts the number of the section before the sentence, if there are several. */
enum cairn_status builder_name_section(const struct builder *builder, size_t index,
                                       enum cairn_status status, struct cairn_error *error);

/* ---- The ways of adding ---- */

/* What builder_add_sections answers where builder_add_sorted is needed. */
#define BUILDER_NEEDS_SORTING ((enum cairn_status) - 1)

/* Each allocates the table. */
enum cairn_status builder_add_sections(struct builder *builder, struct cairn_error *error);
enum cairn_status builder_add_sorted(struct builder *builder, struct cairn_error *error);

/* Records of a map that follow each other, belong to one function, and have been checked. */
struct record_run {
    const uint8_t *bytes; /* of the first */
    uint64_t function_address;
    uint32_t count;
    uint32_t map; /* their numbers among those of add_sorted.c */
    uint32_t function;
};

/* How a loop over records ended. */
enum pass_result { PASS_DONE, PASS_TRUNCATED, PASS_CORRUPT, PASS_DESCENDS };

/* The status for it; what is wrong is so with the record at `bytes`, number `index` of the map. */
enum cairn_status builder_explain(const struct cairn_stackmap *map, enum pass_result result,
                                  const uint8_t *bytes, uint32_t index, struct cairn_error *error);

/* How records are added: chosen once, by what the map is and what the processor can do. Both expect
 * the addresses to ascend from where the table ends; add_functions answers BUILDER_NEEDS_SORTING if
 * they do not. */
struct packing;
struct record_adder {
    /* All functions with their records; `end_offset` is where the last record ends. */
    enum cairn_status (*add_functions)(struct builder *builder, const struct cairn_stackmap *map,
                                       size_t available, const struct packing *packing,
                                       size_t *end_offset, struct cairn_error *error);
    /* The records of runs, which are all the map's. */
    void (*add_runs)(struct builder *builder, const struct cairn_stackmap *map,
                     const struct packing *packing, const struct record_run *runs, size_t count);
};

const struct record_adder *builder_choose_adder(const struct builder *builder,
                                                const struct cairn_stackmap *map);
/* For version 3 in the host's order, if the processor can do sixteen locations at once; NULL if it
 * cannot. */
const struct record_adder *builder_sixteen_adder(void);

/* ---- address_directory.c and id_directory.c ---- */

/* Before the first record: a shift that fits functions of such a span. */
void directory_begin(struct address_directory *directory, uint64_t span, uint64_t record_count);

/* Before record `index`, which lies at `offset`, however far behind the last one: fills the buckets
 * between, and widens all of them if there are too few. Returns an offset in the bucket before. */
uint64_t directory_advance(struct builder *builder, uint64_t offset, uint32_t index);

/* The number of the first record at or behind an offset. */
uint32_t directory_first_record(const struct builder *builder, uint32_t offset);

/* Both directories get their final form behind the values. */
void builder_finish_addresses(struct builder *builder);
void builder_finish_ids(struct builder *builder);

/* ---- build.c ---- */

/* As cairn_table_create; `portably` for tests, which see both ways so on one machine. */
enum cairn_status table_build(const struct cairn_section *sections, size_t section_count,
                              const struct cairn_allocator *allocator, bool portably,
                              cairn_table **table, struct cairn_error *error);

#endif
