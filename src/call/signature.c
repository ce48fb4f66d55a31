/* SPDX-License-Identifier: MIT */
#include "call/signature.h"

#include "arch/arch.h"
#include "base/error.h"
#include "base/memory.h"
#include "call/arguments.h"

#include <string.h>

enum { TYPE_NAME_BYTES = 64, REGISTER_BITS = 64 };

/* ---- Kinds ---- */

/* Whether a vector is passed in one register. Other vectors are passed in lanes that depend on the
 * machine. */
static bool is_whole_vector(struct cairn_type type)
{
    bool is_lane =
        type.bits >= 8 && type.bits <= REGISTER_BITS && (type.bits & (type.bits - 1)) == 0;
    bool is_scalar = type.kind == CAIRN_TYPE_INTEGER || type.kind == CAIRN_TYPE_POINTER ||
                     type.kind == CAIRN_TYPE_FLOAT || type.kind == CAIRN_TYPE_DOUBLE;
    return is_lane && is_scalar && cairn_type_size(type) == SIGNATURE_VECTOR_BYTES;
}

static enum signature_kind kind_of_integer(uint32_t bits)
{
    if (bits >= 1 && bits <= REGISTER_BITS)
        return SIGNATURE_GENERAL;
    return bits == 2 * REGISTER_BITS ? SIGNATURE_PAIR : SIGNATURE_NONE;
}

enum signature_kind signature_kind(struct cairn_type type)
{
    if (type.element_count > 0)
        return is_whole_vector(type) ? SIGNATURE_VECTOR : SIGNATURE_NONE;
    switch (type.kind) {
    case CAIRN_TYPE_INTEGER:
        return kind_of_integer(type.bits);
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

static enum cairn_status check_counts(uint32_t result_count, uint32_t argument_count,
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
    return CAIRN_OK;
}

static enum cairn_status refuse(const char *what, uint32_t index, struct cairn_type type,
                                const char *why, struct cairn_error *error)
{
    char name[TYPE_NAME_BYTES];
    cairn_type_format(type, name, sizeof name);
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, index, "%s %u is %s, which %s", what, index,
                     name, why);
}

static enum cairn_status check_types(const struct cairn_type *results, uint32_t result_count,
                                     const struct cairn_type *arguments, uint32_t argument_count,
                                     struct cairn_error *error)
{
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

static enum cairn_status fill(cairn_signature *signature, const struct cairn_type *results,
                              uint32_t result_count, const struct cairn_type *arguments,
                              uint32_t argument_count, struct cairn_error *error)
{
    signature->results.is_known = true;
    signature->results.count = (uint8_t)result_count;
    for (uint32_t i = 0; i < result_count; i++)
        signature->results.types[i] = results[i];
    signature->argument_count = argument_count;
    for (uint32_t i = 0; i < argument_count; i++) {
        signature->arguments[i].type = arguments[i];
        signature->arguments[i].kind = (uint8_t)signature_kind(arguments[i]);
    }
    return arguments_place(signature, error);
}

enum cairn_status cairn_signature_create(const struct cairn_allocator *allocator,
                                         const struct cairn_type *results, uint32_t result_count,
                                         const struct cairn_type *arguments,
                                         uint32_t argument_count, cairn_signature **signature,
                                         struct cairn_error *error)
{
    bool is_complete = signature != NULL && (results != NULL || result_count == 0) &&
                       (arguments != NULL || argument_count == 0);
    if (!is_complete)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_signature_create needs types and a place for the signature");
    if (arch_host() == NULL)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0, "Cairn has no calls for this machine");
    enum cairn_status status = check_counts(result_count, argument_count, error);
    if (status == CAIRN_OK)
        status = check_types(results, result_count, arguments, argument_count, error);
    if (status != CAIRN_OK)
        return status;
    struct cairn_allocator chosen = memory_allocator(allocator);
    cairn_signature *made = memory_new(&chosen, 1, bytes_of(argument_count));
    if (made == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a signature");
    made->allocator = chosen;
    status = fill(made, results, result_count, arguments, argument_count, error);
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
    memory_free(&allocator, signature, bytes_of(signature->argument_count));
}

enum cairn_status cairn_signature_extend_sign(cairn_signature *signature, uint32_t argument,
                                              struct cairn_error *error)
{
    if (argument == CAIRN_SIGNATURE_RESULTS) {
        signature->results.extends_sign = true;
        return CAIRN_OK;
    }
    if (argument >= signature->argument_count)
        return error_set(error, CAIRN_ERROR_RANGE, argument,
                         "the function takes %u arguments, so there is no number %u",
                         signature->argument_count, argument);
    if (signature->arguments[argument].kind == SIGNATURE_GENERAL)
        signature->arguments[argument].form = SIGNATURE_SIGNED;
    return CAIRN_OK;
}

/* ---- Checking ---- */

static enum cairn_status say_different(uint32_t index, struct cairn_type expected,
                                       struct cairn_type given, struct cairn_error *error)
{
    char expected_name[TYPE_NAME_BYTES];
    char given_name[TYPE_NAME_BYTES];
    cairn_type_format(expected, expected_name, sizeof expected_name);
    cairn_type_format(given, given_name, sizeof given_name);
    return error_set(error, CAIRN_ERROR_ARGUMENT, index, "argument %u is %s, and not %s", index,
                     given_name, expected_name);
}

/* Does the same as cairn_type_equal, without a call for each argument. */
static bool is_of_type(const struct cairn_value *value, const struct cairn_type *type)
{
    return value->type.kind == type->kind && value->type.bits == type->bits &&
           value->type.element_count == type->element_count;
}

enum cairn_status signature_check(const cairn_signature *signature,
                                  const struct cairn_value *arguments, uint32_t argument_count,
                                  struct cairn_error *error)
{
    if (argument_count != signature->argument_count)
        return error_set(error, CAIRN_ERROR_ARGUMENT, argument_count,
                         "the function takes %u argument%s, and not %u", signature->argument_count,
                         signature->argument_count == 1 ? "" : "s", argument_count);
    for (uint32_t i = 0; i < argument_count; i++)
        if (!is_of_type(&arguments[i], &signature->arguments[i].type))
            return say_different(i, signature->arguments[i].type, arguments[i].type, error);
    return CAIRN_OK;
}
