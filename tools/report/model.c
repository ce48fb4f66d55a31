/*
 * Collecting what the events of a log say. Each event is looked at once, and each table finds its
 * element by a key (tools/cli/keyed.h).
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/report/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NANOSECONDS 1000000000U
/* About 292 years: later times come from damaged events. */
#define TIME_MAX (UINT64_C(1) << 63)

void report_note(struct report *report, const char *format, ...)
{
    if (report->note_count == REPORT_NOTES_MAX)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report->notes[report->note_count++], LOG_MESSAGE_BYTES, format, arguments);
    va_end(arguments);
}

/* ---- Lists ---- */

/* Returns a new element of the list, of zeros. NULL, after noting it, without memory. */
static void *add(struct report *report, struct list *list, size_t item_bytes)
{
    void *item = list->count < NO_LINK ? list_add(list, item_bytes) : NULL;
    report->lacks_memory |= item == NULL;
    return item;
}

/* Returns the element with the key (see keyed_obtain). NULL, after noting it, without memory. */
static void *obtain(struct report *report, struct keyed_list *keyed, const uint64_t *key,
                    bool *is_new)
{
    void *item = keyed_obtain(keyed, key, is_new);
    report->lacks_memory |= item == NULL;
    return item;
}

/* ---- Strings ---- */

const char *report_text(const struct report *report, uint32_t text)
{
    const size_t *offsets = report->text_offsets.items;
    return text == 0 ? NULL : (const char *)report->texts.items + offsets[text - 1];
}

#define NOT_UTF8 0xffU

/* Appends the string to the texts, with a byte that is not UTF-8 in place of each zero byte. */
static bool copy_text(struct report *report, const struct log_item *item)
{
    for (size_t i = 0; i <= item->text_bytes; i++) {
        uint8_t byte = i == item->text_bytes ? 0 : item->text[i] == 0 ? NOT_UTF8 : item->text[i];
        if (!list_append(&report->texts, &byte, 1))
            return false;
    }
    return true;
}

/* Finds a string with the same text that was kept before, or 0. */
static uint32_t find_text(const struct report *report, const char *text, uint32_t hash)
{
    for (const struct hash_place *place = hash_set_first(&report->text_set, hash);
         place->number != 0; place = hash_set_next(&report->text_set, place))
        if (place->hash == hash && strcmp(report_text(report, place->number), text) == 0)
            return place->number;
    return 0;
}

static void take_string(struct report *report, const struct log_item *item)
{
    if (item->text == NULL) {
        report->invalid_string_count++;
        return;
    }
    size_t begin = report->texts.count;
    if (!copy_text(report, item)) {
        report->lacks_memory = true;
        return;
    }
    const char *text = (const char *)report->texts.items + begin;
    uint32_t hash = (uint32_t)(hash_text(&report->text_set.key, text, item->text_bytes) >> 32);
    uint32_t found = find_text(report, text, hash);
    if (found != 0) {
        report->texts.count = begin;
    } else {
        size_t *offset = add(report, &report->text_offsets, sizeof *offset);
        if (offset == NULL)
            return;
        *offset = begin;
        found = (uint32_t)report->text_offsets.count;
        report->lacks_memory |=
            !hash_set_add(&report->text_set, &report->allocator, hash, found - 1);
    }
    report->text_of_slot[item->slot] = found;
}

/* Returns the string that an event refers to, and counts a reference to none. */
static uint32_t take_text(struct report *report, uint32_t reference)
{
    bool is_slot = reference > 0 && reference <= report->slots.count;
    uint32_t text = is_slot ? report->text_of_slot[reference - 1] : 0;
    report->lost_text_count += reference != 0 && text == 0;
    return text;
}

/* ---- Times ---- */

uint64_t report_time(const struct report *report, uint64_t clock)
{
    uint64_t ticks = clock - report->header.start_clock;
    if (clock < report->header.start_clock)
        return 0;
    if (report->header.clock_hz == NANOSECONDS)
        return ticks < TIME_MAX ? ticks : TIME_MAX;
    double ns = (double)ticks * NANOSECONDS / (double)report->header.clock_hz;
    return ns < (double)TIME_MAX ? (uint64_t)ns : TIME_MAX;
}

/* ---- Events ---- */

