/*
 * llvm/declared_types.h - keeps the types that live values had before a builder widened them.
 *
 * They are stored as metadata of the call, `!cairn.types`: one string per live value, such as "i1",
 * or "" if the operand's own type applies. Printing, parsing and cloning preserve the metadata.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_DECLARED_TYPES_H
#define LLVM_DECLARED_TYPES_H

#include "llvm/site_call.h"

/* Attaches the metadata. `widths[i]` is the width that live value i had, or 0. */
void declared_types_write(LLVMValueRef call, const unsigned *widths, unsigned count);

/* Replaces the types of widened live values by their declared types. Metadata is ignored if it does
 * not match the call, or if a declared integer is not smaller than the operand. */
void declared_types_read(const struct site_call *call, struct cairn_type *types);

#endif
