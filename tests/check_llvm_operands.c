/*
 * Tests of the operands of records that LLVM computes as one of several values: elements of
 * aggregates, results of instructions with two results, parts of wide integers. LLVM has compiled
 * some of them to wrong code without an error (doc/llvm-faults.md), so the code is executed, and
 * what a handler reads is compared with what the function itself has stored just before.
 *
 * Environment: CAIRN_TEST_SEED selects other functions (0 means the clock's time), and
 * CAIRN_TEST_ROUNDS is their number.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm_engine_support.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if LLVM_HAS_OPAQUE_POINTERS
#define RELOCATE "@llvm.experimental.gc.relocate.p1"
#else
#define RELOCATE "@llvm.experimental.gc.relocate.p1i8"
#endif

/* ---- Random numbers ---- */

static uint64_t random_state;

static uint32_t below(uint32_t bound)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % bound;
}

/* ---- Types ---- */

/* The types of operands. */
static const struct operand_type {
    const char *name;
    const char *signature; /* in the names of intrinsics */
    bool is_integer;
    bool is_wide; /* LLVM splits it; only statepoints record it */
} types[] = {
    {"i64", "i64", true, false},         {"i32", "i32", true, false},
    {"double", "f64", false, false},     {"float", "f32", false, false},
    {"ptr", "p0", false, false},         {"ptr addrspace(1)", "p1", false, false},
    {"<2 x i64>", "v2i64", true, false}, {"<4 x float>", "v4f32", false, false},
    {"i128", "i128", true, true},
};
enum { TYPES = sizeof types / sizeof *types };

/* ---- Sources of values ---- */

/* IR in which T is the type, P is a pointer to it, and W an integer of twice its width. It makes %v
 * from %x and %y. The block is "entry". */
