/*
 * A slab: reserving address space; finding, mapping, taking and releasing pages.
 *
 * The search for free pages starts at the low end for code, at the high end for data, and slightly
 * below that for read-only data. So pages with the same protection are neighbours, and the kernel
 * keeps them in few mappings.
 *
 * SPDX-License-Identifier: MIT
 */
#include "code/slab.h"

#include "base/error.h"
#include "base/populate.h"
#include "code/map.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The last 1/DATA_SHARE of the slab is kept for writable data until the remainder is full. */
enum { DATA_SHARE = 16 };

/* Slabs of at least this size begin at a multiple of it, so that they need few page tables. */
enum { PAGE_TABLE_SPAN = 2 << 20 };

/* Pages are mapped in steps of this many bytes, and a slab has at least so many steps. */
enum { STEP_BYTES = 64 << 10, STEPS_MIN = 64 };

/* Pages in one word of the bit map of dirty pages. */
enum { DIRTY_BITS = 64 };

enum { RESERVED = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };

/* ---- Creating and destroying ---- */

/* Recent kernels align large mappings themselves. On others, more is mapped and cut. */
static uint8_t *reserve(size_t size, size_t page_size)
{
    size_t alignment = size >= PAGE_TABLE_SPAN ? PAGE_TABLE_SPAN : page_size;
    size_t slack = alignment - page_size;
    uint8_t *mapped = mmap(NULL, size, PROT_NONE, RESERVED, -1, 0);
    if (mapped == MAP_FAILED)
        return NULL;
    if (((uintptr_t)mapped & (alignment - 1)) == 0)
        return mapped;
    munmap(mapped, size);
    mapped = mmap(NULL, size + slack, PROT_NONE, RESERVED, -1, 0);
    if (mapped == MAP_FAILED)
        return NULL;
    size_t before = (size_t)(-(uintptr_t)mapped & (alignment - 1));
    if (before > 0)
        munmap(mapped, before);
    if (before < slack)
        munmap(mapped + before + size, slack - before);
    return mapped + before;
}

static void give_free(struct code_slab *slab, size_t first_page, size_t page_count)
{
    for (size_t use = 0; use < PAGE_USE_COUNT; use++)
        units_give(&slab->available[use], (uint32_t)first_page, (uint32_t)page_count);
}

static size_t round_up(size_t size, size_t unit) { return (size + unit - 1) & ~(unit - 1); }

/* The sizes of the tables, which follow each other in this order: tables that creating a slab
 * writes are first. */
struct table_sizes {
    size_t available; /* one for each use */
    size_t dirty;
    size_t states;
    size_t parts; /* one for each use */
    size_t owners;
};

static size_t owners_pages(const struct code_slab *slab)
{
    return round_up(slab->size / OWNERS_UNIT_BYTES, OWNERS_PAGE_UNITS) >> OWNERS_PAGE_SHIFT;
}

static uint32_t part_units(const struct code_slab *slab)
{
    return (uint32_t)(slab->page_count * (slab->page_size / PART_UNIT_BYTES));
}

static struct table_sizes measure_tables(const struct code_slab *slab)
{
    return (struct table_sizes){
        .available = units_table_bytes((uint32_t)slab->page_count),
        .dirty = round_up(slab->page_count, DIRTY_BITS) / DIRTY_BITS * sizeof *slab->dirty,
        .states = round_up(slab->page_count * sizeof *slab->states, sizeof(uint64_t)),
        .parts = units_table_bytes(part_units(slab)),
        .owners = owners_bytes(owners_pages(slab)),
    };
}

static void place_tables(const struct cairn_allocator *allocator, struct code_slab *slab,
                         const struct table_sizes *sizes, uint8_t *at)
{
    for (size_t use = 0; use < PAGE_USE_COUNT; use++, at += sizes->available)
        units_init(&slab->available[use], (uint32_t)slab->page_count, at);
    slab->dirty = (uint64_t *)(void *)at;
    at += sizes->dirty;
    slab->states = (_Atomic uint8_t *)at;
    at += sizes->states;
    for (size_t use = 0; use < PAGE_USE_COUNT; use++, at += sizes->parts)
        units_init(&slab->parts[use], part_units(slab), at);
    owners_init(&slab->owners, allocator, owners_pages(slab), at);
}

