/*
 * Tests of sites that are bound when they are built: each copy that LLVM makes of a patch point, by
 * unrolling or by inlining, has its own inline cache when the module is published.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runtime_support.h"
#include "llvm/engine.h"

#include "llvm_engine_support.h"
#include "tests/orc_support.h"

#include <llvm-c/Linker.h>
#include <stdio.h>
#include <string.h>

enum { READ = 5, ROUNDS = 4, LEVELS = 4 };

/* ---- Objects, and the handler of misses ---- */

struct object {
    uint64_t shape;
    int64_t fields[2];
};

/* The shape tells which field the property is. */
static const struct object first = {0, {100, -1}};
static const struct object second = {1, {-2, 200}};

static int64_t property_of(const struct object *object) { return object->fields[object->shape]; }

static unsigned misses;
static void *last_user;

static void read_missed(struct cairn_ic_miss *miss, void *user)
{
    const struct object *object = cairn_value_pointer(&miss->operands[0]);
    const struct cairn_value value = cairn_value_of_integer(64, property_of(object));
    const struct cairn_ic_case found = {
        .guard = {.width = 8, .key = object->shape},
        .action = CAIRN_IC_LOAD,
        .field = {.offset = (int32_t)(8 + 8 * object->shape), .width = 8},
    };
    misses++;
    last_user = user;
    ck_assert_ok(cairn_ic_return(miss, &value, NULL));
    ck_assert_ok(cairn_ic_add(miss->ic, &found, CAIRN_RELAXED, NULL));
}

static const struct cairn_ic_options reading = {.handler = read_missed, .user = &misses};

/* ---- IR ---- */

struct ir {
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMTypeRef word;
    LLVMTypeRef pointer;
    LLVMTypeRef type;
    LLVMValueRef function;
};

static struct ir begin_module(const char *name)
{
    struct ir ir = {
        .module = LLVMModuleCreateWithNameInContext(name, context),
        .builder = LLVMCreateBuilderInContext(context),
        .word = LLVMInt64TypeInContext(context),
        .pointer = version_byte_pointer_type(context),
    };
    LLVMTypeRef parameters[] = {ir.pointer, ir.pointer};
    ir.type = LLVMFunctionType(ir.word, parameters, 2, 0);
    return ir;
}

static LLVMBasicBlockRef append(const struct ir *ir, const char *name)
{
    return LLVMAppendBasicBlockInContext(context, ir->function, name);
}

static void begin_function(struct ir *ir, const char *name)
{
    ir->function = LLVMAddFunction(ir->module, name, ir->type);
    LLVMPositionBuilderAtEnd(ir->builder, append(ir, "entry"));
}

static LLVMModuleRef end_module(const struct ir *ir)
{
    LLVMDisposeBuilder(ir->builder);
    support_verify(ir->module);
    return ir->module;
}

/* Returns the parameters of a patch point that reads the property of an object. */
static struct cairn_patchpoint read_of(const struct ir *ir, LLVMValueRef *object,
                                       const struct cairn_ic_options *cache)
{
    return (struct cairn_patchpoint){
        .id = READ,
        .byte_count = cairn_patchpoint_minimum_bytes(ir->module, false),
        .result_type = ir->word,
        .calling_convention = CAIRN_CALLING_CONVENTION_ANYREG,
        .arguments = object,
        .argument_count = 1,
        .cache = cache,
    };
}

static LLVMValueRef build(const struct ir *ir, const struct cairn_patchpoint *patchpoint)
{
    struct cairn_error error = {0};
    LLVMValueRef result = cairn_build_patchpoint(ir->builder, patchpoint, &error);
    ck_assert_msg(result != NULL, "%s", error.message);
    return result;
}

static LLVMValueRef build_read(const struct ir *ir, LLVMValueRef object)
{
    const struct cairn_patchpoint patchpoint = read_of(ir, &object, &reading);
    return build(ir, &patchpoint);
}

