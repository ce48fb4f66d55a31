/*
 * Forked children: a child's code is a copy of the parent's code at the moment of the fork.
 *
 * The kernel copies private memory (tables, the slots of veneers, data). In dual mapping, code
 * pages are shared, so that a child would execute what its parent patches, frees and loads after
 * the fork. Guarantee for children made by fork(): when fork() returns, the child executes its own
 * code, whatever the threads of the parent do before, during and after the fork, and whether or not
 * the child calls Cairn. No change that the child makes reaches its parent. The exception is a
 * system that refuses memory, address space or a change of protection at the fork. A handler cannot
 * make the fork fail, so the child then executes its parent's code, until the same steps succeed
 * when it first changes code.
 *
 * Method. The handlers below run in the thread that forks (pthread_atfork).
 *  - Before the fork, they take all locks of all spaces. So no thread is loading, freeing or
 *    writing code, and all lists are consistent. Then they copy the code pages to private memory.
 *    Live patches take no lock and continue, so a word may change before or after its page is
 *    copied. Therefore each patch also records, in the private memory of its site, the instruction
 *    that it has stored (site/fork.c).
 *  - The kernel's copy of private memory is a consistent snapshot in this sense: if the child sees
 *    a store, it sees all stores that happened before it. (A page that has been copied is
 *    write-protected, and a thread that writes to it waits until the whole copy is done.) So if a
 *    patch has returned, the child sees its record and the slot of the veneer that the patched word
 *    branches to. If a patch has not returned, the child may or may not have it.
 *  - In the child, they write the recorded words over those words of the copied pages that differ,
 *    and move the pages to the address where the code runs. These are private pages with one view.
 *    Moving copies nothing, so a child that only executes another program costs little more than
 *    the parent's copy.
 *  - In both processes, the locks are free afterwards. The child makes its locks anew.
 *
 * The child's first change of code creates a second view of the child's own (code_space_enter), in
 * which there is nothing at first. Before a page is changed, the step of pages that contains it is
 * copied and gets its place in both views (code_block_make_own). So the first change takes time
 * proportional to what it changes, not to the loaded code.
 *
 * The handlers need a list of all spaces in the process, which is this library's only global
 * variable: pthread_atfork handlers have no argument.
 *
 * Children made in another way (clone, _Fork) run no handlers. They are recognised by a mark in a
 * page that the kernel wipes in a child (MADV_WIPEONFORK, Linux 4.14), so that the check takes one
 * load. Every entry point that takes a lock calls code_space_renew_locks, and every one that
 * changes code calls code_space_enter. Until that call, the child executes its parent's pages.
 * At that call it copies the parent's current code and writes its own words over it, which is
 * correct as long as the parent has not freed code since the fork. Such a child does not handle the
 * case in which a thread of the parent held a lock or was changing a list; POSIX allows it to call
 * only async-signal-safe functions if its parent had several threads. A child made with vfork or
 * clone(CLONE_VM) shares all memory with its parent. The mark is not wiped there, so that nothing
 * is copied.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "code/map.h"
#include "code/state.h"

#include <errno.h>
#include <string.h>
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

/* Linux refuses to wipe shared pages. An emulator that ignores the advice (qemu-user before 8.0)
 * accepts that as well, so that its answer is meaningless. */
