/*
 * Tests of finding the function at an address, compared with a search through all symbols.
 *
 * SPDX-License-Identifier: MIT
 */
#include "allocator_support.h"
#include "object_sample.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CODE_BYTES = 64, PROGRAM_BASE = 0x1000 };

static const struct {
    uint16_t machine;
    uint16_t type;
    enum cairn_byte_order byte_order;
} files[] = {
    {EM_X86_64, ET_REL, CAIRN_LITTLE_ENDIAN}, {EM_X86_64, ET_EXEC, CAIRN_LITTLE_ENDIAN},
    {EM_S390, ET_REL, CAIRN_BIG_ENDIAN},      {EM_S390, ET_EXEC, CAIRN_BIG_ENDIAN},
    {EM_PPC64, ET_EXEC, CAIRN_BIG_ENDIAN},
};
enum { FILE_COUNT = sizeof files / sizeof *files };

static uint64_t base_of(const struct sample *sample)
{
    return sample->file.type == ET_REL ? 0 : PROGRAM_BASE;
}

static void begin(struct sample *sample, int kind)
{
    sample_begin(sample, files[kind].machine, files[kind].type, files[kind].byte_order);
}

static void add(struct sample *sample, uint32_t name, unsigned binding, unsigned type,
                uint64_t offset, uint64_t size)
{
    sample_add_symbol(sample, name, binding, type, sample->text, base_of(sample) + offset);
    sample_set_symbol_size(sample, size);
}

static cairn_object *open_finished(struct sample *sample)
{
    sample_add_symbol_section(sample, SHT_SYMTAB);
    sample_finish(sample);
    return sample_open(sample);
}

/* "" without a name. */
static const char *name_at(cairn_object *object, const struct sample *sample, uint64_t offset)
{
    struct cairn_object_function function;
    struct cairn_error error;
    enum cairn_status status = cairn_object_find_function(
        object, sample->text, base_of(sample) + offset, &function, &error);
    if (status == CAIRN_ERROR_NOT_FOUND)
        return "";
    ck_assert_int_eq(status, CAIRN_OK);
    ck_assert_uint_eq(function.section, sample->file.type == ET_REL ? sample->text : 0);
    ck_assert_uint_le(function.entry, base_of(sample) + offset);
    return function.name;
}

/* ---- Rules, one by one ---- */

START_TEST(function_holds_the_bytes_of_its_size)
{
    static struct sample sample;
    begin(&sample, _i);
    add(&sample, NAME_FIRST, STB_GLOBAL, STT_FUNC, 0x10, 12);
    cairn_object *object = open_finished(&sample);
    ck_assert_str_eq(name_at(object, &sample, 0x0f), "");
    ck_assert_str_eq(name_at(object, &sample, 0x10), "first");
    ck_assert_str_eq(name_at(object, &sample, 0x1b), "first");
    ck_assert_str_eq(name_at(object, &sample, 0x1c), "");
    struct cairn_object_function function;
    ck_assert_int_eq(
        cairn_object_find_function(object, sample.text, base_of(&sample) + 0x1b, &function, NULL),
        CAIRN_OK);
    ck_assert_uint_eq(function.size, 12);
    ck_assert_uint_eq(function.entry, base_of(&sample) + 0x10);
    cairn_object_destroy(object);
}
END_TEST

START_TEST(function_without_a_size_goes_on_to_the_next_one_or_the_sections_end)
{
    static struct sample sample;
    begin(&sample, _i);
    add(&sample, NAME_FIRST, STB_GLOBAL, STT_FUNC, 0x10, 0);
    add(&sample, NAME_SECOND, STB_GLOBAL, STT_NOTYPE, 0x20, 0);
    cairn_object *object = open_finished(&sample);
    ck_assert_str_eq(name_at(object, &sample, 0x1f), "first");
    ck_assert_str_eq(name_at(object, &sample, 0x20), "second");
    ck_assert_str_eq(name_at(object, &sample, CODE_BYTES - 1), "second");
    ck_assert_str_eq(name_at(object, &sample, CODE_BYTES), "");
    ck_assert_str_eq(name_at(object, &sample, UINT64_MAX - base_of(&sample)), "");
    cairn_object_destroy(object);
}
END_TEST

