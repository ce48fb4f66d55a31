/*
 * Tests of names: constants whose values the host tells when an object is loaded.
 *
 * SPDX-License-Identifier: MIT
 */
#include "format/names.h"
#include "llvm_engine_support.h"

#include <cairn/load.h>
#include <llvm-c/Linker.h>
#include <llvm-c/TargetMachine.h>
#include <stdio.h>
#include <string.h>

/* ---- The host's names ---- */

/* A name is a kind and a number. */
struct key {
    char kind;
    uint8_t number;
};

static struct cairn_name name_of(const struct key *key)
{
    return (struct cairn_name){key, sizeof *key};
}

enum { VALUES = 16 };

/* What the host answers. */
static struct {
    uint64_t values[VALUES];
    size_t calls;
    size_t asked;
    size_t known; /* numbers below it have values */
} host;

static size_t find_names(void *user, const struct cairn_name *names, size_t count, uint64_t *values)
{
    ck_assert_ptr_eq(user, &host);
    host.calls++;
    host.asked += count;
    for (size_t i = 0; i < count; i++) {
        const struct key *key = names[i].bytes;
        ck_assert_uint_eq(names[i].size, sizeof *key);
        if (key->number >= host.known)
            return i;
        values[i] = host.values[key->number];
    }
    return count;
}

static const struct cairn_load_options answers = {.find_names = find_names, .user = &host};

static void reset_host(void)
{
    memset(&host, 0, sizeof host);
    host.known = VALUES;
}

/* ---- Building ---- */

struct ir {
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMTypeRef word;
    LLVMValueRef function;
};

static struct cairn_error error;

static struct ir begin(const char *name)
{
    struct ir ir = {
        .module = LLVMModuleCreateWithNameInContext(name, context),
        .builder = LLVMCreateBuilderInContext(context),
        .word = LLVMInt64TypeInContext(context),
    };
    char *triple = LLVMGetDefaultTargetTriple();
    LLVMSetTarget(ir.module, triple);
    LLVMDisposeMessage(triple);
    LLVMTypeRef type = LLVMFunctionType(ir.word, &ir.word, 1, 0);
    ir.function = LLVMAddFunction(ir.module, name, type);
    LLVMPositionBuilderAtEnd(ir.builder,
                             LLVMAppendBasicBlockInContext(context, ir.function, "entry"));
    return ir;
}

static LLVMValueRef build_name(const struct ir *ir, char kind, uint8_t number, LLVMTypeRef type)
{
    const struct key key = {kind, number};
    const struct cairn_name name = name_of(&key);
    LLVMValueRef value = cairn_build_name(ir->builder, &name, type, &error);
    ck_assert_msg(value != NULL, "%s", error.message);
    return value;
}

static LLVMModuleRef end(const struct ir *ir, LLVMValueRef result)
{
    LLVMBuildRet(ir->builder, result);
    LLVMDisposeBuilder(ir->builder);
    support_verify(ir->module);
    return ir->module;
}

/* A function that returns the value of name `number`. */
static LLVMModuleRef build_value(const char *name, uint8_t number)
{
    struct ir ir = begin(name);
    return end(&ir, build_name(&ir, 'v', number, ir.word));
}

/* ---- Compiling and loading ---- */

static LLVMTargetMachineRef create_machine(LLVMCodeGenOptLevel level, LLVMCodeModel model)
{
    LLVMTargetRef target;
    char *message = NULL;
    char *triple = LLVMGetDefaultTargetTriple();
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    ck_assert_int_eq(LLVMGetTargetFromTriple(triple, &target, &message), 0);
    LLVMTargetMachineRef machine =
        LLVMCreateTargetMachine(target, triple, "", "", level, LLVMRelocPIC, model);
    LLVMDisposeMessage(triple);
    return machine;
}

