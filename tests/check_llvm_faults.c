/*
 * Tests of implicit null checks under MCJIT: accesses that fault on null replace the checks. After
 * such a fault the code continues at the handler that the fault map names. Other faults are left to
 * other signal handlers.
 *
 * Targets without fault maps, such as PPC64, check explicitly: the same functions then return the
 * same results without a fault.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "llvm_support.h"
#include "llvm/engine.h"

#include "arch/arch.h"
#include "record/fault_table.h"
#include "runtime_support.h"
#include "tests/allocator_support.h"
#include "llvm/version.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NULL_RESULT = 42, THREADS = 4, FAULTS = 5000 };

/* Each function returns 42 for null. They hold a load, a store, both with a pointer that has an
 * offset below it, and two loads. */
static const char text[] = "define i64 @load(i8ptr %p) uwtable {\n"
                           "  %c = icmp eq i8ptr %p, null\n"
                           "  br i1 %c, label %null, label %there\n"
                           "null:\n"
                           "  ret i64 42\n"
                           "there:\n"
                           "  %a = getelementptr i8, i8ptr %p, i64 24\n"
                           "  %w = bitcast i8ptr %a to i64ptr\n"
                           "  %x = load i64, i64ptr %w\n"
                           "  ret i64 %x\n"
                           "}\n"
                           "define i64 @store(i8ptr %p, i64 %x) uwtable {\n"
                           "  %c = icmp ne i8ptr %p, null\n"
                           "  br i1 %c, label %there, label %null\n"
                           "there:\n"
                           "  %a = getelementptr i8, i8ptr %p, i64 16\n"
                           "  %w = bitcast i8ptr %a to i64ptr\n"
                           "  store i64 %x, i64ptr %w\n"
                           "  ret i64 1\n"
                           "null:\n"
                           "  ret i64 42\n"
                           "}\n"
                           "define i64 @below(i8ptr %p) uwtable {\n"
                           "  %c = icmp eq i8ptr %p, null\n"
                           "  br i1 %c, label %null, label %there\n"
                           "null:\n"
                           "  ret i64 42\n"
                           "there:\n"
                           "  %a = getelementptr i8, i8ptr %p, i64 -16\n"
                           "  %w = bitcast i8ptr %a to i64ptr\n"
                           "  %x = load i64, i64ptr %w\n"
                           "  ret i64 %x\n"
                           "}\n";

static const char *const names[] = {"load", "store", "below"};
enum { NAMES = 3, LOAD = 0, STORE = 1, BELOW = 2 };

static LLVMModuleRef parse(LLVMContextRef context)
{
    char spelt[2 * sizeof text];
    char *out = spelt;
    for (const char *in = text; *in != '\0';) {
        bool is_byte = strncmp(in, "i8ptr", 5) == 0;
        bool is_word = strncmp(in, "i64ptr", 6) == 0;
        if (!is_byte && !is_word) {
            *out++ = *in++;
            continue;
        }
        out = stpcpy(out, LLVM_HAS_OPAQUE_POINTERS ? "ptr" : is_byte ? "i8*" : "i64*");
        in += is_byte ? 5 : 6;
    }
    *out = '\0';
    return support_parse_valid(context, spelt);
}

static void make_all_implicit(LLVMModuleRef module)
{
    struct cairn_error error;
    for (int i = 0; i < NAMES; i++) {
        LLVMValueRef function = LLVMGetNamedFunction(module, names[i]);
        LLVMValueRef branch = LLVMGetBasicBlockTerminator(LLVMGetEntryBasicBlock(function));
        ck_assert_ok(cairn_make_implicit(branch, &error));
    }
}

/* ---- Loading ---- */

static struct {
    LLVMContextRef context;
    cairn_runtime *runtime;
    cairn_engine *engine;
    struct support_allocator allocator;
    uint64_t (*functions[NAMES])(void *pointer, uint64_t value);
} loaded;

/* Whether the LLVM in use writes fault maps for this machine. */
static bool has_faults(void)
{
    enum cairn_architecture host = cairn_architecture_host();
    return host == CAIRN_ARCHITECTURE_X86_64 || host == CAIRN_ARCHITECTURE_AARCH64;
}

