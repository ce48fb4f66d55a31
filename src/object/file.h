/*
 * object/file.h - an ELF file: its header, its section table, and the bytes of sections as they
 * stand there.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OBJECT_FILE_H
#define OBJECT_FILE_H

#include "object/image.h"

#include <cairn/architecture.h>
#include <cairn/status.h>
#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes in the file; not a copy. */
struct file_bytes {
    const uint8_t *bytes;
    size_t size;
};

struct file {
    struct image image;
    Elf *elf;
    GElf_Ehdr header;
    enum cairn_byte_order byte_order;
    uint32_t section_count;  /* number 0, which is none, among them */
    struct file_bytes names; /* of sections */
    struct section_uses *uses;
};

/* Opens what is in file->image. On failure as well, file_close is still to be called.
 * TRUNCATED, CORRUPT, UNSUPPORTED, SYSTEM, MEMORY. */
enum cairn_status file_open(struct file *file, const struct cairn_allocator *allocator,
                            struct cairn_error *error);

void file_close(struct file *file, const struct cairn_allocator *allocator);

/* Not linked yet: addresses count from the start of their section. */
static inline bool file_is_relocatable(const struct file *file)
{
    return file->header.e_type == ET_REL;
}

/* False if there is no such section. */
bool file_section(const struct file *file, size_t index, GElf_Shdr *header);

/* "" if it has none. */
const char *file_section_name(const struct file *file, const GElf_Shdr *header);

/* The first section of the type; 0 if there is none. */
uint32_t file_find_type(const struct file *file, uint32_t type);

/* The section that has the wide section numbers of the symbol table in section `symbols`; 0 if
 * there is none. */
uint32_t file_find_wide_sections(const struct file *file, uint32_t symbols);

/* The bytes of section `index`, whose header it is. Distinct sections for which this was called
 * never have more bytes together than the file: so what takes time in proportion to each of them
 * takes time in proportion to the file. TRUNCATED (it does not lie in the file), CORRUPT (it
 * overlaps others), SYSTEM. */
enum cairn_status file_section_bytes(const struct file *file, uint32_t index,
                                     const GElf_Shdr *header, struct file_bytes *bytes,
                                     struct cairn_error *error);

/* `size` bytes from `offset` on; the same failures, except CORRUPT. */
enum cairn_status file_bytes_at(const struct file *file, uint64_t offset, uint64_t size,
                                struct file_bytes *bytes, struct cairn_error *error);

/* The string table in section `index`, up to its last NUL; empty if there is none. */
struct file_bytes file_strings(const struct file *file, uint32_t index);

/* The string at `offset` of a string table; NULL if there is none. */
static inline const char *file_string(const struct file_bytes *strings, uint64_t offset)
{
    return offset < strings->size ? (const char *)strings->bytes + offset : NULL;
}

#endif
