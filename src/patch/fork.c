/*
 * Patch words in forked children.
 *
 * A word is in memory that parent and child share, so that a child reads there what its parent does
 * at that moment. Therefore each change of a live site notes the instruction that it has stored, in
 * the site itself (`noted_bits`), which is private memory. It does so after the store, and gives
 * the veneer back after that.
 *
 * What must stay true: once no change of a site is under way and site_table_note_words has run, the
 * note is the instruction. Without the latter that holds as long as changes of the site do not
 * overlap: of two that do, one may store last and the other note last.
 *
 * So what a child's word is, if changes are under way at the fork:
 *  - A change that has returned before the fork and that no other overlapped is in the note.
 *  - Another note is that of a change that has begun before the fork and had not returned when it
 *    began. Its target is meant to be called. If it goes to a veneer, the change still had that
 *    veneer when it noted, so the slot is that target's; or another change has taken the veneer
 *    since, and was about to make the instruction go there.
 *
 * SPDX-License-Identifier: MIT
 */
#include "patch/commit.h"

void commit_note(cairn_site *site)
{
    for (;;) {
        uint64_t noted = atomic_load_explicit(&site->noted_bits, memory_order_acquire);
        uint64_t bits = word_read_instruction(site);
        if (noted == bits)
            return;
        /* Not over a newer note; and then once more, in case the word has changed since. */
        atomic_compare_exchange_strong(&site->noted_bits, &noted, bits);
    }
}

void site_table_note_words(struct site_table *sites)
{
    for (uint32_t i = 0; i < sites->count; i++)
        if (sites->sites[i].live)
            commit_note(&sites->sites[i]);
}

/* A region that holds the host's bytes has changed only with the code space's lock held, and so not
 * since it was copied. */
static bool has_word(const cairn_site *site)
{
    return site->live &&
           atomic_load_explicit(&site->form, memory_order_relaxed) != SITE_FORM_WRITTEN;
}

void site_table_write_words(struct site_table *sites)
{
    if (sites->alias_distance == 0)
        return;
    for (uint32_t i = 0; i < sites->count; i++) {
        cairn_site *site = &sites->sites[i];
        uint8_t bytes[ARCH_WORD_BYTES_MAX];
        if (!has_word(site))
            continue;
        /* Whatever waits for a barrier in the parent is settled here. */
        uint64_t noted = atomic_load_explicit(&site->noted_bits, memory_order_relaxed);
        atomic_store_explicit(&site->settled, noted, memory_order_relaxed);
        atomic_store_explicit(&site->latest, 0, memory_order_relaxed);
        word_put_bits(site, noted, bytes);
        code_block_write_copy(sites->block, word_instruction_address(site), bytes,
                              site->instruction_length);
    }
}
