/* Merges symbols, and finds their addresses. SPDX-License-Identifier: MIT */
#include "object/symbols.h"

#include "base/array.h"
#include "base/error.h"
#include "object/sections.h"

#include <stdio.h>
#include <string.h>

/* ---- Merging ---- */

static bool is_in_section(const struct elf_symbol *symbol)
{
    return symbol->section != ELF_UNDEFINED && symbol->section != ELF_ABSOLUTE &&
           symbol->section != ELF_COMMON;
}

static enum cairn_status check_symbol(const struct object_image *image,
                                      const struct elf_symbol *symbol, struct cairn_error *error)
{
    const char *what = NULL;
    if (symbol->binding > ELF_WEAK && symbol->binding != ELF_UNIQUE)
        what = "its binding is not supported";
    else if (symbol->section != ELF_UNDEFINED && symbol->type == ELF_TLS_SYMBOL)
        what = "thread-local storage is not supported";
    else if (symbol->section != ELF_UNDEFINED && symbol->type == ELF_IFUNC)
        what = "functions that are chosen at run time (IFUNC) are not supported";
    if (what != NULL)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, symbol->number,
                         "section %u (symbols), entry %u (%.80s): %s", image->elf.symbol_section,
                         symbol->number, symbol->name, what);
    if (symbol->section == ELF_COMMON && (symbol->value & (symbol->value - 1)) != 0)
        return error_set(error, CAIRN_ERROR_RANGE, symbol->number,
                         "section %u (symbols), entry %u (%.80s): a common symbol whose alignment "
                         "%llu is not a power of two",
                         image->elf.symbol_section, symbol->number, symbol->name,
                         (unsigned long long)symbol->value);
    if (symbol->section == ELF_COMMON && image->host.alignment_max != 0 &&
        symbol->value > image->host.alignment_max)
        return error_set(error, CAIRN_ERROR_RANGE, symbol->number,
                         "section %u (symbols), entry %u (%.80s): aligned to %llu bytes; at most "
                         "%llu are possible",
                         image->elf.symbol_section, symbol->number, symbol->name,
                         (unsigned long long)symbol->value,
                         (unsigned long long)image->host.alignment_max);
    if (!is_in_section(symbol))
        return CAIRN_OK;
    uint64_t size = image->sections[symbol->section].header.size;
    if (symbol->value <= size)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_CORRUPT, symbol->number,
                     "section %u (symbols), entry %u (%.80s): at byte %llu of section %u, which "
                     "has %llu bytes",
                     image->elf.symbol_section, symbol->number, symbol->name,
                     (unsigned long long)symbol->value, symbol->section, (unsigned long long)size);
}

static enum object_definition definition_of(const struct object_image *image,
                                            const struct elf_symbol *symbol)
{
    if (symbol->section == ELF_UNDEFINED ||
        (is_in_section(symbol) && image->sections[symbol->section].kind == OBJECT_NOT_LOADED))
        return OBJECT_UNDEFINED;
    if (symbol->section == ELF_COMMON)
        return OBJECT_COMMON;
    return symbol->binding == ELF_WEAK || symbol->binding == ELF_UNIQUE ? OBJECT_WEAK
                                                                        : OBJECT_STRONG;
}

static bool is_in_comdat(const struct object_image *image, const struct elf_symbol *symbol)
{
    return is_in_section(symbol) && image->sections[symbol->section].is_comdat;
}

static void define(struct object_symbol *defined, const struct object_image *image,
                   const struct elf_symbol *symbol)
{
    defined->definition = definition_of(image, symbol);
    defined->image = defined->definition == OBJECT_UNDEFINED ? NULL : image;
    defined->type = symbol->type;
    defined->section = symbol->section;
    defined->value = symbol->value;
    defined->size = symbol->size;
    defined->other = symbol->other;
    defined->is_comdat = is_in_comdat(image, symbol);
}

static const char *name_of(const struct object_image *image)
{
    return *image->name == '\0' ? "an object without a name" : image->name;
}

/* Merges a definition with that of the same name. */
static enum cairn_status merge(struct object_symbol *known, const struct object_image *image,
                               const struct elf_symbol *symbol, struct cairn_error *error)
{
    static const int restrictions[] = {
        [ELF_DEFAULT] = 0, [ELF_PROTECTED] = 1, [ELF_HIDDEN] = 2, [ELF_INTERNAL] = 3};
    enum object_definition definition = definition_of(image, symbol);
    if (restrictions[symbol->visibility] > restrictions[known->visibility])
        known->visibility = symbol->visibility;
    if (definition > known->definition) {
        define(known, image, symbol);
    } else if (definition == OBJECT_COMMON && known->definition == OBJECT_COMMON) {
        known->value = symbol->value > known->value ? symbol->value : known->value;
        known->size = symbol->size > known->size ? symbol->size : known->size;
    } else if (definition == OBJECT_STRONG && !(known->is_comdat && is_in_comdat(image, symbol))) {
        return error_set(error, CAIRN_ERROR_CONFLICT, symbol->number,
                         "'%.80s' is defined by both %.60s and %.60s", symbol->name,
                         name_of(known->image), name_of(image));
    }
    return CAIRN_OK;
}

