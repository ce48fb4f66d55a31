/*
 * tools/run/number.h - parsing and formatting numbers of any LLVM type.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_RUN_NUMBER_H
#define TOOLS_RUN_NUMBER_H

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
    bool fits; /* whether the number fits 128 bits */
};

/* Parses a decimal number, or a hexadecimal one with 0x before it, with an optional sign. False if
 * the word is not a number. */
bool number_parse_integer(const char *word, struct number_integer *integer);
/* Whether the number is at least -2^(bits-1) and at most 2^bits - 1. */
bool number_fits(const struct number_integer *integer, uint32_t bits);
/* Formats the range of such numbers, as in " (-128 to 255)". */
void number_format_range(uint32_t bits, char *text, size_t size);
/* Formats an integer, whose low word comes first. */
void number_format_integer(const uint64_t words[2], bool is_unsigned, char text[NUMBER_TEXT_BYTES]);

/* ---- Floating-point numbers ---- */

/* Whether strtod accepts the whole word. */
bool number_is_floating(const char *word);
/* Writes the number, as it is in memory, rounded to the nearest and then to even. The word must be
 * one for which number_is_floating holds. Returns false if memory runs out. */
bool number_parse_floating(const char *word, enum cairn_type_kind kind, uint8_t bytes[16]);
/* Formats a number with the fewest decimal digits that identify it. An fp128 is formatted exactly,
 * in decimal if that is short, and otherwise in hexadecimal, because not every C compiler has a
 * type for it. */
void number_format_floating(enum cairn_type_kind kind, const uint8_t bytes[16],
                            char text[NUMBER_TEXT_BYTES]);

#endif
