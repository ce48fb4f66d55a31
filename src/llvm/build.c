/*
 * Builds calls of the stack map and patch point intrinsics.
 *
 * All parameters are checked before anything is built.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/build.h"
#include "base/error.h"
#include "llvm/bindings.h"
#include "llvm/check.h"
#include "llvm/ir.h"
#include "llvm/types.h"
#include "llvm/version.h"

#include <cairn/llvm.h>
#include <stdlib.h>
#include <string.h>

LLVMValueRef build_find_function(LLVMBuilderRef builder, struct cairn_error *error)
{
    LLVMBasicBlockRef block = builder == NULL ? NULL : LLVMGetInsertBlock(builder);
    LLVMValueRef function = block == NULL ? NULL : LLVMGetBasicBlockParent(block);
    if (function != NULL && LLVMGetGlobalParent(function) != NULL)
        return function;
    error_set(error, CAIRN_ERROR_ARGUMENT, 0,
              "the builder is not positioned in a function of a module");
    return NULL;
}

enum cairn_status build_check_owner(LLVMValueRef value, const char *part, uint32_t index,
                                    LLVMValueRef function, const char *what,
                                    struct cairn_error *error)
{
    size_t length;
    LLVMValueRef owner = ir_owner(value);
    LLVMModuleRef module = LLVMGetGlobalParent(function);
    if (LLVMIsAGlobalValue(value) != NULL && LLVMGetGlobalParent(value) != module)
        return error_set(error, CAIRN_ERROR_ARGUMENT, index,
                         "%s %u is '%.40s' of module '%.40s', and the %s is in function '%.40s' of "
                         "module '%.40s'",
                         part, index, LLVMGetValueName2(value, &length),
                         LLVMGetModuleIdentifier(LLVMGetGlobalParent(value), &length), what,
                         LLVMGetValueName2(function, &length),
                         LLVMGetModuleIdentifier(module, &length));
    if (owner == NULL || owner == function)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_ARGUMENT, index,
                     "%s %u is a value of function '%.60s', and the %s is in function '%.60s'",
                     part, index, LLVMGetValueName2(owner, &length), what,
                     LLVMGetValueName2(function, &length));
}

/* ---- Operands ---- */

/* The operands of the call, and the widths of live values before they were widened. */
struct operands {
    LLVMValueRef *values;
    unsigned count;
    unsigned *widths;
    bool widened;
};

static enum cairn_status allocate_operands(struct operands *operands, size_t count,
                                           size_t live_value_count, struct cairn_error *error)
{
    *operands = (struct operands){
        .values = calloc(count + 1, sizeof *operands->values),
        .widths = calloc(live_value_count + 1, sizeof *operands->widths),
    };
    if (operands->values != NULL && operands->widths != NULL)
        return CAIRN_OK;
    free(operands->values);
    free(operands->widths);
    return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for %zu operands", count);
}

static void push(struct operands *operands, LLVMValueRef value)
{
    operands->values[operands->count++] = value;
}

static LLVMValueRef constant(LLVMModuleRef module, unsigned bits, uint64_t value)
{
    return LLVMConstInt(LLVMIntTypeInContext(LLVMGetModuleContext(module), bits), value, 0);
}

/* Checks the live values of a call in the function. LLVM does not put integer constants that are
 * wider than any register into registers. */
static enum cairn_status check_live_values(LLVMValueRef function, LLVMValueRef *live_values,
                                           uint32_t count, struct cairn_error *error)
{
    if (live_values == NULL && count > 0)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "%u live values, but no array of them",
                         count);
    enum cairn_architecture architecture = types_architecture(LLVMGetGlobalParent(function));
    for (uint32_t i = 0; i < count; i++) {
        enum cairn_status status =
            build_check_owner(live_values[i], "live value", i, function, "record", error);
        if (status != CAIRN_OK)
            return status;
        LLVMTypeRef type = LLVMTypeOf(live_values[i]);
        bool is_wide = LLVMIsAConstantInt(live_values[i]) != NULL && !ir_is_integer(type, 64);
        const char *why = is_wide ? types_live_constant(live_values[i]) : NULL;
        const char *instead = is_wide ? NULL : types_live_value(type, architecture, function);
        char text[61];
        if (why != NULL)
            return error_set(error, CAIRN_ERROR_UNSUPPORTED, i, "live value %u: %s. Give it %s", i,
                             why, LIVE_CONSTANT_INSTEAD);
        if (instead != NULL && !ir_is_integer(type, 64))
            return error_set(error, CAIRN_ERROR_UNSUPPORTED, i,
                             "LLVM %d cannot keep live value %u live: it is of type %s. Give it %s",
                             LLVM_VERSION_MAJOR, i, ir_print_type(type, text, sizeof text),
                             instead);
    }
    return CAIRN_OK;
}

