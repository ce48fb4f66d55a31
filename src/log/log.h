/*
 * log/log.h - recording events in a log's file (cairn/log.h).
 *
 * Guarantees:
 *  (A) Recording takes no lock and allocates nothing, so it may interrupt itself.
 *  (B) A slot is written by the thread that has reserved it. Its kind is stored last, so a slot
 *      whose kind is not 0 is complete, also in the file of a process that was killed.
 *  (C) A process writes only to logs that it has created.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LOG_LOG_H
#define LOG_LOG_H

#include <cairn/log.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Where the events of a runtime go. */
struct log_sink {
    _Atomic(cairn_log *) log; /* NULL: nowhere */
    uint64_t first_module;    /* is added to the numbers of modules, which a log has only once */
};

/* Returns the log, or NULL. */
static inline cairn_log *log_of(const struct log_sink *sink)
{
    return atomic_load_explicit(&sink->log, memory_order_acquire);
}

/* Whether the log belongs to this process (C). NULL is allowed. */
bool log_is_own(const cairn_log *log);

/* Adds a reference, which cairn_log_destroy removes. */
void log_retain(cairn_log *log);

/* Returns what to add to the numbers of the modules of a runtime. */
uint64_t log_add_runtime(cairn_log *log);

/* Returns the number of a new invalidation, from 1. */
uint64_t log_add_invalidation(cairn_log *log);

/* Reads the events' clock; converts a difference to nanoseconds, and nanoseconds to a
 * difference. */
uint64_t log_clock(const cairn_log *log);
uint64_t log_nanoseconds(const cairn_log *log, uint64_t ticks);
uint64_t log_ticks(const cairn_log *log, uint64_t nanoseconds);

/* Returns the host's description of a key of an inline cache, in `text`; NULL without one. */
const char *log_describe_key(const cairn_log *log, uint64_t key, char *text, size_t size);

/* The same for a position of the interpreter. */
const char *log_describe_position(const cairn_log *log, uint64_t function, uint64_t position,
                                  char *text, size_t size);

/* Records an event, with this thread, the time, and the strings, which may be NULL, in place of its
 * own. If the log is full, counts it as lost. Returns the time; 0 if the log belongs to another
 * process. Async-signal-safe. */
uint64_t log_record(cairn_log *log, const struct cairn_log_event *event, const char *name,
                    const char *text);

#endif
