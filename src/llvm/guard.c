/*
 * Builds guards: places at which threads leave compiled code with a frame state.
 *
 * Everything is checked before anything is built, except the patch point: if it cannot be built,
 * the block that was made for it is deleted.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "base/memory.h"
#include "llvm/bindings.h"
#include "llvm/build.h"
#include "llvm/ir.h"
#include "llvm/version.h"

#include <cairn/exit.h>
#include <cairn/llvm.h>
#include <stdio.h>
#include <string.h>

/* A guard that is being built. */
struct building {
    LLVMBuilderRef builder;
    LLVMValueRef function;
    LLVMModuleRef module;
    LLVMContextRef context;
    const struct cairn_guard *guard;
    LLVMValueRef *live_values;
    uint32_t capacity;
    uint32_t count;
};

/* ---- Checks ---- */

static const char *name_of(LLVMValueRef function)
{
    size_t length;
    return LLVMGetValueName2(function, &length);
}

static enum cairn_status check_slots(LLVMValueRef function, const char *part, uint32_t frame,
                                     LLVMValueRef *values, uint32_t count,
                                     struct cairn_error *error)
{
    char text[40];
    enum cairn_status status = CAIRN_OK;
    snprintf(text, sizeof text, "frame %u: %s", frame, part);
    for (uint32_t i = 0; values != NULL && i < count && status == CAIRN_OK; i++)
        if (values[i] != NULL)
            status = build_check_owner(values[i], text, i, function, "guard", error);
    return status;
}

/* Checks that all values belong to the function that the guard is in. */
static enum cairn_status check_frames(LLVMValueRef function, const struct cairn_guard *guard,
                                      struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (uint32_t i = 0; i < guard->frame_count && guard->frames != NULL; i++) {
        const struct cairn_encoded_frame *frame = &guard->frames[i];
        status = check_slots(function, "local", i, frame->locals, frame->local_count, error);
        if (status == CAIRN_OK)
            status =
                check_slots(function, "stack entry", i, frame->stack, frame->stack_count, error);
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}

/* Whether no instruction follows the builder's position, which only an instruction there tells. */
static bool is_at_end(LLVMBuilderRef builder)
{
    LLVMValueRef probe = LLVMBuildUnreachable(builder);
    bool is_last = LLVMGetNextInstruction(probe) == NULL;
    LLVMInstructionEraseFromParent(probe);
    return is_last;
}

static enum cairn_status check_condition(const struct building *building, LLVMValueRef condition,
                                         struct cairn_error *error)
{
    char text[61];
    LLVMTypeRef type = LLVMTypeOf(condition);
    LLVMBasicBlockRef block = LLVMGetInsertBlock(building->builder);
    if (!ir_is_integer(type, 1))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "the condition of a guard is an i1, and not of type %s",
                         ir_print_type(type, text, sizeof text));
    enum cairn_status status =
        build_check_owner(condition, "condition", 0, building->function, "guard", error);
    if (status != CAIRN_OK)
        return status;
    if (LLVMGetBasicBlockTerminator(block) != NULL)
        return error_set(
            error, CAIRN_ERROR_ARGUMENT, 0,
            "the builder is in a block of '%s' that has a terminator: a guard ends its "
            "block",
            name_of(building->function));
    if (!is_at_end(building->builder))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "the builder is before an instruction of '%s': a guard ends its block",
                         name_of(building->function));
    return CAIRN_OK;
}

