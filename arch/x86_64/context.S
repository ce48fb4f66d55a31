/*
 * x86-64: save, resume, and the exits' entry that stubs jump to.
 *
 * Vector registers are moved one by one, because XSAVE and XRSTOR take several times as long.
 *
 * Unwinders can walk from this code to the frame that a context describes: where the context is
 * complete, the unwind rules read the caller's registers from it.
 *
 * Sources: Intel 64 and IA-32 Architectures Software Developer's Manual, volumes 1 and 2; System V
 * Application Binary Interface, AMD64 Architecture Processor Supplement, sections "The Stack Frame"
 * (red zone) and "Registers" (callee-saved registers).
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/x86_64/context.h"

/* The red zone of the ABI. This code leaves it unchanged below every stack pointer. */
#define RED_ZONE 128

/* The flag that is always set, and the interrupt flag. Direction flag, trap flag and all others are
 * clear. */
#define FLAGS_DEFAULT 0x202

#define DWARF_RSP 7
#define DWARF_RDI 5
#define DWARF_RIP 16

/* Unwind rules: the caller's registers are in the context at the address in register `base`. */
.macro cfi_context base
    .cfi_escape 0x0f, 4, BASE_PLUS(\base, CONTEXT_RSP), 0x06
    cfi_saved \base, 3, CONTEXT_RBX
    cfi_saved \base, 6, CONTEXT_RBP
    .irp n, 12, 13, 14, 15
    cfi_saved \base, \n, CONTEXT_R(\n)
    .endr
    cfi_saved \base, DWARF_RIP, CONTEXT_PC
.endm

/* ---- Vector registers ---- */

#define FIRST_16 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
#define LAST_16 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31

.macro save instruction, register, numbers:vararg
    .irp n, \numbers
    \instruction %\register\n, CONTEXT_VECTORS + \n * CONTEXT_VECTOR_BYTES(%rsp)
    .endr
.endm

.macro load instruction, register, numbers:vararg
    .irp n, \numbers
    \instruction CONTEXT_VECTORS + \n * CONTEXT_VECTOR_BYTES(%rdi), %\register\n
    .endr
.endm

.macro save_sse
    save    movaps, xmm, FIRST_16
.endm

/* The final vzeroupper lets the C function use SSE without a transition penalty. */
.macro save_avx
    save    vmovaps, ymm, FIRST_16
    vzeroupper
.endm

.macro save_avx512
    save    vmovaps, zmm, FIRST_16, LAST_16
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7
    kmovq   %k\n, CONTEXT_MASKS + \n * 8(%rsp)
    .endr
    vzeroupper
.endm

.macro load_sse
    load    movaps, xmm, FIRST_16
.endm

.macro load_avx
    load    vmovaps, ymm, FIRST_16
.endm

.macro load_avx512
    load    vmovaps, zmm, FIRST_16, LAST_16
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7
    kmovq   CONTEXT_MASKS + \n * 8(%rdi), %k\n
    .endr
.endm

/* ---- Exits ---- */

/*
 * The entry of exits. A stub jumps here with two words on the stack: the site's return address, and
 * below it, at the stack pointer, the address of struct arch_exit. All registers are those of the
 * site. FRAME is the size of what is between the context and the site's stack pointer: the red
 * zone, which includes these two words, the flags and rdi.
 */
#define FRAME (RED_ZONE + 16)

    .text
    .p2align 6
    .type exit_entry, @function