/* An event, with what all of them have in common. */
struct taken {
    const struct cairn_log_event *event;
    uint64_t time;
    uint32_t name;
    uint32_t text;
};

static struct report_function *obtain_function(struct report *report, const struct taken *taken)
{
    const uint64_t key[] = {taken->name, taken->name == 0 ? taken->event->module : 0};
    return obtain(report, &report->functions, key, NULL);
}

static uint64_t function_number(const struct report *report, const struct report_function *function)
{
    return (uint64_t)(function - (const struct report_function *)report->functions.list.items);
}

static void take_loaded(struct report *report, const struct taken *taken)
{
    const struct cairn_log_event *event = taken->event;
    struct report_module *module = obtain(report, &report->modules, &event->module, NULL);
    if (module == NULL)
        return;
    module->address = event->address;
    module->code_bytes = event->a;
    module->compilation_ns = event->b;
    module->loaded = taken->time;
    module->name = taken->name;
    module->is_loaded = true;
}

static void take_retired(struct report *report, const struct taken *taken)
{
    struct report_module *module = obtain(report, &report->modules, &taken->event->module, NULL);
    if (module == NULL)
        return;
    module->retired = taken->time;
    module->name = taken->name != 0 ? taken->name : module->name;
    module->is_retired = true;
}

static void take_function(struct report *report, const struct taken *taken)
{
    const struct cairn_log_event *event = taken->event;
    struct report_module *module = obtain(report, &report->modules, &event->module, NULL);
    struct report_function *function = obtain_function(report, taken);
    struct report_code *code = add(report, &report->code, sizeof *code);
    if (report->lacks_memory)
        return;
    module->function_count++;
    function->load_count++;
    function->code_bytes += event->a;
    *code = (struct report_code){event->module, event->address, event->a, taken->name};
}

static void take_patched(struct report *report, const struct taken *taken)
{
    const struct cairn_log_event *event = taken->event;
    const uint64_t key[] = {event->address, event->id, event->module};
    struct report_site *site = obtain(report, &report->sites, key, NULL);
    if (site == NULL)
        return;
    site->patch_count++;
    site->state = event->a;
    site->target = event->b;
    site->last = taken->time;
    site->name = taken->name != 0 ? taken->name : site->name;
}

static void take_cache(struct report *report, const struct taken *taken)
{
    const struct cairn_log_event *event = taken->event;
    const uint64_t key[] = {event->address, event->id, event->module};
    bool is_new;
    struct report_cache *cache = obtain(report, &report->caches, key, &is_new);
    struct report_function *function = obtain_function(report, taken);
    uint32_t number = (uint32_t)report->changes.count;
    struct report_change *change = add(report, &report->changes, sizeof *change);
    if (report->lacks_memory)
        return;
    *change = (struct report_change){.time = taken->time,
                                     .key = event->b,
                                     .key_name = taken->text,
                                     .from = (uint32_t)(event->a >> 32),
                                     .to = (uint32_t)event->a,
                                     .next = NO_LINK};
    struct report_change *changes = report->changes.items;
    if (is_new)
        cache->first_change = number;
    else
        changes[cache->last_change].next = number;
    cache->last_change = number;
    cache->change_count++;
    cache->key_count += event->b != 0;
    cache->last = taken->time;
    cache->name = taken->name != 0 ? taken->name : cache->name;
    function->cache_changes++;
}

/* Returns the record's exits. */
static struct report_exit *obtain_exit(struct report *report, const struct taken *taken,
                                       const struct report_function *function)
{
    bool is_new;
    const uint64_t key[] = {function_number(report, function), taken->event->id};
    struct report_exit *taken_exit = obtain(report, &report->exits, key, &is_new);
    if (taken_exit == NULL)
        return NULL;
    if (is_new) {
        taken_exit->position = UINT64_MAX;
        taken_exit->first = taken->time;
    }
    taken_exit->last = taken->time;
    taken_exit->address = taken->event->address;
    return taken_exit;
}

static void take_exit(struct report *report, const struct taken *taken)
{
    struct report_function *function = obtain_function(report, taken);
    struct report_exit *taken_exit = function == NULL ? NULL : obtain_exit(report, taken, function);
    if (taken_exit == NULL)
        return;
    function->exit_count++;
    taken_exit->exit_count++;
    if (taken->event->a == UINT64_MAX)
        return;
    taken_exit->position = taken->event->a;
    taken_exit->source = taken->text;
}