enum need { NEED_NOTHING, NEED_INTEGER, NEED_SCALAR, NEED_I64 };
static const struct source {
    const char *name;
    enum need need;
    const char *text;
} sources[] = {
    {"the value itself", NEED_NOTHING, "  %v = freeze T %x\n"},
    {"insertvalue", NEED_NOTHING,
     "  %s0 = insertvalue { T, T } undef, T %y, 0\n"
     "  %s1 = insertvalue { T, T } %s0, T %x, 1\n"
     "  %v = extractvalue { T, T } %s1, 1\n"},
    {"an array", NEED_NOTHING,
     "  %s0 = insertvalue [3 x T] undef, T %y, 0\n"
     "  %s1 = insertvalue [3 x T] %s0, T %y, 1\n"
     "  %s2 = insertvalue [3 x T] %s1, T %x, 2\n"
     "  %v = extractvalue [3 x T] %s2, 2\n"},
    {"a nested structure", NEED_NOTHING,
     "  %s0 = insertvalue { i8, { T, T } } zeroinitializer, T %y, 1, 0\n"
     "  %s1 = insertvalue { i8, { T, T } } %s0, T %x, 1, 1\n"
     "  %s2 = extractvalue { i8, { T, T } } %s1, 1\n"
     "  %v = extractvalue { T, T } %s2, 1\n"},
    {"a call", NEED_NOTHING,
     "  %s1 = call { T, T } @make(T %y, T %x)\n"
     "  %v = extractvalue { T, T } %s1, 1\n"},
    {"a call in another block", NEED_NOTHING,
     "  %s1 = call { T, T } @make(T %y, T %x)\n"
     "  br label %next\nnext:\n"
     "  %v = extractvalue { T, T } %s1, 1\n"},
    {"a call, frozen", NEED_NOTHING,
     "  %s0 = call { T, T } @make(T %y, T %x)\n"
     "  %s1 = freeze { T, T } %s0\n"
     "  %v = extractvalue { T, T } %s1, 1\n"},
    {"select", NEED_NOTHING,
     "  %s0 = call { T, T } @make(T %y, T %x)\n"
     "  %s1 = call { T, T } @make(T %y, T %x)\n"
     "  %s2 = select i1 %c, { T, T } %s0, { T, T } %s1\n"
     "  %v = extractvalue { T, T } %s2, 1\n"},
    {"phi", NEED_NOTHING,
     "  %s0 = call { T, T } @make(T %y, T %x)\n"
     "  br i1 %c, label %left, label %next\nleft:\n"
     "  %s1 = call { T, T } @make(T %y, T %x)\n"
     "  br label %next\nnext:\n"
     "  %s2 = phi { T, T } [ %s0, %entry ], [ %s1, %left ]\n"
     "  %v = extractvalue { T, T } %s2, 1\n"},
    {"a load", NEED_NOTHING,
     "  %s0 = alloca { T, T }\n"
     "  %s1 = insertvalue { T, T } undef, T %y, 0\n"
     "  %s2 = insertvalue { T, T } %s1, T %x, 1\n"
     "  store volatile { T, T } %s2, A %s0\n"
     "  %s3 = load volatile { T, T }, A %s0\n"
     "  %v = extractvalue { T, T } %s3, 1\n"},
    {"a call with a record", NEED_NOTHING,
     "  %s1 = call { T, T } @make(T %y, T %x) #2 [\"deopt\"(i32 1)]\n"
     "  %v = extractvalue { T, T } %s1, 1\n"},
    {"an overflow's result", NEED_INTEGER,
     "  %s0 = call { T, B } @llvm.uadd.with.overflow.S(T %x, T %y)\n"
     "  %v = extractvalue { T, B } %s0, 0\n"},
    {"an overflow", NEED_INTEGER,
     "  %s0 = call { T, B } @llvm.usub.with.overflow.S(T %x, T %y)\n"
     "  %s1 = extractvalue { T, B } %s0, 1\n"
     "  %v = sext B %s1 to T\n"},
    {"cmpxchg", NEED_I64,
     "  %s0 = alloca T\n"
     "  store volatile T %x, P %s0\n"
     "  %s1 = cmpxchg P %s0, T %y, T %x seq_cst seq_cst\n"
     "  %v = extractvalue { T, i1 } %s1, 0\n"},
    {"whether cmpxchg stored", NEED_I64,
     "  %s0 = alloca T\n"
     "  store volatile T %x, P %s0\n"
     "  %s1 = cmpxchg P %s0, T %x, T %y seq_cst seq_cst\n"
     "  %s2 = extractvalue { T, i1 } %s1, 1\n"
     "  %v = sext i1 %s2 to T\n"},
    {"the high half of a product", NEED_I64,
     "  %s0 = zext T %x to i128\n"
     "  %s1 = zext T %y to i128\n"
     "  %s2 = mul i128 %s0, %s1\n"
     "  %s3 = lshr i128 %s2, 64\n"
     "  %v = trunc i128 %s3 to T\n"},
    {"a remainder", NEED_I64,
     "  %s0 = or T %y, 1\n"
     "  %s1 = udiv T %x, %s0\n"
     "  %s2 = urem T %x, %s0\n"
     "  %v = xor T %s1, %s2\n"},
    {"assembly", NEED_I64,
     "  %s0 = call { T, T } asm \"\", \"=r,=r,0,1\"(T %y, T %x)\n"
     "  %v = extractvalue { T, T } %s0, 1\n"},
    {"a vector's element", NEED_SCALAR,
     "  %s0 = insertelement <2 x T> undef, T %y, i32 0\n"
     "  %s1 = insertelement <2 x T> %s0, T %x, i32 1\n"
     "  %v = extractelement <2 x T> %s1, i32 1\n"},
};
enum { SOURCES = sizeof sources / sizeof *sources };

/* ---- Uses of values ---- */

