/* Reads relocatable ELF objects. SPDX-License-Identifier: MIT */
#include "object/elf.h"

#include "base/error.h"

#include <string.h>

/* Fields of the file's header, of a section's, of a symbol and of a relocation. */
enum { HEADER_TYPE = 16, HEADER_MACHINE = 18, HEADER_VERSION = 20, HEADER_SECTIONS = 40 };
enum { HEADER_FLAGS = 48, HEADER_ENTRY_BYTES = 58, HEADER_COUNT = 60, HEADER_NAMES = 62 };
enum { SECTION_TYPE = 4, SECTION_FLAGS = 8, SECTION_OFFSET = 24, SECTION_SIZE = 32 };
enum { SECTION_LINK = 40, SECTION_INFO = 44, SECTION_ALIGNMENT = 48, SECTION_ENTRY_BYTES = 56 };
enum { SYMBOL_INFO = 4, SYMBOL_OTHER = 5, SYMBOL_SECTION = 6, SYMBOL_VALUE = 8, SYMBOL_SIZE = 16 };
enum { RELOCATION_INFO = 8, RELOCATION_ADDEND = 16 };

enum {
    CLASS_64 = 2,
    VERSION_CURRENT = 1,
    TYPE_RELOCATABLE = 1,
    /* Section numbers from here on have other meanings. */
    FIRST_RESERVED = 0xFF00,
    FILE_LARGE_COMMON = 0xFF02, /* x86-64's medium and large models */
    FILE_ABSOLUTE = 0xFFF1,
    FILE_COMMON = 0xFFF2,
    FILE_EXTENDED = 0xFFFF,
    EXTENDED_BYTES = 4
};

static bool is_inside(const struct elf_object *object, uint64_t offset, uint64_t size)
{
    return offset <= object->file.size && size <= object->file.size - offset;
}

static uint32_t load_u32(const struct elf_object *object, const uint8_t *bytes)
{
    return cairn_load_u32(bytes, object->file.byte_order);
}

static uint64_t load_u64(const struct elf_object *object, const uint8_t *bytes)
{
    return cairn_load_u64(bytes, object->file.byte_order);
}

/* ---- Sections ---- */

static const uint8_t *section_header(const struct elf_object *object, uint32_t number)
{
    return object->file.bytes + object->sections + (uint64_t)number * ELF_SECTION_BYTES;
}

static uint64_t section_header_offset(const struct elf_object *object, uint32_t number)
{
    return object->sections + (uint64_t)number * ELF_SECTION_BYTES;
}

static enum cairn_status check_section(const struct elf_object *object,
                                       const struct elf_section_view *section,
                                       struct cairn_error *error)
{
    uint64_t at = section_header_offset(object, section->number);
    if ((section->alignment & (section->alignment - 1)) != 0)
        return error_set(error, CAIRN_ERROR_CORRUPT, at,
                         "section %u (%.60s): alignment %llu is not a power of two",
                         section->number, section->name, (unsigned long long)section->alignment);
    if (section->link >= object->section_count)
        return error_set(error, CAIRN_ERROR_CORRUPT, at,
                         "section %u (%.60s): linked to section %u of %u", section->number,
                         section->name, section->link, object->section_count);
    if (section->type == ELF_NOBITS || is_inside(object, section->file_offset, section->size))
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_TRUNCATED, at,
                     "section %u (%.60s): %llu bytes at offset %llu of a file of %zu bytes",
                     section->number, section->name, (unsigned long long)section->size,
                     (unsigned long long)section->file_offset, object->file.size);
}

/* Reads a section with this name. */
static enum cairn_status read_section(const struct elf_object *object, uint32_t number,
                                      const char *name, struct elf_section_view *section,
                                      struct cairn_error *error)
{
    const uint8_t *header = section_header(object, number);
    struct elf_section_view read = {.name = name,
                                    .number = number,
                                    .type = load_u32(object, header + SECTION_TYPE),
                                    .flags = load_u64(object, header + SECTION_FLAGS),
                                    .size = load_u64(object, header + SECTION_SIZE),
                                    .alignment = load_u64(object, header + SECTION_ALIGNMENT),
                                    .link = load_u32(object, header + SECTION_LINK),
                                    .info = load_u32(object, header + SECTION_INFO),
                                    .entry_bytes = load_u64(object, header + SECTION_ENTRY_BYTES),
                                    .file_offset = load_u64(object, header + SECTION_OFFSET)};
    if (read.alignment == 0)
        read.alignment = 1;
    enum cairn_status status = check_section(object, &read, error);
    if (status != CAIRN_OK)
        return status;
    if (read.type != ELF_NOBITS)
        read.bytes = object->file.bytes + read.file_offset;
    *section = read;
    return CAIRN_OK;
}

