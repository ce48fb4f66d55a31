/* SPDX-License-Identifier: MIT */
#include "bench/ic_code.h"

#include "bench/ic_heap.h"

#include <cairn/llvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct building {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMValueRef function;
    LLVMTypeRef int32;
    LLVMTypeRef int64;
    LLVMTypeRef bytes; /* type of pointers */
};

static LLVMValueRef constant(const struct building *building, uint64_t value)
{
    return LLVMConstInt(building->int64, value, 0);
}

static LLVMBasicBlockRef append(const struct building *building, const char *name)
{
    return LLVMAppendBasicBlockInContext(building->context, building->function, name);
}

/* Builds a pointer to `type` at an offset in bytes from a pointer. */
static LLVMValueRef place_at(const struct building *building, LLVMValueRef pointer,
                             LLVMValueRef offset, LLVMTypeRef type)
{
    LLVMTypeRef byte = LLVMInt8TypeInContext(building->context);
    LLVMValueRef place = LLVMBuildGEP2(building->builder, byte, pointer, &offset, 1, "");
    return LLVMBuildBitCast(building->builder, place, LLVMPointerType(type, 0), "");
}

static LLVMValueRef load_at(const struct building *building, LLVMValueRef pointer, uint64_t offset,
                            LLVMTypeRef type)
{
    LLVMValueRef place = place_at(building, pointer, constant(building, offset), type);
    return LLVMBuildLoad2(building->builder, type, place, "");
}

/* ---- Sites ---- */

static uint32_t bytes_of(const struct building *building, enum ic_loop_kind kind)
{
    uint32_t bytes = cairn_patchpoint_inline_bytes(building->module);
    if (kind == IC_LOOP_SITE_NARROW)
        return cairn_patchpoint_minimum_bytes(building->module, false);
    bool is_form = kind == IC_LOOP_SITE_FORM || kind == IC_LOOP_SITE_FORM_STORE ||
                   kind == IC_LOOP_SITE_ELEMENT;
    return is_form ? 2 * bytes : bytes;
}

static LLVMValueRef build_site(const struct building *building, const struct ic_loop *loop,
                               LLVMValueRef object, LLVMValueRef stored)
{
    struct cairn_error error;
    LLVMValueRef arguments[] = {object, stored};
    bool stores = loop->kind == IC_LOOP_SITE_STORE || loop->kind == IC_LOOP_SITE_FORM_STORE;
    const struct cairn_patchpoint patchpoint = {
        .id = loop->id,
        .byte_count = bytes_of(building, loop->kind),
        .result_type = stores ? NULL : building->int64,
        .calling_convention =
            loop->kind == IC_LOOP_SITE_C ? 0 : (uint32_t)CAIRN_CALLING_CONVENTION_ANYREG,
        .arguments = arguments,
        .argument_count = stores || loop->kind == IC_LOOP_SITE_ELEMENT ? 2 : 1,
    };
    LLVMValueRef result = cairn_build_patchpoint(building->builder, &patchpoint, &error);
    if (result == NULL) {
        fprintf(stderr, "cairn-bench-ic: %s\n", error.message);
        exit(1);
    }
    return stores ? constant(building, 1) : result;
}

/* ---- The same accesses in the IR ---- */

/* Marks a branch as front ends do for cases that are rarely executed. */
static void expect_true(const struct building *building, LLVMValueRef branch)
{
    LLVMMetadataRef weights[] = {
        LLVMMDStringInContext2(building->context, "branch_weights", strlen("branch_weights")),
        LLVMValueAsMetadata(LLVMConstInt(building->int32, 2000, 0)),
        LLVMValueAsMetadata(LLVMConstInt(building->int32, 1, 0)),
    };
    LLVMMetadataRef node = LLVMMDNodeInContext2(building->context, weights, 3);
    unsigned kind = LLVMGetMDKindIDInContext(building->context, "prof", 4);
    LLVMSetMetadata(branch, kind, LLVMMetadataAsValue(building->context, node));
}

static LLVMValueRef build_call(const struct building *building, LLVMValueRef object)
{
    LLVMTypeRef parameters[] = {building->bytes};
    LLVMTypeRef type = LLVMFunctionType(building->int64, parameters, 1, 0);
    LLVMValueRef address = constant(building, (uintptr_t)ic_look_up);
    LLVMValueRef function =
        LLVMBuildIntToPtr(building->builder, address, LLVMPointerType(type, 0), "");
    return LLVMBuildCall2(building->builder, type, function, &object, 1, "");
}

