/*
 * Makes declarations from the IR.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/scan.h"

#include "base/adapter.h"
#include "base/error.h"
#include "base/memory.h"
#include "llvm/bindings.h"
#include "llvm/check.h"
#include "llvm/ir.h"
#include "llvm/repair.h"
#include "llvm/site_call.h"
#include "llvm/types.h"

#include <cairn/llvm.h>

/* Returns the next call, in the order of the module, for which LLVM makes a record. LLVM emits no
 * code for functions that are available externally. */
static LLVMValueRef next_call(LLVMModuleRef module, LLVMValueRef previous)
{
    LLVMValueRef call = site_call_next(module, previous);
    while (call != NULL && LLVMGetLinkage(ir_function_of(call)) == LLVMAvailableExternallyLinkage)
        call = site_call_next(module, call);
    return call;
}

/* Reads a call. Rejects targets that LLVM does not call correctly, because the host may compile the
 * module without checking it. */
static enum cairn_status read_call(LLVMValueRef instruction, struct site_call *call,
                                   struct cairn_error *error)
{
    enum cairn_status status = site_call_read(instruction, call, error);
    if (status != CAIRN_OK || call->target == NULL)
        return status;
    LLVMModuleRef module = LLVMGetGlobalParent(ir_function_of(instruction));
    const struct problem *problem = target_find_problem(call->target, types_architecture(module));
    if (problem == NULL)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, call->id,
                     "in '%.40s': patch point with ID %llu: %s; write %s",
                     ir_function_name(instruction), (unsigned long long)call->id, problem->why,
                     problem->instead);
}

enum cairn_status scan_declare(cairn_declarations *declarations,
                               const struct cairn_declaration *declaration, bool undeclares,
                               struct cairn_error *error)
{
    enum cairn_status status = cairn_declarations_add(declarations, declaration, error);
    if (status != CAIRN_ERROR_CONFLICT || !undeclares)
        return status;
    const struct cairn_declaration none = {.id = declaration->id, .kind = CAIRN_RECORD_UNDECLARED};
    return cairn_declarations_add(declarations, &none, error);
}

static enum cairn_status declare_call(const struct site_call *call, bool undeclares,
                                      cairn_declarations *declarations, struct cairn_error *error)
{
    struct cairn_allocator allocator = memory_allocator(NULL);
    size_t count = (size_t)call->argument_count + call->live_value_count;
    struct cairn_type *types = memory_new(&allocator, count + 1, sizeof *types);
    if (types == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu types", count);
    for (unsigned i = 0; i < count; i++)
        types[i] = types_convert(LLVMTypeOf(site_call_value(call, i)));
    types_read_declared(call->call, types + call->argument_count, call->live_value_count);
    struct cairn_declaration declaration = {
        .id = call->id,
        .kind = call->kind,
        .byte_count = (uint32_t)call->byte_count,
        .calling_convention = call->calling_convention,
        .has_target = call->has_target,
        .types = types,
        .argument_count = call->argument_count,
        .live_value_count = call->live_value_count,
        .function = ir_function_name(call->call),
        .function_results = types_function_results(ir_function_of(call->call)),
    };
    if (call->result != NULL)
        declaration.result = types_convert(call->result);
    enum cairn_status status = scan_declare(declarations, &declaration, undeclares, error);
    memory_free(&allocator, types, (count + 1) * sizeof *types);
    return status;
}

enum cairn_status scan_module(LLVMModuleRef module, bool undeclares,
                              cairn_declarations *declarations, struct cairn_error *error)
{
    struct site_call call;
    size_t known = cairn_declarations_count(declarations);
    enum cairn_status status = CAIRN_OK;
    LLVMValueRef next = NULL;
    repair_module(module); /* engines and adapters scan every module before it is compiled */
    while (status == CAIRN_OK && (next = next_call(module, next)) != NULL) {
        status = read_call(next, &call, error);
        if (status != CAIRN_OK)
            break;
        repair_call(&call);
        status = declare_call(&call, undeclares, declarations, error);
    }
    if (status != CAIRN_OK)
        cairn_declarations_truncate(declarations, known);
    return status;
}

/* A set with both declarations of an ID detects a conflict. */
enum cairn_status scan_check_conflicts(const cairn_declarations *known,
                                       const cairn_declarations *added,
                                       const struct cairn_allocator *allocator,
                                       struct cairn_error *error)
{
    cairn_declarations *both = NULL;
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < cairn_declarations_count(added) && status == CAIRN_OK; i++) {
        const struct cairn_declaration *declaration = cairn_declarations_at(added, i);
        const struct cairn_declaration *other = cairn_declarations_find(known, declaration->id);
        if (other == NULL)
            continue;
        if (both == NULL)
            status = cairn_declarations_create(allocator, &both, error);
        else
            cairn_declarations_truncate(both, 0);
        if (status == CAIRN_OK)
            status = cairn_declarations_add(both, other, error);
        if (status == CAIRN_OK)
            status = cairn_declarations_add(both, declaration, error);
    }
    cairn_declarations_destroy(both);
    return status;
}

bool scan_is_new_id(const struct scan_new_ids *ids, uint64_t id)
{
    return id >= ids->first && id < ids->next;
}

/* Once `known` contains all calls, an ID that it does not find has two shapes. A call whose own ID
 * was given to another call before gets a new one, too. */
enum cairn_status scan_renumber_conflicts(LLVMModuleRef module, bool only_defaults,
                                          cairn_declarations *known, struct scan_new_ids *ids,
                                          struct cairn_error *error)
{
    struct site_call call;
    const struct scan_new_ids given = *ids;
    enum cairn_status status = scan_module(module, true, known, error);
    LLVMValueRef next = NULL;
    while (status == CAIRN_OK && (next = next_call(module, next)) != NULL) {
        status = read_call(next, &call, error);
        bool is_disputed =
            cairn_declarations_find(known, call.id) == NULL || scan_is_new_id(&given, call.id);
        if (status != CAIRN_OK || !is_disputed || (only_defaults && !call.has_default_id))
            continue;
        while (cairn_declarations_find(known, ids->next) != NULL)
            ids->next++;
        status = bindings_check_free(module, call.id, error);
        if (status == CAIRN_OK)
            site_call_set_id(next, ids->next++);
    }
    return status;
}
