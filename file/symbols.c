/*
 * Finds the names of functions by address, in a sorted list of the symbol table's functions.
 *
 * Only a symbol that begins exactly at an address is its name: a stack map contains the address of
 * each function's first byte, and a wrong name would be worse than no name. Names and sizes are
 * read from the file only when they are requested, so that the strings of a large program need not
 * be read.
 *
 * SPDX-License-Identifier: MIT
 */
#include "file/symbols.h"

#include "base/error.h"
#include "base/memory.h"

#include <cairn/section.h>
#include <stdlib.h>
#include <string.h>

/* Ranks are added. Of several symbols with one value, the one with the lowest rank is preferred. */
enum { RANK_LABEL = 4, RANK_OF_DESCRIPTOR = 8 };

/* ---- The symbol table ---- */

static enum cairn_status find_wide_sections(struct symbol_table *table, uint32_t index,
                                            struct cairn_error *error)
{
    GElf_Shdr header;
    uint32_t section = file_find_wide_sections(table->file, index);
    if (section == 0 || !file_section(table->file, section, &header))
        return CAIRN_OK;
    return file_section_bytes(table->file, section, &header, &table->wide_sections, error);
}

enum cairn_status symbol_table_open(const struct file *file, uint32_t index,
                                    struct symbol_table *table, struct cairn_error *error)
{
    GElf_Shdr header;
    *table = (struct symbol_table){0};
    if (!file_section(file, index, &header) ||
        (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM))
        return error_set(error, CAIRN_ERROR_CORRUPT, 0, "section %u is no symbol table", index);
    struct symbol_table opened = {
        .file = file, .section = index, .strings = file_strings(file, header.sh_link)};
    enum cairn_status status = file_section_bytes(file, index, &header, &opened.symbols, error);
    if (status == CAIRN_OK)
        status = find_wide_sections(&opened, index, error);
    if (status != CAIRN_OK)
        return status;
    size_t count = opened.symbols.size / sizeof(Elf64_Sym);
    if (count > INT32_MAX)
        return error_set(error, CAIRN_ERROR_CORRUPT, header.sh_offset,
                         "the symbol table has %zu symbols", count);
    opened.count = (uint32_t)count;
    *table = opened;
    return CAIRN_OK;
}

static void find_symbol_section(const struct symbol_table *table, uint32_t index,
                                struct table_symbol *symbol)
{
    const struct file_bytes *wide = &table->wide_sections;
    if (symbol->section == SHN_XINDEX && index < wide->size / sizeof(Elf64_Word))
        symbol->section = cairn_load_u32(wide->bytes + (size_t)index * sizeof(Elf64_Word),
                                         table->file->byte_order);
    else
        symbol->is_reserved = symbol->section >= SHN_LORESERVE;
}

struct table_symbol symbol_table_read(const struct symbol_table *table, uint32_t index)
{
    enum cairn_byte_order order = table->file->byte_order;
    const uint8_t *bytes = table->symbols.bytes + index * sizeof(Elf64_Sym);
    uint8_t info = bytes[offsetof(Elf64_Sym, st_info)];
    struct table_symbol symbol = {
        .value = cairn_load_u64(bytes + offsetof(Elf64_Sym, st_value), order),
        .size = cairn_load_u64(bytes + offsetof(Elf64_Sym, st_size), order),
        .name = cairn_load_u32(bytes + offsetof(Elf64_Sym, st_name), order),
        .section = cairn_load_u16(bytes + offsetof(Elf64_Sym, st_shndx), order),
        .type = ELF64_ST_TYPE(info),
        .binding = ELF64_ST_BIND(info),
    };
    find_symbol_section(table, index, &symbol);
    return symbol;
}

const char *symbol_table_string(const struct symbol_table *table, uint32_t name)
{
    return file_string(&table->strings, name);
}

/* ---- Symbols that name functions ---- */

static uint8_t binding_rank(const struct table_symbol *symbol)
{
    switch (symbol->binding) {
    case STB_GLOBAL:
        return 0;
    case STB_WEAK:
        return 1;
    default:
        return 2;
    }
}

static bool is_function(const struct table_symbol *symbol)
{
    return symbol->type == STT_FUNC || symbol->type == STT_GNU_IFUNC;
}

static uint8_t rank(const struct table_symbol *symbol)
{
    return (uint8_t)(binding_rank(symbol) + (is_function(symbol) ? 0 : RANK_LABEL));
}

/* Whether the name is a mark of the assembler: $x and $d on AArch64 and RISC-V, and .L labels. */
static bool is_mark(const char *name) { return name[0] == '$' || strncmp(name, ".L", 2) == 0; }

static bool has_label_name(const struct symbol_table *table, const struct table_symbol *symbol)
{
    const char *name = symbol_table_string(table, symbol->name);
    return name != NULL && *name != '\0' && !is_mark(name);
}

