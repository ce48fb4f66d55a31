/*
 * x86-64: a call with arguments from memory.
 *
 * Source: System V Application Binary Interface, AMD64 Architecture Processor Supplement, section
 * "Parameter Passing".
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/call.h"

    .text
    .p2align 4
    .globl arch_call_function
    .hidden arch_call_function
    .type arch_call_function, @function
arch_call_function:
    .cfi_startproc
    endbr64
    push    %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_offset %rbp, -16
    mov     %rsp, %rbp
    .cfi_def_cfa_register %rbp
    push    %rbx
    .cfi_offset %rbx, -24
    sub     $8, %rsp
    mov     %rdi, %rbx
    mov     CALL_STACK_BYTES(%rbx), %rcx
    sub     %rcx, %rsp
    test    %rcx, %rcx
    jz      .Lload_floating
1:  mov     CALL_STACK - 8(%rbx, %rcx), %rax
    mov     %rax, -8(%rsp, %rcx)
    sub     $8, %rcx
    jnz     1b
.Lload_floating:
    /* Functions with variable arguments expect the number of vector registers in rax. */
    mov     CALL_FLOATING_COUNT(%rbx), %eax
    test    %eax, %eax
    jz      .Lload_general
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7
    movaps  CALL_FLOATING + \n * CALL_REGISTER_BYTES(%rbx), %xmm\n
    .endr
.Lload_general:
    mov     CALL_GENERAL + 0(%rbx), %rdi
    mov     CALL_GENERAL + 8(%rbx), %rsi
    mov     CALL_GENERAL + 16(%rbx), %rdx
    mov     CALL_GENERAL + 24(%rbx), %rcx
    mov     CALL_GENERAL + 32(%rbx), %r8
    mov     CALL_GENERAL + 40(%rbx), %r9
    call    *CALL_FUNCTION(%rbx)
    mov     %rax, CALL_GENERAL_RESULTS(%rbx)
    mov     %rdx, CALL_GENERAL_RESULTS + 8(%rbx)
    movaps  %xmm0, CALL_FLOATING_RESULTS(%rbx)
    movaps  %xmm1, CALL_FLOATING_RESULTS + CALL_REGISTER_BYTES(%rbx)
    mov     -8(%rbp), %rbx
    leave
    .cfi_def_cfa %rsp, 8
    .cfi_same_value %rbx
    ret
    .cfi_endproc
    .size arch_call_function, . - arch_call_function

    .section .note.GNU-stack, "", @progbits

/* All targets of indirect branches in this file are endbr64 (IBT), and returns match calls (shadow
 * stack). */
    .section .note.gnu.property, "a", @note
    .p2align 3
    .long 4, 16, 5
    .asciz "GNU"
    .long 0xc0000002, 4, 3, 0
