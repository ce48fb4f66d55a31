/*
 * AArch64's features: the bits of AT_HWCAP and AT_HWCAP2, which Linux sets for what it supports.
 *
 * Sources: Linux, arch/arm64/include/uapi/asm/hwcap.h and Documentation/arch/arm64/elf_hwcaps.rst;
 * LLVM's names: llvm-project, llvm/lib/Target/AArch64/AArch64Features.td, and `llc -mattr=help` of
 * LLVM 14, 15, 16, 19 and 22. Not reported by the kernel and so not here: features that only
 * intrinsics and inline assembly use, such as ls64 and predres.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/features.h"
#include "arch/aarch64/context.h"

/* ORDER HWCAP: the words of arch_host_features. */
enum { HWCAP, HWCAP2 };

#define BIT(n) (UINT64_C(1) << (n))

static const struct arch_feature features[] = {
    {.name = "aes", .word = HWCAP, .bits = BIT(3) | BIT(4)},
    {.name = "sha2", .word = HWCAP, .bits = BIT(5) | BIT(6)},
    {.name = "crc", .word = HWCAP, .bits = BIT(7)},
    {.name = "lse", .word = HWCAP, .bits = BIT(8)},
    {.name = "fullfp16", .word = HWCAP, .bits = BIT(9) | BIT(10)},
    {.name = "rdm", .word = HWCAP, .bits = BIT(12)},
    {.name = "jsconv", .word = HWCAP, .bits = BIT(13)},
    {.name = "complxnum", .word = HWCAP, .bits = BIT(14)},
    {.name = "rcpc", .word = HWCAP, .bits = BIT(15)},
    {.name = "ccpp", .word = HWCAP, .bits = BIT(16)},
    {.name = "sha3", .word = HWCAP, .bits = BIT(17) | BIT(21)},
    {.name = "sm4", .word = HWCAP, .bits = BIT(18) | BIT(19)},
    {.name = "dotprod", .word = HWCAP, .bits = BIT(20)},
    {.name = "sve", .word = HWCAP, .bits = BIT(22)},
    {.name = "fp16fml", .word = HWCAP, .bits = BIT(23)},
    {.name = "dit", .word = HWCAP, .bits = BIT(24)},
    {.name = "lse2", .word = HWCAP, .bits = BIT(25)},
    {.name = "rcpc-immo", .word = HWCAP, .bits = BIT(26)},
    {.name = "flagm", .word = HWCAP, .bits = BIT(27)},
    {.name = "ssbs", .word = HWCAP, .bits = BIT(28)},
    {.name = "sb", .word = HWCAP, .bits = BIT(29)},
    {.name = "pauth", .word = HWCAP, .bits = BIT(30) | BIT(31)},
    {.name = "gcs", .word = HWCAP, .bits = BIT(32), .first_llvm = 19},
    {.name = "ccdp", .word = HWCAP2, .bits = BIT(0)},
    {.name = "sve2", .word = HWCAP2, .bits = BIT(1)},
    {.name = "sve2-aes", .word = HWCAP2, .bits = BIT(2) | BIT(3)},
    {.name = "sve-aes", .word = HWCAP2, .bits = BIT(2) | BIT(3), .first_llvm = 22},
    {.name = "sve2-bitperm", .word = HWCAP2, .bits = BIT(4)},
    {.name = "sve-bitperm", .word = HWCAP2, .bits = BIT(4), .first_llvm = 22},
    {.name = "sve2-sha3", .word = HWCAP2, .bits = BIT(5)},
    {.name = "sve-sha3", .word = HWCAP2, .bits = BIT(5), .first_llvm = 22},
    {.name = "sve2-sm4", .word = HWCAP2, .bits = BIT(6)},
    {.name = "sve-sm4", .word = HWCAP2, .bits = BIT(6), .first_llvm = 22},
    {.name = "altnzcv", .word = HWCAP2, .bits = BIT(7)},
    {.name = "fptoint", .word = HWCAP2, .bits = BIT(8)},
    {.name = "f32mm", .word = HWCAP2, .bits = BIT(10)},
    {.name = "f64mm", .word = HWCAP2, .bits = BIT(11)},
    {.name = "i8mm", .word = HWCAP2, .bits = BIT(13)},
    {.name = "bf16", .word = HWCAP2, .bits = BIT(14)},
    {.name = "rand", .word = HWCAP2, .bits = BIT(16)},
    {.name = "mte", .word = HWCAP2, .bits = BIT(18)},
    {.name = "sme", .word = HWCAP2, .bits = BIT(23)},
    {.name = "sme-i16i64", .word = HWCAP2, .bits = BIT(24), .first_llvm = 16},
    {.name = "sme-f64f64", .word = HWCAP2, .bits = BIT(25), .first_llvm = 16},
    {.name = "sme-fa64", .word = HWCAP2, .bits = BIT(30), .first_llvm = 19},
    {.name = "wfxt", .word = HWCAP2, .bits = BIT(31)},
    {.name = "cssc", .word = HWCAP2, .bits = BIT(34), .first_llvm = 16},
    {.name = "sve2p1", .word = HWCAP2, .bits = BIT(36), .first_llvm = 16},
    {.name = "sme2", .word = HWCAP2, .bits = BIT(37), .first_llvm = 16},
    {.name = "sme2p1", .word = HWCAP2, .bits = BIT(38), .first_llvm = 16},
    {.name = "sme-b16b16", .word = HWCAP2, .bits = BIT(41), .first_llvm = 19},
    {.name = "sme-f16f16", .word = HWCAP2, .bits = BIT(42), .first_llvm = 16},
    {.name = "mops", .word = HWCAP2, .bits = BIT(43)},
    {.name = "hbc", .word = HWCAP2, .bits = BIT(44)},
    {.name = "sve-b16b16", .word = HWCAP2, .bits = BIT(45), .first_llvm = 19},
    {.name = "rcpc3", .word = HWCAP2, .bits = BIT(46), .first_llvm = 16},
    {.name = "lse128", .word = HWCAP2, .bits = BIT(47), .first_llvm = 16},
    {.name = "lut", .word = HWCAP2, .bits = BIT(49), .first_llvm = 19},
    {.name = "faminmax", .word = HWCAP2, .bits = BIT(50), .first_llvm = 19},
    {.name = "fp8", .word = HWCAP2, .bits = BIT(48) | BIT(51), .first_llvm = 19},
    {.name = "fp8fma", .word = HWCAP2, .bits = BIT(52), .first_llvm = 19},
    {.name = "fp8dot4", .word = HWCAP2, .bits = BIT(53), .first_llvm = 19},
    {.name = "fp8dot2", .word = HWCAP2, .bits = BIT(54), .first_llvm = 19},
    {.name = "sme-lutv2", .word = HWCAP2, .bits = BIT(57), .first_llvm = 19},
    {.name = "sme-f8f16", .word = HWCAP2, .bits = BIT(58), .first_llvm = 19},
    {.name = "sme-f8f32", .word = HWCAP2, .bits = BIT(59), .first_llvm = 19},
    {.name = "ssve-fp8fma", .word = HWCAP2, .bits = BIT(60), .first_llvm = 19},
    {.name = "ssve-fp8dot4", .word = HWCAP2, .bits = BIT(61), .first_llvm = 19},
    {.name = "ssve-fp8dot2", .word = HWCAP2, .bits = BIT(62), .first_llvm = 19},
};

/* Exits save the same registers whatever code can hold: of SVE's, the low 128 bits; and code
 * without floating point must still preserve d8 to d15. */
const struct arch_feature_table aarch64_features = {
    .features = features,
    .count = sizeof features / sizeof *features,
    .base = "fp-armv8",
    .base_level = CONTEXT_LEVEL_SIMD,
};
