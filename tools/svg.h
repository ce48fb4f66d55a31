/*
 * tools/svg.h - writing self-contained pictures (SVG 1.1), without scripts and without external
 * fonts or styles.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_SVG_H
#define TOOLS_SVG_H

#include "tools/heat.h"
#include "tools/output.h"

#include <stddef.h>

/* ---- Characters ---- */

/* Writes any text. Bytes and characters that XML does not allow become U+FFFD. */
void write_xml(struct output *output, const char *text);

/* Writes a text in at most `columns` columns of a monospaced font, ending in "…" if it is cut.
 * Characters that are not ASCII count as two columns. */
void write_xml_cut(struct output *output, const char *text, size_t columns);

/* ---- Shapes, in pixels; vertical positions and heights in tenths where the name says so ---- */

struct box {
    unsigned x;
    unsigned width;
    unsigned y_tenths;
    unsigned height_tenths;
};

/* Writes a number such as "12.3". */
void write_tenths(struct output *output, unsigned tenths);

void write_box(struct output *output, struct box box, struct colour fill, const char *attributes);

/* Opens a text whose middle line is at `y_tenths`. write_text_end closes it. `style` is one of the
 * classes that the picture defines. */
void write_text_begin(struct output *output, const char *style, unsigned x, unsigned y_tenths);
void write_text_end(struct output *output);

#endif
