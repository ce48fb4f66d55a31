/*
 * Tests of scanning IR for declarations: what scan_module reads, and what it refuses.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "llvm_support.h"
#include "llvm/scan.h"
#include "llvm/version.h"

#include <cairn/object.h>
#include <cairn/statepoint.h>
#include <stdio.h>
#include <string.h>

static LLVMContextRef context;
static cairn_declarations *set;

static void set_up(void)
{
    context = LLVMContextCreate();
    ck_assert_ok(cairn_declarations_create(NULL, &set, NULL));
}

static void tear_down(void)
{
    cairn_declarations_destroy(set);
    LLVMContextDispose(context);
}

static enum cairn_status scan(const char *text, struct cairn_error *error)
{
    LLVMModuleRef module = support_parse(context, text);
    enum cairn_status status = scan_module(module, false, set, error);
    LLVMDisposeModule(module);
    return status;
}

static const struct cairn_declaration *scan_and_find(const char *text, uint64_t id)
{
    struct cairn_error error = {0};
    enum cairn_status status = scan(text, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    const struct cairn_declaration *declaration = cairn_declarations_find(set, id);
    ck_assert_ptr_nonnull(declaration);
    return declaration;
}

static void assert_type(struct cairn_type type, const char *text)
{
    char formatted[64];
    cairn_type_format(type, formatted, sizeof formatted);
    ck_assert_str_eq(formatted, text);
}

static void assert_types(const struct cairn_declaration *declaration, const char *const *texts)
{
    uint32_t count = declaration->argument_count + declaration->live_value_count;
    for (uint32_t i = 0; i < count; i++)
        assert_type(declaration->types[i], texts[i]);
    ck_assert_ptr_null(texts[count]);
}

/* ---- Scanned IR ---- */

START_TEST(module_without_sites_declares_nothing)
{
    ck_assert_ok(scan(SUPPORT_INTRINSICS "define void @f() { ret void }", NULL));
    ck_assert_uint_eq(cairn_declarations_count(set), 0);
}
END_TEST

START_TEST(stackmap_is_declared)
{
    const struct cairn_declaration *declaration = scan_and_find(
        SUPPORT_INTRINSICS
        "define void @holder(i32 %a, double %b, ptr %c) {\n"
        "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 -2, i32 12, i32 %a,\n"
        "      double %b, ptr %c, i64 7)\n"
        "  ret void\n"
        "}\n",
        (uint64_t)-2);
    ck_assert_int_eq(declaration->kind, CAIRN_RECORD_STACKMAP);
    ck_assert_uint_eq(declaration->byte_count, 12);
    ck_assert_uint_eq(declaration->argument_count, 0);
    ck_assert_uint_eq(declaration->live_value_count, 4);
    ck_assert_str_eq(declaration->function, "holder");
    ck_assert(!declaration->has_target);
    assert_type(declaration->result, "void");
    assert_types(declaration, (const char *[]){"i32", "double", "ptr", "i64", NULL});
}
END_TEST

START_TEST(patchpoint_is_declared)
{
    const struct cairn_declaration *declaration = scan_and_find(
        SUPPORT_INTRINSICS
        "define i64 @holder(i32 %a, float %b, <2 x double> %c, ptr addrspace(1) %d) {\n"
        "  %r = call anyregcc i64 (i64, i32, ptr, i32, ...)\n"
        "      @llvm.experimental.patchpoint.i64(i64 5, i32 20, ptr inttoptr (i64 99 to ptr),\n"
        "      i32 2, i32 %a, float %b, <2 x double> %c, ptr addrspace(1) %d)\n"
        "  ret i64 %r\n"
        "}\n",
        5);
    ck_assert_int_eq(declaration->kind, CAIRN_RECORD_PATCHPOINT);
    ck_assert_uint_eq(declaration->byte_count, 20);
    ck_assert_uint_eq(declaration->calling_convention, CAIRN_CALLING_CONVENTION_ANYREG);
    ck_assert(declaration->has_target);
    ck_assert_uint_eq(declaration->argument_count, 2);
    ck_assert_uint_eq(declaration->live_value_count, 2);
    assert_type(declaration->result, "i64");
    assert_types(declaration,
                 (const char *[]){"i32", "float", "<2 x double>", "ptr addrspace(1)", NULL});
}
END_TEST