/* The low half of `a` is the action, the high half the position plus 1. */
static void take_deopt(struct report *report, const struct taken *taken)
{
    const struct cairn_log_event *event = taken->event;
    uint32_t action = (uint32_t)event->a;
    uint64_t position = event->a >> 32 == 0 ? UINT64_MAX : (event->a >> 32) - 1;
    bool is_new;
    struct report_function *function = obtain_function(report, taken);
    struct report_exit *taken_exit = function == NULL ? NULL : obtain_exit(report, taken, function);
    if (taken_exit == NULL)
        return;
    if (position == UINT64_MAX)
        position = taken_exit->position;
    const uint64_t key[] = {taken_exit->function, event->id, position, taken->text};
    struct report_deopt *deopt = obtain(report, &report->deopts, key, &is_new);
    if (deopt == NULL)
        return;
    function->deopt_count++;
    taken_exit->deopt_count++;
    if (is_new)
        deopt->first = taken->time;
    deopt->last = taken->time;
    deopt->address = event->address;
    if (position == taken_exit->position && taken_exit->source != 0)
        deopt->source = taken_exit->source;
    deopt->count++;
    deopt->total_ns += event->b;
    if (action < ACTION_COUNT) {
        deopt->actions[action]++;
        function->actions[action]++;
    }
}

/* Returns the last invalidation with the number, which is a new one if `is_event` and the log has
 * the event of the last one already. */
static struct report_invalidation *obtain_invalidation(struct report *report, uint64_t number,
                                                       bool is_event)
{
    struct open {
        uint64_t number; /* key */
        uint64_t row;    /* of the invalidation */
    };
    bool is_new;
    struct open *open = obtain(report, &report->open_invalidations, &number, &is_new);
    if (open == NULL)
        return NULL;
    struct report_invalidation *rows = report->invalidations.items;
    if (!is_new && (!is_event || !rows[open->row].is_known))
        return &rows[open->row];
    open->row = report->invalidations.count;
    struct report_invalidation *invalidation =
        add(report, &report->invalidations, sizeof *invalidation);
    if (invalidation != NULL)
        *invalidation = (struct report_invalidation){
            .number = number, .first_hit = NO_LINK, .last_hit = NO_LINK};
    return invalidation;
}

static void take_invalidation(struct report *report, const struct taken *taken)
{
    struct report_invalidation *invalidation = obtain_invalidation(report, taken->event->a, true);
    if (invalidation == NULL)
        return;
    invalidation->time = taken->time;
    invalidation->site_count = taken->event->b;
    invalidation->reason = taken->text;
    invalidation->is_known = true;
}

static void take_invalidated(struct report *report, const struct taken *taken)
{
    struct report_invalidation *invalidation = obtain_invalidation(report, taken->event->a, false);
    struct report_function *function = obtain_function(report, taken);
    uint32_t number = (uint32_t)report->hits.count;
    struct report_hit *hit = add(report, &report->hits, sizeof *hit);
    if (report->lacks_memory)
        return;
    *hit = (struct report_hit){taken->time, taken->event->module, taken->event->address,
                               taken->name, NO_LINK};
    if (!invalidation->is_known)
        invalidation->time = taken->time;
    if (invalidation->hit_count++ == 0)
        invalidation->first_hit = number;
    else
        ((struct report_hit *)report->hits.items)[invalidation->last_hit].next = number;
    invalidation->last_hit = number;
    function->invalidated_count++;
}

/* A grace period may end in another thread. It is known by its token. */
static void take_grace(struct report *report, const struct taken *taken)
{
    struct open {
        uint64_t token; /* key */
        uint64_t row;   /* of the grace period plus 1 */
    };
    bool is_end = taken->event->a != 0;
    struct open *open = obtain(report, &report->open_graces, &taken->event->id, NULL);
    if (open == NULL)
        return;
    struct report_grace *grace = NULL;
    if (is_end && open->row != 0)
        grace = (struct report_grace *)report->graces.items + (open->row - 1);
    else
        grace = add(report, &report->graces, sizeof *grace);
    if (grace == NULL)
        return;
    grace->thread = taken->event->thread;
    open->row = is_end ? 0 : report->graces.count;
    if (is_end) {
        grace->ended = taken->time;
        grace->freed = taken->event->b;
        grace->has_ended = true;
    } else {
        grace->begun = taken->time;
        grace->has_begun = true;
    }
}

