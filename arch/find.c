/*
 * The tables of all architectures, by number.
 *
 * Only what handles code of other machines as data may call these functions: they link the tables
 * of all architectures.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"

#include "arch/aarch64/target.h"
#include "arch/ppc64/target.h"
#include "arch/registers.h"
#include "arch/x86_64/target.h"

enum { ARCHITECTURE_COUNT = CAIRN_ARCHITECTURE_RISCV64 + 1 };

const struct cairn_arch *arch_find(enum cairn_architecture architecture)
{
    /* NULL if records can be decoded, but sites cannot be managed. */
    static const struct cairn_arch *const tables[ARCHITECTURE_COUNT] = {
        [CAIRN_ARCHITECTURE_X86_64] = &x86_64_arch,
        [CAIRN_ARCHITECTURE_AARCH64] = &aarch64_arch,
        [CAIRN_ARCHITECTURE_PPC64_ELFV2] = &ppc64_elfv2_arch,
        [CAIRN_ARCHITECTURE_PPC64_ELFV1] = &ppc64_elfv1_arch,
    };
    return (unsigned)architecture < ARCHITECTURE_COUNT ? tables[architecture] : NULL;
}

const struct arch_cache_encoder *arch_find_cache_encoder(enum cairn_architecture architecture)
{
    static const struct arch_cache_encoder *const encoders[ARCHITECTURE_COUNT] = {
        [CAIRN_ARCHITECTURE_X86_64] = &x86_64_cache_encoder,
        [CAIRN_ARCHITECTURE_AARCH64] = &aarch64_cache_encoder,
        [CAIRN_ARCHITECTURE_PPC64_ELFV2] = &ppc64_cache_encoder,
        [CAIRN_ARCHITECTURE_PPC64_ELFV1] = &ppc64_cache_encoder,
    };
    return (unsigned)architecture < ARCHITECTURE_COUNT ? encoders[architecture] : NULL;
}

const char *cairn_register_name(enum cairn_architecture architecture, uint16_t dwarf)
{
    static const struct arch_registers *const tables[ARCHITECTURE_COUNT] = {
        [CAIRN_ARCHITECTURE_X86_64] = &x86_64_registers,
        [CAIRN_ARCHITECTURE_AARCH64] = &aarch64_registers,
        [CAIRN_ARCHITECTURE_PPC64_ELFV2] = &ppc64_registers,
        [CAIRN_ARCHITECTURE_PPC64_ELFV1] = &ppc64_registers,
        [CAIRN_ARCHITECTURE_SYSTEMZ] = &systemz_registers,
        [CAIRN_ARCHITECTURE_RISCV64] = &riscv64_registers,
    };
    const struct arch_registers *registers =
        (unsigned)architecture < ARCHITECTURE_COUNT ? tables[architecture] : NULL;
    return registers == NULL ? NULL : registers_name(registers, dwarf);
}
