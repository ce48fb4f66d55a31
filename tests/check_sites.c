/*
 * Sites in loaded code: what they become, and how they are patched alone and in batches.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tests/site_support.h"

#include <string.h>

/* ---- Patch points ---- */

START_TEST(patchpoint_becomes_call_no_op_and_jump_and_comes_back)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    struct cairn_error error;
    const struct site_shape shape = site_patchpoint(region, 16);
    site_load(&fixture, site_modes[_i], &shape);
    ck_assert_int_eq(site_describe(fixture.site).state, CAIRN_SITE_CALL);
    ck_assert_uint_eq(site_describe(fixture.site).target, (uintptr_t)site_one);
    ck_assert(site_describe(fixture.site).live);
    ck_assert_int_eq(fixture.function(), 1);
    ck_assert_done(cairn_site_call(fixture.site, SITE_TWO, CAIRN_RELAXED, &error), error);
    ck_assert_int_eq(fixture.function(), 2);
    ck_assert_uint_eq(site_describe(fixture.site).target, (uintptr_t)site_two);
    ck_assert_done(cairn_site_nop(fixture.site, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 0);
    ck_assert_int_eq(site_describe(fixture.site).state, CAIRN_SITE_NOP);
    /* The function's own end: takes the frame down and returns. */
    ck_assert_done(cairn_site_jump(fixture.site, fixture.tail, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 0);
    ck_assert_int_eq(site_describe(fixture.site).state, CAIRN_SITE_JUMP);
    ck_assert(!site_describe(fixture.site).uses_veneer);
    ck_assert_done(cairn_site_restore(fixture.site, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 1);
    site_unload(&fixture);
}
END_TEST

START_TEST(records_of_a_patchpoint_are_found_by_both_addresses)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    struct cairn_record record;
    const struct site_shape shape = site_patchpoint(region, 20);
    site_load(&fixture, site_modes[_i], &shape);
    struct cairn_site_description description = site_describe(fixture.site);
    ck_assert(cairn_runtime_find_address(fixture.runtime, description.address, &record));
    ck_assert_ptr_eq(cairn_record_site(record), fixture.site);
    ck_assert_ptr_eq(cairn_record_module(record), fixture.module);
    ck_assert(
        cairn_runtime_find_return_address(fixture.runtime, description.return_address, &record));
    ck_assert_uint_eq(cairn_record_id(record), 42);
    ck_assert_str_eq(cairn_record_declaration(record)->function, "f");
    ck_assert(!cairn_runtime_find_return_address(fixture.runtime, description.address, &record));
    ck_assert_ptr_eq(cairn_runtime_find_site(fixture.runtime, 42, NULL), fixture.site);
    cairn_module_retire(fixture.module);
    ck_assert(!cairn_runtime_find_address(fixture.runtime, description.address, &record));
    ck_assert_ptr_null(cairn_runtime_find_site(fixture.runtime, 42, NULL));
    ck_assert_int_eq(cairn_site_call(fixture.site, SITE_TWO, CAIRN_RELAXED, NULL),
                     CAIRN_ERROR_STATE);
    site_unload(&fixture);
}
END_TEST

START_TEST(every_region_of_nine_bytes_is_live_at_any_alignment)
{
    for (uint32_t size = 1; size <= 24; size++) {
        for (uint32_t padding = 0; padding < 8; padding++) {
            uint8_t region[SITE_REGION_MAX];
            struct site_fixture fixture;
            struct cairn_error error;
            struct site_shape shape = site_patchpoint(region, size);
            shape.padding = padding;
            site_load(&fixture, CAIRN_CODE_MODE_DUAL, &shape);
            bool live = site_describe(fixture.site).live;
            ck_assert(live || size < 9);
            enum cairn_status status =
                cairn_site_call(fixture.site, SITE_TWO, CAIRN_RELAXED, &error);
            ck_assert_int_eq(status, live ? CAIRN_OK : CAIRN_ERROR_UNMANAGED);
            if (live)
                ck_assert_int_eq(fixture.function(), 2);
            else
                ck_assert_int_gt((int)strlen(site_describe(fixture.site).reason), 10);
            site_unload(&fixture);
        }
    }
}
END_TEST

START_TEST(unknown_bytes_are_left_alone_and_named)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    struct cairn_error error;
    const struct site_shape shape = site_patchpoint(region, 16);
    region[14] = 0xF4;
    site_load(&fixture, site_modes[_i], &shape);
    struct cairn_site_description description = site_describe(fixture.site);
    ck_assert_int_eq(description.state, CAIRN_SITE_UNMANAGED);
    ck_assert(!description.live);
    ck_assert_ptr_nonnull(strstr(description.reason, "0xf4"));
    ck_assert_int_eq(memcmp(description.bytes, region, 16), 0);
    ck_assert_int_eq(cairn_site_call(fixture.site, SITE_TWO, CAIRN_SYNC, &error),
                     CAIRN_ERROR_UNMANAGED);
    ck_assert_done(cairn_site_call(fixture.site, SITE_TWO, CAIRN_QUIESCENT, &error), error);
    ck_assert_int_eq(fixture.function(), 2);
    ck_assert_done(cairn_site_restore(fixture.site, CAIRN_QUIESCENT, &error), error);
    ck_assert_int_eq(memcmp(description.bytes, region, 16), 0);
    site_unload(&fixture);
}
END_TEST

