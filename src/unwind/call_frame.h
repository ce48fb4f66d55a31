/*
 * unwind/call_frame.h - executes the instructions of a function's unwind information. The result is
 * a table of rows. A row describes the call frame for a range of code addresses: its CFA (canonical
 * frame address), and where the caller's registers are.
 *
 * Pure, without allocation. The iterator takes about 10 KB and fits on the stack.
 *
 * Sources: DWARF 5, section 6.4, "Call Frame Information"; Linux Standard Base Core Specification,
 * "Call Frame Information Extensions"; DWARF for the Arm 64-bit Architecture, "Call frame
 * instructions".
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef UNWIND_CALL_FRAME_H
#define UNWIND_CALL_FRAME_H

#include "unwind/eh_frame.h"

enum { CALL_FRAME_RULES_MAX = 64, CALL_FRAME_NESTING_MAX = 8 };

/* The location of a caller's register. */
enum call_frame_kind {
    CALL_FRAME_UNSPECIFIED = 0,      /* no instruction for this register; the ABI's rule applies */
    CALL_FRAME_SAME = 1,             /* unchanged, in the register itself */
    CALL_FRAME_UNDEFINED = 2,        /* lost; for the return address: there is no caller */
    CALL_FRAME_SAVED = 3,            /* in memory at CFA + value */
    CALL_FRAME_VALUE = 4,            /* the value is CFA + value */
    CALL_FRAME_REGISTER = 5,         /* in the register with the DWARF number `value` */
    CALL_FRAME_SAVED_EXPRESSION = 6, /* in memory, at an address given by a DWARF expression */
    CALL_FRAME_VALUE_EXPRESSION = 7  /* the value of a DWARF expression */
};

/* A rule for one register. Expressions are not evaluated: `value` is the offset in the section of
 * the expression's length, which the expression's bytes follow. */
struct call_frame_rule {
    uint16_t dwarf;
    uint8_t kind; /* enum call_frame_kind */
    int64_t value;
};

enum call_frame_cfa {
    CALL_FRAME_CFA_UNKNOWN = 0,
    CALL_FRAME_CFA_REGISTER = 1,  /* cfa_register + cfa_value */
    CALL_FRAME_CFA_EXPRESSION = 2 /* cfa_value is the expression's offset, as in a rule */
};

/* AArch64: how the return address is signed, regardless of its location. */
enum call_frame_signing {
    CALL_FRAME_NOT_SIGNED = 0,
    CALL_FRAME_SIGNED = 1,        /* with the CFA as modifier */
    CALL_FRAME_SIGNED_WITH_PC = 2 /* with the CFA and the address of the signing instruction */
};

/* A row of a function's table, for addresses from `begin` to `end` - 1. `end` is greater than
 * `begin`. The rules are sorted by DWARF number and never UNSPECIFIED. */
struct call_frame_row {
    uint64_t begin;
    uint64_t end;
    uint8_t cfa;     /* enum call_frame_cfa */
    uint8_t signing; /* enum call_frame_signing */
    uint16_t cfa_register;
    uint16_t rule_count;
    int64_t cfa_value;
    uint64_t argument_size; /* bytes of arguments pushed for a call (GNU_args_size) */
    struct call_frame_rule rules[CALL_FRAME_RULES_MAX];
};

/* Why an instruction is not supported, followed by the value of `detail`. */
enum call_frame_limit {
    CALL_FRAME_UNDERSTOOD = 0,
    CALL_FRAME_OPCODE = 1,  /* unknown opcode; the opcode */
    CALL_FRAME_NESTING = 2, /* more than CALL_FRAME_NESTING_MAX remembered states; that limit */
    CALL_FRAME_RULES = 3,   /* rules for more than CALL_FRAME_RULES_MAX registers; that limit */
    CALL_FRAME_NUMBER = 4,  /* register number of more than 16 bits; 0 */
    CALL_FRAME_LETTER = 5   /* unknown letter of the augmentation; the letter */
};

/* The iterator. After UNSUPPORTED, callers may read `limit`, `detail` and `now.begin`; the rules
 * from `now.begin` to the end of the function are unknown. All other fields are private. */
struct call_frame {
    const struct eh_frame *frame;
    const struct eh_frame_description *description;
    bool has_signing; /* whether opcodes 0x2B to 0x2D are those of AArch64 */
    uint8_t limit;    /* enum call_frame_limit */
    uint16_t detail;
    uint8_t depth;
    bool is_begun;
    size_t at;
    uint64_t location; /* bytes from the start of the function */
    struct call_frame_row now;
    struct call_frame_row initial;
    struct call_frame_row remembered[CALL_FRAME_NESTING_MAX];
};

/* Begins at the first row of a function. The caller keeps ownership of `frame` and `description`,
 * which must stay valid and unchanged. */
void call_frame_begin(struct call_frame *call_frame, const struct eh_frame *frame,
                      const struct eh_frame_description *description, bool has_signing);

/* Executes the instructions of the common information, for use by several functions. Errors: those
 * of call_frame_next. */
enum cairn_status call_frame_run_common(struct call_frame *call_frame, struct cairn_error *error);

/* Begins at the first row of a function. The function must have the same section and common
 * information as `common`, for which call_frame_run_common was called. */
void call_frame_begin_after(struct call_frame *call_frame, const struct call_frame *common,
                            const struct eh_frame_description *description);

/*
 * Returns the next row. Rows are in ascending order and cover the function without gaps. `*found`
 * is false after the last row. Errors: CORRUPT, with the instruction's offset in the section;
 * UNSUPPORTED, see struct call_frame. The function must not be called again after an error.
 */
enum cairn_status call_frame_next(struct call_frame *call_frame, struct call_frame_row *row,
                                  bool *found, struct cairn_error *error);

/* Returns the rule of a register; UNSPECIFIED if the row has none. */
struct call_frame_rule call_frame_rule(const struct call_frame_row *row, uint16_t dwarf);

#endif
