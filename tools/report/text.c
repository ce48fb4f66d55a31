/*
 * cairn report, as text and JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/report/report.h"

#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Text ---- */

enum { COUNTS_A_LINE = 5 };

static void write_totals(struct output *output, const struct report *report)
{
    struct report_total totals[REPORT_TOTAL_COUNT];
    unsigned shown = 0;
    report_totals(report, totals);
    for (unsigned i = 0; i < REPORT_TOTAL_COUNT; i++) {
        if (totals[i].count == 0)
            continue;
        output_text(output, shown++ % COUNTS_A_LINE == 0 ? "\n  " : ", ");
        output_format(output, "%s: %ju", totals[i].name, totals[i].count);
    }
    output_character(output, '\n');
}

static void write_head(struct output *output, const struct report *report)
{
    char date[64];
    char duration[CELL_BYTES];
    const struct cairn_log_header *header = &report->header;
    format_date(header->start_time_ns, date, sizeof date);
    format_duration(report->end, duration, sizeof duration);
    output_format(output, HEADING "%s" PLAIN ": process %ju, %s, from ", report->path,
                  header->process, report->architecture);
    output_text(output, date);
    output_text(output, " for ");
    output_text(output, duration);
    output_format(output, ", by cairn %s%s\n", report->cairn_version,
                  header->end_clock == 0 ? "; the log was not closed" : "");
    output_format(output, "%ju event%s of %zu thread%s", report->event_count,
                  plural(report->event_count), report->threads.list.count,
                  plural(report->threads.list.count));
    write_totals(output, report);
}

enum { TEXT_COLUMNS_MAX = 60, LIST_ITEMS_MAX = 12 };

/* Writes a cell that is a list to a buffer, ending in three dots if it is cut. */
static void format_list(const struct report *report, const struct cell *cell, char *text,
                        size_t size)
{
    struct cell_item item;
    uint64_t at = cell->number;
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; cell_next(report, cell, &at, &item); i++) {
        bool is_cut = i == LIST_ITEMS_MAX;
        int length =
            snprintf(text + used, size - used, "%s%.100s%s", i == 0 ? "" : cell_separator(cell),
                     item.name == NULL || is_cut ? "" : item.name, is_cut ? "..." : item.text);
        used += (size_t)length;
        if (is_cut || used >= size)
            return;
    }
}

/* Formats a cell without control characters and invalid bytes. */
static void format_cell(const struct report *report, const struct cell *cell, char *text,
                        size_t size)
{
    char space[CELL_BYTES];
    if (cell_is_list(cell)) {
        format_list(report, cell, text, size);
    } else if (cell->kind == CELL_TEXT && cell->text != NULL) {
        snprintf(text, size, "%s", cell->text);
    } else {
        cell_format(cell, space);
        snprintf(text, size, "%s", cell->kind == CELL_UNKNOWN ? "-" : space);
    }
    utf8_clean(text);
}

static size_t columns_of(const char *text)
{
    size_t columns = 0;
    for (; *text != '\0'; text++)
        columns += ((unsigned char)*text & 0xc0) != 0x80;
    return columns;
}

enum { CELL_TEXT_BYTES = 2048 };

static void measure(size_t widths[COLUMNS_MAX], unsigned column, const char *text)
{
    size_t columns = columns_of(text);
    if (columns > TEXT_COLUMNS_MAX)
        columns = TEXT_COLUMNS_MAX;
    if (columns > widths[column])
        widths[column] = columns;
}

/* Writes a text and the spaces after it up to the next column. */
static void write_padded(struct output *output, const char *text, size_t width, bool is_last)
{
    size_t columns = columns_of(text);
    output_text(output, text);
    if (!is_last)
        output_spaces(output, 2 + (columns < width ? width - columns : 0));
}

