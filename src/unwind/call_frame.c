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

static enum cairn_status read_signed(struct instruction *instruction, int64_t *value)
{
    *value = frame_read_sleb128(&instruction->reader);
    return check_operands(instruction);
}

static enum cairn_status scale(const struct instruction *instruction, int64_t *value)
{
    int64_t alignment = instruction->call_frame->description->common.data_alignment;
    if (__builtin_mul_overflow(*value, alignment, value))
        return corrupt(instruction, "has an offset that does not fit into 64 bits");
    return CAIRN_OK;
}

/* Reads an offset in units of the data alignment. */
static enum cairn_status read_scaled(struct instruction *instruction, bool is_signed,
                                     int64_t *value)
{
    enum cairn_status status =
        is_signed ? read_signed(instruction, value) : read_unsigned(instruction, value);
    return status == CAIRN_OK ? scale(instruction, value) : status;
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

static void remove_rule(struct call_frame_row *row, uint16_t dwarf)
{
    uint16_t place = find_place(row, dwarf);
    if (!has_rule_at(row, place, dwarf))
        return;
    row->rule_count--;
    memmove(&row->rules[place], &row->rules[place + 1],
            (size_t)(row->rule_count - place) * sizeof *row->rules);
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

static enum cairn_status run_restore(const struct instruction *instruction, uint16_t dwarf)
{
    struct call_frame *call_frame = instruction->call_frame;
    if (!call_frame->is_begun)
        return corrupt(instruction, "restores a register before a function has begun");
    struct call_frame_rule rule = call_frame_rule(&call_frame->initial, dwarf);
    if (rule.kind != CALL_FRAME_UNSPECIFIED)
        return set_rule(instruction, rule);
    remove_rule(&call_frame->now, dwarf);
    return CAIRN_OK;
}

/* Executes an instruction with a register and the operands of a rule of this kind. */
static enum cairn_status run_rule(struct instruction *instruction, enum call_frame_kind kind,
                                  bool is_signed)
{
    struct call_frame_rule rule = {.kind = (uint8_t)kind};
    enum cairn_status status = read_register(instruction, &rule.dwarf);
    if (status != CAIRN_OK)
        return status;
    uint16_t other = 0;
    switch (kind) {
    case CALL_FRAME_SAVED:
    case CALL_FRAME_VALUE:
        status = read_scaled(instruction, is_signed, &rule.value);
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

static enum cairn_status run_negative_offset(struct instruction *instruction)
{
    struct call_frame_rule rule = {.kind = CALL_FRAME_SAVED};
    enum cairn_status status = read_register(instruction, &rule.dwarf);
    if (status == CAIRN_OK)
        status = read_unsigned(instruction, &rule.value);
    if (status != CAIRN_OK)
        return status;
    rule.value = -rule.value;
    status = scale(instruction, &rule.value);
    return status == CAIRN_OK ? set_rule(instruction, rule) : status;
}

static enum cairn_status run_offset(struct instruction *instruction)
{
    struct call_frame_rule rule = {.kind = CALL_FRAME_SAVED,
                                   .dwarf = instruction->opcode & OPCODE_OPERAND};
    enum cairn_status status = read_scaled(instruction, false, &rule.value);
    return status == CAIRN_OK ? set_rule(instruction, rule) : status;
}

static enum cairn_status run_restore_extended(struct instruction *instruction)
{
    uint16_t dwarf = 0;
    enum cairn_status status = read_register(instruction, &dwarf);
    return status == CAIRN_OK ? run_restore(instruction, dwarf) : status;
}

/* ---- The CFA ---- */

static enum cairn_status run_define_cfa(struct instruction *instruction, bool is_scaled)
{
    struct call_frame_row *row = &instruction->call_frame->now;
    enum cairn_status status = read_register(instruction, &row->cfa_register);
    if (status == CAIRN_OK && is_scaled)
        status = read_scaled(instruction, true, &row->cfa_value);
    else if (status == CAIRN_OK)
        status = read_unsigned(instruction, &row->cfa_value);
    row->cfa = CALL_FRAME_CFA_REGISTER;
    return status;
}

/* Changes the CFA's register or offset. */
static enum cairn_status run_change_cfa(struct instruction *instruction)
{
    struct call_frame_row *row = &instruction->call_frame->now;
    if (row->cfa != CALL_FRAME_CFA_REGISTER)
        return corrupt(instruction, "changes a CFA that is not a register and an offset");
    if (instruction->opcode == DEF_CFA_REGISTER)
        return read_register(instruction, &row->cfa_register);
    if (instruction->opcode == DEF_CFA_OFFSET_SF)
        return read_scaled(instruction, true, &row->cfa_value);
    return read_unsigned(instruction, &row->cfa_value);
}

static enum cairn_status run_cfa_expression(struct instruction *instruction)
{
    struct call_frame_row *row = &instruction->call_frame->now;
    row->cfa = CALL_FRAME_CFA_EXPRESSION;
    row->cfa_register = 0;
    return read_expression(instruction, &row->cfa_value);
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
    if (call_frame->depth == CALL_FRAME_NESTING_MAX)
        return unsupported(instruction, CALL_FRAME_NESTING, CALL_FRAME_NESTING_MAX,
                           "remembers one more state than can be held");
    copy_state(&call_frame->remembered[call_frame->depth++], &call_frame->now);
    return CAIRN_OK;
}

static enum cairn_status run_recall(const struct instruction *instruction)
{
    struct call_frame *call_frame = instruction->call_frame;
    if (call_frame->depth == 0)
        return corrupt(instruction, "brings a state back and none is remembered");
    copy_state(&call_frame->now, &call_frame->remembered[--call_frame->depth]);
    return CAIRN_OK;
}

/* ---- Signed return addresses ---- */

static enum cairn_status run_set_signing(struct instruction *instruction)
{
    uint64_t state = frame_read_uleb128(&instruction->reader);
    frame_read_sleb128(&instruction->reader); /* distance from here to the signing instruction */
    enum cairn_status status = check_operands(instruction);
    if (status == CAIRN_OK && state > CALL_FRAME_SIGNED_WITH_PC)
        status = corrupt(instruction, "says that the return address is signed in an unknown way");
    if (status == CAIRN_OK)
        instruction->call_frame->now.signing = (uint8_t)state;
    return status;
}

/* Switches between not signed and `signing`. */
static enum cairn_status run_negate_signing(const struct instruction *instruction,
                                            enum call_frame_signing signing)
{
    struct call_frame_row *row = &instruction->call_frame->now;
    if (row->signing != CALL_FRAME_NOT_SIGNED && row->signing != (uint8_t)signing)
        return corrupt(instruction, "does not fit how the return address was signed");
    row->signing = row->signing == CALL_FRAME_NOT_SIGNED ? (uint8_t)signing : CALL_FRAME_NOT_SIGNED;
    return CAIRN_OK;
}

/* ---- Instructions ---- */

/* Executes an instruction of a vendor. */
static enum cairn_status run_vendor(struct instruction *instruction)
{
    bool is_signing = instruction->opcode >= SET_SIGNING && instruction->opcode <= NEGATE_SIGNING;
    if (is_signing && !instruction->call_frame->has_signing)
        return unsupported(instruction, CALL_FRAME_OPCODE, instruction->opcode, "is not known");
    switch (instruction->opcode) {
    case SET_SIGNING:
        return run_set_signing(instruction);
    case NEGATE_SIGNING:
        return run_negate_signing(instruction, CALL_FRAME_SIGNED);
    case NEGATE_SIGNING_WITH_PC:
        return run_negate_signing(instruction, CALL_FRAME_SIGNED_WITH_PC);
    case ARGUMENT_SIZE:
        instruction->call_frame->now.argument_size = frame_read_uleb128(&instruction->reader);
        return check_operands(instruction);
    case NEGATIVE_OFFSET_EXTENDED:
        return run_negative_offset(instruction);
    default:
        return unsupported(instruction, CALL_FRAME_OPCODE, instruction->opcode, "is not known");
    }
}

static enum cairn_status run_register_rule(struct instruction *instruction)
{
    switch (instruction->opcode) {
    case OFFSET_EXTENDED:
        return run_rule(instruction, CALL_FRAME_SAVED, false);
    case OFFSET_EXTENDED_SF:
        return run_rule(instruction, CALL_FRAME_SAVED, true);
    case UNDEFINED:
        return run_rule(instruction, CALL_FRAME_UNDEFINED, false);
    case SAME_VALUE:
        return run_rule(instruction, CALL_FRAME_SAME, false);
    case REGISTER:
        return run_rule(instruction, CALL_FRAME_REGISTER, false);
    case EXPRESSION:
        return run_rule(instruction, CALL_FRAME_SAVED_EXPRESSION, false);
    case VAL_EXPRESSION:
        return run_rule(instruction, CALL_FRAME_VALUE_EXPRESSION, false);
    case VAL_OFFSET:
        return run_rule(instruction, CALL_FRAME_VALUE, false);
    case VAL_OFFSET_SF:
        return run_rule(instruction, CALL_FRAME_VALUE, true);
    default:
        return run_vendor(instruction);
    }
}

static enum cairn_status run_extended(struct instruction *instruction)
{
    struct frame_reader *reader = &instruction->reader;
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
        return run_restore_extended(instruction);
    case REMEMBER:
        return run_remember(instruction);
    case RECALL:
        return run_recall(instruction);
    case DEF_CFA:
        return run_define_cfa(instruction, false);
    case DEF_CFA_SF:
        return run_define_cfa(instruction, true);
    case DEF_CFA_REGISTER:
    case DEF_CFA_OFFSET:
    case DEF_CFA_OFFSET_SF:
        return run_change_cfa(instruction);
    case DEF_CFA_EXPRESSION:
        return run_cfa_expression(instruction);
    default:
        return run_register_rule(instruction);
    }
}

static enum cairn_status run_instruction(struct instruction *instruction)
{
    uint8_t operand = instruction->opcode & OPCODE_OPERAND;
    switch (instruction->opcode & ~OPCODE_OPERAND) {
    case ADVANCE:
        return run_advance(instruction, operand);
    case OFFSET:
        return run_offset(instruction);
    case RESTORE:
        return run_restore(instruction, operand);
    default:
        return run_extended(instruction);
    }
}

static enum cairn_status step(struct call_frame *call_frame, size_t end, struct cairn_error *error)
{
    struct instruction instruction = {
        .call_frame = call_frame,
        .reader = {.frame = call_frame->frame, .at = call_frame->at, .end = end},
        .offset = call_frame->at,
        .error = error,
    };
    instruction.opcode = frame_read_u8(&instruction.reader);
    enum cairn_status status = run_instruction(&instruction);
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

/* Ends the current row at `location`. The next row begins there, with the same rules. */
static void finish_row(struct call_frame *call_frame, uint64_t location, struct call_frame_row *row)
{
    struct call_frame_row *now = &call_frame->now;
    row->begin = now->begin;
    row->end = call_frame->description->function.address + location;
    row->argument_size = now->argument_size;
    copy_state(row, now);
    now->begin = row->end;
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
    if (*found)
        finish_row(call_frame, location, row);
    call_frame->location = location;
    return CAIRN_OK;
}
