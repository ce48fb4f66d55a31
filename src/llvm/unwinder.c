/*
 * Asks the system's unwinder whether it knows a table: whether it finds, by the PC of the table's
 * first function, an entry in the table.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/unwinder.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* What the unwinder finds out about a function, as libgcc and LLVM's libunwind define it. */
struct found_function {
    void *text_base;
    void *data_base;
    void *function;
};

/* Weak, because a process may have another unwinder, with which LLVM then registers nothing.
 * NOLINTBEGIN(bugprone-reserved-identifier,cert-*) */
extern const void *_Unwind_Find_FDE(void *pc, struct found_function *found) __attribute__((weak));
extern void __deregister_frame(void *table) __attribute__((weak));
/* NOLINTEND(bugprone-reserved-identifier,cert-*) */

static bool finds(uintptr_t pc, const uint8_t *table, size_t size)
{
    struct found_function found;
    uintptr_t entry = (uintptr_t)_Unwind_Find_FDE((void *)pc, &found);
    return entry >= (uintptr_t)table && entry - (uintptr_t)table < size;
}

/* Finds the first entry of a function. An entry begins with its length, in 4 bytes, and the
 * distance to its common information, in 4 bytes; 0 in common information itself. Source: Linux
 * Standard Base Core Specification, "Exception Frames". Returns NULL if no entry is found, or
 * lengths of 8 bytes. */
static const uint8_t *first_function(const uint8_t *table, size_t size)
{
    enum { HEADER = 8, ADDRESS = 8 };
    size_t at = 0;
    while (size - at >= HEADER + ADDRESS) {
        uint32_t length;
        uint32_t distance;
        memcpy(&length, table + at, sizeof length);
        memcpy(&distance, table + at + sizeof length, sizeof distance);
        if (length == 0 || length > size - at - sizeof length)
            return NULL;
        if (distance != 0)
            return table + at;
        at += sizeof length + length;
    }
    return NULL;
}

/* The first address of an entry may be encoded in 4 or 8 bytes, relative to its own place, or
 * absolute. An address that is read in a wrong way finds no entry of the table. */
static bool is_registered(const uint8_t *table, size_t size)
{
    const uint8_t *entry = first_function(table, size);
    if (entry == NULL || _Unwind_Find_FDE == NULL)
        return false;
    int32_t near;
    int64_t far;
    const uint8_t *place = entry + 8;
    memcpy(&near, place, sizeof near);
    memcpy(&far, place, sizeof far);
    uintptr_t base = (uintptr_t)place;
    return finds(base + (uintptr_t)near, table, size) ||
           finds(base + (uintptr_t)far, table, size) || finds((uintptr_t)far, table, size);
}

void unwinder_forget(void *table, size_t size)
{
    if (table != NULL && __deregister_frame != NULL && is_registered(table, size))
        __deregister_frame(table);
}
