/* SPDX-License-Identifier: MIT */
#include "tools/meaning.h"

enum { TYPE_TEXT = 128 };

static void write_type(struct output *output, struct cairn_type type)
{
    char text[TYPE_TEXT];
    cairn_type_format(type, text, sizeof text);
    output_text(output, text);
}

static struct location_meanings find_statepoint_meanings(
    const struct cairn_declaration *declaration, const struct cairn_statepoint *statepoint)
{
    struct location_meanings meanings = {.declaration = declaration};
    if (statepoint == NULL)
        return meanings;
    meanings.is_statepoint = true;
    meanings.statepoint = *statepoint;
    return meanings;
}

struct location_meanings find_location_meanings(const struct cairn_declaration *declaration,
                                                uint32_t location_count,
                                                const struct cairn_statepoint *statepoint)
{
    struct location_meanings meanings = {.declaration = declaration};
    if (declaration == NULL)
        return meanings;
    if (declaration->kind == CAIRN_RECORD_STATEPOINT)
        return find_statepoint_meanings(declaration, statepoint);
    bool is_anyreg = declaration->kind == CAIRN_RECORD_PATCHPOINT &&
                     declaration->calling_convention == CAIRN_CALLING_CONVENTION_ANYREG;
    meanings.has_result = is_anyreg && declaration->result.kind != CAIRN_TYPE_VOID;
    meanings.skipped = is_anyreg ? 0 : declaration->argument_count;
    uint32_t expected = (meanings.has_result ? 1u : 0u) + declaration->argument_count +
                        declaration->live_value_count - meanings.skipped;
    if (expected != location_count)
        return (struct location_meanings){0};
    return meanings;
}

/* Writes the meaning of a deopt value. Inlining and lowering may split deopt values, so their types
 * are known only if the record does not have more of them than the declaration. */
static void write_deopt(struct output *output, const struct location_meanings *meanings,
                        uint32_t number)
{
    const struct cairn_declaration *declaration = meanings->declaration;
    if (meanings->statepoint.deopt_count <= declaration->live_value_count) {
        output_text(output, ", ");
        write_type(output, declaration->types[declaration->argument_count + number]);
    }
    output_format(output, " (deopt value %u)", number);
}

static void write_statepoint_meaning(struct output *output,
                                     const struct location_meanings *meanings, uint32_t index)
{
    static const char *const heads[] = {"calling convention", "flags", "number of deopt values"};
    const struct cairn_statepoint *parts = &meanings->statepoint;
    if (index < sizeof heads / sizeof *heads)
        output_format(output, " (%s)", heads[index]);
    else if (index - parts->first_deopt < parts->deopt_count)
        write_deopt(output, meanings, index - parts->first_deopt);
    else if (index - parts->first_pair < 2 * parts->pair_count)
        output_format(output, " (%s of pointer %u)",
                      (index - parts->first_pair) % 2 == 0 ? "base" : "derived",
                      (index - parts->first_pair) / 2);
    else
        output_format(output, " (alloca %u)", index - parts->first_alloca);
}

void write_location_meaning(struct output *output, const struct location_meanings *meanings,
                            uint32_t index)
{
    if (meanings->is_statepoint) {
        write_statepoint_meaning(output, meanings, index);
        return;
    }
    if (meanings->declaration == NULL || meanings->declaration->kind == CAIRN_RECORD_STATEPOINT)
        return;
    output_text(output, ", ");
    if (meanings->has_result && index == 0) {
        write_type(output, meanings->declaration->result);
        output_text(output, " (the result)");
        return;
    }
    uint32_t place = index - (meanings->has_result ? 1u : 0u);
    write_type(output, meanings->declaration->types[place + meanings->skipped]);
    if (meanings->skipped == 0 && place < meanings->declaration->argument_count)
        output_text(output, " (an argument)");
}
