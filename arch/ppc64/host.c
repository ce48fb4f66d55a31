/*
 * PPC64 as the host: makes written code visible to instruction fetch, by writing the data cache
 * blocks to memory and then invalidating the instruction cache blocks.
 *
 * Source: Power ISA, Book II, section "Instruction Storage", which lists this sequence, and the
 * descriptions of dcbst and icbi. On all processors both work by real address, if the memory of the
 * block requires coherence.
 *
 * With a dual mapping, the code has two addresses for the same memory: the data cache is cleaned by
 * the address that was written through, the instruction cache invalidated by the address that is
 * executed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/features.h"
#include "arch/ppc64/target.h"

#include <string.h>
#include <sys/auxv.h>

/* The smallest block size of any 64-bit processor, used if the kernel does not report the size. */
enum { BLOCK_BYTES_MIN = 32 };

static uintptr_t block_bytes(unsigned long type)
{
    uintptr_t bytes = getauxval(type);
    return bytes == 0 ? BLOCK_BYTES_MIN : bytes;
}

const struct cairn_arch *arch_host(void)
{
#if _CALL_ELF == 2
    return &ppc64_elfv2_arch;
#else
    return &ppc64_elfv1_arch;
#endif
}

const struct arch_cache_encoder *arch_host_cache_encoder(void) { return &ppc64_cache_encoder; }

void arch_host_code_written(const void *written, const void *executed, size_t size)
{
    uintptr_t block = block_bytes(AT_DCACHEBSIZE);
    for (uintptr_t at = (uintptr_t)written & ~(block - 1); at < (uintptr_t)written + size;
         at += block)
        __asm__ volatile("dcbst 0, %0" : : "r"(at) : "memory");
    __asm__ volatile("sync" : : : "memory");
    block = block_bytes(AT_ICACHEBSIZE);
    for (uintptr_t at = (uintptr_t)executed & ~(block - 1); at < (uintptr_t)executed + size;
         at += block)
        __asm__ volatile("icbi 0, %0" : : "r"(at) : "memory");
    __asm__ volatile("sync" : : : "memory");
    __asm__ volatile("isync" : : : "memory");
}

int arch_host_landing_protection(void) { return 0; }

/* The time base (Power ISA, Book II, chapter "Time Base"). */
bool arch_host_has_clock(void) { return true; }

uint64_t arch_host_clock(void) { return __builtin_ppc_get_timebase(); }

/* ORDER HWCAP. Some kernels report only the newest version of the ISA among those that a CPU
 * implements, so that each version stands for the earlier ones, too. */
void arch_host_features(uint64_t words[ARCH_FEATURE_WORDS])
{
    /* From the newest on; bits as in features.c. */
    static const struct {
        unsigned word;
        uint64_t bit;
    } versions[] = {{1, 0x00040000}, {1, 0x00800000}, {1, 0x80000000}, {0, 0x100}, {0, 0x1000}};
    bool is_implied = false;
    memset(words, 0, ARCH_FEATURE_WORDS * sizeof *words);
    words[0] = getauxval(AT_HWCAP);
    words[1] = getauxval(AT_HWCAP2);
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        is_implied |= (words[versions[i].word] & versions[i].bit) != 0;
        if (is_implied)
            words[versions[i].word] |= versions[i].bit;
    }
}
