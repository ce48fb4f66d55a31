/*
 * Finds the sections of code of a file by address.
 *
 * SPDX-License-Identifier: MIT
 */
#include "file/code_sections.h"

#include "base/error.h"
#include "base/memory.h"
#include <stdlib.h>

static int compare(const void *left, const void *right)
{
    const struct code_range *a = left;
    const struct code_range *b = right;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return (a->section > b->section) - (a->section < b->section);
}

static bool is_code(const struct file *file, uint32_t index, GElf_Shdr *header)
{
    return file_section(file, index, header) && (header->sh_flags & SHF_EXECINSTR) != 0 &&
           header->sh_size > 0;
}

static size_t count_code(const struct file *file)
{
    GElf_Shdr header;
    size_t count = 0;
    for (uint32_t index = 1; index < file->section_count; index++)
        count += is_code(file, index, &header);
    return count;
}

enum cairn_status code_ranges_read(const struct file *file, const struct cairn_allocator *allocator,
                                   struct code_ranges *ranges, struct cairn_error *error)
{
    GElf_Shdr header;
    size_t count = count_code(file);
    *ranges = (struct code_ranges){.are_relocatable = file_is_relocatable(file)};
    if (count == 0)
        return CAIRN_OK;
    ranges->entries = memory_new(allocator, count, sizeof *ranges->entries);
    if (ranges->entries == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu sections", count);
    for (uint32_t index = 1; index < file->section_count; index++)
        if (is_code(file, index, &header))
            ranges->entries[ranges->count++] = (struct code_range){
                ranges->are_relocatable ? 0 : header.sh_addr, header.sh_size, index};
    if (ranges->count > 1)
        qsort(ranges->entries, ranges->count, sizeof *ranges->entries, compare);
    return CAIRN_OK;
}

const struct code_range *code_ranges_find(const struct code_ranges *ranges, uint32_t section,
                                          uint64_t address)
{
    size_t low = 0;
    size_t high = ranges->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct code_range *range = &ranges->entries[middle];
        if (ranges->are_relocatable ? range->section <= section : range->address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const struct code_range *found = low == 0 ? NULL : &ranges->entries[low - 1];
    if (found == NULL || address - found->address >= found->size)
        return NULL;
    return ranges->are_relocatable && found->section != section ? NULL : found;
}

void code_ranges_release(struct code_ranges *ranges, const struct cairn_allocator *allocator)
{
    memory_free(allocator, ranges->entries, ranges->count * sizeof *ranges->entries);
    *ranges = (struct code_ranges){0};
}
