/* SPDX-License-Identifier: MIT */
#include "object/kept_object.h"

/* Place in a header of a section. */
enum { SECTION_ADDRESS = 16 };

static void store(const struct object_link *link, uint8_t *bytes, uint64_t value)
{
    for (unsigned i = 0; i < sizeof value; i++) {
        unsigned shift = 8 * (link->arch->byte_order == CAIRN_LITTLE_ENDIAN ? i : 7 - i);
        bytes[i] = (uint8_t)(value >> shift);
    }
}

/* Returns the address of a symbol; that of one in a section which is not loaded is an offset. */
static bool find_address(const struct object_link *link, const struct object_image *image,
                         uint32_t number, uint64_t *address)
{
    struct elf_symbol symbol;
    *address = 0;
    if (number == 0)
        return true;
    if (elf_symbol(&image->elf, number, &symbol, NULL) != CAIRN_OK)
        return false;
    if (symbol.section != ELF_UNDEFINED && symbol.section < image->elf.section_count &&
        symbol.binding == ELF_LOCAL)
        *address = image->sections[symbol.section].memory.address + symbol.value;
    else
        *address = link->symbols[image->references[number].symbol].address;
    return true;
}

static void relocate_section(const struct object_link *link, const struct object_image *image,
                             const struct elf_section_view *table)
{
    uint64_t count;
    struct elf_relocation relocation;
    const struct elf_section_view *section = &image->sections[table->info].header;
    if (section->bytes == NULL ||
        elf_relocation_count(&image->elf, table, &count, NULL) != CAIRN_OK)
        return;
    uint8_t *bytes = image->bytes + (section->bytes - image->bytes);
    for (uint64_t i = 0; i < count; i++) {
        if (elf_relocation(&image->elf, table, i, &relocation, NULL) != CAIRN_OK)
            return;
        const struct arch_relocation *type =
            arch_find_relocation(link->relocations, relocation.type);
        struct arch_relocation_input input = {.place = relocation.offset,
                                              .addend = relocation.addend};
        if (type == NULL || type->target != ARCH_TARGET_SYMBOL || type->bytes > section->size ||
            relocation.offset > section->size - type->bytes ||
            !find_address(link, image, relocation.symbol, &input.target))
            continue;
        enum cairn_status status =
            arch_relocate(type, &input, link->arch->byte_order, bytes + relocation.offset, NULL);
        (void)status; /* what does not fit stays unchanged */
    }
}

/* Whether a table has relocations of debug information: of a section that is not part of the
 * program, and that no section shares bytes with. */
static bool relocates_debug(const struct object_image *image, const struct elf_section_view *table)
{
    if (table->type != ELF_RELA || table->info == 0 || table->info >= image->elf.section_count)
        return false;
    const struct object_section *section = &image->sections[table->info];
    return section->kind == OBJECT_NOT_LOADED && (section->header.flags & ELF_ALLOC) == 0 &&
           section->header.type == ELF_PROGBITS && (section->header.flags & ELF_COMPRESSED) == 0 &&
           strncmp(section->header.name, ".debug", sizeof ".debug" - 1) == 0;
}

static void finish(const struct object_link *link, struct object_image *image)
{
    for (uint32_t i = 1; i < image->elf.section_count; i++)
        if (relocates_debug(image, &image->sections[i].header))
            relocate_section(link, image, &image->sections[i].header);
    for (uint32_t i = 1; i < image->elf.section_count; i++) {
        const struct object_section *section = &image->sections[i];
        uint8_t *header = image->bytes + image->elf.sections + (uint64_t)i * ELF_SECTION_BYTES;
        if (section->kind != OBJECT_NOT_LOADED)
            store(link, header + SECTION_ADDRESS, section->memory.address);
    }
}

struct kept_object *kept_objects_take(struct object_link *link)
{
    struct kept_object *first = NULL;
    for (size_t i = link->image_count; i-- > 0;) {
        struct object_image *image = link->images[i];
        struct kept_object *kept = memory_new(&link->allocator, 1, sizeof *kept);
        if (kept == NULL)
            continue;
        finish(link, image);
        *kept = (struct kept_object){.next = first, .bytes = image->bytes, .size = image->size};
        first = kept;
        image->bytes = NULL;
        image->size = 0;
    }
    return first;
}

void kept_objects_free(struct kept_object *kept, const struct cairn_allocator *allocator)
{
    while (kept != NULL) {
        struct kept_object *next = kept->next;
        memory_free(allocator, kept->bytes, kept->size);
        memory_free(allocator, kept, sizeof *kept);
        kept = next;
    }
}
