/*
 * PPC64, ABIs ELFv2 and ELFv1: the machine code of inline caches.
 *
 * The code uses r11, r12 and CTR for all intermediate values: the ABIs reserve them for code
 * between caller and callee, and LLVM keeps no values in them across patch points. With anyregcc,
 * LLVM may pass an operand in r11. The code then keeps it in LR while r11 is in use; LLVM assumes
 * that the site's call clobbers LR. With anyregcc, LLVM may also keep values in r0 and in every
 * field of the condition register, so the code contains no compare instructions: it adds to a
 * loaded key so that the expected key becomes 1, which BDNZ distinguishes from all other values.
 * XER is preserved as well, because no instruction with a carry is used. Cases are tested one by
 * one.
 *
 * As the base of an address, and as an operand of addi and addis, r0 means zero: a receiver in r0
 * is copied.
 *
 * Sources: Power ISA, Book I, descriptions of the instructions; 64-Bit ELF V2 ABI Specification and
 * 64-bit PowerPC ELF Application Binary Interface Supplement (ELFv1), on function calls.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/ppc64/target.h"

#include <assert.h>

enum {
    R11 = 11,
    R12 = 12,
    DWARF_STACK_POINTER = 1,
    DWARF_FIRST_FLOAT = 32,
    DWARF_FIRST_VECTOR = 77,
    DWARF_LAST_VECTOR = 108
};

#define MTCTR_R11 UINT32_C(0x7D6903A6)
#define MTLR_R11 UINT32_C(0x7D6803A6)
#define MFLR_R11 UINT32_C(0x7D6802A6)
#define MTLR_R12 UINT32_C(0x7D8803A6)
#define MFLR_R12 UINT32_C(0x7D8802A6)
#define BDNZ UINT32_C(0x42000000)
#define ADDI UINT32_C(0x38000000)
#define ADDIS UINT32_C(0x3C000000)
#define ORI UINT32_C(0x60000000)
#define ORIS UINT32_C(0x64000000)
#define LOAD UINT32_C(0xE8000000)  /* ld */
#define STORE UINT32_C(0xF8000000) /* std */

/* Register fields of an instruction: the register that it writes or stores; its base, or the
 * register that logical instructions write; its index. */
static uint32_t target(uint32_t number) { return number << 21; }
static uint32_t base_of(uint32_t number) { return number << 16; }
static uint32_t index_of(uint32_t number) { return number << 11; }

static uint32_t low_half(int64_t value) { return (uint32_t)value & 0xFFFF; }

static bool is_general(uint16_t dwarf) { return dwarf < DWARF_FIRST_FLOAT; }

/* Whether this is one of vs32 to vs63, which LLVM also uses for floating-point numbers. The other
 * registers that are not general are floating-point registers. */
static bool is_vector(uint16_t dwarf)
{
    return dwarf >= DWARF_FIRST_VECTOR && dwarf <= DWARF_LAST_VECTOR;
}

static uint32_t number(uint16_t dwarf)
{
    return is_vector(dwarf) ? dwarf - (uint32_t)DWARF_FIRST_VECTOR : dwarf & 31;
}

static bool is_free(uint16_t dwarf, bool is_receiver)
{
    if (is_general(dwarf))
        return dwarf != DWARF_STACK_POINTER && dwarf != R12;
    return !is_receiver && (dwarf < 2 * DWARF_FIRST_FLOAT || is_vector(dwarf));
}

/* ---- Constants ---- */

/* Split a value into the part that addi, or the displacement of a load, adds last, and the part to
 * add before, in units of 65536. The displacement is signed. */
static int64_t low_part(int64_t value)
{
    return (int64_t)(((uint64_t)value & 0xFFFF) ^ 0x8000) - 0x8000;
}
static int64_t high_part(int64_t value) { return (value - low_part(value)) / 0x10000; }

static bool fits(int64_t value, unsigned bits)
{
    int64_t end = INT64_C(1) << (bits - 1);
    return value >= -end && value < end;
}

