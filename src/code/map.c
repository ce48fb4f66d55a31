/* SPDX-License-Identifier: MIT */
#include "code/map.h"

#include <string.h>

static bool is_aligned(const uint8_t *address, size_t size)
{
    return ((uintptr_t)address & (size - 1)) == 0;
}

void map_store(uint8_t *destination, const void *bytes, size_t size)
{
    if (size == sizeof(uint64_t) && is_aligned(destination, size)) {
        uint64_t word;
        memcpy(&word, bytes, sizeof word);
        __atomic_store_n((uint64_t *)(void *)destination, word, __ATOMIC_RELEASE);
    } else if (size == sizeof(uint32_t) && is_aligned(destination, size)) {
        uint32_t word;
        memcpy(&word, bytes, sizeof word);
        __atomic_store_n((uint32_t *)(void *)destination, word, __ATOMIC_RELEASE);
    } else {
        memcpy(destination, bytes, size);
    }
}

void map_copy_words(uint8_t *destination, const uint8_t *source, size_t size)
{
    uint64_t *to = (uint64_t *)(void *)destination;
    const uint64_t *from = (const uint64_t *)(const void *)source;
    for (size_t i = 0; i < size / sizeof *to; i++)
        to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}
