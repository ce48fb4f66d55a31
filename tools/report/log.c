/*
 * Decoding event logs, as <cairn/log.h> describes the file.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/report/log.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(struct cairn_log_header) == 128, "the format says so");
_Static_assert(sizeof(struct cairn_log_event) == CAIRN_LOG_SLOT_BYTES, "the format says so");
_Static_assert(sizeof(struct cairn_log_string) == CAIRN_LOG_SLOT_BYTES, "the format says so");

enum { MAGIC_BYTES = 8 };

static uint32_t read_u32(const uint8_t *at, bool is_swapped)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return is_swapped ? __builtin_bswap32(value) : value;
}

/* ---- The header ---- */

static __attribute__((format(printf, 2, 3))) bool refuse(char message[LOG_MESSAGE_BYTES],
                                                         const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, LOG_MESSAGE_BYTES, format, arguments);
    va_end(arguments);
    return false;
}

/* Determines the byte order from its mark. */
static bool read_byte_order(const uint8_t *bytes, bool *is_swapped, char message[LOG_MESSAGE_BYTES])
{
    const uint32_t mark = CAIRN_LOG_BYTE_ORDER;
    uint32_t found = read_u32(bytes + offsetof(struct cairn_log_header, byte_order), false);
    *is_swapped = found == __builtin_bswap32(mark);
    return found == mark || *is_swapped ||
           refuse(message,
                  "the event log has the byte-order mark 0x%08x at offset %zu instead of 0x%08x",
                  found, offsetof(struct cairn_log_header, byte_order), mark);
}

/* The version decides what the rest of the header means, so it is checked before the size. */
static bool check_beginning(const uint8_t *bytes, size_t size, bool *is_swapped,
                            char message[LOG_MESSAGE_BYTES])
{
    size_t magic_bytes = size < MAGIC_BYTES ? size : MAGIC_BYTES;
    *is_swapped = false;
    if (size == 0)
        return refuse(message, "the file is empty: an event log begins with a header of %d bytes",
                      LOG_HEADER_BYTES);
    if (memcmp(bytes, CAIRN_LOG_MAGIC, magic_bytes) != 0)
        return refuse(message, "this is not an event log: it does not begin with CAIRNLOG");
    if (size >= offsetof(struct cairn_log_header, header_bytes)) {
        if (!read_byte_order(bytes, is_swapped, message))
            return false;
        uint32_t version =
            read_u32(bytes + offsetof(struct cairn_log_header, version), *is_swapped);
        if (version != CAIRN_LOG_VERSION)
            return refuse(message,
                          "the event log has version %u of the format; this cairn reads version %d",
                          version, CAIRN_LOG_VERSION);
    }
    return size >= LOG_HEADER_BYTES ||
           refuse(message,
                  "the event log is cut off in its header: %zu of %d bytes are left, and no event",
                  size, LOG_HEADER_BYTES);
}

static void swap_u32(uint32_t *value) { *value = __builtin_bswap32(*value); }
static void swap_u64(uint64_t *value) { *value = __builtin_bswap64(*value); }

static void swap_header(struct cairn_log_header *header)
{
    uint32_t *const words[] = {&header->byte_order, &header->version, &header->header_bytes,
                               &header->slot_bytes};
    uint64_t *const numbers[] = {&header->slot_count, &header->start_time_ns, &header->start_clock,
                                 &header->clock_hz,   &header->process,       &header->next,
                                 &header->lost,       &header->end_clock};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        swap_u32(words[i]);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        swap_u64(numbers[i]);
}

bool log_read_header(const uint8_t *bytes, size_t size, struct cairn_log_header *header,
                     bool *is_swapped, char message[LOG_MESSAGE_BYTES])
{
    if (!check_beginning(bytes, size, is_swapped, message))
        return false;
    memcpy(header, bytes, sizeof *header);
    if (*is_swapped)
        swap_header(header);
    return true;
}

/* ---- Slots ---- */

/* A string begins in its first slot, after the kind and the length, and continues in the following
 * slots. */
static size_t read_string(const struct log_slots *slots, struct log_item *item)
{
    const uint8_t *bytes = slots->bytes + item->slot * LOG_SLOT_BYTES;
    size_t length = read_u32(bytes + offsetof(struct cairn_log_string, length), slots->is_swapped);
    size_t slot_count =
        (offsetof(struct cairn_log_string, bytes) + length + LOG_SLOT_BYTES - 1) / LOG_SLOT_BYTES;
    if (length > CAIRN_LOG_STRING_BYTES_MAX || slot_count > slots->count - item->slot)
        return 1;
    item->text = bytes + offsetof(struct cairn_log_string, bytes);
    item->text_bytes = length;
    return slot_count;
}

static void swap_event(struct cairn_log_event *event)
{
    uint32_t *const words[] = {&event->kind, &event->thread, &event->name, &event->text};
    uint64_t *const numbers[] = {&event->clock, &event->address, &event->id,
                                 &event->a,     &event->b,       &event->module};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        swap_u32(words[i]);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        swap_u64(numbers[i]);
}

bool log_next(const struct log_slots *slots, size_t *next, struct log_item *item)
{
    if (*next >= slots->count)
        return false;
    *item = (struct log_item){.slot = *next};
    const uint8_t *bytes = slots->bytes + item->slot * LOG_SLOT_BYTES;
    uint32_t kind = read_u32(bytes, slots->is_swapped);
    size_t taken = 1;
    item->event.kind = kind;
    if (kind == CAIRN_LOG_STRING) {
        taken = read_string(slots, item);
    } else if (kind != CAIRN_LOG_INCOMPLETE) {
        memcpy(&item->event, bytes, sizeof item->event);
        if (slots->is_swapped)
            swap_event(&item->event);
    }
    *next += taken;
    return true;
}
