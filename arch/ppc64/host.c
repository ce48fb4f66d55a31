/*
 * PPC64 as the host: instruction fetch sees what was stored after the data cache's blocks have
 * been written to memory, and the instruction cache's been made invalid.
 *
 * Source: Power ISA, Book II, section "Instruction Storage", which has this very sequence, and
 * the descriptions of dcbst and icbi. Both work by real address on all processors, as long as the
 * block is memory that needs coherence.
 *
 * The two views of the code are two addresses of the same memory: the data cache is cleaned by
 * the one that was written through, the instruction cache by the one that is executed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"

#include <sys/auxv.h>

/* The smallest of any 64-bit processor, where the kernel does not say. */
enum { BLOCK_BYTES_MIN = 32 };

static uintptr_t block_bytes(unsigned long type)
{
    uintptr_t bytes = getauxval(type);
    return bytes == 0 ? BLOCK_BYTES_MIN : bytes;
}

static void store_data(const void *written, size_t size)
{
    uintptr_t block = block_bytes(AT_DCACHEBSIZE);
    uintptr_t end = (uintptr_t)written + size;
    for (uintptr_t at = (uintptr_t)written & ~(block - 1); at < end; at += block)
        __asm__ volatile("dcbst 0, %0" : : "r"(at) : "memory");
}

static void invalidate_instructions(const void *executed, size_t size)
{
    uintptr_t block = block_bytes(AT_ICACHEBSIZE);
    uintptr_t end = (uintptr_t)executed + size;
    for (uintptr_t at = (uintptr_t)executed & ~(block - 1); at < end; at += block)
        __asm__ volatile("icbi 0, %0" : : "r"(at) : "memory");
}

void arch_host_code_written(const void *written, const void *executed, size_t size)
{
    store_data(written, size);
    __asm__ volatile("sync" : : : "memory");
    invalidate_instructions(executed, size);
    __asm__ volatile("sync" : : : "memory");
    __asm__ volatile("isync" : : : "memory");
}
