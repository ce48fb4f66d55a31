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
#include "code/parts.h"
#include "code/state.h"
#include "code/veneer.h"
#include "code/write_key.h"

#include <assert.h>
#include <string.h>

/* Maximum number of pages by which a span grows beyond what is needed. */
enum { GROWTH_PAGES_MAX = 256 };

/* Neighbouring bytes of one use. Offsets are counted from the start of the slab. */
struct code_span {
    uint32_t offset;
    uint32_t size; /* what belongs to the span: whole pages, or a part in whole ranges */
    uint32_t used; /* bytes with contents */
    uint8_t use;   /* enum page_use */
    bool is_part;  /* a part of pages (code/parts.h); otherwise whole pages */
    bool is_open;  /* pages that are open */
};

/* A small module has three spans, and there may be a hundred thousand of them, so that their spans
 * need no memory of their own. */
enum { FIRST_SPANS = 3 };

struct code_block {
    struct code_space *space;
    struct code_slab *slab;  /* NULL until the first allocation */
    struct code_span *spans; /* `first_spans`, or an array that was allocated */
    struct veneer *veneers;
    uint32_t span_count;
    uint32_t span_capacity;
    uint32_t veneer_count;
    uint32_t veneer_capacity;
    bool is_growing;  /* whether the block is counted in the slab's `open_blocks` */
    bool reuses_code; /* whether some code is at addresses that may have held other code before */
    bool is_protected;
    bool is_published;
    struct code_span first_spans[FIRST_SPANS];
};

