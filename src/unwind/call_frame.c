/*
 * Executes call frame instructions.
 *
 * A remembered state holds the CFA, the rules, and how the return address is signed, but not the
 * size of arguments. GCC's unwinder does the same.
 *
 * SPDX-License-Identifier: MIT
 */
#include "unwind/call_frame.h"

#include "base/error.h"
#include "unwind/frame_reader.h"

#include <string.h>

/* Opcodes in the upper two bits; the lower bits are an operand. */
enum { OPCODE_OPERAND = 0x3F, ADVANCE = 0x40, OFFSET = 0x80, RESTORE = 0xC0 };

enum {
    NOP = 0x00,
    SET_LOC = 0x01,
    ADVANCE_1 = 0x02,
    ADVANCE_2 = 0x03,
    ADVANCE_4 = 0x04,
    OFFSET_EXTENDED = 0x05,
    RESTORE_EXTENDED = 0x06,
    UNDEFINED = 0x07,
    SAME_VALUE = 0x08,
    REGISTER = 0x09,
    REMEMBER = 0x0A,
    RECALL = 0x0B,
    DEF_CFA = 0x0C,
    DEF_CFA_REGISTER = 0x0D,
    DEF_CFA_OFFSET = 0x0E,
    DEF_CFA_EXPRESSION = 0x0F,
    EXPRESSION = 0x10,
    OFFSET_EXTENDED_SF = 0x11,
    DEF_CFA_SF = 0x12,
    DEF_CFA_OFFSET_SF = 0x13,
    VAL_OFFSET = 0x14,
    VAL_OFFSET_SF = 0x15,
    VAL_EXPRESSION = 0x16,
    SET_SIGNING = 0x2B,
    NEGATE_SIGNING_WITH_PC = 0x2C,
    NEGATE_SIGNING = 0x2D,
    ARGUMENT_SIZE = 0x2E,
    NEGATIVE_OFFSET_EXTENDED = 0x2F
};

/* An instruction, its operands, and the destination of errors. */
struct instruction {
    struct call_frame *call_frame;
    struct frame_reader reader;
    size_t offset;
    uint8_t opcode;
    struct cairn_error *error;
};

/* ---- Errors ---- */

static enum cairn_status corrupt(const struct instruction *instruction, const char *what)
{
    return error_set(instruction->error, CAIRN_ERROR_CORRUPT, instruction->offset,
                     "the call frame instruction 0x%02x at offset %zu of the unwind table %s",
                     instruction->opcode, instruction->offset, what);
}

static enum cairn_status unsupported(const struct instruction *instruction,
                                     enum call_frame_limit limit, uint16_t detail, const char *what)
{
    instruction->call_frame->limit = (uint8_t)limit;
    instruction->call_frame->detail = detail;
    return error_set(instruction->error, CAIRN_ERROR_UNSUPPORTED, instruction->offset,
                     "the call frame instruction 0x%02x at offset %zu of the unwind table %s",
                     instruction->opcode, instruction->offset, what);
}

/* Checks that the operands ended inside the entry and had at most 64 bits. */
static enum cairn_status check_operands(const struct instruction *instruction)
{
    if (instruction->reader.overrun)
        return corrupt(instruction, "goes beyond the end of its entry");
    if (instruction->reader.overflow)
        return corrupt(instruction, "has an operand of more than 64 bits");
    return CAIRN_OK;
}

/* ---- Operands ---- */

static enum cairn_status read_register(struct instruction *instruction, uint16_t *dwarf)
{
    uint64_t number = frame_read_uleb128(&instruction->reader);
    enum cairn_status status = check_operands(instruction);
    if (status != CAIRN_OK)
        return status;
    if (number > UINT16_MAX)
        return unsupported(instruction, CALL_FRAME_NUMBER, 0,
                           "names a register by a number of more than 16 bits");
    *dwarf = (uint16_t)number;
    return CAIRN_OK;
}

static enum cairn_status read_unsigned(struct instruction *instruction, int64_t *value)
{
    uint64_t number = frame_read_uleb128(&instruction->reader);
    enum cairn_status status = check_operands(instruction);
    if (status == CAIRN_OK && number > INT64_MAX)
        status = corrupt(instruction, "has an offset of more than 63 bits");
    *value = (int64_t)number;
    return status;
}

