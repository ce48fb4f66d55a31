/*
 * Tests of the constructors and destructors of loaded objects: their order, and what C++ code
 * registers with __cxa_atexit.
 *
 * SPDX-License-Identifier: MIT
 */
#include "load_support.h"
#include "tests/allocator_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the code has called: one character for each call. */
static char calls[64];

static void note(int what)
{
    size_t length = strlen(calls);
    ck_assert_uint_lt(length, sizeof calls - 1);
    calls[length] = (char)what;
}

static bool find_note(void *unused, const char *name, uint64_t *address)
{
    (void)unused;
    *address = (uintptr_t)note;
    return strcmp(name, "note") == 0;
}

static cairn_module *load_noting(const char *text)
{
    memset(calls, 0, sizeof calls);
    return load(text, &(struct cairn_load_options){.find_symbol = find_note});
}

#define FUNCTION(name, character)                                                                  \
    "define void @" name "() {\n  call void @note(i32 " character ")\n  ret void\n}\n"

static const char ordered[] = "declare void @note(i32)\n" FUNCTION("a", "97") FUNCTION("b", "98")
    FUNCTION("c", "99") FUNCTION("d", "100") FUNCTION("x", "120") FUNCTION("y", "121") FUNCTION(
        "z",
        "122") "@llvm.global_ctors = appending global [4 x { i32, " LOAD_FUNCTION ", ptr }] [\n"
               "  { i32, " LOAD_FUNCTION ", ptr } { i32 65535, " LOAD_FUNCTION " @c, ptr null },\n"
               "  { i32, " LOAD_FUNCTION ", ptr } { i32 65535, " LOAD_FUNCTION " @d, ptr null },\n"
               "  { i32, " LOAD_FUNCTION ", ptr } { i32 2000, " LOAD_FUNCTION " @b, ptr null },\n"
               "  { i32, " LOAD_FUNCTION ", ptr } { i32 101, " LOAD_FUNCTION " @a, ptr null }]\n"
               "@llvm.global_dtors = appending global [3 x { i32, " LOAD_FUNCTION ", ptr }] [\n"
               "  { i32, " LOAD_FUNCTION ", ptr } { i32 101, " LOAD_FUNCTION " @z, ptr null },\n"
               "  { i32, " LOAD_FUNCTION ", ptr } { i32 65535, " LOAD_FUNCTION " @x, ptr null },\n"
               "  { i32, " LOAD_FUNCTION ", ptr } { i32 2000, " LOAD_FUNCTION " @y, ptr null }]\n";

START_TEST(nothing_runs_unless_it_is_requested)
{
    cairn_module *module = load_noting(ordered);
    cairn_module_run_destructors(module);
    cairn_module_run_destructors(NULL);
    ck_assert_uint_eq(retire(module), 1);
    ck_assert_str_eq(calls, "");
}
END_TEST

START_TEST(constructors_run_by_priority_and_destructors_in_the_opposite_order)
{
    cairn_module *module = load_noting(ordered);
    ck_assert_ok(cairn_module_run_constructors(module, NULL));
    ck_assert_str_eq(calls, "abcd");
    cairn_module_run_destructors(module);
    ck_assert_str_eq(calls, "abcdxyz");
}
END_TEST

START_TEST(each_runs_once)
{
    cairn_module *module = load_noting(ordered);
    for (int i = 0; i < 2; i++)
        ck_assert_ok(cairn_module_run_constructors(module, NULL));
    for (int i = 0; i < 2; i++)
        cairn_module_run_destructors(module);
    ck_assert_ok(cairn_module_run_constructors(module, NULL));
    ck_assert_str_eq(calls, "abcdxyz");
}
END_TEST

#define SECTION(name, functions)                                                                   \
    "module asm \".section " name ",\\22aw\\22,@progbits\"\n"                                      \
    "module asm \".quad " functions "\"\n"

static const char reversed[] = "declare void @note(i32)\n" FUNCTION("a", "97") FUNCTION("b", "98")
    FUNCTION("c", "99") FUNCTION("d", "100") FUNCTION("x", "120") FUNCTION("y", "121")
        FUNCTION("z", "122") SECTION(".ctors", "-1, d, c, 0") SECTION(".ctors.65434", "b, a")
            SECTION(".dtors", "-1, x, y, 0") SECTION(".dtors.65434", "z");

