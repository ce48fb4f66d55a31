/*
 * base/populate.h - pages that are about to be written or read.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BASE_POPULATE_H
#define BASE_POPULATE_H

#include <stddef.h>

/* Makes the kernel allocate the pages of a writable mapping that contain this range, with one call
 * instead of a page fault for each page. A page fault takes several times as long, and under a
 * hypervisor ten times. Does nothing if the kernel cannot do it (Linux 5.14) or has no memory: then
 * the first write to each page takes its fault. Does not change the contents, or errno. */
void populate(void *address, size_t size);

/* The same for a mapping that is only read, in which the whole range must be inside of the file. */
void populate_for_reading(const void *address, size_t size);

#endif
