/*
 * unwind/layout.h - the memory layout of a table of unwind rules, and how rows are made.
 *
 * A table is one allocation: the header, followed by the buckets, the entries, and the rows. For
 * each entry:
 *
 *     bytes   content
 *     8       start of its code, and its row
 *     2       directory of buckets, one for about two entries
 *
 * and 12 bytes for each different row, with 4 for each of its places.
 *
 * Invariants:
 *  - Entries are sorted by offset, without duplicates, and the first offset is 0. An entry is valid
 *    up to the next one, the last entry up to `span`.
 *  - `buckets[b]` is the number of the last entry that begins at or before the first byte of bucket
 *    b. There is one more of these than there are buckets. So the entry of a PC in bucket b is one
 *    from `buckets[b]` to `buckets[b + 1]`.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef UNWIND_LAYOUT_H
#define UNWIND_LAYOUT_H

#include "unwind/call_frame.h"
#include "unwind/unwind.h"

struct unwind_entry {
    uint32_t offset; /* from the base */
    uint32_t row;    /* index of its first word */
};

struct unwind {
    struct cairn_allocator allocator;
    size_t size_bytes;
    size_t row_count;
    uint64_t base; /* address of the first function */
    uint32_t span; /* size of the code of all functions, from the base */
    uint32_t entry_count;
    uint32_t bucket_shift;
    uint32_t *buckets;
    struct unwind_entry *entries;
    uint32_t *words; /* rows */
};

/* ---- Looking up ---- */

enum { UNWIND_SCAN_MAX = 16 };

extern const struct unwind_row unwind_no_rules;
const struct unwind_entry *unwind_search(const struct unwind_entry *entry, uint32_t count,
                                         uint32_t offset);

/* Implements unwind_find_exact; inlined into callers that do little else. */
static inline const struct unwind_row *unwind_look_up(const struct unwind *unwind, uint64_t pc)
{
    if (unwind == NULL || pc - unwind->base >= unwind->span)
        return &unwind_no_rules;
    uint32_t offset = (uint32_t)(pc - unwind->base);
    const uint32_t *bucket = &unwind->buckets[offset >> unwind->bucket_shift];
    const struct unwind_entry *entry = unwind->entries + bucket[0];
    const struct unwind_entry *last = unwind->entries + bucket[1];
    if (__builtin_expect(last - entry > UNWIND_SCAN_MAX, 0))
        entry = unwind_search(entry, (uint32_t)(last - entry) + 1, offset);
    else
        /* This scan has branches, unlike a binary search without them: the processor predicts them
         * correctly for a PC that it has seen before, and continues with the row without waiting
         * for the offsets. */
        while (entry != last && entry[1].offset <= offset)
            entry++;
    return (const struct unwind_row *)(unwind->words + entry->row);
}

/* ---- Making ---- */

/* A row being made, as words: the row and its places. The remaining words are zero. */
enum {
    UNWIND_ROW_WORDS = sizeof(struct unwind_row) / sizeof(uint32_t),
    UNWIND_PLACES_MAX = ARCH_UNWIND_SLOTS_MAX
};
struct unwind_draft {
    struct unwind_row row;
    struct unwind_place places[UNWIND_PLACES_MAX];
};

/* Returns the row with its places, in the form of a row of a table. */
static inline const struct unwind_row *unwind_drafted(const struct unwind_draft *draft)
{
    return (const struct unwind_row *)draft;
}

static inline size_t unwind_row_bytes(const struct unwind_row *row)
{
    return sizeof *row +
           ((size_t)row->loaded_count + row->moved_count) * sizeof(struct unwind_place);
}

/* Maps a DWARF number to the first of its slots. The slots of one register are adjacent. */
enum { UNWIND_NUMBERS = 128, UNWIND_NO_SLOT = 255 };
struct unwind_numbering {
    const struct cairn_arch *arch;
    uint8_t first_slot[UNWIND_NUMBERS];
};

void unwind_numbering_create(const struct cairn_arch *arch, struct unwind_numbering *numbering);

/* Converts the rules of call frame instructions to a row. */
void unwind_draft_row(const struct unwind_numbering *numbering,
                      const struct eh_frame_common *common, const struct call_frame_row *row,
                      struct unwind_draft *draft);

/* Makes a row without rules. */
void unwind_draft_problem(enum unwind_problem problem, uint16_t detail, struct unwind_draft *draft);

#endif