/* Compiles the module to an object with a manifest, and disposes of it. */
static LLVMMemoryBufferRef emit_at(LLVMModuleRef module, LLVMCodeGenOptLevel level,
                                   LLVMCodeModel model)
{
    LLVMMemoryBufferRef object;
    char *message = NULL;
    const struct cairn_embed_options options = {.machine = create_machine(level, model)};
    enum cairn_status status = cairn_embed_manifest(module, &options, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    ck_assert_int_eq(LLVMTargetMachineEmitToMemoryBuffer(options.machine, module, LLVMObjectFile,
                                                         &message, &object),
                     0);
    LLVMDisposeTargetMachine(options.machine);
    LLVMDisposeModule(module);
    return object;
}

static LLVMMemoryBufferRef emit(LLVMModuleRef module)
{
    return emit_at(module, LLVMCodeGenLevelDefault, LLVMCodeModelDefault);
}

static enum cairn_status load(LLVMMemoryBufferRef object, const struct cairn_load_options *options,
                              cairn_module **module)
{
    cairn_loader *loader;
    ck_assert_ok(cairn_loader_create(runtime, "object", &loader, NULL));
    enum cairn_status status = cairn_loader_add_object(loader, LLVMGetBufferStart(object),
                                                       LLVMGetBufferSize(object), options, &error);
    if (status == CAIRN_OK)
        status = cairn_loader_finish(loader, module, &error);
    if (status != CAIRN_OK)
        cairn_loader_destroy(loader);
    else
        ck_assert_ok(cairn_module_publish(*module, NULL));
    return status;
}

static cairn_module *load_valid(LLVMMemoryBufferRef object)
{
    cairn_module *module = NULL;
    enum cairn_status status = load(object, &answers, &module);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return module;
}

static int64_t call(const cairn_module *module, const char *name, int64_t argument)
{
    void *found = cairn_module_find_symbol(module, name);
    ck_assert_ptr_nonnull(found);
    return ((function *)(uintptr_t)found)(argument);
}

static void assert_reports(enum cairn_status status, enum cairn_status expected, const char *text)
{
    ck_assert_int_eq(status, expected);
    assert_says(&error, text);
}

/* ---- Names in code ---- */

START_TEST(an_object_is_loaded_with_other_values_each_time)
{
    reset_host();
    LLVMMemoryBufferRef object = emit(build_value("get", 3));
    for (int64_t i = 0; i < 3; i++) {
        host.values[3] = UINT64_C(0xFFF8000000000000) + (uint64_t)i;
        cairn_module *module = load_valid(object);
        ck_assert_int_eq(call(module, "get", 0), (int64_t)host.values[3]);
    }
    LLVMDisposeMemoryBuffer(object);
}
END_TEST

START_TEST(values_are_arbitrary_at_all_levels_and_in_all_code_models)
{
    static const LLVMCodeModel models[] = {LLVMCodeModelDefault, LLVMCodeModelLarge};
    static const uint64_t values[] = {0, 1, INT64_MAX, UINT64_MAX};
    for (unsigned i = 0; i < 8; i++) {
        reset_host();
        LLVMMemoryBufferRef object =
            emit_at(build_value("get", 1),
                    i % 2 == 0 ? LLVMCodeGenLevelNone : LLVMCodeGenLevelAggressive, models[i / 4]);
        for (unsigned k = 0; k < 4; k++) {
            host.values[1] = values[k];
            ck_assert_uint_eq((uint64_t)call(load_valid(object), "get", 0), values[k]);
        }
        LLVMDisposeMemoryBuffer(object);
    }
}
END_TEST

/* LLVM may not assume that a name is not null, or that two names differ. */
START_TEST(llvm_assumes_nothing_of_values)
{
    reset_host();
    struct ir ir = begin("compare");
    LLVMTypeRef pointer = LLVMPointerType(LLVMInt8TypeInContext(context), 0);
    LLVMValueRef one = build_name(&ir, 'v', 1, pointer);
    LLVMValueRef other = build_name(&ir, 'v', 2, pointer);
    LLVMValueRef same = LLVMBuildICmp(ir.builder, LLVMIntEQ, one, other, "");
    LLVMValueRef null = LLVMBuildICmp(ir.builder, LLVMIntEQ, one, LLVMConstNull(pointer), "");
    same = LLVMBuildZExt(ir.builder, same, ir.word, "");
    null = LLVMBuildZExt(ir.builder, null, ir.word, "");
    LLVMModuleRef module = end(&ir, LLVMBuildAdd(ir.builder, same, null, ""));
    const struct cairn_engine_options options = {
        .optimisation_level = 3, .passes = "default<O3>", .load = answers};
    cairn_engine *engine = NULL;
    enum cairn_status status = cairn_engine_create(runtime, module, &options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    ck_assert_ok(cairn_engine_compile(engine, &error));
    ck_assert_int_eq(get(engine, "compare")(0), 2);
    ck_assert_uint_eq(host.asked, 2);
    cairn_engine_destroy(engine);
}
END_TEST

START_TEST(equal_names_of_a_module_are_one_name)
{
    reset_host();
    host.values[5] = 20;
    struct ir ir = begin("twice");
    LLVMValueRef one = build_name(&ir, 'v', 5, ir.word);
    LLVMValueRef other = build_name(&ir, 'v', 5, ir.word);
    LLVMMemoryBufferRef object = emit(end(&ir, LLVMBuildAdd(ir.builder, one, other, "")));
    ck_assert_int_eq(call(load_valid(object), "twice", 0), 40);
    ck_assert_uint_eq(host.calls, 1);
    ck_assert_uint_eq(host.asked, 1);
    LLVMDisposeMemoryBuffer(object);
}
END_TEST

START_TEST(equal_names_of_linked_modules_are_one_name)
{
    reset_host();
    host.values[5] = 21;
    LLVMModuleRef module = build_value("one", 5);
    ck_assert_int_eq(LLVMLinkModules2(module, build_value("other", 5)), 0);
    LLVMMemoryBufferRef object = emit(module);
    cairn_module *loaded = load_valid(object);
    ck_assert_int_eq(call(loaded, "one", 0) + call(loaded, "other", 0), 42);
    ck_assert_uint_eq(host.asked, 1);
    LLVMDisposeMemoryBuffer(object);
}
END_TEST

START_TEST(objects_of_one_loader_have_their_own_names)
{
    reset_host();
    host.values[1] = 7;
    host.values[2] = 8;
    cairn_loader *loader;
    cairn_module *module;
    ck_assert_ok(cairn_loader_create(runtime, "two", &loader, NULL));
    for (uint8_t i = 1; i < 3; i++) {
        LLVMMemoryBufferRef object = emit(build_value(i == 1 ? "one" : "two", i));
        ck_assert_ok(cairn_loader_add_object(loader, LLVMGetBufferStart(object),
                                             LLVMGetBufferSize(object), &answers, &error));
        LLVMDisposeMemoryBuffer(object);
    }
    ck_assert_ok(cairn_loader_finish(loader, &module, &error));
    ck_assert_ok(cairn_module_publish(module, &error));
    ck_assert_int_eq(call(module, "one", 0), 7);
    ck_assert_int_eq(call(module, "two", 0), 8);
    ck_assert_uint_eq(host.calls, 2);
}
END_TEST

/* ---- Names in frame states ---- */

enum { GUARD = 9, POSITION = 77 };

/* What the handler of the exit has read. */
static struct {
    unsigned calls;
    enum cairn_status status;
    struct cairn_interpreter_frame frame;
    uint64_t raw[3];
    uint64_t locals[3];
} left;

static bool begin_frame(const struct cairn_interpreter_frame *frame, uint32_t number,
                        struct cairn_frame_slots *slots, void *user)
{
    (void)user;
    ck_assert_uint_eq(number, 0);
    left.frame = *frame;
    slots->locals = left.raw;
    return true;
}

static void leave(struct cairn_exit_call *exit, void *user)
{
    const struct cairn_frame_writer writer = {.begin = begin_frame};
    const struct cairn_value result = cairn_value_of_integer(64, -1);
    struct cairn_frame_state state;
    struct cairn_interpreter_frame frame;
    struct cairn_value value;
    (void)user;
    left.calls++;
    left.status = cairn_frame_state_read(&exit->frame, exit->record, 0, &state, &error);
    if (left.status == CAIRN_OK) {
        ck_assert_ok(cairn_frame_state_write(&state, &writer, &error));
        ck_assert_ok(cairn_frame_state_frame(&state, 0, &frame, &error));
        ck_assert_uint_eq(frame.function, left.frame.function);
        for (uint32_t i = 0; i < 3; i++) {
            ck_assert_ok(cairn_frame_state_value(&state, &frame, i, &value, &error));
            left.locals[i] = cairn_value_bits(&value);
        }
    }
    ck_assert_ok(cairn_exit_return(exit, &result, 1, &error));
}

/* Builds a guard that leaves if the parameter is 0, in a frame with names for its function and two
 * of its locals. */
static void build_guard(const struct ir *ir, const struct cairn_guard *options)
{
    LLVMValueRef parameter = LLVMGetParam(ir->function, 0);
    LLVMValueRef zero = LLVMConstNull(ir->word);
    LLVMTypeRef pointer = LLVMPointerType(LLVMInt8TypeInContext(context), 0);
    LLVMValueRef locals[] = {build_name(ir, 'v', 2, ir->word), parameter,
                             build_name(ir, 'v', 3, pointer)};
    const struct cairn_encoded_frame frame = {
        .function_name = build_name(ir, 'f', 1, ir->word),
        .position = POSITION,
        .locals = locals,
        .local_count = 3,
    };
    struct cairn_guard guard = *options;
    guard.id = GUARD;
    guard.frames = &frame;
    guard.frame_count = 1;
    LLVMValueRef condition = LLVMBuildICmp(ir->builder, LLVMIntNE, parameter, zero, "");
    LLVMValueRef site = cairn_build_guard(
        ir->builder, guard.assumption_count == 0 ? condition : NULL, &guard, &error);
    ck_assert_msg(site != NULL, "%s", error.message);
}

static LLVMModuleRef build_guarded(const struct cairn_guard *options)
{
    struct ir ir = begin("guarded");
    build_guard(&ir, options);
    return end(&ir, LLVMGetParam(ir.function, 0));
}

static void set_values(void)
{
    reset_host();
    memset(&left, 0, sizeof left);
    host.values[1] = 1111;
    host.values[2] = UINT64_C(0xFFFA000000000007);
    host.values[3] = 0;
}

static void assert_left(void)
{
    ck_assert_msg(left.status == CAIRN_OK, "%s", error.message);
    ck_assert_uint_eq(left.calls, 1);
    ck_assert_uint_eq(left.frame.function, host.values[1]);
    ck_assert_uint_eq(left.frame.position, POSITION);
    ck_assert_uint_eq(left.locals[0], host.values[2]);
    ck_assert_uint_eq(left.locals[1], 0);
    ck_assert_uint_eq(left.locals[2], host.values[3]);
    ck_assert_mem_eq(left.raw, left.locals, sizeof left.raw);
}

START_TEST(frame_states_have_names_for_functions_and_slots)
{
    cairn_exit *exit;
    set_values();
    ck_assert_ok(cairn_exit_create(runtime, leave, NULL, &exit, &error));
    const struct cairn_guard guard = {.exit = exit};
    for (unsigned level = 0; level <= 2; level += 2) {
        memset(&left, 0, sizeof left);
        const struct cairn_engine_options options = {.optimisation_level = level, .load = answers};
        cairn_engine *engine = NULL;
        enum cairn_status status =
            cairn_engine_create(runtime, build_guarded(&guard), &options, &engine, &error);
        ck_assert_msg(status == CAIRN_OK, "%s", error.message);
        ck_assert_ok(cairn_engine_compile(engine, &error));
        ck_assert_int_eq(get(engine, "guarded")(5), 5);
        ck_assert_int_eq(get(engine, "guarded")(0), -1);
        assert_left();
        cairn_engine_destroy(engine);
    }
    cairn_exit_destroy(exit);
}
END_TEST

START_TEST(all_functions_of_a_state_have_names_or_none)
{
    uint32_t count;
    struct ir ir = begin("f");
    LLVMValueRef name = build_name(&ir, 'f', 1, ir.word);
    struct cairn_encoded_frame frames[] = {{.function_name = name}, {.function = 1}};
    assert_reports(cairn_frame_state_encode(context, frames, 2, NULL, 0, &count, &error),
                   CAIRN_ERROR_ARGUMENT, "the function of frame 1 has no name");
    frames[1].function_name = LLVMGetParam(ir.function, 0);
    assert_reports(cairn_frame_state_encode(context, frames, 2, NULL, 0, &count, &error),
                   CAIRN_ERROR_ARGUMENT, "the function of frame 1 has no name");
    frames[0].function_name = NULL;
    assert_reports(cairn_frame_state_encode(context, frames, 2, NULL, 0, &count, &error),
                   CAIRN_ERROR_ARGUMENT, "frame 1");
    LLVMDisposeModule(end(&ir, name));
}
END_TEST

/* ---- Names in what sites are bound to ---- */

/* Compiles and publishes the module in an engine, or loads its object. Disposes of the module. */
static void *load_function(LLVMModuleRef module, bool is_stored, const char *name)
{
    if (is_stored) {
        LLVMMemoryBufferRef object = emit(module);
        void *found = cairn_module_find_symbol(load_valid(object), name);
        LLVMDisposeMemoryBuffer(object);
        return found;
    }
    static cairn_engine *engine; /* of this test */
    const struct cairn_engine_options options = {.optimisation_level = 2, .load = answers};
    enum cairn_status status = cairn_engine_create(runtime, module, &options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    status = cairn_engine_compile(engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return cairn_engine_function(engine, name, &error);
}

static int64_t call_at(void *found, int64_t argument)
{
    ck_assert_ptr_nonnull(found);
    return ((function *)(uintptr_t)found)(argument);
}

static const struct key exit_key = {'e', 4};
static const struct key cache_key = {'c', 5};
static const struct key assumption_key = {'a', 6};

START_TEST(a_guard_leaves_by_a_named_exit)
{
    cairn_exit *exit;
    const struct cairn_name name = name_of(&exit_key);
    const struct cairn_guard guard = {.exit_name = &name};
    set_values();
    ck_assert_ok(cairn_exit_create(runtime, leave, NULL, &exit, &error));
    host.values[4] = (uintptr_t)cairn_exit_target(exit);
    void *found = load_function(build_guarded(&guard), _i != 0, "guarded");
    ck_assert_int_eq(call_at(found, 5), 5);
    ck_assert_int_eq(call_at(found, 0), -1);
    assert_left();
    ck_assert_uint_eq(host.calls, 1);
    ck_assert_uint_eq(host.asked, 4);
    cairn_exit_destroy(exit);
}
END_TEST

START_TEST(a_guard_leaves_when_a_named_assumption_is_broken)
{
    cairn_exit *exit;
    cairn_assumption *assumption;
    const struct cairn_name name = name_of(&exit_key);
    const struct cairn_name assumptions = name_of(&assumption_key);
    const struct cairn_guard guard = {
        .exit_name = &name, .assumption_names = &assumptions, .assumption_count = 1};
    set_values();
    ck_assert_ok(cairn_exit_create(runtime, leave, NULL, &exit, &error));
    ck_assert_ok(cairn_assumption_create(runtime, &assumption, &error));
    host.values[4] = (uintptr_t)cairn_exit_target(exit);
    host.values[6] = (uintptr_t)assumption;
    void *found = load_function(build_guarded(&guard), _i != 0, "guarded");
    ck_assert_int_eq(call_at(found, 0), 0);
    ck_assert_uint_eq(left.calls, 0);
    ck_assert_ok(cairn_assumption_break(assumption, CAIRN_SYNC, &error));
    ck_assert_int_eq(call_at(found, 0), -1);
    assert_left();
    cairn_assumption_destroy(assumption);
    cairn_exit_destroy(exit);
}
END_TEST

static unsigned misses;

static void missed(struct cairn_ic_miss *miss, void *user)
{
    const struct cairn_value value = cairn_value_of_integer(64, 42);
    const struct cairn_ic_case found = {
        .guard = {.width = 8, .key = 7}, .action = CAIRN_IC_CONSTANT, .constant = 42};
    ck_assert_ptr_eq(user, &misses);
    misses++;
    ck_assert_ok(cairn_ic_return(miss, &value, NULL));
    ck_assert_ok(cairn_ic_add(miss->ic, &found, CAIRN_RELAXED, NULL));
}

/* A function that reads a property of the object at its argument. */
static LLVMModuleRef build_read(void)
{
    const struct cairn_name name = name_of(&cache_key);
    struct ir ir = begin("read");
    LLVMValueRef object = LLVMGetParam(ir.function, 0);
    const struct cairn_patchpoint site = {
        .id = 11,
        .byte_count = cairn_patchpoint_minimum_bytes(ir.module, false),
        .result_type = ir.word,
        .calling_convention = CAIRN_CALLING_CONVENTION_ANYREG,
        .arguments = &object,
        .argument_count = 1,
        .cache_name = &name,
    };
    LLVMValueRef result = cairn_build_patchpoint(ir.builder, &site, &error);
    ck_assert_msg(result != NULL, "%s", error.message);
    return end(&ir, result);
}

START_TEST(a_site_has_a_named_cache)
{
    static const int64_t object = 7;
    const struct cairn_ic_options options = {.handler = missed, .user = &misses};
    set_values();
    misses = 0;
    host.values[5] = (uintptr_t)&options;
    void *found = load_function(build_read(), _i != 0, "read");
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(call_at(found, (intptr_t)&object), 42);
    ck_assert_uint_eq(misses, 1);
}
END_TEST

START_TEST(a_value_of_zero_cannot_be_bound)
{
    cairn_module *module;
    set_values();
    LLVMMemoryBufferRef object = emit(build_read());
    assert_reports(load(object, &answers, &module), CAIRN_ERROR_ARGUMENT,
                   "site 11 of 'read' cannot have an inline cache: the value of its name is 0");
    LLVMDisposeMemoryBuffer(object);
}
END_TEST

START_TEST(one_id_has_one_binding)
{
    const struct cairn_name name = name_of(&exit_key);
    const struct cairn_name other = name_of(&cache_key);
    cairn_module *module;
    set_values();
    host.values[4] = 1;
    host.values[5] = 2;
    struct ir ir = begin("twice");
    build_guard(&ir, &(struct cairn_guard){.exit_name = &name});
    build_guard(&ir, &(struct cairn_guard){.exit_name = &other});
    LLVMMemoryBufferRef object = emit(end(&ir, LLVMGetParam(ir.function, 0)));
    assert_reports(load(object, &answers, &module), CAIRN_ERROR_CONFLICT,
                   "site 9 is bound by two different names");
    LLVMDisposeMemoryBuffer(object);
}
END_TEST

START_TEST(guards_name_both_their_exit_and_their_assumptions)
{
    const struct cairn_name name = name_of(&exit_key);
    cairn_exit *exit;
    struct ir ir = begin("f");
    const struct cairn_encoded_frame frame = {.function = 1};
    ck_assert_ok(cairn_exit_create(runtime, leave, NULL, &exit, &error));
    struct cairn_guard guard = {
        .exit_name = &name, .exit = exit, .frames = &frame, .frame_count = 1};
    ck_assert_ptr_null(cairn_build_guard(ir.builder, NULL, &guard, &error));
    assert_reports(error.status, CAIRN_ERROR_ARGUMENT, "has both an exit and the name of one");
    guard.exit_name = NULL;
    guard.assumption_names = &name;
    guard.assumption_count = 1;
    ck_assert_ptr_null(cairn_build_guard(ir.builder, NULL, &guard, &error));
    assert_reports(error.status, CAIRN_ERROR_ARGUMENT, "names for only one");
    LLVMDisposeModule(end(&ir, LLVMGetParam(ir.function, 0)));
    cairn_exit_destroy(exit);
}
END_TEST

/* ---- Objects of engines ---- */

static struct {
    unsigned count;
    char name[40];
    uint8_t bytes[1 << 16];
    size_t size;
} stored;

static void store(const char *name, const void *bytes, size_t size, void *user)
{
    ck_assert_ptr_eq(user, &stored);
    ck_assert_uint_le(size, sizeof stored.bytes);
    snprintf(stored.name, sizeof stored.name, "%s", name);
    memcpy(stored.bytes, bytes, size);
    stored.size = size;
    stored.count++;
}

/* Loads what an engine has stored. */
static cairn_module *load_stored(void)
{
    cairn_loader *loader;
    cairn_module *module;
    ck_assert_ok(cairn_loader_create(runtime, "stored", &loader, NULL));
    ck_assert_ok(cairn_loader_add_object(loader, stored.bytes, stored.size, &answers, &error));
    ck_assert_ok(cairn_loader_finish(loader, &module, &error));
    ck_assert_ok(cairn_module_publish(module, &error));
    return module;
}

START_TEST(an_engine_compiles_once_for_itself_and_for_a_store)
{
    cairn_exit *exit;
    cairn_engine *engine;
    const struct cairn_name name = name_of(&exit_key);
    const struct cairn_guard guard = {.exit_name = &name};
    const struct cairn_engine_options options = {
        .optimisation_level = 2, .load = answers, .object = store, .object_user = &stored};
    stored.count = 0;
    set_values();
    ck_assert_ok(cairn_exit_create(runtime, leave, NULL, &exit, &error));
    host.values[4] = (uintptr_t)cairn_exit_target(exit);
    ck_assert_ok(cairn_engine_create(runtime, build_guarded(&guard), &options, &engine, &error));
    ck_assert_ok(cairn_engine_compile(engine, &error));
    ck_assert_uint_eq(stored.count, 1);
    ck_assert_str_eq(stored.name, "guarded");
    ck_assert_int_eq(get(engine, "guarded")(0), -1);
    assert_left();
    cairn_engine_destroy(engine);
    memset(&left, 0, sizeof left);
    host.values[1] = 2222;
    ck_assert_int_eq(call(load_stored(), "guarded", 0), -1);
    assert_left();
    cairn_exit_destroy(exit);
}
END_TEST

START_TEST(an_engine_that_stores_refuses_bindings_to_addresses)
{
    const struct cairn_ic_options cache = {.handler = missed};
    const struct cairn_engine_options options = {.object = store, .object_user = &stored};
    cairn_engine *engine;
    struct ir ir = begin("f");
    const struct cairn_patchpoint site = {.id = 3, .byte_count = 32, .cache = &cache};
    stored.count = 0;
    ck_assert_ptr_nonnull(cairn_build_patchpoint(ir.builder, &site, &error));
    LLVMModuleRef module = end(&ir, LLVMGetParam(ir.function, 0));
    ck_assert_ok(cairn_engine_create(runtime, module, &options, &engine, &error));
    assert_reports(cairn_engine_compile(engine, &error), CAIRN_ERROR_UNSUPPORTED,
                   "site 3 of 'f' was built with an inline cache of this process");
    ck_assert_uint_eq(stored.count, 0);
    cairn_engine_destroy(engine);
}
END_TEST

static LLVMModuleRef build_job(LLVMContextRef own, void *user, struct cairn_error *reason)
{
    (void)user, (void)reason;
    LLVMContextRef tests = context;
    context = own; /* the test's thread waits */
    LLVMModuleRef module = build_value("get", 3);
    context = tests;
    return module;
}

START_TEST(queues_pass_on_the_objects_of_their_jobs)
{
    uint64_t ticket;
    cairn_queue *queue;
    const struct cairn_queue_options options = {
        .engine = {.load = answers, .object = store, .object_user = &stored}};
    const struct cairn_queue_job job = {
        .build = build_job, .function = "get", .keeps_result = true};
    struct cairn_queue_result result;
    stored.count = 0;
    set_values();
    ck_assert_ok(cairn_queue_create(runtime, &options, &queue, &error));
    ck_assert_ok(cairn_queue_add(queue, &job, &ticket, &error));
    cairn_queue_wait(queue, ticket);
    ck_assert(cairn_queue_take(queue, &result, &error));
    ck_assert_msg(error.status == CAIRN_OK, "%s", error.message);
    ck_assert_int_eq(call_at(result.address, 1), (int64_t)host.values[3]);
    ck_assert_uint_eq(stored.count, 1);
    host.values[3] = 99;
    ck_assert_int_eq(call(load_stored(), "get", 0), 99);
    cairn_queue_destroy(queue);
}
END_TEST

/* ---- Refused ---- */

static size_t code_in_use(void)
{
    struct cairn_runtime_statistics all = statistics();
    return all.code_bytes;
}

START_TEST(a_name_without_a_value_is_named_and_nothing_is_loaded)
{
    reset_host();
    host.known = 2;
    cairn_module *module = NULL;
    size_t before = code_in_use();
    LLVMMemoryBufferRef object = emit(build_value("get", 7));
    assert_reports(load(object, &answers, &module), CAIRN_ERROR_NOT_FOUND,
                   "the host has no value for the name 0x7607, number 0 of 1");
    assert_reports(load(object, NULL, &module), CAIRN_ERROR_NOT_FOUND, "0x7607");
    ck_assert_uint_eq(code_in_use(), before);
    LLVMDisposeMemoryBuffer(object);
}
END_TEST

START_TEST(printable_names_are_shown_as_text)
{
    reset_host();
    host.known = 2;
    cairn_module *module = NULL;
    LLVMMemoryBufferRef object = emit(build_value("get", '8'));
    assert_reports(load(object, &answers, &module), CAIRN_ERROR_NOT_FOUND, "the name 'v8',");
    LLVMDisposeMemoryBuffer(object);
}
END_TEST

START_TEST(invalid_names_and_types_are_refused)
{
    char bytes[CAIRN_NAME_BYTES_MAX + 1] = "";
    struct ir ir = begin("f");
    const struct cairn_name empty = {bytes, 0};
    const struct cairn_name large = {bytes, sizeof bytes};
    const struct cairn_name valid = {bytes, sizeof bytes - 1};
    ck_assert_ptr_null(cairn_build_name(ir.builder, &empty, ir.word, &error));
    assert_reports(error.status, CAIRN_ERROR_ARGUMENT, "1 to 255 bytes, and not 0");
    ck_assert_ptr_null(cairn_build_name(ir.builder, &large, ir.word, &error));
    assert_reports(error.status, CAIRN_ERROR_ARGUMENT, "and not 256");
    ck_assert_ptr_null(
        cairn_build_name(ir.builder, &valid, LLVMInt32TypeInContext(context), &error));
    assert_reports(error.status, CAIRN_ERROR_ARGUMENT, "not of type i32");
    ck_assert_ptr_null(cairn_build_name(ir.builder, NULL, ir.word, &error));
    assert_reports(error.status, CAIRN_ERROR_ARGUMENT, "`name` is NULL");
    LLVMSetTarget(ir.module, "x86_64-apple-macosx");
    ck_assert_ptr_null(cairn_build_name(ir.builder, &valid, ir.word, &error));
    assert_reports(error.status, CAIRN_ERROR_UNSUPPORTED, "are not ELF");
    LLVMDisposeBuilder(ir.builder);
    LLVMDisposeModule(ir.module);
}
END_TEST

START_TEST(memory_managers_refuse_names)
{
    cairn_memory_manager *manager;
    struct LLVMMCJITCompilerOptions options;
    LLVMExecutionEngineRef engine;
    char *message = NULL;
    LLVMModuleRef module = build_value("get", 1);
    ck_assert_ok(cairn_memory_manager_create(runtime, NULL, &manager, &error));
    LLVMLinkInMCJIT();
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    LLVMInitializeMCJITCompilerOptions(&options, sizeof options);
    options.MCJMM = cairn_memory_manager_llvm(manager);
    ck_assert_int_eq(
        LLVMCreateMCJITCompilerForModule(&engine, module, &options, sizeof options, &message), 0);
    cairn_memory_manager_set_engine(manager, engine);
    LLVMGetFunctionAddress(engine, "get");
    assert_reports(cairn_memory_manager_status(manager, &error), CAIRN_ERROR_UNSUPPORTED,
                   "the module has names");
    LLVMDisposeExecutionEngine(engine);
}
END_TEST

/* ---- Hostile objects ---- */

/* Returns the section's only entry in a copy of the object. */
static uint8_t *find_entry(uint8_t *bytes, size_t size, const struct key *key)
{
    for (size_t i = NAME_HEADER_BYTES; i + sizeof *key <= size; i++)
        if (memcmp(bytes + i, key, sizeof *key) == 0 && bytes[i - 8] + bytes[i - 1] == 2)
            return bytes + i - NAME_HEADER_BYTES;
    ck_abort_msg("no entry");
}

START_TEST(entries_of_a_wrong_size_are_refused)
{
    static const uint64_t sizes[] = {0, 9, 256, UINT64_MAX, UINT64_MAX - 6};
    static uint8_t copy[1 << 16];
    const struct key key = {'v', 0x93};
    reset_host();
    LLVMMemoryBufferRef object = emit(build_value("get", key.number));
    size_t size = LLVMGetBufferSize(object);
    ck_assert_uint_le(size, sizeof copy);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        cairn_loader *loader;
        cairn_module *module;
        memcpy(copy, LLVMGetBufferStart(object), size);
        memcpy(find_entry(copy, size, &key) + NAME_VALUE_BYTES, &sizes[i], sizeof sizes[i]);
        ck_assert_ok(cairn_loader_create(runtime, "f", &loader, NULL));
        ck_assert_ok(cairn_loader_add_object(loader, copy, size, &answers, &error));
        assert_reports(cairn_loader_finish(loader, &module, &error), CAIRN_ERROR_CORRUPT,
                       "(.cairn.names), offset 0: a name has 1 to 255 bytes");
        cairn_loader_destroy(loader);
    }
    ck_assert_uint_eq(host.calls, 0);
    LLVMDisposeMemoryBuffer(object);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, an_object_is_loaded_with_other_values_each_time);
    tcase_add_test(tests, values_are_arbitrary_at_all_levels_and_in_all_code_models);
    tcase_add_test(tests, llvm_assumes_nothing_of_values);
    tcase_add_test(tests, equal_names_of_a_module_are_one_name);
    tcase_add_test(tests, equal_names_of_linked_modules_are_one_name);
    tcase_add_test(tests, objects_of_one_loader_have_their_own_names);
    tcase_add_test(tests, frame_states_have_names_for_functions_and_slots);
    tcase_add_test(tests, all_functions_of_a_state_have_names_or_none);
    tcase_add_loop_test(tests, a_guard_leaves_by_a_named_exit, 0, 2);
    tcase_add_loop_test(tests, a_guard_leaves_when_a_named_assumption_is_broken, 0, 2);
    tcase_add_loop_test(tests, a_site_has_a_named_cache, 0, 2);
    tcase_add_test(tests, a_value_of_zero_cannot_be_bound);
    tcase_add_test(tests, one_id_has_one_binding);
    tcase_add_test(tests, guards_name_both_their_exit_and_their_assumptions);
    tcase_add_test(tests, an_engine_compiles_once_for_itself_and_for_a_store);
    tcase_add_test(tests, an_engine_that_stores_refuses_bindings_to_addresses);
    tcase_add_test(tests, queues_pass_on_the_objects_of_their_jobs);
    tcase_add_test(tests, a_name_without_a_value_is_named_and_nothing_is_loaded);
    tcase_add_test(tests, printable_names_are_shown_as_text);
    tcase_add_test(tests, invalid_names_and_types_are_refused);
    tcase_add_test(tests, memory_managers_refuse_names);
    tcase_add_test(tests, entries_of_a_wrong_size_are_refused);
}

int main(void) { return engine_main("llvm_names", add_tests); }
