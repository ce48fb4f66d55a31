/*
 * cairn/call.h - calling functions whose types are known only at run time, and creating functions
 * of such types that call the host: closures.
 *
 *     const struct cairn_type result = CAIRN_DOUBLE;
 *     const struct cairn_type arguments[] = {CAIRN_INTEGER(64), CAIRN_POINTER};
 *     status = cairn_signature_create(NULL, &result, 1, arguments, 2, &signature, &error);
 *
 *     struct cairn_value values[] = {cairn_value_of_integer(64, i), cairn_value_of_pointer(list)};
 *     struct cairn_value sum;
 *     status = cairn_call(signature, function, values, 2, &sum, &error);
 *
 * Functions have the C calling convention, as LLVM compiles it for their types. Arguments may be
 * integers of 1 to 64 or of 128 bits, pointers, float, double, and vectors of 16 bytes; results as
 * many of these as there are registers, two of each kind. Closures need libffi, and have no
 * vectors.
 *
 * Threads: every function is thread-safe, but signal handlers must not call it.
 *
 * See cairn-exits-and-frames(7) (doc/exits-and-frames.md): OSR entry, the calling convention,
 * types.
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
 * its type); MEMORY.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_signature_create(
    const struct cairn_allocator *allocator, const struct cairn_type *results,
    uint32_t result_count, const struct cairn_type *arguments, uint32_t argument_count,
    cairn_signature **signature, struct cairn_error *error);

/** Destroys a signature, which may be NULL. Its closures must be destroyed before.
 *
 *  Threads: no other thread may be using the signature. Signal handlers must not call this. */
CAIRN_API void cairn_signature_destroy(cairn_signature *signature);

/* ---- Calls ---- */

/**
 * Calls `function`, a function pointer, with these arguments, and writes as many values to
 * `results` as the signature has results. Allocates nothing. Thread-safe; async-signal-safe if the
 * function is.
 *
 * Errors: ARGUMENT if the number or the types of the arguments differ from the signature's (the
 * message names both); UNSUPPORTED if a result has no register (the message names it). The
 * function is not called after an error.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_call(
    const cairn_signature *signature, const void *function, const struct cairn_value *arguments,
    uint32_t argument_count, struct cairn_value *results, struct cairn_error *error);

/* ---- Closures ---- */

/**
 * The handler of a closure. `arguments` are the call's arguments. `results` are initially zero,
 * with the types of the signature; the closure returns what the handler writes to them. A result of
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
 * cairn_loader_finish.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_closure_create(
    cairn_runtime *runtime, const cairn_signature *signature, cairn_closure_handler *handler,
    void *user, cairn_closure **closure, struct cairn_error *error);

/** Destroys a closure, which may be NULL. It must be destroyed before its runtime and its
 * signature. Its code is freed by a grace period (cairn/runtime.h).
 *
 * Threads: no thread may call the closure after that. Signal handlers must not call this. */
CAIRN_API void cairn_closure_destroy(cairn_closure *closure);

/** Returns the closure's function pointer, valid as long as the closure: for C, for cairn_call, for
 *  LLVM as the address of a function, and for cairn_site_call at patch points with C's calling
 *  convention and the same arguments. Thread-safe and async-signal-safe. */
CAIRN_API const void *cairn_closure_target(const cairn_closure *closure);

#ifdef __cplusplus
}
#endif
#endif