static bool write_table(struct output *output, const struct report *report,
                        const struct report_table *table, size_t limit)
{
    size_t widths[COLUMNS_MAX] = {0};
    struct cell cells[COLUMNS_MAX];
    char text[CELL_TEXT_BYTES];
    unsigned column_count = table_column_count(table);
    size_t count = table_row_count(report, table);
    size_t shown = count < limit ? count : limit;
    uint32_t *order = table_order(report, table);
    if (order == NULL)
        return false;
    for (unsigned i = 0; i < column_count; i++)
        measure(widths, i, table->columns[i].title);
    for (size_t row = 0; row < shown; row++) {
        table_row(report, table, order[row], cells);
        for (unsigned i = 0; i < column_count; i++) {
            format_cell(report, &cells[i], text, sizeof text);
            measure(widths, i, text);
        }
    }
    output_format(output, "\n" HEADING "%s" PLAIN, table->caption);
    if (shown < count)
        output_format(output, ", %zu of %zu", shown, count);
    output_text(output, "\n  ");
    for (unsigned i = 0; i < column_count; i++)
        write_padded(output, table->columns[i].title, widths[i], i + 1 == column_count);
    output_character(output, '\n');
    for (size_t row = 0; row < shown; row++) {
        output_text(output, "  ");
        table_row(report, table, order[row], cells);
        for (unsigned i = 0; i < column_count; i++) {
            format_cell(report, &cells[i], text, sizeof text);
            write_padded(output, text, widths[i], i + 1 == column_count);
        }
        output_character(output, '\n');
    }
    free(order);
    return true;
}

bool write_report_text(struct output *output, const struct report *report, size_t limit)
{
    write_head(output, report);
    for (unsigned i = 0; i < REPORT_TABLE_COUNT; i++)
        if (report_tables[i].is_in_text && table_row_count(report, &report_tables[i]) > 0 &&
            !write_table(output, report, &report_tables[i], limit))
            return false;
    return true;
}

/* ---- JSON ---- */

static void write_summary(struct json *json, const struct report *report)
{
    const struct cairn_log_header *header = &report->header;
    json_fields(json, "file %s process %ju architecture %s cairn %s version %u", report->path,
                header->process, report->architecture, report->cairn_version, header->version);
    json_fields(json, "start_time_ns %ju duration_ns %ju closed %d", header->start_time_ns,
                report->end, header->end_clock != 0);
    json_fields(json, "slots %ju slots_read %zu events %ju threads %zu", header->slot_count,
                report->slots.count, report->event_count, report->threads.list.count);
    json_fields(json, "lost %ju incomplete %ju unknown %ju", report->lost_count,
                report->counts[CAIRN_LOG_INCOMPLETE], report->unknown_count);
    json_begin_array(json, "missing");
    for (unsigned i = 0; i < report->note_count; i++)
        json_string(json, report->notes[i]);
    json_end_array(json);
}

/* Writes an item with its name as one string. */
static void write_item(struct json *json, const struct cell_item *item)
{
    char text[CAIRN_LOG_STRING_BYTES_MAX + CELL_BYTES];
    snprintf(text, sizeof text, "%s%s", item->name == NULL ? "" : item->name, item->text);
    json_string(json, text);
}

static void write_list(struct json *json, const struct report *report, const char *key,
                       const struct cell *cell)
{
    struct cell_item item;
    json_begin_array(json, key);
    for (uint64_t at = cell->number; cell_next(report, cell, &at, &item);) {
        if (cell->kind != CELL_HITS) {
            write_item(json, &item);
            continue;
        }
        json_begin_object(json, NULL);
        json_fields(json, "function %s module %ju address %ju time %ju", item.name, item.module,
                    item.address, item.time);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_cell(struct json *json, const struct report *report, const char *key,
                       const struct cell *cell)
{
    if (cell_is_list(cell))
        write_list(json, report, key, cell);
    else if (cell->kind == CELL_TEXT)
        json_name(json, key, cell->text != NULL ? cell->text : cell->space);
    else
        json_optional(json, key, cell->kind != CELL_UNKNOWN, cell->number);
}

bool write_report_json(struct json *json, const struct report *report, size_t limit)
{
    struct cell cells[COLUMNS_MAX];
    json_begin_object(json, NULL);
    write_summary(json, report);
    for (unsigned i = 0; i < REPORT_TABLE_COUNT; i++) {
        const struct report_table *table = &report_tables[i];
        size_t count = table_row_count(report, table);
        uint32_t *order = table_order(report, table);
        if (order == NULL)
            return false;
        json_line(json, 1);
        json_begin_array(json, table->name);
        for (size_t row = 0; row < count && row < limit; row++) {
            table_row(report, table, order[row], cells);
            json_line(json, 2);
            json_begin_object(json, NULL);
            for (unsigned j = 0; j < table_column_count(table); j++)
                write_cell(json, report, table->columns[j].key, &cells[j]);
            json_end_object(json);
        }
        json_end_array(json);
        free(order);
    }
    json_end_object(json);
    output_character(json->output, '\n');
    return true;
}
