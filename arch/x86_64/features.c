/*
 * x86-64's features: the bits of CPUID, and of XCR0 for the registers that the kernel saves.
 *
 * The words are those of enum x86_64_feature_word, with one exception: bit n of the last one is set
 * if CPUID reports version n + 1 of AVX10 or a later one.
 *
 * Sources: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2A, CPUID; AMD64
 * Architecture Programmer's Manual, volume 3, appendix E; LLVM's names: llvm-project,
 * llvm/lib/TargetParser/Host.cpp, getHostCPUFeatures, and `llc -mattr=help` of LLVM 14, 15, 16, 19
 * and 22.
 *
 * Not here: features of kernels and processes rather than of computing (xsave, pku, rtm, clwb,
 * mwaitx and others). LLVM uses them only for intrinsics that name them, many processors have them
 * switched off, and the names of CPUs include them. 3DNow is not here either.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/x86_64/features.h"
#include "arch/x86_64/context.h"

#define BIT(n) (UINT64_C(1) << (n))

/* The registers of AVX, AVX-512, AMX and APX in XCR0. */
#define AVX (BIT(1) | BIT(2))
#define AVX512 (AVX | BIT(5) | BIT(6) | BIT(7))
#define AMX (BIT(17) | BIT(18))
#define APX BIT(19)

