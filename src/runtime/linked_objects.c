/* SPDX-License-Identifier: MIT */
#include "runtime/linked_objects.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

enum { WORD_BYTES = 8 };

static uint64_t read_word(const struct object_link *link, const struct object_section *section,
                          uint64_t offset)
{
    return cairn_load_u64(section->memory.bytes + offset, link->arch->byte_order);
}

/* ---- Symbols ---- */

static const struct object_section *section_of(const struct object_symbol *symbol)
{
    return symbol->section < symbol->image->elf.section_count
               ? &symbol->image->sections[symbol->section]
               : NULL;
}

static bool is_in_area(const struct object_section *section)
{
    return section != NULL && section->kind != OBJECT_NOT_LOADED && section->kind < OBJECT_AREAS;
}

static bool is_code(const struct object_link *link, uint64_t address)
{
    const struct object_area *code = &link->areas[CAIRN_SECTION_CODE];
    return address - code->memory.address < code->size;
}

/* Returns the first byte of a function's code, or 0 if the symbol is not a function's, or if the
 * function is empty. Labels without a type, which assemblers write, are functions if they are
 * global. */
static uint64_t code_of(const struct object_link *link, const struct object_symbol *symbol)
{
    const struct object_section *section = section_of(symbol);
    uint64_t code = symbol->address;
    bool is_function =
        symbol->type == ELF_FUNCTION || (symbol->type == ELF_NO_TYPE && symbol->name != NULL);
    if (!is_function || !is_in_area(section) || section->header.size == 0)
        return 0;
    if (link->arch->has_descriptors && section->kind == CAIRN_SECTION_READ_ONLY_DATA &&
        section->header.size >= WORD_BYTES && symbol->value <= section->header.size - WORD_BYTES)
        code = read_word(link, section, symbol->value);
    return is_code(link, code) ? code : 0;
}

static struct symbol describe(const struct object_link *link, const struct object_symbol *symbol,
                              const char *name)
{
    bool is_visible = symbol->visibility == ELF_DEFAULT || symbol->visibility == ELF_PROTECTED;
    bool is_placed = symbol->definition == OBJECT_COMMON || is_in_area(section_of(symbol));
    return (struct symbol){.name = name,
                           .address = symbol->address,
                           .code = code_of(link, symbol),
                           .size = symbol->size,
                           .is_definition = symbol->name != NULL && is_visible && is_placed};
}

/* Adds the local functions of an object to a list of symbols. */
static enum cairn_status add_local_functions(const struct object_link *link,
                                             struct object_image *image, struct symbol *list,
                                             size_t *count, struct cairn_error *error)
{
    struct elf_symbol local;
    size_t length;
    for (uint32_t i = 1; i < image->elf.local_count; i++) {
        const struct object_symbol *symbol = &link->symbols[image->references[i].symbol];
        if (symbol->image == NULL || symbol->type != ELF_FUNCTION)
            continue;
        enum cairn_status status = elf_symbol(&image->elf, i, &local, error);
        if (status != CAIRN_OK)
            return status;
        if (!object_take_name(image, local.name, &length))
            return error_set(error, CAIRN_ERROR_CORRUPT, i,
                             "section %u (symbols), entry %u: the names of symbols are too long in "
                             "total",
                             image->elf.symbol_section, i);
        list[(*count)++] = describe(link, symbol, local.name);
    }
    return CAIRN_OK;
}

enum cairn_status linked_symbols(const struct object_link *link, const struct hash_key *key,
                                 struct module_symbols **symbols, struct cairn_error *error)
{
    size_t count = 0;
    enum cairn_status status = CAIRN_OK;
    struct symbol *list = memory_new(&link->allocator, link->symbol_count, sizeof *list);
    if (list == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu symbols",
                         link->symbol_count);
    for (size_t i = 1; i < link->symbol_count; i++)
        if (link->symbols[i].name != NULL && link->symbols[i].image != NULL)
            list[count++] = describe(link, &link->symbols[i], link->symbols[i].name);
    for (size_t i = 0; i < link->image_count && status == CAIRN_OK; i++)
        status = add_local_functions(link, link->images[i], list, &count, error);
    if (status == CAIRN_OK)
        status = module_symbols_create(list, count, key, &link->allocator, symbols, error);
    memory_free(&link->allocator, list, link->symbol_count * sizeof *list);
    return status;
}

/* ---- Constructors and destructors ---- */

/* A section that contains pointers to functions. */
struct function_array {
    const struct object_section *section;
    enum attachment kind;
    bool is_reversed; /* whether its last function is the first constructor, or last destructor */
    uint32_t priority;
    size_t number; /* in the order of the objects and sections */
};

