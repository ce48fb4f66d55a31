/*
 * PPC64, ABIs ELFv2 and ELFv1: save, resume, and the exit entries that stubs jump to.
 *
 * Resuming clobbers r12, which holds the stack pointer, and CTR, which holds the program counter
 * unless that equals LR. If they are equal, a return instruction is used, which keeps the
 * processor's return prediction correct.
 *
 * Unwinders can walk from this code to the frame that a context describes: where the context is
 * complete, the unwind rules read the caller's registers from it.
 *
 * Sources: Power ISA, Book I; 64-Bit ELF V2 ABI Specification and 64-bit PowerPC ELF Application
 * Binary Interface Supplement (ELFv1), on registers, the stack frame and function calls.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/ppc64/context.h"

    .machine "power8"
#if _CALL_ELF == 2
    .abiversion 2
#endif

/* Maximum size of what programs, kernels and debuggers preserve below every stack pointer. */
#define RED_ZONE 512

#define DWARF_R1 1
#define DWARF_R3 3
#define DWARF_F0 32
#define DWARF_LR 65
#define DWARF_CR2 70
#define DWARF_V0 77

/* Offset of the 4 bytes of CR in its 8-byte place, because unwinders read 4 bytes. */
#ifdef __LITTLE_ENDIAN__
#define CONTEXT_CR_WORD CONTEXT_CR
#else
#define CONTEXT_CR_WORD (CONTEXT_CR + 4)
#endif

#define EVERY 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, \
    24, 25, 26, 27, 28, 29, 30, 31
#define FROM_14 14, 15, 16, 17, 18, 19, FROM_20
#define FROM_20 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31

/* Unwind rules: the caller's registers are in the context at register `base` + `offset`. */
.macro cfi_context base, offset
    .cfi_escape 0x0f, 4, BASE_PLUS(\base, \offset + CONTEXT_R(1)), 0x06
    .irp n, FROM_14
    cfi_saved \base, \n, \offset + CONTEXT_R(\n)
    cfi_saved \base, DWARF_F0 + \n, \offset + CONTEXT_VS(\n)
    .endr
    .irp n, FROM_20
    cfi_saved \base, DWARF_V0 + \n, \offset + CONTEXT_VS(32 + \n)
    .endr
    cfi_saved \base, DWARF_CR2, \offset + CONTEXT_CR_WORD
    cfi_saved \base, DWARF_LR, \offset + CONTEXT_PC
.endm

/* Begins a function that C code calls. */
.macro begin name
    .p2align 4
    .globl \name
#if _CALL_ELF == 2
    .type \name, @function
\name:
#else
    .section .opd, "aw"
    .p2align 3
\name:
    .quad .L.\name, .TOC.@tocbase, 0
    .previous
    .type \name, @function
.L.\name:
#endif
    .cfi_startproc
.endm

.macro end name
    .cfi_endproc
#if _CALL_ELF == 2
    .size \name, . - \name
#else
    .size \name, . - .L.\name
#endif
.endm

/* ---- Vector registers, at `offset` from r1 (save) or r3 (load); clobber r10 and r4 ---- */

.macro save_float offset
    .irp n, EVERY
    stfd    %f\n, \offset + CONTEXT_VS(\n)(%r1)
    .endr
.endm

.macro save_altivec offset
    .irp n, EVERY
    addi    %r10, %r1, \offset + CONTEXT_VS(32 + \n)
    stvx    %v\n, 0, %r10
    .endr
.endm

.macro save_vsx offset
    .irp n, EVERY
    addi    %r10, %r1, \offset + CONTEXT_VS(\n)
    stxvd2x %vs\n, 0, %r10
    .endr
    save_altivec \offset
.endm

.macro load_float
    .irp n, EVERY
    lfd     %f\n, CONTEXT_VS(\n)(%r3)
    .endr
.endm

.macro load_altivec
    .irp n, EVERY
    addi    %r4, %r3, CONTEXT_VS(32 + \n)
    lvx     %v\n, 0, %r4
    .endr
.endm

.macro load_vsx
    .irp n, EVERY
    addi    %r4, %r3, CONTEXT_VS(\n)
    lxvd2x  %vs\n, 0, %r4
    .endr
.endm

/* ---- Exits ---- */

/*
 * The entry of exits. A stub jumps here with the site's return address in LR and the address of
 * struct arch_exit in r12. All other registers except for CTR are those of the site. The frame for
 * the handler's call consists of the ABI's header with space for parameters, and of the context.
 * While the frame is being set up, two saved registers are between it and the site's red zone.
 */
#define HEADER 128
#define SAVED 128
#define SAVED_R11 112
#define SAVED_R0 120

