/*
 * Finds the build ID, which the linker stores in a note:
 *
 *     4 bytes: size of the name | 4: size of the description | 4: type | name | description
 *
 * The name and the description are both padded to the alignment.
 *
 * SPDX-License-Identifier: MIT
 */
#include "file/object.h"

#include <cairn/section.h>
#include <string.h>

enum { NOTE_HEADER_BYTES = 12, WIDE_ALIGNMENT = 8, NARROW_ALIGNMENT = 4 };

static const char gnu[] = "GNU";

/* Takes the next `size` bytes from `left`. Also skips the padding after them, or the part of it
 * that is present. */
static bool take(struct file_bytes *left, uint32_t size, unsigned alignment,
                 struct file_bytes *taken)
{
    if (size > left->size)
        return false;
    *taken = (struct file_bytes){left->bytes, size};
    uint64_t padded = ((uint64_t)size + alignment - 1) / alignment * alignment;
    size_t step = padded < left->size ? padded : left->size;
    left->bytes += step;
    left->size -= step;
    return true;
}

static bool find_in_notes(struct file_bytes notes, enum cairn_byte_order order,
                          uint64_t section_alignment, struct file_bytes *id)
{
    unsigned alignment = section_alignment == WIDE_ALIGNMENT ? WIDE_ALIGNMENT : NARROW_ALIGNMENT;
    struct file_bytes header;
    struct file_bytes name;
    while (take(&notes, NOTE_HEADER_BYTES, NARROW_ALIGNMENT, &header) &&
           take(&notes, cairn_load_u32(header.bytes, order), alignment, &name) &&
           take(&notes, cairn_load_u32(header.bytes + 4, order), alignment, id))
        if (cairn_load_u32(header.bytes + 8, order) == NT_GNU_BUILD_ID && id->size > 0 &&
            name.size == sizeof gnu && memcmp(name.bytes, gnu, sizeof gnu) == 0)
            return true;
    return false;
}

static bool find_in_sections(const struct file *file, struct file_bytes *id)
{
    GElf_Shdr header;
    struct file_bytes notes;
    for (uint32_t index = 1; index < file->section_count; index++)
        if (file_section(file, index, &header) && header.sh_type == SHT_NOTE &&
            file_section_bytes(file, index, &header, &notes, NULL) == CAIRN_OK &&
            find_in_notes(notes, file->byte_order, header.sh_addralign, id))
            return true;
    return false;
}

/* Finds the build ID in the segments of notes. Segments may overlap, but the total size of those
 * that are read is at most the size of the file. This function therefore takes time proportional to
 * that size. */
static bool find_in_segments(const struct file *file, struct file_bytes *id)
{
    size_t count;
    size_t bytes_left = file->image.size;
    GElf_Phdr header;
    if (elf_getphdrnum(file->elf, &count) != 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (gelf_getphdr(file->elf, (int)i, &header) == NULL || header.p_type != PT_NOTE)
            continue;
        struct file_bytes notes;
        if (header.p_filesz > bytes_left ||
            file_bytes_at(file, header.p_offset, header.p_filesz, &notes, NULL) != CAIRN_OK)
            continue;
        bytes_left -= notes.size;
        if (find_in_notes(notes, file->byte_order, header.p_align, id))
            return true;
    }
    return false;
}

bool cairn_object_build_id(const cairn_object *object, const uint8_t **bytes, size_t *size)
{
    struct file_bytes id;
    if (!find_in_sections(&object->file, &id) && !find_in_segments(&object->file, &id))
        return false;
    *bytes = id.bytes;
    *size = id.size;
    return true;
}
