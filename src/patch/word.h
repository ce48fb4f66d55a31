/*
 * patch/word.h - the instruction of a site that changes, and the word that it is in.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PATCH_WORD_H
#define PATCH_WORD_H

#include "patch/site.h"

/* Where a branch of the site lies. */
static inline uint64_t word_instruction_address(const cairn_site *site)
{
    return site->address + site->instruction_offset;
}

/* Where its patch word lies. */
static inline uint64_t word_address(const cairn_site *site)
{
    return word_instruction_address(site) & ~(uint64_t)(site->table->arch->word_bytes - 1);
}

/* Whether it is one of 4 bytes; otherwise one of 8. */
static inline bool word_is_narrow(const cairn_site *site)
{
    return site->table->arch->word_bytes == sizeof(uint32_t);
}

/* Where the instruction is in the word, in bits; and ones where it is. */
static inline uint8_t word_find_shift(const cairn_site *site)
{
    return (uint8_t)(8 * (word_instruction_address(site) - word_address(site)));
}

static inline uint64_t word_instruction_mask(const cairn_site *site)
{
    return (UINT64_MAX >> (64 - 8 * site->instruction_length)) << site->word_shift;
}

static inline uint64_t word_instruction_bits(const cairn_site *site, uint64_t word)
{
    return (word & word_instruction_mask(site)) >> site->word_shift;
}

/* The word as it is executed at this moment. It is read where it is written: a core that has
 * written it through one view waits for that to reach the cache if it then reads the other. */
static inline uint64_t word_read_at(const cairn_site *site, uint64_t address)
{
    const void *word = (const void *)(uintptr_t)address;
    if (word_is_narrow(site))
        return __atomic_load_n((const uint32_t *)word, __ATOMIC_ACQUIRE);
    return __atomic_load_n((const uint64_t *)word, __ATOMIC_ACQUIRE);
}

static inline uint64_t word_read(const cairn_site *site)
{
    return word_read_at(site, word_address(site) + site->table->alias_distance);
}

/* An instruction as the bytes that it is in memory, and back. */
void word_put_bits(const cairn_site *site, uint64_t bits, uint8_t *bytes);
uint64_t word_get_bits(const cairn_site *site, const uint8_t *bytes);

/* The instruction: by one load where it is live, and as it comes where it is not. */
static inline uint64_t word_read_instruction(const cairn_site *site)
{
    if (site->live)
        return word_instruction_bits(site, word_read(site));
    return word_get_bits(site, (const uint8_t *)(uintptr_t)word_instruction_address(site));
}

/* The same through the view that is executed. */
static inline uint64_t word_read_executed_instruction(const cairn_site *site)
{
    if (site->live)
        return word_instruction_bits(site, word_read_at(site, word_address(site)));
    return word_get_bits(site, (const uint8_t *)(uintptr_t)word_instruction_address(site));
}

#endif
