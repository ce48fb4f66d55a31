/* SPDX-License-Identifier: MIT */
#include "bench/peer_throw.h"

/* The frame that is unwound. It throws directly, because with a callee that throws there would be
 * two frames. */
static __attribute__((noinline)) int64_t leave(int64_t value)
{
    if (value != 0)
        throw value;
    return 1;
}

int64_t peer_throw_and_catch(int64_t value)
{
    try {
        return leave(value);
    } catch (int64_t thrown) {
        return thrown;
    }
}