static void take_version(struct report *report, const struct taken *taken)
{
    struct report_function *function = obtain_function(report, taken);
    struct report_version *version = add(report, &report->versions, sizeof *version);
    if (report->lacks_memory)
        return;
    function->version_count++;
    *version = (struct report_version){taken->time, taken->event->a, taken->event->address,
                                       taken->name, taken->event->b != 0};
}

static void take_host(struct report *report, const struct taken *taken)
{
    struct report_message *message = add(report, &report->messages, sizeof *message);
    if (message != NULL)
        *message = (struct report_message){taken->time, taken->event->a, taken->event->b,
                                           taken->text, taken->event->thread};
}

static void take_compilation(struct report *report, const struct taken *taken)
{
    struct report_function *function = obtain_function(report, taken);
    struct report_compilation *compilation =
        add(report, &report->compilations, sizeof *compilation);
    if (report->lacks_memory)
        return;
    *compilation = (struct report_compilation){
        .start = report_time(report, taken->event->a),
        .end = report_time(report, taken->event->b),
        .name = taken->name,
        .module = taken->event->module,
        .tier = taken->text,
        .thread = taken->event->thread,
    };
    if (compilation->end < compilation->start)
        compilation->end = compilation->start;
    if (compilation->end > report->end)
        report->end = compilation->end;
    function->compilation_count++;
    function->compilation_ns += compilation->end - compilation->start;
}

static void (*const takers[LOG_KIND_COUNT])(struct report *, const struct taken *) = {
    [CAIRN_LOG_MODULE_LOADED] = take_loaded,
    [CAIRN_LOG_MODULE_RETIRED] = take_retired,
    [CAIRN_LOG_FUNCTION] = take_function,
    [CAIRN_LOG_SITE_PATCHED] = take_patched,
    [CAIRN_LOG_CACHE] = take_cache,
    [CAIRN_LOG_EXIT] = take_exit,
    [CAIRN_LOG_DEOPT] = take_deopt,
    [CAIRN_LOG_INVALIDATION] = take_invalidation,
    [CAIRN_LOG_INVALIDATED] = take_invalidated,
    [CAIRN_LOG_GRACE] = take_grace,
    [CAIRN_LOG_VERSION_INSTALLED] = take_version,
    [CAIRN_LOG_HOST] = take_host,
    [CAIRN_LOG_COMPILATION] = take_compilation,
};

static void take_event(struct report *report, const struct cairn_log_event *event)
{
    if (event->kind >= LOG_KIND_COUNT) {
        report->unknown_count++;
        return;
    }
    const uint64_t thread = event->thread;
    const struct taken taken = {event, report_time(report, event->clock),
                                take_text(report, event->name), take_text(report, event->text)};
    report->counts[event->kind]++;
    report->event_count++;
    report->early_count += event->clock < report->header.start_clock;
    if (taken.time > report->end)
        report->end = taken.time;
    (void)obtain(report, &report->threads, &thread, NULL);
    takers[event->kind](report, &taken);
}

/* ---- After the last event ---- */

/* An exit without a deopt has its row among the deopts, too. */
static void add_unended_exits(struct report *report)
{
    const struct report_exit *exits = report->exits.list.items;
    for (size_t i = 0; i < report->exits.list.count; i++) {
        if (exits[i].deopt_count > 0)
            continue;
        const uint64_t key[] = {exits[i].function, exits[i].id, exits[i].position, 0};
        struct report_deopt *deopt = obtain(report, &report->deopts, key, NULL);
        if (deopt == NULL)
            return;
        deopt->address = exits[i].address;
        deopt->source = exits[i].source;
        deopt->exit_count = exits[i].exit_count;
        deopt->first = exits[i].first;
        deopt->last = exits[i].last;
    }
}

/* Finds the most frequent deopt of each function. */
static void find_top_deopts(struct report *report)
{
    struct report_function *functions = report->functions.list.items;
    const struct report_deopt *deopts = report->deopts.list.items;
    for (size_t i = 0; i < report->deopts.list.count; i++) {
        struct report_function *function = &functions[deopts[i].function];
        if (function->top_deopt == 0 || deopts[i].count > deopts[function->top_deopt - 1].count)
            function->top_deopt = (uint32_t)i + 1;
    }
}

