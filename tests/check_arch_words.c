/*
 * Tests of the architecture tables of AArch64 and PPC64, the counterpart of check_arch.c for
 * x86-64: recognising LLVM's code, placing and encoding branches, no-ops, veneers. Each test runs
 * for each machine. The expected values are numbers from the manuals. check_encoders.c checks that
 * LLVM decodes them the same way, and check_llvm_sequences.c that LLVM emits them.
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

enum {
    REGION_MAX = 128,
    WORD = 4,
    SEQUENCE_MAX = 10,
    VENEER_WORDS_MAX = 28,
    RANDOM_ROUNDS = 20000
};

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
    unsigned displacement_shift;
    uint32_t like_no_ops[4];
    uint32_t self_test[2]; /* code that returns 7 */
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
            .displacement_shift = 2,
            .like_no_ops = {0xD503203F, 0xD503203E, 0, 0xAA0003E0}, /* yield, -, udf, mov x0, x0 */
            .self_test = {0x528000E0, 0xD65F03C0},
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
            .like_no_ops = {0x60210000, 0x60000001, 0, 0x7C631B78}, /* ori r1, r1, 0 and others */
            .self_test = {0x38600007, 0x4E800020},
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
            .like_no_ops = {0x60210000, 0x60000001, 0, 0x7C631B78},
            .self_test = {0x38600007, 0x4E800020},
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

START_TEST(no_op_is_counted_whole)
{
    const struct machine *machine = &machines[_i];
    uint8_t bytes[REGION_MAX];
    write_nops(machine, bytes, sizeof bytes);
    for (size_t size = 0; size <= sizeof bytes; size++)
        expect_equal(table(machine)->leading_nops(table(machine), bytes, size), size / WORD * WORD);
}
END_TEST

START_TEST(cut_no_op_is_none)
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

START_TEST(instructions_that_are_like_no_ops_are_none)
{
    const struct machine *machine = &machines[_i];
    for (size_t i = 0; i < sizeof machine->like_no_ops / WORD; i++) {
        uint8_t bytes[WORD];
        write_word(machine, bytes, machine->like_no_ops[i]);
        expect_equal(table(machine)->leading_nops(table(machine), bytes, WORD), 0);
    }
}
END_TEST

