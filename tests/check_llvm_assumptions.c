/*
 * Tests of assumptions: sites that do nothing until the assumption is broken, in loops that LLVM
 * unrolls, at each level of optimisation.
 *
 * SPDX-License-Identifier: MIT
 */
#include "allocator_support.h"
#include "llvm_engine_support.h"

#include <cairn/assumption.h>
#include <cairn/invalidation.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { GUARD = 7, ROUNDS = 4, LEVELS = 4, NEVER = -1 };

static cairn_exit *the_exit;
static cairn_exit *other_exit;
static cairn_assumption *assumption;
static cairn_assumption *other;

/* ---- What the function computes ---- */

/* What the compiled function calls in each round: in one of them, it breaks the assumption. */
static cairn_assumption *to_break;
static int64_t breaking_round;

static int64_t step(int64_t i)
{
    if (i == breaking_round)
        ck_assert_ok(cairn_assumption_break(to_break, CAIRN_SYNC, NULL));
    return 3 * i;
}

static int64_t interpret(int64_t i, int64_t sum, int64_t x)
{
    for (; i < ROUNDS; i++)
        sum += 3 * i + x;
    return sum;
}

/* ---- The handler ---- */

static _Thread_local unsigned left;
static _Thread_local uint64_t left_at; /* the round of the last exit */

static bool begin_frame(const struct cairn_interpreter_frame *from, uint32_t index,
                        struct cairn_frame_slots *slots, void *locals)
{
    slots->locals = locals;
    return index == 0 && from->local_count == 3;
}

static void leave(struct cairn_exit_call *call, void *user)
{
    struct cairn_frame_state state;
    uint64_t locals[3] = {0};
    const struct cairn_frame_writer writer = {.begin = begin_frame, .user = locals};
    (void)user;
    left++;
    ck_assert_ok(cairn_frame_state_read(&call->frame, call->record, 0, &state, NULL));
    ck_assert_ok(cairn_frame_state_write(&state, &writer, NULL));
    left_at = locals[0];
    int64_t sum = interpret((int64_t)locals[0], (int64_t)locals[1], (int64_t)locals[2]);
    const struct cairn_value result = cairn_value_of_integer(64, sum);
    ck_assert_ok(cairn_exit_return(call, &result, 1, NULL));
}

/* ---- The function: int64_t f(x), which adds up ROUNDS items ---- */

static void create_all(void)
{
    left = 0;
    breaking_round = NEVER;
    ck_assert_ok(cairn_exit_create(runtime, leave, NULL, &the_exit, NULL));
    ck_assert_ok(cairn_exit_create(runtime, leave, NULL, &other_exit, NULL));
    ck_assert_ok(cairn_assumption_create(runtime, &assumption, NULL));
    ck_assert_ok(cairn_assumption_create(runtime, &other, NULL));
    to_break = assumption;
}

static void destroy_all(void)
{
    cairn_assumption_destroy(assumption);
    cairn_assumption_destroy(other);
    cairn_exit_destroy(the_exit);
    cairn_exit_destroy(other_exit);
}

/* Builds the guard at the head of the loop's body. */
static void build_guard(LLVMBuilderRef builder, LLVMValueRef *locals, uint32_t assumption_count)
{
    struct cairn_error error = {0};
    cairn_assumption *const assumptions[] = {assumption, other};
    const struct cairn_encoded_frame frame = {.locals = locals, .local_count = 3};
    const struct cairn_guard guard = {
        .id = GUARD,
        .exit = the_exit,
        .frames = &frame,
        .frame_count = 1,
        .assumptions = assumptions,
        .assumption_count = assumption_count,
    };
    ck_assert_msg(cairn_build_guard(builder, NULL, &guard, &error) != NULL, "%s", error.message);
}

