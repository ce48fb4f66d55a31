/*
 * Veneers: code that jumps to the address in a slot. They are written one page at a time, so that
 * adding one takes setting a bit and one store, and writes no code.
 *
 * The code of a veneer does not change from the moment its page is executable until the page is
 * released. Only its slot changes, with one aligned store.
 *
 * SPDX-License-Identifier: MIT
 */
#include "code/veneer.h"

#include "base/error.h"

enum { TAKEN_BITS = 64 };

static size_t round_up(size_t value, size_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

static size_t veneer_stride(const struct cairn_arch *arch, enum code_veneer_kind kind)
{
    size_t bytes = kind == CODE_VENEER_FRAMED ? arch->framed_veneer_bytes : arch->veneer_bytes;
    return round_up(bytes, arch->veneer_alignment);
}

static uint32_t veneers_a_chunk(const struct code_space *space, enum code_veneer_kind kind)
{
    size_t by_code = space->page_size / veneer_stride(space->arch, kind);
    size_t by_slots = space->page_size / sizeof(uint64_t);
    return (uint32_t)(by_code < by_slots ? by_code : by_slots);
}

static size_t chunk_bytes(uint32_t count)
{
    return sizeof(struct code_chunk) + round_up(count, TAKEN_BITS) / 8;
}

uint64_t veneer_address(const struct code_space *space, const struct code_slab *slab,
                        struct veneer_place place)
{
    const uint8_t *page = slab->base + place.chunk->code_page * slab->page_size;
    return (uint64_t)(uintptr_t)page + place.index * veneer_stride(space->arch, place.chunk->kind);
}

_Atomic uint64_t *veneer_slot(const struct code_slab *slab, struct veneer_place place)
{
    uint8_t *page = slab->base + place.chunk->slot_page * slab->page_size;
    return (_Atomic uint64_t *)(void *)page + place.index;
}

/* ---- Chunks ---- */

static enum cairn_status take_page(struct code_slab *slab, enum page_use use, size_t *page,
                                   struct cairn_error *error)
{
    bool found;
    enum cairn_status status = slab_take(slab, use, 1, page, &found, error);
    if (status == CAIRN_OK && !found)
        return error_set(error, CAIRN_ERROR_FULL, (uint64_t)(uintptr_t)slab->base,
                         "the code slab of %zu bytes has no free page for another veneer; raise "
                         "slab_size in struct cairn_runtime_options",
                         slab->size);
    return status;
}

static enum cairn_status take_pages(struct code_slab *slab, struct code_chunk *chunk,
                                    struct cairn_error *error)
{
    enum cairn_status status = take_page(slab, PAGES_FOR_CODE, &chunk->code_page, error);
    if (status != CAIRN_OK)
        return status;
    status = take_page(slab, PAGES_FOR_DATA, &chunk->slot_page, error);
    if (status != CAIRN_OK)
        slab_release(slab, chunk->code_page, 1);
    return status;
}

static void release_pages(struct code_slab *slab, const struct code_chunk *chunk)
{
    slab_release(slab, chunk->code_page, 1);
    slab_release(slab, chunk->slot_page, 1);
}

static bool encode_one(const struct cairn_arch *arch, enum code_veneer_kind kind, uint64_t address,
                       uint64_t slot)
{
    uint8_t *code = (uint8_t *)(uintptr_t)address;
    return kind == CODE_VENEER_FRAMED ? arch->encode_framed_veneer(arch, address, slot, code)
                                      : arch->encode_veneer(arch, address, slot, code);
}

static bool encode(const struct code_space *space, struct code_slab *slab, struct code_chunk *chunk)
{
    for (uint32_t i = 0; i < chunk->count; i++) {
        struct veneer_place place = {.chunk = chunk, .index = i};
        uint64_t address = veneer_address(space, slab, place);
        uint64_t slot = (uint64_t)(uintptr_t)veneer_slot(slab, place);
        if (!encode_one(space->arch, chunk->kind, address, slot))
            return false;
    }
    return true;
}

/* Writes the veneers and makes them visible to all cores. The address may have held other code
 * before, which cores may still hold, so a barrier is needed. */
static enum cairn_status prepare(struct code_space *space, struct code_slab *slab,
                                 struct code_chunk *chunk, struct cairn_error *error)
{
    if (!encode(space, slab, chunk))
        return error_set(error, CAIRN_ERROR_RANGE, (uint64_t)(uintptr_t)slab->base,
                         "a veneer cannot reach its slot in a slab of %zu bytes", slab->size);
    const uint8_t *code = slab->base + chunk->code_page * slab->page_size;
    arch_host_code_written(code, code, slab->page_size);
    enum cairn_status status = slab_protect(slab, PAGES_FOR_CODE, chunk->code_page, 1, error);
    if (status == CAIRN_OK && code_space_can_synchronise(space))
        status = code_space_synchronise(space, error);
    return status;
}

static enum cairn_status add_chunk(struct code_space *space, struct code_slab *slab,
                                   enum code_veneer_kind kind, struct cairn_error *error)
{
    uint32_t count = veneers_a_chunk(space, kind);
    struct code_chunk *chunk = memory_new(&space->allocator, 1, chunk_bytes(count));
    if (chunk == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a chunk of veneers");
    chunk->kind = kind;
    chunk->count = count;
    enum cairn_status status = take_pages(slab, chunk, error);
    if (status == CAIRN_OK) {
        status = prepare(space, slab, chunk, error);
        if (status == CAIRN_OK) {
            chunk->next = slab->chunks;
            slab->chunks = chunk;
            return CAIRN_OK;
        }
        release_pages(slab, chunk);
    }
    memory_free(&space->allocator, chunk, chunk_bytes(count));
    return status;
}

static void remove_chunk(struct code_space *space, struct code_slab *slab, struct code_chunk *chunk)
{
    struct code_chunk **link = &slab->chunks;
    while (*link != chunk)
        link = &(*link)->next;
    *link = chunk->next;
    release_pages(slab, chunk);
    memory_free(&space->allocator, chunk, chunk_bytes(chunk->count));
}

void veneer_free_chunks(const struct code_space *space, struct code_slab *slab)
{
    while (slab->chunks != NULL) {
        struct code_chunk *chunk = slab->chunks;
        slab->chunks = chunk->next;
        memory_free(&space->allocator, chunk, chunk_bytes(chunk->count));
    }
}

/* ---- Taking and releasing ---- */

static uint32_t first_free(const struct code_chunk *chunk)
{
    uint32_t word = 0;
    while (chunk->taken[word] == UINT64_MAX)
        word++;
    return word * TAKEN_BITS + (uint32_t)__builtin_ctzll(~chunk->taken[word]);
}

static struct code_chunk *find_chunk(const struct code_slab *slab, enum code_veneer_kind kind)
{
    struct code_chunk *chunk = slab->chunks;
    while (chunk != NULL && (chunk->kind != kind || chunk->used == chunk->count))
        chunk = chunk->next;
    return chunk;
}

enum cairn_status veneer_take(struct code_space *space, struct code_slab *slab,
                              enum code_veneer_kind kind, struct veneer_place *place,
                              struct cairn_error *error)
{
    struct code_chunk *chunk = find_chunk(slab, kind);
    if (chunk == NULL) {
        enum cairn_status status = add_chunk(space, slab, kind, error);
        if (status != CAIRN_OK)
            return status;
        chunk = slab->chunks;
    }
    uint32_t index = first_free(chunk);
    chunk->taken[index / TAKEN_BITS] |= UINT64_C(1) << index % TAKEN_BITS;
    chunk->used++;
    *place = (struct veneer_place){.chunk = chunk, .index = index};
    return CAIRN_OK;
}

static bool another_is_free(const struct code_slab *slab, const struct code_chunk *chunk)
{
    for (const struct code_chunk *other = slab->chunks; other != NULL; other = other->next)
        if (other != chunk && other->kind == chunk->kind && other->used < other->count)
            return true;
    return false;
}

void veneer_give_back(struct code_space *space, struct code_slab *slab, struct veneer_place place)
{
    struct code_chunk *chunk = place.chunk;
    atomic_store_explicit(veneer_slot(slab, place), 0, memory_order_relaxed);
    chunk->taken[place.index / TAKEN_BITS] &= ~(UINT64_C(1) << place.index % TAKEN_BITS);
    chunk->used--;
    if (chunk->used == 0 && another_is_free(slab, chunk))
        remove_chunk(space, slab, chunk);
}
