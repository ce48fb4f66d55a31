/*
 * x86-64: the machine code of inline caches.
 *
 * The code of the cases comes first, one after another: a guard, which ends with a branch to the
 * next case, the hit's action, and the end of the hit. Alternatively, one sequence tests all cases
 * (`put_selection`). The code for misses and the literals follow. Only r11 is free. A guard loads
 * the key's word with one load, so that it never sees parts of two different words.
 *
 * Sources: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapters
 * "Instruction Format" and "Instruction Set Reference"; System V Application Binary Interface,
 * AMD64 Architecture Processor Supplement, sections "The Stack Frame" (red zone) and "Registers"
 * (r11).
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/x86_64/target.h"

#include <assert.h>
#include <string.h>

enum {
    RED_ZONE_BYTES = 128,
    LITERAL_BYTES_MAX = 8,
    LITERALS_MAX = 4 * ARCH_CACHE_CASES_MAX + 1,
    /* With fewer cases, well-predicted branches are faster. */
    SELECTED_CASES_MIN = 3
};

/* Register numbers in instructions. */
enum { RSP = 4, RBP = 5, RSI = 4, R11 = 11, VECTOR_EVEX = 16 };

/* ---- The code being written ---- */

struct literal {
    uint64_t value;
    size_t place; /* offset of the displacement that ends its instruction */
};

struct writer {
    uint8_t *code;
    size_t bytes;
    uint64_t address;
    struct literal literals[LITERALS_MAX];
    size_t literal_count;
    size_t literal_bytes;
    bool has_long_immediates; /* whether small immediates take 4 bytes, too */
    bool is_out_of_reach;
};

static void put(struct writer *writer, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        writer->code[writer->bytes++] = (uint8_t)(value >> 8 * i);
}

/* Overwrites 4 bytes at `place`. */
static void put_at(struct writer *writer, size_t place, uint64_t value)
{
    for (size_t i = 0; i < 4; i++)
        writer->code[place + i] = (uint8_t)(value >> 8 * i);
}

static void put_bytes(struct writer *writer, const uint8_t *bytes, size_t count)
{
    memcpy(writer->code + writer->bytes, bytes, count);
    writer->bytes += count;
}

static bool fits_i8(int64_t value) { return value >= INT8_MIN && value <= INT8_MAX; }
static bool fits_i32(int64_t value) { return value >= INT32_MIN && value <= INT32_MAX; }

/* Writes the displacement at the end of an instruction. */
static void put_relative(struct writer *writer, uint64_t target)
{
    int64_t displacement = (int64_t)(target - (writer->address + writer->bytes + 4));
    if (!fits_i32(displacement))
        writer->is_out_of_reach = true;
    put(writer, (uint64_t)displacement, 4);
}

/* ---- Registers ---- */

static bool is_vector(uint16_t dwarf)
{
    return (dwarf >= 17 && dwarf <= 32) || (dwarf >= 67 && dwarf <= 82);
}

static unsigned general(uint16_t dwarf)
{
    static const uint8_t numbers[8] = {0, 2, 1, 3, 6, 7, 5, 4};
    assert(dwarf < 16);
    return dwarf < 8 ? numbers[dwarf] : dwarf;
}

static unsigned vector(uint16_t dwarf)
{
    assert(is_vector(dwarf));
    return dwarf <= 32 ? dwarf - 17U : dwarf - 67U + VECTOR_EVEX;
}

/* ---- Operands in memory ---- */

enum place { PLACE_BASE, PLACE_BASE_AND_R11, PLACE_LITERAL, PLACE_REGISTER };

struct operand {
    enum place place;
    unsigned base;
    int32_t offset;
    uint64_t literal;
};

/* The register itself. */
static const struct operand r11 = {.place = PLACE_REGISTER, .base = R11};

static struct operand register_itself(unsigned reg)
{
    return (struct operand){.place = PLACE_REGISTER, .base = reg};
}

static struct operand memory_at(unsigned base, int32_t offset)
{
    return (struct operand){.place = PLACE_BASE, .base = base, .offset = offset};
}

static struct operand memory_literal(uint64_t value)
{
    return (struct operand){.place = PLACE_LITERAL, .literal = value};
}

/* Writes ModRM, SIB and displacement. 1-byte displacements are in units of `scale`. */
static void put_operand(struct writer *writer, unsigned reg, struct operand operand, int scale)
{
    unsigned fields = (reg & 7) << 3;
    unsigned base = operand.base & 7;
    if (operand.place == PLACE_REGISTER) {
        put(writer, 0xC0 | fields | base, 1);
        return;
    }
    if (operand.place == PLACE_LITERAL) {
        assert(writer->literal_count < LITERALS_MAX);
        put(writer, 0x05 | fields, 1);
        writer->literals[writer->literal_count++] =
            (struct literal){operand.literal, writer->bytes};
        put(writer, 0, 4);
        return;
    }
    bool has_index = operand.place == PLACE_BASE_AND_R11;
    unsigned index = has_index ? R11 & 7 : RSP; /* as an index, RSP means no index */
    bool has_sib = has_index || base == RSP;
    bool is_short = operand.offset % scale == 0 && fits_i8(operand.offset / scale);
    unsigned mode = is_short ? 1 : 2;
    if (operand.offset == 0 && base != RBP)
        mode = 0;
    put(writer, mode << 6 | fields | (has_sib ? RSP : base), 1);
    if (has_sib)
        put(writer, index << 3 | base, 1);
    if (mode == 1)
        put(writer, (uint64_t)(operand.offset / scale), 1);
    if (mode == 2)
        put(writer, (uint64_t)operand.offset, 4);
}

/* ---- Instructions ---- */

struct operation {
    uint8_t prefix; /* 0x66, 0xF2 or 0xF3; 0: no prefix */
    uint8_t opcode;
    bool is_wide; /* 64-bit operands */
    bool has_0f;
    bool is_of_byte; /* the register operand is a byte: sil, dil and bpl need a REX prefix */
};

