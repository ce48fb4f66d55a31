/*
 * Opens objects within their memory limits, and iterates over their sections.
 *
 * SPDX-License-Identifier: MIT
 */
#include "file/object.h"
#include "base/error.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

/* ---- The memory limit ---- */

bool budget_take(struct budget *budget, uint64_t size)
{
    if (size <= budget->limit - budget->used) {
        budget->used += size;
        return true;
    }
    budget->refused = size > UINT64_MAX - budget->used ? UINT64_MAX : budget->used + size;
    return false;
}

static void *reallocate(void *user, void *block, size_t old_size, size_t new_size)
{
    struct budget *budget = user;
    const struct cairn_allocator *source = &budget->source;
    if (new_size > old_size && !budget_take(budget, new_size - old_size))
        return NULL;
    void *moved = source->reallocate(source->user, block, old_size, new_size);
    if (new_size < old_size)
        budget->used -= old_size - new_size;
    else if (moved == NULL)
        budget->used -= new_size - old_size;
    return moved;
}

enum cairn_status budget_explain(struct budget *budget, const char *what, enum cairn_status status,
                                 struct cairn_error *error)
{
    if (status == CAIRN_ERROR_MEMORY && budget->refused != 0)
        error_set(error, CAIRN_ERROR_MEMORY, 0,
                  "%s needs more memory than the object may take: %llu bytes with what is used "
                  "already; the limit is %llu",
                  what, (unsigned long long)budget->refused, (unsigned long long)budget->limit);
    budget->refused = 0;
    return status;
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

/* ---- Opening ---- */

static enum cairn_architecture find_architecture(const GElf_Ehdr *header)
{
    unsigned abi = header->e_flags & EF_PPC64_ABI;
    switch (header->e_machine) {
    case EM_X86_64:
        return CAIRN_ARCHITECTURE_X86_64;
    case EM_AARCH64:
        return CAIRN_ARCHITECTURE_AARCH64;
    case EM_PPC64:
        if (abi == 0)
            abi = header->e_ident[EI_DATA] == ELFDATA2MSB ? 1 : 2;
        return abi == 1 ? CAIRN_ARCHITECTURE_PPC64_ELFV1 : CAIRN_ARCHITECTURE_PPC64_ELFV2;
    case EM_S390:
        return CAIRN_ARCHITECTURE_SYSTEMZ;
    case EM_RISCV:
        return CAIRN_ARCHITECTURE_RISCV64;
    default:
        return CAIRN_ARCHITECTURE_UNKNOWN;
    }
}

/* Opens the file at `path` or, if that is NULL, `image`, and sets the limit of the object's memory.
 * With the default factor, sections may be compressed to a sixteenth of their size, even though two
 * copies of them exist for a short time. Everything else takes at most a few times the size of the
 * file. */
static enum cairn_status open_image(const char *path, const struct image *image,
                                    const struct cairn_object_options *options,
                                    cairn_object **object, struct cairn_error *error)
{
    struct cairn_allocator allocator =
        memory_allocator(options == NULL ? NULL : options->allocator);
    cairn_object *opened = memory_new(&allocator, 1, sizeof *opened);
    if (opened == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for an object");
    struct budget *budget = &opened->budget;
    *budget = (struct budget){.source = allocator, .limit = UINT64_MAX};
    opened->allocator = (struct cairn_allocator){reallocate, budget};
    if (options != NULL)
        opened->options = *options;
    opened->options.allocator = &budget->source;
    opened->file.image = *image;
    enum cairn_status status =
        image_open(path, &opened->options.files, &opened->allocator, &opened->file.image, error);
    if (status == CAIRN_OK) {
        budget->limit = opened->options.memory_limit;
        if (budget->limit == 0)
            budget->limit = CAIRN_OBJECT_MEMORY_BASE +
                            CAIRN_OBJECT_MEMORY_FACTOR * (uint64_t)opened->file.image.size;
        if (budget->limit < budget->used)
            budget->limit = budget->used;
        status = budget_explain(budget, "the section table",
                                file_open(&opened->file, &opened->allocator, error), error);
    }
    if (status != CAIRN_OK) {
        cairn_object_destroy(opened);
        return status;
    }
    opened->architecture = find_architecture(&opened->file.header);
    *object = opened;
    return CAIRN_OK;
}

enum cairn_status cairn_object_open(const char *path, const struct cairn_object_options *options,
                                    cairn_object **object, struct cairn_error *error)
{
    if (path == NULL || object == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_object_open: `%s` is NULL",
                         path == NULL ? "path" : "object");
    return open_image(path, &(struct image){0}, options, object, error);
}

enum cairn_status cairn_object_open_memory(const void *bytes, size_t size,
                                           const struct cairn_object_options *options,
                                           cairn_object **object, struct cairn_error *error)
{
    if ((bytes == NULL && size > 0) || object == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_object_open_memory: `%s` is NULL",
                         object == NULL ? "object" : "bytes");
    return open_image(NULL, &(struct image){.bytes = bytes, .size = size}, options, object, error);
}

void cairn_object_destroy(cairn_object *object)
{
    if (object == NULL)
        return;
    struct cairn_allocator allocator = object->budget.source;
    names_release(object);
    memory_free(&object->allocator, object->ranges.entries,
                object->ranges.capacity * sizeof *object->ranges.entries);
    section_release_all(object);
    file_close(&object->file, &object->allocator);
    debug_file_release(object);
    memory_free(&object->allocator, object->debug_path, object->debug_path_size);
    memory_free(&allocator, object, sizeof *object);
}

struct cairn_object_header cairn_object_header(const cairn_object *object)
{
    return (struct cairn_object_header){.architecture = object->architecture,
                                        .byte_order = object->file.byte_order,
                                        .is_relocatable = file_is_relocatable(&object->file)};
}

/* ---- Sections ---- */

bool cairn_object_section_header(const cairn_object *object, uint32_t index,
                                 struct cairn_object_section_header *header)
{
    GElf_Shdr found;
    if (index == 0 || index >= object->file.section_count ||
        !file_section(&object->file, index, &found))
        return false;
    *header = (struct cairn_object_section_header){
        .name = file_section_name(&object->file, &found),
        .address = cairn_object_header(object).is_relocatable ? 0 : found.sh_addr,
        .size = found.sh_size,
        .flags = found.sh_flags,
        .type = found.sh_type,
        .linked_section = (found.sh_flags & SHF_LINK_ORDER) != 0 ? found.sh_link : 0,
    };
    return true;
}

static bool matches(const struct cairn_object_filter *filter, const struct file *file,
                    const GElf_Shdr *header)
{
    if (filter->type != 0 && filter->type != header->sh_type)
        return false;
    const char *name = file_section_name(file, header);
    if (filter->name != NULL && strcmp(filter->name, name) != 0)
        return false;
    return filter->prefix == NULL || strncmp(filter->prefix, name, strlen(filter->prefix)) == 0;
}

static enum cairn_status say_not_found(const struct cairn_object_filter *filter,
                                       const struct cairn_object_section *section,
                                       struct cairn_error *error)
{
    const char *other = section->index == 0 ? "" : "other ";
    if (filter->name != NULL)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, 0, "there is no %ssection '%s'", other,
                         filter->name);
    if (filter->prefix != NULL)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, 0, "there is no %ssection '%s...'", other,
                         filter->prefix);
    return error_set(error, CAIRN_ERROR_NOT_FOUND, 0, "there is no %ssection of type 0x%x", other,
                     filter->type);
}

