/*
 * Opening ELF files. libelf checks headers and tables; that a section lies inside the file is
 * checked here, so that the file's own bytes can be used.
 *
 * SPDX-License-Identifier: MIT
 */
#include "object/file.h"

#include "base/error.h"

#include <ar.h>
#include <string.h>

enum { MAGIC_BYTES = 8 };

static bool begins_with(const struct image *image, const char magic[static MAGIC_BYTES])
{
    return image->size >= MAGIC_BYTES && memcmp(image->bytes, magic, MAGIC_BYTES) == 0;
}

static enum cairn_status check_identity(const struct image *image, struct cairn_error *error)
{
    if (image->size == 0)
        return error_set(error, CAIRN_ERROR_TRUNCATED, 0, "the file is empty");
    if (begins_with(image, ARMAG) || begins_with(image, "!<thin>\n"))
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "this is an archive: its members are opened one by one, with "
                         "cairn_archive_open");
    if (image->size < SELFMAG || memcmp(image->bytes, ELFMAG, SELFMAG) != 0)
        return error_set(error, CAIRN_ERROR_CORRUPT, 0, "this is not an ELF file");
    if (image->size > EI_CLASS && image->bytes[EI_CLASS] == ELFCLASS32)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, EI_CLASS,
                         "this is a 32-bit ELF file: Cairn reads 64-bit ones only");
    if (image->size < sizeof(Elf64_Ehdr))
        return error_set(error, CAIRN_ERROR_TRUNCATED, image->size,
                         "the file ends inside its ELF header: it has %zu bytes of %zu",
                         image->size, sizeof(Elf64_Ehdr));
    return CAIRN_OK;
}

/* libelf opens a file whose section table is cut off as one without sections. */
static enum cairn_status check_section_table(const struct file *file, struct cairn_error *error)
{
    const GElf_Ehdr *header = &file->header;
    size_t size = file->image.size;
    if (header->e_shoff == 0)
        return CAIRN_OK;
    uint64_t table_bytes = (uint64_t)header->e_shnum * sizeof(Elf64_Shdr);
    if (table_bytes == 0)
        table_bytes = sizeof(Elf64_Shdr);
    if (header->e_shoff <= size && size - header->e_shoff >= table_bytes)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_TRUNCATED, header->e_shoff,
                     "the file ends before its section table: it has %zu bytes, the table is at "
                     "byte %llu",
                     size, (unsigned long long)header->e_shoff);
}

enum cairn_status file_open(struct file *file, struct cairn_error *error)
{
    enum cairn_status status = check_identity(&file->image, error);
    if (status != CAIRN_OK)
        return status;
    elf_version(EV_CURRENT);
    /* libelf takes a pointer that is not const, and does not write through it. */
    file->elf = elf_memory((char *)(uintptr_t)file->image.bytes, file->image.size);
    if (file->elf == NULL || gelf_getehdr(file->elf, &file->header) == NULL)
        return error_set(error, CAIRN_ERROR_CORRUPT, 0, "the ELF header is no good: %s",
                         elf_errmsg(-1));
    if (file->header.e_ident[EI_DATA] == ELFDATA2MSB)
        file->byte_order = CAIRN_BIG_ENDIAN;
    status = check_section_table(file, error);
    if (status != CAIRN_OK)
        return status;
    size_t count = 0;
    if (elf_getshdrnum(file->elf, &count) == 0 && count <= UINT32_MAX)
        file->section_count = (uint32_t)count;
    if (elf_getshdrstrndx(file->elf, &file->name_section) != 0)
        file->name_section = 0;
    return CAIRN_OK;
}

void file_close(struct file *file, const struct cairn_allocator *allocator)
{
    elf_end(file->elf);
    image_close(&file->image, allocator);
}

bool file_section(const struct file *file, size_t index, GElf_Shdr *header)
{
    Elf_Scn *section = index == 0 ? NULL : elf_getscn(file->elf, index);
    return section != NULL && gelf_getshdr(section, header) != NULL;
}

const char *file_section_name(const struct file *file, const GElf_Shdr *header)
{
    const char *name = NULL;
    if (file->name_section != 0)
        name = elf_strptr(file->elf, file->name_section, header->sh_name);
    return name == NULL ? "" : name;
}

uint32_t file_find_type(const struct file *file, uint32_t type, uint32_t link)
{
    GElf_Shdr header;
    for (uint32_t index = 1; index < file->section_count; index++)
        if (file_section(file, index, &header) && header.sh_type == type &&
            (link == 0 || header.sh_link == link))
            return index;
    return 0;
}

enum cairn_status file_section_bytes(const struct file *file, const GElf_Shdr *header,
                                     struct file_bytes *bytes, struct cairn_error *error)
{
    size_t size = file->image.size;
    if (header->sh_offset > size || size - header->sh_offset < header->sh_size)
        return error_set(error, CAIRN_ERROR_TRUNCATED, header->sh_offset,
                         "the section takes %llu bytes from byte %llu on; the file has %zu",
                         (unsigned long long)header->sh_size, (unsigned long long)header->sh_offset,
                         size);
    *bytes = (struct file_bytes){file->image.bytes + header->sh_offset, header->sh_size};
    return CAIRN_OK;
}
