/*
 * Numbers statepoints, because LLVM's pass gives all of them the same ID.
 *
 * Source: llvm/lib/Transforms/Scalar/RewriteStatepointsForGC.cpp and llvm/IR/Statepoint.h
 * (DefaultStatepointID).
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "llvm/site_list.h"

#include <cairn/llvm.h>

enum cairn_status cairn_number_statepoints(LLVMModuleRef module, uint64_t *next_id,
                                           struct cairn_error *error)
{
    if (module == NULL || next_id == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_number_statepoints needs a module and the first ID");
    struct site_list list;
    enum cairn_status status = site_list_create(module, &list, error);
    if (status != CAIRN_OK || list.count == 0)
        return status;
    site_list_sort(&list);
    for (size_t i = 0; i < list.count; i++)
        if (list.uses[i].kind == CAIRN_RECORD_STATEPOINT)
            site_call_set_id(list.uses[i].call, (*next_id)++);
    site_list_release(&list);
    return CAIRN_OK;
}