static int compare_code(const void *left, const void *right)
{
    const struct report_code *a = left;
    const struct report_code *b = right;
    int order = compare_numbers(a->module, b->module);
    return order != 0 ? order : compare_numbers(a->address, b->address);
}

const struct report_module *report_find_module(const struct report *report, uint64_t number)
{
    return keyed_find(&report->modules, &number);
}

uint32_t report_function_at(const struct report *report, uint64_t module, uint64_t address)
{
    const struct report_code *code = report->code.items;
    const struct report_code wanted = {.module = module, .address = address};
    size_t low = 0;
    size_t high = report->code.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_code(&code[middle], &wanted) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_found = low > 0 && code[low - 1].module == module &&
                    address - code[low - 1].address < code[low - 1].bytes;
    return is_found ? code[low - 1].name : 0;
}

static int compare_code_addresses(const void *left, const void *right)
{
    const struct report_code *a = left;
    const struct report_code *b = right;
    int order = compare_numbers(a->address, b->address);
    return order != 0 ? order : compare_numbers(a->name, b->name);
}

/* Keeps one element for each address and name. */
static bool sort_by_address(struct report *report)
{
    const struct report_code *code = report->code.items;
    struct list *sorted = &report->code_by_address;
    for (size_t i = 0; i < report->code.count; i++)
        if (!list_append(sorted, &code[i], sizeof code[i]))
            return false;
    list_sort(sorted, sizeof *code, compare_code_addresses);
    struct report_code *items = sorted->items;
    size_t kept = 0;
    for (size_t i = 0; i < sorted->count; i++)
        if (kept == 0 || compare_code_addresses(&items[kept - 1], &items[i]) != 0)
            items[kept++] = items[i];
    sorted->count = kept;
    return true;
}

uint32_t report_function_called(const struct report *report, uint64_t address)
{
    const struct report_code *code = report->code_by_address.items;
    size_t above = 0;
    size_t high = report->code_by_address.count;
    while (above < high) {
        size_t middle = above + (high - above) / 2;
        if (code[middle].address <= address)
            above = middle + 1;
        else
            high = middle;
    }
    bool is_found = above > 0 && code[above - 1].address == address;
    bool is_only = above < 2 || code[above - 2].address != address;
    return is_found && is_only ? code[above - 1].name : 0;
}

void report_totals(const struct report *report, struct report_total totals[REPORT_TOTAL_COUNT])
{
    const uint64_t *counts = report->counts;
    const struct report_total all[REPORT_TOTAL_COUNT] = {
        {"exits", counts[CAIRN_LOG_EXIT]},
        {"deopts", counts[CAIRN_LOG_DEOPT]},
        {"cache changes", counts[CAIRN_LOG_CACHE]},
        {"invalidations", report->invalidations.count},
        {"compilations", report->compilations.count},
        {"modules loaded", counts[CAIRN_LOG_MODULE_LOADED]},
        {"modules retired", counts[CAIRN_LOG_MODULE_RETIRED]},
        {"grace periods", report->graces.count},
    };
    memcpy(totals, all, sizeof all);
}

#define WAS(count) ((count) == 1 ? "was" : "were")

/* Adds the sentences about what is in the slots. */
static void add_notes(struct report *report)
{
    const struct cairn_log_header *header = &report->header;
    unsigned long long unfinished = report->counts[CAIRN_LOG_INCOMPLETE];
    unsigned long long lost = report->lost_count;
    if (lost > 0)
        report_note(report,
                    "the log was full: %llu later event%s %s not recorded, because it has space "
                    "for %llu slots",
                    lost, plural(lost), WAS(lost), (unsigned long long)header->slot_count);
    if (unfinished > 0)
        report_note(report,
                    "%llu slot%s %s reserved but never completed: the process ended, or was still "
                    "writing",
                    unfinished, plural(unfinished), WAS(unfinished));
    if (report->unknown_count > 0)
        report_note(report, "%llu slot%s of a kind that this cairn does not know %s skipped",
                    (unsigned long long)report->unknown_count, plural(report->unknown_count),
                    WAS(report->unknown_count));
    if (report->invalid_string_count > 0)
        report_note(report, "%llu string%s %s skipped: longer than %d bytes, or than the log",
                    (unsigned long long)report->invalid_string_count,
                    plural(report->invalid_string_count), WAS(report->invalid_string_count),
                    CAIRN_LOG_STRING_BYTES_MAX);
    if (report->lost_text_count > 0)
        report_note(report,
                    "%llu name%s or reason%s of events %s not found: nothing that precedes the "
                    "event in the log is such a string",
                    (unsigned long long)report->lost_text_count, plural(report->lost_text_count),
                    plural(report->lost_text_count), WAS(report->lost_text_count));
    if (report->early_count > 0)
        report_note(report,
                    "%llu event%s %s before the start of the log by the clock: shown at its start",
                    (unsigned long long)report->early_count, plural(report->early_count),
                    report->early_count == 1 ? "is" : "are");
    report->is_damaged |= report->invalid_string_count > 0 || report->lost_text_count > 0;
}

