/*
 * A block: the memory of one module, from its first section until no thread executes it any more.
 *
 * Memory whose use has spare pages in the slab (slab_has_spare) is allocated in parts of pages
 * (code/parts.h), if it can be written at once: data always, code and read-only data in dual
 * mapping if they are reserved, not allocated. Everything else is in open pages, in which sections
 * of one use are packed. Such a span is first as large as its sections need. It grows in place if
 * the pages after it are free, by as many pages as the block already has, so that many small
 * sections take few system calls. Protection releases the pages that are not used, and in dual
 * mapping the rest of the last page.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/array.h"
#include "base/error.h"
#include "base/inspect.h"
#include "code/parts.h"
#include "code/state.h"
#include "code/veneer.h"
#include "code/write_key.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* Maximum number of pages by which a span grows beyond what is needed. */
enum { GROWTH_PAGES_MAX = 256 };

/* A slab has fewer units than that many bits can count. */
enum { SPAN_UNIT_BITS = 28, SPAN_UNITS_MASK = (1 << SPAN_UNIT_BITS) - 1 };

/* Neighbouring bytes of one use. */
struct code_span {
    uint32_t first_unit : SPAN_UNIT_BITS; /* from the start of the slab, in OWNERS_UNIT_BYTES */
    uint32_t use : 2;                     /* enum page_use */
    uint32_t is_part : 1; /* a part of pages (code/parts.h); otherwise whole pages */
    uint32_t is_open : 1; /* pages that are open */
    uint32_t size;        /* what belongs to the span: whole pages, or a part in whole units */
    uint32_t used;        /* bytes with contents */
};

/* There may be a hundred thousand small modules. They have up to three spans and no veneers. */
enum { FIRST_SPANS = 3 };

/* What a large block has in addition. */
struct block_lists {
    struct code_span *spans; /* the spans after the first ones */
    size_t span_capacity;
    struct veneer *veneers;
    size_t veneer_count;
    size_t veneer_capacity;
};

struct code_block {
    struct code_space *space;
    struct code_slab *slab;    /* NULL until the first allocation */
    struct block_lists *lists; /* NULL until one is needed */
    struct code_span first_spans[FIRST_SPANS];
    uint32_t span_count;
    uint32_t user_bytes;
    bool is_growing;  /* whether the block is counted in the slab's `open_blocks` */
    bool reuses_code; /* whether some code is at addresses that may have held other code before */
    bool is_protected;
    bool is_published;
    uint64_t user[]; /* the caller's memory */
};

enum cairn_status code_block_create(struct code_space *space, size_t user_bytes,
                                    struct code_block **block, struct cairn_error *error)
{
    struct code_block *created = NULL;
    if (user_bytes <= UINT32_MAX)
        created = memory_new(&space->allocator, 1, sizeof *created + user_bytes);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a block of code");
    created->space = space;
    created->user_bytes = (uint32_t)user_bytes;
    *block = created;
    return CAIRN_OK;
}

void *code_block_user(struct code_block *block) { return block->user; }

struct code_block *code_block_of_user(const void *user)
{
    return (struct code_block *)(uintptr_t)((const char *)user - offsetof(struct code_block, user));
}

/* ---- Spans ---- */

static struct code_span *span_at(const struct code_block *block, size_t index)
{
    assert(index < FIRST_SPANS || block->lists != NULL);
    const struct code_span *span = index < FIRST_SPANS ? &block->first_spans[index]
                                                       : &block->lists->spans[index - FIRST_SPANS];
    return (struct code_span *)(uintptr_t)span;
}

static size_t span_offset(const struct code_span *span)
{
    return (size_t)span->first_unit * OWNERS_UNIT_BYTES;
}

/* Adds a span; reserve_span has made space for it. */
static struct code_span *add_span(struct code_block *block, size_t offset, enum page_use use)
{
    struct code_span *span = span_at(block, block->span_count++);
    *span = (struct code_span){.first_unit = (offset / OWNERS_UNIT_BYTES) & SPAN_UNITS_MASK,
                               .use = use};
    assert(span_offset(span) == offset);
    return span;
}

