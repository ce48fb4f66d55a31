/*
 * Tests of parsing lines with addresses, as people and perf write them, and of reading lines from
 * files and pipes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/read/addresses.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct address_line parse(const char *text)
{
    struct address_line line = {.address = 1};
    /* The memory after the line must not be read. */
    size_t length = strlen(text);
    char *copy = malloc(length > 0 ? length : 1);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, text, length);
    parse_address_line(copy, length, &line);
    free(copy);
    line.mapping.path = NULL;
    return line;
}

static void expect_kind(const char *text, enum address_line_kind kind)
{
    ck_assert_msg(parse(text).kind == kind, "'%s' is read as kind %d, not %d", text,
                  (int)parse(text).kind, (int)kind);
}

static void expect_address(const char *text, uint64_t address)
{
    expect_kind(text, ADDRESS_LINE_ADDRESS);
    ck_assert_msg(parse(text).address == address, "'%s': 0x%llx", text,
                  (unsigned long long)parse(text).address);
}

START_TEST(addresses_alone_are_hexadecimal)
{
    expect_address("401136", 0x401136);
    expect_address("0x401136", 0x401136);
    expect_address("0X40aBcD", 0x40abcd);
    expect_address("0", 0);
    expect_address("  401136  ", 0x401136);
    expect_address("401136\r", 0x401136);
    expect_address("\t           15c78", 0x15c78);
    expect_address("ffffffff815d30aa", UINT64_C(0xffffffff815d30aa));
    expect_address("0xffffffffffffffff", UINT64_MAX);
    expect_address("000000000000000000000401136", 0x401136);
}
END_TEST

START_TEST(what_perf_script_writes_of_samples_is_read)
{
    expect_address("     7f385980a813 get_common_indices.constprop.0", 0x7f385980a813);
    expect_address("    5633f8cd814b main+0x1b (/tmp/hot)", 0x5633f8cd814b);
    expect_address("cpu-clock:      5633f8cd814b", 0x5633f8cd814b);
    expect_address("  hot  3512 50696.124588:     250000 cpu-clock:      5633f8cd8153 main+0x23",
                   0x5633f8cd8153);
    expect_address(" dd 3512 [001] 50696.124588: 250000 cycles:u:  5633f8cd8153 add (/bin/dd)",
                   0x5633f8cd8153);
    expect_address("50696.124588: 5633f8cd8153", 0x5633f8cd8153);
    expect_address(" 401136 std::vector<int, std::allocator<int> >::size() const", 0x401136);
    expect_address(" 401136 add", 0x401136);
    expect_kind("hot 3512 50696.124588:     250000 cpu-clock: ", ADDRESS_LINE_EMPTY);
    expect_kind("hot 3512 50696.1: PERF_RECORD_EXIT(3512:3512):(3498:3498)", ADDRESS_LINE_EMPTY);
}
END_TEST

START_TEST(frames_of_call_chains_are_told_by_their_tab)
{
    ck_assert(parse("\t           15c78").is_frame);
    ck_assert(parse("\t           15c78 main (/tmp/hot)").is_frame);
    ck_assert(!parse(" 15c78").is_frame);
    ck_assert(!parse("").is_frame);
}
END_TEST

START_TEST(lines_without_an_address_are_empty_or_junk)
{
    static const char *const empty[] = {"", " ", "\t", "\r", "# captured on: today", "  # 401136"};
    static const char *const junk[] = {"main",
                                       "0x",
                                       "x401136",
                                       "40113g",
                                       "401136:main",
                                       "0x0x401136",
                                       "-401136",
                                       "10000000000000000",
                                       "program 4711 401136",
                                       "4711 401136 main",
                                       "401136, 401137",
                                       "401136-",
                                       "401136-402000",
                                       "cycles: main",
                                       "\xff\xfe"};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++)
        expect_kind(empty[i], ADDRESS_LINE_EMPTY);
    for (size_t i = 0; i < sizeof junk / sizeof *junk; i++)
        expect_kind(junk[i], ADDRESS_LINE_JUNK);
}
END_TEST

static void expect_mapping(const char *text, uint64_t address, uint64_t size, uint64_t file_offset,
                           const char *path)
{
    struct address_line line;
    parse_address_line(text, strlen(text), &line);
    ck_assert_msg(line.kind == ADDRESS_LINE_MAPPING, "'%s'", text);
    ck_assert_uint_eq(line.mapping.address, address);
    ck_assert_uint_eq(line.mapping.size, size);
    ck_assert_uint_eq(line.mapping.file_offset, file_offset);
    ck_assert(line.mapping.is_executable);
    ck_assert_uint_eq(line.mapping.path_length, strlen(path));
    ck_assert_int_eq(memcmp(line.mapping.path, path, strlen(path)), 0);
}

START_TEST(mappings_are_read_as_the_kernel_and_perf_write_them)
{
    expect_mapping("5633f8cd8000-5633f8cd9000 r-xp 00001000 fe:00 431                /tmp/a b",
                   0x5633f8cd8000, 0x1000, 0x1000, "/tmp/a b");
    expect_mapping("hot  3512 50696.123408: PERF_RECORD_MMAP2 3512/3512: [0x5633f8cd8000(0x2000) @ "
                   "0x1000 fe:00 11002000 431127499]: r-xp /tmp/a b",
                   0x5633f8cd8000, 0x2000, 0x1000, "/tmp/a b");
    expect_mapping("PERF_RECORD_MMAP -1/0: [0xffffffff81000000(0x1209988) @ 0xffffffff81000000]: x "
                   "[kernel.kallsyms]_text",
                   UINT64_C(0xffffffff81000000), 0x1209988, UINT64_C(0xffffffff81000000),
                   "[kernel.kallsyms]_text");
    expect_mapping("PERF_RECORD_MMAP2 1/1: [0x7f38597f4000(0x2000) @ 0 00:00 0 0]: r-xp [vdso]",
                   0x7f38597f4000, 0x2000, 0, "[vdso]");
    ck_assert(!parse("401000-402000 r--p 00001000 fe:00 0 /tmp/x").mapping.is_executable);
    expect_kind("PERF_RECORD_MMAP2 1/1: [0x7f38597f4000(0x2000) @ 0 00:00", ADDRESS_LINE_EMPTY);
    expect_kind("5633f8cd8000-5633f8cd9000 rw-p 00000000 00:00 0 ", ADDRESS_LINE_EMPTY);
    expect_kind("5633f8cd9000-5633f8cd8000 r-xp 00001000 fe:00 0 /tmp/a", ADDRESS_LINE_JUNK);
}
END_TEST

