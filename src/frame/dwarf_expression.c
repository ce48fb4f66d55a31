/*
 * Evaluating DWARF expressions.
 *
 * Supports the operations in the unwind tables of signal trampolines (glibc, Linux), of linker
 * stubs (binutils, lld), and of functions in which GCC or clang realigns the stack. Other
 * operations are reported with their opcode.
 *
 * Source: DWARF 5, section 2.5, "DWARF Expressions".
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame/dwarf_expression.h"

#include "arch/arch.h"
#include "base/error.h"
#include "frame/registers.h"
#include "unwind/frame_reader.h"

#include <string.h>

enum {
    DEREFERENCE = 0x06,
    CONSTANT_U8 = 0x08, /* then S8, U16, S16, U32, S32, U64, S64 */
    CONSTANT_S64 = 0x0F,
    CONSTANT_UNSIGNED = 0x10,
    CONSTANT_SIGNED = 0x11,
    DUPLICATE = 0x12,
    DROP = 0x13,
    SWAP = 0x16,
    AND = 0x1A,
    MINUS = 0x1C,
    OR = 0x21,
    PLUS = 0x22,
    PLUS_CONSTANT = 0x23,
    SHIFT_LEFT = 0x24,
    SHIFT_RIGHT = 0x25,
    EQUAL = 0x29,
    GREATER_OR_EQUAL = 0x2A,
    GREATER = 0x2B,
    LESS_OR_EQUAL = 0x2C,
    LESS = 0x2D,
    NOT_EQUAL = 0x2E,
    LITERAL_0 = 0x30,
    LITERAL_END = 0x50,
    REGISTER_0 = 0x70,
    REGISTER_END = 0x90,
    REGISTER_BY_NUMBER = 0x92,
    NO_OPERATION = 0x96
};

enum { DEPTH_MAX = 16 };

struct machine {
    const struct cairn_frame *frame;
    struct frame_reader reader;
    uint8_t opcode;
    /* Whether the expression has popped from the empty stack, pushed to the full one, or loaded
     * from address 0. */
    bool is_broken;
    unsigned depth;
    uint64_t stack[DEPTH_MAX];
    struct cairn_error *error;
};

/* ---- The stack ---- */

static void push(struct machine *machine, uint64_t value)
{
    if (machine->depth == DEPTH_MAX)
        machine->is_broken = true;
    else
        machine->stack[machine->depth++] = value;
}

static uint64_t pop(struct machine *machine)
{
    if (machine->depth != 0)
        return machine->stack[--machine->depth];
    machine->is_broken = true;
    return 0;
}

/* ---- Registers and memory ---- */

/* Pushes a register's value plus an offset. If the return address is always in memory, its register
 * number means the PC. */
static enum cairn_status push_register(struct machine *machine, uint64_t number)
{
    const struct cairn_arch *arch = arch_host();
    const struct cairn_frame *frame = machine->frame;
    uint64_t offset = (uint64_t)frame_read_sleb128(&machine->reader);
    uint64_t value = frame->pc;
    bool is_pc =
        !arch->has_link_register && number == arch->unwind_slots[ARCH_UNWIND_RETURN_ADDRESS].dwarf;
    enum cairn_status status = CAIRN_OK;
    if (number > UINT16_MAX)
        return error_set(machine->error, CAIRN_ERROR_UNSUPPORTED, frame->pc,
                         "the DWARF expression of the frame at 0x%llx names a register by a number "
                         "of more than 16 bits",
                         (unsigned long long)frame->pc);
    if (!is_pc)
        status = frame_base(frame, (uint16_t)number, &value, machine->error);
    push(machine, value + offset);
    return status;
}

/* ---- Operations ---- */

static bool compare(uint8_t opcode, int64_t left, int64_t right)
{
    switch (opcode) {
    case EQUAL:
        return left == right;
    case GREATER_OR_EQUAL:
        return left >= right;
    case GREATER:
        return left > right;
    case LESS_OR_EQUAL:
        return left <= right;
    case LESS:
        return left < right;
    default:
        return left != right;
    }
}

/* Returns false if the operation does not take two values. */
static bool run_binary(struct machine *machine)
{
    uint8_t opcode = machine->opcode;
    bool is_comparison = opcode >= EQUAL && opcode <= NOT_EQUAL;
    bool is_shift = opcode == SHIFT_LEFT || opcode == SHIFT_RIGHT;
    if (!is_comparison && !is_shift && opcode != AND && opcode != MINUS && opcode != OR &&
        opcode != PLUS)
        return false;
    uint64_t right = pop(machine);
    uint64_t left = pop(machine);
    if (is_comparison)
        push(machine, compare(opcode, (int64_t)left, (int64_t)right));
    else if (is_shift && right >= 64)
        push(machine, 0);
    else if (is_shift)
        push(machine, opcode == SHIFT_LEFT ? left << right : left >> right);
    else if (opcode == AND)
        push(machine, left & right);
    else if (opcode == OR)
        push(machine, left | right);
    else
        push(machine, opcode == PLUS ? left + right : left - right);
    return true;
}

