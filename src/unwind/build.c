/*
 * Builds a table of unwind rules.
 *
 * Functions are read in the order of their common information, so that its instructions are
 * executed once for all of them. Then their entries are put in the order of addresses.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/array.h"
#include "base/error.h"
#include "base/hash_set.h"
#include "unwind/layout.h"

#include <stdlib.h>

struct entries {
    struct unwind_entry *elements;
    size_t count;
    size_t capacity;
};

/* The entries of a function in `read`. */
struct read_function {
    size_t first;
    size_t count;
};

/* The index of a function in the list, and the place of its common information. */
struct ordered_function {
    size_t table;
    size_t common;
    size_t index;
};

struct builder {
    struct cairn_allocator allocator;
    struct unwind_numbering numbering;
    uint64_t base;
    size_t function_count;
    struct read_function *functions; /* by index in the list */
    struct ordered_function *order;
    struct entries read;    /* in the order of reading */
    struct entries entries; /* by address */
    uint32_t *words;        /* rows, without duplicates */
    size_t word_count;
    size_t word_capacity;
    struct hash_set rows; /* by the index of their first word */
    struct unwind_draft draft;
    struct eh_frame_description common_description;
    struct call_frame common;        /* state after the last function's common information */
    enum cairn_status common_status; /* result of executing it */
    struct call_frame call_frame;
    struct call_frame_row row;
};

static void release(struct builder *builder)
{
    struct cairn_allocator allocator = builder->allocator;
    memory_free(&allocator, builder->functions,
                builder->function_count * sizeof *builder->functions);
    memory_free(&allocator, builder->order, builder->function_count * sizeof *builder->order);
    memory_free(&allocator, builder->read.elements,
                builder->read.capacity * sizeof *builder->read.elements);
    memory_free(&allocator, builder->entries.elements,
                builder->entries.capacity * sizeof *builder->entries.elements);
    memory_free(&allocator, builder->words, builder->word_capacity * sizeof *builder->words);
    hash_set_release(&builder->rows, &allocator);
    memory_free(&allocator, builder, sizeof *builder);
}

static enum cairn_status no_memory(struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for unwind rules");
}

static enum cairn_status add_to(const struct builder *builder, struct entries *entries,
                                struct unwind_entry entry, struct cairn_error *error)
{
    struct unwind_entry *elements =
        array_reserve(&builder->allocator, entries->elements, entries->count, 1, &entries->capacity,
                      sizeof entry);
    if (elements == NULL)
        return no_memory(error);
    entries->elements = elements;
    elements[entries->count++] = entry;
    return CAIRN_OK;
}

/* ---- Rows, without duplicates ---- */

enum { ROWS_AT_FIRST = 64 };

/* Finds the index of the first word of the draft's row. Adds the row if it is new. */
static enum cairn_status intern(struct builder *builder, uint32_t *word, struct cairn_error *error)
{
    const struct hash_set *rows = &builder->rows;
    const struct unwind_row *row = unwind_drafted(&builder->draft);
    size_t bytes = unwind_row_bytes(row);
    uint32_t hash = (uint32_t)(hash_words(&rows->key, row, bytes) >> 32);
    for (const struct hash_place *place = hash_set_first(rows, hash); place->number != 0;
         place = hash_set_next(rows, place)) {
        *word = place->number - 1;
        if (place->hash == hash && memcmp(builder->words + *word, row, bytes) == 0)
            return CAIRN_OK;
    }
    uint32_t *words = array_reserve(&builder->allocator, builder->words, builder->word_count,
                                    bytes / sizeof *words, &builder->word_capacity, sizeof *words);
    if (words == NULL)
        return no_memory(error);
    builder->words = words;
    *word = (uint32_t)builder->word_count;
    if (!hash_set_add(&builder->rows, &builder->allocator, hash, *word))
        return no_memory(error);
    memcpy(words + *word, row, bytes);
    builder->word_count += bytes / sizeof *words;
    return CAIRN_OK;
}

