/* SPDX-License-Identifier: MIT */
#include "tools/propeller/names.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES_MAX = 4096 };

/* The symbols of a file that are being read. */
struct symbols {
    const struct input *input;
    struct cairn_section table;
    struct cairn_section strings;
    const uint64_t *addresses;
    size_t address_count;
    struct list names;
};

/* ---- Symbols ---- */

/* Whether the name is a word that the compiler's and the linker's files can contain. */
static bool is_usable(const char *name)
{
    size_t length = strnlen(name, NAME_BYTES_MAX);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] <= ' ' || name[i] == 0x7f || name[i] == '/' || name[i] == '#')
            return false;
    return length > 0 && length < NAME_BYTES_MAX && name[0] != '!';
}

static bool take_symbol(struct symbols *symbols, const uint8_t *bytes)
{
    enum cairn_byte_order order = symbols->table.byte_order;
    uint32_t offset = cairn_load_u32(bytes + offsetof(Elf64_Sym, st_name), order);
    uint64_t address = cairn_load_u64(bytes + offsetof(Elf64_Sym, st_value), order);
    uint16_t section;
    memcpy(&section, bytes + offsetof(Elf64_Sym, st_shndx), sizeof section);
    unsigned type = ELF64_ST_TYPE(bytes[offsetof(Elf64_Sym, st_info)]);
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || section == SHN_UNDEF ||
        offset >= symbols->strings.size)
        return true;
    size_t above = first_above(symbols->addresses, sizeof *symbols->addresses,
                               symbols->address_count, address);
    const char *name = (const char *)symbols->strings.bytes + offset;
    if (above == 0 || symbols->addresses[above - 1] != address || !is_usable(name))
        return true;
    const struct function_name kept = {.address = address, .name = name};
    return list_append(&symbols->names, &kept, sizeof kept) ||
           complain("%s: no memory for the names of functions", symbols->input->name);
}

/* Finds the symbol table and its names. The names must end with a null. */
static bool find_sections(struct symbols *symbols)
{
    const struct cairn_object_filter table_filter = {.type = SHT_SYMTAB};
    const struct cairn_object_filter string_filter = {.name = ".strtab", .type = SHT_STRTAB};
    struct cairn_object_section section = {.index = 0};
    struct cairn_error error;
    cairn_object *object = symbols->input->object;
    if (cairn_object_next_section(object, &table_filter, &section, &error) != CAIRN_OK)
        return false;
    symbols->table = section.contents;
    section = (struct cairn_object_section){.index = 0};
    if (cairn_object_next_section(object, &string_filter, &section, &error) != CAIRN_OK)
        return false;
    symbols->strings = section.contents;
    return symbols->strings.size > 0 && symbols->strings.bytes[symbols->strings.size - 1] == 0;
}

/* ---- Names ---- */

static int compare_addresses(const void *left, const void *right)
{
    const struct function_name *a = left;
    const struct function_name *b = right;
    int order = compare_numbers(a->address, b->address);
    return order != 0 ? order : (a->name > b->name) - (a->name < b->name);
}

static int compare_names(const void *left, const void *right)
{
    const struct function_name *const *a = left;
    const struct function_name *const *b = right;
    return strcmp((*a)->name, (*b)->name);
}

/* Marks names that several functions have, and removes repetitions. */
static bool mark_shared(struct function_names *names)
{
    struct function_name **sorted = calloc(names->count + 1, sizeof *sorted);
    if (sorted == NULL)
        return complain("profile: no memory for the names of functions");
    for (size_t i = 0; i < names->count; i++)
        sorted[i] = &names->items[i];
    qsort(sorted, names->count, sizeof(struct function_name *), compare_names);
    for (size_t i = 1; i < names->count; i++)
        if (compare_names(&sorted[i - 1], &sorted[i]) == 0) {
            bool is_other = sorted[i - 1]->address != sorted[i]->address;
            sorted[i]->is_shared |= is_other;
            sorted[i - 1]->is_shared |= is_other;
        }
    free(sorted);
    return true;
}

bool function_names_create(struct function_names *names, const struct input *input,
                           const uint64_t *addresses, size_t count)
{
    struct symbols symbols = {.input = input, .addresses = addresses, .address_count = count};
    *names = (struct function_names){.items = NULL};
    if (!find_sections(&symbols))
        return complain("%s: the file has no symbol table, so its functions have no names that "
                        "the compiler knows; --debug-file gives them",
                        input->name);
    bool is_good = true;
    for (size_t i = 0; is_good && i < symbols.table.size / sizeof(Elf64_Sym); i++)
        is_good = take_symbol(&symbols, symbols.table.bytes + i * sizeof(Elf64_Sym));
    list_sort(&symbols.names, sizeof *names->items, compare_addresses);
    *names = (struct function_names){symbols.names.items, symbols.names.count};
    return is_good && mark_shared(names);
}

size_t function_names_find(const struct function_names *names, uint64_t address)
{
    return address == 0 ? 0
                        : first_above(&names->items->address, sizeof *names->items, names->count,
                                      address - 1);
}
