/*
 * The tables of a report: which columns each has, and what is in their cells.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/report/report.h"

#include <cairn/ic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- Cells ---- */

static struct cell count_of(uint64_t number)
{
    return (struct cell){.kind = CELL_COUNT, .number = number};
}

static struct cell time_of(uint64_t ns) { return (struct cell){.kind = CELL_TIME, .number = ns}; }

static struct cell duration_of(uint64_t ns)
{
    return (struct cell){.kind = CELL_DURATION, .number = ns};
}

static struct cell address_of(uint64_t address)
{
    return (struct cell){.kind = address == 0 ? CELL_UNKNOWN : CELL_ADDRESS, .number = address};
}

/* Returns `cell`, or an empty one. */
static struct cell known(bool is_known, struct cell cell)
{
    return is_known ? cell : (struct cell){.kind = CELL_UNKNOWN};
}

static struct cell text_of(const struct report *report, uint64_t text)
{
    const char *found = report_text(report, (uint32_t)text);
    return (struct cell){.kind = found == NULL ? CELL_UNKNOWN : CELL_TEXT, .text = found};
}

static struct cell own_text(const char *text)
{
    struct cell cell = {.kind = CELL_TEXT};
    snprintf(cell.space, sizeof cell.space, "%s", text);
    return cell;
}

/* Returns the name of a function, or of its module, or the number of the module. */
static struct cell function_name(const struct report *report, uint64_t name, uint64_t number)
{
    const struct report_module *module = report_find_module(report, number);
    struct cell cell = {.kind = CELL_TEXT};
    cell.text = report_text(report, (uint32_t)name);
    if (cell.text != NULL)
        return cell;
    const char *of_module = module == NULL ? NULL : report_text(report, module->name);
    if (of_module != NULL)
        snprintf(cell.space, sizeof cell.space, "(in %.80s)", of_module);
    else if (number != 0)
        snprintf(cell.space, sizeof cell.space, "(in module %llu)", (unsigned long long)number);
    else
        snprintf(cell.space, sizeof cell.space, "(no name)");
    return cell;
}

/* Returns how often each action was chosen, such as "resume 12, continue 3". */
static struct cell actions_of(const uint64_t actions[ACTION_COUNT], uint64_t total)
{
    static const char *const names[ACTION_COUNT] = {"continue", "return", "enter", "resume"};
    struct cell cell = {.kind = CELL_TEXT};
    int used = 0;
    uint64_t others = total;
    for (unsigned i = 0; i < ACTION_COUNT; i++) {
        others -= actions[i];
        if (actions[i] > 0)
            used += snprintf(cell.space + used, sizeof cell.space - (size_t)used, "%s%s %llu",
                             used == 0 ? "" : ", ", names[i], (unsigned long long)actions[i]);
    }
    if (others > 0)
        used += snprintf(cell.space + used, sizeof cell.space - (size_t)used, "%sother %llu",
                         used == 0 ? "" : ", ", (unsigned long long)others);
    return known(used > 0, cell);
}

void format_duration(uint64_t ns, char *text, size_t size)
{
    if (ns < 1000)
        snprintf(text, size, "%u ns", (unsigned)ns);
    else if (ns < 1000000)
        snprintf(text, size, "%.1f \xc2\xb5s", (double)ns / 1e3);
    else if (ns < 1000000000)
        snprintf(text, size, "%.2f ms", (double)ns / 1e6);
    else
        snprintf(text, size, "%.3f s", (double)ns / 1e9);
}

void format_date(uint64_t ns, char *text, size_t size)
{
    time_t seconds = (time_t)(ns / 1000000000);
    struct tm date;
    if (gmtime_r(&seconds, &date) == NULL ||
        strftime(text, size, "%Y-%m-%d %H:%M:%S UTC", &date) == 0)
        snprintf(text, size, "at an unknown time");
}

void cell_format(const struct cell *cell, char text[CELL_BYTES])
{
    text[0] = '\0';
    if (cell->kind == CELL_COUNT)
        snprintf(text, CELL_BYTES, "%llu", (unsigned long long)cell->number);
    else if (cell->kind == CELL_TIME)
        snprintf(text, CELL_BYTES, "%.6f s", (double)cell->number / 1e9);
    else if (cell->kind == CELL_DURATION)
        format_duration(cell->number, text, CELL_BYTES);
    else if (cell->kind == CELL_ADDRESS)
        snprintf(text, CELL_BYTES, "0x%llx", (unsigned long long)cell->number);
    else if (cell->kind == CELL_TEXT && cell->text == NULL)
        snprintf(text, CELL_BYTES, "%s", cell->space);
}

