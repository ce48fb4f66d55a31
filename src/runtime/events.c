/*
 * Events of modules, and runtimes' logs.
 *
 * A log is attached under the runtime's lock, and modules are published and retired under it, so
 * each module is recorded once. The log stays until the runtime is destroyed, because threads may
 * be recording at any time.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runtime/events.h"
#include "runtime/module.h"

#include "base/error.h"
#include "record/table.h"

const char *event_function(const cairn_module *module, uint64_t pc, uint64_t *address)
{
    struct cairn_function function = {0};
    *address = 0;
    if (module == NULL || !module_search_function(module, pc, &function))
        return NULL;
    *address = function.address;
    return function.name;
}

/* ---- Modules ---- */

/* Returns the module's first range of code, and the bytes of all of them. */
static uint64_t code_range(const cairn_module *module, uint64_t *bytes)
{
    struct memory_range range;
    uint64_t first = 0;
    *bytes = 0;
    for (uint32_t i = 0; module_memory_range(module, i, &range); i++) {
        if (!range.executable)
            continue;
        if (first == 0)
            first = range.address;
        *bytes += range.size;
    }
    return first;
}

static void record_loaded(cairn_log *log, const cairn_module *module)
{
    const struct log_sink *sink = runtime_sink(module->runtime);
    struct cairn_log_event event = {.kind = CAIRN_LOG_MODULE_LOADED,
                                    .module = event_module(sink, module->number)};
    event.address = code_range(module, &event.a);
    log_record(log, &event, module->name, NULL);
    event.kind = CAIRN_LOG_FUNCTION;
    const char *name;
    uint32_t size;
    for (uint32_t i = 0;
         module_symbols_function_at(module->symbols, i, &name, &event.address, &size); i++) {
        event.a = size == UINT32_MAX ? 0 : size;
        log_record(log, &event, name, NULL);
    }
}

void event_module_loaded(const cairn_module *module)
{
    EVENT_PROBE2(module_load, &module->name[0], module->number);
    cairn_log *log = log_of(runtime_sink(module->runtime));
    if (event_has_log(log))
        record_loaded(log, module);
}

void event_module_retired(const cairn_module *module)
{
    const struct log_sink *sink = runtime_sink(module->runtime);
    EVENT_PROBE2(module_retire, &module->name[0], module->number);
    cairn_log *log = log_of(sink);
    if (!event_has_log(log))
        return;
    struct cairn_log_event event = {.kind = CAIRN_LOG_MODULE_RETIRED,
                                    .module = event_module(sink, module->number)};
    log_record(log, &event, module->name, NULL);
}

/* ---- Invalidations ---- */

/* Records one event for each run of sites of one function. */
static void record_hits(cairn_log *log, const struct log_sink *sink, const struct event_hits *hits,
                        uint64_t number)
{
    struct cairn_log_event event = {.kind = CAIRN_LOG_INVALIDATED, .a = number};
    const char *name = NULL;
    for (size_t i = 0; i < hits->count; i++) {
        const cairn_site *site = hits->site_at(hits->user, i);
        const cairn_module *module = table_owner(site->table->records);
        uint64_t address, of = event_module(sink, module->number);
        const char *found = event_function(module, site->address, &address);
        if (event.b > 0 && (of != event.module || address != event.address)) {
            log_record(log, &event, name, NULL);
            event.b = 0;
        }
        event.module = of;
        event.address = address;
        event.b++;
        name = found;
    }
    if (event.b > 0)
        log_record(log, &event, name, NULL);
}

void event_invalidation(const cairn_runtime *runtime, const struct event_hits *hits,
                        const char *reason)
{
    const struct log_sink *sink = runtime_sink(runtime);
    EVENT_PROBE2(invalidation, hits->count, reason);
    cairn_log *log = log_of(sink);
    if (!event_has_log(log))
        return;
    struct cairn_log_event event = {
        .kind = CAIRN_LOG_INVALIDATION, .a = log_add_invalidation(log), .b = hits->count};
    uint64_t number = event.a;
    log_record(log, &event, NULL, reason);
    record_hits(log, sink, hits, number);
}

/* ---- The runtime's log ---- */

static enum cairn_status attach_locked(cairn_log *log, cairn_runtime *runtime, cairn_log **older,
                                       struct cairn_error *error)
{
    struct log_sink *sink = runtime_sink(runtime);
    *older = log_of(sink);
    if (log_is_own(*older))
        return error_set(error, CAIRN_ERROR_STATE, 0, "the runtime has a log already");
    log_retain(log);
    sink->first_module = log_add_runtime(log);
    atomic_store_explicit(&sink->log, log, memory_order_release);
    for (const cairn_module *module = runtime->modules; module != NULL; module = module->next)
        if (module->state == MODULE_PUBLISHED)
            record_loaded(log, module);
    return CAIRN_OK;
}

enum cairn_status cairn_log_attach(cairn_log *log, cairn_runtime *runtime,
                                   struct cairn_error *error)
{
    if (log == NULL || runtime == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_log_attach: `%s` is NULL",
                         log == NULL ? "log" : "runtime");
    if (!log_is_own(log))
        return error_set(error, CAIRN_ERROR_STATE, 0,
                         "the log belongs to another process, which has forked this one");
    cairn_log *older = NULL;
    runtime_lock(runtime);
    enum cairn_status status = attach_locked(log, runtime, &older, error);
    runtime_unlock(runtime);
    if (status == CAIRN_OK)
        cairn_log_destroy(older);
    return status;
}

/* A value of the message. The compiler does not join such loads, for the reason that log/log.c
 * gives for stores. */
#define LOAD(place) __atomic_load_n((place), __ATOMIC_RELAXED)

void cairn_log_write(cairn_runtime *runtime, const struct cairn_log_message *message)
{
    if (runtime == NULL || message == NULL)
        return;
    cairn_log *log = log_of(runtime_sink(runtime));
    if (!event_has_log(log))
        return;
    struct cairn_log_event event = {
        .kind = CAIRN_LOG_HOST,
        .address = LOAD(&message->address),
        .id = LOAD(&message->id),
        .a = LOAD(&message->values[0]),
        .b = LOAD(&message->values[1]),
    };
    if (message->compilation_ns != 0) {
        event.kind = CAIRN_LOG_COMPILATION;
        event.b = log_clock(log);
        event.a = event.b - log_ticks(log, message->compilation_ns);
    }
    log_record(log, &event, message->name, message->text);
}
