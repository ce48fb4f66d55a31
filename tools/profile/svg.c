/*
 * cairn profile: a picture of the blocks of one function, in the order of their addresses. Each
 * block is a bar. The height shows its size, and the colour shows its samples.
 *
 * Heights grow with the square root of the size, from the minimum height that text needs to the
 * height of the largest block. If there are too many blocks, only the hottest have bars of their
 * own, and each run of other blocks is folded into one row.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/profile/profile.h"

#include "base/utf8.h"
#include "tools/cli/xml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Colours ---- */

struct colour {
    uint8_t red;
    uint8_t green;
    uint8_t blue;
};

/* The colour of blocks without samples: grey, lighter than all others. */
#define COLOUR_OF_NONE ((struct colour){0xf5, 0xf5, 0xf5})

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

/* Returns the colour of `value`, which is at most `greatest`, on a scale from pale yellow to dark
 * brown; COLOUR_OF_NONE for 0. Lightness decreases all the way, so that the scale is readable in
 * print and by people with impaired colour vision. `greatest` must not be 0. */
static struct colour scale_colour(uint64_t value, uint64_t greatest)
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

/* ---- Writing SVG 1.1, without scripts, external fonts and styles ---- */

static size_t columns_of(const char *text) { return (unsigned char)text[0] < 0x80 ? 1 : 2; }

/* Writes a text in at most `columns` columns of a monospaced font, ending in "…" if it is cut.
 * Characters that are not ASCII count as two columns. */
static void write_xml_cut(struct output *output, const char *text, size_t columns)
{
    size_t used = 0;
    for (const char *at = text; *at != '\0' && used <= columns;) {
        size_t length = utf8_sequence_length(at);
        used += columns_of(at);
        at += length == 0 ? 1 : length;
    }
    if (used <= columns) {
        xml_text(output, text);
        return;
    }
    size_t left = columns - 1;
    while (columns_of(text) <= left) {
        left -= columns_of(text);
        text += xml_character(output, text);
    }
    output_text(output, "\xe2\x80\xa6");
}

/* Positions and sizes in pixels, and in tenths of a pixel if the name ends in _tenths. */
struct box {
    unsigned x;
    unsigned width;
    unsigned y_tenths;
    unsigned height_tenths;
};

static void write_box(struct output *output, struct box box, struct colour fill,
                      const char *attributes)
{
    char colour[8];
    snprintf(colour, sizeof colour, "#%02x%02x%02x", fill.red, fill.green, fill.blue);
    output_format(output,
                  "<rect x=\"%u\" y=\"%u.%u\" width=\"%u\" height=\"%u.%u\" fill=\"%s\" %s/>",
                  box.x, box.y_tenths / 10, box.y_tenths % 10, box.width, box.height_tenths / 10,
                  box.height_tenths % 10, colour, attributes);
}

/* Opens a text whose middle line is at `y_tenths`. `style` is one of the classes of the picture.
 * Positions are computed here, because some programs do not support dominant-baseline. */
static void write_text_begin(struct output *output, const char *style, unsigned x,
                             unsigned y_tenths)
{
    enum { BELOW_MIDDLE_TENTHS = 40 };
    unsigned y = y_tenths + BELOW_MIDDLE_TENTHS;
    output_format(output, "<text class=\"%s\" x=\"%u\" y=\"%u.%u\">", style, x, y / 10, y % 10);
}

static void write_text_end(struct output *output) { output_text(output, "</text>"); }

/* Writes a text from a format (see output_format). */
__attribute__((format(printf, 5, 6))) static void write_label(struct output *output,
                                                              const char *style, unsigned x,
                                                              unsigned y_tenths, const char *format,
                                                              ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_text_begin(output, style, x, y_tenths);
    output_arguments(output, format, &arguments);
    write_text_end(output);
    va_end(arguments);
}

/* ---- The picture ---- */

/* Horizontal positions in pixels: address, distance from the start of the range, bar, samples
 * as a bar, share and number, words. Columns of numbers are wide enough for the largest possible
 * numbers in the widest fonts. */
