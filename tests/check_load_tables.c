/*
 * Tests of the metadata of loaded objects whose declarations the host gives: stack maps and sites,
 * PC sections, and fault maps.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "record/table.h"
#include "runtime_support.h"
#include "llvm/scan.h"

#include "load_support.h"

#include <cairn/fault.h>
#include <cairn/llvm.h>
#include <cairn/patch.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* ---- Stack maps and sites ---- */

static const char site[] = SUPPORT_INTRINSICS
    "define i64 @f(i64 %x) {\n"
    "  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 42, i32 64,"
    " ptr null, i32 1, i64 %x)\n"
    "  ret i64 %r\n"
    "}\n";

static int64_t add_hundred(int64_t x) { return x + 100; }

/* Loads an object, with the declarations of the IR that it was compiled from. */
static cairn_module *load_declared(const char *text, const struct cairn_load_options *options)
{
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef ir = support_parse_valid(context, text);
    LLVMMemoryBufferRef object = compile(text);
    cairn_declarations *declarations;
    cairn_loader *loader;
    cairn_module *module;
    ck_assert_ok(cairn_declarations_create(NULL, &declarations, NULL));
    ck_assert_ok(scan_module(ir, false, declarations, NULL));
    ck_assert_ok(cairn_loader_create(runtime, "declared", &loader, NULL));
    ck_assert_ok(cairn_loader_declare(loader, declarations, NULL));
    ck_assert_ok(cairn_loader_add_object(loader, LLVMGetBufferStart(object),
                                         LLVMGetBufferSize(object), options, NULL));
    ck_assert_ok(cairn_loader_finish(loader, &module, NULL));
    ck_assert_ok(cairn_module_publish(module, NULL));
    cairn_declarations_destroy(declarations);
    LLVMDisposeMemoryBuffer(object);
    LLVMDisposeModule(ir);
    LLVMContextDispose(context);
    return module;
}

START_TEST(a_site_of_an_object_is_patched)
{
    struct cairn_error error;
    cairn_module *module = load_declared(site, NULL);
    int64_t (*f)(int64_t) = (int64_t(*)(int64_t))(uintptr_t)cairn_module_find_symbol(module, "f");
    cairn_site *found = cairn_runtime_find_site(runtime, 42, &error);
    ck_assert_msg(found != NULL, "%s", error.message);
    ck_assert_ok(cairn_site_call(found, (void *)(uintptr_t)add_hundred, CAIRN_RELAXED, NULL));
    ck_assert_int_eq(f(1), 101);
    cairn_module_retire(module);
    ck_assert_ptr_null(cairn_runtime_find_site(runtime, 42, &error));
}
END_TEST

START_TEST(the_function_of_a_record_has_its_name)
{
    struct cairn_record record;
    struct cairn_function function;
    load_declared(site, NULL);
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 42, &record, 1), 1);
    ck_assert(cairn_runtime_find_function(runtime, cairn_record_address(record), &function));
    ck_assert_str_eq(function.name, "f");
    ck_assert_uint_eq(function.record_count, 1);
    ck_assert_uint_eq(function.address, record_function(record).address);
}
END_TEST

START_TEST(a_function_without_records_and_tables_is_found_by_its_symbol)
{
    static const char text[] = SUPPORT_INTRINSICS
        "define i64 @recorded(i64 %x) nounwind {\n"
        "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %x)\n"
        "  ret i64 %x\n"
        "}\n"
        "define i64 @plain(i64 %x) nounwind {\n"
        "  %y = mul i64 %x, 3\n"
        "  ret i64 %y\n"
        "}\n";
    struct cairn_function function;
    cairn_module *module = load_declared(text, NULL);
    const void *plain = code_of(cairn_module_find_symbol(module, "plain"));
    ck_assert(cairn_runtime_find_function(runtime, (uintptr_t)plain, &function));
    ck_assert_str_eq(function.name, "plain");
    ck_assert_uint_eq(function.address, (uintptr_t)plain);
    ck_assert_uint_eq(function.record_count, 0);
    ck_assert_str_eq(name_at(code_of(cairn_module_find_symbol(module, "recorded"))), "recorded");
}
END_TEST