START_TEST(labels_inside_of_a_function_are_none)
{
    static struct sample sample;
    begin(&sample, _i);
    add(&sample, NAME_FIRST, STB_LOCAL, STT_FUNC, 0x10, 0x10);
    add(&sample, NAME_SECOND, STB_GLOBAL, STT_NOTYPE, 0x18, 0);
    add(&sample, NAME_LOCAL, STB_LOCAL, STT_FUNC, 0x1a, 0);
    add(&sample, NAME_LOCAL, STB_GLOBAL, STT_NOTYPE, 0x10, 0);
    cairn_object *object = open_finished(&sample);
    for (uint64_t offset = 0x10; offset < 0x20; offset++)
        ck_assert_str_eq(name_at(object, &sample, offset), "first");
    ck_assert_str_eq(name_at(object, &sample, 0x20), "");
    cairn_object_destroy(object);
}
END_TEST

START_TEST(innermost_function_is_found)
{
    static struct sample sample;
    begin(&sample, _i);
    add(&sample, NAME_FIRST, STB_GLOBAL, STT_FUNC, 0, 0x30);
    add(&sample, NAME_SECOND, STB_GLOBAL, STT_FUNC, 0x10, 8);
    add(&sample, NAME_LOCAL, STB_LOCAL, STT_FUNC, 0x10, 16);
    cairn_object *object = open_finished(&sample);
    ck_assert_str_eq(name_at(object, &sample, 0x0f), "first");
    ck_assert_str_eq(name_at(object, &sample, 0x17), "second");
    ck_assert_str_eq(name_at(object, &sample, 0x18), "local");
    ck_assert_str_eq(name_at(object, &sample, 0x20), "first");
    ck_assert_str_eq(name_at(object, &sample, 0x2f), "first");
    ck_assert_str_eq(name_at(object, &sample, 0x30), "");
    cairn_object_destroy(object);
}
END_TEST

START_TEST(symbols_of_data_hold_no_code)
{
    static struct sample sample;
    struct cairn_object_function function;
    begin(&sample, _i);
    uint64_t address = sample.file.type == ET_REL ? 0 : 2 * PROGRAM_BASE;
    sample_add_symbol(&sample, NAME_FIRST, STB_GLOBAL, STT_FUNC, sample.stackmaps, address);
    sample_set_symbol_size(&sample, 8);
    sample_add_symbol(&sample, NAME_SECOND, STB_GLOBAL, STT_NOTYPE, SHN_ABS, base_of(&sample));
    cairn_object *object = open_finished(&sample);
    ck_assert_int_eq(cairn_object_find_function(object, sample.stackmaps, address, &function, NULL),
                     CAIRN_ERROR_NOT_FOUND);
    ck_assert_str_eq(name_at(object, &sample, 0), "");
    cairn_object_destroy(object);
}
END_TEST

START_TEST(function_behind_a_descriptor_is_found)
{
    static struct sample sample;
    struct cairn_object_function function;
    sample_begin(&sample, EM_PPC64, ET_EXEC, CAIRN_BIG_ENDIAN);
    uint32_t opd = elf_add(&sample.file, (struct elf_section){.name = ".opd",
                                                              .type = SHT_PROGBITS,
                                                              .flags = SHF_ALLOC | SHF_WRITE,
                                                              .address = 0x3000,
                                                              .bytes = sample.descriptors,
                                                              .size = 48});
    elf_put64(sample.descriptors, CAIRN_BIG_ENDIAN, PROGRAM_BASE + 0x10);
    elf_put64(sample.descriptors + 24, CAIRN_BIG_ENDIAN, PROGRAM_BASE + 0x20);
    sample_add_symbol(&sample, NAME_FIRST, STB_GLOBAL, STT_FUNC, opd, 0x3000);
    sample_add_symbol(&sample, NAME_SECOND, STB_GLOBAL, STT_FUNC, opd, 0x3018);
    sample_set_symbol_size(&sample, 8);
    cairn_object *object = open_finished(&sample);
    ck_assert_str_eq(name_at(object, &sample, 0x1f), "first");
    ck_assert_str_eq(name_at(object, &sample, 0x27), "second");
    ck_assert_str_eq(name_at(object, &sample, 0x28), "");
    ck_assert_int_eq(cairn_object_find_function(object, 0, 0x3000, &function, NULL),
                     CAIRN_ERROR_NOT_FOUND);
    cairn_object_destroy(object);
}
END_TEST