/* Reads an offset in units of the data alignment. */
static enum cairn_status read_scaled(struct instruction *instruction, bool is_signed,
                                     bool is_negated, int64_t *value)
{
    int64_t alignment = instruction->call_frame->description->common.data_alignment;
    enum cairn_status status = CAIRN_OK;
    if (is_signed) {
        *value = frame_read_sleb128(&instruction->reader);
        status = check_operands(instruction);
    } else
        status = read_unsigned(instruction, value);
    if (status != CAIRN_OK)
        return status;
    if (__builtin_mul_overflow(is_negated ? -*value : *value, alignment, value))
        return corrupt(instruction, "has an offset that does not fit into 64 bits");
    return CAIRN_OK;
}

/* Skips an expression. `*value` is its offset in the section. */
static enum cairn_status read_expression(struct instruction *instruction, int64_t *value)
{
    *value = (int64_t)instruction->reader.at;
    frame_read_bytes(&instruction->reader, frame_read_uleb128(&instruction->reader));
    return check_operands(instruction);
}

/* ---- Rules ---- */

/* Returns the index of the register's rule in the row, or the index at which to insert it. */
static uint16_t find_place(const struct call_frame_row *row, uint16_t dwarf)
{
    uint16_t place = 0;
    while (place < row->rule_count && row->rules[place].dwarf < dwarf)
        place++;
    return place;
}

static bool has_rule_at(const struct call_frame_row *row, uint16_t place, uint16_t dwarf)
{
    return place < row->rule_count && row->rules[place].dwarf == dwarf;
}

struct call_frame_rule call_frame_rule(const struct call_frame_row *row, uint16_t dwarf)
{
    uint16_t place = find_place(row, dwarf);
    if (has_rule_at(row, place, dwarf))
        return row->rules[place];
    return (struct call_frame_rule){.dwarf = dwarf};
}

static enum cairn_status set_rule(const struct instruction *instruction,
                                  struct call_frame_rule rule)
{
    struct call_frame_row *row = &instruction->call_frame->now;
    uint16_t place = find_place(row, rule.dwarf);
    if (!has_rule_at(row, place, rule.dwarf)) {
        if (row->rule_count == CALL_FRAME_RULES_MAX)
            return unsupported(instruction, CALL_FRAME_RULES, CALL_FRAME_RULES_MAX,
                               "gives one more register a rule than can be held");
        memmove(&row->rules[place + 1], &row->rules[place],
                (size_t)(row->rule_count - place) * sizeof *row->rules);
        row->rule_count++;
    }
    row->rules[place] = rule;
    return CAIRN_OK;
}

/* Gives the register the rule that it had after the common information, or none. */
static enum cairn_status run_restore(const struct instruction *instruction, uint16_t dwarf)
{
    struct call_frame *call_frame = instruction->call_frame;
    struct call_frame_row *row = &call_frame->now;
    if (!call_frame->is_begun)
        return corrupt(instruction, "restores a register before a function has begun");
    struct call_frame_rule rule = call_frame_rule(&call_frame->initial, dwarf);
    if (rule.kind != CALL_FRAME_UNSPECIFIED)
        return set_rule(instruction, rule);
    uint16_t place = find_place(row, dwarf);
    if (has_rule_at(row, place, dwarf)) {
        row->rule_count--;
        memmove(&row->rules[place], &row->rules[place + 1],
                (size_t)(row->rule_count - place) * sizeof *row->rules);
    }
    return CAIRN_OK;
}

/* The kinds of rules, by the opcode that sets them, and whether the offset is signed. */
static const struct {
    uint8_t kind;
    bool is_signed;
} rule_opcodes[] = {
    [OFFSET_EXTENDED] = {CALL_FRAME_SAVED, false},
    [UNDEFINED] = {CALL_FRAME_UNDEFINED, false},
    [SAME_VALUE] = {CALL_FRAME_SAME, false},
    [REGISTER] = {CALL_FRAME_REGISTER, false},
    [EXPRESSION] = {CALL_FRAME_SAVED_EXPRESSION, false},
    [OFFSET_EXTENDED_SF] = {CALL_FRAME_SAVED, true},
    [VAL_OFFSET] = {CALL_FRAME_VALUE, false},
    [VAL_OFFSET_SF] = {CALL_FRAME_VALUE, true},
    [VAL_EXPRESSION] = {CALL_FRAME_VALUE_EXPRESSION, false},
    [NEGATIVE_OFFSET_EXTENDED] = {CALL_FRAME_SAVED, false},
};