static const struct cairn_results *scan_function_returning(const char *type, const char *attribute)
{
    char text[1024];
    snprintf(text, sizeof text,
             SUPPORT_INTRINSICS
             "define %s %s @holder() {\n"
             "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0)\n"
             "  unreachable\n"
             "}\n",
             attribute, type);
    return &scan_and_find(text, 1)->function_results;
}

START_TEST(results_of_the_function_are_declared)
{
    const struct cairn_results *results =
        scan_function_returning("{ i8, [2 x double], <4 x float> }", "");
    ck_assert(results->is_known);
    ck_assert(!results->extends_sign);
    ck_assert_uint_eq(results->count, 4);
    assert_type(results->types[0], "i8");
    assert_type(results->types[1], "double");
    assert_type(results->types[2], "double");
    assert_type(results->types[3], "<4 x float>");
}
END_TEST

START_TEST(void_is_no_result)
{
    const struct cairn_results *results = scan_function_returning("void", "");
    ck_assert(results->is_known);
    ck_assert_uint_eq(results->count, 0);
}
END_TEST

START_TEST(a_result_that_is_extended_by_its_sign_says_so)
{
    ck_assert(scan_function_returning("i32", "signext")->extends_sign);
}
END_TEST

START_TEST(more_results_than_have_room_are_not_known)
{
    ck_assert(!scan_function_returning("{ i64, i64, i64, i64, i64 }", "")->is_known);
}
END_TEST

START_TEST(null_target_is_no_target)
{
    const struct cairn_declaration *declaration =
        scan_and_find(SUPPORT_INTRINSICS
                      "define void @f() {\n"
                      "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(\n"
                      "      i64 1, i32 16, ptr null, i32 0)\n"
                      "  ret void\n"
                      "}\n",
                      1);
    ck_assert(!declaration->has_target);
    ck_assert_uint_eq(declaration->calling_convention, CAIRN_CALLING_CONVENTION_C);
    assert_type(declaration->result, "void");
}
END_TEST

START_TEST(invoke_is_declared)
{
    const struct cairn_declaration *declaration = scan_and_find(
        SUPPORT_INTRINSICS
        "declare i32 @__gxx_personality_v0(...)\n"
        "define void @f(i64 %x, i64 %y) personality " SUPPORT_PERSONALITY " {\n"
        "  invoke void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(\n"
        "      i64 8, i32 16, ptr inttoptr (i64 5 to ptr), i32 1, i64 %x, i64 %y)\n"
        "      to label %normal unwind label %pad\n"
        "normal:\n"
        "  ret void\n"
        "pad:\n"
        "  %p = landingpad { ptr, i32 } cleanup\n"
        "  ret void\n"
        "}\n",
        8);
    ck_assert_uint_eq(declaration->argument_count, 1);
    ck_assert_uint_eq(declaration->live_value_count, 1);
}
END_TEST

#if LLVM_HAS_OPAQUE_POINTERS
#define STATEPOINT                                                                                 \
    "declare token @llvm.experimental.gc.statepoint.p0(i64, i32, ptr, i32, i32, ...)\n"            \
    "declare i32 @callee(i64)\n"
#define CALL_STATEPOINT(kind)                                                                      \
    kind " token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0("
#define CALLEE "ptr elementtype(i32 (i64)) @callee"
#else
#define STATEPOINT                                                                                 \
    "declare token @llvm.experimental.gc.statepoint.p0f_i32i64f(i64, i32, i32 (i64)*, i32, i32, "  \
    "...)\n"                                                                                       \
    "declare i32 @callee(i64)\n"
#define CALL_STATEPOINT(kind)                                                                      \
    kind " token (i64, i32, i32 (i64)*, i32, i32, ...) "                                           \
         "@llvm.experimental.gc.statepoint.p0f_i32i64f("
#define CALLEE "i32 (i64)* @callee"
#endif

