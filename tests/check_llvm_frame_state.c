/*
 * Tests of frame states through LLVM: random stacks of interpreter frames over random live values,
 * and the size of their records.
 *
 * Environment: CAIRN_TEST_SEED selects other states (0 means the clock's time), and
 * CAIRN_TEST_ROUNDS is the number of modules.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm_support.h"
#include "value/representation.h"
#include "value_generator.h"

#include "base/type.h"
#include "record/table.h"
#include "llvm/types.h"
#include "llvm/version.h"

#include <inttypes.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FUNCTIONS = 16, RUNS = 2, ROUNDS = 40, BITS_IN_BYTE = 8 };

static LLVMContextRef context;
static cairn_runtime *runtime;
static cairn_exit *the_exit;
static void (*handler)(struct cairn_exit_call *call);
static unsigned calls;

static void handle(struct cairn_exit_call *call, void *user)
{
    (void)user;
    calls++;
    handler(call);
}

static void set_up(void)
{
    context = LLVMContextCreate();
    calls = 0;
    ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL));
    ck_assert_ok(cairn_exit_create(runtime, handle, NULL, &the_exit, NULL));
}

static void tear_down(void)
{
    cairn_exit_destroy(the_exit);
    cairn_runtime_destroy(runtime);
    LLVMContextDispose(context);
}

static cairn_engine *load(LLVMModuleRef module, unsigned optimisation_level)
{
    struct cairn_error error = {0};
    cairn_engine *engine = NULL;
    static struct support_symbol symbols[2];
    symbols[0] = (struct support_symbol){"poll", cairn_exit_target(the_exit)};
    const struct cairn_engine_options options = {.optimisation_level = optimisation_level,
                                                 .load = support_symbols(symbols)};
    support_verify(module);
    enum cairn_status status = cairn_engine_create(runtime, module, &options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return engine;
}

static void *find(cairn_engine *engine, const char *name)
{
    struct cairn_error error = {0};
    void *address = support_compiled_function(engine, name, &error);
    ck_assert_msg(address != NULL, "%s", error.message);
    return address;
}

static void patch(uint64_t id, const void *target)
{
    struct cairn_error error = {0};
    cairn_site *site = cairn_runtime_find_site(runtime, id, &error);
    ck_assert_msg(site != NULL, "%s", error.message);
    enum cairn_status status = cairn_site_call(site, target, CAIRN_RELAXED, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}

/* ---- Constants ---- */

static uint64_t random_state;

static uint32_t below(uint32_t bound) { return generate_below(&random_state, bound); }

static LLVMTypeRef integer(unsigned bits) { return LLVMIntTypeInContext(context, bits); }

/* The bytes as in a struct cairn_value, lowest bits first. */
static void store_bits(struct cairn_type type, const uint64_t *words, unsigned char *bytes)
{
    size_t size = cairn_type_size(cairn_type_vector(type, 0));
    for (size_t i = 0; i < size; i++) {
        bool is_little = CAIRN_BYTE_ORDER_NATIVE == CAIRN_LITTLE_ENDIAN;
        unsigned char byte = (unsigned char)(words[i / 8] >> i % 8 * BITS_IN_BYTE);
        bytes[is_little ? i : size - 1 - i] = byte;
    }
}

/* Returns a number that often has only a few bits, of either sign. */
static void random_bits(unsigned bits, uint64_t *words)
{
    unsigned shift = below(2) == 0 ? 0 : below(64);
    for (unsigned i = 0; i < 4; i++)
        words[i] = (uint64_t)below(UINT32_C(1) << 31) << 33 ^
                   (uint64_t)below(UINT32_C(1) << 31) << 11 ^ below(1 << 16);
    if (shift != 0) {
        words[0] = (uint64_t)((int64_t)words[0] >> shift);
        for (unsigned i = 1; i < 4; i++)
            words[i] = (int64_t)words[0] < 0 ? UINT64_MAX : 0;
    }
    for (unsigned i = 0; i < 4; i++) {
        unsigned end = (i + 1) * 64;
        if (end > bits)
            words[i] = end - bits >= 64 ? 0 : words[i] & UINT64_MAX >> (end - bits);
    }
}

static LLVMTypeRef random_scalar_type(void)
{
    LLVMTypeRef types[] = {
        LLVMHalfTypeInContext(context),     LLVMBFloatTypeInContext(context),
        LLVMFloatTypeInContext(context),    LLVMDoubleTypeInContext(context),
        LLVMX86FP80TypeInContext(context),  LLVMFP128TypeInContext(context),
        version_byte_pointer_type(context), integer(1 + below(128)),
    };
    return below(2) == 0 ? types[below(8)] : integer(1 + below(64));
}

/* Makes a normal number of 80 bits. LLVM changes the other encodings to NaNs, because no operation
 * of the machine accepts them. */
static void make_normal(uint64_t *words)
{
    words[0] |= UINT64_C(1) << 63;
    words[1] = 1 + below(0x7FFE);
}

/* Returns a constant and writes its bytes to `bytes`. */
static LLVMValueRef random_scalar(LLVMTypeRef type, unsigned char *bytes)
{
    uint64_t words[4];
    struct cairn_type described = types_convert(type);
    random_bits(described.bits, words);
    if (described.kind == CAIRN_TYPE_X86_FP80)
        make_normal(words);
    store_bits(described, words, bytes);
    LLVMValueRef bits = LLVMConstIntOfArbitraryPrecision(integer(described.bits), 4, words);
    if (described.kind == CAIRN_TYPE_INTEGER)
        return bits;
    return described.kind == CAIRN_TYPE_POINTER ? LLVMConstIntToPtr(bits, type)
                                                : LLVMConstBitCast(bits, type);
}

