/*
 * runtime/descriptors.h - stack maps that name functions by their descriptors (PPC64 ELFv1).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RUNTIME_DESCRIPTORS_H
#define RUNTIME_DESCRIPTORS_H

#include "code/space.h"

#include <cairn/section.h>

/*
 * Replaces the addresses of descriptors in a stack map section by the entries of their functions.
 *
 * LLVM's stack maps name a function by a pointer to it. If the block's architecture has
 * descriptors, that is the address of a descriptor in the module's data. The section's bytes must
 * be writable. Addresses in the module's code stay unchanged. Errors in the maps themselves are
 * ignored here; the reader of the maps reports them. Errors: CORRUPT (an address is not a
 * descriptor in the data, or its entry is not in the code).
 */
enum cairn_status descriptors_resolve(const struct code_block *block,
                                      const struct cairn_section *section,
                                      struct cairn_error *error);

#endif
