/*
 * Forked children: a child's code is a copy of its parent's at the moment of the fork.
 *
 * Private memory (tables, veneers' slots, data) is copied by the kernel. Code pages are shared in
 * dual mapping, so a child would execute what its parent patches, frees and loads afterwards. The
 * guarantee, for children made by fork(): when fork() returns, the child executes its own code,
 * whatever the threads of the parent do before, at and after that moment, and whether or not the
 * child calls Cairn; and no change that the child makes reaches its parent.
 *
 * How. pthread_atfork has this file called in the thread that forks.
 *  - Before the fork, all locks of all spaces are taken. So nobody is loading, freeing or writing
 *    code, and no list is half linked. Then the code pages are copied to private memory. Live
 *    patches take no lock and go on: a word may change before or after its page is copied. So each
 *    patch notes, in the private memory of its site, the instruction that it has stored
 *    (patch/fork.c).
 *  - The kernel copies private memory at one moment, in this sense: if the child sees a store, it
 *    sees all stores that happened before it. (A page that has been copied is write-protected, and
 *    a thread that writes to it waits until the whole copy is done.) A patch that has returned, and
 *    the slot of the veneer that its word goes to, are therefore in the child's notes and slots. A
 *    patch that had not returned yet is in the child or it is not.
 *  - In the child, the notes are written over those words of the copied pages that differ, and the
 *    pages are moved to where the code runs: private pages, with one view. That copies nothing, so
 *    a child that only executes another program costs little more than the parent's copy.
 *  - In both, the locks are free. The child's are made anew.
 *
 * The child's first change of code gives the pages a second view (code_space_after_fork).
 *
 * The handlers need a list of all spaces in the process, which is this library's only global
 * variable: pthread_atfork takes no argument for its handlers.
 *
 * Children made in another way (clone, _Fork) run no handlers. There a mark tells: a page that the
 * kernel wipes in a child (MADV_WIPEONFORK, Linux 4.14), so that asking is one load. Every entry
 * point that takes a lock calls code_space_renew_locks, and every one that changes code calls
 * code_space_after_fork. Until that the child executes its parent's pages, and what it copies then
 * is the parent's code of that moment with its own words in it: right as long as the parent has
 * not freed code since. That a thread of the parent held a lock, with a list half linked, is not
 * provided for there; POSIX does not let such a child of a process with several threads call
 * anything but async-signal-safe functions. A child made with vfork or clone(CLONE_VM) shares all
 * memory with its parent, and the mark says so.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "code/map.h"
#include "code/state.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- How far a process has come ---- */

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

static void set_stage(struct code_space *space, enum code_space_stage stage)
{
    space->process = getpid();
    atomic_store_explicit(&space->stage, (uint32_t)stage, memory_order_release);
    if (space->own_mark != NULL)
        atomic_store_explicit(space->own_mark, (uint32_t)stage, memory_order_release);
}

enum code_space_stage code_space_stage_by_process(const struct code_space *space)
{
    if (space->process != getpid())
        return CODE_SPACE_INHERITED;
    return (enum code_space_stage)atomic_load_explicit(&space->stage, memory_order_acquire);
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
    set_stage(space, CODE_SPACE_OWN);
    return CAIRN_OK;
}

void ownership_destroy(struct code_space *space)
{
    if (space->own_mark != NULL)
        munmap(space->own_mark, space->page_size);
}

/* ---- Locks ---- */

void space_create_locks(struct code_space *space)
{
    pthread_mutex_init(&space->after_fork_lock, NULL);
    pthread_mutex_init(&space->lock, NULL);
}

void space_destroy_locks(struct code_space *space)
{
    pthread_mutex_destroy(&space->lock);
    pthread_mutex_destroy(&space->after_fork_lock);
}

static void renew_locks(struct code_space *space)
{
    space_create_locks(space);
    if (space->fork_client != NULL)
        space->fork_client->renew_locks(space->fork_user);
    set_stage(space, CODE_SPACE_RENEWED);
}

void code_space_renew_locks(struct code_space *space)
{
    if (code_space_stage(space) == CODE_SPACE_INHERITED)
        renew_locks(space);
}

/* The client's before the space's, as everywhere. */
static void take_locks(struct code_space *space)
{
    code_space_renew_locks(space);
    pthread_mutex_lock(&space->after_fork_lock);
    if (space->fork_client != NULL)
        space->fork_client->lock(space->fork_user);
    pthread_mutex_lock(&space->lock);
}