static LLVMModuleRef build_function(const char *name, uint32_t assumption_count)
{
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("assumptions", context);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMTypeRef word = LLVMInt64TypeInContext(context);
    LLVMTypeRef type = LLVMFunctionType(word, &word, 1, 0);
    LLVMValueRef callee = LLVMAddFunction(module, "step", type);
    LLVMValueRef f = LLVMAddFunction(module, name, type);
    LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(context, f, "entry");
    LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(context, f, "body");
    LLVMBasicBlockRef end = LLVMAppendBasicBlockInContext(context, f, "end");
    LLVMPositionBuilderAtEnd(builder, entry);
    LLVMBuildBr(builder, body);
    LLVMPositionBuilderAtEnd(builder, body);
    LLVMValueRef i = LLVMBuildPhi(builder, word, "i");
    LLVMValueRef sum = LLVMBuildPhi(builder, word, "sum");
    build_guard(builder, (LLVMValueRef[]){i, sum, LLVMGetParam(f, 0)}, assumption_count);
    LLVMValueRef item = LLVMBuildCall2(builder, type, callee, &i, 1, "");
    LLVMValueRef more =
        LLVMBuildAdd(builder, LLVMBuildAdd(builder, sum, item, ""), LLVMGetParam(f, 0), "");
    LLVMValueRef next = LLVMBuildAdd(builder, i, LLVMConstInt(word, 1, 0), "");
    LLVMValueRef goes_on =
        LLVMBuildICmp(builder, LLVMIntSLT, next, LLVMConstInt(word, ROUNDS, 0), "");
    LLVMBuildCondBr(builder, goes_on, body, end);
    LLVMBasicBlockRef from[] = {entry, body};
    LLVMAddIncoming(i, (LLVMValueRef[]){LLVMConstNull(word), next}, from, 2);
    LLVMAddIncoming(sum, (LLVMValueRef[]){LLVMConstNull(word), more}, from, 2);
    LLVMPositionBuilderAtEnd(builder, end);
    LLVMBuildRet(builder, more);
    LLVMDisposeBuilder(builder);
    support_verify(module);
    return module;
}

