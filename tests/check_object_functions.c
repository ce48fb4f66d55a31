/*
 * Tests of finding the function at an address, compared with a search through all symbols.
 *
 * SPDX-License-Identifier: MIT
 */
#include "allocator_support.h"
#include "object_sample.h"

#include <stdlib.h>
#include <string.h>

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

static struct sample sample;
static cairn_object *object; /* closed after each test */

static void set_up(void) { object = NULL; }
static void tear_down(void) { cairn_object_destroy(object); }

static uint64_t base(void) { return sample.file.type == ET_REL ? 0 : PROGRAM_BASE; }

static void begin(int kind)
{
    sample_begin(&sample, files[kind].machine, files[kind].type, files[kind].byte_order);
}

static void add(uint32_t name, unsigned binding, unsigned type, uint64_t offset, uint64_t size)
{
    sample_add_symbol(&sample, name, binding, type, sample.text, base() + offset);
    sample_set_symbol_size(&sample, size);
}

static void open_finished(void)
{
    sample_add_symbol_section(&sample, SHT_SYMTAB);
    sample_finish(&sample);
    object = sample_open(&sample);
}

/* Returns the name of the function at `offset` of the code, or "". */
static const char *name_at(uint64_t offset)
{
    struct cairn_object_function function;
    enum cairn_status status =
        cairn_object_find_function(object, sample.text, base() + offset, &function, NULL);
    if (status == CAIRN_ERROR_NOT_FOUND)
        return "";
    ck_assert_int_eq(status, CAIRN_OK);
    ck_assert_uint_eq(function.section, sample.file.type == ET_REL ? sample.text : 0);
    ck_assert_uint_le(function.entry, base() + offset);
    return function.name;
}

/* ---- Rules, one by one ---- */

START_TEST(function_contains_the_bytes_of_its_size)
{
    begin(_i);
    add(NAME_FIRST, STB_GLOBAL, STT_FUNC, 0x10, 12);
    open_finished();
    ck_assert_str_eq(name_at(0x0f), "");
    ck_assert_str_eq(name_at(0x10), "first");
    ck_assert_str_eq(name_at(0x1b), "first");
    ck_assert_str_eq(name_at(0x1c), "");
    struct cairn_object_function function;
    ck_assert_int_eq(
        cairn_object_find_function(object, sample.text, base() + 0x1b, &function, NULL), CAIRN_OK);
    ck_assert_uint_eq(function.size, 12);
    ck_assert_uint_eq(function.entry, base() + 0x10);
}
END_TEST

START_TEST(function_without_a_size_ends_at_the_next_symbol_or_section_end)
{
    begin(_i);
    add(NAME_FIRST, STB_GLOBAL, STT_FUNC, 0x10, 0);
    add(NAME_SECOND, STB_GLOBAL, STT_NOTYPE, 0x20, 0);
    open_finished();
    ck_assert_str_eq(name_at(0x1f), "first");
    ck_assert_str_eq(name_at(0x20), "second");
    ck_assert_str_eq(name_at(CODE_BYTES - 1), "second");
    ck_assert_str_eq(name_at(CODE_BYTES), "");
    ck_assert_str_eq(name_at(UINT64_MAX - base()), "");
}
END_TEST

START_TEST(labels_inside_of_a_function_are_ignored)
{
    begin(_i);
    add(NAME_FIRST, STB_LOCAL, STT_FUNC, 0x10, 0x10);
    add(NAME_SECOND, STB_GLOBAL, STT_NOTYPE, 0x18, 0);
    add(NAME_LOCAL, STB_LOCAL, STT_FUNC, 0x1a, 0);
    add(NAME_LOCAL, STB_GLOBAL, STT_NOTYPE, 0x10, 0);
    open_finished();
    for (uint64_t offset = 0x10; offset < 0x20; offset++)
        ck_assert_str_eq(name_at(offset), "first");
    ck_assert_str_eq(name_at(0x20), "");
}
END_TEST

START_TEST(innermost_function_is_found)
{
    begin(_i);
    add(NAME_FIRST, STB_GLOBAL, STT_FUNC, 0, 0x30);
    add(NAME_SECOND, STB_GLOBAL, STT_FUNC, 0x10, 8);
    add(NAME_LOCAL, STB_LOCAL, STT_FUNC, 0x10, 16);
    open_finished();
    ck_assert_str_eq(name_at(0x0f), "first");
    ck_assert_str_eq(name_at(0x17), "second");
    ck_assert_str_eq(name_at(0x18), "local");
    ck_assert_str_eq(name_at(0x20), "first");
    ck_assert_str_eq(name_at(0x2f), "first");
    ck_assert_str_eq(name_at(0x30), "");
}
END_TEST

