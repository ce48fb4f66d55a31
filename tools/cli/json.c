/* SPDX-License-Identifier: MIT */
#include "tools/cli/json.h"

#include "base/utf8.h"

#include <string.h>

static void separate(struct json *json)
{
    if (json->needs_comma)
        output_character(json->output, ',');
    json->needs_comma = true;
}

static void begin(struct json *json, const char *key, char bracket)
{
    if (key != NULL)
        json_key(json, key);
    separate(json);
    output_character(json->output, bracket);
    json->needs_comma = false;
}

void json_begin_array(struct json *json, const char *key) { begin(json, key, '['); }

void json_begin_object(struct json *json, const char *key) { begin(json, key, '{'); }

static void end(struct json *json, char bracket)
{
    output_character(json->output, bracket);
    json->needs_comma = true;
}

void json_end_array(struct json *json) { end(json, ']'); }

void json_end_object(struct json *json) { end(json, '}'); }

static void write_key(struct json *json, const char *key, size_t length)
{
    separate(json);
    output_character(json->output, '"');
    output_bytes(json->output, key, length);
    output_text(json->output, "\":");
    json->needs_comma = false;
}

void json_key(struct json *json, const char *key) { write_key(json, key, strlen(key)); }

void json_line(struct json *json, unsigned indentation)
{
    if (json->needs_comma)
        output_character(json->output, ',');
    json->needs_comma = false;
    output_character(json->output, '\n');
    output_spaces(json->output, indentation);
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

void json_name(struct json *json, const char *key, const char *name)
{
    json_key(json, key);
    json_string(json, name);
}

void json_optional(struct json *json, const char *key, bool is_known, uint64_t value)
{
    json_key(json, key);
    if (is_known)
        json_unsigned(json, value);
    else
        json_string(json, NULL);
}

void json_fields(struct json *json, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    while (*format != '\0') {
        size_t length = strcspn(format, " ");
        write_key(json, format, length);
        format += length + 2; /* after the percent sign */
        char modifier = '\0';
        if (*format == 'j' || *format == 'z')
            modifier = *format++;
        if (*format == 'u') {
            json_unsigned(json, take_number(modifier, &arguments));
        } else if (*format == 's') {
            json_string(json, va_arg(arguments, const char *));
        } else {
            separate(json);
            if (*format == 'd')
                output_text(json->output, va_arg(arguments, int) != 0 ? "true" : "false");
            else if (*format == 'i')
                output_format(json->output, "%i", va_arg(arguments, int));
            else
                output_format(json->output, "%.6f", va_arg(arguments, double));
        }
        format += format[1] == ' ' ? 2 : 1;
    }
    va_end(arguments);
}

/* Writes the character at `text`, which JSON cannot hold unchanged. Returns how many bytes of
 * `text` it has. */
static size_t write_escaped(struct output *output, const char *text)
{
    size_t length = utf8_sequence_length(text);
    if (*text == '"' || *text == '\\')
        output_text(output, *text == '"' ? "\\\"" : "\\\\");
    else if (length == 1 || length == 2) /* the latter are U+0080 to U+009F */
        output_escaped(output, "\\u00", (uint8_t)text[length - 1]);
    else
        output_text(output, "\\ufffd");
    return length == 2 ? 2 : 1;
}

void json_string(struct json *json, const char *text)
{
    struct output *output = json->output;
    separate(json);
    if (text == NULL) {
        output_text(output, "null");
        return;
    }
    const char *end = output_name_end(output, text);
    output_character(output, '"');
    for (const char *at = text; at < end;) {
        size_t length = *at == '"' || *at == '\\' ? 0 : utf8_visible_length(at);
        bool is_plain = length > 0 && length <= (size_t)(end - at);
        if (is_plain)
            output_bytes(output, at, length);
        at += is_plain ? length : write_escaped(output, at);
    }
    output_text(output, *end != '\0' ? "...\"" : "\"");
}
