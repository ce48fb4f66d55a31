/*
 * object/symbols.h - names of functions by address.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OBJECT_SYMBOLS_H
#define OBJECT_SYMBOLS_H

#include <cairn/allocator.h>
#include <cairn/status.h>
#include <gelf.h>
#include <stddef.h>
#include <stdint.h>

struct symbol {
    uint64_t value;
    uint32_t section; /* that `value` counts from the start of; 0 in linked files */
    uint8_t rank;     /* of several with one value, the lowest is the name that is meant */
    uint32_t index;   /* in the symbol table */
    const char *name; /* libelf's */
    uint64_t size;    /* of what begins at `value`, in bytes; 0: not known */
};

/* Sorted: by section, value, rank, index. */
struct symbol_list {
    struct symbol *entries;
    size_t count;
    size_t capacity;
};

/* Ranks that symbols_read gives; higher ones are for symbols_add. */
enum { SYMBOL_RANK_COUNT = 8 };

/* Reads the functions of .symtab, or of a stripped file's .dynsym, in no order. A file without
 * symbols gives an empty list. CORRUPT, MEMORY; on failure the list is still to be released. */
enum cairn_status symbols_read(Elf *elf, const GElf_Ehdr *header,
                               const struct cairn_allocator *allocator, struct symbol_list *list,
                               struct cairn_error *error);

enum cairn_status symbols_add(struct symbol_list *list, const struct cairn_allocator *allocator,
                              const struct symbol *symbol, struct cairn_error *error);

/* To be done before anything is looked up. */
void symbols_sort(struct symbol_list *list);

/* The function that begins at `value` of `section`; NULL if none is known. */
const struct symbol *symbols_find(const struct symbol_list *list, uint32_t section, uint64_t value);

void symbols_release(struct symbol_list *list, const struct cairn_allocator *allocator);

#endif
