/* Chooses the sections to load. SPDX-License-Identifier: MIT */
#include "object/sections.h"

#include "base/array.h"
#include "base/error.h"
#include "format/bound_sites.h"
#include "format/manifest.h"

#include <cairn/faultmap.h>
#include <stdlib.h>
#include <string.h>

enum { ELF_NOTE = 7, ELF_GROUP = 17 };
#define ELF_EXCLUDE UINT64_C(0x80000000)

/* ---- Kinds ---- */

static bool has_prefix(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Whether data of a section is written only by relocations. */
static bool is_constant(const struct elf_section_view *section)
{
    static const char *const prefixes[] = {".data.rel.ro", ".init_array", ".fini_array", ".ctors",
                                           ".dtors",       ".toc",        ".got",        ".opd"};
    if ((section->flags & ELF_WRITE) == 0 || section->type == ELF_INIT_ARRAY ||
        section->type == ELF_FINI_ARRAY || section->type == ELF_PREINIT_ARRAY)
        return true;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (has_prefix(section->name, prefixes[i]))
            return true;
    return false;
}

static bool is_loaded(const struct elf_section_view *section)
{
    return (section->flags & ELF_ALLOC) != 0 && (section->flags & ELF_EXCLUDE) == 0 &&
           section->type != ELF_NOTE && strcmp(section->name, MANIFEST_SECTION) != 0 &&
           strcmp(section->name, BOUND_SITES_SECTION) != 0;
}

/* Returns the kind of a loaded section. */
static int choose_kind(const struct object_host *host, const struct elf_section_view *section)
{
    bool is_code = (section->flags & ELF_EXECUTE) != 0;
    if (section->size == 0) /* symbols may be in it */
        return is_code ? CAIRN_SECTION_CODE : CAIRN_SECTION_READ_ONLY_DATA;
    if (strcmp(section->name, ".llvm_stackmaps") == 0)
        return CAIRN_SECTION_STACKMAP;
    if (strcmp(section->name, CAIRN_FAULTMAP_SECTION) == 0)
        return CAIRN_SECTION_FAULTMAP;
    if (strcmp(section->name, ".eh_frame") == 0)
        return CAIRN_SECTION_UNWIND_TABLE;
    if (host->is_pc_section(host->user, section->name))
        return CAIRN_SECTION_PC_SECTION;
    if (is_code)
        return CAIRN_SECTION_CODE;
    return is_constant(section) ? CAIRN_SECTION_READ_ONLY_DATA : CAIRN_SECTION_DATA;
}

static enum cairn_status check_supported(const struct elf_section_view *section,
                                         struct cairn_error *error)
{
    if ((section->flags & ELF_ALLOC) == 0)
        return CAIRN_OK;
    if ((section->flags & ELF_TLS) != 0)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, section->file_offset,
                         "section %u (%.60s): thread-local storage is not supported",
                         section->number, section->name);
    if ((section->flags & ELF_COMPRESSED) != 0)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, section->file_offset,
                         "section %u (%.60s): loaded sections must not be compressed",
                         section->number, section->name);
    if ((section->flags & ELF_WRITE) != 0 && (section->flags & ELF_EXECUTE) != 0)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, section->file_offset,
                         "section %u (%.60s): writable and executable", section->number,
                         section->name);
    return CAIRN_OK;
}

/* Checks what depends on the kind. Only code and data may have no contents in the file: the size of
 * tables, which the loader reads, is that of their contents. */
static enum cairn_status check_loaded(const struct object_host *host,
                                      const struct object_section *section,
                                      struct cairn_error *error)
{
    const struct elf_section_view *header = &section->header;
    if (section->kind >= OBJECT_AREAS && header->bytes == NULL)
        return error_set(error, CAIRN_ERROR_CORRUPT, header->file_offset,
                         "section %u (%.60s): %llu bytes without contents in the file",
                         header->number, header->name, (unsigned long long)header->size);
    if (host->alignment_max == 0 || header->alignment <= host->alignment_max)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_RANGE, header->file_offset,
                     "section %u (%.60s): aligned to %llu bytes; at most %llu are possible",
                     header->number, header->name, (unsigned long long)header->alignment,
                     (unsigned long long)host->alignment_max);
}

