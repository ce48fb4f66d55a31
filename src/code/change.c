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
#include "base/array.h"
#include "base/error.h"
#include "code/state.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* Pages of a slab, all of them code or free. The first and the last one change. */
struct run {
    struct code_slab *slab;
    size_t offset;
    size_t size;
};

/* The writes to make, with the space's lock held. */
struct change {
    struct code_space *space;
    code_write_source *source;
    void *user;
    size_t count;

    struct run *runs; /* `only` if there is one, so that changing one page allocates nothing */
    size_t run_count;
    size_t run_capacity; /* 0 for up to one run */
    struct run only;
    /* If there are several runs: copies of their old pages, one run after the other. */
    uint8_t *old;
    size_t old_bytes;
};

/* ---- Runs ---- */

static size_t offset_of(const struct code_write *write)
{
    return (size_t)(write->address - (uintptr_t)code_block_slab(write->block)->base);
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
        size_t start = offset_of(&write) / slab->page_size;
        size_t end = (offset_of(&write) + write.size - 1) / slab->page_size;
        if (end < from || start >= limit)
            continue;
        *first = !found || start < *first ? start : *first;
        *last = !found || end > *last ? end : *last;
        found = true;
    }
    return found;
}

static enum cairn_status find_runs(struct change *change, struct code_slab *slab,
                                   struct cairn_error *error)
{
    size_t first, last;
    size_t end = 0;
    while (find_bounds(change, slab, end, slab->page_count, &first, &last)) {
        end = first + 1;
        while (end <= last && (slab->states[end] == PAGE_CODE || slab->states[end] == PAGE_FREE))
            end++;
        if (end <= last)
            find_bounds(change, slab, first, end, &first, &last);
        end = last + 1;
        const struct run run = {slab, first * slab->page_size, (end - first) * slab->page_size};
        if (change->run_count == 0) {
            change->only = run;
            change->runs = &change->only;
            change->run_count = 1;
            continue;
        }
        bool is_second = change->run_count == 1;
        struct run *runs = array_reserve(&change->space->allocator, is_second ? NULL : change->runs,
                                         is_second ? 0 : change->run_count, 2,
                                         &change->run_capacity, sizeof *runs);
        if (runs == NULL)
            return error_set(error, CAIRN_ERROR_MEMORY, 0,
                             "no memory to change more than %zu runs of pages", change->run_count);
        if (is_second)
            runs[0] = change->only;
        runs[change->run_count++] = run;
        change->runs = runs;
    }
    return CAIRN_OK;
}

/* ---- The old pages ---- */

/* Makes an executable copy of all runs. */
static enum cairn_status keep_old(struct change *change, struct cairn_error *error)
{
    const int private = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    size_t bytes = 0;
    for (size_t i = 0; i < change->run_count; i++)
        bytes += change->runs[i].size;
    uint8_t *old = mmap(NULL, bytes, PROT_READ | PROT_WRITE, private, -1, 0);
    if (old == MAP_FAILED)
        return error_set_system(error, errno, "cannot keep a copy of %zu bytes of code", bytes);
    change->old = old;
    change->old_bytes = bytes;
    for (size_t i = 0; i < change->run_count; i++) {
        const struct run *run = &change->runs[i];
        size_t page_size = run->slab->page_size;
        for (size_t at = run->offset; at < run->offset + run->size; at += page_size) {
            if (run->slab->states[at / page_size] == PAGE_CODE)
                memcpy(old, run->slab->base + at, page_size);
            old += page_size;
        }
    }
    arch_host_code_written(change->old, change->old, bytes);
    if (mprotect(change->old, bytes, PROT_READ | PROT_EXEC) == 0)
        return CAIRN_OK;
    return error_set_system(error, errno, "cannot keep an executable copy of %zu bytes of code",
                            bytes);
}

/* Moves the old pages of the first `count` runs back into place. Adds their size to `*moved`. */
static enum cairn_status put_back(const struct change *change, size_t count, size_t *moved,
                                  struct cairn_error *error)
{
    for (size_t i = 0; i < count; i++) {
        const struct run *run = &change->runs[i];
        uint8_t *code = run->slab->base + run->offset;
        if (mremap(change->old + *moved, run->size, run->size, MREMAP_MAYMOVE | MREMAP_FIXED,
                   code) == MAP_FAILED)
            return error_set_system(error, errno,
                                    "code changes in %zu places of %zu, and the system refuses to "
                                    "undo that as well: some sites do the new thing",
                                    count - i, change->run_count);
        arch_host_code_written(code, code, run->size);
        *moved += run->size;
    }
    return CAIRN_OK;
}

/* ---- The steps ---- */

/* Executes a step for all runs. `*done` is the number of runs for which it succeeded. */
static enum cairn_status for_each_run(const struct change *change, code_change_step *step,
                                      size_t *done, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (*done = 0; step != NULL && *done < change->run_count; ++*done) {
        const struct run *run = &change->runs[*done];
        status = step(run->slab, run->offset, run->size, error);
        if (status != CAIRN_OK)
            break;
    }
    return status;
}

static enum cairn_status prepare(const struct change *change, struct cairn_error *error)
{
    const struct code_change_steps *steps = change->space->map->steps;
    size_t prepared;
    for (size_t i = 0; steps->begin != NULL && i < change->run_count; i++) {
        enum cairn_status status = steps->begin(change->runs[i].slab, error);
        if (status != CAIRN_OK)
            return status;
    }
    return for_each_run(change, steps->prepare, &prepared, error);
}

static void write_contents(const struct change *change, const struct run *run)
{
    uint8_t *contents = run->slab->alias + run->offset;
    struct code_write write;
    for (size_t i = 0; i < change->count; i++) {
        if (!change->source(change->user, i, &write) || code_block_slab(write.block) != run->slab)
            continue;
        size_t offset = offset_of(&write);
        if (offset >= run->offset && offset - run->offset < run->size)
            map_store(contents + (offset - run->offset), write.bytes, write.size);
    }
}

static enum cairn_status change_runs(struct change *change, struct cairn_error *error)
{
    const struct code_change_steps *steps = change->space->map->steps;
    size_t sealed, placed = 0, moved = 0;
    enum cairn_status status = prepare(change, error);
    if (status == CAIRN_OK && change->run_count > 1)
        status = keep_old(change, error);
    for (size_t i = 0; status == CAIRN_OK && i < change->run_count; i++)
        write_contents(change, &change->runs[i]);
    if (status == CAIRN_OK)
        status = for_each_run(change, steps->seal, &sealed, error);
    if (status == CAIRN_OK)
        status = for_each_run(change, steps->place, &placed, error);
    if (status != CAIRN_OK) {
        struct cairn_error failure;
        if (put_back(change, placed, &moved, &failure) != CAIRN_OK && error != NULL)
            *error = failure;
    }
    if (change->old_bytes > moved)
        munmap(change->old + moved, change->old_bytes - moved);
    for (size_t i = 0; steps->end != NULL && i < change->run_count; i++)
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
    for (struct code_slab *slab = space->slabs; status == CAIRN_OK && slab != NULL;
         slab = slab->next)
        status = find_runs(&change, slab, error);
    if (status == CAIRN_OK)
        status = change_runs(&change, error);
    if (change.run_capacity > 0)
        memory_free(&space->allocator, change.runs, change.run_capacity * sizeof *change.runs);
    space_leave(space);
    return status;
}
