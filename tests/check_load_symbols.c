/*
 * Tests of the symbols of loaded objects: modules that use each other's definitions, and names of
 * functions by PC.
 *
 * SPDX-License-Identifier: MIT
 */
#include "load_support.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- Definitions of other modules ---- */

static const char base[] = "@number = global i8 7\n"
                           "@hidden = hidden global i8 8\n"
                           "define i32 @add_seven(i32 %x) {\n"
                           "  %n = load i8, ptr @number\n"
                           "  %m = zext i8 %n to i32\n"
                           "  %y = add i32 %x, %m\n"
                           "  ret i32 %y\n"
                           "}\n"
                           "define internal i32 @local(i32 %x) noinline {\n"
                           "  ret i32 %x\n"
                           "}\n"
                           "define i32 @call_local(i32 %x) {\n"
                           "  %y = call i32 @local(i32 %x)\n"
                           "  ret i32 %y\n"
                           "}\n";

static const char user[] = "@number = external global i8\n"
                           "declare i32 @add_seven(i32)\n"
                           "define i32 @use(i32 %x) {\n"
                           "  %b = load i8, ptr @number\n"
                           "  %n = zext i8 %b to i32\n"
                           "  %m = mul i32 %x, %n\n"
                           "  %y = call i32 @add_seven(i32 %m)\n"
                           "  ret i32 %y\n"
                           "}\n";

START_TEST(a_module_calls_functions_and_reads_data_of_another_one)
{
    load(base, NULL);
    cairn_module *module = load(user, NULL);
    ck_assert_int_eq(call(module, "use", 5), 42);
}
END_TEST

START_TEST(definitions_are_found_in_a_module_by_name)
{
    cairn_module *module = load(base, NULL);
    ck_assert_int_eq(call(module, "add_seven", 1), 8);
    ck_assert_int_eq(*(const char *)cairn_module_find_symbol(module, "number"), 7);
    ck_assert_ptr_null(cairn_module_find_symbol(module, "hidden"));
    ck_assert_ptr_null(cairn_module_find_symbol(module, "local"));
    ck_assert_ptr_null(cairn_module_find_symbol(module, "use"));
    ck_assert_ptr_null(cairn_module_find_symbol(module, ""));
}
END_TEST

START_TEST(a_module_that_is_not_published_is_not_used)
{
    cairn_module *module;
    cairn_module *other;
    struct cairn_error error;
    ck_assert_ok(load_ir(base, NULL, &module, NULL));
    ck_assert_int_eq(load_ir(user, NULL, &other, &error), CAIRN_ERROR_NOT_FOUND);
    assert_says(&error, "number");
    assert_says(&error, "add_seven");
    ck_assert_ok(cairn_module_publish(module, NULL));
    ck_assert_ok(load_ir(user, NULL, &other, NULL));
    cairn_module_retire(module);
    ck_assert_int_eq(load_ir(user, NULL, &other, &error), CAIRN_ERROR_NOT_FOUND);
}
END_TEST

START_TEST(a_hidden_definition_is_not_used_by_other_modules)
{
    cairn_module *other;
    struct cairn_error error;
    load(base, NULL);
    ck_assert_int_eq(load_ir("@hidden = external global i8\n"
                             "define i8 @f() {\n"
                             "  %n = load i8, ptr @hidden\n"
                             "  ret i8 %n\n"
                             "}\n",
                             NULL, &other, &error),
                     CAIRN_ERROR_NOT_FOUND);
    assert_says(&error, "hidden");
}
END_TEST

#define RETURNS(number) "define i32 @f(i32 %x) { ret i32 " number " }\n"
static const char caller[] = "declare i32 @f(i32)\n"
                             "define i32 @g(i32 %x) {\n"
                             "  %y = call i32 @f(i32 %x)\n"
                             "  ret i32 %y\n"
                             "}\n";

START_TEST(the_definition_that_was_published_last_is_used)
{
    load(RETURNS("1"), NULL);
    cairn_module *second = load(RETURNS("2"), NULL);
    cairn_module *before = load(caller, NULL);
    load(RETURNS("3"), NULL);
    ck_assert_int_eq(call(load(caller, NULL), "g", 0), 3);
    ck_assert_int_eq(call(before, "g", 0), 2);
    cairn_module_retire(second);
    ck_assert_int_eq(call(before, "g", 0), 2);
}
END_TEST

