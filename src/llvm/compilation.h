/*
 * llvm/compilation.h - the event of a compilation (log/event.h).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_COMPILATION_H
#define LLVM_COMPILATION_H

#include "log/event.h"

#include <time.h>

/* Returns the time in nanoseconds, for differences. */
static inline uint64_t compilation_time(void)
{
    struct timespec now = {.tv_sec = 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* `name` was compiled, which has just ended. `compiler` is a static string. */
static inline void compilation_note(cairn_runtime *runtime, const char *name, uint64_t nanoseconds,
                                    const char *compiler)
{
    EVENT_PROBE2(compilation, name, nanoseconds);
    const struct cairn_log_message message = {
        .name = name, .text = compiler, .compilation_ns = nanoseconds == 0 ? 1 : nanoseconds};
    cairn_log_write(runtime, &message);
}

#endif
