/* SPDX-License-Identifier: MIT */
#include "code/stub.h"

#include "base/error.h"

enum { WORD_BITS = 64 };

/* ---- Bits ---- */

static size_t word_count(uint32_t granules) { return (granules + WORD_BITS - 1) / WORD_BITS; }

static size_t chunk_bytes(uint32_t granules)
{
    return sizeof(struct code_stub_chunk) + 2 * word_count(granules) * sizeof(uint64_t) +
           granules * sizeof(void *);
}

static uint64_t *retired_bits(struct code_stub_chunk *chunk)
{
    return chunk->taken + word_count(chunk->granule_count);
}

static _Atomic(void *) *owners_of(struct code_stub_chunk *chunk)
{
    return (_Atomic(void *) *)(chunk->taken + 2 * word_count(chunk->granule_count));
}

static void set_owner(struct code_stub_chunk *chunk, uint32_t first, uint32_t count, void *owner)
{
    for (uint32_t i = first; i < first + count; i++)
        atomic_store_explicit(&owners_of(chunk)[i], owner, memory_order_release);
}

static bool is_set(const uint64_t *bits, uint32_t index)
{
    return (bits[index / WORD_BITS] >> index % WORD_BITS & 1) != 0;
}

static void set(uint64_t *bits, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++)
        bits[i / WORD_BITS] |= UINT64_C(1) << i % WORD_BITS;
}

static void clear(uint64_t *bits, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++)
        bits[i / WORD_BITS] &= ~(UINT64_C(1) << i % WORD_BITS);
}

static uint32_t granules_of(size_t size)
{
    return (uint32_t)((size + CODE_STUB_GRANULE - 1) / CODE_STUB_GRANULE);
}

/* Finds `wanted` consecutive free granules at or after the cursor. */
static bool find_run(const struct code_stub_chunk *chunk, uint32_t wanted, uint32_t *first)
{
    uint32_t found = 0;
    for (uint32_t i = chunk->cursor; i < chunk->granule_count; i++) {
        found = is_set(chunk->taken, i) ? 0 : found + 1;
        if (found == wanted) {
            *first = i + 1 - wanted;
            return true;
        }
    }
    return false;
}

/* ---- Chunks ---- */

static uint8_t *page_address(const struct code_slab *slab, const struct code_stub_chunk *chunk)
{
    return slab->base + chunk->page * slab->page_size;
}

static enum cairn_status take_page(struct code_slab *slab, size_t *page, struct cairn_error *error)
{
    bool found;
    enum cairn_status status = slab_take(slab, PAGES_FOR_CODE, 1, page, &found, error);
    if (status == CAIRN_OK && !found)
        return error_set(error, CAIRN_ERROR_FULL, (uint64_t)(uintptr_t)slab->base,
                         "the code slab of %zu bytes has no free page for another inline cache: "
                         "come to a quiescent point more often, or raise slab_size in struct "
                         "cairn_runtime_options",
                         slab->size);
    return status;
}

/* The page may have held other code before, which cores may still hold. */
static enum cairn_status prepare(struct code_space *space, struct code_slab *slab, size_t page,
                                 struct cairn_error *error)
{
    const uint8_t *code = slab->base + page * slab->page_size;
    arch_host_code_written(code, code, slab->page_size);
    enum cairn_status status = slab_protect(slab, PAGES_FOR_CODE, page, 1, error);
    if (status == CAIRN_OK && code_space_can_synchronise(space))
        status = code_space_synchronise(space, error);
    return status;
}

static enum cairn_status add_page(struct code_space *space, struct code_slab *slab,
                                  struct code_stub_chunk *chunk, struct cairn_error *error)
{
    enum cairn_status status = take_page(slab, &chunk->page, error);
    if (status != CAIRN_OK)
        return status;
    status = prepare(space, slab, chunk->page, error);
    if (status != CAIRN_OK)
        slab_release(slab, chunk->page, 1);
    return status;
}

static void push(struct code_stub_chunk **list, struct code_stub_chunk *chunk)
{
    chunk->next = *list;
    *list = chunk;
}

