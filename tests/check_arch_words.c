/*
 * Tests of the architecture tables of AArch64 and PPC64, the counterpart of check_arch.c for
 * x86-64: recognising LLVM's code, arming, decoding. Each test runs for each machine. The expected
 * values are numbers from the manuals; check_llvm_sequences.c checks that LLVM emits them.
 * check_encoders.c has the tests of what is encoded.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "code_support.h"
#include "stackmap_support.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REGION_MAX = 128, WORD = 4, SEQUENCE_MAX = 10, RANDOM_ROUNDS = 20000 };

/* An aligned address, far from both ends of the address space. */
#define BASE UINT64_C(0x7F0012340000)

/* The target of the call sequences below. */
#define TARGET UINT64_C(0x8765432112FF)

/* ---- The machines ---- */

struct instruction {
    uint32_t word;
    uint32_t operand; /* bits that may have any value */
};

struct machine {
    enum cairn_architecture architecture;
    bool big_endian;
    uint32_t nop;
    /* LLVM's call of TARGET, and the number of its words that fit in the smallest region. */
    struct instruction call[SEQUENCE_MAX];
    size_t call_words;
    size_t call_words_min;
    size_t return_offset;
    /* Instructions directly before and after the patch word; 0 if none are needed. */
    uint32_t save;
    uint32_t reload;
    uint32_t branch;
    uint32_t branch_with_link;
    unsigned displacement_bits; /* including the lowest two bits, which are not encoded */
    uint32_t displacement_mask;
    uint32_t similar[4];
};

#define ANY_16 0xFFFFU
#define ANY_MOVE (0xFFFFU << 5)

/* ORDER MACHINES */
enum { AARCH64, PPC64_ELFV2, PPC64_ELFV1, MACHINE_COUNT };

static const struct machine machines[MACHINE_COUNT] = {
    [AARCH64] =
        {
            .architecture = CAIRN_ARCHITECTURE_AARCH64,
            .nop = 0xD503201F,
            .call = {{0xD2C00010 | 0x8765U << 5, ANY_MOVE},
                     {0xF2A00010 | 0x4321U << 5, ANY_MOVE},
                     {0xF2800010 | 0x12FFU << 5, ANY_MOVE},
                     {0xD63F0200, 0}},
            .call_words = 4,
            .call_words_min = 4,
            .return_offset = 16,
            .branch = 0x14000000,
            .branch_with_link = 0x94000000,
            .displacement_bits = 28,
            .displacement_mask = 0x03FFFFFF,
            .similar = {0xD503203F, 0xD503203E, 0, 0xAA0003E0}, /* yield, -, udf, mov x0, x0 */
        },
    [PPC64_ELFV2] =
        {
            .architecture = CAIRN_ARCHITECTURE_PPC64_ELFV2,
            .nop = 0x60000000,
            .call = {{0x39808765, ANY_16},
                     {0x798C040A, 0},
                     {0x658C4321, ANY_16},
                     {0x618C12FF, ANY_16},
                     {0xF8410018, 0},
                     {0x7D8903A6, 0},
                     {0x4E800421, 0},
                     {0xE8410018, 0}},
            .call_words = 8,
            .call_words_min = 7,
            .return_offset = 28,
            .save = 0xF8410018,
            .reload = 0xE8410018,
            .branch = 0x48000000,
            .branch_with_link = 0x48000001,
            .displacement_bits = 26,
            .displacement_mask = 0x03FFFFFC,
            .similar = {0x60210000, 0x60000001, 0, 0x7C631B78}, /* ori r1, r1, 0 and others */
        },
    [PPC64_ELFV1] =
        {
            .architecture = CAIRN_ARCHITECTURE_PPC64_ELFV1,
            .big_endian = true,
            .nop = 0x60000000,
            .call = {{0x39808765, ANY_16},
                     {0x798C040A, 0},
                     {0x658C4321, ANY_16},
                     {0x618C12FF, ANY_16},
                     {0xF8410028, 0},
                     {0xE84C0008, 0},
                     {0xE98C0000, 0},
                     {0x7D8903A6, 0},
                     {0x4E800421, 0},
                     {0xE8410028, 0}},
            .call_words = 10,
            .call_words_min = 9,
            .return_offset = 36,
            .save = 0xF8410028,
            .reload = 0xE8410028,
            .branch = 0x48000000,
            .branch_with_link = 0x48000001,
            .displacement_bits = 26,
            .displacement_mask = 0x03FFFFFC,
            .similar = {0x60210000, 0x60000001, 0, 0x7C631B78},
        },
};

