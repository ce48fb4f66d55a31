/*
 * Names: reads them from objects, asks the host for their values, and writes these.
 *
 * The names are asked for before any memory of the module is allocated.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runtime/linked_names.h"

#include "base/error.h"
#include "format/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Reading ---- */

static bool is_names_section(const struct object_section *section)
{
    return section->kind != OBJECT_NOT_LOADED && strcmp(section->header.name, NAMES_SECTION) == 0;
}

/* Reads the name of the entry at `*offset`, and advances it to the next entry. */
static enum cairn_status read_entry(const struct object_image *image,
                                    const struct elf_section_view *section, uint64_t *offset,
                                    struct cairn_name *name, struct cairn_error *error)
{
    uint64_t left = section->size - *offset;
    const uint8_t *entry = section->bytes + *offset;
    uint64_t size = left < NAME_HEADER_BYTES
                        ? 0
                        : cairn_load_u64(entry + NAME_VALUE_BYTES, image->elf.file.byte_order);
    if (size == 0 || size > CAIRN_NAME_BYTES_MAX ||
        name_padded_size((size_t)size) > left - NAME_HEADER_BYTES)
        return error_set(error, CAIRN_ERROR_CORRUPT, section->file_offset + *offset,
                         "section %u (" NAMES_SECTION "), offset %llu: a name has 1 to %d bytes, "
                         "and not %llu in an entry of at most %llu",
                         section->number, (unsigned long long)*offset, CAIRN_NAME_BYTES_MAX,
                         (unsigned long long)size, (unsigned long long)left);
    *name = (struct cairn_name){entry + NAME_HEADER_BYTES, (size_t)size};
    *offset += NAME_HEADER_BYTES + name_padded_size((size_t)size);
    return CAIRN_OK;
}

/* Adds the names of a section to those that were read; without an array, only counts them. */
static enum cairn_status read_section(const struct object_image *image,
                                      const struct object_section *section,
                                      struct linked_names *names, struct cairn_error *error)
{
    struct cairn_name name;
    enum cairn_status status = CAIRN_OK;
    const struct elf_section_view *header = &section->header;
    if (header->bytes == NULL || section->kind != CAIRN_SECTION_READ_ONLY_DATA)
        return error_set(error, CAIRN_ERROR_CORRUPT, header->file_offset,
                         "section %u (" NAMES_SECTION ") is not read-only data", header->number);
    for (uint64_t offset = 0; offset < header->size && status == CAIRN_OK;) {
        status = read_entry(image, header, &offset, &name, error);
        if (status == CAIRN_OK && names->names != NULL)
            names->names[names->count] = name;
        names->count += status == CAIRN_OK;
    }
    return status;
}

static enum cairn_status read_image(const struct object_image *image, struct linked_names *names,
                                    struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (uint32_t i = 1; i < image->elf.section_count && status == CAIRN_OK; i++)
        if (is_names_section(&image->sections[i]))
            status = read_section(image, &image->sections[i], names, error);
    return status;
}

/* ---- Asking ---- */

enum { QUOTED_BYTES = 120 };

/* Writes a name for a message: as text if that is possible, otherwise as hexadecimal digits. */
static const char *quote(const struct cairn_name *name, char text[QUOTED_BYTES])
{
    enum { SHOWN_MAX = 48 };
    const uint8_t *bytes = name->bytes;
    size_t shown = name->size < SHOWN_MAX ? name->size : SHOWN_MAX;
    const char *more = shown < name->size ? "..." : "";
    bool is_text = true;
    for (size_t i = 0; i < shown; i++)
        is_text = is_text && bytes[i] >= ' ' && bytes[i] <= '~';
    if (is_text) {
        snprintf(text, QUOTED_BYTES, "'%.*s%s'", (int)shown, (const char *)bytes, more);
        return text;
    }
    char *at = text + sprintf(text, "0x");
    for (size_t i = 0; i < shown; i++)
        at += sprintf(at, "%02x", bytes[i]);
    strcpy(at, more);
    return text;
}

/* Asks for the values of an image's names, which begin with number `first`. */
static enum cairn_status ask(const struct object_image *image, linked_name_finder *find,
                             const struct linked_names *names, size_t first,
                             struct cairn_error *error)
{
    char text[QUOTED_BYTES];
    size_t count = names->count - first;
    if (count == 0)
        return CAIRN_OK;
    size_t found = find(image->host.user, names->names + first, count, names->values + first);
    if (found >= count)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_NOT_FOUND, found,
                     "the host has no value for the name %s, number %zu of %zu",
                     quote(&names->names[first + found], text), found, count);
}

static enum cairn_status count_names(const struct object_link *link, struct linked_names *names,
                                     struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < link->image_count && status == CAIRN_OK; i++)
        status =
            error_name(error, read_image(link->images[i], names, error), link->images[i]->name);
    return status;
}

/* ---- The table of IDs ---- */

struct identified {
    uint64_t id;
    size_t number;
};

