/*
 * Tests of ORC: what a JIT of LLJIT links becomes a module of the runtime, with its records, sites,
 * exits and frames. Each test checks at its end that all memory is freed, and all unwind tables
 * are deregistered.
 *
 * SPDX-License-Identifier: MIT
 */
#include "orc_support.h"
#include "record/table.h"

#include "runtime_support.h"
#include "tests/allocator_support.h"
#include "tests/mode_support.h"

#include <llvm-c/Support.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if LLVM_HAS_ORC_CALLBACKS

static struct support_allocator allocator;
static cairn_runtime *runtime;
static cairn_orc *orc;
static LLVMOrcLLJITRef jit;

static void begin(const struct cairn_orc_options *options)
{
    ck_assert_ok(cairn_orc_create(runtime, options, &orc, NULL));
    jit = orc_create_jit(orc);
}

static void set_up(enum cairn_code_mode mode)
{
    allocator = (struct support_allocator){.fail_at = 0};
    const struct cairn_runtime_options options = {.allocator = support_counting(&allocator),
                                                  .code_mode = mode};
    ck_assert_ok(cairn_runtime_create(&options, &runtime, NULL));
    orc = NULL;
    jit = NULL;
}

static void set_up_dual(void) { set_up(CAIRN_CODE_MODE_DUAL); }
static void set_up_single(void) { set_up(CAIRN_CODE_MODE_SINGLE); }

static void tear_down(void)
{
    if (jit != NULL)
        orc_dispose(jit);
    cairn_orc_destroy(orc);
    cairn_runtime_destroy(runtime);
    ck_assert_uint_eq(allocator.outstanding_bytes, 0);
    ck_assert_int_eq(orc_registered_tables(), 0);
}

static int64_t add_hundred(int64_t x) { return x + 100; }

static cairn_site *find_site(uint64_t id)
{
    struct cairn_error error = {0};
    cairn_site *site = cairn_runtime_find_site(runtime, id, &error);
    ck_assert_msg(site != NULL, "%s", error.message);
    return site;
}

