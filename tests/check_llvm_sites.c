/*
 * Tests of sites that LLVM has made and that the engine's tests do not cover: statepoints with
 * bytes to patch, and stack maps in Mach-O's section.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm_support.h"

#include "arch/arch.h"
#include "tests/machine.h"
#include "llvm/version.h"

#include <llvm-c/IRReader.h>
#include <stdio.h>
#include <string.h>

static LLVMContextRef context;
static cairn_runtime *runtime;

static void set_up(void)
{
    context = LLVMContextCreate();
    ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL));
}

static void tear_down(void)
{
    cairn_runtime_destroy(runtime);
    LLVMContextDispose(context);
}

static cairn_engine *create_engine(LLVMModuleRef module)
{
    struct cairn_error error = {0};
    cairn_engine *engine = NULL;
    enum cairn_status status = cairn_engine_create(runtime, module, NULL, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return engine;
}

typedef long function(void);

static function *get(cairn_engine *engine, const char *name)
{
    struct cairn_error error = {0};
    void *address = support_compiled_function(engine, name, &error);
    ck_assert_msg(address != NULL, "%s", error.message);
    return (function *)(uintptr_t)address;
}

static struct cairn_site_description describe(const cairn_site *site)
{
    struct cairn_site_description description;
    cairn_site_describe(site, &description);
    return description;
}

static int calls;
static void count_call(void) { calls++; }
#define COUNT_CALL ((const void *)(uintptr_t)count_call)

/* ---- Statepoints ---- */

/* LLVM fills the bytes of a statepoint with no-ops, and the host patches in the call. */
enum { LARGEST = 24 };

/* The sizes are whole instructions. */
static int step(void)
{
    int fixed = (int)arch_host()->fixed_instruction_bytes;
    return fixed == 0 ? 1 : fixed;
}

static int smallest(void) { return 8 + step(); }

#if LLVM_HAS_OPAQUE_POINTERS
#define STATEPOINT "llvm.experimental.gc.statepoint.p0"
#define STATEPOINT_TYPE "(i64, i32, ptr, i32, i32, ...)"
#define STATEPOINT_TARGET "ptr elementtype(void ()) @target"
#else
#define STATEPOINT "llvm.experimental.gc.statepoint.p0f_isVoidf"
#define STATEPOINT_TYPE "(i64, i32, void ()*, i32, i32, ...)"
#define STATEPOINT_TARGET "void ()* @target"
#endif

/* Builds functions f9 to f24 (or fewer), each with a statepoint of that ID and that many bytes. */
static LLVMModuleRef parse_statepoints(void)
{
    char text[8192];
    int length = snprintf(text, sizeof text,
                          "declare token @" STATEPOINT STATEPOINT_TYPE "\n"
                          "define void @target() {\n  ret void\n}\n");
    for (int bytes = smallest(); bytes <= LARGEST; bytes += step())
        length +=
            snprintf(text + length, sizeof text - (size_t)length,
                     "define i64 @f%d() \"frame-pointer\"=\"all\" gc \"statepoint-example\" {\n"
                     "  %%t = call token " STATEPOINT_TYPE " @" STATEPOINT
                     "(i64 %d, i32 %d, " STATEPOINT_TARGET ", i32 0, i32 0, i32 0, i32 0)\n"
                     "  ret i64 5\n"
                     "}\n",
                     bytes, bytes, bytes);
    ck_assert_int_lt(length, (int)sizeof text);
    LLVMModuleRef module = NULL;
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(text, (size_t)length, "statepoints");
    char *message = NULL;
    if (LLVMParseIRInContext(context, buffer, &module, &message) != 0)
        ck_abort_msg("%s", message);
    support_verify(module);
    return module;
}

