/*
 * Tests of which vector registers exits save: those that the loaded code can hold by its CPU and
 * features, and all where nothing is known.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "arch/features.h"
#include "base/adapter.h"
#include "frame/frame.h"
#include "tests/llvm_engine_support.h"
#include "llvm/scan.h"

#include <stdio.h>
#include <string.h>

enum { ANY = 99 }; /* the machine's level */

static bool is_x86_64(void) { return cairn_architecture_host() == CAIRN_ARCHITECTURE_X86_64; }

static uint32_t at_most_the_machines(uint32_t level)
{
    return level < arch_host_vector_level() ? level : arch_host_vector_level();
}

/* ---- Exits that look at their context ---- */

static uint32_t saved_level;
static void (*also)(struct cairn_exit_call *call);

static void look(struct cairn_exit_call *call, void *user)
{
    (void)user;
    saved_level = ((const struct arch_context_head *)call->frame.context)->vector_level;
    if (also != NULL)
        also(call);
}

/* Calls the function through an exit at its site, and returns the level of the exit's context. */
static uint32_t leave(function *called, uint64_t id)
{
    struct cairn_error error = {0};
    cairn_exit *exit;
    cairn_site *site = cairn_runtime_find_site(runtime, id, &error);
    ck_assert_msg(site != NULL, "%s", error.message);
    saved_level = 0;
    ck_assert_ok(cairn_site_leave(site, look, NULL, CAIRN_RELAXED, &exit, NULL));
    called(5);
    ck_assert_ok(cairn_site_nop(site, CAIRN_RELAXED, NULL));
    cairn_exit_destroy(exit);
    return saved_level;
}

/* ---- Code ---- */

static LLVMModuleRef parse_with(unsigned id, const char *attributes)
{
    char text[1024];
    snprintf(text, sizeof text,
             SUPPORT_INTRINSICS
             "define i64 @f%u(i64 %%x) %s {\n"
             "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(\n"
             "      i64 %u, i32 48, ptr null, i32 0, i64 %%x)\n"
             "  ret i64 %%x\n"
             "}\n",
             id, attributes, id);
    return support_parse_valid(context, text);
}

static cairn_engine *load(unsigned id, const char *attributes, const char *cpu,
                          const char *features, function **called)
{
    struct cairn_error error = {0};
    cairn_engine *engine;
    char name[16];
    const struct cairn_engine_options options = {.cpu = cpu, .features = features};
    enum cairn_status status =
        cairn_engine_create(runtime, parse_with(id, attributes), &options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    snprintf(name, sizeof name, "f%u", id);
    *called = get(engine, name);
    return engine;
}

static const struct {
    enum cairn_architecture architecture;
    const char *attributes;
    const char *cpu; /* of the engine */
    const char *features;
    uint32_t level;
} cases[] = {
    {CAIRN_ARCHITECTURE_X86_64, "", NULL, NULL, 1},
    {CAIRN_ARCHITECTURE_X86_64, "", "x86-64-v2", NULL, 1},
    {CAIRN_ARCHITECTURE_X86_64, "", "x86-64-v3", NULL, 2},
    {CAIRN_ARCHITECTURE_X86_64, "", "x86-64-v4", NULL, ANY},
    {CAIRN_ARCHITECTURE_X86_64, "", NULL, "+sse4.2,+bmi2", 1},
    {CAIRN_ARCHITECTURE_X86_64, "", NULL, "+fma", 2},
    {CAIRN_ARCHITECTURE_X86_64, "", NULL, "+avx512bw", ANY},
    {CAIRN_ARCHITECTURE_X86_64, "", NULL, "+avx512bw,-avx512f", 2},
    {CAIRN_ARCHITECTURE_X86_64, "", NULL, "+avx512bw,-avx", 1},
    {CAIRN_ARCHITECTURE_X86_64, "", "skylake-avx512", "-avx512f", 2},
    {CAIRN_ARCHITECTURE_X86_64, "", "skylake", NULL, ANY}, /* known to LLVM only */
    {CAIRN_ARCHITECTURE_X86_64, "\"target-features\"=\"+avx2\"", NULL, NULL, 2},
    {CAIRN_ARCHITECTURE_X86_64, "\"target-features\"=\"+avx512f\"", NULL, NULL, ANY},
    {CAIRN_ARCHITECTURE_X86_64, "\"target-cpu\"=\"x86-64\"", "skylake", NULL, 1},
    {CAIRN_ARCHITECTURE_AARCH64, "", NULL, NULL, 1},
    {CAIRN_ARCHITECTURE_AARCH64, "", NULL, "+sve", ANY},
    {CAIRN_ARCHITECTURE_PPC64_ELFV2, "", NULL, NULL, ANY},
    {CAIRN_ARCHITECTURE_PPC64_ELFV2, "", NULL, "-vsx", 2},
    {CAIRN_ARCHITECTURE_PPC64_ELFV2, "\"target-features\"=\"-vsx\"", NULL, NULL, 2},
    {CAIRN_ARCHITECTURE_PPC64_ELFV2, "\"target-features\"=\"-vsx,+vsx\"", NULL, NULL, ANY},
};

START_TEST(exits_save_what_the_code_can_hold)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        function *called;
        if (cases[i].architecture != cairn_architecture_host())
            continue;
        cairn_runtime_destroy(runtime);
        ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL));
        cairn_engine *engine =
            load(1, cases[i].attributes, cases[i].cpu, cases[i].features, &called);
        ck_assert_msg(leave(called, 1) == at_most_the_machines(cases[i].level),
                      "case %zu: level %u", i, saved_level);
        cairn_engine_destroy(engine);
    }
}
END_TEST

