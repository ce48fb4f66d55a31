/*
 * site/word.h - the instruction of a site that changes, and the word that contains it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SITE_WORD_H
#define SITE_WORD_H

#include "site/site.h"

#include <string.h>

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

/* Returns a mask of the instruction's bits in the word. */
static inline uint64_t word_instruction_mask(const cairn_site *site)
{
    return (UINT64_MAX >> (64 - 8 * site->instruction_length)) << site->word_shift;
}

static inline uint64_t word_instruction_bits(const cairn_site *site, uint64_t word)
{
    return (word & word_instruction_mask(site)) >> site->word_shift;
}

/* Reads the word that is executed at this moment. It is read where it is executed, because a key
 * may close the written view (code/write_key.h). */
static inline uint64_t word_read(const cairn_site *site)
{
    const void *word = (const void *)(uintptr_t)word_address(site);
    if (site->table->arch->word_bytes == sizeof(uint32_t))
        return __atomic_load_n((const uint32_t *)word, __ATOMIC_ACQUIRE);
    return __atomic_load_n((const uint64_t *)word, __ATOMIC_ACQUIRE);
}

/* Writes the bytes of an instruction to memory. */
static inline void word_put_bits(const cairn_site *site, uint64_t bits, uint8_t *bytes)
{
    uint32_t narrow = (uint32_t)bits;
    bool is_narrow = site->instruction_length == sizeof narrow;
    memcpy(bytes, is_narrow ? (const void *)&narrow : &bits, site->instruction_length);
}

/* Reads the instruction. If the site is live, takes one atomic load of the patch word. */
static inline uint64_t word_read_instruction(const cairn_site *site)
{
    uint32_t narrow = 0;
    uint64_t bits = 0;
    if (site->live)
        return word_instruction_bits(site, word_read(site));
    bool is_narrow = site->instruction_length == sizeof narrow;
    memcpy(is_narrow ? (void *)&narrow : &bits,
           (const void *)(uintptr_t)word_instruction_address(site), site->instruction_length);
    return is_narrow ? narrow : bits;
}

#endif
