/*
 * Names of functions by address: a sorted copy of the symbol table's functions.
 *
 * Only symbols that begin exactly at an address name it: a stack map gives each function's first
 * byte, and a wrong name would be worse than none.
 *
 * SPDX-License-Identifier: MIT
 */
#include "object/symbols.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { RANK_LABEL = 4, RANK_NONE = 255 };

/* ---- The symbol table ---- */

static Elf_Scn *find_section(Elf *elf, Elf64_Word type, Elf64_Word link)
{
    for (Elf_Scn *section = elf_nextscn(elf, NULL); section != NULL;
         section = elf_nextscn(elf, section)) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == NULL || header.sh_type != type)
            continue;
        if (link == 0 || header.sh_link == link)
            return section;
    }
    return NULL;
}

static Elf_Scn *find_symbols(Elf *elf)
{
    Elf_Scn *section = find_section(elf, SHT_SYMTAB, 0);
    return section != NULL ? section : find_section(elf, SHT_DYNSYM, 0);
}

static Elf_Data *find_symbol_sections(Elf *elf, Elf_Scn *symbols)
{
    Elf_Scn *section = find_section(elf, SHT_SYMTAB_SHNDX, (Elf64_Word)elf_ndxscn(symbols));
    return section == NULL ? NULL : elf_getdata(section, NULL);
}

/* ---- Which symbols name functions ---- */

static uint8_t binding_rank(const GElf_Sym *symbol)
{
    switch (GELF_ST_BIND(symbol->st_info)) {
    case STB_GLOBAL:
        return 0;
    case STB_WEAK:
        return 1;
    default:
        return 2;
    }
}

/* Assemblers' own marks: $x, $d of AArch64 and RISC-V, .L labels. */
static bool is_mark(const char *name) { return name[0] == '$' || strncmp(name, ".L", 2) == 0; }

static uint8_t rank(const GElf_Sym *symbol, const char *name)
{
    unsigned type = GELF_ST_TYPE(symbol->st_info);
    if (symbol->st_shndx == SHN_UNDEF || name == NULL || *name == '\0')
        return RANK_NONE;
    if (type == STT_FUNC || type == STT_GNU_IFUNC)
        return binding_rank(symbol);
    if (type == STT_NOTYPE && !is_mark(name))
        return (uint8_t)(RANK_LABEL + binding_rank(symbol));
    return RANK_NONE;
}

/* ---- The list ---- */

static int compare_place(const struct symbol *a, const struct symbol *b)
{
    if (a->section != b->section)
        return a->section < b->section ? -1 : 1;
    return (a->value > b->value) - (a->value < b->value);
}

static int compare(const void *left, const void *right)
{
    const struct symbol *a = left;
    const struct symbol *b = right;
    int order = compare_place(a, b);
    if (order == 0)
        order = (int)a->rank - (int)b->rank;
    if (order == 0)
        order = (a->index > b->index) - (a->index < b->index);
    return order;
}

struct source {
    Elf *elf;
    bool is_relocatable;
    GElf_Shdr header;
    Elf_Data *data;
    Elf_Data *sections; /* numbers that do not fit 16 bits; or NULL */
};

static bool add(const struct source *source, uint32_t index, struct symbol_list *list)
{
    GElf_Sym symbol;
    Elf32_Word wide_section = 0;
    if (gelf_getsymshndx(source->data, source->sections, (int)index, &symbol, &wide_section) ==
        NULL)
        return false;
    const char *name = elf_strptr(source->elf, source->header.sh_link, symbol.st_name);
    uint8_t symbol_rank = rank(&symbol, name);
    if (symbol_rank == RANK_NONE)
        return true;
    uint32_t section = symbol.st_shndx == SHN_XINDEX ? wide_section : symbol.st_shndx;
    list->entries[list->count++] = (struct symbol){
        .value = symbol.st_value,
        .section = source->is_relocatable ? section : 0,
        .rank = symbol_rank,
        .index = index,
        .name = name,
        .size = symbol.st_size,
    };
    return true;
}

static enum cairn_status read_all(const struct source *source,
                                  const struct cairn_allocator *allocator, struct symbol_list *list,
                                  struct cairn_error *error)
{
    size_t count = source->data->d_size / sizeof(Elf64_Sym);
    if (count == 0)
        return CAIRN_OK;
    if (count > INT32_MAX)
        return error_set(error, CAIRN_ERROR_CORRUPT, source->header.sh_offset,
                         "the symbol table has %zu symbols", count);
    list->entries = memory_new(allocator, count, sizeof *list->entries);
    if (list->entries == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu symbols", count);
    list->capacity = count;
    for (uint32_t i = 0; i < count; i++)
        if (!add(source, i, list))
            return error_set(error, CAIRN_ERROR_CORRUPT, source->header.sh_offset,
                             "symbol %u cannot be read", i);
    return CAIRN_OK;
}

enum cairn_status symbols_read(Elf *elf, const GElf_Ehdr *header,
                               const struct cairn_allocator *allocator, struct symbol_list *list,
                               struct cairn_error *error)
{
    *list = (struct symbol_list){0};
    struct source source = {.elf = elf, .is_relocatable = header->e_type == ET_REL};
    Elf_Scn *section = find_symbols(elf);
    if (section == NULL)
        return CAIRN_OK;
    source.data = elf_getdata(section, NULL);
    if (source.data == NULL || gelf_getshdr(section, &source.header) == NULL)
        return error_set(error, CAIRN_ERROR_CORRUPT, 0, "the symbol table cannot be read: %s",
                         elf_errmsg(-1));
    source.sections = find_symbol_sections(elf, section);
    return read_all(&source, allocator, list, error);
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

void symbols_sort(struct symbol_list *list)
{
    if (list->count > 1)
        qsort(list->entries, list->count, sizeof *list->entries, compare);
}

static size_t lower_bound(const struct symbol_list *list, const struct symbol *key)
{
    size_t low = 0;
    size_t high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_place(&list->entries[middle], key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct symbol *symbols_find(const struct symbol_list *list, uint32_t section, uint64_t value)
{
    struct symbol key = {.value = value, .section = section};
    size_t place = lower_bound(list, &key);
    if (place == list->count || compare_place(&list->entries[place], &key) != 0)
        return NULL;
    return &list->entries[place];
}

void symbols_release(struct symbol_list *list, const struct cairn_allocator *allocator)
{
    memory_free(allocator, list->entries, list->capacity * sizeof *list->entries);
    *list = (struct symbol_list){0};
}
