/*
 * Tests of live-out registers with random functions. The values of each function live across a site
 * in any registers, and the code at the site changes every register that need not be preserved. The
 * function's result must be unchanged. In this test LLVM lists the live-outs (CAIRN_LIVENESS_KEEP).
 *
 * Environment: CAIRN_TEST_SEED selects other functions (0 means the clock's time), and
 * CAIRN_TEST_ROUNDS is the number of functions.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm_support.h"
#include "tests/context_support.h"

#include <cairn/cairn.h>
#include <cairn/llvm.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 150, SCALARS_MAX = 20, VECTORS_MAX = 12, SITE = 1, WORDS_MAX = 64 };

static const uint16_t register_count = 128;

/* ---- Random numbers ---- */

static uint64_t seed;
static uint64_t random_state;

static uint64_t random_u64(void)
{
    random_state += 0x9e3779b97f4a7c15u;
    uint64_t bits = random_state;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    return bits ^ bits >> 31;
}

static unsigned below(unsigned bound) { return (unsigned)(random_u64() % bound); }

/* ---- A function: loads, the site, stores ---- */

static uint64_t input[WORDS_MAX];
static uint64_t output[WORDS_MAX];

struct shape {
    unsigned scalars;
    unsigned vectors; /* two words each */
};

static unsigned word_count(struct shape shape) { return shape.scalars + 2 * shape.vectors; }

static LLVMTypeRef type_of(LLVMContextRef context, struct shape shape, unsigned value)
{
    LLVMTypeRef word = LLVMInt64TypeInContext(context);
    return value < shape.scalars ? word : LLVMVectorType(word, 2);
}

static LLVMValueRef address_of(LLVMContextRef context, const uint64_t *words, struct shape shape,
                               unsigned value, LLVMTypeRef type)
{
    unsigned word = value < shape.scalars ? value : shape.scalars + 2 * (value - shape.scalars);
    LLVMValueRef address =
        LLVMConstInt(LLVMInt64TypeInContext(context), (uintptr_t)&words[word], 0);
    return LLVMConstIntToPtr(address, LLVMPointerType(type, 0));
}

static LLVMValueRef load(LLVMBuilderRef builder, LLVMTypeRef type, LLVMValueRef address)
{
    LLVMValueRef loaded = LLVMBuildLoad2(builder, type, address, "");
    LLVMSetVolatile(loaded, 1);
    LLVMSetAlignment(loaded, 8);
    return loaded;
}

static void store(LLVMBuilderRef builder, LLVMValueRef value, LLVMValueRef address)
{
    LLVMValueRef stored = LLVMBuildStore(builder, value, address);
    LLVMSetVolatile(stored, 1);
    LLVMSetAlignment(stored, 8);
}

static void build_site(LLVMModuleRef module, LLVMBuilderRef builder)
{
    struct cairn_error error = {0};
    const struct cairn_patchpoint patchpoint = {
        .id = SITE,
        .byte_count = cairn_patchpoint_minimum_bytes(module, true),
        .calling_convention = CAIRN_CALLING_CONVENTION_ANYREG,
    };
    ck_assert_msg(cairn_build_patchpoint(builder, &patchpoint, &error) != NULL, "%s",
                  error.message);
}

static void build_function(LLVMModuleRef module, struct shape shape)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), NULL, 0, 0);
    LLVMValueRef function = LLVMAddFunction(module, "random", type);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMValueRef values[SCALARS_MAX + VECTORS_MAX];
    unsigned count = shape.scalars + shape.vectors;
    cairn_prepare_function(function);
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, function, ""));
    for (unsigned i = 0; i < count; i++) {
        LLVMTypeRef loaded = type_of(context, shape, i);
        values[i] = load(builder, loaded, address_of(context, input, shape, i, loaded));
    }
    build_site(module, builder);
    for (unsigned i = 0; i < count; i++)
        store(builder, values[i],
              address_of(context, output, shape, i, type_of(context, shape, i)));
    LLVMBuildRetVoid(builder);
    LLVMDisposeBuilder(builder);
}

/* ---- At the site ---- */

static unsigned calls;
static unsigned listed;
static unsigned changed;

