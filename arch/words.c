/* SPDX-License-Identifier: MIT */
#include "arch/words.h"

#include "base/error.h"

/* ---- Words in memory ---- */

static unsigned shift_of_byte(const struct cairn_arch *arch, unsigned index)
{
    return 8 * (arch->byte_order == CAIRN_BIG_ENDIAN ? WORDS_BYTES - 1 - index : index);
}

uint32_t words_read(const struct cairn_arch *arch, const uint8_t *bytes)
{
    uint32_t word = 0;
    for (unsigned i = 0; i < WORDS_BYTES; i++)
        word |= (uint32_t)bytes[i] << shift_of_byte(arch, i);
    return word;
}

void words_write(const struct cairn_arch *arch, uint8_t *bytes, uint32_t word)
{
    for (unsigned i = 0; i < WORDS_BYTES; i++)
        bytes[i] = (uint8_t)(word >> shift_of_byte(arch, i));
}

void words_fill(const struct cairn_arch *arch, uint8_t *bytes, size_t size, uint32_t word)
{
    for (size_t offset = 0; offset + WORDS_BYTES <= size; offset += WORDS_BYTES)
        words_write(arch, bytes + offset, word);
}

size_t words_leading(const struct cairn_arch *arch, const uint8_t *bytes, size_t size,
                     uint32_t word)
{
    size_t offset = 0;
    while (offset + WORDS_BYTES <= size && words_read(arch, bytes + offset) == word)
        offset += WORDS_BYTES;
    return offset;
}

/* ---- What LLVM emits ---- */

enum cairn_status words_expect_aligned(size_t size, uint64_t address, struct cairn_error *error)
{
    if (address % WORDS_BYTES != 0)
        return error_set(error, CAIRN_ERROR_CORRUPT, address,
                         "the region's address, 0x%llx, is no instruction's: it is not a multiple "
                         "of %d",
                         (unsigned long long)address, WORDS_BYTES);
    if (size % WORDS_BYTES != 0)
        return error_set(error, CAIRN_ERROR_CORRUPT, address + size - size % WORDS_BYTES,
                         "the region's size, %zu bytes, is not a multiple of %d: the last "
                         "instruction goes on beyond its end",
                         size, WORDS_BYTES);
    return CAIRN_OK;
}

enum cairn_status words_expect(const struct cairn_arch *arch, const uint8_t *region, size_t size,
                               uint64_t address, size_t offset,
                               const struct words_pattern *patterns, size_t count,
                               struct cairn_error *error)
{
    for (size_t i = 0; i < count; i++, offset += WORDS_BYTES) {
        if (offset + WORDS_BYTES > size)
            return error_set(error, CAIRN_ERROR_CORRUPT, address + offset,
                             "the region ends at byte %zu, before the '%s' of LLVM's call", offset,
                             patterns[i].text);
        uint32_t word = words_read(arch, region + offset);
        if (!words_match(&patterns[i], word))
            return error_set(error, CAIRN_ERROR_CORRUPT, address + offset,
                             "the word at byte %zu of the region, 0x%08x, is not the '%s' of "
                             "LLVM's call",
                             offset, word, patterns[i].text);
    }
    return CAIRN_OK;
}

enum cairn_status words_expect_nops(const struct cairn_arch *arch, const uint8_t *region,
                                    size_t size, uint64_t address, size_t offset, uint32_t nop,
                                    struct cairn_error *error)
{
    offset += words_leading(arch, region + offset, size - offset, nop);
    if (offset == size)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_CORRUPT, address + offset,
                     "the word at byte %zu of the region, 0x%08x, is no no-op: this is not what "
                     "LLVM emits for a patch point",
                     offset, words_read(arch, region + offset));
}

/* ---- Arming ---- */

static size_t clamp(size_t value, size_t low, size_t high)
{
    if (value < low)
        return low;
    return value < high ? value : high;
}

enum cairn_status words_place(const struct arch_patchpoint *patchpoint, size_t size,
                              uint64_t address, size_t before, size_t after,
                              struct arch_placement *placement, struct cairn_error *error)
{
    size_t needed = before + WORDS_BYTES + after;
    if (address % WORDS_BYTES != 0 || size < needed)
        return error_set(error, CAIRN_ERROR_RANGE, address,
                         "a region of %zu bytes at 0x%llx holds no call with what belongs to it: "
                         "reserve %zu bytes or more",
                         size, (unsigned long long)address, needed);
    size_t same_return =
        patchpoint->return_offset < WORDS_BYTES ? 0 : patchpoint->return_offset - WORDS_BYTES;
    size_t last = (size - after) / WORDS_BYTES * WORDS_BYTES - WORDS_BYTES;
    placement->instruction_offset = clamp(same_return, before, last);
    placement->return_offset = placement->instruction_offset + WORDS_BYTES;
    return CAIRN_OK;
}

/* ---- Branches ---- */

bool words_displacement(uint64_t address, uint64_t target, unsigned bits, uint32_t *field)
{
    int64_t bytes = (int64_t)(target - address);
    int64_t reach = (int64_t)WORDS_BYTES << (bits - 1);
    *field = (uint32_t)((uint64_t)bytes / WORDS_BYTES) & (UINT32_MAX >> (32 - bits));
    return bytes % WORDS_BYTES == 0 && bytes >= -reach && bytes < reach;
}

uint64_t words_branch_target(uint64_t address, unsigned bits, uint32_t field)
{
    uint64_t sign = UINT64_C(1) << (bits - 1);
    uint64_t words = ((uint64_t)field ^ sign) - sign;
    return address + words * WORDS_BYTES;
}
