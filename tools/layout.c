/* SPDX-License-Identifier: MIT */
#include "tools/layout.h"

#include "tools/command.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { SECTION_ALIGNMENT = 64 };

static bool is_code(const struct cairn_object_section_header *header)
{
    uint64_t flags = SHF_ALLOC | SHF_EXECINSTR;
    return (header->flags & flags) == flags && header->size > 0;
}

static size_t count_code(const cairn_object *object)
{
    struct cairn_object_section_header header;
    size_t count = 0;
    for (uint32_t i = 1; cairn_object_section_header(object, i, &header); i++)
        count += is_code(&header);
    return count;
}

static void add_sections(struct layout *layout)
{
    struct cairn_object_section_header header;
    uint64_t next = LAYOUT_BEGIN;
    for (uint32_t i = 1; cairn_object_section_header(layout->object, i, &header); i++) {
        if (!is_code(&header))
            continue;
        layout->sections[layout->count++] = (struct code_section){
            .address = layout->is_made_up ? next : header.address,
            .size = header.size,
            .index = i,
            .name = header.name,
        };
        /* A gap, so that no address is both the end of a section and the start of another. */
        next += (header.size | (SECTION_ALIGNMENT - 1)) + 1;
    }
}

static int compare(const void *left, const void *right)
{
    const struct code_section *a = left;
    const struct code_section *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

/* Number of bytes of names that are compared. The limit bounds the time for sorting to O(n log n),
 * because names may overlap in the file, and each may be as long as the file. */
enum { NAME_COMPARED_MAX = 4096 };

static int compare_names(const void *left, const void *right)
{
    const struct named_section *a = left;
    const struct named_section *b = right;
    int order = strncmp(a->name, b->name, NAME_COMPARED_MAX);
    return order != 0 ? order : (a->number > b->number) - (a->number < b->number);
}

static void sort_names(struct layout *layout)
{
    for (size_t i = 0; i < layout->count; i++)
        layout->by_name[i] = (struct named_section){layout->sections[i].name, i};
    qsort(layout->by_name, layout->count, sizeof *layout->by_name, compare_names);
}

bool layout_create(const struct input *input, struct layout *layout)
{
    *layout = (struct layout){.object = input->object};
    layout->is_made_up = cairn_object_is_relocatable(input->object);
    size_t count = count_code(input->object);
    if (count == 0)
        return true;
    layout->sections = malloc(count * sizeof *layout->sections);
    layout->by_name = malloc(count * sizeof *layout->by_name);
    if (layout->sections == NULL || layout->by_name == NULL) {
        complain("%s: no memory for %zu sections of code", input->name, count);
        layout_destroy(layout);
        return false;
    }
    add_sections(layout);
    qsort(layout->sections, layout->count, sizeof *layout->sections, compare);
    sort_names(layout);
    return true;
}

void layout_destroy(struct layout *layout)
{
    free(layout->sections);
    free(layout->by_name);
}

/* Finds a section by its index. Sections are laid out in the order of their indices. */
static const struct code_section *find_index(const struct layout *layout, uint32_t index)
{
    size_t low = 0;
    size_t high = layout->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (layout->sections[middle].index < index)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == layout->count || layout->sections[low].index != index)
        return NULL;
    return &layout->sections[low];
}

uint64_t layout_address(const struct layout *layout, uint32_t section, uint64_t offset)
{
    if (!layout->is_made_up)
        return offset;
    const struct code_section *found = find_index(layout, section);
    return found == NULL ? 0 : found->address + offset;
}

const struct code_section *layout_section(const struct layout *layout, uint64_t address)
{
    size_t low = 0;
    size_t high = layout->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (layout->sections[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    const struct code_section *section = &layout->sections[low - 1];
    /* The end is included, because a call that does not return may be the last instruction. */
    return address - section->address <= section->size ? section : NULL;
}

/* Compares the first `length` bytes of `name` with all of `other`. */
static int compare_part(const char *name, size_t length, const char *other)
{
    int order = strncmp(name, other, length);
    return order == 0 && other[length] != '\0' ? -1 : order;
}

const struct code_section *layout_find_name(const struct layout *layout, const char *name,
                                            size_t length, bool *is_only)
{
    size_t low = 0;
    size_t high = layout->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_part(name, length, layout->by_name[middle].name) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    *is_only = true;
    if (low == layout->count || compare_part(name, length, layout->by_name[low].name) != 0)
        return NULL;
    *is_only =
        low + 1 == layout->count || compare_part(name, length, layout->by_name[low + 1].name) != 0;
    return &layout->sections[layout->by_name[low].number];
}

struct place layout_place(const struct layout *layout, uint64_t address)
{
    const struct code_section *section =
        layout->is_made_up ? layout_section(layout, address) : NULL;
    return (struct place){section, section == NULL ? address : address - section->address};
}

bool layout_function(const struct layout *layout, uint64_t address,
                     struct cairn_object_function *function)
{
    struct place place = layout_place(layout, address);
    if (layout->is_made_up && place.section == NULL)
        return false;
    uint32_t section = place.section == NULL ? 0 : place.section->index;
    return cairn_object_find_function(layout->object, section, place.address, function, NULL) ==
           CAIRN_OK;
}
