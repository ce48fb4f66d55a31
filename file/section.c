/*
 * Prepares the bytes of sections.
 *
 * A section is prepared when it is requested for the first time, and kept until the object is
 * closed. Sections that are never requested are not read.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "base/memory.h"
#include "file/compression.h"
#include "file/object.h"

#include <cairn/section.h>
#include <stdio.h>
#include <string.h>

/* ---- Preparing a section ---- */

static enum cairn_status find_bytes(cairn_object *object, const GElf_Shdr *header,
                                    struct prepared *prepared, struct cairn_error *error)
{
    if (header->sh_type == SHT_NOBITS)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, header->sh_offset,
                         "the section has no bytes in this file: is it a separate debug file?");
    struct file_bytes found;
    enum cairn_status status =
        file_section_bytes(&object->file, prepared->index, header, &found, error);
    if (status != CAIRN_OK)
        return status;
    if ((header->sh_flags & SHF_COMPRESSED) != 0)
        return compression_undo(&object->file, &found, &object->budget, &prepared->copy,
                                &prepared->size, error);
    prepared->bytes = found.bytes;
    prepared->size = found.size;
    return CAIRN_OK;
}

static enum cairn_status keep_copy(const cairn_object *object, struct prepared *prepared,
                                   struct cairn_error *error)
{
    prepared->copy = memory_new(&object->allocator, prepared->size, 1);
    if (prepared->copy == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a section of %zu bytes",
                         prepared->size);
    memcpy(prepared->copy, prepared->bytes, prepared->size);
    prepared->bytes = prepared->copy;
    return CAIRN_OK;
}

static enum cairn_status relocate(cairn_object *object, const struct relocation_target *target,
                                  struct prepared *prepared, struct cairn_error *error)
{
    if (prepared->size == 0 || !relocation_is_needed(target))
        return CAIRN_OK;
    if (prepared->copy == NULL && keep_copy(object, prepared, error) != CAIRN_OK)
        return CAIRN_ERROR_MEMORY;
    return relocation_apply(target, prepared->copy, &object->allocator, &prepared->relocations,
                            error);
}

static enum cairn_status read_sources(cairn_object *object, bool is_loaded,
                                      struct cairn_error *error)
{
    struct relocation_sources *sources = &object->sources;
    enum cairn_status status = CAIRN_OK;
    if (sources->file == NULL) {
        status = relocation_sources_read(&object->file, &object->allocator, sources, error);
        if (status != CAIRN_OK)
            relocation_sources_release(sources, &object->allocator);
    }
    if (status == CAIRN_OK && is_loaded)
        status = relocation_sources_sort(sources, &object->allocator, error);
    return status;
}

static enum cairn_status fill(cairn_object *object, bool is_code, struct prepared *prepared,
                              struct cairn_error *error)
{
    GElf_Shdr header;
    if (!file_section(&object->file, prepared->index, &header))
        return error_set(error, CAIRN_ERROR_CORRUPT, 0, "section %u cannot be read",
                         prepared->index);
    prepared->address = file_is_relocatable(&object->file) ? 0 : header.sh_addr;
    enum cairn_status status = find_bytes(object, &header, prepared, error);
    if (prepared->copy != NULL)
        prepared->bytes = prepared->copy;
    if (status == CAIRN_OK)
        status = read_sources(object, !is_code && (header.sh_flags & SHF_ALLOC) != 0, error);
    if (status != CAIRN_OK)
        return status;
    const struct relocation_target target = {
        .sources = &object->sources,
        .section = prepared->index,
        .address = prepared->address,
        .size = prepared->size,
        .is_loaded = (header.sh_flags & SHF_ALLOC) != 0,
    };
    if (is_code)
        return relocation_note_names(&target, &object->allocator, &prepared->relocations, error);
    return relocate(object, &target, prepared, error);
}

