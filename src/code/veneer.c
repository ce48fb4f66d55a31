/* SPDX-License-Identifier: MIT */
#include "code/veneer.h"

#include "base/error.h"
#include "code/parts.h"

#include <assert.h>

uint64_t veneer_address(const struct code_slab *slab, const struct veneer *veneer)
{
    return (uintptr_t)slab->base + veneer->code;
}

_Atomic uint64_t *veneer_slot(const struct code_slab *slab, const struct veneer *veneer)
{
    return (_Atomic uint64_t *)(void *)(slab->base + veneer->slot);
}

static size_t code_bytes(const struct cairn_arch *arch, enum code_veneer_kind kind)
{
    return kind == CODE_VENEER_FRAMED ? arch->framed_veneer_bytes : arch->veneer_bytes;
}

enum { SLOT_BYTES = 2 * sizeof(uint64_t) };

static enum cairn_status take_part(struct code_slab *slab, enum page_use use, size_t size,
                                   uint32_t *part, struct cairn_error *error)
{
    _Static_assert((int)CODE_STUB_UNIT == (int)PART_UNIT_BYTES, "the unit of parts");
    bool found;
    size_t offset;
    enum cairn_status status =
        parts_take(slab, use, size, code_veneer_space(size), &offset, &found, error);
    if (status == CAIRN_OK && !found)
        return error_set(error, CAIRN_ERROR_FULL, (uintptr_t)slab->base,
                         "the code slab of %zu bytes has no space for another veneer: raise "
                         "slab_size in struct cairn_runtime_options",
                         slab->size);
    if (status == CAIRN_OK)
        *part = (uint32_t)offset;
    return status;
}

static enum cairn_status write_code(struct code_space *space, struct code_slab *slab,
                                    const struct veneer *veneer, struct cairn_error *error)
{
    const struct cairn_arch *arch = space->arch;
    uint8_t code[ARCH_VENEER_BYTES_MAX];
    uint64_t address = veneer_address(slab, veneer);
    uint64_t slot = (uintptr_t)veneer_slot(slab, veneer);
    bool is_encoded = veneer->kind == CODE_VENEER_FRAMED
                          ? arch->encode_framed_veneer(arch, address, slot, code)
                          : arch->encode_veneer(arch, address, slot, code);
    if (!is_encoded)
        return error_set(error, CAIRN_ERROR_RANGE, address,
                         "a veneer cannot reach its slot in a slab of %zu bytes", slab->size);
    enum cairn_status status =
        space->map->write(slab, veneer->code, code, code_bytes(arch, veneer->kind), error);
    return status == CAIRN_OK ? space_forget_code(space, slab, error) : status;
}

enum cairn_status veneer_take(struct code_space *space, struct code_slab *slab,
                              enum code_veneer_kind kind, struct veneer *veneer,
                              struct cairn_error *error)
{
    size_t bytes = code_bytes(space->arch, kind);
    assert(space->arch->veneer_alignment <= PART_UNIT_BYTES);
    veneer->kind = kind;
    enum cairn_status status = take_part(slab, PAGES_FOR_CODE, bytes, &veneer->code, error);
    if (status != CAIRN_OK)
        return status;
    status = take_part(slab, PAGES_FOR_DATA, SLOT_BYTES, &veneer->slot, error);
    if (status == CAIRN_OK) {
        status = write_code(space, slab, veneer, error);
        if (status != CAIRN_OK)
            parts_give(slab, PAGES_FOR_DATA, veneer->slot, SLOT_BYTES);
    }
    if (status != CAIRN_OK)
        parts_give(slab, PAGES_FOR_CODE, veneer->code, bytes);
    return status;
}

void veneer_release(struct code_space *space, struct code_slab *slab, const struct veneer *veneer)
{
    atomic_store_explicit(veneer_slot(slab, veneer), 0, memory_order_relaxed);
    parts_give(slab, PAGES_FOR_DATA, veneer->slot, SLOT_BYTES);
    parts_give(slab, PAGES_FOR_CODE, veneer->code, code_bytes(space->arch, veneer->kind));
}
