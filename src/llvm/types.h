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

/* Whether a register holds values of the type, if the LLVM in use compiles for the architecture's
 * default features. The type must not be a structure or array. */
bool types_fits_register(LLVMTypeRef type, enum cairn_architecture architecture);

/* What to do with a live value of a type, so that the LLVM in use does not crash on it. */
enum live_value_treatment {
    LIVE_VALUE_FITS,
    LIVE_VALUE_WIDEN, /* for integers: widen it to 32 or 64 bits */
    LIVE_VALUE_CRASHES
};

/* Determines how to handle a live value. If it crashes LLVM, `instead` says what to write instead,
 * in static memory. `function` contains the value; its features determine the widest vectors. It
 * may be NULL. */
enum live_value_treatment types_live_value(LLVMTypeRef type, enum cairn_architecture architecture,
                                           LLVMValueRef function, const char **instead);

/* Does the same for an integer constant that a stack map or a patch point records. `why` says what
 * LLVM would do, in static memory. Returns FITS or CRASHES; LLVM may record a wrong value instead
 * of crashing. */
enum live_value_treatment types_live_constant(LLVMValueRef constant, const char **why);

/* What to write instead of such a constant. */
#define LIVE_CONSTANT_INSTEAD "two 64-bit halves, or a pointer to it"

/* Does the same for a value of a statepoint. LLVM keeps it in memory, so it need not fit into a
 * register. Returns FITS or CRASHES. */
enum live_value_treatment types_statepoint_value(LLVMTypeRef type,
                                                 enum cairn_architecture architecture,
                                                 const char **instead);

/* Whether a statepoint's "gc-transition" bundle may contain values of the type. */
bool types_transition_value(LLVMTypeRef type, enum cairn_architecture architecture);

/* Returns the architecture of the module's triple; the host's if the module has no triple. */
enum cairn_architecture types_architecture(LLVMModuleRef module);

/* Returns the architecture of a triple; UNKNOWN if Cairn does not know it. */
enum cairn_architecture types_triple_architecture(const char *triple);

#endif
