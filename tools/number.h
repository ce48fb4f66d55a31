/*
 * tools/number.h - numbers of any LLVM type, from words and in words.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_NUMBER_H
#define TOOLS_NUMBER_H

#include <cairn/declaration.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NUMBER_TEXT_BYTES = 64 };

/* ---- Integers of up to 128 bits, in two's complement ---- */

struct number_integer {
    uint64_t low;
    uint64_t high;
    bool is_negative;
    bool fits; /* 128 bits hold it */
};

/* Decimal, or hexadecimal behind 0x; with a sign or without. False: no number. */
bool number_parse_integer(const char *word, struct number_integer *integer);
/* From -2^(bits-1) to 2^bits - 1. */
bool number_fits(const struct number_integer *integer, uint32_t bits);
/* " (-128 to 255)" */
void number_format_range(uint32_t bits, char *text, size_t size);
/* Low word first. */
void number_format_integer(const uint64_t words[2], bool is_unsigned, char text[NUMBER_TEXT_BYTES]);

/* ---- Floating-point numbers ---- */

/* As strtod reads them, to the end of the word. */
bool number_is_floating(const char *word);
/* As LLVM reads them; to be freed. NULL: no memory. */
char *number_normalise_floating(const char *word);
/* In as few decimal digits as give the number back. fp128 in all of its decimal digits if they are
 * not many, and otherwise in hexadecimal, because C has no type for it everywhere. */
void number_format_floating(enum cairn_type_kind kind, const uint8_t bytes[16],
                            char text[NUMBER_TEXT_BYTES]);

#endif
