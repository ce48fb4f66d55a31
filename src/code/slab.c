/*
 * A slab: reserving address space; finding, taking, protecting and releasing pages.
 *
 * The search for free pages starts at the low end for code, at the high end for data, and slightly
 * below that for read-only data. So pages with the same protection are neighbours, and the kernel
 * keeps them in few mappings.
 *
 * SPDX-License-Identifier: MIT
 */
#include "code/slab.h"

#include "base/error.h"
#include "code/map.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The last 1/DATA_SHARE of the slab is kept for writable data until the remainder is full. */
enum { DATA_SHARE = 16 };

/* Slabs of at least this size begin at a multiple of it, so that they need few page tables. */
enum { PAGE_TABLE_SPAN = 2 << 20 };

enum { RESERVED = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };

/* ---- Creating and destroying ---- */

static uint8_t *reserve(size_t size, size_t page_size)
{
    size_t alignment = size >= PAGE_TABLE_SPAN ? PAGE_TABLE_SPAN : page_size;
    size_t slack = alignment - page_size;
    uint8_t *mapped = mmap(NULL, size + slack, PROT_NONE, RESERVED, -1, 0);
    if (mapped == MAP_FAILED)
        return NULL;
    size_t before = (size_t)(-(uintptr_t)mapped & (alignment - 1));
    if (before > 0)
        munmap(mapped, before);
    if (before < slack)
        munmap(mapped + before + size, slack - before);
    return mapped + before;
}

/* Maps the slab and its tables. The tables are mapped, not allocated, so that in a large slab only
 * the table pages in use take memory. */
