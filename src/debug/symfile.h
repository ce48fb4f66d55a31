/*
 * debug/symfile.h - makes an ELF file in memory that describes one range of code to a debugger: its
 * names, and the rules by which its callers are found.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef DEBUG_SYMFILE_H
#define DEBUG_SYMFILE_H

#include "arch/arch.h"
#include "base/memory.h"
#include "debug/names.h"

/* Bytes that grow. Invariant: `failed` if memory ran out for some of them. */
struct symfile_bytes {
    const struct cairn_allocator *allocator;
    uint8_t *bytes;
    size_t size;
    size_t capacity;
    bool failed;
};

struct symfile {
    const struct cairn_arch *arch;
    uint64_t address; /* the range */
    uint64_t size;
    struct symfile_bytes names;
    struct symfile_bytes symbols;
    struct symfile_bytes frames; /* .eh_frame */
};

void symfile_begin(struct symfile *file, const struct cairn_allocator *allocator,
                   const struct cairn_arch *arch, uint64_t address, uint64_t size);

/* Adds a symbol for part of the range. */
void symfile_add_symbol(struct symfile *file, const struct named_code *code);

/* Add rules for part of the range: those of a module's functions there; of code that is jumped to
 * from a site, whose end is given; of code that is called, and pushes `pushed` bytes with its first
 * instruction, of `push_bytes` bytes. */
void symfile_add_rules(struct symfile *file, const struct named_code *code,
                       const struct unwind *unwind);
void symfile_add_site_rules(struct symfile *file, const struct named_code *code, uint64_t site_end);
void symfile_add_call_rules(struct symfile *file, const struct named_code *code,
                            unsigned push_bytes, unsigned pushed);

/* Makes the file, and releases what was added. Returns NULL if there is no memory; otherwise the
 * caller frees `*size` bytes. */
uint8_t *symfile_end(struct symfile *file, size_t *size);

#endif
