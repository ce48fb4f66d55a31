/*
 * What the ways to map code have in common.
 *
 * SPDX-License-Identifier: MIT
 */
#include "code/map.h"

#include "base/error.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>

/* EAGAIN: the kernel counts reserved memory as locked memory. */
enum cairn_status map_cannot_reserve(size_t size, const char *purpose, int reason,
                                     struct cairn_error *error)
{
    const char *advice = reason == EAGAIN ? "all new memory is locked (mlockall): raise "
                                            "RLIMIT_MEMLOCK, or lower"
                                          : "raise RLIMIT_AS, or lower";
    return error_set_system(error, reason,
                            "cannot reserve %zu bytes of address space to %s (%s slab_size in "
                            "struct cairn_runtime_options)",
                            size, purpose, advice);
}

/* Each thread has its own personality, which only that thread can change. So the result holds for
 * the mappings that the caller makes next. If a sandbox refuses the query, the default is
 * assumed. */
enum cairn_status map_check_personality(struct cairn_error *error)
{
    const unsigned long only_ask = 0xFFFFFFFF;
    int found = personality(only_ask);
    if (found == -1 || (found & READ_IMPLIES_EXEC) == 0)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                     "READ_IMPLIES_EXEC is set in this thread's personality, so that writable "
                     "memory would be executable: clear it with personality(2), or link the "
                     "program with -z noexecstack");
}

void map_store(uint8_t *destination, const void *bytes, size_t size)
{
    if (size == sizeof(uint64_t) && (uintptr_t)destination % size == 0) {
        uint64_t word;
        memcpy(&word, bytes, sizeof word);
        __atomic_store_n((uint64_t *)(void *)destination, word, __ATOMIC_RELEASE);
    } else if (size == sizeof(uint32_t) && (uintptr_t)destination % size == 0) {
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

void map_close_alias(struct code_slab *slab)
{
    if (slab->alias == NULL)
        return;
    uint8_t *start = slab->alias - slab->alias_guard;
    uint8_t *end = slab->alias + slab->size + slab->alias_guard;
    if (slab->alias_lost_size > 0) {
        uint8_t *lost = slab->alias + slab->alias_lost_offset;
        if (lost > start)
            munmap(start, (size_t)(lost - start));
        start = lost + slab->alias_lost_size;
    }
    if (end > start)
        munmap(start, (size_t)(end - start));
    slab->alias = NULL;
    slab->alias_lost_size = 0;
}
