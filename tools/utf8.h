/*
 * tools/utf8.h - characters of texts that may not be what they should be.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_UTF8_H
#define TOOLS_UTF8_H

#include <stddef.h>

/* Bytes of the UTF-8 sequence at `text` (1 to 4), or 0 if it is none: cut short, overlong, a
 * surrogate or beyond U+10FFFF. `text` ends with a zero byte, which is a sequence of its own. */
size_t utf8_sequence_length(const char *text);

#endif
