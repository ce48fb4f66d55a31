/*
 * tools/output.h - buffered writing to standard output, with errors remembered to the end.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_OUTPUT_H
#define TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OUTPUT_BUFFER_BYTES = 1 << 16, OUTPUT_NAME_BYTES_MAX = 1 << 13 };

enum output_style {
    STYLE_PLAIN,
    STYLE_HEADING,
    STYLE_NAME,
    STYLE_NUMBER,
    STYLE_WARNING,
    STYLE_FAINT
};

struct output {
    int descriptor;
    int system_error; /* of the first write that failed; nothing is written afterwards */
    bool has_colour;
    size_t used;
    char buffer[OUTPUT_BUFFER_BYTES];
};

/* Colour only on a terminal, and not where NO_COLOR is set or the terminal is dumb. */
void output_open(struct output *output, int descriptor);

void output_bytes(struct output *output, const char *bytes, size_t size);
void output_text(struct output *output, const char *text);
void output_character(struct output *output, char character);
void output_unsigned(struct output *output, uint64_t value);
void output_signed(struct output *output, int64_t value);
/* With 0x in front. */
void output_hexadecimal(struct output *output, uint64_t value);
/* A name that comes from a file: what could control a terminal, and what is not UTF-8, is written
 * as \xNN. Of a very long name the first OUTPUT_NAME_BYTES_MAX bytes are written, and "...": names
 * can overlap in a file, so that all of them are far longer than it. */
void output_name(struct output *output, const char *name);
/* Where such a name ends or is cut, which is not inside a character. */
const char *output_name_end(const char *name);
/* At most 256 bytes. */
void output_format(struct output *output, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Room for `size` bytes, at most OUTPUT_BUFFER_BYTES, in the buffer itself; and that it has been
 * filled up to `end`. */
char *output_room(struct output *output, size_t size);
void output_taken(struct output *output, const char *end);

/* Writes the number's decimal digits, of which there are up to 20, and says where they end. */
char *put_digits(char *at, uint64_t value);

void output_style(struct output *output, enum output_style style);

/* Writes what is in the buffer; false if a write has failed. */
bool output_flush(struct output *output);

#endif
