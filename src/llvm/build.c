/*
 * Builds calls of the stack map and patch point intrinsics.
 *
 * All parameters are checked before anything is built.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "llvm/declared_types.h"
#include "llvm/target.h"
#include "llvm/types.h"
#include "llvm/version.h"

#include <cairn/llvm.h>
#include <stdlib.h>
#include <string.h>

/* ---- The builder's position ---- */

static LLVMModuleRef module_of(LLVMBuilderRef builder)
{
    LLVMBasicBlockRef block = builder == NULL ? NULL : LLVMGetInsertBlock(builder);
    LLVMValueRef function = block == NULL ? NULL : LLVMGetBasicBlockParent(block);
    return function == NULL ? NULL : LLVMGetGlobalParent(function);
}

static LLVMModuleRef check_position(LLVMBuilderRef builder, struct cairn_error *error)
{
    LLVMModuleRef module = module_of(builder);
    if (module == NULL)
        error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                  "the builder does not stand in a function of a module: position it first");
    return module;
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

static void free_operands(struct operands *operands)
{
    free(operands->values);
    free(operands->widths);
}

static void push(struct operands *operands, LLVMValueRef value)
{
    operands->values[operands->count++] = value;
}

static LLVMValueRef constant(LLVMModuleRef module, unsigned bits, uint64_t value)
{
    return LLVMConstInt(LLVMIntTypeInContext(LLVMGetModuleContext(module), bits), value, 0);
}

/* Whether the value is an integer constant wider than any register. LLVM does not put such
 * constants into registers. */
static bool is_wide_constant(LLVMValueRef value)
{
    return LLVMIsAConstantInt(value) != NULL && LLVMGetIntTypeWidth(LLVMTypeOf(value)) > 64;
}

static enum cairn_status check_wide_constant(LLVMValueRef value, uint32_t index,
                                             struct cairn_error *error)
{
    const char *why = NULL;
    if (types_live_constant(value, &why) == LIVE_VALUE_FITS)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, index, "live value %u: %s. Give it %s", index,
                     why, LIVE_CONSTANT_INSTEAD);
}

/* Checks the live values of a call. `builder` is positioned in `module`. */
static enum cairn_status check_live_values(LLVMBuilderRef builder, LLVMModuleRef module,
                                           LLVMValueRef *live_values, uint32_t count,
                                           struct cairn_error *error)
{
    LLVMValueRef function = LLVMGetBasicBlockParent(LLVMGetInsertBlock(builder));
    if (live_values == NULL && count > 0)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "%u live values, but no array of them",
                         count);
    enum cairn_architecture architecture = types_architecture(module);
    for (uint32_t i = 0; i < count; i++) {
        const char *instead = "";
        LLVMTypeRef type = LLVMTypeOf(live_values[i]);
        if (is_wide_constant(live_values[i])) {
            enum cairn_status status = check_wide_constant(live_values[i], i, error);
            if (status != CAIRN_OK)
                return status;
            continue;
        }
        if (types_live_value(type, architecture, function, &instead) != LIVE_VALUE_CRASHES)
            continue;
        char *text = LLVMPrintTypeToString(type);
        enum cairn_status status =
            error_set(error, CAIRN_ERROR_UNSUPPORTED, i,
                      "LLVM %d cannot keep live value %u live: it is of type %.60s. Give it %s",
                      LLVM_VERSION_MAJOR, i, text, instead);
        LLVMDisposeMessage(text);
        return status;
    }
    return CAIRN_OK;
}

