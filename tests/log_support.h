/*
 * tests/log_support.h - reads the file of a log, as any reader would.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_LOG_SUPPORT_H
#define TESTS_LOG_SUPPORT_H

#include <cairn/log.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct log_file {
    const struct cairn_log_header *header;
    const char *slots;
    size_t size;
    uint64_t used; /* slots */
    uint64_t next; /* the slot to read next */
    uint64_t incomplete;
};

/* Chooses a name for a log, which the caller removes. */
static inline void log_name(char *name, size_t size)
{
    const char *folder = getenv("TMPDIR");
    snprintf(name, size, "%s/cairn-log-XXXXXX", folder == NULL ? "/tmp" : folder);
    int file = mkstemp(name);
    if (file >= 0)
        close(file);
}

static inline bool log_open(struct log_file *log, const char *name)
{
    struct stat properties;
    int file = open(name, O_RDONLY | O_CLOEXEC);
    *log = (struct log_file){.header = NULL};
    if (file < 0 || fstat(file, &properties) != 0)
        return false;
    log->size = (size_t)properties.st_size;
    void *mapping = mmap(NULL, log->size, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapping == MAP_FAILED)
        return false;
    log->header = mapping;
    log->slots = (const char *)mapping + log->header->header_bytes;
    log->used =
        log->header->next < log->header->slot_count ? log->header->next : log->header->slot_count;
    return true;
}

static inline void log_close(struct log_file *log) { munmap((void *)log->header, log->size); }

/* Returns the next event, or NULL. */
static inline const struct cairn_log_event *log_next(struct log_file *log)
{
    while (log->next < log->used) {
        const char *slot = log->slots + log->next * CAIRN_LOG_SLOT_BYTES;
        const struct cairn_log_string *string = (const void *)slot;
        if (string->kind == CAIRN_LOG_STRING) {
            size_t bytes = sizeof *string - CAIRN_LOG_STRING_BYTES + string->length;
            log->next += (bytes + CAIRN_LOG_SLOT_BYTES - 1) / CAIRN_LOG_SLOT_BYTES;
            continue;
        }
        log->next++;
        if (string->kind != CAIRN_LOG_INCOMPLETE)
            return (const void *)slot;
        log->incomplete++;
    }
    return NULL;
}

/* Returns the next event of this kind, or NULL. */
static inline const struct cairn_log_event *log_next_of(struct log_file *log,
                                                        enum cairn_log_kind kind)
{
    const struct cairn_log_event *event;
    do
        event = log_next(log);
    while (event != NULL && event->kind != (uint32_t)kind);
    return event;
}

/* Copies the string that an event refers to; "" if there is none. */
static inline const char *log_text(const struct log_file *log, uint32_t reference, char *text,
                                   size_t size)
{
    text[0] = '\0';
    if (reference == 0)
        return text;
    const char *slot = log->slots + (uint64_t)(reference - 1) * CAIRN_LOG_SLOT_BYTES;
    const struct cairn_log_string *string = (const void *)slot;
    if (string->kind == CAIRN_LOG_STRING)
        snprintf(text, size, "%.*s", (int)string->length,
                 slot + sizeof *string - CAIRN_LOG_STRING_BYTES);
    return text;
}

#endif
