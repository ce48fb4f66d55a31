/* Reads the manifest of an object that is loaded. SPDX-License-Identifier: MIT */
#include "runtime/load_manifest.h"

#include "arch/arch.h"
#include "arch/features.h"
#include "base/array.h"
#include "base/error.h"
#include "base/memory.h"
#include "object/elf.h"
#include "runtime/fingerprint.h"
#include "runtime/loader.h"

#include <string.h>

/* Whether the list has an entry that names the same sections. The first one is used. */
static bool has_entry(const struct object_pc_sections *sections,
                      const struct manifest_pc_section *entry)
{
    for (size_t i = 0; i < sections->count; i++)
        if (sections->entries[i].is_prefix == entry->is_prefix &&
            strcmp(sections->entries[i].name, entry->name) == 0)
            return true;
    return false;
}

/* Reads a PC section, and adds it to the list, if there is one. Each section of the object is
 * compared with the whole list, whose length is therefore limited. */
static enum cairn_status add_pc_section(const struct cairn_allocator *allocator,
                                        struct manifest_reader *reader,
                                        struct object_pc_sections *sections,
                                        struct cairn_error *error)
{
    enum { ENTRIES_MAX = 1024 };
    struct manifest_pc_section pc_section;
    size_t begin = reader->offset;
    enum cairn_status status = manifest_read_pc_section(reader, &pc_section, error);
    if (status != CAIRN_OK || sections == NULL || has_entry(sections, &pc_section))
        return status;
    if (sections->count == ENTRIES_MAX)
        return error_set(error, CAIRN_ERROR_RANGE, begin,
                         "section " MANIFEST_SECTION ", offset %zu: more than %d names of PC "
                         "sections",
                         begin, ENTRIES_MAX);
    struct manifest_pc_section *entries = array_reserve(
        allocator, sections->entries, sections->count, 1, &sections->capacity, sizeof *entries);
    if (entries != NULL)
        sections->entries = entries;
    if (entries == NULL || (pc_section.name = memory_copy_string(allocator, pc_section.name,
                                                                 strlen(pc_section.name))) == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0,
                         "no memory for the PC sections of an object");
    entries[sections->count++] = pc_section;
    return CAIRN_OK;
}

void object_pc_sections_release(struct object_pc_sections *sections,
                                const struct cairn_allocator *allocator)
{
    for (size_t i = 0; i < sections->count; i++)
        memory_free_string(allocator, sections->entries[i].name);
    memory_free(allocator, sections->entries, sections->capacity * sizeof *sections->entries);
}

/* Notes the level of the code's vector registers, unless the options say what it is. The target is
 * the host's architecture. */
static void note_level(cairn_loader *loader, const struct manifest_target *target,
                       const struct cairn_load_options *options,
                       struct object_pc_sections *sections)
{
    sections->has_manifest = true;
    if (options->features != NULL)
        return;
    if (strcmp(target->cpu, MANIFEST_CPU_UNKNOWN) == 0)
        loader_note_unknown_level(loader);
    else
        loader_note_level(loader, arch_features_level(arch_host()->features, target->features));
}

static enum cairn_status read_unit(cairn_loader *loader, const struct cairn_load_options *options,
                                   struct manifest_reader *reader,
                                   struct object_pc_sections *sections, struct cairn_error *error)
{
    struct manifest_target target;
    struct cairn_declaration declaration;
    enum cairn_status status = manifest_read_unit(reader, &target, error);
    if (status == CAIRN_OK)
        status = fingerprint_check(&target, options, error);
    if (status == CAIRN_OK && sections != NULL)
        note_level(loader, &target, options, sections);
    while (status == CAIRN_OK && reader->pc_sections_left > 0)
        status = add_pc_section(&reader->allocator, reader, sections, error);
    while (status == CAIRN_OK && reader->declarations_left > 0) {
        status = manifest_read_declaration(reader, &declaration, error);
        if (status == CAIRN_OK)
            status = loader_add_declaration(loader, &declaration, error);
    }
    return status;
}

static enum cairn_status read_units(cairn_loader *loader, const struct cairn_load_options *options,
                                    const uint8_t *bytes, size_t size,
                                    struct object_pc_sections *sections, struct cairn_error *error)
{
    struct manifest_reader reader;
    enum cairn_status status = CAIRN_OK;
    manifest_reader_init(&reader, bytes, size, &loader->runtime->allocator);
    while (reader.offset < reader.size && status == CAIRN_OK)
        status = read_unit(loader, options, &reader, sections, error);
    manifest_reader_release(&reader);
    return status;
}

enum cairn_status load_manifest_section(cairn_loader *loader, const uint8_t *bytes, size_t size,
                                        struct cairn_error *error)
{
    static const struct cairn_load_options none;
    return read_units(loader, &none, bytes, size, NULL, error);
}

/* Sections that share bytes of the file would be read many times, and are refused here, as they are
 * when the object is added. */
enum cairn_status load_manifest(cairn_loader *loader, const uint8_t *bytes, size_t size,
                                const struct cairn_load_options *options,
                                struct object_pc_sections *sections, struct cairn_error *error)
{
    struct elf_object elf;
    struct elf_section_view section;
    size_t left = size;
    enum cairn_status status = elf_open(bytes, size, &elf, error);
    for (uint32_t i = 1; status == CAIRN_OK && i < elf.section_count; i++) {
        status = elf_section(&elf, i, &section, error);
        if (status != CAIRN_OK || strcmp(section.name, MANIFEST_SECTION) != 0)
            continue;
        if (section.size > left)
            return error_set(error, CAIRN_ERROR_CORRUPT, section.file_offset,
                             "section %u (" MANIFEST_SECTION ") shares bytes of the file with "
                             "another one",
                             i);
        if (section.bytes == NULL)
            return error_set(error, CAIRN_ERROR_CORRUPT, section.file_offset,
                             "section %u (" MANIFEST_SECTION ") has no contents", i);
        left -= section.size;
        status = read_units(loader, options, section.bytes, section.size, sections, error);
    }
    return status;
}
