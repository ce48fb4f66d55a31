/*
 * AArch64: the machine code of inline caches.
 *
 * The code uses x16 and x17 for all intermediate values: the ABI reserves them for code between
 * caller and callee, and LLVM keeps no values in them at patch points, not even with anyregcc. NZCV
 * is preserved at no cost, because keys are compared by `sub` or `eor` and CBNZ. Cases are tested
 * one by one.
 *
 * The site branches to the code directly, which needs no landing pad. The code branches to
 * functions through x16 and to exits through x17, as veneers and exits' stubs do.
 *
 * Sources: Arm Architecture Reference Manual for A-profile architecture (DDI 0487), descriptions of
 * the instructions; Procedure Call Standard for the Arm 64-bit Architecture, section
 * "General-purpose Registers" (x16, x17).
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/aarch64/target.h"

#include <assert.h>

enum {
    X16 = 16,
    X17 = 17,
    LINK = 30,
    DWARF_STACK_POINTER = 31,
    DWARF_FIRST_VECTOR = 64,
    DWARF_LAST_VECTOR = 95,
    HALVES = 4, /* 16-bit parts of a register; MOVZ, MOVN and MOVK have 16-bit operands */
    IMMEDIATE_BITS = 12
};

#define MOVZ UINT32_C(0xD2800000)
#define MOVN UINT32_C(0x92800000)
#define MOVK UINT32_C(0xF2800000)
#define IMMEDIATE_END (INT32_C(1) << IMMEDIATE_BITS)

static bool is_vector(uint16_t dwarf)
{
    return dwarf >= DWARF_FIRST_VECTOR && dwarf <= DWARF_LAST_VECTOR;
}

/* A register's number in instructions is the low 5 bits. */
static bool is_free(uint16_t dwarf, bool is_receiver)
{
    return (is_vector(dwarf) && !is_receiver) ||
           (dwarf < DWARF_STACK_POINTER && dwarf != X16 && dwarf != X17);
}

static uint32_t number(uint16_t dwarf) { return dwarf & 31; }

/* ---- Constants ---- */

static uint32_t half_of(uint64_t value, unsigned index)
{
    return (uint32_t)(value >> 16 * index) & 0xFFFF;
}

static unsigned count_halves(uint64_t value, uint32_t half)
{
    unsigned count = 0;
    for (unsigned i = 0; i < HALVES; i++)
        count += half_of(value, i) == half;
    return count;
}

static void append_move(struct words_code *code, uint32_t opcode, uint32_t to, unsigned index,
                        uint32_t half)
{
    words_append(code, opcode | index << 21 | half << 5 | to);
}

/* Appends the shortest sequence of MOVZ, MOVN and MOVK that loads the value. */
static void append_constant(struct words_code *code, uint32_t to, uint64_t value)
{
    bool is_inverted = count_halves(value, 0xFFFF) > count_halves(value, 0);
    uint32_t filling = is_inverted ? 0xFFFF : 0;
    bool is_begun = false;
    for (unsigned i = 0; i < HALVES; i++) {
        uint32_t half = half_of(value, i);
        if (half == filling)
            continue;
        if (is_begun)
            append_move(code, MOVK, to, i, half);
        else
            append_move(code, is_inverted ? MOVN : MOVZ, to, i, half ^ filling);
        is_begun = true;
    }
    if (!is_begun)
        append_move(code, is_inverted ? MOVN : MOVZ, to, 0, 0);
}

/* Always appends four instructions, because the code's size must not depend on addresses. */
static void append_address(struct words_code *code, uint32_t to, uint64_t address)
{
    append_move(code, MOVZ, to, 0, half_of(address, 0));
    for (unsigned i = 1; i < HALVES; i++)
        append_move(code, MOVK, to, i, half_of(address, i));
}

/* ---- Loads and stores ---- */

/* Returns the bits that all forms of the instruction share, without the base; `opc` is 0 for a
 * store. */
static uint32_t access_of(uint16_t dwarf, unsigned width, uint32_t opc)
{
    uint32_t size = (uint32_t)__builtin_ctz(width);
    return size << 30 | (uint32_t)is_vector(dwarf) << 26 | opc << 22 | number(dwarf);
}

static uint32_t load_of(uint16_t dwarf, unsigned width, bool is_signed)
{
    bool extends = is_signed && width < sizeof(uint64_t) && !is_vector(dwarf);
    return access_of(dwarf, width, extends ? 2 : 1);
}