static LLVMValueRef random_element(LLVMTypeRef type, unsigned char *bytes)
{
    if (below(8) != 0)
        return random_scalar(type, bytes);
    memset(bytes, 0, cairn_type_size(types_convert(type)));
    return below(2) == 0 ? LLVMGetUndef(type) : LLVMConstNull(type);
}

static LLVMValueRef random_vector(LLVMTypeRef element, unsigned count, unsigned char *bytes)
{
    LLVMValueRef elements[CAIRN_VALUE_BYTES_MAX];
    size_t size = cairn_type_size(types_convert(element));
    elements[0] = random_scalar(element, bytes); /* so that the vector is not undefined */
    for (unsigned i = 1; i < count; i++)
        elements[i] = random_element(element, bytes + i * size);
    return LLVMConstVector(elements, count);
}

static LLVMValueRef random_constant(struct cairn_value *value)
{
    unsigned char bytes[CAIRN_VALUE_BYTES_MAX];
    LLVMTypeRef type = random_scalar_type();
    unsigned room = CAIRN_VALUE_BYTES_MAX / (unsigned)cairn_type_size(types_convert(type));
    LLVMValueRef constant =
        below(3) == 0 ? random_vector(type, 1 + below(room), bytes) : random_scalar(type, bytes);
    struct cairn_type described = types_convert(LLVMTypeOf(constant));
    ck_assert_ok(value_of_bytes(described, bytes, cairn_type_size(described), value, NULL));
    return constant;
}

/* ---- Random states ---- */

enum { FRAMES_MAX = 6, SLOTS_MAX = 10, DEAD = -1, CONSTANT = -2 };

struct written_frame {
    uint64_t function;
    uint64_t position;
    uint32_t flags;
    uint32_t counts[2];
    int32_t sources[2][SLOTS_MAX]; /* index of a value; or DEAD, CONSTANT */
    struct cairn_value constants[2][SLOTS_MAX];
};

static struct written_state {
    uint32_t first; /* live value */
    uint32_t frame_count;
    struct written_frame frames[FRAMES_MAX];
} written_states[FUNCTIONS];

static struct generated_buffers buffers;
static struct generated_function functions[FUNCTIONS];
static uint64_t module_seed;
static uint32_t current;
static struct {
    unsigned values;
    unsigned constants;
    unsigned dead;
} seen;

static LLVMValueRef random_slot(LLVMValueRef *values, uint32_t count, int32_t *source,
                                struct cairn_value *constant)
{
    uint32_t chance = below(8);
    if (chance == 0) {
        *source = DEAD;
        return below(2) == 0 ? NULL : LLVMGetUndef(random_scalar_type());
    }
    if (chance < 4) {
        *source = CONSTANT;
        return random_constant(constant);
    }
    *source = (int32_t)below(count);
    return values[*source];
}

static uint64_t random_number(void)
{
    uint64_t words[4];
    random_bits(64, words);
    return words[0];
}

static void write_frame(struct written_frame *written, LLVMValueRef *values, uint32_t count,
                        LLVMValueRef slots[2][SLOTS_MAX], struct cairn_encoded_frame *frame)
{
    *written = (struct written_frame){.function = random_number(),
                                      .position = random_number(),
                                      .flags = below(2) == 0 ? 0 : below(UINT32_C(1) << 31) * 2,
                                      .counts = {below(SLOTS_MAX + 1), below(SLOTS_MAX + 1)}};
    for (uint32_t part = 0; part < 2; part++)
        for (uint32_t i = 0; i < written->counts[part]; i++)
            slots[part][i] = random_slot(values, count, &written->sources[part][i],
                                         &written->constants[part][i]);
    *frame = (struct cairn_encoded_frame){
        .function = written->function,
        .position = written->position,
        .flags = written->flags,
        .locals = slots[0],
        .local_count = written->counts[0],
        .stack = slots[1],
        .stack_count = written->counts[1],
    };
}

/* Returns the capacity that the frames need; 0 if they are refused. */
static uint32_t capacity_of(const struct cairn_encoded_frame *frames, uint32_t frame_count)
{
    uint32_t count = 0;
    enum cairn_status status =
        cairn_frame_state_encode(context, frames, frame_count, NULL, 0, &count, NULL);
    return status == CAIRN_OK ? count : 0;
}