/* Adds NAME(a, b): ROUNDS times the property of `a`, in a loop. */
static void add_loop(struct ir *ir, const char *name)
{
    begin_function(ir, name);
    LLVMBasicBlockRef entry = LLVMGetInsertBlock(ir->builder);
    LLVMBasicBlockRef body = append(ir, "body");
    LLVMBasicBlockRef end = append(ir, "end");
    LLVMBuildBr(ir->builder, body);
    LLVMPositionBuilderAtEnd(ir->builder, body);
    LLVMValueRef i = LLVMBuildPhi(ir->builder, ir->word, "i");
    LLVMValueRef sum = LLVMBuildPhi(ir->builder, ir->word, "sum");
    LLVMValueRef read = build_read(ir, LLVMGetParam(ir->function, 0));
    LLVMValueRef more = LLVMBuildAdd(ir->builder, sum, read, "");
    LLVMValueRef next = LLVMBuildAdd(ir->builder, i, LLVMConstInt(ir->word, 1, 0), "");
    LLVMValueRef limit = LLVMConstInt(ir->word, ROUNDS, 0);
    LLVMBuildCondBr(ir->builder, LLVMBuildICmp(ir->builder, LLVMIntSLT, next, limit, ""), body,
                    end);
    LLVMBasicBlockRef from[] = {entry, body};
    LLVMAddIncoming(i, (LLVMValueRef[]){LLVMConstNull(ir->word), next}, from, 2);
    LLVMAddIncoming(sum, (LLVMValueRef[]){LLVMConstNull(ir->word), more}, from, 2);
    LLVMPositionBuilderAtEnd(ir->builder, end);
    LLVMBuildRet(ir->builder, more);
}

/* Adds NAME(a, b): the properties of `a` and of `b`, both read by a function of the module. */
static void add_calls(struct ir *ir, const char *name)
{
    begin_function(ir, "read");
    LLVMSetLinkage(ir->function, LLVMInternalLinkage);
    LLVMBuildRet(ir->builder, build_read(ir, LLVMGetParam(ir->function, 0)));
    LLVMValueRef callee = ir->function;
    begin_function(ir, name);
    LLVMValueRef sum = LLVMConstNull(ir->word);
    for (unsigned i = 0; i < 2; i++) {
        LLVMValueRef objects[] = {LLVMGetParam(ir->function, i), LLVMGetParam(ir->function, i)};
        LLVMValueRef read = LLVMBuildCall2(ir->builder, ir->type, callee, objects, 2, "");
        sum = LLVMBuildAdd(ir->builder, sum, read, "");
    }
    LLVMBuildRet(ir->builder, sum);
}

typedef int64_t compiled(const struct object *a, const struct object *b);

static compiled *load(cairn_engine *engine, const char *name)
{
    misses = 0;
    return (compiled *)(uintptr_t)get(engine, name);
}

/* ---- What the caches are ---- */

static bool count_cache(const struct cairn_ic_description *description, void *user)
{
    (void)description;
    ++*(unsigned *)user;
    return true;
}

static unsigned count_caches(void)
{
    unsigned count = 0;
    cairn_runtime_visit_ics(runtime, count_cache, &count);
    return count;
}

START_TEST(each_copy_of_an_unrolled_site_has_a_cache)
{
    struct ir ir = begin_module("loop");
    add_loop(&ir, "f");
    cairn_engine *engine = create_engine_at(end_module(&ir), (unsigned)_i);
    compiled *f = load(engine, "f");
    size_t copies = count_records(READ);
    ck_assert_uint_ge(copies, _i >= 2 ? ROUNDS : 1);
    ck_assert_uint_eq(count_caches(), copies);
    ck_assert_int_eq(f(&first, &first), ROUNDS * 100);
    ck_assert_uint_eq(misses, copies);
    ck_assert_ptr_eq(last_user, &misses);
    ck_assert_int_eq(f(&first, &first), ROUNDS * 100);
    ck_assert_uint_eq(misses, copies);
    ck_assert_int_eq(f(&second, &first), ROUNDS * 200);
    ck_assert_uint_eq(misses, 2 * copies);
    cairn_engine_destroy(engine);
}
END_TEST

/* After inlining, each of the two calls has its own cache, and each sees one shape. */
START_TEST(each_copy_of_an_inlined_site_has_a_cache)
{
    struct ir ir = begin_module("calls");
    add_calls(&ir, "f");
    cairn_engine *engine = create_engine_at(end_module(&ir), (unsigned)_i);
    compiled *f = load(engine, "f");
    size_t copies = count_records(READ);
    ck_assert_uint_eq(copies, _i >= 2 ? 2 : copies);
    ck_assert_uint_eq(count_caches(), copies);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(f(&first, &second), 300);
    ck_assert_uint_eq(misses, 2);
    cairn_engine_destroy(engine);
}
END_TEST