static void call_target(uint64_t id, orc_function *target)
{
    struct cairn_error error = {0};
    enum cairn_status status =
        cairn_site_call(find_site(id), (void *)(uintptr_t)target, CAIRN_SYNC, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}

static cairn_module *module_of(orc_function *f)
{
    return cairn_runtime_find_module(runtime, (uintptr_t)f);
}

static void assert_says(const struct cairn_error *error, const char *text)
{
    ck_assert_msg(strstr(error->message, text) != NULL, "%s", error->message);
}

/* ---- Loading ---- */

START_TEST(looking_a_function_up_loads_its_module)
{
    begin(NULL);
    orc_add(jit, orc_parse_site("f", 7), NULL);
    ck_assert_ptr_null(cairn_runtime_find_site(runtime, 7, NULL));
    orc_function *f = orc_lookup(orc, jit, "f");
    ck_assert_int_eq(f(1), 1);
    call_target(7, add_hundred);
    ck_assert_int_eq(f(1), 101);
    ck_assert_str_eq(cairn_module_name(module_of(f)), "orc");
    struct cairn_function function;
    ck_assert(cairn_runtime_find_function(runtime, (uintptr_t)f, &function));
    ck_assert_uint_eq(function.address, (uintptr_t)f);
}
END_TEST

START_TEST(modules_call_each_other_and_the_host)
{
    begin(NULL);
    orc_define(jit, "host", (void *)(uintptr_t)add_hundred);
    orc_add(jit, orc_parse(ORC_CALL, "g", "f", "g"), NULL);
    orc_add(jit, orc_parse(ORC_CALL, "host", "g", "host"), NULL);
    orc_function *f = orc_lookup(orc, jit, "f");
    ck_assert_int_eq(f(1), 101);
    ck_assert_ptr_ne(module_of(f), module_of(orc_lookup(orc, jit, "g")));
}
END_TEST

START_TEST(modules_of_the_same_ids_have_their_own_declarations)
{
    static const char other[] = SUPPORT_INTRINSICS
        "define void @%s(i64 %%x) {\n"
        "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 %u, i32 32)\n"
        "  ret void\n"
        "}\n";
    begin(NULL);
    orc_add(jit, orc_parse_site("f", 7), NULL);
    orc_add(jit, orc_parse(other, "g", 7), NULL);
    const char *const names[] = {"f", "g"};
    for (int i = 0; i < 2; i++) {
        cairn_module *module = module_of(orc_lookup(orc, jit, names[i]));
        struct cairn_record record;
        ck_assert_uint_eq(table_find_id(cairn_module_table(module), 7, &record, 1), 1);
        ck_assert_str_eq(cairn_record_declaration(record)->function, names[i]);
        ck_assert_ptr_nonnull(cairn_record_site(record));
    }
}
END_TEST

/* A host that compiles by itself calls the transformation by itself. */
static LLVMErrorRef compile(void *user, LLVMModuleRef module)
{
    LLVMMemoryBufferRef *object = user;
    const struct support_compilation compilation = {.optimisation_level = 2};
    *object = support_compile_to_memory(module, &compilation);
    return LLVMErrorSuccess;
}

START_TEST(objects_that_the_host_compiled_have_sites)
{
    begin(NULL);
    LLVMMemoryBufferRef object = NULL;
    LLVMOrcThreadSafeModuleRef module = orc_parse_site("f", 7);
    orc_assert_success(cairn_orc_transform(orc, &module, NULL));
    orc_assert_success(LLVMOrcThreadSafeModuleWithModuleDo(module, compile, &object));
    LLVMOrcDisposeThreadSafeModule(module);
    orc_assert_success(LLVMOrcLLJITAddObjectFile(jit, LLVMOrcLLJITGetMainJITDylib(jit), object));
    orc_function *f = orc_lookup(orc, jit, "f");
    call_target(7, add_hundred);
    ck_assert_int_eq(f(1), 101);
}
END_TEST

struct hooks {
    int before;
    int after;
    bool found_before;
    bool found_after;
    enum cairn_status patched;
};

static void before(cairn_module *module, void *user)
{
    struct hooks *hooks = user;
    cairn_site *site = cairn_module_site(module, 0);
    if (site == NULL)
        return; /* a module of LLJIT itself */
    hooks->before++;
    hooks->found_before = cairn_runtime_find_id(runtime, 7, NULL, 0) != 0;
    hooks->patched =
        cairn_site_call(site, (const void *)(uintptr_t)add_hundred, CAIRN_RELAXED, NULL);
}

static void after(cairn_module *module, void *user)
{
    struct hooks *hooks = user;
    if (support_site_count(module) == 0)
        return;
    hooks->after++;
    hooks->found_after = cairn_runtime_find_id(runtime, 7, NULL, 0) == 1;
}

START_TEST(hooks_see_the_module_before_and_after_publication)
{
    struct hooks hooks = {.patched = CAIRN_ERROR_STATE};
    begin(&(struct cairn_orc_options){
        .loading.modules = {
            .name = "mine", .before_publish = before, .after_publish = after, .user = &hooks}});
    orc_add(jit, orc_parse_site("f", 7), NULL);
    orc_function *f = orc_lookup(orc, jit, "f");
    ck_assert_int_eq(hooks.before, 1);
    ck_assert_int_eq(hooks.after, 1);
    ck_assert(!hooks.found_before);
    ck_assert(hooks.found_after);
    ck_assert_ok(hooks.patched);
    ck_assert_int_eq(f(1), 101);
    ck_assert_str_eq(cairn_module_name(module_of(f)), "mine");
}
END_TEST

/* ---- Exits, frames and sections ---- */

static struct {
    int calls;
    int64_t value;
    uint64_t caller;
    enum cairn_status status;
} seen;

static void leave(struct cairn_exit_call *call, void *user)
{
    (void)user;
    struct cairn_value value = {0};
    struct cairn_frame caller = call->frame;
    seen.calls++;
    seen.status = cairn_frame_value(&call->frame, call->record, 0, &value, NULL);
    seen.value = cairn_value_signed(&value);
    if (cairn_frame_caller(&caller, NULL) == CAIRN_OK)
        seen.caller = caller.pc;
    struct cairn_value result = cairn_value_of_integer(64, 1000);
    if (seen.status == CAIRN_OK)
        seen.status = cairn_exit_return(call, &result, 1, NULL);
}

START_TEST(an_exit_reads_the_frame_and_returns_from_it)
{
    static const char text[] = SUPPORT_INTRINSICS
        "define i64 @g(i64 %x) noinline uwtable {\n"
        "  %y = mul i64 %x, 3\n"
        "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(\n"
        "      i64 7, i32 48, ptr null, i32 0, i64 %y)\n"
        "  ret i64 %y\n"
        "}\n"
        "define i64 @f(i64 %x) uwtable {\n"
        "  %r = call i64 @g(i64 %x)\n"
        "  %s = add i64 %r, 1\n"
        "  ret i64 %s\n"
        "}\n";
    cairn_exit *the_exit;
    begin(NULL);
    memset(&seen, 0, sizeof seen);
    orc_add(jit, orc_parse("%s", text), NULL);
    orc_function *f = orc_lookup(orc, jit, "f");
    ck_assert_int_eq(f(14), 43);
    ck_assert_ok(cairn_exit_create(runtime, leave, NULL, &the_exit, NULL));
    ck_assert_ok(cairn_site_call(find_site(7), cairn_exit_target(the_exit), CAIRN_SYNC, NULL));
    ck_assert_int_eq(f(14), 1001);
    ck_assert_int_eq(seen.calls, 1);
    ck_assert_ok(seen.status);
    ck_assert_int_eq(seen.value, 42);
    ck_assert_ptr_eq(cairn_runtime_find_module(runtime, seen.caller), module_of(f));
    cairn_exit_destroy(the_exit);
}
END_TEST

START_TEST(pc_sections_are_kept)
{
    static const struct cairn_pc_section pc_section = {
        .section = "notes",
        .has_schema = true,
        .schema = {.has_size = true, .constant_count = 1, .constant_bytes = {4}}};
    begin(&(struct cairn_orc_options){
        .loading.modules = {.pc_sections = &pc_section, .pc_section_count = 1}});
    orc_add(jit,
            orc_parse("define void @f(i64 %%x) uwtable !pcsections !0 {\n  ret void\n}\n"
                      "!0 = !{!\"notes\", !1}\n!1 = !{i32 42}\n"),
            NULL);
    orc_function *f = orc_lookup(orc, jit, "f");
    struct cairn_pc_table_entry entry;
    ck_assert_uint_eq(support_find_pc_entries(runtime, (uintptr_t)f, &entry, 1), 1);
    ck_assert_uint_eq(entry.value.constants[0], 42);
}
END_TEST

static void continue_at_handler(int signal, siginfo_t *info, void *ucontext)
{
    (void)signal;
    if (!cairn_fault_continue(runtime, info, ucontext, 0, NULL))
        _exit(3);
}

/* The process has LLVM's option only in this test. */
START_TEST(fault_maps_are_loaded)
{
    static const char *const arguments[] = {"test", "-enable-implicit-null-checks"};
    const struct sigaction action = {.sa_sigaction = continue_at_handler, .sa_flags = SA_SIGINFO};
    enum cairn_architecture host = cairn_architecture_host();
    LLVMParseCommandLineOptions(2, arguments, NULL);
    begin(NULL);
    orc_add(jit,
            orc_parse("define i64 @f(ptr %%p) uwtable {\n"
                      "  %%c = icmp eq ptr %%p, null\n"
                      "  br i1 %%c, label %%null, label %%there, !make.implicit !0\n"
                      "null:\n"
                      "  ret i64 42\n"
                      "there:\n"
                      "  %%x = load i64, ptr %%p\n"
                      "  ret i64 %%x\n"
                      "}\n"
                      "!0 = !{}\n"),
            NULL);
    orc_function *f = orc_lookup(orc, jit, "f");
    const cairn_fault_table *faults = cairn_module_fault_table(module_of(f));
    ck_assert_int_eq(faults != NULL, host != CAIRN_ARCHITECTURE_PPC64_ELFV2);
    sigaction(SIGSEGV, &action, NULL);
    const int64_t value = 5;
    ck_assert_int_eq(f((intptr_t)&value), 5);
    ck_assert_int_eq(f(0), 42);
    signal(SIGSEGV, SIG_DFL);
}
END_TEST

START_TEST(deoptimize_calls_the_exit_that_the_host_defines)
{
    enum cairn_architecture host = cairn_architecture_host();
    if (host != CAIRN_ARCHITECTURE_X86_64 && host != CAIRN_ARCHITECTURE_AARCH64)
        return; /* LLVM has no statepoints */
    cairn_exit *the_exit;
    begin(NULL);
    memset(&seen, 0, sizeof seen);
    ck_assert_ok(cairn_exit_create(runtime, leave, NULL, &the_exit, NULL));
    orc_define(jit, "__llvm_deoptimize", cairn_exit_target(the_exit));
    orc_add(jit,
            orc_parse("declare i64 @llvm.experimental.deoptimize.i64(...)\n"
                      "define i64 @f(i64 %%x) uwtable {\n"
                      "  %%r = call i64 (...) @llvm.experimental.deoptimize.i64()"
                      " [ \"deopt\"(i64 %%x) ]\n"
                      "  ret i64 %%r\n"
                      "}\n"),
            NULL);
    ck_assert_int_eq(orc_lookup(orc, jit, "f")(5), 1000);
    ck_assert_ok(seen.status);
    ck_assert_int_eq(seen.value, 5);
    cairn_exit_destroy(the_exit);
}
END_TEST

/* ---- Lazy functions ---- */

static void no_lazy_function(void) { ck_abort_msg("a lazy function was not found"); }

/* Whether memory that was writable may become executable, as LLVM's trampolines need. */
static bool may_gain_execution(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(page, MAP_FAILED);
    bool may_gain = mprotect(page, size, PROT_READ | PROT_EXEC) == 0;
    munmap(page, size);
    return may_gain;
}

START_TEST(a_lazy_function_is_loaded_by_its_first_call)
{
    begin(NULL);
    if (!may_gain_execution())
        return;
    LLVMOrcLazyCallThroughManagerRef calls;
    LLVMOrcJITDylibRef library = LLVMOrcLLJITGetMainJITDylib(jit);
    const char *triple = LLVMOrcLLJITGetTripleString(jit);
    LLVMErrorRef failure = LLVMOrcCreateLocalLazyCallThroughManager(
        triple, LLVMOrcLLJITGetExecutionSession(jit), (uintptr_t)no_lazy_function, &calls);
    if (cairn_architecture_host() == CAIRN_ARCHITECTURE_PPC64_ELFV2) {
        ck_assert_int_eq(cairn_orc_status(orc, failure, NULL), CAIRN_ERROR_LLVM);
        return; /* LLVM has no lazy calls */
    }
    orc_assert_success(failure);
    LLVMOrcIndirectStubsManagerRef stubs = LLVMOrcCreateLocalIndirectStubsManager(triple);
    LLVMOrcCSymbolAliasMapPair alias = {
        .Name = LLVMOrcLLJITMangleAndIntern(jit, "lazy"),
        .Entry = {.Name = LLVMOrcLLJITMangleAndIntern(jit, "f"),
                  .Flags = {.GenericFlags = LLVMJITSymbolGenericFlagsExported |
                                            LLVMJITSymbolGenericFlagsCallable}}};
    orc_assert_success(
        LLVMOrcJITDylibDefine(library, LLVMOrcLazyReexports(calls, stubs, library, &alias, 1)));
    orc_add(jit, orc_parse_site("f", 7), NULL);
    orc_function *lazy = orc_lookup(orc, jit, "lazy");
    ck_assert_ptr_null(cairn_runtime_find_site(runtime, 7, NULL));
    ck_assert_int_eq(lazy(1), 1);
    call_target(7, add_hundred);
    ck_assert_int_eq(lazy(1), 101);
    orc_dispose(jit);
    jit = NULL;
    LLVMOrcDisposeIndirectStubsManager(stubs);
    LLVMOrcDisposeLazyCallThroughManager(calls);
}
END_TEST

/* ---- Removal ---- */

START_TEST(removing_a_resource_tracker_retires_its_module)
{
    begin(NULL);
    LLVMOrcResourceTrackerRef tracker;
    orc_add(jit, orc_parse_site("f", 7), &tracker);
    orc_add(jit, orc_parse_site("g", 8), NULL);
    orc_function *f = orc_lookup(orc, jit, "f");
    orc_function *g = orc_lookup(orc, jit, "g");
    cairn_runtime_quiesce(runtime);
    orc_remove(tracker);
    ck_assert_ptr_null(cairn_runtime_find_site(runtime, 7, NULL));
    ck_assert_ptr_null(module_of(f));
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 1);
    ck_assert_int_eq(g(1), 1);
    orc_add(jit, orc_parse_site("f", 7), NULL);
    ck_assert_int_eq(orc_lookup(orc, jit, "f")(3), 3);
    ck_assert_ptr_nonnull(cairn_runtime_find_site(runtime, 7, NULL));
}
END_TEST

