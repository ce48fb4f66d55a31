/*
 * Tests of objects that carry their manifest: they are loaded without any other declaration.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "llvm_support.h"
#include "llvm/scan.h"

#include "arch/features.h"
#include "base/memory.h"
#include "runtime_support.h"
#include "llvm/cpu.h"
#include "llvm/embed.h"

#include <cairn/load.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <stdio.h>
#include <string.h>

static LLVMContextRef context;
static cairn_runtime *runtime;
static struct cairn_error error;

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

/* ---- Compiling and loading ---- */

static LLVMTargetMachineRef create_machine(const char *triple, const char *cpu,
                                           const char *features)
{
    LLVMTargetRef target;
    char *message = NULL;
    LLVMInitializeAllTargetInfos();
    LLVMInitializeAllTargets();
    LLVMInitializeAllTargetMCs();
    LLVMInitializeAllAsmPrinters();
    ck_assert_int_eq(LLVMGetTargetFromTriple(triple, &target, &message), 0);
    LLVMTargetMachineRef machine = LLVMCreateTargetMachine(
        target, triple, cpu, features, LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelDefault);
    ck_assert_ptr_nonnull(machine);
    return machine;
}

static LLVMTargetMachineRef create_native_machine(const char *cpu, const char *features)
{
    char *triple = LLVMGetDefaultTargetTriple();
    LLVMTargetMachineRef machine = create_machine(triple, cpu, features);
    LLVMDisposeMessage(triple);
    return machine;
}

/* Compiles the module, and disposes of it and of the machine. */
static LLVMMemoryBufferRef emit_with(LLVMTargetMachineRef machine, LLVMModuleRef module)
{
    LLVMMemoryBufferRef object;
    char *message = NULL;
    ck_assert_int_eq(
        LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &message, &object), 0);
    LLVMDisposeTargetMachine(machine);
    LLVMDisposeModule(module);
    return object;
}

static LLVMMemoryBufferRef emit(LLVMModuleRef module)
{
    return emit_with(create_native_machine("", ""), module);
}

static enum cairn_status load(LLVMMemoryBufferRef object, cairn_module **module)
{
    cairn_loader *loader;
    ck_assert_ok(cairn_loader_create(runtime, "object", &loader, NULL));
    enum cairn_status status = cairn_loader_add_object(loader, LLVMGetBufferStart(object),
                                                       LLVMGetBufferSize(object), NULL, &error);
    if (status == CAIRN_OK)
        status = cairn_loader_finish(loader, module, &error);
    if (status != CAIRN_OK)
        cairn_loader_destroy(loader);
    else
        ck_assert_ok(cairn_module_publish(*module, NULL));
    LLVMDisposeMemoryBuffer(object);
    return status;
}

static cairn_module *load_module(LLVMModuleRef module)
{
    cairn_module *loaded = NULL;
    enum cairn_status status = load(emit(module), &loaded);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return loaded;
}

/* Adds the module's declarations to the module. */
static void embed(LLVMModuleRef module)
{
    cairn_declarations *declarations;
    ck_assert_ok(cairn_declarations_create(NULL, &declarations, NULL));
    ck_assert_ok(scan_module(module, false, declarations, NULL));
    ck_assert_ok(embed_declarations(module, declarations, NULL, 0, NULL));
    cairn_declarations_destroy(declarations);
}

#define SITE(name, id)                                                                             \
    SUPPORT_INTRINSICS                                                                             \
    "define i64 @" name "(i64 %x, double %y) {\n"                                                  \
    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 " id             \
    ", i32 32, ptr null, i32 0, i64 %x, double %y)\n"                                              \
    "  ret i64 %x\n"                                                                               \
    "}\n"

/* ---- The tests ---- */

