/*
 * site/boundaries.h - where instructions begin in code that LLVM emitted.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SITE_BOUNDARIES_H
#define SITE_BOUNDARIES_H

#include "arch/arch.h"

/* Returns the length of the instruction at the start of `bytes`; 0 if the bytes are not an
 * instruction, or it does not end within `size` bytes. */
size_t boundaries_instruction_length(const struct cairn_arch *arch, const uint8_t *bytes,
                                     size_t size);

/* Returns the first instruction boundary at or after `offset`, as an offset from the first byte; 0
 * if the bytes cannot be decoded that far. */
size_t boundaries_next(const struct cairn_arch *arch, const uint8_t *bytes, size_t size,
                       size_t offset);

/* Whether a thread may be interrupted when it has executed a part of the instruction at the start
 * of `bytes`, and then resumes at the same address to execute the remainder. String instructions
 * and gathers are of this kind. */
bool boundaries_may_stop_inside(const struct cairn_arch *arch, const uint8_t *bytes, size_t size);

/* Do the same for x86-64 instructions. Implemented once per build: with Zydis on x86-64 hosts, and
 * as stubs on other hosts. */
size_t x86_instruction_length(const uint8_t *bytes, size_t size);
bool x86_may_stop_inside(const uint8_t *bytes, size_t size);

#endif
