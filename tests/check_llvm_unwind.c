/*
 * Tests of the unwind rules of LLVM's code on a real stack. Random functions call each other, and
 * the last one calls the host, which walks back through them and its own functions, in parallel
 * with the system's unwinder.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm_support.h"

#include "runtime/module.h"
#include "tests/process_frames.h"
#include "tests/stackmap_support.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static LLVMContextRef context;
static cairn_runtime *runtime;
static struct process_tables *tables;

static void set_up(void)
{
    context = LLVMContextCreate();
    ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL));
    tables = process_tables_create();
}

static void tear_down(void)
{
    process_tables_destroy(tables);
    cairn_runtime_destroy(runtime);
    LLVMContextDispose(context);
}

/* ---- The host's functions that compiled code calls ---- */

static void touch(void *memory) { memset(memory, 0x5A, 8); }

static const cairn_module *module_of(const struct process_frame *frame)
{
    return cairn_runtime_find_module(runtime, frame->pc - 1);
}

static unsigned compiled_frames;

/* Called by the last compiled function. The engine has registered their tables with the
 * system's unwinder. */
static int64_t walk(int64_t x)
{
    static struct process_frame expected[PROCESS_FRAMES_MAX];
    size_t count = process_frames_reference(expected);
    struct process_frame frame = expected[0];
    for (size_t i = 1; i < count; i++) {
        const cairn_module *module = module_of(&frame);
        if (module != NULL)
            process_frame_step_by(module->unwind, &frame);
        else
            process_frame_step(tables, &frame);
        process_frame_assert_same(&frame, &expected[i]);
        compiled_frames += module != NULL;
    }
    return x + 1;
}

/* The place at which the compiled function waits for its call. */
static const struct unwind_row *row_of_caller;
static uint64_t pc_of_caller;

static __attribute__((noinline)) int64_t find_caller(int64_t x)
{
    struct process_frame caller = {.pc = (uintptr_t)__builtin_return_address(0)};
    pc_of_caller = caller.pc;
    row_of_caller = unwind_find_return(module_of(&caller)->unwind, caller.pc);
    return x;
}

/* ---- Random functions ---- */

struct text {
    char bytes[64 << 10];
    size_t size;
    uint64_t random;
};

static void put(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int size =
        vsnprintf(text->bytes + text->size, sizeof text->bytes - text->size, format, arguments);
    va_end(arguments);
    ck_assert_int_ge(size, 0);
    text->size += (size_t)size;
    ck_assert_uint_lt(text->size, sizeof text->bytes);
}

static uint32_t choose(struct text *text, uint32_t bound)
{
    return sample_random(&text->random, bound);
}

/* The memory in the frame: none, of constant size, of a size known only at run time, or realigned.
 */
static void put_memory(struct text *text, const char *name)
{
    static const unsigned sizes[] = {16, 100, 5000, 70000};
    static const unsigned alignments[] = {1, 16, 64, 256};
    uint32_t kind = choose(text, 4);
    if (kind == 0)
        return;
    if (kind == 1)
        put(text, "  %%%s.size = and i64 %%a, 255\n  %%%s.more = add i64 %%%s.size, 16\n", name,
            name, name);
    if (kind == 1)
        put(text, "  %%%s = alloca i8, i64 %%%s.more", name, name);
    else
        put(text, "  %%%s = alloca i8, i64 %u", name, sizes[choose(text, 4)]);
    put(text, ", align %u\n  call void @touch(ptr %%%s)\n", alignments[choose(text, 4)], name);
}

static void put_call(struct text *text, unsigned number)
{
    if (number == 0)
        put(text, "  %%s0 = call i64 @stop(i64 %%b)\n");
    else
        put(text, "  %%s0 = call i64 @f%u(i64 %%b, i64 %%a)\n", number - 1);
}