enum {
    WIDTH = 1220,
    MARGIN = 24,
    DISTANCE_X = 216, /* right edge */
    BAR_X = 232,
    BAR_WIDTH = 260,
    HEAT_X = 508,
    HEAT_WIDTH = 140,
    SHARE_X = 720,   /* right edge */
    SAMPLES_X = 840, /* right edge */
    WORDS_X = 860,
    TITLE_COLUMNS = 96,
    FILE_COLUMNS = 60,
    LEGEND_X = 232,
    LEGEND_STEPS = 26,
    LEGEND_STEP_WIDTH = 10
};

/* Vertical positions and heights in tenths of a pixel. */
enum {
    TITLE_Y = 360,
    SUMMARY_Y = 620,
    LEGEND_Y = 820,
    NOTE_Y = 1100,
    HEADING_Y = 1360,
    ROWS_Y = 1520,
    ROW_LEAST = 200,
    ROW_GROWTH = 480,
    GAP = 100,
    RANGE_HEIGHT = 260
};

/* Functions with more than UNFOLDED_MAX blocks have folded blocks, and KEPT_MAX that are not
 * folded. */
enum { UNFOLDED_MAX = 320, KEPT_MAX = 160 };

struct picture {
    struct output *output;
    const struct profile *profile;
    struct cairn_block_function function;
    const char *name;       /* may be NULL */
    const uint64_t *counts; /* samples of each block */
    uint64_t samples;       /* sum of all samples */
    uint64_t greatest;      /* largest number of samples of a block */
    uint32_t largest_size;
    uint64_t size; /* size of all blocks */
    bool folds;
    bool *is_folded; /* whether each block is folded */
};

/* A row: a block, or several folded blocks of one range. */
struct row {
    struct cairn_block first;
    struct cairn_block last;
    uint32_t block_count;
    uint64_t size;
    uint64_t samples;
    bool leads_on; /* whether the last block can fall through to the next row */
    unsigned y_tenths;
    unsigned height_tenths;
};

/* ---- Picture ---- */

static struct cairn_block block_at(const struct picture *picture, uint32_t index)
{
    struct cairn_block block = {0};
    cairn_block_table_block(picture->profile->table, picture->function.index, index, &block);
    return block;
}

static int compare_downwards(const void *left, const void *right)
{
    return compare_first_numbers(right, left);
}

/* Decides which blocks are folded: all but the KEPT_MAX hottest ones. False without memory. */
static bool fold(struct picture *picture)
{
    uint32_t count = picture->function.block_count;
    picture->is_folded = calloc((size_t)count + 1, sizeof *picture->is_folded);
    picture->folds = count > UNFOLDED_MAX;
    if (picture->is_folded == NULL || !picture->folds)
        return picture->is_folded != NULL;
    uint64_t *sorted = malloc(count * sizeof *sorted);
    if (sorted == NULL)
        return false;
    memcpy(sorted, picture->counts, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_downwards);
    uint64_t least = sorted[KEPT_MAX - 1];
    uint32_t left = KEPT_MAX; /* number of blocks with `least` samples that are kept */
    while (left > 0 && sorted[KEPT_MAX - left] > least)
        left--;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t samples = picture->counts[i];
        bool is_kept = samples > least || (samples == least && samples > 0 && left > 0);
        left -= is_kept && samples == least;
        picture->is_folded[i] = !is_kept;
    }
    free(sorted);
    return true;
}

/* ---- Rows ---- */

static uint64_t square_root(uint64_t value)
{
    uint64_t root = 0;
    for (uint64_t bit = UINT64_C(1) << 31; bit > 0; bit >>= 1)
        if ((root + bit) * (root + bit) <= value)
            root += bit;
    return root;
}

