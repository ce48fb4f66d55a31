/*
 * Dual mapping: code runs in one view of shared pages and is written through another view.
 *
 * The written view covers the whole slab. It is created first, from a memory file or, if those are
 * refused, from shared anonymous pages. The file is closed at once: mremap with an old size of 0
 * duplicates pages of the written view, which makes the executed view. Unused pages take no memory.
 * The written view has no access past the pages that have been used, so that unused pages take no
 * memory even if the process locks all its memory (mlockall).
 *
 * Neither view is ever writable and executable. The written view becomes read-write; the executed
 * view changes from read-write to read-execute.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "base/error.h"
#include "code/map.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* since Linux 6.3 */
#endif

enum { READ_WRITE = PROT_READ | PROT_WRITE };

/* ---- The written view ---- */

/* Sets the file's size. Returns 0 or an errno. If the size exceeds RLIMIT_FSIZE, the kernel refuses
 * with EFBIG and sends SIGXFSZ to this thread, which would end the process. So the signal is
 * blocked and then consumed, unless a SIGXFSZ was pending before: the two signals cannot be told
 * apart, and the host's own must be delivered. */
static int resize_file(int file, size_t size)
{
    sigset_t too_large, before, pending;
    sigemptyset(&too_large);
    sigaddset(&too_large, SIGXFSZ);
    int reason = pthread_sigmask(SIG_BLOCK, &too_large, &before);
    if (reason != 0)
        return reason;
    sigpending(&pending);
    if (ftruncate(file, (off_t)size) != 0)
        reason = errno;
    const struct timespec at_once = {0};
    if (reason == EFBIG && sigismember(&pending, SIGXFSZ) == 0)
        while (sigtimedwait(&too_large, NULL, &at_once) < 0 && errno == EINTR)
            continue;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return reason;
}

/* If vm.memfd_noexec is 1, a memory file is executable only if MFD_EXEC is given. Older kernels do
 * not know that flag. */
static uint8_t *view_file(size_t size, struct cairn_error *error)
{
    int file = memfd_create("cairn-code", MFD_CLOEXEC | MFD_EXEC);
    if (file < 0 && errno == EINVAL)
        file = memfd_create("cairn-code", MFD_CLOEXEC);
    if (file < 0) {
        error_set_system(error, errno, "memory files are refused (memfd_create)");
        return NULL;
    }
    void *view = MAP_FAILED;
    int reason = resize_file(file, size);
    if (reason == 0) {
        view = mmap(NULL, size, PROT_NONE, MAP_SHARED, file, 0);
        reason = errno;
    }
    close(file);
    if (view != MAP_FAILED)
        return view;
    if (reason == EFBIG)
        error_set_system(error, reason, "a memory file cannot have %zu bytes (raise RLIMIT_FSIZE)",
                         size);
    else
        map_cannot_reserve(size, "write code through", reason, error);
    return NULL;
}

