/*
 * format/eh_frame.h - the entries of an .eh_frame section: functions, and what they have in common.
 *
 * What a function's instructions say about its frames is in format/call_frame.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORMAT_EH_FRAME_H
#define FORMAT_EH_FRAME_H

#include <cairn/stackmap.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct eh_frame {
    struct cairn_section section;
    /* Where the section's first byte is when its code runs; pointers may be relative to it. */
    uint64_t address;
};

/* Bytes of the section. */
struct eh_frame_span {
    size_t begin;
    size_t end;
};

/* Common information: what several functions share. */
struct eh_frame_common {
    size_t offset; /* of the entry in the section */
    uint64_t code_alignment;
    int64_t data_alignment;
    uint64_t return_register; /* DWARF number of the column that holds the return address */
    uint8_t address_encoding; /* of functions' addresses ('R') */
    bool has_data;            /* functions have augmentation data ('z') */
    bool is_signal_frame;     /* callers were interrupted, they did not call ('S') */
    bool uses_b_key;          /* AArch64: return addresses are signed with the B key ('B') */
    char unknown_letter; /* the first one that is not known; the others behind it are not read */
    struct eh_frame_span instructions;
};

struct eh_frame_function {
    uint64_t address;
    uint64_t size;
};

/* All common information of a section, sorted by offset. Where it cannot be read, `instructions` is
 * zero. */
struct eh_frame_commons {
    const struct eh_frame_common *entries;
    size_t count;
};

struct eh_frame_description {
    struct eh_frame_function function;
    struct eh_frame_common common;
    struct eh_frame_span instructions;
    size_t offset; /* of the entry in the section */
    /* The caller's, or NULL: then it is read for each function, unless it is that of the function
     * before. With it a function's has to be one of them. */
    const struct eh_frame_commons *commons;
};

/*
 * Reads the next common information at or after `*offset`, which is moved past it; `*found` is
 * false at the section's end. What cannot be read is found, too, with `instructions` zero: it
 * matters only if a function has it. Errors: TRUNCATED, CORRUPT (of entries).
 */
enum cairn_status eh_frame_next_common(const struct eh_frame *frame, size_t *offset,
                                       struct eh_frame_common *common, bool *found,
                                       struct cairn_error *error);

/*
 * Reads the next function description at or after `*offset`, which is moved past it; `*found` is
 * false at the section's end. `*description` is zeroed for the first, except for `commons`, and
 * afterwards what it was left as or zeroed again. Errors: TRUNCATED, CORRUPT (also a function that
 * reaches the end of the address space), UNSUPPORTED (a pointer encoding that code generators do
 * not use for functions); the error's offset counts from the section's first byte.
 */
enum cairn_status eh_frame_next(const struct eh_frame *frame, size_t *offset,
                                struct eh_frame_description *description, bool *found,
                                struct cairn_error *error);

#endif
