/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int file_create_memory(const char *name, unsigned flag)
{
    int file = memfd_create(name, MFD_CLOEXEC | flag);
    return file < 0 && errno == EINVAL ? memfd_create(name, MFD_CLOEXEC) : file;
}

/* ---- The signal of too large files ---- */

struct held_signal {
    sigset_t before; /* the thread's blocked signals */
    bool was_pending;
};

static int hold_signal(struct held_signal *held)
{
    sigset_t too_large, pending;
    sigemptyset(&too_large);
    sigaddset(&too_large, SIGXFSZ);
    int failure = pthread_sigmask(SIG_BLOCK, &too_large, &held->before);
    if (failure != 0)
        return failure;
    sigpending(&pending);
    held->was_pending = sigismember(&pending, SIGXFSZ) != 0;
    return 0;
}

static void release_signal(const struct held_signal *held, int failure)
{
    static const struct timespec at_once = {0};
    sigset_t too_large;
    sigemptyset(&too_large);
    sigaddset(&too_large, SIGXFSZ);
    if (failure == EFBIG && !held->was_pending)
        while (sigtimedwait(&too_large, NULL, &at_once) < 0 && errno == EINTR)
            continue;
    pthread_sigmask(SIG_SETMASK, &held->before, NULL);
}

/* ---- Sizes ---- */

static int resize(int file, size_t size)
{
    while (ftruncate(file, (off_t)size) != 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

int file_resize(int file, size_t size)
{
    struct held_signal held;
    int failure = hold_signal(&held);
    if (failure != 0)
        return failure;
    failure = resize(file, size);
    release_signal(&held, failure);
    return failure;
}

static int allocate(int file, size_t size)
{
    int failure;
    do
        failure = posix_fallocate(file, 0, (off_t)size);
    while (failure == EINTR);
    return failure == EOPNOTSUPP || failure == EINVAL ? resize(file, size) : failure;
}

int file_allocate(int file, size_t size)
{
    struct held_signal held;
    int failure = hold_signal(&held);
    if (failure != 0)
        return failure;
    failure = allocate(file, size);
    release_signal(&held, failure);
    return failure;
}

/* ---- Contents ---- */

enum { AT_POSITION = -1 };

static ssize_t write_part(int file, const char *bytes, size_t size, off_t offset)
{
    return offset == AT_POSITION ? write(file, bytes, size) : pwrite(file, bytes, size, offset);
}

static int write_all(int file, const char *bytes, size_t size, off_t offset)
{
    while (size > 0) {
        ssize_t written = write_part(file, bytes, size, offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written == 0 ? ENOSPC : errno;
        bytes += written;
        size -= (size_t)written;
        offset += offset == AT_POSITION ? 0 : written;
    }
    return 0;
}

static int hold_and_write(int file, const void *bytes, size_t size, off_t offset)
{
    struct held_signal held;
    int failure = hold_signal(&held);
    if (failure != 0)
        return failure;
    failure = write_all(file, bytes, size, offset);
    release_signal(&held, failure);
    return failure;
}

int file_write(int file, const void *bytes, size_t size)
{
    return hold_and_write(file, bytes, size, AT_POSITION);
}

int file_write_at(int file, const void *bytes, size_t size, size_t offset)
{
    return hold_and_write(file, bytes, size, (off_t)offset);
}