START_TEST(words_are_addresses_only_as_a_whole)
{
    uint64_t address;
    ck_assert(parse_address("0x401136", &address));
    ck_assert_uint_eq(address, 0x401136);
    ck_assert(!parse_address("", &address));
    ck_assert(!parse_address("401136 ", &address));
    ck_assert(!parse_address("-1", &address));
    ck_assert(!parse_address("main", &address));
}
END_TEST

/* ---- Lines ---- */

static struct line_reader reader;

/* Returns a pipe from which `size` bytes can be read, followed by the end of the file. */
static int pipe_with(const char *bytes, size_t size)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], bytes, size), (ssize_t)size);
    close(ends[1]);
    return ends[0];
}

static void expect_line(const char *expected, uint64_t number)
{
    const char *text;
    size_t length;
    ck_assert(line_reader_next(&reader, &text, &length));
    ck_assert_uint_eq(length, strlen(expected));
    ck_assert_int_eq(memcmp(text, expected, length), 0);
    ck_assert_uint_eq(reader.line_number, number);
}

static void expect_end(void)
{
    const char *text;
    size_t length;
    ck_assert(!line_reader_next(&reader, &text, &length));
    ck_assert_int_eq(reader.system_error, 0);
    close(reader.descriptor);
}

START_TEST(lines_are_handed_out_also_without_an_end)
{
    static const char text[] = "first\n\nthird\nlast";
    line_reader_open(&reader, pipe_with(text, sizeof text - 1));
    expect_line("first", 1);
    ck_assert(line_reader_has_line(&reader));
    expect_line("", 2);
    expect_line("third", 3);
    ck_assert(!line_reader_has_line(&reader));
    expect_line("last", 4);
    expect_end();
    line_reader_open(&reader, pipe_with("", 0));
    expect_end();
}
END_TEST

START_TEST(a_line_is_there_before_the_pipe_ends)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], "1\n2", 3), 3);
    line_reader_open(&reader, ends[0]);
    expect_line("1", 1);
    ck_assert(!line_reader_has_line(&reader));
    ck_assert_int_eq(write(ends[1], "3\n", 2), 2);
    expect_line("23", 2);
    close(ends[1]);
    expect_end();
}
END_TEST

/* Uses a file, because pipes do not hold so much. */
START_TEST(only_the_begin_of_a_line_beyond_the_buffer_is_given)
{
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    for (size_t i = 0; i < 3 * LINE_BYTES_MAX + 5; i++)
        ck_assert_int_ne(fputc('a', file), EOF);
    ck_assert_int_ge(fputs("\nnext\n", file), 0);
    rewind(file);
    line_reader_open(&reader, dup(fileno(file)));
    fclose(file);
    const char *text;
    size_t length;
    ck_assert(line_reader_next(&reader, &text, &length));
    ck_assert_uint_eq(length, LINE_BYTES_MAX);
    ck_assert_uint_eq(reader.line_number, 1);
    expect_line("next", 2);
    expect_end();
}
END_TEST

/* Checks lines that span the places at which the buffer is filled again. */
START_TEST(lines_are_whole_wherever_the_buffer_ends)
{
    enum { LINES = 40000 };
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < LINES; i++)
        ck_assert_int_gt(fprintf(file, "%x\n", i), 0);
    rewind(file);
    line_reader_open(&reader, dup(fileno(file)));
    fclose(file);
    for (unsigned i = 0; i < LINES; i++) {
        char expected[16];
        snprintf(expected, sizeof expected, "%x", i);
        expect_line(expected, i + 1);
    }
    expect_end();
}
END_TEST

START_TEST(reading_that_fails_is_told)
{
    const char *text;
    size_t length;
    line_reader_open(&reader, -1);
    ck_assert(!line_reader_next(&reader, &text, &length));
    ck_assert_int_ne(reader.system_error, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("addresses");
    TCase *lines = tcase_create("lines");
    tcase_add_test(lines, addresses_alone_are_hexadecimal);
    tcase_add_test(lines, what_perf_script_writes_of_samples_is_read);
    tcase_add_test(lines, frames_of_call_chains_are_told_by_their_tab);
    tcase_add_test(lines, lines_without_an_address_are_empty_or_junk);
    tcase_add_test(lines, mappings_are_read_as_the_kernel_and_perf_write_them);
    tcase_add_test(lines, words_are_addresses_only_as_a_whole);
    suite_add_tcase(suite, lines);
    TCase *reading = tcase_create("reading");
    tcase_add_test(reading, lines_are_handed_out_also_without_an_end);
    tcase_add_test(reading, a_line_is_there_before_the_pipe_ends);
    tcase_add_test(reading, only_the_begin_of_a_line_beyond_the_buffer_is_given);
    tcase_add_test(reading, lines_are_whole_wherever_the_buffer_ends);
    tcase_add_test(reading, reading_that_fails_is_told);
    suite_add_tcase(suite, reading);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
