/*
 * tools/svg.h - writing self-contained pictures (SVG 1.1), without scripts and without external
 * fonts or styles.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_SVG_H
#define TOOLS_SVG_H

#include "tools/output.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Characters ---- */

/* Writes any text. Bytes and characters that XML does not allow become U+FFFD. */
void write_xml(struct output *output, const char *text);

/* Writes a text in at most `columns` columns of a monospaced font, ending in "…" if it is cut.
 * Characters that are not ASCII count as two columns. */
void write_xml_cut(struct output *output, const char *text, size_t columns);

/* ---- Colours ---- */

struct colour {
    uint8_t red;
    uint8_t green;
    uint8_t blue;
};

/* The colour of blocks without samples: grey, lighter than all others. */
#define COLOUR_OF_NONE ((struct colour){0xf5, 0xf5, 0xf5})

/* Returns the colour of `value`, which is at most `greatest`, on a scale from pale yellow to dark
 * brown; COLOUR_OF_NONE for 0. Lightness decreases all the way, so that the scale is readable in
 * print and by people with impaired colour vision. `greatest` must not be 0. */
struct colour scale_colour(uint64_t value, uint64_t greatest);

/* Whether white text is easier to read on this colour than black text. */
bool colour_is_dark(struct colour colour);

/* ---- Shapes, in pixels; vertical positions and heights in tenths where the name says so ---- */

struct box {
    unsigned x;
    unsigned width;
    unsigned y_tenths;
    unsigned height_tenths;
};

void write_box(struct output *output, struct box box, struct colour fill, const char *attributes);

/* Opens a text whose middle line is at `y_tenths`. write_text_end closes it. `style` is one of the
 * classes that the picture defines. */
void write_text_begin(struct output *output, const char *style, unsigned x, unsigned y_tenths);
void write_text_end(struct output *output);

/* Writes such a text from a format (see output_format). */
void write_label(struct output *output, const char *style, unsigned x, unsigned y_tenths,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
