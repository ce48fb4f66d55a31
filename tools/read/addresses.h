/*
 * tools/read/addresses.h - reading addresses from text: one a line, as addr2line reads them, or the
 * lines that `perf script` prints for samples.
 *
 * An address is hexadecimal, with or without 0x before it. These lines hold one:
 *
 *     401136                                            an address alone
 *         401136 main+0x6 (/usr/bin/program)            perf script -F ip, -F ip,sym,dso
 *     program 4711 3.25: 1 cpu-clock: 401136 main       perf script: it follows the event
 *
 * After an address, or instead of it, a line may have branches, the newest first:
 *
 *     401136  0x40113a/0x401130/P/-/-/1  0x401160/0x401136/P/-/-/3      perf script -F ip,brstack
 *
 * Lines of mappings tell where a file was loaded. They are read in the formats of /proc/PID/maps
 * and of `perf script --show-mmap-events`. The latter may have build IDs. So do lines of
 * `perf buildid-list`: a build ID, and the path of the file.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_READ_ADDRESSES_H
#define TOOLS_READ_ADDRESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum address_line_kind {
    ADDRESS_LINE_EMPTY, /* blank, a comment after '#', or an event or mapping without information */
    ADDRESS_LINE_ADDRESS,
    ADDRESS_LINE_BRANCHES, /* branches without an address */
    ADDRESS_LINE_MAPPING,
    ADDRESS_LINE_BUILD_ID, /* the path and the build ID of `mapping` */
    ADDRESS_LINE_JUNK
};

/* A mapping of a file: `size` bytes from `file_offset` on are at `address` in a process. */
struct mapping {
    uint64_t address;
    uint64_t size;
    uint64_t file_offset;
    bool is_executable;
    const char *path; /* in the line, not null-terminated */
    size_t path_length;
    const char *build_id;   /* hexadecimal digits in the line */
    size_t build_id_length; /* 0 if there is no build ID */
};

/* Branches, or the remainder of a line that may contain some. */
struct branch_text {
    const char *at;
    const char *end;
};

struct address_line {
    enum address_line_kind kind;
    bool is_frame; /* whether the address is in a call chain, before which perf script writes a tab
                    */
    uint64_t address;
    struct mapping mapping;
    struct branch_text branches; /* what follows the address; otherwise empty */
};

/* A branch that was taken: from the instruction at `from` to `to`. */
struct branch {
    uint64_t from;
    uint64_t to;
};

/* The names that perf script prints after the address of a frame, as in
 * "401136 main+0x6 (/usr/bin/program)". They are in the line, not null-terminated. */
struct frame_text {
    const char *symbol;   /* without the distance */
    size_t symbol_length; /* 0 without a symbol */
    const char *file;
    size_t file_length; /* 0 without a file */
};

/* Parses one line. `text` does not contain the end of the line. */
void parse_address_line(const char *text, size_t length, struct address_line *line);

/* Parses what follows the address of a frame in a call chain. All is empty for other lines. */
struct frame_text parse_frame_text(const struct address_line *line);

/* Whether the frame is of a call that was inlined: it has the address of the frame after it. */
bool is_inlined_frame(const struct frame_text *text);

/* Takes the next branch of a line. Other words are skipped. False at the end. */
bool next_branch(struct branch_text *text, struct branch *branch);

/* Parses a word that is a hexadecimal number, with or without 0x. False if it is anything else, or
 * a number of more than 64 bits. */
bool parse_address(const char *word, uint64_t *address);

enum { LINE_BYTES_MAX = 1 << 16 };

/* A reader for the lines of a file, a pipe or a terminal. */
struct line_reader {
    int descriptor;
    int system_error; /* errno of the read that failed, or 0 */
    bool is_at_end;
    bool is_inside_line; /* whether the remainder of a line that is longer than the buffer must be
                            skipped */
    size_t begin;        /* bounds in `buffer` of the bytes that were read and not yet returned */
    size_t end;
    uint64_t line_number; /* number of the line returned last; the first is 1 */
    uint64_t bytes_read;
    char buffer[LINE_BYTES_MAX];
};

void line_reader_open(struct line_reader *reader, int descriptor);

/* Returns the next line without its end. The text is valid until the next call. Only the start of a
 * line that is longer than the buffer is returned. False at the end and after a read error. */
bool line_reader_next(struct line_reader *reader, const char **text, size_t *length);

/* Whether the next line can be read without waiting. */
bool line_reader_has_line(const struct line_reader *reader);

#endif