/* ---- Entries ---- */

/* Adds an entry: the draft's row is valid from `address` on. */
static enum cairn_status add_entry(struct builder *builder, uint64_t address,
                                   struct cairn_error *error)
{
    uint64_t offset = address - builder->base;
    if (offset > UINT32_MAX)
        return error_set(error, CAIRN_ERROR_RANGE, address,
                         "the unwind tables describe functions 4 GiB apart, up to 0x%llx",
                         (unsigned long long)address);
    uint32_t row = 0;
    enum cairn_status status = intern(builder, &row, error);
    if (status != CAIRN_OK)
        return status;
    return add_to(builder, &builder->read, (struct unwind_entry){(uint32_t)offset, row}, error);
}

static enum cairn_status add_problem(struct builder *builder, enum unwind_problem problem,
                                     uint16_t detail, uint64_t address, struct cairn_error *error)
{
    unwind_draft_problem(problem, detail, &builder->draft);
    return add_entry(builder, address, error);
}

/* ---- Functions ---- */

static enum unwind_problem problem_of(enum call_frame_limit limit)
{
    static const uint8_t problems[] = {
        [CALL_FRAME_OPCODE] = UNWIND_OPCODE, [CALL_FRAME_NESTING] = UNWIND_NESTING,
        [CALL_FRAME_RULES] = UNWIND_RULES,   [CALL_FRAME_NUMBER] = UNWIND_NUMBER,
        [CALL_FRAME_LETTER] = UNWIND_LETTER,
    };
    return (enum unwind_problem)problems[limit];
}

/* Adds the function's rows below `end`. */
static enum cairn_status add_rows(struct builder *builder,
                                  const struct eh_frame_description *description, uint64_t end,
                                  struct cairn_error *error)
{
    struct call_frame *call_frame = &builder->call_frame;
    call_frame_begin_after(call_frame, &builder->common, description);
    for (;;) {
        bool found;
        enum cairn_status status = call_frame_next(call_frame, &builder->row, &found, error);
        if (status == CAIRN_ERROR_UNSUPPORTED && call_frame->now.begin < end)
            return add_problem(builder, problem_of((enum call_frame_limit)call_frame->limit),
                               call_frame->detail, call_frame->now.begin, error);
        if (status == CAIRN_ERROR_UNSUPPORTED)
            return CAIRN_OK;
        if (status != CAIRN_OK || !found || builder->row.begin >= end)
            return status;
        unwind_draft_row(&builder->numbering, &description->common, &builder->row, &builder->draft);
        status = add_entry(builder, builder->row.begin, error);
        if (status != CAIRN_OK)
            return status;
    }
}

/* Returns the end of a function. Where descriptions overlap, a function ends where the next one
 * begins. */
static uint64_t end_of(const struct function_list *list, size_t index)
{
    struct eh_frame_function function = list->entries[index].function;
    uint64_t end = function.address + function.size;
    if (index + 1 < list->count && list->entries[index + 1].function.address < end)
        end = list->entries[index + 1].function.address;
    return end;
}

/* Executes the instructions of the common information, unless the previous function had the
 * same. */
static enum cairn_status begin_common(struct builder *builder, const struct eh_frame *table,
                                      const struct eh_frame_description *description, bool is_new,
                                      struct cairn_error *error)
{
    if (is_new) {
        builder->common_description = *description;
        call_frame_begin(&builder->common, table, &builder->common_description,
                         builder->numbering.arch->signs_return_addresses);
        builder->common_status = call_frame_run_common(&builder->common, error);
    }
    return builder->common_status;
}

