/*
 * Tests of unwind tables that are registered with the process's unwinder: C++ exceptions and
 * backtrace() pass through loaded code. The functions that C++ compilers call are those of
 * libstdc++, which LLVM has loaded.
 *
 * SPDX-License-Identifier: MIT
 */
#include "load_support.h"

#include "arch/arch.h"
#include "context_support.h"

#include <execinfo.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const struct cairn_load_options registering = {.registers_unwind_tables = true};

/* ---- Exceptions ---- */

/* Throws an int, of which it writes one byte. */
static const char throws[] = "@_ZTIi = external constant i8\n"
                             "declare ptr @__cxa_allocate_exception(i64)\n"
                             "declare void @__cxa_throw(ptr, ptr, ptr)\n"
                             "define i32 @throws(i32 %x) uwtable {\n"
                             "  %e = call ptr @__cxa_allocate_exception(i64 4)\n"
                             "  %b = trunc i32 %x to i8\n"
                             "  store i8 %b, ptr %e\n"
                             "  call void @__cxa_throw(ptr %e, ptr @_ZTIi, ptr null)\n"
                             "  unreachable\n"
                             "}\n";

/* Has only a frame. */
static const char passes[] = "declare i32 @throws(i32)\n"
                             "define i32 @passes(i32 %x) uwtable {\n"
                             "  %y = call i32 @throws(i32 %x)\n"
                             "  %z = add i32 %y, 1\n"
                             "  ret i32 %z\n"
                             "}\n";

/* Returns the byte that it catches, plus 1000. */
static const char catches[] =
    "@_ZTIi = external constant i8\n"
    "declare i32 @passes(i32)\n"
    "declare i32 @__gxx_personality_v0(...)\n"
    "declare ptr @__cxa_begin_catch(ptr)\n"
    "declare void @__cxa_end_catch()\n"
    "define i32 @catches(i32 %x) uwtable personality " SUPPORT_PERSONALITY " {\n"
    "  %r = invoke i32 @passes(i32 %x) to label %ok unwind label %bad\n"
    "ok:\n"
    "  ret i32 %r\n"
    "bad:\n"
    "  %pad = landingpad { ptr, i32 } catch ptr @_ZTIi\n"
    "  %thrown = extractvalue { ptr, i32 } %pad, 0\n"
    "  %e = call ptr @__cxa_begin_catch(ptr %thrown)\n"
    "  %b = load i8, ptr %e\n"
    "  %i = zext i8 %b to i32\n"
    "  call void @__cxa_end_catch()\n"
    "  %j = add i32 %i, 1000\n"
    "  ret i32 %j\n"
    "}\n";

START_TEST(an_exception_passes_through_loaded_code)
{
    load(throws, &registering);
    load(passes, &registering);
    cairn_module *module = load(catches, &registering);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(call(module, "catches", i), 1000 + i);
}
END_TEST

START_TEST(modules_are_unregistered_when_they_are_freed)
{
    for (int i = 0; i < 50; i++) {
        cairn_module *thrower = load(throws, &registering);
        cairn_module *passer = load(passes, &registering);
        cairn_module *catcher = load(catches, &registering);
        ck_assert_int_eq(call(catcher, "catches", i), 1000 + i);
        cairn_module_retire(thrower);
        cairn_module_retire(passer);
        cairn_module_retire(catcher);
        while (cairn_runtime_quiesce(runtime) > 0)
            ;
        struct cairn_runtime_statistics statistics;
        cairn_runtime_statistics(runtime, &statistics);
        ck_assert_uint_eq(statistics.retired_count, 0);
    }
}
END_TEST

START_TEST(a_module_without_an_unwind_table_may_be_registered)
{
    cairn_module *module = load("define i32 @f(i32 %x) nounwind {\n"
                                "  ret i32 %x\n"
                                "}\n",
                                &registering);
    ck_assert_int_eq(call(module, "f", 3), 3);
    ck_assert_uint_eq(retire(module), 1);
}
END_TEST

/* ---- backtrace() ---- */

static void *seen[64];
static int seen_count;

static int take_backtrace(int x)
{
    seen_count = backtrace(seen, sizeof seen / sizeof *seen);
    return x;
}

static bool find_host(void *unused, const char *name, uint64_t *address)
{
    (void)unused;
    *address = (uintptr_t)take_backtrace;
    return strcmp(name, "take_backtrace") == 0;
}

static const char nested[] = "declare i32 @take_backtrace(i32)\n"
                             "define internal i32 @inner(i32 %x) noinline uwtable {\n"
                             "  %y = call i32 @take_backtrace(i32 %x)\n"
                             "  %z = add i32 %y, 1\n"
                             "  ret i32 %z\n"
                             "}\n"
                             "define i32 @outer(i32 %x) uwtable {\n"
                             "  %y = call i32 @inner(i32 %x)\n"
                             "  %z = add i32 %y, 1\n"
                             "  ret i32 %z\n"
                             "}\n";

/* Returns how many of the frames were in functions of loaded code with this name. */
static int count_frames(const char *name)
{
    int count = 0;
    for (int i = 0; i < seen_count; i++)
        count += strcmp(name_at((const char *)seen[i] - 1), name) == 0;
    return count;
}

