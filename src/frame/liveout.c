/*
 * Live-outs: from the registers that LLVM lists to the registers that must be preserved.
 *
 * Source: LLVM, "Stack maps and patch points in LLVM", section Stack Map Format. Which registers
 * are listed: llvm/lib/CodeGen/StackMapLivenessAnalysis.cpp.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"

#include <cairn/liveout.h>
#include <string.h>

_Static_assert((int)CAIRN_SURVIVORS_REGISTERS == (int)ARCH_CONTEXT_REGISTERS, "by DWARF number");

static const uint16_t register_count = CAIRN_SURVIVORS_REGISTERS;

/* ---- Sizes ---- */

enum { DOUBLEWORD = 8, VECTOR_BYTES_MIN = 16 };

/* Whether this is the number of the program counter. If calls leave no return address in a
 * register, the return address has the program counter's number. */
static bool is_program_counter(uint16_t dwarf)
{
    const struct cairn_arch *arch = arch_host();
    return !arch->has_link_register &&
           dwarf == arch->unwind_slots[ARCH_UNWIND_RETURN_ADDRESS].dwarf;
}

/* Rounds up to the size of a vector register, at most `largest`. */
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

/* Adds a register to the set. If it is listed twice, the larger size counts. */
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
    struct cairn_liveout listed;
    for (uint32_t i = 0; cairn_record_liveout(record, i, &listed); i++)
        add(context, arch_host()->whole_register(listed.dwarf), listed.size, survivors);
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
    struct cairn_liveout first;
    if (!cairn_record_liveout(record, 0, &first)) {
        add_all(context, survivors);
        return;
    }
    add_listed(context, record, survivors);
    add_kept(context, survivors);
    add_control(context, survivors);
}

/* ---- Restoring ---- */

/* Copies the preserved bytes: the first bytes of vector registers, and all bytes or the first
 * doubleword of other registers. */
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