static void put_operation(struct writer *writer, const struct operation *operation, unsigned reg,
                          struct operand operand)
{
    unsigned rex = (operation->is_wide ? 8U : 0U) | (reg >> 3) << 2;
    if (operand.place == PLACE_BASE_AND_R11)
        rex |= (R11 >> 3) << 1;
    if (operand.place != PLACE_LITERAL)
        rex |= operand.base >> 3;
    bool needs_rex = rex != 0 || (operation->is_of_byte && reg >= RSI);
    if (operation->prefix != 0)
        put(writer, operation->prefix, 1);
    if (needs_rex)
        put(writer, 0x40 | rex, 1);
    if (operation->has_0f)
        put(writer, 0x0F, 1);
    put(writer, operation->opcode, 1);
    put_operand(writer, reg, operand, 1);
}

/* Opcode extensions, in the register field of ModRM. */
enum { EXTENSION_INC = 0, EXTENSION_AND = 4, EXTENSION_JMP = 4, EXTENSION_CMP = 7 };

/* Writes `and` or `cmp`, of 4 or 8 bytes: `operation $immediate, operand`. */
static void put_immediate(struct writer *writer, unsigned extension, bool is_wide,
                          int64_t immediate, struct operand operand)
{
    bool is_short = fits_i8(immediate) && !writer->has_long_immediates;
    const struct operation operation = {.opcode = is_short ? 0x83 : 0x81, .is_wide = is_wide};
    assert(fits_i32(immediate));
    put_operation(writer, &operation, extension, operand);
    put(writer, (uint64_t)immediate, is_short ? 1 : 4);
}

/* Loads the value. No form of this code changes flags. */
static void put_constant(struct writer *writer, unsigned reg, uint64_t value)
{
    unsigned rex = reg >> 3;
    bool is_small = value <= UINT32_MAX;
    bool is_signed = !is_small && fits_i32((int64_t)value);
    if (!is_small)
        rex |= 8;
    if (rex != 0)
        put(writer, 0x40 | rex, 1);
    if (is_signed)
        put(writer, 0xC7, 1);
    put(writer, (is_signed ? 0xC0 : 0xB8) | (reg & 7), 1);
    put(writer, value, is_small || is_signed ? 4 : 8);
}

/* Loads an address into r11. Always uses `movabs`, because the size must not depend on
 * addresses. */
static void put_address(struct writer *writer, uint64_t value)
{
    put(writer, 0x49, 1);
    put(writer, 0xB8 | (R11 & 7), 1);
    put(writer, value, 8);
}

/* Jumps to the function at this address: directly if it is in reach, because an indirect jump takes
 * longer. All forms have the same size. */
enum { FAR_JUMP_BYTES = 13, JUMP_BYTES = 5, CONDITIONAL_BYTES = 6, SHORT_BYTES = 2 };

static bool reaches(const struct writer *writer, uint64_t target, size_t jump_bytes)
{
    return fits_i32((int64_t)(target - (writer->address + writer->bytes + jump_bytes)));
}

static void put_jump(struct writer *writer, uint64_t target)
{
    static const struct operation jump = {.opcode = 0xFF};
    if (!reaches(writer, target, JUMP_BYTES)) {
        put_address(writer, target);
        put_operation(writer, &jump, EXTENSION_JMP, r11);
        return;
    }
    put(writer, 0xE9, 1);
    put_relative(writer, target);
    for (size_t i = JUMP_BYTES; i < FAR_JUMP_BYTES; i++)
        put(writer, 0xCC, 1);
}

/* Writes a shift of r11. */
enum { SHIFT_LEFT = 4, SHIFT_RIGHT = 5 };

static void put_shift(struct writer *writer, unsigned extension, unsigned count)
{
    static const struct operation shift = {.opcode = 0xC1, .is_wide = true};
    if (count == 0)
        return;
    put_operation(writer, &shift, extension, r11);
    put(writer, count, 1);
}

/* Tables by log2 of the width. */
enum { WIDTHS = 4 };

static unsigned width_index(uint8_t width)
{
    assert(width == 1 || width == 2 || width == 4 || width == 8);
    return (unsigned)__builtin_ctz(width);
}

/* The loads write whole registers: every instruction with a 4-byte result clears the upper 4
 * bytes. */
static const struct operation loads[WIDTHS] = {
    {.opcode = 0xB6, .has_0f = true},
    {.opcode = 0xB7, .has_0f = true},
    {.opcode = 0x8B},
    {.opcode = 0x8B, .is_wide = true},
};
static const struct operation signed_loads[WIDTHS] = {
    {.opcode = 0xBE, .has_0f = true, .is_wide = true},
    {.opcode = 0xBF, .has_0f = true, .is_wide = true},
    {.opcode = 0x63, .is_wide = true},
    {.opcode = 0x8B, .is_wide = true},
};
static const struct operation stores[WIDTHS] = {
    {.opcode = 0x88, .is_of_byte = true},
    {.opcode = 0x89, .prefix = 0x66},
    {.opcode = 0x89},
    {.opcode = 0x89, .is_wide = true},
};

static void put_load_r11(struct writer *writer, uint8_t width, struct operand memory)
{
    put_operation(writer, &loads[width_index(width)], R11, memory);
}

/* ---- Vector registers ---- */

enum { VECTOR_LOAD = 0x10, VECTOR_STORE = 0x11 };

/* Writes `movss` or `movsd` of the low 4 or 8 bytes. A load clears the remaining bytes. The upper
 * 16 of the 32 registers need EVEX encoding. */
