/*
 * Tests of the symbols of modules: functions by PC, definitions by name, and the table of the
 * definitions of all modules, which is compared with a simple model at random.
 *
 * SPDX-License-Identifier: MIT
 */
#include "record/symbol_table.h"
#include "tests/allocator_support.h"
#include "tests/stackmap_support.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ck_assert_ok(status) ck_assert_int_eq((status), CAIRN_OK)

static struct symbol function(const char *name, uint64_t code, uint64_t size)
{
    return (struct symbol){name, code, code, size, false};
}

static struct symbol global_function(const char *name, uint64_t code, uint64_t size)
{
    return (struct symbol){name, code, code, size, true};
}

static struct symbol global_data(const char *name, uint64_t address)
{
    return (struct symbol){name, address, 0, 8, true};
}

static struct symbol_table table;
static struct cairn_allocator allocator;

static void set_up(void)
{
    allocator = memory_allocator(NULL);
    symbol_table_init(&table);
}

static void tear_down(void) { symbol_table_release(&table, &allocator); }

static struct module_symbols *create(struct symbol *list, size_t count)
{
    struct module_symbols *symbols;
    ck_assert_ok(module_symbols_create(list, count, &table.key, &allocator, &symbols, NULL));
    return symbols;
}

static void add(struct module_symbols *symbols)
{
    ck_assert_ok(symbol_table_reserve(&table, &allocator, symbols, NULL));
    symbol_table_add(&table, symbols);
}

/* Returns the name of the function at `pc`, or "" if no function is there. */
static const char *name_at(const struct module_symbols *symbols, uint64_t pc)
{
    const char *name = "";
    uint64_t address;
    return module_symbols_find_function(symbols, pc, &name, &address) ? name : "";
}

/* ---- Functions by PC ---- */

START_TEST(a_function_is_found_from_its_first_byte_to_its_last)
{
    struct symbol list[] = {function("second", 0x1040, 0x10), function("first", 0x1000, 0x20)};
    struct module_symbols *symbols = create(list, 2);
    ck_assert_str_eq(name_at(symbols, 0xfff), "");
    ck_assert_str_eq(name_at(symbols, 0x1000), "first");
    ck_assert_str_eq(name_at(symbols, 0x101f), "first");
    ck_assert_str_eq(name_at(symbols, 0x1020), "");
    ck_assert_str_eq(name_at(symbols, 0x103f), "");
    ck_assert_str_eq(name_at(symbols, 0x1040), "second");
    ck_assert_str_eq(name_at(symbols, 0x104f), "second");
    ck_assert_str_eq(name_at(symbols, 0x1050), "");
    ck_assert_str_eq(name_at(symbols, UINT64_MAX), "");
    module_symbols_destroy(symbols, &allocator);
}
END_TEST

START_TEST(a_function_of_unknown_size_extends_to_the_next_one)
{
    struct symbol list[] = {function("first", 0x1000, 0), function("second", 0x1040, 0)};
    struct module_symbols *symbols = create(list, 2);
    ck_assert_str_eq(name_at(symbols, 0x103f), "first");
    ck_assert_str_eq(name_at(symbols, 0x1041), "second");
    module_symbols_destroy(symbols, &allocator);
}
END_TEST

START_TEST(of_two_functions_at_one_address_the_definition_gives_the_name)
{
    struct symbol list[] = {function("local", 0x1000, 8), global_function("global", 0x1000, 8)};
    struct module_symbols *symbols = create(list, 2);
    ck_assert_str_eq(name_at(symbols, 0x1000), "global");
    module_symbols_destroy(symbols, &allocator);
}
END_TEST

START_TEST(a_function_is_found_by_its_code_not_by_its_descriptor)
{
    struct symbol list[] = {{"f", 0x9000, 0x1000, 0x10, true}};
    struct module_symbols *symbols = create(list, 1);
    ck_assert_str_eq(name_at(symbols, 0x1000), "f");
    ck_assert_str_eq(name_at(symbols, 0x9000), "");
    ck_assert_uint_eq(definition_address(module_symbols_find(symbols, &table.key, "f")), 0x9000);
    module_symbols_destroy(symbols, &allocator);
}
END_TEST