START_TEST(the_object_declares_its_own_sites)
{
    struct cairn_site_description description;
    LLVMModuleRef module = support_parse(context, SITE("f", "7"));
    embed(module);
    cairn_module *loaded = load_module(module);
    ck_assert_uint_eq(support_site_count(loaded), 1);
    const struct cairn_declaration *declaration =
        cairn_record_declaration((struct cairn_record){cairn_module_table(loaded), 0});
    ck_assert_ptr_nonnull(declaration);
    ck_assert_uint_eq(declaration->id, 7);
    ck_assert_str_eq(declaration->function, "f");
    ck_assert_uint_eq(declaration->live_value_count, 2);
    ck_assert_int_eq(declaration->types[1].kind, CAIRN_TYPE_DOUBLE);
    cairn_site *site = cairn_runtime_find_site(runtime, 7, &error);
    ck_assert_msg(site != NULL, "%s", error.message);
    cairn_site_describe(site, &description);
    ck_assert_uint_eq(description.byte_count, 32);
    cairn_module_retire(loaded);
}
END_TEST

START_TEST(an_object_without_a_manifest_has_records_and_no_sites)
{
    cairn_module *loaded = load_module(support_parse(context, SITE("f", "7")));
    ck_assert_uint_eq(cairn_table_record_count(cairn_module_table(loaded)), 1);
    ck_assert_uint_eq(support_site_count(loaded), 0);
    cairn_module_retire(loaded);
}
END_TEST

START_TEST(the_manifest_takes_no_memory_of_the_module)
{
    struct cairn_runtime_statistics with;
    struct cairn_runtime_statistics without;
    LLVMModuleRef module = support_parse(context, SITE("f", "7"));
    cairn_module *loaded = load_module(support_parse(context, SITE("f", "7")));
    cairn_runtime_statistics(runtime, &without);
    cairn_module_retire(loaded);
    cairn_runtime_quiesce(runtime);
    embed(module);
    loaded = load_module(module);
    cairn_runtime_statistics(runtime, &with);
    ck_assert_uint_eq(with.data_bytes, without.data_bytes);
    cairn_module_retire(loaded);
}
END_TEST

START_TEST(a_list_of_kept_globals_keeps_its_entries)
{
    static const char text[] =
        "@kept = internal global i8 3\n"
        "@llvm.compiler.used = appending global [1 x ptr] [ptr @kept], section \"llvm.metadata\"\n"
        "define void @f() {\n  ret void\n}\n";
    LLVMModuleRef module = support_parse(context, text);
    embed(module);
    support_verify(module);
    LLVMValueRef list = LLVMGetInitializer(LLVMGetNamedGlobal(module, "llvm.compiler.used"));
    ck_assert_int_eq(LLVMGetNumOperands(list), 2);
    LLVMDisposeModule(module);
}
END_TEST

START_TEST(a_module_for_another_object_format_is_refused)
{
    LLVMModuleRef module = support_parse(context, SITE("f", "7"));
    LLVMSetTarget(module, "x86_64-apple-macosx");
    ck_assert_int_eq(embed_declarations(module, NULL, NULL, 0, &error), CAIRN_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "not ELF"));
    ck_assert_ptr_null(LLVMGetNamedGlobal(module, "cairn.manifest"));
    LLVMDisposeModule(module);
}
END_TEST

START_TEST(a_manifest_for_another_architecture_is_refused_with_both_names)
{
    cairn_module *loaded;
    LLVMModuleRef module = support_parse(context, SITE("f", "7"));
    const struct manifest manifest = {.target = {.architecture = CAIRN_ARCHITECTURE_SYSTEMZ,
                                                 .triple = "s390x-ibm-linux",
                                                 .cpu = "",
                                                 .features = ""}};
    ck_assert_ok(embed_manifest(module, &manifest, NULL));
    ck_assert_int_eq(load(emit(module), &loaded), CAIRN_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "systemz"));
    ck_assert_ptr_nonnull(strstr(error.message, "s390x-ibm-linux"));
    ck_assert_ptr_nonnull(
        strstr(error.message, cairn_architecture_name(cairn_architecture_host())));
}
END_TEST