static enum cairn_status check_guard(const struct building *building, LLVMValueRef condition,
                                     struct cairn_error *error)
{
    const struct cairn_guard *guard = building->guard;
    bool is_named = guard->exit_name != NULL;
    if ((guard->exit != NULL) == is_named)
        return error_set(error, CAIRN_ERROR_ARGUMENT, guard->id,
                         "guard %llu has %s at which threads leave", (unsigned long long)guard->id,
                         is_named ? "both an exit and the name of one" : "no exit");
    if (is_named ? guard->assumptions != NULL : guard->assumption_names != NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, guard->id,
                         "guard %llu has names for only one of its exit and its assumptions",
                         (unsigned long long)guard->id);
    if (guard->assumptions == NULL && guard->assumption_names == NULL &&
        guard->assumption_count > 0)
        return error_set(error, CAIRN_ERROR_ARGUMENT, guard->id,
                         "%u assumptions, but no array of them", guard->assumption_count);
    if ((condition == NULL) != (guard->assumption_count > 0))
        return error_set(error, CAIRN_ERROR_ARGUMENT, guard->id,
                         "guard %llu %s: it has one of the two", (unsigned long long)guard->id,
                         condition == NULL ? "has neither a condition nor an assumption"
                                           : "has both a condition and assumptions");
    for (uint32_t i = 0; guard->assumptions != NULL && i < guard->assumption_count; i++)
        if (guard->assumptions[i] == NULL)
            return error_set(error, CAIRN_ERROR_ARGUMENT, i, "`assumptions[%u]` is NULL", i);
    if (ir_attribute(building->function, IR_FUNCTION, "alwaysinline") != NULL)
        return error_set(
            error, CAIRN_ERROR_ARGUMENT, guard->id,
            "function '%s' is alwaysinline, and its guards' frames do not describe the "
            "function that it would be inlined into",
            name_of(building->function));
    enum cairn_status status = check_frames(building->function, guard, error);
    return status == CAIRN_OK && condition != NULL ? check_condition(building, condition, error)
                                                   : status;
}

/* ---- Building ---- */

/* Binds the site of a guard with names: to its exit, and to its assumptions if it has any. */
static enum cairn_status bind_names(const struct building *building, struct cairn_error *error)
{
    const struct cairn_guard *guard = building->guard;
    struct cairn_allocator allocator = memory_allocator(NULL);
    size_t count = guard->assumption_count + (size_t)1;
    const struct cairn_name **names = memory_new(&allocator, count, sizeof *names);
    if (names == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, guard->id, "no memory for %zu names", count);
    names[0] = guard->exit_name;
    for (size_t i = 1; i < count; i++)
        names[i] = &guard->assumption_names[i - 1];
    enum cairn_status status = bindings_add_named(
        building->function, guard->id, count == 1 ? BOUND_SITE_CALL : BOUND_SITE_ASSUMPTIONS, names,
        count, error);
    memory_free(&allocator, names, count * sizeof *names);
    return status;
}

/* Binds the site of a guard without a condition, or of one with names. */
static enum cairn_status bind(const struct building *building, bool has_condition,
                              struct cairn_error *error)
{
    const struct cairn_guard *guard = building->guard;
    if (guard->exit_name != NULL)
        return bind_names(building, error);
    return has_condition
               ? CAIRN_OK
               : bindings_add_assumptions(building->function, guard->id,
                                          cairn_exit_target(guard->exit), guard->assumptions,
                                          guard->assumption_count, error);
}

/* Builds the patch point. If it has a condition and an exit's address, LLVM calls the exit there;
 * otherwise nothing. */
static LLVMValueRef build_site(const struct building *building, bool calls,
                               struct cairn_error *error)
{
    const struct cairn_guard *guard = building->guard;
    LLVMTypeRef word = LLVMInt64TypeInContext(building->context);
    const struct cairn_patchpoint site = {
        .id = guard->id,
        .byte_count = cairn_patchpoint_minimum_bytes(building->module, calls),
        .target = calls ? LLVMConstInt(word, (uintptr_t)cairn_exit_target(guard->exit), 0) : NULL,
        .live_values = building->live_values,
        .live_value_count = building->count,
    };
    return cairn_build_patchpoint(building->builder, &site, error);
}

/* Ends the block of a patch point whose exit does not return to it. The trap stops a thread whose
 * handler has let it continue, and makes the return address one of this function. */
static void end_cold_block(const struct building *building)
{
    static const char name[] = "llvm.trap";
    unsigned id = LLVMLookupIntrinsicID(name, sizeof name - 1);
    LLVMValueRef trap = LLVMGetIntrinsicDeclaration(building->module, id, NULL, 0);
    LLVMBuildCall2(building->builder, LLVMGlobalGetValueType(trap), trap, NULL, 0, "");
    LLVMBuildUnreachable(building->builder);
}

