/* SPDX-License-Identifier: MIT */
#include "tools/json.h"

#include "tools/utf8.h"

#include <string.h>

static void separate(struct json *json)
{
    if (json->needs_comma)
        output_character(json->output, ',');
    json->needs_comma = true;
}

static void begin(struct json *json, char bracket)
{
    separate(json);
    output_character(json->output, bracket);
    json->needs_comma = false;
}

static void end(struct json *json, char bracket)
{
    output_character(json->output, bracket);
    json->needs_comma = true;
}

void json_begin_array(struct json *json) { begin(json, '['); }

void json_end_array(struct json *json) { end(json, ']'); }

void json_begin_object(struct json *json) { begin(json, '{'); }

void json_end_object(struct json *json) { end(json, '}'); }

void json_key(struct json *json, const char *key)
{
    json_string(json, key);
    output_character(json->output, ':');
    json->needs_comma = false;
}

void json_line(struct json *json, unsigned indentation)
{
    if (json->needs_comma)
        output_character(json->output, ',');
    json->needs_comma = false;
    output_character(json->output, '\n');
    for (unsigned i = 0; i < indentation; i++)
        output_character(json->output, ' ');
}

void json_null(struct json *json)
{
    separate(json);
    output_text(json->output, "null");
}

void json_boolean(struct json *json, bool value)
{
    separate(json);
    output_text(json->output, value ? "true" : "false");
}

void json_fraction(struct json *json, double value)
{
    separate(json);
    output_format(json->output, "%.6f", value);
}

void json_signed(struct json *json, int32_t value)
{
    separate(json);
    output_signed(json->output, value);
}

void json_unsigned(struct json *json, uint64_t value)
{
    separate(json);
    bool fits = value <= JSON_NUMBER_MAX;
    if (!fits)
        output_character(json->output, '"');
    output_unsigned(json->output, value);
    if (!fits)
        output_character(json->output, '"');
}

/* ---- Strings ---- */

static void write_ascii(struct output *output, char character)
{
    if (character == '"' || character == '\\') {
        output_character(output, '\\');
        output_character(output, character);
    } else if ((unsigned char)character < 0x20) {
        output_format(output, "\\u%04x", (unsigned char)character);
    } else {
        output_character(output, character);
    }
}

void json_string(struct json *json, const char *text)
{
    struct output *output = json->output;
    separate(json);
    output_character(output, '"');
    while (*text != '\0') {
        size_t length = utf8_sequence_length(text);
        if (length == 1)
            write_ascii(output, *text);
        else if (length > 1)
            output_bytes(output, text, length);
        else
            output_text(output, "\\ufffd");
        text += length == 0 ? 1 : length;
    }
    output_character(output, '"');
}
