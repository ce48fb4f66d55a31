/* On hosts other than x86-64, no x86-64 code is loaded. SPDX-License-Identifier: MIT */
#include "site/boundaries.h"

size_t x86_instruction_length(const uint8_t *bytes, size_t size)
{
    (void)bytes;
    (void)size;
    return 0;
}

bool x86_may_stop_inside(const uint8_t *bytes, size_t size)
{
    (void)bytes;
    (void)size;
    return true;
}
