/*
 * Calls of functions by their signatures.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "call/arguments.h"

enum cairn_status cairn_call(const cairn_signature *signature, const void *function,
                             const struct cairn_value *arguments, uint32_t argument_count,
                             struct cairn_value *results, struct cairn_error *error)
{
    struct arch_call call;
    enum cairn_status status = signature_check(signature, arguments, argument_count, error);
    if (status != CAIRN_OK)
        return status;
    const struct cairn_error *refused = &signature->results_refused;
    if (refused->status != CAIRN_OK)
        return error_set(error, refused->status, refused->offset, "%s", refused->message);
    call.function = function;
    arguments_write(signature, arguments, &call);
    arch_call_function(&call);
    arguments_read_results(signature, &call, results);
    return CAIRN_OK;
}
