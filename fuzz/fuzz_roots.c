/*
 * Fuzzes roots of a statepoint's frame, on its stack and in saved registers. Enumerating them gives
 * the record's pairs, twice in the same order. Relocating, compared with a model, moves each base
 * once, keeps the offset of each derived pointer from its base, and changes nothing else. An error
 * leaves everything unchanged.
 *
 * Input: the number of deopt values, then pairs of two bytes: which base, and which derived
 * pointer, an invalid location, or a null base.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "frame/frame.h"
#include "fuzz/fuzz.h"
#include "tests/section_writer.h"

#include <cairn/roots.h>

enum {
    CODE = 0x1000,
    RETURN_OFFSET = 0x20,
    /* Word 4 * i of the stack is a base, and the following three words are derived from it. The
     * bases of the last two groups are in registers. */
    GROUP_WORDS = 4,
    STACK_GROUPS = 24,
    GROUPS = STACK_GROUPS + 2,
    STACK_WORDS = GROUP_WORDS * GROUPS,
    LOCATIONS_MAX = 400
};

static uint64_t stack[STACK_WORDS];
static uint64_t saved[FRAME_SLOTS];
static bool is_used[STACK_WORDS];
static struct cairn_frame frame;
static struct cairn_location locations[LOCATIONS_MAX];
static uint16_t location_count;
static size_t pair_count; /* not counting constants */
static bool is_odd;       /* whether there is a location that is invalid for roots */

static const struct arch_unwind_slot *kept(unsigned index)
{
    return &arch_host()->unwind_slots[ARCH_UNWIND_RETURN_ADDRESS + 1 + index];
}

/* Returns the place of a word of the model. */
static uint64_t *place_of(uint32_t word)
{
    uint32_t group = word / GROUP_WORDS;
    if (group >= STACK_GROUPS && word % GROUP_WORDS == 0)
        return &saved[ARCH_UNWIND_RETURN_ADDRESS + 1 + group - STACK_GROUPS];
    return &stack[word];
}

static void put(struct cairn_location location) { locations[location_count++] = location; }

static void put_constant(int32_t value)
{
    put((struct cairn_location){.kind = CAIRN_LOCATION_CONSTANT, .size = 8, .offset = value});
}

static void put_word(uint32_t word)
{
    uint32_t group = word / GROUP_WORDS;
    is_used[word] = true;
    if (place_of(word) != &stack[word])
        put((struct cairn_location){.kind = CAIRN_LOCATION_REGISTER,
                                    .size = 8,
                                    .dwarf = kept(group - STACK_GROUPS)->dwarf});
    else
        put((struct cairn_location){.kind = CAIRN_LOCATION_INDIRECT,
                                    .size = 8,
                                    .dwarf = arch_host_layout.stack_pointer,
                                    .offset = (int32_t)(word * sizeof *stack)});
}

static void put_odd(struct fuzz_input *input)
{
    uint8_t what = fuzz_u8(input);
    is_odd = true;
    put((struct cairn_location){.kind = (what & 1) != 0 ? CAIRN_LOCATION_REGISTER
                                                        : CAIRN_LOCATION_DIRECT,
                                .size = (uint16_t)(1U << (what >> 1 & 7)),
                                .dwarf = fuzz_u8(input)});
    put_word(0);
}

static void make_pairs(struct fuzz_input *input)
{
    uint8_t deopts = fuzz_u8(input) & 7;
    put_constant(0);
    put_constant(0);
    put_constant(deopts);
    for (uint8_t i = 0; i < deopts; i++)
        put_constant(fuzz_u8(input));
    while (input->left > 0 && location_count + 2 < LOCATIONS_MAX) {
        uint32_t base = GROUP_WORDS * (uint32_t)(fuzz_u8(input) % GROUPS);
        uint8_t derived = fuzz_u8(input);
        if (derived == 0xFF) {
            put_odd(input);
        } else if (derived == 0xFE) {
            put_constant(0);
            put_constant(0);
        } else {
            if ((derived & 0xF0) == 0xA0)
                *place_of(base) = 0;
            put_word(base);
            put_word(base + derived % GROUP_WORDS);
            pair_count++;
        }
    }
}

