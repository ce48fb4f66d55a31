/* SPDX-License-Identifier: MIT */
#include "code/stub.h"

#include "base/error.h"

#include <assert.h>
#include <string.h>

enum { WORD_BITS = 64 };

/* ---- Granules ---- */

static size_t word_count(uint32_t granules) { return (granules + WORD_BITS - 1) / WORD_BITS; }

static uint64_t *retired_bits(struct code_chunk *chunk)
{
    return chunk->taken + word_count(chunk->granule_count);
}

static _Atomic(void *) *owners_of(struct code_chunk *chunk)
{
    return (_Atomic(void *) *)(chunk->taken + 2 * word_count(chunk->granule_count));
}

static bool is_set(const uint64_t *bits, uint32_t index)
{
    return (bits[index / WORD_BITS] >> index % WORD_BITS & 1) != 0;
}

static uint32_t granules_of(const struct code_chunk *chunk, size_t size)
{
    return (uint32_t)((size + chunk->granule_bytes - 1) / chunk->granule_bytes);
}

static uint32_t first_granule(const struct code_stub *stub)
{
    return (uint32_t)((stub->address - stub->chunk->address) / stub->chunk->granule_bytes);
}

/* Finds consecutive free granules for `size` bytes at or after the cursor. */
static bool find_run(const struct code_chunk *chunk, size_t size, uint32_t *first)
{
    uint32_t wanted = granules_of(chunk, size);
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

static void free_granule(struct code_chunk *chunk, uint32_t index)
{
    if (chunk->kind == CODE_CHUNK_STUBS)
        atomic_store_explicit(&owners_of(chunk)[index], NULL, memory_order_release);
    else
        atomic_store_explicit(&chunk->slots[index], 0, memory_order_relaxed);
    chunk->taken[index / WORD_BITS] &= ~(UINT64_C(1) << index % WORD_BITS);
    chunk->taken_count--;
    if (chunk->cursor > index)
        chunk->cursor = index;
}

/* ---- Lists ---- */

static void remove_from_list(struct code_chunk *chunk)
{
    *chunk->link = chunk->next;
    if (chunk->next != NULL)
        chunk->next->link = chunk->link;
}

static void add_to_list(struct code_chunk *chunk, struct code_chunk **list)
{
    chunk->next = *list;
    chunk->link = list;
    if (*list != NULL)
        (*list)->link = &chunk->next;
    *list = chunk;
}

static void move_to_list(struct code_chunk *chunk, struct code_chunk **list)
{
    remove_from_list(chunk);
    add_to_list(chunk, list);
}

/* ---- Adding and removing chunks ---- */

static size_t chunk_bytes(enum code_chunk_kind kind, uint32_t granules)
{
    size_t owners = kind == CODE_CHUNK_STUBS ? granules : 0;
    return sizeof(struct code_chunk) + 2 * word_count(granules) * sizeof(uint64_t) +
           owners * sizeof(void *);
}

static enum cairn_status take_page(struct code_chunk *chunk, enum page_use use, uint8_t **address,
                                   struct cairn_error *error)
{
    struct code_slab *slab = chunk->slab;
    bool found;
    size_t page;
    enum cairn_status status = slab_take(slab, use, 1, &page, &found, error);
    if (status == CAIRN_OK && !found)
        return error_set(error, CAIRN_ERROR_FULL, (uintptr_t)slab->base,
                         "the code slab of %zu bytes has no free page for another %s raise "
                         "slab_size in struct cairn_runtime_options",
                         slab->size,
                         chunk->kind == CODE_CHUNK_STUBS
                             ? "inline cache: pass a quiescent point more often, or"
                             : "veneer:");
    if (status == CAIRN_OK)
        *address = slab->base + page * slab->page_size;
    return status;
}

static void release_page(struct code_slab *slab, uint64_t address)
{
    if (address != 0)
        slab_release(slab, (size_t)(address - (uintptr_t)slab->base) / slab->page_size, 1);
}

static void delete_chunk(struct code_space *space, struct code_chunk *chunk)
{
    release_page(chunk->slab, chunk->address);
    release_page(chunk->slab, (uintptr_t)chunk->slots);
    memory_free(&space->allocator, chunk, chunk_bytes(chunk->kind, chunk->granule_count));
}

/* Takes the chunk's pages, writes veneers, and makes the code visible to all cores. The page may
 * have held other code before, which cores may still hold, so a barrier is needed. */
static enum cairn_status prepare(struct code_space *space, struct code_chunk *chunk,
                                 struct cairn_error *error)
{
    const struct cairn_arch *arch = space->arch;
    uint8_t *code, *slots;
    enum cairn_status status = take_page(chunk, PAGES_FOR_CODE, &code, error);
    if (status != CAIRN_OK)
        return status;
    chunk->address = (uintptr_t)code;
    if (chunk->kind != CODE_CHUNK_STUBS) {
        status = take_page(chunk, PAGES_FOR_DATA, &slots, error);
        if (status != CAIRN_OK)
            return status;
        chunk->slots = (_Atomic uint64_t *)(void *)slots;
    }
    for (uint32_t i = 0; chunk->slots != NULL && i < chunk->granule_count; i++) {
        uint8_t *veneer = code + (size_t)i * chunk->granule_bytes;
        uint64_t address = (uintptr_t)veneer;
        uint64_t slot = (uintptr_t)&chunk->slots[i];
        bool is_encoded = chunk->kind == CODE_CHUNK_FRAMED
                              ? arch->encode_framed_veneer(arch, address, slot, veneer)
                              : arch->encode_veneer(arch, address, slot, veneer);
        if (!is_encoded)
            return error_set(error, CAIRN_ERROR_RANGE, address,
                             "a veneer cannot reach its slot in a slab of %zu bytes",
                             chunk->slab->size);
    }
    size_t page = (size_t)(code - chunk->slab->base) / space->page_size;
    status = slab_protect(chunk->slab, PAGES_FOR_CODE, page, 1, error);
    return status == CAIRN_OK ? space_publish_code(space, error) : status;
}

static enum cairn_status add_chunk(struct code_space *space, struct code_slab *slab,
                                   enum code_chunk_kind kind, struct cairn_error *error)
{
    const struct cairn_arch *arch = space->arch;
    size_t bytes = kind == CODE_CHUNK_FRAMED ? arch->framed_veneer_bytes : arch->veneer_bytes;
    bytes = kind == CODE_CHUNK_STUBS
                ? CODE_STUB_GRANULE
                : (bytes + arch->veneer_alignment - 1) & ~(arch->veneer_alignment - 1);
    assert(bytes >= sizeof(uint64_t)); /* a page holds the slots of a page of veneers */
    uint32_t count = (uint32_t)(space->page_size / bytes);
    struct code_chunk *chunk = memory_new(&space->allocator, 1, chunk_bytes(kind, count));
    if (chunk == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a chunk of stubs");
    chunk->slab = slab;
    chunk->kind = kind;
    chunk->granule_bytes = (uint32_t)bytes;
    chunk->granule_count = count;
    enum cairn_status status = prepare(space, chunk, error);
    if (status != CAIRN_OK) {
        delete_chunk(space, chunk);
        return status;
    }
    add_to_list(chunk, &slab->chunks[kind].open);
    if (kind == CODE_CHUNK_STUBS) {
        chunk->older = atomic_load_explicit(&space->stub_chunks, memory_order_relaxed);
        atomic_store_explicit(&space->stub_chunks, chunk, memory_order_release);
    }
    return CAIRN_OK;
}

static void free_list(const struct code_space *space, struct code_chunk *chunk)
{
    while (chunk != NULL) {
        struct code_chunk *next = chunk->next;
        memory_free(&space->allocator, chunk, chunk_bytes(chunk->kind, chunk->granule_count));
        chunk = next;
    }
}

void stub_free_chunks(const struct code_space *space, struct code_slab *slab)
{
    for (size_t kind = 0; kind < CODE_CHUNK_KIND_COUNT; kind++) {
        free_list(space, slab->chunks[kind].open);
        free_list(space, slab->chunks[kind].full);
    }
}

/* ---- Taking and releasing ---- */

static enum cairn_status take(struct code_space *space, struct code_slab *slab,
                              enum code_chunk_kind kind, size_t size, void *owner,
                              struct code_stub *stub, struct cairn_error *error)
{
    struct code_chunks *chunks = &slab->chunks[kind];
    uint32_t first = 0;
    while (chunks->open != NULL && !find_run(chunks->open, size, &first))
        move_to_list(chunks->open, &chunks->full);
    if (chunks->open == NULL) {
        enum cairn_status status = add_chunk(space, slab, kind, error);
        if (status != CAIRN_OK)
            return status;
        first = 0;
    }
    struct code_chunk *chunk = chunks->open;
    uint32_t count = granules_of(chunk, size);
    for (uint32_t i = first; i < first + count; i++) {
        chunk->taken[i / WORD_BITS] |= UINT64_C(1) << i % WORD_BITS;
        if (kind == CODE_CHUNK_STUBS)
            atomic_store_explicit(&owners_of(chunk)[i], owner, memory_order_release);
    }
    chunk->cursor = first + count;
    chunk->taken_count += count;
    if (chunk->taken_count == chunk->granule_count)
        move_to_list(chunk, &chunks->full);
    *stub = (struct code_stub){
        .address = chunk->address + (uint64_t)first * chunk->granule_bytes,
        .size = size,
        .chunk = chunk,
    };
    return CAIRN_OK;
}

enum cairn_status stub_take_veneer(struct code_space *space, struct code_slab *slab,
                                   enum code_veneer_kind kind, struct code_stub *veneer,
                                   struct cairn_error *error)
{
    return take(space, slab, (enum code_chunk_kind)kind, 1, NULL, veneer, error);
}

_Atomic uint64_t *stub_slot(const struct code_stub *veneer)
{
    return &veneer->chunk->slots[first_granule(veneer)];
}

void stub_release(struct code_space *space, const struct code_stub *stub)
{
    struct code_chunk *chunk = stub->chunk;
    struct code_chunk **open = &chunk->slab->chunks[chunk->kind].open;
    uint32_t first = first_granule(stub);
    for (uint32_t i = 0; i < granules_of(chunk, stub->size); i++)
        free_granule(chunk, first + i);
    move_to_list(chunk, open);
    if (chunk->kind != CODE_CHUNK_STUBS && chunk->taken_count == 0 && chunk->next != NULL) {
        remove_from_list(chunk);
        delete_chunk(space, chunk);
    }
}

void code_block_release_stub(struct code_block *block, const struct code_stub *stub)
{
    struct code_space *space = code_block_space(block);
    /* A forked child that could not get its own pages leaves everything unchanged. */
    if (stub->size == 0 || space_enter(space, NULL) != CAIRN_OK)
        return;
    stub_release(space, stub);
    space_leave(space);
}

/* ---- Emitting ---- */

enum cairn_status code_block_emit_stub(struct code_block *block, code_stub_encoder *encode,
                                       void *user, void *owner, struct code_stub *stub,
                                       struct cairn_error *error)
{
    struct code_space *space = code_block_space(block);
    struct code_slab *slab = code_block_slab(block);
    uint8_t bytes[CODE_STUB_BYTES_MAX];
    size_t size = 0;
    enum cairn_status status = encode(user, (uintptr_t)slab->base, bytes, &size, error);
    if (status == CAIRN_OK)
        status = space_enter(space, error);
    if (status != CAIRN_OK)
        return status;
    struct code_stub taken;
    status = take(space, slab, CODE_CHUNK_STUBS, size, owner, &taken, error);
    if (status == CAIRN_OK) {
        size_t offset = (size_t)(taken.address - (uintptr_t)slab->base);
        status = encode(user, taken.address, bytes, &size, error);
        if (status == CAIRN_OK)
            status = space->map->write(slab, offset, bytes, size, error);
        if (status == CAIRN_OK && space->arch->new_code_needs_barrier)
            status = space_publish_code(space, error);
        if (status == CAIRN_OK)
            *stub = taken;
        else
            stub_release(space, &taken);
    }
    space_leave(space);
    return status;
}

/* ---- Looking up ---- */

void *code_space_find_stub_owner(const struct code_space *space, uint64_t pc)
{
    struct code_chunk *chunk = atomic_load_explicit(&space->stub_chunks, memory_order_acquire);
    while (chunk != NULL && pc - chunk->address >= space->page_size)
        chunk = chunk->older;
    if (chunk == NULL)
        return NULL;
    size_t granule = (size_t)(pc - chunk->address) / CODE_STUB_GRANULE;
    return atomic_load_explicit(&owners_of(chunk)[granule], memory_order_acquire);
}

/* ---- Retiring ---- */

void code_block_retire_stub(struct code_block *block, const struct code_stub *stub)
{
    struct code_space *space = code_block_space(block);
    if (stub->size == 0 || space_enter(space, NULL) != CAIRN_OK)
        return;
    uint32_t first = first_granule(stub);
    uint32_t count = granules_of(stub->chunk, stub->size);
    for (uint32_t i = first; i < first + count; i++)
        retired_bits(stub->chunk)[i / WORD_BITS] |= UINT64_C(1) << i % WORD_BITS;
    stub->chunk->retired_count += count;
    space->retired_count += count;
    space_leave(space);
}

/* If the barrier fails, the stubs stay retired until the next quiescent point. */
void code_space_quiesce_stubs(struct code_space *space)
{
    if (space_enter(space, NULL) != CAIRN_OK)
        return;
    struct code_chunk *chunk = NULL;
    if (space->retired_count > 0 && space_publish_code(space, NULL) == CAIRN_OK) {
        chunk = atomic_load_explicit(&space->stub_chunks, memory_order_relaxed);
        space->retired_count = 0;
    }
    for (; chunk != NULL; chunk = chunk->older) {
        uint64_t *retired = retired_bits(chunk);
        if (chunk->retired_count == 0)
            continue;
        for (uint32_t i = 0; i < chunk->granule_count; i++)
            if (is_set(retired, i))
                free_granule(chunk, i);
        memset(retired, 0, word_count(chunk->granule_count) * sizeof *retired);
        chunk->retired_count = 0;
        chunk->cursor = 0;
        move_to_list(chunk, &chunk->slab->chunks[CODE_CHUNK_STUBS].open);
    }
    space_leave(space);
}
