/*
 * Tests of the events that compiled code and its changes leave in a log.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm_engine_support.h"
#include "log_support.h"

#include <cairn/assumption.h>
#include <cairn/cairn.h>
#include <cairn/ic.h>
#include <stdio.h>
#include <string.h>

enum { SITE = 7, NAME_BYTES = 256, TEXT_BYTES = 1100 };

static char name[NAME_BYTES];
static struct log_file file;
static uint64_t module_number; /* in the log */

/* ---- The log of a test ---- */

static void begin_log_with(const struct cairn_log_options *options)
{
    cairn_log *log = NULL;
    log_name(name, sizeof name);
    ck_assert_ok(cairn_log_create(name, options, &log, NULL));
    ck_assert_ok(cairn_log_attach(log, runtime, NULL));
    cairn_log_destroy(log);
    ck_assert(log_open(&file, name));
}

static void end_log(void)
{
    log_close(&file);
    unlink(name);
}

static void begin_log(void)
{
    const struct cairn_log_options options = {.slot_count = 4096};
    begin_log_with(&options);
}

/* Returns the next event of this kind, whose name and text must be these, unless they are NULL. */
static const struct cairn_log_event *expect(enum cairn_log_kind kind, const char *about,
                                            const char *why)
{
    char text[TEXT_BYTES];
    file.used = file.header->next; /* the file is shared, so it grows */
    const struct cairn_log_event *event = log_next_of(&file, kind);
    ck_assert_msg(event != NULL, "no event of kind %d", (int)kind);
    if (about != NULL)
        ck_assert_str_eq(log_text(&file, event->name, text, sizeof text), about);
    if (why != NULL)
        ck_assert_str_eq(log_text(&file, event->text, text, sizeof text), why);
    return event;
}

/* Loads `int64_t f(int64_t)`, and checks the events of that. */
static function *load_logged(cairn_engine **engine)
{
    *engine = create_engine(parse_site("f", SITE));
    function *f = get(*engine, "f");
    const struct cairn_log_event *event = expect(CAIRN_LOG_COMPILATION, "f", "engine");
    ck_assert_uint_lt(event->a, event->b);
    event = expect(CAIRN_LOG_MODULE_LOADED, "engine: f", NULL);
    module_number = event->module;
    ck_assert_uint_ne(module_number, 0);
    ck_assert_uint_gt(event->a, 0);
    event = expect(CAIRN_LOG_FUNCTION, "f", NULL);
    ck_assert_uint_eq(event->module, module_number);
    ck_assert_uint_gt(event->a, 0);
    return f;
}

static cairn_site *find_site(void)
{
    cairn_site *site = cairn_runtime_find_site(runtime, SITE, NULL);
    ck_assert_ptr_nonnull(site);
    return site;
}

static void assert_at_site(const struct cairn_log_event *event)
{
    ck_assert_uint_eq(event->id, SITE);
    ck_assert_uint_eq(event->module, module_number);
    ck_assert_uint_ne(event->address, 0);
    ck_assert_uint_eq(event->thread, (uint32_t)getpid());
}

/* ---- Tests ---- */

START_TEST(modules_that_are_loaded_before_the_log_and_after_it_are_recorded)
{
    cairn_engine *first = create_engine(parse_constant("g", 5)), *second;
    ck_assert_int_eq(get(first, "g")(0), 5);
    begin_log();
    expect(CAIRN_LOG_MODULE_LOADED, NULL, NULL);
    expect(CAIRN_LOG_FUNCTION, "g", NULL);
    load_logged(&second);
    cairn_engine_destroy(second);
    ck_assert_uint_eq(expect(CAIRN_LOG_MODULE_RETIRED, NULL, NULL)->module, module_number);
    cairn_engine_destroy(first);
    uint64_t token = cairn_runtime_grace_start(runtime);
    ck_assert_uint_eq(expect(CAIRN_LOG_GRACE, NULL, NULL)->id, token);
    cairn_runtime_grace_end(runtime, token);
    const struct cairn_log_event *event = expect(CAIRN_LOG_GRACE, NULL, NULL);
    ck_assert_uint_eq(event->a, 1);
    ck_assert_uint_eq(event->b, 2);
    end_log();
}
END_TEST