static void push_live_values(LLVMBuilderRef builder, LLVMModuleRef module,
                             LLVMValueRef *live_values, uint32_t count, struct operands *operands)
{
    enum cairn_architecture architecture = types_architecture(module);
    LLVMContextRef context = LLVMGetModuleContext(module);
    for (uint32_t i = 0; i < count; i++) {
        LLVMTypeRef type = LLVMTypeOf(live_values[i]);
        if (!ir_is_integer(type, 64) || types_live_value(type, architecture, NULL) == NULL) {
            push(operands, live_values[i]);
            continue;
        }
        unsigned width = LLVMGetIntTypeWidth(type);
        LLVMTypeRef wide = LLVMIntTypeInContext(context, width < 32 ? 32 : 64);
        push(operands, LLVMBuildZExt(builder, live_values[i], wide, ""));
        operands->widths[i] = width;
        operands->widened = true;
    }
}

/* Builds the call, and frees the operands. `result` is the type that an overloaded intrinsic
 * returns. */
static LLVMValueRef build_call(LLVMBuilderRef builder, LLVMModuleRef module, const char *intrinsic,
                               LLVMTypeRef result, struct operands *operands,
                               uint32_t live_value_count, const char *name)
{
    unsigned id = LLVMLookupIntrinsicID(intrinsic, strlen(intrinsic));
    LLVMValueRef function =
        LLVMGetIntrinsicDeclaration(module, id, &result, LLVMIntrinsicIsOverloaded(id) ? 1 : 0);
    LLVMValueRef call = LLVMBuildCall2(builder, LLVMGlobalGetValueType(function), function,
                                       operands->values, operands->count, name);
    if (operands->widened)
        types_write_declared(call, operands->widths, live_value_count);
    free(operands->values);
    free(operands->widths);
    return call;
}

/* ---- Stack maps ---- */

LLVMValueRef cairn_build_stackmap(LLVMBuilderRef builder, uint64_t id, uint32_t shadow_bytes,
                                  LLVMValueRef *live_values, uint32_t live_value_count,
                                  struct cairn_error *error)
{
    enum { FIXED_OPERANDS = 2 };
    struct operands operands;
    LLVMValueRef function = build_find_function(builder, error);
    if (function == NULL || check_live_values(function, live_values, live_value_count, error) ||
        allocate_operands(&operands, (size_t)FIXED_OPERANDS + live_value_count, live_value_count,
                          error))
        return NULL;
    LLVMModuleRef module = LLVMGetGlobalParent(function);
    push(&operands, constant(module, 64, id));
    push(&operands, constant(module, 32, shadow_bytes));
    push_live_values(builder, module, live_values, live_value_count, &operands);
    return build_call(builder, module, "llvm.experimental.stackmap", NULL, &operands,
                      live_value_count, "");
}

/* ---- Patch points ---- */

/* ORDER ARCHITECTURE. The size of LLVM's call sequence, and the size that Cairn needs in a patch
 * point without one. */
static const struct {
    uint32_t with_target;
    uint32_t without_target;
} minimum_bytes[] = {
    [CAIRN_ARCHITECTURE_UNKNOWN] = {0, 0},       [CAIRN_ARCHITECTURE_X86_64] = {13, 9},
    [CAIRN_ARCHITECTURE_AARCH64] = {16, 4},      [CAIRN_ARCHITECTURE_PPC64_ELFV2] = {40, 12},
    [CAIRN_ARCHITECTURE_PPC64_ELFV1] = {48, 12}, [CAIRN_ARCHITECTURE_SYSTEMZ] = {14, 6},
    [CAIRN_ARCHITECTURE_RISCV64] = {28, 4},
};

uint32_t cairn_patchpoint_minimum_bytes(LLVMModuleRef module, bool has_target)
{
    enum cairn_architecture architecture = types_architecture(module);
    return has_target ? minimum_bytes[architecture].with_target
                      : minimum_bytes[architecture].without_target;
}