START_TEST(two_shapes_of_an_id_in_one_object_are_refused)
{
    cairn_module *loaded;
    LLVMModuleRef module = support_parse(context, SITE("f", "7"));
    cairn_declarations *declarations;
    const struct cairn_declaration declaration = {
        .id = 7, .kind = CAIRN_RECORD_STACKMAP, .byte_count = 8, .function = "g"};
    ck_assert_ok(cairn_declarations_create(NULL, &declarations, NULL));
    ck_assert_ok(cairn_declarations_add(declarations, &declaration, NULL));
    ck_assert_ok(embed_declarations(module, declarations, NULL, 0, NULL));
    embed(module);
    ck_assert_int_eq(load(emit(module), &loaded), CAIRN_ERROR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(error.message, "ID 7 has two shapes: in 'g' and in 'f'"));
    cairn_declarations_destroy(declarations);
}
END_TEST

#if LLVM_VERSION_MAJOR >= 16
START_TEST(pc_sections_have_the_schemas_of_the_manifest)
{
    static const char text[] = "define void @f(ptr %p) {\n"
                               "  store i8 1, ptr %p, !pcsections !0\n"
                               "  ret void\n"
                               "}\n"
                               "!0 = !{!\"notes.f\", !1}\n"
                               "!1 = !{i32 77}\n";
    const struct cairn_pc_section pc_section = {
        .section = "notes",
        .is_prefix = true,
        .has_schema = true,
        .schema = {.constant_count = 1, .constant_bytes = {4}},
    };
    struct cairn_pc_table_entry entry;
    LLVMModuleRef module = support_parse(context, text);
    ck_assert_ok(embed_declarations(module, NULL, &pc_section, 1, NULL));
    cairn_module *loaded = load_module(module);
    ck_assert(cairn_pc_table_entry(cairn_module_pc_table(loaded), 0, &entry));
    ck_assert_str_eq(entry.section->name, "notes.f");
    ck_assert_uint_eq(entry.value.constants[0], 77);
    cairn_module_retire(loaded);
}
END_TEST
#endif

/* ---- What sites of loaded objects can do ---- */

typedef int64_t function(int64_t x);

static function *find_function(const cairn_module *module, const char *name)
{
    void *address = cairn_module_find_symbol(module, name);
    ck_assert_ptr_nonnull(address);
    return (function *)(uintptr_t)address;
}

/* Returns x + y from the function, and both values have their declared types. */
static void leave(struct cairn_exit_call *call, void *user)
{
    struct cairn_value values[2];
    (void)user;
    ck_assert_ok(cairn_frame_values(&call->frame, call->record, 0, 2, values, NULL));
    ck_assert_int_eq(values[1].type.kind, CAIRN_TYPE_DOUBLE);
    struct cairn_value sum = cairn_value_of_integer(
        64, cairn_value_signed(&values[0]) + (int64_t)cairn_value_double(&values[1]));
    ck_assert_ok(cairn_exit_return(call, &sum, 1, NULL));
}

START_TEST(an_exit_at_a_site_of_an_object_reads_values_and_returns)
{
    static const char text[] = SUPPORT_INTRINSICS
        "define i64 @f(i64 %x) uwtable {\n"
        "  %y = sitofp i64 %x to double\n"
        "  %z = fmul double %y, 1.0e2\n"
        "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 7, i32 48, "
        "ptr null, i32 0, i64 %x, double %z)\n"
        "  ret i64 %x\n"
        "}\n";
    cairn_exit *exit;
    LLVMModuleRef module = support_parse(context, text);
    embed(module);
    cairn_module *loaded = load_module(module);
    function *f = find_function(loaded, "f");
    ck_assert_int_eq(f(5), 5);
    cairn_site *site = cairn_runtime_find_site(runtime, 7, &error);
    ck_assert_ok(cairn_site_leave(site, leave, NULL, CAIRN_SYNC, &exit, &error));
    ck_assert_int_eq(f(5), 505);
    ck_assert_ok(cairn_site_restore(site, CAIRN_SYNC, &error));
    ck_assert_int_eq(f(5), 5);
    cairn_exit_destroy(exit);
    cairn_module_retire(loaded);
}
END_TEST

struct object {
    uint64_t shape;
    int64_t field;
};

