/* SPDX-License-Identifier: MIT */
#include "tests/registers.h"

#define SPECIAL_LEVEL_AVX 2

    .bss
    .p2align 3
    .globl registers_sp
    .hidden registers_sp
registers_sp: .quad 0
run_after: .quad 0
run_code: .quad 0
run_level: .quad 0
seen_sp: .quad 0
seen_rdi: .quad 0
own_mxcsr: .quad 0

.macro all_vectors instruction, register, last
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, \
        24, 25, 26, 27, 28, 29, 30, 31
    .if \n <= \last
    \instruction \register, \n
    .endif
    .endr
.endm
.macro load_one register, n
    .ifc \register, xmm
    movups REGISTERS_VECTORS + \n * REGISTERS_VECTOR_BYTES(%rdi), %xmm\n
    .else
    vmovups REGISTERS_VECTORS + \n * REGISTERS_VECTOR_BYTES(%rdi), %\register\n
    .endif
.endm
.macro store_one register, n
    .ifc \register, xmm
    movups %xmm\n, REGISTERS_VECTORS + \n * REGISTERS_VECTOR_BYTES(%rdi)
    .else
    vmovups %\register\n, REGISTERS_VECTORS + \n * REGISTERS_VECTOR_BYTES(%rdi)
    .endif
.endm

/* By level: 1 SSE, 2 AVX, 3 AVX-512. Changes the flags. */
.macro vectors which, label
    cmpl $SPECIAL_LEVEL_AVX, run_level(%rip)
    ja \label\()_avx512
    je \label\()_avx
    all_vectors \which, xmm, 15
    jmp \label\()_end
\label\()_avx:
    all_vectors \which, ymm, 15
    jmp \label\()_end
\label\()_avx512:
    all_vectors \which, zmm, 31
    masks \which
\label\()_end:
.endm
.macro masks which
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7
    .ifc \which, load_one
    kmovq REGISTERS_MASKS + \n * 8(%rdi), %k\n
    .else
    kmovq %k\n, REGISTERS_MASKS + \n * 8(%rdi)
    .endif
    .endr
.endm

    .text
    .globl registers_run
    .hidden registers_run
    .type registers_run, @function
registers_run:
    .cfi_startproc
    endbr64
    push %rbx
    .cfi_def_cfa_offset 16
    .cfi_offset %rbx, -16
    push %rbp
    .cfi_def_cfa_offset 24
    .cfi_offset %rbp, -24
    push %r12
    .cfi_def_cfa_offset 32
    .cfi_offset %r12, -32
    push %r13
    .cfi_def_cfa_offset 40
    .cfi_offset %r13, -40
    push %r14
    .cfi_def_cfa_offset 48
    .cfi_offset %r14, -48
    push %r15
    .cfi_def_cfa_offset 56
    .cfi_offset %r15, -56
    sub $8, %rsp
    .cfi_def_cfa_offset 64
    mov %rsi, run_after(%rip)
    mov %rdx, run_code(%rip)
    mov %ecx, run_level(%rip)
    mov %rsp, registers_sp(%rip)
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
    mov REGISTERS_BELOW + 8 * \i(%rdi), %rax
    mov %rax, -128 + 8 * \i(%rsp)
    .endr
    vectors load_one, .Lload
    stmxcsr own_mxcsr(%rip)
    ldmxcsr REGISTERS_CONTROL(%rdi)
    pushq REGISTERS_FLAGS(%rdi)
    popfq
    mov 0(%rdi), %rax
    mov 8(%rdi), %rdx
    mov 16(%rdi), %rcx
    mov 24(%rdi), %rbx
    mov 32(%rdi), %rsi
    mov 48(%rdi), %rbp
    mov 64(%rdi), %r8
    mov 72(%rdi), %r9
    mov 80(%rdi), %r10
    mov 88(%rdi), %r11
    mov 96(%rdi), %r12
    mov 104(%rdi), %r13
    mov 112(%rdi), %r14
    mov 120(%rdi), %r15
    mov 40(%rdi), %rdi
    call *run_code(%rip)
    .globl registers_returned, registers_landing
    .hidden registers_returned, registers_landing
registers_returned:
registers_landing:
    mov %rsp, seen_sp(%rip)
    mov %rdi, seen_rdi(%rip)
    mov registers_sp(%rip), %rsp
    mov run_after(%rip), %rdi
    pushfq
    popq REGISTERS_FLAGS(%rdi)
    cld
    mov %rax, 0(%rdi)
    mov %rdx, 8(%rdi)
    mov %rcx, 16(%rdi)
    mov %rbx, 24(%rdi)
    mov %rsi, 32(%rdi)
    mov seen_rdi(%rip), %rax
    mov %rax, 40(%rdi)
    mov %rbp, 48(%rdi)
    mov seen_sp(%rip), %rax
    mov %rax, 56(%rdi)
    mov %r8, 64(%rdi)
    mov %r9, 72(%rdi)
    mov %r10, 80(%rdi)
    mov %r11, 88(%rdi)
    mov %r12, 96(%rdi)
    mov %r13, 104(%rdi)
    mov %r14, 112(%rdi)
    mov %r15, 120(%rdi)
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
    mov -128 + 8 * \i(%rax), %rdx
    mov %rdx, REGISTERS_BELOW + 8 * \i(%rdi)
    .endr
    stmxcsr REGISTERS_CONTROL(%rdi)
    ldmxcsr own_mxcsr(%rip)
    vectors store_one, .Lstore
    add $8, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
    .size registers_run, . - registers_run

    .globl registers_spin, registers_spin_end
    .hidden registers_spin, registers_spin_end
registers_spin:
    endbr64
1:  pause
    jmp 1b
registers_spin_end:

    .section .note.GNU-stack, "", @progbits