static bool is_wanted(const struct symbol_table *table, const struct table_symbol *symbol)
{
    if (symbol->section == SHN_UNDEF || symbol->name == 0)
        return false;
    if (symbol->is_reserved && file_is_relocatable(table->file))
        return false;
    if (is_function(symbol))
        return true;
    return symbol->type == STT_NOTYPE && !symbol->is_reserved && has_label_name(table, symbol);
}

/* ---- The list ---- */

static int compare_place(const struct symbol *a, uint32_t section, uint64_t value)
{
    if (a->section != section)
        return a->section < section ? -1 : 1;
    return (a->value > value) - (a->value < value);
}

static int compare(const void *left, const void *right)
{
    const struct symbol *a = left;
    const struct symbol *b = right;
    int order = compare_place(a, b->section, b->value);
    return order != 0 ? order : (a->index > b->index) - (a->index < b->index);
}

static size_t count_wanted(const struct symbol_table *table)
{
    size_t count = 0;
    for (uint32_t i = 0; i < table->count; i++) {
        struct table_symbol symbol = symbol_table_read(table, i);
        count += is_wanted(table, &symbol);
    }
    return count;
}

enum cairn_status symbols_read(const struct symbol_table *table,
                               const struct cairn_allocator *allocator, struct symbol_list *list,
                               struct cairn_error *error)
{
    *list = (struct symbol_list){.table = *table};
    size_t count = table->file == NULL ? 0 : count_wanted(table);
    if (count == 0)
        return CAIRN_OK;
    list->entries = memory_new(allocator, count, sizeof *list->entries);
    if (list->entries == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu symbols", count);
    list->capacity = count;
    for (uint32_t i = 0; i < table->count && list->count < count; i++) {
        struct table_symbol symbol = symbol_table_read(table, i);
        if (is_wanted(table, &symbol))
            list->entries[list->count++] = (struct symbol){
                .value = symbol.value,
                .section = file_is_relocatable(table->file) ? symbol.section : 0,
                .index = i & INT32_MAX,
            };
    }
    return CAIRN_OK;
}

enum cairn_status symbols_add(struct symbol_list *list, const struct cairn_allocator *allocator,
                              const struct symbol *symbol, struct cairn_error *error)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity * 2 + 16;
        void *entries = memory_resize(allocator, list->entries, list->capacity * sizeof *symbol,
                                      capacity * sizeof *symbol);
        if (entries == NULL)
            return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu symbols", capacity);
        list->entries = entries;
        list->capacity = capacity;
    }
    list->entries[list->count++] = *symbol;
    return CAIRN_OK;
}

uint8_t symbols_rank(const struct symbol_list *list, const struct symbol *symbol)
{
    struct table_symbol read = symbol_table_read(&list->table, symbol->index);
    return (uint8_t)(rank(&read) + (symbol->is_of_descriptor ? RANK_OF_DESCRIPTOR : 0));
}

/* Moves the symbol with the lowest rank to the front of `count` symbols with one value. */
static void choose(const struct symbol_list *list, struct symbol *first, size_t count)
{
    size_t best = 0;
    uint8_t best_rank = count > 1 ? symbols_rank(list, first) : 0;
    for (size_t i = 1; i < count; i++) {
        uint8_t next_rank = symbols_rank(list, &first[i]);
        if (next_rank < best_rank) {
            best_rank = next_rank;
            best = i;
        }
    }
    struct symbol chosen = first[best];
    memmove(&first[1], &first[0], best * sizeof *first);
    first[0] = chosen;
}

void symbols_sort(struct symbol_list *list)
{
    if (list->count > 1)
        qsort(list->entries, list->count, sizeof *list->entries, compare);
    for (size_t i = 0, next; i < list->count; i = next) {
        const struct symbol *first = &list->entries[i];
        for (next = i + 1; next < list->count; next++)
            if (compare_place(&list->entries[next], first->section, first->value) != 0)
                break;
        choose(list, &list->entries[i], next - i);
    }
}

size_t symbols_lower_bound(const struct symbol_list *list, uint32_t section, uint64_t value)
{
    size_t low = 0;
    size_t high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_place(&list->entries[middle], section, value) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct symbol *symbols_find(const struct symbol_list *list, uint32_t section, uint64_t value)
{
    size_t place = symbols_lower_bound(list, section, value);
    if (place == list->count || compare_place(&list->entries[place], section, value) != 0)
        return NULL;
    return &list->entries[place];
}

const char *symbols_name(const struct symbol_list *list, const struct symbol *symbol)
{
    return symbol_table_string(&list->table, symbol_table_read(&list->table, symbol->index).name);
}

uint64_t symbols_size(const struct symbol_list *list, const struct symbol *symbol)
{
    return symbol_table_read(&list->table, symbol->index).size;
}

bool symbols_is_function(const struct symbol_list *list, const struct symbol *symbol)
{
    struct table_symbol read = symbol_table_read(&list->table, symbol->index);
    return is_function(&read);
}

void symbols_release(struct symbol_list *list, const struct cairn_allocator *allocator)
{
    memory_free(allocator, list->entries, list->capacity * sizeof *list->entries);
    *list = (struct symbol_list){0};
}
