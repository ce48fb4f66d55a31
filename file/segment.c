/*
 * Finds the load address of a file's segments.
 *
 * SPDX-License-Identifier: MIT
 */
#include "file/object.h"

/* Whether the `size` bytes from `file_offset` on contain bytes of an executable segment. */
static bool is_mapped(const GElf_Phdr *segment, uint64_t file_offset, uint64_t size)
{
    if (segment->p_type != PT_LOAD || (segment->p_flags & PF_X) == 0)
        return false;
    if (file_offset < segment->p_offset)
        return segment->p_offset - file_offset < size;
    return file_offset - segment->p_offset < segment->p_filesz;
}

/* Linux refuses to execute a file with more than 64 KiB of program headers. With this limit,
 * cairn_object_load_base takes constant time. */
enum { SEGMENTS_MAX = (1 << 16) / sizeof(Elf64_Phdr) };

bool cairn_object_load_base(const cairn_object *object, uint64_t address, uint64_t file_offset,
                            uint64_t size, uint64_t *base)
{
    size_t count;
    GElf_Phdr segment;
    if (elf_getphdrnum(object->file.elf, &count) != 0)
        return false;
    for (size_t i = 0; i < count && i < SEGMENTS_MAX; i++) {
        if (gelf_getphdr(object->file.elf, (int)i, &segment) == NULL)
            return false;
        if (!is_mapped(&segment, file_offset, size))
            continue;
        *base = address - file_offset - (segment.p_vaddr - segment.p_offset);
        return true;
    }
    return false;
}
