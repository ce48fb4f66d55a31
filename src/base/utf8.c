/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

#include <stdbool.h>

static bool is_continuation(char byte) { return ((unsigned char)byte & 0xc0) == 0x80; }

size_t utf8_sequence_length(const char *text)
{
    unsigned char first = (unsigned char)text[0];
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4 || !is_continuation(text[1]))
        return 0;
    unsigned char second = (unsigned char)text[1];
    if (first < 0xe0)
        return 2;
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
        return 0;
    if (!is_continuation(text[2]))
        return 0;
    if (first < 0xf0)
        return 3;
    return is_continuation(text[3]) ? 4 : 0;
}

size_t utf8_visible_length(const char *text)
{
    unsigned char first = (unsigned char)text[0];
    if (first < 0x80)
        return first >= 0x20 && first != 0x7f ? 1 : 0;
    if (first == 0xc2 && (unsigned char)text[1] < 0xa0)
        return 0;
    return utf8_sequence_length(text);
}

void utf8_clean(char *text)
{
    while (*text != '\0') {
        size_t length = utf8_visible_length(text);
        if (length == 0) {
            *text = *text == '\n' || *text == '\t' ? ' ' : '?';
            length = 1;
        }
        text += length;
    }
}