static uint8_t *span_address(const struct code_block *block, const struct code_span *span)
{
    return block->slab->base + span_offset(span);
}

static size_t first_page(const struct code_block *block, const struct code_span *span)
{
    return span_offset(span) / block->slab->page_size;
}

static size_t page_count(const struct code_block *block, const struct code_span *span)
{
    return span->size / block->slab->page_size;
}

/* Returns the size of a part for `size` bytes: whole units of the index of owners, at whose
 * beginning parts begin. */
static size_t part_bytes(size_t size)
{
    const size_t mask = OWNERS_UNIT_BYTES - 1;
    return (size + mask) & ~mask;
}

/* Returns the number of pages for `size` bytes. It is larger than any slab if rounding up would
 * overflow. */
static size_t pages_for(const struct code_space *space, size_t size)
{
    return size / space->page_size + (size % space->page_size != 0);
}

/* ---- Allocating ---- */

static bool reserve_lists(struct code_block *block)
{
    if (block->lists == NULL)
        block->lists = memory_new(&block->space->allocator, 1, sizeof *block->lists);
    return block->lists != NULL;
}

/* Makes sure that the block has memory for one more span. */
static enum cairn_status reserve_span(struct code_block *block, struct cairn_error *error)
{
    struct code_span *spans = NULL;
    if (block->span_count < FIRST_SPANS)
        return CAIRN_OK;
    if (reserve_lists(block))
        spans = array_reserve(&block->space->allocator, block->lists->spans,
                              block->span_count - FIRST_SPANS, 1, &block->lists->span_capacity,
                              sizeof *spans);
    if (spans == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to note a section's pages");
    block->lists->spans = spans;
    return CAIRN_OK;
}

static enum cairn_status refuse_full(const struct code_block *block, enum page_use use, size_t size,
                                     struct cairn_error *error)
{
    static const char *const names[] = {
        [PAGES_FOR_CODE] = "code",
        [PAGES_FOR_READ_ONLY] = "read-only data",
        [PAGES_FOR_DATA] = "data",
    };
    _Static_assert(sizeof names / sizeof *names == PAGE_USE_COUNT, "one name for each use");
    const struct code_slab *slab = block->slab;
    return error_set(error, CAIRN_ERROR_FULL, (uintptr_t)slab->base,
                     "a section of %zu bytes of %s does not fit the module's slab: of %zu bytes, "
                     "%zu are free in one piece; raise slab_size in struct cairn_runtime_options "
                     "(%zu at most)",
                     size, names[use], slab->size, slab_room(slab) * slab->page_size,
                     block->space->arch->reach_bytes);
}

/* ---- Allocating open pages ---- */

/* Takes and opens `count` pages: the ones after `span`, or any for a new span if it is NULL. */
static enum cairn_status take_pages(struct code_block *block, enum page_use use,
                                    struct code_span *span, size_t count, bool *found,
                                    struct cairn_error *error)
{
    struct code_slab *slab = block->slab;
    size_t code_end = slab->code_end;
    size_t first = span == NULL ? 0 : first_page(block, span) + page_count(block, span);
    enum cairn_status status = span == NULL
                                   ? slab_take_open(slab, use, count, &first, found, error)
                                   : slab_take_open_at(slab, use, first, count, found, error);
    if (status != CAIRN_OK || !*found)
        return status;
    if (span == NULL) {
        span = add_span(block, first * slab->page_size, use);
        span->is_open = true;
    }
    span->size += (uint32_t)(count * slab->page_size);
    if (use == PAGES_FOR_CODE && first < code_end)
        block->reuses_code = true;
    return CAIRN_OK;
}

/* Returns the number of open pages that the block has for a use. */
static size_t count_open_pages(const struct code_block *block, enum page_use use)
{
    size_t bytes = 0;
    for (size_t i = 0; i < block->span_count; i++) {
        const struct code_span *span = span_at(block, i);
        bytes += span->use == use && span->is_open ? span->size : 0;
    }
    return bytes / block->slab->page_size;
}

/* Takes pages for `size` bytes: as many as the block already has for this use, at most
 * GROWTH_PAGES_MAX, or if that many are not free, as many as needed. */
static enum cairn_status take_pages_for(struct code_block *block, enum page_use use,
                                        struct code_span *span, size_t size, bool *found,
                                        struct cairn_error *error)
{
    size_t needed = pages_for(block->space, size);
    size_t wanted = count_open_pages(block, use);
    if (wanted > GROWTH_PAGES_MAX)
        wanted = GROWTH_PAGES_MAX;
    if (wanted < needed)
        wanted = needed;
    enum cairn_status status = take_pages(block, use, span, wanted, found, error);
    if (status == CAIRN_OK && !*found && wanted > needed)
        status = take_pages(block, use, span, needed, found, error);
    return status;
}

/* Allocates at the end of the last open span of this use. Extends the span if the section does not
 * fit. `*found` is false if there is no such span or the pages after it are not free. */
static enum cairn_status allocate_in_span(struct code_block *block, enum page_use use, size_t size,
                                          size_t alignment, void **address, bool *found,
                                          struct cairn_error *error)
{
    size_t index = block->span_count;
    struct code_span *span = NULL;
    while (index > 0 && span == NULL) {
        struct code_span *last = span_at(block, --index);
        span = last->use == use && last->is_open ? last : NULL;
    }
    *found = false;
    if (span == NULL)
        return CAIRN_OK;
    size_t offset = (span->used + alignment - 1) & ~(alignment - 1);
    size_t bytes = span->size;
    *found = offset <= bytes && size <= bytes - offset;
    if (!*found && size <= block->slab->size) {
        enum cairn_status status =
            take_pages_for(block, use, span, offset - bytes + size, found, error);
        if (status != CAIRN_OK)
            return status;
    }
    if (*found) {
        span->used = (uint32_t)(offset + size);
        *address = span_address(block, span) + offset;
    }
    return CAIRN_OK;
}

static enum cairn_status allocate_new_span(struct code_block *block, enum page_use use, size_t size,
                                           void **address, struct cairn_error *error)
{
    bool found;
    enum cairn_status status = reserve_span(block, error);
    if (status == CAIRN_OK)
        status = take_pages_for(block, use, NULL, size, &found, error);
    if (status == CAIRN_OK && !found)
        status = refuse_full(block, use, size, error);
    if (status != CAIRN_OK)
        return status;
    struct code_span *span = span_at(block, block->span_count - 1);
    span->used = (uint32_t)size;
    *address = span_address(block, span);
    return CAIRN_OK;
}

static enum cairn_status allocate_pages(struct code_block *block, enum page_use use, size_t size,
                                        size_t alignment, void **address, struct cairn_error *error)
{
    bool found;
    enum cairn_status status =
        allocate_in_span(block, use, size, alignment, address, &found, error);
    return status == CAIRN_OK && !found ? allocate_new_span(block, use, size, address, error)
                                        : status;
}

/* ---- Allocating parts of pages ---- */

static enum cairn_status allocate_part(struct code_block *block, enum page_use use, size_t size,
                                       size_t alignment, void **address, struct cairn_error *error)
{
    size_t offset;
    bool found = false;
    enum cairn_status status = reserve_span(block, error);
    if (alignment < OWNERS_UNIT_BYTES)
        alignment = OWNERS_UNIT_BYTES;
    if (status == CAIRN_OK && size <= block->slab->size)
        status = parts_take(block->slab, use, part_bytes(size), alignment, &offset, &found, error);
    if (status == CAIRN_OK && !found)
        status = refuse_full(block, use, size, error);
    if (status != CAIRN_OK)
        return status;
    struct code_span *last = block->span_count == 0 ? NULL : span_at(block, block->span_count - 1);
    *address = block->slab->base + offset;
    if (last == NULL || !last->is_part || last->use != use ||
        span_offset(last) + last->size != offset) {
        last = add_span(block, offset, use);
        last->is_part = true;
    }
    last->used = last->size + (uint32_t)size;
    last->size += (uint32_t)part_bytes(size);
    block->reuses_code |= use == PAGES_FOR_CODE;
    return CAIRN_OK;
}

/* ---- Allocating ---- */

static enum cairn_status check_request(const struct code_block *block, size_t size,
                                       size_t alignment, struct cairn_error *error)
{
    const struct code_space *space = block->space;
    if (size == 0)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "a section of no bytes was asked for");
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > space->page_size)
        return error_set(error, CAIRN_ERROR_ARGUMENT, alignment,
                         "alignment %zu is not a power of two up to a page of %zu bytes", alignment,
                         space->page_size);
    if (block->is_protected)
        return error_set(error, CAIRN_ERROR_STATE, 0,
                         "a module whose code is protected already cannot have more sections");
    return CAIRN_OK;
}