/* Adds the function's rows, or a row with the reason why there are none. */
static enum cairn_status add_rules(struct builder *builder, const struct eh_frame *table,
                                   const struct eh_frame_description *description, bool is_new,
                                   uint64_t end, struct cairn_error *error)
{
    uint64_t begin = description->function.address;
    enum cairn_status status = begin_common(builder, table, description, is_new, error);
    if (status == CAIRN_ERROR_UNSUPPORTED && begin < end)
        return add_problem(builder, problem_of((enum call_frame_limit)builder->common.limit),
                           builder->common.detail, begin, error);
    if (status == CAIRN_ERROR_UNSUPPORTED)
        return CAIRN_OK;
    return status == CAIRN_OK ? add_rows(builder, description, end, error) : status;
}

static enum cairn_status add_function(struct builder *builder, const struct function_list *list,
                                      size_t index, bool is_new,
                                      struct eh_frame_description *description,
                                      struct cairn_error *error)
{
    const struct eh_frame *table = &list->tables[list->entries[index].table];
    size_t offset = list->entries[index].offset;
    uint64_t end = end_of(list, index);
    bool found;
    builder->functions[index].first = builder->read.count;
    enum cairn_status status = eh_frame_next(table, &offset, description, &found, error);
    if (status == CAIRN_OK)
        status = add_rules(builder, table, description, is_new, end, error);
    if (status == CAIRN_OK)
        status = add_problem(builder, UNWIND_NO_RULES, 0, end, error);
    builder->functions[index].count = builder->read.count - builder->functions[index].first;
    return status;
}

