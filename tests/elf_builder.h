/*
 * elf_builder.h - builds small ELF files, in either byte order.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_ELF_BUILDER_H
#define TESTS_ELF_BUILDER_H

#include <cairn/architecture.h>
#include <elf.h>
#include <stddef.h>
#include <stdint.h>

enum { ELF_SECTIONS_MAX = 16, ELF_BYTES_MAX = 1 << 14 };

struct elf_section {
    const char *name;
    uint32_t type;
    uint64_t flags;
    uint64_t address;
    uint32_t link;
    uint32_t info;
    const void *bytes; /* already in the file's byte order */
    size_t size;
    uint64_t entry_size;
    uint64_t alignment; /* 0: 8 */
};

struct elf_file {
    uint16_t machine;
    uint16_t type;
    uint32_t flags;
    enum cairn_byte_order byte_order;
    struct elf_section sections[ELF_SECTIONS_MAX]; /* the first has number 1 */
    uint32_t section_count;
};

/* Adds a section and returns its number. */
uint32_t elf_add(struct elf_file *file, struct elf_section section);

/* Writes the file to `bytes` (ELF_BYTES_MAX of them) and returns its size. The section names are
 * directly before the section table, which ends the file. */
size_t elf_write(const struct elf_file *file, uint8_t *bytes);

/* Write a number in the file's byte order; return the address after it. */
uint8_t *elf_put16(uint8_t *at, enum cairn_byte_order byte_order, uint16_t value);
uint8_t *elf_put32(uint8_t *at, enum cairn_byte_order byte_order, uint32_t value);
uint8_t *elf_put64(uint8_t *at, enum cairn_byte_order byte_order, uint64_t value);

uint8_t *elf_put_symbol(uint8_t *at, enum cairn_byte_order byte_order, uint32_t name, uint8_t info,
                        uint16_t section, uint64_t value);
uint8_t *elf_put_rela(uint8_t *at, enum cairn_byte_order byte_order, uint64_t offset,
                      uint32_t symbol, uint32_t type, int64_t addend);
uint8_t *elf_put_rel(uint8_t *at, enum cairn_byte_order byte_order, uint64_t offset,
                     uint32_t symbol, uint32_t type);

#endif
