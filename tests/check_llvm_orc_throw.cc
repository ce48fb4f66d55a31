/*
 * Tests of C++ exceptions between a program in C++ and code that ORC loads: through its frames,
 * with cleanups in them, out of them and into them. LLVM registers the unwind tables, which are in
 * Cairn's memory.
 *
 * SPDX-License-Identifier: MIT
 */
extern "C" {
#include "orc_support.h"
#include "tests/mode_support.h"
}

#include <stdexcept>
#include <string>

#if LLVM_HAS_ORC_CALLBACKS

extern "C" {
/* NOLINTBEGIN(bugprone-reserved-identifier,cert-*) */
extern void *__cxa_allocate_exception(size_t size) noexcept;
extern void *__cxa_begin_catch(void *exception) noexcept;
extern void __cxa_end_catch(void);
extern void __cxa_throw(void *exception, void *type, void (*destroy)(void *));
extern int __gxx_personality_v0(...);
extern void _Unwind_Resume(void *exception);
extern const char _ZTIi;
/* NOLINTEND(bugprone-reserved-identifier,cert-*) */
}

static cairn_runtime *runtime;
static cairn_orc *orc;
static LLVMOrcLLJITRef jit;
static int notes;

extern "C" {
static int64_t throw_if_positive(int64_t x)
{
    if (x > 0)
        throw std::runtime_error(std::to_string(x));
    return x;
}

static int64_t throw_number(int64_t x) { throw static_cast<int>(x); }

static void note() { notes++; }
}

template <typename Function> static void define(const char *name, Function *function)
{
    orc_define(jit, name, reinterpret_cast<const void *>(function));
}

static void set_up(enum cairn_code_mode mode)
{
    cairn_runtime_options options = {};
    options.code_mode = mode;
    ck_assert_ok(cairn_runtime_create(&options, &runtime, nullptr));
    ck_assert_ok(cairn_orc_create(runtime, nullptr, &orc, nullptr));
    jit = orc_create_jit(orc);
    notes = 0;
    define("throw_if_positive", throw_if_positive);
    define("throw_number", throw_number);
    define("note", note);
    define("__cxa_allocate_exception", __cxa_allocate_exception);
    define("__cxa_begin_catch", __cxa_begin_catch);
    define("__cxa_end_catch", __cxa_end_catch);
    define("__cxa_throw", __cxa_throw);
    define("__gxx_personality_v0", __gxx_personality_v0);
    define("_Unwind_Resume", _Unwind_Resume);
    orc_define(jit, "_ZTIi", &_ZTIi);
}

static void set_up_dual() { set_up(CAIRN_CODE_MODE_DUAL); }
static void set_up_single() { set_up(CAIRN_CODE_MODE_SINGLE); }

static void tear_down()
{
    orc_dispose(jit);
    cairn_orc_destroy(orc);
    cairn_runtime_destroy(runtime);
    ck_assert_int_eq(orc_registered_tables(), 0);
}

/* A frame of the program with an object that has a destructor. */
struct noting {
    ~noting() { note(); }
};

static int64_t call_with_object(orc_function *function, int64_t argument)
{
    noting object;
    return function(argument);
}

