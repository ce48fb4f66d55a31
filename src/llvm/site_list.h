/*
 * llvm/site_list.h - lists all calls of a module that make records.
 *
 * Calls of intrinsics are found by the uses of the intrinsics. Calls with a "deopt" bundle are
 * found by searching all instructions, which takes a few nanoseconds per instruction.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_SITE_LIST_H
#define LLVM_SITE_LIST_H

#include "llvm/site_call.h"

#include <stddef.h>

struct site_use {
    LLVMValueRef call;
    LLVMValueRef function; /* the function that contains the call */
    enum cairn_record_kind kind;
};

struct site_list {
    struct site_use *uses;
    size_t count;
    size_t capacity;
};

/* Lists the module's calls. The functions are in the module's order. The order within a function
 * depends on how the module was made, and is deterministic. MEMORY; the list then needs no
 * release. */
enum cairn_status site_list_create(LLVMModuleRef module, struct site_list *list,
                                   struct cairn_error *error);

/* Sorts the calls of each function into the order of its instructions. Walks over all instructions
 * of the functions that have several calls. */
void site_list_sort(struct site_list *list);

/* Removes the calls in functions for which LLVM emits no code, because another module defines
 * them. */
void site_list_drop_unemitted(struct site_list *list);

void site_list_release(struct site_list *list);

#endif