/* Builds the access of a hit. It is a load if `stored` is NULL. */
static LLVMValueRef build_hit(const struct building *building, LLVMValueRef object,
                              LLVMValueRef stored, bool calls, size_t shape)
{
    if (calls) {
        LLVMValueRef method = LLVMGetNamedFunction(building->module, ic_method_name);
        return LLVMBuildCall2(building->builder, LLVMGlobalGetValueType(method), method, &object, 1,
                              "");
    }
    if (stored == NULL)
        return load_at(building, object, ic_offsets[shape], building->int64);
    LLVMValueRef offset = constant(building, IC_WRITTEN_OFFSET);
    LLVMBuildStore(building->builder, stored, place_at(building, object, offset, building->int64));
    return constant(building, 1);
}

static LLVMValueRef build_guards(const struct building *building, LLVMValueRef object,
                                 LLVMValueRef stored, bool calls, size_t count)
{
    LLVMValueRef results[IC_SHAPES + 1];
    LLVMBasicBlockRef from[IC_SHAPES + 1];
    LLVMBasicBlockRef done = append(building, "done");
    LLVMValueRef shape = load_at(building, object, 0, building->int32);
    for (size_t i = 0; i < count; i++) {
        LLVMValueRef key = LLVMConstInt(building->int32, ic_shapes[i], 0);
        LLVMValueRef is_equal = LLVMBuildICmp(building->builder, LLVMIntEQ, shape, key, "");
        LLVMBasicBlockRef other = append(building, "other");
        from[i] = append(building, "hit");
        LLVMValueRef branch = LLVMBuildCondBr(building->builder, is_equal, from[i], other);
        if (i + 1 == count)
            expect_true(building, branch);
        LLVMPositionBuilderAtEnd(building->builder, from[i]);
        results[i] = build_hit(building, object, stored, calls, i);
        LLVMBuildBr(building->builder, done);
        LLVMPositionBuilderAtEnd(building->builder, other);
    }
    from[count] = LLVMGetInsertBlock(building->builder);
    results[count] = build_call(building, object);
    LLVMBuildBr(building->builder, done);
    LLVMPositionBuilderAtEnd(building->builder, done);
    LLVMValueRef result = LLVMBuildPhi(building->builder, building->int64, "");
    LLVMAddIncoming(result, results, from, (unsigned)count + 1);
    return result;
}

/* ---- More than a guard and an access, in the IR ---- */

static LLVMValueRef build_prototype(const struct building *building)
{
    LLVMValueRef address = constant(building, (uintptr_t)&ic_prototype);
    return LLVMBuildIntToPtr(building->builder, address, building->bytes, "");
}

/* Builds the condition that is tested after the object's shape. */
static LLVMValueRef build_second(const struct building *building, enum ic_loop_kind kind,
                                 LLVMValueRef object, LLVMValueRef index)
{
    LLVMBuilderRef builder = building->builder;
    if (kind == IC_LOOP_WRITTEN_PROTOTYPE) {
        LLVMValueRef shape = load_at(building, build_prototype(building), 0, building->int32);
        LLVMValueRef key = LLVMConstInt(building->int32, ic_prototype.shape, 0);
        return LLVMBuildICmp(builder, LLVMIntEQ, shape, key, "");
    }
    size_t offset = offsetof(struct ic_object, flags);
    LLVMValueRef length = load_at(building, object, offset, building->int32);
    LLVMValueRef wide = LLVMBuildZExt(builder, length, building->int64, "");
    return LLVMBuildICmp(builder, LLVMIntULT, index, wide, "");
}

static LLVMValueRef build_form_hit(const struct building *building, enum ic_loop_kind kind,
                                   LLVMValueRef object, LLVMValueRef value)
{
    LLVMBuilderRef builder = building->builder;
    if (kind == IC_LOOP_WRITTEN_PROTOTYPE)
        return load_at(building, build_prototype(building), ic_offsets[0], building->int64);
    if (kind == IC_LOOP_WRITTEN_ELEMENT) {
        LLVMValueRef offset = LLVMBuildShl(builder, value, constant(building, 3), "");
        LLVMValueRef first = constant(building, offsetof(struct ic_object, fields));
        offset = LLVMBuildAdd(builder, offset, first, "");
        LLVMValueRef place = place_at(building, object, offset, building->int64);
        return LLVMBuildLoad2(builder, building->int64, place, "");
    }
    LLVMValueRef key = LLVMConstInt(building->int32, ic_shapes[0], 0);
    LLVMValueRef place = place_at(building, object, constant(building, 0), building->int32);
    LLVMValueRef result = build_hit(building, object, value, false, 0);
    /* The shape stays the same, for the next pass. A store that is not volatile might be removed.
     */
    LLVMSetVolatile(LLVMBuildStore(builder, key, place), 1);
    return result;
}

