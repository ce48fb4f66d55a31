/* SPDX-License-Identifier: MIT */
#include "tools/words.h"

#include <cairn/stackmap.h>
#include <stddef.h>

void write_count(struct output *output, uint64_t count, const char *one, const char *many)
{
    output_unsigned(output, count);
    output_character(output, ' ');
    output_text(output, count == 1 ? one : many);
}

void write_frame(struct output *output, uint64_t stack_size)
{
    if (stack_size == CAIRN_STACK_SIZE_DYNAMIC) {
        output_text(output, "frame of dynamic size");
        return;
    }
    output_text(output, "frame of ");
    write_count(output, stack_size, "byte", "bytes");
}

void write_name(struct output *output, const char *name)
{
    output_style(output, STYLE_NAME);
    if (name != NULL)
        output_name(output, name);
    else
        output_text(output, "(no symbol)");
    output_style(output, STYLE_PLAIN);
}

void write_name_offset(struct output *output, const char *name, uint64_t offset)
{
    write_name(output, name);
    output_text(output, " + ");
    output_hexadecimal(output, offset);
}

void write_json_name(struct json *json, const char *name)
{
    if (name != NULL)
        json_string(json, name);
    else
        json_null(json);
}
