/* SPDX-License-Identifier: MIT */
#include "tests/machine.h"

#include <string.h>

const uint32_t machine_enter_bytes = 6;
const uint32_t machine_patchpoint_bytes = 16;
const uint32_t machine_region_bytes = 9;
const uint32_t machine_region_too_small = 4;
const char *const machine_why_too_small = "9 bytes";
const uint16_t machine_result = 0;
const uint32_t machine_odd_distance = 2;
const char *const machine_odd_name = "0xf4";

static size_t put(uint8_t *code, const uint8_t *bytes, size_t size)
{
    memcpy(code, bytes, size);
    return size;
}

size_t machine_enter(uint8_t *code)
{
    /* xor %eax, %eax; sub $8, %rsp */
    static const uint8_t bytes[] = {0x31, 0xC0, 0x48, 0x83, 0xEC, 0x08};
    return put(code, bytes, sizeof bytes);
}

size_t machine_leave_frame(uint8_t *code)
{
    /* add $8, %rsp */
    static const uint8_t bytes[] = {0x48, 0x83, 0xC4, 0x08};
    return put(code, bytes, sizeof bytes);
}

size_t machine_return(uint8_t *code)
{
    static const uint8_t bytes[] = {0xC3};
    return put(code, bytes, sizeof bytes);
}

size_t machine_call(uint8_t *code, const void *target)
{
    /* movabs $target, %r11; call *%r11 */
    static const uint8_t bytes[] = {0x49, 0xBB, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xFF, 0xD3};
    uint64_t address = (uintptr_t)target;
    size_t size = put(code, bytes, sizeof bytes);
    memcpy(code + 2, &address, sizeof address);
    return size;
}

size_t machine_set(uint8_t *code, int value)
{
    /* mov $value, %eax */
    const uint8_t bytes[] = {0xB8, (uint8_t)value, (uint8_t)(value >> 8), 0, 0};
    return put(code, bytes, sizeof bytes);
}

size_t machine_increment(uint8_t *code)
{
    /* inc %eax */
    static const uint8_t bytes[] = {0xFF, 0xC0};
    return put(code, bytes, sizeof bytes);
}

size_t machine_odd(uint8_t *code)
{
    /* hlt; nop */
    static const uint8_t bytes[] = {0xF4, 0x90};
    return put(code, bytes, sizeof bytes);
}

__asm__(".pushsection .text\n"
        ".balign 4\n"
        ".type machine_leave_llvm_function, @function\n"
        ".hidden machine_leave_llvm_function\n"
        ".globl machine_leave_llvm_function\n"
        "machine_leave_llvm_function:\n"
        "    leave\n"
        "    mov $77, %eax\n"
        "    ret\n"
        ".size machine_leave_llvm_function, . - machine_leave_llvm_function\n"
        ".popsection\n");