/* ---- PC sections ---- */

#if LLVM_VERSION_MAJOR >= 16
START_TEST(a_pc_section_that_the_host_names_is_a_table)
{
    static const char text[] = "define i64 @f(ptr %p) {\n"
                               "  %b = load volatile i8, ptr %p, !pcsections !0\n"
                               "  %x = zext i8 %b to i64\n"
                               "  ret i64 %x\n"
                               "}\n"
                               "!0 = !{!\"notes\", !1}\n"
                               "!1 = !{i32 77}\n";
    const struct cairn_pc_table_section notes = {.name = "notes",
                                                 .schema = {.address_bytes = is_ppc64() ? 8 : 4,
                                                            .constant_count = 1,
                                                            .constant_bytes = {4}}};
    const struct cairn_load_options options = {.pc_sections = &notes, .pc_section_count = 1};
    cairn_module *module = load(text, &options);
    const cairn_pc_table *table = cairn_module_pc_table(module);
    ck_assert_uint_eq(support_pc_entry_count(table), 1);
    struct cairn_pc_table_entry entry = support_pc_entry(table, 0);
    ck_assert_uint_eq(entry.value.constants[0], 77);
    ck_assert_str_eq(name_at((const void *)(uintptr_t)entry.value.address), "f");
    ck_assert_ptr_null(cairn_module_pc_table(load(text, NULL)));
}
END_TEST
#endif

/* ---- Fault maps ---- */

/* A function that returns the byte at a pointer, or 42 if the pointer is null. Its first
 * instruction may fault, and 2 is where it continues then. */
static const char *faulting_code(void)
{
    enum cairn_architecture host = cairn_architecture_host();
    if (host == CAIRN_ARCHITECTURE_X86_64)
        return "movzbl (%rdi),%eax; ret; 2: mov $42,%eax; ret";
    return host == CAIRN_ARCHITECTURE_AARCH64 ? "ldrb w0,[x0]; ret; 2: mov w0,#42; ret" : NULL;
}

/* The function, and a fault map as LLVM writes it. */
static const char faulting[] = "module asm \".text; .globl f; .type f,@function\"\n"
                               "module asm \"f: %s\"\n"
                               "module asm \".size f,.-f\"\n"
                               "module asm \".section .llvm_faultmaps,\\22a\\22\"\n"
                               "module asm \".byte 1,0; .short 0; .long 1\"\n"
                               "module asm \".quad f; .long 1,0,1,0,2b-f\"\n";

static volatile sig_atomic_t continued;

static void handle_fault(int number, siginfo_t *info, void *ucontext)
{
    if (!cairn_fault_continue(runtime, info, ucontext, 0, NULL))
        signal(number, SIG_DFL);
    continued = 1;
}

START_TEST(a_fault_continues_where_the_fault_map_of_an_object_says)
{
    const unsigned char byte = 7;
    char text[512];
    if (faulting_code() == NULL)
        return;
    snprintf(text, sizeof text, faulting, faulting_code());
    cairn_module *module = load(text, NULL);
    ck_assert_uint_eq(support_fault_count(cairn_module_fault_table(module)), 1);
    int (*f)(const void *) =
        (int (*)(const void *))(uintptr_t)cairn_module_find_symbol(module, "f");
    const struct sigaction action = {.sa_sigaction = handle_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    ck_assert_int_eq(f(&byte), 7);
    ck_assert_int_eq(continued, 0);
    ck_assert_int_eq(f(NULL), 42);
    ck_assert_int_eq(continued, 1);
    signal(SIGSEGV, SIG_DFL);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, a_site_of_an_object_is_patched);
    tcase_add_test(tests, the_function_of_a_record_has_its_name);
    tcase_add_test(tests, a_function_without_records_and_tables_is_found_by_its_symbol);
#if LLVM_VERSION_MAJOR >= 16
    tcase_add_test(tests, a_pc_section_that_the_host_names_is_a_table);
#endif
    tcase_add_test(tests, a_fault_continues_where_the_fault_map_of_an_object_says);
}

int main(void) { return load_main("metadata of loaded objects", add_tests); }
