/*
 * Tests of call frame instructions: handwritten ones for each opcode, random programs that are
 * compared with a simple model, and damaged ones.
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTION_ADDRESS UINT64_C(0x1000)
enum { FUNCTION_SIZE = 0x100, TEXT_SIZE = 4096 };

static struct sample_section section;

static void set_up(void) { section = (struct sample_section){.byte_order = CAIRN_LITTLE_ENDIAN}; }

static void tear_down(void) { section_free(&section); }

/* ---- Running ---- */

/* Describes the section's first function. */
static enum cairn_status describe(const struct eh_frame *frame,
                                  struct eh_frame_description *description,
                                  struct cairn_error *error)
{
    *description = (struct eh_frame_description){0};
    size_t offset = 0;
    bool found = false;
    enum cairn_status status = eh_frame_next(frame, &offset, description, &found, error);
    if (status == CAIRN_OK)
        ck_assert(found);
    return status;
}

/* Formats all rows as text, each after its distance from the start of the function: "0: cfa=7+8; 4:
 * …". */
static enum cairn_status run(const struct eh_frame *frame, bool has_signing, char *text,
                             struct cairn_error *error)
{
    static struct call_frame call_frame;
    static struct call_frame_row row;
    struct eh_frame_description description;
    text[0] = 0;
    enum cairn_status status = describe(frame, &description, error);
    if (status != CAIRN_OK)
        return status;
    call_frame_begin(&call_frame, frame, &description, has_signing);
    uint64_t end = description.function.address;
    for (;;) {
        bool found;
        status = call_frame_next(&call_frame, &row, &found, error);
        if (status != CAIRN_OK || !found)
            break;
        ck_assert_uint_eq(row.begin, end);
        ck_assert_uint_lt(row.begin, row.end);
        end = row.end;
        size_t used = strlen(text);
        snprintf(text + used, TEXT_SIZE - used, "%s%x: ", used == 0 ? "" : "; ",
                 (unsigned)(row.begin - description.function.address));
        used = strlen(text);
        row_text(&row, text + used, TEXT_SIZE - used);
    }
    if (status == CAIRN_OK)
        ck_assert_uint_eq(end, description.function.address + description.function.size);
    return status;
}