/* Returns the row that begins with block `index`. It depends on the following blocks, too. */
static struct row row_from(const struct picture *picture, uint32_t index)
{
    struct row row = {.first = block_at(picture, index)};
    uint32_t end = picture->function.block_count;
    bool is_in_range;
    do {
        row.last = block_at(picture, index);
        row.size += row.last.size;
        row.samples += picture->counts[index];
        row.block_count++;
        index++;
        is_in_range = index < end && block_at(picture, index).range == row.first.range;
    } while (is_in_range && picture->is_folded[index] && picture->is_folded[index - 1]);
    /* Sizes are scaled before the square root for precision. */
    uint64_t largest = square_root((uint64_t)picture->largest_size << 24);
    row.height_tenths = ROW_LEAST;
    if (row.block_count == 1 && largest > 0)
        row.height_tenths +=
            (unsigned)(ROW_GROWTH * square_root((uint64_t)row.first.size << 24) / largest);
    row.leads_on = is_in_range && (row.last.flags & CAIRN_BBMAP_CAN_FALL_THROUGH) != 0;
    return row;
}

/* A callback for a row. `is_first_of_range` is set only if the function has several ranges. */
typedef void visit_row(struct picture *picture, const struct row *row, bool is_first_of_range);

/* Lays out the rows one below another. Returns the position of the end. */
static unsigned visit_rows(struct picture *picture, visit_row *visit)
{
    unsigned y = ROWS_Y;
    uint32_t range = UINT32_MAX;
    for (uint32_t i = 0; i < picture->function.block_count;) {
        struct row row = row_from(picture, i);
        bool is_first = picture->function.range_count > 1 && row.first.range != range;
        range = row.first.range;
        y += is_first ? RANGE_HEIGHT : 0;
        row.y_tenths = y;
        if (visit != NULL)
            visit(picture, &row, is_first);
        y += row.height_tenths + GAP;
        i += row.block_count;
    }
    return y;
}

/* ---- Drawing a row ---- */

static void write_title(const struct picture *picture, const struct row *row)
{
    if (row->block_count > 1)
        output_format(picture->output, "%u colder blocks", row->block_count);
    else
        output_format(picture->output, "block %u", row->first.id);
}

/* Writes the text that is shown while the pointer is over the row. */
static void write_tooltip(const struct picture *picture, const struct row *row)
{
    struct output *output = picture->output;
    output_text(output, "<title>");
    write_title(picture, row);
    output_format(output, " at 0x%jx-0x%jx, %ju byte%s: %ju sample%s, %.2f %% of all",
                  row->first.address, row->last.address + row->last.size, row->size,
                  plural(row->size), row->samples, plural(row->samples),
                  profile_percent(picture->profile, row->samples));
    if (row->block_count == 1) {
        write_block_flags(output, "; ", profile_block_flags(&row->first));
        if ((picture->function.features & CAIRN_BBMAP_FREQUENCIES) != 0)
            output_format(output, "; frequency %ju", row->first.frequency);
    }
    output_text(output, "</title>");
}

static void draw_bar(const struct picture *picture, const struct row *row, unsigned middle)
{
    enum { MIDDLE = 130000 };
    struct output *output = picture->output;
    bool is_folded = row->block_count > 1;
    struct colour fill = is_folded ? COLOUR_OF_NONE : scale_colour(row->samples, picture->greatest);
    struct box box = {.x = BAR_X,
                      .width = BAR_WIDTH,
                      .y_tenths = row->y_tenths,
                      .height_tenths = row->height_tenths};
    write_box(output, box, fill,
              is_folded ? "class=\"folded\" rx=\"3\"" : "class=\"bar\" rx=\"3\"");
    /* White text is easier to read on a dark colour. */
    bool is_dark = 299 * fill.red + 587 * fill.green + 114 * fill.blue < MIDDLE;
    write_text_begin(output, is_dark ? "middle light" : "middle", BAR_X + BAR_WIDTH / 2, middle);
    write_title(picture, row);
    output_format(output, ", %ju byte%s", row->size, plural(row->size));
    write_text_end(output);
}

