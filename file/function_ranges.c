/*
 * Finds the function whose code contains an address.
 *
 * The end of a function is given by its size. A function without a size ends at the next symbol or
 * at the end of the section. A label ends at the next symbol, or before it if its size says so. If
 * functions are nested, the innermost one is found. A label counts as a function where there is no
 * function, as in assembly, but not inside a function. The list of extents is built in one pass
 * over the sorted symbols, with a stack of the functions that have begun and not yet ended.
 *
 * SPDX-License-Identifier: MIT
 */
#include "file/function_ranges.h"

#include "base/error.h"
#include "base/memory.h"

/* ---- Growing lists ---- */

static enum cairn_status make_room(void **entries, size_t count, size_t *capacity, size_t size,
                                   const struct cairn_allocator *allocator,
                                   struct cairn_error *error)
{
    if (count < *capacity)
        return CAIRN_OK;
    size_t grown = *capacity + *capacity / 2 + 16;
    void *moved = memory_resize(allocator, *entries, *capacity * size, grown * size);
    if (moved == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu functions", grown);
    *entries = moved;
    *capacity = grown;
    return CAIRN_OK;
}

/* ---- Ends of functions ---- */

static uint64_t add_capped(uint64_t start, uint64_t size)
{
    return size > UINT64_MAX - start ? UINT64_MAX : start + size;
}

/* Returns the address after the function's last byte; the function's start if it is not in code. */
static uint64_t find_end(const struct extent_source *source, const struct symbol *symbol)
{
    const struct symbol_list *symbols = source->symbols;
    uint64_t size = symbols_size(symbols, symbol);
    const struct code_range *range =
        code_ranges_find(source->ranges, symbol->section, symbol->value);
    if (range == NULL)
        return symbol->value;
    if (size > 0 && symbols_is_function(symbols, symbol))
        return add_capped(symbol->value, size);
    uint64_t end =
        size > 0 ? add_capped(symbol->value, size) : add_capped(range->address, range->size);
    size_t next = symbols_lower_bound(symbols, symbol->section, add_capped(symbol->value, 1));
    if (next < symbols->count && symbols->entries[next].section == symbol->section &&
        symbols->entries[next].value < end)
        end = symbols->entries[next].value;
    return end;
}

/* ---- The extents ---- */

/* A function that has begun and not yet ended. */
struct open_function {
    uint64_t end;
    uint32_t symbol;
};

struct sweep {
    const struct extent_source *source;
    const struct cairn_allocator *allocator;
    struct extent_list *list;
    struct cairn_error *error;
    struct open_function *stack; /* each begins inside the one below it, and may end after it */
    size_t depth;
    size_t capacity;
};

static enum cairn_status begin_extent(struct sweep *sweep, uint32_t section, uint64_t start,
                                      uint32_t symbol)
{
    struct extent_list *list = sweep->list;
    void *extents = list->extents;
    enum cairn_status status = make_room(&extents, list->count, &list->capacity,
                                         sizeof *list->extents, sweep->allocator, sweep->error);
    list->extents = extents;
    if (status == CAIRN_OK)
        list->extents[list->count++] = (struct extent){start, section, symbol};
    return status;
}

static enum cairn_status push(struct sweep *sweep, uint64_t end, uint32_t symbol)
{
    void *stack = sweep->stack;
    enum cairn_status status = make_room(&stack, sweep->depth, &sweep->capacity,
                                         sizeof *sweep->stack, sweep->allocator, sweep->error);
    sweep->stack = stack;
    if (status == CAIRN_OK)
        sweep->stack[sweep->depth++] = (struct open_function){end, symbol};
    return status;
}

/* Ends all functions with an end up to `address`. At the end of a nested function, the function
 * around it continues with a new extent. */
static enum cairn_status end_functions(struct sweep *sweep, uint32_t section, uint64_t address)
{
    while (sweep->depth > 0 && sweep->stack[sweep->depth - 1].end <= address) {
        uint64_t end = sweep->stack[--sweep->depth].end;
        while (sweep->depth > 0 && sweep->stack[sweep->depth - 1].end <= end)
            sweep->depth--;
        if (sweep->depth == 0)
            break;
        enum cairn_status status =
            begin_extent(sweep, section, end, sweep->stack[sweep->depth - 1].symbol);
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}

/* The symbols with one value. `chosen` is the best-ranked function with a size, and `longest` is
 * the function with the highest end. If no function has a size, both are the first symbol. */
struct group {
    size_t count;
    uint32_t chosen;
    uint32_t longest;
    uint64_t chosen_end;
    uint64_t longest_end;
    uint8_t chosen_rank;
    bool has_size;
};

static void choose(struct group *group, uint32_t number, uint64_t end, uint8_t rank)
{
    group->chosen = number;
    group->chosen_end = end;
    group->chosen_rank = rank;
}

static void add_to_group(const struct sweep *sweep, uint32_t number, struct group *group)
{
    const struct symbol_list *symbols = sweep->source->symbols;
    const struct symbol *symbol = &symbols->entries[number];
    bool has_size = symbols_is_function(symbols, symbol) && symbols_size(symbols, symbol) > 0;
    bool is_first = group->count++ == 0;
    if (!is_first && !has_size)
        return;
    uint64_t end = find_end(sweep->source, symbol);
    uint8_t rank = symbols_rank(symbols, symbol);
    if (is_first || !group->has_size || rank < group->chosen_rank)
        choose(group, number, end, rank);
    if (is_first || !group->has_size || end > group->longest_end) {
        group->longest = number;
        group->longest_end = end;
    }
    group->has_size = has_size;
}

static struct group read_group(const struct sweep *sweep, size_t first)
{
    const struct symbol *entries = sweep->source->symbols->entries;
    struct group group = {0};
    for (size_t i = first; i < sweep->source->symbols->count; i++) {
        if (entries[i].section != entries[first].section ||
            entries[i].value != entries[first].value)
            break;
        add_to_group(sweep, (uint32_t)i, &group);
    }
    return group;
}

static enum cairn_status begin_functions(struct sweep *sweep, const struct symbol *place,
                                         const struct group *group)
{
    if (group->chosen_end <= place->value || (sweep->depth > 0 && !group->has_size))
        return CAIRN_OK;
    enum cairn_status status = CAIRN_OK;
    if (group->longest_end > group->chosen_end)
        status = push(sweep, group->longest_end, group->longest);
    if (status == CAIRN_OK)
        status = push(sweep, group->chosen_end, group->chosen);
    if (status == CAIRN_OK)
        status = begin_extent(sweep, place->section, place->value, group->chosen);
    return status;
}

static enum cairn_status sweep_symbols(struct sweep *sweep)
{
    const struct symbol_list *symbols = sweep->source->symbols;
    uint32_t section = 0;
    for (size_t i = 0; i < symbols->count;) {
        const struct symbol *place = &symbols->entries[i];
        struct group group = read_group(sweep, i);
        enum cairn_status status = CAIRN_OK;
        if (place->section != section)
            status = end_functions(sweep, section, UINT64_MAX);
        section = place->section;
        if (status == CAIRN_OK)
            status = end_functions(sweep, section, place->value);
        if (status == CAIRN_OK)
            status = begin_functions(sweep, place, &group);
        if (status != CAIRN_OK)
            return status;
        i += group.count;
    }
    return end_functions(sweep, section, UINT64_MAX);
}

enum cairn_status extents_read(const struct extent_source *source,
                               const struct cairn_allocator *allocator, struct extent_list *list,
                               struct cairn_error *error)
{
    struct sweep sweep = {.source = source, .allocator = allocator, .list = list, .error = error};
    enum cairn_status status = sweep_symbols(&sweep);
    memory_free(allocator, sweep.stack, sweep.capacity * sizeof *sweep.stack);
    return status;
}

static bool is_behind(const struct extent *extent, uint32_t section, uint64_t address)
{
    if (extent->section != section)
        return extent->section > section;
    return extent->start > address;
}

const struct symbol *extents_find(const struct extent_list *list,
                                  const struct extent_source *source, uint32_t section,
                                  uint64_t address)
{
    size_t low = 0;
    size_t high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (is_behind(&list->extents[middle], section, address))
            high = middle;
        else
            low = middle + 1;
    }
    if (low == 0 || list->extents[low - 1].section != section)
        return NULL;
    const struct symbol *symbol = &source->symbols->entries[list->extents[low - 1].symbol];
    return address < find_end(source, symbol) ? symbol : NULL;
}

void extents_release(struct extent_list *list, const struct cairn_allocator *allocator)
{
    memory_free(allocator, list->extents, list->capacity * sizeof *list->extents);
    *list = (struct extent_list){0};
}
