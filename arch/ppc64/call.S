/*
 * PPC64, ABIs ELFv2 and ELFv1: a call with arguments from memory.
 *
 * Arguments in registers also have places on the stack, whose contents are unspecified.
 *
 * Sources: 64-Bit ELF V2 ABI Specification and 64-bit PowerPC ELF Application Binary Interface
 * Supplement (ELFv1), on the stack frame and function calls.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/call.h"

    .machine "power8"
#if _CALL_ELF == 2
    .abiversion 2
#define HEADER 32
#define SAVED_TOC 24
#else
#define HEADER 48
#define SAVED_TOC 40
#endif

/* Size of the saved r30 and r31, at the end of the frame. */
#define SAVED 16

    .text
    .p2align 4
    .globl arch_call_function
    .hidden arch_call_function
#if _CALL_ELF == 2
    .type arch_call_function, @function
arch_call_function:
#else
    .section .opd, "aw"
    .p2align 3
arch_call_function:
    .quad .L.arch_call_function, .TOC.@tocbase, 0
    .previous
    .type arch_call_function, @function
.L.arch_call_function:
#endif
    .cfi_startproc
    mflr    %r0
    std     %r0, 16(%r1)
    .cfi_offset 65, 16
    std     %r31, -8(%r1)
    .cfi_offset 31, -8
    std     %r30, -16(%r1)
    .cfi_offset 30, -16
    mr      %r31, %r1
    .cfi_def_cfa_register 31
    mr      %r30, %r3
    ld      %r11, CALL_STACK_BYTES(%r30)
    addi    %r9, %r11, HEADER + SAVED
    neg     %r9, %r9
    stdux   %r1, %r1, %r9
    std     %r2, SAVED_TOC(%r1)
    srdi.   %r11, %r11, 3
    beq     2f
    mtctr   %r11
    addi    %r9, %r30, CALL_STACK - 8
    addi    %r10, %r1, HEADER - 8
1:  ldu     %r0, 8(%r9)
    stdu    %r0, 8(%r10)
    bdnz    1b
2:  lwz     %r9, CALL_FLOATING_COUNT(%r30)
    cmpwi   %r9, 0
    beq     3f
    .irp n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
    lfd     %f\n, CALL_FLOATING + (\n - 1) * CALL_REGISTER_BYTES(%r30)
    .endr
3:  lwz     %r9, CALL_VECTOR_COUNT(%r30)
    cmpwi   %r9, 0
    beq     4f
    .irp n, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
    addi    %r9, %r30, CALL_VECTOR + (\n - 2) * CALL_REGISTER_BYTES
    lvx     %v\n, 0, %r9
    .endr
4:
#if _CALL_ELF == 2
    ld      %r12, CALL_FUNCTION(%r30)
    mtctr   %r12
#else
    ld      %r11, CALL_FUNCTION(%r30)
    ld      %r0, 0(%r11)
    ld      %r2, 8(%r11)
    mtctr   %r0
    ld      %r11, 16(%r11)
#endif
    .irp n, 3, 4, 5, 6, 7, 8, 9, 10
    ld      %r\n, CALL_GENERAL + (\n - 3) * 8(%r30)
    .endr
    bctrl
    ld      %r2, SAVED_TOC(%r1)
    std     %r3, CALL_GENERAL_RESULTS(%r30)
    std     %r4, CALL_GENERAL_RESULTS + 8(%r30)
    stfd    %f1, CALL_FLOATING_RESULTS(%r30)
    stfd    %f2, CALL_FLOATING_RESULTS + CALL_REGISTER_BYTES(%r30)
    /* Some processors have no vector registers. */
    lwz     %r9, CALL_RETURNS_VECTOR(%r30)
    cmpwi   %r9, 0
    beq     5f
    addi    %r9, %r30, CALL_VECTOR_RESULTS
    stvx    %v2, 0, %r9
    addi    %r9, %r30, CALL_VECTOR_RESULTS + CALL_REGISTER_BYTES
    stvx    %v3, 0, %r9
5:  mr      %r1, %r31
    .cfi_def_cfa_register 1
    ld      %r30, -16(%r1)
    .cfi_same_value 30
    ld      %r31, -8(%r1)
    .cfi_same_value 31
    ld      %r0, 16(%r1)
    mtlr    %r0
    .cfi_same_value 65
    blr
    .cfi_endproc
#if _CALL_ELF == 2
    .size arch_call_function, . - arch_call_function
#else
    .size arch_call_function, . - .L.arch_call_function
#endif

    .section .note.GNU-stack, "", @progbits