exit_entry:
    .cfi_startproc
    .cfi_def_cfa_offset 16
    endbr64
    lea     -(RED_ZONE - 16)(%rsp), %rsp
    .cfi_adjust_cfa_offset RED_ZONE - 16
    pushfq
    .cfi_adjust_cfa_offset 8
    push    %rdi
    .cfi_adjust_cfa_offset 8
    mov     %rsp, %rdi
    .cfi_def_cfa_register %rdi
    lea     -CONTEXT_BYTES(%rsp), %rsp
    and     $-CONTEXT_ALIGNMENT, %rsp
    mov     %rax, CONTEXT_RAX(%rsp)
    mov     %rdx, CONTEXT_RDX(%rsp)
    mov     %rcx, CONTEXT_RCX(%rsp)
    mov     %rbx, CONTEXT_RBX(%rsp)
    mov     %rsi, CONTEXT_RSI(%rsp)
    mov     %rbp, CONTEXT_RBP(%rsp)
    .irp n, 8, 9, 10, 11, 12, 13, 14, 15
    mov     %r\n, CONTEXT_R(\n)(%rsp)
    .endr
    mov     0(%rdi), %rax
    mov     8(%rdi), %rcx
    lea     FRAME(%rdi), %rdx
    mov     FRAME - 8(%rdi), %rsi
    mov     %rax, CONTEXT_RDI(%rsp)
    mov     %rcx, CONTEXT_FLAGS(%rsp)
    mov     %rdx, CONTEXT_RSP(%rsp)
    mov     %rsi, CONTEXT_PC(%rsp)
    cfi_context DWARF_RSP
    mov     FRAME - 16(%rdi), %rcx
    stmxcsr CONTEXT_MXCSR(%rsp)
    movabs  $(CONTEXT_PRESENT_GENERAL | CONTEXT_PRESENT_VECTORS), %rax
    mov     %rax, CONTEXT_PRESENT(%rsp)
    movq    $CONTEXT_PRESENT_CONTROL, CONTEXT_PRESENT + 8(%rsp)
    mov     ARCH_EXIT_LEVEL(%rcx), %rdx
    mov     (%rdx), %edx
    mov     %edx, CONTEXT_VECTOR_LEVEL(%rsp)
    cmp     $CONTEXT_LEVEL_AVX, %edx
    jb      1f
    je      2f
    movabs  $(CONTEXT_PRESENT_CONTROL | CONTEXT_PRESENT_AVX512), %rdx
    mov     %rdx, CONTEXT_PRESENT + 8(%rsp)
    save_avx512
    jmp     3f
1:  save_sse
    jmp     3f
2:  save_avx
3:  cld
    mov     %rsp, %rdi
    mov     ARCH_EXIT_USER(%rcx), %rsi
    call    *ARCH_EXIT_HANDLER(%rcx)
    mov     %rsp, %rdi
    jmp     resume
    .cfi_endproc
    .size exit_entry, . - exit_entry

/*
 * The entry of exits with a light handler, reached like exit_entry, except that r11 and the flags
 * are unspecified. The frame is an ordinary one, with rbp at the place of the data's address. The
 * context's r11 holds that address.
 */
    .p2align 6
    .type light_entry, @function
light_entry:
    .cfi_startproc
    .cfi_def_cfa_offset 16
    endbr64
    mov     (%rsp), %r11
    mov     %rbp, (%rsp)
    .cfi_offset %rbp, -16
    mov     %rsp, %rbp
    .cfi_def_cfa_register %rbp
    lea     -(RED_ZONE - 16 + CONTEXT_BYTES)(%rsp), %rsp
    and     $-CONTEXT_ALIGNMENT, %rsp
    mov     %rax, CONTEXT_RAX(%rsp)
    mov     %rdx, CONTEXT_RDX(%rsp)
    mov     %rcx, CONTEXT_RCX(%rsp)
    mov     %rbx, CONTEXT_RBX(%rsp)
    mov     %rsi, CONTEXT_RSI(%rsp)
    mov     %rdi, CONTEXT_RDI(%rsp)
    .irp n, 8, 9, 10, 11, 12, 13, 14, 15
    mov     %r\n, CONTEXT_R(\n)(%rsp)
    .endr
    mov     (%rbp), %rax
    mov     ARCH_EXIT_LEVEL(%r11), %rdx
    mov     %rax, CONTEXT_RBP(%rsp)
    mov     (%rdx), %edx
    mov     %edx, CONTEXT_VECTOR_LEVEL(%rsp)
    cmp     $CONTEXT_LEVEL_AVX, %edx
    jb      1f
    je      2f
    save_avx512
    jmp     3f
