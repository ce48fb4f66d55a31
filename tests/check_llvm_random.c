/*
 * Tests of random modules: every module that cairn_check_module accepts must compile at every
 * optimisation level. It is compiled in a child process, and IR that crashes LLVM is written to
 * standard error.
 *
 * A failure means one more way to crash LLVM, which needs its own rule; it is not a fault of the
 * current change. So the modules are the same each time, unless the environment selects others:
 * CAIRN_TEST_SEED (0 means the clock's time), and CAIRN_TEST_ROUNDS for more modules.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm_support.h"
#include "llvm/version.h"

#include <inttypes.h>
#include <llvm-c/Linker.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Random numbers ---- */

static uint64_t random_state;

static uint32_t random_below(uint32_t bound)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % bound;
}

static bool one_in(uint32_t count) { return random_below(count) == 0; }

/* ---- Random IR ---- */

enum { VALUES_MAX = 64, OPERANDS_MAX = 24, USUAL_SEED = 20261120 };

struct generator {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMValueRef function;
    LLVMValueRef callee;
    LLVMTypeRef callee_type;
    LLVMValueRef values[VALUES_MAX];
    unsigned count;
    uint64_t next_id;
};

static LLVMTypeRef random_type(const struct generator *generator)
{
    LLVMContextRef context = generator->context;
    LLVMTypeRef int64 = LLVMInt64TypeInContext(context);
    LLVMTypeRef pair[] = {int64, LLVMDoubleTypeInContext(context)};
    switch (random_below(25)) {
    case 0:
        return LLVMInt1TypeInContext(context);
    case 1:
        return LLVMIntTypeInContext(context, 1 + random_below(130));
    case 2:
        return LLVMVectorType(LLVMInt32TypeInContext(context), 1 + random_below(8));
    case 3:
        return LLVMVectorType(LLVMDoubleTypeInContext(context), 1 + random_below(4));
    case 4:
        return LLVMHalfTypeInContext(context);
    case 5:
        return LLVMFP128TypeInContext(context);
    case 6:
        return LLVMStructTypeInContext(context, pair, 2, 0);
    case 7:
        return LLVMArrayType(int64, random_below(3));
    case 9:
        return LLVMInt8TypeInContext(context);
    case 10:
        return LLVMInt16TypeInContext(context);
    case 11:
    case 12:
        return LLVMInt32TypeInContext(context);
    case 13:
    case 14:
        return LLVMDoubleTypeInContext(context);
    case 15:
        return LLVMFloatTypeInContext(context);
    case 16:
    case 17:
        return version_byte_pointer_type(context);
    case 18: /* LLVM 14 crashes on any of them, also without records */
        return LLVM_STORES_BFLOAT ? LLVMBFloatTypeInContext(context) : int64;
    default:
        return int64;
    }
}

static void keep(struct generator *generator, LLVMValueRef value)
{
    unsigned place = generator->count < VALUES_MAX ? generator->count++ : random_below(VALUES_MAX);
    generator->values[place] = value;
}

static LLVMValueRef pick(struct generator *generator)
{
    LLVMTypeRef type = random_type(generator);
    if (one_in(8))
        return LLVMGetUndef(type);
    if (one_in(6))
        return LLVMConstNull(type);
    return generator->values[random_below(generator->count)];
}

static LLVMValueRef pick_integer(struct generator *generator)
{
    for (int i = 0; i < 8; i++) {
        LLVMValueRef value = generator->values[random_below(generator->count)];
        if (LLVMTypeOf(value) == LLVMInt64TypeInContext(generator->context))
            return value;
    }
    return LLVMConstInt(LLVMInt64TypeInContext(generator->context), random_state, 0);
}

