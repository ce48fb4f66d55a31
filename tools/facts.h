/*
 * tools/facts.h - what an object's sections say about addresses of its code.
 *
 * All sections that exist are read once, into tables by address. Addresses are those of the layout
 * (tools/layout.h).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_FACTS_H
#define TOOLS_FACTS_H

#include "tools/layout.h"
#include "tools/schema.h"

#include <cairn/block_table.h>
#include <cairn/fault_table.h>
#include <cairn/pc_table.h>
#include <cairn/table.h>

/* A function that was compiled with -fexperimental-sanitize-metadata. */
struct covered_function {
    uint64_t address;
    uint32_t size;
    uint32_t features;
    uint32_t stack_argument_bytes;
};

/* Bytes that tables point into, or that are to be given back. */
struct copy_list {
    uint8_t **copies;
    size_t count;
    size_t capacity;
};

/* A table is NULL where the object has no such section. */
struct facts {
    const struct input *input;
    struct layout layout;
    cairn_block_table *blocks;
    cairn_table *records;
    cairn_fault_table *faults;
    uint32_t *handlers; /* numbers of the faults' entries, by where their handlers are */
    cairn_pc_table *entries;
    bool has_sanitizer_metadata;
    struct covered_function *covered; /* by address */
    size_t covered_count;
    size_t covered_capacity;
    uint64_t *atomics; /* in order */
    size_t atomic_count;
    size_t atomic_capacity;
    struct copy_list copies; /* that `entries` points into */
};

/* Reads everything. False: something was no good, and complained of; all else is there. To be
 * released in any case. */
bool facts_read(const struct input *input, const struct wanted_sections *wanted,
                struct facts *facts);
void facts_release(struct facts *facts);

/* Whether anything but functions' names can be known. */
bool facts_has_metadata(const struct facts *facts);

/* The records at `address`: the first, and how many follow one another. */
uint32_t facts_find_records(const struct facts *facts, uint64_t address,
                            struct cairn_record *first);

/* The record of the patch point whose call returns to `address`: false if none does, and for
 * statepoints, whose records are at the return address. */
bool facts_find_call(const struct facts *facts, uint64_t address, struct cairn_record *record);

/* The frame of the function that `address` is in; false if it is not known. `function` is the
 * symbol table's, or NULL. */
bool facts_find_frame(const struct facts *facts, uint64_t address,
                      const struct cairn_object_function *function, uint64_t *stack_size);

/* The first of the faults whose handler is at `address`, by number among the handlers: false if
 * there is none. facts_handled gives the fault of a number, and false if its handler is elsewhere.
 */
bool facts_find_handled(const struct facts *facts, uint64_t address, uint32_t *number);
bool facts_handled(const struct facts *facts, uint64_t address, uint32_t number,
                   struct cairn_fault_entry *fault);

/* NULL: `address` is in no covered function. */
const struct covered_function *facts_find_covered(const struct facts *facts, uint64_t address);

bool facts_is_atomic(const struct facts *facts, uint64_t address);

#endif