/* Appends as many addis as needed: at most two for an offset. Returns the register with the sum. */
static uint32_t append_high(struct words_code *code, uint32_t to, uint32_t from, int64_t high)
{
    while (high != 0) {
        int64_t part = high;
        if (!fits(high, 16))
            part = high < 0 ? INT16_MIN : INT16_MAX;
        words_append(code, ADDIS | target(to) | base_of(from) | low_half(part));
        from = to;
        high -= part;
    }
    return from;
}

/* Appends an ori or oris, unless the operand is 0. */
static void append_or(struct words_code *code, uint32_t opcode, uint32_t to, uint64_t half)
{
    if ((half & 0xFFFF) != 0)
        words_append(code, opcode | target(to) | base_of(to) | (uint32_t)(half & 0xFFFF));
}

/* Loads a signed 32-bit value, in one or two instructions. */
static void append_narrow_constant(struct words_code *code, uint32_t to, int64_t value)
{
    if (fits(value, 16)) {
        words_append(code, ADDI | target(to) | low_half(value)); /* li */
        return;
    }
    words_append(code, ADDIS | target(to) | (uint32_t)((uint64_t)value >> 16 & 0xFFFF)); /* lis */
    append_or(code, ORI, to, (uint64_t)value);
}

/* Loads a value, in at most five instructions. */
static void append_constant(struct words_code *code, uint32_t to, uint64_t value)
{
    if (fits((int64_t)value, 32)) {
        append_narrow_constant(code, to, (int64_t)value);
        return;
    }
    int64_t upper = (int64_t)(value >> 32 ^ UINT32_C(0x80000000)) - INT64_C(0x80000000);
    append_narrow_constant(code, to, upper);
    if (upper != 0) /* sldi #, #, 32 */
        words_append(code, UINT32_C(0x780007C6) | target(to) | base_of(to));
    append_or(code, ORIS, to, value >> 16);
    append_or(code, ORI, to, value);
}

/* ---- Loads and stores ---- */

/* A base register, and a displacement that fits into an instruction. */
struct place {
    uint32_t base;
    uint32_t displacement;
};

/* Computes the place of an access. Some instructions require a displacement that is a multiple of
 * `unit`. If the receiver's register and the displacement are not enough, r12 is the base. */
static struct place append_place(struct words_code *code, uint32_t base, int32_t offset, int unit)
{
    int64_t low = low_part(offset);
    if (base == 0) {
        words_append(code, UINT32_C(0x7C000378) | base_of(R12)); /* mr r12, r0 */
        base = R12;
    }
    base = append_high(code, R12, base, high_part(offset));
    if (low % unit != 0) {
        words_append(code, ADDI | target(R12) | base_of(base) | low_half(low));
        return (struct place){.base = R12};
    }
    return (struct place){base, low_half(low)};
}

/* A load or a store with a displacement. */
struct access {
    uint32_t opcode;
    int unit;
};

static const struct access loads[] = {
    [1] = {0x88000000, 1}, /* lbz */
    [2] = {0xA0000000, 1}, /* lhz */
    [4] = {0x80000000, 1}, /* lwz */
    [8] = {LOAD, 4},
};
static const struct access signed_loads[] = {
    [1] = {0x88000000, 1}, /* lbz, followed by extsb */
    [2] = {0xA8000000, 1}, /* lha */
    [4] = {0xE8000002, 4}, /* lwa */
    [8] = {LOAD, 4},
};
static const struct access stores[] = {
    [1] = {0x98000000, 1}, /* stb */
    [2] = {0xB0000000, 1}, /* sth */
    [4] = {0x90000000, 1}, /* stw */
    [8] = {STORE, 4},
};
static const struct access float_loads[] = {
    [4] = {0xC0000000, 1}, /* lfs */
    [8] = {0xC8000000, 1}, /* lfd */
};
static const struct access float_stores[] = {
    [4] = {0xD0000000, 1}, /* stfs */
    [8] = {0xD8000000, 1}, /* stfd */
};

