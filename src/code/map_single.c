/*
 * Single mode: code has one mapping, and a page that is to change is replaced by a changed copy.
 *
 * The copy is made elsewhere, read-write, becomes read-execute there, and mremap then moves it
 * over the old page in one system call. A thread that fetches from the page meanwhile waits for
 * that call in its page fault and sees the old page before it and the new one after it: never a
 * page without execute permission, never one that is writable. Two changes of one page exclude
 * each other by the space's lock.
 *
 * The workshop. The kernel joins neighbouring mappings only if their pages were born at distances
 * that fit (vm_pgoff) and share their anonymous-memory root. So each page of code is born in an
 * area as large as the slab, at the page's own offset, one mapping all along; MREMAP_DONTUNMAP
 * leaves that area in place. Code that was patched anywhere then still is one mapping. With pages
 * from anywhere (single_fresh) each patched page splits its mapping for good: two more mappings a
 * patched page at most, of the 65530 that Linux allows a process by default.
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
#include <unistd.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4 /* since Linux 5.7 */
#endif

enum {
    READ_WRITE = PROT_READ | PROT_WRITE,
    READ_EXECUTE = PROT_READ | PROT_EXEC,
    PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
};

/* The page of `offset` with `size` bytes at `offset` changed, in `copy`. */
static void build_copy(const struct code_slab *slab, uint8_t *copy, size_t offset,
                       const void *bytes, size_t size)
{
    size_t in_page = offset & (slab->page_size - 1);
    memcpy(copy, slab->base + offset - in_page, slab->page_size);
    memcpy(copy + in_page, bytes, size);
    arch_host_code_written(copy, copy, slab->page_size);
}

static uint8_t *page_at(const struct code_slab *slab, uint8_t *area, size_t offset)
{
    return area + (offset & ~(slab->page_size - 1));
}

static enum cairn_status replacement_failed(struct cairn_error *error)
{
    return error_set_system(error, errno, "cannot replace a page of code by a changed copy");
}

/* Nothing to give back but the mapping, which has been replaced by the reservation. */
static void discard_code(struct code_slab *slab, size_t offset, size_t size)
{
    (void)slab;
    (void)offset;
    (void)size;
}

/* ---- The workshop ---- */

/* The whole area read-write and empty, with the anonymous-memory root that its pages will share. */
static enum cairn_status make_workshop(struct code_slab *slab, void *address, int fixed,
                                       struct cairn_error *error)
{
    uint8_t *area = mmap(address, slab->size, READ_WRITE, PRIVATE | fixed, -1, 0);
    if (area == MAP_FAILED)
        return error_set_system(error, errno, "cannot reserve %zu bytes to change code in",
                                slab->size);
    *(volatile uint8_t *)area = 0;
    slab->alias = area;
    slab->alias_soiled = false;
    return CAIRN_OK;
}

static enum cairn_status open_workshop(struct code_slab *slab, struct cairn_error *error)
{
    return make_workshop(slab, NULL, 0, error);
}

static enum cairn_status clean_workshop(struct code_slab *slab, struct cairn_error *error)
{
    return make_workshop(slab, slab->alias, MAP_FIXED, error);
}

/* Moves pages from the workshop to where they are used; their place in it is empty afterwards. */
static bool move_out(struct code_slab *slab, size_t offset, size_t size)
{
    return mremap(slab->alias + offset, size, size,
                  MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
                  slab->base + offset) != MAP_FAILED;
}

/* Emulators may take the place that pages were moved from for unmapped: whoever touches it then is
 * ended. So the system is asked to, with a file's name to be read from there, which only fails. */
static bool is_still_there(const uint8_t *place)
{
    return access((const char *)place, F_OK) == 0 || errno != EFAULT;
}

static enum cairn_status map_from_workshop(struct code_slab *slab, size_t offset, size_t size,
                                           struct cairn_error *error)
{
    if (slab->alias_soiled) {
        enum cairn_status status = clean_workshop(slab, error);
        if (status != CAIRN_OK)
            return status;
    }
    if (move_out(slab, offset, size) && is_still_there(slab->alias + offset))
        return CAIRN_OK;
    return error_set_system(error, errno, "cannot map %zu bytes of code", size);
}

