/*
 * The timeline of a report, as SVG inside the page. Its size does not depend on the log: time is
 * divided into as many parts as the picture has pixels, and only the longest compilations are
 * drawn.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/cli/xml.h"
#include "tools/report/report.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

/* Positions in pixels. Time runs from LEFT over PARTS pixels. */
enum {
    LEFT = 110,
    PARTS = 960,
    WIDTH = LEFT + PARTS + 30,
    TOP = 14,
    CODE_HEIGHT = 80,
    BAR_HEIGHT = 9,
    BAR_LANES = 8,
    MARK_HEIGHT = 26,
    GAP = 16,
    BARS_MAX = 2000
};

/* What happens in a part of the time. */
struct part {
    uint64_t loaded_bytes;
    uint64_t retired_bytes;
    uint64_t compiled_versions;
    uint64_t other_versions;
    uint64_t deopts;
    uint64_t cache_changes;
    uint64_t invalidations;
    uint32_t version_name; /* text: of the last entry */
};

struct timeline {
    struct output *output;
    const struct report *report;
    struct part parts[PARTS];
    unsigned y; /* of the next lane */
};

/* Returns the time at the right end. A log that is closed long after its last event would leave
 * most of the picture empty. */
static double right_end(const struct report *report)
{
    return report->last_event == 0 ? 1 : (double)report->last_event;
}

static double position(const struct report *report, uint64_t time)
{
    double end = right_end(report);
    double part = (double)time / end * (PARTS - 1);
    return part < PARTS - 1 ? part : PARTS - 1;
}

static struct part *part_at(struct timeline *timeline, uint64_t time)
{
    return &timeline->parts[(unsigned)position(timeline->report, time)];
}

/* ---- Counting ---- */

static void count_modules(struct timeline *timeline)
{
    const struct report_module *modules = timeline->report->modules.list.items;
    for (size_t i = 0; i < timeline->report->modules.list.count; i++) {
        if (!modules[i].is_loaded)
            continue;
        part_at(timeline, modules[i].loaded)->loaded_bytes += modules[i].code_bytes;
        if (modules[i].is_retired)
            part_at(timeline, modules[i].retired)->retired_bytes += modules[i].code_bytes;
    }
}

static void count_versions(struct timeline *timeline)
{
    const struct report_version *versions = timeline->report->versions.items;
    for (size_t i = 0; i < timeline->report->versions.count; i++) {
        struct part *part = part_at(timeline, versions[i].time);
        part->compiled_versions += versions[i].is_compiled;
        part->other_versions += !versions[i].is_compiled;
        part->version_name = versions[i].name;
    }
}

/* The report does not hold the time of each deopt, so the log is read again. */
static void count_events(struct timeline *timeline)
{
    const struct report *report = timeline->report;
    struct log_item item;
    for (size_t next = 0; log_next(&report->slots, &next, &item);) {
        uint32_t kind = item.event.kind;
        if (kind != CAIRN_LOG_DEOPT && kind != CAIRN_LOG_CACHE && kind != CAIRN_LOG_INVALIDATION)
            continue;
        struct part *part = part_at(timeline, report_time(report, item.event.clock));
        part->deopts += kind == CAIRN_LOG_DEOPT;
        part->cache_changes += kind == CAIRN_LOG_CACHE;
        part->invalidations += kind == CAIRN_LOG_INVALIDATION;
    }
}

/* ---- Drawing ---- */

static void draw_label(struct timeline *timeline, const char *label, unsigned height)
{
    output_format(timeline->output, "<text x=\"%i\" y=\"%u\" text-anchor=\"end\">%s</text>\n",
                  LEFT - 10, timeline->y + height / 2 + 4, label);
    output_format(timeline->output,
                  "<line class=\"line\" x1=\"%i\" y1=\"%u\" x2=\"%i\" y2=\"%u\"/>\n", LEFT,
                  timeline->y + height, LEFT + PARTS, timeline->y + height);
}

/* Formats the time at which a part begins. */
static void format_part(const struct timeline *timeline, unsigned part, char text[CELL_BYTES])
{
    format_duration((uint64_t)(right_end(timeline->report) / (double)PARTS * part), text,
                    CELL_BYTES);
}

/* Draws the size of the code of all loaded modules. */
static void draw_code(struct timeline *timeline)
{
    uint64_t sizes[PARTS];
    uint64_t greatest = 0;
    uint64_t size = 0;
    for (unsigned i = 0; i < PARTS; i++) {
        size += timeline->parts[i].loaded_bytes;
        sizes[i] = size;
        size -= timeline->parts[i].retired_bytes < size ? timeline->parts[i].retired_bytes : size;
        greatest = sizes[i] > greatest ? sizes[i] : greatest;
    }
    draw_label(timeline, "code size", CODE_HEIGHT);
    output_format(timeline->output,
                  "<text class=\"faint\" x=\"%i\" y=\"%u\">at most %ju bytes</text>\n", LEFT + 4,
                  timeline->y + 2, greatest);
    unsigned bottom = timeline->y + CODE_HEIGHT;
    output_format(timeline->output, "<path class=\"code\" d=\"M%i %u", LEFT, bottom);
    for (unsigned i = 0; i < PARTS && greatest > 0; i++) {
        double height = (double)sizes[i] / (double)greatest * (double)(CODE_HEIGHT - 8);
        if (i == 0 || sizes[i] != sizes[i - 1])
            output_format(timeline->output, "H%uV%.1f", LEFT + i, bottom - height);
    }
    output_format(timeline->output,
                  "H%iV%uZ\"><title>Code of loaded modules: at most %ju bytes</title></path>\n",
                  LEFT + PARTS, bottom, greatest);
    timeline->y = bottom + GAP;
}