/* Loads and stores of AltiVec registers, which take the address only in a register. */
static const uint32_t vector_loads[] = {
    [4] = 0x7C000419, /* lxsspx */
    [8] = 0x7C000499, /* lxsdx */
};
static const uint32_t vector_stores[] = {
    [4] = 0x7C000519, /* stxsspx */
    [8] = 0x7C000599, /* stxsdx */
};

static void append_access(struct words_code *code, const struct access *access, uint32_t value,
                          uint32_t base, int32_t offset)
{
    struct place place = append_place(code, base, offset, access->unit);
    words_append(code, access->opcode | target(value) | base_of(place.base) | place.displacement);
}

/* If base and displacement are both needed, r12 holds the address. */
static void append_vector_access(struct words_code *code, uint32_t opcode, uint32_t value,
                                 uint32_t base, int32_t offset)
{
    struct place place = append_place(code, base, offset, 1);
    if (place.displacement != 0) {
        words_append(code, ADDI | target(R12) | base_of(place.base) | place.displacement);
        place.base = R12;
    }
    words_append(code, opcode | target(value) | index_of(place.base));
}

/* ---- Guards ---- */

static uint64_t bits_of_width(unsigned width) { return UINT64_MAX >> (64 - 8 * width); }

/* Applies the mask to r11. Does not use an immediate, because andi. changes the condition
 * register. */
static void append_mask(struct words_code *code, uint64_t mask)
{
    bool is_low_bits = mask != 0 && (mask & (mask + 1)) == 0;
    if (is_low_bits) {
        /* rldicl r11, r11, 0, the first bit to keep */
        uint32_t first = (uint32_t)__builtin_clzll(mask);
        words_append(code, UINT32_C(0x78000000) | target(R11) | base_of(R11) | (first & 31) << 6 |
                               (first & 32));
        return;
    }
    append_constant(code, R12, mask);
    words_append(code, UINT32_C(0x7D6B6038)); /* and r11, r11, r12 */
}

/* Makes r11 equal to 1 if and only if it equals the key. */
static void append_comparison(struct words_code *code, uint64_t key)
{
    int64_t difference = (int64_t)(1 - key);
    if (!fits(difference, 33)) {
        append_constant(code, R12, (uint64_t)difference);
        words_append(code, UINT32_C(0x7D6B6214)); /* add r11, r11, r12 */
        return;
    }
    append_high(code, R11, R11, high_part(difference));
    if (low_part(difference) != 0)
        words_append(code, ADDI | target(R11) | base_of(R11) | low_half(difference));
}

/* ---- An operand in r11 ---- */

static bool keeps_r11(const struct arch_cache *cache)
{
    for (size_t i = 0; i < cache->operand_count; i++)
        if (cache->operands[i] == R11) {
            assert(!cache->is_called);
            return cache->count > 0 || cache->table.address != 0;
        }
    return false;
}

static void append_keep_r11(struct words_code *code, const struct arch_cache *cache)
{
    if (keeps_r11(cache))
        words_append(code, MTLR_R11);
}

static void append_restore_r11(struct words_code *code, const struct arch_cache *cache)
{
    if (keeps_r11(cache))
        words_append(code, MFLR_R11);
}

static void append_guard(struct words_code *code, const struct arch_cache *cache,
                         const struct arch_cache_case *one)
{
    if (one != cache->cases && one->receiver == R11)
        append_restore_r11(code, cache);
    append_access(code, &loads[one->key_width], R11, number(one->receiver), one->key_offset);
    if (one->mask != bits_of_width(one->key_width))
        append_mask(code, one->mask);
    append_comparison(code, one->key);
    words_append(code, MTCTR_R11);
    words_append(code, BDNZ);
}

static void append_second(struct words_code *code, const struct arch_cache_second *second)
{
    append_constant(code, R12, second->word);
    append_access(code, &loads[second->width], R11, R12, 0);
    if (second->mask != bits_of_width(second->width))
        append_mask(code, second->mask);
    append_comparison(code, second->key);
    words_append(code, MTCTR_R11);
    words_append(code, BDNZ);
}

