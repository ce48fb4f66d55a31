/*
 * Many writes to protected code at once, where pages of code are replaced: all of the writes or
 * none of them.
 *
 * Undoing a replacement takes a system call, which the system may also refuse. So one system call
 * replaces all pages between the first and the last write, including free ones. Only pages that are
 * being loaded, and data, cannot be among them. So writes to several slabs, or on both sides of a
 * module that is being loaded, take several calls, one for each run of pages. For several runs, the
 * old pages are copied first. If a call is refused, the same kind of call moves the copies of the
 * runs that were already replaced back into place. If that is also refused, some writes stay in
 * effect, and the error says so. This happens only on a system that permanently refuses a call that
 * it has just granted.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "code/map.h"
#include "code/state.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* Pages of a slab, all of them code or free. The first and the last one change. */
struct run {
    struct code_slab *slab;
    size_t first;
    size_t end;
};

/* The writes to make, with the space's lock held. */
struct change {
    struct code_space *space;
    code_write_source *source;
    void *user;
    size_t count;

    struct run *runs; /* points to `only` or is allocated */
    size_t run_count;
    struct run only;
    /* If there are several runs: copies of their old pages, one run after the other. */
    uint8_t *old;
    size_t old_bytes;
};

/* ---- Runs ---- */

static bool may_be_in_run(const struct code_slab *slab, size_t page)
{
    return slab->states[page] == PAGE_CODE || slab->states[page] == PAGE_FREE;
}

/* Finds the first and the last page in [`from`, `limit`) that a write to the slab changes. */
static bool find_bounds(const struct change *change, const struct code_slab *slab, size_t from,
                        size_t limit, size_t *first, size_t *last)
{
    struct code_write write;
    bool found = false;
    for (size_t i = 0; i < change->count; i++) {
        if (!change->source(change->user, i, &write) || code_block_slab(write.block) != slab)
            continue;
        size_t offset = (size_t)(write.address - (uintptr_t)slab->base);
        size_t start = offset / slab->page_size;
        size_t end = (offset + write.size - 1) / slab->page_size;
        if (end < from || start >= limit)
            continue;
        *first = !found || start < *first ? start : *first;
        *last = !found || end > *last ? end : *last;
        found = true;
    }
    return found;
}

/* Finds the run after `*run`, in the same slab or a later one; the first run if `run->slab` is
 * NULL. */
static bool next_run(const struct change *change, struct run *run)
{
    struct code_slab *slab = run->slab == NULL ? change->space->slabs : run->slab;
    size_t from = run->slab == NULL ? 0 : run->end;
    for (; slab != NULL; slab = slab->next, from = 0) {
        size_t first, last;
        if (!find_bounds(change, slab, from, slab->page_count, &first, &last))
            continue;
        size_t end = first + 1;
        while (end <= last && may_be_in_run(slab, end))
            end++;
        if (end <= last)
            find_bounds(change, slab, first, end, &first, &last);
        *run = (struct run){slab, first, last + 1};
        return true;
    }
    return false;
}

static enum cairn_status find_runs(struct change *change, struct cairn_error *error)
{
    struct run run = {NULL, 0, 0};
    while (next_run(change, &run)) {
        change->only = run;
        change->run_count++;
    }
    change->runs = &change->only;
    if (change->run_count <= 1)
        return CAIRN_OK;
    change->runs = memory_new(&change->space->allocator, change->run_count, sizeof run);
    if (change->runs == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to change %zu runs of pages",
                         change->run_count);
    run.slab = NULL;
    for (size_t i = 0; i < change->run_count && next_run(change, &run); i++)
        change->runs[i] = run;
    return CAIRN_OK;
}

static void free_runs(const struct change *change)
{
    if (change->run_count > 1)
        memory_free(&change->space->allocator, change->runs,
                    change->run_count * sizeof *change->runs);
}

static size_t run_offset(const struct run *run) { return run->first * run->slab->page_size; }

static size_t run_bytes(const struct run *run)
{
    return (run->end - run->first) * run->slab->page_size;
}

static bool is_in_run(const struct run *run, const struct code_write *write)
{
    size_t offset = (size_t)(write->address - (uintptr_t)run->slab->base);
    return code_block_slab(write->block) == run->slab && offset >= run_offset(run) &&
           offset < run_offset(run) + run_bytes(run);
}

/* ---- The old pages ---- */

static void copy_code(const struct run *run, uint8_t *copies)
{
    size_t page_size = run->slab->page_size;
    for (size_t page = run->first; page < run->end; page++, copies += page_size)
        if (run->slab->states[page] == PAGE_CODE)
            memcpy(copies, run->slab->base + page * page_size, page_size);
}

