/*
 * code/write_key.h - a memory protection key for the written views: a thread can read and write
 * them only between write_key_open and write_key_close.
 *
 * A key is a number from 1 to 15 that the kernel attaches to pages. Each thread has its own access
 * rights for each key, in a register that it changes without a system call. The kernel starts
 * signal handlers, and threads that are older than the key, without rights. So if a handler
 * interrupts a write, it has none until it opens the views itself, and the interrupted thread has
 * its rights again when the handler returns. A forked child inherits keys and rights.
 *
 * Source: pkeys(7); Linux, Documentation/core-api/protection-keys.rst.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CODE_WRITE_KEY_H
#define CODE_WRITE_KEY_H

#include <cairn/status.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

/* Pages with key 0 are accessible to all threads. */
enum { WRITE_KEY_NONE = 0 };

/* Creates a key; the calling thread has no rights for it. Errors: UNSUPPORTED (the processor, the
 * kernel or the C library has no keys; or all are in use). */
enum cairn_status write_key_create(int *key, struct cairn_error *error);
/* Frees a key that no page has. WRITE_KEY_NONE is allowed. */
void write_key_destroy(int key);

/* Makes pages readable and writable, for threads that have opened the key. Returns 0 or -1 with
 * errno, as mprotect. */
int write_key_make_writable(int key, void *address, size_t size);

/* Opens the views of a key for this thread. Returns the rights that it had, for write_key_close. Do
 * nothing if there is no key. Calls may be nested. Async-signal-safe. */
static inline int write_key_open(int key)
{
#ifdef PKEY_DISABLE_ACCESS
    if (__builtin_expect(key != WRITE_KEY_NONE, 0)) {
        int before = pkey_get(key);
        pkey_set(key, 0);
        return before;
    }
#else
    (void)key;
#endif
    return 0;
}

/* Closes the views for a call of the host. Returns the rights for write_key_close. */
static inline int write_key_suspend(int key)
{
#ifdef PKEY_DISABLE_ACCESS
    if (__builtin_expect(key != WRITE_KEY_NONE, 0)) {
        int before = pkey_get(key);
        pkey_set(key, PKEY_DISABLE_ACCESS);
        return before;
    }
#else
    (void)key;
#endif
    return 0;
}

static inline void write_key_close(int key, int before)
{
#ifdef PKEY_DISABLE_ACCESS
    if (__builtin_expect(key != WRITE_KEY_NONE, 0))
        pkey_set(key, (unsigned)before);
#else
    (void)key;
    (void)before;
#endif
}

#endif
