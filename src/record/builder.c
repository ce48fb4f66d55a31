/*
 * A table that is being built: its memory, and what every way of adding records notes in it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "record/builder.h"

#include "base/error.h"

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

/* Returns the address of `count` elements after the first `*size` bytes of the memory, and adds
 * them to `*size`. */
static void *carve(void *memory, size_t *size, size_t count, size_t element_size)
{
    void *address = (void *)((uintptr_t)memory + *size);
    *size += (count * element_size + 7) & ~(size_t)7;
    return address;
}

/* Returns the number of buckets needed. Buckets of 2^BUCKET_SHIFT_MAX bytes cover the 4 GiB of a
 * table's code. */
static size_t directory_capacity(size_t record_count)
{
    return 2 * (record_count / RECORDS_PER_BUCKET) + (UINT32_MAX >> BUCKET_SHIFT_MAX) + 2;
}

/*
 * Lays out the arrays in the memory for the worst case, and returns its size. The arrays of known
 * size come first. The values follow, and after them the arrays whose size is known only later.
 * What is needed only while building is at the end.
 */
static size_t lay_out(struct builder *builder, const struct totals *totals, cairn_table *table,
                      void *memory)
{
    size_t size = sizeof *table;
    const size_t n = totals->records;
    const size_t functions = totals->functions;
    const size_t directory_words = directory_capacity(n) + DIRECTORY_SLACK;
    table->low = carve(memory, &size, n + LOW_PADDING, sizeof(uint16_t));
    table->constants = carve(memory, &size, totals->constants, sizeof(uint64_t));
    table->ids_low = carve(memory, &size, n, sizeof(uint32_t));
    table->value_starts = carve(memory, &size, n + 1, sizeof(uint32_t));
    table->functions = carve(memory, &size, functions, sizeof(struct table_function));
    table->stack_sizes = carve(memory, &size, functions, sizeof(uint16_t));
    table->return_deltas = carve(memory, &size, n, sizeof(uint8_t));
    /* Locations and live-outs take no more bytes in any form than in a section. */
    table->values = carve(memory, &size, totals->bytes, 1);
    size += (2 * directory_words + 2 * n + n + 2) * sizeof(uint32_t);
    size += (functions + 1) * sizeof(uint64_t) + functions * sizeof(struct table_owner) + 7;
    size &= ~(size_t)7;
    builder->directory.starts = carve(memory, &size, directory_words, sizeof(uint32_t));
    builder->ids_high = carve(memory, &size, n, sizeof(uint32_t));
    builder->wide_stack_sizes = carve(memory, &size, functions, sizeof(uint64_t));
    builder->sort_space = carve(memory, &size, 2 * n, sizeof(struct sort_key));
    builder->next_word = table->values;
    builder->table = table;
    return size;
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
    uintptr_t begin = ((uintptr_t)memory + page - 1) & ~(page - 1);
    uintptr_t end = ((uintptr_t)memory + size) & ~(page - 1);
    madvise((void *)begin, end - begin, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
    madvise((void *)begin, -begin & (LARGE_PAGE - 1), MADV_POPULATE_WRITE);
#endif
}

enum cairn_status builder_allocate(struct builder *builder, const struct totals *totals,
                                   struct cairn_error *error)
{
    cairn_table measured;
    const size_t size = lay_out(builder, totals, &measured, NULL);
    cairn_table *table = NULL;
    if (totals->records < UINT32_MAX - LOW_PADDING && totals->constants < INT32_MAX)
        table = memory_resize(&builder->allocator, NULL, 0, size);
    builder->table = NULL;
    if (table == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a table of %llu records",
                         (unsigned long long)totals->records);
    advise_large_pages(table, size);
    *table = (cairn_table){.allocator = builder->allocator};
    lay_out(builder, totals, table, table);
    builder->capacity_bytes = size;
    builder->record_capacity = (uint32_t)totals->records;
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
