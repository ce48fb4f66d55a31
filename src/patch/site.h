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
 *  - `call_veneer` and `jump_veneer`, once set, stay the same until the module goes. A call
 *    veneer's slot only ever holds targets of calls, a jump veneer's only targets of jumps: a
 *    thread that has executed the call but not yet the veneer goes where some call went.
 *  - Fields without _Atomic do not change once the table has been made.
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

struct site_veneer {
    struct code_veneer code;
    struct site_veneer *next; /* of all veneers of the table */
};

/* What the region holds. */
enum site_form {
    SITE_FORM_INITIAL, /* what it held when the table was made */
    SITE_FORM_BRANCH,  /* a branch of Cairn's */
    SITE_FORM_WRITTEN  /* the host's bytes */
};

struct cairn_site {
    struct site_table *table;
    uint64_t address;      /* of the region */
    uint32_t byte_count;   /* of the region */
    uint32_t limit;        /* bytes that may be written: up to the next record; 0: none */
    uint32_t record;       /* of the table */
    uint32_t bytes_offset; /* of the region's copies, in the table's */
    /* Bytes from the region's start that a branch takes the place of; beyond `limit` if the last
     * instruction goes on beyond it. */
    uint32_t replaced_bytes;
    uint32_t instruction_offset;
    uint8_t instruction_length; /* 0: there is no room for a branch */
    uint8_t return_offset;      /* of a call, from the region's start; 0: none is known */
    uint8_t word_shift;         /* of the instruction in the patch word, in bits */
    uint8_t kind;               /* enum cairn_record_kind */
    uint8_t initial_branch;     /* enum arch_branch, of a live site that keeps no original */
    bool live;
    bool keeps_original; /* a live shadow whose word holds LLVM's instruction at first */
    bool shares_word;
    _Atomic uint8_t form; /* enum site_form */
    uint64_t word_base;
    uint64_t initial_bits; /* of the instruction */
    uint64_t initial_target;
    void *alias; /* of the patch word; NULL in Single mode */
    _Atomic(struct site_veneer *) call_veneer;
    _Atomic(struct site_veneer *) jump_veneer;
    char *reason; /* why it is not live; NULL if it is */
};

struct site_table {
    struct cairn_allocator allocator;
    const struct cairn_arch *arch;
    struct code_space *space;
    struct code_block *block;
    const cairn_table *records;
    cairn_site *sites; /* by record, so by address */
    uint32_t count;
    uint32_t capacity;
    /* The regions as LLVM emitted them, and as they were when arming was done. */
    uint8_t *original_bytes;
    uint8_t *initial_bytes;
    size_t bytes_used; /* of each copy */
    size_t bytes_capacity;
    _Atomic(struct site_veneer *) veneers;
    _Atomic bool published;
    _Atomic bool retired;
};

/*
 * Makes and arms the sites of all declared records. The block's code must still be writable at
 * its run-time address. A site that cannot be armed is made all the same and says why. `*sites`
 * is set only on success. MEMORY, FULL, SYSTEM.
 */
enum cairn_status site_table_create(struct site_table **sites, cairn_table *records,
                                    struct code_block *block,
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
/* The site of a record, or NULL. */
cairn_site *site_table_find(const struct site_table *sites, uint32_t record);

/* ---- Within src/patch ---- */

/* Where a branch of the site lies. */
static inline uint64_t site_instruction_address(const cairn_site *site)
{
    return site->address + site->instruction_offset;
}

static inline uint64_t site_id(const cairn_site *site)
{
    return cairn_record_id((struct cairn_record){site->table->records, site->record});
}

/* Where its patch word lies. */
static inline uint64_t site_word_address(const cairn_site *site)
{
    return site_instruction_address(site) & ~(uint64_t)(site->table->arch->word_bytes - 1);
}

#endif
