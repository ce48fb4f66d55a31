/*
 * Opens ELF files, and finds their sections by name and by number.
 *
 * SPDX-License-Identifier: MIT
 */
#include "file/object.h"
#include "base/error.h"
#include "base/memory.h"

#include <string.h>

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
    opened->allocator = budget_allocator(budget);
    if (options != NULL)
        opened->options = *options;
    opened->options.allocator = &budget->source;
    opened->file.image = *image;
    enum cairn_status status = CAIRN_OK;
    if (path != NULL)
        status = image_open(path, &opened->options.files, &opened->allocator, &opened->file.image,
                            error);
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
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_object_open needs a path and a place for the object");
    return open_image(path, &(struct image){0}, options, object, error);
}

enum cairn_status cairn_object_open_memory(const void *bytes, size_t size,
                                           const struct cairn_object_options *options,
                                           cairn_object **object, struct cairn_error *error)
{
    if ((bytes == NULL && size > 0) || object == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_object_open_memory needs bytes and a place for the object");
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

enum cairn_architecture cairn_object_architecture(const cairn_object *object)
{
    return object->architecture;
}

enum cairn_byte_order cairn_object_byte_order(const cairn_object *object)
{
    return object->file.byte_order;
}

bool cairn_object_is_relocatable(const cairn_object *object)
{
    return file_is_relocatable(&object->file);
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
        .address = cairn_object_is_relocatable(object) ? 0 : found.sh_addr,
        .size = found.sh_size,
        .flags = found.sh_flags,
        .type = found.sh_type,
        .linked_section = (found.sh_flags & SHF_LINK_ORDER) != 0 ? found.sh_link : 0,
    };
    return true;
}

/* A section, and its number in the file that contains it. */
struct found {
    cairn_object *owner; /* the object itself or its debug file */
    uint32_t index;
    uint32_t before; /* number to add to `index` for the section's public number */
    GElf_Shdr header;
};

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

/* Finds the first matching section with a number greater than `index`: first those of the object
 * that a debug file does not replace, then those that the debug file adds. */
static bool find_next(cairn_object *object, const struct cairn_object_filter *filter,
                      uint32_t index, struct found *found)
{
    uint32_t own_count = object->file.section_count;
    cairn_object *debug_file = object->debug_file;
    *found = (struct found){.owner = object};
    uint32_t i = index;
    while (i < own_count && ++i < own_count)
        if (file_section(&object->file, i, &found->header) &&
            matches(filter, &object->file, &found->header) && !debug_file_replaces(object, i)) {
            found->index = i;
            return true;
        }
    if (debug_file == NULL)
        return false;
    *found = (struct found){.owner = debug_file, .before = own_count};
    i = index < own_count ? 0 : index - own_count;
    while (++i < debug_file->file.section_count)
        if (file_section(&debug_file->file, i, &found->header) &&
            matches(filter, &debug_file->file, &found->header) && debug_file_adds(object, i)) {
            found->index = i;
            return true;
        }
    return false;
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

enum cairn_status cairn_object_next_matching(cairn_object *object,
                                             const struct cairn_object_filter *filter,
                                             struct cairn_object_section *section,
                                             struct cairn_error *error)
{
    if (object == NULL || filter == NULL || section == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_object_next_matching needs an object, a filter and a section");
    struct found found;
    if (!find_next(object, filter, section->index, &found))
        return say_not_found(filter, section, error);
    const struct prepared *prepared;
    enum cairn_status status = names_read(object, error);
    if (status == CAIRN_OK)
        status = section_prepare(found.owner, found.index, SECTION_RELOCATED, &prepared, error);
    if (status != CAIRN_OK)
        return status;
    bool is_linked = (found.header.sh_flags & SHF_LINK_ORDER) != 0 && found.header.sh_link != 0;
    *section = (struct cairn_object_section){
        .index = found.before + found.index,
        .contents = {prepared->bytes, prepared->size, object->file.byte_order},
        .address = prepared->address,
        .name = file_section_name(&found.owner->file, &found.header),
        .type = found.header.sh_type,
        .linked_section = is_linked ? found.before + found.header.sh_link : 0,
    };
    return CAIRN_OK;
}

enum cairn_status cairn_object_next_section(cairn_object *object, const char *name,
                                            struct cairn_object_section *section,
                                            struct cairn_error *error)
{
    if (object == NULL || name == NULL || section == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_object_next_section needs an object, a name and a section");
    return cairn_object_next_matching(object, &(struct cairn_object_filter){.name = name}, section,
                                      error);
}