static enum cairn_status add_chunk(struct code_space *space, struct code_slab *slab,
                                   struct cairn_error *error)
{
    uint32_t granules = (uint32_t)(slab->page_size / CODE_STUB_GRANULE);
    struct code_stub_chunk *chunk = memory_new(&space->allocator, 1, chunk_bytes(granules));
    if (chunk == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a chunk of stubs");
    chunk->granule_count = granules;
    enum cairn_status status = add_page(space, slab, chunk, error);
    if (status != CAIRN_OK) {
        memory_free(&space->allocator, chunk, chunk_bytes(granules));
        return status;
    }
    chunk->address = (uintptr_t)page_address(slab, chunk);
    push(&slab->stub_chunks, chunk);
    chunk->older = atomic_load_explicit(&space->stub_chunks, memory_order_relaxed);
    atomic_store_explicit(&space->stub_chunks, chunk, memory_order_release);
    return CAIRN_OK;
}

static void free_list(const struct code_space *space, struct code_stub_chunk *chunk)
{
    while (chunk != NULL) {
        struct code_stub_chunk *next = chunk->next;
        memory_free(&space->allocator, chunk, chunk_bytes(chunk->granule_count));
        chunk = next;
    }
}

void stub_free_chunks(const struct code_space *space, struct code_slab *slab)
{
    free_list(space, slab->stub_chunks);
    free_list(space, slab->full_stub_chunks);
    slab->stub_chunks = NULL;
    slab->full_stub_chunks = NULL;
}

/* ---- Taking ---- */

/* Finds a chunk with enough space. Moves chunks without enough space to the list of full chunks. */
static struct code_stub_chunk *find_chunk(struct code_slab *slab, uint32_t wanted, uint32_t *first)
{
    while (slab->stub_chunks != NULL && !find_run(slab->stub_chunks, wanted, first)) {
        struct code_stub_chunk *full = slab->stub_chunks;
        slab->stub_chunks = full->next;
        push(&slab->full_stub_chunks, full);
    }
    return slab->stub_chunks;
}

static enum cairn_status take_locked(struct code_space *space, struct code_slab *slab, size_t size,
                                     void *owner, struct code_stub *stub, struct cairn_error *error)
{
    uint32_t wanted = granules_of(size);
    uint32_t first;
    struct code_stub_chunk *chunk = find_chunk(slab, wanted, &first);
    if (chunk == NULL) {
        enum cairn_status status = add_chunk(space, slab, error);
        if (status != CAIRN_OK)
            return status;
        chunk = slab->stub_chunks;
        first = 0;
    }
    set(chunk->taken, first, wanted);
    chunk->cursor = first + wanted;
    uint64_t address = chunk->address + (uint64_t)first * CODE_STUB_GRANULE;
    *stub = (struct code_stub){.address = address, .size = size, .chunk = chunk};
    set_owner(chunk, first, wanted, owner);
    return CAIRN_OK;
}

enum cairn_status code_block_take_stub(struct code_block *block, size_t size, void *owner,
                                       struct code_stub *stub, struct cairn_error *error)
{
    struct code_space *space = code_block_space(block);
    enum cairn_status status = space_enter(space, error);
    if (status != CAIRN_OK)
        return status;
    status = take_locked(space, code_block_slab(block), size, owner, stub, error);
    space_leave(space);
    return status;
}

/* ---- Writing ---- */

/* In single mapping the page is replaced, which only one thread may do at a time. */
static enum cairn_status write(struct code_space *space, struct code_slab *slab, size_t offset,
                               const void *bytes, size_t size, struct cairn_error *error)
{
    if (space->map->mode == CAIRN_CODE_MODE_DUAL)
        return space->map->write(slab, offset, bytes, size, error);
    enum cairn_status status = space_enter(space, error);
    if (status != CAIRN_OK)
        return status;
    status = space->map->write(slab, offset, bytes, size, error);
    space_leave(space);
    return status;
}

enum cairn_status code_block_write_stub(struct code_block *block, const struct code_stub *stub,
                                        const void *bytes, struct cairn_error *error)
{
    struct code_space *space = code_block_space(block);
    struct code_slab *slab = code_block_slab(block);
    size_t offset = (size_t)(stub->address - (uintptr_t)slab->base);
    enum cairn_status status = write(space, slab, offset, bytes, stub->size, error);
    if (status == CAIRN_OK && space->arch->new_code_needs_barrier &&
        code_space_can_synchronise(space))
        status = code_space_synchronise(space, error);
    return status;
}

/* ---- Releasing ---- */

static uint32_t first_granule(const struct code_space *space, const struct code_stub *stub)
{
    return (uint32_t)((stub->address & (space->page_size - 1)) / CODE_STUB_GRANULE);
}

void code_block_release_stub(struct code_block *block, const struct code_stub *stub)
{
    struct code_space *space = code_block_space(block);
    /* A forked child that could not get its own pages leaves everything unchanged. */
    if (stub->size == 0 || space_enter(space, NULL) != CAIRN_OK)
        return;
    uint32_t first = first_granule(space, stub);
    set_owner(stub->chunk, first, granules_of(stub->size), NULL);
    clear(stub->chunk->taken, first, granules_of(stub->size));
    if (stub->chunk->cursor > first)
        stub->chunk->cursor = first;
    space_leave(space);
}

void code_block_retire_stub(struct code_block *block, const struct code_stub *stub)
{
    struct code_space *space = code_block_space(block);
    if (stub->size == 0 || space_enter(space, NULL) != CAIRN_OK)
        return;
    uint32_t count = granules_of(stub->size);
    set(retired_bits(stub->chunk), first_granule(space, stub), count);
    stub->chunk->retired_count += count;
    space_leave(space);
}

/* ---- Looking up ---- */

void *code_space_find_stub_owner(const struct code_space *space, uint64_t pc)
{
    struct code_stub_chunk *chunk = atomic_load_explicit(&space->stub_chunks, memory_order_acquire);
    while (chunk != NULL && pc - chunk->address >= space->page_size)
        chunk = chunk->older;
    if (chunk == NULL)
        return NULL;
    size_t granule = (size_t)(pc - chunk->address) / CODE_STUB_GRANULE;
    return atomic_load_explicit(&owners_of(chunk)[granule], memory_order_acquire);
}

/* ---- Quiescent points ---- */

static void free_retired(struct code_stub_chunk *chunk)
{
    uint64_t *retired = retired_bits(chunk);
    for (uint32_t i = 0; i < chunk->granule_count; i++)
        if (is_set(retired, i))
            set_owner(chunk, i, 1, NULL);
    for (size_t i = 0; i < word_count(chunk->granule_count); i++) {
        chunk->taken[i] &= ~retired[i];
        retired[i] = 0;
    }
    chunk->retired_count = 0;
    chunk->cursor = 0;
}

static bool has_retired(const struct code_stub_chunk *chunk)
{
    while (chunk != NULL && chunk->retired_count == 0)
        chunk = chunk->next;
    return chunk != NULL;
}

/* Frees the retired stubs, and moves full chunks that have free granules again back to the list of
 * chunks to search. */
static void quiesce_slab(struct code_slab *slab)
{
    for (struct code_stub_chunk *chunk = slab->stub_chunks; chunk != NULL; chunk = chunk->next)
        if (chunk->retired_count > 0)
            free_retired(chunk);
    struct code_stub_chunk **link = &slab->full_stub_chunks;
    while (*link != NULL) {
        struct code_stub_chunk *chunk = *link;
        if (chunk->retired_count == 0) {
            link = &chunk->next;
            continue;
        }
        *link = chunk->next;
        free_retired(chunk);
        push(&slab->stub_chunks, chunk);
    }
}

static bool any_retired(const struct code_space *space)
{
    const struct code_slab *slab = space->slabs;
    while (slab != NULL && !has_retired(slab->stub_chunks) && !has_retired(slab->full_stub_chunks))
        slab = slab->next;
    return slab != NULL;
}

/* If the barrier fails, the stubs stay retired until the next quiescent point. */
static bool forget_old_code(struct code_space *space)
{
    return !code_space_can_synchronise(space) || code_space_synchronise(space, NULL) == CAIRN_OK;
}

void code_space_quiesce_stubs(struct code_space *space)
{
    if (space_enter(space, NULL) != CAIRN_OK)
        return;
    if (any_retired(space) && forget_old_code(space))
        for (struct code_slab *slab = space->slabs; slab != NULL; slab = slab->next)
            quiesce_slab(slab);
    space_leave(space);
}
