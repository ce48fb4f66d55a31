/*
 * site/word.h - the instruction of a site that changes, and the word that contains it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SITE_WORD_H
#define SITE_WORD_H

#include "site/site.h"

/* Returns the address of the site's branch. */
static inline uint64_t word_instruction_address(const cairn_site *site)
{
    return site->address + site->instruction_offset;
}

/* Returns the address of the patch word. */
static inline uint64_t word_address(const cairn_site *site)
{
    return word_instruction_address(site) & ~(uint64_t)(site->table->arch->word_bytes - 1);
}

/* Whether the patch word has 4 bytes; otherwise it has 8. */
static inline bool word_is_narrow(const cairn_site *site)
{
    return site->table->arch->word_bytes == sizeof(uint32_t);
}

/* Return the bit offset of the instruction in the word, and a mask of the instruction's bits. */
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

/* Read the word that is executed at this moment. word_read uses the view through which the word is
 * written: a core that has written one view and then reads the other waits until the write has
 * reached the cache. */
static inline uint64_t word_read_at(const cairn_site *site, uint64_t address)
{
    const void *word = (const void *)(uintptr_t)address;
    if (word_is_narrow(site))
        return __atomic_load_n((const uint32_t *)word, __ATOMIC_ACQUIRE);
    return __atomic_load_n((const uint64_t *)word, __ATOMIC_ACQUIRE);
}

static inline uint64_t word_read(const cairn_site *site) { return word_read_at(site, site->word); }

/* Convert an instruction to its bytes in memory, and back. */
void word_put_bits(const cairn_site *site, uint64_t bits, uint8_t *bytes);
uint64_t word_get_bits(const cairn_site *site, const uint8_t *bytes);

/* Reads the instruction. With one atomic load if the site is live. */
static inline uint64_t word_read_instruction(const cairn_site *site)
{
    if (site->live)
        return word_instruction_bits(site, word_read(site));
    return word_get_bits(site, (const uint8_t *)(uintptr_t)word_instruction_address(site));
}

/* Reads the instruction through the executed view. */
static inline uint64_t word_read_executed_instruction(const cairn_site *site)
{
    if (site->live)
        return word_instruction_bits(site, word_read_at(site, word_address(site)));
    return word_get_bits(site, (const uint8_t *)(uintptr_t)word_instruction_address(site));
}

#endif