static void add_arithmetic(struct generator *generator)
{
    static const LLVMOpcode opcodes[] = {LLVMAdd, LLVMMul, LLVMXor, LLVMShl, LLVMUDiv};
    LLVMBuilderRef builder = generator->builder;
    LLVMValueRef left = pick_integer(generator);
    LLVMValueRef right = pick_integer(generator);
    LLVMTypeRef type = random_type(generator);
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    LLVMValueRef value = LLVMBuildBinOp(builder, opcodes[random_below(5)], left, right, "");
    if (kind == LLVMIntegerTypeKind)
        value = LLVMBuildIntCast2(builder, value, type, one_in(2), "");
    else if (kind == LLVMDoubleTypeKind || kind == LLVMFloatTypeKind)
        value = LLVMBuildSIToFP(builder, value, type, "");
    else if (kind == LLVMPointerTypeKind)
        value = LLVMBuildIntToPtr(builder, value, type, "");
    keep(generator, value);
}

static void add_alloca(struct generator *generator)
{
    LLVMTypeRef type = random_type(generator);
    LLVMValueRef place = LLVMBuildAlloca(generator->builder, type, "");
    keep(generator, place);
    keep(generator, LLVMBuildLoad2(generator->builder, type, place, ""));
}

static void add_call(struct generator *generator)
{
    LLVMValueRef argument = pick_integer(generator);
    keep(generator, LLVMBuildCall2(generator->builder, generator->callee_type, generator->callee,
                                   &argument, 1, ""));
}

static unsigned pick_operands(struct generator *generator, LLVMValueRef *operands)
{
    unsigned count = random_below(one_in(8) ? OPERANDS_MAX : 6);
    for (unsigned i = 0; i < count; i++)
        operands[i] = pick(generator);
    return count;
}

/* Half of them are built by the builder, which may refuse, and half are not. */
static void add_stackmap(struct generator *generator)
{
    LLVMValueRef operands[2 + OPERANDS_MAX];
    unsigned count = pick_operands(generator, operands + 2);
    uint32_t bytes = random_below(20);
    if (one_in(2)) {
        cairn_build_stackmap(generator->builder, generator->next_id++, bytes, operands + 2, count,
                             NULL);
        return;
    }
    static const char name[] = "llvm.experimental.stackmap";
    LLVMValueRef intrinsic = LLVMGetIntrinsicDeclaration(
        generator->module, LLVMLookupIntrinsicID(name, sizeof name - 1), NULL, 0);
    operands[0] = LLVMConstInt(LLVMInt64TypeInContext(generator->context), generator->next_id++, 0);
    operands[1] = LLVMConstInt(LLVMInt32TypeInContext(generator->context), bytes, 0);
    LLVMBuildCall2(generator->builder, LLVMGlobalGetValueType(intrinsic), intrinsic, operands,
                   2 + count, "");
}

static bool is_ordinary(LLVMValueRef value)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    return kind == LLVMPointerTypeKind || kind == LLVMDoubleTypeKind ||
           (kind == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) <= 64);
}

/* Builds arguments that any call could have; anyregcc accepts all kinds. */
static unsigned pick_arguments(struct generator *generator, bool anyreg, LLVMValueRef *arguments)
{
    unsigned count = random_below(one_in(6) ? 18 : 5);
    for (unsigned i = 0; i < count; i++) {
        arguments[i] = pick(generator);
        if (!anyreg && !is_ordinary(arguments[i]))
            arguments[i] = pick_integer(generator);
    }
    return count;
}

static void add_patchpoint(struct generator *generator)
{
    enum { FAST = 8 };
    static const unsigned conventions[] = {CAIRN_CALLING_CONVENTION_C, FAST,
                                           CAIRN_CALLING_CONVENTION_ANYREG};
    LLVMValueRef arguments[OPERANDS_MAX];
    LLVMValueRef operands[OPERANDS_MAX];
    unsigned convention = conventions[random_below(3)];
    bool anyreg = convention == CAIRN_CALLING_CONVENTION_ANYREG;
    struct cairn_patchpoint patchpoint = {
        .id = generator->next_id++,
        .byte_count = random_below(40),
        .calling_convention = convention,
        .target = one_in(3)   ? generator->callee
                  : one_in(2) ? pick_integer(generator)
                              : NULL,
        .result_type = one_in(2) ? NULL : random_type(generator),
        .arguments = arguments,
        .argument_count = pick_arguments(generator, anyreg, arguments),
        .live_values = operands,
        .live_value_count = pick_operands(generator, operands),
    };
    LLVMValueRef result = cairn_build_patchpoint(generator->builder, &patchpoint, NULL);
    if (result != NULL && LLVMGetTypeKind(LLVMTypeOf(result)) != LLVMVoidTypeKind)
        keep(generator, result);
}