START_TEST(sites_that_passes_remove_need_no_cache)
{
    struct ir ir = begin_module("removed");
    add_calls(&ir, "f");
    LLVMSetLinkage(ir.function, LLVMInternalLinkage);
    begin_function(&ir, "g");
    LLVMBuildRet(ir.builder, LLVMConstInt(ir.word, 7, 0));
    cairn_engine *engine = create_engine_at(end_module(&ir), 2);
    ck_assert_int_eq(load(engine, "g")(NULL, NULL), 7);
    ck_assert_uint_eq(count_caches(), 0);
    cairn_engine_destroy(engine);
}
END_TEST

/* Text, a file and the linker keep a module's bindings. */
START_TEST(bindings_follow_the_module)
{
    struct ir ir = begin_module("calls");
    add_calls(&ir, "f");
    struct ir into = begin_module("all");
    begin_function(&into, "g");
    LLVMBuildRet(into.builder, LLVMConstNull(into.word));
    LLVMModuleRef all = end_module(&into);
    ck_assert_int_eq(LLVMLinkModules2(all, support_print_and_parse(end_module(&ir))), 0);
    cairn_engine *engine = create_engine_at(all, 3);
    ck_assert_int_eq(load(engine, "f")(&first, &second), 300);
    ck_assert_uint_eq(misses, 2);
    cairn_engine_destroy(engine);
}
END_TEST

static unsigned seen_before_publication;

static void before_publish(cairn_module *module, void *user)
{
    (void)user;
    for (uint32_t i = 0; i < support_site_count(module); i++)
        seen_before_publication += cairn_site_ic(cairn_module_site(module, i)) != NULL;
}

START_TEST(sites_are_bound_before_the_host_sees_the_module)
{
    const struct cairn_engine_options options = {.modules = {.before_publish = before_publish}};
    struct ir ir = begin_module("calls");
    add_calls(&ir, "f");
    cairn_engine *engine;
    seen_before_publication = 0;
    ck_assert_ok(cairn_engine_create(runtime, end_module(&ir), &options, &engine, NULL));
    ck_assert_ok(cairn_engine_compile(engine, NULL));
    ck_assert_uint_eq(seen_before_publication, 1);
    cairn_engine_destroy(engine);
}
END_TEST

/* Modules that are loaded together may have built the same site, for example each for itself. */
START_TEST(equal_bindings_of_an_id_are_one)
{
    struct ir one = begin_module("one");
    add_loop(&one, "f");
    struct ir other = begin_module("other");
    add_loop(&other, "g");
    cairn_engine *engine = create_engine(end_module(&one));
    add(engine, end_module(&other));
    ck_assert_int_eq(load(engine, "f")(&first, NULL), ROUNDS * 100);
    ck_assert_int_eq(load(engine, "g")(&first, NULL), ROUNDS * 100);
    ck_assert_uint_eq(count_caches(), 2);
    cairn_engine_destroy(engine);
}
END_TEST

/* The compiler leaves the bytes between and after the members as they are. */
START_TEST(options_that_differ_in_unused_bytes_are_equal)
{
    struct cairn_ic_options same;
    memset(&same, 0xFF, sizeof same);
    same.handler = reading.handler;
    same.user = reading.user;
    same.light_handler = NULL;
    same.megamorphic_handler = NULL;
    same.megamorphic_target = NULL;
    same.case_limit = 0;
    same.counts_hits = false;
    same.has_table = false;
    struct ir ir = begin_module("padding");
    add_loop(&ir, "f");
    begin_function(&ir, "g");
    LLVMValueRef object = LLVMGetParam(ir.function, 0);
    const struct cairn_patchpoint patchpoint = read_of(&ir, &object, &same);
    LLVMBuildRet(ir.builder, build(&ir, &patchpoint));
    cairn_engine *engine = create_engine(end_module(&ir));
    ck_assert_int_eq(load(engine, "g")(&first, NULL), 100);
    cairn_engine_destroy(engine);
}
END_TEST

/* ---- Megamorphic targets that leave ---- */

/* No property has this value. */
static const int64_t leave = INT64_MIN;

static int64_t read_or_leave(const struct object *object)
{
    return object->shape < 2 ? property_of(object) : leave;
}