enum use {
    USE_STACKMAP,
    USE_PATCHPOINT,
    USE_ANY_REGISTER,
    USE_DEOPT,
    USE_STATEPOINT,
    USE_STATEPOINT_LIVE_IN,
    USE_ARGUMENT,
    USE_STACK_ARGUMENTS,
    USE_LARGE_ARGUMENT,
    USE_ROOT, /* only of GC pointers */
    USES
};
static const char *const uses[USES] = {
    [USE_STACKMAP] = "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 0, T %v)\n"
                     "  call void @leave()\n",
    [USE_PATCHPOINT] = "  call void (i64, i32, ptr, i32, ...) "
                       "@llvm.experimental.patchpoint.void(i64 7, i32 32, ptr null, i32 0, T %v)\n",
    [USE_ANY_REGISTER] =
        "  call anyregcc void (i64, i32, ptr, i32, ...) "
        "@llvm.experimental.patchpoint.void(i64 7, i32 32, ptr null, i32 1, T %v)\n",
    [USE_DEOPT] = "  call void @leave() #0 [\"deopt\"(T %v)]\n",
    [USE_STATEPOINT] = "  %t = call token (i64, i32, F, i32, i32, ...) "
                       "@llvm.experimental.gc.statepoint.N(i64 7, i32 0, F E @leave, i32 0, i32 0, "
                       "i32 0, i32 0) [\"deopt\"(T %v)]\n",
    [USE_STATEPOINT_LIVE_IN] =
        "  %t = call token (i64, i32, F, i32, i32, ...) "
        "@llvm.experimental.gc.statepoint.N(i64 7, i32 0, F E @leave, i32 0, i32 2, "
        "i32 0, i32 0) [\"deopt\"(T %v)]\n",
    [USE_ARGUMENT] = "  %s9 = call { T, T } @make(T %y, T %v) #1 [\"deopt\"(T %v)]\n"
                     "  %s8 = extractvalue { T, T } %s9, 1\n"
                     "  store volatile T %s8, P @passed\n"
                     "  call void @leave() #0 [\"deopt\"(T %s8)]\n",
    [USE_STACK_ARGUMENTS] =
        "  call void @leave_many(i64 %n, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, "
        "i64 %n, i64 10) #0 [\"deopt\"(T %v)]\n",
    [USE_LARGE_ARGUMENT] =
        "  %big = alloca [9 x i64]\n"
        "  call void @leave_large(G byval([9 x i64]) %big) #0 [\"deopt\"(T %v)]\n",
    [USE_ROOT] = "  %t = call token (i64, i32, F, i32, i32, ...) "
                 "@llvm.experimental.gc.statepoint.N(i64 7, i32 0, F E @leave, i32 0, i32 0, "
                 "i32 0, i32 0) [\"gc-live\"(T %v)]\n"
                 "  %s9 = call T " RELOCATE "(token %t, i32 0, i32 0)\n"
                 "  store volatile T %s9, P @passed\n",
};

/* ---- A function ---- */

enum { LEVELS = 4 };

/* At level 0 on AArch64, LLVM makes no record of calls with a "deopt" bundle, and engines refuse
 * them. */
static unsigned first_level(void)
{
    return cairn_architecture_host() == CAIRN_ARCHITECTURE_AARCH64 ? 1 : 0;
}

struct sample {
    const struct operand_type *type;
    const struct source *source;
    enum use use;
    unsigned level; /* of optimisation */
    bool uses_fast_isel;
    bool is_small; /* whether LLVM pushes arguments, and does not reserve space for them */
};

static void expand_letter(char letter, const struct sample *sample, char *out, size_t size)
{
    const struct operand_type *type = sample->type;
    const char *pointer = LLVM_HAS_OPAQUE_POINTERS ? "" : "*";
    switch (letter) {
    case 'T':
        snprintf(out, size, "%s", type->name);
        break;
    case 'S':
        snprintf(out, size, "%s", type->signature);
        break;
    case 'B':
        snprintf(out, size, "%s", strcmp(type->name, "<2 x i64>") == 0 ? "<2 x i1>" : "i1");
        break;
    case 'P':
        snprintf(out, size, "%s%s", *pointer == '\0' ? "ptr" : type->name, pointer);
        break;
    case 'A':
        if (*pointer == '\0')
            snprintf(out, size, "ptr");
        else
            snprintf(out, size, "{ %s, %s }*", type->name, type->name);
        break;
    case 'G':
        snprintf(out, size, "%s", *pointer == '\0' ? "ptr" : "[9 x i64]*");
        break;
    case 'F':
        snprintf(out, size, "%s", *pointer == '\0' ? "ptr" : "void ()*");
        break;
    case 'C':
        snprintf(out, size, "%s", *pointer == '\0' ? "ptr" : "i64 (i64)*");
        break;
    case 'D':
        snprintf(out, size, "%s", *pointer == '\0' ? "elementtype(i64 (i64))" : "");
        break;
    case 'M':
        snprintf(out, size, "%s", *pointer == '\0' ? "p0" : "p0f_i64i64f");
        break;
    case 'E':
        snprintf(out, size, "%s", *pointer == '\0' ? "elementtype(void ())" : "");
        break;
    default: /* 'N' */
        snprintf(out, size, "%s", *pointer == '\0' ? "p0" : "p0f_isVoidf");
        break;
    }
}

