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
#include "unwind/rules.h"

#include <stdlib.h>
#include <string.h>

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
    struct call_frame *common;       /* state after the last function's common information */
    enum cairn_status common_status; /* result of executing it */
    struct call_frame *call_frame;
    struct call_frame_row row;
};

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

/* ---- Entries, and rows without duplicates ---- */

enum { ROWS_AT_FIRST = 64 };

/* Adds an entry: the draft's row is valid from `address` on. Adds the row if it is new. */
static enum cairn_status add_entry(struct builder *builder, uint64_t address,
                                   struct cairn_error *error)
{
    struct unwind_entry entry = {.offset = (uint32_t)(address - builder->base)};
    const struct hash_set *rows = &builder->rows;
    const struct unwind_row *row = unwind_drafted(&builder->draft);
    size_t bytes = unwind_row_bytes(row);
    uint32_t hash = (uint32_t)(hash_words(&rows->key, row, bytes) >> 32);
    if (address - builder->base > UINT32_MAX)
        return error_set(error, CAIRN_ERROR_RANGE, address,
                         "the unwind tables describe functions 4 GiB apart, up to 0x%llx",
                         (unsigned long long)address);
    for (const struct hash_place *place = hash_set_first(rows, hash); place->number != 0;
         place = hash_set_next(rows, place)) {
        entry.row = place->number - 1;
        const uint32_t *other = builder->words + entry.row;
        if (place->hash == hash && unwind_row_bytes((const struct unwind_row *)other) == bytes &&
            memcmp(other, row, bytes) == 0)
            return add_to(builder, &builder->read, entry, error);
    }
    uint32_t *words = array_reserve(&builder->allocator, builder->words, builder->word_count,
                                    bytes / sizeof *words, &builder->word_capacity, sizeof *words);
    if (words == NULL)
        return no_memory(error);
    builder->words = words;
    entry.row = (uint32_t)builder->word_count;
    if (!hash_set_add(&builder->rows, &builder->allocator, hash, entry.row))
        return no_memory(error);
    memcpy(words + entry.row, row, bytes);
    builder->word_count += bytes / sizeof *words;
    return add_to(builder, &builder->read, entry, error);
}

static enum cairn_status add_problem(struct builder *builder, enum unwind_problem problem,
                                     uint16_t detail, uint64_t address, struct cairn_error *error)
{
    unwind_draft_problem(problem, detail, &builder->draft);
    return add_entry(builder, address, error);
}

/* ---- Functions ---- */

/* Adds the function's rows below `end`, and the problem after which its rules are unknown. */
static enum cairn_status add_rows(struct builder *builder,
                                  const struct eh_frame_description *description, uint64_t end,
                                  struct cairn_error *error)
{
    static const uint8_t problems[] = {
        [CALL_FRAME_OPCODE] = UNWIND_OPCODE, [CALL_FRAME_NESTING] = UNWIND_NESTING,
        [CALL_FRAME_RULES] = UNWIND_RULES,   [CALL_FRAME_NUMBER] = UNWIND_NUMBER,
        [CALL_FRAME_LETTER] = UNWIND_LETTER,
    };
    bool has_common = builder->common_status == CAIRN_OK;
    struct call_frame *call_frame = has_common ? builder->call_frame : builder->common;
    enum cairn_status status = builder->common_status;
    if (has_common)
        call_frame_begin_after(call_frame, builder->common, description);
    while (status == CAIRN_OK) {
        bool found;
        status = call_frame_next(call_frame, &builder->row, &found, error);
        if (status != CAIRN_OK)
            break;
        if (!found || builder->row.begin >= end)
            return CAIRN_OK;
        unwind_draft_row(&builder->numbering, &description->common, &builder->row, &builder->draft);
        status = add_entry(builder, builder->row.begin, error);
    }
    if (status != CAIRN_ERROR_UNSUPPORTED)
        return status;
    uint64_t begin = has_common ? call_frame->now.begin : description->function.address;
    return begin >= end ? CAIRN_OK
                        : add_problem(builder, (enum unwind_problem)problems[call_frame->limit],
                                      call_frame->detail, begin, error);
}

/* Adds the entries of a function. The instructions of its common information are executed if
 * `is_new`; otherwise it is the previous function's. */
