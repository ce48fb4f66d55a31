/*
 * Tests of functions that are entered in place of a frame: their arguments, their return address,
 * and the caller's registers after they return.
 *
 * The tests generate random modules whose functions have random types and store their arguments. A
 * caller keeps values in registers across a call of a function with a site that leads to an exit.
 * The handler enters a random function or a C function; if that function reaches an exit, too, the
 * handler may enter another one. Every register is loaded before the call (tests/registers.h).
 *
 * Environment: CAIRN_TEST_SEED selects other functions, and CAIRN_TEST_ROUNDS is the number of
 * modules.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "call/signature.h"
#include "llvm_support.h"
#include "tests/registers.h"
#include "value/representation.h"
#include "value_generator.h"
#include "llvm/version.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = 60,
    TARGETS = 12,
    RUNS = 24,
    SLOT_BYTES = 16,
    KEPT_INTEGERS = 14,
    KEPT_NUMBERS = 10,
    DEPTH_MAX = 4,
    F_SITE = 1,
    FIRST_SITE = 100, /* number of targets */
    CYCLES = 1000
};

static LLVMContextRef context;
static cairn_runtime *runtime;
static cairn_engine *engine;
static cairn_exit *the_exit;
static uint64_t random_state;
static uint64_t seed;

static uint32_t below(uint32_t bound) { return generate_below(&random_state, bound); }

/* ---- Memory that the code reads and stores ---- */

typedef unsigned char slot[SLOT_BYTES];

static struct {
    _Alignas(SLOT_BYTES) slot seen[CAIRN_SIGNATURE_ARGUMENTS_MAX];
    slot own_results[CAIRN_FUNCTION_RESULTS_MAX]; /* results of functions */
    slot returned[CAIRN_FUNCTION_RESULTS_MAX];    /* result that the caller received */
    int64_t integers[KEPT_INTEGERS];
    int64_t integers_after[KEPT_INTEGERS];
    double numbers[KEPT_NUMBERS];
    double numbers_after[KEPT_NUMBERS];
    double constant_after;
} buffers;

#define CONSTANT 1.23456789

/* ---- Types ---- */

static LLVMTypeRef llvm_type(struct cairn_type type)
{
    if (type.element_count > 0)
        return LLVMVectorType(llvm_type(cairn_type_vector(type, 0)), type.element_count);
    switch (type.kind) {
    case CAIRN_TYPE_POINTER:
        return version_byte_pointer_type(context);
    case CAIRN_TYPE_FLOAT:
        return LLVMFloatTypeInContext(context);
    case CAIRN_TYPE_DOUBLE:
        return LLVMDoubleTypeInContext(context);
    case CAIRN_TYPE_HALF:
        return LLVMHalfTypeInContext(context);
    default:
        return LLVMIntTypeInContext(context, type.bits);
    }
}

/* On x86-64, LLVM before 18 passes i128 in a different way than C. */
static bool passes_wide_integers(void)
{
    return LLVM_VERSION_MAJOR >= 18 || cairn_architecture_host() != CAIRN_ARCHITECTURE_X86_64;
}

static struct cairn_type random_integer(void)
{
    static const uint32_t widths[] = {1, 8, 16, 32, 64, 64};
    return CAIRN_INTEGER(below(4) == 0 ? 1 + below(64) : widths[below(6)]);
}

static struct cairn_type random_vector(void)
{
    switch (below(4)) {
    case 0:
        return cairn_type_vector(CAIRN_FLOAT, 4);
    case 1:
        return cairn_type_vector(CAIRN_DOUBLE, 2);
    case 2:
        return cairn_type_vector(CAIRN_INTEGER(8), 16);
    default:
        return cairn_type_vector(CAIRN_INTEGER(32), 4);
    }
}

static struct cairn_type random_type(bool with_vectors)
{
    switch (below(9)) {
    case 0:
        return CAIRN_FLOAT;
    case 1:
    case 2:
        return CAIRN_DOUBLE;
    case 3:
        return CAIRN_POINTER;
    case 4:
        return with_vectors ? random_vector() : CAIRN_DOUBLE;
    case 5:
        return passes_wide_integers() && below(2) == 0 ? CAIRN_INTEGER(128) : random_integer();
    default:
        return random_integer();
    }
}

static struct cairn_value random_value(struct cairn_type type)
{
    struct cairn_value value;
    _Alignas(SLOT_BYTES) slot bytes;
    generate_bytes(&random_state, type, bytes);
    ck_assert_ok(value_of_bytes(type, bytes, cairn_type_size(type), &value, NULL));
    return value;
}

/* ---- Code ---- */

struct code {
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    struct cairn_results results; /* of all functions */
    LLVMTypeRef result;
};

