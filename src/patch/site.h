/*
 * patch/site.h - the sites of one module.
 *
 * A site is made while its module's code is still writable at its run-time address, armed there,
 * and changed afterwards only through code/space.h.
 *
 * What must stay true:
 *  - `word_base` holds the bytes of the patch word that never change, with zeros where the
 *    instruction is; so a new word is computed without reading the old one, and concurrent
 *    patchers of one site can only replace each other's word, never mix them. Where the word
 *    reaches into another site's region (`shares_word`), that does not hold, and the instruction
 *    is exchanged within the word that is there.
 *  - Everything but `form`, the bits and numbers of changes, and the list of veneers stays the
 *    same once the table has been made.
 *  - While `form` is SITE_FORM_WRITTEN, no live change is made. To and from this, and to and from
 *    SITE_FORM_BRANCH, it changes only under the host's promise of quiescence, which includes that
 *    nobody else is changing the site.
 *  - `form` is SITE_FORM_CACHE exactly while the site has an inline cache; only the cache changes
 *    such a site. It changes with the lock of the set of caches held.
 *  - `settled` is what the instruction is to be if all changes that are being made fail.
 *    `latest`, `highest`, `superseded` and `undone` say which changes these are (patch/commit.c).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PATCH_SITE_H
#define PATCH_SITE_H

#include "arch/arch.h"
#include "base/memory.h"
#include "code/space.h"

#include <cairn/declaration.h>
#include <cairn/patch.h>
#include <cairn/table.h>
#include <stdatomic.h>

struct functions;
struct ic_set;
struct site_veneer;

/* What the region holds. */
enum site_form {
    SITE_FORM_INITIAL, /* what it held when the table was made */
    SITE_FORM_BRANCH,  /* a branch of Cairn's, in a site that is not live */
    SITE_FORM_WRITTEN, /* the host's bytes */
    SITE_FORM_CACHE    /* a branch to an inline cache */
};

struct cairn_site {
    /* What a live change to a near target reads and writes comes first: one cache line. */
    struct site_table *table;
    uint64_t address; /* of the region */
    uint64_t word_base;
    _Atomic uint64_t settled; /* bits of the instruction; of a live site */
    union {
        _Atomic uint64_t noted_bits; /* live: the instruction, for forked children; patch/fork.c */
        char *reason;                /* not live: why it is not, or NULL */
    };
    _Atomic uint32_t latest;
    _Atomic uint32_t undone;
    _Atomic uint32_t superseded;
    _Atomic uint32_t highest;
    uint32_t instruction_offset;
    uint8_t instruction_length; /* 0: there is no room for a branch */
    uint8_t word_shift;         /* of the instruction in the patch word, in bits */
    _Atomic uint8_t form;       /* enum site_form */
    bool live;
    bool shares_word;
    bool saves_toc;         /* around the instruction, where the architecture needs it for a call:
                               in place if the site is live, else to be put there with the branch */
    bool keeps_original;    /* a live shadow whose word holds LLVM's instruction at first */
    bool initial_direct;    /* the initial branch goes to a place in code, not a function pointer */
    uint8_t initial_branch; /* enum arch_branch, of a live site that keeps no original */
    uint8_t kind;           /* enum cairn_record_kind */
    uint32_t byte_count;    /* of the region */
    _Atomic(struct site_veneer *) veneers; /* newest first; see patch/veneers.h */
    union {
        uint64_t target; /* of the initial branch */
        uint64_t bits;   /* of LLVM's instruction, if it is kept */
    } initial;
    uint32_t limit;        /* bytes that may be written: to the next record or the function's end */
    uint32_t record;       /* of the table */
    uint32_t bytes_offset; /* of the region's copies, in the table's */
    /* Bytes from the region's start that a branch takes the place of; beyond `limit` if the last
     * instruction goes on beyond it. */
    uint32_t replaced_bytes;
    uint32_t return_offset; /* of a call, from the region's start; 0: none is known */
    struct cairn_ic *ic;    /* its inline cache, or NULL; under the set's lock */
};

struct site_table {
    struct cairn_allocator allocator;
    const struct cairn_arch *arch;
    struct code_space *space;
    struct code_block *block;
    struct ic_set *ics; /* of the runtime */
    const cairn_table *records;
    const struct functions *functions; /* NULL: none are known besides those with records */
    cairn_site *sites;                 /* by record, so by address */
    uint32_t count;
    uint32_t capacity;
    /* The regions as LLVM emitted them, and as they were when arming was done. */
    uint8_t *original_bytes;
    uint8_t *initial_bytes;
    size_t bytes_used; /* of each copy */
    size_t bytes_capacity;
    uint64_t regions_end;    /* of the sites made so far */
    uint64_t alias_distance; /* from an address to where it is written; 0 in Single mode */
    _Atomic bool published;
    _Atomic bool retired;
};

/*
 * Makes and arms the sites of all declared records. The block's code must still be writable at
 * its run-time address. A site that cannot be armed is made all the same and says why. `*sites`
 * is set only on success. MEMORY, FULL, SYSTEM.
 */
enum cairn_status site_table_create(struct site_table **sites, cairn_table *records,
                                    const struct functions *functions, struct code_block *block,
                                    const cairn_declarations *declarations,
                                    const struct cairn_allocator *allocator,
                                    struct cairn_error *error);
/* NULL is allowed. */
void site_table_destroy(struct site_table *sites);

/* From now on only quiescent changes of whole regions; from now on none at all. */
void site_table_publish(struct site_table *sites);
void site_table_retire(struct site_table *sites);

uint32_t site_table_count(const struct site_table *sites);
cairn_site *site_table_at(const struct site_table *sites, uint32_t index);
/* Number of the first site whose record is this one or a later one; of all sites if there is none.
 */
uint32_t site_table_from(const struct site_table *sites, uint32_t record);
/* The site of a record, or NULL. */
cairn_site *site_table_find(const struct site_table *sites, uint32_t record);

/* Before a fork: notes what all live words are, and in a child writes it into the copy of the
 * module's code. Async-signal-safe. */
void site_table_note_words(struct site_table *sites);
void site_table_write_words(struct site_table *sites);

/* Whether a call at one of the sites, to return to `return_address`, goes through a framed veneer
 * whose own call returns to `pc`. Lock-free and async-signal-safe. */
bool site_table_calls_through(const struct site_table *sites, uint64_t return_address, uint64_t pc);

/* ---- Within src/patch ---- */

static inline uint64_t site_id(const cairn_site *site)
{
    return cairn_record_id((struct cairn_record){site->table->records, site->record});
}

#endif