/* A buffer of exactly the needed size is enough, and one that is smaller by 1 is refused. */
static uint32_t encode(const struct cairn_encoded_frame *frames, uint32_t frame_count,
                       LLVMValueRef *live_values)
{
    struct cairn_error error = {0};
    uint32_t capacity = capacity_of(frames, frame_count);
    uint32_t count = 0;
    uint32_t again = 0;
    ck_assert_uint_lt(capacity, GENERATED_REWRITTEN_MAX);
    enum cairn_status status = cairn_frame_state_encode(context, frames, frame_count, live_values,
                                                        capacity, &count, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    ck_assert_uint_le(count, capacity);
    ck_assert_int_eq(cairn_frame_state_encode(context, frames, frame_count, live_values, count - 1,
                                              &again, &error),
                     CAIRN_ERROR_RANGE);
    ck_assert_uint_eq(again, 0);
    ck_assert_ok(
        cairn_frame_state_encode(context, frames, frame_count, live_values, count, &again, &error));
    ck_assert_uint_eq(again, count);
    return count;
}

/* Rewrites the operands, with some of the host's own values before and after the state. */
static uint32_t rewrite(void *user, LLVMContextRef in, LLVMValueRef *values, uint32_t count,
                        LLVMValueRef *rewritten)
{
    static LLVMValueRef slots[FRAMES_MAX][2][SLOTS_MAX];
    struct cairn_encoded_frame frames[FRAMES_MAX];
    struct written_state *written = user;
    ck_assert_ptr_eq(in, context);
    written->first = below(2) == 0 ? 0 : below(count + 1);
    written->frame_count = 1 + below(FRAMES_MAX);
    for (uint32_t i = 0; i < written->frame_count; i++)
        write_frame(&written->frames[i], values, count, slots[i], &frames[i]);
    memcpy(rewritten, values, written->first * sizeof *values);
    uint32_t total = written->first;
    total += encode(frames, written->frame_count, rewritten + total);
    if (below(2) == 0)
        rewritten[total++] = values[0];
    return total;
}

/* ---- Comparing ---- */

static void fail_slot(uint32_t in, uint32_t part, uint32_t index, const char *what)
{
    ck_abort_msg("%s %u of frame %u of %s %s; CAIRN_TEST_SEED=%" PRIu64,
                 part == 0 ? "local" : "stack entry", index, in, functions[current].name, what,
                 module_seed);
}

static void check_slot(const struct cairn_value *value, uint32_t in, uint32_t part, uint32_t index)
{
    const struct written_frame *written = &written_states[current].frames[in];
    const struct generated_function *function = &functions[current];
    int32_t source = written->sources[part][index];
    if (source == DEAD) {
        seen.dead++;
        if (value->type.kind != CAIRN_TYPE_VOID)
            fail_slot(in, part, index, "is not dead");
        return;
    }
    uint32_t number = function->argument_count + (uint32_t)source;
    bool is_constant = source == CONSTANT;
    const struct cairn_value *constant = &written->constants[part][index];
    struct cairn_type type = is_constant ? constant->type : function->values[number].type;
    const unsigned char *bytes = is_constant ? constant->bytes : buffers.stored[number];
    seen.constants += is_constant;
    seen.values += !is_constant;
    if (!type_equal(value->type, type))
        fail_slot(in, part, index, "is of another type");
    if (memcmp(value->bytes, bytes, value->size) != 0)
        fail_slot(in, part, index, is_constant ? "is another constant" : "is another value");
}

static void check_frame(const struct cairn_frame_state *state, uint32_t in)
{
    const struct written_frame *written = &written_states[current].frames[in];
    struct cairn_interpreter_frame found;
    struct cairn_error error = {0};
    ck_assert_ok(cairn_frame_state_frame(state, in, &found, NULL));
    ck_assert_uint_eq(found.function, written->function);
    ck_assert_uint_eq(found.position, written->position);
    ck_assert_uint_eq(found.flags, written->flags);
    ck_assert_uint_eq(found.local_count, written->counts[0]);
    ck_assert_uint_eq(found.stack_count, written->counts[1]);
    for (uint32_t part = 0; part < 2; part++)
        for (uint32_t i = 0; i < written->counts[part]; i++) {
            struct cairn_value value;
            enum cairn_status status = cairn_frame_state_value(
                state, &found, part * found.local_count + i, &value, &error);
            if (status != CAIRN_OK)
                fail_slot(in, part, i, error.message);
            check_slot(&value, in, part, i);
        }
}

static void check_state(struct cairn_exit_call *call)
{
    const struct written_state *written = &written_states[current];
    struct cairn_frame_state state;
    struct cairn_error error = {0};
    enum cairn_status status =
        cairn_frame_state_read(&call->frame, call->record, written->first, &state, &error);
    ck_assert_msg(status == CAIRN_OK, "%s: %s; CAIRN_TEST_SEED=%" PRIu64, functions[current].name,
                  error.message, module_seed);
    ck_assert_uint_eq(state.frame_count, written->frame_count);
    for (uint32_t i = 0; i < state.frame_count; i++)
        check_frame(&state, i);
}

/* ---- Running them ---- */

static void fill_buffers(void)
{
    unsigned char *bytes = (unsigned char *)&buffers;
    for (size_t i = 0; i < sizeof buffers; i++)
        bytes[i] = (unsigned char)below(256);
}

/* False if LLVM has put instructions of the function into a stack map's shadow, so that the site
 * cannot be patched. */
static bool patch_generated(const struct generated_function *function)
{
    struct cairn_error error = {0};
    cairn_site *site = cairn_runtime_find_site(runtime, function->id, &error);
    ck_assert_msg(site != NULL, "%s", error.message);
    struct cairn_site_description description;
    cairn_site_describe(site, &description);
    bool is_x86_64 = cairn_architecture_host() == CAIRN_ARCHITECTURE_X86_64;
    enum cairn_status status =
        cairn_site_call(site, cairn_exit_target(the_exit),
                        description.live || is_x86_64 ? CAIRN_RELAXED : CAIRN_QUIESCENT, &error);
    ck_assert_msg(status == CAIRN_OK || function->is_stackmap, "%s", error.message);
    return status == CAIRN_OK;
}

typedef void generated_caller(void);

static void run_functions(cairn_engine *engine)
{
    for (current = 0; current < FUNCTIONS; current++) {
        void *caller = find(engine, functions[current].caller);
        if (!patch_generated(&functions[current]))
            continue;
        for (unsigned i = 0; i < RUNS; i++) {
            unsigned before = calls;
            fill_buffers();
            ((generated_caller *)(uintptr_t)caller)();
            ck_assert_uint_eq(calls, before + 1);
        }
    }
}

static void run_module(uint64_t seed)
{
    unsigned optimisation_level = (unsigned)(seed % 4);
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("random", context);
    module_seed = seed;
    random_state = seed * 0x9e3779b97f4a7c15u;
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        const struct generated_rewriting rewriting = {rewrite, &written_states[i]};
        generate_function_rewriting(module, optimisation_level, &buffers, (uint64_t)10 * i,
                                    &random_state, &rewriting, &functions[i]);
    }
    if (getenv("CAIRN_TEST_DUMP") != NULL)
        LLVMDumpModule(module);
    cairn_engine *engine = load(module, optimisation_level);
    run_functions(engine);
    cairn_engine_destroy(engine);
}

