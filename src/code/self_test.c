/*
 * Tests whether this machine executes code that was changed: writes a function, runs it, changes it
 * and runs it again, in the same way in which sites are patched. In dual mapping, emulators fail
 * this test if they keep translations by the address that was written to. Kernels and sandboxes
 * that refuse a step fail it at that step.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "code/map.h"
#include "code/state.h"

enum { ROUNDS = 12 };

/* The function uses neither TOC nor environment, so its descriptor needs only the entry. The
 * descriptor is volatile because the compiler does not know that the call reads it. */
static int call(const struct cairn_arch *arch, const uint8_t *code)
{
    const volatile uint64_t descriptor[3] = {(uint64_t)(uintptr_t)code};
    uintptr_t pointer = arch->has_descriptors ? (uintptr_t)descriptor : (uintptr_t)code;
    int (*function)(void) = (int (*)(void))pointer;
    return function();
}

enum cairn_status self_test_run(struct code_slab *slab, const struct cairn_arch *arch,
                                struct cairn_error *error)
{
    size_t page;
    bool found;
    enum cairn_status status = slab_take(slab, PAGES_FOR_CODE, 1, &page, &found, error);
    if (status != CAIRN_OK)
        return status;
    size_t offset = page * slab->page_size;
    uint8_t *code = slab->base + offset;
    for (int round = 0; status == CAIRN_OK && round <= ROUNDS; round++) {
        uint8_t bytes[ARCH_SELF_TEST_BYTES_MAX];
        int expected = 1 + round * 37;
        size_t size = arch->encode_self_test(arch, expected, round == 0 ? code : bytes);
        status = round == 0 ? slab_protect(slab, PAGES_FOR_CODE, page, 1, error)
                            : slab->map->write(slab, offset, bytes, size, error);
        int value = status == CAIRN_OK ? call(arch, code) : expected;
        if (value != expected)
            status = error_set(error, CAIRN_ERROR_UNSUPPORTED, (uintptr_t)code,
                               "change %d of a function was written and not executed: it returned "
                               "%d instead of %d",
                               round, value, expected);
    }
    slab_release(slab, page, 1);
    return status;
}