static void leave_function(struct cairn_exit_call *call, void *user)
{
    const struct cairn_value result = cairn_value_of_integer(64, 77);
    ++*(unsigned *)user;
    ck_assert_ok(cairn_exit_return(call, &result, 1, NULL));
}

START_TEST(a_megamorphic_target_leaves_through_a_guard)
{
    const struct cairn_ic_options options = {
        .handler = read_missed,
        .user = &misses,
        .case_limit = 1,
        .megamorphic_target = (const void *)(uintptr_t)read_or_leave,
    };
    const struct object third = {2, {0, 0}};
    unsigned left = 0;
    cairn_exit *the_exit;
    ck_assert_ok(cairn_exit_create(runtime, leave_function, &left, &the_exit, NULL));
    struct ir ir = begin_module("leaving");
    begin_function(&ir, "f");
    LLVMValueRef object = LLVMGetParam(ir.function, 0);
    struct cairn_patchpoint patchpoint = read_of(&ir, &object, &options);
    patchpoint.calling_convention = CAIRN_CALLING_CONVENTION_C;
    LLVMValueRef value = build(&ir, &patchpoint);
    LLVMValueRef none = LLVMConstInt(ir.word, (uint64_t)leave, 1);
    LLVMValueRef stays = LLVMBuildICmp(ir.builder, LLVMIntNE, value, none, "");
    const struct cairn_encoded_frame frame = {.position = 1, .locals = &object, .local_count = 1};
    const struct cairn_guard guard = {
        .id = READ + 1, .exit = the_exit, .frames = &frame, .frame_count = 1};
    ck_assert_ptr_nonnull(cairn_build_guard(ir.builder, stays, &guard, NULL));
    LLVMBuildRet(ir.builder, value);
    cairn_engine *engine = create_engine(end_module(&ir));
    compiled *f = load(engine, "f");
    for (unsigned i = 1; i <= 3; i++) {
        ck_assert_int_eq(f(&first, NULL), 100);
        ck_assert_int_eq(f(&second, NULL), 200);
        ck_assert_uint_eq(misses, 2);
        ck_assert_int_eq(f(&third, NULL), 77);
        ck_assert_uint_eq(left, i);
    }
    cairn_engine_destroy(engine);
    cairn_exit_destroy(the_exit);
}
END_TEST

/* ---- What is refused ---- */

static void expect_not_built(const struct ir *ir, const struct cairn_patchpoint *patchpoint,
                             const char *message)
{
    struct cairn_error error = {0};
    ck_assert_ptr_null(cairn_build_patchpoint(ir->builder, patchpoint, &error));
    ck_assert_int_eq(error.status, CAIRN_ERROR_ARGUMENT);
    ck_assert_str_eq(error.message, message);
}

START_TEST(a_cache_of_a_site_with_a_target_is_refused)
{
    const struct cairn_ic_options no_handler = {.user = &misses};
    struct ir ir = begin_module("refused");
    begin_function(&ir, "f");
    LLVMValueRef object = LLVMGetParam(ir.function, 0);
    struct cairn_patchpoint patchpoint = read_of(&ir, &object, &reading);
    patchpoint.target = LLVMConstInt(ir.word, 4096, 0);
    expect_not_built(&ir, &patchpoint,
                     "patch point 5 calls a target, and one with an inline cache cannot: its cache "
                     "decides what it calls");
    patchpoint = read_of(&ir, &object, &no_handler);
    expect_not_built(&ir, &patchpoint, "the inline cache of patch point 5 has no handler");
    LLVMBuildRet(ir.builder, LLVMConstNull(ir.word));
    LLVMDisposeModule(end_module(&ir));
}
END_TEST

/* Asserts that the modules are not loaded together, and that nothing of them stays. */
static void expect_not_loaded(LLVMModuleRef one, LLVMModuleRef other, enum cairn_status status,
                              const char *text)
{
    struct cairn_error error = {0};
    uint32_t modules = statistics().module_count;
    cairn_engine *engine = create_engine(one);
    if (other != NULL)
        add(engine, other);
    ck_assert_int_eq(cairn_engine_compile(engine, &error), status);
    assert_says(&error, text);
    ck_assert_uint_eq(statistics().module_count, modules);
    cairn_engine_destroy(engine);
    cairn_runtime_quiesce(runtime);
    ck_assert_uint_eq(count_caches(), 0);
}

