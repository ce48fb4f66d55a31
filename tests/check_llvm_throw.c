/*
 * Tests of handlers that resume at a context which was saved earlier: throws through frames of
 * compiled functions and of C functions, which take turns on the stack.
 *
 * Each compiled function keeps integers and floating-point numbers across its call, in callee-saved
 * registers as far as there are any. So the result of a function that is further out than the catch
 * shows whether a throw has restored them.
 *
 * Environment: CAIRN_TEST_SEED selects other stacks.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/llvm_engine_support.h"
#include "tests/stackmap_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SITE = 1, CACHE = 2, KEPT = 8, DEPTH_MAX = 40, ROUNDS = 300, THROWN = 100000 };

/* ---- Compiled code ---- */

struct text {
    char bytes[16 << 10];
    size_t size;
};

#define put(text, ...)                                                                             \
    ((text)->size += (size_t)snprintf((text)->bytes + (text)->size,                                \
                                      sizeof(text)->bytes - (text)->size, __VA_ARGS__))

/* through(n, n) returns go_on(n) plus 36 * n, and adds 36 * n to `numbers`. */
static double numbers;

static void add_number(double number) { numbers += number; }

static void put_through(struct text *text)
{
    put(text, "define i64 @through(i64 %%n, double %%x) noinline uwtable {\n");
    for (int i = 0; i < KEPT; i++)
        put(text, "  %%v%d = mul i64 %%n, %d\n  %%x%d = fmul double %%x, %d.0\n", i, i + 1, i,
            i + 1);
    put(text, "  %%s0 = call i64 @go_on(i64 %%n)\n");
    for (int i = 0; i < KEPT; i++)
        put(text, "  %%s%d = add i64 %%s%d, %%v%d\n", i + 1, i, i);
    put(text, "  %%y0 = fadd double 0.0, %%x0\n");
    for (int i = 1; i < KEPT; i++)
        put(text, "  %%y%d = fadd double %%y%d, %%x%d\n", i, i - 1, i);
    put(text, "  call void @add_number(double %%y%d)\n  ret i64 %%s%d\n}\n", KEPT - 1, KEPT);
}

