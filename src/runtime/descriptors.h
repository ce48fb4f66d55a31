/*
 * runtime/descriptors.h - stack maps that name functions by their descriptors (PPC64 ELFv1).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RUNTIME_DESCRIPTORS_H
#define RUNTIME_DESCRIPTORS_H

#include "code/space.h"

#include <cairn/stackmap.h>

/*
 * LLVM's stack maps name a function as a pointer to it does: where the block's architecture has
 * descriptors, by the address of one in the module's data. Puts what it leads to in the place of
 * each such address in `bytes`, which are the section's. An address in the module's code stays.
 * What is wrong with the maps themselves is for their reader to say. CORRUPT.
 */
enum cairn_status descriptors_resolve(const struct code_block *block, uint8_t *bytes,
                                      const struct cairn_section *section,
                                      struct cairn_error *error);

#endif
