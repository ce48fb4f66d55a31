/*
 * Allocates the memory in which a table is built.
 *
 * SPDX-License-Identifier: MIT
 */
#include "record/builder.h"

#include "base/error.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- Errors ---- */

enum cairn_status builder_name_section(const struct builder *builder, size_t index,
                                       enum cairn_status status, struct cairn_error *error)
{
    if (error == NULL || builder->section_count == 1)
        return status;
    struct cairn_error inner = *error;
    error_set(error, status, inner.offset, "section %zu: %.200s", index, inner.message);
    return status;
}

/* ---- Memory ---- */

/* Offsets of the arrays from the start of the allocation. */
struct layout {
    size_t constants;
    size_t ids_low;
    size_t value_starts;
    size_t functions;
    size_t low;
    size_t stack_sizes;
    size_t return_deltas;
    size_t values;
    size_t directory;
    size_t ids_high;
    size_t wide_stack_sizes;
    size_t sort_space;
    size_t size;
};

static size_t carve(struct layout *layout, size_t count, size_t size)
{
    size_t begin = layout->size;
    layout->size += (count * size + 7) & ~(size_t)7;
    return begin;
}

/* Returns the number of buckets needed. Buckets of 2^BUCKET_SHIFT_MAX bytes cover the 4 GiB of a
 * table's code. */
static size_t directory_capacity(size_t record_count)
{
    return 2 * (record_count / RECORDS_PER_BUCKET) + (UINT32_MAX >> BUCKET_SHIFT_MAX) + 2;
}

/*
 * Lays out the arrays for the worst case. The arrays of known size come first. The values follow,
 * and after them the arrays whose size is known only later. What is needed only while building is
 * at the end.
 */
static struct layout lay_out(const struct totals *totals)
{
    struct layout layout = {.size = sizeof(cairn_table)};
    size_t n = totals->records;
    size_t functions = totals->functions;
    size_t directory_words = directory_capacity(n) + DIRECTORY_SLACK;
    layout.constants = carve(&layout, totals->constants, sizeof(uint64_t));
    layout.ids_low = carve(&layout, n, sizeof(uint32_t));
    layout.value_starts = carve(&layout, n + 1, sizeof(uint32_t));
    layout.functions = carve(&layout, functions, sizeof(struct table_function));
    layout.low = carve(&layout, n + LOW_PADDING, sizeof(uint16_t));
    layout.stack_sizes = carve(&layout, functions, sizeof(uint16_t));
    layout.return_deltas = carve(&layout, n, sizeof(uint8_t));
    /* Locations and live-outs take no more bytes in any form than in a section. */
    layout.values = carve(&layout, totals->bytes, 1);
    carve(&layout, 2 * directory_words + 2 * n, sizeof(uint32_t));
    carve(&layout, functions + 1, sizeof(uint64_t));
    carve(&layout, n + 2, sizeof(uint32_t));
    carve(&layout, functions, sizeof(struct table_owner));
    layout.directory = carve(&layout, directory_words, sizeof(uint32_t));
    layout.ids_high = carve(&layout, n, sizeof(uint32_t));
    layout.wide_stack_sizes = carve(&layout, functions, sizeof(uint64_t));
    layout.sort_space = carve(&layout, 2 * n, sizeof(struct sort_key));
    return layout;
}

static void point_into(struct builder *builder, const struct layout *layout, uint8_t *memory)
{
    cairn_table *table = (cairn_table *)(void *)memory;
    table->constants = (uint64_t *)(void *)(memory + layout->constants);
    table->ids_low = (uint32_t *)(void *)(memory + layout->ids_low);
    table->value_starts = (uint32_t *)(void *)(memory + layout->value_starts);
    table->functions = (struct table_function *)(void *)(memory + layout->functions);
    table->low = (uint16_t *)(void *)(memory + layout->low);
    table->stack_sizes = (uint16_t *)(void *)(memory + layout->stack_sizes);
    table->return_deltas = memory + layout->return_deltas;
    table->values = (uint32_t *)(void *)(memory + layout->values);
    builder->directory.starts = (uint32_t *)(void *)(memory + layout->directory);
    builder->ids_high = (uint32_t *)(void *)(memory + layout->ids_high);
    builder->wide_stack_sizes = (uint64_t *)(void *)(memory + layout->wide_stack_sizes);
    builder->sort_space = (struct sort_key *)(void *)(memory + layout->sort_space);
    builder->next_word = table->values;
    builder->table = table;
}

