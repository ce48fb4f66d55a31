/*
 * llvm/bundles.h - which operands of a call are in which operand bundle.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_BUNDLES_H
#define LLVM_BUNDLES_H

#include <cairn/status.h>
#include <llvm-c/Core.h>
#include <stdbool.h>

/* Operand numbers of the call, one behind the other; none if the call has no such bundle. */
struct bundle {
    unsigned first;
    unsigned count;
};

/* The two whose values a record describes, and the one that LLVM gives to a transition, wherever
 * they stand among others. */
struct bundles {
    struct bundle deopt;
    struct bundle gc_live;
    struct bundle gc_transition;
};

/* Whether the call has a "deopt" bundle; before LLVM 18, one with operands. */
bool bundles_has_deopt(LLVMValueRef call);

/* UNSUPPORTED if the LLVM in use writes bundles in a way that is not known. */
enum cairn_status bundles_read(LLVMValueRef call, struct bundles *bundles,
                               struct cairn_error *error);

enum { BUNDLE_TAG_SIZE = 40 };

/* Whether the call or invoke has an operand bundle at which the code generator in use ends the
 * process. Writes the start of its tag to `tag`. */
bool bundles_find_foreign(LLVMValueRef call, char tag[BUNDLE_TAG_SIZE]);

#endif
