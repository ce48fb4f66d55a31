/*
 * AArch64: save, resume, and the exit entry that stubs jump to.
 *
 * x16 and x17 are clobbered, as the procedure call standard allows between caller and callee: x16
 * holds the branch target, x17 the stack pointer. Only the lower 128 bits of SVE registers are
 * saved. Loading them clears the upper bits, as a call of a C function may.
 *
 * Unwinders can walk from this code to the frame that a context describes: where the context is
 * complete, the unwind rules read the caller's registers from it.
 *
 * Sources: Arm Architecture Reference Manual for A-profile architecture (DDI 0487); Procedure Call
 * Standard for the Arm 64-bit Architecture, sections "General-purpose Registers" and "SIMD and
 * Floating-Point Registers".
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/aarch64/context.h"

/* No-ops on processors without branch target identification. */
#define BTI_C hint #34
#define BTI_JC hint #38

#define DWARF_X0 0
#define DWARF_LINK 30
#define DWARF_SP 31
#define DWARF_V0 64

/* Unwind rules: the caller's registers are in the context at the address in register `base`. */
.macro cfi_context base
    .cfi_escape 0x0f, 4, BASE_PLUS(\base, CONTEXT_SP), 0x06
    .irp n, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29
    cfi_saved \base, \n, CONTEXT_X(\n)
    .endr
    .irp n, 8, 9, 10, 11, 12, 13, 14, 15
    cfi_saved \base, DWARF_V0 + \n, CONTEXT_Q(\n)
    .endr
    cfi_saved \base, DWARF_LINK, CONTEXT_PC
.endm