START_TEST(random_frames_are_read_as_they_were_encoded)
{
    uint64_t seed = support_seed_or(20261122);
    uint64_t rounds = support_read_number("CAIRN_TEST_ROUNDS", ROUNDS);
    handler = check_state;
    for (uint64_t i = 0; i < rounds; i++)
        run_module(seed + i);
    printf("check_llvm_frame_state: %u states with %u values, %u constants, %u dead slots\n", calls,
           seen.values, seen.constants, seen.dead);
    ck_assert_uint_gt(seen.values, 0);
    ck_assert_uint_gt(seen.constants, 0);
    ck_assert_uint_gt(seen.dead, 0);
}
END_TEST

/* ---- Functions written by hand ---- */

struct ir {
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMValueRef function;
};

/* int64_t name(int64_t, double) */
static void begin_function(struct ir *ir, const char *name)
{
    LLVMTypeRef parameters[] = {integer(64), LLVMDoubleTypeInContext(context)};
    ir->function =
        LLVMAddFunction(ir->module, name, LLVMFunctionType(integer(64), parameters, 2, 0));
    cairn_prepare_function(ir->function);
    LLVMPositionBuilderAtEnd(ir->builder, LLVMAppendBasicBlockInContext(context, ir->function, ""));
}

static struct ir begin(const char *name)
{
    struct ir ir = {.module = LLVMModuleCreateWithNameInContext("test", context),
                    .builder = LLVMCreateBuilderInContext(context)};
    begin_function(&ir, name);
    return ir;
}

/* Builds a patch point with these live values. The function returns its first parameter. */
static void end_function(struct ir *ir, uint64_t id, LLVMValueRef *live_values, uint32_t count)
{
    struct cairn_error error = {0};
    const struct cairn_patchpoint patchpoint = {
        .id = id,
        .byte_count = cairn_patchpoint_minimum_bytes(ir->module, false),
        .live_values = live_values,
        .live_value_count = count,
    };
    LLVMValueRef call = cairn_build_patchpoint(ir->builder, &patchpoint, &error);
    ck_assert_msg(call != NULL, "%s", error.message);
    LLVMBuildRet(ir->builder, LLVMGetParam(ir->function, 0));
}

static cairn_engine *end(struct ir *ir, unsigned optimisation_level)
{
    LLVMDisposeBuilder(ir->builder);
    return load(ir->module, optimisation_level);
}

static int64_t call(cairn_engine *engine, const char *name, int64_t first, double second)
{
    return ((int64_t(*)(int64_t, double))(uintptr_t)find(engine, name))(first, second);
}

static struct cairn_record record_of(uint64_t id)
{
    struct cairn_record record;
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, id, &record, 1), 1);
    return record;
}

static uint32_t count_constants(struct cairn_record record)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < cairn_record_location_count(record); i++) {
        enum cairn_location_kind kind = cairn_record_location(record, i).kind;
        count += kind == CAIRN_LOCATION_CONSTANT || kind == CAIRN_LOCATION_CONSTANT_INDEX;
    }
    return count;
}

