/*
 * Forked children: a child's code is a copy of the parent's code at the moment of the fork.
 *
 * The kernel copies private memory (tables, the slots of veneers, data, and with a single mapping
 * code). In dual mapping, code pages are shared memory, which the kernel does not copy. Guarantee
 * for children made by fork(): when fork() returns, the child's code is its own, and the child can
 * change it like any other process, whatever the threads of the parent do before, during and after
 * the fork. No change that the child makes reaches its parent. The exception is a system that
 * refuses memory, address space or a change of protection at the fork. A handler cannot make the
 * fork fail, so the child then executes its parent's code and can change nothing until
 * cairn_runtime_after_fork has made its code its own.
 *
 * Method. The handlers below run in the thread that forks (pthread_atfork).
 *  - Before the fork, they take all locks of all spaces. So no thread is loading, freeing or
 *    writing code, and all lists are consistent. Then they copy the code pages to new shared
 *    memory, which will be the child's. Live patches take no lock and continue, so a word may
 *    change before or after its page is copied. Therefore each patch also records, in the private
 *    memory of its site, the instruction that it has stored (site/fork.c).
 *  - The kernel's copy of private memory is a consistent snapshot in this sense: if the child sees
 *    a store, it sees all stores that happened before it. (A page that has been copied is
 *    write-protected, and a thread that writes to it waits until the whole copy is done.) So if a
 *    patch has returned, the child sees its record and the slot of the veneer that the patched word
 *    branches to. If a patch has not returned, the child may or may not have it.
 *  - In the child, they write the recorded words over those words of the copies that differ, and
 *    put the new memory in place of the parent's, in both views and at the same addresses.
 *  - The parent unmaps the new memory. In both processes, the locks are free afterwards. The child
 *    makes its locks anew.
 *
 * The handlers need a list of all spaces in the process, which is this library's only global
 * variable: pthread_atfork handlers have no argument.
 *
 * Children made in another way (clone, _Fork) run no handlers, and must call
 * cairn_runtime_after_fork before everything else: it does the same with the parent's current code,
 * which is correct as long as the parent has not freed code since the fork. If it is not called,
 * changes are refused (code_space_check_own), so that the parent is safe. Such a child is
 * recognised by a mark in a page that the kernel wipes in a child (MADV_WIPEONFORK, Linux 4.14), so
 * that the check takes one load. A child made with vfork or clone(CLONE_VM) shares all memory with
 * its parent. The mark is not wiped there, so that nothing is copied.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "code/map.h"
#include "code/state.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* ---- The stage of a process ---- */

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

/* Whether the system's answer to the advice to wipe a page means something. Linux refuses to wipe
 * shared pages. An emulator that ignores the advice (qemu-user before 8.0) accepts that as well. */
