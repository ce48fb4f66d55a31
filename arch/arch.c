/*
 * The tables of all architectures, by number, and the host's table.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"

#include "arch/aarch64/target.h"
#include "arch/ppc64/target.h"
#include "arch/registers.h"
#include "arch/x86_64/target.h"

/* ORDER ARCHITECTURE: the order of enum cairn_architecture. */
static const struct {
    const char *name;
    const struct arch_registers *registers;
    const struct cairn_arch *arch; /* NULL if records can be decoded, but sites cannot be managed */
} architectures[] = {
    [CAIRN_ARCHITECTURE_UNKNOWN] = {.name = "unknown"},
    [CAIRN_ARCHITECTURE_X86_64] = {"x86-64", &x86_64_registers, &x86_64_arch},
    [CAIRN_ARCHITECTURE_AARCH64] = {"aarch64", &aarch64_registers, &aarch64_arch},
    [CAIRN_ARCHITECTURE_PPC64_ELFV2] = {"ppc64-elfv2", &ppc64_registers, &ppc64_elfv2_arch},
    [CAIRN_ARCHITECTURE_PPC64_ELFV1] = {"ppc64-elfv1", &ppc64_registers, &ppc64_elfv1_arch},
    [CAIRN_ARCHITECTURE_SYSTEMZ] = {"systemz", &systemz_registers, NULL},
    [CAIRN_ARCHITECTURE_RISCV64] = {"riscv64", &riscv64_registers, NULL},
};

enum { ARCHITECTURE_COUNT = sizeof architectures / sizeof *architectures };
_Static_assert(ARCHITECTURE_COUNT == CAIRN_ARCHITECTURE_RISCV64 + 1, "one row per architecture");

/* Returns the index of a row, which is CAIRN_ARCHITECTURE_UNKNOWN for other numbers. */
static unsigned row_of(enum cairn_architecture architecture)
{
    unsigned row = (unsigned)architecture;
    return row < ARCHITECTURE_COUNT ? row : CAIRN_ARCHITECTURE_UNKNOWN;
}

const struct cairn_arch *arch_find(enum cairn_architecture architecture)
{
    return architectures[row_of(architecture)].arch;
}

const char *cairn_architecture_name(enum cairn_architecture architecture)
{
    return architectures[row_of(architecture)].name;
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

const struct cairn_arch *arch_host(void) { return arch_find(cairn_architecture_host()); }

enum cairn_byte_order cairn_byte_order_host(void)
{
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? CAIRN_BIG_ENDIAN : CAIRN_LITTLE_ENDIAN;
}

static uint16_t whole_register(const struct arch_registers *registers, uint16_t dwarf)
{
    unsigned half = (unsigned)dwarf - registers->lower_halves;
    return half < registers->lower_half_count ? (uint16_t)half : dwarf;
}

uint16_t arch_whole_register(const struct cairn_arch *arch, uint16_t dwarf)
{
    return whole_register(architectures[arch->architecture].registers, dwarf);
}

const char *cairn_register_name(enum cairn_architecture architecture, uint16_t dwarf)
{
    const struct arch_registers *registers = architectures[row_of(architecture)].registers;
    if (registers == NULL)
        return NULL;
    dwarf = whole_register(registers, dwarf);
    return dwarf < registers->count ? registers->names[dwarf] : NULL;
}