START_TEST(a_removed_module_stays_while_it_is_referenced)
{
    begin(NULL);
    LLVMOrcResourceTrackerRef tracker;
    orc_add(jit, orc_parse_site("f", 7), &tracker);
    orc_function *f = orc_lookup(orc, jit, "f");
    cairn_module *module = module_of(f);
    cairn_module_retain(module);
    cairn_runtime_quiesce(runtime);
    orc_remove(tracker);
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 0);
    ck_assert_int_eq(f(3), 3);
    cairn_module_release(module);
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 1);
}
END_TEST

START_TEST(disposing_of_a_jit_retires_its_modules)
{
    begin(NULL);
    orc_add(jit, orc_parse_site("f", 7), NULL);
    orc_function *f = orc_lookup(orc, jit, "f");
    cairn_orc_destroy(orc); /* the JIT still uses it */
    orc = NULL;
    ck_assert_int_eq(f(3), 3);
    orc_dispose(jit);
    jit = NULL;
    ck_assert_ptr_null(cairn_runtime_find_site(runtime, 7, NULL));
    ck_assert_uint_ge(cairn_runtime_quiesce(runtime), 1);
}
END_TEST

START_TEST(several_jits_share_a_runtime)
{
    begin(NULL);
    LLVMOrcLLJITRef second = orc_create_jit(orc);
    orc_add(jit, orc_parse_site("f", 7), NULL);
    orc_add(second, orc_parse_site("f", 7), NULL);
    orc_function *f = orc_lookup(orc, jit, "f");
    ck_assert(f != orc_lookup(orc, second, "f"));
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 7, NULL, 0), 2);
    orc_dispose(second);
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 7, NULL, 0), 1);
    ck_assert_int_eq(f(3), 3);
}
END_TEST

