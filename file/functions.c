/*
 * Finds functions by address and by name, and those that addresses in sections point to.
 *
 * On PPC64 ELFv1, the address of a function is the address of its descriptor in .opd, whose first
 * word points to the code. Code addresses get their names through .opd.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "file/object.h"

#include <string.h>

/* ---- Reading symbols ---- */

/* Reads the address of the code that the descriptor at `address` points to. Returns false if there
 * is no descriptor: in linked files, if the address is not in .opd; in relocatable objects, if it
 * is not an offset in .opd. */
static bool read_descriptor(const cairn_object *object, uint32_t section, uint64_t address,
                            struct relocation *code)
{
    const struct prepared *descriptors = object->descriptors;
    if (descriptors == NULL)
        return false;
    uint64_t offset = address - descriptors->address;
    bool is_inside = address >= descriptors->address && section_has_word(descriptors, offset);
    if (!is_inside || (cairn_object_header(object).is_relocatable && section != descriptors->index))
        return false;
    *code = section_read_address(object, descriptors, offset);
    return true;
}

/* Finds the code that a descriptor points to. Returns false if the symbol is not that of a
 * descriptor. */
static bool find_code(const cairn_object *object, const struct symbol *symbol, struct symbol *code)
{
    struct relocation entry;
    if (symbol->is_of_descriptor ||
        !read_descriptor(object, symbol->section, symbol->value, &entry))
        return false;
    *code = *symbol;
    code->section = entry.section;
    code->value = entry.value;
    code->is_of_descriptor = true;
    return true;
}

/* Opens the object's .symtab, else the debug file's .symtab, else the object's .dynsym. If none of
 * them exists, the table is empty, and the status is OK. */
static enum cairn_status open_table(const cairn_object *object, struct symbol_table *table,
                                    struct cairn_error *error)
{
    const struct file *file = &object->file;
    *table = (struct symbol_table){0};
    uint32_t index = file_find_type(file, SHT_SYMTAB);
    if (index == 0 && object->debug_file != NULL) {
        file = &object->debug_file->file;
        index = file_find_type(file, SHT_SYMTAB);
    }
    if (index == 0) {
        file = &object->file;
        index = file_find_type(file, SHT_DYNSYM);
    }
    return index == 0 ? CAIRN_OK : symbol_table_open(file, index, table, error);
}

/* Explains that the memory limit was exceeded while the symbols were processed. */
static enum cairn_status explain(cairn_object *object, const struct symbol_table *table,
                                 enum cairn_status status, struct cairn_error *error)
{
    if (table->file == NULL)
        return status;
    return section_explain(&object->budget, table->file, table->section, status, error);
}

/* Reads the symbols. A descriptor's symbol also names the code that the descriptor points to,
 * unless the code has its own symbol. */
static enum cairn_status read_symbols(cairn_object *object, struct cairn_error *error)
{
    struct symbol_table table;
    struct symbol_list *symbols = &object->symbols;
    enum cairn_status status = open_table(object, &table, error);
    if (status == CAIRN_OK)
        status = symbols_read(&table, &object->allocator, symbols, error);
    size_t count = object->descriptors == NULL ? 0 : symbols->count;
    for (size_t i = 0; i < count && status == CAIRN_OK; i++) {
        struct symbol code;
        if (find_code(object, &symbols->entries[i], &code))
            status = symbols_add(symbols, &object->allocator, &code, error);
    }
    if (status == CAIRN_OK)
        symbols_sort(symbols);
    else
        symbols_release(symbols, &object->allocator);
    return explain(object, &table, status, error);
}

enum cairn_status names_read(cairn_object *object, struct cairn_error *error)
{
    const struct file *file = &object->file;
    enum cairn_status status = CAIRN_OK;
    GElf_Shdr header;
    if (object->has_symbols)
        return CAIRN_OK;
    bool has_descriptors = object->architecture == CAIRN_ARCHITECTURE_PPC64_ELFV1;
    for (uint32_t i = 1; has_descriptors && object->descriptors == NULL && i < file->section_count;
         i++)
        if (file_section(file, i, &header) && header.sh_type != SHT_NOBITS &&
            strcmp(file_section_name(file, &header), ".opd") == 0) {
            status = section_prepare(object, i, SECTION_RELOCATED, &object->descriptors, error);
            break;
        }
    if (status == CAIRN_OK)
        status = read_symbols(object, error);
    object->has_symbols = status == CAIRN_OK;
    return status;
}

void names_release(cairn_object *object)
{
    name_index_release(&object->by_name, &object->allocator);
    extents_release(object);
    symbols_release(&object->symbols, &object->allocator);
    object->has_by_name = false;
    object->has_symbols = false;
}

