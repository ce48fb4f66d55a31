/* SPDX-License-Identifier: MIT */
#include "tools/json.h"

#include "base/utf8.h"

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

/* Returns how many bytes of `text`, up to `end`, can be written unchanged. */
static size_t plain_run(const char *text, const char *end)
{
    const char *at = text;
    while (at < end && *at != '"' && *at != '\\') {
        size_t length = utf8_visible_length(at);
        if (length == 0 || length > (size_t)(end - at))
            break;
        at += length;
    }
    return (size_t)(at - text);
}

/* Writes the character at which plain_run has stopped. Returns how many bytes of `text` it has. */
static size_t write_escaped(struct output *output, const char *text)
{
    size_t length = utf8_sequence_length(text);
    if (*text == '"' || *text == '\\') {
        output_character(output, '\\');
        output_character(output, *text);
    } else if (length == 1)
        output_escaped(output, "\\u00", (uint8_t)*text);
    else if (length == 2)
        output_escaped(output, "\\u00", (uint8_t)text[1]); /* U+0080 to U+009F */
    else
        output_text(output, "\\ufffd");
    return length == 2 ? 2 : 1;
}

void json_string(struct json *json, const char *text)
{
    struct output *output = json->output;
    const char *end = output_name_end(output, text);
    separate(json);
    output_character(output, '"');
    for (const char *at = text; at < end;) {
        size_t length = plain_run(at, end);
        output_bytes(output, at, length);
        at += length;
        if (at < end)
            at += write_escaped(output, at);
    }
    if (*end != '\0')
        output_text(output, "...");
    output_character(output, '"');
}
