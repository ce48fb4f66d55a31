/*
 * tools/svg.h - writing pictures (SVG 1.1) that need nothing else: no scripts, no fonts, no styles
 * from elsewhere.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_SVG_H
#define TOOLS_SVG_H

#include "tools/heat.h"
#include "tools/output.h"

#include <stddef.h>

/* ---- Characters ---- */

/* A text that may be anything; what XML has no characters for becomes U+FFFD. */
void write_xml(struct output *output, const char *text);

/* The same in at most `columns` columns of a font whose characters are all as wide, ending in "…"
 * where it is cut; what is not ASCII may be twice as wide. */
void write_xml_cut(struct output *output, const char *text, size_t columns);

/* ---- Shapes, in pixels; heights may have a tenth ---- */

struct box {
    unsigned x;
    unsigned width;
    unsigned y_tenths;
    unsigned height_tenths;
};

/* "12.3" */
void write_tenths(struct output *output, unsigned tenths);

void write_box(struct output *output, struct box box, struct colour fill, const char *attributes);

/* Opens a text with its middle line at `y_tenths`; it ends with write_text_end. `style` is one of
 * the classes that the picture defines. */
void write_text_begin(struct output *output, const char *style, unsigned x, unsigned y_tenths);
void write_text_end(struct output *output);

#endif
