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

struct file {
    struct image image;
    Elf *elf;
    GElf_Ehdr header;
    enum cairn_byte_order byte_order;
    uint32_t section_count; /* number 0, which is none, among them */
    size_t name_section;
};

/* Bytes in the file; not a copy. */
struct file_bytes {
    const uint8_t *bytes;
    size_t size;
};

/* Opens what is in file->image. On failure as well, file_close is still to be called.
 * TRUNCATED, CORRUPT, UNSUPPORTED. */
enum cairn_status file_open(struct file *file, struct cairn_error *error);

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

/* The first section of the type, of those that are linked to section `link` if that is not 0; 0 if
 * there is none. */
uint32_t file_find_type(const struct file *file, uint32_t type, uint32_t link);

/* TRUNCATED: it does not lie in the file. */
enum cairn_status file_section_bytes(const struct file *file, const GElf_Shdr *header,
                                     struct file_bytes *bytes, struct cairn_error *error);

#endif
