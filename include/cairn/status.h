/*
 * cairn/status.h - what went wrong, and where.
 *
 * Every function of Cairn that can fail in more than one way returns an
 * `enum cairn_status` and takes, as its last parameter, a pointer to a
 * `struct cairn_error` of the caller's. The pointer may be NULL. It is written
 * only on failure; there is no hidden "last error" anywhere.
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
#define CAIRN_PURE __attribute__((pure))
#else
#define CAIRN_API
#define CAIRN_MUST_CHECK
#define CAIRN_PURE
#endif

/* The numbers are part of the ABI: they never change and are never reused. */
enum cairn_status {
    /** Done. */
    CAIRN_OK = 0,
    /** An argument is not one that the function takes (NULL, zero, not a power of two, …). */
    CAIRN_ERROR_ARGUMENT = 1,
    /** The allocator returned NULL, or a limit is reached. Nothing was changed. */
    CAIRN_ERROR_MEMORY = 2,
    /** The operating system refused; `system_error` holds its errno. */
    CAIRN_ERROR_SYSTEM = 3,
    /** The input ends before the thing that `offset` points to. */
    CAIRN_ERROR_TRUNCATED = 4,
    /** The input has a version that Cairn does not know. */
    CAIRN_ERROR_VERSION = 5,
    /** The input holds a value that its format does not allow. */
    CAIRN_ERROR_CORRUPT = 6,
    /** The code slab, or the number of slabs, is used up. */
    CAIRN_ERROR_FULL = 7,
    /** There is no such ID, address, function or section. */
    CAIRN_ERROR_NOT_FOUND = 8,
    /** Two things contradict each other: one ID with two shapes, one site twice in a batch. */
    CAIRN_ERROR_CONFLICT = 9,
    /** The site cannot be patched in this way; the sentence says why. */
    CAIRN_ERROR_UNMANAGED = 10,
    /** A number is outside what the field, the region or a branch can hold. */
    CAIRN_ERROR_RANGE = 11,
    /** The machine, the kernel or the LLVM in use cannot do this. */
    CAIRN_ERROR_UNSUPPORTED = 12,
    /** The call is not allowed in the present state (published, retired, not quiescent, …). */
    CAIRN_ERROR_STATE = 13,
    /** LLVM refused, or would crash on what it was given. */
    CAIRN_ERROR_LLVM = 14
};

enum { CAIRN_ERROR_MESSAGE_SIZE = 256 };

/** Filled in by the function that failed. Owned by the caller; holds no pointers. */
struct cairn_error {
    enum cairn_status status;
    /** errno where the operating system was asked, otherwise 0. */
    int system_error;
    /** Byte offset into the input, or the address in question; 0 where neither applies. */
    uint64_t offset;
    /** One sentence in English, NUL-terminated, cut at the end if it is too long. It is UTF-8
     *  without control characters: in names from files they are replaced by '?'. */
    char message[CAIRN_ERROR_MESSAGE_SIZE];
};

/**
 * The enumerator's name without its prefix, such as "TRUNCATED"; "UNKNOWN" for
 * a number that is none. The string is static. Async-signal-safe.
 */
CAIRN_API const char *cairn_status_name(enum cairn_status status);

#ifdef __cplusplus
}
#endif
#endif