/* ---- Errors ---- */

START_TEST(an_undefined_symbol_is_named)
{
    begin(NULL);
    orc_add(jit, orc_parse(ORC_CALL, "nobody_defines_this", "f", "nobody_defines_this"), NULL);
    struct cairn_error error = orc_lookup_failure(orc, jit, "f");
    ck_assert_int_eq(error.status, CAIRN_ERROR_LLVM);
    assert_says(&error, "nobody_defines_this");
    orc_add(jit, orc_parse_site("g", 7), NULL);
    ck_assert_int_eq(orc_lookup(orc, jit, "g")(1), 1);
}
END_TEST

START_TEST(a_function_that_does_not_exist_is_named)
{
    begin(NULL);
    struct cairn_error error = orc_lookup_failure(orc, jit, "absent");
    ck_assert_int_eq(error.status, CAIRN_ERROR_LLVM);
    assert_says(&error, "absent");
    uint64_t address = 0;
    ck_assert_int_eq(cairn_orc_status(NULL, LLVMOrcLLJITLookup(jit, &address, "absent"), NULL),
                     CAIRN_ERROR_LLVM);
}
END_TEST

static const char unknown_gc[] = "define void @f() gc \"unknown\" {\n  ret void\n}\n";

static void note(const struct cairn_finding *finding, void *user)
{
    (void)finding;
    ++*(int *)user;
}

