/*
 * cairn/entry.h - entries: function pointers that stay the same while versions of the function are
 * replaced, first an interpreter's, then compiled ones.
 *
 *     status = cairn_entry_create(runtime, "f", signature, interpret_f, &f, &error);
 *     … cairn_entry_target(f) …                       what callers call
 *     const struct cairn_entry_version version = {.code = compiled_f, .signature = signature};
 *     status = cairn_entry_install(f, &version, CAIRN_SYNC, &error);
 *
 * Any number of threads may call the entry. Each call reaches exactly one version. Calls that start
 * after cairn_entry_install has returned reach the new version, or a newer one, on every core.
 * Calls that have reached the old version, and its frames, are not changed, unless it has `leave`.
 *
 * Threads: every function is thread-safe and takes locks, so signal handlers must not call it.
 * Handlers of exits and caches may.
 *
 * See cairn-replacing-code(7) (doc/replacing-code.md).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_ENTRY_H
#define CAIRN_ENTRY_H

#include <cairn/call.h>
#include <cairn/invalidation.h>
#include <cairn/module.h>
#include <cairn/patch.h>
#include <cairn/status.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn_entry cairn_entry;

/** A version of an entry's function. */
struct cairn_entry_version {
    /** A function pointer: of a function in a published module of the entry's runtime, or of code
     * that is not in a module, such as a C function or a closure. */
    const void *code;
    /** The function's type, read only during the call. Required if the entry has one, otherwise
     *  ignored. The sign extension of integers is not compared, because LLVM's types do not contain
     *  it. */
    const cairn_signature *signature;
    /** What the sites of the function call when another version is installed: cairn_exit_target of
     *  an exit, valid as long as the code. Only for code of a module. NULL: they stay unchanged. */
    const void *leave;
    /** Chooses the sites, as in struct cairn_invalidation_options; NULL: all live ones. */
    cairn_invalidation_filter *accepts;
    void *user; /**< argument of `accepts` */
    /** When another version is installed, the module is retired as soon as no entry has a version
     *  in it (cairn-replacing-code(7)). Ignored for code that is not in a module. */
    bool retires;
};

/**
 * Creates an entry. Its first version is `code`, which may be an interpreter's function, and has no
 * options of struct cairn_entry_version. The caller owns `*entry`. `name` is copied, and used in
 * messages. `signature` must be valid as long as the entry; with NULL, types of versions are not
 * checked.
 *
 * Errors: ARGUMENT; STATE (`code` is in a retired module); FULL, MEMORY, SYSTEM.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_entry_create(
    cairn_runtime *runtime, const char *name, const cairn_signature *signature, const void *code,
    cairn_entry **entry, struct cairn_error *error);

/** Returns the function pointer that callers call: for C, for cairn_call, for cairn_site_call, as
 *  the target of cases of inline caches, and for LLVM as the address of a function. Valid as long
 *  as the entry. Thread-safe and async-signal-safe. */
CAIRN_API const void *cairn_entry_target(const cairn_entry *entry);

/**
 * Replaces the version of the entry. `version` is copied. `strength` is the strength of the change
 * of the old version's sites, if it has `leave`. If the old version has no site that can be
 * changed, or all of them call or jump already, there is nothing to change, which is not an error.
 * If the same code is installed already, only its options are replaced, and the barrier of
 * `strength` is executed.
 *
 * Errors, after which nothing has changed:
 * ARGUMENT: `code` is NULL or the entry's own target; `leave` is set and `code` is not in a module;
 * or the version has another type than the entry, where the message names both functions and both
 * types.
 * STATE: the code is in a retired module.
 * MEMORY; others as cairn_invalidate for the sites of the old version.
 *
 * Errors after the version was installed: SYSTEM: the barrier after the change of the old version's
 * sites was refused. The host installs the version again, which requests the barrier again, or
 * stops its threads. (With a single mapping, only some of the sites may have been changed: the host
 * invalidates the old version's function.)
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_entry_install(
    cairn_entry *entry, const struct cairn_entry_version *version, enum cairn_strength strength,
    struct cairn_error *error);

/** Destroys the entry. No further call of it may start. Its version is released as if it were
 *  replaced, except that its frames do not leave. Its code is freed by a grace period
 *  (cairn/runtime.h). It must be destroyed before its runtime. NULL is allowed.
 *
 *  Threads: no other function may be using the entry in another thread. Signal handlers must not
 *  call this. */
CAIRN_API void cairn_entry_destroy(cairn_entry *entry);

/**
 * Retires a function that no entry retires, by its address: one that a queue has compiled
 * (cairn/llvm.h), or the only function of its module. A queue compiles several functions as one
 * module, which has a reference for each of them. This removes the function's reference, so it must
 * be called once. The module is retired (cairn_module_retire) when it has no references. Until then
 * lookups find the function. NULL, and code that is not in a module, are allowed.
 *
 * Threads: thread-safe, but signal handlers must not call this: it takes a lock.
 */
CAIRN_API void cairn_function_retire(cairn_runtime *runtime, const void *code);

#ifdef __cplusplus
}
#endif
#endif
