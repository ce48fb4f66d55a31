/* SPDX-License-Identifier: MIT */
#include "llvm/ir.h"

#include <stdio.h>
#include <string.h>

LLVMValueRef ir_next_instruction(LLVMValueRef function, LLVMValueRef previous)
{
    LLVMValueRef next = previous == NULL ? NULL : LLVMGetNextInstruction(previous);
    if (next != NULL)
        return next;
    LLVMBasicBlockRef block = previous == NULL
                                  ? LLVMGetFirstBasicBlock(function)
                                  : LLVMGetNextBasicBlock(LLVMGetInstructionParent(previous));
    for (; next == NULL && block != NULL; block = LLVMGetNextBasicBlock(block))
        next = LLVMGetFirstInstruction(block);
    return next;
}

LLVMValueRef ir_next_in_module(LLVMModuleRef module, LLVMValueRef previous)
{
    LLVMValueRef next = previous == NULL ? NULL : LLVMGetNextInstruction(previous);
    if (next != NULL)
        return next;
    LLVMValueRef function =
        previous == NULL ? LLVMGetFirstFunction(module) : ir_function_of(previous);
    for (; function != NULL; function = LLVMGetNextFunction(function))
        if ((previous = ir_next_instruction(function, previous)) != NULL)
            return previous;
    return NULL;
}

LLVMValueRef ir_function_of(LLVMValueRef instruction)
{
    LLVMBasicBlockRef block = LLVMGetInstructionParent(instruction);
    return block == NULL ? NULL : LLVMGetBasicBlockParent(block);
}

LLVMValueRef ir_owner(LLVMValueRef value)
{
    if (LLVMIsAArgument(value) != NULL)
        return LLVMGetParamParent(value);
    return LLVMIsAInstruction(value) != NULL ? ir_function_of(value) : NULL;
}

const char *ir_function_name(LLVMValueRef instruction)
{
    size_t length;
    return LLVMGetValueName2(ir_function_of(instruction), &length);
}

bool ir_is_call(LLVMValueRef instruction)
{
    LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
    return opcode == LLVMCall || opcode == LLVMInvoke;
}

bool ir_is_float_arithmetic(LLVMOpcode opcode)
{
    return opcode == LLVMFAdd || opcode == LLVMFSub || opcode == LLVMFMul || opcode == LLVMFDiv ||
           opcode == LLVMFRem || opcode == LLVMFCmp || opcode == LLVMFPTrunc ||
           opcode == LLVMFPExt || opcode == LLVMSIToFP || opcode == LLVMUIToFP ||
           opcode == LLVMFPToSI || opcode == LLVMFPToUI;
}

LLVMValueRef ir_called_function(LLVMValueRef instruction)
{
    return ir_is_call(instruction) ? LLVMIsAFunction(LLVMGetCalledValue(instruction)) : NULL;
}

bool ir_is_intrinsic(LLVMValueRef function, const char *prefix)
{
    size_t length;
    return function != NULL && LLVMGetIntrinsicID(function) != 0 &&
           strncmp(LLVMGetValueName2(function, &length), prefix, strlen(prefix)) == 0;
}

LLVMAttributeRef ir_attribute(LLVMValueRef function, LLVMAttributeIndex index, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    return kind == 0 ? NULL : LLVMGetEnumAttributeAtIndex(function, index, kind);
}

const char *const ir_passing_attributes[] = {"byval",      "sret",      "inreg",
                                             "nest",       "swiftself", "swifterror",
                                             "swiftasync", "zeroext",   "signext"};
const size_t ir_passing_attribute_count =
    sizeof ir_passing_attributes / sizeof *ir_passing_attributes;

const char *ir_string_attribute(LLVMValueRef function, const char *name, unsigned *length)
{
    if (function == NULL)
        return NULL;
    LLVMAttributeRef found =
        LLVMGetStringAttributeAtIndex(function, IR_FUNCTION, name, (unsigned)strlen(name));
    return found == NULL ? NULL : LLVMGetStringAttributeValue(found, length);
}

void ir_set_attribute(LLVMValueRef function, const char *name, uint64_t value)
{
    LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(function));
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(function, IR_FUNCTION, LLVMCreateEnumAttribute(context, kind, value));
}

void ir_set_string_attribute(LLVMValueRef function, const char *name, const char *value)
{
    LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(function));
    LLVMAddAttributeAtIndex(function, IR_FUNCTION,
                            LLVMCreateStringAttribute(context, name, (unsigned)strlen(name), value,
                                                      (unsigned)strlen(value)));
}

unsigned ir_flatten(LLVMTypeRef type, LLVMTypeRef *types, unsigned max)
{
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    unsigned count = 0;
    if (kind == LLVMStructTypeKind) {
        for (unsigned i = 0; i < LLVMCountStructElementTypes(type) && count < max; i++)
            count += ir_flatten(LLVMStructGetTypeAtIndex(type, i), types + count, max - count);
    } else if (kind == LLVMArrayTypeKind) {
        for (unsigned i = 0; i < LLVMGetArrayLength(type) && count < max; i++) {
            unsigned added = ir_flatten(LLVMGetElementType(type), types + count, max - count);
            if (added == 0)
                return count; /* its elements have no values, however many there are */
            count += added;
        }
    } else if (max > 0) {
        types[count++] = type;
    }
    return count;
}

bool ir_is_integer(LLVMTypeRef type, unsigned bits)
{
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) <= bits;
}

const char *ir_print_type(LLVMTypeRef type, char *text, size_t size)
{
    char *printed = LLVMPrintTypeToString(type);
    snprintf(text, size, "%s", printed);
    LLVMDisposeMessage(printed);
    return text;
}

void ir_join_lines(char *text)
{
    size_t length = strlen(text);
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
        text[--length] = '\0';
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ')
            *text = ' ';
}