START_TEST(ctors_run_in_reverse_and_dtors_forwards)
{
    cairn_module *module = load_noting(reversed);
    ck_assert_ok(cairn_module_run_constructors(module, NULL));
    ck_assert_str_eq(calls, "abcd");
    cairn_module_run_destructors(module);
    ck_assert_str_eq(calls, "abcdxyz");
}
END_TEST

START_TEST(a_module_without_constructors_has_none_to_run)
{
    cairn_module *module = load_noting("declare void @note(i32)\n" FUNCTION("f", "102"));
    ck_assert_ok(cairn_module_run_constructors(module, NULL));
    cairn_module_run_destructors(module);
    ck_assert_uint_eq(retire(module), 1);
    ck_assert_str_eq(calls, "");
}
END_TEST

START_TEST(a_module_is_not_freed_between_its_constructors_and_its_destructors)
{
    cairn_module *module = load_noting(ordered);
    ck_assert_ok(cairn_module_run_constructors(module, NULL));
    ck_assert_uint_eq(retire(module), 0);
    cairn_module_run_destructors(module);
    ck_assert_str_eq(calls, "abcdxyz");
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 1);
}
END_TEST

START_TEST(a_retired_module_is_not_constructed)
{
    cairn_module *module = load_noting(ordered);
    cairn_module_retire(module);
    ck_assert_int_eq(cairn_module_run_constructors(module, NULL), CAIRN_ERROR_STATE);
    ck_assert_int_eq(cairn_module_run_constructors(NULL, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_str_eq(calls, "");
}
END_TEST

extern char **environ;
static bool gets_environment;

static void take_arguments(int count, char **arguments, char **variables)
{
    gets_environment = count == 0 && arguments[0] == NULL && variables == environ;
}

static bool find_take_arguments(void *unused, const char *name, uint64_t *address)
{
    (void)unused;
    *address = (uintptr_t)take_arguments;
    return strcmp(name, "take_arguments") == 0;
}

START_TEST(constructors_get_no_arguments_and_the_environment)
{
    static const char text[] =
        "declare void @take_arguments(i32, ptr, ptr)\n"
        "define void @start(i32 %count, ptr %arguments, ptr %variables) {\n"
        "  call void @take_arguments(i32 %count, ptr %arguments, ptr %variables)\n"
        "  ret void\n"
        "}\n" SECTION(".ctors", "start");
    cairn_module *module =
        load(text, &(struct cairn_load_options){.find_symbol = find_take_arguments});
    gets_environment = false;
    ck_assert_ok(cairn_module_run_constructors(module, NULL));
    ck_assert(gets_environment);
}
END_TEST

/* ---- Functions that are registered for the end of the process ---- */

static const char registering[] =
    "@__dso_handle = external hidden global i8\n"
    "declare i32 @__cxa_atexit(" LOAD_DESTROYER ", ptr, ptr)\n"
    "declare void @note(i32)\n"
    "define internal void @destroy(ptr %object) {\n"
    "  %byte = load i8, ptr %object\n"
    "  %what = zext i8 %byte to i32\n"
    "  call void @note(i32 %what)\n"
    "  ret void\n"
    "}\n"
    "@one = internal global i8 49\n"
    "@two = internal global i8 50\n"
    "define i32 @construct(i32 %unused) {\n"
    "  %a = call i32 @__cxa_atexit(" LOAD_DESTROYER " @destroy, ptr @one, ptr @__dso_handle)\n"
    "  %b = call i32 @__cxa_atexit(" LOAD_DESTROYER " @destroy, ptr @two, ptr @__dso_handle)\n"
    "  ret i32 %a\n"
    "}\n" FUNCTION("constructor", "97") FUNCTION("destructor", "122")
        SECTION(".ctors", "constructor") SECTION(".dtors", "destructor");

START_TEST(registered_functions_run_before_the_destructors)
{
    cairn_module *module = load_noting(registering);
    ck_assert_ok(cairn_module_run_constructors(module, NULL));
    ck_assert_int_eq(call(module, "construct", 0), 0);
    cairn_module_run_destructors(module);
    ck_assert_str_eq(calls, "a21z");
}
END_TEST

START_TEST(registered_functions_of_another_module_do_not_run)
{
    cairn_module *other = load_noting(registering);
    cairn_module *module = load(registering, &(struct cairn_load_options){.find_symbol = find_note,
                                                                          .ignores_modules = true});
    ck_assert_int_eq(call(other, "construct", 0), 0);
    ck_assert_ok(cairn_module_run_constructors(module, NULL));
    cairn_module_run_destructors(module);
    ck_assert_str_eq(calls, "az");
}
END_TEST

START_TEST(registered_functions_run_at_the_latest_when_the_module_is_freed)
{
    cairn_module *module = load_noting(registering);
    ck_assert_int_eq(call(module, "construct", 0), 0);
    cairn_module_retire(module);
    ck_assert_str_eq(calls, "");
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 1);
    ck_assert_str_eq(calls, "21");
}
END_TEST

/* Reports at the end of a child process what its code has called. */
static int report;
static void report_calls(void)
{
    ssize_t written = write(report, calls, strlen(calls));
    (void)written;
    cairn_runtime_destroy(runtime);
}

START_TEST(registered_functions_run_when_the_process_exits)
{
    int ends[2];
    char received[8] = "";
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        report = ends[1];
        atexit(report_calls);
        call(load_noting(registering), "construct", 0);
        exit(0);
    }
    close(ends[1]);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_int_eq(read(ends[0], received, sizeof received - 1), 2);
    ck_assert_str_eq(received, "21");
}
END_TEST

