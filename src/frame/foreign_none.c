/*
 * Without libffi: signatures, and no calls.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "frame/signature.h"

static enum cairn_status refuse(struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0, "Cairn was built without libffi");
}

enum cairn_status foreign_create(cairn_signature *signature, struct cairn_error *error)
{
    (void)error;
    enum cairn_status status = refuse(&signature->refused);
    (void)status;
    return CAIRN_OK;
}

void foreign_destroy(cairn_signature *signature) { (void)signature; }

void foreign_extend_sign(cairn_signature *signature, uint32_t argument)
{
    (void)signature;
    (void)argument;
}

enum cairn_status cairn_call(const cairn_signature *signature, const void *function,
                             const struct cairn_value *arguments, uint32_t argument_count,
                             struct cairn_value *results, struct cairn_error *error)
{
    (void)function;
    (void)results;
    enum cairn_status status = signature_check(signature, arguments, argument_count, error);
    return status == CAIRN_OK ? refuse(error) : status;
}

enum cairn_status cairn_closure_create(cairn_runtime *runtime, const cairn_signature *signature,
                                       cairn_closure_handler *handler, void *user,
                                       cairn_closure **closure, struct cairn_error *error)
{
    (void)runtime;
    (void)signature;
    (void)handler;
    (void)user;
    (void)closure;
    return refuse(error);
}

void cairn_closure_destroy(cairn_closure *closure) { (void)closure; }

const void *cairn_closure_target(const cairn_closure *closure)
{
    (void)closure;
    return NULL;
}