START_TEST(a_module_that_would_crash_llvm_is_refused)
{
    begin(NULL);
    orc_add(jit, orc_parse(unknown_gc), NULL);
    struct cairn_error error = orc_lookup_failure(orc, jit, "f");
    ck_assert_int_eq(error.status, CAIRN_ERROR_LLVM);
    assert_says(&error, "unknown");
}
END_TEST

START_TEST(the_check_passes_its_findings_on)
{
    int findings = 0;
    begin(&(struct cairn_orc_options){.check = {.finding = note, .user = &findings}});
    /* The statepoint of a call in a library function that LLVM replaces by an instruction. */
    orc_add(jit,
            orc_parse("declare double @sqrt(double) readonly\n"
                      "define double @f(double %%x) {\n"
                      "  %%r = call double @sqrt(double %%x) readonly [ \"deopt\"(i32 1) ]\n"
                      "  ret double %%r\n"
                      "}\n"),
            NULL);
    struct cairn_error error = orc_lookup_failure(orc, jit, "f");
    ck_assert_int_eq(error.status, CAIRN_ERROR_LLVM);
    ck_assert_int_gt(findings, 0);
}
END_TEST

static const char two_shapes[] =
    SUPPORT_INTRINSICS "define void @f(i64 %%x) {\n"
                       "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 0)\n"
                       "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 8)\n"
                       "  ret void\n"
                       "}\n";

