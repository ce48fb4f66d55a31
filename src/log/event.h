/*
 * log/event.h - the events of the library: for each, a USDT probe, and a record in the runtime's
 * log if it has one.
 *
 * A probe is one no-op in the code, and a note in the library's file (doc/events.md). Its arguments
 * are values that the code has at hand, because they are computed even if nothing is attached. What
 * takes longer is computed only for a log.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LOG_EVENT_H
#define LOG_EVENT_H

#include "log/log.h"

#if HAVE_SYS_SDT_H
#include <sys/sdt.h>
/* The macros of sys/sdt.h leave out variadic arguments. clang says so wherever they are expanded,
 * with an option whose name depends on its version; gcc does not, and still checks these files. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpedantic"
#endif
#define EVENT_PROBE2(name, a, b) STAP_PROBE2(cairn, name, a, b)
#define EVENT_PROBE3(name, a, b, c) STAP_PROBE3(cairn, name, a, b, c)
#define EVENT_PROBE4(name, a, b, c, d) STAP_PROBE4(cairn, name, a, b, c, d)
#else
#define EVENT_PROBE2(name, a, b) ((void)(a), (void)(b))
#define EVENT_PROBE3(name, a, b, c) ((void)(a), (void)(b), (void)(c))
#define EVENT_PROBE4(name, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#endif

/* Whether a log is attached, which is rare. */
static inline bool event_has_log(const cairn_log *log) { return __builtin_expect(log != NULL, 0); }

/* Returns the number of a module in the log; 0 for 0. */
static inline uint64_t event_module(const struct log_sink *sink, uint64_t module)
{
    return module == 0 ? 0 : sink->first_module + module;
}

/* A site was changed. `state` is an enum cairn_site_state. */
static inline void event_patch(const struct log_sink *sink, uint64_t address, uint64_t id,
                               uint64_t module, uint32_t state, uint64_t target)
{
    cairn_log *log = log_of(sink);
    if (!event_has_log(log))
        return;
    struct cairn_log_event event = {
        .kind = CAIRN_LOG_SITE_PATCHED,
        .address = address,
        .id = id,
        .module = event_module(sink, module),
        .a = state,
        .b = target,
    };
    log_record(log, &event, NULL, NULL);
}

/* A grace period was started, or has ended and has freed `count` modules. */
static inline void event_grace(const struct log_sink *sink, bool has_ended, uint64_t token,
                               uint64_t count)
{
    EVENT_PROBE3(grace, has_ended, token, count);
    cairn_log *log = log_of(sink);
    if (!event_has_log(log))
        return;
    struct cairn_log_event event = {
        .kind = CAIRN_LOG_GRACE, .id = token, .a = has_ended, .b = count};
    log_record(log, &event, NULL, NULL);
}

/* A version was installed in an entry. */
static inline void event_version(const struct log_sink *sink, const char *name, uint64_t number,
                                 uint64_t address, uint64_t module)
{
    EVENT_PROBE3(version, name, number, address);
    cairn_log *log = log_of(sink);
    if (!event_has_log(log))
        return;
    struct cairn_log_event event = {
        .kind = CAIRN_LOG_VERSION_INSTALLED,
        .address = address,
        .module = event_module(sink, module),
        .a = number,
        .b = module != 0,
    };
    log_record(log, &event, name, NULL);
}

#endif
