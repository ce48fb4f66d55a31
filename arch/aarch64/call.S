/*
 * AArch64: a call with arguments from memory.
 *
 * Source: Procedure Call Standard for the Arm 64-bit Architecture, section "Parameter passing".
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/call.h"

/* A no-op on processors without branch target identification. */
#define BTI_C hint #34

    .text
    .p2align 4
    .globl arch_call_function
    .hidden arch_call_function
    .type arch_call_function, %function
arch_call_function:
    .cfi_startproc
    BTI_C
    stp     x29, x30, [sp, #-32]!
    .cfi_adjust_cfa_offset 32
    .cfi_offset x29, -32
    .cfi_offset x30, -24
    mov     x29, sp
    .cfi_def_cfa x29, 32
    str     x19, [sp, #16]
    .cfi_offset x19, -16
    mov     x19, x0
    ldr     x9, [x19, #CALL_STACK_BYTES]
    cbz     x9, .Lload_floating
    sub     sp, sp, x9
    add     x10, x19, #CALL_STACK
    mov     x11, sp
1:  ldp     x12, x13, [x10], #16
    stp     x12, x13, [x11], #16
    subs    x9, x9, #16
    b.ne    1b
.Lload_floating:
    ldr     w9, [x19, #CALL_FLOATING_COUNT]
    cbz     w9, .Lload_general
    ldp     q0, q1, [x19, #CALL_FLOATING]
    ldp     q2, q3, [x19, #CALL_FLOATING + 2 * CALL_REGISTER_BYTES]
    ldp     q4, q5, [x19, #CALL_FLOATING + 4 * CALL_REGISTER_BYTES]
    ldp     q6, q7, [x19, #CALL_FLOATING + 6 * CALL_REGISTER_BYTES]
.Lload_general:
    ldr     x16, [x19, #CALL_FUNCTION]
    ldp     x0, x1, [x19, #CALL_GENERAL]
    ldp     x2, x3, [x19, #CALL_GENERAL + 16]
    ldp     x4, x5, [x19, #CALL_GENERAL + 32]
    ldp     x6, x7, [x19, #CALL_GENERAL + 48]
    blr     x16
    stp     x0, x1, [x19, #CALL_GENERAL_RESULTS]
    stp     q0, q1, [x19, #CALL_FLOATING_RESULTS]
    mov     sp, x29
    .cfi_def_cfa_register sp
    ldr     x19, [sp, #16]
    ldp     x29, x30, [sp], #32
    .cfi_def_cfa_offset 0
    .cfi_restore x19
    .cfi_restore x29
    .cfi_restore x30
    ret
    .cfi_endproc
    .size arch_call_function, . - arch_call_function

    .section .note.GNU-stack, "", %progbits

/* All targets of indirect branches in this file are landing pads (BTI). */
    .section .note.gnu.property, "a", %note
    .p2align 3
    .word 4, 16, 5
    .asciz "GNU"
    .word 0xc0000000, 4, 1, 0