/* ---- Cells that are lists ---- */

bool cell_is_list(const struct cell *cell) { return cell->kind >= CELL_STATES; }

const char *cell_separator(const struct cell *cell)
{
    return cell->kind == CELL_STATES ? " \xe2\x86\x92 " : ", ";
}

static const char *state_name(uint32_t state, char space[CELL_BYTES])
{
    if (state <= CAIRN_IC_DESTROYED)
        return cairn_ic_state_name((enum cairn_ic_state)state);
    snprintf(space, CELL_BYTES, "state %u", state);
    return space;
}

/* The states of a cache: first the one before the first change, then one item for each run of
 * changes to the same state, which begins at item `number` with the highest bit set. A new cache is
 * recorded as a change from empty to empty. */
#define AFTER_FIRST (UINT64_C(1) << 63)

static bool next_state(const struct report *report, uint64_t *at, struct cell_item *item)
{
    const struct report_change *changes = report->changes.items;
    uint64_t index = *at & ~AFTER_FIRST;
    char space[CELL_BYTES];
    if (index == NO_LINK)
        return false;
    const struct report_change *change = &changes[index];
    item->time = change->time;
    if ((*at & AFTER_FIRST) == 0) {
        while (index != NO_LINK && changes[index].to == change->from && changes[index].key == 0)
            index = changes[index].next;
        *at = index | AFTER_FIRST;
        snprintf(item->text, sizeof item->text, "%s", state_name(change->from, space));
        return true;
    }
    unsigned long long count = 0;
    uint32_t state = change->to;
    for (; index != NO_LINK && changes[index].to == state; count++)
        index = changes[index].next;
    *at = index | AFTER_FIRST;
    if (count == 1)
        snprintf(item->text, sizeof item->text, "%s", state_name(state, space));
    else
        snprintf(item->text, sizeof item->text, "%.40s \xc3\x97%llu", state_name(state, space),
                 count);
    return true;
}

static bool next_key(const struct report *report, uint64_t *at, struct cell_item *item)
{
    const struct report_change *changes = report->changes.items;
    while (*at != NO_LINK && changes[*at].key == 0)
        *at = changes[*at].next;
    if (*at == NO_LINK)
        return false;
    item->time = changes[*at].time;
    item->name = report_text(report, changes[*at].key_name);
    snprintf(item->text, sizeof item->text, item->name == NULL ? "0x%llx" : " (0x%llx)",
             (unsigned long long)changes[*at].key);
    *at = changes[*at].next;
    return true;
}

static bool next_hit(const struct report *report, uint64_t *at, struct cell_item *item)
{
    if (*at == NO_LINK)
        return false;
    const struct report_hit *hit = (const struct report_hit *)report->hits.items + *at;
    *at = hit->next;
    item->time = hit->time;
    item->module = hit->module;
    item->address = hit->address;
    item->name = report_text(report, hit->name);
    if (hit->module != 0)
        snprintf(item->text, sizeof item->text, "%s(module %llu)", item->name == NULL ? "" : " ",
                 (unsigned long long)hit->module);
    else if (item->name == NULL || hit->address != 0)
        snprintf(item->text, sizeof item->text, "%s(at 0x%llx)", item->name == NULL ? "" : " ",
                 (unsigned long long)hit->address);
    return true;
}

bool cell_next(const struct report *report, const struct cell *cell, uint64_t *at,
               struct cell_item *item)
{
    *item = (struct cell_item){.name = NULL};
    if (cell->kind == CELL_STATES)
        return next_state(report, at, item);
    return cell->kind == CELL_KEYS ? next_key(report, at, item) : next_hit(report, at, item);
}

/* ---- Functions ---- */

static uint64_t function_rank(const void *item)
{
    const struct report_function *function = item;
    uint64_t exits = function->exit_count < UINT32_MAX ? function->exit_count : UINT32_MAX;
    return function->deopt_count << 32 | exits;
}

static struct cell top_reason(const struct report *report, const struct report_function *function)
{
    const struct report_deopt *deopts = report->deopts.list.items;
    return text_of(report, function->top_deopt == 0 ? 0 : deopts[function->top_deopt - 1].reason);
}

