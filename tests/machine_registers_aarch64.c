/* SPDX-License-Identifier: MIT */
#include "tests/registers.h"

#define MEMBER(member) offsetof(struct registers, member)

enum { X16 = 16, X17 = 17, LINK = 30, SP = 31, V0 = 64, V31 = 95 };

bool registers_place(uint16_t dwarf, uint32_t level, size_t *offset, size_t *bytes)
{
    (void)level;
    *bytes = dwarf >= V0 ? 16 : 8;
    if (dwarf <= SP)
        *offset = MEMBER(general) + (size_t)dwarf * 8;
    else if (dwarf >= V0 && dwarf <= V31)
        *offset = MEMBER(vectors) + ((size_t)dwarf - V0) * REGISTERS_VECTOR_BYTES;
    else
        return false;
    return true;
}

uint16_t registers_stack_pointer(void) { return SP; }

bool registers_is_given_up(uint16_t dwarf) { return dwarf == X16 || dwarf == X17; }

/* x19 to x29, v8 to v15. */
bool registers_is_kept(uint16_t dwarf)
{
    return (dwarf >= 19 && dwarf <= 29) || dwarf == SP || (dwarf >= V0 + 8 && dwarf <= V0 + 15);
}

bool registers_is_fixed(uint16_t dwarf) { return dwarf == SP; }

bool registers_has_red_zone(void) { return false; }

/* N, Z, C, V. FPCR's rounding and flushing, FPSR's cumulative bits. */
void registers_make_possible(struct registers *registers)
{
    registers->flags &= UINT64_C(0xF0000000);
    registers->control &= UINT64_C(0x0800009F03C00000);
}

void registers_make_pair(struct registers *before, struct registers *wanted)
{
    before->general[LINK] = registers_code_address(registers_returned);
    wanted->control = before->control;
}

uint64_t registers_flags_mask(void) { return ~UINT64_C(0); }

uint64_t registers_step_flag(void) { return 0; }

uint64_t registers_call_bytes(void) { return 0; }

uint64_t registers_code_address(const uint8_t *label) { return (uintptr_t)label; }

bool registers_is_pc(uint16_t dwarf)
{
    (void)dwarf;
    return false;
}

const void *registers_call_function(struct registers *registers, const void *function,
                                    void *argument)
{
    registers->general[0] = (uintptr_t)argument;
    return function;
}

bool registers_suit_c(void) { return (uintptr_t)__builtin_frame_address(0) % 16 == 0; }
