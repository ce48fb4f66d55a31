/*
 * Patch words in forked children.
 *
 * A word is in memory that the kernel does not copy. The child's copy of it was made before the
 * fork, and may be older or newer than the moment of the fork. Therefore each change of a live site
 * also notes the instruction in the site itself
 * (`noted_bits`), which is in private memory. It does so after the store of the word and before it
 * releases the veneer.
 *
 * Invariant: when no change of a site is in progress and site_table_note_words has run, the note is
 * the instruction. Without site_table_note_words, that holds as long as changes of the site do not
 * overlap. If two overlap, one may be the last to store the word and the other the last to note.
 *
 * If changes are in progress at the fork, the child's word is one of these:
 *  - The instruction of a change that returned before the fork, if no other change overlapped it.
 *  - The instruction of a change that began before the fork, and that had not returned when the
 *    change above began. Its target is still meant to be called. If the instruction branches to a
 *    veneer, the change still had that veneer when it noted the instruction, so the slot holds that
 *    target. Or another change has taken the veneer since, and was about to store a branch to it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "site/inline.h"
#include "site/word.h"

static void note_word(cairn_site *site)
{
    for (;;) {
        uint64_t noted = atomic_load_explicit(&site->noted_bits, memory_order_acquire);
        uint64_t bits = word_read_instruction(site);
        if (noted == bits)
            return;
        /* Do not overwrite a newer note. Then check again, because the word may have changed. */
        atomic_compare_exchange_strong(&site->noted_bits, &noted, bits);
    }
}

void site_table_note_words(struct site_table *sites)
{
    for (uint32_t i = 0; i < site_table_count(sites); i++)
        if (sites->sites[i].live)
            note_word(&sites->sites[i]);
}

void site_table_write_words(struct site_table *sites)
{
    if (sites == NULL || sites->alias_distance == 0)
        return;
    for (uint32_t i = 0; i < sites->count; i++) {
        cairn_site *site = &sites->sites[i];
        uint8_t bytes[ARCH_WORD_BYTES_MAX];
        if (!site->live)
            continue;
        if (site->inlined != NULL)
            code_block_write_copy(sites->block, inline_address(site), site->inlined->bytes,
                                  inline_size(site));
        word_put_bits(site, atomic_load_explicit(&site->noted_bits, memory_order_relaxed), bytes);
        code_block_write_copy(sites->block, word_instruction_address(site), bytes,
                              site->instruction_length);
    }
}