/* ---- Memory ---- */

static const char everything[] =
    "declare void @note(i32)\n"
    "declare i32 @construct(i32)\n" FUNCTION("f", "97") SECTION(".ctors", "f")
        SECTION(".dtors", "f") "define i32 @g(i32 %x) uwtable {\n"
                               "  %y = call i32 @construct(i32 %x)\n"
                               "  ret i32 %y\n"
                               "}\n";

/* Loads and publishes an object while one allocation fails. */
static enum cairn_status load_with_failure(LLVMMemoryBufferRef object, size_t number,
                                           cairn_module **module)
{
    const struct cairn_load_options options = {.find_symbol = find_note,
                                               .registers_unwind_tables = true};
    struct cairn_error error;
    counting.calls = 0;
    counting.fail_at = number;
    enum cairn_status status = load_object(object, &options, module, &error);
    if (status == CAIRN_OK && (status = cairn_module_publish(*module, &error)) != CAIRN_OK)
        cairn_module_retire(*module);
    counting.fail_at = 0;
    return status;
}

START_TEST(each_failed_allocation_is_reported_and_leaves_nothing)
{
    cairn_module *used = load_noting(registering);
    cairn_module *module = NULL;
    LLVMMemoryBufferRef object = compile(everything);
    size_t failures = 0;
    enum cairn_status status;
    while ((status = load_with_failure(object, failures + 1, &module)) == CAIRN_ERROR_MEMORY)
        failures++;
    ck_assert_ok(status);
    ck_assert_uint_gt(failures, 20);
    LLVMDisposeMemoryBuffer(object);
    ck_assert_ok(cairn_module_run_constructors(module, NULL));
    ck_assert_int_eq(call(module, "g", 0), 0);
    cairn_module_run_destructors(module);
    ck_assert_str_eq(calls, "aa");
    cairn_module_retire(module);
    cairn_module_retire(used);
    while (cairn_runtime_quiesce(runtime) > 0)
        ;
    struct cairn_runtime_statistics statistics;
    cairn_runtime_statistics(runtime, &statistics);
    ck_assert_uint_eq(statistics.retired_count, 0);
    ck_assert_str_eq(calls, "aa21");
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, nothing_runs_unless_it_is_requested);
    tcase_add_test(tests, constructors_run_by_priority_and_destructors_in_the_opposite_order);
    tcase_add_test(tests, each_runs_once);
    tcase_add_test(tests, ctors_run_in_reverse_and_dtors_forwards);
    tcase_add_test(tests, a_module_without_constructors_has_none_to_run);
    tcase_add_test(tests, a_module_is_not_freed_between_its_constructors_and_its_destructors);
    tcase_add_test(tests, a_retired_module_is_not_constructed);
    tcase_add_test(tests, constructors_get_no_arguments_and_the_environment);
    tcase_add_test(tests, registered_functions_run_before_the_destructors);
    tcase_add_test(tests, registered_functions_of_another_module_do_not_run);
    tcase_add_test(tests, registered_functions_run_at_the_latest_when_the_module_is_freed);
    tcase_add_test(tests, registered_functions_run_when_the_process_exits);
    tcase_add_test(tests, each_failed_allocation_is_reported_and_leaves_nothing);
}

int main(void) { return load_main("constructors of loaded objects", add_tests); }
