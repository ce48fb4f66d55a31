/*
 * llvm/bundles.h - finds which operands of a call are in which operand bundle.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_BUNDLES_H
#define LLVM_BUNDLES_H

#include <cairn/status.h>
#include <llvm-c/Core.h>
#include <stdbool.h>

/* A bundle's operands, as consecutive operand numbers of the call. `count` is 0 if the call has no
 * such bundle. */
struct bundle {
    unsigned first;
    unsigned count;
};

/* The two bundles whose values a record describes, and the bundle that LLVM passes to a GC
 * transition. Other bundles may come before, between and after them. */
struct bundles {
    struct bundle deopt;
    struct bundle gc_live;
    struct bundle gc_transition;
};

/* Whether the call has a "deopt" bundle. Before LLVM 18, bundles without operands are not found. */
bool bundles_has_deopt(LLVMValueRef call);

/* Finds the bundles of the call. UNSUPPORTED if the LLVM in use prints bundles in an unknown
 * way. */
enum cairn_status bundles_read(LLVMValueRef call, struct bundles *bundles,
                               struct cairn_error *error);

enum { BUNDLE_TAG_SIZE = 40 };

/* Whether the call or invoke has an operand bundle at which the code generator in use ends the
 * process. Writes the start of its tag to `tag`. */
bool bundles_find_foreign(LLVMValueRef call, char tag[BUNDLE_TAG_SIZE]);

#endif