enum cairn_status code_block_allocate(struct code_block *block, enum page_use use, size_t size,
                                      size_t alignment, void **address, struct cairn_error *error)
{
    enum cairn_status status = check_request(block, size, alignment, error);
    if (status == CAIRN_OK)
        status = space_enter(block->space, error);
    if (status != CAIRN_OK)
        return status;
    if (block->slab == NULL)
        status =
            space_choose_slab(block->space, pages_for(block->space, size), &block->slab, error);
    if (status == CAIRN_OK && !block->is_growing) {
        block->is_growing = true;
        block->slab->open_blocks++;
    }
    if (status == CAIRN_OK)
        status = use == PAGES_FOR_DATA
                     ? allocate_part(block, use, size, alignment, address, error)
                     : allocate_pages(block, use, size, alignment, address, error);
    space_leave(block->space);
    return status;
}

enum cairn_status code_block_reserve(struct code_block *block, enum page_use use, size_t size,
                                     size_t alignment, struct code_place *place,
                                     struct cairn_error *error)
{
    void *address = NULL;
    enum cairn_status status = check_request(block, size, alignment, error);
    if (status == CAIRN_OK)
        status = space_enter(block->space, error);
    if (status != CAIRN_OK)
        return status;
    if (block->slab == NULL)
        status =
            space_choose_slab(block->space, pages_for(block->space, size), &block->slab, error);
    bool in_parts = status == CAIRN_OK && slab_has_spare(block->slab, use);
    if (status == CAIRN_OK)
        status = in_parts ? allocate_part(block, use, size, alignment, &address, error)
                          : allocate_pages(block, use, size, alignment, &address, error);
    space_leave(block->space);
    if (status != CAIRN_OK)
        return status;
    place->address = (uintptr_t)address;
    place->bytes = in_parts && use != PAGES_FOR_DATA
                       ? block->slab->alias + (place->address - (uintptr_t)block->slab->base)
                       : address;
    return CAIRN_OK;
}

