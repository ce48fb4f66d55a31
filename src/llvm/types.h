/*
 * llvm/types.h - converts LLVM's types to Cairn's, and tells how the code generator can handle
 * them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_TYPES_H
#define LLVM_TYPES_H

#include <cairn/architecture.h>
#include <cairn/declaration.h>
#include <llvm-c/Core.h>
#include <stdbool.h>

/* Returns the types of a function's results. They are not known if there are more than
 * CAIRN_FUNCTION_RESULTS_MAX. */
struct cairn_results types_function_results(LLVMValueRef function);

/* Does the same for a returned type. */
struct cairn_results types_results(LLVMTypeRef returned);

struct cairn_type types_convert(LLVMTypeRef type);

/* Attaches the types that live values had before they were widened, as metadata `!cairn.types`: one
 * string per live value, such as "i1", or "" if the operand's own type applies. Printing, parsing
 * and cloning preserve it. `widths[i]` is the width that live value i had, or 0. */
void types_write_declared(LLVMValueRef call, const unsigned *widths, unsigned count);

/* Replaces the types of a call's widened live values by their declared types. Metadata is ignored
 * if it does not match the call, or if a declared integer is not smaller than the operand. */
void types_read_declared(LLVMValueRef call, struct cairn_type *types, unsigned count);

/* Whether a register holds values of the type, if the LLVM in use compiles for the architecture's
 * default features. The type must not be a structure or array. */
bool types_fits_register(LLVMTypeRef type, enum cairn_architecture architecture);

/* Whether LLVM leaves a value of the type out of records while it is in registers: x86_fp80 is on
 * the x87 stack then. */
bool types_is_unrecorded(LLVMTypeRef type, enum cairn_architecture architecture);

/* Returns NULL if LLVM can keep a live value of the type, otherwise what to write instead, in
 * static memory. `function` contains the value; its features determine the widest vectors. It may
 * be NULL. Builders widen integers of up to 64 bits that LLVM cannot keep. */
const char *types_live_value(LLVMTypeRef type, enum cairn_architecture architecture,
                             LLVMValueRef function);

/* Returns NULL if LLVM records the integer constant of a stack map or a patch point correctly,
 * otherwise what it would do, in static memory. */
const char *types_live_constant(LLVMValueRef constant);

/* What to write instead of a constant that LLVM does not record. */
#define LIVE_CONSTANT_INSTEAD "two 64-bit halves, or a pointer to it"

/* Returns NULL if LLVM can keep the value of a statepoint, otherwise what to write instead, in
 * static memory. LLVM keeps it in memory, so it need not fit into a register. */
const char *types_statepoint_value(LLVMTypeRef type, enum cairn_architecture architecture);

/* Whether a statepoint's "gc-transition" bundle may contain values of the type. */
bool types_transition_value(LLVMTypeRef type, enum cairn_architecture architecture);

/* Returns the architecture of the module's triple; the host's if the module has no triple. */
enum cairn_architecture types_architecture(LLVMModuleRef module);

/* Returns the architecture of a triple; UNKNOWN if Cairn does not know it. */
enum cairn_architecture types_triple_architecture(const char *triple);

/* Whether LLVM writes ELF objects for the triple. */
bool types_triple_has_elf(const char *triple);

#endif