/* Rotations to the left that clear the bits before number `first`, counted from the most
 * significant bit. rldic also clears the lowest bits, as many as it rotates. */
#define RLDICL UINT32_C(0x78000000)
#define RLDIC UINT32_C(0x78000008)

static void append_rotate(struct words_code *code, uint32_t opcode, uint32_t to, uint32_t from,
                          uint32_t bits, uint32_t first)
{
    words_append(code, opcode | target(from) | base_of(to) | (bits & 31) << 11 | (bits & 32) >> 4 |
                           (first & 31) << 6 | (first & 32));
}

/* Makes r11 equal to 1 if the index, which is not negative, is less than the length; otherwise
 * 0. */
static void append_bounds(struct words_code *code, const struct arch_cache *cache,
                          const struct arch_cache_case *one)
{
    const struct arch_cache_elements *elements = &one->elements;
    uint32_t index = number(elements->index);
    append_restore_r11(code, cache);
    append_access(code, &loads[elements->length_width], R12, number(one->receiver),
                  elements->length_offset);
    if (elements->is_narrow) {
        append_rotate(code, RLDICL, R11, index, 0, 32);
        index = R11;
    }
    /* subf r12, r12, index; orc r11, index, r12 */
    words_append(code, UINT32_C(0x7C000050) | target(R12) | base_of(R12) | index_of(index));
    words_append(code, UINT32_C(0x7C000338) | target(index) | base_of(R11) | index_of(R12));
    append_rotate(code, RLDICL, R11, R11, 1, 63);
    words_append(code, UINT32_C(0x68000001) | target(R11) | base_of(R11)); /* xori r11, r11, 1 */
    words_append(code, MTCTR_R11);
    words_append(code, BDNZ);
}

/* ---- Hits ---- */

static void append_count(struct words_code *code, uint64_t counter)
{
    uint32_t low = low_half((int64_t)counter);
    ppc64_append_address(code, counter, LOAD | target(R11) | base_of(R12));
    words_append(code, ADDI | target(R11) | base_of(R11) | 1);
    words_append(code, STORE | target(R11) | base_of(R12) | low);
}

/* Loads the sum of a base and the index, in units of the field's width, into r12. Where the base is
 * in r12, changes r11: an operand there is also in LR. */
static void append_element(struct words_code *code, const struct arch_cache_case *one,
                           uint32_t base)
{
    uint32_t shift = (uint32_t)__builtin_ctz(one->field.width);
    uint32_t index = base == R12 ? R11 : R12;
    append_rotate(code, RLDIC, index, number(one->elements.index), shift,
                  one->elements.is_narrow ? 32 - shift : 0);
    /* add r12, base, index */
    words_append(code, UINT32_C(0x7C000214) | target(R12) | base_of(base) | index_of(index));
    if (index == R11 && one->action == ARCH_CACHE_STORE && one->value == R11)
        words_append(code, MFLR_R11);
}

static void append_field(struct words_code *code, const struct arch_cache_case *one)
{
    const struct arch_cache_field *field = &one->field;
    bool is_store = one->action == ARCH_CACHE_STORE;
    uint32_t value = number(one->value);
    uint32_t base = number(one->receiver);
    int32_t offset = field->offset;
    int32_t pointer_offset = field->pointer_offset;
    if (one->holder != 0) {
        int32_t *first = field->is_out_of_line ? &pointer_offset : &offset;
        append_constant(code, R12, one->holder + (uint64_t)(int64_t)*first);
        *first = 0;
        base = R12;
    }
    if (field->is_out_of_line) {
        append_access(code, &loads[sizeof(uint64_t)], R12, base, pointer_offset);
        base = R12;
    }
    if (one->elements.length_width != 0) {
        append_element(code, one, base);
        base = R12;
    }
    if (is_vector(one->value)) {
        const uint32_t *opcodes = is_store ? vector_stores : vector_loads;
        append_vector_access(code, opcodes[field->width], value, base, offset);
        return;
    }
    const struct access *accesses = is_store ? stores : field->is_signed ? signed_loads : loads;
    if (!is_general(one->value))
        accesses = is_store ? float_stores : float_loads;
    append_access(code, &accesses[field->width], value, base, offset);
    if (accesses == signed_loads && field->width == 1) /* extsb */
        words_append(code, UINT32_C(0x7C000774) | target(value) | base_of(value));
}

