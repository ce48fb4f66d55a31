/*
 * Fuzzes event logs: the header, all slots, and the report. Slots are taken once, strings are
 * inside the log, and decoding twice gives the same. A log with a valid header has a page, a text
 * and a JSON, with all rows of each table or, by a bit of its last byte, with two.
 *
 * Input: a log. If it has no valid header, the bytes are slots, in the byte order of their first
 * bit.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz/fuzz.h"
#include "tools/report/report.h"

#include <fcntl.h>

static void check_item(const struct log_slots *slots, const struct log_item *item, size_t next)
{
    const uint8_t *end = slots->bytes + slots->count * LOG_SLOT_BYTES;
    require(next > item->slot);
    require(next <= slots->count);
    if (item->event.kind != CAIRN_LOG_STRING)
        require(item->text == NULL);
    if (item->text == NULL)
        require(next == item->slot + 1);
    else
        require(item->text_bytes <= (size_t)(end - item->text));
}

static void read_all(const struct log_slots *slots)
{
    struct log_item item[2];
    for (size_t next = 0; next < slots->count;) {
        size_t again = next;
        require(log_next(slots, &again, &item[1]));
        require(log_next(slots, &next, &item[0]));
        require(next == again && item[0].text == item[1].text);
        require(memcmp(&item[0].event, &item[1].event, sizeof item[0].event) == 0);
        check_item(slots, &item[0], next);
    }
}

/* Writes the report to nowhere. */
static void write_report(const struct log_slots *slots, const struct cairn_log_header *header,
                         size_t limit)
{
    static struct output output;
    static int nowhere = -1;
    struct json json = {.output = &output};
    struct report report = {.path = "<log>", .header = *header, .slots = *slots};
    if (nowhere < 0)
        nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    output_open(&output, nowhere);
    output_allow_names(&output, slots->count * (uint64_t)LOG_SLOT_BYTES);
    require(report_create(&report));
    require(report.note_count <= REPORT_NOTES_MAX);
    require(write_report_page(&output, &report, limit));
    require(write_report_json(&json, &report, limit));
    require(write_report_text(&output, &report, limit));
    require(output_flush(&output));
    report_release(&report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cairn_log_header header;
    char message[LOG_MESSAGE_BYTES] = "";
    bool is_swapped = false;
    struct log_slots slots = {data, size / LOG_SLOT_BYTES, size > 0 && (data[0] & 1) != 0};
    if (log_read_header(data, size, &header, &is_swapped, message)) {
        size_t kept = (size - LOG_HEADER_BYTES) / LOG_SLOT_BYTES;
        uint64_t used = log_used_slots(&header);
        require(used <= header.slot_count);
        slots = (struct log_slots){data + LOG_HEADER_BYTES, used < kept ? (size_t)used : kept,
                                   is_swapped};
        write_report(&slots, &header, (data[size - 1] & 1) != 0 ? 2 : SIZE_MAX);
    } else {
        require(message[0] != '\0');
    }
    read_all(&slots);
    return 0;
}
