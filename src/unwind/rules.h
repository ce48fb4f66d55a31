/*
 * unwind/rules.h - the unwind rules of a module: they find the registers of a frame's caller.
 *
 * The table is built once from .eh_frame, in one allocation, and never changes. Rules that cannot
 * be used are stored with the reason. The allocation contains the header, followed by the buckets,
 * the entries, and the rows. For each entry:
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
 * A walker keeps the slots of arch/arch.h (`unwind_slots`) for the current frame: the callee-saved
 * registers, the stack pointer, and the return address. A step to the caller (frame/step.h) looks
 * up the row of the PC, computes the CFA, which must be above the previous one and inside the
 * stack, and loads and moves slots as the row's places say. In the innermost frame, where a thread
 * was stopped, the rules are those of its PC. In all other frames, the PC is the return address of
 * a call, which may be the last instruction of a function that another one follows, so the rules
 * are those of the byte before.
 *
 * All functions that read a table are lock-free and async-signal-safe.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef UNWIND_RULES_H
#define UNWIND_RULES_H

#include "arch/arch.h"
#include "unwind/call_frame.h"
#include "unwind/functions.h"

/* Why rules cannot be used. ORDER PROBLEM: the order of the messages in rules.c. */
enum unwind_problem {
    UNWIND_FINE = 0,

    /* Not all of the caller's registers are known. The walker can leave the frame. */
    UNWIND_REGISTER_EXPRESSION = 1,
    UNWIND_REGISTER_UNDEFINED = 2,
    UNWIND_REGISTER_PLACE = 3,   /* not at an address that slots can be loaded from */
    UNWIND_REGISTER_FOREIGN = 4, /* calls do not preserve it: unknown how much of it is saved */
    UNWIND_SIGNED_WITH_PC = 5,   /* the return address; it can be stripped, not authenticated */

    /* The walker cannot leave the frame. */
    UNWIND_NO_RULES = 6,
    UNWIND_NO_CALLER = 7,
    UNWIND_CFA_UNKNOWN = 8,
    UNWIND_CFA_EXPRESSION = 9,
    UNWIND_CFA_REGISTER = 10,
    UNWIND_CFA_OFFSET = 11,
    UNWIND_STACK_POINTER = 12,
    UNWIND_RETURN_COLUMN = 13,
    UNWIND_RETURN_RULE = 14,
    UNWIND_OPCODE = 15,
    UNWIND_NESTING = 16,
    UNWIND_RULES = 17,
    UNWIND_NUMBER = 18,
    UNWIND_LETTER = 19
};

enum unwind_flags {
    /* The row loads or moves the return address. Otherwise the return address is still in its
     * register, which is possible only in the innermost frame. */
    UNWIND_RETURN_FOUND = 1,
    /* The caller was interrupted, so its rules are those of the exact PC. */
    UNWIND_SIGNAL_FRAME = 2,
    /* AArch64: the return address's slot will hold a value signed with the A or the B key. */
    UNWIND_SIGNED = 4,
    UNWIND_B_KEY = 8
};

/* A slot to load from CFA + 8 * words, or a slot to move from slot `source` of the frame that is
 * left. */
struct unwind_place {
    uint8_t slot;
    uint8_t source;
    int16_t words;
};

/* A row of the table. Its places follow it: first those to load, then those to move, and among each
 * kind the return address first. Slots without a place do not change. */
struct unwind_row {
    int32_t cfa_offset;
    uint8_t cfa_slot;
    uint8_t flags;   /* enum unwind_flags */
    uint8_t problem; /* enum unwind_problem */
    uint8_t loaded_count;
    uint8_t moved_count;
    uint8_t reserved;
    uint16_t detail; /* of the problem: a register, an opcode, a letter, or a number */
};

_Static_assert(sizeof(struct unwind_row) == 12, "rows are compared as bytes");
_Static_assert(sizeof(struct unwind_place) == 4, "rows are compared as bytes");

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

/* ---- Creating ---- */

/* Creates the table. The list may be released afterwards. `*unwind` is NULL if the list is empty
 * or `arch` is NULL; all other functions accept that. CORRUPT, RANGE (functions 4 GiB apart),
 * MEMORY. */
enum cairn_status unwind_create(const struct function_list *list, const struct cairn_arch *arch,
                                struct unwind **unwind, struct cairn_error *error);

void unwind_destroy(struct unwind *unwind);

/* The size of a table. */
struct unwind_size {
    size_t bytes;
    size_t entries; /* ranges of code with the same row */
    size_t rows;    /* different rows */
};
struct unwind_size unwind_size(const struct unwind *unwind);

/* ---- Looking up ---- */

enum { UNWIND_SCAN_MAX = 16 };

extern const struct unwind_row unwind_no_rules;
const struct unwind_entry *unwind_search(const struct unwind_entry *entry, uint32_t count,
                                         uint32_t offset);

/* Returns the rules for the instruction at `pc`. Never NULL: where there are no rules, the row has
 * a problem. Valid as long as the table. Inline, because its callers do little else. */
static inline const struct unwind_row *unwind_find_exact(const struct unwind *unwind, uint64_t pc)
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

/* ---- Using rows ---- */

static inline bool unwind_can_leave(const struct unwind_row *row)
{
    return row->problem < UNWIND_NO_RULES;
}

static inline const struct unwind_place *unwind_places(const struct unwind_row *row)
{
    return (const struct unwind_place *)(row + 1);
}

/* Reports the row's problem: NOT_FOUND for code without rules, otherwise UNSUPPORTED; OK if there
 * is no problem. */
enum cairn_status unwind_explain(const struct unwind_row *row, const struct cairn_arch *arch,
                                 uint64_t pc, struct cairn_error *error);

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