/* Uses r11: an operand there is also in LR. */
static void append_epilogue(struct words_code *code, const struct arch_cache_case *one)
{
    const struct arch_cache_epilogue *epilogue = &one->epilogue;
    uint32_t receiver = number(one->receiver);
    if (epilogue->key_width != 0) {
        if (receiver == R11)
            words_append(code, MFLR_R12);
        append_constant(code, R11, epilogue->key);
        append_access(code, &stores[epilogue->key_width], R11, receiver == R11 ? R12 : receiver,
                      one->key_offset);
    }
    if (epilogue->marks_card) {
        if (receiver == R11)
            words_append(code, MFLR_R11);
        uint32_t shift = epilogue->card_shift;
        append_rotate(code, RLDICL, R11, receiver, (64 - shift) & 63, shift); /* srdi */
        append_constant(code, R12, epilogue->cards);
        /* add r12, r12, r11 */
        words_append(code, UINT32_C(0x7C000214) | target(R12) | base_of(R12) | index_of(R11));
        append_constant(code, R11, epilogue->card);
        words_append(code, stores[1].opcode | target(R11) | base_of(R12));
    }
}

/* Appends the literal after the case's code. Like the start of the code, it is aligned to 8. */
static void append_literal(struct words_code *code, const struct arch_cache_case *one)
{
    bool is_big_endian = code->arch->byte_order == CAIRN_BIG_ENDIAN;
    uint32_t low = (uint32_t)one->constant;
    uint32_t high = (uint32_t)(one->constant >> 32);
    if (is_general(one->value))
        return;
    if (code->size % sizeof(uint64_t) != 0)
        words_append(code, PPC64_TRAP);
    if (one->constant_width < sizeof(uint64_t)) {
        words_append(code, low);
        return;
    }
    words_append(code, is_big_endian ? high : low);
    words_append(code, is_big_endian ? low : high);
}

/* A literal follows this case's code: the load of its address, with or without another instruction,
 * and the return. */
static void append_result(struct words_code *code, const struct arch_cache_case *one)
{
    uint32_t value = number(one->value);
    if (is_general(one->value)) {
        append_constant(code, value, one->constant);
        return;
    }
    bool has_access = is_vector(one->value);
    size_t end = code->size + PPC64_ADDRESS_BYTES + (has_access ? 2 : 1) * (size_t)WORDS_BYTES;
    uint64_t literal = code->address + end + end % sizeof(uint64_t);
    uint32_t load = float_loads[one->constant_width].opcode | target(value) | base_of(R12);
    ppc64_append_address(code, literal, has_access ? PPC64_ADD : load);
    if (has_access)
        words_append(code, vector_loads[one->constant_width] | target(value) | index_of(R12));
}

static void append_jump(struct words_code *code, const struct arch_cache *cache, uint64_t function)
{
    assert(cache->is_called);
    (void)cache;
    ppc64_append_address(code, function, PPC64_ADD);
    ppc64_append_entering(code);
    words_append(code, PPC64_BCTR);
}

/* Jumps to the exit with this data, like an exit's stub. The exit's entry expects the site's return
 * address in LR, as after a call. */
static void append_exit(struct words_code *code, const struct arch_cache *cache, uint64_t data)
{
    if (!cache->is_called) {
        ppc64_append_address(code, cache->return_address, PPC64_ADD);
        words_append(code, MTLR_R12);
    }
    /* This always succeeds, because it reaches every address. */
    (void)code->arch->encode_exit(code->arch, code->address + code->size, data,
                                  code->bytes + code->size);
    code->size += code->arch->exit_bytes;
}