/* Returns the state of a frame that must have one. */
static struct cairn_frame_state state_of(const struct cairn_frame *frame,
                                         struct cairn_record record)
{
    struct cairn_frame_state state;
    struct cairn_error error = {0};
    enum cairn_status status = cairn_frame_state_read(frame, record, 0, &state, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return state;
}

static struct cairn_value local_of(const struct cairn_frame_state *state, uint32_t in,
                                   uint32_t index)
{
    struct cairn_interpreter_frame found;
    struct cairn_value value;
    struct cairn_error error = {0};
    ck_assert_ok(cairn_frame_state_frame(state, in, &found, NULL));
    enum cairn_status status = cairn_frame_state_value(state, &found, index, &value, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return value;
}

/* ---- Size of the records ---- */

enum { CONSTANTS = 60, LIVE_MAX = 1024 };

static struct cairn_value constants[CONSTANTS];

static void check_constants(struct cairn_exit_call *call)
{
    struct cairn_frame_state state = state_of(&call->frame, call->record);
    struct cairn_value value = local_of(&state, 0, 0);
    ck_assert_int_eq(cairn_value_signed(&value), -9);
    value = local_of(&state, 0, 1);
    ck_assert_double_eq(cairn_value_double(&value), 2.5);
    for (uint32_t i = 0; i < CONSTANTS; i++) {
        value = local_of(&state, 0, 2 + i);
        ck_assert(type_equal(value.type, constants[i].type));
        ck_assert_mem_eq(value.bytes, constants[i].bytes, value.size);
    }
}

/* The code before the record is the same as without the state. On PPC64, the two instructions by
 * which each function computes the TOC pointer from its own address may differ. */
static void check_code(struct cairn_record plain, struct cairn_record with_constants)
{
    bool has_toc = cairn_architecture_host() == CAIRN_ARCHITECTURE_PPC64_ELFV2;
    uint64_t skipped = has_toc ? 8 : 0;
    struct cairn_function before = record_function(plain);
    struct cairn_function after = record_function(with_constants);
    uint64_t size = cairn_record_address(plain) - before.address;
    ck_assert_uint_eq(before.stack_size, after.stack_size);
    ck_assert_uint_eq(cairn_record_address(with_constants) - after.address, size);
    ck_assert_mem_eq((void *)(uintptr_t)(before.address + skipped),
                     (void *)(uintptr_t)(after.address + skipped), size - skipped);
}

/* At -O0, LLVM uses a register for each live value and crashes if there are too few. */
START_TEST(constants_cost_neither_registers_nor_instructions)
{
    struct ir ir = begin("plain");
    LLVMValueRef plain[] = {LLVMGetParam(ir.function, 0), LLVMGetParam(ir.function, 1)};
    end_function(&ir, 1, plain, 2);
    begin_function(&ir, "f");
    LLVMValueRef locals[2 + CONSTANTS] = {LLVMGetParam(ir.function, 0),
                                          LLVMGetParam(ir.function, 1)};
    random_state = 1;
    for (uint32_t i = 0; i < CONSTANTS; i++)
        locals[2 + i] = random_constant(&constants[i]);
    struct cairn_encoded_frame frame = {.locals = locals, .local_count = 2 + CONSTANTS};
    LLVMValueRef live_values[LIVE_MAX];
    uint32_t count = encode(&frame, 1, live_values);
    end_function(&ir, 2, live_values, count);
    cairn_engine *engine = end(&ir, (unsigned)_i);

    handler = check_constants;
    find(engine, "f");
    check_code(record_of(1), record_of(2));
    ck_assert_uint_eq(cairn_record_location_count(record_of(2)), count);
    ck_assert_uint_eq(count_constants(record_of(2)), count - 2);
    patch(2, cairn_exit_target(the_exit));
    ck_assert_int_eq(call(engine, "f", -9, 2.5), -9);
    ck_assert_uint_eq(calls, 1);
    cairn_engine_destroy(engine);
}
END_TEST

/* There are two words for the state, three for each frame, one for each slot, and the values. */
START_TEST(values_in_several_places_are_recorded_once)
{
    struct ir ir = begin("f");
    const uint64_t large[] = {1, 2};
    LLVMValueRef slots[] = {
        LLVMGetParam(ir.function, 0),
        LLVMConstReal(LLVMDoubleTypeInContext(context), 1.25),
        LLVMConstIntOfArbitraryPrecision(integer(128), 2, large),
        LLVMGetParam(ir.function, 0),
        LLVMGetParam(ir.function, 1),
        LLVMConstInt(integer(64), UINT64_C(0x3FF4000000000000), 0), /* bits of the double */
    };
    struct cairn_encoded_frame frames[] = {
        {.locals = slots, .local_count = 6, .stack = slots, .stack_count = 6},
        {.locals = slots + 3, .local_count = 3, .stack = slots, .stack_count = 1},
    };
    LLVMValueRef live_values[LIVE_MAX];
    uint32_t count = encode(frames, 2, live_values);
    ck_assert_uint_eq(count, 2 + 2 * 3 + 16 + 5);
    end_function(&ir, 1, live_values, count);
    cairn_engine *engine = end(&ir, 2);
    find(engine, "f");
    ck_assert_uint_eq(cairn_record_location_count(record_of(1)), count);
    ck_assert_uint_eq(count_constants(record_of(1)), count - 2);
    cairn_engine_destroy(engine);
}
END_TEST

START_TEST(what_is_dead_costs_a_word)
{
    LLVMValueRef slots[] = {NULL, LLVMGetUndef(integer(32)), LLVMGetPoison(integer(64))};
    struct cairn_encoded_frame frame = {.locals = slots, .local_count = 3};
    LLVMValueRef live_values[8];
    ck_assert_uint_eq(capacity_of(&frame, 1), 8);
    ck_assert_uint_eq(encode(&frame, 1, live_values), 8);
    for (uint32_t i = 5; i < 8; i++)
        ck_assert(LLVMIsNull(live_values[i]));
}
END_TEST

/* In a table, each location of a record takes 4 bytes if the constants have up to 26 bits or more
 * than 32. */
START_TEST(numbers_of_any_size_leave_the_table_small)
{
    struct ir ir = begin("f");
    LLVMValueRef locals[25];
    for (uint32_t i = 0; i < 25; i++)
        locals[i] = LLVMConstInt(integer(64), UINT64_C(1) << i, 0);
    struct cairn_encoded_frame frame = {.locals = locals, .local_count = 25};
    LLVMValueRef live_values[LIVE_MAX];
    uint32_t count = encode(&frame, 1, live_values);
    end_function(&ir, 1, live_values, count);
    cairn_engine *engine = end(&ir, 2);
    find(engine, "f");
    const cairn_table *table = record_of(1).table;
    size_t value_bytes;
    table_size_bytes(table, &value_bytes);
    ck_assert_uint_lt(value_bytes, 8 * count);
    for (uint32_t i = 0; i < count; i++) {
        struct cairn_location location = cairn_record_location(record_of(1), i);
        if (location.kind == CAIRN_LOCATION_CONSTANT)
            ck_assert_int_lt(labs((long)location.offset), 1 << 25);
    }
    cairn_engine_destroy(engine);
}
END_TEST

/* ---- Addresses ---- */

static const void *global_address;

static void check_addresses(struct cairn_exit_call *call)
{
    struct cairn_frame_state state = state_of(&call->frame, call->record);
    for (uint32_t i = 0; i < 4; i++) {
        const void *const expected[] = {NULL, &calls, (void *)(uintptr_t)0x1234, global_address};
        struct cairn_value value = local_of(&state, 0, i);
        ck_assert_int_eq(value.type.kind, CAIRN_TYPE_POINTER);
        ck_assert_ptr_eq(cairn_value_pointer(&value), expected[i]);
    }
}

START_TEST(addresses_are_constants_where_they_are_numbers)
{
    struct ir ir = begin("f");
    LLVMTypeRef pointer = version_byte_pointer_type(context);
    LLVMValueRef global = LLVMAddGlobal(ir.module, integer(8), "global");
    LLVMSetInitializer(global, LLVMConstNull(integer(8)));
    LLVMValueRef locals[] = {
        LLVMConstNull(pointer),
        LLVMConstIntToPtr(LLVMConstInt(integer(64), (uintptr_t)&calls, 0), pointer),
        LLVMConstIntToPtr(LLVMConstInt(integer(16), 0x1234, 0), pointer),
        global,
    };
    struct cairn_encoded_frame frame = {.locals = locals, .local_count = 4};
    LLVMValueRef live_values[LIVE_MAX];
    uint32_t count = encode(&frame, 1, live_values);
    end_function(&ir, 1, live_values, count);
    cairn_engine *engine = end(&ir, 2);
    handler = check_addresses;
    find(engine, "f");
    global_address = find(engine, "global");
    ck_assert_uint_eq(count_constants(record_of(1)), count - 1);
    patch(1, cairn_exit_target(the_exit));
    call(engine, "f", 0, 0);
    ck_assert_uint_eq(calls, 1);
    cairn_engine_destroy(engine);
}
END_TEST

/* ---- Frames that wait for a call ---- */

enum { FUNCTION = 1000, POSITION = 77 };

static void check_waiting(struct cairn_exit_call *call)
{
    struct cairn_frame frame = call->frame;
    struct cairn_record record;
    struct cairn_interpreter_frame found;
    ck_assert_uint_eq(cairn_record_id(call->record), 2);
    ck_assert_ok(cairn_frame_caller(&frame, NULL));
    ck_assert(cairn_frame_record(&frame, &record));
    ck_assert_uint_eq(cairn_record_id(record), 1);
    struct cairn_frame_state state = state_of(&frame, record);
    ck_assert_ok(cairn_frame_state_frame(&state, 0, &found, NULL));
    ck_assert_uint_eq(found.function, FUNCTION);
    ck_assert_uint_eq(found.position, POSITION);
    struct cairn_value value = local_of(&state, 0, 0);
    ck_assert_int_eq(*(int64_t *)cairn_value_pointer(&value), -5);
    value = local_of(&state, 0, 1);
    ck_assert_double_eq(cairn_value_double(&value), 0.5);
}

START_TEST(the_state_of_a_frame_that_waits_in_a_patch_point_is_read)
{
    struct ir ir = begin("f");
    LLVMValueRef place = LLVMBuildAlloca(ir.builder, integer(64), "");
    LLVMBuildStore(ir.builder, LLVMGetParam(ir.function, 0), place);
    LLVMValueRef locals[] = {place, LLVMConstReal(LLVMDoubleTypeInContext(context), 0.5)};
    struct cairn_encoded_frame frame = {
        .function = FUNCTION, .position = POSITION, .locals = locals, .local_count = 2};
    LLVMValueRef live_values[LIVE_MAX];
    uint32_t count = encode(&frame, 1, live_values);
    end_function(&ir, 1, live_values, count);
    begin_function(&ir, "g");
    end_function(&ir, 2, NULL, 0);
    cairn_engine *engine = end(&ir, 2);
    handler = check_waiting;
    find(engine, "f");
    patch(1, find(engine, "g"));
    patch(2, cairn_exit_target(the_exit));
    call(engine, "f", -5, 0);
    ck_assert_uint_eq(calls, 1);
    cairn_engine_destroy(engine);
}
END_TEST

/* ---- Statepoints ---- */

enum { DEPTH = 5 };

/* Each frame of `f` waits for the next one; the last one has an `n` of 0. */
static void check_statepoints(struct cairn_exit_call *call)
{
    struct cairn_frame frame = call->frame;
    for (int64_t n = 0; n <= DEPTH; n++) {
        struct cairn_record record;
        ck_assert(cairn_frame_record(&frame, &record));
        struct cairn_frame_state state = state_of(&frame, record);
        struct cairn_interpreter_frame found;
        ck_assert_uint_eq(state.frame_count, 2);
        ck_assert_ok(cairn_frame_state_frame(&state, 1, &found, NULL));
        ck_assert_uint_eq(found.position, n == 0 ? 2 : 1);
        struct cairn_value value = local_of(&state, 0, 0);
        ck_assert_int_eq(cairn_value_signed(&value), n);
        value = local_of(&state, 1, 0);
        ck_assert_double_eq(cairn_value_double(&value), (double)(DEPTH - n) + 0.5);
        value = local_of(&state, 1, 1);
        ck_assert_double_eq(cairn_value_double(&value), 0.125);
        ck_assert_ok(cairn_frame_caller(&frame, NULL));
    }
    ck_assert_ptr_null(frame.module);
}

/* Prints the operands of a "deopt" bundle as IR. */
static char *print_state(LLVMValueRef function, uint64_t position)
{
    LLVMValueRef outer[] = {LLVMGetParam(function, 0)};
    LLVMValueRef inner[] = {LLVMGetParam(function, 1),
                            LLVMConstReal(LLVMDoubleTypeInContext(context), 0.125)};
    struct cairn_encoded_frame frames[] = {
        {.function = FUNCTION, .locals = outer, .local_count = 1},
        {.function = FUNCTION + 1, .position = position, .locals = inner, .local_count = 2},
    };
    LLVMValueRef live_values[LIVE_MAX];
    uint32_t count = encode(frames, 2, live_values);
    char *text = calloc(count, 64);
    for (uint32_t i = 0; i < count; i++) {
        char *operand = LLVMPrintValueToString(live_values[i]);
        ck_assert_uint_lt(strlen(operand), 60);
        sprintf(text + strlen(text), "%s%s", i == 0 ? "" : ", ", operand);
        LLVMDisposeMessage(operand);
    }
    return text;
}

static const char statepoint_text[] =
    "declare void @poll()\n"
    "define i64 @f(i64 %n, double %x) uwtable gc \"statepoint-example\" {\n"
    "  %again = icmp sgt i64 %n, 0\n"
    "  br i1 %again, label %more, label %last\n"
    "more:\n"
    "  %less = sub i64 %n, 1\n"
    "  %y = fadd double %x, 1.0\n"
    "  %r = call i64 @f(i64 %less, double %y) [ \"deopt\"($) ]\n"
    "  %s = add i64 %r, %n\n"
    "  ret i64 %s\n"
    "last:\n"
    "  call void @poll() [ \"deopt\"($) ]\n"
    "  ret i64 0\n"
    "}\n";

/* Prints the form, with the states in place of its dollar signs. */
static void write_text(char *text, const char *form, char *const *states)
{
    for (; *form != '\0'; form++) {
        if (*form == '$')
            text = stpcpy(text, *states++);
        else
            *text++ = *form;
    }
    *text = '\0';
}

/* Builds a module of `form`, which has placeholders for two states, with positions 1 and 2. */
static LLVMModuleRef make_statepoints(const char *form, const char *passes)
{
    LLVMModuleRef named = support_parse(context, "define i64 @f(i64 %n, double %x) { ret i64 0 }");
    LLVMValueRef function = LLVMGetNamedFunction(named, "f");
    char *states[] = {print_state(function, 1), print_state(function, 2)};
    char *text = malloc(strlen(form) + strlen(states[0]) + strlen(states[1]) + 1);
    write_text(text, form, states);
    LLVMModuleRef module = support_parse_valid(context, text);
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    ck_assert_ptr_null(LLVMRunPasses(module, passes, NULL, options));
    LLVMDisposePassBuilderOptions(options);
    uint64_t id = 1;
    ck_assert_ok(cairn_number_statepoints(module, &id, NULL));
    free(text);
    free(states[0]);
    free(states[1]);
    LLVMDisposeModule(named);
    return module;
}

static bool has_statepoints(void)
{
    enum cairn_architecture host = cairn_architecture_host();
    if (host == CAIRN_ARCHITECTURE_X86_64 || host == CAIRN_ARCHITECTURE_AARCH64)
        return true;
    printf("skipped: LLVM has no statepoints for this machine\n");
    return false;
}

static void run_statepoints(LLVMModuleRef module, void (*what)(struct cairn_exit_call *call),
                            int64_t argument, int64_t result)
{
    cairn_engine *engine = load(module, 2);
    handler = what;
    ck_assert_int_eq(call(engine, "f", argument, 0.5), result);
    ck_assert_uint_eq(calls, 1);
    cairn_engine_destroy(engine);
}

START_TEST(states_are_read_from_the_deopt_values_of_statepoints)
{
    if (!has_statepoints())
        return;
    LLVMModuleRef module = make_statepoints(statepoint_text, "rewrite-statepoints-for-gc");
    run_statepoints(module, check_statepoints, DEPTH, DEPTH * (DEPTH + 1) / 2);
}
END_TEST

/* LLVM inlines `inner` into `f` and merges the two bundles. */
static const char inlined_text[] =
    "declare void @poll()\n"
    "define internal void @inner(i64 %n, double %x) alwaysinline {\n"
    "  call void @poll() [ \"deopt\"($) ]\n"
    "  ret void\n"
    "}\n"
    "define i64 @f(i64 %n, double %x) uwtable gc \"statepoint-example\" {\n"
    "  %more = add i64 %n, 1\n"
    "  call void @inner(i64 %more, double %x) [ \"deopt\"($) ]\n"
    "  ret i64 %n\n"
    "}\n";

static void check_inlined(struct cairn_exit_call *call)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < 2; i++) {
        struct cairn_frame_state state;
        struct cairn_interpreter_frame found;
        ck_assert_uint_lt(next, cairn_record_live_value_count(call->record));
        ck_assert_ok(cairn_frame_state_read(&call->frame, call->record, next, &state, NULL));
        ck_assert_ok(cairn_frame_state_frame(&state, 1, &found, NULL));
        ck_assert_uint_eq(found.position, i == 0 ? 2 : 1); /* the state of `f` comes first */
        struct cairn_value value = local_of(&state, 0, 0);
        ck_assert_int_eq(cairn_value_signed(&value), 40 + i);
        next = state.next_live_value;
    }
    ck_assert_uint_eq(next, cairn_record_live_value_count(call->record));
}

