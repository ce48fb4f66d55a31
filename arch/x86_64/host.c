/*
 * x86-64 as the host: instruction fetch sees what was stored.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 3, section
 * "Self-Modifying Code": the caches are coherent, also across addresses that map the same memory
 * once a serialising event has happened; the event is the caller's barrier.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"

void arch_host_code_written(const void *written, const void *executed, size_t size)
{
    (void)written;
    (void)executed;
    (void)size;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
