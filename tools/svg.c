/* SPDX-License-Identifier: MIT */
#include "tools/svg.h"

#include "base/utf8.h"

#include <string.h>

/* ---- Characters ---- */

static void write_ascii(struct output *output, char character)
{
    switch (character) {
    case '&':
        output_text(output, "&amp;");
        break;
    case '<':
        output_text(output, "&lt;");
        break;
    case '>':
        output_text(output, "&gt;");
        break;
    case '"':
        output_text(output, "&quot;");
        break;
    default:
        output_character(output, character);
    }
}

/* Whether XML allows the character. It excludes control characters, U+FFFE and U+FFFF. */
static bool is_allowed(const char *text, size_t length)
{
    if (utf8_visible_length(text) == 0)
        return false;
    return length != 3 ||
           (memcmp(text, "\xef\xbf\xbe", 3) != 0 && memcmp(text, "\xef\xbf\xbf", 3) != 0);
}

/* Writes one character. Returns how many bytes of `text` it has. */
static size_t write_one(struct output *output, const char *text)
{
    size_t length = utf8_sequence_length(text);
    if (length == 0 || !is_allowed(text, length)) {
        output_text(output, "\xef\xbf\xbd");
        return length == 0 ? 1 : length;
    }
    if (length == 1)
        write_ascii(output, text[0]);
    else
        output_bytes(output, text, length);
    return length;
}

void write_xml(struct output *output, const char *text)
{
    while (*text != '\0')
        text += write_one(output, text);
}

static size_t columns_of(const char *text) { return (unsigned char)text[0] < 0x80 ? 1 : 2; }

static size_t length_of(const char *text)
{
    size_t length = utf8_sequence_length(text);
    return length == 0 ? 1 : length;
}

static bool fits(const char *text, size_t columns)
{
    size_t used = 0;
    for (; *text != '\0' && used <= columns; text += length_of(text))
        used += columns_of(text);
    return used <= columns;
}

void write_xml_cut(struct output *output, const char *text, size_t columns)
{
    if (fits(text, columns)) {
        write_xml(output, text);
        return;
    }
    size_t left = columns - 1;
    while (columns_of(text) <= left) {
        left -= columns_of(text);
        text += write_one(output, text);
    }
    output_text(output, "\xe2\x80\xa6");
}

/* ---- Shapes ---- */

void write_tenths(struct output *output, unsigned tenths)
{
    output_unsigned(output, tenths / 10);
    output_character(output, '.');
    output_unsigned(output, tenths % 10);
}

void write_box(struct output *output, struct box box, struct colour fill, const char *attributes)
{
    output_format(output, "<rect x=\"%u\" y=\"", box.x);
    write_tenths(output, box.y_tenths);
    output_format(output, "\" width=\"%u\" height=\"", box.width);
    write_tenths(output, box.height_tenths);
    output_format(output, "\" fill=\"#%02x%02x%02x\" %s/>", fill.red, fill.green, fill.blue,
                  attributes);
}

/* Positions are computed here, because some programs do not support dominant-baseline. */
void write_text_begin(struct output *output, const char *style, unsigned x, unsigned y_tenths)
{
    enum { BELOW_MIDDLE_TENTHS = 40 };
    output_format(output, "<text class=\"%s\" x=\"%u\" y=\"", style, x);
    write_tenths(output, y_tenths + BELOW_MIDDLE_TENTHS);
    output_text(output, "\">");
}

void write_text_end(struct output *output) { output_text(output, "</text>"); }
