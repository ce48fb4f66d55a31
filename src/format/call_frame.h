/*
 * format/call_frame.h - what the instructions of a function's unwind information say: for each
 * stretch of its code, where the frame begins (the CFA, canonical frame address) and where the
 * registers of the caller are.
 *
 * Pure, without allocation: an iterator of about 10 KB that fits on the stack.
 *
 * Sources: DWARF 5, section 6.4, "Call Frame Information"; Linux Standard Base Core Specification,
 * "Call Frame Information Extensions"; DWARF for the Arm 64-bit Architecture, "Call frame
 * instructions".
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORMAT_CALL_FRAME_H
#define FORMAT_CALL_FRAME_H

#include "format/eh_frame.h"

enum { CALL_FRAME_RULES_MAX = 64, CALL_FRAME_NESTING_MAX = 8 };

/* Where a register of the caller is. */
enum call_frame_kind {
    CALL_FRAME_UNSPECIFIED = 0,      /* no instruction speaks of it: what the ABI says */
    CALL_FRAME_SAME = 1,             /* still in the register itself */
    CALL_FRAME_UNDEFINED = 2,        /* lost; for the return address: there is no caller */
    CALL_FRAME_SAVED = 3,            /* in memory at CFA + value */
    CALL_FRAME_VALUE = 4,            /* it is CFA + value */
    CALL_FRAME_REGISTER = 5,         /* in the register with the DWARF number `value` */
    CALL_FRAME_SAVED_EXPRESSION = 6, /* in memory, at the address that a DWARF expression gives */
    CALL_FRAME_VALUE_EXPRESSION = 7  /* the value that a DWARF expression gives */
};

/* Expressions are not evaluated: `value` is then where in the section the expression's length
 * stands, the bytes behind it. */
struct call_frame_rule {
    uint16_t dwarf;
    uint8_t kind; /* enum call_frame_kind */
    int64_t value;
};

enum call_frame_cfa {
    CALL_FRAME_CFA_UNKNOWN = 0,
    CALL_FRAME_CFA_REGISTER = 1,  /* cfa_register + cfa_value */
    CALL_FRAME_CFA_EXPRESSION = 2 /* cfa_value is where it stands, as in a rule */
};

/* AArch64: how the return address is signed, wherever it is. */
enum call_frame_signing {
    CALL_FRAME_NOT_SIGNED = 0,
    CALL_FRAME_SIGNED = 1,        /* with the CFA */
    CALL_FRAME_SIGNED_WITH_PC = 2 /* and with the address of the signing instruction */
};

/* One row of the function's table: addresses from `begin` up to `end`, which is larger. Rules are
 * sorted by DWARF number; none is UNSPECIFIED. */
struct call_frame_row {
    uint64_t begin;
    uint64_t end;
    uint8_t cfa;     /* enum call_frame_cfa */
    uint8_t signing; /* enum call_frame_signing */
    uint16_t cfa_register;
    uint16_t rule_count;
    int64_t cfa_value;
    uint64_t argument_size; /* bytes of arguments that were pushed for a call (GNU_args_size) */
    struct call_frame_rule rules[CALL_FRAME_RULES_MAX];
};

/* Why instructions could not be understood, and `detail`. */
enum call_frame_limit {
    CALL_FRAME_UNDERSTOOD = 0,
    CALL_FRAME_OPCODE = 1,  /* unknown; the opcode */
    CALL_FRAME_NESTING = 2, /* more than CALL_FRAME_NESTING_MAX remembered states; that number */
    CALL_FRAME_RULES = 3,   /* more than CALL_FRAME_RULES_MAX registers; that number */
    CALL_FRAME_NUMBER = 4,  /* a register's number has more than 16 bits; 0 */
    CALL_FRAME_LETTER = 5   /* an unknown letter of the augmentation; the letter */
};

/* The iterator. Of the members, `limit`, `detail` and `now.begin` are for reading after
 * UNSUPPORTED: the rules are unknown from `now.begin` to the function's end. */
struct call_frame {
    const struct eh_frame *frame;
    const struct eh_frame_description *description;
    bool has_signing; /* opcodes 0x2B to 0x2D are AArch64's */
    uint8_t limit;    /* enum call_frame_limit */
    uint16_t detail;
    uint8_t depth;
    bool is_begun;
    size_t at;
    uint64_t location; /* from the function's first byte */
    struct call_frame_row now;
    struct call_frame_row initial;
    struct call_frame_row remembered[CALL_FRAME_NESTING_MAX];
};

/* Begins at the first row of a function. Both stay the caller's, and must stay unchanged. */
void call_frame_begin(struct call_frame *call_frame, const struct eh_frame *frame,
                      const struct eh_frame_description *description, bool has_signing);

/* Runs the instructions of the common information, once for several functions. Errors: as
 * call_frame_next. */
enum cairn_status call_frame_run_common(struct call_frame *call_frame, struct cairn_error *error);

/* Begins at the first row of a function of the same section and common information as that of
 * `common`, after call_frame_run_common(common). */
void call_frame_begin_after(struct call_frame *call_frame, const struct call_frame *common,
                            const struct eh_frame_description *description);

/*
 * The next row, from the lowest address to the function's end, without gaps; `*found` is false
 * behind the last. CORRUPT, with the instruction's offset in the section. UNSUPPORTED: see above.
 * After an error there is nothing more to be asked.
 */
enum cairn_status call_frame_next(struct call_frame *call_frame, struct call_frame_row *row,
                                  bool *found, struct cairn_error *error);

/* The rule of a register; UNSPECIFIED if the row has none. */
struct call_frame_rule call_frame_rule(const struct call_frame_row *row, uint16_t dwarf);

#endif