/* Adds a symbol. `name` is NULL for a local one. */
static struct object_symbol *add_symbol(struct object_link *link, const char *name)
{
    struct object_symbol *symbols =
        array_reserve(&link->allocator, link->symbols, link->symbol_count, 1,
                      &link->symbol_capacity, sizeof *symbols);
    if (symbols == NULL)
        return NULL;
    link->symbols = symbols;
    symbols[link->symbol_count] = (struct object_symbol){.name = name};
    return &symbols[link->symbol_count++];
}

/* Returns the symbol with a name, which it adds if it is new. */
static struct object_symbol *find_or_add(struct object_link *link, const char *name, size_t length)
{
    uint32_t hash = (uint32_t)(hash_text(&link->names.key, name, length) >> 32);
    for (const struct hash_place *place = hash_set_first(&link->names, hash); place->number != 0;
         place = hash_set_next(&link->names, place))
        if (place->hash == hash && strcmp(link->symbols[place->number - 1].name, name) == 0)
            return &link->symbols[place->number - 1];
    uint32_t number = (uint32_t)link->symbol_count;
    struct object_symbol *added = add_symbol(link, name);
    return added != NULL && hash_set_add(&link->names, &link->allocator, hash, number) ? added
                                                                                       : NULL;
}

static enum cairn_status read_symbol(struct object_link *link, struct object_image *image,
                                     uint32_t number, struct cairn_error *error)
{
    struct elf_symbol symbol;
    struct object_reference *reference = &image->references[number];
    struct object_symbol *found;
    size_t length;
    enum cairn_status status = elf_symbol(&image->elf, number, &symbol, error);
    if (status == CAIRN_OK)
        status = check_symbol(image, &symbol, error);
    if (status != CAIRN_OK)
        return status;
    bool is_local = symbol.binding == ELF_LOCAL;
    if (!is_local && !object_take_name(image, symbol.name, &length))
        return error_set(error, CAIRN_ERROR_CORRUPT, number,
                         "section %u (symbols), entry %u (%.80s): the names of sections and "
                         "symbols are too long in total",
                         image->elf.symbol_section, number, symbol.name);
    found = is_local ? add_symbol(link, NULL) : find_or_add(link, symbol.name, length);
    if (found == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %u symbols",
                         image->elf.symbol_count);
    reference->symbol = (uint32_t)(found - link->symbols);
    reference->is_weak = symbol.binding == ELF_WEAK;
    if (!is_local)
        return merge(found, image, &symbol, error);
    define(found, image, &symbol);
    return CAIRN_OK;
}

enum cairn_status object_merge_symbols(struct object_link *link, struct object_image *image,
                                       struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    if (image->elf.symbol_count > UINT32_MAX - link->symbol_count)
        return error_set(error, CAIRN_ERROR_RANGE, 0, "%zu and %u symbols are too many",
                         link->symbol_count, image->elf.symbol_count);
    for (uint32_t i = 1; i < image->elf.symbol_count && status == CAIRN_OK; i++)
        status = read_symbol(link, image, i, error);
    return status;
}

/* ---- Symbols that linkers define ---- */

bool object_is_table_name(const char *name)
{
    return strcmp(name, "_GLOBAL_OFFSET_TABLE_") == 0 || strcmp(name, ".TOC.") == 0;
}

/* Returns the range that a name __start_NAME or __stop_NAME is about, or NULL. */
static const struct object_range *bounded_range(const struct object_link *link, const char *name,
                                                bool *is_stop)
{
    static const char start[] = "__start_";
    static const char stop[] = "__stop_";
    *is_stop = strncmp(name, stop, sizeof stop - 1) == 0;
    if (!*is_stop && strncmp(name, start, sizeof start - 1) != 0)
        return NULL;
    const char *section = name + (*is_stop ? sizeof stop : sizeof start) - 1;
    return object_find_range(link, section, strlen(section));
}

static bool is_predefined(const struct object_link *link, const char *name)
{
    bool is_stop;
    return object_is_table_name(name) || strcmp(name, "__dso_handle") == 0 ||
           bounded_range(link, name, &is_stop) != NULL;
}

static uint64_t predefined_address(const struct object_link *link, const char *name)
{
    bool is_stop;
    const struct object_range *range = bounded_range(link, name, &is_stop);
    if (range != NULL)
        return is_stop ? range->last->memory.address + range->last->header.size
                       : range->first->memory.address;
    if (object_is_table_name(name))
        return link->table;
    for (int i = 0; i < OBJECT_AREAS; i++)
        if (link->areas[i].size > 0)
            return link->areas[i].memory.address;
    return 0;
}

