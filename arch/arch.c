/*
 * The names of architectures, the host's number, and what the tables say about registers.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"

#include "arch/registers.h"

const char *cairn_architecture_name(enum cairn_architecture architecture)
{
    /* ORDER ARCHITECTURE: the order of enum cairn_architecture. */
    static const char *const names[] = {
        [CAIRN_ARCHITECTURE_UNKNOWN] = "unknown",
        [CAIRN_ARCHITECTURE_X86_64] = "x86-64",
        [CAIRN_ARCHITECTURE_AARCH64] = "aarch64",
        [CAIRN_ARCHITECTURE_PPC64_ELFV2] = "ppc64-elfv2",
        [CAIRN_ARCHITECTURE_PPC64_ELFV1] = "ppc64-elfv1",
        [CAIRN_ARCHITECTURE_SYSTEMZ] = "systemz",
        [CAIRN_ARCHITECTURE_RISCV64] = "riscv64",
    };
    _Static_assert(sizeof names / sizeof *names == CAIRN_ARCHITECTURE_RISCV64 + 1,
                   "one name per architecture");
    bool is_known = (unsigned)architecture < sizeof names / sizeof *names;
    return names[is_known ? architecture : CAIRN_ARCHITECTURE_UNKNOWN];
}

enum cairn_architecture cairn_architecture_host(void)
{
#if defined(__x86_64__)
    return CAIRN_ARCHITECTURE_X86_64;
#elif defined(__aarch64__)
    return CAIRN_ARCHITECTURE_AARCH64;
#elif defined(__powerpc64__) && _CALL_ELF == 2
    return CAIRN_ARCHITECTURE_PPC64_ELFV2;
#elif defined(__powerpc64__)
    return CAIRN_ARCHITECTURE_PPC64_ELFV1;
#elif defined(__s390x__)
    return CAIRN_ARCHITECTURE_SYSTEMZ;
#elif defined(__riscv) && __riscv_xlen == 64
    return CAIRN_ARCHITECTURE_RISCV64;
#else
    return CAIRN_ARCHITECTURE_UNKNOWN;
#endif
}

uint16_t registers_whole(const struct arch_registers *registers, uint16_t dwarf)
{
    unsigned half = (unsigned)dwarf - registers->lower_halves;
    return half < registers->lower_half_count ? (uint16_t)half : dwarf;
}

const char *registers_name(const struct arch_registers *registers, uint16_t dwarf)
{
    dwarf = registers_whole(registers, dwarf);
    bool is_named = dwarf < registers->count && registers->names[dwarf][0] != '\0';
    return is_named ? registers->names[dwarf] : NULL;
}

uint16_t arch_whole_register(const struct cairn_arch *arch, uint16_t dwarf)
{
    return registers_whole(arch->registers, dwarf);
}

const char *arch_register_name(const struct cairn_arch *arch, uint16_t dwarf)
{
    return registers_name(arch->registers, dwarf);
}
