/*
 * site/site.h - the sites of one module.
 *
 * A site is made and armed while its module's code is still writable at its run-time address. After
 * that it is changed only through code/space.h.
 *
 * Invariants:
 *  - `word_base` holds the bytes of the patch word that never change, with zeros in the
 *    instruction's place. So a new word is computed without a read of the old one, and threads that
 *    patch one site at the same time can replace each other's word, but never mix two words. This
 *    does not hold where the word overlaps another site's region (`shares_word`). There the
 *    instruction is exchanged within the current word.
 *  - Once the table has been made, only `form`, `noted_bits`, the list of veneers, and what belongs
 *    to inline caches and assumptions change.
 *  - Changes to and from SITE_FORM_BRANCH require the host's guarantee of quiescence, and that no
 *    other thread is changing the site.
 *  - `form` is SITE_FORM_CACHE exactly while the site has an inline cache. Only the cache changes
 *    such a site. `form` changes to and from it with the lock of the set of caches held. The host
 *    guarantees that no change of the site is in progress when it gets a cache.
 *  - In a site with `has_inline_space`, a no-op is a jump to the end of the region. So if the site
 *    never was a call (`was_called`), no thread is between the patch word and the end of the
 * region, and no return address is there, until an inline cache uses these bytes (site/inline.h).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SITE_SITE_H
#define SITE_SITE_H

#include "arch/arch.h"
#include "base/adapter.h"
#include "base/memory.h"
#include "code/space.h"

#include <cairn/declaration.h>
#include <cairn/patch.h>
#include <cairn/table.h>
#include <stdatomic.h>

struct functions;
struct inspect_field;
struct cache_set;
struct registration;
struct site_veneer;
struct site_inline;

/* The contents of a region. */
enum site_form {
    SITE_FORM_INITIAL, /* its contents when the table was made */
    SITE_FORM_BRANCH,  /* a branch of Cairn's, in a site that is not live */
    SITE_FORM_CACHE    /* a branch to an inline cache */
};

struct cairn_site {
    /* What a live change uses. */
    struct site_table *table;
    uint64_t word; /* of a live site: address of the patch word in the writable view */
    uint64_t word_base;
    union {
        _Atomic uint64_t noted_bits; /* live: the instruction, for forked children (site/fork.c) */
        char *reason;                /* not live: the reason, or NULL */
    };
    _Atomic(struct site_veneer *) veneers; /* newest first (site/veneers.h) */
    uint64_t address;                      /* of the region */
    uint32_t instruction_offset;
    uint8_t instruction_length; /* 0 if there is no space for a branch */
    uint8_t word_shift;         /* bit offset of the instruction in the patch word */
    _Atomic uint8_t form;       /* enum site_form */
    uint8_t kind;               /* enum cairn_record_kind */
    bool live;
    bool has_inline_space; /* whether an inline cache may write the bytes after the patch word */
    bool shares_word : 1;
    bool saves_toc : 1; /* whether a call has a TOC save and reload around it, if the architecture
                         * needs them: in place if the site is live, otherwise to be written with
                         * the branch */
    /* The rest. */
    bool initial_direct : 1; /* whether the initial branch has a place in code, not a function
                              * pointer, as its target */
    bool keeps_original;     /* whether the word of this live shadow holds LLVM's instruction
                              * initially */
    uint8_t initial_branch;  /* enum cairn_site_state, of a live site without `keeps_original` */
    /* Whether an assumption of the site is broken, so that threads leave here for good; with the
     * runtime's lock held. */
    bool is_broken;
    _Atomic bool was_called;   /* whether the word of a site with inline space has ever been a
                                * call */
    _Atomic bool holds_inline; /* whether these bytes are a cache's, or may still be in use */
    union {
        uint64_t target; /* target of the initial branch */
        uint64_t bits;   /* LLVM's instruction, if `keeps_original` */
    } initial;
    uint32_t byte_count;   /* size of the region */
    uint32_t limit;        /* bytes that may be written: up to the next record or the function's
                            * end */
    uint32_t record;       /* index in the table of records */
    uint32_t bytes_offset; /* offset of the region's copies in the table's */
    /* Bytes from the region's start that a branch replaces. More than `limit` if the last
     * instruction ends after it. */
    uint32_t replaced_bytes;
    uint32_t return_offset;      /* offset of a call's return address from the region's start; 0 if
                                  * unknown */
    struct cairn_ic *ic;         /* its inline cache, or NULL; protected by the set's lock */
    struct site_inline *inlined; /* state of these bytes, or NULL; protected by the same lock */
};