START_TEST(after_the_newest_definition_was_retired_an_older_one_is_used)
{
    load(RETURNS("1"), NULL);
    retire(load(RETURNS("2"), NULL));
    ck_assert_int_eq(call(load(caller, NULL), "g", 0), 1);
}
END_TEST

static int host_function(int x) { return 100 + x; }

static bool find_host_function(void *calls, const char *name, uint64_t *address)
{
    (void)name;
    ++*(unsigned *)calls;
    *address = (uintptr_t)host_function;
    return true;
}

START_TEST(modules_come_before_the_callback_unless_they_are_ignored)
{
    unsigned calls = 0;
    struct cairn_load_options options = {.find_symbol = find_host_function, .user = &calls};
    ck_assert_int_eq(call(load(caller, &options), "g", 0), 100);
    ck_assert_uint_eq(calls, 1);
    load(RETURNS("1"), NULL);
    ck_assert_int_eq(call(load(caller, &options), "g", 0), 1);
    ck_assert_uint_eq(calls, 1);
    options.ignores_modules = true;
    ck_assert_int_eq(call(load(caller, &options), "g", 0), 100);
    ck_assert_uint_eq(calls, 2);
}
END_TEST

START_TEST(the_callback_comes_before_the_process)
{
    static const char text[] = "declare i32 @abs(i32)\n"
                               "define i32 @f(i32 %x) {\n"
                               "  %y = call i32 @abs(i32 %x)\n"
                               "  ret i32 %y\n"
                               "}\n";
    unsigned calls = 0;
    const struct cairn_load_options options = {.find_symbol = find_host_function, .user = &calls};
    ck_assert_int_eq(call(load(text, NULL), "f", -5), 5);
    ck_assert_int_eq(call(load(text, &options), "f", -5), 95);
}
END_TEST

/* ---- References ---- */

START_TEST(a_retired_module_is_freed_after_the_modules_that_use_it)
{
    cairn_module *used = load(base, NULL);
    cairn_module *module = load(user, NULL);
    ck_assert_uint_eq(retire(used), 0);
    ck_assert_int_eq(call(module, "use", 5), 42);
    ck_assert_uint_eq(retire(module), 1);
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 1);
}
END_TEST

START_TEST(a_user_that_is_retired_first_leaves_the_other_module)
{
    cairn_module *used = load(base, NULL);
    ck_assert_uint_eq(retire(load(user, NULL)), 1);
    ck_assert_int_eq(call(used, "add_seven", 1), 8);
    ck_assert_uint_eq(retire(used), 1);
}
END_TEST

START_TEST(a_loader_that_fails_leaves_no_references)
{
    static const char text[] = "declare i32 @add_seven(i32)\n"
                               "declare i32 @missing_function(i32)\n"
                               "define i32 @f(i32 %x) {\n"
                               "  %y = call i32 @add_seven(i32 %x)\n"
                               "  %z = call i32 @missing_function(i32 %y)\n"
                               "  ret i32 %z\n"
                               "}\n";
    cairn_module *used = load(base, NULL);
    cairn_module *module;
    struct cairn_error error;
    ck_assert_int_eq(load_ir(text, NULL, &module, &error), CAIRN_ERROR_NOT_FOUND);
    assert_says(&error, "1 undefined symbols: missing_function");
    ck_assert_uint_eq(retire(used), 1);
}
END_TEST

START_TEST(a_runtime_is_destroyed_with_modules_that_use_each_other)
{
    cairn_module *used = load(base, NULL);
    load(user, NULL);
    cairn_module *retired = load(user, NULL);
    cairn_module_retire(used);
    cairn_module_retire(retired);
}
END_TEST

/* ---- Threads ---- */

enum { THREADS = 4, ROUNDS = 100 };
static LLVMMemoryBufferRef base_object;
static LLVMMemoryBufferRef user_object;
static atomic_uint wrong;

/* Loads a module and a user of it, or of the same module of another thread. */
static void *load_and_retire(void *unused)
{
    cairn_module *modules[2];
    for (int i = 0; i < ROUNDS; i++) {
        bool is_loaded = load_object(base_object, NULL, &modules[0], NULL) == CAIRN_OK &&
                         cairn_module_publish(modules[0], NULL) == CAIRN_OK &&
                         load_object(user_object, NULL, &modules[1], NULL) == CAIRN_OK &&
                         cairn_module_publish(modules[1], NULL) == CAIRN_OK;
        if (!is_loaded || call(modules[1], "use", i) != 7 * i + 7)
            wrong++;
        for (int j = 0; is_loaded && j < 2; j++)
            cairn_module_retire(modules[(i + j) % 2]);
    }
    return unused;
}