static void put_vector_move(struct writer *writer, uint8_t opcode, uint8_t width, unsigned reg,
                            struct operand memory)
{
    const struct operation move = {
        .prefix = width == 4 ? 0xF3 : 0xF2, .opcode = opcode, .has_0f = true};
    assert(width == 4 || width == 8);
    if (reg < VECTOR_EVEX) {
        put_operation(writer, &move, reg, memory);
        return;
    }
    unsigned inverted = (~(reg >> 3) & 1) << 7 | 0x40 | (~(reg >> 4) & 1) << 4;
    inverted |= (memory.place == PLACE_LITERAL ? 1 : ~(memory.base >> 3) & 1) << 5;
    put(writer, 0x62, 1);
    put(writer, inverted | 0x01, 1);          /* opcode map 0F */
    put(writer, width == 4 ? 0x7E : 0xFF, 1); /* like prefix F3; like prefix F2, and W */
    put(writer, 0x08, 1);
    put(writer, opcode, 1);
    put_operand(writer, reg, memory, width);
}

/* ---- Guards ---- */

static uint64_t all_bits(uint8_t width) { return UINT64_MAX >> (64 - 8 * width); }

static int64_t sign_extended(uint64_t value, uint8_t width)
{
    uint64_t sign = UINT64_C(1) << (8 * width - 1);
    return (int64_t)((value ^ sign) - sign);
}

static struct operand word_of(const struct arch_cache_case *from)
{
    return memory_at(general(from->receiver), from->key_offset);
}

/* Compares the whole word. A 2-byte immediate needs a length-changing prefix, which many processors
 * decode slowly. */
static void put_whole_guard(struct writer *writer, const struct arch_cache_case *guard)
{
    static const struct operation compare_byte = {.opcode = 0x80};
    static const struct operation compare = {.opcode = 0x39, .is_wide = true};
    int64_t key = sign_extended(guard->key, guard->key_width);
    if (guard->key_width == 1) {
        put_operation(writer, &compare_byte, EXTENSION_CMP, word_of(guard));
        put(writer, guard->key, 1);
    } else if (guard->key_width == 2) {
        put_load_r11(writer, 2, word_of(guard));
        put_immediate(writer, EXTENSION_CMP, false, (int64_t)guard->key, r11);
    } else if (fits_i32(key)) {
        put_immediate(writer, EXTENSION_CMP, guard->key_width == 8, key, word_of(guard));
    } else {
        put_address(writer, guard->key);
        put_operation(writer, &compare, R11, word_of(guard));
    }
}

/* Compares the masked bits of the word, in r11. */
static void put_masked_guard(struct writer *writer, const struct arch_cache_case *guard)
{
    static const struct operation and = {.opcode = 0x23, .is_wide = true};
    static const struct operation compare = {.opcode = 0x3B, .is_wide = true};
    bool is_wide = guard->key_width == 8;
    int64_t mask = sign_extended(guard->mask, guard->key_width);
    int64_t key = is_wide ? (int64_t)guard->key : (int64_t)(int32_t)(uint32_t)guard->key;
    if (fits_i32(mask)) {
        put_load_r11(writer, guard->key_width, word_of(guard));
        put_immediate(writer, EXTENSION_AND, is_wide, mask, r11);
    } else {
        put_address(writer, guard->mask);
        put_operation(writer, &and, R11, word_of(guard));
    }
    if (key == 0)
        return; /* the zero flag is set if the masked bits are all zero */
    if (fits_i32(key))
        put_immediate(writer, EXTENSION_CMP, is_wide, key, r11);
    else
        put_operation(writer, &compare, R11, memory_literal(guard->key));
}

/* Writes the guard of a case, which sets the zero flag if and only if the case hits. If the mask
 * covers only low bits of the word, the guard loads only the low part of the word. */
static void put_guard(struct writer *writer, const struct arch_cache_case *from)
{
    struct arch_cache_case guard = *from;
    assert((guard.mask & ~all_bits(guard.key_width)) == 0);
    assert((guard.key & ~guard.mask) == 0);
    while (guard.key_width > 1 && guard.mask <= all_bits(guard.key_width / 2))
        guard.key_width /= 2;
    if (guard.mask == all_bits(guard.key_width))
        put_whole_guard(writer, &guard);
    else
        put_masked_guard(writer, &guard);
}

/* ---- Further conditions of a hit ---- */

/* Writes the second guard, which also sets the zero flag if and only if it holds. */
static void put_second_guard(struct writer *writer, const struct arch_cache_second *second)
{
    static const struct operation compare_byte = {.opcode = 0x80};
    static const struct operation and = {.opcode = 0x23, .is_wide = true};
    static const struct operation compare = {.opcode = 0x3B, .is_wide = true};
    const struct operand word = memory_at(R11, 0);
    uint8_t width = second->width;
    while (width > 1 && second->mask <= all_bits(width / 2))
        width /= 2;
    bool is_wide = width == 8;
    bool is_whole = second->mask == all_bits(width);
    int64_t mask = sign_extended(second->mask, width);
    int64_t key = is_wide ? (int64_t)second->key : (int64_t)(int32_t)(uint32_t)second->key;
    put_address(writer, second->word);
    if (is_whole && width == 1) {
        put_operation(writer, &compare_byte, EXTENSION_CMP, word);
        put(writer, second->key, 1);
        return;
    }
    if (is_whole && width != 2 && fits_i32(key)) {
        put_immediate(writer, EXTENSION_CMP, is_wide, key, word);
        return;
    }
    put_load_r11(writer, width, word);
    if (!is_whole && fits_i32(mask))
        put_immediate(writer, EXTENSION_AND, is_wide, mask, r11);
    else if (!is_whole)
        put_operation(writer, &and, R11, memory_literal(second->mask));
    if (fits_i32(key))
        put_immediate(writer, EXTENSION_CMP, is_wide, key, r11);
    else
        put_operation(writer, &compare, R11, memory_literal(second->key));
}

/* Opcodes of short branches; the long ones are 0x0F and the opcode plus LONG. */
enum { JB = 0x72, JAE = 0x73, JE = 0x74, JNE = 0x75, JBE = 0x76, JA = 0x77, LONG = 0x10 };

