/*
 * x86-64 as the host: instruction fetch sees written code without cache maintenance.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 3, section
 * "Self-Modifying Code": the processor keeps the caches coherent by physical address, so that
 * nothing needs to be cleaned. Other cores see the store at their next fetch, and at the latest
 * after the caller's barrier.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/x86_64/features.h"
#include "arch/x86_64/target.h"

#include <cpuid.h>
#include <string.h>

const struct cairn_arch *arch_host(void) { return &x86_64_arch; }

const struct arch_cache_encoder *arch_host_cache_encoder(void) { return &x86_64_cache_encoder; }

void arch_host_code_written(const void *written, const void *executed, size_t size)
{
    (void)written;
    (void)executed;
    (void)size;
    /* Stores become visible in program order, so this fence emits no instruction. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

/* With IBT the whole process is checked, not pages. */
int arch_host_landing_protection(void) { return 0; }

/* Source: the same manual, volume 3, section "Invariant TSC". */
bool arch_host_has_clock(void)
{
    const uint32_t power_leaf = 0x80000007;
    enum { INVARIANT_TSC = 8 };
    uint32_t eax, ebx, ecx, edx;
    return __get_cpuid(power_leaf, &eax, &ebx, &ecx, &edx) != 0 && (edx >> INVARIANT_TSC & 1) != 0;
}

uint64_t arch_host_clock(void) { return __builtin_ia32_rdtsc(); }

static uint64_t read_xcr0(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* Leaves that the CPU does not have read as zeros. */
void arch_host_features(uint64_t words[ARCH_FEATURE_WORDS])
{
    /* ORDER CPUID. The register is the position in the order in which __get_cpuid_count has them.
     */
    enum { EAX, EBX, ECX, EDX };
    static const struct {
        uint32_t leaf;
        uint32_t subleaf;
        unsigned register_index;
    } reads[X86_64_FEATURE_WORD_COUNT] = {
        [X86_64_1_ECX] = {1, 0, ECX},
        [X86_64_7_0_EBX] = {7, 0, EBX},
        [X86_64_7_0_ECX] = {7, 0, ECX},
        [X86_64_7_0_EDX] = {7, 0, EDX},
        [X86_64_7_1_EAX] = {7, 1, EAX},
        [X86_64_7_1_EDX] = {7, 1, EDX},
        [X86_64_80000001_ECX] = {0x80000001, 0, ECX},
        [X86_64_1E_1_EAX] = {0x1E, 1, EAX},
        [X86_64_24_0_EBX] = {0x24, 0, EBX},
    };
    enum { AVX10_VERSION = 0xFF, OSXSAVE = 27 };
    memset(words, 0, ARCH_FEATURE_WORDS * sizeof *words);
    for (size_t i = 0; i < X86_64_FEATURE_WORD_COUNT; i++) {
        uint32_t registers[4] = {0};
        if (__get_cpuid_count(reads[i].leaf, reads[i].subleaf, &registers[EAX], &registers[EBX],
                              &registers[ECX], &registers[EDX]) != 0)
            words[i] = registers[reads[i].register_index];
    }
    uint64_t version = words[X86_64_24_0_EBX] & AVX10_VERSION;
    words[X86_64_24_0_EBX] = version == 0 ? 0 : UINT64_MAX >> (version < 64 ? 64 - version : 0);
    if ((words[X86_64_1_ECX] >> OSXSAVE & 1) != 0)
        words[ARCH_FEATURE_STATE] = read_xcr0();
}