static const struct cairn_arch *table(const struct machine *machine)
{
    return arch_find(machine->architecture);
}

static bool has_toc(const struct machine *machine) { return machine->save != 0; }

/* Returns the size of the smallest region that holds a patch word and the instructions around
 * it. */
static size_t place_bytes_min(const struct machine *machine) { return has_toc(machine) ? 12 : 4; }

static void write_word(const struct machine *machine, uint8_t *bytes, uint32_t word)
{
    for (unsigned i = 0; i < WORD; i++)
        bytes[machine->big_endian ? 3 - i : i] = (uint8_t)(word >> (8 * i));
}

static uint32_t read_word(const struct machine *machine, const uint8_t *bytes)
{
    uint32_t word = 0;
    for (unsigned i = 0; i < WORD; i++)
        word |= (uint32_t)bytes[machine->big_endian ? 3 - i : i] << (8 * i);
    return word;
}

static void write_nops(const struct machine *machine, uint8_t *bytes, size_t size)
{
    for (size_t offset = 0; offset < size; offset += WORD)
        write_word(machine, bytes + offset, machine->nop);
}

/* Writes LLVM's call, and no-ops up to `size`. */
static void write_call(const struct machine *machine, uint8_t *region, size_t size)
{
    write_nops(machine, region, size);
    for (size_t i = 0; i < machine->call_words && i * WORD < size; i++)
        write_word(machine, region + i * WORD, machine->call[i].word);
}

/* ---- Random numbers, from a seed that is printed ---- */

static uint64_t random_state;

static void seed(void) { random_state = support_seed(); }

static uint64_t next_random(void)
{
    uint64_t high = support_random(&random_state);
    return high << 32 | support_random(&random_state);
}

/* ---- No-ops ---- */

START_TEST(whole_no_ops_are_counted)
{
    const struct machine *machine = &machines[_i];
    uint8_t bytes[REGION_MAX];
    write_nops(machine, bytes, sizeof bytes);
    for (size_t size = 0; size <= sizeof bytes; size++)
        expect_equal(table(machine)->leading_nops(table(machine), bytes, size), size / WORD * WORD);
}
END_TEST

START_TEST(truncated_no_op_is_not_counted)
{
    const struct machine *machine = &machines[_i];
    uint8_t nop[WORD];
    write_nops(machine, nop, sizeof nop);
    for (size_t size = 0; size < WORD; size++) {
        /* A heap block of the exact size, so that sanitizers find reads past its end. */
        uint8_t *cut = malloc(size + 1);
        ck_assert_ptr_nonnull(cut);
        memcpy(cut, nop, size);
        expect_equal(table(machine)->leading_nops(table(machine), cut, size), 0);
        free(cut);
    }
}
END_TEST

static size_t length_of_call(const struct machine *machine, uint32_t word)
{
    uint8_t bytes[WORD];
    write_word(machine, bytes, word);
    expect_equal(table(machine)->call_length(table(machine), bytes, WORD - 1), 0);
    return table(machine)->call_length(table(machine), bytes, WORD);
}

START_TEST(calls_are_one_instruction_long)
{
    const struct machine *machine = &machines[_i];
    bool is_aarch64 = machine->architecture == CAIRN_ARCHITECTURE_AARCH64;
    uint32_t displacement = machine->displacement_mask & 0x00FF00F0;
    expect_equal(length_of_call(machine, machine->branch_with_link | displacement), WORD);
    expect_equal(length_of_call(machine, machine->branch | displacement), 0);
    expect_equal(length_of_call(machine, machine->nop), 0);
    /* blr x17; bctrl */
    expect_equal(length_of_call(machine, is_aarch64 ? 0xD63F0220 : 0x4E800421), WORD);
    /* br x17; bctr */
    expect_equal(length_of_call(machine, is_aarch64 ? 0xD61F0220 : 0x4E800420), 0);
    /* ret; blr, which does not link */
    expect_equal(length_of_call(machine, is_aarch64 ? 0xD65F03C0 : 0x4E800020), 0);
}
END_TEST

