/*
 * Opens ELF files. libelf checks headers and tables, which are loaded for it first. Each section is
 * checked to be inside the file, so that its bytes can be used without a copy.
 *
 * SPDX-License-Identifier: MIT
 */
#include "file/elf_file.h"

#include "base/error.h"
#include "base/memory.h"

#include <ar.h>
#include <cairn/section.h>
#include <string.h>

/* What is known about a section after its first use. */
struct section_use {
    size_t strings_size;    /* string table: bytes up to and including the last NUL */
    uint32_t wide_sections; /* symbol table: section of its wide section numbers; or 0 */
    bool has_bytes;         /* whether file_section_bytes has counted its bytes */
    bool has_strings;       /* whether strings_size is known */
};

struct section_uses {
    uint64_t bytes; /* total size of the distinct sections that were used */
    struct section_use sections[];
};

/* ---- Opening ---- */

static enum cairn_status check_identity(const struct image *image, struct cairn_error *error)
{
    if (image->size == 0)
        return error_set(error, CAIRN_ERROR_TRUNCATED, 0, "the file is empty");
    if (image->size >= SARMAG && (memcmp(image->bytes, ARMAG, SARMAG) == 0 ||
                                  memcmp(image->bytes, "!<thin>\n", SARMAG) == 0))
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

/* Loads the entries of a table that are in the file, at most `count`. */
static enum cairn_status load_table(const struct image *image, uint64_t offset, uint64_t count,
                                    size_t entry_bytes, struct cairn_error *error)
{
    if (offset >= image->size)
        return CAIRN_OK;
    size_t left = image->size - (size_t)offset;
    size_t size = count < left / entry_bytes ? (size_t)count * entry_bytes : left;
    return image_load(image, (size_t)offset, size, error);
}

/* Loads the section table and the program headers, which libelf expects in memory. The counts are
 * in the ELF header or, if they do not fit there, in section 0. */
static enum cairn_status load_tables(const struct image *image, struct cairn_error *error)
{
    enum cairn_byte_order order =
        image->bytes[EI_DATA] == ELFDATA2MSB ? CAIRN_BIG_ENDIAN : CAIRN_LITTLE_ENDIAN;
    const uint8_t *bytes = image->bytes;
    uint64_t sections = cairn_load_u64(bytes + offsetof(Elf64_Ehdr, e_shoff), order);
    uint64_t segments = cairn_load_u64(bytes + offsetof(Elf64_Ehdr, e_phoff), order);
    uint64_t section_count = cairn_load_u16(bytes + offsetof(Elf64_Ehdr, e_shnum), order);
    uint64_t segment_count = cairn_load_u16(bytes + offsetof(Elf64_Ehdr, e_phnum), order);
    enum cairn_status status = CAIRN_OK;
    if (sections > 0)
        status = load_table(image, sections, 1, sizeof(Elf64_Shdr), error);
    if (status == CAIRN_OK && sections > 0 && sections <= image->size &&
        image->size - sections >= sizeof(Elf64_Shdr)) {
        const uint8_t *first = bytes + sections;
        if (section_count == 0)
            section_count = cairn_load_u64(first + offsetof(Elf64_Shdr, sh_size), order);
        if (segment_count == PN_XNUM)
            segment_count = cairn_load_u32(first + offsetof(Elf64_Shdr, sh_info), order);
        status = load_table(image, sections, section_count, sizeof(Elf64_Shdr), error);
    }
    if (status == CAIRN_OK && segments > 0)
        status = load_table(image, segments, segment_count, sizeof(Elf64_Phdr), error);
    return status;
}

static enum cairn_status open_elf(struct file *file, struct cairn_error *error)
{
    size_t size = file->image.size < sizeof(Elf64_Ehdr) ? file->image.size : sizeof(Elf64_Ehdr);
    enum cairn_status status = image_load(&file->image, 0, size, error);
    if (status == CAIRN_OK)
        status = check_identity(&file->image, error);
    if (status == CAIRN_OK)
        status = load_tables(&file->image, error);
    if (status != CAIRN_OK)
        return status;
    elf_version(EV_CURRENT);
    /* libelf takes a pointer to non-const, but does not write to the memory. */
    file->elf = elf_memory((char *)(uintptr_t)file->image.bytes, file->image.size);
    if (file->elf == NULL || gelf_getehdr(file->elf, &file->header) == NULL)
        return error_set(error, CAIRN_ERROR_CORRUPT, 0, "the ELF header is invalid: %s",
                         elf_errmsg(-1));
    if (file->header.e_ident[EI_DATA] == ELFDATA2MSB)
        file->byte_order = CAIRN_BIG_ENDIAN;
    /* If the section table is not inside the file, libelf opens the file as one without sections.
     */
    size = file->image.size;
    uint64_t table = file->header.e_shoff;
    uint64_t count = file->header.e_shnum == 0 ? 1 : file->header.e_shnum;
    if (table == 0 || (table <= size && size - table >= count * sizeof(Elf64_Shdr)))
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_TRUNCATED, table,
                     "the file ends before its section table: it has %zu bytes, the table is at "
                     "byte %llu",
                     size, (unsigned long long)table);
}

