/*
 * Instruction boundaries. x86-64 instructions are decoded. On the other architectures all
 * instructions have one size.
 *
 * SPDX-License-Identifier: MIT
 */
#include "site/boundaries.h"

size_t boundaries_instruction_length(const struct cairn_arch *arch, const uint8_t *bytes,
                                     size_t size)
{
    size_t fixed = arch->fixed_instruction_bytes;
    if (fixed != 0)
        return size >= fixed ? fixed : 0;
    return x86_instruction_length(bytes, size);
}

size_t boundaries_next(const struct cairn_arch *arch, const uint8_t *bytes, size_t size,
                       size_t offset)
{
    size_t boundary = 0;
    while (boundary < offset) {
        size_t length = boundaries_instruction_length(arch, bytes + boundary, size - boundary);
        if (length == 0)
            return 0;
        boundary += length;
    }
    return boundary;
}

bool boundaries_may_stop_inside(const struct cairn_arch *arch, const uint8_t *bytes, size_t size)
{
    return arch->architecture == CAIRN_ARCHITECTURE_X86_64 && x86_may_stop_inside(bytes, size);
}
