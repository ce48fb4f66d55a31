/*
 * cairn/architecture.h - the supported architectures.
 *
 * Names of architectures, byte orders, and names of registers.
 *
 * Threads: every function is thread-safe and async-signal-safe.
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

/** A byte order. */
enum cairn_byte_order { CAIRN_LITTLE_ENDIAN = 0, CAIRN_BIG_ENDIAN = 1 };

/** The byte order of the machine that this header is compiled for. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define CAIRN_BYTE_ORDER_NATIVE CAIRN_BIG_ENDIAN
#else
#define CAIRN_BYTE_ORDER_NATIVE CAIRN_LITTLE_ENDIAN
#endif

/** An architecture, together with its ABI. */
enum cairn_architecture {
    CAIRN_ARCHITECTURE_UNKNOWN = 0,
    CAIRN_ARCHITECTURE_X86_64 = 1,
    CAIRN_ARCHITECTURE_AARCH64 = 2,
    /** PPC64 with the ELFv2 ABI (little-endian Linux). */
    CAIRN_ARCHITECTURE_PPC64_ELFV2 = 3,
    /** PPC64 with the ELFv1 ABI (big-endian Linux, function descriptors). */
    CAIRN_ARCHITECTURE_PPC64_ELFV1 = 4,
    /** Stack maps can be decoded and looked up, and registers have names, but sites cannot be
     *  patched: cairn_runtime_create returns CAIRN_ERROR_UNSUPPORTED on this architecture. */
    CAIRN_ARCHITECTURE_SYSTEMZ = 5,
    /** The same as CAIRN_ARCHITECTURE_SYSTEMZ. */
    CAIRN_ARCHITECTURE_RISCV64 = 6
};

/** Returns the name of an architecture: "x86-64", "aarch64", …; a static string. */
CAIRN_API const char *cairn_architecture_name(enum cairn_architecture architecture);

/** Returns the architecture that this library was built for. */
CAIRN_API enum cairn_architecture cairn_architecture_host(void);

/** Returns the assembler's name of a register with this DWARF number, such as "rax" for 0 on
 *  x86-64, or NULL if Cairn does not know the register. The string is static. */
CAIRN_API const char *cairn_register_name(enum cairn_architecture architecture, uint16_t dwarf);

#ifdef __cplusplus
}
#endif
#endif