static void patch_statepoint(cairn_site *site, function *f, enum cairn_strength strength)
{
    calls = 0;
    ck_assert_int_eq(f(), 5);
    ck_assert_int_eq(calls, 0);
    ck_assert_ok(cairn_site_call(site, COUNT_CALL, strength, NULL));
    ck_assert_int_eq(f(), 5);
    ck_assert_int_eq(f(), 5);
    ck_assert_int_eq(calls, 2);
    ck_assert_ok(cairn_site_jump(site, machine_leave_llvm_function, strength, NULL));
    ck_assert_int_eq(f(), 77);
    ck_assert_ok(cairn_site_nop(site, strength, NULL));
    ck_assert_int_eq(f(), 5);
    ck_assert_ok(cairn_site_jump(site, machine_leave_llvm_function, strength, NULL));
    ck_assert_int_eq(f(), 77);
    ck_assert_ok(cairn_site_restore(site, strength, NULL));
    ck_assert_int_eq(f(), 5);
    ck_assert_int_eq(calls, 2);
}

START_TEST(statepoint_becomes_call_jump_and_no_op)
{
    cairn_engine *engine = create_engine(parse_statepoints());
    int live = 0;
    for (int bytes = smallest(); bytes <= LARGEST; bytes += step()) {
        char name[16];
        snprintf(name, sizeof name, "f%d", bytes);
        function *f = get(engine, name);
        cairn_site *site = cairn_runtime_find_site(runtime, (uint64_t)bytes, NULL);
        ck_assert_ptr_nonnull(site);
        struct cairn_site_description description = describe(site);
        ck_assert_int_eq(description.kind, CAIRN_RECORD_STATEPOINT);
        ck_assert_uint_eq(description.byte_count, (uint32_t)bytes);
        ck_assert_uint_eq(description.return_address, cairn_record_address(description.record));
        patch_statepoint(site, f, description.live ? CAIRN_SYNC : CAIRN_QUIESCENT);
        live += description.live;
    }
    ck_assert_int_gt(live, 0);
    cairn_engine_destroy(engine);
}
END_TEST

/* ---- Mach-O, which only MCJIT loads ---- */

static LLVMExecutionEngineRef create_mcjit(cairn_memory_manager *manager, LLVMModuleRef module)
{
    struct LLVMMCJITCompilerOptions options;
    LLVMExecutionEngineRef engine;
    char *message = NULL;
    LLVMLinkInMCJIT();
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    LLVMInitializeMCJITCompilerOptions(&options, sizeof options);
    options.MCJMM = cairn_memory_manager_llvm(manager);
    if (LLVMCreateMCJITCompilerForModule(&engine, module, &options, sizeof options, &message) != 0)
        ck_abort_msg("%s", message);
    return engine;
}

START_TEST(stack_maps_of_mach_o_are_read)
{
    LLVMModuleRef module = support_parse_valid(
        context,
        "target triple = \"x86_64-unknown-linux-macho\"\n" SUPPORT_INTRINSICS "define i64 @f() {\n"
        "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(\n"
        "      i64 7, i32 16, ptr null, i32 0)\n"
        "  ret i64 5\n"
        "}\n");
    cairn_memory_manager *manager;
    ck_assert_ok(cairn_memory_manager_create(runtime, NULL, &manager, NULL));
    ck_assert_ok(cairn_memory_manager_declare(manager, module, NULL));
    LLVMExecutionEngineRef engine = create_mcjit(manager, module);
    function *f = (function *)(uintptr_t)LLVMGetFunctionAddress(engine, "f");
    ck_assert_ok(cairn_memory_manager_status(manager, NULL));
    ck_assert_int_eq(f(), 5);
    cairn_site *site = cairn_runtime_find_site(runtime, 7, NULL);
    ck_assert_ptr_nonnull(site);
    ck_assert_ok(cairn_site_call(site, COUNT_CALL, CAIRN_SYNC, NULL));
    calls = 0;
    ck_assert_int_eq(f(), 5);
    ck_assert_int_eq(calls, 1);
    LLVMDisposeExecutionEngine(engine);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sites of LLVM");
    TCase *tests = tcase_create("sites");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    enum cairn_architecture host = cairn_architecture_host();
    if (host == CAIRN_ARCHITECTURE_PPC64_ELFV2)
        printf("skipped: LLVM cannot select statepoints for PPC64\n");
    else
        tcase_add_test(tests, statepoint_becomes_call_jump_and_no_op);
    if (host == CAIRN_ARCHITECTURE_X86_64)
        tcase_add_test(tests, stack_maps_of_mach_o_are_read);
    else
        printf("skipped: the sample of Mach-O is for x86-64\n");
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