START_TEST(an_id_with_two_caches_is_refused_with_both_names)
{
    const struct cairn_ic_options other_user = {.handler = read_missed, .user = &last_user};
    struct ir one = begin_module("one");
    add_loop(&one, "f");
    struct ir other = begin_module("other");
    begin_function(&other, "g");
    LLVMValueRef object = LLVMGetParam(other.function, 0);
    const struct cairn_patchpoint patchpoint = read_of(&other, &object, &other_user);
    LLVMBuildRet(other.builder, build(&other, &patchpoint));
    expect_not_loaded(end_module(&one), end_module(&other), CAIRN_ERROR_CONFLICT,
                      ", and to another one in '");
}
END_TEST

static void never_called(struct cairn_exit_call *call, void *user)
{
    (void)call;
    (void)user;
    ck_abort_msg("no assumption is broken");
}

START_TEST(an_id_with_a_cache_and_an_assumption_is_refused_with_both_names)
{
    cairn_exit *the_exit;
    cairn_assumption *assumption;
    ck_assert_ok(cairn_exit_create(runtime, never_called, NULL, &the_exit, NULL));
    ck_assert_ok(cairn_assumption_create(runtime, &assumption, NULL));
    struct ir ir = begin_module("both");
    add_loop(&ir, "f");
    begin_function(&ir, "g");
    const struct cairn_encoded_frame frame = {.position = 1};
    const struct cairn_guard guard = {
        .id = READ + 1,
        .exit = the_exit,
        .frames = &frame,
        .frame_count = 1,
        .assumptions = &assumption,
        .assumption_count = 1,
    };
    LLVMValueRef site = cairn_build_guard(ir.builder, NULL, &guard, NULL);
    ck_assert_ptr_nonnull(site);
    LLVMValueRef object = LLVMGetParam(ir.function, 0);
    struct cairn_patchpoint patchpoint = read_of(&ir, &object, &reading);
    patchpoint.id = READ + 1;
    LLVMBuildRet(ir.builder, build(&ir, &patchpoint));
    LLVMInstructionEraseFromParent(site); /* the declarations have one shape */
    expect_not_loaded(end_module(&ir), NULL, CAIRN_ERROR_CONFLICT, "site 6 is bound to ");
    cairn_assumption_destroy(assumption);
    cairn_exit_destroy(the_exit);
}
END_TEST

START_TEST(a_site_that_cannot_have_a_cache_is_refused_with_its_function)
{
    enum { GHC = 10, ARGUMENTS = CAIRN_IC_OPERANDS_MAX + 1 };
    struct ir ir = begin_module("conventions");
    begin_function(&ir, "many");
    LLVMValueRef objects[ARGUMENTS];
    for (int i = 0; i < ARGUMENTS; i++)
        objects[i] = LLVMGetParam(ir.function, 0);
    struct cairn_patchpoint patchpoint = read_of(&ir, objects, &reading);
    patchpoint.argument_count = ARGUMENTS;
    patchpoint.calling_convention = CAIRN_CALLING_CONVENTION_C;
    LLVMBuildRet(ir.builder, build(&ir, &patchpoint));
    expect_not_loaded(end_module(&ir), NULL, CAIRN_ERROR_UNSUPPORTED,
                      "site 5 of 'many' cannot have an inline cache: ");
}
END_TEST

START_TEST(a_cache_bound_to_a_stack_map_is_refused_with_both_kinds)
{
    struct ir ir = begin_module("kinds");
    begin_function(&ir, "f");
    LLVMValueRef object = LLVMGetParam(ir.function, 0);
    const struct cairn_patchpoint patchpoint = read_of(&ir, &object, &reading);
    LLVMValueRef site = build(&ir, &patchpoint);
    ck_assert_ptr_nonnull(cairn_build_stackmap(ir.builder, READ, 16, NULL, 0, NULL));
    LLVMInstructionEraseFromParent(site); /* the declarations have one shape */
    LLVMBuildRet(ir.builder, LLVMConstNull(ir.word));
    expect_not_loaded(end_module(&ir), NULL, CAIRN_ERROR_UNMANAGED,
                      "is a stackmap's: inline caches are for patch points");
}
END_TEST

