/*
 * Allocators: one that counts allocations and fails when a test asks for it, and one that
 * overwrites what is freed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_ALLOCATOR_SUPPORT_H
#define TESTS_ALLOCATOR_SUPPORT_H

#include <cairn/allocator.h>
#include <stddef.h>

/* Counts allocations, and fails number `fail_at` (counted from 1; 0: no failure). */
struct support_allocator {
    _Atomic size_t calls;
    _Atomic size_t outstanding_bytes;
    size_t fail_at;
};
struct cairn_allocator support_counting(struct support_allocator *allocator);

/* Overwrites memory before it is freed, and moves a block whenever it is resized. */
struct cairn_allocator support_poisoning(void);

#endif