uint32_t cairn_patchpoint_inline_bytes(LLVMModuleRef module)
{
    /* ORDER ARCHITECTURE. The space that aligns the word, the word, guard, branch and action. */
    static const uint8_t inline_bytes[] = {
        [CAIRN_ARCHITECTURE_UNKNOWN] = 0,      [CAIRN_ARCHITECTURE_X86_64] = 32,
        [CAIRN_ARCHITECTURE_AARCH64] = 32,     [CAIRN_ARCHITECTURE_PPC64_ELFV2] = 56,
        [CAIRN_ARCHITECTURE_PPC64_ELFV1] = 56, [CAIRN_ARCHITECTURE_SYSTEMZ] = 0,
        [CAIRN_ARCHITECTURE_RISCV64] = 0,
    };
    return inline_bytes[types_architecture(module)];
}

static bool is_pointer(LLVMTypeRef type) { return LLVMGetTypeKind(type) == LLVMPointerTypeKind; }

/* Converts the target to the intrinsic's parameter type. A target that is not a constant is left
 * unchanged; it is rejected later. */
static LLVMValueRef target_pointer(LLVMModuleRef module, LLVMValueRef target)
{
    LLVMTypeRef type = version_byte_pointer_type(LLVMGetModuleContext(module));
    if (target == NULL)
        return LLVMConstNull(type);
    if (!LLVMIsConstant(target))
        return target;
    return is_pointer(LLVMTypeOf(target)) ? LLVMConstPointerCast(target, type)
                                          : LLVMConstIntToPtr(target, type);
}

static enum cairn_status check_arguments(LLVMValueRef function,
                                         const struct cairn_patchpoint *patchpoint,
                                         struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    if (patchpoint->arguments == NULL && patchpoint->argument_count > 0)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "%u arguments, but no array of them",
                         patchpoint->argument_count);
    for (uint32_t i = 0; i < patchpoint->argument_count && status == CAIRN_OK; i++)
        status = build_check_owner(patchpoint->arguments[i], "argument", i, function, "patch point",
                                   error);
    return status;
}

static enum cairn_status check_cache(const struct cairn_patchpoint *patchpoint, bool has_target,
                                     struct cairn_error *error)
{
    unsigned long long id = patchpoint->id;
    if (patchpoint->cache == NULL && patchpoint->cache_name == NULL)
        return CAIRN_OK;
    if (patchpoint->cache != NULL && patchpoint->cache_name != NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, id,
                         "patch point %llu has both an inline cache and the name of one", id);
    if (patchpoint->cache != NULL && patchpoint->cache->handler == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, id,
                         "the inline cache of patch point %llu has no handler", id);
    if (has_target)
        return error_set(
            error, CAIRN_ERROR_ARGUMENT, id,
            "patch point %llu calls a target, and one with an inline cache cannot: its "
            "cache decides what it calls",
            id);
    return CAIRN_OK;
}

static enum cairn_status check_patchpoint(LLVMModuleRef module,
                                          const struct cairn_patchpoint *patchpoint,
                                          struct cairn_error *error)
{
    LLVMValueRef target = patchpoint->target;
    if (target != NULL && !is_pointer(LLVMTypeOf(target)) && !ir_is_integer(LLVMTypeOf(target), 64))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "the target is neither a function nor a pointer nor an integer");
    LLVMValueRef pointer = target_pointer(module, target);
    const struct problem *problem = target_find_problem(pointer, types_architecture(module));
    if (problem != NULL)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0, "%s: give %s", problem->why,
                         problem->instead);
    enum cairn_status status = check_cache(patchpoint, !target_is_null(pointer), error);
    if (status != CAIRN_OK)
        return status;
    uint32_t minimum = target_is_null(pointer) ? 0 : cairn_patchpoint_minimum_bytes(module, true);
    if (patchpoint->byte_count < minimum)
        return error_set(error, CAIRN_ERROR_RANGE, patchpoint->byte_count,
                         "%u bytes are too few for LLVM's call of a target: reserve %u or more",
                         patchpoint->byte_count, minimum);
    if (patchpoint->byte_count > CAIRN_PATCHPOINT_BYTES_MAX)
        return error_set(error, CAIRN_ERROR_RANGE, patchpoint->byte_count,
                         "%u bytes are more than any patch point needs: at most %u",
                         patchpoint->byte_count, CAIRN_PATCHPOINT_BYTES_MAX);
    /* Words are returned in the register of an i64. */
    LLVMTypeRef type = patchpoint->result_type;
    if (type == NULL || LLVMGetTypeKind(type) == LLVMVoidTypeKind || is_pointer(type) ||
        ir_is_integer(type, 64) ||
        (LLVM_PATCHPOINT_RETURNS_ANY_TYPE && types_fits_register(type, CAIRN_ARCHITECTURE_AARCH64)))
        return CAIRN_OK;
    char text[61];
    return error_set(
        error, CAIRN_ERROR_UNSUPPORTED, 0,
        "LLVM %d has no patch point that returns %s: return void, an integer of up to 64 bits%s, "
        "or pass a pointer to where the target puts it",
        LLVM_VERSION_MAJOR, ir_print_type(type, text, sizeof text),
        LLVM_PATCHPOINT_RETURNS_ANY_TYPE ? ", a pointer, a floating-point number, a 128-bit vector"
                                         : " or a pointer");
}