static enum cairn_status replace_from_workshop(struct code_slab *slab, size_t offset,
                                               const void *bytes, size_t size,
                                               struct cairn_error *error)
{
    if (slab->alias_soiled) {
        enum cairn_status status = clean_workshop(slab, error);
        if (status != CAIRN_OK)
            return status;
    }
    uint8_t *copy = page_at(slab, slab->alias, offset);
    build_copy(slab, copy, offset, bytes, size);
    slab->alias_soiled = true;
    if (mprotect(copy, slab->page_size, READ_EXECUTE) != 0 ||
        !move_out(slab, (size_t)(copy - slab->alias), slab->page_size))
        return replacement_failed(error);
    /* The page is changed. If its place in the workshop stays soiled, the next one cleans up. */
    slab->alias_soiled = mprotect(copy, slab->page_size, READ_WRITE) != 0;
    arch_host_code_written(slab->base + offset, slab->base + offset, size);
    return CAIRN_OK;
}

/* Private pages are the child's own. But the parent may have been changing a page. */
static enum cairn_status after_fork_workshop(struct code_slab *slab, struct cairn_error *error)
{
    return clean_workshop(slab, error);
}

const struct code_map code_map_single_workshop = {
    .name = "pages moved from a workshop",
    .mode = CAIRN_CODE_MODE_SINGLE,
    .open = open_workshop,
    .after_fork = after_fork_workshop,
    .map_code = map_from_workshop,
    .discard_code = discard_code,
    .write = replace_from_workshop,
};

/* ---- Fresh pages ---- */

static enum cairn_status open_nothing(struct code_slab *slab, struct cairn_error *error)
{
    (void)slab;
    (void)error;
    return CAIRN_OK;
}

static enum cairn_status map_in_place(struct code_slab *slab, size_t offset, size_t size,
                                      struct cairn_error *error)
{
    if (mprotect(slab->base + offset, size, READ_WRITE) == 0)
        return CAIRN_OK;
    return error_set_system(error, errno, "cannot map %zu bytes of code", size);
}

static enum cairn_status replace_by_fresh(struct code_slab *slab, size_t offset, const void *bytes,
                                          size_t size, struct cairn_error *error)
{
    uint8_t *copy = mmap(NULL, slab->page_size, READ_WRITE, PRIVATE, -1, 0);
    if (copy == MAP_FAILED)
        return replacement_failed(error);
    build_copy(slab, copy, offset, bytes, size);
    if (mprotect(copy, slab->page_size, READ_EXECUTE) != 0 ||
        mremap(copy, slab->page_size, slab->page_size, MREMAP_MAYMOVE | MREMAP_FIXED,
               page_at(slab, slab->base, offset)) == MAP_FAILED) {
        replacement_failed(error);
        munmap(copy, slab->page_size);
        return CAIRN_ERROR_SYSTEM;
    }
    arch_host_code_written(slab->base + offset, slab->base + offset, size);
    return CAIRN_OK;
}

const struct code_map code_map_single_fresh = {
    .name = "fresh pages moved into place",
    .mode = CAIRN_CODE_MODE_SINGLE,
    .open = open_nothing,
    .after_fork = open_nothing,
    .map_code = map_in_place,
    .discard_code = discard_code,
    .write = replace_by_fresh,
};

/* ---- Toggling ---- */

static enum cairn_status write_toggled(struct code_slab *slab, size_t offset, const void *bytes,
                                       size_t size, struct cairn_error *error)
{
    uint8_t *page = page_at(slab, slab->base, offset);
    if (mprotect(page, slab->page_size, READ_WRITE) != 0)
        return error_set_system(error, errno, "cannot make a page of code writable");
    map_store(slab->base + offset, bytes, size);
    arch_host_code_written(slab->base + offset, slab->base + offset, size);
    if (mprotect(page, slab->page_size, READ_EXECUTE) != 0)
        return error_set_system(error, errno, "cannot make a page of code executable again");
    return CAIRN_OK;
}

const struct code_map code_map_single_toggle = {
    .name = "pages whose protection is toggled",
    .mode = CAIRN_CODE_MODE_SINGLE,
    .open = open_nothing,
    .after_fork = open_nothing,
    .map_code = map_in_place,
    .discard_code = discard_code,
    .write = write_toggled,
};
