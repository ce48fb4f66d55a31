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

#include <string.h>

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

static int value_of_round(int round) { return 1 + round * 37; }

static enum cairn_status check(const struct cairn_arch *arch, const uint8_t *code, int round,
                               struct cairn_error *error)
{
    int value = call(arch, code);
    if (value == value_of_round(round))
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, (uint64_t)(uintptr_t)code,
                     "change %d of a function was written and not executed: it returned %d instead "
                     "of %d",
                     round, value, value_of_round(round));
}

static enum cairn_status load(struct code_slab *slab, const struct cairn_arch *arch, size_t page,
                              struct cairn_error *error)
{
    uint8_t *code = slab->base + page * slab->page_size;
    (void)arch->encode_self_test(arch, value_of_round(0), code);
    enum cairn_status status = slab_protect(slab, PAGES_FOR_CODE, page, 1, error);
    return status == CAIRN_OK ? check(arch, code, 0, error) : status;
}

static enum cairn_status change(struct code_slab *slab, const struct cairn_arch *arch, size_t page,
                                int round, struct cairn_error *error)
{
    uint8_t bytes[ARCH_SELF_TEST_BYTES_MAX];
    size_t size = arch->encode_self_test(arch, value_of_round(round), bytes);
    enum cairn_status status = slab->map->write(slab, page * slab->page_size, bytes, size, error);
    return status == CAIRN_OK ? check(arch, slab->base + page * slab->page_size, round, error)
                              : status;
}

enum cairn_status self_test_run(struct code_slab *slab, const struct cairn_arch *arch,
                                struct cairn_error *error)
{
    size_t page;
    bool found;
    enum cairn_status status = slab_take(slab, PAGES_FOR_CODE, 1, &page, &found, error);
    if (status != CAIRN_OK)
        return status;
    status = load(slab, arch, page, error);
    for (int round = 1; status == CAIRN_OK && round <= ROUNDS; round++)
        status = change(slab, arch, page, round, error);
    slab_release(slab, page, 1);
    return status;
}