static const struct arch_feature features[] = {
    {.name = "sse3", .word = X86_64_1_ECX, .bits = BIT(0)},
    {.name = "pclmul", .word = X86_64_1_ECX, .bits = BIT(1)},
    {.name = "ssse3", .word = X86_64_1_ECX, .bits = BIT(9)},
    {.name = "cx16", .word = X86_64_1_ECX, .bits = BIT(13)},
    {.name = "sse4.1", .word = X86_64_1_ECX, .bits = BIT(19)},
    {.name = "sse4.2", .word = X86_64_1_ECX, .bits = BIT(20)},
    {.name = "crc32", .word = X86_64_1_ECX, .bits = BIT(20)},
    {.name = "movbe", .word = X86_64_1_ECX, .bits = BIT(22)},
    {.name = "popcnt", .word = X86_64_1_ECX, .bits = BIT(23)},
    {.name = "aes", .word = X86_64_1_ECX, .bits = BIT(25)},
    {.name = "rdrnd", .word = X86_64_1_ECX, .bits = BIT(30)},
    {.name = "fma", .word = X86_64_1_ECX, .bits = BIT(12), .state = AVX},
    {.name = "avx", .word = X86_64_1_ECX, .bits = BIT(28), .state = AVX},
    {.name = "f16c", .word = X86_64_1_ECX, .bits = BIT(29), .state = AVX},
    {.name = "bmi", .word = X86_64_7_0_EBX, .bits = BIT(3)},
    {.name = "bmi2", .word = X86_64_7_0_EBX, .bits = BIT(8)},
    {.name = "rdseed", .word = X86_64_7_0_EBX, .bits = BIT(18)},
    {.name = "adx", .word = X86_64_7_0_EBX, .bits = BIT(19)},
    {.name = "sha", .word = X86_64_7_0_EBX, .bits = BIT(29)},
    {.name = "avx2", .word = X86_64_7_0_EBX, .bits = BIT(5), .state = AVX},
    {.name = "avx512f", .word = X86_64_7_0_EBX, .bits = BIT(16), .state = AVX512},
    {.name = "avx512dq", .word = X86_64_7_0_EBX, .bits = BIT(17), .state = AVX512},
    {.name = "avx512ifma", .word = X86_64_7_0_EBX, .bits = BIT(21), .state = AVX512},
    {.name = "avx512pf", .word = X86_64_7_0_EBX, .bits = BIT(26), .last_llvm = 16, .state = AVX512},
    {.name = "avx512er", .word = X86_64_7_0_EBX, .bits = BIT(27), .last_llvm = 16, .state = AVX512},
    {.name = "avx512cd", .word = X86_64_7_0_EBX, .bits = BIT(28), .state = AVX512},
    {.name = "avx512bw", .word = X86_64_7_0_EBX, .bits = BIT(30), .state = AVX512},
    {.name = "avx512vl", .word = X86_64_7_0_EBX, .bits = BIT(31), .state = AVX512},
    {.name = "evex512", .word = X86_64_7_0_EBX, .bits = BIT(16), .first_llvm = 19, .state = AVX512},
    {.name = "prefetchwt1", .word = X86_64_7_0_ECX, .bits = BIT(0), .last_llvm = 16},
    {.name = "gfni", .word = X86_64_7_0_ECX, .bits = BIT(8)},
    {.name = "vaes", .word = X86_64_7_0_ECX, .bits = BIT(9), .state = AVX},
    {.name = "vpclmulqdq", .word = X86_64_7_0_ECX, .bits = BIT(10), .state = AVX},
    {.name = "avx512vbmi", .word = X86_64_7_0_ECX, .bits = BIT(1), .state = AVX512},
    {.name = "avx512vbmi2", .word = X86_64_7_0_ECX, .bits = BIT(6), .state = AVX512},
    {.name = "avx512vnni", .word = X86_64_7_0_ECX, .bits = BIT(11), .state = AVX512},
    {.name = "avx512bitalg", .word = X86_64_7_0_ECX, .bits = BIT(12), .state = AVX512},
    {.name = "avx512vpopcntdq", .word = X86_64_7_0_ECX, .bits = BIT(14), .state = AVX512},
    {.name = "avx512vp2intersect", .word = X86_64_7_0_EDX, .bits = BIT(8), .state = AVX512},
    {.name = "avx512fp16", .word = X86_64_7_0_EDX, .bits = BIT(23), .state = AVX512},
    {.name = "amx-bf16", .word = X86_64_7_0_EDX, .bits = BIT(22), .state = AMX},
    {.name = "amx-tile", .word = X86_64_7_0_EDX, .bits = BIT(24), .state = AMX},
    {.name = "amx-int8", .word = X86_64_7_0_EDX, .bits = BIT(25), .state = AMX},
    {.name = "raoint", .word = X86_64_7_1_EAX, .bits = BIT(3), .first_llvm = 16},
    {.name = "cmpccxadd", .word = X86_64_7_1_EAX, .bits = BIT(7), .first_llvm = 16},
    {.name = "movrs", .word = X86_64_7_1_EAX, .bits = BIT(31), .first_llvm = 22},
    {.name = "sha512", .word = X86_64_7_1_EAX, .bits = BIT(0), .first_llvm = 19, .state = AVX},
    {.name = "sm3", .word = X86_64_7_1_EAX, .bits = BIT(1), .first_llvm = 19, .state = AVX},
    {.name = "sm4", .word = X86_64_7_1_EAX, .bits = BIT(2), .first_llvm = 19, .state = AVX},
    {.name = "avxvnni", .word = X86_64_7_1_EAX, .bits = BIT(4), .state = AVX},
    {.name = "avxifma", .word = X86_64_7_1_EAX, .bits = BIT(23), .first_llvm = 16, .state = AVX},
    {.name = "avx512bf16", .word = X86_64_7_1_EAX, .bits = BIT(5), .state = AVX512},
    {.name = "amx-fp16", .word = X86_64_7_1_EAX, .bits = BIT(21), .first_llvm = 16, .state = AMX},
    {.name = "avxvnniint8", .word = X86_64_7_1_EDX, .bits = BIT(4), .first_llvm = 16, .state = AVX},
    {.name = "avxneconvert",
     .word = X86_64_7_1_EDX,
     .bits = BIT(5),
     .first_llvm = 16,
     .state = AVX},
    {.name = "avxvnniint16",
     .word = X86_64_7_1_EDX,
     .bits = BIT(10),
     .first_llvm = 19,
     .state = AVX},
    {.name = "amx-complex", .word = X86_64_7_1_EDX, .bits = BIT(8), .first_llvm = 19, .state = AMX},
    {.name = "avx10.1", .word = X86_64_7_1_EDX, .bits = BIT(19), .first_llvm = 22, .state = AVX512},
    {.name = "avx10.1-256",
     .word = X86_64_7_1_EDX,
     .bits = BIT(19),
     .first_llvm = 19,
     .last_llvm = 19,
     .state = AVX512},
    {.name = "avx10.1-512",
     .word = X86_64_7_1_EDX,
     .bits = BIT(19),
     .first_llvm = 19,
     .state = AVX512},
    {.name = "ccmp", .word = X86_64_7_1_EDX, .bits = BIT(21), .first_llvm = 19, .state = APX},
    {.name = "cf", .word = X86_64_7_1_EDX, .bits = BIT(21), .first_llvm = 19, .state = APX},
    {.name = "egpr", .word = X86_64_7_1_EDX, .bits = BIT(21), .first_llvm = 19, .state = APX},
    {.name = "ndd", .word = X86_64_7_1_EDX, .bits = BIT(21), .first_llvm = 19, .state = APX},
    {.name = "nf", .word = X86_64_7_1_EDX, .bits = BIT(21), .first_llvm = 19, .state = APX},
    {.name = "ppx", .word = X86_64_7_1_EDX, .bits = BIT(21), .first_llvm = 19, .state = APX},
    {.name = "push2pop2", .word = X86_64_7_1_EDX, .bits = BIT(21), .first_llvm = 19, .state = APX},
    {.name = "zu", .word = X86_64_7_1_EDX, .bits = BIT(21), .first_llvm = 19, .state = APX},
    {.name = "sahf", .word = X86_64_80000001_ECX, .bits = BIT(0)},
    {.name = "lzcnt", .word = X86_64_80000001_ECX, .bits = BIT(5)},
    {.name = "sse4a", .word = X86_64_80000001_ECX, .bits = BIT(6)},
    {.name = "prfchw", .word = X86_64_80000001_ECX, .bits = BIT(8)},
    {.name = "tbm", .word = X86_64_80000001_ECX, .bits = BIT(21)},
    {.name = "xop", .word = X86_64_80000001_ECX, .bits = BIT(11), .state = AVX},
    {.name = "fma4", .word = X86_64_80000001_ECX, .bits = BIT(16), .state = AVX},
    {.name = "amx-fp8", .word = X86_64_1E_1_EAX, .bits = BIT(4), .first_llvm = 22, .state = AMX},
    {.name = "amx-tf32", .word = X86_64_1E_1_EAX, .bits = BIT(6), .first_llvm = 22, .state = AMX},
    {.name = "amx-avx512", .word = X86_64_1E_1_EAX, .bits = BIT(7), .first_llvm = 22, .state = AMX},
    {.name = "amx-movrs", .word = X86_64_1E_1_EAX, .bits = BIT(8), .first_llvm = 22, .state = AMX},
    {.name = "avx10.2", .word = X86_64_24_0_EBX, .bits = BIT(1), .first_llvm = 22, .state = AVX512},
    {.name = "avx10.2-512",
     .word = X86_64_24_0_EBX,
     .bits = BIT(1),
     .first_llvm = 22,
     .state = AVX512},
};

/* Some features of AMX imply AVX-512. */
static uint32_t feature_level(const struct arch_feature *feature)
{
    if ((feature->state & (AVX512 | AMX) & ~AVX) != 0)
        return CONTEXT_LEVEL_AVX512;
    return (feature->state & AVX) != 0 ? CONTEXT_LEVEL_AVX : CONTEXT_LEVEL_SSE;
}

const struct arch_feature_table x86_64_features = {
    .features = features,
    .count = sizeof features / sizeof *features,
    .base = "sse2",
    .base_level = CONTEXT_LEVEL_SSE,
    .feature_level = feature_level,
};
