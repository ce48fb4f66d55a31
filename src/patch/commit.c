/*
 * Writing to published sites.
 *
 * Concurrent patchers of one site. Each stores a veneer's slot (if it needs one) and then the
 * word; both stores are single and aligned. Whatever the interleaving, the word is one that a
 * patcher meant: call, jump or no-op. A word that goes through the call veneer reaches a target
 * that some patcher gave to a call, because the slot is used for nothing else; the same for
 * jumps. So each execution does what one of the patches that overlap it asked for.
 *
 * SPDX-License-Identifier: MIT
 */
#include "patch/commit.h"

#include "arch/arch.h"

#include <string.h>

/* The word that makes the change, where the rest of the word never changes. */
static uint64_t word_of(const struct change *change)
{
    return change->site->word_base | change->bits << change->site->word_shift;
}

static void store_word(const cairn_site *site, uint64_t word)
{
    if (site->table->arch->word_bytes == sizeof(uint32_t))
        __atomic_store_n((uint32_t *)site->alias, (uint32_t)word, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint64_t *)site->alias, word, __ATOMIC_RELEASE);
}

/* Exchanges the instruction and leaves the rest of the word to the site that it belongs to. */
static void exchange_instruction(const struct change *change)
{
    const cairn_site *site = change->site;
    uint64_t mask = plan_instruction_mask(site);
    uint64_t bits = change->bits << site->word_shift;
    uint64_t old = __atomic_load_n((uint64_t *)site->alias, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n((uint64_t *)site->alias, &old, (old & ~mask) | bits, true,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        continue;
}

/* Where the word is shared, only the instruction is written: the page is replaced under the code
 * space's lock, so the other site's bytes are those of that moment. */
static enum cairn_status replace_word(const struct change *change, struct cairn_error *error)
{
    const cairn_site *site = change->site;
    if (site->shares_word)
        return code_block_write(site->table->block, site_instruction_address(site), &change->bits,
                                site->instruction_length, error);
    uint64_t word = word_of(change);
    uint8_t bytes[ARCH_WORD_BYTES_MAX];
    memcpy(bytes, &word, site->table->arch->word_bytes);
    return code_block_store_word(site->table->block, site_word_address(site), bytes, error);
}

enum cairn_status commit_change(const struct change *change, struct cairn_error *error)
{
    const cairn_site *site = change->site;
    if (change->veneer != NULL)
        atomic_store_explicit(change->veneer->code.slot, change->target, memory_order_release);
    if (site->alias == NULL)
        return replace_word(change, error);
    if (site->shares_word)
        exchange_instruction(change);
    else
        store_word(site, word_of(change));
    arch_host_code_written(site->alias, (const void *)(uintptr_t)site_word_address(site),
                           site->table->arch->word_bytes);
    return CAIRN_OK;
}