/* Executes an instruction of rule_opcodes: a register, and the operands of its rule. */
static enum cairn_status run_rule(struct instruction *instruction)
{
    uint8_t opcode = instruction->opcode;
    struct call_frame_rule rule = {.kind = rule_opcodes[opcode].kind};
    enum cairn_status status = read_register(instruction, &rule.dwarf);
    if (status != CAIRN_OK)
        return status;
    uint16_t other = 0;
    switch (rule.kind) {
    case CALL_FRAME_SAVED:
    case CALL_FRAME_VALUE:
        status = read_scaled(instruction, rule_opcodes[opcode].is_signed,
                             opcode == NEGATIVE_OFFSET_EXTENDED, &rule.value);
        break;
    case CALL_FRAME_REGISTER:
        status = read_register(instruction, &other);
        rule.value = other;
        break;
    case CALL_FRAME_SAVED_EXPRESSION:
    case CALL_FRAME_VALUE_EXPRESSION:
        status = read_expression(instruction, &rule.value);
        break;
    default:
        break;
    }
    return status == CAIRN_OK ? set_rule(instruction, rule) : status;
}

/* ---- The CFA ---- */

/* Defines the CFA, or changes its register or its offset. */
static enum cairn_status run_cfa(struct instruction *instruction)
{
    struct call_frame_row *row = &instruction->call_frame->now;
    uint8_t opcode = instruction->opcode;
    bool is_definition = opcode == DEF_CFA || opcode == DEF_CFA_SF;
    bool is_scaled = opcode == DEF_CFA_SF || opcode == DEF_CFA_OFFSET_SF;
    if (opcode == DEF_CFA_EXPRESSION) {
        row->cfa = CALL_FRAME_CFA_EXPRESSION;
        row->cfa_register = 0;
        return read_expression(instruction, &row->cfa_value);
    }
    if (!is_definition && row->cfa != CALL_FRAME_CFA_REGISTER)
        return corrupt(instruction, "changes a CFA that is not a register and an offset");
    row->cfa = CALL_FRAME_CFA_REGISTER;
    if (is_definition || opcode == DEF_CFA_REGISTER) {
        enum cairn_status status = read_register(instruction, &row->cfa_register);
        if (status != CAIRN_OK || opcode == DEF_CFA_REGISTER)
            return status;
    }
    return is_scaled ? read_scaled(instruction, true, false, &row->cfa_value)
                     : read_unsigned(instruction, &row->cfa_value);
}

/* ---- Locations ---- */

static enum cairn_status move_to(const struct instruction *instruction, uint64_t location)
{
    struct call_frame *call_frame = instruction->call_frame;
    if (!call_frame->is_begun)
        return corrupt(instruction, "moves on before a function has begun");
    if (location < call_frame->location)
        return corrupt(instruction, "moves back");
    if (location > call_frame->description->function.size)
        return corrupt(instruction, "moves beyond the function's end");
    call_frame->location = location;
    return CAIRN_OK;
}

static enum cairn_status run_advance(const struct instruction *instruction, uint64_t delta)
{
    const struct call_frame *call_frame = instruction->call_frame;
    enum cairn_status status = check_operands(instruction);
    if (status != CAIRN_OK)
        return status;
    uint64_t location;
    if (__builtin_mul_overflow(delta, call_frame->description->common.code_alignment, &location) ||
        __builtin_add_overflow(location, call_frame->location, &location))
        return corrupt(instruction, "moves beyond the function's end");
    return move_to(instruction, location);
}

static enum cairn_status run_set_location(struct instruction *instruction)
{
    const struct eh_frame_description *description = instruction->call_frame->description;
    uint64_t address =
        frame_read_pointer(&instruction->reader, description->common.address_encoding);
    enum cairn_status status = check_operands(instruction);
    if (status != CAIRN_OK)
        return status;
    if (address < description->function.address)
        return corrupt(instruction, "moves before the function's begin");
    return move_to(instruction, address - description->function.address);
}

/* ---- States ---- */

/* Copies everything except the addresses of the row and the size of arguments. Copies only the
 * rules in use. */
