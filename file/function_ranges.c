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
#include "base/array.h"
#include "base/error.h"
#include "file/object.h"
#include "file/sorted.h"

/* ---- Ends of functions ---- */

static uint64_t add_capped(uint64_t start, uint64_t size)
{
    return size > UINT64_MAX - start ? UINT64_MAX : start + size;
}

/* Returns the address after the function's last byte; the function's start if it is not in code. */
static uint64_t find_end(const cairn_object *object, const struct symbol *symbol)
{
    const struct symbol_list *symbols = &object->symbols;
    struct table_symbol read = symbols_get(symbols, symbol);
    const struct code_range *range = code_find_range(object, symbol->section, symbol->value);
    if (range == NULL)
        return symbol->value;
    uint64_t end = read.size > 0 ? add_capped(symbol->value, read.size)
                                 : add_capped(range->address, range->size);
    if (read.size > 0 && symbol_is_function(&read))
        return end;
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
    cairn_object *object;
    struct open_function *stack; /* each begins inside the one below it, and may end after it */
    size_t depth;
    size_t capacity;
};

/* The following functions return false if memory runs out. */

static bool begin_extent(struct sweep *sweep, uint32_t section, uint64_t start, uint32_t symbol)
{
    struct extent_list *list = &sweep->object->extents;
    void *entries = array_reserve(&sweep->object->allocator, list->entries, list->count, 1,
                                  &list->capacity, sizeof *list->entries);
    if (entries == NULL)
        return false;
    list->entries = entries;
    list->entries[list->count++] = (struct extent){start, section, symbol};
    return true;
}

static bool push(struct sweep *sweep, struct open_function function)
{
    void *stack = array_reserve(&sweep->object->allocator, sweep->stack, sweep->depth, 1,
                                &sweep->capacity, sizeof *sweep->stack);
    if (stack == NULL)
        return false;
    sweep->stack = stack;
    sweep->stack[sweep->depth++] = function;
    return true;
}

/* Ends all functions with an end up to `address`. At the end of a nested function, the function
 * around it continues with a new extent. */
static bool end_functions(struct sweep *sweep, uint32_t section, uint64_t address)
{
    while (sweep->depth > 0 && sweep->stack[sweep->depth - 1].end <= address) {
        uint64_t end = sweep->stack[--sweep->depth].end;
        while (sweep->depth > 0 && sweep->stack[sweep->depth - 1].end <= end)
            sweep->depth--;
        if (sweep->depth > 0 &&
            !begin_extent(sweep, section, end, sweep->stack[sweep->depth - 1].symbol))
            return false;
    }
    return true;
}

/* Begins the functions at the address of symbols `first` to `end` - 1. `chosen` is the best-ranked
 * function with a size, and `longest` is the function with the highest end. If no function has a
 * size, both are the first symbol, which does not begin inside another function. */
static bool begin_functions(struct sweep *sweep, size_t first, size_t end)
{
    const struct symbol_list *symbols = &sweep->object->symbols;
    const struct symbol *place = &symbols->entries[first];
    struct open_function chosen = {find_end(sweep->object, place), (uint32_t)first};
    struct open_function longest = chosen;
    uint8_t chosen_rank = 0;
    bool has_size = false;
    for (size_t i = first; i < end; i++) {
        const struct symbol *symbol = &symbols->entries[i];
        struct table_symbol read = symbols_get(symbols, symbol);
        if (!symbol_is_function(&read) || read.size == 0)
            continue;
        struct open_function function = {find_end(sweep->object, symbol), (uint32_t)i};
        uint8_t rank = symbols_rank(symbols, symbol);
        if (!has_size || rank < chosen_rank) {
            chosen = function;
            chosen_rank = rank;
        }
        if (!has_size || function.end > longest.end)
            longest = function;
        has_size = true;
    }
    if (chosen.end <= place->value || (sweep->depth > 0 && !has_size))
        return true;
    return (longest.end <= chosen.end || push(sweep, longest)) && push(sweep, chosen) &&
           begin_extent(sweep, place->section, place->value, chosen.symbol);
}

enum cairn_status extents_read(cairn_object *object, struct cairn_error *error)
{
    const struct symbol_list *symbols = &object->symbols;
    struct sweep sweep = {.object = object};
    uint32_t section = 0;
    bool is_done = true;
    if (object->has_extents)
        return CAIRN_OK;
    for (size_t i = 0, next; i < symbols->count && is_done; i = next) {
        const struct symbol *place = &symbols->entries[i];
        next = symbols_group_end(symbols, i);
        is_done = (place->section == section || end_functions(&sweep, section, UINT64_MAX)) &&
                  end_functions(&sweep, place->section, place->value) &&
                  begin_functions(&sweep, i, next);
        section = place->section;
    }
    object->has_extents = is_done && end_functions(&sweep, section, UINT64_MAX);
    memory_free(&object->allocator, sweep.stack, sweep.capacity * sizeof *sweep.stack);
    if (object->has_extents)
        return CAIRN_OK;
    extents_release(object);
    return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu functions", symbols->count);
}

static int compare(const void *left, const void *right)
{
    const struct extent *a = left;
    const struct extent *b = right;
    if (a->section != b->section)
        return a->section < b->section ? -1 : 1;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return (a->symbol > b->symbol) - (a->symbol < b->symbol);
}

const struct symbol *extents_find(const cairn_object *object, uint32_t section, uint64_t address)
{
    const struct extent_list *list = &object->extents;
    struct extent key = {.start = address, .section = section, .symbol = UINT32_MAX};
    size_t next = sorted_lower_bound(list->entries, list->count, sizeof key, &key, compare);
    if (next == 0 || list->entries[next - 1].section != section)
        return NULL;
    const struct symbol *symbol = &object->symbols.entries[list->entries[next - 1].symbol];
    return address < find_end(object, symbol) ? symbol : NULL;
}

void extents_release(cairn_object *object)
{
    struct extent_list *list = &object->extents;
    memory_free(&object->allocator, list->entries, list->capacity * sizeof *list->entries);
    *list = (struct extent_list){0};
    object->has_extents = false;
}
