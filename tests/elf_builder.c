/* SPDX-License-Identifier: MIT */
#include "elf_builder.h"

#include <assert.h>
#include <string.h>

static uint8_t *put(uint8_t *at, enum cairn_byte_order byte_order, uint64_t value, unsigned width)
{
    for (unsigned i = 0; i < width; i++) {
        unsigned shift = byte_order == CAIRN_BIG_ENDIAN ? width - 1 - i : i;
        at[i] = (uint8_t)(value >> (8 * shift));
    }
    return at + width;
}

uint8_t *elf_put16(uint8_t *at, enum cairn_byte_order byte_order, uint16_t value)
{
    return put(at, byte_order, value, 2);
}

uint8_t *elf_put32(uint8_t *at, enum cairn_byte_order byte_order, uint32_t value)
{
    return put(at, byte_order, value, 4);
}

uint8_t *elf_put64(uint8_t *at, enum cairn_byte_order byte_order, uint64_t value)
{
    return put(at, byte_order, value, 8);
}

uint8_t *elf_put_symbol(uint8_t *at, enum cairn_byte_order byte_order, uint32_t name, uint8_t info,
                        uint16_t section, uint64_t value)
{
    at = put(at, byte_order, name, 4);
    *at++ = info;
    *at++ = 0;
    at = put(at, byte_order, section, 2);
    at = put(at, byte_order, value, 8);
    return put(at, byte_order, 0, 8);
}

uint8_t *elf_put_rel(uint8_t *at, enum cairn_byte_order byte_order, uint64_t offset,
                     uint32_t symbol, uint32_t type)
{
    at = put(at, byte_order, offset, 8);
    return put(at, byte_order, (uint64_t)symbol << 32 | type, 8);
}

uint8_t *elf_put_rela(uint8_t *at, enum cairn_byte_order byte_order, uint64_t offset,
                      uint32_t symbol, uint32_t type, int64_t addend)
{
    at = elf_put_rel(at, byte_order, offset, symbol, type);
    return put(at, byte_order, (uint64_t)addend, 8);
}

uint32_t elf_add(struct elf_file *file, struct elf_section section)
{
    assert(file->section_count + 2 < ELF_SECTIONS_MAX);
    file->sections[++file->section_count] = section;
    return file->section_count;
}

static uint8_t *put_header(uint8_t *at, const struct elf_file *file, uint64_t table_offset)
{
    static const uint8_t magic[] = ELFMAG;
    enum cairn_byte_order order = file->byte_order;
    memset(at, 0, EI_NIDENT);
    memcpy(at, magic, SELFMAG);
    at[EI_CLASS] = ELFCLASS64;
    at[EI_DATA] = order == CAIRN_BIG_ENDIAN ? ELFDATA2MSB : ELFDATA2LSB;
    at[EI_VERSION] = EV_CURRENT;
    at = put(at + EI_NIDENT, order, file->type, 2);
    at = put(at, order, file->machine, 2);
    at = put(at, order, EV_CURRENT, 4);
    at = put(at, order, 0, 8);
    at = put(at, order, 0, 8);
    at = put(at, order, table_offset, 8);
    at = put(at, order, file->flags, 4);
    at = put(at, order, sizeof(Elf64_Ehdr), 2);
    at = put(at, order, 0, 2);
    at = put(at, order, 0, 2);
    at = put(at, order, sizeof(Elf64_Shdr), 2);
    at = put(at, order, file->section_count + 2, 2);
    return put(at, order, file->section_count + 1, 2);
}

static uint8_t *put_section_header(uint8_t *at, enum cairn_byte_order order, uint32_t name,
                                   const struct elf_section *section, uint64_t offset)
{
    at = put(at, order, name, 4);
    at = put(at, order, section->type, 4);
    at = put(at, order, section->flags, 8);
    at = put(at, order, section->address, 8);
    at = put(at, order, offset, 8);
    at = put(at, order, section->size, 8);
    at = put(at, order, section->link, 4);
    at = put(at, order, section->info, 4);
    at = put(at, order, section->alignment == 0 ? 8 : section->alignment, 8);
    return put(at, order, section->entry_size, 8);
}

static uint8_t *align(uint8_t *start, uint8_t *at)
{
    while ((at - start) % 8 != 0)
        *at++ = 0;
    return at;
}

size_t elf_write(const struct elf_file *file, uint8_t *bytes)
{
    uint64_t offsets[ELF_SECTIONS_MAX] = {0};
    uint32_t names[ELF_SECTIONS_MAX] = {0};
    uint8_t *at = bytes + sizeof(Elf64_Ehdr);
    for (uint32_t i = 1; i <= file->section_count; i++) {
        offsets[i] = (uint64_t)(at - bytes);
        if (file->sections[i].type != SHT_NOBITS && file->sections[i].size > 0)
            memcpy(at, file->sections[i].bytes, file->sections[i].size);
        at = align(bytes, at + (file->sections[i].type == SHT_NOBITS ? 0 : file->sections[i].size));
    }
    uint8_t *name_bytes = at;
    *at++ = 0;
    for (uint32_t i = 1; i <= file->section_count; i++) {
        size_t length = strlen(file->sections[i].name) + 1;
        names[i] = (uint32_t)(at - name_bytes);
        memcpy(at, file->sections[i].name, length);
        at += length;
    }
    struct elf_section name_section = {.type = SHT_STRTAB, .size = (size_t)(at - name_bytes)};
    at = align(bytes, at);

    uint64_t table_offset = (uint64_t)(at - bytes);
    at = put_section_header(at, file->byte_order, 0, &(struct elf_section){0}, 0);
    for (uint32_t i = 1; i <= file->section_count; i++)
        at = put_section_header(at, file->byte_order, names[i], &file->sections[i], offsets[i]);
    at = put_section_header(at, file->byte_order, 0, &name_section, (uint64_t)(name_bytes - bytes));
    put_header(bytes, file, table_offset);
    assert(at - bytes <= ELF_BYTES_MAX);
    return (size_t)(at - bytes);
}
