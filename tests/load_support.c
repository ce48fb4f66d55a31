/* SPDX-License-Identifier: MIT */
#include "load_support.h"

#include "arch/arch.h"
#include "tests/allocator_support.h"

#include <llvm-c/Target.h>
#include <string.h>

cairn_runtime *runtime;
struct support_allocator counting;

static void set_up(void)
{
    const struct cairn_runtime_options options = {.allocator = support_counting(&counting)};
    ck_assert_ok(cairn_runtime_create(&options, &runtime, NULL));
}

static void tear_down(void)
{
    cairn_runtime_destroy(runtime);
    ck_assert_uint_eq(counting.outstanding_bytes, 0);
}

int load_main(const char *name, void (*add_tests)(TCase *tests))
{
    Suite *suite = suite_create(name);
    TCase *tests = tcase_create(name);
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    add_tests(tests);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}

LLVMMemoryBufferRef compile(const char *text)
{
    const struct support_compilation compilation = {.optimisation_level = 1,
                                                    .liveness = CAIRN_LIVENESS_OFF_BY_HOST};
    LLVMInitializeNativeAsmParser();
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef ir = support_parse_valid(context, text);
    LLVMMemoryBufferRef object = support_compile_to_memory(ir, &compilation);
    LLVMDisposeModule(ir);
    LLVMContextDispose(context);
    return object;
}

enum cairn_status load_object(LLVMMemoryBufferRef object, const struct cairn_load_options *options,
                              cairn_module **module, struct cairn_error *error)
{
    cairn_loader *loader;
    enum cairn_status status = cairn_loader_create(runtime, "test", &loader, error);
    if (status != CAIRN_OK)
        return status;
    status = cairn_loader_add_object(loader, LLVMGetBufferStart(object), LLVMGetBufferSize(object),
                                     options, error);
    if (status == CAIRN_OK)
        status = cairn_loader_finish(loader, module, error);
    if (status != CAIRN_OK)
        cairn_loader_destroy(loader);
    return status;
}

enum cairn_status load_ir(const char *text, const struct cairn_load_options *options,
                          cairn_module **module, struct cairn_error *error)
{
    LLVMMemoryBufferRef object = compile(text);
    enum cairn_status status = load_object(object, options, module, error);
    LLVMDisposeMemoryBuffer(object);
    return status;
}

cairn_module *load(const char *text, const struct cairn_load_options *options)
{
    cairn_module *module;
    struct cairn_error error = {.message = ""};
    enum cairn_status status = load_ir(text, options, &module, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    ck_assert_ok(cairn_module_publish(module, NULL));
    return module;
}

int call(const cairn_module *module, const char *name, int argument)
{
    int (*function)(int) = (int (*)(int))(uintptr_t)cairn_module_find_symbol(module, name);
    ck_assert_msg(function != NULL, "%s is not defined", name);
    return function(argument);
}

size_t retire(cairn_module *module)
{
    cairn_module_retire(module);
    return cairn_runtime_quiesce(runtime);
}

const char *name_at(const void *address)
{
    struct cairn_function function = {.name = NULL};
    bool found = cairn_runtime_find_function(runtime, (uintptr_t)address, &function);
    return found && function.name != NULL ? function.name : "";
}

const void *code_of(const void *function)
{
    if (!arch_host()->has_descriptors)
        return function;
    const void *code;
    memcpy(&code, function, sizeof code);
    return code;
}

bool is_ppc64(void)
{
    enum cairn_architecture host = cairn_architecture_host();
    return host == CAIRN_ARCHITECTURE_PPC64_ELFV1 || host == CAIRN_ARCHITECTURE_PPC64_ELFV2;
}

void assert_says(const struct cairn_error *error, const char *text)
{
    ck_assert_msg(strstr(error->message, text) != NULL, "'%s' is not in '%s'", text,
                  error->message);
}