/* A compilation, from a COMPILATION event or from the module that says how long it took. */
struct bar {
    uint64_t start; /* first, for sorting */
    uint64_t end;
    uint32_t name;
    uint32_t tier;
};

static int compare_lengths(const void *left, const void *right)
{
    const struct bar *a = left;
    const struct bar *b = right;
    return compare_numbers(b->end - b->start, a->end - a->start);
}

/* Returns the compilations, to be freed; NULL without memory. */
static struct bar *collect_bars(const struct report *report, size_t *count)
{
    const struct report_compilation *compilations = report->compilations.items;
    const struct report_module *modules = report->modules.list.items;
    struct bar *bars =
        calloc(report->compilations.count + report->modules.list.count + 1, sizeof *bars);
    *count = 0;
    if (bars == NULL)
        return NULL;
    for (size_t i = 0; i < report->compilations.count; i++)
        bars[(*count)++] = (struct bar){compilations[i].start, compilations[i].end,
                                        compilations[i].name, compilations[i].tier};
    if (report->compilations.count > 0)
        return bars;
    for (size_t i = 0; i < report->modules.list.count; i++) {
        if (modules[i].compilation_ns == 0)
            continue;
        uint64_t length = modules[i].compilation_ns < modules[i].loaded ? modules[i].compilation_ns
                                                                        : modules[i].loaded;
        bars[(*count)++] =
            (struct bar){modules[i].loaded - length, modules[i].loaded, modules[i].name, 0};
    }
    return bars;
}

/* Writes the title of a compilation, which browsers show as a tooltip. */
static void write_bar_title(struct timeline *timeline, const struct bar *bar)
{
    struct output *output = timeline->output;
    char text[CELL_BYTES];
    const char *name = report_text(timeline->report, bar->name);
    const char *tier = report_text(timeline->report, bar->tier);
    output_text(output, "<title>");
    xml_text(output, name == NULL ? "(no name)" : name);
    output_text(output, tier == NULL ? "" : ", ");
    xml_text(output, tier == NULL ? "" : tier);
    format_duration(bar->end - bar->start, text, sizeof text);
    output_text(output, ": ");
    output_text(output, text);
    format_duration(bar->start, text, sizeof text);
    output_text(output, " from ");
    output_text(output, text);
    output_text(output, " on</title>");
}

/* Returns the first lane that is free at the start, or else the one that is free first, and takes
 * it. */
static unsigned take_lane(uint64_t free_from[BAR_LANES], const struct bar *bar)
{
    unsigned lane = 0;
    for (unsigned i = 0; i < BAR_LANES; i++) {
        if (free_from[i] <= bar->start) {
            lane = i;
            break;
        }
        if (free_from[i] < free_from[lane])
            lane = i;
    }
    free_from[lane] = bar->end;
    return lane;
}

static bool draw_compilations(struct timeline *timeline)
{
    size_t count;
    uint64_t free_from[BAR_LANES] = {0};
    struct bar *bars = collect_bars(timeline->report, &count);
    if (bars == NULL)
        return false;
    size_t shown = count < BARS_MAX ? count : BARS_MAX;
    if (shown < count)
        qsort(bars, count, sizeof *bars, compare_lengths);
    qsort(bars, shown, sizeof *bars, compare_first_numbers);
    unsigned height = BAR_LANES * BAR_HEIGHT;
    draw_label(timeline, "compilations", height);
    if (shown < count)
        output_format(timeline->output,
                      "<text class=\"faint\" x=\"%i\" y=\"%u\">the %zu longest of %zu</text>\n",
                      LEFT + 4, timeline->y + 2, shown, count);
    for (size_t i = 0; i < shown; i++) {
        double start = position(timeline->report, bars[i].start);
        double width = position(timeline->report, bars[i].end) - start;
        unsigned lane = take_lane(free_from, &bars[i]);
        output_format(timeline->output,
                      "<rect class=\"compile\" x=\"%.1f\" y=\"%u\" width=\"%.1f\" height=\"%i\">",
                      (double)LEFT + start, timeline->y + lane * BAR_HEIGHT,
                      width < 1.5 ? 1.5 : width, BAR_HEIGHT - 1);
        write_bar_title(timeline, &bars[i]);
        output_text(timeline->output, "</rect>\n");
    }
    free(bars);
    timeline->y += height + GAP;
    return true;
}

/* A lane of marks, whose heights are logarithms of counts. */
struct lane {
    const char *label;
    const char *style;
    const char *singular;
    const char *plural;
    size_t offset; /* of the count in a part */
};