/* Returns the number of the first matching section after number `index`, or 0. The sections of the
 * object that a debug file does not replace come first, then those that the debug file adds. */
static uint32_t find_next(const cairn_object *object, const struct cairn_object_filter *filter,
                          uint32_t index, GElf_Shdr *header)
{
    uint32_t own_count = object->file.section_count;
    const cairn_object *other = object->debug_file;
    uint64_t count = (uint64_t)own_count + (other == NULL ? 0 : other->file.section_count);
    for (uint64_t i = (uint64_t)index + 1; i < count; i++) {
        bool is_own = i < own_count;
        const struct file *file = is_own ? &object->file : &other->file;
        uint32_t number = (uint32_t)i - (is_own ? 0 : own_count);
        if (file_section(file, number, header) && matches(filter, file, header) &&
            (is_own ? !debug_file_replaces(object, number) : debug_file_adds(object, number)))
            return (uint32_t)i;
    }
    return 0;
}

enum cairn_status cairn_object_next_section(cairn_object *object,
                                            const struct cairn_object_filter *filter,
                                            struct cairn_object_section *section,
                                            struct cairn_error *error)
{
    if (object == NULL || filter == NULL || section == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_object_next_section: `%s` is NULL",
                         object == NULL   ? "object"
                         : filter == NULL ? "filter"
                                          : "section");
    GElf_Shdr header;
    uint32_t index = find_next(object, filter, section->index, &header);
    if (index == 0)
        return say_not_found(filter, section, error);
    bool is_own = index < object->file.section_count;
    cairn_object *owner = is_own ? object : object->debug_file;
    uint32_t before = is_own ? 0 : object->file.section_count;
    const struct prepared *prepared;
    enum cairn_status status = names_read(object, error);
    if (status == CAIRN_OK)
        status = section_prepare(owner, index - before, SECTION_RELOCATED, &prepared, error);
    if (status != CAIRN_OK)
        return status;
    bool is_linked = (header.sh_flags & SHF_LINK_ORDER) != 0 && header.sh_link != 0;
    *section = (struct cairn_object_section){
        .index = index,
        .contents = {prepared->bytes, prepared->size, object->file.byte_order},
        .address = prepared->address,
        .name = file_section_name(&owner->file, &header),
        .type = header.sh_type,
        .linked_section = is_linked ? before + header.sh_link : 0,
    };
    return CAIRN_OK;
}
