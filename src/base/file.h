/*
 * base/file.h - sizes and contents of files, where RLIMIT_FSIZE must not end the process.
 *
 * If a file would exceed RLIMIT_FSIZE, the kernel refuses with EFBIG and sends SIGXFSZ to this
 * thread, which would end the process. So these functions block the signal, and consume it unless a
 * SIGXFSZ was pending before: the two signals cannot be told apart, and the host's own must be
 * delivered. They continue after signals (EINTR), and after a part was written.
 *
 * The others return 0 or an errno, and are async-signal-safe except file_allocate.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stddef.h>

/* Creates a memory file. `flag` is a flag of Linux 6.3, which older kernels do not know, and which
 * is left out there. Returns the descriptor, or -1 with errno. */
int file_create_memory(const char *name, unsigned flag);

/* Sets a file's size. */
int file_resize(int file, size_t size);

/* Sets a file's size and allocates its blocks, if the file system can do that: otherwise a store to
 * a mapped block for which there is no space raises SIGBUS. */
int file_allocate(int file, size_t size);

/* Writes all bytes at the file's position, or at `offset`. */
int file_write(int file, const void *bytes, size_t size);
int file_write_at(int file, const void *bytes, size_t size, size_t offset);

#endif
