/*
 * AArch64 as the host: instruction fetch sees what was stored after the data cache has been
 * cleaned, and the instruction cache made to forget, to the point of unification.
 *
 * Source: Arm Architecture Reference Manual for A-profile architecture (DDI 0487), section
 * "Synchronization and coherency issues between data and instruction accesses", which has this
 * very sequence, and the description of CTR_EL0. The register is read each time: a thread may
 * have moved to a core with other cache lines, for which the kernel gives the smallest.
 *
 * The two views of the code are two addresses of the same memory: the data cache is cleaned by
 * the one that was written through, the instruction cache by the one that is executed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"

enum {
    INSTRUCTION_LINE_SHIFT = 0, /* IminLine: log2 of a line's words */
    DATA_LINE_SHIFT = 16,       /* DminLine */
    LINE_MASK = 15,
    WORD_BYTES = 4
};

/* IDC: no data line needs cleaning. DIC: no instruction line needs invalidating. */
#define NO_CLEANING (UINT64_C(1) << 28)
#define NO_INVALIDATING (UINT64_C(1) << 29)

static uint64_t read_cache_type(void)
{
    uint64_t cache_type;
    __asm__ volatile("mrs %0, ctr_el0" : "=r"(cache_type));
    return cache_type;
}

static uintptr_t line_bytes(uint64_t cache_type, unsigned shift)
{
    return (uintptr_t)WORD_BYTES << (cache_type >> shift & LINE_MASK);
}

static void clean_data(const void *written, size_t size, uintptr_t line)
{
    uintptr_t end = (uintptr_t)written + size;
    for (uintptr_t at = (uintptr_t)written & ~(line - 1); at < end; at += line)
        __asm__ volatile("dc cvau, %0" : : "r"(at) : "memory");
}

static void invalidate_instructions(const void *executed, size_t size, uintptr_t line)
{
    uintptr_t end = (uintptr_t)executed + size;
    for (uintptr_t at = (uintptr_t)executed & ~(line - 1); at < end; at += line)
        __asm__ volatile("ic ivau, %0" : : "r"(at) : "memory");
}

void arch_host_code_written(const void *written, const void *executed, size_t size)
{
    uint64_t cache_type = read_cache_type();
    if ((cache_type & NO_CLEANING) == 0)
        clean_data(written, size, line_bytes(cache_type, DATA_LINE_SHIFT));
    __asm__ volatile("dsb ish" : : : "memory");
    if ((cache_type & NO_INVALIDATING) == 0)
        invalidate_instructions(executed, size, line_bytes(cache_type, INSTRUCTION_LINE_SHIFT));
    __asm__ volatile("dsb ish" : : : "memory");
    __asm__ volatile("isb" : : : "memory");
}