/* ---- Contents that overlap ---- */

/* A part of the file, sorted by its begin. */
struct extent {
    uint64_t begin;
    uint64_t end;
    uint32_t section;
};

static int compare_extents(const void *one, const void *other)
{
    const struct extent *a = one;
    const struct extent *b = other;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

/* Checks that no two sections share bytes of the file. So loading takes memory in proportion to the
 * size of the file. */
static enum cairn_status check_overlaps(const struct object_link *link,
                                        const struct object_image *image, struct cairn_error *error)
{
    uint32_t count = 0;
    enum cairn_status status = CAIRN_OK;
    struct extent *extents =
        memory_new(&link->allocator, image->elf.section_count, sizeof *extents);
    if (extents == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %u sections",
                         image->elf.section_count);
    for (uint32_t i = 1; i < image->elf.section_count; i++) {
        const struct elf_section_view *section = &image->sections[i].header;
        if (section->bytes != NULL && section->size > 0)
            extents[count++] =
                (struct extent){section->file_offset, section->file_offset + section->size, i};
    }
    if (count > 1)
        qsort(extents, count, sizeof *extents, compare_extents);
    for (uint32_t i = 1; i < count && status == CAIRN_OK; i++)
        if (extents[i].begin < extents[i - 1].end)
            status = error_set(error, CAIRN_ERROR_CORRUPT, extents[i].begin,
                               "sections %u and %u share bytes of the file", extents[i - 1].section,
                               extents[i].section);
    memory_free(&link->allocator, extents, image->elf.section_count * sizeof *extents);
    return status;
}

/* ---- Groups ---- */

/* Marks the members of a COMDAT group. Source: gABI, "Section Groups": a word of flags, then the
 * numbers of the sections. */
static enum cairn_status mark_group(struct object_image *image,
                                    const struct elf_section_view *group, struct cairn_error *error)
{
    enum { WORD_BYTES = 4, IS_COMDAT = 1 };
    enum cairn_byte_order order = image->elf.file.byte_order;
    if (group->bytes == NULL || group->size % WORD_BYTES != 0 || group->size == 0)
        return error_set(error, CAIRN_ERROR_CORRUPT, group->file_offset,
                         "section %u (%.60s): a group of %llu bytes (a multiple of %d expected)",
                         group->number, group->name, (unsigned long long)group->size, WORD_BYTES);
    bool is_comdat = (cairn_load_u32(group->bytes, order) & IS_COMDAT) != 0;
    for (uint64_t at = WORD_BYTES; at < group->size; at += WORD_BYTES) {
        uint32_t member = cairn_load_u32(group->bytes + at, order);
        if (member == 0 || member >= image->elf.section_count)
            return error_set(error, CAIRN_ERROR_CORRUPT, group->file_offset + at,
                             "section %u (%.60s), entry %llu: a group with section %u of %u",
                             group->number, group->name, (unsigned long long)(at / WORD_BYTES - 1),
                             member, image->elf.section_count);
        if (is_comdat)
            image->sections[member].is_comdat = true;
    }
    return CAIRN_OK;
}

/* ---- Ranges ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_identifier(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!is_letter(name[i]) && (i == 0 || name[i] < '0' || name[i] > '9'))
            return false;
    return length > 0;
}

static uint32_t hash_name(const struct object_link *link, const char *name, size_t length)
{
    return (uint32_t)(hash_text(&link->range_names.key, name, length) >> 32);
}

const struct object_range *object_find_range(const struct object_link *link, const char *name,
                                             size_t length)
{
    uint32_t hash = hash_name(link, name, length);
    for (const struct hash_place *place = hash_set_first(&link->range_names, hash);
         place->number != 0; place = hash_set_next(&link->range_names, place)) {
        const struct object_range *range = &link->ranges[place->number - 1];
        if (place->hash == hash && strcmp(range->name, name) == 0)
            return range;
    }
    return NULL;
}

/* Gives a section and its range the same kind: data, if one of the sections is written. Empty
 * sections may have any kind. Returns false if there would be code and data. */
static bool join_kinds(struct object_range *range, struct object_section *section)
{
    int kind = range->first->kind;
    bool has_contents = section->header.size > 0;
    bool is_wider = !range->has_contents ||
                    (kind == CAIRN_SECTION_READ_ONLY_DATA && section->kind == CAIRN_SECTION_DATA);
    if (has_contents && is_wider)
        for (struct object_section *member = range->first; member != NULL; member = member->next)
            member->kind = section->kind;
    else if (!has_contents ||
             (section->kind == CAIRN_SECTION_READ_ONLY_DATA && kind == CAIRN_SECTION_DATA))
        section->kind = kind;
    range->has_contents = range->has_contents || has_contents;
    return section->kind == range->first->kind;
}

static enum cairn_status create_range(struct object_link *link, struct object_section *section,
                                      size_t length, struct cairn_error *error)
{
    uint32_t hash = hash_name(link, section->header.name, length);
    struct object_range *ranges = array_reserve(&link->allocator, link->ranges, link->range_count,
                                                1, &link->range_capacity, sizeof *ranges);
    if (ranges != NULL)
        link->ranges = ranges;
    if (ranges == NULL ||
        !hash_set_add(&link->range_names, &link->allocator, hash, (uint32_t)link->range_count))
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for the name of a section");
    ranges[link->range_count++] = (struct object_range){.name = section->header.name,
                                                        .has_contents = section->header.size > 0,
                                                        .first = section,
                                                        .last = section};
    return CAIRN_OK;
}

/* Adds a loaded section to the range of its name, of `length` bytes, if that is an identifier. */
static enum cairn_status add_to_range(struct object_link *link, struct object_section *section,
                                      size_t length, struct cairn_error *error)
{
    const char *name = section->header.name;
    if (!is_identifier(name, length))
        return CAIRN_OK;
    struct object_range *range =
        (struct object_range *)(uintptr_t)object_find_range(link, name, length);
    section->is_in_range = true;
    if (range == NULL)
        return create_range(link, section, length, error);
    if (!join_kinds(range, section))
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, section->header.file_offset,
                         "section %u (%.60s): there are code and data with this name",
                         section->header.number, name);
    range->last->next = section;
    range->last = section;
    return CAIRN_OK;
}

