/*
 * Fuzzes the lines with addresses and mappings that `cairn lookup` and `cairn profile` read.
 * Parsing a line twice gives the same result, paths are inside of the line, lines printed from
 * numbers are parsed to the same numbers, and a file is split at its line feeds.
 *
 * Input: flags (a file of lines, or numbers), then the file, or two numbers.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz/fuzz.h"
#include "tools/read/addresses.h"

#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 3 * LINE_BYTES_MAX };

static void check_line(const char *text, size_t length)
{
    struct address_line lines[2];
    char *copy = fuzz_copy(text, length);
    for (int i = 0; i < 2; i++) {
        memset(&lines[i], 0, sizeof lines[i]);
        parse_address_line(copy, length, &lines[i]);
    }
    require(memcmp(&lines[0], &lines[1], sizeof lines[0]) == 0);
    require(lines[0].kind <= ADDRESS_LINE_JUNK);
    require(lines[0].is_frame == (length > 0 && text[0] == '\t'));
    if (lines[0].kind == ADDRESS_LINE_MAPPING) {
        const struct mapping *mapping = &lines[0].mapping;
        require(mapping->path >= copy && mapping->path_length > 0);
        require(mapping->path + mapping->path_length <= copy + length);
    }
    free(copy);
}

static struct address_line parse(const char *text)
{
    struct address_line line;
    memset(&line, 0, sizeof line);
    parse_address_line(text, strlen(text), &line);
    return line;
}

static void check_numbers(uint64_t address, uint64_t other)
{
    static const char *const samples[] = {"%" PRIx64, "0x%" PRIx64, "\t %" PRIx64 " main+0x6 (/a)",
                                          "a 11 [001] 3.25: 1 cycles:u: %" PRIx64 " main"};
    char text[128];
    uint64_t end = other > UINT64_MAX - address ? UINT64_MAX : address + other;
    uint64_t parsed;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        snprintf(text, sizeof text, samples[i], address);
        struct address_line line = parse(text);
        require(line.kind == ADDRESS_LINE_ADDRESS && line.address == address);
    }
    snprintf(text, sizeof text, "0x%" PRIx64, other);
    require(parse_address(text, &parsed) && parsed == other);
    snprintf(text, sizeof text, "%" PRIx64 "-%" PRIx64 " r-xp %" PRIx64 " 08:01 4711   /a b",
             address, end, other);
    struct address_line line = parse(text);
    require(line.kind == ADDRESS_LINE_MAPPING && line.mapping.is_executable);
    require(line.mapping.address == address && line.mapping.size == end - address);
    require(line.mapping.file_offset == other && line.mapping.path_length == 4);
}

/* ---- Files ---- */

static int write_file(const uint8_t *bytes, size_t size)
{
    static int file = -1;
    if (file < 0)
        file = memfd_create("lines", 0);
    require(file >= 0 && ftruncate(file, 0) == 0);
    for (size_t written = 0; written < size;) {
        ssize_t more = pwrite(file, bytes + written, size - written, (off_t)written);
        require(more > 0);
        written += (size_t)more;
    }
    require(lseek(file, 0, SEEK_SET) == 0);
    return file;
}

static void check_file(const uint8_t *bytes, size_t size)
{
    static struct line_reader reader;
    const char *text;
    size_t length;
    uint64_t count = 0;
    const uint8_t *at = bytes;
    const uint8_t *end = bytes + size;
    line_reader_open(&reader, write_file(bytes, size));
    while (line_reader_next(&reader, &text, &length)) {
        require(at < end);
        const uint8_t *line_end = memchr(at, '\n', (size_t)(end - at));
        size_t expected = (size_t)((line_end == NULL ? end : line_end) - at);
        require(length == expected || (length < expected && length >= LINE_BYTES_MAX - 1));
        require(memcmp(text, at, length) == 0 && reader.line_number == ++count);
        check_line(text, length);
        at = line_end == NULL ? end : line_end + 1;
    }
    require(at == end && reader.system_error == 0 && reader.bytes_read == size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    if ((fuzz_u8(&input) & 1) != 0) {
        uint64_t address = fuzz_number(&input, 8);
        check_numbers(address, fuzz_number(&input, 8));
    } else {
        check_file(input.at, input.left < FILE_BYTES_MAX ? input.left : FILE_BYTES_MAX);
    }
    return 0;
}
