/*
 * PPC64's features: the bits of AT_HWCAP and AT_HWCAP2.
 *
 * Sources: Linux, arch/powerpc/include/uapi/asm/cputable.h; the versions of the Power ISA that
 * added the instructions; LLVM's names: llvm-project, llvm/lib/Target/PowerPC/PPC.td, and `llc
 * -mattr=help` of LLVM 14 and 22, which know all of these.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/features.h"
#include "arch/ppc64/context.h"

/* ORDER HWCAP: the words of arch_host_features. */
enum { HWCAP, HWCAP2 };

/* The kernel's bits. An ISA's bit stands for all instructions that it requires of a server. */
#define HAS_ALTIVEC UINT64_C(0x10000000)
#define HAS_VSX UINT64_C(0x00000080)
#define ARCH_2_05 UINT64_C(0x00001000)
#define ARCH_2_06 UINT64_C(0x00000100)
#define ARCH_2_07 UINT64_C(0x80000000)
#define VEC_CRYPTO UINT64_C(0x02000000)
#define HAS_IEEE128 UINT64_C(0x00400000)
#define ARCH_3_00 UINT64_C(0x00800000)
#define ARCH_3_1 UINT64_C(0x00040000)
#define HAS_MMA UINT64_C(0x00020000)

static const struct arch_feature features[] = {
    {.name = "altivec", .word = HWCAP, .bits = HAS_ALTIVEC},
    {.name = "vsx", .word = HWCAP, .bits = HAS_VSX},
    {.name = "cmpb", .word = HWCAP, .bits = ARCH_2_05},
    {.name = "fcpsgn", .word = HWCAP, .bits = ARCH_2_05},
    {.name = "fprnd", .word = HWCAP, .bits = ARCH_2_05},
    {.name = "frsqrtes", .word = HWCAP, .bits = ARCH_2_05},
    {.name = "fre", .word = HWCAP, .bits = ARCH_2_05},
    {.name = "lfiwax", .word = HWCAP, .bits = ARCH_2_05},
    {.name = "bpermd", .word = HWCAP, .bits = ARCH_2_06},
    {.name = "extdiv", .word = HWCAP, .bits = ARCH_2_06},
    {.name = "fpcvt", .word = HWCAP, .bits = ARCH_2_06},
    {.name = "isa-v206-instructions", .word = HWCAP, .bits = ARCH_2_06},
    {.name = "isel", .word = HWCAP, .bits = ARCH_2_06},
    {.name = "ldbrx", .word = HWCAP, .bits = ARCH_2_06},
    {.name = "popcntd", .word = HWCAP, .bits = ARCH_2_06},
    {.name = "recipprec", .word = HWCAP, .bits = ARCH_2_06},
    {.name = "direct-move", .word = HWCAP2, .bits = ARCH_2_07},
    {.name = "icbt", .word = HWCAP2, .bits = ARCH_2_07},
    {.name = "isa-v207-instructions", .word = HWCAP2, .bits = ARCH_2_07},
    {.name = "partword-atomics", .word = HWCAP2, .bits = ARCH_2_07},
    {.name = "power8-altivec", .word = HWCAP2, .bits = ARCH_2_07},
    {.name = "power8-vector", .word = HWCAP2, .bits = ARCH_2_07},
    {.name = "quadword-atomics", .word = HWCAP2, .bits = ARCH_2_07},
    {.name = "crypto", .word = HWCAP2, .bits = VEC_CRYPTO},
    {.name = "float128", .word = HWCAP2, .bits = HAS_IEEE128},
    {.name = "isa-v30-instructions", .word = HWCAP2, .bits = ARCH_3_00},
    {.name = "power9-altivec", .word = HWCAP2, .bits = ARCH_3_00},
    {.name = "power9-vector", .word = HWCAP2, .bits = ARCH_3_00},
    {.name = "isa-v31-instructions", .word = HWCAP2, .bits = ARCH_3_1},
    {.name = "paired-vector-memops", .word = HWCAP2, .bits = ARCH_3_1},
    {.name = "pcrelative-memops", .word = HWCAP2, .bits = ARCH_3_1},
    {.name = "power10-vector", .word = HWCAP2, .bits = ARCH_3_1},
    {.name = "prefix-instrs", .word = HWCAP2, .bits = ARCH_3_1},
    {.name = "rop-protect", .word = HWCAP2, .bits = ARCH_3_1},
    {.name = "mma", .word = HWCAP2, .bits = HAS_MMA},
};

/* Code for CPUs without VSX can hold nothing in the second halves of vs0 to vs31. v20 to v31 are
 * callee-saved, so code without Altivec must preserve them, too. */
const struct arch_feature_table ppc64_features = {
    .features = features,
    .count = sizeof features / sizeof *features,
    .base = "64bit",
    .base_level = CONTEXT_LEVEL_VSX,
    .wide = "vsx",
    .narrow_level = CONTEXT_LEVEL_ALTIVEC,
};
