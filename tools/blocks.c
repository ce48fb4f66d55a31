/* SPDX-License-Identifier: MIT */
#include "tools/blocks.h"

#include "tools/command.h"

/* Maps of a section that are being added to the table. */
struct source {
    const struct input *input;
    const struct layout *layout;
    struct cairn_object_section section;
    struct lost_addresses lost;
};

static uint64_t place_range(void *user, size_t offset, uint64_t address)
{
    struct source *source = user;
    check_address(source->input->object, &source->section, offset, &source->lost);
    struct cairn_object_function function =
        cairn_object_function(source->input->object, &source->section, offset);
    return layout_address(source->layout, function.section, address);
}

static bool add_section(cairn_block_builder *builder, struct source *source)
{
    struct cairn_error error;
    enum cairn_bbmap_encoding encoding = source->section.type == CAIRN_BBMAP_SECTION_TYPE_V0
                                             ? CAIRN_BBMAP_V0
                                             : CAIRN_BBMAP_VERSIONED;
    cairn_block_place *place = source->layout->is_made_up ? place_range : NULL;
    source->lost = (struct lost_addresses){0};
    enum cairn_status status = cairn_block_builder_add_section(builder, &source->section.contents,
                                                               encoding, place, source, &error);
    bool is_good = complain_of_lost(source->input->name, &source->section, &source->lost);
    if (status == CAIRN_OK)
        return is_good;
    complain_of_section(source->input, &source->section, &error);
    return false;
}

static bool add_type(cairn_block_builder *builder, struct source *source, uint32_t type)
{
    bool is_good = true;
    const struct cairn_object_filter filter = {.type = type};
    struct cairn_error error;
    source->section = (struct cairn_object_section){0};
    while (cairn_object_next_matching(source->input->object, &filter, &source->section, &error) ==
           CAIRN_OK)
        is_good = add_section(builder, source) && is_good;
    if (error.status == CAIRN_ERROR_NOT_FOUND)
        return is_good;
    complain("%s: basic-block address maps: %s", source->input->name, error.message);
    return false;
}

static bool has_maps(const cairn_object *object)
{
    struct cairn_object_section_header header;
    for (uint32_t i = 1; cairn_object_section_header(object, i, &header); i++)
        if (header.type == CAIRN_BBMAP_SECTION_TYPE_V0 || header.type == CAIRN_BBMAP_SECTION_TYPE)
            return true;
    return false;
}

bool blocks_create(const struct input *input, const struct layout *layout,
                   cairn_block_table **table)
{
    *table = NULL;
    if (!has_maps(input->object))
        return true;
    struct source source = {.input = input, .layout = layout};
    cairn_block_builder *builder = NULL;
    struct cairn_error error;
    bool is_good = false;
    if (cairn_block_builder_create(NULL, &builder, &error) == CAIRN_OK) {
        is_good = add_type(builder, &source, CAIRN_BBMAP_SECTION_TYPE_V0);
        is_good = add_type(builder, &source, CAIRN_BBMAP_SECTION_TYPE) && is_good;
        error.status = cairn_block_builder_finish(builder, table, &error);
    }
    if (error.status != CAIRN_OK) {
        complain("%s: basic-block address maps: %s", input->name, error.message);
        is_good = false;
    }
    cairn_block_builder_destroy(builder);
    return is_good;
}