static uint64_t count_in(const struct part *part, const struct lane *lane)
{
    return *(const uint64_t *)(const void *)((const char *)part + lane->offset);
}

static void draw_marks(struct timeline *timeline, const struct lane *lane)
{
    uint64_t greatest = 1;
    char time[CELL_BYTES];
    draw_label(timeline, lane->label, MARK_HEIGHT);
    for (unsigned i = 0; i < PARTS; i++)
        if (count_in(&timeline->parts[i], lane) > greatest)
            greatest = count_in(&timeline->parts[i], lane);
    for (unsigned i = 0; i < PARTS; i++) {
        const struct part *part = &timeline->parts[i];
        uint64_t count = count_in(part, lane);
        if (count == 0)
            continue;
        double height = (double)MARK_HEIGHT * log2(1 + (double)count) / log2(1 + (double)greatest);
        format_part(timeline, i, time);
        output_format(timeline->output,
                      "<rect class=\"%s\" x=\"%u\" y=\"%.1f\" width=\"2\" height=\"%.1f\"><title>",
                      lane->style, LEFT + i, timeline->y + MARK_HEIGHT - height, height);
        const char *name = report_text(timeline->report, part->version_name);
        if (lane->offset == offsetof(struct part, compiled_versions) && count == 1 &&
            name != NULL) {
            xml_text(timeline->output, name);
            output_text(timeline->output, ": ");
        }
        output_format(timeline->output, "%ju %s at %s</title></rect>\n", count,
                      count == 1 ? lane->singular : lane->plural, time);
    }
    timeline->y += MARK_HEIGHT + GAP;
}

static const struct lane lanes[] = {
    {"versions", "version", "compiled version", "compiled versions",
     offsetof(struct part, compiled_versions)},
    {"interpreted", "plain", "version of the interpreter", "versions of the interpreter",
     offsetof(struct part, other_versions)},
    {"deopts", "deopt", "deopt", "deopts", offsetof(struct part, deopts)},
    {"cache changes", "cache", "change of a cache", "changes of caches",
     offsetof(struct part, cache_changes)},
    {"invalidations", "hit", "invalidation", "invalidations", offsetof(struct part, invalidations)},
};
enum { LANE_COUNT = sizeof lanes / sizeof *lanes };

/* Draws the times: about eight, at multiples of 1, 2 or 5 with zeros. */
static void draw_axis(struct timeline *timeline)
{
    enum { STEPS_WANTED = 8 };
    double end = right_end(timeline->report);
    double power = pow(10, floor(log10(end / (double)STEPS_WANTED)));
    double factor = end / (double)STEPS_WANTED / power;
    double step = power * (factor < 1.5 ? 1 : factor < 3.5 ? 2 : factor < 7.5 ? 5 : 10);
    if (step < 1)
        step = 1;
    char text[CELL_BYTES];
    for (unsigned i = 0; i * step <= end && i < 4 * STEPS_WANTED; i++) {
        unsigned x = LEFT + (unsigned)(i * step / end * (PARTS - 1));
        format_duration((uint64_t)(i * step), text, sizeof text);
        output_format(
            timeline->output,
            "<line class=\"line tick\" x1=\"%u\" y1=\"%i\" x2=\"%u\" y2=\"%u\"/>"
            "<text class=\"faint tick\" x=\"%u\" y=\"%u\" text-anchor=\"middle\">%s</text>\n",
            x, TOP, x, timeline->y - GAP / 2, x, timeline->y + 6, text);
    }
    timeline->y += GAP;
}

bool write_report_timeline(struct output *output, const struct report *report)
{
    struct timeline *timeline = calloc(1, sizeof *timeline);
    if (timeline == NULL)
        return false;
    timeline->output = output;
    timeline->report = report;
    timeline->y = TOP;
    count_modules(timeline);
    count_versions(timeline);
    count_events(timeline);
    unsigned height = TOP + CODE_HEIGHT + BAR_LANES * BAR_HEIGHT + LANE_COUNT * MARK_HEIGHT +
                      (LANE_COUNT + 3) * GAP;
    output_text(output, "<section id=\"timeline\" aria-labelledby=\"timeline-title\">\n"
                        "<h2 id=\"timeline-title\">Timeline</h2>\n");
    output_format(
        timeline->output,
        "<svg viewBox=\"0 0 %i %u\" data-left=\"%i\" data-parts=\"%i\" data-end=\"%ju\" "
        "role=\"img\" aria-label=\"Timeline of code size, "
        "compilations, versions, deopts, cache changes and invalidations; the tables below have "
        "the figures\">\n",
        WIDTH, height, LEFT, PARTS, (uint64_t)right_end(report));
    draw_code(timeline);
    bool is_drawn = draw_compilations(timeline);
    for (unsigned i = 0; i < LANE_COUNT; i++)
        draw_marks(timeline, &lanes[i]);
    draw_axis(timeline);
    output_text(output, "</svg>\n</section>\n");
    free(timeline);
    return is_drawn;
}