/* The level is that of all code in the runtime, and stays when code is retired: frames may still
 * be in it. */
START_TEST(the_level_rises_with_each_module_and_never_falls)
{
    function *called[3];
    if (!is_x86_64())
        return;
    cairn_engine *first = load(1, "", NULL, NULL, &called[0]);
    ck_assert_uint_eq(leave(called[0], 1), 1);
    cairn_engine *second = load(2, "", NULL, "+avx2", &called[1]);
    ck_assert_uint_eq(leave(called[1], 2), at_most_the_machines(2));
    ck_assert_uint_eq(leave(called[0], 1), at_most_the_machines(2));
    cairn_engine_destroy(second);
    cairn_engine *third = load(3, "", NULL, NULL, &called[2]);
    ck_assert_uint_eq(leave(called[2], 3), at_most_the_machines(2));
    cairn_engine_destroy(first);
    cairn_engine_destroy(third);
}
END_TEST

/* ---- Objects ---- */

static uint32_t leave_object(const char *features)
{
    struct cairn_error error = {0};
    cairn_loader *loader;
    cairn_module *module;
    const struct support_compilation compilation = {.liveness = CAIRN_LIVENESS_OFF};
    const struct cairn_load_options options = {.features = features};
    cairn_declarations *declarations;
    LLVMModuleRef parsed = parse_with(1, "");
    ck_assert_ok(cairn_declarations_create(NULL, &declarations, NULL));
    ck_assert_ok(scan_module(parsed, false, declarations, NULL));
    LLVMMemoryBufferRef object = support_compile_to_memory(parsed, &compilation);
    cairn_runtime_destroy(runtime);
    ck_assert_ok(cairn_runtime_create(NULL, &runtime, NULL));
    ck_assert_ok(cairn_loader_create(runtime, "f", &loader, NULL));
    enum cairn_status status = cairn_loader_add_object(loader, LLVMGetBufferStart(object),
                                                       LLVMGetBufferSize(object), &options, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    ck_assert_ok(cairn_loader_declare(loader, declarations, &error));
    cairn_declarations_destroy(declarations);
    ck_assert_ok(cairn_loader_finish(loader, &module, &error));
    ck_assert_ok(cairn_module_publish(module, &error));
    function *called = (function *)(uintptr_t)cairn_module_find_symbol(module, "f1");
    uint32_t level = leave(called, 1);
    cairn_module_retire(module);
    LLVMDisposeMemoryBuffer(object);
    LLVMDisposeModule(parsed);
    return level;
}

START_TEST(objects_without_a_manifest_may_hold_everything)
{
    ck_assert_uint_eq(leave_object(NULL), arch_host_vector_level());
    ck_assert_uint_eq(leave_object("nonsense"), arch_host_vector_level());
}
END_TEST

START_TEST(options_say_what_an_object_may_hold)
{
    if (!is_x86_64())
        return;
    ck_assert_uint_eq(leave_object(""), 1);
    ck_assert_uint_eq(leave_object("sse4.2,avx2"), at_most_the_machines(2));
    ck_assert_uint_eq(leave_object("avx2,avx512f"), arch_host_vector_level());
}
END_TEST

/* ---- Registers that were not saved ---- */

enum { XMM0 = 17, XMM16 = 67 };

static void read_registers(struct cairn_exit_call *call)
{
    struct cairn_error error;
    struct cairn_value value;
    uint8_t bytes[64];
    ck_assert_uint_eq(cairn_context_register_size(call->frame.context, XMM0), 16);
    ck_assert_uint_eq(cairn_context_register_size(call->frame.context, XMM16), 0);
    ck_assert_int_eq(cairn_frame_read(&call->frame, XMM16, bytes, 16, &error),
                     CAIRN_ERROR_NOT_FOUND);
    assert_says(&error, "was not saved");
    struct cairn_location location = {.kind = CAIRN_LOCATION_REGISTER, .size = 16, .dwarf = XMM16};
    ck_assert_int_eq(cairn_frame_at_location(&call->frame, location, CAIRN_DOUBLE, &value, &error),
                     CAIRN_ERROR_NOT_FOUND);
    assert_says(&error, "was not saved");
    location = (struct cairn_location){.kind = CAIRN_LOCATION_REGISTER, .size = 32, .dwarf = XMM0};
    ck_assert_int_eq(cairn_frame_at_location(&call->frame, location,
                                             cairn_type_vector(CAIRN_DOUBLE, 4), &value, &error),
                     CAIRN_ERROR_UNSUPPORTED);
    assert_says(&error, "16 bytes");
}

START_TEST(registers_that_were_not_saved_are_refused)
{
    function *called;
    if (!is_x86_64() || arch_host_vector_level() == 1)
        return;
    cairn_engine *engine = load(1, "", NULL, NULL, &called);
    also = read_registers;
    ck_assert_uint_eq(leave(called, 1), 1);
    also = NULL;
    cairn_engine_destroy(engine);
}
END_TEST

/* ---- Lists of features ---- */

START_TEST(lists_of_features_have_levels_on_every_host)
{
    ck_assert_uint_eq(arch_features_level(&x86_64_features, ""), 1);
    ck_assert_uint_eq(arch_features_level(&x86_64_features, "sse3,popcnt"), 1);
    ck_assert_uint_eq(arch_features_level(&x86_64_features, "popcnt,f16c"), 2);
    ck_assert_uint_eq(arch_features_level(&x86_64_features, "avx512f,popcnt"), 3);
    ck_assert_uint_eq(arch_features_level(&x86_64_features, "amx-tile"), 3);
    ck_assert_uint_eq(arch_features_level(&x86_64_features, "avx11"), UINT32_MAX);
    ck_assert_uint_eq(arch_features_level(&x86_64_features, "-avx"), UINT32_MAX);
    ck_assert_uint_eq(arch_features_level(&aarch64_features, "sve2,sme"), 1);
    ck_assert_uint_eq(arch_features_level(&ppc64_features, ""), 3);
    ck_assert_uint_eq(arch_features_level(&ppc64_features, "-vsx"), 2);
    ck_assert_uint_eq(arch_features_level(&ppc64_features, "-vs"), UINT32_MAX);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, exits_save_what_the_code_can_hold);
    tcase_add_test(tests, the_level_rises_with_each_module_and_never_falls);
    tcase_add_test(tests, objects_without_a_manifest_may_hold_everything);
    tcase_add_test(tests, options_say_what_an_object_may_hold);
    tcase_add_test(tests, registers_that_were_not_saved_are_refused);
    tcase_add_test(tests, lists_of_features_have_levels_on_every_host);
}

int main(void) { return engine_main("exit_levels", add_tests); }