/* Whether the text has a letter for a placeholder there: a capital letter on its own. */
static bool is_placeholder(const char *start, const char *at)
{
    bool begins = at == start || strchr(" ({.,", at[-1]) != NULL;
    bool ends = strchr(" )},(.>]\n", at[1]) != NULL;
    return begins && ends && strchr("TSBPAFENCDMG", *at) != NULL;
}

static void expand(const struct sample *sample, const char *text, char *out, size_t size)
{
    size_t length = 0;
    for (const char *at = text; *at != '\0'; at++) {
        char part[64] = {*at, '\0'};
        if (is_placeholder(text, at))
            expand_letter(*at, sample, part, sizeof part);
        length += (size_t)snprintf(out + length, size - length, "%s", part);
        ck_assert_uint_lt(length, size);
    }
}

static LLVMModuleRef build(const struct sample *sample)
{
    char text[8192];
    char expanded[16384];
    snprintf(text, sizeof text,
             SUPPORT_INTRINSICS
             "@x = external global T\n@y = external global T\n"
             "@seen = external global T\n@passed = external global T\n@after = external global T\n"
             "declare token @llvm.experimental.gc.statepoint.N(i64, i32, F , i32, i32, ...)\n"
             "%s"
             "declare void @leave()\n"
             "declare ptr addrspace(1) " RELOCATE "(token, i32, i32)\n"
             "declare void @leave_many(i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64)\n"
             "declare void @leave_large(G byval([9 x i64]))\n"
             "define { T, T } @make(T %%x, T %%y) noinline {\n"
             "  %%s0 = insertvalue { T, T } undef, T %%x, 0\n"
             "  %%s1 = insertvalue { T, T } %%s0, T %%y, 1\n"
             "  ret { T, T } %%s1\n}\n"
             "define i64 @f(i64 %%n) %s gc \"statepoint-example\" {\nentry:\n"
             "  %%c = icmp eq i64 %%n, 1\n"
             "  %%x = load volatile T , P @x\n"
             "  %%y = load volatile T , P @y\n"
             "%s"
             "  store volatile T %%v, P @seen\n"
             "%s"
             "  store volatile T %%v, P @after\n"
             "  ret i64 %%n\n}\n"
             "attributes #0 = { \"statepoint-id\"=\"7\" }\n"
             "attributes #1 = { \"statepoint-id\"=\"8\" }\n"
             "attributes #2 = { \"statepoint-id\"=\"9\" }\n",
             sample->type->is_integer ? "declare { T, B } @llvm.uadd.with.overflow.S(T , T )\n"
                                        "declare { T, B } @llvm.usub.with.overflow.S(T , T )\n"
                                      : "",
             sample->is_small ? "optsize minsize" : "", sample->source->text, uses[sample->use]);
    expand(sample, text, expanded, sizeof expanded);
    return support_parse_valid(context, expanded);
}

/* ---- Callees ---- */

/* Statepoints that call %v with %n. */
static const char *const calls[] = {
    "  %r = call i64 %callee(i64 %n) [\"deopt\"()]\n  ret i64 %r\n",
    "  %r = invoke i64 %callee(i64 %n) [\"deopt\"(i32 1)]\n"
    "      to label %normal unwind label %exceptional\n"
    "normal:\n  ret i64 %r\n"
    "exceptional:\n  %pad = landingpad { ptr, i32 } cleanup\n  ret i64 0\n",
    "  %t = call token (i64, i32, C , i32, i32, ...) @llvm.experimental.gc.statepoint.M(\n"
    "      i64 7, i32 0, C D %callee, i32 1, i32 0, i64 %n, i32 0, i32 0)\n"
    "  %r = call i64 @llvm.experimental.gc.result.i64(token %t)\n  ret i64 %r\n",
};
enum { CALLS = sizeof calls / sizeof *calls };