/* A host may have any named metadata. */
START_TEST(metadata_that_is_not_a_binding_is_refused)
{
    static const char *const elements[] = {
        "",
        "null, null, null, null",
        "i64 1, i64 0, !\"f\", !\"short\"",
        "i64 1, i64 2, !\"f\", !\"0123456789abcdef\"",
        "i64 1, i64 1, !\"f\", !\"01234567\"",
        "i64 1, i64 1, !\"f\", !\"0123456789abcdef0\"",
        "i64 1, i64 1, i64 3, !\"0123456789abcdef\"",
        "i128 1, i64 1, !\"f\", !\"0123456789abcdef\"",
        "!\"f\", i64 1, !\"f\", !\"0123456789abcdef\"",
        "i64 1, i64 1, !\"f\", !\"0123456789abcdef\", null",
    };
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "define i64 @f() {\n  ret i64 0\n}\n"
                 "!cairn.bindings = !{!0}\n!0 = !{%s}\n",
                 elements[i]);
        expect_not_loaded(support_parse_valid(context, text), NULL, CAIRN_ERROR_CORRUPT,
                          "element 0 of the metadata !cairn.bindings is not a binding");
    }
}
END_TEST

START_TEST(an_object_that_is_kept_has_no_bound_sites)
{
    struct cairn_error error = {0};
    struct ir ir = begin_module("kept");
    add_loop(&ir, "f");
    LLVMModuleRef module = end_module(&ir);
    LLVMTargetRef target;
    char *message = NULL;
    char *triple = LLVMGetDefaultTargetTriple();
    ck_assert_int_eq(LLVMInitializeNativeTarget(), 0);
    ck_assert_int_eq(LLVMGetTargetFromTriple(triple, &target, &message), 0);
    LLVMTargetMachineRef machine = LLVMCreateTargetMachine(
        target, triple, "", "", LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelDefault);
    const struct cairn_embed_options options = {.machine = machine};
    ck_assert_int_eq(cairn_embed_manifest(module, &options, &error), CAIRN_ERROR_UNSUPPORTED);
    ck_assert_str_eq(error.message,
                     "site 5 of 'f' was built with an inline cache of this process, and an object "
                     "that is kept cannot have that: give it a name (`cache_name` of its struct "
                     "cairn_patchpoint)");
    LLVMDisposeTargetMachine(machine);
    LLVMDisposeMessage(triple);
    LLVMDisposeModule(module);
}
END_TEST

/* With a new ID, the site would lose its binding. */
START_TEST(a_bound_site_gets_no_new_id)
{
    struct cairn_error error = {0};
    const struct cairn_engine_options options = {
        .modules = {.id_conflicts = CAIRN_ID_CONFLICTS_RENUMBERED}};
    cairn_engine *engine;
    struct ir ir = begin_module("renumbered");
    add_loop(&ir, "f");
    begin_function(&ir, "g");
    ck_assert_ptr_nonnull(cairn_build_stackmap(ir.builder, READ, 0, NULL, 0, NULL));
    LLVMBuildRet(ir.builder, LLVMConstNull(ir.word));
    LLVMModuleRef module = end_module(&ir);
    ck_assert_int_eq(cairn_engine_create(runtime, module, &options, &engine, &error),
                     CAIRN_ERROR_CONFLICT);
    assert_says(&error, "site 5 of 'f' is bound to an inline cache");
    LLVMDisposeModule(module);
}
END_TEST

/* ---- MCJIT and ORC ---- */

static cairn_memory_manager *create_manager(void)
{
    cairn_memory_manager *manager;
    ck_assert_ok(cairn_memory_manager_create(runtime, NULL, &manager, NULL));
    return manager;
}

static LLVMExecutionEngineRef create_mcjit(LLVMModuleRef module, cairn_memory_manager *manager)
{
    struct LLVMMCJITCompilerOptions options;
    LLVMExecutionEngineRef engine;
    char *message = NULL;
    LLVMLinkInMCJIT();
    ck_assert_int_eq(LLVMInitializeNativeTarget(), 0);
    ck_assert_int_eq(LLVMInitializeNativeAsmPrinter(), 0);
    LLVMInitializeMCJITCompilerOptions(&options, sizeof options);
    options.MCJMM = cairn_memory_manager_llvm(manager);
    if (LLVMCreateMCJITCompilerForModule(&engine, module, &options, sizeof options, &message) != 0)
        ck_abort_msg("%s", message);
    return engine;
}

