/*
 * object/image.h - objects while they are linked: where their sections, symbols, slots and stubs
 * are.
 *
 * A link holds several objects, which become one module. Adding an object copies its bytes, finds
 * everything that may be wrong with it, and merges its symbols with those of the other objects:
 *
 *   1. sections.c     chooses the sections to load
 *   2. symbols.c      merges definitions by their names
 *   3. relocations.c  checks all relocations, and notes what they need
 *
 * Finishing the link places all objects together, with one table of slots. Only the last two steps
 * write to the module's memory:
 *
 *   4. symbols.c      finds the symbols that no object defines
 *   5. slots.c        counts the slots and stubs that are needed
 *   6. layout.c       allocates memory, and places sections, slots, stubs and common symbols
 *   7. symbols.c      calculates the address of every symbol
 *   8. slots.c, relocations.c  write the slots and stubs, and apply the relocations
 *
 * What remains of a link is the module's memory. Whoever finishes a link can read the sections and
 * symbols until it destroys the link.
 *
 * All addresses are those at which code and data will be used, as 64-bit numbers, and all memory
 * and other modules' symbols come from callbacks. So objects for any architecture can be loaded for
 * any addresses on any host, and tests compare the result with a linker's.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OBJECT_IMAGE_H
#define OBJECT_IMAGE_H

#include "arch/arch.h"
#include "arch/relocation.h"
#include "base/adapter.h"
#include "base/hash_set.h"
#include "base/memory.h"
#include "object/elf.h"

#include <cairn/module.h>
#include <string.h>

/* Memory of the module. */
struct object_memory {
    uint8_t *bytes;   /* where it is written */
    uint64_t address; /* where it is used */
};

/* What an object needs from the one that loads it. */
struct object_host {
    /* Allocates memory for a section, or for several of one kind. `name` is that of a PC section.
     * The errors are those of cairn_loader_allocate. */
    enum cairn_status (*allocate)(void *user, enum cairn_section_kind kind, const char *name,
                                  uint64_t size, uint64_t alignment, struct object_memory *memory,
                                  struct cairn_error *error);
    /* Whether a section with this name is a PC section. */
    bool (*is_pc_section)(void *user, const char *name);
    /* Finds a symbol that the objects use and do not define. Returns false if nothing defines it.
     */
    bool (*find_symbol)(void *user, const char *name, uint64_t *address);
    /* Called with the name of each symbol that is not found; NULL is allowed. */
    void (*note_undefined)(void *user, const char *name);
    void *user;
    uint64_t alignment_max; /* the largest alignment that `allocate` supports; 0: any */
};

enum { OBJECT_NOT_LOADED = -1 };

/* Invariant: `memory` is set by step 6 if the section is loaded. */
struct object_section {
    struct elf_section_view header;
    int kind;       /* an enum cairn_section_kind, or OBJECT_NOT_LOADED */
    bool is_comdat; /* in a group of which a linker keeps one copy */
    bool is_in_range;
    struct object_section *next; /* of the same range */
    uint64_t offset;             /* in the area of its kind */
    struct object_memory memory;
};

/* The loaded sections with one name that is an identifier of C. They are adjacent, so that
 * __start_NAME and __stop_NAME are their bounds. */
struct object_range {
    const char *name;
    bool has_contents; /* one of the sections is not empty */
    struct object_section *first;
    struct object_section *last;
};

/* How a symbol is defined. Of two definitions of a name, the one with the greater number is
 * used. */
enum object_definition {
    OBJECT_UNDEFINED, /* the address is 0 */
    OBJECT_WEAK,      /* the first one is used */
    OBJECT_COMMON,    /* the largest size and alignment are used */
    OBJECT_STRONG, /* there must not be another one, except in COMDAT groups: the first is used */
    OBJECT_BY_LINKER, /* none of the objects defines it; see object/symbols.h */
    OBJECT_BY_HOST
};

/* What relocations need of a symbol. */
enum object_need { OBJECT_NEEDS_SLOT = 1, OBJECT_NEEDS_BRANCH = 2, OBJECT_NEEDS_BRANCH_NO_TOC = 4 };

/* A local symbol of an object, or a global one of all objects.
 * Invariant: `image` is not NULL exactly if the definition is WEAK, COMMON or STRONG. */
struct object_symbol {
    const char *name; /* NULL: a local symbol */
    const struct object_image *image;
    enum object_definition definition;
    enum elf_visibility visibility; /* the most restrictive one of all objects */
    enum elf_symbol_type type;
    uint32_t section; /* of the image, or ELF_ABSOLUTE, or ELF_COMMON */
    uint64_t value;   /* as in struct elf_symbol */
    uint64_t size;
    uint64_t address; /* of a function: what a function pointer holds */
    uint32_t slot;    /* 1 to `slot_count`; 0: none */
    uint32_t stub;    /* 1 to `stub_count`; 0: none. A symbol with a stub has a slot */
    uint8_t other;    /* as in struct elf_symbol */
    uint8_t needs;    /* enum object_need */
    bool is_comdat;
    bool is_noted; /* as undefined */
};

/* A symbol in an object's own table. */
struct object_reference {
    uint32_t symbol; /* its number in the link */
    bool is_used;    /* by a relocation of a loaded section */
    bool is_weak;
};

/* An object of a link.
 * Invariants: `sections` has an element for each section of the file, `references` for each symbol
 * (at least one). All pointers into the file point into `bytes`. */
struct object_image {
    char *name; /* for messages; "" if it has none */
    uint8_t *bytes;
    size_t size;
    struct object_host host;
    struct elf_object elf;
    struct object_section *sections;
    struct object_reference *references;
    uint64_t names_left; /* how many more bytes of names may be compared */
};

/* Memory for all sections of one kind. */
struct object_area {
    uint64_t size;
    uint64_t alignment;
    struct object_memory memory;
};
enum { OBJECT_AREAS = CAIRN_SECTION_READ_ONLY_DATA + 1 }; /* code, data, read-only data */

/* Invariants: symbol 0 is that of relocations without a symbol. `names` has the numbers of the
 * symbols with a name, `range_names` those of the ranges. The areas hold all loaded sections of
 * their three kinds; a section of another kind has memory of its own. */
struct object_link {
    const struct cairn_arch *arch;
    const struct arch_relocation_table *relocations;
    struct cairn_allocator allocator;
    struct object_image **images;
    size_t image_count;
    size_t image_capacity;
    struct object_symbol *symbols;
    size_t symbol_count;
    size_t symbol_capacity;
    struct hash_set names;
    struct object_range *ranges;
    size_t range_count;
    size_t range_capacity;
    struct hash_set range_names;
    bool uses_table; /* a relocation refers to the base of the table of slots */
    uint32_t slot_count;
    uint32_t stub_count;
    struct object_area areas[OBJECT_AREAS]; /* by kind */
    struct object_memory slots;             /* 8 bytes each, in the read-only data */
    struct object_memory stubs;             /* `arch->veneer_bytes` each, in the code */
    /* The offsets of slots and stubs in their areas. */
    uint64_t slots_offset;
    uint64_t stubs_offset;
    uint64_t table; /* base of the table of slots, as relocations see it */
};

/* Takes `name` from the bytes of names that may be compared, and sets `*length`. Returns false if
 * there are too many of them: names in a string table may overlap, so that their total length is
 * not in proportion to the size of the file. */
static inline bool object_take_name(struct object_image *image, const char *name, size_t *length)
{
    *length = strnlen(name, image->names_left + 1);
    if (*length >= image->names_left)
        return false;
    image->names_left -= *length;
    return true;
}

#endif