static const char leaving[] =
    "define i64 @leave(i64 %n) noinline uwtable {\n"
    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(\n"
    "      i64 1, i32 48, ptr null, i32 0, i64 %n)\n"
    "  %m = add i64 %n, 1\n"
    "  ret i64 %m\n"
    "}\n"
    "define i64 @miss(i64 %n) noinline uwtable {\n"
    "  %p = inttoptr i64 %n to ptr\n"
    "  %r = call anyregcc i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(\n"
    "      i64 2, i32 48, ptr null, i32 1, ptr %p)\n"
    "  ret i64 %r\n"
    "}\n";

static int64_t go_on(int64_t n);

static function *leave, *miss;
static int64_t (*through)(int64_t n, double x);

static cairn_engine *load(void)
{
    static struct text text;
    struct cairn_error error = {0};
    cairn_engine *engine;
    text.size = 0;
    put(&text, SUPPORT_INTRINSICS "declare i64 @go_on(i64)\ndeclare void @add_number(double)\n%s",
        leaving);
    put_through(&text);
    const struct support_symbol symbols[] = {{"go_on", (const void *)(uintptr_t)go_on},
                                             {"add_number", (const void *)(uintptr_t)add_number},
                                             {NULL, NULL}};
    const struct cairn_engine_options options = {.optimisation_level = 2,
                                                 .load = support_symbols(symbols)};
    enum cairn_status status = cairn_engine_create(
        runtime, support_parse_valid(context, text.bytes), &options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    leave = get(engine, "leave");
    miss = get(engine, "miss");
    through = (int64_t(*)(int64_t, double))(uintptr_t)get(engine, "through");
    return engine;
}

/* ---- A stack: C functions, of which some catch, and compiled functions between them ---- */

struct protection {
    struct cairn_context context;
    struct protection *outer;
    int depth;
};

static struct {
    uint64_t random;
    struct protection *protection;
    bool catches[DEPTH_MAX];
    int depth;      /* number of compiled functions */
    int catcher;    /* the depth at which the error must be caught; -1: nothing is thrown */
    bool from_miss; /* thrown by the handler of a cache */
    int thrown;
    int caught;
} vm;

/* Selects a protection, and resumes there. */
static void throw_from(struct cairn_exit_call *call)
{
    struct cairn_error error = {0};
    struct protection *to = vm.protection;
    if (vm.catcher < 0)
        return;
    while (to->depth != vm.catcher)
        to = to->outer;
    vm.protection = to;
    vm.thrown++;
    enum cairn_status status = cairn_exit_resume(call, &to->context, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}

static void throw_at_exit(struct cairn_exit_call *call, void *user)
{
    ck_assert_ptr_eq(user, &vm);
    throw_from(call);
}

static void throw_at_miss(struct cairn_ic_miss *missed, void *user)
{
    ck_assert_ptr_eq(user, &vm);
    throw_from(missed->call);
}

/* What compiled code calls: the next compiled function, protected or not. */
static __attribute__((noinline)) int64_t call_next(int64_t n)
{
    if (n == 1)
        return vm.from_miss ? miss(n) : leave(n);
    return through(n - 1, (double)(n - 1));
}

static int64_t go_on(int64_t n)
{
    struct protection here = {.outer = vm.protection, .depth = (int)n};
    if (!vm.catches[n])
        return call_next(n);
    vm.protection = &here;
    if (cairn_context_save(&here.context) != 0) {
        ck_assert_int_eq(here.depth, vm.catcher);
        ck_assert_ptr_eq(vm.protection, &here);
        vm.caught++;
        vm.protection = here.outer;
        return THROWN;
    }
    int64_t result = call_next(n);
    vm.protection = here.outer;
    return result;
}

/* ---- Running ---- */

static int64_t sum_from(int n)
{
    int64_t sum = 0;
    for (; n <= vm.depth; n++)
        sum += (int64_t)n * (KEPT * (KEPT + 1) / 2);
    return sum;
}

/* Chooses a stack and where the error is caught. */
static void choose(void)
{
    vm.depth = 1 + (int)sample_random(&vm.random, DEPTH_MAX - 2);
    vm.catcher = -1;
    for (int i = 1; i <= vm.depth; i++) {
        vm.catches[i] = sample_random(&vm.random, 3) == 0;
        if (vm.catches[i] && sample_random(&vm.random, 2) == 0)
            vm.catcher = i;
    }
}

static void run_once(void)
{
    int first = vm.catcher < 0 ? 1 : vm.catcher;
    int64_t end = vm.from_miss ? 0 : 2;
    vm.thrown = vm.caught = 0;
    numbers = 0;
    int64_t result = through(vm.depth, vm.depth);
    ck_assert_int_eq(vm.thrown, vm.catcher >= 0);
    ck_assert_int_eq(vm.caught, vm.catcher >= 0);
    ck_assert_ptr_null(vm.protection);
    ck_assert_int_eq(result, sum_from(first) + (vm.catcher < 0 ? end : THROWN));
    ck_assert(numbers == (double)sum_from(first));
}

static cairn_exit *leave_at_site(cairn_exit_handler *handler)
{
    struct cairn_error error = {0};
    cairn_exit *exit;
    cairn_site *site = cairn_runtime_find_site(runtime, SITE, &error);
    ck_assert_msg(site != NULL, "%s", error.message);
    ck_assert_ok(cairn_site_leave(site, handler, &vm, CAIRN_RELAXED, &exit, NULL));
    return exit;
}

START_TEST(a_throw_restores_the_registers_of_the_function_that_catches)
{
    cairn_engine *engine = load();
    cairn_exit *exit = leave_at_site(throw_at_exit);
    vm.random = support_seed_or(20261123);
    for (int i = 0; i < ROUNDS; i++) {
        choose();
        run_once();
    }
    cairn_exit_destroy(exit);
    cairn_engine_destroy(engine);
}
END_TEST

START_TEST(handlers_of_misses_throw)
{
    cairn_engine *engine = load();
    struct cairn_error error = {0};
    cairn_ic *ic;
    const struct cairn_ic_options options = {.handler = throw_at_miss, .user = &vm};
    cairn_site *site = cairn_runtime_find_site(runtime, CACHE, &error);
    enum cairn_status status = cairn_ic_create(site, &options, &ic, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    vm.random = support_seed_or(20261124);
    vm.from_miss = true;
    for (int i = 0; i < ROUNDS; i++) {
        do
            choose();
        while (vm.catcher < 0); /* the result of an unanswered miss is unspecified */
        run_once();
    }
    ck_assert_ok(cairn_ic_destroy(ic, CAIRN_RELAXED, NULL));
    cairn_engine_destroy(engine);
}
END_TEST

/* ---- The same context again and again ---- */

static struct cairn_context once;

static void throw_to_once(struct cairn_exit_call *call, void *user)
{
    (void)user;
    ck_assert_ok(cairn_exit_continue(call, NULL, NULL));
    ck_assert_ok(cairn_exit_resume(call, &once, NULL));
}

START_TEST(a_context_is_resumed_any_number_of_times_at_the_same_stack_pointer)
{
    enum { TIMES = 10000 };
    cairn_engine *engine = load();
    cairn_exit *exit = leave_at_site(throw_to_once);
    volatile int times = 0;
    (void)cairn_context_save(&once);
    if (times++ < TIMES)
        ck_abort_msg("returned %lld", (long long)leave(5));
    cairn_exit_destroy(exit);
    cairn_engine_destroy(engine);
}
END_TEST

static void change_mind(struct cairn_exit_call *call, void *user)
{
    (void)user;
    const struct cairn_value result = cairn_value_of_integer(64, 77);
    ck_assert_ok(cairn_exit_resume(call, &once, NULL));
    ck_assert_ok(cairn_exit_return(call, &result, 1, NULL));
}

START_TEST(the_last_action_is_carried_out)
{
    cairn_engine *engine = load();
    cairn_exit *exit = leave_at_site(change_mind);
    ck_assert_int_eq(cairn_context_save(&once), 0);
    ck_assert_int_eq(leave(5), 77);
    cairn_exit_destroy(exit);
    cairn_engine_destroy(engine);
}
END_TEST

/* An exit that C code calls has a foreign frame. */
START_TEST(an_exit_that_was_called_from_c_resumes)
{
    cairn_exit *exit;
    ck_assert_ok(cairn_exit_create(runtime, throw_to_once, NULL, &exit, NULL));
    if (cairn_context_save(&once) == 0) {
        ((void (*)(void))(uintptr_t)cairn_exit_target(exit))();
        ck_abort_msg("the call returned");
    }
    cairn_exit_destroy(exit);
}
END_TEST

/* ---- Errors ---- */

static void refuse(struct cairn_exit_call *call, void *user)
{
    struct cairn_error error;
    struct cairn_context target = {{0}};
    (void)user;
    ck_assert_int_eq(cairn_exit_resume(call, NULL, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_exit_resume(call, &target, &error), CAIRN_ERROR_NOT_FOUND);
    ck_assert_int_eq(cairn_context_save(&target), 0);
    ck_assert_int_eq(cairn_exit_resume(call, &target, &error), CAIRN_ERROR_ARGUMENT);
    assert_says(&error, "is further in than the site's");
    const uint64_t none = 0;
    ck_assert_int_eq(cairn_context_save(&target), 0);
    ck_assert_ok(cairn_context_write(&target, CAIRN_REGISTER_PC, &none, sizeof none, NULL));
    ck_assert_int_eq(cairn_exit_resume(call, &target, &error), CAIRN_ERROR_NOT_FOUND);
    assert_says(&error, "no program counter");
}

START_TEST(contexts_that_cannot_be_resumed_are_refused_and_the_code_continues)
{
    cairn_engine *engine = load();
    cairn_exit *exit = leave_at_site(refuse);
    ck_assert_int_eq(leave(5), 6);
    cairn_exit_destroy(exit);
    cairn_engine_destroy(engine);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, a_throw_restores_the_registers_of_the_function_that_catches);
    tcase_add_test(tests, handlers_of_misses_throw);
    tcase_add_test(tests, a_context_is_resumed_any_number_of_times_at_the_same_stack_pointer);
    tcase_add_test(tests, the_last_action_is_carried_out);
    tcase_add_test(tests, an_exit_that_was_called_from_c_resumes);
    tcase_add_test(tests, contexts_that_cannot_be_resumed_are_refused_and_the_code_continues);
}

int main(void) { return engine_main("throw", add_tests); }