static bool create_lists(struct report *report)
{
    size_t slot_count = report->slots.count > 0 ? report->slots.count : 1;
    report->text_of_slot = calloc(slot_count, sizeof *report->text_of_slot);
    return report->text_of_slot != NULL &&
           hash_set_init(&report->text_set, &report->allocator, 0) &&
           keyed_create(&report->threads, 1, sizeof(uint64_t)) &&
           keyed_create(&report->modules, 1, sizeof(struct report_module)) &&
           keyed_create(&report->functions, 2, sizeof(struct report_function)) &&
           keyed_create(&report->exits, 2, sizeof(struct report_exit)) &&
           keyed_create(&report->deopts, 4, sizeof(struct report_deopt)) &&
           keyed_create(&report->caches, 3, sizeof(struct report_cache)) &&
           keyed_create(&report->sites, 3, sizeof(struct report_site)) &&
           keyed_create(&report->open_invalidations, 1, 2 * sizeof(uint64_t)) &&
           keyed_create(&report->open_graces, 1, 2 * sizeof(uint64_t));
}

bool report_create(struct report *report)
{
    struct log_item item;
    const struct cairn_log_header *header = &report->header;
    memcpy(report->cairn_version, header->cairn_version, sizeof header->cairn_version);
    memcpy(report->architecture, header->architecture, sizeof header->architecture);
    report->lost_count = header->lost != 0 ? header->lost : header->next - log_used_slots(header);
    if (report->header.clock_hz == 0) {
        report_note(report, "the log does not have the frequency of its clock: times are shown as "
                            "if it counted nanoseconds");
        report->header.clock_hz = NANOSECONDS;
        report->is_damaged = true;
    }
    report->allocator = memory_allocator(NULL);
    report->lacks_memory = !create_lists(report);
    for (size_t next = 0; !report->lacks_memory && log_next(&report->slots, &next, &item);) {
        if (item.event.kind == CAIRN_LOG_STRING)
            take_string(report, &item);
        else if (item.event.kind == CAIRN_LOG_INCOMPLETE)
            report->counts[CAIRN_LOG_INCOMPLETE]++;
        else
            take_event(report, &item.event);
    }
    if (!report->lacks_memory)
        add_unended_exits(report);
    find_top_deopts(report);
    report->lacks_memory |= !sort_by_address(report);
    if (report->lacks_memory)
        return complain("%s: there is not enough memory for the report", report->path);
    list_sort(&report->code, sizeof(struct report_code), compare_code);
    report->last_event = report->end;
    if (report->header.end_clock != 0 &&
        report_time(report, report->header.end_clock) > report->end)
        report->end = report_time(report, report->header.end_clock);
    add_notes(report);
    return true;
}

void report_release(struct report *report)
{
    struct keyed_list *keyed[] = {
        &report->threads,    &report->modules, &report->functions,          &report->exits,
        &report->deopts,     &report->caches,  &report->open_invalidations, &report->sites,
        &report->open_graces};
    struct list *lists[] = {&report->texts,         &report->text_offsets,   &report->changes,
                            &report->invalidations, &report->hits,           &report->compilations,
                            &report->versions,      &report->graces,         &report->messages,
                            &report->code,          &report->code_by_address};
    for (size_t i = 0; i < sizeof keyed / sizeof *keyed; i++)
        keyed_release(keyed[i]);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        list_release(lists[i]);
    if (report->text_set.places != NULL)
        hash_set_release(&report->text_set, &report->allocator);
    free(report->text_of_slot);
}