/* ---- Protecting ---- */

static void close_block(struct code_block *block)
{
    if (block->is_growing)
        block->slab->open_blocks--;
    block->is_growing = false;
    block->is_protected = true;
}

/* Releases the pages of an open span that are not used, closes the others, and where pages have
 * parts, releases what the span does not use in its last page. */
static enum cairn_status close_span(struct code_block *block, struct code_span *span,
                                    struct cairn_error *error)
{
    struct code_slab *slab = block->slab;
    enum page_use use = span->use;
    size_t first = first_page(block, span);
    size_t used = pages_for(block->space, span->used);
    if (used < page_count(block, span))
        slab_release(slab, use, first + used, page_count(block, span) - used);
    span->size = (uint32_t)(used * slab->page_size);
    enum cairn_status status = slab_close(slab, use, first, used, error);
    if (status != CAIRN_OK)
        return status;
    span->is_open = false;
    if (!slab_has_spare(slab, use))
        return CAIRN_OK;
    span->is_part = true;
    span->size = (uint32_t)part_bytes(span->used);
    parts_divide(slab, use, first, used, span->size);
    return CAIRN_OK;
}

/* Makes code that was written through the written view visible to instruction fetch. */
static void finish_part(const struct code_block *block, const struct code_span *span)
{
    if (span->use != PAGES_FOR_CODE)
        return;
    int rights = write_key_open(block->space->write_key);
    arch_host_code_written(block->slab->alias + span_offset(span), span_address(block, span),
                           span->used);
    write_key_close(block->space->write_key, rights);
}

