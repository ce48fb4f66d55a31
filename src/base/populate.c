/*
 * Source: madvise(2), MADV_POPULATE_WRITE and MADV_POPULATE_READ.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/populate.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

static void advise(uintptr_t address, size_t size, int advice)
{
    size_t in_page = address & ((size_t)sysconf(_SC_PAGESIZE) - 1);
    int before = errno;
    (void)madvise((void *)(address - in_page), size + in_page, advice);
    errno = before;
}

void populate(void *address, size_t size) { advise((uintptr_t)address, size, MADV_POPULATE_WRITE); }

void populate_for_reading(const void *address, size_t size)
{
    advise((uintptr_t)address, size, MADV_POPULATE_READ);
}
