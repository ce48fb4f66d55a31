/*
 * Stubs: parts of pages of code (code/parts.h), each with a description in private memory.
 *
 * The bytes of a stub are written only while no thread can reach it, and do not change until it is
 * freed. A stub may have a slot, which is data of the same slab and may change at any time. A stub
 * that threads may be executing is retired, and freed after a grace period. Cores may still hold
 * the code that was in its place before, so there is a barrier between the release of code and the
 * next use of its addresses: one for everything that was released, however much.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "code/parts.h"
#include "code/state.h"

#include <assert.h>
#include <stddef.h>

_Static_assert(CODE_STUB_ALIGNMENT == (int)OWNERS_UNIT_BYTES,
               "stubs with an owner begin with a unit of the index");

static size_t alignment_of(bool has_owner)
{
    return has_owner ? CODE_STUB_ALIGNMENT : PART_UNIT_BYTES;
}

/* Returns the size of the stub's space: its code, rounded up to the alignment. */
static size_t space_bytes(const struct code_stub *stub, bool has_owner)
{
    size_t alignment = alignment_of(has_owner);
    return (stub->code_bytes + alignment - 1) & ~(alignment - 1);
}

static size_t offset_of(const struct code_stub *stub, const struct code_slab *slab)
{
    return (size_t)(stub->address - (uintptr_t)slab->base);
}

/* ---- Taking and giving space ---- */

static void give(struct code_slab *slab, const struct code_stub *stub, bool has_owner)
{
    const struct code_slotted_stub *slotted = (const struct code_slotted_stub *)stub;
    if (stub->has_slot && slotted->slot != NULL)
        parts_give(slab, PAGES_FOR_DATA, (size_t)((uint8_t *)slotted->slot - slab->base),
                   sizeof *slotted->slot);
    parts_give(slab, PAGES_FOR_CODE, offset_of(stub, slab), space_bytes(stub, has_owner));
}

/* Takes a place for the stub's slot. If there is none, gives its other space back. */
static enum cairn_status take_slot(struct code_slab *slab, struct code_slotted_stub *slotted,
                                   bool has_owner, bool *found, struct cairn_error *error)
{
    size_t offset;
    enum cairn_status status = parts_take(slab, PAGES_FOR_DATA, sizeof *slotted->slot,
                                          PART_UNIT_BYTES, &offset, found, error);
    if (status == CAIRN_OK && *found)
        slotted->slot = (_Atomic uint64_t *)(void *)(slab->base + offset);
    else
        give(slab, &slotted->stub, has_owner);
    return status;
}

static enum cairn_status take_in(struct code_slab *slab, const struct code_stub_request *request,
                                 struct code_stub *stub, bool *found, struct cairn_error *error)
{
    size_t offset;
    bool has_owner = request->owner != NULL;
    enum cairn_status status = parts_take(slab, PAGES_FOR_CODE, space_bytes(stub, has_owner),
                                          alignment_of(has_owner), &offset, found, error);
    if (status != CAIRN_OK || !*found)
        return status;
    stub->address = (uintptr_t)slab->base + offset;
    return stub->has_slot
               ? take_slot(slab, (struct code_slotted_stub *)stub, has_owner, found, error)
               : CAIRN_OK;
}

/* Takes space in a slab that is hidden from profilers or not, which is then `*slab`. */
static enum cairn_status take_in_slabs(const struct code_stub_request *request,
                                       struct code_stub *stub, bool is_hidden,
                                       struct code_slab **slab, bool *found,
                                       struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    struct code_slab *next = stub->space->slabs;
    for (; next != NULL && status == CAIRN_OK && !*found; next = next->next) {
        if (space_hides(stub->space, next) != is_hidden)
            continue;
        status = take_in(next, request, stub, found, error);
        if (*found)
            *slab = next;
    }
    return status;
}

/* Takes space in any slab, and adds a slab if all are full. */
static enum cairn_status take_anywhere(const struct code_stub_request *request,
                                       struct code_stub *stub, struct code_slab **slab, bool *found,
                                       struct cairn_error *error)
{
    *found = false;
    enum cairn_status status = take_in_slabs(request, stub, false, slab, found, error);
    if (status != CAIRN_OK || *found)
        return status;
    status = space_choose_slab(stub->space, 1, slab, error);
    if (status == CAIRN_OK)
        status = take_in(*slab, request, stub, found, error);
    if (status != CAIRN_OK || *found)
        return status;
    return take_in_slabs(request, stub, true, slab, found, error);
}

static enum cairn_status take(const struct code_stub_request *request, struct code_stub *stub,
                              struct code_slab **slab, struct cairn_error *error)
{
    bool found;
    enum cairn_status status;
    if (request->block == NULL) {
        status = take_anywhere(request, stub, slab, &found, error);
    } else {
        *slab = code_block_slab(request->block);
        status = take_in(*slab, request, stub, &found, error);
    }
    if (status != CAIRN_OK || found)
        return status;
    return error_set(error, CAIRN_ERROR_FULL, (uintptr_t)(*slab)->base,
                     "a code slab of %zu bytes has no space for %u bytes of Cairn's own code: end "
                     "grace periods more often, or raise slab_size in struct cairn_runtime_options",
                     (*slab)->size, stub->code_bytes);
}

/* ---- Adding ---- */