enum { NO_PRIORITY = 65536, LAST_PRIORITY = 65535 };

/* Recognises the name of a section, which may end with a number. */
static bool has_name(const char *name, const char *stem, uint32_t *priority)
{
    size_t length = strlen(stem);
    if (strncmp(name, stem, length) != 0)
        return false;
    *priority = NO_PRIORITY;
    if (name[length] == '\0')
        return true;
    if (name[length] != '.')
        return false;
    unsigned long number = strtoul(name + length + 1, NULL, 10);
    *priority = number > LAST_PRIORITY ? LAST_PRIORITY : (uint32_t)number;
    return true;
}

/* Describes a section if it contains constructors or destructors. */
static bool is_function_array(const struct object_section *section, struct function_array *array)
{
    const char *name = section->header.name;
    if (section->kind == OBJECT_NOT_LOADED)
        return false;
    *array = (struct function_array){.section = section, .kind = ATTACHED_CONSTRUCTOR};
    if (section->header.type == ELF_PREINIT_ARRAY ||
        has_name(name, ".init_array", &array->priority))
        return true;
    array->is_reversed = true;
    if (has_name(name, ".ctors", &array->priority)) {
        if (array->priority != NO_PRIORITY)
            array->priority = LAST_PRIORITY - array->priority;
        return true;
    }
    array->kind = ATTACHED_DESTRUCTOR;
    if (has_name(name, ".dtors", &array->priority)) {
        if (array->priority != NO_PRIORITY)
            array->priority = LAST_PRIORITY - array->priority;
        return true;
    }
    array->is_reversed = false;
    return has_name(name, ".fini_array", &array->priority);
}

static int compare_arrays(const void *one, const void *other)
{
    const struct function_array *a = one;
    const struct function_array *b = other;
    if (a->priority != b->priority)
        return a->priority < b->priority ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* Adds the functions of a section, in the order of their calls. Entries of 0 and -1 are marks in
 * `.ctors` and `.dtors`. */
static bool add_functions(const struct object_link *link, const struct function_array *array,
                          struct attachment_list *attached)
{
    uint64_t count = array->section->header.size / WORD_BYTES;
    bool is_backwards = array->is_reversed != (array->kind == ATTACHED_DESTRUCTOR);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t function =
            read_word(link, array->section, (is_backwards ? count - 1 - i : i) * WORD_BYTES);
        if (function != 0 && function != UINT64_MAX &&
            !attachment_list_add(attached, &link->allocator, array->kind, function))
            return false;
    }
    return true;
}

/* Lists the sections with constructors and destructors, or only counts them if `arrays` is NULL. */
static size_t list_arrays(const struct object_link *link, struct function_array *arrays)
{
    size_t count = 0;
    struct function_array array;
    for (size_t i = 0; i < link->image_count; i++) {
        const struct object_image *image = link->images[i];
        for (uint32_t number = 1; number < image->elf.section_count; number++) {
            if (!is_function_array(&image->sections[number], &array))
                continue;
            array.number = count;
            if (arrays != NULL)
                arrays[count] = array;
            count++;
        }
    }
    return count;
}

static void find_dso_handle(const struct object_link *link, struct attachment_list *attached)
{
    for (size_t i = 1; i < link->symbol_count; i++)
        if (link->symbols[i].definition == OBJECT_BY_LINKER &&
            strcmp(link->symbols[i].name, "__dso_handle") == 0)
            attached->dso_handle = link->symbols[i].address;
}

enum cairn_status linked_constructors(const struct object_link *link,
                                      struct attachment_list *attached, struct cairn_error *error)
{
    size_t count = list_arrays(link, NULL);
    bool has_memory = true;
    find_dso_handle(link, attached);
    if (count == 0)
        return CAIRN_OK;
    struct function_array *arrays = memory_new(&link->allocator, count, sizeof *arrays);
    if (arrays == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu sections of constructors",
                         count);
    list_arrays(link, arrays);
    qsort(arrays, count, sizeof *arrays, compare_arrays);
    for (size_t i = 0; i < count && has_memory; i++)
        if (arrays[i].kind == ATTACHED_CONSTRUCTOR)
            has_memory = add_functions(link, &arrays[i], attached);
    for (size_t i = count; i-- > 0 && has_memory;)
        if (arrays[i].kind == ATTACHED_DESTRUCTOR)
            has_memory = add_functions(link, &arrays[i], attached);
    memory_free(&link->allocator, arrays, count * sizeof *arrays);
    return has_memory ? CAIRN_OK
                      : error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for constructors");
}
