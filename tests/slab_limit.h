/*
 * tests/slab_limit.h - code memory that can be used up.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_SLAB_LIMIT_H
#define TESTS_SLAB_LIMIT_H

#include "code/state.h"
#include "runtime/runtime.h"

/* Limits the memory for code, so that it can be used up. */
static inline void support_limit_slabs(cairn_runtime *runtime, uint32_t limit)
{
    runtime->space->slab_limit = limit;
}

#endif