.macro pair_of_x instruction, base, n, next
    \instruction x\n, x\next, [\base, #CONTEXT_X(\n)]
.endm

/* x20 to x29. */
.macro kept_general instruction, base
    pair_of_x \instruction, \base, 20, 21
    pair_of_x \instruction, \base, 22, 23
    pair_of_x \instruction, \base, 24, 25
    pair_of_x \instruction, \base, 26, 27
    pair_of_x \instruction, \base, 28, 29
.endm

/* x2 to x29, except x16 and x17. */
.macro general instruction, base
    pair_of_x \instruction, \base, 2, 3
    pair_of_x \instruction, \base, 4, 5
    pair_of_x \instruction, \base, 6, 7
    pair_of_x \instruction, \base, 8, 9
    pair_of_x \instruction, \base, 10, 11
    pair_of_x \instruction, \base, 12, 13
    pair_of_x \instruction, \base, 14, 15
    pair_of_x \instruction, \base, 18, 19
    kept_general \instruction, \base
.endm

.macro pair_of_q instruction, base, n, next
    \instruction q\n, q\next, [\base, #CONTEXT_Q(\n)]
.endm

/* The registers whose lower halves are callee-saved. */
.macro kept_q instruction, base
    pair_of_q \instruction, \base, 8, 9
    pair_of_q \instruction, \base, 10, 11
    pair_of_q \instruction, \base, 12, 13
    pair_of_q \instruction, \base, 14, 15
.endm

.macro all_q instruction, base
    pair_of_q \instruction, \base, 0, 1
    pair_of_q \instruction, \base, 2, 3
    pair_of_q \instruction, \base, 4, 5
    pair_of_q \instruction, \base, 6, 7
    kept_q \instruction, \base
    pair_of_q \instruction, \base, 16, 17
    pair_of_q \instruction, \base, 18, 19
    pair_of_q \instruction, \base, 20, 21
    pair_of_q \instruction, \base, 22, 23
    pair_of_q \instruction, \base, 24, 25
    pair_of_q \instruction, \base, 26, 27
    pair_of_q \instruction, \base, 28, 29
    pair_of_q \instruction, \base, 30, 31
.endm

/* ---- The exit ---- */

    .text

/* Entry of an exit. A stub jumps here with the site's return address in x30 and the address of
 * struct arch_exit in x16. All other registers except x17 are those of the site. */
    .p2align 6
    .type exit_entry, %function
exit_entry:
    .cfi_startproc
    BTI_JC
    str     x0, [sp, #-16]!
    .cfi_adjust_cfa_offset 16
    add     x0, sp, #16
    .cfi_def_cfa x0, 0
    sub     x17, sp, #CONTEXT_BYTES
    and     sp, x17, #-CONTEXT_ALIGNMENT
    general stp, sp
    stp     x30, x0, [sp, #CONTEXT_X(30)]
    ldr     x2, [x0, #-16]
    stp     x2, x1, [sp, #CONTEXT_X(0)]
    mrs     x2, nzcv
    stp     x2, x30, [sp, #CONTEXT_FLAGS]
    mrs     x2, fpcr
    mrs     x3, fpsr
    mov     w4, #CONTEXT_LEVEL_SIMD
    stp     w4, w2, [sp, #CONTEXT_VECTOR_LEVEL]
    str     x3, [sp, #CONTEXT_FPSR]
    ldr     x2, =CONTEXT_PRESENT_AT_EXIT
    mov     x3, #CONTEXT_PRESENT_VECTORS
    stp     x2, x3, [sp, #CONTEXT_PRESENT]
    all_q   stp, sp
    cfi_context DWARF_SP
    ldp     x3, x1, [x16, #ARCH_EXIT_HANDLER]
    mov     x0, sp
    blr     x3
    mov     x0, sp
    b       resume
    .cfi_endproc
    .size exit_entry, . - exit_entry

/* The entry of exits with a light handler, reached like exit_entry. The frame is an ordinary one.
 * The context's x16 holds the address of the data. */
    .p2align 6
    .type light_entry, %function
light_entry:
    .cfi_startproc
    BTI_JC
    stp     x29, x30, [sp, #-16]!
    .cfi_adjust_cfa_offset 16
    .cfi_offset 29, -16
    .cfi_offset 30, -8
    mov     x29, sp
    .cfi_def_cfa x29, 16
    sub     x17, sp, #CONTEXT_BYTES
    and     sp, x17, #-CONTEXT_ALIGNMENT
    general stp, sp
    stp     x0, x1, [sp, #CONTEXT_X(0)]
    ldr     x0, [x29]
    str     x0, [sp, #CONTEXT_X(29)]
    str     x16, [sp, #CONTEXT_X(16)]
    mrs     x0, nzcv
    str     x0, [sp, #CONTEXT_FLAGS]
    all_q   stp, sp
    ldr     x1, [x16, #ARCH_EXIT_USER]
    ldr     x3, [x16, #ARCH_EXIT_LIGHT]
    mov     x0, sp
    blr     x3
    and     w17, w0, #0xff
    all_q   ldp, sp
    ldr     x0, [sp, #CONTEXT_FLAGS]
    msr     nzcv, x0
    mov     x16, x29
    .cfi_def_cfa x16, 16
    general ldp, sp
    ldp     x0, x1, [sp, #CONTEXT_X(0)]
    .cfi_same_value 29
    ldr     x30, [x16, #8]
    .cfi_same_value 30
    cbz     w17, 1f
    .cfi_remember_state
    add     sp, x16, #16
    .cfi_def_cfa sp, 0
    ret
1:  .cfi_restore_state
    ldr     x17, [sp, #CONTEXT_X(16)]
    add     sp, x16, #16
    .cfi_def_cfa sp, 0
    mov     x16, x17
    b       exit_entry
    .cfi_endproc
    .size light_entry, . - light_entry

    .section .data.rel.ro, "aw", %progbits
    .p2align 3
    .globl arch_exit_entry
    .hidden arch_exit_entry
    .type arch_exit_entry, %object
arch_exit_entry:
    .xword exit_entry
    .size arch_exit_entry, . - arch_exit_entry
    .globl arch_light_entry
    .hidden arch_light_entry
    .type arch_light_entry, %object
arch_light_entry:
    .xword light_entry
    .size arch_light_entry, . - arch_light_entry

/* ---- Resume ---- */

    .text
    .p2align 6
    .globl cairn_context_resume
    .type cairn_context_resume, %function
cairn_context_resume:
    .cfi_startproc
    cfi_context DWARF_X0
    BTI_C
resume:
    ldr     w1, [x0, #CONTEXT_VECTOR_LEVEL]
    cbz     w1, .Lload_general
    all_q   ldp, x0
    /* Writing these registers takes longer than comparing them. */
    ldr     w1, [x0, #CONTEXT_FPCR]
    mrs     x2, fpcr
    cmp     x1, x2
    b.eq    1f
    msr     fpcr, x1
1:  ldr     x1, [x0, #CONTEXT_FPSR]
    mrs     x2, fpsr
    cmp     x1, x2
    b.eq    .Lload_general
    msr     fpsr, x1
.Lload_general:
    ldr     x1, [x0, #CONTEXT_FLAGS]
    msr     nzcv, x1
    general ldp, x0
    ldp     x30, x17, [x0, #CONTEXT_X(30)]
    ldr     x16, [x0, #CONTEXT_PC]
    ldp     x0, x1, [x0, #CONTEXT_X(0)]
    .cfi_def_cfa x17, 0
    .irp n, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 72, 73, 74, 75, 76, 77, 78, 79
    .cfi_same_value \n
    .endr
    .cfi_register 30, 16
    /* This must come last: a signal may overwrite memory below the stack pointer, where the context
     * may be. */
    mov     sp, x17
    /* The processor predicts this return correctly if the program counter is the exit's return
     * address, and a return needs no landing pad. */
    ret     x16
    .cfi_endproc
    .size cairn_context_resume, . - cairn_context_resume

/* ---- Save ---- */

    .p2align 4
    .globl cairn_context_save
    .type cairn_context_save, %function
cairn_context_save:
    .cfi_startproc
    BTI_C
    mov     x1, #1
    str     x1, [x0, #CONTEXT_X(0)]
    str     x19, [x0, #CONTEXT_X(19)]
    kept_general stp, x0
    mov     x1, sp
    str     x1, [x0, #CONTEXT_SP]
    stp     xzr, x30, [x0, #CONTEXT_FLAGS]
    mrs     x1, fpcr
    mrs     x2, fpsr
    mov     w3, #CONTEXT_LEVEL_SIMD
    stp     w3, w1, [x0, #CONTEXT_VECTOR_LEVEL]
    str     x2, [x0, #CONTEXT_FPSR]
    kept_q  stp, x0
    ldr     x1, =CONTEXT_PRESENT_KEPT
    mov     x2, #CONTEXT_PRESENT_KEPT_VECTORS
    stp     x1, x2, [x0, #CONTEXT_PRESENT]
    mov     w0, #0
    ret
    .cfi_endproc
    .size cairn_context_save, . - cairn_context_save

    .ltorg

/* ---- Notes for the linker and the kernel ---- */

    .section .note.GNU-stack, "", %progbits

/* All targets of indirect branches in this file are landing pads (BTI). */
    .section .note.gnu.property, "a", %note
    .p2align 3
    .word 4, 16, 5
    .asciz "GNU"
    .word 0xc0000000, 4, 1, 0