START_TEST(statepoint_with_bundles_is_declared)
{
    const struct cairn_declaration *declaration = scan_and_find(
        STATEPOINT
        "define void @f(i64 %x, ptr addrspace(1) %o) gc \"statepoint-example\" {\n"
        "  %t = " CALL_STATEPOINT(
            "call") "i64 77, i32 0, " CALLEE ", i32 1, i32 0, i64 %x, i32 0, i32 0)\n"
                    "      [\"deopt\"(i64 %x, i32 3), \"gc-live\"(ptr addrspace(1) %o)]\n"
                    "  ret void\n"
                    "}\n",
        77);
    ck_assert_int_eq(declaration->kind, CAIRN_RECORD_STATEPOINT);
    ck_assert_uint_eq(declaration->byte_count, 0);
    ck_assert_uint_eq(declaration->argument_count, 1);
    ck_assert_uint_eq(declaration->live_value_count, 3);
    assert_type(declaration->result, "i32");
    assert_types(declaration, (const char *[]){"i64", "i64", "i32", "ptr addrspace(1)", NULL});
}
END_TEST

START_TEST(invoked_statepoint_is_declared)
{
    const struct cairn_declaration *declaration = scan_and_find(
        STATEPOINT "declare i32 @__gxx_personality_v0(...)\n"
                   "define void @f(i64 %x, ptr addrspace(1) %o) gc \"statepoint-example\"\n"
                   "    personality " SUPPORT_PERSONALITY " {\n"
                   "  %t = " CALL_STATEPOINT(
                       "invoke") "i64 78, i32 5, " CALLEE ", i32 1, i32 0, i64 %x, i32 0, i32 0)\n"
                                 "      [\"deopt\"(i8 7), \"gc-live\"(ptr addrspace(1) %o)]\n"
                                 "      to label %normal unwind label %pad\n"
                                 "normal:\n"
                                 "  ret void\n"
                                 "pad:\n"
                                 "  %p = landingpad token cleanup\n"
                                 "  ret void\n"
                                 "}\n",
        78);
    ck_assert_uint_eq(declaration->byte_count, 5);
    ck_assert(!declaration->has_target);
    ck_assert_uint_eq(declaration->live_value_count, 2);
    assert_types(declaration, (const char *[]){"i64", "i8", "ptr addrspace(1)", NULL});
}
END_TEST

/* ---- Bundles of statepoints ---- */

#define STRANGE "%\"s [ \\22deopt\\22(i64 1), ] \\5C\\0A %x\""

/* The bundles of a statepoint in IR, and the values that are declared and recorded. */
struct bundles_row {
    const char *bundles;
    const char *live_types[6];
    uint32_t deopt_count;
};

/* %x and STRANGE are i64, %d is a double, %o and %p are pointers that nothing relocates. */
static const struct bundles_row bundles_rows[] = {
    {"", {NULL}, 0},
    {"[\"deopt\"(), \"gc-live\"()]", {NULL}, 0},
    {"[\"deopt\"(i64 %x, i32 3), \"gc-live\"(ptr addrspace(1) %o)]",
     {"i64", "i32", "ptr addrspace(1)"},
     2},
    {"[\"gc-live\"(ptr addrspace(1) %o), \"deopt\"(i64 %x, i32 3)]",
     {"i64", "i32", "ptr addrspace(1)"},
     2},
    {"[\"gc-live\"(ptr addrspace(1) %o, ptr addrspace(1) %p)]",
     {"ptr addrspace(1)", "ptr addrspace(1)"},
     0},
    {"[\"deopt\"(double %d)]", {"double"}, 1},
    {"[\"deopt\"(), \"gc-live\"(ptr addrspace(1) %o)]", {"ptr addrspace(1)"}, 0},
    {"[\"gc-live\"(), \"deopt\"(double %d, i64 %x)]", {"double", "i64"}, 2},
    {"[\"gc-transition\"(i32 9, i64 %x, double %d)]", {NULL}, 0},
    {"[\"gc-transition\"(i32 9), \"gc-live\"(ptr addrspace(1) %o), \"deopt\"(i64 %x)]",
     {"i64", "ptr addrspace(1)"},
     1},
    {"[\"gc-live\"(ptr addrspace(1) %o), \"deopt\"(i64 %x), \"gc-transition\"(i32 9)]",
     {"i64", "ptr addrspace(1)"},
     1},
    {"[\"deopt\"(i64 " STRANGE ", double %d), \"gc-transition\"(i64 " STRANGE "),"
     " \"gc-live\"(ptr addrspace(1) %p)]",
     {"i64", "double", "ptr addrspace(1)"},
     2},
    {"[\"deopt\\22(i64 7), [\"(i64 %x), \"\\5C\"(), \"deopts\"(i32 1), \"gc\"(i32 1), \"\"(i32 2),"
     " \"gc-live\"(ptr addrspace(1) %o), \"deop\"(i64 " STRANGE "), \"deopt\"(double %d)]",
     {"double", "ptr addrspace(1)"},
     1},
    {"[\"x\"([2 x i8] c\"\\22]\", { i8, [1 x i16] } { i8 1, [1 x i16] [i16 2] }),"
     " \"deopt\"(<2 x i64> <i64 1, i64 2>, i64 %x), \"y\"(ptr @callees)]",
     {"<2 x i64>", "i64"},
     2},
};