static LLVMValueRef address_of(const void *place, LLVMTypeRef type)
{
    LLVMTypeRef int64 = LLVMInt64TypeInContext(context);
    return LLVMConstIntToPtr(LLVMConstInt(int64, (uintptr_t)place, 0), LLVMPointerType(type, 0));
}

static LLVMValueRef load(struct code *code, LLVMTypeRef type, const void *place)
{
    LLVMValueRef value = LLVMBuildLoad2(code->builder, type, address_of(place, type), "");
    LLVMSetVolatile(value, 1);
    return value;
}

static void store(struct code *code, LLVMValueRef value, void *place)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMSetVolatile(LLVMBuildStore(code->builder, value, address_of(place, type)), 1);
}

static LLVMTypeRef result_type(const struct cairn_results *results)
{
    LLVMTypeRef members[CAIRN_FUNCTION_RESULTS_MAX];
    for (uint32_t i = 0; i < results->count; i++)
        members[i] = llvm_type(results->types[i]);
    if (results->count == 0)
        return LLVMVoidTypeInContext(context);
    if (results->count == 1)
        return members[0];
    return LLVMStructTypeInContext(context, members, results->count, 0);
}

static LLVMValueRef begin_function(struct code *code, const char *name, LLVMTypeRef type)
{
    LLVMValueRef function = LLVMAddFunction(code->module, name, type);
    unsigned noinline_kind = LLVMGetEnumAttributeKindForName("noinline", 8);
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(context, noinline_kind, 0));
    cairn_prepare_function(function);
    LLVMPositionBuilderAtEnd(code->builder, LLVMAppendBasicBlockInContext(context, function, ""));
    return function;
}

static void build_site(struct code *code, uint64_t id)
{
    struct cairn_error error = {0};
    const struct cairn_patchpoint site = {
        .id = id, .byte_count = cairn_patchpoint_minimum_bytes(code->module, false)};
    ck_assert_msg(cairn_build_patchpoint(code->builder, &site, &error) != NULL, "%s",
                  error.message);
}

/* Returns the value in `own_results`. */
static void build_return(struct code *code)
{
    if (code->results.count == 0) {
        LLVMBuildRetVoid(code->builder);
        return;
    }
    LLVMValueRef result = LLVMGetUndef(code->result);
    for (unsigned i = 0; i < code->results.count; i++) {
        LLVMValueRef member = load(code, llvm_type(code->results.types[i]), buffers.own_results[i]);
        result = code->results.count == 1
                     ? member
                     : LLVMBuildInsertValue(code->builder, result, member, i, "");
    }
    LLVMBuildRet(code->builder, result);
}

/* Builds a function that is left at its first instruction. */
static LLVMValueRef build_f(struct code *code)
{
    LLVMValueRef f = begin_function(code, "f", LLVMFunctionType(code->result, NULL, 0, 0));
    build_site(code, F_SITE);
    build_return(code);
    return f;
}

/* Builds its caller, which keeps many values alive across the call and uses its constants
 * afterwards. */
static void build_g(struct code *code, LLVMValueRef f)
{
    LLVMTypeRef none = LLVMVoidTypeInContext(context);
    LLVMTypeRef int64 = LLVMInt64TypeInContext(context);
    LLVMTypeRef number = LLVMDoubleTypeInContext(context);
    LLVMValueRef integers[KEPT_INTEGERS];
    LLVMValueRef numbers[KEPT_NUMBERS];
    begin_function(code, "g", LLVMFunctionType(none, NULL, 0, 0));
    for (int i = 0; i < KEPT_INTEGERS; i++)
        integers[i] = load(code, int64, &buffers.integers[i]);
    for (int i = 0; i < KEPT_NUMBERS; i++)
        numbers[i] = load(code, number, &buffers.numbers[i]);
    LLVMTypeRef type = LLVMFunctionType(code->result, NULL, 0, 0);
    LLVMValueRef result = LLVMBuildCall2(code->builder, type, f, NULL, 0, "");
    for (int i = 0; i < KEPT_INTEGERS; i++)
        store(code, integers[i], &buffers.integers_after[i]);
    for (int i = 0; i < KEPT_NUMBERS; i++)
        store(code, numbers[i], &buffers.numbers_after[i]);
    store(code, LLVMConstReal(number, CONSTANT), &buffers.constant_after);
    for (unsigned i = 0; i < code->results.count; i++)
        store(code,
              code->results.count == 1 ? result
                                       : LLVMBuildExtractValue(code->builder, result, i, ""),
              buffers.returned[i]);
    LLVMBuildRetVoid(code->builder);
}

/* ---- Functions that are entered ---- */