START_TEST(backtrace_passes_through_loaded_code)
{
    struct cairn_load_options options = {.find_symbol = find_host, .registers_unwind_tables = true};
    ck_assert_int_eq(call(load(nested, &options), "outer", 40), 42);
    ck_assert_int_eq(count_frames("inner"), 1);
    ck_assert_int_eq(count_frames("outer"), 1);
    ck_assert_str_eq(name_at((const char *)seen[seen_count - 1] - 1), "");
}
END_TEST

START_TEST(backtrace_with_tables_ends_at_code_that_is_not_registered)
{
    struct cairn_load_options options = {.find_symbol = find_host};
    ck_assert_int_eq(call(load(nested, &options), "outer", 40), 42);
    ck_assert_int_eq(count_frames("outer"), is_ppc64() ? 1 : 0);
}
END_TEST

/* ---- Refusals ---- */

/* A table that describes code outside the module. */
static const char elsewhere[] = "module asm \".section .eh_frame,\\22a\\22,@progbits\"\n"
                                "module asm \"1: .long 2f-3f\"\n"
                                "module asm \"3: .long 0\"\n"
                                "module asm \".byte 1, 0, 1, 0x78, 16, 0, 0, 0\"\n"
                                "module asm \"2: .long 4f-5f\"\n"
                                "module asm \"5: .long .-1b\"\n"
                                "module asm \".quad 0x10000, 16\"\n"
                                "module asm \"4: .long 0\"\n"
                                "define i32 @f(i32 %x) nounwind { ret i32 %x }\n";

START_TEST(a_table_about_other_code_is_not_registered)
{
    cairn_module *module;
    struct cairn_error error;
    ck_assert_int_eq(load_ir(elsewhere, &registering, &module, &error), CAIRN_ERROR_CORRUPT);
    assert_says(&error, "16 bytes of code at 0x10000 are not in the code that was loaded");
    load(elsewhere, NULL);
}
END_TEST

/* ---- Walks that begin in a stub ---- */

static const char calls_out[] = "declare i32 @elsewhere(i32)\n"
                                "define i32 @calls_out(i32 %x) uwtable {\n"
                                "  %y = call i32 @elsewhere(i32 %x)\n"
                                "  %z = add i32 %y, 1\n"
                                "  ret i32 %z\n"
                                "}\n";

static bool find_elsewhere(void *user, const char *name, uint64_t *address)
{
    (void)user;
    *address = (uintptr_t)find_elsewhere;
    return strcmp(name, "elsewhere") == 0;
}

/* Returns the address of the first stub after a function, in the same page. */
static uint64_t find_stub(uint64_t function)
{
    const struct cairn_arch *arch = arch_host();
    uint8_t expected[ARCH_VENEER_BYTES_MAX];
    for (uint64_t at = function & ~UINT64_C(7); at < (function | 0xFFF) - 64; at += 8) {
        const uint8_t *code = (const uint8_t *)(uintptr_t)at;
        uint64_t slot = arch->veneer_slot(arch, at, false, code);
        if (slot % sizeof slot == 0 && arch->encode_veneer(arch, at, slot, expected) &&
            memcmp(code, expected, arch->veneer_bytes) == 0)
            return at;
    }
    return 0;
}

/* A thread at any instruction of the stub has called it: it still has the caller's stack. */
START_TEST(a_walk_that_begins_in_a_stub_finds_the_caller)
{
    const struct cairn_load_options options = {.find_symbol = find_elsewhere};
    const struct cairn_arch *arch = arch_host();
    cairn_module *module = load(calls_out, &options);
    uint64_t function = (uintptr_t)code_of(cairn_module_find_symbol(module, "calls_out"));
    uint64_t stub = find_stub(function);
    const uint64_t stack[2] = {function + 4};
    ck_assert_uint_ne(stub, 0);
    for (uint64_t at = 0; at < arch->veneer_bytes; at += 4) {
        struct cairn_context context = {{0}};
        struct cairn_frame frame;
        write_register(&context, CAIRN_REGISTER_PC, stub + at);
        write_register(&context, CAIRN_REGISTER_SP, (uintptr_t)stack);
        if (arch->has_link_register)
            write_register(&context, arch->unwind_slots[ARCH_UNWIND_RETURN_ADDRESS].dwarf,
                           stack[0]);
        ck_assert_ok(cairn_frame_from_context(runtime, &context, false, &frame, NULL));
        ck_assert_uint_eq(frame.pc, stack[0]);
        ck_assert_uint_eq(frame.sp,
                          (uintptr_t)stack + (arch->has_link_register ? 0 : sizeof *stack));
        ck_assert_ptr_eq(frame.module, module);
        ck_assert(frame.is_calling);
    }
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, an_exception_passes_through_loaded_code);
    tcase_add_test(tests, modules_are_unregistered_when_they_are_freed);
    tcase_add_test(tests, a_module_without_an_unwind_table_may_be_registered);
    tcase_add_test(tests, backtrace_passes_through_loaded_code);
    tcase_add_test(tests, backtrace_with_tables_ends_at_code_that_is_not_registered);
    tcase_add_test(tests, a_table_about_other_code_is_not_registered);
    tcase_add_test(tests, a_walk_that_begins_in_a_stub_finds_the_caller);
}

int main(void) { return load_main("unwinding of loaded objects", add_tests); }