/* Writes the check of the index. Returns the opcode of the branch that a miss takes. */
static unsigned put_bounds(struct writer *writer, const struct arch_cache_case *one)
{
    static const struct operation move = {.opcode = 0x8B};
    static const struct operation compare_with = {.opcode = 0x3B, .is_wide = true};
    const struct arch_cache_elements *elements = &one->elements;
    const struct operation compare = {.opcode = 0x39, .is_wide = !elements->is_narrow};
    struct operand length = memory_at(general(one->receiver), elements->length_offset);
    unsigned index = general(elements->index);
    if (elements->is_narrow && elements->length_width == 8) {
        put_operation(writer, &move, R11, register_itself(index));
        put_operation(writer, &compare_with, R11, length);
        return JAE;
    }
    put_load_r11(writer, elements->length_width, length);
    put_operation(writer, &compare, index, r11);
    return JBE;
}

/* ---- Exits ---- */

static const uint8_t push_r11[] = {0x41, 0x53};

/* Pushes the site's return address, unless the site has. */
static void put_return_address(struct writer *writer, const struct arch_cache *cache)
{
    static const uint8_t lea_relative_r11[] = {0x4C, 0x8D, 0x1D};
    if (cache->is_called)
        return;
    put_bytes(writer, lea_relative_r11, sizeof lea_relative_r11);
    put_relative(writer, cache->return_address);
    put_bytes(writer, push_r11, sizeof push_r11);
}

/* Jumps to the exit with this data, with the site's return address and the exit's address on the
 * stack, like the code of `encode_exit`. */
static void put_exit(struct writer *writer, const struct arch_cache *cache, uint64_t data)
{
    static const uint8_t jump_to_entry[] = {0x41, 0xFF, 0x63, ARCH_EXIT_ENTRY};
    put_return_address(writer, cache);
    put_address(writer, data);
    put_bytes(writer, push_r11, sizeof push_r11);
    put_bytes(writer, jump_to_entry, sizeof jump_to_entry);
}

/* ---- Hits ---- */

/* Writes the access of a load or a store. */
static void put_access(struct writer *writer, const struct arch_cache_case *hit,
                       struct operand field)
{
    bool is_store = hit->action == ARCH_CACHE_STORE;
    uint8_t width = hit->field.width;
    const struct operation *table = hit->field.is_signed ? signed_loads : loads;
    if (is_vector(hit->value))
        put_vector_move(writer, is_store ? VECTOR_STORE : VECTOR_LOAD, width, vector(hit->value),
                        field);
    else
        put_operation(writer, &(is_store ? stores : table)[width_index(width)], general(hit->value),
                      field);
}

/* Returns to the end of the site. */
static void put_return(struct writer *writer, const struct arch_cache *cache)
{
    if (cache->is_called) {
        put(writer, 0xC3, 1);
        return;
    }
    put(writer, 0xE9, 1);
    put_relative(writer, cache->site_end);
}

static void put_count(struct writer *writer, const struct arch_cache_case *hit)
{
    static const struct operation increment = {.opcode = 0xFF, .is_wide = true};
    if (hit->counter == 0)
        return;
    put_address(writer, hit->counter);
    put_operation(writer, &increment, EXTENSION_INC, memory_at(R11, 0));
}

/* Writes the access of an element. r11 becomes the distance from the first element or, if it is out
 * of line or a vector register is accessed, the element's address without the offset. */
static void put_element(struct writer *writer, const struct arch_cache_case *hit)
{
    static const struct operation add = {.opcode = 0x03, .is_wide = true};
    const struct operation move = {.opcode = 0x8B, .is_wide = !hit->elements.is_narrow};
    const struct arch_cache_field *field = &hit->field;
    unsigned base = general(hit->receiver);
    struct operand place = {.place = PLACE_BASE_AND_R11, .base = base, .offset = field->offset};
    put_operation(writer, &move, R11, register_itself(general(hit->elements.index)));
    put_shift(writer, SHIFT_LEFT, width_index(field->width));
    if (field->is_out_of_line)
        put_operation(writer, &add, R11, memory_at(base, field->pointer_offset));
    else if (is_vector(hit->value))
        put_operation(writer, &add, R11, register_itself(base));
    if (field->is_out_of_line || is_vector(hit->value))
        place = memory_at(R11, field->offset);
    put_access(writer, hit, place);
}

/* Writes the load of a field of the holder. */
static void put_holder_load(struct writer *writer, const struct arch_cache_case *hit)
{
    const struct arch_cache_field *field = &hit->field;
    int64_t first = field->is_out_of_line ? field->pointer_offset : field->offset;
    put_address(writer, hit->holder + (uint64_t)first);
    if (field->is_out_of_line)
        put_load_r11(writer, 8, memory_at(R11, 0));
    put_access(writer, hit, memory_at(R11, field->is_out_of_line ? field->offset : 0));
}

/* Writes what follows a store. The card's address is computed in r11 alone: `cards` takes part in
 * the shift. */
static void put_epilogue(struct writer *writer, const struct arch_cache_case *hit)
{
    static const struct operation add = {.opcode = 0x03, .is_wide = true};
    static const struct operation store_byte = {.opcode = 0xC6};
    const struct arch_cache_epilogue *epilogue = &hit->epilogue;
    unsigned base = general(hit->receiver);
    if (epilogue->key_width != 0) {
        put_constant(writer, R11, epilogue->key);
        put_operation(writer, &stores[width_index(epilogue->key_width)], R11,
                      memory_at(base, hit->key_offset));
    }
    if (epilogue->marks_card) {
        put_address(writer, epilogue->cards << epilogue->card_shift);
        put_operation(writer, &add, R11, register_itself(base));
        put_shift(writer, SHIFT_RIGHT, epilogue->card_shift);
        put_operation(writer, &store_byte, 0, memory_at(R11, 0));
        put(writer, epilogue->card, 1);
    }
}

