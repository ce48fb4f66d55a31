/*
 * cairn/status.h - status codes and error details.
 *
 * A function that can fail in more than one way returns an `enum cairn_status`. Its last parameter
 * is a pointer to a `struct cairn_error` that the caller owns, or NULL. The function writes the
 * struct only on failure. There is no global or thread-local "last error".
 *
 * Threads: every function is thread-safe and async-signal-safe. A `struct cairn_error` belongs to
 * its caller.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_STATUS_H
#define CAIRN_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CAIRN_API __attribute__((visibility("default")))
#define CAIRN_MUST_CHECK __attribute__((warn_unused_result))
#else
#define CAIRN_API
#define CAIRN_MUST_CHECK
#endif

/* Functions that are compiled into the caller. libcairn exports them, too, for languages that call
 * C without its headers. */
#ifndef CAIRN_INLINE
#define CAIRN_INLINE static inline
#endif

/* The result of a function. The numbers are part of the ABI: they never change and are never
 * reused. */
enum cairn_status {
    /** Success. */
    CAIRN_OK = 0,
    /** An argument is invalid (NULL, zero, not a power of two, …). */
    CAIRN_ERROR_ARGUMENT = 1,
    /** The allocator returned NULL, or a memory limit is reached. Nothing was changed. */
    CAIRN_ERROR_MEMORY = 2,
    /** A system call failed; `system_error` holds its errno. */
    CAIRN_ERROR_SYSTEM = 3,
    /** The input ends before the end of the item at `offset`. */
    CAIRN_ERROR_TRUNCATED = 4,
    /** The input has a version that Cairn does not support. */
    CAIRN_ERROR_VERSION = 5,
    /** The input holds a value that its format does not allow. */
    CAIRN_ERROR_CORRUPT = 6,
    /** The code slab is full, or the maximum number of slabs exists. */
    CAIRN_ERROR_FULL = 7,
    /** There is no such ID, address, function or section. */
    CAIRN_ERROR_NOT_FOUND = 8,
    /** Two inputs contradict each other: one ID with two shapes, one site twice in a list of
       changes. */
    CAIRN_ERROR_CONFLICT = 9,
    /** The site cannot be patched in this way; the message gives the reason. */
    CAIRN_ERROR_UNMANAGED = 10,
    /** A number is outside the range of the field, the region or the branch. */
    CAIRN_ERROR_RANGE = 11,
    /** The machine, the kernel or the LLVM version does not support this. */
    CAIRN_ERROR_UNSUPPORTED = 12,
    /** The call is not allowed in the present state (published, retired, not quiescent, …). */
    CAIRN_ERROR_STATE = 13,
    /** LLVM returned an error, or would crash on this input. */
    CAIRN_ERROR_LLVM = 14
};

enum { CAIRN_ERROR_MESSAGE_SIZE = 256 };

/** The details of a failure. The caller owns it; it holds no pointers. */
struct cairn_error {
    enum cairn_status status;
    /** errno of the system call that failed; otherwise 0. */
    int system_error;
    /** Byte offset into the input, or the address that the error is about; otherwise 0. */
    uint64_t offset;
    /** One sentence in English, NUL-terminated, truncated if it is too long. It is UTF-8 without
     *  control characters; those in names from files are replaced by '?'. */
    char message[CAIRN_ERROR_MESSAGE_SIZE];
};

/** Returns the enumerator's name without its prefix, such as "TRUNCATED", or "UNKNOWN" for a number
 *  that is not an enumerator. The string is static. */
CAIRN_API const char *cairn_status_name(enum cairn_status status);

#ifdef __cplusplus
}
#endif
#endif
