/*
 * base/utf8.h - characters of texts that come from files, and may not be what they should be.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>

/* Bytes of the UTF-8 sequence at `text` (1 to 4), or 0 if there is none: cut short, overlong, a
 * surrogate or beyond U+10FFFF. `text` ends with a zero byte, which is a sequence of its own. */
size_t utf8_sequence_length(const char *text);

/* The same, but also 0 for control characters, which a terminal may obey: those below U+0020,
 * U+007F, and U+0080 to U+009F. */
size_t utf8_visible_length(const char *text);

/* Replaces each line's end and tab by a space, and each byte of what utf8_visible_length refuses by
 * a question mark. */
void utf8_clean(char *text);

#endif
