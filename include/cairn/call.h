/*
 * cairn/call.h - calling functions whose type is known only at run time, and being called by code
 * that wants a function of such a type.
 *
 * A signature says what a function takes and returns. It is made once, and used for each call:
 *
 *     struct cairn_type result = CAIRN_DOUBLE;
 *     struct cairn_type arguments[] = {CAIRN_INTEGER(64), CAIRN_POINTER};
 *     cairn_signature_create(NULL, &result, 1, arguments, 2, &signature, &error)
 *
 *     struct cairn_value values[] = {cairn_value_of_integer(64, i), cairn_value_of_pointer(list)};
 *     struct cairn_value sum;
 *     if (cairn_call(signature, function, values, 2, &sum, &error) != CAIRN_OK)
 *         …
 *
 * OSR ENTRY. An interpreter that finds a loop to be hot has it compiled as a function of its own,
 * whose arguments are the values that are live at the loop's head, and enters it half-way: with
 * cairn_call, by the types that these values have, which the interpreter knows at run time only.
 * What the function returns is what the interpreter goes on with. How it leaves the function before
 * that stands in cairn/deopt.h.
 *
 * CALLING CONVENTION is C's, as LLVM compiles it for functions of these types (ccc): a structure
 * that is returned has its members in registers of their own. Integers of less than 64 bits are
 * extended to their register by zeros, or by their sign (cairn_signature_extend_sign): the callee
 * relies on one or the other where its language's ABI says so, as C does on PPC64 for int and on
 * x86-64 for char and short. An i1 is a byte that is 0 or 1. An i128 is what C calls __int128. On
 * x86-64 one is refused for which one register is left: there LLVM and C differ. On its stack LLVM
 * before 18 does not align it to 16 bytes, as C does.
 *
 * WHICH TYPES. Arguments: integers of 1 to 64 and of 128 bits, pointers, float, double, and vectors
 * of 16 bytes with elements of 8 to 64 bits. Results: none, or as many of those as there are
 * registers for, two of each kind. A function that is entered in a frame's place
 * (cairn_deopt_enter) may return anything.
 *
 * CLOSURES are libffi's, which knows no vectors, and returns two members of a structure if both are
 * integers or both are floating-point numbers, or on x86-64 one of each. Where Cairn was built
 * without libffi there are none. Calls do without it: it looks at all types in each call, which for
 * 8 arguments takes longer than everything else.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_CALL_H
#define CAIRN_CALL_H

#include <cairn/allocator.h>
#include <cairn/declaration.h>
#include <cairn/runtime.h>
#include <cairn/status.h>
#include <cairn/value.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Arguments of one function. */
enum { CAIRN_SIGNATURE_ARGUMENTS_MAX = 64 };

/** In the place of an argument's number: the results. */
#define CAIRN_SIGNATURE_RESULTS UINT32_MAX

/** What a function takes and returns. It does not change while it is in use, by any number of
 *  threads. */
typedef struct cairn_signature cairn_signature;

/* ---- Signatures ---- */

/**
 * A signature; the types are copied. `allocator` NULL means malloc. Results are none (`results` may
 * be NULL), one, or the members of a structure that is returned in registers.
 *
 * ARGUMENT: more arguments or results than there may be. UNSUPPORTED: one of them is of a type that
 * is not passed or returned in registers; the sentence has its number, from 0 on, and its type.
 * MEMORY.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_signature_create(
    const struct cairn_allocator *allocator, const struct cairn_type *results,
    uint32_t result_count, const struct cairn_type *arguments, uint32_t argument_count,
    cairn_signature **signature, struct cairn_error *error);

/** No closure may have it any more. NULL is allowed. */
CAIRN_API void cairn_signature_destroy(cairn_signature *signature);

/** The argument, or with CAIRN_SIGNATURE_RESULTS what a closure returns, is extended to its
 *  register by its sign: LLVM's attribute signext. Of use for integers alone. To be called before
 *  the signature is used. RANGE: there is no such argument. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_signature_extend_sign(cairn_signature *signature,
                                                                         uint32_t argument,
                                                                         struct cairn_error *error);

/** How many arguments it takes. */
CAIRN_API uint32_t cairn_signature_argument_count(const cairn_signature *signature);
/** Of an argument, by its number; void beyond the last. */
CAIRN_API struct cairn_type cairn_signature_argument(const cairn_signature *signature,
                                                     uint32_t argument);
/** What it returns; its `is_known` is true. Valid as long as the signature. */
CAIRN_API const struct cairn_results *cairn_signature_results(const cairn_signature *signature);

/* ---- Calling ---- */

/**
 * Calls `function`, a function pointer, with these arguments. `results` has room for as many values
 * as the signature has results, and gets them. Allocates nothing; thread-safe, and
 * async-signal-safe as far as the function is.
 *
 * ARGUMENT: other arguments than the signature's, in number or type; the sentence names both.
 * UNSUPPORTED: there is no register for one of the results; the sentence names it. Nothing was
 * called.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_call(
    const cairn_signature *signature, const void *function, const struct cairn_value *arguments,
    uint32_t argument_count, struct cairn_value *results, struct cairn_error *error);

/* ---- Being called ---- */

/**
 * What a closure calls, with the arguments that it was called with. `results` are zeros of the
 * signature's types when it is called, and are what the closure returns when it has; a result that
 * is then of another type counts as zero. Both are valid until it returns.
 */
typedef void cairn_closure_handler(const struct cairn_value *arguments, struct cairn_value *results,
                                   void *user);

typedef struct cairn_closure cairn_closure;

/**
 * A function of the signature's type that calls `handler`, in a page of the runtime's code memory,
 * of which none is ever writable and executable. `signature` stays the caller's and has to outlive
 * the closure. Thread-safe.
 *
 * ARGUMENT; UNSUPPORTED: libffi makes none of the signature, the sentence names the type; and what
 * cairn_loader_finish gives.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_closure_create(
    cairn_runtime *runtime, const cairn_signature *signature, cairn_closure_handler *handler,
    void *user, cairn_closure **closure, struct cairn_error *error);

/** Nobody may call it any more, and it has to be destroyed before its runtime and its signature;
 * its code goes at the next quiescent point. NULL is allowed. */
CAIRN_API void cairn_closure_destroy(cairn_closure *closure);

/** The function pointer, for C; for cairn_call; for cairn_site_call, at patch points of the C
 *  calling convention with such arguments; for LLVM as the address of a function. As long-lived as
 *  the closure. */
CAIRN_API const void *cairn_closure_target(const cairn_closure *closure);

#ifdef __cplusplus
}
#endif
#endif