static void function_row(const struct report *report, const void *item, struct cell *cells)
{
    const struct report_function *function = item;
    cells[0] = function_name(report, function->name, function->module);
    cells[1] = count_of(function->deopt_count);
    cells[2] = count_of(function->exit_count);
    cells[3] = actions_of(function->actions, function->deopt_count);
    cells[4] = top_reason(report, function);
    cells[5] = count_of(function->invalidated_count);
    cells[6] = count_of(function->compilation_count);
    cells[7] = known(function->compilation_count > 0, duration_of(function->compilation_ns));
    cells[8] = count_of(function->version_count);
    cells[9] = count_of(function->load_count);
    cells[10] = known(function->load_count > 0, count_of(function->code_bytes));
    cells[11] = count_of(function->cache_changes);
}

/* ---- Deopts ---- */

static uint64_t deopt_rank(const void *item) { return ((const struct report_deopt *)item)->count; }

static void deopt_row(const struct report *report, const void *item, struct cell *cells)
{
    const struct report_deopt *deopt = item;
    const struct report_function *function =
        (const struct report_function *)report->functions.list.items + deopt->function;
    cells[0] = function_name(report, function->name, function->module);
    cells[1] = count_of(deopt->count);
    cells[2] = text_of(report, deopt->reason);
    cells[3] = count_of(deopt->id);
    cells[4] = address_of(deopt->address);
    cells[5] = known(deopt->position != UINT64_MAX, count_of(deopt->position));
    cells[6] = text_of(report, deopt->source);
    cells[7] = deopt->count > 0 ? actions_of(deopt->actions, deopt->count)
                                : own_text("the handler did not end");
    cells[8] =
        known(deopt->count > 0, duration_of(deopt->count > 0 ? deopt->total_ns / deopt->count : 0));
    cells[9] = time_of(deopt->first);
    cells[10] = time_of(deopt->last);
}

/* ---- Caches ---- */

static uint64_t cache_rank(const void *item)
{
    return ((const struct report_cache *)item)->change_count;
}

static void cache_row(const struct report *report, const void *item, struct cell *cells)
{
    const struct report_cache *cache = item;
    const struct report_change *changes = report->changes.items;
    char space[CELL_BYTES];
    cells[0] = function_name(report, cache->name, cache->module);
    cells[1] = count_of(cache->id);
    cells[2] = address_of(cache->address);
    cells[3] = own_text(state_name(changes[cache->last_change].to, space));
    cells[4] = (struct cell){.kind = CELL_STATES, .number = cache->first_change};
    cells[5] = count_of(cache->change_count);
    cells[6] = count_of(cache->key_count);
    cells[7] = (struct cell){.kind = CELL_KEYS, .number = cache->first_change};
    cells[8] = time_of(changes[cache->first_change].time);
    cells[9] = time_of(cache->last);
}

/* ---- Invalidations ---- */

static void invalidation_row(const struct report *report, const void *item, struct cell *cells)
{
    const struct report_invalidation *invalidation = item;
    cells[0] = count_of(invalidation->number);
    cells[1] = time_of(invalidation->time);
    cells[2] = text_of(report, invalidation->reason);
    cells[3] = known(invalidation->is_known, count_of(invalidation->site_count));
    cells[4] = count_of(invalidation->hit_count);
    cells[5] = (struct cell){.kind = CELL_HITS, .number = invalidation->first_hit};
}

/* ---- Compilations ---- */

static void compilation_row(const struct report *report, const void *item, struct cell *cells)
{
    const struct report_compilation *compilation = item;
    cells[0] = function_name(report, compilation->name, compilation->module);
    cells[1] = text_of(report, compilation->tier);
    cells[2] = time_of(compilation->start);
    cells[3] = duration_of(compilation->end - compilation->start);
    cells[4] = count_of(compilation->thread);
}

/* ---- Versions ---- */

static void version_row(const struct report *report, const void *item, struct cell *cells)
{
    const struct report_version *version = item;
    cells[0] = function_name(report, version->name, 0);
    cells[1] = count_of(version->number);
    cells[2] = time_of(version->time);
    cells[3] = own_text(version->is_compiled ? "compiled" : "interpreter");
    cells[4] = address_of(version->address);
}

/* ---- Modules ---- */

static void module_row(const struct report *report, const void *item, struct cell *cells)
{
    const struct report_module *module = item;
    cells[0] = count_of(module->number);
    cells[1] = text_of(report, module->name);
    cells[2] = address_of(module->address);
    cells[3] = known(module->is_loaded, count_of(module->code_bytes));
    cells[4] = count_of(module->function_count);
    cells[5] = known(module->compilation_ns != 0, duration_of(module->compilation_ns));
    cells[6] = known(module->is_loaded, time_of(module->loaded));
    cells[7] = known(module->is_retired, time_of(module->retired));
}

/* ---- Patched sites ---- */