static void format_call(char *text, size_t size, const char *bundles)
{
    snprintf(text, size,
             "  %%t = " CALL_STATEPOINT("call") "i64 77, i32 0, " CALLEE
                                                ", i32 1, i32 1, i64 %%x, i32 0, i32 0) %s\n"
                                                "  ret void\n",
             bundles);
}

static void format_invoke(char *text, size_t size, const char *bundles)
{
    snprintf(text, size,
             "  %%t = " CALL_STATEPOINT("invoke") "i64 77, i32 0, " CALLEE
                                                  ", i32 1, i32 1, i64 %%x, i32 0, i32 0) %s\n"
                                                  "      to label %%1 unwind label %%pad\n"
                                                  "1:\n"
                                                  "  ret void\n"
                                                  "pad:\n"
                                                  "  %%e = landingpad token cleanup\n"
                                                  "  ret void\n",
             bundles);
}

static LLVMModuleRef parse_bundles(const char *bundles, bool is_invoke)
{
    char call[2048];
    char text[4096];
    if (is_invoke)
        format_invoke(call, sizeof call, bundles);
    else
        format_call(call, sizeof call, bundles);
    snprintf(text, sizeof text,
             STATEPOINT "declare i32 @__gxx_personality_v0(...)\n"
                        "@callees = global i8 0\n"
                        "define void @f(i64 %%x, double %%d, ptr addrspace(1) %%o,"
                        " ptr addrspace(1) %%p) gc \"statepoint-example\"\n"
                        "    personality " SUPPORT_PERSONALITY " {\n"
                        "  %s = mul i64 %%x, %%x\n%s}\n",
             STRANGE, call);
    return support_parse_valid(context, text);
}

static void assert_bundles_declared(const struct bundles_row *row, LLVMModuleRef module)
{
    struct cairn_error error = {0};
    enum cairn_status status = scan_module(module, false, set, &error);
    ck_assert_msg(status == CAIRN_OK, "%s: %s", row->bundles, error.message);
    const struct cairn_declaration *declaration = cairn_declarations_find(set, 77);
    uint32_t count = 0;
    while (row->live_types[count] != NULL)
        count++;
    ck_assert_uint_eq(declaration->argument_count, 1);
    ck_assert_uint_eq(declaration->live_value_count, count);
    for (uint32_t i = 0; i < count; i++)
        assert_type(declaration->types[1 + i], row->live_types[i]);
}

START_TEST(bundles_are_told_apart)
{
    const struct bundles_row *row = &bundles_rows[_i / 2];
    LLVMModuleRef module = parse_bundles(row->bundles, _i % 2 != 0);
    char *before = LLVMPrintModuleToString(module);
    assert_bundles_declared(row, module);
    char *after = LLVMPrintModuleToString(module);
    ck_assert_str_eq(before, after);
    LLVMDisposeMessage(before);
    LLVMDisposeMessage(after);
    LLVMDisposeModule(module);
}
END_TEST

