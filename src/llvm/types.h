/*
 * llvm/types.h - LLVM's types as Cairn's, and what the code generator can do with them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_TYPES_H
#define LLVM_TYPES_H

#include <cairn/architecture.h>
#include <cairn/declaration.h>
#include <llvm-c/Core.h>
#include <stdbool.h>

/* What a function returns; not known if it has more values than CAIRN_FUNCTION_RESULTS_MAX. */
struct cairn_results types_function_results(LLVMValueRef function);

/* The same of a type that is returned. */
struct cairn_results types_results(LLVMTypeRef returned);

struct cairn_type types_convert(LLVMTypeRef type);

/* Whether a register of the architecture holds values of the type, which is no structure or array,
 * as the LLVM in use compiles for it where no features are asked for. */
bool types_fits_register(LLVMTypeRef type, enum cairn_architecture architecture);

/* What to do with a live value of a type, so that the LLVM in use does not crash on it. */
enum live_value_treatment {
    LIVE_VALUE_FITS,
    LIVE_VALUE_WIDEN, /* an integer: to the next of 32 and 64 bits */
    LIVE_VALUE_CRASHES
};

/* `instead` says what to write, if it crashes. Static. `function`, which may be NULL, is where it
 * lives: its features decide how wide a vector may be. */
enum live_value_treatment types_live_value(LLVMTypeRef type, enum cairn_architecture architecture,
                                           LLVMValueRef function, const char **instead);

/* The same for an integer constant that a stack map or a patch point records; `why` says what LLVM
 * would do. Static. FITS or CRASHES, although not all of it is a crash. */
enum live_value_treatment types_live_constant(LLVMValueRef constant, const char **why);

/* What to write instead of such a constant. */
#define LIVE_CONSTANT_INSTEAD "two 64-bit halves, or a pointer to it"

/* The same for values of a statepoint, which LLVM keeps in memory: they need not fit a register.
 * FITS or CRASHES. */
enum live_value_treatment types_statepoint_value(LLVMTypeRef type,
                                                 enum cairn_architecture architecture,
                                                 const char **instead);

/* Whether a statepoint's "gc-transition" bundle may have values of the type. */
bool types_transition_value(LLVMTypeRef type, enum cairn_architecture architecture);

/* The architecture of a module's triple; the host's if it has none. */
enum cairn_architecture types_architecture(LLVMModuleRef module);

/* Of a triple; UNKNOWN where Cairn knows none. */
enum cairn_architecture types_triple_architecture(const char *triple);

#endif
