/* SPDX-License-Identifier: MIT */
#include "tools/read/layout.h"

#include "base/sort.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { SECTION_ALIGNMENT = 64 };

/* Adds the sections. Returns their number. If `sections` is NULL, only counts them. */
static size_t add_sections(const struct layout *layout, struct code_section *sections)
{
    struct cairn_object_section_header header;
    uint64_t flags = SHF_ALLOC | SHF_EXECINSTR;
    uint64_t next = LAYOUT_BEGIN;
    size_t count = 0;
    for (uint32_t i = 1; cairn_object_section_header(layout->object, i, &header); i++) {
        if ((header.flags & flags) != flags || header.size == 0)
            continue;
        if (sections != NULL)
            sections[count] = (struct code_section){
                .address = layout->is_made_up ? next : header.address,
                .size = header.size,
                .index = i,
                .name = header.name,
            };
        count++;
        /* A gap, so that no address is both the end of a section and the start of another. */
        next += (header.size | (SECTION_ALIGNMENT - 1)) + 1;
    }
    return count;
}

/* Number of bytes of names that are compared. The limit bounds the time for sorting to O(n log n),
 * because names may overlap in the file, and each may be as long as the file. */
enum { NAME_COMPARED_MAX = 4096 };

static int compare_names(const void *left, const void *right)
{
    const struct named_section *a = left;
    const struct named_section *b = right;
    int order = strncmp(a->name, b->name, NAME_COMPARED_MAX);
    return order != 0 ? order : compare_numbers(a->number, b->number);
}

bool layout_create(const struct input *input, struct layout *layout)
{
    *layout = (struct layout){.object = input->object};
    layout->is_made_up = cairn_object_header(input->object).is_relocatable;
    size_t count = add_sections(layout, NULL);
    if (count == 0)
        return true;
    layout->sections = malloc(count * sizeof *layout->sections);
    layout->by_name = malloc(count * sizeof *layout->by_name);
    if (layout->sections == NULL || layout->by_name == NULL) {
        layout_destroy(layout);
        return complain("%s: no memory for %zu sections of code", input->name, count);
    }
    layout->count = add_sections(layout, layout->sections);
    qsort(layout->sections, count, sizeof *layout->sections, compare_first_numbers);
    for (size_t i = 0; i < count; i++)
        layout->by_name[i] = (struct named_section){layout->sections[i].name, i};
    qsort(layout->by_name, count, sizeof *layout->by_name, compare_names);
    return true;
}

void layout_destroy(struct layout *layout)
{
    free(layout->sections);
    free(layout->by_name);
}

uint64_t layout_address(const struct layout *layout, uint32_t section, uint64_t offset)
{
    if (!layout->is_made_up || layout->count == 0)
        return layout->is_made_up ? 0 : offset;
    /* Sections are laid out in the order of their indices. */
    uint32_t place = search_u32(&layout->sections->index, sizeof *layout->sections, 0,
                                (uint32_t)layout->count, section);
    bool is_found = place < layout->count && layout->sections[place].index == section;
    return is_found ? layout->sections[place].address + offset : 0;
}

const struct code_section *layout_section(const struct layout *layout, uint64_t address)
{
    size_t above = first_above(layout->sections, sizeof *layout->sections, layout->count, address);
    if (above == 0)
        return NULL;
    const struct code_section *section = &layout->sections[above - 1];
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

const char *place_section_name(const struct place *place)
{
    return place->section == NULL ? NULL : place->section->name;
}

void write_place(struct output *output, const struct place *place)
{
    if (place->section != NULL)
        output_format(output, "%s:", place->section->name);
    output_hexadecimal(output, place->address);
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