/* Appends a load or a store. x17 holds offsets that no form can encode as an immediate. */
static void append_access(struct words_code *code, uint32_t access, unsigned width, uint32_t base,
                          int32_t offset)
{
    int32_t unit = (int32_t)width;
    access |= base << 5;
    if (offset >= 0 && offset % unit == 0 && offset / unit < IMMEDIATE_END) {
        words_append(code, access | UINT32_C(0x39000000) | (uint32_t)(offset / unit) << 10);
        return;
    }
    if (offset >= -256 && offset < 256) {
        words_append(code, access | UINT32_C(0x38000000) | ((uint32_t)offset & 0x1FF) << 12);
        return;
    }
    append_constant(code, X17, (uint64_t)(int64_t)offset);
    words_append(code, access | UINT32_C(0x38206800) | (uint32_t)X17 << 16);
}

/* ---- Guards ---- */

static uint64_t bits_of_width(unsigned width) { return UINT64_MAX >> (64 - 8 * width); }

/* Applies the mask to x16. AND can encode a mask as an immediate if its ones are contiguous, with
 * bit 0 next to bit 63. */
static void append_mask(struct words_code *code, uint64_t mask)
{
    uint64_t starts = mask & ~(mask << 1 | mask >> 63);
    if (starts != 0 && (starts & (starts - 1)) == 0) {
        uint32_t rotation = (uint32_t)(64 - __builtin_ctzll(starts)) % 64;
        uint32_t count = (uint32_t)__builtin_popcountll(mask);
        words_append(code, UINT32_C(0x92400210) | rotation << 16 | (count - 1) << 10);
        return;
    }
    append_constant(code, X17, mask);
    words_append(code, UINT32_C(0x8A110210)); /* and x16, x16, x17 */
}

/* Makes x16 zero if and only if it equals the key. */
static void append_comparison(struct words_code *code, uint64_t key)
{
    const uint64_t low = IMMEDIATE_END - 1;
    if (key == 0)
        return;
    if ((key & ~low) == 0) {
        words_append(code, UINT32_C(0xD1000210) | (uint32_t)key << 10); /* sub x16, x16, # */
        return;
    }
    if ((key & ~(low << IMMEDIATE_BITS)) == 0) {
        /* sub x16, x16, #, lsl #12 */
        words_append(code, UINT32_C(0xD1400210) | (uint32_t)(key >> IMMEDIATE_BITS) << 10);
        return;
    }
    append_constant(code, X17, key);
    words_append(code, UINT32_C(0xCA110210)); /* eor x16, x16, x17 */
}

static void append_guard(struct words_code *code, const struct arch_cache *cache,
                         const struct arch_cache_case *one)
{
    (void)cache;
    append_access(code, load_of(X16, one->key_width, false), one->key_width, number(one->receiver),
                  one->key_offset);
    if (one->mask != bits_of_width(one->key_width))
        append_mask(code, one->mask);
    append_comparison(code, one->key);
    words_append(code, UINT32_C(0xB5000010)); /* cbnz x16 */
}

static void append_second(struct words_code *code, const struct arch_cache_second *second)
{
    append_constant(code, X16, second->word);
    append_access(code, load_of(X16, second->width, false), second->width, X16, 0);
    if (second->mask != bits_of_width(second->width))
        append_mask(code, second->mask);
    append_comparison(code, second->key);
    words_append(code, UINT32_C(0xB5000010)); /* cbnz x16 */
}

/* Makes bit 63 of x16 the complement of: the index, which is not negative, is less than the
 * length. */
static void append_bounds(struct words_code *code, const struct arch_cache *cache,
                          const struct arch_cache_case *one)
{
    const struct arch_cache_elements *elements = &one->elements;
    uint32_t index = number(elements->index);
    (void)cache;
    append_access(code, load_of(X16, elements->length_width, false), elements->length_width,
                  number(one->receiver), elements->length_offset);
    if (elements->is_narrow) {
        words_append(code, UINT32_C(0x2A0003F1) | index << 16); /* mov w17, index */
        index = X17;
    }
    words_append(code, UINT32_C(0xCB100010) | index << 5); /* sub x16, index, x16 */
    words_append(code, UINT32_C(0xAA300010) | index << 5); /* orn x16, index, x16 */
    words_append(code, UINT32_C(0xB7F80010));              /* tbnz x16, #63 */
}

/* ---- Hits ---- */

