/*
 * Finds the code of objects, the symbols that relocations in it refer to, and its load address.
 *
 * SPDX-License-Identifier: MIT
 */
#include "file/code.h"

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

enum cairn_status code_ranges_read(const struct file *file, const struct cairn_allocator *allocator,
                                   struct code_ranges *ranges, struct cairn_error *error)
{
    GElf_Shdr header;
    *ranges = (struct code_ranges){.are_relocatable = file_is_relocatable(file)};
    for (uint32_t index = 1; index < file->section_count; index++) {
        if (!file_section(file, index, &header) || (header.sh_flags & SHF_EXECINSTR) == 0 ||
            header.sh_size == 0)
            continue;
        void *grown = array_reserve(allocator, ranges->entries, ranges->count, 1, &ranges->capacity,
                                    sizeof *ranges->entries);
        if (grown == NULL) {
            code_ranges_release(ranges, allocator);
            return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for sections of code");
        }
        ranges->entries = grown;
        ranges->entries[ranges->count++] = (struct code_range){
            ranges->are_relocatable ? 0 : header.sh_addr, header.sh_size, index};
    }
    sorted_make(ranges->entries, ranges->count, sizeof *ranges->entries, compare);
    return CAIRN_OK;
}

const struct code_range *code_ranges_find(const struct code_ranges *ranges, uint32_t section,
                                          uint64_t address)
{
    struct code_range key = {.address = ranges->are_relocatable ? 0 : address,
                             .section = ranges->are_relocatable ? section : UINT32_MAX};
    size_t place = sorted_lower_bound(ranges->entries, ranges->count, sizeof key, &key, compare);
    if (ranges->are_relocatable ? place == ranges->count : place == 0)
        return NULL;
    const struct code_range *found = &ranges->entries[ranges->are_relocatable ? place : place - 1];
    if (address - found->address >= found->size)
        return NULL;
    return ranges->are_relocatable && found->section != section ? NULL : found;
}

void code_ranges_release(struct code_ranges *ranges, const struct cairn_allocator *allocator)
{
    memory_free(allocator, ranges->entries, ranges->capacity * sizeof *ranges->entries);
    *ranges = (struct code_ranges){0};
}

/* ---- Code ---- */

enum cairn_status code_read_ranges(cairn_object *object, struct cairn_error *error)
{
    if (object->has_ranges)
        return CAIRN_OK;
    enum cairn_status status =
        code_ranges_read(&object->file, &object->allocator, &object->ranges, error);
    object->has_ranges = status == CAIRN_OK;
    return status;
}

enum cairn_status cairn_object_code(cairn_object *object, uint32_t section, uint64_t address,
                                    struct cairn_object_code *code, struct cairn_error *error)
{
    if (object == NULL || code == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_object_code needs an object and a place for the code");
    const struct prepared *prepared;
    enum cairn_status status = code_read_ranges(object, error);
    if (status != CAIRN_OK)
        return status;
    const struct code_range *range = code_ranges_find(&object->ranges, section, address);
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
    const struct code_range *range = code_ranges_find(&object->ranges, section, address);
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
