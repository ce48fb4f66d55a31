/* SPDX-License-Identifier: MIT */
#include "tests/site_random.h"

#include "runtime_support.h"
#include "tests/code_support.h"
#include "tests/site_support.h"

#include <stdlib.h>
#include <string.h>

bool site_is_same_but_for(const uint8_t *code, const uint8_t *before, uint64_t size, uint64_t begin,
                          uint64_t end)
{
    for (uint64_t i = 0; i < size; i++)
        if ((i < begin || i >= end) && code[i] != before[i])
            return false;
    return true;
}

static enum cairn_status change(uint64_t *random, cairn_site *site, const uint8_t *code)
{
    static const enum cairn_strength strengths[] = {CAIRN_RELAXED, CAIRN_SYNC, CAIRN_QUIESCENT};
    enum cairn_strength strength = strengths[support_random(random) % 3];
    switch (support_random(random) % 4) {
    case 0:
        return cairn_site_call(site, code, strength, NULL);
    case 1:
        return cairn_site_jump(site, SITE_TWO, strength, NULL);
    case 2:
        return cairn_site_nop(site, strength, NULL);
    default:
        return cairn_site_restore(site, strength, NULL);
    }
}

void site_disturb(uint64_t *random, cairn_site *site, const uint8_t *code, size_t code_size)
{
    struct cairn_site_description description = site_describe(site);
    uint8_t *before = malloc(code_size);
    ck_assert_ptr_nonnull(before);
    memcpy(before, code, code_size);
    enum cairn_status status = change(random, site, code);
    /* Where the bytes lie outside of the code, nothing may be done. */
    uint64_t begin = description.address - (uintptr_t)code;
    uint64_t end = status == CAIRN_OK ? begin + description.byte_count : begin;
    ck_assert(site_is_same_but_for(code, before, code_size, begin, end));
    free(before);
}

uint32_t site_restore_all(cairn_module *module)
{
    uint32_t live = 0;
    for (uint32_t i = 0; i < support_site_count(module); i++) {
        struct cairn_error error;
        cairn_site *site = cairn_module_site(module, i);
        live += site_describe(site).live;
        ck_assert_done(cairn_site_restore(site, CAIRN_QUIESCENT, &error), error);
    }
    return live;
}
