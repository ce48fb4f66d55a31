/*
 * object/elf.h - a reader of relocatable ELF objects for 64-bit machines: pure, without allocation.
 *
 * elf_open checks the header, the table of sections, the string tables and the table of symbols as
 * a whole. After that, the other functions return views of the bytes, which must stay valid and
 * unchanged. All input is hostile: every offset, size and index is checked before it is used.
 * Errors name the section or symbol by its number, and the offset is that of the structure in the
 * file.
 *
 * This reader needs no libelf, which libcairn must not need. It reads what a loader needs, and
 * neither linked files nor archives (file/object.h does).
 *
 * Source: System V ABI, chapter "Object Files" (gABI 4.2 draft).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OBJECT_ELF_H
#define OBJECT_ELF_H

#include <cairn/section.h>
#include <cairn/status.h>
#include <stdbool.h>

enum {
    ELF_HEADER_BYTES = 64,
    ELF_SECTION_BYTES = 64,
    ELF_SYMBOL_BYTES = 24,
    ELF_RELOCATION_BYTES = 24
};

enum elf_machine { ELF_PPC64 = 21, ELF_X86_64 = 62, ELF_AARCH64 = 183 };

/* Types and flags of sections. Others are permitted, and have no meaning for this reader. */
enum elf_section_type {
    ELF_PROGBITS = 1,
    ELF_SYMTAB = 2,
    ELF_STRTAB = 3,
    ELF_RELA = 4,
    ELF_NOBITS = 8,
    ELF_REL = 9,
    ELF_INIT_ARRAY = 14,
    ELF_FINI_ARRAY = 15,
    ELF_PREINIT_ARRAY = 16,
    ELF_SYMTAB_SHNDX = 18,
    ELF_CREL = 0x40000014
};
enum elf_section_flag {
    ELF_WRITE = 1,
    ELF_ALLOC = 2,
    ELF_EXECUTE = 4,
    ELF_TLS = 0x400,
    ELF_COMPRESSED = 0x800
};

/* Section numbers of symbols that are in no section. elf_symbol replaces the numbers of the file,
 * so that they cannot be mistaken for a section's: there are fewer than ELF_SECTION_LIMIT. */
#define ELF_SECTION_LIMIT UINT32_C(0xFFFFFF00)
#define ELF_UNDEFINED UINT32_C(0)
#define ELF_ABSOLUTE UINT32_C(0xFFFFFFF1)
#define ELF_COMMON UINT32_C(0xFFFFFFF2)

enum elf_binding { ELF_LOCAL = 0, ELF_GLOBAL = 1, ELF_WEAK = 2, ELF_UNIQUE = 10 };
enum elf_symbol_type {
    ELF_NO_TYPE = 0,
    ELF_OBJECT = 1,
    ELF_FUNCTION = 2,
    ELF_SECTION_SYMBOL = 3,
    ELF_FILE_SYMBOL = 4,
    ELF_COMMON_SYMBOL = 5,
    ELF_TLS_SYMBOL = 6,
    ELF_IFUNC = 10
};
enum elf_visibility { ELF_DEFAULT = 0, ELF_INTERNAL = 1, ELF_HIDDEN = 2, ELF_PROTECTED = 3 };

/*
 * Invariants after elf_open:
 *  - the table of sections is inside the file, and section 0 has no contents
 *  - both string tables are inside the file; each ends with a zero byte, or its size is 0
 *  - the table of symbols is inside the file; `extended`, if it is not NULL, has as many entries
 */
struct elf_object {
    struct cairn_section file;
    enum elf_machine machine;
    uint32_t flags;
    uint32_t section_count;
    uint64_t sections;       /* file offset of the table */
    uint32_t symbol_section; /* its number; 0 if there are no symbols */
    uint32_t symbol_count;
    uint32_t local_count; /* the first symbols, which are local */
    const uint8_t *symbols;
    const uint8_t *extended; /* section numbers of symbols, 4 bytes each; or NULL */
    const char *section_names;
    uint64_t section_names_size;
    const char *symbol_names;
    uint64_t symbol_names_size;
};

struct elf_section_view {
    const char *name;
    uint32_t number;
    uint32_t type;
    uint64_t flags;
    const uint8_t *bytes; /* NULL if the section is NOBITS */
    uint64_t size;
    uint64_t alignment; /* a power of two, at least 1 */
    uint32_t link;      /* less than the number of sections */
    uint32_t info;
    uint64_t entry_bytes;
    uint64_t file_offset;
};

struct elf_symbol {
    const char *name;
    uint32_t number;
    uint32_t section; /* less than the number of sections, or one of the three above */
    uint64_t value;   /* for ELF_COMMON: the alignment */
    uint64_t size;
    enum elf_binding binding;
    enum elf_symbol_type type;
    enum elf_visibility visibility;
    uint8_t other; /* the bits of st_other that are not the visibility, in their place */
};

struct elf_relocation {
    uint64_t offset;
    uint32_t type;
    uint32_t symbol; /* less than the number of symbols; 0: none */
    int64_t addend;
};

/* Opens an object. `file->byte_order` is ignored and read from the header. Errors: TRUNCATED,
 * CORRUPT, VERSION, UNSUPPORTED (not a relocatable object for one of the machines above). */
CAIRN_MUST_CHECK enum cairn_status elf_open(const uint8_t *bytes, size_t size,
                                            struct elf_object *object, struct cairn_error *error);

/* Reads the header of section `number`, which must be less than the number of sections, and checks
 * that the contents are in the file. Errors: TRUNCATED, CORRUPT. */
CAIRN_MUST_CHECK enum cairn_status elf_section(const struct elf_object *object, uint32_t number,
                                               struct elf_section_view *section,
                                               struct cairn_error *error);

/* Reads symbol `number`, which must be less than the number of symbols. Errors: CORRUPT. */
CAIRN_MUST_CHECK enum cairn_status elf_symbol(const struct elf_object *object, uint32_t number,
                                              struct elf_symbol *symbol, struct cairn_error *error);

/* Sets `*count` to the number of relocations in a section. Errors: CORRUPT (size of entries, table
 * of symbols), UNSUPPORTED (the section is not RELA). */
CAIRN_MUST_CHECK enum cairn_status elf_relocation_count(const struct elf_object *object,
                                                        const struct elf_section_view *section,
                                                        uint64_t *count, struct cairn_error *error);

/* Reads relocation `index`. Whether its offset is in the section that it changes is not checked.
 * Errors: CORRUPT (number of the symbol). */
CAIRN_MUST_CHECK enum cairn_status elf_relocation(const struct elf_object *object,
                                                  const struct elf_section_view *section,
                                                  uint64_t index, struct elf_relocation *relocation,
                                                  struct cairn_error *error);

#endif
