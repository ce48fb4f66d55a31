/*
 * Forked children: knowing that one is one, and giving it pages of its own.
 *
 * The mark is a page that the kernel wipes in a child (MADV_WIPEONFORK, Linux 4.14), so asking is
 * one load and needs no handler that would be global to the process. A child made with vfork or
 * clone(CLONE_VM) shares all memory with its parent, the mark too, as it should.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "code/state.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* Linux refuses to wipe shared pages. Emulators that ignore the advice (qemu-user before 8.0)
 * promise that as well, and cannot be believed. */
static bool believes_every_advice(size_t page_size)
{
    void *shared = mmap(NULL, page_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return false;
    bool believes = madvise(shared, page_size, MADV_WIPEONFORK) == 0;
    munmap(shared, page_size);
    return believes;
}

enum cairn_status ownership_create(struct code_space *space, struct cairn_error *error)
{
    void *page =
        mmap(NULL, space->page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return error_set_system(error, errno, "cannot map a page that fork wipes");
    if (madvise(page, space->page_size, MADV_WIPEONFORK) == 0 &&
        !believes_every_advice(space->page_size))
        space->own_mark = page;
    else
        munmap(page, space->page_size);
    space->lookup.own_mark = space->own_mark;
    ownership_take(space);
    return CAIRN_OK;
}

void ownership_take(struct code_space *space)
{
    space->process = getpid();
    if (space->own_mark != NULL)
        atomic_store_explicit(space->own_mark, 1, memory_order_relaxed);
}

void ownership_destroy(struct code_space *space)
{
    if (space->own_mark != NULL)
        munmap(space->own_mark, space->page_size);
}

bool code_space_is_own_by_process(const struct code_space *space)
{
    return space->process == getpid();
}

enum cairn_status code_space_after_fork(struct code_space *space, struct cairn_error *error)
{
    if (code_space_is_own(space))
        return CAIRN_OK;
    /* Whoever held it in the parent does not exist here. */
    pthread_mutex_init(&space->lock, NULL);
    for (struct code_slab *slab = space->slabs; slab != NULL; slab = slab->next) {
        enum cairn_status status = slab_forget_unfinished(slab, error);
        if (status == CAIRN_OK)
            status = space->map->after_fork(slab, error);
        if (status != CAIRN_OK)
            return status;
    }
    space->has_barrier = barrier_register();
    ownership_take(space);
    return CAIRN_OK;
}
