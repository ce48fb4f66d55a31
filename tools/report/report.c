/*
 * cairn report: what an event log says, as a page, as text or as JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/report/report.h"
#include "tools/cli/save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: cairn report [OPTION...] LOG\n"
    "\n"
    "Prints a summary of an event log, which a host writes with cairn_log_create, or writes a "
    "page\n"
    "for a browser: the timeline of compilations, versions and code size, functions by their\n"
    "deopts, with reasons, sites and interpreter positions, inline caches with their history and\n"
    "keys, invalidations with what they hit, modules and grace periods. LOG may still be in use;\n"
    "'-' is standard input. Of a log that is cut off or damaged, everything intact is shown.\n"
    "\n"
    "  -o PAGE       write a page (HTML, which needs no other file) instead of the summary\n"
    "  --limit N     show at most N rows of each table, or all if N is 0 (default: 10 in the\n"
    "                summary, 2000 in the page, all with --json)\n"
    "  --json        print an object with all tables; see cairn-json(5)\n"
    "  --memory SIZE\n"
    "                limit the memory for the contents of LOG, for example to 500M\n"
    "  --help        print this text\n"
    "\n"
    "If the log is damaged, or cut off, the exit status is 1.\n";

enum { USUAL_TEXT_ROWS = 10, USUAL_PAGE_ROWS = 2000, PIECE_BYTES = 1 << 16 };

struct options {
    const char *path;
    const char *page_path; /* NULL for standard output */
    bool is_json;
    uint64_t memory_limit;
    size_t limit;
};

/* ---- Reading ---- */

/* A file that is read from its beginning, which may be a pipe. */
struct source {
    const char *path;
    int descriptor;
    bool is_ended;
};

/* Reads up to `size` bytes, and fewer only at the end. False after an error message. */
static bool read_bytes(struct source *source, uint8_t *bytes, size_t size, size_t *taken)
{
    for (*taken = 0; *taken < size && !source->is_ended;) {
        ssize_t count = read(source->descriptor, bytes + *taken, size - *taken);
        if (count > 0)
            *taken += (size_t)count;
        else if (count == 0)
            source->is_ended = true;
        else if (errno != EINTR)
            return complain("%s: cannot be read: %s", source->path, strerror(errno));
    }
    return true;
}

/* Reads `wanted` bytes of slots, or those that there are. The space grows with what is read,
 * because the header may be wrong. False after an error message. */
static bool read_slots(struct source *source, uint64_t wanted, uint64_t limit, uint8_t **bytes,
                       size_t *size)
{
    size_t capacity = 0;
    *bytes = NULL;
    *size = 0;
    while (*size < wanted && !source->is_ended) {
        uint64_t more = capacity == 0 ? PIECE_BYTES : capacity;
        if (more > wanted - *size)
            more = wanted - *size;
        if (limit != 0 && *size + more > limit && *size >= limit)
            return complain("%s: more than the %llu bytes that --memory allows", source->path,
                            (unsigned long long)limit);
        if (limit != 0 && *size + more > limit)
            more = limit - *size;
        uint8_t *grown = realloc(*bytes, *size + more);
        size_t taken;
        if (grown == NULL)
            return complain("%s: there is not enough memory for the log", source->path);
        *bytes = grown;
        capacity = *size + more;
        if (!read_bytes(source, *bytes + *size, more, &taken))
            return false;
        *size += taken;
    }
    return true;
}

/* What follows the slots that the header says are in use. */
struct remains {
    uint64_t slots; /* that are not empty */
    uint64_t bytes; /* in total */
};

static bool read_remains(struct source *source, struct remains *remains)
{
    static uint8_t piece[PIECE_BYTES];
    static const uint8_t empty[LOG_SLOT_BYTES];
    size_t taken;
    *remains = (struct remains){.slots = 0};
    while (!source->is_ended) {
        if (!read_bytes(source, piece, sizeof piece, &taken))
            return false;
        for (size_t at = 0; at + LOG_SLOT_BYTES <= taken; at += LOG_SLOT_BYTES)
            remains->slots += memcmp(piece + at, empty, sizeof empty) != 0;
        remains->bytes += taken;
    }
    return true;
}

/* Adds the sentences about the size of the file. */
static void note_size(struct report *report, size_t slot_bytes, const struct remains *remains)
{
    const struct cairn_log_header *header = &report->header;
    uint64_t missing = log_used_slots(header) - report->slots.count;
    if (header->header_bytes != LOG_HEADER_BYTES || header->slot_bytes != LOG_SLOT_BYTES) {
        report->is_damaged = true;
        report_note(report,
                    "the header gives its size as %u bytes and that of a slot as %u, which are %d "
                    "and %d in version %d of the format",
                    header->header_bytes, header->slot_bytes, LOG_HEADER_BYTES, LOG_SLOT_BYTES,
                    CAIRN_LOG_VERSION);
    }
    if (missing > 0) {
        report->is_damaged = true;
        report_note(report,
                    "the log is cut off: %llu of the %llu slots in use are missing, from byte %llu "
                    "of the file on",
                    (unsigned long long)missing, (unsigned long long)log_used_slots(header),
                    LOG_HEADER_BYTES + (unsigned long long)slot_bytes);
    }
    if (remains->slots > 0) {
        report->is_damaged = true;
        report_note(report,
                    "%llu slot%s not empty after the %llu that are in use by the header: not shown",
                    (unsigned long long)remains->slots, remains->slots == 1 ? " is" : "s are",
                    (unsigned long long)log_used_slots(header));
    }
}

