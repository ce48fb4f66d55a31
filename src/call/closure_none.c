/*
 * Closures in a build without libffi: creating one always fails.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "call/signature.h"

enum cairn_status cairn_closure_create(cairn_runtime *runtime, const cairn_signature *signature,
                                       cairn_closure_handler *handler, void *user,
                                       cairn_closure **closure, struct cairn_error *error)
{
    (void)runtime;
    (void)signature;
    (void)handler;
    (void)user;
    (void)closure;
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0, "Cairn was built without libffi");
}

void cairn_closure_destroy(cairn_closure *closure) { (void)closure; }

const void *cairn_closure_target(const cairn_closure *closure)
{
    (void)closure;
    return NULL;
}
