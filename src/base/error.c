/*
 * Messages may quote names from files. So all messages are made valid UTF-8 without control
 * characters.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#undef error_set
#undef error_set_system

static void set(struct cairn_error *error, enum cairn_status status, int system_error,
                uint64_t offset, const char *format, va_list arguments)
{
    error->status = status;
    error->system_error = system_error;
    error->offset = offset;
    vsnprintf(error->message, sizeof error->message, format, arguments);
    utf8_clean(error->message);
}

enum cairn_status error_set(struct cairn_error *error, enum cairn_status status, uint64_t offset,
                            const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (error != NULL)
        set(error, status, 0, offset, format, arguments);
    va_end(arguments);
    return status;
}

enum cairn_status error_set_system(struct cairn_error *error, int system_error, const char *format,
                                   ...)
{
    if (error == NULL)
        return CAIRN_ERROR_SYSTEM;
    va_list arguments;
    va_start(arguments, format);
    set(error, CAIRN_ERROR_SYSTEM, system_error, 0, format, arguments);
    va_end(arguments);
    /* The meaning of the errno follows, as far as there is space. */
    size_t length = strlen(error->message);
    size_t space = sizeof error->message - length;
    const char *meaning = strerrordesc_np(system_error);
    if (meaning != NULL)
        snprintf(error->message + length, space, ": %s", meaning);
    else
        snprintf(error->message + length, space, ": error %d", system_error);
    return CAIRN_ERROR_SYSTEM;
}

enum cairn_status error_name(struct cairn_error *error, enum cairn_status status, const char *name)
{
    if (status == CAIRN_OK || error == NULL || *name == '\0')
        return status;
    const struct cairn_error failure = *error;
    error_set(error, status, failure.offset, "%.60s: %s", name, failure.message);
    error->system_error = failure.system_error;
    return status;
}

static const char *const status_names[] = {
    [CAIRN_OK] = "OK",
    [CAIRN_ERROR_ARGUMENT] = "ARGUMENT",
    [CAIRN_ERROR_MEMORY] = "MEMORY",
    [CAIRN_ERROR_SYSTEM] = "SYSTEM",
    [CAIRN_ERROR_TRUNCATED] = "TRUNCATED",
    [CAIRN_ERROR_VERSION] = "VERSION",
    [CAIRN_ERROR_CORRUPT] = "CORRUPT",
    [CAIRN_ERROR_FULL] = "FULL",
    [CAIRN_ERROR_NOT_FOUND] = "NOT_FOUND",
    [CAIRN_ERROR_CONFLICT] = "CONFLICT",
    [CAIRN_ERROR_UNMANAGED] = "UNMANAGED",
    [CAIRN_ERROR_RANGE] = "RANGE",
    [CAIRN_ERROR_UNSUPPORTED] = "UNSUPPORTED",
    [CAIRN_ERROR_STATE] = "STATE",
    [CAIRN_ERROR_LLVM] = "LLVM",
};
_Static_assert(sizeof status_names / sizeof *status_names == CAIRN_ERROR_LLVM + 1,
               "one name for each status");

const char *cairn_status_name(enum cairn_status status)
{
    if ((unsigned)status > CAIRN_ERROR_LLVM)
        return "UNKNOWN";
    return status_names[status];
}