enum cairn_status code_block_protect(struct code_block *block, struct cairn_error *error)
{
    if (block->is_protected)
        return error_set(error, CAIRN_ERROR_STATE, 0, "a module's code was protected before");
    enum cairn_status status = space_enter(block->space, error);
    if (status != CAIRN_OK)
        return status;
    for (size_t i = 0; i < block->span_count && status == CAIRN_OK; i++) {
        struct code_span *span = span_at(block, i);
        if (span->is_open)
            status = close_span(block, span, error);
        else
            finish_part(block, span);
    }
    if (status == CAIRN_OK && block->reuses_code)
        status = space_forget_code(block->space, block->slab, error);
    close_block(block);
    space_leave(block->space);
    return status;
}

/* ---- Publishing ---- */

static size_t unit_count(const struct code_span *span) { return span->size / OWNERS_UNIT_BYTES; }

static enum cairn_status reserve_owner(struct code_block *block, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < block->span_count && status == CAIRN_OK; i++)
        status = owners_reserve(&block->slab->owners, span_at(block, i)->first_unit,
                                unit_count(span_at(block, i)), error);
    return status;
}

static void set_owner(struct code_block *block, void *owner)
{
    for (size_t i = 0; i < block->span_count; i++)
        owners_set(&block->slab->owners, span_at(block, i)->first_unit,
                   unit_count(span_at(block, i)), owner);
}

enum cairn_status code_block_publish(struct code_block *block, void *owner,
                                     struct cairn_error *error)
{
    if (owner == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "published code needs an owner");
    assert(((uintptr_t)owner & CODE_OWNER_MARKS) == 0);
    if (!block->is_protected || block->is_published)
        return error_set(error, CAIRN_ERROR_STATE, 0,
                         "code can be published once, when it is "
                         "protected");
    enum cairn_status status = space_enter(block->space, error);
    if (status != CAIRN_OK)
        return status;
    status = reserve_owner(block, error);
    space_leave(block->space);
    if (status != CAIRN_OK)
        return status;
    set_owner(block, owner);
    block->is_published = true;
    return CAIRN_OK;
}

void *code_block_owner(const struct code_block *block)
{
    if (!block->is_published || block->span_count == 0)
        return NULL;
    const struct code_span *span = &block->first_spans[0];
    uintptr_t owner = (uintptr_t)owners_find(block->slab->owners.pages, span->first_unit);
    return (void *)(owner & ~(uintptr_t)CODE_OWNER_RETIRED);
}

void code_block_retire(struct code_block *block)
{
    assert(block->is_published);
    set_owner(block, (void *)((uintptr_t)code_block_owner(block) | CODE_OWNER_RETIRED));
}

/* ---- Destroying ---- */

static void release_span(struct code_block *block, const struct code_span *span)
{
    if (span->is_part)
        parts_give(block->slab, span->use, span_offset(span), span->size);
    else
        slab_release(block->slab, span->use, first_page(block, span), page_count(block, span));
}

void code_block_destroy(struct code_block *block)
{
    if (block == NULL)
        return;
    struct code_space *space = block->space;
    struct block_lists *lists = block->lists;
    for (size_t i = 0; lists != NULL && i < lists->veneer_count; i++)
        code_watchers_code_removed(&space->watchers,
                                   veneer_address(block->slab, &lists->veneers[i]));
    if (block->is_published)
        set_owner(block, NULL);
    /* A forked child that shares its code with its parent must not change it. */
    if (space_enter(space, NULL) == CAIRN_OK) {
        for (size_t i = 0; lists != NULL && i < lists->veneer_count; i++)
            veneer_release(space, block->slab, &lists->veneers[i]);
        for (size_t i = 0; i < block->span_count; i++)
            release_span(block, span_at(block, i));
        close_block(block);
        space_leave(space);
    }
    if (lists != NULL) {
        memory_free(&space->allocator, lists->spans, lists->span_capacity * sizeof *lists->spans);
        memory_free(&space->allocator, lists->veneers,
                    lists->veneer_capacity * sizeof *lists->veneers);
    }
    memory_free(&space->allocator, lists, sizeof *lists);
    memory_free(&space->allocator, block, sizeof *block + block->user_bytes);
}