static uint64_t site_rank(const void *item)
{
    return ((const struct report_site *)item)->patch_count;
}

static void site_row(const struct report *report, const void *item, struct cell *cells)
{
    static const char *const states[] = {"no-op", "call", "jump", "code"};
    const struct report_site *site = item;
    uint32_t name =
        site->name != 0 ? site->name : report_function_at(report, site->module, site->address);
    cells[0] = function_name(report, name, site->module);
    cells[1] = count_of(site->id);
    cells[2] = address_of(site->address);
    cells[3] = count_of(site->patch_count);
    cells[4] = site->state < sizeof states / sizeof *states ? own_text(states[site->state])
                                                            : count_of(site->state);
    cells[5] = address_of(site->target);
    cells[6] = text_of(report, report_function_called(report, site->target));
    cells[7] = time_of(site->last);
}

/* ---- Grace periods ---- */

static void grace_row(const struct report *report, const void *item, struct cell *cells)
{
    const struct report_grace *grace = item;
    (void)report;
    bool is_whole = grace->has_begun && grace->has_ended && grace->ended >= grace->begun;
    cells[0] = known(grace->has_begun, time_of(grace->begun));
    cells[1] = known(grace->has_ended, time_of(grace->ended));
    cells[2] = known(is_whole, duration_of(is_whole ? grace->ended - grace->begun : 0));
    cells[3] = known(grace->has_ended, count_of(grace->freed));
    cells[4] = count_of(grace->thread);
}

/* ---- The host's messages ---- */

static void message_row(const struct report *report, const void *item, struct cell *cells)
{
    const struct report_message *message = item;
    cells[0] = time_of(message->time);
    cells[1] = text_of(report, message->text);
    cells[2] = count_of(message->a);
    cells[3] = count_of(message->b);
    cells[4] = count_of(message->thread);
}

/* ---- Tables ---- */

const struct report_table report_tables[REPORT_TABLE_COUNT] = {
    {.name = "functions",
     .title = "Functions",
     .caption = "Functions, those with the most deopts first",
     .columns = {{"function", "function"},
                 {"deopts", "deopts"},
                 {"exits", "exits"},
                 {"actions", "chosen by handlers"},
                 {"reason", "most frequent reason"},
                 {"invalidations", "invalidated"},
                 {"compilations", "compilations"},
                 {"compilation_ns", "compiling"},
                 {"versions", "versions"},
                 {"modules", "modules"},
                 {"code_bytes", "bytes of code"},
                 {"cache_changes", "cache changes"}},
     .list = offsetof(struct report, functions.list),
     .item_bytes = sizeof(struct report_function),
     .row = function_row,
     .rank = function_rank,
     .is_in_text = true},
    {.name = "deopts",
     .title = "Deopts",
     .caption = "Deopts by function, record, interpreter position and reason",
     .columns = {{"function", "function"},
                 {"deopts", "deopts"},
                 {"reason", "reason"},
                 {"site", "site (record)"},
                 {"address", "address"},
                 {"position", "interpreter position"},
                 {"source", "source"},
                 {"actions", "chosen by handlers"},
                 {"mean_ns", "mean time"},
                 {"first", "first"},
                 {"last", "last"}},
     .list = offsetof(struct report, deopts.list),
     .item_bytes = sizeof(struct report_deopt),
     .row = deopt_row,
     .rank = deopt_rank,
     .is_in_text = true},
    {.name = "caches",
     .title = "Inline caches",
     .caption = "Inline caches, those with the most changes first",
     .columns = {{"function", "function"},
                 {"site", "site (record)"},
                 {"address", "address"},
                 {"state", "state at the end"},
                 {"history", "history"},
                 {"changes", "changes"},
                 {"key_count", "keys"},
                 {"keys", "keys in order"},
                 {"first", "first change"},
                 {"last", "last change"}},
     .list = offsetof(struct report, caches.list),
     .item_bytes = sizeof(struct report_cache),
     .row = cache_row,
     .rank = cache_rank,
     .is_in_text = true},
    {.name = "invalidations",
     .title = "Invalidations",
     .caption = "Invalidations, and what each of them hit",
     .columns = {{"number", "number"},
                 {"time", "time"},
                 {"reason", "reason"},
                 {"sites", "sites changed"},
                 {"hit_count", "functions hit"},
                 {"hits", "which"}},
     .list = offsetof(struct report, invalidations),
     .item_bytes = sizeof(struct report_invalidation),
     .row = invalidation_row,
     .is_in_text = true},
    {.name = "compilations",
     .title = "Compilations",
     .caption = "Compilations, in the order in which they ended",
     .columns = {{"function", "function"},
                 {"tier", "tier"},
                 {"start", "start"},
                 {"duration_ns", "duration"},
                 {"thread", "thread"}},
     .list = offsetof(struct report, compilations),
     .item_bytes = sizeof(struct report_compilation),
     .row = compilation_row},
    {.name = "versions",
     .title = "Versions",
     .caption = "Versions of entries, in the order in which they were set",
     .columns = {{"function", "function"},
                 {"version", "version"},
                 {"time", "time"},
                 {"kind", "kind"},
                 {"address", "address"}},
     .list = offsetof(struct report, versions),
     .item_bytes = sizeof(struct report_version),
     .row = version_row},
    {.name = "modules",
     .title = "Modules",
     .caption = "Modules, in the order in which they were loaded",
     .columns = {{"module", "module"},
                 {"name", "name"},
                 {"address", "address"},
                 {"code_bytes", "bytes of code"},
                 {"functions", "functions"},
                 {"compilation_ns", "compiled in"},
                 {"loaded", "loaded"},
                 {"retired", "retired"}},
     .list = offsetof(struct report, modules.list),
     .item_bytes = sizeof(struct report_module),
     .row = module_row},
    {.name = "sites",
     .title = "Patched sites",
     .caption = "Patched sites, those with the most changes first",
     .columns = {{"function", "function"},
                 {"site", "site (record)"},
                 {"address", "address"},
                 {"changes", "changes"},
                 {"state", "state at the end"},
                 {"target", "target"},
                 {"target_function", "function at the target"},
                 {"last", "last change"}},
     .list = offsetof(struct report, sites.list),
     .item_bytes = sizeof(struct report_site),
     .row = site_row,
     .rank = site_rank},
    {.name = "grace_periods",
     .title = "Grace periods",
     .caption = "Grace periods, after which retired modules are freed",
     .columns = {{"begun", "begun"},
                 {"ended", "ended"},
                 {"duration_ns", "duration"},
                 {"freed", "modules freed"},
                 {"thread", "thread"}},
     .list = offsetof(struct report, graces),
     .item_bytes = sizeof(struct report_grace),
     .row = grace_row},
    {.name = "messages",
     .title = "Messages of the host",
     .caption = "Messages of the host, in the order of the log",
     .columns = {{"time", "time"},
                 {"text", "message"},
                 {"a", "first number"},
                 {"b", "second number"},
                 {"thread", "thread"}},
     .list = offsetof(struct report, messages),
     .item_bytes = sizeof(struct report_message),
     .row = message_row},
};

