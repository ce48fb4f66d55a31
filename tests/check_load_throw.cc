/*
 * Tests of C++ exceptions between a program in C++ and loaded code: through frames of loaded code,
 * with cleanups in them, and out of them.
 *
 * SPDX-License-Identifier: MIT
 */
extern "C" {
#include "load_support.h"
}

#include <cstring>
#include <stdexcept>
#include <string>

static int notes;

extern "C" {
static int throw_if_positive(int x)
{
    if (x > 0)
        throw std::runtime_error(std::to_string(x));
    return x;
}

static void note() { notes++; }

static bool find_host(void *, const char *name, uint64_t *address)
{
    if (std::strcmp(name, "note") == 0)
        *address = reinterpret_cast<uintptr_t>(note);
    else if (std::strcmp(name, "throw_if_positive") == 0)
        *address = reinterpret_cast<uintptr_t>(throw_if_positive);
    else
        return false;
    return true;
}
}

static cairn_module *load_registered(const char *text)
{
    cairn_load_options options = {};
    options.find_symbol = find_host;
    options.registers_unwind_tables = true;
    notes = 0;
    return load(text, &options);
}

/* A frame of the program with an object that has a destructor. */
struct noting {
    ~noting() { note(); }
};

static int call_with_object(const cairn_module *module, const char *name, int argument)
{
    noting object;
    return call(module, name, argument);
}

/* Returns the message of the exception that the function throws, or "". */
static std::string caught(const cairn_module *module, const char *name, int argument)
{
    try {
        call_with_object(module, name, argument);
    } catch (const std::runtime_error &error) {
        return error.what();
    }
    return "";
}

/* A function, so that both strings live until they have been compared: Check's macros keep only the
 * pointers. */
static void expect_text(const std::string &found, const std::string &expected)
{
    ck_assert_str_eq(found.c_str(), expected.c_str());
}

START_TEST(an_exception_of_the_program_passes_through_loaded_code)
{
    cairn_module *module = load_registered("declare i32 @throw_if_positive(i32)\n"
                                           "define i32 @f(i32 %x) uwtable {\n"
                                           "  %y = call i32 @throw_if_positive(i32 %x)\n"
                                           "  %z = add i32 %y, 1\n"
                                           "  ret i32 %z\n"
                                           "}\n");
    expect_text(caught(module, "f", 0), "");
    expect_text(caught(module, "f", 7), "7");
    ck_assert_int_eq(notes, 2);
}
END_TEST

START_TEST(an_exception_runs_the_cleanups_of_loaded_code)
{
    cairn_module *module = load_registered(
        "declare i32 @throw_if_positive(i32)\n"
        "declare void @note()\n"
        "declare i32 @__gxx_personality_v0(...)\n"
        "define i32 @f(i32 %x) uwtable personality " SUPPORT_PERSONALITY " {\n"
        "  %y = invoke i32 @throw_if_positive(i32 %x) to label %ok unwind label %bad\n"
        "ok:\n"
        "  ret i32 %y\n"
        "bad:\n"
        "  %pad = landingpad { ptr, i32 } cleanup\n"
        "  call void @note()\n"
        "  call void @note()\n"
        "  resume { ptr, i32 } %pad\n"
        "}\n");
    expect_text(caught(module, "f", 0), "");
    ck_assert_int_eq(notes, 1);
    expect_text(caught(module, "f", 8), "8");
    ck_assert_int_eq(notes, 4);
}
END_TEST

START_TEST(the_program_catches_what_loaded_code_throws)
{
    cairn_module *module =
        load_registered("@_ZTIi = external constant i8\n"
                        "declare ptr @__cxa_allocate_exception(i64)\n"
                        "declare void @__cxa_throw(ptr, ptr, ptr)\n"
                        "define i32 @f(i32 %x) uwtable {\n"
                        "  %e = call ptr @__cxa_allocate_exception(i64 4)\n"
                        "  call void @__cxa_throw(ptr %e, ptr @_ZTIi, ptr null)\n"
                        "  unreachable\n"
                        "}\n");
    bool is_caught = false;
    try {
        call_with_object(module, "f", 0);
    } catch (int) {
        is_caught = true;
    }
    ck_assert(is_caught);
    ck_assert_int_eq(notes, 1);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, an_exception_of_the_program_passes_through_loaded_code);
    tcase_add_test(tests, an_exception_runs_the_cleanups_of_loaded_code);
    tcase_add_test(tests, the_program_catches_what_loaded_code_throws);
}

int main() { return load_main("exceptions of loaded objects", add_tests); }
