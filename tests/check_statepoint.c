/*
 * check_statepoint.c - tests of splitting statepoint records into their parts:
 * src/format/statepoint.c and src/record/table.c.
 *
 * The records are written by hand, and by every LLVM that is installed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "record/table.h"
#include "stackmap_support.h"

#include <cairn/object.h>
#include <cairn/statepoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- One record of a section and of a table ---- */

struct parsed {
    enum cairn_status status;
    struct cairn_statepoint statepoint;
    struct cairn_error error;
};

static struct parsed parse_in_section(const struct cairn_section *section)
{
    struct parsed parsed = {.statepoint = {.flags = 0x5A5A}};
    struct cairn_stackmap map;
    struct cairn_stackmap_record record = {0};
    size_t offset = 0;
    ck_assert_ok(cairn_stackmap_read(section, &offset, &map, NULL));
    ck_assert(cairn_stackmap_next(&map, &record));
    parsed.status = cairn_stackmap_statepoint(&map, &record, &parsed.statepoint, &parsed.error);
    ck_assert_int_eq(cairn_stackmap_statepoint(&map, &record, &parsed.statepoint, NULL),
                     parsed.status);
    if (parsed.status != CAIRN_OK)
        ck_assert_uint_eq(parsed.error.offset, record.offset);
    return parsed;
}

static struct parsed parse_in_table(const struct cairn_section *section)
{
    struct parsed parsed = {.statepoint = {.flags = 0x5A5A}};
    cairn_table *table = NULL;
    ck_assert_ok(cairn_table_create(section, 1, NULL, &table, NULL));
    const struct cairn_record record = {table, 0};
    parsed.status = cairn_record_statepoint(record, &parsed.statepoint, &parsed.error);
    ck_assert_int_eq(cairn_record_statepoint(record, &parsed.statepoint, NULL), parsed.status);
    if (parsed.status != CAIRN_OK)
        ck_assert_uint_eq(parsed.error.offset, 0x1000 + 0x20);
    cairn_table_destroy(table);
    return parsed;
}

static struct parsed parse(const struct cairn_location *locations, uint32_t count)
{
    static const uint64_t constant = UINT64_C(0x1234567890);
    static const struct cairn_stackmap_function function = {0x1000, 8, 1};
    const struct sample_record record = {
        .code_offset = 0x20, .location_count = count, .locations = locations};
    const struct sample_map map = {3, 0, 1, 1, 1, &function, &constant, &record};
    struct sample_section written = {.byte_order = CAIRN_LITTLE_ENDIAN};
    section_put_map(&written, &map);
    const struct cairn_section section = section_view(&written);
    struct parsed parsed = parse_in_section(&section);
    struct parsed again = parse_in_table(&section);
    ck_assert_int_eq(parsed.status, again.status);
    ck_assert_str_eq(parsed.error.message, again.error.message);
    ck_assert_mem_eq(&parsed.statepoint, &again.statepoint, sizeof parsed.statepoint);
    section_free(&written);
    return parsed;
}

/* ---- Locations ---- */

#define CONSTANT(value)                                                                            \
    {                                                                                              \
        .kind = CAIRN_LOCATION_CONSTANT, .size = 8, .offset = (value)                              \
    }
#define LARGE                                                                                      \
    {                                                                                              \
        .kind = CAIRN_LOCATION_CONSTANT_INDEX, .size = 8                                           \
    }
#define SPILL(place)                                                                               \
    {                                                                                              \
        .kind = CAIRN_LOCATION_INDIRECT, .size = 8, .dwarf = 7, .offset = (place)                  \
    }
#define SLOT(place)                                                                                \
    {                                                                                              \
        .kind = CAIRN_LOCATION_DIRECT, .size = 8, .dwarf = 7, .offset = (place)                    \
    }
#define REGISTER(number)                                                                           \
    {                                                                                              \
        .kind = CAIRN_LOCATION_REGISTER, .size = 8, .dwarf = (number)                              \
    }
#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof *(array)))

static void assert_statepoint(const struct parsed *parsed, struct cairn_statepoint expected)
{
    ck_assert_msg(parsed->status == CAIRN_OK, "%s", parsed->error.message);
    ck_assert_uint_eq(parsed->statepoint.calling_convention, expected.calling_convention);
    ck_assert_uint_eq(parsed->statepoint.flags, expected.flags);
    ck_assert_uint_eq(parsed->statepoint.first_deopt, expected.first_deopt);
    ck_assert_uint_eq(parsed->statepoint.deopt_count, expected.deopt_count);
    ck_assert_uint_eq(parsed->statepoint.first_pair, expected.first_pair);
    ck_assert_uint_eq(parsed->statepoint.pair_count, expected.pair_count);
    ck_assert_uint_eq(parsed->statepoint.first_alloca, expected.first_alloca);
    ck_assert_uint_eq(parsed->statepoint.alloca_count, expected.alloca_count);
}

