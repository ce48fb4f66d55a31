/* SPDX-License-Identifier: MIT */
#include "tools/print/record.h"

#include "format/record.h"

void write_frame(struct output *output, uint64_t stack_size)
{
    if (stack_size == CAIRN_STACK_SIZE_DYNAMIC)
        output_text(output, "frame of dynamic size");
    else
        output_format(output, "frame of %ju byte%s", stack_size, plural(stack_size));
}

/* Writes the register's name, such as "rax"; or LLVM's form "R#1234" if it has no name. */
static void write_register(struct output *output, enum cairn_architecture architecture,
                           uint16_t dwarf)
{
    const char *name = cairn_register_name(architecture, dwarf);
    if (name != NULL)
        output_text(output, name);
    else
        output_format(output, "R#%u", dwarf);
}

static void write_sum(struct output *output, enum cairn_architecture architecture,
                      struct cairn_location location)
{
    int64_t offset = location.offset;
    write_register(output, architecture, location.dwarf);
    if (offset != 0)
        output_format(output, offset < 0 ? " - %ju" : " + %ju",
                      (uint64_t)(offset < 0 ? -offset : offset));
}

void write_location(struct output *output, enum cairn_architecture architecture, uint32_t index,
                    struct cairn_location location)
{
    bool is_in_memory = location.kind == CAIRN_LOCATION_INDIRECT;
    output_format(output, "%u: ", index);
    switch (location.kind) {
    case CAIRN_LOCATION_REGISTER:
    case CAIRN_LOCATION_INDIRECT:
        output_text(output, is_in_memory ? "[" : "");
        write_sum(output, architecture, location);
        output_format(output, is_in_memory ? "] %u byte%s" : " %u byte%s", location.size,
                      plural(location.size));
        break;
    case CAIRN_LOCATION_DIRECT:
        output_text(output, "address ");
        write_sum(output, architecture, location);
        break;
    case CAIRN_LOCATION_CONSTANT:
        output_format(output, "constant %i", location.offset);
        break;
    case CAIRN_LOCATION_CONSTANT_INDEX:
        output_format(output, "large constant %ju (0x%jx)", location.constant, location.constant);
        break;
    }
}

void write_liveout(struct output *output, enum cairn_architecture architecture, uint32_t index,
                   struct cairn_liveout liveout)
{
    output_text(output, index == 0 ? "live across: " : ", ");
    write_register(output, architecture, liveout.dwarf);
    output_format(output, " %u byte%s", liveout.size, plural(liveout.size));
}

void write_location_json(struct json *json, struct cairn_location location)
{
    json_begin_object(json, NULL);
    json_fields(json, "kind %s dwarf %u size %u offset %i", location_kind_name(location.kind),
                location.dwarf, location.size, location.offset);
    if (location.kind == CAIRN_LOCATION_CONSTANT)
        json_fields(json, "value %i", location.offset);
    else
        json_optional(json, "value", location.kind == CAIRN_LOCATION_CONSTANT_INDEX,
                      location.constant);
    json_end_object(json);
}

void write_liveout_json(struct json *json, struct cairn_liveout liveout)
{
    json_begin_object(json, NULL);
    json_fields(json, "dwarf %u size %u", liveout.dwarf, liveout.size);
    json_end_object(json);
}

/* ---- Types ---- */

static void write_type(struct output *output, struct cairn_type type)
{
    char text[128];
    cairn_type_format(type, text, sizeof text);
    output_format(output, ", %s", text);
}

struct location_types find_location_types(const struct cairn_declaration *declaration,
                                          uint32_t location_count,
                                          const struct cairn_statepoint *statepoint)
{
    struct location_types types = {.declaration = declaration};
    if (declaration == NULL)
        return types;
    if (declaration->kind == CAIRN_RECORD_STATEPOINT) {
        types.statepoint = statepoint;
        return types;
    }
    bool is_anyreg = declaration->kind == CAIRN_RECORD_PATCHPOINT &&
                     declaration->calling_convention == CAIRN_CALLING_CONVENTION_ANYREG;
    types.has_result = is_anyreg && declaration->result.kind != CAIRN_TYPE_VOID;
    types.skipped = is_anyreg ? 0 : declaration->argument_count;
    uint32_t expected = (types.has_result ? 1u : 0u) + declaration->argument_count +
                        declaration->live_value_count - types.skipped;
    return expected == location_count ? types : (struct location_types){0};
}

static void write_statepoint_type(struct output *output, const struct location_types *types,
                                  uint32_t index)
{
    static const char *const heads[] = {"calling convention", "flags", "number of deopt values"};
    const struct cairn_declaration *declaration = types->declaration;
    const struct cairn_statepoint *parts = types->statepoint;
    uint32_t deopt = index - parts->first_deopt;
    uint32_t pair = index - parts->first_pair;
    if (index < sizeof heads / sizeof *heads) {
        output_format(output, " (%s)", heads[index]);
    } else if (deopt < parts->deopt_count) {
        /* Inlining and lowering may split deopt values, so their types are known only if the record
         * does not have more of them than the declaration. */
        if (parts->deopt_count <= declaration->live_value_count)
            write_type(output, declaration->types[declaration->argument_count + deopt]);
        output_format(output, " (deopt value %u)", deopt);
    } else if (pair < 2 * parts->pair_count) {
        output_format(output, " (%s of pointer %u)", pair % 2 == 0 ? "base" : "derived", pair / 2);
    } else {
        output_format(output, " (alloca %u)", index - parts->first_alloca);
    }
}

void write_location_type(struct output *output, const struct location_types *types, uint32_t index)
{
    const struct cairn_declaration *declaration = types->declaration;
    if (types->statepoint != NULL)
        write_statepoint_type(output, types, index);
    if (declaration == NULL || declaration->kind == CAIRN_RECORD_STATEPOINT)
        return;
    bool is_result = types->has_result && index == 0;
    uint32_t place = index - (types->has_result ? 1u : 0u);
    write_type(output,
               is_result ? declaration->result : declaration->types[place + types->skipped]);
    if (is_result)
        output_text(output, " (the result)");
    else if (types->skipped == 0 && place < declaration->argument_count)
        output_text(output, " (an argument)");
}