/* Draws the bar of samples, whose length is the row's share of the hottest block's samples. */
static void draw_heat(const struct picture *picture, const struct row *row, unsigned middle)
{
    enum { THICKNESS = 80 };
    struct output *output = picture->output;
    if (row->samples == 0)
        return;
    double part = (double)row->samples / (double)picture->greatest;
    unsigned width = part < 1 ? (unsigned)(part * (double)HEAT_WIDTH) : HEAT_WIDTH;
    struct box box = {.x = HEAT_X,
                      .width = width == 0 ? 1 : width,
                      .y_tenths = middle - THICKNESS / 2,
                      .height_tenths = THICKNESS};
    struct colour fill = scale_colour(
        row->samples < picture->greatest ? row->samples : picture->greatest, picture->greatest);
    write_box(output, box, fill, "class=\"heat\"");
    write_label(output, "code right", SHARE_X, middle, "%.2f %%",
                profile_percent(picture->profile, row->samples));
    write_label(output, "code right", SAMPLES_X, middle, "%ju", row->samples);
}

static void draw_row(struct picture *picture, const struct row *row, bool is_first_of_range)
{
    enum { ARROW_HALF = 5 };
    struct output *output = picture->output;
    unsigned middle = row->y_tenths + row->height_tenths / 2;
    unsigned end = row->y_tenths + row->height_tenths + 20;
    if (is_first_of_range) {
        write_label(output, "range", MARGIN, row->y_tenths - RANGE_HEIGHT / 2, "range %u at 0x%jx",
                    row->first.range, row->first.range_address);
        output_character(output, '\n');
    }
    output_format(output, "<g class=\"%s\">", row->block_count > 1 ? "run" : "block");
    write_tooltip(picture, row);
    write_label(output, "code", MARGIN, middle, "0x%jx", row->first.address);
    write_label(output, "code right faint", DISTANCE_X, middle, "+0x%jx",
                row->first.address - row->first.range_address);
    draw_bar(picture, row, middle);
    draw_heat(picture, row, middle);
    /* An arrow to the next bar shows that the block can fall through. */
    uint8_t flags = row->block_count > 1 ? 0 : profile_block_flags(&row->first);
    if (row->leads_on)
        flags &= (uint8_t)~CAIRN_BBMAP_CAN_FALL_THROUGH;
    if (flags != 0) {
        write_text_begin(output, "plain", WORDS_X, middle);
        write_block_flags(output, "", flags);
        write_text_end(output);
    }
    if (row->leads_on)
        output_format(output,
                      "<path class=\"arrow\" d=\"M%u %u.%u"
                      "h%u l-%u 6 z\"/>",
                      BAR_X + BAR_WIDTH / 2 - ARROW_HALF, end / 10, end % 10, 2 * ARROW_HALF,
                      ARROW_HALF);
    output_text(output, "</g>\n");
}

/* ---- Header and legend ---- */

static void write_name(const struct picture *picture, size_t columns)
{
    if (picture->name == NULL)
        output_format(picture->output, "function at 0x%jx", picture->function.address);
    else if (columns == 0)
        xml_text(picture->output, picture->name);
    else
        write_xml_cut(picture->output, picture->name, columns);
}