/* Builds the call. An integer or a pointer is the result of an i64 patch point, converted: both are
 * returned in the same register. */
static LLVMValueRef build_patchpoint(LLVMBuilderRef builder, LLVMModuleRef module,
                                     const struct cairn_patchpoint *patchpoint,
                                     struct operands *operands)
{
    push(operands, constant(module, 64, patchpoint->id));
    push(operands, constant(module, 32, patchpoint->byte_count));
    push(operands, target_pointer(module, patchpoint->target));
    push(operands, constant(module, 32, patchpoint->argument_count));
    for (uint32_t i = 0; i < patchpoint->argument_count; i++)
        push(operands, patchpoint->arguments[i]);
    push_live_values(builder, module, patchpoint->live_values, patchpoint->live_value_count,
                     operands);

    LLVMTypeRef result = patchpoint->result_type;
    LLVMTypeRef word = LLVMInt64TypeInContext(LLVMGetModuleContext(module));
    bool is_void = result == NULL || LLVMGetTypeKind(result) == LLVMVoidTypeKind;
    bool is_word = !is_void && (is_pointer(result) || ir_is_integer(result, 64));
    bool is_converted = is_word && result != word;
    const char *name = patchpoint->name == NULL || is_void ? "" : patchpoint->name;
    LLVMValueRef call = build_call(
        builder, module,
        is_void ? "llvm.experimental.patchpoint.void" : "llvm.experimental.patchpoint.i64",
        is_word ? word : result, operands, patchpoint->live_value_count, is_converted ? "" : name);
    LLVMSetInstructionCallConv(call, patchpoint->calling_convention);
    if (patchpoint->cache != NULL)
        bindings_add_cache(ir_function_of(call), patchpoint->id, patchpoint->cache);
    if (!is_converted)
        return call;
    return is_pointer(result) ? LLVMBuildIntToPtr(builder, call, result, name)
                              : LLVMBuildTrunc(builder, call, result, name);
}

LLVMValueRef cairn_build_patchpoint(LLVMBuilderRef builder,
                                    const struct cairn_patchpoint *patchpoint,
                                    struct cairn_error *error)
{
    enum { FIXED_OPERANDS = 4 };
    struct operands operands;
    LLVMValueRef function = build_find_function(builder, error);
    if (function == NULL)
        return NULL;
    if (patchpoint == NULL) {
        error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_build_patchpoint: `patchpoint` is NULL");
        return NULL;
    }
    LLVMModuleRef module = LLVMGetGlobalParent(function);
    size_t count =
        (size_t)FIXED_OPERANDS + patchpoint->argument_count + patchpoint->live_value_count;
    if (check_arguments(function, patchpoint, error) ||
        check_patchpoint(module, patchpoint, error) ||
        check_live_values(function, patchpoint->live_values, patchpoint->live_value_count, error) ||
        allocate_operands(&operands, count, patchpoint->live_value_count, error))
        return NULL;
    if (patchpoint->cache_name != NULL &&
        bindings_add_named(function, patchpoint->id, BOUND_SITE_CACHE, &patchpoint->cache_name, 1,
                           error) != CAIRN_OK) {
        free(operands.values);
        free(operands.widths);
        return NULL;
    }
    return build_patchpoint(builder, module, patchpoint, &operands);
}
