/* SPDX-License-Identifier: MIT */
#include "tools/svg.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Characters ---- */

/* Writes one character. Returns how many bytes of `text` it has. XML does not allow control
 * characters, U+FFFE and U+FFFF. */
static size_t write_one(struct output *output, const char *text)
{
    size_t length = utf8_sequence_length(text);
    if (length == 0 || utf8_visible_length(text) == 0 ||
        memcmp(text, "\xef\xbf\xbe", length) == 0 || memcmp(text, "\xef\xbf\xbf", length) == 0)
        output_text(output, "\xef\xbf\xbd");
    else if (*text == '&')
        output_text(output, "&amp;");
    else if (*text == '<')
        output_text(output, "&lt;");
    else if (*text == '>')
        output_text(output, "&gt;");
    else if (*text == '"')
        output_text(output, "&quot;");
    else
        output_bytes(output, text, length);
    return length == 0 ? 1 : length;
}

void write_xml(struct output *output, const char *text)
{
    while (*text != '\0')
        text += write_one(output, text);
}

static size_t columns_of(const char *text) { return (unsigned char)text[0] < 0x80 ? 1 : 2; }

void write_xml_cut(struct output *output, const char *text, size_t columns)
{
    size_t used = 0;
    for (const char *at = text; *at != '\0' && used <= columns;) {
        size_t length = utf8_sequence_length(at);
        used += columns_of(at);
        at += length == 0 ? 1 : length;
    }
    if (used <= columns) {
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

void write_box(struct output *output, struct box box, struct colour fill, const char *attributes)
{
    char colour[8];
    snprintf(colour, sizeof colour, "#%02x%02x%02x", fill.red, fill.green, fill.blue);
    output_format(output,
                  "<rect x=\"%u\" y=\"%u.%u\" width=\"%u\" height=\"%u.%u\" fill=\"%s\" %s/>",
                  box.x, box.y_tenths / 10, box.y_tenths % 10, box.width, box.height_tenths / 10,
                  box.height_tenths % 10, colour, attributes);
}

/* Positions are computed here, because some programs do not support dominant-baseline. */
void write_text_begin(struct output *output, const char *style, unsigned x, unsigned y_tenths)
{
    enum { BELOW_MIDDLE_TENTHS = 40 };
    unsigned y = y_tenths + BELOW_MIDDLE_TENTHS;
    output_format(output, "<text class=\"%s\" x=\"%u\" y=\"%u.%u\">", style, x, y / 10, y % 10);
}

void write_label(struct output *output, const char *style, unsigned x, unsigned y_tenths,
                 const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_text_begin(output, style, x, y_tenths);
    output_arguments(output, format, &arguments);
    write_text_end(output);
    va_end(arguments);
}

void write_text_end(struct output *output) { output_text(output, "</text>"); }

/* ---- Colours ---- */

enum { STEPS = 1024 };

/* ColorBrewer's YlOrBr (Cynthia Brewer, Mark Harrower: ColorBrewer.org), except the palest one. The
 * scale is designed for people with impaired colour vision. */
static const struct colour stops[] = {
    {0xff, 0xf7, 0xbc}, {0xfe, 0xe3, 0x91}, {0xfe, 0xc4, 0x4f}, {0xfe, 0x99, 0x29},
    {0xec, 0x70, 0x14}, {0xcc, 0x4c, 0x02}, {0x99, 0x34, 0x04}, {0x66, 0x25, 0x06},
};
enum { INTERVALS = sizeof stops / sizeof *stops - 1 };

static uint8_t mix(uint8_t from, uint8_t to, uint32_t part)
{
    return (uint8_t)((from * (STEPS - part) + to * part + STEPS / 2) / STEPS);
}

struct colour scale_colour(uint64_t value, uint64_t greatest)
{
    if (value == 0)
        return COLOUR_OF_NONE;
    double place = (double)value / (double)greatest * (double)INTERVALS;
    size_t interval = place < (double)INTERVALS ? (size_t)place : INTERVALS - 1;
    uint32_t part = (uint32_t)((place - (double)interval) * (double)STEPS);
    const struct colour *from = &stops[interval];
    const struct colour *to = &stops[interval + 1];
    return (struct colour){.red = mix(from->red, to->red, part),
                           .green = mix(from->green, to->green, part),
                           .blue = mix(from->blue, to->blue, part)};
}

bool colour_is_dark(struct colour colour)
{
    enum { MIDDLE = 130000 };
    return 299 * colour.red + 587 * colour.green + 114 * colour.blue < MIDDLE;
}