START_TEST(states_that_llvm_has_joined_by_inlining_are_read_one_by_one)
{
    if (!has_statepoints())
        return;
    LLVMModuleRef module =
        make_statepoints(inlined_text, "always-inline,rewrite-statepoints-for-gc");
    run_statepoints(module, check_inlined, 40, 40);
}
END_TEST

/* ---- Errors ---- */

static void expect_refused(const struct cairn_encoded_frame *frames, uint32_t frame_count,
                           enum cairn_status expected, const char *sentence)
{
    LLVMValueRef live_values[64];
    struct cairn_error error = {0};
    uint32_t count = 99;
    ck_assert_int_eq(
        cairn_frame_state_encode(context, frames, frame_count, live_values, 64, &count, &error),
        expected);
    ck_assert_msg(strstr(error.message, sentence) != NULL, "%s", error.message);
    ck_assert_uint_eq(count, 99);
}

START_TEST(values_that_a_slot_cannot_hold_are_refused)
{
    LLVMTypeRef two[] = {integer(64), integer(64)};
    LLVMTypeRef types[] = {
        LLVMStructTypeInContext(context, two, 2, 0),
        LLVMArrayType(integer(8), 4),
        integer(257),
        LLVMVectorType(integer(64), 9),
        LLVMPointerType(integer(8), 256),
    };
    static const char *const names[] = {"{ i64, i64 }", "[4 x i8]", "i257", "<9 x i64>",
                                        "addrspace(256)"};
    LLVMValueRef locals[] = {NULL, LLVMConstNull(types[_i])};
    struct cairn_encoded_frame frames[] = {{.function = 1}, {.stack = locals, .stack_count = 2}};
    expect_refused(frames, 2, CAIRN_ERROR_UNSUPPORTED, "stack entry 1 of frame 1 is of type ");
    expect_refused(frames, 2, CAIRN_ERROR_UNSUPPORTED, names[_i]);
}
END_TEST

