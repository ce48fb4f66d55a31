/* SPDX-License-Identifier: MIT */
#include "tools/read/blocks.h"

#include <cairn/bbmap.h>

#define BLOCK_MAPS "basic-block address maps"

/* ---- Flags ---- */

void write_block_flags(struct output *output, const char *prefix, uint8_t flags)
{
    static const struct {
        uint8_t flag;
        const char *text;
    } flag_texts[] = {
        {CAIRN_BBMAP_IS_EH_PAD, "landing pad"},
        {CAIRN_BBMAP_HAS_RETURN, "returns"},
        {CAIRN_BBMAP_HAS_TAIL_CALL, "tail call"},
        {CAIRN_BBMAP_HAS_INDIRECT_BRANCH, "indirect branch"},
        {CAIRN_BBMAP_CAN_FALL_THROUGH, "can fall through"},
    };
    for (size_t i = 0; i < sizeof flag_texts / sizeof *flag_texts; i++) {
        if ((flags & flag_texts[i].flag) == 0)
            continue;
        output_text(output, prefix);
        output_text(output, flag_texts[i].text);
        prefix = ", ";
    }
}

void write_json_block_flags(struct json *json, uint8_t flags)
{
    json_fields(json, "has_return %d has_tail_call %d is_eh_pad %d can_fall_through %d",
                (flags & CAIRN_BBMAP_HAS_RETURN) != 0, (flags & CAIRN_BBMAP_HAS_TAIL_CALL) != 0,
                (flags & CAIRN_BBMAP_IS_EH_PAD) != 0, (flags & CAIRN_BBMAP_CAN_FALL_THROUGH) != 0);
    json_fields(json, "has_indirect_branch %d", (flags & CAIRN_BBMAP_HAS_INDIRECT_BRANCH) != 0);
}

/* ---- Tables ---- */

/* The table that is being built, and the section whose maps are being added. */
struct source {
    cairn_block_builder *builder;
    const struct layout *layout;
    const struct input *input;
    const struct cairn_object_section *section;
    struct lost_addresses lost;
};

static uint64_t place_range(void *user, size_t offset, uint64_t address)
{
    struct source *source = user;
    check_address(source->input->object, source->section, offset, &source->lost);
    struct cairn_object_function function =
        cairn_object_function(source->input->object, source->section, offset);
    return layout_address(source->layout, function.section, address);
}

static bool add_section(const struct input *input, const struct cairn_object_section *section,
                        void *user)
{
    struct source *source = user;
    struct cairn_error error;
    enum cairn_bbmap_encoding encoding =
        section->type == CAIRN_BBMAP_SECTION_TYPE_V0 ? CAIRN_BBMAP_V0 : CAIRN_BBMAP_VERSIONED;
    cairn_block_place *place = source->layout->is_made_up ? place_range : NULL;
    source->section = section;
    source->lost = (struct lost_addresses){0};
    error.status = cairn_block_builder_add(source->builder, &section->contents, encoding, place,
                                           source, &error);
    return check_section(input, section, &source->lost, &error);
}

bool visit_block_maps(const struct input *input, visit_section *visit, void *user)
{
    const struct cairn_object_filter old = {.type = CAIRN_BBMAP_SECTION_TYPE_V0};
    const struct cairn_object_filter filter = {.type = CAIRN_BBMAP_SECTION_TYPE};
    bool is_good = visit_sections(input, &old, BLOCK_MAPS, visit, user);
    return visit_sections(input, &filter, BLOCK_MAPS, visit, user) && is_good;
}

bool blocks_create(const struct input *input, const struct layout *layout,
                   cairn_block_table **table)
{
    struct cairn_object_section_header header;
    struct source source = {.input = input, .layout = layout};
    struct cairn_error error;
    bool is_good = false;
    bool has_maps = false;
    *table = NULL;
    for (uint32_t i = 1; cairn_object_section_header(input->object, i, &header); i++)
        if (header.type == CAIRN_BBMAP_SECTION_TYPE_V0 || header.type == CAIRN_BBMAP_SECTION_TYPE)
            has_maps = true;
    if (!has_maps)
        return true;
    if (cairn_block_builder_create(NULL, &source.builder, &error) == CAIRN_OK) {
        is_good = visit_block_maps(input, add_section, &source);
        error.status = cairn_block_builder_finish(source.builder, table, &error);
    }
    if (error.status != CAIRN_OK)
        is_good = complain("%s: " BLOCK_MAPS ": %s", input->name, error.message);
    cairn_block_builder_destroy(source.builder);
    return is_good;
}
