/*
 * cairn lookup: finding the target that a word names.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/lookup/lookup.h"
#include "tools/read/addresses.h"

#include <stdio.h>
#include <string.h>

/* Finds the place at `offset` in a section. */
static bool find_in_section(const struct layout *layout, const struct code_section *section,
                            uint64_t offset, struct target *target, char *complaint)
{
    target->address = section->address + offset;
    if (offset <= section->size)
        return true;
    snprintf(complaint, TARGET_COMPLAINT_BYTES, "section %.100s has only 0x%llx bytes%s",
             section->name, (unsigned long long)section->size,
             layout->is_made_up ? "" : " of code");
    return false;
}

/* Finds the target of an address without a section. In a relocatable object, it is in .text if
 * there is exactly one section of this name, or in the only section of code. */
static bool find_address(const struct tables *tables, uint64_t base, uint64_t address,
                         struct target *target, char *complaint)
{
    const struct layout *layout = &tables->layout;
    bool is_only;
    *target = (struct target){.address = address - base, .loaded = address};
    if (!layout->is_made_up)
        return true;
    const struct code_section *section = layout_find_name(layout, ".text", 5, &is_only);
    if (section == NULL || !is_only)
        section = layout->count == 1 ? layout->sections : NULL;
    if (section != NULL)
        return find_in_section(layout, section, address, target, complaint);
    snprintf(complaint, TARGET_COMPLAINT_BYTES,
             "the section of 0x%llx is not given: in a relocatable file, write SECTION:ADDRESS, "
             "such as %.60s:%llx",
             (unsigned long long)address, layout->count < 2 ? ".text" : layout->sections[0].name,
             (unsigned long long)address);
    return false;
}

/* Splits "SECTION:ADDRESS". False, without a message, if the word does not have this form. */
static bool split_section(const struct tables *tables, const char *word,
                          const struct code_section **section, uint64_t *offset)
{
    bool is_only;
    const char *colon = strrchr(word, ':');
    if (colon == NULL || !parse_address(colon + 1, offset))
        return false;
    *section = layout_find_name(&tables->layout, word, (size_t)(colon - word), &is_only);
    /* In a linked file, the number is an address in the section and not an offset. */
    if (*section != NULL && !tables->layout.is_made_up)
        *offset -= (*section)->address;
    return *section != NULL;
}

static bool find_name(const struct tables *tables, const char *word, struct target *target,
                      char *complaint)
{
    enum { NAME_BYTES = 4096 };
    char name[NAME_BYTES];
    uint64_t offset = 0;
    bool is_only;
    const struct code_section *section;
    struct cairn_object_function function;
    if (split_section(tables, word, &section, &offset))
        return find_in_section(&tables->layout, section, offset, target, complaint);
    /* The name ends at a '+' before a number. */
    const char *plus = strrchr(word, '+');
    bool has_offset = plus != NULL && plus > word && parse_address(plus + 1, &offset);
    size_t length = has_offset ? (size_t)(plus - word) : strlen(word);
    offset = has_offset ? offset : 0;
    section = layout_find_name(&tables->layout, word, length, &is_only);
    if (section != NULL)
        return find_in_section(&tables->layout, section, offset, target, complaint);
    snprintf(name, sizeof name, "%.*s", length < sizeof name ? (int)length : 0, word);
    if (name[0] != '\0' &&
        cairn_object_find_name(tables->input->object, name, &function, NULL) == CAIRN_OK) {
        uint64_t entry = layout_address(&tables->layout, function.section, function.entry);
        target->address = entry + offset;
        if (entry != 0 || !tables->layout.is_made_up)
            return true;
    }
    snprintf(complaint, TARGET_COMPLAINT_BYTES,
             "'%.100s' is neither a hexadecimal address nor a function or section of the file",
             word);
    return false;
}

bool find_target(const struct tables *tables, uint64_t base, const char *word,
                 struct target *target, char *complaint)
{
    uint64_t address;
    if (parse_address(word, &address))
        return find_address(tables, base, address, target, complaint);
    if (!find_name(tables, word, target, complaint))
        return false;
    target->loaded = target->address + base;
    return true;
}
