/*
 * Buffered output. It formats numbers itself, because a large stack map has tens of millions of
 * them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/output.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool wants_colour(int descriptor)
{
    const char *no_colour = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    if (no_colour != NULL && *no_colour != '\0')
        return false;
    if (terminal == NULL || strcmp(terminal, "dumb") == 0)
        return false;
    return isatty(descriptor) == 1;
}

void output_open(struct output *output, int descriptor)
{
    output->descriptor = descriptor;
    output->system_error = 0;
    output->has_colour = wants_colour(descriptor);
    output->long_names_left = OUTPUT_LONG_NAMES_BYTES;
    output->used = 0;
}

bool output_flush(struct output *output)
{
    size_t written = 0;
    while (written < output->used && output->system_error == 0) {
        ssize_t count = write(output->descriptor, output->buffer + written, output->used - written);
        if (count >= 0)
            written += (size_t)count;
        else if (errno != EINTR)
            output->system_error = errno;
    }
    output->used = 0;
    return output->system_error == 0;
}

void output_bytes(struct output *output, const char *bytes, size_t size)
{
    while (size > 0) {
        if (output->used == sizeof output->buffer)
            output_flush(output);
        size_t room = sizeof output->buffer - output->used;
        size_t part = size < room ? size : room;
        memcpy(output->buffer + output->used, bytes, part);
        output->used += part;
        bytes += part;
        size -= part;
    }
}

void output_text(struct output *output, const char *text)
{
    output_bytes(output, text, strlen(text));
}

void output_character(struct output *output, char character)
{
    if (output->used == sizeof output->buffer)
        output_flush(output);
    output->buffer[output->used++] = character;
}

char *output_room(struct output *output, size_t size)
{
    if (sizeof output->buffer - output->used < size)
        output_flush(output);
    return output->buffer + output->used;
}

void output_taken(struct output *output, const char *end)
{
    output->used = (size_t)(end - output->buffer);
}

/* ---- Numbers ---- */

enum { DIGITS_MAX = 20 };

/* Converts two digits at a time. */
char *put_digits(char *at, uint64_t value)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                                "25262728293031323334353637383940414243444546474849"
                                "50515253545556575859606162636465666768697071727374"
                                "75767778798081828384858687888990919293949596979899";
    char digits[DIGITS_MAX];
    char *start = digits + sizeof digits;
    for (; value >= 100; value /= 100) {
        start -= 2;
        memcpy(start, &pairs[value % 100 * 2], 2);
    }
    if (value >= 10) {
        start -= 2;
        memcpy(start, &pairs[value * 2], 2);
    } else {
        *--start = (char)('0' + value);
    }
    size_t count = (size_t)(digits + sizeof digits - start);
    memcpy(at, start, count);
    return at + count;
}

void output_unsigned(struct output *output, uint64_t value)
{
    output_taken(output, put_digits(output_room(output, DIGITS_MAX), value));
}

void output_signed(struct output *output, int64_t value)
{
    if (value < 0)
        output_character(output, '-');
    output_unsigned(output, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void output_hexadecimal(struct output *output, uint64_t value)
{
    char *at = output_room(output, DIGITS_MAX);
    unsigned shift = value == 0 ? 0 : (63 - (unsigned)__builtin_clzll(value)) / 4 * 4;
    *at++ = '0';
    *at++ = 'x';
    for (;; shift -= 4) {
        *at++ = "0123456789abcdef"[value >> shift & 0xF];
        if (shift == 0)
            break;
    }
    output_taken(output, at);
}

/* Returns how many bytes of `text`, up to `end`, can be written unchanged. */
static size_t visible_run(const char *text, const char *end)
{
    const char *at = text;
    while (at < end && *at != '\\') {
        size_t length = utf8_visible_length(at);
        if (length == 0 || length > (size_t)(end - at))
            break;
        at += length;
    }
    return (size_t)(at - text);
}

void output_allow_names(struct output *output, uint64_t bytes) { output->long_names_left += bytes; }

const char *output_name_end(struct output *output, const char *name)
{
    enum { CONTINUATIONS_MAX = 3 };
    bool may_be_long = output->long_names_left >= OUTPUT_NAME_BYTES_MAX;
    size_t size = strnlen(name, may_be_long ? OUTPUT_NAME_BYTES_MAX : OUTPUT_SHORT_NAME_BYTES);
    if (size > OUTPUT_SHORT_NAME_BYTES)
        output->long_names_left -= size;
    const char *end = name + size;
    const char *at = end;
    while (end - at < CONTINUATIONS_MAX && at > name && ((unsigned char)*at & 0xc0) == 0x80)
        at--;
    return utf8_sequence_length(at) > 1 ? at : end;
}

void output_name(struct output *output, const char *name)
{
    const char *end = output_name_end(output, name);
    for (const char *at = name; at < end;) {
        size_t length = visible_run(at, end);
        output_bytes(output, at, length);
        at += length;
        if (at < end)
            output_escaped(output, "\\x", (uint8_t)*at++);
    }
    if (*end != '\0')
        output_text(output, "...");
}

void output_escaped(struct output *output, const char *prefix, uint8_t byte)
{
    static const char digits[] = "0123456789abcdef";
    output_text(output, prefix);
    output_character(output, digits[byte >> 4]);
    output_character(output, digits[byte & 0xf]);
}

void output_format(struct output *output, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    output_text(output, text);
}

void output_style(struct output *output, enum output_style style)
{
    static const char *const codes[] = {
        [STYLE_PLAIN] = "\033[0m",   [STYLE_HEADING] = "\033[1m",  [STYLE_NAME] = "\033[36m",
        [STYLE_NUMBER] = "\033[33m", [STYLE_WARNING] = "\033[31m", [STYLE_FAINT] = "\033[2m",
    };
    if (output->has_colour)
        output_text(output, codes[style]);
}