/* ---- Memory ranges ---- */

struct code_space *code_block_space(const struct code_block *block) { return block->space; }

struct code_slab *code_block_slab(const struct code_block *block) { return block->slab; }

bool code_block_memory_range(const struct code_block *block, uint32_t index,
                             struct memory_range *range)
{
    if (index >= block->span_count)
        return false;
    const struct code_span *span = span_at(block, index);
    range->address = (uint64_t)(uintptr_t)span_address(block, span);
    range->size = span->size;
    range->executable = block->is_protected && span->use == PAGES_FOR_CODE;
    range->writable = !block->is_protected || span->use == PAGES_FOR_DATA;
    return true;
}

/* Returns the end of the span of code, or of data, that contains `address`, or 0. */
static uint64_t find_end(const struct code_block *block, bool is_code, uint64_t address)
{
    for (size_t i = 0; i < block->span_count; i++) {
        const struct code_span *span = span_at(block, i);
        uint64_t start = (uintptr_t)span_address(block, span);
        if ((span->use == PAGES_FOR_CODE) == is_code && address - start < span->used)
            return start + span->used;
    }
    return 0;
}

uint64_t code_block_code_end(const struct code_block *block, uint64_t address)
{
    return find_end(block, true, address);
}

bool code_block_holds_code(const struct code_block *block, uint64_t address, size_t size)
{
    uint64_t end = find_end(block, true, address);
    return end != 0 && size <= end - address;
}

bool code_block_holds_data(const struct code_block *block, uint64_t address, size_t size)
{
    uint64_t end = find_end(block, false, address);
    return end != 0 && size <= end - address;
}

/* ---- Veneers ---- */

/* Returns where the next veneer is noted, or NULL if memory runs out. */
static struct veneer *reserve_veneer(struct code_block *block)
{
    if (!reserve_lists(block))
        return NULL;
    struct block_lists *lists = block->lists;
    struct veneer *veneers =
        array_reserve(&block->space->allocator, lists->veneers, lists->veneer_count, 1,
                      &lists->veneer_capacity, sizeof *veneers);
    if (veneers == NULL)
        return NULL;
    lists->veneers = veneers;
    return veneers + lists->veneer_count;
}

enum cairn_status code_block_add_veneer(struct code_block *block, enum code_veneer_kind kind,
                                        uint64_t target, struct code_veneer *veneer,
                                        struct cairn_error *error)
{
    if (block->slab == NULL)
        return error_set(error, CAIRN_ERROR_STATE, 0,
                         "no veneer can be created: the module has no code");
    enum cairn_status status = space_enter(block->space, error);
    if (status != CAIRN_OK)
        return status;
    struct veneer *added = reserve_veneer(block);
    status = added == NULL ? error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to note a veneer")
                           : veneer_take(block->space, block->slab, kind, added, error);
    if (status == CAIRN_OK) {
        block->lists->veneer_count++;
        *veneer = (struct code_veneer){veneer_address(block->slab, added),
                                       veneer_slot(block->slab, added)};
        atomic_store_explicit(veneer->slot, target, memory_order_seq_cst);
    }
    space_leave(block->space);
    return status;
}

/* ---- Writing ---- */

static size_t slab_offset(const struct code_block *block, uint64_t address)
{
    return (size_t)(address - (uintptr_t)block->slab->base);
}

void *code_block_writable_alias(const struct code_block *block, uint64_t address)
{
    if (block->space->map->mode != CAIRN_CODE_MODE_DUAL ||
        !code_block_holds_code(block, address, 1))
        return NULL;
    return block->slab->alias + slab_offset(block, address);
}

