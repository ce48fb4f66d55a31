/* SPDX-License-Identifier: MIT */
#include "arch/words.h"

#include "base/error.h"

#include <assert.h>

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

void words_append(struct words_code *code, uint32_t word)
{
    words_write(code->arch, code->bytes + code->size, word);
    code->size += WORDS_BYTES;
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

bool words_match_any(const struct cairn_arch *arch, const uint8_t *bytes, size_t length,
                     const struct words_pattern *patterns, size_t count)
{
    if (length != WORDS_BYTES)
        return false;
    uint32_t word = words_read(arch, bytes);
    for (size_t i = 0; i < count; i++)
        if (words_match(&patterns[i], word))
            return true;
    return false;
}

/* ---- Recognising LLVM's code ---- */

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

static uint32_t displacement_mask(const struct words_branches *branches)
{
    return (UINT32_MAX >> (32 - branches->displacement_bits)) << branches->displacement_shift;
}

bool words_encode_branch(const struct words_branches *branches, enum arch_branch branch,
                         uint64_t address, uint64_t target, uint64_t *bits)
{
    *bits = branches->nop;
    if (branch == ARCH_BRANCH_NOP)
        return true;
    int64_t bytes = (int64_t)(target - address);
    int64_t reach = (int64_t)WORDS_BYTES << (branches->displacement_bits - 1);
    if (bytes % WORDS_BYTES != 0 || bytes < -reach || bytes >= reach)
        return false;
    uint32_t words = (uint32_t)((uint64_t)bytes / WORDS_BYTES);
    uint32_t opcode = branch == ARCH_BRANCH_CALL ? branches->call : branches->jump;
    *bits = opcode | (words << branches->displacement_shift & displacement_mask(branches));
    return true;
}

bool words_decode_branch(const struct words_branches *branches, uint64_t bits, uint64_t address,
                         enum arch_branch *branch, uint64_t *target)
{
    *target = 0;
    if (bits == branches->nop) {
        *branch = ARCH_BRANCH_NOP;
        return true;
    }
    uint64_t opcode = bits & ~(uint64_t)displacement_mask(branches);
    if (opcode != branches->call && opcode != branches->jump)
        return false;
    *branch = opcode == branches->call ? ARCH_BRANCH_CALL : ARCH_BRANCH_JUMP;
    *target = words_branch_target(branches, address, (uint32_t)bits);
    return true;
}

uint64_t words_branch_target(const struct words_branches *branches, uint64_t address,
                             uint32_t instruction)
{
    uint64_t field = (instruction & displacement_mask(branches)) >> branches->displacement_shift;
    uint64_t sign = UINT64_C(1) << (branches->displacement_bits - 1);
    return address + ((field ^ sign) - sign) * WORDS_BYTES;
}

/* ---- Inline caches ---- */

static bool encode_return(const struct cairn_arch *arch, const struct arch_cache *cache,
                          uint64_t address, uint64_t *bits)
{
    return arch->encode_branch(ARCH_BRANCH_JUMP, address, cache->site_end, WORDS_BYTES, bits);
}

bool words_reach_return(const struct cairn_arch *arch, const struct arch_cache *cache,
                        uint64_t address)
{
    uint64_t last = address + ARCH_CACHE_BYTES_MAX - WORDS_BYTES;
    uint64_t bits;
    return cache->is_called ||
           (encode_return(arch, cache, address, &bits) && encode_return(arch, cache, last, &bits));
}

void words_append_return(struct words_code *code, const struct arch_cache *cache, uint64_t address,
                         uint32_t return_instruction)
{
    uint64_t bits = return_instruction;
    bool is_encoded =
        cache->is_called || encode_return(code->arch, cache, address + code->size, &bits);
    assert(is_encoded);
    (void)is_encoded;
    words_append(code, (uint32_t)bits);
}
