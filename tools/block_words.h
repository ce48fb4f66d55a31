/*
 * tools/block_words.h - what a basic block is and how it ends, in words.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_BLOCK_WORDS_H
#define TOOLS_BLOCK_WORDS_H

#include "tools/output.h"

#include <stdint.h>

/* "landing pad, returns": the flags (enum cairn_bbmap_flag) of a block, behind `prefix`; nothing at
 * all where there are none. A tail call is no return as well, although LLVM flags it so. */
void write_block_words(struct output *output, const char *prefix, uint8_t flags);

#endif