static void append_count(struct words_code *code, uint64_t counter)
{
    append_address(code, X16, counter);
    words_append(code, UINT32_C(0xF9400211)); /* ldr x17, [x16] */
    words_append(code, UINT32_C(0x91000631)); /* add x17, x17, #1 */
    words_append(code, UINT32_C(0xF9000211)); /* str x17, [x16] */
}

/* Loads the sum of a base and the index, in units of the field's width, into x16. */
static void append_element(struct words_code *code, const struct arch_cache_case *one,
                           uint32_t base)
{
    uint32_t shift = (uint32_t)__builtin_ctz(one->field.width);
    /* add x16, base, index, uxtw or lsl # */
    uint32_t add = one->elements.is_narrow ? UINT32_C(0x8B204010) : UINT32_C(0x8B000010);
    words_append(code, add | number(one->elements.index) << 16 | shift << 10 | base << 5);
}

static void append_field(struct words_code *code, const struct arch_cache_case *one)
{
    const struct arch_cache_field *field = &one->field;
    uint32_t base = number(one->receiver);
    int32_t offset = field->offset;
    int32_t pointer_offset = field->pointer_offset;
    if (one->holder != 0) {
        int32_t *first = field->is_out_of_line ? &pointer_offset : &offset;
        append_constant(code, X16, one->holder + (uint64_t)(int64_t)*first);
        *first = 0;
        base = X16;
    }
    if (field->is_out_of_line) {
        append_access(code, load_of(X16, sizeof(uint64_t), false), sizeof(uint64_t), base,
                      pointer_offset);
        base = X16;
    }
    if (one->elements.length_width != 0) {
        append_element(code, one, base);
        base = X16;
    }
    uint32_t access = one->action == ARCH_CACHE_STORE
                          ? access_of(one->value, field->width, 0)
                          : load_of(one->value, field->width, field->is_signed);
    append_access(code, access, field->width, base, offset);
}

static void append_epilogue(struct words_code *code, const struct arch_cache_case *one)
{
    const struct arch_cache_epilogue *epilogue = &one->epilogue;
    uint32_t receiver = number(one->receiver);
    if (epilogue->key_width != 0) {
        append_constant(code, X16, epilogue->key);
        append_access(code, access_of(X16, epilogue->key_width, 0), epilogue->key_width, receiver,
                      one->key_offset);
    }
    if (epilogue->marks_card) {
        append_constant(code, X17, epilogue->cards);
        /* add x16, x17, receiver, lsr # */
        words_append(code,
                     UINT32_C(0x8B400230) | receiver << 16 | (uint32_t)epilogue->card_shift << 10);
        append_constant(code, X17, epilogue->card);
        words_append(code, UINT32_C(0x39000211)); /* strb w17, [x16] */
    }
}

/* Loads the constant. A vector register is loaded through x16: in most cases this is no longer than
 * a load of a literal, and it needs no data between the instructions. */
static void append_result(struct words_code *code, const struct arch_cache_case *one)
{
    if (!is_vector(one->value)) {
        append_constant(code, one->value, one->constant);
        return;
    }
    uint32_t to = number(one->value) | (uint32_t)X16 << 5;
    append_constant(code, X16, one->constant & bits_of_width(one->constant_width));
    if (one->constant_width == sizeof(uint64_t))
        words_append(code, UINT32_C(0x9E670000) | to); /* fmov d#, x16 */
    else
        words_append(code, UINT32_C(0x1E270000) | to); /* fmov s#, w16 */
}

/* Loads the site's return address into x30, as after a call, unless the site has. */
static void append_return_address(struct words_code *code, const struct arch_cache *cache)
{
    if (cache->is_called)
        return;
    bool is_encoded = aarch64_append_page(code, LINK, cache->return_address);
    assert(is_encoded);
    (void)is_encoded;
    /* add x30, x30, # */
    words_append(code, UINT32_C(0x910003DE) | aarch64_in_page(cache->return_address) << 10);
}

/* Jumps to the function directly if it is in reach. Both forms have the same size. */
static void append_jump(struct words_code *code, const struct arch_cache *cache, uint64_t target)
{
    uint64_t bits;
    append_return_address(code, cache);
    size_t end = code->size + (HALVES + 1) * (size_t)WORDS_BYTES;
    if (words_encode_branch(code->arch, CAIRN_SITE_JUMP, code->address + code->size, target,
                            WORDS_BYTES, &bits)) {
        words_append(code, (uint32_t)bits);
        words_append_until(code, end, code->arch->words->nop);
        return;
    }
    append_address(code, X16, target);
    words_append(code, UINT32_C(0xD61F0200)); /* br x16 */
}