static int compare_order(const void *left, const void *right)
{
    const struct ordered_function *a = left;
    const struct ordered_function *b = right;
    if (a->table != b->table)
        return a->table < b->table ? -1 : 1;
    if (a->common != b->common)
        return a->common < b->common ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static void order_functions(const struct builder *builder, const struct function_list *list)
{
    bool is_ordered = true;
    for (size_t i = 0; i < list->count; i++) {
        const struct listed_function *listed = &list->entries[i];
        builder->order[i] = (struct ordered_function){listed->table, listed->common, i};
        is_ordered =
            is_ordered && (i == 0 || compare_order(&builder->order[i - 1], &builder->order[i]) < 0);
    }
    if (!is_ordered)
        qsort(builder->order, list->count, sizeof *builder->order, compare_order);
}

static enum cairn_status read_functions(struct builder *builder, const struct function_list *list,
                                        struct cairn_error *error)
{
    struct eh_frame_description description = {0};
    order_functions(builder, list);
    for (size_t i = 0; i < list->count; i++) {
        const struct ordered_function *next = &builder->order[i];
        bool is_other_table = i == 0 || next->table != builder->order[i - 1].table;
        bool is_new = is_other_table || next->common != builder->order[i - 1].common;
        if (is_other_table)
            description = (struct eh_frame_description){.commons = &list->commons[next->table]};
        enum cairn_status status =
            add_function(builder, list, next->index, is_new, &description, error);
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}

/* ---- Sorting by address ---- */

static struct unwind_entry *last_entry(const struct builder *builder)
{
    return builder->entries.elements + builder->entries.count - 1;
}

/* Appends an entry. Replaces an entry at the same offset, so that a function can begin where the
 * one before it ends. */
static enum cairn_status append_entry(struct builder *builder, struct unwind_entry entry,
                                      struct cairn_error *error)
{
    if (builder->entries.count > 0 && last_entry(builder)->offset == entry.offset)
        builder->entries.count--;
    if (builder->entries.count > 0 && last_entry(builder)->row == entry.row)
        return CAIRN_OK;
    return add_to(builder, &builder->entries, entry, error);
}

static enum cairn_status append_functions(struct builder *builder, struct cairn_error *error)
{
    const struct unwind_entry *read = builder->read.elements;
    for (size_t i = 0; i < builder->function_count; i++) {
        const struct read_function *function = &builder->functions[i];
        for (size_t k = 0; k < function->count; k++) {
            enum cairn_status status = append_entry(builder, read[function->first + k], error);
            if (status != CAIRN_OK)
                return status;
        }
    }
    return CAIRN_OK;
}

static enum cairn_status add_functions(struct builder *builder, const struct function_list *list,
                                       struct cairn_error *error)
{
    builder->function_count = list->count;
    builder->functions = memory_new(&builder->allocator, list->count, sizeof *builder->functions);
    builder->order = memory_new(&builder->allocator, list->count, sizeof *builder->order);
    if (builder->functions == NULL || builder->order == NULL)
        return no_memory(error);
    enum cairn_status status = read_functions(builder, list, error);
    return status == CAIRN_OK ? append_functions(builder, error) : status;
}

/* ---- Packing ---- */

enum { ENTRIES_PER_BUCKET = 2, BUCKET_SHIFT_MIN = 4 };

static uint32_t choose_shift(uint32_t span, size_t entry_count)
{
    uint32_t shift = BUCKET_SHIFT_MIN;
    while (span >> shift > entry_count / ENTRIES_PER_BUCKET)
        shift++;
    return shift;
}

static void fill_buckets(struct unwind *unwind, uint32_t bucket_count)
{
    uint32_t entry = 0;
    for (uint32_t bucket = 0; bucket <= bucket_count; bucket++) {
        uint64_t offset = (uint64_t)bucket << unwind->bucket_shift;
        while (entry + 1 < unwind->entry_count && unwind->entries[entry + 1].offset <= offset)
            entry++;
        unwind->buckets[bucket] = entry;
    }
}

/* Packs the table. The last entry begins where the last function ends. */
static enum cairn_status pack(const struct builder *builder, struct unwind **unwind,
                              struct cairn_error *error)
{
    uint32_t span = last_entry(builder)->offset;
    uint32_t entry_count = (uint32_t)builder->entries.count;
    uint32_t shift = choose_shift(span, entry_count);
    uint32_t bucket_count = (span >> shift) + 1;
    size_t bucket_bytes = ((size_t)bucket_count + 1) * sizeof(uint32_t);
    size_t entry_bytes = entry_count * sizeof(struct unwind_entry);
    size_t word_bytes = builder->word_count * sizeof(uint32_t);
    size_t size = sizeof(struct unwind) + bucket_bytes + entry_bytes + word_bytes;
    struct unwind *packed = memory_new(&builder->allocator, 1, size);
    if (packed == NULL)
        return no_memory(error);
    uint8_t *place = (uint8_t *)(packed + 1);
    *packed = (struct unwind){
        .allocator = builder->allocator,
        .size_bytes = size,
        .row_count = builder->rows.count,
        .base = builder->base,
        .span = span,
        .entry_count = entry_count,
        .bucket_shift = shift,
        .buckets = (uint32_t *)place,
        .entries = (struct unwind_entry *)(place + bucket_bytes),
        .words = (uint32_t *)(place + bucket_bytes + entry_bytes),
    };
    memcpy(packed->entries, builder->entries.elements, entry_bytes);
    memcpy(packed->words, builder->words, word_bytes);
    fill_buckets(packed, bucket_count);
    *unwind = packed;
    return CAIRN_OK;
}

enum cairn_status unwind_create(const struct function_list *list, const struct cairn_arch *arch,
                                struct unwind **unwind, struct cairn_error *error)
{
    *unwind = NULL;
    if (arch == NULL || list->count == 0)
        return CAIRN_OK;
    struct builder *builder = memory_new(&list->allocator, 1, sizeof *builder);
    if (builder == NULL)
        return no_memory(error);
    builder->allocator = list->allocator;
    builder->base = list->entries[0].function.address;
    unwind_numbering_create(arch, &builder->numbering);
    enum cairn_status status = CAIRN_OK;
    if (!hash_set_init(&builder->rows, &builder->allocator, ROWS_AT_FIRST))
        status = no_memory(error);
    if (status == CAIRN_OK)
        status = add_functions(builder, list, error);
    if (status == CAIRN_OK)
        status = pack(builder, unwind, error);
    release(builder);
    return status;
}
