/*
 * Tests of loading what LLVM compiles with every code model, relocation model and level of
 * optimisation.
 *
 * SPDX-License-Identifier: MIT
 */
#include "load_support.h"
#include "object_ir.h"

/* The code models of the host's architecture. Position-independent code reaches 1 MiB with the tiny
 * model, and everything with the others. Other code reaches everything with some models only. */
static const struct {
    LLVMCodeModel model;
    bool is_tiny;
    bool reaches_everything;
} models[] = {
    {LLVMCodeModelDefault, false, false}, {LLVMCodeModelJITDefault, false, false},
    {LLVMCodeModelSmall, false, false},   {LLVMCodeModelLarge, false, true},
#if defined(__x86_64__)
    {LLVMCodeModelKernel, false, false},  {LLVMCodeModelMedium, false, false},
#elif defined(__aarch64__)
    {LLVMCodeModelTiny, true, false},
#else
    {LLVMCodeModelMedium, false, true},
#endif
};
enum { MODELS = sizeof models / sizeof *models, LEVELS = 4 };

static int host_byte = 50;
static int host_add(int a, int b) { return a + b; }

static bool find_symbol(void *user, const char *name, uint64_t *address)
{
    (void)user;
    if (strcmp(name, "host_add") != 0 && strcmp(name, "host_byte") != 0)
        return false;
    *address = strcmp(name, "host_add") == 0 ? (uintptr_t)host_add : (uintptr_t)&host_byte;
    return true;
}

static const struct cairn_load_options options = {.find_symbol = find_symbol};

/* Compiles with the model and level of a loop's number. */
static LLVMMemoryBufferRef compile_number(int number, LLVMRelocMode relocation_model)
{
    const struct object_ir_options compilation = {.code_model = models[number / LEVELS].model,
                                                  .relocation_model = relocation_model,
                                                  .level = (LLVMCodeGenOptLevel)(number % LEVELS)};
    return object_ir_compile(&compilation);
}

static void expect_results(cairn_module *module)
{
    ck_assert_ok(cairn_module_publish(module, NULL));
    for (size_t i = 0; i < object_ir_call_count; i++) {
        const struct object_ir_call *wanted = &object_ir_calls[i];
        int result = call(module, wanted->name, wanted->argument);
        ck_assert_msg(result == wanted->result, "%s(%d) returns %d, not %d", wanted->name,
                      wanted->argument, result, wanted->result);
    }
    retire(module);
}

/* Loads the object of a loop's number and runs it, unless the model does not allow its distances:
 * then it must be refused with advice. */
static void expect_run(int number, LLVMRelocMode relocation_model, bool reaches_everything)
{
    struct cairn_error error = {.message = ""};
    cairn_module *module = NULL;
    LLVMMemoryBufferRef object = compile_number(number, relocation_model);
    if (object == NULL)
        return;
    enum cairn_status status = load_object(object, &options, &module, &error);
    LLVMDisposeMemoryBuffer(object);
    if (status == CAIRN_OK) {
        expect_results(module);
        return;
    }
    ck_assert_msg(!reaches_everything && status == CAIRN_ERROR_RANGE, "%s", error.message);
    assert_says(&error, "compile it with -fPIC or for the large code model");
}

START_TEST(position_independent_code_runs)
{
    expect_run(_i, LLVMRelocPIC, !models[_i / LEVELS].is_tiny);
}
END_TEST

START_TEST(position_dependent_code_runs_or_is_refused_with_advice)
{
    expect_run(_i, LLVMRelocStatic, models[_i / LEVELS].reaches_everything);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_loop_test(tests, position_independent_code_runs, 0, MODELS * LEVELS);
    tcase_add_loop_test(tests, position_dependent_code_runs_or_is_refused_with_advice, 0,
                        MODELS * LEVELS);
}

int main(void) { return load_main("load models", add_tests); }