START_TEST(an_id_with_two_shapes_is_a_conflict)
{
    begin(NULL);
    orc_add(jit, orc_parse(two_shapes), NULL);
    struct cairn_error error = orc_lookup_failure(orc, jit, "f");
    ck_assert_int_eq(error.status, CAIRN_ERROR_CONFLICT);
    orc_add(jit, orc_parse_site("g", 7), NULL);
    ck_assert_int_eq(orc_lookup(orc, jit, "g")(1), 1);
}
END_TEST

START_TEST(an_id_with_two_shapes_may_be_renumbered)
{
    begin(&(struct cairn_orc_options){
        .loading.modules = {.id_conflicts = CAIRN_ID_CONFLICTS_RENUMBERED}});
    orc_add(jit, orc_parse(two_shapes), NULL);
    cairn_module *module = module_of(orc_lookup(orc, jit, "f"));
    ck_assert_uint_eq(cairn_table_record_count(cairn_module_table(module)), 2);
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 7, NULL, 0), 0);
}
END_TEST

START_TEST(a_finalisation_that_fails_leaves_nothing)
{
    static const struct cairn_pc_section pc_section = {
        .section = "notes",
        .has_schema = true,
        .schema = {.has_size = true}}; /* without the constant */
    begin(&(struct cairn_orc_options){
        .loading.modules = {.pc_sections = &pc_section, .pc_section_count = 1}});
    orc_add(jit,
            orc_parse("define void @f(i64 %%x) uwtable !pcsections !0 {\n  ret void\n}\n"
                      "!0 = !{!\"notes\", !1}\n!1 = !{i32 42}\n"),
            NULL);
    struct cairn_error error = orc_lookup_failure(orc, jit, "f");
    assert_says(&error, "notes");
    ck_assert_int_ne(error.status, CAIRN_ERROR_LLVM);
    ck_assert_int_eq(orc_registered_tables(), 0);
    orc_add(jit, orc_parse_site("g", 7), NULL);
    ck_assert_int_eq(orc_lookup(orc, jit, "g")(1), 1);
    ck_assert_int_gt(orc_registered_tables(), 0);
}
END_TEST

/* The tracker is removed by another thread while the object is finalised. */
static void remove_tracker(cairn_module *module, void *user)
{
    LLVMOrcResourceTrackerRef *tracker = user;
    if (support_site_count(module) > 0)
        orc_remove(*tracker);
}

