/*
 * Tests of targets of patch points, and of code models. LLVM calls every target that the check
 * accepts, at every level and with either instruction selector. Targets that LLVM would not call
 * are refused by every function that takes a module.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm_support.h"
#include "llvm/version.h"

#include <llvm-c/Target.h>
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

/* ---- Engines of all kinds ---- */

static const LLVMCodeModel models[] = {LLVMCodeModelDefault, LLVMCodeModelJITDefault,
                                       LLVMCodeModelLarge};
enum { LEVELS = 4, SELECTORS = 2, MODELS = sizeof models / sizeof *models };
enum { ENGINES = LEVELS * SELECTORS * MODELS };

static struct cairn_engine_options engine_options(unsigned number)
{
    return (struct cairn_engine_options){
        .optimisation_level = number % LEVELS,
        .enable_fast_isel = number / LEVELS % SELECTORS != 0,
        .code_model = models[number / LEVELS / SELECTORS],
    };
}

static cairn_engine *load(const char *text, const struct cairn_engine_options *options)
{
    cairn_engine *engine = NULL;
    struct cairn_error error = {0};
    enum cairn_status status =
        cairn_engine_create(runtime, support_parse_valid(context, text), options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s\n%s", error.message, text);
    return engine;
}

typedef int64_t function(int64_t);

static int64_t call(cairn_engine *engine, int64_t argument)
{
    struct cairn_error error = {0};
    void *address = support_compiled_function(engine, "f", &error);
    ck_assert_msg(address != NULL, "%s", error.message);
    return ((function *)(uintptr_t)address)(argument);
}

/* ---- Valid targets ---- */

static int64_t add_hundred(int64_t x) { return x + 100; }

#if LLVM_HAS_OPAQUE_POINTERS
#define FUNCTION_POINTER "ptr"
#define ALIASEE "ptr @add"
#else
#define FUNCTION_POINTER "i64 (i64)*"
#define ALIASEE "i64 (i64)* @add"
#endif

/* `%ADDRESS` is the address of add_hundred; @add adds 100, too. */
static const char *const called[] = {
    "ptr inttoptr (i64 %ADDRESS to ptr)",
    "ptr inttoptr (i128 %ADDRESS to ptr)",
    "ptr getelementptr (i8, ptr inttoptr (i64 %ADDRESS to ptr), i64 0)",
    "ptr bitcast (" FUNCTION_POINTER " @add to ptr)",
    "ptr bitcast (" FUNCTION_POINTER " @alias to ptr)",
};
enum { CALLED = sizeof called / sizeof *called, FIRST_SYMBOL = 3 };

/* Three calls with one target in two blocks, so that passes may merge the target's computation. */
static const char *with_target(const char *target)
{
    static char text[4096];
    char filled[512] = "";
    const char *address = strstr(target, "%ADDRESS");
    if (address == NULL)
        snprintf(filled, sizeof filled, "%s", target);
    else
        snprintf(filled, sizeof filled, "%.*s%llu%s", (int)(address - target), target,
                 (unsigned long long)(uintptr_t)add_hundred, address + strlen("%ADDRESS"));
    snprintf(text, sizeof text,
             SUPPORT_INTRINSICS
             "define i64 @add(i64 %%x) {\n  %%y = add i64 %%x, 100\n  ret i64 %%y\n}\n"
             "@alias = alias i64 (i64), " ALIASEE "\n"
             "define i64 @f(i64 %%x) {\n"
             "  %%a = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 1, "
             "i32 64, %s, i32 1, i64 %%x)\n"
             "  %%b = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 2, "
             "i32 64, %s, i32 1, i64 %%a)\n"
             "  %%c = icmp sgt i64 %%x, 0\n  br i1 %%c, label %%more, label %%less\n"
             "more:\n"
             "  %%d = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 3, "
             "i32 64, %s, i32 1, i64 %%b)\n"
             "  ret i64 %%d\n"
             "less:\n  ret i64 %%b\n}\n",
             filled, filled, filled);
    return text;
}

START_TEST(targets_that_are_constant_are_called_at_every_level)
{
    bool is_symbol = _i >= FIRST_SYMBOL;
    if (is_symbol && cairn_architecture_host() == CAIRN_ARCHITECTURE_AARCH64)
        return;
    for (unsigned i = 0; i < ENGINES; i++) {
        struct cairn_engine_options options = engine_options(i);
        cairn_engine *engine = load(with_target(called[_i]), &options);
        ck_assert_int_eq(call(engine, 5), 305);
        ck_assert_int_eq(call(engine, -5), 195);
        cairn_engine_destroy(engine);
    }
}
END_TEST

/* ---- Arguments ---- */

static int64_t subtract(int64_t x, int64_t y) { return x - y; }

/* The function's own argument is elsewhere in the call, and live across it. */
START_TEST(targets_get_their_arguments_at_every_level)
{
    char text[1024];
    snprintf(text, sizeof text,
             SUPPORT_INTRINSICS
             "define i64 @f(i64 %%x) {\n"
             "  %%a = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 1, "
             "i32 64, ptr inttoptr (i64 %llu to ptr), i32 2, i64 1000, i64 %%x, i64 %%x)\n"
             "  %%b = add i64 %%a, %%x\n"
             "  ret i64 %%b\n}\n",
             (unsigned long long)(uintptr_t)subtract);
    for (unsigned i = 0; i < ENGINES; i++) {
        struct cairn_engine_options options = engine_options(i);
        cairn_engine *engine = load(text, &options);
        ck_assert_int_eq(call(engine, 7), 1000);
        cairn_engine_destroy(engine);
    }
}
END_TEST

/* ---- Invalid targets ---- */

static const struct {
    const char *target;
    const char *code; /* that computes the target */
    const char *why;
} refused[] = {
    {"ptr %p", "", "run time"},
    {"ptr %t", "  %t = load ptr, POINTER @holder\n", "run time"},
    {"ptr %t", "  %t = inttoptr i64 %x to ptr\n", "run time"},
    {"ptr %t", "  %t = inttoptr i64 4096 to ptr\n", "run time"},
    {"ptr %t", "  %t = bitcast ptr %p to ptr\n", "run time"},
    {"ptr %t", "  %t = bitcast " FUNCTION_POINTER " @add to ptr\n", "run time"},
    {"ptr %t", "  %t = select i1 %c, ptr %p, ptr null\n", "run time"},
    {"ptr %t", "  %t = freeze ptr @data\n", "run time"},
    {"ptr %t", "  %t = alloca i8\n", "run time"},
    {"ptr %t", "  br label %next\nnext:\n  %t = phi ptr [ @data, %entry ]\n", "run time"},
    {"ptr %t", "  %t = getelementptr i8, ptr @data, i64 %x\n", "run time"},
    {"ptr undef", "", "undefined"},
    {"ptr poison", "", "undefined"},
    {"ptr getelementptr (i8, ptr @data, i64 8)", "", "computed"},
    {"ptr getelementptr (i8, ptr inttoptr (i64 4096 to ptr), i64 8)", "", "computed"},
    {"ptr inttoptr (i64 add (i64 ptrtoint (ptr @data to i64), i64 8) to ptr)", "", "computed"},
    {"ptr blockaddress(@f, %next)", "  br label %next\nnext:\n", "computed"},
    {"ptr @local", "", "computed"},
    {"ptr @local_alias", "", "computed"},
    {"ptr @alias_again", "", "computed"},
    {"ptr addrspacecast (ptr addrspace(1) inttoptr (i64 4096 to ptr addrspace(1)) to ptr)", "",
     "computed"},
    {"ptr addrspacecast (ptr addrspace(1) null to ptr)", "", "computed"},
};
enum { REFUSED = sizeof refused / sizeof *refused };

#if LLVM_HAS_OPAQUE_POINTERS
#define POINTER_TO_POINTER "ptr"
#else
#define POINTER_TO_POINTER "i8**"
#endif

static LLVMModuleRef parse_refused(unsigned row, const char *triple)
{
    static char text[4096];
    char code[512];
    const char *word = strstr(refused[row].code, "POINTER");
    if (word == NULL)
        snprintf(code, sizeof code, "%s", refused[row].code);
    else
        snprintf(code, sizeof code, "%.*s" POINTER_TO_POINTER "%s", (int)(word - refused[row].code),
                 refused[row].code, word + strlen("POINTER"));
    snprintf(text, sizeof text,
             SUPPORT_INTRINSICS
             "@holder = global ptr null\n@data = global i8 0\n@local = thread_local global i8 0\n"
             "@local_alias = alias i8, ptr @local\n"
             "@alias_again = alias i8, ptr getelementptr (i8, ptr @local_alias, i64 0)\n"
             "define i64 @add(i64 %%x) {\n  ret i64 %%x\n}\n"
             "define void @f(ptr %%p, i64 %%x, i1 %%c) {\nentry:\n%s"
             "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1, "
             "i32 64, %s, i32 0)\n"
             "  ret void\n}\n",
             code, refused[row].target);
    LLVMModuleRef module = support_parse_valid(context, text);
    if (triple != NULL)
        LLVMSetTarget(module, triple);
    return module;
}

static void assert_says(const struct cairn_error *error, unsigned row)
{
    ck_assert_msg(strstr(error->message, refused[row].why) != NULL &&
                      strstr(error->message, "'f'") != NULL &&
                      strstr(error->message, "; write ") != NULL,
                  "%s", error->message);
}

START_TEST(targets_that_llvm_does_not_call_are_refused_by_the_check)
{
    static const char *const triples[] = {"x86_64-linux-gnu", "aarch64-linux-gnu",
                                          "powerpc64le-linux-gnu", "powerpc64-linux-gnu"};
    for (size_t i = 0; i < sizeof triples / sizeof *triples; i++)
        for (unsigned level = 0; level < 2 * LEVELS; level++) {
            LLVMModuleRef module = parse_refused((unsigned)_i, triples[i]);
            const struct cairn_check_options options = {.optimisation_level = level % LEVELS,
                                                        .enable_fast_isel = level >= LEVELS};
            struct cairn_error error = {0};
            ck_assert_int_eq(cairn_check_module(module, &options, &error), CAIRN_ERROR_LLVM);
            assert_says(&error, (unsigned)_i);
            LLVMDisposeModule(module);
        }
}
END_TEST

/* They are refused even if the host says that it has verified the module. */
START_TEST(targets_that_llvm_does_not_call_are_refused_by_engines)
{
    for (unsigned i = 0; i < ENGINES; i++) {
        struct cairn_engine_options options = engine_options(i);
        options.skip_check = i % 2 != 0;
        LLVMModuleRef module = parse_refused((unsigned)_i, NULL);
        cairn_engine *engine = NULL;
        struct cairn_error error = {0};
        ck_assert_int_eq(cairn_engine_create(runtime, module, &options, &engine, &error),
                         options.skip_check ? CAIRN_ERROR_UNSUPPORTED : CAIRN_ERROR_LLVM);
        assert_says(&error, (unsigned)_i);
        LLVMDisposeModule(module);
    }
}
END_TEST

START_TEST(targets_that_llvm_does_not_call_are_refused_by_memory_managers)
{
    cairn_memory_manager *manager;
    struct cairn_error error = {0};
    LLVMModuleRef module = parse_refused((unsigned)_i, NULL);
    ck_assert_ok(cairn_memory_manager_create(runtime, NULL, &manager, NULL));
    ck_assert_int_eq(cairn_memory_manager_declare(manager, module, &error),
                     CAIRN_ERROR_UNSUPPORTED);
    assert_says(&error, (unsigned)_i);
    LLVMDisposeMCJITMemoryManager(cairn_memory_manager_llvm(manager));
    LLVMDisposeModule(module);
}
END_TEST

/* LLVM's own sequence drops the bits above 48. */
START_TEST(addresses_above_48_bits_are_refused_where_llvm_cuts_them)
{
    static const struct {
        const char *triple;
        enum cairn_status status;
    } rows[] = {{"x86_64-linux-gnu", CAIRN_OK},
                {"s390x-linux-gnu", CAIRN_OK},
                {"aarch64-linux-gnu", CAIRN_ERROR_LLVM},
                {"powerpc64le-linux-gnu", CAIRN_ERROR_LLVM}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (unsigned bits = 47; bits <= 48; bits++) {
            char text[1024];
            snprintf(text, sizeof text,
                     SUPPORT_INTRINSICS
                     "define void @f() {\n"
                     "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void("
                     "i64 1, i32 64, ptr inttoptr (i64 %llu to ptr), i32 0)\n  ret void\n}\n",
                     1ULL << bits);
            LLVMModuleRef module = support_parse_valid(context, text);
            LLVMSetTarget(module, rows[i].triple);
            ck_assert_int_eq(cairn_check_module(module, NULL, NULL),
                             bits == 47 ? CAIRN_OK : rows[i].status);
            LLVMDisposeModule(module);
        }
}
END_TEST

START_TEST(builders_refuse_targets_that_llvm_does_not_call)
{
    LLVMModuleRef module = parse_refused(0, NULL);
    LLVMValueRef f = LLVMGetNamedFunction(module, "f");
    LLVMValueRef data = LLVMGetNamedGlobal(module, "data");
    LLVMTypeRef i64 = LLVMInt64TypeInContext(context);
    LLVMTypeRef i8 = LLVMInt8TypeInContext(context);
    LLVMValueRef eight = LLVMConstInt(i64, 8, 0);
    LLVMValueRef targets[] = {LLVMGetParam(f, 0), LLVMGetParam(f, 1),
                              LLVMConstGEP2(i8, data, &eight, 1), LLVMGetUndef(i64),
                              LLVMGetNamedGlobal(module, "local")};
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(f);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMPositionBuilderBefore(builder, LLVMGetFirstInstruction(entry));
    LLVMValueRef first = LLVMGetFirstInstruction(entry);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        const struct cairn_patchpoint patchpoint = {
            .id = 7, .byte_count = 64, .target = targets[i]};
        struct cairn_error error = {0};
        ck_assert_ptr_null(cairn_build_patchpoint(builder, &patchpoint, &error));
        ck_assert_int_eq(error.status, CAIRN_ERROR_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(error.message, ": give "));
    }
    ck_assert_ptr_eq(LLVMGetFirstInstruction(entry), first);
    LLVMDisposeBuilder(builder);
    LLVMDisposeModule(module);
}
END_TEST

/* ---- Code models ---- */

/* A table in memory and a jump table, both indexed: x86-64 addresses them by absolute addresses of
 * 32 bits. */
static const char tables[] =
    "@table = private constant [4 x i64] [i64 11, i64 22, i64 33, i64 44]\n"
    "define i64 @f(i64 %x) {\n"
    "  %i = and i64 %x, 3\n"
    "  %p = getelementptr [4 x i64], ARRAY @table, i64 0, i64 %i\n"
    "  %v = load i64, ELEMENT %p\n"
    "  %d = sitofp i64 %x to double\n"
    "  %h = fmul double %d, 0.5\n"
    "  %n = fptosi double %h to i64\n"
    "  switch i64 %x, label %other [ i64 0, label %a  i64 1, label %b\n"
    "    i64 2, label %c  i64 3, label %d1  i64 4, label %e ]\n"
    "a:\n  ret i64 %v\n"
    "b:\n  %b1 = add i64 %v, 1000\n  ret i64 %b1\n"
    "c:\n  %c1 = mul i64 %v, 7\n  ret i64 %c1\n"
    "d1:\n  %d2 = sub i64 %v, %n\n  ret i64 %d2\n"
    "e:\n  %e1 = xor i64 %v, 1\n  ret i64 %e1\n"
    "other:\n  ret i64 %n\n}\n";

static const char *with_tables(void)
{
    static char text[2048];
    char *out = text;
    for (const char *in = tables; *in != '\0';) {
        bool is_array = strncmp(in, "ARRAY", 5) == 0;
        bool is_element = strncmp(in, "ELEMENT", 7) == 0;
        if (is_array)
            out = stpcpy(out, LLVM_HAS_OPAQUE_POINTERS ? "ptr" : "[4 x i64]*");
        else if (is_element)
            out = stpcpy(out, LLVM_HAS_OPAQUE_POINTERS ? "ptr" : "i64*");
        else
            *out++ = *in;
        in += is_array ? 5 : is_element ? 7 : 1;
    }
    *out = '\0';
    return text;
}

START_TEST(code_models_that_are_taken_are_correct)
{
    static const int64_t results[] = {11, 1022, 231, 43, 10, 2, 3};
    for (unsigned i = 0; i < ENGINES; i++) {
        struct cairn_engine_options options = engine_options(i);
        cairn_engine *engine = load(with_tables(), &options);
        for (int64_t x = 0; x < (int64_t)(sizeof results / sizeof *results); x++)
            ck_assert_int_eq(call(engine, x), results[x]);
        cairn_engine_destroy(engine);
    }
}
END_TEST

START_TEST(other_code_models_are_refused)
{
    static const struct {
        LLVMCodeModel model;
        const char *name;
    } rows[] = {{LLVMCodeModelTiny, "'tiny'"},
                {LLVMCodeModelSmall, "'small'"},
                {LLVMCodeModelKernel, "'kernel'"},
                {LLVMCodeModelMedium, "'medium'"}};
    LLVMModuleRef module = support_parse_valid(context, with_tables());
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct cairn_engine_options options = {.code_model = rows[i].model};
        const struct cairn_memory_manager_options manager_options = {.code_model = rows[i].model};
        struct cairn_error errors[2] = {{0}};
        cairn_engine *engine = NULL;
        cairn_memory_manager *manager = NULL;
        ck_assert_int_eq(cairn_engine_create(runtime, module, &options, &engine, &errors[0]),
                         CAIRN_ERROR_UNSUPPORTED);
        ck_assert_int_eq(
            cairn_memory_manager_create(runtime, &manager_options, &manager, &errors[1]),
            CAIRN_ERROR_UNSUPPORTED);
        for (int j = 0; j < 2; j++) {
            ck_assert_ptr_nonnull(strstr(errors[j].message, rows[i].name));
            ck_assert_ptr_nonnull(strstr(errors[j].message, "use LLVMCodeModelDefault"));
        }
    }
    const struct cairn_engine_options unknown = {.code_model = (LLVMCodeModel)77};
    cairn_engine *engine = NULL;
    ck_assert_int_eq(cairn_engine_create(runtime, module, &unknown, &engine, NULL),
                     CAIRN_ERROR_ARGUMENT);
    LLVMDisposeModule(module);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("llvm targets");
    TCase *tests = tcase_create("targets");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, targets_that_are_constant_are_called_at_every_level, 0, CALLED);
    tcase_add_test(tests, targets_get_their_arguments_at_every_level);
    tcase_add_loop_test(tests, targets_that_llvm_does_not_call_are_refused_by_the_check, 0,
                        REFUSED);
    tcase_add_loop_test(tests, targets_that_llvm_does_not_call_are_refused_by_engines, 0, REFUSED);
    tcase_add_loop_test(tests, targets_that_llvm_does_not_call_are_refused_by_memory_managers, 0,
                        REFUSED);
    tcase_add_test(tests, addresses_above_48_bits_are_refused_where_llvm_cuts_them);
    tcase_add_test(tests, builders_refuse_targets_that_llvm_does_not_call);
    tcase_add_test(tests, code_models_that_are_taken_are_correct);
    tcase_add_test(tests, other_code_models_are_refused);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