START_TEST(counting_ends_before_the_first_other_instruction)
{
    const struct machine *machine = &machines[_i];
    for (size_t offset = 0; offset < REGION_MAX; offset += WORD) {
        for (unsigned bit = 0; bit < 32; bit++) {
            uint8_t code[REGION_MAX];
            write_nops(machine, code, sizeof code);
            write_word(machine, code + offset, machine->nop ^ UINT32_C(1) << bit);
            expect_equal(table(machine)->leading_nops(table(machine), code, sizeof code), offset);
        }
    }
}
END_TEST

START_TEST(instructions_similar_to_no_ops_are_not_counted)
{
    const struct machine *machine = &machines[_i];
    for (size_t i = 0; i < sizeof machine->similar / WORD; i++) {
        uint8_t bytes[WORD];
        write_word(machine, bytes, machine->similar[i]);
        expect_equal(table(machine)->leading_nops(table(machine), bytes, WORD), 0);
    }
}
END_TEST

/* ---- LLVM's code ---- */

static enum cairn_status recognise(const struct machine *machine, const uint8_t *region,
                                   size_t size, struct arch_patchpoint *patchpoint,
                                   struct cairn_error *error)
{
    memset(patchpoint, 0xEE, sizeof *patchpoint);
    memset(error, 0, sizeof *error);
    return table(machine)->recognise(table(machine), region, size, BASE, patchpoint, error);
}

