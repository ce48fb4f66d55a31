/*
 * Finds the code of objects, the symbols that relocations in it refer to, and its load address.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/array.h"
#include "base/error.h"
#include "file/object.h"
#include "file/sorted.h"

/* ---- Sections of code ---- */

static int compare(const void *left, const void *right)
{
    const struct code_range *a = left;
    const struct code_range *b = right;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return (a->section > b->section) - (a->section < b->section);
}

enum cairn_status code_read_ranges(cairn_object *object, struct cairn_error *error)
{
    GElf_Shdr header;
    struct code_ranges *ranges = &object->ranges;
    if (object->has_ranges)
        return CAIRN_OK;
    ranges->count = 0;
    for (uint32_t index = 1; index < object->file.section_count; index++) {
        if (!file_section(&object->file, index, &header) ||
            (header.sh_flags & SHF_EXECINSTR) == 0 || header.sh_size == 0)
            continue;
        void *entries = array_reserve(&object->allocator, ranges->entries, ranges->count, 1,
                                      &ranges->capacity, sizeof *ranges->entries);
        if (entries == NULL)
            return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for sections of code");
        ranges->entries = entries;
        ranges->entries[ranges->count++] = (struct code_range){
            file_is_relocatable(&object->file) ? 0 : header.sh_addr, header.sh_size, index};
    }
    sorted_make(ranges->entries, ranges->count, sizeof *ranges->entries, compare);
    object->has_ranges = true;
    return CAIRN_OK;
}

const struct code_range *code_find_range(const cairn_object *object, uint32_t section,
                                         uint64_t address)
{
    const struct code_ranges *ranges = &object->ranges;
    bool is_relocatable = file_is_relocatable(&object->file);
    /* The range is the last one that is not greater than the key. */
    struct code_range key = {.address = is_relocatable ? 0 : address,
                             .section = is_relocatable ? section + 1 : UINT32_MAX};
    size_t next = sorted_lower_bound(ranges->entries, ranges->count, sizeof key, &key, compare);
    const struct code_range *found = next == 0 ? NULL : &ranges->entries[next - 1];
    if (found == NULL || address - found->address >= found->size)
        return NULL;
    return is_relocatable && found->section != section ? NULL : found;
}

/* ---- Code ---- */

enum cairn_status cairn_object_code(cairn_object *object, uint32_t section, uint64_t address,
                                    struct cairn_object_code *code, struct cairn_error *error)
{
    if (object == NULL || code == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_object_code: `%s` is NULL",
                         object == NULL ? "object" : "code");
    const struct prepared *prepared;
    enum cairn_status status = code_read_ranges(object, error);
    if (status != CAIRN_OK)
        return status;
    const struct code_range *range = code_find_range(object, section, address);
    if (range == NULL)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, address,
                         "there is no code at 0x%llx in this file", (unsigned long long)address);
    status = section_prepare(object, range->section, SECTION_CODE, &prepared, error);
    if (status != CAIRN_OK)
        return status;
    uint64_t offset = address - prepared->address;
    if (offset >= prepared->size)
        return error_set(error, CAIRN_ERROR_CORRUPT, address, "the section has fewer bytes");
    *code = (struct cairn_object_code){
        .address = address, .bytes = prepared->bytes + offset, .size = prepared->size - offset};
    return CAIRN_OK;
}

const char *cairn_object_relocated_symbol(const cairn_object *object, uint32_t section,
                                          uint64_t address, size_t size)
{
    const struct code_range *range = code_find_range(object, section, address);
    const struct prepared *prepared =
        range == NULL ? NULL : section_find(object, range->section, SECTION_CODE);
    if (prepared == NULL)
        return NULL;
    const struct relocation *relocation =
        relocation_find(&prepared->relocations, address - prepared->address, size);
    return relocation == NULL ? NULL : relocation->name;
}

/* ---- Load addresses ---- */

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
        bool has_bytes = file_offset < segment.p_offset
                             ? segment.p_offset - file_offset < size
                             : file_offset - segment.p_offset < segment.p_filesz;
        if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0 || !has_bytes)
            continue;
        *base = address - file_offset - (segment.p_vaddr - segment.p_offset);
        return true;
    }
    return false;
}
