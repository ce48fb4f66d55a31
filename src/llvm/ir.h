/*
 * llvm/ir.h - walks over IR, and reads names, attributes and types, with one call for each.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_IR_H
#define LLVM_IR_H

#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the instruction of the function that follows `previous`, also in the next block; the
 * first one if `previous` is NULL. NULL at the end. */
LLVMValueRef ir_next_instruction(LLVMValueRef function, LLVMValueRef previous);

/* Returns the module's instruction that follows `previous`, also in the next function; the first
 * one if `previous` is NULL. NULL at the end. */
LLVMValueRef ir_next_in_module(LLVMModuleRef module, LLVMValueRef previous);

/* Returns the function that contains the instruction; NULL if it is not in a function. */
LLVMValueRef ir_function_of(LLVMValueRef instruction);

/* Returns the function that the value belongs to, as an instruction or a parameter; NULL for
 * constants and other values that belong to none. */
LLVMValueRef ir_owner(LLVMValueRef value);

/* Returns the name of the function that contains the instruction; "" if the function has none. */
const char *ir_function_name(LLVMValueRef instruction);

/* Whether the instruction is a call or an invoke. */
bool ir_is_call(LLVMValueRef instruction);

/* Whether the instruction computes with floating-point numbers, and so reads the floating-point
 * control register. Instructions that only move a number or change its sign do not. */
bool ir_is_float_arithmetic(LLVMOpcode opcode);

/* Returns the function that a call or an invoke names; NULL for other callees and instructions. */
LLVMValueRef ir_called_function(LLVMValueRef instruction);

/* Whether the function is an intrinsic whose name begins with the prefix. `function` may be NULL.
 */
bool ir_is_intrinsic(LLVMValueRef function, const char *prefix);

/* Returns an attribute of the function, or of its result or a parameter; NULL if it has none. */
LLVMAttributeRef ir_attribute(LLVMValueRef function, LLVMAttributeIndex index, const char *name);

/* The names of the attributes of parameters that decide how an argument is passed. */
extern const char *const ir_passing_attributes[];
extern const size_t ir_passing_attribute_count;

/* Returns the value of a function's string attribute; NULL if it has none, or `function` is NULL.
 * The value need not end with a zero byte. */
const char *ir_string_attribute(LLVMValueRef function, const char *name, unsigned *length);

/* Sets a function's attribute, which has an integer value or 0. */
void ir_set_attribute(LLVMValueRef function, const char *name, uint64_t value);

/* Sets a function's string attribute. */
void ir_set_string_attribute(LLVMValueRef function, const char *name, const char *value);

/* The index of attributes of the function itself. LLVM declares it as a negative enumerator. */
#define IR_FUNCTION ((LLVMAttributeIndex)LLVMAttributeFunctionIndex)

/* Writes the types of the values in a type, in order: the elements of structures and arrays, or the
 * type itself. Returns their number; `max` if there are as many or more. */
unsigned ir_flatten(LLVMTypeRef type, LLVMTypeRef *types, unsigned max);

/* Whether the type is an integer of at most `bits` bits. */
bool ir_is_integer(LLVMTypeRef type, unsigned bits);

/* Prints the type, truncated to `size` - 1 characters. Returns `text`. */
const char *ir_print_type(LLVMTypeRef type, char *text, size_t size);

/* Makes one line of a message of LLVM, which may show the source in further lines. */
void ir_join_lines(char *text);

#endif
