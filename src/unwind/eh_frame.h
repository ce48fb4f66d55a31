/*
 * unwind/eh_frame.h - reads the entries of an .eh_frame section (function descriptions and common
 * information), and finds the entry of the function at a PC with .eh_frame_hdr.
 *
 * The rules that a function's instructions define are in unwind/call_frame.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef UNWIND_EH_FRAME_H
#define UNWIND_EH_FRAME_H

#include <cairn/section.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct eh_frame {
    struct cairn_section section;
    /* Address of the section's first byte when its code runs; pointers may be relative to it. */
    uint64_t address;
};

/* A range of bytes in the section, without `end`. */
struct eh_frame_span {
    size_t begin;
    size_t end;
};

/* Common information, which several functions share. */
struct eh_frame_common {
    size_t offset; /* offset of the entry in the section */
    uint64_t code_alignment;
    int64_t data_alignment;
    uint64_t return_register; /* DWARF number of the column with the return address */
    uint8_t address_encoding; /* encoding of function addresses ('R') */
    bool has_data;            /* whether functions have augmentation data ('z') */
    bool is_signal_frame;     /* whether callers were interrupted instead of making a call ('S') */
    bool uses_b_key;          /* AArch64: whether the B key signs return addresses ('B') */
    char unknown_letter;      /* first unknown letter, or 0; the letters after it are not read */
    struct eh_frame_span instructions;
};

struct eh_frame_function {
    uint64_t address;
    uint64_t size;
};

/* All common information of a section, sorted by offset. In invalid entries, `instructions` is
 * zero. */
struct eh_frame_commons {
    const struct eh_frame_common *entries;
    size_t count;
};

struct eh_frame_description {
    struct eh_frame_function function;
    struct eh_frame_common common;
    struct eh_frame_span instructions;
    size_t offset; /* offset of the entry in the section */
    /* The section's common information, owned by the caller, which must contain that of every
     * function. If it is NULL, common information is read from the section, unless it is the same
     * as for the previous function. */
    const struct eh_frame_commons *commons;
};

/*
 * Reads the next common information at or after `*offset`, and moves `*offset` past it. `*found` is
 * false at the end of the section. An invalid entry is found too, with `instructions` zero, because
 * it matters only if a function refers to it. Errors: TRUNCATED, CORRUPT (for the entry's length).
 */
enum cairn_status eh_frame_next_common(const struct eh_frame *frame, size_t *offset,
                                       struct eh_frame_common *common, bool *found,
                                       struct cairn_error *error);

/*
 * Reads the next function description at or after `*offset`, and moves `*offset` past it. `*found`
 * is false at the end of the section. Before the first call, the caller must zero `*description`,
 * except for `commons`; later calls accept it unchanged or zeroed. Errors: TRUNCATED, CORRUPT
 * (including a function that reaches the end of the address space), UNSUPPORTED (a pointer encoding
 * that code generators do not use for functions). The offset of an error is relative to the start
 * of the section.
 */
enum cairn_status eh_frame_next(const struct eh_frame *frame, size_t *offset,
                                struct eh_frame_description *description, bool *found,
                                struct cairn_error *error);

/* ---- .eh_frame_hdr, the sorted table that linkers write next to .eh_frame ---- */

/* The addresses of the section .eh_frame, and of a function's entry in it. */
struct eh_frame_place {
    uint64_t section;
    uint64_t entry;
};

/*
 * Finds the entry of the last function that begins at or before `pc`. `*found` is false if all
 * functions begin after it. The end of the function is in the entry. `header` may be longer than
 * the table.
 *
 * Errors: TRUNCATED; VERSION; UNSUPPORTED (no table, or not in the encoding that linkers use for
 * this machine).
 */
enum cairn_status eh_frame_header_find(const struct eh_frame *header, uint64_t pc,
                                       struct eh_frame_place *place, bool *found,
                                       struct cairn_error *error);

#endif
