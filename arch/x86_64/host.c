/*
 * x86-64 as the host: instruction fetch sees written code without cache maintenance.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 3, section
 * "Self-Modifying Code": the processor keeps the caches coherent by physical address, so that
 * nothing needs to be cleaned. Other cores see the store at their next fetch, and at the latest
 * after the caller's barrier.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"

void arch_host_code_written(const void *written, const void *executed, size_t size)
{
    (void)written;
    (void)executed;
    (void)size;
    /* Stores become visible in program order, so this fence emits no instruction. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
}