START_TEST(memory_managers_bind_sites)
{
    struct ir ir = begin_module("mcjit");
    add_loop(&ir, "f");
    add_calls(&ir, "g");
    LLVMModuleRef module = end_module(&ir);
    cairn_memory_manager *manager = create_manager();
    ck_assert_ok(cairn_memory_manager_declare(manager, module, NULL));
    LLVMExecutionEngineRef engine = create_mcjit(module, manager);
    compiled *f = (compiled *)(uintptr_t)LLVMGetFunctionAddress(engine, "f");
    compiled *g = (compiled *)(uintptr_t)LLVMGetFunctionAddress(engine, "g");
    ck_assert_ok(cairn_memory_manager_status(manager, NULL));
    ck_assert_uint_eq(count_caches(), 2);
    misses = 0;
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(f(&first, NULL) + g(&first, &second), ROUNDS * 100 + 300);
    ck_assert_uint_eq(misses, 3);
    ck_assert_ptr_eq(last_user, &misses);
    LLVMDisposeExecutionEngine(engine);
    cairn_runtime_quiesce(runtime);
    ck_assert_uint_eq(count_caches(), 0);
}
END_TEST

/* Asserts that MCJIT does not load a module that was declared to `of`. */
static void expect_not_finalised(LLVMModuleRef module, cairn_memory_manager *of,
                                 cairn_memory_manager *manager, enum cairn_status status,
                                 const char *text)
{
    struct cairn_error error = {0};
    ck_assert_ok(cairn_memory_manager_declare(of, module, NULL));
    LLVMExecutionEngineRef engine = create_mcjit(module, manager);
    LLVMGetFunctionAddress(engine, "f");
    ck_assert_int_eq(cairn_memory_manager_status(manager, &error), status);
    assert_says(&error, text);
    ck_assert_uint_eq(statistics().module_count, 0);
    LLVMDisposeExecutionEngine(engine);
    cairn_runtime_quiesce(runtime);
    ck_assert_uint_eq(count_caches(), 0);
}

START_TEST(memory_managers_refuse_what_engines_refuse)
{
    const struct cairn_ic_options other_user = {.handler = read_missed, .user = &last_user};
    struct ir ir = begin_module("conflict");
    add_loop(&ir, "f");
    begin_function(&ir, "g");
    LLVMValueRef object = LLVMGetParam(ir.function, 0);
    const struct cairn_patchpoint patchpoint = read_of(&ir, &object, &other_user);
    LLVMBuildRet(ir.builder, build(&ir, &patchpoint));
    cairn_memory_manager *manager = create_manager();
    expect_not_finalised(end_module(&ir), manager, manager, CAIRN_ERROR_CONFLICT,
                         ", and to another one in '");
}
END_TEST

START_TEST(bindings_for_another_memory_manager_are_refused)
{
    struct ir ir = begin_module("another");
    add_loop(&ir, "f");
    cairn_memory_manager *other = create_manager();
    expect_not_finalised(end_module(&ir), other, create_manager(), CAIRN_ERROR_UNSUPPORTED,
                         "site 5 of 'f' was bound to an inline cache for another memory manager");
    LLVMDisposeMCJITMemoryManager(cairn_memory_manager_llvm(other));
}
END_TEST

START_TEST(a_section_that_holds_no_bindings_is_refused)
{
    static const char *const words[] = {
        "[1 x i64] [i64 1]",
        "[5 x i64] [i64 1, i64 5, i64 0, i64 8, i64 0]",
        "[5 x i64] [i64 1, i64 5, i64 0, i64 -1, i64 0]",
        "[6 x i64] [i64 1, i64 5, i64 0, i64 0, i64 -8, i64 0]",
        "[6 x i64] [i64 1, i64 5, i64 0, i64 8, i64 0, i64 0]",
        "[7 x i64] [i64 1, i64 5, i64 2, i64 16, i64 0, i64 0, i64 0]",
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "@b = constant %s, section \".cairn.bindings\", align 8\n"
                 "define i64 @f() {\n  ret i64 0\n}\n",
                 words[i]);
        cairn_memory_manager *manager = create_manager();
        expect_not_finalised(support_parse_valid(context, text), manager, manager,
                             CAIRN_ERROR_CORRUPT, "section .cairn.bindings, offset 0: not a");
    }
}
END_TEST

#if LLVM_HAS_ORC_CALLBACKS
static void leave_with_seven(struct cairn_exit_call *call, void *user)
{
    const struct cairn_value seven = cairn_value_of_integer(64, 7);
    (void)user;
    ck_assert_ok(cairn_exit_return(call, &seven, 1, NULL));
}