static uint8_t *view_shared(size_t size, struct cairn_error *error)
{
    void *view = mmap(NULL, size, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (view != MAP_FAILED)
        return view;
    error_set_system(error, errno, "cannot map %zu bytes of shared memory", size);
    return NULL;
}

/* Makes the first `size` bytes of the view writable. */
static enum cairn_status make_writable(uint8_t *view, size_t size, struct cairn_error *error)
{
    enum cairn_status status = map_check_personality(error);
    if (status != CAIRN_OK || size == 0 || mprotect(view, size, READ_WRITE) == 0)
        return status;
    return error_set_system(error, errno, "cannot make %zu bytes writable to write code through",
                            size);
}

/* ---- The executed view ---- */

/* The writable part grows in steps of several pages, because code is mostly allocated one page at a
 * time. The duplicate is first made at another address. There the kernel checks all limits, and
 * nothing is lost if it refuses. */
static enum cairn_status map_code(struct code_slab *slab, size_t offset, size_t size,
                                  struct cairn_error *error)
{
    enum { STEP = 64 << 10 };
    if (offset + size > slab->alias_writable) {
        size_t extended = (offset + size + STEP - 1) & ~(size_t)(STEP - 1);
        if (extended > slab->size)
            extended = slab->size;
        enum cairn_status status = make_writable(slab->alias, extended, error);
        if (status != CAIRN_OK)
            return status;
        slab->alias_writable = extended;
    }
    void *view = mremap(slab->alias + offset, 0, size, MREMAP_MAYMOVE);
    if (view == MAP_FAILED)
        return error_set_system(error, errno,
                                "cannot map a second view of %zu bytes of code (RLIMIT_AS, "
                                "RLIMIT_MEMLOCK, or too many mappings?)",
                                size);
    if (mremap(view, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, slab->base + offset) != MAP_FAILED)
        return CAIRN_OK;
    error_set_system(error, errno, "cannot map a second view of %zu bytes of code", size);
    munmap(view, size);
    return CAIRN_ERROR_SYSTEM;
}

static void discard_code(struct code_slab *slab, size_t offset, size_t size)
{
    if (madvise(slab->alias + offset, size, MADV_REMOVE) != 0)
        memset(slab->alias + offset, 0, size);
}

static enum cairn_status write_alias(struct code_slab *slab, size_t offset, const void *bytes,
                                     size_t size, struct cairn_error *error)
{
    (void)error;
    map_store(slab->alias + offset, bytes, size);
    arch_host_code_written(slab->alias + offset, slab->base + offset, size);
    return CAIRN_OK;
}

/* ---- In a forked child ---- */

/* Replaces a run of pages in the same state. The new run is made at another address and moved over
 * the old one when it is complete, so that the code is mapped at every moment. */
static enum cairn_status replace_run(struct code_slab *slab, uint8_t *written,
                                     const struct code_run *run, struct cairn_error *error)
{
    size_t offset = run->first_page * slab->page_size;
    size_t size = run->page_count * slab->page_size;
    uint8_t *executed = slab->base + offset;
    map_copy_words(written + offset, slab->copy == NULL ? executed : slab->copy + offset, size);
    void *view = mremap(written + offset, 0, size, MREMAP_MAYMOVE);
    if (view == MAP_FAILED)
        return error_set_system(error, errno, "cannot map a forked child's own code");
    arch_host_code_written(written + offset, executed, size);
    int protection = run->state == PAGE_CODE ? PROT_READ | PROT_EXEC : READ_WRITE;
    if (mprotect(view, size, protection) == 0 &&
        mremap(view, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, executed) != MAP_FAILED)
        return CAIRN_OK;
    error_set_system(error, errno, "cannot put a forked child's own code in its place");
    munmap(view, size);
    return CAIRN_ERROR_SYSTEM;
}

/* Moves the written view into place. Its two parts are two mappings, and mremap moves one mapping
 * at a time. `*left` is the number of bytes at the start that have not been moved; another thread
 * may have mapped something in place of the others. */
static enum cairn_status replace_alias(struct code_slab *slab, uint8_t *written, size_t *left,
                                       struct cairn_error *error)
{
    const size_t starts[] = {slab->alias_writable, 0};
    const size_t sizes[] = {slab->size - slab->alias_writable, slab->alias_writable};
    for (int i = 0; i < 2; i++) {
        if (sizes[i] > 0 &&
            mremap(written + starts[i], sizes[i], sizes[i], MREMAP_MAYMOVE | MREMAP_FIXED,
                   slab->alias + starts[i]) == MAP_FAILED)
            return error_set_system(error, errno,
                                    "cannot put a forked child's written view in place");
        *left = starts[i];
    }
    return CAIRN_OK;
}

/* The child may be refused memory files even if its parent was not, or the reverse. If this
 * function fails half way, some pages are views of the new memory and the others are unchanged. All
 * of them hold the right code, and a repeated call copies all of them again. */
static enum cairn_status after_fork(struct code_slab *slab, struct cairn_error *error)
{
    uint8_t *written = view_file(slab->size, error);
    if (written == NULL)
        written = view_shared(slab->size, error);
    if (written == NULL)
        return CAIRN_ERROR_SYSTEM;
    size_t left = slab->size;
    enum cairn_status status = make_writable(written, slab->alias_writable, error);
    for (struct code_run run = {0}; status == CAIRN_OK && slab_next_run(slab, &run);)
        status = replace_run(slab, written, &run, error);
    if (status == CAIRN_OK)
        status = replace_alias(slab, written, &left, error);
    if (status != CAIRN_OK)
        munmap(written, left);
    return status;
}

/* ---- The two kinds ---- */

static enum cairn_status open_file(struct code_slab *slab, struct cairn_error *error)
{
    slab->alias = view_file(slab->size, error);
    return slab->alias == NULL ? CAIRN_ERROR_SYSTEM : CAIRN_OK;
}

static enum cairn_status open_shared(struct code_slab *slab, struct cairn_error *error)
{
    slab->alias = view_shared(slab->size, error);
    return slab->alias == NULL ? CAIRN_ERROR_SYSTEM : CAIRN_OK;
}

const struct code_map code_map_dual_file = {
    .name = "two views of a memory file",
    .mode = CAIRN_CODE_MODE_DUAL,
    .open = open_file,
    .after_fork = after_fork,
    .map_code = map_code,
    .discard_code = discard_code,
    .write = write_alias,
};

const struct code_map code_map_dual_shared = {
    .name = "two views of shared memory",
    .mode = CAIRN_CODE_MODE_DUAL,
    .open = open_shared,
    .after_fork = after_fork,
    .map_code = map_code,
    .discard_code = discard_code,
    .write = write_alias,
};
