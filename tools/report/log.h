/*
 * tools/report/log.h - decoding event logs: bytes in, events and views of their texts out.
 *
 * The decoder neither allocates nor does it trust any number in the file: it stays inside the bytes
 * that it is given, whatever they are, and takes each slot once. Both byte orders are supported.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_REPORT_LOG_H
#define TOOLS_REPORT_LOG_H

#include <cairn/log.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LOG_HEADER_BYTES = sizeof(struct cairn_log_header),
    LOG_SLOT_BYTES = CAIRN_LOG_SLOT_BYTES,
    LOG_KIND_COUNT = CAIRN_LOG_COMPILATION + 1,
    LOG_MESSAGE_BYTES = 256
};

/* The number of slots that have been reserved and that the log had space for. */
static inline uint64_t log_used_slots(const struct cairn_log_header *header)
{
    return header->next < header->slot_count ? header->next : header->slot_count;
}

/* Decodes a header of `size` bytes. False, with a message that names what is wrong, if this is not
 * a log, if its version is not CAIRN_LOG_VERSION, or if the header is cut off. `*is_swapped` is
 * whether the log's byte order is not that of this machine. */
bool log_read_header(const uint8_t *bytes, size_t size, struct cairn_log_header *header,
                     bool *is_swapped, char message[LOG_MESSAGE_BYTES]);

/* Slots of a log. */
struct log_slots {
    const uint8_t *bytes; /* of slot 0 */
    size_t count;
    bool is_swapped;
};

/* A slot, or the slots of a string. */
struct log_item {
    size_t slot;                  /* its first slot */
    struct cairn_log_event event; /* only the kind, if it is incomplete or a string; `name` and
                                     `text` are not checked */
    const uint8_t *text; /* of a string; NULL if the string is invalid, and then it is skipped as
                            one slot */
    size_t text_bytes;
};

/* Decodes the item at slot `*next`, and moves `*next` past it. False at the end. */
bool log_next(const struct log_slots *slots, size_t *next, struct log_item *item);

#endif