static void release_locks(struct code_space *space)
{
    pthread_mutex_unlock(&space->lock);
    if (space->fork_client != NULL)
        space->fork_client->unlock(space->fork_user);
    pthread_mutex_unlock(&space->after_fork_lock);
}

/* ---- Copies of code pages ---- */

static bool needs_copy(const struct code_slab *slab)
{
    return slab->map->mode == CAIRN_CODE_MODE_DUAL && !slab->is_detached && slab->code_end > 0;
}

static void drop_copy(struct code_slab *slab)
{
    if (slab->copy != NULL)
        munmap(slab->copy, slab->copy_bytes);
    slab->copy = NULL;
}

static enum cairn_status make_copy(struct code_slab *slab, struct cairn_error *error)
{
    size_t bytes = slab->code_end * slab->page_size;
    void *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (copy == MAP_FAILED)
        return error_set_system(error, errno, "cannot copy %zu bytes of code for a forked child",
                                bytes);
    /* With pages of 4 KiB the page faults take longer than the copying. */
    (void)madvise(copy, bytes, MADV_HUGEPAGE);
    slab->copy = copy;
    slab->copy_bytes = bytes;
    for (struct code_run run = {0}; slab_next_run(slab, &run);) {
        size_t offset = run.first_page * slab->page_size;
        map_copy_words(slab->copy + offset, slab->base + offset, run.page_count * slab->page_size);
    }
    return CAIRN_OK;
}