START_TEST(arguments_are_checked)
{
    static struct sample sample;
    struct cairn_object_function function;
    struct cairn_error error;
    begin(&sample, 0);
    cairn_object *object = open_finished(&sample);
    ck_assert_int_eq(cairn_object_find_function(NULL, 0, 0, &function, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_object_find_function(object, 0, 0, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_object_find_function(object, sample.text, 0x1c, &function, &error),
                     CAIRN_ERROR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(error.message, "0x1c"));
    cairn_object_destroy(object);
}
END_TEST

START_TEST(each_allocation_may_fail)
{
    static struct sample sample;
    struct cairn_object_function function;
    begin(&sample, _i);
    add(&sample, NAME_FIRST, STB_GLOBAL, STT_FUNC, 0, 0x30);
    add(&sample, NAME_SECOND, STB_GLOBAL, STT_FUNC, 0x10, 8);
    cairn_object_destroy(open_finished(&sample));
    enum cairn_status status = CAIRN_ERROR_MEMORY;
    size_t count = 0;
    for (size_t fail_at = 1; status == CAIRN_ERROR_MEMORY; fail_at++) {
        struct support_allocator counter = {.fail_at = fail_at};
        struct cairn_allocator allocator = support_counting(&counter);
        const struct cairn_object_options options = {.allocator = &allocator};
        cairn_object *object = NULL;
        status = cairn_object_open_memory(sample.bytes, sample.size, &options, &object, NULL);
        uint64_t address = base_of(&sample) + 0x11;
        if (status == CAIRN_OK)
            status = cairn_object_find_function(object, sample.text, address, &function, NULL);
        if (object != NULL && status == CAIRN_ERROR_MEMORY) {
            /* An error is not cached: the next call succeeds. */
            ck_assert_int_eq(
                cairn_object_find_function(object, sample.text, address, &function, NULL),
                CAIRN_OK);
            ck_assert_str_eq(function.name, "second");
        }
        cairn_object_destroy(object);
        ck_assert_uint_eq(counter.outstanding_bytes, 0);
        count = fail_at;
    }
    ck_assert_int_eq(status, CAIRN_OK);
    ck_assert_uint_ge(count, 6);
}
END_TEST

/* ---- At random ---- */

struct model {
    uint64_t start, size;
    unsigned binding;
    bool is_function;
    uint32_t name;
};

enum { SYMBOL_COUNT_MAX = 14 };

static const uint32_t names[SYMBOL_COUNT_MAX] = {1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 14, 15, 16};

static bool has_size(const struct model *model) { return model->is_function && model->size > 0; }

static bool covers(const struct model *model, uint64_t offset)
{
    return has_size(model) && model->start <= offset && offset - model->start < model->size;
}

static unsigned rank(const struct model *model)
{
    unsigned rank = model->binding == STB_GLOBAL ? 0 : model->binding == STB_WEAK ? 1 : 2;
    return rank + (model->is_function ? 0 : 10);
}

/* Finds the function with a size that begins last. If several begin there, it is the one with the
 * best name if that one covers the address, or else the longest. */
static const struct model *find_sized(const struct model *models, size_t count, uint64_t offset)
{
    const struct model *inner = NULL;
    for (size_t i = 0; i < count; i++)
        if (covers(&models[i], offset) && (inner == NULL || models[i].start > inner->start))
            inner = &models[i];
    if (inner == NULL)
        return NULL;
    const struct model *best = NULL;
    const struct model *longest = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct model *model = &models[i];
        if (!has_size(model) || model->start != inner->start)
            continue;
        if (best == NULL || rank(model) < rank(best))
            best = model;
        if (longest == NULL || model->size > longest->size)
            longest = model;
    }
    return best != NULL && covers(best, offset) ? best : longest;
}

/* Finds the symbol before the address if it begins outside of all functions with a size. */
static const struct model *find_unsized(const struct model *models, size_t count, uint64_t offset)
{
    const struct model *before = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct model *model = &models[i];
        if (model->start > offset)
            continue;
        if (before == NULL || model->start > before->start ||
            (model->start == before->start && rank(model) < rank(before)))
            before = model;
    }
    for (size_t i = 0; i < count && before != NULL; i++)
        if (covers(&models[i], before->start))
            return NULL;
    if (before != NULL && before->size > 0 && offset - before->start >= before->size)
        return NULL;
    return before;
}

