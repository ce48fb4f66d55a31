/* Links objects: the eight steps. SPDX-License-Identifier: MIT */
#include "object/link.h"

#include "base/array.h"
#include "base/error.h"
#include "object/layout.h"
#include "object/relocations.h"
#include "object/sections.h"
#include "object/slots.h"
#include "object/symbols.h"

/* ---- Architectures ---- */

/* Returns the architecture that an object is for. Objects for PPC64 have the version of the ABI in
 * their flags; 0, which objects without calls may have, means the usual one. */
static enum cairn_architecture object_architecture(const struct elf_object *elf)
{
    enum { PPC64_ABI_MASK = 3 };
    bool is_little = elf->file.byte_order == CAIRN_LITTLE_ENDIAN;
    uint32_t abi = elf->flags & PPC64_ABI_MASK;
    if (elf->machine == ELF_X86_64)
        return CAIRN_ARCHITECTURE_X86_64;
    if (elf->machine == ELF_AARCH64)
        return CAIRN_ARCHITECTURE_AARCH64;
    if (abi == 0)
        abi = is_little ? 2 : 1;
    return abi == 1 ? CAIRN_ARCHITECTURE_PPC64_ELFV1 : CAIRN_ARCHITECTURE_PPC64_ELFV2;
}

static enum cairn_status check_architecture(const struct cairn_arch *arch,
                                            const struct elf_object *elf, struct cairn_error *error)
{
    static const char *const orders[] = {"little-endian", "big-endian"};
    enum cairn_architecture own = object_architecture(elf);
    bool is_big = elf->file.byte_order == CAIRN_BIG_ENDIAN;
    bool wants_big = arch->byte_order == CAIRN_BIG_ENDIAN;
    if (own == arch->architecture && is_big == wants_big)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                     "an object for %s, %s, cannot be loaded where code is for %s, %s",
                     cairn_architecture_name(own), orders[is_big],
                     cairn_architecture_name(arch->architecture), orders[wants_big]);
}

/* ---- Creating and destroying ---- */

enum cairn_status object_link_create(const struct cairn_arch *arch,
                                     const struct cairn_allocator *allocator,
                                     struct object_link **link, struct cairn_error *error)
{
    struct object_link *created = memory_new(allocator, 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to link objects");
    created->arch = arch;
    created->relocations = arch->relocations;
    created->allocator = *allocator;
    created->symbols =
        array_reserve(allocator, NULL, 0, 1, &created->symbol_capacity, sizeof *created->symbols);
    if (created->symbols == NULL || !hash_set_init(&created->names, allocator, 0) ||
        !hash_set_init(&created->range_names, allocator, 0)) {
        object_link_destroy(created);
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to link objects");
    }
    created->symbols[created->symbol_count++] = (struct object_symbol){.name = NULL};
    *link = created;
    return CAIRN_OK;
}

static void destroy_image(const struct cairn_allocator *allocator, struct object_image *image)
{
    memory_free_string(allocator, image->name);
    memory_free(allocator, image->bytes, image->size);
    memory_free(allocator, image->sections, image->elf.section_count * sizeof *image->sections);
    memory_free(allocator, image->references,
                ((size_t)image->elf.symbol_count + 1) * sizeof *image->references);
    memory_free(allocator, image, sizeof *image);
}

void object_link_destroy(struct object_link *link)
{
    if (link == NULL)
        return;
    const struct cairn_allocator allocator = link->allocator;
    for (size_t i = 0; i < link->image_count; i++)
        destroy_image(&allocator, link->images[i]);
    memory_free(&allocator, link->images, link->image_capacity * sizeof *link->images);
    memory_free(&allocator, link->symbols, link->symbol_capacity * sizeof *link->symbols);
    memory_free(&allocator, link->ranges, link->range_capacity * sizeof *link->ranges);
    hash_set_release(&link->names, &allocator);
    hash_set_release(&link->range_names, &allocator);
    memory_free(&allocator, link, sizeof *link);
}

/* ---- Adding ---- */

/* Adds an empty image, with copies of the bytes and of the name. */
static struct object_image *add_image(struct object_link *link, const void *bytes, size_t size,
                                      const char *name)
{
    const struct cairn_allocator *allocator = &link->allocator;
    struct object_image **images = array_reserve(allocator, link->images, link->image_count, 1,
                                                 &link->image_capacity, sizeof(*images));
    if (images == NULL)
        return NULL;
    link->images = images;
    struct object_image *image = memory_new(allocator, 1, sizeof *image);
    if (image == NULL)
        return NULL;
    images[link->image_count++] = image;
    image->size = size;
    image->name = memory_copy_string(allocator, name, strlen(name));
    image->bytes = memory_new(allocator, size, 1);
    if (image->name == NULL || image->bytes == NULL)
        return NULL;
    memcpy(image->bytes, bytes, size);
    return image;
}

/* Allocates what an image has for each section and symbol. Relocations without a symbol refer to
 * symbol 0, which files without symbols do not have. */
static enum cairn_status allocate_tables(const struct object_link *link, struct object_image *image,
                                         struct cairn_error *error)
{
    image->sections =
        memory_new(&link->allocator, image->elf.section_count, sizeof *image->sections);
    image->references = memory_new(&link->allocator, (size_t)image->elf.symbol_count + 1,
                                   sizeof *image->references);
    if (image->sections != NULL && image->references != NULL)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %u sections and %u symbols",
                     image->elf.section_count, image->elf.symbol_count);
}

