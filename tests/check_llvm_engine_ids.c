/*
 * Tests of engines whose modules give one ID two shapes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/llvm_engine_support.h"

#include <stdio.h>

/* Adds a function of an i64 with one or two stack maps. */
static LLVMModuleRef parse_stackmaps(const char *name, const char *first, const char *second)
{
    char text[1024];
    snprintf(text, sizeof text,
             SUPPORT_INTRINSICS "define void @%s(i64 %%x) {\n"
                                "  call void (i64, i32, ...) @llvm.experimental.stackmap(%s)\n"
                                "  call void (i64, i32, ...) @llvm.experimental.stackmap(%s)\n"
                                "  ret void\n}\n",
             name, first, second == NULL ? "i64 9, i32 0" : second);
    return support_parse_valid(context, text);
}

START_TEST(an_id_may_occur_again_in_a_later_module)
{
    cairn_engine *engine = create_engine(parse_site("f", 1));
    get(engine, "f");
    LLVMModuleRef other = parse_stackmaps("g", "i64 1, i32 0, i64 %x", NULL);
    add(engine, other);
    get(engine, "g");
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 1, NULL, 0), 2);
    cairn_engine_destroy(engine);
}
END_TEST

START_TEST(two_shapes_of_an_id_loaded_together_conflict)
{
    cairn_engine *engine = create_engine(parse_site("f", 1));
    LLVMModuleRef other = parse_stackmaps("g", "i64 1, i32 0, i64 %x", NULL);
    struct cairn_error error = {0};
    ck_assert_int_eq(cairn_engine_add_module(engine, other, &error), CAIRN_ERROR_CONFLICT);
    assert_says(&error, "g");
    LLVMDisposeModule(other);
    function *f = get(engine, "f");
    call_target(1, add_hundred);
    ck_assert_int_eq(f(3), 103);
    cairn_engine_destroy(engine);
}
END_TEST

/* A patch point of 16 bytes and a stack map of an i64. */
#define TWO_SHAPES                                                                                 \
    SUPPORT_INTRINSICS                                                                             \
    "define i64 @f(i64 %x) {\n"                                                                    \
    "  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(\n"               \
    "      i64 1, i32 16, ptr null, i32 1, i64 %x)\n"                                              \
    "  ret i64 %r\n}\n"                                                                            \
    "define void @g(i64 %x) {\n"                                                                   \
    "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %x)\n"              \
    "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, i64 %x)\n"              \
    "  ret void\n}\n"

static cairn_engine *create_engine_with(enum cairn_id_conflicts id_conflicts, LLVMModuleRef module)
{
    struct cairn_error error = {0};
    struct cairn_engine_options options = {.modules = {.id_conflicts = id_conflicts}};
    cairn_engine *engine = NULL;
    enum cairn_status status = cairn_engine_create(runtime, module, &options, &engine, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return engine;
}

/* Returns record number `index` of the function at `address`. */
static struct cairn_record record_of(uint64_t address, uint32_t index)
{
    cairn_module *module = cairn_runtime_find_module(runtime, address);
    ck_assert_ptr_nonnull(module);
    struct cairn_function found;
    ck_assert(cairn_table_find_function(cairn_module_table(module), address, &found));
    ck_assert_uint_gt(found.record_count, index);
    return (struct cairn_record){cairn_module_table(module), found.first_record + index};
}

START_TEST(error_of_an_id_with_two_shapes_names_the_choice)
{
    struct cairn_error error = {0};
    cairn_engine *engine = NULL;
    LLVMModuleRef module = support_parse_valid(context, TWO_SHAPES);
    ck_assert_int_eq(cairn_engine_create(runtime, module, NULL, &engine, &error),
                     CAIRN_ERROR_CONFLICT);
    assert_says(&error, "ID 1 has two shapes: in 'f' and in 'g'");
    assert_says(&error, "id_conflicts");
    ck_assert_ptr_null(LLVMGetFirstGlobal(module)); /* not a marker */
    LLVMDisposeModule(module);
}
END_TEST

START_TEST(calls_with_an_id_of_two_shapes_are_renumbered)
{
    cairn_engine *engine =
        create_engine_with(CAIRN_ID_CONFLICTS_RENUMBERED, support_parse_valid(context, TWO_SHAPES));
    struct cairn_record f = record_of((uintptr_t)get(engine, "f"), 0);
    struct cairn_record g = record_of((uintptr_t)get(engine, "g"), 0);
    ck_assert_uint_eq(cairn_record_id(f), UINT64_C(1) << 31);
    ck_assert_uint_eq(cairn_record_id(g), (UINT64_C(1) << 31) + 1);
    ck_assert_int_eq(cairn_record_declaration(f)->kind, CAIRN_RECORD_PATCHPOINT);
    ck_assert_int_eq(cairn_record_declaration(g)->kind, CAIRN_RECORD_STACKMAP);
    ck_assert_ptr_nonnull(cairn_record_site(f));
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 2, NULL, 0), 1); /* unchanged */
    cairn_engine_destroy(engine);
}
END_TEST

