/*
 * Builds a table. It reads the section once, and sorts the entries if necessary, because linkers
 * and LLVM usually leave them in order. Then it writes the bucket directory after the entries.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sanmd/table.h"

#include "base/error.h"
#include "sanmd/memory.h"

#include <string.h>

enum {
    ENTRIES_PER_BUCKET = 8,
    /* Minimum size of an entry in its section: an address and, for functions, two numbers. */
    ATOMIC_BYTES_MIN = 4,
    FUNCTION_BYTES_MIN = 6
};

static uint8_t *entry_at(const struct table *table, size_t entry)
{
    return (uint8_t *)table + sizeof *table + entry * table->entry_bytes;
}

/* ---- Reading the section ---- */

static enum cairn_status read_entry(const struct table *table, const struct cairn_section *section,
                                    size_t *offset, struct table_function *entry,
                                    struct cairn_error *error)
{
    const struct cairn_sanmd_range *range = &table->range;
    if (range->kind == CAIRN_SANMD_ATOMICS) {
        struct cairn_sanmd_atomic atomic;
        enum cairn_status status = cairn_sanmd_read_atomic(section, range->section_address,
                                                           range->version, offset, &atomic, error);
        if (status == CAIRN_OK)
            *entry = (struct table_function){.address = atomic.address, .size = 1};
        return status;
    }
    struct cairn_sanmd_covered function;
    enum cairn_status status = cairn_sanmd_read_covered(section, range->section_address,
                                                        range->version, offset, &function, error);
    if (status == CAIRN_OK)
        *entry = (struct table_function){.address = function.address,
                                         .size = function.size,
                                         .features = function.features,
                                         .stack_argument_bytes = function.stack_argument_bytes};
    return status;
}

static void include_code(struct cairn_sanmd_range *range, const struct table_function *entry)
{
    uint64_t beyond = UINT64_MAX - entry->address;
    uint64_t end = entry->address + (entry->size < beyond ? entry->size : beyond);
    bool is_first = range->entry_count == 0;
    if (is_first || entry->address < range->code_begin)
        range->code_begin = entry->address;
    if (is_first || end > range->code_end)
        range->code_end = end;
}

static void read_section(struct table *table, const struct cairn_section *section)
{
    size_t offset = 0;
    while (offset < section->size) {
        struct table_function entry;
        if (read_entry(table, section, &offset, &entry, &table->range.error) != CAIRN_OK)
            return;
        include_code(&table->range, &entry);
        memcpy(entry_at(table, table->range.entry_count++), &entry, table->entry_bytes);
    }
}

/* ---- Sorting ---- */

/* Orders entries by address. Of functions at the same address, the last one is the one that a query
 * returns. Therefore functions are ordered by size, so that an empty one is not returned, and then
 * by features, so that the one with most features is returned. */
static bool comes_before(const struct table *table, size_t left, size_t right)
{
    uint64_t left_address = table_address(table, left);
    uint64_t right_address = table_address(table, right);
    if (left_address != right_address || table->range.kind == CAIRN_SANMD_ATOMICS)
        return left_address < right_address;
    struct table_function one;
    struct table_function other;
    memcpy(&one, entry_at(table, left), sizeof one);
    memcpy(&other, entry_at(table, right), sizeof other);
    if (one.size != other.size)
        return one.size < other.size;
    if (one.features != other.features)
        return one.features < other.features;
    return one.stack_argument_bytes < other.stack_argument_bytes;
}

static bool is_sorted(const struct table *table)
{
    for (size_t i = 1; i < table->range.entry_count; i++)
        if (comes_before(table, i, i - 1))
            return false;
    return true;
}

static void swap(struct table *table, size_t left, size_t right)
{
    struct table_function held;
    memcpy(&held, entry_at(table, left), table->entry_bytes);
    memmove(entry_at(table, left), entry_at(table, right), table->entry_bytes);
    memcpy(entry_at(table, right), &held, table->entry_bytes);
}

static void sift_down(struct table *table, size_t root, size_t count)
{
    for (;;) {
        size_t child = 2 * root + 1;
        if (child >= count)
            return;
        child += child + 1 < count && comes_before(table, child, child + 1);
        if (!comes_before(table, root, child))
            return;
        swap(table, root, child);
        root = child;
    }
}

/* Sorts the entries in place, in O(n log n) time even in the worst case. */
static void sort(struct table *table)
{
    if (is_sorted(table))
        return;
    size_t count = table->range.entry_count;
    for (size_t root = count / 2; root-- > 0;)
        sift_down(table, root, count);
    for (size_t end = count; end-- > 1;) {
        swap(table, 0, end);
        sift_down(table, 0, end);
    }
}

/* ---- The directory ---- */

static size_t bucket_of(const struct table *table, uint64_t address)
{
    return (size_t)((address - table->range.code_begin) >> table->bucket_shift);
}

/* Returns the number of bits to shift. It is at most 63 even if the code spans the whole address
 * space, because last_bucket_max is at least 1. */
static unsigned choose_shift(const struct cairn_sanmd_range *range)
{
    uint64_t last = range->code_end - 1 - range->code_begin;
    uint64_t last_bucket_max = range->entry_count / ENTRIES_PER_BUCKET + 1;
    unsigned shift = 0;
    while (last >> shift > last_bucket_max)
        shift++;
    return shift;
}

