/*
 * Live-outs: from what LLVM has listed to what must survive.
 *
 * Source: LLVM, "Stack maps and patch points in LLVM", section Stack Map Format; what is listed:
 * llvm/lib/CodeGen/StackMapLivenessAnalysis.cpp.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"

#include <cairn/liveout.h>
#include <string.h>

_Static_assert((int)CAIRN_SURVIVORS_REGISTERS == (int)ARCH_CONTEXT_REGISTERS, "by DWARF number");

static const uint16_t register_count = CAIRN_SURVIVORS_REGISTERS;

/* ---- How much of a register ---- */

enum { DOUBLEWORD = 8, VECTOR_BYTES_MIN = 16 };

/* Where calls leave no return address in a register, the number is the program counter's. */
static bool is_program_counter(uint16_t dwarf)
{
    const struct cairn_arch *arch = arch_host();
    return !arch->has_link_register &&
           dwarf == arch->unwind_slots[ARCH_UNWIND_RETURN_ADDRESS].dwarf;
}

/* The smallest register of the vector registers' sizes that has so many bytes. */
static size_t round_up(size_t size, size_t smallest, size_t largest)
{
    size_t rounded = smallest;
    while (rounded < size)
        rounded *= 2;
    return rounded < largest ? rounded : largest;
}

static size_t conservative_size(const struct arch_register *place, size_t size)
{
    switch (place->form) {
    case ARCH_REGISTER_VECTOR:
        return round_up(size, VECTOR_BYTES_MIN, place->bytes);
    case ARCH_REGISTER_DOUBLEWORDS:
        return round_up(size, DOUBLEWORD, place->bytes);
    default:
        return place->bytes;
    }
}

static bool find(const struct cairn_context *context, uint16_t dwarf, struct arch_register *place)
{
    return arch_context_has(context, dwarf) && !is_program_counter(dwarf) &&
           arch_host_register(context, dwarf, place);
}

/* ---- The set ---- */

/* What is listed twice survives as far as either says. */
static void add(const struct cairn_context *context, uint16_t dwarf, size_t size,
                struct cairn_survivors *survivors)
{
    struct arch_register place;
    if (!find(context, dwarf, &place))
        return;
    size_t bytes = conservative_size(&place, size);
    if (bytes > survivors->bytes[dwarf])
        survivors->bytes[dwarf] = (uint8_t)bytes;
}

static void add_all(const struct cairn_context *context, struct cairn_survivors *survivors)
{
    for (uint16_t dwarf = 0; dwarf < register_count; dwarf++)
        add(context, dwarf, UINT8_MAX, survivors);
}

static void add_listed(const struct cairn_context *context, struct cairn_record record,
                       struct cairn_survivors *survivors)
{
    for (uint32_t i = 0; i < cairn_record_liveout_count(record); i++) {
        struct cairn_liveout listed = cairn_record_liveout(record, i);
        add(context, arch_host()->whole_register(listed.dwarf), listed.size, survivors);
    }
}

static void add_control(const struct cairn_context *context, struct cairn_survivors *survivors)
{
    struct arch_register place;
    for (uint16_t dwarf = 0; dwarf < register_count; dwarf++)
        if (find(context, dwarf, &place) && place.is_control)
            add(context, dwarf, place.bytes, survivors);
}

static void add_kept(const struct cairn_context *context, struct cairn_survivors *survivors)
{
    const struct cairn_arch *arch = arch_host();
    for (size_t i = 0; i < arch->unwind_slot_count; i++)
        if (i != ARCH_UNWIND_RETURN_ADDRESS)
            add(context, arch->unwind_slots[i].dwarf,
                (size_t)arch->unwind_slots[i].byte + sizeof(uint64_t), survivors);
}

void cairn_context_survivors(const struct cairn_context *context, struct cairn_record record,
                             struct cairn_survivors *survivors)
{
    *survivors = (struct cairn_survivors){{0}};
    if (arch_host() == NULL)
        return;
    if (cairn_record_liveout_count(record) == 0) {
        add_all(context, survivors);
        return;
    }
    add_listed(context, record, survivors);
    add_kept(context, survivors);
    add_control(context, survivors);
}

/* ---- Bringing back ---- */

/* Of vectors the first bytes; in other registers all bytes survive, or a first doubleword. */
void cairn_context_bring_back(struct cairn_context *context, const struct cairn_context *from,
                              const struct cairn_survivors *survivors)
{
    struct arch_register to_place;
    struct arch_register from_place;
    for (uint16_t dwarf = 0; dwarf < register_count; dwarf++) {
        size_t size = survivors->bytes[dwarf];
        if (size == 0 || !find(context, dwarf, &to_place) || !find(from, dwarf, &from_place))
            continue;
        if (size <= to_place.bytes && size <= from_place.bytes)
            memcpy(context->bytes + to_place.offset, from->bytes + from_place.offset, size);
    }
}
