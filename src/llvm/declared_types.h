/*
 * llvm/declared_types.h - the types that live values had before a builder widened them.
 *
 * They are kept as metadata of the call, `!cairn.types`: one string per live value, such as "i1",
 * or "" where the operand's own type is right. So they survive printing, parsing and cloning.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_DECLARED_TYPES_H
#define LLVM_DECLARED_TYPES_H

#include "llvm/site_call.h"

/* `widths[i]` is the number of bits that live value i had, or 0. */
void declared_types_write(LLVMValueRef call, const unsigned *widths, unsigned count);

/* Puts the declared types over those of the operands. Metadata that does not fit the call, or
 * names no smaller integer than the operand's, is not ours and is ignored. */
void declared_types_read(const struct site_call *call, struct cairn_type *types);

#endif