/* PC sections have memory of their own each, so several of them have no common bounds. */
static enum cairn_status check_bounds(const struct object_link *link, const char *name,
                                      struct cairn_error *error)
{
    bool is_stop;
    const struct object_range *range = bounded_range(link, name, &is_stop);
    if (range == NULL || range->first == range->last || range->first->kind < OBJECT_AREAS)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                     "symbol '%.80s': there are several sections '%.60s', which are loaded as PC "
                     "sections and are not adjacent",
                     name, range->name);
}

/* ---- Symbols that no object defines ---- */

/* The names of undefined symbols, as part of a message. */
struct missing {
    char text[160];
    size_t length;
    uint32_t count;
    uint32_t listed;
};

static void add_missing(struct missing *missing, const char *name)
{
    enum { FIRST_MAX = 120 };
    size_t left = sizeof missing->text - missing->length;
    size_t length = strnlen(name, missing->count == 0 ? FIRST_MAX : left);
    missing->count++;
    if (length + 3 > left || missing->listed + 1 != missing->count)
        return;
    if (missing->listed++ > 0) {
        memcpy(missing->text + missing->length, ", ", 2);
        missing->length += 2;
    }
    memcpy(missing->text + missing->length, name, length);
    missing->length += length;
}

static bool is_undefined(const struct object_link *link, const struct object_reference *reference)
{
    const struct object_symbol *symbol = &link->symbols[reference->symbol];
    return reference->is_used && symbol->name != NULL && symbol->definition == OBJECT_UNDEFINED;
}

/* Finds what the symbols of one object need from elsewhere. */
static enum cairn_status find_undefined(struct object_link *link, const struct object_image *image,
                                        struct cairn_error *error)
{
    const struct object_host *host = &image->host;
    for (uint32_t i = image->elf.local_count; i < image->elf.symbol_count; i++) {
        struct object_symbol *symbol = &link->symbols[image->references[i].symbol];
        if (!is_undefined(link, &image->references[i]))
            continue;
        if (is_predefined(link, symbol->name))
            symbol->definition = OBJECT_BY_LINKER;
        else if (host->find_symbol(host->user, symbol->name, &symbol->address))
            symbol->definition = OBJECT_BY_HOST;
        enum cairn_status status = symbol->definition == OBJECT_BY_LINKER
                                       ? check_bounds(link, symbol->name, error)
                                       : CAIRN_OK;
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}

static void note_missing(struct object_link *link, const struct object_image *image,
                         struct missing *missing)
{
    const struct object_host *host = &image->host;
    for (uint32_t i = image->elf.local_count; i < image->elf.symbol_count; i++) {
        struct object_symbol *symbol = &link->symbols[image->references[i].symbol];
        if (!is_undefined(link, &image->references[i]))
            continue;
        symbol->address = 0;
        if (image->references[i].is_weak || symbol->is_noted)
            continue;
        symbol->is_noted = true;
        add_missing(missing, symbol->name);
        if (host->note_undefined != NULL)
            host->note_undefined(host->user, symbol->name);
    }
}

enum cairn_status object_find_symbols(struct object_link *link, struct cairn_error *error)
{
    struct missing missing = {.length = 0};
    for (size_t i = 0; i < link->image_count; i++) {
        enum cairn_status status = find_undefined(link, link->images[i], error);
        if (status != CAIRN_OK)
            return status;
    }
    for (size_t i = 0; i < link->image_count; i++)
        note_missing(link, link->images[i], &missing);
    if (missing.count == 0)
        return CAIRN_OK;
    char more[32] = "";
    if (missing.listed < missing.count)
        snprintf(more, sizeof more, " and %u more", missing.count - missing.listed);
    return error_set(error, CAIRN_ERROR_NOT_FOUND, 0, "%u undefined symbols: %.*s%s", missing.count,
                     (int)missing.length, missing.text, more);
}

/* ---- Addresses ---- */

static void set_address(const struct object_link *link, struct object_symbol *symbol)
{
    if (symbol->definition == OBJECT_BY_LINKER)
        symbol->address = predefined_address(link, symbol->name);
    else if (symbol->definition == OBJECT_COMMON)
        symbol->address += link->areas[CAIRN_SECTION_DATA].memory.address;
    else if (symbol->image != NULL && symbol->section == ELF_ABSOLUTE)
        symbol->address = symbol->value;
    else if (symbol->image != NULL)
        symbol->address = symbol->image->sections[symbol->section].memory.address + symbol->value;
}

void object_set_addresses(struct object_link *link)
{
    for (size_t i = 1; i < link->symbol_count; i++)
        set_address(link, &link->symbols[i]);
}
