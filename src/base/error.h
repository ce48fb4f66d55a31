/*
 * base/error.h - setting a caller's cairn_error.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <cairn/status.h>
#include <stdint.h>

/* Sets `error`, if it is not NULL, and returns `status`, so that a failing function can end with
 * `return error_set(…)`. */
enum cairn_status error_set(struct cairn_error *error, enum cairn_status status, uint64_t offset,
                            const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Sets SYSTEM and `system_error` (an errno), whose meaning is appended to the message. */
enum cairn_status error_set_system(struct cairn_error *error, int system_error, const char *format,
                                   ...) __attribute__((format(printf, 3, 4)));

/* Puts the name of an object, unless it is "", before the message of a failure. Returns `status`.
 */
enum cairn_status error_name(struct cairn_error *error, enum cairn_status status, const char *name);

/* A static analyser does not read other files, so these macros show it the returned status. */
#ifdef __clang_analyzer__
#define error_set(error, status, ...) ((void)(error_set)((error), (status), __VA_ARGS__), (status))
#define error_set_system(...) ((void)(error_set_system)(__VA_ARGS__), CAIRN_ERROR_SYSTEM)
#endif

#endif