START_TEST(what_is_wrong_is_refused_before_the_first_write)
{
    uint8_t region[SITE_REGION_MAX];
    uint8_t before[16];
    struct site_fixture fixture;
    const struct site_shape shape = site_patchpoint(region, 16);
    site_load(&fixture, site_modes[_i], &shape);
    memcpy(before, site_describe(fixture.site).bytes, 16);
    ck_assert_int_eq(cairn_site_call(fixture.site, NULL, CAIRN_SYNC, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_site_jump(fixture.site, NULL, CAIRN_SYNC, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_site_call(NULL, SITE_ONE, CAIRN_SYNC, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_site_write(fixture.site, region, 16, CAIRN_SYNC, NULL),
                     CAIRN_ERROR_STATE);
    ck_assert_int_eq(cairn_site_write(fixture.site, region, 17, CAIRN_QUIESCENT, NULL),
                     CAIRN_ERROR_RANGE);
    struct cairn_error error;
    ck_assert_ptr_null(cairn_runtime_find_site(fixture.runtime, 7, &error));
    ck_assert_int_eq(error.status, CAIRN_ERROR_NOT_FOUND);
    ck_assert_int_eq(memcmp(before, site_describe(fixture.site).bytes, 16), 0);
    site_unload(&fixture);
}
END_TEST

START_TEST(whole_region_is_written_unpublished_or_quiescent)
{
    static const uint8_t return_seven[] = {0xB8, 7, 0, 0, 0};
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    struct cairn_error error;
    struct site_shape shape = site_patchpoint(region, 16);
    shape.publish = false;
    site_load(&fixture, site_modes[_i], &shape);
    ck_assert_done(
        cairn_site_write(fixture.site, return_seven, sizeof return_seven, CAIRN_RELAXED, &error),
        error);
    ck_assert_done(cairn_module_publish(fixture.module, &error), error);
    ck_assert_int_eq(fixture.function(), 7);
    ck_assert_int_eq(site_describe(fixture.site).state, CAIRN_SITE_WRITTEN);
    ck_assert_int_eq(cairn_site_call(fixture.site, SITE_TWO, CAIRN_SYNC, &error),
                     CAIRN_ERROR_STATE);
    ck_assert_int_eq(cairn_site_restore(fixture.site, CAIRN_SYNC, &error), CAIRN_ERROR_STATE);
    ck_assert_done(cairn_site_restore(fixture.site, CAIRN_QUIESCENT, &error), error);
    ck_assert_int_eq(fixture.function(), 1);
    ck_assert_done(cairn_site_call(fixture.site, SITE_TWO, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 2);
    site_unload(&fixture);
}
END_TEST

/* ---- Shadows ---- */

/* xor %eax, %eax (2); inc %eax three times (2 each): nothing of 5 bytes. */
static const uint8_t short_instructions[] = {0x31, 0xC0, 0xFF, 0xC0, 0xFF, 0xC0, 0xFF, 0xC0};
/* mov $3, %eax: one instruction of 5 bytes. */
static const uint8_t long_instruction[] = {0xB8, 3, 0, 0, 0, 0x90, 0x90, 0x90};
static const uint8_t no_ops[] = {0x66, 0x0F, 0x1F, 0x84, 0, 0, 2, 0, 0, 0x90};

START_TEST(shadow_of_no_ops_is_live)
{
    struct site_fixture fixture;
    struct cairn_error error;
    const struct site_shape shape = {
        CAIRN_RECORD_STACKMAP, no_ops, sizeof no_ops, sizeof no_ops, 3, 0, true};
    site_load(&fixture, site_modes[_i], &shape);
    ck_assert(site_describe(fixture.site).live);
    ck_assert_int_eq(site_describe(fixture.site).state, CAIRN_SITE_NOP);
    ck_assert_int_eq(fixture.function(), 0);
    ck_assert_done(cairn_site_call(fixture.site, SITE_TWO, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 2);
    ck_assert_done(cairn_site_restore(fixture.site, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 0);
    site_unload(&fixture);
}
END_TEST

START_TEST(shadow_of_one_long_instruction_in_a_word_is_live)
{
    for (uint32_t padding = 0; padding < 8; padding++) {
        struct site_fixture fixture;
        struct cairn_error error;
        const struct site_shape shape = {
            CAIRN_RECORD_STACKMAP, long_instruction, sizeof long_instruction, 5, padding, 0, true};
        site_load(&fixture, site_modes[_i], &shape);
        bool in_one_word = site_describe(fixture.site).address % 8 <= 3;
        ck_assert(site_describe(fixture.site).live == in_one_word);
        ck_assert_int_eq(site_describe(fixture.site).state, CAIRN_SITE_ORIGINAL);
        ck_assert_int_eq(fixture.function(), 3);
        enum cairn_strength strength = in_one_word ? CAIRN_SYNC : CAIRN_QUIESCENT;
        ck_assert_done(cairn_site_call(fixture.site, SITE_TWO, strength, &error), error);
        ck_assert_int_eq(fixture.function(), 2);
        ck_assert_done(cairn_site_restore(fixture.site, strength, &error), error);
        ck_assert_int_eq(fixture.function(), 3);
        ck_assert_int_eq(site_describe(fixture.site).state, CAIRN_SITE_ORIGINAL);
        site_unload(&fixture);
    }
}
END_TEST

START_TEST(shadow_of_short_instructions_needs_quiescence)
{
    struct site_fixture fixture;
    struct cairn_error error;
    const struct site_shape shape = {CAIRN_RECORD_STACKMAP,
                                     short_instructions,
                                     sizeof short_instructions,
                                     sizeof short_instructions,
                                     0,
                                     0,
                                     true};
    site_load(&fixture, site_modes[_i], &shape);
    ck_assert(!site_describe(fixture.site).live);
    ck_assert_int_eq(cairn_site_call(fixture.site, SITE_TWO, CAIRN_SYNC, &error),
                     CAIRN_ERROR_UNMANAGED);
    ck_assert_int_eq(fixture.function(), 3);
    ck_assert_done(cairn_site_call(fixture.site, SITE_TWO, CAIRN_QUIESCENT, &error), error);
    /* The call took 5 bytes and the rest of the third instruction; the fourth is still there. */
    ck_assert_int_eq(fixture.function(), 3);
    ck_assert_int_eq(site_describe(fixture.site).state, CAIRN_SITE_CALL);
    ck_assert_uint_eq(site_describe(fixture.site).bytes[5], 0x90);
    ck_assert_done(cairn_site_restore(fixture.site, CAIRN_QUIESCENT, &error), error);
    ck_assert_int_eq(
        memcmp(site_describe(fixture.site).bytes, short_instructions, sizeof short_instructions),
        0);
    site_unload(&fixture);
}
END_TEST

START_TEST(shadow_is_not_patched_across_another_record_or_its_end)
{
    struct site_fixture fixture;
    struct cairn_error error;
    const struct site_shape crossed = {CAIRN_RECORD_STACKMAP,
                                       short_instructions,
                                       sizeof short_instructions,
                                       sizeof short_instructions,
                                       0,
                                       4,
                                       true};
    const struct site_shape small = {
        CAIRN_RECORD_STACKMAP, short_instructions, sizeof short_instructions, 4, 0, 0, true};
    site_load(&fixture, site_modes[_i / 2], _i % 2 == 0 ? &crossed : &small);
    ck_assert_int_eq(cairn_site_call(fixture.site, SITE_TWO, CAIRN_QUIESCENT, &error),
                     CAIRN_ERROR_RANGE);
    ck_assert_int_eq(cairn_site_write(fixture.site, no_ops, 5, CAIRN_QUIESCENT, &error),
                     CAIRN_ERROR_RANGE);
    ck_assert_int_eq(fixture.function(), 3);
    site_unload(&fixture);
}
END_TEST

/* ---- Batches ---- */

START_TEST(batch_is_made_whole_or_not_at_all)
{
    uint8_t region[SITE_REGION_MAX];
    struct site_fixture fixture;
    struct cairn_error error;
    cairn_batch *batch;
    const struct site_shape shape = site_patchpoint(region, 16);
    site_load(&fixture, site_modes[_i], &shape);
    ck_assert_done(cairn_batch_create(fixture.runtime, &batch, &error), error);
    ck_assert_done(cairn_batch_call(batch, fixture.site, SITE_TWO, &error), error);
    ck_assert_int_eq(fixture.function(), 1);
    ck_assert_int_eq(cairn_batch_nop(batch, fixture.site, &error), CAIRN_ERROR_CONFLICT);
    ck_assert_int_eq(cairn_batch_call(batch, fixture.site, NULL, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_done(cairn_batch_commit(batch, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 2);
    ck_assert_done(cairn_batch_restore(batch, fixture.site, &error), error);
    cairn_batch_clear(batch);
    ck_assert_done(cairn_batch_commit(batch, CAIRN_SYNC, &error), error);
    ck_assert_int_eq(fixture.function(), 2);
    ck_assert_done(cairn_batch_restore(batch, fixture.site, &error), error);
    cairn_module_retire(fixture.module);
    ck_assert_int_eq(cairn_batch_commit(batch, CAIRN_SYNC, &error), CAIRN_ERROR_STATE);
    ck_assert_int_eq(fixture.function(), 2);
    cairn_batch_destroy(batch);
    site_unload(&fixture);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sites");
    TCase *tests = tcase_create("sites");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, patchpoint_becomes_call_no_op_and_jump_and_comes_back, 0,
                        SITE_MODES);
    tcase_add_loop_test(tests, records_of_a_patchpoint_are_found_by_both_addresses, 0, SITE_MODES);
    tcase_add_test(tests, every_region_of_nine_bytes_is_live_at_any_alignment);
    tcase_add_loop_test(tests, unknown_bytes_are_left_alone_and_named, 0, SITE_MODES);
    tcase_add_loop_test(tests, what_is_wrong_is_refused_before_the_first_write, 0, SITE_MODES);
    tcase_add_loop_test(tests, whole_region_is_written_unpublished_or_quiescent, 0, SITE_MODES);
    tcase_add_loop_test(tests, shadow_of_no_ops_is_live, 0, SITE_MODES);
    tcase_add_loop_test(tests, shadow_of_one_long_instruction_in_a_word_is_live, 0, SITE_MODES);
    tcase_add_loop_test(tests, shadow_of_short_instructions_needs_quiescence, 0, SITE_MODES);
    tcase_add_loop_test(tests, shadow_is_not_patched_across_another_record_or_its_end, 0,
                        2 * SITE_MODES);
    tcase_add_loop_test(tests, batch_is_made_whole_or_not_at_all, 0, SITE_MODES);
    suite_add_tcase(suite, tests);
    return site_main(suite);
}
