/*
 * Many writes to protected code with a single mapping, where changed copies of pages replace them.
 *
 * Writes that follow each other in the list are made as one run: one system call replaces all pages
 * from the first to the last one that changes, free ones too. Only pages that are being loaded,
 * data, and other slabs end a run. So a list takes one call in the usual case. If the system
 * refuses a run, the runs before it have been made.
 *
 * SPDX-License-Identifier: MIT
 */
#include "code/map.h"
#include "code/state.h"

/* The writes to make, with the space's lock held. */
struct writes {
    code_write_source *source;
    void *user;
    size_t count;
};

/* Pages [`first`, `end`) of a slab, all of them code or free, and the number of writes to them. */
struct run {
    struct code_slab *slab;
    size_t first;
    size_t end;
    size_t count;
};

static size_t offset_of(const struct code_write *write)
{
    return (size_t)(write->address - (uintptr_t)code_block_slab(write->block)->base);
}

/* Whether the pages [`first`, `end`) can be replaced. */
static bool are_replaceable(const struct code_slab *slab, size_t first, size_t end)
{
    while (first < end && (slab->states[first] == PAGE_CODE || slab->states[first] == PAGE_FREE))
        first++;
    return first >= end;
}

/* Adds a write to the run, if it is not in another slab or past pages that must stay. */
static bool extend(struct run *run, const struct code_write *write)
{
    const struct code_slab *slab = code_block_slab(write->block);
    size_t first = offset_of(write) / slab->page_size;
    size_t end = (offset_of(write) + write->size - 1) / slab->page_size + 1;
    if (slab != run->slab || !are_replaceable(slab, first, run->first) ||
        !are_replaceable(slab, run->end, end))
        return false;
    run->first = first < run->first ? first : run->first;
    run->end = end > run->end ? end : run->end;
    run->count++;
    return true;
}

/* Returns the run that begins with write number `index`. */
static struct run find_run(const struct writes *writes, size_t index)
{
    struct code_write write;
    writes->source(writes->user, index, &write);
    struct code_slab *slab = code_block_slab(write.block);
    size_t page = offset_of(&write) / slab->page_size;
    struct run run = {slab, page, page, 0};
    while (extend(&run, &write) && index + run.count < writes->count)
        writes->source(writes->user, index + run.count, &write);
    return run;
}

static enum cairn_status make_run(const struct writes *writes, size_t index, const struct run *run,
                                  struct cairn_error *error)
{
    struct code_slab *slab = run->slab;
    size_t offset = run->first * slab->page_size;
    size_t size = (run->end - run->first) * slab->page_size;
    enum cairn_status status = map_single_copy(slab, offset, size, error);
    if (status != CAIRN_OK)
        return status;
    for (size_t i = index; i < index + run->count; i++) {
        struct code_write write;
        writes->source(writes->user, i, &write);
        map_store(slab->alias + offset_of(&write), write.bytes, write.size);
    }
    return map_single_place(slab, offset, size, error);
}

enum cairn_status code_space_write_all(struct code_space *space, code_write_source *source,
                                       void *user, size_t count, size_t *made,
                                       struct cairn_error *error)
{
    const struct writes writes = {source, user, count};
    *made = 0;
    enum cairn_status status = space_enter(space, error);
    if (status != CAIRN_OK)
        return status;
    while (status == CAIRN_OK && *made < count) {
        const struct run run = find_run(&writes, *made);
        status = make_run(&writes, *made, &run, error);
        *made += status == CAIRN_OK ? run.count : 0;
    }
    space_leave(space);
    return status;
}
