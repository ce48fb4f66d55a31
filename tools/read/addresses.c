/*
 * Parsing lines with addresses. A line that is only an address is parsed in one pass over its
 * digits, because an input may have tens of millions of samples.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/read/addresses.h"

#include "tools/read/build_id.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* ---- Words ---- */

struct words {
    const char *at;
    const char *end;
};

static bool is_blank(char character) { return character == ' ' || character == '\t'; }

static void skip_blanks(struct words *words)
{
    while (words->at < words->end && is_blank(*words->at))
        words->at++;
}

/* Value of each hexadecimal digit plus 1; 0 for other characters. */
static const uint8_t digit_values[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

/* Parses hexadecimal digits. False, without advancing, if there are no digits or too many. */
static bool take_digits(struct words *words, uint64_t *value)
{
    const char *at = words->at;
    uint64_t sum = 0;
    while (at < words->end) {
        unsigned digit = digit_values[(unsigned char)*at];
        if (digit == 0)
            break;
        if (sum >> 60 != 0)
            return false;
        sum = sum << 4 | (digit - 1);
        at++;
    }
    if (at == words->at)
        return false;
    words->at = at;
    *value = sum;
    return true;
}

static void skip_prefix(struct words *words)
{
    if (words->end - words->at > 2 && words->at[0] == '0' &&
        (words->at[1] == 'x' || words->at[1] == 'X'))
        words->at += 2;
}

static bool take_character(struct words *words, char character)
{
    if (words->at == words->end || *words->at != character)
        return false;
    words->at++;
    return true;
}

static bool is_at_word_end(const struct words *words)
{
    return words->at == words->end || is_blank(*words->at);
}

/* Parses a word that is a hexadecimal number. */
static bool take_address(struct words *words, uint64_t *address)
{
    struct words taken = *words;
    skip_prefix(&taken);
    if (!take_digits(&taken, address) || !is_at_word_end(&taken))
        return false;
    *words = taken;
    return true;
}

static void skip_word(struct words *words)
{
    while (!is_at_word_end(words))
        words->at++;
    skip_blanks(words);
}

bool parse_address(const char *word, uint64_t *address)
{
    struct words words = {word, word + strlen(word)};
    return take_address(&words, address) && words.at == words.end;
}

/* ---- Branches ---- */

/* Skips the file that perf writes after each address of a branch on request, as in
 * "0x401136(/usr/bin/program)". */
static void skip_file(struct words *words)
{
    if (words->at == words->end || *words->at != '(')
        return;
    const char *end = memchr(words->at, ')', (size_t)(words->end - words->at));
    words->at = end == NULL ? words->end : end + 1;
}

/* Parses "0x40113a/0x401130/P/-/-/1". The fields after the addresses are not needed. */
static bool take_branch(struct words *words, struct branch *branch)
{
    struct words taken = *words;
    skip_prefix(&taken);
    if (taken.at == words->at || !take_digits(&taken, &branch->from))
        return false;
    skip_file(&taken);
    if (!take_character(&taken, '/'))
        return false;
    skip_prefix(&taken);
    if (!take_digits(&taken, &branch->to))
        return false;
    skip_file(&taken);
    if (!take_character(&taken, '/'))
        return false;
    *words = taken;
    return true;
}

bool next_branch(struct branch_text *text, struct branch *branch)
{
    struct words words = {text->at, text->end};
    bool is_found = false;
    skip_blanks(&words);
    while (!is_found && words.at < words.end) {
        is_found = take_branch(&words, branch);
        skip_word(&words);
    }
    text->at = words.at;
    return is_found;
}

/* ---- Mappings ---- */

/* Parses permissions such as "r-xp", or the "x" of older events. */
static bool take_permissions(struct words *words)
{
    const char *begin = words->at;
    skip_word(words);
    return memchr(begin, 'x', (size_t)(words->at - begin)) != NULL;
}

static void find_path(struct words words, struct mapping *mapping)
{
    skip_blanks(&words);
    mapping->path = words.at;
    mapping->path_length = (size_t)(words.end - words.at);
}

/* Finds the digits of a build ID, and advances past them. */
static void find_build_id(struct words *words, struct mapping *mapping)
{
    mapping->build_id = words->at;
    while (words->at < words->end && digit_values[(unsigned char)*words->at] != 0)
        words->at++;
    mapping->build_id_length = (size_t)(words->at - mapping->build_id);
}

/*
 * Parses a line of `perf buildid-list`:
 *
 *     0a1b2c3d4e5f60718293a4b5c6d7e8f901234567 /usr/bin/program
 *
 * After the address of a sample no path follows, which distinguishes the two.
 */
static bool parse_build_id(struct words words, struct mapping *mapping)
{
    find_build_id(&words, mapping);
    if (mapping->build_id_length < BUILD_ID_DIGITS_LEAST || words.at == words.end ||
        !is_blank(*words.at))
        return false;
    find_path(words, mapping);
    return *mapping->path == '/' || *mapping->path == '[';
}

/*
 * Parses a line of /proc/PID/maps:
 *
 *     401000-402000 r-xp 00001000 08:01 4711      /usr/bin/program
 *
 * Memory that is not of a file has no path.
 */
static bool parse_process_mapping(struct words words, struct mapping *mapping)
{
    uint64_t end;
    if (!take_digits(&words, &mapping->address) || !take_character(&words, '-') ||
        !take_digits(&words, &end) || end < mapping->address || !is_at_word_end(&words))
        return false;
    mapping->size = end - mapping->address;
    skip_blanks(&words);
    mapping->is_executable = take_permissions(&words);
    if (!take_address(&words, &mapping->file_offset))
        return false;
    skip_blanks(&words);
    skip_word(&words); /* device */
    skip_word(&words); /* inode */
    find_path(words, mapping);
    return true;
}

/*
 * Parses a mapping that perf prints:
 *
 *     …: [0x401000(0x1000) @ 0x1000 08:01 4711 0]: r-xp /usr/bin/program
 *
 * In the older PERF_RECORD_MMAP, the bracket ends after the file offset. After `perf record
 * --buildid-mmap`, a build ID in angle brackets follows the file offset. `words` begins after the
 * opening bracket.
 */
static bool parse_event_mapping(struct words words, struct mapping *mapping)
{
    skip_prefix(&words);
    if (!take_digits(&words, &mapping->address) || !take_character(&words, '('))
        return false;
    skip_prefix(&words);
    if (!take_digits(&words, &mapping->size) || !take_character(&words, ')'))
        return false;
    skip_blanks(&words);
    if (!take_character(&words, '@'))
        return false;
    skip_blanks(&words);
    skip_prefix(&words);
    if (!take_digits(&words, &mapping->file_offset))
        return false;
    skip_blanks(&words);
    if (take_character(&words, '<'))
        find_build_id(&words, mapping);
    const char *bracket = memchr(words.at, ']', (size_t)(words.end - words.at));
    if (bracket == NULL)
        return false;
    words.at = bracket;
    skip_word(&words); /* "]:" */
    mapping->is_executable = take_permissions(&words);
    find_path(words, mapping);
    return true;
}

/* ---- Frames ---- */

static bool starts_with(const char *text, size_t length, const char *beginning)
{
    size_t needed = strlen(beginning);
    return length >= needed && memcmp(text, beginning, needed) == 0;
}

/* Removes "+0x6" from the end of a symbol. */
static void remove_distance(struct frame_text *text)
{
    const char *plus = memrchr(text->symbol, '+', text->symbol_length);
    const char *end = text->symbol + text->symbol_length;
    if (plus == NULL || !starts_with(plus, (size_t)(end - plus), "+0x"))
        return;
    struct words words = {plus + 3, end};
    uint64_t distance;
    if (take_digits(&words, &distance) && words.at == end)
        text->symbol_length = (size_t)(plus - text->symbol);
}

/* The file is in parentheses after a blank; a symbol may end in a parenthesis, too. */
static void take_file(struct words *words, struct frame_text *text)
{
    size_t length = (size_t)(words->end - words->at);
    const char *open =
        length == 0 || words->end[-1] != ')' ? NULL : memrchr(words->at, '(', length);
    if (open == NULL || (open > words->at && !is_blank(open[-1])))
        return;
    text->file = open + 1;
    text->file_length = (size_t)(words->end - open) - 2;
    words->end = open;
    while (words->end > words->at && is_blank(words->end[-1]))
        words->end--;
}

struct frame_text parse_frame_text(const struct address_line *line)
{
    static const char unknown[] = "[unknown]";
    struct words words = {line->branches.at, line->branches.end};
    struct frame_text text = {.symbol_length = 0};
    if (!line->is_frame || line->kind != ADDRESS_LINE_ADDRESS || words.at == words.end)
        return text;
    skip_blanks(&words);
    take_file(&words, &text);
    if (starts_with(text.file, text.file_length, unknown))
        text.file_length = 0;
    text.symbol = words.at;
    text.symbol_length = (size_t)(words.end - words.at);
    if (starts_with(text.symbol, text.symbol_length, unknown))
        text.symbol_length = 0;
    remove_distance(&text);
    return text;
}

bool is_inlined_frame(const struct frame_text *text)
{
    static const char inlined[] = "inlined";
    return text->file_length == sizeof inlined - 1 &&
           memcmp(text->file, inlined, sizeof inlined - 1) == 0;
}

/* ---- Lines of samples ---- */

/* Advances past the last word that ends with a colon, which is the event or, without an event, the
 * time. False if there is no such word. */
static bool skip_event(struct words *words)
{
    struct words rest = *words;
    bool is_found = false;
    while (rest.at < rest.end) {
        while (!is_at_word_end(&rest))
            rest.at++;
        bool ends_with_colon = rest.at[-1] == ':';
        skip_blanks(&rest);
        if (!ends_with_colon)
            continue;
        *words = rest;
        is_found = true;
    }
    return is_found;
}

/* Whether the address follows the number that was read, as in "3512 401136 main", where perf has
 * printed a process ID or another field first. The name of a function can look like a number, but
 * hardly like one with this many digits. */
static bool is_followed_by_address(struct words words)
{
    enum { ADDRESS_DIGITS_LEAST = 5 };
    uint64_t number;
    skip_blanks(&words);
    const char *begin = words.at;
    return take_address(&words, &number) && words.at - begin >= ADDRESS_DIGITS_LEAST;
}

static void parse_sample(struct words words, struct address_line *line)
{
    bool has_event = skip_event(&words);
    if (has_event && words.at == words.end) {
        line->kind = ADDRESS_LINE_EMPTY; /* the call chain follows */
        return;
    }
    struct branch branch;
    struct words rest = words;
    line->kind = ADDRESS_LINE_JUNK;
    if (take_address(&rest, &line->address) && !is_followed_by_address(rest)) {
        line->kind = ADDRESS_LINE_ADDRESS;
        line->branches = (struct branch_text){rest.at, rest.end};
    } else if (take_branch(&rest, &branch)) {
        line->kind = ADDRESS_LINE_BRANCHES;
        line->branches = (struct branch_text){words.at, words.end};
    }
}

/* Parses an event of perf that is not a sample. `words` begins with PERF_RECORD_. */
static void parse_record(struct words words, struct address_line *line)
{
    static const char mapped[] = "PERF_RECORD_MMAP";
    size_t length = (size_t)(words.end - words.at);
    const char *bracket = memchr(words.at, '[', length);
    line->kind = ADDRESS_LINE_EMPTY;
    if (bracket == NULL || length < sizeof mapped - 1 ||
        memcmp(words.at, mapped, sizeof mapped - 1) != 0)
        return;
    words.at = bracket + 1;
    if (parse_event_mapping(words, &line->mapping) && line->mapping.path_length > 0)
        line->kind = ADDRESS_LINE_MAPPING;
}

void parse_address_line(const char *text, size_t length, struct address_line *line)
{
    static const char event[] = "PERF_RECORD_";
    struct words words = {text, text + length};
    line->is_frame = length > 0 && text[0] == '\t';
    if (length > 0 && text[length - 1] == '\r')
        words.end--;
    skip_blanks(&words);
    line->branches = (struct branch_text){NULL, NULL};
    line->mapping.build_id_length = 0;
    line->kind = ADDRESS_LINE_EMPTY;
    if (words.at == words.end || *words.at == '#')
        return;
    struct words rest = words;
    line->kind = ADDRESS_LINE_ADDRESS;
    if (take_address(&rest, &line->address) && rest.at == rest.end)
        return;
    while (is_blank(words.end[-1]))
        words.end--;
    const char *record = memmem(words.at, (size_t)(words.end - words.at), event, sizeof event - 1);
    if (record != NULL)
        parse_record((struct words){record, words.end}, line);
    else if (parse_process_mapping(words, &line->mapping))
        line->kind = line->mapping.path_length > 0 ? ADDRESS_LINE_MAPPING : ADDRESS_LINE_EMPTY;
    else if (parse_build_id(words, &line->mapping))
        line->kind = ADDRESS_LINE_BUILD_ID;
    else
        parse_sample(words, line);
}

/* ---- Lines ---- */

void line_reader_open(struct line_reader *reader, int descriptor)
{
    reader->descriptor = descriptor;
    reader->system_error = 0;
    reader->is_at_end = false;
    reader->is_inside_line = false;
    reader->begin = 0;
    reader->end = 0;
    reader->line_number = 0;
    reader->bytes_read = 0;
}

static const char *find_line_end(const struct line_reader *reader, size_t from)
{
    return memchr(reader->buffer + from, '\n', reader->end - from);
}

bool line_reader_has_line(const struct line_reader *reader)
{
    return find_line_end(reader, reader->begin) != NULL;
}

/* Moves the unread bytes to the start of the buffer and reads more after them. False at the end. */
static bool fill(struct line_reader *reader)
{
    memmove(reader->buffer, reader->buffer + reader->begin, reader->end - reader->begin);
    reader->end -= reader->begin;
    reader->begin = 0;
    ssize_t count;
    do
        count =
            read(reader->descriptor, reader->buffer + reader->end, LINE_BYTES_MAX - reader->end);
    while (count < 0 && errno == EINTR);
    if (count < 0)
        reader->system_error = errno;
    if (count <= 0) {
        reader->is_at_end = true;
        return false;
    }
    reader->end += (size_t)count;
    reader->bytes_read += (uint64_t)count;
    return true;
}

/* Skips the remainder of a line whose start was returned. */
static void skip_rest_of_line(struct line_reader *reader)
{
    const char *line_end = find_line_end(reader, reader->begin);
    while (line_end == NULL) {
        reader->begin = reader->end;
        if (reader->is_at_end || !fill(reader))
            return;
        line_end = find_line_end(reader, reader->begin);
    }
    reader->begin = (size_t)(line_end - reader->buffer) + 1;
}

bool line_reader_next(struct line_reader *reader, const char **text, size_t *length)
{
    if (reader->is_inside_line)
        skip_rest_of_line(reader);
    reader->is_inside_line = false;
    const char *line_end = find_line_end(reader, reader->begin);
    while (line_end == NULL) {
        size_t seen = reader->end - reader->begin;
        if (seen == LINE_BYTES_MAX || reader->is_at_end || !fill(reader))
            break;
        line_end = find_line_end(reader, seen);
    }
    /* Without an end, this is the last line of the input, or the start of a long line. */
    reader->is_inside_line = line_end == NULL && !reader->is_at_end;
    *text = reader->buffer + reader->begin;
    *length = (size_t)((line_end != NULL ? line_end : reader->buffer + reader->end) - *text);
    reader->begin += *length + (line_end != NULL);
    bool is_line = line_end != NULL || *length > 0;
    reader->line_number += is_line;
    return is_line;
}