static void begin(void)
{
    const struct arch_unwind_slot *slots = arch_host()->unwind_slots;
    frame = (struct cairn_frame){
        .pc = CODE + RETURN_OFFSET, .sp = (uintptr_t)stack, .is_calling = true};
    for (size_t i = 0; i < arch_host()->unwind_slot_count; i++)
        frame.private_words[i] = slots == NULL ? NULL : &saved[i];
    for (uint32_t i = 0; i < STACK_WORDS; i++) {
        uint64_t base =
            0x1000 * (uint64_t)(1 + i / GROUP_WORDS / 2); /* two bases have the same object */
        *place_of(i) = base + (i % GROUP_WORDS) * 24;
        is_used[i] = false;
    }
    location_count = 0;
    pair_count = 0;
    is_odd = false;
}

static cairn_table *make_table(void)
{
    struct section_writer writer;
    cairn_table *table = NULL;
    writer_begin(&writer, 3, CAIRN_BYTE_ORDER_NATIVE);
    writer_header(&writer, 1, 0, 1);
    writer_function(&writer, CODE, 8, 1);
    writer_record(&writer, 1, RETURN_OFFSET, locations, location_count, NULL, 0);
    const struct cairn_section section = writer_section(&writer);
    require(cairn_table_create(&section, 1, NULL, &table, NULL) == CAIRN_OK);
    writer_end(&writer);
    return table;
}

/* ---- Comparing ---- */

static size_t moves;

static uint64_t new_address(uint64_t object) { return 7 * object + 0x12345000; }

static void *move(void *object, void *user)
{
    (void)user;
    require(object != NULL && (uintptr_t)object % 0x1000 == 0);
    moves++;
    return (void *)(uintptr_t)new_address((uintptr_t)object);
}

static size_t enumerate(struct cairn_record record)
{
    static struct cairn_root roots[2][LOCATIONS_MAX];
    size_t counts[2] = {0, 0};
    enum cairn_status status =
        cairn_frame_roots(&frame, record, roots[0], LOCATIONS_MAX, &counts[0], NULL);
    require(cairn_frame_roots(&frame, record, roots[1], LOCATIONS_MAX, &counts[1], NULL) == status);
    require(is_odd || status == CAIRN_OK);
    require(status != CAIRN_OK || is_odd || counts[0] == pair_count);
    require(counts[0] == counts[1]);
    for (size_t i = 0; i < counts[0] && status == CAIRN_OK; i++) {
        require(roots[0][i].base == roots[1][i].base);
        require(roots[0][i].derived == roots[1][i].derived);
    }
    return counts[0];
}

static void compare_words(const uint64_t *before, bool is_relocated)
{
    size_t moved = 0;
    for (uint32_t i = 0; i < STACK_WORDS; i++) {
        uint64_t base = before[i / GROUP_WORDS * GROUP_WORDS];
        bool is_moved = is_relocated && is_used[i] && base != 0;
        uint64_t expected = is_moved ? new_address(base) + (before[i] - base) : before[i];
        require(*place_of(i) == expected);
        moved += is_moved && i % GROUP_WORDS == 0;
    }
    require(moves == moved);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    uint64_t before[STACK_WORDS];
    begin();
    make_pairs(&input);
    for (uint32_t i = 0; i < STACK_WORDS; i++)
        before[i] = *place_of(i);
    cairn_table *table = make_table();
    const struct cairn_record record = {table, 0};
    (void)enumerate(record);
    moves = 0;
    enum cairn_status status = cairn_frame_relocate(&frame, record, move, NULL, NULL);
    require(status == CAIRN_OK || is_odd);
    if (status != CAIRN_OK || !is_odd)
        compare_words(before, status == CAIRN_OK);
    cairn_table_destroy(table);
    return 0;
}