enum cairn_status ownership_create(struct code_space *space, struct cairn_error *error)
{
    const int access = PROT_READ | PROT_WRITE;
    size_t size = space->page_size;
    void *page = mmap(NULL, size, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return error_set_system(error, errno, "cannot map a page that fork wipes");
    void *shared = mmap(NULL, size, access, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bool is_believed = shared == MAP_FAILED || madvise(shared, size, MADV_WIPEONFORK) != 0;
    if (shared != MAP_FAILED)
        munmap(shared, size);
    if (is_believed && madvise(page, size, MADV_WIPEONFORK) == 0)
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
    code_watchers_renew(&space->watchers);
    grace_renew_lock(&space->grace);
    if (space->fork_client != NULL)
        space->fork_client->renew_locks(space->fork_user);
    set_stage(space, CODE_SPACE_RENEWED);
}

void code_space_renew_locks(struct code_space *space)
{
    if (code_space_stage(space) == CODE_SPACE_INHERITED)
        renew_locks(space);
}

/* The client's locks are taken before the space's, as everywhere. False: none is taken, because the
 * client refused. */
static bool take_locks(struct code_space *space)
{
    code_space_renew_locks(space);
    pthread_mutex_lock(&space->after_fork_lock);
    if (space->fork_client != NULL && !space->fork_client->try_lock(space->fork_user)) {
        pthread_mutex_unlock(&space->after_fork_lock);
        return false;
    }
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
    pthread_mutex_unlock(&space->after_fork_lock);
}

/* ---- Copies of code pages ---- */

static void drop_copy(struct code_slab *slab)
{
    if (slab->copy != NULL)
        munmap(slab->copy, slab->size);
    slab->copy = NULL;
}

/* Whether the pages of a run are copied. Open ones are private, and spare ones hold nothing. */
static bool is_copied(const struct code_run *run)
{
    return run->state == PAGE_CODE || run->state == PAGE_READ_ONLY;
}

static enum cairn_status make_copy(struct code_slab *slab, struct cairn_error *error)
{
    enum cairn_status status = map_check_personality(error);
    if (status != CAIRN_OK)
        return status;
    void *copy =
        mmap(NULL, slab->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (copy == MAP_FAILED)
        return error_set_system(
            error, errno, "cannot reserve %zu bytes to copy code for a forked child", slab->size);
    /* With pages of 4 KiB, page faults take longer than copying. */
    (void)madvise(copy, slab->size, MADV_HUGEPAGE);
    slab->copy = copy;
    for (struct code_run run = {0}; slab_next_run(slab, &run);) {
        size_t offset = run.first_page * slab->page_size;
        size_t size = run.page_count * slab->page_size;
        if (!is_copied(&run))
            continue;
        if (mprotect(slab->copy + offset, size, PROT_READ | PROT_WRITE) != 0) {
            int reason = errno;
            drop_copy(slab);
            return error_set_system(error, reason,
                                    "cannot copy %zu bytes of code for a forked child", size);
        }
        map_copy_words(slab->copy + offset, slab->base + offset, size);
    }
    return CAIRN_OK;
}

/* Copies the code pages of all slabs that share them with a child and have no copy yet. */
static enum cairn_status make_copies(struct code_space *space, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (struct code_slab *slab = space->slabs; status == CAIRN_OK && slab != NULL;
         slab = slab->next)
        if (slab->map->mode == CAIRN_CODE_MODE_DUAL && !slab->is_detached && slab->copy == NULL)
            status = make_copy(slab, error);
    return status;
}

static bool has_copy(const struct code_space *space)
{
    const struct code_slab *slab = space->slabs;
    while (slab != NULL && slab->copy == NULL)
        slab = slab->next;
    return slab != NULL;
}

/* Completes the copies in the child, so that they are the code at the moment of the fork. */
static enum cairn_status complete_copies(struct code_space *space, struct cairn_error *error)
{
    enum cairn_status status = make_copies(space, error);
    if (status == CAIRN_OK && space->fork_client != NULL && has_copy(space))
        space->fork_client->write_words(space->fork_user);
    return status;
}

/* Unmaps the part of the copy between two offsets. */
static void drop_part(const struct code_slab *slab, size_t from, size_t to)
{
    if (to > from)
        munmap(slab->copy + from, to - from);
}

/* Makes the copied pages executable, moves them to the place of the shared ones, each run in one
 * step, and unmaps the rest of the copy. It must not unmap more: another thread may have mapped
 * something where pages were moved away. Returns false and keeps the copy if the system does not
 * let anonymous memory become executable. */
static bool move_copy(struct code_slab *slab)
{
    size_t done = 0;
    bool is_moved = true;
    for (struct code_run run = {0}; slab_next_run(slab, &run);) {
        uint8_t *copied = slab->copy + run.first_page * slab->page_size;
        size_t size = run.page_count * slab->page_size;
        if (!is_copied(&run))
            continue;
        if (run.state == PAGE_CODE)
            arch_host_code_written(copied, copied, size);
        if (mprotect(copied, size, run.state == PAGE_CODE ? PROT_READ | PROT_EXEC : PROT_READ) != 0)
            return false;
    }
    for (struct code_run run = {0}; is_moved && slab_next_run(slab, &run);) {
        size_t offset = run.first_page * slab->page_size;
        size_t size = run.page_count * slab->page_size;
        if (!is_copied(&run))
            continue;
        is_moved = mremap(slab->copy + offset, size, size, MREMAP_MAYMOVE | MREMAP_FIXED,
                          slab->base + offset) != MAP_FAILED;
        if (!is_moved)
            break;
        drop_part(slab, done, offset);
        done = offset + size;
    }
    drop_part(slab, done, slab->size);
    slab->copy = NULL;
    return is_moved;
}

/* Makes the child execute its copies. Returns false if it still shares some code with its parent;
 * copies that remain are for make_own. */
static bool place_copies(struct code_space *space)
{
    bool all = true;
    for (struct code_slab *slab = space->slabs; slab != NULL; slab = slab->next) {
        if (slab->copy == NULL)
            continue;
        slab->is_detached = move_copy(slab);
        all = all && slab->is_detached;
    }
    return all;
}

/* ---- Changing code in a child ---- */

/* Whether the written views belong to this process. */
static bool is_prepared(const struct code_space *space)
{
    enum code_space_stage stage = code_space_stage(space);
    return stage == CODE_SPACE_OWN || stage == CODE_SPACE_PARTLY_OWN;
}

/* Prepares the second view of a slab whose pages were moved into place, or makes all code of
 * another slab the child's own. */
static enum cairn_status make_slab_own(struct code_slab *slab, struct cairn_error *error)
{
    bool is_lazy = slab->is_detached && slab->map->detach != NULL;
    enum cairn_status status = is_lazy ? CAIRN_OK : slab_forget_unfinished(slab, error);
    if (status == CAIRN_OK && is_lazy)
        status = slab->map->detach(slab, error);
    else if (status == CAIRN_OK && slab->map->after_fork != NULL)
        status = slab->map->after_fork(slab, error);
    if (status != CAIRN_OK)
        return status;
    drop_copy(slab);
    slab->is_detached = false;
    slab_set_partly_own(slab, is_lazy);
    return CAIRN_OK;
}

/* If it fails, existing copies remain for the next call. */
static enum cairn_status make_own(struct code_space *space, struct cairn_error *error)
{
    enum cairn_status status = complete_copies(space, error);
    if (status != CAIRN_OK)
        return status;
    pthread_mutex_lock(&space->lock);
    for (struct code_slab *slab = space->slabs; status == CAIRN_OK && slab != NULL;
         slab = slab->next)
        status = make_slab_own(slab, error);
    if (status == CAIRN_OK) {
        space->has_barrier = barrier_register();
        set_stage(space, CODE_SPACE_PARTLY_OWN);
        space_note_own(space);
    }
    pthread_mutex_unlock(&space->lock);
    return status;
}

void space_note_own(struct code_space *space)
{
    const struct code_slab *slab = space->slabs;
    while (slab != NULL && !slab->is_partly_own)
        slab = slab->next;
    if (slab == NULL)
        set_stage(space, CODE_SPACE_OWN);
}

enum cairn_status code_space_enter(struct code_space *space, struct cairn_error *error)
{
    if (is_prepared(space))
        return CAIRN_OK;
    code_space_renew_locks(space);
    pthread_mutex_lock(&space->after_fork_lock);
    enum cairn_status status = is_prepared(space) ? CAIRN_OK : make_own(space, error);
    pthread_mutex_unlock(&space->after_fork_lock);
    return status;
}

enum cairn_status code_space_after_fork(struct code_space *space, struct cairn_error *error)
{
    if (code_space_is_own(space))
        return CAIRN_OK;
    enum cairn_status status = space_enter(space, error);
    if (status != CAIRN_OK)
        return status;
    for (struct code_slab *slab = space->slabs; status == CAIRN_OK && slab != NULL;
         slab = slab->next)
        status = slab_make_own(slab, 0, slab->size, error);
    space_leave(space);
    return status;
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

/* Pauses while other threads hold locks that a client cannot wait for. A yield would not be enough:
 * this thread could take `spaces.lock` again before a thread that waits for it. */
static void before_fork(void)
{
    static const struct timespec pause = {.tv_nsec = 50000};
    while (!take_all_locks())
        nanosleep(&pause, NULL);
    for (struct code_space *space = spaces.first; space != NULL; space = space->next_space) {
        /* If the system has no memory or address space for a copy, the child tries again, with the
         * parent's code at that time. */
        enum cairn_status status = make_copies(space, NULL);
        (void)status;
        /* In a child that has changed nothing yet, the records of its own fork are still right. */
        if (space->fork_client != NULL && is_prepared(space))
            space->fork_client->note_words(space->fork_user);
    }
}

static void after_fork_in_parent(void)
{
    for (struct code_space *space = spaces.first; space != NULL; space = space->next_space) {
        /* If this process is a child that has not changed code yet, the copies belong to its own
         * fork and are still needed. */
        bool has_changed = is_prepared(space);
        for (struct code_slab *slab = space->slabs; has_changed && slab != NULL; slab = slab->next)
            drop_copy(slab);
        release_locks(space);
    }
    pthread_mutex_unlock(&spaces.lock);
}

/* If the system refuses one of these steps, the child executes its parent's code until its first
 * change, which tries again. */
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

/* Registers the handlers early, before the host registers its own. So the host's handlers run
 * before these in `before_fork`, where they take the host's locks first, and after these in the
 * child, where they may execute code. */
__attribute__((constructor)) static void register_handlers(void)
{
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
