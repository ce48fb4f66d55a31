/*
 * A block: the pages of one module, from its first section until no thread executes it any more.
 *
 * Sections of one kind are packed into spans of pages. At first a span is as large as its sections
 * need. It grows in place if the pages after it are free, by as many pages as the block already
 * has, so that many small sections take few system calls. Protection releases the pages that are
 * not used.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/array.h"
#include "base/error.h"
#include "code/state.h"
#include "code/stub.h"

#include <string.h>

/* Maximum number of pages by which a span grows beyond what is needed. */
enum { GROWTH_PAGES_MAX = 256 };

struct code_span {
    enum page_use use;
    size_t first_page;
    size_t page_count;
    size_t used_bytes;
};

struct code_block {
    struct code_space *space;
    struct code_slab *slab; /* NULL until the first allocation */

    struct code_span *spans;
    size_t span_count;
    size_t span_capacity;
    size_t page_counts[PAGE_USE_COUNT];

    struct code_stub *veneers;
    size_t veneer_count;
    size_t veneer_capacity;

    bool reuses_code; /* whether some code is at addresses that held other code before */
    bool is_protected;
    bool is_published;
};

enum cairn_status code_block_create(struct code_space *space, struct code_block **block,
                                    struct cairn_error *error)
{
    struct code_block *created = memory_new(&space->allocator, 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a block of code");
    created->space = space;
    *block = created;
    return CAIRN_OK;
}

/* ---- Spans ---- */

static uint8_t *span_address(const struct code_block *block, const struct code_span *span)
{
    return block->slab->base + span->first_page * block->slab->page_size;
}

static size_t span_bytes(const struct code_block *block, const struct code_span *span)
{
    return span->page_count * block->slab->page_size;
}

/* Returns the number of pages for `size` bytes. It is larger than any slab if rounding up would
 * overflow. */
static size_t pages_for(const struct code_space *space, size_t size)
{
    return size / space->page_size + (size % space->page_size != 0);
}

/* ---- Allocating ---- */

/* Takes `page_count` pages: the ones after `span`, or any for a new span if it is NULL. */
static enum cairn_status take_pages(struct code_block *block, enum page_use use,
                                    struct code_span *span, size_t page_count, bool *found,
                                    struct cairn_error *error)
{
    size_t code_end = block->slab->code_end;
    size_t first_page = span == NULL ? 0 : span->first_page + span->page_count;
    enum cairn_status status =
        span == NULL ? slab_take(block->slab, use, page_count, &first_page, found, error)
                     : slab_take_at(block->slab, use, first_page, page_count, found, error);
    if (status != CAIRN_OK || !*found)
        return status;
    if (span != NULL)
        span->page_count += page_count;
    else
        block->spans[block->span_count++] =
            (struct code_span){.use = use, .first_page = first_page, .page_count = page_count};
    block->page_counts[use] += page_count;
    if (use == PAGES_FOR_CODE && first_page < code_end)
        block->reuses_code = true;
    return CAIRN_OK;
}

/* Takes pages for `size` bytes: as many as the block already has for this use, at most
 * GROWTH_PAGES_MAX, or if that many are not free, as many as needed. */
static enum cairn_status take_pages_for(struct code_block *block, enum page_use use,
                                        struct code_span *span, size_t size, bool *found,
                                        struct cairn_error *error)
{
    size_t needed = pages_for(block->space, size);
    size_t wanted = block->page_counts[use];
    if (wanted > GROWTH_PAGES_MAX)
        wanted = GROWTH_PAGES_MAX;
    if (wanted < needed)
        wanted = needed;
    enum cairn_status status = take_pages(block, use, span, wanted, found, error);
    if (status == CAIRN_OK && !*found && wanted > needed)
        status = take_pages(block, use, span, needed, found, error);
    return status;
}

/* Allocates at the end of the last span of this use. Extends the span if the section does not fit.
 * `*found` is false if there is no such span or the pages after it are not free. */
static enum cairn_status allocate_in_span(struct code_block *block, enum page_use use, size_t size,
                                          size_t alignment, void **address, bool *found,
                                          struct cairn_error *error)
{
    size_t index = block->span_count;
    while (index > 0 && block->spans[index - 1].use != use)
        index--;
    *found = false;
    if (index == 0)
        return CAIRN_OK;
    struct code_span *span = &block->spans[index - 1];
    size_t offset = (span->used_bytes + alignment - 1) & ~(alignment - 1);
    size_t bytes = span_bytes(block, span);
    *found = offset <= bytes && size <= bytes - offset;
    if (!*found && size <= block->slab->size) {
        enum cairn_status status =
            take_pages_for(block, use, span, offset - bytes + size, found, error);
        if (status != CAIRN_OK)
            return status;
    }
    if (*found) {
        span->used_bytes = offset + size;
        *address = span_address(block, span) + offset;
    }
    return CAIRN_OK;
}

static enum cairn_status allocate_new_span(struct code_block *block, enum page_use use, size_t size,
                                           void **address, struct cairn_error *error)
{
    static const char *const names[] = {
        [PAGES_FOR_CODE] = "code",
        [PAGES_FOR_READ_ONLY] = "read-only data",
        [PAGES_FOR_DATA] = "data",
    };
    _Static_assert(sizeof names / sizeof *names == PAGE_USE_COUNT, "one name for each use");
    struct code_slab *slab = block->slab;
    struct code_span *spans =
        array_reserve(&block->space->allocator, block->spans, block->span_count, 1,
                      &block->span_capacity, sizeof *spans);
    if (spans == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to note a section's pages");
    block->spans = spans;
    bool found;
    enum cairn_status status = take_pages_for(block, use, NULL, size, &found, error);
    if (status == CAIRN_OK && !found)
        return error_set(error, CAIRN_ERROR_FULL, (uintptr_t)slab->base,
                         "a section of %zu bytes of %s does not fit the module's slab: of %zu "
                         "bytes, %zu are free in one piece; raise slab_size in struct "
                         "cairn_runtime_options (%zu at most)",
                         size, names[use], slab->size, slab_room(slab) * slab->page_size,
                         block->space->arch->reach_bytes);
    if (status != CAIRN_OK)
        return status;
    struct code_span *span = &block->spans[block->span_count - 1];
    span->used_bytes = size;
    *address = span_address(block, span);
    return CAIRN_OK;
}

enum cairn_status code_block_allocate(struct code_block *block, enum page_use use, size_t size,
                                      size_t alignment, void **address, struct cairn_error *error)
{
    struct code_space *space = block->space;
    if (size == 0)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "a section of no bytes was asked for");
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > space->page_size)
        return error_set(error, CAIRN_ERROR_ARGUMENT, alignment,
                         "alignment %zu is not a power of two up to a page of %zu bytes", alignment,
                         space->page_size);
    if (block->is_protected)
        return error_set(error, CAIRN_ERROR_STATE, 0,
                         "a module whose code is protected already cannot have more sections");
    enum cairn_status status = space_enter(space, error);
    if (status != CAIRN_OK)
        return status;
    if (block->slab == NULL)
        status = space_choose_slab(space, pages_for(space, size), &block->slab, error);
    bool found = false;
    if (status == CAIRN_OK)
        status = allocate_in_span(block, use, size, alignment, address, &found, error);
    if (status == CAIRN_OK && !found)
        status = allocate_new_span(block, use, size, address, error);
    space_leave(space);
    return status;
}