static void miss(struct cairn_ic_miss *call, void *user)
{
    const struct object *object = cairn_value_pointer(&call->operands[0]);
    const struct cairn_value value = cairn_value_of_integer(64, object->field);
    const struct cairn_ic_case found = {
        .guard = {.width = sizeof object->shape, .key = object->shape},
        .action = CAIRN_IC_LOAD,
        .field = {.offset = offsetof(struct object, field), .width = 8},
    };
    ++*(int *)user;
    ck_assert_ok(cairn_ic_return(call, &value, NULL));
    ck_assert_ok(cairn_ic_add(call->ic, &found, CAIRN_SYNC, NULL));
}

START_TEST(a_site_of_an_object_becomes_an_inline_cache)
{
    static const char text[] = SUPPORT_INTRINSICS
        "define i64 @f(ptr %object) uwtable {\n"
        "  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 7, "
        "i32 64, ptr null, i32 1, ptr %object)\n"
        "  ret i64 %r\n"
        "}\n";
    const struct object objects[] = {{1, 10}, {2, 20}};
    int misses = 0;
    int64_t sum = 0;
    cairn_ic *ic;
    LLVMModuleRef module = support_parse(context, text);
    embed(module);
    cairn_module *loaded = load_module(module);
    cairn_site *site = cairn_runtime_find_site(runtime, 7, &error);
    const struct cairn_ic_options options = {.handler = miss, .user = &misses};
    ck_assert_ok(cairn_ic_create(site, &options, &ic, &error));
    function *f = find_function(loaded, "f");
    for (int i = 0; i < 100; i++)
        sum += f((int64_t)(uintptr_t)&objects[i % 2]);
    ck_assert_int_eq(sum, 1500);
    ck_assert_int_eq(misses, 2);
    cairn_module_retire(loaded);
}
END_TEST

/* Reads the state of an outer frame with a constant, and of an inner one with a value. */
static void read_state(struct cairn_exit_call *call, void *user)
{
    struct cairn_frame_state state;
    struct cairn_interpreter_frame frame;
    struct cairn_value value;
    ck_assert_ok(cairn_frame_state_read(&call->frame, call->record, 0, &state, &error));
    ck_assert_uint_eq(state.frame_count, 2);
    ck_assert_ok(cairn_frame_state_frame(&state, 0, &frame, &error));
    ck_assert_uint_eq(frame.function, 11);
    ck_assert_ok(cairn_frame_state_value(&state, &frame, 0, &value, &error));
    ck_assert_int_eq(cairn_value_signed(&value), -3);
    ck_assert_ok(cairn_frame_state_frame(&state, 1, &frame, &error));
    ck_assert_uint_eq(frame.position, 22);
    ck_assert_ok(cairn_frame_state_value(&state, &frame, 0, &value, &error));
    *(int64_t *)user = cairn_value_signed(&value);
    ck_assert_ok(cairn_exit_continue(call, NULL, NULL));
}

/* Builds i64 f(i64 x) with a patch point whose live values are the state. */
static LLVMModuleRef build_with_state(void)
{
    LLVMModuleRef module = support_parse(context, SUPPORT_INTRINSICS);
    LLVMTypeRef word = LLVMInt64TypeInContext(context);
    LLVMValueRef built = LLVMAddFunction(module, "f", LLVMFunctionType(word, &word, 1, 0));
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMValueRef locals[] = {LLVMConstInt(word, (unsigned long long)-3, 1), LLVMGetParam(built, 0)};
    const struct cairn_encoded_frame frames[] = {
        {.function = 11, .position = 1, .locals = &locals[0], .local_count = 1},
        {.function = 12, .position = 22, .locals = &locals[1], .local_count = 1},
    };
    enum { CAPACITY = 64 };
    LLVMValueRef live[CAPACITY];
    uint32_t count;
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, built, ""));
    ck_assert_ok(cairn_frame_state_encode(context, frames, 2, live, CAPACITY, &count, &error));
    const struct cairn_patchpoint patchpoint = {
        .id = 7, .byte_count = 48, .live_values = live, .live_value_count = count};
    ck_assert_ptr_nonnull(cairn_build_patchpoint(builder, &patchpoint, &error));
    LLVMBuildRet(builder, LLVMGetParam(built, 0));
    LLVMDisposeBuilder(builder);
    cairn_prepare_function(built);
    return module;
}