/* Adds a block that may repeat; values that are kept in it dominate the following code. */
static void add_loop(struct generator *generator)
{
    LLVMContextRef context = generator->context;
    LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(context, generator->function, "");
    LLVMBasicBlockRef next = LLVMAppendBasicBlockInContext(context, generator->function, "");
    LLVMBuildBr(generator->builder, body);
    LLVMPositionBuilderAtEnd(generator->builder, body);
    add_arithmetic(generator);
    add_patchpoint(generator);
    add_stackmap(generator);
    LLVMValueRef again = LLVMBuildICmp(generator->builder, LLVMIntSLT, pick_integer(generator),
                                       pick_integer(generator), "");
    keep(generator, again);
    LLVMBuildCondBr(generator->builder, again, body, next);
    LLVMPositionBuilderAtEnd(generator->builder, next);
}

static void add_function(struct generator *generator, unsigned number)
{
    LLVMTypeRef types[8];
    char name[16];
    unsigned count = 1 + random_below(8);
    for (unsigned i = 0; i < count; i++)
        types[i] = random_type(generator);
    types[0] = LLVMInt64TypeInContext(generator->context);
    snprintf(name, sizeof name, "f%u", number);
    generator->function = LLVMAddFunction(
        generator->module, name,
        LLVMFunctionType(LLVMVoidTypeInContext(generator->context), types, count, 0));
    if (one_in(2))
        cairn_prepare_function(generator->function);
    LLVMPositionBuilderAtEnd(generator->builder, LLVMAppendBasicBlockInContext(
                                                     generator->context, generator->function, ""));
    generator->count = 0;
    for (unsigned i = 0; i < count; i++)
        keep(generator, LLVMGetParam(generator->function, i));
    static void (*const steps[])(struct generator *) = {
        add_arithmetic, add_arithmetic, add_alloca, add_call,
        add_stackmap,   add_patchpoint, add_loop};
    for (unsigned i = 2 + random_below(8); i > 0; i--)
        steps[random_below(sizeof steps / sizeof *steps)](generator);
    LLVMBuildRetVoid(generator->builder);
}

/* ---- Random statepoints ---- */

/* Writes a function as text, because the C API builds no operand bundles before LLVM 18. Deopt
 * values are parameters or constants of any type. GC pointers are parameters, or relocated
 * pointers. */
enum { PARAMETERS_MAX = 8, TEXT_SIZE = 32768, TYPE_SIZE = 64 };

struct text {
    char characters[TEXT_SIZE];
    size_t length;
    char types[PARAMETERS_MAX][TYPE_SIZE];
    unsigned parameter_count;
    unsigned statepoint_count;
    /* Names of the first two GC pointers and of the latest relocated ones: "o0", "r3". */
    char pointers[2][16];
};

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length =
        vsnprintf(text->characters + text->length, TEXT_SIZE - text->length, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
    ck_assert_uint_lt(text->length, TEXT_SIZE);
}

#if LLVM_HAS_OPAQUE_POINTERS
#define STATEPOINT_NAME "@llvm.experimental.gc.statepoint.p0"
#define RELOCATE_NAME "@llvm.experimental.gc.relocate.p1"
#define CALLEE_TYPE "ptr"
#define CALLEE "ptr elementtype(i64 (i64)) @callee"
#else
#define STATEPOINT_NAME "@llvm.experimental.gc.statepoint.p0f_i64i64f"
#define RELOCATE_NAME "@llvm.experimental.gc.relocate.p1i8"
#define CALLEE_TYPE "i64 (i64)*"
#define CALLEE "i64 (i64)* @callee"
#endif