/* Writes the action of a hit that goes on at the end of the site. */
static void put_effect(struct writer *writer, const struct arch_cache_case *hit)
{
    unsigned base = general(hit->receiver);
    if (hit->action == ARCH_CACHE_CONSTANT) {
        if (is_vector(hit->value))
            put_vector_move(writer, VECTOR_LOAD, hit->constant_width, vector(hit->value),
                            memory_literal(hit->constant));
        else
            put_constant(writer, general(hit->value), hit->constant);
        return;
    }
    if (hit->elements.length_width != 0) {
        put_element(writer, hit);
    } else if (hit->holder != 0) {
        put_holder_load(writer, hit);
    } else {
        if (hit->field.is_out_of_line) {
            put_load_r11(writer, 8, memory_at(base, hit->field.pointer_offset));
            base = R11;
        }
        put_access(writer, hit, memory_at(base, hit->field.offset));
    }
    if (hit->action == ARCH_CACHE_STORE)
        put_epilogue(writer, hit);
}

static void put_hit(struct writer *writer, const struct arch_cache *cache,
                    const struct arch_cache_case *hit)
{
    bool has_effect = hit->action != ARCH_CACHE_JUMP && hit->action != ARCH_CACHE_EXIT;
    put_count(writer, hit);
    if (has_effect)
        put_effect(writer, hit);
    if (hit->action == ARCH_CACHE_JUMP) {
        put_return_address(writer, cache);
        put_jump(writer, hit->target);
    } else if (hit->action == ARCH_CACHE_EXIT) {
        put_exit(writer, cache, hit->target);
    } else {
        put_return(writer, cache);
    }
}

/* ---- Branches over hits ---- */

static size_t put_skip(struct writer *writer, unsigned opcode)
{
    put(writer, opcode, 1);
    put(writer, 0, 1);
    return writer->bytes;
}

static void land_skip(struct writer *writer, size_t skip)
{
    size_t distance = writer->bytes - skip;
    assert(distance <= INT8_MAX);
    writer->code[skip - 1] = (uint8_t)distance;
}

static size_t put_long_skip(struct writer *writer, unsigned opcode)
{
    put(writer, 0x0F, 1);
    put(writer, opcode + LONG, 1);
    put(writer, 0, 4);
    return writer->bytes;
}

static bool is_extended(const struct arch_cache_case *one)
{
    return one->second.width != 0 || one->elements.length_width != 0 ||
           one->epilogue.key_width != 0 || one->epilogue.marks_card || one->holder != 0;
}

/* Writes a case with further conditions, or with a longer action. */
static void put_extended_case(struct writer *writer, const struct arch_cache *cache,
                              const struct arch_cache_case *one)
{
    size_t skips[3];
    size_t count = 0;
    put_guard(writer, one);
    skips[count++] = put_long_skip(writer, JNE);
    if (one->second.width != 0) {
        put_second_guard(writer, &one->second);
        skips[count++] = put_long_skip(writer, JNE);
    }
    if (one->elements.length_width != 0) {
        unsigned opcode = put_bounds(writer, one);
        skips[count++] = put_long_skip(writer, opcode);
    }
    put_hit(writer, cache, one);
    for (size_t i = 0; i < count; i++)
        put_at(writer, skips[i] - 4, writer->bytes - skips[i]);
}

/* If a hit only jumps to a function in reach, the guard's own branch does that. */
static void put_case(struct writer *writer, const struct cairn_arch *arch,
                     const struct arch_cache *cache, const struct arch_cache_case *one)
{
    enum { SAVED_BYTES = SHORT_BYTES + FAR_JUMP_BYTES - CONDITIONAL_BYTES };
    if (is_extended(one)) {
        put_extended_case(writer, cache, one);
        return;
    }
    put_guard(writer, one);
    if (one->action == ARCH_CACHE_JUMP && one->counter == 0 && cache->is_called &&
        reaches(writer, one->target, CONDITIONAL_BYTES)) {
        put(writer, 0x840F, 2); /* je */
        put_relative(writer, one->target);
        arch->fill_nops(arch, writer->code + writer->bytes, SAVED_BYTES);
        writer->bytes += SAVED_BYTES;
        return;
    }
    size_t skip = put_skip(writer, JNE);
    put_hit(writer, cache, one);
    land_skip(writer, skip);
}

/* ---- All cases at once ---- */

/* Whether the case is a load without a counter, with an unmasked key of 4 or 8 bytes, and differs
 * from the first case only in the guard and in the field's offset. */
static bool is_selectable(const struct arch_cache_case *first, const struct arch_cache_case *from)
{
    const struct arch_cache_field *x = &first->field;
    const struct arch_cache_field *y = &from->field;
    bool is_whole = from->key_width >= 4 && from->mask == all_bits(from->key_width);
    bool is_load = from->action == ARCH_CACHE_LOAD && !is_vector(from->value) &&
                   from->counter == 0 && y->offset > INT32_MIN && !is_extended(from);
    bool same_pointer = x->is_out_of_line == y->is_out_of_line &&
                        (!x->is_out_of_line || x->pointer_offset == y->pointer_offset);
    return is_whole && is_load && same_pointer && first->receiver == from->receiver &&
           first->value == from->value && x->width == y->width && x->is_signed == y->is_signed;
}

enum selection { SELECTION_NONE, SELECTION_BY_IMMEDIATE, SELECTION_BY_LITERAL };

static enum selection selection_of(const struct arch_cache *cache)
{
    const struct arch_cache_case *first = &cache->cases[0];
    bool are_immediate = true;
    bool are_of_one_word = true;
    if (cache->count < SELECTED_CASES_MIN)
        return SELECTION_NONE;
    for (size_t i = 0; i < cache->count; i++) {
        const struct arch_cache_case *from = &cache->cases[i];
        if (!is_selectable(first, from))
            return SELECTION_NONE;
        are_immediate &= from->key_width == 4 || fits_i32((int64_t)from->key);
        are_of_one_word &= from->key_width == 8 && from->key_offset == first->key_offset;
    }
    if (are_immediate)
        return SELECTION_BY_IMMEDIATE;
    return are_of_one_word ? SELECTION_BY_LITERAL : SELECTION_NONE;
}

