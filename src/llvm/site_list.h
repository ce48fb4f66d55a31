/*
 * llvm/site_list.h - all the calls of a module that make records.
 *
 * Those of intrinsics are found by their uses; those with a "deopt" bundle by looking at every
 * instruction, which takes a few nanoseconds for each.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_SITE_LIST_H
#define LLVM_SITE_LIST_H

#include "llvm/site_call.h"

#include <stddef.h>

struct site_use {
    LLVMValueRef call;
    LLVMValueRef function; /* that the call is in */
    enum cairn_record_kind kind;
};

struct site_list {
    struct site_use *uses;
    size_t count;
    size_t capacity;
};

/* The module's calls, function by function in the order of the module. Within a function they
 * stand in an order that hangs on how the module was made, and is the same each time. MEMORY; then
 * there is nothing to release. */
enum cairn_status site_list_create(LLVMModuleRef module, struct site_list *list,
                                   struct cairn_error *error);

/* Puts the calls of each function into the order of its instructions, which takes a walk over
 * those of the functions that have several. */
void site_list_sort(struct site_list *list);

void site_list_release(struct site_list *list);

#endif