static void write_beginning(const struct picture *picture, unsigned height_tenths)
{
    static const char style[] =
        "<style>"
        "text{font-family:sans-serif;font-size:11px;fill:#222}"
        ".code{font-family:monospace}"
        ".title{font-family:monospace;font-size:18px;font-weight:bold}"
        ".right{text-anchor:end}.middle{text-anchor:middle}"
        ".light{fill:#fff}.faint,.heading{fill:#666}.range{font-weight:bold}"
        ".bar{stroke:#8a8a8a}.folded{stroke:#8a8a8a;stroke-dasharray:4 3}"
        ".heat{stroke:#8a8a8a;stroke-width:.5}.arrow{fill:#444}"
        "</style>\n";
    struct output *output = picture->output;
    output_format(output,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%u\" "
                  "height=\"%u\" viewBox=\"0 0 %u %u\">\n<title>",
                  WIDTH, height_tenths / 10, WIDTH, height_tenths / 10);
    write_name(picture, 0);
    output_text(output, "</title>\n");
    output_text(output, style);
    output_text(output, "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
}

static void write_summary(const struct picture *picture)
{
    struct output *output = picture->output;
    const struct profile *profile = picture->profile;
    uint32_t block_count = picture->function.block_count;
    write_text_begin(output, "title", MARGIN, TITLE_Y);
    write_name(picture, TITLE_COLUMNS);
    write_text_end(output);
    write_text_begin(output, "plain", MARGIN, SUMMARY_Y);
    output_format(output, "at 0x%jx in ", picture->function.address);
    write_xml_cut(output, profile->input->name, FILE_COLUMNS);
    output_format(output, ": %u block%s, %ju byte%s; %ju sample%s, %.2f %% of all %ju", block_count,
                  plural(block_count), picture->size, plural(picture->size), picture->samples,
                  plural(picture->samples), profile_percent(profile, picture->samples),
                  profile->sample_count);
    write_text_end(output);
    output_character(output, '\n');
}

static void write_legend(const struct picture *picture)
{
    struct output *output = picture->output;
    unsigned end = LEGEND_X + LEGEND_STEPS * LEGEND_STEP_WIDTH;
    unsigned middle = LEGEND_Y + 60;
    write_label(output, "heading", MARGIN, middle, "samples of a block, of all");
    for (unsigned i = 0; i < LEGEND_STEPS; i++) {
        struct box box = {.x = LEGEND_X + i * LEGEND_STEP_WIDTH,
                          .width = LEGEND_STEP_WIDTH,
                          .y_tenths = LEGEND_Y,
                          .height_tenths = 120};
        write_box(output, box, scale_colour(i, LEGEND_STEPS - 1), "");
    }
    write_label(output, "heading right", LEGEND_X - 6, middle, "none");
    write_label(output, "heading", end + 6, middle, "%.2f %%",
                profile_percent(picture->profile, picture->greatest));
    output_character(output, '\n');
    write_text_begin(output, "heading", MARGIN, NOTE_Y);
    output_text(output,
                "Blocks in the order of their addresses. The height of a bar grows with the "
                "square root of the size. An arrow: can fall through to the next block.");
    if (picture->folds)
        output_format(output, " The hottest %u are shown; runs of colder ones are folded.",
                      KEPT_MAX);
    write_text_end(output);
    output_character(output, '\n');
}

static void write_headings(struct output *output)
{
    static const struct {
        const char *style;
        unsigned x;
        const char *text;
    } headings[] = {
        {"heading", MARGIN, "address"},
        {"heading right", DISTANCE_X, "offset"},
        {"heading middle", BAR_X + BAR_WIDTH / 2, "block"},
        {"heading", HEAT_X, "relative to hottest"},
        {"heading right", SHARE_X, "of all"},
        {"heading right", SAMPLES_X, "samples"},
        {"heading", WORDS_X, "how it is entered and ends"},
    };
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
        write_label(output, headings[i].style, headings[i].x, HEADING_Y, "%s", headings[i].text);
    output_character(output, '\n');
}

bool write_profile_svg(struct output *output, const struct profile *profile, uint32_t function)
{
    struct picture picture = {.output = output,
                              .profile = profile,
                              .counts = profile->counts + profile->first_blocks[function]};
    cairn_block_table_function(profile->table, function, &picture.function);
    picture.name = profile_function_name(profile, picture.function.address);
    for (uint32_t i = 0; i < picture.function.block_count; i++) {
        struct cairn_block block = block_at(&picture, i);
        picture.samples += picture.counts[i];
        picture.size += block.size;
        if (picture.counts[i] > picture.greatest)
            picture.greatest = picture.counts[i];
        if (block.size > picture.largest_size)
            picture.largest_size = block.size;
    }
    bool is_good = fold(&picture) || complain("profile: no memory for the picture");
    if (is_good) {
        write_beginning(&picture, visit_rows(&picture, NULL) + GAP);
        write_summary(&picture);
        write_legend(&picture);
        write_headings(output);
        visit_rows(&picture, draw_row);
        output_text(output, "</svg>\n");
    }
    free(picture.is_folded);
    return is_good;
}
