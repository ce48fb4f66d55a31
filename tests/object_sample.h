/*
 * object_sample.h - small ELF files with a stack map section, for tests of objects.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_OBJECT_SAMPLE_H
#define TESTS_OBJECT_SAMPLE_H

#include "elf_builder.h"

#include <cairn/object.h>
#include <check.h>

/* Three words of a stack map section that stand for addresses, and how a file describes them. */
enum { WORD_COUNT = 3, WORD_BYTES = 8 * WORD_COUNT };

/* Names in the string table below. */
enum { NAME_FIRST = 1, NAME_SECOND = 7, NAME_LOCAL = 14 };

struct sample {
    struct elf_file file;
    uint8_t words[WORD_BYTES];
    uint8_t symbols[16 * sizeof(Elf64_Sym)];
    uint8_t relocations[8 * sizeof(Elf64_Rela)];
    uint8_t code_relocations[2 * sizeof(Elf64_Rela)];
    uint8_t descriptors[64];
    uint8_t code[64]; /* each byte is its offset */
    uint8_t *symbols_end;
    uint8_t *relocations_end;
    uint32_t text, stackmaps, symbol_section, descriptor_section;
    uint8_t bytes[ELF_BYTES_MAX];
    size_t size;
};

void sample_begin(struct sample *sample, uint16_t machine, uint16_t type,
                  enum cairn_byte_order byte_order);
void sample_set_word(struct sample *sample, unsigned index, uint64_t value);
void sample_add_symbol(struct sample *sample, uint32_t name, unsigned binding, unsigned type,
                       uint32_t section, uint64_t value);
void sample_set_symbol_size(struct sample *sample, uint64_t size);
void sample_add_rela(struct sample *sample, uint64_t offset, uint32_t symbol, uint32_t type,
                     int64_t addend);
void sample_add_symbol_section(struct sample *sample, uint32_t type);
void sample_add_relocation_section(struct sample *sample, uint32_t type, uint64_t flags,
                                   uint32_t target);
void sample_finish(struct sample *sample);
/* Adds the symbols, and the relocations with addends of section `target`, and finishes the file. */
void sample_finish_relocated(struct sample *sample, uint32_t target);
void sample_relocatable(struct sample *sample, uint16_t machine, enum cairn_byte_order byte_order,
                        uint32_t type);
void sample_executable(struct sample *sample, uint32_t symbol_type);
void sample_descriptors(struct sample *sample, uint16_t type);
cairn_object *sample_open(const struct sample *sample);
struct cairn_object_section sample_section(cairn_object *object);
uint64_t sample_word(const struct cairn_object_section *section, unsigned index);
uint8_t *sample_copy_to_guard(const uint8_t *bytes, size_t size, uint8_t **mapping);
void sample_drop_guarded(uint8_t *mapping, size_t size);
unsigned sample_time_seed(void);
int sample_run(Suite *suite);
size_t sample_compress(const uint8_t *bytes, uint16_t size, uint8_t *compressed);

#endif