static void push_live_values(LLVMBuilderRef builder, LLVMModuleRef module,
                             LLVMValueRef *live_values, uint32_t count, struct operands *operands)
{
    enum cairn_architecture architecture = types_architecture(module);
    LLVMContextRef context = LLVMGetModuleContext(module);
    for (uint32_t i = 0; i < count; i++) {
        const char *instead;
        LLVMTypeRef type = LLVMTypeOf(live_values[i]);
        if (types_live_value(type, architecture, NULL, &instead) != LIVE_VALUE_WIDEN) {
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

/* ---- The intrinsics ---- */

static LLVMValueRef declare_intrinsic(LLVMModuleRef module, const char *name, LLVMTypeRef result)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    bool overloaded = LLVMIntrinsicIsOverloaded(id);
    return LLVMGetIntrinsicDeclaration(module, id, &result, overloaded ? 1 : 0);
}

static LLVMValueRef build_call(LLVMBuilderRef builder, LLVMValueRef intrinsic,
                               const struct operands *operands, uint32_t live_value_count,
                               const char *name)
{
    LLVMValueRef call = LLVMBuildCall2(builder, LLVMGlobalGetValueType(intrinsic), intrinsic,
                                       operands->values, operands->count, name);
    if (operands->widened)
        declared_types_write(call, operands->widths, live_value_count);
    return call;
}

/* ---- Stack maps ---- */

LLVMValueRef cairn_build_stackmap(LLVMBuilderRef builder, uint64_t id, uint32_t shadow_bytes,
                                  LLVMValueRef *live_values, uint32_t live_value_count,
                                  struct cairn_error *error)
{
    enum { FIXED_OPERANDS = 2 };
    struct operands operands;
    LLVMModuleRef module = check_position(builder, error);
    if (module == NULL ||
        check_live_values(builder, module, live_values, live_value_count, error) ||
        allocate_operands(&operands, (size_t)FIXED_OPERANDS + live_value_count, live_value_count,
                          error))
        return NULL;
    push(&operands, constant(module, 64, id));
    push(&operands, constant(module, 32, shadow_bytes));
    push_live_values(builder, module, live_values, live_value_count, &operands);
    LLVMValueRef intrinsic = declare_intrinsic(module, "llvm.experimental.stackmap", NULL);
    LLVMValueRef call = build_call(builder, intrinsic, &operands, live_value_count, "");
    free_operands(&operands);
    return call;
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

static bool is_pointer(LLVMTypeRef type) { return LLVMGetTypeKind(type) == LLVMPointerTypeKind; }

static bool is_register_integer(LLVMTypeRef type)
{
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) <= 64;
}

/* Checks that the LLVM in use supports the result type in patch points, or that the result is
 * returned in the register of an i64. */
static enum cairn_status check_result(LLVMTypeRef type, struct cairn_error *error)
{
    if (type == NULL || LLVMGetTypeKind(type) == LLVMVoidTypeKind || is_pointer(type) ||
        is_register_integer(type))
        return CAIRN_OK;
    if (LLVM_PATCHPOINT_RETURNS_ANY_TYPE && types_fits_register(type, CAIRN_ARCHITECTURE_X86_64))
        return CAIRN_OK;
    char *text = LLVMPrintTypeToString(type);
    enum cairn_status status = error_set(
        error, CAIRN_ERROR_UNSUPPORTED, 0,
        "LLVM %d has no patch point that returns %.60s: return void, an integer of up to 64 "
        "bits%s, "
        "or pass a pointer to where the target puts it",
        LLVM_VERSION_MAJOR, text,
        LLVM_PATCHPOINT_RETURNS_ANY_TYPE ? ", a pointer, a floating-point number, a 128-bit vector"
                                         : " or a pointer");
    LLVMDisposeMessage(text);
    return status;
}

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

static enum cairn_status check_target(LLVMModuleRef module,
                                      const struct cairn_patchpoint *patchpoint,
                                      struct cairn_error *error)
{
    LLVMValueRef target = patchpoint->target;
    if (target != NULL && !is_pointer(LLVMTypeOf(target)) &&
        !is_register_integer(LLVMTypeOf(target)))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "the target is neither a function nor a pointer nor an integer");
    LLVMValueRef pointer = target_pointer(module, target);
    const struct target_problem *problem = target_find_problem(pointer, types_architecture(module));
    if (problem != NULL)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0, "%s: give %s", problem->why,
                         problem->instead);
    uint32_t minimum = target_is_null(pointer) ? 0 : cairn_patchpoint_minimum_bytes(module, true);
    if (patchpoint->byte_count < minimum)
        return error_set(error, CAIRN_ERROR_RANGE, patchpoint->byte_count,
                         "%u bytes are too few for LLVM's call of a target: reserve %u or more",
                         patchpoint->byte_count, minimum);
    return CAIRN_OK;
}