START_TEST(threads_load_modules_that_use_each_other)
{
    pthread_t threads[THREADS];
    struct cairn_runtime_statistics statistics;
    base_object = compile(base);
    user_object = compile(user);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, load_and_retire, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(wrong, 0);
    while (cairn_runtime_quiesce(runtime) > 0)
        ;
    cairn_runtime_statistics(runtime, &statistics);
    ck_assert_uint_eq(statistics.module_count + statistics.retired_count, 0);
    LLVMDisposeMemoryBuffer(base_object);
    LLVMDisposeMemoryBuffer(user_object);
}
END_TEST

/* ---- Names by PC ---- */

START_TEST(functions_are_named_by_pc)
{
    cairn_module *module = load(base, NULL);
    const char *code = code_of(cairn_module_find_symbol(module, "add_seven"));
    ck_assert_str_eq(name_at(code), "add_seven");
    ck_assert_str_eq(name_at(code + 1), "add_seven");
    ck_assert_str_eq(name_at(code_of(cairn_module_find_symbol(module, "call_local"))),
                     "call_local");
    ck_assert_str_eq(name_at(cairn_module_find_symbol(module, "number")), "");
    cairn_module_retire(module);
    ck_assert_str_eq(name_at(code), "");
}
END_TEST

/* Returns whether some PC of the module's code is in a function with this name. */
static bool has_function(const cairn_module *module, const char *name)
{
    enum { CODE_BYTES_MAX = 4096 };
    const char *code = code_of(cairn_module_find_symbol(module, "add_seven"));
    for (const char *at = code - CODE_BYTES_MAX; at < code + CODE_BYTES_MAX; at++)
        if (cairn_runtime_find_module(runtime, (uintptr_t)at) == module &&
            strcmp(name_at(at), name) == 0)
            return true;
    return false;
}

START_TEST(local_functions_are_named_too)
{
    cairn_module *module = load(base, NULL);
    ck_assert(has_function(module, "local"));
    ck_assert(!has_function(module, "number"));
    ck_assert(!has_function(module, "missing"));
}
END_TEST

static char name_in_handler[16];
static const void *interrupted;

static void find_name(int signal)
{
    (void)signal;
    /* NOLINTNEXTLINE(bugprone-signal-handler,cert-sig30-c): this is tested. */
    strncpy(name_in_handler, name_at(interrupted), sizeof name_in_handler - 1);
}

START_TEST(a_signal_handler_finds_a_name)
{
    cairn_module *module = load(base, NULL);
    interrupted = code_of(cairn_module_find_symbol(module, "add_seven"));
    signal(SIGUSR1, find_name);
    raise(SIGUSR1);
    ck_assert_str_eq(name_in_handler, "add_seven");
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, a_module_calls_functions_and_reads_data_of_another_one);
    tcase_add_test(tests, definitions_are_found_in_a_module_by_name);
    tcase_add_test(tests, a_module_that_is_not_published_is_not_used);
    tcase_add_test(tests, a_hidden_definition_is_not_used_by_other_modules);
    tcase_add_test(tests, the_definition_that_was_published_last_is_used);
    tcase_add_test(tests, after_the_newest_definition_was_retired_an_older_one_is_used);
    tcase_add_test(tests, modules_come_before_the_callback_unless_they_are_ignored);
    tcase_add_test(tests, the_callback_comes_before_the_process);
    tcase_add_test(tests, a_retired_module_is_freed_after_the_modules_that_use_it);
    tcase_add_test(tests, a_user_that_is_retired_first_leaves_the_other_module);
    tcase_add_test(tests, a_loader_that_fails_leaves_no_references);
    tcase_add_test(tests, a_runtime_is_destroyed_with_modules_that_use_each_other);
    tcase_add_test(tests, threads_load_modules_that_use_each_other);
    tcase_add_test(tests, functions_are_named_by_pc);
    tcase_add_test(tests, local_functions_are_named_too);
    tcase_add_test(tests, a_signal_handler_finds_a_name);
}

int main(void) { return load_main("symbols of loaded objects", add_tests); }
