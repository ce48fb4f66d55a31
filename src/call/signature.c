/*
 * Signatures: which types can be passed and returned, and whether values have these types.
 *
 * SPDX-License-Identifier: MIT
 */
#include "call/signature.h"

#include "arch/arch.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/type.h"

#include <string.h>

enum { TYPE_NAME_BYTES = 64, REGISTER_BITS = 64 };

/* ---- Kinds ---- */

enum signature_kind signature_kind(struct cairn_type type)
{
    if (type.element_count > 0) {
        /* Vectors of other elements are passed in lanes that depend on the machine. */
        bool is_lane =
            type.bits >= 8 && type.bits <= REGISTER_BITS && (type.bits & (type.bits - 1)) == 0;
        bool is_scalar = type.kind == CAIRN_TYPE_INTEGER || type.kind == CAIRN_TYPE_POINTER ||
                         type.kind == CAIRN_TYPE_FLOAT || type.kind == CAIRN_TYPE_DOUBLE;
        bool is_whole = is_lane && is_scalar && cairn_type_size(type) == SIGNATURE_VECTOR_BYTES;
        return is_whole ? SIGNATURE_VECTOR : SIGNATURE_NONE;
    }
    switch (type.kind) {
    case CAIRN_TYPE_INTEGER:
        if (type.bits >= 1 && type.bits <= REGISTER_BITS)
            return SIGNATURE_GENERAL;
        return type.bits == 2 * REGISTER_BITS ? SIGNATURE_PAIR : SIGNATURE_NONE;
    case CAIRN_TYPE_POINTER:
        return type.bits == REGISTER_BITS ? SIGNATURE_GENERAL : SIGNATURE_NONE;
    case CAIRN_TYPE_FLOAT:
    case CAIRN_TYPE_DOUBLE:
        return SIGNATURE_FLOATING;
    default:
        return SIGNATURE_NONE;
    }
}

/* ---- Creating a signature ---- */

static enum cairn_status refuse(const char *what, uint32_t index, struct cairn_type type,
                                const char *why, struct cairn_error *error)
{
    char name[TYPE_NAME_BYTES];
    cairn_type_format(type, name, sizeof name);
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, index, "%s %u is %s, which %s", what, index,
                     name, why);
}

static enum cairn_status check(const struct cairn_type *results, uint32_t result_count,
                               const struct cairn_type *arguments, uint32_t argument_count,
                               struct cairn_error *error)
{
    if (argument_count > CAIRN_SIGNATURE_ARGUMENTS_MAX)
        return error_set(error, CAIRN_ERROR_ARGUMENT, argument_count,
                         "a signature has at most %d arguments, not %u",
                         CAIRN_SIGNATURE_ARGUMENTS_MAX, argument_count);
    if (result_count > CAIRN_FUNCTION_RESULTS_MAX)
        return error_set(error, CAIRN_ERROR_ARGUMENT, result_count,
                         "a signature has at most %d results, not %u", CAIRN_FUNCTION_RESULTS_MAX,
                         result_count);
    for (uint32_t i = 0; i < result_count; i++)
        if (cairn_type_size(results[i]) == 0)
            return refuse("result", i, results[i], "is not returned in registers", error);
    for (uint32_t i = 0; i < argument_count; i++)
        if (signature_kind(arguments[i]) == SIGNATURE_NONE)
            return refuse("argument", i, arguments[i], "Cairn does not pass", error);
    return CAIRN_OK;
}

static size_t bytes_of(uint32_t argument_count)
{
    return sizeof(cairn_signature) + argument_count * sizeof(struct signature_argument);
}

enum cairn_status cairn_signature_create(const struct cairn_allocator *allocator,
                                         const struct cairn_type *results, uint32_t result_count,
                                         const struct cairn_type *arguments,
                                         uint32_t argument_count, cairn_signature **signature,
                                         struct cairn_error *error)
{
    if (signature == NULL || (results == NULL && result_count > 0) ||
        (arguments == NULL && argument_count > 0))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_signature_create: `%s` is NULL",
                         signature == NULL                     ? "signature"
                         : results == NULL && result_count > 0 ? "results"
                                                               : "arguments");
    if (arch_host() == NULL)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0, "Cairn has no calls for this machine");
    enum cairn_status status = check(results, result_count, arguments, argument_count, error);
    if (status != CAIRN_OK)
        return status;
    struct cairn_allocator chosen = memory_allocator(allocator);
    cairn_signature *made = memory_new(&chosen, 1, bytes_of(argument_count));
    if (made == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a signature");
    made->allocator = chosen;
    made->results.is_known = true;
    made->results.count = (uint8_t)result_count;
    made->argument_count = argument_count;
    for (uint32_t i = 0; i < result_count; i++) {
        made->results.types[i] = results[i];
        made->results.extends_sign |=
            results[i].kind == CAIRN_TYPE_INTEGER && results[i].extends_sign != 0;
    }
    for (uint32_t i = 0; i < argument_count; i++) {
        made->arguments[i].type = arguments[i];
        made->arguments[i].kind = (uint8_t)signature_kind(arguments[i]);
    }
    status = arguments_place(made, error);
    if (status != CAIRN_OK) {
        cairn_signature_destroy(made);
        return status;
    }
    *signature = made;
    return CAIRN_OK;
}

void cairn_signature_destroy(cairn_signature *signature)
{
    if (signature == NULL)
        return;
    struct cairn_allocator allocator = signature->allocator;
    closure_type_destroy(atomic_load_explicit(&signature->closure_type, memory_order_relaxed),
                         &allocator);
    memory_free(&allocator, signature, bytes_of(signature->argument_count));
}

/* ---- Checking ---- */

enum cairn_status signature_check(const cairn_signature *signature,
                                  const struct cairn_value *arguments, uint32_t argument_count,
                                  struct cairn_error *error)
{
    if (argument_count != signature->argument_count)
        return error_set(error, CAIRN_ERROR_ARGUMENT, argument_count,
                         "the function takes %u argument%s, and not %u", signature->argument_count,
                         signature->argument_count == 1 ? "" : "s", argument_count);
    for (uint32_t i = 0; i < argument_count; i++) {
        struct cairn_type expected = signature->arguments[i].type;
        struct cairn_type given = arguments[i].type;
        if (type_equal(given, expected))
            continue;
        char expected_name[TYPE_NAME_BYTES];
        char given_name[TYPE_NAME_BYTES];
        cairn_type_format(expected, expected_name, sizeof expected_name);
        cairn_type_format(given, given_name, sizeof given_name);
        return error_set(error, CAIRN_ERROR_ARGUMENT, i, "argument %u is %s, and not %s", i,
                         given_name, expected_name);
    }
    return CAIRN_OK;
}