/* ---- Functions by their address ---- */

struct cairn_object_function cairn_object_function(const cairn_object *object,
                                                   const struct cairn_object_section *section,
                                                   size_t offset)
{
    struct cairn_object_function function = {0};
    const struct prepared *prepared = section_find(object, section->index, SECTION_RELOCATED);
    if (prepared == NULL || !section_has_word(prepared, offset))
        return function;
    struct relocation address = section_read_address(object, prepared, offset);
    const struct symbol *symbol = symbols_find(&object->symbols, address.section, address.value);
    function.name = address.name;
    if (symbol != NULL && address.name == NULL)
        function.name = symbols_name(&object->symbols, symbol);
    /* The symbol of a descriptor has the size of the function's code. */
    function.size = symbol == NULL ? 0 : symbols_get(&object->symbols, symbol).size;
    (void)read_descriptor(object, address.section, address.value, &address);
    function.entry = address.value;
    function.section = address.section;
    return function;
}

uint32_t cairn_object_target_section(const cairn_object *object,
                                     const struct cairn_object_section *section, size_t offset)
{
    const struct prepared *prepared = section_find(object, section->index, SECTION_RELOCATED);
    if (prepared == NULL)
        return 0;
    const struct relocation *relocation = relocation_find(&prepared->relocations, offset, 1);
    return relocation == NULL ? 0 : relocation->section;
}

/* Returns the section number of addresses in this section: 0 in linked files. */
static uint32_t counted_from(const cairn_object *object, uint32_t section)
{
    return cairn_object_header(object).is_relocatable ? section : 0;
}

const char *object_symbol(const cairn_object *object, uint32_t section, uint64_t address)
{
    const struct symbol *symbol =
        symbols_find(&object->symbols, counted_from(object, section), address);
    return symbol == NULL ? NULL : symbols_name(&object->symbols, symbol);
}

/* ---- Searching for functions ---- */

static struct cairn_object_function describe(const cairn_object *object,
                                             const struct symbol *symbol)
{
    return (struct cairn_object_function){
        .name = symbols_name(&object->symbols, symbol),
        .entry = symbol->value,
        .section = symbol->section,
        .size = symbols_get(&object->symbols, symbol).size,
    };
}

enum cairn_status cairn_object_find_function(cairn_object *object, uint32_t section,
                                             uint64_t address,
                                             struct cairn_object_function *function,
                                             struct cairn_error *error)
{
    if (object == NULL || function == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_object_find_function: `%s` is NULL",
                         object == NULL ? "object" : "function");
    enum cairn_status status = names_read(object, error);
    if (status == CAIRN_OK)
        status = code_read_ranges(object, error);
    if (status != CAIRN_OK)
        return status;
    status = extents_read(object, error);
    if (status != CAIRN_OK)
        return explain(object, &object->symbols.table, status, error);
    const struct symbol *symbol = extents_find(object, counted_from(object, section), address);
    if (symbol == NULL)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, address, "no function is known at 0x%llx",
                         (unsigned long long)address);
    *function = describe(object, symbol);
    return CAIRN_OK;
}

enum cairn_status cairn_object_find_name(cairn_object *object, const char *name,
                                         struct cairn_object_function *function,
                                         struct cairn_error *error)
{
    if (object == NULL || name == NULL || function == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_object_find_name: `%s` is NULL",
                         object == NULL ? "object"
                         : name == NULL ? "name"
                                        : "function");
    enum cairn_status status = names_read(object, error);
    if (status != CAIRN_OK)
        return status;
    const struct symbol_list *symbols = &object->symbols;
    struct name_index *index = &object->by_name;
    if (!object->has_by_name) {
        struct hash_key key = hash_key_create();
        if (!name_index_create(index, symbols->table.strings, symbols->count, &key,
                               &object->allocator)) {
            status = error_set(error, CAIRN_ERROR_MEMORY, 0,
                               "no memory for the names of %zu symbols", symbols->count);
            return budget_explain(&object->budget, "the index of names", status, error);
        }
        for (size_t i = 0; i < symbols->count; i++) {
            uint32_t offset = symbols_get(symbols, &symbols->entries[i]).name;
            if (offset < symbols->table.strings.size)
                name_index_add(index, offset, (uint32_t)i);
        }
        name_index_sort(index);
        object->has_by_name = true;
    }
    /* If several source files have local functions with this name, the first one is returned. */
    const struct name_entry *entry = name_index_find(index, name);
    if (entry == NULL)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, 0, "there is no function '%.200s'", name);
    const struct symbol *symbol = &symbols->entries[entry->number];
    struct symbol code;
    *function = describe(object, find_code(object, symbol, &code) ? &code : symbol);
    return CAIRN_OK;
}