/* Makes the frame and fills the context. */
.macro arrive
    stdu    %r1, -(RED_ZONE + SAVED)(%r1)
    .cfi_def_cfa_offset RED_ZONE + SAVED
    std     %r11, SAVED_R11(%r1)
    std     %r0, SAVED_R0(%r1)
    addi    %r11, %r1, -(HEADER + CONTEXT_BYTES)
    clrrdi  %r11, %r11, 6
    subf    %r11, %r1, %r11
    ld      %r0, 0(%r1)
    .cfi_def_cfa 0, 0
    stdux   %r0, %r1, %r11
    std     %r0, HEADER + CONTEXT_R(1)(%r1)
    mr      %r11, %r0
    .cfi_def_cfa_register 11
    ld      %r0, SAVED_R0 - RED_ZONE - SAVED(%r11)
    std     %r0, HEADER + CONTEXT_R(0)(%r1)
    ld      %r0, SAVED_R11 - RED_ZONE - SAVED(%r11)
    std     %r0, HEADER + CONTEXT_R(11)(%r1)
    .irp n, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, FROM_14
    std     %r\n, HEADER + CONTEXT_R(\n)(%r1)
    .endr
    mflr    %r0
    std     %r0, HEADER + CONTEXT_LR(%r1)
    std     %r0, HEADER + CONTEXT_PC(%r1)
    mfcr    %r0
    std     %r0, HEADER + CONTEXT_CR(%r1)
    mfxer   %r0
    std     %r0, HEADER + CONTEXT_XER(%r1)
    li      %r10, -0x1001
    std     %r10, HEADER + CONTEXT_PRESENT(%r1)
    li      %r10, -13
    clrldi  %r10, %r10, 19
    std     %r10, HEADER + CONTEXT_PRESENT + 8(%r1)
    ld      %r4, ARCH_EXIT_LEVEL(%r12)
    lwz     %r4, 0(%r4)
    stw     %r4, HEADER + CONTEXT_VECTOR_LEVEL(%r1)
    cmpwi   %r4, CONTEXT_LEVEL_ALTIVEC
    blt     1f
    bgt     2f
    save_float HEADER
    save_altivec HEADER
    b       3f
1:  li      %r10, CONTEXT_PRESENT_SPECIAL_AT_EXIT
    std     %r10, HEADER + CONTEXT_PRESENT + 8(%r1)
    save_float HEADER
    b       3f
2:  save_vsx HEADER
3:  mffs    %f0
    stfd    %f0, HEADER + CONTEXT_FPSCR(%r1)
    cfi_context DWARF_R1, HEADER
.endm

/* Calls the function at `offset` in the data of the exit, whose address is in r12. */
.macro call_handler offset
    addi    %r3, %r1, HEADER
    ld      %r4, ARCH_EXIT_USER(%r12)
#if _CALL_ELF == 2
    ld      %r12, \offset(%r12)
    mtctr   %r12
#else
    ld      %r11, \offset(%r12)
    ld      %r0, 0(%r11)
    ld      %r2, 8(%r11)
    mtctr   %r0
    ld      %r11, 16(%r11)
#endif
    bctrl
.endm

    .text
    .p2align 6
    .type exit_entry, @function
exit_entry:
    .cfi_startproc
    arrive
    call_handler ARCH_EXIT_HANDLER
    addi    %r3, %r1, HEADER
    b       resume
    .cfi_endproc
    .size exit_entry, . - exit_entry

/* The entry of exits with a light handler. The context holds all that other exits save, which
 * takes little time here, and its r12 holds the address of the data. */
    .p2align 6
    .type light_entry, @function
light_entry:
    .cfi_startproc
    arrive
    std     %r12, HEADER + CONTEXT_R(12)(%r1)
    call_handler ARCH_EXIT_LIGHT
    andi.   %r3, %r3, 0xff
    addi    %r3, %r1, HEADER
    bne     resume
    ld      %r12, HEADER + CONTEXT_R(12)(%r1)
    call_handler ARCH_EXIT_HANDLER
    addi    %r3, %r1, HEADER
    b       resume
    .cfi_endproc
    .size light_entry, . - light_entry

/* Check the values of `present` that the exits build from immediates. */
#if ~CONTEXT_PRESENT_AT_EXIT != 0x1000
#error "present at exit, first word"
#endif
#if (CONTEXT_PRESENT_VECTORS | CONTEXT_PRESENT_SPECIAL_AT_EXIT) != (-13 & 0x1FFFFFFFFFFF)
#error "present at exit, second word"
#endif

    .section .data.rel.ro, "aw", @progbits
    .p2align 3
    .globl arch_exit_entry
    .hidden arch_exit_entry
    .type arch_exit_entry, @object
arch_exit_entry:
    .quad exit_entry
    .size arch_exit_entry, . - arch_exit_entry
    .globl arch_light_entry
    .hidden arch_light_entry
    .type arch_light_entry, @object
arch_light_entry:
    .quad light_entry
    .size arch_light_entry, . - arch_light_entry

/* ---- Resume ---- */

