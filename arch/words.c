/* SPDX-License-Identifier: MIT */
#include "arch/words.h"

#include "base/error.h"

#include <assert.h>
#include <string.h>

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

static void write_word(const struct cairn_arch *arch, uint8_t *bytes, uint32_t word)
{
    for (unsigned i = 0; i < WORDS_BYTES; i++)
        bytes[i] = (uint8_t)(word >> shift_of_byte(arch, i));
}

void words_append(struct words_code *code, uint32_t word)
{
    write_word(code->arch, code->bytes + code->size, word);
    code->size += WORDS_BYTES;
}

void words_append_all(struct words_code *code, const uint32_t *words, size_t size)
{
    for (size_t i = 0; i < size / WORDS_BYTES; i++)
        words_append(code, words[i]);
}

void words_append_until(struct words_code *code, size_t end, uint32_t word)
{
    while (code->size + WORDS_BYTES <= end)
        words_append(code, word);
}

void words_fill_nops(const struct cairn_arch *arch, uint8_t *bytes, size_t size)
{
    struct words_code code = {.arch = arch, .bytes = bytes};
    words_append_until(&code, size, arch->words->nop);
}

size_t words_leading_nops(const struct cairn_arch *arch, const uint8_t *bytes, size_t size)
{
    size_t offset = 0;
    while (offset + WORDS_BYTES <= size && words_read(arch, bytes + offset) == arch->words->nop)
        offset += WORDS_BYTES;
    return offset;
}

static bool match(const struct words_pattern *patterns, size_t count, uint32_t word)
{
    for (size_t i = 0; i < count; i++)
        if ((word & patterns[i].mask) == patterns[i].bits)
            return true;
    return false;
}

size_t words_call_length(const struct cairn_arch *arch, const uint8_t *bytes, size_t size)
{
    const struct words_target *target = arch->words;
    bool is_call =
        size >= WORDS_BYTES && match(target->calls, target->call_count, words_read(arch, bytes));
    return is_call ? WORDS_BYTES : 0;
}

bool words_may_be_exchanged(const struct cairn_arch *arch, const uint8_t *bytes, size_t length)
{
    const struct words_target *target = arch->words;
    return length == WORDS_BYTES &&
           match(target->exchangeable, target->exchangeable_count, words_read(arch, bytes));
}

/* ---- Branches ---- */

static uint32_t displacement_mask(const struct words_target *words)
{
    return (UINT32_MAX >> (32 - words->displacement_bits)) << words->displacement_shift;
}

static uint64_t branch_target(const struct words_target *words, uint64_t address, uint64_t bits)
{
    uint64_t field = (bits & displacement_mask(words)) >> words->displacement_shift;
    uint64_t sign = UINT64_C(1) << (words->displacement_bits - 1);
    return address + ((field ^ sign) - sign) * WORDS_BYTES;
}

bool words_encode_branch(const struct cairn_arch *arch, enum cairn_site_state branch,
                         uint64_t address, uint64_t target, size_t length, uint64_t *bits)
{
    const struct words_target *words = arch->words;
    int64_t bytes = (int64_t)(target - address);
    int64_t reach = (int64_t)WORDS_BYTES << (words->displacement_bits - 1);
    assert(length == WORDS_BYTES);
    (void)length;
    *bits = words->nop;
    if (branch == CAIRN_SITE_NOP)
        return true;
    if (bytes % WORDS_BYTES != 0 || bytes < -reach || bytes >= reach)
        return false;
    uint32_t distance = (uint32_t)((uint64_t)bytes / WORDS_BYTES);
    uint32_t opcode = branch == CAIRN_SITE_CALL ? words->call : words->jump;
    *bits = opcode | (distance << words->displacement_shift & displacement_mask(words));
    return true;
}

