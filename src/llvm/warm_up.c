/* SPDX-License-Identifier: MIT */
#include "llvm/warm_up.h"

#include <cairn/llvm.h>

/* The function, while it is built: i64 (pointer, i64). */
struct function {
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMValueRef function;
    LLVMTypeRef word;
};

static LLVMValueRef constant(const struct function *in, unsigned long long value)
{
    return LLVMConstInt(in->word, value, 0);
}

/* Builds an access of an object's word that checks its tag first. Returns the word. */
static LLVMValueRef build_access(const struct function *in, LLVMValueRef index,
                                 LLVMBasicBlockRef rare)
{
    LLVMBuilderRef builder = in->builder;
    LLVMContextRef context = LLVMGetModuleContext(in->module);
    LLVMBasicBlockRef next = LLVMAppendBasicBlockInContext(context, in->function, "");
    LLVMValueRef address =
        LLVMBuildGEP2(builder, in->word, LLVMGetParam(in->function, 0), &index, 1, "");
    LLVMValueRef loaded = LLVMBuildLoad2(builder, in->word, address, "");
    LLVMValueRef tag = LLVMBuildAnd(builder, loaded, constant(in, 7), "");
    LLVMValueRef fits = LLVMBuildICmp(builder, LLVMIntEQ, tag, constant(in, 0), "");
    LLVMBuildCondBr(builder, fits, next, rare);
    LLVMPositionBuilderAtEnd(builder, next);
    LLVMBuildStore(builder, LLVMBuildAdd(builder, loaded, constant(in, 8), ""), address);
    return loaded;
}

/* Builds a sum of floating-point numbers, and a call. Returns the result as a word. */
static LLVMValueRef build_arithmetic(const struct function *in, LLVMValueRef left,
                                     LLVMValueRef right)
{
    LLVMBuilderRef builder = in->builder;
    LLVMTypeRef number = LLVMDoubleTypeInContext(LLVMGetModuleContext(in->module));
    LLVMTypeRef argument = in->word;
    LLVMTypeRef type = LLVMFunctionType(in->word, &argument, 1, 0);
    LLVMValueRef callee =
        LLVMBuildIntToPtr(builder, constant(in, 4096), LLVMPointerType(type, 0), "");
    LLVMValueRef sum = LLVMBuildFAdd(builder, LLVMBuildBitCast(builder, left, number, ""),
                                     LLVMBuildSIToFP(builder, right, number, ""), "");
    LLVMValueRef word = LLVMBuildBitCast(builder, sum, in->word, "");
    return LLVMBuildCall2(builder, type, callee, &word, 1, "");
}

/* Builds the end of the function for rare cases: a patch point whose record has live values. */
static void build_rare(const struct function *in, LLVMBasicBlockRef rare)
{
    LLVMValueRef values[] = {LLVMGetParam(in->function, 1), constant(in, 1)};
    const struct cairn_patchpoint patchpoint = {
        .id = 1,
        .byte_count = cairn_patchpoint_minimum_bytes(in->module, false),
        .result_type = in->word,
        .arguments = values,
        .argument_count = 1,
        .live_values = values,
        .live_value_count = 2,
    };
    LLVMPositionBuilderAtEnd(in->builder, rare);
    LLVMValueRef result = cairn_build_patchpoint(in->builder, &patchpoint, NULL);
    LLVMBuildRet(in->builder, result == NULL ? values[0] : result);
}

static void build_loop(const struct function *in, LLVMBasicBlockRef entry)
{
    LLVMContextRef context = LLVMGetModuleContext(in->module);
    LLVMBuilderRef builder = in->builder;
    LLVMBasicBlockRef loop = LLVMAppendBasicBlockInContext(context, in->function, "");
    LLVMBasicBlockRef rare = LLVMAppendBasicBlockInContext(context, in->function, "");
    LLVMBasicBlockRef end = LLVMAppendBasicBlockInContext(context, in->function, "");
    LLVMPositionBuilderAtEnd(builder, entry);
    LLVMBuildBr(builder, loop);
    LLVMPositionBuilderAtEnd(builder, loop);
    LLVMValueRef index = LLVMBuildPhi(builder, in->word, "");
    LLVMValueRef loaded = build_access(in, index, rare);
    LLVMValueRef result = build_arithmetic(in, loaded, index);
    LLVMValueRef next = LLVMBuildNSWAdd(builder, index, constant(in, 1), "");
    LLVMValueRef goes_on =
        LLVMBuildICmp(builder, LLVMIntSLT, next, LLVMGetParam(in->function, 1), "");
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(builder);
    LLVMBuildCondBr(builder, goes_on, loop, end);
    LLVMValueRef first = constant(in, 0);
    LLVMAddIncoming(index, &first, &entry, 1);
    LLVMAddIncoming(index, &next, &latch, 1);
    LLVMPositionBuilderAtEnd(builder, end);
    LLVMBuildRet(builder, result);
    build_rare(in, rare);
}

LLVMModuleRef warm_up_module(LLVMContextRef context)
{
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("warm-up", context);
    LLVMTypeRef word = LLVMInt64TypeInContext(context);
    LLVMTypeRef parameters[] = {LLVMPointerType(word, 0), word};
    LLVMTypeRef type = LLVMFunctionType(word, parameters, 2, 0);
    const struct function function = {
        .module = module,
        .builder = LLVMCreateBuilderInContext(context),
        .function = LLVMAddFunction(module, "warm_up", type),
        .word = word,
    };
    build_loop(&function, LLVMAppendBasicBlockInContext(context, function.function, ""));
    LLVMDisposeBuilder(function.builder);
    return module;
}