enum cairn_status section_explain(struct budget *budget, const struct file *file, uint32_t index,
                                  enum cairn_status status, struct cairn_error *error)
{
    char what[128];
    GElf_Shdr header;
    if (status != CAIRN_ERROR_MEMORY)
        return status;
    bool is_there = file_section(file, index, &header);
    snprintf(what, sizeof what, "section '%.100s'",
             is_there ? file_section_name(file, &header) : "");
    return budget_explain(budget, what, status, error);
}

/* ---- The lists of prepared sections ---- */

static void release(struct prepared *prepared, const struct cairn_allocator *allocator)
{
    if (prepared == NULL)
        return;
    relocation_list_release(&prepared->relocations, allocator);
    memory_free(allocator, prepared->copy, prepared->size);
    memory_free(allocator, prepared, sizeof *prepared);
}

static void release_list(const cairn_object *object, struct prepared **list)
{
    size_t count = object->file.section_count;
    if (list == NULL)
        return;
    for (size_t i = 0; i < count; i++)
        release(list[i], &object->allocator);
    memory_free(&object->allocator, list, count * sizeof(struct prepared *));
}

void section_release_all(cairn_object *object)
{
    release_list(object, object->sections);
    release_list(object, object->code);
    relocation_sources_release(&object->sources, &object->allocator);
}

static enum cairn_status create(cairn_object *object, uint32_t index, bool is_code,
                                struct prepared **created, struct cairn_error *error)
{
    *created = memory_new(&object->allocator, 1, sizeof **created);
    if (*created == NULL)
        return section_explain(&object->budget, &object->file, index,
                               error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a section"),
                               error);
    (*created)->index = index;
    enum cairn_status status = fill(object, is_code, *created, error);
    if (status != CAIRN_OK) {
        release(*created, &object->allocator);
        *created = NULL;
    }
    return section_explain(&object->budget, &object->file, index, status, error);
}

static enum cairn_status prepare(cairn_object *object, uint32_t index, bool is_code,
                                 const struct prepared **prepared, struct cairn_error *error)
{
    struct prepared ***list = is_code ? &object->code : &object->sections;
    size_t count = object->file.section_count;
    if (*list == NULL)
        *list = memory_new(&object->allocator, count, sizeof(struct prepared *));
    if (*list == NULL)
        return section_explain(
            &object->budget, &object->file, index,
            error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu sections", count), error);
    enum cairn_status status = CAIRN_OK;
    if ((*list)[index] == NULL)
        status = create(object, index, is_code, &(*list)[index], error);
    *prepared = (*list)[index];
    return status;
}

enum cairn_status section_prepare(cairn_object *object, uint32_t index,
                                  const struct prepared **prepared, struct cairn_error *error)
{
    return prepare(object, index, false, prepared, error);
}

enum cairn_status section_prepare_code(cairn_object *object, uint32_t index,
                                       const struct prepared **prepared, struct cairn_error *error)
{
    return prepare(object, index, true, prepared, error);
}

const struct prepared *section_find(const cairn_object *object, uint32_t index)
{
    if (index >= object->file.section_count && object->debug_file != NULL)
        return section_find(object->debug_file, index - object->file.section_count);
    bool is_there = object->sections != NULL && index < object->file.section_count;
    return is_there ? object->sections[index] : NULL;
}

const struct prepared *section_find_code(const cairn_object *object, uint32_t index)
{
    bool is_there = object->code != NULL && index < object->file.section_count;
    return is_there ? object->code[index] : NULL;
}

struct relocation section_read_address(const cairn_object *object, const struct prepared *prepared,
                                       uint64_t offset)
{
    const struct relocation *relocation = relocation_find(&prepared->relocations, offset);
    uint64_t value = cairn_load_u64(prepared->bytes + offset, object->file.byte_order);
    /* If another relocation has changed some of the bytes, they are not the address of this one. */
    if (relocation != NULL && relocation->is_address && relocation->width == sizeof value &&
        relocation->value == value)
        return *relocation;
    return (struct relocation){.offset = offset, .value = value};
}