unsigned table_column_count(const struct report_table *table)
{
    unsigned count = 0;
    while (count < COLUMNS_MAX && table->columns[count].key != NULL)
        count++;
    return count;
}

static const struct list *list_of(const struct report *report, const struct report_table *table)
{
    return (const struct list *)(const void *)((const char *)report + table->list);
}

static const void *item_of(const struct report *report, const struct report_table *table,
                           size_t row)
{
    return (const char *)list_of(report, table)->items + row * table->item_bytes;
}

size_t table_row_count(const struct report *report, const struct report_table *table)
{
    return list_of(report, table)->count;
}

void table_row(const struct report *report, const struct report_table *table, size_t row,
               struct cell cells[COLUMNS_MAX])
{
    table->row(report, item_of(report, table, row), cells);
}

struct ranked {
    uint64_t rank;
    uint32_t row;
};

static int compare_ranks(const void *left, const void *right)
{
    const struct ranked *a = left;
    const struct ranked *b = right;
    int order = compare_numbers(b->rank, a->rank);
    return order != 0 ? order : compare_numbers(a->row, b->row);
}

uint32_t *table_order(const struct report *report, const struct report_table *table)
{
    size_t count = table_row_count(report, table);
    uint32_t *order = malloc((count > 0 ? count : 1) * sizeof *order);
    struct ranked *ranked = malloc((count > 0 ? count : 1) * sizeof *ranked);
    for (size_t i = 0; order != NULL && ranked != NULL && i < count; i++)
        ranked[i] = (struct ranked){
            table->rank == NULL ? 0 : table->rank(item_of(report, table, i)), (uint32_t)i};
    if (order != NULL && ranked != NULL) {
        qsort(ranked, count, sizeof *ranked, compare_ranks);
        for (size_t i = 0; i < count; i++)
            order[i] = ranked[i].row;
    } else {
        free(order);
        order = NULL;
    }
    free(ranked);
    return order;
}