/* Integers and floating-point numbers that are live across the call. */
static void put_function(struct text *text, unsigned number)
{
    uint32_t integers = choose(text, 16);
    uint32_t doubles = choose(text, 12);
    put(text, "define i64 @f%u(i64 %%a, i64 %%b) #%u {\n", number, choose(text, 2));
    put_memory(text, "m");
    put_memory(text, "n");
    put(text, "  %%d = sitofp i64 %%a to double\n");
    for (uint32_t i = 0; i < integers; i++)
        put(text, "  %%v%u = mul i64 %%%c, %u\n", i, i % 2 == 0 ? 'a' : 'b', 3 + 2 * i);
    for (uint32_t i = 0; i < doubles; i++)
        put(text, "  %%d%u = fmul double %%d, %u.5\n", i, i + 1);
    put_call(text, number);
    put(text, "  %%e0 = sitofp i64 %%s0 to double\n");
    for (uint32_t i = 0; i < integers; i++)
        put(text, "  %%s%u = xor i64 %%s%u, %%v%u\n", i + 1, i, i);
    for (uint32_t i = 0; i < doubles; i++)
        put(text, "  %%e%u = fadd double %%e%u, %%d%u\n", i + 1, i, i);
    put(text, "  %%t = fptosi double %%e%u to i64\n", doubles);
    put(text, "  %%u = add i64 %%s%u, %%t\n  ret i64 %%u\n}\n", integers);
}

enum { DEPTH = 6 };

static LLVMModuleRef random_module(uint64_t *random)
{
    static struct text text;
    text.size = 0;
    text.random = *random;
    put(&text, "declare void @touch(ptr)\ndeclare i64 @stop(i64)\n");
    for (unsigned i = 0; i < DEPTH; i++)
        put_function(&text, i);
    put(&text, "attributes #0 = { uwtable }\n"
               "attributes #1 = { uwtable \"frame-pointer\"=\"all\" }\n");
    *random = text.random;
    return support_parse_valid(context, text.bytes);
}

typedef int64_t function(int64_t a, int64_t b);

static function *compile(LLVMModuleRef module, const char *name, int64_t (*stop)(int64_t),
                         cairn_engine **engine)
{
    struct cairn_error error = {0};
    const struct support_symbol symbols[] = {{"stop", (const void *)(uintptr_t)stop},
                                             {"touch", (const void *)(uintptr_t)touch},
                                             {NULL, NULL}};
    struct cairn_engine_options options = {.load = support_symbols(symbols)};
    options.load.registers_unwind_tables = true;
    enum cairn_status status = cairn_engine_create(runtime, module, &options, engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    void *address = support_compiled_function(*engine, name, &error);
    ck_assert_msg(address != NULL, "%s", error.message);
    return (function *)(uintptr_t)address;
}

/* ---- Tests ---- */

START_TEST(stack_is_walked_through_compiled_functions)
{
    enum { MODULES = 20 };
    uint64_t random = sample_seed();
    for (unsigned i = 0; i < MODULES; i++) {
        cairn_engine *engine = NULL;
        char name[16];
        snprintf(name, sizeof name, "f%d", DEPTH - 1);
        function *f = compile(random_module(&random), name, walk, &engine);
        compiled_frames = 0;
        f(i, (int64_t)(random % 1000));
        ck_assert_uint_eq(compiled_frames, DEPTH);
        cairn_engine_destroy(engine);
    }
}
END_TEST

START_TEST(compiled_function_without_a_table_says_what_is_missing)
{
    cairn_engine *engine = NULL;
    LLVMModuleRef module = support_parse_valid(context, "declare void @touch(ptr)\n"
                                                        "declare i64 @stop(i64)\n"
                                                        "define i64 @f(i64 %a, i64 %b) #0 {\n"
                                                        "  %r = call i64 @stop(i64 %a)\n"
                                                        "  %s = add i64 %r, %b\n"
                                                        "  ret i64 %s\n"
                                                        "}\n"
                                                        "attributes #0 = { nounwind }\n");
    function *f = compile(module, "f", find_caller, &engine);
    f(1, 2);
    struct cairn_error error = {0};
    ck_assert_int_eq(unwind_explain(row_of_caller, arch_host(), pc_of_caller, &error),
                     CAIRN_ERROR_NOT_FOUND);
    ck_assert_msg(strstr(error.message, "uwtable") != NULL, "%s", error.message);
    cairn_engine_destroy(engine);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("unwind rules of compiled functions");
    TCase *tests = tcase_create("compiled");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, stack_is_walked_through_compiled_functions);
    tcase_add_test(tests, compiled_function_without_a_table_says_what_is_missing);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
