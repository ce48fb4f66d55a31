/*
 * object/object.h - what an open object keeps.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OBJECT_OBJECT_H
#define OBJECT_OBJECT_H

#include "object/extents.h"
#include "object/file.h"
#include "object/ranges.h"
#include "object/relocation.h"
#include "object/symbols.h"

#include <cairn/object.h>

/* A section that was asked for, kept until the object is closed. */
struct prepared {
    uint32_t index;
    uint64_t address;
    const uint8_t *bytes;
    size_t size;
    uint8_t *copy; /* of the bytes, if it was decompressed or relocated; or NULL */
    struct relocation_list relocations;
};

struct cairn_object {
    struct cairn_allocator allocator;
    struct cairn_object_options options; /* as given, for debug files; the allocator is the above */
    struct file file;
    enum cairn_architecture architecture;
    struct relocation_sources sources;
    struct prepared **sections;         /* by number, NULL for those nobody asked for; or NULL */
    struct prepared **code;             /* the same, not relocated: the relocations' names only */
    const struct prepared *descriptors; /* PPC64 ELFv1: .opd, one of `sections`; or NULL */
    bool has_symbols;                   /* they were read */
    struct symbol_list symbols;
    bool has_ranges; /* they were read */
    struct code_ranges ranges;
    bool has_extents; /* they were read */
    struct extent_list extents;
    cairn_object *debug_file; /* attached, or NULL */
    char *debug_path;         /* that was found last, or NULL */
    size_t debug_path_size;   /* with its NUL */
};

/* ---- section.c: the bytes of sections ---- */

/* The section's bytes, relocated. TRUNCATED, CORRUPT, UNSUPPORTED, MEMORY. */
enum cairn_status section_prepare(cairn_object *object, uint32_t index,
                                  const struct prepared **prepared, struct cairn_error *error);

/* The section's bytes as they stand in the file, with the names of relocations; same failures. */
enum cairn_status section_prepare_code(cairn_object *object, uint32_t index,
                                       const struct prepared **prepared, struct cairn_error *error);

/* NULL unless it was prepared before. Numbers behind the object's own are the attached file's. */
const struct prepared *section_find(const cairn_object *object, uint32_t index);
const struct prepared *section_find_code(const cairn_object *object, uint32_t index);

void section_release_all(cairn_object *object);

static inline bool section_has_word(const struct prepared *prepared, uint64_t offset)
{
    return offset <= prepared->size && prepared->size - offset >= 8;
}

/* Where the address in the 8 bytes at `offset` leads: as its relocation says, or else as it stands
 * there. */
struct relocation section_read_address(const cairn_object *object, const struct prepared *prepared,
                                       uint64_t offset);

/* ---- code.c: sections of code ---- */

/* Finds them if that was not done yet. MEMORY. */
enum cairn_status code_read_ranges(cairn_object *object, struct cairn_error *error);

/* ---- debug_file.c: what an attached file has ---- */

/* Whether the object's own section has no bytes, and one of the attached file takes its place. */
bool debug_file_replaces(const cairn_object *object, const GElf_Shdr *header);

/* Whether a section of the attached file, whose header it is, is one that the object lacks. */
bool debug_file_adds(const cairn_object *object, const GElf_Shdr *header);

/* ---- names.c: symbols ---- */

/* Reads them if that was not done yet. TRUNCATED, CORRUPT, UNSUPPORTED, MEMORY. */
enum cairn_status names_read(cairn_object *object, struct cairn_error *error);

void names_release(cairn_object *object);

#endif
