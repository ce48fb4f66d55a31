/* SPDX-License-Identifier: MIT */
#include "site/word.h"

#include <string.h>

static bool is_narrow(const cairn_site *site)
{
    return site->instruction_length == sizeof(uint32_t);
}

void word_put_bits(const cairn_site *site, uint64_t bits, uint8_t *bytes)
{
    uint32_t narrow = (uint32_t)bits;
    memcpy(bytes, is_narrow(site) ? (const void *)&narrow : &bits, site->instruction_length);
}

uint64_t word_get_bits(const cairn_site *site, const uint8_t *bytes)
{
    uint32_t narrow = 0;
    uint64_t bits = 0;
    memcpy(is_narrow(site) ? (void *)&narrow : &bits, bytes, site->instruction_length);
    return is_narrow(site) ? narrow : bits;
}
