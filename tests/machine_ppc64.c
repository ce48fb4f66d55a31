/*
 * ELFv2: function pointers that these functions take and make are addresses of entries.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/machine.h"

#include <string.h>

const uint32_t machine_enter_bytes = 16;
const uint32_t machine_patchpoint_bytes = 32;
const uint32_t machine_region_bytes = 12;
const uint32_t machine_region_too_small = 8;
const char *const machine_why_too_small = "12 bytes";
const uint16_t machine_result = 3;
const uint32_t machine_odd_distance = 4;
const char *const machine_odd_name = "0x7fe00008";

static size_t put(uint8_t *code, const uint32_t *words, size_t size)
{
    memcpy(code, words, size);
    return size;
}

size_t machine_enter(uint8_t *code)
{
    /* li r3, 0; mflr r0; std r0, 16(r1); stdu r1, -32(r1) */
    static const uint32_t words[] = {0x38600000, 0x7C0802A6, 0xF8010010, 0xF821FFE1};
    return put(code, words, sizeof words);
}

size_t machine_leave_frame(uint8_t *code)
{
    /* addi r1, r1, 32; ld r0, 16(r1); mtlr r0 */
    static const uint32_t words[] = {0x38210020, 0xE8010010, 0x7C0803A6};
    return put(code, words, sizeof words);
}

size_t machine_return(uint8_t *code)
{
    /* blr */
    static const uint32_t words[] = {0x4E800020};
    return put(code, words, sizeof words);
}

size_t machine_call(uint8_t *code, const void *target)
{
    uint64_t address = (uintptr_t)target;
    /* li r12, bits 32 to 47; rldic r12, r12, 32, 16; oris; ori; std r2, 24(r1); mtctr r12; bctrl;
     * ld r2, 24(r1) */
    const uint32_t words[] = {0x39800000 | (uint32_t)(address >> 32 & 0xFFFF),
                              0x798C040A,
                              0x658C0000 | (uint32_t)(address >> 16 & 0xFFFF),
                              0x618C0000 | (uint32_t)(address & 0xFFFF),
                              0xF8410018,
                              0x7D8903A6,
                              0x4E800421,
                              0xE8410018};
    return put(code, words, sizeof words);
}

size_t machine_set(uint8_t *code, int value)
{
    /* li r3, value */
    const uint32_t words[] = {0x38600000 | (uint32_t)value};
    return put(code, words, sizeof words);
}

size_t machine_increment(uint8_t *code)
{
    /* addi r3, r3, 1 */
    static const uint32_t words[] = {0x38630001};
    return put(code, words, sizeof words);
}

size_t machine_odd(uint8_t *code)
{
    /* trap */
    static const uint32_t words[] = {0x7FE00008};
    return put(code, words, sizeof words);
}

__asm__(".pushsection .text\n"
        ".balign 4\n"
        ".type machine_leave_llvm_function, @function\n"
        ".hidden machine_leave_llvm_function\n"
        ".globl machine_leave_llvm_function\n"
        "machine_leave_llvm_function:\n"
        "    ld 1, 0(1)\n"
        "    ld 0, 16(1)\n"
        "    ld 31, -8(1)\n"
        "    mtlr 0\n"
        "    li 3, 77\n"
        "    blr\n"
        ".size machine_leave_llvm_function, . - machine_leave_llvm_function\n"
        ".popsection\n");