uint8_t *code_block_load_address(const struct code_block *block, uint64_t address)
{
    for (size_t i = 0; i < block->span_count; i++) {
        const struct code_span *span = span_at(block, i);
        size_t offset = slab_offset(block, address);
        if (span->use != PAGES_FOR_DATA && span->is_part && offset - span_offset(span) < span->size)
            return block->slab->alias + offset;
    }
    return (uint8_t *)(uintptr_t)address;
}

/* Writes code in place if it is not protected yet, and otherwise through the slab's map. */
enum cairn_status code_block_write(struct code_block *block, uint64_t address, const void *bytes,
                                   size_t size, struct cairn_error *error)
{
    if (size == 0 || !code_block_holds_code(block, address, size))
        return error_set(error, CAIRN_ERROR_ARGUMENT, address,
                         "%zu bytes at 0x%llx are not in the module's code", size,
                         (unsigned long long)address);
    enum cairn_status status = space_enter(block->space, error);
    if (status != CAIRN_OK)
        return status;
    if (block->is_protected) {
        status =
            block->space->map->write(block->slab, slab_offset(block, address), bytes, size, error);
    } else {
        uint8_t *code = code_block_load_address(block, address);
        int rights = write_key_open(block->space->write_key);
        map_store(code, bytes, size);
        arch_host_code_written(code, (const void *)(uintptr_t)address, size);
        write_key_close(block->space->write_key, rights);
    }
    space_leave(block->space);
    return status;
}

void code_block_write_copy(struct code_block *block, uint64_t address, const void *bytes,
                           size_t size)
{
    uint8_t *copy = block->slab == NULL ? NULL : block->slab->copy;
    if (copy == NULL)
        return;
    /* Few words differ. A page fault of a read maps many pages, one of a write maps one. */
    uint8_t *place = copy + slab_offset(block, address);
    if (memcmp(place, bytes, size) != 0)
        memcpy(place, bytes, size);
}

/* ---- Readers in other processes ---- */

_Static_assert((int)PAGES_FOR_CODE == INSPECT_CODE &&
                   (int)PAGES_FOR_READ_ONLY == INSPECT_READ_ONLY &&
                   (int)PAGES_FOR_DATA == INSPECT_DATA && (int)PAGE_USE_COUNT == INSPECT_USE_COUNT,
               "uses of pages have their numbers");
_Static_assert(offsetof(struct code_span, size) == sizeof(uint32_t),
               "the bit fields of a span are in its first word");

/* The compiler places bit fields. So their masks are taken from spans with all bits set. */
void code_block_inspect(struct inspect_field *fields)
{
    const struct code_span all_units = {.first_unit = SPAN_UNITS_MASK};
    const struct code_span all_uses = {.use = 3};
    fields[INSPECT_BLOCK_USER] = INSPECT_PLACE(struct code_block, user);
    fields[INSPECT_BLOCK_SLAB] = INSPECT_MEMBER(struct code_block, slab);
    fields[INSPECT_BLOCK_SPAN_COUNT] = INSPECT_MEMBER(struct code_block, span_count);
    fields[INSPECT_BLOCK_SPANS] = INSPECT_PLACE(struct code_block, first_spans);
    fields[INSPECT_FIRST_SPANS] = INSPECT_CONSTANT(FIRST_SPANS);
    fields[INSPECT_BLOCK_LISTS] = INSPECT_MEMBER(struct code_block, lists);
    fields[INSPECT_LISTS_SPANS] = INSPECT_MEMBER(struct block_lists, spans);
    fields[INSPECT_SPAN_STRIDE] = INSPECT_CONSTANT(sizeof(struct code_span));
    fields[INSPECT_SPAN_UNIT] = inspect_bits(0, &all_units);
    fields[INSPECT_SPAN_UNIT_BYTES] = INSPECT_CONSTANT(OWNERS_UNIT_BYTES);
    fields[INSPECT_SPAN_USE] = inspect_bits(0, &all_uses);
    fields[INSPECT_SPAN_USED] = INSPECT_MEMBER(struct code_span, used);
}