/* Returns false if the operation is not a constant. */
static bool run_constant(struct machine *machine)
{
    struct frame_reader *reader = &machine->reader;
    uint8_t opcode = machine->opcode;
    if (opcode >= LITERAL_0 && opcode < LITERAL_END)
        push(machine, (uint64_t)opcode - LITERAL_0);
    else if (opcode >= CONSTANT_U8 && opcode <= CONSTANT_S64) {
        unsigned size = 1U << (opcode - CONSTANT_U8) / 2;
        unsigned unused = 64 - 8 * size;
        uint64_t number = size == 1   ? frame_read_u8(reader)
                          : size == 2 ? frame_read_u16(reader)
                          : size == 4 ? frame_read_u32(reader)
                                      : frame_read_u64(reader);
        bool is_signed = opcode % 2 == 1;
        push(machine, is_signed ? (uint64_t)((int64_t)(number << unused) >> unused) : number);
    } else if (opcode == CONSTANT_UNSIGNED)
        push(machine, frame_read_uleb128(reader));
    else if (opcode == CONSTANT_SIGNED)
        push(machine, (uint64_t)frame_read_sleb128(reader));
    else
        return false;
    return true;
}

static enum cairn_status run_other(struct machine *machine)
{
    uint64_t last;
    uint64_t other = 0;
    switch (machine->opcode) {
    case DEREFERENCE:
        last = pop(machine);
        machine->is_broken |= last == 0;
        if (last != 0)
            memcpy(&other, (const void *)(uintptr_t)last, sizeof other);
        push(machine, other);
        return CAIRN_OK;
    case DUPLICATE:
        last = pop(machine);
        push(machine, last);
        push(machine, last);
        return CAIRN_OK;
    case DROP:
        pop(machine);
        return CAIRN_OK;
    case SWAP:
        last = pop(machine);
        other = pop(machine);
        push(machine, last);
        push(machine, other);
        return CAIRN_OK;
    case PLUS_CONSTANT:
        push(machine, pop(machine) + frame_read_uleb128(&machine->reader));
        return CAIRN_OK;
    case REGISTER_BY_NUMBER:
        return push_register(machine, frame_read_uleb128(&machine->reader));
    case NO_OPERATION:
        return CAIRN_OK;
    default:
        return error_set(machine->error, CAIRN_ERROR_UNSUPPORTED, machine->opcode,
                         "the DWARF expression of the frame at 0x%llx has the operation 0x%02x, "
                         "which is not known",
                         (unsigned long long)machine->frame->pc, machine->opcode);
    }
}

static enum cairn_status check(const struct machine *machine)
{
    const struct frame_reader *reader = &machine->reader;
    if (!machine->is_broken && !reader->overrun && !reader->overflow)
        return CAIRN_OK;
    return error_set(machine->error, CAIRN_ERROR_CORRUPT, machine->frame->pc,
                     "the DWARF expression of the frame at 0x%llx cannot be evaluated",
                     (unsigned long long)machine->frame->pc);
}

enum cairn_status expression_evaluate(const struct cairn_frame *frame,
                                      const struct eh_frame *section, size_t place,
                                      const uint64_t *first, uint64_t *value,
                                      struct cairn_error *error)
{
    struct machine machine = {.frame = frame, .error = error};
    struct frame_reader *reader = &machine.reader;
    *reader = (struct frame_reader){.frame = section, .at = place, .end = section->section.size};
    uint64_t size = frame_read_uleb128(reader);
    size_t begin = reader->at;
    frame_read_bytes(reader, size);
    reader->end = reader->at;
    reader->at = begin;
    if (first != NULL)
        push(&machine, *first);
    enum cairn_status status = check(&machine);
    while (status == CAIRN_OK && reader->at < reader->end) {
        machine.opcode = frame_read_u8(reader);
        if (machine.opcode >= REGISTER_0 && machine.opcode < REGISTER_END)
            status = push_register(&machine, (uint64_t)machine.opcode - REGISTER_0);
        else if (!run_constant(&machine) && !run_binary(&machine))
            status = run_other(&machine);
        if (status == CAIRN_OK)
            status = check(&machine);
    }
    if (status != CAIRN_OK)
        return status;
    *value = pop(&machine);
    return check(&machine);
}