static void assert_rows(bool has_signing, const char *expected)
{
    struct eh_frame frame = frame_view(&section);
    struct cairn_error error = {0};
    char text[TEXT_SIZE];
    enum cairn_status status = run(&frame, has_signing, text, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    ck_assert_str_eq(text, expected);
}

/* ---- Each opcode ---- */

/* The rules of x86-64: the CFA is register 7 + 8, and the return address is at CFA - 8. */
static const uint8_t usual_begin[] = {0x0C, 7, 8, 0x90, 1};
static const struct sample_common usual = {
    "", 1, -8, 16, usual_begin, sizeof usual_begin,
};

struct sample_case {
    size_t size;
    uint8_t bytes[24];
    const char *expected;
};

#define BYTES(...)                                                                                 \
    sizeof((const uint8_t[]){__VA_ARGS__}), { __VA_ARGS__ }

static const struct sample_case cases[] = {
    {BYTES(0x00), "0: cfa=7+8 16=[-8]"},
    /* set_loc to 0x1010 */
    {BYTES(0x01, 0x10, 0x10, 0, 0, 0, 0, 0, 0, 0x0E, 16),
     "0: cfa=7+8 16=[-8]; 10: cfa=7+16 16=[-8]"},
    /* advance_loc, advance_loc1, advance_loc2, advance_loc4 */
    {BYTES(0x41, 0x0E, 1, 0x02, 2, 0x0E, 2, 0x03, 3, 0, 0x0E, 3, 0x04, 4, 0, 0, 0, 0x0E, 4),
     "0: cfa=7+8 16=[-8]; 1: cfa=7+1 16=[-8]; 3: cfa=7+2 16=[-8]; 6: cfa=7+3 16=[-8]; "
     "a: cfa=7+4 16=[-8]"},
    /* advance_loc of 0, and to the end of the function */
    {BYTES(0x40, 0x0E, 1, 0x03, 0x00, 0x01, 0x0E, 2), "0: cfa=7+1 16=[-8]"},
    /* offset, offset_extended */
    {BYTES(0x86, 2, 0x05, 0x80, 1, 3), "0: cfa=7+8 6=[-16] 16=[-8] 128=[-24]"},
    /* restore: to the initial rule, and to no rule */
    {BYTES(0x86, 2, 0x90, 5, 0x41, 0xC6, 0xD0), "0: cfa=7+8 6=[-16] 16=[-40]; 1: cfa=7+8 16=[-8]"},
    /* restore_extended */
    {BYTES(0x86, 2, 0x90, 5, 0x41, 0x06, 6, 0x06, 16),
     "0: cfa=7+8 6=[-16] 16=[-40]; 1: cfa=7+8 16=[-8]"},
    /* undefined, same_value, register */
    {BYTES(0x07, 16, 0x08, 3, 0x09, 6, 12), "0: cfa=7+8 3=same 6=r12 16=undefined"},
    /* remember_state, restore_state: the CFA and all registers */
    {BYTES(0x0A, 0x0C, 6, 16, 0x86, 2, 0x07, 16, 0x41, 0x0B),
     "0: cfa=6+16 6=[-16] 16=undefined; 1: cfa=7+8 16=[-8]"},
    /* nested remember_state and restore_state */
    {BYTES(0x0A, 0x86, 2, 0x0A, 0x8C, 3, 0x41, 0x0B, 0x41, 0x0B),
     "0: cfa=7+8 6=[-16] 12=[-24] 16=[-8]; 1: cfa=7+8 6=[-16] 16=[-8]; 2: cfa=7+8 16=[-8]"},
    /* def_cfa, def_cfa_register, def_cfa_offset */
    {BYTES(0x0C, 3, 0x80, 2, 0x41, 0x0D, 6, 0x41, 0x0E, 32),
     "0: cfa=3+256 16=[-8]; 1: cfa=6+256 16=[-8]; 2: cfa=6+32 16=[-8]"},
    /* def_cfa_expression, and then a CFA relative to a register */
    {BYTES(0x0F, 3, 1, 2, 3, 0x41, 0x0C, 6, 16), "0: cfa=expression 16=[-8]; 1: cfa=6+16 16=[-8]"},
    /* expression, val_expression */
    {BYTES(0x10, 6, 1, 0x50, 0x16, 12, 0), "0: cfa=7+8 6=[expression] 12=expression 16=[-8]"},
    /* offset_extended_sf */
    {BYTES(0x11, 6, 0x7E), "0: cfa=7+8 6=[+16] 16=[-8]"},
    /* def_cfa_sf, def_cfa_offset_sf */
    {BYTES(0x12, 6, 0x7E, 0x41, 0x13, 0x02), "0: cfa=6+16 16=[-8]; 1: cfa=6-16 16=[-8]"},
    /* val_offset, val_offset_sf */
    {BYTES(0x14, 6, 2, 0x15, 7, 0x7F), "0: cfa=7+8 6=-16 7=+8 16=[-8]"},
    /* GNU_args_size: not part of the remembered state */
    {BYTES(0x2E, 16, 0x0A, 0x41, 0x2E, 32, 0x41, 0x0B),
     "0: cfa=7+8 16=[-8] arguments=16; 1: cfa=7+8 16=[-8] arguments=32; "
     "2: cfa=7+8 16=[-8] arguments=32"},
    /* GNU_negative_offset_extended */
    {BYTES(0x2F, 6, 2), "0: cfa=7+8 6=[+16] 16=[-8]"},
};
enum { CASE_COUNT = sizeof cases / sizeof *cases };

START_TEST(every_opcode_does_what_it_says)
{
    size_t common = frame_put_common(&section, &usual);
    frame_put_function(&section, common, FUNCTION_ADDRESS, FUNCTION_SIZE, cases[_i].bytes,
                       cases[_i].size);
    assert_rows(false, cases[_i].expected);
}
END_TEST

START_TEST(advances_are_multiplied_by_the_code_alignment)
{
    const struct sample_common common = {"", 4, -8, 30, NULL, 0};
    const uint8_t bytes[] = {0x41, 0x0C, 31, 16, 0x02, 2, 0x0E, 32};
    frame_put_function(&section, frame_put_common(&section, &common), FUNCTION_ADDRESS,
                       FUNCTION_SIZE, bytes, sizeof bytes);
    assert_rows(false, "0: cfa=unknown; 4: cfa=31+16; c: cfa=31+32");
}
END_TEST

static const struct sample_case signing_cases[] = {
    /* negate_ra_state, which is part of the remembered state */
    {BYTES(0x41, 0x2D, 0x41, 0x0A, 0x2D, 0x41, 0x0B),
     "0: cfa=31+0; 4: cfa=31+0 signed; 8: cfa=31+0; c: cfa=31+0 signed"},
    /* negate_ra_state_with_pc */
    {BYTES(0x2C, 0x41, 0x2C), "0: cfa=31+0 signed-pc; 4: cfa=31+0"},
    /* set_ra_state */
    {BYTES(0x2B, 2, 0x7F, 0x41, 0x2B, 1, 0, 0x41, 0x2B, 0, 0),
     "0: cfa=31+0 signed-pc; 4: cfa=31+0 signed; 8: cfa=31+0"},
};
enum { SIGNING_COUNT = sizeof signing_cases / sizeof *signing_cases };

static const uint8_t aarch64_begin[] = {0x0C, 31, 0};
static const struct sample_common aarch64 = {
    "", 4, -8, 30, aarch64_begin, sizeof aarch64_begin,
};

START_TEST(signed_return_addresses_are_followed)
{
    frame_put_function(&section, frame_put_common(&section, &aarch64), FUNCTION_ADDRESS,
                       FUNCTION_SIZE, signing_cases[_i].bytes, signing_cases[_i].size);
    assert_rows(true, signing_cases[_i].expected);
}
END_TEST

START_TEST(letters_of_the_augmentation_are_noted)
{
    const struct sample_common common = {"SB", 4, -8, 30, NULL, 0};
    frame_put_function(&section, frame_put_common(&section, &common), FUNCTION_ADDRESS, 4, NULL, 0);
    struct eh_frame frame = frame_view(&section);
    struct eh_frame_description description;
    ck_assert_ok(describe(&frame, &description, NULL));
    ck_assert(description.common.is_signal_frame);
    ck_assert(description.common.uses_b_key);
    ck_assert_int_eq(description.common.unknown_letter, 0);
    ck_assert_uint_eq(description.common.code_alignment, 4);
    ck_assert_int_eq(description.common.data_alignment, -8);
    ck_assert_uint_eq(description.common.return_register, 30);
}
END_TEST

/* ---- Refused instructions ---- */

struct bad_case {
    size_t size;
    uint8_t bytes[24];
    enum cairn_status status;
    size_t offset; /* offset of the bad instruction from the first one */
    const char *what;
};

static const struct bad_case bad_cases[] = {
    {BYTES(0x1D), CAIRN_ERROR_UNSUPPORTED, 0, "0x1d"},
    {BYTES(0x00, 0x2D), CAIRN_ERROR_UNSUPPORTED, 1, "is not known"},
    {BYTES(0x41, 0x3F), CAIRN_ERROR_UNSUPPORTED, 1, "0x3f"},
    {BYTES(0x07, 0x80, 0x80, 4), CAIRN_ERROR_UNSUPPORTED, 0, "16 bits"},
    {BYTES(0x0B), CAIRN_ERROR_CORRUPT, 0, "no state is remembered"},
    {BYTES(0x41, 0x04, 0xFF, 0xFF, 0xFF, 0xFF), CAIRN_ERROR_CORRUPT, 1, "function's end"},
    {BYTES(0x03, 1, 1), CAIRN_ERROR_CORRUPT, 0, "function's end"},
    {BYTES(0x01, 0xFF, 0x0F, 0, 0, 0, 0, 0, 0), CAIRN_ERROR_CORRUPT, 0, "function's begin"},
    {BYTES(0x44, 0x01, 0x03, 0x10, 0, 0, 0, 0, 0, 0), CAIRN_ERROR_CORRUPT, 1, "moves back"},
    {BYTES(0x0F, 0, 0x0E, 8), CAIRN_ERROR_CORRUPT, 2, "not a register and an offset"},
    {BYTES(0x0F, 9), CAIRN_ERROR_CORRUPT, 0, "end of its entry"},
    {BYTES(0x0F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1), CAIRN_ERROR_CORRUPT, 0,
     "end of its entry"},
    {BYTES(0x0E, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2), CAIRN_ERROR_CORRUPT, 0,
     "64 bits"},
    {BYTES(0x0E, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1), CAIRN_ERROR_CORRUPT, 0,
     "63 bits"},
    /* GNU_negative_offset_extended of 2^63, which cannot be negated */
    {BYTES(0x2F, 3, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1), CAIRN_ERROR_CORRUPT,
     0, "63 bits"},
    {BYTES(0x11, 3, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40), CAIRN_ERROR_CORRUPT, 0,
     "does not fit"},
    {BYTES(0x04, 1), CAIRN_ERROR_CORRUPT, 0, "end of its entry"},
};
enum { BAD_COUNT = sizeof bad_cases / sizeof *bad_cases };

/* Adds no padding, so that the last instruction ends with its entry. */
static void put_exactly(size_t common, const uint8_t *bytes, size_t size)
{
    section_put(&section, 4 + 16 + 1 + size, 4);
    section_put(&section, section.size - common, 4);
    section_put(&section, FUNCTION_ADDRESS, 8);
    section_put(&section, FUNCTION_SIZE, 8);
    section_put(&section, 0, 1);
    for (size_t i = 0; i < size; i++)
        section_put(&section, bytes[i], 1);
}

START_TEST(bad_instructions_are_named)
{
    const struct bad_case *bad = &bad_cases[_i];
    put_exactly(frame_put_common(&section, &usual), bad->bytes, bad->size);
    struct eh_frame frame = frame_view(&section);
    struct cairn_error error = {0};
    char text[TEXT_SIZE];
    ck_assert_int_eq(run(&frame, false, text, &error), bad->status);
    ck_assert_msg(strstr(error.message, bad->what) != NULL, "%s", error.message);
    ck_assert_uint_eq(error.offset, section.size - bad->size + bad->offset);
}
END_TEST

static const struct bad_case bad_commons[] = {
    {BYTES(0x41), CAIRN_ERROR_CORRUPT, 0, "before a function"},
    {BYTES(0x86, 2, 0xC6), CAIRN_ERROR_CORRUPT, 2, "before a function"},
};

START_TEST(common_instructions_neither_move_nor_restore)
{
    const struct sample_common common = {
        "", 1, -8, 16, bad_commons[_i].bytes, bad_commons[_i].size};
    put_exactly(frame_put_common(&section, &common), NULL, 0);
    struct eh_frame frame = frame_view(&section);
    struct cairn_error error = {0};
    char text[TEXT_SIZE];
    ck_assert_int_eq(run(&frame, false, text, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_msg(strstr(error.message, bad_commons[_i].what) != NULL, "%s", error.message);
}
END_TEST

static void assert_limit(enum call_frame_limit limit, uint16_t detail, uint64_t from)
{
    static struct call_frame call_frame;
    static struct call_frame_row row;
    struct eh_frame frame = frame_view(&section);
    struct eh_frame_description description;
    ck_assert_ok(describe(&frame, &description, NULL));
    call_frame_begin(&call_frame, &frame, &description, false);
    enum cairn_status status = CAIRN_OK;
    bool found = true;
    while (status == CAIRN_OK && found)
        status = call_frame_next(&call_frame, &row, &found, NULL);
    ck_assert_int_eq(status, CAIRN_ERROR_UNSUPPORTED);
    ck_assert_uint_eq(call_frame.limit, limit);
    ck_assert_uint_eq(call_frame.detail, detail);
    ck_assert_uint_eq(call_frame.now.begin, FUNCTION_ADDRESS + from);
}

START_TEST(states_can_be_remembered_eight_times)
{
    struct instructions program = {0};
    for (unsigned i = 0; i < CALL_FRAME_NESTING_MAX; i++)
        instruct(&program, 0x0A);
    instruct(&program, 0x42);
    instruct(&program, 0x0A);
    size_t common = frame_put_common(&section, &usual);
    put_exactly(common, program.bytes, CALL_FRAME_NESTING_MAX);
    assert_rows(false, "0: cfa=7+8 16=[-8]");
    section.size = 0;
    common = frame_put_common(&section, &usual);
    put_exactly(common, program.bytes, program.size);
    assert_limit(CALL_FRAME_NESTING, CALL_FRAME_NESTING_MAX, 2);
}
END_TEST

START_TEST(registers_can_have_rules_up_to_a_number)
{
    struct instructions program = {0};
    for (unsigned i = 0; i <= CALL_FRAME_RULES_MAX; i++) {
        instruct(&program, 0x08);
        instruct_uleb128(&program, 1000 - i);
    }
    put_exactly(frame_put_common(&section, &usual), program.bytes, program.size);
    assert_limit(CALL_FRAME_RULES, CALL_FRAME_RULES_MAX, 0);
}
END_TEST

START_TEST(unknown_augmentation_leaves_the_function_and_no_rules)
{
    const struct sample_common common = {"X", 1, -8, 16, NULL, 0};
    put_exactly(frame_put_common(&section, &common), NULL, 0);
    assert_limit(CALL_FRAME_LETTER, 'X', 0);
}
END_TEST

/* ---- Random programs ---- */

enum { MODEL_REGISTERS = 48, MODEL_BYTES = 512, MODEL_NESTING = CALL_FRAME_NESTING_MAX };

struct model_rule {
    uint8_t kind;
    int64_t value;
};

struct model_state {
    uint8_t cfa;
    uint8_t signing;
    uint16_t cfa_register;
    int64_t cfa_value;
    uint64_t argument_size;
    struct model_rule rules[MODEL_REGISTERS];
};

/* The effect of a program on each byte of code. The value of every expression is -1. */
struct model {
    uint64_t random;
    struct instructions program;
    struct model_state now;
    struct model_state initial;
    struct model_state remembered[MODEL_NESTING];
    struct model_state bytes[MODEL_BYTES];
    unsigned depth;
    uint32_t location;
    uint32_t code_alignment;
    int64_t data_alignment;
    bool is_begun;
};

static uint32_t choose(struct model *model, uint32_t bound)
{
    return sample_random(&model->random, bound);
}

static void model_advance(struct model *model)
{
    static const uint32_t bounds[] = {64, 100, 100, 100};
    uint32_t form = choose(model, 5);
    uint32_t left = (MODEL_BYTES - model->location) / model->code_alignment;
    uint32_t delta = choose(model, form < 4 ? bounds[form] : 40);
    delta = delta < left ? delta : left;
    uint32_t to = model->location + delta * model->code_alignment;
    struct instructions *program = &model->program;
    if (form == 0 && delta < 64)
        instruct(program, (uint8_t)(0x40 | delta));
    else if (form < 4) {
        uint32_t chosen = form == 0 ? 1 : form;
        instruct(program, (uint8_t)(1 + chosen));
        instruct_number(program, delta, (size_t)1 << (chosen - 1));
    } else {
        instruct(program, 0x01);
        instruct_number(program, FUNCTION_ADDRESS + to, 8);
    }
    for (; model->location < to; model->location++)
        model->bytes[model->location] = model->now;
}

static int64_t model_offset(struct model *model)
{
    int64_t factor = choose(model, 8) == 0 ? (int64_t)choose(model, 1U << 30) * 1024 : 1;
    return (int64_t)choose(model, 200) * factor;
}

static int64_t model_signed_offset(struct model *model)
{
    int64_t offset = model_offset(model);
    return choose(model, 2) == 0 ? offset : -offset;
}

static void model_expression(struct model *model)
{
    uint32_t size = choose(model, 200);
    instruct_uleb128(&model->program, size);
    for (uint32_t i = 0; i < size; i++)
        instruct(&model->program, (uint8_t)choose(model, 256));
}

static void model_define_cfa(struct model *model)
{
    uint32_t form = choose(model, 6);
    struct model_state *now = &model->now;
    bool is_register = now->cfa == CALL_FRAME_CFA_REGISTER;
    struct instructions *program = &model->program;
    int64_t offset = model_offset(model);
    if (form == 5) {
        instruct(program, 0x0F);
        model_expression(model);
        now->cfa = CALL_FRAME_CFA_EXPRESSION;
        now->cfa_register = 0;
        now->cfa_value = -1;
        return;
    }
    if (form >= 2 && !is_register)
        return;
    now->cfa = CALL_FRAME_CFA_REGISTER;
    static const uint8_t opcodes[] = {0x0C, 0x12, 0x0D, 0x0E, 0x13};
    instruct(program, opcodes[form]);
    if (form <= 2) {
        now->cfa_register = (uint16_t)choose(model, 2000);
        instruct_uleb128(program, now->cfa_register);
    }
    if (form == 0 || form == 3) {
        instruct_uleb128(program, (uint64_t)offset);
        now->cfa_value = offset;
    } else if (form == 1 || form == 4) {
        offset = model_signed_offset(model);
        instruct_sleb128(program, offset);
        now->cfa_value = offset * model->data_alignment;
    }
}

static void model_restore(struct model *model)
{
    if (!model->is_begun)
        return;
    uint32_t dwarf = choose(model, MODEL_REGISTERS);
    bool is_short = choose(model, 2) == 0;
    instruct(&model->program, is_short ? (uint8_t)(0xC0 | dwarf) : 0x06);
    if (!is_short)
        instruct_uleb128(&model->program, dwarf);
    model->now.rules[dwarf] = model->initial.rules[dwarf];
}

/* Opcodes with a register operand, followed by these operands. */
enum operand { NOTHING, UNSIGNED, SIGNED, NEGATED, OTHER, BLOCK };
static const struct {
    uint8_t opcode;
    uint8_t kind;
    enum operand operand;
} rule_opcodes[] = {
    {0x80, CALL_FRAME_SAVED, UNSIGNED},    {0x05, CALL_FRAME_SAVED, UNSIGNED},
    {0x07, CALL_FRAME_UNDEFINED, NOTHING}, {0x08, CALL_FRAME_SAME, NOTHING},
    {0x09, CALL_FRAME_REGISTER, OTHER},    {0x10, CALL_FRAME_SAVED_EXPRESSION, BLOCK},
    {0x11, CALL_FRAME_SAVED, SIGNED},      {0x14, CALL_FRAME_VALUE, UNSIGNED},
    {0x15, CALL_FRAME_VALUE, SIGNED},      {0x16, CALL_FRAME_VALUE_EXPRESSION, BLOCK},
    {0x2F, CALL_FRAME_SAVED, NEGATED},
};
enum { RULE_OPCODES = sizeof rule_opcodes / sizeof *rule_opcodes };

static void model_rule(struct model *model)
{
    uint32_t which = choose(model, RULE_OPCODES);
    uint32_t dwarf = choose(model, MODEL_REGISTERS);
    uint8_t opcode = rule_opcodes[which].opcode;
    struct instructions *program = &model->program;
    instruct(program, opcode == 0x80 ? (uint8_t)(opcode | dwarf) : opcode);
    if (opcode != 0x80)
        instruct_uleb128(program, dwarf);
    struct model_rule rule = {.kind = rule_opcodes[which].kind};
    int64_t offset = model_offset(model);
    switch (rule_opcodes[which].operand) {
    case UNSIGNED:
        instruct_uleb128(program, (uint64_t)offset);
        rule.value = offset * model->data_alignment;
        break;
    case NEGATED:
        instruct_uleb128(program, (uint64_t)offset);
        rule.value = -offset * model->data_alignment;
        break;
    case SIGNED:
        offset = model_signed_offset(model);
        instruct_sleb128(program, offset);
        rule.value = offset * model->data_alignment;
        break;
    case OTHER:
        rule.value = choose(model, 1300);
        instruct_uleb128(program, (uint64_t)rule.value);
        break;
    case BLOCK:
        model_expression(model);
        rule.value = -1;
        break;
    default:
        break;
    }
    model->now.rules[dwarf] = rule;
}

static void model_remember(struct model *model)
{
    if (model->depth == MODEL_NESTING)
        return;
    instruct(&model->program, 0x0A);
    model->remembered[model->depth++] = model->now;
}

static void model_recall(struct model *model)
{
    if (model->depth == 0)
        return;
    instruct(&model->program, 0x0B);
    uint64_t argument_size = model->now.argument_size;
    model->now = model->remembered[--model->depth];
    model->now.argument_size = argument_size;
}

static void model_other(struct model *model)
{
    uint32_t size = choose(model, 1000);
    uint8_t *signing = &model->now.signing;
    switch (choose(model, 4)) {
    case 0:
        instruct(&model->program, 0x2E);
        instruct_uleb128(&model->program, size);
        model->now.argument_size = size;
        break;
    case 1:
        if (*signing != CALL_FRAME_SIGNED_WITH_PC) {
            instruct(&model->program, 0x2D);
            *signing ^= CALL_FRAME_SIGNED;
        }
        break;
    case 2:
        if (*signing != CALL_FRAME_SIGNED) {
            instruct(&model->program, 0x2C);
            *signing ^= CALL_FRAME_SIGNED_WITH_PC;
        }
        break;
    default:
        instruct(&model->program, 0x2B);
        *signing = (uint8_t)choose(model, 3);
        instruct_uleb128(&model->program, *signing);
        instruct_sleb128(&model->program, model_signed_offset(model));
        break;
    }
}

static void model_step(struct model *model)
{
    switch (choose(model, 8)) {
    case 0:
        if (model->is_begun)
            model_advance(model);
        break;
    case 1:
        model_define_cfa(model);
        break;
    case 2:
        model_restore(model);
        break;
    case 3:
        model_remember(model);
        break;
    case 4:
        model_recall(model);
        break;
    case 5:
        model_other(model);
        break;
    default:
        model_rule(model);
        break;
    }
}

/* Writes a section with one function, and the rules for each of its bytes to the model. */
static void model_write(struct model *model)
{
    static const int data_alignments[] = {-8, 8, -4, 1};
    section.byte_order = choose(model, 2) == 0 ? CAIRN_LITTLE_ENDIAN : CAIRN_BIG_ENDIAN;
    model->program.byte_order = section.byte_order;
    model->code_alignment = choose(model, 2) == 0 ? 1 : 4;
    model->data_alignment = data_alignments[choose(model, 4)];
    struct sample_common common = {.letters = "",
                                   .code_alignment = (uint8_t)model->code_alignment,
                                   .data_alignment = (int8_t)model->data_alignment,
                                   .return_register = 16,
                                   .instructions = model->program.bytes};
    uint32_t steps = choose(model, 8);
    for (uint32_t i = 0; i < steps; i++)
        model_step(model);
    common.instruction_size = model->program.size;
    size_t offset = frame_put_common(&section, &common);
    model->is_begun = true;
    model->initial = model->now;
    model->program.size = 0;
    steps = choose(model, 60);
    for (uint32_t i = 0; i < steps && model->program.size < sizeof model->program.bytes / 2; i++)
        model_step(model);
    for (; model->location < MODEL_BYTES; model->location++)
        model->bytes[model->location] = model->now;
    frame_put_function(&section, offset, FUNCTION_ADDRESS, MODEL_BYTES, model->program.bytes,
                       model->program.size);
}

static bool is_expression(uint8_t kind)
{
    return kind == CALL_FRAME_SAVED_EXPRESSION || kind == CALL_FRAME_VALUE_EXPRESSION;
}

static void assert_state(const struct call_frame_row *row, const struct model_state *state)
{
    expect(row->cfa == state->cfa);
    expect(row->cfa_register == state->cfa_register);
    expect(row->cfa == CALL_FRAME_CFA_EXPRESSION || row->cfa_value == state->cfa_value);
    expect(row->signing == state->signing);
    expect(row->argument_size == state->argument_size);
    unsigned count = 0;
    for (unsigned dwarf = 0; dwarf < MODEL_REGISTERS; dwarf++) {
        struct call_frame_rule rule = call_frame_rule(row, (uint16_t)dwarf);
        expect(rule.kind == state->rules[dwarf].kind);
        expect(is_expression(rule.kind) || rule.value == state->rules[dwarf].value);
        count += rule.kind != CALL_FRAME_UNSPECIFIED;
    }
    expect(row->rule_count == count);
}

static void assert_model(const struct model *model)
{
    static struct call_frame call_frame;
    static struct call_frame_row row;
    struct eh_frame frame = frame_view(&section);
    struct eh_frame_description description;
    struct cairn_error error = {0};
    ck_assert_ok(describe(&frame, &description, &error));
    call_frame_begin(&call_frame, &frame, &description, true);
    uint64_t end = FUNCTION_ADDRESS;
    for (;;) {
        bool found;
        enum cairn_status status = call_frame_next(&call_frame, &row, &found, &error);
        ck_assert_msg(status == CAIRN_OK, "%s", error.message);
        if (!found)
            break;
        expect(row.begin == end);
        end = row.end;
        for (uint64_t at = row.begin; at < row.end; at++)
            assert_state(&row, &model->bytes[at - FUNCTION_ADDRESS]);
    }
    ck_assert_uint_eq(end, FUNCTION_ADDRESS + MODEL_BYTES);
}

START_TEST(random_programs_have_the_rows_of_a_model)
{
    enum { PROGRAMS = 3000 };
    uint64_t seed = sample_seed();
    struct model *model = calloc(1, sizeof *model);
    for (unsigned i = 0; i < PROGRAMS; i++) {
        memset(model, 0, sizeof *model);
        model->random = seed;
        section.size = 0;
        model_write(model);
        assert_model(model);
        seed = model->random;
    }
    free(model);
}
END_TEST

/* ---- Damaged sections ---- */

/* Expects an error or fewer rows. No byte past the end may be read. */
static void run_guarded(size_t size)
{
    static struct call_frame call_frame;
    static struct call_frame_row row;
    struct guarded guarded = guard(section.bytes, size);
    struct eh_frame frame = {{guarded.bytes, size, section.byte_order}, 0};
    struct eh_frame_description description = {0};
    size_t offset = 0;
    bool found = true;
    while (found) {
        if (eh_frame_next(&frame, &offset, &description, &found, NULL) != CAIRN_OK || !found)
            break;
        call_frame_begin(&call_frame, &frame, &description, true);
        enum cairn_status status = CAIRN_OK;
        bool has_row = true;
        while (status == CAIRN_OK && has_row)
            status = call_frame_next(&call_frame, &row, &has_row, NULL);
    }
    guard_end(&guarded);
}

/* Writes all opcodes of the cases above. */
static void put_every_case(void)
{
    size_t common = frame_put_common(&section, &usual);
    for (unsigned i = 0; i < CASE_COUNT; i++)
        frame_put_function(&section, common, FUNCTION_ADDRESS, FUNCTION_SIZE, cases[i].bytes,
                           cases[i].size);
    common = frame_put_common(&section, &aarch64);
    for (unsigned i = 0; i < SIGNING_COUNT; i++)
        frame_put_function(&section, common, FUNCTION_ADDRESS, FUNCTION_SIZE,
                           signing_cases[i].bytes, signing_cases[i].size);
}

START_TEST(section_may_end_anywhere)
{
    put_every_case();
    for (size_t size = 0; size <= section.size; size++)
        run_guarded(size);
}
END_TEST

/* Also shortens the length of the entry, so that instructions end at the end of the page. */
START_TEST(instructions_may_end_anywhere)
{
    size_t common = frame_put_common(&section, &usual);
    size_t begin = section.size;
    for (unsigned i = 0; i < CASE_COUNT; i++) {
        for (size_t size = 0; size <= cases[i].size; size++) {
            section.size = begin;
            put_exactly(common, cases[i].bytes, size);
            run_guarded(section.size);
        }
    }
}
END_TEST

START_TEST(any_byte_may_be_wrong)
{
    put_every_case();
    for (size_t at = 0; at < section.size; at++) {
        uint8_t right = section.bytes[at];
        for (unsigned bit = 0; bit < 8; bit++) {
            section.bytes[at] = (uint8_t)(right ^ 1U << bit);
            run_guarded(section.size);
        }
        section.bytes[at] = right;
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("call frames");
    TCase *running = tcase_create("running");
    tcase_add_checked_fixture(running, set_up, tear_down);
    tcase_add_loop_test(running, every_opcode_does_what_it_says, 0, CASE_COUNT);
    tcase_add_test(running, advances_are_multiplied_by_the_code_alignment);
    tcase_add_loop_test(running, signed_return_addresses_are_followed, 0, SIGNING_COUNT);
    tcase_add_test(running, letters_of_the_augmentation_are_noted);
    tcase_add_test(running, random_programs_have_the_rows_of_a_model);
    suite_add_tcase(suite, running);
    TCase *refusing = tcase_create("refusing");
    tcase_add_checked_fixture(refusing, set_up, tear_down);
    tcase_add_loop_test(refusing, bad_instructions_are_named, 0, BAD_COUNT);
    tcase_add_loop_test(refusing, common_instructions_neither_move_nor_restore, 0, 2);
    tcase_add_test(refusing, states_can_be_remembered_eight_times);
    tcase_add_test(refusing, registers_can_have_rules_up_to_a_number);
    tcase_add_test(refusing, unknown_augmentation_leaves_the_function_and_no_rules);
    tcase_add_test(refusing, section_may_end_anywhere);
    tcase_add_test(refusing, instructions_may_end_anywhere);
    tcase_add_test(refusing, any_byte_may_be_wrong);
    suite_add_tcase(suite, refusing);
    return run_suite(suite);
}