static bool refuses_shared_pages(size_t page_size)
{
    void *shared = mmap(NULL, page_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bool is_refused = shared == MAP_FAILED || madvise(shared, page_size, MADV_WIPEONFORK) != 0;
    if (shared != MAP_FAILED)
        munmap(shared, page_size);
    return is_refused;
}

/* The kernel, or the emulator, stays the same as long as the process. */
static bool is_advice_believed(size_t page_size)
{
    enum { UNKNOWN, BELIEVED, NOT_BELIEVED };
    static _Atomic int known = UNKNOWN;
    if (atomic_load_explicit(&known, memory_order_relaxed) == UNKNOWN)
        atomic_store_explicit(&known, refuses_shared_pages(page_size) ? BELIEVED : NOT_BELIEVED,
                              memory_order_relaxed);
    return atomic_load_explicit(&known, memory_order_relaxed) == BELIEVED;
}

enum cairn_status ownership_create(struct code_space *space, struct cairn_error *error)
{
    const int access = PROT_READ | PROT_WRITE;
    size_t size = space->page_size;
    void *page = mmap(NULL, size, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return error_set_system(error, errno, "cannot map a page that fork wipes");
    if (is_advice_believed(size) && madvise(page, size, MADV_WIPEONFORK) == 0)
        space->own_mark = page;
    else
        munmap(page, size);
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

void space_create_locks(struct code_space *space) { pthread_mutex_init(&space->lock, NULL); }

void space_destroy_locks(struct code_space *space) { pthread_mutex_destroy(&space->lock); }

static void renew_locks(struct code_space *space)
{
    space_create_locks(space);
    code_watchers_renew(&space->watchers);
    grace_renew_lock(&space->grace);
    if (space->fork_client != NULL)
        space->fork_client->renew_locks(space->fork_user);
    set_stage(space, CODE_SPACE_RENEWED);
}

/* The client's locks are taken before the space's, as everywhere. False: none is taken, because the
 * client refused. */
static bool take_locks(struct code_space *space)
{
    if (space->fork_client != NULL && !space->fork_client->try_lock(space->fork_user))
        return false;
    pthread_mutex_lock(&space->lock);
    grace_lock(&space->grace);
    return true;
}

static void release_locks(struct code_space *space)
{
    grace_unlock(&space->grace);
    pthread_mutex_unlock(&space->lock);
    if (space->fork_client != NULL)
        space->fork_client->unlock(space->fork_user);
}

/* Pauses while other threads hold locks that a client cannot wait for. A yield would not be enough:
 * this thread could take `spaces.lock` again before a thread that waits for it. */
static void pause_for_locks(void)
{
    static const struct timespec time = {.tv_nsec = 50000};
    nanosleep(&time, NULL);
}

/* ---- Making the child's code its own ---- */

static void drop_copies(struct code_space *space)
{
    for (struct code_slab *slab = space->slabs; slab != NULL; slab = slab->next)
        map_drop_copy(slab);
}

/* Copies the code of all slabs that share it with a child and have no copy yet. */
static enum cairn_status make_copies(struct code_space *space, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (struct code_slab *slab = space->slabs; status == CAIRN_OK && slab != NULL;
         slab = slab->next)
        if (slab->map->copy != NULL && slab->copy == NULL)
            status = slab->map->copy(slab, error);
    return status;
}

/* Makes the code that the child inherits its own. No other thread may use the space, or all locks
 * must be held. If it fails, all code that is executed is still right, and it may be repeated. */
static enum cairn_status make_own(struct code_space *space, struct cairn_error *error)
{
    enum cairn_status status = make_copies(space, error);
    if (status == CAIRN_OK && space->fork_client != NULL)
        space->fork_client->write_words(space->fork_user);
    for (struct code_slab *slab = space->slabs; status == CAIRN_OK && slab != NULL;
         slab = slab->next)
        status = slab->map->after_fork(slab, error);
    drop_copies(space);
    if (status != CAIRN_OK)
        return status;
    barrier_register(space);
    set_stage(space, CODE_SPACE_OWN);
    return CAIRN_OK;
}

/* For a child in which no handler did this. A thread of the parent, or the function that a signal
 * handler has interrupted, may have been changing the slabs. */
static enum cairn_status renew(struct code_space *space, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (struct code_slab *slab = space->slabs; status == CAIRN_OK && slab != NULL;
         slab = slab->next)
        status = slab_forget_unfinished(slab, error);
    if (status == CAIRN_OK)
        renew_locks(space);
    return status;
}

enum cairn_status code_space_after_fork(struct code_space *space, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    if (code_space_stage(space) == CODE_SPACE_INHERITED)
        status = renew(space, error);
    if (status != CAIRN_OK || code_space_is_own(space))
        return status;
    while (!take_locks(space))
        pause_for_locks();
    if (!code_space_is_own(space))
        status = make_own(space, error);
    release_locks(space);
    return status;
}

enum cairn_status code_space_refuse(struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_SYSTEM, 0,
                     "this process shares its code with the process that has forked it: "
                     "cairn_runtime_after_fork must be called first, and return OK");
}

/* ---- All spaces of the process ---- */

/* Invariant: the list that begins at `first` contains all spaces that exist. It is changed and read
 * with `lock` held, which is taken before all other locks except a client's that try_lock tries. */
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

/* Takes all locks, or none. */
static bool take_all_locks(void)
{
    pthread_mutex_lock(&spaces.lock);
    struct code_space *space = spaces.first;
    while (space != NULL && take_locks(space))
        space = space->next_space;
    if (space == NULL)
        return true;
    for (struct code_space *taken = spaces.first; taken != space; taken = taken->next_space)
        release_locks(taken);
    pthread_mutex_unlock(&spaces.lock);
    return false;
}

static void before_fork(void)
{
    while (!take_all_locks())
        pause_for_locks();
    for (struct code_space *space = spaces.first; space != NULL; space = space->next_space) {
        /* If the system has no memory or address space for a copy, the child tries again, with the
         * parent's code at that time. */
        enum cairn_status status = make_copies(space, NULL);
        (void)status;
        /* In a child that shares its parent's code, the records of its own fork are still right. */
        if (space->fork_client != NULL && code_space_is_own(space))
            space->fork_client->note_words(space->fork_user);
    }
}

static void after_fork_in_parent(void)
{
    for (struct code_space *space = spaces.first; space != NULL; space = space->next_space) {
        drop_copies(space);
        release_locks(space);
    }
    pthread_mutex_unlock(&spaces.lock);
}

static void after_fork_in_child(void)
{
    pthread_mutex_init(&spaces.lock, NULL);
    for (struct code_space *space = spaces.first; space != NULL; space = space->next_space) {
        renew_locks(space);
        enum cairn_status status = make_own(space, NULL);
        (void)status;
    }
}

/* Registers the handlers early, before the host registers its own. So the host's handlers run
 * before these in `before_fork`, where they take the host's locks first, and after these in the
 * child, where they may execute code. */
__attribute__((constructor)) static void register_handlers(void)
{
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