START_TEST(a_bare_statepoint_is_three_constants)
{
    static const struct cairn_location locations[] = {CONSTANT(13), CONSTANT(1), CONSTANT(0)};
    struct parsed parsed = parse(locations, COUNT(locations));
    assert_statepoint(&parsed, (struct cairn_statepoint){.calling_convention = 13,
                                                         .flags = 1,
                                                         .first_deopt = 3,
                                                         .first_pair = 3,
                                                         .first_alloca = 3});
}
END_TEST

START_TEST(deopt_values_pairs_and_allocas_are_told_apart)
{
    /* Deopt values may be of every kind, also Direct, and a pair may be a constant null. */
    static const struct cairn_location locations[] = {
        CONSTANT(8), LARGE,     CONSTANT(3), SLOT(0),     REGISTER(3), LARGE,
        SPILL(8),    SPILL(16), CONSTANT(0), CONSTANT(0), SLOT(24),    SLOT(32),
    };
    struct parsed parsed = parse(locations, COUNT(locations));
    assert_statepoint(&parsed, (struct cairn_statepoint){.calling_convention = 8,
                                                         .flags = UINT64_C(0x1234567890),
                                                         .first_deopt = 3,
                                                         .deopt_count = 3,
                                                         .first_pair = 6,
                                                         .pair_count = 2,
                                                         .first_alloca = 10,
                                                         .alloca_count = 2});
}
END_TEST

START_TEST(pairs_may_be_in_registers)
{
    static const struct cairn_location locations[] = {CONSTANT(0), CONSTANT(0), CONSTANT(0),
                                                      REGISTER(3), REGISTER(12)};
    struct parsed parsed = parse(locations, COUNT(locations));
    assert_statepoint(&parsed,
                      (struct cairn_statepoint){
                          .first_deopt = 3, .first_pair = 3, .pair_count = 1, .first_alloca = 5});
}
END_TEST

/* ---- Records that are not statepoints ---- */

struct refused {
    uint32_t count;
    struct cairn_location locations[6];
    const char *sentence;
};

static const struct refused refused[] = {
    {0, {CONSTANT(0)}, "a statepoint begins with three constants; the record has 0 locations"},
    {2,
     {CONSTANT(0), CONSTANT(0)},
     "a statepoint begins with three constants; the record has 2 locations"},
    {3,
     {SPILL(8), CONSTANT(0), CONSTANT(0)},
     "location 0, a statepoint's calling convention, is Indirect and not a constant"},
    {3,
     {CONSTANT(0), REGISTER(1), CONSTANT(0)},
     "location 1, a statepoint's flags, is Register and not a constant"},
    {3,
     {CONSTANT(0), CONSTANT(0), SLOT(1)},
     "location 2, a statepoint's number of deopt values, is Direct and not a constant"},
    {4,
     {CONSTANT(0), CONSTANT(0), CONSTANT(2), SPILL(8)},
     "calling convention 0 and 2 deopt values do not fit a record of 4 locations"},
    {4,
     {CONSTANT(0), CONSTANT(0), CONSTANT(-1), SPILL(8)},
     "calling convention 0 and 18446744073709551615 deopt values do not fit a record of 4 "
     "locations"},
    {3,
     {LARGE, CONSTANT(0), CONSTANT(0)},
     "calling convention 78187493520 and 0 deopt values do not fit a record of 3 locations"},
    {5,
     {CONSTANT(0), CONSTANT(0), CONSTANT(0), SPILL(8), SLOT(8)},
     "1 locations follow the statepoint's deopt values: base and derived pointers come in pairs"},
};

START_TEST(records_that_are_not_statepoints_are_refused)
{
    struct parsed parsed = parse(refused[_i].locations, refused[_i].count);
    ck_assert_int_eq(parsed.status, CAIRN_ERROR_CORRUPT);
    ck_assert_str_eq(parsed.error.message, refused[_i].sentence);
    ck_assert_uint_eq(parsed.statepoint.flags, 0x5A5A);
}
END_TEST