static LLVMValueRef build_form(const struct building *building, enum ic_loop_kind kind,
                               LLVMValueRef object, LLVMValueRef value)
{
    LLVMBuilderRef builder = building->builder;
    bool has_second = kind != IC_LOOP_WRITTEN_TRANSITION;
    LLVMBasicBlockRef second = has_second ? append(building, "second") : NULL;
    LLVMBasicBlockRef hit = append(building, "hit");
    LLVMBasicBlockRef other = append(building, "other");
    LLVMBasicBlockRef done = append(building, "done");
    LLVMValueRef shape = load_at(building, object, 0, building->int32);
    LLVMValueRef key = LLVMConstInt(building->int32, ic_shapes[0], 0);
    LLVMValueRef is_equal = LLVMBuildICmp(builder, LLVMIntEQ, shape, key, "");
    expect_true(building, LLVMBuildCondBr(builder, is_equal, has_second ? second : hit, other));
    if (has_second) {
        LLVMPositionBuilderAtEnd(builder, second);
        LLVMValueRef is_second = build_second(building, kind, object, value);
        expect_true(building, LLVMBuildCondBr(builder, is_second, hit, other));
    }
    LLVMPositionBuilderAtEnd(builder, hit);
    LLVMValueRef results[] = {build_form_hit(building, kind, object, value), NULL};
    LLVMBuildBr(builder, done);
    LLVMPositionBuilderAtEnd(builder, other);
    results[1] = build_call(building, object);
    LLVMBuildBr(builder, done);
    LLVMPositionBuilderAtEnd(builder, done);
    LLVMValueRef result = LLVMBuildPhi(builder, building->int64, "");
    LLVMBasicBlockRef from[] = {hit, other};
    LLVMAddIncoming(result, results, from, 2);
    return result;
}

static LLVMValueRef build_index(const struct building *building, LLVMValueRef i)
{
    return LLVMBuildAnd(building->builder, i, constant(building, IC_ELEMENTS - 1), "index");
}

/* ---- The loop ---- */

/* Builds the access to one object. Returns the value that is added to the sum. */
static LLVMValueRef build_body(const struct building *building, const struct ic_loop *loop,
                               LLVMValueRef object, LLVMValueRef i)
{
    switch (loop->kind) {
    case IC_LOOP_WRITTEN:
        return build_guards(building, object, NULL, false, 1);
    case IC_LOOP_WRITTEN_TWO:
        return build_guards(building, object, NULL, false, 2);
    case IC_LOOP_WRITTEN_FOUR:
        return build_guards(building, object, NULL, false, IC_SHAPES);
    case IC_LOOP_WRITTEN_STORE:
        return build_guards(building, object, i, false, 1);
    case IC_LOOP_WRITTEN_CALL:
        return build_guards(building, object, NULL, true, 1);
    case IC_LOOP_WRITTEN_TRANSITION:
    case IC_LOOP_WRITTEN_PROTOTYPE:
        return build_form(building, loop->kind, object, i);
    case IC_LOOP_WRITTEN_ELEMENT:
        return build_form(building, loop->kind, object, build_index(building, i));
    case IC_LOOP_SITE_ELEMENT:
        return build_site(building, loop, object, build_index(building, i));
    case IC_LOOP_CALLED:
        return build_call(building, object);
    default:
        return build_site(building, loop, object, i);
    }
}

static void begin_function(struct building *building, const char *name)
{
    LLVMTypeRef parameters[] = {LLVMPointerType(building->bytes, 0), building->int64};
    LLVMTypeRef type = LLVMFunctionType(building->int64, parameters, 2, 0);
    building->function = LLVMAddFunction(building->module, name, type);
    cairn_prepare_function(building->function);
    /* The alignment makes the loop independent of the code that was compiled before it. */
    LLVMSetAlignment(building->function, 64);
}

/* The values that each iteration of the loop gets from the previous one. */
struct turn {
    LLVMValueRef i;
    LLVMValueRef sum;
    LLVMValueRef object; /* of loops along a list */
};

static LLVMValueRef build_object(const struct building *building, LLVMValueRef number)
{
    LLVMValueRef objects = LLVMGetParam(building->function, 0);
    LLVMValueRef place = LLVMBuildGEP2(building->builder, building->bytes, objects, &number, 1, "");
    return LLVMBuildLoad2(building->builder, building->bytes, place, "object");
}