/* Loads all registers except for LR and CTR; then `branch` branches to the program counter. */
.macro load_general branch
    ld      %r0, CONTEXT_XER(%r3)
    mtxer   %r0
    ld      %r0, CONTEXT_CR(%r3)
    mtcrf   255, %r0
    .irp n, 0, 2, 4, 5, 6, 7, 8, 9, 10, 11, FROM_14
    ld      %r\n, CONTEXT_R(\n)(%r3)
    .endr
    ld      %r12, CONTEXT_R(1)(%r3)
    ld      %r3, CONTEXT_R(3)(%r3)
    .cfi_def_cfa 12, 0
    .irp n, FROM_14
    .cfi_same_value \n
    .cfi_same_value DWARF_F0 + \n
    .endr
    .irp n, FROM_20
    .cfi_same_value DWARF_V0 + \n
    .endr
    .cfi_same_value DWARF_CR2
    .ifc    \branch, bctr
    .cfi_register 65, 66
    .else
    .cfi_same_value DWARF_LR
    .endif
    /* This must come last: a signal may overwrite memory below the stack pointer, where the context
     * may be. */
    mr      %r1, %r12
    \branch
.endm

    .text
    begin   cairn_context_resume
    cfi_context DWARF_R3, 0
resume:
    lwz     %r4, CONTEXT_VECTOR_LEVEL(%r3)
    cmpwi   %r4, 0
    beq     .Lload_general
    mr      %r5, %r4
    /* Writing FPSCR takes longer than comparing it. */
    mffs    %f0
    stfd    %f0, -16(%r1)
    ld      %r6, -16(%r1)
    ld      %r7, CONTEXT_FPSCR(%r3)
    cmpd    %r6, %r7
    beq     1f
    lfd     %f0, CONTEXT_FPSCR(%r3)
    mtfsf   255, %f0
1:  cmpwi   %r5, CONTEXT_LEVEL_VSX
    beq     2f
    load_float
    cmpwi   %r5, CONTEXT_LEVEL_FLOAT
    beq     .Lload_general
    b       3f
2:  load_vsx
3:  load_altivec
.Lload_general:
    ld      %r4, CONTEXT_PC(%r3)
    ld      %r5, CONTEXT_LR(%r3)
    mtlr    %r5
    cmpd    %r4, %r5
    bne     .Lgo_elsewhere
    ld      %r4, CONTEXT_CTR(%r3)
    mtctr   %r4
    .cfi_remember_state
    load_general blr
.Lgo_elsewhere:
    .cfi_restore_state
    mtctr   %r4
    load_general bctr
    end     cairn_context_resume

/* ---- Save ---- */

#define SAVE_FRAME 128
#define SAVE_CONTEXT 112

    begin   cairn_context_save
#if _CALL_ELF == 2
0:  addis   %r2, %r12, (.TOC. - 0b)@ha
    addi    %r2, %r2, (.TOC. - 0b)@l
    .localentry cairn_context_save, . - cairn_context_save
#endif
    mfcr    %r0
    std     %r0, CONTEXT_CR(%r3)
    mflr    %r0
    std     %r0, 16(%r1)
    stdu    %r1, -SAVE_FRAME(%r1)
    .cfi_def_cfa_offset SAVE_FRAME
    .cfi_offset 65, 16
    std     %r3, SAVE_CONTEXT(%r1)
    bl      arch_host_vector_level
    nop
    mr      %r4, %r3
    ld      %r3, SAVE_CONTEXT(%r1)
    addi    %r1, %r1, SAVE_FRAME
    .cfi_def_cfa_offset 0
    ld      %r0, 16(%r1)
    mtlr    %r0
    .cfi_restore 65
    std     %r0, CONTEXT_PC(%r3)
    std     %r0, CONTEXT_LR(%r3)
    .irp n, 1, 2, 13, FROM_14
    std     %r\n, CONTEXT_R(\n)(%r3)
    .endr
    li      %r0, 1
    std     %r0, CONTEXT_R(3)(%r3)
    li      %r0, 0
    std     %r0, CONTEXT_CTR(%r3)
    std     %r0, CONTEXT_XER(%r3)
    stw     %r4, CONTEXT_VECTOR_LEVEL(%r3)
    mffs    %f0
    stfd    %f0, CONTEXT_FPSCR(%r3)
    li      %r0, -0x3FFF - 1
    sldi    %r0, %r0, 32
    oris    %r0, %r0, 0xFFFF
    ori     %r0, %r0, 0xE002
    std     %r0, CONTEXT_PRESENT(%r3)
    li      %r5, CONTEXT_PRESENT_KEPT_SPECIAL
    cmpwi   %r4, CONTEXT_LEVEL_FLOAT
    beq     1f
    .irp n, FROM_20
    addi    %r6, %r3, CONTEXT_VS(32 + \n)
    stvx    %v\n, 0, %r6
    .endr
    li      %r0, 0x1FFE
    sldi    %r0, %r0, 32
    or      %r5, %r5, %r0
    cmpwi   %r4, CONTEXT_LEVEL_VSX
    beq     2f
1:  .irp n, FROM_14
    stfd    %f\n, CONTEXT_VS(\n)(%r3)
    .endr
    b       3f
2:  .irp n, FROM_14
    addi    %r6, %r3, CONTEXT_VS(\n)
    stxvd2x %vs\n, 0, %r6
    .endr
3:  std     %r5, CONTEXT_PRESENT + 8(%r3)
    li      %r3, 0
    blr
    end     cairn_context_save

    .section .note.GNU-stack, "", @progbits
