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

void words_fill_nops(const struct cairn_arch *arch, uint8_t *bytes, size_t size)
{
    words_fill(arch, bytes, size, arch->words->branches.nop);
}

size_t words_leading_nops(const struct cairn_arch *arch, const uint8_t *bytes, size_t size)
{
    size_t offset = 0;
    while (offset + WORDS_BYTES <= size &&
           words_read(arch, bytes + offset) == arch->words->branches.nop)
        offset += WORDS_BYTES;
    return offset;
}

static bool match_any(const struct words_pattern *patterns, size_t count, uint32_t word)
{
    for (size_t i = 0; i < count; i++)
        if (words_match(&patterns[i], word))
            return true;
    return false;
}

size_t words_call_length(const struct cairn_arch *arch, const uint8_t *bytes, size_t size)
{
    const struct words_target *target = arch->words;
    bool is_call = size >= WORDS_BYTES &&
                   match_any(target->calls, target->call_count, words_read(arch, bytes));
    return is_call ? WORDS_BYTES : 0;
}

bool words_may_be_exchanged(const struct cairn_arch *arch, const uint8_t *bytes, size_t length)
{
    const struct words_target *target = arch->words;
    return length == WORDS_BYTES &&
           match_any(target->exchangeable, target->exchangeable_count, words_read(arch, bytes));
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
                                    size_t size, uint64_t address, size_t offset,
                                    struct cairn_error *error)
{
    offset += words_leading_nops(arch, region + offset, size - offset);
    if (offset == size)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_CORRUPT, address + offset,
                     "the word at byte %zu of the region, 0x%08x, is no no-op: this is not what "
                     "LLVM emits for a patch point",
                     offset, words_read(arch, region + offset));
}

/* ---- Arming ---- */

enum cairn_status words_place(const struct cairn_arch *arch,
                              const struct arch_patchpoint *patchpoint, size_t size,
                              uint64_t address, struct arch_placement *placement,
                              struct cairn_error *error)
{
    size_t before = arch->words->before;
    size_t after = arch->words->after;
    size_t needed = before + WORDS_BYTES + after;
    if (address % WORDS_BYTES != 0 || size < needed)
        return error_set(error, CAIRN_ERROR_RANGE, address,
                         "a region of %zu bytes at 0x%llx holds no call with what belongs to it: "
                         "reserve %zu bytes or more",
                         size, (unsigned long long)address, needed);
    size_t offset = before;
    size_t last = (size - after) / WORDS_BYTES * WORDS_BYTES - WORDS_BYTES;
    if (patchpoint->return_offset > before + WORDS_BYTES)
        offset = patchpoint->return_offset - WORDS_BYTES;
    placement->instruction_offset = offset < last ? offset : last;
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

static void append_hit(const struct words_cache *encoder, struct words_code *code,
                       const struct arch_cache *cache, const struct arch_cache_case *one)
{
    uint64_t bits = encoder->return_instruction;
    switch (one->action) {
    case ARCH_CACHE_JUMP:
        assert(cache->is_called);
        encoder->jump(code, one->target);
        return;
    case ARCH_CACHE_EXIT:
        encoder->exit(code, cache, one->target);
        return;
    case ARCH_CACHE_CONSTANT:
        encoder->result(code, one);
        break;
    case ARCH_CACHE_LOAD:
    case ARCH_CACHE_STORE:
        encoder->field(code, one);
        break;
    }
    bool is_encoded =
        cache->is_called || encode_return(code->arch, cache, code->address + code->size, &bits);
    assert(is_encoded);
    (void)is_encoded;
    words_append(code, (uint32_t)bits);
    if (one->action == ARCH_CACHE_CONSTANT && encoder->literal != NULL)
        encoder->literal(code, one);
}

static void append_case(const struct words_cache *encoder, struct words_code *code,
                        const struct arch_cache *cache, const struct arch_cache_case *one)
{
    bool has_value = one->action != ARCH_CACHE_JUMP && one->action != ARCH_CACHE_EXIT;
    assert(encoder->is_free(one->receiver, true));
    assert(!has_value || encoder->is_free(one->value, false));
    (void)has_value;
    encoder->guard(code, cache, one);
    size_t branch = code->size - WORDS_BYTES;
    if (one->counter != 0)
        encoder->count(code, one->counter);
    if (encoder->leave != NULL)
        encoder->leave(code, cache);
    append_hit(encoder, code, cache, one);
    uint8_t *at = code->bytes + branch;
    uint32_t distance = (uint32_t)(code->size - branch);
    words_write(code->arch, at, words_read(code->arch, at) | distance << encoder->guard_shift);
}

bool words_encode_cache(const struct words_cache *encoder, const struct cairn_arch *arch,
                        const struct arch_cache *cache, uint64_t address, uint8_t *code,
                        struct arch_cache_size *size)
{
    struct words_code written = {.arch = arch, .bytes = code, .address = address};
    uint64_t last = address + ARCH_CACHE_BYTES_MAX - WORDS_BYTES;
    uint64_t bits;
    assert(cache->count <= ARCH_CACHE_CASES_MAX);
    /* The result must depend only on the addresses, not on the cases. */
    if (!cache->is_called &&
        (!encode_return(arch, cache, address, &bits) || !encode_return(arch, cache, last, &bits)))
        return false;
    if (encoder->begin != NULL)
        encoder->begin(&written, cache);
    for (size_t i = 0; i < cache->count; i++)
        append_case(encoder, &written, cache, &cache->cases[i]);
    size->case_bytes = written.size;
    if (encoder->leave != NULL)
        encoder->leave(&written, cache);
    assert(cache->miss_target == 0 || cache->is_called);
    if (cache->miss_target != 0)
        encoder->jump(&written, cache->miss_target);
    else
        encoder->exit(&written, cache, cache->exit_data);
    size->bytes = written.size;
    return true;
}
