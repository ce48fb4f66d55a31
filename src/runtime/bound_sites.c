/*
 * Bindings of sites by names.
 *
 * The public functions of caches, sites and assumptions bind, as a host would, before the module is
 * published.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runtime/bound_sites.h"

#include "base/error.h"

#include <cairn/assumption.h>
#include <cairn/ic.h>
#include <cairn/patch.h>
#include <stdlib.h>
#include <string.h>

/* ---- Reading ---- */

/* What is being read. Without items, bindings and values are counted. */
struct reading {
    const struct module_names *names;
    struct bound_sites *sites;
    uint64_t *values;
    size_t site_count;
    size_t value_count;
    struct cairn_error *error;
};

static enum cairn_status refuse(const struct reading *reading,
                                const struct elf_section_view *section, uint64_t offset,
                                const char *what)
{
    return error_set(reading->error, CAIRN_ERROR_CORRUPT, section->file_offset + offset,
                     "section %u (" BOUND_SITES_SECTION "), offset %llu: %s", section->number,
                     (unsigned long long)offset, what);
}

static uint64_t word_at(const uint8_t *entry, uint64_t index)
{
    return cairn_load_u64(entry + index * BOUND_SITE_WORD_BYTES, CAIRN_LITTLE_ENDIAN);
}

/* Adds a binding, with the values of its names. */
static bool add_site(struct reading *reading, const uint8_t *entry, uint64_t count)
{
    uint64_t *values = reading->values + reading->value_count;
    for (uint64_t i = 0; i < count; i++)
        if (!module_names_find(reading->names, word_at(entry, BOUND_SITE_WORDS + i), &values[i]))
            return false;
    reading->sites->items[reading->site_count] = (struct bound_site){
        .id = word_at(entry, 0),
        .kind = (enum bound_site_kind)word_at(entry, 1),
        .count = (size_t)count,
        .values = values,
    };
    return true;
}

/* Reads the entry at `*offset`, and advances it. */
static enum cairn_status read_entry(struct reading *reading, const struct elf_section_view *section,
                                    uint64_t *offset)
{
    const uint8_t *entry = section->bytes + *offset;
    uint64_t left = (section->size - *offset) / BOUND_SITE_WORD_BYTES;
    uint64_t kind = left < BOUND_SITE_WORDS ? 0 : word_at(entry, 1);
    if (kind == 0 || kind > BOUND_SITE_KIND_LAST)
        return refuse(reading, section, *offset, "not a binding of a site");
    uint64_t count = word_at(entry, 2);
    if (!bound_site_has_count((enum bound_site_kind)kind, count) || count > left - BOUND_SITE_WORDS)
        return refuse(reading, section, *offset, "a binding with a wrong number of names");
    if (reading->sites != NULL && !add_site(reading, entry, count))
        return refuse(reading, section, *offset,
                      "a binding to a name that the object does not have");
    reading->site_count++;
    reading->value_count += (size_t)count;
    *offset += (BOUND_SITE_WORDS + count) * BOUND_SITE_WORD_BYTES;
    return CAIRN_OK;
}

static enum cairn_status read_section(struct reading *reading,
                                      const struct elf_section_view *section)
{
    enum cairn_status status = CAIRN_OK;
    if (section->bytes == NULL)
        return refuse(reading, section, 0, "it has no contents");
    for (uint64_t offset = 0; offset < section->size && status == CAIRN_OK;)
        status = read_entry(reading, section, &offset);
    return status;
}

static enum cairn_status read_image(struct reading *reading, const struct object_image *image)
{
    enum cairn_status status = CAIRN_OK;
    for (uint32_t i = 1; i < image->elf.section_count && status == CAIRN_OK; i++)
        if (strcmp(image->sections[i].header.name, BOUND_SITES_SECTION) == 0)
            status = read_section(reading, &image->sections[i].header);
    return error_name(reading->error, status, image->name);
}

static enum cairn_status read_images(struct reading *reading, const struct object_link *link)
{
    enum cairn_status status = CAIRN_OK;
    reading->site_count = 0;
    reading->value_count = 0;
    for (size_t i = 0; i < link->image_count && status == CAIRN_OK; i++)
        status = read_image(reading, link->images[i]);
    return status;
}

/* ---- One binding for each ID ---- */

static int compare_ids(const void *one, const void *other)
{
    uint64_t a = ((const struct bound_site *)one)->id;
    uint64_t b = ((const struct bound_site *)other)->id;
    return a < b ? -1 : a > b;
}

static bool is_same(const struct bound_site *one, const struct bound_site *other)
{
    return one->kind == other->kind && one->count == other->count &&
           memcmp(one->values, other->values, one->count * sizeof *one->values) == 0;
}