static void copy_state(struct call_frame_row *to, const struct call_frame_row *from)
{
    to->cfa = from->cfa;
    to->signing = from->signing;
    to->cfa_register = from->cfa_register;
    to->cfa_value = from->cfa_value;
    to->rule_count = from->rule_count;
    memcpy(to->rules, from->rules, from->rule_count * sizeof *from->rules);
}

static enum cairn_status run_remember(const struct instruction *instruction)
{
    struct call_frame *call_frame = instruction->call_frame;
    bool is_recall = instruction->opcode == RECALL;
    if (is_recall && call_frame->depth == 0)
        return corrupt(instruction, "restores a state, but no state is remembered");
    if (!is_recall && call_frame->depth == CALL_FRAME_NESTING_MAX)
        return unsupported(instruction, CALL_FRAME_NESTING, CALL_FRAME_NESTING_MAX,
                           "remembers one more state than can be held");
    if (is_recall)
        copy_state(&call_frame->now, &call_frame->remembered[--call_frame->depth]);
    else
        copy_state(&call_frame->remembered[call_frame->depth++], &call_frame->now);
    return CAIRN_OK;
}

/* AArch64: sets how the return address is signed, or switches between not signed and signed. */
static enum cairn_status run_signing(struct instruction *instruction)
{
    struct call_frame_row *row = &instruction->call_frame->now;
    if (!instruction->call_frame->has_signing)
        return unsupported(instruction, CALL_FRAME_OPCODE, instruction->opcode, "is not known");
    if (instruction->opcode == SET_SIGNING) {
        uint64_t state = frame_read_uleb128(&instruction->reader);
        frame_read_sleb128(&instruction->reader); /* distance to the signing instruction */
        enum cairn_status status = check_operands(instruction);
        if (status == CAIRN_OK && state > CALL_FRAME_SIGNED_WITH_PC)
            return corrupt(instruction, "says that the return address is signed in an unknown way");
        if (status == CAIRN_OK)
            row->signing = (uint8_t)state;
        return status;
    }
    uint8_t signing =
        instruction->opcode == NEGATE_SIGNING ? CALL_FRAME_SIGNED : CALL_FRAME_SIGNED_WITH_PC;
    if (row->signing != CALL_FRAME_NOT_SIGNED && row->signing != signing)
        return corrupt(instruction, "does not fit how the return address was signed");
    row->signing = row->signing == CALL_FRAME_NOT_SIGNED ? signing : CALL_FRAME_NOT_SIGNED;
    return CAIRN_OK;
}

/* ---- Instructions ---- */

static enum cairn_status run_extended(struct instruction *instruction)
{
    struct frame_reader *reader = &instruction->reader;
    uint16_t dwarf = 0;
    enum cairn_status status;
    switch (instruction->opcode) {
    case NOP:
        return CAIRN_OK;
    case SET_LOC:
        return run_set_location(instruction);
    case ADVANCE_1:
        return run_advance(instruction, frame_read_u8(reader));
    case ADVANCE_2:
        return run_advance(instruction, frame_read_u16(reader));
    case ADVANCE_4:
        return run_advance(instruction, frame_read_u32(reader));
    case RESTORE_EXTENDED:
        status = read_register(instruction, &dwarf);
        return status == CAIRN_OK ? run_restore(instruction, dwarf) : status;
    case REMEMBER:
    case RECALL:
        return run_remember(instruction);
    case DEF_CFA:
    case DEF_CFA_SF:
    case DEF_CFA_REGISTER:
    case DEF_CFA_OFFSET:
    case DEF_CFA_OFFSET_SF:
    case DEF_CFA_EXPRESSION:
        return run_cfa(instruction);
    case SET_SIGNING:
    case NEGATE_SIGNING:
    case NEGATE_SIGNING_WITH_PC:
        return run_signing(instruction);
    case ARGUMENT_SIZE:
        instruction->call_frame->now.argument_size = frame_read_uleb128(reader);
        return check_operands(instruction);
    default:
        if (instruction->opcode < sizeof rule_opcodes / sizeof *rule_opcodes &&
            rule_opcodes[instruction->opcode].kind != CALL_FRAME_UNSPECIFIED)
            return run_rule(instruction);
        return unsupported(instruction, CALL_FRAME_OPCODE, instruction->opcode, "is not known");
    }
}