static enum cairn_status keep_old(struct change *change, struct cairn_error *error)
{
    const int private = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    size_t bytes = 0;
    for (size_t i = 0; i < change->run_count; i++)
        bytes += run_bytes(&change->runs[i]);
    uint8_t *old = mmap(NULL, bytes, PROT_READ | PROT_WRITE, private, -1, 0);
    if (old == MAP_FAILED)
        return error_set_system(error, errno, "cannot keep a copy of %zu bytes of code", bytes);
    change->old = old;
    change->old_bytes = bytes;
    for (size_t i = 0; i < change->run_count; i++) {
        copy_code(&change->runs[i], old);
        old += run_bytes(&change->runs[i]);
    }
    arch_host_code_written(change->old, change->old, bytes);
    if (mprotect(change->old, bytes, PROT_READ | PROT_EXEC) == 0)
        return CAIRN_OK;
    return error_set_system(error, errno, "cannot keep an executable copy of %zu bytes of code",
                            bytes);
}

/* Restores the old pages of the first `count` runs. */
static enum cairn_status put_back(const struct change *change, size_t count,
                                  struct cairn_error *error)
{
    const uint8_t *old = change->old;
    for (size_t i = 0; i < count; i++) {
        const struct run *run = &change->runs[i];
        size_t bytes = run_bytes(run);
        uint8_t *code = run->slab->base + run_offset(run);
        if (mremap((void *)(uintptr_t)old, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, code) ==
            MAP_FAILED)
            return error_set_system(error, errno,
                                    "code changes in %zu places of %zu, and the system refuses to "
                                    "undo that as well: some sites do the new thing",
                                    count - i, change->run_count);
        arch_host_code_written(code, code, bytes);
        old += bytes;
    }
    return CAIRN_OK;
}

/* Unmaps the copies, except for the ones that were moved into place. */
static void forget_old(const struct change *change, size_t put_back_count)
{
    size_t used = 0;
    for (size_t i = 0; i < put_back_count; i++)
        used += run_bytes(&change->runs[i]);
    if (change->old_bytes > used)
        munmap(change->old + used, change->old_bytes - used);
}

/* ---- The steps, for all runs ---- */

static enum cairn_status prepare(const struct change *change, size_t *prepared,
                                 struct cairn_error *error)
{
    const struct code_change_steps *steps = change->space->map->steps;
    for (size_t i = 0; i < change->run_count; i++) {
        enum cairn_status status = steps->begin(change->runs[i].slab, error);
        if (status != CAIRN_OK)
            return status;
    }
    for (; *prepared < change->run_count; ++*prepared) {
        const struct run *run = &change->runs[*prepared];
        enum cairn_status status =
            steps->prepare(run->slab, run_offset(run), run_bytes(run), error);
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}

static void write_contents(const struct change *change, const struct run *run)
{
    size_t offset = run_offset(run);
    uint8_t *contents = change->space->map->steps->contents(run->slab, offset);
    struct code_write write;
    for (size_t i = 0; i < change->count; i++) {
        if (!change->source(change->user, i, &write) || !is_in_run(run, &write))
            continue;
        size_t in_slab = (size_t)(write.address - (uintptr_t)run->slab->base);
        map_store(contents + (in_slab - offset), write.bytes, write.size);
    }
}

static enum cairn_status write_and_seal(const struct change *change, struct cairn_error *error)
{
    for (size_t i = 0; i < change->run_count; i++)
        write_contents(change, &change->runs[i]);
    for (size_t i = 0; i < change->run_count; i++) {
        const struct run *run = &change->runs[i];
        enum cairn_status status =
            change->space->map->steps->seal(run->slab, run_offset(run), run_bytes(run), error);
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}

static enum cairn_status place(const struct change *change, size_t *placed,
                               struct cairn_error *error)
{
    for (; *placed < change->run_count; ++*placed) {
        const struct run *run = &change->runs[*placed];
        enum cairn_status status =
            change->space->map->steps->place(run->slab, run_offset(run), run_bytes(run), error);
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}

static enum cairn_status change_runs(struct change *change, struct cairn_error *error)
{
    const struct code_change_steps *steps = change->space->map->steps;
    size_t prepared = 0, placed = 0, undone = 0;
    enum cairn_status status = prepare(change, &prepared, error);
    if (status == CAIRN_OK && change->run_count > 1)
        status = keep_old(change, error);
    if (status == CAIRN_OK)
        status = write_and_seal(change, error);
    if (status == CAIRN_OK)
        status = place(change, &placed, error);
    if (status != CAIRN_OK) {
        for (size_t i = placed; i < prepared; i++)
            steps->abandon(change->runs[i].slab, run_offset(&change->runs[i]),
                           run_bytes(&change->runs[i]));
        struct cairn_error failure;
        undone = placed;
        if (put_back(change, placed, &failure) != CAIRN_OK && error != NULL)
            *error = failure;
    }
    forget_old(change, undone);
    for (size_t i = 0; i < change->run_count; i++)
        steps->end(change->runs[i].slab);
    return status;
}

enum cairn_status code_space_write_all(struct code_space *space, code_write_source *source,
                                       void *user, size_t count, struct cairn_error *error)
{
    struct change change = {.space = space, .source = source, .user = user, .count = count};
    enum cairn_status status = space_enter(space, error);
    if (status != CAIRN_OK)
        return status;
    status = find_runs(&change, error);
    if (status == CAIRN_OK)
        status = change_runs(&change, error);
    free_runs(&change);
    space_leave(space);
    return status;
}