static void put_declarations(struct text *text)
{
    put(text, SUPPORT_INTRINSICS "declare token " STATEPOINT_NAME "(i64, i32, " CALLEE_TYPE
                                 ", i32, i32, ...)\n"
                                 "declare ptr addrspace(1) " RELOCATE_NAME "(token, i32, i32)\n"
                                 "declare i64 @llvm.experimental.gc.result.i64(token)\n"
                                 "declare i32 @__gxx_personality_v0(...)\n"
                                 "declare i64 @callee(i64)\n");
}

static void choose_parameters(struct text *text, const struct generator *generator)
{
    text->parameter_count = 1 + random_below(PARAMETERS_MAX);
    for (unsigned i = 0; i < text->parameter_count; i++) {
        char *type = LLVMPrintTypeToString(random_type(generator));
        snprintf(text->types[i], TYPE_SIZE, "%s", strchr(type, '*') == NULL ? type : "i8*");
        LLVMDisposeMessage(type);
    }
}

static void put_value(struct text *text)
{
    unsigned parameter = random_below(text->parameter_count);
    const char *type = text->types[parameter];
    if (one_in(6))
        put(text, "i64 %" PRIu32, random_below(1000));
    else if (one_in(8))
        put(text, "ptr addrspace(1) null");
    else if (one_in(8))
        put(text, "%s undef", type);
    else
        put(text, "%s %%p%u", type, parameter);
}

static void put_values(struct text *text, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        put(text, "%s", i == 0 ? "" : ", ");
        put_value(text);
    }
}

static void put_bundle(struct text *text, unsigned which)
{
    static const char *const tags[] = {"deopt", "gc-live", "gc-transition", "other"};
    put(text, "\"%s\"(", tags[which]);
    if (which == 1)
        put(text, "ptr addrspace(1) %%%s, ptr addrspace(1) %%%s", text->pointers[0],
            text->pointers[1]);
    else
        put_values(text, random_below(one_in(4) ? 20 : 5));
    put(text, ")");
}

/* Writes "gc-live" always, and other bundles sometimes, in any order. */
static void put_bundles(struct text *text)
{
    unsigned first = random_below(4);
    const char *separator = " [";
    for (unsigned i = 0; i < 4; i++) {
        unsigned which = (first + i) % 4;
        if (which != 1 && one_in(which == 0 ? 4 : 2))
            continue;
        put(text, "%s", separator);
        put_bundle(text, which);
        separator = ", ";
    }
    put(text, "]");
}

static void put_uses(struct text *text, unsigned number)
{
    if (one_in(2))
        put(text, "  %%v%u = call i64 @llvm.experimental.gc.result.i64(token %%t%u)\n", number,
            number);
    for (unsigned i = 0; i < 2; i++) {
        if (one_in(4))
            continue;
        unsigned base = random_below(2);
        put(text,
            "  %%r%u.%u = call ptr addrspace(1) " RELOCATE_NAME "(token %%t%u, i32 %u, i32 %u)\n",
            number, i, number, base, random_below(2));
        snprintf(text->pointers[i], sizeof text->pointers[i], "r%u.%u", number, i);
    }
}

static void put_statepoint(struct text *text)
{
    unsigned number = text->statepoint_count++;
    bool is_invoke = one_in(4);
    put(text,
        "  %%t%u = %s token (i64, i32, " CALLEE_TYPE ", i32, i32, ...) " STATEPOINT_NAME
        "(i64 %u, i32 %u, " CALLEE ", i32 1, i32 %u, i64 %u, i32 0, i32 0)",
        number, is_invoke ? "invoke" : "call", 1000 + number, one_in(3) ? random_below(20) : 0,
        random_below(4), number);
    put_bundles(text);
    if (is_invoke)
        put(text,
            "\n      to label %%n%u unwind label %%u%u\nu%u:\n"
            "  %%l%u = landingpad token cleanup\n  ret ptr addrspace(1) null\nn%u:",
            number, number, number, number, number);
    put(text, "\n");
    put_uses(text, number);
}

