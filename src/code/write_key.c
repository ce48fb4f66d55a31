/* SPDX-License-Identifier: MIT */
#include "code/write_key.h"

#include "base/error.h"

#include <errno.h>

#ifdef PKEY_DISABLE_ACCESS

enum cairn_status write_key_create(int *key, struct cairn_error *error)
{
    int created = pkey_alloc(0, PKEY_DISABLE_ACCESS);
    if (created > 0) {
        *key = created;
        return CAIRN_OK;
    }
    int reason = errno;
    enum cairn_status status =
        error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                  reason == ENOSPC
                      ? "protects_writes: no memory protection key is free, or this processor or "
                        "kernel has none (`pku` in /proc/cpuinfo)"
                      : "protects_writes: this processor or kernel has no memory protection keys "
                        "(`pku` in /proc/cpuinfo; pkey_alloc)");
    if (error != NULL)
        error->system_error = reason;
    return status;
}

void write_key_destroy(int key)
{
    if (key != WRITE_KEY_NONE)
        pkey_free(key);
}

int write_key_make_writable(int key, void *address, size_t size)
{
    return key == WRITE_KEY_NONE ? mprotect(address, size, PROT_READ | PROT_WRITE)
                                 : pkey_mprotect(address, size, PROT_READ | PROT_WRITE, key);
}

#else

enum cairn_status write_key_create(int *key, struct cairn_error *error)
{
    (void)key;
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                     "protects_writes: Cairn was built with a C library without memory protection "
                     "keys");
}

void write_key_destroy(int key) { (void)key; }

int write_key_make_writable(int key, void *address, size_t size)
{
    (void)key;
    return mprotect(address, size, PROT_READ | PROT_WRITE);
}

#endif
