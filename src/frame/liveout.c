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

enum { DOUBLEWORD = 8, VECTOR_BYTES_MIN = 16 };

/* Rounds up to the size of a vector register, at most `largest`. */
static size_t round_up(size_t size, size_t smallest, size_t largest)
{
    size_t rounded = smallest;
    while (rounded < size)
        rounded *= 2;
    return rounded < largest ? rounded : largest;
}

/* Finds a register of the context, except the program counter. If calls leave no return address in
 * a register, the return address has the program counter's number. */
static bool find(const struct cairn_context *context, uint16_t dwarf, struct arch_register *place)
{
    const struct cairn_arch *arch = arch_host();
    bool is_pc =
        !arch->has_link_register && dwarf == arch->unwind_slots[ARCH_UNWIND_RETURN_ADDRESS].dwarf;
    return arch_context_has(context, dwarf) && !is_pc && arch_host_register(context, dwarf, place);
}

/* Restores the first bytes of a vector register, or all bytes of another. Reads the size from the
 * saved context, which may hold larger vector registers. */
static void restore(struct cairn_context *context, const struct cairn_context *saved,
                    uint16_t dwarf, size_t size)
{
    struct arch_register place;
    struct arch_register saved_place;
    if (!find(context, dwarf, &place) || !find(saved, dwarf, &saved_place))
        return;
    size_t bytes = saved_place.bytes;
    if (saved_place.form == ARCH_REGISTER_VECTOR)
        bytes = round_up(size, VECTOR_BYTES_MIN, saved_place.bytes);
    else if (saved_place.form == ARCH_REGISTER_DOUBLEWORDS)
        bytes = round_up(size, DOUBLEWORD, saved_place.bytes);
    if (bytes <= place.bytes)
        memcpy(context->bytes + place.offset, saved->bytes + saved_place.offset, bytes);
}

void cairn_context_restore(struct cairn_context *context, const struct cairn_context *saved,
                           struct cairn_record record)
{
    const struct cairn_arch *arch = arch_host();
    struct cairn_liveout listed;
    if (arch == NULL)
        return;
    for (uint32_t i = 0; cairn_record_liveout(record, i, &listed); i++)
        restore(context, saved, arch_whole_register(arch, listed.dwarf), listed.size);
    bool has_list = cairn_record_liveout(record, 0, &listed);
    for (uint16_t dwarf = 0; dwarf < (uint16_t)ARCH_CONTEXT_REGISTERS; dwarf++) {
        struct arch_register place;
        if (!has_list || (find(saved, dwarf, &place) && place.is_control))
            restore(context, saved, dwarf, UINT8_MAX);
    }
    for (size_t i = 0; i < arch->unwind_slot_count; i++) {
        const struct arch_unwind_slot *slot = &arch->unwind_slots[i];
        if (i != ARCH_UNWIND_RETURN_ADDRESS)
            restore(context, saved, slot->dwarf, (size_t)slot->byte + sizeof(uint64_t));
    }
}