START_TEST(arguments_that_are_missing_are_refused)
{
    struct cairn_stackmap map = {0};
    struct cairn_stackmap_record record = {0};
    struct cairn_statepoint statepoint;
    ck_assert_int_eq(cairn_stackmap_statepoint(NULL, &record, &statepoint, NULL),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_stackmap_statepoint(&map, NULL, &statepoint, NULL),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_stackmap_statepoint(&map, &record, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_record_statepoint((struct cairn_record){NULL, 0}, &statepoint, NULL),
                     CAIRN_ERROR_ARGUMENT);
}
END_TEST

/* ---- Records that LLVM writes ---- */

struct compiler {
    int version;
    const char *target;
};

static const struct compiler compilers[] = {
    {14, "x86_64-linux-gnu"},  {14, "aarch64-linux-gnu"}, {15, "x86_64-linux-gnu"},
    {15, "aarch64-linux-gnu"}, {16, "x86_64-linux-gnu"},  {16, "aarch64-linux-gnu"},
    {17, "x86_64-linux-gnu"},  {17, "aarch64-linux-gnu"}, {18, "x86_64-linux-gnu"},
    {18, "aarch64-linux-gnu"}, {19, "x86_64-linux-gnu"},  {19, "aarch64-linux-gnu"},
    {22, "x86_64-linux-gnu"},  {22, "aarch64-linux-gnu"},
};

/* False if that LLVM is not installed. */
static bool compile(const struct compiler *compiler, const char *object)
{
    const char *source = getenv("srcdir");
    char program[64];
    char triple[64];
    char sample[512];
    snprintf(program, sizeof program, "/usr/lib/llvm-%d/bin/llc", compiler->version);
    if (access(program, X_OK) != 0)
        return false;
    snprintf(triple, sizeof triple, "-mtriple=%s", compiler->target);
    snprintf(sample, sizeof sample, "%s/tests/samples/%s.ll", source == NULL ? "." : source,
             compiler->version == 14 ? "statepoint-14" : "statepoint");
    pid_t child = fork();
    if (child == 0) {
        execl(program, program, triple, "-filetype=obj", "-o", object, sample, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(status == 0, "%s %s %s", program, triple, sample);
    return true;
}

static void assert_kinds(struct cairn_record record, uint32_t first, uint32_t count,
                         enum cairn_location_kind kind)
{
    for (uint32_t i = 0; i < count; i++)
        ck_assert_int_eq(cairn_record_location(record, first + i).kind, kind);
}

static void assert_compiled(const cairn_table *table)
{
    struct cairn_record record;
    struct cairn_statepoint statepoint;
    ck_assert_uint_eq(table_find_id(table, 8, &record, 1), 1);
    ck_assert_ok(cairn_record_statepoint(record, &statepoint, NULL));
    ck_assert_uint_eq(statepoint.flags, 2);
    ck_assert_uint_eq(statepoint.deopt_count + statepoint.pair_count + statepoint.alloca_count, 0);

    ck_assert_uint_eq(table_find_id(table, 7, &record, 1), 1);
    ck_assert_ok(cairn_record_statepoint(record, &statepoint, NULL));
    ck_assert_uint_eq(statepoint.flags, 0);
    ck_assert_uint_eq(statepoint.deopt_count, 5);
    ck_assert_uint_eq(statepoint.pair_count, 2);
    ck_assert_uint_eq(statepoint.alloca_count, 2);
    uint32_t deopt = statepoint.first_deopt;
    assert_kinds(record, deopt, 1, CAIRN_LOCATION_INDIRECT);
    ck_assert_uint_eq(cairn_record_location(record, deopt + 1).constant, 81985529216486895);
    assert_kinds(record, deopt + 2, 1, CAIRN_LOCATION_INDIRECT);
    ck_assert_int_eq((int64_t)cairn_record_location(record, deopt + 3).constant, -3);
    assert_kinds(record, deopt + 4, 1, CAIRN_LOCATION_DIRECT);
    assert_kinds(record, statepoint.first_pair, 4, CAIRN_LOCATION_INDIRECT);
    assert_kinds(record, statepoint.first_alloca, 2, CAIRN_LOCATION_DIRECT);
}

START_TEST(statepoints_of_every_llvm_are_taken_apart)
{
    char object_path[] = "statepoint-XXXXXX";
    int file = mkstemp(object_path);
    ck_assert_int_ge(file, 0);
    close(file);
    if (!compile(&compilers[_i], object_path)) {
        printf("LLVM %d is not installed: not tested with it\n", compilers[_i].version);
        unlink(object_path);
        return;
    }
    cairn_object *object = NULL;
    struct cairn_object_section section = {0};
    cairn_table *table = NULL;
    ck_assert_ok(cairn_object_open(object_path, NULL, &object, NULL));
    ck_assert_ok(cairn_object_next_section(
        object, &(struct cairn_object_filter){.name = CAIRN_OBJECT_STACKMAPS}, &section, NULL));
    ck_assert_ok(cairn_table_create(&section.contents, 1, NULL, &table, NULL));
    assert_compiled(table);
    cairn_table_destroy(table);
    cairn_object_destroy(object);
    unlink(object_path);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("statepoint");
    TCase *cases = tcase_create("statepoint");
    tcase_add_test(cases, a_bare_statepoint_is_three_constants);
    tcase_add_test(cases, deopt_values_pairs_and_allocas_are_told_apart);
    tcase_add_test(cases, pairs_may_be_in_registers);
    tcase_add_loop_test(cases, records_that_are_not_statepoints_are_refused, 0, COUNT(refused));
    tcase_add_test(cases, arguments_that_are_missing_are_refused);
    tcase_add_loop_test(cases, statepoints_of_every_llvm_are_taken_apart, 0, COUNT(compilers));
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
