/* SPDX-License-Identifier: MIT */
#include "tests/registers.h"

#include <string.h>

#define MEMBER(member) offsetof(struct registers, member)

enum {
    R1 = 1,
    R2 = 2,
    R3 = 3,
    R12 = 12,
    R13 = 13,
    F0 = 32,
    F31 = 63,
    CR = 64,
    LR = 65,
    CTR = 66,
    XER = 76,
    V0 = 77,
    V31 = 108,
    LEVEL_FLOAT = 1,
    LEVEL_VSX = 3,
    SECOND_IN_VECTORS = 32
};

#ifdef __LITTLE_ENDIAN__
enum { FIRST_DOUBLEWORD = 8 };
#else
enum { FIRST_DOUBLEWORD = 0 };
#endif

static bool place_vector(size_t index, bool is_whole, size_t *offset, size_t *bytes)
{
    *offset = MEMBER(vectors) + index * REGISTERS_VECTOR_BYTES;
    *bytes = 16;
    if (is_whole)
        return true;
    *offset += FIRST_DOUBLEWORD;
    *bytes = 8;
    return true;
}

static bool is_cr(uint16_t dwarf) { return dwarf == CR || (dwarf >= 68 && dwarf <= 75); }

bool registers_place(uint16_t dwarf, uint32_t level, size_t *offset, size_t *bytes)
{
    *bytes = 8;
    if (dwarf >= F0 && dwarf <= F31)
        return place_vector((size_t)dwarf - F0, level == LEVEL_VSX, offset, bytes);
    if (level > LEVEL_FLOAT && dwarf >= V0 && dwarf <= V31)
        return place_vector((size_t)dwarf - V0 + SECOND_IN_VECTORS, true, offset, bytes);
    if (dwarf < F0)
        *offset = MEMBER(general) + (size_t)dwarf * 8;
    else if (is_cr(dwarf))
        *offset = MEMBER(flags);
    else if (dwarf == LR)
        *offset = MEMBER(special[0]);
    else if (dwarf == CTR)
        *offset = MEMBER(special[1]);
    else if (dwarf == XER)
        *offset = MEMBER(special[2]);
    else
        return false;
    return true;
}

uint16_t registers_stack_pointer(void) { return R1; }

bool registers_is_given_up(uint16_t dwarf) { return dwarf == R12 || dwarf == CTR; }

/* CR, r14 to r31, f14 to f31, v20 to v31. */
bool registers_is_kept(uint16_t dwarf)
{
    return is_cr(dwarf) || dwarf == R1 || (dwarf >= 14 && dwarf <= 31) ||
           (dwarf >= F0 + 14 && dwarf <= F31) || (dwarf >= V0 + 20 && dwarf <= V31);
}

bool registers_is_fixed(uint16_t dwarf) { return dwarf == R1 || dwarf == R13; }

bool registers_has_red_zone(void) { return true; }

/* FPSCR: rounding, and the class of the last result. XER: SO, OV, CA. */
void registers_make_possible(struct registers *registers)
{
    registers->flags &= UINT64_C(0xFFFFFFFF);
    registers->control &= UINT64_C(0x1F003);
    registers->special[2] &= UINT64_C(0xE0000000);
}

void registers_make_pair(struct registers *before, struct registers *wanted)
{
    before->special[0] = registers_code_address(registers_returned);
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

/* In ELFv2, the function finds its TOC by r12, the address of its entry; in ELFv1, it has the same
 * TOC as this function. */
const void *registers_call_function(struct registers *registers, const void *function,
                                    void *argument)
{
    registers->general[R3] = (uintptr_t)argument;
#if _CALL_ELF == 2
    return function;
#else
    uint64_t descriptor[2];
    memcpy(descriptor, function, sizeof descriptor);
    registers->general[R2] = descriptor[1];
    return (const void *)(uintptr_t)descriptor[0];
#endif
}

bool registers_suit_c(void) { return (uintptr_t)__builtin_frame_address(0) % 16 == 0; }
