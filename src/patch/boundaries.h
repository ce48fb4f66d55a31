/*
 * patch/boundaries.h - where instructions begin in code that LLVM emitted.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PATCH_BOUNDARIES_H
#define PATCH_BOUNDARIES_H

#include "arch/arch.h"

/* Length of the instruction that `bytes` begin with; 0 if they are none, or if it goes on beyond
 * `size`. */
size_t boundaries_instruction_length(const struct cairn_arch *arch, const uint8_t *bytes,
                                     size_t size);

/* The first instruction boundary at or behind `offset`, counted from the first byte; 0 if the
 * bytes cannot be followed that far. */
size_t boundaries_next(const struct cairn_arch *arch, const uint8_t *bytes, size_t size,
                       size_t offset);

/* Whether a thread may stand at the instruction that `bytes` begin with when it has done a part of
 * it, and is to do the rest when it goes on: a string instruction, a gather. */
bool boundaries_may_stop_inside(const struct cairn_arch *arch, const uint8_t *bytes, size_t size);

#endif