/* Returns the origin: 1 byte before the lowest field. */
static int32_t origin_of(const struct arch_cache *cache)
{
    int32_t lowest = INT32_MAX;
    for (size_t i = 0; i < cache->count; i++)
        if (cache->cases[i].field.offset < lowest)
            lowest = cache->cases[i].field.offset;
    return lowest - 1;
}

/* Returns the distance of the field from the origin, which is never 0. */
static uint32_t distance_of(const struct arch_cache_case *from, int32_t origin)
{
    return (uint32_t)from->field.offset - (uint32_t)origin;
}

static void put_selected_load(struct writer *writer, const struct arch_cache_case *hit,
                              int32_t origin)
{
    static const struct operation add = {.opcode = 0x03, .is_wide = true};
    unsigned receiver = general(hit->receiver);
    struct operand field = {.place = PLACE_BASE_AND_R11, .base = receiver, .offset = origin};
    if (hit->field.is_out_of_line) {
        put_operation(writer, &add, R11, memory_at(receiver, hit->field.pointer_offset));
        field = memory_at(R11, origin);
    }
    put_access(writer, hit, field);
}

/*
 * Writes one sequence for all cases: `cmp $key, word; cmove distance(%rip), %r11d` each. It leaves
 * the field's distance from the origin in r11, or 0 for a miss. Every comparison loads the word
 * again, as the guards of single cases do. So, if another thread changes the word meanwhile, the
 * result is that of a case whose guard was true when it was evaluated; if no guard was true, it is
 * a miss. If keys are equal, the first case wins, because it is compared last.
 */
static void put_selection(struct writer *writer, const struct arch_cache *cache)
{
    static const struct operation move_if_equal = {.opcode = 0x44, .has_0f = true};
    static const struct operation exclusive_or = {.opcode = 0x31};
    static const struct operation test = {.opcode = 0x85};
    int32_t origin = origin_of(cache);
    put_operation(writer, &exclusive_or, R11, r11);
    writer->literal_bytes = 4;
    for (size_t i = cache->count; i-- > 0;) {
        const struct arch_cache_case *from = &cache->cases[i];
        put_immediate(writer, EXTENSION_CMP, from->key_width == 8,
                      sign_extended(from->key, from->key_width), word_of(from));
        put_operation(writer, &move_if_equal, R11, memory_literal(distance_of(from, origin)));
    }
    put_operation(writer, &test, R11, r11);
    size_t skip = put_skip(writer, JE);
    put_selected_load(writer, &cache->cases[0], origin);
    put_return(writer, cache);
    land_skip(writer, skip);
}

/* Returns the lowest number from 1 on that is not the lower half of any key. */
static uint32_t find_tag(const struct arch_cache *cache)
{
    uint32_t tag = 1;
    size_t i = 0;
    while (i < cache->count) {
        bool is_taken = (uint32_t)cache->cases[i].key == tag;
        tag += is_taken ? 1 : 0;
        i = is_taken ? 0 : i + 1;
    }
    return tag;
}

/*
 * Does the same for keys that do not fit into an immediate: `cmp key(%rip), %r11; cmove
 * distance:tag(%rip), %r11` for each. The word is loaded once, into r11. If
 * it equals a key, the field's distance replaces it, with a tag in the lower half. No key has this
 * tag as its lower half, so that no later comparison succeeds. A word that has the tag when it is
 * loaded is a miss.
 */
static void put_wide_selection(struct writer *writer, const struct arch_cache *cache)
{
    static const struct operation compare = {.opcode = 0x3B, .is_wide = true};
    static const struct operation move_if_equal = {.opcode = 0x44, .is_wide = true, .has_0f = true};
    static const uint8_t long_je[] = {0x0F, 0x84, 0, 0, 0, 0};
    static const uint8_t shift[] = {0x49, 0xC1, 0xEB, 32}; /* shr $32, %r11 */
    const struct arch_cache_case *first = &cache->cases[0];
    int32_t origin = origin_of(cache);
    uint32_t tag = find_tag(cache);
    put_load_r11(writer, 8, word_of(first));
    put_immediate(writer, EXTENSION_CMP, false, tag, r11);
    put_bytes(writer, long_je, sizeof long_je);
    size_t tagged_before = writer->bytes;
    for (size_t i = 0; i < cache->count; i++) {
        uint64_t distance = distance_of(&cache->cases[i], origin);
        put_operation(writer, &compare, R11, memory_literal(cache->cases[i].key));
        put_operation(writer, &move_if_equal, R11, memory_literal(distance << 32 | tag));
    }
    put_immediate(writer, EXTENSION_CMP, false, tag, r11);
    size_t untagged = put_skip(writer, JNE);
    put_bytes(writer, shift, sizeof shift);
    put_selected_load(writer, first, origin);
    put_return(writer, cache);
    land_skip(writer, untagged);
    put_at(writer, tagged_before - 4, writer->bytes - tagged_before);
}

/* ---- The table ---- */

/* Compares the key of 4 bytes with that of the word in r11, and leaves the field's offset there.
 * Returns the branch that a miss takes. */
static size_t put_table_guard(struct writer *writer, const struct arch_cache_case *access)
{
    static const struct operation compare = {.opcode = 0x39};
    put_operation(writer, &compare, R11, word_of(access));
    size_t skip = put_skip(writer, JNE);
    put_shift(writer, SHIFT_RIGHT, arch_cache_table_offset_bit(access->key_width));
    return skip;
}

/* Does the same for a key of 8 bytes, which is compared together with zeros in place of the offset.
 * Its place is rax, which is on the stack meanwhile, with the site's return address before it, so
 * that the frame can be found. */