/* Builds one iteration. Returns the new sum, or along a list the address of the next object. */
static LLVMValueRef build_turn(const struct building *building, const struct ic_loop *loop,
                               const struct turn *turn)
{
    if (loop->is_along_list)
        return build_body(building, loop, turn->object, turn->i);
    LLVMValueRef object = build_object(building, turn->i);
    LLVMValueRef body = build_body(building, loop, object, turn->i);
    return LLVMBuildAdd(building->builder, turn->sum, body, "");
}

/* Builds no-ops, which are executed once, so that the loop is elsewhere in its cache line. */
static void build_padding(const struct building *building, unsigned count)
{
    static const char nop[] = "nop\n";
    char text[256] = "";
    char constraints[] = "";
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(building->context), NULL, 0, 0);
    for (unsigned i = 0; i < count && strlen(text) + sizeof nop < sizeof text; i++)
        strcat(text, nop);
    LLVMValueRef assembly = LLVMGetInlineAsm(type, text, strlen(text), constraints, 0, 1, 0,
                                             LLVMInlineAsmDialectATT, 0);
    LLVMBuildCall2(building->builder, type, assembly, NULL, 0, "");
}

static void build_loop(struct building *building, const struct ic_loop *loop)
{
    LLVMBuilderRef builder = building->builder;
    begin_function(building, loop->name);
    LLVMBasicBlockRef entry = append(building, "entry");
    LLVMBasicBlockRef head = append(building, "loop");
    LLVMValueRef zero = constant(building, 0);
    LLVMPositionBuilderAtEnd(builder, entry);
    LLVMValueRef first = build_object(building, zero);
    if (loop->padding > 0)
        build_padding(building, loop->padding);
    LLVMBuildBr(builder, head);

    LLVMPositionBuilderAtEnd(builder, head);
    const struct turn turn = {
        .i = LLVMBuildPhi(builder, building->int64, "i"),
        .sum = LLVMBuildPhi(builder, building->int64, "sum"),
        .object = LLVMBuildPhi(builder, building->bytes, "object"),
    };
    LLVMValueRef more = build_turn(building, loop, &turn);
    LLVMValueRef next_object = LLVMBuildIntToPtr(builder, more, building->bytes, "");
    LLVMValueRef next = LLVMBuildAdd(builder, turn.i, constant(building, 1), "");
    LLVMBasicBlockRef from[] = {entry, LLVMGetInsertBlock(builder)};
    LLVMBasicBlockRef end = append(building, "end");
    LLVMValueRef count = LLVMGetParam(building->function, 1);
    LLVMBuildCondBr(builder, LLVMBuildICmp(builder, LLVMIntEQ, next, count, ""), end, head);
    LLVMAddIncoming(turn.i, (LLVMValueRef[]){zero, next}, from, 2);
    LLVMAddIncoming(turn.sum, (LLVMValueRef[]){zero, more}, from, 2);
    LLVMAddIncoming(turn.object, (LLVMValueRef[]){first, next_object}, from, 2);

    LLVMPositionBuilderAtEnd(builder, end);
    LLVMBuildRet(builder, more);
}

const char ic_method_name[] = "method";

static void build_method(struct building *building)
{
    LLVMTypeRef type = LLVMFunctionType(building->int64, &building->bytes, 1, 0);
    building->function = LLVMAddFunction(building->module, ic_method_name, type);
    cairn_prepare_function(building->function);
    LLVMSetAlignment(building->function, 64);
    LLVMPositionBuilderAtEnd(building->builder, append(building, "entry"));
    LLVMValueRef object = LLVMGetParam(building->function, 0);
    LLVMBuildRet(building->builder, load_at(building, object, ic_offsets[0], building->int64));
}

LLVMModuleRef ic_build_module(LLVMContextRef context, const struct ic_loop *loops, size_t count)
{
    struct building building = {
        .context = context,
        .module = LLVMModuleCreateWithNameInContext("bench", context),
        .builder = LLVMCreateBuilderInContext(context),
        .int32 = LLVMInt32TypeInContext(context),
        .int64 = LLVMInt64TypeInContext(context),
        .bytes = LLVMPointerType(LLVMInt8TypeInContext(context), 0),
    };
    build_method(&building);
    for (size_t i = 0; i < count; i++)
        build_loop(&building, &loops[i]);
    LLVMDisposeBuilder(building.builder);
    return building.module;
}