static LLVMModuleRef build_call(const struct sample *sample, const char *call)
{
    char text[8192];
    char expanded[16384];
    snprintf(text, sizeof text,
             "@x = external global T\n@y = external global T\n"
             "declare token @llvm.experimental.gc.statepoint.M(i64, i32, C , i32, i32, ...)\n"
             "declare i64 @llvm.experimental.gc.result.i64(token)\n"
             "declare i32 @__gxx_personality_v0(...)\n"
             "define { T, T } @make(T %%x, T %%y) noinline {\n"
             "  %%s0 = insertvalue { T, T } undef, T %%x, 0\n"
             "  %%s1 = insertvalue { T, T } %%s0, T %%y, 1\n"
             "  ret { T, T } %%s1\n}\n"
             "define i64 @f(i64 %%n) gc \"statepoint-example\" personality " SUPPORT_PERSONALITY
             " {\nentry:\n"
             "  %%c = icmp eq i64 %%n, 1\n"
             "  %%x = load volatile T , P @x\n"
             "  %%y = load volatile T , P @y\n"
             "%s  %%callee = bitcast T %%v to C\n%s}\n"
             "attributes #2 = { \"statepoint-id\"=\"9\" }\n",
             sample->source->text, call);
    expand(sample, text, expanded, sizeof expanded);
    return support_parse_valid(context, expanded);
}