/* Compiled code, and its stack map with the first record. */
struct compiled {
    LLVMMemoryBufferRef buffer;
    cairn_object *object;
    struct cairn_stackmap map;
    struct cairn_stackmap_record record;
};

static struct compiled compile_for(LLVMModuleRef module, const char *triple)
{
    const struct support_compilation compilation = {.triple = triple};
    struct compiled compiled = {.buffer = support_compile_to_memory(module, &compilation)};
    struct cairn_object_section section = {0};
    size_t offset = 0;
    ck_assert_ok(cairn_object_open_memory(LLVMGetBufferStart(compiled.buffer),
                                          LLVMGetBufferSize(compiled.buffer), NULL,
                                          &compiled.object, NULL));
    ck_assert_ok(cairn_object_next_section(
        compiled.object, &(struct cairn_object_filter){.name = CAIRN_OBJECT_STACKMAPS}, &section,
        NULL));
    ck_assert_ok(cairn_stackmap_read(&section.contents, &offset, &compiled.map, NULL));
    ck_assert(cairn_stackmap_next(&compiled.map, &compiled.record));
    return compiled;
}

static void release(struct compiled *compiled)
{
    cairn_object_destroy(compiled->object);
    LLVMDisposeMemoryBuffer(compiled->buffer);
}

/* Has GC transitions. */
static const char statepoint_triple[] = "x86_64-linux-gnu";

static struct cairn_statepoint compile_statepoint(LLVMModuleRef module)
{
    struct compiled compiled = compile_for(module, statepoint_triple);
    struct cairn_statepoint statepoint;
    ck_assert_ok(cairn_stackmap_statepoint(&compiled.map, &compiled.record, &statepoint, NULL));
    release(&compiled);
    return statepoint;
}

START_TEST(record_has_the_deopt_values_that_are_declared)
{
    const struct bundles_row *row = &bundles_rows[_i / 2];
    if (!support_has_target(statepoint_triple))
        return;
    LLVMModuleRef module = parse_bundles(row->bundles, _i % 2 != 0);
    LLVMSetTarget(module, statepoint_triple);
    if (cairn_check_module(module, NULL, NULL) != CAIRN_OK) {
        /* An invoke with a bundle for which this LLVM aborts. */
        ck_assert(LLVM_ENDS_AT_FOREIGN_BUNDLES && _i % 2 != 0);
        LLVMDisposeModule(module);
        return;
    }
    struct cairn_statepoint statepoint = compile_statepoint(module);
    ck_assert_uint_eq(statepoint.deopt_count, row->deopt_count);
    ck_assert_uint_eq(statepoint.pair_count, 0);
    ck_assert_uint_eq(statepoint.alloca_count, 0);
    LLVMDisposeModule(module);
}
END_TEST

/* FastISel, which compiles the call at -O0, would let another value have the register. */
START_TEST(registers_of_arguments_hold_no_live_value)
{
    static const struct {
        const char *triple;
        uint16_t arguments[2]; /* DWARF numbers */
    } rows[] = {{"powerpc64le-linux-gnu", {3, 4}},
                {"powerpc64-linux-gnu", {3, 4}},
                {"aarch64-linux-gnu", {0, 1}},
                {"x86_64-linux-gnu", {5, 4}}};
    static const char text[] = SUPPORT_INTRINSICS
        "define i64 @f(i64 %a) {\n"
        "  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 1, i32 48,"
        " ptr null, i32 2, i64 11, i64 22, i64 %a)\n"
        "  ret i64 %r\n}\n";
    if (!support_has_target(rows[_i].triple))
        return;
    LLVMModuleRef module = support_parse_valid(context, text);
    LLVMSetTarget(module, rows[_i].triple);
    ck_assert_ok(scan_module(module, false, set, NULL));
    struct compiled compiled = compile_for(module, rows[_i].triple);
    const struct cairn_location live = cairn_stackmap_location(&compiled.map, &compiled.record, 0);
    if (live.kind == CAIRN_LOCATION_REGISTER) {
        ck_assert_uint_ne(live.dwarf, rows[_i].arguments[0]);
        ck_assert_uint_ne(live.dwarf, rows[_i].arguments[1]);
    }
    release(&compiled);
    LLVMDisposeModule(module);
}
END_TEST