static enum cairn_status read_image(struct object_link *link, struct object_image *image,
                                    struct cairn_error *error)
{
    enum cairn_status status = elf_open(image->bytes, image->size, &image->elf, error);
    if (status == CAIRN_OK)
        status = check_architecture(link->arch, &image->elf, error);
    if (status == CAIRN_OK)
        status = allocate_tables(link, image, error);
    if (status == CAIRN_OK)
        status = object_choose_sections(link, image, error);
    if (status == CAIRN_OK)
        status = object_merge_symbols(link, image, error);
    if (status == CAIRN_OK)
        status = object_check_relocations(link, image, error);
    return status;
}

enum cairn_status object_link_add(struct object_link *link, const void *bytes, size_t size,
                                  const char *name, const struct object_host *host,
                                  struct cairn_error *error)
{
    /* Compilers share the ends of names, but a total of several times the file's size means that
     * someone tries to make the comparison of names slow. */
    enum { NAME_BYTES_PER_BYTE = 8 };
    if (size == 0)
        return error_set(error, CAIRN_ERROR_TRUNCATED, 0, "the object is empty");
    struct object_image *image = add_image(link, bytes, size, name == NULL ? "" : name);
    if (image == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for an object of %zu bytes",
                         size);
    image->host = *host;
    image->names_left = (uint64_t)size * NAME_BYTES_PER_BYTE;
    return error_name(error, read_image(link, image, error), image->name);
}

/* ---- Finishing ---- */

static enum cairn_status relocate(struct object_link *link, struct cairn_error *error)
{
    enum cairn_status status = object_write_slots(link, error);
    for (int descriptors = 1; descriptors >= 0; descriptors--)
        for (size_t i = 0; i < link->image_count && status == CAIRN_OK; i++)
            status =
                error_name(error, object_relocate(link, link->images[i], descriptors != 0, error),
                           link->images[i]->name);
    return status;
}

enum cairn_status object_link_finish(struct object_link *link, struct cairn_error *error)
{
    enum cairn_status status = object_find_symbols(link, error);
    if (status != CAIRN_OK)
        return status;
    object_count_slots(link);
    status = object_place(link, error);
    if (status != CAIRN_OK)
        return status;
    object_set_addresses(link);
    return relocate(link, error);
}
