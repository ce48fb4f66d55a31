/*
 * Declarations from the IR.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "base/memory.h"
#include "llvm/declared_types.h"
#include "llvm/site_call.h"
#include "llvm/types.h"

#include <cairn/llvm.h>

/* ---- One call ---- */

static void convert_types(const struct site_call *call, struct cairn_type *types)
{
    unsigned count = call->argument_count + call->live_value_count;
    for (unsigned i = 0; i < count; i++)
        types[i] = types_convert(LLVMTypeOf(site_call_value(call, i)));
    declared_types_read(call, types + call->argument_count);
}

static enum cairn_status declare(const struct site_call *call, const struct cairn_type *types,
                                 cairn_declarations *declarations, struct cairn_error *error)
{
    struct cairn_declaration declaration = {
        .id = call->id,
        .kind = call->kind,
        .byte_count = (uint32_t)call->byte_count,
        .calling_convention = call->calling_convention,
        .has_target = call->has_target,
        .types = types,
        .argument_count = call->argument_count,
        .live_value_count = call->live_value_count,
        .function = site_call_function(call->call),
    };
    if (call->result != NULL)
        declaration.result = types_convert(call->result);
    return cairn_declarations_add(declarations, &declaration, error);
}

static enum cairn_status scan_call(LLVMValueRef instruction, cairn_declarations *declarations,
                                   struct cairn_error *error)
{
    struct site_call call;
    enum cairn_status status = site_call_read(instruction, &call, error);
    if (status != CAIRN_OK)
        return status;
    size_t count = (size_t)call.argument_count + call.live_value_count;
    struct cairn_allocator allocator = memory_allocator(NULL);
    struct cairn_type *types = NULL;
    if (count > 0) {
        types = memory_new(&allocator, count, sizeof *types);
        if (types == NULL)
            return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu types", count);
        convert_types(&call, types);
    }
    status = declare(&call, types, declarations, error);
    memory_free(&allocator, types, count * sizeof *types);
    return status;
}

/* ---- A module ---- */

static enum cairn_status scan_function(LLVMValueRef function, cairn_declarations *declarations,
                                       struct cairn_error *error)
{
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block != NULL;
         block = LLVMGetNextBasicBlock(block)) {
        for (LLVMValueRef instruction = LLVMGetFirstInstruction(block); instruction != NULL;
             instruction = LLVMGetNextInstruction(instruction)) {
            if (site_call_kind(instruction) == CAIRN_RECORD_UNDECLARED)
                continue;
            enum cairn_status status = scan_call(instruction, declarations, error);
            if (status != CAIRN_OK)
                return status;
        }
    }
    return CAIRN_OK;
}

static enum cairn_status scan_functions(LLVMModuleRef module, cairn_declarations *declarations,
                                        struct cairn_error *error)
{
    for (LLVMValueRef function = LLVMGetFirstFunction(module); function != NULL;
         function = LLVMGetNextFunction(function)) {
        enum cairn_status status = scan_function(function, declarations, error);
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}

static enum cairn_status add_all(cairn_declarations *to, const cairn_declarations *from,
                                 struct cairn_error *error)
{
    for (size_t i = 0; i < cairn_declarations_count(from); i++) {
        enum cairn_status status =
            cairn_declarations_add(to, cairn_declarations_at(from, i), error);
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}

/* Into a set of its own first and into a trial of both next, so that on failure the caller's set
 * is as it was. */
static enum cairn_status merge(cairn_declarations *declarations, const cairn_declarations *scanned,
                               struct cairn_error *error)
{
    if (cairn_declarations_count(declarations) == 0)
        return add_all(declarations, scanned, error);
    cairn_declarations *trial;
    enum cairn_status status = cairn_declarations_create(NULL, &trial, error);
    if (status != CAIRN_OK)
        return status;
    status = add_all(trial, declarations, error);
    if (status == CAIRN_OK)
        status = add_all(trial, scanned, error);
    cairn_declarations_destroy(trial);
    return status == CAIRN_OK ? add_all(declarations, scanned, error) : status;
}

enum cairn_status cairn_scan_module(LLVMModuleRef module, cairn_declarations *declarations,
                                    struct cairn_error *error)
{
    if (module == NULL || declarations == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_scan_module needs a module and a set of declarations");
    cairn_declarations *scanned;
    enum cairn_status status = cairn_declarations_create(NULL, &scanned, error);
    if (status != CAIRN_OK)
        return status;
    status = scan_functions(module, scanned, error);
    if (status == CAIRN_OK)
        status = merge(declarations, scanned, error);
    cairn_declarations_destroy(scanned);
    return status;
}