/* Jumps to the exit with this data, like an exit's stub. Its entry expects the site's return
 * address in x30. */
static void append_exit(struct words_code *code, const struct arch_cache *cache, uint64_t data)
{
    append_return_address(code, cache);
    _Static_assert(ARCH_EXIT_ENTRY == 0, "what is loaded is the entry");
    append_address(code, X16, data);
    words_append(code, UINT32_C(0xF9400211)); /* ldr x17, [x16] */
    words_append(code, UINT32_C(0xD61F0220)); /* br x17 */
}

/* ---- The table ---- */

/* Appends `lsr x16, x16, #`. */
static void append_shift(struct words_code *code, unsigned count)
{
    words_append(code, UINT32_C(0xD340FE10) | count << 16);
}

/* Leaves the field's offset in x16. The key is loaded twice; the second one is compared with that
 * of the word, together with zeros in place of the offset. */
static void append_search(struct words_code *code, const struct arch_cache *cache)
{
    const struct arch_cache_table *table = &cache->table;
    const struct arch_cache_case *access = &table->access;
    const uint32_t receiver = number(access->receiver);
    const uint32_t first = ARCH_CACHE_TABLE_SHIFT;
    append_access(code, load_of(X16, access->key_width, false), access->key_width, receiver,
                  access->key_offset);
    append_constant(code, X17, table->multiplier);
    words_append(code, UINT32_C(0x9B117E10)); /* mul x16, x16, x17 */
    /* ubfx x16, x16, #first, #bits */
    words_append(code, UINT32_C(0xD3400210) | first << 16 | (first + table->bits - 1) << 10);
    append_address(code, X17, table->address);
    words_append(code, UINT32_C(0xF8707A30)); /* ldr x16, [x17, x16, lsl #3] */
    append_access(code, load_of(X17, access->key_width, false), access->key_width, receiver,
                  access->key_offset);
    if (access->key_width == sizeof(uint64_t)) {
        words_append(code, UINT32_C(0xCA100231)); /* eor x17, x17, x16 */
        append_shift(code, arch_cache_table_offset_bit(access->key_width));
        words_append(code, UINT32_C(0xCAD1C211)); /* eor x17, x16, x17, ror #48 */
    } else {
        words_append(code, UINT32_C(0x4A100231)); /* eor w17, w17, w16 */
        append_shift(code, arch_cache_table_offset_bit(access->key_width));
    }
    words_append(code, UINT32_C(0xB5000011)); /* cbnz x17 */
}

static void append_found(struct words_code *code, const struct arch_cache_case *access)
{
    const struct arch_cache_field *field = &access->field;
    uint32_t operation = access->action == ARCH_CACHE_STORE
                             ? access_of(access->value, field->width, 0)
                             : load_of(access->value, field->width, field->is_signed);
    /* add x16, receiver, x16 */
    words_append(code, UINT32_C(0x8B100010) | number(access->receiver) << 5);
    append_access(code, operation, field->width, X16, 0);
}

static const struct words_cache encoder = {
    .return_instruction = UINT32_C(0xD65F03C0), /* ret */
    .guard_shift = 3,
    .guard_inversion = UINT32_C(0x01000000), /* cbz */
    .guard = append_guard,
    .second = append_second,
    .bounds = append_bounds,
    .count = append_count,
    .search = append_search,
    .found = append_found,
    .field = append_field,
    .result = append_result,
    .epilogue = append_epilogue,
    .jump = append_jump,
    .exit = append_exit,
    .is_free = is_free,
};

static bool encode_cache(const struct cairn_arch *arch, const struct arch_cache *cache,
                         uint64_t address, uint8_t *code, struct arch_cache_size *size)
{
    return words_encode_cache(&encoder, arch, cache, address, code, size);
}

static bool encode_inline(const struct cairn_arch *arch, const struct arch_cache *cache,
                          struct arch_cache_inline *inlined, uint8_t *code)
{
    return words_encode_inline(&encoder, arch, cache, inlined, code);
}

const struct arch_cache_encoder aarch64_cache_encoder = {
    .encode_cache = encode_cache,
    .encode_inline = encode_inline,
    .encode_miss = words_encode_miss,
};