START_TEST(frame_states_travel_with_the_object)
{
    cairn_exit *exit;
    int64_t found = 0;
    LLVMModuleRef module = build_with_state();
    embed(module);
    cairn_module *loaded = load_module(module);
    cairn_site *site = cairn_runtime_find_site(runtime, 7, &error);
    ck_assert_ok(cairn_site_leave(site, read_state, &found, CAIRN_SYNC, &exit, &error));
    ck_assert_int_eq(find_function(loaded, "f")(5), 5);
    ck_assert_int_eq(found, 5);
    cairn_module_retire(loaded);
    cairn_runtime_quiesce(runtime);
    cairn_exit_destroy(exit);
}
END_TEST

/* ---- The fingerprint ---- */

/* Returns the features that the module needs, as the machine compiles it. */
static char *features_of(const char *text, const char *triple, const char *cpu,
                         const char *features)
{
    static const struct cairn_allocator none;
    const struct cairn_allocator allocator = memory_allocator(&none);
    LLVMModuleRef module = support_parse(context, text);
    LLVMTargetMachineRef machine = create_machine(triple, cpu, features);
    char *needed = NULL;
    LLVMSetTarget(module, triple);
    enum cairn_status status = cpu_features_of_module(module, machine, &allocator, &needed, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    LLVMDisposeTargetMachine(machine);
    LLVMDisposeModule(module);
    return needed;
}

/* Whether a list contains a name. */
static bool lists(const char *list, const char *name, size_t length)
{
    for (; *list != '\0'; list += strcspn(list, ","), list += *list == ',')
        if (strcspn(list, ",") == length && strncmp(list, name, length) == 0)
            return true;
    return false;
}

/* Asserts that the features that are needed include those with a '+' and not those with a '-'. */
static void assert_features(const char *text, const char *triple, const char *cpu,
                            const char *features, const char *expected)
{
    static const struct cairn_allocator none;
    const struct cairn_allocator allocator = memory_allocator(&none);
    if (!support_has_target(triple))
        return;
    char *needed = features_of(text, triple, cpu, features);
    while (*expected != '\0') {
        size_t length = strcspn(expected, ",");
        ck_assert_msg(lists(needed, expected + 1, length - 1) == (expected[0] == '+'),
                      "%s %s: %.*s in %s", cpu, features, (int)length, expected, needed);
        expected += length + (expected[length] == ',');
    }
    memory_free_string(&allocator, needed);
}

#define X86_64 "x86_64-pc-linux-gnu"
#define AARCH64 "aarch64-linux-gnu"
#define PPC64LE "powerpc64le-linux-gnu"
#define PLAIN "define void @f() {\n  ret void\n}\n"

START_TEST(code_for_the_oldest_cpu_needs_no_features)
{
    static const struct cairn_allocator none;
    const struct cairn_allocator allocator = memory_allocator(&none);
    static const char *const cpus[][2] = {{X86_64, ""}, {X86_64, "x86-64"}, {AARCH64, "generic"}};
    for (size_t i = 0; i < sizeof cpus / sizeof *cpus; i++) {
        if (!support_has_target(cpus[i][0]))
            continue;
        char *needed = features_of(PLAIN, cpus[i][0], cpus[i][1], "");
        ck_assert_str_eq(needed, "");
        memory_free_string(&allocator, needed);
    }
    assert_features(PLAIN, PPC64LE, "", "", "-power9-vector,-isa-v30-instructions,-mma");
}
END_TEST

START_TEST(the_name_of_a_cpu_stands_for_its_features)
{
    assert_features(PLAIN, X86_64, "x86-64-v2", "", "+ssse3,+cx16,+sse4.2,+popcnt,-avx,-aes");
    assert_features(PLAIN, X86_64, "x86-64-v3", "", "+avx2,+fma,+bmi2,+f16c,+movbe,-avx512f,-aes");
    assert_features(PLAIN, X86_64, "icelake-server", "",
                    "+avx512vnni,+vaes,+gfni,-avx512bf16,-amx-tile,-sse4a");
    assert_features(PLAIN, AARCH64, "neoverse-n1", "", "+lse,+rcpc,+dotprod,+crc,-sve,-bf16");
}
END_TEST

START_TEST(a_feature_stands_for_those_that_it_implies_and_a_minus_removes_them)
{
    assert_features(PLAIN, X86_64, "", "+avx2", "+avx2,+avx,+sse4.2,-avx512f,-bmi,-fma");
    assert_features(PLAIN, X86_64, "skylake", "-rdseed", "+avx2,+rdrnd,-rdseed");
    assert_features(PLAIN, X86_64, "x86-64-v3", "-avx", "+sse4.2,+bmi2,-avx,-avx2,-fma,-f16c");
    assert_features(PLAIN, AARCH64, "", "+sve2", "+sve2,+sve,+fullfp16,-lse,-sve2-aes");
}
END_TEST

START_TEST(attributes_of_functions_override_the_machine)
{
    static const char text[] = "define void @f() #0 {\n  ret void\n}\n"
                               "define void @g() #1 {\n  ret void\n}\n"
                               "declare void @h() #2\n"
                               "attributes #0 = { \"target-features\"=\"+ssse3\" }\n"
                               "attributes #1 = { \"target-cpu\"=\"x86-64\" }\n"
                               "attributes #2 = { \"target-features\"=\"+avx512f\" }\n";
    assert_features(text, X86_64, "", "+popcnt", "+ssse3,+popcnt,-sse4.1,-avx512f");
}
END_TEST

START_TEST(where_llvm_does_not_tell_features_are_named)
{
    static const char triple[] = PPC64LE;
    static const struct cairn_allocator none;
    const struct cairn_allocator allocator = memory_allocator(&none);
    if (!support_has_target(triple))
        return;
    LLVMModuleRef module = support_parse(context, PLAIN);
    LLVMTargetMachineRef machine = create_machine(triple, "pwr9", "");
    char *needed = NULL;
    LLVMSetTarget(module, triple);
    enum cairn_status status = cpu_features_of_module(module, machine, &allocator, &needed, &error);
    if (LLVM_VERSION_MAJOR >= 21) {
        ck_assert_int_eq(status, CAIRN_OK);
        ck_assert_ptr_nonnull(strstr(needed, "power9-vector"));
        ck_assert_ptr_null(strstr(needed, "mma"));
        memory_free_string(&allocator, needed);
    } else {
        ck_assert_int_eq(status, CAIRN_ERROR_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(error.message, "'pwr9'"));
        assert_features(PLAIN, triple, "", "+power9-vector,+mma,-mma", "+power9-vector,-mma");
    }
    LLVMDisposeTargetMachine(machine);
    LLVMDisposeModule(module);
}
END_TEST

/* LLVM's own list of the host's features is a second opinion. It has names that Cairn's table does
 * not have, and the other way round only on architectures where LLVM reads few of them. */
START_TEST(the_host_has_the_features_that_llvm_finds)
{
    const struct arch_feature_table *table = arch_features(cairn_architecture_host());
    uint64_t words[ARCH_FEATURE_WORDS];
    char *list = LLVMGetHostCPUFeatures();
    size_t compared = 0;
    /* Elsewhere LLVM reads /proc/cpuinfo, which under emulation describes another machine. */
    bool lists_all = cairn_architecture_host() == CAIRN_ARCHITECTURE_X86_64;
    arch_host_features(words);
    for (char *entry = strtok(list, ","); entry != NULL; entry = strtok(NULL, ",")) {
        const struct arch_feature *feature = arch_find_feature(table, entry + 1, strlen(entry + 1));
        if (feature == NULL || (entry[0] == '-' && !lists_all))
            continue;
        compared++;
        ck_assert_msg(arch_has_feature(feature, words) == (entry[0] == '+'), "%s", entry);
    }
    if (lists_all)
        ck_assert_uint_gt(compared, 40);
    LLVMDisposeMessage(list);
}
END_TEST

static char told[2][4096];

static void note_features(void *user, const char *needed, const char *available)
{
    (void)user;
    snprintf(told[0], sizeof told[0], "%s", needed);
    snprintf(told[1], sizeof told[1], "%s", available);
}

START_TEST(code_for_another_cpu_is_refused_with_both_lists)
{
    const struct cairn_load_options options = {.note_features = note_features};
    cairn_loader *loader;
    LLVMModuleRef module = support_parse(context, PLAIN);
    char *triple = LLVMGetDefaultTargetTriple();
    const struct manifest manifest = {.target = {.architecture = cairn_architecture_host(),
                                                 .triple = triple,
                                                 .cpu = "of tomorrow",
                                                 .features = "flies,swims"}};
    ck_assert_ok(embed_manifest(module, &manifest, NULL));
    LLVMMemoryBufferRef object = emit(module);
    ck_assert_ok(cairn_loader_create(runtime, "object", &loader, NULL));
    ck_assert_int_eq(cairn_loader_add_object(loader, LLVMGetBufferStart(object),
                                             LLVMGetBufferSize(object), &options, &error),
                     CAIRN_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(
        strstr(error.message, "lacks: flies,swims (needed: flies,swims; this CPU has: "));
    ck_assert_str_eq(told[0], "flies,swims");
    cairn_loader_destroy(loader);
    LLVMDisposeMemoryBuffer(object);
    LLVMDisposeMessage(triple);
}
END_TEST

/* The name of a CPU stands for features that the system may have turned off: the list has them with
 * a minus. Elsewhere than on x86-64, an emulator may have a CPU that LLVM does not know. */
START_TEST(code_for_this_cpu_is_loaded)
{
    cairn_module *loaded = NULL;
    bool is_known = cairn_architecture_host() == CAIRN_ARCHITECTURE_X86_64;
    char *cpu = LLVMGetHostCPUName();
    char *features = LLVMGetHostCPUFeatures();
    LLVMModuleRef module = support_parse(context, SITE("f", "7"));
    LLVMTargetMachineRef machine =
        create_native_machine(is_known ? cpu : "", is_known ? features : "");
    const struct cairn_embed_options options = {.machine = machine};
    enum cairn_status status = cairn_embed_manifest(module, &options, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    status = load(emit_with(machine, module), &loaded);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    ck_assert_uint_eq(support_site_count(loaded), 1);
    cairn_module_retire(loaded);
    LLVMDisposeMessage(features);
    LLVMDisposeMessage(cpu);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("embed");
    TCase *tests = tcase_create("manifests of objects");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, the_object_declares_its_own_sites);
    tcase_add_test(tests, an_object_without_a_manifest_has_records_and_no_sites);
    tcase_add_test(tests, the_manifest_takes_no_memory_of_the_module);
    tcase_add_test(tests, a_list_of_kept_globals_keeps_its_entries);
    tcase_add_test(tests, a_module_for_another_object_format_is_refused);
    tcase_add_test(tests, a_manifest_for_another_architecture_is_refused_with_both_names);
    tcase_add_test(tests, two_shapes_of_an_id_in_one_object_are_refused);
#if LLVM_VERSION_MAJOR >= 16
    tcase_add_test(tests, pc_sections_have_the_schemas_of_the_manifest);
#endif
    tcase_add_test(tests, an_exit_at_a_site_of_an_object_reads_values_and_returns);
    tcase_add_test(tests, a_site_of_an_object_becomes_an_inline_cache);
    tcase_add_test(tests, frame_states_travel_with_the_object);
    tcase_add_test(tests, code_for_the_oldest_cpu_needs_no_features);
    tcase_add_test(tests, the_name_of_a_cpu_stands_for_its_features);
    tcase_add_test(tests, a_feature_stands_for_those_that_it_implies_and_a_minus_removes_them);
    tcase_add_test(tests, attributes_of_functions_override_the_machine);
    tcase_add_test(tests, where_llvm_does_not_tell_features_are_named);
    tcase_add_test(tests, the_host_has_the_features_that_llvm_finds);
    tcase_add_test(tests, code_for_another_cpu_is_refused_with_both_lists);
    tcase_add_test(tests, code_for_this_cpu_is_loaded);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