bool words_decode_branch(const struct cairn_arch *arch, uint64_t bits, uint64_t address,
                         size_t length, enum cairn_site_state *branch, uint64_t *target)
{
    const struct words_target *words = arch->words;
    uint64_t opcode = bits & ~(uint64_t)displacement_mask(words);
    bool is_branch = opcode == words->call || opcode == words->jump;
    assert(length == WORDS_BYTES);
    (void)length;
    *target = is_branch ? branch_target(words, address, bits) : 0;
    *branch = !is_branch              ? CAIRN_SITE_NOP
              : opcode == words->call ? CAIRN_SITE_CALL
                                      : CAIRN_SITE_JUMP;
    return is_branch || bits == words->nop;
}

/* ---- Recognising LLVM's code ---- */

/* A region whose code is compared. */
struct region {
    const struct cairn_arch *arch;
    const uint8_t *bytes;
    size_t size;
    uint64_t address;
    size_t recognised; /* bytes from the start */
};

static enum cairn_status expect_aligned(const struct region *region, struct cairn_error *error)
{
    size_t size = region->size;
    uint64_t address = region->address;
    if (address % WORDS_BYTES != 0)
        return error_set(error, CAIRN_ERROR_CORRUPT, address,
                         "the region's address, 0x%llx, is not a multiple of %d, the size of an "
                         "instruction",
                         (unsigned long long)address, WORDS_BYTES);
    if (size % WORDS_BYTES != 0)
        return error_set(error, CAIRN_ERROR_CORRUPT, address + size - size % WORDS_BYTES,
                         "the region's size, %zu bytes, is not a multiple of %d: the last "
                         "instruction continues past its end",
                         size, WORDS_BYTES);
    return CAIRN_OK;
}

/* Expects one of LLVM's instructions next. `*value` is shifted left by 16 bits, with an operand of
 * 16 bits as the lowest ones. */
static enum cairn_status expect(struct region *region, const struct words_pattern *pattern,
                                uint64_t *value, struct cairn_error *error)
{
    size_t offset = region->recognised;
    if (offset + WORDS_BYTES > region->size)
        return error_set(error, CAIRN_ERROR_CORRUPT, region->address + offset,
                         "the region ends at byte %zu, before the '%s' of LLVM's call", offset,
                         pattern->text);
    uint32_t word = words_read(region->arch, region->bytes + offset);
    if (!match(pattern, 1, word))
        return error_set(error, CAIRN_ERROR_CORRUPT, region->address + offset,
                         "the word at byte %zu of the region, 0x%08x, is not the '%s' of LLVM's "
                         "call",
                         offset, word, pattern->text);
    if (pattern->mask != UINT32_MAX)
        *value = *value << 16 | (word & ~pattern->mask) >> __builtin_ctz(~pattern->mask);
    region->recognised += WORDS_BYTES;
    return CAIRN_OK;
}