/* Returns the message of the exception that the function throws, or "". */
static std::string caught(orc_function *function, int64_t argument)
{
    try {
        call_with_object(function, argument);
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

static const char passing[] = "declare i64 @throw_if_positive(i64)\n"
                              "define i64 @f(i64 %%x) uwtable {\n"
                              "  %%y = call i64 @throw_if_positive(i64 %%x)\n"
                              "  %%z = add i64 %%y, 1\n"
                              "  ret i64 %%z\n"
                              "}\n";

START_TEST(an_exception_of_the_program_passes_through_loaded_code)
{
    orc_add(jit, orc_parse(passing), nullptr);
    orc_function *f = orc_lookup(orc, jit, "f");
    expect_text(caught(f, 0), "");
    expect_text(caught(f, 7), "7");
    ck_assert_int_eq(notes, 2);
}
END_TEST

START_TEST(an_exception_runs_the_cleanups_of_loaded_code)
{
    orc_add(jit,
            orc_parse("declare i64 @throw_if_positive(i64)\n"
                      "declare void @note()\n"
                      "declare i32 @__gxx_personality_v0(...)\n"
                      "define i64 @f(i64 %%x) uwtable personality " SUPPORT_PERSONALITY " {\n"
                      "  %%y = invoke i64 @throw_if_positive(i64 %%x) to label %%ok unwind label "
                      "%%bad\n"
                      "ok:\n"
                      "  ret i64 %%y\n"
                      "bad:\n"
                      "  %%pad = landingpad { ptr, i32 } cleanup\n"
                      "  call void @note()\n"
                      "  call void @note()\n"
                      "  resume { ptr, i32 } %%pad\n"
                      "}\n"),
            nullptr);
    orc_function *f = orc_lookup(orc, jit, "f");
    expect_text(caught(f, 0), "");
    ck_assert_int_eq(notes, 1);
    expect_text(caught(f, 8), "8");
    ck_assert_int_eq(notes, 4);
}
END_TEST

START_TEST(loaded_code_catches_what_the_program_throws)
{
    orc_add(jit,
            orc_parse("@_ZTIi = external constant i8\n"
                      "declare i64 @throw_number(i64)\n"
                      "declare ptr @__cxa_begin_catch(ptr)\n"
                      "declare void @__cxa_end_catch()\n"
                      "declare i32 @__gxx_personality_v0(...)\n"
                      "define i64 @f(i64 %%x) uwtable personality " SUPPORT_PERSONALITY " {\n"
                      "  %%y = invoke i64 @throw_number(i64 %%x) to label %%ok unwind label %%bad\n"
                      "ok:\n"
                      "  ret i64 %%y\n"
                      "bad:\n"
                      "  %%pad = landingpad { ptr, i32 } catch ptr @_ZTIi\n"
                      "  %%exception = extractvalue { ptr, i32 } %%pad, 0\n"
                      "  %%place = call ptr @__cxa_begin_catch(ptr %%exception)\n"
                      "  %%thrown = load i32, ptr %%place\n"
                      "  call void @__cxa_end_catch()\n"
                      "  %%result = sext i32 %%thrown to i64\n"
                      "  ret i64 %%result\n"
                      "}\n"),
            nullptr);
    orc_function *f = orc_lookup(orc, jit, "f");
    ck_assert_int_eq(f(9), 9);
    ck_assert_int_eq(f(-9), -9);
}
END_TEST

START_TEST(the_program_catches_what_loaded_code_throws)
{
    orc_add(jit,
            orc_parse("@_ZTIi = external constant i8\n"
                      "declare ptr @__cxa_allocate_exception(i64)\n"
                      "declare void @__cxa_throw(ptr, ptr, ptr)\n"
                      "define i64 @f(i64 %%x) uwtable {\n"
                      "  %%e = call ptr @__cxa_allocate_exception(i64 4)\n"
                      "  call void @__cxa_throw(ptr %%e, ptr @_ZTIi, ptr null)\n"
                      "  unreachable\n"
                      "}\n"),
            nullptr);
    bool is_caught = false;
    try {
        call_with_object(orc_lookup(orc, jit, "f"), 0);
    } catch (int) {
        is_caught = true;
    }
    ck_assert(is_caught);
    ck_assert_int_eq(notes, 1);
}
END_TEST

/* The target of a patch point throws; the patch point is patched between two calls. */
START_TEST(an_exception_passes_a_patched_site)
{
    orc_add(jit, orc_parse_site("f", 7), nullptr);
    orc_function *f = orc_lookup(orc, jit, "f");
    expect_text(caught(f, 5), "");
    cairn_site *site = cairn_runtime_find_site(runtime, 7, nullptr);
    ck_assert_ok(cairn_site_call(site, reinterpret_cast<const void *>(throw_if_positive),
                                 CAIRN_SYNC, nullptr));
    expect_text(caught(f, 5), "5");
}
END_TEST

/* Unwind tables come and go in the memory that removed modules have left. */
START_TEST(exceptions_pass_through_code_in_the_place_of_removed_code)
{
    for (int i = 1; i <= 20; i++) {
        LLVMOrcResourceTrackerRef tracker;
        orc_add(jit, orc_parse(passing), &tracker);
        orc_function *f = orc_lookup(orc, jit, "f");
        expect_text(caught(f, i), std::to_string(i));
        orc_remove(tracker);
        ck_assert_int_eq(orc_registered_tables(), 0);
        cairn_runtime_quiesce(runtime);
    }
}
END_TEST

static void add_cases(Suite *suite)
{
    static void (*const set_ups[SITE_MODES])() = {set_up_dual, set_up_single};
    static const char *const names[SITE_MODES] = {"dual mapping", "single mapping"};
    for (int i = site_first_mode(); i < SITE_MODES; i++) {
        TCase *tests = tcase_create(names[i]);
        tcase_set_timeout(tests, 60);
        tcase_add_checked_fixture(tests, set_ups[i], tear_down);
        tcase_add_test(tests, an_exception_of_the_program_passes_through_loaded_code);
        tcase_add_test(tests, an_exception_runs_the_cleanups_of_loaded_code);
        tcase_add_test(tests, loaded_code_catches_what_the_program_throws);
        tcase_add_test(tests, the_program_catches_what_loaded_code_throws);
        tcase_add_test(tests, an_exception_passes_a_patched_site);
        tcase_add_test(tests, exceptions_pass_through_code_in_the_place_of_removed_code);
        suite_add_tcase(suite, tests);
    }
}

#else

static void add_cases(Suite *) {}

#endif

int main()
{
    if (!LLVM_HAS_ORC_CALLBACKS)
        return 77;
    Suite *suite = suite_create("exceptions of ORC's code");
    add_cases(suite);
    return support_main(suite);
}