static struct target {
    LLVMTypeRef type;
    uint32_t count;
    struct cairn_type types[CAIRN_SIGNATURE_ARGUMENTS_MAX];
    cairn_signature *signature;
    cairn_closure *closure; /* NULL if it is compiled */
    const void *function;
} targets[TARGETS];

static void build_target(struct code *code, uint64_t site, struct target *target)
{
    char name[16];
    LLVMTypeRef types[CAIRN_SIGNATURE_ARGUMENTS_MAX];
    snprintf(name, sizeof name, "target%" PRIu64, site);
    for (uint32_t i = 0; i < target->count; i++)
        types[i] = llvm_type(target->types[i]);
    target->type = LLVMFunctionType(code->result, types, target->count, 0);
    LLVMValueRef function = begin_function(code, name, target->type);
    for (uint32_t i = 0; i < target->count; i++)
        store(code, LLVMGetParam(function, i), buffers.seen[i]);
    build_site(code, site);
    build_return(code);
}

static struct code begin_module(const struct cairn_results *results)
{
    return (struct code){.module = LLVMModuleCreateWithNameInContext("enter", context),
                         .builder = LLVMCreateBuilderInContext(context),
                         .results = *results,
                         .result = result_type(results)};
}

static void load_module(struct code *code)
{
    struct cairn_error error = {0};
    static struct support_symbol symbols[2];
    symbols[0] = (struct support_symbol){"leave", cairn_exit_target(the_exit)};
    const struct cairn_engine_options options = {.optimisation_level = 2,
                                                 .load = support_symbols(symbols)};
    LLVMDisposeBuilder(code->builder);
    enum cairn_status status =
        cairn_engine_create(runtime, code->module, &options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}

static const void *find(const char *name)
{
    struct cairn_error error = {0};
    const void *address = support_compiled_function(engine, name, &error);
    ck_assert_msg(address != NULL, "%s", error.message);
    return address;
}

static void patch(uint64_t id)
{
    struct cairn_error error = {0};
    cairn_site *site = cairn_runtime_find_site(runtime, id, &error);
    ck_assert_msg(site != NULL, "%s", error.message);
    enum cairn_status status =
        cairn_site_call(site, cairn_exit_target(the_exit), CAIRN_RELAXED, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}

static void find_target(uint64_t site, struct target *target)
{
    char name[16];
    struct cairn_error error = {0};
    snprintf(name, sizeof name, "target%" PRIu64, site);
    target->function = find(name);
    enum cairn_status status =
        cairn_signature_of_function(NULL, target->type, &target->signature, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}

/* ---- A run ---- */

static struct {
    void (*handler)(struct cairn_exit_call *call);
    struct cairn_results results;
    struct cairn_value
        returned[CAIRN_FUNCTION_RESULTS_MAX]; /* result that the caller must receive */
    const struct target *target;              /* the function that was entered last */
    struct cairn_value arguments[CAIRN_SIGNATURE_ARGUMENTS_MAX];
    unsigned calls;
    unsigned depth;
    unsigned seen; /* number of entered C functions */
    uint64_t caller_pc;
    uint64_t caller_sp;
    uint64_t toc; /* PPC64's r2 at the site, which is also the caller's */
} run;

static unsigned entered[3]; /* without and with arguments on the stack; C functions */

static void handle(struct cairn_exit_call *call, void *user)
{
    ck_assert_ptr_eq(user, &run);
    run.calls++;
    run.handler(call);
}

static void compare(uint32_t index, const struct cairn_value *expected, const void *bytes)
{
    char name[64];
    if (memcmp(expected->bytes, bytes, expected->size) == 0)
        return;
    cairn_type_format(expected->type, name, sizeof name);
    ck_abort_msg("argument or result %u, %s, of a function with %u arguments differs; "
                 "CAIRN_TEST_SEED=%" PRIu64,
                 index, name, run.target == NULL ? 0 : run.target->count, seed);
}

static void compare_seen(void)
{
    for (uint32_t i = 0; i < run.target->count; i++)
        compare(i, &run.arguments[i], buffers.seen[i]);
}

/* Compares the arguments that a C function received. */
static void take_arguments(const struct cairn_value *arguments, struct cairn_value *results,
                           void *user)
{
    ck_assert_ptr_eq(user, run.target);
    run.seen++;
    for (uint32_t i = 0; i < run.target->count; i++)
        compare(i, &run.arguments[i], arguments[i].bytes);
    for (uint32_t i = 0; i < run.results.count; i++)
        results[i] = run.returned[i];
}

static void choose_results(void)
{
    for (uint32_t i = 0; i < run.results.count; i++) {
        run.returned[i] = random_value(run.results.types[i]);
        memcpy(buffers.own_results[i], run.returned[i].bytes, run.returned[i].size);
    }
}

static void enter(struct cairn_exit_call *call, const struct target *target)
{
    struct cairn_error error = {0};
    run.target = target;
    memset(buffers.seen, 0xEE, sizeof buffers.seen);
    for (uint32_t i = 0; i < target->count; i++)
        run.arguments[i] = random_value(target->types[i]);
    enum cairn_status status = cairn_exit_enter(call, target->signature, target->function,
                                                run.arguments, target->count, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}

static bool has_toc(void)
{
    enum cairn_architecture host = cairn_architecture_host();
    return host == CAIRN_ARCHITECTURE_PPC64_ELFV2 || host == CAIRN_ARCHITECTURE_PPC64_ELFV1;
}

/* The exit in the function that was left: finds its caller. */
static void remember_caller(const struct cairn_exit_call *call)
{
    struct cairn_frame frame = call->frame;
    if (has_toc())
        ck_assert_ok(cairn_frame_read(&frame, 2, &run.toc, sizeof run.toc, NULL));
    ck_assert_ok(cairn_frame_caller(&frame, NULL));
    ck_assert_ptr_nonnull(frame.module);
    run.caller_pc = frame.pc;
    run.caller_sp = frame.sp;
}

/* An exit in an entered function: the caller is the same, in the same frame. */
static void walk_to_caller(const struct cairn_exit_call *call)
{
    struct cairn_error error = {0};
    struct cairn_frame frame = call->frame;
    unsigned steps = 0;
    while (frame.module != NULL && frame.pc != run.caller_pc) {
        enum cairn_status status = cairn_frame_caller(&frame, &error);
        ck_assert_msg(status == CAIRN_OK, "%s", error.message);
        steps++;
    }
    ck_assert_uint_eq(frame.pc, run.caller_pc);
    ck_assert_uint_eq(frame.sp, run.caller_sp);
    ck_assert_uint_le(steps, 2);
    ck_assert_ok(cairn_frame_caller(&frame, &error));
    ck_assert_ptr_null(frame.module);
    ck_assert_uint_eq(frame.sp, registers_sp);
}

static void go_on_at_random(struct cairn_exit_call *call)
{
    struct cairn_error error = {0};
    bool is_f = cairn_record_id(call->record) == F_SITE;
    if (is_f)
        remember_caller(call);
    else {
        compare_seen();
        walk_to_caller(call);
    }
    run.depth++;
    if (is_f || (run.depth < DEPTH_MAX && below(2) == 0)) {
        enter(call, &targets[below(TARGETS)]);
        entered[run.target->closure != NULL ? 2 : run.target->count > 14]++;
    } else if (below(2) == 0) {
        choose_results();
        enum cairn_status status = cairn_exit_return(call, run.returned, run.results.count, &error);
        ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    }
}

/* ---- Calling the caller ---- */

/* The callee-saved part of each register. For PPC64's vs14 to vs31 it is the part that exists at
 * level 1, f14 to f31; for AArch64's v8 to v15 it is the first 8 bytes. */
static bool place_kept(uint16_t dwarf, uint32_t level, size_t *offset, size_t *bytes)
{
    enum { F31_OF_PPC64 = 63 };
    bool is_aarch64 = cairn_architecture_host() == CAIRN_ARCHITECTURE_AARCH64;
    if (!registers_place(dwarf, dwarf <= F31_OF_PPC64 ? 1 : level, offset, bytes))
        return false;
    if (is_aarch64 && *bytes > 8)
        *bytes = 8;
    return true;
}

/* Flags and control registers are preserved field by field. */
static bool is_compared(uint16_t dwarf)
{
    enum { F31_OF_PPC64 = 63, V0_OF_PPC64 = 77, V8_OF_AARCH64 = 72 };
    bool is_aarch64 = cairn_architecture_host() == CAIRN_ARCHITECTURE_AARCH64;
    bool is_vector = is_aarch64 ? dwarf >= V8_OF_AARCH64 : dwarf >= V0_OF_PPC64;
    return registers_is_kept(dwarf) && !registers_is_fixed(dwarf) &&
           (dwarf <= F31_OF_PPC64 || is_vector);
}

static uint32_t vector_level(void)
{
    const struct cairn_arch *arch = arch_host();
    return arch == NULL ? 0 : arch_host_vector_level();
}

static void compare_registers(const struct registers *before, const struct registers *after,
                              uint32_t level)
{
    for (uint16_t dwarf = 0; dwarf < 128; dwarf++) {
        size_t offset;
        size_t bytes;
        if (!is_compared(dwarf) || !place_kept(dwarf, level, &offset, &bytes))
            continue;
        if (memcmp((const char *)before + offset, (const char *)after + offset, bytes) != 0)
            ck_abort_msg("the caller's register %u has changed; CAIRN_TEST_SEED=%" PRIu64, dwarf,
                         seed);
    }
    ck_assert_uint_eq(after->general[registers_stack_pointer()], registers_sp);
    if (run.toc != 0)
        ck_assert_uint_eq(after->general[2], run.toc);
}

static void prepare_registers(struct registers *registers)
{
    memset(registers, 0, sizeof *registers);
    registers_make_possible(registers);
    for (size_t i = 0; i < sizeof registers->general; i++)
        ((unsigned char *)registers->general)[i] = (unsigned char)below(256);
    for (size_t i = 0; i < sizeof registers->vectors; i++)
        ((unsigned char *)registers->vectors)[i] = (unsigned char)below(256);
}

static void prepare_buffers(void)
{
    memset(&buffers, 0xEE, sizeof buffers);
    for (int i = 0; i < KEPT_INTEGERS; i++)
        buffers.integers[i] = (int64_t)((uint64_t)below(1U << 31) << 32 | below(1U << 31));
    for (int i = 0; i < KEPT_NUMBERS; i++)
        buffers.numbers[i] = (double)below(1U << 31) / 3;
}

static void run_g(void)
{
    static struct registers before;
    static struct registers after;
    uint32_t level = vector_level();
    prepare_buffers();
    choose_results();
    prepare_registers(&before);
    run.calls = 0;
    run.depth = 0;
    const void *g = registers_call_function(&before, find("g"), NULL);
    registers_run(&before, &after, g, level);
    compare_registers(&before, &after, level);
    ck_assert_mem_eq(buffers.integers_after, buffers.integers, sizeof buffers.integers);
    ck_assert_mem_eq(buffers.numbers_after, buffers.numbers, sizeof buffers.numbers);
    ck_assert_double_eq(buffers.constant_after, CONSTANT);
    for (uint32_t i = 0; i < run.results.count; i++)
        compare(i, &run.returned[i], buffers.returned[i]);
}

/* ---- Fixtures ---- */

static void set_up(void)
{
    context = LLVMContextCreate();
    engine = NULL;
    memset(&run, 0, sizeof run);
    memset(targets, 0, sizeof targets);
    ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL));
    ck_assert_ok(cairn_exit_create(runtime, handle, &run, &the_exit, NULL));
}

static void drop_module(void)
{
    for (int i = 0; i < TARGETS; i++) {
        cairn_closure_destroy(targets[i].closure);
        cairn_signature_destroy(targets[i].signature);
        targets[i] = (struct target){.count = 0};
    }
    cairn_engine_destroy(engine);
    engine = NULL;
}

static void tear_down(void)
{
    drop_module();
    cairn_exit_destroy(the_exit);
    cairn_runtime_destroy(runtime);
    LLVMContextDispose(context);
}

/* ---- Random modules ---- */

static struct cairn_results random_results(void)
{
    struct cairn_results results = {.is_known = true, .count = (uint8_t)below(3)};
    for (uint32_t i = 0; i < results.count; i++)
        results.types[i] = below(2) == 0 ? CAIRN_DOUBLE : CAIRN_INTEGER(64);
    if (results.count == 1)
        results.types[0] = random_type(true);
    return results;
}

/* Chooses types until there is a signature that can be passed. */
static void choose_target(struct target *target)
{
    cairn_signature *signature = NULL;
    bool with_vectors = below(2) == 0;
    do {
        target->count = below(10) == 0 ? 40 + below(25) : below(24);
        for (uint32_t i = 0; i < target->count; i++)
            target->types[i] = random_type(with_vectors);
    } while (cairn_signature_create(NULL, NULL, 0, target->types, target->count, &signature,
                                    NULL) != CAIRN_OK);
    cairn_signature_destroy(signature);
}

/* Returns a C function of the same type, if libffi supports the type. */
static void replace_by_closure(struct target *target)
{
    cairn_closure *closure;
    if (cairn_closure_create(runtime, target->signature, take_arguments, target, &closure, NULL) !=
        CAIRN_OK)
        return;
    target->closure = closure;
    target->function = cairn_closure_target(closure);
}

static void load_random_module(void)
{
    run.results = random_results();
    struct code code = begin_module(&run.results);
    build_g(&code, build_f(&code));
    for (uint64_t i = 0; i < TARGETS; i++) {
        choose_target(&targets[i]);
        build_target(&code, FIRST_SITE + i, &targets[i]);
    }
    load_module(&code);
    find("g");
    patch(F_SITE);
    for (uint64_t i = 0; i < TARGETS; i++) {
        find_target(FIRST_SITE + i, &targets[i]);
        if (below(2) == 0)
            patch(FIRST_SITE + i);
        if (below(3) == 0)
            replace_by_closure(&targets[i]);
    }
}

START_TEST(functions_of_random_types_get_their_arguments_and_return_to_the_caller)
{
    uint64_t rounds = support_read_number("CAIRN_TEST_ROUNDS", ROUNDS);
    run.handler = go_on_at_random;
    seed = support_seed_or(0);
    for (uint64_t i = 0; i < rounds; i++) {
        random_state = ++seed;
        load_random_module();
        for (int j = 0; j < RUNS; j++) {
            run_g();
            if (run.target->closure == NULL && run.depth == 1)
                compare_seen();
        }
        drop_module();
        cairn_runtime_quiesce(runtime);
    }
    printf("entered: %u with few arguments, %u with many, %u C functions\n", entered[0], entered[1],
           entered[2]);
    ck_assert_uint_gt(entered[0], 0);
    ck_assert_uint_gt(entered[1], 0);
    ck_assert_uint_gt(run.seen, 0);
}
END_TEST

/* ---- Modules with chosen types ---- */

static void load_chosen_module(struct cairn_type result, const struct cairn_type *types,
                               uint32_t count)
{
    run.results = (struct cairn_results){.is_known = true, .count = 1, .types = {result}};
    struct code code = begin_module(&run.results);
    build_g(&code, build_f(&code));
    targets[0].count = count;
    memcpy(targets[0].types, types, count * sizeof *types);
    build_target(&code, FIRST_SITE, &targets[0]);
    load_module(&code);
    find("g");
    find_target(FIRST_SITE, &targets[0]);
    patch(F_SITE);
}

static struct cairn_type many_types[20];

static const struct cairn_type *fill_types(void)
{
    for (int i = 0; i < 20; i++)
        many_types[i] = i % 3 == 1 ? CAIRN_DOUBLE : CAIRN_INTEGER(64);
    return many_types;
}

static uint64_t first_sp;

static void enter_again(struct cairn_exit_call *call)
{
    if (cairn_record_id(call->record) == F_SITE) {
        remember_caller(call);
        enter(call, &targets[0]);
        return;
    }
    compare_seen();
    if (run.calls == 2)
        first_sp = call->frame.sp;
    ck_assert_uint_eq(call->frame.sp, first_sp);
    if (run.calls < CYCLES)
        enter(call, &targets[0]);
    else
        walk_to_caller(call);
}

START_TEST(the_stack_does_not_grow_where_functions_take_each_others_places)
{
    run.handler = enter_again;
    load_chosen_module(CAIRN_DOUBLE, fill_types(), 20);
    patch(FIRST_SITE);
    run_g();
    ck_assert_uint_eq(run.calls, CYCLES);
}
END_TEST

static void enter_once(struct cairn_exit_call *call) { enter(call, &targets[0]); }

START_TEST(a_function_gets_as_many_arguments_on_the_stack_as_there_may_be)
{
    struct cairn_type types[CAIRN_SIGNATURE_ARGUMENTS_MAX];
    for (int i = 0; i < CAIRN_SIGNATURE_ARGUMENTS_MAX; i++)
        types[i] = cairn_type_vector(CAIRN_DOUBLE, 2);
    run.handler = enter_once;
    load_chosen_module(CAIRN_POINTER, types, CAIRN_SIGNATURE_ARGUMENTS_MAX);
    run_g();
    compare_seen();
}
END_TEST

static int64_t weigh(int64_t a, double b, int64_t c, int64_t d, double e, int64_t f, int64_t g,
                     double h, int64_t i, int64_t j, double k, int64_t l, int64_t m, double n,
                     int64_t o)
{
    return a + 2 * (int64_t)b + 3 * c + 5 * d + 7 * (int64_t)e + 11 * f + 13 * g + 17 * (int64_t)h +
           19 * i + 23 * j + 29 * (int64_t)k + 31 * l + 37 * m + 41 * (int64_t)n + 43 * o;
}

static cairn_signature *weigh_signature;

static void enter_weigh(struct cairn_exit_call *call)
{
    struct cairn_value values[15];
    struct cairn_error error = {0};
    for (int i = 0; i < 15; i++)
        values[i] = i % 3 == 1 ? cairn_value_of_double(i + 1) : cairn_value_of_integer(64, i + 1);
    enum cairn_status status =
        cairn_exit_enter(call, weigh_signature, (const void *)(uintptr_t)weigh, values, 15, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    /* The types are copied. */
    memset(values, 0, sizeof values);
    cairn_signature_destroy(weigh_signature);
}

START_TEST(a_c_function_gets_arguments_in_registers_and_on_the_stack)
{
    const struct cairn_type result = CAIRN_INTEGER(64);
    run.handler = enter_weigh;
    load_chosen_module(result, fill_types(), 0);
    ck_assert_ok(cairn_signature_create(NULL, &result, 1, many_types, 15, &weigh_signature, NULL));
    run.results.count = 0;
    run_g();
    int64_t returned;
    memcpy(&returned, buffers.returned[0], sizeof returned);
    ck_assert_int_eq(returned, weigh(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}
END_TEST

/* ---- A frame without a record ---- */

static void enter_weigh_from_a_call(struct cairn_exit_call *call)
{
    ck_assert_ptr_null(call->record.table);
    enter_weigh(call);
}

/* The exit is called by the code as a function, so the result that its caller expects is unknown.
 */
START_TEST(a_frame_without_a_declaration_can_be_left)
{
    LLVMTypeRef int64 = LLVMInt64TypeInContext(context);
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), NULL, 0, 0);
    const struct cairn_type result = CAIRN_INTEGER(64);
    int64_t (*f)(void);
    run.handler = enter_weigh_from_a_call;
    fill_types();
    ck_assert_ok(cairn_signature_create(NULL, &result, 1, many_types, 15, &weigh_signature, NULL));
    run.results = (struct cairn_results){.is_known = true, .count = 1, .types = {result}};
    struct code code = begin_module(&run.results);
    LLVMValueRef leave = LLVMAddFunction(code.module, "leave", type);
    begin_function(&code, "f", LLVMFunctionType(int64, NULL, 0, 0));
    LLVMBuildCall2(code.builder, type, leave, NULL, 0, "");
    build_return(&code);
    load_module(&code);
    const void *address = find("f");
    memcpy(&f, &address, sizeof f);
    ck_assert_int_eq(f(), weigh(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}
END_TEST

/* ---- Errors ---- */

static void expect_refusal(struct cairn_exit_call *call, const cairn_signature *signature,
                           const struct cairn_value *values, uint32_t count,
                           enum cairn_status expected, const char *sentence)
{
    struct cairn_error error = {0};
    ck_assert_int_eq(cairn_exit_enter(call, signature, targets[0].function, values, count, &error),
                     expected);
    ck_assert_msg(strstr(error.message, sentence) != NULL, "%s", error.message);
}

static void enter_wrongly(struct cairn_exit_call *call)
{
    const struct cairn_value values[] = {cairn_value_of_integer(64, 1),
                                         cairn_value_of_integer(64, 2),
                                         cairn_value_of_integer(64, 3)};
    const cairn_signature *signature = targets[0].signature;
    const struct cairn_type result = CAIRN_INTEGER(64);
    cairn_signature *other;
    ck_assert_ok(cairn_signature_create(NULL, &result, 1, NULL, 0, &other, NULL));
    expect_refusal(call, signature, values, 2, CAIRN_ERROR_ARGUMENT,
                   "the function takes 3 arguments, and not 2");
    expect_refusal(call, signature, values, 3, CAIRN_ERROR_ARGUMENT,
                   "argument 1 is i64, and not double");
    expect_refusal(call, other, NULL, 0, CAIRN_ERROR_ARGUMENT, "'f' returns double, and not i64");
    expect_refusal(call, NULL, NULL, 0, CAIRN_ERROR_ARGUMENT,
                   "cairn_exit_enter: `signature` is NULL");
    cairn_signature_destroy(other);
}

START_TEST(values_that_do_not_fit_are_refused_and_the_code_continues)
{
    run.handler = enter_wrongly;
    load_chosen_module(CAIRN_DOUBLE, fill_types(), 3);
    run_g();
    ck_assert_uint_eq(run.calls, 1);
}
END_TEST

static const char without_rules[] = SUPPORT_INTRINSICS
    "define i64 @f(i64 %a) nounwind {\n"
    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1, i32 16,\n"
    "      ptr null, i32 0, i64 %a)\n"
    "  ret i64 %a\n"
    "}\n";

static void enter_without_rules(struct cairn_exit_call *call)
{
    const struct cairn_type result = CAIRN_INTEGER(64);
    cairn_signature *signature;
    ck_assert_ok(cairn_signature_create(NULL, &result, 1, NULL, 0, &signature, NULL));
    targets[0].function = (const void *)(uintptr_t)enter_without_rules;
    expect_refusal(call, signature, NULL, 0, CAIRN_ERROR_NOT_FOUND, "uwtable");
    cairn_signature_destroy(signature);
}

START_TEST(a_function_without_unwind_rules_cannot_be_left)
{
    struct cairn_error error = {0};
    int64_t (*f)(int64_t);
    LLVMModuleRef module = support_parse_valid(context, without_rules);
    run.handler = enter_without_rules;
    enum cairn_status status = cairn_engine_create(runtime, module, NULL, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    const void *address = find("f");
    memcpy(&f, &address, sizeof f);
    patch(1);
    ck_assert_int_eq(f(9), 9);
    ck_assert_uint_eq(run.calls, 1);
}
END_TEST

/* ---- Signatures of LLVM's types ---- */

START_TEST(a_signature_is_made_of_a_functions_type)
{
    LLVMTypeRef int32 = LLVMInt32TypeInContext(context);
    LLVMTypeRef members[] = {int32, LLVMDoubleTypeInContext(context)};
    LLVMTypeRef structure = LLVMStructTypeInContext(context, members, 2, 0);
    cairn_signature *signature = NULL;
    struct cairn_error error;
    ck_assert_ok(cairn_signature_of_function(NULL, LLVMFunctionType(structure, members, 2, 0),
                                             &signature, &error));
    ck_assert_uint_eq(signature->argument_count, 2);
    ck_assert_uint_eq(signature->arguments[0].type.bits, 32);
    ck_assert_uint_eq(signature->results.count, 2);
    ck_assert_int_eq(signature->results.types[1].kind, CAIRN_TYPE_DOUBLE);
    cairn_signature_destroy(signature);
    signature = NULL;
    ck_assert_int_eq(cairn_signature_of_function(NULL, LLVMFunctionType(int32, members, 2, 1),
                                                 &signature, &error),
                     CAIRN_ERROR_UNSUPPORTED);
    ck_assert_str_eq(error.message,
                     "the function takes variable arguments, which a signature does not have");
    ck_assert_int_eq(cairn_signature_of_function(NULL, LLVMFunctionType(int32, &structure, 1, 0),
                                                 &signature, &error),
                     CAIRN_ERROR_UNSUPPORTED);
    ck_assert_int_eq(cairn_signature_of_function(NULL, int32, &signature, &error),
                     CAIRN_ERROR_ARGUMENT);
    LLVMTypeRef large = LLVMArrayType(int32, 5);
    ck_assert_int_eq(
        cairn_signature_of_function(NULL, LLVMFunctionType(large, NULL, 0, 0), &signature, &error),
        CAIRN_ERROR_ARGUMENT);
    LLVMTypeRef many[CAIRN_SIGNATURE_ARGUMENTS_MAX + 1];
    for (int i = 0; i <= CAIRN_SIGNATURE_ARGUMENTS_MAX; i++)
        many[i] = int32;
    ck_assert_int_eq(cairn_signature_of_function(
                         NULL, LLVMFunctionType(int32, many, CAIRN_SIGNATURE_ARGUMENTS_MAX + 1, 0),
                         &signature, &error),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_ptr_null(signature);
}
END_TEST

/* An OSR entry. */
START_TEST(compiled_functions_are_called_by_their_signatures)
{
    random_state = 1;
    load_chosen_module(CAIRN_INTEGER(128), fill_types(), 20);
    choose_results();
    run.target = &targets[0];
    for (int i = 0; i < 20; i++)
        run.arguments[i] = random_value(targets[0].types[i]);
    struct cairn_value result;
    ck_assert_ok(
        cairn_call(targets[0].signature, targets[0].function, run.arguments, 20, &result, NULL));
    compare_seen();
    compare(0, &run.returned[0], result.bytes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("enter");
    TCase *chosen = tcase_create("chosen");
    tcase_add_checked_fixture(chosen, set_up, tear_down);
    tcase_add_test(chosen, a_signature_is_made_of_a_functions_type);
    tcase_add_test(chosen, compiled_functions_are_called_by_their_signatures);
    tcase_add_test(chosen, a_c_function_gets_arguments_in_registers_and_on_the_stack);
    tcase_add_test(chosen, a_function_gets_as_many_arguments_on_the_stack_as_there_may_be);
    tcase_add_test(chosen, the_stack_does_not_grow_where_functions_take_each_others_places);
    tcase_add_test(chosen, a_frame_without_a_declaration_can_be_left);
    tcase_add_test(chosen, values_that_do_not_fit_are_refused_and_the_code_continues);
    tcase_add_test(chosen, a_function_without_unwind_rules_cannot_be_left);
    suite_add_tcase(suite, chosen);
    TCase *random = tcase_create("random");
    tcase_set_timeout(random, 120);
    tcase_add_checked_fixture(random, set_up, tear_down);
    tcase_add_test(random, functions_of_random_types_get_their_arguments_and_return_to_the_caller);
    suite_add_tcase(suite, random);
    return support_main(suite);
}