/* Reads the log into the report, which is not made yet. `*bytes` is to be freed. False after an
 * error message. */
static bool read_log(struct source *source, const struct options *options, struct report *report,
                     uint8_t **bytes)
{
    uint8_t header[LOG_HEADER_BYTES];
    char message[LOG_MESSAGE_BYTES];
    size_t size;
    bool is_swapped;
    struct remains remains;
    if (!read_bytes(source, header, sizeof header, &size))
        return false;
    if (!log_read_header(header, size, &report->header, &is_swapped, message))
        return complain("%s: %s", source->path, message);
    uint64_t used = log_used_slots(&report->header);
    uint64_t wanted = used < SIZE_MAX / LOG_SLOT_BYTES ? used * LOG_SLOT_BYTES : SIZE_MAX;
    if (!read_slots(source, wanted, options->memory_limit, bytes, &size) ||
        !read_remains(source, &remains))
        return false;
    report->slots = (struct log_slots){*bytes, size / LOG_SLOT_BYTES, is_swapped};
    note_size(report, size, &remains);
    return true;
}

/* ---- Writing ---- */

struct page {
    const struct report *report;
    size_t limit;
};

static bool write_page(struct output *output, void *user)
{
    const struct page *page = user;
    return write_report_page(output, page->report, page->limit) ||
           complain("%s: there is not enough memory for the report", page->report->path);
}

static enum exit_status print_report(const struct report *report, const struct options *options)
{
    static struct output output;
    struct page page = {report, options->limit};
    if (options->page_path != NULL)
        return save_output(options->page_path, write_page, &page) ? EXIT_DONE : EXIT_BAD_INPUT;
    output_open(&output, STDOUT_FILENO);
    output_allow_names(&output, report->slots.count * (uint64_t)LOG_SLOT_BYTES);
    struct json json = {.output = &output};
    bool is_written = options->is_json ? write_report_json(&json, report, options->limit)
                                       : write_report_text(&output, report, options->limit);
    enum exit_status status = finish_output(&output);
    if (is_written)
        return status;
    complain("%s: there is not enough memory for the report", report->path);
    return EXIT_BAD_INPUT;
}

/* ---- The command ---- */

static enum exit_status run(const struct options *options)
{
    static struct report report;
    struct source source = {.path = options->path, .descriptor = STDIN_FILENO};
    uint8_t *bytes = NULL;
    if (strcmp(options->path, "-") == 0)
        source.path = "standard input";
    else
        source.descriptor = open(options->path, O_RDONLY | O_CLOEXEC);
    if (source.descriptor < 0) {
        complain("%s: cannot be opened: %s", source.path, strerror(errno));
        return EXIT_BAD_INPUT;
    }
    report.path = source.path;
    enum exit_status status = EXIT_BAD_INPUT;
    if (read_log(&source, options, &report, &bytes) && report_create(&report)) {
        for (unsigned i = 0; i < report.note_count; i++)
            complain("%s: %s", source.path, report.notes[i]);
        status = print_report(&report, options);
        if (report.is_damaged)
            status = EXIT_BAD_INPUT;
    }
    report_release(&report);
    free(bytes);
    if (source.descriptor != STDIN_FILENO)
        close(source.descriptor);
    return status;
}

enum exit_status command_report(int argc, char **argv)
{
    struct options options = {.page_path = NULL};
    const char *limit = NULL;
    const struct option known[] = {
        {.name = "-o", .value = &options.page_path, .needs = "a file"},
        {.name = "--limit", .value = &limit, .needs = LIMIT_NEEDS},
    };
    struct command_line line = {.command = "report",
                                .is_log = true,
                                .help = help,
                                .options = known,
                                .option_count = sizeof known / sizeof *known,
                                .operand_limit = 1};
    enum exit_status status;
    bool is_usable = true;
    if (!parse_command_line(argc, argv, &line, &status))
        return status;
    options.path = line.file.path;
    options.is_json = line.file.json;
    options.memory_limit = line.file.memory_limit;
    options.limit = options.is_json             ? SIZE_MAX
                    : options.page_path != NULL ? USUAL_PAGE_ROWS
                                                : USUAL_TEXT_ROWS;
    if (line.file.debug_path != NULL)
        is_usable = complain("report: unknown option '--debug-file'; see 'cairn report --help'");
    else if (options.is_json && options.page_path != NULL)
        is_usable = complain("report: --json and -o, which writes a page, exclude each other");
    return is_usable && parse_limit("report", limit, &options.limit) ? run(&options)
                                                                     : EXIT_BAD_USAGE;
}