static int compare_ids(const void *one, const void *other)
{
    const struct identified *a = one;
    const struct identified *b = other;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static bool is_same(const struct cairn_name *one, const struct cairn_name *other)
{
    return one->size == other->size && memcmp(one->bytes, other->bytes, one->size) == 0;
}

/* Sorts the IDs of the names, keeps the first of equal names, and sets the count. */
static enum cairn_status sort_ids(const struct linked_names *names, struct identified *sorted,
                                  size_t *count, struct cairn_error *error)
{
    *count = 0;
    for (size_t i = 0; i < names->count; i++)
        sorted[i] = (struct identified){name_id(names->names[i].bytes, names->names[i].size), i};
    qsort(sorted, names->count, sizeof *sorted, compare_ids);
    for (size_t i = 0; i < names->count; i++) {
        const struct identified *last = *count == 0 ? NULL : &sorted[*count - 1];
        if (last == NULL || last->id != sorted[i].id)
            sorted[(*count)++] = sorted[i];
        else if (!is_same(&names->names[last->number], &names->names[sorted[i].number]))
            return error_set(error, CAIRN_ERROR_CONFLICT, sorted[i].number,
                             "names %zu and %zu have the same ID 0x%llx: change one of them",
                             last->number, sorted[i].number, (unsigned long long)last->id);
    }
    return CAIRN_OK;
}

static size_t table_bytes(size_t count)
{
    return sizeof(struct module_names) + count * sizeof(struct module_name);
}

static enum cairn_status create_table(const struct linked_names *names,
                                      const struct cairn_allocator *allocator,
                                      struct module_names **table, struct cairn_error *error)
{
    size_t count;
    struct identified *sorted = memory_new(allocator, names->count, sizeof *sorted);
    if (sorted == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu names", names->count);
    enum cairn_status status = sort_ids(names, sorted, &count, error);
    struct module_names *created =
        status == CAIRN_OK ? memory_new(allocator, 1, table_bytes(count)) : NULL;
    if (status == CAIRN_OK && created == NULL)
        status = error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu names", count);
    if (created != NULL) {
        created->count = count;
        for (size_t i = 0; i < count; i++)
            created->items[i] = (struct module_name){sorted[i].id, names->values[sorted[i].number]};
        *table = created;
    }
    memory_free(allocator, sorted, names->count * sizeof *sorted);
    return status;
}

void module_names_free(struct module_names *table, const struct cairn_allocator *allocator)
{
    if (table != NULL)
        memory_free(allocator, table, table_bytes(table->count));
}

bool module_names_find(const struct module_names *table, uint64_t id, uint64_t *value)
{
    size_t begin = 0;
    size_t end = table == NULL ? 0 : table->count;
    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;
        if (table->items[middle].id == id) {
            *value = table->items[middle].value;
            return true;
        }
        if (table->items[middle].id < id)
            begin = middle + 1;
        else
            end = middle;
    }
    return false;
}

/* ---- All of it ---- */

static size_t names_bytes(size_t count)
{
    return count * (sizeof(struct cairn_name) + sizeof(uint64_t));
}

/* Reads the names, which were counted, into new memory, and asks for their values. */
static enum cairn_status find_values(const struct object_link *link, linked_name_finder *find,
                                     struct linked_names *names, struct cairn_error *error)
{
    size_t count = names->count;
    enum cairn_status status = CAIRN_OK;
    names->names = memory_new(&link->allocator, 1, names_bytes(count));
    if (names->names == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu names", count);
    names->values = (uint64_t *)(names->names + count);
    names->count = 0;
    for (size_t i = 0; i < link->image_count && status == CAIRN_OK; i++) {
        size_t first = names->count;
        status = read_image(link->images[i], names, error);
        if (status == CAIRN_OK)
            status = error_name(error, ask(link->images[i], find, names, first, error),
                                link->images[i]->name);
    }
    names->count = count; /* of the memory */
    return status;
}

enum cairn_status linked_names_find(const struct object_link *link, linked_name_finder *find,
                                    struct linked_names *names, struct module_names **table,
                                    struct cairn_error *error)
{
    *names = (struct linked_names){.names = NULL};
    *table = NULL;
    enum cairn_status status = count_names(link, names, error);
    if (status != CAIRN_OK || names->count == 0)
        return status;
    status = find_values(link, find, names, error);
    return status == CAIRN_OK ? create_table(names, &link->allocator, table, error) : status;
}

void linked_names_release(struct linked_names *names, const struct cairn_allocator *allocator)
{
    if (names->names != NULL)
        memory_free(allocator, names->names, names_bytes(names->count));
}

/* Writes the values into a section, from number `next` on. Returns the number after the last. */
static size_t write_section(const struct object_image *image, const struct object_section *section,
                            const struct linked_names *names, size_t next)
{
    struct cairn_name name;
    for (uint64_t offset = 0; offset < section->header.size; next++) {
        memcpy(section->memory.bytes + offset, &names->values[next], NAME_VALUE_BYTES);
        if (read_entry(image, &section->header, &offset, &name, NULL) != CAIRN_OK)
            break; /* does not happen: the section was read before */
    }
    return next;
}

void linked_names_write(const struct object_link *link, const struct linked_names *names)
{
    size_t next = 0;
    for (size_t i = 0; i < link->image_count && names->count > 0; i++) {
        const struct object_image *image = link->images[i];
        for (uint32_t k = 1; k < image->elf.section_count; k++)
            if (is_names_section(&image->sections[k]))
                next = write_section(image, &image->sections[k], names, next);
    }
}