static size_t put_wide_table_guard(struct writer *writer, const struct arch_cache *cache)
{
    static const struct operation load = {.opcode = 0x8B, .is_wide = true};
    static const uint8_t push_rax[] = {0x50};
    static const uint8_t compare[] = {
        0x4C, 0x31, 0xD8,       /* xor %r11, %rax */
        0x49, 0xC1, 0xEB, 48,   /* shr $48, %r11 */
        0x48, 0xC1, 0xC0, 16,   /* rol $16, %rax */
        0x49, 0x39, 0xC3, 0x58, /* cmp %rax, %r11; pop %rax */
    };
    static const uint8_t drop_return_address[] = {0x48, 0x8D, 0x64, 0x24,
                                                  8}; /* lea 8(%rsp), %rsp */
    put_bytes(writer, push_rax, sizeof push_rax);
    put_operation(writer, &load, 0, word_of(&cache->table.access));
    put_bytes(writer, compare, sizeof compare);
    if (!cache->is_called)
        put_bytes(writer, drop_return_address, sizeof drop_return_address);
    return put_skip(writer, JNE);
}

/* Writes the search in the table: `imul` and `shr` make the slot's address of the key. */
static void put_table(struct writer *writer, const struct arch_cache *cache)
{
    enum { SLOT_SHIFT = 3 };
    static const struct operation multiply = {.opcode = 0x69, .is_wide = true};
    static const struct operation add = {.opcode = 0x03, .is_wide = true};
    static const struct operation lea = {.opcode = 0x8D, .is_wide = true};
    const struct arch_cache_table *table = &cache->table;
    const struct arch_cache_case *access = &table->access;
    const struct operand field = {.place = PLACE_BASE_AND_R11, .base = general(access->receiver)};
    const uint32_t places = ((UINT32_C(1) << table->bits) - 1) << SLOT_SHIFT;
    bool is_wide = access->key_width == 8;
    if (is_wide)
        put_return_address(writer, cache);
    put_load_r11(writer, access->key_width, word_of(access));
    put_operation(writer, &multiply, R11, r11);
    put(writer, table->multiplier, 4);
    put_shift(writer, SHIFT_RIGHT, ARCH_CACHE_TABLE_SHIFT - SLOT_SHIFT);
    put_immediate(writer, EXTENSION_AND, false, (int64_t)places, r11);
    put_operation(writer, &add, R11, memory_literal(table->address));
    put_load_r11(writer, 8, memory_at(R11, 0));
    size_t skip = is_wide ? put_wide_table_guard(writer, cache) : put_table_guard(writer, access);
    if (is_vector(access->value))
        put_operation(writer, &lea, R11, field);
    put_access(writer, access, is_vector(access->value) ? memory_at(R11, 0) : field);
    put_return(writer, cache);
    land_skip(writer, skip);
}

/* ---- A cache ---- */

static void put_literals(struct writer *writer)
{
    while (writer->literal_count > 0 && writer->bytes % LITERAL_BYTES_MAX != 0)
        put(writer, 0xCC, 1);
    for (size_t i = 0; i < writer->literal_count; i++) {
        const struct literal *literal = &writer->literals[i];
        put_at(writer, literal->place, writer->bytes - (literal->place + 4));
        put(writer, literal->value, writer->literal_bytes);
    }
}

static bool encode_cache(const struct cairn_arch *arch, const struct arch_cache *cache,
                         uint64_t address, uint8_t *code, struct arch_cache_size *size)
{
    struct writer writer = {.code = code, .address = address, .literal_bytes = LITERAL_BYTES_MAX};
    assert(cache->count <= ARCH_CACHE_CASES_MAX);
    switch (selection_of(cache)) {
    case SELECTION_NONE:
        for (size_t i = 0; i < cache->count; i++)
            put_case(&writer, arch, cache, &cache->cases[i]);
        break;
    case SELECTION_BY_IMMEDIATE:
        put_selection(&writer, cache);
        break;
    case SELECTION_BY_LITERAL:
        put_wide_selection(&writer, cache);
        break;
    }
    size_t cases_end = writer.bytes;
    size_t case_literals = writer.literal_count;
    if (cache->table.address != 0)
        put_table(&writer, cache);
    if (cache->miss_target != 0) {
        put_return_address(&writer, cache);
        put_jump(&writer, cache->miss_target);
    } else {
        put_exit(&writer, cache, cache->exit_data);
    }
    put_literals(&writer);
    size->bytes = writer.bytes;
    size->case_bytes = cases_end + case_literals * writer.literal_bytes;
    assert(size->case_bytes <= cache->count * ARCH_CACHE_CASE_BYTES_MAX);
    assert(size->bytes - size->case_bytes <= ARCH_CACHE_END_BYTES_MAX);
    return !writer.is_out_of_reach;
}

static bool selects_cases(const struct arch_cache *cache)
{
    return cache->count > 0 && selection_of(cache) != SELECTION_NONE;
}

/* ---- The first cases in the site's own bytes ---- */

enum { WORD_BYTES = 8, MISS_BYTES = 6 };

/* The opcodes of the branch that a miss takes: `jne`, or `jmp` with a prefix that has no effect. */
enum { PREFIX_DS = 0x3E, MISS_IF_NOT_EQUAL = 0x850F, MISS_ALWAYS = 0xE9 << 8 | PREFIX_DS };

static void put_miss(struct writer *writer, unsigned opcode, uint64_t target)
{
    put(writer, opcode, 2);
    put_relative(writer, target);
}

static bool encode_miss(const struct cairn_arch *arch, uint64_t address, uint64_t target,
                        uint8_t *code)
{
    struct writer writer = {.code = code, .address = address};
    (void)arch;
    put_miss(&writer, code[0] == PREFIX_DS ? (unsigned)MISS_ALWAYS : (unsigned)MISS_IF_NOT_EQUAL,
             target);
    return !writer.is_out_of_reach;
}

