/*
 * cairn/call.h - calling functions whose types are known only at run time, and creating functions
 * of such types that call the host: closures.
 *
 * A signature contains the types of a function's arguments and results. It is made once, and used
 * for each call:
 *
 *     const struct cairn_type result = CAIRN_DOUBLE;
 *     const struct cairn_type arguments[] = {CAIRN_INTEGER(64), CAIRN_POINTER};
 *     status = cairn_signature_create(NULL, &result, 1, arguments, 2, &signature, &error);
 *
 *     struct cairn_value values[] = {cairn_value_of_integer(64, i), cairn_value_of_pointer(list)};
 *     struct cairn_value sum;
 *     status = cairn_call(signature, function, values, 2, &sum, &error);
 *
 * OSR ENTRY. An interpreter that finds a hot loop compiles it as a function whose arguments are the
 * values that are live at the start of the loop, calls it with cairn_call in the middle of the
 * loop's execution, and continues with its results. cairn/exit.h describes how compiled code
 * returns to the interpreter before that.
 *
 * CALLING CONVENTION. It is C's, as LLVM compiles it for functions of these types (ccc). The
 * members of a structure that is returned are each in a register. Integers of less than 64 bits are
 * zero-extended, or sign-extended if their type says so (`extends_sign`), as LLVM's attribute
 * signext requires: some ABIs require one or the other, such as C's for int on PPC64 and for char
 * and short on x86-64. Closures sign-extend all their results or none. An i1 is a byte that is 0
 * or 1. An i128 is C's __int128. On x86-64, an i128 is refused if only one register is left for it,
 * because LLVM and C differ there. Before LLVM 18, LLVM does not align an i128 on the stack to 16
 * bytes, as C does.
 *
 * TYPES. Arguments may be integers of 1 to 64 or of 128 bits, pointers, float, double, and vectors
 * of 16 bytes with elements of 8 to 64 bits. There may be no result, or as many results of these
 * types as there are registers: two of each kind. A function that is entered in place of a frame
 * (cairn_exit_enter) may return any type.
 *
 * CLOSURES use libffi, which does not support vectors. A closure can return two members of a
 * structure if both are integers or both are floating-point numbers, or on x86-64 one of each.
 * Without libffi at build time, Cairn has no closures. Calls do not use libffi, because it inspects
 * all types in each call: for 8 arguments, this takes longer than everything else.
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

/** Maximum number of arguments of a function. */
enum { CAIRN_SIGNATURE_ARGUMENTS_MAX = 64 };

/** The types of a function's arguments and results. Any number of threads may use a signature. */
typedef struct cairn_signature cairn_signature;

/* ---- Signatures ---- */

/**
 * Creates a signature; the caller owns it. The types are copied. If `allocator` is NULL, malloc is
 * used. Without a result, `results` may be NULL; several results are the members of a structure
 * that is returned in registers.
 *
 * Errors: ARGUMENT if there are too many arguments or results; UNSUPPORTED if one of them has a
 * type that is not passed or returned in registers (the message contains its number, from 0, and
 * its type); MEMORY. Thread-safe.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_signature_create(
    const struct cairn_allocator *allocator, const struct cairn_type *results,
    uint32_t result_count, const struct cairn_type *arguments, uint32_t argument_count,
    cairn_signature **signature, struct cairn_error *error);

/** Destroys a signature, which may be NULL. Its closures must be destroyed before. */
CAIRN_API void cairn_signature_destroy(cairn_signature *signature);

/* ---- Calls ---- */

/**
 * Calls `function`, a function pointer, with these arguments, and writes as many values to
 * `results` as the signature has results. Allocates nothing. Thread-safe; async-signal-safe if the
 * function is.
 *
 * Errors: ARGUMENT if the number or the types of the arguments are not those of the signature (the
 * message names both); UNSUPPORTED if there is no register for a result (the message names it). The
 * function is not called after an error.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_call(
    const cairn_signature *signature, const void *function, const struct cairn_value *arguments,
    uint32_t argument_count, struct cairn_value *results, struct cairn_error *error);

/* ---- Closures ---- */

/**
 * The handler of a closure. `arguments` are those of the call. `results` are initially zero, with
 * the types of the signature; the closure returns what the handler writes to them. A result of
 * another type is returned as zero. Both are valid until the handler returns.
 */
typedef void cairn_closure_handler(const struct cairn_value *arguments, struct cairn_value *results,
                                   void *user);

/** A closure. */
typedef struct cairn_closure cairn_closure;

/**
 * Creates a closure: a function of the signature's type that calls `handler`, in the runtime's code
 * memory. The caller owns it. `signature` must stay valid as long as the closure. Errors: ARGUMENT;
 * UNSUPPORTED if libffi does not support the signature (the message names the type); others as
 * cairn_loader_finish. Thread-safe.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_closure_create(
    cairn_runtime *runtime, const cairn_signature *signature, cairn_closure_handler *handler,
    void *user, cairn_closure **closure, struct cairn_error *error);

/** Destroys a closure, which may be NULL. No thread may call it any more. It must be destroyed
 * before its runtime and its signature. Its code is freed by a grace period (cairn/runtime.h). */
CAIRN_API void cairn_closure_destroy(cairn_closure *closure);

/** Returns the closure's function pointer, valid as long as the closure: for C, for cairn_call, for
 *  LLVM as the address of a function, and for cairn_site_call at patch points with C's calling
 *  convention and the same arguments. */
CAIRN_API const void *cairn_closure_target(const cairn_closure *closure);

#ifdef __cplusplus
}
#endif
#endif
