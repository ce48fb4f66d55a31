/*
 * Reading and writing a register of 8 bytes in a context. A test that does so without the register
 * is aborted.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_CONTEXT_SUPPORT_H
#define TESTS_CONTEXT_SUPPORT_H

#include <cairn/context.h>
#include <stdlib.h>

static inline uint64_t read_register(const struct cairn_context *context, uint16_t number)
{
    uint64_t value;
    if (cairn_context_read(context, number, &value, sizeof value, NULL) != CAIRN_OK)
        abort();
    return value;
}

static inline void write_register(struct cairn_context *context, uint16_t number, uint64_t value)
{
    if (cairn_context_write(context, number, &value, sizeof value, NULL) != CAIRN_OK)
        abort();
}

#endif