static size_t entries_end(const struct table *table)
{
    return sizeof *table + table->range.entry_count * table->entry_bytes;
}

static void write_directory(struct table *table)
{
    size_t count = table->range.entry_count;
    uint32_t *buckets = (uint32_t *)(void *)((uint8_t *)table + entries_end(table));
    table->bucket_shift = choose_shift(&table->range);
    table->bucket_count = bucket_of(table, table->range.code_end - 1) + 1;
    size_t entry = 0;
    for (size_t bucket = 0; bucket < table->bucket_count; bucket++) {
        buckets[bucket] = (uint32_t)entry;
        while (entry < count && bucket_of(table, table_address(table, entry)) == bucket)
            entry++;
    }
    buckets[table->bucket_count] = (uint32_t)count;
    table->buckets = buckets;
}

/* ---- Tables ---- */

/* Whether the range contains code. It does not if all functions are empty and have the same
 * address. */
static bool has_code(const struct cairn_sanmd_range *range)
{
    return range->entry_count > 0 && range->code_end > range->code_begin;
}

static size_t entries_max(enum cairn_sanmd_kind kind, size_t section_bytes)
{
    return section_bytes / (kind == CAIRN_SANMD_ATOMICS ? ATOMIC_BYTES_MIN : FUNCTION_BYTES_MIN) +
           1;
}

/* Returns the number of bytes for as many entries as the section can have, and for their directory.
 * The directory has an element for each bucket up to the last one of choose_shift, and one more.
 * Excess pages are never accessed, and are released. */
static size_t bytes_max(const struct table *table, size_t section_bytes)
{
    size_t entries = entries_max(table->range.kind, section_bytes);
    size_t buckets = entries / ENTRIES_PER_BUCKET + 3;
    return sizeof *table + entries * table->entry_bytes + buckets * sizeof *table->buckets;
}

static enum cairn_byte_order own_byte_order(void)
{
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? CAIRN_BIG_ENDIAN : CAIRN_LITTLE_ENDIAN;
}

/* Returns the part of the section that is read. The number of entries must fit in 32 bits. */
static struct cairn_section readable_section(struct table *table, const void *start, size_t size)
{
    const size_t bytes_limit = UINT32_MAX;
    if (size > bytes_limit) {
        (void)error_set(&table->range.error, CAIRN_ERROR_RANGE, bytes_limit,
                        "the section has %zu bytes, of which the first %zu are read", size,
                        bytes_limit);
        size = bytes_limit;
    }
    return (struct cairn_section){start, size, own_byte_order()};
}

static void fill(struct table *table, const void *start, size_t size)
{
    struct cairn_section section = readable_section(table, start, size);
    struct cairn_sanmd_range *range = &table->range;
    if (cairn_sanmd_has_wide_addresses(&section, range->section_address, range->kind,
                                       range->version))
        range->version |= CAIRN_SANMD_WIDE_ADDRESSES;
    read_section(table, &section);
    table->entries = entry_at(table, 0);
    if (!has_code(&table->range)) {
        table->range.entry_count = 0;
        table->range.code_begin = 0;
        table->range.code_end = 0;
        return;
    }
    sort(table);
    write_directory(table);
}

struct table *table_create(enum cairn_sanmd_kind kind, uint32_t version, const void *start,
                           const void *end)
{
    size_t size = (size_t)((const uint8_t *)end - (const uint8_t *)start);
    struct table blank = {.add_count = 1,
                          .entry_bytes = kind == CAIRN_SANMD_ATOMICS
                                             ? sizeof(uint64_t)
                                             : sizeof(struct table_function),
                          .range = {.kind = kind,
                                    .version = version,
                                    .section_address = (uint64_t)(uintptr_t)start,
                                    .section_size = size}};
    size_t bytes = bytes_max(&blank, size);
    struct table *table = memory_map(bytes);
    if (table == NULL)
        return NULL;
    memcpy(table, &blank, sizeof *table);
    fill(table, start, size);
    size_t buckets = table->bucket_count + 1;
    table->block.mapping_bytes =
        memory_trim(table, bytes, entries_end(table) + buckets * sizeof *table->buckets);
    table->range.table_bytes = table->block.mapping_bytes;
    return table;
}

void table_destroy(struct table *table) { memory_unmap(table, table->block.mapping_bytes); }

/* ---- Looking up ---- */

/* Searches small buckets, which nearly all are, without branches, because the processor cannot
 * predict the result of a comparison. */
size_t table_count_up_to(const struct table *table, uint64_t pc)
{
    const size_t small = 16;
    size_t bucket = bucket_of(table, pc);
    size_t low = table->buckets[bucket];
    size_t high = table->buckets[bucket + 1];
    while (high - low > small) {
        size_t middle = low + (high - low) / 2;
        if (table_address(table, middle) <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    size_t count = low;
    for (size_t i = low; i < high; i++)
        count += table_address(table, i) <= pc;
    return count;
}

struct cairn_sanmd_function table_function(const struct table *table, size_t entry)
{
    struct table_function function;
    memcpy(&function, table->entries + entry * table->entry_bytes, sizeof function);
    return (struct cairn_sanmd_function){.address = function.address,
                                         .size = function.size,
                                         .features = function.features,
                                         .stack_argument_bytes = function.stack_argument_bytes};
}