static enum cairn_status load_module(struct cairn_error *error)
{
    const struct cairn_engine_options options = {.optimisation_level = 2,
                                                 .implicit_null_checks = true};
    LLVMModuleRef module = parse(loaded.context);
    make_all_implicit(module);
    enum cairn_status status =
        cairn_engine_create(loaded.runtime, module, &options, &loaded.engine, error);
    if (status != CAIRN_OK) {
        LLVMDisposeModule(module);
        return status;
    }
    return cairn_engine_compile(loaded.engine, error);
}

static void begin(void)
{
    memset(&loaded, 0, sizeof loaded);
    loaded.context = LLVMContextCreate();
    const struct cairn_runtime_options options = {.allocator = support_counting(&loaded.allocator)};
    ck_assert_ok(cairn_runtime_create(&options, &loaded.runtime, NULL));
}

static void end(void)
{
    cairn_engine_destroy(loaded.engine);
    cairn_runtime_quiesce(loaded.runtime);
    cairn_runtime_destroy(loaded.runtime);
    LLVMContextDispose(loaded.context);
    ck_assert_uint_eq(loaded.allocator.outstanding_bytes, 0);
}

/* ---- The handler ---- */

static atomic_uint continued;
static atomic_uint wrong;
static sigjmp_buf not_ours;
static volatile sig_atomic_t expects_foreign;

/* The lookup without a signal must give the same result. */
static void compare(const struct cairn_fault_entry *entry, uint64_t pc)
{
    struct cairn_fault_entry asked;
    if (entry->address != pc || !support_find_fault(loaded.runtime, pc, &asked) ||
        asked.handler_address != entry->handler_address)
        wrong++;
}

static void handle(int signal, siginfo_t *info, void *ucontext)
{
    (void)signal;
    struct cairn_fault_entry entry;
    uint64_t pc = arch_signal_pc(ucontext);
    if (cairn_fault_continue(loaded.runtime, info, ucontext, 0, &entry)) {
        compare(&entry, pc);
        if (arch_signal_pc(ucontext) != entry.handler_address)
            wrong++;
        continued++;
        return;
    }
    if (arch_signal_pc(ucontext) != pc)
        wrong++;
    if (!expects_foreign)
        _exit(3);
    siglongjmp(not_ours, 1);
}

static void set_up(void)
{
    struct cairn_error error;
    begin();
    ck_assert_msg(load_module(&error) == CAIRN_OK, "%s", error.message);
    for (int i = 0; i < NAMES; i++)
        *(void **)&loaded.functions[i] = support_compiled_function(loaded.engine, names[i], &error);
    const struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    continued = 0;
    wrong = 0;
    expects_foreign = 0;
}

static void tear_down(void)
{
    signal(SIGSEGV, SIG_DFL);
    end();
}

static const cairn_fault_table *table(void)
{
    uint64_t pc = (uint64_t)(uintptr_t)loaded.functions[LOAD];
    return cairn_module_fault_table(cairn_runtime_find_module(loaded.runtime, pc));
}

static unsigned implicit_count(void) { return support_fault_count(table()); }

/* Whether the function's check is implicit. */
static bool is_implicit(int number)
{
    uint64_t function = (uint64_t)(uintptr_t)loaded.functions[number];
    for (uint32_t i = 0; i < implicit_count(); i++)
        if (support_fault_entry(table(), i).function_address == function)
            return true;
    return false;
}

/* ---- Faults of null ---- */

START_TEST(fault_maps_are_there_where_llvm_writes_them)
{
    if (!has_faults()) {
        ck_assert_ptr_null(table());
        return;
    }
    ck_assert(is_implicit(LOAD));
    ck_assert(is_implicit(BELOW));
    for (uint32_t i = 0; i < implicit_count(); i++) {
        struct cairn_fault_entry entry = support_fault_entry(table(), i);
        bool is_store = entry.function_address == (uint64_t)(uintptr_t)loaded.functions[STORE];
        ck_assert_int_eq(entry.kind, is_store ? CAIRN_FAULT_STORE : CAIRN_FAULT_LOAD);
        struct cairn_function function;
        ck_assert(cairn_runtime_find_function(loaded.runtime, entry.handler_address, &function));
        ck_assert_uint_eq(function.address, entry.function_address);
    }
    struct cairn_runtime_statistics statistics;
    cairn_runtime_statistics(loaded.runtime, &statistics);
    ck_assert_uint_ge(statistics.table_bytes, fault_table_size_bytes(table()));
}
END_TEST

