/*
 * Reads symbol tables, and finds the names of functions by address, in a sorted list.
 *
 * Only a symbol that begins exactly at an address is its name: a stack map contains the address of
 * each function's first byte, and a wrong name would be worse than no name. Names and sizes are
 * read from the file only when they are requested, so that the strings of a large program need not
 * be read.
 *
 * SPDX-License-Identifier: MIT
 */
#include "file/symbols.h"

#include "base/array.h"
#include "base/error.h"
#include "file/sorted.h"

#include <string.h>

/* Ranks are added. Of several symbols with one value, the one with the lowest rank is preferred. */
enum { RANK_WEAK = 1, RANK_LOCAL = 2, RANK_LABEL = 4, RANK_OF_DESCRIPTOR = 8 };

/* ---- The symbol table ---- */

enum cairn_status symbol_table_open(const struct file *file, uint32_t index,
                                    struct symbol_table *table, struct cairn_error *error)
{
    GElf_Shdr header;
    GElf_Shdr wide_header;
    *table = (struct symbol_table){0};
    if (!file_section(file, index, &header) ||
        (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM))
        return error_set(error, CAIRN_ERROR_CORRUPT, 0, "section %u is not a symbol table", index);
    struct symbol_table opened = {
        .file = file, .section = index, .strings = file_strings(file, header.sh_link)};
    enum cairn_status status = file_section_bytes(file, index, &header, &opened.symbols, error);
    uint32_t wide = file_find_wide_sections(file, index);
    if (status == CAIRN_OK && wide != 0 && file_section(file, wide, &wide_header))
        status = file_section_bytes(file, wide, &wide_header, &opened.wide_sections, error);
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

struct table_symbol symbol_table_read(const struct symbol_table *table, uint32_t index)
{
    enum cairn_byte_order order = table->file->byte_order;
    const struct file_bytes *wide = &table->wide_sections;
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
    if (symbol.section == SHN_XINDEX && index < wide->size / sizeof(Elf64_Word))
        symbol.section = cairn_load_u32(wide->bytes + (size_t)index * sizeof(Elf64_Word), order);
    else
        symbol.is_reserved = symbol.section >= SHN_LORESERVE;
    return symbol;
}

/* Whether the symbol is a function, or a label that is not a mark of the assembler: $x and $d on
 * AArch64 and RISC-V, and .L labels. */
static bool is_wanted(const struct symbol_table *table, const struct table_symbol *symbol)
{
    if (symbol->section == SHN_UNDEF || symbol->name == 0)
        return false;
    if (symbol_is_function(symbol))
        return !symbol->is_reserved || !file_is_relocatable(table->file);
    if (symbol->type != STT_NOTYPE || symbol->is_reserved)
        return false;
    const char *name = file_string(&table->strings, symbol->name);
    return name != NULL && *name != '\0' && *name != '$' && strncmp(name, ".L", 2) != 0;
}

/* ---- The list ---- */

static int compare_place(const void *left, const void *right)
{
    const struct symbol *a = left;
    const struct symbol *b = right;
    if (a->section != b->section)
        return a->section < b->section ? -1 : 1;
    return (a->value > b->value) - (a->value < b->value);
}

static int compare(const void *left, const void *right)
{
    const struct symbol *a = left;
    const struct symbol *b = right;
    int order = compare_place(a, b);
    return order != 0 ? order : (a->index > b->index) - (a->index < b->index);
}

enum cairn_status symbols_add(struct symbol_list *list, const struct cairn_allocator *allocator,
                              const struct symbol *symbol, struct cairn_error *error)
{
    void *entries =
        array_reserve(allocator, list->entries, list->count, 1, &list->capacity, sizeof *symbol);
    if (entries == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu symbols",
                         list->count + 1);
    list->entries = entries;
    list->entries[list->count++] = *symbol;
    return CAIRN_OK;
}

enum cairn_status symbols_read(const struct symbol_table *table,
                               const struct cairn_allocator *allocator, struct symbol_list *list,
                               struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    *list = (struct symbol_list){.table = *table};
    for (uint32_t i = 0; i < table->count && status == CAIRN_OK; i++) {
        struct table_symbol symbol = symbol_table_read(table, i);
        struct symbol added = {
            .value = symbol.value,
            .section = file_is_relocatable(table->file) ? symbol.section : 0,
            .index = i & INT32_MAX,
        };
        if (is_wanted(table, &symbol))
            status = symbols_add(list, allocator, &added, error);
    }
    return status;
}

uint8_t symbols_rank(const struct symbol_list *list, const struct symbol *symbol)
{
    struct table_symbol read = symbols_get(list, symbol);
    unsigned rank = 0;
    if (read.binding != STB_GLOBAL)
        rank += read.binding == STB_WEAK ? RANK_WEAK : RANK_LOCAL;
    if (!symbol_is_function(&read))
        rank += RANK_LABEL;
    return (uint8_t)(rank + (symbol->is_of_descriptor ? RANK_OF_DESCRIPTOR : 0));
}

size_t symbols_group_end(const struct symbol_list *list, size_t first)
{
    size_t end = first + 1;
    while (end < list->count && compare_place(&list->entries[end], &list->entries[first]) == 0)
        end++;
    return end;
}

void symbols_sort(struct symbol_list *list)
{
    sorted_make(list->entries, list->count, sizeof *list->entries, compare);
    for (size_t first = 0, next; first < list->count; first = next) {
        next = symbols_group_end(list, first);
        size_t best = first;
        uint8_t best_rank = next - first > 1 ? symbols_rank(list, &list->entries[first]) : 0;
        for (size_t i = first + 1; i < next; i++) {
            uint8_t rank = symbols_rank(list, &list->entries[i]);
            if (rank < best_rank) {
                best_rank = rank;
                best = i;
            }
        }
        struct symbol chosen = list->entries[best];
        memmove(&list->entries[first + 1], &list->entries[first], (best - first) * sizeof chosen);
        list->entries[first] = chosen;
    }
}

size_t symbols_lower_bound(const struct symbol_list *list, uint32_t section, uint64_t value)
{
    struct symbol key = {.value = value, .section = section};
    return sorted_lower_bound(list->entries, list->count, sizeof key, &key, compare_place);
}

const struct symbol *symbols_find(const struct symbol_list *list, uint32_t section, uint64_t value)
{
    size_t place = symbols_lower_bound(list, section, value);
    if (place == list->count || list->entries[place].section != section ||
        list->entries[place].value != value)
        return NULL;
    return &list->entries[place];
}

void symbols_release(struct symbol_list *list, const struct cairn_allocator *allocator)
{
    memory_free(allocator, list->entries, list->capacity * sizeof *list->entries);
    *list = (struct symbol_list){0};
}