START_TEST(a_tracker_may_be_removed_while_its_module_is_published)
{
    LLVMOrcResourceTrackerRef tracker;
    begin(&(struct cairn_orc_options){
        .loading.modules = {.after_publish = remove_tracker, .user = &tracker}});
    orc_add(jit, orc_parse_site("f", 7), &tracker);
    orc_lookup_failure(orc, jit, "f");
    ck_assert_ptr_null(cairn_runtime_find_site(runtime, 7, NULL));
    ck_assert_int_eq(orc_registered_tables(), 0);
}
END_TEST

START_TEST(arguments_are_checked)
{
    struct cairn_error error;
    ck_assert_int_eq(cairn_orc_create(NULL, NULL, &orc, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_orc_create(runtime, NULL, NULL, &error), CAIRN_ERROR_ARGUMENT);
    const struct cairn_orc_options small = {.loading = {.code_model = LLVMCodeModelSmall}};
    ck_assert_int_eq(cairn_orc_create(runtime, &small, &orc, &error), CAIRN_ERROR_UNSUPPORTED);
    cairn_orc_destroy(NULL);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, looking_a_function_up_loads_its_module);
    tcase_add_test(tests, modules_call_each_other_and_the_host);
    tcase_add_test(tests, modules_of_the_same_ids_have_their_own_declarations);
    tcase_add_test(tests, objects_that_the_host_compiled_have_sites);
    tcase_add_test(tests, hooks_see_the_module_before_and_after_publication);
    tcase_add_test(tests, an_exit_reads_the_frame_and_returns_from_it);
    tcase_add_test(tests, pc_sections_are_kept);
    tcase_add_test(tests, fault_maps_are_loaded);
    tcase_add_test(tests, deoptimize_calls_the_exit_that_the_host_defines);
    tcase_add_test(tests, a_lazy_function_is_loaded_by_its_first_call);
    tcase_add_test(tests, removing_a_resource_tracker_retires_its_module);
    tcase_add_test(tests, a_removed_module_stays_while_it_is_referenced);
    tcase_add_test(tests, disposing_of_a_jit_retires_its_modules);
    tcase_add_test(tests, several_jits_share_a_runtime);
    tcase_add_test(tests, an_undefined_symbol_is_named);
    tcase_add_test(tests, a_function_that_does_not_exist_is_named);
    tcase_add_test(tests, a_module_that_would_crash_llvm_is_refused);
    tcase_add_test(tests, the_check_passes_its_findings_on);
    tcase_add_test(tests, an_id_with_two_shapes_is_a_conflict);
    tcase_add_test(tests, an_id_with_two_shapes_may_be_renumbered);
    tcase_add_test(tests, a_finalisation_that_fails_leaves_nothing);
    tcase_add_test(tests, a_tracker_may_be_removed_while_its_module_is_published);
    tcase_add_test(tests, arguments_are_checked);
}

static void add_cases(Suite *suite)
{
    static void (*const set_ups[SITE_MODES])(void) = {set_up_dual, set_up_single};
    static const char *const names[SITE_MODES] = {"dual mapping", "single mapping"};
    for (int i = site_first_mode(); i < SITE_MODES; i++) {
        TCase *tests = tcase_create(names[i]);
        tcase_add_checked_fixture(tests, set_ups[i], tear_down);
        add_tests(tests);
        suite_add_tcase(suite, tests);
    }
}

#else

START_TEST(an_old_llvm_is_named)
{
    cairn_runtime *runtime;
    cairn_orc *orc = NULL;
    struct cairn_error error;
    ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL));
    ck_assert_int_eq(cairn_orc_create(runtime, NULL, &orc, &error), CAIRN_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "LLVM 16"));
    ck_assert_ptr_null(orc);
    cairn_runtime_destroy(runtime);
}
END_TEST

static void add_cases(Suite *suite)
{
    TCase *tests = tcase_create("old LLVM");
    tcase_add_test(tests, an_old_llvm_is_named);
    suite_add_tcase(suite, tests);
}

#endif

int main(void)
{
    Suite *suite = suite_create("ORC");
    add_cases(suite);
    return support_main(suite);
}