START_TEST(changes_of_sites_are_recorded_with_state_and_target)
{
    static const enum cairn_strength strengths[] = {CAIRN_RELAXED, CAIRN_SYNC};
    cairn_engine *engine;
    begin_log();
    load_logged(&engine);
    const void *target = (const void *)(uintptr_t)add_hundred;
    ck_assert_ok(cairn_site_call(find_site(), target, strengths[_i], NULL));
    const struct cairn_log_event *event = expect(CAIRN_LOG_SITE_PATCHED, NULL, NULL);
    assert_at_site(event);
    ck_assert_uint_eq(event->a, CAIRN_SITE_CALL);
    ck_assert_uint_eq(event->b, (uintptr_t)target);
    ck_assert_ok(cairn_site_nop(find_site(), strengths[_i], NULL));
    event = expect(CAIRN_LOG_SITE_PATCHED, NULL, NULL);
    assert_at_site(event);
    ck_assert_uint_eq(event->a, CAIRN_SITE_NOP);
    ck_assert_uint_eq(event->b, 0);
    cairn_engine_destroy(engine);
    end_log();
}
END_TEST

static void describe(uint64_t key, char *text, size_t size, void *user)
{
    ck_assert_ptr_eq(user, &file);
    if (key == 8)
        snprintf(text, size, "shape %d", (int)key);
}

static void missed(struct cairn_ic_miss *miss, void *user)
{
    (void)miss;
    (void)user;
}

START_TEST(keys_of_caches_have_the_texts_of_the_host)
{
    const struct cairn_log_options options = {
        .slot_count = 4096, .describe_key = describe, .user = &file};
    cairn_engine *engine;
    cairn_ic *ic;
    begin_log_with(&options);
    load_logged(&engine);
    ck_assert_ok(
        cairn_ic_create(find_site(), &(struct cairn_ic_options){.handler = missed}, &ic, NULL));
    for (uint64_t key = 8; key <= 9; key++) {
        const struct cairn_ic_case added = {.guard = {.width = 8, .key = key},
                                            .action = CAIRN_IC_CALL,
                                            .target = (const void *)(uintptr_t)add_hundred};
        ck_assert_ok(cairn_ic_add(ic, &added, CAIRN_RELAXED, NULL));
    }
    expect(CAIRN_LOG_CACHE, "f", NULL);
    const struct cairn_log_event *event = expect(CAIRN_LOG_CACHE, "f", "shape 8");
    ck_assert_uint_eq(event->b, 8);
    ck_assert_uint_eq(expect(CAIRN_LOG_CACHE, "f", NULL)->text, 0);
    cairn_engine_destroy(engine);
    end_log();
}
END_TEST

static void leave(struct cairn_exit_call *call, void *user)
{
    const struct cairn_value result = cairn_value_of_integer(64, 123);
    (void)user;
    call->reason = "the test wants it";
    ck_assert_ok(cairn_exit_continue(call, &result, NULL));
}

START_TEST(exits_are_recorded_with_their_action_and_reason)
{
    cairn_engine *engine;
    cairn_exit *exit = NULL;
    begin_log();
    function *f = load_logged(&engine);
    ck_assert_ok(cairn_site_leave(find_site(), leave, NULL, CAIRN_SYNC, &exit, NULL));
    ck_assert_int_eq(f(1), 123);
    const struct cairn_log_event *event = expect(CAIRN_LOG_EXIT, "f", NULL);
    assert_at_site(event);
    ck_assert_uint_eq(event->a, UINT64_MAX);
    uint64_t arrival = event->clock;
    event = expect(CAIRN_LOG_DEOPT, "f", "the test wants it");
    assert_at_site(event);
    ck_assert_uint_eq(event->a, CAIRN_LOG_ACTION_CONTINUE);
    ck_assert_uint_gt(event->b, 0);
    ck_assert_double_le((double)event->b, (double)(event->clock - arrival) * 1e9 /
                                              (double)file.header->clock_hz * 1.1);
    cairn_exit_destroy(exit);
    cairn_engine_destroy(engine);
    end_log();
}
END_TEST