static enum cairn_status set_owner(struct code_slab *slab, const struct code_stub *stub,
                                   void *owner, struct cairn_error *error)
{
    size_t first = offset_of(stub, slab) / OWNERS_UNIT_BYTES;
    size_t count = space_bytes(stub, true) / OWNERS_UNIT_BYTES;
    assert(((uintptr_t)owner & CODE_OWNER_MARKS) == 0);
    enum cairn_status status = owners_reserve(&slab->owners, first, count, error);
    if (status == CAIRN_OK)
        owners_set(&slab->owners, first, count, (char *)owner + CODE_OWNER_STUB);
    return status;
}

/* Writes the stub into its space, and makes it visible to all cores and to lookups. */
static enum cairn_status write_stub(const struct code_stub_request *request, struct code_stub *stub,
                                    struct code_slab *slab, struct cairn_error *error)
{
    struct code_space *space = stub->space;
    uint8_t bytes[CODE_STUB_BYTES_MAX];
    size_t size = 0;
    enum cairn_status status = request->encode(stub, request->user, bytes, &size, error);
    assert(status != CAIRN_OK || size == stub->code_bytes);
    if (status == CAIRN_OK)
        status = space->map->write(slab, offset_of(stub, slab), bytes, size, error);
    if (status == CAIRN_OK)
        status = space_forget_code(space, slab, error);
    if (status == CAIRN_OK && request->owner != NULL)
        status = set_owner(slab, stub, request->owner, error);
    return status;
}

/* Sets the size, which encoding the stub for the start of a slab returns unless it is known. */
static enum cairn_status measure(const struct code_stub_request *request, struct code_stub *stub,
                                 struct cairn_error *error)
{
    uint8_t bytes[CODE_STUB_BYTES_MAX];
    size_t size = request->code_bytes;
    if (size > 0) {
        stub->code_bytes = (uint16_t)size;
        return CAIRN_OK;
    }
    stub->address = request->block == NULL ? stub->space->lookup.first_slab.base
                                           : (uintptr_t)code_block_slab(request->block)->base;
    enum cairn_status status = request->encode(stub, request->user, bytes, &size, error);
    stub->code_bytes = (uint16_t)size;
    return status;
}

static enum cairn_status add(const struct code_stub_request *request, struct code_stub *stub,
                             struct cairn_error *error)
{
    struct code_slab *slab = NULL;
    enum cairn_status status = measure(request, stub, error);
    if (status == CAIRN_OK)
        status = space_enter(stub->space, error);
    if (status != CAIRN_OK)
        return status;
    status = take(request, stub, &slab, error);
    if (status == CAIRN_OK) {
        status = write_stub(request, stub, slab, error);
        if (status != CAIRN_OK)
            give(slab, stub, request->owner != NULL);
    }
    if (status == CAIRN_OK) {
        stub->space->stub_count++;
        stub->space->stub_bytes += stub->code_bytes;
    }
    space_leave(stub->space);
    return status;
}

enum cairn_status code_space_add_stub(struct code_space *space,
                                      const struct code_stub_request *request,
                                      struct code_stub **stub, struct cairn_error *error)
{
    struct code_stub *added = memory_new(&space->allocator, 1, request->description_bytes);
    if (added == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a stub's description");
    added->space = space;
    added->description_bytes = (uint16_t)request->description_bytes;
    added->has_slot = request->has_slot;
    enum cairn_status status = add(request, added, error);
    if (status != CAIRN_OK) {
        memory_free(&space->allocator, added, request->description_bytes);
        return status;
    }
    code_watchers_code(&space->watchers, &(struct code_note){.address = added->address,
                                                             .size = added->code_bytes,
                                                             .label = request->label,
                                                             .site = request->site,
                                                             .is_called = request->is_called});
    *stub = added;
    return CAIRN_OK;
}

/* ---- Freeing ---- */

static struct code_slab *slab_of(const struct code_stub *stub)
{
    struct code_slab *slab = stub->space->slabs;
    while (!slab_holds(slab, stub->address))
        slab = slab->next;
    return slab;
}

static void remove_owner(struct code_slab *slab, const struct code_stub *stub)
{
    size_t first = offset_of(stub, slab) / OWNERS_UNIT_BYTES;
    size_t count = space_bytes(stub, true) / OWNERS_UNIT_BYTES;
    owners_set(&slab->owners, first, count, NULL);
}

void code_stub_free(struct code_stub *stub)
{
    if (stub == NULL)
        return;
    struct code_space *space = stub->space;
    code_watchers_code_removed(&space->watchers, stub->address);
    /* A forked child that shares its code with its parent leaves it unchanged. */
    if (space_enter(space, NULL) == CAIRN_OK) {
        struct code_slab *slab = slab_of(stub);
        bool has_owner = code_space_find_stub_owner(space, stub->address) != NULL;
        if (has_owner)
            remove_owner(slab, stub);
        give(slab, stub, has_owner);
        space->stub_count--;
        space->stub_bytes -= stub->code_bytes;
        space_leave(space);
    }
    memory_free(&space->allocator, stub, stub->description_bytes);
}

static size_t free_retired(struct grace_entry *entry)
{
    _Static_assert(offsetof(struct code_stub, retired) == 0, "a stub begins with its entry");
    code_stub_free((struct code_stub *)(void *)entry);
    return 0;
}

void code_stub_retire(struct code_stub *stub)
{
    if (stub == NULL || atomic_exchange_explicit(&stub->is_retired, true, memory_order_relaxed))
        return;
    grace_retire(&stub->space->grace, &stub->retired, free_retired);
}
