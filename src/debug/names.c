/* SPDX-License-Identifier: MIT */
#include "debug/names.h"
#include "runtime/module.h"

#include "ic/cache.h"
#include "record/declarations.h"
#include "record/table.h"
#include "site/veneers.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Functions ---- */

/* A walk through the functions of a module: those with symbols, and those with unwind rules. */
struct walk {
    const cairn_module *module;
    uint64_t first; /* the module's first code, from which unnamed code is counted */
    uint32_t symbol;
    size_t function;
    named_code_visitor *visit;
    void *user;
};

/* Bytes between and after functions that are padding, and not code. */
enum { PADDING_MAX = 31 };

static const char *declared_name(const cairn_module *module, uint64_t address)
{
    struct cairn_function function;
    if (!cairn_table_find_function(module->table, address, &function) ||
        function.address != address || function.record_count == 0)
        return NULL;
    const struct declaration_entry *entry =
        declarations_of_record(module->declarations, function.first_record);
    return entry == NULL ? NULL : entry->declaration->function;
}

static void visit_unnamed(const struct walk *walk, uint64_t address, uint64_t size)
{
    char name[CODE_NAME_BYTES];
    const char *declared = declared_name(walk->module, address);
    if (declared != NULL)
        snprintf(name, sizeof name, "%s", declared);
    else
        snprintf(name, sizeof name, "%.900s+0x%" PRIx64, walk->module->name, address - walk->first);
    walk->visit(&(struct named_code){address, size, name}, walk->user);
}

/* Finds the next function with a symbol that ends after `at`. Its end is at most `limit`. */
static bool next_symbol(struct walk *walk, uint64_t at, uint64_t limit, struct named_code *found)
{
    const struct module_symbols *symbols = walk->module->symbols;
    uint32_t size;
    for (; module_symbols_function_at(symbols, walk->symbol, &found->name, &found->address, &size);
         walk->symbol++) {
        const char *name;
        uint64_t end = limit;
        uint32_t next_size;
        if (found->address >= limit)
            return false;
        module_symbols_function_at(symbols, walk->symbol + 1, &name, &end, &next_size);
        if (end > limit)
            end = limit;
        if (size < end - found->address)
            end = found->address + size;
        found->size = end - found->address;
        if (end > at)
            return true;
    }
    return false;
}

/* The same among the functions with unwind rules. */
static bool next_function(struct walk *walk, uint64_t at, uint64_t limit, struct named_code *found)
{
    const struct functions *functions = walk->module->functions;
    for (; functions != NULL && walk->function < functions->count; walk->function++) {
        const struct eh_frame_function *entry = &functions->entries[walk->function];
        if (entry->address >= limit)
            return false;
        if (entry->size <= at - entry->address && entry->address <= at)
            continue;
        uint64_t left = limit - entry->address;
        *found = (struct named_code){entry->address, entry->size < left ? entry->size : left, NULL};
        return true;
    }
    return false;
}

/* Visits code without a symbol, function by function as far as there are unwind rules. */
static void visit_gap(struct walk *walk, uint64_t at, uint64_t end)
{
    struct named_code function;
    while (at < end && next_function(walk, at, end, &function)) {
        uint64_t start = function.address > at ? function.address : at;
        if (start - at > PADDING_MAX)
            visit_unnamed(walk, at, start - at);
        at = function.address + function.size;
        visit_unnamed(walk, start, at - start);
    }
    if (at < end && end - at > PADDING_MAX)
        visit_unnamed(walk, at, end - at);
}

static void visit_range(struct walk *walk, uint64_t at, uint64_t end)
{
    struct named_code function;
    while (at < end && next_symbol(walk, at, end, &function)) {
        uint64_t start = function.address > at ? function.address : at;
        if (start > at)
            visit_gap(walk, at, start);
        at = function.address + function.size;
        function.address = start;
        function.size = at - start;
        walk->visit(&function, walk->user);
    }
    if (at < end)
        visit_gap(walk, at, end);
}

void named_code_visit(const cairn_module *module, named_code_visitor *visit, void *user)
{
    struct walk walk = {.module = module, .visit = visit, .user = user};
    struct memory_range range;
    for (uint32_t i = 0; module_memory_range(module, i, &range); i++) {
        if (!range.executable)
            continue;
        walk.first = range.address;
        walk.symbol = 0;
        walk.function = 0;
        visit_range(&walk, range.address, range.address + range.size);
    }
}

/* ---- Code of Cairn's own ---- */

void code_note_name(const struct code_note *note, char name[CODE_NAME_BYTES])
{
    const cairn_site *site = note->site;
    const char *label = note->label == NULL ? "stub" : note->label;
    const cairn_module *module = site == NULL ? NULL : table_owner(site->table->records);
    struct cairn_function function = {.name = NULL};
    if (module == NULL) {
        snprintf(name, CODE_NAME_BYTES, "%s", label);
        return;
    }
    struct memory_range range = {.address = site->address};
    if (!module_search_function(module, site->address, &function)) {
        module_memory_range(module, 0, &range);
        function.address = range.address;
    }
    if (function.name == NULL)
        function.name = declared_name(module, function.address);
    snprintf(name, CODE_NAME_BYTES, "%s@%.900s+0x%" PRIx64, label,
             function.name == NULL ? module->name : function.name,
             site->address - function.address);
}

void code_notes_visit(const cairn_module *module, code_note_visitor *visit, void *user)
{
    cairn_site *site;
    for (uint32_t i = 0; (site = cairn_module_site(module, i)) != NULL; i++) {
        const struct cairn_arch *arch = site->table->arch;
        const struct site_veneer *veneer =
            atomic_load_explicit(&site->veneers, memory_order_acquire);
        for (; veneer != NULL; veneer = veneer->next) {
            bool is_framed = veneer->branch == CAIRN_SITE_CALL && veneers_frame_calls(site);
            visit(&(struct code_note){.address = veneer->code.address,
                                      .size = is_framed ? arch->framed_veneer_bytes
                                                        : arch->veneer_bytes,
                                      .label = "veneer",
                                      .site = site},
                  user);
        }
        const struct code_stub *stub = site->ic == NULL ? NULL : site->ic->code.stub;
        if (stub != NULL)
            visit(&(struct code_note){.address = stub->address,
                                      .size = stub->code_bytes,
                                      .label = "ic",
                                      .site = site},
                  user);
    }
}
