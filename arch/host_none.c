/*
 * A host without patching: arch_host() has no table, so nobody calls this.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"

void arch_host_code_written(const void *written, const void *executed, size_t size)
{
    (void)written;
    (void)executed;
    (void)size;
}