/* Returns what the function returns whose callee comes from the source. */
static int64_t call_callee(const struct sample *sample, const char *call)
{
    function *right = add_thousand;
    function *wrong = add_hundred;
    const struct support_symbol symbols[] = {
        {"x", &right}, {"y", &wrong}, {"__gxx_personality_v0", &right}, {NULL, NULL}};
    const struct cairn_engine_options options = {.optimisation_level = sample->level,
                                                 .enable_fast_isel = sample->uses_fast_isel,
                                                 .load = support_symbols(symbols)};
    struct cairn_error error = {0};
    cairn_engine *engine = NULL;
    LLVMModuleRef module = build_call(sample, call);
    enum cairn_status status = cairn_engine_create(runtime, module, &options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    int64_t result = get(engine, "f")(5);
    cairn_engine_destroy(engine);
    return result;
}

static void check_callees(const struct source *source, unsigned level, bool uses_fast_isel)
{
    enum { POINTER = 4 };
    const struct sample sample = {&types[POINTER], source, USE_DEOPT, level, uses_fast_isel, false};
    for (unsigned i = 0; i < CALLS; i++) {
        int64_t result = call_callee(&sample, calls[i]);
        ck_assert_msg(result == 1005, "%s, call %u, level %u: %" PRIi64, source->name, i, level,
                      result);
    }
}

START_TEST(statepoint_calls_the_callee_that_was_computed)
{
    for (unsigned i = 0; i < SOURCES; i++)
        if (sources[i].need == NEED_NOTHING)
            for (unsigned level = first_level(); level < LEVELS; level++)
                check_callees(&sources[i], level, _i != 0);
}
END_TEST

/* ---- Attributes of parameters ---- */

/* Calls a function whose parameters say how they are passed, as a statepoint without these
 * attributes, which an ordinary call would not need either. */
static const char attributed[] =
    "declare token @llvm.experimental.gc.statepoint.%s(i64, i32, %s, i32, i32, ...)\n"
    "declare i64 @llvm.experimental.gc.result.i64(token)\n"
    "define i64 @callee(i8 zeroext %%b, i16 signext %%s, ptr nest %%p) noinline {\n"
    "  %%x = zext i8 %%b to i64\n  %%y = sext i16 %%s to i64\n"
    "  %%z = ptrtoint ptr %%p to i64\n"
    "  %%u = mul i64 %%x, 1000000\n  %%v = add i64 %%u, %%y\n  %%w = add i64 %%v, %%z\n"
    "  ret i64 %%w\n}\n"
    "define i64 @f(i64 %%n) gc \"statepoint-example\" {\n"
    "  %%b = trunc i64 %%n to i8\n  %%s = trunc i64 %%n to i16\n"
    "  %%p = inttoptr i64 7 to ptr\n"
    "  %%t = call token (i64, i32, %s, i32, i32, ...) @llvm.experimental.gc.statepoint.%s(\n"
    "      i64 7, i32 0, %s @callee, i32 3, i32 0, i8 %%b, i16 %%s, ptr %%p, i32 0, i32 0)\n"
    "  %%r = call i64 @llvm.experimental.gc.result.i64(token %%t)\n  ret i64 %%r\n}\n";

START_TEST(statepoint_passes_arguments_as_the_callee_expects_them)
{
    char text[4096];
    const char *type = LLVM_HAS_OPAQUE_POINTERS ? "ptr" : "i64 (i8, i16, i8*)*";
    const char *name = LLVM_HAS_OPAQUE_POINTERS ? "p0" : "p0f_i64i8i16p0i8f";
    const char *callee = LLVM_HAS_OPAQUE_POINTERS ? "ptr elementtype(i64 (i8, i16, ptr))" : type;
    snprintf(text, sizeof text, attributed, name, type, type, name, callee);
    const struct cairn_engine_options options = {.optimisation_level = (unsigned)_i};
    struct cairn_error error = {0};
    cairn_engine *engine = NULL;
    enum cairn_status status =
        cairn_engine_create(runtime, support_parse_valid(context, text), &options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    ck_assert_int_eq(get(engine, "f")(0x123456789ABCFE), 0xFE * 1000000 - (0x10000 - 0xBCFE) + 7);
    cairn_engine_destroy(engine);
}
END_TEST

/* ---- Running ---- */

enum { VALUE_BYTES = 16 };

static _Alignas(16) unsigned char slot_x[VALUE_BYTES];
static _Alignas(16) unsigned char slot_y[VALUE_BYTES];
static _Alignas(16) unsigned char seen[VALUE_BYTES];
static _Alignas(16) unsigned char passed[VALUE_BYTES];
static _Alignas(16) unsigned char after[VALUE_BYTES];

static struct {
    unsigned calls;
    enum cairn_status status;
    struct cairn_value value;
} read_value;

static void leave(struct cairn_exit_call *call, void *user)
{
    (void)user;
    struct cairn_location location;
    struct cairn_type type = {0};
    read_value.calls++;
    if (call->record.table == NULL) {
        read_value.status = CAIRN_ERROR_NOT_FOUND;
        return;
    }
    const struct cairn_declaration *declaration = cairn_record_declaration(call->record);
    if (declaration->argument_count > 0 && declaration->kind == CAIRN_RECORD_PATCHPOINT) {
        location = cairn_record_location(call->record, 0);
        type = declaration->types[0];
        read_value.status =
            cairn_frame_at_location(&call->frame, location, type, &read_value.value, NULL);
        return;
    }
    read_value.status = cairn_frame_value(&call->frame, call->record, 0, &read_value.value, NULL);
}

static void fill(unsigned char *bytes)
{
    for (unsigned i = 0; i < VALUE_BYTES; i++)
        bytes[i] = (unsigned char)below(127); /* no NaNs */
}

static void print_sample(const struct sample *sample, uint64_t seed)
{
    printf("type %s, source \"%s\", use %d, level %u%s%s; CAIRN_TEST_SEED=%" PRIu64 "\n",
           sample->type->name, sample->source->name, (int)sample->use, sample->level,
           sample->uses_fast_isel ? ", FastISel" : "", sample->is_small ? ", minsize" : "", seed);
}

static bool is_right(const struct sample *sample)
{
    size_t size = read_value.value.size;
    /* The call after a stack map need not preserve the register. */
    if (sample->use == USE_STACKMAP && read_value.status == CAIRN_ERROR_NOT_FOUND)
        return read_value.calls == 1;
    if (sample->use == USE_ROOT) /* check_llvm_roots.c reads and moves roots */
        return read_value.calls == 1 && memcmp(seen, passed, sizeof(void *)) == 0;
    if (read_value.calls != 1 || read_value.status != CAIRN_OK || size == 0)
        return false;
    if (memcmp(seen, read_value.value.bytes, size) != 0 || memcmp(seen, after, size) != 0)
        return false;
    return sample->use != USE_ARGUMENT || memcmp(seen, passed, size) == 0;
}

static bool run(const struct sample *sample, cairn_exit *the_exit)
{
    const struct support_symbol symbols[] = {{"leave", cairn_exit_target(the_exit)},
                                             {"leave_many", cairn_exit_target(the_exit)},
                                             {"leave_large", cairn_exit_target(the_exit)},
                                             {"x", slot_x},
                                             {"y", slot_y},
                                             {"seen", seen},
                                             {"passed", passed},
                                             {"after", after},
                                             {NULL, NULL}};
    const struct cairn_engine_options options = {.optimisation_level = sample->level,
                                                 .enable_fast_isel = sample->uses_fast_isel,
                                                 .load = support_symbols(symbols)};
    struct cairn_error error = {0};
    cairn_engine *engine = NULL;
    LLVMModuleRef module = build(sample);
    cairn_prepare_function(LLVMGetNamedFunction(module, "f"));
    if (getenv("CAIRN_TEST_DUMP") != NULL)
        LLVMDumpModule(module);
    enum cairn_status status = cairn_engine_create(runtime, module, &options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    function *f = get(engine, "f");
    if (sample->use == USE_PATCHPOINT || sample->use == USE_ANY_REGISTER) {
        cairn_site *site = cairn_engine_site(engine, 7, &error);
        ck_assert_msg(site != NULL, "%s", error.message);
        ck_assert_ok(cairn_site_call(site, cairn_exit_target(the_exit), CAIRN_RELAXED, &error));
    }
    fill(slot_x);
    fill(slot_y);
    memset(&read_value, 0, sizeof read_value);
    int64_t result = f(below(2));
    cairn_engine_destroy(engine);
    return result < 2 && is_right(sample);
}

static bool fits(const struct sample *sample)
{
    const struct operand_type *type = sample->type;
    bool is_statepoint = sample->use >= USE_DEOPT;
    bool has_statepoint = is_statepoint || strstr(sample->source->text, "deopt") != NULL;
    if (has_statepoint && !support_has_statepoints())
        return false;
    if (type->is_wide && !is_statepoint)
        return false;
    if (sample->use == USE_ROOT && strcmp(type->signature, "p1") != 0)
        return false;
    /* It would return a pair of them in memory. */
    if (type->is_wide &&
        (sample->use == USE_ARGUMENT || strstr(sample->source->text, "deopt") != NULL))
        return false;
    switch (sample->source->need) {
    case NEED_INTEGER:
        return type->is_integer;
    case NEED_SCALAR:
        return *type->name != '<' && !type->is_wide && *type->name != 'p';
    case NEED_I64:
        return strcmp(type->name, "i64") == 0;
    default:
        return true;
    }
}

static struct sample choose(void)
{
    struct sample sample;
    do
        sample = (struct sample){.type = &types[below(TYPES)],
                                 .source = &sources[below(SOURCES)],
                                 .use = (enum use)below(USES),
                                 .level = first_level() + below(LEVELS - first_level()),
                                 .uses_fast_isel = below(2) != 0,
                                 .is_small = below(2) != 0};
    while (!fits(&sample));
    return sample;
}

START_TEST(records_describe_the_value_that_the_function_stores)
{
    uint64_t seed = support_seed_or(20261128);
    uint64_t rounds = support_read_number("CAIRN_TEST_ROUNDS", 400);
    cairn_exit *the_exit;
    unsigned wrong = 0;
    ck_assert_ok(cairn_exit_create(runtime, leave, NULL, &the_exit, NULL));
    for (uint64_t i = 0; i < rounds; i++) {
        random_state = (seed + i) * 0x9e3779b97f4a7c15u;
        struct sample sample = choose();
        if (getenv("CAIRN_TEST_DUMP") != NULL)
            print_sample(&sample, seed + i);
        if (run(&sample, the_exit))
            continue;
        wrong++;
        print_sample(&sample, seed + i);
        printf("  status %d, %u calls\n", (int)read_value.status, read_value.calls);
    }
    cairn_exit_destroy(the_exit);
    ck_assert_uint_eq(wrong, 0);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_set_timeout(tests, 120);
    if (support_has_statepoints()) {
        tcase_add_loop_test(tests, statepoint_calls_the_callee_that_was_computed, 0, 2);
        tcase_add_loop_test(tests, statepoint_passes_arguments_as_the_callee_expects_them, 0, 4);
    }
    tcase_add_test(tests, records_describe_the_value_that_the_function_stores);
}

int main(void) { return engine_main("operands of records", add_tests); }
