/*
 * file/object.h - an open object.
 *
 * What is read or computed at its first use is kept until the object is destroyed. All memory of an
 * object comes from the allocator of its budget. A request that would exceed the limit fails as if
 * there were no memory.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FILE_OBJECT_H
#define FILE_OBJECT_H

#include "file/elf_file.h"
#include "file/name_index.h"
#include "file/relocation.h"
#include "file/symbols.h"

#include <cairn/object.h>

struct budget {
    struct cairn_allocator source; /* allocator that provides the memory */
    uint64_t limit;                /* bytes */
    uint64_t used;
    uint64_t refused; /* limit that the last refused request would have needed; or 0 */
};

/* A section that was requested. */
struct prepared {
    uint32_t index;
    uint64_t address;
    const uint8_t *bytes;
    size_t size;
    uint8_t *copy; /* copy of the bytes, if they were decompressed or relocated; or NULL */
    struct relocation_list relocations;
};

/* A section of code. */
struct code_range {
    uint64_t address; /* 0 in relocatable objects */
    uint64_t size;
    uint32_t section;
};

struct code_ranges {
    struct code_range *entries; /* sorted by address, in relocatable objects by section */
    size_t count;
    size_t capacity;
};

/* The start of a function's code, or of the part of it that follows a nested function. */
struct extent {
    uint64_t start;
    uint32_t section; /* see struct symbol */
    uint32_t symbol;  /* index in the list of symbols */
};

struct extent_list {
    struct extent *entries; /* sorted by section and start */
    size_t count;
    size_t capacity;
};

/* The forms of a section. */
enum section_form {
    SECTION_RELOCATED, /* with relocations applied */
    SECTION_CODE,      /* without, and with the names of their symbols */
    SECTION_FORMS
};

struct cairn_object {
    struct cairn_allocator allocator; /* allocator of `budget` */
    struct budget budget;
    struct cairn_object_options options; /* the caller's, with the budget's source as allocator;
                                          * used to open debug files */
    struct file file;
    enum cairn_architecture architecture;
    struct relocation_sources sources;
    struct prepared **sections[SECTION_FORMS]; /* by number, NULL if not yet requested; or NULL */
    const struct prepared *descriptors;        /* PPC64 ELFv1: .opd; or NULL */
    bool has_symbols;                          /* whether `symbols` was read */
    struct symbol_list symbols;
    bool has_by_name;          /* whether `by_name` was created */
    struct name_index by_name; /* contains indexes into `symbols` */
    bool has_ranges;           /* whether `ranges` was read */
    struct code_ranges ranges;
    bool has_extents; /* whether `extents` was read */
    struct extent_list extents;
    cairn_object *debug_file; /* attached debug file; or NULL */
    uint8_t *matches;         /* MATCH_… in debug_file.c, by section; the debug file's sections
                               * follow the object's */
    size_t match_count;
    char *debug_path;       /* debug file found by the last search; or NULL */
    size_t debug_path_size; /* bytes, including the NUL */
};

/* ---- object.c: the memory limit ---- */

/* Counts memory that comes from elsewhere. Returns false, and counts nothing, if that would exceed
 * the limit. */
bool budget_take(struct budget *budget, uint64_t size);

/* Explains in `error` that the limit was exceeded, if `status` was caused by it. `what` names the
 * part that needed the memory. Returns `status`. */
enum cairn_status budget_explain(struct budget *budget, const char *what, enum cairn_status status,
                                 struct cairn_error *error);

/* Does the same for section `index` of `file`. */
enum cairn_status section_explain(struct budget *budget, const struct file *file, uint32_t index,
                                  enum cairn_status status, struct cairn_error *error);

/* ---- section.c: the bytes of sections ---- */

/* Finds the bytes of a section. Errors: TRUNCATED, CORRUPT, UNSUPPORTED, MEMORY. */
enum cairn_status section_prepare(cairn_object *object, uint32_t index, enum section_form form,
                                  const struct prepared **prepared, struct cairn_error *error);

/* Returns a section that was prepared before; otherwise NULL. Numbers greater than the object's own
 * are those of the attached debug file. */
const struct prepared *section_find(const cairn_object *object, uint32_t index,
                                    enum section_form form);

void section_release_all(cairn_object *object);

static inline bool section_has_word(const struct prepared *prepared, uint64_t offset)
{
    return offset <= prepared->size && prepared->size - offset >= 8;
}

/* Returns the address in the 8 bytes at `offset`, with its section and symbol if it has a
 * relocation. */
struct relocation section_read_address(const cairn_object *object, const struct prepared *prepared,
                                       uint64_t offset);

/* ---- code.c: sections of code ---- */

/* Finds the sections of code if that was not done yet. Errors: MEMORY. */
enum cairn_status code_read_ranges(cairn_object *object, struct cairn_error *error);

/* Returns the section of code at `address`; NULL if no section contains it. In relocatable objects,
 * `address` is an offset in section `section`. */
const struct code_range *code_find_range(const cairn_object *object, uint32_t section,
                                         uint64_t address);

/* ---- function_ranges.c: the code of functions ---- */

/* Builds the list of extents from the sorted symbols and the sections of code, if that was not done
 * yet. Errors: MEMORY. */
enum cairn_status extents_read(cairn_object *object, struct cairn_error *error);

/* Returns the function whose code contains `address`; NULL if none is known. `section` is a section
 * number in relocatable objects and 0 in linked files. */
const struct symbol *extents_find(const cairn_object *object, uint32_t section, uint64_t address);

void extents_release(cairn_object *object);

/* ---- debug_file.c: build IDs, and the sections of an attached debug file ---- */

/* Returns the build ID of the file (the linker's --build-id), which is in a section of notes or, if
 * there are no section headers, in a segment of notes. The size is 0 if the file has no build ID.
 */
struct file_bytes build_id_find(const struct file *file);

/* Whether this section of the object has no bytes and one of the attached file replaces it. */
bool debug_file_replaces(const cairn_object *object, uint32_t index);

/* Whether the object has no section like section `index` of the attached file. */
bool debug_file_adds(const cairn_object *object, uint32_t index);

void debug_file_release(cairn_object *object);

/* ---- functions.c: symbols ---- */

/* Reads the symbols if that was not done yet. Errors: TRUNCATED, CORRUPT, UNSUPPORTED, MEMORY. */
enum cairn_status names_read(cairn_object *object, struct cairn_error *error);

void names_release(cairn_object *object);

/*
 * Returns the name of the function that begins at `address`, or NULL if no function is known there.
 * `section` is as for cairn_object_code. Names are known only after cairn_object_next_section has
 * found a section.
 */
const char *object_symbol(const cairn_object *object, uint32_t section, uint64_t address);

#endif