START_TEST(a_module_without_symbols_has_none)
{
    struct symbol list[] = {{"local_data", 0x1000, 0, 8, false}};
    ck_assert_ptr_null(create(list, 1));
    ck_assert_ptr_null(create(NULL, 0));
    ck_assert_ptr_null(module_symbols_find(NULL, &table.key, "f"));
    ck_assert_str_eq(name_at(NULL, 0x1000), "");
    ck_assert_uint_eq(module_symbols_size_bytes(NULL), 0);
    symbol_table_remove(&table, NULL);
    add(NULL);
    ck_assert_ptr_null(symbol_table_find(&table, "local_data"));
    module_symbols_destroy(NULL, &allocator);
}
END_TEST

START_TEST(a_module_with_one_function_takes_80_bytes)
{
    struct symbol list[] = {global_function("f12", 0x1000, 0x10)};
    struct module_symbols *symbols = create(list, 1);
    ck_assert_uint_le(module_symbols_size_bytes(symbols), 80);
    module_symbols_destroy(symbols, &allocator);
}
END_TEST

/* ---- Definitions by name ---- */

START_TEST(only_definitions_are_found_by_name)
{
    struct symbol list[] = {function("local", 0x1000, 8), global_function("f", 0x1010, 8),
                            global_data("data", 0x4000)};
    struct module_symbols *symbols = create(list, 3);
    ck_assert_ptr_null(module_symbols_find(symbols, &table.key, "local"));
    ck_assert_ptr_null(module_symbols_find(symbols, &table.key, ""));
    ck_assert_uint_eq(definition_address(module_symbols_find(symbols, &table.key, "f")), 0x1010);
    ck_assert_uint_eq(definition_address(module_symbols_find(symbols, &table.key, "data")), 0x4000);
    module_symbols_destroy(symbols, &allocator);
}
END_TEST

START_TEST(names_of_two_functions_at_one_address_lead_to_it)
{
    struct symbol list[] = {global_function("alias", 0x1000, 8), global_function("f", 0x1000, 8)};
    struct module_symbols *symbols = create(list, 2);
    ck_assert_uint_eq(definition_address(module_symbols_find(symbols, &table.key, "f")), 0x1000);
    ck_assert_uint_eq(definition_address(module_symbols_find(symbols, &table.key, "alias")),
                      0x1000);
    module_symbols_destroy(symbols, &allocator);
}
END_TEST

START_TEST(the_newest_definition_of_a_name_is_found)
{
    struct module_symbols *modules[3];
    for (unsigned i = 0; i < 3; i++) {
        struct symbol list[] = {global_function("f", 0x1000 * (i + 1), 8)};
        modules[i] = create(list, 1);
        add(modules[i]);
        ck_assert_uint_eq(definition_address(symbol_table_find(&table, "f")), 0x1000 * (i + 1));
    }
    symbol_table_remove(&table, modules[1]);
    ck_assert_uint_eq(definition_address(symbol_table_find(&table, "f")), 0x3000);
    symbol_table_remove(&table, modules[2]);
    ck_assert_uint_eq(definition_address(symbol_table_find(&table, "f")), 0x1000);
    symbol_table_remove(&table, modules[0]);
    ck_assert_ptr_null(symbol_table_find(&table, "f"));
    for (unsigned i = 0; i < 3; i++)
        module_symbols_destroy(modules[i], &allocator);
}
END_TEST

/* ---- At random ---- */

enum { NAMES = 40, MODULES = 60, SYMBOLS_MAX = 6 };

/* A module of the model: which names it defines, and when it was added (0: it is not). */
struct model {
    struct module_symbols *symbols;
    bool defines[NAMES];
    unsigned added;
};

