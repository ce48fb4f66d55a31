/*
 * cairn report, as a page: HTML that refers to nothing outside itself. All text of the log is
 * escaped (tools/cli/xml.h), and is in elements and quoted attributes only, never in the script.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/cli/xml.h"
#include "tools/report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The beginning ---- */

static void write_beginning(struct output *output, const struct report *report)
{
    output_text(output,
                "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                "style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; "
                "form-action 'none'\">\n<title>Event log ");
    xml_text(output, report->path);
    output_text(output, "</title>\n<style>\n");
    write_report_style(output);
    output_text(output, "</style>\n</head>\n<body>\n<header>\n<h1>Event log of process ");
    output_unsigned(output, report->header.process);
    output_text(output, "</h1>\n<p class=\"faint\">");
    xml_text(output, report->path);
    output_text(output, "</p>\n</header>\n");
}

/* Writes the links to the sections that there are. */
static void write_links(struct output *output, const struct report *report)
{
    output_text(output, "<nav aria-label=\"Sections\"><ul>"
                        "<li><a href=\"#summary\">Summary</a></li>"
                        "<li><a href=\"#timeline\">Timeline</a></li>");
    for (unsigned i = 0; i < REPORT_TABLE_COUNT; i++)
        if (table_row_count(report, &report_tables[i]) > 0)
            output_format(output, "<li><a href=\"#%s\">%s</a></li>", report_tables[i].name,
                          report_tables[i].title);
    output_text(output, "</ul></nav>\n");
}

static void write_missing(struct output *output, const struct report *report)
{
    if (report->note_count == 0)
        return;
    output_text(output, "<section id=\"missing\" aria-labelledby=\"missing-title\">\n"
                        "<h2 id=\"missing-title\">What is missing</h2>\n<ul>\n");
    for (unsigned i = 0; i < report->note_count; i++) {
        output_text(output, "<li>");
        xml_text(output, report->notes[i]);
        output_text(output, "</li>\n");
    }
    output_text(output, "</ul>\n</section>\n");
}

static void write_fact(struct output *output, const char *name, const char *value)
{
    output_text(output, strcmp(value, "0") == 0 ? "<div class=\"zero\"><dt>" : "<div><dt>");
    output_text(output, name);
    output_text(output, "</dt><dd>");
    xml_text(output, value);
    output_text(output, "</dd></div>\n");
}

static void write_number(struct output *output, const char *name, uint64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    write_fact(output, name, text);
}

static void write_summary(struct output *output, const struct report *report)
{
    char text[CELL_BYTES];
    struct report_total totals[REPORT_TOTAL_COUNT];
    const struct cairn_log_header *header = &report->header;
    output_text(output, "<section id=\"summary\" aria-labelledby=\"summary-title\">\n"
                        "<h2 id=\"summary-title\">Summary</h2>\n<dl>\n");
    format_date(header->start_time_ns, text, sizeof text);
    write_fact(output, "begun", text);
    format_duration(report->end, text, sizeof text);
    write_fact(output, header->end_clock == 0 ? "until the last event" : "until the log was closed",
               text);
    write_fact(output, "architecture", report->architecture);
    write_fact(output, "written by cairn", report->cairn_version);
    write_number(output, "events", report->event_count);
    write_number(output, "threads", report->threads.list.count);
    report_totals(report, totals);
    for (unsigned i = 0; i < REPORT_TOTAL_COUNT; i++)
        write_number(output, totals[i].name, totals[i].count);
    output_text(output, "</dl>\n");
    if (header->end_clock == 0)
        output_text(output, "<p class=\"faint\">The log was not closed: the process ended without "
                            "destroying it, or was still running.</p>\n");
    output_text(output, "</section>\n");
}

/* ---- Tables ---- */

enum { PAGE_ITEMS_MAX = 1000 };