enum cairn_status elf_section(const struct elf_object *object, uint32_t number,
                              struct elf_section_view *section, struct cairn_error *error)
{
    uint32_t name = load_u32(object, section_header(object, number));
    if (name < object->section_names_size)
        return read_section(object, number, object->section_names + name, section, error);
    if (name == 0)
        return read_section(object, number, "", section, error);
    return error_set(error, CAIRN_ERROR_CORRUPT, section_header_offset(object, number),
                     "section %u: its name is at byte %u of %llu bytes of names", number, name,
                     (unsigned long long)object->section_names_size);
}

/* ---- Opening ---- */

static enum cairn_status check_identity(const uint8_t *bytes, size_t size,
                                        struct elf_object *object, struct cairn_error *error)
{
    static const uint8_t magic[] = {0x7F, 'E', 'L', 'F'};
    if (size < ELF_HEADER_BYTES)
        return error_set(error, CAIRN_ERROR_TRUNCATED, 0,
                         "an ELF object of %zu bytes has no header (%d bytes)", size,
                         ELF_HEADER_BYTES);
    if (memcmp(bytes, magic, sizeof magic) != 0)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0, "not an ELF object");
    if (bytes[4] != CLASS_64 || (bytes[5] != 1 && bytes[5] != 2))
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 4,
                         "an ELF object of class %u and byte order %u; only 64-bit objects can be "
                         "loaded",
                         bytes[4], bytes[5]);
    object->file =
        (struct cairn_section){bytes, size, bytes[5] == 2 ? CAIRN_BIG_ENDIAN : CAIRN_LITTLE_ENDIAN};
    uint32_t version = load_u32(object, bytes + HEADER_VERSION);
    if (bytes[6] != VERSION_CURRENT || version != VERSION_CURRENT)
        return error_set(error, CAIRN_ERROR_VERSION, HEADER_VERSION, "an ELF object of version %u",
                         version);
    uint16_t type = cairn_load_u16(bytes + HEADER_TYPE, object->file.byte_order);
    if (type != TYPE_RELOCATABLE)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, HEADER_TYPE,
                         "an ELF file of type %u; only relocatable objects (type 1) can be loaded",
                         type);
    uint16_t machine = cairn_load_u16(bytes + HEADER_MACHINE, object->file.byte_order);
    object->machine = (enum elf_machine)machine;
    object->flags = load_u32(object, bytes + HEADER_FLAGS);
    if (machine == ELF_X86_64 || machine == ELF_AARCH64 || machine == ELF_PPC64)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, HEADER_MACHINE,
                     "an ELF object for machine %u; only x86-64, AArch64 and PPC64 objects can be "
                     "loaded",
                     machine);
}

/* Finds the table of sections. If there are too many sections for the header's fields, their number
 * and that of the section of names are in section 0. */
static enum cairn_status read_section_table(struct elf_object *object, uint32_t *names,
                                            struct cairn_error *error)
{
    const uint8_t *bytes = object->file.bytes;
    uint64_t count = cairn_load_u16(bytes + HEADER_COUNT, object->file.byte_order);
    uint16_t entry_bytes = cairn_load_u16(bytes + HEADER_ENTRY_BYTES, object->file.byte_order);
    object->sections = load_u64(object, bytes + HEADER_SECTIONS);
    *names = cairn_load_u16(bytes + HEADER_NAMES, object->file.byte_order);
    if (entry_bytes != ELF_SECTION_BYTES)
        return error_set(error, CAIRN_ERROR_CORRUPT, HEADER_ENTRY_BYTES,
                         "section headers of %u bytes (%d expected)", entry_bytes,
                         ELF_SECTION_BYTES);
    if (!is_inside(object, object->sections, ELF_SECTION_BYTES))
        return error_set(error, CAIRN_ERROR_TRUNCATED, HEADER_SECTIONS,
                         "the table of sections is at offset %llu of a file of %zu bytes",
                         (unsigned long long)object->sections, object->file.size);
    if (count == 0)
        count = load_u64(object, bytes + object->sections + SECTION_SIZE);
    if (*names == FILE_EXTENDED)
        *names = load_u32(object, bytes + object->sections + SECTION_LINK);
    uint64_t most = (object->file.size - object->sections) / ELF_SECTION_BYTES;
    if (count == 0 || count > most || count > ELF_SECTION_LIMIT)
        return error_set(error, CAIRN_ERROR_TRUNCATED, HEADER_COUNT,
                         "%llu sections, but the file has space for %llu section headers",
                         (unsigned long long)count, (unsigned long long)most);
    object->section_count = (uint32_t)count;
    return CAIRN_OK;
}