static uintptr_t round_up(uintptr_t address, uintptr_t unit)
{
    return (address + unit - 1) & ~(unit - 1);
}

/* Advises the kernel to use large pages, and to fault in the small pages before the first large one
 * all at once. Building large tables would otherwise spend most of its time on page faults. These
 * are hints, so errors are ignored. */
static void advise_large_pages(void *memory, size_t size)
{
    enum { WORTH_IT = 8 << 20, LARGE_PAGE = 2 << 20 };
    if (size < WORTH_IT)
        return;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = round_up((uintptr_t)memory, page);
    uintptr_t end = ((uintptr_t)memory + size) & ~(page - 1);
    madvise((void *)begin, end - begin, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
    madvise((void *)begin, round_up(begin, LARGE_PAGE) - begin, MADV_POPULATE_WRITE);
#endif
}

enum cairn_status builder_allocate(struct builder *builder, const struct totals *totals,
                                   struct cairn_error *error)
{
    const struct layout layout = lay_out(totals);
    uint8_t *memory = NULL;
    if (totals->records < UINT32_MAX - LOW_PADDING && totals->constants < INT32_MAX)
        memory = memory_resize(&builder->allocator, NULL, 0, layout.size);
    if (memory == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a table of %llu records",
                         (unsigned long long)totals->records);
    advise_large_pages(memory, layout.size);
    memset(memory, 0, sizeof(cairn_table));
    point_into(builder, &layout, memory);
    builder->capacity_bytes = layout.size;
    builder->record_capacity = (uint32_t)totals->records;
    cairn_table *table = builder->table;
    table->allocator = builder->allocator;
    bool is_empty = totals->records == 0;
    table->base = is_empty ? 0 : totals->first_address;
    builder->directory.capacity = (uint32_t)directory_capacity(totals->records);
    directory_begin(&builder->directory, is_empty ? 0 : totals->last_address - table->base,
                    totals->records);
    return CAIRN_OK;
}

void builder_free_owners(struct builder *builder)
{
    memory_free(&builder->allocator, builder->record_owners,
                builder->record_capacity * sizeof *builder->record_owners);
    memory_free(&builder->allocator, builder->owners,
                builder->owner_count * sizeof *builder->owners);
    builder->record_owners = NULL;
    builder->owners = NULL;
}

void builder_discard(struct builder *builder)
{
    builder_free_owners(builder);
    memory_free(&builder->allocator, builder->table, builder->capacity_bytes);
    *builder = (struct builder){
        .sections = builder->sections,
        .section_count = builder->section_count,
        .allocator = builder->allocator,
        .zeros_may_follow = builder->zeros_may_follow,
    };
}

uint32_t *builder_take_words(struct builder *builder, size_t count)
{
    uint32_t *words = builder->next_word;
    builder->next_word += count;
    return words;
}

/* ---- Adding data ---- */

bool builder_is_end(const struct builder *builder, const struct cairn_section *section,
                    size_t offset)
{
    if (builder->zeros_may_follow && offset > 0)
        while (offset < section->size && section->bytes[offset] == 0)
            offset++;
    return offset >= section->size;
}

void builder_note_constants(struct builder *builder, const struct cairn_stackmap *map)
{
    for (uint32_t i = 0; i < map->constant_count; i++)
        builder->table->constants[builder->constant_count + i] = cairn_stackmap_constant(map, i);
    builder->constant_count += map->constant_count;
}

void builder_note_function(struct builder *builder, const struct cairn_stackmap_function *function,
                           uint32_t first_record)
{
    cairn_table *table = builder->table;
    uint32_t index = builder->function_count++;
    uint16_t stack_size = (uint16_t)function->stack_size;
    if (function->stack_size == CAIRN_STACK_SIZE_DYNAMIC) {
        stack_size = STACK_SIZE_DYNAMIC;
    } else if (__builtin_expect(function->stack_size >= STACK_SIZE_WIDE, 0)) {
        stack_size = STACK_SIZE_WIDE;
        builder->stack_sizes_are_wide = true;
        builder->wide_stack_sizes[index] = function->stack_size;
    }
    table->stack_sizes[index] = stack_size;
    table->functions[index] = (struct table_function){
        .code_offset = (uint32_t)(function->address - table->base),
        .first_record = first_record,
    };
}

void totals_add(struct totals *totals, const struct cairn_stackmap *map, size_t bytes)
{
    totals->records += map->record_count;
    totals->functions += map->function_count;
    totals->constants += map->constant_count;
    totals->bytes += bytes;
}
