/*
 * Calls of functions by their signatures.
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame/foreign.h"

#include <string.h>

/* libffi reads arguments and does not write them, but takes pointers that could. */
static void *readable(const void *bytes)
{
    void *pointer;
    memcpy(&pointer, &bytes, sizeof pointer);
    return pointer;
}

/* What fills a register. */
static const uint64_t nothing;

enum { HALF_BYTES = 8 };

/* Of one argument; returns how many of libffi's it is. */
static uint32_t point_to(const struct signature_argument *argument, enum foreign_form form,
                         const struct cairn_value *value, uint64_t *extended, void **pointers)
{
    switch (form) {
    case FOREIGN_EXTENDED:
        *extended = signature_extend(argument, value);
        pointers[0] = extended;
        return 1;
    case FOREIGN_FILLED:
        pointers[0] = readable(&nothing);
        pointers[1] = readable(value->bytes);
        return 2;
    case FOREIGN_SPLIT:
        pointers[0] = readable(value->bytes);
        pointers[1] = readable(value->bytes + HALF_BYTES);
        return 2;
    default:
        pointers[0] = readable(value->bytes);
        return 1;
    }
}

static void call(const cairn_signature *signature, const void *function,
                 const struct cairn_value *arguments, union foreign_results *results)
{
    struct foreign_call *foreign = signature->foreign;
    uint64_t extended[CAIRN_SIGNATURE_ARGUMENTS_MAX];
    void *pointers[FOREIGN_ARGUMENTS_MAX];
    uint32_t count = 0;
    void (*entry)(void);
    memcpy(&entry, &function, sizeof entry);
    for (uint32_t i = 0; i < signature->argument_count; i++)
        count += point_to(&signature->arguments[i], (enum foreign_form)foreign->forms[i],
                          &arguments[i], &extended[i], &pointers[count]);
    ffi_call(&foreign->cif, entry, results, pointers);
}

enum cairn_status cairn_call(const cairn_signature *signature, const void *function,
                             const struct cairn_value *arguments, uint32_t argument_count,
                             struct cairn_value *results, struct cairn_error *error)
{
    union foreign_results returned;
    enum cairn_status status = signature_check(signature, arguments, argument_count, error);
    if (status == CAIRN_OK)
        status = signature_check_foreign(signature, error);
    if (status != CAIRN_OK)
        return status;
    call(signature, function, arguments, &returned);
    foreign_read_results(signature, &returned, results);
    return CAIRN_OK;
}
