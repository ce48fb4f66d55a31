/*
 * cairn/architecture.h - the architectures that Cairn knows.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_ARCHITECTURE_H
#define CAIRN_ARCHITECTURE_H

#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum cairn_byte_order { CAIRN_LITTLE_ENDIAN = 0, CAIRN_BIG_ENDIAN = 1 };

/** The byte order of the code that is being compiled. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define CAIRN_BYTE_ORDER_NATIVE CAIRN_BIG_ENDIAN
#else
#define CAIRN_BYTE_ORDER_NATIVE CAIRN_LITTLE_ENDIAN
#endif

enum cairn_architecture {
    CAIRN_ARCHITECTURE_UNKNOWN = 0,
    CAIRN_ARCHITECTURE_X86_64 = 1,
    CAIRN_ARCHITECTURE_AARCH64 = 2,
    /** PPC64 with the ELFv2 ABI (little-endian Linux). */
    CAIRN_ARCHITECTURE_PPC64_ELFV2 = 3,
    /** PPC64 with the ELFv1 ABI (big-endian Linux, function descriptors). */
    CAIRN_ARCHITECTURE_PPC64_ELFV1 = 4,
    /** Records decode, tables find them, registers have names; sites are unmanaged: there,
     *  cairn_runtime_create gives UNSUPPORTED. */
    CAIRN_ARCHITECTURE_SYSTEMZ = 5,
    /** The same as SystemZ. */
    CAIRN_ARCHITECTURE_RISCV64 = 6
};

/** "x86-64", "aarch64", …; static. */
CAIRN_API const char *cairn_architecture_name(enum cairn_architecture architecture);

/** The architecture that this library was built for. */
CAIRN_API enum cairn_architecture cairn_architecture_host(void);

/** Byte order of stack maps in this process. */
CAIRN_API enum cairn_byte_order cairn_byte_order_host(void);

/**
 * The assembler's name of a DWARF register number, such as "rax" for 0 on
 * x86-64; NULL where Cairn knows none. Static. Async-signal-safe.
 */
CAIRN_API const char *cairn_register_name(enum cairn_architecture architecture, uint16_t dwarf);

#ifdef __cplusplus
}
#endif
#endif
