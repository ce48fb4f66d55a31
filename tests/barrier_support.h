/*
 * Barriers that fail when a test wants it: the program's own `syscall` stands before the C
 * library's, so that this works for each thread by itself, and under emulators.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_BARRIER_SUPPORT_H
#define TESTS_BARRIER_SUPPORT_H

#include <stdbool.h>

/* What this thread's barriers do; all zero: what the kernel does. */
struct support_barrier {
    /* Called in place of the barrier; returns whether the barrier succeeds. NULL: the kernel's. */
    bool (*instead)(void *user);
    void *user;
};

void support_set_barrier(struct support_barrier barrier);

#endif
