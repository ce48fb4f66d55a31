/* SPDX-License-Identifier: MIT */
#include "tools/sanmd_read.h"

#include <stdlib.h>

int sanmd_compare_places(const void *left, const void *right)
{
    const struct sanmd_place *one = left;
    const struct sanmd_place *other = right;
    if (one->section != other->section)
        return one->section < other->section ? -1 : 1;
    return (one->address > other->address) - (one->address < other->address);
}

/* Compares functions. Empty functions come first among those at one address, so that accesses
 * belong to the last one. */
static int compare_functions(const void *left, const void *right)
{
    const struct sanmd_function *one = left;
    const struct sanmd_function *other = right;
    int order = sanmd_compare_places(&one->place, &other->place);
    if (order != 0)
        return order;
    return (one->covered.size > other->covered.size) - (one->covered.size < other->covered.size);
}

/* Whether a relocatable object's section can be read in this form, with a relocation at each
 * entry. */
static bool fits_relocations(cairn_object *object, const struct cairn_object_section *section,
                             struct cairn_sanmd_format format)
{
    struct cairn_sanmd_entry entry;
    for (size_t offset = 0; offset < section->contents.size;)
        if (cairn_object_target_section(object, section, offset) == 0 ||
            cairn_sanmd_read(&section->contents, 0, format, &offset, &entry, NULL) != CAIRN_OK)
            return false;
    return true;
}

/* Returns the form with the width of addresses, which the section's name may lack. */
static struct cairn_sanmd_format find_format(cairn_object *object,
                                             const struct cairn_object_section *section,
                                             struct cairn_sanmd_format named)
{
    struct cairn_sanmd_format wide = {named.kind, named.version | CAIRN_SANMD_WIDE_ADDRESSES};
    bool is_wide =
        cairn_object_is_relocatable(object)
            ? !fits_relocations(object, section, named) && fits_relocations(object, section, wide)
            : cairn_sanmd_has_wide_addresses(&section->contents, section->address, named);
    return is_wide ? wide : named;
}

/* Returns the place of an address. If the relocation does not tell its section (on RISC-V), it is
 * the section to which the metadata section is linked. */
static struct sanmd_place find_place(const struct input *input,
                                     const struct cairn_object_section *section, size_t offset,
                                     uint64_t address)
{
    uint32_t target = cairn_object_target_section(input->object, section, offset);
    if (target == 0 && cairn_object_is_relocatable(input->object))
        target = section->linked_section;
    return (struct sanmd_place){target, address};
}

static bool read_section(const struct input *input, const struct cairn_object_section *section,
                         void *user)
{
    struct sanmd_contents *contents = user;
    const struct lost_addresses no_lost = {0};
    struct cairn_sanmd_format format;
    struct cairn_error error = {.status = CAIRN_OK};
    struct cairn_sanmd_entry entry;
    if (!cairn_sanmd_parse_name(section->name, &format))
        return true;
    contents->section_count++;
    format = find_format(input->object, section, format);
    for (size_t offset = 0; offset < section->contents.size && error.status == CAIRN_OK;) {
        bool is_covered = format.kind == CAIRN_SANMD_COVERED;
        error.status =
            cairn_sanmd_read(&section->contents, section->address, format, &offset, &entry, &error);
        if (error.status != CAIRN_OK)
            break;
        struct sanmd_place place = find_place(input, section, entry.offset, entry.address);
        void *item = is_covered ? list_add(&contents->functions, sizeof(struct sanmd_function))
                                : list_add(&contents->atomics, sizeof(struct sanmd_place));
        if (item == NULL)
            error = (struct cairn_error){.status = CAIRN_ERROR_MEMORY,
                                         .offset = offset,
                                         .message = "there is not enough memory"};
        else if (is_covered)
            *(struct sanmd_function *)item = (struct sanmd_function){place, entry};
        else
            *(struct sanmd_place *)item = place;
    }
    return check_section(input, section, &no_lost, &error);
}

void sanmd_sort(struct sanmd_contents *contents)
{
    if (contents->functions.count > 1)
        qsort(contents->functions.items, contents->functions.count, sizeof(struct sanmd_function),
              compare_functions);
    if (contents->atomics.count > 1)
        qsort(contents->atomics.items, contents->atomics.count, sizeof(struct sanmd_place),
              sanmd_compare_places);
}

bool sanmd_read(const struct input *input, struct sanmd_contents *contents)
{
    const struct cairn_object_filter filter = {.prefix = CAIRN_SANMD_PREFIX};
    *contents = (struct sanmd_contents){.section_count = 0};
    bool is_good = visit_sections(input, &filter, CAIRN_SANMD_PREFIX, read_section, contents);
    sanmd_sort(contents);
    return is_good;
}

void sanmd_release(struct sanmd_contents *contents)
{
    free(contents->functions.items);
    free(contents->atomics.items);
}
