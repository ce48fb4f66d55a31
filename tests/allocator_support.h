/*
 * An allocator that counts, and that fails when a test wants it to.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_ALLOCATOR_SUPPORT_H
#define TESTS_ALLOCATOR_SUPPORT_H

#include <cairn/allocator.h>
#include <stddef.h>

/* Counts what is allocated, and fails allocation number `fail_at` (from 1; 0: none). */
struct support_allocator {
    _Atomic size_t calls;
    _Atomic size_t outstanding_bytes;
    size_t fail_at;
};
struct cairn_allocator support_counting(struct support_allocator *allocator);

#endif
