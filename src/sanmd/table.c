/*
 * Builds a table. It reads the section once, and sorts the entries if necessary, because linkers
 * and LLVM usually leave them in order. Then it writes the bucket directory after the entries.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sanmd/table.h"
#include "format/sanmd.h"

#include "base/error.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* Reads the entries up to the first error, and finds the range of their code. */
static void read_section(struct table *table, const struct cairn_section *section)
{
    struct cairn_sanmd_range *range = &table->range;
    const struct cairn_sanmd_format format = {range->kind, range->version};
    struct cairn_sanmd_entry read;
    size_t offset = 0;
    while (offset < section->size && cairn_sanmd_read(section, range->section_address, format,
                                                      &offset, &read, &range->error) == CAIRN_OK) {
        const struct table_function entry = {
            .address = read.address,
            .size = read.size,
            .features = read.features,
            .stack_argument_bytes = read.stack_argument_bytes,
            .offset = (uint32_t)read.offset,
        };
        uint64_t size = range->kind == CAIRN_SANMD_ATOMICS ? 1 : read.size;
        uint64_t end = size < UINT64_MAX - read.address ? read.address + size : UINT64_MAX;
        if (range->entry_count == 0 || read.address < range->code_begin)
            range->code_begin = read.address;
        if (range->entry_count == 0 || end > range->code_end)
            range->code_end = end;
        memcpy(entry_at(table, range->entry_count++), &entry, table->entry_bytes);
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
    size_t count = table->range.entry_count;
    size_t sorted = 1;
    while (sorted < count && !comes_before(table, sorted, sorted - 1))
        sorted++;
    if (sorted >= count)
        return;
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

static size_t entries_end(const struct table *table)
{
    return sizeof *table + table->range.entry_count * table->entry_bytes;
}

static void write_directory(struct table *table)
{
    size_t count = table->range.entry_count;
    uint32_t *buckets = (uint32_t *)(void *)((uint8_t *)table + entries_end(table));
    /* The shift is at most 63 even if the code spans the whole address space, because
     * last_bucket_max is at least 1. */
    uint64_t last = table->range.code_end - 1 - table->range.code_begin;
    uint64_t last_bucket_max = count / ENTRIES_PER_BUCKET + 1;
    while (last >> table->bucket_shift > last_bucket_max)
        table->bucket_shift++;
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

void *memory_map(size_t bytes)
{
    int saved = errno;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    errno = saved;
    return memory == MAP_FAILED ? NULL : memory;
}

/* munmap fails only if it would split a mapping when the limit on the number of mappings is
 * reached. The callers unmap a whole mapping, or the end of one. */
void memory_unmap(void *memory, size_t bytes)
{
    int saved = errno;
    munmap(memory, bytes);
    errno = saved;
}

/* Reads the section, of which at most 4 GiB are used: the number of entries must fit in 32 bits. A
 * table has no entries if all functions are empty and have the same address. */
static void fill(struct table *table, const void *start, size_t size)
{
    struct cairn_sanmd_range *range = &table->range;
    const size_t bytes_limit = UINT32_MAX;
    if (size > bytes_limit) {
        (void)error_set(&range->error, CAIRN_ERROR_RANGE, bytes_limit,
                        "the section has %zu bytes, of which the first %zu are read", size,
                        bytes_limit);
        size = bytes_limit;
    }
    const struct cairn_section section = {
        start, size,
        __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? CAIRN_BIG_ENDIAN : CAIRN_LITTLE_ENDIAN};
    const struct cairn_sanmd_format format = {range->kind, range->version};
    if (sanmd_has_wide_addresses(&section, range->section_address, format))
        range->version |= CAIRN_SANMD_WIDE_ADDRESSES;
    read_section(table, &section);
    table->entries = entry_at(table, 0);
    if (range->code_end > range->code_begin) {
        sort(table);
        write_directory(table);
        return;
    }
    range->entry_count = 0;
    range->code_begin = 0;
    range->code_end = 0;
}

struct table *sanmd_table_create(enum cairn_sanmd_kind kind, uint32_t version, const void *start,
                                 const void *end)
{
    bool is_atomic = kind == CAIRN_SANMD_ATOMICS;
    size_t entry_bytes = is_atomic ? sizeof(uint64_t) : sizeof(struct table_function);
    size_t size = (size_t)((const uint8_t *)end - (const uint8_t *)start);
    /* As many entries as the section can have, and their directory, which has an element for each
     * bucket up to the last one, and one more. Excess pages are never accessed, and are released.
     */
    size_t entries = size / (is_atomic ? ATOMIC_BYTES_MIN : FUNCTION_BYTES_MIN) + 1;
    size_t buckets = entries / ENTRIES_PER_BUCKET + 3;
    size_t bytes = sizeof(struct table) + entries * entry_bytes + buckets * sizeof(uint32_t);
    struct table *table = memory_map(bytes);
    if (table == NULL)
        return NULL;
    table->add_count = 1;
    table->entry_bytes = entry_bytes;
    table->range = (struct cairn_sanmd_range){.kind = kind,
                                              .version = version,
                                              .section_address = (uint64_t)(uintptr_t)start,
                                              .section_size = size};
    fill(table, start, size);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t used = entries_end(table) + (table->bucket_count + 1) * sizeof *table->buckets;
    size_t kept = (used + page - 1) / page * page;
    if (kept < bytes)
        memory_unmap((uint8_t *)table + kept, bytes - kept);
    table->block.mapping_bytes = kept < bytes ? kept : bytes;
    table->range.table_bytes = table->block.mapping_bytes;
    return table;
}

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

struct cairn_sanmd_entry table_entry(const struct table *table, size_t number)
{
    struct table_function entry = {.address = table_address(table, number)};
    if (table->range.kind == CAIRN_SANMD_COVERED)
        memcpy(&entry, table->entries + number * table->entry_bytes, sizeof entry);
    return (struct cairn_sanmd_entry){
        .offset = entry.offset,
        .address = entry.address,
        .size = entry.size,
        .features = entry.features,
        .stack_argument_bytes = entry.stack_argument_bytes,
    };
}