/* Writes the items of a cell, each with its time as a tooltip. */
static void write_list(struct output *output, const struct report *report, const struct cell *cell)
{
    struct cell_item item;
    char time[CELL_BYTES];
    uint64_t at = cell->number;
    for (unsigned i = 0; cell_next(report, cell, &at, &item); i++) {
        output_text(output, i == 0 ? "" : cell_separator(cell));
        if (i == PAGE_ITEMS_MAX) {
            output_text(output, "\xe2\x80\xa6");
            return;
        }
        cell_format(&(struct cell){.kind = CELL_TIME, .number = item.time}, time);
        output_text(output, "<span title=\"at ");
        output_text(output, time);
        output_text(output, "\">");
        if (item.name != NULL)
            xml_text(output, item.name);
        xml_text(output, item.text);
        output_text(output, "</span>");
    }
}

static bool is_number(const struct cell *cell)
{
    return cell->kind == CELL_COUNT || cell->kind == CELL_TIME || cell->kind == CELL_DURATION ||
           cell->kind == CELL_ADDRESS;
}

static void write_cell(struct output *output, const struct report *report, const struct cell *cell,
                       bool is_head)
{
    char text[CELL_BYTES];
    output_text(output, is_head ? "<th scope=\"row\"" : "<td");
    if (is_number(cell)) {
        output_text(output, " class=\"number\" data-value=\"");
        output_unsigned(output, cell->number);
        output_character(output, '"');
    }
    output_character(output, '>');
    if (cell_is_list(cell)) {
        write_list(output, report, cell);
    } else if (cell->kind == CELL_TEXT && cell->text != NULL) {
        xml_text(output, cell->text);
    } else {
        cell_format(cell, text);
        xml_text(output, text);
    }
    output_text(output, is_head ? "</th>" : "</td>");
}

static void write_heads(struct output *output, const struct report *report,
                        const struct report_table *table)
{
    struct cell cells[COLUMNS_MAX];
    table_row(report, table, 0, cells);
    output_text(output, "<thead><tr>");
    for (unsigned i = 0; i < table_column_count(table); i++)
        output_format(output, "<th scope=\"col\"%s data-key=\"%s\">%s</th>",
                      is_number(&cells[i]) ? " class=\"number\"" : "", table->columns[i].key,
                      table->columns[i].title);
    output_text(output, "</tr></thead>\n");
}

static bool write_table(struct output *output, const struct report *report,
                        const struct report_table *table, size_t limit)
{
    struct cell cells[COLUMNS_MAX];
    size_t count = table_row_count(report, table);
    uint32_t *order = table_order(report, table);
    if (order == NULL)
        return false;
    output_format(output,
                  "<section id=\"%s\" aria-labelledby=\"%s-title\">\n<h2 id=\"%s-title\">%s</h2>\n"
                  "<div class=\"scroll\" role=\"region\" tabindex=\"0\" "
                  "aria-labelledby=\"%s-title\">\n<table data-table=\"%s\" data-title=\"%s\">\n"
                  "<caption>%s",
                  table->name, table->name, table->name, table->title, table->name, table->name,
                  table->title, table->caption);
    if (count > limit)
        output_format(output, ". The first %zu of %zu: --limit 0 shows all", limit, count);
    output_text(output, "</caption>\n");
    write_heads(output, report, table);
    output_text(output, "<tbody>\n");
    for (size_t row = 0; row < count && row < limit; row++) {
        table_row(report, table, order[row], cells);
        output_text(output, "<tr>");
        for (unsigned i = 0; i < table_column_count(table); i++)
            write_cell(output, report, &cells[i], i == 0);
        output_text(output, "</tr>\n");
    }
    output_text(output, "</tbody>\n</table>\n</div>\n</section>\n");
    free(order);
    return true;
}

/* ---- The page ---- */

bool write_report_page(struct output *output, const struct report *report, size_t limit)
{
    write_beginning(output, report);
    write_links(output, report);
    output_text(output, "<main>\n");
    write_missing(output, report);
    write_summary(output, report);
    if (!write_report_timeline(output, report))
        return false;
    for (unsigned i = 0; i < REPORT_TABLE_COUNT; i++)
        if (table_row_count(report, &report_tables[i]) > 0 &&
            !write_table(output, report, &report_tables[i], limit))
            return false;
    if (report->event_count == 0)
        output_text(output, "<p>The log has no events.</p>\n");
    output_text(output, "</main>\n<script>\n");
    write_report_script(output);
    output_text(output, "</script>\n</body>\n</html>\n");
    return true;
}
