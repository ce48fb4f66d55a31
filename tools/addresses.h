/*
 * tools/addresses.h - addresses from text: one a line, as addr2line takes them, or the lines that
 * `perf script` prints of samples.
 *
 * An address is hexadecimal, with 0x in front of it or without. Read as such are
 *
 *     401136                                            an address alone
 *         401136 main+0x6 (/usr/bin/program)            perf script -F ip, -F ip,sym,dso
 *     program 4711 3.25: 1 cpu-clock: 401136 main       perf script: it stands behind the event
 *
 * Lines of mappings, which say where a file was loaded, are those of /proc/PID/maps and the ones
 * that `perf script --show-mmap-events` prints.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_ADDRESSES_H
#define TOOLS_ADDRESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum address_line_kind {
    ADDRESS_LINE_EMPTY, /* blank, a comment behind '#', an event or a mapping that says nothing */
    ADDRESS_LINE_ADDRESS,
    ADDRESS_LINE_MAPPING,
    ADDRESS_LINE_JUNK
};

/* `size` bytes of the file, from `file_offset` on, are at `address` of a process. */
struct mapping {
    uint64_t address;
    uint64_t size;
    uint64_t file_offset;
    bool is_executable;
    const char *path; /* in the line; not terminated */
    size_t path_length;
};

struct address_line {
    enum address_line_kind kind;
    bool is_frame; /* one of a call chain, which perf script writes behind a tab */
    uint64_t address;
    struct mapping mapping;
};

/* Takes one line apart; `text` is without the line's end. */
void parse_address_line(const char *text, size_t length, struct address_line *line);

/* A number in hexadecimal digits, 0x in front of it or not, and nothing else. False: none, or
 * larger than 64 bits. */
bool parse_address(const char *word, uint64_t *address);

enum { LINE_BYTES_MAX = 1 << 16 };

/* Lines of a file, a pipe or a terminal, as they arrive. */
struct line_reader {
    int descriptor;
    int system_error; /* of the read that failed; 0: none has */
    bool is_at_end;
    bool is_inside_line; /* it was longer than the buffer: the rest is left out */
    size_t begin;        /* of what has been read and not handed out, in `buffer` */
    size_t end;
    uint64_t line_number; /* of the line handed out last; the first is 1 */
    uint64_t bytes_read;
    char buffer[LINE_BYTES_MAX];
};

void line_reader_open(struct line_reader *reader, int descriptor);

/* The next line, without its end; it is valid until the next call. False: there is none, or
 * reading has failed. Of a line that is longer than the buffer only the begin is given. */
bool line_reader_next(struct line_reader *reader, const char **text, size_t *length);

/* Whether the next line can be had without waiting for it. */
bool line_reader_has_line(const struct line_reader *reader);

#endif
