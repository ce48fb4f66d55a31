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

struct note {
    struct file_bytes name;
    struct file_bytes description;
    uint32_t type;
};

/* Rounds up `size`, which has at most 32 bits, so that the sum does not overflow. */
static uint64_t pad(uint64_t size, unsigned alignment)
{
    return (size + alignment - 1) / alignment * alignment;
}

/* Takes the next `size` bytes from `left`. Also skips the padding after them, or the part of it
 * that is present. */
static bool take(struct file_bytes *left, uint64_t size, unsigned alignment,
                 struct file_bytes *taken)
{
    if (size > left->size)
        return false;
    *taken = (struct file_bytes){left->bytes, size};
    uint64_t padded = pad(size, alignment);
    size_t step = padded < left->size ? padded : left->size;
    left->bytes += step;
    left->size -= step;
    return true;
}

static bool take_note(struct file_bytes *left, enum cairn_byte_order order, unsigned alignment,
                      struct note *note)
{
    struct file_bytes header;
    if (!take(left, NOTE_HEADER_BYTES, NARROW_ALIGNMENT, &header))
        return false;
    note->type = cairn_load_u32(header.bytes + 8, order);
    return take(left, cairn_load_u32(header.bytes, order), alignment, &note->name) &&
           take(left, cairn_load_u32(header.bytes + 4, order), alignment, &note->description);
}

static bool find_in_notes(struct file_bytes notes, enum cairn_byte_order order, uint64_t alignment,
                          struct file_bytes *id)
{
    unsigned used = alignment == WIDE_ALIGNMENT ? WIDE_ALIGNMENT : NARROW_ALIGNMENT;
    struct note note;
    while (take_note(&notes, order, used, &note)) {
        if (note.type != NT_GNU_BUILD_ID || note.description.size == 0 ||
            note.name.size != sizeof gnu || memcmp(note.name.bytes, gnu, sizeof gnu) != 0)
            continue;
        *id = note.description;
        return true;
    }
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