/* The tables are mapped, not allocated, so that in a large slab only the table pages in use take
 * memory. */
static enum cairn_status map_tables(const struct cairn_allocator *allocator, struct code_slab *slab,
                                    struct cairn_error *error)
{
    const struct table_sizes sizes = measure_tables(slab);
    size_t written_first = PAGE_USE_COUNT * sizes.available + sizes.dirty + sizeof *slab->states;
    slab->bookkeeping_bytes = PAGE_USE_COUNT * (sizes.available + sizes.parts) + sizes.dirty +
                              sizes.states + sizes.owners;
    void *mapped = mmap(NULL, slab->bookkeeping_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        return error_set_system(error, errno, "cannot map the page table of a code slab");
    slab->bookkeeping = mapped;
    populate(mapped, written_first);
    place_tables(allocator, slab, &sizes, mapped);
    give_free(slab, 0, slab->page_count);
    return CAIRN_OK;
}

static enum cairn_status map_slab(const struct cairn_allocator *allocator, struct code_slab *slab,
                                  struct cairn_error *error)
{
    enum cairn_status status = map_check_personality(error);
    if (status != CAIRN_OK)
        return status;
    slab->base = reserve(slab->size, slab->page_size);
    if (slab->base == NULL)
        return map_cannot_reserve(slab->size, "hold code", errno, error);
    status = map_tables(allocator, slab, error);
    if (status != CAIRN_OK || slab->map->open == NULL)
        return status;
    return slab->map->open(slab, error);
}

static size_t choose_step(const struct code_slab *slab)
{
    size_t pages = STEP_BYTES / slab->page_size;
    if (pages > slab->page_count / STEPS_MIN)
        pages = slab->page_count / STEPS_MIN;
    return pages == 0 ? 1 : pages;
}

enum cairn_status slab_create(const struct cairn_allocator *allocator, const struct code_map *map,
                              size_t size, int read_execute, struct code_slab **slab,
                              struct cairn_error *error)
{
    struct code_slab *created = memory_new(allocator, 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a code slab");
    created->map = map;
    created->size = size;
    created->read_execute = read_execute;
    created->page_size = (size_t)sysconf(_SC_PAGESIZE);
    created->page_count = size / created->page_size;
    created->step_pages = choose_step(created);
    enum cairn_status status = map_slab(allocator, created, error);
    if (status != CAIRN_OK) {
        slab_destroy(allocator, created);
        return status;
    }
    *slab = created;
    return CAIRN_OK;
}

void slab_destroy(const struct cairn_allocator *allocator, struct code_slab *slab)
{
    map_close_alias(slab);
    map_close_source(slab);
    owners_destroy(&slab->owners);
    if (slab->bookkeeping != NULL)
        munmap(slab->bookkeeping, slab->bookkeeping_bytes);
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

size_t slab_room(const struct code_slab *slab)
{
    return units_longest(&slab->available[PAGES_FOR_CODE]);
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

static enum page_state in_use(enum page_use use)
{
    return (enum page_state)((unsigned)PAGE_CODE + (unsigned)use);
}

static enum page_state spare(enum page_use use)
{
    return (enum page_state)((unsigned)PAGE_SPARE_CODE + (unsigned)use);
}

static enum page_state open_for(enum page_use use)
{
    return (enum page_state)((unsigned)PAGE_OPEN_CODE + (unsigned)use);
}

static bool is_open(enum page_state state)
{
    return state == PAGE_OPEN_CODE || state == PAGE_OPEN_READ_ONLY;
}

static bool is_spare(enum page_state state)
{
    return state >= PAGE_SPARE_CODE && state <= PAGE_SPARE_DATA;
}

bool slab_has_spare(const struct code_slab *slab, enum page_use use)
{
    return use == PAGES_FOR_DATA || slab->map->add != NULL;
}

/* ---- Dirty pages ---- */

static uint64_t dirty_bit(size_t page) { return UINT64_C(1) << page % DIRTY_BITS; }

static bool is_dirty(const struct code_slab *slab, size_t page)
{
    return (slab->dirty[page / DIRTY_BITS] & dirty_bit(page)) != 0;
}

static void set_dirty(struct code_slab *slab, size_t first_page, size_t page_count)
{
    size_t end = first_page + page_count;
    for (size_t page = first_page; page < end; page++) {
        slab->dirty_count += !is_dirty(slab, page);
        slab->dirty[page / DIRTY_BITS] |= dirty_bit(page);
    }
    if (slab->dirty_end == 0 || first_page < slab->dirty_first)
        slab->dirty_first = first_page;
    if (end > slab->dirty_end)
        slab->dirty_end = end;
}

static void clear_dirty(struct code_slab *slab, size_t first_page, size_t page_count)
{
    for (size_t page = first_page; page < first_page + page_count; page++) {
        slab->dirty_count -= is_dirty(slab, page);
        slab->dirty[page / DIRTY_BITS] &= ~dirty_bit(page);
    }
}

/* Releases the memory of spare pages. They are filled with zeros afterwards. */
static void clean(struct code_slab *slab, size_t first_page, size_t page_count)
{
    size_t offset = first_page * slab->page_size;
    size_t size = page_count * slab->page_size;
    bool is_data = states_of(slab)[first_page] == PAGE_SPARE_DATA;
    if (!is_data)
        slab->map->discard(slab, offset, size);
    else if (madvise(slab->base + offset, size, MADV_DONTNEED) != 0)
        memset(slab->base + offset, 0, size);
}

void slab_clean(struct code_slab *slab)
{
    const uint8_t *states = states_of(slab);
    size_t end;
    for (size_t page = slab->dirty_first; page < slab->dirty_end; page = end) {
        end = page + 1;
        if (slab->dirty[page / DIRTY_BITS] == 0)
            end = (page / DIRTY_BITS + 1) * DIRTY_BITS;
        if (!is_dirty(slab, page))
            continue;
        while (end < slab->dirty_end && states[end] == states[page] && is_dirty(slab, end))
            end++;
        clear_dirty(slab, page, end - page);
        if (is_spare(states[page]))
            clean(slab, page, end - page);
    }
    slab->dirty_first = 0;
    slab->dirty_end = 0;
}

/* Fills pages of data that were used before with zeros. */
static void clear_data(struct code_slab *slab, size_t first_page, size_t page_count)
{
    for (size_t page = first_page; page < first_page + page_count; page++)
        if (is_dirty(slab, page))
            memset(slab->base + page * slab->page_size, 0, slab->page_size);
    clear_dirty(slab, first_page, page_count);
}

/* ---- Mapping pages ---- */

/* Replaces any mapping by the reservation, which has no access and takes no memory. */
static bool reserve_again(void *address, size_t size)
{
    return mmap(address, size, PROT_NONE, RESERVED | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/* Restores the reservation after mapping has failed, and frees the pages. The system may have
 * unmapped the old pages before it failed, and another thread may have mapped something there. The
 * pages are free only if nothing is mapped there or the reservation still exists. */
static void restore_reservation(struct code_slab *slab, size_t first_page, size_t page_count)
{
    for (size_t page = first_page; page < first_page + page_count; page++) {
        uint8_t *address = slab->base + page * slab->page_size;
        void *mapped =
            mmap(address, slab->page_size, PROT_NONE, RESERVED | MAP_FIXED_NOREPLACE, -1, 0);
        if (mapped == address || (mapped == MAP_FAILED && errno == EEXIST)) {
            give_free(slab, page, 1);
            continue;
        }
        if (mapped != MAP_FAILED)
            munmap(mapped, slab->page_size);
        set_states(slab, page, 1, PAGE_LOST);
    }
}

static enum cairn_status make_writable(struct code_slab *slab, size_t first_page, size_t page_count,
                                       struct cairn_error *error)
{
    size_t size = page_count * slab->page_size;
    if (mprotect(slab->base + first_page * slab->page_size, size, PROT_READ | PROT_WRITE) == 0)
        return CAIRN_OK;
    return error_set_system(error, errno, "cannot map %zu bytes of data beside code", size);
}

static void note_code_end(struct code_slab *slab, enum page_use use, size_t end)
{
    if (use == PAGES_FOR_CODE && slab->code_end < end)
        slab->code_end = end;
}

/* Takes free pages from the other uses. */
static void take_from_others(struct code_slab *slab, enum page_use use, size_t first_page,
                             size_t page_count)
{
    for (unsigned other = 0; other < PAGE_USE_COUNT; other++)
        if (other != (unsigned)use)
            units_take_at(&slab->available[other], (uint32_t)first_page, (uint32_t)page_count);
}

/* Maps free pages for a use, and with them free neighbours up to the end of a step, which become
 * spare. The pages from `first` to `end` have been taken from those that are available for this
 * use. If it fails, they are available again. */
static enum cairn_status add_free(struct code_slab *slab, enum page_use use, size_t first,
                                  size_t end, struct cairn_error *error)
{
    const uint8_t *states = states_of(slab);
    struct units *available = &slab->available[use];
    size_t from = first, to = end;
    while (use == PAGES_FOR_CODE && to % slab->step_pages != 0 && to < slab->page_count &&
           states[to] == PAGE_FREE)
        to++;
    while (use != PAGES_FOR_CODE && from % slab->step_pages != 0 && states[from - 1] == PAGE_FREE)
        from--;
    if (from < first)
        units_take_at(available, (uint32_t)from, (uint32_t)(first - from));
    if (to > end)
        units_take_at(available, (uint32_t)end, (uint32_t)(to - end));
    take_from_others(slab, use, from, to - from);
    enum cairn_status status = use == PAGES_FOR_DATA
                                   ? make_writable(slab, from, to - from, error)
                                   : slab->map->add(slab, use, from * slab->page_size,
                                                    (to - from) * slab->page_size, error);
    if (status != CAIRN_OK) {
        restore_reservation(slab, from, to - from);
        return status;
    }
    set_states(slab, from, to - from, spare(use));
    if (from < first)
        units_give(available, (uint32_t)from, (uint32_t)(first - from));
    if (to > end)
        units_give(available, (uint32_t)end, (uint32_t)(to - end));
    return CAIRN_OK;
}

/* Maps the free pages among these, which have been taken from those that are available for this
 * use. If it fails, they are available again. Code and read-only data are written completely. */
static enum cairn_status add_pages(struct code_slab *slab, enum page_use use, size_t first_page,
                                   size_t page_count, struct cairn_error *error)
{
    const uint8_t *states = states_of(slab);
    struct units *available = &slab->available[use];
    size_t end = first_page + page_count;
    for (size_t page = first_page, run; page < end; page = run + 1) {
        run = page;
        while (run < end && states[run] == PAGE_FREE)
            run++;
        if (run == page)
            continue;
        enum cairn_status status = add_free(slab, use, page, run, error);
        if (status == CAIRN_OK)
            continue;
        if (page > first_page)
            units_give(available, (uint32_t)first_page, (uint32_t)(page - first_page));
        if (run < end)
            units_give(available, (uint32_t)run, (uint32_t)(end - run));
        return status;
    }
    if (use == PAGES_FOR_DATA)
        clear_data(slab, first_page, page_count);
    else if (page_count > 1)
        populate(slab->alias + first_page * slab->page_size, page_count * slab->page_size);
    note_code_end(slab, use, end);
    set_states(slab, first_page, page_count, in_use(use));
    return CAIRN_OK;
}

/* ---- Finding pages ---- */

/* Finds pages that are free or spare for any use. Takes time proportional to the slab's size. */
static bool find_unused(const struct code_slab *slab, enum page_use use, size_t page_count,
                        size_t *first_page)
{
    const uint8_t *states = states_of(slab);
    size_t found = 0;
    for (size_t i = 0; i < slab->page_count; i++) {
        size_t page = use == PAGES_FOR_CODE ? i : slab->page_count - 1 - i;
        found = states[page] == PAGE_FREE || is_spare(states[page]) ? found + 1 : 0;
        if (found < page_count)
            continue;
        *first_page = use == PAGES_FOR_CODE ? page + 1 - page_count : page;
        return true;
    }
    return false;
}

static void release_to_free(struct code_slab *slab, size_t first_page, size_t page_count)
{
    set_states(slab, first_page, page_count, PAGE_FREE);
    if (reserve_again(slab->base + first_page * slab->page_size, page_count * slab->page_size))
        give_free(slab, first_page, page_count);
    else
        set_states(slab, first_page, page_count, PAGE_LOST);
}

/* Makes spare pages free. Returns false if the system refuses. */
static bool free_spare(struct code_slab *slab, size_t first_page, size_t page_count)
{
    const uint8_t *states = states_of(slab);
    size_t end = first_page + page_count;
    for (size_t page = first_page, run; page < end; page = run) {
        uint8_t state = states[page];
        for (run = page + 1; run < end && states[run] == state;)
            run++;
        if (!is_spare(state))
            continue;
        clean(slab, page, run - page);
        units_take_at(&slab->available[state - PAGE_SPARE_CODE], (uint32_t)page,
                      (uint32_t)(run - page));
        release_to_free(slab, page, run - page);
        if (states[page] == PAGE_LOST)
            return false;
    }
    return true;
}

/* Takes pages from those that are available for a use. If there are not enough of them, frees pages
 * that are spare for other uses. */
static bool take_available(struct code_slab *slab, enum page_use use, size_t page_count,
                           size_t *first_page)
{
    struct units *available = &slab->available[use];
    uint32_t first = 0;
    uint32_t count = (uint32_t)page_count;
    uint32_t end = (uint32_t)slab->page_count;
    bool found = use == PAGES_FOR_CODE
                     ? units_take(available, count, 1, &first)
                     : (use == PAGES_FOR_READ_ONLY &&
                        units_take_last(available, count, end - end / DATA_SHARE, &first)) ||
                           units_take_last(available, count, end, &first);
    *first_page = first;
    return found || (find_unused(slab, use, page_count, first_page) &&
                     free_spare(slab, *first_page, page_count) &&
                     units_take_at(available, (uint32_t)*first_page, count));
}

/* ---- Taking, closing, releasing ---- */

/* Opens pages that are in use if this use has spare pages, and that have otherwise been taken from
 * the free ones. */
static enum cairn_status open_pages(struct code_slab *slab, enum page_use use, size_t first_page,
                                    size_t page_count, struct cairn_error *error)
{
    bool has_spare = slab_has_spare(slab, use);
    if (!has_spare)
        take_from_others(slab, use, first_page, page_count);
    enum cairn_status status = use == PAGES_FOR_READ_ONLY && !has_spare
                                   ? make_writable(slab, first_page, page_count, error)
                                   : slab->map->open_pages(slab, first_page * slab->page_size,
                                                           page_count * slab->page_size, error);
    if (status != CAIRN_OK && has_spare)
        slab_release(slab, use, first_page, page_count);
    else if (status != CAIRN_OK)
        restore_reservation(slab, first_page, page_count);
    if (status != CAIRN_OK)
        return status;
    set_states(slab, first_page, page_count, open_for(use));
    note_code_end(slab, use, first_page + page_count);
    return CAIRN_OK;
}

enum cairn_status slab_take_open(struct code_slab *slab, enum page_use use, size_t page_count,
                                 size_t *first_page, bool *found, struct cairn_error *error)
{
    enum cairn_status status = map_check_personality(error);
    *found = false;
    if (status != CAIRN_OK || page_count > slab->page_count)
        return status;
    *found = take_available(slab, use, page_count, first_page);
    if (*found && slab_has_spare(slab, use))
        status = add_pages(slab, use, *first_page, page_count, error);
    return status == CAIRN_OK && *found ? open_pages(slab, use, *first_page, page_count, error)
                                        : status;
}

enum cairn_status slab_take_open_at(struct code_slab *slab, enum page_use use, size_t first_page,
                                    size_t page_count, bool *found, struct cairn_error *error)
{
    enum cairn_status status = map_check_personality(error);
    *found = false;
    if (status != CAIRN_OK || first_page >= slab->page_count ||
        page_count > slab->page_count - first_page)
        return status;
    *found = units_take_at(&slab->available[use], (uint32_t)first_page, (uint32_t)page_count);
    if (*found && slab_has_spare(slab, use))
        status = add_pages(slab, use, first_page, page_count, error);
    return status == CAIRN_OK && *found ? open_pages(slab, use, first_page, page_count, error)
                                        : status;
}

enum cairn_status slab_close(struct code_slab *slab, enum page_use use, size_t first_page,
                             size_t page_count, struct cairn_error *error)
{
    size_t offset = first_page * slab->page_size;
    size_t size = page_count * slab->page_size;
    enum cairn_status status = map_check_personality(error);
    if (status != CAIRN_OK)
        return status;
    if (use == PAGES_FOR_CODE || slab_has_spare(slab, use))
        status = slab->map->close_pages(slab, use, offset, size, error);
    else if (mprotect(slab->base + offset, size, PROT_READ) != 0)
        status = error_set_system(error, errno, "cannot make %zu bytes of data read-only", size);
    if (status == CAIRN_OK)
        set_states(slab, first_page, page_count, in_use(use));
    return status;
}

/* Without spare pages: takes open pages and closes them. */
static enum cairn_status take_and_close(struct code_slab *slab, enum page_use use,
                                        size_t page_count, size_t *first_page, bool *found,
                                        struct cairn_error *error)
{
    enum cairn_status status = slab_take_open(slab, use, page_count, first_page, found, error);
    if (status != CAIRN_OK || !*found)
        return status;
    status = slab_close(slab, use, *first_page, page_count, error);
    if (status != CAIRN_OK)
        slab_release(slab, use, *first_page, page_count);
    return status;
}

enum cairn_status slab_take(struct code_slab *slab, enum page_use use, size_t page_count,
                            size_t *first_page, bool *found, struct cairn_error *error)
{
    if (!slab_has_spare(slab, use))
        return take_and_close(slab, use, page_count, first_page, found, error);
    enum cairn_status status = map_check_personality(error);
    *found = false;
    if (status != CAIRN_OK || page_count > slab->page_count)
        return status;
    *found = take_available(slab, use, page_count, first_page);
    return *found ? add_pages(slab, use, *first_page, page_count, error) : CAIRN_OK;
}

void slab_release(struct code_slab *slab, enum page_use use, size_t first_page, size_t page_count)
{
    bool is_spare = slab_has_spare(slab, use);
    if (use == PAGES_FOR_CODE)
        slab->has_released_code = true;
    if (is_spare && is_open(states_of(slab)[first_page]))
        is_spare = slab->map->abandon_pages(slab, use, first_page * slab->page_size,
                                            page_count * slab->page_size, NULL) == CAIRN_OK;
    if (!is_spare) {
        release_to_free(slab, first_page, page_count);
        return;
    }
    set_states(slab, first_page, page_count, spare(use));
    set_dirty(slab, first_page, page_count);
    units_give(&slab->available[use], (uint32_t)first_page, (uint32_t)page_count);
}

/* ---- Cleaning up in forked children ---- */

static void give_missing(struct code_slab *slab, size_t page)
{
    for (size_t use = 0; use < PAGE_USE_COUNT; use++)
        if (!units_are_free(&slab->available[use], (uint32_t)page, 1))
            units_give(&slab->available[use], (uint32_t)page, 1);
}

enum cairn_status slab_forget_unfinished(struct code_slab *slab, struct cairn_error *error)
{
    const uint8_t *states = states_of(slab);
    size_t end;
    for (size_t page = 0; page < slab->page_count; page = end + 1) {
        for (end = page; end < slab->page_count && states[end] == PAGE_FREE; end++)
            give_missing(slab, end);
        uint8_t *address = slab->base + page * slab->page_size;
        if (end > page && !reserve_again(address, (end - page) * slab->page_size))
            return error_set_system(error, errno, "cannot reserve a forked child's free pages");
    }
    return CAIRN_OK;
}