START_TEST(access_through_null_continues_at_the_handler)
{
    uint64_t words[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    for (int i = 0; i < NAMES; i++)
        ck_assert_uint_eq(loaded.functions[i](NULL, 5), NULL_RESULT);
    ck_assert_uint_eq(continued, implicit_count());
    ck_assert_uint_eq(loaded.functions[LOAD](words, 0), 3);
    ck_assert_uint_eq(loaded.functions[BELOW](words + 4, 0), 2);
    ck_assert_uint_eq(loaded.functions[STORE](words, 77), 1);
    ck_assert_uint_eq(words[2], 77);
    ck_assert_uint_eq(continued, implicit_count());
    ck_assert_uint_eq(wrong, 0);
}
END_TEST

static void *fault_often(void *unused)
{
    (void)unused;
    uint64_t words[4] = {1, 2, 3, 4};
    for (int i = 0; i < FAULTS; i++) {
        bool is_null = i % 3 != 0;
        uint64_t loads = loaded.functions[LOAD](is_null ? NULL : words, 0);
        uint64_t stores = loaded.functions[STORE](is_null ? NULL : words, 9);
        if (loads != (is_null ? NULL_RESULT : 4) || stores != (is_null ? NULL_RESULT : 1))
            wrong++;
    }
    return NULL;
}

START_TEST(thousands_of_faults_in_several_threads)
{
    pthread_t threads[THREADS];
    size_t allocations = loaded.allocator.calls;
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, fault_often, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(wrong, 0);
    unsigned of_null = FAULTS - (FAULTS + 2) / 3;
    unsigned expected = (unsigned)(is_implicit(LOAD) + is_implicit(STORE)) * THREADS * of_null;
    ck_assert_uint_eq(continued, expected);
    ck_assert_uint_eq(loaded.allocator.calls, allocations);
}
END_TEST

START_TEST(a_forked_child_continues_too)
{
    pid_t child = fork();
    if (child == 0) {
        bool is_right = loaded.functions[LOAD](NULL, 0) == NULL_RESULT;
        enum cairn_status status = cairn_runtime_after_fork(loaded.runtime, NULL);
        is_right = is_right && status == CAIRN_OK && loaded.functions[LOAD](NULL, 0) == NULL_RESULT;
        _exit(is_right && wrong == 0 ? 0 : 1);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

/* ---- Other faults ---- */

/* Calls the function with a non-null pointer to unmapped memory. */
static void expect_left_to_others(int function, uint64_t pointer)
{
    if (sigsetjmp(not_ours, 1) == 0) {
        expects_foreign = 1;
        loaded.functions[function]((void *)(uintptr_t)pointer, 0);
        ck_abort_msg("0x%llx was taken for null", (unsigned long long)pointer);
    }
    expects_foreign = 0;
    ck_assert_uint_eq(continued, 0);
    ck_assert_uint_eq(wrong, 0);
}

/* Whether the address is mapped. Sanitizers map memory at addresses that are otherwise unused. */
static bool is_mapped(uint64_t address)
{
    void *page = (void *)(uintptr_t)(address & ~UINT64_C(4095));
    void *got =
        mmap(page, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == MAP_FAILED)
        return errno == EEXIST;
    munmap(got, 4096);
    return false;
}

START_TEST(wild_pointers_are_not_null)
{
    void *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const uint64_t pointers[] = {
        (uint64_t)(uintptr_t)nowhere,
        4096,
        8192 - 24,
        UINT64_C(1) << 40,
        -UINT64_C(8192),
        UINT64_C(1) << 31,
        123456,
    };
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++) {
        if (i > 0 && is_mapped(pointers[i]))
            continue;
        for (int function = 0; function < STORE + 1; function++)
            expect_left_to_others(function, pointers[i]);
    }
    munmap(nowhere, 4096);
}
END_TEST

#ifdef __x86_64__
START_TEST(addresses_that_are_not_canonical_are_not_null)
{
    /* The kernel reports a fault at address 0. */
    for (int function = 0; function < NAMES; function++)
        expect_left_to_others(function, UINT64_C(0x1234567800000000));
}
END_TEST
#endif

START_TEST(signals_that_somebody_sends_are_not_faults)
{
    if (sigsetjmp(not_ours, 1) == 0) {
        expects_foreign = 1;
        raise(SIGSEGV);
        ck_abort_msg("a signal that was sent has been taken for a fault");
    }
    ck_assert_uint_eq(continued, 0);
}
END_TEST

START_TEST(null_in_other_code_is_left_to_others)
{
    /* The address is in the first page, but is not 0, which sanitizers check for. */
    const volatile int *volatile nothing = (const volatile int *)(uintptr_t)8;
    if (sigsetjmp(not_ours, 1) == 0) {
        expects_foreign = 1;
        ck_assert_int_eq(*nothing, 0);
        ck_abort_msg("this code has no fault map");
    }
    ck_assert_uint_eq(continued, 0);
}
END_TEST

/* ---- Which addresses are null ---- */

static bool is_null(int code, uint64_t address, uint64_t null_bytes)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = SIGSEGV;
    info.si_code = code;
    info.si_addr = (void *)(uintptr_t)address;
    return cairn_fault_is_null(&info, null_bytes);
}

START_TEST(null_is_near_address_zero)
{
    for (int code = SEGV_MAPERR; code <= SEGV_ACCERR; code++) {
        ck_assert(is_null(code, 0, 0));
        ck_assert(is_null(code, CAIRN_FAULT_NULL_BYTES - 1, 0));
        ck_assert(is_null(code, 1 - (uint64_t)CAIRN_FAULT_NULL_BYTES, 0));
        ck_assert(!is_null(code, CAIRN_FAULT_NULL_BYTES, 0));
        ck_assert(!is_null(code, -(uint64_t)CAIRN_FAULT_NULL_BYTES, 0));
        ck_assert(is_null(code, 65535, 65536));
        ck_assert(!is_null(code, 65536, 65536));
        ck_assert(!is_null(code, 16, 16));
    }
    ck_assert(!is_null(SI_KERNEL, 0, 0));
    ck_assert(!is_null(SI_USER, 0, 0));
    ck_assert(!is_null(SI_TKILL, 0, 0));
    siginfo_t bus;
    memset(&bus, 0, sizeof bus);
    bus.si_signo = SIGBUS;
    bus.si_code = SEGV_MAPERR;
    ck_assert(!cairn_fault_is_null(&bus, 0));
}
END_TEST

/* ---- Lifetime ---- */

/* A thread may still be in the code, and the process would end without the handler. */
START_TEST(access_through_null_in_retired_code_continues_at_the_handler)
{
    if (!has_faults())
        return;
    cairn_module_retire(
        cairn_runtime_find_module(loaded.runtime, (uint64_t)(uintptr_t)loaded.functions[LOAD]));
    ck_assert_uint_eq(loaded.functions[LOAD](NULL, 0), NULL_RESULT);
    ck_assert_uint_eq(continued, 1);
}
END_TEST

START_TEST(retired_modules_are_not_searched_for_faults)
{
    if (!has_faults())
        return;
    struct cairn_fault_entry entry = support_fault_entry(table(), 0);
    uint64_t pc = entry.address;
    ck_assert(support_find_fault(loaded.runtime, pc, &entry));
    ck_assert(!support_find_fault(loaded.runtime, pc + 1, &entry));
    cairn_engine_destroy(loaded.engine);
    loaded.engine = NULL;
    ck_assert(!support_find_fault(loaded.runtime, pc, &entry));
}
END_TEST

START_TEST(each_failed_allocation_is_reported)
{
    for (size_t fail_at = 1;; fail_at++) {
        struct cairn_error error;
        begin();
        size_t before = loaded.allocator.calls;
        loaded.allocator.fail_at = before + fail_at;
        enum cairn_status status = load_module(&error);
        bool is_done = loaded.allocator.calls < before + fail_at;
        loaded.allocator.fail_at = 0;
        ck_assert(is_done ? status == CAIRN_OK : status == CAIRN_ERROR_MEMORY);
        end();
        if (is_done)
            break;
    }
}
END_TEST

START_TEST(only_branches_on_null_can_be_implicit)
{
    LLVMContextRef context = LLVMContextCreate();
    struct cairn_error error;
    LLVMModuleRef module = support_parse_valid(context, "define i64 @f(i64 %x, i1 %c) {\n"
                                                        "  %z = icmp eq i64 %x, 0\n"
                                                        "  br i1 %z, label %a, label %b\n"
                                                        "a:\n"
                                                        "  br i1 %c, label %b, label %d\n"
                                                        "b:\n"
                                                        "  br label %d\n"
                                                        "d:\n"
                                                        "  ret i64 0\n"
                                                        "}\n");
    LLVMValueRef function = LLVMGetNamedFunction(module, "f");
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block != NULL;
         block = LLVMGetNextBasicBlock(block)) {
        LLVMValueRef branch = LLVMGetBasicBlockTerminator(block);
        ck_assert_int_eq(cairn_make_implicit(branch, &error), CAIRN_ERROR_ARGUMENT);
        ck_assert(!LLVMHasMetadata(branch));
    }
    ck_assert_int_eq(cairn_make_implicit(NULL, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_make_implicit(function, &error), CAIRN_ERROR_ARGUMENT);
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
}
END_TEST

/* ---- Maps that LLVM does not write ---- */

static void put(uint8_t **at, uint64_t value, size_t size)
{
    memcpy(*at, &value, size);
    *at += size;
}

/* Builds a map of one function with one fault. */
static enum cairn_status load_map(uint64_t outside, struct cairn_error *error)
{
    enum { MAP_BYTES = 36, ROOM = 64 };
    cairn_loader *loader;
    cairn_module *module = NULL;
    ck_assert_ok(cairn_loader_create(loaded.runtime, "map", &loader, NULL));
    uint8_t *code = cairn_loader_allocate(loader, CAIRN_SECTION_CODE, 64, 16, NULL, NULL);
    uint8_t *map = cairn_loader_allocate(loader, CAIRN_SECTION_FAULTMAP, ROOM, 8, NULL, NULL);
    memset(code, 0, 64);
    put(&map, CAIRN_BYTE_ORDER_NATIVE == CAIRN_LITTLE_ENDIAN ? 1 : UINT64_C(1) << 56, 4);
    put(&map, 1, 4);
    put(&map, (uint64_t)(uintptr_t)code + outside, 8);
    put(&map, 1, 8);
    put(&map, CAIRN_FAULT_LOAD, 4);
    put(&map, 8, 4);
    put(&map, 16, 4);
    enum cairn_status status = cairn_loader_finish(loader, &module, error);
    if (status != CAIRN_OK) {
        cairn_loader_destroy(loader);
        return status;
    }
    struct cairn_fault_entry entry;
    ck_assert(cairn_fault_table_find(cairn_module_fault_table(module),
                                     (uint64_t)(uintptr_t)code + 8, &entry));
    ck_assert_uint_eq(entry.handler_address, (uint64_t)(uintptr_t)code + 16);
    cairn_module_retire(module);
    return CAIRN_OK;
}

START_TEST(a_map_of_other_code_is_refused)
{
    struct cairn_error error;
    ck_assert_ok(load_map(0, &error));
    ck_assert_int_eq(load_map(1 << 30, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(error.message, "the fault map of 'map'"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("llvm_faults");
    TCase *faults = tcase_create("faults");
    tcase_set_timeout(faults, 240);
    tcase_add_checked_fixture(faults, set_up, tear_down);
    tcase_add_test(faults, fault_maps_are_there_where_llvm_writes_them);
    tcase_add_test(faults, access_through_null_continues_at_the_handler);
    tcase_add_test(faults, thousands_of_faults_in_several_threads);
    tcase_add_test(faults, a_forked_child_continues_too);
    tcase_add_test(faults, wild_pointers_are_not_null);
#ifdef __x86_64__
    tcase_add_test(faults, addresses_that_are_not_canonical_are_not_null);
#endif
    tcase_add_test(faults, signals_that_somebody_sends_are_not_faults);
    tcase_add_test(faults, null_in_other_code_is_left_to_others);
    tcase_add_test(faults, access_through_null_in_retired_code_continues_at_the_handler);
    tcase_add_test(faults, retired_modules_are_not_searched_for_faults);
    tcase_add_test(faults, a_map_of_other_code_is_refused);
    suite_add_tcase(suite, faults);
    TCase *others = tcase_create("others");
    tcase_set_timeout(others, 240);
    tcase_add_test(others, null_is_near_address_zero);
    tcase_add_test(others, each_failed_allocation_is_reported);
    tcase_add_test(others, only_branches_on_null_can_be_implicit);
    suite_add_tcase(suite, others);
    return support_main(suite);
}
