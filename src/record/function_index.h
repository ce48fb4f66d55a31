/*
 * record/function_index.h - from a PC to the function of a module that contains it.
 *
 * What is known of functions is in three tables: of records, of symbols and of unwind rules. When a
 * module is published, their answers are put together: each range of PCs with the same answer is
 * noted once. Most modules have one function, which is in the index itself, so that a lookup reads
 * nothing else.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RECORD_FUNCTION_INDEX_H
#define RECORD_FUNCTION_INDEX_H

#include <cairn/table.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The PCs from `begin` to `begin + size`, for which lookups find one function. Offsets are from the
 * index's base; that of the function's address is modulo 2^32, because it may be less. */
struct function_range {
    uint32_t begin;
    uint32_t size; /* in bytes, at least 1 */
    uint32_t function;
    uint32_t first_record;
    uint32_t record_count;
    uint32_t stack_size; /* or RANGE_STACK_DYNAMIC */
    const char *name;
};

#define RANGE_STACK_DYNAMIC UINT32_MAX

/* Values of `record_count` with a special meaning. */
enum { FUNCTIONS_SEARCHED = UINT16_MAX - 1, FUNCTIONS_LISTED = UINT16_MAX };

/* Invariants: the ranges of a list ascend and do not overlap. The records of an only function are
 * the first ones of the table. */
struct function_index {
    void *owner;   /* the module */
    uint64_t base; /* address of the first range */
    union {
        const char *name;                    /* of the only function */
        const struct function_range *ranges; /* of a list */
    };
    union {
        uint32_t size;  /* of the only function; 0 if there is no function */
        uint32_t count; /* of a list */
    };
    /* Of the only function; or FUNCTIONS_LISTED; or FUNCTIONS_SEARCHED if the ranges do not have
     * the values of some function, so that the module's tables must be searched. */
    uint16_t record_count;
    uint16_t stack_size; /* of the only function; or STACK_SIZE_DYNAMIC */
};

/* Fills in the index, without the owner. Returns whether it needs the ranges: they must be valid as
 * long as the index, and are not used otherwise. */
bool function_index_init(struct function_index *index, uint64_t base,
                         const struct function_range *ranges, size_t count);

/* Finds the function of a PC, unless the index is FUNCTIONS_SEARCHED. Lock-free,
 * async-signal-safe. */
bool function_index_find(const struct function_index *index, uint64_t pc,
                         struct cairn_function *function);

#endif