static void put_stackmap(struct text *text)
{
    unsigned count = random_below(4);
    put(text, "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 %u, i32 0%s",
        2000 + text->statepoint_count, count == 0 ? "" : ", ");
    put_values(text, count);
    put(text, ")\n");
}

static void put_function(struct text *text)
{
    put(text, "define ptr addrspace(1) @statepoints(");
    for (unsigned i = 0; i < text->parameter_count; i++)
        put(text, "%s %%p%u, ", text->types[i], i);
    put(text, "ptr addrspace(1) %%o0, ptr addrspace(1) %%o1) gc \"statepoint-example\"\n"
              "    personality " SUPPORT_PERSONALITY " {\n");
    strcpy(text->pointers[0], "o0");
    strcpy(text->pointers[1], "o1");
    for (unsigned i = 1 + random_below(4); i > 0; i--)
        if (one_in(3))
            put_stackmap(text);
        else
            put_statepoint(text);
    put(text, "  ret ptr addrspace(1) %%%s\n}\n", text->pointers[random_below(2)]);
}

static void add_statepoints(struct generator *generator)
{
    static struct text text;
    text = (struct text){.length = 0};
    choose_parameters(&text, generator);
    put_declarations(&text);
    put_function(&text);
    LLVMModuleRef parsed = support_parse(generator->context, text.characters);
    ck_assert_int_eq(LLVMLinkModules2(generator->module, parsed), 0);
}

/* ---- Random modules ---- */

static LLVMModuleRef random_module(LLVMContextRef context)
{
    struct generator generator = {
        .context = context,
        .module = LLVMModuleCreateWithNameInContext("random", context),
        .builder = LLVMCreateBuilderInContext(context),
    };
    LLVMTypeRef int64 = LLVMInt64TypeInContext(context);
    generator.callee_type = LLVMFunctionType(int64, &int64, 1, 0);
    generator.callee = LLVMAddFunction(generator.module, "callee", generator.callee_type);
    for (unsigned i = 1 + random_below(2); i > 0; i--)
        add_function(&generator, i);
    if (one_in(2))
        add_statepoints(&generator);
    LLVMDisposeBuilder(generator.builder);
    return generator.module;
}

/* ---- The test ---- */

static unsigned compiled;
static unsigned refused;

static void try_level(LLVMModuleRef module, unsigned level, uint64_t seed)
{
    struct cairn_check_options options = {.optimisation_level = level};
    struct cairn_error error = {0};
    enum cairn_status status = cairn_check_module(module, &options, &error);
    if (status != CAIRN_OK) {
        ck_assert_int_eq(status, CAIRN_ERROR_LLVM);
        ck_assert_ptr_nonnull(strstr(error.message, "; write "));
        refused++;
        return;
    }
    struct support_compilation compilation = {.optimisation_level = level};
    if (support_compile(module, &compilation) != SUPPORT_COMPILED) {
        LLVMDumpModule(module);
        ck_abort_msg("LLVM %d crashes at -O%u; CAIRN_TEST_SEED=%" PRIu64, LLVM_VERSION_MAJOR, level,
                     seed);
    }
    compiled++;
}

START_TEST(what_is_not_refused_compiles)
{
    uint64_t seed = support_seed_or(USUAL_SEED);
    uint64_t rounds = support_read_number("CAIRN_TEST_ROUNDS", 60);
    for (uint64_t i = 0; i < rounds; i++) {
        random_state = (seed + i) * 0x9e3779b97f4a7c15u;
        LLVMContextRef context = LLVMContextCreate();
        LLVMModuleRef module = random_module(context);
        support_verify(module);
        try_level(module, (unsigned)((seed + i) % 4), seed + i);
        LLVMDisposeModule(module);
        LLVMContextDispose(context);
    }
    printf("check_llvm_random: %u compiled, %u refused\n", compiled, refused);
    if (rounds >= 60) {
        ck_assert_uint_ge(compiled, rounds / 20);
        ck_assert_uint_ge(refused, rounds / 20);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("llvm random");
    TCase *tests = tcase_create("random");
    tcase_set_timeout(tests, 0);
    tcase_add_test(tests, what_is_not_refused_compiles);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