START_TEST(functions_of_similar_names_are_no_sites)
{
    ck_assert_ok(scan("declare void @llvm.donothing()\n"
                      "define void @not.llvm.experimental.stackmap(i64 %x) { ret void }\n"
                      "define void @f(ptr %p) {\n"
                      "  call void @llvm.donothing()\n"
                      "  call void @not.llvm.experimental.stackmap(i64 1)\n"
                      "  ret void\n"
                      "}\n",
                      NULL));
    ck_assert_uint_eq(cairn_declarations_count(set), 0);
}
END_TEST

/* ---- Repeated IDs ---- */

#define STACKMAP(id, bytes, values)                                                                \
    "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 " id ", i32 " bytes values ")\n"

START_TEST(calls_in_functions_that_are_available_externally_are_not_declared)
{
    cairn_declarations *declarations;
    LLVMModuleRef module = support_parse_valid(
        context, SUPPORT_INTRINSICS
        "declare void @g()\n"
        "define available_externally void @elsewhere(i64 %x, ptr %p) {\n"
        "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 5, i64 %x)\n"
        "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 2, i32 32, "
        "ptr %p, i32 0)\n"
        "  call void @g() [ \"deopt\"(i64 %x) ]\n"
        "  ret void\n}\n");
    ck_assert_ok(cairn_declarations_create(NULL, &declarations, NULL));
    ck_assert_ok(scan_module(module, false, declarations, NULL));
    ck_assert_uint_eq(cairn_declarations_count(declarations), 0);
    LLVMSetLinkage(LLVMGetNamedFunction(module, "elsewhere"), LLVMExternalLinkage);
    ck_assert_int_eq(scan_module(module, false, declarations, NULL), CAIRN_ERROR_UNSUPPORTED);
    cairn_declarations_destroy(declarations);
    LLVMDisposeModule(module);
}
END_TEST

START_TEST(equal_duplicates_are_one_declaration)
{
    ck_assert_ok(scan(SUPPORT_INTRINSICS "define void @f(i32 %a) {\n" STACKMAP("1", "4", ", i32 %a")
                          STACKMAP("1", "4", ", i32 3") "  ret void\n}\n",
                      NULL));
    ck_assert_uint_eq(cairn_declarations_count(set), 1);
}
END_TEST

START_TEST(two_shapes_of_one_id_conflict)
{
    ck_assert_ok(scan(SUPPORT_INTRINSICS
                      "define void @before() {\n" STACKMAP("9", "0", "") "  ret void\n}\n",
                      NULL));
    struct cairn_error error = {0};
    enum cairn_status status =
        scan(SUPPORT_INTRINSICS "define void @first(i32 %a) {\n" STACKMAP(
                 "1", "4", ", i32 %a") "  ret void\n}\n"
                                       "define void @second(i64 %a) {\n" STACKMAP(
                                           "1", "4", ", i64 %a") "  ret void\n}\n",
             &error);
    ck_assert_int_eq(status, CAIRN_ERROR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(error.message, "first"));
    ck_assert_ptr_nonnull(strstr(error.message, "second"));
    ck_assert_uint_eq(cairn_declarations_count(set), 1);
    ck_assert_ptr_null(cairn_declarations_find(set, 1));
}
END_TEST

START_TEST(conflict_with_an_earlier_module_leaves_the_set_alone)
{
    ck_assert_ok(scan(SUPPORT_INTRINSICS
                      "define void @earlier() {\n" STACKMAP("2", "0", "") "  ret void\n}\n",
                      NULL));
    struct cairn_error error = {0};
    enum cairn_status status =
        scan(SUPPORT_INTRINSICS "define void @later() {\n" STACKMAP("1", "0", "")
                 STACKMAP("2", "8", "") "  ret void\n}\n",
             &error);
    ck_assert_int_eq(status, CAIRN_ERROR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(error.message, "earlier"));
    ck_assert_ptr_nonnull(strstr(error.message, "later"));
    ck_assert_uint_eq(cairn_declarations_count(set), 1);
}
END_TEST

/* ---- Order ---- */