/* ---- Reading ---- */

static enum cairn_status read_section(struct object_link *link, struct object_image *image,
                                      uint32_t number, struct cairn_error *error)
{
    struct object_section *section = &image->sections[number];
    size_t length;
    enum cairn_status status = check_supported(&section->header, error);
    if (status != CAIRN_OK)
        return status;
    section->kind = OBJECT_NOT_LOADED;
    if (section->header.type == ELF_GROUP)
        return mark_group(image, &section->header, error);
    if (!is_loaded(&section->header))
        return CAIRN_OK;
    if (!object_take_name(image, section->header.name, &length))
        return error_set(error, CAIRN_ERROR_CORRUPT, section->header.file_offset,
                         "section %u (%.60s): the names of sections and symbols are too long in "
                         "total",
                         number, section->header.name);
    section->kind = choose_kind(&image->host, &section->header);
    status = check_loaded(&image->host, section, error);
    return status == CAIRN_OK ? add_to_range(link, section, length, error) : status;
}

enum cairn_status object_choose_sections(struct object_link *link, struct object_image *image,
                                         struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    image->sections[0].kind = OBJECT_NOT_LOADED;
    for (uint32_t i = 1; i < image->elf.section_count && status == CAIRN_OK; i++)
        status = elf_section(&image->elf, i, &image->sections[i].header, error);
    if (status == CAIRN_OK)
        status = check_overlaps(link, image, error);
    for (uint32_t i = 1; i < image->elf.section_count && status == CAIRN_OK; i++)
        status = read_section(link, image, i, error);
    return status;
}