START_TEST(orc_binds_sites)
{
    cairn_exit *the_exit;
    cairn_assumption *assumption;
    cairn_orc *orc;
    ck_assert_ok(cairn_exit_create(runtime, leave_with_seven, NULL, &the_exit, NULL));
    ck_assert_ok(cairn_assumption_create(runtime, &assumption, NULL));
    struct ir ir = begin_module("orc");
    add_loop(&ir, "f");
    begin_function(&ir, "g");
    const struct cairn_encoded_frame frame = {.position = 1};
    const struct cairn_guard guard = {.id = READ + 1,
                                      .exit = the_exit,
                                      .frames = &frame,
                                      .frame_count = 1,
                                      .assumptions = &assumption,
                                      .assumption_count = 1};
    ck_assert_ptr_nonnull(cairn_build_guard(ir.builder, NULL, &guard, NULL));
    LLVMBuildRet(ir.builder, LLVMConstNull(ir.word));
    LLVMModuleRef module = end_module(&ir);
    char *text = LLVMPrintModuleToString(module);
    ck_assert_ok(cairn_orc_create(runtime, NULL, &orc, NULL));
    LLVMOrcLLJITRef jit = orc_create_jit(orc);
    orc_add(jit, orc_parse("%s", text), NULL);
    compiled *f = (compiled *)(uintptr_t)orc_lookup(orc, jit, "f");
    compiled *g = (compiled *)(uintptr_t)orc_lookup(orc, jit, "g");
    misses = 0;
    ck_assert_uint_eq(count_caches(), 1);
    ck_assert_int_eq(f(&first, NULL), ROUNDS * 100);
    ck_assert_int_eq(f(&first, NULL), ROUNDS * 100);
    ck_assert_uint_eq(misses, 1);
    ck_assert_int_eq(g(NULL, NULL), 0);
    ck_assert_ok(cairn_assumption_break(assumption, CAIRN_SYNC, NULL));
    ck_assert_int_eq(g(NULL, NULL), 7);
    orc_dispose(jit);
    cairn_orc_destroy(orc);
    cairn_runtime_quiesce(runtime);
    cairn_assumption_destroy(assumption);
    cairn_exit_destroy(the_exit);
    LLVMDisposeMessage(text);
    LLVMDisposeModule(module);
}
END_TEST
#endif

static void add_tests(TCase *tests)
{
    tcase_add_loop_test(tests, each_copy_of_an_unrolled_site_has_a_cache, 0, LEVELS);
    tcase_add_loop_test(tests, each_copy_of_an_inlined_site_has_a_cache, 0, LEVELS);
    tcase_add_test(tests, sites_that_passes_remove_need_no_cache);
    tcase_add_test(tests, bindings_follow_the_module);
    tcase_add_test(tests, sites_are_bound_before_the_host_sees_the_module);
    tcase_add_test(tests, equal_bindings_of_an_id_are_one);
    tcase_add_test(tests, options_that_differ_in_unused_bytes_are_equal);
    tcase_add_test(tests, a_megamorphic_target_leaves_through_a_guard);
    tcase_add_test(tests, a_cache_of_a_site_with_a_target_is_refused);
    tcase_add_test(tests, an_id_with_two_caches_is_refused_with_both_names);
    tcase_add_test(tests, an_id_with_a_cache_and_an_assumption_is_refused_with_both_names);
    tcase_add_test(tests, a_site_that_cannot_have_a_cache_is_refused_with_its_function);
    tcase_add_test(tests, a_cache_bound_to_a_stack_map_is_refused_with_both_kinds);
    tcase_add_test(tests, metadata_that_is_not_a_binding_is_refused);
    tcase_add_test(tests, an_object_that_is_kept_has_no_bound_sites);
    tcase_add_test(tests, a_bound_site_gets_no_new_id);
    tcase_add_test(tests, memory_managers_bind_sites);
    tcase_add_test(tests, memory_managers_refuse_what_engines_refuse);
    tcase_add_test(tests, bindings_for_another_memory_manager_are_refused);
    tcase_add_test(tests, a_section_that_holds_no_bindings_is_refused);
#if LLVM_HAS_ORC_CALLBACKS
    tcase_add_test(tests, orc_binds_sites);
#endif
}

int main(void) { return engine_main("bound sites", add_tests); }