/* There may be millions of sites. */
_Static_assert(sizeof(void *) != 8 || sizeof(struct cairn_site) <= 112, "a site is small");

struct site_table {
    struct cairn_allocator allocator;
    const struct cairn_arch *arch;
    struct code_space *space;
    struct code_block *block;
    struct cache_set *ics; /* the runtime's */
    /* With assumptions, newest first; with the runtime's lock held (runtime/assumption.h). */
    struct registration *registrations;
    const cairn_table *records;
    uint32_t record_count;
    /* By record: the number of sites of earlier records, with one more at the end; NULL without
     * sites. */
    uint32_t *record_sites;
    const struct functions *functions; /* NULL if only those with records are known */
    cairn_site *sites;                 /* in order of records, and so of addresses */
    uint32_t count;
    uint32_t capacity;
    uint32_t inline_count; /* number of sites with `has_inline_space` */
    /* Copies of the regions: as LLVM emitted them, and after arming. */
    uint8_t *original_bytes;
    uint8_t *initial_bytes;
    size_t bytes_used; /* bytes used of each copy */
    size_t bytes_capacity;
    uint64_t regions_end;    /* end of the last region so far */
    uint64_t alias_distance; /* from executed to writable addresses; 0 with a single mapping */
    int write_key;           /* of the writable addresses (code/write_key.h) */
    uint64_t module_number;  /* in the runtime, for events */
    _Atomic bool published;
    _Atomic bool retired;
};

/*
 * Makes and arms the sites of all declared records. The block's code must still be writable at its
 * run-time address. A site that cannot be armed is made too, with the reason. `declarations` may be
 * NULL. `*sites` is set only on success; it is NULL if there are no sites, which all functions
 * accept. MEMORY, FULL, SYSTEM.
 */
enum cairn_status site_table_create(struct site_table **sites, cairn_table *records,
                                    const struct functions *functions, struct code_block *block,
                                    const cairn_declarations *declarations,
                                    const struct cairn_allocator *allocator,
                                    struct cairn_error *error);
void site_table_destroy(struct site_table *sites);

/* After publishing, whole regions change only under quiescence. After retiring, sites may change,
 * because threads may be in their code, but inline caches do not. */
void site_table_publish(struct site_table *sites);
void site_table_retire(struct site_table *sites);

uint32_t site_table_count(const struct site_table *sites);
cairn_site *site_table_at(const struct site_table *sites, uint32_t index);
/* Returns the index of the first site whose record is `record` or a later one; the number of sites
 * if all are of earlier records. `record` is at most the number of records. */
uint32_t site_table_from(const struct site_table *sites, uint32_t record);
/* Returns the site of a record, or NULL. */
cairn_site *site_table_find(const struct site_table *sites, uint32_t record);
/* Returns the bytes of the array by which records find their sites. */
size_t site_table_bound_bytes(const struct site_table *sites);

/* Note the instructions of all live sites before a fork, and write them into the child's copy of
 * the module's code. Async-signal-safe. */
void site_table_note_words(struct site_table *sites);
void site_table_write_words(struct site_table *sites);

/* Whether a call at one of the sites with this return address goes through a framed veneer whose
 * own call returns to `pc`. Lock-free and async-signal-safe. */
bool site_table_calls_through(const struct site_table *sites, uint64_t return_address, uint64_t pc);

/* Returns the site whose inline cache returns to this address, which is the end of its region; NULL
 * if no site ends there. Lock-free and async-signal-safe. */
const cairn_site *site_table_ending_at(const struct site_table *sites, uint64_t address);

/* Returns the site whose bytes contain an inline cache's code at this address, or NULL. Lock-free
 * and async-signal-safe. */
const cairn_site *site_table_with_inline_code(const struct site_table *sites, uint64_t address);

/* Sets the fields of sites and their veneers for readers in other processes (base/inspect.h). */
void site_table_inspect(struct inspect_field *fields);

/* Returns the ID of the site's record. */
uint64_t site_id(const cairn_site *site);

#endif