/* ---- Protecting ---- */

static void close_block(struct code_block *block)
{
    if (block->slab != NULL && !block->is_protected)
        block->slab->open_blocks--;
    block->is_protected = true;
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
        size_t used = pages_for(block->space, span->used_bytes);
        if (used < span->page_count)
            slab_release(block->slab, span->first_page + used, span->page_count - used);
        span->page_count = used;
        status = slab_protect(block->slab, span->use, span->first_page, used, error);
    }
    /* Cores that have executed other code at these addresses may still hold some of it. */
    if (status == CAIRN_OK && block->reuses_code)
        status = space_publish_code(block->space, error);
    close_block(block);
    space_leave(block->space);
    return status;
}

/* ---- Publishing ---- */

static void set_owner(struct code_block *block, void *owner)
{
    for (size_t i = 0; i < block->span_count; i++) {
        const struct code_span *span = &block->spans[i];
        _Atomic(void *) *owners = block->slab->owners + span->first_page;
        for (size_t page = 0; page < span->page_count; page++)
            atomic_store_explicit(&owners[page], owner, memory_order_release);
    }
}

enum cairn_status code_block_publish(struct code_block *block, void *owner,
                                     struct cairn_error *error)
{
    if (owner == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "published code needs an owner");
    if (!block->is_protected || block->is_published)
        return error_set(error, CAIRN_ERROR_STATE, 0,
                         "code can be published once, when it is "
                         "protected");
    set_owner(block, owner);
    block->is_published = true;
    return CAIRN_OK;
}

void code_block_unpublish(struct code_block *block)
{
    if (block->is_published)
        set_owner(block, NULL);
    block->is_published = false;
}

/* ---- Destroying ---- */

void code_block_destroy(struct code_block *block)
{
    if (block == NULL)
        return;
    struct code_space *space = block->space;
    code_block_unpublish(block);
    /* A forked child that could not get its own pages must not change its parent's pages. */
    if (space_enter(space, NULL) == CAIRN_OK) {
        for (size_t i = 0; i < block->veneer_count; i++)
            stub_release(space, &block->veneers[i]);
        for (size_t i = 0; i < block->span_count; i++)
            slab_release(block->slab, block->spans[i].first_page, block->spans[i].page_count);
        close_block(block);
        space_leave(space);
    }
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
    range->size = span_bytes(block, span);
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
        if ((span->use == PAGES_FOR_CODE) == is_code && address - start < span->used_bytes)
            return start + span->used_bytes;
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
    struct code_stub *veneers =
        array_reserve(&block->space->allocator, block->veneers, block->veneer_count, 1,
                      &block->veneer_capacity, sizeof *veneers);
    if (veneers == NULL) {
        status = error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory to note a veneer");
    } else {
        block->veneers = veneers;
        veneers += block->veneer_count;
        status = stub_take_veneer(block->space, block->slab, kind, veneers, error);
    }
    if (status == CAIRN_OK) {
        block->veneer_count++;
        *veneer = (struct code_veneer){veneers->address, stub_slot(veneers)};
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

/* Writes code in place if it is not protected yet, and otherwise through the slab's map. */
enum cairn_status code_block_write(struct code_block *block, uint64_t address, const void *bytes,
                                   size_t size, struct cairn_error *error)
{
    uint8_t *code = (uint8_t *)(uintptr_t)address;
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
        map_store(code, bytes, size);
        arch_host_code_written(code, code, size);
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