/* The calls that got the ID before are loaded, and no longer in conflict with anything. */
START_TEST(id_that_a_call_was_given_is_not_that_of_a_later_call)
{
    cairn_engine *engine =
        create_engine_with(CAIRN_ID_CONFLICTS_RENUMBERED, support_parse_valid(context, TWO_SHAPES));
    get(engine, "f");
    add(engine,
        parse_stackmaps("h", "i64 2147483648, i32 0, i32 5", "i64 2147483650, i32 0, i32 5"));
    struct cairn_record h = record_of((uintptr_t)get(engine, "h"), 0);
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, UINT64_C(1) << 31, NULL, 0), 1);
    ck_assert_uint_eq(cairn_record_id(h), (UINT64_C(1) << 31) + 3);
    ck_assert_uint_eq(cairn_record_declaration(h)->types[0].bits, 32);
    ck_assert_uint_eq(cairn_record_id(record_of((uintptr_t)get(engine, "h"), 1)),
                      (UINT64_C(1) << 31) + 2);
    cairn_engine_destroy(engine);
}
END_TEST

START_TEST(records_with_an_id_of_two_shapes_are_left_undeclared)
{
    cairn_engine *engine =
        create_engine_with(CAIRN_ID_CONFLICTS_UNDECLARED, support_parse_valid(context, TWO_SHAPES));
    struct cairn_record f = record_of((uintptr_t)get(engine, "f"), 0);
    ck_assert_uint_eq(cairn_record_id(f), 1);
    ck_assert_ptr_null(cairn_record_declaration(f));
    ck_assert_ptr_null(cairn_record_site(f));
    struct cairn_record other;
    ck_assert_uint_eq(cairn_runtime_find_id(runtime, 2, &other, 1), 1);
    ck_assert_ptr_nonnull(cairn_record_declaration(other));
    cairn_engine_destroy(engine);
}
END_TEST

/* The two modules are loaded together and conflict with each other. Within one module, whether it
 * is loaded alone or not, the ID has one shape. */
START_TEST(id_conflicts_between_modules_are_resolved)
{
    bool renumbers = _i % 2 == 0;
    bool conflicts_alone = _i / 2 == 1;
    cairn_engine *engine = create_engine_with(
        renumbers ? CAIRN_ID_CONFLICTS_RENUMBERED : CAIRN_ID_CONFLICTS_UNDECLARED,
        conflicts_alone ? support_parse_valid(context, TWO_SHAPES) : parse_site("f", 1));
    add(engine, parse_stackmaps("h", "i64 1, i32 0, i32 5", NULL));
    struct cairn_record f = record_of((uintptr_t)get(engine, "f"), 0);
    struct cairn_record h = record_of((uintptr_t)get(engine, "h"), 0);
    if (renumbers) {
        ck_assert_uint_ne(cairn_record_id(f), cairn_record_id(h));
        ck_assert_int_eq(cairn_record_declaration(f)->kind, CAIRN_RECORD_PATCHPOINT);
        ck_assert_uint_eq(cairn_record_declaration(h)->types[0].bits, 32);
    } else {
        ck_assert_ptr_null(cairn_record_declaration(f));
        ck_assert_ptr_null(cairn_record_declaration(h));
    }
    cairn_engine_destroy(engine);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, an_id_may_occur_again_in_a_later_module);
    tcase_add_test(tests, two_shapes_of_an_id_loaded_together_conflict);
    tcase_add_test(tests, error_of_an_id_with_two_shapes_names_the_choice);
    tcase_add_test(tests, calls_with_an_id_of_two_shapes_are_renumbered);
    tcase_add_test(tests, id_that_a_call_was_given_is_not_that_of_a_later_call);
    tcase_add_test(tests, records_with_an_id_of_two_shapes_are_left_undeclared);
    tcase_add_loop_test(tests, id_conflicts_between_modules_are_resolved, 0, 4);
}

int main(void) { return engine_main("llvm engine ids", add_tests); }
