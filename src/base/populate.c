/*
 * Source: madvise(2), MADV_POPULATE_WRITE.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/populate.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

void populate(void *address, size_t size)
{
    size_t in_page = (uintptr_t)address & ((size_t)sysconf(_SC_PAGESIZE) - 1);
    int before = errno;
    (void)madvise((char *)address - in_page, size + in_page, MADV_POPULATE_WRITE);
    errno = before;
}