static LLVMValueRef move_to_front(LLVMValueRef call)
{
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMValueRef copy = LLVMInstructionClone(call);
    LLVMPositionBuilderBefore(builder, LLVMGetFirstInstruction(LLVMGetInstructionParent(call)));
    LLVMInsertIntoBuilder(builder, copy);
    LLVMInstructionEraseFromParent(call);
    LLVMDisposeBuilder(builder);
    return copy;
}

START_TEST(declarations_come_in_the_order_of_the_functions)
{
    LLVMModuleRef module = support_parse(
        context, SUPPORT_INTRINSICS "define void @one() {\n" STACKMAP("1", "4", "")
                     STACKMAP("2", "4", "") "  ret void\n}\n"
                                            "define void @none() {\n  ret void\n}\n"
                                            "define void @two() {\n" STACKMAP("3", "4", "")
                                                STACKMAP("1", "4", "") "  ret void\n}\n");
    LLVMValueRef one = LLVMGetNamedFunction(module, "one");
    move_to_front(LLVMGetNextInstruction(LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(one))));
    ck_assert_ok(scan_module(module, false, set, NULL));
    ck_assert_uint_eq(cairn_declarations_count(set), 3);
    ck_assert_str_eq(cairn_declarations_at(set, 0)->function, "one");
    ck_assert_str_eq(cairn_declarations_at(set, 1)->function, "one");
    ck_assert_str_eq(cairn_declarations_at(set, 2)->function, "two");
    ck_assert_str_eq(cairn_declarations_find(set, 1)->function, "one");
    LLVMDisposeModule(module);
}
END_TEST

START_TEST(error_is_about_the_first_in_the_module)
{
    LLVMModuleRef module = support_parse(
        context, SUPPORT_INTRINSICS "define void @f() {\n" STACKMAP("1", "4", "")
                     STACKMAP("1", "8", "") STACKMAP("1", "16", "") "  ret void\n}\n");
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(LLVMGetNamedFunction(module, "f"));
    move_to_front(LLVMGetNextInstruction(LLVMGetNextInstruction(LLVMGetFirstInstruction(entry))));
    struct cairn_error error = {0};
    ck_assert_int_eq(scan_module(module, false, set, &error), CAIRN_ERROR_CONFLICT);
    ck_assert_msg(strstr(error.message, "16 and 4 bytes") != NULL, "%s", error.message);
    ck_assert_uint_eq(cairn_declarations_count(set), 0);
    LLVMDisposeModule(module);
}
END_TEST

START_TEST(calls_outside_functions_are_not_listed)
{
    LLVMModuleRef module =
        support_parse(context, SUPPORT_INTRINSICS
                      "define void @f() {\n" STACKMAP("1", "4", "") "  ret void\n}\n");
    LLVMValueRef call =
        LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(LLVMGetNamedFunction(module, "f")));
    LLVMValueRef copy = LLVMInstructionClone(call);
    LLVMSetOperand(copy, 0, LLVMConstInt(LLVMInt64TypeInContext(context), 2, 0));
    ck_assert_ok(scan_module(module, false, set, NULL));
    ck_assert_uint_eq(cairn_declarations_count(set), 1);
    ck_assert_ptr_nonnull(cairn_declarations_find(set, 1));
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMPositionBuilderBefore(builder, call);
    LLVMInsertIntoBuilder(builder, copy); /* so that it is freed with the module */
    LLVMDisposeBuilder(builder);
    LLVMDisposeModule(module);
}
END_TEST

/* ---- Errors ---- */