static bool is_different(const struct cairn_context *one, const struct cairn_context *other,
                         uint16_t dwarf)
{
    unsigned char bytes[2][64];
    size_t size = cairn_context_register_size(one, dwarf);
    return size != 0 && cairn_context_read(one, dwarf, bytes[0], size, NULL) == CAIRN_OK &&
           cairn_context_read(other, dwarf, bytes[1], size, NULL) == CAIRN_OK &&
           memcmp(bytes[0], bytes[1], size) != 0;
}

static void change_registers_that_are_not_preserved(struct cairn_exit_call *call, void *user)
{
    struct cairn_context *context = user;
    struct cairn_context *own = call->frame.context;
    calls++;
    struct cairn_liveout liveout;
    for (uint32_t i = 0; cairn_record_liveout(call->record, i, &liveout); i++)
        listed++;
    *context = *own;
    for (uint16_t dwarf = 0; dwarf < register_count; dwarf++) {
        uint64_t bits[8];
        size_t size = cairn_context_register_size(own, dwarf);
        for (unsigned i = 0; i < 8; i++)
            bits[i] = random_u64();
        if (size > 0)
            ck_assert_ok(cairn_context_write(context, dwarf, bits, size, NULL));
    }
    /* These registers hold the thread's place in the code, and how it continues. */
    write_register(context, CAIRN_REGISTER_PC, read_register(own, CAIRN_REGISTER_PC));
    write_register(context, CAIRN_REGISTER_FLAGS, read_register(own, CAIRN_REGISTER_FLAGS));
    cairn_context_restore(context, own, call->record);
    for (uint16_t dwarf = 0; dwarf < register_count; dwarf++)
        changed += is_different(context, own, dwarf);
    *own = *context;
}

/* ---- Running ---- */

static void compile_and_run(cairn_runtime *runtime, cairn_exit *leave, struct shape shape)
{
    struct cairn_error error = {0};
    const struct cairn_engine_options options = {.optimisation_level = below(4),
                                                 .liveness = CAIRN_LIVENESS_KEEP};
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("random", context);
    cairn_engine *engine;
    build_function(module, shape);
    support_verify(module);
    enum cairn_status status = cairn_engine_create(runtime, module, &options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    void *function = cairn_engine_function(engine, "random", &error);
    ck_assert_msg(function != NULL, "%s", error.message);
    cairn_site *site = cairn_runtime_find_site(runtime, SITE, &error);
    ck_assert_msg(site != NULL, "%s", error.message);
    status = cairn_site_call(site, cairn_exit_target(leave), CAIRN_RELAXED, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    for (unsigned i = 0; i < WORDS_MAX; i++)
        input[i] = random_u64();
    memset(output, 0, sizeof output);
    ((void (*)(void))(uintptr_t)function)();
    ck_assert_msg(memcmp(input, output, word_count(shape) * sizeof *input) == 0,
                  "%u scalars and %u vectors were changed; CAIRN_TEST_SEED=%" PRIu64, shape.scalars,
                  shape.vectors, seed);
    cairn_engine_destroy(engine);
    LLVMContextDispose(context);
}

START_TEST(changing_dead_registers_is_not_noticed)
{
    static struct cairn_context changed_context;
    uint64_t rounds = support_read_number("CAIRN_TEST_ROUNDS", ROUNDS);
    seed = support_seed_or(20261122);
    random_state = seed;
    cairn_runtime *runtime;
    cairn_exit *leave;
    ck_assert_int_eq(cairn_runtime_create(NULL, &runtime, NULL), CAIRN_OK);
    ck_assert_int_eq(cairn_exit_create(runtime, change_registers_that_are_not_preserved,
                                       &changed_context, &leave, NULL),
                     CAIRN_OK);
    for (uint64_t i = 0; i < rounds; i++)
        compile_and_run(runtime, leave,
                        (struct shape){1 + below(SCALARS_MAX), below(VECTORS_MAX + 1)});
    cairn_exit_destroy(leave);
    cairn_runtime_destroy(runtime);
    ck_assert_uint_eq(calls, rounds);
    ck_assert_uint_gt(listed, rounds);
    ck_assert_uint_gt(changed, rounds);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("live-outs of random functions");
    TCase *tests = tcase_create("random");
    tcase_set_timeout(tests, 0);
    tcase_add_test(tests, changing_dead_registers_is_not_noticed);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
