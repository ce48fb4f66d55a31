/*
 * fuzz/make_object.h - ELF files that are made from an input: valid ones for the most part, with
 * sections, symbols and relocations that the input chooses, of which single bytes are then changed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FUZZ_MAKE_OBJECT_H
#define FUZZ_MAKE_OBJECT_H

#include "fuzz/fuzz.h"
#include "tests/elf_builder.h"

#include <cairn/allocator.h>
#include <stdbool.h>

enum { MADE_SYMBOLS_MAX = 64 };

struct made_symbol {
    char name[4];
    uint8_t info;
    uint16_t section;
    uint64_t value;
    uint64_t size;
};

struct made_object {
    uint8_t bytes[ELF_BYTES_MAX];
    size_t size;
    struct elf_file file;
    struct made_symbol symbols[MADE_SYMBOLS_MAX]; /* in the order of the table */
    uint32_t symbol_count;
    bool is_changed; /* what is above need not be what the bytes say */
};

/* Takes what the object is made from from the input, up to a step that says that it ends. */
void make_object(struct fuzz_input *input, struct made_object *made);

/* Adds a section with the name and checksum of a debug file, or one with a build ID of one byte, to
 * an object that has sections left, and writes it again. */
void made_object_link(struct made_object *made, const struct made_object *debug_file);

/* The checksum of .gnu_debuglink. */
uint32_t checksum_of(const uint8_t *bytes, size_t size);

/* Counts memory. */
struct fuzz_memory {
    size_t first; /* bytes of the first block: an object itself, which its limit does not count */
    size_t used;
    size_t most;
};
struct cairn_allocator fuzz_memory_allocator(struct fuzz_memory *memory);

#endif