/* ---- The table ---- */

#define MTCTR_R12 UINT32_C(0x7D8903A6)
#define MFCTR_R12 UINT32_C(0x7D8902A6)

/* Leaves the field's offset in r12. The key is loaded twice; the second one is compared with that
 * of the word, together with zeros in place of the offset. CTR holds the word during the second
 * load, which may need r12. */
static void append_search(struct words_code *code, const struct arch_cache *cache)
{
    enum { SLOT_SHIFT = 3, REGISTER_BITS = 64 };
    const struct arch_cache_table *table = &cache->table;
    const struct arch_cache_case *one = &table->access;
    const uint32_t receiver = number(one->receiver);
    const uint32_t offset_bit = arch_cache_table_offset_bit(one->key_width);
    if (cache->count > 0 && receiver == R11)
        append_restore_r11(code, cache);
    append_access(code, &loads[one->key_width], R11, receiver, one->key_offset);
    append_constant(code, R12, table->multiplier);
    /* mulld r11, r11, r12 */
    words_append(code, UINT32_C(0x7C0001D2) | target(R11) | base_of(R11) | index_of(R12));
    append_rotate(code, RLDICL, R11, R11, REGISTER_BITS - ARCH_CACHE_TABLE_SHIFT,
                  REGISTER_BITS - table->bits);
    append_rotate(code, RLDIC, R11, R11, SLOT_SHIFT, REGISTER_BITS - SLOT_SHIFT - table->bits);
    ppc64_append_address(code, table->address, PPC64_ADD);
    /* ldx r12, r12, r11 */
    words_append(code, UINT32_C(0x7C00002A) | target(R12) | base_of(R12) | index_of(R11));
    words_append(code, MTCTR_R12);
    if (receiver == R11)
        append_restore_r11(code, cache);
    append_access(code, &loads[one->key_width], R11, receiver, one->key_offset);
    words_append(code, MFCTR_R12);
    words_append(code, UINT32_C(0x7D6B6278)); /* xor r11, r11, r12 */
    append_rotate(code, RLDICL, R12, R12, REGISTER_BITS - offset_bit, offset_bit);
    if (one->key_width == sizeof(uint64_t)) {
        append_rotate(code, RLDICL, R11, R11, REGISTER_BITS - offset_bit, 0);
        words_append(code, UINT32_C(0x7D6B6278)); /* xor r11, r11, r12 */
    } else {
        append_rotate(code, RLDICL, R11, R11, 0, offset_bit);
    }
    append_comparison(code, 0);
    words_append(code, MTCTR_R11);
    words_append(code, BDNZ);
}

static void append_found(struct words_code *code, const struct arch_cache_case *access)
{
    struct arch_cache_case at_r12 = *access;
    /* add r12, receiver, r12 */
    words_append(code, UINT32_C(0x7C000214) | target(R12) | base_of(number(access->receiver)) |
                           index_of(R12));
    at_r12.receiver = R12;
    at_r12.field.offset = 0;
    append_field(code, &at_r12);
}

static const struct words_cache encoder = {
    .return_instruction = UINT32_C(0x4E800020), /* blr */
    .guard_shift = 0,
    .guard_inversion = UINT32_C(0x00400000), /* bdz */
    .begin = append_keep_r11,
    .guard = append_guard,
    .second = append_second,
    .bounds = append_bounds,
    .count = append_count,
    .leave = append_restore_r11,
    .search = append_search,
    .found = append_found,
    .field = append_field,
    .result = append_result,
    .epilogue = append_epilogue,
    .jump = append_jump,
    .exit = append_exit,
    .literal = append_literal,
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

const struct arch_cache_encoder ppc64_cache_encoder = {
    .encode_cache = encode_cache,
    .encode_inline = encode_inline,
    .encode_miss = words_encode_miss,
};