static enum cairn_status unite(struct bound_sites *sites, struct cairn_error *error)
{
    size_t kept = 0;
    qsort(sites->items, sites->count, sizeof *sites->items, compare_ids);
    for (size_t i = 0; i < sites->count; i++) {
        const struct bound_site *next = &sites->items[i];
        const struct bound_site *last = kept == 0 ? NULL : &sites->items[kept - 1];
        if (last == NULL || last->id != next->id)
            sites->items[kept++] = *next;
        else if (!is_same(last, next))
            return error_set(error, CAIRN_ERROR_CONFLICT, next->id,
                             "site %llu is bound by two different names: give each its own ID",
                             (unsigned long long)next->id);
    }
    sites->count = kept;
    return CAIRN_OK;
}

enum cairn_status bound_sites_read(const struct object_link *link, const struct module_names *names,
                                   struct bound_sites **sites, struct cairn_error *error)
{
    struct reading reading = {.names = names, .error = error};
    *sites = NULL;
    enum cairn_status status = read_images(&reading, link);
    if (status != CAIRN_OK || reading.site_count == 0)
        return status;
    size_t head = sizeof **sites + reading.site_count * sizeof(struct bound_site);
    size_t size = head + reading.value_count * sizeof(uint64_t);
    *sites = memory_new(&link->allocator, 1, size);
    if (*sites == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu bindings of sites",
                         reading.site_count);
    (*sites)->size = size;
    reading.sites = *sites;
    reading.values = (uint64_t *)((uintptr_t)*sites + head);
    status = read_images(&reading, link);
    (*sites)->count = reading.site_count;
    return status == CAIRN_OK ? unite(*sites, error) : status;
}

void bound_sites_free(struct bound_sites *sites, const struct cairn_allocator *allocator)
{
    if (sites != NULL)
        memory_free(allocator, sites, sites->size);
}

/* ---- Binding ---- */

static const void *pointer_of(uint64_t value) { return (const void *)(uintptr_t)value; }

static enum cairn_status bind_assumptions(cairn_site *site, const struct bound_site *bound,
                                          struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 1; i < bound->count && status == CAIRN_OK; i++)
        status = cairn_assumption_add((cairn_assumption *)(uintptr_t)bound->values[i], site,
                                      pointer_of(bound->values[0]), CAIRN_RELAXED, error);
    return status;
}

static enum cairn_status bind_site(cairn_site *site, const struct bound_site *bound,
                                   struct cairn_error *error)
{
    cairn_ic *ic;
    for (size_t i = 0; i < bound->count; i++)
        if (bound->values[i] == 0)
            return error_set(error, CAIRN_ERROR_ARGUMENT, i, "the value of its name is 0");
    switch (bound->kind) {
    case BOUND_SITE_CACHE:
        return cairn_ic_create(site, pointer_of(bound->values[0]), &ic, error);
    case BOUND_SITE_CALL:
        return cairn_site_call(site, pointer_of(bound->values[0]), CAIRN_RELAXED, error);
    case BOUND_SITE_ASSUMPTIONS:
        break;
    }
    return bind_assumptions(site, bound, error);
}

/* ORDER bound_site_kind */
static const char *const kind_names[] = {"", "an inline cache", "a target", "assumptions"};

static enum cairn_status bind_record(struct cairn_record record, const struct bound_site *bound,
                                     struct cairn_error *error)
{
    struct cairn_error reason = {0};
    const struct cairn_declaration *declaration = cairn_record_declaration(record);
    cairn_site *site = cairn_record_site(record);
    enum cairn_status status =
        site != NULL ? bind_site(site, bound, &reason)
                     : error_set(&reason, CAIRN_ERROR_NOT_FOUND, bound->id,
                                 "its record has no declaration, or its ID has two shapes");
    if (status == CAIRN_OK)
        return CAIRN_OK;
    error_set(error, status, reason.offset, "site %llu of '%.80s' cannot have %s: %.160s",
              (unsigned long long)bound->id,
              declaration == NULL || declaration->function == NULL ? "" : declaration->function,
              kind_names[bound->kind], reason.message);
    if (error != NULL)
        error->system_error = reason.system_error;
    return status;
}

enum cairn_status bound_sites_apply(const struct bound_sites *sites, const cairn_module *module,
                                    struct cairn_error *error)
{
    if (sites == NULL)
        return CAIRN_OK;
    const cairn_table *table = cairn_module_table(module);
    enum cairn_status status = CAIRN_OK;
    uint32_t record_count = cairn_table_record_count(table);
    for (uint32_t i = 0; i < record_count && status == CAIRN_OK; i++) {
        const struct cairn_record record = {table, i};
        const struct bound_site key = {.id = cairn_record_id(record)};
        const struct bound_site *found =
            bsearch(&key, sites->items, sites->count, sizeof key, compare_ids);
        if (found != NULL)
            status = bind_record(record, found, error);
    }
    return status;
}
