/*
 * Reading sanitizer metadata. Everything that precedes an invalid part of a section is read.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/read/sanmd.h"

#include "format/sanmd.h"

int sanmd_compare_places(const void *left, const void *right)
{
    const struct sanmd_place *one = left;
    const struct sanmd_place *other = right;
    int order = compare_numbers(one->section, other->section);
    return order != 0 ? order : compare_numbers(one->address, other->address);
}

/* Compares functions. Empty functions come first among those at one address, so that accesses
 * belong to the last one. */
static int compare_functions(const void *left, const void *right)
{
    const struct sanmd_function *one = left;
    const struct sanmd_function *other = right;
    int order = sanmd_compare_places(&one->place, &other->place);
    return order != 0 ? order : compare_numbers(one->covered.size, other->covered.size);
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

/* Finds the form of the section; false if it is not of this metadata. The name may lack the width
 * of addresses. */
static bool find_format(cairn_object *object, const struct cairn_object_section *section,
                        struct cairn_sanmd_format *format)
{
    if (!cairn_object_header(object).is_relocatable)
        return cairn_sanmd_parse_name(section->name, &section->contents, section->address, format);
    if (!cairn_sanmd_parse_name(section->name, NULL, 0, format))
        return false;
    struct cairn_sanmd_format wide = {format->kind, format->version | CAIRN_SANMD_WIDE_ADDRESSES};
    if (!fits_relocations(object, section, *format) && fits_relocations(object, section, wide))
        *format = wide;
    return true;
}

/* Returns the place of an address. If the relocation does not tell its section (on RISC-V), it is
 * the section to which the metadata section is linked. */
static struct sanmd_place find_place(const struct input *input,
                                     const struct cairn_object_section *section, size_t offset,
                                     uint64_t address)
{
    uint32_t target = cairn_object_target_section(input->object, section, offset);
    if (target == 0 && cairn_object_header(input->object).is_relocatable)
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
    if (!find_format(input->object, section, &format))
        return true;
    contents->section_count++;
    for (size_t offset = 0; offset < section->contents.size && error.status == CAIRN_OK;) {
        bool is_covered = format.kind == CAIRN_SANMD_COVERED;
        error.status =
            cairn_sanmd_read(&section->contents, section->address, format, &offset, &entry, &error);
        if (error.status != CAIRN_OK)
            break;
        struct sanmd_function function = {find_place(input, section, entry.offset, entry.address),
                                          entry};
        if (is_covered ? !list_append(&contents->functions, &function, sizeof function)
                       : !list_append(&contents->atomics, &function.place, sizeof function.place))
            error = (struct cairn_error){.status = CAIRN_ERROR_MEMORY,
                                         .offset = offset,
                                         .message = "there is not enough memory"};
    }
    return check_section(input, section, &no_lost, &error);
}

void sanmd_sort(struct sanmd_contents *contents)
{
    list_sort(&contents->functions, sizeof(struct sanmd_function), compare_functions);
    list_sort(&contents->atomics, sizeof(struct sanmd_place), sanmd_compare_places);
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
    list_release(&contents->functions);
    list_release(&contents->atomics);
}

/* ---- Features ---- */

const uint32_t sanmd_features[SANMD_FEATURE_COUNT] = {CAIRN_SANMD_FEATURE_ATOMICS,
                                                      CAIRN_SANMD_FEATURE_USE_AFTER_RETURN,
                                                      CAIRN_SANMD_FEATURE_STACK_ARGUMENTS};

void write_json_features(struct json *json, uint32_t features)
{
    json_begin_array(json, "features");
    for (unsigned i = 0; i < SANMD_FEATURE_COUNT; i++)
        if ((features & sanmd_features[i]) != 0)
            json_string(json, sanmd_feature_name(sanmd_features[i]));
    json_end_array(json);
}
