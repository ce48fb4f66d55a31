/*
 * Buffered output. It formats numbers itself, because a large stack map has tens of millions of
 * them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/cli/output.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void output_open(struct output *output, int descriptor)
{
    const char *no_colour = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    output->descriptor = descriptor;
    output->system_error = 0;
    output->has_colour = (no_colour == NULL || *no_colour == '\0') && terminal != NULL &&
                         strcmp(terminal, "dumb") != 0 && isatty(descriptor) == 1;
    output->long_names_left = OUTPUT_LONG_NAMES_BYTES;
    output->used = 0;
}

bool output_flush(struct output *output)
{
    size_t written = 0;
    while (written < output->used && output->system_error == 0) {
        ssize_t count = write(output->descriptor, output->buffer + written, output->used - written);
        if (count > 0)
            written += (size_t)count;
        else if (count == 0)
            output->system_error = ENOSPC;
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
        size_t space = sizeof output->buffer - output->used;
        size_t part = size < space ? size : space;
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

void output_spaces(struct output *output, size_t count)
{
    for (size_t i = 0; i < count; i++)
        output_character(output, ' ');
}

void output_character(struct output *output, char character)
{
    if (output->used == sizeof output->buffer)
        output_flush(output);
    output->buffer[output->used++] = character;
}

char *output_space(struct output *output, size_t size)
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

enum { DIGITS_MAX = 20, FLOATING_BYTES = 64 };

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

static char *put_hexadecimal(char *at, uint64_t value)
{
    unsigned shift = value == 0 ? 0 : (63 - (unsigned)__builtin_clzll(value)) / 4 * 4;
    for (;; shift -= 4) {
        *at++ = "0123456789abcdef"[value >> shift & 0xF];
        if (shift == 0)
            return at;
    }
}

void output_unsigned(struct output *output, uint64_t value)
{
    output_taken(output, put_digits(output_space(output, DIGITS_MAX), value));
}

void output_hexadecimal(struct output *output, uint64_t value)
{
    output_text(output, "0x");
    output_taken(output, put_hexadecimal(output_space(output, DIGITS_MAX), value));
}

/* ---- Names ---- */

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
        size_t length = *at == '\\' ? 0 : utf8_visible_length(at);
        if (length > 0 && length <= (size_t)(end - at)) {
            output_bytes(output, at, length);
            at += length;
        } else {
            output_escaped(output, "\\x", (uint8_t)*at++);
        }
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

/* ---- Formats ---- */

uint64_t take_number(char modifier, va_list *arguments)
{
    if (modifier == 'j')
        return va_arg(*arguments, uintmax_t);
    return modifier == 'z' ? va_arg(*arguments, size_t) : va_arg(*arguments, unsigned);
}

/* Writes the argument of the conversion at `at`, after its percent sign. Returns the end of the
 * conversion. */
static const char *convert(struct output *output, const char *at, va_list *arguments)
{
    char buffer[FLOATING_BYTES];
    const char *text = buffer;
    const char *end = buffer;
    int64_t number;
    bool is_left = *at == '-';
    char *after;
    at += is_left;
    size_t width = strtoul(at, &after, 10);
    at = after;
    if (*at == '*') {
        width = (size_t)va_arg(*arguments, int);
        at++;
    }
    int precision = *at == '.' ? at[1] - '0' : 0;
    at += *at == '.' ? 2 : 0;
    char modifier = '\0';
    if (*at == 'j' || *at == 'z')
        modifier = *at++;
    switch (*at) {
    case 'f':
        end += snprintf(buffer, sizeof buffer, "%.*f", precision, va_arg(*arguments, double));
        break;
    case 's':
        text = va_arg(*arguments, const char *);
        if (width == 0) {
            output_name(output, text == NULL ? "(no symbol)" : text);
            return at + 1;
        }
        end = text + strlen(text);
        break;
    case 'i':
        number = va_arg(*arguments, int);
        buffer[0] = '-';
        end = put_digits(buffer + (number < 0), (uint64_t)(number < 0 ? -number : number));
        break;
    case 'u':
        end = put_digits(buffer, take_number(modifier, arguments));
        break;
    case 'x':
        end = put_hexadecimal(buffer, take_number(modifier, arguments));
        break;
    default:
        output_character(output, '%');
        break;
    }
    size_t padding = (size_t)(end - text) < width ? width - (size_t)(end - text) : 0;
    if (!is_left)
        output_spaces(output, padding);
    output_bytes(output, text, (size_t)(end - text));
    if (is_left)
        output_spaces(output, padding);
    return at + 1;
}

void output_arguments(struct output *output, const char *format, va_list *arguments)
{
    /* Indexed by the distance from PLAIN. */
    static const char *const styles[] = {"\033[0m",  "\033[1m",  "\033[36m",
                                         "\033[33m", "\033[31m", "\033[2m"};
    while (*format != '\0') {
        size_t plain = strcspn(format, "%" PLAIN HEADING NAME NUMBER WARNING FAINT);
        output_bytes(output, format, plain);
        format += plain;
        if (*format == '%')
            format = convert(output, format + 1, arguments);
        else if (*format != '\0' && output->has_colour)
            output_text(output, styles[*format++ - PLAIN[0]]);
        else if (*format != '\0')
            format++;
    }
}

void output_format(struct output *output, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    output_arguments(output, format, &arguments);
    va_end(arguments);
}

/* ---- Progress ---- */

enum { CALLS_A_LOOK = 1024, MILLISECONDS_BEFORE = 1000, MILLISECONDS_BETWEEN = 100 };

void progress_begin(struct progress *progress, const struct output *output, const char *what,
                    uint64_t total)
{
    const char *terminal = getenv("TERM");
    *progress = (struct progress){.what = what, .total = total};
    progress->is_shown = isatty(STDERR_FILENO) == 1 && terminal != NULL &&
                         strcmp(terminal, "dumb") != 0 &&
                         (output == NULL || isatty(output->descriptor) != 1);
    clock_gettime(CLOCK_MONOTONIC, &progress->begun);
    progress->drawn = progress->begun;
}

static int64_t milliseconds_between(const struct timespec *from, const struct timespec *to)
{
    return (int64_t)(to->tv_sec - from->tv_sec) * 1000 + (to->tv_nsec - from->tv_nsec) / 1000000;
}

void progress_move(struct progress *progress, uint64_t done)
{
    if (!progress->is_shown || ++progress->asked % CALLS_A_LOOK != 0)
        return;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (milliseconds_between(&progress->begun, &now) < MILLISECONDS_BEFORE ||
        milliseconds_between(&progress->drawn, &now) < MILLISECONDS_BETWEEN)
        return;
    progress->drawn = now;
    progress->is_drawn = true;
    if (progress->total > 0)
        fprintf(stderr, "\r\033[K%3.0f %% of %llu %s",
                100.0 * (double)done / (double)progress->total, (unsigned long long)progress->total,
                progress->what);
    else
        fprintf(stderr, "\r\033[K%llu %s", (unsigned long long)done, progress->what);
    fflush(stderr);
}

void progress_end(struct progress *progress)
{
    if (progress->is_drawn)
        fwrite("\r\033[K", 1, 4, stderr);
    progress->is_drawn = false;
}