1:  save_sse
    jmp     3f
2:  save_avx
3:  mov     %rsp, %rdi
    mov     ARCH_EXIT_USER(%r11), %rsi
    call    *ARCH_EXIT_LIGHT(%r11)
    mov     %rsp, %rdi
    mov     %eax, %r11d
    cmpl    $CONTEXT_LEVEL_AVX, CONTEXT_VECTOR_LEVEL(%rdi)
    jb      1f
    je      2f
    load_avx512
    jmp     3f
1:  load_sse
    jmp     3f
2:  load_avx
3:  mov     CONTEXT_RBP(%rdi), %rax
    test    %r11b, %r11b
    mov     CONTEXT_R(11)(%rdi), %r11
    mov     %rax, (%rbp)
    mov     CONTEXT_RAX(%rdi), %rax
    mov     CONTEXT_RDX(%rdi), %rdx
    mov     CONTEXT_RCX(%rdi), %rcx
    mov     CONTEXT_RBX(%rdi), %rbx
    mov     CONTEXT_RSI(%rdi), %rsi
    .irp n, 8, 9, 10, 12, 13, 14, 15
    mov     CONTEXT_R(\n)(%rdi), %r\n
    .endr
    mov     CONTEXT_RDI(%rdi), %rdi
    jz      4f
    .cfi_remember_state
    leave
    .cfi_def_cfa %rsp, 8
    .cfi_same_value %rbp
    ret
4:  .cfi_restore_state
    mov     %rbp, %rsp
    .cfi_def_cfa_register %rsp
    mov     (%rsp), %rbp
    .cfi_same_value %rbp
    mov     %r11, (%rsp)
    jmp     exit_entry
    .cfi_endproc
    .size light_entry, . - light_entry

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

/*
 * Offsets of the words that the last instructions need, below the red zone of the new stack
 * pointer, in this order. They do not overwrite the used part of the context, which ends
 * CONTEXT_BYTES - CONTEXT_USED_BYTES_MAX bytes before the end of the context.
 */
#define LAST_FLAGS (RED_ZONE + 40)
#define LAST_RCX (RED_ZONE + 32)
#define LAST_RAX (RED_ZONE + 24)
#define LAST_RDI (RED_ZONE + 16)
#define LAST_PC (RED_ZONE + 8)
#if LAST_FLAGS > CONTEXT_BYTES - CONTEXT_USED_BYTES_MAX
#error "resuming would overwrite the context"
#endif

    .text
    .p2align 6
    .globl cairn_context_resume
    .type cairn_context_resume, @function
cairn_context_resume:
    .cfi_startproc
    cfi_context DWARF_RDI
    endbr64
resume:
    cmpl    $CONTEXT_LEVEL_AVX, CONTEXT_VECTOR_LEVEL(%rdi)
    ja      .Lload_avx512
    je      .Lload_avx
    cmpl    $0, CONTEXT_VECTOR_LEVEL(%rdi)
    je      .Lload_control
    load_sse
    jmp     .Lload_control
.Lload_avx:
    load_avx
    jmp     .Lload_control
.Lload_avx512:
    load_avx512

    /* Writing MXCSR takes longer than comparing it. */
.Lload_control:
    testb   $CONTEXT_PRESENT_CONTROL, CONTEXT_PRESENT + 8(%rdi)
    jz      .Lload_general
    stmxcsr -8(%rsp)
    mov     CONTEXT_MXCSR(%rdi), %eax
    cmp     -8(%rsp), %eax
    je      .Lload_general
    ldmxcsr CONTEXT_MXCSR(%rdi)

    /*
     * A signal may overwrite memory below the red zone of the stack pointer. So, until all of it
     * has been read and written, the stack pointer must not be above the context or above the words
     * that the last instructions need.
     */
