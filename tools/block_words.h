/*
 * tools/block_words.h - a text form of the flags of basic blocks.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_BLOCK_WORDS_H
#define TOOLS_BLOCK_WORDS_H

#include "tools/output.h"

#include <stdint.h>

/* Writes `prefix` and the flags of a block (enum cairn_bbmap_flag), such as "landing pad, returns".
 * Writes nothing if no flag is set. A block that ends in a tail call is not called a return,
 * although LLVM sets that flag, too. */
void write_block_words(struct output *output, const char *prefix, uint8_t flags);

#endif