/* Expects CORRUPT. The error must have the offset and the value of the word at `offset`. */
static void expect_word_refused(const struct machine *machine, const uint8_t *region, size_t size,
                                size_t offset)
{
    struct arch_patchpoint found;
    struct cairn_error error;
    char place[32];
    char value[32];
    snprintf(place, sizeof place, "byte %zu ", offset);
    snprintf(value, sizeof value, "0x%08x", read_word(machine, region + offset));
    expect_equal(recognise(machine, region, size, &found, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_msg(error.offset == BASE + offset, "byte %zu: '%s'", offset, error.message);
    ck_assert_msg(strstr(error.message, place) != NULL && strstr(error.message, value) != NULL,
                  "'%s' does not say %sand %s", error.message, place, value);
}

START_TEST(call_is_recognised_at_every_size)
{
    const struct machine *machine = &machines[_i];
    for (size_t size = machine->call_words_min * WORD; size <= REGION_MAX; size += WORD) {
        uint8_t region[REGION_MAX];
        struct arch_patchpoint found;
        struct cairn_error error;
        write_call(machine, region, size);
        expect_equal(recognise(machine, region, size, &found, &error), CAIRN_OK);
        expect(found.has_call);
        expect(!found.is_direct);
        expect_equal(found.target, TARGET);
        expect_equal(found.return_offset, machine->return_offset);
    }
}
END_TEST

START_TEST(every_target_of_48_bits_is_recognised)
{
    const struct machine *machine = &machines[_i];
    const struct instruction *call = machine->call;
    seed();
    for (int round = 0; round < RANDOM_ROUNDS; round++) {
        uint8_t region[REGION_MAX];
        struct arch_patchpoint found;
        struct cairn_error error;
        uint64_t target = next_random() >> (16 + next_random() % 48);
        uint64_t parts[3] = {target >> 32 & 0xFFFF, target >> 16 & 0xFFFF, target & 0xFFFF};
        size_t part = 0;
        write_call(machine, region, sizeof region);
        for (size_t i = 0; i < machine->call_words; i++) {
            uint32_t operand = call[i].operand;
            if (operand == 0)
                continue;
            ck_assert_uint_lt(part, 3);
            write_word(machine, region + i * WORD,
                       (call[i].word & ~operand) | (uint32_t)parts[part++]
                                                       << __builtin_ctz(operand));
        }
        expect_equal(recognise(machine, region, sizeof region, &found, &error), CAIRN_OK);
        expect_equal(found.target, target);
    }
}
END_TEST

START_TEST(no_ops_alone_have_no_call)
{
    const struct machine *machine = &machines[_i];
    for (size_t size = WORD; size <= REGION_MAX; size += WORD) {
        uint8_t region[REGION_MAX];
        struct arch_patchpoint found;
        struct cairn_error error;
        write_nops(machine, region, size);
        expect_equal(recognise(machine, region, size, &found, &error), CAIRN_OK);
        expect(!found.has_call);
        expect_equal(found.return_offset, 0);
    }
}
END_TEST

START_TEST(empty_region_is_recognised)
{
    struct arch_patchpoint found;
    struct cairn_error error;
    const uint8_t none = 0xCC;
    expect_equal(recognise(&machines[_i], &none, 0, &found, &error), CAIRN_OK);
    expect(!found.has_call);
}
END_TEST

START_TEST(every_bit_outside_of_operands_is_compared)
{
    enum { SIZE = 64 };
    const struct machine *machine = &machines[_i];
    for (size_t i = 0; i < SIZE / WORD; i++) {
        for (unsigned bit = 0; bit < 32; bit++) {
            uint8_t region[SIZE];
            uint32_t flipped = UINT32_C(1) << bit;
            write_call(machine, region, sizeof region);
            write_word(machine, region + i * WORD, read_word(machine, region + i * WORD) ^ flipped);
            struct arch_patchpoint found;
            struct cairn_error error;
            if ((machine->call[i < SEQUENCE_MAX ? i : 0].operand & flipped) != 0 &&
                i < machine->call_words)
                expect_equal(recognise(machine, region, SIZE, &found, &error), CAIRN_OK);
            else
                expect_word_refused(machine, region, SIZE, i * WORD);
        }
    }
}
END_TEST

START_TEST(first_word_that_llvm_does_not_emit_is_reported)
{
    const struct machine *machine = &machines[_i];
    seed();
    for (int round = 0; round < RANDOM_ROUNDS; round++) {
        uint8_t region[REGION_MAX];
        bool has_call = next_random() % 2 == 0;
        size_t size = (machine->call_words + next_random() % 16) * WORD;
        size_t index = next_random() % (size / WORD);
        uint32_t word = (uint32_t)next_random();
        struct instruction expected = {machine->nop, 0};
        if (has_call)
            write_call(machine, region, size);
        else
            write_nops(machine, region, size);
        if (has_call && index < machine->call_words)
            expected = machine->call[index];
        if (((word ^ expected.word) & ~expected.operand) == 0)
            continue;
        /* The first word determines the sequence, so first words of other sequences are skipped. */
        bool begins_another =
            index == 0 && (((word ^ machine->call[0].word) & ~machine->call[0].operand) == 0 ||
                           ((word ^ machine->branch_with_link) & ~machine->displacement_mask) == 0);
        if (begins_another)
            continue;
        write_word(machine, region + index * WORD, word);
        expect_word_refused(machine, region, size, index * WORD);
    }
}
END_TEST

START_TEST(truncated_call_is_refused_at_its_end)
{
    const struct machine *machine = &machines[_i];
    uint8_t whole[REGION_MAX];
    write_call(machine, whole, sizeof whole);
    for (size_t size = 1; size < machine->call_words_min * WORD; size++) {
        struct arch_patchpoint found;
        struct cairn_error error;
        uint8_t *cut = malloc(size);
        ck_assert_ptr_nonnull(cut);
        memcpy(cut, whole, size);
        expect_equal(recognise(machine, cut, size, &found, &error), CAIRN_ERROR_CORRUPT);
        expect_equal(error.offset, BASE + size / WORD * WORD);
        free(cut);
    }
}
END_TEST

START_TEST(region_of_parts_of_instructions_is_refused)
{
    const struct machine *machine = &machines[_i];
    const struct cairn_arch *arch = table(machine);
    uint8_t region[REGION_MAX];
    write_nops(machine, region, sizeof region);
    for (size_t size = 0; size < sizeof region; size++) {
        for (uint64_t part = 0; part < WORD; part++) {
            struct arch_patchpoint found;
            struct cairn_error error = {0};
            enum cairn_status status =
                arch->recognise(arch, region, size, BASE + part, &found, &error);
            bool whole = size % WORD == 0 && part == 0;
            expect_equal(status, whole ? CAIRN_OK : CAIRN_ERROR_CORRUPT);
        }
    }
}
END_TEST

START_TEST(refused_region_leaves_the_result_unchanged)
{
    const struct machine *machine = &machines[_i];
    uint8_t region[REGION_MAX];
    write_call(machine, region, sizeof region);
    write_word(machine, region + REGION_MAX - WORD, 0);
    struct arch_patchpoint found = {.has_call = true, .target = 7, .return_offset = 9};
    expect_equal(
        table(machine)->recognise(table(machine), region, sizeof region, BASE, &found, NULL),
        CAIRN_ERROR_CORRUPT);
    expect_equal(found.target, 7);
    expect_equal(found.return_offset, 9);
}
END_TEST

/* LLVM calls a symbol this way on PPC64, and a linker may write the reload after the call. */
START_TEST(direct_call_is_recognised_where_llvm_emits_it)
{
    const struct machine *machine = &machines[_i];
    const uint32_t after[] = {machine->nop, machine->reload};
    for (size_t i = 0; i < 2; i++) {
        for (size_t size = 2 * WORD; size <= REGION_MAX; size += WORD) {
            uint8_t region[REGION_MAX];
            struct arch_patchpoint found;
            struct cairn_error error;
            write_nops(machine, region, size);
            write_word(machine, region, machine->branch_with_link | 0x1000);
            write_word(machine, region + WORD, after[i]);
            if (!has_toc(machine)) {
                expect_word_refused(machine, region, size, 0);
                continue;
            }
            expect_equal(recognise(machine, region, size, &found, &error), CAIRN_OK);
            expect(found.has_call);
            expect(found.is_direct);
            expect_equal(found.target, BASE + 0x1000);
            expect_equal(found.return_offset, WORD);
        }
    }
}
END_TEST

START_TEST(wrong_words_after_a_direct_call_are_reported)
{
    const struct machine *machine = &machines[_i];
    if (!has_toc(machine))
        return;
    for (size_t offset = WORD; offset < REGION_MAX; offset += WORD) {
        uint8_t region[REGION_MAX];
        write_nops(machine, region, sizeof region);
        write_word(machine, region, machine->branch_with_link | 0x1000);
        write_word(machine, region + offset, machine->save);
        expect_word_refused(machine, region, sizeof region, offset);
        if (offset == WORD)
            continue;
        write_word(machine, region + offset, machine->reload);
        expect_word_refused(machine, region, sizeof region, offset);
    }
    uint8_t region[WORD];
    struct arch_patchpoint found;
    struct cairn_error error;
    write_word(machine, region, machine->branch_with_link | 0x1000);
    expect_equal(recognise(machine, region, WORD, &found, &error), CAIRN_ERROR_CORRUPT);
    expect_equal(error.offset, BASE + WORD);
}
END_TEST

/* ---- Placement ---- */

static const struct arch_patchpoint no_target = {.has_call = false};

static struct arch_patchpoint call_of(const struct machine *machine)
{
    return (struct arch_patchpoint){
        .has_call = true, .target = TARGET, .return_offset = machine->return_offset};
}

START_TEST(place_is_found_exactly_where_there_is_one)
{
    const struct machine *machine = &machines[_i];
    const struct cairn_arch *arch = table(machine);
    size_t around = has_toc(machine) ? WORD : 0;
    for (size_t size = 0; size <= REGION_MAX; size++) {
        for (uint64_t part = 0; part < WORD; part++) {
            struct arch_placement placement;
            struct cairn_error error = {0};
            enum cairn_status status =
                arch->place(arch, &no_target, size, BASE + part, &placement, &error);
            bool fits = size >= place_bytes_min(machine) && part == 0;
            expect_equal(status, fits ? CAIRN_OK : CAIRN_ERROR_RANGE);
            if (!fits) {
                expect_equal(error.offset, BASE + part);
                continue;
            }
            expect_equal(placement.instruction_offset, around);
            expect_equal(placement.return_offset, around + WORD);
        }
    }
}
END_TEST

START_TEST(call_has_llvm_s_return_address_if_there_is_space)
{
    const struct machine *machine = &machines[_i];
    const struct cairn_arch *arch = table(machine);
    const struct arch_patchpoint call = call_of(machine);
    for (size_t words = machine->call_words_min; words <= REGION_MAX / WORD; words++) {
        struct arch_placement placement;
        expect_equal(arch->place(arch, &call, words * WORD, BASE, &placement, NULL), CAIRN_OK);
        expect_equal(placement.instruction_offset + WORD, placement.return_offset);
        bool reload_outside = words < machine->call_words;
        expect_equal(placement.return_offset,
                     reload_outside ? machine->return_offset - WORD : machine->return_offset);
    }
}
END_TEST

/* Checks each word of an armed region: the patch word, which is still a no-op, and the instructions
 * around it. */
static void expect_armed(const struct machine *machine, const struct arch_patchpoint *patchpoint,
                         size_t size)
{
    const struct cairn_arch *arch = table(machine);
    uint8_t region[REGION_MAX + 1];
    struct arch_placement placement;
    memset(region, 0xCC, sizeof region);
    expect_equal(arch->place(arch, patchpoint, size, BASE, &placement, NULL), CAIRN_OK);
    arch->arm(arch, region, size, patchpoint, &placement);
    for (size_t offset = 0; offset < size; offset += WORD) {
        uint32_t expected = machine->nop;
        if (has_toc(machine) && offset + WORD == placement.instruction_offset)
            expected = machine->save;
        if (has_toc(machine) && offset == placement.return_offset)
            expected = machine->reload;
        expect_equal(read_word(machine, region + offset), expected);
    }
    expect_equal(region[size], 0xCC);
}

START_TEST(armed_region_has_the_patch_word_and_the_instructions_around_it)
{
    const struct machine *machine = &machines[_i];
    const struct arch_patchpoint call = call_of(machine);
    const struct arch_patchpoint direct = {
        .has_call = true, .is_direct = true, .target = BASE, .return_offset = WORD};
    for (size_t size = place_bytes_min(machine); size <= REGION_MAX; size += WORD) {
        expect_armed(machine, &no_target, size);
        expect_armed(machine, &direct, size);
        if (size >= machine->call_words_min * WORD)
            expect_armed(machine, &call, size);
    }
}
END_TEST

/* ---- Branches ---- */

static int64_t reach_of(const struct machine *machine)
{
    return INT64_C(1) << (machine->displacement_bits - 1);
}

START_TEST(other_bits_are_not_decoded_as_branches)
{
    const struct machine *machine = &machines[_i];
    const struct cairn_arch *arch = table(machine);
    seed();
    for (int round = 0; round < RANDOM_ROUNDS; round++) {
        /* Half of them have one of the opcodes, so that similar instructions are checked, too. */
        uint64_t bits = next_random() >> 32;
        uint64_t target;
        enum cairn_site_state branch;
        if (round % 2 == 0)
            bits = machine->branch ^ UINT32_C(1) << round / 2 % 32;
        if (round % 16 == 1)
            bits = machine->branch | UINT64_C(1) << (32 + round / 16 % 32);
        uint64_t opcode = bits & ~(uint64_t)machine->displacement_mask;
        bool expected = opcode == machine->branch || opcode == machine->branch_with_link ||
                        bits == machine->nop;
        expect(arch->decode_branch(arch, bits, BASE, WORD, &branch, &target) == expected);
    }
}
END_TEST

/* ---- Framed veneers ---- */

/* Whether `std register, offset(r1)` is among the instructions before the call. */
static bool stores(const uint32_t *words, size_t count, uint32_t number, size_t offset)
{
    for (size_t i = 0; i < count; i++)
        if (words[i] == (0xF8010000 | number << 21 | (uint32_t)offset))
            return true;
    return false;
}

/* Registers are stored under their own number, except CTR, which is stored from r12. */
START_TEST(frame_of_a_framed_veneer_is_as_in_the_table)
{
    enum { LR = 65, CTR = 66, R12 = 12, BEGIN_WORDS = 7 };
    const struct machine *machine = &machines[_i];
    const struct cairn_arch *arch = table(machine);
    const struct arch_veneer_frame *frame = arch->veneer_frame;
    uint8_t code[ARCH_VENEER_BYTES_MAX];
    uint32_t begin[BEGIN_WORDS];
    expect((frame != NULL) == has_toc(machine));
    if (frame == NULL)
        return;
    expect(arch->encode_framed_veneer(arch, BASE, BASE + 0x12348, code));
    /* mflr, std, stdu; mfctr, and a std for each register */
    size_t count = 4 + frame->register_count;
    for (size_t i = 0; i < BEGIN_WORDS; i++)
        begin[i] = read_word(machine, code + i * WORD);
    expect_equal(begin[2], 0xF8210001 | (-(uint32_t)frame->bytes & 0xFFFC));
    expect(stores(begin, 2, R12, frame->return_address));
    expect_equal(frame->registers[0].dwarf, arch->toc_register);
    expect_equal(frame->registers[0].offset, arch->toc_save_offset);
    for (size_t i = 0; i < frame->register_count; i++) {
        uint32_t dwarf = frame->registers[i].dwarf;
        expect(stores(begin + 3, count - 3, dwarf == CTR ? (uint32_t)R12 : dwarf,
                      frame->registers[i].offset));
    }
    expect_equal(read_word(machine, code + frame->return_offset - WORD), 0x4E800421 /* bctrl */);
    expect_equal(arch->unwind_slots[ARCH_UNWIND_RETURN_ADDRESS].dwarf, LR);
}
END_TEST

/* ---- Tables ---- */

START_TEST(table_agrees_with_the_manuals)
{
    const struct machine *machine = &machines[_i];
    const struct cairn_arch *arch = table(machine);
    expect_equal(arch->word_bytes, WORD);
    expect_equal(arch->instruction_bytes, WORD);
    expect_equal(arch->instruction_bytes_max, WORD);
    expect_equal(arch->fixed_instruction_bytes, WORD);
    expect_equal(arch->reach_bytes, (size_t)reach_of(machine));
    expect_equal(arch->toc_save_offset, machine->save & 0xFFFF);
    expect(arch->calls_need_veneer == has_toc(machine));
    expect(arch->has_descriptors == (_i == PPC64_ELFV1));
    expect_equal(arch->byte_order, machine->big_endian ? CAIRN_BIG_ENDIAN : CAIRN_LITTLE_ENDIAN);
    expect_equal(arch->call_bytes, has_toc(machine) ? 3 * WORD : WORD);
    expect_equal(arch->veneer_bytes % arch->veneer_alignment, 0);
    expect_equal(arch->framed_veneer_bytes % arch->veneer_alignment, 0);
}
END_TEST

/* ---- Instructions that may change while they are executed ---- */

static bool may_be_exchanged(const struct machine *machine, uint32_t word)
{
    uint8_t bytes[WORD];
    for (unsigned i = 0; i < WORD; i++)
        bytes[i] = (uint8_t)(word >> (8 * (machine->big_endian ? WORD - 1 - i : i)));
    const struct cairn_arch *arch = arch_find(machine->architecture);
    return arch->may_be_exchanged(arch, bytes, WORD);
}

/* The instructions of the manuals' lists, and similar ones. */
static const struct {
    uint32_t word;
    bool may;
} exchanged_on_aarch64[] = {
    {0x14000000, true},  {0x17FFFFFF, true},  /* b */
    {0x94000001, true},  {0x97FFFFFF, true},  /* bl */
    {0xD503201F, true},                       /* nop */
    {0xD5033FDF, true},  {0xD50330DF, true},  /* isb */
    {0xD4000001, true},  {0xD41FFFE1, true},  /* svc */
    {0xD4000002, true},  {0xD4000003, true},  /* hvc, smc */
    {0xD4200000, true},  {0xD43FFFE0, true},  /* brk */
    {0xD4400000, false}, {0xD4000000, false}, /* hlt, - */
    {0xD4A00001, false},                      /* dcps1 */
    {0xD503203F, false}, {0xD503241F, false}, /* yield, bti */
    {0xD5033F9F, false}, {0xD5033FBF, false}, /* dsb, dmb */
    {0x54000000, false}, {0xB4000000, false}, /* b.eq, cbz */
    {0x36000000, false}, {0xD61F0200, false}, /* tbz, br */
    {0xD63F0200, false}, {0xD65F03C0, false}, /* blr, ret */
    {0x91000400, false}, {0xF9400000, false}, /* add, ldr */
    {0x10000000, false}, {0xAA0003E0, false}, /* adr, mov */
    {0x00000000, false},                      /* udf */
};
static const struct {
    uint32_t word;
    bool may;
} exchanged_on_ppc64[] = {
    {0x48000000, true},  {0x48000001, true},  /* b, bl */
    {0x48000002, true},  {0x4BFFFFFF, true},  /* ba, bla */
    {0x60000000, true},                       /* nop */
    {0x60210000, false}, {0x60000001, false}, /* ori */
    {0x41820008, false}, {0x42800000, false}, /* beq, bc always */
    {0x4E800020, false}, {0x4E800421, false}, /* blr, bctrl */
    {0x44000002, false}, {0x4C00012C, false}, /* sc, isync */
    {0x38630001, false}, {0xE8410018, false}, /* addi, ld */
    {0x7FE00008, false},                      /* trap */
};

START_TEST(instructions_of_the_manual_s_list_alone_may_change_while_they_are_executed)
{
    const struct machine *machine = &machines[_i];
    if (machine->architecture == CAIRN_ARCHITECTURE_AARCH64)
        for (size_t i = 0; i < sizeof exchanged_on_aarch64 / sizeof *exchanged_on_aarch64; i++)
            ck_assert_msg(may_be_exchanged(machine, exchanged_on_aarch64[i].word) ==
                              exchanged_on_aarch64[i].may,
                          "0x%08x", exchanged_on_aarch64[i].word);
    else
        for (size_t i = 0; i < sizeof exchanged_on_ppc64 / sizeof *exchanged_on_ppc64; i++)
            ck_assert_msg(may_be_exchanged(machine, exchanged_on_ppc64[i].word) ==
                              exchanged_on_ppc64[i].may,
                          "0x%08x", exchanged_on_ppc64[i].word);
}
END_TEST

/* Checks all instructions that a site can contain against the manuals' lists. */
START_TEST(every_branch_may_change_while_it_is_executed)
{
    const struct machine *machine = &machines[_i];
    const struct cairn_arch *arch = arch_find(machine->architecture);
    for (enum cairn_site_state branch = CAIRN_SITE_NOP; branch <= CAIRN_SITE_JUMP; branch++)
        for (uint64_t distance = WORD; distance < arch->reach_bytes; distance *= 2) {
            uint64_t bits;
            expect(arch->encode_branch(arch, branch, BASE, BASE + distance, WORD, &bits));
            expect(may_be_exchanged(machine, (uint32_t)bits));
            expect(arch->encode_branch(arch, branch, BASE, BASE - distance, WORD, &bits));
            expect(may_be_exchanged(machine, (uint32_t)bits));
        }
}
END_TEST

/* ---- The suite ---- */

#define ADD(tests, test) tcase_add_loop_test((tests), test, 0, MACHINE_COUNT)

static void add_tests_of_no_ops(TCase *tests)
{
    ADD(tests, whole_no_ops_are_counted);
    ADD(tests, truncated_no_op_is_not_counted);
    ADD(tests, calls_are_one_instruction_long);
    ADD(tests, counting_ends_before_the_first_other_instruction);
    ADD(tests, instructions_similar_to_no_ops_are_not_counted);
}

static void add_tests_of_regions(TCase *tests)
{
    ADD(tests, call_is_recognised_at_every_size);
    ADD(tests, every_target_of_48_bits_is_recognised);
    ADD(tests, no_ops_alone_have_no_call);
    ADD(tests, empty_region_is_recognised);
    ADD(tests, every_bit_outside_of_operands_is_compared);
    ADD(tests, first_word_that_llvm_does_not_emit_is_reported);
    ADD(tests, truncated_call_is_refused_at_its_end);
    ADD(tests, region_of_parts_of_instructions_is_refused);
    ADD(tests, refused_region_leaves_the_result_unchanged);
    ADD(tests, direct_call_is_recognised_where_llvm_emits_it);
    ADD(tests, wrong_words_after_a_direct_call_are_reported);
    ADD(tests, place_is_found_exactly_where_there_is_one);
    ADD(tests, call_has_llvm_s_return_address_if_there_is_space);
    ADD(tests, armed_region_has_the_patch_word_and_the_instructions_around_it);
}

static void add_tests_of_branches(TCase *tests)
{
    ADD(tests, other_bits_are_not_decoded_as_branches);
    ADD(tests, instructions_of_the_manual_s_list_alone_may_change_while_they_are_executed);
    ADD(tests, every_branch_may_change_while_it_is_executed);
}

static void add_tests_of_stubs(TCase *tests)
{
    ADD(tests, frame_of_a_framed_veneer_is_as_in_the_table);
    ADD(tests, table_agrees_with_the_manuals);
}

int main(void)
{
    Suite *suite = suite_create("arch words");
    TCase *tests = tcase_create("arch words");
    add_tests_of_no_ops(tests);
    add_tests_of_regions(tests);
    add_tests_of_branches(tests);
    add_tests_of_stubs(tests);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