static enum cairn_status add_function(struct builder *builder, const struct function_list *list,
                                      size_t index, bool is_new,
                                      struct eh_frame_description *description,
                                      struct cairn_error *error)
{
    const struct listed_function *listed = &list->entries[index];
    const struct eh_frame *table = &list->tables[listed->table];
    /* Where descriptions overlap, a function ends where the next one begins. */
    uint64_t end = listed->function.address + listed->function.size;
    if (index + 1 < list->count && listed[1].function.address < end)
        end = listed[1].function.address;
    size_t offset = listed->offset;
    bool found;
    builder->functions[index].first = builder->read.count;
    enum cairn_status status = eh_frame_next(table, &offset, description, &found, error);
    if (status != CAIRN_OK)
        return status;
    if (is_new) {
        builder->common_description = *description;
        call_frame_begin(builder->common, table, &builder->common_description,
                         builder->numbering.arch->signs_return_addresses);
        builder->common_status = call_frame_run_common(builder->common, error);
    }
    status = add_rows(builder, description, end, error);
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

/* Reads the functions in the order of their common information. */
static enum cairn_status read_functions(struct builder *builder, const struct function_list *list,
                                        struct cairn_error *error)
{
    struct ordered_function *order = builder->order;
    bool is_ordered = true;
    for (size_t i = 0; i < list->count; i++) {
        const struct listed_function *listed = &list->entries[i];
        order[i] = (struct ordered_function){listed->table, listed->common, i};
        is_ordered = is_ordered && (i == 0 || compare_order(&order[i - 1], &order[i]) < 0);
    }
    if (!is_ordered)
        qsort(order, list->count, sizeof *order, compare_order);
    struct eh_frame_description description = {0};
    for (size_t i = 0; i < list->count; i++) {
        bool is_other_table = i == 0 || order[i].table != order[i - 1].table;
        bool is_new = is_other_table || order[i].common != order[i - 1].common;
        if (is_other_table)
            description = (struct eh_frame_description){.commons = &list->commons[order[i].table]};
        enum cairn_status status =
            add_function(builder, list, order[i].index, is_new, &description, error);
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}

/* Puts the entries into the order of addresses. An entry replaces another at the same offset, so
 * that a function can begin where the one before it ends. */
static enum cairn_status sort_entries(struct builder *builder, struct cairn_error *error)
{
    struct entries *sorted = &builder->entries;
    for (size_t i = 0; i < builder->function_count; i++) {
        const struct unwind_entry *entry = builder->read.elements + builder->functions[i].first;
        const struct unwind_entry *end = entry + builder->functions[i].count;
        for (; entry < end; entry++) {
            if (sorted->count > 0 && sorted->elements[sorted->count - 1].offset == entry->offset)
                sorted->count--;
            if (sorted->count > 0 && sorted->elements[sorted->count - 1].row == entry->row)
                continue;
            enum cairn_status status = add_to(builder, sorted, *entry, error);
            if (status != CAIRN_OK)
                return status;
        }
    }
    return CAIRN_OK;
}

/* ---- Packing ---- */

enum { ENTRIES_PER_BUCKET = 2, BUCKET_SHIFT_MIN = 4 };

/* Packs the table. The last entry begins where the last function ends. */
static enum cairn_status pack(const struct builder *builder, struct unwind **unwind,
                              struct cairn_error *error)
{
    uint32_t entry_count = (uint32_t)builder->entries.count;
    uint32_t span = builder->entries.elements[entry_count - 1].offset;
    uint32_t shift = BUCKET_SHIFT_MIN;
    while (span >> shift > entry_count / ENTRIES_PER_BUCKET)
        shift++;
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
    uint32_t entry = 0;
    for (uint32_t bucket = 0; bucket <= bucket_count; bucket++) {
        uint64_t offset = (uint64_t)bucket << shift;
        while (entry + 1 < entry_count && packed->entries[entry + 1].offset <= offset)
            entry++;
        packed->buckets[bucket] = entry;
    }
    *unwind = packed;
    return CAIRN_OK;
}

/* Frees everything except the frames. */
static void release(const struct builder *builder)
{
    const struct cairn_allocator *allocator = &builder->allocator;
    size_t count = builder->function_count;
    memory_free(allocator, builder->functions, count * sizeof *builder->functions);
    memory_free(allocator, builder->order, count * sizeof *builder->order);
    memory_free(allocator, builder->read.elements,
                builder->read.capacity * sizeof *builder->read.elements);
    memory_free(allocator, builder->entries.elements,
                builder->entries.capacity * sizeof *builder->entries.elements);
    memory_free(allocator, builder->words, builder->word_capacity * sizeof *builder->words);
    hash_set_release(&builder->rows, allocator);
}

enum cairn_status unwind_create(const struct function_list *list, const struct cairn_arch *arch,
                                struct unwind **unwind, struct cairn_error *error)
{
    *unwind = NULL;
    if (arch == NULL || list->count == 0)
        return CAIRN_OK;
    /* Two frames are 20 KB, of which most functions use a few hundred bytes. */
    struct call_frame common;
    struct call_frame call_frame;
    struct builder builder = {
        .allocator = list->allocator,
        .base = list->entries[0].function.address,
        .function_count = list->count,
        .common = &common,
        .call_frame = &call_frame,
    };
    builder.functions = memory_new(&builder.allocator, list->count, sizeof *builder.functions);
    builder.order = memory_new(&builder.allocator, list->count, sizeof *builder.order);
    unwind_numbering_create(arch, &builder.numbering);
    enum cairn_status status = CAIRN_OK;
    if (!hash_set_init(&builder.rows, &builder.allocator, ROWS_AT_FIRST) ||
        builder.functions == NULL || builder.order == NULL)
        status = no_memory(error);
    if (status == CAIRN_OK)
        status = read_functions(&builder, list, error);
    if (status == CAIRN_OK)
        status = sort_entries(&builder, error);
    if (status == CAIRN_OK)
        status = pack(&builder, unwind, error);
    release(&builder);
    return status;
}