static void set_weights(LLVMContextRef context, LLVMValueRef branch)
{
    static const char name[] = "branch_weights";
    enum { LIKELY = (1 << 20) - 1, UNLIKELY = 1 };
    LLVMTypeRef word = LLVMInt32TypeInContext(context);
    LLVMMetadataRef operands[] = {
        LLVMMDStringInContext2(context, name, sizeof name - 1),
        LLVMValueAsMetadata(LLVMConstInt(word, LIKELY, 0)),
        LLVMValueAsMetadata(LLVMConstInt(word, UNLIKELY, 0)),
    };
    LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(context, "prof", strlen("prof")),
                    LLVMMetadataAsValue(context, LLVMMDNodeInContext2(context, operands, 3)));
}

static LLVMValueRef build_branch(const struct building *building, LLVMValueRef condition,
                                 struct cairn_error *error)
{
    LLVMBuilderRef builder = building->builder;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(builder);
    LLVMBasicBlockRef leaves =
        LLVMAppendBasicBlockInContext(building->context, building->function, "leaves");
    LLVMPositionBuilderAtEnd(builder, leaves);
    LLVMValueRef site = build_site(building, building->guard->exit != NULL, error);
    if (site == NULL || bind(building, true, error) != CAIRN_OK) {
        LLVMPositionBuilderAtEnd(builder, before);
        LLVMDeleteBasicBlock(leaves);
        return NULL;
    }
    end_cold_block(building);
    LLVMBasicBlockRef holds =
        LLVMAppendBasicBlockInContext(building->context, building->function, "holds");
    LLVMMoveBasicBlockAfter(holds, before);
    LLVMPositionBuilderAtEnd(builder, before);
    set_weights(building->context, LLVMBuildCondBr(builder, condition, holds, leaves));
    LLVMPositionBuilderAtEnd(builder, holds);
    return site;
}

static LLVMValueRef build(struct building *building, LLVMValueRef condition,
                          struct cairn_error *error)
{
    const struct cairn_guard *guard = building->guard;
    LLVMValueRef site = NULL;
    if (cairn_frame_state_encode(building->context, guard->frames, guard->frame_count,
                                 building->live_values, building->capacity, &building->count,
                                 error) != CAIRN_OK)
        return NULL;
    if (condition != NULL) {
        site = build_branch(building, condition, error);
    } else {
        site = build_site(building, false, error);
        if (site != NULL && bind(building, false, error) != CAIRN_OK) {
            LLVMInstructionEraseFromParent(site);
            site = NULL;
        }
    }
    if (site != NULL) {
        ir_set_attribute(building->function, "noinline", 0);
        ir_set_attribute(building->function, "uwtable", VERSION_UWTABLE_VALUE);
    }
    return site;
}

LLVMValueRef cairn_build_guard(LLVMBuilderRef builder, LLVMValueRef condition,
                               const struct cairn_guard *guard, struct cairn_error *error)
{
    struct cairn_allocator allocator = memory_allocator(NULL);
    LLVMValueRef function = build_find_function(builder, error);
    if (function == NULL)
        return NULL;
    if (guard == NULL) {
        error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_build_guard: `guard` is NULL");
        return NULL;
    }
    struct building building = {
        .builder = builder,
        .function = function,
        .module = LLVMGetGlobalParent(function),
        .context = LLVMGetModuleContext(LLVMGetGlobalParent(function)),
        .guard = guard,
        .capacity = frame_state_capacity(guard->frames, guard->frame_count),
    };
    if (check_guard(&building, condition, error) != CAIRN_OK)
        return NULL;
    size_t size = building.capacity + (size_t)1;
    building.live_values = memory_new(&allocator, size, sizeof *building.live_values);
    if (building.live_values == NULL) {
        error_set(error, CAIRN_ERROR_MEMORY, guard->id, "no memory for %zu live values", size);
        return NULL;
    }
    LLVMValueRef site = build(&building, condition, error);
    memory_free(&allocator, building.live_values, size * sizeof *building.live_values);
    return site;
}
