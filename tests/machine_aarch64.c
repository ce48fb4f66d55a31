/* SPDX-License-Identifier: MIT */
#include "tests/machine.h"

#include <string.h>

const uint32_t machine_enter_bytes = 8;
const uint32_t machine_patchpoint_bytes = 16;
const uint32_t machine_region_bytes = 4;
const uint32_t machine_region_too_small = 0;
const char *const machine_why_too_small = "0 bytes";
const uint16_t machine_result = 0;
const uint32_t machine_odd_distance = 4;
const char *const machine_odd_name = "0xd4400000";

static size_t put(uint8_t *code, const uint32_t *words, size_t size)
{
    memcpy(code, words, size);
    return size;
}

size_t machine_enter(uint8_t *code)
{
    /* mov x0, #0; stp x29, x30, [sp, #-16]! */
    static const uint32_t words[] = {0xD2800000, 0xA9BF7BFD};
    return put(code, words, sizeof words);
}

size_t machine_leave_frame(uint8_t *code)
{
    /* ldp x29, x30, [sp], #16 */
    static const uint32_t words[] = {0xA8C17BFD};
    return put(code, words, sizeof words);
}

size_t machine_return(uint8_t *code)
{
    static const uint32_t words[] = {0xD65F03C0};
    return put(code, words, sizeof words);
}

size_t machine_call(uint8_t *code, const void *target)
{
    uint64_t address = (uintptr_t)target;
    /* movz x16, #high, lsl #32; movk x16, #middle, lsl #16; movk x16, #low; blr x16 */
    const uint32_t words[] = {0xD2C00010 | (uint32_t)(address >> 32 & 0xFFFF) << 5,
                              0xF2A00010 | (uint32_t)(address >> 16 & 0xFFFF) << 5,
                              0xF2800010 | (uint32_t)(address & 0xFFFF) << 5, 0xD63F0200};
    return put(code, words, sizeof words);
}

size_t machine_set(uint8_t *code, int value)
{
    /* mov x0, #value */
    const uint32_t words[] = {0xD2800000 | (uint32_t)value << 5};
    return put(code, words, sizeof words);
}

size_t machine_increment(uint8_t *code)
{
    /* add x0, x0, #1 */
    static const uint32_t words[] = {0x91000400};
    return put(code, words, sizeof words);
}

size_t machine_odd(uint8_t *code)
{
    /* hlt #0 */
    static const uint32_t words[] = {0xD4400000};
    return put(code, words, sizeof words);
}

__asm__(".pushsection .text\n"
        ".balign 4\n"
        ".type machine_leave_llvm_function, %function\n"
        ".hidden machine_leave_llvm_function\n"
        ".globl machine_leave_llvm_function\n"
        "machine_leave_llvm_function:\n"
        "    mov sp, x29\n"
        "    ldp x29, x30, [sp], #16\n"
        "    mov x0, #77\n"
        "    ret\n"
        ".size machine_leave_llvm_function, . - machine_leave_llvm_function\n"
        ".popsection\n");
