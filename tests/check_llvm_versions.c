/*
 * Tests of entries whose versions are compiled: callers in LLVM's code, patch points and inline
 * caches that follow them, frames that leave a replaced version, modules that are retired with
 * their last version, and random replacements while threads call.
 *
 * SPDX-License-Identifier: MIT
 */
#include "allocator_support.h"
#include "llvm_engine_support.h"

#include <cairn/entry.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Entries ---- */

static cairn_signature *signature; /* i64 (i64) */
static cairn_entry *entry;

static int64_t interpret(int64_t x) { return x; }

static void create_entry(void)
{
    const struct cairn_type word = CAIRN_INTEGER(64);
    struct cairn_error error = {0};
    ck_assert_ok(cairn_signature_create(NULL, &word, 1, &word, 1, &signature, NULL));
    enum cairn_status status = cairn_entry_create(
        runtime, "f", signature, (const void *)(uintptr_t)interpret, &entry, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}

static void destroy_entry(void)
{
    cairn_entry_destroy(entry);
    cairn_signature_destroy(signature);
}

static struct cairn_entry_version version_of(function *code)
{
    return (struct cairn_entry_version){
        .code = (const void *)(uintptr_t)code, .signature = signature, .retires = true};
}

static void install_version(const struct cairn_entry_version *version)
{
    struct cairn_error error = {0};
    enum cairn_status status = cairn_entry_install(entry, version, CAIRN_SYNC, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}

static void install(function *code)
{
    const struct cairn_entry_version version = version_of(code);
    install_version(&version);
}

static int64_t call_entry(int64_t x)
{
    return ((function *)(uintptr_t)cairn_entry_target(entry))(x);
}

/* ---- Compiled versions ---- */

/* Code finds the entry by its name. */
static bool find_entry(void *user, const char *name, uint64_t *address)
{
    (void)user;
    *address = (uintptr_t)cairn_entry_target(entry);
    return strcmp(name, "f") == 0;
}

static cairn_engine *create_engine_with_entry(LLVMModuleRef module)
{
    const struct cairn_engine_options options = {.load = {.find_symbol = find_entry}};
    struct cairn_error error = {0};
    cairn_engine *engine = NULL;
    enum cairn_status status = cairn_engine_create(runtime, module, &options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return engine;
}

/* A function that returns the number in a variable of its module, so that it needs its own TOC
 * pointer on PPC64. */
static LLVMModuleRef parse_variable(const char *name, int value)
{
    char text[256];
    snprintf(text, sizeof text,
             "@v = global i64 %d\n"
             "define i64 @%s(i64 %%x) {\n"
             "  %%v = load i64, %s @v\n"
             "  %%r = add i64 %%x, %%v\n"
             "  ret i64 %%r\n"
             "}\n",
             value, name, LLVM_VERSION_MAJOR >= 15 ? "ptr" : "i64*");
    return support_parse_valid(context, text);
}

START_TEST(compiled_callers_follow_the_entry)
{
    create_entry();
    cairn_engine *engine = create_engine_with_entry(parse_call("caller", "f"));
    function *caller = get(engine, "caller");
    ck_assert_int_eq(caller(5), 5);
    for (int i = 1; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "f.%d", i);
        add(engine, parse_variable(name, 1000 * i));
        install(get(engine, name));
        ck_assert_int_eq(caller(5), 1000 * i + 5);
        ck_assert_int_eq(call_entry(5), 1000 * i + 5);
        cairn_runtime_quiesce(runtime);
    }
    ck_assert_uint_eq(statistics().module_count, 2);
    cairn_engine_destroy(engine);
    destroy_entry();
}
END_TEST

#if defined __x86_64__
/* The caller's code has the direct call of the entry. */
START_TEST(a_caller_reaches_the_entry_by_one_direct_call)
{
    bool found = false;
    create_entry();
    cairn_engine *engine = create_engine_with_entry(parse_call("caller", "f"));
    uintptr_t code = (uintptr_t)get(engine, "caller");
    for (uintptr_t at = code; at < code + 32 && !found; at++) {
        int32_t distance;
        memcpy(&distance, (const void *)(at + 1), sizeof distance);
        found = *(const uint8_t *)at == 0xE8 &&
                at + 5 + (uintptr_t)(intptr_t)distance == (uintptr_t)cairn_entry_target(entry);
    }
    ck_assert(found);
    cairn_engine_destroy(engine);
    destroy_entry();
}
END_TEST
#endif

START_TEST(patch_points_follow_the_entry)
{
    enum { SITE = 9 };
    create_entry();
    cairn_engine *engine = create_engine_with_entry(parse_site("caller", SITE));
    function *caller = get(engine, "caller");
    call_target(SITE, (function *)(uintptr_t)cairn_entry_target(entry));
    ck_assert_int_eq(caller(5), 5);
    add(engine, parse_variable("f.1", 700));
    install(get(engine, "f.1"));
    ck_assert_int_eq(caller(5), 705);
    cairn_engine_destroy(engine);
    destroy_entry();
}
END_TEST

/* ---- Inline caches ---- */

static unsigned misses;

/* Adds a case, and makes the call that the site would have made with it. */
static void missed(struct cairn_ic_miss *miss, void *user)
{
    const struct cairn_ic_case added = {
        .guard = {.width = 8, .key = 77}, .action = CAIRN_IC_CALL, .target = user};
    struct cairn_value result;
    misses++;
    ck_assert_ok(cairn_ic_add(miss->ic, &added, CAIRN_RELAXED, NULL));
    ck_assert_ok(cairn_call(signature, user, miss->operands, 1, &result, NULL));
    ck_assert_ok(cairn_ic_return(miss, &result, NULL));
}

START_TEST(call_cases_of_caches_follow_the_entry)
{
    enum { SITE = 3 };
    static const int64_t object = 77;
    char text[512];
    create_entry();
    misses = 0;
    snprintf(text, sizeof text,
             SUPPORT_INTRINSICS
             "define i64 @access(i64 %%object) {\n"
             "  %%r = call %si64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(\n"
             "      i64 %d, i32 64, ptr null, i32 1, i64 %%object)\n"
             "  ret i64 %%r\n"
             "}\n",
             _i == 0 ? "" : "anyregcc ", SITE);
    cairn_engine *engine = create_engine_with_entry(support_parse_valid(context, text));
    function *access = get(engine, "access");
    const struct cairn_ic_options options = {.handler = missed,
                                             .user = (void *)cairn_entry_target(entry)};
    cairn_ic *ic;
    ck_assert_ok(
        cairn_ic_create(cairn_runtime_find_site(runtime, SITE, NULL), &options, &ic, NULL));
    ck_assert_int_eq(access((intptr_t)&object), (intptr_t)&object);
    add(engine, parse_variable("f.1", 5));
    install(get(engine, "f.1"));
    ck_assert_int_eq(access((intptr_t)&object), (intptr_t)&object + 5);
    add(engine, parse_variable("f.2", 6));
    install(get(engine, "f.2"));
    cairn_runtime_quiesce(runtime);
    ck_assert_int_eq(access((intptr_t)&object), (intptr_t)&object + 6);
    ck_assert_uint_eq(misses, 1);
    cairn_engine_destroy(engine);
    destroy_entry();
}
END_TEST

/* ---- The modules of versions ---- */

/* Modules that are not the test's: exits load one. */
static uint32_t other_modules;

static void expect_modules(uint32_t published, uint32_t retired)
{
    ck_assert_uint_eq(statistics().module_count, published + other_modules);
    ck_assert_uint_eq(statistics().retired_count, retired);
}

START_TEST(a_module_is_retired_with_the_last_of_its_versions)
{
    create_entry();
    LLVMModuleRef two = parse_constant("f.1", 1);
    cairn_engine *engine = create_engine_with_entry(two);
    add(engine, parse_constant("f.2", 2));
    function *first = get(engine, "f.1");
    function *second = get(engine, "f.2");
    cairn_entry *of_second;
    ck_assert_ok(cairn_entry_create(runtime, "g", signature, (const void *)(uintptr_t)second,
                                    &of_second, NULL));
    install(first);
    expect_modules(1, 0);
    install(interpret);
    expect_modules(1, 0);
    const struct cairn_entry_version other = version_of(interpret);
    ck_assert_ok(cairn_entry_install(of_second, &other, CAIRN_RELAXED, NULL));
    expect_modules(0, 1);
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 1);
    cairn_entry_destroy(of_second);
    cairn_engine_destroy(engine);
    destroy_entry();
}
END_TEST

START_TEST(a_destroyed_entry_releases_its_module)
{
    create_entry();
    cairn_engine *engine = create_engine_with_entry(parse_constant("f.1", 1));
    install(get(engine, "f.1"));
    destroy_entry();
    expect_modules(0, 1);
    ck_assert_uint_eq(cairn_runtime_quiesce(runtime), 1);
    cairn_engine_destroy(engine);
}
END_TEST

START_TEST(a_version_that_does_not_retire_can_be_installed_again)
{
    create_entry();
    cairn_engine *engine = create_engine_with_entry(parse_constant("f.1", 1));
    struct cairn_entry_version version = version_of(get(engine, "f.1"));
    version.retires = false;
    for (int i = 0; i < 3; i++) {
        install_version(&version);
        ck_assert_int_eq(call_entry(8), 1);
        install(interpret);
        ck_assert_int_eq(call_entry(8), 8);
        cairn_runtime_quiesce(runtime);
    }
    expect_modules(1, 0);
    cairn_engine_destroy(engine);
    destroy_entry();
}
END_TEST

START_TEST(an_installed_version_is_not_freed)
{
    create_entry();
    cairn_engine *engine = create_engine_with_entry(parse_constant("f.1", 1));
    install(get(engine, "f.1"));
    cairn_engine_destroy(engine); /* retires it */
    cairn_runtime_quiesce(runtime);
    expect_modules(0, 1);
    ck_assert_int_eq(call_entry(8), 1);
    install(interpret);
    cairn_runtime_quiesce(runtime);
    expect_modules(0, 0);
    destroy_entry();
}
END_TEST

START_TEST(installing_the_same_code_again_keeps_its_module)
{
    create_entry();
    cairn_engine *engine = create_engine_with_entry(parse_constant("f.1", 1));
    function *code = get(engine, "f.1");
    install(code);
    install(code);
    cairn_runtime_quiesce(runtime);
    expect_modules(1, 0);
    ck_assert_int_eq(call_entry(8), 1);
    cairn_engine_destroy(engine);
    destroy_entry();
}
END_TEST

/* ---- Refusals ---- */

static void expect_refused(const struct cairn_entry_version *version, enum cairn_status status,
                           const char *text)
{
    struct cairn_error error = {0};
    ck_assert_int_eq(cairn_entry_install(entry, version, CAIRN_SYNC, &error), status);
    assert_says(&error, text);
    ck_assert_int_eq(call_entry(8), 8);
}

START_TEST(a_version_with_another_signature_is_refused_with_both_sides)
{
    create_entry();
    LLVMModuleRef module = support_parse_valid(context, "define double @f.1(i64 %x, double %y) {\n"
                                                        "  ret double %y\n"
                                                        "}\n");
    LLVMTypeRef type = LLVMGlobalGetValueType(LLVMGetNamedFunction(module, "f.1"));
    cairn_signature *other;
    ck_assert_ok(cairn_signature_of_function(NULL, type, &other, NULL));
    cairn_engine *engine = create_engine_with_entry(module);
    struct cairn_entry_version version = version_of(get(engine, "f.1"));
    version.signature = other;
    expect_refused(&version, CAIRN_ERROR_ARGUMENT,
                   "entry 'f' has the type i64 (i64), and the version 'f.1' the type "
                   "double (i64, double)");
    expect_modules(1, 0);
    cairn_signature_destroy(other);
    cairn_engine_destroy(engine);
    destroy_entry();
}
END_TEST

START_TEST(a_version_in_a_retired_module_is_refused)
{
    create_entry();
    cairn_engine *engine = create_engine_with_entry(parse_constant("f.1", 1));
    const struct cairn_entry_version version = version_of(get(engine, "f.1"));
    cairn_module_retire(cairn_runtime_find_module(runtime, (uintptr_t)version.code));
    cairn_engine_destroy(engine);
    expect_modules(0, 1);
    if (cairn_architecture_host() != CAIRN_ARCHITECTURE_PPC64_ELFV1)
        expect_refused(&version, CAIRN_ERROR_STATE, "has been retired already");
    destroy_entry();
}
END_TEST

/* ---- Frames that leave ---- */

enum { ENTRY_SITE = 1, AFTER_CALL = 2 };

static _Atomic unsigned left_at_entry;
static _Atomic unsigned left_after_call;

/* The remainder of a frame, interpreted: 100 times what the call has returned. */
static void leave(struct cairn_exit_call *call, void *user)
{
    struct cairn_value live;
    (void)user;
    ck_assert_ok(cairn_frame_value(&call->frame, call->record, 0, &live, NULL));
    bool is_entry = cairn_record_id(call->record) == ENTRY_SITE;
    int64_t number = cairn_value_signed(&live);
    left_at_entry += is_entry;
    left_after_call += !is_entry;
    const struct cairn_value result =
        cairn_value_of_integer(64, is_entry ? call_entry(number) : 100 * number);
    ck_assert_ok(cairn_exit_return(call, &result, 1, NULL));
}

/* What compiled versions call. */
static int64_t depth;
static enum cairn_status (*in_callee)(void);

static int64_t step(int64_t x)
{
    if (depth > 0) {
        depth--;
        return call_entry(x + 1);
    }
    if (in_callee != NULL)
        ck_assert_ok(in_callee());
    return x + 1;
}

static bool find_step(void *user, const char *name, uint64_t *address)
{
    (void)user;
    *address = (uintptr_t)step;
    return strcmp(name, "step") == 0;
}

/* i64 f.1(x): a site, a call of step(x), a site; returns 10 times what the call has returned. */
static const char leavable_text[] =
    SUPPORT_INTRINSICS "declare i64 @step(i64)\n"
                       "define i64 @f.1(i64 %x) uwtable {\n"
                       "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(\n"
                       "      i64 1, i32 16, ptr null, i32 0, i64 %x)\n"
                       "  %y = call i64 @step(i64 %x)\n"
                       "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(\n"
                       "      i64 2, i32 16, ptr null, i32 0, i64 %y)\n"
                       "  %r = mul i64 %y, 10\n"
                       "  ret i64 %r\n"
                       "}\n";

static cairn_engine *create_leavable(void)
{
    const struct cairn_engine_options options = {.load = {.find_symbol = find_step}};
    cairn_engine *engine;
    struct cairn_error error = {0};
    enum cairn_status status = cairn_engine_create(
        runtime, support_parse_valid(context, leavable_text), &options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    left_at_entry = left_after_call = 0;
    depth = 0;
    in_callee = NULL;
    return engine;
}

static cairn_exit *the_exit;

static void create_exit(void)
{
    uint32_t before = statistics().module_count;
    ck_assert_ok(cairn_exit_create(runtime, leave, NULL, &the_exit, NULL));
    other_modules = statistics().module_count - before;
}

static struct cairn_entry_version leavable(cairn_engine *engine)
{
    create_exit();
    struct cairn_entry_version version = version_of(get(engine, "f.1"));
    version.leave = cairn_exit_target(the_exit);
    return version;
}

static enum cairn_status install_interpreter(void)
{
    const struct cairn_entry_version version = version_of(interpret);
    return cairn_entry_install(entry, &version, CAIRN_SYNC, NULL);
}

START_TEST(waiting_frames_of_a_replaced_version_leave)
{
    enum { DEPTH = 3 };
    create_entry();
    cairn_engine *engine = create_leavable();
    const struct cairn_entry_version version = leavable(engine);
    install_version(&version);
    ck_assert_int_eq(call_entry(4), 50);
    depth = DEPTH;
    in_callee = install_interpreter;
    ck_assert_int_eq(call_entry(4), INT64_C(8) * 100 * 100 * 100 * 100);
    ck_assert_uint_eq(left_after_call, DEPTH + 1);
    ck_assert_uint_eq(left_at_entry, 0);
    expect_modules(0, 1);
    /* A caller that had read the old version's address before leaves at the function's entry. */
    ck_assert_int_eq(((function *)(uintptr_t)version.code)(4), 4);
    ck_assert_uint_eq(left_at_entry, 1);
    cairn_runtime_quiesce(runtime);
    expect_modules(0, 0);
    cairn_exit_destroy(the_exit);
    cairn_engine_destroy(engine);
    destroy_entry();
}
END_TEST

static bool is_after_call(const struct cairn_site_description *site, void *user)
{
    (void)user;
    return site->id == AFTER_CALL;
}

START_TEST(only_chosen_sites_leave)
{
    create_entry();
    cairn_engine *engine = create_leavable();
    struct cairn_entry_version version = leavable(engine);
    version.accepts = is_after_call;
    install_version(&version);
    install(interpret);
    ck_assert_int_eq(((function *)(uintptr_t)version.code)(4), 500);
    ck_assert_uint_eq(left_at_entry, 0);
    ck_assert_uint_eq(left_after_call, 1);
    cairn_exit_destroy(the_exit);
    cairn_engine_destroy(engine);
    destroy_entry();
}
END_TEST

START_TEST(frames_return_to_a_version_that_does_not_leave)
{
    create_entry();
    cairn_engine *engine = create_leavable();
    install(get(engine, "f.1"));
    in_callee = install_interpreter;
    ck_assert_int_eq(call_entry(4), 50);
    ck_assert_int_eq(call_entry(4), 4);
    cairn_engine_destroy(engine);
    destroy_entry();
}
END_TEST

START_TEST(a_version_without_sites_is_replaced_all_the_same)
{
    create_entry();
    cairn_engine *engine = create_engine_with_entry(parse_constant("f.1", 1));
    create_exit();
    struct cairn_entry_version version = version_of(get(engine, "f.1"));
    version.leave = cairn_exit_target(the_exit);
    install_version(&version);
    ck_assert_int_eq(call_entry(8), 1);
    install(interpret);
    ck_assert_int_eq(call_entry(8), 8);
    expect_modules(0, 1);
    cairn_exit_destroy(the_exit);
    cairn_engine_destroy(engine);
    destroy_entry();
}
END_TEST

/* Replacing a version needs memory for the change of its sites. */
START_TEST(a_failed_installation_leaves_the_old_version)
{
    struct support_allocator allocations = {0};
    const struct cairn_runtime_options options = {.allocator = support_counting(&allocations)};
    cairn_runtime *usual = runtime;
    unsigned failures = 0;
    ck_assert_ok(cairn_runtime_create(&options, &runtime, NULL));
    create_entry();
    cairn_engine *engine = create_leavable();
    const struct cairn_entry_version version = leavable(engine);
    add(engine, parse_constant("f.2", 4));
    const struct cairn_entry_version other = version_of(get(engine, "f.2"));
    install_version(&version);
    enum cairn_status status = CAIRN_ERROR_MEMORY;
    for (size_t i = 1; status != CAIRN_OK; i++) {
        ck_assert_int_eq(call_entry(4), 50);
        allocations.fail_at = allocations.calls + i;
        status = cairn_entry_install(entry, &other, CAIRN_RELAXED, NULL);
        allocations.fail_at = 0;
        ck_assert(status == CAIRN_OK || status == CAIRN_ERROR_MEMORY);
        failures += status != CAIRN_OK;
    }
    ck_assert_uint_gt(failures, 2);
    ck_assert_int_eq(call_entry(4), 4);
    cairn_exit_destroy(the_exit);
    cairn_engine_destroy(engine);
    destroy_entry();
    cairn_runtime_destroy(runtime);
    ck_assert_uint_eq(allocations.outstanding_bytes, 0);
    runtime = usual;
}
END_TEST

/* ---- Random replacements while threads call ---- */

enum { CALLERS = 3, INSTALLATIONS = 200, GRACE = 8 };

static struct {
    _Atomic bool stop;
    _Atomic unsigned wrong;
    _Atomic uint64_t passes[CALLERS];
} race;

/* Each version returns 10 times, and each exit 100 times, what step has returned; the interpreter
 * returns its argument. Each round is a point that the grace periods wait for. */
static void *call_all_the_time(void *index)
{
    while (!atomic_load(&race.stop)) {
        int64_t result = call_entry(6);
        race.wrong += result != 6 && result != 70 && result != 700;
        race.passes[(uintptr_t)index]++;
    }
    return NULL;
}

/* Ends a grace period when all callers have passed a point. */
static void wait_for_callers(void)
{
    uint64_t token = cairn_runtime_grace_start(runtime);
    for (int i = 0; i < CALLERS; i++)
        for (uint64_t from = race.passes[i]; race.passes[i] < from + 2;)
            sched_yield();
    cairn_runtime_grace_end(runtime, token);
}

/* Compiles the version once more. */
static function *compile_again(cairn_engine *engine)
{
    add(engine, support_parse_valid(context, leavable_text));
    return get(engine, "f.1");
}

START_TEST(threads_call_while_random_versions_are_installed_and_freed)
{
    pthread_t callers[CALLERS];
    uint64_t random = support_seed_or(18);
    unsigned installed = 0;
    create_entry();
    cairn_engine *engine = create_leavable();
    (void)leavable(engine);
    install(get(engine, "f.1"));
    memset(&race, 0, sizeof race);
    for (uintptr_t i = 0; i < CALLERS; i++)
        pthread_create(&callers[i], NULL, call_all_the_time, (void *)i);
    for (int i = 0; i < INSTALLATIONS; i++) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        struct cairn_entry_version version =
            version_of(random >> 60 < 3 ? interpret : compile_again(engine));
        if (version.code != (const void *)(uintptr_t)interpret && (random >> 50 & 1) != 0)
            version.leave = cairn_exit_target(the_exit);
        race.wrong += cairn_entry_install(entry, &version, (enum cairn_strength)(random >> 40 & 1),
                                          NULL) != CAIRN_OK;
        installed++;
        if ((random >> 32) % GRACE == 0)
            wait_for_callers();
    }
    wait_for_callers();
    install(interpret);
    atomic_store(&race.stop, true);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
    ck_assert_uint_eq(race.wrong, 0);
    ck_assert_uint_eq(installed, INSTALLATIONS);
    cairn_runtime_quiesce(runtime);
    expect_modules(0, 0);
    cairn_exit_destroy(the_exit);
    cairn_engine_destroy(engine);
    destroy_entry();
}
END_TEST

/* ---- Forked children ---- */

START_TEST(a_child_replaces_and_frees_versions_of_its_own)
{
    int result = 1;
    create_entry();
    cairn_engine *engine = create_leavable();
    const struct cairn_entry_version version = leavable(engine);
    install_version(&version);
    pid_t child = fork();
    if (child == 0) {
        bool is_right = call_entry(4) == 50 && install_interpreter() == CAIRN_OK &&
                        call_entry(4) == 4 && cairn_runtime_quiesce(runtime) == 1;
        _exit(is_right ? 0 : 1);
    }
    waitpid(child, &result, 0);
    ck_assert_int_eq(result, 0);
    ck_assert_int_eq(call_entry(4), 50);
    expect_modules(1, 0);
    ck_assert_ok(install_interpreter());
    ck_assert_int_eq(call_entry(4), 4);
    cairn_exit_destroy(the_exit);
    cairn_engine_destroy(engine);
    destroy_entry();
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, compiled_callers_follow_the_entry);
#if defined __x86_64__
    tcase_add_test(tests, a_caller_reaches_the_entry_by_one_direct_call);
#endif
    tcase_add_test(tests, patch_points_follow_the_entry);
    tcase_add_loop_test(tests, call_cases_of_caches_follow_the_entry, 0, 2);
    tcase_add_test(tests, a_module_is_retired_with_the_last_of_its_versions);
    tcase_add_test(tests, a_destroyed_entry_releases_its_module);
    tcase_add_test(tests, a_version_that_does_not_retire_can_be_installed_again);
    tcase_add_test(tests, an_installed_version_is_not_freed);
    tcase_add_test(tests, installing_the_same_code_again_keeps_its_module);
    tcase_add_test(tests, a_version_with_another_signature_is_refused_with_both_sides);
    tcase_add_test(tests, a_version_in_a_retired_module_is_refused);
    tcase_add_test(tests, waiting_frames_of_a_replaced_version_leave);
    tcase_add_test(tests, only_chosen_sites_leave);
    tcase_add_test(tests, frames_return_to_a_version_that_does_not_leave);
    tcase_add_test(tests, a_version_without_sites_is_replaced_all_the_same);
    tcase_add_test(tests, a_failed_installation_leaves_the_old_version);
    tcase_add_test(tests, threads_call_while_random_versions_are_installed_and_freed);
    tcase_add_test(tests, a_child_replaces_and_frees_versions_of_its_own);
}

int main(void) { return engine_main("compiled versions", add_tests); }
