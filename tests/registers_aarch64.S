/* SPDX-License-Identifier: MIT */
#include "tests/registers.h"

    .bss
    .p2align 4
    .globl registers_sp
    .hidden registers_sp
registers_sp: .skip 8
run_after: .skip 8
run_code: .skip 8
own_fpcr: .skip 8

.macro all_q instruction
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, \
        24, 25, 26, 27, 28, 29, 30, 31
    \instruction q\n, [x16], #REGISTERS_VECTOR_BYTES
    .endr
.endm
.macro address register, symbol
    adrp \register, \symbol
    add \register, \register, #:lo12:\symbol
.endm

    .text
    .globl registers_run
    .hidden registers_run
    .type registers_run, %function
registers_run:
    .cfi_startproc
    hint #34
    stp x29, x30, [sp, #-160]!
    .cfi_def_cfa_offset 160
    .cfi_offset 29, -160
    .cfi_offset 30, -152
    stp x19, x20, [sp, #16]
    stp x21, x22, [sp, #32]
    stp x23, x24, [sp, #48]
    stp x25, x26, [sp, #64]
    stp x27, x28, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    address x16, run_after
    str x1, [x16]
    address x16, run_code
    str x2, [x16]
    address x16, registers_sp
    mov x17, sp
    str x17, [x16]
    mrs x17, fpcr
    address x16, own_fpcr
    str x17, [x16]
    add x16, x0, #REGISTERS_VECTORS
    all_q ldr
    ldr w16, [x0, #REGISTERS_CONTROL]
    ldr w17, [x0, #REGISTERS_CONTROL + 4]
    msr fpcr, x16
    msr fpsr, x17
    ldr x16, [x0, #REGISTERS_FLAGS]
    msr nzcv, x16
    ldp x2, x3, [x0, #16]
    ldp x4, x5, [x0, #32]
    ldp x6, x7, [x0, #48]
    ldp x8, x9, [x0, #64]
    ldp x10, x11, [x0, #80]
    ldp x12, x13, [x0, #96]
    ldp x14, x15, [x0, #112]
    ldp x18, x19, [x0, #144]
    ldp x20, x21, [x0, #160]
    ldp x22, x23, [x0, #176]
    ldp x24, x25, [x0, #192]
    ldp x26, x27, [x0, #208]
    ldp x28, x29, [x0, #224]
    ldp x0, x1, [x0]
    address x16, run_code
    ldr x16, [x16]
    blr x16
    .globl registers_returned, registers_landing
    .hidden registers_returned, registers_landing
registers_returned:
registers_landing:
    address x16, run_after
    ldr x16, [x16]
    stp x0, x1, [x16], #16
    stp x2, x3, [x16], #16
    stp x4, x5, [x16], #16
    stp x6, x7, [x16], #16
    stp x8, x9, [x16], #16
    stp x10, x11, [x16], #16
    stp x12, x13, [x16], #32
    stp x14, x15, [x16, #-16]
    sub x16, x16, #128
    stp x18, x19, [x16, #144]
    stp x20, x21, [x16, #160]
    stp x22, x23, [x16, #176]
    stp x24, x25, [x16, #192]
    stp x26, x27, [x16, #208]
    stp x28, x29, [x16, #224]
    mov x17, sp
    stp x30, x17, [x16, #240]
    mrs x0, nzcv
    str x0, [x16, #REGISTERS_FLAGS]
    mrs x0, fpcr
    mrs x1, fpsr
    str w0, [x16, #REGISTERS_CONTROL]
    str w1, [x16, #REGISTERS_CONTROL + 4]
    add x16, x16, #REGISTERS_VECTORS
    all_q str
    address x16, own_fpcr
    ldr x16, [x16]
    msr fpcr, x16
    address x16, registers_sp
    ldr x16, [x16]
    mov sp, x16
    ldp x19, x20, [sp, #16]
    ldp x21, x22, [sp, #32]
    ldp x23, x24, [sp, #48]
    ldp x25, x26, [sp, #64]
    ldp x27, x28, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    ldp x29, x30, [sp], #160
    .cfi_def_cfa_offset 0
    ret
    .cfi_endproc
    .size registers_run, . - registers_run

    .globl registers_spin, registers_spin_end
    .hidden registers_spin, registers_spin_end
registers_spin:
    hint #36
1:  nop
    b 1b
registers_spin_end:

    .section .note.GNU-stack, "", %progbits