static enum cairn_status check_patchpoint(LLVMModuleRef module,
                                          const struct cairn_patchpoint *patchpoint,
                                          struct cairn_error *error)
{
    if (patchpoint->arguments == NULL && patchpoint->argument_count > 0)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "%u arguments, but no array of them",
                         patchpoint->argument_count);
    enum cairn_status status = check_target(module, patchpoint, error);
    if (status != CAIRN_OK)
        return status;
    if (patchpoint->byte_count > CAIRN_PATCHPOINT_BYTES_MAX)
        return error_set(error, CAIRN_ERROR_RANGE, patchpoint->byte_count,
                         "%u bytes are more than any patch point needs: at most %u",
                         patchpoint->byte_count, CAIRN_PATCHPOINT_BYTES_MAX);
    return check_result(patchpoint->result_type, error);
}

/* Converts the result of an i64 patch point to the requested type. Both types are returned in the
 * same register. */
static LLVMValueRef narrow_result(LLVMBuilderRef builder, LLVMValueRef call, LLVMTypeRef type,
                                  const char *name)
{
    if (is_pointer(type))
        return LLVMBuildIntToPtr(builder, call, type, name);
    if (LLVMGetIntTypeWidth(type) < 64)
        return LLVMBuildTrunc(builder, call, type, name);
    return call;
}

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
    bool is_void = result == NULL || LLVMGetTypeKind(result) == LLVMVoidTypeKind;
    bool in_integer = !is_void && (is_pointer(result) || is_register_integer(result));
    LLVMTypeRef emitted =
        in_integer ? LLVMInt64TypeInContext(LLVMGetModuleContext(module)) : result;
    LLVMValueRef intrinsic = declare_intrinsic(
        module, is_void ? "llvm.experimental.patchpoint.void" : "llvm.experimental.patchpoint.i64",
        emitted);
    const char *name = patchpoint->name == NULL || is_void ? "" : patchpoint->name;
    bool narrows = in_integer && result != emitted;
    LLVMValueRef call =
        build_call(builder, intrinsic, operands, patchpoint->live_value_count, narrows ? "" : name);
    LLVMSetInstructionCallConv(call, patchpoint->calling_convention);
    return in_integer ? narrow_result(builder, call, result, name) : call;
}

LLVMValueRef cairn_build_patchpoint(LLVMBuilderRef builder,
                                    const struct cairn_patchpoint *patchpoint,
                                    struct cairn_error *error)
{
    enum { FIXED_OPERANDS = 4 };
    struct operands operands;
    LLVMModuleRef module = check_position(builder, error);
    if (module == NULL)
        return NULL;
    if (patchpoint == NULL) {
        error_set(error, CAIRN_ERROR_ARGUMENT, 0, "there is no patch point to build");
        return NULL;
    }
    size_t count =
        (size_t)FIXED_OPERANDS + patchpoint->argument_count + patchpoint->live_value_count;
    if (check_patchpoint(module, patchpoint, error) ||
        check_live_values(builder, module, patchpoint->live_values, patchpoint->live_value_count,
                          error) ||
        allocate_operands(&operands, count, patchpoint->live_value_count, error))
        return NULL;
    LLVMValueRef result = build_patchpoint(builder, module, patchpoint, &operands);
    free_operands(&operands);
    return result;
}

/* ---- Functions ---- */

static void add_enum_attribute(LLVMValueRef function, const char *name, uint64_t value)
{
    LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(function));
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(context, kind, value));
}

static void add_string_attribute(LLVMValueRef function, const char *name, const char *value)
{
    LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(function));
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateStringAttribute(context, name, (unsigned)strlen(name), value,
                                                      (unsigned)strlen(value)));
}

void cairn_prepare_function(LLVMValueRef function)
{
    add_enum_attribute(function, "uwtable", VERSION_UWTABLE_VALUE);
    add_string_attribute(function, "frame-pointer", "all");
}