static void assert_corrupt(const char *body, const char *what)
{
    char text[2048];
    snprintf(text, sizeof text, "%sdefine void @f(i64 %%x, i32 %%y) {\n%s  ret void\n}\n",
             SUPPORT_INTRINSICS, body);
    struct cairn_error error = {0};
    ck_assert_int_eq(scan(text, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(error.message, "'f'"));
    ck_assert_msg(strstr(error.message, what) != NULL, "%s", error.message);
    ck_assert_uint_eq(cairn_declarations_count(set), 0);
}

#define PATCHPOINT(id, bytes, count)                                                               \
    "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 " id             \
    ", i32 " bytes ", ptr null, i32 " count ", i64 %x)\n"

/* Builds a module with an invalid operand from a valid one, because LLVM 15 and later refuse to
 * parse the invalid one. */
static void assert_corrupt_operand(unsigned operand, LLVMValueRef (*value)(LLVMValueRef function),
                                   const char *what)
{
    LLVMModuleRef module =
        support_parse(context, SUPPORT_INTRINSICS "define void @f(i64 %x, i32 %y) {\n" PATCHPOINT(
                                   "1", "16", "1") "  ret void\n}\n");
    LLVMValueRef function = LLVMGetNamedFunction(module, "f");
    LLVMValueRef call = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function));
    LLVMSetOperand(call, operand, value(function));
    struct cairn_error error = {0};
    ck_assert_int_eq(scan_module(module, false, set, &error), CAIRN_ERROR_CORRUPT);
    ck_assert_msg(strstr(error.message, what) != NULL, "%s", error.message);
    ck_assert_ptr_nonnull(strstr(error.message, "'f'"));
    ck_assert_uint_eq(cairn_declarations_count(set), 0);
    LLVMDisposeModule(module);
}

static LLVMValueRef first_parameter(LLVMValueRef function) { return LLVMGetParam(function, 0); }
static LLVMValueRef second_parameter(LLVMValueRef function) { return LLVMGetParam(function, 1); }

START_TEST(id_has_to_be_constant) { assert_corrupt_operand(0, first_parameter, "ID"); }
END_TEST

START_TEST(bytes_have_to_be_constant) { assert_corrupt_operand(1, second_parameter, "bytes"); }
END_TEST

START_TEST(argument_count_has_to_be_constant)
{
    assert_corrupt_operand(3, second_parameter, "number of arguments");
}
END_TEST

START_TEST(more_arguments_than_operands_are_refused)
{
    assert_corrupt(PATCHPOINT("1", "16", "2"), "2 arguments");
    assert_corrupt(PATCHPOINT("1", "16", "-1"), "4294967295 arguments");
}
END_TEST

int main(void)
{
    enum { BUNDLES_ROWS = sizeof bundles_rows / sizeof *bundles_rows };
    Suite *suite = suite_create("llvm scan");
    TCase *tests = tcase_create("scan");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, module_without_sites_declares_nothing);
    tcase_add_test(tests, stackmap_is_declared);
    tcase_add_test(tests, patchpoint_is_declared);
    tcase_add_test(tests, results_of_the_function_are_declared);
    tcase_add_test(tests, void_is_no_result);
    tcase_add_test(tests, a_result_that_is_extended_by_its_sign_says_so);
    tcase_add_test(tests, more_results_than_have_room_are_not_known);
    tcase_add_test(tests, null_target_is_no_target);
    tcase_add_test(tests, invoke_is_declared);
    tcase_add_test(tests, statepoint_with_bundles_is_declared);
    tcase_add_test(tests, invoked_statepoint_is_declared);
    tcase_add_loop_test(tests, bundles_are_told_apart, 0, 2 * BUNDLES_ROWS);
    tcase_add_loop_test(tests, record_has_the_deopt_values_that_are_declared, 0, 2 * BUNDLES_ROWS);
    tcase_add_loop_test(tests, registers_of_arguments_hold_no_live_value, 0, 4);
    tcase_add_test(tests, functions_of_similar_names_are_no_sites);
    tcase_add_test(tests, calls_in_functions_that_are_available_externally_are_not_declared);
    tcase_add_test(tests, equal_duplicates_are_one_declaration);
    tcase_add_test(tests, two_shapes_of_one_id_conflict);
    tcase_add_test(tests, conflict_with_an_earlier_module_leaves_the_set_alone);
    tcase_add_test(tests, declarations_come_in_the_order_of_the_functions);
    tcase_add_test(tests, error_is_about_the_first_in_the_module);
    tcase_add_test(tests, calls_outside_functions_are_not_listed);
    tcase_add_test(tests, id_has_to_be_constant);
    tcase_add_test(tests, bytes_have_to_be_constant);
    tcase_add_test(tests, argument_count_has_to_be_constant);
    tcase_add_test(tests, more_arguments_than_operands_are_refused);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
