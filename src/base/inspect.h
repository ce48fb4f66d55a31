/*
 * base/inspect.h - the descriptor of a runtime, for readers in other processes (cairn inspect).
 *
 * Each runtime has one page that the list of the process's mappings shows by its name
 * (INSPECT_MAPPING). The page has the address of the runtime, and a table of fields: where in each
 * structure a member is. So a reader of the same version does not depend on the layout of the
 * structures in its own build. Versions differ if the meaning of a field, or an enumeration below,
 * does.
 *
 * Guarantees for readers, who stop nothing and take no lock:
 *  (A) `magic` is written last. A page without it is not complete yet.
 *  (B) While modules are added to lists, moved or removed, `changes[INSPECT_MODULES]` is odd, and
 *      it differs before and after. The same holds for the list of inline caches. A module is
 *      removed from its list before it is freed, and so is a cache. So if both numbers are even and
 *      the same before and after a reader has read the lists, everything in them was valid
 *      meanwhile.
 *  (C) The page is private memory: a forked child has its own.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BASE_INSPECT_H
#define BASE_INSPECT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INSPECT_FILE "cairn-runtime"
#define INSPECT_MAPPING "/memfd:" INSPECT_FILE
#define INSPECT_MAGIC "Cairn's runtime" /* 16 bytes with its terminating zero */
enum { INSPECT_VERSION = 1, INSPECT_BYTE_ORDER = 0x01020304 };

/* A member of a structure, as an unsigned number; or, with `bytes` 0, a constant. */
struct inspect_field {
    uint32_t offset; /* from the start of the structure; or the constant */
    uint8_t bytes;   /* 1, 2, 4 or 8 */
    uint8_t shift;   /* of a bit field: position of its lowest bit, */
    uint8_t bits;    /* and their number; 0: all bits of the member */
    uint8_t is_set;  /* 0 for members that nothing in the process has yet */
};

enum inspect_name {
    /* struct cairn_runtime */
    INSPECT_RUNTIME_MODULES,
    INSPECT_RUNTIME_RETIRED,
    INSPECT_RUNTIME_PUBLISHED_COUNT,
    INSPECT_RUNTIME_RETIRED_COUNT,
    INSPECT_RUNTIME_TABLE_BYTES,
    INSPECT_RUNTIME_CACHES, /* the oldest cache */
    /* struct cairn_module */
    INSPECT_MODULE_RUNTIME,
    INSPECT_MODULE_NUMBER,
    INSPECT_MODULE_TABLE,
    INSPECT_MODULE_SITES,
    INSPECT_MODULE_NEXT,
    INSPECT_MODULE_PREVIOUS,
    INSPECT_MODULE_STATE, /* enum inspect_module_state */
    INSPECT_MODULE_NAME,  /* a string in the structure */
    /* struct cairn_table */
    INSPECT_TABLE_RECORD_COUNT,
    INSPECT_TABLE_FUNCTION_COUNT,
    INSPECT_TABLE_IDS_LOW,
    INSPECT_TABLE_IDS_HIGH,
    INSPECT_TABLE_ID_HIGH,
    /* struct code_space */
    INSPECT_SPACE_SLABS,
    INSPECT_SPACE_STUB_COUNT,
    INSPECT_SPACE_STUB_BYTES,
    /* struct code_slab; PARTS are three, in the order of enum page_use */
    INSPECT_SLAB_NEXT,
    INSPECT_SLAB_BASE,
    INSPECT_SLAB_SIZE,
    INSPECT_SLAB_PAGE_SIZE,
    INSPECT_SLAB_PAGE_COUNT,
    INSPECT_SLAB_STATES, /* one byte a page: enum inspect_page_state */
    INSPECT_SLAB_PARTS,  /* addresses of bit maps of free units of INSPECT_PART_BYTES */
    INSPECT_PART_BYTES = INSPECT_SLAB_PARTS + 3,
    /* struct code_block, in which a module is at BLOCK_USER; and its spans */
    INSPECT_BLOCK_USER,
    INSPECT_BLOCK_SLAB,
    INSPECT_BLOCK_SPAN_COUNT,
    INSPECT_BLOCK_SPANS, /* the first spans, INSPECT_FIRST_SPANS of them, in the structure */
    INSPECT_FIRST_SPANS,
    INSPECT_BLOCK_LISTS,
    INSPECT_LISTS_SPANS, /* address of the other spans */
    INSPECT_SPAN_STRIDE,
    INSPECT_SPAN_UNIT, /* from the slab's base, in units of INSPECT_SPAN_UNIT_BYTES */
    INSPECT_SPAN_UNIT_BYTES,
    INSPECT_SPAN_USE, /* enum inspect_use */
    INSPECT_SPAN_USED,
    /* struct site_table, struct cairn_site, struct site_veneer */
    INSPECT_SITES_COUNT,
    INSPECT_SITES_ARRAY,
    INSPECT_SITE_STRIDE,
    INSPECT_SITE_ADDRESS,
    INSPECT_SITE_BYTE_COUNT,
    INSPECT_SITE_INSTRUCTION_OFFSET,
    INSPECT_SITE_INSTRUCTION_LENGTH,
    INSPECT_SITE_WORD_SHIFT,
    INSPECT_SITE_LIVE,
    INSPECT_SITE_KIND, /* enum cairn_record_kind */
    INSPECT_SITE_RECORD,
    INSPECT_SITE_KEEPS_ORIGINAL,
    INSPECT_SITE_HAS_INLINE_SPACE,
    INSPECT_SITE_INITIAL_BITS,
    INSPECT_SITE_VENEERS,
    INSPECT_VENEER_NEXT,
    INSPECT_VENEER_BITS,
    INSPECT_VENEER_SLOT, /* address of the slot */
    /* struct cairn_ic, set when the first one is created */
    INSPECT_CACHE_SITE,
    INSPECT_CACHE_NEXT,
    INSPECT_CACHE_PREVIOUS,
    INSPECT_CACHE_CASE_COUNT,
    INSPECT_CACHE_CASE_LIMIT,
    INSPECT_CACHE_IS_MEGAMORPHIC,
    INSPECT_CACHE_IS_INLINE,
    INSPECT_CACHE_COUNTS_HITS,
    INSPECT_CACHE_COUNTERS, /* a bit for each of HITS, which are 8 bytes each */
    INSPECT_CACHE_HITS,
    INSPECT_CACHE_MISSES,
    INSPECT_CACHE_STUB,
    INSPECT_STUB_CODE_BYTES,
    INSPECT_FIELD_COUNT
};

