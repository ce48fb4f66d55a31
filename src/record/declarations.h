/*
 * record/declarations.h - a set of declarations, and which of them belongs to which record of a
 * module.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECORD_DECLARATIONS_H
#define RECORD_DECLARATIONS_H

#include "base/adapter.h"
#include "base/hash_set.h"

#include <cairn/declaration.h>
#include <cairn/table.h>

struct declaration_entry {
    uint64_t id;
    /* A separate block, so that it does not move when the set grows. */
    struct cairn_declaration *declaration;
    uint8_t kind;  /* its enum cairn_record_kind */
    bool has_site; /* whether its records have sites, unless it is undeclared */
};

struct cairn_declarations {
    struct cairn_allocator allocator;
    struct declaration_entry *entries; /* in the order in which they were added */
    uint32_t count;
    size_t capacity;
    struct hash_set ids; /* of the entries */
    /* By record of a table: the number of its entry plus 1, or 0; NULL if there are no entries. */
    uint32_t *record_numbers;
    uint32_t record_count;
    uint32_t kinds;  /* of the records' entries: the sum of 1 << kind, each once */
    bool have_sites; /* whether any of these entries has a site */
};

/* Finds the entry of each record of the table, once, and notes its number. Then frees what only
 * cairn_declarations_add and _find need, so neither may be called afterwards. NULL is a set without
 * declarations. Errors: MEMORY; CORRUPT (a patch point or stack map has another number of locations
 * than its declaration). */
CAIRN_MUST_CHECK enum cairn_status declarations_bind(cairn_declarations *declarations,
                                                     const cairn_table *table,
                                                     struct cairn_error *error);

/* Returns the index of the first live value among the locations of a patch point or stack map. With
 * anyregcc, the locations of the result and of the arguments precede the live values. */
static inline uint32_t declaration_first_live_value(const struct cairn_declaration *declaration)
{
    bool is_anyreg = declaration->kind == CAIRN_RECORD_PATCHPOINT &&
                     declaration->calling_convention == CAIRN_CALLING_CONVENTION_ANYREG;
    return is_anyreg ? (declaration->result.kind != CAIRN_TYPE_VOID) + declaration->argument_count
                     : 0;
}

/* Returns the entry of record `record` of the table that the set was bound to; NULL if its ID has
 * no declaration, or if there is no set. Takes O(1) time, without hashing. Async-signal-safe. */
static inline const struct declaration_entry *declarations_of_record(
    const cairn_declarations *declarations, uint32_t record)
{
    if (declarations == NULL || declarations->record_numbers == NULL ||
        declarations->record_numbers[record] == 0)
        return NULL;
    const struct declaration_entry *entry =
        &declarations->entries[declarations->record_numbers[record] - 1];
    return entry->kind == CAIRN_RECORD_UNDECLARED ? NULL : entry;
}

/* Returns "stackmap", "patchpoint", "statepoint" or "undeclared". */
static inline const char *record_kind_name(enum cairn_record_kind kind)
{
    static const char *const names[] = {
        [CAIRN_RECORD_UNDECLARED] = "undeclared",
        [CAIRN_RECORD_STACKMAP] = "stackmap",
        [CAIRN_RECORD_PATCHPOINT] = "patchpoint",
        [CAIRN_RECORD_STATEPOINT] = "statepoint",
    };
    _Static_assert(sizeof names / sizeof *names == CAIRN_RECORD_STATEPOINT + 1,
                   "one name for each kind");
    return (unsigned)kind > CAIRN_RECORD_STATEPOINT ? "unknown" : names[kind];
}

/* Checks that these are the result types of the function that contains the site. Only if they are
 * known: if a record was copied into several functions, it does not identify the frame's function.
 * NULL is no declaration. Errors: ARGUMENT. */
CAIRN_MUST_CHECK enum cairn_status declaration_check_results(
    const struct cairn_declaration *declaration, const struct cairn_results *given,
    struct cairn_error *error);

/* Returns the bytes of the notes that declarations_bind makes. */
size_t declarations_bound_bytes(const cairn_declarations *declarations);

#endif