START_TEST(invalidations_name_the_functions_that_they_hit)
{
    cairn_engine *engine;
    cairn_exit *exit = NULL;
    cairn_invalidation *invalidation = NULL;
    begin_log();
    function *f = load_logged(&engine);
    ck_assert_ok(cairn_exit_create(runtime, leave, NULL, &exit, NULL));
    cairn_site *site = find_site();
    const struct cairn_invalidation_options options = {.sites = &site,
                                                       .site_count = 1,
                                                       .target = cairn_exit_target(exit),
                                                       .reason = "g was defined again"};
    ck_assert_ok(cairn_invalidate(runtime, &options, CAIRN_SYNC, &invalidation, NULL));
    const struct cairn_log_event *event = expect(CAIRN_LOG_INVALIDATION, "", "g was defined again");
    uint64_t number = event->a;
    ck_assert_uint_eq(event->b, 1);
    event = expect(CAIRN_LOG_INVALIDATED, "f", NULL);
    ck_assert_uint_eq(event->a, number);
    ck_assert_uint_eq(event->b, 1);
    ck_assert_uint_eq(event->module, module_number);
    ck_assert_int_eq(f(1), 123);
    cairn_invalidation_destroy(invalidation);
    cairn_exit_destroy(exit);
    cairn_engine_destroy(engine);
    end_log();
}
END_TEST

START_TEST(a_broken_assumption_is_recorded_as_an_invalidation)
{
    cairn_engine *engine;
    cairn_exit *exit = NULL;
    cairn_assumption *assumption = NULL;
    begin_log();
    load_logged(&engine);
    ck_assert_ok(cairn_exit_create(runtime, leave, NULL, &exit, NULL));
    ck_assert_ok(cairn_assumption_create(runtime, &assumption, NULL));
    ck_assert_ok(cairn_assumption_add(assumption, find_site(), cairn_exit_target(exit),
                                      CAIRN_RELAXED, NULL));
    ck_assert_ok(cairn_assumption_break(assumption, CAIRN_SYNC, NULL));
    ck_assert_uint_eq(expect(CAIRN_LOG_INVALIDATION, "", "assumption broken")->b, 1);
    expect(CAIRN_LOG_INVALIDATED, "f", NULL);
    cairn_assumption_destroy(assumption);
    cairn_exit_destroy(exit);
    cairn_engine_destroy(engine);
    end_log();
}
END_TEST

START_TEST(versions_are_recorded_with_their_number)
{
    cairn_engine *engine;
    cairn_entry *entry = NULL;
    begin_log();
    function *f = load_logged(&engine);
    const void *interpreter = (const void *)(uintptr_t)add_hundred;
    const struct cairn_entry_version version = {.code = (const void *)(uintptr_t)f};
    ck_assert_ok(cairn_entry_create(runtime, "an entry", NULL, interpreter, &entry, NULL));
    const struct cairn_log_event *event = expect(CAIRN_LOG_VERSION_INSTALLED, "an entry", NULL);
    ck_assert_uint_eq(event->a, 1);
    ck_assert_uint_eq(event->b, 0);
    ck_assert_ok(cairn_entry_install(entry, &version, CAIRN_SYNC, NULL));
    event = expect(CAIRN_LOG_VERSION_INSTALLED, "an entry", NULL);
    ck_assert_uint_eq(event->a, 2);
    ck_assert_uint_eq(event->b, 1);
    ck_assert_uint_eq(event->module, module_number);
    cairn_entry_destroy(entry);
    cairn_engine_destroy(engine);
    end_log();
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, modules_that_are_loaded_before_the_log_and_after_it_are_recorded);
    tcase_add_test(tests, keys_of_caches_have_the_texts_of_the_host);
    tcase_add_loop_test(tests, changes_of_sites_are_recorded_with_state_and_target, 0, 2);
    tcase_add_test(tests, exits_are_recorded_with_their_action_and_reason);
    tcase_add_test(tests, invalidations_name_the_functions_that_they_hit);
    tcase_add_test(tests, a_broken_assumption_is_recorded_as_an_invalidation);
    tcase_add_test(tests, versions_are_recorded_with_their_number);
}

int main(void) { return engine_main("log", add_tests); }