/* Values of members. The structures' own enumerations are checked against these where the fields
 * are set. */
enum inspect_module_state { INSPECT_LOADED, INSPECT_PUBLISHED, INSPECT_RETIRED };
enum inspect_use { INSPECT_CODE, INSPECT_READ_ONLY, INSPECT_DATA, INSPECT_USE_COUNT };
enum inspect_page_state {
    INSPECT_PAGE_FREE,
    INSPECT_PAGE_OPEN_CODE,
    INSPECT_PAGE_OPEN_READ_ONLY,
    INSPECT_PAGE_CODE,
    INSPECT_PAGE_READ_ONLY,
    INSPECT_PAGE_DATA,
    INSPECT_PAGE_SPARE_CODE,
    INSPECT_PAGE_SPARE_READ_ONLY,
    INSPECT_PAGE_SPARE_DATA,
    INSPECT_PAGE_LOST,
    INSPECT_PAGE_STATE_COUNT
};

/* Lists with a number of changes. */
enum inspect_list { INSPECT_MODULES, INSPECT_CACHES, INSPECT_LIST_COUNT };

/* The first five members are the same in every version. */
struct inspect_descriptor {
    char magic[16];
    uint32_t byte_order; /* INSPECT_BYTE_ORDER */
    uint32_t version;    /* INSPECT_VERSION */
    char release[32];    /* cairn_version() */
    uint32_t pointer_bytes;
    uint32_t architecture; /* enum cairn_architecture */
    uint32_t code_mode;    /* enum cairn_code_mode */
    uint32_t field_count;  /* INSPECT_FIELD_COUNT */
    uint64_t runtime;      /* address of the struct cairn_runtime */
    uint64_t space;        /* address of its struct code_space */
    _Atomic uint64_t changes[INSPECT_LIST_COUNT];
    struct inspect_field fields[INSPECT_FIELD_COUNT];
};

/* Sets a field to a member of a structure, of 1, 2, 4 or 8 bytes, or to a constant. */
#define INSPECT_MEMBER(structure, member)                                                          \
    ((struct inspect_field){.offset = (uint32_t)offsetof(structure, member),                       \
                            .bytes = (uint8_t)sizeof(((structure *)NULL)->member),                 \
                            .is_set = 1})
#define INSPECT_PLACE(structure, member)                                                           \
    ((struct inspect_field){.offset = (uint32_t)offsetof(structure, member), .is_set = 1})
#define INSPECT_CONSTANT(value) ((struct inspect_field){.offset = (uint32_t)(value), .is_set = 1})

/* Returns the field of a bit field of a 4-byte word at `offset`, in which all its bits are 1 and
 * all others 0. */
static inline struct inspect_field inspect_bits(size_t offset, const void *word)
{
    uint32_t mask;
    memcpy(&mask, word, sizeof mask);
    return (struct inspect_field){.offset = (uint32_t)offset,
                                  .bytes = sizeof mask,
                                  .shift = (uint8_t)__builtin_ctz(mask),
                                  .bits = (uint8_t)__builtin_popcount(mask),
                                  .is_set = 1};
}

/* Begin and end a change of a list (B). Called with the list's lock held. `descriptor` may be
 * NULL. */
static inline void inspect_begin(struct inspect_descriptor *descriptor, enum inspect_list list)
{
    if (descriptor == NULL)
        return;
    _Atomic uint64_t *changes = &descriptor->changes[list];
    atomic_store_explicit(changes, atomic_load_explicit(changes, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

static inline void inspect_end(struct inspect_descriptor *descriptor, enum inspect_list list)
{
    if (descriptor == NULL)
        return;
    _Atomic uint64_t *changes = &descriptor->changes[list];
    atomic_store_explicit(changes, atomic_load_explicit(changes, memory_order_relaxed) + 1,
                          memory_order_release);
}

#endif
