/*
 * file/elf_file.h - reads an ELF file: its header, its section table, and the unmodified bytes of
 * its sections.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FILE_ELF_FILE_H
#define FILE_ELF_FILE_H

#include "file/contents.h"

#include <cairn/architecture.h>
#include <cairn/status.h>
#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the file, not a copy of them. */
struct file_bytes {
    const uint8_t *bytes;
    size_t size;
};

struct file {
    struct image image;
    Elf *elf;
    GElf_Ehdr header;
    enum cairn_byte_order byte_order;
    uint32_t section_count;  /* includes section 0, the null section */
    struct file_bytes names; /* string table with the names of sections */
    struct section_uses *uses;
};

/* Opens the ELF file in file->image. The caller must call file_close even on failure. Errors:
 * TRUNCATED, CORRUPT, UNSUPPORTED, SYSTEM, MEMORY. */
enum cairn_status file_open(struct file *file, const struct cairn_allocator *allocator,
                            struct cairn_error *error);

void file_close(struct file *file, const struct cairn_allocator *allocator);

/* Whether the file is not linked yet. If so, addresses are offsets from the start of their section.
 */
static inline bool file_is_relocatable(const struct file *file)
{
    return file->header.e_type == ET_REL;
}

/* Reads the header of a section. Returns false if there is no such section. */
bool file_section(const struct file *file, size_t index, GElf_Shdr *header);

/* Returns the name of a section; "" if it has none. */
const char *file_section_name(const struct file *file, const GElf_Shdr *header);

/* Returns the number of the first section of this type; 0 if it does not exist. */
uint32_t file_find_type(const struct file *file, uint32_t type);

/* Returns the number of the section with the wide section numbers of symbol table `symbols`; 0 if
 * the table has no such section. */
uint32_t file_find_wide_sections(const struct file *file, uint32_t symbols);

/* Finds the bytes of section `index`, which has this header. The total size of all distinct
 * sections for which this function succeeded is at most the size of the file. Work that is
 * proportional to the size of each section is therefore proportional to the size of the file.
 * Errors: TRUNCATED (the section is not inside the file), CORRUPT (it overlaps other sections),
 * SYSTEM. */
enum cairn_status file_section_bytes(const struct file *file, uint32_t index,
                                     const GElf_Shdr *header, struct file_bytes *bytes,
                                     struct cairn_error *error);

/* Finds `size` bytes from `offset` on. Errors: TRUNCATED, SYSTEM. */
enum cairn_status file_bytes_at(const struct file *file, uint64_t offset, uint64_t size,
                                struct file_bytes *bytes, struct cairn_error *error);

/* Returns the string table in section `index`, up to its last NUL; empty if the section is not a
 * string table. */
struct file_bytes file_strings(const struct file *file, uint32_t index);

/* Returns the string at `offset` of a string table; NULL if the offset is outside the table. */
static inline const char *file_string(const struct file_bytes *strings, uint64_t offset)
{
    return offset < strings->size ? (const char *)strings->bytes + offset : NULL;
}

#endif