enum cairn_status code_block_create(struct code_space *space, struct code_block **block,
                                    struct cairn_error *error)
{
    struct code_block *created = memory_new(&space->allocator, 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a block of code");
    created->space = space;
    created->spans = created->first_spans;
    created->span_capacity = FIRST_SPANS;
    *block = created;
    return CAIRN_OK;
}

/* ---- Spans ---- */

static uint8_t *span_address(const struct code_block *block, const struct code_span *span)
{
    return block->slab->base + span->offset;
}

static size_t first_page(const struct code_block *block, const struct code_span *span)
{
    return span->offset / block->slab->page_size;
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

/* Makes sure that the block has memory for one more span. */
static enum cairn_status reserve_span(struct code_block *block, struct cairn_error *error)
{
    const struct cairn_allocator *allocator = &block->space->allocator;
    size_t bytes = block->span_capacity * sizeof *block->spans;
    bool is_first = block->spans == block->first_spans;
    if (block->span_count < block->span_capacity)
        return CAIRN_OK;
    struct code_span *spans =
        memory_resize(allocator, is_first ? NULL : block->spans, is_first ? 0 : bytes, 2 * bytes);
    if (spans == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to note a section's pages");
    if (is_first)
        memcpy(spans, block->first_spans, bytes);
    block->spans = spans;
    block->span_capacity *= 2;
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
        span = &block->spans[block->span_count++];
        *span = (struct code_span){
            .offset = (uint32_t)(first * slab->page_size), .use = (uint8_t)use, .is_open = true};
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
    for (size_t i = 0; i < block->span_count; i++)
        if (block->spans[i].use == use && block->spans[i].is_open)
            bytes += block->spans[i].size;
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
    while (index > 0 && (block->spans[index - 1].use != use || !block->spans[index - 1].is_open))
        index--;
    *found = false;
    if (index == 0)
        return CAIRN_OK;
    struct code_span *span = &block->spans[index - 1];
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
    struct code_span *span = &block->spans[block->span_count - 1];
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
    struct code_span *last = block->span_count == 0 ? NULL : &block->spans[block->span_count - 1];
    *address = block->slab->base + offset;
    if (last != NULL && last->is_part && last->use == use && last->offset + last->size == offset) {
        last->used = last->size + (uint32_t)size;
        last->size += (uint32_t)part_bytes(size);
        return CAIRN_OK;
    }
    assert(block->spans != NULL);
    block->spans[block->span_count++] = (struct code_span){.offset = (uint32_t)offset,
                                                           .size = (uint32_t)part_bytes(size),
                                                           .used = (uint32_t)size,
                                                           .use = (uint8_t)use,
                                                           .is_part = true};
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
    arch_host_code_written(block->slab->alias + span->offset, span_address(block, span),
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
        struct code_span *span = &block->spans[i];
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

static size_t first_unit(const struct code_span *span) { return span->offset / OWNERS_UNIT_BYTES; }

static size_t unit_count(const struct code_span *span) { return span->size / OWNERS_UNIT_BYTES; }

static enum cairn_status reserve_owner(struct code_block *block, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < block->span_count && status == CAIRN_OK; i++)
        status = owners_reserve(&block->slab->owners, first_unit(&block->spans[i]),
                                unit_count(&block->spans[i]), error);
    return status;
}

static void set_owner(struct code_block *block, void *owner)
{
    for (size_t i = 0; i < block->span_count; i++)
        owners_set(&block->slab->owners, first_unit(&block->spans[i]), unit_count(&block->spans[i]),
                   owner);
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

void code_block_retire(struct code_block *block, void *owner)
{
    assert(block->is_published);
    set_owner(block, (void *)((uintptr_t)owner | CODE_OWNER_RETIRED));
}

/* ---- Destroying ---- */

static void release_span(struct code_block *block, const struct code_span *span)
{
    if (span->is_part)
        parts_give(block->slab, span->use, span->offset, span->size);
    else
        slab_release(block->slab, span->use, first_page(block, span), page_count(block, span));
}

void code_block_destroy(struct code_block *block)
{
    if (block == NULL)
        return;
    struct code_space *space = block->space;
    if (block->is_published)
        set_owner(block, NULL);
    /* A forked child that could not get its own pages must not change its parent's pages. */
    if (space_enter(space, NULL) == CAIRN_OK) {
        for (size_t i = 0; i < block->veneer_count; i++)
            veneer_release(space, block->slab, &block->veneers[i]);
        for (size_t i = 0; i < block->span_count; i++)
            release_span(block, &block->spans[i]);
        close_block(block);
        space_leave(space);
    }
    if (block->spans != block->first_spans)
        memory_free(&space->allocator, block->spans, block->span_capacity * sizeof *block->spans);
    memory_free(&space->allocator, block->veneers, block->veneer_capacity * sizeof *block->veneers);
    memory_free(&space->allocator, block, sizeof *block);
}

/* ---- Memory ranges ---- */

struct code_space *code_block_space(const struct code_block *block) { return block->space; }

struct code_slab *code_block_slab(const struct code_block *block) { return block->slab; }

bool code_block_memory_range(const struct code_block *block, uint32_t index,
                             struct cairn_memory_range *range)
{
    if (index >= block->span_count)
        return false;
    const struct code_span *span = &block->spans[index];
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
        const struct code_span *span = &block->spans[i];
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

enum cairn_status code_block_add_veneer(struct code_block *block, enum code_veneer_kind kind,
                                        uint64_t target, struct code_veneer *veneer,
                                        struct cairn_error *error)
{
    if (block->slab == NULL)
        return error_set(error, CAIRN_ERROR_STATE, 0,
                         "a module without code has no place for a veneer");
    enum cairn_status status = space_enter(block->space, error);
    if (status != CAIRN_OK)
        return status;
    size_t capacity = block->veneer_capacity;
    struct veneer *veneers = array_reserve(&block->space->allocator, block->veneers,
                                           block->veneer_count, 1, &capacity, sizeof *veneers);
    if (veneers == NULL) {
        status = error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to note a veneer");
    } else {
        block->veneers = veneers;
        block->veneer_capacity = (uint32_t)capacity;
        veneers += block->veneer_count;
        status = veneer_take(block->space, block->slab, kind, veneers, error);
    }
    if (status == CAIRN_OK) {
        block->veneer_count++;
        *veneer = (struct code_veneer){veneer_address(block->slab, veneers),
                                       veneer_slot(block->slab, veneers)};
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

enum cairn_status code_block_make_own(struct code_block *block, uint64_t address, size_t size,
                                      struct cairn_error *error)
{
    enum cairn_status status = space_enter(block->space, error);
    if (status != CAIRN_OK)
        return status;
    status = slab_make_own(block->slab, slab_offset(block, address), size, error);
    space_leave(block->space);
    return status;
}

enum cairn_status code_block_make_all_own(struct code_block *block, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    if (code_space_is_own(block->space))
        return CAIRN_OK;
    for (size_t i = 0; i < block->span_count && status == CAIRN_OK; i++) {
        const struct code_span *span = &block->spans[i];
        if (span->is_part && span->use != PAGES_FOR_DATA)
            status =
                code_block_make_own(block, (uintptr_t)span_address(block, span), span->size, error);
    }
    return status;
}

uint8_t *code_block_load_address(const struct code_block *block, uint64_t address)
{
    for (size_t i = 0; i < block->span_count; i++) {
        const struct code_span *span = &block->spans[i];
        size_t offset = slab_offset(block, address);
        if (span->use != PAGES_FOR_DATA && span->is_part && offset - span->offset < span->size)
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
        status = slab_make_own(block->slab, slab_offset(block, address), size, error);
        if (status == CAIRN_OK)
            status = block->space->map->write(block->slab, slab_offset(block, address), bytes, size,
                                              error);
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
    uint8_t *place = copy + slab_offset(block, address);
    /* Writing would copy the page, which is shared with the parent until then. */
    if (memcmp(place, bytes, size) != 0)
        memcpy(place, bytes, size);
}
