/*
 * Single mapping: code has one mapping, and changed copies of pages replace them.
 *
 * The copies are made read-write at another address and become read-execute there. Then one mremap
 * moves them over the old pages. A thread that fetches from such a page during the call waits in
 * its page fault. It sees the old page before the call and the new page after it, never a page that
 * is writable or not executable. The space's lock serialises changes.
 *
 * Failures. Everything that needs memory, address space or one more mapping is done before the
 * move, without effect on running threads. The move has the same size in both places. So it passes
 * every limit (RLIMIT_AS, RLIMIT_DATA, the number of mappings) even if the process exceeds the
 * limit, and since Linux 5.1 the kernel checks the arguments and the number of mappings before it
 * unmaps the old pages. MREMAP_DONTUNMAP is not suitable: it needs address space, and the kernel
 * checks for that after it has unmapped the old pages.
 *
 * The workshop is the area `alias`, in which copies are made. The kernel merges neighbouring
 * mappings only if their page offsets (vm_pgoff) are contiguous and they share their
 * anonymous-memory root (anon_vma). So each page of code is created in an area as large as the
 * slab, at the page's own offset. Then patched code remains one mapping. The area has no access
 * except where a copy is being made, so that it takes no memory, even if the process locks all its
 * memory (mlockall).
 *
 * Moving pages out of the workshop leaves a hole, which is mapped again at once. Before that,
 * another thread's mmap may get the same address, and its mapping must not be replaced
 * (MAP_FIXED_NOREPLACE). In this case, and if the system refuses the mapping, that part of the
 * workshop is lost. The next change tries to map it again first. If the address is taken, a new
 * workshop is made at another address; its pages do not merge with those of the old one. This is
 * rare because there is one page without access at each end of the area. Without it, a hole at the
 * end would be part of the free space next to it, where mappings of any size fit, such as a new
 * thread's stack.
 *
 * Source: mremap(2); Linux, mm/mremap.c, mm/vma.c (is_mergeable_anon_vma).
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "base/error.h"
#include "code/map.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum {
    READ_WRITE = PROT_READ | PROT_WRITE,
    RESERVED = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
};

static enum cairn_status cannot_execute(size_t size, const char *what, int reason,
                                        struct cairn_error *error)
{
    bool is_forbidden = reason == EACCES || reason == EPERM;
    return error_set_system(error, reason, "cannot make %zu bytes of %s executable%s", size, what,
                            is_forbidden ? " (PR_SET_MDWE, systemd's MemoryDenyWriteExecute and "
                                           "SELinux's execmem allow only a dual mapping)"
                                         : "");
}

static enum cairn_status close_pages(struct code_slab *slab, enum page_use use, size_t offset,
                                     size_t size, struct cairn_error *error)
{
    uint8_t *code = slab->base + offset;
    (void)use; /* always code */
    arch_host_code_written(code, code, size);
    if (mprotect(code, size, slab->read_execute) == 0)
        return CAIRN_OK;
    return cannot_execute(size, "code", errno, error);
}

/* ---- The workshop ---- */

