/*
 * tools/cli/output.h - buffered writing to standard output that remembers errors until the end, and
 * a progress line on standard error.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_CLI_OUTPUT_H
#define TOOLS_CLI_OUTPUT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Names are cut after OUTPUT_NAME_BYTES_MAX bytes, because names in a file can overlap and be far
 * longer in total than the file. One long name can also be that of all entries. So names that are
 * longer than OUTPUT_SHORT_NAME_BYTES are written up to a total of OUTPUT_LONG_NAMES_BYTES and the
 * size of the file. Then names are cut after OUTPUT_SHORT_NAME_BYTES bytes. */
enum {
    OUTPUT_BUFFER_BYTES = 1 << 16,
    OUTPUT_NAME_BYTES_MAX = 1 << 13,
    OUTPUT_SHORT_NAME_BYTES = 200,
    OUTPUT_LONG_NAMES_BYTES = 1 << 24
};

/* Styles in formats. */
#define PLAIN "\001"
#define HEADING "\002"
#define NAME "\003"
#define NUMBER "\004"
#define WARNING "\005"
#define FAINT "\006"

struct output {
    int descriptor;
    int system_error; /* errno of the first write that failed; nothing is written after it */
    bool has_colour;
    uint64_t long_names_left; /* bytes of long names that may still be written */
    size_t used;
    char buffer[OUTPUT_BUFFER_BYTES];
};

/* Opens the output. Colour is on only for terminals, and off if NO_COLOR is set or the terminal is
 * dumb. */
void output_open(struct output *output, int descriptor);

void output_bytes(struct output *output, const char *bytes, size_t size);
void output_text(struct output *output, const char *text);
void output_character(struct output *output, char character);
void output_spaces(struct output *output, size_t count);
void output_unsigned(struct output *output, uint64_t value);
/* Writes a number with 0x before it. */
void output_hexadecimal(struct output *output, uint64_t value);
/* Writes a name from a file. Characters that could control a terminal, and bytes that are not
 * UTF-8, are written as \xNN. "..." is added to a name that is cut. */
void output_name(struct output *output, const char *name);
/* Returns where a name that is about to be written ends or is cut, which is never inside a
 * character. */
const char *output_name_end(struct output *output, const char *name);
/* Allows `bytes` more bytes of long names. */
void output_allow_names(struct output *output, uint64_t bytes);
/* Writes a prefix and two hexadecimal digits. */
void output_escaped(struct output *output, const char *prefix, uint8_t byte);
/* Writes formatted text of any length. The format may contain styles. The conversions are %f with a
 * precision of one digit, %u and %x, which take 'j' for 64 bits and 'z' for a size_t, %i, and %s,
 * all with an optional '-' and width; and %%. Without a width, %s writes its argument as
 * output_name does, and NULL as "(no symbol)". */
void output_format(struct output *output, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void output_arguments(struct output *output, const char *format, va_list *arguments);
/* Returns the next argument, for a conversion with the length modifier 'j', 'z' or another. */
uint64_t take_number(char modifier, va_list *arguments);
/* Returns the ending of a noun after a number: "" or "s". */
static inline const char *plural(uint64_t count) { return count == 1 ? "" : "s"; }

/* output_space returns space for `size` bytes in the buffer, at most OUTPUT_BUFFER_BYTES. The
 * second function marks the space up to `end` as written. */
char *output_space(struct output *output, size_t size);
void output_taken(struct output *output, const char *end);

/* Writes the decimal digits of a number, at most 20. Returns their end. */
char *put_digits(char *at, uint64_t value);

/* Writes the buffer. False if any write has failed. */
bool output_flush(struct output *output);

/* ---- Progress ---- */

/* A progress line on standard error that is overwritten, and erased at the end. It appears only on
 * a terminal, and only if the work takes more than a second. */
struct progress {
    const char *what; /* plural noun for what is counted, such as "bytes" */
    uint64_t total;   /* 0 if unknown */
    bool is_shown;    /* whether progress may be shown */
    bool is_drawn;
    uint64_t asked; /* number of calls since the clock was last read */
    struct timespec begun;
    struct timespec drawn;
};

/* Begins work that writes to `output`, which may be NULL. If that is a terminal, no progress is
 * shown, because the output itself shows it. */
void progress_begin(struct progress *progress, const struct output *output, const char *what,
                    uint64_t total);

/* Reports progress. May be called millions of times. */
void progress_move(struct progress *progress, uint64_t done);

/* Erases the line. Must be called before anything else is written to standard error. */
void progress_end(struct progress *progress);

#endif
