/* SPDX-License-Identifier: MIT */
#include "tests/llvm_engine_support.h"

#include <stdio.h>
#include <string.h>

LLVMContextRef context;
cairn_runtime *runtime;

static void set_up(void)
{
    context = LLVMContextCreate();
    ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL));
}

static void tear_down(void)
{
    cairn_runtime_destroy(runtime);
    LLVMContextDispose(context);
}

int engine_main(const char *name, void (*add_tests)(TCase *tests))
{
    Suite *suite = suite_create(name);
    TCase *tests = tcase_create("engine");
    tcase_set_timeout(tests, 30);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    add_tests(tests);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}

LLVMModuleRef parse_site(const char *name, unsigned id)
{
    char text[1024];
    snprintf(text, sizeof text,
             SUPPORT_INTRINSICS
             "define i64 @%s(i64 %%x) {\n"
             "  %%r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(\n"
             "      i64 %u, i32 16, ptr null, i32 1, i64 %%x)\n"
             "  ret i64 %%r\n"
             "}\n",
             name, id);
    return support_parse_valid(context, text);
}

LLVMModuleRef parse_constant(const char *name, int value)
{
    char text[256];
    snprintf(text, sizeof text, "define i64 @%s(i64 %%x) {\n  ret i64 %d\n}\n", name, value);
    return support_parse_valid(context, text);
}

LLVMModuleRef parse_call(const char *name, const char *callee)
{
    char text[256];
    snprintf(text, sizeof text,
             "declare i64 @%s(i64)\n"
             "define i64 @%s(i64 %%x) {\n"
             "  %%r = call i64 @%s(i64 %%x)\n"
             "  ret i64 %%r\n"
             "}\n",
             callee, name, callee);
    return support_parse_valid(context, text);
}

cairn_engine *create_engine(LLVMModuleRef module)
{
    struct cairn_error error = {0};
    cairn_engine *engine = NULL;
    enum cairn_status status = cairn_engine_create(runtime, module, NULL, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return engine;
}

cairn_engine *create_engine_at(LLVMModuleRef module, unsigned level)
{
    static const char *const passes[] = {"default<O0>", "default<O1>", "default<O2>",
                                         "default<O3>"};
    const struct cairn_engine_options options = {.optimisation_level = level,
                                                 .passes = passes[level]};
    struct cairn_error error = {0};
    cairn_engine *engine = NULL;
    enum cairn_status status = cairn_engine_create(runtime, module, &options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return engine;
}

size_t count_records(uint64_t id)
{
    struct cairn_record record;
    return cairn_runtime_find_id(runtime, id, &record, 1);
}

void add(cairn_engine *engine, LLVMModuleRef module)
{
    struct cairn_error error = {0};
    enum cairn_status status = cairn_engine_add_module(engine, module, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}

function *get(cairn_engine *engine, const char *name)
{
    struct cairn_error error = {0};
    void *address = support_compiled_function(engine, name, &error);
    ck_assert_msg(address != NULL, "%s", error.message);
    return (function *)(uintptr_t)address;
}

int64_t add_hundred(int64_t x) { return x + 100; }
int64_t add_thousand(int64_t x) { return x + 1000; }

void call_target(uint64_t id, function *target)
{
    struct cairn_error error = {0};
    cairn_site *site = cairn_runtime_find_site(runtime, id, &error);
    ck_assert_msg(site != NULL, "%s", error.message);
    enum cairn_status status =
        cairn_site_call(site, (const void *)(uintptr_t)target, CAIRN_RELAXED, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
}

struct cairn_runtime_statistics statistics(void)
{
    struct cairn_runtime_statistics result;
    cairn_runtime_statistics(runtime, &result);
    return result;
}

void assert_says(const struct cairn_error *error, const char *text)
{
    ck_assert_msg(strstr(error->message, text) != NULL, "%s", error->message);
}

void assert_not_loaded(cairn_engine *engine, const char *name, enum cairn_status status,
                       const char *text)
{
    struct cairn_error error = {0};
    ck_assert_ptr_null(support_compiled_function(engine, name, &error));
    ck_assert_int_eq(error.status, status);
    assert_says(&error, text);
}