.Lload_general:
    mov     CONTEXT_RSP(%rdi), %rcx
    lea     -LAST_FLAGS(%rcx), %rax
    cmp     %rax, %rsp
    jbe     1f
    mov     %rax, %rsp
1:  mov     CONTEXT_PC(%rdi), %rax
    mov     CONTEXT_RDI(%rdi), %rdx
    mov     CONTEXT_RAX(%rdi), %rsi
    mov     CONTEXT_RCX(%rdi), %r8
    mov     CONTEXT_FLAGS(%rdi), %r9
    mov     %rax, -LAST_PC(%rcx)
    mov     %rdx, -LAST_RDI(%rcx)
    mov     %rsi, -LAST_RAX(%rcx)
    mov     %r8, -LAST_RCX(%rcx)
    mov     %r9, -LAST_FLAGS(%rcx)
    mov     CONTEXT_RDX(%rdi), %rdx
    mov     CONTEXT_RBX(%rdi), %rbx
    mov     CONTEXT_RSI(%rdi), %rsi
    mov     CONTEXT_RBP(%rdi), %rbp
    .irp n, 8, 9, 10, 11, 12, 13, 14, 15
    mov     CONTEXT_R(\n)(%rdi), %r\n
    .endr
    lea     -LAST_FLAGS(%rcx), %rsp
    .cfi_def_cfa %rsp, LAST_FLAGS
    .cfi_same_value %rbx
    .cfi_same_value %rbp
    .irp n, 12, 13, 14, 15
    .cfi_same_value %r\n
    .endr
    .cfi_offset %rip, -LAST_PC
    popfq
    .cfi_adjust_cfa_offset -8
    pop     %rcx
    .cfi_adjust_cfa_offset -8
    pop     %rax
    .cfi_adjust_cfa_offset -8
    pop     %rdi
    .cfi_adjust_cfa_offset -8
    ret     $RED_ZONE
    .cfi_endproc
    .size cairn_context_resume, . - cairn_context_resume

/* ---- Save ---- */

    .p2align 4
    .globl cairn_context_save
    .type cairn_context_save, @function
cairn_context_save:
    .cfi_startproc
    endbr64
    mov     (%rsp), %rax
    lea     8(%rsp), %rdx
    mov     %rbx, CONTEXT_RBX(%rdi)
    mov     %rbp, CONTEXT_RBP(%rdi)
    mov     %rdx, CONTEXT_RSP(%rdi)
    .irp n, 12, 13, 14, 15
    mov     %r\n, CONTEXT_R(\n)(%rdi)
    .endr
    mov     %rax, CONTEXT_PC(%rdi)
    stmxcsr CONTEXT_MXCSR(%rdi)
    movq    $FLAGS_DEFAULT, CONTEXT_FLAGS(%rdi)
    movq    $1, CONTEXT_RAX(%rdi)
    movq    $CONTEXT_PRESENT_KEPT, CONTEXT_PRESENT(%rdi)
    movq    $CONTEXT_PRESENT_CONTROL, CONTEXT_PRESENT + 8(%rdi)
    movl    $0, CONTEXT_VECTOR_LEVEL(%rdi)
    xor     %eax, %eax
    ret
    .cfi_endproc
    .size cairn_context_save, . - cairn_context_save

/* ---- Notes for the linker and the kernel ---- */

    .section .note.GNU-stack, "", @progbits

/* All targets of indirect branches in this file are endbr64 (IBT). Shadow stacks are not supported,
 * because resuming may branch to any address. */
    .section .note.gnu.property, "a", @note
    .p2align 3
    .long 4, 16, 5
    .asciz "GNU"
    .long 0xc0000002, 4, 1, 0