/* Executes the instruction at `call_frame->at`, and moves past it. */
static enum cairn_status step(struct call_frame *call_frame, size_t end, struct cairn_error *error)
{
    struct instruction instruction = {
        .call_frame = call_frame,
        .reader = {.frame = call_frame->frame, .at = call_frame->at, .end = end},
        .offset = call_frame->at,
        .error = error,
    };
    instruction.opcode = frame_read_u8(&instruction.reader);
    uint8_t operand = instruction.opcode & OPCODE_OPERAND;
    struct call_frame_rule rule = {.kind = CALL_FRAME_SAVED, .dwarf = operand};
    enum cairn_status status;
    switch (instruction.opcode & ~OPCODE_OPERAND) {
    case ADVANCE:
        status = run_advance(&instruction, operand);
        break;
    case OFFSET:
        status = read_scaled(&instruction, false, false, &rule.value);
        if (status == CAIRN_OK)
            status = set_rule(&instruction, rule);
        break;
    case RESTORE:
        status = run_restore(&instruction, operand);
        break;
    default:
        status = run_extended(&instruction);
        break;
    }
    call_frame->at = instruction.reader.at;
    return status;
}

/* ---- Rows ---- */

void call_frame_begin(struct call_frame *call_frame, const struct eh_frame *frame,
                      const struct eh_frame_description *description, bool has_signing)
{
    call_frame->frame = frame;
    call_frame->description = description;
    call_frame->has_signing = has_signing;
    call_frame->limit = CALL_FRAME_UNDERSTOOD;
    call_frame->detail = 0;
    call_frame->depth = 0;
    call_frame->is_begun = false;
    call_frame->at = description->common.instructions.begin;
    call_frame->location = 0;
    call_frame->now = (struct call_frame_row){.begin = description->function.address};
}

enum cairn_status call_frame_run_common(struct call_frame *call_frame, struct cairn_error *error)
{
    const struct eh_frame_common *common = &call_frame->description->common;
    if (common->unknown_letter != 0) {
        call_frame->limit = CALL_FRAME_LETTER;
        call_frame->detail = (uint8_t)common->unknown_letter;
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, common->offset,
                         "the common information at offset %zu of the unwind table has the "
                         "augmentation '%c', which is not known",
                         common->offset, common->unknown_letter);
    }
    while (call_frame->at < common->instructions.end) {
        enum cairn_status status = step(call_frame, common->instructions.end, error);
        if (status != CAIRN_OK)
            return status;
    }
    copy_state(&call_frame->initial, &call_frame->now);
    call_frame->at = call_frame->description->instructions.begin;
    call_frame->is_begun = true;
    return CAIRN_OK;
}

void call_frame_begin_after(struct call_frame *call_frame, const struct call_frame *common,
                            const struct eh_frame_description *description)
{
    call_frame_begin(call_frame, common->frame, description, common->has_signing);
    copy_state(&call_frame->now, &common->now);
    call_frame->now.argument_size = common->now.argument_size;
    copy_state(&call_frame->initial, &common->initial);
    for (; call_frame->depth < common->depth; call_frame->depth++)
        copy_state(&call_frame->remembered[call_frame->depth],
                   &common->remembered[call_frame->depth]);
    call_frame->at = description->instructions.begin;
    call_frame->is_begun = true;
}

enum cairn_status call_frame_next(struct call_frame *call_frame, struct call_frame_row *row,
                                  bool *found, struct cairn_error *error)
{
    *found = false;
    enum cairn_status status =
        call_frame->is_begun ? CAIRN_OK : call_frame_run_common(call_frame, error);
    uint64_t before = call_frame->location;
    size_t end = call_frame->description->instructions.end;
    while (status == CAIRN_OK && call_frame->at < end && call_frame->location == before)
        status = step(call_frame, end, error);
    if (status != CAIRN_OK)
        return status;
    uint64_t size = call_frame->description->function.size;
    uint64_t location = call_frame->location != before ? call_frame->location : size;
    *found = location != before;
    if (*found) {
        /* The next row begins where this one ends, with the same rules. */
        struct call_frame_row *now = &call_frame->now;
        row->begin = now->begin;
        row->end = call_frame->description->function.address + location;
        row->argument_size = now->argument_size;
        copy_state(row, now);
        now->begin = row->end;
    }
    call_frame->location = location;
    return CAIRN_OK;
}