/* The reload may be the first instruction after the region. */
static enum cairn_status recognise_far_call(struct region *region, struct arch_patchpoint *found,
                                            struct cairn_error *error)
{
    const struct words_target *words = region->arch->words;
    size_t count = words->far_call_count;
    found->has_call = true;
    found->return_offset = (words->reload == 0 ? count : count - 1) * WORDS_BYTES;
    if (region->size == found->return_offset)
        count = region->size / WORDS_BYTES;
    for (size_t i = 0; i < count; i++) {
        enum cairn_status status = expect(region, &words->far_call[i], &found->target, error);
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}

/* A linker may have replaced the no-op after the call by the reload. */
static enum cairn_status recognise_direct_call(struct region *region, struct arch_patchpoint *found,
                                               struct cairn_error *error)
{
    const struct words_target *words = region->arch->words;
    const struct words_pattern nop = {UINT32_MAX, words->nop, "nop"};
    uint32_t call = words_read(region->arch, region->bytes);
    found->has_call = true;
    found->is_direct = true;
    found->target = branch_target(words, region->address, call);
    found->return_offset = WORDS_BYTES;
    region->recognised = WORDS_BYTES;
    bool has_reload = region->size >= (size_t)2 * WORDS_BYTES &&
                      words_read(region->arch, region->bytes + WORDS_BYTES) == words->reload;
    if (!has_reload)
        return expect(region, &nop, &found->target, error);
    region->recognised += WORDS_BYTES;
    return CAIRN_OK;
}

enum cairn_status words_recognise(const struct cairn_arch *arch, const uint8_t *bytes, size_t size,
                                  uint64_t address, struct arch_patchpoint *patchpoint,
                                  struct cairn_error *error)
{
    const struct words_target *words = arch->words;
    struct region region = {.arch = arch, .bytes = bytes, .size = size, .address = address};
    struct arch_patchpoint found = {.has_call = false};
    enum cairn_status status = expect_aligned(&region, error);
    if (status != CAIRN_OK)
        return status;
    uint32_t first = size == 0 ? words->nop : words_read(arch, bytes);
    if (match(&words->far_call[0], 1, first))
        status = recognise_far_call(&region, &found, error);
    else if (words->reload != 0 && (first & ~displacement_mask(words)) == words->call)
        status = recognise_direct_call(&region, &found, error);
    if (status != CAIRN_OK)
        return status;
    size_t end = region.recognised;
    end += words_leading_nops(arch, bytes + end, size - end);
    if (end != size)
        return error_set(error, CAIRN_ERROR_CORRUPT, address + end,
                         "the word at byte %zu of the region, 0x%08x, is not a no-op: this is not "
                         "what LLVM emits for a patch point",
                         end, words_read(arch, bytes + end));
    *patchpoint = found;
    return CAIRN_OK;
}

/* ---- Arming ---- */

enum cairn_status words_place(const struct cairn_arch *arch,
                              const struct arch_patchpoint *patchpoint, size_t size,
                              uint64_t address, struct arch_placement *placement,
                              struct cairn_error *error)
{
    size_t around = arch->words->save == 0 ? 0 : WORDS_BYTES; /* on each side */
    if (address % WORDS_BYTES != 0 || size < arch->call_bytes)
        return error_set(error, CAIRN_ERROR_RANGE, address,
                         "a region of %zu bytes at 0x%llx has no space for a call and the "
                         "instructions around it: reserve %zu bytes or more",
                         size, (unsigned long long)address, arch->call_bytes);
    size_t offset = around;
    size_t last = (size - around) / WORDS_BYTES * WORDS_BYTES - WORDS_BYTES;
    if (patchpoint->return_offset > around + WORDS_BYTES)
        offset = patchpoint->return_offset - WORDS_BYTES;
    placement->instruction_offset = offset < last ? offset : last;
    placement->return_offset = placement->instruction_offset + WORDS_BYTES;
    return CAIRN_OK;
}

void words_arm(const struct cairn_arch *arch, uint8_t *region, size_t size,
               const struct arch_patchpoint *patchpoint, const struct arch_placement *placement)
{
    (void)patchpoint;
    words_fill_nops(arch, region, size);
    if (arch->words->save == 0)
        return;
    write_word(arch, region + placement->instruction_offset - WORDS_BYTES, arch->words->save);
    write_word(arch, region + placement->return_offset, arch->words->reload);
}

/* ---- Inline caches ---- */

static bool encode_return(const struct cairn_arch *arch, const struct arch_cache *cache,
                          uint64_t address, uint64_t *bits)
{
    return words_encode_branch(arch, CAIRN_SITE_JUMP, address, cache->site_end, WORDS_BYTES, bits);
}

/* Appends the action of a hit that goes on at the end of the site. */
static void append_effect(const struct words_cache *encoder, struct words_code *code,
                          const struct arch_cache_case *one)
{
    if (one->action == ARCH_CACHE_CONSTANT)
        encoder->result(code, one);
    else
        encoder->field(code, one);
    if (one->action == ARCH_CACHE_STORE)
        encoder->epilogue(code, one);
}

static void append_hit(const struct words_cache *encoder, struct words_code *code,
                       const struct arch_cache *cache, const struct arch_cache_case *one)
{
    uint64_t bits = encoder->return_instruction;
    if (one->action == ARCH_CACHE_JUMP) {
        encoder->jump(code, cache, one->target);
        return;
    }
    if (one->action == ARCH_CACHE_EXIT) {
        encoder->exit(code, cache, one->target);
        return;
    }
    append_effect(encoder, code, one);
    bool is_encoded =
        cache->is_called || encode_return(code->arch, cache, code->address + code->size, &bits);
    assert(is_encoded);
    (void)is_encoded;
    words_append(code, (uint32_t)bits);
    if (one->action == ARCH_CACHE_CONSTANT && encoder->literal != NULL)
        encoder->literal(code, one);
}

enum { CONDITIONS_MAX = 3 };

/* The branches that misses of a case take: offsets in the code. */
struct branches {
    size_t places[CONDITIONS_MAX];
    size_t count;
};

static void append_conditions(const struct words_cache *encoder, struct words_code *code,
                              const struct arch_cache *cache, const struct arch_cache_case *one,
                              struct branches *branches)
{
    branches->count = 0;
    encoder->guard(code, cache, one);
    branches->places[branches->count++] = code->size - WORDS_BYTES;
    if (one->second.width != 0) {
        encoder->second(code, &one->second);
        branches->places[branches->count++] = code->size - WORDS_BYTES;
    }
    if (one->elements.length_width != 0) {
        encoder->bounds(code, cache, one);
        branches->places[branches->count++] = code->size - WORDS_BYTES;
    }
}

/* Sets the operand of a branch, whose target is at the offset `target`. */
static void land(const struct words_cache *encoder, struct words_code *code, size_t branch,
                 size_t target)
{
    uint8_t *at = code->bytes + branch;
    uint32_t distance = (uint32_t)(target - branch);
    write_word(code->arch, at, words_read(code->arch, at) | distance << encoder->guard_shift);
}

static void append_case(const struct words_cache *encoder, struct words_code *code,
                        const struct arch_cache *cache, const struct arch_cache_case *one)
{
    bool has_value = one->action != ARCH_CACHE_JUMP && one->action != ARCH_CACHE_EXIT;
    assert(encoder->is_free(one->receiver, true));
    assert(!has_value || encoder->is_free(one->value, false));
    (void)has_value;
    struct branches branches;
    append_conditions(encoder, code, cache, one, &branches);
    if (one->counter != 0)
        encoder->count(code, one->counter);
    if (encoder->leave != NULL)
        encoder->leave(code, cache);
    append_hit(encoder, code, cache, one);
    for (size_t i = 0; i < branches.count; i++)
        land(encoder, code, branches.places[i], code->size);
}

static void append_table(const struct words_cache *encoder, struct words_code *code,
                         const struct arch_cache *cache)
{
    uint64_t bits = encoder->return_instruction;
    encoder->search(code, cache);
    size_t branch = code->size - WORDS_BYTES;
    if (encoder->leave != NULL)
        encoder->leave(code, cache);
    encoder->found(code, &cache->table.access);
    bool is_encoded =
        cache->is_called || encode_return(code->arch, cache, code->address + code->size, &bits);
    assert(is_encoded);
    (void)is_encoded;
    words_append(code, (uint32_t)bits);
    land(encoder, code, branch, code->size);
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
    if (cache->table.address != 0)
        append_table(encoder, &written, cache);
    if (encoder->leave != NULL)
        encoder->leave(&written, cache);
    if (cache->miss_target != 0)
        encoder->jump(&written, cache, cache->miss_target);
    else
        encoder->exit(&written, cache, cache->exit_data);
    size->bytes = written.size;
    return true;
}

/* Whether the encoder puts a literal after the case's code. */
static bool has_literal(const struct words_cache *encoder, const struct cairn_arch *arch,
                        const struct arch_cache_case *one)
{
    uint8_t bytes[ARCH_CACHE_CASE_BYTES_MAX];
    struct words_code code = {.arch = arch, .bytes = bytes};
    if (one->action == ARCH_CACHE_CONSTANT && encoder->literal != NULL)
        encoder->literal(&code, one);
    return code.size > 0;
}

/* Appends the action of a hit in the site's own bytes. A call is the last instruction of the site.
 * False if its target is out of reach. */
static bool append_inline_hit(const struct words_cache *encoder, struct words_code *code,
                              const struct arch_cache *cache, const struct arch_cache_case *one)
{
    uint64_t bits;
    if (one->counter != 0)
        encoder->count(code, one->counter);
    if (encoder->leave != NULL)
        encoder->leave(code, cache);
    if (one->action == ARCH_CACHE_JUMP) {
        if (code->arch->calls_need_veneer ||
            !words_encode_branch(code->arch, CAIRN_SITE_CALL, cache->site_end - WORDS_BYTES,
                                 one->target, WORDS_BYTES, &bits))
            return false;
        words_append(code, (uint32_t)bits);
    } else {
        append_effect(encoder, code, one);
    }
    return true;
}

bool words_encode_inline(const struct words_cache *encoder, const struct cairn_arch *arch,
                         const struct arch_cache *cache, struct arch_cache_inline *inlined,
                         uint8_t *code)
{
    const struct arch_cache_case *one = &cache->cases[0];
    uint8_t hit_bytes[ARCH_CACHE_CASE_BYTES_MAX];
    uint8_t head_bytes[ARCH_CACHE_CASE_BYTES_MAX];
    struct words_code hit = {.arch = arch, .bytes = hit_bytes};
    struct words_code head = {.arch = arch, .bytes = head_bytes, .address = inlined->address};
    size_t size = (size_t)(cache->site_end - inlined->address);
    assert(size <= ARCH_CACHE_INLINE_BYTES_MAX);
    if (inlined->has_second || one->action == ARCH_CACHE_EXIT || has_literal(encoder, arch, one) ||
        !append_inline_hit(encoder, &hit, cache, one))
        return false;
    if (encoder->begin != NULL)
        encoder->begin(&head, cache);
    struct branches branches;
    append_conditions(encoder, &head, cache, one, &branches);
    size_t branch = branches.places[branches.count - 1];
    for (size_t i = 0; i + 1 < branches.count; i++)
        land(encoder, &head, branches.places[i], head.size);
    if (encoder->leave != NULL)
        encoder->leave(&head, cache);
    inlined->miss_offset = head.size;
    words_append(&head, arch->words->nop);
    if (head.size + hit.size > size ||
        !words_encode_miss(arch, inlined->address + inlined->miss_offset, inlined->miss,
                           head_bytes + inlined->miss_offset))
        return false;
    uint32_t distance = (uint32_t)(size - hit.size - branch);
    uint32_t word = words_read(arch, head_bytes + branch) ^ encoder->guard_inversion;
    write_word(arch, head_bytes + branch, word | distance << encoder->guard_shift);
    memcpy(code, head_bytes, head.size);
    words_fill_nops(arch, code + head.size, size - hit.size - head.size);
    memcpy(code + size - hit.size, hit_bytes, hit.size);
    inlined->code_bytes = head.size + hit.size;
    return true;
}

bool words_encode_miss(const struct cairn_arch *arch, uint64_t address, uint64_t target,
                       uint8_t *code)
{
    uint64_t bits;
    bool is_encoded =
        words_encode_branch(arch, CAIRN_SITE_JUMP, address, target, WORDS_BYTES, &bits);
    if (is_encoded)
        write_word(arch, code, (uint32_t)bits);
    return is_encoded;
}
