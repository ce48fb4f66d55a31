/*
 * file/symbols.h - reads symbol tables, and finds the names of functions by address.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FILE_SYMBOLS_H
#define FILE_SYMBOLS_H

#include "file/elf_file.h"

/* A symbol table, as it is in the file. */
struct symbol_table {
    const struct file *file; /* NULL if there is no symbol table */
    uint32_t section;        /* number of the section */
    struct file_bytes symbols;
    struct file_bytes wide_sections; /* section numbers that do not fit in 16 bits */
    uint32_t count;
    struct file_bytes strings; /* names of symbols */
};

/* A symbol of a table. */
struct table_symbol {
    uint64_t value;
    uint64_t size;
    uint32_t name;    /* offset in the table of strings */
    uint32_t section; /* section number, with SHN_XINDEX resolved */
    uint8_t type;     /* STT_… */
    uint8_t binding;  /* STB_… */
    bool is_reserved; /* whether `section` is SHN_ABS or another reserved value */
};

/* Opens the symbol table in section `index`. Errors: TRUNCATED (it is not inside the file),
 * CORRUPT. */
enum cairn_status symbol_table_open(const struct file *file, uint32_t index,
                                    struct symbol_table *table, struct cairn_error *error);

/* Reads a symbol. `index` must be less than table->count. */
struct table_symbol symbol_table_read(const struct symbol_table *table, uint32_t index);

/* Whether the symbol is a function instead of a label. */
static inline bool symbol_is_function(const struct table_symbol *symbol)
{
    return symbol->type == STT_FUNC || symbol->type == STT_GNU_IFUNC;
}

/* A function or a label of code or data. */
struct symbol {
    uint64_t value;
    uint32_t section;              /* section that `value` is an offset in; 0 in linked files */
    uint32_t index : 31;           /* index in the symbol table, which contains name and size */
    uint32_t is_of_descriptor : 1; /* whether `value` is the address of code that the symbol's
                                    * descriptor points to */
};

/* The symbols, sorted by section and value. Of several symbols with one value, the one with the
 * lowest rank is the first. */
struct symbol_list {
    struct symbol_table table;
    struct symbol *entries;
    size_t count;
    size_t capacity;
};

/* Reads the functions and labels of `table`, without sorting them. The caller must release the list
 * even on failure. Errors: CORRUPT, MEMORY. */
enum cairn_status symbols_read(const struct symbol_table *table,
                               const struct cairn_allocator *allocator, struct symbol_list *list,
                               struct cairn_error *error);

enum cairn_status symbols_add(struct symbol_list *list, const struct cairn_allocator *allocator,
                              const struct symbol *symbol, struct cairn_error *error);

/* Sorts the list. Must be called before any search. */
void symbols_sort(struct symbol_list *list);

/* Returns the index after the last symbol with the same section and value as symbol `first`. */
size_t symbols_group_end(const struct symbol_list *list, size_t first);

/* Returns the index of the first symbol at or after `value` of `section`; list->count after the
 * last symbol. */
size_t symbols_lower_bound(const struct symbol_list *list, uint32_t section, uint64_t value);

/* Returns the preferred symbol at exactly `value` of `section`; NULL if there is no known symbol.
 */
const struct symbol *symbols_find(const struct symbol_list *list, uint32_t section, uint64_t value);

/* Reads a symbol from its table. The size is 0 if it is unknown. */
static inline struct table_symbol symbols_get(const struct symbol_list *list,
                                              const struct symbol *symbol)
{
    return symbol_table_read(&list->table, symbol->index);
}

static inline const char *symbols_name(const struct symbol_list *list, const struct symbol *symbol)
{
    return file_string(&list->table.strings, symbols_get(list, symbol).name);
}

/* Returns the rank of a symbol. Of several symbols with one value, the one with the lowest rank is
 * preferred. */
uint8_t symbols_rank(const struct symbol_list *list, const struct symbol *symbol);

void symbols_release(struct symbol_list *list, const struct cairn_allocator *allocator);

#endif
