/*
 * base/utf8.h - UTF-8 in text from files, which may be invalid.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>

/* Returns the length of the UTF-8 sequence at `text` (1 to 4 bytes), or 0 if it is invalid:
 * truncated, overlong, a surrogate, or above U+10FFFF. `text` ends with a zero byte, which is a
 * sequence of one byte. */
size_t utf8_sequence_length(const char *text);

/* The same, but also returns 0 for control characters, which a terminal may obey: those below
 * U+0020, U+007F, and U+0080 to U+009F. */
size_t utf8_visible_length(const char *text);

/* Replaces each newline and tab by a space, and each byte that utf8_visible_length rejects by a
 * question mark. */
void utf8_clean(char *text);

#endif
