/*
 * What the ways to map code have in common, and the test that shows whether one
 * of them works.
 *
 * SPDX-License-Identifier: MIT
 */
#include "code/map.h"

#include "base/error.h"

#include <errno.h>
#include <string.h>
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

/* ---- The test ---- */

/* The function uses neither TOC nor environment, so its descriptor needs only the entry. The
 * descriptor is volatile because the compiler does not know that the call reads it. */
static int call(const struct cairn_arch *arch, const uint8_t *code)
{
    const volatile uint64_t descriptor[3] = {(uint64_t)(uintptr_t)code};
    uintptr_t pointer = arch->has_descriptors ? (uintptr_t)descriptor : (uintptr_t)code;
    int (*function)(void) = (int (*)(void))pointer;
    return function();
}

/* Changes a function in the same way in which sites are patched. In dual mapping, emulators fail
 * this test if they keep translations by the address that was written to. Kernels and sandboxes
 * that refuse a step fail it at that step. */
enum cairn_status map_test(struct code_slab *slab, const struct cairn_arch *arch,
                           struct cairn_error *error)
{
    enum { ROUNDS = 12 };
    size_t page;
    bool found;
    enum cairn_status status = slab_take_open(slab, PAGES_FOR_CODE, 1, &page, &found, error);
    if (status != CAIRN_OK)
        return status;
    size_t offset = page * slab->page_size;
    uint8_t *code = slab->base + offset;
    for (int round = 0; status == CAIRN_OK && round <= ROUNDS; round++) {
        uint8_t bytes[ARCH_SELF_TEST_BYTES_MAX];
        int expected = 1 + round * 37;
        size_t size = arch->encode_self_test(arch, expected, round == 0 ? code : bytes);
        status = round == 0 ? slab_close(slab, PAGES_FOR_CODE, page, 1, error)
                            : slab->map->write(slab, offset, bytes, size, error);
        int value = status == CAIRN_OK ? call(arch, code) : expected;
        if (value != expected)
            status = error_set(error, CAIRN_ERROR_UNSUPPORTED, (uintptr_t)code,
                               "change %d of a function was written and not executed: it returned "
                               "%d instead of %d",
                               round, value, expected);
    }
    slab_release(slab, PAGES_FOR_CODE, page, 1);
    return status;
}
