/* SPDX-License-Identifier: MIT */
#include "tools/lookup/function_sections.h"

enum { POINTER_BYTES = 8 }; /* in all files that Cairn reads */

/* The arguments of a visit. */
struct reading {
    const struct layout *layout;
    struct list *list;
};

/* Returns the address of the layout for the address at `offset` of a section. */
static uint64_t find_place(const struct input *input, const struct layout *layout,
                           const struct cairn_object_section *section, size_t offset)
{
    struct cairn_object_function function = cairn_object_function(input->object, section, offset);
    return layout_address(layout, function.section, function.entry);
}

static bool complain_of_memory(const struct input *input,
                               const struct cairn_object_section *section)
{
    return complain("%s: %s: no memory for its entries", input->name, section->name);
}

/* ---- Stack sizes ---- */

static int compare_sizes(const void *left, const void *right)
{
    const struct cairn_stack_size *one = left;
    const struct cairn_stack_size *other = right;
    return compare_numbers(one->address, other->address);
}

static bool add_stack_sizes(const struct input *input, const struct cairn_object_section *section,
                            void *user)
{
    const struct reading *reading = user;
    struct lost_addresses lost = {0};
    struct cairn_error error = {.status = CAIRN_OK};
    struct cairn_stack_size entry;
    for (size_t offset = 0; offset < section->contents.size;) {
        error.status =
            cairn_stack_size_read(&section->contents, POINTER_BYTES, &offset, &entry, &error);
        if (error.status != CAIRN_OK)
            break;
        check_address(input->object, section, entry.offset, &lost);
        entry.address = find_place(input, reading->layout, section, entry.offset);
        if (!list_append(reading->list, &entry, sizeof entry))
            return complain_of_memory(input, section);
    }
    return check_section(input, section, &lost, &error);
}

bool stack_sizes_read(const struct input *input, const struct layout *layout, struct list *list)
{
    const struct cairn_object_filter filter = {.name = CAIRN_STACK_SIZES_SECTION};
    struct reading reading = {layout, list};
    bool is_good =
        visit_sections(input, &filter, CAIRN_STACK_SIZES_SECTION, add_stack_sizes, &reading);
    list_sort(list, sizeof(struct cairn_stack_size), compare_sizes);
    return is_good;
}

/* ---- Coverage points ---- */

/* Compares points by address, and those of one address by number. */
static int compare_points(const void *left, const void *right)
{
    const struct cairn_sancov_point *one = left;
    const struct cairn_sancov_point *other = right;
    int order = compare_numbers(one->address, other->address);
    return order != 0 ? order : compare_numbers(one->index, other->index);
}

static bool add_points(const struct input *input, const struct cairn_object_section *section,
                       void *user)
{
    /* LLVM replaces the address of a block that it has removed by this number. */
    enum { REMOVED_BLOCK = 1 };
    const struct reading *reading = user;
    struct lost_addresses lost = {0};
    struct cairn_error error = {.status = CAIRN_OK};
    struct cairn_sancov_point point;
    for (size_t offset = 0; offset < section->contents.size;) {
        size_t begin = offset;
        error.status =
            cairn_sancov_read(&section->contents, POINTER_BYTES, &offset, &point, &error);
        if (error.status != CAIRN_OK)
            break;
        if (point.address != REMOVED_BLOCK)
            check_address(input->object, section, begin, &lost);
        point.address = find_place(input, reading->layout, section, begin);
        if (!list_append(reading->list, &point, sizeof point))
            return complain_of_memory(input, section);
    }
    return check_section(input, section, &lost, &error);
}

bool coverage_read(const struct input *input, const struct layout *layout, struct list *list)
{
    const struct cairn_object_filter filter = {.name = CAIRN_SANCOV_SECTION};
    struct reading reading = {layout, list};
    bool is_good = visit_sections(input, &filter, CAIRN_SANCOV_SECTION, add_points, &reading);
    list_sort(list, sizeof(struct cairn_sancov_point), compare_points);
    return is_good;
}
