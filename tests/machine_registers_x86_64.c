/* SPDX-License-Identifier: MIT */
#include "tests/registers.h"

#define MEMBER(member) offsetof(struct registers, member)

enum { LEVEL_AVX512 = 3, RSP = 7 };

static bool place_vector(size_t number, size_t bytes_of_all, size_t *offset, size_t *bytes)
{
    *offset = MEMBER(vectors) + number * REGISTERS_VECTOR_BYTES;
    *bytes = bytes_of_all;
    return true;
}

bool registers_place(uint16_t dwarf, uint32_t level, size_t *offset, size_t *bytes)
{
    size_t vector_bytes = (size_t)8 << level;
    *bytes = 8;
    if (dwarf >= 17 && dwarf <= 32)
        return place_vector(dwarf - 17U, vector_bytes, offset, bytes);
    if (level == LEVEL_AVX512 && dwarf >= 67 && dwarf <= 82)
        return place_vector(dwarf - 67U + 16, vector_bytes, offset, bytes);
    if (dwarf < 16)
        *offset = MEMBER(general) + (size_t)dwarf * 8;
    else if (dwarf == 49)
        *offset = MEMBER(flags);
    else if (level == LEVEL_AVX512 && dwarf >= 118 && dwarf <= 125)
        *offset = MEMBER(masks) + (dwarf - 118U) * 8;
    else if (dwarf == 64) {
        *offset = MEMBER(control);
        *bytes = 4;
    } else
        return false;
    return true;
}

uint16_t registers_stack_pointer(void) { return RSP; }

bool registers_is_given_up(uint16_t dwarf)
{
    (void)dwarf;
    return false;
}

/* rbx, rbp, rsp, r12 to r15, and MXCSR. */
bool registers_is_kept(uint16_t dwarf)
{
    return dwarf == 3 || dwarf == 6 || dwarf == RSP || (dwarf >= 12 && dwarf <= 15) || dwarf == 64;
}

bool registers_is_fixed(uint16_t dwarf) { return dwarf == RSP; }

void registers_make_possible(struct registers *registers)
{
    enum {
        STATUS_AND_DIRECTION = 0xCD5,
        INTERRUPTS_AND_ONE = 0x202,
        ROUNDING_AND_STATUS = 0xE07F,
        MASKS = 0x1F80
    };
    registers->flags = (registers->flags & STATUS_AND_DIRECTION) | INTERRUPTS_AND_ONE;
    registers->control = (registers->control & ROUNDING_AND_STATUS) | MASKS;
}

bool registers_has_red_zone(void) { return true; }

void registers_make_pair(struct registers *before, struct registers *wanted)
{
    (void)before;
    (void)wanted;
}

/* All flags except the resume flag, which interrupts set. */
uint64_t registers_flags_mask(void) { return ~UINT64_C(0x10000); }

uint64_t registers_step_flag(void) { return 0x100; }

uint64_t registers_call_bytes(void) { return 8; }

uint64_t registers_code_address(const uint8_t *label) { return (uintptr_t)label; }

bool registers_is_pc(uint16_t dwarf) { return dwarf == 16; }

const void *registers_call_function(struct registers *registers, const void *function,
                                    void *argument)
{
    enum { RDI = 5, DIRECTION = 0x400 };
    registers->general[RDI] = (uintptr_t)argument;
    registers->flags &= ~(uint64_t)DIRECTION;
    return function;
}

bool registers_suit_c(void)
{
    enum { DIRECTION = 0x400 };
    bool is_aligned = (uintptr_t)__builtin_frame_address(0) % 16 == 0;
    return is_aligned && (__builtin_ia32_readeflags_u64() & DIRECTION) == 0;
}