/* Reads a string table, which must end with a zero byte. */
static enum cairn_status read_names(const struct elf_object *object, uint32_t number,
                                    const char **names, uint64_t *size, struct cairn_error *error)
{
    struct elf_section_view section;
    if (number >= object->section_count)
        return error_set(error, CAIRN_ERROR_CORRUPT, HEADER_NAMES,
                         "names are in section %u of %u sections", number, object->section_count);
    enum cairn_status status = read_section(object, number, "", &section, error);
    if (status != CAIRN_OK)
        return status;
    if (section.type != ELF_STRTAB || (section.size > 0 && section.bytes[section.size - 1] != 0))
        return error_set(error, CAIRN_ERROR_CORRUPT, section_header_offset(object, number),
                         "section %u should hold names, but is not a string table that ends with "
                         "a zero byte",
                         number);
    *names = (const char *)section.bytes;
    *size = section.size;
    return CAIRN_OK;
}

static enum cairn_status read_symbol_table(struct elf_object *object,
                                           const struct elf_section_view *section,
                                           struct cairn_error *error)
{
    uint64_t at = section_header_offset(object, section->number);
    uint64_t count = section->size / ELF_SYMBOL_BYTES;
    if (object->symbol_section != 0)
        return error_set(error, CAIRN_ERROR_CORRUPT, at,
                         "sections %u and %u are both tables of symbols", object->symbol_section,
                         section->number);
    if (section->entry_bytes != ELF_SYMBOL_BYTES || section->size % ELF_SYMBOL_BYTES != 0 ||
        count > UINT32_MAX || section->info > count)
        return error_set(error, CAIRN_ERROR_CORRUPT, at,
                         "section %u: a table of symbols of %llu bytes each, %llu bytes in total, "
                         "%u of them local (%d bytes each expected)",
                         section->number, (unsigned long long)section->entry_bytes,
                         (unsigned long long)section->size, section->info, ELF_SYMBOL_BYTES);
    object->symbol_section = section->number;
    object->symbols = section->bytes;
    object->symbol_count = (uint32_t)count;
    object->local_count = section->info;
    return read_names(object, section->link, &object->symbol_names, &object->symbol_names_size,
                      error);
}

/* Finds the tables of symbols and of their extended section numbers. */
static enum cairn_status read_symbol_tables(struct elf_object *object, struct cairn_error *error)
{
    struct elf_section_view section;
    struct elf_section_view extended = {0};
    for (uint32_t i = 1; i < object->section_count; i++) {
        enum cairn_status status = elf_section(object, i, &section, error);
        if (status == CAIRN_OK && section.type == ELF_SYMTAB)
            status = read_symbol_table(object, &section, error);
        if (status != CAIRN_OK)
            return status;
        if (section.type == ELF_SYMTAB_SHNDX)
            extended = section;
    }
    if (extended.bytes == NULL)
        return CAIRN_OK;
    if (extended.link != object->symbol_section ||
        extended.size / EXTENDED_BYTES < object->symbol_count)
        return error_set(error, CAIRN_ERROR_CORRUPT, section_header_offset(object, extended.number),
                         "section %u: %llu section numbers for the %u symbols of section %u",
                         extended.number, (unsigned long long)extended.size / EXTENDED_BYTES,
                         object->symbol_count, object->symbol_section);
    object->extended = extended.bytes;
    return CAIRN_OK;
}

enum cairn_status elf_open(const uint8_t *bytes, size_t size, struct elf_object *object,
                           struct cairn_error *error)
{
    struct elf_object opened = {0};
    uint32_t names = 0;
    enum cairn_status status = check_identity(bytes, size, &opened, error);
    if (status == CAIRN_OK)
        status = read_section_table(&opened, &names, error);
    if (status != CAIRN_OK)
        return status;
    if (names != 0)
        status =
            read_names(&opened, names, &opened.section_names, &opened.section_names_size, error);
    if (status == CAIRN_OK)
        status = read_symbol_tables(&opened, error);
    if (status != CAIRN_OK)
        return status;
    *object = opened;
    return CAIRN_OK;
}

/* ---- Symbols ---- */

/* Sets the section of a symbol from the number in the file. */
static enum cairn_status resolve_section(const struct elf_object *object, uint16_t number,
                                         struct elf_symbol *symbol, uint64_t at,
                                         struct cairn_error *error)
{
    bool is_common =
        number == FILE_COMMON || (number == FILE_LARGE_COMMON && object->machine == ELF_X86_64);
    symbol->section = number;
    if (number == FILE_EXTENDED && object->extended != NULL)
        symbol->section =
            load_u32(object, object->extended + (uint64_t)symbol->number * EXTENDED_BYTES);
    else if (number == FILE_ABSOLUTE)
        symbol->section = ELF_ABSOLUTE;
    else if (is_common)
        symbol->section = ELF_COMMON;
    if (number == FILE_ABSOLUTE || is_common ||
        (symbol->section < object->section_count &&
         (number < FIRST_RESERVED || number == FILE_EXTENDED)))
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_CORRUPT, at,
                     "symbol %u (%.80s): in section %u of %u sections", symbol->number,
                     symbol->name, symbol->section, object->section_count);
}

