/*
 * AArch64 as the host: makes written code visible to instruction fetch, by cleaning the data cache
 * and then invalidating the instruction cache, both to the point of unification.
 *
 * Source: Arm Architecture Reference Manual for A-profile architecture (DDI 0487), section
 * "Synchronization and coherency issues between data and instruction accesses", which lists this
 * sequence, and the description of CTR_EL0. The code reads CTR_EL0 on each call, because the thread
 * may have moved to a core with a different cache line size. The kernel reports the smallest size
 * for such machines.
 *
 * With a dual mapping, the code has two addresses for the same memory: the data cache is cleaned by
 * the address that was written through, the instruction cache invalidated by the address that is
 * executed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/aarch64/target.h"
#include "arch/features.h"

#include <string.h>
#include <sys/auxv.h>

enum {
    INSTRUCTION_LINE_SHIFT = 0, /* IminLine: log2 of the line size in words */
    DATA_LINE_SHIFT = 16,       /* DminLine */
    LINE_MASK = 15,
    WORD_BYTES = 4
};

/* IDC: no data lines need cleaning. DIC: no instruction lines need invalidating. */
#define NO_CLEANING (UINT64_C(1) << 28)
#define NO_INVALIDATING (UINT64_C(1) << 29)

static uintptr_t line_bytes(uint64_t cache_type, unsigned shift)
{
    return (uintptr_t)WORD_BYTES << (cache_type >> shift & LINE_MASK);
}

const struct cairn_arch *arch_host(void) { return &aarch64_arch; }

const struct arch_cache_encoder *arch_host_cache_encoder(void) { return &aarch64_cache_encoder; }

void arch_host_code_written(const void *written, const void *executed, size_t size)
{
    uint64_t cache_type;
    __asm__ volatile("mrs %0, ctr_el0" : "=r"(cache_type));
    uintptr_t line = line_bytes(cache_type, DATA_LINE_SHIFT);
    uintptr_t at = (uintptr_t)written & ~(line - 1);
    for (; (cache_type & NO_CLEANING) == 0 && at < (uintptr_t)written + size; at += line)
        __asm__ volatile("dc cvau, %0" : : "r"(at) : "memory");
    __asm__ volatile("dsb ish" : : : "memory");
    line = line_bytes(cache_type, INSTRUCTION_LINE_SHIFT);
    at = (uintptr_t)executed & ~(line - 1);
    for (; (cache_type & NO_INVALIDATING) == 0 && at < (uintptr_t)executed + size; at += line)
        __asm__ volatile("ic ivau, %0" : : "r"(at) : "memory");
    __asm__ volatile("dsb ish" : : : "memory");
    __asm__ volatile("isb" : : : "memory");
}

/* Source: Linux, Documentation/arch/arm64/elf_hwcaps.rst and mprotect(2). */
int arch_host_landing_protection(void)
{
    enum { BRANCH_TARGETS_BIT = 17, PROTECTION_BTI = 0x10 };
    bool is_checked = (getauxval(AT_HWCAP2) >> BRANCH_TARGETS_BIT & 1) != 0;
    return is_checked ? PROTECTION_BTI : 0;
}

/* The virtual count of the generic timer (DDI 0487, chapter "The Generic Timer in AArch64 state").
 */
bool arch_host_has_clock(void) { return true; }

uint64_t arch_host_clock(void)
{
    uint64_t count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
}

/* ORDER HWCAP */
void arch_host_features(uint64_t words[ARCH_FEATURE_WORDS])
{
    memset(words, 0, ARCH_FEATURE_WORDS * sizeof *words);
    words[0] = getauxval(AT_HWCAP);
    words[1] = getauxval(AT_HWCAP2);
}
