/*
 * x86-64 as the host: instruction fetch sees what was stored.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 3, section
 * "Self-Modifying Code": the caches are kept coherent by physical address, so nothing has to be
 * cleaned; other cores see the store when they next fetch, and certainly after the caller's
 * barrier.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"

void arch_host_code_written(const void *written, const void *executed, size_t size)
{
    (void)written;
    (void)executed;
    (void)size;
    /* Stores become visible in their order, without an instruction for it. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
}
