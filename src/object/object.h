/*
 * object/object.h - what an open object keeps.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OBJECT_OBJECT_H
#define OBJECT_OBJECT_H

#include "object/budget.h"
#include "object/extents.h"
#include "object/file.h"
#include "object/name_index.h"
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
    struct cairn_allocator allocator; /* that of `budget` */
    struct budget budget;
    struct cairn_object_options options; /* as given, for debug files; with the budget's source */
    struct file file;
    enum cairn_architecture architecture;
    struct relocation_sources sources;
    struct prepared **sections;         /* by number, NULL for those nobody asked for; or NULL */
    struct prepared **code;             /* the same, not relocated: the relocations' names only */
    const struct prepared *descriptors; /* PPC64 ELFv1: .opd, one of `sections`; or NULL */
    bool has_symbols;                   /* they were read */
    struct symbol_list symbols;
    bool has_by_name;          /* it was made */
    struct name_index by_name; /* numbers in `symbols` */
    bool has_ranges;           /* they were read */
    struct code_ranges ranges;
    bool has_extents; /* they were read */
    struct extent_list extents;
    cairn_object *debug_file; /* attached, or NULL */
    uint8_t *matches;         /* by section, the debug file's after its own: see debug_file.c */
    size_t match_count;
    char *debug_path;       /* that was found last, or NULL */
    size_t debug_path_size; /* with its NUL */
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

/* budget_explain, of section `index` of `file`. */
enum cairn_status section_explain(struct budget *budget, const struct file *file, uint32_t index,
                                  enum cairn_status status, struct cairn_error *error);

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
bool debug_file_replaces(const cairn_object *object, uint32_t index);

/* Whether section `index` of the attached file is one that the object lacks. */
bool debug_file_adds(const cairn_object *object, uint32_t index);

/* Closes the attached file. */
void debug_file_release(cairn_object *object);

/* ---- names.c: symbols ---- */

/* Reads them if that was not done yet. TRUNCATED, CORRUPT, UNSUPPORTED, MEMORY. */
enum cairn_status names_read(cairn_object *object, struct cairn_error *error);

/* The code that a symbol's descriptor leads to; false if the symbol is not of a descriptor. */
bool names_find_code(const cairn_object *object, const struct symbol *symbol, struct symbol *code);

void names_release(cairn_object *object);

#endif