START_TEST(frames_that_are_none_are_refused)
{
    const struct cairn_encoded_frame no_locals = {.local_count = 3};
    const struct cairn_encoded_frame no_stack = {.stack_count = 4};
    const struct cairn_encoded_frame fine = {.function = 1};
    LLVMValueRef live_values[8];
    uint32_t count = 0;
    expect_refused(&fine, 0, CAIRN_ERROR_ARGUMENT, "a frame state has at least one frame");
    expect_refused(NULL, 1, CAIRN_ERROR_ARGUMENT, "a frame state has at least one frame");
    expect_refused(&no_locals, 1, CAIRN_ERROR_ARGUMENT, "frame 0 has 3 locals, but no array");
    expect_refused(&no_stack, 1, CAIRN_ERROR_ARGUMENT, "frame 0 has 4 stack entries, but no array");
    ck_assert_int_eq(cairn_frame_state_encode(NULL, &fine, 1, live_values, 8, &count, NULL),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_frame_state_encode(context, &fine, 1, live_values, 8, NULL, NULL),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_uint_eq(capacity_of(NULL, 1), 0);
    ck_assert_uint_eq(capacity_of(&fine, 0), 0);
}
END_TEST

START_TEST(a_state_of_more_slots_than_a_record_has_locations_is_refused)
{
    static LLVMValueRef locals[0xFFFF];
    const struct cairn_encoded_frame frame = {.locals = locals, .local_count = 0xFFFF};
    ck_assert_uint_eq(capacity_of(&frame, 1), 0);
    expect_refused(&frame, 1, CAIRN_ERROR_RANGE, "more live values than a record can have: 65535");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("frame states of LLVM's records");
    TCase *costs = tcase_create("costs");
    tcase_add_checked_fixture(costs, set_up, tear_down);
    tcase_add_loop_test(costs, constants_cost_neither_registers_nor_instructions, 0, 4);
    tcase_add_test(costs, values_in_several_places_are_recorded_once);
    tcase_add_test(costs, what_is_dead_costs_a_word);
    tcase_add_test(costs, numbers_of_any_size_leave_the_table_small);
    suite_add_tcase(suite, costs);
    TCase *frames = tcase_create("frames");
    tcase_add_checked_fixture(frames, set_up, tear_down);
    tcase_add_test(frames, addresses_are_constants_where_they_are_numbers);
    tcase_add_test(frames, the_state_of_a_frame_that_waits_in_a_patch_point_is_read);
    tcase_add_test(frames, states_are_read_from_the_deopt_values_of_statepoints);
    tcase_add_test(frames, states_that_llvm_has_joined_by_inlining_are_read_one_by_one);
    suite_add_tcase(suite, frames);
    TCase *refused = tcase_create("refused");
    tcase_add_checked_fixture(refused, set_up, tear_down);
    tcase_add_loop_test(refused, values_that_a_slot_cannot_hold_are_refused, 0, 5);
    tcase_add_test(refused, frames_that_are_none_are_refused);
    tcase_add_test(refused, a_state_of_more_slots_than_a_record_has_locations_is_refused);
    suite_add_tcase(suite, refused);
    TCase *random = tcase_create("random");
    tcase_add_checked_fixture(random, set_up, tear_down);
    tcase_set_timeout(random, 0);
    tcase_add_test(random, random_frames_are_read_as_they_were_encoded);
    suite_add_tcase(suite, random);
    return support_main(suite);
}