static const char *expected_name(const struct model *models, size_t count, uint64_t offset)
{
    static const char strings[] = "\0first\0second\0local";
    const struct model *found = NULL;
    if (offset < CODE_BYTES)
        found = find_sized(models, count, offset);
    if (found == NULL && offset < CODE_BYTES)
        found = find_unsized(models, count, offset);
    return found == NULL ? "" : strings + found->name;
}

static size_t make_models(struct model *models, unsigned *seed)
{
    static const unsigned bindings[] = {STB_LOCAL, STB_GLOBAL, STB_WEAK};
    size_t count = 1 + (size_t)rand_r(seed) % SYMBOL_COUNT_MAX;
    unsigned spread = 1 + (unsigned)rand_r(seed) % CODE_BYTES;
    for (size_t i = 0; i < count; i++) {
        models[i].start = (unsigned)rand_r(seed) % spread;
        models[i].size = (unsigned)rand_r(seed) % 3 == 0
                             ? 0
                             : (unsigned)rand_r(seed) % (CODE_BYTES + 1 - models[i].start);
        models[i].binding = bindings[rand_r(seed) % 3];
        models[i].is_function = rand_r(seed) % 4 != 0;
        models[i].name = names[i];
    }
    return count;
}

START_TEST(random_functions_are_found_as_by_a_search_of_all)
{
    static struct sample sample;
    const char *given = getenv("CAIRN_TEST_SEED");
    unsigned seed = given != NULL ? (unsigned)strtoul(given, NULL, 0) : (unsigned)time(NULL);
    fprintf(stderr, "seed %u (CAIRN_TEST_SEED repeats it)\n", seed);
    for (int round = 0; round < 2000; round++) {
        struct model models[SYMBOL_COUNT_MAX];
        begin(&sample, round % FILE_COUNT);
        size_t count = make_models(models, &seed);
        for (size_t i = 0; i < count; i++)
            add(&sample, models[i].name, models[i].binding,
                models[i].is_function ? STT_FUNC : STT_NOTYPE, models[i].start, models[i].size);
        cairn_object *object = open_finished(&sample);
        for (uint64_t offset = 0; offset <= CODE_BYTES; offset++)
            ck_assert_msg(
                strcmp(name_at(object, &sample, offset), expected_name(models, count, offset)) == 0,
                "round %d, offset %u: %s instead of %s", round, (unsigned)offset,
                name_at(object, &sample, offset), expected_name(models, count, offset));
        cairn_object_destroy(object);
    }
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("functions of objects");
    TCase *rules = tcase_create("rules");
    tcase_add_loop_test(rules, function_holds_the_bytes_of_its_size, 0, FILE_COUNT);
    tcase_add_loop_test(rules, function_without_a_size_goes_on_to_the_next_one_or_the_sections_end,
                        0, FILE_COUNT);
    tcase_add_loop_test(rules, labels_inside_of_a_function_are_none, 0, FILE_COUNT);
    tcase_add_loop_test(rules, innermost_function_is_found, 0, FILE_COUNT);
    tcase_add_loop_test(rules, symbols_of_data_hold_no_code, 0, FILE_COUNT);
    tcase_add_test(rules, function_behind_a_descriptor_is_found);
    tcase_add_test(rules, arguments_are_checked);
    tcase_add_loop_test(rules, each_allocation_may_fail, 0, FILE_COUNT);
    tcase_add_test(rules, random_functions_are_found_as_by_a_search_of_all);
    tcase_set_timeout(rules, 120);
    suite_add_tcase(suite, rules);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(make_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
