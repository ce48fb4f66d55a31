/*
 * object/symbols.h - symbol tables, and names of functions by address.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OBJECT_SYMBOLS_H
#define OBJECT_SYMBOLS_H

#include "object/file.h"

#include <cairn/allocator.h>
#include <stddef.h>
#include <stdint.h>

/* A section of symbols, as it stands in the file. */
struct symbol_table {
    const struct file *file; /* NULL: there is none */
    uint32_t section;        /* its number */
    struct file_bytes symbols;
    struct file_bytes wide_sections; /* numbers that do not fit 16 bits */
    uint32_t count;
    struct file_bytes strings; /* the names */
};

/* One of its symbols. */
struct table_symbol {
    uint64_t value;
    uint64_t size;
    uint32_t name;    /* see symbol_table_string */
    uint32_t section; /* SHN_XINDEX resolved */
    uint8_t type;     /* STT_… */
    uint8_t binding;  /* STB_… */
    bool is_reserved; /* `section` is SHN_ABS or the like, and no section's number */
};

/* Opens section `index`. TRUNCATED (not in the file), CORRUPT. */
enum cairn_status symbol_table_open(const struct file *file, uint32_t index,
                                    struct symbol_table *table, struct cairn_error *error);

/* `index` is below table->count. */
struct table_symbol symbol_table_read(const struct symbol_table *table, uint32_t index);

/* NULL if there is no such name. */
const char *symbol_table_string(const struct symbol_table *table, uint32_t name);

/* A function or a label of code or data. */
struct symbol {
    uint64_t value;
    uint32_t section;              /* that `value` counts from the start of; 0 in linked files */
    uint32_t index : 31;           /* in the symbol table, which holds name and size */
    uint32_t is_of_descriptor : 1; /* `value` is where the symbol's descriptor leads */
};

/* Sorted by section and value; of several with one value, the one whose name is meant comes first.
 */
struct symbol_list {
    struct symbol_table table;
    struct symbol *entries;
    size_t count;
    size_t capacity;
};

/* Reads the functions and labels of `table`, in no order. CORRUPT, MEMORY; on failure the list is
 * still to be released. */
enum cairn_status symbols_read(const struct symbol_table *table,
                               const struct cairn_allocator *allocator, struct symbol_list *list,
                               struct cairn_error *error);

enum cairn_status symbols_add(struct symbol_list *list, const struct cairn_allocator *allocator,
                              const struct symbol *symbol, struct cairn_error *error);

/* To be done before anything is looked up. */
void symbols_sort(struct symbol_list *list);

/* Number in the list of the first symbol from `value` of `section` on; list->count after the last.
 */
size_t symbols_lower_bound(const struct symbol_list *list, uint32_t section, uint64_t value);

/* What begins at `value` of `section`; NULL if nothing that is known. */
const struct symbol *symbols_find(const struct symbol_list *list, uint32_t section, uint64_t value);

const char *symbols_name(const struct symbol_list *list, const struct symbol *symbol);

/* In bytes; 0: not known. */
uint64_t symbols_size(const struct symbol_list *list, const struct symbol *symbol);

/* Of several symbols with one value, the lowest has the name that is meant. */
uint8_t symbols_rank(const struct symbol_list *list, const struct symbol *symbol);

/* Not just a label. */
bool symbols_is_function(const struct symbol_list *list, const struct symbol *symbol);

void symbols_release(struct symbol_list *list, const struct cairn_allocator *allocator);

#endif