static bool map_no_access(uint8_t *address, size_t size)
{
    return mmap(address, size, PROT_NONE, RESERVED | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/* Maps a hole again. Returns false if another thread has mapped something there (errno is EEXIST)
 * or if the system refuses. */
static bool map_hole(uint8_t *address, size_t size)
{
    void *mapped = mmap(address, size, PROT_NONE, RESERVED | MAP_FIXED_NOREPLACE, -1, 0);
    if (mapped == address)
        return true;
    /* Linux before 4.17 ignores the flag and maps at another address. */
    if (mapped != MAP_FAILED) {
        munmap(mapped, size);
        errno = EEXIST;
    }
    return false;
}

/* Gives the whole area the anonymous-memory root that all its pages will share: the first page that
 * is written gets a root, and shares it with the mapping that it is merged with afterwards. */
static enum cairn_status give_root(struct code_slab *slab, struct cairn_error *error)
{
    uint8_t *page = slab->alias - slab->alias_guard;
    if (mprotect(page, slab->page_size, READ_WRITE) == 0) {
        *(volatile uint8_t *)page = 0;
        if (mprotect(page, slab->page_size, PROT_NONE) == 0)
            return CAIRN_OK;
    }
    return error_set_system(error, errno, "cannot prepare the memory to change code in");
}

static enum cairn_status open_workshop(struct code_slab *slab, struct cairn_error *error)
{
    uint8_t *area = mmap(NULL, slab->size + 2 * slab->page_size, PROT_NONE, RESERVED, -1, 0);
    if (area == MAP_FAILED)
        return map_cannot_reserve(slab->size, "change code in", errno, error);
    slab->alias_guard = slab->page_size;
    slab->alias = area + slab->alias_guard;
    slab->alias_spent_size = 0;
    return give_root(slab, error);
}

static enum cairn_status reopen_workshop(struct code_slab *slab, struct cairn_error *error)
{
    map_close_alias(slab);
    return open_workshop(slab, error);
}

/* Private pages already belong to the child. But another thread of the parent may have been
 * changing some during the fork, so the area is mapped anew. */
static enum cairn_status after_fork_workshop(struct code_slab *slab, struct cairn_error *error)
{
    if (slab->alias == NULL || slab->alias_lost_size > 0)
        return reopen_workshop(slab, error);
    if (!map_no_access(slab->alias - slab->alias_guard, slab->size + 2 * slab->alias_guard))
        return error_set_system(error, errno,
                                "cannot reserve a forked child's memory to change code in");
    slab->alias_spent_size = 0;
    return give_root(slab, error);
}

static bool wipe_spent(struct code_slab *slab)
{
    if (slab->alias_spent_size > 0 &&
        !map_no_access(slab->alias + slab->alias_spent_offset, slab->alias_spent_size))
        return false;
    slab->alias_spent_size = 0;
    return true;
}

/* Must not be called while the workshop holds prepared pages: they would be lost. */
static enum cairn_status renew_workshop(struct code_slab *slab, struct cairn_error *error)
{
    if (slab->alias == NULL)
        return open_workshop(slab, error);
    bool is_found = slab->alias_lost_size == 0 ||
                    map_hole(slab->alias + slab->alias_lost_offset, slab->alias_lost_size);
    if (!is_found && errno == EEXIST)
        return reopen_workshop(slab, error);
    if (is_found)
        slab->alias_lost_size = 0;
    if (is_found && wipe_spent(slab))
        return CAIRN_OK;
    return error_set_system(error, errno,
                            "cannot map %zu bytes to change code in (RLIMIT_AS, or too many "
                            "mappings?)",
                            slab->alias_lost_size + slab->alias_spent_size);
}

/* If the system refuses, the next change tries again, and fails before it has any visible
 * effect. */
static void tidy_workshop(struct code_slab *slab)
{
    if (slab->alias_lost_size == 0)
        wipe_spent(slab);
}

/* Adds to the lost part, which is one range. Runs are moved out in ascending order, so the
 * part between two lost runs is not needed any more. */
static void note_lost(struct code_slab *slab, size_t offset, size_t size)
{
    if (slab->alias_lost_size > 0) {
        size_t lost_end = slab->alias_lost_offset + slab->alias_lost_size;
        if (offset > lost_end)
            munmap(slab->alias + lost_end, offset - lost_end);
        size += offset - slab->alias_lost_offset;
        offset = slab->alias_lost_offset;
    }
    slab->alias_lost_offset = offset;
    slab->alias_lost_size = size;
}

/* Makes pages of the workshop read-write. They are filled with zeros. Adds them to the spent part,
 * which is one range that contains everything used since the workshop was renewed. */
static enum cairn_status use_workshop(struct code_slab *slab, size_t offset, size_t size,
                                      struct cairn_error *error)
{
    enum cairn_status status = map_check_personality(error);
    if (status != CAIRN_OK)
        return status;
    size_t first = offset, end = offset + size;
    if (slab->alias_spent_size > 0) {
        size_t spent_end = slab->alias_spent_offset + slab->alias_spent_size;
        first = first < slab->alias_spent_offset ? first : slab->alias_spent_offset;
        end = end > spent_end ? end : spent_end;
    }
    slab->alias_spent_offset = first;
    slab->alias_spent_size = end - first;
    if (mprotect(slab->alias + offset, size, READ_WRITE) == 0)
        return CAIRN_OK;
    return error_set_system(error, errno,
                            "cannot make %zu bytes writable to change code in (RLIMIT_DATA, or too "
                            "many mappings?)",
                            size);
}

static bool move_out(struct code_slab *slab, size_t offset, size_t size)
{
    if (mremap(slab->alias + offset, size, size, MREMAP_MAYMOVE | MREMAP_FIXED,
               slab->base + offset) == MAP_FAILED)
        return false;
    if (!map_hole(slab->alias + offset, size))
        note_lost(slab, offset, size);
    else if (slab->alias_spent_offset == offset && slab->alias_spent_size == size)
        slab->alias_spent_size = 0;
    return true;
}

static enum cairn_status map_from_workshop(struct code_slab *slab, size_t offset, size_t size,
                                           struct cairn_error *error)
{
    enum cairn_status status = renew_workshop(slab, error);
    if (status == CAIRN_OK)
        status = use_workshop(slab, offset, size, error);
    if (status == CAIRN_OK && !move_out(slab, offset, size))
        status = error_set_system(error, errno, "cannot map %zu bytes of code", size);
    tidy_workshop(slab);
    return status;
}

/* ---- Replacing pages ---- */

/* The free pages are left empty. */
enum cairn_status map_single_copy(struct code_slab *slab, size_t offset, size_t size,
                                  struct cairn_error *error)
{
    enum cairn_status status = renew_workshop(slab, error);
    if (status == CAIRN_OK)
        status = use_workshop(slab, offset, size, error);
    if (status != CAIRN_OK)
        return status;
    for (size_t page = offset; page < offset + size; page += slab->page_size)
        if (slab->states[page / slab->page_size] == PAGE_CODE)
            memcpy(slab->alias + page, slab->base + page, slab->page_size);
    return CAIRN_OK;
}

/* Reserves the free pages again. If the system refuses, they stay empty and executable until they
 * are next used. */
static void reserve_free_pages(struct code_slab *slab, size_t offset, size_t size)
{
    size_t end = (offset + size) / slab->page_size;
    size_t page = offset / slab->page_size;
    while (page < end) {
        size_t first = page;
        while (page < end && slab->states[page] == PAGE_FREE)
            page++;
        if (page > first)
            map_no_access(slab->base + first * slab->page_size, (page - first) * slab->page_size);
        else
            page++;
    }
}

/* Copies that are not moved are in the spent part, which is mapped anew later. */
enum cairn_status map_single_place(struct code_slab *slab, size_t offset, size_t size,
                                   struct cairn_error *error)
{
    uint8_t *copies = slab->alias + offset;
    enum cairn_status status = CAIRN_OK;
    arch_host_code_written(copies, copies, size);
    if (mprotect(copies, size, slab->read_execute) != 0)
        status = cannot_execute(size, "changed code", errno, error);
    else if (!move_out(slab, offset, size))
        status = error_set_system(error, errno,
                                  "cannot replace %zu bytes of code by a changed copy", size);
    if (status == CAIRN_OK) {
        arch_host_code_written(slab->base + offset, slab->base + offset, size);
        reserve_free_pages(slab, offset, size);
    }
    tidy_workshop(slab);
    return status;
}

/* Writes bytes in one run, from the page of the first byte to that of the last. */
static enum cairn_status write_run(struct code_slab *slab, size_t offset, const void *bytes,
                                   size_t size, struct cairn_error *error)
{
    size_t in_page = offset & (slab->page_size - 1);
    size_t first = offset - in_page;
    size_t run = (in_page + size + slab->page_size - 1) & ~(slab->page_size - 1);
    enum cairn_status status = map_single_copy(slab, first, run, error);
    if (status != CAIRN_OK)
        return status;
    map_store(slab->alias + offset, bytes, size);
    return map_single_place(slab, first, run, error);
}

const struct code_map code_map_single = {
    .name = "changed copies of pages moved into place",
    .mode = CAIRN_CODE_MODE_SINGLE,
    .open = open_workshop,
    .after_fork = after_fork_workshop,
    .open_pages = map_from_workshop,
    .close_pages = close_pages,
    .write = write_run,
};