/* Writes all conditions of a hit, up to the branch that a miss takes. Conditions before the last
 * one branch to that branch. Returns the branch's opcode. */
static unsigned put_conditions(struct writer *writer, const struct arch_cache_case *first)
{
    size_t skips[2];
    size_t count = 0;
    unsigned miss = MISS_IF_NOT_EQUAL;
    put_guard(writer, first);
    if (first->second.width != 0) {
        skips[count++] = put_skip(writer, JNE);
        put_second_guard(writer, &first->second);
    }
    if (first->elements.length_width != 0) {
        skips[count++] = put_skip(writer, JNE);
        put(writer, put_bounds(writer, first) ^ 1, 1); /* the inverse condition: over the branch */
        put(writer, MISS_BYTES, 1);
        miss = MISS_ALWAYS;
    }
    for (size_t i = 0; i < count; i++)
        land_skip(writer, skips[i]);
    return miss;
}

/* Returns the number of bytes to add to a guard so that the jump that follows it is in one word. */
static size_t padding_of(const struct writer *guard)
{
    size_t in_word = (guard->address + guard->bytes) % WORD_BYTES;
    return in_word + MISS_BYTES <= WORD_BYTES ? 0 : WORD_BYTES - in_word;
}

/* Writes what makes the guard end in the right place: an instruction of its own if prefixes are not
 * enough. DS prefixes have no effect on instructions of 64-bit code. */
static void put_padding(struct writer *writer, const struct cairn_arch *arch,
                        const struct arch_cache_case *first)
{
    enum { PREFIXES_MAX = 3 };
    uint8_t bytes[ARCH_CACHE_CASE_BYTES_MAX];
    struct writer guard = {.code = bytes, .address = writer->address};
    put_conditions(&guard, first);
    if (padding_of(&guard) > PREFIXES_MAX) {
        guard.bytes = 0;
        guard.literal_count = 0;
        guard.has_long_immediates = writer->has_long_immediates = true;
        put_conditions(&guard, first);
    }
    size_t padding = padding_of(&guard);
    if (padding > PREFIXES_MAX) {
        arch->fill_nops(arch, writer->code, padding);
        writer->bytes = padding;
        return;
    }
    while (padding-- > 0)
        put(writer, PREFIX_DS, 1);
}

/* Writes a call that ends after `size` bytes, and so returns to the end of the site. */
static void put_last_call(struct writer *writer, const struct cairn_arch *arch, uint64_t target,
                          size_t size)
{
    size_t place = size < JUMP_BYTES ? 0 : size - JUMP_BYTES;
    if (place < writer->bytes) {
        writer->is_out_of_reach = true; /* there is no space */
        return;
    }
    arch->fill_nops(arch, writer->code + writer->bytes, place - writer->bytes);
    writer->bytes = place;
    put(writer, 0xE8, 1);
    put_relative(writer, target);
}

/* Writes the first one of two cases, which jumps to the end of the site, and what makes the branch
 * that a miss of the second one takes be in one word. No thread executes that. */
static bool put_first_of_two(struct writer *writer, const struct arch_cache_case *first,
                             const struct arch_cache_case *second, size_t size)
{
    uint8_t bytes[ARCH_CACHE_CASE_BYTES_MAX];
    if (is_extended(first) || first->action == ARCH_CACHE_JUMP ||
        second->action == ARCH_CACHE_JUMP || second->action == ARCH_CACHE_EXIT)
        return false;
    put_guard(writer, first);
    size_t skip = put_skip(writer, JNE);
    put_count(writer, first);
    put_effect(writer, first);
    if (writer->bytes + SHORT_BYTES > size)
        return false;
    put(writer, 0xEB, 1);
    put(writer, size - writer->bytes - 1, 1);
    struct writer guard = {.code = bytes, .address = writer->address + writer->bytes};
    put_conditions(&guard, second);
    for (size_t padding = padding_of(&guard); padding > 0; padding--)
        put(writer, 0xCC, 1);
    if (writer->bytes > size)
        return false;
    land_skip(writer, skip);
    return true;
}

/* No-ops fill the bytes after the action: they take less time than a jump over them. */
static bool encode_inline(const struct cairn_arch *arch, const struct arch_cache *cache,
                          struct arch_cache_inline *inlined, uint8_t *code)
{
    uint8_t bytes[3 * ARCH_CACHE_CASE_BYTES_MAX];
    const struct arch_cache_case *last = &cache->cases[inlined->has_second ? 1 : 0];
    struct writer writer = {.code = bytes, .address = inlined->address};
    size_t size = (size_t)(cache->site_end - inlined->address);
    assert(size <= ARCH_CACHE_INLINE_BYTES_MAX);
    if (cache->cases[0].action == ARCH_CACHE_EXIT)
        return false;
    if (!inlined->has_second)
        put_padding(&writer, arch, last);
    else if (!put_first_of_two(&writer, &cache->cases[0], last, size))
        return false;
    unsigned miss = put_conditions(&writer, last);
    inlined->miss_offset = writer.bytes;
    put_miss(&writer, miss, inlined->miss);
    put_count(&writer, last);
    if (last->action == ARCH_CACHE_JUMP) {
        put_last_call(&writer, arch, last->target, size);
    } else {
        put_effect(&writer, last);
    }
    size_t miss_word = inlined->miss_offset / WORD_BYTES * WORD_BYTES;
    if (writer.bytes > size || miss_word + WORD_BYTES > size || writer.literal_count > 0 ||
        writer.is_out_of_reach)
        return false;
    memcpy(code, bytes, writer.bytes);
    arch->fill_nops(arch, code + writer.bytes, size - writer.bytes);
    inlined->code_bytes = writer.bytes;
    return true;
}

const struct arch_cache_encoder x86_64_cache_encoder = {
    .encode_cache = encode_cache,
    .encode_inline = encode_inline,
    .encode_miss = encode_miss,
    .selects_cases = selects_cases,
};