/* Of all slabs that need one and have none. */
static enum cairn_status make_copies(struct code_space *space, struct cairn_error *error)
{
    for (struct code_slab *slab = space->slabs; slab != NULL; slab = slab->next) {
        if (!needs_copy(slab) || slab->copy != NULL)
            continue;
        enum cairn_status status = make_copy(slab, error);
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}

static void drop_copies(struct code_space *space)
{
    for (struct code_slab *slab = space->slabs; slab != NULL; slab = slab->next)
        drop_copy(slab);
}

/* Where the system has no memory for a copy, the child tries again, with what its parent's code is
 * then. */
static void copy_before_fork(struct code_space *space)
{
    enum cairn_status status = make_copies(space, NULL);
    (void)status;
    /* In a child that has changed nothing yet, the notes are of its own fork, and still right. */
    if (space->fork_client != NULL && code_space_is_own(space))
        space->fork_client->note_words(space->fork_user);
}

/* In the child: the code of the moment of the fork. */
static enum cairn_status complete_copies(struct code_space *space, struct cairn_error *error)
{
    enum cairn_status status = make_copies(space, error);
    if (status == CAIRN_OK && space->fork_client != NULL)
        space->fork_client->write_words(space->fork_user);
    return status;
}

static bool make_executable(const struct code_slab *slab)
{
    for (struct code_run run = {0}; slab_next_run(slab, &run);) {
        uint8_t *copied = slab->copy + run.first_page * slab->page_size;
        size_t size = run.page_count * slab->page_size;
        arch_host_code_written(copied, copied, size);
        if (run.state == PAGE_CODE && mprotect(copied, size, PROT_READ | PROT_EXEC) != 0)
            return false;
    }
    return true;
}

/* The part of the copy from one offset to another. */
static void drop_part(const struct code_slab *slab, size_t from, size_t to)
{
    if (to > from)
        munmap(slab->copy + from, to - from);
}

/* Moves the copied pages to where the shared ones are, each run in one step. What is not moved is
 * unmapped, and no more: where pages have been moved from, another thread may have mapped
 * something. */
static bool move_copy(struct code_slab *slab)
{
    size_t done = 0;
    bool is_moved = true;
    for (struct code_run run = {0}; is_moved && slab_next_run(slab, &run);) {
        size_t offset = run.first_page * slab->page_size;
        size_t size = run.page_count * slab->page_size;
        is_moved = mremap(slab->copy + offset, size, size, MREMAP_MAYMOVE | MREMAP_FIXED,
                          slab->base + offset) != MAP_FAILED;
        if (!is_moved)
            break;
        drop_part(slab, done, offset);
        done = offset + size;
    }
    drop_part(slab, done, slab->copy_bytes);
    slab->copy = NULL;
    return is_moved;
}

/* Lets the child execute its copies. False: some of its code is shared with its parent still. A
 * system that lets no anonymous memory become executable leaves the copies for add_views. */
static bool place_copies(struct code_space *space)
{
    bool all = true;
    for (struct code_slab *slab = space->slabs; slab != NULL; slab = slab->next) {
        if (slab->copy == NULL)
            continue;
        slab->is_detached = make_executable(slab) && move_copy(slab);
        all = all && slab->is_detached;
    }
    return all;
}

/* ---- Changing code in a child ---- */

static enum cairn_status add_views(struct code_space *space, struct cairn_error *error)
{
    for (struct code_slab *slab = space->slabs; slab != NULL; slab = slab->next) {
        enum cairn_status status = slab_forget_unfinished(slab, error);
        if (status == CAIRN_OK)
            status = slab->map->after_fork(slab, error);
        if (status != CAIRN_OK)
            return status;
        drop_copy(slab);
        slab->is_detached = false;
    }
    space->has_barrier = barrier_register();
    set_stage(space, CODE_SPACE_OWN);
    return CAIRN_OK;
}

/* If it fails, the copies that there are stay for the next time. */
static enum cairn_status make_own(struct code_space *space, struct cairn_error *error)
{
    enum cairn_status status = complete_copies(space, error);
    if (status != CAIRN_OK)
        return status;
    pthread_mutex_lock(&space->lock);
    status = add_views(space, error);
    pthread_mutex_unlock(&space->lock);
    return status;
}

enum cairn_status code_space_after_fork(struct code_space *space, struct cairn_error *error)
{
    if (code_space_is_own(space))
        return CAIRN_OK;
    code_space_renew_locks(space);
    pthread_mutex_lock(&space->after_fork_lock);
    enum cairn_status status = code_space_is_own(space) ? CAIRN_OK : make_own(space, error);
    pthread_mutex_unlock(&space->after_fork_lock);
    return status;
}

/* ---- All spaces of the process ---- */

/* What must stay true: `first` and what follows are the spaces that exist; changed and read with
 * `lock` held, which is taken before all other locks. */
static struct {
    pthread_mutex_t lock;
    struct code_space *first;
} spaces = {.lock = PTHREAD_MUTEX_INITIALIZER};

void space_watch_forks(struct code_space *space)
{
    pthread_mutex_lock(&spaces.lock);
    space->next_space = spaces.first;
    spaces.first = space;
    pthread_mutex_unlock(&spaces.lock);
}

void space_ignore_forks(struct code_space *space)
{
    pthread_mutex_lock(&spaces.lock);
    struct code_space **link = &spaces.first;
    while (*link != NULL && *link != space)
        link = &(*link)->next_space;
    if (*link != NULL)
        *link = space->next_space;
    pthread_mutex_unlock(&spaces.lock);
}

void code_space_set_fork_client(struct code_space *space, const struct code_fork_client *client,
                                void *user)
{
    pthread_mutex_lock(&spaces.lock);
    space->fork_client = client;
    space->fork_user = user;
    pthread_mutex_unlock(&spaces.lock);
}

static void before_fork(void)
{
    pthread_mutex_lock(&spaces.lock);
    for (struct code_space *space = spaces.first; space != NULL; space = space->next_space) {
        take_locks(space);
        copy_before_fork(space);
    }
}

static void after_fork_in_parent(void)
{
    for (struct code_space *space = spaces.first; space != NULL; space = space->next_space) {
        /* Else they are of the fork that this process comes from, and are still needed. */
        if (code_space_is_own(space))
            drop_copies(space);
        release_locks(space);
    }
    pthread_mutex_unlock(&spaces.lock);
}

/* Where the system refuses the child all this, its first change tries again. */
static void after_fork_in_child(void)
{
    pthread_mutex_init(&spaces.lock, NULL);
    for (struct code_space *space = spaces.first; space != NULL; space = space->next_space) {
        renew_locks(space);
        if (complete_copies(space, NULL) == CAIRN_OK && !place_copies(space)) {
            enum cairn_status status = code_space_after_fork(space, NULL);
            (void)status;
        }
    }
}

/* Early, so that handlers that the host registers later run before these in `before_fork`, with the
 * host's locks taken first, and after them in the child, where they may execute code. */
__attribute__((constructor)) static void register_handlers(void)
{
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