static enum cairn_status map_slab(struct code_slab *slab, struct cairn_error *error)
{
    size_t owners_bytes = slab->page_count * sizeof *slab->owners;
    enum cairn_status status = map_check_personality(error);
    if (status != CAIRN_OK)
        return status;
    slab->base = reserve(slab->size, slab->page_size);
    if (slab->base == NULL)
        return map_cannot_reserve(slab->size, "hold code", errno, error);
    slab->bookkeeping_bytes = owners_bytes + slab->page_count * sizeof *slab->states;
    void *mapped = mmap(NULL, slab->bookkeeping_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return error_set_system(error, errno, "cannot map the page table of a code slab");
    slab->owners = mapped;
    slab->states = (_Atomic uint8_t *)((uint8_t *)mapped + owners_bytes);
    return slab->map->open == NULL ? CAIRN_OK : slab->map->open(slab, error);
}

enum cairn_status slab_create(const struct cairn_allocator *allocator, const struct code_map *map,
                              size_t size, struct code_slab **slab, struct cairn_error *error)
{
    struct code_slab *created = memory_new(allocator, 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a code slab");
    created->map = map;
    created->size = size;
    created->page_size = (size_t)sysconf(_SC_PAGESIZE);
    created->page_count = size / created->page_size;
    created->room_at_least = created->page_count;
    created->room_at_most = created->page_count;
    enum cairn_status status = map_slab(created, error);
    if (status != CAIRN_OK) {
        slab_destroy(allocator, created);
        return status;
    }
    *slab = created;
    return CAIRN_OK;
}

void slab_unmap_alias(struct code_slab *slab)
{
    if (slab->alias == NULL)
        return;
    uint8_t *start = slab->alias - slab->alias_guard;
    uint8_t *end = slab->alias + slab->size + slab->alias_guard;
    if (slab->alias_lost_size > 0) {
        uint8_t *lost = slab->alias + slab->alias_lost_offset;
        if (lost > start)
            munmap(start, (size_t)(lost - start));
        start = lost + slab->alias_lost_size;
    }
    if (end > start)
        munmap(start, (size_t)(end - start));
    slab->alias = NULL;
    slab->alias_lost_size = 0;
}

void slab_destroy(const struct cairn_allocator *allocator, struct code_slab *slab)
{
    slab_unmap_alias(slab);
    if (slab->copy != NULL)
        munmap(slab->copy, slab->copy_bytes);
    if (slab->owners != NULL)
        munmap(slab->owners, slab->bookkeeping_bytes);
    if (slab->base != NULL)
        munmap(slab->base, slab->size);
    memory_free(allocator, slab, sizeof *slab);
}

bool slab_holds(const struct code_slab *slab, uint64_t address)
{
    return address - (uint64_t)(uintptr_t)slab->base < slab->size;
}

/* ---- Reading page states ---- */

/* The lock is held, so the bytes do not change while string functions read them. */
static const uint8_t *states_of(const struct code_slab *slab)
{
    return (const uint8_t *)slab->states;
}

/* States of free pages. Comparing with this array is the fastest way to skip many of them. */
static const uint8_t many_free[4096];
_Static_assert(PAGE_FREE == 0, "many_free is made of free pages");

/* Returns the number of free pages from `first` on, at most `limit`. */
static size_t count_free(const uint8_t *states, size_t first, size_t limit)
{
    size_t count = 0;
    for (size_t step = sizeof many_free; step > 0; step /= 16)
        while (limit - count >= step && memcmp(states + first + count, many_free, step) == 0)
            count += step;
    return count;
}

static bool find_up(const struct code_slab *slab, size_t page_count, size_t *first_page)
{
    const uint8_t *states = states_of(slab);
    size_t page = 0;
    while (page_count <= slab->page_count - page) {
        const uint8_t *found = memchr(states + page, PAGE_FREE, slab->page_count - page);
        if (found == NULL)
            return false;
        page = (size_t)(found - states);
        size_t limit = slab->page_count - page;
        size_t count = count_free(states, page, limit < page_count ? limit : page_count);
        if (count == page_count) {
            *first_page = page;
            return true;
        }
        page += count;
    }
    return false;
}

static bool find_down(const struct code_slab *slab, size_t end, size_t page_count,
                      size_t *first_page)
{
    const uint8_t *states = states_of(slab);
    while (page_count <= end) {
        const uint8_t *found = memrchr(states, PAGE_FREE, end);
        if (found == NULL)
            return false;
        end = (size_t)(found - states) + 1;
        size_t free = 1;
        while (free < page_count && free < end && states[end - free - 1] == PAGE_FREE)
            free++;
        end -= free;
        *first_page = end;
        if (free == page_count)
            return true;
    }
    return false;
}

size_t slab_room(struct code_slab *slab)
{
    if (slab->room_at_least == slab->room_at_most)
        return slab->room_at_least;
    const uint8_t *states = states_of(slab);
    size_t largest = 0;
    for (size_t page = 0; page < slab->page_count;) {
        const uint8_t *found = memchr(states + page, PAGE_FREE, slab->page_count - page);
        if (found == NULL)
            break;
        page = (size_t)(found - states);
        size_t count = count_free(states, page, slab->page_count - page);
        largest = count > largest ? count : largest;
        page += count;
    }
    slab->room_at_least = largest;
    slab->room_at_most = largest;
    return largest;
}

bool slab_has_room(struct code_slab *slab, size_t page_count)
{
    if (slab->room_at_least >= page_count || slab->room_at_most < page_count)
        return slab->room_at_least >= page_count;
    return slab_room(slab) >= page_count;
}

void slab_count_states(const struct code_slab *slab, size_t counts[PAGE_STATE_COUNT])
{
    const uint8_t *states = states_of(slab);
    for (size_t page = 0; page < slab->page_count; page++)
        counts[states[page]]++;
}

/* ---- Changing page states ---- */

static void set_states(struct code_slab *slab, size_t first_page, size_t page_count,
                       enum page_state state)
{
    for (size_t page = first_page; page < first_page + page_count; page++)
        atomic_store_explicit(&slab->states[page], (uint8_t)state, memory_order_release);
}

/* Updates the lower bound of the largest free range after free pages were taken. If they were part
 * of that range, its remainder is below and above them; if not, the range is still whole. The pages
 * above are counted, up to a limit, so that the whole slab need not be searched again. */
static void note_taken(struct code_slab *slab, size_t first_page, size_t page_count)
{
    const uint8_t *states = states_of(slab);
    size_t end = first_page + page_count;
    size_t beyond = slab->page_count - end;
    size_t limit = beyond < sizeof many_free ? beyond : sizeof many_free;
    size_t above = count_free(states, end, limit);
    bool above_is_whole = above < limit || limit == beyond;
    bool none_below = first_page == 0 || states[first_page - 1] != PAGE_FREE;
    size_t left = slab->room_at_least > page_count ? slab->room_at_least - page_count : 0;
    if (none_below)
        slab->room_at_least = left;
    else if (above_is_whole && left > 2 * above)
        slab->room_at_least = left - above;
    else
        slab->room_at_least = above;
}

/* ---- Taking, protecting, releasing ---- */

/* Replaces any mapping by the reservation, which has no access and takes no memory. */
static bool reserve_again(void *address, size_t size)
{
    return mmap(address, size, PROT_NONE, RESERVED | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/* Restores the reservation after mapping has failed. The system may have unmapped the old pages
 * before it failed, and another thread may have mapped something there. The pages are free only if
 * nothing is mapped there or the reservation still exists. */
static void restore_reservation(struct code_slab *slab, size_t first_page, size_t page_count)
{
    for (size_t page = first_page; page < first_page + page_count; page++) {
        uint8_t *address = slab->base + page * slab->page_size;
        void *mapped =
            mmap(address, slab->page_size, PROT_NONE, RESERVED | MAP_FIXED_NOREPLACE, -1, 0);
        if (mapped == address || (mapped == MAP_FAILED && errno == EEXIST))
            continue;
        if (mapped != MAP_FAILED)
            munmap(mapped, slab->page_size);
        set_states(slab, page, 1, PAGE_LOST);
        slab->room_at_least = 0;
    }
}

static enum cairn_status take(struct code_slab *slab, enum page_use use, size_t first_page,
                              size_t page_count, struct cairn_error *error)
{
    bool is_code = use == PAGES_FOR_CODE;
    size_t offset = first_page * slab->page_size;
    size_t size = page_count * slab->page_size;
    enum cairn_status status = map_check_personality(error);
    if (status != CAIRN_OK)
        return status;
    if (is_code) {
        status = slab->map->map_code(slab, offset, size, error);
        if (status != CAIRN_OK)
            restore_reservation(slab, first_page, page_count);
    } else if (mprotect(slab->base + offset, size, PROT_READ | PROT_WRITE) != 0) {
        status = error_set_system(error, errno, "cannot map %zu bytes of data beside code", size);
    }
    if (status != CAIRN_OK)
        return status;
    set_states(slab, first_page, page_count, is_code ? PAGE_CODE_WRITABLE : PAGE_DATA);
    note_taken(slab, first_page, page_count);
    if (is_code && slab->code_end < first_page + page_count)
        slab->code_end = first_page + page_count;
    return CAIRN_OK;
}

enum cairn_status slab_take(struct code_slab *slab, enum page_use use, size_t page_count,
                            size_t *first_page, bool *found, struct cairn_error *error)
{
    size_t below_data = slab->page_count - slab->page_count / DATA_SHARE;
    *found = false;
    if (page_count <= slab->room_at_most && use == PAGES_FOR_CODE)
        *found = find_up(slab, page_count, first_page);
    else if (page_count <= slab->room_at_most)
        *found =
            (use == PAGES_FOR_READ_ONLY && find_down(slab, below_data, page_count, first_page)) ||
            find_down(slab, slab->page_count, page_count, first_page);
    return *found ? take(slab, use, *first_page, page_count, error) : CAIRN_OK;
}

enum cairn_status slab_take_at(struct code_slab *slab, enum page_use use, size_t first_page,
                               size_t page_count, bool *found, struct cairn_error *error)
{
    *found = first_page <= slab->page_count && page_count <= slab->page_count - first_page &&
             count_free(states_of(slab), first_page, page_count) == page_count;
    return *found ? take(slab, use, first_page, page_count, error) : CAIRN_OK;
}

enum cairn_status slab_protect(struct code_slab *slab, enum page_use use, size_t first_page,
                               size_t page_count, struct cairn_error *error)
{
    uint8_t *address = slab->base + first_page * slab->page_size;
    size_t size = page_count * slab->page_size;
    if (use == PAGES_FOR_DATA)
        return CAIRN_OK;
    enum cairn_status status = map_check_personality(error);
    if (status != CAIRN_OK)
        return status;
    if (use == PAGES_FOR_CODE)
        arch_host_code_written(address, address, size);
    int protection = use == PAGES_FOR_CODE ? PROT_READ | PROT_EXEC : PROT_READ;
    if (mprotect(address, size, protection) != 0)
        return error_set_system(error, errno, "cannot make %zu bytes of %s", size,
                                use == PAGES_FOR_CODE ? "code executable" : "data read-only");
    if (use == PAGES_FOR_CODE)
        set_states(slab, first_page, page_count, PAGE_CODE);
    return CAIRN_OK;
}

static bool is_code(const struct code_slab *slab, size_t page)
{
    uint8_t state = states_of(slab)[page];
    return state == PAGE_CODE || state == PAGE_CODE_WRITABLE;
}

bool slab_next_run(const struct code_slab *slab, struct code_run *run)
{
    const uint8_t *states = states_of(slab);
    size_t page = run->first_page + run->page_count;
    while (page < slab->code_end && !is_code(slab, page))
        page++;
    if (page >= slab->code_end)
        return false;
    size_t end = page + 1;
    while (end < slab->code_end && states[end] == states[page])
        end++;
    *run = (struct code_run){page, end - page, (enum page_state)states[page]};
    return true;
}

void slab_release(struct code_slab *slab, size_t first_page, size_t page_count)
{
    size_t offset = first_page * slab->page_size;
    size_t size = page_count * slab->page_size;
    bool was_code = is_code(slab, first_page);
    set_states(slab, first_page, page_count, PAGE_FREE);
    if (!reserve_again(slab->base + offset, size)) {
        set_states(slab, first_page, page_count, PAGE_LOST);
        return;
    }
    if (was_code && slab->map->discard_code != NULL)
        slab->map->discard_code(slab, offset, size);
    slab->room_at_most = slab->page_count;
}

enum cairn_status slab_forget_unfinished(struct code_slab *slab, struct cairn_error *error)
{
    const uint8_t *states = states_of(slab);
    slab->room_at_least = 0;
    slab->room_at_most = slab->page_count;
    size_t page = 0;
    while (page < slab->page_count) {
        size_t count = count_free(states, page, slab->page_count - page);
        uint8_t *address = slab->base + page * slab->page_size;
        if (count > 0 && !reserve_again(address, count * slab->page_size))
            return error_set_system(error, errno, "cannot reserve a forked child's free pages");
        page += count + 1;
    }
    return CAIRN_OK;
}
