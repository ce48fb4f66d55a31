/*
 * arch/call.h - calls by the C calling convention with arguments from memory. For C and for
 * assembly; implemented in arch/<name>/call.S.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ARCH_CALL_H
#define ARCH_CALL_H

/* ---- struct arch_call ---- */

#define CALL_GENERAL 0
#define CALL_FLOATING 64
#define CALL_VECTOR 272
#define CALL_REGISTER_BYTES 16 /* size of a floating-point or vector register */
#define CALL_FUNCTION 464
#define CALL_STACK_BYTES 472
#define CALL_FLOATING_COUNT 480
#define CALL_VECTOR_COUNT 484
#define CALL_RETURNS_VECTOR 488
#define CALL_GENERAL_RESULTS 496
#define CALL_FLOATING_RESULTS 512
#define CALL_VECTOR_RESULTS 544
#define CALL_STACK 576

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

enum {
    ARCH_CALL_GENERAL = 8,
    ARCH_CALL_FLOATING = 13,
    ARCH_CALL_VECTOR = 12,
    ARCH_CALL_RESULTS = 2,
    /* Enough for 64 arguments of at most 16 bytes. */
    ARCH_CALL_STACK_BYTES_MAX = 1024
};

typedef unsigned char arch_call_register[CALL_REGISTER_BYTES];

/*
 * The arguments and results of a call. Registers are in the order of struct arch_arguments and
 * struct arch_results. A floating-point or vector register is represented by its first bytes, and a
 * PPC64 floating-point register by the double in it. Where floating-point numbers and vectors share
 * their registers, they are in `floating`.
 */
struct arch_call {
    uint64_t general[ARCH_CALL_GENERAL];
    _Alignas(16) arch_call_register floating[ARCH_CALL_FLOATING];
    arch_call_register vector[ARCH_CALL_VECTOR];
    const void *function; /* a function pointer */
    uint64_t stack_bytes; /* a multiple of 16; includes PPC64's places for arguments in registers */
    /* Numbers of registers that hold arguments. If a number is 0, no register of this kind is
     * loaded. */
    uint32_t floating_count;
    uint32_t vector_count;
    uint32_t returns_vector;
    uint32_t unused;
    uint64_t general_results[ARCH_CALL_RESULTS];
    arch_call_register floating_results[ARCH_CALL_RESULTS];
    arch_call_register vector_results[ARCH_CALL_RESULTS];
    _Alignas(16) unsigned char stack[ARCH_CALL_STACK_BYTES_MAX];
};

#define CALL_ASSERT_OFFSET(member, offset)                                                         \
    _Static_assert(offsetof(struct arch_call, member) == (offset),                                 \
                   #member " is where assembly expects it")

CALL_ASSERT_OFFSET(general, CALL_GENERAL);
CALL_ASSERT_OFFSET(floating, CALL_FLOATING);
CALL_ASSERT_OFFSET(vector, CALL_VECTOR);
#ifdef __LP64__
CALL_ASSERT_OFFSET(function, CALL_FUNCTION);
CALL_ASSERT_OFFSET(stack_bytes, CALL_STACK_BYTES);
CALL_ASSERT_OFFSET(floating_count, CALL_FLOATING_COUNT);
CALL_ASSERT_OFFSET(vector_count, CALL_VECTOR_COUNT);
CALL_ASSERT_OFFSET(returns_vector, CALL_RETURNS_VECTOR);
CALL_ASSERT_OFFSET(general_results, CALL_GENERAL_RESULTS);
CALL_ASSERT_OFFSET(floating_results, CALL_FLOATING_RESULTS);
CALL_ASSERT_OFFSET(vector_results, CALL_VECTOR_RESULTS);
CALL_ASSERT_OFFSET(stack, CALL_STACK);
#endif

/* Calls the function and stores the results. */
void arch_call_function(struct arch_call *call);
#endif
#endif