static size_t uses_size(uint32_t section_count)
{
    return sizeof(struct section_uses) + section_count * sizeof(struct section_use);
}

enum cairn_status file_open(struct file *file, const struct cairn_allocator *allocator,
                            struct cairn_error *error)
{
    size_t count = 0;
    size_t name_section = 0;
    GElf_Shdr header;
    enum cairn_status status = open_elf(file, error);
    if (status != CAIRN_OK)
        return status;
    if (elf_getshdrnum(file->elf, &count) != 0 || count == 0 || count > UINT32_MAX)
        return CAIRN_OK;
    file->uses = memory_new(allocator, uses_size((uint32_t)count), 1);
    if (file->uses == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu sections", count);
    file->section_count = (uint32_t)count;
    /* Iterate in reverse, so that the first of several sections remains. */
    for (uint32_t index = file->section_count - 1; index > 0; index--)
        if (file_section(file, index, &header) && header.sh_type == SHT_SYMTAB_SHNDX &&
            header.sh_link < file->section_count)
            file->uses->sections[header.sh_link].wide_sections = index;
    if (elf_getshdrstrndx(file->elf, &name_section) == 0 && name_section < count)
        file->names = file_strings(file, (uint32_t)name_section);
    return CAIRN_OK;
}

void file_close(struct file *file, const struct cairn_allocator *allocator)
{
    elf_end(file->elf);
    memory_free(allocator, file->uses, uses_size(file->section_count));
    image_close(&file->image, allocator);
}

/* ---- Sections ---- */

bool file_section(const struct file *file, size_t index, GElf_Shdr *header)
{
    Elf_Scn *section = index == 0 ? NULL : elf_getscn(file->elf, index);
    return section != NULL && gelf_getshdr(section, header) != NULL;
}

const char *file_section_name(const struct file *file, const GElf_Shdr *header)
{
    const char *name = file_string(&file->names, header->sh_name);
    return name == NULL ? "" : name;
}

uint32_t file_find_type(const struct file *file, uint32_t type)
{
    GElf_Shdr header;
    for (uint32_t index = 1; index < file->section_count; index++)
        if (file_section(file, index, &header) && header.sh_type == type)
            return index;
    return 0;
}

uint32_t file_find_wide_sections(const struct file *file, uint32_t symbols)
{
    return file->uses->sections[symbols].wide_sections;
}

enum cairn_status file_bytes_at(const struct file *file, uint64_t offset, uint64_t size,
                                struct file_bytes *bytes, struct cairn_error *error)
{
    const struct image *image = &file->image;
    if (offset > image->size || image->size - offset < size)
        return error_set(error, CAIRN_ERROR_TRUNCATED, offset,
                         "the section takes %llu bytes from byte %llu on; the file has %zu",
                         (unsigned long long)size, (unsigned long long)offset, image->size);
    *bytes = (struct file_bytes){image->bytes + offset, (size_t)size};
    return image_load(image, (size_t)offset, (size_t)size, error);
}

enum cairn_status file_section_bytes(const struct file *file, uint32_t index,
                                     const GElf_Shdr *header, struct file_bytes *bytes,
                                     struct cairn_error *error)
{
    struct section_uses *uses = file->uses;
    enum cairn_status status =
        file_bytes_at(file, header->sh_offset, header->sh_size, bytes, error);
    if (status != CAIRN_OK || uses->sections[index].has_bytes)
        return status;
    if (header->sh_size > file->image.size - uses->bytes)
        return error_set(error, CAIRN_ERROR_CORRUPT, header->sh_offset,
                         "section %u overlaps others: it has %llu bytes, those used before it "
                         "%llu, and the file %zu",
                         index, (unsigned long long)header->sh_size,
                         (unsigned long long)uses->bytes, file->image.size);
    uses->bytes += header->sh_size;
    uses->sections[index].has_bytes = true;
    return CAIRN_OK;
}

struct file_bytes file_strings(const struct file *file, uint32_t index)
{
    GElf_Shdr header;
    struct file_bytes strings;
    if (!file_section(file, index, &header) || header.sh_type != SHT_STRTAB ||
        (header.sh_flags & SHF_COMPRESSED) != 0 ||
        file_section_bytes(file, index, &header, &strings, NULL) != CAIRN_OK)
        return (struct file_bytes){0};
    struct section_use *use = &file->uses->sections[index];
    if (!use->has_strings) {
        const uint8_t *last = strings.size == 0 ? NULL : memrchr(strings.bytes, 0, strings.size);
        use->strings_size = last == NULL ? 0 : (size_t)(last - strings.bytes) + 1;
        use->has_strings = true;
    }
    strings.size = use->strings_size;
    return strings;
}