START_TEST(filling_writes_no_ops_and_nothing_behind)
{
    const struct machine *machine = &machines[_i];
    for (size_t size = 0; size <= REGION_MAX; size++) {
        uint8_t filled[REGION_MAX + 1];
        uint8_t expected[REGION_MAX + 1];
        memset(filled, 0xCC, sizeof filled);
        memset(expected, 0xCC, sizeof expected);
        write_nops(machine, expected, size / WORD * WORD);
        table(machine)->fill_nops(table(machine), filled, size);
        expect_equal(memcmp(filled, expected, sizeof filled), 0);
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

START_TEST(every_bit_that_is_no_operand_counts)
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

START_TEST(first_word_that_is_not_llvm_s_is_named)
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

START_TEST(call_that_is_cut_is_refused_where_it_ends)
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

START_TEST(refused_region_leaves_the_answer_alone)
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
    const uint32_t behind[] = {machine->nop, machine->reload};
    for (size_t i = 0; i < 2; i++) {
        for (size_t size = 2 * WORD; size <= REGION_MAX; size += WORD) {
            uint8_t region[REGION_MAX];
            struct arch_patchpoint found;
            struct cairn_error error;
            write_nops(machine, region, size);
            write_word(machine, region, machine->branch_with_link | 0x1000);
            write_word(machine, region + WORD, behind[i]);
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

START_TEST(direct_call_s_other_words_are_named)
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

START_TEST(call_returns_where_llvm_s_did_if_there_is_room)
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

START_TEST(armed_region_holds_the_patch_word_and_what_belongs_to_it)
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

static const enum arch_branch branches[] = {ARCH_BRANCH_CALL, ARCH_BRANCH_JUMP};

static int64_t reach_of(const struct machine *machine)
{
    return INT64_C(1) << (machine->displacement_bits - 1);
}

static void check_round_trip(const struct machine *machine, enum arch_branch branch,
                             uint64_t address, int64_t displacement)
{
    const struct cairn_arch *arch = table(machine);
    uint64_t bits;
    uint64_t decoded_target;
    enum arch_branch decoded;
    uint64_t target = address + (uint64_t)displacement;
    uint32_t opcode = branch == ARCH_BRANCH_CALL ? machine->branch_with_link : machine->branch;
    expect(arch->encode_branch(arch, branch, address, target, WORD, &bits));
    expect_equal(bits, opcode | ((uint32_t)displacement >> machine->displacement_shift &
                                 machine->displacement_mask));
    expect(arch->decode_branch(arch, bits, address, WORD, &decoded, &decoded_target));
    expect_equal(decoded, branch);
    expect_equal(decoded_target, target);
}

START_TEST(branches_come_back_at_every_edge_of_the_reach)
{
    const struct machine *machine = &machines[_i];
    int64_t reach = reach_of(machine);
    const int64_t displacements[] = {-reach, -reach + 4, -4096, -4,        0,
                                     4,      4096,       0x7FC, reach - 8, reach - 4};
    for (size_t i = 0; i < sizeof displacements / sizeof *displacements; i++) {
        for (size_t j = 0; j < 2; j++) {
            check_round_trip(machine, branches[j], BASE, displacements[i]);
            check_round_trip(machine, branches[j], 0, displacements[i]);
        }
    }
}
END_TEST

START_TEST(branches_come_back_at_every_power_of_two_and_at_random)
{
    const struct machine *machine = &machines[_i];
    seed();
    for (unsigned bit = 2; bit + 1 < machine->displacement_bits; bit++) {
        check_round_trip(machine, ARCH_BRANCH_CALL, BASE, INT64_C(1) << bit);
        check_round_trip(machine, ARCH_BRANCH_JUMP, BASE, -(INT64_C(1) << bit));
    }
    for (int round = 0; round < RANDOM_ROUNDS; round++) {
        uint64_t address = next_random() & ~UINT64_C(3);
        int64_t displacement =
            (int64_t)(next_random() % (uint64_t)(2 * reach_of(machine))) - reach_of(machine);
        check_round_trip(machine, branches[round % 2], address, displacement & ~INT64_C(3));
    }
}
END_TEST

START_TEST(one_step_beyond_the_reach_is_refused)
{
    const struct machine *machine = &machines[_i];
    const struct cairn_arch *arch = table(machine);
    int64_t reach = reach_of(machine);
    const int64_t beyond[] = {reach,
                              reach + 4,
                              -reach - 4,
                              -reach - 8,
                              INT64_C(1) << 31,
                              -(INT64_C(1) << 31),
                              INT64_C(1) << 32,
                              -(INT64_C(1) << 32),
                              INT64_C(1) << 62,
                              INT64_MIN};
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        for (size_t j = 0; j < 2; j++) {
            uint64_t bits;
            expect(!arch->encode_branch(arch, branches[j], BASE, BASE + (uint64_t)beyond[i], WORD,
                                        &bits));
        }
    }
}
END_TEST

START_TEST(target_that_is_no_instruction_s_address_is_refused)
{
    const struct machine *machine = &machines[_i];
    const struct cairn_arch *arch = table(machine);
    int64_t reach = reach_of(machine);
    const int64_t aligned[] = {-reach, -4, 0, 4, reach - 4};
    for (size_t i = 0; i < sizeof aligned / sizeof *aligned; i++) {
        for (uint64_t part = 1; part < WORD; part++) {
            uint64_t bits;
            uint64_t target = BASE + (uint64_t)aligned[i] + part;
            expect(!arch->encode_branch(arch, ARCH_BRANCH_CALL, BASE, target, WORD, &bits));
            expect(!arch->encode_branch(arch, ARCH_BRANCH_JUMP, BASE, target, WORD, &bits));
        }
    }
}
END_TEST

START_TEST(no_op_ignores_its_target)
{
    const struct machine *machine = &machines[_i];
    const struct cairn_arch *arch = table(machine);
    uint64_t bits;
    uint64_t target;
    enum arch_branch branch;
    expect(arch->encode_branch(arch, ARCH_BRANCH_NOP, BASE, 3, WORD, &bits));
    expect_equal(bits, machine->nop);
    expect(arch->decode_branch(arch, bits, BASE, WORD, &branch, &target));
    expect_equal(branch, ARCH_BRANCH_NOP);
    expect_equal(target, 0);
}
END_TEST

START_TEST(other_bits_are_no_branch)
{
    const struct machine *machine = &machines[_i];
    const struct cairn_arch *arch = table(machine);
    seed();
    for (int round = 0; round < RANDOM_ROUNDS; round++) {
        /* Half of them have one of the opcodes, so that similar instructions are checked, too. */
        uint64_t bits = next_random() >> 32;
        uint64_t target;
        enum arch_branch branch;
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

START_TEST(slab_is_in_reach_of_itself)
{
    const struct machine *machine = &machines[_i];
    const struct cairn_arch *arch = table(machine);
    uint64_t bits;
    uint64_t last = BASE + arch->reach_bytes - WORD;
    expect(arch->encode_branch(arch, ARCH_BRANCH_CALL, BASE, last, WORD, &bits));
    expect(arch->encode_branch(arch, ARCH_BRANCH_CALL, last, BASE, WORD, &bits));
    ck_assert_uint_le(arch->slab_bytes_default, arch->reach_bytes);
}
END_TEST

/* ---- Stubs ---- */

static void encode_veneer(const struct machine *machine, uint64_t address, uint64_t slot,
                          uint32_t *words)
{
    const struct cairn_arch *arch = table(machine);
    uint8_t code[ARCH_VENEER_BYTES_MAX + 1];
    memset(code, 0xEE, sizeof code);
    expect(arch->encode_veneer(arch, address, slot, code));
    ck_assert_uint_le(arch->veneer_bytes, VENEER_WORDS_MAX * WORD);
    for (size_t i = 0; i < arch->veneer_bytes / WORD; i++)
        words[i] = read_word(machine, code + i * WORD);
    expect_equal(code[arch->veneer_bytes], 0xEE);
}

/* Returns the address that the veneer's first instructions load from, by the manual's
 * definitions. */
static uint64_t loaded_by_aarch64(uint64_t address, const uint32_t *words)
{
    uint64_t pages = (words[0] >> 29 & 3) | (uint64_t)(words[0] >> 5 & 0x7FFFF) << 2;
    pages = (pages ^ (1U << 20)) - (1U << 20);
    expect_equal(words[0] & 0x9F00001F, 0x90000010); /* adrp x16 */
    expect_equal(words[1] & 0xFFC003FF, 0xF9400210); /* ldr x16, [x16, #] */
    return (address & ~UINT64_C(0xFFF)) + (pages << 12) + (words[1] >> 10 & 0xFFF) * 8;
}

static uint64_t sign_extended(uint32_t word) { return (uint64_t)(int64_t)(int16_t)(uint16_t)word; }

static uint64_t loaded_by_ppc64(const uint32_t *words)
{
    expect_equal(words[0] >> 16, 0x3D80); /* lis r12 */
    expect_equal(words[1] >> 16, 0x618C); /* ori r12, r12 */
    expect_equal(words[2], 0x798C07C6);   /* sldi r12, r12, 32 */
    expect_equal(words[3] >> 16, 0x658C); /* oris r12, r12 */
    expect_equal(words[4] >> 16, 0xE98C); /* ld r12, #(r12) */
    expect_equal(words[4] & 3, 0);
    uint64_t value = sign_extended(words[0]) << 16;
    value |= words[1] & 0xFFFF;
    value <<= 32;
    value |= (uint64_t)(words[3] & 0xFFFF) << 16;
    return value + sign_extended(words[4]);
}

static uint64_t loaded(const struct machine *machine, uint64_t address, const uint32_t *words)
{
    if (!has_toc(machine))
        return loaded_by_aarch64(address, words);
    expect_equal(words[0], machine->save);
    return loaded_by_ppc64(words + 1);
}

/* The instructions after the load of the slot. */
static const uint32_t veneer_ends[MACHINE_COUNT][VENEER_WORDS_MAX] = {
    [AARCH64] = {0xD61F0200 /* br x16 */, 0xD4200000 /* brk */},
    [PPC64_ELFV2] = {0x7D8903A6 /* mtctr r12 */, 0x4E800420 /* bctr */},
    [PPC64_ELFV1] = {0xE96C0000 /* ld r11, 0(r12) */, 0xE84C0008 /* ld r2, 8(r12) */,
                     0x7D6903A6 /* mtctr r11 */, 0xE96C0010 /* ld r11, 16(r12) */,
                     0x4E800420 /* bctr */, 0x7FE00008 /* trap */},
};

START_TEST(veneer_jumps_through_its_slot)
{
    const struct machine *machine = &machines[_i];
    uint32_t words[VENEER_WORDS_MAX] = {0};
    size_t load_words = has_toc(machine) ? 6 : 2;
    size_t count = table(machine)->veneer_bytes / WORD;
    encode_veneer(machine, BASE, BASE + 0x12348, words);
    expect_equal(loaded(machine, BASE, words), BASE + 0x12348);
    for (size_t i = load_words; i < count; i++)
        expect_equal(words[i], veneer_ends[_i][i - load_words]);
    expect_equal(veneer_ends[_i][count - load_words], 0);
}
END_TEST

START_TEST(veneer_loads_every_slot_of_its_slab)
{
    const struct machine *machine = &machines[_i];
    uint64_t reach = table(machine)->reach_bytes;
    seed();
    for (int round = 0; round < RANDOM_ROUNDS; round++) {
        uint32_t words[VENEER_WORDS_MAX] = {0};
        uint64_t base = next_random() >> (1 + next_random() % 32) & ~UINT64_C(0xFFF);
        uint64_t address = base + (next_random() % reach & ~UINT64_C(15));
        uint64_t slot = base + (next_random() % reach & ~UINT64_C(7));
        encode_veneer(machine, address, slot, words);
        expect_equal(loaded(machine, address, words), slot);
    }
}
END_TEST

START_TEST(veneer_loads_slots_around_every_carry)
{
    const struct machine *machine = &machines[_i];
    static const uint64_t bases[] = {0x7F0000000000, 0x7F0012340000, 0x7F00FFFF0000, 0x7FFFFFFF0000,
                                     0xFFFFFFFF0000};
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        for (uint64_t offset = 0; offset < 0x20000; offset += 8) {
            uint32_t words[VENEER_WORDS_MAX] = {0};
            encode_veneer(machine, bases[i], bases[i] + offset, words);
            expect_equal(loaded(machine, bases[i], words), bases[i] + offset);
        }
    }
}
END_TEST

START_TEST(veneer_reaches_a_slot_up_to_the_edge)
{
    const struct machine *machine = &machines[_i];
    const struct cairn_arch *arch = table(machine);
    uint8_t code[ARCH_VENEER_BYTES_MAX];
    uint64_t reach = UINT64_C(1) << 32;
    bool relative = !has_toc(machine);
    for (uint64_t part = 0; part < 0x1000; part += 16) {
        uint64_t from = BASE + part;
        expect(arch->encode_veneer(arch, from, BASE + reach - 8, code));
        expect(arch->encode_veneer(arch, from, BASE + reach, code) == !relative);
        expect(arch->encode_veneer(arch, from, BASE - reach, code));
        expect(arch->encode_veneer(arch, from, BASE - reach - 8, code) == !relative);
    }
}
END_TEST

/* The instructions before and after the load of the slot. */
static const struct {
    uint32_t begin[8];
    size_t begin_words;
    uint32_t end[VENEER_WORDS_MAX];
} framed_veneers[MACHINE_COUNT] = {
    [PPC64_ELFV2] = {{0x7D8802A6 /* mflr r12 */, 0xF9810010 /* std r12, 16(r1) */,
                      0xF821FF91 /* stdu r1, -112(r1) */, 0xF8410018 /* std r2, 24(r1) */,
                      0x7D8902A6 /* mfctr r12 */, 0xF9810060 /* std r12, 96(r1) */},
                     6,
                     {0x7D8903A6 /* mtctr r12 */, 0x4E800421 /* bctrl */,
                      0xE8410018 /* ld r2, 24(r1) */, 0xE9810060 /* ld r12, 96(r1) */,
                      0x7D8903A6 /* mtctr r12 */, 0x38210070 /* addi r1, r1, 112 */,
                      0xE9810010 /* ld r12, 16(r1) */, 0x7D8803A6 /* mtlr r12 */,
                      0x4E800020 /* blr */}},
    [PPC64_ELFV1] = {{0x7D8802A6, 0xF9810010, 0xF821FF81 /* stdu r1, -128(r1) */,
                      0xF8410028 /* std r2, 40(r1) */, 0x7D8902A6,
                      0xF9810070 /* std r12, 112(r1) */, 0xF9610078 /* std r11, 120(r1) */},
                     7,
                     {0xE96C0000, 0xE84C0008, 0x7D6903A6, 0xE96C0010, 0x4E800421,
                      0xE8410028 /* ld r2, 40(r1) */, 0xE9810070 /* ld r12, 112(r1) */, 0x7D8903A6,
                      0xE9610078 /* ld r11, 120(r1) */, 0x38210080 /* addi r1, r1, 128 */,
                      0xE9810010, 0x7D8803A6, 0x4E800020, 0x7FE00008, 0x7FE00008, 0x7FE00008}},
};

START_TEST(framed_veneer_keeps_what_a_call_changes)
{
    const struct machine *machine = &machines[_i];
    const struct cairn_arch *arch = table(machine);
    uint8_t code[ARCH_VENEER_BYTES_MAX + 1];
    uint32_t words[VENEER_WORDS_MAX + 1] = {0};
    size_t count = arch->framed_veneer_bytes / WORD;
    expect((arch->encode_framed_veneer != NULL) == has_toc(machine));
    expect((count > 0) == has_toc(machine));
    if (count == 0)
        return;
    memset(code, 0xEE, sizeof code);
    expect(arch->encode_framed_veneer(arch, BASE, BASE + 0x12348, code));
    for (size_t i = 0; i < count; i++)
        words[i] = read_word(machine, code + i * WORD);
    expect_equal(code[arch->framed_veneer_bytes], 0xEE);
    size_t begin = framed_veneers[_i].begin_words;
    for (size_t i = 0; i < begin; i++)
        expect_equal(words[i], framed_veneers[_i].begin[i]);
    expect_equal(loaded_by_ppc64(words + begin), BASE + 0x12348);
    for (size_t i = begin + 5; i < count; i++)
        expect_equal(words[i], framed_veneers[_i].end[i - begin - 5]);
    expect_equal(words[arch->veneer_frame->return_offset / WORD - 1], 0x4E800421 /* bctrl */);
}
END_TEST

/* Whether `std register, offset(r1)` is among the instructions before the call. */
static bool stores(const uint32_t *words, size_t count, uint32_t number, size_t offset)
{
    for (size_t i = 0; i < count; i++)
        if (words[i] == (0xF8010000 | number << 21 | (uint32_t)offset))
            return true;
    return false;
}

/* Registers are stored under their own number, except CTR, which is stored from r12. */
START_TEST(framed_veneer_s_frame_is_as_the_table_says)
{
    enum { LR = 65, CTR = 66, R12 = 12 };
    const struct machine *machine = &machines[_i];
    const struct cairn_arch *arch = table(machine);
    const struct arch_veneer_frame *frame = arch->veneer_frame;
    const uint32_t *begin = framed_veneers[_i].begin;
    size_t count = framed_veneers[_i].begin_words;
    expect((frame != NULL) == has_toc(machine));
    if (frame == NULL)
        return;
    expect_equal(begin[2], 0xF8210001 | (-(uint32_t)frame->bytes & 0xFFFC));
    expect(stores(begin, 2, R12, frame->return_address));
    expect_equal(frame->registers[0].dwarf, arch->toc_register);
    expect_equal(frame->registers[0].offset, arch->toc_save_offset);
    for (size_t i = 0; i < frame->register_count; i++) {
        uint32_t dwarf = frame->registers[i].dwarf;
        expect(stores(begin + 3, count - 3, dwarf == CTR ? (uint32_t)R12 : dwarf,
                      frame->registers[i].offset));
    }
    expect_equal(frame->register_count, count - 4);
    expect_equal(arch->unwind_slots[ARCH_UNWIND_RETURN_ADDRESS].dwarf, LR);
}
END_TEST

/* Returns the address of the data that the exit's entry receives. Checks that the entry's address
 * is loaded from the same data. */
static uint64_t handed_over(const struct machine *machine, uint64_t address, uint32_t *words)
{
    if (has_toc(machine)) {
        expect_equal(words[5], 0x7D8903A6);             /* mtctr r12 */
        expect_equal(words[10] >> 16, 0x398C);          /* addi r12, r12 */
        expect_equal(words[11], 0x4E800420);            /* bctr */
        words[10] = (words[10] & 0xFFFF) | 0xE98C0000U; /* as if it loaded from there */
        expect_equal(loaded_by_ppc64(words), loaded_by_ppc64(words + 6));
        return loaded_by_ppc64(words);
    }
    expect_equal(words[1] & 0xFFC003FF, 0x91000210); /* add x16, x16, # */
    expect_equal(words[2], 0xF9400211);              /* ldr x17, [x16] */
    expect_equal(words[3], 0xD61F0220);              /* br x17 */
    uint32_t offset = words[1] >> 10 & 0xFFF;
    words[1] = 0xF9400210;
    return loaded_by_aarch64(address, words) + offset;
}

START_TEST(exit_hands_over_every_data_of_its_slab)
{
    const struct machine *machine = &machines[_i];
    const struct cairn_arch *arch = table(machine);
    uint64_t reach = arch->reach_bytes;
    seed();
    for (int round = 0; round < RANDOM_ROUNDS; round++) {
        uint32_t words[ARCH_EXIT_CODE_BYTES_MAX / WORD] = {0};
        uint8_t code[ARCH_EXIT_CODE_BYTES_MAX + 1];
        uint64_t base = next_random() >> (1 + next_random() % 32) & ~UINT64_C(0xFFF);
        uint64_t address = base + (next_random() % reach & ~UINT64_C(15));
        uint64_t data = base + (next_random() % reach & ~UINT64_C(7));
        memset(code, 0xEE, sizeof code);
        expect(arch->encode_exit(arch, address, data, code));
        expect_equal(code[arch->exit_bytes], 0xEE);
        for (size_t i = 0; i < arch->exit_bytes / WORD; i++)
            words[i] = read_word(machine, code + i * WORD);
        expect_equal(handed_over(machine, address, words), data);
    }
}
END_TEST

START_TEST(exit_reaches_its_data_up_to_the_edge)
{
    const struct machine *machine = &machines[_i];
    const struct cairn_arch *arch = table(machine);
    uint8_t code[ARCH_EXIT_CODE_BYTES_MAX];
    uint64_t reach = UINT64_C(1) << 32;
    bool relative = !has_toc(machine);
    expect(arch->encode_exit(arch, BASE, BASE + reach - 8, code));
    expect(arch->encode_exit(arch, BASE, BASE + reach, code) == !relative);
    expect(arch->encode_exit(arch, BASE, BASE - reach, code));
    expect(arch->encode_exit(arch, BASE, BASE - reach - 8, code) == !relative);
}
END_TEST

START_TEST(self_test_is_a_function)
{
    const struct machine *machine = &machines[_i];
    const struct cairn_arch *arch = table(machine);
    uint8_t code[ARCH_SELF_TEST_BYTES_MAX];
    expect_equal(arch->encode_self_test(arch, 7, code), 2 * WORD);
    expect_equal(read_word(machine, code), machine->self_test[0]);
    expect_equal(read_word(machine, code + WORD), machine->self_test[1]);
    for (int value = 0; value <= 1000; value++) {
        arch->encode_self_test(arch, value, code);
        uint32_t word = read_word(machine, code);
        expect_equal((int)(has_toc(machine) ? word & 0xFFFF : word >> 5 & 0xFFFF), value);
    }
}
END_TEST

/* ---- Tables ---- */

START_TEST(table_says_what_the_manuals_say)
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

/* ---- The suite ---- */

#define ADD(tests, test) tcase_add_loop_test((tests), test, 0, MACHINE_COUNT)

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
    for (enum arch_branch branch = ARCH_BRANCH_NOP; branch <= ARCH_BRANCH_JUMP; branch++)
        for (uint64_t distance = WORD; distance < arch->reach_bytes; distance *= 2) {
            uint64_t bits;
            expect(arch->encode_branch(arch, branch, BASE, BASE + distance, WORD, &bits));
            expect(may_be_exchanged(machine, (uint32_t)bits));
            expect(arch->encode_branch(arch, branch, BASE, BASE - distance, WORD, &bits));
            expect(may_be_exchanged(machine, (uint32_t)bits));
        }
}
END_TEST

static void add_tests_of_no_ops(TCase *tests)
{
    ADD(tests, no_op_is_counted_whole);
    ADD(tests, cut_no_op_is_none);
    ADD(tests, calls_are_one_instruction_long);
    ADD(tests, counting_ends_before_the_first_other_instruction);
    ADD(tests, instructions_that_are_like_no_ops_are_none);
    ADD(tests, filling_writes_no_ops_and_nothing_behind);
}

static void add_tests_of_regions(TCase *tests)
{
    ADD(tests, call_is_recognised_at_every_size);
    ADD(tests, every_target_of_48_bits_is_recognised);
    ADD(tests, no_ops_alone_have_no_call);
    ADD(tests, empty_region_is_recognised);
    ADD(tests, every_bit_that_is_no_operand_counts);
    ADD(tests, first_word_that_is_not_llvm_s_is_named);
    ADD(tests, call_that_is_cut_is_refused_where_it_ends);
    ADD(tests, region_of_parts_of_instructions_is_refused);
    ADD(tests, refused_region_leaves_the_answer_alone);
    ADD(tests, direct_call_is_recognised_where_llvm_emits_it);
    ADD(tests, direct_call_s_other_words_are_named);
    ADD(tests, place_is_found_exactly_where_there_is_one);
    ADD(tests, call_returns_where_llvm_s_did_if_there_is_room);
    ADD(tests, armed_region_holds_the_patch_word_and_what_belongs_to_it);
}

static void add_tests_of_branches(TCase *tests)
{
    ADD(tests, branches_come_back_at_every_edge_of_the_reach);
    ADD(tests, branches_come_back_at_every_power_of_two_and_at_random);
    ADD(tests, one_step_beyond_the_reach_is_refused);
    ADD(tests, target_that_is_no_instruction_s_address_is_refused);
    ADD(tests, no_op_ignores_its_target);
    ADD(tests, other_bits_are_no_branch);
    ADD(tests, slab_is_in_reach_of_itself);
    ADD(tests, instructions_of_the_manual_s_list_alone_may_change_while_they_are_executed);
    ADD(tests, every_branch_may_change_while_it_is_executed);
}

static void add_tests_of_stubs(TCase *tests)
{
    ADD(tests, veneer_jumps_through_its_slot);
    ADD(tests, veneer_loads_every_slot_of_its_slab);
    ADD(tests, veneer_loads_slots_around_every_carry);
    ADD(tests, veneer_reaches_a_slot_up_to_the_edge);
    ADD(tests, framed_veneer_keeps_what_a_call_changes);
    ADD(tests, framed_veneer_s_frame_is_as_the_table_says);
    ADD(tests, exit_hands_over_every_data_of_its_slab);
    ADD(tests, exit_reaches_its_data_up_to_the_edge);
    ADD(tests, self_test_is_a_function);
    ADD(tests, table_says_what_the_manuals_say);
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
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