static void fill_module(struct model *model, unsigned number, uint64_t *random)
{
    char names[SYMBOLS_MAX][8];
    struct symbol list[SYMBOLS_MAX];
    unsigned count = sample_random(random, SYMBOLS_MAX);
    *model = (struct model){.symbols = NULL};
    for (unsigned i = 0; i < count; i++) {
        unsigned name = sample_random(random, NAMES);
        snprintf(names[i], sizeof names[i], "f%u", name);
        if (!model->defines[name])
            list[i] = global_function(names[i], (number + 1) * 0x1000 + name * 8, 8);
        else
            list[i] = function(names[i], 0x1000, 8);
        model->defines[name] = true;
    }
    model->symbols = create(list, count);
}

static void check_names(const struct model *modules)
{
    for (unsigned name = 0; name < NAMES; name++) {
        char text[8];
        uint64_t expected = 0;
        unsigned newest = 0;
        for (unsigned i = 0; i < MODULES; i++)
            if (modules[i].defines[name] && modules[i].added > newest) {
                newest = modules[i].added;
                expected = (i + 1) * 0x1000 + name * 8;
            }
        snprintf(text, sizeof text, "f%u", name);
        const struct definition *found = symbol_table_find(&table, text);
        ck_assert_uint_eq(found == NULL ? 0 : definition_address(found), expected);
    }
}

START_TEST(random_modules_are_found_as_in_a_model)
{
    static struct model modules[MODULES];
    uint64_t random = sample_seed();
    for (unsigned i = 0; i < MODULES; i++)
        fill_module(&modules[i], i, &random);
    for (unsigned step = 1; step <= 3000; step++) {
        struct model *module = &modules[sample_random(&random, MODULES)];
        if (module->added == 0) {
            add(module->symbols);
            module->added = step;
        } else {
            symbol_table_remove(&table, module->symbols);
            module->added = 0;
        }
        if (step % 16 == 0)
            check_names(modules);
    }
    for (unsigned i = 0; i < MODULES; i++)
        module_symbols_destroy(modules[i].symbols, &allocator);
}
END_TEST

/* ---- Memory ---- */

START_TEST(every_failed_allocation_is_reported)
{
    struct support_allocator counting = {.fail_at = 1};
    struct cairn_allocator failing = support_counting(&counting);
    struct symbol list[] = {global_function("f", 0x1000, 8)};
    struct module_symbols *symbols;
    ck_assert_int_eq(module_symbols_create(list, 1, &table.key, &failing, &symbols, NULL),
                     CAIRN_ERROR_MEMORY);
    symbols = create(list, 1);
    counting = (struct support_allocator){.fail_at = 1};
    ck_assert_int_eq(symbol_table_reserve(&table, &failing, symbols, NULL), CAIRN_ERROR_MEMORY);
    ck_assert_ptr_null(symbol_table_find(&table, "f"));
    add(symbols);
    ck_assert_ptr_nonnull(symbol_table_find(&table, "f"));
    ck_assert_uint_eq(counting.outstanding_bytes, 0);
    module_symbols_destroy(symbols, &allocator);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("symbols");
    TCase *tests = tcase_create("symbols");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_function_is_found_from_its_first_byte_to_its_last);
    tcase_add_test(tests, a_function_of_unknown_size_extends_to_the_next_one);
    tcase_add_test(tests, of_two_functions_at_one_address_the_definition_gives_the_name);
    tcase_add_test(tests, a_function_is_found_by_its_code_not_by_its_descriptor);
    tcase_add_test(tests, a_module_without_symbols_has_none);
    tcase_add_test(tests, a_module_with_one_function_takes_80_bytes);
    tcase_add_test(tests, only_definitions_are_found_by_name);
    tcase_add_test(tests, names_of_two_functions_at_one_address_lead_to_it);
    tcase_add_test(tests, the_newest_definition_of_a_name_is_found);
    tcase_add_test(tests, random_modules_are_found_as_in_a_model);
    tcase_add_test(tests, every_failed_allocation_is_reported);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