START_TEST(symbols_of_data_are_not_functions)
{
    struct cairn_object_function function;
    begin(_i);
    uint64_t address = sample.file.type == ET_REL ? 0 : 2 * PROGRAM_BASE;
    sample_add_symbol(&sample, NAME_FIRST, STB_GLOBAL, STT_FUNC, sample.stackmaps, address);
    sample_set_symbol_size(&sample, 8);
    sample_add_symbol(&sample, NAME_SECOND, STB_GLOBAL, STT_NOTYPE, SHN_ABS, base());
    open_finished();
    ck_assert_int_eq(cairn_object_find_function(object, sample.stackmaps, address, &function, NULL),
                     CAIRN_ERROR_NOT_FOUND);
    ck_assert_str_eq(name_at(0), "");
}
END_TEST

START_TEST(function_of_a_descriptor_is_found)
{
    struct cairn_object_function function;
    sample_descriptors(&sample, ET_EXEC);
    sample_set_symbol_size(&sample, 8);
    open_finished();
    ck_assert_str_eq(name_at(0x1f), "first");
    ck_assert_str_eq(name_at(0x27), "second");
    ck_assert_str_eq(name_at(0x28), "");
    ck_assert_int_eq(cairn_object_find_function(object, 0, 0x3000, &function, NULL),
                     CAIRN_ERROR_NOT_FOUND);
}
END_TEST

START_TEST(arguments_are_checked)
{
    struct cairn_object_function function;
    struct cairn_error error;
    begin(0);
    open_finished();
    ck_assert_int_eq(cairn_object_find_function(NULL, 0, 0, &function, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_object_find_function(object, 0, 0, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_object_find_function(object, sample.text, 0x1c, &function, &error),
                     CAIRN_ERROR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(error.message, "0x1c"));
}
END_TEST

START_TEST(each_allocation_may_fail)
{
    struct cairn_object_function function;
    begin(_i);
    add(NAME_FIRST, STB_GLOBAL, STT_FUNC, 0, 0x30);
    add(NAME_SECOND, STB_GLOBAL, STT_FUNC, 0x10, 8);
    open_finished();
    enum cairn_status status = CAIRN_ERROR_MEMORY;
    size_t count = 0;
    for (size_t fail_at = 1; status == CAIRN_ERROR_MEMORY; fail_at++) {
        struct support_allocator counter = {.fail_at = fail_at};
        struct cairn_allocator allocator = support_counting(&counter);
        const struct cairn_object_options options = {.allocator = &allocator};
        tear_down();
        object = NULL;
        status = cairn_object_open_memory(sample.bytes, sample.size, &options, &object, NULL);
        uint64_t address = base() + 0x11;
        if (status == CAIRN_OK)
            status = cairn_object_find_function(object, sample.text, address, &function, NULL);
        if (object != NULL && status == CAIRN_ERROR_MEMORY) {
            /* An error is not cached: the next call succeeds. */
            ck_assert_int_eq(
                cairn_object_find_function(object, sample.text, address, &function, NULL),
                CAIRN_OK);
            ck_assert_str_eq(function.name, "second");
        }
        tear_down();
        object = NULL;
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

START_TEST(random_functions_agree_with_a_linear_search)
{
    unsigned seed = sample_time_seed();
    for (int round = 0; round < 2000; round++) {
        struct model models[SYMBOL_COUNT_MAX];
        begin(round % FILE_COUNT);
        size_t count = make_models(models, &seed);
        for (size_t i = 0; i < count; i++)
            add(models[i].name, models[i].binding, models[i].is_function ? STT_FUNC : STT_NOTYPE,
                models[i].start, models[i].size);
        open_finished();
        for (uint64_t offset = 0; offset <= CODE_BYTES; offset++)
            ck_assert_msg(strcmp(name_at(offset), expected_name(models, count, offset)) == 0,
                          "round %d, offset %u: %s instead of %s", round, (unsigned)offset,
                          name_at(offset), expected_name(models, count, offset));
        tear_down();
        object = NULL;
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("functions of objects");
    TCase *rules = tcase_create("rules");
    tcase_add_checked_fixture(rules, set_up, tear_down);
    tcase_add_loop_test(rules, function_contains_the_bytes_of_its_size, 0, FILE_COUNT);
    tcase_add_loop_test(rules, function_without_a_size_ends_at_the_next_symbol_or_section_end, 0,
                        FILE_COUNT);
    tcase_add_loop_test(rules, labels_inside_of_a_function_are_ignored, 0, FILE_COUNT);
    tcase_add_loop_test(rules, innermost_function_is_found, 0, FILE_COUNT);
    tcase_add_loop_test(rules, symbols_of_data_are_not_functions, 0, FILE_COUNT);
    tcase_add_test(rules, function_of_a_descriptor_is_found);
    tcase_add_test(rules, arguments_are_checked);
    tcase_add_loop_test(rules, each_allocation_may_fail, 0, FILE_COUNT);
    tcase_add_test(rules, random_functions_agree_with_a_linear_search);
    tcase_set_timeout(rules, 120);
    suite_add_tcase(suite, rules);
    return sample_run(suite);
}
