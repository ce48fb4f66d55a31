/* SPDX-License-Identifier: MIT */
#include "tests/registers.h"

    .machine "power8"
#if _CALL_ELF == 2
    .abiversion 2
#define SAVED_TOC 24
#else
#define SAVED_TOC 40
#endif
#define FRAME 640
#define OWN_FPSCR 120
#define OWN_GENERAL 128 /* r14 to r31 */
#define OWN_FLOAT 272   /* f14 to f31 */
#define OWN_VECTORS 416 /* v20 to v31 */

#define FROM_14 14, 15, 16, 17, 18, 19, FROM_20
#define FROM_20 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
#define EVERY 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, FROM_14

#define AFTER 0
#define SEEN_R3 8
#define OWN_SP 16

/* Found with r13 alone: when it is wanted, all other registers but r12 are the test's. */
    .section .tbss, "awT", @nobits
    .p2align 4
variables: .skip 32
.macro to_r12 name
    addis   %r12, %r13, \name@tprel@ha
    addi    %r12, %r12, \name@tprel@l
.endm

    .bss
    .p2align 3
    .globl registers_sp
    .hidden registers_sp
registers_sp: .skip 8

/* A vector is in memory as a store puts it there. */
.macro load_vs n
    addi    %r4, %r3, REGISTERS_VECTORS + REGISTERS_VECTOR_BYTES * \n
    lxvd2x  %vs\n, 0, %r4
#ifdef __LITTLE_ENDIAN__
    xxpermdi %vs\n, %vs\n, %vs\n, 2
#endif
.endm
.macro store_vs n
    addi    %r4, %r3, REGISTERS_VECTORS + REGISTERS_VECTOR_BYTES * \n
#ifdef __LITTLE_ENDIAN__
    xxpermdi %vs\n, %vs\n, %vs\n, 2
#endif
    stxvd2x %vs\n, 0, %r4
.endm

    .p2align 4
    .globl registers_run
    .hidden registers_run
#if _CALL_ELF == 2
    .text
    .type registers_run, @function
registers_run:
#else
    .section .opd, "aw"
    .p2align 3
registers_run:
    .quad .Lregisters_run, .TOC.@tocbase, 0
    .text
    .type registers_run, @function
.Lregisters_run:
#endif
    .cfi_startproc
#if _CALL_ELF == 2
0:  addis   %r2, %r12, (.TOC. - 0b)@ha
    addi    %r2, %r2, (.TOC. - 0b)@l
    .localentry registers_run, . - registers_run
#endif
    mflr    %r0
    std     %r0, 16(%r1)
    mfcr    %r0
    std     %r0, 8(%r1)
    stdu    %r1, -FRAME(%r1)
    .cfi_def_cfa_offset FRAME
    .cfi_offset 65, 16
    std     %r2, SAVED_TOC(%r1)
    .irp n, FROM_14
    std     %r\n, OWN_GENERAL + 8 * (\n - 14)(%r1)
    .cfi_offset \n, OWN_GENERAL + 8 * (\n - 14) - FRAME
    stfd    %f\n, OWN_FLOAT + 8 * (\n - 14)(%r1)
    .endr
    .irp n, FROM_20
    addi    %r12, %r1, OWN_VECTORS + 16 * (\n - 20)
    stvx    %v\n, 0, %r12
    .endr
    mffs    %f0
    stfd    %f0, OWN_FPSCR(%r1)
    to_r12  variables
    std     %r4, AFTER(%r12)
    std     %r1, OWN_SP(%r12)
    addis   %r11, %r2, registers_sp@toc@ha
    std     %r1, registers_sp@toc@l(%r11)
    mtctr   %r5
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
    ld      %r0, REGISTERS_BELOW + 8 * \i(%r3)
    std     %r0, 8 * \i - 128(%r1)
    .endr
    lfd     %f0, REGISTERS_CONTROL(%r3)
    mtfsf   255, %f0
    .irp n, EVERY
    load_vs \n
    addi    %r4, %r3, REGISTERS_VECTORS + REGISTERS_VECTOR_BYTES * (32 + \n)
    lvx     %v\n, 0, %r4
    .endr
    ld      %r0, REGISTERS_SPECIAL + 16(%r3)
    mtxer   %r0
    ld      %r0, REGISTERS_FLAGS(%r3)
    mtcrf   255, %r0
    .irp n, 0, 2, 4, 5, 6, 7, 8, 9, 10, 11, FROM_14
    ld      %r\n, 8 * \n(%r3)
    .endr
    ld      %r3, 24(%r3)
    mfctr   %r12
    bctrl
    .globl registers_returned, registers_landing
    .hidden registers_returned, registers_landing
registers_returned:
registers_landing:
    to_r12  variables
    std     %r3, SEEN_R3(%r12)
    ld      %r3, AFTER(%r12)
    .irp n, 0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, FROM_14
    std     %r\n, 8 * \n(%r3)
    .endr
    mfcr    %r4
    std     %r4, REGISTERS_FLAGS(%r3)
    mflr    %r4
    std     %r4, REGISTERS_SPECIAL(%r3)
    mfctr   %r4
    std     %r4, REGISTERS_SPECIAL + 8(%r3)
    mfxer   %r4
    std     %r4, REGISTERS_SPECIAL + 16(%r3)
    ld      %r4, SEEN_R3(%r12)
    std     %r4, 24(%r3)
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
    ld      %r4, 8 * \i - 128(%r1)
    std     %r4, REGISTERS_BELOW + 8 * \i(%r3)
    .endr
    ld      %r1, OWN_SP(%r12)
    .irp n, EVERY
    store_vs \n
    addi    %r4, %r3, REGISTERS_VECTORS + REGISTERS_VECTOR_BYTES * (32 + \n)
    stvx    %v\n, 0, %r4
    .endr
    mffs    %f0
    stfd    %f0, REGISTERS_CONTROL(%r3)
    lfd     %f0, OWN_FPSCR(%r1)
    mtfsf   255, %f0
    .irp n, FROM_20
    addi    %r12, %r1, OWN_VECTORS + 16 * (\n - 20)
    lvx     %v\n, 0, %r12
    .endr
    .irp n, FROM_14
    ld      %r\n, OWN_GENERAL + 8 * (\n - 14)(%r1)
    .cfi_restore \n
    lfd     %f\n, OWN_FLOAT + 8 * (\n - 14)(%r1)
    .endr
    ld      %r2, SAVED_TOC(%r1)
    addi    %r1, %r1, FRAME
    .cfi_def_cfa_offset 0
    ld      %r0, 8(%r1)
    mtcrf   255, %r0
    ld      %r0, 16(%r1)
    mtlr    %r0
    .cfi_restore 65
    blr
    .cfi_endproc

    .globl registers_spin, registers_spin_end
    .hidden registers_spin, registers_spin_end
registers_spin:
    nop
1:  nop
    b       1b
registers_spin_end:

    .section .note.GNU-stack, "", @progbits