enum cairn_status elf_symbol(const struct elf_object *object, uint32_t number,
                             struct elf_symbol *symbol, struct cairn_error *error)
{
    enum { BINDING_SHIFT = 4, TYPE_MASK = 15, VISIBILITY_MASK = 3 };
    const uint8_t *bytes = object->symbols + (uint64_t)number * ELF_SYMBOL_BYTES;
    uint64_t at = (uint64_t)(bytes - object->file.bytes);
    uint32_t name = load_u32(object, bytes);
    if (name != 0 && name >= object->symbol_names_size)
        return error_set(error, CAIRN_ERROR_CORRUPT, at,
                         "symbol %u: its name is at byte %u of %llu bytes of names", number, name,
                         (unsigned long long)object->symbol_names_size);
    struct elf_symbol read = {.name = name == 0 ? "" : object->symbol_names + name,
                              .number = number,
                              .value = load_u64(object, bytes + SYMBOL_VALUE),
                              .size = load_u64(object, bytes + SYMBOL_SIZE),
                              .binding = (enum elf_binding)(bytes[SYMBOL_INFO] >> BINDING_SHIFT),
                              .type = (enum elf_symbol_type)(bytes[SYMBOL_INFO] & TYPE_MASK),
                              .visibility =
                                  (enum elf_visibility)(bytes[SYMBOL_OTHER] & VISIBILITY_MASK),
                              .other = (uint8_t)(bytes[SYMBOL_OTHER] & ~VISIBILITY_MASK)};
    if ((read.binding == ELF_LOCAL) != (number < object->local_count))
        return error_set(error, CAIRN_ERROR_CORRUPT, at,
                         "symbol %u (%.80s): binding %u, but the first %u symbols, and no others, "
                         "are local",
                         number, read.name, (unsigned)read.binding, object->local_count);
    uint16_t section = cairn_load_u16(bytes + SYMBOL_SECTION, object->file.byte_order);
    enum cairn_status status = resolve_section(object, section, &read, at, error);
    if (status == CAIRN_OK)
        *symbol = read;
    return status;
}

/* ---- Relocations ---- */

enum cairn_status elf_relocation_count(const struct elf_object *object,
                                       const struct elf_section_view *section, uint64_t *count,
                                       struct cairn_error *error)
{
    uint64_t at = section_header_offset(object, section->number);
    if (section->type != ELF_RELA)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, at,
                         "section %u (%.60s): relocations in a section of type 0x%x; only RELA "
                         "(type 4) is supported",
                         section->number, section->name, section->type);
    if (section->entry_bytes != ELF_RELOCATION_BYTES || section->size % ELF_RELOCATION_BYTES != 0 ||
        section->link != object->symbol_section)
        return error_set(error, CAIRN_ERROR_CORRUPT, at,
                         "section %u (%.60s): %llu bytes of relocations of %llu bytes each with "
                         "the symbols of section %u (%d bytes and section %u expected)",
                         section->number, section->name, (unsigned long long)section->size,
                         (unsigned long long)section->entry_bytes, section->link,
                         ELF_RELOCATION_BYTES, object->symbol_section);
    *count = section->size / ELF_RELOCATION_BYTES;
    return CAIRN_OK;
}

enum cairn_status elf_relocation(const struct elf_object *object,
                                 const struct elf_section_view *section, uint64_t index,
                                 struct elf_relocation *relocation, struct cairn_error *error)
{
    const uint8_t *bytes = section->bytes + index * ELF_RELOCATION_BYTES;
    uint64_t info = load_u64(object, bytes + RELOCATION_INFO);
    struct elf_relocation read = {.offset = load_u64(object, bytes),
                                  .type = (uint32_t)info,
                                  .symbol = (uint32_t)(info >> 32),
                                  .addend = (int64_t)load_u64(object, bytes + RELOCATION_ADDEND)};
    if (read.symbol != 0 && read.symbol >= object->symbol_count)
        return error_set(error, CAIRN_ERROR_CORRUPT, (uint64_t)(bytes - object->file.bytes),
                         "section %u (%.60s), entry %llu: symbol %u of %u symbols", section->number,
                         section->name, (unsigned long long)index, read.symbol,
                         object->symbol_count);
    *relocation = read;
    return CAIRN_OK;
}
