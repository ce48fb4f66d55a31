/*
 * Tests of cairn_perf_open: what it writes for perf, read without perf. tests/check_perf.pl runs
 * perf.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm_engine_support.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ID = 7, CONTENTS_MAX = 1 << 16, PATH_MAX_BYTES = 128 };

static char folder[PATH_MAX_BYTES];
static char map_path[2 * PATH_MAX_BYTES];
static char dump_path[2 * PATH_MAX_BYTES];

static void create_folder(void)
{
    snprintf(folder, sizeof folder, "perf-test.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(map_path, sizeof map_path, "%s/perf-%ld.map", folder, (long)getpid());
    snprintf(dump_path, sizeof dump_path, "%s/jit-%ld.dump", folder, (long)getpid());
}

static void remove_folder(void)
{
    unlink(map_path);
    unlink(dump_path);
    rmdir(folder);
}

static cairn_perf *open_perf(enum cairn_perf_format format)
{
    const struct cairn_perf_options options = {.directory = folder, .format = format};
    struct cairn_error error = {0};
    cairn_perf *perf = NULL;
    create_folder();
    enum cairn_status status = cairn_perf_open(runtime, &options, &perf, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return perf;
}

static void close_perf(cairn_perf *perf)
{
    ck_assert_ok(cairn_perf_destroy(perf, NULL));
    remove_folder();
}

static char contents[CONTENTS_MAX];

static size_t read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    size_t size = fread(contents, 1, sizeof contents - 1, file);
    fclose(file);
    contents[size] = '\0';
    return size;
}

/* Returns the name in the last line of the map whose range contains `pc`; "" if there is none. */
static const char *name_at(uint64_t pc)
{
    static char found[256];
    read_file(map_path);
    found[0] = '\0';
    for (char *line = strtok(contents, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char *rest;
        uint64_t address = strtoull(line, &rest, 16);
        uint64_t size = strtoull(rest, &rest, 16);
        ck_assert(*rest == ' ' && rest[1] != '\0');
        if (pc - address < size)
            snprintf(found, sizeof found, "%s", rest + 1);
    }
    return found;
}

static void expect_name(const void *code, const char *name)
{
    ck_assert_str_eq(name_at((uintptr_t)code), name);
}

static cairn_site *find_site(uint64_t id)
{
    cairn_site *site = cairn_runtime_find_site(runtime, id, NULL);
    ck_assert_ptr_nonnull(site);
    return site;
}

/* ---- The map ---- */

START_TEST(a_function_has_its_name_before_and_after_opening)
{
    cairn_engine *engine = create_engine(parse_constant("early", 1));
    function *early = get(engine, "early");
    cairn_perf *perf = open_perf(CAIRN_PERF_MAP);
    add(engine, parse_constant("late", 2));
    function *late = get(engine, "late");
    expect_name((const void *)(uintptr_t)early, "early");
    expect_name((const void *)(uintptr_t)late, "late");
    ck_assert_int_eq(late(0), 2);
    close_perf(perf);
    cairn_engine_destroy(engine);
}
END_TEST

static void ignore_exit(struct cairn_exit_call *call, void *user)
{
    (void)call;
    (void)user;
}

START_TEST(exits_entries_and_veneers_have_names)
{
    cairn_exit *any;
    cairn_exit *own;
    cairn_entry *entry;
    char expected[64];
    cairn_perf *perf = open_perf(CAIRN_PERF_MAP);
    cairn_engine *engine = create_engine(parse_site("f", ID));
    function *f = get(engine, "f");
    struct cairn_site_description description;
    cairn_site_describe(find_site(ID), &description);
    uint64_t offset = description.address - (uintptr_t)f;
    ck_assert_ok(cairn_exit_create(runtime, ignore_exit, NULL, &any, NULL));
    expect_name(cairn_exit_target(any), "exit");
    ck_assert_ok(cairn_site_leave(find_site(ID), ignore_exit, NULL, CAIRN_SYNC, &own, NULL));
    snprintf(expected, sizeof expected, "exit@f+0x%" PRIx64, offset);
    expect_name(cairn_exit_target(own), expected);
    ck_assert_ok(
        cairn_site_call(find_site(ID), (const void *)(uintptr_t)add_hundred, CAIRN_SYNC, NULL));
    ck_assert_ok(cairn_entry_create(runtime, "f", NULL, (const void *)(uintptr_t)f, &entry, NULL));
    expect_name(cairn_entry_target(entry), "entry:f");
    read_file(map_path);
    snprintf(expected, sizeof expected, "veneer@f+0x%" PRIx64, offset);
    ck_assert_ptr_nonnull(strstr(contents, expected));
    cairn_entry_destroy(entry);
    cairn_exit_destroy(any);
    cairn_exit_destroy(own);
    close_perf(perf);
    cairn_engine_destroy(engine);
}
END_TEST

/* Returns what /proc/self/maps says of the mapping that contains an address. */
static const char *mapping_at(uint64_t address)
{
    static char found[256];
    read_file("/proc/self/maps");
    found[0] = '\0';
    for (char *line = strtok(contents, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char *rest;
        uint64_t begin = strtoull(line, &rest, 16);
        uint64_t end = strtoull(rest + 1, &rest, 16);
        if (address >= begin && address < end)
            snprintf(found, sizeof found, "%s", rest);
    }
    return found;
}

/* perf takes mappings of memory files for files, and does not look for names of code in them. */
static void expect_anonymous(const void *code)
{
    const char *mapping = mapping_at((uintptr_t)code);
    ck_assert_msg(*mapping != '\0' && strstr(mapping, "memfd") == NULL, "%s", mapping);
}

START_TEST(perf_sees_code_that_is_made_after_opening_also_if_other_code_exists)
{
    cairn_exit *early, *late;
    cairn_entry *entry;
    ck_assert_ok(cairn_exit_create(runtime, ignore_exit, NULL, &early, NULL));
    cairn_engine *engine = create_engine(parse_constant("early", 1));
    get(engine, "early");
    cairn_perf *perf = open_perf(CAIRN_PERF_MAP);
    add(engine, parse_constant("late", 2));
    function *f = get(engine, "late");
    ck_assert_int_eq(f(0), 2);
    expect_anonymous((const void *)(uintptr_t)f);
    ck_assert_ok(cairn_exit_create(runtime, ignore_exit, NULL, &late, NULL));
    expect_anonymous(cairn_exit_target(late));
    ck_assert_ok(cairn_entry_create(runtime, "e", NULL, (void *)(uintptr_t)f, &entry, NULL));
    expect_anonymous(cairn_entry_target(entry));
    cairn_entry_destroy(entry);
    cairn_exit_destroy(late);
    cairn_exit_destroy(early);
    close_perf(perf);
    cairn_engine_destroy(engine);
}
END_TEST

START_TEST(a_name_follows_the_reuse_of_its_addresses)
{
    enum { ROUNDS = 20 };
    cairn_perf *perf = open_perf(CAIRN_PERF_MAP);
    const void *first = NULL;
    unsigned reused = 0;
    for (int i = 0; i < ROUNDS; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        cairn_engine *engine = create_engine(parse_constant(name, i));
        const void *code = (const void *)(uintptr_t)get(engine, name);
        expect_name(code, name);
        reused += code == first;
        first = i == 0 ? code : first;
        cairn_engine_destroy(engine);
        cairn_runtime_quiesce(runtime);
    }
    ck_assert_uint_gt(reused, 0);
    close_perf(perf);
}
END_TEST

START_TEST(a_name_with_control_characters_takes_one_line)
{
    cairn_entry *entry;
    cairn_perf *perf = open_perf(CAIRN_PERF_MAP);
    ck_assert_ok(cairn_entry_create(runtime, "a\nb\033[2J", NULL,
                                    (const void *)(uintptr_t)add_hundred, &entry, NULL));
    expect_name(cairn_entry_target(entry), "entry:a?b?[2J");
    cairn_entry_destroy(entry);
    close_perf(perf);
}
END_TEST

START_TEST(a_forked_child_does_not_write_to_its_parents_map)
{
    cairn_perf *perf = open_perf(CAIRN_PERF_MAP);
    size_t before = read_file(map_path);
    pid_t child = fork();
    if (child == 0) {
        cairn_exit *created;
        _exit(cairn_exit_create(runtime, ignore_exit, NULL, &created, NULL) != CAIRN_OK);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(read_file(map_path), before);
    close_perf(perf);
}
END_TEST

/* ---- The dump ---- */

/* Counts the records of a kind in the dump, which must be complete. Sets `*last` to the last one.
 */
static unsigned count_dumped(uint32_t kind, const uint8_t **last)
{
    unsigned count = 0;
    size_t size = read_file(dump_path);
    const uint8_t *at = (const uint8_t *)contents;
    uint32_t words[2];
    memcpy(words, at, sizeof words);
    ck_assert_uint_eq(words[0], 0x4A695444);
    ck_assert_uint_eq(words[1], 1);
    for (size_t offset = 40; offset < size; offset += words[1]) {
        ck_assert_uint_ge(size - offset, 16);
        memcpy(words, at + offset, sizeof words);
        ck_assert_uint_ge(words[1], 16);
        ck_assert_uint_le(words[1], size - offset);
        if (words[0] != kind)
            continue;
        *last = at + offset;
        count++;
    }
    return count;
}

/* Returns the dump's first record of loaded code. */
static const uint8_t *first_code(void)
{
    size_t size = read_file(dump_path);
    const uint8_t *at = (const uint8_t *)contents;
    uint32_t words[2];
    for (size_t offset = 40; offset + sizeof words <= size; offset += words[1]) {
        memcpy(words, at + offset, sizeof words);
        if (words[0] == 0)
            return at + offset;
    }
    ck_abort_msg("the dump has no code");
    return NULL;
}

/* With a single mapping, the end of the function's last page follows as a record without a name. */
START_TEST(the_dump_has_the_code_and_the_name_of_a_function)
{
    const uint8_t *record = NULL;
    cairn_perf *perf = open_perf(CAIRN_PERF_DUMP);
    cairn_engine *engine = create_engine(parse_constant("answer", 42));
    uint64_t code = (uintptr_t)get(engine, "answer");
    uint64_t numbers[4];
    ck_assert_uint_ge(count_dumped(0, &record), 1);
    record = first_code();
    ck_assert_str_eq((const char *)record + 56, "answer");
    memcpy(numbers, record + 24, sizeof numbers);
    ck_assert_uint_eq(numbers[0], code);
    ck_assert_uint_eq(numbers[1], code);
    ck_assert_int_eq(memcmp(record + 56 + 7, (const void *)(uintptr_t)code, numbers[2]), 0);
    close_perf(perf);
    cairn_engine_destroy(engine);
}
END_TEST

static const char with_lines[] =
    "define i64 @lined(i64 %x) !dbg !4 {\n"
    "  %y = mul i64 %x, %x, !dbg !7\n"
    "  %z = xor i64 %y, %x, !dbg !8\n"
    "  ret i64 %z, !dbg !9\n}\n"
    "!llvm.dbg.cu = !{!0}\n!llvm.module.flags = !{!2, !3}\n"
    "!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, "
    "emissionKind: LineTablesOnly)\n"
    "!1 = !DIFile(filename: \"lined.src\", directory: \"/somewhere\")\n"
    "!2 = !{i32 2, !\"Debug Info Version\", i32 3}\n"
    "!3 = !{i32 2, !\"Dwarf Version\", i32 5}\n"
    "!4 = distinct !DISubprogram(name: \"lined\", file: !1, line: 40, "
    "type: !5, scopeLine: 40, unit: !0, spFlags: DISPFlagDefinition)\n"
    "!5 = !DISubroutineType(types: !6)\n!6 = !{}\n"
    "!7 = !DILocation(line: 41, scope: !4)\n"
    "!8 = !DILocation(line: 42, scope: !4)\n"
    "!9 = !DILocation(line: 43, scope: !4)\n";

START_TEST(the_dump_has_the_lines_of_a_function)
{
    const uint8_t *record = NULL;
    cairn_perf *perf = open_perf(CAIRN_PERF_DUMP);
    cairn_engine *engine = create_engine(support_parse(context, with_lines));
    uint64_t code = (uintptr_t)get(engine, "lined");
    uint64_t numbers[2];
    bool found[3] = {false};
    ck_assert_uint_eq(count_dumped(2, &record), 1);
    memcpy(numbers, record + 16, sizeof numbers);
    ck_assert_uint_eq(numbers[0], code);
    const uint8_t *at = record + 32;
    for (uint64_t i = 0; i < numbers[1]; i++) {
        uint64_t address;
        uint32_t line;
        memcpy(&address, at, sizeof address);
        memcpy(&line, at + 8, sizeof line);
        ck_assert_uint_lt(address - code, 64);
        ck_assert_str_eq((const char *)at + 16, "/somewhere/lined.src");
        if (line >= 41 && line <= 43)
            found[line - 41] = true;
        at += 16 + sizeof "/somewhere/lined.src";
    }
    ck_assert(found[0] && found[1] && found[2]);
    close_perf(perf);
    cairn_engine_destroy(engine);
}
END_TEST

START_TEST(a_second_dump_of_the_process_needs_another_folder)
{
    struct cairn_error error = {0};
    cairn_perf *second = NULL;
    cairn_perf *perf = open_perf(CAIRN_PERF_DUMP);
    const struct cairn_perf_options options = {.directory = folder, .format = CAIRN_PERF_DUMP};
    ck_assert_int_eq(cairn_perf_open(runtime, &options, &second, &error), CAIRN_ERROR_CONFLICT);
    assert_says(&error, "choose another folder");
    close_perf(perf);
}
END_TEST

/* ---- Errors ---- */

START_TEST(a_folder_that_does_not_exist_is_named)
{
    const struct cairn_perf_options options = {.directory = "no/such/folder"};
    struct cairn_error error = {0};
    cairn_perf *perf = NULL;
    ck_assert_int_eq(cairn_perf_open(runtime, &options, &perf, &error), CAIRN_ERROR_SYSTEM);
    assert_says(&error, "no/such/folder/perf-");
    ck_assert_ptr_null(perf);
}
END_TEST

START_TEST(a_link_in_place_of_the_map_is_refused)
{
    struct cairn_error error = {0};
    cairn_perf *perf = NULL;
    create_folder();
    const struct cairn_perf_options options = {.directory = folder};
    ck_assert_int_eq(symlink("/dev/null", map_path), 0);
    ck_assert_int_eq(cairn_perf_open(runtime, &options, &perf, &error), CAIRN_ERROR_SYSTEM);
    assert_says(&error, "is not a file of this user");
    remove_folder();
}
END_TEST

START_TEST(a_file_of_an_earlier_process_is_replaced)
{
    create_folder();
    FILE *file = fopen(map_path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("1000 1000 old\n", file);
    fclose(file);
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    ck_assert_int_eq(utimensat(AT_FDCWD, map_path, times, 0), 0);
    const struct cairn_perf_options options = {.directory = folder};
    cairn_perf *perf = NULL;
    ck_assert_ok(cairn_perf_open(runtime, &options, &perf, NULL));
    ck_assert_str_eq(name_at(0x1000), "");
    close_perf(perf);
}
END_TEST

/* SIGXFSZ has its default action, which ends the process. The files end with a complete record. */
START_TEST(a_full_disk_is_reported_at_the_end)
{
    struct cairn_error error = {0};
    cairn_perf *perf = open_perf(CAIRN_PERF_BOTH);
    enum { EXITS = 20 };
    cairn_exit *created[EXITS] = {NULL};
    enum cairn_status status = CAIRN_OK;
    struct rlimit before;
    size_t map_size = read_file(map_path);
    size_t dump_size = read_file(dump_path);
    ck_assert_uint_lt(map_size, dump_size);
    getrlimit(RLIMIT_FSIZE, &before);
    const struct rlimit full = {.rlim_cur = dump_size + 1, .rlim_max = RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &full); /* until it is reset, without Check, which writes to files */
    for (int i = 0; i < EXITS; i++)
        status |= cairn_exit_create(runtime, ignore_exit, NULL, &created[i], NULL);
    setrlimit(RLIMIT_FSIZE, &before);
    ck_assert_ok(status);
    ck_assert_int_eq(cairn_perf_destroy(perf, &error), CAIRN_ERROR_SYSTEM);
    assert_says(&error, "could not be written");
    assert_says(&error, "RLIMIT_FSIZE");
    ck_assert_uint_eq(read_file(dump_path), dump_size);
    size_t end = read_file(map_path);
    ck_assert(end == map_size || contents[end - 1] == '\n');
    for (int i = 0; i < EXITS; i++)
        cairn_exit_destroy(created[i]);
    remove_folder();
}
END_TEST

START_TEST(arguments_are_checked)
{
    cairn_perf *perf = NULL;
    ck_assert_int_eq(cairn_perf_open(NULL, NULL, &perf, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_perf_open(runtime, NULL, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_ok(cairn_perf_destroy(NULL, NULL));
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, a_function_has_its_name_before_and_after_opening);
    tcase_add_test(tests, exits_entries_and_veneers_have_names);
    tcase_add_test(tests, perf_sees_code_that_is_made_after_opening_also_if_other_code_exists);
    tcase_add_test(tests, a_name_follows_the_reuse_of_its_addresses);
    tcase_add_test(tests, a_name_with_control_characters_takes_one_line);
    tcase_add_test(tests, a_forked_child_does_not_write_to_its_parents_map);
    tcase_add_test(tests, the_dump_has_the_code_and_the_name_of_a_function);
    tcase_add_test(tests, the_dump_has_the_lines_of_a_function);
    tcase_add_test(tests, a_second_dump_of_the_process_needs_another_folder);
    tcase_add_test(tests, a_folder_that_does_not_exist_is_named);
    tcase_add_test(tests, a_link_in_place_of_the_map_is_refused);
    tcase_add_test(tests, a_file_of_an_earlier_process_is_replaced);
    tcase_add_test(tests, a_full_disk_is_reported_at_the_end);
    tcase_add_test(tests, arguments_are_checked);
}

int main(void) { return engine_main("perf", add_tests); }