static cairn_engine *create_engine_with(LLVMModuleRef module, unsigned level)
{
    static const struct support_symbol symbols[] = {{"step", (const void *)(uintptr_t)step},
                                                    {NULL, NULL}};
    static const char *const passes[] = {"default<O0>", "default<O1>", "default<O2>",
                                         "default<O3>"};
    const struct cairn_engine_options options = {
        .optimisation_level = level, .passes = passes[level], .load = support_symbols(symbols)};
    struct cairn_error error = {0};
    cairn_engine *engine = NULL;
    enum cairn_status status = cairn_engine_create(runtime, module, &options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return engine;
}

static void break_it(cairn_assumption *broken)
{
    struct cairn_error error = {0};
    enum cairn_status status = cairn_assumption_break(broken, CAIRN_SYNC, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}

/* Asserts that the function left in this round of its next call; NEVER: that it did not. */
static void expect_left(function *f, int64_t round)
{
    left = 0;
    ck_assert_int_eq(f(10), interpret(0, 0, 10));
    ck_assert_uint_eq(left, round != NEVER);
    if (round != NEVER)
        ck_assert_uint_eq(left_at, (uint64_t)round);
}

/* ---- Breaking ---- */

/* The assumption is broken by what the function calls, so it leaves at the site of the next round,
 * whichever copy of the loop's body that is. */
START_TEST(a_broken_assumption_is_left_at_the_next_copy_of_its_site)
{
    for (int64_t round = NEVER; round < ROUNDS; round++) {
        create_all();
        cairn_engine *engine = create_engine_with(build_function("f", 1), (unsigned)_i);
        function *f = get(engine, "f");
        ck_assert_uint_ge(count_records(GUARD), _i >= 2 ? ROUNDS : 1);
        expect_left(f, NEVER);
        breaking_round = round;
        expect_left(f, round == NEVER || round == ROUNDS - 1 ? NEVER : round + 1);
        expect_left(f, round == NEVER ? NEVER : 0);
        cairn_engine_destroy(engine);
        destroy_all();
    }
}
END_TEST

START_TEST(code_that_is_published_after_the_break_leaves_at_its_first_site)
{
    create_all();
    LLVMModuleRef module = build_function("f", 1);
    break_it(assumption);
    cairn_engine *engine = create_engine_with(module, (unsigned)_i);
    expect_left(get(engine, "f"), 0);
    cairn_engine_destroy(engine);
    destroy_all();
}
END_TEST

START_TEST(a_site_leaves_when_any_of_its_assumptions_is_broken)
{
    for (int first = 0; first < 2; first++) {
        create_all();
        cairn_engine *engine = create_engine_with(build_function("f", 2), 2);
        function *f = get(engine, "f");
        expect_left(f, NEVER);
        break_it(first == 0 ? assumption : other);
        expect_left(f, 0);
        break_it(first == 0 ? other : assumption);
        break_it(assumption);
        expect_left(f, 0);
        cairn_engine_destroy(engine);
        destroy_all();
    }
}
END_TEST

START_TEST(all_modules_that_rely_on_an_assumption_leave)
{
    create_all();
    cairn_engine *engine = create_engine_with(build_function("f", 1), 2);
    function *f = get(engine, "f");
    add(engine, build_function("g", 1));
    function *g = get(engine, "g");
    break_it(other);
    expect_left(f, NEVER);
    break_it(assumption);
    expect_left(f, 0);
    expect_left(g, 0);
    cairn_engine_destroy(engine);
    destroy_all();
}
END_TEST

/* ---- Lifetimes ---- */

/* A retired module's code can still be running. Once it is freed, its sites are forgotten. */
START_TEST(sites_of_a_retired_module_leave_until_it_is_freed)
{
    create_all();
    cairn_engine *engine = create_engine_with(build_function("f", 2), 2);
    function *f = get(engine, "f");
    cairn_module *module = cairn_runtime_find_module(runtime, (uintptr_t)f);
    cairn_module_retire(module);
    break_it(assumption);
    expect_left(f, 0);
    cairn_runtime_quiesce(runtime);
    break_it(other);
    cairn_engine_destroy(engine);
    destroy_all();
}
END_TEST

START_TEST(an_assumption_may_be_destroyed_before_the_code_that_relied_on_it)
{
    create_all();
    cairn_engine *engine = create_engine_with(build_function("f", 2), 2);
    function *f = get(engine, "f");
    cairn_assumption_destroy(assumption);
    assumption = NULL;
    expect_left(f, NEVER);
    break_it(other);
    expect_left(f, 0);
    cairn_engine_destroy(engine);
    cairn_assumption_destroy(NULL);
    destroy_all();
}
END_TEST

/* ---- Together with other changes ---- */

/* The invalidation has the same target as the assumption, and still does not undo its change. */
START_TEST(undoing_an_invalidation_leaves_sites_of_a_broken_assumption_unchanged)
{
    for (int breaks = 0; breaks < 2; breaks++) {
        cairn_invalidation *invalidation;
        create_all();
        cairn_engine *engine = create_engine_with(build_function("f", 1), 2);
        function *f = get(engine, "f");
        const struct cairn_invalidation_options options = {
            .function = (uintptr_t)f,
            .target = cairn_exit_target(the_exit),
        };
        ck_assert_ok(cairn_invalidate(runtime, &options, CAIRN_SYNC, &invalidation, NULL));
        expect_left(f, 0);
        if (breaks)
            break_it(assumption);
        ck_assert_ok(cairn_invalidation_undo(invalidation, CAIRN_SYNC, NULL));
        expect_left(f, breaks ? 0 : NEVER);
        cairn_invalidation_destroy(invalidation);
        cairn_engine_destroy(engine);
        destroy_all();
    }
}
END_TEST

static void missed(struct cairn_ic_miss *miss, void *user)
{
    (void)miss;
    (void)user;
}

/* ---- What is refused ---- */

static void expect_refused(cairn_assumption *to, cairn_site *site, enum cairn_status status,
                           const char *text)
{
    struct cairn_error error = {0};
    ck_assert_int_eq(
        cairn_assumption_add(to, site, cairn_exit_target(the_exit), CAIRN_RELAXED, &error), status);
    assert_says(&error, text);
}

START_TEST(sites_that_cannot_be_left_are_refused)
{
    cairn_runtime *foreign_runtime;
    cairn_assumption *foreign;
    cairn_ic *ic;
    const struct cairn_ic_options options = {.handler = missed};
    create_all();
    ck_assert_ok(cairn_runtime_create(NULL, &foreign_runtime, NULL));
    ck_assert_ok(cairn_assumption_create(foreign_runtime, &foreign, NULL));
    cairn_engine *engine = create_engine(parse_site("f", 1));
    get(engine, "f");
    cairn_site *site = cairn_runtime_find_site(runtime, 1, NULL);
    expect_refused(foreign, site, CAIRN_ERROR_ARGUMENT, "belongs to another runtime");
    expect_refused(assumption, NULL, CAIRN_ERROR_ARGUMENT, "`site` is NULL");
    expect_refused(NULL, site, CAIRN_ERROR_ARGUMENT, "`assumption` is NULL");
    call_target(1, add_hundred);
    expect_refused(assumption, site, CAIRN_ERROR_CONFLICT,
                   "is a call, and only one that does nothing can have an assumption");
    ck_assert_ok(cairn_site_nop(site, CAIRN_SYNC, NULL));
    ck_assert_ok(cairn_ic_create(site, &options, &ic, NULL));
    expect_refused(assumption, site, CAIRN_ERROR_STATE, "cache");
    ck_assert_ok(cairn_ic_destroy(ic, CAIRN_SYNC, NULL));
    ck_assert_ok(
        cairn_assumption_add(assumption, site, cairn_exit_target(the_exit), CAIRN_RELAXED, NULL));
    ck_assert_ok(cairn_ic_create(site, &options, &ic, NULL));
    ck_assert_int_eq(cairn_assumption_break(assumption, CAIRN_SYNC, NULL), CAIRN_ERROR_STATE);
    ck_assert_ok(cairn_ic_destroy(ic, CAIRN_SYNC, NULL));
    break_it(assumption);
    ck_assert_int_eq(cairn_assumption_break(NULL, CAIRN_SYNC, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_assumption_create(NULL, &foreign, NULL), CAIRN_ERROR_ARGUMENT);
    cairn_engine_destroy(engine);
    cairn_assumption_destroy(foreign);
    cairn_runtime_destroy(foreign_runtime);
    destroy_all();
}
END_TEST

START_TEST(a_stack_map_is_refused)
{
    create_all();
    cairn_engine *engine = create_engine(support_parse_valid(
        context, SUPPORT_INTRINSICS
        "define i64 @f(i64 %x) {\n"
        "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 16)\n"
        "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0)\n"
        "  ret i64 %x\n"
        "}\n"));
    get(engine, "f");
    expect_refused(assumption, cairn_runtime_find_site(runtime, 3, NULL), CAIRN_ERROR_ARGUMENT,
                   "is of a stackmap, and only patch points can have an assumption");
    cairn_engine_destroy(engine);
    destroy_all();
}
END_TEST

/* Each allocation fails once, and then succeeds. */
START_TEST(without_memory_nothing_is_registered)
{
    struct support_allocator allocations = {0};
    const struct cairn_runtime_options options = {.allocator = support_counting(&allocations)};
    cairn_runtime *small;
    cairn_engine *engine;
    cairn_assumption *created = NULL;
    ck_assert_ok(cairn_runtime_create(&options, &small, NULL));
    ck_assert_ok(cairn_engine_create(small, parse_site("f", 1), NULL, &engine, NULL));
    function *f = get(engine, "f");
    cairn_site *site = cairn_runtime_find_site(small, 1, NULL);
    allocations.fail_at = allocations.calls + 1;
    ck_assert_int_eq(cairn_assumption_create(small, &created, NULL), CAIRN_ERROR_MEMORY);
    ck_assert_ptr_null(created);
    ck_assert_ok(cairn_assumption_create(small, &created, NULL));
    const void *target = (const void *)(uintptr_t)add_hundred;
    unsigned failures = 0;
    enum cairn_status status;
    do {
        allocations.fail_at = allocations.calls + 1 + failures;
        status = cairn_assumption_add(created, site, target, CAIRN_RELAXED, NULL);
        failures += status != CAIRN_OK;
        ck_assert(status == CAIRN_OK || status == CAIRN_ERROR_MEMORY);
    } while (status != CAIRN_OK);
    ck_assert_uint_eq(failures, 2);
    allocations.fail_at = 0;
    ck_assert_ok(cairn_assumption_break(created, CAIRN_SYNC, NULL));
    ck_assert_int_eq(f(1), 101);
    cairn_assumption_destroy(created);
    cairn_engine_destroy(engine);
    cairn_runtime_destroy(small);
    ck_assert_uint_eq(allocations.outstanding_bytes, 0);
}
END_TEST

/* ---- Threads ---- */

enum { THREADS = 3 };

static function *shared;
static atomic_bool is_broken;
static atomic_uint wrong;

/* A call that begins after the break has returned leaves in its first round. */
static void *run(void *unused)
{
    (void)unused;
    for (bool ends = false; !ends;) {
        ends = atomic_load(&is_broken);
        left = 0;
        if (shared(10) != interpret(0, 0, 10) || (ends && (left != 1 || left_at != 0)))
            atomic_fetch_add(&wrong, 1);
    }
    return NULL;
}

START_TEST(threads_leave_once_the_break_has_returned)
{
    pthread_t threads[THREADS];
    create_all();
    cairn_engine *engine = create_engine_with(build_function("f", 1), 2);
    shared = get(engine, "f");
    atomic_store(&is_broken, false);
    atomic_store(&wrong, 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run, NULL), 0);
    break_it(assumption);
    atomic_store(&is_broken, true);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_uint_eq(atomic_load(&wrong), 0);
    cairn_engine_destroy(engine);
    destroy_all();
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_loop_test(tests, a_broken_assumption_is_left_at_the_next_copy_of_its_site, 0, LEVELS);
    tcase_add_loop_test(tests, code_that_is_published_after_the_break_leaves_at_its_first_site, 0,
                        LEVELS);
    tcase_add_test(tests, a_site_leaves_when_any_of_its_assumptions_is_broken);
    tcase_add_test(tests, all_modules_that_rely_on_an_assumption_leave);
    tcase_add_test(tests, sites_of_a_retired_module_leave_until_it_is_freed);
    tcase_add_test(tests, an_assumption_may_be_destroyed_before_the_code_that_relied_on_it);
    tcase_add_test(tests, undoing_an_invalidation_leaves_sites_of_a_broken_assumption_unchanged);
    tcase_add_test(tests, sites_that_cannot_be_left_are_refused);
    tcase_add_test(tests, a_stack_map_is_refused);
    tcase_add_test(tests, without_memory_nothing_is_registered);
    tcase_add_test(tests, threads_leave_once_the_break_has_returned);
}

int main(void) { return engine_main("assumptions", add_tests); }
